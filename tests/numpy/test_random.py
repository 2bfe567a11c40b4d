"""dovetail.random: values that are fixed for ever, distributions, and errors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.stats

import dovetail as dt
import dovetail.random as public
from dovetail import enable_x64, random
from dovetail._core.base import config
from dovetail._core.runtime.programs.compilation import statistics

KEY = random.key(0)
BFLOAT16 = ml_dtypes.bfloat16


def raw(keys: Any) -> Any:
    return np.asarray(random.key_data(keys)).tolist()


class TestFixedValues:
    """Numbers that must never change: people publish results with their seeds."""

    @pytest.mark.parametrize(
        ("seed", "narrow", "wide"),
        [
            (0, [0, 0], [0, 0]),
            (42, [0, 42], [0, 42]),
            (True, [0, 1], [0, 1]),
            (-1, [0, 4294967295], [4294967295, 4294967295]),
            (2**31, [0, 2147483648], [0, 2147483648]),
            (2**32 - 1, [0, 4294967295], [0, 4294967295]),
            (2**33 + 5, [0, 5], [2, 5]),
            (2**63 - 1, [0, 4294967295], [2147483647, 4294967295]),
            (-(2**63), [0, 0], [2147483648, 0]),
            (np.int64(2**40 + 3), [0, 3], [256, 3]),
            (np.uint64(2**64 - 1), [0, 4294967295], [4294967295, 4294967295]),
            (np.int8(-3), [0, 4294967293], [0, 4294967293]),
            (np.array(2**35 + 1), [0, 1], [8, 1]),
        ],
    )
    def test_seeds(self, seed: Any, narrow: Any, wide: Any) -> None:
        for on, expected in ((False, narrow), (True, wide)):
            with enable_x64(on):
                assert np.asarray(random.PRNGKey(seed)).tolist() == expected
                assert raw(random.key(seed)) == expected

    def test_split_and_fold_in(self) -> None:
        children = [[1797259609, 2579123966], [928981903, 3453687069], [4146024105, 2718843009]]
        assert raw(random.split(KEY, 3)) == children
        assert raw(random.split(KEY)) == children[:2]
        assert raw(random.split(KEY, ())) == children[0]
        assert raw(random.split(KEY, (1, 3))) == [children]
        assert random.split(KEY, 0).shape == (0,)
        assert raw(random.fold_in(KEY, 3)) == [2467461003, 3840466878]
        assert raw(random.fold_in(KEY, 2**32 - 1)) == [743310391, 3789761811]
        assert raw(random.fold_in(KEY, np.int64(-1))) == [743310391, 3789761811]
        # Sequential streams.
        with config.threefry_partitionable(False):
            assert raw(random.split(KEY)) == SEQUENTIAL_SPLIT
            assert raw(random.fold_in(KEY, 3)) == [2467461003, 3840466878]

    @pytest.mark.parametrize("partitionable", [True, False])
    @pytest.mark.parametrize("name", ["uint8", "uint16", "uint32", "uint64"])
    def test_bits(self, name: str, partitionable: bool) -> None:
        with enable_x64(True), config.threefry_partitionable(partitionable):
            got = random.bits(random.key(42), (5,), name)
            assert got.dtype == name
            assert got.tolist() == BITS[name, partitionable]

    @pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
    def test_uniform(self, name: str) -> None:
        with enable_x64(True):
            got = random.uniform(random.key(42), (3,), name)
            assert got.dtype == name
            assert [x.hex() for x in map(float, got)] == UNIFORM[name]

    @pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
    def test_normal(self, name: str) -> None:
        with enable_x64(True):
            got = random.normal(random.key(42), (3,), name)
            assert got.dtype == name
            expected = np.array([float.fromhex(x) for x in NORMAL[name]])
            digits = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "float64": 1e-14}
            np.testing.assert_allclose(np.asarray(got, np.float64), expected, digits[name])

    @pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
    def test_randint(self, name: str) -> None:
        with enable_x64(True):
            got = random.randint(random.key(42), (5,), 3, 100, name)
            assert got.dtype == name
            assert got.tolist() == RANDINT[name]

    def test_long_arrays_start_as_short_ones(self) -> None:
        # Their remainders are computed in another way.
        got = random.randint(random.key(42), (5000,), 3, 100)
        assert got[:5].tolist() == RANDINT["int32"]
        assert random.randint(KEY, (5000,), 0, 2**32, "uint32")[:1] == random.randint(
            KEY, (1,), 0, 2**32, "uint32"
        )

    @pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64"])
    def test_odd_sizes(self, dtype: str) -> None:
        # The last number is made apart from the others.
        with dt.enable_x64(True):
            long, longer = (random.bits(KEY, (n,), dtype) for n in (2**14 + 1, 2**14 + 2))
            assert (long == longer[:-1]).all()
            assert (random.bits(KEY, (2**14 // 4 + 1, 5), dtype).ravel()[: len(long)] == long).all()

    def test_others(self) -> None:
        key = random.key(42)
        assert random.permutation(key, 8).tolist() == PERMUTATION
        assert random.bernoulli(key, 0.4, (8,)).tolist() == BERNOULLI
        assert random.choice(key, 10, (4,), replace=False).tolist() == CHOICE
        logits = np.linspace(-1, 1, 4, dtype=np.float32)
        assert random.categorical(key, logits, shape=(8,)).tolist() == CATEGORICAL

    def test_same_under_jit_and_raw(self) -> None:
        for function in (
            lambda k: random.normal(k, (7,)),
            lambda k: random.randint(k, (7,), -5, 5),
            lambda k: random.permutation(k, 7),
            lambda k: random.uniform(k, (7,), minval=-1.0, maxval=2.0),
        ):
            with dt.direct_calls("none"):  # programs round alike
                expected = np.asarray(function(KEY))
                np.testing.assert_array_equal(dt.jit(function)(KEY), expected)
                np.testing.assert_array_equal(function(random.PRNGKey(0)), expected)


SEQUENTIAL_SPLIT = [[4146024105, 967050713], [2718843009, 1272950319]]
BITS = {
    ("uint8", True): [162, 217, 249, 215, 21],
    ("uint8", False): [45, 179, 215, 3, 244],
    ("uint16", True): [5026, 12505, 63993, 49623, 29461],
    ("uint16", False): [8426, 37627, 63599, 6563, 55571],
    ("uint32", True): [2098992034, 2919706841, 2646866425, 2409546199, 1935504149],
    ("uint32", False): [3134548294, 3733159049, 843694964, 894150801, 801545058],
    ("uint64", True): [
        7871734211187709741,
        276886910877598708,
        10591095138341673235,
        13462782411356743825,
        12687676868490354166,
    ],
    ("uint64", False): [
        11878554724538143822,
        5949366705374003258,
        3569329351199305345,
        16352916591564049101,
        15533732488544181321,
    ],
}
UNIFORM = {
    "float16": ["0x1.3800000000000p-4", "0x1.8600000000000p-3", "0x1.f380000000000p-1"],
    "bfloat16": ["0x1.4400000000000p-1", "0x1.b000000000000p-1", "0x1.f000000000000p-1"],
    "float32": ["0x1.f470480000000p-2", "0x1.5c0e600000000p-1", "0x1.3b87f00000000p-1"],
    "float64": ["0x1.b4f8123c40884p-2", "0x1.ebd996d6e8400p-7", "0x1.25f641d41e71ap-1"],
}
NORMAL = {
    "float16": ["-0x1.6e00000000000p+0", "-0x1.c040000000000p-1", "0x1.f980000000000p+0"],
    "bfloat16": ["0x1.6000000000000p-2", "0x1.0400000000000p+0", "0x1.e400000000000p+0"],
    "float32": ["-0x1.cfbe2a0000000p-6", "0x1.de57d00000000p-2", "0x1.2eccc20000000p-2"],
    "float64": ["-0x1.7a4a26c962159p-3", "-0x1.15bccfaa7ba3ap+1", "0x1.7ed8110b50460p-3"],
}
RANDINT = {
    "int8": [38, 79, 89, 54, 28],
    "uint8": [38, 79, 89, 54, 28],
    "int16": [38, 79, 89, 54, 28],
    "int32": [38, 79, 89, 54, 28],
    "uint32": [38, 79, 89, 54, 28],
    "int64": [34, 78, 93, 73, 60],
}
PERMUTATION = [7, 4, 2, 5, 3, 6, 0, 1]
BERNOULLI = [False, False, False, False, False, False, True, False]
CHOICE = [7, 4, 2, 5]
CATEGORICAL = [3, 3, 3, 3, 3, 3, 1, 1]


FLOATS = ["float16", "bfloat16", "float32", "float64"]
DISTRIBUTIONS: dict[str, Any] = {
    "uniform": scipy.stats.uniform(),
    "normal": scipy.stats.norm(),
    "exponential": scipy.stats.expon(),
    "gumbel": scipy.stats.gumbel_r(),
    "logistic": scipy.stats.logistic(),
    "laplace": scipy.stats.laplace(),
    "cauchy": scipy.stats.cauchy(),
}


class TestDistributions:
    @pytest.mark.parametrize("name", DISTRIBUTIONS)
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_kolmogorov_smirnov(self, name: str, dtype: str) -> None:
        with enable_x64(True):
            x = np.asarray(getattr(random, name)(random.key(7), (20000,), dtype), np.float64)
        assert scipy.stats.kstest(x, DISTRIBUTIONS[name].cdf).pvalue > 0.01

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_uniform_stays_below_one(self, dtype: str) -> None:
        with enable_x64(True):
            x = np.asarray(random.uniform(random.key(3), (50000,), dtype), np.float64)
        assert x.min() >= 0
        assert x.max() < 1
        assert abs(x.mean() - 0.5) < 0.01

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_normal_is_finite(self, dtype: str) -> None:
        with enable_x64(True):
            x = np.asarray(random.normal(random.key(3), (50000,), dtype), np.float64)
        assert np.isfinite(x).all()
        assert abs(x.mean()) < 0.02
        assert abs(x.std() - 1) < 0.02

    def test_complex_normal(self) -> None:
        x = np.asarray(random.normal(random.key(3), (20000,), "complex64"))
        assert x.dtype == np.complex64
        scaled = np.sqrt(2) * np.array([x.real, x.imag])
        for part in scaled:
            assert scipy.stats.kstest(part, "norm").pvalue > 0.01
        assert abs(np.corrcoef(*scaled)[0, 1]) < 0.03

    def test_high_gumbel(self) -> None:
        x = np.asarray(random.gumbel(random.key(7), (20000,), mode="high"), np.float64)
        assert scipy.stats.kstest(x, "gumbel_r").pvalue > 0.01

    def test_truncated_normal(self) -> None:
        x = np.asarray(random.truncated_normal(random.key(7), -1, 2.5, (20000,)))
        assert x.min() > -1
        assert x.max() < 2.5
        assert scipy.stats.kstest(x, scipy.stats.truncnorm(-1, 2.5).cdf).pvalue > 0.01
        rows = random.truncated_normal(KEY, np.array([[-1.0], [2.0]]), np.array([3.0, 4.0, 5.0]))
        assert rows.shape == (2, 3)

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
    def test_randint_is_even(self, dtype: str) -> None:
        with enable_x64(True):
            x = np.asarray(random.randint(random.key(7), (24000,), 5, 17, dtype))
        assert x.dtype == dtype
        counts = np.bincount(x.astype(int))
        assert counts[:5].sum() == 0
        assert scipy.stats.chisquare(counts[5:]).pvalue > 0.01
        assert len(counts) == 17

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
    def test_randint_of_the_whole_range(self, dtype: str) -> None:
        info = np.iinfo(dtype)
        with enable_x64(True):
            x = np.asarray(random.randint(KEY, (4000,), info.min, int(info.max) + 1, dtype))
        spread = (x.astype(np.float64) - info.min) / (float(info.max) - info.min + 1)
        assert scipy.stats.kstest(spread, "uniform").pvalue > 0.01

    @pytest.mark.parametrize("mode", ["low", "high"])
    def test_bernoulli(self, mode: str) -> None:
        p = np.array([0.0, 0.1, 0.5, 1.0], np.float32)
        x = np.asarray(random.bernoulli(random.key(7), p, (20000, 4), mode))
        assert x.dtype == bool
        np.testing.assert_allclose(x.mean(0), p, atol=0.015)
        assert not x[:, 0].any()
        assert x[:, 3].all()

    def test_rademacher(self) -> None:
        for dtype in ("int32", "int8", "float32", "complex64"):
            x = np.asarray(random.rademacher(random.key(7), (4000,), dtype))
            assert x.dtype == dtype
            assert set(x.tolist()) == {-1, 1}
            assert abs(x.mean()) < 0.05

    def test_categorical(self) -> None:
        p = np.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]], np.float32)
        for logits, axis in ((np.log(p), -1), (np.log(p.T), 0)):
            x = np.asarray(random.categorical(KEY, logits, axis, shape=(20000, 2)))
            for row in (0, 1):
                counts = np.bincount(x[:, row], minlength=3) / 20000
                np.testing.assert_allclose(counts, p[row], atol=0.015)
        assert random.categorical(KEY, np.log(p)).shape == (2,)
        assert random.categorical(KEY, np.log(p[:1]), shape=(5, 4)).shape == (5, 4)

    def test_categorical_without_replacement(self) -> None:
        logits = np.log(np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], np.float32))
        x = np.asarray(random.categorical(KEY, logits, replace=False, shape=(3, 2)))
        assert np.sort(x, 0).tolist() == [[0, 0], [1, 1], [2, 2]]
        many = dt.vmap(lambda k: random.categorical(k, logits[0], replace=False, shape=(1,)))
        first = np.asarray(many(random.split(KEY, 5000)))[:, 0]
        np.testing.assert_allclose(np.bincount(first) / 5000, [0.5, 0.3, 0.2], atol=0.03)

    def test_choice(self) -> None:
        p = np.array([0.5, 0.3, 0.2], np.float32)
        x = np.asarray(random.choice(KEY, 3, (20000,), p=p))
        np.testing.assert_allclose(np.bincount(x) / 20000, p, atol=0.015)
        x = np.asarray(random.choice(KEY, np.array([7, 8]), (20000,)))
        assert abs((x == 7).mean() - 0.5) < 0.02
        assert sorted(random.choice(KEY, 5, (5,), replace=False, p=np.ones(5)).tolist()) == [
            0, 1, 2, 3, 4
        ]  # fmt: skip

    @pytest.mark.parametrize("size", [16, 900, 5000, 100_000])
    def test_choice_without_replacement_is_the_start_of_a_permutation(self, size: int) -> None:
        order = np.asarray(random.permutation(KEY, size))
        numbers = np.arange(size, dtype=np.float32)
        rows = np.stack([numbers, -numbers])
        for draws in (1, size // 16, size // 16 + 1, size):
            first = order[:draws]
            for n, axis, expected in (
                (size, 0, first),
                (numbers, 0, numbers[first]),
                (rows, 1, rows[:, first]),
            ):
                found = random.choice(KEY, n, (draws,), replace=False, axis=axis)
                np.testing.assert_array_equal(found, expected)
        keys = random.split(KEY, 3)
        several = dt.vmap(lambda k: random.choice(k, size, (1,), replace=False))(keys)
        one = [random.permutation(k, size)[:1] for k in keys]
        np.testing.assert_array_equal(several, one)


class TestPermutation:
    def test_numbers(self) -> None:
        for size in (0, 1, 2, 10, 2000):
            x = random.permutation(KEY, size)
            assert sorted(x.tolist()) == list(range(size))
        assert random.permutation(KEY, np.int64(3)).shape == (3,)
        assert random.permutation(KEY, dt.device_put(np.int32(3))).shape == (3,)
        with enable_x64(True):
            assert random.permutation(KEY, 3).dtype == np.int64

    def test_all_orders_are_equally_likely(self) -> None:
        orders = dt.vmap(lambda k: random.permutation(k, 3))(random.split(KEY, 6000))
        counts = np.unique(np.asarray(orders) @ [9, 3, 1], return_counts=True)[1]
        assert len(counts) == 6
        assert scipy.stats.chisquare(counts).pvalue > 0.01

    @pytest.mark.parametrize("axis", [0, 1, -1])
    def test_slices_move_together(self, axis: int) -> None:
        x = np.arange(12).reshape(3, 4)
        y = np.asarray(random.permutation(random.key(1), x, axis))
        assert (np.sort(y, axis) == x).all()
        other = 1 - axis % 2
        rank = np.argsort(np.argsort(y, axis), axis)
        assert (rank == np.take(rank, [0], other)).all()

    def test_independent(self) -> None:
        x = np.broadcast_to(np.arange(20), (30, 20))
        y = np.asarray(random.permutation(KEY, x, 1, independent=True))
        assert (np.sort(y, 1) == x).all()
        assert len({tuple(row) for row in y}) == 30

    @pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "complex64"])
    def test_dtypes(self, dtype: str) -> None:
        x = (np.arange(9) % 4).astype(BFLOAT16 if dtype == "bfloat16" else dtype)
        y = np.asarray(random.permutation(KEY, x))
        assert y.dtype == x.dtype
        assert sorted(map(abs, y.tolist())) == sorted(map(abs, x.tolist()))

    def test_keys(self) -> None:
        keys = random.split(KEY, 6)
        out = random.permutation(random.key(3), keys)
        assert sorted(raw(out)) == sorted(raw(keys))
        matrix = random.permutation(random.key(3), keys.reshape(2, 3), 1, independent=True)
        assert [sorted(r) for r in raw(matrix)] == [sorted(r) for r in raw(keys.reshape(2, 3))]

    def test_gradient(self) -> None:
        x = np.array([3.0, 1.0, 2.0], np.float32)
        weights = np.array([1.0, 2.0, 3.0], np.float32)
        slope = dt.grad(lambda x: (random.permutation(KEY, x) * weights).sum())(x)
        order = random.permutation(KEY, 3)
        assert slope[np.asarray(order)].tolist() == weights.tolist()


class TestArguments:
    def test_shapes(self) -> None:
        for shape, expected in (
            (3, (3,)),
            ([2, 2], (2, 2)),
            ((np.int64(2),), (2,)),
            (np.array([2, 3]), (2, 3)),
            ((), ()),
            ((0, 4), (0, 4)),
        ):
            assert random.uniform(KEY, shape).shape == expected
            assert random.normal(KEY, shape).shape == expected
            assert random.randint(KEY, shape, 0, 9).shape == expected

    @pytest.mark.parametrize("shape", [(1.5,), 2.0, "ab", None, (None,)])
    def test_no_shapes(self, shape: Any) -> None:
        for name in ("bits", "uniform", "normal", "exponential"):
            with pytest.raises(TypeError, match=f"random.{name}.*shape"):
                getattr(random, name)(KEY, shape)

    def test_negative_sizes(self) -> None:
        with pytest.raises(ValueError, match="negative"):
            random.uniform(KEY, (-1,))
        with pytest.raises(ValueError, match="negative"):
            random.split(KEY, -1)

    def test_traced_shape(self) -> None:
        with pytest.raises(TypeError, match="shape"):
            dt.jit(lambda n: random.uniform(KEY, (n,)))(3)

    def test_default_dtypes(self) -> None:
        for on, width in ((False, "32"), (True, "64")):
            with enable_x64(on):
                assert random.bits(KEY).dtype == "uint" + width
                assert random.uniform(KEY).dtype == "float" + width
                assert random.normal(KEY).dtype == "float" + width
                assert random.randint(KEY, (), 0, 5).dtype == "int" + width
                assert random.normal(KEY, (), complex).dtype == f"complex{2 * int(width)}"
                assert random.uniform(KEY, (), float).dtype == "float" + width
                assert random.rademacher(KEY).dtype == "int" + width
                assert random.choice(KEY, 5).dtype == "int" + width
                assert not random.uniform(KEY).weak_type

    @pytest.mark.parametrize(
        ("name", "dtype"),
        [
            ("bits", "int32"),
            ("bits", float),
            ("uniform", int),
            ("uniform", "complex64"),
            ("normal", bool),
            ("normal", "int32"),
            ("exponential", int),
            ("laplace", "int8"),
            ("rademacher", bool),
            ("rademacher", "uint8"),
        ],
    )
    def test_wrong_dtypes(self, name: str, dtype: Any) -> None:
        with pytest.raises(ValueError, match=rf"random\.{name}: dtype must be"):
            getattr(random, name)(KEY, (2,), dtype)

    @pytest.mark.parametrize("dtype", ["float32", bool, "complex64"])
    def test_randint_wants_integers(self, dtype: Any) -> None:
        with pytest.raises(TypeError, match="integers"):
            random.randint(KEY, (2,), 0, 10, dtype)

    def test_unknown_dtype(self) -> None:
        with pytest.raises(TypeError, match="'foo'"):
            random.uniform(KEY, (2,), "foo")

    def test_wide_dtypes_are_narrowed_with_a_warning(self) -> None:
        with pytest.warns(UserWarning, match="float64"):
            assert random.uniform(KEY, (2,), "float64").dtype == np.float32

    def test_bounds_of_uniform(self) -> None:
        low = np.array([0.0, 10.0, 20.0], np.float32)
        x = np.asarray(random.uniform(KEY, (100, 3), minval=low, maxval=low + 1))
        assert (x >= low).all()
        assert (x <= low + 1).all()
        assert random.uniform(KEY, (3,), minval=3.0, maxval=1.0).tolist() == [3.0] * 3
        assert random.uniform(KEY, (2,), minval=-2, maxval=np.int64(-1)).dtype == np.float32
        with pytest.raises(
            ValueError, match=r"minval of shape \(3,\) cannot be broadcast .*\(2,\)"
        ):
            random.uniform(KEY, (2,), minval=low)
        with pytest.raises(ValueError, match=r"maxval of shape \(3,\) .* to shape \(\)"):
            random.uniform(KEY, (), maxval=low)
        with pytest.raises(TypeError, match="minval must be a real number"):
            random.uniform(KEY, (2,), minval=1j)
        with pytest.raises(TypeError, match="maxval"):
            random.uniform(KEY, (2,), maxval="a")

    def test_bounds_of_randint(self) -> None:
        assert random.randint(KEY, (3,), 5, 5).tolist() == [5] * 3
        assert random.randint(KEY, (3,), 9, 5).tolist() == [9] * 3
        low = np.array([0, 100])
        x = np.asarray(random.randint(KEY, (50, 2), low, low + 10))
        assert (x >= low).all()
        assert (x < low + 10).all()
        assert int(random.randint(KEY, (100,), 0, 300, "uint8").max()) > 200
        assert int(random.randint(KEY, (100,), -300, 0, "int8").max()) < 0
        assert int(random.randint(KEY, (100,), 0, 2**32, "uint32").max()) > 2**31
        assert int(random.randint(KEY, (), 256, 300, "uint8")) == 255
        assert 0 <= int(random.randint(KEY, (), 0.0, 10.5)) < 10
        traced = dt.jit(lambda k, n: random.randint(k, (100,), 0, n, "uint8"))
        assert int(traced(KEY, 256).max()) > 200
        with pytest.raises(ValueError, match=r"minval of shape \(2,\) cannot be broadcast"):
            random.randint(KEY, (3,), low, 10)
        with pytest.raises(TypeError, match="maxval"):
            random.randint(KEY, (3,), 0, "a")

    @pytest.mark.parametrize(
        ("low", "high", "dtype", "argument"),
        [
            (0, 2**40, None, "maxval is 1099511627776, and int32 holds"),
            (-(2**40), 0, None, "minval is -1099511627776, and int32 holds"),
            (0, np.int64(2**40), None, "maxval is 1099511627776"),
            (np.int64(-(2**40)), 0, "int8", "minval is -1099511627776, and int8 holds"),
            (0, 2**31 + 1, None, "maxval"),
            (2**31, 2**31 + 5, None, "minval"),
            (0, 3 * 10**9, "int32", "a wider dtype, with 64-bit types switched on"),
            (0, 2**32 + 1, "uint32", "maxval"),
            (0, 2**70, "uint8", "maxval"),
        ],
    )
    def test_bounds_that_no_dtype_holds(
        self, low: Any, high: Any, dtype: Any, argument: str
    ) -> None:
        with pytest.raises(OverflowError, match=f"random.randint: .*{argument}"):
            random.randint(KEY, (2,), low, high, dtype)
        with pytest.raises(OverflowError, match=argument):
            dt.jit(lambda k: random.randint(k, (2,), low, high, dtype))(KEY)

    def test_bounds_that_wider_types_hold(self) -> None:
        assert 0 <= int(random.randint(KEY, (), 0, 2**31)) < 2**31
        assert 0 <= int(random.randint(KEY, (), 0, 3 * 10**9, "uint32")) < 3 * 10**9
        with pytest.raises(OverflowError, match=r"random.choice: a is 1099511627776"):
            random.choice(KEY, 2**40)
        with dt.enable_x64(True):
            numbers = random.randint(KEY, (100,), 0, 2**40)
            assert numbers.dtype == np.int64
            assert 2**31 < int(numbers.max()) < 2**40
            assert int(random.randint(KEY, (), 2**40, 2**41, "uint8")) == 255
            assert 0 <= int(random.choice(KEY, 2**40)) < 2**40
            with pytest.raises(OverflowError, match=r"or a wider dtype$"):
                random.randint(KEY, (), 0, 2**64)

    def test_changed_bounds_compile_nothing(self) -> None:
        random.randint(KEY, (3,), 0, 10)
        random.uniform(KEY, (3,), minval=-1.0, maxval=1.0)
        before = statistics()
        random.randint(KEY, (3,), 5, 7)
        random.uniform(KEY, (3,), minval=-2.0, maxval=0.5)
        assert statistics() == before

    def test_bernoulli_wants_chances(self) -> None:
        for p in (1, 1j, np.array([0, 1])):
            with pytest.raises(TypeError, match="float dtype"):
                random.bernoulli(KEY, p)
        with pytest.raises(ValueError, match="mode must be"):
            random.bernoulli(KEY, 0.5, mode="middle")
        with pytest.raises(ValueError, match="p of shape"):
            random.bernoulli(KEY, np.array([0.5, 0.5]), (3,))

    def test_permutation_errors(self) -> None:
        x = np.arange(6).reshape(2, 3)
        with pytest.raises(ValueError, match="axis 2 is out of bounds"):
            random.permutation(KEY, x, axis=2)
        with pytest.raises(ValueError, match="axis 1 is out of bounds"):
            random.permutation(KEY, 5, axis=1)
        with pytest.raises(ValueError, match="below -1"):
            random.permutation(KEY, -1)
        with pytest.raises(TypeError, match="asarray"):
            random.permutation(KEY, [3, 1, 2])
        for bad in (np.float32(5), 5.0, True):
            with pytest.raises(TypeError, match=r"random.permutation"):
                random.permutation(KEY, bad)
        with pytest.raises(TypeError, match=r"x of random.permutation"):
            dt.jit(lambda n: random.permutation(KEY, n))(3)

    def test_choice_errors(self) -> None:
        with pytest.raises(ValueError, match="nothing to choose from"):
            random.choice(KEY, 0)
        with pytest.raises(ValueError, match=r"6 draws without replacement .* 5 elements"):
            random.choice(KEY, 5, (6,), replace=False)
        with pytest.raises(ValueError, match="p must be a vector of 5"):
            random.choice(KEY, 5, (2,), p=np.ones(4))
        with pytest.raises(TypeError, match="a"):
            random.choice(KEY, [5, 6], (2,))
        assert random.choice(KEY, 0, (0,)).shape == (0,)
        x = np.zeros((2, 5), np.float32)
        assert random.choice(KEY, x, (3, 4), axis=1).shape == (2, 3, 4)
        assert random.choice(KEY, x, (2, 2), axis=1, replace=False).shape == (2, 2, 2)
        assert random.choice(KEY, x, (), axis=1).shape == (2,)

    def test_categorical_errors(self) -> None:
        logits = np.zeros((2, 3), np.float32)
        with pytest.raises(ValueError, match="axis 2 is out of bounds"):
            random.categorical(KEY, logits, axis=2)
        with pytest.raises(ValueError, match="cannot be broadcast"):
            random.categorical(KEY, logits, shape=(4,))
        with pytest.raises(TypeError, match="float dtype"):
            random.categorical(KEY, np.zeros((2, 3), int))
        with pytest.raises(ValueError, match=r"4 draws without replacement"):
            random.categorical(KEY, logits, replace=False, shape=(4, 2))
        with pytest.raises(ValueError, match="mode must be"):
            random.categorical(KEY, logits, mode="x")
        with pytest.raises(ValueError, match="no categories"):
            random.categorical(KEY, np.zeros((2, 0), np.float32))


class TestKeys:
    FUNCTIONS = (
        lambda k: random.split(k),
        lambda k: random.fold_in(k, 1),
        lambda k: random.bits(k),
        lambda k: random.uniform(k),
        lambda k: random.normal(k),
        lambda k: random.randint(k, (), 0, 9),
        lambda k: random.permutation(k, 3),
        lambda k: random.bernoulli(k),
        lambda k: random.gumbel(k),
        lambda k: random.categorical(k, np.zeros(3, np.float32)),
        lambda k: random.choice(k, 3),
        lambda k: random.truncated_normal(k, 0.0, 1.0),
    )

    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_one_key_at_a_time(self, function: Any) -> None:
        for keys in (random.split(KEY), np.zeros((3, 2), np.uint32)):
            with pytest.raises(ValueError, match=r"accepts a single key.*shape \([23],\).*vmap"):
                function(keys)

    @pytest.mark.parametrize("function", FUNCTIONS)
    @pytest.mark.parametrize("key", [0, None, [0, 0], "key"])
    def test_no_keys(self, function: Any, key: Any) -> None:
        with pytest.raises(TypeError, match=r"takes a random key, got"):
            function(key)

    @pytest.mark.parametrize(
        "key",
        [np.zeros(2, np.float32), np.zeros(3, np.uint32), np.zeros(2, np.int32), np.uint32([])],
    )
    def test_no_raw_keys(self, key: Any) -> None:
        for function in (random.split, random.uniform, random.key_data, random.clone):
            with pytest.raises(TypeError, match=r"Raw keys of threefry2x32 .* \(2,\)"):
                function(key)
            with pytest.raises(TypeError, match=r"Raw keys of threefry2x32 .* \(2,\)"):
                dt.jit(function)(key)

    def test_the_older_form_of_keys_can_be_typed(self) -> None:
        seeded = dt.jit(random.PRNGKey)
        assert random.PRNGKey(3).dtype == seeded(3).dtype == np.uint32
        with dt.enable_custom_prng(True):
            for make in (random.PRNGKey, seeded):
                key = make(3)
                assert key.dtype == random.key(3).dtype
                assert random.key_data(key).tolist() == random.key_data(random.key(3)).tolist()
            assert random.key_impl(random.PRNGKey(3, impl="rbg")) == "rbg"
        assert random.PRNGKey(3).dtype == seeded(3).dtype == np.uint32

    @pytest.mark.parametrize("make", [random.key, random.PRNGKey])
    def test_no_seeds(self, make: Any) -> None:
        for seed in (1.5, np.float32(1), 1j, np.True_):
            with pytest.raises(TypeError, match="seed must be an integer"):
                make(seed)
        for seed in ("a", None, [1, 2]):
            with pytest.raises(TypeError, match="seed"):
                make(seed)
        for seed in (np.arange(3), np.array([1])):
            with pytest.raises(TypeError, match=r"accepts a scalar seed.*vmap"):
                make(seed)
        with pytest.raises(TypeError, match="is a key already"):
            make(KEY)
        for seed in (2**63, -(2**63) - 1, 10**30):
            with pytest.raises(OverflowError, match="64 bits"):
                make(seed)

    def test_implementations(self) -> None:
        assert random.key_impl(KEY) == "threefry2x32"
        assert random.key_impl(random.PRNGKey(0)) == "threefry2x32"
        assert random.key(0, impl="threefry2x32").dtype == KEY.dtype
        assert random.key(0, dtype=KEY.dtype).dtype == KEY.dtype
        assert random.key(0, impl=KEY.dtype).dtype == KEY.dtype
        with pytest.raises(ValueError, match=r"'foo'.*'threefry2x32'"):
            random.key(0, impl="foo")
        with pytest.raises(TypeError, match="by its name"):
            random.key(0, impl=3)
        with pytest.raises(ValueError, match="not both"):
            random.key(0, impl="threefry2x32", dtype=KEY.dtype)

    def test_fold_in_numbers(self) -> None:
        for data in (-1, 2**32, 2**40):
            with pytest.raises(OverflowError, match=r"2\*\*32"):
                random.fold_in(KEY, data)
        with pytest.raises(TypeError, match="must be an integer"):
            random.fold_in(KEY, 1.5)
        with pytest.raises(TypeError, match=r"scalar.*vmap"):
            random.fold_in(KEY, np.arange(2))
        assert raw(random.fold_in(KEY, np.uint8(7))) == raw(random.fold_in(KEY, 7))
        for data in (True, np.array(True)):
            assert raw(random.fold_in(KEY, data)) == raw(random.fold_in(KEY, 1))
            assert raw(dt.jit(random.fold_in)(KEY, data)) == raw(random.fold_in(KEY, 1))
        traced = dt.jit(random.fold_in)(KEY, 7)
        assert raw(traced) == raw(random.fold_in(KEY, 7))

    def test_raw_and_typed(self) -> None:
        old = random.PRNGKey(5)
        assert isinstance(old, dt.Array)
        assert old.dtype == np.uint32
        assert random.split(old, (2, 2)).shape == (2, 2, 2)
        assert random.split(old).tolist() == raw(random.split(random.key(5)))
        assert random.fold_in(old, 1).tolist() == raw(random.fold_in(random.key(5), 1))
        assert bool(random.wrap_key_data(old) == random.key(5))
        assert random.key_data(old).tolist() == old.tolist()
        assert random.key_data(np.zeros(2, np.uint32)).tolist() == [0, 0]
        assert random.wrap_key_data(np.ones((3, 2), np.uint32)).shape == (3,)
        assert bool(random.clone(KEY) == KEY)
        assert random.clone(old) is old
        assert random.normal(np.zeros(2, np.uint32)) == random.normal(KEY)

    @pytest.mark.parametrize(
        "data", [KEY, np.ones(3, np.uint32), np.ones(2, np.int32), np.ones(2, np.uint64), [0, 1]]
    )
    def test_wrap_wants_raw_keys(self, data: Any) -> None:
        with pytest.raises(TypeError, match=r"random.wrap_key_data"):
            random.wrap_key_data(data)

    def test_legacy_keys_can_be_refused(self) -> None:
        old = random.PRNGKey(0)
        with (
            config.legacy_prng_key("error"),
            pytest.raises(ValueError, match="legacy_prng_key"),
        ):
            random.uniform(old)
        with (
            config.legacy_prng_key("warn"),
            pytest.warns(UserWarning, match="legacy_prng_key"),
        ):
            random.uniform(old)
        with config.legacy_prng_key("error"):
            random.uniform(KEY)

    def test_seed_offset(self) -> None:
        with config.random_seed_offset(3):
            assert raw(random.key(4)) == [0, 7]
            assert raw(dt.jit(random.key)(4)) == [0, 7]

    def test_default_implementation(self) -> None:
        for name in ("rbg", "unsafe_rbg", "threefry2x32", "threefry4x32", "philox2x32"):
            with config.default_prng_impl(name):
                assert random.key_impl(random.key(0)) == name


def test_public_names() -> None:
    for name in public.__all__:
        assert getattr(public, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'shuffle'"):
        public.shuffle  # noqa: B018
    assert "normal" in dir(public)
