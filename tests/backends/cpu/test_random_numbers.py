"""Few random numbers, by kernels and by loops: the bits of the plain reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.base import native
from dovetail.extend.random import threefry2x32_p, threefry_prng_impl
from dovetail_cpu.kernel_library import library
from dovetail_cpu.lowerings.random import FEW, most_by_kernel

pytestmark = pytest.mark.tables

REFERENCE = threefry_prng_impl.reference
SIZES = (1, 2, 65, 130)
KEY = np.array([0x12345678, 0xFEDCBA98], np.uint32)


def kernels_in(text: str) -> int:
    return text.count("@dovetail_threefry")


@pytest.fixture(params=["kernel", "loop", "in a loop"])
def way(request: pytest.FixtureRequest) -> str:
    if request.param == "kernel" and library() is None:
        pytest.skip("no kernels were built: there is no C++ compiler")
    return str(request.param)


def computed(way, function, *args):
    """A function's result, by kernels, without them, or in a loop, which calls none."""

    def once(*args):
        return function(*args)

    def repeated(*args):
        aval = dt.eval_shape(function, *args)
        return lax.fori_loop(0, 2, lambda i, _: function(*args), jnp.zeros(aval.shape, aval.dtype))

    with dt.cpu_kernels(way != "loop"):
        compiled = dt.jit(repeated if way == "in a loop" else once)
        calls = kernels_in(compiled.lower(*args).as_text())
        assert bool(calls) == (way == "kernel")
        return np.asarray(compiled(*args))


def assert_same(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_bits(way: str, width: int) -> None:
    with dt.enable_x64(True):
        for size in SIZES:
            found = computed(
                way,
                lambda key, size=size: dt.random.bits(
                    dt.random.wrap_key_data(key), (size,), f"uint{width}"
                ),
                KEY,
            )
            assert_same(found, REFERENCE.random_bits(KEY, width, (size,)))


def test_bits_of_several_keys_and_dimensions(way: str) -> None:
    raw = np.arange(12, dtype=np.uint32).reshape(2, 3, 2) * np.uint32(0x9E3779B9)

    def draw(raw):
        each = dt.vmap(dt.vmap(lambda key: dt.random.bits(key, (4, 5))))
        return each(dt.random.wrap_key_data(raw))

    expected = [[REFERENCE.random_bits(key, 32, (4, 5)) for key in row] for row in raw]
    assert_same(computed(way, draw, raw), np.array(expected))


@pytest.mark.skipif(most_by_kernel() == FEW, reason="no kernel draws many numbers here")
@pytest.mark.parametrize(("keys", "size"), [(1, 2**17 + 37), (3, 40_001), (33_000, 3)])
def test_bits_on_several_threads(keys: int, size: int) -> None:
    raw = np.arange(2 * keys, dtype=np.uint32).reshape(keys, 2) * np.uint32(0x9E3779B9)

    def draw(raw):
        each = dt.vmap(lambda key: dt.random.bits(key, (size,)))
        return each(dt.random.wrap_key_data(raw))

    expected = [REFERENCE.random_bits(key, 32, (size,)) for key in raw[:: max(1, keys // 50)]]
    found = computed("kernel", draw, raw)[:: max(1, keys // 50)]
    assert_same(found, np.array(expected))


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (7, 10)])
def test_split(way: str, shape: tuple[int, ...]) -> None:
    def split(raw):
        return dt.random.key_data(dt.random.split(dt.random.wrap_key_data(raw), shape))

    assert_same(computed(way, split, KEY), REFERENCE.split(KEY, shape))


def test_fold_in(way: str) -> None:
    data = np.array([0, 1, 2**31, 2**32 - 1], np.uint32)

    def fold(raw, data):
        each = dt.vmap(dt.random.fold_in, (None, 0))
        return dt.random.key_data(each(dt.random.wrap_key_data(raw), data))

    expected = np.array([REFERENCE.fold_in(KEY, number) for number in data])
    assert_same(computed(way, fold, KEY, data), expected)


@pytest.mark.parametrize("keys", ["of one", "of each"])
def test_threefry_of_given_counters(keys: str) -> None:
    """Sizes on both sides of that up to which it is a loop."""
    generator = np.random.default_rng(0)
    for size in (3, 40, 60, 130):
        shape = (size,) if keys == "of each" else ()
        words = [
            generator.integers(0, 2**32, of, np.uint32) for of in (shape, shape, (size,), (size,))
        ]
        for found, expected in zip(
            dt.jit(threefry2x32_p.bind)(*words), threefry2x32_p.reference(*words), strict=True
        ):
            assert_same(np.asarray(found), expected)


@pytest.mark.skipif(library() is None, reason="no kernels were built")
def test_where_kernels_are_called() -> None:
    """Once in a run of the program, for few numbers of this generator, in today's order."""
    key = dt.random.key(0)

    def calls(function, *args):
        return kernels_in(dt.jit(function).lower(*args).as_text())

    def draw(key, size=8):
        return dt.random.bits(key, (size,))

    assert calls(draw, key) == 1
    assert calls(lambda key: lax.cond(key == key, draw, draw, key), key) == 2
    assert calls(lambda key: draw(key, most_by_kernel()), key) == 1
    assert calls(lambda key: draw(key, most_by_kernel() + 1), key) == 0
    assert calls(lambda key: draw(key, 0), key) == 0
    assert calls(lambda key: lax.map(lambda _: draw(key), jnp.arange(3)), key) == 0
    nested = dt.jit(draw)
    assert calls(lambda key: lax.map(lambda _: nested(key) + nested(key), jnp.arange(3)), key) == 0
    assert calls(draw, dt.random.key(0, impl="rbg")) == 0
    with dt.threefry_partitionable(False):
        assert calls(draw, key) == 0


@pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler")
@pytest.mark.skipif(native.calls is None, reason="calls need the C extension")
def test_the_first_random_numbers_of_a_process_need_no_program(run: Callable[..., str]) -> None:
    """Nor what lowers programs, which takes longer to load."""
    code = """
import sys
from dovetail import random
key = random.key(0)
assert random.key_data(random.wrap_key_data(random.PRNGKey(5))).tolist() == [0, 5]
print(random.normal(random.fold_in(random.split(key)[0], 1), (3,)))
assert "dovetail._core.lower.lowering" not in sys.modules
"""
    assert run(code, DOVETAIL_DIRECT_CALLS="all").startswith("[")
