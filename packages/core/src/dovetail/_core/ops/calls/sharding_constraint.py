"""The primitive `sharding_constraint`: a value that is divided in a given way."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dovetail._core.base import pytree
from dovetail._core.base.errors import ShapeError, ShardingTypeError
from dovetail._core.base.typing import PyTree
from dovetail._core.basis.manual_axes import in_order, preduced_p, unreduced_psum_p
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import Same
from dovetail._core.ir.abstract_mesh import AbstractMesh
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.division import division_of_spec
from dovetail._core.ir.partition_spec import PartitionSpec, axes_of
from dovetail._core.ops.calls import placement
from dovetail._core.ops.calls.layout_constraint import ordered
from dovetail._core.trace.current_mesh import current_mesh
from dovetail._core.trace.state import state
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class ShardingConstraint(Same):
    """The value itself, divided over the devices of a mesh in a given way."""

    name = "sharding_constraint"
    device_parameter: ClassVar[str] = "sharding"
    types_axes: ClassVar[bool] = True
    types_divisions: ClassVar[bool] = True

    def abstract(self, x: Any, *, sharding: Any) -> Any:
        sharding.shard_shape(x.shape)
        return placement.divided_type(x, sharding)

    def transpose(self, cotangent: Any, x: Any, *, sharding: Any) -> Sequence[Any]:
        if type(cotangent) is Zero:
            return [cotangent]
        spec = getattr(sharding, "spec", None)
        if spec is not None and spec.dual is not spec:
            sharding = sharding.update(spec=spec.dual)
        return [self.bind(cotangent, sharding=sharding)]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, sharding: Any
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        over = () if state.batch_axis is None else state.batch_axis.spmd_axis_name
        free = placement.batched_sharding(sharding, d, over or PartitionSpec.UNCONSTRAINED)
        return self.bind(x, sharding=free), d

    def lower(self, context: Builder, x: Any, *, sharding: Any) -> Any:
        return placement.constrained(context, x, sharding)

    def evaluate(self, x: Any, *, sharding: Any) -> Any:
        """Place the value, outside compiled programs, where no compiler chooses."""
        if PartitionSpec.UNCONSTRAINED in tuple(getattr(sharding, "spec", ())):
            spec = sharding.spec
            sharding = sharding.update(spec=spec.update(_settled(spec, sharding.mesh, x)))
        return placement.place(x, sharding)


sharding_constraint_p: Final = ShardingConstraint()


def _settled(spec: PartitionSpec, mesh: Any, x: Any) -> list[Any]:
    """The entries, with those that the array has in place of UNCONSTRAINED if they can stay."""
    free = PartitionSpec.UNCONSTRAINED
    present: Any = getattr(x, "sharding", None)
    alike = getattr(getattr(present, "mesh", None), "shape_tuple", None) == mesh.shape_tuple
    own = [*present.spec, *[None] * len(spec)] if alike else [None] * len(spec)
    used = {axis for entry in spec if entry is not free for axis in axes_of(entry)}
    return [
        entry if entry is not free else None if used.intersection(axes_of(kept)) else kept
        for entry, kept in zip(spec, own, strict=False)
    ]


def with_sharding_constraint(x: PyTree, shardings: PyTree) -> PyTree:
    """Divide values inside a program over devices in a given way.

    Outside compiled functions it is `dovetail.device_put`. Derivatives are divided likewise. Under
    `vmap`, the compiler chooses for the new dimension, as it does for `P.UNCONSTRAINED`.

    Args:
        x: an array, or a pytree of arrays.
        shardings: a sharding, such as ``NamedSharding(mesh, PartitionSpec("x"))``, or a
            `PartitionSpec` over the current mesh, or a `Format`, which also says in which order
            elements are in memory, or a tree of them that is a prefix of `x`; what is None stays
            as it is.

    Returns:
        `x`, with the same values.

    Raises:
        TypeError: a leaf of `shardings` is not a sharding.
        ValueError: an array cannot be divided so, or the trees do not match.

    Differs:
        Outside of compiled functions the order in memory stays the device's own, as it does for
        `dovetail.experimental.layout.with_layout_constraint`.

        >>> from dovetail.experimental.layout import Format, Layout
        >>> from dovetail.sharding import Mesh, NamedSharding, PartitionSpec as P
        >>> columns = Format(Layout((1, 0)), NamedSharding(Mesh(dt.devices()[:1], "rows"), P()))
        >>> lax.with_sharding_constraint(jnp.ones((2, 3)), columns).format.layout.major_to_minor
        (0, 1)

        Along axes of the type `Explicit` it divides the array as `dovetail.reshard` does, and the
        type of the result says so; it does not only check how the array is divided.

        >>> from dovetail.sharding import PartitionSpec as P
        >>> with dt.set_mesh(dt.make_mesh((1,), ("x",))):
        ...     print(dt.typeof(lax.with_sharding_constraint(jnp.arange(4), P("x"))))
        int32[4@x]

    Example:
        >>> from dovetail.sharding import Mesh, NamedSharding, PartitionSpec as P
        >>> rows = NamedSharding(Mesh(dt.devices()[:1], "rows"), P("rows"))
        >>> f = dt.jit(lambda x: lax.with_sharding_constraint(x * 2, rows))
        >>> print(f(jnp.arange(4)))
        [0 2 4 6]
    """
    function = "lax.with_sharding_constraint"
    return constrain(x, shardings, f"shardings of {function}", f"{function}: x")


def reshard(xs: PyTree, out_shardings: PyTree) -> PyTree:
    """Divide arrays over devices in another way, inside a program or outside of it.

    Args:
        xs: an array, or a pytree of arrays.
        out_shardings: a sharding, or a `PartitionSpec` over the current mesh, or a tree of them
            that is a prefix of `xs`; what is None stays as it is.

    Returns:
        `xs`, with the same values. Along axes of the type `Explicit` the types of arrays say how
        they are divided, and each operation says it of its results. Where that is ambiguous, it
        raises a `dovetail.errors.ShardingTypeError`, and this function settles it.

    Raises:
        TypeError: a leaf of `out_shardings` is not a sharding.
        ValueError: an array cannot be divided so, the trees do not match, or there is no current
            mesh for a `PartitionSpec`.

    Example:
        >>> from dovetail.sharding import PartitionSpec as P
        >>> with dt.set_mesh(dt.make_mesh((1,), ("x",))):
        ...     x = dt.reshard(jnp.arange(4), P("x"))
        ...     print(x.sharding.spec, dt.typeof(x))
        P('x') int32[4@x]
    """
    return constrain(xs, out_shardings, "out_shardings of reshard", "reshard: xs")


def constrain(x: PyTree, shardings: PyTree, argument: str, value: str) -> PyTree:
    """`with_sharding_constraint` with other names in its messages.

    Args:
        x: an array, or a pytree of arrays.
        shardings: a sharding, or a tree of them.
        argument: a phrase for the shardings.
        value: a phrase for the arrays, to which the path of one is added.
    """
    paths, tree = pytree.flatten_with_path(x)
    places = pytree.flatten_up_to_prefix(argument, shardings, tree)
    results = []
    for (path, leaf), place in zip(paths, places, strict=True):
        layout = getattr(place, "layout", None)
        if hasattr(place, "layout"):  # a `Format`
            place = place.sharding
        if hasattr(layout, "major_to_minor"):
            leaf = as_operand(leaf, argument)
            leaf = ordered(leaf, layout, argument, f"{value}{pytree.keystr(path)}")
        if place is None:
            results.append(leaf)
            continue
        place = placement.resolved(place, argument)
        if not hasattr(place, "shard_shape"):
            raise TypeError(f"{argument} holds {place!r}, which is no sharding")
        _check_axes(place, argument)
        operand = as_operand(leaf, "lax.with_sharding_constraint")
        if hasattr(place, "spec"):
            operand = _with_sums(operand, place.spec, f"{value}{pytree.keystr(path)}")
            if place.spec.unreduced and _is_divided_so(operand, place):
                results.append(operand)
                continue
        try:
            place.shard_shape(aval_of(operand).shape)
        except ShapeError as error:
            raise ShapeError(f"{value}{pytree.keystr(path)}: {error}") from None
        mesh = getattr(place, "mesh", None)
        if mesh.empty if mesh is not None else isinstance(operand, Tracer):
            # There is nothing to divide over, or a program that runs on one device as a whole.
            results.append(operand)
            continue
        if isinstance(mesh, AbstractMesh) and not isinstance(operand, Tracer):
            place = _with_devices_of(operand, place, argument)
        results.append(sharding_constraint_p.bind(operand, sharding=place))
    return tree.unflatten(results)


def _with_sums(operand: Any, spec: PartitionSpec, name: str) -> Any:
    """A value that is unreduced and reduced as a specification says.

    Raises:
        ShardingTypeError: it would have to become unreduced, or to be no longer reduced.
    """
    aval = aval_of(operand)
    own = aval.manual_axis_type.without(_manual_axes())
    for axis in spec.unreduced - own.unreduced:
        raise ShardingTypeError(
            f"{name} is {aval.short_name()}, and {spec} says that it is unreduced along {axis!r}; "
            f"parts of sums are made inside of shard_map, by lax.pcast(x, {axis!r}, "
            "to='unreduced')"
        )
    if isinstance(operand, Tracer):
        for axis in own.reduced - spec.reduced:
            raise ShardingTypeError(
                f"{name} is {aval.short_name()}, and {spec} says that it is not reduced along "
                f"{axis!r}; use the value that was made reduced, or in shard_map lax.pcast(x, "
                f"{axis!r}, to='varying')"
            )
    summed = own.unreduced - spec.unreduced
    if summed:
        operand = unreduced_psum_p.bind(operand, axes=in_order(summed))
    more = spec.reduced - own.reduced
    if more and isinstance(operand, Tracer):
        operand = preduced_p.bind(operand, axes=in_order(more))
    return operand


def _is_divided_so(operand: Any, sharding: Any) -> bool:
    """Whether the type of a value says of its division what a sharding does."""
    aval = aval_of(operand)
    mesh = sharding.mesh.abstract_mesh
    return aval.division is division_of_spec(mesh, sharding.spec, aval.ndim)


def _manual_axes() -> tuple[Hashable, ...]:
    """The axes along which the program handles the part of one device."""
    mesh = current_mesh()
    return () if mesh is None else mesh.manual_axes


def _with_devices_of(array: Any, sharding: Any, argument: str) -> Any:
    """A sharding over a mesh without devices, over those of an array."""
    mesh = getattr(getattr(array, "sharding", None), "mesh", None)
    if mesh is None or mesh.abstract_mesh != sharding.mesh:
        raise ValueError(
            f"{argument} is {sharding}, whose mesh has no devices, and neither the current mesh "
            "nor that of the array has these axes: set one with dovetail.set_mesh(mesh)"
        )
    return sharding.update(mesh=mesh)


def _check_axes(sharding: Any, argument: str) -> None:
    """Refuse to divide over axes along which the program handles the part of one device."""
    manual = _manual_axes()
    for entry in getattr(sharding, "spec", ()):
        for axis in axes_of(entry):
            if axis in manual:
                raise ValueError(
                    f"{argument} is {sharding.spec}: along {axis!r} the shard_map around it "
                    "handles the part of one device, which is not divided any further. Leave the "
                    "axis out"
                )
