"""Padding of windows and convolutions: by name, or as numbers of places."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from dovetail.core.ops.dimensions import integers
from dovetail.core.trace.tracer import Tracer

Pads = tuple[tuple[int, int], ...]


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
    """How many places are added before and after each dimension.

    Args:
        padding: ``"VALID"``, ``"SAME"`` or ``"SAME_LOWER"``, in any case; or a pair of integers for
            each dimension, of which negative ones remove places.
        sizes: of the dimensions, dilated.
        windows: sizes of the window, dilated.
        strides: steps of the window.
        function: name of the user's function, for messages.

    Raises:
        TypeError: `padding` is neither.
        ValueError: it is no such name, or there are too few or too many pairs.
    """
    if isinstance(padding, str):
        return _named(padding, sizes, windows, strides, function)
    pairs = [_pair(pair, padding, function) for pair in _items(padding, function)]
    if len(pairs) != len(sizes):
        raise ValueError(
            f"lax.{function}: padding must have a pair (low, high) for each of {len(sizes)} "
            f"dimensions, got {len(pairs)}: {padding!r}"
        )
    return tuple(pairs)


def _named(
    padding: str,
    sizes: Sequence[int],
    windows: Sequence[int],
    strides: Sequence[int],
    function: str,
) -> Pads:
    name = padding.upper()
    if name == "VALID":
        return ((0, 0),) * len(sizes)
    if name not in ("SAME", "SAME_LOWER"):
        raise ValueError(
            f"lax.{function}: padding must be 'VALID', 'SAME', 'SAME_LOWER' or a sequence of pairs "
            f"(low, high), got {padding!r}"
        )
    pads = []
    for size, window, stride in zip(sizes, windows, strides, strict=True):
        count = -(-size // stride)
        total = max((count - 1) * stride + window - size, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if name == "SAME" else (more, less))
    return tuple(pads)


def _items(padding: Any, function: str) -> list[Any]:
    try:
        return list(padding)
    except TypeError:
        raise _unreadable(padding, function) from None


def _pair(pair: Any, padding: Any, function: str) -> tuple[int, int]:
    try:
        low, high = pair
        return operator.index(low), operator.index(high)
    except (TypeError, ValueError) as error:
        for value in pair if isinstance(pair, tuple | list) else ():
            if isinstance(value, Tracer):
                raise error
        raise _unreadable(padding, function) from None


def _unreadable(padding: Any, function: str) -> TypeError:
    return TypeError(
        f"lax.{function}: padding must be 'VALID', 'SAME', 'SAME_LOWER' or a sequence of pairs of "
        f"integers (low, high), got {padding!r}"
    )


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """The numbers of places that a padding by name stands for.

    Args:
        in_shape: sizes of the dimensions that a window is moved along.
        window_shape: sizes of the window, with their dilation.
        window_strides: steps of the window.
        padding: ``"VALID"`` for none; ``"SAME"`` for as many as make the result, at stride 1, as
            large as the input, with the odd one after; ``"SAME_LOWER"`` with the odd one before. In
            upper or lower case.

    Returns:
        A pair (low, high) for each dimension.

    Raises:
        TypeError: `padding` is no string, or another argument is no sequence of integers.
        ValueError: `padding` is another string, the sequences have different lengths, or a stride
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
        raise TypeError(
            f"lax.{function}: padding must be 'VALID', 'SAME' or 'SAME_LOWER', got {padding!r}"
        )
    return list(_named(padding, sizes, windows, strides, function))
