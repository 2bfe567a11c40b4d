"""The engine behind `jit`: from the arguments of a call to the result of a compiled program.

For each argument signature, C++ caches what it needs to run a program without Python. If it has
no entry, it calls `JitFunction.miss` with the arguments, and the call takes these steps:

1. `dispatch_call` runs the call; it forwards one that needs no program of its own;
2. `flatten_args` separates static arguments and flattens the others into leaves;
3. `staged_for` looks up the signature; on a miss it stages the function (`_stage`), and
   logs why if ``explain_cache_misses`` is on;
4. `_place` decides which device the program runs on;
5. `StagedProgram.program` lowers and compiles it for that device, once (memory, then disk);
6. the program runs, and `fastpath` returns what C++ needs for the next call with the signature.

Eager functions (`calls/eager_functions.py`) hold a `JitFunction` and take the same steps.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

from dovetail._core.base import caches, config, events, pytree
from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.base.monitoring import log_duration, timed
from dovetail._core.base.tracebacks import boundary, hide_frames
from dovetail._core.base.wrapping import update_wrapper
from dovetail._core.basis.operands import as_result
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import DebugInfo
from dovetail._core.ops.calls.sharding_constraint import constrain
from dovetail._core.runtime.arrays.buffers import is_buffer
from dovetail._core.runtime.arrays.donation import donating, raise_explained
from dovetail._core.runtime.arrays.failures import original
from dovetail._core.runtime.calls.cache_misses import TraceSignature, explain_miss, log_traced
from dovetail._core.runtime.calls.direct_calls import Way, tell_way
from dovetail._core.runtime.calls.fastpath import (
    Explain,
    FastpathData,
    does_all,
    fastpath,
    pjit_function,
)
from dovetail._core.runtime.calls.followed_keys import follow_program
from dovetail._core.runtime.calls.shortages import watch
from dovetail._core.runtime.calls.special_values import kept, watching
from dovetail._core.runtime.calls.staged_program import JitOptions, StagedProgram
from dovetail._core.runtime.devices import process_ends
from dovetail._core.runtime.devices.sharding import as_sharding
from dovetail._core.runtime.programs.arguments import (
    check_divisions,
    from_foreign,
    resolve_asked,
    resolve_place,
)
from dovetail._core.trace.mutable_references import Ref
from dovetail._core.trace.state import evaluation_trace, state
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.flattening import (
    FlatFunction,
    check_array_leaves,
    leaf_names,
    location_of,
    parameter_names,
)
from dovetail._core.transform.referencing import stage_using_references

#: What Python returns to C++ after a miss: the result, the data for a new entry (or None), and
#: whether C++ should drop the entry.
Missed = tuple[Any, FastpathData | None, bool]

#: A function that is called with ever new shapes must not fill up memory.
MOST_SIGNATURES: Final = 1024

#: How C++ begins the message of its error about a static argument.
_NOT_HASHABLE: Final = "Non-hashable static arguments"

# Staged programs by function: two jits of one function share them.
_staged: Final = caches.ByFunction()


class CallArguments(NamedTuple):
    """The arguments of one call, split and flattened.

    Attributes:
        args: the positional arguments.
        kwargs: the keyword arguments.
        positions: indices of the dynamic positional arguments.
        dynamic: the dynamic positional arguments.
        keywords: the dynamic keyword arguments.
        leaves: the leaves of both.
        in_tree: the structure of both.
        statics: the static arguments as a key: the position or name, type and value of each.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    positions: tuple[int, ...]
    dynamic: tuple[Any, ...]
    keywords: dict[str, Any]
    leaves: list[Any]
    in_tree: Any
    statics: tuple[Any, ...]


def direct_way(arguments: CallArguments, staged: StagedProgram) -> Way | None:
    """How a call with the arguments is computed without a program; None if it needs one."""
    if config.direct_calls.value == "none" or staged.uses or staged.narrowed or staged.empty:
        return None
    if any(staged.donated):
        from dovetail._core.lower.donation import match_donations  # deferred: few calls donate

        closed = staged.closed
        donation = match_donations(closed.in_avals, closed.out_avals, staged.donated)
        if donation.donors or donation.unused:
            return None  # what is lowered says which of them are deleted
    from dovetail._core.runtime.calls import chains  # deferred: not for `x + 1`

    args, kwargs = arguments.args, arguments.kwargs
    dynamic = [*arguments.positions, *sorted(arguments.keywords)]
    values: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
    given = {name: chains.Argument(value, None, (), 0) for name, value in values.items()}
    first = 0
    trees = [tree for half in arguments.in_tree.children() for tree in half.children()]
    for name, tree in zip(dynamic, trees, strict=True):
        end = first + tree.num_leaves
        given[name] = chains.Argument(None, tree, arguments.leaves[first:end], first)
        first = end
    return chains.chained_way(staged.closed, list(given.values()), staged.out_tree, tuple(kwargs))


class JitFunction:
    """A function to compile, and how; the Python side of the C++ callable.

    Args:
        function: the function.
        options: how it is compiled.
        uncompiled: the function to call while the option ``disable_jit`` is on; by default
            ``function``.
        cache_miss: the function that C++ calls if it has no entry; `miss` by default.
        check_call: checks the arguments of a call and its staged program before it runs.
        explain: explains errors of calls, where the compiled path is used.
        offer: gives the results of calls that need no program; see `pjit_function`. By default the
            function itself does so, before there is a first program.
        offer_once: whether ``offer`` is called only before there is a first program.
        has_lines: whether source lines in the trace are the function's own, not a caller's.
    """

    __slots__ = (
        "_check_call",
        "_guarded",
        "_may_be_direct",
        "_own",
        "callable",
        "compiled",
        "function",
        "has_lines",
        "options",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        options: JitOptions,
        *,
        uncompiled: Callable[..., Any] | None = None,
        cache_miss: Callable[..., Missed] | None = None,
        check_call: Callable[[CallArguments, StagedProgram], None] | None = None,
        explain: Explain | None = None,
        offer: Callable[..., Any] | None = None,
        offer_once: bool = False,
        has_lines: bool = True,
    ) -> None:
        self.function = function
        self.options = options
        self.has_lines = has_lines
        self._check_call = check_call
        self._own: dict[Any, StagedProgram] = {}
        #: Serves calls of programs that call Python; None before there is one.
        self._guarded: Any = None
        compiled = does_all(options.donate_argnums) and not process_ends.in_child()
        self._may_be_direct = compiled and options.is_plain
        if options.compiler_options:
            from dovetail._core.runtime.programs import compilation  # deferred: few give options

            compilation.check_options(dict(options.compiler_options))
        self.compiled = self._pjit_function(
            function if uncompiled is None else uncompiled,
            self.miss if cache_miss is None else cache_miss,
            options,
            self._explain if explain is None else explain,
            offer or (self._offer if self._may_be_direct else None),
            offer_once or offer is None,
        )
        update_wrapper(self.compiled, function)
        self.callable = self.compiled
        if does_all(options.donate_argnums):
            self.compiled._reduced = self._reduced
            return
        if options.donate_argnums or options.donate_argnames:
            self.callable = donating(
                self.compiled, options.name, options.donate_argnums, options.donate_argnames
            )
        if options.static_argnums or options.static_argnames:
            self.callable = self._naming_static_arguments(self.callable)

    def _reduced(self) -> str | tuple[Any, ...]:
        """What to pickle of the callable: its name, if that is how it is found."""
        name = getattr(self.compiled, "__qualname__", "")
        found: Any = sys.modules.get(getattr(self.compiled, "__module__", ""))
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self.compiled else (_unpickled, (self.function, self.options))

    def _pjit_function(
        self,
        function: Callable[..., Any],
        cache_miss: Callable[..., Missed],
        key: Hashable,
        explain: Explain | None,
        offer: Callable[..., Any] | None = None,
        offer_once: bool = False,
    ) -> Any:
        options = self.options
        needed = bool(options.static_argnums or options.static_argnames)
        if explain is None or explain == self._explain:
            needed = needed or bool(options.donate_argnums or options.donate_argnames)
        return pjit_function(
            options.name,
            function,
            cache_miss,
            static_argnums=options.static_argnums,
            static_argnames=options.static_argnames,
            donate_argnums=options.donate_argnums,
            donate_argnames=options.donate_argnames,
            explain=explain if needed else None,
            offer=offer,
            offer_once=offer_once,
            held=function is self.function,
            key=key,
        )

    @boundary
    def _explain(self, error: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise a clearer error than that of a call, if there is one."""
        options = self.options
        if isinstance(error, ValueError) and str(error).startswith(_NOT_HASHABLE):
            self.flatten_args(args, kwargs)  # raises
        if isinstance(error, (JaxRuntimeError, ValueError)) and (
            options.donate_argnums or options.donate_argnames
        ):
            leaves = pytree.leaves((args, dict(sorted(kwargs.items()))))
            raise_explained(
                error, options.name, leaves, lambda: leaf_names(self.function, args, kwargs)
            )

    def _naming_static_arguments(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the function to replace C++'s error about unhashable static arguments."""

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return compiled(*args, **kwargs)
            except ValueError as error:
                if not str(error).startswith(_NOT_HASHABLE):
                    raise
            return self.flatten_args(args, kwargs)  # raises

        return update_wrapper(call, compiled)

    def miss(self, *args: Any, **kwargs: Any) -> Missed:
        """Serve a call that the C++ callable has no entry for."""
        if process_ends.ended:
            process_ends.hold(self.compiled._clear_cache)
        try:
            if config.disable_jit.value:
                # C++ checks this itself, but once jax is imported it reads jax's option instead.
                return self.function(*args, **kwargs), None, True
            return self.dispatch_call(args, kwargs)
        except BaseException as error:
            # Otherwise a signature whose first call raised would stay on the Python path forever.
            self.compiled._clear_cache()
            hide_frames(error)
            raise

    def dispatch_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Missed:
        """Run a call that C++ has no entry for."""
        guarded = self._guarded
        if guarded is None:
            return self._dispatch(args, kwargs)
        try:
            result = guarded(*args, **kwargs)
        except (JaxRuntimeError, ValueError) as error:
            cause = original(error)
            if cause is error:
                raise
            raise cause from None
        # C++ is to ask again, and to remember nothing of a trace.
        return result, None, state.trace is not evaluation_trace

    def _miss_guarded(self, *args: Any, **kwargs: Any) -> Missed:
        """Serve a call that the guarded C++ callable has no entry for."""
        guarded = self._guarded
        if process_ends.ended:
            process_ends.hold(guarded._clear_cache)
        try:
            return self._dispatch(args, kwargs, guarded=True)
        except BaseException:
            guarded._clear_cache()
            raise

    def _dispatch(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, guarded: bool = False
    ) -> Missed:
        tracing = state.trace is not evaluation_trace
        if tracing and self.options.inline:
            return self._inlined(args, kwargs), None, True
        values, tree = pytree.flatten((args, kwargs))
        if any(map(is_buffer, values)):
            # jax's arrays are copied by value; C++ must not cache a call with them.
            args, kwargs = tree.unflatten([from_foreign(x) if is_buffer(x) else x for x in values])
            return self.callable(*args, **kwargs), None, True
        arguments = self.flatten_args(args, kwargs)
        leaves = arguments.leaves
        if not tracing and any(isinstance(leaf, Tracer) for leaf in leaves):
            tracing = True
        staged = self.staged_for(arguments, self._avals(arguments))
        if self._check_call is not None:
            self._check_call(arguments, staged)
        uses = staged.uses
        references = uses.references(leaves, self.options.name, staged.names) if uses else []
        operands = uses.operands(leaves, references) if uses else leaves
        if tracing:
            from dovetail._core.ops.calls.jit import call  # deferred: loads the transformations

            outs = call(staged.closed, operands, self.options.name)
            return staged.out_tree.unflatten(uses.finish(outs, references)), None, True
        if staged.way is not None and not guarded and not events.listeners:
            result = self._directly(arguments, staged)
            if result is not None:
                return result, None, True
        followed = follow_program(staged.closed, operands)
        sharding, committed = self._place(operands, staged)
        program = staged.program(sharding)
        watch(self.options.name, staged.closed.jaxpr, staged.names, program)
        copies = kept(operands, staged.donated)
        try:
            outs = program(staged.own(operands, references), committed, staged.describe)
        except JaxRuntimeError as error:
            raise staged.explained_shortage(error, program) from None
        except FloatingPointError as error:
            from dovetail._core.runtime.calls import value_explanations  # deferred: seldom needed

            raise value_explanations.explained(
                error,
                self.options.name,
                staged.closed,
                copies,
                staged.names,
                self.has_lines,
            ) from None
        if watching():
            from dovetail._core.runtime.calls import value_explanations  # deferred: seldom needed

            value_explanations.note(
                program,
                self.options.name,
                staged.closed,
                copies,
                outs,
                staged.names,
                self.has_lines,
            )
        if followed is not None:
            followed.finish(outs)
        result = staged.result(outs, references)
        # C++ turns all results into arrays, and neither updates references nor checks integers nor
        # follows keys.
        if staged.empty or uses or staged.narrowed or followed is not None:
            return result, None, True
        data = fastpath(program, leaves, result, committed, staged.describe, explains=True)
        if data is None or guarded or not program.calls_host:
            return result, data, data is None
        # Errors on the C++ path are jaxlib's. Where Python is called anyhow, a second C++ callable
        # is called in a scope that raises what the callback has raised.
        if self._guarded is None:
            self._guarded = self._pjit_function(
                self.function, self._miss_guarded, ("calls the host", self.options), None
            )
        return result, None, False

    def _offer(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.offer(*args, **kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    def offer(self, *args: Any, **kwargs: Any) -> Any:
        """The result of a call that needs no program, before there is one; None if it needs one.

        No frame of C++ is below, which would end the process with a daemon thread.
        """
        if config.disable_jit.value or any(map(is_buffer, pytree.leaves((args, kwargs)))):
            return None
        arguments = self.flatten_args(args, kwargs)
        staged = self.staged_for(arguments, self._avals(arguments))
        return None if staged.way is None else self._directly(arguments, staged)

    def _directly(self, arguments: CallArguments, staged: StagedProgram) -> Any:
        """The result of a call that needs no program, now and later; None if it needs one."""
        args, kwargs = arguments.args, arguments.kwargs
        if staged.way is False:
            staged.way = self._way(arguments, staged)
        return None if staged.way is None else tell_way(self.compiled, staged.way, args, kwargs)

    def _way(self, arguments: CallArguments, staged: StagedProgram) -> Way | None:
        """How a call is computed without a program; None if it is not."""
        wanted = config.direct_calls.value
        if not self._may_be_direct or (wanted == "eager" and self.has_lines):
            return None
        return direct_way(arguments, staged)

    def _inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the function itself, on arrays in place of numbers of the host."""
        arguments = self.flatten_args(args, kwargs)
        leaves = [x if type(x) is Ref else as_result(x) for x in arguments.leaves]
        dynamic, keywords = arguments.in_tree.unflatten(leaves)
        positional = dict(enumerate(args)) | dict(zip(arguments.positions, dynamic, strict=True))
        return self.function(*positional.values(), **{**kwargs, **keywords})

    def flatten_args(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, abstract: bool = False
    ) -> CallArguments:
        """Split arguments into static and dynamic ones, and flatten the latter.

        Args:
            args: positional arguments.
            kwargs: keyword arguments.
            abstract: whether to accept anything with a shape and a dtype as an array.

        Raises:
            ValueError: a static argument is not hashable.
            NonArrayArgumentError: a dynamic argument is not an array.
        """
        options = self.options
        if options.static_argnums or options.static_argnames:
            static_numbers = {i for i in options.static_argnums if i < len(args)}
            positions = tuple(i for i in range(len(args)) if i not in static_numbers)
            dynamic = tuple(args[i] for i in positions)
            keywords = {k: v for k, v in kwargs.items() if k not in options.static_argnames}
            statics: list[tuple[Any, Any]] = [(i, args[i]) for i in sorted(static_numbers)]
            statics += [(k, kwargs[k]) for k in sorted(kwargs) if k not in keywords]
            key = tuple((where, type(value), value) for where, value in statics)
            self._check_hashable(statics)
        else:
            positions = tuple(range(len(args)))
            dynamic, keywords, key = args, kwargs, ()
        leaves, in_tree = pytree.flatten((dynamic, keywords))
        check_array_leaves(
            leaves,
            lambda: leaf_names(self.function, dynamic, keywords, positions),
            self.options.name,
            shapes=abstract,
            references=True,
        )
        return CallArguments(args, kwargs, positions, dynamic, keywords, leaves, in_tree, key)

    def _check_hashable(self, statics: Sequence[tuple[Any, Any]]) -> None:
        for where, value in statics:
            try:
                hash(value)
            except TypeError as error:
                name = where
                if isinstance(where, int):
                    name = parameter_names(self.function, where + 1)[where]
                raise ValueError(
                    f"Non-hashable static arguments cannot be used: the argument {name} of "
                    f"{self.options.name}, marked as static, is {value!r:.80} of type "
                    f"{type(value).__name__} ({error}). Static arguments are keys of a cache, so "
                    "they need __hash__ and __eq__: pass a tuple instead of a list, or an array "
                    "as a dynamic argument"
                ) from None

    def _avals(self, arguments: CallArguments) -> list[Any]:
        try:
            return [leaf.aval if type(leaf) is Ref else aval_of(leaf) for leaf in arguments.leaves]
        except OverflowError:
            names = self._leaf_names(arguments)
            for name, leaf in zip(names, arguments.leaves, strict=True):
                try:
                    aval_of(leaf)
                except OverflowError as error:
                    raise OverflowError(
                        f"the argument {name} of {self.options.name}: {error}"
                    ) from None
            raise

    def _leaf_names(self, arguments: CallArguments) -> tuple[str, ...]:
        return leaf_names(self.function, arguments.dynamic, arguments.keywords, arguments.positions)

    def staged_for(self, arguments: CallArguments, avals: Sequence[Any]) -> StagedProgram:
        """The function staged for arguments of these types, from the cache if possible."""
        key = TraceSignature(
            arguments.in_tree, tuple(avals), arguments.statics, self.options, config.trace_key()
        )
        try:
            entries = _staged.of(self.function)
        except TypeError:  # the function is not hashable or weakly referenceable
            entries = self._own
        staged: StagedProgram | None = entries.get(key)
        if staged is None:
            names = self._leaf_names(arguments)
            eager = not self.has_lines
            name = self.options.name
            cause = explain_miss(name, self.function, key, entries.keys(), eager=eager)
            start = time.perf_counter()
            staged = self._stage(arguments, avals, names)
            staged.seconds = time.perf_counter() - start
            staged.cause = cause
            if cause is not None:
                log_traced(name, cause, staged.seconds)
                events.emit("eager" if eager else "trace", name, staged.seconds, cause)
            # A captured tracer belongs to one trace of the caller; the next call may capture
            # a different one.
            if staged.uses.stay and not any(isinstance(c, Tracer) for c in staged.closed.consts):
                if len(entries) >= MOST_SIGNATURES:
                    del entries[next(iter(entries))]
                entries[key] = staged
        return staged

    def _stage(
        self, arguments: CallArguments, avals: Sequence[Any], names: tuple[str, ...]
    ) -> StagedProgram:
        info = DebugInfo("jit", self.options.name, location_of(self.function), names)
        function = self._constrained(self._with_statics(arguments))
        flat = FlatFunction(function, arguments.in_tree, keywords=True)
        start = time.perf_counter()
        # A bound method: calling an object takes twice as much C stack, and Python 3.12 limits
        # the C stack that calls may use.
        with timed("traced", self.options.name):
            closed, uses = stage_using_references(flat.__call__, avals, info)
        log_duration("traced", self.options.name, time.perf_counter() - start)
        donated = self._donated(arguments)
        if uses:
            names = (*names, *(ref.described() for ref in uses.captured))
            # A program that calls Python may fail halfway, and no value must be lost then.
            donated = uses.written(donated) if not closed.effects else uses.written(donated, False)
        return StagedProgram(
            closed, arguments.in_tree, flat.out_tree, donated, names, self.options, uses
        )

    def _constrained(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, asking for shardings inside other programs, too."""
        given, asked = self.options.in_shardings, self.options.out_shardings
        name = self.options.name
        if given is None and asked is None:
            return function

        def constrained(*args: Any, **kwargs: Any) -> Any:
            if given is not None:
                args = constrain(
                    args, given.tree, "in_shardings of jit", f"{name} with in_shardings, argument "
                )
            result = function(*args, **kwargs)
            if asked is None:
                return result
            what = f"{name} with out_shardings, result"
            return constrain(result, asked.tree, "out_shardings of jit", what)

        return update_wrapper(constrained, function)

    def _with_statics(self, arguments: CallArguments) -> Callable[..., Any]:
        """The function with its static arguments bound."""
        if not arguments.statics:
            return self.function
        keywords = arguments.keywords
        static_keywords = {k: v for k, v in arguments.kwargs.items() if k not in keywords}

        def function(*dynamic: Any, **keywords: Any) -> Any:
            full = list(arguments.args)
            for position, value in zip(arguments.positions, dynamic, strict=True):
                full[position] = value
            return self.function(*full, **keywords, **static_keywords)

        update_wrapper(function, self.function)
        return function

    def _donated(self, arguments: CallArguments) -> tuple[bool, ...]:
        options = self.options
        donated: list[bool] = []
        for position, value in zip(arguments.positions, arguments.dynamic, strict=True):
            donated += [position in options.donate_argnums] * len(pytree.leaves(value))
        for name in sorted(arguments.keywords):
            count = len(pytree.leaves(arguments.keywords[name]))
            donated += [name in options.donate_argnames] * count
        return tuple(donated)

    def _place(self, operands: Sequence[Any], staged: StagedProgram) -> tuple[Any, bool]:
        """Where a call runs, and whether its results are committed to that place."""
        if self.options.device is None:
            return staged.place(operands)
        return as_sharding(self.options.device), True

    def place_for(self, arguments: CallArguments, staged: StagedProgram) -> Any:
        """The sharding that a call would run under; None if nothing determines it."""
        if self.options.device is not None:
            return as_sharding(self.options.device)
        name, describe = self.options.name, staged.describe
        check_divisions(arguments.leaves, describe)
        leaves = [*arguments.leaves, *staged.uses.captured]
        if staged.asked is not None:
            return resolve_asked(leaves, staged.asked, name, describe)
        return resolve_place(leaves, name, describe)

    def entries(self) -> dict[TraceSignature, StagedProgram]:
        """What is staged with these options, by signature, the first of them first."""
        try:
            entries = _staged.of(self.function)
        except TypeError:
            entries = self._own
        return {key: staged for key, staged in entries.items() if key.options == self.options}

    def clear(self) -> None:
        """Drop everything that was staged and compiled."""
        self._own.clear()
        _staged.forget(self.function)
        self.compiled._clear_cache()
        if self._guarded is not None:
            self._guarded._clear_cache()


def _unpickled(function: Callable[..., Any], options: JitOptions) -> Any:
    return JitFunction(function, options).callable
