"""Calls without a program in which operations read parts of arrays, and positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.runtime.arrays.held_values import held_value
from dovetail._core.runtime.devices.host_functions import host_functions
from dovetail.extend.indexing import true_positions

pytestmark = [
    pytest.mark.usefixtures("directly"),
    pytest.mark.skipif(not host_functions(), reason="every call here needs a program"),
]


def normals(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def check(function: Callable[..., Any], *args: Any, direct: bool = True) -> None:
    """A function gives what its program gives, again and again, and no program is run."""
    arrays = [jnp.asarray(x) for x in args]
    with dt.direct_calls("none"):
        expected = dt.tree.leaves(dt.jit(function).lower(*arrays).compile()(*arrays))
    compiled = dt.jit(function)
    for _ in range(3):
        found = dt.tree.leaves(compiled(*arrays))
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            assert not direct or held_value(x) is not None, "a program was run"
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            np.testing.assert_array_equal(x, y)
    for x, given in zip(arrays, args, strict=True):
        np.testing.assert_array_equal(x, given)


ROW, X, BLOCK = normals(1000), normals(7, 5), normals(3, 4, 5)
CONSTANT = normals(9)

PARTS: dict[str, tuple[Callable[..., Any], np.ndarray[Any, Any]]] = {
    "neighbours": (lambda x: x[1:] * x[:-1], ROW),
    "differences": (jnp.diff, ROW),
    "the first as a result": (lambda x: x[:400], ROW),
    "the last as a result": (lambda x: x[400:], ROW),
    "the first of what is computed": (lambda x: (x * 2)[:999], ROW),
    "of what is a result, too": (lambda x: ((y := x * 2), y[:999], y[5:], y[:999]), ROW),
    "a part of a part": (lambda x: x[10:][20:50][3:] + 1, ROW),
    "a part of a part of what is computed": (lambda x: (x + 1)[10:][20:50] - 1, ROW),
    "an element": (lambda x: x[17] * x, ROW),
    "elements": (lambda x: x[1] * x[2] + x[-1], ROW),
    "halves": (lambda x: jnp.maximum(x[:500], x[500:]), ROW),
    "halves that are joined": (lambda x: jnp.concatenate([x[500:], x[:500]]), ROW),
    "every other": (lambda x: x[::2] - x[1::2], ROW),
    "every other of two": (lambda x: x[4:6:2] * 3, ROW),
    "rows": (lambda x: x[2:5] + 1, X),
    "a row": (lambda x: x[3] + x, X),
    "a part of a row": (lambda x: x[3, 1:4] * 2, X),
    "columns": (lambda x: x[:, 1:3] * 2, X),
    "a column": (lambda x: x[:, 4] * 2, X),
    "a part of one of three": (lambda x: x[1, 2:4] - x[2, :2], BLOCK),
    "an element of three": (lambda x: x[2, 3, 4] * x[0, 0, 0], BLOCK),
    "parts of parts of three": (lambda x: x[1:][0][1:3][1] + 1, BLOCK),
    "a part in another shape": (lambda x: x[2:6].reshape(5, 4) * 2, X),
    "a part of what has another shape": (lambda x: x.reshape(5, 7)[1:3] * 2, X),
    "a part that is repeated": (lambda x: x[1:2] * x, X),
    "a part of what is repeated": (lambda x: jnp.broadcast_to(x[0], (4, 5))[1:3] + 1, X),
    "a part of a constant": (lambda x: x[:4] + CONSTANT[2:6] * jnp.asarray(CONSTANT)[5:9], ROW),
    "nothing": (lambda x: x[3:3] + 1, ROW),
    "all of it": (lambda x: x[0:1000] + x[:], ROW),
    "truths": (lambda x: (x > 0)[1:] & (x < 1)[:-1], ROW),
    "integers": (lambda x: x[1:] // 3 - x[:-1], np.arange(-50, 50, dtype=np.int32)),
    "a sum": (lambda x: x[3:].sum() + x[:5].max(), np.arange(64, dtype=np.float32)),
    "sorted": (lambda x: jnp.sort(x[7:507])[100:200], ROW),
    "taken": (lambda x: x[5:][jnp.arange(9)[3:] * 2], ROW),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    function, values = PARTS[name]
    check(function, values)


def test_gradients_of_parts() -> None:
    gradient = dt.grad(lambda x: jnp.sum(x[1:] * x[:-1] * 2))
    x = np.arange(9, dtype=np.float32)
    np.testing.assert_array_equal(
        gradient(jnp.asarray(x)), 2 * (np.append(x[1:], 0) + np.append(0, x[:-1]))
    )


def test_keys_and_parts() -> None:
    def words(keys: Any) -> Any:
        return dt.random.bits(keys[2], (5,)) ^ dt.random.bits(keys[1:][0], (5,))

    keys = dt.random.split(dt.random.key(3), 4)
    expected = dt.random.bits(keys[2], (5,)) ^ dt.random.bits(keys[1], (5,))
    for _ in range(3):
        np.testing.assert_array_equal(dt.jit(words)(keys), expected)


# ------------------------------------------------------------------------------------ positions


def positions(flags: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    out = np.full((len(flags), size), flags.shape[1], np.int32)
    for row, where in zip(out, map(np.flatnonzero, flags), strict=True):
        row[: len(where)] = where[:size]
    return out


@pytest.mark.parametrize("count", [1, 7, 8, 9, 63, 64, 65, 200, 1000])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99, 1])
def test_positions(count: int, share: float) -> None:
    flags = np.random.default_rng(count).random((3, count)) < share
    for size in sorted({1, count // 2 or 1, count - 1 or 1, count, count + 5}):
        for values in (flags, flags[:1]):
            find = dt.jit(lambda x: true_positions(x, size))  # noqa: B023 (called here alone)
            for _ in range(2):
                found = find(jnp.asarray(values))
                assert held_value(found) is not None, "a program was run"
                np.testing.assert_array_equal(found, positions(values, size))


SETS: dict[str, np.ndarray[Any, Any]] = {
    "all values": np.random.default_rng(0).permutation(1000).astype(np.float32),
    "few values": np.random.default_rng(1).integers(0, 7, 500).astype(np.int32),
    "special": np.float32([np.nan, 0, -0.0, 1, np.nan, -np.inf, np.inf, 1]),
    "one": np.float32([3]),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("fill", [None, -1])
def test_sets(name: str, fill: Any) -> None:
    values = SETS[name]
    size = len(values)
    expected = np.unique(values)
    filled = np.full(size, expected[0] if fill is None else fill, values.dtype)
    filled[: len(expected)] = expected
    unique = dt.jit(lambda x: jnp.unique(x, size=size, fill_value=fill))
    for _ in range(3):
        np.testing.assert_array_equal(unique(jnp.asarray(values)), filled)


def test_a_small_set_needs_no_program() -> None:
    check(lambda x: jnp.unique(x, size=1000), SETS["all values"])


@pytest.mark.parametrize("fill", [None, 5, 8, -1])
def test_nonzero_with_fills(fill: Any) -> None:
    x = np.float32([0, 1, 0, 0, 2, 3, 0, 0])
    for size in (2, 3, 8):
        found = jnp.flatnonzero(x, size=size, fill_value=fill)
        expected = np.full(size, 0 if fill is None else fill)
        expected[:3] = np.flatnonzero(x)[:size]
        np.testing.assert_array_equal(found, expected)
