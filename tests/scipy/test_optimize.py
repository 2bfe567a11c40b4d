"""Minima: known ones, SciPy's, and what is said when there is none."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize as reference

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.scipy.optimize import OptimizeResults, minimize

pytestmark = pytest.mark.tables

LBFGS = "l-bfgs-experimental-do-not-rely-on-this"


def valley(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(p):
    x, y = p
    return (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2


def far(x, scale):
    return jnp.sum(scale * jnp.cosh(x - 3) + jnp.square(x))


@pytest.mark.parametrize("method", ["BFGS", LBFGS])
def test_minima_are_those_of_scipy(method):
    with dt.enable_x64(True):
        for function, x0, args in [
            (valley, np.array([-1.2, 1.0, 0.5, 2.0]), ()),
            (far, np.array([-4.0, 9.0, 3.0]), (np.array([1.0, 1e3, 1e-2]),)),
        ]:
            found = minimize(function, x0, args, method=method, tol=1e-9)
            gradient = dt.grad(function)
            expected = reference.minimize(
                lambda x, f=function, a=args: float(f(x, *a)),
                x0,
                jac=lambda x, g=gradient, a=args: np.asarray(g(x, *a)),
                method="BFGS",
                tol=1e-9,
            )
            np.testing.assert_allclose(found.x, expected.x, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(found.fun, expected.fun, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(found.jac, gradient(found.x, *args), atol=1e-12)
            assert int(found.status) in (0, 4)
            assert bool(found.success) == (int(found.status) == 0)
            assert int(found.nfev) == int(found.njev) > int(found.nit) > 0
            if method == "BFGS":
                assert bool(found.success)
                inverse = np.linalg.inv(dt.hessian(function)(found.x, *args))
                near = np.linalg.norm(found.hess_inv - inverse) / np.linalg.norm(inverse)
                assert near < 0.3
                np.testing.assert_allclose(found.hess_inv, found.hess_inv.T, rtol=1e-8)
            else:
                assert found.hess_inv is None


def test_the_end_is_explained():
    start = np.array([-1.2, 1.0], "float32")

    def status(function=valley, x0=start, method="BFGS", **options):
        found = minimize(function, x0, method=method, options=options)
        assert bool(found.success) == (int(found.status) == 0)
        return int(found.status)

    assert status() == 0
    assert status(x0=np.ones(2, "float32"), method=LBFGS) == 0
    assert status(maxiter=3) == status(method=LBFGS, maxiter=3) == 1
    assert status(method=LBFGS, maxfun=5) == 2
    assert status(method=LBFGS, maxgrad=5) == 3
    assert status(method=LBFGS, ftol=0.1, gtol=0.0) == 4
    assert status(lambda x: x[0]) == status(lambda x: x[0], method=LBFGS) == 5
    assert status(x0=start * np.nan) == status(lambda x: x[0] * np.nan, method=LBFGS) == 3
    # The norm: (3, 4) has the length 5 and the largest element 4.
    assert status(lambda x: 3 * x[0] + 4 * x[1], gtol=4.5) == 0
    assert status(lambda x: 3 * x[0] + 4 * x[1], gtol=4.5, norm=2) == 5


def test_memory_helps():
    x0 = np.linspace(-1, 2, 12).astype("float32")
    steps = [
        int(minimize(valley, x0, method=LBFGS, options={"maxcor": m, "ftol": 0.0}).nit)
        for m in (1, 10)
    ]
    assert steps[1] < steps[0]


@pytest.mark.parametrize("method", ["BFGS", LBFGS])
def test_compiled_and_batched_as_alone(method):
    starts = np.array([[-1.2, 1.0], [1.0, 1.0], [0.0, 2.0]], "float32")

    def at(x0, a):
        return minimize(lambda x, a: himmelblau(x) + a * x[0], x0, (a,), method=method)

    found = dt.jit(dt.vmap(at))(starts, np.arange(3.0, dtype="float32"))
    assert isinstance(found, OptimizeResults)
    for k in range(3):
        alone = at(starts[k], np.float32(k))
        np.testing.assert_allclose(found.fun[k], alone.fun, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found.x[k], alone.x, rtol=1e-3, atol=1e-3)


def test_dtypes():
    for given, expected in (("float16", "float16"), ("bfloat16", "bfloat16"), ("int32", "float32")):
        found = minimize(lambda x: jnp.sum((x - 2) ** 2), jnp.ones(2, given), method="bfgs")
        assert (found.x.dtype, found.jac.dtype) == (expected, expected)
        assert found.x.tolist() == [2.0, 2.0]
        assert bool(found.success)
    assert bool(minimize(jnp.sum, jnp.zeros(0), method="BFGS").success)


def test_mistakes_are_refused():
    x0 = np.ones(2, "float32")
    for error, given in [
        (TypeError, {"args": 3}),
        (ValueError, {"method": "L-BFGS-B"}),
        (ValueError, {"method": None}),
        (TypeError, {"fun": 3}),
        (TypeError, {"fun": lambda x: x}),
        (TypeError, {"fun": lambda x: (x[0],)}),
        (TypeError, {"fun": lambda x: None}),
        (TypeError, {"fun": lambda x: x[0] * 1j}),
        (TypeError, {"fun": lambda x: jnp.argmax(x)}),
        (ValueError, {"x0": 1.0}),
        (ValueError, {"x0": x0[None]}),
        (TypeError, {"x0": x0 + 1j}),
        (TypeError, {"x0": [1.0, 2.0]}),
        (TypeError, {"options": {"other": 1}}),
        (TypeError, {"options": {"maxls": 1}}),
        (ValueError, {"options": {"maxcor": 0}, "method": LBFGS}),
        (TypeError, {"options": {"maxcor": 1.5}, "method": LBFGS}),
        (TypeError, {"options": [1]}),
        (TypeError, {"options": {"maxiter": "some"}}),
        (TypeError, {"options": {"gtol": x0}}),
        (TypeError, {"tol": 1j}),
        (ValueError, {"method": [1]}),
    ]:
        with pytest.raises(error, match="minimize"):
            minimize(**{"fun": valley, "x0": x0, "method": "BFGS", **given})
    with pytest.raises(TypeError, match="method"):
        minimize(valley, x0)
