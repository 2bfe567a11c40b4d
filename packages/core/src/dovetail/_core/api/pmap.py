"""`pmap`: run a function on several devices, each on an element along an axis of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from dovetail._core.api.jit import jit
from dovetail._core.api.mapping import DeviceMap, axis_spec
from dovetail._core.api.vectorization import mapped_dims
from dovetail._core.base import pytree
from dovetail._core.base.counting import counted
from dovetail._core.base.typing import PyTree
from dovetail._core.base.wrapping import wraps
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import shape_of
from dovetail._core.ops.shape.reshaping import add_dimensions, squeeze_dimensions
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.trace.current_mesh import get_abstract_mesh
from dovetail._core.transform.flattening import (
    FlatFunction,
    check_array_leaves,
    check_callable,
    leaf_names,
    name_of,
)

P = ParamSpec("P")
R = TypeVar("R")

#: The axis of the mesh where the user gives it no name.
_UNNAMED = "pmap"


def pmap(
    fun: Callable[P, R],
    axis_name: Hashable | None = None,
    *,
    in_axes: int | Sequence[PyTree] | None = 0,
    out_axes: PyTree = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Callable[P, R]:
    """Compile a function for several devices, each of which runs it on one element.

    It is `jit` of `shard_map` over a mesh of one axis. New programs are easier to write with these.

    Args:
        fun: function of arrays and pytrees of them.
        axis_name: a name for the mapped axis, for collective operations such as `lax.psum`.
        in_axes: the axis to map over, as for `dovetail.vmap`: one integer for all positional
            arguments, or a tuple with an entry for each; None for what all devices get whole.
            Keyword arguments are mapped over axis 0.
        out_axes: the position of the mapped axis in each part of the result; None for a part that
            is the same on all devices.
        static_broadcasted_argnums: positional arguments that are part of the program, as
            `static_argnums` of `jit`.
        devices: the devices, one for each element; the first ones that there are by default.
        backend: the platform whose devices are taken.
        axis_size: the number of elements; needed only if no argument is mapped.
        donate_argnums: positional arguments whose memory may be reused for results.

    Returns:
        The mapped function, with the methods of what `jit` returns. Results are divided over the
        devices along the mapped axis.

    Raises:
        TypeError: `in_axes` or `out_axes` do not hold integers.
        ValueError: sizes along mapped axes differ, or there are fewer devices than elements.

    Example:
        >>> dt.pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([4.0]))
        Array([1.], dtype=float32)
    """
    check_callable(fun, "pmap")
    name = name_of(fun)
    if devices is not None and backend is not None:
        raise ValueError(f"pmap of {name} takes devices or backend, not both")
    for argument, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        for axis in pytree.leaves(axes):
            if type(axis) is not int:
                raise TypeError(
                    f"{argument} of pmap of {name} must hold integers and None, got {axis!r}"
                )
    given_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    statics = _integers(static_broadcasted_argnums)
    axis = _UNNAMED if axis_name is None else axis_name

    @wraps(fun)
    def pmap_fun(*args: Any, **kwargs: Any) -> Any:
        if get_abstract_mesh().manual_axes:
            raise NotImplementedError(
                f"pmap of {name} is called by a function that runs on one device, inside of "
                "another pmap or a shard_map: use vmap there, or a shard_map over a mesh of "
                "several axes"
            )
        dynamic = [i for i in range(len(args)) if i not in statics]
        mapped = [args[i] for i in dynamic]
        axes = given_axes
        if isinstance(axes, tuple):
            if len(axes) != len(args):
                raise ValueError(
                    f"in_axes of pmap of {name} has {counted(len(axes), 'entry', 'entries')}, but "
                    "the call has "
                    f"{counted(len(args), 'positional argument')}; give one entry for each"
                )
            axes = tuple([axes[i] for i in dynamic])

        def of_element(*given: Any, **named: Any) -> Any:
            all_args = list(args)
            for i, value in zip(dynamic, given, strict=True):
                all_args[i] = value
            return fun(*all_args, **named)

        leaves, tree = pytree.flatten((tuple(mapped), kwargs))
        names = leaf_names(of_element if statics else fun, tuple(mapped), kwargs)
        check_array_leaves(leaves, lambda: names, f"pmap of {name}")
        dims = [
            *pytree.flatten_up_to_prefix(
                f"in_axes of pmap of {name}", axes, pytree.structure(tuple(mapped))
            ),
            *[0] * pytree.structure(kwargs).num_leaves,
        ]
        dims, size = mapped_dims(leaves, dims, axis_size, lambda: names, f"pmap of {name}")
        mesh = _mesh(size, axis, devices, backend, name)
        flat = FlatFunction(of_element, tree, keywords=True)
        places: list[int | None] = []

        def on_device(*parts: Any) -> list[Any]:
            elements = [
                x if d is None else squeeze_dimensions(x, (d,))
                for x, d in zip(parts, dims, strict=True)
            ]
            results = [as_operand(x, f"pmap of {name}") for x in flat(*elements)]
            places[:] = _destinations(results, out_axes, flat.out_tree, name)
            return [
                x if d is None else add_dimensions(x, (d,))
                for x, d in zip(results, places, strict=True)
            ]

        run = DeviceMap(f"pmap of {name}", mesh, frozenset(), False)
        outs = run(
            flat,
            leaves,
            names,
            [axis_spec(d, axis) for d in dims],
            lambda: [axis_spec(d, axis) for d in places],
            on_device,
        )
        return flat.out_tree.unflatten(outs)

    return jit(
        pmap_fun,
        static_argnums=statics or None,
        donate_argnums=_integers(donate_argnums) or None,
    )


def _integers(numbers: int | Iterable[int]) -> tuple[int, ...]:
    return (numbers,) if isinstance(numbers, int) else tuple(numbers)


def _mesh(size: int, axis: Hashable, devices: Any, backend: str | None, function: str) -> Mesh:
    known = list(clients.devices(backend) if devices is None else devices)
    if devices is not None and len(known) != size:
        raise ValueError(
            f"pmap of {function}: the mapped axis has {counted(size, 'element')} for "
            f"{counted(len(known), 'device')}; pass one device for each"
        )
    if len(known) < size:
        hint = ""
        if clients.platform_of(known[0]) == "cpu":
            hint = (
                f", or set the option num_cpu_devices (DOVETAIL_NUM_CPU_DEVICES) to {size} before "
                "the first computation"
            )
        raise ValueError(
            f"pmap of {function}: the mapped axis has {counted(size, 'element')} for "
            f"{counted(len(known), 'device')}; use vmap, or a vmap inside for what a device "
            f"takes{hint}"
        )
    array = np.empty(size, object)
    array[:] = known[:size]
    return Mesh(array, (axis,))


def _destinations(
    results: Sequence[Any], out_axes: PyTree, tree: Any, function: str
) -> list[int | None]:
    """For each result, the non-negative position of the mapped axis."""
    what = f"out_axes of pmap of {function}"
    places: list[int | None] = []
    for x, d in zip(results, pytree.flatten_up_to_prefix(what, out_axes, tree), strict=True):
        rank = len(shape_of(x)) + 1
        if d is not None and not -rank <= d < rank:
            raise ValueError(
                f"{what} has {d} for a result of rank {rank} (the mapped axis included)"
            )
        places.append(None if d is None else d % rank)
    return places
