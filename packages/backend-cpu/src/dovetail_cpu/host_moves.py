"""What the native functions that move elements of small arrays need to know."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_MOST_DIMENSIONS: Final = 8


def is_key(aval: Any) -> bool:
    """Whether an array is of random keys, each of which is several numbers."""
    return hasattr(aval.dtype, "physical")


def item_size(aval: Any) -> int:
    """The bytes of an element."""
    if not is_key(aval):
        return int(aval.dtype.itemsize)
    shape, dtype = aval.dtype.physical(())
    return int(math.prod(shape) * dtype.itemsize)


def _strides(shape: Sequence[int], item: int) -> list[int]:
    """How many bytes elements are apart along each dimension."""
    strides, step = [], item
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return strides[::-1]


def _rearranged(item: int, place: int, sizes: Sequence[int], strides: Sequence[int]) -> Any:
    """The numbers of a result of some sizes, for which an operand is read in some steps."""
    if item not in (1, 2, 4, 8, 16):
        return None
    kept: list[list[int]] = []
    for size, stride in zip(sizes, strides, strict=True):
        if size == 1:
            continue
        if kept and kept[-1][1] == size * stride:
            kept[-1] = [kept[-1][0] * size, stride]
        else:
            kept.append([size, stride])
    kept = kept or [[1, item]]
    return item, place, len(kept), *[n for pair in kept for n in pair]


def _slice(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    x = operands[0]
    item = item_size(x)
    steps = _strides(x.shape, item)
    place = sum(n * step for n, step in zip(params["start_indices"], steps, strict=True))
    every = params["strides"] or (1,) * len(steps)
    strides = [n * step for n, step in zip(every, steps, strict=True)]
    return _rearranged(item, place, out.shape, strides)


def _reversed(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    item = item_size(operands[0])
    strides, place = _strides(out.shape, item), 0
    for d in params["dimensions"]:
        place += max(out.shape[d] - 1, 0) * strides[d]
        strides[d] *= -1
    return _rearranged(item, place, out.shape, strides)


def _transposed(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    item = item_size(operands[0])
    strides = _strides(operands[0].shape, item)
    return _rearranged(item, 0, out.shape, [strides[d] for d in params["permutation"]])


def _broadcast(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    x = operands[0]
    item = item_size(x)
    strides = [0] * len(out.shape)
    own = zip(x.shape, _strides(x.shape, item), params["broadcast_dimensions"], strict=True)
    for size, stride, d in own:
        strides[d] = 0 if size == 1 else stride
    return _rearranged(item, 0, out.shape, strides)


def _rows(shape: Sequence[int], axis: int, item: int) -> tuple[int, int]:
    """How many rows begin at an axis, and the bytes of each."""
    return math.prod(shape[:axis]), math.prod(shape[axis:]) * item


def _joined(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    axis = params["dimension"] if "dimension" in params else params["axis"]
    if any(x.dtype != out.dtype for x in operands):
        return None
    rows = [_rows(x.shape, axis, item_size(x)) for x in operands]
    return rows[0][0], len(rows), *[size for _, size in rows]


def _split(params: Mapping[str, Any], operands: Sequence[Any], outs: Any) -> Any:
    parts = outs if isinstance(outs, list) else [outs]
    rows = [_rows(part.shape, params["axis"], item_size(part)) for part in parts]
    return rows[0][0], len(rows), *[size for _, size in rows]


def _dynamic(whole: Any, part: Any, indices: Sequence[Any]) -> Any:
    item = item_size(whole)
    if any(index.dtype != "int32" for index in indices) or item not in (1, 2, 4, 8, 16):
        return None
    if not whole.shape or len(whole.shape) > _MOST_DIMENSIONS:
        return None
    sizes = [n for pair in zip(whole.shape, part.shape, strict=True) for n in pair]
    return item, len(whole.shape), *sizes


def _dynamic_slice(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    return _dynamic(operands[0], out, operands[1:])


def _dynamic_update_slice(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    return _dynamic(operands[0], operands[1], operands[2:])


def _padded(params: Mapping[str, Any], operands: Sequence[Any], out: Any) -> Any:
    x, value = operands
    item, config = item_size(x), params["padding_config"]
    if x.dtype != value.dtype or item not in (1, 2, 4, 8, 16) or not x.shape:
        return None
    if any(low < 0 or high < 0 for low, high, _ in config):
        return None
    sides = zip(x.shape, config, out.shape, strict=True)
    return (
        item,
        len(x.shape),
        *[n for size, (low, _, gap), own in sides for n in (size, low, gap, own)],
    )


#: By primitive.
NUMBERS: Final[
    Mapping[str, Callable[[Mapping[str, Any], Sequence[Any], Any], Sequence[int] | None]]
] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": _joined,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "pad": _padded,
    "rev": _reversed,
    "slice": _slice,
    "split": _split,
    "stack": _joined,
    "transpose": _transposed,
}
