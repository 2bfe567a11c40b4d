"""Objects that build arrays and indices by indexing, and functions that build indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from dovetail.errors import ConcretizationTypeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    convert,
    integer,
    require_callable,
)
from dovetail.extend.avals import Tracer, aval_of
from dovetail.extend.tracebacks import bounded
from dovetail.numpy.creation import array
from dovetail.numpy.filling import ones
from dovetail.numpy.joining import concatenate, stack
from dovetail.numpy.ranges import arange, linspace, meshgrid
from dovetail.numpy.searching import nonzero
from dovetail.numpy.shapes import operand, reshaped
from dovetail.typing import Array, ArrayLike


def _bound(name: str, argument: str, bound: Any) -> Any:
    if isinstance(bound, Tracer) and bound.concrete() is None:
        raise ConcretizationTypeError(bound, f"the {argument} of a slice in {name}")
    return bound


def _numbers(name: str, entry: Any) -> Any:
    """The numbers that a slice stands for; an imaginary step gives their count."""
    if not isinstance(entry, slice):
        raise TypeError(
            f"{name} is indexed with slices, such as {name}[0:3, 0:1:5j]; got "
            f"{type(entry).__name__}"
        )
    start, stop, step = (
        _bound(name, argument, getattr(entry, argument)) for argument in ("start", "stop", "step")
    )
    if isinstance(step, (complex, np.complexfloating)):
        if stop is None:
            raise ValueError(f"{name}: a slice with an imaginary step needs a stop")
        return linspace(0 if start is None else start, stop, int(abs(complex(step))))
    if stop is None:
        # As in NumPy, a single bound is the end.
        start, stop = None, 0 if start is None else start
    return arange(0 if start is None else start, stop, 1 if step is None else step)


def _grids(name: str, key: Any, sparse: bool) -> list[Any]:
    axes = [_numbers(name, entry) for entry in key]
    if axes:
        dtype = dtypes.common_dtype(*[aval_of(axis).dtype for axis in axes])
        axes = [convert(axis, dtype) for axis in axes]
    return list(meshgrid(*axes, indexing="ij", sparse=sparse))


@bounded
class _DenseGrid:
    """Coordinates of the points of a grid, in one array: ``mgrid[0:2, 0:3]``.

    Each slice is an axis. An imaginary step gives the count of numbers from start to stop, both
    included: ``0:1:5j``. A single slice gives a vector; several give an array whose additional
    first dimension selects the axis.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.mgrid[0:1:3j])
        [0.  0.5 1. ]
        >>> rows, columns = jnp.mgrid[0:2, 0:3]
        >>> print(rows)
        [[0 0 0]
         [1 1 1]]
    """

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return _numbers("mgrid", key)
        grids = _grids("mgrid", key, sparse=False)
        return stack(grids) if grids else arange(0)

    def __repr__(self) -> str:
        return "mgrid"


@bounded
class _OpenGrid:
    """Coordinates of the points of a grid, as arrays that broadcast: ``ogrid[0:2, 0:3]``.

    Each slice is an axis, as for `mgrid`. A single slice gives a vector; several give a list of
    arrays, each of size one along all axes but its own.

    Example:
        >>> import dovetail.numpy as jnp
        >>> rows, columns = jnp.ogrid[0:2, 0:3]
        >>> print(rows.shape, columns.shape)
        (2, 1) (1, 3)
    """

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return _numbers("ogrid", key)
        return _grids("ogrid", key, sparse=True)

    def __repr__(self) -> str:
        return "ogrid"


@bounded
class _Joining:
    """The common part of `r_` and `c_`: join the entries of an index."""

    __slots__ = ("axis", "name", "rank", "start")

    def __init__(self, name: str, axis: int, rank: int, start: int) -> None:
        self.name = name
        self.axis = axis
        self.rank = rank
        self.start = start

    def __getitem__(self, key: Any) -> Any:
        entries = key if isinstance(key, tuple) else (key,)
        axis, rank, start = self.axis, self.rank, self.start
        text = entries[0] if entries and isinstance(entries[0], str) else None
        if text is not None:
            entries = entries[1:]
            if text not in ("r", "c"):
                axis, rank, start = self._directive(text)
        if not entries:
            raise ValueError(f"{self.name} needs at least one array, number or slice")
        result = concatenate([self._part(entry, rank, start) for entry in entries], axis)
        if text in ("r", "c") and aval_of(result).ndim == 1:
            return reshaped(result, (1, result.size) if text == "r" else (result.size, 1))
        return result

    def __repr__(self) -> str:
        return self.name

    def _directive(self, text: str) -> tuple[int, int, int]:
        """Axis, rank, and position of the first dimension in it, from a text such as "0,2"."""
        parts = text.split(",")
        try:
            numbers = [int(part) for part in parts]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise ValueError(
                f"{self.name}: the directive {text!r} is not understood; it is 'r', 'c', or up to "
                "three integers: 'axis', 'axis,rank' or 'axis,rank,place of the first dimension'"
            )
        axis, rank, start = (*numbers, *(self.axis, self.rank, self.start)[len(numbers) :])
        if len(numbers) == 3 and not -rank <= start < rank:
            raise ValueError(
                f"{self.name}: the place {start} of the first dimension is out of bounds for the "
                f"rank {rank}; it must be from {-rank} to {rank - 1}"
            )
        return axis, rank, start

    def _part(self, entry: Any, rank: int, start: int) -> Any:
        if isinstance(entry, str):
            raise ValueError(f"{self.name}: a directive such as {entry!r} stands first")
        if isinstance(entry, slice):
            part = _numbers(self.name, entry)
        else:
            part = array(entry) if isinstance(entry, list) else operand(entry, self.name, "entry")
        part_shape = aval_of(part).shape
        added = max(rank - len(part_shape), 0)
        # The number of new dimensions of size one in front.
        place = min(start if start >= 0 else max(added + 1 + start, 0), added)
        return reshaped(part, (1,) * place + part_shape + (1,) * (added - place))


class _RowJoining(_Joining):
    """Join arrays, numbers and slices along the first dimension: ``r_[0:3, 7]``.

    A slice stands for numbers, as in `mgrid`. A text in front changes how arrays are joined: it
    gives the dimension; after a comma, the minimum rank of the result; after another comma, the
    position at which the dimensions of an array of lower rank start. "r" and "c" turn a vector
    result into a matrix of one row or column.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.r_[jnp.array([5, 6]), 0, 1:4])
        [5 6 0 1 2 3]
        >>> print(jnp.r_["0,2", jnp.array([1, 2]), jnp.array([3, 4])])
        [[1 2]
         [3 4]]
    """


class _ColumnJoining(_Joining):
    """Join vectors as the columns of a matrix, and matrices side by side: ``c_[x, y]``.

    The same as `r_` with the text "-1,2,0" in front.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])])
        [[1 3]
         [2 4]]
    """


@bounded
class _IndexExpression:
    """Build an index for later use from brackets: ``x[s_[1:3]]`` is ``x[1:3]``.

    `index_exp` always gives a tuple, `s_` only if there is a comma.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.s_[1:3], jnp.index_exp[1:3]
        (slice(1, 3, None), (slice(1, 3, None),))
    """

    __slots__ = ("as_tuple",)

    def __init__(self, as_tuple: bool) -> None:
        self.as_tuple = as_tuple

    def __getitem__(self, key: Any) -> Any:
        return (key,) if self.as_tuple and not isinstance(key, tuple) else key

    def __repr__(self) -> str:
        return "index_exp" if self.as_tuple else "s_"


mgrid: Final = _DenseGrid()
ogrid: Final = _OpenGrid()
r_: Final = _RowJoining("r_", 0, 1, -1)
c_: Final = _ColumnJoining("c_", -1, 2, 0)
s_: Final = _IndexExpression(as_tuple=False)
index_exp: Final = _IndexExpression(as_tuple=True)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Build indices that select a grid: ``x[ix_(rows, columns)]``.

    Args:
        *args: a vector of positions for each dimension, or a boolean mask, which must not be
            traced. Vectors of other numbers span a mesh.

    Returns:
        A tuple of as many arrays, each of size one along all dimensions but its own.

    Raises:
        ValueError: an argument is not a vector.
        ConcretizationTypeError: it holds booleans and is traced.

    Differs:
        Masks are taken.

        >>> print(*jnp.ix_(np.array([True, False, True])))
        [0 2]

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.arange(12).reshape(3, 4)
        >>> print(x[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 3]))])
        [[ 1  3]
         [ 9 11]]
    """
    results = []
    for number, given in enumerate(args):
        x = operand(given, "ix_", f"args[{number}]")
        if aval_of(x).ndim != 1:
            raise ValueError(
                f"ix_ takes vectors, got shape {aval_of(x).shape} for args[{number}]; write "
                "jnp.ravel(x)"
            )
        if not aval_of(x).size:
            x = array([], dtypes.default_dtype("i"))
        if dtypes.kind_of(aval_of(x).dtype) == "b":
            (x,) = nonzero(x)
        shape = tuple(aval_of(x).size if d == number else 1 for d in range(len(args)))
        results.append(reshaped(x, shape))
    return tuple(results)


def mask_indices(
    n: int, mask_func: Callable[[Any, int], Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """The indices of the elements of a square matrix that a function such as `triu` keeps.

    Args:
        n: number of rows and of columns.
        mask_func: called with a matrix of ones and `k`; nonzero elements are kept.
        k: passed to `mask_func`.
        size: number of indices to return, padded with 0; required while tracing.

    Returns:
        Two integer vectors: rows and columns.

    Raises:
        ConcretizationTypeError: the mask is traced and `size` is not given.

    Example:
        >>> import dovetail.numpy as jnp
        >>> rows, columns = jnp.mask_indices(3, jnp.triu, 1)
        >>> print(rows, columns)
        [0 0 1] [1 2 2]
    """
    count = integer("mask_indices", "n", n)
    require_callable("mask_indices", "mask_func", mask_func)
    rows, columns = nonzero(mask_func(ones((count, count), int), k), size=size)
    return rows, columns
