"""Calls of functions inside and outside of the module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dovetail._core.base.counting import counted
from dovetail._core.hlo.mlir import Attribute, Location, Value, ir
from dovetail._core.hlo.partitioning import Partitioning
from dovetail._core.hlo.regions import RegionBuilder
from dovetail._core.ir.jaxpr import JaxprEqn

__all__ = ["CallBuilder"]


class CallBuilder(RegionBuilder):
    """Calls by name."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        #: Meshes and shardings, in programs over several devices.
        self.partitioning: Partitioning | None = None
        #: Targets of calls that the compiler divides over devices along their batch dimensions.
        self.divisible: set[str] = set()
        #: Targets of custom calls, with the equations that they stand for.
        self.custom_calls: list[tuple[str, JaxprEqn | None]] = []
        self._layouts_of: dict[tuple[tuple[int, ...], ...], Attribute] = {}

    def tell(self, values: Iterable[Value], pairs: Iterable[tuple[str, str]]) -> None:
        """Tell XLA something of the operations that values come from, unless they are constants.

        Args:
            values: the values; what are arguments of a function comes from no operation.
            pairs: names and values.
        """
        told = dict(pairs)
        for value in values if told else ():
            operation = getattr(value.owner, "attributes", None)
            if operation is None or value.owner.name == "stablehlo.constant":
                continue
            known = {}
            if "mhlo.frontend_attributes" in operation:
                known = {entry.name: entry.attr for entry in operation["mhlo.frontend_attributes"]}
            operation["mhlo.frontend_attributes"] = self.dictionary({**known, **told})

    def call(self, symbol: str, values: Sequence[Value], outs: Sequence[Any]) -> list[Value]:
        """Call a function of the module."""
        return self.ops("func.call", values, outs, {"callee": self.symbol(symbol)})

    def custom_call(
        self,
        target: str,
        operands: Sequence[Value],
        outs: Sequence[Any],
        backend_config: Mapping[str, Any] | str = {},  # never changed
        has_side_effect: bool = False,
        operand_layouts: Sequence[Sequence[int]] | None = None,
        result_layouts: Sequence[Sequence[int]] | None = None,
        aliases: Mapping[int, int] = {},  # never changed
        api_version: int = 4,
        attributes: Mapping[str, Any] | None = None,
        batch_dims: int = 0,
    ) -> list[Value]:
        """Call a function that is registered with the platform.

        Args:
            target: the name under which it is registered.
            operands: values.
            outs: avals of the results.
            backend_config: its static arguments. Their types must be exactly those that the target
                was compiled with: ``int`` is int64, ``float`` is double, NumPy scalars have the
                type of their dtype.
            has_side_effect: whether the call must not be removed, duplicated or merged.
            operand_layouts: for each operand, its dimensions from the fastest to the slowest
                varying; row-major for all by default.
            result_layouts: the same for the results.
            aliases: index of an operand to the index of the result that is written over it.
            api_version: 4 is XLA's typed foreign function interface.
            attributes: further attributes of the operation.
            batch_dims: how many leading dimensions all operands and results share, along which the
                function treats each element by itself, wherever it is. A program over several
                devices is divided along these; by default each device makes the whole call.

        Returns:
            The results.

        Raises:
            ValueError: an operand or result lacks a batch dimension.
        """
        return list(
            self.custom_call_operation(
                target,
                operands,
                outs,
                backend_config,
                has_side_effect,
                operand_layouts,
                result_layouts,
                aliases,
                api_version,
                attributes,
                batch_dims,
            ).results
        )

    def custom_call_operation(
        self,
        target: str,
        operands: Sequence[Value],
        outs: Sequence[Any],
        backend_config: Mapping[str, Any] | str = {},  # never changed
        has_side_effect: bool = False,
        operand_layouts: Sequence[Sequence[int]] | None = None,
        result_layouts: Sequence[Sequence[int]] | None = None,
        aliases: Mapping[int, int] = {},  # never changed
        api_version: int = 4,
        attributes: Mapping[str, Any] | None = None,
        batch_dims: int = 0,
    ) -> Any:
        """`custom_call`, of which it returns the operation itself."""
        outs = list(outs)
        self.custom_calls.append((target, self.equation))
        attrs: dict[str, Any] = {
            "call_target_name": target,
            "api_version": self.i32(api_version),
            "has_side_effect": has_side_effect,
            "backend_config": backend_config
            if isinstance(backend_config, str)
            else self.dictionary(backend_config),
        }
        if operand_layouts is not None or result_layouts is not None:
            attrs["operand_layouts"] = self._layouts(operand_layouts, [v.type for v in operands])
            attrs["result_layouts"] = self._layouts(result_layouts, [self.types[o] for o in outs])
        if aliases:
            attrs["output_operand_aliases"] = self.array(
                [
                    self.output_operand_alias(result, operand, len(outs))
                    for operand, result in aliases.items()
                ]
            )
        if any(getattr(out, "symbolic", False) for out in outs):
            attrs["indices_of_shape_operands"] = self.i64_elements(
                np.arange(len(operands), len(operands) + len(outs))
            )
            operands = [*operands, *map(self.shape, outs)]
            if "operand_layouts" in attrs:
                if operand_layouts is not None:
                    operand_layouts = [*operand_layouts, *[(0,)] * len(outs)]
                attrs["operand_layouts"] = self._layouts(
                    operand_layouts, [v.type for v in operands]
                )
        if batch_dims:
            attrs.update(self._divided(target, operands, outs, batch_dims))
        if attributes:
            attrs.update(attributes)
        return self.operation("stablehlo.custom_call", operands, outs, attrs)

    def _divided(
        self, target: str, operands: Sequence[Value], outs: Sequence[Any], batch_dims: int
    ) -> dict[str, Any]:
        taken = [tuple(value.type.shape) for value in operands]
        given = [tuple(self.types[out].shape) for out in outs]
        if len({(*shape, None)[:batch_dims] for shape in (*taken, *given)}) != 1:
            raise ValueError(
                f"the call of {target} has {batch_dims} batch dimensions, but operands of shapes "
                f"{taken} and results of shapes {given}, which do not all begin with the same ones"
            )
        if self.partitioning is None:
            return {}
        self.divisible.add(target)
        return {
            "sdy.sharding_rule": self.partitioning.batched(taken, given, batch_dims),
            "mhlo.frontend_attributes": {"num_batch_dims": str(batch_dims)},
        }

    def _layouts(self, layouts: Sequence[Sequence[int]] | None, types: Sequence[Any]) -> Attribute:
        if layouts is None:
            # A token has no dimensions to order.
            layouts = [tuple(range(getattr(t, "rank", 0)))[::-1] for t in types]
        if len(layouts) != len(types):
            raise ValueError(
                f"{counted(len(layouts), 'layout')} were given for {counted(len(types), 'value')}"
            )
        key = tuple([tuple(layout) for layout in layouts])
        cached = self._layouts_of.get(key)
        if cached is None:
            cached = self._layouts_of[key] = ir.ArrayAttr.get(
                [
                    ir.DenseIntElementsAttr.get(np.asarray(one, np.int64), type=ir.IndexType.get())
                    for one in key
                ]
            )
        return cached
