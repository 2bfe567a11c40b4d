"""dovetail.extend.random: generators behind keys, and generators of one's own."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.extend import random as key_implementations
from dovetail.extend.random import define_prng_impl

IMPLEMENTATIONS = {
    "threefry2x32": key_implementations.threefry_prng_impl,
    "rbg": key_implementations.rbg_prng_impl,
    "unsafe_rbg": key_implementations.unsafe_rbg_prng_impl,
}


def defined(**changed: Any) -> Any:
    """A generator that counts: its bits are its key and the positions."""
    functions: dict[str, Any] = {
        "key_shape": (1,),
        "seed": lambda value: value.astype("uint32").reshape(1),
        "split": lambda key, shape: (
            key + jnp.arange(np.prod(shape), dtype="uint32").reshape(*shape, 1)
        ),
        "random_bits": lambda key, width, shape: (
            key[0] + jnp.arange(np.prod(shape), dtype="uint32").reshape(shape)
        ).astype(f"uint{width}"),
        "fold_in": lambda key, number: key + number,
        "name": "counting",
        "tag": "count",
    }
    return define_prng_impl(**functions | changed)


COUNTING = defined()


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@pytest.mark.parametrize("seed", [0, 3, -1, 2**31 - 1])
def test_seeds(name: str, seed: int) -> None:
    expected = dt.random.key_data(dt.random.key(seed, impl=name))
    for keys in (
        key_implementations.random_seed(seed, IMPLEMENTATIONS[name]),
        key_implementations.random_seed(np.int32(seed), name),
        key_implementations.seed_with_impl(IMPLEMENTATIONS[name], seed),
        dt.random.key(seed, impl=IMPLEMENTATIONS[name]),
    ):
        np.testing.assert_array_equal(dt.random.key_data(keys), expected)


def test_arrays_of_seeds() -> None:
    keys = key_implementations.random_seed(np.arange(6).reshape(2, 3), "threefry2x32")
    each = [[dt.random.key_data(dt.random.key(3 * i + j)) for j in range(3)] for i in range(2)]
    np.testing.assert_array_equal(dt.random.key_data(keys), np.array(each))


def test_threefry() -> None:
    """The known answer of the Random123 library, and the primitive on its own."""
    zeros = np.zeros(2, np.uint32)
    answer = [0x6B200159, 0x99BA4EFE]
    assert key_implementations.threefry_2x32(zeros, zeros).tolist() == answer
    pair = (np.uint32(0), np.uint32(0))
    assert key_implementations.threefry_2x32(pair, zeros).tolist() == answer
    words = key_implementations.threefry2x32_p.bind(*zeros, *zeros)
    assert [int(w) for w in words] == answer


def test_generator_of_ones_own() -> None:
    key = dt.random.key(4, impl=COUNTING)
    assert str(key.dtype) == "key<count>"
    assert dt.random.key_data(key).tolist() == [4]
    assert dt.random.key_data(dt.random.split(key, 3)).tolist() == [[4], [5], [6]]
    assert dt.random.key_data(dt.random.fold_in(key, 2)).tolist() == [6]
    assert dt.random.bits(dt.random.clone(key), (2, 2)).tolist() == [[4, 5], [6, 7]]
    wrapped = dt.random.wrap_key_data(np.uint32([[9], [8]]), impl=COUNTING)
    assert wrapped.shape == (2,)
    assert wrapped.dtype == key.dtype


@pytest.mark.parametrize("width", [8, 16, 32])
def test_generator_in_programs(width: int) -> None:
    dtype = f"uint{width}"

    def draw(key: Any) -> Any:
        return dt.random.bits(key, (3,), dtype)

    keys = dt.random.split(dt.random.key(4, impl=COUNTING), 2)
    expected = np.array([[4, 5, 6], [5, 6, 7]], dtype)
    np.testing.assert_array_equal(dt.jit(dt.vmap(draw))(dt.random.clone(keys)), expected)
    np.testing.assert_array_equal(dt.lax.map(draw, keys), expected)
    values = dt.random.uniform(dt.random.key(4, impl=COUNTING), (2,))
    assert values.shape == (2,)


def test_two_of_one_name() -> None:
    """They are told apart, in programs too."""
    other = defined(random_bits=lambda key, width, shape: jnp.zeros(shape, f"uint{width}"))
    assert other != COUNTING
    keys = [dt.random.key(4, impl=impl) for impl in (COUNTING, other)]
    assert keys[0].dtype != keys[1].dtype
    draw = dt.jit(lambda key: dt.random.bits(key, (1,)))
    assert [draw(key).tolist() for key in keys] == [[4], [0]]
    assert pickle.loads(pickle.dumps(other)) is other


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: key_implementations.random_seed(1.5, "rbg"), TypeError, "must be integers"),
        (lambda: key_implementations.random_seed(1, "abacus"), ValueError, "no random key impl"),
        (lambda: defined(split=3), TypeError, "split is a function, got 3"),
        (lambda: defined(key_shape=2), TypeError, "key_shape is a tuple"),
        (lambda: defined(key_shape=("a",)), TypeError, "key_shape is a tuple"),
    ],
)
def test_mistakes(call: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        call()
