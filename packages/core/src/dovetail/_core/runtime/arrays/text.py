"""Text forms of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.base.notebooks import boxed

__all__ = ["array_html", "array_text", "place_text", "short_type"]


def short_type(aval: Any) -> str:
    """Dtype and shape in one word, such as ``float32[2,3]``."""
    return f"{_name(aval.dtype)}[{','.join(map(str, aval.shape))}]"


def _name(dtype: Any) -> str:
    return dtype.name if isinstance(dtype, np.dtype) else str(dtype)


def array_text(value: np.ndarray[Any, Any], aval: Any) -> str:
    """The ``repr`` of an array, such as ``Array([1., 2.], dtype=float32)``."""
    end = f", dtype={_name(aval.dtype)}" + (", weak_type=True)" if aval.weak_type else ")")
    if value.size == 0:
        shape = f", shape={value.shape}" if value.shape != (0,) else ""
        return f"Array([]{shape}{end}"
    text = np.array2string(value, separator=", ", prefix="Array(", suffix=end)
    last_line = len(text) - (text.rfind("\n") + 1) + (len("Array(") if "\n" not in text else 0)
    if last_line + len(end) > np.get_printoptions()["linewidth"]:
        return f"Array({text},\n      {end[2:]}"
    return f"Array({text}{end}"


def place_text(sharding: Any) -> str:
    """The devices of a sharding, and how it divides over them, such as ``cpu:0,1 P('x')``."""
    devices = sorted(sharding.device_set, key=lambda device: device.id)
    names = f"{devices[0].platform}:{','.join(str(device.id) for device in devices)}"
    spec = getattr(sharding, "spec", None)
    return names if spec is None or len(devices) == 1 else f"{names} {spec}"


def array_html(array: Any) -> str:
    """An array in a notebook: dtype, shape and place above its elements."""
    place = "deleted" if array.is_deleted() else f"on {place_text(array.sharding)}"
    return boxed(f"Array {short_type(array.aval)} {place}", str(array))
