"""dovetail.ops: reductions of segments, against loops over the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, ops
from dovetail.errors import ConcretizationTypeError

pytestmark = pytest.mark.laws

DATA = np.random.default_rng(0).uniform(-2, 2, (17, 3)).astype(np.float32)
IDS = np.array([0, 2, 2, 5, -1, 7, 0, 3, 3, 3, -9, 5, 1, 1, 99, 2, 0])
WAYS: dict[str, tuple[Any, float]] = {
    "segment_sum": (np.add, 0),
    "segment_prod": (np.multiply, 1),
    "segment_max": (np.maximum, -np.inf),
    "segment_min": (np.minimum, np.inf),
}


def by_rows(name: str, data: Any, ids: Any, count: int) -> Any:
    combine, start = WAYS[name]
    out = np.full((count, *data.shape[1:]), float(start))
    for row, number in zip(data, ids, strict=True):
        if 0 <= number < count:
            out[number] = combine(out[number], row)
    return out


@pytest.mark.parametrize("name", WAYS)
def test_agrees_with_a_loop(name: str) -> None:
    reduce = getattr(ops, name)
    expected = by_rows(name, DATA, IDS, 7)
    for kind in ("int32", "int8"):
        for words in ({}, {"bucket_size": 5}, {"bucket_size": 100}, {"mode": "drop"}):
            found = reduce(DATA, IDS.astype(kind), 7, **words)
            np.testing.assert_allclose(found, expected, rtol=1e-5)
    clipped = reduce(DATA, IDS, 7, mode="clip")
    np.testing.assert_allclose(clipped, by_rows(name, DATA, IDS.clip(0, 6), 7), rtol=1e-5)
    order = np.argsort(IDS, kind="stable")
    ordered = reduce(DATA[order], IDS[order], 7, indices_are_sorted=True)
    np.testing.assert_allclose(ordered, expected, rtol=1e-5)
    compiled = dt.jit(reduce, static_argnums=2)(DATA, IDS, 7)
    np.testing.assert_allclose(compiled, expected, rtol=1e-5)
    mapped = dt.vmap(lambda x: reduce(x, IDS, 7), 1, 1)(DATA)
    np.testing.assert_allclose(mapped, expected, rtol=1e-5)
    for one in (np.float32(3), DATA[0, :1], DATA[:1]):
        rows = np.broadcast_to(one, (len(IDS), *one.shape[1:]))
        np.testing.assert_allclose(reduce(one, IDS, 7), by_rows(name, rows, IDS, 7), rtol=1e-5)
    unsigned = abs(IDS).astype("uint8")
    np.testing.assert_allclose(
        reduce(DATA, unsigned, 7), by_rows(name, DATA, unsigned, 7), rtol=1e-5
    )


@pytest.mark.parametrize("name", WAYS)
def test_counts_and_empty_segments(name: str) -> None:
    reduce = getattr(ops, name)
    assert reduce(DATA[:3], np.array([0, 4, 4])).shape == (5, 3)
    assert reduce(DATA[:0], IDS[:0]).shape == (0, 3)
    assert reduce(DATA[:0], IDS[:0], 2).tolist() == [[WAYS[name][1]] * 3] * 2
    assert reduce(DATA, IDS, 0).shape == (0, 3)


def test_ends_of_dtypes() -> None:
    ids = np.array([1])
    for dtype in ("int8", "uint16", "float16", "float8_e4m3fn", "float8_e5m2"):
        x = np.ones(1).astype(getattr(ml_dtypes, dtype, dtype))
        for reduce, end in ((ops.segment_max, "min"), (ops.segment_min, "max")):
            empty = reduce(x, ids)[0]
            assert empty.dtype == dtype
            limits = jnp.iinfo(dtype) if "int" in dtype else jnp.finfo(dtype)
            past = "int" in dtype or dtype == "float8_e4m3fn"
            expected = getattr(limits, end) if past else {"min": -np.inf, "max": np.inf}[end]
            assert float(empty) == float(expected)
    assert ops.segment_max(np.array([False]), ids).tolist() == [False, False]
    assert ops.segment_min(np.array([False]), ids).tolist() == [True, False]


def test_gradients() -> None:
    weights = np.arange(21.0, dtype=np.float32).reshape(7, 3)
    inside = (IDS >= 0) & (IDS < 7)
    slope = dt.grad(lambda x: (ops.segment_sum(x, IDS, 7) * weights).sum())(DATA)
    np.testing.assert_allclose(slope, np.where(inside[:, None], weights[IDS.clip(0, 6)], 0))
    ids, data = np.array([0, 0, 2]), np.array([3.0, 5.0, 4.0], np.float32)
    assert dt.grad(lambda x: ops.segment_max(x, ids, 3)[::2].sum())(data).tolist() == [0, 1, 1]
    assert dt.grad(lambda x: ops.segment_min(x, ids, 3)[::2].sum())(data).tolist() == [1, 0, 1]
    unique = np.array([0, 1, 2])
    product = dt.grad(lambda x: ops.segment_prod(x, unique, 3, unique_indices=True).sum())(data)
    assert product.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ops.segment_sum(DATA, IDS[:3]), ValueError, "one number for each row"),
        (lambda: ops.segment_sum(DATA, DATA), TypeError, "segment_ids must be integers"),
        (lambda: ops.segment_sum(DATA > 0, IDS, 7), TypeError, "booleans are neither added"),
        (lambda: ops.segment_max(DATA, IDS, -1), ValueError, "must not be negative"),
        (lambda: ops.segment_max(DATA, IDS, 2.5), TypeError, "num_segments"),
        (lambda: ops.segment_max(DATA, IDS, 7, mode="wrap"), ValueError, "mode"),
        (lambda: ops.segment_max(DATA, IDS, 7, bucket_size=0), ValueError, "must be positive"),
        (lambda: dt.jit(ops.segment_min)(DATA, IDS), ConcretizationTypeError, "num_segments"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_modes_may_be_members() -> None:
    modes = (lax.GatherScatterMode.CLIP, lax.GatherScatterMode.FILL_OR_DROP)
    clipped, dropped = (ops.segment_sum(DATA, IDS, 7, mode=m) for m in modes)
    np.testing.assert_allclose(clipped, ops.segment_sum(DATA, IDS, 7, mode="clip"))
    np.testing.assert_allclose(dropped, ops.segment_sum(DATA, IDS, 7))
