"""Loops and branches under every transformation: what Python's own give, under the same."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, tree_util

pytestmark = pytest.mark.laws

tree_map = tree_util.tree_map


class Compiled:
    """What is tested."""

    scan = staticmethod(lax.scan)
    cond = staticmethod(lax.cond)
    switch = staticmethod(lax.switch)
    while_loop = staticmethod(lax.while_loop)
    fori_loop = staticmethod(lax.fori_loop)
    vmap = staticmethod(dt.vmap)
    jit = staticmethod(dt.jit)


class InPython:
    """What it is compared with: the same in plain Python, operation by operation."""

    @staticmethod
    def scan(
        f: Any,
        init: Any,
        xs: Any = None,
        length: Any = None,
        reverse: bool = False,
        unroll: Any = 1,
    ) -> Any:
        leaves = tree_util.tree_leaves(xs)
        length = leaves[0].shape[0] if leaves else length
        carry, ys = init, []
        for i in reversed(range(length)) if reverse else range(length):
            carry, y = f(carry, tree_map(lambda x, i=i: x[i], xs))
            ys.append(y)
        if reverse:
            ys.reverse()
        return carry, tree_map(lambda *parts: jnp.stack([jnp.asarray(p) for p in parts]), *ys)

    @staticmethod
    def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any) -> Any:
        return (true_fun if bool(pred) else false_fun)(*operands)

    @staticmethod
    def switch(index: Any, branches: Any, *operands: Any) -> Any:
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    @staticmethod
    def while_loop(cond: Any, body: Any, init: Any) -> Any:
        while bool(cond(init)):
            init = body(init)
        return init

    @staticmethod
    def fori_loop(lower: Any, upper: Any, body: Any, init: Any, unroll: Any = None) -> Any:
        for i in range(int(lower), int(upper)):
            init = body(i, init)
        return init

    @staticmethod
    def vmap(f: Any, in_axes: Any = 0) -> Any:
        def mapped(*args: Any) -> Any:
            axes = in_axes if isinstance(in_axes, Sequence) else [in_axes] * len(args)
            size = next(
                leaf.shape[axis]
                for a, axis in zip(args, axes, strict=True)
                if axis is not None
                for leaf in tree_util.tree_leaves(a)
            )
            results = [
                f(
                    *(
                        a if x is None else tree_map(lambda v, i=i, x=x: jnp.take(v, i, x), a)
                        for a, x in zip(args, axes, strict=True)
                    )
                )
                for i in range(size)
            ]
            return tree_map(lambda *parts: jnp.stack(parts), *results)

        return mapped

    @staticmethod
    def jit(f: Any) -> Any:
        return f


def normal(*shape: int, seed: int = 0) -> Any:
    made = np.random.default_rng(seed + sum(shape)).normal(size=shape)
    return np.asarray(0.7 * made, np.float32)


def rnn(k: Any, w: Any, h: Any, xs: Any, **options: Any) -> Any:
    """A weight that all turns share, a state, and elements."""

    def cell(h: Any, x: Any) -> Any:
        new = jnp.tanh(h @ w + jnp.sin(x) * jnp.cos(w[0]))
        return new, (new * x, jnp.sum(h))

    return k.scan(cell, h, xs, **options)


def counted(k: Any, w: Any, c: Any, xs: Any) -> Any:
    """An integer that is carried beside a number, which decides about it."""

    def body(carry: Any, x: Any) -> Any:
        count, value = carry["n"], carry["v"]
        value = jnp.where(count % 2 == 0, value * w, jnp.sin(value) + x) * (count + 1.0)
        return {"n": count + 1, "v": value}, (count, value)

    return k.scan(body, {"n": 0, "v": c}, xs)


def swapped(k: Any, a: Any, b: Any, xs: Any) -> Any:
    """What varies goes from one place of what is carried to the next, turn by turn."""

    def body(carry: Any, x: Any) -> Any:
        p, q, r = carry
        return (q, r, x * jnp.sin(p) + q), p * b

    return k.scan(body, (a, jnp.float32(1.5), jnp.float32(0.5)), xs)


def unused(k: Any, a: Any, b: Any, xs: Any) -> Any:
    """Results and operands that do not vary, and some that nothing depends on."""

    def body(carry: Any, x: Any) -> Any:
        p, q = carry
        return (p, q * a), (jnp.float32(2.0), x["n"], p, None)

    return k.scan(body, (b, jnp.float32(1.0)), {"n": jnp.arange(len(xs)), "x": xs})


def counting(k: Any, a: Any, b: Any, xs: Any) -> Any:
    """No elements."""
    return k.scan(lambda c, _: (jnp.sin(c) * a + b, c * jnp.sum(xs)), a, None, length=4)


def of_scan(k: Any, w: Any, h: Any, xs: Any) -> Any:
    """A loop in a loop, with what both outer ones carry and take as constants."""

    def outer(c: Any, x: Any) -> Any:
        def inner(d: Any, y: Any) -> Any:
            return jnp.tanh(d + y * w[0]) * c, (d, y * x)

        last, parts = k.scan(inner, c, w + x, reverse=True)
        return last, parts

    return k.scan(outer, h, xs)


def cond_in_scan(k: Any, w: Any, h: Any, xs: Any) -> Any:
    def body(carry: Any, x: Any) -> Any:
        i, c = carry
        c = k.cond(i % 2 == 0, lambda c, x: jnp.sin(c) @ w * x, lambda c, x: c + x, c, x)
        c = k.cond(jnp.sum(c) > 0.3, lambda: c * jnp.cos(c), lambda: x * 2.0)
        return (i + 1, c), c

    return k.scan(body, (0, h), xs)


def scan_in_cond(k: Any, w: Any, h: Any, xs: Any) -> Any:
    return k.cond(
        jnp.sum(h) > 0,
        lambda h, xs: rnn(k, w, h, xs)[0],
        lambda h, xs: jnp.exp(h) * jnp.sum(xs * w[1]),
        h,
        xs,
    )


def while_in_scan(k: Any, w: Any, h: Any, xs: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        _, grown = k.while_loop(
            lambda s: (jnp.sum(s[1]) < 3.0) & (s[0] < 5),
            lambda s: (s[0] + 1, s[1] * 1.25 + jnp.abs(x) + w[0] * 0.1),
            (0, c),
        )
        return jnp.tanh(grown), grown

    return k.scan(body, h, xs)


def scan_in_while(k: Any, w: Any, h: Any, xs: Any) -> Any:
    return k.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, rnn(k, w, s[1], xs)[0] + s[1]), (0, h)
    )


def dependent(k: Any, w: Any, h: Any, xs: Any) -> Any:
    """The number of turns depends on the arguments, and so does the condition on constants."""
    limit = 2.0 + jnp.sum(xs[0]) ** 2
    return k.while_loop(
        lambda s: jnp.sum(jnp.abs(s["a"])) < limit,
        lambda s: {"a": s["a"] * 1.5 + jnp.abs(w[0]) + 0.1, "b": s["a"]},
        {"a": h, "b": xs[1]},
    )


def fori(k: Any, w: Any, h: Any, xs: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return (c[0] * w[0] + jnp.asarray(i, jnp.float32) * 0.1, c[1] + i)

    return k.fori_loop(-1, 4, body, (h, 2))


def dynamic_fori(k: Any, w: Any, h: Any, xs: Any) -> Any:
    stop = jnp.where(jnp.sum(h) > 0, 4, 2)
    return k.fori_loop(1, stop, lambda i, c: jnp.sin(c * w[0] * i), h)


def branches(k: Any, w: Any, h: Any, xs: Any) -> Any:
    """One function returns its argument, one a constant, one needs much for its derivative."""
    index = jnp.asarray(jnp.floor(jnp.sum(h) * 3), jnp.int32) + 1
    return k.switch(
        index,
        [
            lambda h, x: {"a": h, "b": 1.0},
            lambda h, x: {"a": jnp.sin(h) * jnp.exp(h @ w), "b": jnp.sum(x)},
            lambda h, x: {"a": jnp.ones(3, jnp.float32), "b": jnp.tanh(x[0]) * h[0]},
        ],
        h,
        xs[0],
    )


MATRIX = (normal(3, 3), normal(3, seed=5), normal(4, 3))
SCALAR = (np.float32(0.8), np.float32(-0.4), normal(4))

#: Name, program, arguments, which transformations: all, some, or none that needs gradients.
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "rnn": (rnn, MATRIX, "all"),
    "rnn backwards": (functools.partial(rnn, reverse=True), MATRIX, "some"),
    "rnn unrolled by 2": (functools.partial(rnn, unroll=2), MATRIX, "some"),
    "rnn unrolled by 3": (functools.partial(rnn, unroll=3, reverse=True), MATRIX, "some"),
    "rnn unrolled": (functools.partial(rnn, unroll=True), MATRIX, "some"),
    "rnn of one element": (rnn, (*MATRIX[:2], MATRIX[2][:1]), "some"),
    "counted": (counted, SCALAR, "all"),
    "swapped": (swapped, SCALAR, "all"),
    "unused": (unused, SCALAR, "some"),
    "counting": (counting, SCALAR, "some"),
    "scan in scan": (of_scan, MATRIX, "some"),
    "cond in scan": (cond_in_scan, MATRIX, "some"),
    "scan in cond": (scan_in_cond, MATRIX, "some"),
    "while in scan": (while_in_scan, MATRIX, "forward"),
    "scan in while": (scan_in_while, MATRIX, "forward"),
    "while": (dependent, MATRIX, "forward"),
    "fori": (fori, MATRIX, "some"),
    "fori with bounds found late": (dynamic_fori, MATRIX, "forward"),
    "branches": (branches, MATRIX, "all"),
}


def numbers(tree: Any) -> list[Any]:
    """The leaves that have derivatives."""
    return [x for x in tree_util.tree_leaves(tree) if jnp.asarray(x).dtype == np.float32]


def directions(args: Any, seed: int = 0) -> Any:
    return tuple(normal(*np.shape(a), seed=seed + i) for i, a in enumerate(args))


def loss(f: Any) -> Any:
    def scalar(*args: Any) -> Any:
        return sum(jnp.sum(jnp.sin(x + 0.3)) for x in numbers(f(*args)))

    return scalar


def gradient(f: Any) -> Any:
    return lambda *args: dt.grad(loss(f), tuple(range(len(args))))(*args)


def tangents(f: Any) -> Any:
    return lambda *args: dt.jvp(lambda *a: numbers(f(*a)), args, directions(args))


def linearized(f: Any) -> Any:
    def run(*args: Any) -> Any:
        outs, linear = dt.linearize(lambda *a: numbers(f(*a)), *args)
        return outs, linear(*directions(args)), linear(*directions(args, 7))

    return run


def pulled_back(f: Any) -> Any:
    def run(*args: Any) -> Any:
        outs, back = dt.vjp(lambda *a: numbers(f(*a)), *args)
        return back([jnp.cos(o) for o in outs])

    return run


def transposed(f: Any) -> Any:
    """The derivative as a linear function, transposed."""

    def run(*args: Any) -> Any:
        outs, linear = dt.linearize(lambda *a: numbers(f(*a)), *args)
        return dt.linear_transpose(linear, *args)([jnp.cos(o) for o in outs])

    return run


def mapped(axes: tuple[int | None, ...], inner: Any = lambda f: f) -> Any:
    def transform(k: Any, f: Any) -> Any:
        def run(*args: Any) -> Any:
            stacked = [
                a if axis is None else jnp.stack([a, -0.5 * a, 1.5 * a + 0.1], axis)
                for a, axis in zip(args, axes, strict=True)
            ]
            return k.vmap(inner(lambda *a: numbers(f(*a))), axes)(*stacked)

        return run

    return transform


#: Name, transformation, whether it needs gradients.
TRANSFORMATIONS: dict[str, tuple[Callable[[Any, Any], Any], bool]] = {
    "value": (lambda k, f: f, False),
    "jit": (lambda k, f: k.jit(f), False),
    "jvp": (lambda k, f: tangents(f), False),
    "jit of jvp": (lambda k, f: k.jit(tangents(f)), False),
    "jvp of jit": (lambda k, f: tangents(k.jit(f)), False),
    "jvp of jvp": (lambda k, f: tangents(tangents(f)), False),
    "linearize": (lambda k, f: linearized(f), False),
    "vjp": (lambda k, f: pulled_back(f), True),
    "linear_transpose": (lambda k, f: transposed(f), True),
    "jit of grad": (lambda k, f: k.jit(gradient(f)), True),
    "grad of jit": (lambda k, f: gradient(k.jit(f)), True),
    "jvp of grad": (lambda k, f: k.jit(tangents(gradient(f))), True),
    "grad of jvp": (lambda k, f: k.jit(gradient(lambda *a: tangents(f)(*a)[1])), True),
    "grad of grad": (lambda k, f: k.jit(gradient(gradient(f))), True),
    **{
        f"vmap {axes}": (mapped(axes), False)
        for axes in itertools.product((0, None), repeat=3)
        if axes != (None, None, None)
    },
    "vmap along other axes": (mapped((-1, -1, -1)), False),
    "vmap of jvp": (mapped((0, None, 0), tangents), False),
    "vmap of grad": (mapped((None, 0, 0), gradient), True),
    "jit of vmap of grad": (lambda k, f: k.jit(mapped((0, 0, 0), gradient)(k, f)), True),
    "jvp of vmap": (lambda k, f: tangents(mapped((0, 0, 0))(k, f)), False),
    "grad of vmap": (lambda k, f: k.jit(gradient(mapped((0, 0, None))(k, f))), True),
    "vmap of vmap": (
        lambda k, f: mapped((0, None, 0))(k, mapped((None, 0, 0))(k, f)),
        False,
    ),
}


def agree(found: Any, expected: Any, tolerance: float = 2e-4) -> None:
    assert tree_util.tree_structure(found) == tree_util.tree_structure(expected)
    for a, b in zip(tree_util.tree_leaves(found), tree_util.tree_leaves(expected), strict=True):
        a, b = np.asarray(jnp.asarray(a)), np.asarray(jnp.asarray(b))
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        scale = np.max(np.abs(b), initial=1.0) if b.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


SOME = {
    "value",
    "jit",
    "jvp",
    "linearize",
    "jit of grad",
    "grad of jvp",
    "vmap (0, None, 0)",
    "vmap (None, 0, None)",
    "vmap along other axes",
    "vmap of grad",
    "grad of vmap",
}

CASES = [
    pytest.param(program, transformation, id=f"{transformation} of {program}")
    for program, (_, _, which) in PROGRAMS.items()
    for transformation, (_, needs_gradient) in TRANSFORMATIONS.items()
    if which == "all"
    or (which == "some" and transformation in SOME)
    or (which == "forward" and not needs_gradient)
]


@pytest.mark.parametrize(("program", "transformation"), CASES)
def test_as_in_python(program: str, transformation: str) -> None:
    function, args, _ = PROGRAMS[program]
    transform, _ = TRANSFORMATIONS[transformation]
    expected = transform(InPython, functools.partial(function, InPython))(*args)
    with dt.enable_checks(True):
        found = transform(Compiled, functools.partial(function, Compiled))(*args)
    agree(found, expected)
