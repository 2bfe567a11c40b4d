"""Sorting by the native kernel: bit for bit what a stable sort of NumPy's gives."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail_cpu import kernel_library, kernels
from dovetail_cpu.kernel_library import X86_LEVELS, library
from dovetail_cpu.plugin import dovetail_backend_info

pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler"),
]

NDArray = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

KEYS = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
)
SIZES = (1, 2, 3, 31, 33, 65, 100, 129, 511, 513, 1025, 4097, 20_000)
"""Below and above what is sorted in registers, by counting, in parts."""


def dtype_of(name: str) -> np.dtype[np.generic]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def patterns(name: str, size: int, generator: np.random.Generator) -> list[NDArray]:
    """Arrays that are hard to sort in one way or another."""
    dtype = dtype_of(name)
    place = np.arange(size)
    bits = generator.integers(0, 256, size * dtype.itemsize, np.uint8).view(dtype)
    if name == "bool":
        return [generator.integers(0, 2, size).astype(bool), np.ones(size, bool), place % 3 == 0]
    found = [
        bits,
        (place % 7).astype(dtype),
        np.zeros(size, dtype),
        place.astype(dtype),
        place[::-1].astype(dtype),
        np.minimum(place, place[::-1]).astype(dtype),
        (place % 37 - 18).astype(dtype),
    ]
    if dtype.itemsize == 8:
        # Runs of keys whose upper halves are equal, and runs within them.
        low = generator.integers(0, 1 << 20, size)
        found.append(((place % 3) << 50 | low).astype(np.int64).view(dtype))
        found.append(((place % 2) << 62 | (low % 5) << 20 | low % 11).astype(np.int64).view(dtype))
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        found.append(generator.choice(np.array([limits.min, limits.max, 0, 1], dtype), size))
    else:
        unsigned = np.dtype(f"u{dtype.itemsize}")
        sign = 1 << (8 * dtype.itemsize - 1)
        nans = np.array([np.nan, -np.nan], dtype).view(unsigned)
        special = np.array([0, 1, 3, *nans, nans[0] + 1], unsigned)
        found.append(generator.choice(np.concatenate([special, special ^ sign]), size).view(dtype))
    return found


def stable_order(keys: list[NDArray], axis: int = -1) -> NDArray:
    """Positions in the order of a stable sort, the first key being the most significant one."""
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        wide = [k.astype(np.float64) if k.dtype.kind not in "biu" else k for k in keys]
    return np.lexsort(wide[::-1], axis=axis)


def assert_same_bits(found: object, expected: NDArray) -> None:
    found = np.asarray(found)
    assert found.dtype == expected.dtype
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("name", KEYS)
def test_sorts_as_a_stable_sort(name: str) -> None:
    generator = np.random.default_rng(0)
    with dt.enable_x64(True):
        for size in SIZES:
            for x in patterns(name, size, generator):
                order = stable_order([x])
                assert_same_bits(lax.sort(x), x[order])
                places = np.arange(size, dtype=np.int32)
                keys, values = lax.sort((x, places), num_keys=1)
                assert_same_bits(values, places[order])
                assert_same_bits(keys, x[order])


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "float16", "int32", "float64", "complex64", "complex128"]
)
def test_moves_values_of_any_width(name: str) -> None:
    generator = np.random.default_rng(1)
    with dt.enable_x64(True):
        value = generator.integers(0, 2, (5, 300)).astype(dtype_of(name))
        for key_name in ("int8", "float32", "int64"):
            key = generator.integers(-9, 9, (5, 300)).astype(key_name)
            for axis in (0, 1):
                order = stable_order([key], axis)
                found = lax.sort((key, value, key), dimension=axis, num_keys=1)
                expected = [np.take_along_axis(x, order, axis) for x in (key, value, key)]
                for one, other in zip(found, expected, strict=True):
                    assert_same_bits(one, other)


@pytest.mark.parametrize("count", [2, 3])
def test_sorts_by_several_keys(count: int) -> None:
    generator = np.random.default_rng(2)
    names = ("int8", "float32", "int64", "bfloat16")
    with dt.enable_x64(True):
        for first in range(len(names)):
            keys = [
                generator.integers(-3, 3, (4, 500)).astype(dtype_of(names[(first + i) % 4]))
                for i in range(count)
            ]
            order = stable_order(keys)
            found = lax.sort(keys, num_keys=count)
            for one, key in zip(found, keys, strict=True):
                assert_same_bits(one, np.take_along_axis(key, order, -1))


@pytest.mark.parametrize("name", KEYS)
def test_sorts_short_rows(name: str) -> None:
    generator = np.random.default_rng(8)
    with dt.enable_x64(True):
        for size in (1, 2, 3, 4, 5, 7, 8, 11, 15, 16, 17):
            for count in (1, 2, 63, 65, 700):
                for x in patterns(name, count * size, generator):
                    rows = x.reshape(count, size)
                    expected = np.take_along_axis(rows, stable_order([rows]), -1)
                    assert_same_bits(jnp.sort(rows), expected)


@pytest.mark.parametrize("size", [16_383, 16_384, 70_001, 600_000])
def test_sorts_by_buckets_whatever_the_range(size: int) -> None:
    generator = np.random.default_rng(size)
    even = generator.integers(0, 2**32, size, np.uint64)
    one = generator.integers(0, size, size // 3)
    crowded = even.copy()
    crowded[one] = crowded[0] + one % 5  # more than the places of a bucket
    hidden = even.copy()
    hidden[np.arange(size) % 64 > 40] = 12_345  # where no sample is taken
    uneven = (even + even[::-1]) >> np.uint64(1)  # twice as many in the middle
    keys = [
        crowded,
        hidden,
        uneven,
        *(even >> np.uint64(bits) for bits in (0, 1, 8, 15, 20, 24, 31)),
    ]
    for key in keys:
        for x in (key.astype(np.uint32), (key.astype(np.int64) - 2**31).astype(np.int32)):
            assert_same_bits(jnp.argsort(x), np.argsort(x, kind="stable").astype(np.int32))
            values = generator.standard_normal(size).astype(np.float32)
            order = np.argsort(x, kind="stable")
            found = lax.sort_key_val(x, values)
            assert_same_bits(found[0], x[order])
            assert_same_bits(found[1], values[order])


def test_sorts_more_pairs_than_buckets_have_room_for() -> None:
    generator = np.random.default_rng(4)
    for size in (3_300_000, 3_700_000):  # one more than fits, or less
        keys = generator.integers(0, 2**32, size, np.uint32)
        values = generator.integers(0, 2**32, size, np.uint32)
        found = lax.sort_key_val(keys, values)
        order = np.argsort(keys, kind="stable")
        assert_same_bits(found[0], keys[order])
        assert_same_bits(found[1], values[order])


@pytest.mark.parametrize("shape", [(3, 70_000), (1, 200_000), (200_000,), (30_000, 3), (0, 4)])
def test_sorts_on_several_threads(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(3)
    for x in (
        generator.standard_normal(shape).astype(np.float32),
        generator.integers(0, 50, shape).astype(np.int32),
    ):
        assert_same_bits(jnp.sort(x, axis=-1), np.sort(x, axis=-1))
        order = np.argsort(x, axis=-1, kind="stable").astype(np.int32)
        assert_same_bits(jnp.argsort(x, axis=-1), order)


def test_gives_what_other_lowerings_give() -> None:
    x = np.random.default_rng(4).integers(-5, 5, (6, 200)).astype(np.float32)

    def program(x: dt.Array) -> tuple[dt.Array, ...]:
        loss = dt.grad(lambda x: (jnp.sort(x, axis=1) * jnp.arange(200.0)).sum())
        return jnp.sort(x), jnp.argsort(x, axis=0), dt.vmap(jnp.sort, 1)(x), loss(x)

    with dt.cpu_kernels(True):
        native = dt.jit(program)
        text = native.lower(x).as_text()
        found = native(x)
    with dt.cpu_kernels(False):
        other = dt.jit(program)
        assert "dovetail_sort" in text
        assert "dovetail_sort" not in other.lower(x).as_text()
        expected = other(x)
    for one, two in zip(found, expected, strict=True):
        assert_same_bits(one, np.asarray(two))


PROGRAM = """
import sys
sys.path[:0] = {folders!r}
from dovetail_cpu import kernel_library
features = [needed for name, needed in kernel_library.X86_LEVELS if name in {levels!r}]
kernel_library.cpu_features = lambda: set().union(*features)
assert kernel_library.library().stem == {levels!r}[0], kernel_library.library()
import pytest
words = ["-q", "-n0", "-p", "no:cacheprovider", "-k", "stable or several"]
raise SystemExit(pytest.main([{file!r}, *words]))
"""


NAMES = [name for name, _ in X86_LEVELS]


@pytest.mark.parametrize("levels", [NAMES[i:] for i in range(1, len(NAMES))], ids=lambda x: x[0])
def test_libraries_for_older_processors(levels: list[str]) -> None:
    file = library()
    if file is None or file.stem in levels or not file.with_stem(levels[0]).exists():
        pytest.skip("there is no library beside the one in use; DOVETAIL_KERNELS_FOR chooses them")
    source = PROGRAM.format(folders=sys.path, levels=levels, file=__file__)
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_doctor_tells_which_kernels_there_are() -> None:
    file = library()
    assert file is not None
    assert dovetail_backend_info().described().endswith(f"native kernels for {file.stem}")


def test_a_program_needs_the_kernels_that_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_loaded", None)
    monkeypatch.setattr(kernel_library, "library", lambda: None)
    with pytest.raises(RuntimeError, match="native kernels of dovetail-cpu, which are not install"):
        kernels.prepare()
