"""What stands in the way of exporting a function: all of it, by line of the user's code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Final

from dovetail._core.api.export.checks import DisabledSafetyCheck
from dovetail._core.base import source
from dovetail._core.base.errors import MissingRuleError
from dovetail._core.base.records import record
from dovetail._core.ir.jaxpr import JaxprEqn
from dovetail._core.ir.walk import all_equations

__all__ = ["Obstacle", "Report", "as_text"]

#: Targets whose meaning is kept: StableHLO's own, those of partitioners, and jaxlib's LAPACK.
_STABLE: Final = re.compile(
    r"shape_assertion|Sharding|SPMDFullToShardShape|SPMDShardToFullShape|annotate_device_placement"
    r"|stablehlo\.\w+|xla\.sdy\.\w+|lapack_\w+_ffi|cu_threefry2x32_ffi|TopK|ApproxTopK|LayoutConstraint"
)


@record
class Obstacle:
    """Something that cannot be exported.

    Attributes:
        kind: ``"callback"``, ``"custom call"``, ``"lowering"``, ``"symbolic size"`` or
            ``"reference"``.
        what: what it is, and what to do about it.
        where: the user's line, such as ``train.py:12 (loss)``.
        primitive: the name of the primitive; empty if it is none.
        error: the error that says so, if there was one.
    """

    kind: str
    what: str
    where: str
    primitive: str = ""
    error: Exception | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@record
class Report:
    """What stands in the way of exporting a function; false if nothing does.

    Attributes:
        name: the name of the function.
        platforms: the platforms to export for.
        obstacles: what stands in the way, in the order of the program.
    """

    name: str
    platforms: tuple[str, ...]
    obstacles: tuple[Obstacle, ...]

    def __bool__(self) -> bool:
        return bool(self.obstacles)

    def __len__(self) -> int:
        return len(self.obstacles)

    def __iter__(self) -> Iterator[Obstacle]:
        return iter(self.obstacles)

    def __str__(self) -> str:
        if not self.obstacles:
            return f"{self.name} can be exported for {', '.join(self.platforms)}"
        return as_text(self.name, self.obstacles)


def as_text(name: str, obstacles: Sequence[Obstacle]) -> str:
    """The obstacles in words, a line for each."""
    lines = [f"  {obstacle}" for obstacle in obstacles]
    return "\n".join([f"{name} cannot be exported:", *lines])


def obstacles_in(
    jaxpr: Any,
    failures: Sequence[tuple[JaxprEqn, Exception]],
    custom_calls: Sequence[tuple[str, JaxprEqn | None]],
    platforms: Sequence[str],
    disabled: Sequence[DisabledSafetyCheck],
) -> list[Obstacle]:
    """The obstacles in a program that was lowered as far as possible.

    Args:
        jaxpr: the program.
        failures: equations that were not lowered, and why.
        custom_calls: targets of its custom calls, and their equations.
        platforms: the platforms that it was lowered for.
        disabled: checks that are left out.
    """
    order = {id(eqn): number for number, eqn in enumerate(all_equations(jaxpr))}
    found: list[tuple[int, Obstacle]] = []

    def note(eqn: JaxprEqn | None, kind: str, what: str, error: Exception | None = None) -> None:
        where = "an unknown place" if eqn is None else source.describe(eqn.traceback)
        name = "" if eqn is None else eqn.primitive.name
        found.append((order.get(id(eqn), len(order)), Obstacle(kind, what, where, name, error)))

    for eqn in all_equations(jaxpr):
        if eqn.primitive.calls_host:
            note(
                eqn,
                "callback",
                f"{eqn.primitive.name} calls a Python function, which exists in this process alone",
            )
    for eqn, error in failures:
        if eqn.primitive.calls_host:
            continue
        if isinstance(error, MissingRuleError):
            names = " and ".join(platforms)
            note(eqn, "lowering", f"{eqn.primitive.name} has no lowering for {names}", error)
        else:
            kind = "lowering"
            if any(
                v.aval.symbolic for v in (*eqn.invars, *eqn.outvars) if hasattr(v.aval, "shape")
            ):
                kind = "symbolic size"
            note(eqn, kind, f"{eqn.primitive.name} cannot be lowered: {error}", error)
    allowed = {check.is_custom_call() for check in disabled}
    for target, equation in custom_calls:
        if equation is not None and equation.primitive.calls_host:
            continue
        if target not in allowed and not _STABLE.fullmatch(target):
            note(
                equation,
                "custom call",
                f"the custom call {target} is not known to keep its meaning: if it does, pass "
                f"disabled_checks=[DisabledSafetyCheck.custom_call({target!r})]",
            )
    unique = dict.fromkeys(obstacle for _, obstacle in sorted(found, key=lambda pair: pair[0]))
    return list(unique)
