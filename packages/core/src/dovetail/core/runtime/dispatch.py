"""Eager evaluation: primitives and whole functions run as compiled programs.

Importing this module makes arrays work: it fills the slot of `trace` through which primitives are
evaluated, and gives `Array` its operators.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Final

import numpy as np

from dovetail.core.base import caches, config, pytree
from dovetail.core.base.bindings import get_traceback
from dovetail.core.ir.avals import aval_of
from dovetail.core.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var
from dovetail.core.plugins.manager import manager
from dovetail.core.runtime import buffers, clients, compilation
from dovetail.core.runtime.arguments import from_foreign as from_foreign
from dovetail.core.runtime.arguments import literal_value
from dovetail.core.runtime.arguments import resolve_device as resolve_device
from dovetail.core.runtime.array import Array, KeyArray
from dovetail.core.runtime.fastpath import FastpathData as FastpathData
from dovetail.core.runtime.fastpath import fastpath as fastpath
from dovetail.core.runtime.fastpath import pjit_function as pjit_function
from dovetail.core.runtime.programs import LoadedProgram as LoadedProgram
from dovetail.core.runtime.programs import compile_module as compile_module
from dovetail.core.trace.primitive import Primitive
from dovetail.core.trace.state import evaluation_trace, set_evaluator, state
from dovetail.core.trace.tracer import ArrayClass, register_array_class
from dovetail.core.transform.flattening import debug_info, location_of
from dovetail.core.transform.stage import stage

__all__ = [
    "FastpathData",
    "LoadedProgram",
    "apply_primitive",
    "compile_eager",
    "compile_jaxpr",
    "compile_module",
    "fastpath",
    "from_foreign",
    "pjit_function",
    "resolve_device",
]

Missed = tuple[Any, FastpathData | None, bool]

_HOST_TYPES: Final = (bool, int, float, complex, np.ndarray, np.generic)


def compile_jaxpr(
    closed: ClosedJaxpr,
    sharding: Any,
    *,
    name: str,
    compiler_options: compilation.CompilerOptions | None = None,
    **options: Any,
) -> LoadedProgram:
    """Lower a jaxpr for a device's platform and compile it.

    Args:
        closed: The jaxpr.
        sharding: Where it runs: the sharding of one device.
        name: The function's name.
        compiler_options: Options for the compiler.
        **options: Options of `lower_jaxpr`, such as ``donated``.
    """
    from dovetail.core.lower.lowering import lower_jaxpr  # deferred: loads MLIR

    start = time.perf_counter()
    platform = clients.platform_of(sharding._device)
    lowered = lower_jaxpr(closed, name=name, platforms=(platform,), **options)
    compilation.log_duration("lowered", lowered.name, time.perf_counter() - start)
    return compile_module(lowered, sharding, compiler_options)


# -----------------------------------------------------------------------------------------
# primitives


@caches.lru_cache(maxsize=4096)
def _primitive_program(
    primitive: Primitive, params: _Params, avals: tuple[Any, ...], key: Any, sharding: Any
) -> LoadedProgram:
    """The program of a primitive. The key holds the options that affect tracing."""
    outs = primitive.infer(avals, params.params)
    several = primitive.multiple_results
    invars = [Var(aval) for aval in avals]
    outvars = [Var(aval) for aval in (outs if several else [outs])]
    effects = primitive.effects(*avals, **params.params)
    eqn = JaxprEqn(invars, outvars, primitive, params.params, effects, get_traceback())
    jaxpr = Jaxpr([], invars, outvars, [eqn], effects, DebugInfo("evaluation", primitive.name))
    return compile_jaxpr(ClosedJaxpr(jaxpr, []), sharding, name=primitive.name)


class _Params:
    """Parameters of a primitive as a key: told apart by the types of their values too."""

    __slots__ = ("_hash", "_key", "params")

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self._key = (tuple(params.items()), tuple([type(value) for value in params.values()]))
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Params) and self._key == other._key


class _Identity(_Params):
    """Parameters that have no hash: equal to themselves only."""

    __slots__ = ()

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self._hash = id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = _Params.__hash__


class _EagerPrimitive:
    """The C++ function that evaluates a primitive with given parameters."""

    def __init__(self, primitive: Primitive, params: _Params) -> None:
        self.primitive = primitive
        self.params = params
        self.compiled = pjit_function(
            primitive.name, self.evaluate, self.cache_miss, key="dovetail primitive"
        )

    def run(self, args: Sequence[Any]) -> tuple[Any, LoadedProgram, bool]:
        sharding, committed = resolve_device(args, self.primitive.name)
        program = _primitive_program(
            self.primitive,
            self.params,
            tuple([aval_of(arg) for arg in args]),
            config.trace_key(),
            sharding,
        )
        outs = program(args, committed)
        return (outs if self.primitive.multiple_results else outs[0]), program, committed

    def evaluate(self, *args: Any) -> Any:
        """What C++ calls while ``disable_jit`` is on: a primitive is compiled all the same."""
        return self.run(args)[0]

    def cache_miss(self, *args: Any) -> Missed:
        try:
            result, program, committed = self.run(args)
            data = fastpath(program, args, result, committed)
        except BaseException:
            self.compiled._clear_cache()
            raise
        return result, data, data is None


@caches.lru_cache(maxsize=8192)
def _eager_primitive(primitive: Primitive, key: Any, types: Any) -> Any:
    return _EagerPrimitive(primitive, _Params(dict(key))).compiled


# The functions of primitives without parameters, which are most of them.
_plain: Final[dict[Primitive, Any]] = {}
caches.register(_plain.clear)


def apply_primitive(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Evaluate a primitive on values; `EvaluationTrace` calls this.

    Args:
        primitive: The primitive.
        args: Arrays, NumPy values, literals.
        params: Its parameters.
    """
    compiled = None if params else _plain.get(primitive)
    if compiled is None:
        evaluate = getattr(primitive, "evaluate", None)
        if evaluate is not None:
            return evaluate(*args, **params)
        compiled = _compiled_primitive(primitive, params)
    return compiled(*[literal_value(arg) if type(arg) is Literal else arg for arg in args])


def _compiled_primitive(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    try:
        compiled: Callable[..., Any] = _eager_primitive(
            primitive, tuple(params.items()), tuple([type(value) for value in params.values()])
        )
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _EagerPrimitive(primitive, _Identity(params)).evaluate
    if not params:
        _plain[primitive] = compiled
    return compiled


set_evaluator(apply_primitive)


# ------------------------------------------------------------------------------------------
# functions


class _NotSupported(Exception):
    """A function returned NotImplemented while it was staged."""


class _Static:
    """The arguments of a call that are part of its program, as a key."""

    __slots__ = ("_key", "keywords", "positional")

    def __init__(self, positional: dict[int, Any], keywords: dict[str, Any]) -> None:
        self.positional = positional
        self.keywords = keywords
        values = (*positional.items(), *sorted(keywords.items()))
        self._key = tuple([(name, type(value), value) for name, value in values])

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self._key == other._key


@caches.lru_cache(maxsize=4096)
def _function_program(
    eager: _EagerFunction,
    tree: Any,
    static: _Static,
    avals: tuple[Any, ...],
    key: Any,
    sharding: Any,
) -> tuple[LoadedProgram, Any]:
    """The program of a function for arguments of given avals, and the structure of its result."""
    structure: Any = None

    def flat(*leaves: Any) -> list[Any]:
        nonlocal structure
        args, kwargs = tree.unflatten(leaves)
        out = eager.function(*eager.joined(args, static), **kwargs, **static.keywords)
        if out is NotImplemented:
            raise _NotSupported
        results, structure = pytree.flatten(out)
        return results

    start = time.perf_counter()
    info = DebugInfo(f"the evaluation of {eager.name}", eager.name, location_of(eager.function))
    closed = stage(flat, avals, info)
    compilation.log_duration("traced", eager.name, time.perf_counter() - start)
    return compile_jaxpr(closed, sharding, name=eager.name), structure


class _EagerFunction:
    """A function that is compiled as one unit when called on arrays, and inlined when traced."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        static_argnums: Sequence[int],
        static_argnames: Sequence[str],
        is_operator: bool,
    ) -> None:
        self.function = function
        self.name = name
        self.static_argnums = frozenset(static_argnums)
        self.static_argnames = frozenset(static_argnames)
        self.is_operator = is_operator
        self.compiled = pjit_function(
            name,
            self.inline,
            self.cache_miss,
            static_argnums=sorted(self.static_argnums),
            static_argnames=sorted(self.static_argnames),
            key="dovetail function",
        )
        update_wrapper(self.compiled, function)

    def joined(self, args: Sequence[Any], static: _Static) -> list[Any]:
        """Dynamic and static positional arguments, in their order."""
        if not static.positional:
            return list(args)
        dynamic = iter(args)
        count = len(args) + len(static.positional)
        return [
            static.positional[i] if i in static.positional else next(dynamic) for i in range(count)
        ]

    def inline(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself: what C++ calls while ``disable_jit`` is on."""
        if self.is_operator and not all(map(_is_operand, args)):
            return NotImplemented
        return self.function(*args, **kwargs)

    def cache_miss(self, *args: Any, **kwargs: Any) -> Missed:
        if state.trace is not evaluation_trace:
            # Nothing is remembered of such a call, so that an error of it pins nothing either.
            if self.is_operator and not all(map(_is_operand, args)):
                return NotImplemented, None, True
            return self.function(*args, **kwargs), None, True
        try:
            return self.evaluate(args, kwargs)
        except _NotSupported:
            self.compiled._clear_cache()
            return NotImplemented, None, True
        except BaseException:
            self.compiled._clear_cache()
            raise

    def evaluate(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Missed:
        if self.is_operator and not all(map(_is_operand, args)):
            return NotImplemented, None, True
        numbers, names = self.static_argnums, self.static_argnames
        static = _Static(
            {i: arg for i, arg in enumerate(args) if i in numbers} if numbers else {},
            {name: value for name, value in kwargs.items() if name in names} if names else {},
        )
        dynamic = (
            tuple([arg for i, arg in enumerate(args) if i not in numbers]) if numbers else args
        )
        keywords = {name: value for name, value in kwargs.items() if name not in names}
        leaves, tree = pytree.flatten((dynamic, keywords))
        for leaf in leaves:
            kind = type(leaf)
            if kind is Array or kind is KeyArray or isinstance(leaf, _HOST_TYPES):
                continue
            # A tracer without its trace, an object with __array__, or no array at all: the function
            # and the primitives that it calls know what to say.
            if buffers.is_buffer(leaf):
                leaves = [from_foreign(x) if buffers.is_buffer(x) else x for x in leaves]
                dynamic, keywords = tree.unflatten(leaves)
                joined = self.joined(dynamic, static)
                return self.compiled(*joined, **keywords, **static.keywords), None, True
            return self.function(*args, **kwargs), None, True

        def describe(number: int) -> str:
            info = debug_info("evaluation", self.function, dynamic, keywords)
            return f"the argument {(info.argument_names or ())[number]} of {self.name}"

        sharding, committed = resolve_device(leaves, self.name, describe)
        avals = tuple([aval_of(leaf) for leaf in leaves])
        program, structure = _function_program(
            self, tree, static, avals, config.trace_key(), sharding
        )
        result = structure.unflatten(program(leaves, committed, describe))
        data = fastpath(program, leaves, result, committed, _named(self.name))
        return result, data, data is None


def _named(function: str) -> Callable[[int], str]:
    """Phrases for arguments that keep no argument alive."""
    return lambda number: f"argument {number} of {function}"


def _is_operand(value: Any) -> bool:
    """Whether an operator takes a value; for any other, the value's own operator is tried."""
    return (
        isinstance(value, (ArrayClass, *_HOST_TYPES))
        or buffers.is_buffer(value)
        or hasattr(value, "__dovetail_array__")
    )


def compile_eager(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    is_operator: bool = False,
) -> Any:
    """Make a function of arrays run as one compiled program, through C++ on a warm cache.

    Under a transformation the function is called as it is. Calls compile nothing for other values
    of arguments that are not static.

    Args:
        function: A function of arrays and pytrees of them, which returns such.
        name: Its name in profiles; the function's own if None.
        static_argnums: Numbers of positional arguments that are part of the program; hashable.
        static_argnames: Names of such keyword arguments.
        is_operator: Whether the result for operands that are no arrays is NotImplemented.

    Returns:
        A function object of jaxlib, which binds as a method.
    """
    shown = name or str(getattr(function, "__name__", type(function).__name__))
    return _EagerFunction(function, shown, static_argnums, static_argnames, is_operator).compiled


_OPERAND_COUNT_OF_UNARY: Final = frozenset({"__pos__", "__neg__", "__abs__", "__invert__"})
_NO_OPERATORS: Final = frozenset({"__getitem__", "__contains__", "__round__"})


def _adapt(name: str, function: Callable[..., Any]) -> Any:
    """The form in which an operator or method stands on `Array`."""
    if name not in manager().array_methods().compiled:
        return function
    is_operator = (
        name.startswith("__") and name not in _OPERAND_COUNT_OF_UNARY and name not in _NO_OPERATORS
    )
    return compile_eager(function, name=name.strip("_"), is_operator=is_operator)


register_array_class(Array, _adapt)
