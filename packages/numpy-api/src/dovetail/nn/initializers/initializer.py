"""What makes initial values: a function of a key, a shape and a dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dovetail.extend import dtypes
from dovetail.extend.arguments import canonical_shape, placed
from dovetail.typing import Array, DTypeLike, KeyLike, ShapeLike, Sharding


class Initializer(Protocol):
    """What makes initial values: a function of a key, a shape and a dtype."""

    def __call__(
        self,
        key: KeyLike,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        out_sharding: Sharding | None = None,
    ) -> Array:
        """An array of that shape and dtype; that of the initializer if `dtype` is None.

        It is divided over devices as `out_sharding` says: a `PartitionSpec` over the current mesh,
        or a `NamedSharding`.
        """


def make_initializer(
    function: str, default: Any, make: Callable[[Any, tuple[int, ...], Any, Any], Any]
) -> Initializer:
    """An initializer, which checks its arguments.

    Args:
        function: its name, for messages.
        default: its dtype where none is asked for.
        make: a function of a key, a shape, a dtype and how the result is divided over devices.
    """

    def init(
        key: KeyLike,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        out_sharding: Sharding | None = None,
    ) -> Array:
        sizes = canonical_shape(f"initializers.{function}", shape)
        wanted = _inexact(function, default if dtype is None else dtype)
        made: Array = make(key, sizes, wanted, out_sharding)
        return placed(f"initializers.{function}", made, out_sharding)

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
