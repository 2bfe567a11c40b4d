"""Choosing elements by conditions, by number, and by bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from dovetail import lax
from dovetail.errors import ConcretizationTypeError, DTypeError, NonArrayArgumentError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    array_sequence,
    broadcast_ranks,
    broadcast_result,
    convert,
    literal,
    no_out,
    promoted_pair,
    require_kind,
    same_dtype,
    value,
)
from dovetail.extend.avals import ArrayClass, Tracer, aval_of
from dovetail.numpy.arithmetic import remainder
from dovetail.numpy.compiled import compiled, compiled_with, elementwise, plain
from dovetail.numpy.conditions import as_condition, pick, spread
from dovetail.numpy.nonzeros import shown_indices
from dovetail.numpy.shapes import operand
from dovetail.typing import Array, ArrayLike


@overload
def where(
    condition: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> tuple[Array, ...]: ...
@overload
def where(
    condition: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, ...]:
    """Choose elements of `x` where a condition holds, of `y` elsewhere; without them, `nonzero`.

    The gradient flows only to the chosen elements. But where the other branch has an infinite or
    undefined derivative, its product with zero is nan: make the argument of that branch safe with
    another `where`.

    Args:
        condition: boolean array; nonzero numbers count as true.
        x: array or scalar that broadcasts with the others.
        y: array or scalar that broadcasts with the others.
        size: number of positions to return if only the condition is given (required under jit).
        fill_value: index for missing positions if only the condition is given.

    Returns:
        An array of the common shape, and of the common dtype of `x` and `y`.

    Raises:
        ValueError: only one of `x` and `y` is given.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([-1., 4., -9.])
        >>> print(jnp.where(x > 0, x, 0))
        [0. 4. 0.]
        >>> print(jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0))
        [0. 2. 0.]
    """
    if x is None and y is None:
        return shown_indices("where", operand(condition, "where", "condition"), size, fill_value)
    if x is None or y is None:
        raise NonArrayArgumentError(
            "where takes either a condition alone, or both x and y; got None as "
            + ("x" if x is None else "y")
        )
    if size is not None or fill_value is not None:
        raise ValueError("where takes size and fill_value only with a condition alone")
    return _where(condition, x, y)


@elementwise
def _where(condition: Any, x: Any, y: Any) -> Any:
    return chosen(condition, x, y)


def chosen(condition: Any, x: Any, y: Any, function: str = "where") -> Any:
    """`where` of three arrays, for functions that are themselves compiled."""
    test = as_condition(function, condition)
    x, y = array_like(x, function, "x"), array_like(y, function, "y")
    x, y = same_dtype([x, y], function)
    # Only between the choices is a difference of ranks promotion.
    x, y = broadcast_ranks(function, [x, y])
    return pick(test, x, y, function)


@compiled
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: ArrayLike = 0) -> Array:
    """Choose elements from the first of several arrays whose condition holds.

    Args:
        condlist: boolean arrays; the first that holds wins.
        choicelist: as many arrays or scalars.
        default: value where no condition holds.

    Returns:
        An array of the common shape, and of the common dtype of the choices and the default.

    Raises:
        ValueError: the lists have different lengths, or are empty.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.arange(6)
        >>> print(jnp.select([x < 2, x > 3], [x, 10 * x], -1))
        [ 0  1 -1 -1 40 50]
    """
    condlist = array_sequence(condlist, "select", "condlist")
    choicelist = array_sequence(choicelist, "select", "choicelist")
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"select: there are {len(condlist)} conditions and {len(choicelist)} choices; "
            "one of each is needed"
        )
    if not condlist:
        raise ValueError("select needs at least one condition")
    conditions = [as_condition("select", c, f"condlist[{i}]") for i, c in enumerate(condlist)]
    default = array_like(default, "select", "default")
    *choices, result = same_dtype([*choicelist, default], "select")
    count = len(choices)
    ranked = broadcast_ranks("select", [*conditions, *choices, result])
    result = ranked[-1]
    for condition, choice in zip(reversed(ranked[:count]), reversed(ranked[count:-1]), strict=True):
        result = pick(condition, choice, result)
    return result


def choose(
    a: ArrayLike, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Choose elements from several arrays by array number.

    Args:
        a: integer array: for each element, the number of the array to choose from.
        choices: sequence of arrays, or an array of stacked ones; they broadcast with `a`.
        out: not supported, since arrays are immutable.
        mode: what to do with numbers out of bounds: "clip" takes the nearest one, "wrap" the number
            modulo the number of arrays; "raise" (the default) raises an error, and requires that
            `a` is not traced.

    Returns:
        An array of the common shape, and of the common dtype of the choices.

    Raises:
        ValueError: a number is out of bounds in the mode "raise", the mode is not one of these, or
            there are no choices.
        TypeError: the numbers are not integers.
        ConcretizationTypeError: `a` is traced, in the mode "raise".

    Example:
        >>> import dovetail.numpy as jnp
        >>> choices = [jnp.array([1, 2, 3]), jnp.array([10, 20, 30])]
        >>> print(jnp.choose(jnp.array([0, 1, 0]), choices))
        [ 1 20  3]
    """
    no_out("choose", out)
    numbers: Any = value(array_like(a, "choose", "a"))
    require_kind("choose", numbers, "iu", "integers")
    cases = array_sequence(choices, "choose", "choices")
    if not cases:
        raise ValueError("choose needs at least one array to choose from")
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"choose: mode must be 'raise', 'clip' or 'wrap', got {mode!r}")
    if mode == "raise":
        concrete = numbers.concrete() if isinstance(numbers, Tracer) else numbers
        if concrete is None:
            raise ConcretizationTypeError(
                numbers, "whether a number of choose is in bounds; give mode='clip' or mode='wrap'"
            )
        host = np.asarray(concrete)
        if host.size and (host.min() < 0 or host.max() >= len(cases)):
            raise ValueError(f"choose: a holds numbers that are not from 0 to {len(cases) - 1}")
    # Scalars are passed unchanged: as arrays they would be constants of the program.
    return _choose(numbers, choices if hasattr(choices, "shape") else list(choices), mode)  # type: ignore[arg-type]


@compiled_with("mode")
def _choose(numbers: Any, choices: Any, mode: str) -> Any:
    cases = array_sequence(choices, "choose", "choices")
    count = len(cases)
    if dtypes.itemsize_bits(aval_of(numbers).dtype) < 32:
        numbers = convert(numbers, np.dtype("int32"))
    if mode == "wrap":
        numbers = plain(remainder)(numbers, count)
    dtype = aval_of(numbers).dtype
    numbers = lax.clamp(literal(0, dtype), numbers, literal(count - 1, dtype))
    which = convert(numbers, np.dtype("int32"))
    values = [convert(v, aval_of(v).dtype) for v in same_dtype(cases, "choose")]
    shape = broadcast_result("choose", [aval_of(v).shape for v in (which, *values)])
    cases = [spread(v, shape) for v in values]
    return cases[0] if count == 1 else lax.select_n(spread(which, shape), *cases)


def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """Clip elements to an interval.

    Args:
        arr: array or scalar of a real dtype.
        min: lower bound: array or scalar that broadcasts, or None for no bound.
        max: upper bound, likewise; it wins where it is less than the lower bound.

    Returns:
        An array of the common shape and dtype. Where an element equals a bound, they share the
        gradient.

    Raises:
        OverflowError: elements would have to become a Python integer that their dtype cannot hold.
            A bound beyond the other end of the dtype has no effect.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.clip(jnp.arange(6), 1, 3))
        [1 1 2 3 3 3]
        >>> print(jnp.clip(jnp.array([-1., 5.]), min=0))
        [0. 5.]
    """
    if type(min) is int or type(max) is int:
        min, max = _bounds_within(arr, min, max)
    return _clip(arr, min, max)


def _bounds_within(x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """The bounds, without any that no integer of the array's dtype can exceed."""
    if isinstance(x, (ArrayClass, np.ndarray)) and dtypes.kind_of(x.dtype) in ("i", "u"):
        limits = dtypes.iinfo(x.dtype)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    return low, high


@compiled
def _clip(arr: Any, min: Any, max: Any) -> Any:
    result = array_like(arr, "clip", "arr")
    for bound, name, extreme in ((min, "min", lax.max_p), (max, "max", lax.min_p)):
        if bound is None:
            continue
        bound = array_like(bound, "clip", name)
        if (
            dtypes.kind_of(aval_of(result).dtype) == "c"
            or dtypes.kind_of(aval_of(bound).dtype) == "c"
        ):
            raise DTypeError(
                "clip takes no complex numbers: they have no order; clip x.real and x.imag"
            )
        result, bound = promoted_pair("clip", result, bound)
        result = extreme.bind(bound, result)
    return value(result)


@compiled
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replace nan and infinities by numbers.

    Args:
        x: array or scalar.
        copy: ignored, since arrays are immutable; accepted for compatibility with NumPy.
        nan: replacement for nan.
        posinf: replacement for infinity; None for the largest number of the dtype.
        neginf: replacement for minus infinity; None for the lowest number of the dtype.

    Returns:
        An array of the shape and dtype of `x`.

    Differs:
        An infinity in place of nan stays, as in NumPy. JAX replaces it, too.

        >>> print(jnp.nan_to_num(jnp.nan, nan=-jnp.inf))
        -inf

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nan_to_num(jnp.array([1., jnp.nan, jnp.inf]), posinf=9.))
        [1. 0. 9.]
    """
    x = array_like(x, "nan_to_num")
    dtype = aval_of(x).dtype
    kind = dtypes.kind_of(dtype)
    if kind == "c":
        parts = [
            plain(nan_to_num)(part, True, nan, posinf, neginf)
            for part in (lax.real(x), lax.imag(x))
        ]
        return lax.complex(*parts)
    if kind != "f":
        return value(x)
    limits = dtypes.finfo(dtype)

    def constant(given: Any, default: Any, name: str) -> Any:
        return convert(array_like(default if given is None else given, "nan_to_num", name), dtype)

    infinity = literal(float("inf"), dtype)
    replacements = (
        (lax.ne(x, x), constant(nan, 0.0, "nan")),
        (lax.eq(x, infinity), constant(posinf, float(limits.max), "posinf")),
        (lax.eq(x, lax.neg(infinity)), constant(neginf, float(limits.min), "neginf")),
    )
    result = x
    for test, replacement in replacements:
        result = pick(test, replacement, result)
    return result
