"""Bessel, zeta, hypergeometric, Fresnel functions and integrals: values, edges, derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special as reference

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.scipy import special

pytestmark = pytest.mark.tables

INF, NAN = math.inf, math.nan
SIZES = np.concatenate([np.geomspace(1e-8, 0.9, 40), np.linspace(0.91, 12, 160), [20, 31, 50, 80]])
BOTH = np.concatenate([SIZES, -SIZES])
EDGES = np.array([0.0, -0.0, INF, -INF, NAN])
RANDOM = np.random.default_rng(0)


def uniform(low: float, high: float) -> Any:
    return RANDOM.uniform(low, high, 120)


#: Each name with its arguments, and its tolerance in float64, in units of the last place. Where
#: SciPy's own error is greater than ours, the tolerance is for it.
REAL: dict[str, tuple[Any, float]] = {
    "i0": ((BOTH,), 8),
    "i0e": ((BOTH,), 8),
    "i1": ((BOTH,), 8),
    "i1e": ((BOTH,), 8),
    "exp1": ((SIZES,), 12),
    "expi": ((BOTH[abs(BOTH - 0.37) > 0.02],), 100),
    "erfcx": ((BOTH[BOTH > -9],), 60),
    "dawsn": ((BOTH,), 30),
    "spence": ((SIZES,), 60),
    "zeta": ((uniform(1.01, 20), 10 ** uniform(-2, 1.3)), 30),
    "owens_t": ((uniform(-4, 4), uniform(-4, 4)), 300),
    "hyp1f1": ((uniform(0.2, 5), uniform(0.2, 5), uniform(0, 30)), 300),
    "hyp2f1": ((uniform(0.2, 3), uniform(0.2, 3), uniform(3, 5), uniform(-0.9, 0.9)), 300),
}
#: Edges that SciPy has, each a tuple of arguments and the value.
POINTS: dict[str, list[tuple[tuple[float, ...], float]]] = {
    "i0": [((0,), 1), ((INF,), INF), ((-INF,), INF), ((NAN,), NAN)],
    "i1": [((0,), 0), ((INF,), INF), ((-INF,), -INF), ((NAN,), NAN)],
    "exp1": [((0,), INF), ((INF,), 0), ((-1,), NAN), ((NAN,), NAN)],
    "expi": [((0,), -INF), ((INF,), INF), ((-INF,), 0), ((NAN,), NAN)],
    "erfcx": [((INF,), 0), ((-INF,), INF), ((-30,), INF), ((NAN,), NAN), ((0,), 1)],
    "dawsn": [((0,), 0), ((INF,), 0), ((-INF,), 0), ((NAN,), NAN)],
    "spence": [((0,), math.pi**2 / 6), ((1,), 0), ((-1,), NAN), ((INF,), NAN), ((NAN,), NAN)],
    "zeta": [((1, 2), INF), ((INF, 1), 1), ((INF, 2), 0), ((2, 0), INF), ((0.5, 1), NAN)],
    "owens_t": [((0, 1), 0.125), ((0, -INF), -0.25), ((INF, 1), 0), ((1, NAN), NAN)],
    "hyp1f1": [((1, -2, 1), INF), ((-2, -3, 1), 11 / 6), ((1, 2, -INF), 0), ((0, 2, 5), 1)],
    "hyp2f1": [
        ((1, 2, 4, 1), 3),
        ((1, 2, 3, 1), INF),
        ((-2, 3, -3, 0.5), 2.5),
        ((-2, 3, 2, 3), 10),
    ],
}


def close(got: Any, expected: Any, units: float, what: str = "") -> None:
    """Each element to so many units in the last place of its dtype, or equal at edges."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, what
    rtol = units * float(np.finfo(got.dtype).eps)
    with np.errstate(over="ignore"):
        expected = expected.astype(got.dtype)
    tiny = float(np.finfo(got.dtype).tiny)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=tiny, err_msg=what)


@pytest.mark.parametrize("name", REAL)
def test_values(name: str) -> None:
    ours, theirs = getattr(special, name), getattr(reference, name)
    arguments, units = REAL[name]
    points = POINTS.get(name, [])
    edges = [[point[i] for point, _ in points] for i in range(len(arguments))]
    at_edges = [value for _, value in points]
    for dtype, wide, tolerance in (("float32", False, 1.01), ("float64", True, units)):
        narrow = [np.asarray(x, dtype) for x in arguments]
        # core's own formulas of scaled functions are a unit or two off.
        more = 2 if name in ("i0e", "i1e") else 0
        expected = np.append(theirs(*(x.astype(np.float64) for x in narrow)), at_edges)
        with dt.enable_x64(wide):
            joined = [np.append(x, e).astype(dtype) for x, e in zip(narrow, edges, strict=True)]
            close(ours(*joined), expected, tolerance + more, f"{name} {dtype}")
    if name != "erfcx":
        with pytest.raises(TypeError, match=name):
            ours(*[1j] * len(arguments))


@pytest.mark.parametrize("name", ["i1", "exp1", "owens_t"])
def test_other_dtypes(name: str) -> None:
    ours, theirs = getattr(special, name), getattr(reference, name)
    arguments = [np.asarray(np.abs(x[:9]), "float16") for x in REAL[name][0]]
    result = ours(*arguments)
    assert result.dtype == np.float16
    with np.errstate(over="ignore"):
        close(result, theirs(*(x.astype(np.float64) for x in arguments)), 1.01, name)
    arguments = [jnp.asarray(x, jnp.bfloat16) for x in arguments]
    assert ours(*arguments).dtype == jnp.bfloat16
    assert ours(*[1] * len(arguments)).dtype == np.float32


def test_pairs() -> None:
    for name in ("sici", "fresnel"):
        for dtype, wide in (("float32", False), ("float64", True)):
            x = BOTH.astype(dtype)
            with dt.enable_x64(wide):
                # Zeros of the cosine integral have few digits in float64, in SciPy too.
                for ours, theirs in zip(
                    getattr(special, name)(x),
                    getattr(reference, name)(x.astype(np.float64)),
                    strict=True,
                ):
                    np.testing.assert_allclose(ours, theirs, 1e-12 if wide else 1.3e-7, 1e-16)
                edges = getattr(special, name)(EDGES.astype(dtype))
                expected = getattr(reference, name)(EDGES)
            np.testing.assert_allclose(edges, np.asarray(expected), rtol=1e-7)
        with pytest.raises(TypeError, match=name):
            getattr(special, name)(1j)
        assert getattr(special, name)(np.float16(2))[1].dtype == np.float16


def test_expn() -> None:
    n, x = np.arange(30)[:, None], SIZES.astype(np.float32)
    close(special.expn(n, x), reference.expn(n, x.astype(np.float64)), 1.01)
    orders = np.array([0, 0, 1, 2, 1, 1, 1, -1, 2, 2, 3, 0])
    at = np.array([0.0, INF, 0, 0, -1, NAN, INF, 1, -1, INF, 0, -1])
    n = np.append(np.broadcast_to(n, (30, SIZES.size)), orders)
    points = np.append(np.broadcast_to(SIZES, (30, SIZES.size)), at)
    with dt.enable_x64(True):
        close(special.expn(n, points), reference.expn(n, points), 30)
    assert special.expn(300, np.float16(1)).dtype == np.float16
    second = dt.vmap(dt.grad(dt.grad(special.expn, 1), 1), (0, None))
    slopes = dt.jit(second)(np.array([0, 1, 3]), 1.5)
    lower = [1 / 1.5 + 2 / 1.5**2 + 2 / 1.5**3, 1 / 1.5 + 1 / 1.5**2, 0]
    expected = math.exp(-1.5) * np.array(lower) + [0, 0, reference.exp1(1.5)]
    close(slopes, np.float32(expected), 3)


def test_wofz_and_complex_erfcx() -> None:
    z = (uniform(-6, 6) + 1j * uniform(-1.5, 6)).astype(np.complex64)
    z[:10] = z[:10].real
    z[10:20] = 1j * z[10:20].imag
    expected = reference.wofz(z.astype(np.complex128))
    for part in ("real", "imag"):
        close(getattr(np.asarray(special.wofz(z)), part), getattr(expected, part), 1.01)
    close(np.asarray(special.erfcx(-1j * z)).imag, expected.imag, 1.01)
    edges = np.array([0, complex(INF, 0), complex(0, INF), complex(0, -INF), complex(-INF, 1)])
    edges = np.append(edges, 1e150)
    with dt.enable_x64(True):
        wide = np.asarray(special.wofz(np.append(z.astype(np.complex128), edges)))
    np.testing.assert_allclose(wide[: z.size], expected, 1e-13)
    np.testing.assert_allclose(wide[z.size :], reference.wofz(edges), 1e-15)
    # w' = 2 i / sqrt(pi) - 2 z w; w'' = -2 (w + z w').
    point = 0.7 + 0.4j
    first = dt.jit(dt.grad(special.wofz, holomorphic=True))
    w = complex(reference.wofz(point))
    slope = 2j / math.sqrt(math.pi) - 2 * point * w
    np.testing.assert_allclose(first(point), slope, 1e-6)
    second = dt.jit(dt.grad(first, holomorphic=True))(point)
    np.testing.assert_allclose(second, -2 * (w + point * slope), 1e-6)
    assert special.wofz(2).dtype == np.complex64


def test_riemann_zeta() -> None:
    s = np.concatenate([np.linspace(-20.3, 30, 150), [0, 1, -2, INF, -INF, NAN]])
    with dt.enable_x64(True):
        close(special.zeta(s), reference.zeta(s), 300)
    # The derivative at 0 is -log(2 pi) / 2, that at -2 is -zeta(3) / (4 pi^2).
    slopes = dt.jit(dt.vmap(dt.grad(special.zeta)))(jnp.array([0.0, -2.0]))
    expected = [-math.log(2 * math.pi) / 2, -reference.zeta(3) / (4 * math.pi**2)]
    close(np.asarray(slopes), np.float32(expected), 2)


def test_bessel_jn() -> None:
    z = np.concatenate([np.geomspace(1e-6, 900, 90), -np.geomspace(1e-6, 30, 20), [0]])
    z = np.append(z, [INF, -INF, NAN])
    v = 9
    orders = np.arange(v + 1)[:, None]
    expected = reference.jv(orders, z)
    expected[:, -3:-1] = 0
    with dt.enable_x64(True):
        np.testing.assert_allclose(special.bessel_jn(z, v=v), expected, 1e-10, 1e-15)
    narrow = z.astype(np.float32)
    expected[:, :-3] = reference.jv(orders, narrow[:-3].astype(np.float64))
    np.testing.assert_allclose(special.bessel_jn(narrow, v=v), expected, 1.3e-7, 3e-38)
    with dt.enable_x64(True):
        many = special.bessel_jn(np.array([3.0, 60.0]), v=40)
        np.testing.assert_allclose(
            many[::4].T, reference.jv(range(0, 41, 4), [[3.0], [60.0]]), 1e-9
        )
    v = 2
    second = dt.jit(dt.grad(dt.grad(lambda z: special.bessel_jn(z, v=v)[v])))
    close(np.float32(second(1.5)), np.float32(reference.jvp(v, 1.5, 2)), 4)
    with pytest.raises(ValueError, match="v must not be negative"):
        special.bessel_jn(1.0, v=-1)
    with pytest.raises(TypeError, match="v"):
        special.bessel_jn(1.0, v=1.5)  # type: ignore[arg-type]


def test_sph_harm_y() -> None:
    n = RANDOM.integers(0, 20, 200)
    m = RANDOM.integers(-n - 1, n + 2)
    theta, phi = RANDOM.uniform(0, math.pi, 200), RANDOM.uniform(-7, 7, 200)
    with dt.enable_x64(True):
        got = special.sph_harm_y(n, m, theta, phi, n_max=3)
        np.testing.assert_allclose(got, reference.sph_harm_y(n, m, theta, phi), 1e-11, 1e-14)
    assert special.sph_harm_y(2, np.array([[1], [2]]), np.float16(1), np.ones(3)).shape == (2, 3)
    # With respect to phi it is multiplied by i m.
    point = reference.sph_harm_y(5, 3, 0.5, 1.0)
    turned = dt.jit(dt.grad(lambda p: special.sph_harm_y(5, 3, 0.5, p).real))(1.0)
    close(np.float32(turned), np.float32(-3 * point.imag), 4)
    twice = dt.jit(dt.grad(dt.grad(lambda t: special.sph_harm_y(1, 0, t, 0.0).real)))(0.5)
    close(np.float32(twice), np.float32(-math.sqrt(0.75 / math.pi) * math.cos(0.5)), 4)
    with pytest.raises(NotImplementedError, match="diff_n"):
        special.sph_harm_y(2, 1, 0.5, 1.0, diff_n=1)
    with pytest.raises(TypeError, match="n to hold integers"):
        special.sph_harm_y(2.0, 1, 0.5, 1.0)


def test_lpmn_values() -> None:
    z = np.array([-1, -0.7, 0, 0.2, 0.99, 1])
    orders, degrees = np.arange(5)[:, None, None], np.arange(7)[:, None]
    (expected,) = reference.assoc_legendre_p(degrees, orders, z)
    theta = np.arccos(z)
    harmonics = reference.sph_harm_y(degrees, orders, theta, 0.0).real
    with dt.enable_x64(True):
        got = special.lpmn_values(4, 6, z, False)
        np.testing.assert_allclose(got, expected, 1e-12, 1e-12)
        np.testing.assert_allclose(special.lpmn_values(4, 6, z, True), harmonics, 1e-12, 1e-12)
        np.testing.assert_allclose(special.lpmn_values(3, 1, z, False), expected[:4, :2], 1e-12)
        slope = dt.jacfwd(lambda z: special.lpmn_values(2, 2, z, False)[2, 2])(z)
        np.testing.assert_allclose(np.diag(slope), -6 * z, 1e-12)
    assert special.lpmn_values(1, 1, np.float16([0.5]), False).dtype == np.float16
    for wrong, message in (
        (lambda: special.lpmn_values(1, 1, 0.5, False), "a vector"),
        (lambda: special.lpmn_values(-1, 1, z, False), "negative"),
        (lambda: special.lpmn_values(1, 1, z * 1j, False), "complex"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            wrong()


def quantile(p: Any) -> Any:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


def dawson(x: Any) -> Any:
    return mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x)


def first_kind(order: int) -> tuple[Any, Any]:
    return lambda x: special.bessel_jn(x, v=10)[order], lambda x: mpmath.besselj(order, x)


def test_few_roundings_in_float64() -> None:
    """Errors in units in the last place, also where a formula lost more of them than JAX's."""
    x = RANDOM.uniform(0.1, 29, 60)
    # Beside zeros of the functions of order 0 and 3.
    x = np.concatenate([x, [2.4048, 5.52, 6.3802, 9.761, 13.0152, 15.1]])
    wide, p = RANDOM.uniform(-80, 80, 60), RANDOM.uniform(0.001, 0.999, 60)
    rows: list[tuple[Any, Any, Any, int]] = [
        *((*first_kind(order), x, 3) for order in (0, 1, 3, 10)),
        (special.i0, lambda x: mpmath.besseli(0, x), wide, 3),
        (special.i0, lambda x: mpmath.besseli(0, x), wide / 10, 2),
        (special.i1, lambda x: mpmath.besseli(1, x), wide / 10, 3),
        (special.dawsn, dawson, wide / 8, 2),
        (special.ndtri, quantile, p, 2),
    ]
    with dt.enable_x64(True), mpmath.workdps(40):
        for function, exact, points, most in rows:
            expected = np.array([float(exact(mpmath.mpf(float(e)))) for e in points])
            close(np.asarray(function(points)), expected, most)
        np.testing.assert_array_equal(jnp.i0(wide), special.i0(wide))


#: Functions of one argument at a point, with the first and the second derivative there.
SLOPES: list[tuple[str, Callable[[Any], Any], float, float, float]] = [
    ("i0", special.i0, 0.0, 0.0, 0.5),
    ("i1", special.i1, 0.0, 0.5, 0.0),
    ("i1", special.i1, 2.0, reference.ivp(1, 2, 1), reference.ivp(1, 2, 2)),
    ("exp1", special.exp1, 2.0, -math.exp(-2) / 2, math.exp(-2) * 3 / 4),
    ("expi", special.expi, -2.0, -math.exp(-2) / 2, -math.exp(-2) * 3 / 4),
    ("dawsn", special.dawsn, 0.0, 1.0, 0.0),
    ("dawsn", special.dawsn, 1e4, -5e-9, 1e-12),
    ("erfcx", special.erfcx, 1e4, -1e-8 / math.sqrt(math.pi), 2e-12 / math.sqrt(math.pi)),
    ("spence", special.spence, 1.0, -1.0, 0.5),
    ("spence", special.spence, 4.0, -math.log(4) / 3, -1 / 12 + math.log(4) / 9),
    ("si", lambda x: special.sici(x)[0], 0.0, 1.0, 0.0),
    ("ci", lambda x: special.sici(x)[1], math.pi, -1 / math.pi, 1 / math.pi**2),
    ("s", lambda x: special.fresnel(x)[0], 1.0, 1.0, 0.0),
    ("c", lambda x: special.fresnel(x)[1], 1.0, 0.0, -math.pi),
    ("hyp1f1", lambda x: special.hyp1f1(1.0, 1.0, x), 0.5, math.exp(0.5), math.exp(0.5)),
    ("hyp2f1", lambda x: special.hyp2f1(1.0, 2.0, 2.0, x), 0.9, 1e2, 2e3),
    ("zeta", lambda q: special.zeta(2.0, q), 1.0, -2 * reference.zeta(3), 6 * reference.zeta(4)),
]


def test_derivatives() -> None:
    functions = [function for _, function, *_ in SLOPES]

    def both(points: Any) -> Any:
        pairs = zip(functions, points, strict=True)
        return [(dt.grad(f)(x), dt.grad(dt.grad(f))(x)) for f, x in pairs]

    with dt.enable_x64(True):
        found = dt.jit(both)([np.float64(at) for _, _, at, *_ in SLOPES])
    for (name, _, _, *expected), got in zip(SLOPES, found, strict=True):
        np.testing.assert_allclose(np.array(got), expected, 1e-7, 1e-14, err_msg=name)


#: Functions of several arguments at a point where every derivative exists.
SEVERAL: dict[str, tuple[float, ...]] = {
    "owens_t": (0.7, 1.8),
    "zeta": (2.5, 1.5),
    "hyp1f1": (1.5, 2.5, -3.0),
    "hyp2f1": (1.2, 2.3, 3.1, 0.4),
    "gammainc": (2.5, 1.7),
    "gammaincc": (2.5, 1.7),
    "xlog1py": (1.2, 0.7),
}


def test_derivatives_in_every_argument() -> None:
    step = 1e-4
    with dt.enable_x64(True):
        for name, at in SEVERAL.items():
            function = getattr(special, name)
            slopes = dt.jit(dt.grad(function, tuple(range(len(at)))))(*at)
            points = np.repeat(np.array(at)[:, None, None], len(at), 1).repeat(2, 2)
            for i in range(len(at)):
                points[i, i] += [step, -step]
            values = getattr(special, name)(*points)
            differences = (values[:, 0] - values[:, 1]) / (2 * step)
            np.testing.assert_allclose(np.array(slopes), differences, 1e-6, err_msg=name)


def test_batches_and_compiled_calls_give_what_eager_calls_give() -> None:
    x = np.linspace(0.1, 0.9, 5, dtype=np.float32)
    for function in (
        special.expi,
        special.wofz,
        special.spence,
        lambda x: special.hyp2f1(x, x, 2, x),
    ):
        eager = np.asarray(function(x))
        np.testing.assert_array_equal(eager, dt.jit(dt.vmap(function))(x))
    assert special.i0(2).weak_type
    assert not special.exp1(2).weak_type
    assert special.exp1(np.ones((0, 2), np.float32)).shape == (0, 2)
    assert special.hyp1f1(np.ones((3, 1)), 2, np.ones(2)).shape == (3, 2)
