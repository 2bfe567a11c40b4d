"""Sizes of dimensions that may be symbolic, in functions that `dovetail.export` exports.

Such sizes take part in arithmetic and in shapes as integers do; what needs a number asks first:

    from dovetail.extend.dimensions import is_symbolic_dim, max_dim

    def padded(size):
        return max_dim(size, 8)
"""

from dovetail._core.ir.dimensions import SymbolicDimension as SymbolicDimension
from dovetail._core.ir.dimensions import as_size as as_size
from dovetail._core.ir.dimensions import is_symbolic_dim as is_symbolic_dim
from dovetail._core.ir.dimensions import known_at_most as known_at_most
from dovetail._core.ir.dimensions import largest_known as largest_known
from dovetail._core.ir.dimensions import max_dim as max_dim
from dovetail._core.ir.dimensions import min_dim as min_dim
from dovetail._core.ir.dimensions import surely_less as surely_less

__all__ = [
    "SymbolicDimension",
    "as_size",
    "is_symbolic_dim",
    "known_at_most",
    "largest_known",
    "max_dim",
    "min_dim",
    "surely_less",
]
