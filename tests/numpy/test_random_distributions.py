"""Distributions with parameters: fixed streams, SciPy's distributions, derivatives, ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import enable_x64, random
from dovetail.extend import evaluate

pytestmark = pytest.mark.laws

KEY = random.key(42)
COV = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)
MEAN = np.array([1.0, 2.0], np.float32)

#: The numbers of JAX 0.12 for the key 42: those that are functions of numbers that are fixed.
FIXED: dict[str, tuple[Callable[[], Any], Any]] = {
    "lognormal": (lambda: random.lognormal(KEY, 0.7, (3,)), [0.98038179, 1.38679075, 1.22997284]),
    "pareto": (lambda: random.pareto(KEY, 2.5, (3,)), [1.30777478, 1.57699358, 1.46686578]),
    "rayleigh": (lambda: random.rayleigh(KEY, 2.5, (3,)), [2.99162769, 2.1964767, 2.45984674]),
    "weibull": (
        lambda: random.weibull_min(KEY, 2.0, 3.0, (3,)),
        [1.75077951, 2.08855486, 1.97147512],
    ),
    "triangular": (
        lambda: random.triangular(KEY, 1.0, 2.0, 4.0, (3,)),
        [2.24850273, 2.61392021, 2.48264337],
    ),
    "maxwell": (lambda: random.maxwell(KEY, (3,)), [0.55358249, 0.29328507, 1.70860302]),
    "double_sided_maxwell": (
        lambda: random.double_sided_maxwell(KEY, 1.0, 2.0, (3,)),
        [-1.76204348, -0.35137796, 5.44404268],
    ),
    "wald": (lambda: random.wald(KEY, 2.0, (3,)), [2.22658849, 3.92771244, 0.38947535]),
    "geometric": (lambda: random.geometric(KEY, 0.3, (6,)), [3, 2, 2, 2, 3, 2]),
    "multivariate_normal": (
        lambda: random.multivariate_normal(KEY, MEAN, COV, (2,)),
        [[0.95997125, 2.42695475], [1.41818714, 2.24817586]],
    ),
    "orthogonal": (
        lambda: random.orthogonal(KEY, 2),
        [[-0.09528422, 0.99545008], [0.99545008, 0.09528428]],
    ),
}


@pytest.mark.parametrize("name", FIXED)
def test_fixed_values(name: str) -> None:
    draw, expected = FIXED[name]
    np.testing.assert_allclose(draw(), expected, rtol=1e-5)


SIZE = (50_000,)
Draw = Callable[[Any, str], Any]

CONTINUOUS: dict[str, tuple[Draw, Any]] = {
    "lognormal": (lambda k, d: random.lognormal(k, 0.7, SIZE, d), scipy.stats.lognorm(0.7)),
    "pareto": (lambda k, d: random.pareto(k, 2.5, SIZE, d), scipy.stats.pareto(2.5)),
    "rayleigh": (lambda k, d: random.rayleigh(k, 2.0, SIZE, d), scipy.stats.rayleigh(scale=2)),
    "weibull": (
        lambda k, d: random.weibull_min(k, 2.0, 0.7, SIZE, d),
        scipy.stats.weibull_min(0.7, scale=2),
    ),
    "triangular": (
        lambda k, d: random.triangular(k, -1.0, 2.0, 3.0, SIZE, d),
        scipy.stats.triang(0.75, -1, 4),
    ),
    "maxwell": (lambda k, d: random.maxwell(k, SIZE, d), scipy.stats.maxwell()),
    "wald": (lambda k, d: random.wald(k, 0.3, SIZE, d), scipy.stats.invgauss(0.3)),
    "gamma, tiny": (
        # Whose numbers vanish: logarithms, of which exp(a * x) is nearly uniform.
        lambda k, d: jnp.exp(1e-3 * random.loggamma(k, 1e-3, SIZE, d)),
        scipy.stats.uniform(0, 1.0005),
    ),
    "gamma, small": (lambda k, d: random.gamma(k, 0.3, SIZE, d), scipy.stats.gamma(0.3)),
    "gamma": (lambda k, d: random.gamma(k, 2.5, SIZE, d), scipy.stats.gamma(2.5)),
    "gamma, large": (lambda k, d: random.gamma(k, 1e4, SIZE, d), scipy.stats.gamma(1e4)),
    "beta": (lambda k, d: random.beta(k, 0.5, 2.0, SIZE, d), scipy.stats.beta(0.5, 2)),
    "chisquare": (lambda k, d: random.chisquare(k, 3.0, SIZE, d), scipy.stats.chi2(3)),
    "t": (lambda k, d: random.t(k, 4.0, SIZE, d), scipy.stats.t(4)),
    "f": (lambda k, d: random.f(k, 5.0, 7.0, SIZE, d), scipy.stats.f(5, 7)),
    "generalized_normal": (
        lambda k, d: random.generalized_normal(k, 3.0, SIZE, d),
        scipy.stats.gennorm(3),
    ),
    "dirichlet": (
        lambda k, d: random.dirichlet(k, np.array([1.0, 2.0, 3.0]), SIZE, d)[:, 1],
        scipy.stats.beta(2, 4),
    ),
    "gamma, one": (lambda k, d: random.gamma(k, 1.0, SIZE, d), scipy.stats.expon()),
    "beta, ones": (lambda k, d: random.beta(k, 1.0, 1.0, SIZE, d), scipy.stats.uniform()),
    "dirichlet, ones": (
        lambda k, d: random.dirichlet(k, np.ones(4), SIZE, d)[:, 3],
        scipy.stats.beta(1, 3),
    ),
    "ball": (
        lambda k, d: abs(random.ball(k, 3, 1.0, SIZE, d)).sum(-1) ** 3,
        scipy.stats.uniform(),
    ),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, "float32") for name in CONTINUOUS), ("gamma", "float64"), ("wald", "float64")],
)
def test_kolmogorov_smirnov(name: str, dtype: str) -> None:
    draw, distribution = CONTINUOUS[name]
    with enable_x64(dtype == "float64"):
        x = draw(random.key(8), dtype)
    assert x.dtype == dtype
    assert scipy.stats.kstest(np.asarray(x, np.float64), distribution.cdf).pvalue > 0.005


def is_drawn_from(x: Any, distribution: Any) -> bool:
    """Whether a test of chi-squared finds nothing against it."""
    x = np.asarray(x, np.float64)
    assert (x == np.floor(x)).all()
    low, high = distribution.ppf(1e-4), distribution.ppf(1 - 1e-4)
    edges = np.unique(np.floor(np.linspace(low, high, 40)))
    expected = np.diff(np.r_[0, distribution.cdf(edges), 1]) * x.size
    found = np.histogram(x, np.r_[-np.inf, edges + 0.5, np.inf])[0]
    kept = expected > 5
    distance = ((found - expected)[kept] ** 2 / expected[kept]).sum()
    return bool(scipy.stats.chi2(kept.sum() - 1).sf(distance) > 0.003)


def test_poisson_numbers() -> None:
    means = np.array([0.01, 3.0, 9.99, 10.0, 300.0, 1e5], np.float32)
    counts = random.poisson(random.key(5), means[:, None], (6, *SIZE))
    for mean, row in zip(means.tolist(), counts, strict=True):
        assert is_drawn_from(row, scipy.stats.poisson(mean)), mean


def test_binomial_numbers() -> None:
    trials = np.array([1, 20, 40, 1000, 1000, 10**5])
    chances = np.array([0.3, 0.97, 0.25, 0.005, 0.5, 0.7], np.float32)
    counts = random.binomial(random.key(6), trials[:, None], chances[:, None], (6, *SIZE))
    for n, p, row in zip(trials.tolist(), chances.tolist(), counts, strict=True):
        assert is_drawn_from(row, scipy.stats.binom(n, p)), (n, p)


def test_other_counts() -> None:
    assert is_drawn_from(random.geometric(KEY, 0.2, SIZE), scipy.stats.geom(0.2))
    x = random.multinomial(KEY, 50, np.array([0.2, 0.3, 0.5], np.float32), shape=SIZE)
    for p, column in zip((0.2, 0.3, 0.5), x.T, strict=True):
        assert is_drawn_from(column, scipy.stats.binom(50, p))
    assert (x.sum(-1) == 50).all()


def test_gamma_derivatives_follow_the_quantiles() -> None:
    """With the chance of what lies below held, by central differences of SciPy's inverse."""
    a = np.repeat([1e-2, 0.5, 2.0, 50.0], 32)
    ones = np.ones(a.size)
    with enable_x64(True):
        x, slope = dt.jvp(lambda a: random.gamma(KEY, a), (a,), (ones,))
        logs, log_slope = dt.jvp(lambda a: random.loggamma(KEY, a), (a,), (ones,))
    np.testing.assert_allclose(np.exp(logs), x, rtol=1e-12)
    kept = np.asarray(x) > 1e-200
    a, x, slope, log_slope = (np.asarray(y)[kept] for y in (a, x, slope, log_slope))
    below, step = scipy.special.gammainc(a, x), 1e-5 * a
    ends = [scipy.special.gammaincinv(a + s, below) for s in (step, -step)]
    expected = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(slope, expected, rtol=1e-4)
    np.testing.assert_allclose(log_slope, expected / x, rtol=1e-4)
    # Of numbers that vanish, too: their derivatives are too small to be told.
    vanishing = dt.grad(lambda a: random.gamma(KEY, a, (100,)).sum())(1e-3)
    assert np.isfinite(vanishing)
    tiny = dt.grad(lambda a: random.loggamma(KEY, a))(1e-6)
    assert np.isfinite(tiny)
    assert tiny > 0


def test_derivatives_of_parameters_are_finite() -> None:
    functions: dict[str, Callable[[Any], Any]] = {
        "beta": lambda x: random.beta(KEY, x, 2.0, (9,)),
        "dirichlet": lambda x: random.dirichlet(KEY, jnp.stack([x, 1.0, 2 * x]), (9,)),
        "t": lambda x: random.t(KEY, x, (9,)),
        "pareto": lambda x: random.pareto(KEY, x, (9,)),
        "triangular": lambda x: random.triangular(KEY, 0.0, x, 2.0, (9,)),
        "wald": lambda x: random.wald(KEY, x, (9,)),
        "multivariate_normal": lambda x: random.multivariate_normal(KEY, MEAN, x * COV, (9,)),
    }
    for name, function in functions.items():
        slope = dt.grad(lambda x, f=function: f(x)[..., :1].sum())(1.5)
        assert np.isfinite(slope), name
        assert slope != 0, name


def test_ends() -> None:
    ends = np.array([0.0, -1.0, np.nan, np.inf, 1e-30], np.float32)
    np.testing.assert_array_equal(random.gamma(KEY, ends), [0, np.nan, np.nan, np.inf, 0])
    logs = random.loggamma(KEY, ends)
    np.testing.assert_array_equal(logs[:4], [-np.inf, np.nan, np.nan, np.inf])
    assert np.isfinite(logs[4])
    means = np.array([0.0, -1.0, np.nan, np.inf], np.float32)
    assert random.poisson(KEY, means).tolist() == [0, -1, -1, 2**31 - 1]
    assert abs(int(random.poisson(KEY, 1e9)) - 1e9) < 1e6
    trials = np.array([0.0, 5, 5, -1, 5, 5], np.float32)
    chances = np.array([0.5, 0, 1, 0.5, 1.5, np.nan], np.float32)
    expected = [0, 0, 5, np.nan, np.nan, np.nan]
    np.testing.assert_array_equal(random.binomial(KEY, trials, chances), expected)
    assert random.geometric(KEY, 1.0, (9,)).tolist() == [1] * 9
    assert np.isfinite(random.rayleigh(KEY, 1.0, (10**5,), "bfloat16").astype("float32")).all()
    # Neither does the sum of large numbers overflow, nor do all small ones vanish.
    large = np.array([1e38, 1e38, 2e38], np.float32)
    np.testing.assert_allclose(random.dirichlet(KEY, large), [0.25, 0.25, 0.5], rtol=1e-5)
    small = random.dirichlet(KEY, np.full(4, 1e-4, np.float32), (200,))
    np.testing.assert_allclose(small.sum(-1), np.ones(200), rtol=1e-5)
    counts = random.multinomial(KEY, np.array([3, 7]), np.array([[1.0, 3.0, 0.0]]))
    assert counts.shape == (2, 3)
    assert counts.sum(-1).tolist() == [3, 7]
    assert counts[:, 2].tolist() == [0, 0]


def test_orthogonal_matrices() -> None:
    for dtype in ("float32", "complex64"):
        for n, m in ((3, 3), (4, 2), (2, 4), (3, 0)):
            q = np.asarray(random.orthogonal(KEY, n, (2,), dtype, m))
            assert (q.shape, q.dtype) == ((2, n, m), dtype)
            tall = q if n >= m else q.swapaxes(-1, -2)
            product = tall.conj().swapaxes(-1, -2) @ tall
            np.testing.assert_allclose(
                product, np.broadcast_to(np.eye(min(n, m)), product.shape), atol=1e-5
            )


def test_covariances() -> None:
    flat = np.array([[1.0, 1.0], [1.0, 1.0]], np.float32)
    for method, cov in (("cholesky", COV), ("eigh", COV), ("svd", COV), ("eigh", flat)):
        x = random.multivariate_normal(KEY, MEAN, cov, (20_000,), method=method)
        np.testing.assert_allclose(np.cov(np.asarray(x).T), cov, atol=0.06)
        np.testing.assert_allclose(x.mean(0), MEAN, atol=0.05)


DRAWS: dict[str, Callable[[Any], Any]] = {
    "gamma": lambda k: random.gamma(k, np.array([0.3, 2.0, 50.0], np.float32), (5, 3)),
    "poisson": lambda k: random.poisson(k, np.array([0.3, 9.0, 50.0], np.float32), (5, 3)),
    "binomial": lambda k: random.binomial(k, 60, np.array([0.1, 0.5, 0.99], np.float32), (5, 3)),
    # So many that they are drawn in several windows.
    "poisson, many": lambda k: random.poisson(k, np.float32([[0.3], [9.0], [50.0]]), (3, 1000)),
    "beta": lambda k: random.beta(k, 0.5, 3.0, (5,), "float16"),
    "wald": lambda k: random.wald(k, 0.5, (5,), "bfloat16"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_compiled_and_mapped(name: str) -> None:
    draw, keys = DRAWS[name], random.split(KEY, 3)
    one_by_one = [np.asarray(draw(k), np.float64) for k in keys]
    np.testing.assert_allclose(dt.jit(draw)(keys[0]), one_by_one[0], rtol=1e-5)
    np.testing.assert_allclose(dt.vmap(draw)(keys), one_by_one, rtol=1e-5)
    raw = random.key_data(keys[0])
    np.testing.assert_allclose(draw(raw), one_by_one[0], rtol=1e-5)
    assert len({x.tobytes() for x in one_by_one}) == 3


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("log_space", [False, True])
def test_rules_of_the_primitive_agree(log_space: bool, dtype: str) -> None:
    keys = random.split(KEY, 3)
    a = np.array([[0.3, 1.0], [2.5, 30.0]], dtype)

    def draw(keys: Any, a: Any) -> Any:
        return random.random_gamma_p.bind(keys, a, log_space=log_space)

    def draw_raw(words: Any, a: Any) -> Any:
        return draw(random.wrap_key_data(words), a)

    one_by_one = [np.asarray(draw(key, a)) for key in keys]
    rtol = 1e-5 if dtype == "float32" else 2e-3
    for found in (
        draw(keys, np.stack([a] * 3)),
        dt.vmap(draw, in_axes=(0, None))(keys, a),
        dt.vmap(draw, in_axes=(0, 2))(keys, np.stack([a] * 3, 2)),
        dt.jit(dt.vmap(draw, in_axes=(0, None), out_axes=1))(keys, a).transpose(1, 0, 2),
    ):
        np.testing.assert_allclose(found, one_by_one, rtol)
    np.testing.assert_allclose(dt.vmap(draw, (None, 0))(keys[1], a)[0], draw(keys[1], a[0]), rtol)
    words = np.asarray(random.key_data(keys[2]))
    (reference,) = evaluate(dt.make_jaxpr(draw_raw)(words, a), [words, a], platform="numpy")
    np.testing.assert_allclose(reference, one_by_one[2], rtol)
    public = random.loggamma if log_space else random.gamma
    np.testing.assert_array_equal(public(keys[2], a, dtype=dtype), one_by_one[2])
    assert str(dt.make_jaxpr(public)(KEY, a)).count(f"random_gamma[log_space={log_space}]") == 1


@pytest.mark.parametrize(
    ("keys", "a", "text"),
    [
        (KEY, np.arange(3), "parameters of a float dtype, got i32"),
        (np.ones(2, np.uint32), MEAN, "typed keys, got u32"),
        (random.split(KEY, 3), MEAN, "whose leading dimensions are those of the keys"),
    ],
)
def test_wrong_operands_of_the_primitive(keys: Any, a: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        random.random_gamma_p.bind(keys, a, log_space=False)


def test_the_primitive_uses_its_key() -> None:
    key = random.key(7)
    with dt.debug_key_reuse(True):
        dt.jit(lambda key: random.random_gamma_p.bind(key, MEAN, log_space=False))(key)
        with pytest.raises(dt.errors.KeyReuseError, match="used at"):
            random.bits(key)


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_other_keys(impl: str) -> None:
    key = random.key(3, impl=impl)
    assert abs(float(random.gamma(key, 2.0, (5000,)).mean()) - 2) < 0.1
    assert abs(float(random.poisson(key, 30.0, (5000,)).mean()) - 30) < 0.5


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: random.gamma(KEY, 1j), TypeError, r"random.gamma: a must be a real number"),
        (lambda: random.gamma(KEY, np.ones(3), (2,)), ValueError, r"a of shape \(3,\) cannot be"),
        (lambda: random.gamma(KEY, 1.0, dtype=int), ValueError, "dtype must be a float dtype"),
        (lambda: random.gamma(KEY, 1.0, method="quick"), ValueError, "method must be 'exact'"),
        (lambda: random.gamma(random.split(KEY), 1.0), ValueError, "accepts a single key"),
        (lambda: random.gamma(3, 1.0), TypeError, "takes a random key"),
        (lambda: random.beta(KEY, np.ones(2), np.ones(3)), ValueError, "broadcast"),
        (lambda: random.poisson(KEY, 1.0, dtype=float), ValueError, "an integer dtype"),
        (lambda: random.ball(KEY, -1), ValueError, "d must not be negative"),
        (lambda: random.ball(KEY, 2, np.ones(2)), ValueError, r"p of shape \(2,\)"),
        (lambda: random.dirichlet(KEY, 1.0), ValueError, "must be a vector"),
        (lambda: random.multinomial(KEY, 3, 1.0), ValueError, "must be a vector"),
        (lambda: random.orthogonal(KEY, 2.5), TypeError, "n to be an integer"),
        (lambda: random.orthogonal(KEY, 2, m=-1), ValueError, "must not be negative"),
        (lambda: random.multivariate_normal(KEY, MEAN, MEAN), ValueError, r"cov \(\.\.\., n, n\)"),
        (lambda: random.multivariate_normal(KEY, MEAN, COV, method="lu"), ValueError, "'cholesky'"),
        (lambda: random.t(KEY, 1.0, (-1,)), ValueError, "negative"),
        (lambda: random.wald(KEY, "1"), TypeError, "mean"),
    ],
)
def test_wrong_arguments(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
