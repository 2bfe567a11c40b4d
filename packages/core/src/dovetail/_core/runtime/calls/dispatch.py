"""Eager evaluation: primitives and whole functions run as compiled programs.

Importing this module makes arrays work: it fills the slot of `trace` through which primitives are
evaluated, and gives `Array` its operators.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import update_wrapper, wraps
from typing import Any, Final

import numpy as np

from dovetail._core.base import caches, config, dtypes, pytree
from dovetail._core.base.bindings import get_traceback
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var
from dovetail._core.plugins.manager import manager
from dovetail._core.runtime.arrays import buffers
from dovetail._core.runtime.arrays.array import Array
from dovetail._core.runtime.calls.cache_misses import log_compiled
from dovetail._core.runtime.calls.fastpath import FastpathData as FastpathData
from dovetail._core.runtime.calls.fastpath import fastpath as fastpath
from dovetail._core.runtime.calls.fastpath import pjit_function as pjit_function
from dovetail._core.runtime.calls.jit import Call, JitFunction, JitOptions, StagedProgram
from dovetail._core.runtime.calls.special_values import explained
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.programs import compilation
from dovetail._core.runtime.programs.arguments import from_foreign as from_foreign
from dovetail._core.runtime.programs.arguments import literal_value
from dovetail._core.runtime.programs.arguments import resolve_device as resolve_device
from dovetail._core.runtime.programs.program import LoadedProgram as LoadedProgram
from dovetail._core.runtime.programs.program import compile_module as compile_module
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.state import evaluation_trace, set_evaluator, state
from dovetail._core.trace.tracer import ArrayClass, Tracer, register_array_class
from dovetail._core.transform.interning import holder_of

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

_MAX_LIMITS: Final = 256
_BITS_OF_INTEGERS: Final = {False: 32, True: 64}
_PYTHON_NUMBERS: Final = frozenset({bool, int, float, complex})
_HOST_TYPES: Final = (bool, int, float, complex, np.ndarray, np.generic)
_ARRAY_TYPES: Final = (*_HOST_TYPES, Array)


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
    from dovetail._core.lower.lowering import lower_jaxpr  # deferred: loads MLIR

    clients.check_runs(sharding._device, f"{name} cannot be computed on it")
    start = time.perf_counter()
    platform = clients.platform_of(sharding._device)
    lowered = lower_jaxpr(closed, name=name, platforms=(platform,), **options)
    compilation.log_duration("lowered", lowered.name, time.perf_counter() - start)
    return compile_module(lowered, sharding, compiler_options)


# -----------------------------------------------------------------------------------------
# primitives


@caches.lru_cache(maxsize=4096)
def _remembered_program(
    primitive: Primitive, params: _Params, avals: tuple[Any, ...], key: Any, sharding: Any
) -> LoadedProgram:
    """The program of a primitive. The key holds the options that affect tracing."""
    return _primitive_program(primitive, params, avals, sharding)


def _primitive_program(
    primitive: Primitive, params: _Params, avals: tuple[Any, ...], sharding: Any
) -> LoadedProgram:
    outs = primitive.infer(avals, params.params)
    several = primitive.multiple_results
    invars = [Var(aval) for aval in avals]
    outvars = [Var(aval) for aval in (outs if several else [outs])]
    effects = primitive.effects(*avals, **params.params)
    eqn = JaxprEqn(invars, outvars, primitive, params.params, effects, get_traceback())
    jaxpr = Jaxpr([], invars, outvars, [eqn], effects, DebugInfo("evaluation", primitive.name))
    start = time.perf_counter()
    program = compile_jaxpr(ClosedJaxpr(jaxpr, []), sharding, name=primitive.name)
    operands = ", ".join(aval.short_name() for aval in avals)
    seconds = time.perf_counter() - start
    log_compiled(f"the operation {primitive.name}", f"({operands})", sharding._device, seconds)
    return program


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


class _Unhashable(_Params):
    """Parameters that have no hash, and are in no key."""

    __slots__ = ()

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params


class _EagerPrimitive:
    """The C++ function that evaluates a primitive with given parameters.

    Args:
        primitive: the primitive.
        params: its parameters.
        programs: where its programs are kept; in the table for all primitives if None.
    """

    def __init__(
        self, primitive: Primitive, params: _Params, programs: dict[Any, LoadedProgram] | None
    ) -> None:
        self.primitive = primitive
        self.params = params
        self.programs = programs
        self.compiled = pjit_function(
            primitive.name, self.evaluate, self.cache_miss, key="dovetail primitive"
        )

    def run(self, args: Sequence[Any]) -> tuple[Any, LoadedProgram, bool]:
        sharding, committed = resolve_device(args, self.primitive.name)
        avals = tuple([aval_of(arg) for arg in args])
        if self.programs is None:
            program = _remembered_program(
                self.primitive, self.params, avals, config.trace_key(), sharding
            )
        else:
            key = (avals, config.trace_key(), sharding)
            found = self.programs.get(key)
            if found is None:
                found = _primitive_program(self.primitive, self.params, avals, sharding)
                self.programs[key] = found
            program = found
        try:
            outs = program(args, committed)
        except FloatingPointError as error:
            params = self.params.params
            raise explained(
                error,
                self.primitive.name,
                program.effects,
                lambda checks: checks.apply(self.primitive, args, params),
            ) from None
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
    return _EagerPrimitive(primitive, _Params(dict(key)), None).compiled


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
    key = (primitive, tuple(params.items()), tuple([type(value) for value in params.values()]))
    try:
        hash(key)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _EagerPrimitive(primitive, _Unhashable(params), {}).evaluate
    holder = holder_of(params) if primitive.multiple_results else None
    if holder is not None:
        compiled = holder.memory.get(key)
        if compiled is None:
            compiled = holder.memory[key] = _EagerPrimitive(primitive, _Params(params), {}).compiled
        return compiled  # type: ignore[no-any-return]
    compiled = _eager_primitive(*key)
    if not params:
        _plain[primitive] = compiled
    return compiled  # type: ignore[no-any-return]


set_evaluator(apply_primitive)


# ------------------------------------------------------------------------------------------
# functions


class _NotSupported(Exception):
    """A function returned NotImplemented while it was staged."""


class _EagerFunction(JitFunction):
    """A function that is compiled as one unit when called on arrays, and inlined when traced."""

    __slots__ = ("checks", "is_operator", "limits", "plain", "unchecked")

    has_lines = False

    def __init__(
        self,
        function: Callable[..., Any],
        options: JitOptions,
        is_operator: bool,
        checks: bool = True,
    ) -> None:
        @wraps(function)
        def supported(*args: Any, **kwargs: Any) -> Any:
            out = function(*args, **kwargs)
            if out is NotImplemented:
                raise _NotSupported
            return out

        self.plain = function
        self.is_operator = is_operator
        # Python integers that become narrower ones are checked here, and the call is then that of
        # a twin without checks, which C++ may remember.
        self.checks = checks
        self.limits: dict[Any, tuple[tuple[int, int, int], ...]] = {}
        self.unchecked: _EagerFunction | None = None
        super().__init__(supported, options)
        update_wrapper(self.compiled, function)

    @property
    def uncompiled(self) -> Callable[..., Any]:
        # C++ takes the signature that help() shows from this function.
        @wraps(self.plain)
        def inlined(*args: Any, **kwargs: Any) -> Any:
            return self.inline(*args, **kwargs)

        return inlined

    def inline(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself; NotImplemented where an operator does not take an operand."""
        if self.is_operator and not all(map(_is_operand, args)):
            return _refused(self.options.name, args)
        return self.plain(*args, **kwargs)

    def miss(self, *args: Any, **kwargs: Any) -> Missed:
        if state.trace is not evaluation_trace:
            # Nothing is remembered of such a call, so that an error of it pins nothing either.
            return self.inline(*args, **kwargs), None, True
        if self.limits and not kwargs:
            limits = self.limits.get(self._kinds(args))
            if limits is not None and all(low <= args[i] <= high for i, low, high in limits):
                assert self.unchecked is not None
                return self.unchecked.compiled(*args), None, True
        try:
            return super().miss(*args, **kwargs)
        except _NotSupported:
            return NotImplemented, None, True

    def dispatch_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Missed:
        if self.is_operator and not all(map(_is_operand, args)):
            return _refused(self.options.name, args), None, True
        options = self.options
        dynamic = [arg for i, arg in enumerate(args) if i not in options.static_argnums]
        keywords = [arg for name, arg in kwargs.items() if name not in options.static_argnames]
        leaves = pytree.leaves((dynamic, keywords))
        if any(type(leaf) is Literal for leaf in leaves):  # of a function that calls another one
            args, kwargs = pytree.map(_scalar, (args, kwargs))
            return self.compiled(*args, **kwargs), None, True
        for leaf in leaves:
            if not isinstance(leaf, _ARRAY_TYPES) and not buffers.is_buffer(leaf):
                # A tracer without its trace, an object with __array__, or no array at all: the
                # function and the primitives that it calls know what to say.
                return self.plain(*args, **kwargs), None, True
            limit = _BITS_OF_INTEGERS[config.enable_x64.value]
            if type(leaf) is int and leaf.bit_length() >= limit:
                # Another argument may have a dtype that holds it, which the function will ask; the
                # error of the usual way names the argument.
                with contextlib.suppress(OverflowError):
                    return self.plain(*args, **kwargs), None, True
        return super().dispatch_call(args, kwargs)

    def staged(self, parts: Call, avals: Sequence[Any]) -> StagedProgram:
        found = super().staged(parts, avals)
        integers = [(n, dtype) for n, dtype in found.narrowed if type(parts.leaves[n]) is int]
        for number, dtype in integers:
            dtypes.check_fits(parts.leaves[number], dtype, self.options.name)
        kinds = None if not found.narrowed or parts.kwargs else self._kinds(parts.args)
        if kinds is not None:  # each positional argument is one leaf then
            self.unchecked = self.unchecked or _EagerFunction(
                self.plain, self.options, self.is_operator, checks=False
            )
            if len(self.limits) >= _MAX_LIMITS:
                self.limits.clear()
            bounds = [(parts.positions[n], dtypes.iinfo(dtype)) for n, dtype in integers]
            self.limits[kinds] = tuple([(i, int(b.min), int(b.max)) for i, b in bounds])
        return found

    def _stage(self, parts: Call, avals: Sequence[Any], names: tuple[str, ...]) -> StagedProgram:
        staged = super()._stage(parts, avals, names)
        if self.checks:
            staged.narrowed = _narrowed(staged.closed.jaxpr)
        return staged

    def _kinds(self, args: Sequence[Any]) -> Any:
        """What decides the program for arrays and Python numbers; None for other arguments."""
        statics = self.options.static_argnums
        kinds: list[Any] = [config.trace_key()]
        for i, arg in enumerate(args):
            if i in statics:
                kinds.append(arg)
            elif type(arg) is Array:
                kinds.append(arg.aval)
            elif type(arg) in _PYTHON_NUMBERS:
                kinds.append(type(arg))
            else:
                return None
        return tuple(kinds)

    def clear(self) -> None:
        super().clear()
        self.limits.clear()
        if self.unchecked is not None:
            self.unchecked.clear()

    def hashable(self) -> Callable[..., Any]:
        """The compiled function, which also takes lists and arrays as static arguments.

        C++ raises for what has no hash before it asks Python, so that this costs a call in between.
        """
        compiled, options = self.compiled, self.options

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return compiled(*args, **kwargs)
            except ValueError as error:
                if not str(error).startswith("Non-hashable static arguments"):
                    raise
            if any(isinstance(value, Tracer) for value in (*args, *kwargs.values())):
                return self.inline(*args, **kwargs)  # which knows what must not be traced
            numbers, names = options.static_argnums, options.static_argnames
            return compiled(
                *[_hashable(a, options.name) if i in numbers else a for i, a in enumerate(args)],
                **{k: _hashable(v, options.name) if k in names else v for k, v in kwargs.items()},
            )

        return update_wrapper(call, self.plain)


def _scalar(value: Any) -> Any:
    return literal_value(value) if type(value) is Literal else value


def _narrowed(jaxpr: Jaxpr) -> tuple[tuple[int, Any], ...]:
    """Arguments that may be Python integers and become integers of a dtype that holds fewer."""
    numbers = {
        var: number
        for number, var in enumerate(jaxpr.invars)
        if var.aval.weak_type and not var.aval.shape and dtypes.kind_of(var.aval.dtype) == "i"
    }
    if not numbers:
        return ()
    from dovetail._core.basis.elementwise import (
        convert_element_type_p,  # deferred: loads primitives
    )
    from dovetail._core.basis.structural import broadcast_in_dim_p, reshape_p  # deferred: likewise

    found = []
    for eqn in jaxpr.eqns:
        operand = eqn.invars[0] if eqn.invars else None
        if type(operand) is not Var or operand not in numbers:
            continue
        number = numbers[operand]
        if eqn.primitive is broadcast_in_dim_p or eqn.primitive is reshape_p:
            numbers[eqn.outvars[0]] = number
        elif eqn.primitive is convert_element_type_p:
            dtype = eqn.params["new_dtype"]
            if dtypes.kind_of(dtype) in ("i", "u") and not dtypes.holds(dtype, operand.aval.dtype):
                found.append((number, dtype))
    return tuple(found)


def _hashable(value: Any, name: str) -> Any:
    """A static argument, such as an axis, as a hashable value: lists and arrays become tuples.

    Raises:
        TypeError: it is something else without a hash.
    """
    if isinstance(value, (list, tuple)):
        return tuple([_hashable(v, name) for v in value])
    if isinstance(value, np.ndarray) or type(value) is Array:
        return _hashable(value.tolist(), name)
    try:
        hash(value)
    except TypeError as error:
        raise TypeError(
            f"{name} got {value!r:.80} of type {type(value).__name__} for an argument that is part "
            f"of the program ({error}); pass a number, a string or a tuple"
        ) from None
    return value


def _refused(name: str, args: Sequence[Any]) -> Any:
    """What an operator gives for operands that it does not take.

    Raises:
        TypeError: one is a container, whose own operator would be wrong: ``[1] * scalar`` repeats.
    """
    for value in args:
        if isinstance(value, (list, tuple, set, dict)):
            kind = type(value).__name__
            raise TypeError(
                f"unsupported operand types for {name}: an array and a {kind}; write "
                f"dovetail.numpy.asarray(...) around the {kind} first"
            )
    return NotImplemented


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
        A function object of jaxlib, which binds as a method; a Python function around one where
        there are static arguments.
    """
    shown = name or str(getattr(function, "__name__", type(function).__name__))
    options = JitOptions(
        name=shown,
        static_argnums=tuple(sorted(static_argnums)),
        static_argnames=tuple(sorted(static_argnames)),
        inline=True,
    )
    eager = _EagerFunction(function, options, is_operator)
    return eager.hashable() if static_argnums or static_argnames else eager.compiled


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
