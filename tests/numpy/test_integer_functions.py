"""Divisors, multiples and packed bits against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

RNG = np.random.default_rng(8)


def same(actual: Any, expected: Any, dtype: Any) -> None:
    assert actual.dtype == dtype
    assert actual.shape == np.shape(expected)
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


def integers(dtype: str) -> np.ndarray[Any, Any]:
    """Numbers of every size, products, powers of two and the extreme ones."""
    limits = np.iinfo(dtype)
    numbers = {0, 1, 2, limits.min, limits.max, limits.min // 2, limits.max - 1, 60, 84}
    for size in range(2, limits.bits):
        numbers |= {1 << (size - 1), int(RNG.integers(1 << (size - 1), 1 << size, dtype=np.uint64))}
    numbers |= {-n for n in numbers}
    return np.array(sorted(n for n in numbers if limits.min <= n <= limits.max), dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_gcd_and_lcm(dtype: str) -> None:
    with dt.enable_x64(dtype.endswith("64")):
        x, y = np.meshgrid(integers(dtype), integers(dtype))
        with np.errstate(all="ignore"):
            same(jnp.gcd(x, y), np.gcd(x, y), dtype)
            same(jnp.lcm(x, y), np.lcm(x, y), dtype)


def test_divisors_of_other_operands() -> None:
    same(jnp.gcd(12, 8), 4, "int32")
    assert jnp.gcd(12, 8).weak_type
    same(jnp.lcm(np.array([4, -6], np.int16), 10), [20, 30], "int16")
    same(
        jnp.gcd(np.array([200], np.uint8), np.array([[-100], [60]], np.int8)),
        [[100], [20]],
        "int16",
    )
    same(jnp.gcd(np.zeros((0, 3), int), np.array([1, 2, 3])), np.zeros((0, 3)), "int32")
    pair = np.array([2**20 * 3, 2**18 * 5]), np.array([2**22, 25])
    same(
        dt.vmap(jnp.gcd)(*pair),
        [math.gcd(int(a), int(b)) for a, b in zip(*pair, strict=True)],
        "int32",
    )


@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_packed_bits(bitorder: Any) -> None:
    cases: list[tuple[tuple[int, ...], Any, Any]] = [
        ((2, 3), None, 7),
        ((3, 17), 0, 20),
        ((3, 17), -1, -2),
        ((2, 0), 1, None),
        ((), None, None),
    ]
    for shape, axis, count in cases if bitorder == "big" else cases[:2]:
        x = RNG.integers(-1, 2, shape)
        same(jnp.packbits(x, axis, bitorder), np.packbits(x, axis, bitorder), "uint8")
        packed = RNG.integers(0, 256, shape, dtype=np.uint8)
        expected = np.unpackbits(packed, axis, count, bitorder)
        same(jnp.unpackbits(packed, axis, count, bitorder), expected, "uint8")
    truth = RNG.integers(0, 2, (4, 24)).astype(bool)
    back = dt.jit(lambda v: jnp.unpackbits(jnp.packbits(v, 1, bitorder), 1, None, bitorder))
    same(back(truth), truth, "uint8")
    same(jnp.unpackbits(np.zeros(0, np.uint8), count=3), np.zeros(3), "uint8")


BYTES = np.arange(3, dtype=np.uint8)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.gcd(1.0, 2), TypeError, "gcd.*integers"),
        (lambda: jnp.lcm(np.array([True]), True), TypeError, "lcm.*integers"),
        (lambda: jnp.gcd([1], 2), TypeError, "list"),
        (lambda: jnp.gcd(np.ones(2, int), np.ones(3, int)), TypeError, "gcd.*shapes"),
        (lambda: jnp.packbits(np.ones(3)), TypeError, "packbits.*integers"),
        (lambda: jnp.packbits(BYTES, bitorder="x"), ValueError, "packbits: bitorder"),
        (lambda: jnp.packbits(BYTES, axis=1), ValueError, "out of bounds"),
        (lambda: jnp.unpackbits(np.arange(3)), TypeError, "bytes.*astype"),
        (lambda: jnp.unpackbits(BYTES, count=-25), ValueError, "24 bits"),
        (lambda: jnp.unpackbits(BYTES, bitorder="x"), ValueError, "unpackbits: bitorder"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_powers_of_two_are_shifts(name: str) -> None:
    """A base that is a number of the program gives what one that is not gives."""
    dtype = np.dtype(name)
    limits = np.iinfo(dtype)
    exponents = np.array(
        [limits.min, *(i for i in range(-40, 80) if limits.min <= i <= limits.max), limits.max],
        dtype,
    )
    found = dt.jit(lambda exponents: 2**exponents)(exponents)
    expected = dt.jit(jnp.power)(np.full_like(exponents, 2), exponents)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)
    positive = exponents[exponents >= 0]
    np.testing.assert_array_equal(found[exponents >= 0], np.power(dtype.type(2), positive))
    assert "multiply" not in dt.jit(lambda x: 2**x).lower(exponents).as_text()
