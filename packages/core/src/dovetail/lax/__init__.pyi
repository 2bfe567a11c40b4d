"""The names of `dovetail.lax`: the one list of them, for type checkers and at run time."""

from dovetail._core.basis.elementwise import convert_element_type_p as convert_element_type_p
from dovetail._core.basis.elementwise import mul_p as mul_p
from dovetail._core.basis.elementwise import neg_p as neg_p
from dovetail._core.basis.structural import broadcast_in_dim_p as broadcast_in_dim_p
from dovetail._core.basis.structural import reduce_sum_p as reduce_sum_p
from dovetail._core.basis.structural import reshape_p as reshape_p
from dovetail._core.basis.structural import transpose_p as transpose_p
from dovetail._core.ops.calls.barriers import dce_sink as dce_sink
from dovetail._core.ops.calls.barriers import optimization_barrier as optimization_barrier
from dovetail._core.ops.calls.barriers import optimization_barrier_p as optimization_barrier_p
from dovetail._core.ops.calls.barriers import stage as stage
from dovetail._core.ops.calls.barriers import stage_p as stage_p
from dovetail._core.ops.calls.composite import composite as composite
from dovetail._core.ops.calls.placement import device_put_p as device_put_p
from dovetail._core.ops.calls.sharding_constraint import (
    sharding_constraint_p as sharding_constraint_p,
)
from dovetail._core.ops.calls.sharding_constraint import (
    with_sharding_constraint as with_sharding_constraint,
)
from dovetail._core.ops.calls.tokens import after_all as after_all
from dovetail._core.ops.calls.tokens import after_all_p as after_all_p
from dovetail._core.ops.calls.tokens import create_token as create_token
from dovetail._core.ops.calls.tokens import create_token_p as create_token_p
from dovetail._core.ops.contraction.dot_algorithms import DotAlgorithm as DotAlgorithm
from dovetail._core.ops.contraction.dot_algorithms import DotAlgorithmPreset as DotAlgorithmPreset
from dovetail._core.ops.contraction.dot_general import DotDimensionNumbers as DotDimensionNumbers
from dovetail._core.ops.contraction.dot_general import Precision as Precision
from dovetail._core.ops.contraction.dot_general import PrecisionLike as PrecisionLike
from dovetail._core.ops.contraction.dot_general import batch_matmul as batch_matmul
from dovetail._core.ops.contraction.dot_general import dot as dot
from dovetail._core.ops.contraction.dot_general import dot_general as dot_general
from dovetail._core.ops.contraction.dot_general import dot_general_p as dot_general_p
from dovetail._core.ops.contraction.fourier import FftType as FftType
from dovetail._core.ops.contraction.fourier import fft as fft
from dovetail._core.ops.contraction.fourier import fft_p as fft_p
from dovetail._core.ops.contraction.ragged_contraction import ragged_dot as ragged_dot
from dovetail._core.ops.contraction.ragged_contraction import (
    ragged_dot_general as ragged_dot_general,
)
from dovetail._core.ops.contraction.ragged_dimensions import (
    RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
)
from dovetail._core.ops.contraction.scaled_contraction import scaled_dot as scaled_dot
from dovetail._core.ops.control.branches import cond_p as cond_p
from dovetail._core.ops.control.conditionals import cond as cond
from dovetail._core.ops.control.conditionals import switch as switch
from dovetail._core.ops.control.linear_solve import custom_linear_solve as custom_linear_solve
from dovetail._core.ops.control.linear_solve import linear_solve_p as linear_solve_p
from dovetail._core.ops.control.platforms import platform_dependent as platform_dependent
from dovetail._core.ops.control.root import custom_root as custom_root
from dovetail._core.ops.control.scan import scan_p as scan_p
from dovetail._core.ops.control.while_loop import while_p as while_p
from dovetail._core.ops.elementwise.arithmetic import add as add
from dovetail._core.ops.elementwise.arithmetic import add_p as add_p
from dovetail._core.ops.elementwise.arithmetic import div as div
from dovetail._core.ops.elementwise.arithmetic import div_p as div_p
from dovetail._core.ops.elementwise.arithmetic import mul as mul
from dovetail._core.ops.elementwise.arithmetic import neg as neg
from dovetail._core.ops.elementwise.arithmetic import sub as sub
from dovetail._core.ops.elementwise.arithmetic import sub_p as sub_p
from dovetail._core.ops.elementwise.bitwise import and_p as and_p
from dovetail._core.ops.elementwise.bitwise import bitwise_and as bitwise_and
from dovetail._core.ops.elementwise.bitwise import bitwise_not as bitwise_not
from dovetail._core.ops.elementwise.bitwise import bitwise_or as bitwise_or
from dovetail._core.ops.elementwise.bitwise import bitwise_xor as bitwise_xor
from dovetail._core.ops.elementwise.bitwise import clz as clz
from dovetail._core.ops.elementwise.bitwise import clz_p as clz_p
from dovetail._core.ops.elementwise.bitwise import not_p as not_p
from dovetail._core.ops.elementwise.bitwise import or_p as or_p
from dovetail._core.ops.elementwise.bitwise import population_count as population_count
from dovetail._core.ops.elementwise.bitwise import population_count_p as population_count_p
from dovetail._core.ops.elementwise.bitwise import shift_left as shift_left
from dovetail._core.ops.elementwise.bitwise import shift_left_p as shift_left_p
from dovetail._core.ops.elementwise.bitwise import shift_right_arithmetic as shift_right_arithmetic
from dovetail._core.ops.elementwise.bitwise import (
    shift_right_arithmetic_p as shift_right_arithmetic_p,
)
from dovetail._core.ops.elementwise.bitwise import shift_right_logical as shift_right_logical
from dovetail._core.ops.elementwise.bitwise import shift_right_logical_p as shift_right_logical_p
from dovetail._core.ops.elementwise.bitwise import xor_p as xor_p
from dovetail._core.ops.elementwise.comparison import eq as eq
from dovetail._core.ops.elementwise.comparison import eq_p as eq_p
from dovetail._core.ops.elementwise.comparison import eq_to_p as eq_to_p
from dovetail._core.ops.elementwise.comparison import ge as ge
from dovetail._core.ops.elementwise.comparison import ge_p as ge_p
from dovetail._core.ops.elementwise.comparison import gt as gt
from dovetail._core.ops.elementwise.comparison import gt_p as gt_p
from dovetail._core.ops.elementwise.comparison import is_finite as is_finite
from dovetail._core.ops.elementwise.comparison import is_finite_p as is_finite_p
from dovetail._core.ops.elementwise.comparison import le as le
from dovetail._core.ops.elementwise.comparison import le_p as le_p
from dovetail._core.ops.elementwise.comparison import le_to_p as le_to_p
from dovetail._core.ops.elementwise.comparison import lt as lt
from dovetail._core.ops.elementwise.comparison import lt_p as lt_p
from dovetail._core.ops.elementwise.comparison import lt_to_p as lt_to_p
from dovetail._core.ops.elementwise.comparison import ne as ne
from dovetail._core.ops.elementwise.comparison import ne_p as ne_p
from dovetail._core.ops.elementwise.complex import complex as complex
from dovetail._core.ops.elementwise.complex import complex_p as complex_p
from dovetail._core.ops.elementwise.complex import conj as conj
from dovetail._core.ops.elementwise.complex import conj_p as conj_p
from dovetail._core.ops.elementwise.complex import imag as imag
from dovetail._core.ops.elementwise.complex import imag_p as imag_p
from dovetail._core.ops.elementwise.complex import real as real
from dovetail._core.ops.elementwise.complex import real_p as real_p
from dovetail._core.ops.elementwise.conversion import bitcast_convert_type as bitcast_convert_type
from dovetail._core.ops.elementwise.conversion import (
    bitcast_convert_type_p as bitcast_convert_type_p,
)
from dovetail._core.ops.elementwise.conversion import convert_element_type as convert_element_type
from dovetail._core.ops.elementwise.conversion import copy_p as copy_p
from dovetail._core.ops.elementwise.conversion import dtype as dtype
from dovetail._core.ops.elementwise.conversion import reduce_precision as reduce_precision
from dovetail._core.ops.elementwise.conversion import reduce_precision_p as reduce_precision_p
from dovetail._core.ops.elementwise.conversion import stop_gradient as stop_gradient
from dovetail._core.ops.elementwise.conversion import stop_gradient_p as stop_gradient_p
from dovetail._core.ops.elementwise.exponential import exp as exp
from dovetail._core.ops.elementwise.exponential import exp2 as exp2
from dovetail._core.ops.elementwise.exponential import exp2_p as exp2_p
from dovetail._core.ops.elementwise.exponential import exp_p as exp_p
from dovetail._core.ops.elementwise.exponential import expm1 as expm1
from dovetail._core.ops.elementwise.exponential import expm1_p as expm1_p
from dovetail._core.ops.elementwise.exponential import log as log
from dovetail._core.ops.elementwise.exponential import log1p as log1p
from dovetail._core.ops.elementwise.exponential import log1p_p as log1p_p
from dovetail._core.ops.elementwise.exponential import log2 as log2
from dovetail._core.ops.elementwise.exponential import log2_p as log2_p
from dovetail._core.ops.elementwise.exponential import log_p as log_p
from dovetail._core.ops.elementwise.exponential import logistic as logistic
from dovetail._core.ops.elementwise.exponential import logistic_p as logistic_p
from dovetail._core.ops.elementwise.extrema import clamp as clamp
from dovetail._core.ops.elementwise.extrema import clamp_p as clamp_p
from dovetail._core.ops.elementwise.extrema import max as max
from dovetail._core.ops.elementwise.extrema import max_p as max_p
from dovetail._core.ops.elementwise.extrema import min as min
from dovetail._core.ops.elementwise.extrema import min_p as min_p
from dovetail._core.ops.elementwise.functions import AccuracyMode as AccuracyMode
from dovetail._core.ops.elementwise.functions import Tolerance as Tolerance
from dovetail._core.ops.elementwise.hyperbolic import acosh as acosh
from dovetail._core.ops.elementwise.hyperbolic import acosh_p as acosh_p
from dovetail._core.ops.elementwise.hyperbolic import asinh as asinh
from dovetail._core.ops.elementwise.hyperbolic import asinh_p as asinh_p
from dovetail._core.ops.elementwise.hyperbolic import atanh as atanh
from dovetail._core.ops.elementwise.hyperbolic import atanh_p as atanh_p
from dovetail._core.ops.elementwise.hyperbolic import cosh as cosh
from dovetail._core.ops.elementwise.hyperbolic import cosh_p as cosh_p
from dovetail._core.ops.elementwise.hyperbolic import sinh as sinh
from dovetail._core.ops.elementwise.hyperbolic import sinh_p as sinh_p
from dovetail._core.ops.elementwise.hyperbolic import tanh as tanh
from dovetail._core.ops.elementwise.hyperbolic import tanh_p as tanh_p
from dovetail._core.ops.elementwise.powers import cbrt as cbrt
from dovetail._core.ops.elementwise.powers import cbrt_p as cbrt_p
from dovetail._core.ops.elementwise.powers import integer_pow as integer_pow
from dovetail._core.ops.elementwise.powers import integer_pow_p as integer_pow_p
from dovetail._core.ops.elementwise.powers import one_minus_square as one_minus_square
from dovetail._core.ops.elementwise.powers import one_minus_square_p as one_minus_square_p
from dovetail._core.ops.elementwise.powers import pow as pow
from dovetail._core.ops.elementwise.powers import pow_p as pow_p
from dovetail._core.ops.elementwise.powers import reciprocal as reciprocal
from dovetail._core.ops.elementwise.powers import rsqrt as rsqrt
from dovetail._core.ops.elementwise.powers import rsqrt_p as rsqrt_p
from dovetail._core.ops.elementwise.powers import sqrt as sqrt
from dovetail._core.ops.elementwise.powers import sqrt_p as sqrt_p
from dovetail._core.ops.elementwise.powers import square as square
from dovetail._core.ops.elementwise.powers import square_p as square_p
from dovetail._core.ops.elementwise.remainders import mulhi as mulhi
from dovetail._core.ops.elementwise.remainders import mulhi_p as mulhi_p
from dovetail._core.ops.elementwise.remainders import rem as rem
from dovetail._core.ops.elementwise.remainders import rem_p as rem_p
from dovetail._core.ops.elementwise.rounding import RoundingMethod as RoundingMethod
from dovetail._core.ops.elementwise.rounding import ceil as ceil
from dovetail._core.ops.elementwise.rounding import ceil_p as ceil_p
from dovetail._core.ops.elementwise.rounding import floor as floor
from dovetail._core.ops.elementwise.rounding import floor_p as floor_p
from dovetail._core.ops.elementwise.rounding import nextafter as nextafter
from dovetail._core.ops.elementwise.rounding import nextafter_p as nextafter_p
from dovetail._core.ops.elementwise.rounding import round as round
from dovetail._core.ops.elementwise.rounding import round_p as round_p
from dovetail._core.ops.elementwise.selection import select as select
from dovetail._core.ops.elementwise.selection import select_n as select_n
from dovetail._core.ops.elementwise.selection import select_n_p as select_n_p
from dovetail._core.ops.elementwise.signs import abs as abs
from dovetail._core.ops.elementwise.signs import abs_p as abs_p
from dovetail._core.ops.elementwise.signs import sign as sign
from dovetail._core.ops.elementwise.signs import sign_p as sign_p
from dovetail._core.ops.elementwise.trigonometric import acos as acos
from dovetail._core.ops.elementwise.trigonometric import acos_p as acos_p
from dovetail._core.ops.elementwise.trigonometric import asin as asin
from dovetail._core.ops.elementwise.trigonometric import asin_p as asin_p
from dovetail._core.ops.elementwise.trigonometric import atan as atan
from dovetail._core.ops.elementwise.trigonometric import atan2 as atan2
from dovetail._core.ops.elementwise.trigonometric import atan2_p as atan2_p
from dovetail._core.ops.elementwise.trigonometric import atan_p as atan_p
from dovetail._core.ops.elementwise.trigonometric import cos as cos
from dovetail._core.ops.elementwise.trigonometric import cos_p as cos_p
from dovetail._core.ops.elementwise.trigonometric import sin as sin
from dovetail._core.ops.elementwise.trigonometric import sin_p as sin_p
from dovetail._core.ops.elementwise.trigonometric import tan as tan
from dovetail._core.ops.elementwise.trigonometric import tan_p as tan_p
from dovetail._core.ops.indexing.approximate_top_k import approx_max_k as approx_max_k
from dovetail._core.ops.indexing.approximate_top_k import approx_min_k as approx_min_k
from dovetail._core.ops.indexing.approximate_top_k import approx_top_k_p as approx_top_k_p
from dovetail._core.ops.indexing.dynamic_slicing import dynamic_index_in_dim as dynamic_index_in_dim
from dovetail._core.ops.indexing.dynamic_slicing import dynamic_slice as dynamic_slice
from dovetail._core.ops.indexing.dynamic_slicing import dynamic_slice_in_dim as dynamic_slice_in_dim
from dovetail._core.ops.indexing.dynamic_slicing import dynamic_slice_p as dynamic_slice_p
from dovetail._core.ops.indexing.dynamic_slicing import (
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
)
from dovetail._core.ops.indexing.dynamic_slicing import dynamic_update_slice as dynamic_update_slice
from dovetail._core.ops.indexing.dynamic_slicing import (
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
)
from dovetail._core.ops.indexing.dynamic_slicing import (
    dynamic_update_slice_p as dynamic_update_slice_p,
)
from dovetail._core.ops.indexing.dynamic_slicing import index_take as index_take
from dovetail._core.ops.indexing.gather import GatherDimensionNumbers as GatherDimensionNumbers
from dovetail._core.ops.indexing.gather import GatherScatterMode as GatherScatterMode
from dovetail._core.ops.indexing.gather import gather as gather
from dovetail._core.ops.indexing.gather import gather_p as gather_p
from dovetail._core.ops.indexing.scatter import ScatterDimensionNumbers as ScatterDimensionNumbers
from dovetail._core.ops.indexing.scatter import scatter_add_p as scatter_add_p
from dovetail._core.ops.indexing.scatter import scatter_max_p as scatter_max_p
from dovetail._core.ops.indexing.scatter import scatter_min_p as scatter_min_p
from dovetail._core.ops.indexing.scatter import scatter_mul_p as scatter_mul_p
from dovetail._core.ops.indexing.scatter import scatter_p as scatter_p
from dovetail._core.ops.indexing.scatter import scatter_sub_p as scatter_sub_p
from dovetail._core.ops.indexing.scatter_functions import scatter as scatter
from dovetail._core.ops.indexing.scatter_functions import scatter_add as scatter_add
from dovetail._core.ops.indexing.scatter_functions import scatter_apply as scatter_apply
from dovetail._core.ops.indexing.scatter_functions import scatter_max as scatter_max
from dovetail._core.ops.indexing.scatter_functions import scatter_min as scatter_min
from dovetail._core.ops.indexing.scatter_functions import scatter_mul as scatter_mul
from dovetail._core.ops.indexing.scatter_functions import scatter_sub as scatter_sub
from dovetail._core.ops.indexing.sorting import sort as sort
from dovetail._core.ops.indexing.sorting import sort_key_val as sort_key_val
from dovetail._core.ops.indexing.sorting import sort_p as sort_p
from dovetail._core.ops.indexing.sorting import top_k as top_k
from dovetail._core.ops.indexing.sorting import top_k_p as top_k_p
from dovetail._core.ops.loops.loops import fori_loop as fori_loop
from dovetail._core.ops.loops.loops import map as map
from dovetail._core.ops.loops.loops import scan as scan
from dovetail._core.ops.loops.while_loops import while_loop as while_loop
from dovetail._core.ops.parallel.casts import pcast as pcast
from dovetail._core.ops.parallel.casts import pvary as pvary
from dovetail._core.ops.parallel.collective import all_gather_p as all_gather_p
from dovetail._core.ops.parallel.collective import axis_index_p as axis_index_p
from dovetail._core.ops.parallel.collective import reduce_scatter_p as reduce_scatter_p
from dovetail._core.ops.parallel.exchanges import all_to_all_p as all_to_all_p
from dovetail._core.ops.parallel.exchanges import pbroadcast_p as pbroadcast_p
from dovetail._core.ops.parallel.exchanges import ppermute_p as ppermute_p
from dovetail._core.ops.parallel.functions import all_gather as all_gather
from dovetail._core.ops.parallel.functions import all_to_all as all_to_all
from dovetail._core.ops.parallel.functions import axis_index as axis_index
from dovetail._core.ops.parallel.functions import axis_size as axis_size
from dovetail._core.ops.parallel.functions import pbroadcast as pbroadcast
from dovetail._core.ops.parallel.functions import pmax as pmax
from dovetail._core.ops.parallel.functions import pmean as pmean
from dovetail._core.ops.parallel.functions import pmin as pmin
from dovetail._core.ops.parallel.functions import ppermute as ppermute
from dovetail._core.ops.parallel.functions import pshuffle as pshuffle
from dovetail._core.ops.parallel.functions import psum as psum
from dovetail._core.ops.parallel.functions import psum_scatter as psum_scatter
from dovetail._core.ops.parallel.functions import pswapaxes as pswapaxes
from dovetail._core.ops.parallel.functions import ragged_all_to_all as ragged_all_to_all
from dovetail._core.ops.parallel.futures import psum_scatter_start as psum_scatter_start
from dovetail._core.ops.parallel.ragged import ragged_all_to_all_p as ragged_all_to_all_p
from dovetail._core.ops.parallel.reductions import pmax_p as pmax_p
from dovetail._core.ops.parallel.reductions import pmin_p as pmin_p
from dovetail._core.ops.parallel.reductions import psum_p as psum_p
from dovetail._core.ops.random.random_bits import RandomAlgorithm as RandomAlgorithm
from dovetail._core.ops.random.random_bits import rng_bit_generator as rng_bit_generator
from dovetail._core.ops.random.random_bits import rng_bit_generator_p as rng_bit_generator_p
from dovetail._core.ops.random.random_bits import rng_uniform as rng_uniform
from dovetail._core.ops.random.random_bits import rng_uniform_p as rng_uniform_p
from dovetail._core.ops.reduction.associative_scan import associative_scan as associative_scan
from dovetail._core.ops.reduction.cumulative import cumlogsumexp as cumlogsumexp
from dovetail._core.ops.reduction.cumulative import cumlogsumexp_p as cumlogsumexp_p
from dovetail._core.ops.reduction.cumulative import cummax as cummax
from dovetail._core.ops.reduction.cumulative import cummax_p as cummax_p
from dovetail._core.ops.reduction.cumulative import cummin as cummin
from dovetail._core.ops.reduction.cumulative import cummin_p as cummin_p
from dovetail._core.ops.reduction.cumulative import cumprod as cumprod
from dovetail._core.ops.reduction.cumulative import cumprod_p as cumprod_p
from dovetail._core.ops.reduction.cumulative import cumsum as cumsum
from dovetail._core.ops.reduction.cumulative import cumsum_p as cumsum_p
from dovetail._core.ops.reduction.general_reduction import reduce as reduce
from dovetail._core.ops.reduction.general_reduction import reduce_p as reduce_p
from dovetail._core.ops.reduction.reductions import argmax as argmax
from dovetail._core.ops.reduction.reductions import argmax_p as argmax_p
from dovetail._core.ops.reduction.reductions import argmin as argmin
from dovetail._core.ops.reduction.reductions import argmin_p as argmin_p
from dovetail._core.ops.reduction.reductions import reduce_and as reduce_and
from dovetail._core.ops.reduction.reductions import reduce_and_p as reduce_and_p
from dovetail._core.ops.reduction.reductions import reduce_max as reduce_max
from dovetail._core.ops.reduction.reductions import reduce_max_p as reduce_max_p
from dovetail._core.ops.reduction.reductions import reduce_min as reduce_min
from dovetail._core.ops.reduction.reductions import reduce_min_p as reduce_min_p
from dovetail._core.ops.reduction.reductions import reduce_or as reduce_or
from dovetail._core.ops.reduction.reductions import reduce_or_p as reduce_or_p
from dovetail._core.ops.reduction.reductions import reduce_prod as reduce_prod
from dovetail._core.ops.reduction.reductions import reduce_prod_p as reduce_prod_p
from dovetail._core.ops.reduction.reductions import reduce_sum as reduce_sum
from dovetail._core.ops.reduction.reductions import reduce_xor as reduce_xor
from dovetail._core.ops.reduction.reductions import reduce_xor_p as reduce_xor_p
from dovetail._core.ops.shape.creation import broadcasted_iota as broadcasted_iota
from dovetail._core.ops.shape.creation import empty as empty
from dovetail._core.ops.shape.creation import full as full
from dovetail._core.ops.shape.creation import full_like as full_like
from dovetail._core.ops.shape.creation import iota as iota
from dovetail._core.ops.shape.creation import iota_p as iota_p
from dovetail._core.ops.shape.joining import concatenate as concatenate
from dovetail._core.ops.shape.joining import concatenate_p as concatenate_p
from dovetail._core.ops.shape.joining import split as split
from dovetail._core.ops.shape.joining import split_p as split_p
from dovetail._core.ops.shape.joining import stack as stack
from dovetail._core.ops.shape.joining import stack_p as stack_p
from dovetail._core.ops.shape.joining import unstack as unstack
from dovetail._core.ops.shape.joining import unstack_p as unstack_p
from dovetail._core.ops.shape.padding import padtype_to_pads as padtype_to_pads
from dovetail._core.ops.shape.reshaping import broadcast as broadcast
from dovetail._core.ops.shape.reshaping import broadcast_in_dim as broadcast_in_dim
from dovetail._core.ops.shape.reshaping import broadcast_like as broadcast_like
from dovetail._core.ops.shape.reshaping import broadcast_shapes as broadcast_shapes
from dovetail._core.ops.shape.reshaping import broadcast_to_rank as broadcast_to_rank
from dovetail._core.ops.shape.reshaping import collapse as collapse
from dovetail._core.ops.shape.reshaping import expand_dims as expand_dims
from dovetail._core.ops.shape.reshaping import reshape as reshape
from dovetail._core.ops.shape.reshaping import rev as rev
from dovetail._core.ops.shape.reshaping import rev_p as rev_p
from dovetail._core.ops.shape.reshaping import shape_as_value as shape_as_value
from dovetail._core.ops.shape.reshaping import squeeze as squeeze
from dovetail._core.ops.shape.reshaping import squeeze_p as squeeze_p
from dovetail._core.ops.shape.reshaping import tile as tile
from dovetail._core.ops.shape.reshaping import tile_p as tile_p
from dovetail._core.ops.shape.reshaping import transpose as transpose
from dovetail._core.ops.shape.slicing import index_in_dim as index_in_dim
from dovetail._core.ops.shape.slicing import pad as pad
from dovetail._core.ops.shape.slicing import pad_p as pad_p
from dovetail._core.ops.shape.slicing import slice as slice
from dovetail._core.ops.shape.slicing import slice_in_dim as slice_in_dim
from dovetail._core.ops.shape.slicing import slice_p as slice_p
from dovetail._core.ops.special.bessel_functions import bessel_i0e as bessel_i0e
from dovetail._core.ops.special.bessel_functions import bessel_i0e_p as bessel_i0e_p
from dovetail._core.ops.special.bessel_functions import bessel_i1e as bessel_i1e
from dovetail._core.ops.special.bessel_functions import bessel_i1e_p as bessel_i1e_p
from dovetail._core.ops.special.error_functions import erf as erf
from dovetail._core.ops.special.error_functions import erf_inv as erf_inv
from dovetail._core.ops.special.error_functions import erf_inv_p as erf_inv_p
from dovetail._core.ops.special.error_functions import erf_p as erf_p
from dovetail._core.ops.special.error_functions import erfc as erfc
from dovetail._core.ops.special.error_functions import erfc_p as erfc_p
from dovetail._core.ops.special.gamma_functions import digamma as digamma
from dovetail._core.ops.special.gamma_functions import digamma_p as digamma_p
from dovetail._core.ops.special.gamma_functions import lgamma as lgamma
from dovetail._core.ops.special.gamma_functions import lgamma_p as lgamma_p
from dovetail._core.ops.special.gamma_functions import polygamma as polygamma
from dovetail._core.ops.special.gamma_functions import polygamma_p as polygamma_p
from dovetail._core.ops.special.gamma_functions import zeta as zeta
from dovetail._core.ops.special.gamma_functions import zeta_p as zeta_p
from dovetail._core.ops.special.incomplete_beta import betainc as betainc
from dovetail._core.ops.special.incomplete_beta import (
    regularized_incomplete_beta_p as regularized_incomplete_beta_p,
)
from dovetail._core.ops.special.incomplete_gamma import igamma as igamma
from dovetail._core.ops.special.incomplete_gamma import igamma_grad_a as igamma_grad_a
from dovetail._core.ops.special.incomplete_gamma import igamma_grad_a_p as igamma_grad_a_p
from dovetail._core.ops.special.incomplete_gamma import igamma_p as igamma_p
from dovetail._core.ops.special.incomplete_gamma import igammac as igammac
from dovetail._core.ops.special.incomplete_gamma import igammac_p as igammac_p
from dovetail._core.ops.special.incomplete_gamma import random_gamma_grad as random_gamma_grad
from dovetail._core.ops.special.polynomial import polynomial as polynomial
from dovetail._core.ops.special.polynomial import polynomial_p as polynomial_p
from dovetail._core.ops.windows.convolution import ConvDimensionNumbers as ConvDimensionNumbers
from dovetail._core.ops.windows.convolution import (
    ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
)
from dovetail._core.ops.windows.convolution import conv_general_dilated_p as conv_general_dilated_p
from dovetail._core.ops.windows.convolution_dimensions import (
    conv_dimension_numbers as conv_dimension_numbers,
)
from dovetail._core.ops.windows.convolution_dimensions import (
    conv_general_permutations as conv_general_permutations,
)
from dovetail._core.ops.windows.convolution_dimensions import (
    conv_general_shape_tuple as conv_general_shape_tuple,
)
from dovetail._core.ops.windows.convolution_dimensions import conv_shape_tuple as conv_shape_tuple
from dovetail._core.ops.windows.convolution_dimensions import (
    conv_transpose_shape_tuple as conv_transpose_shape_tuple,
)
from dovetail._core.ops.windows.convolution_functions import conv as conv
from dovetail._core.ops.windows.convolution_functions import (
    conv_general_dilated as conv_general_dilated,
)
from dovetail._core.ops.windows.convolution_functions import (
    conv_general_dilated_local as conv_general_dilated_local,
)
from dovetail._core.ops.windows.convolution_functions import (
    conv_general_dilated_patches as conv_general_dilated_patches,
)
from dovetail._core.ops.windows.convolution_functions import conv_transpose as conv_transpose
from dovetail._core.ops.windows.convolution_functions import (
    conv_with_general_padding as conv_with_general_padding,
)
from dovetail._core.ops.windows.reduce_window import reduce_window as reduce_window
from dovetail._core.ops.windows.reduce_window import reduce_window_max_p as reduce_window_max_p
from dovetail._core.ops.windows.reduce_window import reduce_window_min_p as reduce_window_min_p
from dovetail._core.ops.windows.reduce_window import reduce_window_p as reduce_window_p
from dovetail._core.ops.windows.reduce_window import (
    reduce_window_shape_tuple as reduce_window_shape_tuple,
)
from dovetail._core.ops.windows.reduce_window import reduce_window_sum_p as reduce_window_sum_p
from dovetail._core.ops.windows.window_selection import (
    select_and_gather_add_p as select_and_gather_add_p,
)
from dovetail._core.ops.windows.window_selection import (
    select_and_scatter_add_p as select_and_scatter_add_p,
)
from dovetail._core.ops.windows.window_selection import select_and_scatter_p as select_and_scatter_p
from dovetail.lax import linalg as linalg
