"""Choosing between arrays, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.operands import as_operand, equal_dtypes
from dovetail._core.basis.structural import (
    batch_size,
    broadcast_in_dim,
    full,
    instantiate_zeros,
    is_linear,
    to_front,
)
from dovetail._core.ir.avals import make_aval, shape_of
from dovetail._core.trace.divisions import Labels, divided_alike
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


def _chooses(dtype: Any) -> bool:
    return dtypes.kind_of(dtype) in ("b", "i", "u")


class SelectN(Primitive):
    """Each element from one of several cases, selected by the first operand."""

    name = "select_n"
    linear_in: ClassVar[Sequence[slice]] = (slice(1, None),)
    accepts_zeros = True
    generates_nan = False

    def abstract(self, which: Any, *cases: Any) -> Any:
        if not cases:
            raise ValueError("select_n needs at least one case")
        first = cases[0]
        if any(c.shape != first.shape for c in cases):
            raise TypeError(
                f"select_n: cases must have one shape, got {', '.join(str(c.shape) for c in cases)}"
            )
        if any(c.dtype != first.dtype for c in cases):
            raise TypeError(
                "select_n: cases must have one dtype, got "
                f"{', '.join(dtype_name(c.dtype) for c in cases)}"
            )
        if which.shape not in ((), first.shape):
            raise TypeError(
                f"select_n: which must be a scalar or of the shape {first.shape} of the cases, "
                f"got the shape {which.shape}"
            )
        if not _chooses(which.dtype):
            raise TypeError(
                f"select_n: which must be boolean or an integer, got {dtype_name(which.dtype)}"
            )
        if which.dtype == np.bool_ and len(cases) > 2:
            raise TypeError(
                f"select_n: a which of dtype bool chooses between two cases, got {len(cases)}; "
                "use integers"
            )
        return make_aval(first.shape, first.dtype, all(c.weak_type for c in cases))

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def reference(self, which: Any, *cases: Any) -> Any:
        index = np.clip(np.broadcast_to(which, np.shape(cases[0])), 0, len(cases) - 1)
        out = np.array(cases[0])
        for number, case in enumerate(cases):
            out = np.where(index == number, case, out)
        return out

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        moving = tangents[1:]
        if all(type(t) is Zero for t in moving):
            return out, Zero.of(out)
        return out, self.bind(primals[0], *map(instantiate_zeros, moving))

    def transpose(self, ct: Any, which: Any, *cases: Any) -> Sequence[Any]:
        zeros = full(ct.shape, 0, ct.dtype)
        return (
            None,
            *(
                self.bind(which, *(ct if j == i else zeros for j in range(len(cases))))
                if is_linear(case)
                else None
                for i, case in enumerate(cases)
            ),
        )

    def batch(self, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, Any]:
        which, *cases = args
        first, *others = dims
        if all(d == others[0] for d in others) and others[0] is not None:
            scalar = first is None and not shape_of(which)
            if scalar or (first == others[0] and shape_of(which) == shape_of(cases[0])):
                return self.bind(*args), others[0]
        size = batch_size(args, dims)
        cases = [to_front(c, d, size) for c, d in zip(cases, others, strict=True)]
        shape = shape_of(cases[0])
        if first is not None or shape_of(which):
            which = to_front(which, first, size)
            if shape_of(which) != shape:
                which = broadcast_in_dim(which, shape, (0,))
        return self.bind(which, *cases), 0

    def lower(self, context: Builder, which: Any, *cases: Any) -> Any:
        predicate = context.avals_in[0]
        (out,) = context.avals_out
        highest = 1 if predicate.dtype == np.bool_ else int(dtypes.iinfo(predicate.dtype).max)

        def choose(start: int, stop: int) -> Any:
            if stop - start == 1:
                return cases[start]
            middle = (start + stop) // 2
            if middle > highest:
                return choose(start, middle)
            bound = context.constant(middle, predicate)
            less = context.compare(which, bound, "LT", predicate)
            return context.select(less, choose(start, middle), choose(middle, stop), out)

        if predicate.dtype == np.bool_ and len(cases) == 2:
            return context.select(which, cases[1], cases[0], out)
        return choose(0, len(cases)) if predicate.dtype != np.bool_ else cases[0]


select_n_p: Final = SelectN()


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Each element from one of several arrays.

    Args:
        which: which case to take: booleans (for at most two cases) or integers; a scalar, or of
            the shape of the cases. Integers out of range select the nearest case.
        *cases: arrays of one shape and dtype.

    Returns:
        An array of the shape and dtype of the cases.

    Raises:
        TypeError: shapes or dtypes differ, or `which` has another dtype.
        ValueError: there are no cases.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.select_n(np.array([True, False]), np.array([1, 2]), np.array([3, 4])).tolist()
        [3, 2]
    """
    if not cases:
        raise ValueError("lax.select_n needs at least one case")
    return select_n_p.bind(
        as_operand(which, "lax.select_n", "which"), *equal_dtypes("select_n", *cases)
    )


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where `pred` is true, else `on_false`.

    Unlike `dovetail.numpy.where` it neither broadcasts nor promotes.

    Args:
        pred: booleans, or integers, of which those above zero are true; a scalar, or of the shape
            of the others.
        on_true: any array.
        on_false: an array of the same shape and dtype.

    Returns:
        An array of the shape and dtype of `on_true`.

    Raises:
        TypeError: shapes or dtypes differ.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.select(np.array([True, False]), np.array([1, 2]), np.array([3, 4])).tolist()
        [1, 4]
    """
    pred = as_operand(pred, "lax.select", "pred")
    if not _chooses(dtypes.dtype_of(pred)):
        raise TypeError(f"lax.select: pred must be boolean, got {dtypes.dtype_of(pred)}")
    return select_n_p.bind(pred, *equal_dtypes("select", on_false, on_true))
