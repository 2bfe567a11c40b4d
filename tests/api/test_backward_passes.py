"""vjp, fwd_and_bwd and `dovetail.ad`: what is saved between the passes, and what becomes of
gradients."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.ad import DidntWant, DontWant, GradRef, GradValue

pytestmark = pytest.mark.laws

W = np.array([[1.0, 0.5, -0.25], [0.125, -1.0, 0.75], [0.5, 0.25, 1.5]], np.float32)
X = np.array([0.5, -1.0, 2.0], np.float32)


def agree(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    assert dt.tree.structure(found) == dt.tree.structure(expected)
    for a, b in zip(dt.tree.leaves(found), dt.tree.leaves(expected), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype != dt.float0:
            np.testing.assert_allclose(
                np.asarray(a, np.complex128), np.asarray(b, np.complex128), tolerance, tolerance
            )


def dense(W: Any, x: Any) -> Any:
    return jnp.tanh(W @ x)


def in_scan(W: Any, x: Any) -> Any:
    def turn(x: Any, row: Any) -> Any:
        return jnp.sin(W @ x) + row, (x * row).sum()

    return lax.scan(turn, x, W)


def in_branches(W: Any, x: Any) -> Any:
    return lax.cond(x.sum() > 1, lambda W, x: W @ x, lambda W, x: jnp.cos(W) @ (x * x), W, x)


@dt.custom_jvp
def halved(x: Any) -> Any:
    return x / 2


halved.defjvp(lambda primals, tangents: (halved(*primals), tangents[0] / 2))


@dt.custom_vjp
def doubled(W: Any, x: Any) -> Any:
    return 2 * (W @ x)


doubled.defvjp(
    lambda W, x: (2 * (W @ x), (W, x)),
    lambda saved, ct: (2 * jnp.outer(ct, saved[1]), 2 * (ct @ saved[0])),
)

#: Functions of a matrix and a vector.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dense": dense,
    "jit": dt.jit(dense),
    "scan": in_scan,
    "branches": in_branches,
    "checkpoint": dt.checkpoint(lambda W, x: jnp.sin(dense(W, x)) @ W),
    "custom_jvp": lambda W, x: halved(W) @ halved(jnp.sin(x)),
    "custom_vjp": lambda W, x: doubled(W, jnp.sin(x)),
    "vmap": lambda W, x: dt.vmap(lambda row: jnp.sin(row) @ x)(W),
    "trees": lambda W, x: {"a": W @ x, "b": [x.sum() * W, x]},
    "one of them": lambda W, x: jnp.sin(x),
    "linear": lambda W, x: W.sum() + x,
    "neither": lambda W, x: jnp.ones(2),
    "references": lambda W, x: _accumulated(W, x),
}


def _accumulated(W: Any, x: Any) -> Any:
    total = dt.new_ref(jnp.zeros(3))
    for i in range(3):
        total[i] += jnp.sin(W[i] @ x)
        total[...] *= x
    return dt.freeze(total)


def cotangent_of(result: Any) -> Any:
    return dt.tree.map(
        lambda y: jnp.cos(jnp.arange(y.size, dtype=y.dtype)).reshape(y.shape), result
    )


def gradients(f: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    """What `grad` of the product with the cotangent gives."""

    def scalar(*args: Any) -> Any:
        out = f(*args)
        cts = dt.tree.leaves(cotangent_of(out))
        return sum((a * b).sum() for a, b in zip(dt.tree.leaves(out), cts, strict=True))

    found: tuple[Any, ...] = dt.grad(scalar, tuple(range(len(args))))(*args)
    return found


functions = pytest.mark.parametrize("name", FUNCTIONS)


# Two passes


@functions
@pytest.mark.parametrize("jitted", [True, False])
def test_two_passes_give_the_gradients(name: str, jitted: bool) -> None:
    f = FUNCTIONS[name]
    expected = gradients(f, W, X)
    for argnums, chosen in [(0, 0), (-1, 1), ((0,), (0,)), ([1, 0], (1, 0)), ((), ())]:
        fwd, bwd = dt.fwd_and_bwd(f, argnums, jitted=jitted)
        y, residuals = fwd(W, X)
        agree(y, f(W, X))
        found = bwd(residuals, cotangent_of(y))
        agree(
            found,
            expected[chosen] if isinstance(chosen, int) else tuple(expected[i] for i in chosen),
        )


def test_two_passes_are_compiled_once_and_in_any_order() -> None:
    traced = []

    def f(W: Any, x: Any, *, scale: Any) -> Any:
        traced.append(1)
        return dense(W, x) * scale

    fwd, bwd = dt.fwd_and_bwd(f, (0, 1))
    first, _ = fwd(W, X, scale=2.0)
    bwd(_, first)
    assert len(traced) == 1
    with dt.no_tracing(True):
        kept = [fwd(W * i, X, scale=1.5) for i in range(3)]
        found = [bwd(residuals, y) for y, residuals in reversed(kept)]
    for i, both in enumerate(reversed(found)):
        y, f_vjp = dt.vjp(lambda W, x: f(W, x, scale=1.5), W * i, X)
        agree(both, f_vjp(y))


def test_auxiliary_data_and_other_arguments_pass_through_both_passes() -> None:
    fwd, bwd = dt.fwd_and_bwd(lambda x, n, ref: (x**2 * ref[...], {"n": n}), 0, has_aux=True)
    y, residuals, aux = fwd(X, 3, dt.new_ref(2.0))
    agree(y, jnp.asarray(2 * X**2))
    assert int(aux["n"]) == 3
    agree(bwd(residuals, jnp.ones(3)), jnp.asarray(4 * X))


# The function that vjp returns is a tree


def eager(f_vjp: Any, ct: Any) -> Any:
    return f_vjp(ct)


def through_jit(f_vjp: Any, ct: Any) -> Any:
    return dt.jit(lambda v, ct: v(ct))(f_vjp, ct)


def out_of_jit(f_vjp: Any, ct: Any) -> Any:
    return dt.jit(lambda v: v)(f_vjp)(ct)


def rebuilt(f_vjp: Any, ct: Any) -> Any:
    leaves, tree = dt.tree.flatten(f_vjp)
    return tree.unflatten(leaves)(ct)


def in_turns(f_vjp: Any, ct: Any) -> Any:
    both = dt.tree.map(lambda a: jnp.stack([a, a]), (f_vjp, ct))
    _, found = lax.scan(lambda _, pair: (None, pair[0](pair[1])), None, both)
    return dt.tree.map(lambda a: a[1], found)


def batched(f_vjp: Any, ct: Any) -> Any:
    found = dt.vmap(lambda ct: f_vjp(ct))(dt.tree.map(lambda a: jnp.stack([a, 2 * a]), ct))
    return dt.tree.map(lambda a: a[0], found)


PLACES = [eager, through_jit, out_of_jit, rebuilt, in_turns, batched]


@functions
@pytest.mark.parametrize("place", PLACES, ids=lambda f: f.__name__)
def test_derivative_backwards_crosses_boundaries(name: str, place: Any) -> None:
    f = FUNCTIONS[name]
    y, f_vjp = dt.vjp(f, W, X)
    agree(place(f_vjp, cotangent_of(y)), gradients(f, W, X))


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "custom_vjp"])
def test_derivative_forwards_crosses_boundaries(name: str) -> None:
    f = FUNCTIONS[name]
    along = (jnp.cos(W), jnp.sin(X))
    _, expected = dt.jvp(f, (W, X), along)
    _, f_jvp = dt.jit(lambda W, x: dt.linearize(f, W, x))(W, X)
    agree(f_jvp(*along), expected)
    agree(dt.jit(lambda linear, along: linear(*along))(f_jvp, along), expected)


def test_derivatives_of_a_batch_are_batches_of_derivatives() -> None:
    xs = jnp.stack([X, 2 * X])
    ys, pullbacks = dt.vmap(lambda x: dt.vjp(dense, W, x), out_axes=0)(xs)
    found = dt.vmap(lambda v, ct: v(ct))(pullbacks, ys)
    for i in range(2):
        y, f_vjp = dt.vjp(dense, W, xs[i])
        agree(dt.tree.map(lambda a, i=i: a[i], found), f_vjp(y))
    with pytest.raises(ValueError, match=r"was given f32\[2,3\] for .* which is f32\[3\]"):
        pullbacks(ys[0])


# What is saved


def test_saved_values_are_seen() -> None:
    a, b = jnp.asarray(W), jnp.asarray(X)
    _, f_vjp = dt.vjp(lambda p, x, n: p["w"] @ x + n, {"w": a, "unused": 2 * b}, b, 1)
    assert f_vjp.args_res[0]["w"] is a
    assert f_vjp.args_res[1] is b
    assert repr(f_vjp.args_res[0]["unused"]) == repr(f_vjp.args_res[2]) == "NotNeeded()"
    assert f_vjp.opaque_residuals == []
    assert len(dt.tree.leaves(f_vjp)) == 2
    _, f_vjp = dt.vjp(lambda x: jnp.sin(x) * jnp.arange(3.0), b)
    assert repr(f_vjp.args_res) == "[NotNeeded()]"
    assert len(f_vjp.opaque_residuals) == 2


def test_what_nothing_needs_is_not_saved() -> None:
    _, f_vjp = dt.vjp(lambda x: (jnp.sin(x), x)[1], X)
    assert dt.tree.leaves(f_vjp) == []
    _, f_jvp = dt.linearize(lambda x: (jnp.sin(x), x)[1], X)
    assert dt.tree.leaves(f_jvp) == []


SAVEABLE: list[tuple[Any, str]] = [
    (True, "kept kept kept"),
    (False, "not not not"),
    ((False, True), "not not kept"),
    (((False, True), True), "kept not kept"),
    (({"b": False, "w": True}, False), "kept not not"),
    ([[True, False], True], "not kept kept"),
]


@pytest.mark.parametrize(("flags", "expected"), SAVEABLE)
@pytest.mark.parametrize("jitted", [False, True])
def test_arguments_that_are_not_saved_are_put_back(flags: Any, expected: str, jitted: bool) -> None:
    p, x = {"w": jnp.asarray(W), "b": jnp.asarray(X)}, jnp.asarray(X)

    def f(p: Any, x: Any) -> Any:
        return jnp.sin(p["w"] @ x * p["b"] * x)

    def fwd(p: Any, x: Any) -> Any:
        return dt.vjp(f, p, x, saveable_args=flags)

    def bwd(f_vjp: Any, p: Any, x: Any, ct: Any) -> Any:
        f_vjp.args_res = [p, x]
        return f_vjp(ct)

    y, f_vjp = (dt.jit(fwd) if jitted else fwd)(p, x)
    w, b = f_vjp.args_res[0]["w"], f_vjp.args_res[0]["b"]
    words = ["not" if repr(v) == "NotSaveable()" else "kept" for v in (w, b, f_vjp.args_res[1])]
    assert " ".join(words) == expected
    full = dt.vjp(f, p, x)[1]
    assert len(dt.tree.leaves(f_vjp)) == len(dt.tree.leaves(full)) - words.count("not")
    if "not" in words:
        with pytest.raises(ValueError, match="saveable_args has kept it from saving"):
            f_vjp(y)
    expected_gradients = full(y)
    agree(f_vjp.replace(args_res=((p["b"], p["w"]), x))(y), expected_gradients)
    agree((dt.jit(bwd) if jitted else bwd)(f_vjp, p, x, y), expected_gradients)


def test_saved_values_are_replaced() -> None:
    y, f_vjp = dt.vjp(lambda W, x: W @ x, jnp.asarray(W), jnp.asarray(X))
    other = f_vjp.replace(args_res=[2 * W, X])
    agree(other(y)[1], 2 * f_vjp(y)[1])
    f_vjp.args_res[0] = 3 * W
    agree(f_vjp(y)[1], jnp.asarray(1.5 * np.asarray(other(y)[1])))
    _, f_vjp = dt.vjp(jnp.sin, 0.0)
    assert float(f_vjp.replace(opaque_residuals=[jnp.float32(5)])(1.0)[0]) == 5


# Which arguments vary

FLAGS: list[tuple[Any, list[int]]] = [
    (None, [0, 1, 2]),
    (True, [0, 1, 2]),
    (False, []),
    ((True, False), [0, 1]),
    (((True, False), True), [0, 2]),
    (({"b": False, "w": False}, True), [2]),
]


@pytest.mark.parametrize(("flags", "varying"), FLAGS)
def test_arguments_that_do_not_vary(flags: Any, varying: list[int]) -> None:
    def f(p: Any, x: Any) -> Any:
        return {"all": jnp.sin(p["w"] @ x) * p["b"], "w": p["w"] * 2, "constant": jnp.ones(2)}

    args = ({"w": W, "b": X}, X)
    y, f_vjp = dt.vjp(f, *args, in_nzs=flags)
    _, f_jvp = dt.linearize(f, *args, in_nzs=flags)
    ct = cotangent_of(y)
    expected = dt.tree.leaves(dt.vjp(f, *args)[1](ct))  # b, w, x
    found = dt.tree.leaves(f_vjp(ct))
    for i in range(3):
        agree(found[i], expected[i] if i in varying else jnp.zeros_like(expected[i]))
    along = ({"w": jnp.sin(W), "b": jnp.cos(X)}, jnp.cos(X))
    leaves, tree = dt.tree.flatten(along)
    moved = tree.unflatten([a if i in varying else 0 * a for i, a in enumerate(leaves)])
    agree(f_jvp(*along), dt.linearize(f, *args)[1](*moved))
    which = {"all": bool(varying), "w": 1 in varying, "constant": False}
    assert f_vjp.out_nzs == f_jvp.out_nzs == which


# Gradients as values, in references, or not at all

KINDS = ["value", "reference", "not"]


def entries_for(kinds: Any, args: Any, start: float = 10.0) -> list[Any]:
    """An entry for each argument, of the kind of that number."""

    def entry(kind: str, arg: Any) -> Any:
        if kind == "reference":
            return dt.tree.map(lambda a: dt.new_ref(jnp.full_like(a, start)), arg)
        return GradValue() if kind == "value" else DontWant()

    return [entry(kind, arg) for kind, arg in zip(kinds, args, strict=True)]


def check_entries(kinds: Any, entries: Any, found: Any, expected: Any, start: float = 10.0) -> None:
    for kind, entry, got, right in zip(kinds, entries, found, expected, strict=True):
        if kind == "value":
            agree(got, right)
        elif kind == "not":
            assert dt.tree.leaves(got) == []
            is_sign = lambda x: type(x) is DidntWant
            assert set(dt.tree.leaves(got, is_leaf=is_sign)) == {DidntWant()}
        else:
            assert dt.tree.leaves(got) == []
            agree(dt.tree.map(lambda ref: ref[...], entry), dt.tree.map(lambda a: a + start, right))


@functions
@pytest.mark.parametrize("kinds", list(product(KINDS, KINDS)), ids=" ".join)
def test_gradients_go_where_they_are_wanted(name: str, kinds: Any) -> None:
    f = FUNCTIONS[name]
    expected = gradients(f, W, X)
    y, f_vjp = dt.vjp(f, W, X)
    entries = entries_for(kinds, (W, X))
    found = f_vjp.with_refs(*entries)(cotangent_of(y))
    check_entries(kinds, entries, found, expected)
    entries = entries_for(kinds, (W, X))
    found = dt.jit(lambda v, ct: v(ct))(f_vjp.with_refs(*entries), cotangent_of(y))
    check_entries(kinds, entries, found, expected)
    agree(f_vjp(cotangent_of(y)), expected)  # it is the same as before


def test_entries_are_trees() -> None:
    args = ({"w": W, "b": (X, 2.0)}, X)

    def f(p: Any, x: Any) -> Any:
        return jnp.sin(p["w"] @ x) * p["b"][0] * p["b"][1]

    y, f_vjp = dt.vjp(f, *args)
    expected = f_vjp(y)
    ref = dt.new_ref(jnp.zeros(3))
    found = f_vjp.with_refs({"w": DontWant(), "b": (ref, GradValue())}, GradValue())(y)
    assert found[0]["w"] == DidntWant()
    assert found[0]["b"][0] == GradRef()
    agree(ref[...], expected[0]["b"][0])
    agree((found[0]["b"][1], found[1]), (expected[0]["b"][1], expected[1]))
    found = f_vjp.with_refs({"w": GradValue(), "b": DontWant()}, DontWant())(y)
    agree(found[0]["w"], expected[0]["w"])
    assert found[0]["b"] == (DidntWant(), DidntWant())
    agree(f_vjp.with_refs(GradValue(), GradValue())(y), expected)
    agree(f_vjp.with_refs(DontWant(), DontWant()).with_refs(GradValue(), GradValue())(y), expected)


def test_one_reference_gets_the_sum() -> None:
    ref = dt.new_ref(1.0)
    _, f_vjp = dt.vjp(lambda a, b: a * b, 2.0, 3.0)
    assert f_vjp.with_refs(ref, ref)(1.0) == (GradRef(), GradRef())
    assert float(ref[...]) == 6.0
    dt.jit(lambda v, ct: v.with_refs(ref, DontWant())(ct))(f_vjp, 2.0)
    assert float(ref[...]) == 12.0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_dtypes(dtype: str) -> None:
    with dt.enable_x64(dtype == "float64"):
        x = jnp.asarray(X, dtype)
        y, f_vjp = dt.vjp(lambda x: x * x, x)
        ref = dt.new_ref(jnp.zeros(3, dtype))
        f_vjp.with_refs(ref)(y)
        agree(ref[...], f_vjp(y)[0])
        assert ref[...].dtype == dtype
        other = dt.new_ref(jnp.zeros(3, "float32" if dtype != "float32" else "float16"))
        with pytest.raises(ValueError, match="give a reference of the shape and dtype"):
            f_vjp.with_refs(other)


def test_gradients_of_integers() -> None:
    _, f_vjp = dt.vjp(lambda n, x: n * x, 3, 2.0)
    assert f_vjp(1.0)[0].dtype == dt.float0
    assert f_vjp.with_refs(DontWant(), DontWant())(1.0) == (DidntWant(), DidntWant())
    ref = dt.new_ref(7)
    found = f_vjp.with_refs(ref, GradValue())(1.0)
    assert found[0] == GradRef()
    assert float(found[1]) == 3
    assert int(ref[...]) == 7


def test_gradients_are_collected_in_loops_and_batches() -> None:
    xs = jnp.stack([X, 2 * X, jnp.cos(X)])

    def loss(W: Any, x: Any) -> Any:
        return (dense(W, x) ** 2).sum()

    expected = dt.grad(lambda W: dt.vmap(loss, (None, 0))(W, xs).sum())(W)

    @dt.jit
    def collected(W: Any) -> Any:
        total = dt.new_ref(jnp.zeros_like(W))

        def turn(_: None, x: Any) -> Any:
            y, f_vjp = dt.vjp(lambda W: loss(W, x), W)
            f_vjp.with_refs(total)(1.0)
            return None, y

        lax.scan(turn, None, xs)
        return dt.freeze(total)

    agree(collected(W), expected)

    parts = dt.new_ref(jnp.zeros((3, 3, 3)))

    def each(x: Any, part: Any) -> None:
        _, f_vjp = dt.vjp(loss, W, x)
        f_vjp.with_refs(part, DontWant())(1.0)

    dt.vmap(each)(xs, parts)
    agree(parts[...].sum(0), expected)


@functions
def test_second_derivatives_through_references(name: str) -> None:
    f = FUNCTIONS[name]

    def first(kinds: Any) -> Callable[..., Any]:
        def both(W: Any, x: Any) -> Any:
            y, f_vjp = dt.vjp(f, W, x)
            entries = entries_for(kinds, (W, x), 0.0)
            found = f_vjp.with_refs(*entries)(cotangent_of(y))
            got = [
                dt.freeze(e) if k == "reference" else a
                for e, k, a in zip(entries, kinds, found, strict=True)
            ]
            return sum(jnp.cos(a).sum() for a in got)

        return both

    expected = dt.grad(first(["value", "value"]), (0, 1))(W, X)
    agree(dt.grad(first(["reference", "reference"]), (0, 1))(W, X), expected)
    agree(dt.jit(dt.grad(first(["reference", "value"]), (0, 1)))(W, X), expected)


# What is not wanted is not computed

PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[int, int, int]]] = {
    # products for both gradients, for that of W alone, for that of x alone
    "alone": (lambda W, x: W @ x, (2, 1, 1)),
    "jit": (dt.jit(lambda W, x: W @ x), (2, 1, 1)),
    "jit of jit": (dt.jit(lambda W, x: dt.jit(jnp.matmul)(W, x)), (2, 1, 1)),
    "scan": (lambda W, x: lax.scan(lambda x, _: (W @ x, None), x, None, 4)[0], (2, 2, 1)),
    "scan over rows": (lambda W, x: lax.scan(lambda s, w: (s + w @ x, None), 0.0, W)[0], (2, 1, 1)),
    "branches": (lambda W, x: lax.cond(x[0] > 0, jnp.matmul, lambda W, x: x, W, x), (2, 1, 1)),
    "checkpoint": (dt.checkpoint(lambda W, x: W @ x), (2, 1, 1)),
    "two layers": (lambda W, x: jnp.sin(W @ jnp.sin(W @ x)), (4, 3, 2)),
    "custom_jvp": (lambda W, x: halved(W) @ halved(x), (2, 1, 1)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_what_is_not_wanted_is_not_computed(name: str, wanted: int) -> None:
    f, counts = PRODUCTS[name]
    y, f_vjp = dt.vjp(f, jnp.asarray(W), jnp.asarray(X))
    entries = [
        (GradValue(), GradValue()),
        (GradValue(), DontWant()),
        (DontWant(), GradValue()),
    ][wanted]
    jaxpr = dt.make_jaxpr(f_vjp.with_refs(*entries))(y)
    assert str(jaxpr).count("dot_general[") == counts[wanted], jaxpr


def test_nothing_is_computed_where_nothing_is_wanted() -> None:
    y, f_vjp = dt.vjp(FUNCTIONS["scan"], W, X)
    jaxpr = dt.make_jaxpr(f_vjp.with_refs(DontWant(), DontWant()))(y)
    assert not any(e.primitive.name in ("scan", "dot_general") for e in jaxpr.jaxpr.eqns)


# Signs


SIGNS: list[Any] = [GradValue, GradRef, DontWant, DidntWant]


@pytest.mark.parametrize("sign", SIGNS)
def test_signs(sign: Any) -> None:
    assert repr(sign()) == f"{sign.__name__}()"
    assert len({sign(), sign()}) == 1
    assert [sign() == other() for other in SIGNS] == [sign is other for other in SIGNS]
    told = sign in (GradValue, DontWant)
    assert dt.tree.leaves({"a": sign()}) == [sign()] * told
    if not told:  # what is returned can be returned from anywhere
        assert dt.jit(lambda x: (x, sign()))(1.0)[1] == sign()


# Errors


def _dense_vjp(**options: Any) -> Any:
    return dt.vjp(dense, jnp.asarray(W), jnp.asarray(X), **options)[1]


FWD, BWD = dt.fwd_and_bwd(dense, (0, 1))

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no function": (lambda: dt.fwd_and_bwd(3, 0), TypeError, "fwd_and_bwd takes a function"),
    "argument that is not there": (
        lambda: dt.fwd_and_bwd(dense, 2)[0](W, X),
        ValueError,
        "argnums=2 of fwd_and_bwd of dense: there is no positional argument 2",
    ),
    "argument named twice": (
        lambda: dt.fwd_and_bwd(dense, (0, 0))[0](W, X),
        ValueError,
        "names an argument twice",
    ),
    "argnums of words": (
        lambda: dt.fwd_and_bwd(dense, "W")[0](W, X),
        TypeError,
        "must be an integer or a sequence of integers",
    ),
    "residuals that are none": (
        lambda: BWD((W, X), X),
        TypeError,
        "the backward pass of dense takes the residuals that the forward pass returned, got tuple",
    ),
    "cotangent of another type": (
        lambda: BWD(FWD(W, X)[1], 1.0),
        ValueError,
        r"cotangent number 0 of a vjp function must be f32\[3\]",
    ),
    "reduce_axes": (lambda: _dense_vjp(reduce_axes=("i",)), NotImplementedError, "must be empty"),
    "saveable_args too short": (
        lambda: _dense_vjp(saveable_args=(True,)),
        ValueError,
        "saveable_args of vjp is a tuple with 1 part where the arguments have 2 parts",
    ),
    "saveable_args of numbers": (
        lambda: _dense_vjp(saveable_args=(True, 1)),
        TypeError,
        r"saveable_args of vjp\[1\] must hold bools.* got 1 of type int",
    ),
    "saveable_args None": (lambda: _dense_vjp(saveable_args=None), ValueError, "0 parts"),
    "in_nzs too deep": (
        lambda: _dense_vjp(in_nzs=((True,), True)),
        ValueError,
        r"in_nzs of vjp\[0\] is a tuple with 1 part where the arguments have an array",
    ),
    "in_nzs of an array": (
        lambda: dt.linearize(jnp.sin, 1.0, in_nzs=jnp.bool_(True)),
        TypeError,
        "in_nzs of linearize must hold bools",
    ),
    "not put back": (
        lambda: _dense_vjp(saveable_args=(False, True))(X),
        ValueError,
        "called without values that it needs and that saveable_args has kept it from saving: W of "
        "dense; put them into args_res first",
    ),
    "put back in another shape": (
        lambda: _dense_vjp(saveable_args=(False, True)).replace(args_res=[X, X])(X),
        ValueError,
        r"the vjp of dense was given f32\[3\] for W of dense, which is f32\[3,3\]",
    ),
    "put back in another dtype": (
        lambda: _dense_vjp().replace(args_res=[W.astype(np.float16), X])(X),
        ValueError,
        r"was given f16\[3,3\] for W of dense",
    ),
    "put back what is no array": (
        lambda: _dense_vjp().replace(args_res=["W", X])(X),
        ValueError,
        "was given 'W' for W of dense",
    ),
    "put back in another arrangement": (
        lambda: _dense_vjp().replace(args_res=[W])(X),
        ValueError,
        "args_res of the vjp of dense must be arranged as the arguments are",
    ),
    "other saved values": (
        lambda: _dense_vjp().replace(opaque_residuals=[])(X),
        ValueError,
        "opaque_residuals of the vjp of dense must hold 1 values, got 0",
    ),
    "too few entries": (
        lambda: _dense_vjp().with_refs(GradValue()),
        ValueError,
        "with_refs of the vjp of dense takes an entry for each argument, which are 2, got 1",
    ),
    "too many entries": (
        lambda: _dense_vjp().with_refs(GradValue(), GradValue(), GradValue()),
        ValueError,
        "which are 2, got 3",
    ),
    "an array as entry": (
        lambda: _dense_vjp().with_refs(jnp.asarray(W), GradValue()),
        TypeError,
        "of type Array for W of dense; an entry is a reference",
    ),
    "None as entry": (
        lambda: _dense_vjp().with_refs(None, GradValue()),
        TypeError,
        "got None of type NoneType for W of dense",
    ),
    "a class as entry": (
        lambda: _dense_vjp().with_refs(GradValue, GradValue()),
        TypeError,
        r"write GradValue\(\)",
    ),
    "entries of another structure": (
        lambda: dt.vjp(lambda d: d["a"], {"a": X})[1].with_refs((GradValue(),)),
        ValueError,
        "must have the structure of the values",
    ),
    "one reference for a tree": (
        lambda: dt.vjp(lambda d: d[0] * d[1], (1.0, 2.0))[1].with_refs(dt.new_ref(0.0)),
        ValueError,
        r"for an argument with several parts, d\[0\] of <lambda> among them",
    ),
    "reference of another shape": (
        lambda: _dense_vjp().with_refs(dt.new_ref(jnp.zeros(3)), GradValue()),
        ValueError,
        r"for W of dense, whose gradient is f32\[3,3\]",
    ),
    "two cotangents": (
        lambda: _dense_vjp()(X, X),
        TypeError,
        "a vjp function takes one argument, the cotangent",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    run, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        run()
