"""Creating arrays from values on the host and from functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from dovetail import lax
from dovetail.errors import NonArrayArgumentError, NoValueError, ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    Literal,
    array_like,
    canonical_shape,
    convert,
    host_array,
    integer,
    placed,
    requested_dtype,
)
from dovetail.extend.arrays import (
    Array,
    array_from_buffer,
    checked_ndarray,
    is_foreign_buffer,
    put_buffer,
)
from dovetail.extend.avals import ArrayClass, Tracer, array_conversion, aval_of, make_aval
from dovetail.extend.eager import evaluation_trace, trace_state
from dovetail.extend.strictness import strictness
from dovetail.lax import broadcast_in_dim_p
from dovetail.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
from dovetail.typing import ArrayLike, DeviceLike, DTypeLike, NestedArrayLike, ShapeLike, Sharding

Shape = tuple[int, ...]

#: Up to this size a constant is copied from the host, which needs no compiled program.
SMALL: Final = 4096


def on_device(x: Any, device: Any) -> Any:
    """An array moved to the requested device; None leaves it where it is."""
    if device is None:
        return x
    from dovetail import device_put  # deferred: rarely used

    return device_put(x, device)


def check_one_place(function: str, device: Any, out_sharding: Any) -> None:
    """Check that a user says in one way only where a result is.

    Raises:
        ValueError: both arguments are given.
    """
    if device is not None and out_sharding is not None:
        raise ValueError(
            f"{function}: device and out_sharding both say where the result is, {device} and "
            f"{out_sharding}: give one of them"
        )


def place_of(*operands: Any) -> Sharding | None:
    """Where the first operand is that is committed to a device; None while a program is traced.

    What is no array is where it says, as a `ShapeDtypeStruct` may. An operand that is divided over
    devices gives a place where each of them has everything, since results may have other shapes.
    """
    if trace_state.trace is evaluation_trace:
        for x in operands:
            if isinstance(x, Array) and not x.committed:
                continue
            place = None if isinstance(x, Tracer) else getattr(x, "sharding", None)
            if isinstance(place, NamedSharding) and isinstance(place.mesh, Mesh):
                return NamedSharding(place.mesh, PartitionSpec(), place.memory_kind)
            if isinstance(place, SingleDeviceSharding):
                return place
    return None


def host_array_on(place: Sharding | None, x: np.ndarray[Any, Any], weak: bool = False) -> Array:
    """A NumPy array of a canonical dtype as an array, committed to a place if one is given."""
    if place is None:
        return host_array(x, weak)
    return array_from_buffer(put_buffer(x, make_aval(x.shape, x.dtype, weak), place, True))


# --------------------------------------------------------------------------------- from values


def array(
    object: NestedArrayLike,
    dtype: DTypeLike | None = None,
    *,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: DeviceLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Create an array from values.

    Differs from NumPy's in that 64-bit values become 32-bit ones unless ``enable_x64`` is on, and a
    single Python number gives a weakly typed array.

    Args:
        object: array, scalar, nested sequence of these, or object with ``__jax_array__``,
            ``__array__`` or the buffer protocol; with a dtype, also texts that spell numbers.
        dtype: dtype of the result; by default the common one of the values.
        copy: whether the result gets its own memory even if `object` is an array already.
        order: "C" or "K" (or "A"); the compiler chooses the memory order.
        ndmin: minimum number of dimensions; missing ones are added in front, with size one.
        device: device on which the array is placed and stays.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array.

    Raises:
        TypeError: the values cannot be in an array.
        ValueError: nested sequences have rows of different lengths, elements are masked or None, or
            a text spells no number.
        OverflowError: a Python integer does not fit the dtype.

    Differs:
        Nothing is lost in silence: 64-bit integers that do not fit 32 bits, and integers of
        Python out of range, raise.

        >>> jnp.array([2**40])
        Traceback (most recent call last):
            ...
        OverflowError: the Python integer 1099511627776 does not fit int32, the ...

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.array([[1, 2], [3, 4]])
        Array([[1, 2],
               [3, 4]], dtype=int32)
        >>> print(jnp.array([1, 2.5], dtype="bfloat16"))
        [1 2.5]
    """
    if order not in (None, "K", "C", "A"):
        raise NotImplementedError(
            f"array: order {order!r} is not supported; the memory order of arrays is chosen by the "
            "compiler"
        )
    ndmin = integer("array", "ndmin", ndmin)
    if ndmin > 64:
        raise ValueError(f"array: ndmin must be at most 64, as in NumPy, got {ndmin}")
    check_one_place("array", device, out_sharding)
    plainly = device is None and out_sharding is None
    if type(object) is list and dtype is None and plainly and not ndmin:
        value = _number_list(object)
        if value is not None:
            return _known_or_traced(host_array(value))
    requested = None if dtype is None else dtypes.check_user_dtype(dtype, "array")
    result = _converted(object, requested)
    if copy and result is object and not isinstance(result, Tracer):
        result = duplicate(result)
    if ndmin > result.ndim:
        from dovetail.numpy.shapes import reshape  # deferred: needed only with ndmin

        result = reshape(result, (1,) * (ndmin - result.ndim) + result.shape)
    if result is not object:
        result = _known_or_traced(result)
    return placed("array", on_device(result, device), out_sharding)


def asarray(
    a: NestedArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: DeviceLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Convert values to an array; an array that already has the dtype is returned itself.

    Args:
        a: array, scalar, nested sequence of these, or object with ``__jax_array__``,
            ``__array__`` or the buffer protocol.
        dtype: dtype of the result; by default the common one of the values.
        order: "C" or "K" (or "A"); the compiler chooses the memory order.
        copy: True to get the array its own memory. False and None let it share that of `a` where
            that can be; values of the host are copied to the device, whatever `copy` says.
        device: device on which the array is placed and stays.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array.

    Raises:
        TypeError: the values cannot be in an array.
        ValueError: nested sequences have rows of different lengths.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.arange(3)
        >>> jnp.asarray(x) is x, jnp.asarray(2.5).dtype
        (True, dtype('float32'))
    """
    return array(a, dtype, copy=bool(copy), order=order, device=device, out_sharding=out_sharding)


def _known_or_traced(x: Any) -> Any:
    """An array of known values, while a program is traced: as the policy wants it."""
    if trace_state.trace is evaluation_trace or strictness().constants_are_known:
        return x
    return x if isinstance(x, Tracer) else lax.copy_p.bind(x)


def duplicate(x: Any) -> Any:
    """A copy of a concrete array, with its own memory."""
    return x.__copy__()


def _number_list(values: list[Any]) -> np.ndarray[Any, Any] | None:
    """A list of Python numbers as a NumPy array of canonical dtype; None for any other list."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return np.array(values, dtypes.default_dtype("f"))
    if kinds == {int} or kinds == {bool}:
        dtype = dtypes.default_dtype("b" if bool in kinds else "i")
        try:
            return np.array(values, dtype)
        except OverflowError:
            for value in values:
                dtypes.check_python_int(value)
            raise
    return None


def _converted(value: Any, dtype: Any) -> Any:
    """An array or tracer with the given values, in a canonical dtype if one is given."""
    if isinstance(value, ArrayClass):
        return _cast(value, dtype)
    kind = type(value)
    if kind in (bool, int, float, complex):
        if dtype is None:
            weak = kind is not bool
            return _place(np.asarray(value, dtypes.dtype_of(value)), weak)
        return _place(_checked_scalar(value, dtype), False)
    if isinstance(value, Literal):
        return _cast(
            broadcast_in_dim_p.bind(value, shape=(), broadcast_dimensions=(), sharding=None), dtype
        )
    convert_self = None if kind is list or kind is tuple else array_conversion(value)
    if convert_self is not None:
        return _converted(convert_self(), dtype)
    if isinstance(value, (list, tuple)):
        return _from_sequence(value, dtype)
    if is_foreign_buffer(value):
        from dovetail.extend.arrays import array_from_foreign  # deferred: needs another framework

        return _cast(array_from_foreign(value), dtype)
    if value is None:
        raise NoValueError("array: None is no number, and has no place in an array")
    if dtype is not None and isinstance(value, (str, bytes)):
        value = np.asarray(value)
    host = value if isinstance(value, np.ndarray) else _through_numpy(value)
    return _from_numpy(host, dtype)


def _through_numpy(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, (str, bytes, dict, set)):
        raise NonArrayArgumentError(
            f"array: arrays hold numbers and booleans, got {type(value).__name__}: {value!r:.60}"
            + ("; keep text outside of arrays, or make numbers of it first")
            * isinstance(value, (str, bytes))
        )
    host = np.asarray(value)
    if host.dtype == object:
        raise NonArrayArgumentError(
            f"array: arrays hold numbers and booleans, and a {type(value).__name__} is neither: "
            f"{value!r:.60}"
        )
    return host


def _from_numpy(value: np.ndarray[Any, Any], dtype: Any) -> Any:
    if value.dtype == dtypes.float0:
        return value if dtype is None else _place(np.zeros(value.shape, dtype), False)
    if dtype is not None and value.dtype != dtype:
        if value.dtype.kind in "OSUmM":
            return _place(_numbers_of(value, dtype), False)
        if dtypes.kind_of(dtype) not in ("c", "b") and value.dtype.kind == "c":
            value = value.real
        with np.errstate(invalid="ignore", over="ignore"):
            value = value.astype(dtype)
    return _place(checked_ndarray(value, "the argument of array"), False)


def _numbers_of(value: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """The numbers that texts spell, and that objects and dates are, as NumPy reads them.

    Raises:
        ValueError: a text spells no number of this kind.
        OverflowError: a number does not fit the dtype.
        NonArrayArgumentError: an object is no number.
    """
    wide = _WIDEST[dtypes.kind_of(dtype)]
    try:
        numbers = value.astype(wide)
    except (TypeError, ValueError, OverflowError) as error:
        if value.dtype.kind in "SU":
            raise type(error)(
                f"array: the text does not spell numbers of {dtype}: {error}"
            ) from None
        numbers = checked_ndarray(value, "the argument of array")
    if wide in (np.int64, np.uint64) and numbers.size:
        for extreme in (numbers.min(), numbers.max()):
            dtypes.check_fits(int(extreme), dtype, "array")
    with np.errstate(over="ignore"):
        return numbers.astype(dtype)


#: The dtypes in which NumPy reads numbers of each kind.
_WIDEST: Final[dict[str, Any]] = {
    "b": np.bool_,
    "i": np.int64,
    "u": np.uint64,
    "f": np.float64,
    "c": np.complex128,
}


def _checked_scalar(value: Any, dtype: Any) -> np.ndarray[Any, Any]:
    _check_numbers(np.asarray(value), dtype)
    if type(value) is float and dtypes.kind_of(dtype) in ("i", "u"):
        value = int(value)
    if type(value) is int and dtypes.kind_of(dtype) in ("i", "u"):
        dtypes.check_fits(value, dtype, "array")
    if type(value) is int and dtypes.kind_of(dtype) == "f":
        # ml_dtypes' conversion takes integers of 64 bits at most.
        try:
            value = float(value)
        except OverflowError:
            raise OverflowError(
                f"array: a Python integer of {value.bit_length()} bits does not fit dtype {dtype}"
            ) from None
    return np.asarray(value, dtype)


def _check_numbers(values: np.ndarray[Any, Any], dtype: Any) -> None:
    """Raise if Python numbers, here in a wide dtype, do not fit `dtype`."""
    kind = dtypes.kind_of(dtype)
    if values.dtype.kind == "c" and kind not in ("c", "b"):
        raise TypeError(f"array: complex numbers do not fit dtype {dtype}; take their real parts")
    if values.dtype.kind == "f" and kind in ("i", "u"):
        limits = dtypes.iinfo(dtype)
        whole = np.trunc(values)
        fits = (whole >= limits.min) & (whole <= limits.max)
        if not fits.all():
            raise OverflowError(f"array: {values[~fits].flat[0]} does not fit dtype {dtype}")


def _place(value: np.ndarray[Any, Any], weak: bool) -> Any:
    """A NumPy array of canonical dtype as an array; while tracing, a constant of the program."""
    if value.dtype == dtypes.float0:
        return value
    return host_array(value, weak)


def _cast(x: Any, dtype: Any) -> Any:
    if dtype is None or (x.dtype == dtype and not aval_of(x).weak_type):
        return x
    return convert(x, dtype)


def _from_sequence(values: Any, dtype: Any) -> Any:
    found: set[type] = set()
    _leaf_types(values, found)
    if dtype is not None and any(issubclass(kind, (str, bytes)) for kind in found):
        return _from_numpy(np.array(values), dtype)
    if found <= _PYTHON_NUMBERS:
        wide = np.array(values) if found else np.array(values, dtypes.default_dtype("f"))
        if wide.dtype == object:  # integers beyond 64 bits
            raise OverflowError(f"array: an integer in {values!r:.60} does not fit 64 bits")
        if dtype is None:
            kind = dtypes.kind_of(wide.dtype)
            target = dtypes.default_dtype("i" if kind == "u" else kind)
            if kind in ("i", "u") and wide.size:
                for extreme in (wide.min(), wide.max()):
                    dtypes.check_python_int(int(extreme))
            return _place(wide.astype(target, copy=False), False)
        if dtypes.kind_of(dtype) in ("i", "u") and wide.dtype.kind in "iu":
            # NumPy has no integers of fewer bits than a byte, and refuses only what its own lack.
            is_cut = dtypes.iinfo(dtype).bits < 8 and not strictness().integers_fit
            if wide.size and not is_cut:
                for extreme in (wide.min(), wide.max()):
                    dtypes.check_fits(int(extreme), dtype, "array")
            return _place(np.array(values, dtype), False)
        _check_numbers(wide, dtype)
        return _from_numpy(wide, dtype)
    leaves: list[Any] = []
    shape = _flattened(values, leaves)
    if all(isinstance(leaf, (np.generic, bool, int, float, complex)) for leaf in leaves):
        target = dtype or dtypes.result_type(*leaves)
        _check_leaves(leaves, target)
        return _from_numpy(np.array([np.asarray(leaf) for leaf in leaves]).reshape(shape), target)
    items = [_converted(leaf, None) for leaf in leaves]
    inner = items[0].shape
    for item in items:
        if item.shape != inner:
            raise ShapeError(
                "array: the elements of a sequence must have equal shapes, got "
                f"{inner} and {item.shape}"
            )
    target = dtype or dtypes.result_type(*leaves_for_type(leaves, items))
    _check_leaves(leaves, target)
    stacked = lax.stack_p.bind(*(convert(item, target) for item in items), axis=0)
    from dovetail.numpy.shapes import (
        reshape,
    )  # deferred: needed only for nested sequences of arrays

    return reshape(stacked, shape + inner) if len(shape) != 1 else stacked


def _check_leaves(leaves: list[Any], dtype: Any) -> None:
    """Raise if a Python integer among arrays does not fit their dtype."""
    if dtypes.kind_of(dtype) in ("i", "u"):
        for leaf in leaves:
            if type(leaf) is int:
                dtypes.check_fits(leaf, dtype, "array")


def leaves_for_type(leaves: list[Any], items: list[Any]) -> list[Any]:
    """The values that determine the common dtype: arrays, and Python numbers, which are weak."""
    return [
        leaf if type(leaf) in _PYTHON_NUMBERS else item
        for leaf, item in zip(leaves, items, strict=True)
    ]


_PYTHON_NUMBERS: Final[frozenset[type]] = frozenset((bool, int, float, complex))


def _leaf_types(values: Any, found: set[type]) -> None:
    """The types of the elements of nested sequences."""
    here = set(map(type, values))
    nested = here & {list, tuple}
    found |= here - nested
    if nested:
        for value in values:
            if type(value) in nested:
                _leaf_types(value, found)


def _flattened(values: Any, leaves: list[Any]) -> Shape:
    """Append the elements of nested sequences to `leaves`, and return the shape."""
    if not isinstance(values, (list, tuple)):
        leaves.append(values)
        return ()
    shapes = {_flattened(value, leaves) for value in values}
    if len(shapes) > 1:
        raise ValueError(
            f"array: nested sequences must have rows of equal lengths, got {values!r:.80}"
        )
    return (len(values), *(shapes.pop() if shapes else ()))


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of an array, with its own memory.

    Since arrays are immutable, this matters only if one of them is donated or deleted.

    Args:
        a: array, scalar, or nested sequence.
        order: "C" or "K" (or "A"); the compiler chooses the memory order.

    Returns:
        An array of the same shape and dtype.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.copy(jnp.arange(3)))
        [0 1 2]
    """
    return array(a, copy=True, order=order or "K")


def astype(
    x: ArrayLike,
    dtype: DTypeLike | None,
    /,
    *,
    copy: bool = False,
    device: DeviceLike | None = None,
) -> Array:
    """Convert an array to a dtype. Floats are truncated to integers; integers wrap around.

    Args:
        x: array or scalar.
        dtype: dtype of the result; None for the default float.
        copy: whether the result gets its own memory even if the dtype is the same.
        device: device on which the result is placed and stays.

    Returns:
        An array of the shape of `x`. Complex numbers lose their imaginary part.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.astype(jnp.array([1.7, -1.7]), "int8"))
        [ 1 -1]
    """
    x = array_like(x, "astype")
    target = (
        dtypes.default_dtype("f") if dtype is None else dtypes.check_user_dtype(dtype, "astype")
    )
    aval = aval_of(x)
    constant = type(x) is Literal  # type: ignore[comparison-overlap]
    if constant or isinstance(x, np.ndarray) or aval.dtype != target or aval.weak_type:
        result = _converted(x, target) if not isinstance(x, ArrayClass) else convert(x, target)
    else:
        result = duplicate(x) if copy and type(x) is Array else x
    return on_device(result, device)


def frombuffer(
    buffer: bytes | bytearray | memoryview | np.ndarray[Any, Any],
    dtype: DTypeLike = float,
    count: int = -1,
    offset: int = 0,
) -> Array:
    """Interpret a buffer as a one-dimensional array.

    Args:
        buffer: bytes, or an object with the buffer protocol.
        dtype: dtype of the elements in the buffer.
        count: number of elements to read; -1 for all.
        offset: position to start reading at, in bytes.

    Returns:
        An array with its own memory.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.frombuffer(b"\\x01\\x02\\x03", dtype="uint8"))
        [1 2 3]
    """
    # Unchanged if it may specify the byte order of the buffer.
    given: Any = dtype if isinstance(dtype, (str, np.dtype)) else dtypes.as_dtype(dtype)
    number, first = (
        integer("frombuffer", name, n) for name, n in (("count", count), ("offset", offset))
    )
    try:
        return array(np.frombuffer(buffer, given, number, first))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"frombuffer: {error}, for elements of {given}") from None


def fromfunction(
    function: Callable[..., Any], shape: ShapeLike, *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """Create an array by applying a function to the indices of its elements.

    The function takes scalars; it is called once and mapped over all indices.

    Args:
        function: takes one index for each dimension.
        shape: shape of the result.
        dtype: dtype of the indices.
        **kwargs: passed to `function`.

    Returns:
        The output of `function`, with the dimensions of `shape` in front.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int))
        [[ 0  1  2]
         [10 11 12]]
    """
    from dovetail import vmap  # deferred: the layer of transformations

    if not callable(function):
        raise TypeError(f"fromfunction takes a function first, got {function!r:.80}")
    sizes = canonical_shape("fromfunction", shape)
    mapped: Callable[..., Any] = functools.partial(function, **kwargs)
    for i in reversed(range(len(sizes))):
        mapped = vmap(mapped, in_axes=tuple(0 if d == i else None for d in range(len(sizes))))
    target = requested_dtype("fromfunction", dtype) or dtypes.default_dtype("i")
    return mapped(*(_indices(n, target) for n in sizes))


def _indices(size: int, dtype: Any) -> Any:
    """The indices along a dimension, in a dtype that must be able to hold them."""
    if size and dtypes.kind_of(dtype) in ("i", "u"):
        dtypes.check_fits(size - 1, dtype, "fromfunction")
    return convert(lax.iota(dtypes.default_dtype("i"), size), dtype)
