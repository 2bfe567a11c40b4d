"""The dtypes of results: what functions give for operands of every dtype.

    python tests/numpy/dtypes/sweep.py MODULE > tests/numpy/dtypes/table.json

MODULE is `dovetail` or another implementation of its API, which is traced by `eval_shape` and never
run. A case is an expression of one or two operands. `x` and `y` are arrays of each dtype, strongly
and weakly typed (`*`), and numbers of Python and of NumPy; `d` is a dtype. The result of a case is
the dtype of each leaf, with `*` if it is weak, or the class of the error, among Python's own.
"""

from __future__ import annotations

import builtins
import json
import re
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from typing import Any
from unicodedata import combining

import ml_dtypes
import numpy as np

#: Short names of dtypes.
DTYPES = {
    "b1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
    "i4": "int4",
    "u4": "uint4",
    "f8": "float8_e4m3fn",
}
SHORT = {dtype: short for short, dtype in DTYPES.items()}
#: What results are in the table: characters that JSON does not escape.
LETTERS = [
    c for c in map(chr, range(35, 1400)) if c != "\\" and c.isprintable() and not combining(c)
]
#: Numbers that are operands.
NUMBERS: dict[str, Any] = {
    "True": True,
    "2": 2,
    "0.5": 0.5,
    "1j": 1j,
    "int64(2)": np.int64(2),
    "float64(.5)": np.float64(0.5),
}
#: Operands of functions of one operand and of the two by which all others promote.
ALL = {
    "x32": "b1 i8 i16 i32 u8 u16 u32 f16 bf16 f32 c64 i32* f32* c64* i4 u4 f8",
    "x64": "b1 i8 i32 i64 u8 u32 u64 f16 bf16 f32 f64 c64 c128 i64* f64* c128*",
}
ALL_PAIRS = ("np.add(x, y)", "np.arctan2(x, y)", "np.result_type(x, y)", "lax.add(x, y)")
#: Operands of other functions of two.
SOME = {
    "x32": "b1 i8 i32 u32 f16 bf16 f32 c64 i32* f32*",
    "x64": "b1 i32 i64 u64 f32 f64 c128 f64*",
}
SOME_NUMBERS = {"x32": "2 0.5 1j float64(.5)", "x64": "2 0.5"}
#: Values of `d`, which do not warn in their mode.
ARGUMENTS = {"x32": "b1 i8 i32 u32 bf16 f32 c64", "x64": "b1 i8 i64 u64 f16 f64 c128"}


def _each(module: str, names: str, arguments: str) -> list[str]:
    return [f"{module}.{name}({arguments})" for name in names.split()]


_OPERATORS = "+ - * / // % ** & | ^ << >> < == @"
_UPDATES = "set add multiply divide power max"
SHAPES = {"vectors": (3,), "scalars": (), "matrices": (2, 2)}
#: Expressions, by the shape of their arrays.
CASES: dict[str, list[str]] = {
    "vectors": [
        # One operand.
        *_each(
            "np",
            "abs acos acosh all amax amin angle any arccos arcsin arcsinh arctan arctanh argmax "
            "argmin argsort around array asarray atleast_1d atleast_2d atleast_3d average "
            "bitwise_count bitwise_invert cbrt ceil conj copy corrcoef cos cosh count_nonzero cov "
            "cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees diag diagflat diff "
            "ediff1d empty_like exp exp2 expm1 fabs flip floor frexp gradient i0 imag invert "
            "iscomplex isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 "
            "logical_not max mean median min minmax modf nan_to_num nanargmax nanargmin nancumprod "
            "nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar negative "
            "ones_like packbits poly polyder polyint positive prod ptp rad2deg radians ravel real "
            "reciprocal rint round sign signbit sin sinc sinh sort sort_complex spacing sqrt "
            "square squeeze std sum tan tanh transpose trapezoid trunc unpackbits unwrap vander "
            "var zeros_like linalg.norm linalg.vector_norm fft.fft fft.ifft fft.rfft fft.irfft "
            "fft.hfft fft.ihfft fft.fftshift fft.ifftshift identity eye bartlett blackman hamming "
            "hanning arange tri",
            "x",
        ),
        *_each(
            "lax",
            "abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz "
            "conj cos cosh cummax cummin cumlogsumexp cumprod cumsum digamma erf erf_inv erfc exp "
            "exp2 expm1 floor imag is_finite lgamma log log1p log2 logistic neg one_minus_square "
            "optimization_barrier population_count real reciprocal round rsqrt sign sin sinh sort "
            "sqrt square stop_gradient tan tanh",
            "x",
        ),
        *_each(
            "nn",
            "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu "
            "log1mexp log_sigmoid log_softmax logmeanexp logsumexp mish relu relu6 selu sigmoid "
            "silu soft_sign softmax softplus sparse_plus sparse_sigmoid squareplus standardize "
            "swish tanh",
            "x",
        ),
        "nn.gelu(x, approximate=False)",
        "nn.logsumexp(x, b=2.0)",
        "nn.logsumexp(x, return_sign=True)",
        "nn.softmax(x, where=np.ones(3, bool), initial=0.0)",
        "nn.one_hot(x, 3)",
        "lib.random.uniform(lib.random.key(0), (3,), minval=x)",
        "lib.random.bernoulli(lib.random.key(0), x)",
        "lib.random.categorical(lib.random.key(0), x)",
        "lib.random.permutation(lib.random.key(0), x)",
        "lib.random.choice(lib.random.key(0), x)",
        "lib.random.split(lib.random.key(x))",
        "lib.device_put(x)",
        "np.argpartition(x, 1)",
        "np.argwhere(x, size=2)",
        "np.array_split(x, 2)",
        "np.astype(x, int)",
        "np.array([x, x])",
        "np.bincount(x, length=3)",
        "np.bincount(x, length=3, weights=np.ones(3))",
        "np.block([x, x])",
        "np.broadcast_to(x, (2, 3))",
        "np.clip(x, 0, 1)",
        "np.clip(x, 0.5, None)",
        "np.choose(np.array([0, 0, 0]), [x, x])",
        "np.compress(np.ones(3, bool), x, size=2)",
        "np.concatenate([x, x])",
        "np.cumulative_sum(x, include_initial=True)",
        "np.delete(x, 0)",
        "np.expand_dims(x, 0)",
        "np.extract(np.ones(3, bool), x, size=2)",
        "np.fft.fftn(x)",
        "np.fft.rfft(x, norm='ortho')",
        "np.flatnonzero(x, size=2)",
        "np.full((2,), x)",
        "np.full_like(x, 1)",
        "np.full_like(x, 0.5)",
        "np.gradient(x, 2)",
        "np.gradient(x, 0.5)",
        "np.hstack([x, x])",
        "np.histogram(x, 2)",
        "np.histogram_bin_edges(x, 2)",
        "np.insert(x, 0, 1)",
        "np.isin(x, np.arange(3))",
        "np.lexsort((x, x))",
        "np.linspace(0, x, 3)",
        "np.linspace(0, x, 3, retstep=True)",
        "np.linspace(x, 2, 3, dtype=int)",
        "np.logspace(0, x, 3)",
        "np.geomspace(1, x, 3)",
        "np.meshgrid(x, np.arange(2))",
        "np.moveaxis(x, 0, 0)",
        "np.nan_to_num(x, nan=0.5)",
        "np.nanpercentile(x, 50)",
        "np.nanquantile(x, 0.5)",
        "np.nonzero(x, size=2)",
        "np.pad(x, 1)",
        "np.pad(x, 1, constant_values=0.5)",
        "np.pad(x, 1, mode='mean')",
        "np.pad(x, 1, mode='linear_ramp')",
        "np.pad(x, 1, mode='edge')",
        "np.partition(x, 1)",
        "np.percentile(x, 50)",
        "np.piecewise(x, [x > 0], [1.5, 2])",
        "np.polyder(x, 2)",
        "np.polyfit(x, x, 1)",
        "np.prod(x, promote_integers=False)",
        "np.put(x, 0, 1, inplace=False)",
        "np.quantile(x, 0.5)",
        "np.ravel_multi_index((x, x), (2, 3), mode='clip')",
        "np.repeat(x, 2)",
        "np.reshape(x, -1)",
        "np.roll(x, 1)",
        "np.roots(x, strip_zeros=False)",
        "np.round(x, 1)",
        "np.round(x, -1)",
        "np.searchsorted(x, 1)",
        "np.searchsorted(np.arange(3), x)",
        "np.searchsorted(x, x, method='sort')",
        "np.searchsorted(x, x, method='compare_all')",
        "np.select([x > 0], [x])",
        "np.select([x > 0], [x], 0.5)",
        "np.setdiff1d(x, x, size=2)",
        "np.split(x, 3)",
        "np.stack([x, x])",
        "np.std(x, ddof=1)",
        "np.sum(x, where=True)",
        "np.sum(x, initial=1)",
        "np.sum(x, initial=0.5)",
        "np.max(x, initial=1)",
        "np.max(x, initial=0.5)",
        "np.prod(x, initial=2)",
        "np.prod(x, initial=0.5)",
        "np.sum(x, promote_integers=False)",
        "np.take(x, 0)",
        "np.take(x, 0, fill_value=1)",
        "np.take(np.arange(3.0), x)",
        "np.take_along_axis(np.arange(3.0), x, 0)",
        "np.take_along_axis(x, np.array([0]), 0)",
        "np.tile(x, 2)",
        "np.top_k(x, 2)",
        "np.unique(x, size=2)",
        "np.unique(x, size=2, return_index=True, return_inverse=True, return_counts=True)",
        "np.unique_all(x, size=2)",
        "np.unique_counts(x, size=2)",
        "np.unravel_index(x, (2, 3))",
        "np.unstack(x)",
        "np.vander(x, 2)",
        "np.vstack([x, x])",
        "np.where(x, size=2)",
        "np.where(x, 1, 2)",
        "np.where(x, 1.5, 2)",
        "np.where(np.ones(3, bool), x, 2)",
        "np.where(np.ones(3, bool), x, 0.5)",
        "np.argsort(x, stable=False)",
        "np.average(x, returned=True)",
        "np.apply_along_axis(np.sum, 0, x)",
        "np.apply_over_axes(np.sum, x, 0)",
        "np.interp(x, x, x)",
        "np.vectorize(lambda a: a + 1)(x)",
        "np.frompyfunc(lambda a, b: a + b, 2, 1)(x, x)",
        "np.add.reduce(x)",
        "np.multiply.reduce(x)",
        "np.add.accumulate(x)",
        "np.logical_and.reduce(x)",
        "np.maximum.reduce(x)",
        "np.bitwise_or.reduce(x)",
        "np.logaddexp.reduce(x)",
        "np.subtract.reduceat(x, np.array([0, 1]))",
        "np.logaddexp.reduceat(x, np.array([0, 1]))",
        "np.add.outer(x, x)",
        "np.fromfunction(lambda i: i + 1, (3,))",
        "np.ones(3)",
        "np.eye(3)",
        "np.tri(3)",
        "np.indices((2,))",
        "np.arange(3)",
        "np.arange(3.0)",
        "np.arange(0, x)",
        "np.linspace(0, 1, 3)",
        "np.logspace(0, 1, 3)",
        "np.geomspace(1, 2, 3)",
        "np.fft.fftfreq(3)",
        "np.diag_indices(2)",
        "np.tril_indices(2)",
        "np.mask_indices(2, np.triu)",
        "np.mgrid[0:2]",
        "np.mgrid[0:2:3j]",
        "np.r_[0:2]",
        "np.r_[x, 1]",
        "np.c_[x, x]",
        "np.ogrid[0:2, 0:1]",
        "np.ix_(x)",
        "np.hanning(3)",
        # Matrices with fewer rows than columns, and what has no elements.
        "np.diag(np.stack([x, x]))",
        "np.diagonal(np.stack([x, x]), 1)",
        "np.fft.fftshift(np.stack([x, x]))",
        "np.linalg.det(np.stack([x, x, x]))",
        "np.linalg.slogdet(np.stack([x, x, x]))",
        "np.roll(np.stack([x, x]), 1, axis=0)",
        "np.setdiff1d(x[:0], x, size=2)",
        "np.unique(x, size=0)",
        "np.unwrap(x[:0])",
        "np.choose(np.array([0, 1, 0]), [x, x], mode='clip')",
        "np.linspace(0.5, x, 3, dtype=np.float32)",
        # Operators, methods and indices.
        "-x",
        "+x",
        "~x",
        "abs(x)",
        "round(x)",
        "round(x, 1)",
        "x + True",
        "x ** 2",
        "x ** True",
        "x ** -1",
        "x ** 0.5",
        "2 ** x",
        "x[0]",
        "x[x]",
        "x[1:]",
        "x[np.array([0])]",
        "np.arange(3.0)[x]",
        "np.asarray(x).real",
        "np.asarray(x).imag",
        "np.asarray(x).T",
        "np.asarray(x).sum()",
        "np.asarray(x).mean()",
        "np.asarray(x).argmax()",
        "np.asarray(x).argsort()",
        "np.asarray(x).searchsorted(1)",
        "np.asarray(x).dot(x)",
        "np.asarray(x).conj()",
        "np.asarray(x).clip(0, 1)",
        "np.asarray(x).round(1)",
        "np.asarray(x).ptp()",
        "np.asarray(x).nonzero(size=1)",
        # lax.
        "lax.add(x, 1)",
        "lax.mul(x, 0.5)",
        "lax.argmax(x, 0, np.int32)",
        "lax.argmin(x, 0, np.int16)",
        "lax.approx_max_k(x, 1)",
        "lax.associative_scan(lax.add, x)",
        "lax.broadcast(x, (2,))",
        "lax.broadcast_in_dim(x, (2, 3), (1,))",
        "lax.broadcast_to_rank(x, 2)",
        "lax.clamp(0, x, 1)",
        "lax.clamp(x, x, x)",
        "lax.collapse(x, 0)",
        "lax.concatenate([x, x], 0)",
        "lax.cond(True, lambda v: v, lambda v: v, x)",
        "lax.cond(True, lambda v: v, lambda v: 1, x)",
        "lax.cond(x, lambda: 1, lambda: 2)",
        "lax.cond(True, lambda v: v + 1, lambda v: v * 2, x)",
        "lax.custom_root(lambda v: v, x, lambda f, v: v, lambda g, v: v)",
        "lax.dynamic_index_in_dim(x, 0)",
        "lax.dynamic_slice(np.arange(3.0), (x,), (1,))",
        "lax.dynamic_slice(x, (0,), (1,))",
        "lax.dynamic_slice_in_dim(x, 0, 1)",
        "lax.dynamic_update_slice(x, x, (0,))",
        "lax.dynamic_update_index_in_dim(x, 1, 0, 0)",
        "lax.expand_dims(x, (0,))",
        "lax.fori_loop(0, 3, lambda i, v: v, x)",
        "lax.fori_loop(0, 3, lambda i, v: v + 1, x)",
        "lax.fori_loop(0, 3, lambda i, v: v + i, x)",
        "lax.fori_loop(x, 3, lambda i, v: v + i, 0)",
        "lax.fori_loop(0, x, lambda i, v: i, 0)",
        "lax.full((2,), x)",
        "lax.full_like(x, 1)",
        "lax.full_like(x, 0.5)",
        "lax.index_in_dim(x, 0)",
        "lax.index_take(x, (np.array([0]),), (0,))",
        "lax.integer_pow(x, 2)",
        "lax.integer_pow(x, -1)",
        "lax.map(lambda v: v + 1, x)",
        "lax.pad(x, 0, [(1, 1, 0)])",
        "lax.pow(x, 2)",
        "lax.polynomial(x, np.ones(2))",
        "lax.reduce(x, 0, lax.add, (0,))",
        "lax.reduce(x, 1, lax.max, (0,))",
        "lax.reduce_and(x, (0,))",
        "lax.reduce_max(x, (0,))",
        "lax.reduce_min(x, (0,))",
        "lax.reduce_or(x, (0,))",
        "lax.reduce_prod(x, (0,))",
        "lax.reduce_sum(x, (0,))",
        "lax.reduce_xor(x, (0,))",
        "lax.reduce_precision(x, 5, 7)",
        "lax.reduce_window(x, 0, lax.add, (2,), (1,), 'VALID')",
        "lax.reduce_window(x, 0.0, lax.max, (2,), (1,), 'VALID')",
        "lax.reshape(x, np.shape(x))",
        "lax.rev(x, (0,))",
        "lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)",
        "lax.scan(lambda c, v: (c, v), 0, x)",
        "lax.scan(lambda c, v: (c + 1, c), x, None, 2)",
        "lax.scan(lambda c, v: (c + v, c), 0, np.arange(3.0))",
        "lax.scan(lambda c, v: (c + v, v), 0, x)",
        "lax.scan(lambda c, v: (c + v, v), 0.0, x)",
        "lax.select(np.ones(3, bool), x, x)",
        "lax.select_n(x, x, x)",
        "lax.select_n(np.ones(3, bool), x, x)",
        "lax.slice(x, (0,), (1,))",
        "lax.slice_in_dim(x, 0, 1)",
        "lax.sort((x, x))",
        "lax.sort_key_val(x, np.arange(3))",
        "lax.split(x, (1, 2))",
        "lax.squeeze(x, ())",
        "lax.stack([x, x])",
        "lax.switch(x, [lambda: 1, lambda: 2])",
        "lax.switch(0, [lambda v: v, lambda v: 1], x)",
        "lax.tile(x, (2,))",
        "lax.top_k(x, 1)",
        "lax.transpose(x, (0,))",
        "lax.unstack(x)",
        "lax.while_loop(lambda v: False, lambda v: v, x)",
        "lax.while_loop(lambda v: False, lambda v: v + 1, x)",
        "lax.while_loop(lambda v: False, lambda v: v * 0.5, x)",
        "lax.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, x), (0, 0))",
        "lax.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, x), (0, 0.0))",
        "lax.platform_dependent(x, default=lambda v: v)",
        "lax.iota(np.int32, 3)",
        "lax.rng_uniform(0.0, x, (3,))",
        "lax.fft(x, 'FFT', (3,))",
        "lax.fft(x, 'RFFT', (3,))",
        "lib.grad(lambda v: np.sum(v))(x)",
        "lib.grad(lambda v: np.sum(v * v), holomorphic=True)(x)",
        "lib.jvp(lambda v: v * 2, (x,), (x,))",
        "lib.vjp(lambda v: v * 2, x)[1](x)",
        "lib.vmap(lambda v: v + 1)(x)",
        "lib.jit(lambda v: v + 1)(x)",
        "lib.jit(lambda v: (v, 1, 2.0))(x)",
        "lib.checkpoint(lambda v: v * 2)(x)",
        "lib.linearize(lambda v: v * v, x)[1](x)",
        "lib.jacfwd(lambda v: v * v)(x)",
        "lib.jacrev(lambda v: v * v)(x)",
        "lib.hessian(lambda v: np.sum(v * v))(x)",
        # An operand and a dtype.
        *_each(
            "np",
            "sum prod mean std var cumsum cumprod cumulative_sum cumulative_prod nansum nanprod "
            "nanmean nanstd nanvar nancumsum nancumprod array asarray zeros_like ones_like "
            "empty_like argsort corrcoef cov",
            "x, dtype=d",
        ),
        "np.astype(x, d)",
        "np.concatenate([x, x], dtype=d)",
        "np.stack([x, x], dtype=d)",
        "np.hstack([x, x], dtype=d)",
        "np.vstack([x, x], dtype=d)",
        "np.full((2,), x, dtype=d)",
        "np.full_like(x, 1, dtype=d)",
        "np.linspace(0, x, 3, dtype=d)",
        "np.logspace(0, x, 3, dtype=d)",
        "np.geomspace(1, x, 3, dtype=d)",
        "np.ravel_multi_index((x, x), (2, 3), mode='clip', dtype=d)",
        "np.asarray(x).view(d)",
        "np.asarray(x).sum(dtype=d)",
        "np.asarray(x, d)",
        "lax.convert_element_type(x, d)",
        "lax.bitcast_convert_type(x, d)",
        "lax.full((2,), x, d)",
        "lax.full_like(x, 1, d)",
        "lax.argmax(x, 0, d)",
        "nn.one_hot(x, 3, dtype=d)",
        "np.add.reduce(x, dtype=d)",
        "np.add.accumulate(x, dtype=d)",
        "np.multiply.reduce(x, dtype=d)",
        "np.dot(x, x, preferred_element_type=d)",
        "np.matmul(x, x, preferred_element_type=d)",
        "np.einsum('i,i', x, x, preferred_element_type=d)",
        "np.convolve(x, x, preferred_element_type=d)",
        "lax.dot(x, x, preferred_element_type=d)",
        "lax.mul(x, x, out_dtype=d)",
        "np.zeros(3, d)",
        "np.eye(3, dtype=d)",
        "np.tri(3, dtype=d)",
        "np.identity(3, d)",
        "np.indices((2,), d)",
        "np.arange(3, dtype=d)",
        "np.arange(0.0, 3.0, dtype=d)",
        "np.linspace(0, 1, 3, dtype=d)",
        "np.fft.fftfreq(3, dtype=d)",
        "np.fft.rfftfreq(3, dtype=d)",
        "np.full(3, 1, d)",
        "np.fromfunction(lambda i: i, (3,), dtype=d)",
        "lax.iota(d, 3)",
        "lax.broadcasted_iota(d, (3,), 0)",
        "lax.rng_bit_generator(np.ones(4, np.uint32), (3,), d)",
        *_each(
            "lib.random",
            "bits uniform normal bernoulli cauchy exponential gumbel laplace logistic "
            "truncated_normal rademacher",
            "lib.random.key(0), shape=(3,), dtype=d",
        ),
        "lib.random.randint(lib.random.key(0), (3,), 0, 3, d)",
        # Two operands.
        *_each(
            "np",
            "add arctan2 array_equal array_equiv bitwise_and bitwise_left_shift bitwise_or "
            "bitwise_right_shift bitwise_xor convolve copysign correlate divide divmod dot equal "
            "float_power floor_divide fmax fmin fmod gcd greater greater_equal heaviside hypot "
            "inner isclose isin kron lcm ldexp left_shift less less_equal logaddexp logaddexp2 "
            "logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal "
            "outer polyadd polydiv polymul polysub polyval power remainder result_type "
            "right_shift subtract true_divide vdot matmul vecdot cross append",
            "x, y",
        ),
        *_each(
            "lax",
            "add sub mul div rem max min pow eq ne lt le gt ge atan2 nextafter bitwise_and "
            "bitwise_or bitwise_xor shift_left shift_right_arithmetic shift_right_logical complex "
            "igamma igammac zeta polygamma mulhi random_gamma_grad igamma_grad_a dot",
            "x, y",
        ),
        *(f"x {operator} y" for operator in _OPERATORS.split()),
        *(f"np.asarray(x).at[0].{name}(y)" for name in _UPDATES.split()),
        "np.average(x, weights=y)",
        "np.asarray([x, y])",
        "np.bincount(np.arange(3), weights=x, length=3)",
        "np.clip(x, y)",
        "np.clip(x, max=y)",
        "np.clip(x, y, y)",
        "np.choose(np.array([0, 0, 0]), [x, y])",
        "np.compress(y, x, size=2)",
        "np.concatenate([x, y])",
        "np.cov(x, y)",
        "np.corrcoef(x, y)",
        "np.diff(x, prepend=y)",
        "np.digitize(x, y)",
        "np.ediff1d(x, to_end=y)",
        "np.einsum('i,i', x, y)",
        "np.full_like(x, y)",
        "np.geomspace(x, y, 3)",
        "np.gradient(x, y)",
        "np.histogram(x, 2, weights=y)",
        "np.histogram(x, y)",
        "np.insert(x, 0, y)",
        "np.interp(x, y, y)",
        "np.interp(x, x, y)",
        "np.interp(y, x, y)",
        "np.intersect1d(x, y, size=2)",
        "np.lexsort((x, y))",
        "np.linspace(x, y, 3)",
        "np.logspace(x, y, 3)",
        "np.logspace(0, x, 3, base=y)",
        "np.meshgrid(x, y)",
        "np.nanpercentile(x, y)",
        "np.nanquantile(x, y)",
        "np.percentile(x, y)",
        "np.histogram2d(x, y, 2)",
        "np.polyfit(x, y, 1)",
        "np.polyint(x, k=y)",
        "np.polysub(x[:2], y)",
        "np.promote_types(x.dtype, y.dtype)",
        "np.quantile(x, y)",
        "np.ravel_multi_index((x, y), (2, 3), mode='clip')",
        "np.repeat(x, y, total_repeat_length=3)",
        "np.roll(x, y)",
        "np.searchsorted(x, y)",
        "np.select([x > 0], [x], y)",
        "np.select([x > 0, y > 0], [x, y])",
        "np.setdiff1d(x, y, size=2)",
        "np.setxor1d(x, y, size=2)",
        "np.stack([x, y])",
        "np.sum(x, initial=y)",
        "np.max(x, initial=y)",
        "np.sum(x, where=y)",
        "np.mean(x, where=y)",
        "np.take(x, y)",
        "np.take_along_axis(x, y, 0)",
        "np.tensordot(x, y, 1)",
        "np.trapezoid(x, y)",
        "np.trapezoid(x, dx=y)",
        "np.union1d(x, y, size=2)",
        "np.unwrap(x, y)",
        "np.unwrap(x, period=y)",
        "np.var(x, mean=y)",
        "np.where(x, y, y)",
        "np.where(True, x, y)",
        "np.where(np.ones(3, bool), x, y)",
        "np.piecewise(x, [x > 0], [y, y])",
        "np.put_along_axis(x, np.array([0]), y, 0, inplace=False)",
        "np.fill_diagonal(np.array([[x, x]]), y, inplace=False)",
        "np.nan_to_num(x, nan=y)",
        "np.place(x, x > 0, y, inplace=False)",
        "np.add.at(x, np.array([0]), y, inplace=False)",
        "np.add.outer(x, y)",
        "np.block([x, y])",
        "np.linalg.vecdot(x, y)",
        "lax.clamp(x, y, x)",
        "lax.concatenate([x, y], 0)",
        "lax.select(np.ones(3, bool), x, y)",
        "lax.dynamic_update_slice(x, y, (0,))",
        "lax.pad(x, y, [(1, 1, 0)])",
        "lax.reduce(x, y, lax.add, (0,))",
        "lax.conv(np.zeros((1, 1, 3), x.dtype), np.zeros((1, 1, 3), y.dtype), (1,), 'SAME')",
        "lax.betainc(x, y, x)",
        "nn.logsumexp(x, b=y)",
        "nn.leaky_relu(x, y)",
        "nn.elu(x, y)",
        "nn.celu(x, y)",
        "nn.squareplus(x, y)",
        "nn.standardize(x, mean=y)",
        "nn.log_softmax(x, where=y)",
    ],
    "scalars": [
        *_each("np", "add multiply power maximum where", "x, y"),
        "np.asarray([x, y])",
        "np.full(3, x)",
        "np.arange(x)",
        "np.kaiser(3, x)",
        "np.fft.fftfreq(3, x)",
        "np.unravel_index(x, (2, 3))",
        "np.bincount(np.arange(3), length=x)",
        "np.arange(3.0)[x]",
        "np.arange(3)[x, None]",
        "np.asarray(x)[None]",
        "np.asarray(x)[()]",
        "np.vectorize(lambda a, b: a + b)(x, y)",
        "lax.add(x, y)",
        "lax.fori_loop(x, y, lambda i, v: v, 0)",
        "lax.fori_loop(x, y, lambda i, v: i, 0)",
        "lax.fori_loop(0, 3, lambda i, v: v + x, y)",
        "lax.fori_loop(0, 3, lambda i, v: x, y)",
        "lax.fori_loop(0, 3, lambda i, v: (v[0] + v[1], v[1]), (x, y))",
        "lax.while_loop(lambda v: False, lambda v: v + x, y)",
        "lax.while_loop(lambda v: False, lambda v: x, y)",
        "lax.while_loop(lambda v: True, lambda v: (v[1], v[0]), (x, y))",
        "lax.while_loop(lambda v: x, lambda v: v, 0)",
        "lax.scan(lambda c, _: (c + x, c), y, None, 2)",
        "lax.scan(lambda c, _: (x, c), y, None, 2)",
        "lax.scan(lambda c, v: (c, c * v), y, np.array([x]))",
        "lax.cond(True, lambda: x, lambda: y)",
        "lax.cond(x, lambda: y, lambda: y)",
        "lax.switch(x, [lambda: y, lambda: y])",
        "lax.select(True, x, y)",
        "lax.dynamic_slice(np.ones((2, 2)), (x, y), (1, 1))",
        "lax.dynamic_index_in_dim(np.ones((2, 2)), x)",
        "lax.associative_scan(lambda a, b: a + b + x, np.asarray([y, y]))",
        "lax.map(lambda v: v + x, np.asarray([y, y]))",
        "lib.random.uniform(lib.random.key(0), (), np.float32, x, y)",
        "lib.random.randint(lib.random.key(0), (), x, y)",
        "lib.random.fold_in(lib.random.key(0), x)",
        "lib.random.key_data(lib.random.key(x))",
        "lib.vjp(lambda v: v * x, y)[1](y)",
        "lib.jvp(lambda v: v, (x,), (y,))",
        "lib.jit(lambda a, b: (a + b, a, b))(x, y)",
        "lib.value_and_grad(lambda v: v * x)(y)",
    ],
    "matrices": [
        *_each(
            "np",
            "trace tril triu fliplr rot90 diagonal ravel matrix_transpose linalg.cholesky "
            "linalg.cond linalg.det linalg.diagonal linalg.eig linalg.eigh linalg.eigvals "
            "linalg.eigvalsh linalg.inv linalg.matrix_norm linalg.matrix_rank linalg.norm "
            "linalg.pinv linalg.qr linalg.slogdet linalg.svd linalg.svdvals linalg.trace fft.fft2 "
            "fft.ifft2 fft.rfft2 fft.irfft2 fft.rfftn fft.irfftn histogramdd cov",
            "x",
        ),
        *_each(
            "lax.linalg",
            "cholesky eig eigh hessenberg lu qdwh qr schur svd tridiagonal",
            "x",
        ),
        "np.linalg.matrix_power(x, 2)",
        "np.linalg.matrix_power(x, -1)",
        "np.linalg.multi_dot([x, x, x])",
        "np.linalg.norm(x, ord=1)",
        "np.linalg.norm(x, ord='nuc')",
        "np.linalg.tensorinv(x, 1)",
        "np.trace(x, dtype=d)",
        "np.linalg.trace(x, dtype=d)",
        "np.sum(x, axis=0, dtype=d)",
        *_each(
            "np",
            "matmul dot inner outer tensordot vdot linalg.solve linalg.lstsq linalg.matmul "
            "linalg.outer linalg.tensordot linalg.cross",
            "x, y",
        ),
        "np.linalg.solve(x, y[0])",
        "np.matvec(x, y[0])",
        "np.vecmat(x[0], y)",
        "np.einsum('ij,jk', x, y)",
        "np.polyadd(x[0], y[0])",
        "np.linalg.multi_dot([x, y, x])",
        "lax.batch_matmul(x[None], y[None])",
        "lax.dot_general(x, y, (((1,), (0,)), ((), ())))",
        "lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=np.float32)",
        "lax.ragged_dot(x, y[None], np.array([2], np.int32))",
        "lax.linalg.triangular_solve(x, y)",
        "lax.linalg.householder_product(x, y[0])",
        "lax.linalg.ormqr(x, y[0], x)",
        "lax.linalg.tridiagonal_solve(x[0], x[0], x[0], y)",
        "lax.linalg.symmetric_product(x, y)",
        "lax.linalg.cholesky_update(x, y[0])",
        "lax.conv_general_dilated(x[None, :, :], y[:, :, None], (1,), 'VALID')",
        "lax.conv_transpose(x[:, :, None], y[:, :, None], (1,), 'SAME')",
        "lax.scatter_add(x, np.array([[0]]), y[:1], lax.ScatterDimensionNumbers((1,), (0,), (0,)))",
        "lax.gather(x, y[:, :1], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 2))",
    ],
}


def operands(mode: str, arrays: str, expression: str) -> list[tuple[str, ...]]:
    """What the variables of a case stand for in turn."""
    variables = variables_of(expression)
    if variables == "x" or expression in ALL_PAIRS:
        values, numbers = ALL[mode].split(), list(NUMBERS)
    else:
        values, numbers = SOME[mode].split(), SOME_NUMBERS[mode].split()
    # A number is no matrix.
    values += [] if arrays == "matrices" else numbers
    return list(product(*[ARGUMENTS[mode].split() if v == "d" else values for v in variables]))


def variables_of(expression: str) -> str:
    """The names among ``x``, ``y`` and ``d`` that an expression uses."""
    return "".join(name for name in "xyd" if re.search(rf"(?<![\w.]){name}(?!\w|=)", expression))


def _dtype(short: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, DTYPES[short], DTYPES[short]))


def _outcome(lib: Any, shape: tuple[int, ...], function: Any, values: dict[str, str]) -> str:
    known: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for variable, value in values.items():
        if variable == "d":
            known[variable] = _dtype(value)
        elif value in NUMBERS:
            known[variable] = NUMBERS[value]
        else:
            dtype, weak = _dtype(value.removesuffix("*")), value.endswith("*")
            arrays[variable] = lib.ShapeDtypeStruct(shape, dtype, weak_type=weak)

    def call(traced: dict[str, Any]) -> Any:
        result = function(*({**known, **traced}[variable] for variable in values))
        return np.zeros((), result) if isinstance(result, np.dtype) else result

    try:
        leaves = lib.tree.leaves(lib.eval_shape(call, arrays))
    except Exception as error:
        names = (cls.__name__ for cls in type(error).__mro__)
        return "!" + next(name for name in names if hasattr(builtins, name))
    return " ".join(
        SHORT.get(str(leaf.dtype), str(leaf.dtype)) + "*" * leaf.weak_type for leaf in leaves
    )


def sweep(lib: Any, mode: str) -> Iterator[tuple[str, list[str]]]:
    """Every case with its results, in the order of its operands."""
    names = {"lib": lib, "np": lib.numpy, "lax": lib.lax, "nn": lib.nn}
    with warnings.catch_warnings(), lib.enable_x64(mode == "x64"):
        warnings.simplefilter("ignore")
        for arrays, expressions in CASES.items():
            for expression in expressions:
                variables = variables_of(expression)
                function = eval(f"lambda {', '.join(variables)}: {expression}", dict(names))
                results = [
                    _outcome(lib, SHAPES[arrays], function, dict(zip(variables, v, strict=True)))
                    for v in operands(mode, arrays, expression)
                ]
                yield f"{arrays}: {expression}", results


def imported(module: str) -> Any:
    """The module, with those of its parts that are swept."""
    for part in ("numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "random"):
        import_module(f"{module}.{part}")
    return import_module(module)


def packed(answers: dict[str, dict[str, list[str]]]) -> dict[str, Any]:
    """The results of all modes as a table: one character for each result, equal rows once."""
    rows = [row for cases in answers.values() for row in cases.values()]
    results = sorted({result for row in rows for result in row})
    code = dict(zip(results, LETTERS, strict=False))
    assert len(code) == len(results), "more results than letters"
    table: dict[str, Any] = {"results": {letter: result for result, letter in code.items()}}
    for mode, cases in answers.items():
        same: dict[str, list[str]] = {}
        for case, row in cases.items():
            same.setdefault("".join(code[result] for result in row), []).append(case)
        table[mode] = {row: same[row] for row in sorted(same, key=same.__getitem__)}
    return table


def unpacked(table: dict[str, Any], mode: str) -> dict[str, list[str]]:
    """The results of a mode from a table."""
    letters = table["results"]
    return {
        case: [letters[letter] for letter in row]
        for row, cases in table[mode].items()
        for case in cases
    }


if __name__ == "__main__":
    library = imported(sys.argv[1])
    answers = {mode: dict(sweep(library, mode)) for mode in ("x32", "x64")}
    print(json.dumps(packed(answers), indent=0, ensure_ascii=False))
