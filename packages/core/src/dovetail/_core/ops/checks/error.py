"""The error value by which programs report failed checks, and the primitive that raises it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, ClassVar, Final, NoReturn

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.node_types import register_pytree_node_class
from dovetail._core.base.records import record
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
from dovetail._core.ops.shape import creation
from dovetail._core.trace.divisions import Labels, gathered_labels
from dovetail._core.trace.primitive import Primitive, primitive
from dovetail._core.trace.tracer import Tracer

#: Shapes and dtypes of the values that are recorded with a failure.
Slot = tuple[tuple[tuple[int, ...], Any], ...]

_INT32: Final = np.dtype(np.int32)


@register_pytree_node_class
class Error:
    """Whether a check of a program failed, and which one, as a tree of arrays.

    Functions under `checkify` return it. It can be returned from compiled functions, batched, and
    carried through loops. Programs with the same kinds of errors return trees of equal structure.

    Args:
        _pred: a bool array: whether a check failed.
        _code: an int32 array: the code of the failed check.
        _metadata: the possible failures, by code.
        _payload: the values recorded with a failure, by their shapes and dtypes.
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
        """The arrays as children, the possible failures as static data."""
        if not self._metadata:
            return (), ((), ())
        values = [value for values in self._payload.values() for value in values]
        return (
            (self._pred, self._code, *values),
            (tuple(self._metadata.items()), tuple(self._payload)),
        )

    @classmethod
    def tree_unflatten(cls, static_data: Any, children: Iterable[Any]) -> Error:
        """The inverse of `tree_flatten`."""
        metadata, slots = static_data
        if not metadata:
            return cls(False, -1, {}, {})
        pred, code, *values = children
        rest = iter(values)
        payload = {slot: tuple([next(rest) for _ in slot]) for slot in slots}
        return cls(pred, code, dict(metadata), payload)

    def get_exception(self) -> JaxException | None:
        """The exception that describes the failure, or None if no check failed.

        Returns:
            An exception whose type is the category of the error. For a batch of errors, it holds
            the exceptions of all elements that failed.

        Raises:
            TracerArrayConversionError: the error is a tracer; return it from the compiled function
                and call this outside.
        """
        if not self._metadata:
            return None
        failed = np.asarray(self._pred)
        if not failed.any():
            return None
        codes = np.asarray(self._code)
        payload = {
            slot: [
                value if dtypes.is_extended(value.dtype) else np.asarray(value) for value in values
            ]
            for slot, values in self._payload.items()
        }
        errors = {}
        for index in map(tuple, np.argwhere(failed).tolist()):
            failure = self._metadata[int(codes[index])]
            values = [value[index] for value in payload[slot_of(failure)]]
            errors[index] = failure.exception(values)
        return errors[()] if () in errors else BatchedError(errors)

    def get(self) -> str | None:
        """The message of the failure, or None if no check failed.

        Example:
            >>> from dovetail.experimental import checkify
            >>> error, _ = checkify.checkify(lambda: checkify.check(1 > 2, "no"))()
            >>> error.get()[:11]
            'no (`check`'
        """
        exception = self.get_exception()
        return None if exception is None else str(exception)

    def throw(self) -> None:
        """Raise if a check failed; in a traced function, record a check that fails like this one.

        Raises:
            JaxRuntimeError: a check failed; for `dovetail.debug.check`, its own exception type.
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
    """The slot of the payload for the values of a failure."""
    return tuple([(aval.shape, aval.dtype) for aval in failure.avals])


def single(failed: Any, failure: Failure, values: Sequence[Any]) -> Error:
    """The error of one check.

    Args:
        failed: a scalar bool: whether it fails.
        failure: the kind of failure.
        values: the values to record.
    """
    code = failure.code
    recorded = tuple([_array(stop_gradient(value)) for value in values])
    number = np.asarray(code, _INT32)[()]
    return Error(_array(failed), number, {code: failure}, {slot_of(failure): recorded})


def _array(value: Any) -> Any:
    return np.asarray(value.val, value.aval.dtype)[()] if type(value) is Literal else value


def merged(first: Error, second: Error) -> Error:
    """The first of two errors that failed, if any."""
    if not second._metadata:
        return first
    if not first._metadata:
        return second
    failed = first._pred

    def chosen(before: Any, after: Any) -> Any:
        return select_n_p.bind(failed, after, before)

    payload = dict(first._payload)
    for slot, values in second._payload.items():
        present = payload.get(slot)
        payload[slot] = values if present is None else tuple(map(chosen, present, values))
    return Error(
        or_p.bind(failed, second._pred),
        chosen(first._code, second._code),
        first._metadata | second._metadata,
        payload,
    )


def union(trees: Iterable[Any]) -> Any:
    """The structure of errors that can hold errors of any of these structures."""
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
    """The avals of the leaves of an error with that structure."""
    template = _template(tree)
    if not template._metadata:
        return []
    slots = [make_aval(*part) for slot in template._payload for part in slot]
    return [make_aval((), np.dtype(bool)), make_aval((), _INT32), *slots]


def within(error: Error, tree: Any) -> Error:
    """An error without the failures that another structure has no room for."""
    room = _template(tree)._metadata
    codes = error._metadata.keys() & room.keys()
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
    """The leaves of an error in another structure, which has room for all its failures."""
    template = _template(tree)
    if not template._metadata:
        return []
    absent = not error._metadata
    leaves = [
        np.asarray(False)[()] if absent else error._pred,
        np.asarray(-1, _INT32)[()] if absent else error._code,
    ]
    for slot in template._payload:
        recorded = error._payload.get(slot)
        leaves += [_zeros(*part) for part in slot] if recorded is None else recorded
    return leaves


def _zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    if dtypes.is_extended(dtype):
        return creation.full(shape, np.zeros((), dtype.physical(())[1]), dtype)
    return full(shape, 0, dtype)


@record
class CheckEffect:
    """The effect of a check that `checkify` has not turned into a result.

    Attributes:
        debug: whether the program may run without the check.
    """

    debug: bool

    def __str__(self) -> str:
        return "Check"


class Check(Primitive):
    """Raises an error if a check failed."""

    name = "check"
    multiple_results = True
    has_effects = True
    no_derivative = "it has no results"
    generates_nan = False
    # The list of possible failures would fill a page.
    shown_params: ClassVar[ShownParams] = {"err_tree": never}

    def abstract(self, *avals: Any, err_tree: Any, debug: bool) -> Any:
        return []

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return gathered_labels(avals, results)

    def reference(self, *args: Any, err_tree: Any, debug: bool) -> Any:
        self.evaluate(*args, err_tree=err_tree, debug=debug)
        return []

    def evaluate(self, *args: Any, err_tree: Any, debug: bool) -> Any:
        """Raise at once, outside compiled programs."""
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
        checks.record_raised(err_tree.unflatten(map(_array, args)))
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
    """Raise an error if a check failed, or record an operation that does so.

    Args:
        error: the error; of a batch, that of the first failed element is raised.
        debug: whether to do nothing outside `checkify`.
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
    """Raise failures that checks found, each like the function that found it.

    Args:
        error: the error.
        debug: whether failures of `checkify.check` are reported only under `checkify`.
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
