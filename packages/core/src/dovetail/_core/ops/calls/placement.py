"""The primitive `device_put`: a value on another device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

#: (value, sharding, whether the result may share the memory of the value) -> array.
Placement = Callable[[Any, Any, bool | None], Any]
_place: Placement


def set_placement(place: Placement) -> None:
    """Install the function that places values outside compiled programs; for the runtime."""
    global _place
    _place = place


class DevicePut(Primitive):
    """The value on another device; inside a program, the value itself."""

    name = "device_put"

    def abstract(self, x: Any, *, device: Any, src: Any, may_alias: bool | None) -> Any:
        return x

    def reference(self, x: Any, *, device: Any, src: Any, may_alias: bool | None) -> Any:
        return np.asarray(x)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(
        self, cotangent: Any, x: Any, *, device: Any, src: Any, may_alias: bool | None
    ) -> Sequence[Any]:
        if type(cotangent) is Zero:
            return [cotangent]
        return [self.bind(cotangent, device=src, src=device, may_alias=may_alias)]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*args, **params), dims[0]

    def lower(
        self, context: Builder, x: Any, *, device: Any, src: Any, may_alias: bool | None
    ) -> Any:
        return x

    def evaluate(self, x: Any, *, device: Any, src: Any, may_alias: bool | None) -> Any:
        """Place the value, outside compiled programs."""
        return _place(x, device, may_alias)


device_put_p: Final = DevicePut()
