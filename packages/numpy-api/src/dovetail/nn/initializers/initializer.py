"""What makes initial values: a function of a key, a shape and a dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dovetail.extend import dtypes
from dovetail.extend.arguments import canonical_shape, no_sharding
from dovetail.typing import Array, DTypeLike, KeyLike, ShapeLike


class Initializer(Protocol):
    """What makes initial values: a function of a key, a shape and a dtype."""

    def __call__(
        self,
        key: KeyLike,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        out_sharding: None = None,
    ) -> Array:
        """An array of that shape and dtype; that of the initializer if `dtype` is None."""


def make_initializer(
    function: str, default: Any, make: Callable[[Any, tuple[int, ...], Any], Any]
) -> Initializer:
    """An initializer, which checks its arguments."""

    def init(
        key: KeyLike,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        out_sharding: None = None,
    ) -> Array:
        no_sharding(f"initializers.{function}", out_sharding)
        sizes = canonical_shape(f"initializers.{function}", shape)
        wanted = _inexact(function, default if dtype is None else dtype)
        made: Array = make(key, sizes, wanted)
        return made

    init.__name__ = init.__qualname__ = function
    return init


def _inexact(function: str, dtype: Any) -> Any:
    """A dtype of floats or complex numbers; the default float if None."""
    if dtype is None:
        return dtypes.default_dtype("f")
    canonical = dtypes.check_user_dtype(dtype, f"initializers.{function}")
    if dtypes.kind_of(canonical) not in ("f", "c"):
        raise ValueError(
            f"initializers.{function}: dtype must be a float or complex dtype, got {canonical}"
        )
    return canonical
