"""`debug.inspect_array_sharding`: shows the sharding of values at compile time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base import pytree
from dovetail._core.base.records import record
from dovetail._core.basis.operands import as_operand
from dovetail._core.hlo.inspections import Inspection
from dovetail._core.ir.jaxpr import Effects
from dovetail._core.ops.callbacks.calls import Observation
from dovetail._core.ops.checkpoint.naming import as_device_array

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


@record
class InspectionEffect:
    """The effect that keeps an inspection in its program until that is compiled."""

    def __str__(self) -> str:
        return "Inspection"


class InspectSharding(Observation):
    """Calls a host function with the sharding of an array."""

    name = "inspect_sharding"

    def evaluate(self, x: Any, *, callback: Callable[[Any], object]) -> Any:
        """Call the function with the sharding of the array."""
        callback(as_device_array(x).sharding)
        return []

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*args, **params), []

    def lower(self, context: Builder, x: Any, *, callback: Callable[[Any], object]) -> Any:
        if context.partitioning is None:
            context.inspections.append(callback)
            return []
        if set(context.platforms) != {"cpu"}:
            raise NotImplementedError(
                "debug.inspect_array_sharding and visualize_array_sharding see values inside "
                f"programs over several devices on CPUs, not on {' and '.join(context.platforms)}; "
                "return the value, and call them with it"
            )
        aval = context.physical(context.avals_in[0])
        inspection = Inspection(callback, aval.ndim)
        context.inspections.append(inspection)
        context.custom_call(
            "InspectSharding",
            [x],
            [aval],
            has_side_effect=True,
            api_version=1,
            attributes={"backend_config": inspection.encoded()},
        )
        return []

    def effects(self, *avals: Any, **params: Any) -> Effects:
        return frozenset({InspectionEffect()})


inspect_sharding_p: Final = InspectSharding()


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], object]) -> None:
    """Call a function with the sharding of an array, as soon as it is known.

    For arrays, that is now. In compiled functions, it is when the program is compiled for its
    devices: once for each compilation, not when the program runs. In programs over several devices
    it is the compiler's choice, and they are in no cache. Under `vmap`, it is the sharding
    of the whole batch; under `grad` and `jvp`, that of the primal value.

    Args:
        value: an array, or a tree of arrays. The function is called once for each.
        callback: takes a `dovetail.sharding.Sharding`. An exception in it is raised by the call
            that compiles the program.

    Raises:
        TypeError: `callback` is not a function, or a leaf is not an array.

    Differs:
        The callback is called when the program is compiled for a device, once for each
        compilation, and nothing of it is left in the program; JAX calls it when the program is
        lowered.

        >>> look = dt.jit(lambda x: dt.debug.inspect_array_sharding(x, callback=print))
        >>> "print" in look.lower(1.0).compile().as_text()
        SingleDeviceSharding(CpuDevice(id=0))
        False

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> @dt.jit
        ... def double(x):
        ...     y = 2 * x
        ...     dt.debug.inspect_array_sharding(y, callback=lambda s: print(s.num_devices))
        ...     return y
        >>> double(jnp.arange(3.0)), double(jnp.ones(3))
        1
        (Array([0., 2., 4.], dtype=float32), Array([2., 2., 2.], dtype=float32))
    """
    if not callable(callback):
        raise TypeError(
            "debug.inspect_array_sharding takes a function of a sharding as callback, such as "
            f"print; got {callback!r:.80}"
        )
    for path, leaf in pytree.flatten_with_path(value)[0]:
        array = as_operand(leaf, "debug.inspect_array_sharding", f"value{pytree.keystr(path)}")
        inspect_sharding_p.bind(array, callback=callback)
