"""Sizes around 2**31, where positions leave int32: told from shapes alone, so without the memory.

What shows a position or a count that its dtype may not hold is refused; what only uses positions
works.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

FITS = 2**31 - 1
LARGE = 2**31 + 10

#: Functions of a vector of int8 whose results are positions or counts in the default dtype.
SHOWN: dict[str, Callable[[Any], Any]] = {
    "argmax": jnp.argmax,
    "argmin of rows": lambda x: jnp.argmin(x[None], axis=1),
    "argmax of a batch": lambda x: dt.vmap(jnp.argmax)(x[None]),
    "nanargmax": lambda x: jnp.nanargmax(x.astype("float16")),
    "argsort": jnp.argsort,
    "argwhere": lambda x: jnp.argwhere(x, size=3),
    "nonzero": lambda x: jnp.nonzero(x, size=3),
    "flatnonzero": lambda x: jnp.flatnonzero(x, size=3),
    "where": lambda x: jnp.where(x, size=3),
    "arange": lambda x: jnp.arange(x.size),
    "indices": lambda x: jnp.indices(x.shape, sparse=True),
    "permutation": lambda x: dt.random.permutation(dt.random.key(0), x.size),
    "one_hot": lambda x: dt.nn.one_hot(jnp.int32(3), x.size, dtype="int8").argmax(),
}
#: Those whose results are counts, which may be as large as the size.
COUNTS: dict[str, Callable[[Any], Any]] = {
    "count_nonzero": jnp.count_nonzero,
    "sum of booleans": lambda x: jnp.sum(x > 0),
    "sum of booleans that are masked": lambda x: jnp.sum(x > 0, where=x < 3),
    "nansum of booleans": lambda x: jnp.nansum(x > 0),
    "sums of rows": lambda x: (x > 0)[None].sum(1),
    "cumsum of booleans": lambda x: jnp.cumsum(x > 0),
    "cumulative_sum of booleans": lambda x: jnp.cumulative_sum(x > 0),
    "unique with positions": lambda x: jnp.unique(x, size=3, return_index=True),
    "unique_inverse": lambda x: jnp.unique_inverse(x, size=3),
    "unique_counts": lambda x: jnp.unique_counts(x, size=3),
    "bincount": lambda x: jnp.bincount(x, length=4),
    "ravel_multi_index": lambda x: jnp.ravel_multi_index((jnp.array([1]),), x.shape, mode="clip"),
}
#: Those whose dtype does not change with 64-bit types.
FIXED: dict[str, Callable[[Any], Any]] = {
    "lax.argmax": lambda x: lax.argmax(x, 0, np.int32),
    "lax.iota": lambda x: lax.iota(np.int32, x.size),
    "lax.broadcasted_iota": lambda x: lax.broadcasted_iota(np.int32, (2, x.size), 1),
    "lax.top_k": lambda x: lax.top_k(x, 3),
    "lax.approx_max_k": lambda x: lax.approx_max_k(x.astype("float16"), 3),
}
#: Those that only use positions.
USED: dict[str, Callable[[Any], Any]] = {
    "nonzero of a matrix": lambda x: jnp.nonzero(jnp.ones((2, x.size // 2), "int8"), size=3),
    "compress": lambda x: jnp.compress(x, x, size=3),
    "extract": lambda x: jnp.extract(x, x, size=3),
    "take": lambda x: jnp.take(x, jnp.array([0, -1])),
    "take_along_axis": lambda x: jnp.take_along_axis(x, jnp.array([1, 2]), 0),
    "an index": lambda x: x[-1],
    "an array as index": lambda x: x[jnp.array([-1, 3])],
    "a step": lambda x: x[::-3],
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (x.size - 3,), (3,)),
    "dynamic_index_in_dim": lambda x: lax.dynamic_index_in_dim(x, x.size - 1),
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:3], (x.size - 3,)),
    "set": lambda x: x.at[-1].set(1),
    "set of several": lambda x: x.at[jnp.array([-1, 4])].set(1),
    "insert": lambda x: jnp.insert(x, 3, 1),
    "insert several": lambda x: jnp.insert(x, jnp.array([3, -1]), 1),
    "delete": lambda x: jnp.delete(x, 3),
    "delete what is traced": lambda x: dt.jit(lambda i: jnp.delete(x, i))(3),
    "put": lambda x: jnp.put(x, jnp.array([3]), 1, inplace=False),
    "put_along_axis": lambda x: jnp.put_along_axis(x, jnp.array([3]), 1, 0, inplace=False),
    "roll": lambda x: jnp.roll(x, 3),
    "flip": jnp.flip,
    "sort": jnp.sort,
    "put_along_axis of two": lambda x: jnp.put_along_axis(
        x[:, None], jnp.array([[0, 0]]), 1, 1, inplace=False
    ),
    "unique": lambda x: jnp.unique(x, size=3),
    "union1d": lambda x: jnp.union1d(x, x[:3], size=3),
    "intersect1d": lambda x: jnp.intersect1d(x, x[:3], size=3),
    "setdiff1d": lambda x: jnp.setdiff1d(x, x[:3], size=3),
    "setxor1d": lambda x: jnp.setxor1d(x, x[:3], size=3),
    "searchsorted": lambda x: jnp.searchsorted(x, jnp.int8(3)),
    "digitize": lambda x: jnp.digitize(jnp.int8(3), x),
    "isin": lambda x: jnp.isin(jnp.int8(3), x),
    "interp": lambda x: jnp.interp(jnp.float32(1), x.astype("float16"), x.astype("float16")),
    "median": jnp.median,
    "partition": lambda x: jnp.partition(x, 3),
    "linspace": lambda x: jnp.linspace(0, 1, x.size),
    "arange of floats": lambda x: jnp.arange(x.size, dtype="float32"),
    "fftfreq": lambda x: jnp.fft.fftfreq(x.size),
    "eye": lambda x: jnp.eye(1, x.size, x.size - 2, dtype="int8"),
    "tri": lambda x: jnp.tri(1, x.size, dtype="int8"),
    "diagonal": lambda x: jnp.diagonal(x[None], x.size - 2),
    "triu": lambda x: jnp.triu(x[None]),
    "unravel_index": lambda x: jnp.unravel_index(jnp.int32(5), x.shape),
    "repeat": lambda x: jnp.repeat(x, 2),
    "choice": lambda x: dt.random.choice(dt.random.key(0), x[None], (3,)),
    "shuffled": lambda x: dt.random.permutation(dt.random.key(0), x),
    "scan": lambda x: lax.scan(lambda c, e: (c, None), 0, x)[0],
}


def shapes(function: Callable[[Any], Any], size: int, x64: bool) -> list[Any]:
    with dt.enable_x64(x64):
        return dt.tree.leaves(dt.eval_shape(function, dt.ShapeDtypeStruct((size,), "int8")))


@pytest.mark.parametrize("name", [*SHOWN, *COUNTS])
def test_positions_and_counts_that_results_cannot_hold_are_refused(name: str) -> None:
    function = {**SHOWN, **COUNTS}[name]
    narrow = shapes(function, FITS, False)
    wide = shapes(function, LARGE, True)
    assert any(each.dtype == np.int32 for each in narrow)
    assert any(each.dtype == np.int64 for each in wide)
    with pytest.raises(OverflowError, match=r'dovetail\.config\.update\("enable_x64", True\)'):
        shapes(function, LARGE, False)
    if name in COUNTS:
        with pytest.raises(OverflowError):
            shapes(function, FITS + 1, False)
    else:
        shapes(function, FITS + 1, False)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", FIXED)
def test_positions_of_a_fixed_dtype_are_refused(name: str, x64: bool) -> None:
    shapes(FIXED[name], FITS + 1, x64)
    with pytest.raises(OverflowError, match="int32 does not hold"):
        shapes(FIXED[name], LARGE, x64)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", USED)
def test_positions_that_are_only_used_may_be_large(name: str, x64: bool) -> None:
    small, large = (shapes(USED[name], size, x64) for size in (FITS, LARGE))
    # These return positions, which become wide.
    widens = name in ("searchsorted", "digitize", "unravel_index")
    assert [a.ndim for a in large] == [a.ndim for a in small]
    assert [np.int64 if widens else a.dtype for a in small] == [a.dtype for a in large]


@pytest.mark.parametrize("dtype", ["int4", "int8", "uint8", "int16"])
def test_narrow_dtypes_count_as_far_as_they_go(dtype: str) -> None:
    last = int(jnp.iinfo(dtype).max)
    assert int(lax.iota(dtype, last + 1)[-1]) == last
    assert int(lax.argmax(jnp.arange(last + 1), 0, dtype)) == last
    for function in (
        lambda: lax.iota(dtype, last + 2),
        lambda: lax.argmax(jnp.arange(last + 2), 0, dtype),
    ):
        with pytest.raises(OverflowError, match="ask for a wider dtype"):
            function()


@pytest.mark.parametrize("reverse", [False, True])
def test_loops_count_as_far_as_they_go(reverse: bool) -> None:
    def run(x: Any) -> Any:
        return lax.scan(lambda c, e: (c + e, None), np.int8(0), x, reverse=reverse)[0]

    for size, dtype in ((FITS, "i32"), (LARGE, "i64")):
        text = dt.jit(run).lower(dt.ShapeDtypeStruct((size,), "int8")).as_text()
        assert f"dense<{size}> : tensor<{dtype}>" in text
    text = dt.jit(lambda: lax.fori_loop(-1, FITS, lambda i, c: c + 1, 0)).lower().as_text()
    assert f"dense<{FITS + 1}> : tensor<i64>" in text
