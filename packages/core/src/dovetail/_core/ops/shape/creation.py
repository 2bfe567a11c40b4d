"""Arrays created from a shape alone: filled with one value, or counting up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.strictness import strictness
from dovetail._core.base.typing import Array, ArrayLike, DTypeLike, IntLike, ShapeLike, Sharding
from dovetail._core.basis.elementwise import convert_element_type, dtype_name
from dovetail._core.basis.families import NoGradient
from dovetail._core.basis.operands import as_operand, make_literal
from dovetail._core.basis.structural import broadcast_in_dim_p
from dovetail._core.ir.avals import aval_of, make_aval
from dovetail._core.ir.dimensions import SymbolicDimension, set_dimension_value
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.ops.calls.out_sharding import asked_division, placed
from dovetail._core.ops.calls.sharding_constraint import constrain
from dovetail._core.ops.shape.dimensions import canonical_dimension, canonical_shape
from dovetail._core.trace.primitive import primitive
from dovetail._core.trace.state import evaluation_trace, state
from dovetail._core.trace.tracer import ArrayClass

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Shape = tuple[int, ...]


class Iota(NoGradient):
    """The position along one dimension."""

    name = "iota"
    sharding_parameter: ClassVar[str] = "sharding"
    no_derivative = "it has no operands"

    def abstract(self, *, dtype: Any, shape: Shape, dimension: int, sharding: Any = None) -> Any:
        if dtypes.kind_of(dtype) in ("", "b"):
            raise TypeError(
                f"iota does not count in dtype {dtype_name(dtype)}; it takes integers, floating "
                "point and complex numbers"
            )
        if not 0 <= dimension < len(shape):
            raise ValueError(f"iota: there is no dimension {dimension} in the shape {shape}")
        if dtypes.kind_of(dtype) in ("i", "u") and type(shape[dimension]) is int:
            dtypes.check_holds(shape[dimension] - 1, dtype, "iota")
        return make_aval(shape, dtype)

    def reference(self, *, dtype: Any, shape: Shape, dimension: int, sharding: Any = None) -> Any:
        column = [1] * len(shape)
        column[dimension] = shape[dimension]
        counted = np.arange(shape[dimension]).astype(dtype).reshape(column)
        return np.broadcast_to(counted, shape).copy()

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(**params), None

    def lower(
        self, context: Builder, *, dtype: Any, shape: Shape, dimension: int, sharding: Any = None
    ) -> Any:
        return context.iota(context.avals_out[0], dimension)


iota_p: Final = Iota()


class DimensionAsValue(NoGradient):
    """The value that a size has when the program is called."""

    name = "dim_as_value"
    generates_nan = False
    no_derivative = "it has no operands"

    def abstract(self, *, dim: SymbolicDimension) -> Any:
        return make_aval((), dtypes.default_dtype("i"), True)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(**params), None

    def lower(self, context: Builder, *, dim: SymbolicDimension) -> Any:
        (out,) = context.avals_out
        return context.convert(context.size(dim), context.size_aval, out)


dim_as_value_p: Final = DimensionAsValue()


def _value_of(dim: SymbolicDimension) -> Array:
    return dim_as_value_p.bind(dim=dim)


set_dimension_value(_value_of)


def iota_like(dtype: Any, shape: Shape, dimension: int) -> Any:
    """Positions along a dimension, for rules: the arguments are already canonical."""
    return iota_p.bind(dtype=dtype, shape=shape, dimension=dimension, sharding=None)


def position_dtype(size: int) -> Any:
    """The integer dtype for positions along a dimension of that size, and for the size itself."""
    return np.dtype(np.int32 if size < 2**31 else np.int64)


def iota(dtype: DTypeLike, size: IntLike) -> Array:
    """The numbers 0, 1, ... below `size`.

    Args:
        dtype: dtype of the result: integers, floating point or complex.
        size: how many; a non-negative integer.

    Returns:
        An array of shape ``(size,)``.

    Raises:
        TypeError: `dtype` is bool or not a dtype, or `size` is negative or not an integer.
        OverflowError: the last number does not fit the integer dtype.

    Differs:
        Numbers that the dtype does not hold are an OverflowError, here and in `broadcasted_iota`.

        >>> lax.iota("int8", 200)
        Traceback (most recent call last):
            ...
        OverflowError: iota: int8 does not hold 199, which may result; ask for a wider dtype

    Example:
        >>> from dovetail import lax
        >>> lax.iota("int32", 3).tolist()
        [0, 1, 2]
    """
    shape = canonical_shape(size, "iota", "size")
    return iota_p.bind(
        dtype=dtypes.check_user_dtype(dtype, "lax.iota"), shape=shape, dimension=0, sharding=None
    )


def broadcasted_iota(
    dtype: DTypeLike, shape: ShapeLike, dimension: IntLike, *, out_sharding: Sharding | None = None
) -> Array:
    """An array in which each element is its position along one dimension.

    Args:
        dtype: dtype of the result: integers, floating point or complex.
        shape: shape of the result.
        dimension: the dimension to count along.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: an argument is of the wrong kind, or a size is negative.
        ValueError: the dimension is out of bounds.

    Example:
        >>> from dovetail import lax
        >>> lax.broadcasted_iota("int32", (2, 3), 1).tolist()
        [[0, 1, 2], [0, 1, 2]]
    """
    sizes = canonical_shape(shape, "broadcasted_iota")
    target = dtypes.check_user_dtype(dtype, "lax.broadcasted_iota")
    along = canonical_dimension(dimension, len(sizes), "broadcasted_iota", "dimension")
    wanted = asked_division("lax.broadcasted_iota", out_sharding, sizes)
    made = iota_p.bind(dtype=target, shape=sizes, dimension=along, sharding=wanted)
    return placed("lax.broadcasted_iota", made, out_sharding)


def _converted(function: str, value: Any, dtype: Any, weak_type: bool = False) -> Any:
    """A scalar of a dtype; a host scalar stays on the host."""
    if type(value) is not Literal:
        return convert_element_type(value, dtype, weak_type)
    number = value.val
    is_cut = dtypes.kind_of(dtype) in ("i", "u") and not strictness().integers_fit
    if type(number) is int and is_cut:
        number = dtypes.fitted(number, dtype, function)
    try:
        return make_literal(number, dtype, weak_type)
    except (TypeError, ValueError, OverflowError) as error:
        raise type(error)(
            f"{function}: dtype {dtype_name(dtype)} cannot hold the fill_value {value.val}"
        ) from None


def _extended(function: str, sizes: Shape, value: Any, dtype: Any) -> Any:
    """An array of an extended dtype, filled with a value of it, or stored as equal integers."""
    given = aval_of(value).dtype
    if given == dtype:
        return broadcast_in_dim_p.bind(value, shape=sizes, broadcast_dimensions=(), sharding=None)
    shape, numbers = dtype.physical(sizes)
    if dtypes.kind_of(given) not in ("i", "u"):
        raise TypeError(
            f"{function}: an array of {dtype_name(dtype)} is filled with a value of that dtype, or "
            f"with an integer of which it then consists, got {dtype_name(given)}"
        )
    value = _converted(function, value, numbers)
    return dtype.of_physical(
        broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=(), sharding=None)
    )


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: Sharding | None = None,
) -> Array:
    """An array filled with one value.

    Args:
        shape: shape of the result.
        fill_value: a scalar.
        dtype: dtype of the result; that of `fill_value` by default.
        sharding: where the result is: any sharding, or a `PartitionSpec` over the current mesh.

    Returns:
        An array of that shape.

    Raises:
        TypeError: `fill_value` is not a scalar, or another argument is of the wrong kind.
        OverflowError: `dtype` is too narrow for `fill_value`.
        ValueError: `fill_value` is NaN and `dtype` has no NaN.

    Differs:
        A value that the dtype cannot hold is refused.

        >>> lax.full((2,), 300, "uint8")
        Traceback (most recent call last):
            ...
        OverflowError: lax.full: dtype uint8 cannot hold the fill_value 300

    Example:
        >>> from dovetail import lax
        >>> lax.full((2,), 7.0).tolist()
        [7.0, 7.0]
    """
    sizes = canonical_shape(shape, "full")
    if dtype == dtypes.float0:
        return np.zeros(sizes, dtypes.float0)  # type: ignore[return-value]
    value = as_operand(fill_value, "lax.full", "fill_value")
    if value.ndim:
        raise TypeError(
            f"lax.full: fill_value must be a scalar, got an array of shape {value.shape}; to "
            "repeat an array write lax.broadcast_in_dim or dovetail.numpy.broadcast_to"
        )
    if dtype is not None:
        target = dtypes.check_user_dtype(dtype, "lax.full")
        if dtypes.is_extended(target):
            made = _extended("lax.full", sizes, value, target)
            return _placed("lax.full", made, sharding)
        value = _converted("lax.full", value, target)
    return _filled("lax.full", sizes, value, sharding)


def _placed(function: str, made: Any, sharding: Any) -> Any:
    """An array where `sharding` says: any sharding, such as one on a device, or a specification."""
    if hasattr(sharding, "shard_shape") and not hasattr(sharding, "spec"):
        return constrain(made, sharding, f"sharding of {function}", f"{function}, result ")
    return placed(function, made, sharding, "sharding")


def _filled(function: str, sizes: Shape, value: Any, sharding: Any) -> Any:
    if hasattr(sharding, "shard_shape") and not hasattr(sharding, "spec"):
        return _placed(function, _filled(function, sizes, value, None), sharding)
    wanted = asked_division(function, sharding, sizes, "sharding")
    made = broadcast_in_dim_p.bind(value, shape=sizes, broadcast_dimensions=(), sharding=wanted)
    return placed(function, made, sharding, "sharding")


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    sharding: Sharding | None = None,
) -> Array:
    """An array filled with one value, with the shape, dtype and device of another array.

    Args:
        x: an array, a scalar, or anything with a shape and a dtype.
        fill_value: a scalar.
        dtype: dtype of the result; that of `x` by default.
        shape: shape of the result; that of `x` by default.
        sharding: where the result is: any sharding, or a `PartitionSpec` over the current mesh; by
            default where `x` is, and divided as it is if no shape is given.

    Returns:
        An array.

    Raises:
        TypeError: `fill_value` is not a scalar, or another argument is of the wrong kind.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.full_like(np.zeros(2, np.float32), 7).tolist()
        [7.0, 7.0]
    """
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        like_shape, like_dtype = tuple(x.shape), x.dtype
        weak = bool(getattr(x, "weak_type", False))
    else:
        aval = aval_of(as_operand(x, "lax.full_like"))
        like_shape, like_dtype, weak = aval.shape, aval.dtype, aval.weak_type
    sizes = like_shape if shape is None else canonical_shape(shape, "full_like")
    if (like_dtype if dtype is None else dtype) == dtypes.float0:
        return np.zeros(sizes, dtypes.float0)  # type: ignore[return-value]
    value = as_operand(fill_value, "lax.full_like", "fill_value")
    if value.ndim:
        raise TypeError(
            f"lax.full_like: fill_value must be a scalar, got an array of shape {value.shape}"
        )
    if dtype is not None:
        like_dtype, weak = dtypes.check_user_dtype(dtype, "lax.full_like"), False
    if dtypes.is_extended(like_dtype):
        made = _extended("lax.full_like", sizes, value, like_dtype)
        return _placed("lax.full_like", made, sharding)
    value = _converted("lax.full_like", value, dtypes.canonicalize_dtype(like_dtype), weak)
    if sharding is not None:
        return _filled("lax.full_like", sizes, value, sharding)
    division = aval_of(x).division if isinstance(x, ArrayClass) else None
    if division is not None and (shape is not None or state.trace is not evaluation_trace):
        own = division if shape is None else None
        return broadcast_in_dim_p.bind(value, shape=sizes, broadcast_dimensions=(), sharding=own)
    committed = state.trace is evaluation_trace and getattr(x, "committed", False)
    place = x.sharding if committed else None  # type: ignore[union-attr]
    one = place is not None and place.num_devices == 1
    if one:
        value = primitive("device_put").bind(value, device=place, src=None, may_alias=None)
    result = broadcast_in_dim_p.bind(value, shape=sizes, broadcast_dimensions=(), sharding=None)
    if place is None or one or sizes != like_shape:  # how x is divided may not fit another shape
        return result
    return primitive("device_put").bind(result, device=place, src=None, may_alias=None)


def empty(shape: ShapeLike, dtype: DTypeLike, *, out_sharding: Sharding | None = None) -> Array:
    """An array with unspecified values; it is filled with zeros.

    Args:
        shape: shape of the result.
        dtype: dtype of the result.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: an argument is of the wrong kind.

    Example:
        >>> from dovetail import lax
        >>> lax.empty((2, 3), "float32").shape
        (2, 3)
    """
    made = full(shape, 0, dtypes.default_dtype("f") if dtype is None else dtype)
    return placed("lax.empty", made, out_sharding)
