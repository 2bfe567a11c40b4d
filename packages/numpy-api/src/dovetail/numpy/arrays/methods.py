"""Methods and properties of arrays and tracers that differ from the functions of the same names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from dovetail import device_put
from dovetail.extend import dtypes
from dovetail.extend.arguments import no_out
from dovetail.extend.avals import ArrayClass, aval_of
from dovetail.extend.tracebacks import bounded
from dovetail.numpy import complex_numbers, creation, shapes
from dovetail.typing import Array, ArrayLike, DeviceLike, DTypeLike, ShapeLike, Sharding


def reshape(
    self: Array, *args: ShapeLike, order: str = "C", out_sharding: Sharding | None = None
) -> Array:
    """Change the shape, keeping the order: ``x.reshape(2, -1)`` or ``x.reshape((2, -1))``."""
    if not args:
        raise TypeError("reshape needs a shape: x.reshape(2, 3) or x.reshape((2, 3))")
    shape: Any = args[0] if len(args) == 1 else args
    return shapes.reshape(self, shape, order, out_sharding=out_sharding)


def transpose(self: Array, *args: int | Sequence[int] | None) -> Array:
    """Permute the dimensions, by default into reverse order: ``x.transpose(1, 0)``."""
    if not args or (len(args) == 1 and args[0] is None):
        return shapes.transpose(self)
    axes: Any = args[0] if isinstance(args[0], (tuple, list)) else args
    return shapes.transpose(self, axes)


def astype(
    self: Array, dtype: DTypeLike | None, copy: bool = False, device: DeviceLike | None = None
) -> Array:
    """Convert the array to a dtype. See `dovetail.numpy.astype`."""
    return creation.astype(self, dtype, copy=copy, device=device)


def to_device(self: Array, device: DeviceLike, *, stream: Any = None) -> Array:
    """The value on another device. See `dovetail.device_put`."""
    if stream is not None:
        raise NotImplementedError("to_device takes no stream")
    return device_put(self, device)


def flatten(self: Array, order: str = "C", *, out_sharding: Sharding | None = None) -> Array:
    """Flatten the array to one dimension. See `dovetail.numpy.ravel`."""
    if isinstance(order, int):
        raise TypeError(
            f"flatten makes one dimension of all, and order is 'C' or 'F', got {order}; to keep "
            "the first dimensions write x.reshape(*x.shape[:n], -1)"
        )
    return shapes.ravel(self, order, out_sharding=out_sharding)


def copy(self: Array) -> Array:
    """A copy of the array, with its own memory."""
    return creation.array(self, copy=True)


def conjugate(self: Array) -> Array:
    """The complex conjugate. See `dovetail.numpy.conj`."""
    return complex_numbers.conj(self)


def compress(
    self: Array,
    condition: ArrayLike,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Select the slices for which a condition holds. See `dovetail.numpy.compress`."""
    from dovetail.numpy.gathering import compress as function  # deferred: rarely used

    no_out("compress", out)
    return function(condition, self, axis, size=size, fill_value=fill_value)


def view(self: Array, dtype: DTypeLike | None = None, type: None = None) -> Array:
    """Reinterpret the bits of the array as another dtype.

    If the sizes of the dtypes differ, the last dimension grows or shrinks.

    Args:
        dtype: the dtype to read as; that of the array if None.
        type: must be None.
    """
    if type is not None:
        raise ValueError(
            "view reads the bits of an array as another dtype, and there are no subclasses of "
            "arrays; for another shape write x.reshape(shape)"
        )
    if dtype is None:
        return self
    if isinstance(dtype, int):
        raise TypeError(
            "view reads the bits of an array as another dtype; for another shape write "
            "x.reshape(shape)"
        )
    return bits_as(self, dtypes.check_user_dtype(dtype, "view"))


def bits_as(x: Any, target: Any) -> Any:
    """`x` with its bits read as a canonical dtype; the last dimension changes if sizes differ."""
    from dovetail import lax  # deferred: rarely used

    source = aval_of(x).dtype
    if source == target:
        return x
    if dtypes.kind_of(source) == "b":
        x, source = lax.convert_element_type(x, "uint8"), np.dtype("uint8")
    if dtypes.kind_of(target) == "b":
        return lax.convert_element_type(bits_as(x, np.dtype("uint8")), target)
    if "c" in (dtypes.kind_of(source), dtypes.kind_of(target)):
        return _complex_view(x, source, target)
    ratio = dtypes.itemsize_bits(source) / dtypes.itemsize_bits(target)
    if ratio == 1:
        return lax.bitcast_convert_type(x, target)
    shape = aval_of(x).shape
    if not shape:
        raise ValueError("view: a scalar cannot be read as a dtype of another size")
    if ratio > 1:
        wide = lax.bitcast_convert_type(x, target)
        return shapes.reshape(wide, (*shape[:-1], shape[-1] * round(ratio)))
    count = round(1 / ratio)
    if shape[-1] % count:
        raise ValueError(
            f"view: the last dimension, of size {shape[-1]}, does not divide into groups of "
            f"{count} "
            f"elements of {source}, which make one of {target}"
        )
    grouped = shapes.reshape(x, (*shape[:-1], shape[-1] // count, count))
    return lax.bitcast_convert_type(grouped, target)


def _complex_view(x: Any, own: Any, target: Any) -> Any:
    from dovetail import lax  # deferred: rarely used

    if dtypes.kind_of(own) == "c":
        parts = lax.stack([lax.real(x), lax.imag(x)], axis=aval_of(x).ndim)
        shape = aval_of(x).shape
        flat = shapes.reshape(parts, (*shape[:-1], 2 * shape[-1]) if shape else (2,))
        return bits_as(flat, target)
    part = dtypes.finfo(target).dtype
    numbers = bits_as(x, part)
    shape = aval_of(numbers).shape
    if not shape or shape[-1] % 2:
        raise ValueError(
            f"view: an array of shape {aval_of(x).shape} does not divide into {target}"
        )
    pairs = shapes.reshape(numbers, (*shape[:-1], shape[-1] // 2, 2))
    return lax.complex(pairs[..., 0], pairs[..., 1])


def transposed(self: Array) -> Array:
    """The array with its dimensions in reverse order."""
    return shapes.transpose(self)


def matrix_transposed(self: Array) -> Array:
    """The array with its last two dimensions exchanged."""
    return shapes.matrix_transpose(self)


def real(self: Array) -> Array:
    """The real part."""
    return complex_numbers.real(self)


def imag(self: Array) -> Array:
    """The imaginary part."""
    return complex_numbers.imag(self)


def byteswap(self: Array) -> Array:
    """Reverse the bytes of each element, or of each part of complex elements."""
    from dovetail import lax  # deferred: rarely used

    dtype = aval_of(self).dtype
    if not dtypes.kind_of(dtype):
        raise TypeError(f"byteswap: an array of {dtype} has no bytes")
    if dtypes.kind_of(dtype) == "c":
        return lax.complex(byteswap(lax.real(self)), byteswap(lax.imag(self)))
    if dtype.itemsize == 1:
        return self
    bytes_of_elements = lax.bitcast_convert_type(self, "uint8")
    last = len(aval_of(bytes_of_elements).shape) - 1
    return lax.bitcast_convert_type(lax.rev(bytes_of_elements, (last,)), dtype)


def backwards(self: Any) -> Iterator[Any]:
    """The rows of the array from the last to the first: ``reversed(x)``."""
    if not aval_of(self).shape:
        raise TypeError("an array without dimensions cannot be reversed")
    return iter(self[::-1])


def hexadecimal(self: Any) -> str:
    """An integer of rank 0 in base 16, as returned by `hex`."""
    return hex(self)


def octal(self: Any) -> str:
    """An integer of rank 0 in base 8, as returned by `oct`."""
    return oct(self)


def array_module(self: Any, types: Iterable[type]) -> Any:
    """The module that implements functions of these types: `dovetail.numpy`, or NotImplemented."""
    import dovetail.numpy  # deferred: already loaded by then

    supported = (ArrayClass, np.ndarray, np.generic)
    return dovetail.numpy if all(issubclass(t, supported) for t in types) else NotImplemented


@bounded
class FlatElements:
    """The elements of an array in row-major order: the type of `x.flat`.

    It can be iterated over and indexed like ``x.ravel()``, and is accepted wherever arrays are.
    Differs from NumPy in that it cannot be written to.

    Attributes:
        base: the array.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([[1, 2], [3, 4]])
        >>> print(x.flat[2], x.flat[1:3], [int(n) for n in x.flat])
        3 [2 3] [1, 2, 3, 4]
    """

    __slots__ = ("base",)

    def __init__(self, base: Any) -> None:
        self.base = base

    def copy(self) -> Any:
        """The elements as an array of one dimension."""
        return shapes.ravel(self.base)

    __dovetail_array__ = copy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = self.copy().__array__(dtype, copy)
        return found

    def __len__(self) -> int:
        size: int = aval_of(self.base).size
        return size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.copy())

    def __getitem__(self, index: Any) -> Any:
        return self.copy()[index]

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            "arrays cannot be changed: instead of x.flat[index] = y write "
            "x = x.ravel().at[index].set(y).reshape(x.shape)"
        )

    def __eq__(self, other: object) -> Any:
        return self.copy() == other

    def __ne__(self, other: object) -> Any:
        return self.copy() != other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FlatElements({self.base!r})"


def flat(self: Any) -> FlatElements:
    """The elements in row-major order, to iterate over and to index."""
    return FlatElements(self)
