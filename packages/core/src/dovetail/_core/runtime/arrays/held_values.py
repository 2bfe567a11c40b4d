"""Values that arrays hold in place of buffers, until somebody asks for those.

Only the compiled path makes such arrays: `native/direct.h` in `dovetail-native`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dovetail._core.base import native
from dovetail._core.ir.avals import ShapedArray, make_aval
from dovetail._core.runtime.arrays import buffers, guards
from dovetail._core.runtime.arrays.host import numpy_aval
from dovetail._core.runtime.devices.sharding import first_sharding

__all__ = ["MOST_HELD", "FreedValue", "held_value", "place_value"]

#: Bytes of a constant that an array holds until its buffer is needed.
MOST_HELD: Final = 16384
#: Bytes from which the device takes the memory of a value, which is aligned; copies cost less.
_LEAST_SHARED: Final = 16384


def _no_value(array: object) -> None:
    """What `held_value` is without the compiled path, where every array has a buffer."""


#: The value that an array holds in place of a buffer; None if it holds none.
held_value: Final[Callable[[Any], np.ndarray[Any, Any] | None]] = (
    _no_value if native.calls is None else native.calls.held_value
)


def place_value(value: np.ndarray[Any, Any], weak: bool) -> Any:
    """The buffer of an array that holds a value: where data were told of no devices."""
    with guards.suspended():
        place = buffers.place if value.nbytes < _LEAST_SHARED else buffers.put_shared
        return place(value, numpy_aval(value, weak), first_sharding(), False)


class FreedValue:
    """What stands for the buffer of a deleted array that held a value."""

    __slots__ = ("_dtype", "_shape", "_weak")

    traceback = None
    _committed = False

    def __init__(self, value: np.ndarray[Any, Any], weak: bool) -> None:
        self._shape, self._dtype, self._weak = value.shape, value.dtype, weak

    @property
    def aval(self) -> ShapedArray:
        return make_aval(self._shape, self._dtype, self._weak)

    @property
    def _sharding(self) -> Any:
        return first_sharding()

    def is_deleted(self) -> bool:
        return True

    def delete(self) -> None:
        pass
