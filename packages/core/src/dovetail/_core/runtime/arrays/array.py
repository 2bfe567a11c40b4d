"""The array class of the user API: a thin wrapper around one buffer of jaxlib.

`dispatch` adds its operators and the methods that need the NumPy API. Everything here works with
core alone.
"""

from __future__ import annotations

import functools
import gc
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, NoReturn

import numpy as np

from dovetail._core.base import bindings, config, dtypes, native, source
from dovetail._core.base.bindings import JaxRuntimeError, get_traceback
from dovetail._core.base.errors import DeletedArrayError
from dovetail._core.base.habits import ATTRIBUTES
from dovetail._core.base.pytree import dispatch_registry
from dovetail._core.base.tracebacks import boundary, bounded
from dovetail._core.ir.avals import ShapedArray, make_aval, physical_aval
from dovetail._core.ir.division import division
from dovetail._core.runtime.arrays import buffers, guards
from dovetail._core.runtime.arrays.held_values import FreedValue, held_value
from dovetail._core.runtime.arrays.host import numpy_aval
from dovetail._core.runtime.arrays.parts import is_local
from dovetail._core.runtime.arrays.shards import Shard, shards_of
from dovetail._core.runtime.arrays.text import array_html, array_text, short_type
from dovetail._core.runtime.devices import clients, live_buffers, process_ends, sharding
from dovetail._core.runtime.devices.named_sharding import default_place
from dovetail._core.trace.tracer import ArrayClass, Tracer, ambiguous_truth, load_array_methods

if TYPE_CHECKING:
    from dovetail._core.runtime.devices.layout import Format

__all__ = [
    "Array",
    "DeletedArray",
    "KeyArray",
    "Retired",
    "Shard",
    "array_from_buffer",
    "new_array",
    "read_array",
    "retire",
    "wrap_as",
]


class Retired(NamedTuple):
    """What is left of an array that was deleted or donated."""

    buffer: Any
    action: str
    traceback: Any


class _ArrayMeta(type):
    """Makes `isinstance(tracer, Array)` true for tracers of arrays."""

    @boundary
    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("Array is not called: make an array with dovetail.numpy.array(value)")

    def __dir__(cls) -> list[str]:
        return [name for name in type.__dir__(cls) if name not in ATTRIBUTES]

    def __getattr__(cls, name: str) -> Any:
        if not name.startswith("__"):
            load_array_methods()  # perhaps another thread has, since the name was looked for
            if any(name in base.__dict__ for base in cls.__mro__):
                return type.__getattribute__(cls, name)
        raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")

    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return (
            cls is Array and isinstance(instance, Tracer) and isinstance(instance.aval, ShapedArray)
        )


@bounded
class Array(ArrayClass, metaclass=_ArrayMeta):
    """An immutable array on a device; operations return new arrays.

    Arrays are created by functions: `dovetail.numpy.array`, `dovetail.device_put`. Inside a
    transformed function, tracers stand for arrays, and ``isinstance(tracer, Array)`` is True.

    Differs:
        Arrays under a transformation have the other attributes of arrays, too: `nbytes`,
        `byteswap`, `choose` and so on; `x.flat` can be read.

        >>> print(dt.jit(lambda x: x.nbytes)(jnp.ones(3)))
        12
        >>> print(jnp.arange(4).reshape(2, 2).flat[3])
        3
    """

    # Once the memory is gone, the buffer is unset and the class changes to one with __getattr__,
    # so that any use raises. (A class with __getattr__ has slower attribute access.)
    # A small array may hold a value of NumPy's, until somebody asks for its buffer.
    __slots__ = ("__weakref__", "_buffer", "_known", "_made", "_retired", "_value", "_weak")

    _buffer: Any
    _known: Any  # what C has asked the buffer (`native/direct.h`)
    _retired: Retired
    _weak: bool  # of an array that holds a value: whether its type is
    _key_dtype: ClassVar[Any] = None

    __hash__: ClassVar[None] = None
    _repr_html_ = array_html

    def _any_buffer(self) -> Any:
        """The buffer, deleted or not."""
        try:
            return self._buffer
        except DeletedArrayError:
            return self._retired.buffer

    # ------------------------------------------------------------------------------ what it is

    @property
    def aval(self) -> Any:
        """The abstract value: shape, dtype and weak type."""
        value = held_value(self)
        if value is not None:
            return make_aval(value.shape, value.dtype, self._weak)
        try:
            return self._buffer.aval
        except DeletedArrayError:
            return self._retired.buffer.aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        shape: tuple[int, ...] = self.aval.shape
        return shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        size: int = self.aval.size
        return size

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self.itemsize

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way to other arrays' dtypes in promotion."""
        weak: bool = self.aval.weak_type
        return weak

    # ------------------------------------------------------------------------------ where it is

    @property
    def sharding(self) -> Any:
        """How the array is laid out over devices."""
        return self._any_buffer()._sharding

    def devices(self) -> set[Any]:
        """The devices that hold the array."""
        return set(self.sharding.device_set)

    @property
    def device(self) -> Any:
        """The device that holds the array, or its sharding if there are several."""
        device_set = self.sharding.device_set
        return next(iter(device_set)) if len(device_set) == 1 else self.sharding

    @property
    def format(self) -> Format:
        """The devices that hold the array, and the order of its elements in their memory."""
        from dovetail._core.runtime.devices.layout import format_of  # deferred: seldom needed

        self._check()
        return format_of(self._buffer, self.sharding)

    def platform(self) -> str:
        """The name of the platform that the array is on, such as "cpu"."""
        return clients.platform_of(self._any_buffer()._sharding._device)

    @property
    def committed(self) -> bool:
        """Whether the array is committed to its device, so that computations run there."""
        return held_value(self) is None and bool(self._any_buffer()._committed)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can address all of the array's devices."""
        addressable: bool = self.sharding.is_fully_addressable
        return addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        replicated: bool = self.sharding.is_fully_replicated
        return replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts of the array on devices that this process can address."""
        self._check()
        return shards_of(self, functools.partial(wrap_as, self))

    @property
    def global_shards(self) -> list[Shard]:
        """The parts of the array on all of its devices, without data where this process has none.

        They are in the order of the devices.
        """
        self._check()
        return shards_of(self, functools.partial(wrap_as, self), everywhere=True)

    def addressable_data(self, index: int) -> Array:
        """The part of the array on one of the addressable devices."""
        try:
            data = self.addressable_shards[index].data
        except (TypeError, IndexError) as error:
            raise type(error)(
                "addressable_data takes the number of a device that holds a part of the array, of "
                f"which there are {len(self.addressable_shards)}, got {index!r:.80}"
            ) from None
        assert data is not None
        return data

    def to_device(self, device: Any, *, stream: Any = None) -> Array:
        """The array on another device, committed to it.

        Args:
            device: a device or a sharding.
            stream: must be None; required by the array API standard.
        """
        if stream is not None:
            raise NotImplementedError("to_device takes no stream")
        target = sharding.as_sharding(device)
        with guards.explicit():
            return wrap_as(self, buffers.move(self._buffer, target, True))

    def on_device_size_in_bytes(self) -> int:
        """The size in bytes on the device."""
        self._check()
        return int(self._buffer.on_device_size_in_bytes())

    def unsafe_buffer_pointer(self) -> int:
        """The address of the data; valid while the array is alive and not deleted."""
        from dovetail._core.runtime.arrays import dlpack  # deferred: dlpack makes arrays

        self._check()
        return dlpack.address(self._buffer)

    @property
    def traceback(self) -> Any:
        """Where the array was created, if tracebacks are on."""
        made = getattr(self, "_made", None)
        return self._any_buffer().traceback if made is None else made

    # ------------------------------------------------------------------------------- life cycle

    def is_deleted(self) -> bool:
        """Whether the array was deleted or donated."""
        return held_value(self) is None and bool(self._any_buffer().is_deleted())

    def is_ready(self) -> bool:
        """Whether the value has been computed."""
        if held_value(self) is not None:
            return True
        self._check()
        ready: bool = self._buffer.is_ready()
        return ready

    def delete(self) -> None:
        """Free the memory now; any later use of the array is an error."""
        retire(self, "deleted by .delete()")
        self._any_buffer().delete()

    def block_until_ready(self) -> Array:
        """Wait until the value has been computed.

        Returns:
            The array itself.

        Raises:
            JaxRuntimeError: its computation failed.
        """
        if held_value(self) is not None:
            return self
        try:
            buffers.wait(self._buffer)
        except JaxRuntimeError:
            self._check()
            raise
        return self

    def copy_to_host_async(self) -> None:
        """Start copying the value to the host, so that reading it later is faster."""
        self._check()
        bindings.copy_to_host_async(self._buffer)

    def _check(self) -> None:
        """Raise if the array was deleted or donated."""
        buffer = self._buffer
        if buffer.is_deleted():
            raise _deleted_error(Retired(buffer, "", None))

    # --------------------------------------------------------------------------------- the host

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        value = read_array(self)
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(
                    f"an array of {value.dtype} becomes one of {np.dtype(dtype)} only by a copy"
                )
            return value.astype(dtype)
        return value.copy() if copy else value

    def item(self, *args: int) -> Any:
        """One element as a Python scalar.

        Args:
            *args: its index; may be omitted for an array of size 1.
        """
        value = read_array(self)
        try:
            return value.item(*args)
        except (TypeError, ValueError, IndexError) as error:
            raise type(error)(f"item of an array of shape {self.shape}: {error}") from None

    def tolist(self) -> Any:
        """The value as nested lists of Python scalars."""
        return read_array(self).tolist()

    def tobytes(self, order: Literal["C", "F", "A", "K"] | None = "C") -> bytes:
        """The raw bytes of the elements, in native byte order.

        Args:
            order: "C" for row-major order, "F" for column-major order.
        """
        return read_array(self).tobytes(order)

    __bytes__ = tobytes

    def __len__(self) -> int:
        shape = self.aval.shape
        if not shape:
            raise TypeError("len() of unsized object: the array has no dimensions")
        length: int = shape[0]
        return length

    def __iter__(self) -> Iterator[Array]:
        aval = self.aval
        if not aval.shape:
            raise TypeError("iteration over an array without dimensions")
        if held_value(self) is None and len(self._buffer._sharding.device_set) != 1:
            return iter([self[index] for index in range(aval.shape[0])])
        return _rows(self, make_aval(aval.shape[1:], aval.dtype, aval.weak_type))

    def __bool__(self) -> bool:
        aval = self.aval
        if aval.size != 1:
            raise ambiguous_truth(aval.shape)
        return bool(read_array(self).item())

    def __int__(self) -> int:
        return int(_scalar(self, "an int"))

    def __float__(self) -> float:
        return float(_scalar(self, "a float"))

    def __complex__(self) -> complex:
        return complex(_scalar(self, "a complex number"))

    def __index__(self) -> int:
        aval = self.aval
        if aval.shape or aval.dtype.kind not in "iu":
            raise TypeError(
                "only an integer array without dimensions can be used as a Python index, and this "
                f"one is {short_type(aval)}"
            )
        index: int = operator.index(read_array(self).item())
        return index

    # -------------------------------------------------------------------------------- protocols

    def __dlpack_device__(self) -> tuple[int, int]:
        from dovetail._core.runtime.arrays import dlpack  # deferred: dlpack makes arrays

        return dlpack.dlpack_device(self)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        from dovetail._core.runtime.arrays import dlpack  # deferred: dlpack makes arrays

        return dlpack.to_capsule(self, stream, max_version, dl_device, copy)

    @property
    def __cuda_array_interface__(self) -> Any:
        self._check()
        buffer = self._buffer
        if buffer.platform() not in ("cuda", "gpu"):  # jaxlib would look for jax before refusing
            raise AttributeError("only arrays on NVIDIA GPUs have __cuda_array_interface__")
        return buffer.__cuda_array_interface__

    def __copy__(self) -> Array:
        self._check()
        copy = buffers.copy(self._buffer)
        place, on_mesh = default_place()
        if on_mesh and not copy._committed:
            copy = buffers.move(copy, place, True)
        return wrap_as(self, copy)

    def __deepcopy__(self, memo: Any) -> Array:
        return self.__copy__()

    def clone(self) -> Array:
        """A copy of the array in new memory on the same device."""
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        value = read_array(self)
        return (_restore, (np.array(value), self.weak_type))

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            "arrays cannot be changed: instead of x[index] = y write x = x.at[index].set(y); "
            "instead of x[index] += y write x = x.at[index].add(y)"
        )

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"<deleted Array of {short_type(self.aval)}>"
        if not self._is_readable():
            sums = self.aval.manual_axis_type.shown()
            return f"Array(shape={self.shape}, dtype={self.dtype}){sums}"
        return array_text(read_array(self), self.aval)

    def __str__(self) -> str:
        shown = not self.is_deleted() and self._is_readable()
        return str(read_array(self)) if shown else repr(self)

    def _is_readable(self) -> bool:
        """Whether this process has all of it."""
        if held_value(self) is not None:
            return True
        place = self._buffer._sharding
        if self.aval.manual_axis_type.unreduced:
            return False  # each device has a part of a sum
        return place._plugin_client is not None or is_local(place) or place.is_fully_replicated

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self.ndim:
            raise TypeError(
                f"the format {spec!r} is for one number, and the array has shape {self.shape}"
            )
        return format(read_array(self)[()], spec)


@functools.lru_cache(maxsize=1024)
def _logical_aval(physical: ShapedArray, key_dtype: Any) -> ShapedArray:
    """The aval of random keys whose underlying numbers have the given aval."""
    rank = physical.ndim - len(key_dtype.physical(())[0])
    own = physical.division
    divided = None if own is None else division(own.mesh, own.dims[:rank])
    return make_aval(physical.shape[:rank], key_dtype, False, divided)


@bounded
class KeyArray(Array):
    """An array of random keys. Its buffer holds the keys' underlying numbers."""

    __slots__ = ("_identities", "_key_dtype")

    _identities: Any  # which keys it holds; unset if nobody has asked
    _key_dtype: Any  # type: ignore[misc]  # the dtype of the keys

    @property
    def aval(self) -> Any:
        """The abstract value: shape and key dtype."""
        value = held_value(self)
        physical = self._any_buffer().aval if value is None else numpy_aval(value)
        return _logical_aval(physical, self._key_dtype)

    def identities(self) -> np.ndarray[Any, Any]:
        """Which keys it holds, for the option ``debug_key_reuse``."""
        from dovetail._core.transform.key_reuse import new_identities  # deferred: rarely asked for

        found = getattr(self, "_identities", None)
        if found is None:
            found = self._identities = new_identities(self.shape)
        return found

    def __copy__(self) -> Array:
        copy = super().__copy__()
        if config.debug_key_reuse.value:
            copy._identities = self.identities()  # type: ignore[attr-defined]
        return copy

    def __iter__(self) -> Iterator[Array]:
        rows = super().__iter__()
        return _identified(rows, self.identities()) if config.debug_key_reuse.value else rows

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self._check()
        raise TypeError(
            f"an array of {self.dtype.elements} ({self.dtype}) is no NumPy array; "
            f"{self.dtype.advice}"
        )

    def item(self, *args: int) -> NoReturn:
        self.__array__()

    def tolist(self) -> NoReturn:
        self.__array__()

    def __bool__(self) -> bool:
        raise TypeError(f"an array of {self.dtype.elements} is neither true nor false")

    def __int__(self) -> int:
        self.__array__()

    def __float__(self) -> float:
        self.__array__()

    def __complex__(self) -> complex:
        self.__array__()

    def __index__(self) -> int:
        self.__array__()

    def __dlpack__(self, **options: Any) -> NoReturn:
        self.__array__()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore_keys, (np.array(read_array(self)), self._key_dtype))

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"<deleted Array of {short_type(self.aval)}>"
        shown = f"Array({self.shape}, dtype={self.dtype})"
        return f"{shown} overlaying:\n{read_array(self)}" if self._is_readable() else shown

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


# A bound method of type takes 3/4 of the time of object.__new__.
new_array: Final[Callable[[], Array]] = type.__call__.__get__(Array)
_new_key_array: Final[Callable[[], KeyArray]] = type.__call__.__get__(KeyArray)


def array_from_buffer(buffer: Any) -> Array:
    """Wrap a buffer in an array."""
    array = new_array()
    array._buffer = buffer
    return array


def _once_held() -> dict[int, Any]:
    """The buffers of arrays that have held values, made if need be, and where those were made."""
    arrays = [thing for thing in gc.get_objects() if type(thing) in (Array, KeyArray)]
    return {id(x._buffer): x._made for x in arrays if hasattr(x, "_made") and hasattr(x, "_buffer")}


if native.calls is not None:
    live_buffers.know_makers(_once_held)


def _wrap_keys(buffer: Any, key_dtype: Any) -> KeyArray:
    array = _new_key_array()
    array._key_dtype = key_dtype
    array._buffer = buffer
    return array


def wrap_as(like: Array, buffer: Any) -> Array:
    """Wrap a buffer in an array of the same class (and key dtype) as another array."""
    return wrap_value(like._key_dtype, buffer)


def wrap_value(key_dtype: Any, buffer: Any) -> Array:
    """Wrap a buffer in an array: of random keys if there is a key dtype, else of numbers."""
    return array_from_buffer(buffer) if key_dtype is None else _wrap_keys(buffer, key_dtype)


# The C++ jit flattens arrays as nodes of its pytrees. It reads the fields of dataclasses fastest.
dispatch_registry.register_dataclass_node(Array, ["_buffer"], [])
dispatch_registry.register_dataclass_node(KeyArray, ["_buffer"], ["_key_dtype"])


class _Deleted:
    """Mixin that makes any use of a deleted or donated array raise."""

    __slots__ = ()

    _retired: Retired

    def __getattr__(self, name: str) -> Any:
        if name == "_buffer":
            raise _deleted_error(self._retired)
        raise AttributeError(f"an array has no attribute {name!r}")


class DeletedArray(_Deleted, Array):
    """An array that was deleted or donated."""

    __slots__ = ()


class _DeletedKeyArray(_Deleted, KeyArray):
    __slots__ = ()


class _Unplaced(Array):
    """An array that was unpickled in the child of a fork, where no memory can be had for it.

    An error while it is unpickled would end a worker of a pool, and the pool would wait for it.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        process_ends.check()
        raise AttributeError(f"an array has no attribute {name!r}")


def _unplaced() -> Any:
    array = new_array()
    array.__class__ = _Unplaced
    return array


def retire(array: Array, action: str, traceback: Any = None) -> None:
    """Mark an array as deleted or donated, so that its next use raises a clear error.

    Args:
        array: the array.
        action: what was done to it, such as ``"donated to step"``.
        traceback: where that happened; the caller's traceback if None.
    """
    value = held_value(array)
    try:
        buffer = array._buffer if value is None else FreedValue(value, array._weak)
    except DeletedArrayError:
        return
    array._retired = Retired(buffer, action, traceback or get_traceback())
    del array._buffer
    array.__class__ = _DeletedKeyArray if isinstance(array, KeyArray) else DeletedArray


def _deleted_error(retired: Retired) -> DeletedArrayError:
    what = f"this array ({short_type(retired.buffer.aval)})"
    if retired.traceback is None:
        return DeletedArrayError(
            f"{what} was deleted, or donated to a compiled function, so it has no value; use the "
            "function's result instead, or keep a copy"
        )
    where = source.describe(retired.traceback)
    if retired.action.startswith("donated"):
        advice = (
            "use the result of that call instead, or leave the argument out of donate_argnums and "
            "donate_argnames"
        )
    else:
        advice = "keep a copy with dovetail.numpy.copy(x) if it is needed later"
    return DeletedArrayError(
        f"{what} was {retired.action} at {where}, so it has no value; {advice}"
    )


def read_array(array: Array) -> np.ndarray[Any, Any]:
    """The value of an array as a read-only NumPy array; for keys, their underlying numbers.

    Raises:
        DeletedArrayError: the array was deleted or donated.
        JaxRuntimeError: its computation failed.
    """
    value = held_value(array)
    if value is not None:
        return value.view()
    buffer = array._buffer
    try:
        return buffers.read(buffer)
    except JaxRuntimeError:
        if buffer.is_deleted():
            raise _deleted_error(Retired(buffer, "", None)) from None
        raise
    except ValueError as error:
        if len(array.aval.shape) <= 64:
            raise
        raise ValueError(
            f"an array of {len(array.aval.shape)} dimensions cannot be read: NumPy's have at most "
            "64; reshape it first"
        ) from error


def _scalar(array: Array, target: str) -> Any:
    aval = array.aval
    if aval.shape:
        raise TypeError(
            f"only an array without dimensions can become {target}, and this one has shape "
            f"{aval.shape}; for the only element of an array use x.item()"
        )
    return read_array(array).item()


def _rows(array: Array, aval: Any) -> Iterator[Array]:
    """The array's rows, transferred one at a time from a single copy on the host."""
    buffer = array._any_buffer() if held_value(array) is None else None
    place, committed = sharding.first_sharding(), False
    if buffer is not None:
        place, committed = sharding.of_rows(buffer._sharding), buffer._committed
    physical = physical_aval(aval)
    key_dtype = array._key_dtype
    values = read_array(array)
    held = native.calls is not None and key_dtype is None and not (committed or aval.weak_type)
    held = held and place == sharding.first_sharding()
    for index in range(len(values)):
        row: Array | None = native.calls.hold(values[index, ...]) if held else None
        if row is None:
            row = wrap_value(key_dtype, buffers.put(values[index], physical, place, committed))
        yield row


def _identified(rows: Iterator[Array], identities: Any) -> Iterator[Array]:
    """Rows of an array of keys, with the identities of their keys."""
    for row, identity in zip(rows, identities, strict=True):
        if isinstance(row, KeyArray):
            row._identities = np.asarray(identity, object)
        yield row


def _restore(value: np.ndarray[Any, Any], weak_type: bool) -> Array:
    """Create an unpickled array on the default device."""
    if process_ends.in_child():
        return _unplaced()  # type: ignore[no-any-return]
    canonical = dtypes.canonicalize_dtype(value.dtype)
    value = value if value.dtype == canonical else value.astype(canonical)
    aval = make_aval(value.shape, value.dtype, weak_type)
    return array_from_buffer(buffers.put(value, aval, sharding.default_sharding()))


def _restore_keys(value: np.ndarray[Any, Any], key_dtype: Any) -> KeyArray:
    if process_ends.in_child():
        return _unplaced()  # type: ignore[no-any-return]
    return _wrap_keys(buffers.put(value, numpy_aval(value), sharding.default_sharding()), key_dtype)
