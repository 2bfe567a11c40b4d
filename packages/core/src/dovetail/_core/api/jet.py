"""Taylor series: `jet`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.basis.elementwise import convert_element_type, mul_p
from dovetail._core.basis.operands import as_operand, as_result, literal_like
from dovetail._core.basis.structural import broadcast_to
from dovetail._core.ir.avals import aval_of, is_array_like, shape_of
from dovetail._core.ops.elementwise.arithmetic import div_p
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.flattening import (
    FlatFunction,
    check_array_leaves,
    check_callable,
    leaf_names,
    name_of,
)
from dovetail._core.transform.taylor import taylor_flat


def jet(
    fun: Callable[..., Any],
    primals: Any,
    series: Any,
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """The Taylor series of a function along a curve: derivatives of every order at once.

    The arguments move along curves ``x(t)``, described by their value and derivatives at t = 0.
    `jet` returns the value and the same number of derivatives of ``fun(x(t))``. The first
    derivative is that of `jvp`. The work for the k-th grows with the square of k; with nested
    `jvp`, it would double with each order.

    Args:
        fun: function of arrays and pytrees of them.
        primals: tuple or list of the arguments ``x(0)``.
        series: for each argument, the sequence of its derivatives, starting with the first. Each is
            an array with the shape and dtype of the argument, or a scalar for all elements. For a
            pytree argument: the same pytree with a sequence in place of each array. All sequences
            have the same length, the order of the result. For arguments that are not inexact, such
            as integers, the terms are zero or the sequence is empty.
        factorial_scaled: whether the terms of `series` and of the result are derivatives. If not,
            they are Taylor coefficients: the k-th derivative divided by ``k!``.

    Returns:
        ``(fun(*primals), terms)``, where `terms` has the structure of the result with a list of
        terms in place of each array.

    Raises:
        TypeError: `primals`, `series` and `fun` do not match, a term has another dtype, or `fun`
            calls a function that has no derivative in forward mode (`custom_vjp`).
        ValueError: the sequences have different lengths, or a term has another shape.

    Differs:
        Arguments may be trees, and every primitive with a jvp rule is passed, loops and
        `custom_jvp` included. Terms of another dtype or shape (but scalars) are refused.
        Results that are integers have float0 terms, as under `jvp`.

        >>> from dovetail.experimental.jet import jet
        >>> f = lambda d: lax.fori_loop(0, 2, lambda i, x: x * x, d["x"])
        >>> y, terms = jet(f, ({"x": 1.0},), ({"x": [1.0, 0.0]},))
        >>> print(y, *terms)
        1.0 4.0 12.0

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.experimental.jet import jet
        >>> value, terms = jet(lambda x: x * x * x, (2.0,), ([1.0, 0.0, 0.0],))
        >>> float(value), [float(term) for term in terms]
        (8.0, [12.0, 12.0, 6.0])
        >>> value, terms = jet(jnp.exp, (0.0,), ([1.0, 0.0],), factorial_scaled=False)
        >>> float(value), [float(term) for term in terms]
        (1.0, [1.0, 0.5])
    """
    check_callable(fun, "jet")
    for name, value in (("primals", primals), ("series", series)):
        if not isinstance(value, (tuple, list)):
            raise TypeError(
                f"{name} of jet must be a tuple or list with one element for each argument of the "
                f"function, got {type(value).__name__}: jet(f, (x,), ([x1, x2],))"
            )
    if len(primals) != len(series):
        raise TypeError(
            f"jet of {name_of(fun)}: {len(primals)} primals and {len(series)} series; each "
            "argument has one"
        )
    leaves, tree = pytree.flatten(tuple(primals))
    names = leaf_names(fun, tuple(primals))
    check_array_leaves(leaves, lambda: names, f"jet of {name_of(fun)}")
    try:
        sequences = pytree.flatten_up_to(tree, tuple(series))
    except ValueError as error:
        raise TypeError(
            f"series of jet of {name_of(fun)} must have the structure of primals, with a sequence "
            f"of terms in the place of each array: {error}"
        ) from None
    places = [f"{name} of {name_of(fun)}" for name in names]
    order = _order(leaves, sequences, places)
    terms = [
        [
            _term(primal, term, f"term {k} of the series of {place}", k if factorial_scaled else 1)
            for k, term in enumerate(_listed(sequence) or [Zero.of(primal)] * order, 1)
        ]
        for primal, sequence, place in zip(leaves, sequences, places, strict=True)
    ]
    flat = FlatFunction(fun, tree)
    outs, coefficients = taylor_flat(flat, leaves, terms, order)
    results = [
        [
            t if not factorial_scaled or type(t) is Zero else _with_factorial(mul_p, t, k)
            for k, t in enumerate(same, 1)
        ]
        for same in coefficients
    ]
    return (
        flat.out_tree.unflatten(map(as_result, outs)),
        flat.out_tree.unflatten([list(map(as_result, same)) for same in results]),
    )


def _listed(sequence: Any) -> list[Any] | None:
    """The terms of a sequence, or of an array along its first dimension; None for others."""
    if isinstance(sequence, (tuple, list)):
        return list(sequence)
    if is_array_like(sequence) and shape_of(sequence):
        return [sequence[k] for k in range(shape_of(sequence)[0])]
    return None


def _is_inexact(aval: Any) -> bool:
    return not dtypes.is_extended(aval.dtype) and dtypes.kind_of(aval.dtype) in ("f", "c")


def _order(leaves: Sequence[Any], sequences: Sequence[Any], places: Sequence[str]) -> int:
    lengths: dict[int, str] = {}
    for leaf, sequence, place in zip(leaves, sequences, places, strict=True):
        terms = _listed(sequence)
        if terms is None:
            raise TypeError(
                f"the series of {place} must be a sequence of terms, from the first derivative "
                f"on, got {sequence!r:.80} of type {type(sequence).__name__}: write [term] for one"
            )
        if terms or _is_inexact(aval_of(leaf)):
            lengths.setdefault(len(terms), place)
    if len(lengths) > 1:
        listed = ", ".join(f"that of {place} has {length}" for length, place in lengths.items())
        raise ValueError(
            f"all series given to jet must have the same number of terms: {listed}; add zeros"
        )
    return next(iter(lengths), 0)


def _term(primal: Any, term: Any, place: str, order: int) -> Any:
    """A term as a Taylor coefficient; `Zero` if it is known to vanish.

    Args:
        primal: the argument.
        term: its derivative of some order.
        place: a description of the term, for messages.
        order: the term is divided by the factorial of this.
    """
    if type(term) is Zero:
        return term
    aval = aval_of(primal).tangent()
    if not is_array_like(term):
        raise TypeError(f"{place} is {term!r:.80} of type {type(term).__name__}, not an array")
    actual = aval_of(term)
    on_host = isinstance(term, (bool, int, float, complex, np.ndarray, np.generic))
    vanishes = actual.dtype == dtypes.float0 or (on_host and not np.any(term))
    if actual.shape not in ((), aval.shape):
        raise ValueError(f"{place} has the shape {actual.shape}, the argument {aval.shape}")
    if aval.dtype == dtypes.float0:
        if not vanishes:
            raise TypeError(
                f"{place} is {term!r:.80}, and the argument has dtype {aval_of(primal).dtype}, so "
                "that it cannot move: give no terms, [], or convert the argument to a float"
            )
        return Zero(aval)
    if actual.dtype != aval.dtype:
        kinds = "biufc"
        weak = actual.weak_type or (on_host and not isinstance(term, (np.ndarray, np.generic)))
        if not weak or kinds.find(dtypes.kind_of(actual.dtype)) > kinds.find(
            dtypes.kind_of(aval.dtype)
        ):
            raise TypeError(
                f"{place} has the dtype {actual.dtype}, the argument {aval.dtype}: convert it, for "
                f"example with .astype({str(aval.dtype)!r})"
            )
        term = convert_element_type(as_operand(term, "jet"), aval.dtype, aval.weak_type)
    if vanishes:
        return Zero(aval)
    term = broadcast_to(as_operand(term, "jet"), aval.shape)
    return _with_factorial(div_p, term, order)


def _with_factorial(operation: Primitive, term: Any, order: int) -> Any:
    """A term multiplied or divided by a factorial, in factors that its dtype can represent."""
    largest = float(dtypes.finfo(aval_of(term).dtype).max)
    factor = 1
    for number in range(2, order + 1):
        if factor * number > largest:
            term = operation.bind(term, literal_like(factor, term))
            factor = 1
        factor *= number
    return term if factor == 1 else operation.bind(term, literal_like(factor, term))
