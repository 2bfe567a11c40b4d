"""The backend under test, as the tests of the suites see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dovetail as dt
from dovetail._core.plugins.loading import LoadedBackend
from dovetail._core.plugins.manager import manager

__all__ = ["BackendUnderTest", "connect", "read"]

NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class BackendUnderTest:
    """A backend with its devices.

    Attributes:
        loaded: the plug-in and its description.
        devices: the devices that this process can address. The first is the default device while
            a test runs.
    """

    loaded: LoadedBackend
    devices: Sequence[Any]

    @property
    def platform(self) -> str:
        """The platform's name."""
        return self.loaded.platform

    @property
    def capabilities(self) -> frozenset[str]:
        """What the backend declares that it can do."""
        return self.loaded.info.capabilities

    @property
    def device(self) -> Any:
        """The device that computes."""
        return self.devices[0]

    @property
    def widest(self) -> np.dtype[Any]:
        """The widest float dtype of the backend."""
        return np.dtype(np.float64 if "float64" in self.capabilities else np.float32)

    @property
    def precision(self) -> float:
        """The allowed error of a short computation in `widest`, compared with the host."""
        return 1e-10 if "float64" in self.capabilities else 2e-4

    def within(self, tolerance: float) -> float:
        """The allowed error of results, as a multiple of `precision`.

        It is bounded: in 32-bit floats, a multiple of thousands would allow anything, and a
        multiple of a few would allow the error of bfloat16.
        """
        return min(self.precision * tolerance, 5e-4)

    def fitted(self, tree: Any) -> Any:
        """NumPy arrays of float64 and complex128 in a tree, in the widest dtype the backend has."""
        if "float64" in self.capabilities:
            return tree
        narrow = {"float64": np.float32, "complex128": np.complex64}
        return dt.tree.map(
            lambda x: x.astype(narrow[x.dtype.name]) if x.dtype.name in narrow else x, tree
        )

    def put(self, value: Any, device: Any = None) -> Any:
        """A host value on the first device, or on another one, committed to it."""
        return dt.device_put(value, self.device if device is None else device)

    def refuses(self, dtype: Any) -> str | None:
        """The capability that arrays of a dtype need, if the backend does not declare it."""
        name = np.dtype(dtype).name
        needed = {
            "float64": ["float64"],
            "int64": ["float64"],
            "uint64": ["float64"],
            "complex64": ["complex"],
            "complex128": ["complex", "float64"],
        }
        missing = [n for n in needed.get(name, ()) if n not in self.capabilities]
        return missing[0] if missing else None


def connect(platform: str) -> BackendUnderTest:
    """Load a backend and create its client.

    Raises:
        BackendUnavailableError: it cannot be used; the message gives the reason.
    """
    loaded = manager().require(platform)
    return BackendUnderTest(loaded, tuple(dt.local_devices(backend=loaded.platform)))


def read(array: Any) -> NDArray:
    """The value of an array, once it is computed."""
    return np.asarray(array)


def described(function: Callable[..., Any]) -> str:
    """The first paragraph of a function's docstring, or its name."""
    return (function.__doc__ or function.__name__).strip().split("\n\n")[0].replace("\n", " ")
