"""Higher-order functions, which map a function over elements, slices, axes or conditions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Final

import numpy as np
from dovetail import lax, vmap
from dovetail.extend.arguments import (
    array_like,
    broadcast_result,
    canonical_axis,
    convert,
    counted,
    literal,
    require_callable,
    value,
)
from dovetail.extend.avals import ArrayClass, aval_of, shape_of
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import spread, truth
from dovetail.numpy.creation import asarray
from dovetail.numpy.shapes import expand_dims, reshaped
from dovetail.tree_util import tree_leaves, tree_map
from dovetail.typing import Array, ArrayLike

Shape = tuple[int, ...]
Dimensions = tuple[str, ...]

_ARGUMENT: Final = r"\((?:\w+(?:,\w+)*,?)?\)"
_ARGUMENTS: Final = rf"{_ARGUMENT}(?:,{_ARGUMENT})*"


def _parsed(signature: str) -> tuple[list[Dimensions], list[Dimensions]]:
    """Names of dimensions of arguments and results.

    Raises:
        TypeError: the signature is not a string.
        ValueError: it is not a valid signature.
    """
    if not isinstance(signature, str):
        raise TypeError(
            f"vectorize requires signature to be a string, got {type(signature).__name__}"
        )
    text = re.sub(r"\s", "", signature)
    if not re.fullmatch(rf"{_ARGUMENTS}->{_ARGUMENTS}", text):
        raise ValueError(
            f"vectorize: {signature!r} is no signature; write the dimensions of each argument and "
            "result in parentheses, as in '(m,n),(n)->(m)'"
        )
    sides = [re.findall(_ARGUMENT, side) for side in text.split("->")]
    first, second = ([tuple(re.findall(r"\w+", one)) for one in side] for side in sides)
    return first, second


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """Turn a function of scalars, or of small arrays, into one that broadcasts.

    Differs from NumPy in that `pyfunc` is traced once, by `vmap`, instead of being called for each
    element.

    Args:
        pyfunc: function of arrays. Without a signature its arguments are scalars.
        excluded: numbers and names of arguments that are passed on unchanged. So are arguments that
            are None.
        signature: names of the dimensions that `pyfunc` takes and returns, as in
            ``"(m,n),(n)->(m)"``. Equal names stand for equal sizes, a number for itself. Excluded
            arguments are not in it; keyword arguments come last.

    Returns:
        The vectorised function. Dimensions before those of the signature broadcast, and come first
        in the results.

    Raises:
        TypeError: `excluded` holds anything but integers and strings; when called: the number of
            arguments or results differs from the signature.
        ValueError: `excluded` holds a negative number, or `signature` is invalid; when called:
            shapes do not broadcast, or do not match the signature.

    Differs:
        Arguments are mapped by name too, and results are held to the sizes in the signature,
        numbers included.

        >>> scale = jnp.vectorize(lambda x, by: x * by)
        >>> print(scale(jnp.arange(3), by=2))
        [0 2 4]

    Example:
        >>> import dovetail.numpy as jnp
        >>> clamp = jnp.vectorize(lambda x, y: jnp.where(x > y, x - y, x + y))
        >>> print(clamp(jnp.arange(4), 2))
        [2 3 4 1]
        >>> lengths = jnp.vectorize(lambda v: jnp.sqrt(v @ v), signature="(n)->()")
        >>> lengths(jnp.ones((2, 3, 4))).shape
        (2, 3)
    """
    require_callable("vectorize", "pyfunc", pyfunc)
    if isinstance(excluded, (int, str)):
        raise TypeError(
            f"vectorize requires excluded to be a set of numbers and names of arguments: write "
            f"excluded={{{excluded!r}}}"
        )
    left_out = frozenset(excluded)
    for entry in left_out:
        if not isinstance(entry, (int, str)):
            raise TypeError(
                f"vectorize requires excluded to hold numbers and names of arguments, got {entry!r}"
            )
        if isinstance(entry, int) and entry < 0:
            raise ValueError(
                f"vectorize: excluded holds {entry}; count arguments from the front, beginning "
                "with 0"
            )
    dimensions = None if signature is None else _parsed(signature)
    shown = str(getattr(pyfunc, "__name__", type(pyfunc).__name__))

    @functools.wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        places: list[int | str] = [
            *(i for i, x in enumerate(args) if i not in left_out and x is not None),
            *(name for name, x in kwargs.items() if name not in left_out and x is not None),
        ]
        values = [asarray(args[p] if isinstance(p, int) else kwargs[p]) for p in places]

        def function(*mapped: Any) -> Any:
            positional, named = list(args), dict(kwargs)
            for place, x in zip(places, mapped, strict=True):
                if isinstance(place, int):
                    positional[place] = x
                else:
                    named[place] = x
            return pyfunc(*positional, **named)

        return map_elements(function, shown, values, dimensions)

    return vectorized


def map_elements(
    function: Callable[..., Any],
    name: str,
    values: Sequence[Any],
    signature: tuple[list[Dimensions], list[Dimensions]] | None = None,
) -> Any:
    """Map a function over the dimensions of checked operands that are not in its signature.

    Args:
        function: function of arrays, positional.
        name: its name, for messages.
        values: the operands.
        signature: dimensions of arguments and results; None if all are scalars.
    """
    values = [value(x) for x in values]
    cores = [()] * len(values) if signature is None else signature[0]
    if len(cores) != len(values):
        raise TypeError(
            f"{name} got {counted(len(values), 'array')}, and its signature, "
            f"{_written(signature)}, has "
            f"{len(cores)}; arguments that are excluded or None do not count"
        )
    sizes: dict[str, int] = {}
    loops = []
    for i, (x, core) in enumerate(zip(values, cores, strict=True)):
        shape = shape_of(x)
        split = len(shape) - len(core)
        if split < 0:
            raise ValueError(
                f"{name}: argument {i} of shape {shape} lacks dimensions that its signature, "
                f"{_written(signature)}, asks for: ({','.join(core)})"
            )
        _match(f"argument {i} of {name}", core, shape[split:], sizes, signature)
        loops.append(shape[:split])
    common = broadcast_result(name, loops, explicit=True) if loops else ()

    def checked(*parts: Any) -> Any:
        results = function(*parts)
        if signature is not None:
            _check_results(name, results, dict(sizes), signature)
        return tree_map(asarray, results)

    mapped: Callable[..., Any] = checked
    rank = len(common)
    padded = [(1,) * (rank - len(loop)) + loop for loop in loops]
    for d in reversed(range(rank)):
        if common[d] != 1:
            mapped = vmap(mapped, in_axes=tuple(None if s[d] == 1 else 0 for s in padded))
    squeezed = [
        reshaped(x, tuple(n for n in loop if n != 1) + shape_of(x)[len(loop) :])
        for x, loop in zip(values, loops, strict=True)
    ]
    result = mapped(*squeezed)
    single = tuple(d for d, n in enumerate(common) if n == 1)
    return tree_map(lambda x: expand_dims(x, single), result) if single else result


def _written(signature: Any) -> str:
    sides = [",".join(f"({','.join(core)})" for core in side) for side in signature]
    return "->".join(sides)


def _match(
    what: str, core: Dimensions, shape: Shape, sizes: dict[str, int], signature: Any
) -> None:
    """Compare the dimensions of an argument or result with those of the signature."""
    for dimension, n in zip(core, shape, strict=True):
        expected = int(dimension) if dimension.isdecimal() else sizes.setdefault(dimension, n)
        if expected != n:
            raise ValueError(
                f"{what} has size {n} for the dimension {dimension} of the signature "
                f"{_written(signature)}, which is {expected}"
            )


def _check_results(name: str, found: Any, sizes: dict[str, int], signature: Any) -> None:
    cores = signature[1]
    several = isinstance(found, (tuple, list))
    if not several and len(cores) > 1:
        raise TypeError(
            f"{name} must return a tuple of {counted(len(cores), 'result')} by its signature, "
            f"{_written(signature)}, and returned a single value"
        )
    results = found if several else (found,)
    if len(results) != len(cores):
        raise TypeError(
            f"{name} must return as many results as its signature, {_written(signature)}, has: "
            f"{len(cores)}, not {len(results)}"
        )
    for i, (result, core) in enumerate(zip(results, cores, strict=True)):
        for leaf in tree_leaves(result):
            shape = np.shape(leaf) if not isinstance(leaf, ArrayClass) else shape_of(leaf)
            if len(shape) != len(core):
                raise ValueError(
                    f"result {i} of {name} has shape {shape}, and dimensions ({','.join(core)}) by "
                    f"its signature, {_written(signature)}"
                )
            _match(f"result {i} of {name}", core, shape, sizes, signature)


def piecewise(
    x: ArrayLike,
    condlist: ArrayLike | Sequence[ArrayLike],
    funclist: Sequence[Any],
    *args: Any,
    **kw: Any,
) -> Array:
    """Evaluate a piecewise-defined function.

    Differs from NumPy: functions are traced as functions of one element, and those not chosen for
    an element do not contribute to its derivative.

    Args:
        x: array or scalar.
        condlist: sequence of boolean arrays that broadcast with `x`, or an array of them along its
            first dimension. Where several hold, the last one wins.
        funclist: functions and scalars, one for each condition, and optionally one more for
            elements where none holds; by default these become 0.
        *args: passed to functions.
        **kw: passed to functions.

    Returns:
        An array of the dtype of `x`.

    Raises:
        ValueError: the number of functions is neither that of the conditions nor one more.

    Differs:
        Functions that are not chosen for an element have no part in its derivative.

        >>> def f(x):
        ...     return jnp.piecewise(x, [x > 0], [jnp.sqrt, lambda x: x])
        >>> print(dt.grad(f)(-1.0))
        1.0

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.arange(-2.0, 3.0)
        >>> print(jnp.piecewise(x, [x < 0, x > 0], [lambda v: -v, lambda v: v**2, 5]))
        [2. 1. 5. 1. 4.]
    """
    x = array_like(x, "piecewise")
    if isinstance(condlist, (list, tuple)):
        conditions: Any = [_as_array(condition) for condition in condlist]
    else:
        conditions = _as_array(condlist)
    several = isinstance(conditions, list) or shape_of(conditions)
    count = len(conditions) if several else 1
    if not isinstance(funclist, (list, tuple)):
        raise TypeError(
            "piecewise requires funclist to be a list of functions and scalars, got "
            f"{type(funclist).__name__}"
        )
    cases = list(funclist)
    if len(cases) not in (count, count + 1):
        raise ValueError(
            f"piecewise: with {counted(count, 'condition')} funclist must hold "
            f"{counted(count, 'function')}, or one more "
            f"for elements for which none holds, and it holds {len(cases)}"
        )
    if len(cases) == count:
        cases.append(0)
    functions = tuple([case if callable(case) else None for case in cases])
    numbers = [
        0 if callable(case) else value(array_like(case, "piecewise", f"funclist[{i}]"))
        for i, case in enumerate(cases)
    ]
    if args or kw or not all(isinstance(function, Hashable) for function in functions):
        return plain(_piecewise)(x, conditions, functions, numbers, *args, **kw)
    return _piecewise(value(x), conditions, functions, numbers)


def _as_array(x: Any) -> Any:
    return x if isinstance(x, (ArrayClass, np.ndarray)) else asarray(x)


@compiled_with("functions")
def _piecewise(
    x: Any, conditions: Any, functions: tuple[Any, ...], numbers: list[Any], *args: Any, **kw: Any
) -> Any:
    """`piecewise`, with numbers in place of functions that are None."""
    x = value(x)
    dtype = aval_of(x).dtype

    def branch(function: Any, number: Any) -> Callable[[Any], Any]:
        def run(element: Any) -> Any:
            result = number if function is None else function(element, *args, **kw)
            return convert(value(array_like(result, "piecewise", "funclist")), dtype)

        return run

    branches = [branch(*case) for case in zip(functions, numbers, strict=True)]
    branches.insert(0, branches.pop(len(functions) - 1))
    if not isinstance(conditions, list):
        conditions = list(conditions) if shape_of(conditions) else [conditions]
    which = value(literal(0, np.dtype("int32")))
    for number, condition in enumerate(conditions, start=1):
        shapes = (shape_of(which), shape_of(condition))
        common = broadcast_result("piecewise", shapes, explicit=True)
        chosen = spread(truth(value(condition)), common)
        numbered = spread(literal(number, which.dtype), common)
        which = lax.select(chosen, numbered, spread(which, common))
    return map_elements(
        lambda number, element: lax.switch(number, branches, element), "piecewise", [which, x]
    )


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Any:
    """Apply a function of vectors to all vectors along a dimension.

    Differs from NumPy in that the function is traced once, by `vmap`, instead of being called for
    each vector.

    Args:
        func1d: function of a vector, and of `args` and `kwargs`.
        axis: the dimension.
        arr: array with at least one dimension.
        *args: passed to `func1d`.
        **kwargs: passed to `func1d`.

    Returns:
        The results of `func1d`, with their dimensions in place of `axis`.

    Raises:
        ValueError: `axis` is out of bounds.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([[3, 1, 2], [9, 7, 8]])
        >>> print(jnp.apply_along_axis(lambda v: v[0] - v.min(), 1, x))
        [2 2]
    """
    require_callable("apply_along_axis", "func1d", func1d)
    x = value(array_like(arr, "apply_along_axis", "arr"))
    rank = len(shape_of(x))
    axis = canonical_axis("apply_along_axis", axis, rank)

    def mapped(vector: Any) -> Any:
        return tree_map(asarray, func1d(vector, *args, **kwargs))

    for _ in range(axis + 1, rank):
        mapped = vmap(mapped, in_axes=-1, out_axes=-1)
    for _ in range(axis):
        mapped = vmap(mapped)
    return mapped(x)


def apply_over_axes(
    func: Callable[[Any, int], Any], a: ArrayLike, axes: int | Sequence[int]
) -> Array:
    """Apply a function of an array and a dimension for one dimension after another.

    Args:
        func: function of an array and a dimension, such as `sum`. Its result has as many dimensions
            as its argument, or lacks the given one, which is then restored with size one.
        a: array.
        axes: dimension, or sequence of dimensions.

    Returns:
        An array with as many dimensions as `a`.

    Raises:
        ValueError: a dimension is out of bounds, or the result of `func` has the wrong number of
            dimensions.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.apply_over_axes(jnp.sum, jnp.arange(6).reshape(2, 3), [0, 1]))
        [[15]]
    """
    require_callable("apply_over_axes", "func", func)
    x = value(array_like(a, "apply_over_axes", "a"))
    rank = len(shape_of(x))
    several: Any = axes if isinstance(axes, (list, tuple)) or np.ndim(axes) else (axes,)
    for entry in several:
        axis = canonical_axis("apply_over_axes", entry, rank, "axes")
        reduced = asarray(func(x, axis))
        if len(shape_of(reduced)) == rank - 1:
            reduced = expand_dims(reduced, axis)
        if len(shape_of(reduced)) != rank:
            raise ValueError(
                f"apply_over_axes: func must return an array of {counted(rank, 'dimension')}, or "
                f"of {rank - 1}, for axis {axis}, and returned one of shape {shape_of(reduced)}"
            )
        x = reduced
    return x
