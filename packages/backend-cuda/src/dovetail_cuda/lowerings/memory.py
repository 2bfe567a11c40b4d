"""Values in the memory of the host, and values that must be computed."""

from __future__ import annotations

from typing import Final

from dovetail.extend import LoweringTable
from dovetail.extend.lowering import copy_to_memory, keep_alive

TABLE: Final = LoweringTable()

TABLE.rule("offload")(copy_to_memory)
# jaxlib brings the kernel.
TABLE.rule("dce_sink")(keep_alive)
