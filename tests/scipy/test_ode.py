"""Ordinary differential equations: values against SciPy's, derivatives against formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate as reference

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.experimental.ode import odeint

pytestmark = pytest.mark.tables


def _volterra(y, t, rates):
    x, z = y[0], y[1]
    a, b, c, d = rates
    return jnp.stack([a * x - b * x * z + jnp.sin(t), d * x * z - c * z])


def test_values_are_scipys():
    times = np.array([0.0, 0.001, 0.5, 3.0, 3.0, 7.0, 10.0])
    rates = (1.5, 1.0, 3.0, 1.0)

    def flow(t, y):
        a, b, c, d = rates
        return [a * y[0] - b * y[0] * y[1] + np.sin(t), d * y[0] * y[1] - c * y[1]]

    expected = reference.solve_ivp(
        flow, (0, 10), [10.0, 5.0], "DOP853", np.unique(times), rtol=1e-12, atol=1e-12
    ).y.T[[0, 1, 2, 3, 3, 4, 5]]
    with dt.enable_x64(True):
        for tolerance in (1e-4, 1e-10):
            y0 = jnp.array([10.0, 5.0])
            found = odeint(_volterra, y0, times, rates, rtol=tolerance, atol=1e-10)
            np.testing.assert_allclose(found, expected, rtol=200 * tolerance, atol=200 * tolerance)


def test_times_may_decrease_and_turn():
    with dt.enable_x64(True):
        times = np.array([0.0, -1.0, 0.3, 2.0, -2.0, 0.0])
        found = odeint(lambda y, t: y * jnp.cos(t), 1.0, times)
        np.testing.assert_allclose(found, np.exp(np.sin(times)), rtol=1e-6)


def test_trees_dtypes_and_closures():
    def flow(y, t, k):
        return {"a": -k * y["a"], "b": y["c"] * 1j, "c": y["c"], "n": jnp.ones(2, y["n"].dtype)}

    y0 = {
        "a": jnp.array([1.0, 2.0], "bfloat16"),
        "b": jnp.zeros((), "complex64"),
        "c": 1.0,
        "n": jnp.array([1, 2]),
    }
    out = odeint(flow, y0, jnp.array([0.0, 1.0, 2.0]), jnp.bfloat16(1.0), rtol=1e-6)
    assert {k: (str(v.dtype), v.shape) for k, v in out.items()} == {
        "a": ("bfloat16", (3, 2)),
        "b": ("complex64", (3,)),
        "c": ("float32", (3,)),
        "n": ("float32", (3, 2)),
    }
    np.testing.assert_allclose(out["a"][2].astype("float32"), np.exp(-2.0) * np.array([1, 2]), 1e-2)
    np.testing.assert_allclose(out["b"][2], 1j * np.expm1(2.0), rtol=1e-5)
    np.testing.assert_allclose(out["n"][1], [2, 3], rtol=1e-6)
    assert odeint(lambda y, t: y, 1.0, jnp.zeros(0)).shape == (0,)
    assert odeint(lambda y, t: y, jnp.ones((2, 3)), jnp.zeros(1)).tolist() == [[[1.0] * 3] * 2]


def test_failures_are_nan():
    times = np.array([0.0, 0.5, 2.0, 3.0], "float32")
    blown = odeint(lambda y, t: y * y, 1.0, times, rtol=1e-5)
    np.testing.assert_allclose(blown, [1, 2, np.nan, np.nan], rtol=1e-4)
    few = odeint(lambda y, t: -y, 1.0, times, mxstep=3)
    np.testing.assert_array_equal(np.isnan(few), [False, True, True, True])
    assert np.isnan(odeint(lambda y, t: -y, np.nan, times)).all()


def test_settings_bound_the_steps():
    """A pulse that large steps pass by is seen by small ones."""
    times = np.array([0.0, 10.0], "float32")

    def flow(y, t):
        return jnp.exp(-jnp.square((t - 6) / 0.05))

    found = [odeint(flow, 0.0, times, hmax=h, rtol=1e-4, atol=1e-4)[1] for h in (np.inf, 0.05)]
    area = 0.05 * np.sqrt(np.pi)
    np.testing.assert_allclose(found[1], area, rtol=1e-3)
    assert abs(found[0] - area) > 0.1 * area


def test_gradients_are_those_of_the_solution():
    """For y' = -a b cos(t) y, the solution is y0 exp(-a b (sin t - sin t0))."""
    w = np.array([0.0, 3.0, -1.0, 2.0])
    times = np.array([0.2, 0.2, 1.0, 1.7])

    def exact(y, t, a, b):
        return w @ (y * jnp.exp(-a * b["b"] * (jnp.sin(t) - jnp.sin(t[0]))))

    def solved(y, t, a, b):
        def flow(y, t, n, b):
            return -a * b["b"] * jnp.cos(t) * y * n

        return w @ odeint(flow, y, t, 1, b, rtol=1e-10, atol=1e-10)

    with dt.enable_x64(True):
        at = (2.0, times, 0.7, {"b": jnp.array(1.3)})
        found, expected = (dt.jit(dt.value_and_grad(f, (0, 1, 2, 3)))(*at) for f in (solved, exact))
        for x, y in zip(dt.tree.leaves(found), dt.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-8)


def test_second_derivatives():
    with dt.enable_x64(True):

        def end(a):
            times = np.array([0.0, 1.0])
            return odeint(lambda y, t: -a * y, 1.0, times, rtol=1e-7, atol=1e-7)[1]

        np.testing.assert_allclose(dt.grad(dt.grad(end))(0.5), np.exp(-0.5), rtol=1e-5)


def test_mistakes_are_refused():
    times = np.array([0.0, 1.0], "float32")
    for error, given in [
        (TypeError, {"func": 3}),
        (TypeError, {"func": lambda y, t: (y,)}),
        (TypeError, {"func": lambda y, t: jnp.ones(2)}),
        (TypeError, {"t": [0.0, 1.0]}),
        (TypeError, {"t": np.array([0, 1])}),
        (ValueError, {"t": times[:, None]}),
        (TypeError, {"y0": "a"}),
        (ValueError, {"rtol": -1.0}),
        (ValueError, {"hmax": 0.0}),
        (TypeError, {"hmax": None}),
        (TypeError, {"atol": 1j}),
        (TypeError, {"mxstep": np.ones(2)}),
    ]:
        with pytest.raises(error, match="odeint"):
            odeint(**{"func": lambda y, t: -y, "y0": 1.0, "t": times, **given})
    with pytest.raises(TypeError, match="odeint"):
        odeint(lambda y, t, a: y, 1.0, times, "a")
    with pytest.raises(TypeError, match="reverse"):
        dt.jvp(lambda y: odeint(lambda y, t: -y, y, times), (1.0,), (1.0,))
