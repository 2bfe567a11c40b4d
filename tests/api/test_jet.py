"""`jet`: Taylor series of functions, their forms, their laws, their errors."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.ir.walk import count_equations
from dovetail.experimental.jet import jet

pytestmark = pytest.mark.laws

X = np.array([0.7, -0.3, 1.2])
SERIES = [np.array([1.0, 2.0, -1.0]), np.array([0.5, 0.0, 1.0]), np.array([0.3, 1.0, 0.2])]


@pytest.fixture(autouse=True)
def wide():
    with dt.enable_x64(True):
        yield


def nested(function, x, series):
    """The value and the derivatives along the curve by nested jvp."""

    def derivatives(t):
        return [
            function(x + sum(t**k * term / math.factorial(k) for k, term in enumerate(series, 1)))
        ]

    for _ in series:
        previous = derivatives

        def derivatives(t, previous=previous):
            found, further = dt.jvp(previous, (t,), (1.0,))
            return [*found, further[-1]]

    return derivatives(0.0)


def loop_with_products(x):
    def body(c):
        return c[0] * c[0] + x, c[1] + 1, 2 * c[2], jnp.sin(c[0])

    return lax.while_loop(lambda c: c[1] < 3, body, (x, 0, jnp.ones(3), jnp.ones(3)))


def running(x, **options):
    def body(c, a):
        return c * a + x.sum(), (jnp.tanh(c), a * 2, jnp.ones(2))

    return lax.scan(body, 1.0, x, **options)


@dt.custom_jvp
def doubled_slope(x):
    return jnp.sin(x)


@doubled_slope.defjvp
def _(primals, tangents):
    return doubled_slope(*primals), 2 * jnp.cos(doubled_slope(*primals)) * tangents[0]


def solved(x):
    def product(v):
        return (2 + x * x) * v

    return lax.custom_linear_solve(product, jnp.sin(x), lambda _, b: b / (2 + x * x))


PROGRAMS = {
    "checkpoint": dt.checkpoint(lambda x: jnp.sin(x) * jnp.exp(x)),
    "custom_jvp": doubled_slope,
    "custom_jvp in jit": dt.jit(doubled_slope),
    "custom_linear_solve": solved,
    "composite": lax.composite(lambda x: jnp.sin(x) * jnp.exp(x), "tests.jet"),
    "reduce": lambda x: lax.reduce(x * x, np.float64(0), lambda a, b: a * b + a + b, (0,)),
    "cond": lambda x: lax.cond(x.sum() > 0, lambda x: jnp.sin(x) * x, lambda x: x * 3.0, x),
    "cond, constant in one branch": lambda x: lax.cond(x[0] < 0, jnp.sin, lambda x: 0 * X, x),
    "switch": lambda x: lax.switch(2, [jnp.sin, jnp.cos, lambda x: jnp.exp(x) / x], x),
    "fori_loop": lambda x: lax.fori_loop(0, 4, lambda i, c: c * jnp.sin(x) + i, x),
    "while_loop": lambda x: loop_with_products(x)[0],
    "while_loop, varying late": lambda x: loop_with_products(x)[3],
    "scan": lambda x: running(x)[1][0],
    "scan, reverse": lambda x: running(x, reverse=True)[0],
    "scan, constant": lambda x: running(x, unroll=2)[1][2],
    "jit": lambda x: dt.jit(lambda x: jnp.sin(x) / x)(x),
    "vmap": lambda x: dt.vmap(lambda a: jnp.sin(a) * x)(x),
    "grad": dt.grad(lambda x: (jnp.sin(x) * jnp.exp(x)).sum()),
    "grad of scan": dt.grad(lambda x: running(x)[0]),
    "hessian": dt.hessian(lambda x: (jnp.sin(x) * jnp.exp(x.sum()))[0]),
    "jvp": lambda x: dt.jvp(jnp.tanh, (x,), (x * x,))[1],
    "jet": lambda x: jet(lambda y: jnp.sin(y) * x, (x,), ([x, 1.0],))[1][1],
    "sort": lambda x: jnp.sort(x * x) * x,
    "indices": lambda x: x.at[1].multiply(x[2])[::-1] * x.argmax(),
    "where": lambda x: jnp.where(x > 0, jnp.log(jnp.abs(x)), x**3),
    "cumprod": jnp.cumprod,
    "product of three": lambda x: jnp.einsum("i,j,k->ijk", x, x, jnp.cos(x)),
    "solve": lambda x: lax.linalg.triangular_solve(
        2 * jnp.eye(3) + x[:, None] * x, jnp.sin(x)[:, None], left_side=True, lower=True
    ),
    "cholesky": lambda x: lax.linalg.cholesky(2 * jnp.eye(3) + x[:, None] * x),
    "eigh": lambda x: lax.linalg.eigh(jnp.diag(jnp.arange(3.0)) + x[:, None] * x)[1],
    "norm": jnp.linalg.norm,
    "softmax": dt.nn.softmax,
    "complex": lambda x: jnp.abs(jnp.exp(x * 1j) / (x + 2j)) + (x + 1j * x).imag,
    "no series of itself": lambda x: (x.astype(int), jnp.floor(x), 3.0, x > 0, x)[4],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_terms_are_nested_derivatives(program):
    @dt.jit
    def both(x, series):
        return jet(PROGRAMS[program], (x,), (series,)), nested(PROGRAMS[program], x, series)

    (value, terms), want = both(X, SERIES)
    for found, derivative in zip([value, *terms], want, strict=True):
        np.testing.assert_allclose(found, derivative, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("program", ["cond", "scan", "while_loop", "grad", "where", "jit"])
def test_eager_terms_are_those_of_compiled_programs(program):
    def run(x, series):
        return jet(PROGRAMS[program], (x,), (series,))

    eager, compiled = run(X, SERIES), dt.jit(run)(X, SERIES)
    np.testing.assert_allclose([eager[0], *eager[1]], [compiled[0], *compiled[1]], rtol=1e-12)


FUNCTIONS_WITH_EDGES = [
    lambda x: x**2.0,
    lambda x: x**3,
    lambda x: x**2.5,
    lambda x: (x + 2) ** x,
    lambda x: x * jnp.log(x),
    lambda x: jnp.arctan2(x, 1 + x),
    lambda x: jnp.logaddexp(x, 0.0),
    lambda x: jnp.prod(jnp.stack([x, x + 1, 0 * x])),
    jnp.abs,
    jnp.sqrt,
    jnp.cbrt,
    jnp.sinc,
    dt.nn.relu,
]


@pytest.mark.parametrize("x", [0.0, 1.0, -2.0])
def test_at_edges(x):
    """At zeros, poles and kinks there is what nested derivatives are, NaN and infinity included."""

    @dt.jit
    def both(x):
        series = [1.0, 0.5, 0.25]
        return [
            ([value, *terms], nested(function, x, series))
            for function in FUNCTIONS_WITH_EDGES
            for value, terms in [jet(function, (x,), (series,))]
        ]

    for found, want in both(x):
        np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-10)


def test_nothing_is_kept():
    """Arrays are let go without the collector of cycles, which may run much later."""

    def run():
        jet(lambda x: jnp.tanh(jnp.sin(x) / x) @ jnp.cos(x), (jnp.asarray(X),), (SERIES,))

    run()
    gc.collect()
    gc.disable()
    try:
        before = len(dt.live_arrays())
        run()
        assert len(dt.live_arrays()) == before
    finally:
        gc.enable()


def test_no_tracer_leaks():
    with dt.checking_leaks():
        dt.jit(lambda x: jet(lambda y: jnp.sin(y) / y, (x,), ([1.0, 0.0],))[1])(2.0)
        dt.grad(lambda x: jet(lambda y: jnp.sin(y) / y, (x,), ([1.0, 0.0],))[1][1])(2.0)


def test_under_vmap():
    def function(x, a):
        return jet(lambda x: jnp.sin(x) * x, (x,), ([a, 0.0, 1.0],))[1]

    together = dt.vmap(function)(X, SERIES[0])
    each = [function(x, a) for x, a in zip(X, SERIES[0], strict=True)]
    np.testing.assert_allclose(np.stack(together, 1), each, rtol=1e-12)


def test_under_grad():
    """The derivative of the second term with respect to the point is the third along 1."""

    def second(x):
        return jet(jnp.sin, (x,), ([1.0, 0.0],))[1][1]

    assert float(dt.grad(second)(0.5)) == pytest.approx(-math.cos(0.5))
    assert float(dt.jvp(second, (0.5,), (1.0,))[1]) == pytest.approx(-math.cos(0.5))


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
)
def test_polynomials_are_exact(dtype):
    """Small integers are computed without rounding, and terms beyond the degree vanish."""
    one = jnp.asarray(1, dtype)
    value, terms = jet(
        lambda x: x**4 - 2 * x**3 + x * (x - 1), (2 * one,), ([one, *[0 * one] * 5],)
    )
    assert [complex(t) for t in (value, *terms)] == [2, 11, 26, 36, 24, 0, 0]
    assert {t.dtype for t in (value, *terms)} == {one.dtype}


@pytest.mark.parametrize("order", [0, 1, 2, 5, 12])
@pytest.mark.parametrize("scaled", [False, True])
def test_exponential_of_a_line(order, scaled):
    """All derivatives of exp are exp, at every order."""
    _, terms = jet(jnp.exp, (0.25,), ([1.0, *[0.0] * (order - 1)][:order],), scaled)
    assert len(terms) == order
    factorials = [1 if scaled else math.factorial(k) for k in range(1, order + 1)]
    np.testing.assert_allclose(terms, [math.exp(0.25) / f for f in factorials], rtol=1e-13)


def test_scaled_and_plain_coefficients_agree():
    factorials = [math.factorial(k) for k in (1, 2, 3)]
    _, terms = jet(jnp.tanh, (X,), (SERIES,))
    _, plain = jet(
        jnp.tanh, (X,), ([s / f for s, f in zip(SERIES, factorials, strict=True)],), False
    )
    for term, coefficient, factorial in zip(terms, plain, factorials, strict=True):
        np.testing.assert_allclose(term, coefficient * factorial, rtol=1e-13)


def test_factorials_beyond_the_dtype():
    """10! is more than float16 holds, the terms are not."""
    x = jnp.float16(60_000)
    _, terms = jet(lambda x: x / 64, (x,), ([x * 0] * 9 + [x],))
    assert float(terms[-1]) == pytest.approx(60_000 / 64, rel=0.01)


def test_series_of_results_go_into_the_next():
    """Composition: the result has the form of an argument."""
    inner = {"a": jnp.sin, "b": (jnp.cos,)}

    def first(x):
        return {"a": inner["a"](x), "b": (inner["b"][0](x), 2)}

    def second(d):
        return d["a"] * d["b"][0] * d["b"][1]

    middle = jet(first, (X,), (SERIES,))
    value, terms = jet(second, (middle[0],), (middle[1],))
    want = jet(lambda x: second(first(x)), (X,), (SERIES,))
    np.testing.assert_allclose(np.stack([value, *terms]), np.stack([want[0], *want[1]]))


def test_forms_of_series():
    for series in (
        ([1.0, 0.0],),
        ((1, 0),),
        [[np.float64(1), np.zeros(())]],
        (np.array([1.0, 0.0]),),
        (jnp.array([1.0, 0.0]),),
        ([np.ones(3), 0],),
        ([1.0, jnp.zeros(3)],),
    ):
        _, terms = jet(jnp.exp, (np.zeros(3),), series)
        np.testing.assert_array_equal(terms, np.ones((2, 3)))


def test_weak_types_and_dtypes():
    value, (term,) = jet(jnp.sin, (0.5,), ([1.0],))
    assert value.weak_type
    assert term.weak_type
    value, (term,) = jet(lambda x: x * 2.0, (np.float32(0.5),), ([1.0],))
    assert value.dtype == term.dtype == np.float32
    assert not term.weak_type


def test_what_cannot_move():
    """Integers have no terms, or zeros; results that are integers have those that jvp gives."""
    for none in ([], [0, 0], [np.zeros((), dt.float0)] * 2, (0, 0.0)):
        value, terms = jet(lambda x, i: (x * i, i, x > 0), (0.5, 2), ([1.0, 0.0], none))
        assert [float(t) for t in terms[0]] == [2.0, 0.0]
        assert [t.dtype for t in terms[1] + terms[2]] == [dt.float0] * 4
        assert [int(v) for v in value[1:]] == [2, 1]
    assert jet(lambda: 1.0, (), ()) == (1.0, [])
    assert jet(lambda x, none: x, (1.0, None), ([1.0], None))[1] == [1.0]


def test_further_keywords_are_accepted():
    assert float(jet(jnp.exp, (0.0,), ([1.0],), rng=None)[1][0]) == 1.0


ERRORS = {
    "no function": (3, (1.0,), ([1.0],), TypeError, "jet takes a function"),
    "primals": (jnp.sin, 1.0, ([1.0],), TypeError, "primals of jet must be a tuple or list"),
    "series": (jnp.sin, (1.0,), 1.0, TypeError, "series of jet must be a tuple or list"),
    "count": (jnp.add, (1.0, 2.0), ([1.0],), TypeError, "2 primals and 1 series"),
    "a term": (lambda x: x, (1.0,), (1.0,), TypeError, r"series of x of <lambda> must be a sequ"),
    "lengths": (
        lambda x, y: x,
        (1.0, {"a": 2.0}),
        ([1.0], {"a": [1.0, 2.0]}),
        ValueError,
        r"same number of terms: that of x of <lambda> has 1, that of y\['a'\] of <lambda> has 2",
    ),
    "structure": (
        lambda y: y,
        ({"a": 2.0},),
        ({"b": [1.0]},),
        TypeError,
        "series of jet of <lambda> must have the structure of primals",
    ),
    "shape": (
        lambda d: d,
        ({"w": np.ones(3)},),
        ({"w": [1.0, np.ones(2)]},),
        ValueError,
        r"term 2 of the series of d\['w'\] of <lambda> has the shape \(2,\), the argument \(3,\)",
    ),
    "dtype": (
        lambda x: x,
        (np.ones(3, np.float32),),
        ([np.ones(3, np.int32)],),
        TypeError,
        "term 1 of the series of x of <lambda> has the dtype int32, the argument float32",
    ),
    "complex": (lambda x: x, (1.0,), ([1j],), TypeError, "dtype complex128, the argument float64"),
    "integer": (lambda i: i, (1,), ([1],), TypeError, "int64, so that it cannot move"),
    "no array": (lambda x: x, (1.0,), (["a"],), TypeError, "'a' of type str, not an array"),
    "primal": (lambda x: x, ("a",), ([1.0],), TypeError, "Argument x of jet of <lambda> is 'a'"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    function, primals, series, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        jet(function, primals, series)


def test_a_leaked_value_says_where_it_is_from():
    kept = []
    jet(lambda x: kept.append(x) or x, (1.0,), ([1.0],))
    with pytest.raises(dt.errors.UnexpectedTracerError, match="Taylor series"):
        kept[0] + 1


def chain(x):
    for _ in range(10):
        x = jnp.tanh(jnp.sin(x) * 0.5 + jnp.exp(-x))
    return x


@pytest.mark.parametrize(
    "around",
    [
        lambda f: f,
        dt.jit,
        dt.checkpoint,
        lambda f: lambda x: lax.cond(x.sum() > 0, f, jnp.sin, x),
        lambda f: lambda x: lax.fori_loop(0, 3, lambda _, c: f(c), x),
        lambda f: lambda x: lax.while_loop(lambda c: c.sum() > 1, f, x),
        lambda f: lax.composite(f, "tests.chain"),
    ],
    ids=["", "jit", "checkpoint", "cond", "scan", "while", "composite"],
)
def test_cost_grows_with_the_square_of_the_order(around):
    """Fifty operations: the equations for order 2n are at most about four times those for n."""

    def counted(order):
        closed = dt.make_jaxpr(lambda x: jet(around(chain), (x,), ([x] * order,)))(X)
        return count_equations(closed)

    counts = [counted(order) for order in (3, 6, 12)]
    assert counts[1] < 4.5 * counts[0]
    assert counts[2] < 4.5 * counts[1]


def test_terms_that_vanish_cost_nothing():
    """Zeros that are seen to be zero are not computed with."""
    closed = dt.make_jaxpr(lambda x: jet(jnp.square, (x,), ([x, *[0.0] * 8],)))(X)
    assert count_equations(closed) < 30
