"""Where programs over several devices run: the devices, and how arguments are divided."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base.bindings import _hlo
from dovetail._core.ir.avals import outer_aval
from dovetail._core.ir.division import Division
from dovetail._core.ir.manual_axis_type import invarying
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.runtime.devices.named_sharding import NamedSharding, hlo_sharding
from dovetail._core.runtime.devices.sharding import SingleDeviceSharding
from dovetail._core.trace.current_mesh import current_mesh

__all__ = ["Placement", "on_mesh_of_one"]


class Placement:
    """The devices of a program, and the shardings of its arguments. Equal ones are one object.

    It stands where programs for one device have a sharding, and for one device if data are in
    several of its memories.

    Args:
        shardings: for each argument, the sharding that it has on these devices, or None.
        results: for each result, the sharding that is asked for, or None; all None if None.
        otherwise: a sharding on these devices, in case that all are None.
    """

    __slots__ = (
        "_device",
        "_device_list",
        "_internal_device_list",
        "_plugin_client",
        "_replicated",
        "_shardings",
        "asked",
    )

    memory_kind = None
    _device: Any
    _device_list: list[Any]
    _internal_device_list: Any
    _plugin_client: None
    _shardings: tuple[Any, ...]

    asked: tuple[Any, ...] | None
    """The shardings that are asked for the results; None if they are left to the compiler."""
    _replicated: Any
    """The sharding of what all devices hold, in the memory in which they compute."""

    def __new__(
        cls, shardings: Sequence[Any], results: Sequence[Any] | None = None, otherwise: Any = None
    ) -> Placement:
        asked = None if results is None or set(results) == {None} else tuple(results)
        key = (tuple(shardings), asked, otherwise)
        found = _interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found._shardings, found.asked = key[0], asked
            known = [s for s in (*key[0], *(asked or ()), otherwise) if s is not None]
            first: Any = next((s for s in known if isinstance(s, NamedSharding)), known[0])
            found._replicated = (
                SingleDeviceSharding(first._device)
                if type(first) is SingleDeviceSharding
                else NamedSharding(first.mesh, PartitionSpec())
            )
            found._device = first._device
            found._device_list = first._device_list
            found._internal_device_list = first._internal_device_list
            found._plugin_client = None
            found = _interned.setdefault(key, found)
        return found

    def _of_argument(self, number: int) -> Any:
        """The sharding of an argument."""
        given = self._shardings[number]
        return self._replicated if given is None else given

    def _of_results(self, executable: Any, ranks: Sequence[int]) -> list[Any]:
        """The shardings that the compiler has chosen for the results.

        Args:
            executable: the program.
            ranks: the ranks of the results.
        """
        asked = self.asked or (None,) * len(ranks)
        if len(self._device_list) == 1:
            return [self._replicated if known is None else known for known in asked]
        found = executable.get_output_shardings()
        return [
            self._as_given(self._named(_hlo.HloSharding.from_proto(own), ndim), ndim)
            if known is None
            else known
            for own, ndim, known in zip(found, ranks, asked, strict=False)
        ]

    def _typing(self, avals: Sequence[Any]) -> Placement:
        """The same, for results that are divided as their types say over explicit axes.

        Where the compiler decides about other axes, it says how results are divided over all.
        """
        mesh = getattr(self._replicated, "mesh", None)
        if mesh is None or not mesh.are_all_axes_explicit:
            _refuse_sums(avals, mesh)
            return self
        asked = self.asked or (None,) * len(avals)
        results = [
            # XLA does not divide what is empty.
            None
            if aval.size == 0
            else self._as_given(self._replicated, aval.ndim)
            if aval.division is None and aval.manual_axis_type is invarying
            else self._as_given(self._replicated.update(spec=_typed_spec(aval)), aval.ndim)
            for aval in map(outer_aval, avals)
        ]
        results = [b if a is None else a for a, b in zip(asked, results, strict=True)]
        return Placement(self._shardings, results, self._replicated)

    def _named(self, tiling: Any, ndim: int) -> Any:
        """The sharding over a mesh of the arguments that is such a tiling.

        Raises:
            NotImplementedError: it is none over its axes, such as a part of one.
        """
        mesh = self._replicated.mesh
        if tiling.is_replicated():
            return self._replicated
        tiles = list(tiling.tile_assignment_dimensions())[:ndim]
        others = [s.mesh for s in self._shardings if isinstance(s, NamedSharding)]
        for own in dict.fromkeys((mesh, *others)):
            for entries in _entries(tiles, own.shape_tuple):
                spec = PartitionSpec(*entries)
                if hlo_sharding(own.shape_tuple, spec, ndim) == tiling:
                    return NamedSharding(own, _without_end(spec), self._replicated.memory_kind)
        raise NotImplementedError(
            f"the compiler divides a result as {tiling}, which is not along axes of {mesh}; ask "
            "for another sharding of it with out_shardings of jit"
        )

    def _as_given(self, sharding: Any, ndim: int) -> Any:
        """A sharding of a result, in the words of an argument that is divided alike.

        Who divides by ``P("x", None)`` finds the same, and not ``P("x")``.
        """
        for given in self._shardings:
            if (
                isinstance(given, NamedSharding)
                and given.mesh == sharding.mesh
                and len(given.spec) <= ndim
                and _without_end(given.spec) == sharding.spec
                and given.memory_kind == sharding.memory_kind
            ):
                return given
        return sharding


def on_mesh_of_one(sharding: Any, aval: Any) -> Any:
    """The sharding of a result on one device, over the mesh that its type speaks of."""
    divided = aval.division
    own = current_mesh() if divided is None else divided.mesh
    if divided is None and (aval.manual_axis_type is invarying or own is None):
        return sharding
    if own.size > 1 or type(sharding) is not SingleDeviceSharding:
        return sharding  # of a larger mesh, no operand says which devices it has
    devices = np.empty(own.axis_sizes, object)
    devices.fill(sharding._device)
    mesh = Mesh(devices, own.axis_names, axis_types=own.axis_types)
    return NamedSharding(mesh, _typed_spec(aval), sharding.memory_kind)


def _refuse_sums(avals: Sequence[Any], mesh: Mesh | None) -> None:
    """Refuse results whose types say what their shardings cannot.

    Raises:
        NotImplementedError: one is unreduced or reduced along an axis of the mesh.
    """
    for number, aval in enumerate(avals):
        if aval.manual_axis_type is not invarying:
            raise NotImplementedError(
                f"result {number} of a program is {aval.short_name()}, and arrays are unreduced or "
                f"reduced only over a mesh whose axes are all of the type Explicit, not {mesh}; "
                "end the program with dovetail.reshard"
            )


def _typed_spec(aval: Any) -> PartitionSpec:
    """The specification that a type says of a result."""
    spec = PartitionSpec() if aval.division is None else _short(aval.division)
    sums = aval.manual_axis_type
    if sums is invarying:
        return spec
    return spec.update(unreduced=sums.unreduced, reduced=sums.reduced)


def _short(divided: Division) -> PartitionSpec:
    """The specification of a division, without entries for the last dimensions."""
    return _without_end(PartitionSpec(*divided.spec))


def _without_end(spec: PartitionSpec) -> PartitionSpec:
    """A specification without entries for the last dimensions if they are not divided."""
    entries = list(spec.partitions)
    while entries and entries[-1] is None:
        entries.pop()
    return spec.update(entries)


_interned: Final[dict[Any, Placement]] = {}
clients.on_clear(_interned.clear)


def _entries(tiles: Sequence[int], axes: Sequence[tuple[Any, int]]) -> Iterator[list[Any]]:
    """The ways of dividing dimensions into so many parts over axes, each used at most once."""
    if not tiles:
        yield []
        return
    for count in range(len(axes) + 1):
        for chosen in itertools.permutations(axes, count):
            sizes = [size for _, size in chosen]
            if math.prod(sizes) != tiles[0] or 1 in sizes:
                continue
            rest = [axis for axis in axes if axis not in chosen]
            names = tuple(name for name, _ in chosen)
            for others in _entries(tiles[1:], rest):
                yield [names or None, *others]
