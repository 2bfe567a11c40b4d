"""The options of the CUDA client: those of the environment, then the user's."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from jaxlib import xla_client

ALLOCATORS: Final = ("default", "platform", "bfc", "cuda_async", "vmm", "address")

_MEMORY_FRACTION: Final = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")
_BOOLS: Final = {"true": True, "1": True, "false": False, "0": False}


def client_options(options: Mapping[str, object]) -> dict[str, Any]:
    """The options passed to the library.

    Args:
        options: the user's options, by the names in `OPTIONS`.

    Raises:
        TypeError: an option is unknown or of the wrong type.
        ValueError: an option or an environment variable has an invalid value.
    """
    chosen = _from_environment()
    for name, value in options.items():
        if name not in OPTIONS:
            raise TypeError(
                f"the cuda backend has no option {name}; it has {', '.join(sorted(OPTIONS))}"
            )
        converted = OPTIONS[name](value, f"cuda option {name}")
        if converted is not None:
            chosen[name] = converted
    return chosen


def _from_environment() -> dict[str, Any]:
    """jaxlib's reading of its environment variables, after checking them."""
    # jaxlib ignores some of these if they are empty, but rejects empty words and flags.
    both = [name for name in _MEMORY_FRACTION if os.environ.get(name)]
    if len(both) > 1:
        raise ValueError(f"{both[0]} and {both[1]} are both set: unset the second, older one.")
    for name in both:
        _fraction(_number(name, float), name)
    name = "XLA_PYTHON_CLIENT_ALLOCATOR"
    if name in os.environ:
        _allocator(os.environ[name].lower(), name)
    name = "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB"
    if os.environ.get(name) and _number(name, int) < 0:
        raise ValueError(f"{name}={os.environ[name]} must be a number of megabytes.")
    for name in (
        "XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE",
        "XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT",
    ):
        if name in os.environ and os.environ[name] not in ("0", "1"):
            raise ValueError(f"{name}={os.environ[name]} must be 0 or 1.")
    chosen: dict[str, Any] = dict(xla_client.generate_pjrt_gpu_plugin_options())
    name = "XLA_PYTHON_CLIENT_PREALLOCATE"
    if os.environ.get(name):
        # jaxlib reads every other word, such as "FALSE" or "no", as true.
        word = os.environ[name].strip().lower()
        if word not in _BOOLS:
            raise ValueError(f"{name}={os.environ[name]} must be true or false.")
        chosen["preallocate"] = _BOOLS[word]
    return chosen


def _number(name: str, kind: type[int] | type[float]) -> float:
    try:
        return kind(os.environ[name])
    except ValueError:
        what = "a whole number" if kind is int else "a number, such as .5"
        raise ValueError(f"{name}={os.environ[name]} must be {what}.") from None


def _fraction(value: object, name: str) -> float:
    """A fraction of a GPU's memory; more than 1 where memory is shared with the host."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, got {value!r}")
    shared = os.environ.get("TF_FORCE_UNIFIED_MEMORY", "0") not in ("", "0", "false")
    if not 0 < value <= (float("inf") if shared else 1):
        raise ValueError(
            f"{name} is {value}: it is a share of the GPU's memory, between 0 and 1 (with "
            "TF_FORCE_UNIFIED_MEMORY=1, which adds the host's memory, also more)."
        )
    return float(value)


def _allocator(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, got {value!r}")
    if value not in ALLOCATORS:
        raise ValueError(f"{name} is {value!r}: it must be one of {', '.join(ALLOCATORS)}.")
    return value


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def _size(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {value!r}")
    if value < 0:
        raise ValueError(f"{name} is {value}: it must not be negative.")
    return value


def _devices(value: object, name: str) -> list[int] | None:
    """Numbers of GPUs among those left by CUDA_VISIBLE_DEVICES; None for all of them."""
    if value == "all":
        return None
    devices: Any = value
    if isinstance(value, str):
        try:
            devices = [int(part) for part in value.split(",")]
        except ValueError:
            devices = None
    if not isinstance(devices, list | tuple) or not all(
        isinstance(number, int) and not isinstance(number, bool) for number in devices
    ):
        raise TypeError(f'{name} must be "all", numbers such as "0,2" or a list, got {value!r}')
    if not devices or min(devices) < 0 or len(set(devices)) < len(devices):
        raise ValueError(f"{name} is {value!r}: it must name each GPU once, from 0 on.")
    return list(devices)


OPTIONS: Final[Mapping[str, Callable[[object, str], object]]] = {
    "abort_collectives_on_failure": _flag,
    "allocator": _allocator,
    "collective_memory_size": _size,
    "memory_fraction": _fraction,
    "node_id": _size,
    "num_nodes": _size,
    "partition_index": _size,
    "preallocate": _flag,
    "visible_devices": _devices,
}
"""What checks and converts each option, by its name; None leaves it out."""
