"""Inspection of lowered programs as HLO."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dovetail._core.base.bindings import _jax, xla_client

if TYPE_CHECKING:
    from dovetail._core.lower.lowering import LoweredModule

__all__ = ["cost_of", "counted", "hlo_of"]


def hlo_of(lowered: LoweredModule) -> Any:
    """The program before optimisation, as jaxlib's `XlaComputation`, with names and lines.

    Its `as_hlo_text` leaves these out.

    Raises:
        ValueError: it is lowered to equations, for a backend that reads jaxprs.
    """
    if lowered.equations is not None:
        raise ValueError(
            f"{lowered.name} is lowered for {lowered.platforms[0]!r}, whose backend reads "
            "equations: there is no HLO of it. as_text() shows the equations"
        )
    return _jax.mlir.mlir_module_to_xla_computation(
        lowered.text(debug_info=True), use_tuple_args=False, return_tuple=False
    )


def cost_of(lowered: LoweredModule, client: Any = None) -> Mapping[str, float]:
    """Counts of operations and bytes before optimisation, by the compiler's names.

    Args:
        lowered: the program.
        client: the client whose cost analysis is used; the CPU's if None.
    """
    return counted(hlo_of(lowered).get_hlo_module(), client)


def counted(module: Any, client: Any = None) -> Mapping[str, float]:
    """Counts of operations and bytes in one of jaxlib's HLO modules, by the compiler's names.

    Args:
        module: the module.
        client: the client whose cost analysis is used; the CPU's if None.
    """
    costs: Mapping[str, float] = _jax.hlo_module_cost_analysis(client or _counting(), module)
    return costs


@functools.lru_cache(maxsize=1)
def _counting() -> Any:
    """XLA's own CPU client, used only for cost analysis.

    Compile-only clients have no cost analysis, and a CPU backend need not be installed.
    """
    return xla_client.make_cpu_client()
