"""The public convolution functions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike, DTypeLike, Sharding
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import convert_element_type, mul
from dovetail._core.basis.operands import as_operand, make_literal
from dovetail._core.basis.structural import move_dimension, reshape, transpose
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ops.calls.out_sharding import divided
from dovetail._core.ops.contraction.dot_general import (
    PrecisionLike,
    canonical_precision,
    dot_general,
)
from dovetail._core.ops.indexing.gather import (
    GatherDimensionNumbers,
    GatherScatterMode,
    gather_slices,
)
from dovetail._core.ops.shape.creation import iota_p
from dovetail._core.ops.shape.dimensions import integer
from dovetail._core.ops.shape.joining import stack_p
from dovetail._core.ops.shape.padding import dilated_size
from dovetail._core.ops.shape.reshaping import reverse
from dovetail._core.ops.shape.slicing import pad_with, slice_dimension
from dovetail._core.ops.windows.convolution import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_general_dilated_p,
    in_places,
    result_dtype,
    spatial_sizes,
)
from dovetail._core.ops.windows.convolution_dimensions import (
    dimension_numbers_of,
    entries,
    sizes_of,
    spatial_pads,
    transposed_pads,
)

Shape = tuple[int, ...]

_INT32: Final = np.dtype(np.int32)

#: Windows of up to this many elements are sliced one by one.
_FEW_PLACES: Final = 8


def _convolution(
    function: str,
    lhs: Any,
    rhs: Any,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any = None,
    rhs_dilation: Any = None,
    dimension_numbers: Any = None,
    feature_group_count: Any = 1,
    batch_group_count: Any = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """`conv_general_dilated`, on behalf of the public `function`."""
    lhs = as_operand(lhs, f"lax.{function}", "lhs")
    rhs = as_operand(rhs, f"lax.{function}", "rhs")
    x, y = shape_of(lhs), shape_of(rhs)
    numbers = dimension_numbers_of(x, y, dimension_numbers, function)
    sizes, kernel = sizes_of(x, numbers.lhs_spec[2:]), sizes_of(y, numbers.rhs_spec[2:])
    rank = len(sizes)
    strides = entries(window_strides, rank, function, "window_strides")
    spread = entries(lhs_dilation, rank, function, "lhs_dilation", optional=True)
    wide = entries(rhs_dilation, rank, function, "rhs_dilation", optional=True)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.check_user_dtype(preferred_element_type, f"lax.{function}")
    return conv_general_dilated_p.bind(
        lhs,
        rhs,
        batch_group_count=integer(batch_group_count, function, "batch_group_count"),
        dimension_numbers=numbers,
        feature_group_count=integer(feature_group_count, function, "feature_group_count"),
        lhs_dilation=spread,
        out_sharding=None,
        padding=spatial_pads(padding, sizes, kernel, strides, spread, wide, function),
        precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type,
        rhs_dilation=wide,
        window_strides=strides,
    )


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Convolution in any number of dimensions, as in neural networks.

    The kernel is not reversed: mathematically, this is a cross-correlation. Element ``[n, o, p]``
    of the result is the sum over features i and kernel positions k of ``lhs[n, i, p *
    window_strides + k * rhs_dilation] * rhs[o, i, k]``, where lhs has been dilated, then padded
    with zeros.

    Args:
        lhs: the input, with dimensions for batch, features and space.
        rhs: the kernel, with dimensions for output features, input features and space, and the
            dtype of `lhs`.
        window_strides: a stride for each spatial dimension.
        padding: ``"VALID"``, ``"SAME"`` or ``"SAME_LOWER"`` (see `padtype_to_pads`), or a pair
            (low, high) for each spatial dimension; negative values crop.
        lhs_dilation: for each spatial dimension, ``d - 1`` zeros are inserted between elements of
            the input; None for 1.
        rhs_dilation: the same for the kernel.
        dimension_numbers: the roles of dimensions: None for (batch, features, *spatial) and (output
            features, input features, *spatial); or three strings, for `lhs`, `rhs` and the result,
            such as ``("NHWC", "HWIO", "NHWC")``, with other letters for spatial dimensions; or a
            `ConvDimensionNumbers`.
        feature_group_count: the number of groups into which input and output features are divided;
            each output feature sees only its own group. `rhs` has the input features of one group.
            With as many groups as features, this is a depthwise convolution.
        batch_group_count: the same for the batch of the input; the batch size of the result is
            divided by it.
        precision: None, a `Precision` or its name, or one for each operand.
        preferred_element_type: dtype of the sums and of the result.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array with dimensions for batch, output features and space.

    Raises:
        TypeError: ranks or dtypes are incompatible, or an argument is of the wrong kind.
        ValueError: sizes, groups or numbers of spatial dimensions are incompatible.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> x, kernel = np.arange(5.0).reshape(1, 1, 5), np.ones((1, 1, 2))
        >>> lax.conv_general_dilated(x, kernel, (1,), "VALID").tolist()
        [[[1.0, 3.0, 5.0, 7.0]]]
    """
    return divided(
        "lax.conv_general_dilated",
        out_sharding,
        lambda: _convolution(
            "conv_general_dilated",
            lhs,
            rhs,
            window_strides,
            padding,
            lhs_dilation,
            rhs_dilation,
            dimension_numbers,
            feature_group_count,
            batch_group_count,
            precision,
            preferred_element_type,
        ),
    )


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """`conv_general_dilated` without dilation or groups.

    Args:
        lhs: the input, with dimensions (batch, features, *spatial).
        rhs: the kernel, with dimensions (output features, input features, *spatial).
        window_strides: a stride for each spatial dimension.
        padding: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"`` or pairs (low, high).
        precision: None, a `Precision` or its name, or one for each operand.
        preferred_element_type: dtype of the sums and of the result.

    Returns:
        An array with dimensions (batch, output features, *spatial).

    Raises:
        TypeError: ranks or dtypes are incompatible, or an argument is of the wrong kind.
        ValueError: sizes or numbers of spatial dimensions are incompatible.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.conv(np.ones((1, 3, 5, 5)), np.ones((2, 3, 3, 3)), (1, 1), "SAME").shape
        (1, 2, 5, 5)
    """
    return _convolution(
        "conv",
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """`conv_general_dilated` without groups.

    Args:
        lhs: the input, with dimensions (batch, features, *spatial).
        rhs: the kernel, with dimensions (output features, input features, *spatial).
        window_strides: a stride for each spatial dimension.
        padding: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"`` or pairs (low, high).
        lhs_dilation: ``d - 1`` zeros are inserted between elements of the input; None for 1.
        rhs_dilation: the same for the kernel.
        precision: None, a `Precision` or its name, or one for each operand.
        preferred_element_type: dtype of the sums and of the result.

    Returns:
        An array with dimensions (batch, output features, *spatial).

    Raises:
        TypeError: ranks or dtypes are incompatible, or an argument is of the wrong kind.
        ValueError: sizes or numbers of spatial dimensions are incompatible.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> x, kernel = np.arange(5.0).reshape(1, 1, 5), np.ones((1, 1, 2))
        >>> lax.conv_with_general_padding(x, kernel, (1,), ((1, 0),), None, (2,)).tolist()
        [[[1.0, 2.0, 4.0, 6.0]]]
    """
    return _convolution(
        "conv_with_general_padding",
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Transposed convolution, which enlarges an input by its strides.

    It is the gradient of a convolution with respect to its input, also called fractionally strided
    convolution, except that the kernel is not reversed without `transpose_kernel`.

    Args:
        lhs: the input.
        rhs: the kernel, of the dtype of `lhs`.
        strides: the factor by which each spatial dimension grows.
        padding: ``"SAME"`` for a result that is `strides` times as large as the input. ``"VALID"``
            for one that a convolution without padding would reduce to the size of the input. Or a
            pair (low, high) for each spatial dimension, see `use_consistent_padding`.
        rhs_dilation: ``d - 1`` zeros are inserted between elements of the kernel; None for 1.
        dimension_numbers: as for `conv_general_dilated`; None for (batch, *spatial, features) and
            (*spatial, input features, output features).
        transpose_kernel: whether to reverse the kernel in space and swap its input and output
            features, for the gradient of the convolution with that kernel.
        precision: None, a `Precision` or its name, or one for each operand.
        preferred_element_type: dtype of the sums and of the result.
        use_consistent_padding: what pairs in `padding` mean: if true, the padding of the forward
            convolution, as for the names; if false, the padding of the dilated input.

    Returns:
        An array with dimensions for batch, output features and space.

    Raises:
        TypeError: ranks or dtypes are incompatible, or an argument is of the wrong kind.
        ValueError: sizes or numbers of spatial dimensions are incompatible, or `padding` is an
            unknown name.

    Differs:
        ``"same"`` and ``"valid"`` mean the same in any case, where JAX takes lower case for
        something else; ``"SAME_LOWER"`` is refused. An unknown padding is a ValueError, a badly
        formed one a TypeError.

        >>> x, k = jnp.ones((1, 3, 1)), jnp.ones((2, 1, 1))
        >>> a, b = (lax.conv_transpose(x, k, (2,), p) for p in ("same", "SAME"))
        >>> print(a.shape == b.shape)
        True

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> x, kernel = np.arange(3.0).reshape(1, 3, 1), np.ones((2, 1, 1))
        >>> lax.conv_transpose(x, kernel, (2,), "SAME").ravel().tolist()
        [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    """
    function = "conv_transpose"
    lhs = as_operand(lhs, f"lax.{function}", "lhs")
    rhs = as_operand(rhs, f"lax.{function}", "rhs")
    x, y = shape_of(lhs), shape_of(rhs)
    numbers = dimension_numbers_of(x, y, dimension_numbers, function)
    if dimension_numbers is None:
        last, places = len(x) - 1, tuple(range(len(x) - 2))
        channels_last = (0, last, *[d + 1 for d in places])
        numbers = ConvDimensionNumbers(channels_last, (last, last - 1, *places), channels_last)
    o, i, *places_of_rhs = numbers.rhs_spec
    rank = len(places_of_rhs)
    steps = entries(strides, rank, function, "strides")
    wide = entries(rhs_dilation, rank, function, "rhs_dilation", optional=True)
    kernel = tuple([dilated_size(y[d], by) for d, by in zip(places_of_rhs, wide, strict=True)])
    if transpose_kernel:
        order = list(range(len(y)))
        order[o], order[i] = i, o
        rhs = transpose(reverse(rhs, tuple(places_of_rhs)), tuple(order))
    return _convolution(
        function,
        lhs,
        rhs,
        (1,) * rank,
        transposed_pads(padding, kernel, steps, use_consistent_padding, function),
        steps,
        wide,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The windows of an input that a kernel of some shape would be multiplied with.

    Elements are copied, never multiplied: NaN and infinities do not spread.

    Args:
        lhs: the input, as for `conv_general_dilated`.
        filter_shape: the sizes of the kernel in the spatial dimensions.
        window_strides: a stride for each spatial dimension.
        padding: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"`` or pairs (low, high).
        lhs_dilation: ``d - 1`` zeros are inserted between elements of the input; None for 1.
        rhs_dilation: the same for the kernel.
        dimension_numbers: as for `conv_general_dilated`; the second part only sets the order of
            spatial dimensions, which is that of `filter_shape`.
        precision: None, a `Precision` or its name, or one for each operand; has no effect.
        preferred_element_type: dtype of the result.

    Returns:
        An array like the result of `conv_general_dilated`. For each feature of `lhs`, its features
        hold the elements of the window in row-major order.

    Raises:
        TypeError: ranks are incompatible, or an argument is of the wrong kind.
        ValueError: numbers of spatial dimensions are incompatible.

    Differs:
        Elements are copied, so that nan and infinities stay in their places.

        >>> x = jnp.array([[[1.0, jnp.inf, 2.0]]])
        >>> print(lax.conv_general_dilated_patches(x, (1,), (1,), "valid"))
        [[[ 1. inf  2.]]]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> x = np.arange(4.0).reshape(1, 1, 4)
        >>> lax.conv_general_dilated_patches(x, (2,), (1,), "VALID").tolist()
        [[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]]
    """
    return _patches(
        "conv_general_dilated_patches",
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
        precision,
        preferred_element_type,
    )


def _patches(
    function: str,
    lhs: Any,
    filter_shape: Any,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: Any = None,
) -> Any:
    """`conv_general_dilated_patches`, on behalf of the public `function`."""
    lhs = as_operand(lhs, f"lax.{function}", "lhs")
    shape = shape_of(lhs)
    # A kernel has as many dimensions as the input, whatever its number of features.
    numbers = dimension_numbers_of(shape, shape, dimension_numbers, function)
    batch, features, *sizes = sizes_of(shape, numbers.lhs_spec)
    rank = len(sizes)
    kernel = entries(filter_shape, rank, function, "filter_shape")
    strides = entries(window_strides, rank, function, "window_strides")
    spread = entries(lhs_dilation, rank, function, "lhs_dilation", optional=True)
    wide = entries(rhs_dilation, rank, function, "rhs_dilation", optional=True)
    pads = spatial_pads(padding, tuple(sizes), kernel, strides, spread, wide, function)
    counts = spatial_sizes(f"lax.{function}", tuple(sizes), kernel, strides, pads, spread, wide)
    canonical_precision(precision)
    aval = aval_of(lhs)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.check_user_dtype(preferred_element_type, f"lax.{function}")
    dtype, _ = result_dtype(aval, aval, preferred_element_type)
    x = convert_element_type(lhs, dtype)
    _, c, *places = numbers.out_spec
    out = in_places(numbers.out_spec, (batch, features * prod(kernel), *counts))
    if not all(out):
        return structural.full(out, 0, aval_of(x).dtype)
    x = transpose(x, in_places(numbers.out_spec, numbers.lhs_spec))
    between = [(*pad, by - 1) for pad, by in zip(pads, spread, strict=True)]
    edges = in_places(numbers.out_spec, ((0, 0, 0), (0, 0, 0), *between))
    x = pad_with(x, make_literal(0, aval_of(x).dtype), edges)
    for d, (k, count, stride, by) in enumerate(zip(kernel, counts, strides, wide, strict=True)):
        # The positions in a window become a dimension after the features and earlier positions.
        dimension = places[d] + d * (places[d] > c)
        x = _windows(x, dimension, c + 1 + d, k, count, stride, by)
    return reshape(x, out)


def _windows(
    x: Any, dimension: int, place: int, size: int, count: int, stride: int, dilation: int
) -> Any:
    """`x` with windows along a dimension, and a new dimension for the positions in a window.

    Args:
        x: an array.
        dimension: the dimension along which windows are taken.
        place: the position of the new dimension in the result.
        size: the number of positions in a window.
        count: the number of windows.
        stride: the distance between windows.
        dilation: the distance between positions in a window.
    """
    if size <= _FEW_PLACES:
        reach = (count - 1) * stride + 1
        starts = [k * dilation for k in range(size)]
        parts = [slice_dimension(x, s, s + reach, dimension, stride) for s in starts]
        return stack_p.bind(*parts, axis=place)
    shape, reach = shape_of(x), dilated_size(size, dilation)
    places, windows = dimension, dimension + 1
    if place > dimension:
        places, windows = windows, places
    numbers = iota_p.bind(dimension=0, dtype=_INT32, shape=(count, 1), sharding=None)
    x = gather_slices(
        x,
        mul(numbers, make_literal(stride, _INT32)),
        GatherDimensionNumbers(
            offset_dims=tuple([d for d in range(len(shape) + 1) if d != windows]),
            collapsed_slice_dims=(),
            start_index_map=(dimension,),
        ),
        (*shape[:dimension], reach, *shape[dimension + 1 :]),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        indices_are_sorted=True,
        unique_indices=stride >= reach,
    )
    return move_dimension(slice_dimension(x, 0, reach, places, dilation), places, place)


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """Convolution with a different kernel at each position of the result.

    Args:
        lhs: the input, as for `conv_general_dilated`.
        rhs: the kernels. The dimension of input features holds, for each feature of `lhs`, the
            elements of a window in row-major order; the spatial dimensions are those of the result.
        window_strides: a stride for each spatial dimension.
        padding: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"`` or pairs (low, high).
        filter_shape: the sizes of a kernel in the spatial dimensions.
        lhs_dilation: ``d - 1`` zeros are inserted between elements of the input; None for 1.
        rhs_dilation: the same for the kernels.
        dimension_numbers: as for `conv_general_dilated`.
        precision: None, a `Precision` or its name, or one for each operand.

    Returns:
        An array like the result of `conv_general_dilated`.

    Raises:
        TypeError: ranks are incompatible, or an argument is of the wrong kind.
        ValueError: sizes or numbers of spatial dimensions are incompatible.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> x = np.arange(4.0).reshape(1, 1, 4)
        >>> kernels = np.array([[[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]])
        >>> lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,)).tolist()
        [[[0.0, 2.0, 5.0]]]
    """
    function = "conv_general_dilated_local"
    lhs = as_operand(lhs, f"lax.{function}", "lhs")
    rhs = as_operand(rhs, f"lax.{function}", "rhs")
    numbers = dimension_numbers_of(shape_of(lhs), shape_of(rhs), dimension_numbers, function)
    patches = _patches(
        function,
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        precision,
    )
    (_, c, *xs), (_, i, *ys) = numbers.out_spec, numbers.rhs_spec
    x, y = shape_of(patches), shape_of(rhs)
    want, have = (x[c], *[x[d] for d in xs]), (y[i], *[y[d] for d in ys])
    if want != have:
        raise ValueError(
            f"lax.{function}: rhs must have {want[0]} input features (features of lhs times places "
            f"of the window) and spatial sizes {want[1:]} (those of the result), got {have[0]} and "
            f"{have[1:]}"
        )
    # The product has dimensions (*spatial, batch, output features).
    out = dot_general(patches, rhs, (((c,), (i,)), (xs, ys)), precision)
    rank = len(xs)
    order = dict(zip(numbers.out_spec, (rank, rank + 1, *range(rank)), strict=True))
    return transpose(out, tuple([order[d] for d in range(rank + 2)]))
