"""Collective operations in two steps: a start, and a result that is waited for."""

from __future__ import annotations

from typing import Generic, TypeVar

from dovetail._core.base import pytree
from dovetail._core.base.typing import PyTree
from dovetail._core.ops.parallel.functions import AxisName, IndexGroups, psum_scatter

T = TypeVar("T")


@pytree.register_pytree_node_class
class Future(Generic[T]):
    """The result of an operation that has been started.

    Args:
        value: the result.
    """

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def done(self) -> T:
        """The result."""
        return self._value

    def tree_flatten(self) -> tuple[tuple[T], None]:
        """Children and auxiliary data, for trees."""
        return (self._value,), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: tuple[T]) -> Future[T]:
        """A future of such parts."""
        return cls(children[0])


def psum_scatter_start(
    x: PyTree,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
) -> PyTree:
    """Start `psum_scatter`, whose result is needed later.

    The compiler computes what stands between start and `done` while devices communicate, where it
    can.

    Args:
        x: an array, or a pytree of arrays.
        axis_name: as for `psum_scatter`.
        scatter_dimension: as for `psum_scatter`.
        axis_index_groups: as for `psum_scatter`.
        tiled: as for `psum_scatter`.

    Returns:
        For each array of `x` an object with a method `done`, which returns the part.

    Raises:
        NameError: as `psum_scatter`.
        ValueError: as `psum_scatter`.

    Differs:
        It works on all platforms, with derivatives and under `vmap`: the program holds one
        operation, and the order of its use is up to the compiler.

        >>> start = lambda row: lax.psum_scatter_start(row, "i").done().sum()
        >>> x = jnp.arange(4.0).reshape(2, 2)
        >>> print(dt.vmap(dt.grad(start), axis_name="i")(x)[0])
        [1. 1.]

    Example:
        >>> x = jnp.arange(4.0).reshape(2, 2)
        >>> print(dt.vmap(lambda row: lax.psum_scatter_start(row, "i").done(), axis_name="i")(x))
        [2. 4.]
    """
    parts = psum_scatter(
        x,
        axis_name,
        scatter_dimension=scatter_dimension,
        axis_index_groups=axis_index_groups,
        tiled=tiled,
    )
    return pytree.map(Future, parts)
