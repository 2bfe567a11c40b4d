"""The generators of backends: rng_bit_generator, rng_uniform, and the keys `rbg`, `unsafe_rbg`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import dtypes, lax, random
from dovetail._core.ops.random.philox import philox4x32_p
from dovetail.errors import MissingRuleError

IMPLEMENTATIONS = ["rbg", "unsafe_rbg"]
STATE = np.array([0, 1, 2, 3], np.uint32)
PHILOX, THREE_FRY = lax.RandomAlgorithm.RNG_PHILOX, lax.RandomAlgorithm.RNG_THREE_FRY


def data(keys: Any) -> Any:
    return np.asarray(random.key_data(keys)).tolist()


def test_published_vectors() -> None:
    """The known answers of the Random123 library (kat_vectors, philox 4 32 10)."""
    pi = ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0])
    for counter, key, expected in (
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([2**32 - 1] * 4, [2**32 - 1] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (*pi, [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    ):
        words = [np.array([w], np.uint32) for w in (*key, *counter)]
        assert [int(x[0]) for x in philox4x32_p.bind(*words)] == expected


# What JAX 0.10.2 and 0.12 give on CPUs.
BITS = {
    PHILOX: ([0, 1, 4, 3], [895509795, 3230209149, 3834998268, 2007387529, 550253412]),
    THREE_FRY: ([0, 1, 5, 3], [2689575991, 2205648888, 150810639, 1537324351, 1815543426]),
}


class TestBitGenerator:
    @pytest.mark.parametrize("algorithm", [PHILOX, THREE_FRY])
    def test_values(self, algorithm: Any) -> None:
        state, expected = BITS[algorithm]
        after, bits = lax.rng_bit_generator(STATE, (5,), algorithm=algorithm)
        assert (after.tolist(), bits.tolist()) == (state, expected)
        for dtype in ("uint8", "uint16"):
            narrow = lax.rng_bit_generator(STATE, (5,), dtype, algorithm)[1]
            assert narrow.tolist() == [n % 256**narrow.dtype.itemsize for n in expected]
        with dt.enable_x64(True):
            wide = lax.rng_bit_generator(STATE.view(np.uint64), (5,), algorithm=algorithm)
            assert wide[0].tolist() == np.array(state, np.uint32).view(np.uint64).tolist()
            assert wide[1].tolist() == expected

    def test_the_state_goes_on(self) -> None:
        everything = lax.rng_bit_generator(STATE, 12)[1].tolist()
        state, first = lax.rng_bit_generator(STATE, 8)
        _, second = lax.rng_bit_generator(state, 4)
        assert first.tolist() + second.tolist() == everything

    def test_defaults(self) -> None:
        printed = " ".join(str(dt.make_jaxpr(lambda k: lax.rng_bit_generator(k, 3))(STATE)).split())
        assert (
            "b:u32[4] c:u32[3] = rng_bit_generator[ algorithm=RNG_DEFAULT dtype=uint32 "
            "out_sharding=None shape=(3,) ] a"
        ) in printed
        same = lax.rng_bit_generator(STATE, 3, algorithm=1)  # type: ignore[arg-type]
        assert same[1].tolist() == lax.rng_bit_generator(STATE, 3, algorithm=THREE_FRY)[1].tolist()
        text = dt.jit(lambda k: lax.rng_bit_generator(k, 3)).lower(STATE).as_text()
        assert "stablehlo.rng_bit_generator" in text

    @pytest.mark.parametrize(
        ("arguments", "error", "text"),
        [
            ((STATE, 3, "int32"), TypeError, "unsupported dtype int32"),
            ((STATE[:2], 3), TypeError, "4 uint32 or of 2 uint64"),
            ((STATE, (-1,)), TypeError, "must not be negative"),
            ((STATE, 3, "uint32", "philox"), ValueError, "must be a lax.RandomAlgorithm"),
            (([1, 2, 3, 4], 3), TypeError, "argument key to be an array"),
            ((random.key(0, impl="rbg"), 3), TypeError, "takes as its key an array"),
        ],
    )
    def test_errors(self, arguments: Any, error: Any, text: str) -> None:
        with pytest.raises(error, match=text):
            lax.rng_bit_generator(*arguments)


class TestUniform:
    @pytest.mark.parametrize(
        "dtype", ["float32", "float16", "bfloat16", "int32", "uint32", "int8", "uint8", "int16"]
    )
    def test_range(self, dtype: str) -> None:
        low, high = np.array(2, dtype)[()], np.array(5, dtype)[()]
        numbers = lax.rng_uniform(low, high, (1000,))
        assert (numbers.shape, numbers.dtype) == ((1000,), np.dtype(dtype))
        values = np.asarray(numbers, float)
        assert values.min() >= 2
        assert values.max() <= (5 if numbers.dtype.kind not in "iu" else 4)
        assert len(set(values.tolist())) >= 3

    def test_other_numbers_each_time(self) -> None:
        function = dt.jit(lambda: (lax.rng_uniform(0.0, 1.0, (8,)), lax.rng_uniform(0.0, 1.0, 8)))
        draws = [x.tolist() for _ in range(2) for x in function()]
        assert len({tuple(d) for d in draws}) == 4

    def test_rules_that_cannot_be(self) -> None:
        with pytest.raises(MissingRuleError, match="other numbers each time"):
            dt.grad(lambda a: lax.rng_uniform(a, 1.0, ()))(0.0)
        with pytest.raises(MissingRuleError, match="no 'batch' rule"):
            dt.vmap(lambda a: lax.rng_uniform(a, 1.0, ()))(np.zeros(3, np.float32))

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            ((np.zeros(3), np.ones(3), 3), "bounds must be scalars"),
            ((np.int32(0), np.float32(1), 3), "equal dtypes"),
            ((0j, 1j, 3), "does not make numbers of dtype complex64"),
            ((False, True, 3), "does not make numbers of dtype bool"),
            ((0.0, 1.0, -3), "must not be negative"),
            (("a", 1.0, 3), "array or a scalar"),
        ],
    )
    def test_errors(self, arguments: Any, text: str) -> None:
        with pytest.raises(TypeError, match=text):
            lax.rng_uniform(*arguments)


# Of JAX 0.10.2 and 0.12 on CPUs, for the seed 42.
PUBLISHED: dict[str, dict[str, Any]] = {
    "rbg": {
        "split": [
            [1832780943, 270669613, 1832780943, 270669613],
            [64467757, 2916123636, 64467757, 2916123636],
        ],
        "fold_in": [2547012911, 1371500959, 2547012911, 1371500959],
        "randint": [1, 20, 35, 41],
        "permutation": [2, 1, 3, 4, 0],
    },
    "unsafe_rbg": {
        "split": [
            [2620864722, 2991908441, 282133475, 2589630650],
            [4105776319, 298289174, 864345282, 274752888],
        ],
        "fold_in": [2104303640, 250182049, 1106406590, 1983638428],
        "randint": [39, 91, 59, 37],
        "permutation": [4, 3, 0, 2, 1],
    },
}


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
class TestKeys:
    def test_numbers_equal_those_of_jax(self, impl: str) -> None:
        key, published = random.key(42, impl=impl), PUBLISHED[impl]
        assert data(key) == [0, 42, 0, 42]
        assert data(random.key(-1, impl=impl)) == [0, 2**32 - 1] * 2
        assert data(random.split(key)) == published["split"]
        assert data(random.fold_in(key, 7)) == published["fold_in"]
        assert random.randint(key, (4,), 0, 100).tolist() == published["randint"]
        assert random.permutation(key, 5).tolist() == published["permutation"]
        bits = [2620864722, 2991908441, 282133475, 2589630650, 1779689962]
        assert random.bits(key, (5,)).tolist() == bits
        assert random.bits(key, (5,), "uint16").tolist() == [n % 2**16 for n in bits]
        assert random.bits(key, (5,), "uint8").tolist() == [n % 2**8 for n in bits]
        uniform = np.array([0.6102176, 0.69660795, 0.06568921], np.float32)
        np.testing.assert_allclose(np.asarray(random.uniform(key, (3,))), uniform, rtol=1e-6)
        normal = np.array([0.27988622, 0.5146695, -1.5086882], np.float32)
        np.testing.assert_allclose(np.asarray(random.normal(key, (3,))), normal, rtol=1e-6)
        with dt.enable_x64(True):
            assert int(random.bits(key, (3,), "uint64")[0]) == bits[0] + (bits[1] << 32)
            assert data(random.key(2**40 + 3, impl=impl)) == [256, 3, 256, 3]

    def test_dtypes(self, impl: str) -> None:
        keys = random.split(random.key(0, impl=impl), (3, 2))
        tag = {"rbg": "rbg", "unsafe_rbg": "urbg"}[impl]
        assert (keys.shape, str(keys.dtype), keys.nbytes) == ((3, 2), f"key<{tag}>", 96)
        assert random.key_impl(keys) == impl
        assert keys.dtype == random.key_dtype(impl) != random.key_dtype("threefry2x32")
        assert random.key(0, dtype=keys.dtype).dtype == keys.dtype
        assert random.wrap_key_data(random.key_data(keys), impl=impl).dtype == keys.dtype
        with pytest.raises(TypeError, match=r"ends with \(4,\)"):
            random.wrap_key_data(random.PRNGKey(0), impl=impl)
        printed = str(dt.make_jaxpr(lambda k: random.bits(k))(keys[0, 0]))
        assert f"a:key<{tag}>[]" in printed
        assert "random_bits[bit_width=32 shape=()]" in printed

    def test_raw_keys(self, impl: str) -> None:
        typed = random.key(7, impl=impl)
        with dt.default_prng_impl(impl):
            assert random.key(7).dtype == typed.dtype
            raw = random.PRNGKey(7)
            assert raw.shape == (4,)
            assert random.split(raw, 3).tolist() == data(random.split(typed, 3))
            assert random.fold_in(raw, 3).tolist() == data(random.fold_in(typed, 3))
            assert random.uniform(raw, (3,)).tolist() == random.uniform(typed, (3,)).tolist()
        with pytest.raises(TypeError, match=r"ends with \(2,\)"):
            random.split(raw)

    @pytest.mark.parametrize(
        "function",
        [
            lambda k: random.bits(k, (5,)),
            lambda k: random.bits(k, (3,), "uint8"),
            lambda k: random.bits(k, ()),
            lambda k: random.key_data(random.split(k, (2, 2))),
            lambda k: random.key_data(random.fold_in(k, 9)),
            lambda k: random.normal(k, (4,)),
        ],
    )
    def test_vmap_is_a_loop(self, impl: str, function: Callable[[Any], Any]) -> None:
        keys = random.split(random.key(1, impl=impl), 3)
        looped = np.stack([np.asarray(function(k)) for k in keys])
        for mapped in (dt.vmap(function), dt.jit(dt.vmap(function))):
            np.testing.assert_array_equal(np.asarray(mapped(keys)), looped)

    def test_nested_vmap_and_vmap_of_data(self, impl: str) -> None:
        keys = random.split(random.key(2, impl=impl), (2, 3))
        nested = dt.vmap(dt.vmap(lambda k: random.bits(k)))(keys)
        assert nested.tolist() == [[int(random.bits(k)) for k in row] for row in keys]
        folded = dt.vmap(random.fold_in, in_axes=(None, 0))(keys[0, 0], np.arange(3))
        assert data(folded) == [data(random.fold_in(keys[0, 0], i)) for i in range(3)]
        seeds = dt.vmap(lambda s: random.key(s, impl=impl))(np.arange(3))
        assert data(seeds) == [[0, i, 0, i] for i in range(3)]

    def test_other_transformations(self, impl: str) -> None:
        key = random.key(3, impl=impl)

        def loss(x: Any, key: Any) -> Any:
            first, second = random.split(key)
            return x * random.uniform(first) + x * x * random.normal(second)

        first, second = random.split(key)
        slope = float(random.uniform(first)) + 4 * float(random.normal(second))
        for gradient in (dt.grad(loss), dt.jit(dt.grad(loss))):
            assert float(gradient(2.0, key)) == pytest.approx(slope, rel=1e-6)
        each = dt.vmap(dt.grad(loss), in_axes=(None, 0))(2.0, random.split(key, 2))
        alone = [float(dt.grad(loss)(2.0, k)) for k in random.split(key, 2)]
        np.testing.assert_allclose(np.asarray(each), alone, rtol=1e-6)
        _, tangent = dt.jvp(random.split, (key,), (np.zeros((), dtypes.float0),))
        assert tangent.dtype == dtypes.float0

        @dt.jit
        def step(state: Any) -> Any:
            key, new = random.split(state["key"])
            return {"key": key, "noise": random.normal(new, (2,))}

        state = {"key": key, "noise": np.zeros(2, np.float32)}
        for _ in range(3):
            state = step(state)
            key, new = random.split(key)
            np.testing.assert_array_equal(state["noise"], random.normal(new, (2,)))


def test_implementations_do_not_mix() -> None:
    import dovetail.numpy as jnp

    fry, rbg = random.key(0), random.key(0, impl="rbg")
    for mix in (
        lambda: fry == rbg,
        lambda: jnp.stack([fry, rbg]),
        lambda: jnp.where(True, fry, rbg),
    ):
        with pytest.raises((TypeError, ValueError), match="key<"):
            mix()
    with pytest.raises(ValueError, match="there is no random key implementation 'mersenne'"):
        random.key(0, impl="mersenne")
