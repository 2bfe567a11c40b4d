"""Looking at lowered programs in XLA's own language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dovetail.core.base.bindings import _jax

if TYPE_CHECKING:
    from dovetail.core.lower.lowering import LoweredModule

__all__ = ["cost_of", "hlo_of"]


def hlo_of(lowered: LoweredModule) -> Any:
    """The program before optimisation, as jaxlib's `XlaComputation`; `as_hlo_text` prints it."""
    return _jax.mlir.mlir_module_to_xla_computation(
        lowered.text(), use_tuple_args=False, return_tuple=False
    )


def cost_of(lowered: LoweredModule, client: Any) -> Mapping[str, float]:
    """Counted operations and bytes before optimisation, by the compiler's names."""
    found: Mapping[str, float] = _jax.hlo_module_cost_analysis(
        client, hlo_of(lowered).get_hlo_module()
    )
    return found
