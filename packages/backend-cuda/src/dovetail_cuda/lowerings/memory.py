"""Values in host memory, and values that must be computed."""

from __future__ import annotations

from typing import Final

from dovetail.extend import LoweringTable
from dovetail.extend.lowering import copy_to_memory, exchange_rows, keep_alive

TABLE: Final = LoweringTable()

TABLE.rule("offload")(copy_to_memory)
TABLE.rule("ragged_all_to_all")(exchange_rows)
# The kernel comes with jaxlib.
TABLE.rule("dce_sink")(keep_alive)
