"""Convolutions of BCOO arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

import dovetail as dt
from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo_layouts import relaid, transposed
from dovetail.experimental.sparse.bcoo_order import fitted
from dovetail.experimental.sparse.bcoo_products import all_positions, result_dtype
from dovetail.experimental.sparse.bcoo_shapes import with_columns
from dovetail.experimental.sparse.coordinates import Coordinates
from dovetail.experimental.sparse.entries import masked
from dovetail.extend import ShapedArray
from dovetail.extend.arguments import array_like, value
from dovetail.extend.avals import aval_of
from dovetail.typing import ArrayLike, DTypeLike, Sharding

C = TypeVar("C", bound=Coordinates)


def bcoo_conv_general_dilated(
    lhs: C | ArrayLike,
    rhs: C | ArrayLike,
    *,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> C:
    """`lax.conv_general_dilated` of arrays of which one or both are BCOO arrays.

    Each stored element of one operand meets each of the other, so it is for kernels that have few.

    Args:
        lhs: a BCOO array or a dense one.
        rhs: a BCOO array or a dense one, the kernel.
        window_strides: as of `lax.conv_general_dilated`, as are those that follow.
        padding: a name, or a pair for each spatial dimension.
        lhs_dilation: how far elements of `lhs` are apart.
        rhs_dilation: how far elements of `rhs` are apart.
        dimension_numbers: which dimensions are which.
        feature_group_count: number of groups of features.
        batch_group_count: number of groups of the batch.
        precision: must be None.
        preferred_element_type: dtype of the result.
        out_sharding: must be None.

    Returns:
        A BCOO array without batch or dense dimensions.

    Raises:
        NotImplementedError: `precision` or `out_sharding` is given.

    Differs:
        There may be any number of spatial dimensions, features and groups; in JAX one each.

        >>> from dovetail.experimental import sparse
        >>> image = sparse.BCOO.fromdense(jnp.eye(3)[None, None])
        >>> sparse.bcoo_conv_general_dilated(
        ...     image, jnp.ones((1, 1, 2, 2)), window_strides=(1, 1), padding="VALID"
        ... ).todense()[0, 0].tolist()
        [[2.0, 1.0], [1.0, 2.0]]

    Example:
        >>> from dovetail.experimental import sparse
        >>> image = sparse.BCOO.fromdense(jnp.array([[[0.0, 1.0, 0.0, 2.0]]]))
        >>> sparse.bcoo_conv_general_dilated(
        ...     image, jnp.ones((1, 1, 2)), window_strides=(1,), padding="VALID"
        ... ).todense()
        Array([[[1., 1., 2.]]], dtype=float32)
    """
    what = "bcoo_conv_general_dilated"
    for name, given in (("precision", precision), ("out_sharding", out_sharding)):
        if given is not None:
            raise NotImplementedError(f"{what}: {name} must be None")
    sparse = lhs if isinstance(lhs, Coordinates) else rhs
    if not isinstance(sparse, Coordinates):
        raise TypeError(f"{what} requires lhs or rhs to be a BCOO array")
    image, kernel = (_stored(sparse, x, what, n) for x, n in ((lhs, "lhs"), (rhs, "rhs")))
    struct = [ShapedArray(x.shape, np.dtype(np.float32)) for x in (image, kernel)]
    rank = len(image.shape) - 2
    numbers = lax.conv_dimension_numbers(image.shape, kernel.shape, dimension_numbers)
    strides = tuple(window_strides)
    spread = tuple(lhs_dilation or (1,) * rank)
    widened = tuple(rhs_dilation or (1,) * rank)
    shape = _result_shape(
        struct, strides, padding, spread, widened, numbers, feature_group_count, batch_group_count
    )
    image = transposed(image, tuple(numbers.lhs_spec))
    kernel = transposed(kernel, tuple(numbers.rhs_spec))
    pads = _paddings(padding, image.shape[2:], kernel.shape[2:], strides, spread, widened)
    dtype = result_dtype(what, _dtype(lhs), _dtype(rhs), preferred_element_type)

    pairs = (image.nse, kernel.nse)
    a = [jnp.broadcast_to(image.indices[:, None, i], pairs) for i in range(rank + 2)]
    b = [jnp.broadcast_to(kernel.indices[None, :, i], pairs) for i in range(rank + 2)]
    used = image.used[:, None] & kernel.used[None, :]
    features = kernel.shape[0]
    batch, feature = a[0], b[0]
    # Features of one group meet kernels of that group.
    group = feature // (features // feature_group_count)
    used &= a[1] == group * kernel.shape[1] + b[1]
    if batch_group_count > 1:
        size = image.shape[0] // batch_group_count
        used &= batch // size == feature // (features // batch_group_count)
        batch = batch % size
    columns = [batch, feature]
    for i in range(rank):
        place = a[i + 2] * spread[i] + pads[i][0] - b[i + 2] * widened[i]
        used &= place % strides[i] == 0
        columns.append(place // strides[i])
    ordered = tuple(shape[d] for d in numbers.out_spec)
    for column, size in zip(columns, ordered, strict=True):
        used &= (column >= 0) & (column < size)
    left, right = masked(image.data, image.used), masked(kernel.data, kernel.used)
    data = left[:, None].astype(dtype) * right[None, :].astype(dtype)
    total = math.prod(pairs)
    flat = image.like(data.reshape(total), jnp.zeros((total, 0), np.int32), ordered)
    result = with_columns(
        flat, [c.reshape(total) for c in columns], ordered, ordered, used.reshape(total)
    )
    return fitted(transposed(result, tuple(int(d) for d in np.argsort(numbers.out_spec))))


def _dtype(x: Any) -> Any:
    """The dtype of an operand."""
    return x.dtype if isinstance(x, Coordinates) else aval_of(x).dtype


def _stored(like: Any, x: Any, what: str, name: str) -> Any:
    """An operand with a place for each of its elements and no batch or dense dimensions."""
    if isinstance(x, Coordinates):
        return relaid(x, 0, 0)
    dense = value(array_like(x, what, name))
    indices = all_positions(dense.shape, 0, np.dtype(np.int32))
    return like.like(dense.reshape(dense.size), indices, dense.shape)


def _result_shape(
    avals: Sequence[Any],
    strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    numbers: Any,
    feature_groups: int,
    batch_groups: int,
) -> tuple[int, ...]:
    """The shape of the dense convolution, which checks the arguments."""
    result = dt.eval_shape(
        lambda x, y: lax.conv_general_dilated(
            x,
            y,
            strides,
            padding,
            lhs_dilation,
            rhs_dilation,
            numbers,
            feature_groups,
            batch_groups,
        ),
        *(dt.ShapeDtypeStruct(a.shape, a.dtype) for a in avals),
    )
    shape: tuple[int, ...] = result.shape
    return shape


def _paddings(
    padding: Any,
    image: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
) -> Sequence[tuple[int, int]]:
    if not isinstance(padding, str):
        return tuple(padding)
    spread = [max((n - 1) * d + 1, 0) for n, d in zip(image, lhs_dilation, strict=True)]
    window = [max((n - 1) * d + 1, 0) for n, d in zip(kernel, rhs_dilation, strict=True)]
    return lax.padtype_to_pads(spread, window, strides, padding)
