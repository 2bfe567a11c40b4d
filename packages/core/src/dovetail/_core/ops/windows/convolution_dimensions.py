"""Dimension numbers of convolutions, and the shapes of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dovetail._core.base.errors import ShapeError
from dovetail._core.ops.shape.dimensions import canonical_shape, integer, integers
from dovetail._core.ops.shape.padding import Pads, dilated_size, pads_of
from dovetail._core.ops.windows.convolution import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    in_places,
    spatial_sizes,
)

Shape = tuple[int, ...]

#: For each array of a convolution, its non-spatial letters and their meaning.
_SPECS: Final = (
    ("lhs_spec", "NC", "N (batch) and C (features)"),
    ("rhs_spec", "OI", "O (output features) and I (input features)"),
    ("out_spec", "NC", "N (batch) and C (features)"),
)

_FORMS: Final = (
    "dimension_numbers must be None, a lax.ConvDimensionNumbers, or three strings such as "
    "('NHWC', 'HWIO', 'NHWC')"
)


def _parsed(numbers: Any, function: str) -> ConvDimensionNumbers:
    """Dimension numbers from any accepted form but None."""
    if not isinstance(numbers, tuple | list) or len(numbers) != 3:
        raise TypeError(f"lax.{function}: {_FORMS}, got {numbers!r}")
    if not all(isinstance(spec, str) for spec in numbers):
        if any(isinstance(spec, str) or spec is None for spec in numbers):
            raise TypeError(f"lax.{function}: {_FORMS}, got {numbers!r}")
        specs = [integers(spec, function, "each part of dimension_numbers") for spec in numbers]
        for spec in specs:
            if sorted(spec) != list(range(len(spec))) or len(spec) < 2:
                raise TypeError(
                    f"lax.{function}: each part of dimension_numbers must name the dimensions 0 to "
                    f"rank - 1 once, of at least 2, got {spec}"
                )
        return ConvDimensionNumbers(*specs)
    for spec, (name, letters, meaning) in zip(numbers, _SPECS, strict=True):
        if any(spec.count(letter) != 1 for letter in letters):
            raise TypeError(
                f"lax.{function}: {name} of dimension_numbers must have the letters {meaning} "
                f"once, got {spec!r}"
            )
        if len(set(spec)) != len(spec):
            raise TypeError(
                f"lax.{function}: {name} of dimension_numbers names a dimension twice: {spec!r}"
            )
    lhs, rhs, out = numbers
    # The kernel determines the order of the spatial dimensions.
    spatial = [letter for letter in rhs if letter not in "OI"]
    if not set(spatial) == set(lhs) - {*"NC"} == set(out) - {*"NC"}:
        raise TypeError(
            f"lax.{function}: the parts of dimension_numbers must name the same spatial "
            f"dimensions, got {numbers!r}"
        )
    return ConvDimensionNumbers(
        *[
            tuple([spec.index(letter) for letter in (*letters, *spatial)])
            for spec, (_, letters, _) in zip(numbers, _SPECS, strict=True)
        ]
    )


def dimension_numbers_of(
    lhs: Shape, rhs: Shape, numbers: Any, function: str
) -> ConvDimensionNumbers:
    """Dimension numbers for operands of these shapes."""
    if len(lhs) != len(rhs) or len(lhs) < 2:
        raise TypeError(
            f"lax.{function}: lhs and rhs must have one rank, of at least 2 (batch and features, "
            f"output and input features), got shapes {lhs} and {rhs}"
        )
    if numbers is None:
        order = tuple(range(len(lhs)))
        return ConvDimensionNumbers(order, order, order)
    parsed = _parsed(numbers, function)
    if any(len(spec) != len(lhs) for spec in parsed):
        raise TypeError(
            f"lax.{function}: dimension_numbers must name {len(lhs)} dimensions in each part, "
            f"for operands of shapes {lhs} and {rhs}, got {numbers!r}"
        )
    return parsed


def sizes_of(shape: Shape, spec: Sequence[int]) -> Shape:
    """The sizes of the dimensions that one of the dimension numbers names, in its order."""
    return tuple([shape[d] for d in spec])


def entries(
    values: Any, count: int, function: str, argument: str, optional: bool = False
) -> tuple[int, ...]:
    """A positive integer for each spatial dimension; ones for None, if `optional`."""
    if values is None and optional:
        return (1,) * count
    checked = integers(values, function, argument)
    if len(checked) != count:
        raise ShapeError(
            f"lax.{function}: {argument} must have one integer for each of the {count} spatial "
            f"dimensions, got {checked}"
        )
    if any(v < 1 for v in checked):
        raise ValueError(f"lax.{function}: {argument} must be positive, got {checked}")
    return checked


def spatial_pads(
    padding: Any,
    sizes: Shape,
    kernel: Shape,
    strides: Shape,
    lhs_dilation: Shape,
    dilation: Shape,
    function: str,
) -> Pads:
    """The padding of a convolution: before and after each spatial dimension.

    Args:
        padding: a name or pairs.
        sizes: of the input.
        kernel: sizes of the kernel.
        strides: the strides.
        lhs_dilation: of the input.
        dilation: of the kernel.
        function: the name of the user's function.

    Raises:
        TypeError: `padding` is neither a string nor pairs.
        ValueError: the name is unknown, or is used with a dilated input, or there are too few or
            too many pairs.
    """
    if isinstance(padding, str) and any(d != 1 for d in lhs_dilation):
        raise ValueError(
            f"lax.{function}: padding {padding!r} says nothing where lhs_dilation is not 1: give "
            "pairs (low, high), or use lax.conv_transpose"
        )
    wide = tuple([dilated_size(k, d) for k, d in zip(kernel, dilation, strict=True)])
    return pads_of(padding, sizes, wide, strides, function)


def transposed_pads(
    padding: Any,
    kernel: Shape,
    strides: Shape,
    consistent: bool,
    function: str,
) -> Pads:
    """The padding of an input dilated by `strides`, for a transposed convolution.

    Args:
        padding: a name, or pairs. Pairs refer to the forward convolution if `consistent`, otherwise
            to the dilated input.
        kernel: dilated sizes of the kernel.
        strides: the strides of the forward convolution.
        consistent: what pairs refer to.
        function: the name of the user's function.

    Raises:
        TypeError: `padding` is neither a string nor pairs.
        ValueError: the name is unknown, or there are too few or too many pairs.
    """
    if not isinstance(padding, str):
        pairs = pads_of(padding, kernel, kernel, strides, function)
        if not consistent:
            return pairs
        return tuple(
            [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(kernel, pairs, strict=True)]
        )
    name = padding.upper()
    if name not in ("SAME", "VALID"):
        raise ValueError(
            f"lax.{function}: padding must be 'SAME', 'VALID' or a sequence of pairs (low, high), "
            f"got {padding!r}"
        )
    pads = []
    for k, stride in zip(kernel, strides, strict=True):
        # The padding of the forward convolution, for an input of a multiple of its stride.
        added = max(k - stride, 0) if name == "SAME" else 0
        low = k - 1 - added // 2
        pads.append((low, k - 1 - (added - added // 2) + max(stride - k, 0)))
    return tuple(pads)


def _in_order(
    lhs_shape: Any, rhs_shape: Any, numbers: Any, function: str
) -> tuple[Shape, Shape, ConvDimensionNumbers]:
    """Sizes of input and kernel in the standard order, and the dimension numbers."""
    x = canonical_shape(lhs_shape, function, "lhs_shape")
    y = canonical_shape(rhs_shape, function, "rhs_shape")
    parsed = dimension_numbers_of(x, y, numbers, function)
    return sizes_of(x, parsed.lhs_spec), sizes_of(y, parsed.rhs_spec), parsed


def _result_sizes(x: Shape, y: Shape, strides: Shape, padding: Any, function: str) -> Shape:
    """The sizes of the result of a convolution without dilation, in the standard order."""
    ones = (1,) * len(strides)
    pads = spatial_pads(padding, x[2:], y[2:], strides, ones, ones, function)
    sizes = spatial_sizes(f"lax.{function}", x[2:], y[2:], strides, pads, ones, ones)
    return (x[0], y[0], *sizes)


# Public functions


def conv_dimension_numbers(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> ConvDimensionNumbers:
    """The dimension numbers of a convolution, as positions.

    Args:
        lhs_shape: shape of the input.
        rhs_shape: shape of the kernel.
        dimension_numbers: None for (batch, features, *spatial) and (output features, input
            features, *spatial), three strings such as ``("NHWC", "HWIO", "NHWC")``, or a
            `ConvDimensionNumbers`.

    Returns:
        A `ConvDimensionNumbers`. The spatial dimensions are in the order of the kernel's string.

    Raises:
        TypeError: the ranks differ, or `dimension_numbers` has an unknown form or another rank.

    Example:
        >>> from dovetail import lax
        >>> lax.conv_dimension_numbers((1, 5, 3), (2, 3, 4), ("NHC", "HIO", "NHC"))
        ConvDimensionNumbers(lhs_spec=(0, 2, 1), rhs_spec=(2, 1, 0), out_spec=(0, 2, 1))
    """
    return _in_order(lhs_shape, rhs_shape, dimension_numbers, "conv_dimension_numbers")[2]


def conv_general_permutations(
    dimension_numbers: tuple[str, str, str],
) -> tuple[Shape, Shape, Shape]:
    """The permutations that bring the arrays of a convolution to the standard order.

    Args:
        dimension_numbers: three strings such as ``("NHWC", "HWIO", "NHWC")``.

    Returns:
        For input, kernel and result: the positions of (batch, features, *spatial), of (output
        features, input features, *spatial), and of (batch, features, *spatial).

    Raises:
        TypeError: `dimension_numbers` has an unknown form.

    Example:
        >>> from dovetail import lax
        >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
        ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = _parsed(dimension_numbers, "conv_general_permutations")
    return tuple(lhs), tuple(rhs), tuple(out)


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    batch_group_count: int = 1,
) -> Shape:
    """The shape of the result of `conv`.

    Args:
        lhs_shape: shape (batch, features, *spatial) of the input.
        rhs_shape: shape (output features, input features, *spatial) of the kernel.
        strides: a stride for each spatial dimension.
        pads: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"`` or pairs (low, high).
        batch_group_count: the divisor of the batch size.

    Returns:
        The shape (batch, output features, *spatial).

    Raises:
        TypeError: the ranks differ, or an argument is of the wrong kind.
        ValueError: numbers of spatial dimensions are incompatible, or the batch size is not
            divisible.

    Example:
        >>> from dovetail import lax
        >>> lax.conv_shape_tuple((2, 3, 5, 6), (4, 3, 2, 3), (1, 2), "VALID")
        (2, 4, 4, 2)
    """
    function = "conv_shape_tuple"
    groups = integer(batch_group_count, function, "batch_group_count")
    x, y, _ = _in_order(lhs_shape, rhs_shape, None, function)
    if groups < 1 or x[0] % groups:
        raise ValueError(
            f"lax.{function}: batch_group_count must be positive and divide the batch size "
            f"{x[0]}, got {groups}"
        )
    steps = entries(strides, len(x) - 2, function, "strides")
    return _result_sizes((x[0] // groups, *x[1:]), y, steps, pads, function)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> Shape:
    """The shape of the result of `conv_general_dilated` without dilation or groups.

    Args:
        lhs_shape: shape of the input.
        rhs_shape: shape of the kernel.
        window_strides: a stride for each spatial dimension.
        padding: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"`` or pairs (low, high).
        dimension_numbers: as for `conv_dimension_numbers`.

    Returns:
        The shape.

    Raises:
        TypeError: ranks and dimension numbers are incompatible, or an argument is of the wrong
            kind.
        ValueError: numbers of spatial dimensions are incompatible.

    Example:
        >>> from dovetail import lax
        >>> numbers = ("NHWC", "HWIO", "NHWC")
        >>> lax.conv_general_shape_tuple((2, 5, 6, 3), (2, 3, 3, 4), (1, 2), "VALID", numbers)
        (2, 4, 2, 4)
    """
    function = "conv_general_shape_tuple"
    x, y, numbers = _in_order(lhs_shape, rhs_shape, dimension_numbers, function)
    steps = entries(window_strides, len(x) - 2, function, "window_strides")
    return in_places(numbers.out_spec, _result_sizes(x, y, steps, padding, function))


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: ConvGeneralDilatedDimensionNumbers,
) -> Shape:
    """The shape of the result of `conv_transpose` without dilation.

    Args:
        lhs_shape: shape of the input.
        rhs_shape: shape of the kernel.
        window_strides: the factor by which each spatial dimension grows.
        padding: ``"SAME"``, ``"VALID"``, or pairs (low, high) that are added to the dilated input.
        dimension_numbers: as for `conv_dimension_numbers`.

    Returns:
        The shape.

    Raises:
        TypeError: ranks and dimension numbers are incompatible, or an argument is of the wrong
            kind.
        ValueError: numbers of spatial dimensions are incompatible, or `padding` is an unknown name.

    Example:
        >>> from dovetail import lax
        >>> numbers = ("NHWC", "HWIO", "NHWC")
        >>> lax.conv_transpose_shape_tuple((2, 5, 6, 3), (2, 3, 3, 4), (2, 3), "SAME", numbers)
        (2, 10, 18, 4)
    """
    function = "conv_transpose_shape_tuple"
    x, y, numbers = _in_order(lhs_shape, rhs_shape, dimension_numbers, function)
    steps = entries(window_strides, len(x) - 2, function, "window_strides")
    pads = transposed_pads(padding, y[2:], steps, False, function)
    ones = (1,) * len(steps)
    sizes = spatial_sizes(f"lax.{function}", x[2:], y[2:], ones, pads, steps, ones)
    return in_places(numbers.out_spec, (x[0], y[0], *sizes))
