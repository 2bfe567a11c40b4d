"""A function traced for one signature: lowered and compiled for a device, and its results.

`JitFunction` makes one on a cache miss; `jit(f).trace(...)` gives users one to look at.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail._core.base import config, dtypes, source
from dovetail._core.ir.avals import outer_aval
from dovetail._core.ir.jaxpr import ClosedJaxpr
from dovetail._core.ops.elementwise.conversion import copy_p
from dovetail._core.runtime.calls.cache_misses import log_compiled
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.programs import compilation
from dovetail._core.runtime.programs.program import (
    LoadedProgram,
    UnloadedProgram,
    compile_module,
    compile_unloaded,
)
from dovetail._core.trace.mutable_references import AbstractRef, Ref, RefState
from dovetail._core.transform.referencing import RefEffects


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
            dtype, where Python integers must be checked before each call; None if nobody asked.
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
        self.narrowed: tuple[tuple[int, Any], ...] | None = None
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
