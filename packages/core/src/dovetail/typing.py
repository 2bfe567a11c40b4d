"""The types that functions of arrays are declared with, for annotations of one's own.

Functions take an `ArrayLike` and return an `Array`.

Example:
    >>> from dovetail.typing import Array, ArrayLike
    >>> def double(x: ArrayLike) -> Array: ...
"""

import typing as _typing

import numpy as _np

from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.base.typing import ArrayLike as ArrayLike
from dovetail._core.base.typing import AxisLike as AxisLike
from dovetail._core.base.typing import Device as Device
from dovetail._core.base.typing import DeviceLike as DeviceLike
from dovetail._core.base.typing import DType as DType
from dovetail._core.base.typing import DTypeLike as DTypeLike
from dovetail._core.base.typing import IntLike as IntLike
from dovetail._core.base.typing import KeyLike as KeyLike
from dovetail._core.base.typing import NestedArrayLike as NestedArrayLike
from dovetail._core.base.typing import PyTree as PyTree
from dovetail._core.base.typing import Shape as Shape
from dovetail._core.base.typing import ShapeLike as ShapeLike
from dovetail._core.base.typing import SupportsArray as SupportsArray
from dovetail._core.base.typing import SupportsDLPack as SupportsDLPack
from dovetail._core.base.typing import SupportsDType as SupportsDType
from dovetail._core.base.typing import SupportsShape as SupportsShape
from dovetail._core.runtime.arrays.array import Array as Array
from dovetail._core.runtime.devices.layout import Format as Format
from dovetail._core.runtime.devices.sharding import Sharding as Sharding

if not _typing.TYPE_CHECKING:
    # Of classes alone, for those who check types while a program runs.
    ArrayLike = Array | _np.ndarray | _np.bool_ | _np.number | bool | int | float | complex

__all__ = [
    "Array",
    "ArrayLike",
    "AxisLike",
    "DType",
    "DTypeLike",
    "Device",
    "DeviceLike",
    "Format",
    "IntLike",
    "KeyLike",
    "NestedArrayLike",
    "PyTree",
    "Shape",
    "ShapeLike",
    "Sharding",
    "SupportsArray",
    "SupportsDLPack",
    "SupportsDType",
    "SupportsShape",
]

_publish(globals())
