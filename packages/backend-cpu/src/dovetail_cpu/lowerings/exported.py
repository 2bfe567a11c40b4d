"""What calls of exported programs need of the process."""

from __future__ import annotations

from typing import Any, Final

from dovetail.extend import LoweringTable
from dovetail_cpu.lowerings.lapack import prepare


def call_exported(context: Any, *values: Any, exported: Any) -> Any:
    """The primitive's own lowering, after LAPACK is made ready if the program calls it."""
    if b"lapack_" in exported.mlir_module_serialized:
        context.prepare(prepare)
    return NotImplemented


TABLE: Final = LoweringTable([{"call_exported": call_exported}])
