"""Keys of the generators on counters: threefry4x32, philox2x32 and philox4x32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import random
from dovetail._core.ops.random.counter_arithmetic import OnNumpy
from dovetail._core.ops.random.counter_generators import Philox2x32, Philox4x32, Threefry4x32

#: What JAX 0.12 publishes for the seed 1.
PUBLISHED: dict[str, dict[str, list[int]]] = {
    "threefry4x32": {
        "key": [0x7E667220, 0x137645C6, 0x163F75DF, 0x4426A265],
        "split": [
            0x73D624E3,
            0x91D0E729,
            0x7BC7AF0C,
            0xEC7539EE,
            0x36EC6F52,
            0x1CDC9DD8,
            0x83066F6A,
            0x105C5714,
            0x4E6F9AE5,
            0x5611F87A,
            0x5C8B9921,
            0x635CF7B8,
        ],
        "fold_in": [0xB6DE7B6E, 0xA8ABF64F, 0x8B2C4F65, 0xF23F0AD0],
        "bits 8": [0x28, 0xC0, 0x64],
        "bits 32": [0x75B45528, 0x5917DCC0, 0x64DEA964],
        "bits 64": [0x8118BEF7DA5DEC7, 0xF1C5592560B8952, 0x7E915F3F1A4FF65B],
    },
    "philox2x32": {
        "key": [0x4391B027],
        "split": [0x2A3C6B4F, 0x8A0689DF, 0x7F1AF483],
        "fold_in": [0xF9AD908B],
        "bits 8": [0xB9, 0xA0, 0xB6],
        "bits 32": [0x5522ECB9, 0x470F09A0, 0xDC808B6],
        "bits 64": [0x2A3C6B4F7F1E87F6, 0x8A0689DFCD09807F, 0x7F1AF48372D2FC35],
    },
    "philox4x32": {
        "key": [0x6AD0C5EC, 0xEA236249],
        "split": [0x17CC6835, 0x94F374BC, 0x30F155A2, 0xCF94D118, 0x3320155A, 0xA65A54C1],
        "fold_in": [0x578E8B30, 0x7C3B2859],
        "bits 8": [0x6E, 0x5E, 0x8C],
        "bits 32": [0x3900C56E, 0x95ADA5E, 0xE8F7558C],
        "bits 64": [0x17CC683594F374BC, 0x811F9F06223B243E, 0x2577411BFB9BB7BF],
    },
}
IMPLEMENTATIONS = pytest.mark.parametrize("impl", PUBLISHED)


def data(keys: Any) -> list[int]:
    return np.asarray(random.key_data(keys)).ravel().tolist()


@IMPLEMENTATIONS
def test_numbers_equal_those_of_jax(impl: str) -> None:
    published = PUBLISHED[impl]
    key = random.key(1, impl=impl)
    assert data(key) == published["key"]
    assert data(random.split(key, 3)) == published["split"]
    assert data(random.fold_in(key, 7)) == published["fold_in"]
    with dt.enable_x64(True):
        for width in (8, 32, 64):
            bits = random.bits(key, (3,), f"uint{width}")
            assert np.asarray(bits).tolist() == published[f"bits {width}"]


@pytest.mark.parametrize(
    ("generator", "zeros", "ones"),
    [
        (
            Threefry4x32,
            [0x9C6CA96A, 0xE17EAE66, 0xFC10ECD4, 0x5256A7D8],
            [0x2A881696, 0x57012287, 0xF6C7446E, 0xA16A6732],
        ),
        (Philox2x32, [0xFF1DAE59, 0x6CD10DF2], [0x2C3F628B, 0xAB4FD7AD]),
        (
            Philox4x32,
            [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
            [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        ),
    ],
)
def test_known_answers(generator: Any, zeros: list[int], ones: list[int]) -> None:
    """The vectors that the Random123 library is tested with."""
    made = generator(OnNumpy())
    for word, expected in ((0, zeros), (2**32 - 1, ones)):
        words = [np.uint32(word)] * 4
        found = made.block(words[: made.key_size], words[: made.block_size])
        assert [int(w) for w in found] == expected


@IMPLEMENTATIONS
def test_keys_of_each_kind(impl: str) -> None:
    keys = random.split(random.key(0, impl=impl), (3, 2))
    assert random.key_impl(keys) == impl
    assert keys.dtype == random.key_dtype(impl)
    assert random.wrap_key_data(random.key_data(keys), dtype=keys.dtype).dtype == keys.dtype
    together = dt.vmap(dt.vmap(random.normal))(keys)
    alone = [[float(random.normal(key)) for key in row] for row in keys]
    np.testing.assert_array_equal(together, np.asarray(alone, np.float32))
    with dt.default_prng_impl(impl):
        raw = random.PRNGKey(5)
        assert random.uniform(raw) == random.uniform(random.key(5, impl=impl))
