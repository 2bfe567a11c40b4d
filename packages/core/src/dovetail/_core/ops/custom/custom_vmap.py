"""`custom_vmap`: functions with a custom rule for `vmap`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar

import numpy as np

from dovetail._core.base import config, dtypes, pytree
from dovetail._core.base.caches import Memory
from dovetail._core.base.flags import Flags, merge, partition
from dovetail._core.base.tracebacks import bounded
from dovetail._core.base.wrapping import update_wrapper
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import batch_size, instantiate_zeros, is_linear, to_front
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.ops.calls.program_primitive import ProgramPrimitive
from dovetail._core.ops.control.bodies import Body, operands_of
from dovetail._core.ops.custom.arguments import HasRules
from dovetail._core.ops.loops.loops import map as sequential_map
from dovetail._core.trace.scopes import at_own_lines
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero, with_zeros, without_zeros
from dovetail._core.transform.batch import batched_aval
from dovetail._core.transform.derived import (
    hoist_consts,
    jvp_of,
    transposition_of,
    with_order,
)
from dovetail._core.transform.flattening import (
    FlatFunction,
    check_callable,
    leaf_names,
    location_of,
    name_of,
)
from dovetail._core.transform.jvp import jvp_flat
from dovetail._core.transform.stage import stage
from dovetail._core.transform.transposition import transpose_jaxpr

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
#: Results, and for each of them whether it has a batch dimension, always the first.
BatchedResults = tuple[list[Any], list[bool]]


class BatchRule:
    """The vmap rule of a function: a user's rule, or one derived from that.

    Attributes:
        captured: the number of leading operands that are captured values.
    """

    captured: int

    def __call__(self, size: int, values: Sequence[Any], flags: Sequence[bool]) -> BatchedResults:
        """The results for operands; flags tell which have a batch dimension, always the first."""
        raise NotImplementedError


class UserRule(BatchRule):
    """The rule of `def_vmap`.

    Args:
        function: the custom_vmap function.
        rule: the user's rule.
        in_tree: the structure of the positional arguments.
        body: the staged function.
    """

    def __init__(
        self, function: Callable[..., Any], rule: Callable[..., Any], in_tree: Any, body: Body
    ) -> None:
        self.function = function
        self.rule = rule
        self.in_tree = in_tree
        self.out_tree = body.out_tree
        self.out_avals = body.out_avals
        self.captured = len(body.captured)

    def __repr__(self) -> str:
        return name_of(self.rule)

    @property
    def place(self) -> str:
        """The rule, its function and its line, for messages."""
        where = location_of(self.rule)
        return (
            f"the vmap rule {name_of(self.rule)}{f' ({where})' if where else ''} of "
            f"{name_of(self.function)}"
        )

    def __call__(self, size: int, values: Sequence[Any], flags: Sequence[bool]) -> BatchedResults:
        if any(flags[: self.captured]):
            raise _captured_error(self.function, "mapped by vmap")
        leaves = [instantiate_zeros(as_operand(v, self.place)) for v in values[self.captured :]]
        args = pytree.unflatten(self.in_tree, leaves)
        in_batched = list(pytree.unflatten(self.in_tree, list(flags[self.captured :])))
        try:
            inspect.signature(self.rule).bind(size, in_batched, *args)
        except TypeError as error:
            raise TypeError(
                f"{self.place} is called as rule(axis_size, in_batched, *args), here with "
                f"{2 + len(args)} arguments: {error}"
            ) from None
        except ValueError:  # a function without a signature
            pass
        with at_own_lines():
            out = self.rule(size, in_batched, *args)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(
                f"{self.place} must return a pair (result, out_batched), got {type(out).__name__}"
                + (f" of length {len(out)}" if isinstance(out, (tuple, list)) else "")
            )
        result, out_batched = out
        outs, tree, names = operands_of(result, self.place, "result")
        if tree != self.out_tree:
            difference = pytree.structure_difference(
                self.out_tree, tree, name_of(self.function), name_of(self.rule)
            )
            raise ValueError(
                f"{self.place} must return the structure that the function returns:\n{difference}"
            )
        out_flags, flags_tree = pytree.flatten(out_batched)
        if flags_tree != tree:
            difference = pytree.structure_difference(tree, flags_tree, "result", "out_batched")
            raise ValueError(
                f"{self.place} must return, as out_batched, a bool for each array of its result:\n"
                f"{difference}"
            )
        for flag, name in zip(out_flags, names, strict=True):
            if not isinstance(flag, (bool, np.bool_)):
                raise TypeError(
                    f"{self.place}: out_batched says for each array of the result whether it has "
                    f"the batch dimension (True or False, and the dimension is the first), got "
                    f"{flag!r:.80} for {name}"
                )
        return [
            instantiate_zeros(self._checked(out, aval, bool(flag), size, name))
            for out, aval, flag, name in zip(outs, self.out_avals, out_flags, names, strict=True)
        ], list(map(bool, out_flags))

    def _checked(self, out: Any, aval: Any, batched: bool, size: int, name: str) -> Any:
        expected = batched_aval(aval, size, 0) if batched else aval
        have = aval_of(out)
        if have.shape != expected.shape:
            raise ValueError(
                f"{self.place}: {name} has the shape {have.shape} and must have {expected.shape}, "
                f"because {name_of(self.function)} returns {aval.short_name()} and out_batched is "
                f"{batched} for it (axis_size is {size})"
            )
        if have.dtype == expected.dtype:
            return out
        if have.weak_type and dtypes.result_type(have, expected) == expected.dtype:
            return convert_element_type(out, expected.dtype)
        raise TypeError(
            f"{self.place}: {name} has the dtype {have.dtype}, but {name_of(self.function)} "
            f"returns {aval.short_name()}; convert it with .astype"
        )


class TangentRule(BatchRule):
    """The rule for the tangents of a function, derived from its rule.

    Args:
        rule: the rule of the function.
        nonzero: which of its operands have a tangent; the tangents are further operands.
        nonzero_out: which of its results have one.
        with_results: whether the results are returned before their tangents.
    """

    def __init__(
        self, rule: BatchRule, nonzero: Flags, nonzero_out: Flags, with_results: bool
    ) -> None:
        self.rule = rule
        self.nonzero = nonzero
        self.nonzero_out = nonzero_out
        self.with_results = with_results
        self.captured = rule.captured

    def __repr__(self) -> str:
        return f"jvp of {self.rule!r}"

    def __call__(self, size: int, values: Sequence[Any], flags: Sequence[bool]) -> BatchedResults:
        if any(self.nonzero[: self.captured]):
            raise _captured_error(self.rule, "differentiated under vmap")
        count = len(self.nonzero)
        further = iter(zip(values[count:], flags[count:], strict=True))
        primals, tangents, batched = [], [], []
        for primal, flag, nonzero in zip(values[:count], flags[:count], self.nonzero, strict=True):
            tangent: Any = Zero.of(primal)
            has = flag
            if nonzero:
                # A value and its tangent have the same shape.
                value, own_flag = next(further)
                has = flag or own_flag
                tangent = _placed(value, own_flag, size) if has else value
            primals.append(_placed(primal, flag, size) if has else primal)
            tangents.append(tangent)
            batched.append(has)
        out_flags: list[bool] = []

        def run(*args: Any) -> list[Any]:
            outs, out_flags[:] = self.rule(size, args, batched)
            return outs

        outs, out_tangents = jvp_flat(run, primals, tangents)
        moving = list(map(instantiate_zeros, partition(self.nonzero_out, out_tangents)[0]))
        of_moving, _ = partition(self.nonzero_out, out_flags)
        if not self.with_results:
            return moving, of_moving
        return [*outs, *moving], [*out_flags, *of_moving]


class TransposedRule(BatchRule):
    """The rule for the transpose of a linear function, derived from its rule.

    Args:
        rule: the rule of the function.
        linear: for each operand, its aval if the function is linear in it, else None.
        nonzero_cts: which of its results have a cotangent; the cotangents are the last operands.
    """

    def __init__(self, rule: BatchRule, linear: Sequence[Any], nonzero_cts: Flags) -> None:
        self.rule = rule
        self.linear = linear
        self.nonzero_cts = nonzero_cts
        self.captured = rule.captured

    def __repr__(self) -> str:
        return f"transpose of {self.rule!r}"

    def __call__(self, size: int, values: Sequence[Any], flags: Sequence[bool]) -> BatchedResults:
        linear = [aval is not None for aval in self.linear]
        count = linear.count(False)
        at = merge(linear, repeat(True), flags[:count])

        def function(*vectors: Any) -> list[Any]:
            outs, out_flags = self.rule(size, merge(linear, vectors, values[:count]), at)
            placed = map(_placed, outs, out_flags, repeat(size))
            return partition(self.nonzero_cts, placed)[0]

        avals = [batched_aval(aval, size, 0) for aval in self.linear if aval is not None]
        closed = stage(function, avals, DebugInfo("transpose", repr(self.rule)))
        cts = [_placed(v, f, size) for v, f in zip(values[count:], flags[count:], strict=True)]
        in_cts = transpose_jaxpr(closed.jaxpr, closed.consts, cts, [True] * len(avals))
        return [instantiate_zeros(x) for x in in_cts], [True] * len(in_cts)


class CheckedRule(BatchRule):
    """The rule of a function that returns the leaves of an error before its results.

    Args:
        rule: the rule of the function. Errors that only the rule can find are not reported.
        count: the number of these leaves.
        with_leaves: maps the rule and its arguments to the leaves and the results of the rule.
    """

    def __init__(
        self, rule: BatchRule, count: int, with_leaves: Callable[..., tuple[list[Any], Any]]
    ) -> None:
        self.rule = rule
        self.count = count
        self.with_leaves = with_leaves
        self.captured = rule.captured

    def __repr__(self) -> str:
        return f"checkify of {self.rule!r}"

    def __call__(self, size: int, values: Sequence[Any], flags: Sequence[bool]) -> BatchedResults:
        leaves, (outs, out_flags) = self.with_leaves(self.rule, size, values, flags)
        return [*map(instantiate_zeros, leaves), *outs], [*[False] * self.count, *out_flags]


class FurtherCaptured(BatchRule):
    """A rule for a function with further leading operands, which are constants of its jaxpr."""

    def __init__(self, rule: BatchRule, count: int) -> None:
        self.rule = rule
        self.count = count
        self.captured = rule.captured + count

    def __repr__(self) -> str:
        return repr(self.rule)

    def __call__(self, size: int, values: Sequence[Any], flags: Sequence[bool]) -> BatchedResults:
        return self.rule(size, values[self.count :], flags[self.count :])


def _placed(x: Any, batched: bool, size: int) -> Any:
    return to_front(x, 0 if batched else None, size)


def _captured_error(function: Any, what: str) -> ValueError:
    while isinstance(function, (TangentRule, TransposedRule, CheckedRule, FurtherCaptured)):
        function = function.rule
    if isinstance(function, UserRule):
        function = function.function
    return ValueError(
        f"the custom_vmap function {name_of(function)} ({location_of(function)}) uses a value from "
        f"outside that is {what}, of which its rule does not know; make it an argument of the "
        "function"
    )


class CustomVmapCall(ProgramPrimitive):
    """A call of `call`, which has no constants; under vmap, `rule` replaces it.

    Derivatives are bound with rules derived from `rule`, so they can be vmapped, too.
    """

    name = "custom_vmap_call"
    program = "call"

    def rebind(
        self, closed: ClosedJaxpr, args: Sequence[Any], params: dict[str, Any], kept: Sequence[int]
    ) -> list[Any]:
        jaxpr, constants = hoist_consts(closed)
        rule = FurtherCaptured(params["rule"], len(constants)) if constants else params["rule"]
        results: list[Any] = self.bind(*constants, *args, call=jaxpr, rule=rule)
        return results

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, call: ClosedJaxpr, rule: BatchRule
    ) -> tuple[Any, Any]:
        nonzero, nonzero_tangents = without_zeros(tangents)
        nonzero_out = _differentiable(call)
        derived = jvp_of(call, nonzero, nonzero_out)
        of_tangents = {"rule": TangentRule(rule, nonzero, nonzero_out, True)}
        results = self.rebind(
            derived.jaxpr, [*primals, *nonzero_tangents], of_tangents, range(len(primals))
        )
        outs = results[: len(nonzero_out)]
        return outs, with_zeros(nonzero_out, results[len(outs) :], outs)

    def linearize(
        self,
        primals: Sequence[Any],
        nonzero: Sequence[bool],
        *,
        call: ClosedJaxpr,
        rule: BatchRule,
    ) -> tuple[Any, Callable[..., Any]]:
        # The residuals of a rule depend on the batch, so none are saved: the linear program
        # recomputes them.
        outs = self.bind(*primals, call=call, rule=rule)
        flags, nonzero_out = tuple(nonzero), _differentiable(call)
        derived = jvp_of(call, flags, nonzero_out).jaxpr
        last = range(len(outs), len(derived.out_avals))
        tangent_only = with_order(derived, range(len(derived.in_avals)), last)

        def tangent(*tangents: Any) -> list[Any]:
            operands = [*primals, *partition(flags, tangents)[0]]
            of_tangents = {"rule": TangentRule(rule, flags, nonzero_out, False)}
            out_tangents = self.rebind(tangent_only, operands, of_tangents, range(len(primals)))
            return with_zeros(nonzero_out, out_tangents, outs)

        return outs, tangent

    def transpose(
        self, cotangent: Any, *args: Any, call: ClosedJaxpr, rule: BatchRule
    ) -> Sequence[Any]:
        linear = tuple(map(is_linear, args))
        nonzero_cts, cts = without_zeros(cotangent)
        derived = transposition_of(call, linear, nonzero_cts, (True,) * sum(linear))
        _, operands = partition(linear, args)
        avals = [aval_of(a) if lin else None for a, lin in zip(args, linear, strict=True)]
        of_cts = {"rule": TransposedRule(rule, avals, nonzero_cts)}
        cotangents = self.rebind(derived.jaxpr, [*operands, *cts], of_cts, range(len(operands)))
        return derived.cotangents(linear, cotangents)

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        call: ClosedJaxpr,
        rule: BatchRule,
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        flags = [d is not None for d in dims]
        values = [a if d is None else to_front(a, d, size) for a, d in zip(args, dims, strict=True)]
        outs, out_flags = rule(size, values, flags)
        return outs, [0 if f else None for f in out_flags]

    def lower(self, context: Builder, *values: Any, call: ClosedJaxpr, rule: BatchRule) -> Any:
        return context.inline_jaxpr(call, values)

    def check(self, checks: Any, *args: Any, call: ClosedJaxpr, rule: BatchRule) -> Any:
        checked, error = checks.checked(call)
        if checked is call:
            return self.bind(*args, call=call, rule=rule)
        count = error.num_leaves
        with_error = {"rule": CheckedRule(rule, count, partial(checks.with_leaves, error))}
        outs = self.rebind(checked, args, with_error, range(len(args)))
        checks.record(error, outs[:count])
        return outs[count:]


custom_vmap_call_p: Final = CustomVmapCall()


def _differentiable(call: ClosedJaxpr) -> Flags:
    """Which results have tangents. In the rule, a result may depend on more than in `call`."""
    return tuple([a.tangent().dtype != dtypes.float0 for a in call.out_avals])


@bounded
class custom_vmap(HasRules, Generic[P, R]):
    """A function with a custom rule for `vmap`.

    Outside `vmap`, the function itself runs; it is traced once for each signature. It is
    differentiated like any function; under `vmap`, its rule is differentiated.

    Args:
        fun: a function of trees of arrays, called by position or by keyword.

    Raises:
        AttributeError: when called: no rule was defined with `def_vmap`.
        TypeError: when called: a keyword argument has no position.

    Differs:
        It has gradients also where it is not batched, which JAX refuses.

        >>> from dovetail.custom_batching import custom_vmap
        >>> square = custom_vmap(lambda x: x * x)
        >>> _ = square.def_vmap(lambda size, batched, x: (x * x, batched[0]))
        >>> print(dt.grad(square)(3.0))
        6.0

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail.custom_batching import custom_vmap
        >>> @custom_vmap
        ... def product(a, b):
        ...     return a @ b
        >>> @product.def_vmap
        ... def rule(axis_size, in_batched, a, b):
        ...     a_batched, b_batched = in_batched
        ...     if a_batched and not b_batched:  # one product instead of many
        ...         return a.reshape(-1, a.shape[-1]) @ b, True
        ...     raise NotImplementedError
        >>> dt.vmap(product, in_axes=(0, None))(jnp.ones((5, 3)), jnp.ones(3)).shape
        (5,)
    """

    def __init__(self, fun: Callable[P, R]) -> None:
        check_callable(fun, "custom_vmap")
        update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None
        self._memory = Memory()

    def def_vmap(self, vmap_rule: F) -> F:
        """Define the rule; can be used as a decorator.

        Args:
            vmap_rule: called as ``rule(axis_size, in_batched, *args)``, where `in_batched` is a
                list with a tree of bools for each argument: whether an array has the batch
                dimension, always its first. It returns the result, and a tree of such bools for the
                result.

        Returns:
            The rule.
        """
        check_callable(vmap_rule, "def_vmap")
        self.vmap_rule = vmap_rule
        self._memory.clear()
        return vmap_rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.vmap_rule is None:
            raise AttributeError(
                f"the custom_vmap function {name_of(self.fun)} ({location_of(self.fun)}) has no "
                f"rule yet; give one with @{name_of(self.fun)}.def_vmap"
            )
        positional = self._positional(args, kwargs)
        given, tree = pytree.flatten(positional)
        names = leaf_names(self.fun, positional)
        leaves = [as_operand(x, name_of(self.fun), n) for x, n in zip(given, names, strict=True)]
        key = (tree, tuple([aval_of(x) for x in leaves]), config.trace_key())
        staged: tuple[Body, UserRule] | None = self._memory.get(key)
        if staged is None:
            flat = FlatFunction(self.fun, tree)
            info = DebugInfo("custom_vmap", name_of(self.fun), location_of(self.fun), names)
            closed, captured = hoist_consts(stage(flat, key[1], info))
            body = Body(closed, captured, flat.out_tree)
            staged = body, UserRule(self.fun, self.vmap_rule, tree, body)
            if not any(isinstance(value, Tracer) for value in body.captured):
                self._memory[key] = staged
        body, rule = staged
        outs = custom_vmap_call_p.bind(*body.captured, *leaves, call=body.closed, rule=rule)
        result: R = pytree.unflatten(body.out_tree, outs)
        return result

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        try:
            signature = inspect.signature(self.fun)
        except (TypeError, ValueError):
            if not kwargs:
                return args
            raise TypeError(
                f"the custom_vmap function {name_of(self.fun)} has no signature that Python knows: "
                f"call it by position, without {', '.join(kwargs)}"
            ) from None
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name_of(self.fun)}{signature}: {error}") from None
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"the custom_vmap function {name_of(self.fun)}{signature}: its rule takes "
                f"arguments by position, and {', '.join(bound.kwargs)} can be given only by keyword"
            )
        return bound.args


def sequential_vmap(f: Callable[P, R]) -> custom_vmap[P, R]:
    """Make `vmap` of a function a loop over the elements.

    The program contains the function once, not vectorized. Use this for functions that cannot be
    vectorized or would then need too much memory.

    Args:
        f: a function of trees of arrays, called by position or by keyword.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail.custom_batching import sequential_vmap
        >>> dt.vmap(sequential_vmap(lambda x: 2 * x))(jnp.arange(3)).tolist()
        [0, 2, 4]
    """
    function = custom_vmap(f)

    @function.def_vmap
    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> tuple[Any, Any]:
        leaves, tree = pytree.flatten(args)
        flags = pytree.leaves(in_batched)
        mapped, fixed = partition(flags, leaves)

        def one(elements: Sequence[Any]) -> Any:
            return function(*pytree.unflatten(tree, merge(flags, elements, fixed)))  # type: ignore[call-arg]

        out = sequential_map(one, mapped)
        return out, pytree.map(lambda _: True, out)

    return function
