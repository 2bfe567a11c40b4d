"""Axes of meshes along which devices must not communicate: `no_collectives`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from dovetail._core.base import config
from dovetail._core.base.errors import ForbiddenCollectiveError
from dovetail._core.base.restoring import Restoring, within
from dovetail._core.base.tracebacks import bounded
from dovetail._core.trace.current_mesh import current_mesh

AxisName = Hashable
P = ParamSpec("P")
R = TypeVar("R")
#: Whether there has been a scope yet: types are looked at no sooner.
used: bool = False


@bounded
class no_collectives(Restoring[None]):
    """A scope in which devices along some axes of a mesh must not communicate.

    It is a context manager, and a decorator of functions. What is traced within it and communicates
    along such an axis is an error: collective operations in `dovetail.shard_map`, and operations
    whose types say that a value is no longer divided along an explicit axis. What the compiler
    inserts along axes of the type `Auto` is not seen. An inner scope replaces an outer one.

    Args:
        axes: a set of names of axes; empty to allow all.

    Raises:
        TypeError: it is not a set.

    Example:
        >>> from dovetail.sharding import PartitionSpec as P, no_collectives
        >>> mesh = dt.make_mesh((1,), ("x",))
        >>> total = lambda part: lax.psum(part, "x")
        >>> with no_collectives({"x"}):
        ...     try:
        ...         dt.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())(jnp.ones(2))
        ...     except dt.errors.ForbiddenCollectiveError as error:
        ...         print(error)
        lax.psum communicates along the axis 'x', which no_collectives forbids here
    """

    __slots__ = ("_axes",)

    def __init__(self, axes: set[AxisName] | frozenset[AxisName]) -> None:
        if not isinstance(axes, (set, frozenset)):
            raise TypeError(
                f"no_collectives takes a set of names of axes, such as {{'x'}}; got {axes!r:.80}"
            )
        global used
        used = True
        self._axes = frozenset(axes)
        cell = config.forbidden_axes
        super().__init__(cell.get_local, partial(cell.set_local, self._axes), cell.set_local)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Run every call of ``function`` so."""
        return within(partial(no_collectives, self._axes), function)


def check_collective(what: str, axes: Iterable[AxisName]) -> None:
    """Raise where `no_collectives` forbids what devices along axes of the current mesh do.

    Args:
        what: the function or primitive.
        axes: the axes of the mesh along which they communicate.

    Raises:
        ForbiddenCollectiveError: it does.
    """
    forbidden = config.forbidden_axes.value
    if not forbidden:
        return
    for axis in axes:
        if axis in forbidden:
            raise ForbiddenCollectiveError(
                f"{what} communicates along the axis {axis!r}, which no_collectives forbids here"
            )


def check_manual(what: str, axes: Iterable[AxisName]) -> None:
    """`check_collective` for those of some axes that a `shard_map` handles."""
    if config.forbidden_axes.value:
        mesh = current_mesh()
        manual = () if mesh is None else mesh.manual_axes
        check_collective(what, [axis for axis in axes if axis in manual])


def check_divided(what: str, operands: Iterable[Any], results: Iterable[Any]) -> None:
    """`check_collective` for the explicit axes that types of operands have, and none of results."""
    if config.forbidden_axes.value:
        after = {axis for aval in results for axis in _explicit_axes(aval)}
        before = [axis for aval in operands for axis in _explicit_axes(aval)]
        check_collective(what, [axis for axis in before if axis not in after])


def _explicit_axes(aval: Any) -> Iterable[AxisName]:
    division = getattr(aval, "division", None)
    return () if division is None else [axis for dim in division.dims for axis in dim]
