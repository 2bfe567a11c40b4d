"""The operations of which programs are made: strict about dtypes and shapes, close to StableHLO."""

from __future__ import annotations

from dovetail.core.basis.structural import broadcast_in_dim_p as broadcast_in_dim_p
from dovetail.core.basis.structural import reduce_sum_p as reduce_sum_p
from dovetail.core.basis.structural import reshape_p as reshape_p
from dovetail.core.basis.structural import transpose_p as transpose_p
from dovetail.core.ops.contraction import Precision as Precision
from dovetail.core.ops.contraction import batch_matmul as batch_matmul
from dovetail.core.ops.contraction import dot as dot
from dovetail.core.ops.contraction import dot_general as dot_general
from dovetail.core.ops.contraction import dot_general_p as dot_general_p
from dovetail.core.ops.creation import broadcasted_iota as broadcasted_iota
from dovetail.core.ops.creation import empty as empty
from dovetail.core.ops.creation import full as full
from dovetail.core.ops.creation import full_like as full_like
from dovetail.core.ops.creation import iota as iota
from dovetail.core.ops.creation import iota_p as iota_p
from dovetail.core.ops.cumulative import cumlogsumexp as cumlogsumexp
from dovetail.core.ops.cumulative import cumlogsumexp_p as cumlogsumexp_p
from dovetail.core.ops.cumulative import cummax as cummax
from dovetail.core.ops.cumulative import cummax_p as cummax_p
from dovetail.core.ops.cumulative import cummin as cummin
from dovetail.core.ops.cumulative import cummin_p as cummin_p
from dovetail.core.ops.cumulative import cumprod as cumprod
from dovetail.core.ops.cumulative import cumprod_p as cumprod_p
from dovetail.core.ops.cumulative import cumsum as cumsum
from dovetail.core.ops.cumulative import cumsum_p as cumsum_p
from dovetail.core.ops.dynamic_slicing import dynamic_index_in_dim as dynamic_index_in_dim
from dovetail.core.ops.dynamic_slicing import dynamic_slice as dynamic_slice
from dovetail.core.ops.dynamic_slicing import dynamic_slice_in_dim as dynamic_slice_in_dim
from dovetail.core.ops.dynamic_slicing import dynamic_slice_p as dynamic_slice_p
from dovetail.core.ops.dynamic_slicing import (
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
)
from dovetail.core.ops.dynamic_slicing import dynamic_update_slice as dynamic_update_slice
from dovetail.core.ops.dynamic_slicing import (
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
)
from dovetail.core.ops.dynamic_slicing import dynamic_update_slice_p as dynamic_update_slice_p
from dovetail.core.ops.indexing import GatherDimensionNumbers as GatherDimensionNumbers
from dovetail.core.ops.indexing import GatherScatterMode as GatherScatterMode
from dovetail.core.ops.indexing import gather as gather
from dovetail.core.ops.indexing import gather_p as gather_p
from dovetail.core.ops.joining import concatenate as concatenate
from dovetail.core.ops.joining import concatenate_p as concatenate_p
from dovetail.core.ops.joining import split as split
from dovetail.core.ops.joining import split_p as split_p
from dovetail.core.ops.joining import stack as stack
from dovetail.core.ops.joining import stack_p as stack_p
from dovetail.core.ops.joining import unstack as unstack
from dovetail.core.ops.joining import unstack_p as unstack_p
from dovetail.core.ops.reduction import argmax as argmax
from dovetail.core.ops.reduction import argmax_p as argmax_p
from dovetail.core.ops.reduction import argmin as argmin
from dovetail.core.ops.reduction import argmin_p as argmin_p
from dovetail.core.ops.reduction import reduce_and as reduce_and
from dovetail.core.ops.reduction import reduce_and_p as reduce_and_p
from dovetail.core.ops.reduction import reduce_max as reduce_max
from dovetail.core.ops.reduction import reduce_max_p as reduce_max_p
from dovetail.core.ops.reduction import reduce_min as reduce_min
from dovetail.core.ops.reduction import reduce_min_p as reduce_min_p
from dovetail.core.ops.reduction import reduce_or as reduce_or
from dovetail.core.ops.reduction import reduce_or_p as reduce_or_p
from dovetail.core.ops.reduction import reduce_prod as reduce_prod
from dovetail.core.ops.reduction import reduce_prod_p as reduce_prod_p
from dovetail.core.ops.reduction import reduce_sum as reduce_sum
from dovetail.core.ops.reduction import reduce_xor as reduce_xor
from dovetail.core.ops.reduction import reduce_xor_p as reduce_xor_p
from dovetail.core.ops.scatter import ScatterDimensionNumbers as ScatterDimensionNumbers
from dovetail.core.ops.scatter import scatter_add_p as scatter_add_p
from dovetail.core.ops.scatter import scatter_max_p as scatter_max_p
from dovetail.core.ops.scatter import scatter_min_p as scatter_min_p
from dovetail.core.ops.scatter import scatter_mul_p as scatter_mul_p
from dovetail.core.ops.scatter import scatter_p as scatter_p
from dovetail.core.ops.scatter import scatter_sub_p as scatter_sub_p
from dovetail.core.ops.scatter_functions import scatter as scatter
from dovetail.core.ops.scatter_functions import scatter_add as scatter_add
from dovetail.core.ops.scatter_functions import scatter_apply as scatter_apply
from dovetail.core.ops.scatter_functions import scatter_max as scatter_max
from dovetail.core.ops.scatter_functions import scatter_min as scatter_min
from dovetail.core.ops.scatter_functions import scatter_mul as scatter_mul
from dovetail.core.ops.scatter_functions import scatter_sub as scatter_sub
from dovetail.core.ops.shape import broadcast as broadcast
from dovetail.core.ops.shape import broadcast_in_dim as broadcast_in_dim
from dovetail.core.ops.shape import broadcast_like as broadcast_like
from dovetail.core.ops.shape import broadcast_shapes as broadcast_shapes
from dovetail.core.ops.shape import broadcast_to_rank as broadcast_to_rank
from dovetail.core.ops.shape import collapse as collapse
from dovetail.core.ops.shape import expand_dims as expand_dims
from dovetail.core.ops.shape import reshape as reshape
from dovetail.core.ops.shape import rev as rev
from dovetail.core.ops.shape import rev_p as rev_p
from dovetail.core.ops.shape import squeeze as squeeze
from dovetail.core.ops.shape import squeeze_p as squeeze_p
from dovetail.core.ops.shape import tile as tile
from dovetail.core.ops.shape import tile_p as tile_p
from dovetail.core.ops.shape import transpose as transpose
from dovetail.core.ops.slicing import index_in_dim as index_in_dim
from dovetail.core.ops.slicing import pad as pad
from dovetail.core.ops.slicing import pad_p as pad_p
from dovetail.core.ops.slicing import slice as slice
from dovetail.core.ops.slicing import slice_in_dim as slice_in_dim
from dovetail.core.ops.slicing import slice_p as slice_p
from dovetail.core.ops.sorting import sort as sort
from dovetail.core.ops.sorting import sort_key_val as sort_key_val
from dovetail.core.ops.sorting import sort_p as sort_p
from dovetail.core.ops.sorting import top_k as top_k
from dovetail.core.ops.sorting import top_k_p as top_k_p

__all__ = [
    "Precision",
    "argmax",
    "argmax_p",
    "argmin",
    "argmin_p",
    "batch_matmul",
    "broadcast",
    "broadcast_in_dim",
    "broadcast_in_dim_p",
    "broadcast_like",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "collapse",
    "concatenate",
    "concatenate_p",
    "cumlogsumexp",
    "cumlogsumexp_p",
    "cummax",
    "cummax_p",
    "cummin",
    "cummin_p",
    "cumprod",
    "cumprod_p",
    "cumsum",
    "cumsum_p",
    "dot",
    "dot_general",
    "dot_general_p",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_slice_p",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "dynamic_update_slice_p",
    "empty",
    "expand_dims",
    "full",
    "full_like",
    "index_in_dim",
    "iota",
    "iota_p",
    "pad",
    "pad_p",
    "reduce_and",
    "reduce_and_p",
    "reduce_max",
    "reduce_max_p",
    "reduce_min",
    "reduce_min_p",
    "reduce_or",
    "reduce_or_p",
    "reduce_prod",
    "reduce_prod_p",
    "reduce_sum",
    "reduce_sum_p",
    "reduce_xor",
    "reduce_xor_p",
    "reshape",
    "reshape_p",
    "rev",
    "rev_p",
    "slice",
    "slice_in_dim",
    "slice_p",
    "sort",
    "sort_key_val",
    "sort_p",
    "split",
    "split_p",
    "squeeze",
    "squeeze_p",
    "stack",
    "stack_p",
    "tile",
    "tile_p",
    "top_k",
    "top_k_p",
    "transpose",
    "transpose_p",
    "unstack",
    "unstack_p",
]
