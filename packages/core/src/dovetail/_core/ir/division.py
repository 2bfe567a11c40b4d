"""How the dimensions of an array are divided over the explicit axes of a mesh, as its type says."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import prod
from typing import Any, Final, final
from weakref import WeakValueDictionary

from dovetail._core.ir.abstract_mesh import AbstractMesh
from dovetail._core.ir.partition_spec import PartitionSpec, axes_of

__all__ = ["Axes", "Dims", "Division", "asked", "batched_dims", "division", "division_of_spec"]

#: The axes that one dimension is divided over, the first one most coarsely.
Axes = tuple[Hashable, ...]
#: The axes of each dimension.
Dims = tuple[Axes, ...]


@final
class Division:
    """The axes that each dimension is divided over, of which there are some.

    There is one object for equal ones, so that types that hold them are compared by identity. What
    is not divided has None in its type.

    Attributes:
        mesh: the mesh.
        dims: for each dimension, axes of the type `Explicit`.
        unreduced: where it is what an operation is asked for, the axes along which the result is a
            sum that is not added up. Types say this by themselves.
    """

    __slots__ = ("__weakref__", "dims", "mesh", "unreduced")

    mesh: AbstractMesh
    dims: Dims
    unreduced: frozenset[Hashable]

    @property
    def spec(self) -> PartitionSpec:
        """The same as a specification, with an entry for each dimension."""
        return PartitionSpec(*map(_entry, self.dims), unreduced=self.unreduced)

    @property
    def sizes(self) -> dict[Hashable, int]:
        """The sizes of the axes of the mesh."""
        return dict(self.mesh.shape_tuple)

    def parts(self, dimension: int) -> int:
        """Into how many parts a dimension is divided."""
        sizes = self.sizes
        return prod(sizes[axis] for axis in self.dims[dimension])

    def shown(self, dimension: int) -> str:
        """What stands behind the size of a dimension where a type is printed."""
        return shown_axes(self.dims[dimension])

    def without(self, dimension: int) -> Division | None:
        """The same for an array without one of the dimensions."""
        return division(self.mesh, self.dims[:dimension] + self.dims[dimension + 1 :])

    def inserted(self, dimension: int, axes: Axes = ()) -> Division | None:
        """The same for an array with one more dimension."""
        return division(self.mesh, (*self.dims[:dimension], axes, *self.dims[dimension:]))

    def permuted(self, order: Iterable[int]) -> Division:
        """What is asked of a result whose dimensions are these, in that order."""
        return asked(self.mesh, [self.dims[d] for d in order], self.unreduced)

    def __repr__(self) -> str:
        return str(self.spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return (asked, (self.mesh, self.dims, self.unreduced))

    def __copy__(self) -> Division:
        return self

    def __deepcopy__(self, memo: Any) -> Division:
        return self


def shown_axes(axes: Sequence[Hashable]) -> str:
    """Axes as they stand behind the size of a dimension: ``@x`` or ``@(x,y)``."""
    if not axes:
        return ""
    return f"@{axes[0]}" if len(axes) == 1 else f"@({','.join(map(str, axes))})"


def _entry(axes: Axes) -> Any:
    return None if not axes else axes[0] if len(axes) == 1 else axes


_interned: Final[WeakValueDictionary[Any, Division]] = WeakValueDictionary()


def division(mesh: AbstractMesh, dims: Iterable[Axes]) -> Division | None:
    """The `Division` of an array; None if no dimension is divided."""
    dims = tuple(dims)
    if not any(dims):
        return None
    return asked(mesh, dims)


def asked(
    mesh: AbstractMesh, dims: Iterable[Axes], unreduced: frozenset[Hashable] = frozenset()
) -> Division:
    """A `Division` that may divide no dimension: what an operation is asked for.

    Types have None in its place.
    """
    dims = tuple(dims)
    key = (mesh, dims, unreduced)
    found = _interned.get(key)
    if found is None:
        candidate = object.__new__(Division)
        candidate.mesh, candidate.dims, candidate.unreduced = mesh, dims, unreduced
        found = _interned.setdefault(key, candidate)
    return found


def batched_dims(wanted: Dims, at: int, own: Division | None, dim: int) -> Dims:
    """The axes of each dimension of a batch of values that are divided as wanted.

    Args:
        wanted: the axes of the dimensions of each value.
        at: the dimension of the batch among them.
        own: how the operand is divided that the batch comes from.
        dim: the dimension of the batch in it, which stays divided where it can.
    """
    used = [axis for axes in wanted for axis in axes]
    over = () if own is None else tuple([axis for axis in own.dims[dim] if axis not in used])
    return (*wanted[:at], over, *wanted[at:])


def division_of_spec(mesh: AbstractMesh, spec: PartitionSpec, ndim: int) -> Division | None:
    """What the type of an array says that is divided by a specification.

    Args:
        mesh: the mesh, of whose axes those of the type `Explicit` count.
        spec: the specification.
        ndim: the rank of the array.
    """
    explicit = mesh.explicit_axes
    if not explicit:
        return None
    dims = [tuple([axis for axis in axes_of(entry) if axis in explicit]) for entry in spec]
    return division(mesh, (*dims, *[()] * (ndim - len(dims))))
