"""The runtime: devices, buffers, and programs as loops over their equations.

The protocols are `dovetail.extend.Client`, `Device`, `Buffer` and `Executable`. All data is on the
host, and everything is computed before a call returns.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail.extend import CompileRequest, Fallback, MissingRuleError, evaluate
from dovetail_backend_numpy.rules import RULES

OPTIONS = ("fallback", "num_devices")


@dataclass(frozen=True, eq=False)
class Device:
    """One of the devices, which differ by their number."""

    id: int
    client: Client
    process_index: int = 0
    platform: str = "numpy"
    device_kind: str = "host"

    def memory_stats(self) -> dict[str, int] | None:
        """Bytes in use and limits; None, since nothing is counted."""
        return None

    def __repr__(self) -> str:
        return f"{self.platform}:{self.id}"


class Buffer:
    """The elements of an array."""

    def __init__(self, value: Any) -> None:
        self.value: np.ndarray[Any, Any] | None = np.asarray(value)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.to_numpy().nbytes

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The elements; core makes sure that nobody writes to them."""
        assert self.value is not None, "core asks nothing of a buffer that it has deleted"
        return self.value

    def is_ready(self) -> bool:
        """Whether they are computed: always."""
        return True

    def block_until_ready(self) -> None:
        """Wait until they are computed."""

    def delete(self) -> None:
        """Free the memory."""
        self.value = None


class Executable:
    """A program: its equations are computed one by one.

    Args:
        request: the program.
        fallback: computes what there is no rule for; None to refuse that.
    """

    def __init__(self, request: CompileRequest, fallback: Fallback | None) -> None:
        assert request.jaxpr is not None, "BackendInfo.programs says that jaxprs are wanted"
        self.jaxpr = request.jaxpr
        self.platform = request.platform
        self.fallback = fallback

    def execute(self, arguments: Sequence[Buffer]) -> list[Buffer]:
        """Run the program."""
        values = [buffer.to_numpy() for buffer in arguments]
        results = evaluate(self.jaxpr, values, platform=self.platform, compute=self.compute)
        # An argument may be a result; a buffer of its own keeps one when the other is deleted.
        return [Buffer(result) for result in results]

    def compute(self, primitive: Any, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """One equation: by this backend's rule, by the primitive's reference, or not at all."""
        rule = RULES.get(primitive.name)
        result = NotImplemented if rule is None else rule(*operands, **params)
        if result is not NotImplemented or primitive.has_rule("reference"):
            return result
        if self.fallback is not None:
            return self.fallback(primitive, operands, params)
        raise MissingRuleError(
            f"the platform numpy has no {primitive.name!r}: add a rule for it to "
            "dovetail_backend_numpy.rules, give the primitive a reference, or set "
            "NUMPY_FALLBACK=cpu to have the CPU backend compute it"
        )

    def as_text(self) -> str:
        """The program, which is run as it is written."""
        return str(self.jaxpr)


class Client:
    """All devices of a process.

    Args:
        options: `num_devices` and `fallback`, each of them optional; what is left out is taken from
            the environment variables `NUMPY_NUM_DEVICES` and `NUMPY_FALLBACK`.

    Raises:
        TypeError: an option is unknown or of the wrong type.
        ValueError: `num_devices` is not positive.
    """

    platform_version = f"NumPy {np.__version__}"

    def __init__(self, options: Mapping[str, object]) -> None:
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown:
            known = ", ".join(OPTIONS)
            raise TypeError(f"the numpy backend has no option {unknown[0]}; it has {known}")
        named = os.environ.get("NUMPY_NUM_DEVICES", "1")
        count = options.get("num_devices", int(named) if named.isdecimal() else named)
        if type(count) is not int:
            raise TypeError(f"numpy option num_devices must be an int, got {count!r}")
        if count < 1:
            raise ValueError(f"numpy option num_devices must be positive, got {count}")
        fallback = options.get("fallback", os.environ.get("NUMPY_FALLBACK", ""))
        if not isinstance(fallback, str):
            raise TypeError(f"numpy option fallback must be a platform's name, got {fallback!r}")
        self.fallback = Fallback("numpy", fallback) if fallback else None
        self._devices = [Device(number, self) for number in range(count)]

    def devices(self) -> list[Device]:
        """All devices."""
        return self._devices

    def local_devices(self) -> list[Device]:
        """All devices: there are no other processes."""
        return self._devices

    def process_index(self) -> int:
        """The number of this process."""
        return 0

    def put(self, value: np.ndarray[Any, Any], device: Device) -> Buffer:
        """Copy a value: its owner may write to it later."""
        return Buffer(np.array(value))

    def copy(self, buffer: Buffer, device: Device) -> Buffer:
        """Copy a buffer; all devices are in the same memory."""
        return Buffer(np.array(buffer.to_numpy()))

    def compile(self, request: CompileRequest) -> Executable:
        """Prepare a program."""
        unknown = sorted(set(request.options) - {"optimization_level"})
        if unknown:
            raise ValueError(f"the numpy backend has no compiler option {', '.join(unknown)}")
        return Executable(request, self.fallback)
