"""The primitive `device_put`: a value on another device, or divided over several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dovetail._core.base.errors import ShardingTypeError
from dovetail._core.basis.structural import Same
from dovetail._core.ir.division import division, division_of_spec
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.trace.state import load_runtime
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

#: (value, sharding, whether the result may share the memory of the value) -> array.
Placement = Callable[[Any, Any, bool | None], Any]
#: (sharding or bare specification, a phrase for it) -> sharding.
Resolution = Callable[[Any, str], Any]
_place: Placement | None = None
_resolve: Resolution | None = None


def set_placement(place: Placement, resolve: Resolution) -> None:
    """Install what places values outside compiled programs, and what resolves specifications.

    For the runtime.
    """
    global _place, _resolve
    _place, _resolve = place, resolve


def resolved(place: Any, what: str) -> Any:
    """The sharding over the current mesh that a bare specification stands for."""
    if _resolve is None:
        load_runtime()
    assert _resolve is not None
    return _resolve(place, what)


def place(x: Any, sharding: Any, may_alias: bool | None = None) -> Any:
    """Place a value, outside compiled programs."""
    if _place is None:
        load_runtime()
    assert _place is not None
    return _place(x, sharding, may_alias)


def batched_sharding(sharding: Any, dim: int, entry: Any = None) -> Any:
    """The sharding of a batch of arrays that have a sharding.

    Args:
        sharding: that of each array.
        dim: the new dimension.
        entry: what the specification says of it.
    """
    if not hasattr(sharding, "spec"):
        return sharding
    entries = list(sharding.spec)
    entries += [None] * (dim - len(entries))
    entries.insert(dim, entry)
    return sharding.update(spec=sharding.spec.update(entries))


def constrained(context: Builder, x: Any, sharding: Any) -> Any:
    """A value of a program, divided as a sharding says."""
    if not hasattr(sharding, "spec"):
        return x
    return context.divided(x, context.avals_in[0], sharding.mesh.shape_tuple, sharding.spec)


def divided_type(x: Any, sharding: Any) -> Any:
    """The type of a value that is divided as a sharding says, as far as types say it.

    Args:
        x: the aval of the value.
        sharding: the sharding; what it leaves to the compiler stays as it is.
    """
    spec: PartitionSpec | None = getattr(sharding, "spec", None)
    if spec is None:
        return x
    mesh = sharding.mesh.abstract_mesh
    own = x.manual_axis_type
    explicit = frozenset(mesh.explicit_axes)
    if (own.unreduced & explicit, own.reduced & explicit) != (spec.unreduced, spec.reduced):
        raise ShardingTypeError(
            f"{x.short_name()} is placed by {spec}, which says something else of what is unreduced "
            "and reduced; dovetail.reshard changes that"
        )
    wanted = division_of_spec(mesh, spec, x.ndim)
    free = PartitionSpec.UNCONSTRAINED
    if x.division is None or free not in tuple(spec):
        return x.with_division(wanted)
    dims = ((),) * x.ndim if wanted is None else wanted.dims
    used = [axis for axes in dims for axis in axes]
    kept = [
        tuple([axis for axis in own if axis not in used]) if entry is free else axes
        for entry, own, axes in zip(spec, x.division.dims, dims, strict=False)
    ]
    return x.with_division(division(mesh, (*kept, *dims[len(kept) :])))


class DevicePut(Same):
    """The value on another device.

    Inside a program it is the value itself, divided in the way that is asked for.
    """

    name = "device_put"
    device_parameter: ClassVar[str] = "device"
    types_axes: ClassVar[bool] = True
    types_divisions: ClassVar[bool] = True

    def abstract(self, x: Any, *, device: Any, src: Any, may_alias: bool | None) -> Any:
        return divided_type(x, device)

    def transpose(
        self, cotangent: Any, x: Any, *, device: Any, src: Any, may_alias: bool | None
    ) -> Sequence[Any]:
        if type(cotangent) is Zero:
            return [cotangent]
        return [self.bind(cotangent, device=src, src=device, may_alias=may_alias)]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        (d,) = dims
        assert d is not None
        for name in ("device", "src"):
            params[name] = batched_sharding(params[name], d)
        return self.bind(*args, **params), d

    def lower(
        self, context: Builder, x: Any, *, device: Any, src: Any, may_alias: bool | None
    ) -> Any:
        return constrained(context, x, device)

    def evaluate(self, x: Any, *, device: Any, src: Any, may_alias: bool | None) -> Any:
        """Place the value, outside compiled programs."""
        return place(x, device, may_alias)


device_put_p: Final = DevicePut()
