"""The operations of which programs are made: strict about dtypes and shapes, close to StableHLO.

Each name is loaded, with the module that it is in, when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dovetail.core.basis.elementwise import convert_element_type_p as convert_element_type_p
    from dovetail.core.basis.elementwise import mul_p as mul_p
    from dovetail.core.basis.elementwise import neg_p as neg_p
    from dovetail.core.basis.structural import broadcast_in_dim_p as broadcast_in_dim_p
    from dovetail.core.basis.structural import reduce_sum_p as reduce_sum_p
    from dovetail.core.basis.structural import reshape_p as reshape_p
    from dovetail.core.basis.structural import transpose_p as transpose_p
    from dovetail.core.ops.arithmetic import abs as abs
    from dovetail.core.ops.arithmetic import abs_p as abs_p
    from dovetail.core.ops.arithmetic import add as add
    from dovetail.core.ops.arithmetic import add_p as add_p
    from dovetail.core.ops.arithmetic import div as div
    from dovetail.core.ops.arithmetic import div_p as div_p
    from dovetail.core.ops.arithmetic import mul as mul
    from dovetail.core.ops.arithmetic import neg as neg
    from dovetail.core.ops.arithmetic import rem as rem
    from dovetail.core.ops.arithmetic import rem_p as rem_p
    from dovetail.core.ops.arithmetic import sign as sign
    from dovetail.core.ops.arithmetic import sign_p as sign_p
    from dovetail.core.ops.arithmetic import sub as sub
    from dovetail.core.ops.arithmetic import sub_p as sub_p
    from dovetail.core.ops.bitwise import and_p as and_p
    from dovetail.core.ops.bitwise import bitwise_and as bitwise_and
    from dovetail.core.ops.bitwise import bitwise_not as bitwise_not
    from dovetail.core.ops.bitwise import bitwise_or as bitwise_or
    from dovetail.core.ops.bitwise import bitwise_xor as bitwise_xor
    from dovetail.core.ops.bitwise import clz as clz
    from dovetail.core.ops.bitwise import clz_p as clz_p
    from dovetail.core.ops.bitwise import not_p as not_p
    from dovetail.core.ops.bitwise import or_p as or_p
    from dovetail.core.ops.bitwise import population_count as population_count
    from dovetail.core.ops.bitwise import population_count_p as population_count_p
    from dovetail.core.ops.bitwise import shift_left as shift_left
    from dovetail.core.ops.bitwise import shift_left_p as shift_left_p
    from dovetail.core.ops.bitwise import shift_right_arithmetic as shift_right_arithmetic
    from dovetail.core.ops.bitwise import shift_right_arithmetic_p as shift_right_arithmetic_p
    from dovetail.core.ops.bitwise import shift_right_logical as shift_right_logical
    from dovetail.core.ops.bitwise import shift_right_logical_p as shift_right_logical_p
    from dovetail.core.ops.bitwise import xor_p as xor_p
    from dovetail.core.ops.comparison import eq as eq
    from dovetail.core.ops.comparison import eq_p as eq_p
    from dovetail.core.ops.comparison import ge as ge
    from dovetail.core.ops.comparison import ge_p as ge_p
    from dovetail.core.ops.comparison import gt as gt
    from dovetail.core.ops.comparison import gt_p as gt_p
    from dovetail.core.ops.comparison import is_finite as is_finite
    from dovetail.core.ops.comparison import is_finite_p as is_finite_p
    from dovetail.core.ops.comparison import le as le
    from dovetail.core.ops.comparison import le_p as le_p
    from dovetail.core.ops.comparison import lt as lt
    from dovetail.core.ops.comparison import lt_p as lt_p
    from dovetail.core.ops.comparison import ne as ne
    from dovetail.core.ops.comparison import ne_p as ne_p
    from dovetail.core.ops.complex import complex as complex
    from dovetail.core.ops.complex import complex_p as complex_p
    from dovetail.core.ops.complex import conj as conj
    from dovetail.core.ops.complex import conj_p as conj_p
    from dovetail.core.ops.complex import imag as imag
    from dovetail.core.ops.complex import imag_p as imag_p
    from dovetail.core.ops.complex import real as real
    from dovetail.core.ops.complex import real_p as real_p
    from dovetail.core.ops.contraction import Precision as Precision
    from dovetail.core.ops.contraction import batch_matmul as batch_matmul
    from dovetail.core.ops.contraction import dot as dot
    from dovetail.core.ops.contraction import dot_general as dot_general
    from dovetail.core.ops.contraction import dot_general_p as dot_general_p
    from dovetail.core.ops.conversion import bitcast_convert_type as bitcast_convert_type
    from dovetail.core.ops.conversion import bitcast_convert_type_p as bitcast_convert_type_p
    from dovetail.core.ops.conversion import convert_element_type as convert_element_type
    from dovetail.core.ops.conversion import copy_p as copy_p
    from dovetail.core.ops.conversion import reduce_precision as reduce_precision
    from dovetail.core.ops.conversion import reduce_precision_p as reduce_precision_p
    from dovetail.core.ops.conversion import stop_gradient as stop_gradient
    from dovetail.core.ops.conversion import stop_gradient_p as stop_gradient_p
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
    from dovetail.core.ops.error_functions import erf as erf
    from dovetail.core.ops.error_functions import erf_inv as erf_inv
    from dovetail.core.ops.error_functions import erf_inv_p as erf_inv_p
    from dovetail.core.ops.error_functions import erf_p as erf_p
    from dovetail.core.ops.error_functions import erfc as erfc
    from dovetail.core.ops.error_functions import erfc_p as erfc_p
    from dovetail.core.ops.exponential import exp as exp
    from dovetail.core.ops.exponential import exp2 as exp2
    from dovetail.core.ops.exponential import exp2_p as exp2_p
    from dovetail.core.ops.exponential import exp_p as exp_p
    from dovetail.core.ops.exponential import expm1 as expm1
    from dovetail.core.ops.exponential import expm1_p as expm1_p
    from dovetail.core.ops.exponential import log as log
    from dovetail.core.ops.exponential import log1p as log1p
    from dovetail.core.ops.exponential import log1p_p as log1p_p
    from dovetail.core.ops.exponential import log_p as log_p
    from dovetail.core.ops.exponential import logistic as logistic
    from dovetail.core.ops.exponential import logistic_p as logistic_p
    from dovetail.core.ops.extrema import clamp as clamp
    from dovetail.core.ops.extrema import clamp_p as clamp_p
    from dovetail.core.ops.extrema import max as max
    from dovetail.core.ops.extrema import max_p as max_p
    from dovetail.core.ops.extrema import min as min
    from dovetail.core.ops.extrema import min_p as min_p
    from dovetail.core.ops.functions import AccuracyMode as AccuracyMode
    from dovetail.core.ops.functions import Tolerance as Tolerance
    from dovetail.core.ops.gamma_functions import digamma as digamma
    from dovetail.core.ops.gamma_functions import digamma_p as digamma_p
    from dovetail.core.ops.gamma_functions import lgamma as lgamma
    from dovetail.core.ops.gamma_functions import lgamma_p as lgamma_p
    from dovetail.core.ops.gamma_functions import polygamma as polygamma
    from dovetail.core.ops.gamma_functions import polygamma_p as polygamma_p
    from dovetail.core.ops.gamma_functions import zeta as zeta
    from dovetail.core.ops.gamma_functions import zeta_p as zeta_p
    from dovetail.core.ops.general_reduction import reduce as reduce
    from dovetail.core.ops.general_reduction import reduce_p as reduce_p
    from dovetail.core.ops.hyperbolic import acosh as acosh
    from dovetail.core.ops.hyperbolic import acosh_p as acosh_p
    from dovetail.core.ops.hyperbolic import asinh as asinh
    from dovetail.core.ops.hyperbolic import asinh_p as asinh_p
    from dovetail.core.ops.hyperbolic import atanh as atanh
    from dovetail.core.ops.hyperbolic import atanh_p as atanh_p
    from dovetail.core.ops.hyperbolic import cosh as cosh
    from dovetail.core.ops.hyperbolic import cosh_p as cosh_p
    from dovetail.core.ops.hyperbolic import sinh as sinh
    from dovetail.core.ops.hyperbolic import sinh_p as sinh_p
    from dovetail.core.ops.hyperbolic import tanh as tanh
    from dovetail.core.ops.hyperbolic import tanh_p as tanh_p
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
    from dovetail.core.ops.powers import cbrt as cbrt
    from dovetail.core.ops.powers import cbrt_p as cbrt_p
    from dovetail.core.ops.powers import integer_pow as integer_pow
    from dovetail.core.ops.powers import integer_pow_p as integer_pow_p
    from dovetail.core.ops.powers import pow as pow
    from dovetail.core.ops.powers import pow_p as pow_p
    from dovetail.core.ops.powers import reciprocal as reciprocal
    from dovetail.core.ops.powers import rsqrt as rsqrt
    from dovetail.core.ops.powers import rsqrt_p as rsqrt_p
    from dovetail.core.ops.powers import sqrt as sqrt
    from dovetail.core.ops.powers import sqrt_p as sqrt_p
    from dovetail.core.ops.powers import square as square
    from dovetail.core.ops.powers import square_p as square_p
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
    from dovetail.core.ops.rounding import RoundingMethod as RoundingMethod
    from dovetail.core.ops.rounding import ceil as ceil
    from dovetail.core.ops.rounding import ceil_p as ceil_p
    from dovetail.core.ops.rounding import floor as floor
    from dovetail.core.ops.rounding import floor_p as floor_p
    from dovetail.core.ops.rounding import nextafter as nextafter
    from dovetail.core.ops.rounding import nextafter_p as nextafter_p
    from dovetail.core.ops.rounding import round as round
    from dovetail.core.ops.rounding import round_p as round_p
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
    from dovetail.core.ops.selection import select as select
    from dovetail.core.ops.selection import select_n as select_n
    from dovetail.core.ops.selection import select_n_p as select_n_p
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
    from dovetail.core.ops.trigonometric import acos as acos
    from dovetail.core.ops.trigonometric import acos_p as acos_p
    from dovetail.core.ops.trigonometric import asin as asin
    from dovetail.core.ops.trigonometric import asin_p as asin_p
    from dovetail.core.ops.trigonometric import atan as atan
    from dovetail.core.ops.trigonometric import atan2 as atan2
    from dovetail.core.ops.trigonometric import atan2_p as atan2_p
    from dovetail.core.ops.trigonometric import atan_p as atan_p
    from dovetail.core.ops.trigonometric import cos as cos
    from dovetail.core.ops.trigonometric import cos_p as cos_p
    from dovetail.core.ops.trigonometric import sin as sin
    from dovetail.core.ops.trigonometric import sin_p as sin_p
    from dovetail.core.ops.trigonometric import tan as tan
    from dovetail.core.ops.trigonometric import tan_p as tan_p

# Module to the names that are in it.
_MODULES = {
    "dovetail.core.basis.elementwise": ("convert_element_type_p mul_p neg_p"),
    "dovetail.core.basis.structural": ("broadcast_in_dim_p reduce_sum_p reshape_p transpose_p"),
    "dovetail.core.ops.arithmetic": (
        "abs abs_p add add_p div div_p mul neg rem rem_p sign sign_p sub sub_p"
    ),
    "dovetail.core.ops.bitwise": (
        "and_p bitwise_and bitwise_not bitwise_or bitwise_xor clz clz_p not_p or_p "
        "population_count population_count_p shift_left shift_left_p shift_right_arithmetic "
        "shift_right_arithmetic_p shift_right_logical shift_right_logical_p xor_p"
    ),
    "dovetail.core.ops.comparison": (
        "eq eq_p ge ge_p gt gt_p is_finite is_finite_p le le_p lt lt_p ne ne_p"
    ),
    "dovetail.core.ops.complex": ("complex complex_p conj conj_p imag imag_p real real_p"),
    "dovetail.core.ops.contraction": ("Precision batch_matmul dot dot_general dot_general_p"),
    "dovetail.core.ops.conversion": (
        "bitcast_convert_type bitcast_convert_type_p convert_element_type copy_p reduce_precision "
        "reduce_precision_p stop_gradient stop_gradient_p"
    ),
    "dovetail.core.ops.creation": ("broadcasted_iota empty full full_like iota iota_p"),
    "dovetail.core.ops.cumulative": (
        "cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p cumprod cumprod_p cumsum "
        "cumsum_p"
    ),
    "dovetail.core.ops.dynamic_slicing": (
        "dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_slice_p "
        "dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim "
        "dynamic_update_slice_p"
    ),
    "dovetail.core.ops.error_functions": ("erf erf_inv erf_inv_p erf_p erfc erfc_p"),
    "dovetail.core.ops.exponential": (
        "exp exp2 exp2_p exp_p expm1 expm1_p log log1p log1p_p log_p logistic logistic_p"
    ),
    "dovetail.core.ops.extrema": ("clamp clamp_p max max_p min min_p"),
    "dovetail.core.ops.functions": ("AccuracyMode Tolerance"),
    "dovetail.core.ops.gamma_functions": (
        "digamma digamma_p lgamma lgamma_p polygamma polygamma_p zeta zeta_p"
    ),
    "dovetail.core.ops.general_reduction": ("reduce reduce_p"),
    "dovetail.core.ops.hyperbolic": (
        "acosh acosh_p asinh asinh_p atanh atanh_p cosh cosh_p sinh sinh_p tanh tanh_p"
    ),
    "dovetail.core.ops.indexing": ("GatherDimensionNumbers GatherScatterMode gather gather_p"),
    "dovetail.core.ops.joining": (
        "concatenate concatenate_p split split_p stack stack_p unstack unstack_p"
    ),
    "dovetail.core.ops.powers": (
        "cbrt cbrt_p integer_pow integer_pow_p pow pow_p reciprocal rsqrt rsqrt_p sqrt sqrt_p "
        "square square_p"
    ),
    "dovetail.core.ops.reduction": (
        "argmax argmax_p argmin argmin_p reduce_and reduce_and_p reduce_max reduce_max_p "
        "reduce_min reduce_min_p reduce_or reduce_or_p reduce_prod reduce_prod_p reduce_sum "
        "reduce_xor reduce_xor_p"
    ),
    "dovetail.core.ops.rounding": (
        "RoundingMethod ceil ceil_p floor floor_p nextafter nextafter_p round round_p"
    ),
    "dovetail.core.ops.scatter": (
        "ScatterDimensionNumbers scatter_add_p scatter_max_p scatter_min_p scatter_mul_p "
        "scatter_p scatter_sub_p"
    ),
    "dovetail.core.ops.scatter_functions": (
        "scatter scatter_add scatter_apply scatter_max scatter_min scatter_mul scatter_sub"
    ),
    "dovetail.core.ops.selection": ("select select_n select_n_p"),
    "dovetail.core.ops.shape": (
        "broadcast broadcast_in_dim broadcast_like broadcast_shapes broadcast_to_rank collapse "
        "expand_dims reshape rev rev_p squeeze squeeze_p tile tile_p transpose"
    ),
    "dovetail.core.ops.slicing": ("index_in_dim pad pad_p slice slice_in_dim slice_p"),
    "dovetail.core.ops.sorting": ("sort sort_key_val sort_p top_k top_k_p"),
    "dovetail.core.ops.trigonometric": (
        "acos acos_p asin asin_p atan atan2 atan2_p atan_p cos cos_p sin sin_p tan tan_p"
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "AccuracyMode",
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "Precision",
    "RoundingMethod",
    "ScatterDimensionNumbers",
    "Tolerance",
    "abs",
    "abs_p",
    "acos",
    "acos_p",
    "acosh",
    "acosh_p",
    "add",
    "add_p",
    "and_p",
    "argmax",
    "argmax_p",
    "argmin",
    "argmin_p",
    "asin",
    "asin_p",
    "asinh",
    "asinh_p",
    "atan",
    "atan2",
    "atan2_p",
    "atan_p",
    "atanh",
    "atanh_p",
    "batch_matmul",
    "bitcast_convert_type",
    "bitcast_convert_type_p",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast",
    "broadcast_in_dim",
    "broadcast_in_dim_p",
    "broadcast_like",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "cbrt",
    "cbrt_p",
    "ceil",
    "ceil_p",
    "clamp",
    "clamp_p",
    "clz",
    "clz_p",
    "collapse",
    "complex",
    "complex_p",
    "concatenate",
    "concatenate_p",
    "conj",
    "conj_p",
    "convert_element_type",
    "convert_element_type_p",
    "copy_p",
    "cos",
    "cos_p",
    "cosh",
    "cosh_p",
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
    "digamma",
    "digamma_p",
    "div",
    "div_p",
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
    "eq",
    "eq_p",
    "erf",
    "erf_inv",
    "erf_inv_p",
    "erf_p",
    "erfc",
    "erfc_p",
    "exp",
    "exp2",
    "exp2_p",
    "exp_p",
    "expand_dims",
    "expm1",
    "expm1_p",
    "floor",
    "floor_p",
    "full",
    "full_like",
    "gather",
    "gather_p",
    "ge",
    "ge_p",
    "gt",
    "gt_p",
    "imag",
    "imag_p",
    "index_in_dim",
    "integer_pow",
    "integer_pow_p",
    "iota",
    "iota_p",
    "is_finite",
    "is_finite_p",
    "le",
    "le_p",
    "lgamma",
    "lgamma_p",
    "log",
    "log1p",
    "log1p_p",
    "log_p",
    "logistic",
    "logistic_p",
    "lt",
    "lt_p",
    "max",
    "max_p",
    "min",
    "min_p",
    "mul",
    "mul_p",
    "ne",
    "ne_p",
    "neg",
    "neg_p",
    "nextafter",
    "nextafter_p",
    "not_p",
    "or_p",
    "pad",
    "pad_p",
    "polygamma",
    "polygamma_p",
    "population_count",
    "population_count_p",
    "pow",
    "pow_p",
    "real",
    "real_p",
    "reciprocal",
    "reduce",
    "reduce_and",
    "reduce_and_p",
    "reduce_max",
    "reduce_max_p",
    "reduce_min",
    "reduce_min_p",
    "reduce_or",
    "reduce_or_p",
    "reduce_p",
    "reduce_precision",
    "reduce_precision_p",
    "reduce_prod",
    "reduce_prod_p",
    "reduce_sum",
    "reduce_sum_p",
    "reduce_xor",
    "reduce_xor_p",
    "rem",
    "rem_p",
    "reshape",
    "reshape_p",
    "rev",
    "rev_p",
    "round",
    "round_p",
    "rsqrt",
    "rsqrt_p",
    "scatter",
    "scatter_add",
    "scatter_add_p",
    "scatter_apply",
    "scatter_max",
    "scatter_max_p",
    "scatter_min",
    "scatter_min_p",
    "scatter_mul",
    "scatter_mul_p",
    "scatter_p",
    "scatter_sub",
    "scatter_sub_p",
    "select",
    "select_n",
    "select_n_p",
    "shift_left",
    "shift_left_p",
    "shift_right_arithmetic",
    "shift_right_arithmetic_p",
    "shift_right_logical",
    "shift_right_logical_p",
    "sign",
    "sign_p",
    "sin",
    "sin_p",
    "sinh",
    "sinh_p",
    "slice",
    "slice_in_dim",
    "slice_p",
    "sort",
    "sort_key_val",
    "sort_p",
    "split",
    "split_p",
    "sqrt",
    "sqrt_p",
    "square",
    "square_p",
    "squeeze",
    "squeeze_p",
    "stack",
    "stack_p",
    "stop_gradient",
    "stop_gradient_p",
    "sub",
    "sub_p",
    "tan",
    "tan_p",
    "tanh",
    "tanh_p",
    "tile",
    "tile_p",
    "top_k",
    "top_k_p",
    "transpose",
    "transpose_p",
    "unstack",
    "unstack_p",
    "xor_p",
    "zeta",
    "zeta_p",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'dovetail.lax' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
