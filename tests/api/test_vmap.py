"""vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

A = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
B = np.cos(np.arange(12.0, dtype=np.float32)).reshape(3, 4)


@pytest.mark.parametrize("in_axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out_axis", [0, 1, 2, -1])
def test_one_argument_is_a_loop(in_axis: int, out_axis: int) -> None:
    function = lambda x: jnp.sin(x) * jnp.sum(x, axis=0)
    expected = np.stack(
        [function(np.take(A, i, in_axis)) for i in range(A.shape[in_axis])], out_axis
    )
    for mapped in (
        dt.vmap(function, in_axis, out_axis),
        dt.jit(dt.vmap(function, in_axis, out_axis)),
    ):
        np.testing.assert_allclose(mapped(A), expected, rtol=1e-5)


TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "outer": lambda x, y: x[:, None] * y[None, :],
    "dot": lambda x, y: jnp.dot(x, y),
    "where": lambda x, y: jnp.where(x > 3, x, y),
    "scatter": lambda x, y: x.at[1].set(y[0]),
    "gather": lambda x, y: x[jnp.argmax(y)],
    "constant": lambda x, y: jnp.zeros(3) + 1.0,
    "grad": lambda x, y: dt.grad(lambda z: jnp.sum(jnp.sin(z) * y))(x),
    "jit": lambda x, y: dt.jit(lambda u, v: u * v + 1.0)(x, y),
}


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 0)])
def test_two_arguments_are_a_loop(name: str, axes: tuple[int | None, int | None]) -> None:
    function = TWO[name]
    stacked = {0: B, 1: np.ascontiguousarray(B.T), None: B[1]}
    x, y = stacked[axes[0]], stacked[axes[1]] * 2.0
    pick = lambda array, axis, i: array if axis is None else np.take(array, i, axis)
    expected = np.stack(
        [function(jnp.array(pick(x, axes[0], i)), jnp.array(pick(y, axes[1], i))) for i in range(3)]
    )
    np.testing.assert_allclose(
        dt.vmap(function, axes)(jnp.array(x), jnp.array(y)), expected, rtol=1e-5
    )


@pytest.mark.parametrize("axes", [(None, 0), ({"how": None}, 0)])
def test_what_is_passed_whole_need_not_be_an_array(axes: Any) -> None:
    function = lambda options, x: getattr(jnp, options["how"])(x)
    np.testing.assert_allclose(dt.vmap(function, axes)({"how": "sum"}, B), B.sum(1), rtol=1e-6)
    np.testing.assert_allclose(
        dt.vmap(lambda f, x: f(x), (None, 0))(jnp.sum, B), B.sum(1), rtol=1e-6
    )
    with pytest.raises(TypeError, match=r"Argument options\['how'\] of vmap of <lambda> is 'sum'"):
        dt.vmap(function)({"how": "sum"}, B)


def test_nested() -> None:
    outer = dt.vmap(dt.vmap(lambda x, y: x * y, (0, None)), (None, 0))
    np.testing.assert_allclose(outer(B[0], B[:, 0]), B[:, :1] * B[:1])
    three = dt.vmap(dt.vmap(dt.vmap(lambda x: x + 1.0)))
    np.testing.assert_allclose(three(A), A + 1)


def test_trees_prefixes_and_keywords() -> None:
    def function(state: Any, x: Any, *, scale: Any) -> Any:
        return {"sum": state["a"] + x, "scaled": (state["b"] * scale, x)}

    state = {"a": B, "b": np.float32(2.0)}
    mapped = dt.vmap(function, in_axes=({"a": 0, "b": None}, 1), out_axes={"sum": 0, "scaled": 1})
    out = mapped(state, np.ones((4, 3), np.float32), scale=B)
    np.testing.assert_allclose(out["sum"], B + 1)
    np.testing.assert_allclose(out["scaled"][0], 2 * B.T)
    assert out["scaled"][1].shape == (4, 3)


def test_results_that_do_not_vary() -> None:
    _, constant = dt.vmap(lambda x: (x, 5.0), out_axes=(0, None))(B)
    assert float(constant) == 5.0
    np.testing.assert_array_equal(dt.vmap(lambda x: 5.0)(B), np.full(3, 5.0))


def test_axis_size() -> None:
    assert dt.vmap(lambda: jnp.zeros(2), axis_size=4)().shape == (4, 2)
    assert dt.vmap(lambda x: x, in_axes=None, axis_size=4)(1.0).shape == (4,)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: jnp.sum(jnp.sin(x)),
        lambda x, i: x[i],
        lambda x, i: dt.lax.dynamic_slice(x, (i,), (2,)),
        lambda x, i: dt.lax.dynamic_update_slice(x, x[:2], (i,)),
        lambda x, i: x.at[i].add(1.0),
        lambda x, i: jnp.nanmedian(x),
        lambda x, i: jnp.quantile(x, x[0]),
    ],
    ids=["sum", "index", "dynamic_slice", "dynamic_update_slice", "add", "nanmedian", "quantile"],
)
def test_empty_batch(function: Callable[..., Any]) -> None:
    x, i = np.zeros((0, 3), np.float32), np.zeros(0, np.int32)
    for run in (dt.vmap(function), dt.jit(dt.vmap(function))):
        assert run(x, i).shape == (0, *function(jnp.zeros(3), 0).shape)


@pytest.mark.parametrize("order", ["vmap of grad", "grad of vmap"])
def test_with_gradients(order: str) -> None:
    function = lambda x: jnp.sum(jnp.sin(x) * x[0])
    if order == "vmap of grad":
        out = dt.vmap(dt.grad(function))(B)
    else:
        out = dt.grad(lambda rows: jnp.sum(dt.vmap(function)(rows)))(B)
    np.testing.assert_allclose(out, np.stack([dt.grad(function)(row) for row in B]), rtol=1e-5)


ERRORS: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
    ("sizes", lambda: dt.vmap(jnp.add)(np.ones(2), np.ones(3)), ValueError, "inconsistent sizes"),
    ("rank", lambda: dt.vmap(jnp.sin)(1.0), ValueError, r"shape \(\), of rank 0"),
    ("axis", lambda: dt.vmap(jnp.sin, 2)(np.ones((2, 2))), ValueError, "over axis 2"),
    ("count", lambda: dt.vmap(jnp.add, (0,))(1.0, 2.0), ValueError, "1 entry,"),
    ("nothing", lambda: dt.vmap(lambda x: x, None)(1.0), ValueError, "axis_size"),
    ("type", lambda: dt.vmap(jnp.sin, "x"), TypeError, "in_axes"),
    ("float", lambda: dt.vmap(jnp.sin, (1.5,)), TypeError, "integers"),
    ("out None", lambda: dt.vmap(lambda x: x, 0, None)(np.ones(2)), ValueError, "depends on"),
    ("out rank", lambda: dt.vmap(lambda x: x, 0, 1)(np.ones(2)), ValueError, "rank 1"),
    (
        "prefix",
        lambda: dt.vmap(lambda d: d["a"], ({"b": 0},))({"a": np.ones(2)}),
        ValueError,
        "in_axes",
    ),
    ("leaf", lambda: dt.vmap(lambda x: x)("text"), TypeError, "Argument x"),
    ("bool", lambda: dt.vmap(lambda x: x if x > 0 else -x)(np.ones(2)), TypeError, "vmap"),
]


@pytest.mark.parametrize(
    ("call", "error", "text"), [e[1:] for e in ERRORS], ids=[e[0] for e in ERRORS]
)
def test_errors(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


# Functions of a mapped and a constant value that return the constant one first, as it is; the rest
# of the result is mapped.
PASSING_THROUGH: dict[str, Callable[[Any, Any], Any]] = {
    "cond": lambda y, c: lax.cond(y > 1, lambda y: (c, y), lambda y: (c, 2 * y), y),
    "cond of operands": lambda y, c: lax.cond(
        y > 1, lambda c, y: (c, y), lambda c, y: (c, 2 * y), c, y
    ),
    "cond, one predicate": lambda y, c: lax.cond(
        jnp.sum(c) > 0, lambda y: (c, y), lambda y: (c, 2 * y), y
    ),
    "switch": lambda y, c: lax.switch(
        y.astype(int), [lambda y: (c, y), lambda y: (c, -y), lambda y: (c, 2 * y)], y
    ),
    "while_loop": lambda y, c: lax.while_loop(
        lambda s: s[1] < 5, lambda s: (s[0], 2 * s[1]), (c, y)
    ),
    "fori_loop": lambda y, c: lax.fori_loop(
        0, y.astype(int), lambda i, s: (s[0], s[1] + jnp.sum(s[0])), (c, y)
    ),
    "scan": lambda y, c: lax.scan(lambda s, _: ((s[0], 2 * s[1]), None), (c, y), length=2)[0],
    "jit": lambda y, c: dt.jit(lambda c, y: (c, 2 * y))(c, y),
    "checkpoint": lambda y, c: dt.checkpoint(lambda c, y: (c, 2 * y))(c, y),
    "where": lambda y, c: (jnp.where(jnp.sum(c) > 0, c, -c), y),
}


@pytest.mark.parametrize("transform", [lambda f: f, dt.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", PASSING_THROUGH)
def test_what_is_passed_through_has_no_batch(name: str, transform: Any) -> None:
    function = PASSING_THROUGH[name]
    y, c = jnp.arange(1.0, 4.0), jnp.array([2.0, 3.0])

    @transform
    def mapped(y: Any, c: Any) -> Any:
        return dt.vmap(function, in_axes=(0, None), out_axes=(None, 0))(y, c)

    constant, values = mapped(y, c)
    np.testing.assert_array_equal(constant, c)
    expected = jnp.stack([function(element, c)[1] for element in y])
    np.testing.assert_array_equal(values, expected)
    everywhere, _ = dt.vmap(function, in_axes=(0, None))(y, c)
    np.testing.assert_array_equal(everywhere, jnp.stack([c] * 3))


@pytest.mark.parametrize("name", ["cond", "cond of operands", "switch", "scan", "jit", "where"])
def test_the_gradient_of_what_is_passed_through(name: str) -> None:
    function = PASSING_THROUGH[name]
    y, c = jnp.arange(1.0, 4.0), jnp.array([2.0, 3.0])

    def total(y: Any, c: Any) -> Any:
        constant, values = dt.vmap(function, in_axes=(0, None), out_axes=(None, 0))(y, c)
        return jnp.sum(constant**2) + jnp.sum(values)

    of_y, of_c = dt.grad(total, argnums=(0, 1))(y, c)
    np.testing.assert_array_equal(of_c, 2 * c)
    np.testing.assert_array_equal(of_y, [dt.grad(lambda e: function(e, c)[1])(e) for e in y])


@pytest.mark.parametrize(
    "function",
    [
        lambda y, c: lax.cond(y > 1, lambda: c, lambda: c + 1),
        lambda y, c: lax.cond(y > 1, lambda c, d: (c, d), lambda c, d: (d, c), c, c + 1)[0],
        lambda y, c: lax.while_loop(lambda s: s[0] < 5, lambda s: (2 * s[0], s[1] + 1), (y, c))[1],
        lambda y, c: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, *s[:0:-1]), (y, c, c))[
            1
        ],
    ],
)
def test_what_differs_between_elements_has_a_batch(function: Any) -> None:
    y, c = jnp.arange(1.0, 4.0), jnp.array([2.0, 3.0])
    with pytest.raises(ValueError, match=r"vmap of .*: out_axes is None"):
        dt.vmap(function, in_axes=(0, None), out_axes=None)(y, c)
    expected = jnp.stack([function(e, c) for e in y])
    np.testing.assert_array_equal(dt.vmap(function, in_axes=(0, None))(y, c), expected)


class Squaring:
    """A callable with a name that no function can have."""

    __name__ = 3

    def __call__(self, x: Any) -> Any:
        return x * x


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (dt.vmap, [0, 1, 4]),
        (dt.jit, [0, 1, 4]),
        (dt.checkpoint, [0, 1, 4]),
        (lambda f: dt.vmap(dt.grad(f)), [0, 2, 4]),
        (lambda f: dt.vmap(dt.jacfwd(f)), [0, 2, 4]),
    ],
)
def test_callables_of_any_kind(transform: Any, expected: list[int]) -> None:
    np.testing.assert_array_equal(transform(Squaring())(jnp.arange(3.0)), expected)
