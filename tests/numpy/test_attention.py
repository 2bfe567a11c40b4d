"""dovetail.nn: attention and block-scaled products, against their formulas and figures of JAX."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import nn

pytestmark = pytest.mark.tables

RNG = np.random.default_rng(0)
B, T, S, N, K, H = 2, 5, 7, 4, 2, 3


def drawn(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


QUERY, KEY, VALUE = drawn(B, T, N, H), drawn(B, S, K, H), drawn(B, S, K, H)
BIAS = drawn(B, N, T, S)
MASK = drawn(1, 1, T, S) > 0
MASK[0, 0, 2] = False
LENGTHS = {
    "query_seq_lengths": np.array([3, 0], "int32"),
    "key_value_seq_lengths": np.array([5, 0], "int32"),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale": {"scale": 0.3},
    "bias": {"bias": BIAS},
    "bias of fewer dimensions": {"bias": BIAS[0, 0]},
    "mask": {"mask": MASK},
    "causal": {"is_causal": True},
    "window": {"local_window_size": (2, 1)},
    "lengths": LENGTHS,
    "all": {"bias": BIAS[:1], "mask": MASK, "is_causal": True, "local_window_size": 3, **LENGTHS},
}


def expected(query: Any, key: Any, value: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Attention in float64, one query at a time."""
    out = np.zeros(query.shape)
    logs = np.zeros(query.shape[:3])
    bias = np.broadcast_to(options.get("bias", 0.0), (B, N, T, S))
    mask = np.broadcast_to(options.get("mask", True), (B, N, T, S))
    window = options.get("local_window_size", (T + S, T + S))
    before, after = window if isinstance(window, tuple) else (window, window)
    queries = options.get("query_seq_lengths", np.full(B, T))
    keys = options.get("key_value_seq_lengths", np.full(B, S))
    for b, t, n in np.ndindex(B, T, N):
        scores = key[b, :, n // (N // K)].astype(float) @ query[b, t, n].astype(float)
        scores = scores * options.get("scale", H**-0.5) + bias[b, n, t]
        for s in range(S):
            seen = mask[b, n, t, s] and t - before <= s <= t + after and s < keys[b]
            seen = seen and t < queries[b] and (s <= t or not options.get("is_causal"))
            scores[s] = scores[s] if seen else -0.7 * np.finfo(np.float32).max
        weights = np.exp(scores - scores.max())
        logs[b, t, n] = np.log(weights.sum()) + scores.max()
        if t < queries[b]:
            out[b, t, n] = weights / weights.sum() @ value[b, :, n // (N // K)]
    return out, logs


@pytest.mark.parametrize("name", OPTIONS)
def test_attention(name: str) -> None:
    options = OPTIONS[name]
    wanted, logs = expected(QUERY, KEY, VALUE, **options)
    out, residual = nn.dot_product_attention(QUERY, KEY, VALUE, **options, return_residual=True)
    np.testing.assert_allclose(out, wanted, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(residual, logs, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_dtypes_of_attention(dtype: str) -> None:
    """Narrow operands are rounded once more for the weights and once for the result."""
    with dt.enable_x64(dtype == "float64"):
        operands = [jnp.asarray(x).astype(dtype) for x in (QUERY, KEY, VALUE)]
        exact = [
            np.asarray(x.astype("float64" if dtype == "float64" else "float32")) for x in operands
        ]
        out, logs = nn.dot_product_attention(*operands, **OPTIONS["all"], return_residual=True)
        wanted, wanted_logs = expected(*exact, **OPTIONS["all"])
        assert out.dtype == logs.dtype == operands[0].dtype
        bound = 4 * float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(out.astype(float), wanted, rtol=bound, atol=bound)
        seen = wanted_logs > -1e30
        assert seen.any()
        np.testing.assert_allclose(
            np.asarray(logs.astype(float))[seen], wanted_logs[seen], rtol=bound, atol=2 * bound
        )


def test_attention_without_a_batch_and_in_transformations() -> None:
    """vmap over the batch, jit and the call with a batch agree, also in their derivatives."""
    options = {"mask": MASK[0], "is_causal": True}
    batched = nn.dot_product_attention(QUERY, KEY, VALUE, **options)

    def single(query: Any, key: Any, value: Any) -> Any:
        return nn.dot_product_attention(query, key, value, **options)

    mapped = dt.jit(dt.vmap(single))(QUERY, KEY, VALUE)
    np.testing.assert_allclose(mapped, batched, rtol=1e-6, atol=1e-7)
    with dt.enable_x64(True):
        operands = [x[0].astype(float) for x in (QUERY, KEY, VALUE)]
        ways = [np.random.default_rng(i).normal(size=x.shape) for i, x in enumerate(operands)]

        @dt.jit
        def loss(query: Any, key: Any, value: Any) -> Any:
            return jnp.sin(single(query, key, value)).sum()

        slopes = dt.grad(loss, (0, 1, 2))(*operands)
        for i, (slope, way) in enumerate(zip(slopes, ways, strict=True)):
            near = [
                loss(*(x + h * way if i == j else x for j, x in enumerate(operands)))
                for h in (-1e-5, 1e-5)
            ]
            np.testing.assert_allclose((slope * way).sum(), (near[1] - near[0]) / 2e-5, rtol=1e-6)


def test_edges_of_attention() -> None:
    empty = nn.dot_product_attention(QUERY, KEY[:, :0], VALUE[:, :0])
    np.testing.assert_array_equal(empty, np.zeros_like(QUERY))
    assert nn.dot_product_attention(QUERY[:, :0], KEY, VALUE).shape == (B, 0, N, H)
    unseen = nn.dot_product_attention(QUERY, KEY, VALUE, bias=np.full((1, 1, T, S), -np.inf))
    assert np.isnan(unseen).all()
    slope = dt.grad(lambda q: nn.dot_product_attention(q, KEY, VALUE, mask=False).sum())(QUERY)
    np.testing.assert_array_equal(slope, np.zeros_like(QUERY))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"implementation": "cudnn"}, NotImplementedError, "implementation 'cudnn'"),
        ({"implementation": "fast"}, ValueError, "implementation must be"),
        ({"query": QUERY[..., :3, :]}, ValueError, "multiple"),
        ({"value": VALUE[:, :-1]}, ValueError, "value must have the shape"),
        ({"query": QUERY[:1]}, ValueError, "query must have the batch"),
        ({"query": QUERY[0, 0]}, ValueError, "3 or 4 dimensions"),
        ({"query": QUERY.astype("float16")}, ValueError, "query must have the dtype of key"),
        ({"query": QUERY.astype("complex64")}, TypeError, "floating-point"),
        ({"mask": BIAS}, ValueError, "mask must be boolean"),
        ({"bias": BIAS[:, :3]}, TypeError, "bias must broadcast"),
        ({"bias": BIAS * 1j}, TypeError, "bias must be real"),
        ({"scale": "a"}, TypeError, "scale"),
        ({"scale": np.ones(3)}, ValueError, "scale must be a scalar"),
        ({"query_seq_lengths": [1.0, 2.0]}, ValueError, "query_seq_lengths must have an integer"),
        ({"key_value_seq_lengths": [1]}, ValueError, "key_value_seq_lengths must have the shape"),
        ({"local_window_size": (1, 2, 3)}, ValueError, "local_window_size"),
        ({"local_window_size": 1.5}, TypeError, "local_window_size"),
    ],
)
def test_arguments_of_attention(change: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=rf"(?s)dot_product_attention.*{words}"):
        nn.dot_product_attention(**{"query": QUERY, "key": KEY, "value": VALUE, **change})


#: Sums of magnitudes of a product of 32 x 64 and 64 x 96 numbers and of its derivatives, in JAX
#: 0.12.
ROUNDED = {
    "mxfp8": (19621.04, 16476.65, 25854.21),
    "mxfp4": (19535.66, 17184, 25704),
    "nvfp4": (19757.62, 16548.53, 26116.53),
}
NUMBERS = (((1,), (0,)), ((), ()))


def rounded(x: np.ndarray, mode: str) -> np.ndarray:
    """Rows in a format, by NumPy and ml_dtypes."""
    data = ml_dtypes.float8_e4m3fn if mode == "mxfp8" else ml_dtypes.float4_e2m1fn
    most = np.float32(448 if mode == "mxfp8" else 6)
    blocks = x.reshape(*x.shape[:-1], -1, 16 if mode == "nvfp4" else 32)
    scales = np.abs(blocks).max(-1, keepdims=True) / most
    if mode == "nvfp4":
        scales = scales.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    else:
        scales = np.exp2(np.ceil(np.log2(scales)))
    units = np.clip(blocks / scales, -most, most).astype(data).astype(np.float32)
    return (units * scales).reshape(x.shape)


@pytest.mark.parametrize("mode", ROUNDED)
def test_scaled_dot_general(mode: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype("float32") for shape in ((32, 64), (64, 96)))
    configs = [nn.get_scaled_dot_general_config(mode)] * 3

    def product(x: Any, y: Any) -> Any:
        return nn.scaled_dot_general(x, y, NUMBERS, configs=configs)

    out, back = dt.vjp(dt.jit(product), x, y)
    np.testing.assert_allclose(out, rounded(x, mode) @ rounded(y.T, mode).T, rtol=1e-5, atol=1e-5)
    slopes = back(jnp.ones_like(out))
    figures = [float(jnp.abs(value).sum()) for value in (out, *slopes)]
    np.testing.assert_allclose(figures, ROUNDED[mode], rtol=1e-5)
    if mode != "mxfp4":
        return
    # The same with two contracted dimensions, a batch and another order of dimensions.
    folded = x.reshape(2, 16, 8, 8).transpose(2, 0, 3, 1)
    other = y.reshape(8, 8, 96).transpose(2, 0, 1)[None].repeat(2, 0)
    numbers = (((0, 2), (2, 3)), ((1,), (0,)))
    again = nn.scaled_dot_general(folded, other, numbers, configs=configs)
    np.testing.assert_allclose(again.reshape(32, 96), out, rtol=1e-5, atol=1e-5)
    mapped = dt.vmap(product, (0, None))(x.reshape(2, 16, 64), y)
    np.testing.assert_allclose(mapped.reshape(32, 96), out, rtol=1e-5, atol=1e-5)


def test_numbers_that_formats_do_not_have() -> None:
    x = np.ones((4, 64), "float32")
    x[0] = 0
    x[1, 0] = np.nan
    x[2, 0] = np.inf
    y = np.eye(64, 32, dtype="float32")
    for mode in ("mxfp8", "mxfp4"):
        configs = [nn.get_scaled_dot_general_config(mode)] * 2
        out = np.asarray(nn.scaled_dot_general(x, y, NUMBERS, configs=configs))
        np.testing.assert_array_equal(out[0], np.zeros(32))
        assert np.isnan(out[1:3]).all()
        assert np.isfinite(out[3]).all()
    large = np.full((1, 16), 1e4, "float32")
    config = nn.get_scaled_dot_general_config("nvfp4", 10.0)

    def total(x: Any, scale: Any) -> Any:
        pair = [nn.get_scaled_dot_general_config("nvfp4", scale), config]
        return nn.scaled_dot_general(x, large, (((1,), (1,)), ((), ())), configs=pair).sum()

    # Beyond 6 * 448 times the global scale numbers are cut, and have no derivative.
    np.testing.assert_allclose(total(large, 10.0), 16e8, rtol=0.1)
    np.testing.assert_allclose(total(large, 1.0), 16e4 * 2688, rtol=0.1)
    np.testing.assert_array_equal(dt.grad(total)(large, 1.0), np.zeros_like(large))
    np.testing.assert_array_equal(dt.grad(total)(large, 10.0), large)


def test_scaled_matmul() -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=shape).astype("float32") for shape in ((2, 3, 64), (2, 4, 64)))
    x, y = x.astype(ml_dtypes.float8_e4m3fn), y.astype(ml_dtypes.float8_e5m2)
    u = np.exp2(rng.integers(-3, 4, (2, 3, 2))).astype(ml_dtypes.float8_e8m0fnu)
    v = rng.uniform(0.5, 2, (2, 4, 2)).astype(ml_dtypes.float8_e4m3fn)
    left = x.astype(float) * u.astype(float).repeat(32, -1)
    right = y.astype(float) * v.astype(float).repeat(32, -1)
    wanted = np.einsum("bmk,bnk->bmn", left, right)
    for dtype in ("float32", "bfloat16", "float16"):
        out = nn.scaled_matmul(x, y, u, v, dtype)
        assert out.dtype == dtype
        bound = float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(out.astype(float), wanted, rtol=bound, atol=1e-4)
    mapped = dt.vmap(nn.scaled_matmul)(*(z[None] for z in (x, y, u, v)))
    np.testing.assert_allclose(mapped[0], wanted, rtol=1e-6, atol=1e-5)


CONFIGS = [nn.get_scaled_dot_general_config("mxfp8")] * 3
ONES = np.ones((4, 64), "float32")
TURNED = (((1,), (1,)), ((), ()))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nn.get_scaled_dot_general_config("fp8"), ValueError, "mode must be"),
        (lambda: nn.scaled_matmul(*[ONES] * 4), ValueError, "lhs must have three dimensions"),
        (
            lambda: nn.scaled_matmul(*[ONES[None]] * 2, *[ONES[None, :, :3]] * 2),
            ValueError,
            "lhs_s",
        ),
        (lambda: nn.scaled_matmul(*[ONES[None]] * 4, None), TypeError, "preferred_element_type"),
        (lambda: nn.scaled_matmul(*[ONES[None] * 1j] * 4), TypeError, "lhs must have a real"),
        (lambda: _dot(ONES, configs=CONFIGS[:1]), ValueError, "configs must be a list of two"),
        (lambda: _dot(ONES, configs=["mxfp8"] * 3), TypeError, "configs must be made by"),
        (lambda: _dot(ONES, implementation="xla"), ValueError, "implementation"),
        (lambda: _dot(ONES[:, :40]), ValueError, "multiple of the size of a block, 32, got 40"),
        (lambda: _dot(ONES, "int32"), TypeError, "preferred_element_type"),
        (lambda: dt.grad(lambda x: _dot(x).sum())(ONES), ValueError, "derivatives.*32, got 4"),
        (lambda: nn.scaled_dot_general(ONES, ONES, NUMBERS, configs=CONFIGS), ValueError, "sizes"),
        (lambda: nn.scaled_dot_general(ONES, ONES, (1, 0), configs=CONFIGS), TypeError, "numbers"),
    ],
)
def test_arguments_of_scaled_products(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=rf"(?s)scaled_\w+.*{words}"):
        call()


def _dot(x: Any, dtype: Any = np.float32, configs: Any = CONFIGS, **options: Any) -> Any:
    return nn.scaled_dot_general(x, ONES[:, : x.shape[1]], TURNED, dtype, configs, **options)
