"""The first steps of API functions: check arguments, promote dtypes and broadcast shapes.

Messages name the function and the argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes, source
from dovetail._core.base.config import numpy_rank_promotion
from dovetail._core.base.errors import (
    ConcretizationTypeError,
    DTypeError,
    NonArrayArgumentError,
    ShapeError,
)
from dovetail._core.base.typing import Array
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.resharding import reshard_p
from dovetail._core.basis.structural import broadcast_in_dim
from dovetail._core.ir.avals import aval_of, make_aval
from dovetail._core.ir.dimensions import SymbolicDimension, as_size, dimension_value
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.runtime.arrays.compiled_path import placed_by_default
from dovetail._core.runtime.arrays.host import checked_ndarray
from dovetail._core.trace.tracer import ArrayClass, Tracer

Shape = tuple[int, ...]
Axis = int | Sequence[int] | None

_SCALAR_KINDS: Final[dict[Any, str]] = {bool: "b", int: "i", float: "f", complex: "c"}
_NUMPY_SCALARS: Final = (np.bool_, np.integer, np.floating, np.complexfloating)
_RANKS: Final = "biufc"
_NAMES: Final = ("x1", "x2", "x3")
_FLOAT32: Final = np.dtype("float32")
_FLOAT64: Final = np.dtype("float64")


# ------------------------------------------------------------------------------------- scalars


_literals: Final[dict[Any, Literal]] = {}


def literal(value: Any, dtype: Any, weak: bool = False, function: str = "promotion") -> Any:
    """A Python scalar as a `Literal` of a dtype, for use as an array; equal ones are one object.

    Raises:
        OverflowError: an integer dtype cannot hold a Python integer.
        DTypeError: the dtype is that of random keys.
    """
    if type(value) is SymbolicDimension:
        return convert(dimension_value(value), dtype, weak, function)
    # 0.0 and -0.0 compare equal; their repr tells them apart.
    key = (value or repr(value), type(value), dtype, weak)
    cached = _literals.get(key)
    if cached is None:
        if len(_literals) > 4096:
            _literals.clear()
        cached = _literals[key] = _new_literal(value, dtype, weak, function)
    return cached


def _new_literal(value: Any, dtype: Any, weak: bool, function: str) -> Literal:
    if isinstance(dtype, dtypes.ExtendedDType):
        raise DTypeError(
            f"an array of {dtype} holds random keys, which do not combine with numbers such as "
            f"{value!r}; random.key_data gives the numbers of which keys are made"
        )
    if type(value) is int and dtypes.kind_of(dtype) in ("i", "u"):
        value = dtypes.fitted(value, dtype, function)
    if weak:
        value = dtypes.scalar_type_of(dtype)(value)
    else:
        value = np.asarray(value, dtype)[()]
    return Literal(value, make_aval((), dtype, weak))


# ---------------------------------------------------------------------------------- conversion


def array_like(x: Any, function: str, argument: str = "x") -> Array:
    """`x` as primitives take it: an array, a tracer, a NumPy array, or a `Literal` for a scalar.

    Raises:
        NonArrayArgumentError: `x` is none of these.
    """
    if isinstance(x, ArrayClass):
        return x  # type: ignore[return-value]
    found = as_operand(x, function, argument)
    if found is x:
        dtype = aval_of(x).dtype  # which a token refuses to have
        if isinstance(x, np.ndarray) and x.dtype != dtype:
            return checked_ndarray(x, "the argument")  # so that x.dtype is the dtype it counts for
    return found


def array_sequence(xs: Any, function: str, argument: str = "arrays") -> list[Array]:
    """A list of arrays, from a sequence or from an array split along its first dimension.

    Raises:
        TypeError: `xs` is neither.
    """
    if isinstance(xs, (ArrayClass, np.ndarray)):
        if not xs.ndim:
            raise TypeError(
                f"{function} requires {argument} to be a sequence of arrays, got an array of rank 0"
            )
        return list(xs)
    if isinstance(xs, (str, bytes, dict, set)) or not hasattr(xs, "__iter__"):
        raise TypeError(
            f"{function} requires {argument} to be a sequence of arrays, got {type(xs).__name__}"
        )
    return [array_like(x, function, f"{argument}[{i}]") for i, x in enumerate(xs)]


def convert(x: Any, dtype: Any, weak: bool = False, function: str = "promotion") -> Any:
    """`x` converted to a dtype; host scalars are converted on the host.

    Raises:
        OverflowError: `x` is a Python integer that the integer dtype cannot hold.
    """
    if type(x) is Literal:
        aval = x.aval
        if aval.dtype == dtype and aval.weak_type == weak:
            return x
        number = x.val.item() if isinstance(x.val, _NUMPY_SCALARS) else x.val
        if type(number) in _SCALAR_KINDS and (
            type(number) is not complex or dtypes.kind_of(dtype) == "c"
        ):
            is_integer = dtypes.kind_of(dtype) in ("i", "u")
            # `literal` raises for a Python integer that does not fit.
            if is_integer and type(x.val) is not int and not fits(number, dtype):
                return convert_element_type(x, dtype, weak)
            return literal(number, dtype, weak, function)
    if isinstance(x, np.ndarray) and not weak and dtypes.kind_of(x.dtype) in ("b", "i", "u", "f"):
        aval = aval_of(x)
        if aval.dtype == dtype:
            return x
    return convert_element_type(x, dtype, weak)


def value(x: Any) -> Array:
    """A checked operand as a value that users can hold: an array or tracer."""
    if type(x) is Literal:
        return broadcast_in_dim(x, (), ())
    if isinstance(x, np.ndarray) and x.dtype != dtypes.float0:
        return host_array(checked_ndarray(x, "the argument"))
    return x


def host_array(x: np.ndarray[Any, Any], weak: bool = False) -> Array:
    """A NumPy array of a canonical dtype as an array, on the current mesh or default device."""
    return placed_by_default(x, make_aval(x.shape, x.dtype, weak))


def fits(number: Any, dtype: Any) -> bool:
    """Whether a number becomes an integer of that dtype without wrapping around."""
    limits = dtypes.iinfo(dtype)
    return type(number) is not complex and bool(limits.min <= number <= limits.max)


def no_out(function: str, out: Any) -> None:
    """Reject the argument `out`: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(
            f"{function} does not take out=: arrays are immutable. Write y = {function}(...) "
            "instead"
        )


def undivided(x: Any) -> Any:
    """A value that is not divided over the explicit axes of a mesh."""
    return reshard_p.bind(x, division=None) if aval_of(x).division is not None else x


def requested_dtype(function: str, dtype: Any) -> Any:
    """The canonical form of an argument `dtype`, or None."""
    return None if dtype is None else dtypes.check_user_dtype(dtype, function)


# ----------------------------------------------------------------------------------- promotion


def promoted_pair(function: str, x: Any, y: Any) -> tuple[Array, Array]:
    """Two operands in their common dtype, with shapes that an elementwise primitive takes.

    This runs for every traced operation, so the common cases come first.
    """
    a: Any = x.aval if isinstance(x, ArrayClass) else None
    b: Any = y.aval if isinstance(y, ArrayClass) else None
    if a is None or b is None:
        kind = _SCALAR_KINDS.get(type(y))
        if kind is not None and a is not None and not a.weak_type:
            mine = dtypes.kind_of(a.dtype)
            if mine not in ("", "b") and _RANKS.index(kind) <= _RANKS.index(mine):
                return x, literal(y, a.dtype, function=function)
        kind = _SCALAR_KINDS.get(type(x))
        if kind is not None and b is not None and not b.weak_type:
            mine = dtypes.kind_of(b.dtype)
            if mine not in ("", "b") and _RANKS.index(kind) <= _RANKS.index(mine):
                return literal(x, b.dtype, function=function), y
        x = array_like(x, function, "x1")
        y = array_like(y, function, "x2")
        a, b = aval_of(x), aval_of(y)
    if a is b:
        return x, y
    if a.dtype != b.dtype:
        dtype, weak = dtypes.result_of_pair(a.dtype, a.weak_type, b.dtype, b.weak_type)
        if a.dtype != dtype:
            x = convert(x, dtype, weak, function)
        if b.dtype != dtype:
            y = convert(y, dtype, weak, function)
    if a.shape == b.shape or not a.shape or not b.shape:
        return x, y
    shape = broadcast_result(function, (a.shape, b.shape))
    rank = len(shape)
    return with_rank(x, a.shape, rank), with_rank(y, b.shape, rank)


def dtype_by_value(x: Any, y: Any) -> Any:
    """The dtype in which two checked operands are compared.

    It is the common one, or a wider one where Python integers meet an array of narrower integers,
    so that they keep their value.
    """
    a, b = aval_of(x), aval_of(y)
    if a.weak_type != b.weak_type and all(dtypes.kind_of(v.dtype) in ("i", "u") for v in (a, b)):
        weak, own = (a.dtype, b.dtype) if a.weak_type else (b.dtype, a.dtype)
        if dtypes.holds(weak, own):
            return weak
    return dtypes.result_of_pair(a.dtype, a.weak_type, b.dtype, b.weak_type)[0]


def promoted(function: str, *args: Any, names: Sequence[str] = _NAMES) -> list[Array]:
    """Operands in their common dtype, with shapes that an elementwise primitive takes."""
    values = [array_like(x, function, name) for x, name in zip(args, names, strict=False)]
    return broadcast_ranks(function, same_dtype(values, function))


def same_dtype(values: Sequence[Any], function: str = "promotion") -> list[Any]:
    """Checked operands in their common dtype."""
    avals = [aval_of(v) for v in values]
    first = avals[0]
    if all(a.dtype == first.dtype for a in avals):
        return list(values)
    dtype, weak = dtypes.result_type(
        *(v if a.weak_type else a.dtype for v, a in zip(values, avals, strict=True)),
        return_weak_type_flag=True,
    )
    return [
        v if a.dtype == dtype else convert(v, dtype, weak, function)
        for v, a in zip(values, avals, strict=True)
    ]


def broadcast_ranks(function: str, values: Sequence[Any]) -> list[Any]:
    """Checked operands, brought to equal rank except for scalars."""
    shapes = [aval_of(v).shape for v in values]
    rank = max(map(len, shapes))
    broadcast_result(function, shapes)
    return [with_rank(v, s, rank) for v, s in zip(values, shapes, strict=True)]


def with_rank(x: Any, shape: Shape, rank: int) -> Array:
    """`x` with leading dimensions of size one, up to the given rank; scalars stay scalars."""
    missing = rank - len(shape)
    if not missing or not shape:
        return x
    return broadcast_in_dim(x, (1,) * missing + shape, tuple(range(missing, rank)))


def broadcast_result(function: str, shapes: Sequence[Shape], explicit: bool = False) -> Shape:
    """The result shape of broadcasting, by NumPy's rules.

    Args:
        function: name of the user's function, for the message.
        shapes: the shapes.
        explicit: whether the user asked for broadcasting; then different ranks are not a mistake.

    Raises:
        ShapeError: the shapes do not broadcast.
    """
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        size = next((n for n in sizes if n != 1), 1)
        if any(n not in (1, size) for n in sizes):
            raise ShapeError(
                f"{function} got incompatible shapes for broadcasting: "
                f"{', '.join(map(str, shapes))}. Sizes are compared from the last dimension on, "
                "and each pair must be equal or contain a 1; insert dimensions with x[:, None] or "
                "reshape"
            )
        result.append(size)
    ranks = {len(s) for s in shapes if s}
    if len(ranks) > 1 and not explicit:
        _check_rank_promotion(function, shapes)
    return tuple(result)


def _check_rank_promotion(function: str, shapes: Sequence[Shape]) -> None:
    mode = numpy_rank_promotion.value
    if mode == "allow":
        return
    text = (
        f"{function}: arrays of different ranks were combined, with shapes "
        f"{', '.join(map(str, shapes))}, and numpy_rank_promotion is {mode!r}. Give both the same "
        "rank, for example with x[None, :] or reshape"
    )
    if mode == "raise":
        raise ValueError(text)
    source.warn(text)


def inexact_dtype(dtype: Any) -> Any:
    """The dtype in which functions such as sin compute: floats stay, integers become floats."""
    kind = dtypes.kind_of(dtype)
    if kind in ("f", "c"):
        return dtype
    if kind in ("b", "i", "u"):
        return _FLOAT64 if dtype.itemsize == 8 else _FLOAT32
    raise TypeError(f"dtype {dtype} has no floating-point counterpart")


def inexact(function: str, x: Any, argument: str = "x") -> Array:
    """An operand as a float or complex number."""
    try:
        aval = x.aval
    except AttributeError:
        x = array_like(x, function, argument)
        aval = aval_of(x)
    dtype = aval.dtype
    kind = dtypes.kind_of(dtype)
    if kind == "f" or kind == "c":
        return x
    return convert(x, _inexact_of(function, dtype), aval.weak_type and kind != "b")


def _inexact_of(function: str, dtype: Any) -> Any:
    try:
        return inexact_dtype(dtype)
    except TypeError:
        raise TypeError(f"{function} does not accept the dtype {dtype}") from None


def inexact_pair(
    function: str, x: Any, y: Any, names: Sequence[str] = _NAMES
) -> tuple[Array, Array]:
    """Two operands in their common dtype, as floats or complex numbers."""
    first, second = array_like(x, function, names[0]), array_like(y, function, names[1])
    if dtypes.kind_of(first.dtype) in ("f", "c") or dtypes.kind_of(second.dtype) in ("f", "c"):
        return promoted_pair(function, x, y)
    # Convert integers to floats first: 300 would not fit the uint8 it is combined with.
    a, b = aval_of(first), aval_of(second)
    dtype, weak = dtypes.result_of_pair(a.dtype, a.weak_type, b.dtype, b.weak_type)
    floating = _inexact_of(function, dtype)
    weak = weak and dtypes.kind_of(dtype) != "b"
    return promoted_pair(function, convert(first, floating, weak), convert(second, floating, weak))


def float_pair(function: str, x: Any, y: Any) -> tuple[Array, Array]:
    """Two operands in their common dtype, as floats.

    Raises:
        TypeError: an operand is complex.
    """
    x, y = inexact_pair(function, x, y)
    refuse_complex(function, x)
    return x, y


def refuse_complex(function: str, x: Any) -> None:
    """Raise for a complex operand of a function of real numbers."""
    if dtypes.kind_of(x.dtype) == "c":
        raise DTypeError(
            f"{function} is defined for real numbers only, got dtype {x.dtype}; "
            "take x.real, x.imag or abs(x) first"
        )


def require_kind(function: str, x: Any, kinds: str, wanted: str) -> None:
    """Raise unless the dtype of an operand has one of the kinds given, of b, i, u, f, c."""
    if (dtypes.kind_of(x.dtype) or "?") not in kinds:
        raise DTypeError(f"{function} does not accept dtype {x.dtype}; it takes {wanted}")


def require_callable(function: str, argument: str, given: Any) -> None:
    """Raise unless an argument is a function."""
    if not callable(given):
        raise TypeError(
            f"{function} requires {argument} to be callable, got {type(given).__name__}"
        )


def require_real_number(function: str, argument: str, given: Any) -> None:
    """Raise unless an argument is a real number: one of Python, or an array of rank 0.

    Raises:
        TypeError: it is none.
    """
    aval = aval_of(array_like(given, function, argument))
    if aval.shape or dtypes.kind_of(aval.dtype) not in ("b", "i", "u", "f"):
        raise TypeError(
            f"{function}: {argument} must be a real number, got {aval.dtype} of the shape "
            f"{aval.shape}"
        )


def weak_of(x: Any) -> bool:
    """Whether a checked operand is weakly typed."""
    return bool(aval_of(x).weak_type)


# -------------------------------------------------------------------------- axes, shapes, sizes


def integer(function: str, argument: str, value: Any) -> int:
    """An argument that must be a concrete integer.

    Raises:
        ConcretizationTypeError: it is a tracer.
        TypeError: it is not an integer.
    """
    if type(value) is int:
        return value
    if isinstance(value, Tracer) and value.concrete() is None:
        raise ConcretizationTypeError(value, f"the argument {argument} of {function}")
    try:
        return as_size(value)
    except TypeError:
        raise TypeError(
            f"{function} requires {argument} to be an integer, got {type(value).__name__}"
            + f" {value}; // divides integers" * isinstance(value, float)
        ) from None


def canonical_axis(function: str, axis: Any, ndim: int, argument: str = "axis") -> int:
    """An axis as a non-negative number.

    Raises:
        AxisError: it is out of bounds; a ValueError and an IndexError, as in NumPy.
    """
    place = integer(function, argument, axis)
    if not -ndim <= place < ndim:
        raise np.exceptions.AxisError(
            f"{function}: {argument} {place} is out of bounds for an array of dimension {ndim}"
            + (f"; it must be from {-ndim} to {ndim - 1}" if ndim else "")
        )
    return place + ndim if place < 0 else place


def canonical_axes(function: str, axis: Any, ndim: int, argument: str = "axis") -> Shape:
    """Axes as non-negative numbers; all of them for None.

    Raises:
        AxisError: one is out of bounds.
        ValueError: one appears twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, (tuple, list)) or (isinstance(axis, Iterable) and _is_sequence(axis)):
        axes = tuple(canonical_axis(function, a, ndim, argument) for a in axis)
        if len(set(axes)) != len(axes):
            raise ShapeError(f"{function}: duplicate value in {argument}: {tuple(axis)}")
        return axes
    return (canonical_axis(function, axis, ndim, argument),)


def canonical_shape(function: str, shape: Any, argument: str = "shape") -> Shape:
    """A shape: a tuple of non-negative integers, from one integer or a sequence of them.

    Raises:
        ConcretizationTypeError: it holds a tracer.
        TypeError: it is not a shape.
        ShapeError: a size is negative.
    """
    if type(shape) is int:
        sizes: Shape = (shape,)
    elif isinstance(shape, (tuple, list)):
        sizes = tuple(n if type(n) is int else integer(function, argument, n) for n in shape)
    elif isinstance(shape, Iterable) and _is_sequence(shape):
        sizes = tuple(integer(function, argument, n) for n in shape)
    else:
        sizes = (integer(function, argument, shape),)
    for n in sizes:
        if n < 0:
            raise ShapeError(f"{function}: sizes must not be negative, got {argument} {sizes}")
    return sizes


def _is_sequence(values: Any) -> bool:
    """Whether an object that can be gone through is a vector, or another sequence."""
    dimensions = getattr(values, "ndim", None)
    if isinstance(dimensions, int):
        return dimensions == 1
    return hasattr(values, "__getitem__") and not isinstance(values, (str, bytes, Mapping))


def shape_of_argument(x: Any, function: str, argument: str) -> Shape:
    """The shape of a number, or of anything that has a shape."""
    shape = getattr(x, "shape", None)
    if isinstance(shape, tuple):
        return shape
    if isinstance(x, (list, tuple)):
        raise NonArrayArgumentError(
            f"{function} requires its argument {argument} to be an array or a scalar, got "
            f"{type(x).__name__}; write dovetail.numpy.asarray({argument}) first"
        )
    shape = aval_of(array_like(x, function, argument)).shape
    assert isinstance(shape, tuple)
    return shape
