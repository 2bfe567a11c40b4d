"""The types in the signatures of public functions.

Classes of higher layers are forward references here, so that the names cost nothing to import and
annotations can still be resolved at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from dovetail._core.runtime.arrays.array import Array as Array
    from dovetail._core.runtime.devices.layout import Format as Format
    from dovetail._core.runtime.devices.sharding import Sharding as Sharding
else:
    from typing import ForwardRef

    Array = ForwardRef("Array", module="dovetail._core.runtime.arrays.array")
    Format = ForwardRef("Format", module="dovetail._core.runtime.devices.layout")
    Sharding = ForwardRef("Sharding", module="dovetail._core.runtime.devices.sharding")


class SupportsArray(Protocol):
    """An object with `__dovetail_array__`, which functions convert to an array."""

    def __dovetail_array__(self) -> Any:
        """The object as an array."""


class SupportsDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""


class SupportsShape(SupportsDType, Protocol):
    """An object with a shape and a dtype, such as a `ShapeDtypeStruct`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""


class SupportsDLPack(Protocol):
    """An array of another library that can be shared through DLPack."""

    def __dlpack__(self, *, stream: Any = None) -> Any:
        """A capsule around the data."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind and the number of the device."""


@runtime_checkable
class Device(Protocol):
    """A device, as returned by `dovetail.devices`.

    Example:
        >>> isinstance(dt.devices()[0], dt.Device)
        True
    """

    @property
    def id(self) -> int:
        """The number of the device among those of its platform."""

    @property
    def platform(self) -> str:
        """The name of the platform, such as "cpu"."""

    @property
    def device_kind(self) -> str:
        """The model of the device."""

    @property
    def process_index(self) -> int:
        """The number of the process that the device belongs to."""

    @property
    def client(self) -> Any:
        """The connection to the platform."""


#: Array arguments of functions: arrays, NumPy arrays and scalars, Python numbers.
ArrayLike: TypeAlias = (
    Array | np.ndarray[Any, Any] | np.generic | bool | int | float | complex | SupportsArray
)
#: Arguments of `dovetail.numpy.array`: also sequences, nested or not, of such values.
NestedArrayLike: TypeAlias = ArrayLike | Sequence["NestedArrayLike"]
#: Positions or sizes that may be computed: integers, and integer arrays without dimensions.
IntLike: TypeAlias = SupportsIndex
#: One key or several for random numbers: typed ones, or raw ones as numbers.
KeyLike: TypeAlias = Array | np.ndarray[Any, Any] | SupportsArray
DType: TypeAlias = np.dtype[Any]
#: Names of a dtype: ``"float32"``, ``float``, ``dovetail.numpy.float32``, ``x.dtype``.
DTypeLike: TypeAlias = str | type[Any] | np.dtype[Any] | SupportsDType
Shape: TypeAlias = tuple[int, ...]
#: The sizes of the dimensions; an integer for one dimension.
ShapeLike: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
#: One dimension, several, or all of them (None).
AxisLike: TypeAlias = int | Sequence[int] | None
#: Where to place an array: a device or a sharding.
DeviceLike: TypeAlias = Device | Sharding
#: A tree of containers with arrays, or anything else, as its leaves.
PyTree: TypeAlias = Any
