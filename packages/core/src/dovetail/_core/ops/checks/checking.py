"""Runs a program with checks: whether one failed becomes a value of the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.source import describe
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand, literal_like, make_literal
from dovetail._core.basis.structural import batch_size, reshape
from dovetail._core.ir.avals import aval_of, make_aval, outer_aval
from dovetail._core.ir.jaxpr import ClosedJaxpr, Effects, Literal
from dovetail._core.ops.checks.error import (
    CheckEffect,
    Error,
    init_error,
    merged,
    raise_again,
    settled,
    single,
    within,
)
from dovetail._core.ops.checks.failures import (
    DivisionByZeroError,
    FailedCheckError,
    Failure,
    InfError,
    JaxException,
    NaNError,
    OOBError,
    check_fields,
)
from dovetail._core.ops.elementwise.bitwise import not_p, or_p
from dovetail._core.ops.elementwise.comparison import eq_p, gt_p, lt_p, ne_p
from dovetail._core.ops.elementwise.extrema import min_p
from dovetail._core.ops.elementwise.remainders import rem_p
from dovetail._core.ops.elementwise.signs import abs_p
from dovetail._core.ops.indexing.dynamic_slicing import dynamic_index_in_dim
from dovetail._core.ops.reduction.reductions import argmax, reduce_or
from dovetail._core.trace.custom_rules import CustomRuleCall
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.scopes import replaying
from dovetail._core.trace.state import Trace, evaluation_trace, set_jit_key, state, use_trace
from dovetail._core.transform.batch import batch_flat
from dovetail._core.transform.derived import derived_info, remembered, with_order
from dovetail._core.transform.stage import stage

Categories = frozenset[type[JaxException]]

_INT32: Final = np.dtype(np.int32)
_INT64: Final = np.dtype(np.int64)
#: The categories that results are checked for.
_SPECIAL: Final[Categories] = frozenset({NaNError, InfError})


class CheckTrace(Trace):
    """Computes everything in the parent trace, along with an error from the checks.

    Its values are those of the parent: it has no tracers of its own.

    Attributes:
        categories: the categories of errors to look for.
        error: the result of all checks so far.
    """

    __slots__ = ("categories", "error")
    scope_name = "checkify"

    def __init__(self, parent: Trace, categories: Categories) -> None:
        super().__init__(parent)
        self.categories = categories
        self.error: Error = init_error

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        previous, parent = state.trace, self.parent
        assert parent is not None
        try:
            state.trace = parent
            set_jit_key(parent.key)
            return self.apply(primitive, args, params)
        finally:
            state.trace = previous
            set_jit_key(previous.key)

    def apply(self, primitive: Primitive, args: Sequence[Any], params: Any) -> Any:
        """`process`, while the parent trace is current."""
        if primitive.checks:
            out = primitive.check(self, *args, **params)
        else:
            out = primitive.bind(*args, **params)
        if self.categories & _SPECIAL and primitive.generates_nan:
            for result in out if primitive.multiple_results else [out]:
                self._check_special(primitive, result)
        return out

    def process_custom_rule(self, call: CustomRuleCall, args: Sequence[Any]) -> list[Any]:
        # Custom rules are for transformations around this trace.
        return call.evaluate(args) if self.parent is evaluation_trace else call.record(args)

    def evaluate(
        self, closed: ClosedJaxpr, args: Sequence[Any], has_lines: bool = True
    ) -> list[Any]:
        """Apply the equations of a jaxpr, while the parent trace is current.

        Args:
            closed: the jaxpr.
            args: its arguments.
            has_lines: whether failures report the lines at which the equations were traced, or else
                the current line.
        """
        jaxpr = closed.jaxpr
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        values.update(zip(jaxpr.invars, args, strict=True))

        def read(atom: Any) -> Any:
            return atom if type(atom) is Literal else values[atom]

        with replaying() as replay:
            for eqn in jaxpr.eqns:
                if has_lines:
                    replay.at(eqn)
                out = self.apply(eqn.primitive, [read(v) for v in eqn.invars], eqn.params)
                outs = out if eqn.primitive.multiple_results else [out]
                values.update(zip(eqn.outvars, outs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def checked(self, closed: ClosedJaxpr, tree: Any = None) -> tuple[ClosedJaxpr, Any]:
        """A jaxpr with the leaves of an error as leading results, and the structure of the error.

        Args:
            closed: the jaxpr.
            tree: the structure of the error; by default, as small as possible. A jaxpr without
                checks in which nothing can fail is returned unchanged.
        """
        checked: tuple[ClosedJaxpr, Any] = checked_of(closed, self.categories, tree)
        return checked

    def record(self, tree: Any, leaves: Sequence[Any]) -> None:
        """Record the error that a checked jaxpr returned."""
        self.error = merged(self.error, tree.unflatten(leaves))

    def with_leaves(
        self, tree: Any, function: Callable[..., Any], *args: Any
    ) -> tuple[list[Any], Any]:
        """The leaves of the error of a call, and its result.

        Failures that only a custom rule can have are dropped: the error has no room for them.

        Args:
            tree: the structure of the error.
            function: the function to call, in the trace that is then current.
            *args: its arguments.
        """
        error, out = run_checked(function, self.categories, args, {})
        return settled(within(error, tree), tree), out

    def record_raised(self, error: Error) -> None:
        """Record an error that the user's code raises, if its category is enabled."""
        of_error = {failure.category for failure in error._metadata.values()}
        if FailedCheckError in self.categories or of_error & self.categories:
            self.error = merged(self.error, error)

    def check_divisor(self, divisor: Any) -> None:
        """Check a divisor for zeros."""
        if DivisionByZeroError not in self.categories:
            return
        if type(divisor) is not Literal or not divisor.val:
            is_zero = eq_p.bind(divisor, literal_like(0, divisor))
            self._report(_any(is_zero), DivisionByZeroError, "division by zero")

    def check_indices(
        self, shape: Sequence[int], indices: Any, axes: Sequence[int], windows: Sequence[int]
    ) -> None:
        """Check for indices out of bounds.

        Args:
            shape: the shape of the array.
            indices: vectors of indices, along the last dimension.
            axes: for each component of a vector, the dimension of the array that it indexes.
            windows: for each component, the number of elements used from there.
        """
        if OOBError not in self.categories:
            return
        aval = aval_of(indices)
        if not aval.size:
            return
        limits = [shape[axis] - window for axis, window in zip(axes, windows, strict=True)]
        indices = _signed(indices)
        dtype = aval_of(indices).dtype
        limit: Any = make_literal(limits[0], dtype)
        if len(set(limits)) > 1:
            limit = np.asarray(limits, dtype).reshape([1] * (aval.ndim - 1) + [-1])
        outside = or_p.bind(
            lt_p.bind(indices, make_literal(0, dtype)),
            gt_p.bind(indices, limit),
        )
        outside, indices = reshape(outside, (aval.size,)), reshape(indices, (aval.size,))
        first = argmax(outside, 0, _INT32)
        self._report(
            reduce_or(outside, (0,)),
            OOBError,
            "out-of-bounds indexing",
            (
                dynamic_index_in_dim(indices, first, 0, keepdims=False),
                rem_p.bind(first, make_literal(len(limits), _INT32)),
            ),
            (tuple(shape), tuple(axes), tuple(windows)),
        )

    def _check_special(self, primitive: Primitive, result: Any) -> None:
        if dtypes.kind_of(outer_aval(aval_of(result)).dtype) not in ("f", "c"):
            return
        name = primitive.name
        if NaNError in self.categories:
            failed = _any(ne_p.bind(result, result))
            self._report(failed, NaNError, f"nan generated by primitive: {name}", (), name)
        if InfError in self.categories:
            size = abs_p.bind(result)
            failed = _any(eq_p.bind(size, literal_like(np.inf, size)))
            self._report(failed, InfError, f"inf generated by primitive: {name}", (), name)

    def _report(
        self,
        failed: Any,
        category: type[JaxException],
        message: str,
        values: Sequence[Any] = (),
        details: Any = None,
    ) -> None:
        place = describe(state.place)
        failure = Failure(category, message, place, None, strong_avals(values), details)
        self.error = merged(self.error, single(failed, failure, values))

    def describe(self, tracer: Any) -> str:
        return "a value of a function under checkify"


def error_of_user(
    caller: str,
    pred: Any,
    message: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    raises: type[Exception] | None = None,
) -> Error:
    """The error of a user's check.

    Args:
        caller: the API function.
        pred: the condition that must hold.
        message: a format string.
        args: values for it.
        kwargs: values for it, by name.
        raises: the type of its exception, if it has its own.

    Raises:
        TypeError: `pred` is not a scalar bool, `message` not a string, or a value not an array of
            numbers or keys.
        ValueError: the message is not a format string, or has a field without a value.
    """
    pred = as_operand(pred, caller, "pred")
    aval = aval_of(pred)
    if aval.shape or aval.dtype != np.bool_:
        raise TypeError(
            f"{caller}: the condition must be a scalar bool, got {aval.short_name()}; write a "
            "comparison, and combine the elements of an array with .all() or .any()"
        )
    check_fields(caller, message, args, kwargs)
    pairs, tree = pytree.flatten_with_path((tuple(args), dict(kwargs)))
    names = [f"the value{pytree.keystr(path[1:])}" for path, _ in pairs]
    values = [as_operand(v, caller, name) for (_, v), name in zip(pairs, names, strict=True)]
    for name, value in zip(names, values, strict=True):
        dtype = aval_of(value).dtype
        if not dtypes.kind_of(dtype) and not dtypes.is_extended(dtype):
            raise TypeError(
                f"{caller}: values for the message must be arrays of numbers or of keys, and "
                f"{name} is {aval_of(value).short_name()}"
            )
    avals = strong_avals(values)
    failure = Failure(FailedCheckError, message, describe(), tree, avals, None, raises)
    return single(not_p.bind(pred), failure, values)


def strong_avals(values: Sequence[Any]) -> tuple[Any, ...]:
    """Strongly typed avals of values."""
    return tuple([make_aval(aval.shape, aval.dtype) for aval in map(aval_of, values)])


def _any(flags: Any) -> Any:
    rank = aval_of(flags).ndim
    return reduce_or(flags, tuple(range(rank))) if rank else flags


def _signed(indices: Any) -> Any:
    """Indices in a signed dtype; unsigned ones too large for it become its maximum."""
    dtype = aval_of(indices).dtype
    target = _INT64 if dtype.itemsize == 8 else _INT32
    if dtype == target:
        return indices
    if dtype.kind == "u" and dtype.itemsize == target.itemsize:
        indices = min_p.bind(indices, make_literal(np.iinfo(target).max, dtype))
    return convert_element_type(indices, target)


@remembered
def checked_of(
    closed: ClosedJaxpr, categories: Categories, wanted: Any = None
) -> tuple[ClosedJaxpr, Any]:
    """`CheckTrace.checked`, with the same result for the same jaxpr."""
    trees = []

    def function(*args: Any) -> list[Any]:
        checks = CheckTrace(state.trace, categories)
        outs = checks.evaluate(closed, args)
        checks.finished = True
        tree = pytree.structure(checks.error) if wanted is None else wanted
        trees.append(tree)
        return [*settled(checks.error, tree), *outs]

    jaxpr = stage(function, closed.in_avals, derived_info(closed, "checkify"))
    (tree,) = trees
    # Even without an error, there may have been checks of disabled categories, now gone.
    changed = tree.num_leaves or has_checks(closed.jaxpr.effects)
    return (jaxpr if changed else closed), tree


def without_checks(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr without its checks, for a function whose failures are not reported."""
    if not has_checks(closed.jaxpr.effects):
        return closed
    checked, tree = checked_of(closed, frozenset({FailedCheckError}))
    count = len(checked.out_avals)
    return with_order(checked, range(len(checked.in_avals)), range(tree.num_leaves, count))


def run_checked(
    function: Callable[..., Any], categories: Categories, args: Any, kwargs: Any
) -> tuple[Error, Any]:
    """The error of a call, and its result."""
    checks = CheckTrace(state.trace, categories)
    try:
        with use_trace(checks):
            out = function(*args, **kwargs)
    finally:
        checks.finished = True
    return checks.error, out


def has_checks(effects: Effects) -> bool:
    """Whether operations with these effects contain user checks."""
    return any(type(effect) is CheckEffect for effect in effects)


def batch_with_checks(
    primitive: Primitive, args: Sequence[Any], dims: Sequence[int | None], params: dict[str, Any]
) -> tuple[Any, Any]:
    """Batch a branch or loop with checks whose elements take different paths.

    Operations then run for all elements, but checks must apply only to the active ones. So the
    error becomes a result for each element, and the first failure is raised afterwards.
    """
    effects = primitive.effects(*map(aval_of, args), **params)
    debug = all(e.debug for e in effects if type(e) is CheckEffect)

    def function(*args: Any) -> Any:
        checks = CheckTrace(state.trace, frozenset({FailedCheckError}))
        outs = primitive.check(checks, *args, **params)
        checks.finished = True
        raise_again(checks.error, debug)
        return outs

    return batch_flat(function, args, dims, batch_size(args, dims))
