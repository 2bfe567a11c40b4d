"""Rematerialization: checkpoint, saved_residuals, print_saved_residuals."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from dovetail._core.base import config, dtypes, pytree
from dovetail._core.base.counting import counted
from dovetail._core.base.errors import ConcretizationTypeError
from dovetail._core.base.wrapping import wraps
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import AbstractValue, aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.ops.checkpoint.policies import Policy, check_policy
from dovetail._core.ops.checkpoint.remat import origin, remat_p
from dovetail._core.trace.mutable_references import Ref
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.derived import hoist_consts
from dovetail._core.transform.flattening import (
    FlatFunction,
    abstract_leaves,
    check_array_leaves,
    check_callable,
    debug_info,
    leaf_names,
    location_of,
    name_of,
)
from dovetail._core.transform.linearize import linearize_flat
from dovetail._core.transform.referencing import RefEffects, stage_using_references
from dovetail._core.transform.stage import stage
from dovetail._core.transform.traced_once import TracedOnce

P = ParamSpec("P")
R = TypeVar("R")


class _Arguments(NamedTuple):
    """The arguments of a call, static ones separated.

    Attributes:
        args: all positional arguments.
        positions: indices of those that are not static.
        keywords: the keyword arguments that are not static.
        statics: the static arguments, by number or name.
    """

    args: tuple[Any, ...]
    positions: list[int]
    keywords: dict[str, Any]
    statics: dict[int | str, Any]

    def within(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of the arguments that are not static."""
        if not self.statics:
            return function
        names = {k: v for k, v in self.statics.items() if isinstance(k, str)}

        @wraps(function)
        def of_the_others(*dynamic: Any, **keywords: Any) -> Any:
            full = list(self.args)
            for position, value in zip(self.positions, dynamic, strict=True):
                full[position] = value
            return function(*full, **keywords, **names)

        return of_the_others


class _Body(NamedTuple):
    """A traced function.

    Attributes:
        closed: its jaxpr, without constants.
        captured: the values that it has captured, its leading arguments.
        out_tree: the structure of its result.
        uses: its use of mutable references.
    """

    closed: ClosedJaxpr
    captured: list[Any]
    out_tree: Any
    uses: RefEffects


_traced: Final[TracedOnce[_Body]] = TracedOnce()


def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Callable[P, R]:
    """Make a function save less memory for its derivative, and recompute values instead.

    In reverse mode (`grad`, `vjp`) and `linearize`, a function saves intermediate values for its
    derivative. A checkpointed function saves its arguments and recomputes the intermediate values
    when the derivative needs them. It may be differentiated any number of times, and checkpointed
    functions may be nested.

    Args:
        fun: a function of arrays and pytrees of them.
        prevent_cse: whether to keep the compiler from merging the recomputation with the first
            computation, which would undo the effect; a bool for all, or one (or a tree of them) for
            each positional argument that is not static. In the body of a loop, which is compiled
            apart from its backward loop, False is enough and faster.
        policy: which intermediate values to save nevertheless: a function of a primitive, the types
            of its operands and its parameters, such as one of `dovetail.checkpoint_policies`. None
            saves nothing.
        static_argnums: positional arguments that are passed through as Python values, such as flags
            that decide the control flow of `fun`.
        static_argnames: the same for keyword arguments.

    Returns:
        A function of the same arguments.

    Raises:
        TypeError: `fun` is not callable, or an option has the wrong type.
        ValueError: an option names an argument that `fun` does not have.

    Differs:
        A checkpointed function that is differentiated remains a call for the values, so that
        second derivatives compute again what the policy does not keep; JAX writes it out, and
        keeps everything.

        >>> f = dt.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
        >>> names = [e.primitive.name for e in dt.make_jaxpr(dt.grad(f))(1.0).eqns]
        >>> "sin" in names, "remat2" in names
        (False, True)

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail.ad_checkpoint import print_saved_residuals
        >>> def f(x):
        ...     return jnp.sin(jnp.sin(x))
        >>> print_saved_residuals(dt.checkpoint(f), 1.0)
        f32[] from the argument x
        >>> round(float(dt.grad(dt.checkpoint(f))(1.0)), 4)
        0.36
    """
    check_callable(fun, "checkpoint")
    if policy is not None:
        check_policy(policy, "checkpoint")
    if not isinstance(prevent_cse, (bool, list, tuple)):
        raise TypeError(
            "prevent_cse of checkpoint must be True or False, or a list with one for each "
            f"argument, got {prevent_cse!r:.80}"
        )
    numbers, names = _static_arguments(fun, static_argnums, static_argnames)

    @wraps(fun)
    def checkpointed(*args: P.args, **kwargs: P.kwargs) -> R:
        call = _take_apart(args, kwargs, numbers, names)
        dynamic = tuple([args[i] for i in call.positions])
        leaves, in_tree = pytree.flatten((dynamic, call.keywords))
        check_array_leaves(
            leaves,
            lambda: leaf_names(fun, dynamic, call.keywords, call.positions),
            f"checkpoint of {name_of(fun)}",
            references=True,
        )
        if config.disable_jit.value:
            return fun(*args, **kwargs)
        operands = [x if type(x) is Ref else as_operand(x, "checkpoint") for x in leaves]
        avals = tuple([x.aval if type(x) is Ref else aval_of(x) for x in operands])
        body = _body(fun, call, in_tree, avals)
        uses = body.uses
        references: list[Any] = []
        if uses:
            names_of_leaves = leaf_names(fun, dynamic, call.keywords, call.positions)
            references = uses.references(leaves, f"checkpoint of {name_of(fun)}", names_of_leaves)
            operands = uses.operands(operands, references)
        barriers: Any = prevent_cse
        if not isinstance(barriers, bool):
            barriers = _for_operands(fun, barriers, dynamic, len(operands), len(body.captured))
        outs = remat_p.bind(
            *body.captured,
            *operands,
            jaxpr=body.closed,
            prevent_cse=barriers,
            differentiated=False,
            policy=policy,
        )
        if uses:
            outs = uses.finish(outs, references)
        result: R = body.out_tree.unflatten(outs)
        return result

    return checkpointed


def _static_arguments(
    fun: Callable[..., Any], argnums: Any, argnames: Any
) -> tuple[tuple[int, ...], frozenset[str]]:
    """Static argument numbers and names, each completed from the other by the signature."""
    numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    if not all(hasattr(n, "__index__") and not isinstance(n, bool) for n in numbers):
        raise TypeError(
            "static_argnums of checkpoint must be an integer or a sequence of integers, got "
            f"{argnums!r:.80}"
        )
    names = argnames if isinstance(argnames, (tuple, list, set, frozenset)) else (argnames,)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"static_argnames of checkpoint must be a string or strings, got {argnames!r:.80}"
        )
    names = tuple(names)
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return tuple(numbers), frozenset(names)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        for number in numbers:
            if not -len(positional) <= number < len(positional):
                raise ValueError(
                    f"static_argnums={argnums!r} of checkpoint: {name_of(fun)} has "
                    f"{counted(len(positional), 'positional argument')}"
                )
        numbers = [n % len(positional) for n in numbers]
    keyword_names = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for name in names:
            if name not in keyword_names:
                raise ValueError(
                    f"static_argnames={argnames!r} of checkpoint: {name_of(fun)} has no argument "
                    f"{name!r}; it has {', '.join(keyword_names) or 'none'}"
                )
    implied = [i for i, p in enumerate(positional) if p.name in names and p.name in keyword_names]
    by_number = [positional[n].name for n in numbers if 0 <= n < len(positional)]
    return (
        tuple({*numbers, *implied}),
        frozenset({*names, *(name for name in by_number if name in keyword_names)}),
    )


def _take_apart(
    args: tuple[Any, ...], kwargs: dict[str, Any], numbers: tuple[int, ...], names: frozenset[str]
) -> _Arguments:
    if not numbers and not names:
        return _Arguments(args, list(range(len(args))), kwargs, {})
    static = {n % len(args) for n in numbers if -len(args) <= n < len(args)}
    statics: dict[int | str, Any] = {i: args[i] for i in sorted(static)}
    statics.update((k, kwargs[k]) for k in sorted(kwargs) if k in names)
    return _Arguments(
        args,
        [i for i in range(len(args)) if i not in static],
        {k: v for k, v in kwargs.items() if k not in names},
        statics,
    )


def _body(
    fun: Callable[..., Any], given: _Arguments, in_tree: Any, avals: tuple[Any, ...]
) -> _Body:
    """The function traced for these arguments, from the cache if possible."""
    statics = tuple([(where, type(value), value) for where, value in given.statics.items()])
    return _traced.of(
        fun,
        (in_tree, avals, statics),
        lambda: _trace(fun, given, in_tree, avals),
        # A captured tracer belongs to one trace of the caller: the next call may capture another.
        lambda body: body.uses.stay and not any(isinstance(c, Tracer) for c in body.captured),
    )


def _trace(
    fun: Callable[..., Any], given: _Arguments, in_tree: Any, avals: tuple[Any, ...]
) -> _Body:
    dynamic = [given.args[i] for i in given.positions]
    names = leaf_names(fun, dynamic, given.keywords, given.positions)
    flat = FlatFunction(given.within(fun), in_tree, keywords=True)
    info = DebugInfo("checkpoint", name_of(fun), location_of(fun), names)
    try:
        staged, uses = stage_using_references(flat, avals, info)
        closed, captured = hoist_consts(staged)
    except ConcretizationTypeError as error:
        hint = (
            "If the value comes from an argument that decides what the function does, rather than "
            "from data, mark the argument static: static_argnums or static_argnames of checkpoint"
        )
        if hint not in getattr(error, "__notes__", ()):
            error.add_note(hint)
        raise
    return _Body(closed, captured, flat.out_tree, uses)


def _for_operands(
    fun: Callable[..., Any], prevent_cse: Any, dynamic: tuple[Any, ...], leaves: int, captured: int
) -> tuple[bool, ...]:
    """`prevent_cse` for each operand; True for captured values and keyword arguments."""
    name = f"prevent_cse of checkpoint of {name_of(fun)}"
    flags = pytree.flatten_up_to_prefix(name, tuple(prevent_cse), pytree.structure(dynamic))
    for value in flags:
        if not isinstance(value, bool):
            raise TypeError(f"{name} holds {value!r:.80}; it must hold True or False")
    return (*[True] * captured, *flags, *[True] * (leaves - len(flags)))


def saved_residuals(
    f: Callable[..., Any], *args: Any, **kwargs: Any
) -> list[tuple[AbstractValue, str]]:
    """The values that a function saves for its derivative, and where they come from.

    Args:
        f: function of arrays and pytrees of them.
        *args: positional arguments; only shapes and dtypes matter, so `ShapeDtypeStruct` will do.
        **kwargs: keyword arguments.

    Returns:
        For each saved value, in the order of the computation: its type, and a phrase such as
        ``"from the argument x"`` or ``"output of cos from model.py:12:9 (layer)"``.

    Raises:
        TypeError: `f` is not callable.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.ad_checkpoint import saved_residuals
        >>> [(aval, source)] = saved_residuals(lambda x, y: x * 2.0 * y, jnp.ones(3), 1.0)[:1]
        >>> print(aval.short_name(), source)
        f32[] from the argument y
    """
    check_callable(f, "saved_residuals")
    leaves, tree = pytree.flatten((args, kwargs))
    info = debug_info("saved_residuals", f, args, kwargs)
    avals = abstract_leaves(leaves, info)
    nonzero = [a.tangent().dtype != dtypes.float0 for a in avals]
    flat = FlatFunction(f, tree, keywords=True)

    def residuals(*tracers: Any) -> list[Any]:
        _, program = linearize_flat(flat, tracers, nonzero, info)
        return list(program.closed.consts)

    jaxpr = stage(residuals, avals, info).jaxpr
    saved = set(jaxpr.outvars)
    names = info.argument_names or ()
    return [
        *((v.aval, "from a constant") for v in jaxpr.constvars if v in saved),
        *(
            (v.aval, f"from the argument {name}")
            for v, name in zip(jaxpr.invars, names, strict=True)
            if v in saved
        ),
        *((v.aval, origin(jaxpr, v)) for eqn in jaxpr.eqns for v in eqn.outvars if v in saved),
    ]


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the values that a function saves for its derivative, one per line.

    Args:
        f: function of arrays and pytrees of them.
        *args: positional arguments; only shapes and dtypes matter, so `ShapeDtypeStruct` will do.
        **kwargs: keyword arguments.

    Raises:
        TypeError: `f` is not callable.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.ad_checkpoint import print_saved_residuals
        >>> print_saved_residuals(lambda x, y: x * y, jnp.ones(3), 1.0)
        f32[3] from the argument x
        f32[] from the argument y
    """
    for aval, source in saved_residuals(f, *args, **kwargs):
        print(aval.short_name(), source)
