"""Arrays in random order by one kernel: the order of sorts by random words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail_cpu.kernel_library import library

pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler"),
]

SHUFFLE = "dovetail_shuffle"
SORT = "dovetail_sort"
#: Sorted at once, in few and many buckets, on several threads, and in three rounds.
SIZES = (1, 2, 3, 100, 1625, 1626, 4095, 4096, 5000, 16385, 30_011, 300_001, 3_700_001)
DTYPES = (
    *("bool", "int8", "uint16", "int32", "uint32", "int64", "float16", "bfloat16", "float32"),
    *("float64", "complex64", "complex128"),
)


def same(function: Callable[..., Any], *args: Any) -> str:
    """Check that a function's result is that of no kernels; returns its program."""
    compiled = dt.jit(function)
    found = compiled(*args)
    with dt.cpu_kernels(False):
        expected = dt.jit(lambda *args: function(*args))(*args)
    for x, y in zip(dt.tree.leaves(found), dt.tree.leaves(expected), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    return compiled.lower(*args).as_text()


def test_numbers() -> None:
    for size in SIZES:
        for seed in range(2 if size < 100_000 else 1):
            text = same(lambda key, size=size: random.permutation(key, size), random.key(seed))
            assert (SHUFFLE in text) == (size > 1)
            assert SORT not in text


@pytest.mark.parametrize("name", DTYPES)
def test_arrays(name: str) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    generator = np.random.default_rng(0)
    with dt.enable_x64(True):
        for size in (2, 1000, 5000, 200_001):
            x = generator.integers(0, 100, size).astype(dtype)
            text = same(random.permutation, random.key(size), x)
            assert SHUFFLE in text


def test_wide_numbers() -> None:
    with dt.enable_x64(True):
        for size in (2000, 100_000):
            text = same(lambda key, size=size: random.permutation(key, size), random.key(3))
            assert SHUFFLE in text
            assert text.count("numbers = 1") == 2


def test_bits_of_values() -> None:
    x = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 0, 1, 0x7F800000] * 900, np.uint32)
    floats = np.asarray(random.permutation(random.key(7), x.view(np.float32)))
    bits = np.asarray(random.permutation(random.key(7), x))
    np.testing.assert_array_equal(floats.view(np.uint32), bits)


def test_other_sorts_by_words() -> None:
    def sorted_by(words: Any, x: Any) -> Any:
        return lax.sort((words, x), num_keys=1)

    def with_words(key: Any) -> Any:
        return sorted_by(random.bits(key, (1000,)), jnp.arange(1000))

    def with_first_order(key: Any) -> Any:
        words = random.bits(key, (1000,)), random.bits(random.fold_in(key, 1), (1000,))
        first = sorted_by(words[0], jnp.arange(1000))[1]
        return first, sorted_by(words[1], first)[1]

    def of_several_keys(key: Any) -> Any:
        words = dt.vmap(random.bits)(random.split(key, 1000))
        return sorted_by(words, jnp.arange(1000))[1]

    def of_columns(key: Any) -> Any:
        return random.permutation(key, np.arange(600).reshape(200, 3), independent=True)

    key = random.key(5)
    for function, shuffles in (
        (with_words, False),
        (with_first_order, True),
        (of_several_keys, False),
        (of_columns, False),
    ):
        assert (SHUFFLE in same(function, key)) == shuffles, function


def test_many_words_are_drawn_by_a_kernel_to_sort_by() -> None:
    def program(size: int) -> str:
        return dt.jit(lambda key: random.permutation(key, size)).lower(random.key(0)).as_text()

    assert SHUFFLE in program(20_000_000)


def test_in_batches_and_loops() -> None:
    keys = random.split(random.key(1), 3)
    assert SHUFFLE not in same(dt.vmap(lambda key: random.permutation(key, 2000)), keys)

    def repeated(key: Any) -> Any:
        def turn(i: Any, x: Any) -> Any:
            return random.permutation(random.fold_in(key, i), x)

        return lax.fori_loop(0, 3, turn, jnp.arange(2000))

    assert SHUFFLE not in same(repeated, keys[0])
