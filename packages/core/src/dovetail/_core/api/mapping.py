"""`shard_map`: run a function on each device of a mesh, on its part of the arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence, Set
from typing import Any, Final, ParamSpec, TypeVar, final, overload

from dovetail._core.base import pytree
from dovetail._core.base.errors import ShapeError
from dovetail._core.base.typing import PyTree
from dovetail._core.base.wrapping import wraps
from dovetail._core.basis.manual_axes import vary_like
from dovetail._core.basis.operands import as_operand, as_result
from dovetail._core.ir.abstract_mesh import AbstractMesh, MeshAxes
from dovetail._core.ir.avals import aval_of, is_array_like
from dovetail._core.ir.jaxpr import DebugInfo
from dovetail._core.ir.partition_spec import PartitionSpec, UnreducedKind, axes_of
from dovetail._core.ops.parallel.shard_map import (
    inside,
    mesh_inside,
    part_division,
    scaled,
    shard_map_p,
    spec_axes,
)
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.trace.current_mesh import current_mesh
from dovetail._core.transform.derived import hoist_consts
from dovetail._core.transform.flattening import (
    FlatFunction,
    check_array_leaves,
    check_callable,
    leaf_names,
    location_of,
    name_of,
)
from dovetail._core.transform.interning import interned
from dovetail._core.transform.stage import stage

P = ParamSpec("P")
R = TypeVar("R")
AxisName = Hashable


@final
class InferFromArgs:
    """The type of `dovetail.sharding.Infer`: what arguments say decides."""

    def __repr__(self) -> str:
        return "Infer"

    def __reduce__(self) -> str:
        return "Infer"


Infer: Final = InferFromArgs()
"""Leaves `in_specs` of `dovetail.shard_map` to the types of the arguments."""


@overload
def shard_map(
    f: Callable[P, R],
    /,
    *,
    out_specs: PyTree,
    in_specs: PyTree = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[AxisName] = frozenset(),
    check_vma: bool = True,
) -> Callable[P, R]: ...
@overload
def shard_map(
    f: None = None,
    /,
    *,
    out_specs: PyTree,
    in_specs: PyTree = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[AxisName] = frozenset(),
    check_vma: bool = True,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: PyTree,
    in_specs: PyTree = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[AxisName] = frozenset(),
    check_vma: bool = True,
) -> Callable[..., Any]:
    """Run a function on each device of a mesh, on its part of the arguments.

    Inside, arrays are the parts of one device, and collective operations, such as `lax.psum`, name
    the axes of the mesh. The function has derivatives, and can be compiled, batched and nested.

    Args:
        f: function of arrays and pytrees of them; without it, a decorator is returned.
        out_specs: for each result, the axes over which its dimensions are divided: a
            `PartitionSpec`, or a tree of them that is a prefix of the result. Along axes that it
            does not name, all devices have to have the same. Its `unreduced` and `reduced` are
            those of the type of the result (`lax.pcast`), along axes of the type `Explicit`.
        in_specs: the same for the arguments, a prefix of their tuple. Along axes that it does not
            name, all devices get the same. None stands for an argument that is not divided. By
            default the types of the arguments say it, along axes of the type `Explicit`.
        mesh: the mesh; the current one, of `dovetail.set_mesh`, by default.
        axis_names: the axes that the function handles; all by default. Along the others the
            compiler divides what it computes.
        check_vma: whether types say along which axes values vary (``{V:x}``), so that derivatives
            add up exactly what they have to, and results are known to be the same where they have
            to be.

    Returns:
        The function of whole arrays; or a decorator.

    Raises:
        TypeError: an argument is no array, a specification no `PartitionSpec`, there are keyword
            arguments, or `in_specs` is missing and types do not say it.
        ValueError: there is no mesh, a specification names an axis that it does not have, an array
            cannot be divided evenly, or a result is not known to be the same on all devices.

    Differs:
        Values of loops and branches whose types differ in what varies are made to agree, where JAX
        asks for `lax.pcast`. An argument whose type says another division than its specification is
        divided anew, and an array that the function captures is made whole; JAX refuses both. Calls
        outside of `jit` are compiled as a whole, so that Python code in
        the function runs once for each call, and sees tracers.

        >>> from dovetail.sharding import PartitionSpec as P
        >>> mesh = dt.make_mesh((1,), ("x",))
        >>> def total(x):
        ...     return lax.psum(lax.scan(lambda c, a: (c + a, None), 0.0, x)[0], "x")
        >>> print(dt.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())(jnp.ones(4)))
        4.0

    Example:
        >>> from dovetail.sharding import PartitionSpec as P
        >>> mesh = dt.make_mesh((1,), ("x",))
        >>> @dt.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        ... def normalized(x):
        ...     return x / lax.psum(jnp.sum(x), "x")
        >>> print(normalized(jnp.array([1.0, 3.0])))
        [0.25 0.75]
    """
    if f is None:
        return lambda g: shard_map(
            g,
            out_specs=out_specs,
            in_specs=in_specs,
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    check_callable(f, "shard_map")
    if mesh is not None and not isinstance(mesh, MeshAxes):
        raise TypeError(f"shard_map: mesh is a Mesh or an AbstractMesh, got {mesh!r}")
    _check_specs(in_specs, "in_specs")
    _check_specs(out_specs, "out_specs")
    named = frozenset(axis_names)
    function = f

    @wraps(f)
    def shard_map_fun(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise TypeError(
                f"shard_map of {name_of(function)}: arguments are passed by position, since "
                f"in_specs has an entry for each; got {next(iter(kwargs))!r} by name"
            )
        name = f"shard_map of {name_of(function)}"
        call = DeviceMap(name, _mesh_of(mesh, function), named, check_vma)
        leaves, tree = pytree.flatten(args)
        if in_specs is Infer:
            specs = [call.spec_of(leaf) for leaf in leaves]
        else:
            specs = pytree.flatten_up_to_prefix(f"in_specs of {name}", in_specs, tree)
        names = leaf_names(function, args, {})
        flat = FlatFunction(function, tree)

        def result_specs() -> list[Any]:
            return pytree.flatten_up_to_prefix(f"out_specs of {name}", out_specs, flat.out_tree)

        given = [PartitionSpec() if spec is None else spec for spec in specs]
        outs = call(flat, leaves, names, given, result_specs)
        return flat.out_tree.unflatten(outs)

    shard_map_fun.__name__ = name_of(function)  # for messages; a partial has none
    return shard_map_fun


def _check_specs(specs: Any, argument: str) -> None:
    if specs is Infer:
        return
    for path, leaf in pytree.flatten_with_path(specs, is_leaf=lambda x: x is None)[0]:
        if leaf is not None and not isinstance(leaf, PartitionSpec):
            raise TypeError(
                f"shard_map: {argument}{pytree.keystr(path)} is {leaf!r}, which is no PartitionSpec"
            )


def _mesh_of(given: Any, function: Callable[..., Any]) -> Any:
    mesh = current_mesh() if given is None else given
    if mesh is None or mesh.empty:
        raise ValueError(
            f"shard_map of {name_of(function)}: there is no mesh; give one with mesh=, or set one "
            "with dovetail.set_mesh(mesh)"
        )
    return mesh


class DeviceMap:
    """How a function is run on the devices of a mesh.

    Args:
        name: a phrase for the call, for messages.
        mesh: the mesh.
        named: the axes that the function handles; all if there are none.
        check_vma: whether types say along which axes values vary.
    """

    def __init__(self, name: str, mesh: Any, named: frozenset[AxisName], check_vma: bool) -> None:
        self.name = name
        self.mesh = mesh
        self.check_vma = check_vma
        unknown = named - set(mesh.axis_names)
        if unknown:
            raise ValueError(
                f"{self.name}: axis_names has {min(unknown, key=str)!r}, which {mesh} does not have"
            )
        self.axes = named or frozenset(mesh.axis_names) - set(mesh.manual_axes)
        again = self.axes & set(mesh.manual_axes)
        if again:
            raise ValueError(
                f"{self.name}: the axis {min(again, key=str)!r} is handled by a shard_map around "
                "this one; leave it out of axis_names"
            )
        self.inner = mesh_inside(mesh, self.axes)

    def spec_of(self, leaf: Any) -> PartitionSpec:
        """The specification that the type of an argument says."""
        unknown = [axis for axis in self.mesh.auto_axes if axis in self.axes]
        if unknown:
            raise TypeError(
                f"{self.name}: in_specs is missing. Types of arrays do not say how they are "
                f"divided along {unknown[0]!r}, an axis of the type Auto of {self.mesh}; write for "
                f"example in_specs=PartitionSpec({unknown[0]!r})"
            )
        if not is_array_like(leaf):
            return PartitionSpec()
        aval = aval_of(leaf)
        sums = aval.manual_axis_type
        dims = () if aval.division is None else aval.division.dims
        return PartitionSpec(
            *[tuple([a for a in axes if a in self.axes]) for axes in dims],
            unreduced=sums.unreduced & self.axes,
            reduced=sums.reduced & self.axes,
        )

    def __call__(
        self,
        flat: FlatFunction,
        leaves: Sequence[Any],
        names: Sequence[str],
        specs: Sequence[PartitionSpec],
        result_specs: Callable[[], Sequence[PartitionSpec | None]],
        turn: Callable[..., list[Any]] | None = None,
    ) -> list[Any]:
        """The results, flat.

        Args:
            flat: the function.
            leaves: its arguments.
            names: their names.
            specs: how each of them is divided.
            result_specs: how each result is divided, when the function has been called.
            turn: a wrapper of `flat`, which runs instead.
        """
        check_array_leaves(leaves, lambda: names, self.name)
        operands = [as_operand(x, self.name, n) for x, n in zip(leaves, names, strict=True)]
        avals = [
            self._part(aval_of(x), spec, name)
            for x, spec, name in zip(operands, specs, names, strict=True)
        ]
        placed: list[PartitionSpec] = []

        def run(*parts: Any) -> list[Any]:
            results = flat(*parts) if turn is None else turn(*parts)
            placed[:] = [PartitionSpec() if spec is None else spec for spec in result_specs()]
            for spec in placed:
                self._check_axes(spec, "a specification in out_specs")
            return [
                self._result(x, spec, flat.out_tree, number)
                for number, (x, spec) in enumerate(zip(results, placed, strict=True))
            ]

        user = flat.function
        info = DebugInfo("shard_map", name_of(user), location_of(user), tuple(names))
        with inside(self.mesh, self.axes, self.check_vma):
            closed, captured = hoist_consts(stage(run, avals, info))
            closed = interned(closed)
        outs = shard_map_p.bind(
            *captured,
            *operands,
            check_vma=self.check_vma,
            in_specs=(*[PartitionSpec()] * len(captured), *specs),
            jaxpr=closed,
            mesh=self.mesh,
            newly_manual_axes=self.axes,
            out_specs=tuple(placed),
        )
        return list(map(as_result, outs))

    def _check_axes(self, spec: PartitionSpec, what: str) -> None:
        for axis in (*spec_axes(spec), *spec.unreduced, *spec.reduced):
            if axis not in self.axes:
                names = ", ".join(repr(name) for name in self.mesh.axis_names if name in self.axes)
                raise ValueError(
                    f"{self.name}: {what} is {spec}, which names the axis {axis!r}; those that it "
                    f"handles are {names}, of {self.mesh}"
                )
        self._check_sums(spec, what)
        if PartitionSpec.UNCONSTRAINED in tuple(spec):
            raise ValueError(
                f"{self.name}: {what} is {spec}; who handles the part of one device has to know "
                "it, so UNCONSTRAINED is not possible"
            )

    def _check_sums(self, spec: PartitionSpec, what: str) -> None:
        """Check the axes along which a specification says that values are unreduced or reduced."""
        if spec.unreduced_kind not in (None, UnreducedKind.sum):
            raise NotImplementedError(
                f"{self.name}: {what} is {spec}; of what is unreduced only sums are supported"
            )
        for axis in sorted(spec.unreduced | spec.reduced, key=str):
            kind = "unreduced" if axis in spec.unreduced else "reduced"
            if not self.check_vma:
                raise ValueError(
                    f"{self.name}: {what} is {spec}, and with check_vma=False types do not say "
                    f"what is {kind}; leave out one of the two"
                )
            if axis in self.mesh.auto_axes:
                raise ValueError(
                    f"{self.name}: {what} is {spec}, and {axis!r} is an axis of the type Auto of "
                    f"{self.mesh}. Arrays are {kind} along axes of the type Explicit alone; inside "
                    f"of the function lax.pcast and lax.psum do it along any axis"
                )
            if self.mesh.auto_axes:  # XLA adds up wrongly where it may choose
                raise NotImplementedError(
                    f"{self.name}: {what} is {spec}, and arrays are {kind} only over a mesh whose "
                    f"axes are all of the type Explicit, not {self.mesh}; inside of the function "
                    "lax.pcast and lax.psum do it over any mesh"
                )

    def _part(self, aval: Any, spec: PartitionSpec, name: str) -> Any:
        """The type of the part of an argument."""
        self._check_axes(spec, f"the specification of {name}")
        own = aval.manual_axis_type
        if (own.unreduced & self.axes, own.reduced & self.axes) != (spec.unreduced, spec.reduced):
            raise ValueError(
                f"{self.name}: {name} is {aval.short_name()}, and its specification {spec} says "
                "something else of what is unreduced and reduced. Leave out in_specs, which types "
                f"then say, or give dovetail.reshard({name}, {spec})"
            )
        if len(spec) > len(aval.shape):
            raise ShapeError(
                f"{self.name}: {name} is {aval.short_name()}, which has fewer dimensions than its "
                f"specification {spec} has entries"
            )
        sizes = self.mesh.shape
        rest = part_division(aval.division, self.inner)
        for number, entry in enumerate(spec):
            over = axes_of(entry) if rest is None else (*axes_of(entry), *rest.dims[number])
            count = math.prod(sizes[axis] for axis in over)
            size = aval.shape[number]
            if size % count:
                axes = " and ".join(f"{axis!r} of {sizes[axis]}" for axis in over)
                raise ShapeError(
                    f"{self.name}: dimension {number} of {name}, which is {aval.short_name()}, "
                    f"cannot be divided evenly over the axis {axes}: {size} is no multiple of "
                    f"{count}. Pad it to {-(-size // count) * count}, or leave it whole: its entry "
                    f"in {spec} would be None"
                )
        vma = aval.vma.union(spec_axes(spec)) if self.check_vma else aval.vma
        part = aval.update(shape=scaled(aval.shape, spec, sizes, True), vma=vma)
        return part.with_division(rest)

    def _result(self, value: Any, spec: PartitionSpec, tree: Any, number: int) -> Any:
        """A result, which varies along the axes that its specification names."""
        operand = as_operand(value, self.name)
        aval = aval_of(operand)
        if len(spec) > len(aval.shape):
            hint = "; give a scalar a dimension: x[None]" if not aval.shape else ""
            raise ShapeError(
                f"{self.name}: the result{_path(tree, number)} is {aval.short_name()}, which has "
                f"fewer dimensions than its specification {spec} in out_specs has entries{hint}"
            )
        if not self.check_vma:
            return operand
        named = frozenset(spec_axes(spec))
        own = aval.manual_axis_type
        for kind, has, says in (
            ("unreduced", own.unreduced & self.axes, spec.unreduced),
            ("reduced", own.reduced & self.axes, spec.reduced),
        ):
            for axis in has - says:
                advice = (
                    f"add it up, with lax.psum(x, {axis!r})"
                    if kind == "unreduced"
                    else f"cast it, with lax.pcast(x, {axis!r}, to='varying')"
                )
                raise ValueError(
                    f"{self.name}: the result{_path(tree, number)} is {aval.short_name()}, which "
                    f"is {kind} along {axis!r}, and its specification {spec} in out_specs does not "
                    f"say so; {advice}, or write PartitionSpec({kind}={{{axis!r}}})"
                )
            for axis in says - has:
                raise ValueError(
                    f"{self.name}: the result{_path(tree, number)} is {aval.short_name()}, and its "
                    f"specification {spec} in out_specs says that it is {kind} along {axis!r}; "
                    f"cast it, with lax.pcast(x, {axis!r}, to={kind!r})"
                )
        more = (aval.vma & self.axes) - named
        if more:
            axes = ", ".join(sorted(map(repr, more)))
            raise ValueError(
                f"{self.name}: the result{_path(tree, number)} is {aval.short_name()}, which may "
                f"differ from device to device along {axes}, and its specification {spec} in "
                f"out_specs says that it does not. Reduce it, for example with lax.psum(x, "
                f"{axes}), or name the axis in out_specs; if you know that it is the same, "
                "check_vma=False takes your word"
            )
        return vary_like(operand, aval.update(vma=aval.vma | named))


def _path(tree: Any, number: int) -> str:
    numbered = tree.unflatten(range(tree.num_leaves))
    return pytree.keystr(pytree.flatten_with_path(numbered)[0][number][0])


def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: PyTree = Infer,
    out_axes: PyTree,
    axis_name: AxisName,
) -> Callable[..., Any]:
    """Run a function on each device along one axis of the current mesh.

    It is `shard_map` with the dimensions that are divided in place of specifications.

    Args:
        f: function of arrays and pytrees of them; without it, a decorator is returned.
        in_axes: the dimension of the arguments that is divided over the axis: an integer for all,
            or a tuple with an entry for each (an integer, None for what all devices get whole, or a
            pytree of them that is a prefix of the argument). By default the types of the arguments
            say it, if the axis is of the type `Explicit`.
        out_axes: the dimension along which parts of results are joined, as a prefix of the result;
            None for what is the same on all devices.
        axis_name: the axis of the mesh of `dovetail.set_mesh`.

    Returns:
        The function of whole arrays; or a decorator.

    Raises:
        TypeError: `in_axes` or `out_axes` hold something else.
        ValueError: there is no mesh, it does not have the axis, or a dimension cannot be divided
            evenly.

    Example:
        >>> with dt.set_mesh(dt.make_mesh((1,), ("x",))):
        ...     f = dt.smap(lambda x: lax.psum(x, "x"), in_axes=0, out_axes=None, axis_name="x")
        ...     print(f(jnp.arange(2)))
        [0 1]
    """
    if f is None:
        return lambda g: smap(g, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, (tuple, list)):
        raise TypeError(f"smap: axis_name is one axis, got {axis_name!r}")
    return shard_map(
        f,
        in_specs=_specs_of(in_axes, axis_name, "in_axes"),
        out_specs=_specs_of(out_axes, axis_name, "out_axes"),
        axis_names={axis_name},
    )


def _specs_of(dimensions: Any, axis: AxisName, argument: str) -> Any:
    """Specifications that divide dimensions over an axis."""
    if dimensions is Infer:
        return Infer

    def spec(dimension: Any) -> PartitionSpec:
        if dimension is not None and type(dimension) is not int:
            raise TypeError(f"smap: {argument} holds integers and None, got {dimension!r}")
        return axis_spec(dimension, axis)

    given = tuple(dimensions) if isinstance(dimensions, list) else dimensions
    return pytree.map(spec, given, is_leaf=lambda x: x is None)


def axis_spec(dimension: int | None, axis: AxisName) -> PartitionSpec:
    """The specification that divides one dimension over an axis."""
    if dimension is None:
        return PartitionSpec()
    if dimension < 0:
        raise ValueError(
            f"smap: a dimension is counted from the front, got {dimension}: the rank is not known"
        )
    return PartitionSpec(*[None] * dimension, axis)


def experimental_shard_map(
    f: Callable[P, R],
    mesh: Mesh | AbstractMesh,
    in_specs: PyTree,
    out_specs: PyTree,
    check_rep: bool = True,
    auto: Set[AxisName] = frozenset(),
) -> Callable[P, R]:
    """`dovetail.shard_map` with the arguments that it had at first.

    Args:
        f: as for `dovetail.shard_map`.
        mesh: the same.
        in_specs: the same.
        out_specs: the same.
        check_rep: its argument `check_vma`.
        auto: the axes that are not among its `axis_names`.

    Returns:
        A function like `f`.

    Example:
        >>> import dovetail as dt
        >>> from dovetail import lax
        >>> from dovetail.experimental.shard_map import shard_map
        >>> mesh = dt.make_mesh((1,), ("i",), devices=dt.devices()[:1])
        >>> print(shard_map(lambda x: lax.psum(x, "i"), mesh, dt.P("i"), dt.P())(dt.numpy.ones(1)))
        [1.]
    """
    names = frozenset(mesh.axis_names) - frozenset(auto)
    return shard_map(
        f,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        check_vma=check_rep,
        axis_names=names,
    )
