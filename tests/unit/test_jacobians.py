"""jacfwd, jacrev, hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

X = np.array([0.5, -1.0, 2.0], np.float32)


@pytest.mark.parametrize("jacobian", [dt.jacfwd, dt.jacrev])
def test_vector_functions(jacobian: Callable[..., Any]) -> None:
    function = lambda x: jnp.stack([x[0] * x[1], jnp.sin(x[2])])
    expected = [[X[1], X[0], 0.0], [0.0, 0.0, np.cos(X[2])]]
    np.testing.assert_allclose(jacobian(function)(X), expected, rtol=1e-6)
    np.testing.assert_allclose(dt.jit(jacobian(function))(X), expected, rtol=1e-6)


@pytest.mark.parametrize("jacobian", [dt.jacfwd, dt.jacrev])
def test_trees(jacobian: Callable[..., Any]) -> None:
    def function(p: Any, y: Any) -> Any:
        return {"u": p["a"] * y, "v": jnp.sum(p["b"])}

    p = {"a": np.float32(2.0), "b": np.ones((2, 2), np.float32)}
    out = jacobian(function, argnums=(0, 1))(p, X)
    np.testing.assert_allclose(out["u"][0]["a"], X)
    np.testing.assert_array_equal(out["u"][0]["b"], np.zeros((3, 2, 2)))
    np.testing.assert_allclose(out["u"][1], 2 * np.eye(3))
    np.testing.assert_array_equal(out["v"][0]["b"], np.ones((2, 2)))
    assert out["v"][1].shape == (3,)


@pytest.mark.parametrize("jacobian", [dt.jacfwd, dt.jacrev])
def test_auxiliary_data(jacobian: Callable[..., Any]) -> None:
    out, aux = jacobian(lambda x: (x**2, jnp.sum(x)), has_aux=True)(X)
    np.testing.assert_allclose(out, np.diag(2 * X), rtol=1e-6)
    np.testing.assert_allclose(aux, X.sum(), rtol=1e-6)


def test_hessian() -> None:
    function = lambda x: jnp.sum(x[0] * x**2)
    expected = np.diag([2 * X[0]] * 3) + np.outer([1, 0, 0], 2 * X) + np.outer(2 * X, [1, 0, 0])
    np.testing.assert_allclose(dt.hessian(function)(X), expected, rtol=1e-5)
    tree = dt.hessian(lambda p: p["a"] * jnp.sum(p["b"]))({"a": np.float32(2.0), "b": X})
    np.testing.assert_allclose(tree["a"]["b"], np.ones(3))


def test_holomorphic() -> None:
    z = np.array([1 + 2j, 0.5j], np.complex64)
    for jacobian in (dt.jacfwd, dt.jacrev):
        out = jacobian(lambda z: z * z, holomorphic=True)(z)
        np.testing.assert_allclose(out, np.diag(2 * z), rtol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, dt.jit])
def test_integers_have_zeros(wrap: Any) -> None:
    forward = wrap(dt.jacfwd(lambda x: {"whole": x.astype(int), "same": x}))(X)
    assert forward["whole"].dtype == np.int32
    np.testing.assert_array_equal(forward["whole"], np.zeros((3, 3)))
    np.testing.assert_array_equal(forward["same"], np.eye(3))
    counts = np.arange(3, dtype=np.int8)
    function = lambda n, x: n * x
    backward = wrap(dt.jacrev(function, argnums=(0, 1), allow_int=True))(counts, X)
    assert backward[0].dtype == np.int8
    np.testing.assert_array_equal(backward[0], np.zeros((3, 3)))
    np.testing.assert_array_equal(backward[1], np.diag(counts))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: dt.jacfwd(jnp.sin)(1), "real floating-point arguments"),
        (lambda: dt.jacrev(jnp.sin)(1), "requires floating-point arguments"),
        (lambda: dt.jacrev(lambda z: z * z)(1j), "holomorphic=True"),
        (lambda: dt.jacfwd(jnp.sin)("a"), "Argument x of jacfwd"),
        (lambda: dt.jacrev(lambda x: jnp.int32(2))(1.0), "real floating-point results"),
        (lambda: dt.jacfwd(jnp.sin)(1j), "holomorphic=True"),
    ],
)
def test_errors(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()
