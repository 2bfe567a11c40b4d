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


def scaled(p: Any, x: Any) -> Any:
    return {"y": p["w"] * x + p["b"], "s": (p["w"].sum() * x,)}


P = {"w": jnp.array([1.0, 2.0]), "b": np.float32(3.0)}
BY_X = {"y": [1.0, 2.0], "s": (3.0,)}
BY_P = {
    "y": {"b": [1.0, 1.0], "w": [[5.0, 0.0], [0.0, 5.0]]},
    "s": ({"b": 0.0, "w": [5.0, 5.0]},),
}


def paired(first: Any, second: Any) -> Any:
    """Of trees of functions of one argument each, the trees of both arguments."""
    return {
        "y": (first["y"], second["y"]),
        "s": ((first["s"][0], second["s"][0]),),
    }


ARGNUMS: dict[str, tuple[Any, Any]] = {
    "0": (0, BY_P),
    "1": (1, BY_X),
    "-1": (-1, BY_X),
    "(1,)": ((1,), {"y": (BY_X["y"],), "s": ((BY_X["s"][0],),)}),
    "(0, 1)": ((0, 1), paired(BY_P, BY_X)),
    "[1, 0]": ([1, 0], paired(BY_X, BY_P)),
}


@pytest.mark.parametrize("with_aux", [False, True])
@pytest.mark.parametrize("case", ARGNUMS)
@pytest.mark.parametrize("jacobian", [dt.jacfwd, dt.jacrev])
def test_trees_of_arguments_and_results(
    jacobian: Callable[..., Any], case: str, with_aux: bool
) -> None:
    argnums, wanted = ARGNUMS[case]
    function = (lambda p, x: (scaled(p, x), {"b": p["b"], "text": "any"})) if with_aux else scaled
    found = jacobian(function, argnums, has_aux=with_aux)(P, 5.0)
    if with_aux:
        found, aux = found
        assert (float(aux["b"]), aux["text"]) == (3.0, "any")
    is_leaf = lambda x: isinstance(x, list)
    assert dt.tree.structure(found) == dt.tree.structure(wanted, is_leaf=is_leaf)
    for one, other in zip(
        dt.tree.leaves(found), dt.tree.leaves(wanted, is_leaf=is_leaf), strict=True
    ):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("first", [dt.jacfwd, dt.jacrev])
@pytest.mark.parametrize("second", [dt.jacfwd, dt.jacrev])
@pytest.mark.parametrize("third", [dt.jacfwd, dt.jacrev, dt.hessian])
def test_higher_order(first: Any, second: Any, third: Any) -> None:
    twice = dt.jit(first(second(lambda x: (x**5, x.sum()), has_aux=True), has_aux=True))
    by_two, aux = twice(X)
    at = np.zeros((3, 3, 3))
    at[range(3), range(3), range(3)] = 20 * np.asarray(X, float) ** 3
    np.testing.assert_allclose(by_two, at, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(aux, X.sum(), rtol=1e-6)
    order = 4 if third is dt.hessian else 3
    scalar = third(first(second(lambda x: x**5)))(1.5)
    np.testing.assert_allclose(scalar, {3: 60 * 1.5**2, 4: 120 * 1.5}[order], rtol=1e-5)


@pytest.mark.parametrize("jacobian", [dt.jacfwd, dt.jacrev, dt.hessian])
def test_python_numbers_stay_weakly_typed(jacobian: Callable[..., Any]) -> None:
    """A derivative with respect to a Python number decides no more about dtypes than the number."""
    assert jacobian(lambda x: x**3)(2.0).aval.weak_type
    assert not jacobian(lambda x: x**3)(np.float32(2)).aval.weak_type


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
        (lambda: dt.jacfwd(lambda x: x > 0)(1.0), "jacfwd of <lambda> requires numeric results"),
        (lambda: dt.jacfwd(jnp.real, holomorphic=True)(1j), "jacfwd of real requires complex"),
        (lambda: dt.jacrev(jnp.real, holomorphic=True)(1j), "jacrev of real requires complex"),
        (lambda: dt.jacfwd(jnp.sin, has_aux=True)(1.0), "sin must return a pair"),
        (lambda: dt.jacrev(jnp.sin, has_aux=True)(1.0), "sin must return a pair"),
    ],
)
def test_errors(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()
