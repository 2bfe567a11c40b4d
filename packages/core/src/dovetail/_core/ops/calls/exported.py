"""Calls of exported programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from dovetail._core.hlo.platform_choice import by_platform
from dovetail._core.ir.dimension_solving import Solution, sizes_of, solve
from dovetail._core.trace.primitive import Primitive

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class ExportedProgram(Protocol):
    """The parts of an exported program that calls of it need."""

    @property
    def fun_name(self) -> str:
        """The name of the function."""

    @property
    def in_avals(self) -> tuple[Any, ...]:
        """Avals of the flat arguments."""

    @property
    def out_avals(self) -> tuple[Any, ...]:
        """Avals of the flat results."""

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that it is for."""

    @property
    def mlir_module_serialized(self) -> bytes:
        """The program."""

    @property
    def module_kept_var_idx(self) -> tuple[int, ...]:
        """The indices of the arguments that the program takes."""

    @property
    def nr_devices(self) -> int:
        """The number of devices that the program runs on."""

    def places(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """For each argument and each result its sharding, or None."""

    def argument_names(self) -> Sequence[str]:
        """Names of the flat arguments, for messages."""

    def platform_index(self, platform: str) -> int:
        """The number of the platform among those of the program; a ValueError if it has none."""


class CallExported(Primitive):
    """The results of an exported program."""

    name = "call_exported"
    multiple_results = True
    no_derivative = "exported programs have derivatives in reverse mode alone, by grad and vjp"

    def abstract(self, *avals: Any, exported: ExportedProgram) -> Any:
        values = solution_for(exported, avals).values
        return [
            out.update(shape=tuple(n if type(n) is int else n.evaluate(values) for n in out.shape))
            if out.symbolic
            else out
            for out in exported.out_avals
        ]

    def divisions(
        self, avals: Sequence[Any], results: Sequence[Any], *, exported: ExportedProgram
    ) -> Sequence[Any]:
        # The program says how its values are divided; types say that results are whole.
        return [None] * len(results)

    def lower(self, context: Builder, *values: Any, exported: ExportedProgram) -> Any:
        places, given = exported.places()
        if exported.nr_devices > 1:
            _check_devices(context, exported)
            values = tuple(_divided(context, values, context.avals_in, places))
        kept = exported.module_kept_var_idx
        operands = [values[i] for i in kept]
        avals = [context.avals_in[i] for i in kept]
        symbolic = any(aval.symbolic for aval in exported.in_avals)

        def called(platform: str) -> list[Any]:
            index = exported.platform_index(platform)
            return context.call_artifact(
                exported.mlir_module_serialized,
                exported.fun_name,
                index if len(exported.platforms) > 1 else None,
                operands,
                avals,
                symbolic,
            )

        results = by_platform(context, called, context.avals_out)
        if exported.nr_devices > 1:
            return _divided(context, results, context.avals_out, given)
        return results


call_exported_p: Final = CallExported()


def _check_devices(context: Builder, exported: ExportedProgram) -> None:
    there = 1 if context.partitioning is None else context.partitioning.mesh.size
    if there != exported.nr_devices:
        raise ValueError(
            f"{exported.fun_name} was exported for {exported.nr_devices} devices, and is called in "
            f"a program for {there}: place its arguments on {exported.nr_devices} devices, with "
            "dovetail.device_put and a NamedSharding"
        )


def _divided(
    context: Builder, values: Sequence[Any], avals: Sequence[Any], places: Sequence[Any]
) -> list[Any]:
    """Values, divided over devices as the program has been exported for."""
    return [
        value if place is None else context.divided(value, aval, place.mesh.shape_tuple, place.spec)
        for value, aval, place in zip(values, avals, places, strict=True)
    ]


def solution_for(exported: ExportedProgram, avals: Sequence[Any]) -> Solution:
    """The dimension variables of a program, for arguments of these avals.

    Raises:
        ValueError: the arguments do not fit.
    """
    names = exported.argument_names()
    for name, expected, aval in zip(names, exported.in_avals, avals, strict=True):
        if expected.dtype != aval.dtype:
            raise ValueError(
                f"{exported.fun_name} was exported for {name} of dtype {expected.dtype}, and is "
                f"called with {aval.dtype}"
            )
        if expected.ndim != aval.ndim:
            raise ValueError(
                f"{exported.fun_name} was exported for {name} of shape {expected.shape}, and is "
                f"called with {aval.shape}, which has another number of dimensions"
            )
    solution = solve(sizes_of(exported.in_avals, names, [aval.shape for aval in avals]))
    for check in solution.checks:
        if check.holds() is False:
            raise ValueError(f"{exported.fun_name}: {solution.message(check)}")
    return solution
