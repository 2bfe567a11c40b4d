"""`custom_gradient` and `closure_convert`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.flags import merge, partition
from dovetail._core.base.typing import Array, PyTree
from dovetail._core.base.wrapping import wraps
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr
from dovetail._core.ir.walk import eval_jaxpr
from dovetail._core.ops.custom.arguments import described, path_of
from dovetail._core.ops.custom.custom_vjp import custom_vjp
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.flattening import (
    FlatFunction,
    abstract_leaves,
    check_callable,
    debug_info,
)
from dovetail._core.transform.stage import stage

P = ParamSpec("P")
R = TypeVar("R")


@overload
def custom_gradient(
    fun: Callable[P, tuple[R, Any]],
    *,
    with_logs: bool = False,
    remat: bool = False,
    with_accums: None = None,
) -> Callable[P, R]: ...
@overload
def custom_gradient(
    fun: None = None, *, with_logs: bool = False, remat: bool = False, with_accums: None = None
) -> Callable[[Callable[P, tuple[R, Any]]], Callable[P, R]]: ...
def custom_gradient(
    fun: Callable[..., Any] | None = None,
    *,
    with_logs: bool = False,
    remat: bool = False,
    with_accums: None = None,
) -> Callable[..., Any]:
    """Define a function by its result together with its backward pass.

    The backward pass may use any intermediate value of the function. `custom_vjp`, which separates
    the two, can do more.

    Args:
        fun: returns a pair: the result, and a function from a cotangent with its structure to a
            tuple of the cotangents of the arguments; for a single argument, the tuple may be left
            out. Without `fun`, a decorator is returned.
        with_logs: accepted for compatibility; must be False.
        remat: accepted for compatibility; must be False.
        with_accums: accepted for compatibility; must be None.

    Returns:
        A function of the same arguments that returns the result. It cannot be differentiated in
        forward mode.

    Raises:
        NotImplementedError: an option does not have its default.
        TypeError: when called: `fun` does not return such a pair, or the backward pass such a
            tuple.

    Differs:
        The function takes keyword arguments.

        >>> @dt.custom_gradient
        ... def scaled(x, by):
        ...     return x * by, lambda ct: (ct * by, None)
        >>> print(dt.grad(lambda x: scaled(x, by=2.0))(1.0))
        2.0

    Example:
        >>> import dovetail as dt
        >>> @dt.custom_gradient
        ... def f(x):
        ...     return x**2, lambda ct: (ct * x,)
        >>> float(f(3.0)), float(dt.grad(f)(3.0))
        (9.0, 3.0)
    """
    for name, option in (("with_logs", with_logs), ("remat", remat)):
        if option:
            raise NotImplementedError(f"custom_gradient: {name} must be False")
    if with_accums is not None:
        raise NotImplementedError("custom_gradient: with_accums must be None")
    if fun is None:
        return custom_gradient
    check_callable(fun, "custom_gradient")

    def pair(args: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
        found = fun(*args)
        if not isinstance(found, tuple) or len(found) != 2 or not callable(found[1]):
            raise TypeError(
                f"custom_gradient: {described(fun)} must return a pair (result, function from its "
                f"cotangent to those of the arguments), got {type(found).__name__}"
                + (f" of length {len(found)}" if isinstance(found, tuple) else "")
            )
        return found

    @wraps(fun)
    def function(*args: Any) -> Any:
        return pair(args)[0]

    def fwd(*args: Any) -> tuple[Any, Any]:
        result, rule = pair(args)
        leaves = pytree.leaves(result)
        avals = [aval_of(leaf).tangent() for leaf in leaves]
        flat = FlatFunction(lambda ct: _as_tuple(rule(ct), len(args)), pytree.structure((result,)))
        closed = stage(flat, avals, debug_info("custom_gradient", rule))
        residuals = pytree.Partial(_Pull(closed, flat.out_tree), *closed.consts)
        return result, residuals

    def bwd(pull: Any, cotangent: Any) -> Any:
        return pull(cotangent)

    # Messages about the backward pass name the place of the function.
    bwd.__wrapped__ = fun  # type: ignore[attr-defined]
    with_rules: custom_vjp[..., Any] = custom_vjp(function)
    with_rules.defvjp(fwd, bwd)
    return with_rules


class _Pull:
    """A staged backward pass, whose constants are residuals."""

    def __init__(self, closed: ClosedJaxpr, out_tree: Any) -> None:
        self.closed = closed
        self.out_tree = out_tree

    def __call__(self, *args: Any) -> Any:
        *constants, cotangent = args
        outs = eval_jaxpr(self.closed.jaxpr, constants, *pytree.leaves(cotangent))
        return self.out_tree.unflatten(outs)


def _as_tuple(cotangents: Any, count: int) -> Any:
    return (cotangents,) if count == 1 and not isinstance(cotangents, (tuple, list)) else cotangents


def closure_convert(
    fun: Callable[..., R], *example_args: PyTree
) -> tuple[Callable[..., R], list[Array]]:
    """Turn the traced values that a function captures into arguments.

    A function with a custom derivative rule, such as that of `custom_vjp`, must get all
    differentiated values as arguments. If it takes another function as argument, this makes
    arguments of the values captured by that.

    Args:
        fun: a function of arrays and trees of them. It is traced once.
        *example_args: arguments with the structure, shapes and dtypes of those it will be called
            with; anything that has a shape and a dtype will do for an array.

    Returns:
        The function, which takes the captured values after its own arguments, and the list of these
        values: the captured tracers of floats and complex numbers.

    Raises:
        TypeError: when called: the arguments differ from the example.

    Example:
        >>> import dovetail as dt
        >>> def of(y):
        ...     converted, captured = dt.closure_convert(lambda x: x * y, 0.0)
        ...     return converted(3.0, *captured)
        >>> float(dt.grad(of)(2.0))
        3.0
    """
    check_callable(fun, "closure_convert")
    leaves, in_tree = pytree.flatten(example_args)
    info = debug_info("closure_convert", fun, example_args)
    flat = FlatFunction(fun, in_tree)
    avals = abstract_leaves(leaves, info)
    closed = stage(flat, avals, info)
    hoisted = [_can_be_perturbed(c) for c in closed.consts]
    perturbed, fixed = partition(hoisted, closed.consts)
    names = info.argument_names or ()

    def converted(*args: Any) -> Any:
        count = len(perturbed)
        own, captured = args[: len(args) - count], args[len(args) - count :]
        leaves, tree = pytree.flatten(own)
        if tree != in_tree:
            difference = pytree.structure_difference(in_tree, tree, "the example", "the call")
            raise TypeError(
                f"a function made by closure_convert of {described(fun)} takes arguments of the "
                f"structure of the example and then the {count} captured values:\n{difference}"
            )
        for i, (value, aval) in enumerate(zip(leaves, avals, strict=True)):
            actual = aval_of(value)
            if actual.shape != aval.shape or actual.dtype != aval.dtype:
                raise TypeError(
                    f"a function made by closure_convert of {described(fun)} takes for "
                    f"{names[i] if i < len(names) else path_of(in_tree, i)} what the example was, "
                    f"{aval.short_name()}, got {actual.short_name()}"
                )
        consts = merge(hoisted, captured, fixed)
        return flat.out_tree.unflatten(eval_jaxpr(closed.jaxpr, consts, *leaves))

    return converted, perturbed


def _can_be_perturbed(value: Any) -> bool:
    return isinstance(value, Tracer) and dtypes.kind_of(value.aval.dtype) in ("f", "c")
