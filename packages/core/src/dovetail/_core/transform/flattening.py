"""Conversion between functions of pytrees and of flat arguments, with names for messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.errors import NonArrayArgumentError
from dovetail._core.base.source import shown_file
from dovetail._core.ir.avals import (
    AbstractValue,
    ShapedArray,
    array_conversion,
    aval_of,
    is_array_like,
    is_forbidden,
    named_kind,
    numpy_refusal,
)
from dovetail._core.ir.jaxpr import DebugInfo
from dovetail._core.ir.manual_axis_type import ManualAxisType, invarying
from dovetail._core.ir.partition_spec import UnreducedKind
from dovetail._core.trace.mutable_references import AbstractRef, Ref
from dovetail._core.trace.named_axes import lookup
from dovetail._core.trace.tracer import ArrayClass


class FlatFunction:
    """A function of flat leaves that wraps a function of pytrees.

    Args:
        function: the user's function.
        in_tree: structure of ``(args, kwargs)``, or of ``args`` if `keywords` is False.
        keywords: whether the tree holds keyword arguments too.
        has_aux: whether the function returns a pair of which only the first part is transformed.

    Attributes:
        out_tree: structure of the result, after a call.
        aux: the second part of the result, if there is one, after a call.
    """

    __slots__ = ("aux", "function", "has_aux", "in_tree", "keywords", "out_tree")

    def __init__(
        self,
        function: Callable[..., Any],
        in_tree: Any,
        *,
        keywords: bool = False,
        has_aux: bool = False,
    ) -> None:
        self.function = function
        self.in_tree = in_tree
        self.keywords = keywords
        self.has_aux = has_aux
        self.out_tree: Any = None
        self.aux: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        if self.keywords:
            args, kwargs = self.in_tree.unflatten(leaves)
            out = self.function(*args, **kwargs)
        else:
            out = self.function(*self.in_tree.unflatten(leaves))
        if self.has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise TypeError(
                    f"{name_of(self.function)} must return a pair (result, auxiliary data) "
                    "because has_aux=True, got "
                    + ("an array" if isinstance(out, ArrayClass) else type(out).__name__)
                    + (f" of length {len(out)}" if isinstance(out, tuple) else "")
                )
            out, self.aux = out
        results, self.out_tree = pytree.flatten(out)
        for i, result in enumerate(results):
            if not isinstance(result, ArrayClass) and not is_array_like(result):
                path = pytree.keystr(pytree.flatten_with_path(out)[0][i][0])
                if isinstance(result, (np.ndarray, np.generic)):
                    what = f"the result of {name_of(self.function)}{f' at {path}' if path else ''}"
                    if refusal := numpy_refusal(result, what):
                        raise refusal
                if type(result) is Ref:
                    raise ValueError(
                        f"{name_of(self.function)} returned {result.described()}"
                        f"{f' at {path} of its result' if path else ''}: transformed functions "
                        "cannot return references. Return the value, ref[...]"
                    )
                raise NonArrayArgumentError(
                    f"{name_of(self.function)} returned a value of type {type(result).__name__}"
                    f"{f' at {path} of its result' if path else ''}, which is not an array: "
                    "transformed functions return arrays, scalars and pytrees of them"
                )
        return results


def name_of(function: Any) -> str:
    """The name of a function for messages and programs."""
    while hasattr(function, "func") and not hasattr(function, "__name__"):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if name and isinstance(name, str) else type(function).__name__


def location_of(function: Any) -> str:
    """``file:line`` of a function's definition, or an empty string."""
    target = inspect.unwrap(function) if hasattr(function, "__wrapped__") else function
    while hasattr(target, "func") and not hasattr(target, "__code__"):
        target = target.func
    code = getattr(target, "__code__", None) or getattr(
        getattr(target, "__func__", None), "__code__", None
    )
    return f"{shown_file(code.co_filename)}:{code.co_firstlineno}" if code is not None else ""


def parameter_names(function: Any, count: int) -> list[str]:
    """Names of the first `count` positional parameters, as far as they are known."""
    if type(function) is FunctionType and not function.__dict__:
        # What inspect would say, in a tenth of the time.
        code = function.__code__
        names = list(code.co_varnames[: code.co_argcount])
        if code.co_flags & inspect.CO_VARARGS:
            variable = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
            names += [f"{variable}[{i}]" for i in range(count - len(names))]
        return _completed(names, count)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [f"args[{i}]" for i in range(count)]
    names = []
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{i}]" for i in range(count - len(names))]
    return _completed(names, count)


def _completed(names: list[str], count: int) -> list[str]:
    return [*names, *(f"args[{i}]" for i in range(len(names), count))][:count]


def leaf_names(
    function: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    positions: Iterable[int] | None = None,
) -> tuple[str, ...]:
    """A name such as ``params['w']`` for each leaf of the arguments.

    Args:
        function: the function that takes them.
        args: positional arguments.
        kwargs: keyword arguments, whose leaves come last, sorted by keyword.
        positions: the positions of `args` among the parameters; 0, 1, ... by default.
    """
    numbers = list(range(len(args)) if positions is None else positions)
    names = parameter_names(function, max(numbers, default=-1) + 1)
    labels = [
        names[number] + pytree.keystr(path)
        for number, arg in zip(numbers, args, strict=True)
        for path, _ in pytree.flatten_with_path(arg)[0]
    ]
    for keyword in sorted(kwargs or {}):
        assert kwargs is not None
        labels += [
            keyword + pytree.keystr(path)
            for path, _ in pytree.flatten_with_path(kwargs[keyword])[0]
        ]
    return tuple(labels)


def debug_info(
    traced_for: str,
    function: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    positions: Iterable[int] | None = None,
) -> DebugInfo:
    """Debug information for a function being traced with these arguments."""
    return DebugInfo(
        traced_for,
        name_of(function),
        location_of(function),
        leaf_names(function, args, kwargs, positions),
    )


def check_callable(function: Any, transformation: str) -> None:
    """Raise TypeError unless `function` can be called."""
    if not callable(function):
        raise TypeError(
            f"{transformation} takes a function as its first argument, got "
            f"{type(function).__name__}: {function!r:.80}"
        )


def abstract(x: Any) -> Any:
    """The aval of a value, or of anything that has a shape and a dtype."""
    if isinstance(x, AbstractValue):
        return x
    if type(x) is Ref:
        return x.aval
    if is_array_like(x) or not _has_shape(x):
        return aval_of(x)
    dtype = dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True)
    if not (dtypes.is_extended(dtype) or dtypes.kind_of(dtype) or dtype == dtypes.float0):
        raise NonArrayArgumentError(f"{dtypes.why_not_of_arrays(dtype)}: {x!r:.80}")
    aval = ShapedArray(
        x.shape, dtype, getattr(x, "weak_type", False), manual_axis_type=declared_axes(x)
    )
    divided = getattr(getattr(x, "sharding", None), "_division", None)
    if divided is not None:
        aval = aval.with_division(divided(aval.ndim))
    return AbstractRef(aval) if getattr(x, "is_ref", False) else aval


def declared_axes(x: Any) -> ManualAxisType:
    """What the array is along manual axes of a mesh that a `ShapeDtypeStruct` describes.

    Raises:
        NameError: there is no such axis.
        NotImplementedError: it is unreduced in another way than as a sum.
    """
    declared: ManualAxisType | None = getattr(x, "manual_axis_type", None)
    if declared is None:
        return invarying
    if declared.unreduced_kind not in (None, UnreducedKind.sum):
        raise NotImplementedError(
            f"manual_axis_type={declared}: what is to be reduced in other ways than by a sum is "
            "not supported"
        )
    named = declared.varying | declared.unreduced | declared.reduced
    axes = lookup(named, "manual_axis_type of ShapeDtypeStruct")
    return declared.without([axis.name for axis in axes if not axis.is_checked])


def abstract_leaves(leaves: Sequence[Any], info: DebugInfo) -> list[Any]:
    """The avals of arguments that are arrays or references, or at least have shapes and dtypes."""
    names = info.argument_names or ()
    context = f"{info.traced_for} of {info.function}"
    check_array_leaves(leaves, lambda: names, context, shapes=True, references=True)
    return [abstract(x) for x in leaves]


def _has_shape(x: Any) -> bool:
    """Whether a value other than an array has a shape and a dtype, like a `ShapeDtypeStruct`."""
    return (
        hasattr(x, "shape")
        and hasattr(x, "dtype")
        and not isinstance(x, (np.ndarray, np.generic, type, Ref))
    )


def check_array_leaves(
    leaves: Sequence[Any],
    names: Callable[[], Sequence[str]],
    context: str,
    *,
    shapes: bool = False,
    references: bool = False,
) -> None:
    """Raise unless every leaf is an array or scalar, naming the one that is not.

    Args:
        leaves: flat arguments.
        names: returns their names.
        context: what they are arguments of.
        shapes: whether anything with a shape and a dtype may stand for an array.
        references: whether mutable references are allowed.
    """
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, ArrayClass) or (type(leaf) is Ref and references):
            continue
        if not is_array_like(leaf) and not (shapes and _has_shape(leaf)):
            argument_names = names()
            name = argument_names[i] if i < len(argument_names) else f"number {i}"
            if type(leaf) is Ref:
                raise NonArrayArgumentError(
                    f"Argument {name} of {context} must be an array, got {leaf.described()}; read "
                    "its value first, with ref[...]"
                )
            if isinstance(leaf, (np.ndarray, np.generic)):
                refusal = numpy_refusal(leaf, f"Argument {name} of {context}")
                if refusal:
                    raise refusal
            if is_forbidden(leaf):
                raise NonArrayArgumentError(f"Argument {name} of {context} is {named_kind(leaf)}")
            if array_conversion(leaf) is not None:
                raise NonArrayArgumentError(
                    f"Argument {name} of {context} is {leaf!r:.80} of type {type(leaf)}, which "
                    "functions of arrays convert, and transformations do not: pass "
                    "dovetail.numpy.asarray(...) of it, or register its type as a pytree "
                    "(dovetail.tree_util.register_pytree_node_class)"
                )
            raise NonArrayArgumentError(
                f"Argument {name} of {context} is {leaf!r:.80} of type {type(leaf)}, which is not "
                "a valid array type. Pass an array or scalar, mark the argument static "
                "(static_argnums or static_argnames of jit), or register its type as a pytree "
                "(dovetail.tree_util.register_pytree_node_class)"
            )


def normalized_argnums(
    argnums: Any,
    count: int,
    function: str,
    name: str = "argnums",
    missing: type[Exception] = ValueError,
) -> tuple[int, ...]:
    """Non-negative argument numbers.

    Args:
        argnums: an integer or a sequence of them; negative ones count from the end.
        count: how many positional arguments the call has.
        function: what they are for, for the message.
        name: the name of the user's argument, for the message.
        missing: what to raise where the call has too few arguments.

    Raises:
        ValueError: a number is out of range or repeated.
        TypeError: it is not an integer or a sequence of them.
    """
    numbers = (argnums,) if not isinstance(argnums, (tuple, list)) else tuple(argnums)
    result = []
    for number in numbers:
        try:
            index = number.__index__()
        except AttributeError:
            raise TypeError(
                f"{name} of {function} must be an integer or a sequence of integers, got "
                f"{argnums!r}"
            ) from None
        if not -count <= index < count:
            raise (ValueError if index < 0 else missing)(
                f"{name}={argnums!r} of {function}: there is no positional argument {index}, the "
                f"call has {count}; arguments to transform must be passed by position"
            )
        result.append(index % count)
    if len(set(result)) != len(result):
        raise ValueError(f"{name}={argnums!r} of {function} names an argument twice")
    return tuple(result)
