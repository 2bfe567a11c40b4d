"""vectorize, piecewise, apply_along_axis and apply_over_axes against NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def same(actual: Any, expected: Any) -> None:
    assert isinstance(actual, jnp.ndarray)
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-6)


SHAPES: list[tuple[tuple[int, ...], ...]] = [
    ((), ()),
    ((3,), ()),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((1, 1), (1,)),
    ((0, 3), (1,)),
    ((2, 1, 3), (4, 1)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_elements_broadcast(shapes: tuple[tuple[int, ...], ...]) -> None:
    a, b = (np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in shapes)
    seen = []

    def function(x: Any, y: Any) -> Any:
        seen.append((x.shape, y.shape))
        return x - 2 * y

    same(jnp.vectorize(function)(a, b), a - 2 * b)
    same(dt.jit(jnp.vectorize(function))(a, b), a - 2 * b)
    assert set(seen) == {((), ())}


PARTS: list[tuple[str, Callable[..., Any], list[tuple[int, ...]]]] = [
    ("(n)->()", lambda v: v.sum(), [(2, 3)]),
    ("(n),(n)->()", lambda v, w: v @ w, [(2, 3), (3,)]),
    ("(n),(n)->()", lambda v, w: v @ w, [(4, 1, 3), (2, 3)]),
    ("(m,n),(n)->(m)", lambda a, v: a @ v, [(5, 2, 3), (3,)]),
    ("(m,n),(n,k)->(m,k)", lambda a, b: a @ b, [(5, 1, 2, 3), (4, 3, 2)]),
    ("(n)->(),(n)", lambda v: (v.max(), v - v.max()), [(2, 3)]),
    ("(3)->(3,3)", lambda v: v[:, None] * v, [(2, 3)]),
    ("(n)->(k)", lambda v: v[:1], [(2, 3)]),
    (" ( n , ) , ( ) -> ( n ) ", lambda v, s: v * s, [(2, 3), (2,)]),
    ("(n)->()", lambda v: v.sum(), [(1, 3)]),
    ("(n)->()", lambda v: v.sum(), [(2, 0)]),
]


@pytest.mark.parametrize("number", range(len(PARTS)))
def test_signatures(number: int) -> None:
    signature, function, shapes = PARTS[number]
    args = [np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in shapes]
    mapped = jnp.vectorize(function, signature=signature)
    results = [mapped(*args)]
    if number == 3:
        results.append(dt.jit(mapped)(*args))
    expected = np.vectorize(function, signature=signature.replace(",)", ")").replace("n ,", "n"))(
        *args
    )
    for result in results:
        for r, e in zip(
            *(v if isinstance(v, tuple) else (v,) for v in (result, expected)), strict=True
        ):
            same(r, e)


def test_excluded_arguments_and_none() -> None:
    def function(x: Any, y: Any = None, *, scale: Any = 1) -> Any:
        return (x if y is None else x + jnp.sum(y)) * scale

    for excluded in ({1}, [1], (1, "scale", 7)):
        same(jnp.vectorize(function, excluded=excluded)(X, X[0]), X + 3)
    same(jnp.vectorize(function)(X, X[0]), X + X[0])
    same(jnp.vectorize(function)(X, None), X)
    same(jnp.vectorize(function)(X, y=X[0], scale=2), (X + X[0]) * 2)
    same(jnp.vectorize(function, excluded={"scale"})(X, scale=3), X * 3)
    same(jnp.vectorize(function, excluded={"y"})(X, y=X), X + 15)
    dot = jnp.vectorize(lambda v, w: v @ w, signature="(n),(n)->()")
    same(dot(X, w=X[0]), X @ X[0])
    shift = jnp.vectorize(lambda v, w: v.sum() + w, signature="(n)->()", excluded={1})
    same(shift(X, 2), X.sum(1) + 2)
    assert jnp.vectorize(lambda: 3)() == 3


def test_results_are_trees_and_names_are_kept() -> None:
    @functools.partial(jnp.vectorize)
    def function(x: Any) -> dict[str, Any]:
        """Documented."""
        return {"double": 2 * x, "pair": (x, x[None].repeat(2))}

    result = function([1, 2])
    assert (function.__name__, function.__doc__) == ("function", "Documented.")
    same(result["double"], [2, 4])
    same(result["pair"][1], [[1, 1], [2, 2]])
    single = function(np.ones((1, 1)))
    assert single["pair"][1].shape == (1, 1, 2)
    gradient = dt.grad(lambda x: jnp.vectorize(lambda v: v**2)(x).sum())(X)
    same(gradient, 2 * X)
    same(dt.vmap(jnp.vectorize(lambda v, w: v @ w, signature="(n),(n)->()"))(X, X), (X * X).sum(1))


CONDITIONS: list[tuple[Any, Any, list[Any]]] = [
    (X, [X < 2, X > 3], [-1, lambda v: v * 2, 7]),
    (X, [X < 2, X > 3], [-1, lambda v: v * 2]),
    (X, [X < 4, X > 1], [1, 2]),
    (X.astype("int32"), [X < 2], [lambda v: v + 1.75, 3]),
    (np.float32(3), [True, False], [lambda v: v + 1, 0]),
    (X[0], [np.array([True, False, True])], [lambda v: -v]),
]


@pytest.mark.parametrize("number", range(len(CONDITIONS)))
def test_piecewise(number: int) -> None:
    x, conditions, functions = CONDITIONS[number]
    expected = np.piecewise(x, conditions, functions)
    result = jnp.piecewise(x, conditions, functions)
    same(result, expected)
    assert result.dtype == x.dtype
    if number == 0:
        same(dt.jit(lambda v: jnp.piecewise(v, [v < 2, v > 3], functions))(x), expected)


def test_piecewise_compiles_once_for_the_same_functions() -> None:
    calls = []
    functions = [lambda v: calls.append(v) or v + 1, 5]
    for start in range(3):
        x = X + start
        same(jnp.piecewise(x, [x < 4], functions), np.where(x < 4, x + 1, 5))
    assert len(calls) == 1
    functions[1] = 7.0  # type: ignore[list-item]
    same(jnp.piecewise(X, [X < 4], functions), np.where(X < 4, X + 1, 7))
    assert len(calls) <= 2

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, v: Any) -> Any:
            return v * 2

    same(jnp.piecewise(X, [X < 4], [Unhashable(), -1]), np.where(X < 4, X * 2, -1))


def test_piecewise_with_arguments_scalar_conditions_and_gradients() -> None:
    functions = [lambda v, a, b: v * a + b, lambda v, a, b: b]
    same(jnp.piecewise(X, [X < 2], functions, 3, b=4), np.where(X < 2, X * 3 + 4, 4))
    same(jnp.piecewise(X, jnp.array([False, True]), [0, lambda v: v * 10]), X * 10)
    same(
        jnp.piecewise(X, jnp.stack([X < 1, X > 1]), [5, 6]), np.piecewise(X, [X < 1, X > 1], [5, 6])
    )
    same(jnp.piecewise(X, jnp.array(True), [5, 6]), np.full_like(X, 5))
    same(jnp.piecewise(X, [np.array([[True], [False]])], [1, 2]), [[1, 1, 1], [2, 2, 2]])
    root = dt.grad(lambda v: jnp.piecewise(v, [v > 0], [jnp.sqrt, 0.0]).sum())
    same(root(np.array([0.0, 4.0])), [0, 0.25])


ALONG: list[tuple[Callable[[Any], Any], tuple[int, ...]]] = [
    (lambda v: v.sum(), ()),
    (lambda v: v[::-1] * 2, (3,)),
    (lambda v: v[:2, None] * v[None, :3], (2, 3)),
]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("number", range(len(ALONG)))
def test_apply_along_axis(axis: int, number: int) -> None:
    x = np.arange(36, dtype=np.float32).reshape(3, 4, 3)
    function = ALONG[number][0]
    same(jnp.apply_along_axis(function, axis, x), np.apply_along_axis(function, axis, x))


def test_apply_along_axis_with_arguments_and_trees() -> None:
    same(jnp.apply_along_axis(lambda v, a, b: v + a * b, 0, X, 2, b=3), X + 6)
    result = jnp.apply_along_axis(lambda v: {"max": v.max(), "first": v[:1]}, 1, X)
    same(result["max"], X.max(1))
    same(result["first"], X[:, :1])
    same(jnp.apply_along_axis(lambda v: 1, 0, X), np.ones(3))
    same(dt.jit(lambda v: jnp.apply_along_axis(jnp.cumsum, 1, v))(X), X.cumsum(1))


def test_apply_over_axes() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for function, reference in ((jnp.sum, np.sum), (jnp.max, np.max), (jnp.cumsum, np.cumsum)):
        for axes in ([0, 2], (1,), 1, -1, np.array([0, 1, 2]), []):
            expected = np.apply_over_axes(reference, x, axes)
            same(jnp.apply_over_axes(function, x, axes), expected)


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: jnp.vectorize(1), TypeError, "pyfunc to be callable, got int"),
    (lambda: jnp.vectorize(abs, excluded={1.5}), TypeError, "numbers and names .* got 1.5"),
    (lambda: jnp.vectorize(abs, excluded=1), TypeError, r"write excluded=\{1\}"),
    (lambda: jnp.vectorize(abs, excluded={-1}), ValueError, "excluded holds -1"),
    (lambda: jnp.vectorize(abs, signature=1), TypeError, "signature to be a string"),
    *(
        (functools.partial(jnp.vectorize, abs, signature=s), ValueError, "is no signature; write")
        for s in ("", "->", "(n)", "(n),(n)->", "(n?)->()", "n->n", "(n)->(m)->()")
    ),
    (lambda: jnp.vectorize(jnp.add)(X, X.T), TypeError, r"\(2, 3\), \(3, 2\)"),
    (lambda: jnp.vectorize(jnp.add)(X, "a"), TypeError, "text"),
    (lambda: dot()(X, X[:, :2]), ValueError, "size 2 for the dimension n .* which is 3"),
    (lambda: dot()(X, 1.0), ValueError, r"argument 1 of shape \(\) lacks dimensions"),
    (lambda: dot()(X), TypeError, r"got 1 array, and its signature, \(n\),\(n\)->\(\), has 2"),
    (lambda: of("(4)->()")(X), ValueError, "size 3 for the dimension 4"),
    (lambda: of("(n)->(n)")(X), ValueError, r"result 0 of .* shape \(\)"),
    (lambda: of("(n)->(),()")(X), TypeError, "tuple of 2 results .* a single value"),
    (lambda: jnp.vectorize(lambda v: (v, v), signature="()->()")(X), TypeError, "1, not 2"),
    (lambda: jnp.vectorize(lambda v: v[:2], signature="(n)->(n)")(X), ValueError, "result 0"),
    (lambda: jnp.piecewise(X, [X < 2], [1, 2, 3]), ValueError, "1 condition .* holds 3"),
    (lambda: jnp.piecewise([1], [[True]], [1]), TypeError, "asarray"),
    (lambda: jnp.piecewise(X, [np.ones(2, bool)], [1]), TypeError, "incompatible shapes"),
    (lambda: jnp.apply_along_axis(jnp.sum, 2, X), ValueError, "axis 2 is out of bounds"),
    (lambda: jnp.apply_along_axis(jnp.sum, 0, 1), ValueError, "dimension 0"),
    (lambda: jnp.apply_along_axis(jnp.sum, 0, [1]), TypeError, "asarray"),
    (lambda: jnp.apply_along_axis("sum", 0, X), TypeError, "func1d to be callable, got str"),
    (lambda: jnp.apply_over_axes("sum", X, [0]), TypeError, "func to be callable, got str"),
    (lambda: jnp.piecewise(X, [X > 1], None), TypeError, "funclist.*NoneType"),
    (lambda: jnp.apply_over_axes(jnp.sum, X, [2]), ValueError, "axes 2 is out of bounds"),
    (lambda: jnp.apply_over_axes(lambda a, d: a.sum(), X, [0]), ValueError, "dimensions, or of 1"),
]  # fmt: skip


def dot() -> Callable[..., Any]:
    return jnp.vectorize(jnp.dot, signature="(n),(n)->()")


def of(signature: str) -> Callable[..., Any]:
    return jnp.vectorize(lambda v: v.sum(), signature=signature)


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number: int) -> None:
    call, kind, message = ERRORS[number]
    with pytest.raises(kind, match=message):
        call()
