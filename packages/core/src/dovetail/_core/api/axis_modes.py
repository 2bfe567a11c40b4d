"""`auto_axes` and `explicit_axes`: functions for which axes of the mesh have another type."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from dovetail._core.base import pytree
from dovetail._core.base.typing import PyTree
from dovetail._core.base.wrapping import wraps
from dovetail._core.basis.operands import as_operand, as_result
from dovetail._core.ir.abstract_mesh import AxisType, MeshAxes
from dovetail._core.ir.avals import is_array_like
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.ops.calls.mesh_cast import mesh_cast
from dovetail._core.ops.calls.sharding_constraint import constrain
from dovetail._core.runtime.devices.named_sharding import NamedSharding
from dovetail._core.trace.current_mesh import current_mesh, mesh_scope
from dovetail._core.trace.tracer import ArrayClass
from dovetail._core.transform.flattening import check_callable, leaf_names, name_of

AxisName = Hashable


def auto_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    out_sharding: PyTree = None,
) -> Callable[..., Any]:
    """Leave it to the compiler, inside a function, how arrays are divided.

    Inside, axes of the type `Explicit` are of the type `Auto`: types of arrays do not speak of
    them, and nothing is ambiguous. The results are divided as `out_sharding` says.

    Args:
        f: the function, of arrays and other arguments; without it, a decorator is returned.
        axes: the axes of the current mesh that become `Auto`; all that are `Explicit` by default.
        out_sharding: how each result is divided: a `PartitionSpec`, a `NamedSharding`, or a tree of
            them that is a prefix of the result. It can also be given where the function is called.

    Returns:
        A function like `f`, which also takes `out_sharding`; or a decorator.

    Raises:
        TypeError: `out_sharding` is missing, or is something else.
        ValueError: there is no current mesh, it lacks an axis, an axis is handled by a
            `dovetail.shard_map`, or a result cannot be divided so.

    Differs:
        Arguments that are passed by name count as much as others, and arrays that the function
        captures may be divided, where JAX refuses both.

        >>> from dovetail.sharding import PartitionSpec as P, auto_axes
        >>> with dt.set_mesh(dt.make_mesh((1,), ("x",))):
        ...     x = dt.device_put(jnp.arange(2), P("x"))
        ...     print(dt.typeof(auto_axes(lambda *, a: a + x, out_sharding=P("x"))(a=x)))
        int32[2@x]

    Example:
        >>> from dovetail.sharding import PartitionSpec as P, auto_axes
        >>> @auto_axes(out_sharding=P("x", None))
        ... def gram(a):
        ...     return a @ a.T  # two dimensions of the result would be divided over "x"
        >>> with dt.set_mesh(dt.make_mesh((1,), ("x",))):
        ...     print(dt.typeof(gram(dt.device_put(jnp.ones((4, 2)), P("x")))))
        float32[4@x,4]
    """
    if f is None:
        return lambda g: auto_axes(g, axes=axes, out_sharding=out_sharding)
    check_callable(f, "auto_axes")
    mode = _Mode("auto_axes", f, axes, AxisType.Auto)

    @wraps(f)
    def function(*args: Any, out_sharding: PyTree = out_sharding, **kwargs: Any) -> Any:
        mode.check_given("out_sharding", out_sharding)
        return mode(args, kwargs, None, out_sharding)

    function.__name__ = name_of(f)
    return function


def explicit_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | tuple[str, ...] | None = None,
    in_sharding: PyTree = None,
) -> Callable[..., Any]:
    """Have types say, inside a function, how arrays are divided.

    Inside, axes of the type `Auto` are of the type `Explicit`. The arguments are divided as
    `in_sharding` says, and the results of operations as follows from that.

    Args:
        f: the function, of arrays; without it, a decorator is returned.
        axes: the axes of the current mesh that become `Explicit`; all that are `Auto` by default.
        in_sharding: how each argument is divided: a `PartitionSpec`, a `NamedSharding`, or a tree
            of them that is a prefix of the tuple of arguments. It can also be given where the
            function is called.

    Returns:
        A function like `f`, which also takes `in_sharding`; or a decorator.

    Raises:
        TypeError: `in_sharding` is missing, or is something else.
        ValueError: there is no current mesh, it lacks an axis, an axis is handled by a
            `dovetail.shard_map`, or an argument cannot be divided so.

    Example:
        >>> from dovetail.sharding import AxisType, PartitionSpec as P, explicit_axes
        >>> @explicit_axes(in_sharding=P("x"))
        ... def double(a):
        ...     print(dt.typeof(a))
        ...     return 2 * a
        >>> with dt.set_mesh(dt.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))):
        ...     print(double(jnp.arange(2)))
        int32[2@x]
        [0 2]
    """
    if f is None:
        return lambda g: explicit_axes(g, axes=axes, in_sharding=in_sharding)
    check_callable(f, "explicit_axes")
    mode = _Mode("explicit_axes", f, axes, AxisType.Explicit)

    @wraps(f)
    def function(*args: Any, in_sharding: PyTree = in_sharding, **kwargs: Any) -> Any:
        mode.check_given("in_sharding", in_sharding)
        if kwargs:
            raise TypeError(
                f"{mode.what}: arguments are passed by position, since in_sharding has an entry "
                f"for each; got {next(iter(kwargs))!r} by name"
            )
        return mode(args, {}, in_sharding, None)

    function.__name__ = name_of(f)
    return function


_EXAMPLE: Final = {"out_sharding": "a result", "in_sharding": "an argument"}


class _Mode:
    """How a function is called for which axes have another type.

    Args:
        name: the name of the public function, for messages.
        function: the user's function.
        axes: the axes, as they are given.
        kind: their type inside.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        axes: str | Sequence[str] | None,
        kind: AxisType,
    ) -> None:
        self.what = f"{name} of {name_of(function)}"
        self.function = function
        self.axes = (axes,) if isinstance(axes, str) else axes
        self.kind = kind

    def check_given(self, argument: str, sharding: Any) -> None:
        if sharding is None:
            raise TypeError(
                f"{self.what}: {argument} is missing, which says how {_EXAMPLE[argument]} is "
                f"divided; write for example {argument}=PartitionSpec('x')"
            )

    def __call__(
        self, args: Any, kwargs: Any, in_sharding: PyTree | None, out_sharding: PyTree | None
    ) -> Any:
        outer = current_mesh()
        if outer is None or outer.empty:
            raise ValueError(
                f"{self.what}: there is no current mesh, whose axes it is about; set one with "
                "dovetail.set_mesh(mesh)"
            )
        inner = self._changed(outer)
        args, kwargs = self._entered(args, kwargs, outer, inner, in_sharding)
        with mesh_scope(inner):
            result = self.function(*args, **kwargs)
        return self._left(result, outer, inner, out_sharding)

    def _changed(self, mesh: Any) -> Any:
        """The mesh inside."""
        others = (AxisType.Auto, AxisType.Explicit)
        for axis in self.axes or ():
            if axis not in mesh.axis_names:
                raise ValueError(f"{self.what}: axes has {axis!r}, which {mesh} does not have")
            if axis in mesh.manual_axes:
                raise ValueError(
                    f"{self.what}: the axis {axis!r} is handled by the shard_map around it, where "
                    "each device has its part; leave it out of axes"
                )
        types = [
            self.kind if own in others and (self.axes is None or axis in self.axes) else own
            for axis, own in zip(mesh.axis_names, mesh.axis_types, strict=True)
        ]
        return mesh.update(axis_types=types)

    def _entered(
        self, args: Any, kwargs: Any, outer: MeshAxes, inner: MeshAxes, sharding: PyTree | None
    ) -> Any:
        leaves, tree = pytree.flatten((args, kwargs))
        wanted: list[Any] = [None] * len(leaves)
        if sharding is not None:
            of_args = pytree.structure(args)
            wanted = pytree.flatten_up_to_prefix(f"in_sharding of {self.what}", sharding, of_args)
        names = leaf_names(self.function, args, kwargs)
        entered = []
        for leaf, place, name in zip(leaves, wanted, names, strict=True):
            if not (is_array_like(leaf) if place is not None else isinstance(leaf, ArrayClass)):
                entered.append(leaf)
                continue
            spec = None if place is None else self._spec(place, outer, "in_sharding")
            operand = as_operand(leaf, self.what, name)
            if spec is not None:
                operand = self._placed(operand, outer, spec, "in_sharding", f"{self.what}: {name}")
            entered.append(self._cast(operand, outer, inner, spec))
        return tree.unflatten(entered)

    def _left(self, result: Any, outer: MeshAxes, inner: MeshAxes, sharding: PyTree | None) -> Any:
        paths, tree = pytree.flatten_with_path(result)
        wanted: list[Any] = [None] * len(paths)
        if sharding is not None:
            wanted = pytree.flatten_up_to_prefix(f"out_sharding of {self.what}", sharding, tree)
        left = []
        for (path, leaf), place in zip(paths, wanted, strict=True):
            spec = None if place is None else self._spec(place, outer, "out_sharding")
            operand = as_operand(leaf, self.what)
            if spec is not None:
                where = f"{self.what}: the result{pytree.keystr(path)}"
                operand = self._placed(operand, inner, spec, "out_sharding", where)
            left.append(as_result(self._cast(operand, inner, outer, spec)))
        return tree.unflatten(left)

    def _spec(self, place: Any, mesh: Any, argument: str) -> PartitionSpec:
        """The specification that is meant, over the mesh outside."""
        if isinstance(place, PartitionSpec):
            return place
        if not isinstance(place, NamedSharding):
            raise TypeError(
                f"{self.what}: {argument} holds {place!r}, which is no PartitionSpec or "
                "NamedSharding"
            )
        if place.mesh.shape_tuple != mesh.shape_tuple:
            raise ValueError(
                f"{self.what}: {argument} is over {place.mesh}, and the current mesh is {mesh}"
            )
        return place.spec

    def _placed(self, x: Any, mesh: Any, spec: PartitionSpec, argument: str, value: str) -> Any:
        """A value, divided over a mesh on which no type need speak of it."""
        with mesh_scope(mesh):
            return constrain(x, spec, f"{argument} of {self.what}", value)

    def _cast(self, x: Any, source: Any, target: Any, spec: PartitionSpec | None) -> Any:
        return mesh_cast(x, source.abstract_mesh, target.abstract_mesh, spec)
