"""The primitive `shard_map`: each device runs a program on its part of the arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base.counting import counted
from dovetail._core.base.flags import Flags, partition
from dovetail._core.basis.manual_axes import (
    in_order,
    reduced_vary_cast_p,
    unreduced_vary_cast_p,
    vary_like,
    vary_reduced_cast_p,
    vary_unreduced_cast_p,
)
from dovetail._core.basis.operands import literal_like
from dovetail._core.basis.structural import is_linear, reshape
from dovetail._core.ir.abstract_mesh import AbstractMesh, AxisType
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ir.division import Division, division, division_of_spec
from dovetail._core.ir.jaxpr import ClosedJaxpr, JaxprEqn, no_effects
from dovetail._core.ir.manual_axis_type import ManualAxisType
from dovetail._core.ir.partition_spec import PartitionSpec, axes_of
from dovetail._core.ir.walk import Reduction, Wanted
from dovetail._core.ops.calls.program_primitive import ProgramPrimitive
from dovetail._core.ops.elementwise.arithmetic import div
from dovetail._core.ops.indexing.dynamic_slicing import dynamic_index_in_dim
from dovetail._core.ops.parallel.reductions import sum_over
from dovetail._core.ops.reduction.reductions import argmax
from dovetail._core.trace.current_mesh import mesh_scope
from dovetail._core.trace.divisions import lenient
from dovetail._core.trace.manual_axes import types_of
from dovetail._core.trace.named_axes import BatchAxis, NamedAxis, named_axes
from dovetail._core.trace.state import state
from dovetail._core.trace.zeros import wanted_among, with_zeros, without_zeros
from dovetail._core.transform.derived import (
    batch_of,
    derived_info,
    divided,
    function_of,
    hoist_consts,
    jvp_of,
    linearization_of,
    named_batch_of,
    reference_of,
    remembered,
    transposition_of,
    varying,
)
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

AxisName = Hashable
Specs = tuple[PartitionSpec, ...]


def spec_axes(spec: PartitionSpec) -> tuple[AxisName, ...]:
    """The axes that a specification names."""
    return tuple([axis for entry in spec for axis in axes_of(entry)])


def scaled(shape: Sequence[int], spec: PartitionSpec, sizes: Any, down: bool) -> tuple[int, ...]:
    """The shape of a part of an array, or of an array from that of a part."""
    result = list(shape)
    for number, entry in enumerate(spec):
        count = math.prod(sizes[axis] for axis in axes_of(entry))
        result[number] = result[number] // count if down else result[number] * count
    return tuple(result)


def mesh_inside(mesh: Any, axes: frozenset[AxisName]) -> AbstractMesh:
    """The mesh of what runs on one device along some axes."""
    inner: AbstractMesh = mesh.abstract_mesh.update_axis_types(dict.fromkeys(axes, AxisType.Manual))
    return inner


def part_division(own: Division | None, mesh: AbstractMesh) -> Division | None:
    """How the part of an array is divided over axes that `shard_map` leaves alone.

    Args:
        own: how the array is divided.
        mesh: the mesh of what runs on one device.
    """
    if own is None:
        return None
    explicit = mesh.explicit_axes
    return division(mesh, [tuple([a for a in axes if a in explicit]) for axes in own.dims])


def _whole_division(
    part: Division | None, spec: PartitionSpec, mesh: AbstractMesh, ndim: int
) -> Division | None:
    """How an array is divided whose parts are divided over the other axes."""
    own = division_of_spec(mesh, spec, ndim)
    if part is None:
        return own
    if own is None:
        return division(mesh, part.dims)
    return division(mesh, [(*a, *b) for a, b in zip(own.dims, part.dims, strict=True)])


@contextmanager
def inside(mesh: Any, axes: frozenset[AxisName], check_vma: bool) -> Iterator[None]:
    """A scope for what runs on one device: its axes have names, and are manual ones of the mesh."""
    own = [
        NamedAxis(name, size, is_checked=check_vma)
        for name, size in mesh.shape_tuple
        if name in axes
    ]
    with named_axes(own), mesh_scope(mesh_inside(mesh, axes)):
        yield


class ShardMap(ProgramPrimitive):
    """Runs a program on each device of a mesh.

    Its parameters, besides the program, which takes and returns what one device has:

    - `mesh`: the mesh, with or without its devices.
    - `newly_manual_axes`: the axes over which arguments and results are divided. Along the others
      the compiler divides what the program computes.
    - `in_specs`, `out_specs`: how each argument and result is divided over them.
    - `check_vma`: whether types say along which axes values vary.
    """

    name = "shard_map"
    device_parameter: ClassVar[str] = "mesh"

    def inside(self, params: dict[str, Any]) -> Any:
        """The scope in which its program is derived."""
        return inside(params["mesh"], params["newly_manual_axes"], params["check_vma"])

    def abstract(self, *avals: Any, **params: Any) -> Any:
        closed: ClosedJaxpr = params["jaxpr"]
        sizes, axes = params["mesh"].shape, params["newly_manual_axes"]
        for aval, own, spec in zip(avals, closed.in_avals, params["in_specs"], strict=True):
            if scaled(aval.shape, spec, sizes, True) != own.shape or aval.dtype != own.dtype:
                raise TypeError(f"shard_map takes {own} on each device, got {aval} with {spec}")
        mesh: AbstractMesh = params["mesh"].abstract_mesh
        return [
            aval.update(
                shape=scaled(aval.shape, spec, sizes, False), vma=aval.vma - axes
            ).with_division(_whole_division(aval.division, spec, mesh, aval.ndim))
            for aval, spec in zip(closed.out_avals, params["out_specs"], strict=True)
        ]

    def result_specs(self, params: Mapping[str, Any]) -> Sequence[PartitionSpec | None]:
        if params["newly_manual_axes"] != frozenset(params["mesh"].axis_names):
            return ()  # the compiler divides over the others
        return [
            None if spec.unreduced or spec.reduced or 0 in aval.shape else spec
            for aval, spec in zip(params["jaxpr"].out_avals, params["out_specs"], strict=True)
        ]

    def for_divisions(self, avals: Sequence[Any], params: Mapping[str, Any]) -> Mapping[str, Any]:
        inner = mesh_inside(params["mesh"], params["newly_manual_axes"])
        closed = params["jaxpr"]
        with self.inside(dict(params)):
            program = divided(closed, [part_division(a.division, inner) for a in avals])
        return {} if program is closed else {"jaxpr": program}

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        axes, closed = params["newly_manual_axes"], params["jaxpr"]
        own = types_of(closed.in_avals)
        outer = [
            a | b.update(varying=b.varying - axes)
            for a, b in zip(types_of(avals), own, strict=True)
        ]
        inner = [o | b for o, b in zip(outer, own, strict=True)]
        with self.inside(params):
            program = varying(closed, inner)
        return outer, ({} if program is closed else {"jaxpr": program})

    def reference(self, *args: Any, **params: Any) -> Any:
        # Each axis of the mesh is an axis of a vmap.
        mesh, axes = params["mesh"], params["newly_manual_axes"]
        named = [(name, size) for name, size in mesh.shape_tuple if name in axes]
        closed: ClosedJaxpr = params["jaxpr"]
        with self.inside(params):
            for name, size in reversed(named):
                dims = (0,) * len(closed.in_avals)
                closed = named_batch_of(closed, BatchAxis(name, size), dims).jaxpr
        parts = [
            _divided(np.asarray(x), spec, named)
            for x, spec in zip(args, params["in_specs"], strict=True)
        ]
        results = reference_of(closed, parts)
        return [_joined(x, s, named) for x, s in zip(results, params["out_specs"], strict=True)]

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        return context.manual_computation(
            lambda *parts: context.inline_jaxpr(params["jaxpr"], parts),
            values,
            params["jaxpr"].in_avals,
            params["jaxpr"].out_avals,
            mesh=params["mesh"].shape_tuple,
            axes=params["newly_manual_axes"],
            in_specs=params["in_specs"],
            out_specs=params["out_specs"],
            effects=params["jaxpr"].jaxpr.effects,
        )

    # Derivatives and batches

    def bound(
        self,
        closed: ClosedJaxpr,
        args: Sequence[Any],
        params: dict[str, Any],
        in_specs: Sequence[PartitionSpec],
        out_specs: Sequence[PartitionSpec],
    ) -> list[Any]:
        """The results of another program on the same devices."""
        jaxpr, constants = hoist_consts(closed)
        specs = (*[PartitionSpec()] * len(constants), *in_specs)
        given = {"jaxpr": jaxpr, "in_specs": specs, "out_specs": tuple(out_specs)}
        results: list[Any] = self.bind(*constants, *args, **{**params, **given})
        return results

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        nonzero, nonzero_tangents = without_zeros(tangents)
        with self.inside(params):
            derived, nonzero_out = jvp_of(params["jaxpr"], nonzero)
        ins, outs = params["in_specs"], params["out_specs"]
        results = self.bound(
            derived,
            [*primals, *nonzero_tangents],
            params,
            [*ins, *partition(nonzero, ins)[0]],
            [*outs, *partition(nonzero_out, outs)[0]],
        )
        values = results[: len(outs)]
        return values, with_zeros(nonzero_out, results[len(outs) :], values)

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], **params: Any
    ) -> tuple[Any, Callable[..., Any]]:
        ins, outs = params["in_specs"], params["out_specs"]
        axes = params["newly_manual_axes"] if params["check_vma"] else None
        with self.inside(params):
            split = linearization_of(params["jaxpr"], tuple(nonzero))
            computed = split.primal.out_avals[len(outs) :]
            specs = [_residual_spec(aval, params) for aval in computed]
            primal = _with_parts(split.primal, len(outs), axes)
            linear = _from_parts(split.linear, tuple([f is None for f in split.forwarded]), axes)
        results = self.bound(primal, primals, params, ins, [*outs, *specs])
        values = results[: len(outs)]
        residuals = split.residuals(primals, results)
        specs_left = iter(specs)
        residual_specs = [next(specs_left) if f is None else ins[f] for f in split.forwarded]

        def tangent(*tangents: Any) -> list[Any]:
            nonzero_tangents, _ = partition(nonzero, tangents)
            out_tangents = self.bound(
                linear,
                [*residuals, *nonzero_tangents],
                params,
                [*residual_specs, *partition(nonzero, ins)[0]],
                partition(split.nonzero_out, outs)[0],
            )
            return with_zeros(split.nonzero_out, out_tangents, values)

        return values, tangent

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        linear = tuple(map(is_linear, args))
        nonzero_cts, cts = without_zeros(cotangent)
        ins, outs = params["in_specs"], params["out_specs"]
        with self.inside(params):
            derived = transposition_of(
                params["jaxpr"], linear, nonzero_cts, None, wanted_among(args)
            )
            lin_specs = partition(derived.nonzero_out, partition(linear, ins)[0])[0]
            lin_specs = [spec.dual for spec in lin_specs]
            ct_specs = [spec.dual for spec in partition(nonzero_cts, outs)[0]]
            program = derived.jaxpr
            if not params["check_vma"]:
                axes = tuple([a for a in params["mesh"].shape if a in params["newly_manual_axes"]])
                program = _shared(
                    program,
                    tuple([_others(spec, axes) for spec in ct_specs]),
                    tuple([_others(spec, axes) for spec in lin_specs]),
                    params["mesh"].shape_tuple,
                )
        _, value_specs = partition(linear, ins)
        operands = partition(linear, args)[1]
        results = self.bound(
            program, [*operands, *cts], params, [*value_specs, *ct_specs], lin_specs
        )
        return derived.cotangents(linear, results)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        axis = state.batch_axis
        assert axis is not None
        over = tuple([a for a in axis.spmd_axis_name if a in params["newly_manual_axes"]])
        count = math.prod(params["mesh"].shape[a] for a in over)
        if axis.size % count:
            raise ValueError(
                f"shard_map inside of vmap with spmd_axis_name={axis.spmd_axis_name}: the "
                f"{axis.size} elements cannot be divided evenly over {counted(count, 'device')}"
            )
        with self.inside(params):
            derived, out_dims = batch_of(params["jaxpr"], axis.size // count, tuple(dims))
        ins = [_inserted(s, d, over) for s, d in zip(params["in_specs"], dims, strict=True)]
        outs = [_inserted(s, d, over) for s, d in zip(params["out_specs"], out_dims, strict=True)]
        return self.bound(derived, args, params, ins, outs), out_dims

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        with self.inside(params):
            checked, error = checks.checked(params["jaxpr"])
            # Each device has an error of its own: they are an array over all devices.
            count = error.num_leaves
            axes = tuple([a for a in params["mesh"].shape if a in params["newly_manual_axes"]])
            checked = _one_more_dimension(checked, count, axes if params["check_vma"] else ())
        specs = [*[PartitionSpec(axes)] * count, *params["out_specs"]]
        outs = self.bound(checked, args, params, params["in_specs"], specs)
        if count:
            with lenient():  # what is recorded is not divided
                first = argmax(outs[0], 0, np.int32)
                errors = [dynamic_index_in_dim(x, first, 0, keepdims=False) for x in outs[:count]]
            checks.record(error, errors)
        return outs[count:]

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        closed: ClosedJaxpr = eqn.params["jaxpr"]
        reduced, kept = yield Wanted(closed, tuple(used))
        if reduced is closed:
            return eqn
        params = {
            **eqn.params,
            "jaxpr": reduced,
            "in_specs": tuple(partition(kept, eqn.params["in_specs"])[0]),
            "out_specs": tuple(partition(used, eqn.params["out_specs"])[0]),
        }
        return eqn.replace(
            invars=partition(kept, eqn.invars)[0],
            outvars=partition(used, eqn.outvars)[0],
            params=params,
            effects=reduced.jaxpr.effects if eqn.effects else no_effects,
        )


shard_map_p: Final = ShardMap()


def _residual_spec(aval: Any, params: dict[str, Any]) -> PartitionSpec:
    """How a value of the program gets out and in again: as the parts of one array.

    What is the same on all devices is not divided.
    """
    axes = params["newly_manual_axes"]
    if params["check_vma"]:
        axes = axes & _parts_type(aval, axes).varying
    named = tuple([name for name in params["mesh"].shape if name in axes])
    return PartitionSpec(named) if named else PartitionSpec()


def _parts_type(aval: Any, axes: frozenset[AxisName]) -> ManualAxisType:
    """What a value is along manual axes if what it is along some is made a varying one."""
    own: ManualAxisType = aval.manual_axis_type
    cast = (own.unreduced | own.reduced) & axes
    return own.become("varying", cast)


@remembered
def _with_parts(closed: ClosedJaxpr, count: int, axes: frozenset[AxisName] | None) -> ClosedJaxpr:
    """The program with its last results as parts of arrays.

    Args:
        closed: the program.
        count: how many results stay as they are.
        axes: the axes over which arrays may be divided; if None, all are, over all axes.
    """
    if all(_is_part(aval, axes) for aval in closed.out_avals[count:]):
        return closed

    def function(*args: Any) -> list[Any]:
        outs = function_of(closed)(*args)
        return [*outs[:count], *(_part_of(x, axes) for x in outs[count:])]

    return stage(function, closed.in_avals, derived_info(closed, "linearize"))


@remembered
def _from_parts(closed: ClosedJaxpr, flags: Flags, axes: frozenset[AxisName] | None) -> ClosedJaxpr:
    """The program with parts of arrays in place of the flagged ones of its first arguments."""
    avals = closed.in_avals
    flags = (*flags, *[False] * (len(avals) - len(flags)))
    given = [_part_aval(a, axes) if f else a for a, f in zip(avals, flags, strict=True)]
    if all(a is b for a, b in zip(avals, given, strict=True)):
        return closed

    def function(*args: Any) -> list[Any]:
        return function_of(closed)(*map(_from_part, args, avals))

    return stage(function, given, derived_info(closed, "linearize"))


def _part_aval(aval: Any, axes: frozenset[AxisName] | None) -> Any:
    """The type of a value as a part of an array, which has a dimension if there are several."""
    if axes is not None:
        aval = aval.update(manual_axis_type=_parts_type(aval, axes))
    if not aval.shape and (axes is None or aval.vma & axes):
        aval = aval.update(shape=(1,))
    return aval


def _is_part(aval: Any, axes: frozenset[AxisName] | None) -> bool:
    return _part_aval(aval, axes) is aval


def _part_of(x: Any, axes: frozenset[AxisName] | None) -> Any:
    """A value as a part of an array."""
    aval = aval_of(x)
    part = _part_aval(aval, axes)
    own = aval.manual_axis_type
    cast = part.vma - own.varying
    for primitive, along in (
        (unreduced_vary_cast_p, own.unreduced & cast),
        (reduced_vary_cast_p, own.reduced & cast),
    ):
        if along:
            x = primitive.bind(x, axes=in_order(along))
    return reshape(x, part.shape) if part.shape != aval.shape else x


def _from_part(x: Any, aval: Any) -> Any:
    """The value of type `aval` of which `x` is a part of an array."""
    part, own = aval_of(x), aval.manual_axis_type
    for primitive, along in (
        (vary_unreduced_cast_p, own.unreduced & part.vma),
        (vary_reduced_cast_p, own.reduced & part.vma),
    ):
        if along:
            x = primitive.bind(x, axes=in_order(along))
    return reshape(x, aval.shape) if part.shape != aval.shape else x


def _others(spec: PartitionSpec, axes: Sequence[AxisName]) -> tuple[AxisName, ...]:
    """The axes that a specification does not name."""
    named = spec_axes(spec)
    return tuple([axis for axis in axes if axis not in named])


@remembered
def _shared(
    closed: ClosedJaxpr,
    repeated_in: tuple[tuple[AxisName, ...], ...],
    repeated_out: tuple[tuple[AxisName, ...], ...],
    mesh: tuple[tuple[AxisName, int], ...],
) -> ClosedJaxpr:
    """A transposed program where types do not say what varies.

    A result that several devices have counts once: each gets its share of the cotangent. An
    argument that several devices have gets the cotangents of all.

    Args:
        closed: the program; cotangents are its last arguments.
        repeated_in: for each cotangent, the axes along which the result is the same.
        repeated_out: for each result, the axes along which the argument is the same.
        mesh: the names and sizes of axes.
    """
    sizes = dict(mesh)
    first = len(closed.in_avals) - len(repeated_in)

    def function(*args: Any) -> list[Any]:
        shares = []
        for ct, axes in zip(args[first:], repeated_in, strict=True):
            count = math.prod(sizes[axis] for axis in axes)
            shares.append(div(ct, literal_like(count, ct)) if count > 1 else ct)
        outs = function_of(closed)(*args[:first], *shares)
        return [
            sum_over(x, axes, ()) if axes else x for x, axes in zip(outs, repeated_out, strict=True)
        ]

    return stage(function, closed.in_avals, derived_info(closed, "transpose"))


def _inserted(spec: PartitionSpec, dim: int | None, over: tuple[AxisName, ...]) -> PartitionSpec:
    """The specification of a batch."""
    if dim is None or (not over and dim >= len(spec)):
        return spec
    entries = [*spec, *[None] * (dim - len(spec))]
    entries.insert(dim, over or None)
    return spec.update(entries)


def _divided(x: Any, spec: PartitionSpec, named: Sequence[tuple[AxisName, int]]) -> Any:
    """The parts of an array, by position along each axis."""
    sizes = dict(named)
    split: list[int] = []
    place: dict[AxisName, int] = {}
    for number, n in enumerate(x.shape):
        axes = axes_of(spec[number]) if number < len(spec) else ()
        for axis in axes:
            place[axis] = len(split)
            split.append(sizes[axis])
        split.append(n // math.prod(sizes[axis] for axis in axes))
    parts = x.reshape(split)
    front = [place[name] for name, _ in named if name in place]
    parts = parts.transpose(*front, *(i for i in range(parts.ndim) if i not in front))
    missing = tuple([number for number, (name, _) in enumerate(named) if name not in place])
    parts = np.expand_dims(parts, missing)
    local = parts.shape[len(named) :]
    parts = np.broadcast_to(parts, (*(size for _, size in named), *local)).copy()
    for number, (name, _) in enumerate(named):
        if name in spec.unreduced:  # the first one has it all
            np.moveaxis(parts, number, 0)[1:] = 0
    return parts


def _joined(x: Any, spec: PartitionSpec, named: Sequence[tuple[AxisName, int]]) -> Any:
    """An array from its parts, the first one along axes that the specification does not name."""
    x = np.asarray(x)
    for number, (name, _) in enumerate(named):
        if name in spec.unreduced:
            x = x.sum(number, keepdims=True, dtype=x.dtype)
    present = set(spec_axes(spec))
    x = x[tuple([slice(None) if name in present else 0 for name, _ in named])]
    kept = [name for name, _ in named if name in present]
    order: list[int] = []
    shape: list[int] = []
    for number in range(x.ndim - len(kept)):
        axes = axes_of(spec[number]) if number < len(spec) else ()
        places = [kept.index(axis) for axis in axes]
        order += [*places, len(kept) + number]
        shape.append(math.prod(x.shape[i] for i in (*places, len(kept) + number)))
    return x.transpose(order).reshape(shape)


@remembered
def _one_more_dimension(
    closed: ClosedJaxpr, count: int, varying: tuple[AxisName, ...]
) -> ClosedJaxpr:
    """The program with a leading dimension of size one in its first results, which then vary."""
    if not count:
        return closed

    def function(*args: Any) -> list[Any]:
        outs = function_of(closed)(*args)
        wide = [reshape(x, (1, *shape_of(x))) for x in outs[:count]]
        wide = [vary_like(x, aval_of(x).update(vma=frozenset(varying))) for x in wide]
        return [*wide, *outs[count:]]

    return stage(function, closed.in_avals, derived_info(closed, "checkify"))
