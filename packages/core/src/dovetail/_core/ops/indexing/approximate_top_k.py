"""The largest and smallest elements, possibly missing a few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import DTypeError
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import convert_element_type, dtype_name, neg
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import make_aval, shape_of
from dovetail._core.ops.indexing.sorting import INT32, take_along, top_k_p
from dovetail._core.ops.shape.dimensions import canonical_dimension, integers, replaced
from dovetail._core.trace.divisions import Labels, labels_along
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


FLOAT32: Final = np.dtype(np.float32)


class ApproxTopK(Primitive):
    """The largest (or smallest) elements along a dimension, and their positions.

    A backend may miss some of them. This lowering and the reference find all of them, so they
    return exactly `k` even where more would be allowed.
    """

    name = "approx_top_k"
    multiple_results = True
    accepts_zeros = True

    def abstract(
        self,
        x: Any,
        *,
        k: int,
        reduction_dimension: int,
        recall_target: float,
        is_max_k: bool,
        reduction_input_size_override: int,
        aggregate_to_topk: bool,
    ) -> Any:
        if dtypes.kind_of(x.dtype) != "f":
            raise DTypeError(
                f"approx_top_k does not accept dtype {dtype_name(x.dtype)}; it takes floating "
                "point (lax.top_k takes integers too)"
            )
        if not 0 <= reduction_dimension < x.ndim:
            raise ValueError(
                f"approx_top_k: an operand of shape {x.shape} has no reduction_dimension "
                f"{reduction_dimension}"
            )
        size = x.shape[reduction_dimension]
        if not 1 <= k <= size:
            raise ValueError(
                f"approx_top_k: k must be from 1 to the size of dimension {reduction_dimension} of "
                f"an operand of shape {x.shape}, got {k}"
            )
        if not 0 < recall_target <= 1:
            raise ValueError(
                f"approx_top_k: recall_target must be above 0 and at most 1, got {recall_target}"
            )
        if reduction_input_size_override != -1 and reduction_input_size_override < size:
            raise ValueError(
                "approx_top_k: reduction_input_size_override must be at least the size of "
                f"dimension {reduction_dimension} of an operand of shape {x.shape}, or -1, got "
                f"{reduction_input_size_override}"
            )
        dtypes.check_holds(size - 1, INT32, "approx_top_k", "take the last ones of lax.sort")
        shape = replaced(x.shape, reduction_dimension, k)
        return [make_aval(shape, x.dtype, x.weak_type), make_aval(shape, INT32)]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return labels_along(
            avals,
            results,
            params["reduction_dimension"] % avals[0].ndim,
            "looks for the largest along",
        )

    def reference(
        self, x: Any, *, k: int, reduction_dimension: int, is_max_k: bool, **params: Any
    ) -> Any:
        # Negation reverses the order, of NaNs too.
        x = np.asarray(x) if is_max_k else -np.asarray(x)
        values, order = top_k_p.reference(x, k=k, axis=reduction_dimension)
        return [values if is_max_k else -values, order]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        values, order = self.bind(*primals, **params)
        (t,) = tangents
        tangent = Zero.of(values)
        if type(t) is not Zero:
            tangent = take_along(t, order, params["reduction_dimension"])
        return [values, order], [tangent, Zero.of(order)]

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        reduction_dimension: int,
        **params: Any,
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        shifted = reduction_dimension + (reduction_dimension >= d)
        return self.bind(x, reduction_dimension=shifted, **params), [d, d]

    def lower(
        self,
        context: Builder,
        x: Any,
        *,
        k: int,
        reduction_dimension: int,
        is_max_k: bool,
        **params: Any,
    ) -> Any:
        dtype = context.avals_in[0].dtype

        def function(x: Any) -> tuple[Any, Any]:
            # XLA has a fast path for float32, whose order is also that of narrower floats.
            wide = convert_element_type(x, FLOAT32) if dtype.itemsize < 4 else x
            wide = wide if is_max_k else neg(wide)
            values, order = top_k_p.bind(wide, k=k, axis=reduction_dimension)
            return convert_element_type(values if is_max_k else neg(values), dtype), order

        return context.lower_function(function, context.avals_in)(x)


approx_top_k_p: Final = ApproxTopK()


# Public functions


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The largest elements along a dimension, and their positions; a few may be missed.

    A backend may miss a few if that is faster; the others find all.

    Args:
        operand: array of floating point numbers.
        k: how many.
        reduction_dimension: the dimension; negative ones count from the end.
        recall_target: the fraction of them to find, from 0 to 1.
        reduction_input_size_override: if not -1, the number of elements of which these are a part.
            The recall then refers to all of them, and a part has to contribute less.
        aggregate_to_topk: whether to return exactly `k` elements, the largest first. Otherwise
            there may be more, in any order.

    Returns:
        A list of the elements, and their positions as int32. NaN is the largest.

    Raises:
        TypeError: the dtype is not floating point, or `k` is not an integer.
        ValueError: the dimension is out of bounds or has fewer than `k` elements, `k` is less than
            1, `recall_target` is not from 0 to 1, or `reduction_input_size_override` is less than
            the size of the dimension.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> values, positions = lax.approx_max_k(np.array([1, 4, 3], np.float32), 2)
        >>> values.tolist(), positions.tolist()
        ([4.0, 3.0], [1, 2])
    """
    return _approximate(
        "approx_max_k",
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
    )


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The smallest elements along a dimension, and their positions; a few may be missed.

    A backend may miss a few if that is faster; the others find all.

    Args:
        operand: array of floating point numbers.
        k: how many.
        reduction_dimension: the dimension; negative ones count from the end.
        recall_target: the fraction of them to find, from 0 to 1.
        reduction_input_size_override: if not -1, the number of elements of which these are a part.
            The recall then refers to all of them, and a part has to contribute less.
        aggregate_to_topk: whether to return exactly `k` elements, the smallest first. Otherwise
            there may be more, in any order.

    Returns:
        A list of the elements, and their positions as int32. NaN is the largest.

    Raises:
        TypeError: the dtype is not floating point, or `k` is not an integer.
        ValueError: the dimension is out of bounds or has fewer than `k` elements, `k` is less than
            1, `recall_target` is not from 0 to 1, or `reduction_input_size_override` is less than
            the size of the dimension.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> values, positions = lax.approx_min_k(np.array([1, 4, 3], np.float32), 2)
        >>> values.tolist(), positions.tolist()
        ([1.0, 3.0], [0, 2])
    """
    return _approximate(
        "approx_min_k",
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
    )


def _approximate(
    function: str,
    operand: Any,
    k: Any,
    reduction_dimension: Any,
    recall_target: Any,
    reduction_input_size_override: Any,
    aggregate_to_topk: Any,
) -> list[Array]:
    x = as_operand(operand, f"lax.{function}", "operand")
    (count,) = integers((k,), function, "k")
    (total,) = integers((reduction_input_size_override,), function, "reduction_input_size_override")
    try:
        recall = float(recall_target)
    except (TypeError, ValueError):
        raise TypeError(
            f"lax.{function}: recall_target must be a number, got {recall_target!r:.80}"
        ) from None
    return list(
        approx_top_k_p.bind(
            x,
            aggregate_to_topk=bool(aggregate_to_topk),
            is_max_k=function == "approx_max_k",
            k=count,
            recall_target=recall,
            reduction_dimension=canonical_dimension(
                reduction_dimension, len(shape_of(x)), function, "reduction_dimension"
            ),
            reduction_input_size_override=total,
        )
    )
