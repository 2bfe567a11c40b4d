"""The API of NumPy, for arrays that can be transformed and compiled.

Every name is loaded when it is first used; importing this package loads nothing else.
"""

from __future__ import annotations

from dovetail.extend import lazy_names

# Module to the names that are in it; before an equals sign, the public name of what has another
# there. Type checkers read `__init__.pyi`; a test compares the two.
_MODULES = {
    "dovetail.extend.arrays": ("ndarray=Array"),
    "dovetail.numpy.arithmetic": (
        "abs absolute=abs add cbrt divide=true_divide divmod fabs float_power floor_divide "
        "fmax fmin fmod heaviside hypot maximum minimum mod=remainder multiply negative "
        "positive pow=power power reciprocal remainder sign sqrt square subtract true_divide"
    ),
    "dovetail.numpy.bits": (
        "bitwise_and bitwise_count bitwise_invert=bitwise_not bitwise_left_shift=left_shift "
        "bitwise_not bitwise_or bitwise_right_shift=right_shift bitwise_xor "
        "invert=bitwise_not left_shift packbits right_shift unpackbits"
    ),
    "dovetail.numpy.complex_numbers": (
        "angle conj conjugate=conj imag iscomplex iscomplexobj isreal isrealobj real"
    ),
    "dovetail.numpy.constants": ("e euler_gamma inf nan newaxis pi"),
    "dovetail.numpy.contraction": (
        "cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat"
    ),
    "dovetail.numpy.correlations": ("convolve corrcoef correlate cov"),
    "dovetail.numpy.creation": (
        "array asarray astype copy empty empty_like frombuffer fromfunction full full_like "
        "ones ones_like zeros zeros_like"
    ),
    "dovetail.numpy.cumulative": (
        "cumprod cumsum cumulative_prod cumulative_sum diff nancumprod nancumsum trapezoid"
    ),
    "dovetail.numpy.differences": ("ediff1d gradient unwrap"),
    "dovetail.numpy.divisors": ("gcd lcm"),
    "dovetail.numpy.dtype_explanation": ("explain_dtype"),
    "dovetail.numpy.einstein": ("einsum einsum_path"),
    "dovetail.numpy.exponentials": (
        "exp exp2 expm1 log log10 log1p log2 logaddexp logaddexp2 sinc"
    ),
    "dovetail.numpy.extremes": ("minmax top_k"),
    "dovetail.numpy.float_parts": ("copysign frexp ldexp nextafter signbit spacing"),
    "dovetail.numpy.gathering": ("compress extract take take_along_axis"),
    "dovetail.numpy.histograms": ("histogram histogram2d histogram_bin_edges histogramdd"),
    "dovetail.numpy.index_tricks": ("c_ index_exp ix_ mask_indices mgrid ogrid r_ s_"),
    "dovetail.numpy.input_and_output": (
        "array_repr array_str from_dlpack fromfile fromiter fromstring get_printoptions "
        "isscalar iterable load printoptions save savez set_printoptions"
    ),
    "dovetail.numpy.joining": (
        "append array_split block column_stack concat concatenate dsplit dstack hsplit "
        "hstack repeat resize split stack tile unstack vsplit vstack"
    ),
    "dovetail.numpy.logic": (
        "allclose array_equal array_equiv equal greater greater_equal isclose isfinite isinf "
        "isnan isneginf isposinf less less_equal logical_and logical_not logical_or "
        "logical_xor not_equal"
    ),
    "dovetail.numpy.lookups": ("bincount digitize interp isin ravel_multi_index unravel_index"),
    "dovetail.numpy.matrices": (
        "diag diag_indices diag_indices_from diagflat diagonal eye identity trace tri tril "
        "tril_indices tril_indices_from triu triu_indices triu_indices_from vander"
    ),
    "dovetail.numpy.nan_reductions": ("nanmax nanmean nanmin nanprod nanstd nansum nanvar"),
    "dovetail.numpy.padding": ("pad"),
    "dovetail.numpy.polynomials": (
        "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots"
    ),
    "dovetail.numpy.quantiles": ("median nanmedian nanpercentile nanquantile percentile quantile"),
    "dovetail.numpy.ranges": ("arange geomspace indices linspace logspace meshgrid"),
    "dovetail.numpy.reductions": (
        "all amax=max amin=min any average count_nonzero max mean min prod ptp std sum var"
    ),
    "dovetail.numpy.rounding": ("around=round ceil fix=trunc floor modf rint round trunc"),
    "dovetail.numpy.scalar_types": (
        "ComplexWarning bfloat16 bool=bool_ bool_ can_cast cdouble character complex128 complex64 "
        "complex_ complexfloating csingle double dtype finfo flexible float16 float32 "
        "float4_e2m1fn float64 float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 "
        "float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
        "float8_e8m0fnu float_ floating generic iinfo inexact int1 int16 int2 int32 int4 int64 "
        "int8 int_ integer isdtype issubdtype number object_ promote_types result_type "
        "signedinteger single uint uint1 uint16 uint2 uint32 uint4 uint64 uint8 unsignedinteger"
    ),
    "dovetail.numpy.searching": (
        "argmax argmin argwhere flatnonzero nanargmax nanargmin nonzero searchsorted"
    ),
    "dovetail.numpy.selection": ("choose clip nan_to_num select where"),
    "dovetail.numpy.set_operations": (
        "intersect1d setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse "
        "unique_values"
    ),
    "dovetail.numpy.shapes": (
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to "
        "expand_dims flip fliplr flipud matrix_transpose moveaxis ndim permute_dims ravel "
        "reshape roll rollaxis rot90 shape size squeeze swapaxes transpose"
    ),
    "dovetail.numpy.sorting": ("argpartition argsort lexsort partition sort sort_complex"),
    "dovetail.numpy.trigonometry": (
        "acos=arccos acosh=arccosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh "
        "asin=arcsin asinh=arcsinh atan2=arctan2 atan=arctan atanh=arctanh cos cosh deg2rad "
        "degrees=rad2deg rad2deg radians=deg2rad sin sinh tan tanh"
    ),
    "dovetail.numpy.ufuncs": ("frompyfunc ufunc"),
    "dovetail.numpy.updates": ("delete fill_diagonal insert place put put_along_axis trim_zeros"),
    "dovetail.numpy.vectorization": ("apply_along_axis apply_over_axes piecewise vectorize"),
    "dovetail.numpy.windows": ("bartlett blackman hamming hanning i0 kaiser"),
}
_ENTRIES = {
    entry.partition("=")[0]: (module, entry.rpartition("=")[2])
    for module, entries in _MODULES.items()
    for entry in entries.split()
}

__array_api_version__ = "2025.12"


def __array_namespace_info__() -> object:
    """What the Python array API standard lets libraries ask: dtypes, devices, capabilities."""
    from dovetail.numpy.namespace_info import NamespaceInfo  # deferred: rarely asked for

    return NamespaceInfo()
