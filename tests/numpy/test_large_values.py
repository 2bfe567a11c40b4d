"""Positions, counts and sums at the end of a long vector: `nox -s large` makes it of 2**31 + 10
elements, the suite of a thousand.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

SIZE = int(os.environ.get("DOVETAIL_TESTING_SIZE", "1000"))
LAST = SIZE - 3
"""The position of the largest element."""
SHARE = 8
"""Elements wider than a byte are fewer by this, so that they need no more memory."""
PART = SIZE // SHARE


@pytest.fixture(scope="module")
def x() -> Any:
    """Zeros of int8 but for 3 at 7 and 5 at `LAST`."""
    elements = np.zeros(SIZE, "int8")
    elements[7], elements[LAST] = 3, 5
    return jnp.asarray(elements)


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with dt.enable_x64(True):
        yield


#: What is shown of the vector, and what it has to be.
VALUES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "argmax": (jnp.argmax, LAST),
    "argmin": (lambda x: jnp.argmin(-x), LAST),
    "argmax of a row": (lambda x: jnp.argmax(x[None], axis=1), [LAST]),
    "lax.argmax": (lambda x: lax.argmax(x, 0, np.int64), LAST),
    "count_nonzero": (lambda x: jnp.count_nonzero(x == 0), SIZE - 2),
    "sum of booleans": (lambda x: (x < 3).sum(), SIZE - 2),
    "sum": (lambda x: jnp.sum(x + jnp.int8(1)), SIZE + 8),
    "sum in float32": (lambda x: jnp.sum(x == 0, dtype="float32"), np.float32(SIZE - 2)),
    "sum of rows in float32": (
        lambda x: jnp.sum((x == 0).reshape(2, -1), axis=1, dtype="float32"),
        [np.float32(SIZE // 2 - 1)] * 2,
    ),
    "mean": (lambda x: jnp.mean(x == 0, dtype="float32"), np.float32(1 - 2 / SIZE)),
    "prod": (lambda x: jnp.prod(jnp.maximum(x, 1)), 15),
    "max": (jnp.max, 5),
    "any": (lambda x: jnp.any(x == 5), True),
    "where": (lambda x: jnp.where(x > 3, x, -1)[jnp.array([7, LAST])], [-1, 5]),
    "an index": (lambda x: x[-3], 5),
    "an array as index": (lambda x: x[jnp.array([-3, LAST, 7])], [5, 5, 3]),
    "take": (lambda x: jnp.take(x, jnp.array([LAST, -3])), [5, 5]),
    "take_along_axis": (lambda x: jnp.take_along_axis(x, jnp.array([LAST]), 0), [5]),
    "a slice": (lambda x: x[-4:], [0, 5, 0, 0]),
    "a step": (lambda x: x[::-1][1:4], [0, 5, 0]),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (LAST - 1,), (3,)), [0, 5, 0]),
    "dynamic_index_in_dim": (
        lambda x: dt.jit(lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False))(x, LAST),
        5,
    ),
    "dynamic_update_slice": (
        lambda x: lax.dynamic_update_slice(x, jnp.ones(2, "int8"), (LAST,))[-4:],
        [0, 1, 1, 0],
    ),
    "set": (lambda x: x.at[-2].set(9)[-4:], [0, 5, 9, 0]),
    "add to several": (lambda x: x.at[jnp.array([-2, LAST])].add(1)[-4:], [0, 6, 1, 0]),
    "insert": (lambda x: jnp.insert(x, 3, 1)[jnp.array([3, 8, LAST + 1])], [1, 3, 5]),
    "delete": (lambda x: jnp.delete(x, 3)[jnp.array([6, LAST - 1])], [3, 5]),
    "roll": (lambda x: jnp.roll(x, 5)[jnp.array([2, 12])], [5, 3]),
    "flip": (lambda x: jnp.flip(x)[jnp.array([2, SIZE - 8])], [5, 3]),
    "pad": (lambda x: jnp.pad(x, (1, 2))[-6:], [0, 5, 0, 0, 0, 0]),
    "concatenate": (lambda x: jnp.concatenate([x, x[6:9]])[jnp.array([LAST, SIZE + 1])], [5, 3]),
    "repeat": (lambda x: jnp.repeat(x[-PART:], SHARE)[-25:-15], [0] + [5] * 8 + [0]),
    "tile": (lambda x: jnp.tile(x[-PART:], SHARE)[-4:], [0, 5, 0, 0]),
    "reshape": (lambda x: x.reshape(2, -1)[1, -3], 5),
    "transpose": (lambda x: x.reshape(2, -1).T[-3], [0, 5]),
    "searchsorted": (lambda x: jnp.searchsorted(lax.cummax(x), jnp.int8(4)), LAST),
    "unravel_index": (lambda x: jnp.unravel_index(jnp.int64(LAST), x.shape)[0], LAST),
    "ravel_multi_index": (
        lambda x: jnp.ravel_multi_index((jnp.array([1]), jnp.array([4])), (2, SIZE), mode="clip"),
        [SIZE + 4],
    ),
    "eye": (lambda x: jnp.eye(1, SIZE, LAST, dtype="int8")[0, -4:], [0, 1, 0, 0]),
    "diagonal": (lambda x: jnp.diagonal(x[None], LAST), [5]),
    "triu": (lambda x: jnp.triu(x[None], LAST)[0, jnp.array([7, LAST])], [0, 5]),
    "turns of a loop": (lambda x: lax.fori_loop(0, SIZE, lambda i, c: c + 1, np.int64(0)), SIZE),
    "a scan of all": (lambda x: lax.scan(lambda c, e: (c + e, None), np.int8(0), x)[0], 8),
    "a scan of halves": (
        lambda x: lax.scan(lambda c, row: (c + row[-3], None), 0, x.reshape(2, -1))[0],
        5,
    ),
    "sums of halves": (lambda x: jnp.add.reduceat(x, jnp.array([0, SIZE // 2])), [3, 5]),
    "linspace": (lambda x: jnp.linspace(0, 1, SIZE, dtype="float16")[jnp.array([0, -1])], [0, 1]),
    "iota": (lambda x: lax.iota("int64", SIZE)[-2:] - SIZE, [-2, -1]),
    "arange": (lambda x: jnp.arange(SIZE)[-1], SIZE - 1),
    "random bits": (lambda x: dt.random.bits(dt.random.key(0), (SIZE,), "uint8")[-1] >= 0, True),
    "a NumPy array": (lambda x: np.asarray(x)[LAST], 5),
}

#: The same of what needs 24 bytes of temporaries for each element.
FROM_COUNTS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "nonzero": (lambda x: jnp.nonzero(x, size=3)[0], [7, LAST, 0]),
    "flatnonzero": (lambda x: jnp.flatnonzero(x, size=2), [7, LAST]),
    "argwhere of two rows": (
        lambda x: jnp.argwhere(x.reshape(2, -1), size=2),
        [[0, 7], [1, SIZE // 2 - 3]],
    ),
    "compress": (lambda x: jnp.compress(x > 0, x, size=2), [3, 5]),
    "bincount": (lambda x: jnp.bincount(x, length=6), [SIZE - 2, 0, 0, 1, 0, 1]),
}


def memory() -> int:
    """The bytes of memory that can be had now."""
    text = Path("/proc/meminfo").read_text("ascii") if sys.platform == "linux" else ""
    found = re.search(r"MemAvailable: *(\d+) kB", text)
    return int(found.group(1)) * 1024 if found else 0


@pytest.mark.parametrize("name", FROM_COUNTS)
def test_what_is_made_of_counts(name: str, x: Any) -> None:
    if SIZE > 2**30 and memory() < 26 * SIZE:
        pytest.skip(f"needs {26 * SIZE // 2**30} GiB of memory")
    function, expected = FROM_COUNTS[name]
    found = np.asarray(dt.jit(function)(x))
    np.testing.assert_array_equal(found, np.asarray(expected, found.dtype), strict=True)


@pytest.mark.parametrize("name", VALUES)
def test_values_at_the_end(name: str, x: Any) -> None:
    function, expected = VALUES[name]
    found = np.asarray(dt.jit(function)(x) if name != "a NumPy array" else function(x))
    np.testing.assert_array_equal(found, np.asarray(expected, found.dtype), strict=True)
