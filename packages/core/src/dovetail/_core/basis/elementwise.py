"""The elementwise family, and the members that transformations themselves need."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import DTypeError, ShapeError
from dovetail._core.basis.structural import (
    broadcast_in_dim,
    broadcast_to,
    is_linear,
    move_dimension,
    not_linear,
    reshape,
    sum_to,
)
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval, shape_of
from dovetail._core.ir.shown_params import ShownParams, is_given
from dovetail._core.trace.divisions import Labels, divided_alike
from dovetail._core.trace.manual_axes import wanted_types
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

KIND_NAMES: Final = {
    "b": "bool",
    "i": "signed integers",
    "u": "unsigned integers",
    "f": "floating point",
    "c": "complex",
}


@functools.lru_cache(maxsize=256)
def dtype_name(dtype: Any) -> str:
    """The full name of a dtype, extended ones included."""
    return dtype.name if isinstance(dtype, np.dtype) else str(dtype)


def broadcast_shapes(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of an elementwise result.

    Scalars match any shape, and dimensions of size one match any size.

    Raises:
        ShapeError: the shapes are incompatible.
    """
    first = shapes[0]
    if all(s == first for s in shapes):
        return first
    ranked = [s for s in shapes if s]
    rank = len(ranked[0])
    if all(len(s) == rank for s in ranked):
        out = tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*ranked, strict=True))
        if all(n in (1, m) for s in ranked for n, m in zip(s, out, strict=True)):
            return out
    raise ShapeError(
        f"{name} got incompatible shapes for broadcasting: {', '.join(map(str, shapes))}; ranks "
        "must be equal (or zero), and sizes equal or one"
    )


class Elementwise(Primitive):
    """Computes each element of the result from the corresponding elements of the operands.

    Operands have the same dtype. Their shapes are equal, except that scalars and dimensions of size
    one are repeated. Members set `hlo`, the name of the StableHLO operation (prefixed ``chlo.`` for
    those of that dialect), `numpy`, a function of NumPy arrays, and `kinds`, the dtype kinds that
    they take: any of b (bool), i, u, f, c.
    """

    accepts_zeros = True
    hlo: ClassVar[str]
    numpy: ClassVar[Callable[..., Any]]
    kinds: ClassVar[str] = "iufc"

    def result_dtype(self, *avals: ShapedArray, **params: Any) -> Any:
        """The dtype of the result; by default that of the operands."""
        return avals[0].dtype

    def check_dtypes(self, *avals: ShapedArray) -> None:
        """Raise TypeError for dtypes that the primitive does not take."""
        first = avals[0].dtype
        for aval in avals:
            if dtypes.kind_of(aval.dtype) not in self.kinds or dtypes.kind_of(aval.dtype) == "":
                raise DTypeError(
                    f"{self.name} does not accept dtype {dtype_name(aval.dtype)}; it takes "
                    f"{', '.join(KIND_NAMES[k] for k in self.kinds)}"
                )
            if aval.dtype != first:
                raise TypeError(
                    f"{self.name} requires operands of equal dtypes, got "
                    f"{', '.join(dtype_name(a.dtype) for a in avals)}; convert with "
                    "lax.convert_element_type, or use dovetail.numpy, which promotes"
                )

    def abstract(self, *avals: Any, **params: Any) -> Any:
        self.check_dtypes(*avals)
        shape = broadcast_shapes(self.name, [a.shape for a in avals])
        weak = all(a.weak_type for a in avals)
        return make_aval(shape, self.result_dtype(*avals, **params), weak)

    def reference(self, *args: Any, **params: Any) -> Any:
        arrays = [np.asarray(a) for a in args]
        out = type(self).numpy(*arrays, **params)
        aval = self.abstract(*(make_aval(a.shape, a.dtype) for a in arrays), **params)
        return np.asarray(out).astype(aval.dtype)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        shapes = [shape_of(a) for a in args]
        inner = [s if d is None else s[:d] + s[d + 1 :] for s, d in zip(shapes, dims, strict=True)]
        rank = max(map(len, inner))
        dim = next(d for d in dims if d is not None)
        if all(
            (d == dim and len(i) == rank) if d is not None else not i
            for i, d in zip(inner, dims, strict=True)
        ):
            return self.bind(*args, **params), dim
        aligned = []
        for x, shape, d in zip(args, inner, dims, strict=True):
            if d is None:
                aligned.append(reshape(x, (1, *shape)) if shape else x)
            else:
                moved = move_dimension(x, d, 0)
                size = shape_of(moved)[0]
                aligned.append(moved if shape else reshape(moved, (size,) + (1,) * rank))
        return self.bind(*aligned, **params), 0

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        assert context.equation is not None
        out = context.equation.outvars[0].aval
        return self.emit(context, *context.broadcast_operands(values, out), out=out, **params)

    def emit(self, context: Builder, *values: Any, out: ShapedArray, **params: Any) -> Any:
        """StableHLO for operands that all have the shape of the result `out`."""
        return context.op(self.hlo, values, out)


class AddAny(Elementwise):
    """The sum of two cotangents (or tangents) of one value."""

    name, hlo, numpy = "add_any", "add", np.add
    linear_in: ClassVar[Sequence[slice]] = (slice(None),)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*primals), add_tangents(*tangents)

    def transpose(self, ct: Any, x: Any, y: Any) -> Sequence[Any]:
        return [sum_to(ct, a.shape) if is_linear(a) else None for a in (x, y)]


add_any_p: Final = AddAny()


class Neg(Elementwise):
    """The negative."""

    name, hlo, numpy = "neg", "negate", np.negative
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)
    generates_nan = False

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        return self.bind(x), t if type(t) is Zero else self.bind(t)

    def transpose(self, ct: Any, x: Any) -> Sequence[Any]:
        return (self.bind(ct) if is_linear(x) else None,)


neg_p: Final = Neg()


class Mul(Elementwise):
    """The product."""

    name, hlo, numpy = "mul", "multiply", np.multiply
    linear_in: ClassVar[Sequence[slice]] = (slice(1), slice(1, 2))
    kinds = "biufc"

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        (x, y), (s, t) = primals, tangents
        out = self.bind(x, y)
        if type(s) is Zero:
            if type(t) is Zero:
                return out, Zero.of(out)
            return out, broadcast_to(self.bind(x, t), shape_of(out))
        tangent = broadcast_to(self.bind(s, y), shape_of(out))
        if type(t) is not Zero:
            tangent = add_tangents(tangent, broadcast_to(self.bind(x, t), shape_of(out)))
        return out, tangent

    def transpose(self, ct: Any, x: Any, y: Any) -> Sequence[Any]:
        if is_linear(x):
            if is_linear(y):
                raise not_linear("a product of two values that both depend on a tangent")
            return (sum_to(self.bind(ct, y), x.shape), None)
        return (None, sum_to(self.bind(x, ct), y.shape))

    def emit(self, context: Builder, *values: Any, out: ShapedArray, **params: Any) -> Any:
        return context.op("and" if out.dtype == np.bool_ else "multiply", values, out)


mul_p: Final = Mul()


class ConvertElementType(Elementwise):
    """The same values in another dtype, converted like NumPy's `astype`."""

    name = "convert_element_type"
    sharding_parameter: ClassVar[str] = "sharding"
    kinds = "biufc"
    generates_nan = False
    shown_params: ClassVar[ShownParams] = {"sharding": is_given}

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        (x,), new = avals, dtypes.kind_of(params["new_dtype"])
        linear = new in "fc" or (new in "iu" and dtypes.kind_of(x.dtype) in "iu")
        return wanted_types(self.name, avals, (slice(1),) if linear else ()), {}

    def abstract(
        self, x: Any, *, new_dtype: Any, weak_type: bool = False, sharding: Any = None
    ) -> Any:
        if not _converts(x.dtype, new_dtype):
            raise DTypeError(
                f"convert_element_type cannot convert {dtype_name(x.dtype)} to "
                f"{dtype_name(new_dtype)}"
            )
        return make_aval(x.shape, new_dtype, weak_type)

    def reference(self, x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any) -> Any:
        x = np.asarray(x)
        if dtypes.is_extended(new_dtype):
            return x
        if dtypes.kind_of(x.dtype) == "c" and dtypes.kind_of(new_dtype) not in "cb":
            x = x.real
        return x.astype(new_dtype)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = self.bind(x, **params)
        if type(t) is Zero or aval_of(out).tangent().dtype == dtypes.float0:
            return out, Zero.of(out)
        return out, self.bind(t, **params)

    def transpose(
        self, ct: Any, x: Any, *, new_dtype: Any, weak_type: bool, sharding: Any
    ) -> Sequence[Any]:
        if not is_linear(x):
            return (None,)
        differs = dtypes.kind_of(new_dtype) not in ("f", "c") and not dtypes.is_extended(new_dtype)
        if dtypes.kind_of(x.dtype) in ("f", "c") and differs:
            raise not_linear(f"a conversion from {dtype_name(x.dtype)} to {dtype_name(new_dtype)}")
        return (convert_element_type(ct, x.dtype, x.weak_type),)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*args, **params), dims[0]

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        before, after = map(context.physical, (context.avals_in[0], context.avals_out[0]))
        return context.convert(values[0], before, after)


def _converts(dtype: Any, new_dtype: Any) -> bool:
    """Whether values of a dtype can be converted to another."""
    if dtypes.is_extended(dtype):
        return bool(dtype == new_dtype or dtype.converts_to(new_dtype))
    if dtypes.is_extended(new_dtype):
        return bool(new_dtype.converts_from(dtype))
    return bool(dtypes.kind_of(dtype) and dtypes.kind_of(new_dtype))


convert_element_type_p: Final = ConvertElementType()


# Functions for rules, on values of one dtype; the public functions of these names are in `ops`.


def mul(x: Any, y: Any) -> Any:
    """The product."""
    return mul_p.bind(x, y)


def neg(x: Any) -> Any:
    """The negative."""
    return neg_p.bind(x)


def convert_element_type(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` in a dtype; nothing is emitted if it already has that dtype."""
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type, sharding=None)


def add_tangents(first: Any, second: Any) -> Any:
    """The sum of two tangents or cotangents, either of which may be a `Zero`."""
    if type(first) is Zero:
        return second
    if type(second) is Zero:
        return first
    dtype = aval_of(first).dtype
    if dtypes.is_extended(dtype):
        return dtype.add(first, second)
    return add_any_p.bind(first, second)


def broadcast_scalar(x: Any, shape: tuple[int, ...]) -> Any:
    """A scalar repeated to `shape`."""
    return broadcast_in_dim(x, shape, ())
