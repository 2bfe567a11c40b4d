"""Functions of flat arguments, and jaxprs of them: `jax.api_util` and `partial_eval`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dovetail._core.alias.wrapped_functions import (
    Store,
    WrappedFun,
    transformation_with_aux2,
    wrap_init,
)
from dovetail._core.base import pytree
from dovetail._core.ir.avals import AbstractValue, aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr
from dovetail._core.ir.walk import dce
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform import flattening
from dovetail._core.transform.stage import replace_constants, stage


def shaped_abstractify(x: Any) -> Any:
    """The type of an array, or of what has a shape and a dtype."""
    return flattening.abstract(x)


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    **options: Any,
) -> DebugInfo:
    """What is traced, for messages.

    Args:
        traced_for: the transformation.
        fun: the user's function.
        args: its arguments.
        kwargs: its keyword arguments.
        **options: accepted for JAX's sake; they have no effect.
    """
    return flattening.debug_info(traced_for, fun, args, kwargs)


def _flatten_fun(
    call: Callable[..., Any], store: Store, in_tree: pytree.PyTreeDef, *leaves: Any
) -> list[Any]:
    args, kwargs = pytree.unflatten(in_tree, leaves)
    results, out_tree = pytree.flatten(call(*args, **kwargs))
    store.store(out_tree)
    return results


def _flatten_fun_nokwargs(
    call: Callable[..., Any], store: Store, in_tree: pytree.PyTreeDef, *leaves: Any
) -> list[Any]:
    results, out_tree = pytree.flatten(call(*pytree.unflatten(in_tree, leaves)))
    store.store(out_tree)
    return results


flatten_fun: Final = transformation_with_aux2(_flatten_fun)
"""From a wrapped function and the tree of `(args, kwargs)` to one of leaves, and its result's tree.
"""
flatten_fun_nokwargs: Final = transformation_with_aux2(_flatten_fun_nokwargs)
"""The same for the tree of positional arguments alone."""


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """A function of some of its arguments, with values for the others; and values of these.

    Args:
        f: the function.
        dyn_argnums: the numbers of the arguments that it keeps.
        args: values of all.
        require_static_args_hashable: whether the others must be hashable.

    Raises:
        ValueError: one of the others is not.
    """
    wanted = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    numbers = tuple(n % len(args) for n in wanted)
    fixed = {i: a for i, a in enumerate(args) if i not in numbers}
    if require_static_args_hashable:
        for i, value in fixed.items():
            try:
                hash(value)
            except TypeError:
                raise ValueError(
                    f"argument {i} is static and has to be hashable, and {value!r:.80} of type "
                    f"{type(value)} is not"
                ) from None

    def partial(*given: Any, **kwargs: Any) -> Any:
        values = {**fixed, **dict(zip(numbers, given, strict=True))}
        return f.call_wrapped(*[values[i] for i in range(len(args))], **kwargs)

    return f.wrap(partial), tuple(args[n] for n in numbers)


def flatten_axes(name: str, treedef: pytree.PyTreeDef, axis_tree: Any, **options: Any) -> list[Any]:
    """What a prefix of a tree says of each leaf of the tree; None is a leaf of the prefix.

    Args:
        name: what the prefix is, for the message.
        treedef: the structure of the tree.
        axis_tree: the prefix.
        **options: accepted for JAX's sake; they have no effect.

    Raises:
        ValueError: it is no prefix.
    """
    nothing = object()
    prefix = pytree.map(lambda x: nothing if x is None else x, axis_tree, is_leaf=_is_none)
    full = treedef.unflatten([nothing] * treedef.num_leaves)
    try:
        found = pytree.leaves(pytree.broadcast(prefix, full))
    except ValueError:
        given = pytree.structure(axis_tree, _is_none)
        raise ValueError(
            f"{name}: a value for each leaf, or for each part, of {treedef} is wanted, got {given}"
        ) from None
    return [None if x is nothing else x for x in found]


def _is_none(x: object) -> bool:
    return x is None


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of parameters, of which the one follows from the other if it is None.

    Args:
        sig: the signature.
        argnums: the numbers.
        argnames: the names.
    """
    numbers = None if argnums is None else _tuple_of(argnums, int)
    names = None if argnames is None else _tuple_of(argnames, str)
    positional = [
        name
        for name, parameter in sig.parameters.items()
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    if numbers is None:
        numbers = tuple([i for i, name in enumerate(positional) if name in (names or ())])
    if names is None:
        count = len(positional)
        names = tuple([positional[i] for i in numbers if -count <= i < count])
    return numbers, names


def _tuple_of(given: Any, kind: type) -> tuple[Any, ...]:
    return (given,) if isinstance(given, kind) else tuple(given)


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[AbstractValue], **options: Any
) -> tuple[Jaxpr, list[Any], list[Any]]:
    """Record a function of flat arguments.

    Args:
        fun: the function.
        in_avals: types of its arguments.
        **options: accepted for JAX's sake; they have no effect.

    Returns:
        The jaxpr, types of the results, and values of the jaxpr's constants.
    """
    info = fun.debug_info or DebugInfo("trace_to_jaxpr_dynamic", fun.__name__)
    closed = stage(fun.call_wrapped, in_avals, info)
    return closed.jaxpr, closed.out_avals, closed.consts


class PartialVal(tuple[Any, Any]):
    """A value that is known, or the type of one that is not."""

    __slots__ = ()

    def __new__(cls, xs: tuple[AbstractValue | None, Any]) -> PartialVal:
        return super().__new__(cls, xs)

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A known value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: AbstractValue) -> PartialVal:
        """A value of which the type is known."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether it is a known value."""
        return self[0] is None

    def get_aval(self) -> Any:
        """The type."""
        return aval_of(self[1]) if self[0] is None else self[0]

    def get_known(self) -> Any:
        """The value, None if it is not known."""
        return self[1] if self[0] is None else None


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Record what of a function depends on values that are not known.

    Args:
        fun: the function, of flat arguments.
        pvals: its arguments.
        instantiate: whether results that are known are in the jaxpr, too; for all, or for each.

    Returns:
        The jaxpr, whose parameters are the arguments that are not known; the results, of which
        those that are not known are results of the jaxpr; and values of its constants.
    """
    unknown = [pval for pval in pvals if not pval.is_known()]
    info = fun.debug_info or DebugInfo("trace_to_jaxpr_nounits", fun.__name__)
    found: list[Any] = []

    def function(*args: Any) -> list[Any]:
        given = iter(args)
        results = fun.call_wrapped(*[p[1] if p.is_known() else next(given) for p in pvals])
        flags = [instantiate] * len(results) if isinstance(instantiate, bool) else instantiate
        kept = []
        for result, flag in zip(results, flags, strict=True):
            is_unknown = flag or isinstance(result, Tracer)
            found.append(None if is_unknown else result)
            if is_unknown:
                kept.append(result)
        return kept

    closed = stage(function, [pval[0] for pval in unknown], info)
    avals = iter(closed.out_avals)
    outs = [PartialVal.unknown(next(avals)) if f is None else PartialVal.known(f) for f in found]
    return closed.jaxpr, outs, closed.consts


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """A jaxpr without what no wanted result needs.

    Args:
        jaxpr: the jaxpr.
        used_outputs: which of its results are wanted.
        instantiate: which parameters are kept though nothing uses them; all, none, or for each.

    Returns:
        The jaxpr, and which of the parameters it has.
    """
    count = len(jaxpr.invars)
    kept = [instantiate] * count if isinstance(instantiate, bool) else list(instantiate)
    reduced, used = dce(jaxpr, list(used_outputs))
    wanted = [u or k for u, k in zip(used, kept, strict=True)]
    left = iter(reduced.invars)
    invars = [
        next(left) if u else v for v, u, w in zip(jaxpr.invars, used, wanted, strict=True) if w
    ]
    return reduced.replace(invars=invars), wanted


def convert_constvars_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with its constants as leading parameters."""
    placeholders: list[Any] = [None] * len(jaxpr.constvars)
    return replace_constants(ClosedJaxpr(jaxpr, placeholders))[0]


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """A jaxpr without constants, closed."""
    return ClosedJaxpr(jaxpr, ())


def abstract_eval_fun(
    fun: Callable[..., Any], *avals: Any, debug_info: DebugInfo, **params: Any
) -> list[Any]:
    """The types of the results of a function of flat arguments."""
    return trace_to_jaxpr_dynamic(wrap_init(fun, params, debug_info=debug_info), avals)[1]
