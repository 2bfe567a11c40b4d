"""Types of values that libraries teach JAX to take as arrays, in dictionaries by type.

Here a type says so itself, by a method `__jax_array__`: a function that is set for a type becomes
that method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.ir.avals import aval_of

Handler = Callable[[Any], Any]


class HandlerView(MutableMapping[type, Handler]):
    """Functions of values, by the type of the value.

    Args:
        default: the function for types that are arrays already.
        convert: whether a function that is set makes an array, and becomes `__jax_array__`.
    """

    def __init__(self, default: Handler, *, convert: bool) -> None:
        self._default = default
        self._convert = convert
        self._written: dict[type, Handler] = {}

    def __setitem__(self, kind: type, handler: Handler) -> None:
        if self._convert and handler is not self._default:
            setattr(kind, "__jax_array__", lambda value: handler(value))  # noqa: B010
        self._written[kind] = handler

    def __getitem__(self, kind: type) -> Handler:
        return self._written.get(kind, self._default)

    def __delitem__(self, kind: type) -> None:
        del self._written[kind]
        if self._convert and "__jax_array__" in vars(kind):
            delattr(kind, "__jax_array__")

    def __iter__(self) -> Iterator[type]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)


def _canonical(value: Any) -> Any:
    return np.asarray(value, dtypes.canonicalize_dtype(value.dtype))


canonicalize_dtype_handlers: Final = HandlerView(_canonical, convert=True)
"""Functions that make arrays, of dtypes that devices have, of values of a type."""

pytype_aval_mappings: Final = HandlerView(aval_of, convert=False)
"""Functions that tell the aval of values of a type."""
