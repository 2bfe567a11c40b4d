"""A function traced for one signature, and how it is lowered, compiled and run.

`JitFunction` creates one on a cache miss; `jit(f).trace(...)` lets users inspect one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from dovetail._core.base import config, dtypes, events, pytree, source
from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.base.counting import counted
from dovetail._core.base.monitoring import log_duration, timed
from dovetail._core.base.records import record
from dovetail._core.ir.avals import outer_aval
from dovetail._core.ir.jaxpr import ClosedJaxpr
from dovetail._core.ir.walk import all_equations
from dovetail._core.ops.elementwise.conversion import copy_p
from dovetail._core.runtime.calls.cache_misses import cause_of_compilation, log_compiled
from dovetail._core.runtime.calls.shortages import explained_shortage
from dovetail._core.runtime.calls.slow_compilations import telling_if_slow
from dovetail._core.runtime.devices import clients, process_ends
from dovetail._core.runtime.devices.address_space import reserve_for_compiler
from dovetail._core.runtime.devices.named_sharding import over_current_mesh
from dovetail._core.runtime.programs.arguments import (
    AskedPlaces,
    partitioning,
    resolve_asked,
    resolve_device,
    shardings_inside,
)
from dovetail._core.trace.mutable_references import AbstractRef, Ref, RefState
from dovetail._core.transform.referencing import RefEffects

if TYPE_CHECKING:
    from dovetail._core.runtime.programs.program import LoadedProgram, UnloadedProgram


class AskedShardings:
    """A tree of shardings, some of them None, that can be hashed.

    Args:
        option: the name of the option of `jit`.
        tree: the tree.
    """

    __slots__ = ("_key", "option", "tree")

    def __init__(self, option: str, tree: Any) -> None:
        self.option = option
        self.tree = tree
        leaves, structure = pytree.flatten(tree, is_leaf=lambda x: x is None)
        self._key = (option, tuple(leaves), structure)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AskedShardings) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def of(self, structure: Any) -> list[Any]:
        """The shardings of the leaves of such a tree."""
        what = f"{self.option} of jit"
        given = pytree.flatten_up_to_prefix(what, self.tree, structure)
        return [over_current_mesh(place, what) for place in given]


#: How many of the constants of a program a warning shows.
_REPORTED: Final = 5


@record(kw_only=True)
class JitOptions:
    """How a function is compiled.

    Attributes:
        name: the name of the function and of its program.
        static_argnums: positional arguments that are part of the program.
        static_argnames: keyword arguments that are part of the program.
        donate_argnums: positional arguments whose memory may be reused.
        donate_argnames: keyword arguments whose memory may be reused.
        keep_unused: whether the program keeps unused arguments.
        inline: whether calls under a trace are inlined.
        device: where the program runs; the arguments decide if None.
        in_shardings: a tree of the shardings that arguments have; None where they have any.
        out_shardings: the same for results.
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
    in_shardings: AskedShardings | None = None
    out_shardings: AskedShardings | None = None
    compiler_options: tuple[tuple[str, Any], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether neither a place nor the compiler is told anything."""
        placed = (self.device, self.in_shardings, self.out_shardings)
        return placed == (None, None, None) and not self.compiler_options


class StagedProgram:
    """A function traced for one signature.

    Attributes:
        closed: the program.
        out_tree: the structure of its result.
        empty: indices of its float0 results, which hold no data and stay on the host.
        in_tree: the structure of ``(dynamic positional arguments, dynamic keyword arguments)``.
        donated: for each leaf, whether its memory may be reused.
        names: for each leaf, its name in messages.
        options: how it is compiled.
        uses: its use of mutable references.
        narrowed: index and dtype of the arguments that are converted to a narrower integer dtype,
            so Python integers must be checked before each call; None if not yet determined.
        programs: compiled programs by sharding.
        way: how calls are computed without a program; None if they are not, False if nobody knows.
        compile_seconds: how long lowering and compiling each took, or reading it from disk.
        seconds: how long tracing took.
        cause: why it was traced, if anybody wanted to know.
    """

    __slots__ = (
        "_asked",
        "_looked",
        "cause",
        "closed",
        "compile_seconds",
        "donated",
        "empty",
        "in_tree",
        "names",
        "narrowed",
        "options",
        "out_tree",
        "programs",
        "seconds",
        "uses",
        "way",
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
        self.narrowed: tuple[tuple[int, Any], ...] | None = None
        self._asked: AskedPlaces | None = None
        self._looked = False
        self.programs: dict[Any, Any] = {}
        self.way: Any = False
        self.compile_seconds: dict[Any, float] = {}
        self.seconds = 0.0
        self.cause: events.Cause | None = None
        outs = map(outer_aval, closed.out_avals)
        self.empty = [i for i, aval in enumerate(outs) if aval.dtype == dtypes.float0]

    @property
    def asked(self) -> AskedPlaces | None:
        """The shardings that it asks for; None if there are none."""
        if not self._looked:
            self._asked, self._looked = self._look_for_shardings(), True
        return self._asked

    def _look_for_shardings(self) -> AskedPlaces | None:
        inside = shardings_inside(all_equations(self.closed.jaxpr))
        options = self.options
        if not inside and options.in_shardings is None and options.out_shardings is None:
            return None
        arguments: list[Any] = [None] * self.in_tree.num_leaves
        if options.in_shardings is not None:
            # All arguments that count are positional ones.
            positional = self.in_tree.children()[0]
            arguments = options.in_shardings.of(positional)
        results: list[Any] = [None] * self.out_tree.num_leaves
        if options.out_shardings is not None:
            results = options.out_shardings.of(self.out_tree)
        more = len(self.closed.in_avals) - len(arguments), len(self.closed.out_avals) - len(results)
        return AskedPlaces([*arguments, *[None] * more[0]], [*results, *[None] * more[1]], inside)

    def place(self, operands: Sequence[Any]) -> tuple[Any, bool]:
        """Where a call runs, and whether its results are committed to that place."""
        name = self.options.name
        if self.asked is None:
            return resolve_device(operands, name, self.describe, mixed=True)
        return resolve_asked(operands, self.asked, name, self.describe), True

    @property
    def in_avals(self) -> list[Any]:
        """The types of the leaves."""
        count = len(self.closed.in_avals) - len(self.uses.captured)
        avals = list(self.closed.in_avals[:count])
        for number in self.uses.arguments:
            avals[number] = AbstractRef(avals[number])
        return avals

    @property
    def out_avals(self) -> list[Any]:
        """The avals of the results."""
        return list(self.closed.out_avals[: self.out_tree.num_leaves])

    def lower(self, platforms: Sequence[str], place: Any = None) -> Any:
        """The program as a StableHLO module, for devices whose arguments are divided so."""
        process_ends.check()
        reserve_for_compiler(self.options.name)
        from dovetail._core.lower.lowering import lower_jaxpr  # deferred: loads MLIR

        if place is not None:
            place = place._typing(self.closed.out_avals)
        with timed("lowered", self.options.name):
            return lower_jaxpr(
                self.closed,
                name=self.options.name,
                platforms=platforms,
                donated=self.donated if any(self.donated) else None,
                keep_unused=self.options.keep_unused,
                arg_names=self.names,
                **partitioning(place, len(self.closed.in_avals)),
            )

    def compile(
        self, lowered: Any, sharding: Any, compiler_options: Mapping[str, Any]
    ) -> LoadedProgram | UnloadedProgram:
        """Compile a lowered program for a device, which may be compile-only."""
        from dovetail._core.runtime.programs.program import (  # deferred: by the first program
            compile_module,
            compile_unloaded,
        )

        self._warn_of_unused_donations(lowered)
        self._warn_of_constants()
        sharding = sharding._typing(self.closed.out_avals)
        make = compile_unloaded if clients.is_compile_only(sharding._device) else compile_module
        try:
            name = self.options.name
            with timed("compiled", name), telling_if_slow(name, self.closed):
                return make(lowered, sharding, compiler_options)
        except (JaxRuntimeError, MemoryError) as error:
            raise self.explained_shortage(error) from None

    def explained_shortage(
        self, error: BaseException, program: LoadedProgram | None = None
    ) -> BaseException:
        """The error to raise where compiling (None) or running the program failed."""
        name = self.options.name
        return explained_shortage(error, name, self.closed.jaxpr, self.names, program)

    def _warn_of_constants(self) -> None:
        limit = config.captured_constants_warn_bytes.value
        if limit < 0:
            return
        sizes = [getattr(value, "nbytes", 0) for value in self.closed.consts]
        if sum(sizes) >= limit:
            source.warn(
                f"{self.options.name} has captured {counted(len(sizes), 'array')} of "
                f"{sum(sizes):,} bytes in "
                "all, which its program holds on to; pass them as arguments instead, or raise the "
                "option captured_constants_warn_bytes" + self._largest_constants()
            )

    def _largest_constants(self) -> str:
        """The largest constants and where they are used, as `captured_constants_report_frames`
        asks for."""
        most = config.captured_constants_report_frames.value
        if not most:
            return ""
        jaxpr = self.closed.jaxpr
        pairs = sorted(
            zip(self.closed.consts, jaxpr.constvars, strict=True),
            key=lambda pair: -getattr(pair[0], "nbytes", 0),
        )
        lines = []
        for value, var in pairs[:_REPORTED]:
            user = next((e for e in jaxpr.eqns if any(v is var for v in e.invars)), None)
            place = None if user is None else user.traceback
            limit = most if most > 0 else sys.maxsize
            frames = [] if place is None else source.user_frames(place, limit)
            where = ", called from ".join(map(str, frames)) or "no line"
            size = getattr(value, "nbytes", 0)
            lines.append(f"\n  {var.aval.short_name()}, {size:,} bytes, used at {where}")
        return "".join(lines)

    def program(self, sharding: Any) -> LoadedProgram:
        """The program compiled for a device, cached after the first call."""
        program = self.programs.get(sharding)
        if program is None:
            name = self.options.name
            clients.check_runs(
                sharding._device,
                f"{name} cannot run on it",
                f"call jit({name}).lower(...).compile() to see what it compiles to, or place the "
                "arguments on a device out of dovetail.devices()",
            )
            platform = clients.platform_of(sharding._device)
            others = [place._device for place in self.programs]
            what, eager = "these arguments", self.cause is not None and self.cause.eager
            cause = cause_of_compilation(name, what, sharding._device, others, eager=eager)
            start = time.perf_counter()
            with events.because(cause if others else self.cause or cause, name):
                lowered = self.lower((platform,), sharding)
                log_duration("lowered", lowered.name, time.perf_counter() - start)
                compiled = self.compile(lowered, sharding, dict(self.options.compiler_options))
            program = cast("LoadedProgram", compiled)  # the device is there
            self.compile_seconds[sharding] = time.perf_counter() - start
            log_compiled(name, cause, self.compile_seconds[sharding])
            self.programs[sharding] = program
        return program

    def own(self, operands: list[Any], references: Sequence[tuple[Ref, RefState]]) -> list[Any]:
        """The operands to run the program on, copied where it would destroy a shared value.

        The program takes over the memory of the references that it changes, so it gets copies of
        values that others hold, or that are inspected if it fails.
        """
        if not references:
            return operands
        keep = config.debug_nans.value or config.debug_infs.value
        shared = {id(ref_state.value) for _, ref_state in references if keep or ref_state.shared}
        return [
            copy_p.bind(x) if donated and id(x) in shared else x
            for x, donated in zip(operands, self.donated, strict=True)
        ]

    def result(self, outs: list[Any], references: Sequence[tuple[Ref, RefState]] = ()) -> Any:
        """The function's result, assembled from the flat results of its program.

        Args:
            outs: the flat results.
            references: the references that the program uses, with their states.
        """
        for number in self.empty:
            outs[number] = np.zeros(outs[number].shape, dtypes.float0)
        return self.out_tree.unflatten(self.uses.finish(outs, references))

    def describe(self, number: int) -> str:
        """A phrase for the argument with this index."""
        return f"the argument {self.names[number]} of {self.options.name}"

    def _warn_of_unused_donations(self, lowered: Any) -> None:
        # The old value of a reference that is only written is unused; that needs no warning.
        count = len(self.names)
        own = {*self.uses.arguments, *range(count - len(self.uses.captured), count)}
        unused = [i for i in lowered.donation.unused if i not in own]
        if not unused:
            return
        avals = self.closed.in_avals
        remedy = "leave it out of donate_argnums"
        why = f"no result of {self.options.name} has its shape and dtype left to take the memory"
        for i in unused if events.listeners else ():
            cause = events.Cause(why, remedy, self.names[i], after=avals[i].short_name())
            events.emit("donation", self.options.name, 0.0, cause)
        listed = ", ".join(f"{avals[i].short_name()} ({self.names[i]})" for i in unused)
        source.warn(
            f"Some donated buffers were not usable: {listed}. No result of {self.options.name} "
            "has the same shape and dtype left to take the memory; leave these arguments out of "
            "donate_argnums"
        )
