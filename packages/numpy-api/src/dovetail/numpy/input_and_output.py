"""Converting arrays to and from text, files and the arrays of other libraries.

All of this happens on the host: in a compiled function, while it is traced.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Any

import numpy as np
from dovetail import dlpack
from dovetail.extend import dtypes
from dovetail.extend.arguments import integer
from dovetail.extend.avals import ArrayClass, array_conversion
from dovetail.numpy.creation import array
from dovetail.typing import Array, ArrayLike, DeviceLike, DTypeLike, SupportsDLPack

File = IO[bytes] | str | os.PathLike[str]

# ----------------------------------------------------------------------------------------- text


@contextmanager
def _layout(
    function: str, width: int | None, precision: int | None, small: bool | None
) -> Iterator[None]:
    if width is not None:
        width = integer(function, "max_line_width", width)
    options: dict[str, Any] = {"linewidth": width, "precision": precision, "suppress": small}
    with np.printoptions(**{name: value for name, value in options.items() if value is not None}):
        yield


def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The `repr` of an array.

    Args:
        arr: array, or nested sequence.
        max_line_width: where to break lines; the printing option ``linewidth`` if None.
        precision: digits after the decimal point; the option of that name if None.
        suppress_small: whether to write numbers near zero as zero; the option ``suppress`` if None.

    Returns:
        A string; for NumPy arrays it is NumPy's.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.array_repr(jnp.array([1 / 3, 2.0]), precision=2)
        'Array([0.33, 2.  ], dtype=float32)'
    """
    with _layout("array_repr", max_line_width, precision, suppress_small):
        return repr(arr if isinstance(arr, ArrayClass) else np.asarray(arr))


def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The `str` of an array: its elements alone.

    Args:
        a: array, or nested sequence.
        max_line_width: where to break lines; the printing option ``linewidth`` if None.
        precision: digits after the decimal point; the option of that name if None.
        suppress_small: whether to write numbers near zero as zero; the option ``suppress`` if None.

    Returns:
        A string.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.array_str(jnp.array([1 / 3, 2.0]), precision=2)
        '[0.33 2.  ]'
    """
    with _layout("array_str", max_line_width, precision, suppress_small):
        return str(a if isinstance(a, ArrayClass) else np.asarray(a))


def get_printoptions() -> dict[str, Any]:
    """The options for printing arrays: NumPy's, which apply to arrays of both libraries.

    Returns:
        A dictionary of the options that `set_printoptions` takes.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.get_printoptions()["linewidth"]
        75
    """
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set the options for printing arrays.

    These are NumPy's options; they apply to arrays of both libraries.

    Args:
        *args: as for ``numpy.set_printoptions``.
        **kwargs: likewise: precision, threshold, edgeitems, linewidth, suppress ...

    Example:
        >>> import dovetail.numpy as jnp
        >>> old = jnp.get_printoptions()
        >>> jnp.set_printoptions(precision=2)
        >>> jnp.array([1 / 3])
        Array([0.33], dtype=float32)
        >>> jnp.set_printoptions(**old)
    """
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """Set the options for printing arrays within a ``with`` block.

    Args:
        *args: as for ``numpy.set_printoptions``.
        **kwargs: likewise.

    Returns:
        A context manager that returns the options.

    Example:
        >>> import dovetail.numpy as jnp
        >>> with jnp.printoptions(precision=2):
        ...     print(jnp.array([1 / 3]))
        [0.33]
    """
    return np.printoptions(*args, **kwargs)


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Read a one-dimensional array of numbers from a string.

    Args:
        string: text that holds the numbers.
        dtype: dtype of the numbers.
        count: number of numbers to read; -1 for all.
        sep: separator of the numbers; whitespace in it matches any amount of whitespace.

    Returns:
        An array.

    Raises:
        ValueError: `sep` is empty, or the text holds anything else.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fromstring("1, 2, 3", dtype=int, sep=","))
        [1 2 3]
    """
    if not sep:
        raise ValueError(
            "fromstring requires sep, what stands between the numbers; use frombuffer for bytes"
        )
    return array(np.fromstring(string, _known(dtype), count, sep=sep))


# ---------------------------------------------------------------------------------------- files


def _named(x: Any) -> np.ndarray[Any, Any]:
    """A NumPy array of a dtype that files can store.

    Files cannot store dtypes that NumPy lacks. bfloat16 is written as two bytes, as other libraries
    do; the others as a field with the name of the dtype.
    """
    try:
        value = np.asarray(x)
    except ValueError as error:  # lists of different lengths
        raise TypeError(f"{x!r:.80} is no array that a file can hold: {error}") from None
    dtype = value.dtype
    if dtype.isbuiltin == 2 and dtype.name != "bfloat16":  # registered by ml_dtypes
        return value.view([(dtype.name, f"V{dtype.itemsize}")])
    return value


def save(file: File, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's format.

    Args:
        file: open binary file, or a path; ``.npy`` is appended if missing.
        arr: array.
        allow_pickle: whether to allow arrays of Python objects.

    Raises:
        TypeError: the array holds random keys.
        TracerArrayConversionError: the array is traced.

    Example:
        >>> import io
        >>> import dovetail.numpy as jnp
        >>> file = io.BytesIO()
        >>> jnp.save(file, jnp.arange(3, dtype="bfloat16"))
        >>> _ = file.seek(0)
        >>> jnp.load(file)
        Array([0, 1, 2], dtype=bfloat16)
    """
    np.save(file, _named(arr), allow_pickle=allow_pickle)


def savez(file: File, *args: ArrayLike, allow_pickle: bool = True, **kwds: ArrayLike) -> None:
    """Write several arrays to one file in NumPy's format, without compression.

    Args:
        file: open binary file, or a path; ``.npz`` is appended if missing.
        *args: arrays, stored under the names ``arr_0``, ``arr_1`` ...
        allow_pickle: whether to allow arrays of Python objects.
        **kwds: arrays, stored under these names.

    Raises:
        TypeError: an array holds random keys.
        TracerArrayConversionError: an array is traced.
        ValueError: a name is given twice.

    Differs:
        Dtypes that NumPy lacks (int4, float8 and so on) are named in the file, so that `load`
        restores them.

        >>> import io
        >>> file = io.BytesIO()
        >>> jnp.savez(file, x=jnp.ones(2, "float8_e4m3fn"))
        >>> _ = file.seek(0)
        >>> print(jnp.load(file)["x"].dtype)
        float8_e4m3fn

    Example:
        >>> import io
        >>> import dovetail.numpy as jnp
        >>> file = io.BytesIO()
        >>> jnp.savez(file, jnp.arange(3), weights=jnp.ones(2))
        >>> _ = file.seek(0)
        >>> sorted(jnp.load(file).items())
        [('arr_0', array([0, 1, 2], dtype=int32)), ('weights', array([1., 1.], dtype=float32))]
    """
    named: dict[str, Any] = {name: _named(x) for name, x in kwds.items()}
    for i, x in enumerate(args):
        if f"arr_{i}" in named:
            raise ValueError(
                f"savez: arr_{i} is the name of an argument without a name; give that array another"
            )
        named[f"arr_{i}"] = _named(x)
    if not allow_pickle:
        for name, x in named.items():
            if x.dtype.hasobject:
                raise ValueError(
                    f"savez: {name} is an array of Python objects; pass allow_pickle=True, or "
                    "convert it to numbers"
                )
    np.savez(file, **named)


def load(file: File, *args: Any, **kwargs: Any) -> Any:
    """Read arrays written by `save` or `savez`.

    Args:
        file: open binary file, or a path.
        *args: as for ``numpy.load``.
        **kwargs: likewise.

    Returns:
        The array of a ``.npy`` file, on the default device; two bytes without a dtype are read as
        bfloat16. For a ``.npz`` file an `Archive`: a mapping of names to NumPy arrays.

    Raises:
        OverflowError: a 64-bit integer in the file does not fit 32 bits, and ``enable_x64`` is off.
        TypeError: the file holds anything other than numbers.

    Differs:
        The arrays of a file of `savez` have the dtypes that `savez` was given, bfloat16, int4
        and the floats of 8 bits included.

        >>> import io
        >>> file = io.BytesIO()
        >>> jnp.savez(file, x=jnp.ones(2, "bfloat16"), y=jnp.ones(2, "int4"))
        >>> _ = file.seek(0)
        >>> print({name: str(array.dtype) for name, array in jnp.load(file).items()})
        {'x': 'bfloat16', 'y': 'int4'}

    Example:
        >>> import io
        >>> import dovetail.numpy as jnp
        >>> file = io.BytesIO()
        >>> jnp.save(file, jnp.eye(2))
        >>> _ = file.seek(0)
        >>> print(jnp.load(file))
        [[1. 0.]
         [0. 1.]]
    """
    loaded = np.load(file, *args, **kwargs)
    if isinstance(loaded, np.lib.npyio.NpzFile):
        return Archive(loaded)
    return array(_restored(loaded)) if isinstance(loaded, np.ndarray) else loaded


class Archive(Mapping[str, np.ndarray[Any, Any]]):
    """The arrays of a ``.npz`` file by name, each read on access.

    Used in a ``with`` statement, it closes the file at the end.

    Args:
        file: the file as opened by NumPy.

    Example:
        >>> import io
        >>> import dovetail.numpy as jnp
        >>> file = io.BytesIO()
        >>> jnp.savez(file, weights=jnp.ones(2, dtype="bfloat16"))
        >>> _ = file.seek(0)
        >>> with jnp.load(file) as arrays:
        ...     print(arrays.files, arrays["weights"])
        ['weights'] [1 1]
    """

    def __init__(self, file: np.lib.npyio.NpzFile) -> None:
        self._file = file

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        stored = self._file[name]
        return _restored(stored) if isinstance(stored, np.ndarray) else stored

    def __iter__(self) -> Iterator[str]:
        return iter(self._file)

    def __len__(self) -> int:
        return len(self._file)

    def __repr__(self) -> str:
        return f"Archive of {', '.join(self) or 'nothing'}"

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def files(self) -> list[str]:
        """The names of the arrays."""
        return list(self)

    def close(self) -> None:
        """Close the file; nothing can be read afterwards."""
        self._file.close()


def _restored(found: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array from a file in the dtype that it had when it was written."""
    names = found.dtype.names
    if names is not None and len(names) == 1 and found.dtype[0].kind == "V":
        return found.view(dtypes.as_dtype(names[0]))
    if found.dtype == np.dtype("V2"):
        return found.view(dtypes.as_dtype("bfloat16"))
    return found


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """Read a one-dimensional array of numbers from a binary or text file.

    Args:
        *args: as for ``numpy.fromfile``: file, dtype, count, sep, offset.
        **kwargs: likewise.

    Returns:
        An array. In a compiled function it is a constant: the file is read when the function is
        traced, and not again.

    Example:
        >>> import tempfile
        >>> import dovetail.numpy as jnp
        >>> with tempfile.TemporaryFile() as file:
        ...     _ = file.write(b"\\x01\\x02\\x03")
        ...     _ = file.seek(0)
        ...     print(jnp.fromfile(file, dtype="uint8"))
        [1 2 3]
    """
    file = kwargs["file"] if "file" in kwargs else args[0] if args else ""
    if not isinstance(file, (str, bytes, os.PathLike)) and not hasattr(file, "fileno"):
        raise TypeError(f"fromfile: file must be a path or an open file, got {file!r:.80}")
    return array(np.fromfile(*_arguments(args), **_keywords(kwargs)))


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """Create a one-dimensional array from an iterator of numbers.

    Args:
        *args: as for ``numpy.fromiter``: iterable, dtype, count.
        **kwargs: likewise.

    Returns:
        An array. In a compiled function it is a constant: the iterator is used up when the function
        is traced.

    Raises:
        TypeError: it is not an iterable, or gives something else than numbers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fromiter((n * n for n in range(4)), dtype=int))
        [0 1 4 9]
    """
    try:
        return array(np.fromiter(*_arguments(args), **_keywords(kwargs)))
    except TypeError as error:
        raise TypeError(
            f"fromiter takes an iterable of numbers, a dtype and how many to read: {error}"
        ) from error


def _arguments(args: tuple[Any, ...]) -> list[Any]:
    """Positional arguments, with the dtype, the second of them, in the form that NumPy accepts."""
    return [_known(x) if i == 1 else x for i, x in enumerate(args)]


def _keywords(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: _known(x) if name == "dtype" else x for name, x in kwargs.items()}


def _known(dtype: Any) -> Any:
    # Unchanged, since it may specify the byte order of a file.
    return dtype if isinstance(dtype, (str, np.dtype)) else dtypes.as_dtype(dtype)


# ------------------------------------------------------------------------------ other libraries


def from_dlpack(
    x: SupportsDLPack | Array, /, *, device: DeviceLike | None = None, copy: bool | None = None
) -> Array:
    """Convert an array of another library through DLPack.

    Args:
        x: object with the methods ``__dlpack__`` and ``__dlpack_device__``.
        device: device to place the array on; None to leave it where it is.
        copy: whether to copy, as by default; with False the array shares the memory of `x`, or an
            error is raised.

    Returns:
        An array.

    Example:
        >>> import numpy
        >>> import dovetail.numpy as jnp
        >>> jnp.from_dlpack(numpy.arange(3, dtype="int32"))
        Array([0, 1, 2], dtype=int32)
    """
    return dlpack.from_dlpack(x, device, copy)


def isscalar(element: object) -> bool:
    """Check whether an object is a scalar: a number, a string, or an array of rank 0.

    Differs from NumPy, for which arrays of rank 0 are not scalars.

    Args:
        element: any object.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.isscalar(3.0), jnp.isscalar(jnp.array(3.0)), jnp.isscalar([3.0])
        (True, True, False)
    """
    if isinstance(element, (ArrayClass, np.ndarray)):
        return element.ndim == 0
    convert = array_conversion(element)
    if convert is not None:
        return bool(array(convert()).ndim == 0)
    return bool(np.isscalar(element))


def iterable(y: object) -> bool:
    """Check whether an object can be iterated over, such as an array of rank 1 or more.

    Args:
        y: any object.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.iterable(jnp.arange(3)), jnp.iterable(jnp.array(3))
        (True, False)
    """
    return bool(np.iterable(y))
