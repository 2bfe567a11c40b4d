"""Padding of windows and convolutions: by name, or as amounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dovetail._core.base.errors import ShapeError
from dovetail._core.ops.shape.dimensions import integers

Pads = tuple[tuple[int, int], ...]

_NAMES: Final = ("VALID", "SAME", "SAME_LOWER")


def dilated_size(size: int, dilation: int) -> int:
    """The size of a dimension with ``dilation - 1`` places between its elements."""
    return (size - 1) * dilation + 1 if size else 0


def pads_of(
    padding: Any,
    sizes: Sequence[int],
    windows: Sequence[int],
    strides: Sequence[int],
    function: str,
) -> Pads:
    """The padding before and after each dimension.

    Args:
        padding: ``"VALID"``, ``"SAME"`` or ``"SAME_LOWER"``, in any case; or a pair of integers for
            each dimension. Negative ones crop.
        sizes: the dilated sizes of the dimensions.
        windows: the dilated sizes of the window.
        strides: the strides of the window.
        function: the name of the user's function, for messages.

    Raises:
        ValueError: the name is unknown.
        ShapeError: `padding` is neither a string nor pairs, or has too few or too many of them.
    """
    if isinstance(padding, str):
        if padding.upper() not in _NAMES:
            raise ValueError(_message(function, "or a sequence of pairs (low, high)", padding))
        return _named(padding, sizes, windows, strides)
    try:
        pairs = [tuple(pair) for pair in padding]
    except TypeError:
        pairs = [()]
    if any(len(pair) != 2 for pair in pairs):
        raise ShapeError(_message(function, "or a sequence of pairs (low, high)", padding))
    if len(pairs) != len(sizes):
        raise ShapeError(
            f"lax.{function}: padding must have a pair (low, high) for each of {len(sizes)} "
            f"dimensions, got {len(pairs)}: {padding!r}"
        )
    pads = []
    for pair in pairs:
        low, high = integers(pair, function, "each pair of padding")
        pads.append((low, high))
    return tuple(pads)


def _message(function: str, further: str, padding: Any) -> str:
    return (
        f"lax.{function}: padding must be {', '.join(map(repr, _NAMES))} {further}, got {padding!r}"
    )


def _named(
    padding: str, sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int]
) -> Pads:
    name = padding.upper()
    if name == "VALID":
        return ((0, 0),) * len(sizes)
    pads = []
    for size, window, stride in zip(sizes, windows, strides, strict=True):
        count = -(-size // stride)
        total = max((count - 1) * stride + window - size, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if name == "SAME" else (more, less))
    return tuple(pads)


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """The padding that a name stands for, as pairs.

    Args:
        in_shape: sizes of the dimensions that the window moves along.
        window_shape: sizes of the window, including dilation.
        window_strides: strides of the window.
        padding: ``"VALID"`` for none. ``"SAME"`` makes the result as large as the input at stride
            1, with an odd element at the end; ``"SAME_LOWER"`` puts it at the start. In upper or
            lower case.

    Returns:
        A pair (low, high) for each dimension.

    Raises:
        TypeError: `padding` is not a string, or another argument is not a sequence of integers.
        ValueError: `padding` is an unknown name, the sequences have different lengths, or a stride
            is not positive.

    Example:
        >>> from dovetail import lax
        >>> lax.padtype_to_pads((5, 6), (2, 3), (1, 2), "SAME")
        [(0, 1), (0, 1)]
    """
    function = "padtype_to_pads"
    sizes = integers(in_shape, function, "in_shape")
    windows = integers(window_shape, function, "window_shape")
    strides = integers(window_strides, function, "window_strides")
    if not len(sizes) == len(windows) == len(strides):
        raise ValueError(
            f"lax.{function}: in_shape, window_shape and window_strides must have one length, got "
            f"{sizes}, {windows} and {strides}"
        )
    if any(s < 1 for s in strides):
        raise ValueError(f"lax.{function}: window_strides must be positive, got {strides}")
    if not isinstance(padding, str):
        raise TypeError(_message(function, "(a string)", padding))
    if padding.upper() not in _NAMES:
        raise ValueError(_message(function, "(in any case)", padding))
    return list(_named(padding, sizes, windows, strides))
