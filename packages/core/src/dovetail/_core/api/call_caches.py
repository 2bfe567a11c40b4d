"""What a jitted function has in its cache, and why: `explain`, and the method `cache_info`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, overload

from dovetail._core.base.counting import counted
from dovetail._core.base.events import Cause
from dovetail._core.base.notebooks import boxed
from dovetail._core.base.records import record
from dovetail._core.base.tracebacks import bounded
from dovetail._core.runtime.calls.cache_misses import cause_of_trace
from dovetail._core.runtime.calls.jit import MOST_SIGNATURES, JitFunction
from dovetail._core.runtime.calls.staged_program import StagedProgram
from dovetail._core.transform.flattening import name_of

__all__ = ["CacheInfo", "Explanation", "Signature", "cache_info", "explain"]

#: Arguments of a signature that are listed.
_LISTED: Final = 8


class CacheInfo(NamedTuple):
    """What a jitted function has in its cache.

    Attributes:
        signatures: how many signatures of arguments it is traced for.
        programs: how many programs it has, one for each signature and place that it ran on.
        trace_seconds: how long tracing took in all.
        compile_seconds: how long lowering took, and compiling or reading programs from disk.
        maxsize: how many signatures the cache holds; then the oldest goes.
    """

    signatures: int
    programs: int
    trace_seconds: float
    compile_seconds: float
    maxsize: int


@record
class Signature:
    """A signature of arguments that a jitted function is traced for.

    Attributes:
        arguments: each array argument by its path, with its type.
        statics: the static arguments by position or name, with their values.
        cause: why it was traced: what distinguishes it from the nearest before it.
        equations: how many equations the program has, those of inner programs not counted.
        trace_seconds: how long tracing took.
        compile_seconds: for each place that it ran on, how long lowering and compiling took, or
            reading the program from disk; None where it was compiled ahead of time.
    """

    arguments: tuple[tuple[str, str], ...]
    statics: tuple[tuple[str, str], ...]
    cause: Cause
    equations: int
    trace_seconds: float
    compile_seconds: tuple[tuple[str, float | None], ...]

    def __str__(self) -> str:
        listed = [f"{name}: {kind}" for name, kind in self.arguments[:_LISTED]]
        more = len(self.arguments) - len(listed)
        listed += [f"and {more} more"] * bool(more)
        listed += [f"{name} = {value} (static)" for name, value in self.statics]
        times = [f"traced in {self.trace_seconds * 1e3:.1f} ms"]
        for place, seconds in self.compile_seconds:
            how = "ahead of time" if seconds is None else f"in {seconds * 1e3:.1f} ms"
            times.append(f"compiled for {place} {how}")
        work = ", ".join([counted(self.equations, "equation"), *times])
        lines = [", ".join(listed) or "no arguments", work]
        lines.append(self.cause.reason)
        lines += [f"to avoid it, {self.cause.remedy}"] * bool(self.cause.remedy)
        return "\n".join(lines)


@bounded
class Explanation(Sequence[Signature]):
    """Why a jitted function was traced and compiled: what `dovetail.explain` returns.

    A sequence of the signatures in its cache, in the order in which they came. Printed, it is a
    text.

    Attributes:
        name: the function's name.
        info: the sums.
    """

    __slots__ = ("_signatures", "info", "name")

    def __init__(self, name: str, info: CacheInfo, signatures: Sequence[Signature]) -> None:
        self.name = name
        self.info = info
        self._signatures = tuple(signatures)

    @overload
    def __getitem__(self, index: int) -> Signature: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Signature]: ...
    def __getitem__(self, index: int | slice) -> Signature | Sequence[Signature]:
        return self._signatures[index]

    def __len__(self) -> int:
        return len(self._signatures)

    def __iter__(self) -> Iterator[Signature]:
        return iter(self._signatures)

    def __str__(self) -> str:
        if not self:
            return f"{self.name} was not called yet, or its cache was cleared"
        info = self.info
        head = (
            f"{self.name}: traced for {counted(info.signatures, 'signature')} in "
            f"{info.trace_seconds * 1e3:.1f} ms, {counted(info.programs, 'program')} compiled in "
            f"{info.compile_seconds * 1e3:.1f} ms"
        )
        lines = [head]
        for number, signature in enumerate(self, 1):
            first, *rest = str(signature).splitlines()
            lines += [f"{number:3}  {first}", *(f"     {line}" for line in rest)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Explanation of {self.name}: {counted(len(self), 'signature')}>"

    def _repr_html_(self) -> str:
        return boxed(self.name, str(self))


def cache_info(engine: JitFunction) -> CacheInfo:
    """The sums of what a jitted function has in its cache."""
    entries = list(engine.entries().values())
    return CacheInfo(
        len(entries),
        sum(len(staged.programs) for staged in entries),
        math.fsum(staged.seconds for staged in entries),
        math.fsum(s for staged in entries for s in staged.compile_seconds.values()),
        MOST_SIGNATURES,
    )


def explain(fun: Callable[..., Any]) -> Explanation:
    """Say why a jitted function was traced and compiled: each signature in its cache, with times.

    For each it says which argument differs from the nearest earlier signature, what it was before
    and is now, and what to write so that the function is not traced again. Nothing has to be
    switched on before.

    Args:
        fun: what `dovetail.jit` has returned.

    Returns:
        The signatures, to be printed or looked at.

    Raises:
        TypeError: it is no jitted function.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> step = dt.jit(lambda params, x: params["w"] * x)
        >>> for count in (3, 4):
        ...     _ = step({"w": jnp.ones(count)}, 2.0)
        >>> print(dt.explain(step))  # doctest: +ELLIPSIS
        <lambda>: traced for 2 signatures in ... ms, 2 programs compiled in ... ms
          1  params['w']: f32[3], x: f32[] (weakly typed)
             1 equation, traced in ... ms, compiled for cpu:0 in ... ms
             it was not called before (a function that is made anew is another function)
          2  params['w']: f32[4], x: f32[] (weakly typed)
             1 equation, traced in ... ms, compiled for cpu:0 in ... ms
             params['w'] is f32[4]; it was f32[3]
             to avoid it, pad arrays to one shape, or to few
    """
    engine = getattr(getattr(fun, "clear_cache", None), "__self__", None)
    if not isinstance(engine, JitFunction):
        what = f"{name_of(fun)}, a function that is not jitted" if callable(fun) else repr(fun)
        raise TypeError(
            f"explain takes a function that dovetail.jit has returned, got {what:.80}. Write "
            "f = dovetail.jit(f), call f, then explain(f)"
        )
    entries = engine.entries()
    keys = list(entries)
    signatures = []
    for number, (key, staged) in enumerate(entries.items()):
        cause = cause_of_trace(engine.function, key, keys[:number])
        signatures.append(_signature(key.statics, staged, cause))
    return Explanation(engine.options.name, cache_info(engine), signatures)


def _signature(statics: Any, staged: StagedProgram, cause: Cause) -> Signature:
    avals = staged.in_avals
    return Signature(
        tuple([(name, _type(aval)) for name, aval in zip(staged.names, avals, strict=False)]),
        tuple([(_static(where), f"{value!r:.80}") for where, _, value in statics]),
        cause,
        len(staged.closed.jaxpr.eqns),
        staged.seconds,
        tuple([(_place(s), staged.compile_seconds.get(s)) for s in staged.programs]),
    )


def _type(aval: Any) -> str:
    weak = " (weakly typed)" if getattr(aval, "weak_type", False) else ""
    return f"{aval.short_name()}{weak}"


def _static(where: int | str) -> str:
    return f"argument {where}" if isinstance(where, int) else where


def _place(sharding: Any) -> str:
    devices = list(sharding._device_list)
    return str(devices[0]) if len(devices) == 1 else f"{len(devices)} devices"
