"""How arrays are divided over the mesh that is set: `jax._src.sharding_impls`."""

from __future__ import annotations

from typing import Any

from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.runtime.devices.named_sharding import NamedSharding
from dovetail._core.trace.current_mesh import get_abstract_mesh


def canonicalize_sharding(
    sharding: Any, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """A division over a mesh without devices; None if nothing is divided.

    Args:
        sharding: a `NamedSharding`, a `PartitionSpec` for the mesh that is set, or None.
        api_name: what it is for, for messages.
        check_mesh_consistency: accepted for JAX's sake; whoever uses the sharding checks its mesh.

    Raises:
        ValueError: no mesh is set for a `PartitionSpec`.
        TypeError: it is another kind of sharding.
    """
    if sharding is None:
        return None
    if isinstance(sharding, PartitionSpec):
        mesh = get_abstract_mesh()
        if mesh.empty:
            raise ValueError(
                f"{api_name} was given {sharding!r} and no mesh is set: pass a NamedSharding, or "
                "set one with jax.set_mesh"
            )
        return NamedSharding(mesh, sharding)
    if not isinstance(sharding, NamedSharding):
        raise TypeError(
            f"{api_name} takes a NamedSharding or a PartitionSpec, got {type(sharding).__name__}"
        )
    mesh = sharding.mesh.abstract_mesh
    return None if mesh.empty else NamedSharding(mesh, sharding.spec)
