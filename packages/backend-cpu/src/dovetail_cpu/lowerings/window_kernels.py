"""Extremes and sums of windows by a kernel, and what is added to the elements that they select.

A call compiles in a fraction of the time of XLA's loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernels
from dovetail_cpu.lowerings.worth import suits_kernel

#: With fewer elements than this there is nothing to gain.
MANY: Final = 1024
#: Operations of the kernel.
LARGEST, SMALLEST, SUM = range(3)
#: What it reduces, and what it adds.
_REDUCED: Final = frozenset({"int32", "float32", "float64"})
_ADDED: Final = frozenset({"float32", "float64"})
#: Windows of more dimensions than this are left to XLA, and so are such with more rows, or places
#: in a row, than this, or more places in all, as in `native/windows.cc`.
_WINDOWED: Final = 3
_MOST_ROWS: Final = 16
_MOST_PLACES: Final = 32
#: With fewer elements side by side than this the kernel has no vectors, but for some windows that
#: overlap.
_LANES: Final = 8


class Window(NamedTuple):
    """A window along one dimension: places, step, padding, and distance between places."""

    size: int
    step: int
    padding: tuple[int, int]
    distance: int

    @property
    def trivial(self) -> bool:
        """Whether each element is a window."""
        return self.size == self.step == 1 and self.padding == (0, 0)


def windows_of(params: Mapping[str, Any]) -> list[Window]:
    """The windows of a primitive, along each dimension."""
    sizes = params["window_dimensions"]
    distances = params.get("window_dilation", (1,) * len(sizes))
    each = zip(sizes, params["window_strides"], params["padding"], distances, strict=True)
    return [Window(*window) for window in each]


def _sizes(windows: Sequence[Window], shape: Sequence[int], out: Sequence[int]) -> list[int] | None:
    """What a kernel is told of windows over an array; None if they are not for it."""
    moved = [d for d, window in enumerate(windows) if not window.trivial]
    if not moved or moved[-1] - moved[0] >= _WINDOWED:
        return None
    dimensions = range(moved[0], moved[-1] + 1)
    numbers = [[1, 1, 1, 1, 0, 1]] * (_WINDOWED - len(dimensions))
    for d in dimensions:
        size, step, (low, _), distance = windows[d]
        numbers.append([shape[d], out[d], size, step, low, distance])
    *rows, places = [window for _, _, window, *_ in numbers]
    if prod(rows) > _MOST_ROWS or places > _MOST_ROWS:
        return None
    inner = prod(shape[moved[-1] + 1 :])
    return [prod(shape[: moved[0]]), inner, *[n for along in numbers for n in along]]


def _has_vectors(sizes: Sequence[int], window: Window) -> bool:
    """Whether the kernel of reductions has vectors for such windows along the last dimension."""
    inner = sizes[1]
    by_two = inner == 1 and (window.step, window.distance, window.size) == (2, 1, 3)
    return inner >= _LANES or window.step == 1 or by_two


def reduced(context: Any, x: Any, window: Mapping[str, Any], operation: int) -> Any:
    """What windows come to; NotImplemented where XLA computes it on the way, or as fast."""
    (aval,), (out,) = context.avals_in, context.avals_out
    if (
        any(base > 1 for base in window["base_dilation"])
        or dtype_name(aval.dtype) not in _REDUCED
        or not suits_kernel(context, aval)
        or out.size * prod(window["window_dimensions"]) < MANY
    ):
        return NotImplemented
    windows = windows_of(window)
    # An operand that is computed XLA reduces on the way, if each element is in one window only.
    apart = all((w.size - 1) * w.distance < w.step for w in windows)
    if apart and getattr(x.owner, "name", "stablehlo.custom_call") != "stablehlo.custom_call":
        return NotImplemented
    sizes = _sizes(windows, aval.shape, out.shape)
    if sizes is None or not _has_vectors(sizes, [w for w in windows if not w.trivial][-1]):
        return NotImplemented
    if apart and sizes[1] < _LANES:
        return NotImplemented
    return _reduced(context, x, out, sizes, operation, 1)


def _reduced(
    context: Any, x: Any, out: Any, sizes: Sequence[int], operation: int, divisor: int
) -> Any:
    (result,) = kernels.call(
        context,
        kernels.REDUCE_WINDOWS,
        [x],
        [out],
        0,
        sizes=sizes,
        operation=operation,
        divisor=divisor,
    )
    return result


def divided(context: Any, x: Any, y: Any) -> Any:
    """Sums of windows by their number of elements; NotImplemented for what else is divided."""
    owner, (out,) = x.owner, context.avals_out
    if getattr(owner, "name", "") != "stablehlo.custom_call":
        return NotImplemented
    if owner.attributes["call_target_name"].value != kernels.REDUCE_WINDOWS:
        return NotImplemented
    told = owner.attributes["backend_config"]
    divisor = _number(y)
    if (
        told["operation"].value != SUM
        or told["divisor"].value != 1
        or out.dtype.kind != "f"
        or divisor is None
        or not context.uses_once()
    ):
        return NotImplemented
    sizes = [int(size) for size in told["sizes"]]
    return _reduced(context, owner.operands[0], out, sizes, SUM, divisor)


def _number(value: Any) -> int | None:
    """The integer that all elements of a value are, if that is known."""
    while getattr(value.owner, "name", "") in ("stablehlo.broadcast_in_dim", "stablehlo.reshape"):
        (value,) = value.owner.operands
    if getattr(value.owner, "name", "") != "stablehlo.constant":
        return None
    numbers = value.owner.attributes["value"]
    if not numbers.is_splat:
        return None
    number = np.asarray(numbers).flat[0]
    return int(number) if 1 <= number < 2**24 and number == int(number) else None


def added(context: Any, given: Any, x: Any, window: Mapping[str, Any], largest: bool) -> Any:
    """What windows are given, added up at the elements that they select."""
    given_aval, aval = context.avals_in
    (out,) = context.avals_out
    if (
        dtype_name(aval.dtype) not in _ADDED
        or given_aval.dtype != aval.dtype
        or not suits_kernel(context, aval)
        or not given_aval.size
    ):
        return NotImplemented
    windows = windows_of(window)
    sizes = _sizes(windows, aval.shape, given_aval.shape)
    if sizes is None or sizes[1] < _LANES or prod([w.size for w in windows]) > _MOST_PLACES:
        return NotImplemented
    if getattr(given.owner, "name", "") == "stablehlo.broadcast_in_dim":
        (one,) = given.owner.operands
        given = given if one.type.rank else one
    (result,) = kernels.call(
        context,
        kernels.ADD_TO_SELECTED,
        [given, x],
        [out],
        0,
        sizes=sizes,
        largest=int(largest),
    )
    return result
