"""Arrays of one repeated value."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from dovetail import enable_x64
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    Literal,
    array_like,
    canonical_shape,
    convert,
    literal,
    placed,
    shape_of_argument,
)
from dovetail.extend.arrays import (
    Array,
    placed_by_default,
)
from dovetail.extend.avals import ArrayClass, aval_of, make_aval
from dovetail.extend.dimensions import known_at_most
from dovetail.extend.eager import evaluation_trace, register_cache, trace_state
from dovetail.lax import broadcast_in_dim_p
from dovetail.numpy.compiled import compiled_with, divided_program
from dovetail.numpy.creation import (
    SMALL,
    Shape,
    asarray,
    check_one_place,
    host_array_on,
    on_device,
    place_of,
)
from dovetail.typing import ArrayLike, DeviceLike, DTypeLike, ShapeLike, Sharding

_UINT32: Final = np.dtype(np.uint32)

_host_constants: Final[dict[Any, tuple[np.ndarray[Any, Any], Any]]] = {}
register_cache(_host_constants.clear)


def _constant(
    function: str, number: Any, shape: Any, dtype: Any, device: Any, out_sharding: Any
) -> Any:
    """An array of one number, in the default float dtype unless another is given."""
    key: Any = None
    # 2.0 and True are not sizes, but would hit the cache entries of 2 and 1.
    exact = type(shape) is int or (type(shape) is tuple and {int}.issuperset(map(type, shape)))
    if exact and device is None and out_sharding is None and trace_state.trace is evaluation_trace:
        key = (number, shape, dtype, enable_x64.value)
        try:
            cached = _host_constants.get(key)
        except TypeError:  # a list as dtype
            key = cached = None
        if cached is not None:
            value, aval = cached
            return placed_by_default(value, aval)
    sizes = canonical_shape(function, shape)
    target = (
        dtypes.default_dtype("f") if dtype is None else dtypes.check_user_dtype(dtype, function)
    )
    if target == dtypes.float0:
        return np.zeros(sizes, target)
    aval = make_aval(sizes, target)
    if dtypes.is_extended(target):
        made = on_device(_of_numbers(function, sizes, literal(number, _UINT32), target), device)
        return placed(function, made, out_sharding)
    if out_sharding is not None:
        check_one_place(function, device, out_sharding)
        return divided_program(function, out_sharding, _filled)(literal(number, target), sizes)
    if key is not None and aval.size <= SMALL:
        if len(_host_constants) > 1024:
            _host_constants.clear()
        value = np.full(sizes, number, target)
        _host_constants[key] = value, aval
        return placed_by_default(value, aval)
    return on_device(filled(sizes, literal(number, target)), device)


def _of_numbers(function: str, sizes: Shape, value: Any, dtype: Any) -> Any:
    """An array of random keys, which are stored as numbers that all have one value."""
    aval = aval_of(value)
    if dtypes.kind_of(aval.dtype) not in ("i", "u") or aval.shape:
        raise TypeError(
            f"{function}: an array of dtype {dtype} is filled with a key of that dtype, or with an "
            f"integer scalar, of which the keys then consist; got {aval.short_name()}"
        )
    shape, numbers = dtype.physical(sizes)
    return dtype.of_physical(filled(shape, convert(value, numbers)))


def filled(shape: Shape, value: Any, division: Any = None) -> Any:
    """A scalar operand broadcast to a shape."""
    return broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=(), sharding=division)


@compiled_with("shape")
def _filled(value: Any, shape: Shape) -> Any:
    return filled(shape, value)


def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Create an array of zeros.

    Args:
        shape: a size, or a sequence of sizes.
        dtype: dtype of the result; the default float if None.
        device: device on which the array is placed and stays.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array.

    Differs:
        A `NamedSharding` as `out_sharding`, here and of other functions, may be over another mesh
        than the current one. JAX leaves most arrays whole then, without a word.

        >>> from dovetail.sharding import NamedSharding, PartitionSpec as P
        >>> rows = NamedSharding(dt.make_mesh((1,), ("x",)), P("x"))
        >>> print(jnp.zeros(4, out_sharding=rows).sharding.spec)
        P('x')

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.zeros((2, 3), int))
        [[0 0 0]
         [0 0 0]]
    """
    return _constant("zeros", 0, shape, dtype, device, out_sharding)


def ones(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Create an array of ones.

    Args:
        shape: a size, or a sequence of sizes.
        dtype: dtype of the result; the default float if None.
        device: device on which the array is placed and stays.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.ones(3))
        [1. 1. 1.]
    """
    return _constant("ones", 1, shape, dtype, device, out_sharding)


def empty(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Create an array whose values do not matter; they are zeros, not uninitialised memory.

    Args:
        shape: a size, or a sequence of sizes.
        dtype: dtype of the result; the default float if None.
        device: device on which the array is placed and stays.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.empty((2, 3)).shape
        (2, 3)
    """
    return _constant("empty", 0, shape, dtype, device, out_sharding)


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Create an array filled with one value.

    Args:
        shape: a size, or a sequence of sizes.
        fill_value: scalar, or an array that broadcasts to `shape`.
        dtype: dtype of the result; that of `fill_value` if None, weak if that is a Python number.
        device: device on which the array is placed and stays.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array.

    Raises:
        ValueError: `fill_value` does not broadcast to `shape`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.full((2, 2), 7.5), jnp.full((2, 2), jnp.arange(2)))
        [[7.5 7.5]
         [7.5 7.5]] [[0 1]
         [0 1]]
    """
    sizes = canonical_shape("full", shape)
    target = None if dtype is None else dtypes.check_user_dtype(dtype, "full")
    check_one_place("full", device, out_sharding)
    made = _full("full", sizes, fill_value, target, None, out_sharding=out_sharding)
    return on_device(made, device)


def _full(
    function: str,
    sizes: Shape,
    fill_value: Any,
    dtype: Any,
    weak: bool | None,
    place: Sharding | None = None,
    out_sharding: Any = None,
    division: Any = None,
) -> Any:
    """`fill_value` in a canonical dtype (None: its own), broadcast to a shape, and placed.

    Args:
        function: the name of the user's function, for messages.
        sizes: the shape.
        fill_value: a scalar or an array.
        dtype: the dtype.
        weak: whether the result is weakly typed.
        place: where it is.
        out_sharding: how it is divided over devices, as the user asks.
        division: how its type is divided, if `fill_value` is a scalar.
    """
    if dtype == dtypes.float0:
        return np.zeros(sizes, dtype)
    if isinstance(fill_value, (list, tuple)):
        fill_value = asarray(fill_value)
    value: Any = array_like(fill_value, function, "fill_value")
    aval = aval_of(value)
    if dtype is not None and dtypes.is_extended(dtype):
        if aval.dtype != dtype:
            return placed(function, _of_numbers(function, sizes, value, dtype), out_sharding)
    elif dtype is not None:
        if (
            type(value) is Literal
            and type(value.val) is int
            and dtypes.kind_of(dtype) in ("i", "u")
        ):
            value = literal(dtypes.fitted(value.val, dtype, function), dtype, bool(weak))
        value = convert(value, dtype, bool(weak))
    if out_sharding is not None and not aval.shape:
        return divided_program(function, out_sharding, _filled)(value, sizes)
    result = make_aval(sizes, aval_of(value).dtype, aval_of(value).weak_type)
    small = known_at_most(result.size, SMALL) and trace_state.trace is evaluation_trace
    divided = place is not None and place.num_devices > 1
    if type(value) is Literal and divided:  # never whole in the memory of one device
        host = np.broadcast_to(np.asarray(value.val, result.dtype), sizes)
        return host_array_on(place, host, result.weak_type)
    if type(value) is Literal and small:
        host = np.full(sizes, value.val, result.dtype)
        return host_array_on(place, host, result.weak_type)
    if divided:
        return on_device(_full(function, sizes, value, dtype, weak), place)
    if not aval.shape:
        return filled(sizes, on_device(value, place), division)
    pairs = zip(reversed(aval.shape), reversed(sizes), strict=False)
    if aval.ndim > len(sizes) or any(have not in (1, wanted) for have, wanted in pairs):
        raise ValueError(
            f"{function}: fill_value of shape {aval.shape} cannot be broadcast to shape {sizes}"
        )
    from dovetail.numpy.shapes import broadcast_to  # deferred: needed only to fill with arrays

    return placed(function, broadcast_to(on_device(value, place), sizes), out_sharding)


def _like(
    function: str,
    a: Any,
    fill_value: Any,
    dtype: Any,
    shape: Any,
    device: Any,
    out_sharding: Any = None,
    argument: str = "a",
) -> Any:
    """Create an array filled with one value, like another array."""
    check_one_place(function, device, out_sharding)
    sizes = (
        shape_of_argument(a, function, argument)
        if shape is None
        else canonical_shape(function, shape)
    )
    weak = False
    if dtype is not None:
        target = dtypes.check_user_dtype(dtype, function)
    else:
        own_dtype = getattr(a, "dtype", None)
        if own_dtype is None:
            own_dtype = aval_of(array_like(a, function, argument)).dtype
        if isinstance(a, np.ndarray) and not dtypes.kind_of(own_dtype):
            array_like(a, function, argument)
        extended = dtypes.is_extended(own_dtype)
        target = own_dtype if extended else dtypes.canonicalize_dtype(own_dtype)
        is_weak = dtypes.is_weakly_typed(a) and dtypes.kind_of(target) != "b"
        weak = is_weak and not getattr(fill_value, "ndim", 0)
    division = aval_of(a).division if isinstance(a, ArrayClass) and shape is None else None
    place = place_of(a) if device is None and out_sharding is None else None
    if place is not None and place.num_devices > 1:
        # How `a` is divided may not fit another shape, and the type of a result says nothing of it.
        alike = sizes == tuple(a.shape) and not getattr(fill_value, "ndim", 0)
        typed = isinstance(a, ArrayClass) and aval_of(a).division is not None and division is None
        place = a.sharding if alike and not typed else None
    made = _full(function, sizes, fill_value, target, weak, place, out_sharding, division)
    return on_device(made, device)


def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Create an array of zeros with the shape and dtype of another array.

    Args:
        a: array, scalar, or object with ``shape`` and ``dtype``.
        dtype: dtype of the result; that of `a` if None.
        shape: shape of the result; that of `a` if None.
        device: device on which the array is placed and stays; if None, the device
            that `a` is committed to.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`; as `a` is if None and no shape is given.

    Returns:
        An array.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.zeros_like(jnp.arange(3)))
        [0 0 0]
    """
    return _like("zeros_like", a, 0, dtype, shape, device, out_sharding)


def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Create an array of ones with the shape and dtype of another array.

    Args:
        a: array, scalar, or object with ``shape`` and ``dtype``.
        dtype: dtype of the result; that of `a` if None.
        shape: shape of the result; that of `a` if None.
        device: device on which the array is placed and stays; if None, the device
            that `a` is committed to.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`; as `a` is if None and no shape is given.

    Returns:
        An array.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.ones_like(jnp.arange(3)))
        [1 1 1]
    """
    return _like("ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Array:
    """Create an array like another, whose values do not matter (they are zeros).

    Args:
        prototype: array, scalar, or object with ``shape`` and ``dtype``.
        dtype: dtype of the result; that of `prototype` if None.
        shape: shape of the result; that of `prototype` if None.
        device: device on which the array is placed and stays; if None, the device
            that `prototype` is committed to.

    Returns:
        An array.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.empty_like(jnp.arange(3)).dtype
        dtype('int32')
    """
    return _like("empty_like", prototype, 0, dtype, shape, device, argument="prototype")


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Create an array filled with one value, with the shape and dtype of another array.

    Args:
        a: array, scalar, or object with ``shape`` and ``dtype``.
        fill_value: scalar, or an array that broadcasts to the shape.
        dtype: dtype of the result; that of `a` if None.
        shape: shape of the result; that of `a` if None.
        device: device on which the array is placed and stays; if None, the device
            that `a` is committed to.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`; as `a` is if None and no shape is given.

    Returns:
        An array.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.full_like(jnp.arange(3), 7))
        [7 7 7]
    """
    return _like("full_like", a, fill_value, dtype, shape, device, out_sharding)
