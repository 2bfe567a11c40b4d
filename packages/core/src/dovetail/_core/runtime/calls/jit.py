"""The engine behind `jit`: a function staged once per signature, compiled, and served by the C++
fast path.

The C++ callable keeps, for each signature of arguments, what it needs to run the program without
Python. Whenever it has no entry it calls `JitFunction.miss` with the original arguments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from dovetail._core.base import caches, config, dtypes, pytree, source
from dovetail._core.ir.avals import aval_of, outer_aval
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.ops.calls.jit import call
from dovetail._core.ops.elementwise.conversion import copy_p
from dovetail._core.runtime.arrays.buffers import is_buffer
from dovetail._core.runtime.arrays.donation import donating
from dovetail._core.runtime.calls.cache_misses import TraceSignature, log_compiled, miss
from dovetail._core.runtime.calls.fastpath import fastpath, pjit_function
from dovetail._core.runtime.calls.special_values import explained
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.sharding import as_sharding
from dovetail._core.runtime.programs.arguments import from_foreign, resolve_device, resolve_place
from dovetail._core.runtime.programs.program import (
    LoadedProgram,
    UnloadedProgram,
    compilation,
    compile_module,
    compile_unloaded,
)
from dovetail._core.trace.mutable_references import AbstractRef, Ref, RefState
from dovetail._core.trace.state import evaluation_trace, state
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.derived import dce_closed
from dovetail._core.transform.flattening import (
    FlatFunction,
    check_array_leaves,
    leaf_names,
    location_of,
    parameter_names,
)
from dovetail._core.transform.referencing import RefEffects, stage_using_references


@dataclass(frozen=True, slots=True, kw_only=True)
class JitOptions:
    """How a function is compiled.

    Attributes:
        name: the name of the function, which the program carries.
        static_argnums: positional arguments that are part of the program.
        static_argnames: keyword arguments that are part of the program.
        donate_argnums: positional arguments whose memory may be reused.
        donate_argnames: keyword arguments whose memory may be reused.
        keep_unused: whether arguments that nothing uses stay arguments of the program.
        inline: whether the function is run in place when it is called while tracing.
        device: where the program runs; decided by the arguments if None.
        compiler_options: options of the compiler, by name.
    """

    name: str
    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    keep_unused: bool = False
    inline: bool = False
    device: Any = None
    compiler_options: tuple[tuple[str, Any], ...] = ()


class Call(NamedTuple):
    """The arguments of one call, taken apart."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    positions: tuple[int, ...]
    dynamic: tuple[Any, ...]
    keywords: dict[str, Any]
    leaves: list[Any]
    in_tree: Any
    statics: tuple[Any, ...]


class StagedProgram:
    """A function traced for one signature.

    Attributes:
        closed: the program.
        out_tree: the structure of its result.
        empty: numbers of its results that hold nothing, and stay on the host: those of float0.
        in_tree: the structure of ``(dynamic positional arguments, dynamic keyword arguments)``.
        donated: for each leaf whether its memory may be reused.
        names: for each leaf its name in messages.
        options: how it is compiled.
        uses: what it does with mutable references.
        narrowed: numbers of arguments that are converted to a narrower integer dtype, and that
            dtype, where Python integers must be checked before each call.
        programs: compiled programs, by where and how.
    """

    __slots__ = (
        "closed",
        "donated",
        "empty",
        "in_tree",
        "names",
        "narrowed",
        "options",
        "out_tree",
        "programs",
        "uses",
    )

    def __init__(
        self,
        closed: ClosedJaxpr,
        in_tree: Any,
        out_tree: Any,
        donated: tuple[bool, ...],
        names: tuple[str, ...],
        options: JitOptions,
        uses: RefEffects,
    ) -> None:
        self.closed = closed
        self.uses = uses
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.donated = donated
        self.names = names
        self.options = options
        self.narrowed: tuple[tuple[int, Any], ...] = ()
        self.programs: dict[Any, Any] = {}
        outs = map(outer_aval, closed.out_avals)
        self.empty = [i for i, aval in enumerate(outs) if aval.dtype == dtypes.float0]

    @property
    def in_avals(self) -> list[Any]:
        """The types of the leaves."""
        count = len(self.closed.in_avals) - len(self.uses.captured)
        found = list(self.closed.in_avals[:count])
        for number in self.uses.arguments:
            found[number] = AbstractRef(found[number])
        return found

    @property
    def out_avals(self) -> list[Any]:
        """The avals of the results."""
        return list(self.closed.out_avals[: self.out_tree.num_leaves])

    def lower(self, platforms: Sequence[str]) -> Any:
        """The program as a StableHLO module."""
        from dovetail._core.lower.lowering import lower_jaxpr  # deferred: loads MLIR

        return lower_jaxpr(
            self.closed,
            name=self.options.name,
            platforms=platforms,
            donated=self.donated if any(self.donated) else None,
            keep_unused=self.options.keep_unused,
            arg_names=self.names,
        )

    def compile(
        self, lowered: Any, sharding: Any, compiler_options: Mapping[str, Any]
    ) -> LoadedProgram | UnloadedProgram:
        """A lowered program compiled for a device, which need not be there."""
        self._warn_of_unused_donations(lowered)
        self._warn_of_constants()
        if clients.is_compile_only(sharding._device):
            return compile_unloaded(lowered, sharding, compiler_options)
        return compile_module(lowered, sharding, compiler_options)

    def _warn_of_constants(self) -> None:
        limit = config.captured_constants_warn_bytes.value
        if limit < 0:
            return
        sizes = [getattr(value, "nbytes", 0) for value in self.closed.consts]
        if sum(sizes) >= limit:
            source.warn(
                f"{self.options.name} has captured {len(sizes)} arrays of {sum(sizes):,} bytes in "
                "all, which its program holds on to; pass them as arguments instead, or raise the "
                "option captured_constants_warn_bytes"
            )

    def program(self, sharding: Any) -> LoadedProgram:
        """The program compiled for a device; the one that was compiled before if there is one."""
        found = self.programs.get(sharding)
        if found is None:
            name = self.options.name
            clients.check_runs(
                sharding._device,
                f"{name} cannot run on it",
                f"call jit({name}).lower(...).compile() to see what it compiles to, or place the "
                "arguments on a device out of dovetail.devices()",
            )
            platform = clients.platform_of(sharding._device)
            start = time.perf_counter()
            lowered = self.lower((platform,))
            compilation.log_duration("lowered", lowered.name, time.perf_counter() - start)
            made = self.compile(lowered, sharding, dict(self.options.compiler_options))
            assert isinstance(made, LoadedProgram), "the device is there"
            found = made
            self.programs[sharding] = found
            log_compiled(
                self.options.name,
                "these arguments",
                sharding._device,
                time.perf_counter() - start,
            )
        return found

    def own(self, operands: list[Any], references: Sequence[tuple[Ref, RefState]]) -> list[Any]:
        """The operands to run the program on: it takes the memory of the references that it
        changes, so it gets copies of what somebody else may hold, or look at when it fails."""
        if not references:
            return operands
        keep = config.debug_nans.value or config.debug_infs.value
        kept = {id(ref_state.value) for _, ref_state in references if keep or ref_state.shared}
        return [
            copy_p.bind(x) if donated and id(x) in kept else x
            for x, donated in zip(operands, self.donated, strict=True)
        ]

    def result(self, outs: list[Any], references: Sequence[tuple[Ref, RefState]] = ()) -> Any:
        """What the function returns, from the flat results of its program.

        Args:
            outs: the results.
            references: those that it uses, and where their values are.
        """
        for number in self.empty:
            outs[number] = np.zeros(outs[number].shape, dtypes.float0)
        return self.out_tree.unflatten(self.uses.finish(outs, references))

    def describe(self, number: int) -> str:
        """A phrase for the argument of that number."""
        return f"the argument {self.names[number]} of {self.options.name}"

    def _warn_of_unused_donations(self, lowered: Any) -> None:
        # A reference that is only written to has an old value that nothing needs.
        count = len(self.names)
        own = {*self.uses.arguments, *range(count - len(self.uses.captured), count)}
        unused = [i for i in lowered.donation.unused if i not in own]
        if not unused:
            return
        avals = self.closed.in_avals
        listed = ", ".join(f"{avals[i].short_name()} ({self.names[i]})" for i in unused)
        source.warn(
            f"Some donated buffers were not usable: {listed}. No result of {self.options.name} "
            "has the same shape and dtype left to take the memory; leave these arguments out of "
            "donate_argnums"
        )


# A function that is called with ever new shapes must not fill the memory.
_MAX_SIGNATURES: Final = 1024

# Functions staged before, by function: two jits of one function share them.
_staged: Final = caches.ByFunction()


class JitFunction:
    """A function to compile, and how; the Python side of the C++ callable."""

    __slots__ = ("_own", "callable", "compiled", "function", "options")

    #: Whether the lines at which the function was traced are its own, and not those of a caller.
    has_lines: ClassVar[bool] = True

    def __init__(self, function: Callable[..., Any], options: JitOptions) -> None:
        self.function = function
        self.options = options
        self._own: dict[Any, StagedProgram] = {}
        compilation.check_options(dict(options.compiler_options))
        self.compiled = pjit_function(
            options.name,
            self.uncompiled,
            self.miss,
            static_argnums=options.static_argnums,
            static_argnames=options.static_argnames,
            key=options,
        )
        update_wrapper(self.compiled, function)
        self.callable = self.compiled
        if options.donate_argnums or options.donate_argnames:
            self.callable = donating(
                self.compiled, options.name, options.donate_argnums, options.donate_argnames
            )
        if options.static_argnums or options.static_argnames:
            self.callable = self._naming_static_arguments(self.callable)

    @property
    def uncompiled(self) -> Callable[..., Any]:
        """What is called while the option ``disable_jit`` is on."""
        return self.function

    def _naming_static_arguments(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """The function with an error of our own where C++ says that a value has no hash."""

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return compiled(*args, **kwargs)
            except ValueError as error:
                if not str(error).startswith("Non-hashable static arguments are"):
                    raise
            return self.flatten_args(args, kwargs)  # raises

        return update_wrapper(call, compiled)

    def flatten_args(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, abstract: bool = False
    ) -> Call:
        """Split arguments into static and dynamic ones, and flatten the latter.

        Args:
            args: positional arguments.
            kwargs: keyword arguments.
            abstract: whether anything with a shape and a dtype will do for an array.

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
        return Call(args, kwargs, positions, dynamic, keywords, leaves, in_tree, key)

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

    def staged(self, parts: Call, avals: Sequence[Any]) -> StagedProgram:
        """The function traced for these arguments, from the cache if it was before."""
        key = TraceSignature(
            parts.in_tree, tuple(avals), parts.statics, self.options, config.trace_key()
        )
        try:
            known = _staged.of(self.function)
        except TypeError:  # the function cannot be hashed or referred to weakly
            known = self._own
        found = known.get(key)
        if found is None:
            names = self._leaf_names(parts)
            missed = miss(self.options.name, self.function, key, known.keys(), names)
            start = time.perf_counter()
            found = self._stage(parts, avals, names)
            if missed is not None:
                missed.log(time.perf_counter() - start)
            # A captured tracer belongs to one trace of the caller; the next call may capture
            # another.
            if found.uses.stay and not any(isinstance(c, Tracer) for c in found.closed.consts):
                if len(known) >= _MAX_SIGNATURES:
                    del known[next(iter(known))]
                known[key] = found
        return found

    def _avals(self, parts: Call) -> list[Any]:
        try:
            return [leaf.aval if type(leaf) is Ref else aval_of(leaf) for leaf in parts.leaves]
        except OverflowError:
            names = self._leaf_names(parts)
            for name, leaf in zip(names, parts.leaves, strict=True):
                try:
                    aval_of(leaf)
                except OverflowError as error:
                    raise OverflowError(
                        f"the argument {name} of {self.options.name}: {error}"
                    ) from None
            raise

    def _leaf_names(self, parts: Call) -> tuple[str, ...]:
        return leaf_names(self.function, parts.dynamic, parts.keywords, parts.positions)

    def _stage(self, parts: Call, avals: Sequence[Any], names: tuple[str, ...]) -> StagedProgram:
        info = DebugInfo("jit", self.options.name, location_of(self.function), names)
        flat = FlatFunction(self._with_statics(parts), parts.in_tree, keywords=True)
        start = time.perf_counter()
        # A bound method, since a call of an object takes twice as much of the stack of C, of which
        # Python 3.12 gives calls a fixed share.
        closed, uses = stage_using_references(flat.__call__, avals, info)
        compilation.log_duration("traced", self.options.name, time.perf_counter() - start)
        donated = self._donated(parts)
        if uses:
            names = (*names, *(ref.described() for ref in uses.captured))
            # Where the program calls Python it may fail halfway, and nothing must be lost.
            donated = uses.written(donated) if not closed.effects else uses.written(donated, False)
        return StagedProgram(
            closed, parts.in_tree, flat.out_tree, donated, names, self.options, uses
        )

    def _with_statics(self, parts: Call) -> Callable[..., Any]:
        """The function of dynamic arguments only."""
        if not parts.statics:
            return self.function
        static_keywords = {k: v for k, v in parts.kwargs.items() if k not in parts.keywords}

        def function(*dynamic: Any, **keywords: Any) -> Any:
            full = list(parts.args)
            for position, value in zip(parts.positions, dynamic, strict=True):
                full[position] = value
            return self.function(*full, **keywords, **static_keywords)

        update_wrapper(function, self.function)
        return function

    def _donated(self, parts: Call) -> tuple[bool, ...]:
        options = self.options
        donated: list[bool] = []
        for position, value in zip(parts.positions, parts.dynamic, strict=True):
            donated += [position in options.donate_argnums] * len(pytree.leaves(value))
        for name in sorted(parts.keywords):
            count = len(pytree.leaves(parts.keywords[name]))
            donated += [name in options.donate_argnames] * count
        return tuple(donated)

    def miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """Serve a call that the C++ callable has no entry for.

        Returns:
            The result, the data for a new entry (or None), and whether to drop the entry.
        """
        try:
            return self.dispatch_call(args, kwargs)
        except BaseException:
            # jaxlib would keep a signature whose first call raised on the Python path for ever.
            self.compiled._clear_cache()
            raise

    def dispatch_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
        """`miss`, without what has to be done when it fails."""
        if config.disable_jit.value:
            # C++ asks for this itself, but where jax was imported it asks jax's option.
            return self.uncompiled(*args, **kwargs), None, True
        tracing = state.trace is not evaluation_trace
        if tracing and self.options.inline:
            return self.function(*args, **kwargs), None, True
        given, tree = pytree.flatten((args, kwargs))
        if any(map(is_buffer, given)):
            # Arrays of jax are taken by value; C++ must not remember a call with them.
            args, kwargs = tree.unflatten([from_foreign(x) if is_buffer(x) else x for x in given])
            return self.callable(*args, **kwargs), None, True
        parts = self.flatten_args(args, kwargs)
        leaves = parts.leaves
        if not tracing and any(isinstance(leaf, Tracer) for leaf in leaves):
            tracing = True
        staged = self.staged(parts, self._avals(parts))
        uses = staged.uses
        references = uses.references(leaves, self.options.name, staged.names) if uses else []
        operands = uses.operands(leaves, references) if uses else leaves
        if tracing:
            outs = call(staged.closed, operands, self.options.name)
            return staged.out_tree.unflatten(uses.finish(outs, references)), None, True
        if self.options.device is None:
            sharding, committed = resolve_device(operands, self.options.name, staged.describe)
        else:
            sharding, committed = as_sharding(self.options.device), True
        program = staged.program(sharding)
        try:
            outs = program(staged.own(operands, references), committed, staged.describe)
        except FloatingPointError as error:
            raise explained(
                error,
                self.options.name,
                staged.closed.effects,
                lambda checks: checks.evaluate(dce_closed(staged.closed), operands, self.has_lines),
            ) from None
        result = staged.result(outs, references)
        # C++ makes arrays of all results, knows no references, and checks no integers.
        if staged.empty or uses or staged.narrowed:
            return result, None, True
        data = fastpath(program, leaves, result, committed, staged.describe)
        return result, data, data is None

    def place_for(self, parts: Call, describe: Callable[[int], str]) -> Any:
        """The sharding that a call would run under, if arguments or options decide it, or None."""
        if self.options.device is not None:
            return as_sharding(self.options.device)
        return resolve_place(parts.leaves, self.options.name, describe)

    def clear(self) -> None:
        """Forget what was staged and compiled."""
        self._own.clear()
        _staged.forget(self.function)
        self.compiled._clear_cache()
