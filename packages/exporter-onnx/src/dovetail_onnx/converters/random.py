"""Random bits by Threefry, which is made of sums, shifts and exclusive ors."""

from __future__ import annotations

from typing import Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.graph import Graph, Value

table = LoweringTable()

_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = np.uint32(0x1BD11BDA)


@table.rule("threefry2x32")
def threefry2x32(c: Context, *operands: Value) -> list[Value]:
    """Two words encrypted with a key of two words."""
    g = c.graph
    key1, key2, x1, x2 = (g.expand(x, c.shape) for x in operands)
    return encrypted(g, (key1, key2), x1, x2)


def encrypted(g: Graph, key: tuple[Value, Value], x1: Value, x2: Value) -> list[Value]:
    """Two words encrypted with a key.

    Source: J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011.
    """
    key1, key2 = key
    parity = g.op("BitwiseXor", g.op("BitwiseXor", key1, key2), g.constant(_PARITY))
    schedule = (key1, key2, parity)
    x1, x2 = g.op("Add", x1, key1), g.op("Add", x2, key2)
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x1 = g.op("Add", x1, x2)
            left = g.op("BitShift", x2, g.constant(np.uint32(distance)), direction="LEFT")
            right = g.op("BitShift", x2, g.constant(np.uint32(32 - distance)), direction="RIGHT")
            x2 = g.op("BitwiseXor", x1, g.op("BitwiseOr", left, right))
        x1 = g.op("Add", x1, schedule[(group + 1) % 3])
        x2 = g.op("Add", g.op("Add", x2, schedule[(group + 2) % 3]), group + 1)
    return [x1, x2]
