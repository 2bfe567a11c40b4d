"""The namespace inspection of the Python array API standard."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from dovetail import enable_x64, local_devices
from dovetail.extend import dtypes
from dovetail.extend.arrays import present_default_device

_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_UNIONS: Final = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


class NamespaceInfo:
    """The object returned by ``dovetail.numpy.__array_namespace_info__()``.

    Example:
        >>> import dovetail.numpy as jnp
        >>> info = jnp.__array_namespace_info__()
        >>> info.default_dtypes()["integral"], sorted(info.dtypes(kind="real floating"))
        (dtype('int32'), ['float32'])
    """

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """The capabilities to rely on, even in compiled functions, where sizes must be known."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device for arrays if none is requested."""
        return present_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of arrays if none is requested.

        Args:
            device: ignored, since they are the same on all devices.
        """
        return {
            "real floating": dtypes.default_dtype("f"),
            "complex floating": dtypes.default_dtype("c"),
            "integral": dtypes.default_dtype("i"),
            "indexing": dtypes.default_dtype("i"),
        }

    def devices(self) -> tuple[Any, ...]:
        """The devices of the default platform that this process can address."""
        return tuple(local_devices())

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """The dtypes of the standard, by name; those of 64 bits only if enabled.

        Args:
            device: ignored, since they are the same on all devices.
            kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
                "complex floating", "numeric", or a tuple of several; all if None.

        Raises:
            ValueError: there is no such kind.
        """
        kinds = tuple(_KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        names: list[str] = []
        for one in kinds:
            if one not in _KINDS and one not in _UNIONS:
                raise ValueError(
                    f"dtypes: there is no kind {one!r}; it is one of "
                    f"{', '.join((*_KINDS, *_UNIONS))}"
                )
            for part in _UNIONS.get(one, (one,)):
                names += _KINDS[part]
        named = {name: np.dtype(name) for name in names}
        if enable_x64.value:
            return named
        return {n: d for n, d in named.items() if dtypes.canonicalize_dtype(d) == d}
