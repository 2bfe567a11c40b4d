"""`while_loop`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isqrt
from typing import Any, Literal, TypeVar, overload

import numpy as np

from dovetail._core.base import config, pytree
from dovetail._core.base.errors import ConcretizationTypeError
from dovetail._core.base.typing import Array, ArrayLike, PyTree
from dovetail._core.basis.operands import make_literal
from dovetail._core.ir.avals import aval_of
from dovetail._core.ops.control.bodies import Body, named, operands_of, stage_body, stage_loop
from dovetail._core.ops.control.partial_scan import COUNT
from dovetail._core.ops.control.while_loop import bind_while, run_while
from dovetail._core.ops.loops.bounded_while import run_bounded
from dovetail._core.ops.loops.progress import progress_of, staging
from dovetail._core.ops.shape.dimensions import integer
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.derived import with_order
from dovetail._core.transform.flattening import FlatFunction, check_callable, leaf_names

T = TypeVar("T")


@overload
def while_loop(
    cond_fun: Callable[[Array], ArrayLike],
    body_fun: Callable[[Array], ArrayLike],
    init_val: ArrayLike,
    *,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    progress: Literal["text"] | None = None,
) -> Array: ...
@overload
def while_loop(
    cond_fun: Callable[[T], ArrayLike],
    body_fun: Callable[[T], T],
    init_val: T,
    *,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    progress: Literal["text"] | None = None,
) -> T: ...
@overload
def while_loop(
    cond_fun: Callable[[Any], ArrayLike],
    body_fun: Callable[[Any], T],
    init_val: PyTree,
    *,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    progress: Literal["text"] | None = None,
) -> T: ...
def while_loop(
    cond_fun: Callable[[Any], ArrayLike],
    body_fun: Callable[[Any], Any],
    init_val: PyTree,
    *,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    progress: Literal["text"] | None = None,
) -> PyTree:
    """Call a function as long as a condition holds.

    Both functions are traced once, and the loop is one operation of the compiled program: compile
    time does not grow with the number of iterations. The loop has derivatives in forward mode
    (`jvp`, `jacfwd`). With `max_steps` it has them in both modes and of every order, and time is
    that of the iterations that there are, however large the bound. What `body_fun` returns as it
    got it is a constant, which has gradients in any case.

    For a gradient, a loop of at most N iterations keeps the carry at `checkpoints` points that are
    equally far apart, K of them. Memory for K carries is set aside, and for those of the N/K
    iterations of one segment; each iteration is computed twice, and once more backwards, whatever K
    is. With ``checkpoints=max_steps`` that is N carries; by default K is about the square root of
    N, which is 2 √N carries.

    Args:
        cond_fun: maps the carry to a scalar bool.
        body_fun: maps the carry to the new carry, a tree of arrays with the same structure, shapes
            and dtypes.
        init_val: the initial carry, a tree of arrays. A Python number in it takes the dtype that
            `body_fun` returns.
        max_steps: the largest number of iterations, a positive integer; None if there is none, and
            no gradient.
        checkpoints: how many carries are kept for a gradient of a loop with `max_steps`, a positive
            integer; about its square root if None.
        progress: "text" to show on the standard error how many iterations there were, as `scan`
            does; of a batch, those of the element that has most.

    Returns:
        The first carry for which the condition is false, or that after `max_steps` iterations.
        Which of these it is, ``cond_fun`` of the result tells: it holds where the bound ended the
        loop.

    Raises:
        TypeError: `body_fun` returns another type than that of `init_val`, or `cond_fun` does not
            return a scalar bool; `max_steps` or `checkpoints` is no integer.
        ValueError: one of these is not positive, `checkpoints` is given without `max_steps`, or
            `progress` is another string.

    Differs:
        All results are arrays; JAX returns a number that the body passes through as it is.

        >>> total, flag = lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1]), (0, True))
        >>> print(flag.dtype)
        bool

        ``max_steps=`` and ``checkpoints=`` are ours: JAX has no loop with a condition that has
        gradients.

        >>> root = lambda a: lax.while_loop(
        ...     lambda x: abs(x * x - a) > 1e-3, lambda x: (x + a / x) / 2, a, max_steps=50)
        >>> print(dt.grad(root)(4.0).round(3))
        0.25

    Example:
        >>> from dovetail import lax
        >>> int(lax.while_loop(lambda n: n < 1000, lambda n: 2 * n, 1))
        1024
    """
    check_callable(cond_fun, "lax.while_loop")
    check_callable(body_fun, "lax.while_loop")
    bind = _bound(max_steps, checkpoints)
    shown = progress_of(progress, "lax.while_loop", body_fun, is_bound=True)
    total = -1 if max_steps is None else max_steps
    if config.disable_jit.value:
        call = body_fun if shown is None else shown.calling(body_fun, total)
        try:
            value: Any = init_val
            steps = 0
            while steps != total and cond_fun(value):
                value = call(value)
                steps += 1
        except ConcretizationTypeError:
            pass  # whether the condition holds is not known here
        else:
            if shown is not None and steps != total:
                replace(shown, is_last=True)(steps, total)
            return value
    carry = operands_of(init_val, "lax.while_loop", "init_val")
    arguments = pytree.structure((init_val,))
    names = leaf_names(body_fun, (init_val,))
    flat, condition_flat = FlatFunction(body_fun, arguments), FlatFunction(cond_fun, arguments)
    own: list[Any] = []
    kind: str | None = None
    turn: Callable[..., list[Any]] | None = None
    if shown is not None:
        own, names = [make_literal(0, COUNT)], ("the number of turns so far", *names)
        kind, turn = f"{shown.kind}, {total}", shown.counting(flat, total)
    with staging(shown):
        carry, body = stage_loop(
            "lax.while_loop", flat, names, carry, own=own, turn=turn, kind=kind
        )
    condition = stage_body(
        "lax.while_loop", condition_flat, carry.avals, leaf_names(cond_fun, (init_val,))
    )
    _check_condition(cond_fun, condition)
    if shown is not None:
        first = len(condition.closed.in_avals) - len(carry.leaves)
        numbers = [*range(first), aval_of(own[0]), *range(first, first + len(carry.leaves))]
        condition = condition._replace(closed=with_order(condition.closed, numbers))
    outs = run_while(condition, body, [*own, *carry.leaves], bind)
    if shown is not None:
        shown.end(outs[0])
    return pytree.unflatten(carry.tree, outs[len(own) :])


def _bound(max_steps: Any, checkpoints: Any) -> Callable[..., list[Any]]:
    """What binds a loop with the bound that a user gave."""
    if max_steps is None:
        if checkpoints is not None:
            raise ValueError(
                f"lax.while_loop: checkpoints={checkpoints!r:.80} says what a loop with max_steps "
                "keeps for its gradient; give max_steps, the largest number of iterations, too"
            )
        return bind_while
    most = _positive(max_steps, "max_steps")
    kept = isqrt(most - 1) + 1 if checkpoints is None else _positive(checkpoints, "checkpoints")
    return run_bounded(most, -(-most // min(kept, most)))


def _positive(value: Any, name: str) -> int:
    if isinstance(value, Tracer):
        raise ConcretizationTypeError(
            value,
            f"the argument {name} of lax.while_loop; a bound known only at run time belongs "
            "into cond_fun",
        )
    number = None if isinstance(value, (bool, np.bool_)) else integer(value, "while_loop", name)
    if number is None or not 0 < number <= 2**30:
        raise ValueError(
            f"lax.while_loop: {name} must be a positive integer up to 2**30, got {value!r:.80}"
        )
    return number


def _check_condition(cond_fun: Callable[..., Any], condition: Body) -> None:
    if condition.changed:
        raise ValueError(
            f"lax.while_loop: {named(cond_fun)} writes to {condition.changed[0].described()}; a "
            "condition may read references, and body_fun may write to them"
        )
    outs = condition.out_avals
    if (
        pytree.treedef_is_leaf(condition.out_tree)
        and not outs[0].shape
        and outs[0].dtype == np.dtype(bool)
    ):
        return
    actual = ", ".join(a.short_name() for a in outs) or "nothing"
    if not pytree.treedef_is_leaf(condition.out_tree):
        actual = f"{condition.out_tree} of {actual}"
    raise TypeError(
        f"lax.while_loop: {named(cond_fun)} must return a scalar bool, got {actual}; write a "
        "comparison, and combine several with .all() or .any()"
    )
