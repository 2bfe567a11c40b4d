"""Special functions against mpmath and SciPy: values, edges, dtypes, derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import dovetail as dt
from dovetail import lax
from dovetail import numpy as jnp
from dovetail.scipy import special

pytestmark = pytest.mark.tables

NDArray = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(20)


def exact(function: Callable[..., Any]) -> Callable[..., NDArray]:
    """A function of mpmath on arrays, with many digits."""

    def computed(*args: NDArray) -> NDArray:
        with mpmath.workdps(50):
            rows = zip(*([mpmath.mpf(float(e)) for e in x] for x in args), strict=True)
            return np.array([float(function(*row)) for row in rows])

    return computed


def errors(got: NDArray, wanted: NDArray) -> NDArray:
    """Differences in units in the last place of what is wanted."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(got.dtype)
        unit = np.maximum(np.spacing(np.abs(rounded)).astype(float), float(info.tiny * info.eps))
        distance = np.abs(got.astype(float) - wanted) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    # Programs flush what is subnormal.
    same |= (np.abs(wanted) < info.tiny) & (np.abs(got) <= info.tiny)
    return np.where(same, 0, np.where(np.isnan(distance), np.inf, distance))


def grid(low: float, high: float, count: int = 100) -> NDArray:
    return RANDOM.uniform(low, high, count)


def powers(low: float, high: float, count: int = 100) -> NDArray:
    return np.exp(grid(np.log(low), np.log(high), count))


def log_normal(x: Any) -> Any:
    return mpmath.log(mpmath.ncdf(x)) if x < 0 else mpmath.log1p(-mpmath.ncdf(-x))


def divergence(p: Any, q: Any) -> Any:
    return p * mpmath.log(p / q) - p + q


def power(x: Any, n: Any) -> Any:
    return mpmath.expm1(n * mpmath.log(x)) / n


def log_beta(a: Any, b: Any) -> Any:
    return mpmath.log(abs(mpmath.beta(a, b)))


LOWER = grid(0.1, 3)
CLOSE = LOWER * np.r_[grid(0.99, 1.01, 50), grid(0.2, 5, 50)]

#: Reference, operands, the most units in the last place in float32 and in float64.
TABLE: dict[str, tuple[Callable[..., Any], tuple[NDArray, ...], float, float]] = {
    "ndtr": (exact(mpmath.ncdf), (np.r_[grid(-37, 3), grid(-12, 3)],), 4, 5),
    "log_ndtr": (exact(log_normal), (np.r_[grid(-37, 7), -powers(1, 1e15)],), 4, 5),
    "ndtri": (scipy.special.ndtri, (np.r_[grid(0, 1), powers(1e-37, 1)],), 4, 8),
    "erf": (exact(mpmath.erf), (grid(-3, 3),), 5, 4),
    "erfc": (exact(mpmath.erfc), (grid(-3, 9),), 4, 4),
    "erfinv": (exact(mpmath.erfinv), (grid(-1, 1),), 4, 5),
    "erfcinv": (scipy.special.erfcinv, (np.r_[grid(0, 2), powers(1e-37, 1)],), 4, 8),
    "gammaln": (exact(lambda x: mpmath.log(abs(mpmath.gamma(x)))), (powers(1e-3, 1e6),), 4, 6),
    "loggamma": (exact(mpmath.loggamma), (powers(1e-3, 1e6),), 4, 6),
    "gamma": (exact(mpmath.gamma), (np.r_[grid(-5.5, 30), powers(1e-20, 170)],), 1, 10),
    "digamma": (exact(lambda x: mpmath.psi(0, x)), (grid(-3, 30),), 4, 8),
    "beta": (exact(mpmath.beta), (grid(0.1, 30), grid(-5, 30)), 1, 200),
    "betaln": (exact(log_beta), (powers(1e-3, 1e8), powers(1e-3, 1e8)), 1, 20),
    "poch": (exact(mpmath.rf), (np.r_[grid(-5, 50), powers(50, 1e6)], grid(-3, 6, 200)), 1, 200),
    "expit": (scipy.special.expit, (grid(-80, 80),), 4, 4),
    "logit": (scipy.special.logit, (grid(0, 1),), 4, 4),
    "entr": (scipy.special.entr, (grid(-1, 3),), 4, 4),
    "xlogy": (scipy.special.xlogy, (grid(-3, 3), grid(0, 3)), 4, 4),
    "xlog1py": (scipy.special.xlog1py, (grid(-3, 3), grid(-1, 3)), 4, 4),
    "rel_entr": (scipy.special.rel_entr, (LOWER, CLOSE), 4, 4),
    "kl_div": (exact(divergence), (LOWER, CLOSE), 1, 20),
    "boxcox": (exact(power), (powers(1e-3, 50), grid(-6, 6)), 1, 30),
    "comb": (exact(mpmath.binomial), (grid(30, 60), grid(0, 30)), 1, 300),
    "factorial": (scipy.special.factorial, (np.arange(-2, 168.0),), 1, 10),
}


@pytest.mark.parametrize("name", TABLE)
def test_values(name: str) -> None:
    reference, operands, *bars = TABLE[name]
    with dt.enable_x64(True):
        for dtype, bar in zip(("float32", "float64"), bars, strict=True):
            rounded = [x.astype(dtype) for x in operands]
            got = np.asarray(getattr(special, name)(*rounded))
            assert got.dtype == dtype
            found = errors(got, np.asarray(reference(*(x.astype(float) for x in rounded))))
            worst = int(found.argmax())
            assert found[worst] <= bar, (dtype, [x[worst] for x in rounded], found[worst])


NAN, INF = np.nan, np.inf
UNARY = np.array([-INF, -2, -1, -0.5, -0.0, 0, 0.5, 1, 2, 3, INF, NAN], "float32")
SPECIAL = [-INF, -3, -1, -0.5, 0, 0.5, 1, 2, INF, NAN]
FIRST, SECOND = (x.ravel().astype("float32") for x in np.meshgrid(SPECIAL, SPECIAL))


@pytest.mark.parametrize(
    "name",
    [
        *("ndtr", "log_ndtr", "ndtri", "erf", "erfc", "erfinv", "erfcinv", "gammaln", "loggamma"),
        *("gamma", "gammasgn", "digamma", "expit", "logit", "entr", "factorial"),
    ],
)
def test_edges_of_one_operand(name: str) -> None:
    got = np.asarray(getattr(special, name)(UNARY))
    wanted = getattr(scipy.special, name)(UNARY.astype(float))
    known = np.ones(UNARY.shape, bool)
    if name == "digamma":
        # Of JAX: the limit of the pole at 0 from above, whatever the sign of the zero.
        known &= UNARY != 0
    if name == "gammaln":
        # Of JAX: the logarithm of what is unbounded on both sides.
        known &= UNARY != -INF
    if name == "factorial":
        known &= ~np.isnan(UNARY)
    np.testing.assert_allclose(got[known], wanted[known], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div"])
def test_edges_of_two_operands(name: str) -> None:
    got = np.asarray(getattr(special, name)(FIRST, SECOND))
    wanted = getattr(scipy.special, name)(FIRST.astype(float), SECOND.astype(float))
    finite = np.isfinite(FIRST) & np.isfinite(SECOND)
    # What is infinite less infinity is left to each library.
    np.testing.assert_allclose(got[finite], wanted[finite], rtol=1e-5, atol=1e-6)


def test_poles_that_cancel() -> None:
    a = np.array([-1, -3, -3, 0, -1, -1.5, 0.5], "float32")
    b = np.array([1, 2, 4, 1, 3, 3, -0.5], "float32")
    np.testing.assert_allclose(special.beta(a, b), scipy.special.beta(a, b), rtol=1e-6)
    np.testing.assert_allclose(special.betaln(a, b), scipy.special.betaln(a, b), rtol=1e-6)
    z = np.array([-1, -2, 0, 0, 5, -3, -3, -3, -2.5], "float32")
    m = np.array([1, 3, 0, 1, -2, 2, -2, 4, 3], "float32")
    np.testing.assert_allclose(special.poch(z, m), scipy.special.poch(z, m), rtol=1e-6)


def test_powers_of_box_and_cox_at_their_edges() -> None:
    x = np.array([0, 0, 0, 2, 2, -1, 1e30, 1e-5], "float32")
    n = np.array([0, -1, 2, 0, 1e-8, 2, 0.5, 0], "float32")
    np.testing.assert_allclose(special.boxcox(x, n), scipy.special.boxcox(x, n), rtol=1e-6)
    shifted = x - 1
    wanted = scipy.special.boxcox1p(shifted.astype(float), n.astype(float))
    np.testing.assert_allclose(special.boxcox1p(shifted, n), wanted, rtol=1e-6)
    tiny = special.boxcox1p(np.float32(1e-12), 0.5)
    np.testing.assert_allclose(tiny, 1e-12, rtol=1e-6)


def test_combinations() -> None:
    n, k = (x.ravel() for x in np.meshgrid(np.arange(-2, 24), np.arange(-2, 24)))
    got = special.comb(n.astype("int8"), k.astype("int8"))
    np.testing.assert_array_equal(got, scipy.special.comb(n, k).astype("float32"))
    inside = (n >= 0) & (k >= 0)
    got = special.comb(n[inside], k[inside], repetition=True)
    wanted = scipy.special.comb(n[inside], k[inside], repetition=True)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_bernoulli_numbers() -> None:
    with dt.enable_x64(True):
        got = np.asarray(special.bernoulli(264))
    np.testing.assert_allclose(got[:200], scipy.special.bernoulli(199), rtol=1e-11)
    with mpmath.workdps(30):
        for order in (2, 4, 6, 60, 258):
            assert got[order] == float(mpmath.bernoulli(order))
    assert got[259:265].tolist() == [0, -INF, 0, INF, 0, -INF]
    assert np.asarray(special.bernoulli(0)).tolist() == [1.0]
    assert np.asarray(special.bernoulli(1)).tolist() == [1.0, -0.5]


@pytest.mark.laws
def test_complex_numbers() -> None:
    z = (grid(-20, 20) + 1j * grid(-9, 9)).astype("complex64")
    z = np.r_[z, np.array([-1.5 + 0j, complex(-1.5, -0.0), 3, 1 + 1e-3j], "complex64")]
    got = np.asarray(special.loggamma(z))
    assert got.dtype == "complex64"
    np.testing.assert_allclose(got, scipy.special.loggamma(z.astype(complex)), rtol=2e-7)
    few = z[np.abs(z) < 12]
    np.testing.assert_allclose(special.gamma(few), scipy.special.gamma(few.astype(complex)), 2e-6)
    assert np.isnan(special.loggamma(np.complex64(-1)))
    z = np.array([0.5 + 1j, -2 + 0.3j], "complex64")
    np.testing.assert_allclose(special.expit(special.logit(z)), z, rtol=1e-6)
    np.testing.assert_allclose(special.boxcox(z, 2), (z**2 - 1) / 2, rtol=1e-5)
    np.testing.assert_allclose(special.xlogy(z, z), scipy.special.xlogy(z, z), rtol=1e-6)
    slope = dt.grad(special.loggamma, holomorphic=True)(z[0])
    np.testing.assert_allclose(slope, scipy.special.digamma(complex(z[0])), rtol=1e-6)


@pytest.mark.laws
def test_sums_of_exponentials() -> None:
    x = np.array([[1, 1000, -INF], [0, 2, 3]], "float32")
    for axis in (None, 0, 1, (0, 1)):
        for name in ("softmax", "log_softmax", "logsumexp"):
            wanted = getattr(scipy.special, name)(x.astype(float), axis=axis)
            got = getattr(special, name)(x, axis=axis)
            np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-30)
    value, sign = special.logsumexp(x[1], b=np.array([1.0, -3, 1], "float32"), return_sign=True)
    wanted = scipy.special.logsumexp(x[1], b=[1, -3, 1], return_sign=True)
    np.testing.assert_allclose([value, sign], wanted, rtol=1e-4)
    with pytest.raises(TypeError, match="softmax"):
        special.softmax(x, 0)  # type: ignore[misc]


DERIVATIVES: dict[str, tuple[tuple[float, ...], int]] = {
    "ndtr": ((-3.3,), 2),
    "log_ndtr": ((-3.3,), 2),
    "ndtri": ((0.03,), 1),
    "erfcinv": ((0.01,), 1),
    "gamma": ((-1.7,), 1),
    "beta": ((2.3, 1.4), 1),
    "poch": ((2.3, 1.4), 1),
    "logit": ((0.3,), 1),
    "entr": ((0.3,), 1),
    "xlogy": ((2.3, 1.4), 1),
    "kl_div": ((1.45, 1.4), 2),
    "boxcox": ((2.3, 0.01), 2),
    "boxcox1p": ((2.3, -1.4), 1),
}


@pytest.mark.laws
def test_derivatives_are_those_of_the_values() -> None:
    # One program for all of them: central differences beside derivatives, in float64.
    step = 1e-5

    def both(name: str, point: Any, order: int) -> Any:
        function = getattr(special, name)
        rows = []
        for i in range(len(point)):
            for _ in range(order):
                ends = [
                    function(*(x + sign * step * (i == j) for j, x in enumerate(point)))
                    for sign in (-1, 1)
                ]
                rows.append((dt.grad(function, i)(*point), (ends[1] - ends[0]) / (2 * step)))
                function = dt.grad(function, i)
            function = getattr(special, name)
        return rows

    with dt.enable_x64(True):
        points = {name: point for name, (point, _) in DERIVATIVES.items()}
        program = dt.jit(lambda p: {name: both(name, p[name], DERIVATIVES[name][1]) for name in p})
        for name, rows in program(points).items():
            for got, wanted in rows:
                np.testing.assert_allclose(got, wanted, rtol=2e-6, err_msg=name)


@pytest.mark.laws
def test_derivatives_far_out_and_at_edges() -> None:
    far = np.array([-1e18, -1e4, -20.0, 30.0], "float32")
    first = dt.vmap(dt.grad(special.log_ndtr))(far)
    np.testing.assert_allclose(first[:3], [1e18, 1e4, 20.04975], rtol=1e-6)
    assert first[3] < 1e-37
    second = dt.vmap(dt.grad(dt.grad(special.log_ndtr)))(far)
    np.testing.assert_allclose(second[:3], [-1, -1, -0.997543], rtol=1e-5)
    edges = np.array([-INF, INF, NAN], "float32")
    np.testing.assert_array_equal(dt.vmap(dt.grad(special.log_ndtr))(edges), [INF, 0, NAN])
    np.testing.assert_array_equal(dt.vmap(dt.grad(special.ndtr))(edges), [0, 0, NAN])
    assert dt.grad(special.entr)(0.0) == INF
    assert np.isnan(dt.grad(special.entr)(-1.0))
    np.testing.assert_allclose(dt.grad(special.xlogy, (0, 1))(0.0, 2.0), [np.log(2), 0], rtol=1e-6)
    assert dt.grad(special.xlogy, 1)(0.0, 0.0) == 0
    half_square = np.log(2) ** 2 / 2
    np.testing.assert_allclose(dt.grad(special.boxcox, 1)(2.0, 0.0), half_square, rtol=1e-6)
    assert dt.grad(special.kl_div, (0, 1))(1.0, 1.0) == (0, 0)


@pytest.mark.laws
def test_dtypes_and_shapes() -> None:
    for name in ("log_ndtr", "gamma", "comb", "kl_div"):
        function = getattr(special, name)
        count = 1 + (name in ("comb", "kl_div"))
        wide = np.asarray(function(*[np.float32(1.5)] * count))
        for dtype in (jnp.float16, jnp.bfloat16):
            got = function(*[jnp.asarray(1.5, dtype)] * count)
            assert got.dtype == dtype
            assert got == jnp.asarray(wide, dtype), name
        assert function(*[2] * count).dtype == function(*[np.uint8(2)] * count).dtype == "float32"
        assert function(*[jnp.zeros((0, 3))] * count).shape == (0, 3)
        if name != "gamma":
            with pytest.raises(TypeError, match=name):
                function(*[1j] * count)
    assert special.comb(jnp.ones((2, 1)), jnp.ones(3)).shape == (2, 3)
    weak = dt.jit(lambda x: special.betaln(x, 1.0) + jnp.asarray(1, jnp.bfloat16))(2.0)
    assert weak.dtype == jnp.bfloat16


@pytest.mark.laws
def test_multivariate_gamma_and_polygamma() -> None:
    a = np.array([1.1, 2.5, 40], "float32")
    wanted = [scipy.special.multigammaln(float(x), 3) for x in a]
    np.testing.assert_allclose(special.multigammaln(a, 3), wanted, rtol=1e-6)
    assert np.isnan(special.multigammaln(0.9, 3))
    many, wanted = special.multigammaln(np.float64(50.5), 40), scipy.special.multigammaln(50.5, 40)
    np.testing.assert_allclose(many, wanted, rtol=1e-6)
    slope = dt.grad(special.multigammaln)(2.5, 3)
    np.testing.assert_allclose(slope, scipy.special.digamma([2.5, 2, 1.5]).sum(), rtol=1e-6)
    n = np.array([0, 1, 2, 3])
    x = np.array([0.5, 2, 3, 7], "float32")
    np.testing.assert_allclose(special.polygamma(n, x), scipy.special.polygamma(n, x), rtol=1e-6)
    a, y = np.float32([0.5, 3]), np.float32([2, 1])
    np.testing.assert_allclose(special.gammainc(a, y), scipy.special.gammainc(a, y), rtol=1e-6)
    np.testing.assert_allclose(special.gammaincc(a, y), scipy.special.gammaincc(a, y), rtol=1e-6)
    got = special.betainc(1, np.array([2.0, 3]), np.float32(0.5))
    np.testing.assert_allclose(got, [0.75, 0.875], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: special.factorial(3, exact=True), NotImplementedError, "factorial: exact"),
        (lambda: special.bernoulli(-1), ValueError, "bernoulli: n"),
        (lambda: special.bernoulli(2.5), TypeError, "bernoulli"),  # type: ignore[arg-type]
        (lambda: special.multigammaln(2.0, 2.5), TypeError, "multigammaln"),
        (lambda: special.multigammaln(2.0, 0), ValueError, "multigammaln: d"),
        (lambda: special.multigammaln(2.0, 2**40), ValueError, "multigammaln: d"),
        (lambda: special.bernoulli(2**40), ValueError, "bernoulli: n"),
        (lambda: special.polygamma(1.0, 2.0), ValueError, "polygamma: n"),
        (lambda: special.log_ndtr(1.0, 31), ValueError, "log_ndtr: series_order"),
        (lambda: special.log_ndtr(1.0, -1), ValueError, "log_ndtr: series_order"),
        (lambda: special.betaln(np.ones(2), np.ones(3)), ValueError, "betaln"),
        (lambda: special.gammaln([1.0]), TypeError, "gammaln"),  # type: ignore[arg-type]
    ],
)
def test_mistakes(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.laws
def test_batches_and_programs() -> None:
    x, y = np.float32([0.5, 2, 3]), np.float32([1.5, 2, 0.25])
    for name in ("betaln", "boxcox"):
        function = getattr(special, name)
        alone = np.stack([np.asarray(function(a, y)) for a in x])
        np.testing.assert_allclose(dt.vmap(function, (0, None))(x, y), alone, rtol=1e-6)
        slopes = [dt.grad(function, 1)(a, np.float32(1.5)) for a in x]
        batched = dt.vmap(dt.grad(function, 1), (0, None))(x, np.float32(1.5))
        np.testing.assert_allclose(batched, slopes, rtol=1e-6)
    # Types of 64 bits are off, and nothing that is computed in float64 is a program.
    with dt.disable_jit():
        np.testing.assert_allclose(special.gamma(x), scipy.special.gamma(x), rtol=1e-7)
    traced = dt.jit(special.log_ndtr)(x)
    np.testing.assert_array_equal(traced, special.log_ndtr(x))
    assert lax.erfc(1.0) == special.erfc(1.0)


def test_float32_by_formulas_of_its_own_is_float64_rounded() -> None:
    edges = [0.0, 1e-40, 1e-3, 7.999999, 8.0, 8.000001, 91.9, 95.0, 1e30, np.inf, np.nan]
    x = np.concatenate([np.float32(edges), -np.float32(edges), np.linspace(-90, 90, 2000)])
    p = np.float32([0, 1, 0.3, 2e-38, 3e38, 2, np.nan, -1, np.inf])
    first, second = np.meshgrid(p, np.append(p, np.float32([1.0039, 0.9961, 1.004, 1 + 2**-23])))
    for name, operands in (("i0", [x]), ("i1", [x]), ("kl_div", [first, second])):
        function = getattr(special, name)
        single = [a.astype(np.float32) for a in operands]
        got = np.asarray(function(*single))
        with dt.enable_x64(True), np.errstate(all="ignore"):
            want = np.asarray(function(*(a.astype(np.float64) for a in single)))
            want = want.astype(np.float32)
        normal = ~(np.abs(want) < np.finfo(np.float32).smallest_normal)
        np.testing.assert_allclose(got[normal], want[normal], 1e-7, err_msg=name)
