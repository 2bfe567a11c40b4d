"""Side effects that the host sees, as jaxprs declare them."""

from __future__ import annotations

from typing import ClassVar, Final

from dovetail._core.ir.jaxpr import Effects


class HostEffect:
    """Something that a program makes the host do.

    Effects of one class are equal.

    Attributes:
        name: what error messages and printed jaxprs call it.
        ordered: whether operations with this effect happen in the order of the program.
    """

    __slots__ = ()

    name: ClassVar[str] = ""
    ordered: ClassVar[bool] = False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return self.name


class DebugEffect(HostEffect):
    """The effect of `dovetail.debug.print` and `dovetail.debug.callback`."""

    __slots__ = ()
    name = "Debug"


class OrderedDebugEffect(HostEffect):
    """The effect of `dovetail.debug.print` and `dovetail.debug.callback` with ``ordered=True``."""

    __slots__ = ()
    name = "OrderedDebug"
    ordered = True


class IOEffect(HostEffect):
    """The effect of `dovetail.experimental.io_callback`."""

    __slots__ = ()
    name = "IO"


class OrderedIOEffect(HostEffect):
    """The effect of `dovetail.experimental.io_callback` with ``ordered=True``."""

    __slots__ = ()
    name = "OrderedIO"
    ordered = True


debug_effect: Final = DebugEffect()
ordered_debug_effect: Final = OrderedDebugEffect()
io_effect: Final = IOEffect()
ordered_io_effect: Final = OrderedIOEffect()


def host_effects(effects: Effects) -> list[HostEffect]:
    """The effects that the host sees."""
    return [effect for effect in effects if isinstance(effect, HostEffect)]


def input_output(effects: Effects) -> list[HostEffect]:
    """The effects that must not happen for batch elements that do not ask for them."""
    return [e for e in host_effects(effects) if isinstance(e, (IOEffect, OrderedIOEffect))]
