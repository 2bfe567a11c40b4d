"""The native functions that programs of this process may call, by name and platform."""

from __future__ import annotations

from typing import Any, Final

from dovetail._core.base.bindings import xla_client
from dovetail._core.base.locks import shared_lock
from dovetail._core.base.records import record

__all__ = [
    "NativeTarget",
    "RequiredTarget",
    "is_batch_partitionable",
    "note_batch_partitionable",
    "note_target",
    "targets_for",
]

_lock: Final = shared_lock()


@record
class NativeTarget:
    """A native function under the name by which programs call it.

    Attributes:
        name: the name.
        handler: a capsule, or capsules by stage.
        platform: the platform's name in lower case.
        traits: XLA's trait bits.
    """

    name: str
    handler: Any
    platform: str
    traits: int = 0


_targets: Final[dict[tuple[str, str], NativeTarget]] = {}
_batch_partitionable: Final[set[str]] = set()


def note_target(target: NativeTarget) -> None:
    """Remember a target, which takes the place of one of the same name and platform."""
    with _lock:
        _targets[target.name, target.platform] = target


def targets_for(platform: str) -> list[NativeTarget]:
    """The targets of a platform, by its name in lower case."""
    with _lock:
        return [target for target in _targets.values() if target.platform == platform]


def note_batch_partitionable(name: str) -> None:
    """Remember that a target treats each element of a batch by itself."""
    _batch_partitionable.add(name)


def is_batch_partitionable(name: str) -> bool:
    """Whether a target treats each element of a batch by itself."""
    return name in _batch_partitionable


@record
class RequiredTarget:
    """What a program needs in its process: that a target is registered.

    Attributes:
        name: the target.
        platform: the platform of the program. Only for the CPU can it be found out.
    """

    name: str
    platform: str

    def __call__(self) -> None:
        """Raise RuntimeError unless the target is there."""
        if self.platform != "cpu" or (self.name, "cpu") in _targets:
            return
        if self.name not in xla_client.custom_call_targets("cpu"):
            raise RuntimeError(
                f"the program calls {self.name!r}, under which no native function is registered "
                f"for the CPU in this process: dovetail.ffi.register_ffi_target({self.name!r}, "
                f"dovetail.ffi.pycapsule(library.{self.name}))"
            )
