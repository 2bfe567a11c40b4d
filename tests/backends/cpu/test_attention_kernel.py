"""Attention by its kernel, against its formula in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail_cpu.kernel_library import library

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)

KERNEL: Final = "dovetail_attention"

#: Queries, keys and the sizes of both and of values: whole panels, tiles and blocks, and others.
SIZES: Final = [(16, 252, 32, 16), (64, 64, 64, 64), (77, 301, 40, 33), (27, 1015, 33, 50)]


def scores_of(q: Any, k: Any, mask: Any = None, fill: float = -1e38) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.3
    return scores if mask is None else jnp.where(mask, scores, np.float32(fill))


def attention(q: Any, k: Any, v: Any, mask: Any = None, fill: float = -1e38) -> Any:
    weights = dt.nn.softmax(scores_of(q, k, mask, fill), -1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)


def expected(q: Any, k: Any, v: Any, mask: Any = None, fill: float = -1e38) -> Any:
    with np.errstate(all="ignore"):
        scores = np.einsum("bhqd,bhkd->bhqk", q.astype(float), k.astype(float)) * 0.3
        if mask is not None:
            scores = np.where(mask, scores, fill)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        weights = powers / powers.sum(-1, keepdims=True)
        return np.einsum("bhqk,bhkd->bhqd", weights, v.astype(float))


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("queries", "keys", "size", "width"), SIZES)
def test_without_a_mask(
    queries: int, keys: int, size: int, width: int, drawn: Any, by_kernel: Any
) -> None:
    q, k = drawn("float32", 2, 3, queries, size), drawn("float32", 2, 3, keys, size)
    v = drawn("float32", 2, 3, keys, width)
    close(by_kernel(attention, q, k, v), expected(q, k, v))


def seen_of(name: str, queries: int, keys: int) -> Any:
    rows, columns = np.arange(queries)[:, None], np.arange(keys)
    return {
        "causal": columns <= rows,
        "window": abs(columns - rows) < 20,
        "from a key on": columns[None] >= 37,
        "any": np.random.default_rng(0).random((2, 1, queries, keys)) > 0.6,
        "none of some": (columns <= rows) & (rows != 3),
        "all": np.ones((queries, keys), bool),
    }[name]


@pytest.mark.parametrize("fill", [-np.inf, -1e38, float(np.finfo("float32").min), -0.5])
@pytest.mark.parametrize(
    "name", ["causal", "window", "from a key on", "any", "none of some", "all"]
)
def test_masks(name: str, fill: float, drawn: Any, by_kernel: Any) -> None:
    for queries, keys, size, width in SIZES[1:]:
        q, k = drawn("float32", 2, 3, queries, size), drawn("float32", 2, 3, keys, size)
        v, mask = drawn("float32", 2, 3, keys, width), seen_of(name, queries, keys)
        found = by_kernel(lambda *x: attention(*x, fill=fill), q, k, v, mask)
        close(found, expected(q, k, v, mask, fill))


def test_scores_as_small_as_those_of_hidden_keys(drawn: Any, by_kernel: Any) -> None:
    q, k, v = (drawn("float32", 1, 2, 300, 32 + i) for i in (0, 0, 1))
    q, mask = abs(q), np.arange(300) <= np.arange(300)[:, None]
    k[:] = np.where(np.arange(300)[:, None] < 100, -1e30, k)
    close(
        by_kernel(lambda *x: attention(*x, fill=-1e20), q, k, v, mask)[:, :, 100:],
        expected(q, k, v, mask, -1e20)[:, :, 100:],
    )
    found = by_kernel(lambda *x: attention(*x, fill=-1e20), q, k, v, mask)
    close(found[:, :, 50], v[:, :, 51:].mean(2))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(number: float, drawn: Any, by_kernel: Any) -> None:
    mask = np.arange(301) <= np.arange(77)[:, None]
    for place in range(3):
        operands = [drawn("float32", 1, 2, n, 40) for n in (77, 301, 301)]
        operands[place][0, 1, 20, 3] = number
        found = by_kernel(attention, *operands, mask)
        wanted = expected(*operands, mask)
        assert np.array_equal(np.isnan(found), np.isnan(wanted))
        close(found, wanted)


@pytest.mark.parametrize(
    ("queries", "keys", "values"),
    [
        ("bhqd", "bhkd", "bhkd"),
        ("bqhd", "bkhd", "bkhd"),
        ("qbhd", "hkdb", "khdb"),
        ("bqhd", "bkd", "bkd"),
        ("hqd", "hkd", "kd"),
        ("qd", "kd", "kd"),
        ("bhqd", "bhdk", "bhdk"),
    ],
)
def test_layouts(queries: str, keys: str, values: str, drawn: Any, by_kernel: Any) -> None:
    sizes = {"b": 2, "h": 3, "q": 50, "k": 60, "d": 32}
    q, k, v = (drawn("float32", *[sizes[x] for x in each]) for each in (queries, keys, values))
    batch = [x for x in "bh" if x in queries]
    scores = "".join([*batch, "qk"])

    def attend(q: Any, k: Any, v: Any, module: Any) -> Any:
        s = module.einsum(f"{queries},{keys}->{scores}", q, k) / np.float32(3)
        if module is jnp:
            weights = dt.nn.softmax(s, -1)
        else:
            powers = np.exp(s - s.max(-1, keepdims=True))
            weights = powers / powers.sum(-1, keepdims=True)
        return module.einsum(f"{scores},{values}->{''.join(batch)}qd", weights, v)

    found = np.asarray(dt.jit(lambda *x: attend(*x, jnp))(q, k, v))
    close(found, attend(*[x.astype(float) for x in (q, k, v)], np))


@pytest.mark.parametrize("order", ["bhqde", "bqhde", "hqbde", "qbdhe", "bhqed", "bhdqe"])
def test_orders_of_the_result(order: str, drawn: Any, by_kernel: Any) -> None:
    q, k = drawn("float32", 2, 3, 50, 32), drawn("float32", 2, 3, 60, 32)
    v = drawn("float32", 2, 3, 60, 4, 8)

    def attend(q: Any, k: Any, v: Any) -> Any:
        found = jnp.einsum("bhqk,bhkde->bhqde", dt.nn.softmax(scores_of(q, k), -1), v)
        return found.transpose(["bhqde".index(letter) for letter in order])

    wanted = expected(q, k, v.reshape(2, 3, 60, 32)).reshape(2, 3, 50, 4, 8)
    close(by_kernel(attend, q, k, v), np.einsum(f"bhqde->{order}", wanted))


OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "scale": {"scale": np.float32(-0.3)},
    "causal": {"is_causal": True},
    "lengths": {
        "query_seq_lengths": np.array([30, 0]),
        "key_value_seq_lengths": np.array([20, 0]),
        "is_causal": True,
    },
    "mask": {"mask": seen_of("any", 50, 60)},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_function_of_the_library(name: str, drawn: Any, by_kernel: Any) -> None:
    q, k = drawn("float32", 2, 50, 6, 32), drawn("float32", 2, 60, 2, 32)
    v = drawn("float32", 2, 60, 2, 32)

    def attend(q: Any, k: Any, v: Any) -> Any:
        return dt.nn.dot_product_attention(q, k, v, **OPTIONS[name])

    found = by_kernel(attend, q, k, v)
    pairs = np.stack([q, -q]), np.stack([k, k]), np.stack([v, v], 1)
    mapped = by_kernel(dt.vmap(attend, (0, 0, 1)), *pairs)
    with dt.cpu_kernels(False):
        wanted = dt.jit(attend)
        close(found, wanted(q, k, v))
        close(mapped, np.stack([wanted(q, k, v), wanted(-q, k, v)]))


def test_gradients(drawn: Any) -> None:
    q, k = drawn("float32", 1, 50, 4, 32), drawn("float32", 1, 60, 2, 32)

    def total(q: Any, k: Any, v: Any) -> Any:
        return jnp.sin(dt.nn.dot_product_attention(q, k, v, is_causal=True)).sum()

    slopes = {}
    for kernels in (True, False):
        with dt.cpu_kernels(kernels):
            slopes[kernels] = dt.jit(dt.grad(total, (0, 1, 2)))(q, k, 2 * k)
    for found, wanted in zip(slopes[True], slopes[False], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "function",
    [
        lambda q, k, v: (w := dt.nn.softmax(scores_of(q, k), -1)) @ v + jnp.sin(w[..., :33]),
        lambda q, k, v: dt.nn.dot_product_attention(q, k, v, return_residual=True),
        lambda q, k, v: attention(q[:, :, :1], k, v),
        lambda q, k, v: scores_of(q, k) @ v,
        lambda q, k, v: (q @ k.swapaxes(2, 3)) @ v,
        lambda q, k, v: dt.nn.softmax(scores_of(q, k), -2) @ v,
        lambda q, k, v: attention(q, k, v[..., :3]),
        lambda q, k, v: jnp.einsum(
            "bhqk,bhkd->bhqd", dt.nn.softmax(scores_of(q, k) + jnp.ones(64), -1), v
        ),
        lambda q, k, v: jnp.einsum("bhqk,bhqd->bhkd", dt.nn.softmax(scores_of(q, k), -1), v),
    ],
    ids=[
        "weights",
        "residual",
        "one query",
        "no softmax",
        "products",
        "along queries",
        "few columns",
        "bias",
        "other sums",
    ],
)
def test_what_is_left_to_others(function: Callable[..., Any], drawn: Any, by_kernel: Any) -> None:
    q, k, v = (drawn("float32", 2, 64, 64, 33 + i) for i in range(3))
    by_kernel(function, q, k[..., :33], v[..., :33], kernel=False)
