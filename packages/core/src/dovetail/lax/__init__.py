"""The operations of which programs are made: strict about dtypes and shapes, close to StableHLO.

Each name is loaded, with the module that it is in, when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Module to the names that are in it. Type checkers read `__init__.pyi`; a test compares the two.
_MODULES = {
    "dovetail._core.basis.elementwise": ("convert_element_type_p mul_p neg_p"),
    "dovetail._core.basis.structural": ("broadcast_in_dim_p reduce_sum_p reshape_p transpose_p"),
    "dovetail._core.ops.indexing.approximate_top_k": ("approx_max_k approx_min_k approx_top_k_p"),
    "dovetail._core.ops.elementwise.arithmetic": (
        "abs abs_p add add_p div div_p mul mulhi mulhi_p neg rem rem_p sign sign_p sub sub_p"
    ),
    "dovetail._core.ops.reduction.associative_scan": ("associative_scan"),
    "dovetail._core.ops.calls.barriers": (
        "dce_sink optimization_barrier optimization_barrier_p stage stage_p"
    ),
    "dovetail._core.ops.special.bessel_functions": (
        "bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p"
    ),
    "dovetail._core.ops.elementwise.bitwise": (
        "and_p bitwise_and bitwise_not bitwise_or bitwise_xor clz clz_p not_p or_p "
        "population_count population_count_p shift_left shift_left_p shift_right_arithmetic "
        "shift_right_arithmetic_p shift_right_logical shift_right_logical_p xor_p"
    ),
    "dovetail._core.ops.elementwise.comparison": (
        "eq eq_p eq_to_p ge ge_p gt gt_p is_finite is_finite_p le le_p le_to_p lt lt_p lt_to_p "
        "ne ne_p"
    ),
    "dovetail._core.ops.elementwise.complex": (
        "complex complex_p conj conj_p imag imag_p real real_p"
    ),
    "dovetail._core.ops.calls.composite": ("composite"),
    "dovetail._core.ops.contraction.dot_general": (
        "DotDimensionNumbers Precision PrecisionLike batch_matmul dot dot_general dot_general_p"
    ),
    "dovetail._core.ops.elementwise.conversion": (
        "bitcast_convert_type bitcast_convert_type_p convert_element_type copy_p dtype "
        "reduce_precision reduce_precision_p stop_gradient stop_gradient_p"
    ),
    "dovetail._core.ops.control.branches": ("cond cond_p switch"),
    "dovetail._core.ops.control.linear_solve": ("custom_linear_solve linear_solve_p"),
    "dovetail._core.ops.control.loops": ("fori_loop map scan"),
    "dovetail._core.ops.control.platforms": ("platform_dependent"),
    "dovetail._core.ops.control.root": ("custom_root"),
    "dovetail._core.ops.control.scan": ("scan_p"),
    "dovetail._core.ops.control.while_loop": ("while_loop while_p"),
    "dovetail._core.ops.windows.convolution": (
        "ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv_general_dilated_p"
    ),
    "dovetail._core.ops.windows.convolution_dimensions": (
        "conv_dimension_numbers conv_general_permutations conv_general_shape_tuple "
        "conv_shape_tuple conv_transpose_shape_tuple"
    ),
    "dovetail._core.ops.windows.convolution_functions": (
        "conv conv_general_dilated conv_general_dilated_local conv_general_dilated_patches "
        "conv_transpose conv_with_general_padding"
    ),
    "dovetail._core.ops.shape.creation": ("broadcasted_iota empty full full_like iota iota_p"),
    "dovetail._core.ops.reduction.cumulative": (
        "cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p cumprod cumprod_p cumsum "
        "cumsum_p"
    ),
    "dovetail._core.ops.contraction.dot_algorithms": ("DotAlgorithm DotAlgorithmPreset"),
    "dovetail._core.ops.indexing.dynamic_slicing": (
        "dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_slice_p "
        "dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim "
        "dynamic_update_slice_p index_take"
    ),
    "dovetail._core.ops.special.error_functions": ("erf erf_inv erf_inv_p erf_p erfc erfc_p"),
    "dovetail._core.ops.elementwise.exponential": (
        "exp exp2 exp2_p exp_p expm1 expm1_p log log1p log1p_p log2 log2_p log_p logistic "
        "logistic_p"
    ),
    "dovetail._core.ops.elementwise.extrema": ("clamp clamp_p max max_p min min_p"),
    "dovetail._core.ops.contraction.fourier": ("FftType fft fft_p"),
    "dovetail._core.ops.elementwise.functions": ("AccuracyMode Tolerance"),
    "dovetail._core.ops.special.gamma_functions": (
        "digamma digamma_p lgamma lgamma_p polygamma polygamma_p zeta zeta_p"
    ),
    "dovetail._core.ops.reduction.general_reduction": ("reduce reduce_p"),
    "dovetail._core.ops.elementwise.hyperbolic": (
        "acosh acosh_p asinh asinh_p atanh atanh_p cosh cosh_p sinh sinh_p tanh tanh_p"
    ),
    "dovetail._core.ops.special.incomplete_beta": ("betainc regularized_incomplete_beta_p"),
    "dovetail._core.ops.special.incomplete_gamma": (
        "igamma igamma_grad_a igamma_grad_a_p igamma_p igammac igammac_p random_gamma_grad"
    ),
    "dovetail._core.ops.indexing.gather": (
        "GatherDimensionNumbers GatherScatterMode gather gather_p"
    ),
    "dovetail._core.ops.shape.joining": (
        "concatenate concatenate_p split split_p stack stack_p unstack unstack_p"
    ),
    "dovetail._core.ops.shape.padding": ("padtype_to_pads"),
    "dovetail._core.ops.special.polynomial": ("polynomial polynomial_p"),
    "dovetail._core.ops.elementwise.powers": (
        "cbrt cbrt_p integer_pow integer_pow_p one_minus_square one_minus_square_p pow pow_p "
        "reciprocal rsqrt rsqrt_p sqrt sqrt_p square square_p"
    ),
    "dovetail._core.ops.contraction.ragged_contraction": ("ragged_dot ragged_dot_general"),
    "dovetail._core.ops.contraction.ragged_dimensions": ("RaggedDotDimensionNumbers"),
    "dovetail._core.ops.random.random_bits": (
        "RandomAlgorithm rng_bit_generator rng_bit_generator_p rng_uniform rng_uniform_p"
    ),
    "dovetail._core.ops.reduction.reductions": (
        "argmax argmax_p argmin argmin_p reduce_and reduce_and_p reduce_max reduce_max_p "
        "reduce_min reduce_min_p reduce_or reduce_or_p reduce_prod reduce_prod_p reduce_sum "
        "reduce_xor reduce_xor_p"
    ),
    "dovetail._core.ops.elementwise.rounding": (
        "RoundingMethod ceil ceil_p floor floor_p nextafter nextafter_p round round_p"
    ),
    "dovetail._core.ops.contraction.scaled_contraction": ("scaled_dot"),
    "dovetail._core.ops.indexing.scatter": (
        "ScatterDimensionNumbers scatter_add_p scatter_max_p scatter_min_p scatter_mul_p "
        "scatter_p scatter_sub_p"
    ),
    "dovetail._core.ops.indexing.scatter_functions": (
        "scatter scatter_add scatter_apply scatter_max scatter_min scatter_mul scatter_sub"
    ),
    "dovetail._core.ops.elementwise.selection": ("select select_n select_n_p"),
    "dovetail._core.ops.shape.reshaping": (
        "broadcast broadcast_in_dim broadcast_like broadcast_shapes broadcast_to_rank collapse "
        "expand_dims reshape rev rev_p shape_as_value squeeze squeeze_p tile tile_p transpose"
    ),
    "dovetail._core.ops.shape.slicing": ("index_in_dim pad pad_p slice slice_in_dim slice_p"),
    "dovetail._core.ops.indexing.sorting": ("sort sort_key_val sort_p top_k top_k_p"),
    "dovetail._core.ops.calls.tokens": ("after_all after_all_p create_token create_token_p"),
    "dovetail._core.ops.elementwise.trigonometric": (
        "acos acos_p asin asin_p atan atan2 atan2_p atan_p cos cos_p sin sin_p tan tan_p"
    ),
    "dovetail._core.ops.windows.window_selection": (
        "select_and_gather_add_p select_and_scatter_add_p select_and_scatter_p"
    ),
    "dovetail._core.ops.windows.reduce_window": (
        "reduce_window reduce_window_max_p reduce_window_min_p reduce_window_p "
        "reduce_window_shape_tuple reduce_window_sum_p"
    ),
}
_ENTRIES = {name: (module, name) for module, names in _MODULES.items() for name in names.split()}

_SUBMODULES = ("linalg",)

__all__ = sorted((*_ENTRIES, *_SUBMODULES))


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"dovetail.lax.{name}")
    entry = _ENTRIES.get(name)
    if entry is None:
        raise AttributeError(f"module 'dovetail.lax' has no attribute {name!r}")
    module, attribute = entry
    value = globals()[name] = getattr(import_module(module), attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
