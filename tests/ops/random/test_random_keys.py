"""Typed random keys: the primitives under transformations, and key arrays as arrays."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import dtypes, random, tree
from dovetail._core.ops.random import keys as core_random
from dovetail._core.ops.random.keys import (
    random_bits_p,
    threefry_implementation,
    threefry_reference,
)
from dovetail._core.ops.random.threefry import threefry2x32_p, threefry_2x32
from dovetail.testing.checks import CHECKS
from dovetail.testing.keys import key_array
from dovetail.testing.samples.random import SAMPLES


def data(keys: Any) -> Any:
    return np.asarray(random.key_data(keys)).tolist()


KEY = random.key(0)
# Of the key (0, 0), as the Random123 library gives them for these counters.
CHILDREN = [[1797259609, 2579123966], [928981903, 3453687069], [4146024105, 2718843009]]


def test_published_vectors() -> None:
    """The known answers of the Random123 library (kat_vectors, threefry 2 32 20)."""
    for key, counter, expected in (
        ([0, 0], [0, 0], [0x6B200159, 0x99BA4EFE]),
        ([2**32 - 1] * 2, [2**32 - 1] * 2, [0x1CB996FC, 0xBB002BE7]),
        ([0x13198A2E, 0x03707344], [0x243F6A88, 0x85A308D3], [0xC4923A9C, 0x483DF7A0]),
    ):
        words = [np.array([w], np.uint32) for w in (*key, *counter)]
        assert [int(x[0]) for x in threefry2x32_p.bind(*words)] == expected
        raw, count = np.array(key, np.uint32), np.array(counter, np.uint32)
        assert np.asarray(threefry_2x32(raw, count)).tolist() == expected


@pytest.mark.parametrize("name", ["random_bits", "random_split", "random_fold_in"])
@pytest.mark.parametrize("check", ["lowering_agrees", "batch_is_loop"])
def test_sequential_streams_agree_with_reference(name: str, check: str) -> None:
    with dt.threefry_partitionable(False):
        CHECKS[check](getattr(core_random, f"{name}_p"), SAMPLES[name])


def test_printed_as_arrays() -> None:
    assert repr(KEY) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert str(KEY) == repr(KEY) == f"{KEY}"
    keys = random.split(KEY, 2)
    assert repr(keys).startswith("Array((2,), dtype=key<fry>) overlaying:\n[[1797259609 ")


def test_printed_in_jaxprs() -> None:
    def jaxpr(function: Any, *args: Any) -> str:
        return " ".join(str(dt.make_jaxpr(function)(*args)).split())

    assert jaxpr(random.key, 3) == (
        "{ lambda ; a:i32[]. let b:key<fry>[] = random_seed[impl=fry] a in (b,) }"
    )
    assert jaxpr(random.PRNGKey, 3) == (
        "{ lambda ; a:i32[]. let b:key<fry>[] = random_seed[impl=fry] a "
        "c:u32[2] = random_unwrap b in (c,) }"
    )
    assert jaxpr(lambda k: random.split(k), KEY) == (
        "{ lambda ; a:key<fry>[]. let b:key<fry>[2] = random_split[shape=(2,)] a in (b,) }"
    )
    assert jaxpr(lambda k: random.fold_in(k, 3), KEY) == (
        "{ lambda ; a:key<fry>[]. let b:key<fry>[] = random_fold_in a 3:u32[] in (b,) }"
    )
    assert jaxpr(lambda k: random.bits(k, (3,)), KEY) == (
        "{ lambda ; a:key<fry>[]. let b:u32[3] = random_bits[bit_width=32 shape=(3,)] a in (b,) }"
    )
    assert jaxpr(lambda k: random.split(k), random.PRNGKey(0)) == (
        "{ lambda ; a:u32[2]. let b:key<fry>[] = random_wrap[impl=fry] a "
        "c:key<fry>[2] = random_split[shape=(2,)] b d:u32[2,2] = random_unwrap c in (d,) }"
    )


class TestDType:
    def test_kind(self) -> None:
        dtype = KEY.dtype
        assert str(dtype) == dtype.name == "key<fry>"
        assert dtypes.issubdtype(dtype, dtypes.prng_key)
        assert dtypes.issubdtype(dtype, dtypes.extended)
        assert dtypes.issubdtype(dtype, np.generic)
        assert not dtypes.issubdtype(dtype, np.number)
        assert dtype.itemsize == 8

    def test_equal_and_hashable(self) -> None:
        assert KEY.dtype == random.key_dtype() == random.key_dtype("threefry2x32")
        assert random.key_dtype(impl_spec="rbg") == random.key(0, impl="rbg").dtype
        assert len({KEY.dtype, random.key_dtype()}) == 1
        assert KEY.dtype != np.dtype(np.uint32)
        assert pickle.loads(pickle.dumps(KEY.dtype)) == KEY.dtype
        assert pickle.loads(pickle.dumps(threefry_implementation)) is threefry_implementation

    def test_sizes(self) -> None:
        keys = random.split(KEY, (3, 2))
        assert (keys.shape, keys.ndim, keys.size, keys.nbytes) == ((3, 2), 2, 6, 48)


class TestStructure:
    """Operations that move elements take keys as they take numbers."""

    keys = random.split(KEY, 3)

    def check(self, function: Any, expected: Any) -> None:
        for f in (function, dt.jit(function)):
            out = f(self.keys)
            assert out.dtype == KEY.dtype
            assert data(out) == expected

    def test_index(self) -> None:
        self.check(lambda k: k[0], CHILDREN[0])
        self.check(lambda k: k[-1], CHILDREN[2])
        self.check(lambda k: k[:2], CHILDREN[:2])
        self.check(lambda k: k[::-1], CHILDREN[::-1])
        self.check(lambda k: k[np.array([2, 0])], [CHILDREN[2], CHILDREN[0]])
        self.check(lambda k: k[None], [CHILDREN])
        self.check(lambda k: k[..., None], [[c] for c in CHILDREN])

    def test_index_traced(self) -> None:
        out = dt.jit(lambda k, i: k[i])(self.keys, 1)
        assert data(out) == CHILDREN[1]

    def test_boolean_mask(self) -> None:
        assert data(self.keys[np.array([True, False, True])]) == [CHILDREN[0], CHILDREN[2]]

    def test_iterate(self) -> None:
        assert [data(k) for k in self.keys] == CHILDREN
        first, _, _ = self.keys
        assert first.shape == ()
        assert first.dtype == KEY.dtype
        assert [data(k) for k in dt.jit(lambda k: list(k))(self.keys)] == CHILDREN
        assert len(self.keys) == 3
        with pytest.raises(TypeError, match="without dimensions"):
            iter(KEY)

    def test_shape(self) -> None:
        self.check(lambda k: k.reshape(3, 1), [[c] for c in CHILDREN])
        self.check(lambda k: k.reshape(3, 1).T, [CHILDREN])
        self.check(lambda k: k.ravel(), CHILDREN)
        self.check(lambda k: k.reshape(1, 3).squeeze(0), CHILDREN)

    def test_numpy_functions(self) -> None:
        import dovetail.numpy as jnp

        self.check(lambda k: jnp.stack([k[0], k[2]]), [CHILDREN[0], CHILDREN[2]])
        self.check(lambda k: jnp.concatenate([k, k[:1]]), [*CHILDREN, CHILDREN[0]])
        self.check(lambda k: jnp.broadcast_to(k[0], (2,)), [CHILDREN[0]] * 2)
        self.check(lambda k: jnp.expand_dims(k[0], 0), [CHILDREN[0]])
        self.check(lambda k: jnp.flip(k), CHILDREN[::-1])
        self.check(lambda k: jnp.roll(k, 1), [CHILDREN[2], *CHILDREN[:2]])
        self.check(lambda k: jnp.tile(k, 2), CHILDREN * 2)
        self.check(lambda k: jnp.repeat(k[:1], 2), [CHILDREN[0]] * 2)
        self.check(lambda k: jnp.take(k, 1), CHILDREN[1])
        self.check(lambda k: jnp.asarray(k), CHILDREN)
        mask = np.array([True, False, True])
        self.check(lambda k: jnp.where(mask, k, k[0]), [CHILDREN[0], CHILDREN[0], CHILDREN[2]])
        self.check(lambda k: k.at[0].set(k[2]), [CHILDREN[2], *CHILDREN[1:]])

    def test_lax_functions(self) -> None:
        from dovetail import lax

        self.check(lambda k: lax.select(np.array(True), k[0], k[1]), CHILDREN[0])
        self.check(lambda k: lax.dynamic_slice(k, (1,), (2,)), CHILDREN[1:])
        self.check(lambda k: lax.rev(k, (0,)), CHILDREN[::-1])
        self.check(lambda k: lax.stop_gradient(k), CHILDREN)
        self.check(lambda k: lax.full((2,), k[0]), [CHILDREN[0]] * 2)

    def test_equality(self) -> None:
        same = random.key(0)
        assert bool(same == KEY)
        assert not bool(same != KEY)
        assert (self.keys == self.keys[1]).tolist() == [False, True, False]
        assert (self.keys != self.keys[1]).tolist() == [True, False, True]
        assert dt.jit(lambda a, b: a == b)(self.keys, self.keys).tolist() == [True] * 3
        mapped = dt.vmap(lambda a, b: a == b, in_axes=(0, None))(self.keys, self.keys[0])
        assert mapped.tolist() == [True, False, False]
        # Keys that share one word differ.
        a, b = (random.wrap_key_data(np.array([1, w], np.uint32)) for w in (2, 3))
        assert not bool(a == b)

    def test_vmap_over_any_dimension(self) -> None:
        import dovetail.numpy as jnp

        keys = self.keys.reshape(1, 3)
        out = dt.vmap(lambda k: jnp.stack([k[0], k[0]]), in_axes=1, out_axes=1)(keys)
        assert data(out) == [CHILDREN, CHILDREN]


class TestTransformations:
    keys = random.split(KEY, 3)

    @pytest.mark.parametrize(
        "function",
        [
            lambda k: random.bits(k, (5,)),
            lambda k: random.bits(k, (3,), "uint8"),
            lambda k: random.key_data(random.split(k, (2, 2))),
            lambda k: random.key_data(random.fold_in(k, 9)),
            lambda k: random.normal(k, (4,)),
            lambda k: random.randint(k, (4,), 0, 10),
            lambda k: random.permutation(k, 6),
        ],
    )
    @pytest.mark.parametrize("partitionable", [True, False])
    def test_vmap_is_a_loop(self, function: Any, partitionable: bool) -> None:
        with dt.threefry_partitionable(partitionable):
            mapped = np.asarray(dt.vmap(function)(self.keys))
            looped = np.stack([np.asarray(function(k)) for k in self.keys])
        np.testing.assert_array_equal(mapped, looped)

    def test_vmap_of_data(self) -> None:
        numbers = np.arange(3, dtype=np.uint32)
        one_key = dt.vmap(random.fold_in, in_axes=(None, 0))(KEY, numbers)
        assert data(one_key) == [data(random.fold_in(KEY, i)) for i in range(3)]
        one_number = dt.vmap(random.fold_in, in_axes=(0, None))(self.keys, 2)
        assert data(one_number) == [data(random.fold_in(k, 2)) for k in self.keys]
        both = dt.vmap(random.fold_in)(self.keys, numbers)
        assert data(both) == [data(random.fold_in(self.keys[i], i)) for i in range(3)]
        seeds = dt.vmap(random.key)(np.array([-1, 7], np.int32))
        assert data(seeds) == [[0, 2**32 - 1], [0, 7]]

    def test_nested_vmap(self) -> None:
        keys = random.split(KEY, (2, 3))
        out = dt.vmap(dt.vmap(lambda k: random.bits(k)))(keys)
        expected = [[int(random.bits(keys[i, j])) for j in range(3)] for i in range(2)]
        assert out.tolist() == expected

    def test_jit_arguments_and_results(self) -> None:
        @dt.jit
        def step(state: Any) -> Any:
            key, new = random.split(state["key"])
            return {"key": key, "noise": random.normal(new, (2,)), "all": state["all"]}

        state = {"key": KEY, "noise": np.zeros(2, np.float32), "all": (self.keys,)}
        for _ in range(3):
            state = step(state)
        assert state["key"].dtype == KEY.dtype
        assert data(state["all"][0]) == CHILDREN

    def test_jit_captures_keys(self) -> None:
        assert int(dt.jit(lambda: random.bits(KEY))()) == int(random.bits(KEY))
        assert int(dt.jit(lambda s: random.bits(random.key(s)))(0)) == int(random.bits(KEY))

    def test_grad_of_a_function_that_uses_keys(self) -> None:
        def loss(x: Any, key: Any) -> Any:
            return x * random.uniform(key)

        expected = float(random.uniform(KEY))
        assert float(dt.grad(loss)(2.0, KEY)) == expected
        assert float(dt.jit(dt.grad(loss))(2.0, KEY)) == expected
        both = dt.vmap(dt.grad(loss), in_axes=(None, 0))(2.0, self.keys)
        assert both.tolist() == [float(random.uniform(k)) for k in self.keys]
        value, pull_back = dt.vjp(loss, 2.0, KEY)
        assert value == 2 * expected
        moved, key_cotangent = pull_back(np.float32(1))
        assert float(moved) == expected
        assert key_cotangent.dtype == dtypes.float0

    def test_keys_inside_grad(self) -> None:
        def loss(x: Any) -> Any:
            first, second = random.split(random.key(1))
            return x * random.normal(first) + x * x * random.normal(second)

        first, second = random.split(random.key(1))
        slope = float(random.normal(first)) + 6 * float(random.normal(second))
        assert float(dt.grad(loss)(3.0)) == pytest.approx(slope, rel=1e-6)
        assert float(dt.grad(dt.grad(loss))(3.0)) == pytest.approx(
            2 * float(random.normal(second)), rel=1e-6
        )

    def test_keys_have_no_gradient(self) -> None:
        with pytest.raises(TypeError, match="key<fry>"):
            dt.grad(lambda k: random.uniform(k))(KEY)
        zero = np.zeros((), dtypes.float0)
        out, tangent = dt.jvp(lambda k: random.uniform(k), (KEY,), (zero,))
        assert out == random.uniform(KEY)
        assert float(tangent) == 0
        keys, tangents = dt.jvp(random.split, (KEY,), (zero,))
        assert keys.shape == (2,)
        assert tangents.dtype == dtypes.float0

    def test_gradient_with_respect_to_bounds(self) -> None:
        def mean(low: Any, high: Any) -> Any:
            return random.uniform(KEY, (), minval=low, maxval=high)

        u = float(random.uniform(KEY))
        low, high = dt.grad(mean, argnums=(0, 1))(1.0, 3.0)
        assert float(low) == pytest.approx(1 - u, rel=1e-5)
        assert float(high) == pytest.approx(u, rel=1e-5)

    def test_eval_shape(self) -> None:
        out = dt.eval_shape(lambda k: random.split(k, 3), KEY)
        assert out.shape == (3,)
        assert out.dtype == KEY.dtype

    def test_donation(self) -> None:
        keys = random.split(random.key(5), 4)
        out = dt.jit(lambda k: dt.vmap(lambda x: random.fold_in(x, 1))(k), donate_argnums=0)(keys)
        assert out.shape == (4,)
        assert keys.is_deleted()
        with pytest.raises(RuntimeError, match="donated"):
            random.key_data(keys)

    def test_static_keys_are_refused(self) -> None:
        with pytest.raises(ValueError, match="ashable"):
            dt.jit(lambda k: random.uniform(k), static_argnums=0)(KEY)


class TestAsValues:
    def test_trees(self) -> None:
        held = {"a": random.split(KEY, 3), "b": [KEY]}
        assert tree.map(lambda x: x.shape, held) == {"a": (3,), "b": [()]}
        assert len(tree.leaves(held)) == 2

    def test_copies(self) -> None:
        keys = random.split(KEY, 3)
        for made in (copy.copy(keys), copy.deepcopy(keys), pickle.loads(pickle.dumps(keys))):
            assert made.dtype == KEY.dtype
            assert data(made) == CHILDREN
        assert data(dt.device_put(keys, dt.devices()[0])) == CHILDREN
        assert data(dt.device_get(keys)) == CHILDREN
        assert isinstance(KEY, dt.Array)
        assert keys.block_until_ready() is keys

    @pytest.mark.parametrize(
        "convert",
        [
            np.asarray,
            int,
            float,
            complex,
            bool,
            lambda k: k.item(),
            lambda k: k.tolist(),
            lambda k: [0][k],
            lambda k: np.from_dlpack(k),
        ],
    )
    def test_no_numbers(self, convert: Any) -> None:
        with pytest.raises(TypeError, match="key"):
            convert(KEY)

    @pytest.mark.parametrize(
        "compute",
        [
            lambda k: k + 1,
            lambda k: 1 + k,
            lambda k: k * k,
            lambda k: -k,
            lambda k: abs(k),
            lambda k: k < k,
            lambda k: k == 0,
            lambda k: k == random.PRNGKey(0),
            lambda k: random.split(k).sum(),
            lambda k: random.split(k).max(),
            lambda k: dt.lax.sin(k),
            lambda k: dt.numpy.sin(k),
            lambda k: dt.numpy.argsort(random.split(k)),
            lambda k: dt.lax.convert_element_type(k, np.uint32),
            lambda k: dt.lax.bitcast_convert_type(k, np.uint32),
            lambda k: k & k,
            lambda k: random.split(k) @ random.split(k),
        ],
    )
    def test_no_arithmetic(self, compute: Any) -> None:
        for function in (compute, dt.jit(compute)):
            with pytest.raises((TypeError, ValueError), match="key<fry>"):
                function(KEY)

    def test_no_hash(self) -> None:
        with pytest.raises(TypeError, match="unhashable"):
            hash(KEY)


class TestPrimitives:
    def test_bits_wants_keys(self) -> None:
        with pytest.raises(TypeError, match=r"random_bits takes random keys, got .* u32\[2\]"):
            random_bits_p.bind(random.PRNGKey(0), bit_width=32, shape=())

    def test_more_than_one_word_counts(self) -> None:
        # Only the slice is computed: the compiler moves it before the generator.
        last = dt.jit(lambda k: random.bits(k, (2**16, 2**16 + 1))[-1, -2:])(KEY)
        counters = np.array([2**16 - 2, 2**16 - 1], np.uint32)
        key = np.zeros(2, np.uint32)
        high, low = threefry_reference.threefry2x32(*key, np.uint32(1), counters)
        assert last.tolist() == (high ^ low).tolist()
        with dt.threefry_partitionable(False), pytest.raises(ValueError, match="split the key"):
            dt.jit(lambda k: random.bits(k, (2**16, 2**16 + 1))).lower(KEY)

    def test_implementations_are_named_once(self) -> None:
        with pytest.raises(ValueError, match="exists already"):
            core_random.define_implementation(threefry_implementation)

    def test_numpy_form(self) -> None:
        keys = key_array(np.arange(6, dtype=np.uint32).reshape(3, 2))
        assert keys.shape == (3,)
        assert core_random.keys_of_numpy(keys) == KEY.dtype
        assert core_random.keys_of_numpy(np.zeros(3)) is None
