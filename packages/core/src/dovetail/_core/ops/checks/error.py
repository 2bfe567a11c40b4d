"""The value by which a program reports whether a check failed, and the primitive that raises it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Final, NoReturn

import numpy as np

from dovetail._core.base import pytree
from dovetail._core.base.node_types import register_pytree_node_class
from dovetail._core.basis.operands import make_literal
from dovetail._core.basis.structural import batch_size, full, to_front
from dovetail._core.ir.avals import aval_of, make_aval
from dovetail._core.ir.jaxpr import Effects, Literal
from dovetail._core.ir.shown_params import ShownParams, never
from dovetail._core.ops.checks.failures import (
    BatchedError,
    Failure,
    JaxException,
)
from dovetail._core.ops.elementwise.bitwise import and_p, or_p
from dovetail._core.ops.elementwise.comparison import eq_p
from dovetail._core.ops.elementwise.conversion import stop_gradient
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.indexing.dynamic_slicing import dynamic_index_in_dim
from dovetail._core.ops.reduction.reductions import argmax
from dovetail._core.trace.primitive import Primitive, primitive
from dovetail._core.trace.tracer import Tracer

#: Shapes and dtypes of the values that are recorded with a failure.
Slot = tuple[tuple[tuple[int, ...], Any], ...]

_INT32: Final = np.dtype(np.int32)


@register_pytree_node_class
class Error:
    """Whether a check of a program failed, and which one: a tree of arrays.

    `checkify` makes it. It can be returned from compiled functions, batched, and carried through
    loops; a program that makes errors of the same kinds again makes trees of equal structure.

    Args:
        _pred: a bool array: whether a check failed.
        _code: an int32 array: which one.
        _metadata: what can fail, by code.
        _payload: the values recorded with the failure, by their shapes and dtypes.
    """

    __slots__ = ("_code", "_metadata", "_payload", "_pred")

    def __init__(
        self,
        _pred: Any,
        _code: Any,
        _metadata: dict[int, Failure],
        _payload: dict[Slot, tuple[Any, ...]],
    ) -> None:
        self._pred = _pred
        self._code = _code
        self._metadata = _metadata
        self._payload = _payload

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """The arrays, and what can fail."""
        if not self._metadata:
            return (), ((), ())
        values = [value for values in self._payload.values() for value in values]
        return (
            (self._pred, self._code, *values),
            (tuple(self._metadata.items()), tuple(self._payload)),
        )

    @classmethod
    def tree_unflatten(cls, static_data: Any, children: Iterable[Any]) -> Error:
        """The error made of such arrays."""
        metadata, slots = static_data
        if not metadata:
            return cls(False, -1, {}, {})
        pred, code, *values = children
        rest = iter(values)
        payload = {slot: tuple([next(rest) for _ in slot]) for slot in slots}
        return cls(pred, code, dict(metadata), payload)

    def get_exception(self) -> JaxException | None:
        """The exception that describes the failure, or None where no check failed.

        Returns:
            An exception, whose type is the category of the error. For a batch of errors one that
            has the exceptions of all elements that failed.

        Raises:
            TracerArrayConversionError: the error is being traced; return it from the compiled
                function and ask it there.
        """
        if not self._metadata:
            return None
        failed = np.asarray(self._pred)
        if not failed.any():
            return None
        codes = np.asarray(self._code)
        payload = {
            slot: [np.asarray(value) for value in values] for slot, values in self._payload.items()
        }
        errors = {}
        for index in map(tuple, np.argwhere(failed).tolist()):
            failure = self._metadata[int(codes[index])]
            values = [value[index] for value in payload[slot_of(failure)]]
            errors[index] = failure.exception(values)
        return errors[()] if () in errors else BatchedError(errors)

    def get(self) -> str | None:
        """The message of the failure, or None where no check failed.

        Example:
            >>> from dovetail.experimental import checkify
            >>> error, _ = checkify.checkify(lambda: checkify.check(1 > 2, "no"))()
            >>> error.get()[:11]
            'no (`check`'
        """
        exception = self.get_exception()
        return None if exception is None else str(exception)

    def throw(self) -> None:
        """Raise if a check failed; while being traced, a check that fails where this one did.

        Raises:
            JaxRuntimeError: with the message of the failure; for a failed `dovetail.debug.check`
                what that raises.
        """
        if isinstance(self._pred, Tracer):
            raise_error(self)
            return
        exception = self.get_exception()
        if exception is not None:
            raise exception.raises(str(exception))

    def __repr__(self) -> str:
        if isinstance(self._pred, Tracer):
            return f"Error(being traced, {len(self._metadata)} kinds of failures)"
        return f"Error({self.get()})"


init_error: Final = Error(False, -1, {}, {})


def slot_of(failure: Failure) -> Slot:
    """Where the values of a failure stand in the payload."""
    return tuple([(aval.shape, aval.dtype) for aval in failure.avals])


def single(failed: Any, failure: Failure, values: Sequence[Any]) -> Error:
    """The error of one check.

    Args:
        failed: a scalar bool: whether it fails.
        failure: what fails.
        values: the values to record.
    """
    code = failure.code
    recorded = tuple([_array(stop_gradient(value)) for value in values])
    number = np.asarray(code, _INT32)[()]
    return Error(_array(failed), number, {code: failure}, {slot_of(failure): recorded})


def _array(value: Any) -> Any:
    return np.asarray(value.val, value.aval.dtype)[()] if type(value) is Literal else value


def merged(first: Error, second: Error) -> Error:
    """The error that came first, if any did."""
    if not second._metadata:
        return first
    if not first._metadata:
        return second
    failed = first._pred

    def chosen(before: Any, after: Any) -> Any:
        return select_n_p.bind(failed, after, before)

    payload = dict(first._payload)
    for slot, values in second._payload.items():
        known = payload.get(slot)
        payload[slot] = values if known is None else tuple(map(chosen, known, values))
    return Error(
        or_p.bind(failed, second._pred),
        chosen(first._code, second._code),
        first._metadata | second._metadata,
        payload,
    )


def union(trees: Iterable[Any]) -> Any:
    """The structure of errors that can hold any of those whose structures are given."""
    metadata: dict[int, Failure] = {}
    payload: dict[Slot, tuple[Any, ...]] = {}
    for tree in trees:
        template = _template(tree)
        metadata |= template._metadata
        payload |= template._payload
    return pytree.structure(Error(0, 0, metadata, payload))


def _template(tree: Any) -> Error:
    error: Error = tree.unflatten([0] * tree.num_leaves)
    return error


def avals_of(tree: Any) -> list[Any]:
    """Avals of the leaves of an error with that structure."""
    template = _template(tree)
    if not template._metadata:
        return []
    slots = [make_aval(*part) for slot in template._payload for part in slot]
    return [make_aval((), np.dtype(bool)), make_aval((), _INT32), *slots]


def within(error: Error, tree: Any) -> Error:
    """An error without the failures that one with another structure cannot be."""
    known = _template(tree)._metadata
    codes = error._metadata.keys() & known.keys()
    if len(codes) == len(error._metadata):
        return error
    if not codes:
        return init_error
    pred = and_p.bind(error._pred, _is_one_of(error._code, codes))
    metadata = {code: error._metadata[code] for code in codes}
    slots = set(map(slot_of, metadata.values()))
    payload = {slot: values for slot, values in error._payload.items() if slot in slots}
    return Error(pred, error._code, metadata, payload)


def _is_one_of(code: Any, codes: Iterable[int]) -> Any:
    return reduce(or_p.bind, [eq_p.bind(code, make_literal(c, _INT32)) for c in codes])


def settled(error: Error, tree: Any) -> list[Any]:
    """The leaves of an error with another structure, which has room for all of its failures."""
    template = _template(tree)
    if not template._metadata:
        return []
    absent = not error._metadata
    leaves = [
        np.asarray(False)[()] if absent else error._pred,
        np.asarray(-1, _INT32)[()] if absent else error._code,
    ]
    for slot in template._payload:
        known = error._payload.get(slot)
        leaves += [full(shape, 0, dtype) for shape, dtype in slot] if known is None else known
    return leaves


@dataclass(frozen=True, slots=True)
class CheckEffect:
    """The effect of a check that `checkify` has not made part of the results.

    Attributes:
        debug: whether the program may be run without it.
    """

    debug: bool

    def __str__(self) -> str:
        return "Check"


class Check(Primitive):
    """Raises an error, if it is one."""

    name = "check"
    multiple_results = True
    has_effects = True
    no_derivative = "it has no results"
    generates_nan = False
    # What can fail would fill a page.
    shown_params: ClassVar[ShownParams] = {"err_tree": never}

    def abstract(self, *avals: Any, err_tree: Any, debug: bool) -> Any:
        return []

    def reference(self, *args: Any, err_tree: Any, debug: bool) -> Any:
        self.evaluate(*args, err_tree=err_tree, debug=debug)
        return []

    def evaluate(self, *args: Any, err_tree: Any, debug: bool) -> Any:
        """What eager evaluation does."""
        if not debug:
            err_tree.unflatten(map(_array, args)).throw()
        return []

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        self.bind(*primals, **params)
        return [], []

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        if not size:
            return [], []
        pred = to_front(args[0], dims[0], size)
        first = argmax(pred, 0, _INT32)
        self.bind(
            *(
                dynamic_index_in_dim(to_front(a, d, size), first, 0, keepdims=False)
                for a, d in zip(args, dims, strict=True)
            ),
            **params,
        )
        return [], []

    def lower(self, context: Any, *values: Any, err_tree: Any, debug: bool) -> list[Any]:
        return [] if debug else _not_functionalized(err_tree)

    def effects(self, *avals: Any, err_tree: Any, debug: bool) -> Effects:
        return frozenset({CheckEffect(debug)})

    def check(self, checks: Any, *args: Any, err_tree: Any, debug: bool) -> Any:
        checks.raised(err_tree.unflatten(map(_array, args)))
        return []


check_p: Final = Check()


def _not_functionalized(tree: Any) -> NoReturn:
    places = dict.fromkeys(f.place for f in _template(tree)._metadata.values())
    raise ValueError(
        f"a check ({', '.join(places)}) is in a compiled function or in the body of a loop or "
        "branch, and a compiled program cannot raise by itself: wrap the function in checkify, as "
        "in error, result = dovetail.jit(checkify.checkify(f))(x), and call error.throw(). Or use "
        "checkify.debug_check, which does nothing without checkify"
    )


def raise_error(error: Error, debug: bool = False) -> None:
    """Raise an error where it is one, or record that it be raised.

    Args:
        error: the error; one of a batch is raised for its first element that failed.
        debug: whether nothing is to happen outside of `checkify`.
    """
    leaves, tree = pytree.flatten(error)
    if not leaves:
        return
    for _ in aval_of(leaves[0]).shape:
        size = aval_of(leaves[0]).shape[0]
        if not size:
            return
        first = argmax(leaves[0].any(tuple(range(1, leaves[0].ndim))), 0, _INT32)
        leaves = [dynamic_index_in_dim(leaf, first, 0, keepdims=False) for leaf in leaves]
    check_p.bind(*leaves, err_tree=tree, debug=debug)


def raise_again(error: Error, debug: bool) -> None:
    """Raise what checks have found, each failure as the function does that found it.

    Args:
        error: the error.
        debug: whether the failures of `checkify.check` are to be seen under `checkify` alone.
    """
    leaves, tree = pytree.flatten(error)
    failures = error._metadata.values()
    for raising in (False, True):
        codes = [f.code for f in failures if (f.raises is not None) is raising]
        if not codes:
            continue
        pred = leaves[0]
        if len(codes) < len(failures):
            pred = and_p.bind(pred, _is_one_of(error._code, codes))
        raises = primitive("debug_check") if raising else check_p
        raises.bind(pred, *leaves[1:], err_tree=tree, debug=debug and not raising)
