"""The primitive of functions that say themselves how they are divided over devices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol

from dovetail._core.base.records import record
from dovetail._core.ir.jaxpr import ClosedJaxpr
from dovetail._core.ir.shown_params import ShownParams, never
from dovetail._core.ops.calls.program_primitive import OperationPrimitive
from dovetail._core.ops.parallel.sharding_rules import SdyShardingRule

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class Division(NamedTuple):
    """How a function is divided over devices.

    Attributes:
        mesh: the devices.
        function: what each of them computes from its parts of the operands: from flat leaves to a
            list of flat results.
        results: the sharding of each result.
        operands: the sharding of each operand.
    """

    mesh: Any
    function: Callable[..., list[Any]]
    results: list[Any]
    operands: list[Any]


class Partition(Protocol):
    """What a function says of its division over devices."""

    @property
    def name(self) -> str:
        """The function's name, and where it is defined."""

    def rule(
        self, mesh: Any, operands: Sequence[Any], results: Sequence[Any]
    ) -> SdyShardingRule | None:
        """Along which dimensions it can be divided."""

    def divided(
        self,
        mesh: Any,
        avals: tuple[Sequence[Any], Sequence[Any]],
        shardings: tuple[Sequence[Any], Sequence[Any]],
    ) -> Division:
        """How it is divided, where its operands and results have such shardings."""


@record(eq=False)
class PartitionedCall:
    """A call in a program whose division the compiler asks for.

    Attributes:
        number: the number by which the compiler knows it.
        partition: what says how it is divided.
        in_avals: the avals of its operands.
        out_avals: the avals of its results.
    """

    number: int
    partition: Partition
    in_avals: Sequence[Any]
    out_avals: Sequence[Any]


_numbers: Final = itertools.count(1)


class CustomPartitioning(OperationPrimitive):
    """A function that says itself how it is divided over devices.

    Under differentiation and vmap, on one device, and where devices have parts already, it is the
    function.
    """

    name = "custom_partitioning"
    program: ClassVar[str] = "call"
    shown_params: ClassVar[ShownParams] = {"partition": never}

    def lower(self, context: Builder, *values: Any, call: ClosedJaxpr, partition: Partition) -> Any:
        there = context.partitioning
        if there is None or context.manual is not None or not call.out_avals:
            return context.call_jaxpr(call, values, self.name)
        rule = partition.rule(there.mesh, context.avals_in, context.avals_out)
        attributes = {}
        if rule is not None:
            table = rule.table(
                [aval.shape for aval in context.avals_in],
                [aval.shape for aval in context.avals_out],
                partition.name,
            )
            attributes["sdy.sharding_rule"] = there.rule(
                table.sizes,
                table.operands,
                table.results,
                reduction=table.reduction,
                need_replication=table.need_replication,
                permutation=table.permutation,
            )
        own = PartitionedCall(
            next(_numbers), partition, tuple(context.avals_in), tuple(context.avals_out)
        )
        context.partitioned.append(own)
        return context.custom_call(
            TARGET,
            list(values),
            context.avals_out,
            str(own.number),
            api_version=2,
            attributes=attributes,
        )


#: The name of the calls that the compiler asks about.
TARGET: Final = "dovetail_custom_partitioning"

custom_partitioning_p: Final = CustomPartitioning()
