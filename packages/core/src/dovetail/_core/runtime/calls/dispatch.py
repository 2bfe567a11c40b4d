"""Eager evaluation of primitives, each as a compiled program of its own.

Importing this module makes arrays work: it registers the evaluator of primitives with `trace`, and
adds operators and methods to `Array`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import caches, config, dtypes, events, native
from dovetail._core.base.bindings import JaxRuntimeError, get_traceback
from dovetail._core.base.monitoring import log_duration, timed
from dovetail._core.base.tracebacks import boundary, hide_frames
from dovetail._core.basis.structural import broadcast_in_dim_p
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import (
    ClosedJaxpr,
    DebugInfo,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    no_effects,
)
from dovetail._core.ir.walk import all_equations, jaxprs_in_params
from dovetail._core.ops.calls.placement import set_placement
from dovetail._core.plugins.manager import manager
from dovetail._core.runtime.arrays.array import Array
from dovetail._core.runtime.arrays.held_values import MOST_HELD, held_value
from dovetail._core.runtime.calls.cache_misses import cause_of_compilation, log_compiled
from dovetail._core.runtime.calls.direct_calls import (
    MOST_IN_CHAIN,
    MOST_OPERANDS,
    may_be_direct,
    refuse,
    tell_way,
    way_of_primitive,
)
from dovetail._core.runtime.calls.eager_functions import compile_eager as compile_eager
from dovetail._core.runtime.calls.fastpath import fastpath, pjit_function
from dovetail._core.runtime.calls.followed_keys import follow_primitive
from dovetail._core.runtime.calls.jit import Missed
from dovetail._core.runtime.calls.shortages import explained_shortage
from dovetail._core.runtime.calls.special_values import watching
from dovetail._core.runtime.devices import clients, process_ends
from dovetail._core.runtime.devices.address_space import reserve_for_compiler
from dovetail._core.runtime.devices.host_functions import host_functions
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.runtime.devices.named_sharding import NamedSharding, over_current_mesh
from dovetail._core.runtime.programs.arguments import (
    AskedPlaces,
    literal_value,
    partitioning,
    resolve_asked,
    resolve_device,
    shardings_inside,
)
from dovetail._core.trace.divisions import is_lenient
from dovetail._core.trace.primitive import AxesDiffer, Primitive
from dovetail._core.trace.state import set_evaluator
from dovetail._core.trace.tracer import register_array_class
from dovetail._core.transform.interning import holder_of
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.runtime.programs.compilation import CompilerOptions
    from dovetail._core.runtime.programs.program import LoadedProgram

__all__ = ["apply_primitive", "compile_eager", "compile_jaxpr"]


def compile_jaxpr(
    closed: ClosedJaxpr,
    sharding: Any,
    *,
    name: str,
    compiler_options: CompilerOptions | None = None,
    **options: Any,
) -> LoadedProgram:
    """Lower a jaxpr for a device's platform and compile it.

    Args:
        closed: the jaxpr.
        sharding: a single-device sharding: where it runs.
        name: the function's name.
        compiler_options: options for the compiler.
        **options: options of `lower_jaxpr`, such as ``donated``.
    """
    process_ends.check()
    reserve_for_compiler(name)
    from dovetail._core.lower.lowering import lower_jaxpr  # deferred: loads MLIR
    from dovetail._core.runtime.programs.program import compile_module  # deferred: as above

    clients.check_runs(sharding._device, f"{name} cannot be computed on it")
    start = time.perf_counter()
    platform = clients.platform_of(sharding._device)
    sharding = sharding._typing(closed.out_avals)
    options |= partitioning(sharding, len(closed.in_avals))
    with timed("lowered", name):
        lowered = lower_jaxpr(closed, name=name, platforms=(platform,), **options)
    log_duration("lowered", lowered.name, time.perf_counter() - start)
    with timed("compiled", name):
        return compile_module(lowered, sharding, compiler_options)


# -----------------------------------------------------------------------------------------
# primitives


@caches.lru_cache(maxsize=4096)
def _remembered_program(
    primitive: Primitive, params: _Params, avals: tuple[Any, ...], key: Any, sharding: Any
) -> LoadedProgram:
    """The program of a primitive. ``key`` holds the options that affect tracing."""
    return _primitive_program(primitive, params, avals, sharding)


def _primitive_program(
    primitive: Primitive, params: _Params, avals: tuple[Any, ...], sharding: Any
) -> LoadedProgram:
    jaxpr = _jaxpr_of(primitive, params, avals)
    name = f"the operation {primitive.name}"
    operands = ", ".join(aval.short_name() for aval in avals)
    cause = cause_of_compilation(name, f"({operands})", sharding._device, eager=True)
    start = time.perf_counter()
    try:
        with events.because(cause, primitive.name):
            program = compile_jaxpr(ClosedJaxpr(jaxpr, []), sharding, name=primitive.name)
    except (JaxRuntimeError, MemoryError) as error:
        raise explained_shortage(error, primitive.name, jaxpr) from None
    log_compiled(name, cause, time.perf_counter() - start)
    return program


def _jaxpr_of(primitive: Primitive, params: _Params, avals: tuple[Any, ...]) -> Jaxpr:
    """The program of one primitive."""
    outs, given = primitive.inferred(avals, params.params)
    if type(outs) is AxesDiffer:  # operands are cast first
        info = DebugInfo("evaluation", primitive.name)

        def function(*args: Any) -> Any:
            results = primitive.bind(*args, **given)
            return results if primitive.multiple_results else [results]

        return stage(function, avals, info).jaxpr
    several = primitive.multiple_results
    invars = [Var(aval) for aval in avals]
    outvars = [Var(aval) for aval in (outs if several else [outs])]
    effects = primitive.effects(*avals, **given)
    eqn = JaxprEqn(invars, outvars, primitive, given, effects, get_traceback())
    return Jaxpr([], invars, outvars, [eqn], effects, DebugInfo("evaluation", primitive.name))


class _Params:
    """Parameters of a primitive as a key that also compares the types of their values."""

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
    """Unhashable parameters, which are never part of a key."""

    __slots__ = ()

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params


class _EagerPrimitive:
    """The C++ function that evaluates a primitive with fixed parameters.

    Args:
        primitive: the primitive.
        params: its parameters.
        programs: the cache of its programs; the one shared by all primitives if None.
    """

    def __init__(
        self, primitive: Primitive, params: _Params, programs: dict[Any, LoadedProgram] | None
    ) -> None:
        self.primitive = primitive
        self.params = params
        self.programs = programs
        self.compiled = pjit_function(
            primitive.name,
            self.evaluate,
            self.cache_miss,
            offer=self._directly,
            key="dovetail primitive",
        )
        self.need_programs: set[tuple[Any, ...]] = set()
        inside = [e for jaxpr in jaxprs_in_params(params.params) for e in all_equations(jaxpr)]
        asking = (primitive.device_parameter, primitive.sharding_parameter)
        if any(params.params.get(name) is not None for name in asking if name):
            inside.append(JaxprEqn((), (), primitive, params.params, no_effects, None))
        self.inside = inside
        self.asked: Sequence[Any] = ()
        mesh = params.params.get(primitive.device_parameter)
        if isinstance(mesh, Mesh):
            specs = primitive.result_specs(params.params)
            self.asked = [None if spec is None else NamedSharding(mesh, spec) for spec in specs]

    def place(self, args: Sequence[Any]) -> tuple[Any, bool]:
        """Where it runs, and whether its results are committed to that place."""
        inside = shardings_inside(self.inside) if self.inside else ()
        if not inside:
            return resolve_device(args, self.primitive.name)
        asked = AskedPlaces([None] * len(args), self.asked, inside)
        return resolve_asked(args, asked, self.primitive.name), True

    def run(self, args: Sequence[Any]) -> tuple[Any, LoadedProgram, bool]:
        sharding, committed = self.place(args)
        avals = tuple([aval_of(arg) for arg in args])
        if self.programs is None:
            program = _remembered_program(
                self.primitive, self.params, avals, config.trace_key(), sharding
            )
        else:
            key = (avals, config.trace_key(), sharding)
            cached = self.programs.get(key)
            if cached is None:
                cached = _primitive_program(self.primitive, self.params, avals, sharding)
                self.programs[key] = cached
            program = cached
        followed = follow_primitive(self.primitive, self.params.params, args, program.out_avals)
        try:
            outs = program(args, committed)
        except FloatingPointError as error:
            from dovetail._core.runtime.calls import value_explanations  # deferred: seldom needed

            raise value_explanations.explained_operation(
                error, self.primitive, self.params.params, args, program.effects
            ) from None
        except JaxRuntimeError as error:
            raise self._explained_shortage(error, avals, program) from None
        if followed is not None:
            followed.finish(outs)
        if watching():
            from dovetail._core.runtime.calls import value_explanations  # deferred: seldom needed

            value_explanations.note_operation(
                program, self.primitive, self.params.params, args, outs
            )
        return (outs if self.primitive.multiple_results else outs[0]), program, committed

    def _explained_shortage(
        self, error: BaseException, avals: tuple[Any, ...], program: LoadedProgram
    ) -> BaseException:
        jaxpr = _jaxpr_of(self.primitive, self.params, avals)
        return explained_shortage(error, self.primitive.name, jaxpr, (), program)

    def evaluate(self, *args: Any) -> Any:
        """Called by C++ while ``disable_jit`` is on: primitives are compiled even then."""
        return self.run(args)[0]

    def _directly(self, *args: Any) -> Any:
        """The result of a call that needs no program; None if it needs one."""
        if self.inside or self.programs is not None or not may_be_direct(args, MOST_IN_CHAIN):
            return None
        avals = tuple(map(aval_of, args))
        if avals in self.need_programs:
            return None
        jaxpr = _jaxpr_of(self.primitive, self.params, avals)
        way = way_of_primitive(jaxpr, args)
        if way is None:
            from dovetail._core.runtime.calls import chains  # deferred: not for `x + 1`

            if chains.may_be_chained(self.primitive, avals):
                several = self.primitive.multiple_results
                way = chains.chained_way_of_primitive(jaxpr, args, several)
            elif len(args) <= MOST_OPERANDS:
                refuse(self.compiled, args)
                return None
        result = None if way is None else tell_way(self.compiled, way, args)
        if result is None:  # for other shapes there may be a way
            self._note_program(avals)
        return result

    def _note_program(self, avals: tuple[Any, ...]) -> None:
        if len(self.need_programs) >= _MOST_NOTED:
            self.need_programs.clear()
        self.need_programs.add(avals)

    def cache_miss(self, *args: Any) -> Missed:
        if process_ends.ended:
            process_ends.hold(self.compiled._clear_cache)
        try:
            result = self._directly(*args)
            if result is not None:
                return result, None, True
            result, program, committed = self.run(args)
            data = fastpath(program, args, result, committed)
        except BaseException as error:
            self.compiled._clear_cache()
            hide_frames(error)
            raise
        return result, data, data is None


@caches.lru_cache(maxsize=8192)
def _eager_primitive(primitive: Primitive, key: Any, types: Any, leniently: bool) -> Any:
    own: dict[Any, Any] | None = {} if leniently else None
    return _EagerPrimitive(primitive, _Params(dict(key)), own).compiled


#: Types of operands, of one primitive, of which is known that they need a program.
_MOST_NOTED: Final = 64

# The functions of primitives without parameters.
_plain: Final[dict[Primitive, Any]] = {}
caches.register(_plain.clear)


def apply_primitive(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Evaluate a primitive on concrete values; called by `EvaluationTrace`.

    Args:
        primitive: the primitive.
        args: arrays, NumPy values, literals.
        params: its parameters.
    """
    if primitive is broadcast_in_dim_p and type(args[0]) is Literal:
        filled = _filled(args[0], **params)
        if filled is not None:
            return filled
    # What a backward pass gives up is an error elsewhere: it has programs of its own.
    leniently = is_lenient() and any(map(_is_divided, args))
    compiled = None if params or leniently else _plain.get(primitive)
    if compiled is None:
        evaluate = getattr(primitive, "evaluate", None)
        if evaluate is not None:
            if primitive.calls_host:
                import dovetail._core.runtime.programs.callbacks  # noqa: F401  # deferred: few do
            return evaluate(*args, **params)
        compiled = _compiled_primitive(primitive, params, leniently)
    return compiled(*(_with_values(args) if Literal in map(type, args) else args))


def _with_values(args: Sequence[Any]) -> Sequence[Any]:
    """Operands with values in place of literals."""
    values = [literal_value(arg) if type(arg) is Literal else arg for arg in args]
    if not host_functions():
        return values
    if any(type(x) is Array and held_value(x) is None for x in values):
        return values
    # Without a program operands are arrays and Python's numbers.
    for i, value in enumerate(values):
        held = native.calls.hold(np.asarray(value)) if isinstance(value, np.generic) else None
        if held is not None:
            values[i] = held
    return values


def _filled(number: Literal, *, shape: tuple[int, ...], sharding: Any, **params: Any) -> Any:
    """An array of one number that needs no program; None if it needs one."""
    aval = number.aval
    if sharding is not None or dtypes.is_extended(aval.dtype):
        return None
    if not host_functions() or prod(shape) * aval.dtype.itemsize > MOST_HELD:
        return None
    repeated = np.empty(shape, aval.dtype)
    repeated.fill(number.val)
    return native.calls.hold(repeated, aval.weak_type)


def _is_divided(arg: Any) -> bool:
    return type(arg) is Array and arg.aval.division is not None


def _compiled_primitive(
    primitive: Primitive, params: dict[str, Any], leniently: bool
) -> Callable[..., Any]:
    key = (primitive, tuple(params.items()), tuple(map(type, params.values())), leniently)
    holder = holder_of(params) if primitive.multiple_results else None
    try:
        if holder is None:
            compiled = _eager_primitive(*key)
        else:
            compiled = holder.memory.get(key)
            if compiled is None:
                own = _EagerPrimitive(primitive, _Params(params), {})
                compiled = holder.memory[key] = own.compiled
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _EagerPrimitive(primitive, _Unhashable(params), {}).evaluate
    if not params and not leniently:
        _plain[primitive] = compiled
    return compiled  # type: ignore[no-any-return]


# -----------------------------------------------------------------------------------------
# operators and methods of arrays

_OPERAND_COUNT_OF_UNARY: Final = frozenset({"__pos__", "__neg__", "__abs__", "__invert__"})
#: Operators but those of `*_matmul__`, whose results depend on shapes.
_ELEMENTWISE: Final = _OPERAND_COUNT_OF_UNARY | {
    f"__{prefix}{name}__"
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"),
        *("lshift", "rshift", "lt", "le", "eq", "ne", "gt", "ge"),
    )
    for prefix in ("", "r")
}
_NO_OPERATORS: Final = frozenset({"__getitem__", "__contains__", "__round__"})


def _adapt(name: str, function: Callable[..., Any]) -> Any:
    """The form of an operator or method that is set on `Array`."""
    if name not in manager().array_methods().compiled:
        return boundary(function)
    is_operator = (
        name.startswith("__") and name not in _OPERAND_COUNT_OF_UNARY and name not in _NO_OPERATORS
    )
    return compile_eager(
        function, name=name.strip("_"), is_operator=is_operator, elementwise=name in _ELEMENTWISE
    )


register_array_class(Array, _adapt)


def _placed(x: Any, device: Any, may_alias: bool | None) -> Any:
    from dovetail._core.runtime.arrays.transfer import placed_now  # deferred: few values are moved

    return placed_now(x, device, may_alias)


set_placement(_placed, over_current_mesh)
set_evaluator(apply_primitive)  # last: without it, this module is imported again
