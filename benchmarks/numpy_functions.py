"""Measure calls of the NumPy API and of `nn`, one at a time, as another process asks for them.

    python numpy_functions.py jax|dovetail

The first line written is a JSON list of the calls' names. For every request read, a JSON object
with a `name`, a line follows with the median wall time of a call in `microseconds`, on a warm
cache, or with an `error`. Functions are called as they are on small and on large matrices, and as
compiled programs on large ones, whose name begins with "jit".
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

SIZES = (10, 1000)
#: Calls follow one another for about so many seconds, and the last result is waited for.
BATCH = 0.002
#: A call that takes longer has fewer batches: as many as fit into this time, but at least three.
SECONDS = 0.3
BATCHES = 9

#: Names of functions: of a matrix, of two, ...
UNARY = """
    abs negative positive sign sqrt square reciprocal cbrt exp exp2 expm1 log log10 log1p log2
    sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh sinc deg2rad rad2deg
    degrees radians fabs fix floor ceil trunc rint round around isnan isfinite isinf isneginf
    isposinf isreal iscomplex signbit logical_not nan_to_num modf frexp i0 spacing unwrap
    angle real imag conj conjugate copy array asarray
    sum prod max min amax amin mean average std var any all argmax argmin ptp count_nonzero
    nansum nanprod nanmax nanmin nanmean nanstd nanvar nanmedian nanargmax nanargmin nancumsum
    nancumprod median cumsum cumprod
    argwhere nonzero flatnonzero unique unique_all unique_counts unique_inverse unique_values
    sort argsort sort_complex ediff1d gradient trapezoid cov corrcoef diff
    ravel transpose matrix_transpose flip fliplr flipud rot90 squeeze atleast_1d
    atleast_2d atleast_3d tril triu diag diagflat diagonal trace
    empty_like zeros_like ones_like unstack
"""
BINARY = """
    add subtract multiply divide true_divide floor_divide remainder mod fmod divmod power pow
    float_power maximum minimum fmax fmin hypot arctan2 logaddexp logaddexp2 copysign nextafter
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
    isclose allclose array_equal array_equiv heaviside dot tensordot inner matmul vdot vecdot
"""
OF_INTEGERS = """
    bitwise_and bitwise_or bitwise_xor left_shift right_shift bitwise_left_shift
    bitwise_right_shift gcd lcm remainder floor_divide
"""
OF_ONE_INTEGER = "bitwise_not invert bitwise_invert bitwise_count"
OF_ROWS = """
    sum max mean argmax cumsum cumprod cumulative_sum cumulative_prod sort argsort diff any
    median std
"""
WINDOWS = "bartlett blackman hamming hanning"
FACTORS = "cholesky qr svd svdvals inv pinv det slogdet eigh eigvalsh cond matrix_rank"
OF_REAL = "rfft ihfft rfft2 rfftn"
OF_COMPLEX = "fft ifft irfft hfft fft2 ifft2 irfft2 fftn ifftn irfftn"
ACTIVATIONS = """
    celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu log1mexp log_sigmoid
    log_softmax logmeanexp logsumexp mish relu relu6 selu sigmoid silu soft_sign softmax softplus
    sparse_plus sparse_sigmoid squareplus standardize swish tanh
"""
#: What has no row, by the reason.
LEFT_OUT = {
    "another name of a function with a row": """
        absolute acos acosh asin asinh atan atan2 atanh concat bitwise_invert
    """,
    "takes no arrays, or looks only at shapes and dtypes": """
        array_repr array_str broadcast_shapes can_cast einsum_path explain_dtype get_printoptions
        iscomplexobj isdtype isrealobj isscalar issubdtype iterable ndim printoptions
        promote_types result_type set_printoptions shape size ix_
    """,
    "reads files, memory or Python's objects": """
        from_dlpack frombuffer fromfile fromiter fromstring load save savez
    """,
    "calls a function that is given to it": """
        apply_along_axis apply_over_axes fromfunction frompyfunc piecewise vectorize
    """,
    "changes arrays of NumPy": "place put put_along_axis",
    "is of indices alone": """
        diag_indices diag_indices_from mask_indices tril_indices tril_indices_from triu_indices
        triu_indices_from ravel_multi_index unravel_index indices
    """,
    "is of a few numbers": """
        poly polyadd polyder polydiv polyfit polyint polymul polysub roots trim_zeros
    """,
    "has formats of 8 bits": "scaled_dot_general scaled_matmul get_scaled_dot_general_config",
    "returns what it is given": "identity",
}
#: Calls whose results have a shape that depends on values, or which are of no program.
NOT_COMPILED = """
    argwhere nonzero flatnonzero unique unique_all unique_counts unique_inverse unique_values
    extract compress array_equiv
"""
#: A function and its arguments.
Called = tuple[Callable[..., Any], tuple[Any, ...]]


def calls(framework: Any, size: int) -> dict[str, Called]:
    """By name, calls on matrices of a size, or on as many numbers.

    Args:
        framework: the framework.
        size: how many rows and columns they have.
    """
    jnp, nn = framework.numpy, framework.nn
    generator = np.random.default_rng(0)
    host = generator.uniform(0.1, 0.9, (size, size)).astype(np.float32)
    x, y = jnp.asarray(host), jnp.asarray(host.T.copy())
    large, flat, v = x + 1, x.ravel(), x[0]
    i, j = (jnp.asarray(generator.integers(1, 20, (size, size)).astype(np.int32)) for _ in "ij")
    many = jnp.asarray(generator.integers(0, size, (size, size)).astype(np.int32))
    mask = x > 0.5
    places = jnp.asarray(generator.integers(0, size, 8))
    both = x + 1j * y
    found: dict[str, Called] = {}

    def add(module: Any, names: str, *arguments: Any, prefix: str = "", suffix: str = "") -> None:
        # Not all versions of JAX have all functions.
        for name in names.split():
            if hasattr(module, name):
                found[f"{prefix}{name}{suffix}"] = (getattr(module, name), arguments)

    add(jnp, UNARY, x)
    add(jnp, "arccosh", large)
    add(jnp, BINARY, x, y)
    add(jnp, OF_INTEGERS, i, j, suffix=" i32")
    add(jnp, OF_ONE_INTEGER, i, suffix=" i32")
    add(jnp, "minmax", flat)
    add(nn, ACTIVATIONS, x, prefix="nn.")
    add(jnp.fft, OF_REAL, x, prefix="fft.")
    add(jnp.fft, OF_COMPLEX, both, prefix="fft.")
    for name in OF_ROWS.split():
        found[f"{name} of rows"] = (partial(getattr(jnp, name), axis=-1), (x,))
    if hasattr(jnp, "top_k"):
        found["top_k"] = (lambda x: jnp.top_k(x, 10), (flat,))
    found |= {
        "x + 1": (lambda x: x + 1, (x,)),
        "x * y": (lambda x, y: x * y, (x, y)),
        "x @ y": (lambda x, y: x @ y, (x, y)),
        "-x": (lambda x: -x, (x,)),
        "x > y": (lambda x, y: x > y, (x, y)),
        "x ** 2": (lambda x: x**2, (x,)),
        "nn.one_hot": (lambda i: nn.one_hot(i, size), (many[0],)),
        "nn.dot_product_attention": (
            nn.dot_product_attention,
            tuple(a.reshape(1, -1, 1, min(size, 100))[:, :512] for a in (x, y, x)),
        ),
    }
    found |= _shaped(jnp, size, x, y, v, mask, places)
    found |= _on_numbers(jnp, size, flat, y.ravel(), v, many.ravel(), mask)
    found |= _linear_algebra(jnp, size, x, v)
    return found


def _shaped(
    jnp: Any, size: int, x: Any, y: Any, v: Any, mask: Any, places: Any
) -> dict[str, Called]:
    """Calls that make arrays, change shapes, index and update."""
    along = jnp.argsort(x, axis=1)
    return {
        "where": (jnp.where, (mask, x, y)),
        "select": (lambda m, x, y: jnp.select([m, ~m], [x, y]), (mask, x, y)),
        "choose": (
            lambda m, x, y: jnp.choose(m.astype("int32"), [x, y], mode="clip"),
            (mask, x, y),
        ),
        "clip": (lambda x: jnp.clip(x, 0.2, 0.8), (x,)),
        "concatenate": (lambda x, y: jnp.concatenate([x, y]), (x, y)),
        "append": (lambda x, y: jnp.append(x, y, axis=0), (x, y)),
        "stack": (lambda x, y: jnp.stack([x, y]), (x, y)),
        "hstack": (lambda x, y: jnp.hstack([x, y]), (x, y)),
        "vstack": (lambda x, y: jnp.vstack([x, y]), (x, y)),
        "dstack": (lambda x, y: jnp.dstack([x, y]), (x, y)),
        "column_stack": (lambda x, y: jnp.column_stack([x, y]), (x, y)),
        "block": (lambda x, y: jnp.block([[x, y], [y, x]]), (x, y)),
        "split": (lambda x: jnp.split(x, 2), (x,)),
        "array_split": (lambda x: jnp.array_split(x, 3), (x,)),
        "hsplit": (lambda x: jnp.hsplit(x, 2), (x,)),
        "vsplit": (lambda x: jnp.vsplit(x, 2), (x,)),
        "dsplit": (lambda x: jnp.dsplit(x.reshape(-1, 5, 2), 2), (x,)),
        "reshape": (lambda x: jnp.reshape(x, (-1,)), (x,)),
        "resize": (lambda x: jnp.resize(x, (size + 1, size)), (x,)),
        "broadcast_to": (lambda v: jnp.broadcast_to(v, (size, size)), (v,)),
        "broadcast_arrays": (jnp.broadcast_arrays, (x, v)),
        "expand_dims": (lambda x: jnp.expand_dims(x, 0), (x,)),
        "swapaxes": (lambda x: jnp.swapaxes(x, 0, 1), (x,)),
        "moveaxis": (lambda x: jnp.moveaxis(x, 0, 1), (x,)),
        "permute_dims": (lambda x: jnp.permute_dims(x, (1, 0)), (x,)),
        "rollaxis": (lambda x: jnp.rollaxis(x, 1), (x,)),
        "roll": (lambda x: jnp.roll(x, 1, 0), (x,)),
        "pad": (lambda x: jnp.pad(x, 1), (x,)),
        "tile": (lambda x: jnp.tile(x, (2, 1)), (x,)),
        "repeat": (lambda x: jnp.repeat(x, 2, 0), (x,)),
        "delete": (lambda x: jnp.delete(x, 3, axis=0), (x,)),
        "insert": (lambda x: jnp.insert(x, 3, 0.0, axis=0), (x,)),
        "take": (lambda x, p: jnp.take(x, p, axis=0), (x, places)),
        "take_along_axis": (lambda x, a: jnp.take_along_axis(x, a, axis=1), (x, along)),
        "extract": (jnp.extract, (mask, x)),
        "compress": (lambda m, x: jnp.compress(m, x, axis=0), (mask[0], x)),
        "fill_diagonal": (lambda x: jnp.fill_diagonal(x, 1.0, inplace=False), (x,)),
        "full_like": (lambda x: jnp.full_like(x, 2.0), (x,)),
        "astype": (lambda x: jnp.astype(x, "int32"), (x,)),
        "zeros": (lambda: jnp.zeros((size, size)), ()),
        "ones": (lambda: jnp.ones((size, size)), ()),
        "empty": (lambda: jnp.empty((size, size)), ()),
        "full": (lambda: jnp.full((size, size), 2.0), ()),
        "arange": (lambda: jnp.arange(size * size), ()),
        "linspace": (lambda: jnp.linspace(0.0, 1.0, size * size), ()),
        "logspace": (lambda: jnp.logspace(0.0, 1.0, size * size), ()),
        "geomspace": (lambda: jnp.geomspace(1.0, 2.0, size * size), ()),
        "eye": (lambda: jnp.eye(size), ()),
        "tri": (lambda: jnp.tri(size), ()),
        "meshgrid": (jnp.meshgrid, (v, v)),
        "vander": (lambda v: jnp.vander(v, size), (v,)),
        **{name: (partial(getattr(jnp, name), size * size), ()) for name in WINDOWS.split()},
        "kaiser": (lambda: jnp.kaiser(size * size, 2.0), ()),
        "x[1]": (lambda x: x[1], (x,)),
        "x[1, 2]": (lambda x: x[1, 2], (x,)),
        "x[2:5]": (lambda x: x[2:5], (x,)),
        "x[:, 1]": (lambda x: x[:, 1], (x,)),
        "x[::-1]": (lambda x: x[::-1], (x,)),
        "x[None]": (lambda x: x[None], (x,)),
        "x[places]": (lambda x, p: x[p], (x, places)),
        "x.at[1].set": (lambda x: x.at[1].set(2.0), (x,)),
        "x.at[1, 2].set": (lambda x: x.at[1, 2].set(2.0), (x,)),
        "x.at[2:5].add": (lambda x: x.at[2:5].add(1.0), (x,)),
        "x.at[places].set": (lambda x, p: x.at[p].set(0.0), (x, places)),
    }


def _on_numbers(
    jnp: Any, size: int, flat: Any, other: Any, v: Any, many: Any, mask: Any
) -> dict[str, Called]:
    """Calls of functions of vectors, and of order, sets and histograms."""
    ordered, few = jnp.sort(v), v[:5]
    threes = [a[: len(flat) // 3 * 3].reshape(-1, 3) for a in (flat, other)]
    bits = jnp.packbits(mask)
    return {
        "quantile": (lambda x: jnp.quantile(x, 0.3), (flat,)),
        "percentile": (lambda x: jnp.percentile(x, 30.0), (flat,)),
        "nanquantile": (lambda x: jnp.nanquantile(x, 0.3), (flat,)),
        "nanpercentile": (lambda x: jnp.nanpercentile(x, 30.0), (flat,)),
        "partition": (lambda x: jnp.partition(x, 5), (flat,)),
        "argpartition": (lambda x: jnp.argpartition(x, 5), (flat,)),
        "lexsort": (lambda a, b: jnp.lexsort((a, b)), (flat, many)),
        "searchsorted": (jnp.searchsorted, (ordered, flat)),
        "digitize": (jnp.digitize, (flat, ordered)),
        "interp": (jnp.interp, (flat, ordered, v)),
        "bincount": (lambda i: jnp.bincount(i, length=size), (many,)),
        "histogram": (lambda x: jnp.histogram(x, 20), (flat,)),
        "histogram_bin_edges": (lambda x: jnp.histogram_bin_edges(x, 20), (flat,)),
        "histogram2d": (lambda x, y: jnp.histogram2d(x, y, 20), (flat, other)),
        "histogramdd": (lambda x: jnp.histogramdd(x, 5), (threes[0],)),
        "isin": (jnp.isin, (many, many[:size])),
        "union1d": (lambda a, b: jnp.union1d(a, b, size=2 * size), (many, many[:size])),
        "intersect1d": (lambda a, b: jnp.intersect1d(a, b, size=size), (many, many[:size])),
        "setdiff1d": (lambda a, b: jnp.setdiff1d(a, b, size=size), (many, many[:size])),
        "setxor1d": (lambda a, b: jnp.setxor1d(a, b, size=size), (many, many[:size])),
        "convolve": (jnp.convolve, (flat, few)),
        "correlate": (jnp.correlate, (flat, few)),
        "polyval": (jnp.polyval, (few, flat)),
        "cross": (jnp.cross, tuple(threes)),
        "ldexp": (jnp.ldexp, (flat, many % 8)),
        "packbits": (jnp.packbits, (mask,)),
        "unpackbits": (jnp.unpackbits, (bits,)),
    }


def _linear_algebra(jnp: Any, size: int, x: Any, v: Any) -> dict[str, Called]:
    """Calls of products, and of factors of stacks of matrices of at most 100 rows."""
    side = min(size, 100)
    squares = x.reshape(-1, side, side)[:10]
    definite = squares @ squares.swapaxes(-1, -2) + side * jnp.eye(side)
    column = definite[..., :1]
    linalg = jnp.linalg
    of_vectors = squares[..., 0]
    found: dict[str, Called] = {
        f"linalg.{name}": (getattr(linalg, name), (definite,)) for name in FACTORS.split()
    }
    return found | {
        "linalg.eig": (linalg.eig, (squares[:2],)),
        "linalg.eigvals": (linalg.eigvals, (squares[:2],)),
        "linalg.solve": (linalg.solve, (definite, column)),
        "linalg.lstsq": (lambda a, b: linalg.lstsq(a, b)[0], (definite[0], column[0])),
        "linalg.tensorsolve": (linalg.tensorsolve, (definite[0], column[0, :, 0])),
        "linalg.tensorinv": (lambda a: linalg.tensorinv(a, ind=1), (definite[0],)),
        "linalg.matrix_power": (lambda a: linalg.matrix_power(a, 3), (x,)),
        "linalg.multi_dot": (lambda a, b: linalg.multi_dot([a, a, b]), (x, v)),
        "linalg.norm": (linalg.norm, (x,)),
        "linalg.matrix_norm": (linalg.matrix_norm, (x,)),
        "linalg.vector_norm": (linalg.vector_norm, (x,)),
        "linalg.cross": (linalg.cross, (x.ravel()[:99].reshape(-1, 3),) * 2),
        "linalg.trace": (linalg.trace, (x,)),
        "linalg.diagonal": (linalg.diagonal, (x,)),
        "linalg.matrix_transpose": (linalg.matrix_transpose, (x,)),
        "linalg.matmul": (linalg.matmul, (x, x)),
        "linalg.tensordot": (linalg.tensordot, (x, x)),
        "linalg.outer": (linalg.outer, (v, v)),
        "linalg.vecdot": (linalg.vecdot, (x, x)),
        "outer": (jnp.outer, (v, v)),
        "kron": (jnp.kron, (x[:10, :10], x.ravel()[: size * size // 100])),
        "einsum": (lambda a, b: jnp.einsum("ij,jk->ik", a, b), (x, x)),
        "matvec": (jnp.matvec, (squares, of_vectors)),
        "vecmat": (jnp.vecmat, (of_vectors, squares)),
        "fft.fftshift": (jnp.fft.fftshift, (x,)),
        "fft.ifftshift": (jnp.fft.ifftshift, (x,)),
        "fft.fftfreq": (lambda: jnp.fft.fftfreq(size * size), ()),
        "fft.rfftfreq": (lambda: jnp.fft.rfftfreq(size * size), ()),
    }


def without_rows(framework: Any, rows: dict[str, Called]) -> list[str]:
    """Public functions that neither have a row nor are left out for a reason."""
    known = {name.split(" ")[0] for name in rows}
    known.update(*(names.split() for names in LEFT_OUT.values()))
    modules = {"": "numpy", "linalg.": "numpy.linalg", "fft.": "numpy.fft", "nn.": "nn"}
    missing = []
    for prefix, path in modules.items():
        module = import_module(f"{framework.__name__}.{path}")
        for name in dir(module):
            value = getattr(module, name)
            if name.startswith("_") or isinstance(value, type) or not callable(value):
                continue
            if not {prefix + name, name} & known:
                missing.append(prefix + name)
    return missing


def microseconds(call: Callable[[], Any], wait: Callable[[Any], Any]) -> float:
    """Median over batches of the mean time of a call."""
    for _ in range(2):
        wait(call())
    start = time.perf_counter()
    wait(call())
    count = max(1, min(1000, int(BATCH / (time.perf_counter() - start))))
    times: list[float] = []
    while len(times) < BATCHES and (len(times) < 3 or sum(times) * count < SECONDS):
        start = time.perf_counter()
        for _ in range(count):
            result = call()
        wait(result)
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times) * 1e6


def main() -> None:
    framework = import_module(sys.argv[1])
    for part in ("numpy.linalg", "numpy.fft", "nn"):
        import_module(f"{sys.argv[1]}.{part}")
    found: dict[str, Callable[[], Any]] = {}
    for size in SIZES:
        rows = calls(framework, size)
        found |= {f"{name} {size}x{size}": partial(f, *a) for name, (f, a) in rows.items()}
    if sys.argv[1] == "dovetail" and (missing := without_rows(framework, rows)):
        raise SystemExit(f"without a row in numpy_functions.py: {' '.join(missing)}")
    for name, (function, arguments) in rows.items():
        if name not in NOT_COMPILED.split() and arguments:
            compiled = framework.jit(lambda *a, f=function: f(*a))
            found[f"jit {name} {size}x{size}"] = partial(compiled, *arguments)
    print(json.dumps(list(found)), flush=True)
    for line in sys.stdin:
        try:
            call = found[json.loads(line)["name"]]
            answer: dict[str, Any] = {
                "microseconds": microseconds(call, framework.block_until_ready)
            }
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
