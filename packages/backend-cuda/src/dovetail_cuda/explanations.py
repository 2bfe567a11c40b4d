"""Messages of PJRT, XLA and CUDA, explained in one sentence that says what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from dovetail_cuda.capabilities import OLDEST_DRIVERS
from dovetail_cuda.libraries import COMPILER_PACKAGES, package_of

MORE_ROOM: Final = (
    "set XLA_PYTHON_CLIENT_MEM_FRACTION below its default of .75, or "
    "XLA_PYTHON_CLIENT_PREALLOCATE=false, or end what else uses the GPU (nvidia-smi lists it)."
)


@dataclass(frozen=True, slots=True)
class Situation:
    """The context that a sentence may need besides the message.

    Attributes:
        generation: the plug-in's generation of CUDA.
        options: those of the client.
        visible: the value of CUDA_VISIBLE_DEVICES; None if it is not set.
    """

    generation: int = 13
    options: Mapping[str, Any] = field(default_factory=dict)
    visible: str | None = None


Answer: TypeAlias = Callable[[re.Match[str], Situation], str]
Table: TypeAlias = tuple[tuple[re.Pattern[str], Answer], ...]


def why_no_client(message: str, situation: Situation) -> str | None:
    """The sentence for a message about creating a client; None if the message is unknown.

    Args:
        message: the library's message.
        situation: its context.
    """
    return _first(_STARTING + _COMPILING, message, situation)


def hides_the_reason(message: str) -> bool:
    """Whether XLA's message is the same for every reason why the driver shows no GPU.

    Args:
        message: the library's message about creating a client.
    """
    return "No visible GPU devices" in message


def why_not_compiled(message: str, situation: Situation) -> str | None:
    """The sentence for a message about compiling, if the machine is the reason; None if it is not,
    or if the message is unknown.

    Args:
        message: the compiler's message.
        situation: its context.
    """
    return _first(_COMPILING, message, situation)


def _first(table: Table, message: str, situation: Situation) -> str | None:
    for pattern, answer in table:
        match = pattern.search(message)
        if match:
            return answer(match, situation)
    return None


def _table(*entries: tuple[str, Answer]) -> Table:
    """Patterns with their explanations; the first match wins."""
    return tuple((re.compile(pattern, re.IGNORECASE), answer) for pattern, answer in entries)


def _fixed(text: str) -> Answer:
    return lambda found, situation: text


def _no_device(found: re.Match[str], situation: Situation) -> str:
    chosen = situation.options.get("visible_devices")
    if chosen is not None:
        numbers = ", ".join(map(str, chosen))
        return (
            f"no GPU is visible: none has the number {numbers} that cuda_visible_devices names "
            "(they count from 0 among those that CUDA_VISIBLE_DEVICES leaves)."
        )
    if situation.visible is not None:
        return (
            f"no GPU is visible: CUDA_VISIBLE_DEVICES={situation.visible} names none of this "
            "machine (nvidia-smi -L lists them)."
        )
    return (
        "no GPU is visible: the NVIDIA driver is there and shows none (nvidia-smi -L lists what it "
        "shows; a container is given GPUs by --gpus=all)."
    )


def _wrong_device(found: re.Match[str], situation: Situation) -> str:
    chosen = situation.options.get("visible_devices")
    if chosen is None:
        return _no_device(found, situation)
    numbers = ", ".join(map(str, chosen))
    which = "a GPU" if len(chosen) == 1 else "at least one GPU"
    return (
        f"cuda_visible_devices={numbers} names {which} that is not there (they count from 0 among "
        "those that CUDA_VISIBLE_DEVICES leaves)."
    )


def _driver_failed(found: re.Match[str], situation: Situation) -> str:
    return (
        f"no GPU is visible, since NVIDIA's driver does not start: {found[1]} (nvidia-smi may say "
        "more)."
    )


def _out_of_memory(found: re.Match[str], situation: Situation) -> str:
    return f"the GPU has not enough free memory to start: {MORE_ROOM}"


def _no_room_for_library(found: re.Match[str], situation: Situation) -> str:
    return (
        f"{found[1]} did not start, most often because there is no memory left for it on the GPU: "
        f"{MORE_ROOM}"
    )


def _old_driver(found: re.Match[str], situation: Situation) -> str:
    return (
        f"the NVIDIA driver is too old for CUDA {situation.generation}: update it to "
        f"{OLDEST_DRIVERS[situation.generation]} or newer."
    )


def _no_compiler(found: re.Match[str], situation: Situation) -> str:
    packages = " ".join(COMPILER_PACKAGES[situation.generation])
    return f"{found[1]}, which XLA compiles with, is not installed: pip install {packages}."


def _no_assembler(found: re.Match[str], situation: Situation) -> str:
    packages = " ".join(COMPILER_PACKAGES[situation.generation])
    return f"ptxas, which XLA compiles with, is not installed: pip install {packages}."


def _no_library(found: re.Match[str], situation: Situation) -> str:
    package = package_of(found[1], situation.generation)
    remedy = f"pip install {package}" if package else "install what brings it"
    return f"{found[1]} is not there: {remedy}."


def _unknown_target(found: re.Match[str], situation: Situation) -> str:
    return (
        f"the program calls {found[1]}, which the plug-in for CUDA {situation.generation} does not "
        "have: it was made for another version of jaxlib or with an extension that is not loaded."
    )


def _unknown_option(found: re.Match[str], situation: Situation) -> str:
    return (
        f"this version of the plug-in does not know the option {found[1]}: install the plug-in of "
        "the version of jaxlib."
    )


def _unknown_architecture(found: re.Match[str], situation: Situation) -> str:
    """The compiler's message is the same for GPUs that are too old and for too new ones."""
    compiler = COMPILER_PACKAGES[situation.generation][0]
    if situation.generation == 12:
        return (
            "this GPU is newer than the compiler of CUDA 12 that is installed: "
            f'pip install -U {compiler}, or pip install "dovetail-cuda[cuda13]".'
        )
    return (
        f"CUDA {situation.generation} does not compile for this GPU: if it is older than Turing, "
        "such as Volta or Pascal, pip uninstall jax-cuda13-plugin jax-cuda13-pjrt and pip install "
        f'"dovetail-cuda[cuda12]"; if it is newer than the compiler, pip install -U {compiler}.'
    )


def _newer_compiler(found: re.Match[str], situation: Situation) -> str:
    compiler = COMPILER_PACKAGES[situation.generation][0]
    return (
        "the NVIDIA driver is older than the compiler that is installed: update the driver, or "
        f'install the compiler of its version, pip install "{compiler}=={situation.generation}.N.*"'
        f", where nvidia-smi shows CUDA {situation.generation}.N."
    )


_STARTING: Final = _table(
    (r"No visible GPU devices|CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice", _no_device),
    (r"CUDA_ERROR_INVALID_DEVICE|invalid device ordinal", _wrong_device),
    (r"Unexpected option name passed to PJRT_Client_Create: (\w+)", _unknown_option),
    (
        r"driver version is insufficient|CUDA_ERROR_INSUFFICIENT_DRIVER|"
        r"cudaErrorInsufficientDriver",
        _old_driver,
    ),
    (
        r"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|unsupported display driver|"
        r"driver version does not match|Driver/library version mismatch|"
        r"kernel version \S+ does not match DSO version",
        _fixed(
            "the NVIDIA driver in the kernel is of another version than libcuda.so.1: restart the "
            "machine after an update, or remove the other libcuda.so.1 from LD_LIBRARY_PATH."
        ),
    ),
    (
        r"CUDA_ERROR_SYSTEM_NOT_READY|system not yet initialized",
        _fixed(
            "the GPUs are not ready, because on machines with NVSwitch the service "
            "nvidia-fabricmanager, of the version of the driver, has to run: start it."
        ),
    ),
    (
        r"CUDA_ERROR_DEVICES?_UNAVAILABLE|all CUDA-capable devices are busy",
        _fixed(
            "every GPU is taken by another process in exclusive mode: wait for it, or set "
            "nvidia-smi -c DEFAULT."
        ),
    ),
    (
        r"RESOURCE_EXHAUSTED|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|"
        r"\bout of memory\b",
        _out_of_memory,
    ),
    (
        r"CUDA_ERROR_UNKNOWN\b|Unknown CUDA error 999",
        _fixed(
            "the NVIDIA driver fails without a reason, as it does after a suspended machine wakes "
            "up: reload it (rmmod nvidia_uvm; modprobe nvidia_uvm) or restart."
        ),
    ),
    # Of the kernels' wheel, for all that the driver says besides.
    (r"operation cu\w+\(.*?\) failed: ([^;.\n]+)", _driver_failed),
)

_COMPILING: Final = _table(
    (r"(CUDNN|CUBLAS|CUSOLVER)_STATUS_(?:NOT_INITIALIZED|ALLOC_FAILED)", _no_room_for_library),
    (r"(DNN) library initialization failed", _no_room_for_library),
    (r"(libdevice) not found", _no_compiler),
    (r"No (PTX) compilation provider|suitable version of (ptxas)", _no_assembler),
    (r"ptxas too old|CUDA_ERROR_NO_BINARY_FOR_GPU|no kernel image", _unknown_architecture),
    (r"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", _newer_compiler),
    (r"(lib[\w.+-]+\.so[\w.]*): cannot open shared object file", _no_library),
    (r"No FFI handler registered for (\S+)", _unknown_target),
)
