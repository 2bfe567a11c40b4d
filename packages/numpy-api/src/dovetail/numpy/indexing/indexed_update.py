"""Updated copies of arrays: ``x.at[index].set(values)`` and related methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, Protocol, cast

import numpy as np
from dovetail.extend.arguments import placed, undivided
from dovetail.extend.avals import ArrayClass, shape_of
from dovetail.extend.indexing import scatter_numbers
from dovetail.extend.tracebacks import boundary, bounded
from dovetail.extend.unchecked import add_dimensions, squeeze_dimensions
from dovetail.lax import GatherScatterMode, scatter_apply
from dovetail.numpy.indexing.parsing import parse
from dovetail.numpy.indexing.plan import Plan
from dovetail.numpy.indexing.reading import check, get
from dovetail.numpy.indexing.scattering import update
from dovetail.typing import Array, ArrayLike, Sharding


def at(x: Any) -> IndexUpdateHelper:
    """Updated copies of an array, in which an indexed part changes: the property `x.at`.

    Arrays cannot be written to; ``x.at[index].set(y)`` returns the array that ``x[index] = y``
    would turn `x` into. Inside a compiled function no copy is made if the old array is no longer
    used.

    ==============================  ==================================
    expression                      the same for a NumPy array
    ==============================  ==================================
    ``x.at[i].set(y)``              ``x[i] = y``
    ``x.at[i].add(y)``              ``numpy.add.at(x, i, y)``
    ``x.at[i].subtract(y)``         ``numpy.subtract.at(x, i, y)``
    ``x.at[i].multiply(y)``         ``numpy.multiply.at(x, i, y)``
    ``x.at[i].divide(y)``           ``numpy.divide.at(x, i, y)``
    ``x.at[i].power(y)``            ``numpy.power.at(x, i, y)``
    ``x.at[i].min(y)``              ``numpy.minimum.at(x, i, y)``
    ``x.at[i].max(y)``              ``numpy.maximum.at(x, i, y)``
    ``x.at[i].apply(f)``            ``f.at(x, i)``
    ``x.at[i].get()``               ``x[i]``
    ==============================  ==================================

    An element that is indexed several times is combined with all of its updates; `set` gives it one
    of its values.

    All methods take the keyword arguments

    - `mode`: what to do with positions out of bounds. ``"drop"`` (also ``"fill"``; the default of
      updates) drops the update, and `get` returns `fill_value`; ``"clip"`` takes the nearest
      position in bounds; ``"promise_in_bounds"`` (the default of `get`) promises that there are
      none. With the option ``index_mode="raise"`` they are errors unless a mode is given.
    - `indices_are_sorted`, `unique_indices`: promises about arrays in the index, which may make the
      program faster; if they are broken, the result is undefined.
    - `wrap_negative_indices`: whether negative positions count from the end; True by default.
      Otherwise they are out of bounds.

    Args:
        x: array.

    Returns:
        An object to index.

    Differs:
        Of integers, ``x.at[i].divide(y)`` and ``x.at[i].power(y)`` have the dtype of ``x / y`` and
        ``x ** y``, where JAX drops the fraction of `y`. All other updates keep the dtype of `x`.

        >>> print(jnp.array([4, 9]).at[0].power(0.5))
        [2. 9.]

        A position that does not fit 32 bits is out of bounds like any other, and never cut to
        32 bits. A mode is checked also where the index needs none.

        >>> print(jnp.zeros(2).at[2**32].set(1.0))
        [0. 0.]
        >>> jnp.zeros(2).at[:].set(1.0, mode="typo")
        Traceback (most recent call last):
            ...
        ValueError: unknown mode 'typo' for indices out of bounds: it must be one of ...

        A position in a dimension without elements is out of bounds, as in NumPy, also where the
        result has no elements.

        >>> jnp.zeros((0, 2))[3, np.array([], int)]
        Traceback (most recent call last):
            ...
        IndexError: index is out of bounds for axis 0 with size 0 ...

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.zeros(4)
        >>> print(x.at[1].set(5.0), x.at[jnp.array([0, 0])].add(1.0), x.at[9].set(7.0))
        [0. 5. 0. 0.] [2. 0. 0. 0.] [0. 0. 0. 0.]
    """
    return IndexUpdateHelper(x)


_STRATEGIES: Final = ("auto", "gather", "dynamic_slice", "static_slice")


def _check_strategy(strategy: Any, index: Any) -> None:
    """Raise for an index that does not have the requested form.

    Raises:
        TypeError: it does not have the form.
        ValueError: there is no such form.
    """
    if strategy not in _STRATEGIES:
        raise ValueError(
            f"x.at[...].get: strategy must be one of {', '.join(_STRATEGIES)}, got {strategy!r}"
        )
    if strategy == "gather":
        return
    static = (int, np.integer, slice, type(None), type(Ellipsis))
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, static) and not isinstance(item, bool):
            continue
        if strategy == "static_slice" or not isinstance(item, ArrayClass) or item.aval.shape:
            raise TypeError(
                f"x.at[...].get: the index holds {item!r:.80}, which strategy={strategy!r} does "
                "not allow; leave strategy out"
            )


@bounded
class IndexUpdateHelper:
    """The object to index that `x.at` returns."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __call__(self, *args: Any) -> NoReturn:
        raise TypeError("x.at is indexed, not called: write x.at[index].set(y)")

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            "arrays are immutable, so that x.at[index] = y is no assignment: write "
            "x = x.at[index].set(y)"
        )

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(IndexUpdateRef, name) and not name.startswith("_"):
            raise AttributeError(f"x.at.{name} lacks an index: write x.at[index].{name}(...)")
        raise AttributeError(f"x.at has no attribute {name!r}; it is to be indexed: x.at[index]")

    def __repr__(self) -> str:
        return f"IndexUpdateHelper({self.array!r})"


class Combining(Protocol):
    """The type of a bound method of `IndexUpdateRef` that combines values with the indexed part."""

    def __call__(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...


_TAKES_ALL: Final = "An element that is indexed several times takes all of its updates."


def _combining(
    name: str, what: str, example: str, result: str, *, several: str = _TAKES_ALL
) -> Combining:
    """A method of `IndexUpdateRef` that combines values with the indexed part.

    Args:
        name: its name.
        what: the phrase that describes the update in the docstring.
        example: an expression with a call of the method.
        result: the value of this expression, as printed.
        several: what happens to elements that are indexed several times.
    """
    shown = f"x.at[...].{name}"

    def method(
        self: IndexUpdateRef,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        array = self.array if out_sharding is None else undivided(self.array)
        result = update(
            array, self.index, values, name, mode, indices_are_sorted, unique_indices,
            wrap_negative_indices,
        )  # fmt: skip
        return placed(shown, result, out_sharding)

    method.__name__ = name
    method.__qualname__ = f"IndexUpdateRef.{name}"
    method.__doc__ = f"""The array with {what}.

    {several}

    Args:
        values: array or scalar that broadcasts to ``x[index]``.
        indices_are_sorted: see `at`.
        unique_indices: see `at`.
        mode: see `at`.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`; the array is made whole before.
        wrap_negative_indices: see `at`.

    Returns:
        The updated array.

    Raises:
        IndexError: as for ``x[index]``.
        TypeError: as for ``x[index]``; or `values` is no array.
        ValueError: `values` does not broadcast to ``x[index]``, or `mode` names no mode.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print({example})
        {result}
    """
    return cast("Combining", boundary(method))


@bounded
class IndexUpdateRef:
    """A part of an array, `x.at[index]`, with methods that return updated copies of the array.

    The common arguments of the methods are described at `at`.

    Attributes:
        array: the array.
        index: the index.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"IndexUpdateRef({self.array!r}, {self.index!r})"

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            "x.at[index] is not called itself: write x.at[index].set(y), x.at[index].add(y), ..."
        )

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        fill_value: ArrayLike | None = None,
        out_sharding: Sharding | None = None,
        wrap_negative_indices: bool = True,
        strategy: str = "auto",
    ) -> Array:
        """Get the indexed part, like ``x[index]``, with a choice of out-of-bounds behaviour.

        Args:
            indices_are_sorted: see `at`.
            unique_indices: see `at`.
            mode: see `at`.
            fill_value: a Python or NumPy scalar for positions out of bounds, in the mode
                ``"fill"``. By default NaN, the smallest signed or the largest unsigned integer, or
                True.
            out_sharding: how the result is divided over devices: a `PartitionSpec` over the
                current mesh, or a `NamedSharding`; the array is made whole before.
            wrap_negative_indices: see `at`.
            strategy: form that the index must have: "static_slice" for integers and slices,
                "dynamic_slice" for traced integers, too, "auto" and "gather" for any. It affects
                neither the result nor the program, which depends only on the index.

        Returns:
            An array.

        Raises:
            IndexError: as for ``x[index]``.
            TypeError: as for ``x[index]``; `fill_value` is not a scalar; or the index does not have
                the form that `strategy` requires.
            ValueError: `mode` or `strategy` is not a valid name.

        Example:
            >>> import dovetail.numpy as jnp
            >>> print(jnp.arange(3.0).at[jnp.array([2, 5])].get(mode="fill", fill_value=-1))
            [ 2. -1.]
        """
        if strategy != "auto":
            _check_strategy(strategy, self.index)
        result = get(
            self.array if out_sharding is None else undivided(self.array),
            self.index,
            mode=mode,
            fill_value=fill_value,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            wrap_negative_indices=wrap_negative_indices,
        )
        return placed("x.at[...].get", result, out_sharding)

    set = _combining(
        "set",
        "the indexed part replaced",
        "jnp.arange(4).at[1:3].set(9)",
        "[0 9 9 3]",
        several="An element that is indexed several times becomes one of them; on CPU the last.",
    )
    add = _combining(
        "add",
        "values added to the indexed part",
        "jnp.arange(4).at[jnp.array([1, 1])].add(10)",
        "[ 0 21  2  3]",
    )
    subtract = _combining(
        "subtract",
        "values subtracted from the indexed part",
        "jnp.arange(4).at[jnp.array([1, 1])].subtract(10)",
        "[  0 -19   2   3]",
    )
    multiply = mul = _combining(
        "multiply",
        "the indexed part multiplied by values",
        "jnp.arange(4).at[jnp.array([1, 1])].multiply(10)",
        "[  0 100   2   3]",
    )
    divide = _combining(
        "divide",
        "the indexed part divided by values",
        "jnp.arange(4.0).at[1:].divide(2)",
        "[0.  0.5 1.  1.5]",
        several=f"{_TAKES_ALL}\n    An array of integers becomes one of floats, as with ``/``.",
    )
    power = _combining(
        "power",
        "the indexed part raised to the power of values",
        "jnp.arange(4.0).at[2:].power(2)",
        "[0. 1. 4. 9.]",
    )
    min = _combining(
        "min",
        "the indexed part replaced by smaller values",
        "jnp.arange(4).at[1:].min(2)",
        "[0 1 2 2]",
    )
    max = _combining(
        "max",
        "the indexed part replaced by larger values",
        "jnp.arange(4).at[1:].max(2)",
        "[0 2 2 3]",
    )

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Apply a function to the indexed part, in a copy of the array.

        To an element that is indexed several times, the function is applied that many times.

        Args:
            func: from a scalar to a scalar of the same dtype. It may capture scalars whose values
                are known, and no other arrays.
            indices_are_sorted: see `at`.
            unique_indices: see `at`; needed for derivatives where the index holds arrays.
            mode: see `at`.
            wrap_negative_indices: see `at`.

        Returns:
            An array of the same shape and dtype.

        Raises:
            IndexError: as for ``x[index]``.
            TypeError: as for ``x[index]``; or `func` captures a traced value or an array, or does
                not return a scalar of the dtype.
            ValueError: `mode` is not a valid name.

        Example:
            >>> import dovetail.numpy as jnp
            >>> print(jnp.arange(4.0).at[2:].apply(jnp.square))
            [0. 1. 4. 9.]
        """
        x = self.array
        index = parse(self.index, shape_of(x), wrap_negative_indices)
        check(index, shape_of(x), mode)
        plan = Plan(index, shape_of(x))
        if 0 in plan.out_shape:
            return x
        sizes = [n for d, n in enumerate(plan.out_shape) if d not in plan.new_dims]
        out = scatter_apply(
            add_dimensions(x, plan.fresh) if plan.fresh else x,
            plan.indices(),
            func,
            scatter_numbers(plan.numbers),
            update_shape=sizes,
            indices_are_sorted=indices_are_sorted or not index.arrays,
            unique_indices=unique_indices or not index.arrays,
            mode=mode,
        )
        return squeeze_dimensions(out, plan.fresh) if plan.fresh else out


def _refuse(name: str, method: str) -> None:
    @boundary
    def operator(self: IndexUpdateRef, other: Any) -> NoReturn:
        raise TypeError(
            f"x.at[index] is no array that an operator could be applied to: write "
            f"x = x.at[index].{method}(y) for an updated copy, or use x[index] in expressions"
        )

    setattr(IndexUpdateRef, name, operator)


for _name, _method in (
    ("add", "add"),
    ("sub", "subtract"),
    ("mul", "multiply"),
    ("truediv", "divide"),
    ("pow", "power"),
):
    for _side in ("", "i", "r"):
        _refuse(f"__{_side}{_name}__", _method)
