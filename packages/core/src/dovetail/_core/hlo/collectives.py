"""Operations in which the devices along axes of a mesh take part together."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base.records import record
from dovetail._core.hlo.calls import CallBuilder
from dovetail._core.hlo.context import entered
from dovetail._core.hlo.mlir import Location, Value, ir
from dovetail._core.ir.avals import make_aval
from dovetail._core.ir.partition_spec import PartitionSpec

__all__ = ["CollectiveBuilder", "ManualAxes"]

AxisName = Hashable
#: The specification of a value that is the same on all devices.
_ALL: Final = PartitionSpec()


@record
class ManualAxes:
    """What a program that handles the part of one device knows of its mesh.

    Attributes:
        mesh: names and sizes of all axes of the mesh.
        names: the axes along which the program handles one part.
    """

    mesh: tuple[tuple[AxisName, int], ...]
    names: frozenset[AxisName]

    def sizes(self, axes: Sequence[AxisName]) -> list[int]:
        """The numbers of devices along some axes."""
        known = dict(self.mesh)
        return [known[name] for name in axes]

    def after(self, axis: AxisName) -> tuple[tuple[AxisName, int], ...]:
        """The axes of the mesh after one."""
        names = [name for name, _ in self.mesh]
        return self.mesh[names.index(axis) + 1 :]

    def groups(
        self, axes: Sequence[AxisName], index_groups: Sequence[Sequence[int]] | None = None
    ) -> np.ndarray[Any, Any]:
        """The groups of devices along axes, as positions in the mesh: a group in each row.

        Args:
            axes: the axes, the one along which neighbours in a group lie last.
            index_groups: a partition of the positions along the axes into smaller groups.
        """
        names = [name for name, _ in self.mesh]
        sizes = [size for _, size in self.mesh]
        positions = np.arange(int(np.prod(sizes))).reshape(sizes)
        chosen = [names.index(name) for name in axes]
        rest = [number for number in range(len(names)) if number not in chosen]
        count = int(np.prod(self.sizes(axes)))
        rows = positions.transpose(*rest, *chosen).reshape(-1, count)
        if index_groups is None:
            return rows
        return np.concatenate([rows[:, list(group)] for group in index_groups])


class CollectiveBuilder(CallBuilder):
    """Collective operations. Groups hold positions in the mesh, a group in each row."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        #: The axes along which the program handles the part of one device, inside `shard_map`.
        self.manual: ManualAxes | None = None

    @property
    def automatic(self) -> tuple[AxisName, ...]:
        """Inside `shard_map`, the axes along which the compiler divides."""
        if self.manual is None or self.partitioning is None:
            return ()
        return tuple([name for name, _ in self.manual.mesh if name not in self.manual.names])

    def handles(self, axes: Sequence[AxisName]) -> bool:
        """Whether the program handles the part of one device along these axes."""
        return self.manual is not None and self.manual.names.issuperset(axes)

    def groups(
        self, axes: Sequence[AxisName], index_groups: Sequence[Sequence[int]] | None = None
    ) -> np.ndarray[Any, Any]:
        """The groups of devices along axes of the mesh.

        Raises:
            NameError: nothing around the operation has such an axis.
        """
        if self.manual is None or not self.handles(axes):
            raise NameError(
                f"the axes {tuple(axes)} are named by a collective operation, and no shard_map or "
                "vmap around it has them"
            )
        return self.manual.groups(axes, index_groups)

    def _collective(self, groups: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {
            "replica_groups": groups.astype(np.int64),
            "channel_handle": self.channel(1, 1),
            "use_global_device_ids": self.unit(),
        }

    def all_reduce(
        self,
        x: Value,
        out: Any,
        groups: np.ndarray[Any, Any],
        operation: Callable[[Value, Value, Any], Value],
    ) -> Value:
        """The values of all devices of a group, combined by a binary operation."""
        if groups.shape[1] == 1:
            return x
        scalar = self.scalar(self.physical(out))
        return self.ops(
            "stablehlo.all_reduce",
            [x],
            [out],
            self._collective(groups),
            [([scalar, scalar], lambda a, b: operation(a, b, scalar))],
        )[0]

    def all_gather(self, x: Value, out: Any, groups: np.ndarray[Any, Any], dimension: int) -> Value:
        """The values of all devices of a group, joined along a dimension."""
        if groups.shape[1] == 1:
            return x
        attributes = {"all_gather_dim": dimension, **self._collective(groups)}
        return self.op("stablehlo.all_gather", [x], out, attributes)

    def reduce_scatter(
        self, x: Value, out: Any, groups: np.ndarray[Any, Any], dimension: int
    ) -> Value:
        """The sum of the values of all devices of a group; each device gets a part of it."""
        if groups.shape[1] == 1:
            return x
        scalar = self.scalar(self.physical(out))
        return self.ops(
            "stablehlo.reduce_scatter",
            [x],
            [out],
            {"scatter_dimension": dimension, **self._collective(groups)},
            [([scalar, scalar], lambda a, b: self.add(a, b, scalar))],
        )[0]

    def all_to_all(
        self, x: Value, out: Any, groups: np.ndarray[Any, Any], split: int, concat: int
    ) -> Value:
        """Parts along the dimension `split` go one to each device, which joins them along another.

        Args:
            x: the value.
            out: the aval of the result.
            groups: the groups of devices.
            split: the dimension that is divided.
            concat: the dimension along which parts are joined.
        """
        if groups.shape[1] == 1:
            return x
        attributes = self._collective(groups)
        del attributes["use_global_device_ids"]
        attributes |= {
            "split_dimension": split,
            "concat_dimension": concat,
            "split_count": groups.shape[1],
        }
        return self.op("stablehlo.all_to_all", [x], out, attributes)

    def collective_permute(
        self, x: Value, out: Any, groups: np.ndarray[Any, Any], pairs: Sequence[tuple[int, int]]
    ) -> Value:
        """Values go from device to device; one that gets none has zeros.

        Args:
            x: the value.
            out: its aval.
            groups: the groups of devices.
            pairs: source and target of each value, as positions in a group.
        """
        between = [(row[source], row[target]) for row in groups for source, target in pairs]
        attributes = {
            "source_target_pairs": np.asarray(between, np.int64).reshape(-1, 2),
            "channel_handle": self.channel(1, 1),
        }
        return self.op("stablehlo.collective_permute", [x], out, attributes)

    def axis_index(self, axes: Sequence[AxisName], out: Any) -> Value:
        """The position of the device along axes of the mesh."""
        self.groups(axes)
        assert self.manual is not None
        number = make_aval((), np.dtype(np.uint32))
        rest = frozenset(self.automatic)
        if rest and any(n > 1 for n in self.manual.sizes(axes)):
            # The number of the device is known only where all axes are manual.
            (place,) = self._manual_computation(
                lambda: [self._position(axes, number)],
                (),
                (),
                [number],
                [number],
                rest,
                (),
                (_ALL,),
            )
        else:
            place = self._position(axes, number)
        return self.convert(place, number, out)

    def _position(self, axes: Sequence[AxisName], number: Any) -> Value:
        assert self.manual is not None
        result = self.constant(0, number)
        device = None
        for axis in axes:
            (size,) = self.manual.sizes([axis])
            if size == 1:
                continue
            if device is None:
                device = self.op("stablehlo.partition_id", [], number)
            stride = math.prod(n for _, n in self.manual.after(axis))
            place = self.div(device, self.constant(stride, number), number)
            place = self.rem(place, self.constant(size, number), number)
            result = self.mul(result, self.constant(size, number), number)
            result = self.add(result, place, number)
        return result

    def manual_computation(
        self,
        body: Callable[..., Sequence[Value]],
        values: Sequence[Value],
        avals: Sequence[Any],
        outs: Sequence[Any],
        *,
        mesh: tuple[tuple[AxisName, int], ...],
        axes: frozenset[AxisName],
        in_specs: Sequence[PartitionSpec],
        out_specs: Sequence[PartitionSpec],
        effects: Iterable[Any] = (),
    ) -> list[Value]:
        """Operations that each device of a mesh runs on its part of some values.

        Args:
            body: maps the parts of the values to the parts of the results.
            values: the values.
            avals: the avals of their parts.
            outs: the avals of the parts of the results.
            mesh: names and sizes of all axes of the mesh.
            axes: the axes along which devices have parts; the compiler decides about the others.
            in_specs: how each value is divided over these axes.
            out_specs: how each result is.
            effects: the effects of the operations.

        Returns:
            The results, whole.

        Raises:
            ValueError: the program runs on one device, and there are several in the mesh.
            NotImplementedError: there are ordered effects or symbolic sizes, and several devices.
        """
        outer = self.manual
        names = axes if outer is None else axes | outer.names
        self.manual = ManualAxes(mesh, names)
        try:
            if self.partitioning is None:
                if any(size > 1 for _, size in mesh):
                    described = ", ".join(f"{name!r}: {size}" for name, size in mesh)
                    raise ValueError(
                        f"a shard_map over the axes {described} is part of a program for one "
                        "device. Give shard_map a mesh of devices, not an abstract one, or pass "
                        "arrays that are placed on such a mesh"
                    )
                return list(body(*values))
            if self.dimension_values:
                raise NotImplementedError(
                    "shard_map: the sizes of what several devices share are symbolic, and XLA "
                    "makes no static shapes of them there; export it for known sizes"
                )
            if any(getattr(effect, "ordered", False) for effect in effects):
                raise NotImplementedError(
                    "shard_map: several devices have no order among them, and what it runs has "
                    "ordered effects (ordered=True of a callback or of debug.print)"
                )
            return self._manual_computation(
                body, values, avals, outs, self.avals_out, axes, in_specs, out_specs
            )
        finally:
            self.manual = outer

    def _manual_computation(
        self,
        body: Callable[..., Sequence[Value]],
        values: Sequence[Value],
        avals: Sequence[Any],
        outs: Sequence[Any],
        whole: Sequence[Any],
        axes: frozenset[AxisName],
        in_specs: Sequence[PartitionSpec],
        out_specs: Sequence[PartitionSpec],
    ) -> list[Value]:
        assert self.partitioning is not None
        assert self.manual is not None
        mesh = self.manual.mesh
        operation = ir.Operation.create(
            "sdy.manual_computation",
            results=[self.types[out] for out in whole],
            operands=list(values),
            attributes={
                "in_shardings": self.partitioning.of_values(mesh, in_specs, avals, axes),
                "out_shardings": self.partitioning.of_values(mesh, out_specs, outs, axes),
                "manual_axes": self.partitioning.manual_axes(mesh, axes),
            },
            regions=1,
            loc=self.location,
        )
        block = operation.regions[0].blocks.append(
            *[self.types[aval] for aval in avals], arg_locs=[self.location] * len(avals)
        )
        literals, tokens = self.literals, self.tokens
        self.literals, self.tokens = {}, {}
        with entered(ir.InsertionPoint(block)):
            results = body(*block.arguments)
            ir.Operation.create("sdy.return", operands=list(results), loc=self.location)
        self.literals, self.tokens = literals, tokens
        return list(operation.results)
