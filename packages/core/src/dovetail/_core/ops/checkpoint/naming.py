"""Named values and values in other memories, which policies of `checkpoint` refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base import pytree
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import SameValue
from dovetail._core.ops.calls.barriers import stage_p
from dovetail._core.trace.tracer import ArrayClass

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class Name(SameValue):
    """Returns its operand, with a name."""

    name = "name"

    def evaluate(self, x: Any, *, name: str) -> Any:
        """Return the array itself."""
        return as_device_array(x)


name_p: Final = Name()


class Offload(SameValue):
    """Returns its operand in another memory of the device; the lowering is up to backends."""

    name = "offload"

    def lower(self, context: Builder, x: Any, *, src: str, dst: str) -> Any:
        raise NotImplementedError(
            f"a value moves from the memory {src!r} to {dst!r}, as a policy of checkpoint or "
            f"device_put asks, which the backend {' and '.join(context.platforms)} cannot do; "
            "keep it where it is (checkpoint_policies.save_only_these_names, "
            "dots_with_no_batch_dims_saveable), or compute it again"
        )


offload_p: Final = Offload()


def as_device_array(x: Any) -> Any:
    """A value as an array: host scalars and arrays become device arrays."""
    return x if isinstance(x, ArrayClass) else stage_p.bind(x)


def checkpoint_name(x: Any, name: str) -> Any:
    """Give a value a name for policies of `checkpoint`.

    Tangents get no name, only the values of a function and its residuals.

    Args:
        x: an array, or a tree of arrays.
        name: the name.

    Returns:
        A tree of arrays like `x`.

    Raises:
        TypeError: `name` is not a string, or a leaf is not an array.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail.ad_checkpoint import checkpoint_name
        >>> save_y = dt.checkpoint_policies.save_only_these_names("y")
        >>> f = dt.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "y")), policy=save_y)
        >>> round(float(dt.grad(f)(1.0)), 4)
        0.36
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name takes a string as name, got {name!r:.80}")
    pairs, tree = pytree.flatten_with_path(x)
    return tree.unflatten(
        [
            name_p.bind(as_operand(leaf, "checkpoint_name", f"x{pytree.keystr(path)}"), name=name)
            for path, leaf in pairs
        ]
    )
