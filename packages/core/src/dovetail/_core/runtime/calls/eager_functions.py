"""Eager functions: compiled as one program when called on arrays, inlined when traced.

`EagerFunction.miss` handles the calls that need no program: calls under a trace, calls of
operators that do not support their operands, and calls with values that are not arrays. All others
go to a `JitFunction`, as described in `calls/jit.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import update_wrapper, wraps
from typing import Any, Final

import numpy as np

from dovetail._core.base import config, dtypes, pytree
from dovetail._core.base.tracebacks import boundary, explain_call, hide_frames
from dovetail._core.basis.elementwise import convert_element_type_p
from dovetail._core.basis.structural import broadcast_in_dim_p, reshape_p
from dovetail._core.ir.avals import array_conversion, aval_of
from dovetail._core.ir.jaxpr import Jaxpr, Literal, Var
from dovetail._core.runtime.arrays import buffers
from dovetail._core.runtime.arrays.array import Array, KeyArray
from dovetail._core.runtime.calls.direct_calls import (
    ONE_LEAF,
    compute_directly,
    may_be_direct,
    way_of,
)
from dovetail._core.runtime.calls.fastpath import does_all
from dovetail._core.runtime.calls.jit import CallArguments, JitFunction, Missed
from dovetail._core.runtime.calls.staged_program import JitOptions, StagedProgram
from dovetail._core.runtime.devices import process_ends
from dovetail._core.runtime.programs.arguments import literal_value
from dovetail._core.trace.state import evaluation_trace, state
from dovetail._core.trace.tracer import ArrayClass, Tracer

_MAX_LIMITS: Final = 256
_BITS_OF_INTEGERS: Final = {False: 32, True: 64}
_PYTHON_NUMBERS: Final = frozenset({bool, int, float, complex})
_HOST_TYPES: Final = (bool, int, float, complex, np.ndarray, np.generic)
_CONTAINERS: Final = frozenset({list, tuple, set, dict})
_ARRAY_TYPES: Final = (*_HOST_TYPES, Array)
_PLAIN: Final = frozenset({int, float, np.ndarray, Array, KeyArray})


class _NotSupported(Exception):
    """A function returned NotImplemented while it was staged."""


class EagerFunction:
    """A function that is compiled as one unit when called on arrays, and inlined when traced.

    Args:
        function: the function.
        options: how it is compiled.
        is_operator: whether to return NotImplemented for operands that are not arrays.
        elementwise: whether results depend on operands element by element, whatever their shapes.
            Where the backend can compute them for small arrays, no program is made.
        checks: whether to check that Python integers fit the narrower dtype they are converted to.
            Later calls go to a twin without checks, which C++ may cache.
    """

    __slots__ = (
        "_limits",
        "_unchecked",
        "compiled",
        "elementwise",
        "engine",
        "function",
        "is_operator",
        "options",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        options: JitOptions,
        is_operator: bool,
        elementwise: bool = False,
        checks: bool = True,
    ) -> None:
        @wraps(function)
        def supported(*args: Any, **kwargs: Any) -> Any:
            out = function(*args, **kwargs)
            if out is NotImplemented:
                raise _NotSupported
            return out

        # C++ takes the signature for help() from this function.
        @boundary
        @wraps(function)
        def inlined(*args: Any, **kwargs: Any) -> Any:
            return self.inline(*args, **kwargs)

        self.function = function
        self.options = options
        self.is_operator = is_operator
        self.elementwise = elementwise
        self._limits: dict[Any, tuple[tuple[int, int, int], ...]] = {}
        self._unchecked: EagerFunction | None = None
        self.engine = JitFunction(
            supported,
            options,
            uncompiled=inlined,
            cache_miss=self.miss,
            check_call=self._check_integers if checks else None,
            explain=self._explain,
            offer=self._directly if elementwise else self._at_first,
            offer_once=not elementwise,
            has_lines=False,
        )
        self.compiled = self.engine.compiled
        update_wrapper(self.compiled, function)

    def inline(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself; NotImplemented if an operator does not support an operand."""
        if self.is_operator and not all(map(_is_operand, args)):
            return unsupported_operands(self.options.name, args)
        return self.function(*args, **kwargs)

    def miss(self, *args: Any, **kwargs: Any) -> Missed:
        """Serve a call that the C++ callable has no entry for."""
        if process_ends.ended:
            process_ends.hold(self.compiled._clear_cache)
        tracing = state.trace is not evaluation_trace
        if self._limits and not kwargs and not tracing:
            limits = self._limits.get(self._kinds(args))
            if limits is not None and all(low <= args[i] <= high for i, low, high in limits):
                assert self._unchecked is not None
                return self._unchecked.compiled(*args), None, True
        try:
            if tracing:
                function = self.inline if self.is_operator else self.function
                return function(*args, **kwargs), None, True
            return self._dispatch(args, kwargs)
        except BaseException as error:
            if tracing:  # C++ has cached nothing
                if isinstance(error, TypeError):
                    explain_call(error, self.function, self.options.name)
                raise
            if self._is_refusal(error):
                return NotImplemented, None, True
            raise

    def _is_refusal(self, error: BaseException) -> bool:
        """Whether an operator does not support an operand; other errors are made ready to raise."""
        # Otherwise a signature whose first call raised would stay on the Python path forever.
        self.compiled._clear_cache()
        if isinstance(error, _NotSupported):
            return True
        if isinstance(error, TypeError):
            explain_call(error, self.function, self.options.name)
        hide_frames(error)
        return False

    def _dispatch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Missed:
        if self.is_operator and not all(map(_is_operand, args)):
            return unsupported_operands(self.options.name, args), None, True
        options = self.options
        dynamic = [arg for i, arg in enumerate(args) if i not in options.static_argnums]
        keywords = [arg for name, arg in kwargs.items() if name not in options.static_argnames]
        leaves = pytree.leaves((dynamic, keywords))
        if any(type(leaf) is Literal for leaf in leaves):  # from another function's body
            args, kwargs = pytree.map(_scalar, (args, kwargs))
            return self.compiled(*args, **kwargs), None, True
        for leaf in leaves:
            if not isinstance(leaf, _ARRAY_TYPES) and not buffers.is_buffer(leaf):
                # A leaked tracer, an object with __array__, or no array at all: the function and
                # the primitives that it calls handle these, or raise a clear error.
                return self.function(*args, **kwargs), None, True
            limit = _BITS_OF_INTEGERS[config.enable_x64.value]
            if type(leaf) is int and leaf.bit_length() >= limit:
                # Another argument may have a dtype that holds the integer, as the function itself
                # will check. If not, the usual path raises an error that names the argument.
                with contextlib.suppress(OverflowError):
                    return self.function(*args, **kwargs), None, True
        if config.disable_jit.value:
            # C++ checks this itself, but once jax is imported it reads jax's option instead.
            return self.inline(*args, **kwargs), None, True
        if self.elementwise and not kwargs:
            result = self._directly(*args)
            if result is not None:
                return result, None, True
        return self.engine.dispatch_call(args, kwargs)

    def _at_first(self, *args: Any, **kwargs: Any) -> Any:
        """The result of a call that needs no program, before there is one; None if it needs one."""
        numbers, names = self.options.static_argnums, self.options.static_argnames
        given = [arg for i, arg in enumerate(args) if i not in numbers]
        given += [arg for name, arg in kwargs.items() if name not in names]
        fixed = [args[i] for i in numbers if i < len(args)]
        fixed += [kwargs[name] for name in names if name in kwargs]
        try:
            hash(tuple(fixed))
        except TypeError:
            return None  # they are made hashable, or an error tells of them
        limit = _BITS_OF_INTEGERS[config.enable_x64.value]
        if any(
            type(x) not in _PLAIN or (type(x) is int and x.bit_length() >= limit) for x in given
        ):
            return None
        try:
            return self.engine.offer(*args, **kwargs)
        except BaseException as error:
            if self._is_refusal(error):
                return NotImplemented
            raise

    def _directly(self, *args: Any) -> Array | None:
        """The result of a call that needs no program, now and later; None if it needs one."""
        if not may_be_direct(args):
            return None
        arguments = self.engine.flatten_args(args, {})
        staged = self.engine.staged_for(arguments, list(map(aval_of, arguments.leaves)))
        if staged.uses or staged.out_tree != ONE_LEAF:
            return None
        return compute_directly(self.compiled, way_of(staged.closed, args), args)

    def _check_integers(self, arguments: CallArguments, staged: StagedProgram) -> None:
        """Check that Python integers fit their dtype, and store the limits for later calls.

        Raises:
            OverflowError: an integer does not fit.
        """
        if staged.narrowed is None:
            staged.narrowed = _narrowed(staged.closed.jaxpr)
        integers = [(n, d) for n, d in staged.narrowed if type(arguments.leaves[n]) is int]
        for number, dtype in integers:
            dtypes.fitted(arguments.leaves[number], dtype, self.options.name)
        kinds = None if not staged.narrowed or arguments.kwargs else self._kinds(arguments.args)
        if kinds is not None:  # each positional argument is one leaf then
            self._unchecked = self._unchecked or EagerFunction(
                self.function, self.options, self.is_operator, checks=False
            )
            if len(self._limits) >= _MAX_LIMITS:
                self._limits.clear()
            bounds = [(arguments.positions[n], dtypes.iinfo(dtype)) for n, dtype in integers]
            self._limits[kinds] = tuple([(i, int(b.min), int(b.max)) for i, b in bounds])

    def _kinds(self, args: Sequence[Any]) -> Any:
        """The program's key for arrays and Python numbers; None for other arguments."""
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

    def hashable(self) -> Callable[..., Any]:
        """The compiled function, wrapped to accept lists and arrays as static arguments.

        C++ raises for unhashable values before it calls Python, so a wrapper is needed.
        """
        compiled = self.compiled
        if does_all(()):
            return compiled  # type: ignore[no-any-return]

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return compiled(*args, **kwargs)
            except ValueError as error:
                raised = error
            # Not above: an interrupt that has ended a kernel would seem to come of the error.
            try:
                if not str(raised).startswith("Non-hashable static arguments"):
                    raise raised
            finally:
                del raised  # it holds this frame
            return self._with_hashable_statics(args, kwargs)

        return update_wrapper(call, self.function)

    @boundary
    def _explain(
        self, error: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any] | None:
        """The result of a call after all, if only a static argument was not hashable."""
        text = str(error) if isinstance(error, ValueError) else ""
        if not text.startswith("Non-hashable static arguments"):
            return None
        return (self._with_hashable_statics(args, kwargs),)

    def _with_hashable_statics(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call whose static arguments are not all hashable."""
        options = self.options
        if any(isinstance(value, Tracer) for value in (*args, *kwargs.values())):
            return self.inline(*args, **kwargs)  # raises for what must not be traced
        numbers, names = options.static_argnums, options.static_argnames
        return self.compiled(
            *[_hashable(a, options.name) if i in numbers else a for i, a in enumerate(args)],
            **{k: _hashable(v, options.name) if k in names else v for k, v in kwargs.items()},
        )


def _scalar(value: Any) -> Any:
    return literal_value(value) if type(value) is Literal else value


def _narrowed(jaxpr: Jaxpr) -> tuple[tuple[int, Any], ...]:
    """Arguments that may be Python integers and are converted to a narrower integer dtype."""
    numbers = {
        var: number
        for number, var in enumerate(jaxpr.invars)
        if var.aval.weak_type and not var.aval.shape and dtypes.kind_of(var.aval.dtype) == "i"
    }
    if not numbers:
        return ()
    narrowed = []
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
                narrowed.append((number, dtype))
    return tuple(narrowed)


def _hashable(value: Any, name: str) -> Any:
    """Make a static argument, such as an axis, hashable: lists and arrays become tuples.

    Raises:
        TypeError: it is an unhashable value of another type.
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


def unsupported_operands(name: str, args: Sequence[Any]) -> Any:
    """The result of an operator for unsupported operands: NotImplemented.

    Python then tries the operator of the other operand, which may be that of a user's class.

    Args:
        name: the operator, without underscores.
        args: its operands.

    Raises:
        TypeError: one is a container, whose own operator would be wrong: ``[1] * scalar`` repeats.
    """
    for value in args:
        kind = type(value)
        if kind in _CONTAINERS or (
            isinstance(value, (list, tuple))
            and name in ("mul", "rmul")
            and kind.__rmul__ in (list.__rmul__, tuple.__rmul__)
        ):
            raise TypeError(
                f"unsupported operand types for {name}: an array and a {kind.__name__}; write "
                f"dovetail.numpy.asarray(...) around the {kind.__name__} first"
            )
    return NotImplemented


def _is_operand(value: Any) -> bool:
    """Whether an operator supports a value; otherwise Python tries the value's own operator."""
    return (
        isinstance(value, (ArrayClass, *_HOST_TYPES))
        or buffers.is_buffer(value)
        or array_conversion(value) is not None
    )


def compile_eager(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    is_operator: bool = False,
    elementwise: bool = False,
) -> Any:
    """Make a function of arrays run as one compiled program, through C++ on a warm cache.

    Under a transformation the function is called directly. New values of arguments that are not
    static do not cause compilation.

    Args:
        function: a function from pytrees of arrays to pytrees of arrays.
        name: its name in profiles; the function's own if None.
        static_argnums: indices of positional arguments that are part of the program; hashable.
        static_argnames: names of such keyword arguments.
        is_operator: whether to return NotImplemented for operands that are not arrays.
        elementwise: whether results depend on operands element by element, whatever their shapes.
            Where the backend can compute them for small arrays, no program is made.

    Returns:
        A jaxlib function object, which binds as a method; a Python function around one if there
        are static arguments.
    """
    shown = name or str(getattr(function, "__name__", type(function).__name__))
    options = JitOptions(
        name=shown,
        static_argnums=tuple(sorted(static_argnums)),
        static_argnames=tuple(sorted(static_argnames)),
        inline=True,
    )
    eager = EagerFunction(function, options, is_operator, elementwise)
    return eager.hashable() if static_argnums or static_argnames else eager.compiled
