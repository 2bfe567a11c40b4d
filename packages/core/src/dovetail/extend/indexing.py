"""Helpers for gathers and scatters, for operands that have been checked."""

from dovetail._core.base.config import check_static_indices as check_static_indices
from dovetail._core.ir.index_slices import Slice as Slice
from dovetail._core.ops.indexing.gather import canonical_fill as canonical_fill
from dovetail._core.ops.indexing.gather import gather_slices as gather_slices
from dovetail._core.ops.indexing.scatter import ScatterFamily as ScatterFamily
from dovetail._core.ops.indexing.scatter import bind_scatter as bind_scatter
from dovetail._core.ops.indexing.scatter import scatter_numbers as scatter_numbers
from dovetail._core.ops.indexing.searching import precedes as precedes
from dovetail._core.ops.indexing.searching import search_sorted as search_sorted
from dovetail._core.ops.indexing.selection import order_statistics as order_statistics
from dovetail._core.ops.indexing.sorting import take_along as take_along
from dovetail._core.ops.indexing.true_positions import true_positions as true_positions

__all__ = [
    "ScatterFamily",
    "Slice",
    "bind_scatter",
    "canonical_fill",
    "check_static_indices",
    "gather_slices",
    "order_statistics",
    "precedes",
    "scatter_numbers",
    "search_sorted",
    "take_along",
    "true_positions",
]
