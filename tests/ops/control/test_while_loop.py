"""`lax.while_loop`: values, types, batches of conditions, errors.

What transformations make of it is in `test_control_flow`.
"""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random

DTYPES = [np.int8, np.uint8, np.int32, np.uint32, np.float16, ml_dtypes.bfloat16, np.float32]


@pytest.mark.parametrize("dtype", [*DTYPES, np.complex64, bool])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (0,)])
@pytest.mark.parametrize("turns", [0, 1, 4])
def test_dtypes_and_shapes(dtype: Any, shape: tuple[int, ...], turns: int) -> None:
    first = (np.arange(int(np.prod(shape))).reshape(shape) % 2).astype(dtype)
    expected = first
    for _ in range(turns):
        expected = (expected + expected).astype(dtype)
    run = lambda n, x: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + s[1]), (0, x))
    for way in (run, dt.jit(run)):
        count, found = way(turns, first)
        assert int(count) == turns
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)


def test_trees_and_captured_values() -> None:
    limit, step = jnp.asarray(10), {"by": np.int32(3)}

    def run(scale: Any) -> Any:
        return lax.while_loop(
            lambda s: s["n"] * scale < limit,
            lambda s: {"n": s["n"] + step["by"], "seen": [s["n"], None]},
            {"n": 0, "seen": [-1, None]},
        )

    for way in (run, dt.jit(run), lambda s: dt.vmap(lambda _: run(s))(np.zeros(2))):
        found = way(2)
        assert np.ravel(found["n"])[0] == 6
        assert np.ravel(found["seen"][0])[0] == 3
        assert found["seen"][1] is None


def test_keys() -> None:
    def run(key: Any) -> Any:
        turn = lambda s: (random.split(s[0])[0], random.uniform(s[0]), s[2] + 1)
        return lax.while_loop(lambda s: s[1] < 0.7, turn, (key, 0.0, 0))

    def in_python(key: Any) -> tuple[Any, float, int]:
        value, count = 0.0, 0
        while value < 0.7:
            key, value, count = random.split(key)[0], random.uniform(key), count + 1
        return key, value, count

    keys = random.split(random.key(3), 4)
    together = dt.vmap(run)(keys)
    for i, key in enumerate(keys):
        expected = in_python(key)
        for found in (run(key), [x[i] for x in together]):
            assert random.key_data(found[0]).tolist() == random.key_data(expected[0]).tolist()
            assert [float(x) for x in found[1:]] == [float(x) for x in expected[1:]]


AXES = [axes for axes in itertools.product((0, None), repeat=4) if any(a == 0 for a in axes)]


@pytest.mark.parametrize("axes", AXES)
def test_batches(axes: tuple[int | None, ...]) -> None:
    """Constants of condition and body, a number that decides, and one that does not."""

    def f(limit: Any, factor: Any, x: Any, y: Any) -> Any:
        body = lambda s: (s[0] * 2 + 1, s[1] * factor, s[2] + 1)
        return lax.while_loop(lambda s: s[0] < limit, body, (x, y, 0))

    values = (
        np.array([5, 40, -1], np.int32),
        np.array([0.5, 2, 3], np.float32),
        np.array([1, 7, 0], np.int32),
        np.ones((3, 2), np.float32) * np.array([[1], [2], [3]], np.float32),
    )
    args = [v if a == 0 else v[1] for v, a in zip(values, axes, strict=True)]
    for way in (dt.vmap(f, axes), dt.jit(dt.vmap(f, axes))):
        found = way(*args)
        for i in range(3):
            alone = f(*(v[i] if a == 0 else v for v, a in zip(args, axes, strict=True)))
            for several, one in zip(found, alone, strict=True):
                np.testing.assert_array_equal(several[i], one)
                assert several.dtype == one.dtype


def test_elements_that_are_done_stay_finite() -> None:
    """What the body makes of an element that is done, here infinity, reaches nothing."""
    f = lambda x, n: lax.while_loop(lambda s: s[1] < n, lambda s: (s[0] ** 3, s[1] + 1), (x, 0))[0]
    x, n = np.array([1e3, 1.01], np.float32), np.array([1, 30])
    for found in (
        dt.vmap(f)(x, n),
        dt.jvp(lambda v: dt.vmap(f)(v, n), (x,), (np.ones_like(x),))[1],
    ):
        assert np.isfinite(found[0])
    values, tangents = dt.jvp(lambda v: dt.vmap(f)(v, n), (x,), (np.ones_like(x),))
    np.testing.assert_allclose([values[0], tangents[0]], [1e9, 3e6], rtol=1e-6)


GRADIENTS: dict[str, Any] = {
    "while": lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * c, x),
    "jit of while": dt.jit(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * c, x)),
    "scan of while": lambda x: lax.scan(
        lambda c, _: (lax.while_loop(lambda c: c < 10, lambda c: c * c, c), None), x, None, 2
    )[0],
    "fori": dt.jit(lambda x: lax.fori_loop(0, jnp.int32(x), lambda i, c: c * c, x)),
    "vmap of while": lambda x: dt.vmap(
        lambda y: lax.while_loop(lambda c: c < 10, lambda c: c * c, y)
    )(jnp.stack([x, x])).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_reverse_mode_is_refused(name: str) -> None:
    message = r"here of <lambda> \(.*test_while_loop.py:\d+\)\), have no gradient in reverse mode"
    with pytest.raises(ValueError, match=message):
        dt.grad(GRADIENTS[name])(2.0)
    _, tangent = dt.jvp(GRADIENTS[name], (2.0,), (1.0,))
    assert np.isfinite(tangent)
    _, linear = dt.linearize(GRADIENTS[name], 2.0)
    np.testing.assert_allclose(linear(1.0), tangent, rtol=1e-6)


def test_what_does_not_vary_has_a_gradient() -> None:
    def f(x: Any) -> Any:
        turns = lax.while_loop(lambda n: n < 3, lambda n: n + 1, 0)
        return x**2 * turns

    assert float(dt.grad(f)(2.0)) == 12


def test_what_the_body_does_not_change_has_a_gradient() -> None:
    def loop(x: Any) -> Any:
        def body(carry: Any) -> Any:
            turns, same, total, other = carry
            return turns + 1, same, total + same[0] * other, other

        start = (0, (x, 2 * x), 1.0, x**2)
        return lax.while_loop(lambda carry: carry[0] < jnp.abs(carry[3]), body, start)

    def f(x: Any) -> Any:
        _, same, _, other = loop(x)
        return same[0] * same[1] * other

    for transformed in (dt.grad(f), dt.jit(dt.grad(f)), dt.jacfwd(f), dt.grad(dt.checkpoint(f))):
        assert float(transformed(2.0)) == 64
    np.testing.assert_allclose(dt.vmap(dt.grad(f))(jnp.arange(3.0)), [0, 8, 64])
    assert float(dt.grad(dt.grad(f))(2.0)) == 96
    primal, tangent = dt.jvp(loop, (2.0,), (1.0,))
    assert dt.tree.leaves(primal) == dt.tree.leaves(loop(2.0))
    assert float(tangent[2]) == 48  # of 1 + 4 x**3, where the 4 are the turns
    with pytest.raises(ValueError, match="no gradient in reverse mode"):
        dt.grad(lambda x: loop(x)[2])(2.0)


def test_without_jit() -> None:
    seen = []

    def body(c: Any) -> Any:
        seen.append(c)
        return c * 2

    with dt.disable_jit():
        assert lax.while_loop(lambda c: c < 9, body, 1) == 16
        assert seen == [1, 2, 4, 8]
        # Conditions that are not known are left to the compiled loop.
        batched = dt.vmap(lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * 2, x))
        assert batched(np.array([1, 3])).tolist() == [16, 12]


def test_printed() -> None:
    text = str(dt.make_jaxpr(lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * 2, x))(1.0))
    assert text == (
        """{ lambda ; a:f32[]. let
    b:f32[] = while[
      body_jaxpr={ lambda ; c:f32[]. let d:f32[] = mul c 2.0:f32[] in (d,) }
      body_nconsts=0
      cond_jaxpr={ lambda ; e:f32[]. let f:bool[] = lt e 9.0:f32[] in (f,) }
      cond_nconsts=0
    ] a
  in (b,) }"""
    )


ERRORS: list[tuple[Any, Any, str]] = [
    (lambda: lax.while_loop(1, lambda c: c, 0), TypeError, "takes a function"),
    (lambda: lax.while_loop(lambda c: c < 1, 1, 0), TypeError, "takes a function"),
    (lambda: lax.while_loop(lambda c: c, lambda c: c, 0), TypeError, "scalar bool, got i32"),
    (lambda: lax.while_loop(lambda c: c < 1, lambda c: c, np.ones(2)), TypeError, r"bool\[2\]"),
    (lambda: lax.while_loop(lambda c: (c < 1,), lambda c: c, 0), TypeError, "scalar bool"),
    (lambda: lax.while_loop(lambda c: None, lambda c: c, 0), TypeError, "scalar bool"),
    (lambda: lax.while_loop(lambda c: c < 1, lambda c: (c, c), 0), TypeError, "structure"),
    (lambda: lax.while_loop(lambda c: c < 1, lambda c: None, 0), TypeError, "structure"),
    (lambda: lax.while_loop(lambda c: c < 1, lambda c: c / 2, np.int32(0)), TypeError, "div at"),
    (lambda: lax.while_loop(lambda c: True, lambda c: "no", 0), TypeError, "type str"),
    (lambda: lax.while_loop(lambda c: True, lambda c: c, "no"), TypeError, "init_val"),
    (
        lambda: lax.while_loop(
            lambda c: True, lambda c: {"a": [c["a"][0].sum()]}, {"a": [jnp.ones(3)]}
        ),
        TypeError,
        r"init_val\['a'\]\[0\] was f32\[3\] and is returned as f32\[\]",
    ),
]


@pytest.mark.parametrize(("function", "kind", "message"), ERRORS)
def test_errors(function: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        function()
