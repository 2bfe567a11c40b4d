"""A module under construction: its context, its functions and the insertion point."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from dovetail._core.base.restoring import Restoring
from dovetail._core.hlo.attributes import convert_attribute
from dovetail._core.hlo.context import Locations, entered, make_context
from dovetail._core.hlo.mlir import Block, Operation, Type, ir

__all__ = ["ModuleBuilder", "fit_for_symbols"]

_UNFIT: Final = re.compile(r"[^\w.-]")


def fit_for_symbols(name: str) -> str:
    """Replace characters of `name` that names of modules and functions may not contain.

    Example:
        >>> fit_for_symbols("<lambda>")
        '_lambda_'
    """
    return _UNFIT.sub("_", name)


class ModuleBuilder:
    """An empty module in a context of its own.

    Attributes:
        module: the MLIR module.
        locations: locations of its context.
    """

    __slots__ = ("_context", "_symbols", "locations", "module")

    def __init__(self) -> None:
        self._context = make_context()
        self.locations = Locations(self._context)
        self.module = ir.Module.create(loc=self.locations.unknown)
        self._symbols: dict[str, int] = {}

    def current(self) -> Restoring[None]:
        """Make the module's context current, for creating attributes and operations."""
        return entered(self._context, self.locations.unknown)

    def inside(self, block: Block) -> Restoring[None]:
        """Insert operations at the end of a block."""
        return entered(ir.InsertionPoint(block))

    def set_attributes(self, attributes: dict[str, Any]) -> None:
        """Set attributes of the module: Python values or MLIR attributes."""
        module_attributes = self.module.operation.attributes
        for name, value in attributes.items():
            module_attributes[name] = convert_attribute(value)

    def unique_symbol(self, name: str) -> str:
        """`name`, with a number added if the module already has a function of that name."""
        base = fit_for_symbols(name)
        symbol = base
        while symbol in self._symbols:
            symbol = f"{base}_{self._symbols[base]}"
            self._symbols[base] += 1
        self._symbols[symbol] = 0
        return symbol

    def function(
        self,
        symbol: str,
        arguments: Sequence[Type],
        results: Sequence[Type],
        *,
        public: bool = False,
        names: Sequence[str | None] | None = None,
    ) -> tuple[Block, Operation]:
        """Add a function without operations.

        Args:
            symbol: its name in the module.
            arguments: types of its arguments.
            results: types of its results.
            public: whether it can be called from outside.
            names: names of the arguments, shown in profiles.

        Returns:
            Its block, whose arguments are those of the function, and the function itself.
        """
        unknown = self.locations.unknown
        kind = ir.FunctionType.get(list(arguments), list(results))
        operation = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "function_type": ir.TypeAttr.get(kind),
                "sym_visibility": ir.StringAttr.get("public" if public else "private"),
            },
            regions=1,
            loc=unknown,
            ip=ir.InsertionPoint(self.module.body),
        )
        locations = [
            unknown if name is None else ir.Location.name(name, unknown)
            for name in names or [None] * len(arguments)
        ]
        return operation.regions[0].blocks.append(*arguments, arg_locs=locations), operation
