"""Inspecting functions without running them: make_jaxpr, eval_shape, ShapeDtypeStruct."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import NoneType
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.counting import counted
from dovetail._core.base.errors import ShapeError
from dovetail._core.base.restoring import Restoring, within
from dovetail._core.base.tracebacks import bounded
from dovetail._core.base.typing import ArrayLike, PyTree
from dovetail._core.base.wrapping import wraps
from dovetail._core.ir.avals import AbstractToken, ShapedArray, aval_of
from dovetail._core.ir.dimensions import as_size
from dovetail._core.ir.jaxpr import ClosedJaxpr
from dovetail._core.ir.manual_axis_type import ManualAxisType, invarying
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.runtime.arrays.array import Array
from dovetail._core.runtime.devices.layout import AutoLayout, Format
from dovetail._core.runtime.devices.named_sharding import over_current_mesh
from dovetail._core.runtime.devices.sharding import Sharding
from dovetail._core.trace.mutable_references import AbstractRef, Ref
from dovetail._core.trace.named_axes import NamedAxis, named_axes
from dovetail._core.trace.state import (
    KnownValuesTrace,
    Trace,
    evaluation_trace,
    set_jit_key,
    state,
    use_trace,
)
from dovetail._core.transform.flattening import (
    FlatFunction,
    abstract,
    abstract_leaves,
    check_callable,
    debug_info,
    name_of,
    normalized_argnums,
)
from dovetail._core.transform.referencing import stage_using_references

P = ParamSpec("P")
R = TypeVar("R")


@bounded
class ShapeDtypeStruct:
    """Shape and dtype of an array, without data.

    Args:
        shape: sizes of the dimensions.
        dtype: the dtype.
        sharding: where the array would be placed: a sharding, a `PartitionSpec` over the current
            mesh, or a `Format`; `jit(f).lower(...).compile()` compiles for its devices, which need
            not be present.
        weak_type: whether the dtype gives way to others in promotion.
        manual_axis_type: inside `dovetail.shard_map`, along which of its axes the array may differ
            from device to device, is unreduced or reduced.
        is_ref: whether it describes a mutable reference to such an array.

    Raises:
        TypeError: a size is not an integer, `dtype` is not a dtype, `manual_axis_type` is not a
            `ManualAxisType`, or `sharding` is not a sharding, or has the layout ``Layout.AUTO``.
        ValueError: a size is negative, `sharding` divides more dimensions than there are, or there
            is no current mesh for a `PartitionSpec`.

    Example:
        >>> ShapeDtypeStruct((2, 3), "float32")
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = (
        "_layout",
        "dtype",
        "is_ref",
        "manual_axis_type",
        "shape",
        "sharding",
        "weak_type",
    )

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: ManualAxisType | None = None,
        is_ref: bool = False,
    ) -> None:
        if not isinstance(manual_axis_type, (ManualAxisType, NoneType)):
            raise TypeError(
                "ShapeDtypeStruct: manual_axis_type must be a dovetail.sharding.ManualAxisType or "
                f"None, got {manual_axis_type!r:.80}"
            )
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be given")
        try:
            self.shape = tuple([as_size(n) for n in shape])
        except TypeError:
            raise TypeError(
                f"ShapeDtypeStruct: shape must be a sequence of integers, got {shape!r}"
            ) from None
        if any(n < 0 for n in self.shape):
            raise ValueError(f"ShapeDtypeStruct: sizes must not be negative, got {self.shape}")
        self.dtype = dtypes.as_dtype(dtype)
        if isinstance(sharding, PartitionSpec):
            sharding = over_current_mesh(sharding, "sharding of ShapeDtypeStruct")
        if sharding is not None and not isinstance(sharding, (Sharding, Format)):
            raise TypeError(
                "ShapeDtypeStruct: sharding must be a sharding, such as "
                f"dovetail.sharding.SingleDeviceSharding(device), or None; got {sharding!r}"
            )
        self._layout = None
        if isinstance(sharding, Format):
            if isinstance(sharding.layout, AutoLayout):
                raise TypeError(
                    "ShapeDtypeStruct describes one array, whose layout is no choice of a "
                    f"compiler; got {sharding}"
                )
            self._layout, sharding = sharding.layout, sharding.sharding
        if len(getattr(sharding, "spec", ())) > len(self.shape):
            raise ShapeError(
                f"ShapeDtypeStruct: {sharding} divides "
                f"{counted(len(sharding.spec), 'dimension')}, and the "
                f"shape {self.shape} has {len(self.shape)}"
            )
        self.sharding = sharding
        self.manual_axis_type = manual_axis_type
        self.weak_type = weak_type
        self.is_ref = is_ref

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The struct that describes a value.

        Args:
            x: an array, tracer, NumPy value, Python scalar, mutable reference, or anything with a
                shape and a dtype. Only of an array that is committed to its device, the struct has
                the sharding and the layout.

        Raises:
            NonArrayArgumentError: it is none of these.

        Example:
            >>> ShapeDtypeStruct.like(np.ones((2, 3), "float32"))
            ShapeDtypeStruct(shape=(2, 3), dtype=float32)
        """
        if isinstance(x, ShapeDtypeStruct):
            return x
        aval = abstract(x)
        place = x.format if type(x) is Array and x.committed else None
        return cls(
            aval.shape,
            aval.dtype,
            sharding=place,
            weak_type=aval.weak_type,
            manual_axis_type=_varying(aval),
            is_ref=type(aval) is AbstractRef,
        )

    @property
    def format(self) -> Format:
        """The sharding and the memory layout."""
        return Format(self._layout, self.sharding)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with some fields replaced."""
        fields: dict[str, Any] = {
            "shape": self.shape,
            "dtype": self.dtype,
            "sharding": self.sharding,
            "weak_type": self.weak_type,
            "manual_axis_type": self.manual_axis_type,
            "is_ref": self.is_ref,
        }
        if "sharding" not in changes:
            fields["sharding"] = self.format if self._layout is not None else self.sharding
        unknown = set(changes) - set(fields)
        if unknown:
            raise TypeError(f"ShapeDtypeStruct has no field {sorted(unknown)}")
        fields |= changes
        return ShapeDtypeStruct(fields.pop("shape"), fields.pop("dtype"), **fields)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: the shape has rank 0")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (
            self.shape,
            self.dtype,
            self.format,
            self.weak_type,
            self.manual_axis_type,
            self.is_ref,
        )

    def __repr__(self) -> str:
        name = self.dtype.name if isinstance(self.dtype, np.dtype) else str(self.dtype)
        sharding = "" if self.sharding is None else f", sharding={self.sharding}"
        weak = ", weak_type=True" if self.weak_type else ""
        ref = ", is_ref=True" if self.is_ref else ""
        layout = "" if self._layout is None else f", layout={self._layout}"
        manual = self.manual_axis_type
        own = "" if manual is None else f", manual_axis_type={manual}"
        given = f"{sharding}{layout}{weak}{own}{ref}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={name}{given})"


def struct_of(aval: Any, sharding: Any = None) -> Any:
    """The struct that describes an aval, with a sharding; a token's aval itself."""
    if type(aval) is AbstractToken:
        return aval
    if sharding is None and aval.division is not None:
        sharding = aval.sharding
    return ShapeDtypeStruct(
        aval.shape,
        aval.dtype,
        sharding=sharding,
        weak_type=aval.weak_type,
        manual_axis_type=_varying(aval),
    )


def _varying(aval: Any) -> ManualAxisType | None:
    axes = getattr(aval, "manual_axis_type", invarying)
    return None if axes is invarying else axes


def typeof(x: ArrayLike | ShapeDtypeStruct) -> ShapedArray:
    """The abstract value of an array, tracer, NumPy value, Python scalar or `ShapeDtypeStruct`.

    Args:
        x: the value, or a mutable reference.

    Returns:
        A `ShapedArray`; of a reference, an `AbstractRef`.

    Raises:
        NonArrayArgumentError: `x` is none of these.

    Example:
        >>> import dovetail as dt
        >>> dt.typeof(1.0)
        ShapedArray(float32[], weak_type=True)
    """
    return abstract(x) if isinstance(x, (ShapeDtypeStruct, Ref)) else aval_of(x)


def ensure_compile_time_eval() -> _CompileTimeEvaluation:
    """Evaluate operations on concrete values at once, even inside a traced function.

    Operations on tracers are traced as usual.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> @dt.jit
        ... def f(x):
        ...     with dt.ensure_compile_time_eval():
        ...         size = int(jnp.sum(jnp.array([1, 2])))
        ...     return x * size
        >>> float(f(2.0))
        6.0
    """
    return _CompileTimeEvaluation()


def eval_context() -> AbstractContextManager[object]:
    """A block that runs as if it stood outside of all transformations.

    Operations are evaluated at once; those on tracers of the transformations around it are errors,
    where `ensure_compile_time_eval` would trace them.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> @dt.jit
        ... def f(x):
        ...     with dt.core.eval_context():
        ...         last = int((jnp.arange(3) ** 2)[2])
        ...     return x + last
        >>> print(f(1))
        5
    """
    return use_trace(evaluation_trace)


class _CompileTimeEvaluation(Restoring[Any]):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(lambda: state.trace, _evaluate_known_values, _make_current)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Run every call of ``function`` so."""
        return within(_CompileTimeEvaluation, function)


def _evaluate_known_values() -> None:
    present = state.trace
    _make_current(evaluation_trace if present.parent is None else KnownValuesTrace(present))


def _make_current(trace: Trace) -> None:
    state.trace = trace
    set_jit_key(trace.key)


def eval_shape(fun: Callable[..., Any], *args: PyTree, **kwargs: PyTree) -> PyTree:
    """Shapes and dtypes of a function's result, without computing it.

    Args:
        fun: function of arrays and pytrees of them.
        *args: arrays, scalars, or anything with a shape and a dtype, such as `ShapeDtypeStruct`.
        **kwargs: the same, as keyword arguments.

    Returns:
        The tree of the result with `ShapeDtypeStruct` leaves; with shardings if `fun` is a jitted
        function with `out_shardings`. What the function returns as a `ShapeDtypeStruct` stays so.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> left, right = dt.ShapeDtypeStruct((2, 3), "f4"), dt.ShapeDtypeStruct((3, 4), "f4")
        >>> dt.eval_shape(jnp.dot, left, right)
        ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """
    check_callable(fun, "eval_shape")
    if all(hasattr(fun, name) for name in ("lower", "trace", "eval_shape")):
        jitted = cast(Any, fun)  # it knows its shardings
        return jitted.eval_shape(*args, **kwargs)
    leaves, tree = pytree.flatten((args, kwargs))
    info = debug_info("eval_shape", fun, args, kwargs)
    types = _TypesAmongResults(fun)
    flat = FlatFunction(types, tree, keywords=True)
    closed, _ = stage_using_references(flat, abstract_leaves(leaves, info), info)
    count = flat.out_tree.num_leaves
    return types.completed(flat.out_tree, [struct_of(a) for a in closed.out_avals[:count]])


class _TypesAmongResults:
    """A function without those of its results that are types already.

    Args:
        function: the function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__name__ = name_of(function)
        self._tree: Any = None
        self._types: list[ShapeDtypeStruct | None] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = self._function(*args, **kwargs)
        leaves, tree = pytree.flatten(out)
        types = [x if isinstance(x, ShapeDtypeStruct) else None for x in leaves]
        if all(t is None for t in types):
            return out
        self._tree, self._types = tree, types
        # Where nothing is, the paths of the others stay the same.
        arrays = [x if t is None else None for x, t in zip(leaves, types, strict=True)]
        return tree.unflatten(arrays)

    def completed(self, tree: Any, types: list[ShapeDtypeStruct]) -> Any:
        """The tree of all types, from the types of the other results."""
        if self._tree is None:
            return tree.unflatten(types)
        others = iter(types)
        return self._tree.unflatten([next(others) if t is None else t for t in self._types])


@overload
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: Literal[False] = False,
) -> Callable[..., ClosedJaxpr]: ...
@overload
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    *,
    return_shape: Literal[True],
) -> Callable[..., tuple[ClosedJaxpr, PyTree]]: ...
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., ClosedJaxpr | tuple[ClosedJaxpr, PyTree]]:
    """A function that returns the jaxpr of `fun` for its arguments.

    Args:
        fun: function of arrays and pytrees of them.
        static_argnums: positional arguments that are passed through as Python values.
        axis_env: pairs of name and size of axes that collective operations in `fun` name, in place
            of a `vmap` around it.
        return_shape: whether to also return the tree of the result with `ShapeDtypeStruct` leaves.

    Returns:
        A function of the same arguments, or `ShapeDtypeStruct` in their place, that returns a
        `ClosedJaxpr`. Mutable references appear in it as values: those of captured references are
        constants, and the final values of all references written to are returned after the results.

    Differs:
        A jaxpr has no references: it shows their values as arguments, and those that are
        written as results.

        >>> def count(r):
        ...     r[...] = r[...] + 1
        >>> print(dt.make_jaxpr(count)(dt.new_ref(0)))
        { lambda ; a:i32[]. let b:i32[] = add a 1:i32[] in (b,) }

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> dt.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(3.0)
        { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }
    """
    check_callable(fun, "make_jaxpr")
    axes = [NamedAxis(name, size) for name, size in axis_env or ()]

    @wraps(fun)
    def jaxpr_maker(*args: Any, **kwargs: Any) -> Any:
        static = normalized_argnums(static_argnums, len(args), "make_jaxpr", "static_argnums")
        dynamic = tuple(a for i, a in enumerate(args) if i not in static)
        positions = [i for i in range(len(args)) if i not in static]

        def function(*given: Any, **keywords: Any) -> Any:
            full = list(args)
            for i, value in zip(positions, given, strict=True):
                full[i] = value
            return fun(*full, **keywords)

        leaves, tree = pytree.flatten((dynamic, kwargs))
        info = debug_info("make_jaxpr", fun, dynamic, kwargs, positions)
        flat = FlatFunction(function, tree, keywords=True)
        with named_axes(axes):
            closed, uses = stage_using_references(flat, abstract_leaves(leaves, info), info)
        if uses.captured:
            closed = uses.closed_over(closed)
        if return_shape:
            outs = closed.out_avals[: flat.out_tree.num_leaves]
            return closed, flat.out_tree.unflatten([struct_of(a) for a in outs])
        return closed

    return jaxpr_maker
