"""`lax.scan`, `lax.fori_loop` and `lax.map`: values, types, what is traced and kept.

What transformations make of them is in `test_control_flow`.
"""

from __future__ import annotations

import gc
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail.extend import ClosedJaxpr

DTYPES = [bool, np.int8, np.uint8, np.int32, np.uint32, np.float16, ml_dtypes.bfloat16]
DTYPES += [np.float32, np.complex64]


def elements(dtype: Any, *shape: int) -> Any:
    made = np.arange(int(np.prod(shape))).reshape(shape) % 5
    return made.astype(dtype)


@pytest.mark.parametrize("unroll", [1, 2, 3, 7, True, False])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_lengths_directions_and_unrolling(length: int, reverse: bool, unroll: Any) -> None:
    xs = np.arange(length, dtype=np.int32) + 1
    order = xs[::-1] if reverse else xs
    sums = np.concatenate([[0], np.cumsum(order)]).astype(np.int32)
    before = sums[:-1][::-1] if reverse else sums[:-1]
    for way in (lambda f: f, dt.jit):
        run = way(lambda v: lax.scan(lambda c, x: (c + x, c), 0, v, reverse=reverse, unroll=unroll))
        total, found = run(xs)
        assert int(total) == sums[-1]
        assert found.tolist() == before.tolist()
        assert (found.dtype, found.shape) == (np.int32, (length,))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0, 3), (2, 1)])
def test_dtypes_and_shapes(dtype: Any, shape: tuple[int, ...]) -> None:
    xs = elements(dtype, 4, *shape)
    zero = np.zeros(shape, dtype)
    last, (before, copies) = lax.scan(lambda c, x: (x, (c, x)), zero, xs)
    np.testing.assert_array_equal(last, xs[-1])
    np.testing.assert_array_equal(before, np.concatenate([zero[None], xs[:-1]]))
    np.testing.assert_array_equal(copies, xs)
    assert last.dtype == before.dtype == copies.dtype == dtype
    np.testing.assert_array_equal(lax.map(lambda x: x, xs), xs)
    back = lax.fori_loop(0, 4, lambda i, c: jnp.asarray(xs)[3 - i], zero)
    np.testing.assert_array_equal(back, xs[0])


def test_trees() -> None:
    xs = {"a": np.arange(3), "b": [np.ones((3, 2), np.float32), None, ()]}

    def body(carry: Any, x: Any) -> Any:
        assert set(x) == {"a", "b"}
        assert x["b"][1] is None
        total, (rest,) = carry
        return [total + x["a"], (rest + x["b"][0],)], {"y": x["a"], "nothing": None}

    (total, (rest,)), ys = lax.scan(body, [0, (np.zeros(2, np.float32),)], xs)
    assert int(total) == 3
    assert rest.tolist() == [3, 3]
    assert ys["y"].tolist() == [0, 1, 2]
    assert ys["nothing"] is None
    assert lax.scan(lambda c, x: (c, None), (), None, length=3) == ((), None)


def test_keys_are_carried_and_taken() -> None:
    def body(key: Any, other: Any) -> Any:
        following, drawn = random.split(key)
        return following, (random.bits(drawn), random.bits(other), drawn)

    keys = random.split(random.key(1), 3)
    key, found = random.key(0), []
    for other in keys:
        following, drawn = random.split(key)
        found.append((random.bits(drawn), random.bits(other), drawn))
        key = following
    for run in (lax.scan, dt.jit(lax.scan, static_argnums=0)):
        last, (first, second, drawn) = run(body, random.key(0), keys)
        assert random.key_data(last).tolist() == random.key_data(key).tolist()
        assert first.tolist() == [int(a) for a, _, _ in found]
        assert second.tolist() == [int(b) for _, b, _ in found]
        assert drawn.dtype == key.dtype
        assert drawn.shape == (3,)
    several = dt.vmap(lambda k: lax.scan(body, k, keys)[1][0])(random.split(random.key(7), 2))
    alone = [lax.scan(body, k, keys)[1][0] for k in random.split(random.key(7), 2)]
    assert several.tolist() == [a.tolist() for a in alone]


def typed(tree: Any) -> Any:
    return dt.tree_util.tree_map(lambda s: (s.dtype.name, s.weak_type), tree)


HALF = np.float16(2)
WEAK: dict[str, tuple[Any, Any]] = {
    "kept": (lambda: lax.scan(lambda c, _: (c + 1, c), 0, None, 3), (("int32", True),) * 2),
    "made strong": (
        lambda: lax.scan(lambda c, x: (c + x, c), 0.0, np.ones(3, np.float16)),
        (("float16", False),) * 2,
    ),
    "step by step": (
        lambda: lax.scan(lambda c, _: ((c[0] + c[1], c[1]), None), (0, HALF), None, 4)[0],
        (("float16", False),) * 2,
    ),
    "while": (lambda: lax.while_loop(lambda c: c < 9, lambda c: c * 2, 1), ("int32", True)),
    "while, strong": (
        lambda: lax.while_loop(lambda c: c < 9, lambda c: c * HALF, 1.0),
        ("float16", False),
    ),
    "fori": (
        lambda: lax.fori_loop(0, 3, lambda i, c: (c[0] * HALF, c[1] + i), (1.0, 0)),
        (("float16", False), ("int32", True)),
    ),
    "fori with a typed index": (
        lambda: lax.fori_loop(np.int8(0), np.int8(3), lambda i, c: c + i, np.int8(0)),
        ("int8", False),
    ),
    "a number returned for an array": (
        lambda: lax.scan(lambda c, _: (3.0, None), np.float32(1), None, 2)[0],
        ("float32", False),
    ),
}


@pytest.mark.parametrize("name", WEAK)
def test_weak_types(name: str) -> None:
    function, expected = WEAK[name]
    assert typed(dt.eval_shape(function)) == expected
    assert [x.weak_type for x in dt.tree_util.tree_leaves(function())] == [
        weak
        for _, weak in dt.tree_util.tree_leaves(
            expected, is_leaf=lambda x: len(x) == 2 and isinstance(x[0], str)
        )
    ]


def test_captured_values() -> None:
    array = np.arange(3.0, dtype=np.float32)

    def run(scale: Any, xs: Any) -> Any:
        outer = scale * jnp.asarray(array)
        return lax.scan(lambda c, x: (c * outer + x * array, jnp.sum(outer)), array, xs)

    xs = np.ones((2, 3), np.float32)
    expected = array
    for x in xs:
        expected = expected * (2 * array) + x * array
    for f in (run, dt.jit(run), lambda s, v: dt.vmap(run, (None, 0))(s, v[None])):
        last, sums = f(2.0, xs)
        np.testing.assert_allclose(np.squeeze(last), expected)
        np.testing.assert_allclose(np.squeeze(sums), [6, 6])
    gradient = dt.grad(lambda s: jnp.sum(run(s, xs)[0]))(2.0)
    step = 1e-2
    difference = (jnp.sum(run(2 + step, xs)[0]) - jnp.sum(run(2 - step, xs)[0])) / (2 * step)
    np.testing.assert_allclose(gradient, difference, rtol=1e-3)


@pytest.mark.parametrize(("lower", "upper"), [(0, 5), (2, 2), (5, 1), (-3, 2)])
@pytest.mark.parametrize("unroll", [None, 1, 2, True])
def test_bounds(lower: int, upper: int, unroll: Any) -> None:
    expected = [*range(lower, upper)]
    body = lambda i, c: (c[0] + i, c[1] + 1)
    found = lax.fori_loop(lower, upper, body, (0, 0), unroll=unroll)
    assert [int(x) for x in found] == [sum(expected), len(expected)]
    if unroll is None:
        for late in (
            dt.jit(lambda a, b: lax.fori_loop(a, b, body, (0, 0))),
            lambda a, b: dt.vmap(lambda v: lax.fori_loop(a, v, body, (0, 0)))(np.array([b, b])),
        ):
            total, count = late(lower, upper)
            assert np.ravel(total)[0] == sum(expected)
            assert np.ravel(count)[0] == len(expected)


@pytest.mark.parametrize("length", [0, 1, 4, 7])
@pytest.mark.parametrize("batch_size", [None, 1, 2, 4, 10])
def test_map_is_vmap(length: int, batch_size: int | None) -> None:
    xs = {"a": np.arange(length * 2.0, dtype=np.float32).reshape(length, 2), "b": np.arange(length)}
    f = lambda x: (jnp.sin(x["a"]) * x["b"], {"sum": jnp.sum(x["a"])}, 1.0)
    for way in (lambda g: g, dt.jit):
        found = way(lambda v: lax.map(f, v, batch_size=batch_size))(xs)
        expected = dt.vmap(f)(xs)
        assert dt.tree_util.tree_structure(found) == dt.tree_util.tree_structure(expected)
        for a, b in zip(*map(dt.tree_util.tree_leaves, (found, expected)), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-6)
    if length:
        loss = lambda g: lambda v: jnp.sum(g(lambda r: jnp.sin(r), v))
        mapped = lambda g, v: lax.map(g, v, batch_size=batch_size)
        np.testing.assert_allclose(dt.grad(loss(mapped))(xs["a"]), np.cos(xs["a"]), rtol=1e-6)


def test_linear_in_elements_with_a_counter() -> None:
    """Transposition of a loop that also carries what does not depend on its linear operands."""

    def f(xs: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            total, count, factor = carry
            return (total + x * count * factor, count + 1, factor * 0.5), total * count

        return lax.scan(body, (0.0, 1, 2.0), xs)[1]

    xs = np.array([1, 2, 3], np.float32)
    matrix = np.stack([f(row) for row in np.eye(3, dtype=np.float32)], 1)
    ct = np.array([1, -2, 0.5], np.float32)
    (found,) = dt.linear_transpose(f, xs)(ct)
    np.testing.assert_allclose(found, matrix.T @ ct)
    (jitted,) = dt.jit(lambda c: dt.linear_transpose(f, xs)(c))(ct)
    np.testing.assert_allclose(jitted, matrix.T @ ct)
    (fori,) = dt.linear_transpose(
        lambda v: lax.fori_loop(0, 3, lambda i, c: c * 2.0 + c * i, v), xs
    )(ct)
    np.testing.assert_allclose(fori, ct * 2 * 3 * 4)


def scans(jaxpr: Any) -> list[Any]:
    return [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan"]


def test_residuals_that_all_turns_share_are_not_stacked() -> None:
    w, xs = np.ones((5, 5), np.float32), np.ones((7, 5), np.float32)

    def loss(w: Any, h: Any) -> Any:
        return jnp.sum(lax.scan(lambda h, x: (jnp.tanh(h @ (w * 2.0) + x), None), h, xs)[0])

    forward, backward = scans(dt.make_jaxpr(dt.grad(loss, (0, 1)))(w, xs[0]).jaxpr)
    stacked = [v.aval.shape for v in forward.outvars[forward.params["num_carry"] :]]
    assert sorted(stacked) == [(7, 5), (7, 5)]
    assert (7, 5, 5) not in [v.aval.shape for v in backward.invars]


def test_bodies_are_let_go() -> None:
    xs = np.ones(3, np.float32)

    def run() -> None:
        dt.make_jaxpr(dt.grad(lambda v: lax.scan(lambda c, x: (c * x, c), 1.0, v)[0]))(xs)
        dt.make_jaxpr(lambda v: lax.cond(v > 0, jnp.sin, jnp.cos, v))(1.0)
        dt.make_jaxpr(lambda v: lax.while_loop(lambda c: c < 3, lambda c: c + v, v))(1.0)

    def alive() -> int:
        gc.collect()
        return sum(type(o) is ClosedJaxpr for o in gc.get_objects())

    run()
    before = alive()
    for _ in range(5):
        run()
    assert alive() <= before + 2


def test_printed() -> None:
    text = str(
        dt.make_jaxpr(lambda c, v: lax.scan(lambda c, x: (c * x, c), c, v))(
            HALF, np.ones(3, np.float16)
        )
    )
    assert text == (
        """{ lambda ; a:f16[] b:f16[3]. let
    c:f16[] d:f16[3] = scan[
      jaxpr={ lambda ; e:f16[] f:f16[]. let g:f16[] = mul e f in (g, e) }
      length=3
      num_carry=1
      num_consts=0
      reverse=False
      unroll=1
    ] a b
  in (c, d) }"""
    )


def test_without_jit() -> None:
    seen = []

    def body(carry: Any, x: Any) -> Any:
        seen.append(float(x))
        return carry + x, x

    with dt.disable_jit():
        total, xs = lax.scan(body, 0.0, np.arange(3.0, dtype=np.float32), reverse=True)
        assert lax.map(lambda x: x + 1, np.arange(3)).tolist() == [1, 2, 3]
        assert int(lax.fori_loop(0, 4, lambda i, c: c + i, 0)) == 6
        empty = lax.scan(lambda c, x: (c * x, c), 1.0, np.zeros(0, np.float32))
    assert (float(total), xs.tolist(), seen) == (3, [0, 1, 2], [2, 1, 0])
    assert (float(empty[0]), empty[1].shape) == (1, (0,))


class Pair(NamedTuple):
    carry: Any
    element: Any


@pytest.mark.parametrize("pair", [list, tuple, lambda two: Pair(*two)])
@pytest.mark.parametrize("jit", [True, False])
def test_pairs_of_any_kind(pair: Any, jit: bool) -> None:
    with dt.disable_jit(not jit):
        found = lax.scan(lambda c, x: pair([c + x, x * 2]), jnp.float32(0), np.arange(3))
    assert type(found) is tuple
    assert (float(found[0]), found[1].tolist()) == (3, [0, 2, 4])


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize(
    "result",
    [lambda c, x: (c, x, x), lambda c, x: {"a": c, "b": x}, lambda c, x: jnp.stack([c, x])],
)
def test_what_is_no_pair(result: Any, jit: bool) -> None:
    with dt.disable_jit(not jit), pytest.raises(TypeError, match="must return a pair"):
        lax.scan(result, jnp.float32(0), np.ones(3, np.float32))


ERRORS: list[tuple[Any, Any, str]] = [
    (lambda: lax.scan(3, 0, np.ones(3)), TypeError, "takes a function"),
    (lambda: lax.scan(lambda c, x: c, 0.0, np.ones(3)), TypeError, "must return a pair"),
    (lambda: lax.scan(lambda c, x: (c, x, x), 0, np.ones(3)), TypeError, "tuple of length 3"),
    (lambda: lax.scan(lambda c, x: {"a": c, "b": x}, 0, np.ones(3)), TypeError, "got dict"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0), ValueError, "length must be given"),
    (lambda: lax.scan(lambda c, x: (c, x), 0.0, 1.0), ValueError, "xs is a scalar"),
    (lambda: lax.scan(lambda c, x: (c, x), 0, np.ones(3), 4), ValueError, "the size 4 along"),
    (lambda: lax.scan(lambda c, x: (c, x), 0, None, -1), ValueError, "not be negative"),
    (lambda: lax.scan(lambda c, x: (c, x), 0, None, 1.5), TypeError, "must be an integer"),
    (lambda: lax.scan(lambda c, x: (c, x), 0, None, 2, unroll=0), ValueError, "unroll"),
    (lambda: lax.scan(lambda c, x: ("no", x), 0, None, 2), TypeError, "<lambda> returned .* str"),
    (lambda: lax.scan(lambda c, x: (c, x), "no", None, 2), TypeError, "init"),
    (lambda: lax.fori_loop(0, 2j, lambda i, c: c, 0), TypeError, "upper must be a scalar int"),
    (lambda: lax.fori_loop(0, 2.0, lambda i, c: c, 0), TypeError, "one dtype"),
    (lambda: lax.fori_loop(True, 2, lambda i, c: c, 0), TypeError, "one dtype"),
    (lambda: lax.fori_loop(0.0, 2.5, lambda i, c: c, 0), ValueError, "upper must be a whole"),
    (lambda: lax.fori_loop(0.0, np.inf, lambda i, c: c, 0), ValueError, "upper must be a whole"),
    (
        lambda: dt.jit(lambda end: lax.fori_loop(False, end, lambda i, c: c, 0))(True),
        TypeError,
        "lower must be a scalar integer",
    ),
    (lambda: lax.fori_loop(np.ones(2, int), 2, lambda i, c: c, 0), TypeError, "lower must be"),
    (lambda: lax.fori_loop(np.int8(0), np.int16(2), lambda i, c: c, 0), TypeError, "one dtype"),
    (lambda: lax.fori_loop(0, 2, lambda i, c: (c, c), 0), TypeError, "lax.fori_loop.*<lambda>"),
    (lambda: lax.map(3, np.ones(3)), TypeError, "takes a function"),
    (lambda: lax.map(lambda x: x, 3.0), ValueError, "lax.map: xs is a scalar"),
    (lambda: lax.map(lambda x: x, ()), ValueError, "lax.map: xs has no array"),
    (lambda: lax.map(lambda x: x, np.ones(3), batch_size=0), ValueError, "batch_size"),
    (lambda: lax.map(lambda x: "no", np.ones(3)), TypeError, "<lambda> returned .* str"),
]


@pytest.mark.parametrize(("function", "kind", "message"), ERRORS)
def test_errors(function: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        function()


BOUNDS: dict[str, tuple[Any, Any, int]] = {
    "integers": (1, 4, 3),
    "floats": (1.0, 4.0, 3),
    "floats of NumPy": (np.float32(0), np.float32(3), 3),
    "arrays of floats": (jnp.float16(0), jnp.float16(3), 3),
    "bools": (False, True, 1),
    "small integers": (jnp.int8(0), 3, 3),
    "small and large integers": (jnp.int8(0), 200, 200),
    "unsigned integers": (jnp.uint8(2), jnp.uint8(5), 3),
    "no iteration": (3.0, 0.0, 0),
}


@pytest.mark.parametrize("disabled", [False, True])
@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_of_all_dtypes(name: str, disabled: bool) -> None:
    lower, upper, count = BOUNDS[name]
    with dt.disable_jit(disabled):
        numbers = lax.fori_loop(lower, upper, lambda i, c: c.at[i].add(1), jnp.zeros(200, int))
    assert numbers.sum() == count
    start = int(lower)
    np.testing.assert_array_equal(numbers[start : start + count], np.ones(count))


@pytest.mark.parametrize("name", ["integers", "floats", "unsigned integers", "no iteration"])
def test_bounds_that_are_traced(name: str) -> None:
    lower, upper, count = BOUNDS[name]
    seen: list[Any] = []

    def body(i: Any, total: Any) -> Any:
        seen.append(i.dtype)
        return total + 1

    assert dt.jit(lambda a, b: lax.fori_loop(a, b, body, 0))(lower, upper) == count
    assert seen[-1] == jnp.asarray(lower).dtype


def test_numbers_of_a_known_range_are_weak() -> None:
    total = lax.fori_loop(np.int32(0), np.int32(3), lambda i, c: c + i, np.int8(0))
    assert (total, total.dtype) == (3, np.int8)
    large = lax.fori_loop(np.uint32(2**31), np.uint32(2**31 + 2), lambda i, c: i, np.uint32(0))
    assert large == 2**31 + 1
