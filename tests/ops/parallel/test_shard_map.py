"""`shard_map`: programs that handle the part of one device."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail._core.ir.walk import all_equations
from dovetail.experimental import checkify
from dovetail.experimental.jet import jet
from dovetail.extend import evaluate
from dovetail.scipy.sparse.linalg import cg
from dovetail.sharding import AbstractMesh, AxisType, ManualAxisType, NamedSharding
from dovetail.sharding import PartitionSpec as P

MESH = dt.make_mesh((2, 2), ("x", "y"))
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(4, 6)).astype(np.float32))
W = jnp.asarray(RNG.normal(size=(6, 3)).astype(np.float32))
S = jnp.float32(1.3)
BOTH = ("x", "y")
SQUARE = P("x", "y")
ON_MESH = NamedSharding(MESH, SQUARE)
PARTS = (SQUARE, P(), P())
ROWS = (P("x", "y"), P("y"), P())


def mapped(f: Callable[..., Any], ins: Any = SQUARE, outs: Any = SQUARE, **k: Any) -> Any:
    return dt.shard_map(f, mesh=MESH, in_specs=ins, out_specs=outs, **k)


@dt.custom_jvp
def sine(x: Any) -> Any:
    return jnp.sin(x)


sine.defjvp(lambda p, t: (jnp.sin(p[0]), jnp.cos(p[0]) * t[0]))


@dt.custom_vjp
def product(x: Any, y: Any) -> Any:
    return x * y


product.defvjp(lambda x, y: (x * y, (x, y)), lambda r, ct: (ct * r[1], ct * r[0]))


def running(x: Any, w: Any, s: Any) -> Any:
    def turn(carry: Any, row: Any) -> Any:
        return carry * s + lax.psum(row.sum(), "x"), carry + row.sum()

    return lax.psum(lax.scan(turn, 0.0, x)[1], "y")


def repeated(x: Any, w: Any, s: Any) -> Any:
    def turn(carry: Any) -> Any:
        return jnp.sin(carry[0]) * s + lax.psum(x, "y"), carry[1] + 1

    return lax.while_loop(lambda carry: carry[1] < 3, turn, (jnp.zeros((2, 3)), 0))[0]


def branching(x: Any, w: Any, s: Any) -> Any:
    return lax.cond(x[0, 0] > 0, lambda: jnp.sin(x) * s, lambda: w[:2] * s)


# Functions of the parts of `X`, `W` and `S`, and how these and the result are divided.
PROGRAMS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "elementwise": (lambda x, w, s: jnp.sin(x) * s, PARTS, P("x", "y")),
    "a sum": (lambda x, w, s: lax.psum(jnp.sin(x) * s, "x"), PARTS, P(None, "y")),
    "a sum over both": (lambda x, w, s: lax.psum(jnp.sin(x) * s, BOTH), PARTS, P()),
    "a product": (lambda x, w, s: lax.psum(x @ w, "y") * s, ROWS, P("x")),
    "a scattered product": (
        lambda x, w, s: lax.psum_scatter((x @ w) * s, "y", tiled=True),
        ROWS,
        P(BOTH),
    ),
    "gathered": (
        lambda x, w, s: lax.all_gather(jnp.sin(x), "x", tiled=True) * s,
        PARTS,
        P("x", "y"),
    ),
    "gathered, the same": (
        lambda x, w, s: lax.all_gather(jnp.sin(x), "x", to="invarying", tiled=True) * s,
        PARTS,
        P(None, "y"),
    ),
    "gathered over both, the same": (
        lambda x, w, s: lax.all_gather(jnp.sin(x), BOTH, axis=1, to="invarying") * s,
        PARTS,
        P(),
    ),
    "permuted": (
        lambda x, w, s: lax.ppermute(x * s, BOTH, [(0, 1), (1, 3), (3, 2)]) + x,
        PARTS,
        P("x", "y"),
    ),
    "exchanged": (
        lambda x, w, s: lax.all_to_all(jnp.sin(x) * s, "x", 0, 1, tiled=True),
        PARTS,
        P(None, ("y", "x")),
    ),
    "positions": (
        lambda x, w, s: x * s * (1 + lax.axis_index(BOTH)) + lax.axis_index("y"),
        PARTS,
        P("x", "y"),
    ),
    "centred": (lambda x, w, s: x - lax.pmean(x * s, BOTH), PARTS, P("x", "y")),
    "a loop": (running, PARTS, P("x")),
    "a branch": (branching, PARTS, P("x", "y")),
    "jit": (
        lambda x, w, s: dt.jit(lambda x, w: lax.psum(x @ w, "y"))(x, w) * s,
        ROWS,
        P("x"),
    ),
    "checkpoint": (
        lambda x, w, s: dt.checkpoint(lambda x, w: lax.psum(jnp.sin(x @ w), "y"))(x, w) * s,
        ROWS,
        P("x"),
    ),
    "custom_jvp": (lambda x, w, s: sine(x * s), PARTS, P("x", "y")),
    "vmap": (
        lambda x, w, s: dt.vmap(lambda r: lax.psum(r * s, ("x", "v")) + r, axis_name="v")(x),
        PARTS,
        P("x", "y"),
    ),
    "the same on all": (lambda x, w, s: (x * s).sum(0), (P(), P(), P()), P("x")),
    "a linear system": (
        lambda x, w, s: jnp.linalg.solve(x[:2, :2] @ x[:2, :2].T + 3 * jnp.eye(2), x[:2, :1]) * s,
        PARTS,
        P("x", "y"),
    ),
    "positions of elements": (
        lambda x, w, s: x.at[0].add(w[0]).at[1, lax.axis_index("x")].multiply(s)[::-1],
        PARTS,
        P("x", "y"),
    ),
    "sorted": (lambda x, w, s: jnp.sort(x * s, 1) + jnp.cumsum(x, 0), PARTS, P("x", "y")),
}
# What devices compute differs along an axis that the result does not have: types find it.
CHECKED: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "a gradient inside": (
        lambda x, w, s: dt.grad(lambda w: lax.psum((jnp.sin(x @ w) * s).sum(), BOTH))(w),
        ROWS,
        P("y"),
    ),
    "a gradient of a part": (
        lambda x, w, s: dt.grad(lambda w: (jnp.sin(x @ w) * s).sum())(w),
        ROWS,
        P("y"),
    ),
}
CASES = [(name, check) for name in PROGRAMS for check in (True, False)] + [
    (name, True) for name in CHECKED
]


def _case(name: str, check: bool) -> Callable[..., Any]:
    function, ins, outs = (PROGRAMS | CHECKED)[name]
    return mapped(function, ins, outs, check_vma=check)  # type: ignore[no-any-return]


def _random_like(*values: Any) -> list[Any]:
    return [jnp.asarray(RNG.normal(size=v.shape).astype(np.float32)) for v in values]


@pytest.mark.laws
@pytest.mark.parametrize(("name", "check"), CASES)
def test_laws(name: str, check: bool) -> None:
    """Against NumPy, finite differences, the adjoint, and a loop over a batch."""
    f = _case(name, check)
    y = f(X, W, S)
    np.testing.assert_allclose(dt.jit(f)(X, W, S), y, rtol=1e-5, atol=1e-5)
    closed = dt.make_jaxpr(f)(X, W, S)
    (reference,) = evaluate(closed, [np.asarray(v) for v in (X, W, S)], platform="cpu")
    np.testing.assert_allclose(y, reference, rtol=1e-4, atol=1e-5)

    t = _random_like(X, W, S)
    _, tangent = dt.jvp(f, (X, W, S), tuple(t))
    step = 1e-2
    ahead, behind = (
        np.asarray(f(*(v + sign * step * d for v, d in zip((X, W, S), t, strict=True))), "d")
        for sign in (1, -1)
    )
    np.testing.assert_allclose(tangent, (ahead - behind) / (2 * step), rtol=3e-2, atol=3e-2)

    (ct,) = _random_like(y)
    back = dt.jit(lambda *args: dt.vjp(f, *args)[1](ct))(X, W, S)
    total = sum(float((b * d).sum()) for b, d in zip(back, t, strict=True))
    np.testing.assert_allclose(float((ct * tangent).sum()), total, rtol=1e-3, atol=1e-3)

    batch = jnp.stack([X, X + 1])
    got = dt.vmap(f, (0, None, 0))(batch, W, jnp.array([1.0, 2.0]))
    want = [f(batch[i], W, jnp.float32(i + 1)) for i in range(2)]
    np.testing.assert_allclose(got, np.stack(want), rtol=1e-4, atol=1e-4)


@pytest.mark.laws
@pytest.mark.parametrize("name", ["a product", "a loop", "gathered, the same", "checkpoint"])
def test_second_derivatives(name: str) -> None:
    f = _case(name, True)
    t = tuple(_random_like(X, W, S))

    def slope(*args: Any) -> Any:
        return (dt.jvp(f, args, t)[1] ** 2).sum()

    forward = dt.jvp(slope, (X, W, S), t)[1]
    back = dt.grad(slope, (0, 1, 2))(X, W, S)
    total = sum(float((b * d).sum()) for b, d in zip(back, t, strict=True))
    np.testing.assert_allclose(float(forward), total, rtol=1e-3)


def test_custom_vjp() -> None:
    """Of what all devices have, each has a cotangent; theirs is the sum."""

    def function(x: Any, w: Any, s: Any) -> Any:
        return lax.psum(product(x.sum(), s) * product(x.sum(0), w[0]).sum(), BOTH)

    ins = (P("x"), P(None, "y"), P())
    w = RNG.normal(size=(1, 12)).astype(np.float32)

    def whole(x: Any, w: Any, s: Any) -> Any:
        return sum(
            rows.sum() * s * (rows.sum(0) * part[0]).sum()
            for rows in jnp.split(x, 2)
            for part in jnp.split(w, 2, 1)
        )

    for check in (True, False):
        f = mapped(function, ins, P(), check_vma=check)
        got = dt.grad(f, (0, 1, 2))(X, w, S)
        for a, b in zip(got, dt.grad(whole, (0, 1, 2))(X, w, S), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4)


def test_a_tangent_that_is_not_summed() -> None:
    @dt.custom_jvp
    def total(x: Any) -> Any:
        return lax.psum(x, "x")

    total.defjvp(lambda p, t: (total(*p), t[0]))
    with pytest.raises(TypeError, match=r"along 'x', and the result does not: sum what it returns"):
        dt.jvp(mapped(total, P("x"), P()), (X,), (X,))


def test_loops_of_unknown_length() -> None:
    f = mapped(repeated, PARTS, P("x", "y"))
    closed = dt.make_jaxpr(f)(X, W, S)
    (reference,) = evaluate(closed, [np.asarray(v) for v in (X, W, S)], platform="cpu")
    np.testing.assert_allclose(f(X, W, S), reference, rtol=1e-5)


VALUE = jnp.arange(8.0).reshape(4, 2) / 8


def divided(x: Any) -> Any:
    return mapped(lambda x: jnp.sin(x) * lax.psum(x, "x"))(x)


def whole(x: Any) -> Any:
    return jnp.sin(x) * jnp.tile(x[:2] + x[2:], (2, 1))


def _repeat(f: Any, x: Any) -> Any:
    return lax.while_loop(lambda c: c[1] < 2, lambda c: (f(c[0]), c[1] + 1), (x, 0))[0]


AROUND: dict[str, Callable[[Any], Any]] = {
    "jacfwd": lambda f: dt.jacfwd(f)(VALUE),
    "jacrev": lambda f: dt.jit(dt.jacrev(f))(VALUE),
    "hessian": lambda f: dt.hessian(lambda x: f(x).sum())(VALUE),
    "checkpoint": lambda f: dt.grad(lambda x: dt.checkpoint(f)(x).sum())(VALUE),
    "scan": lambda f: dt.grad(
        lambda x: lax.scan(lambda c, _: (f(c), c), x, None, length=3)[0].sum()
    )(VALUE),
    "cond": lambda f: lax.cond(VALUE[0, 0] < 1, f, lambda x: x, VALUE),
    "while_loop": lambda f: _repeat(f, VALUE),
    "vmap of a compiled gradient": lambda f: dt.vmap(dt.jit(dt.grad(lambda x: f(x).sum())))(
        jnp.stack([VALUE, VALUE + 1])
    ),
    "jet": lambda f: jet(f, (VALUE,), ([VALUE * 0 + 1, VALUE],))[1][1],
    "linearize": lambda f: dt.linearize(f, VALUE)[1](VALUE),
    "a captured array": lambda f: dt.jit(lambda x: f(x) + np.ones((50, 50), "f").sum())(VALUE),
    "donation": lambda f: dt.jit(f, donate_argnums=0)(dt.device_put(VALUE, ON_MESH)),
    "disable_jit": lambda f: _eagerly(f),
    "debug_nans": lambda f: dt.debug_nans(True)(f)(VALUE),
}


def _eagerly(f: Any) -> Any:
    with dt.disable_jit():
        return f(VALUE)


@pytest.mark.laws
@pytest.mark.parametrize("name", AROUND)
def test_inside_of(name: str) -> None:
    around = AROUND[name]
    np.testing.assert_allclose(around(divided), around(whole), rtol=1e-4, atol=1e-5)


def test_captured_arrays_in_programs_inside() -> None:
    large = np.ones((50, 50), np.float32)

    def turn(carry: Any, _: Any) -> Any:
        return carry + dt.jit(lambda: large.sum())(), None

    f = mapped(lambda x: lax.scan(turn, x, None, length=2)[0])
    np.testing.assert_array_equal(dt.jit(f)(VALUE), VALUE + 5000)


def test_equations_on_each_device() -> None:
    """A solver whose condition varies, and whose derivative is the solution of another system."""
    f = mapped(lambda a, b: cg(lambda v: a * v, b)[0], (P("x"), P("x")), P("x"))
    a, b = jnp.array([3.0, 3.0, 2.0, 5.0]), jnp.arange(1.0, 5.0)
    np.testing.assert_allclose(f(a, b), b / a, rtol=1e-4)
    np.testing.assert_allclose(dt.grad(lambda b: f(a, b).sum())(b), 1 / a, rtol=1e-4)


def test_what_types_say() -> None:
    seen: list[str] = []

    def function(x: Any, w: Any) -> Any:
        values = (x, w, x * w[0, 0], lax.psum(x, "x"), lax.psum(x, BOTH), lax.axis_index("y"), 2.0)
        seen.extend(str(dt.typeof(v)) for v in values)
        seen.append(str(dt.typeof(lax.pcast(w, "y", to="varying"))))
        return x

    mapped(function, (P("x"), P()), P("x"))(X, W)
    assert seen == [
        "float32[2,6]{V:x}",
        "float32[6,3]",
        "float32[2,6]{V:x}",
        "float32[2,6]",
        "float32[2,6]",
        "int32[]{V:y}",
        "float32[]",
        "float32[6,3]{V:y}",
    ]
    (aval,) = dt.make_jaxpr(mapped(lambda x: x, P("x"), P("x")))(X).eqns[0].params["jaxpr"].in_avals
    assert aval.manual_axis_type == ManualAxisType(varying=frozenset({"x"}))
    seen.clear()
    mapped(function, (P("x"), P()), P("x"), check_vma=False)(X, W)
    assert all("V" not in text for text in seen)


def test_a_program_is_printed() -> None:
    f = mapped(lambda x, w: lax.psum(x * w[0, 0], "x"), (P("x"), P()), P())
    text = str(dt.make_jaxpr(f)(X, W))
    assert "shard_map[" in text
    assert "f32[2,6]{V:x} = mul" in text
    assert "psum_invariant[axes=('x',)]" in text
    assert "pvary[axes=('x',)]" in text


def test_what_a_gradient_costs() -> None:
    """A parameter that all devices have is summed over them once."""
    f = mapped(lambda x, w: lax.psum((x @ w).sum(), BOTH), (P("x", "y"), P("y")), P())
    text = str(dt.make_jaxpr(dt.grad(f, 1))(X, W))
    assert text.count("psum_invariant[axes=('x',)]") == 1


def test_what_a_gradient_of_a_loop_costs() -> None:
    """Parameters of a loop are summed over the devices after it, also of a loop in a loop."""

    def function(x: Any, w: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            turned = lax.scan(lambda c, _: (jnp.sin(c @ w), None), carry, None, length=2)[0]
            return turned + row, None

        return lax.psum(lax.scan(step, x[0], x)[0].sum(), "x")

    w = W @ W.T / 10
    f = mapped(function, (P("x"), P()), P())
    jaxpr = dt.make_jaxpr(dt.grad(f, 1))(X, w)
    loops = [e.params["jaxpr"] for e in all_equations(jaxpr.jaxpr) if e.primitive.name == "scan"]
    assert loops
    assert not any("psum" in str(body) for body in loops)

    def on_one(x: Any, w: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            return jnp.sin(jnp.sin(carry @ w) @ w) + row, None

        return sum(lax.scan(step, part[0], part)[0].sum() for part in jnp.split(x, 2))

    np.testing.assert_allclose(dt.grad(f, 1)(X, w), dt.grad(on_one, 1)(X, w), rtol=1e-4, atol=1e-5)


def test_axes_that_the_compiler_handles() -> None:
    value = jnp.arange(8.0).reshape(4, 2)
    f = mapped(lambda x: lax.psum(x, "x"), P("x"), P(), axis_names={"x"})
    np.testing.assert_array_equal(f(value), value[:2] + value[2:])
    np.testing.assert_array_equal(dt.grad(lambda x: (f(x) ** 2).sum())(value)[:2], 2 * f(value))
    placed = dt.device_put(value, NamedSharding(MESH, P("x", "y")))
    g = mapped(lambda x: x + lax.axis_index("x"), P("x"), P("x"), axis_names={"x"})
    np.testing.assert_array_equal(dt.jit(g)(placed), value + np.array([[0], [0], [1], [1]]))
    over_y = NamedSharding(MESH, P(None, "y"))
    h = mapped(
        lambda x: lax.with_sharding_constraint(x * 2, over_y), P("x"), P("x"), axis_names={"x"}
    )
    np.testing.assert_array_equal(dt.jit(h)(value), 2 * value)
    over_x = NamedSharding(MESH, P("x"))
    bad = mapped(
        lambda x: lax.with_sharding_constraint(x, over_x), P("x"), P("x"), axis_names={"x"}
    )
    with pytest.raises(ValueError, match="along 'x' the shard_map around it handles the part of"):
        bad(value)


def test_nested() -> None:
    def inner(x: Any) -> Any:
        return lax.psum(jnp.sin(x), "y")

    def outer(x: Any) -> Any:
        along = dt.shard_map(inner, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})
        return lax.psum(along(x), "x")

    f = mapped(outer, P("x"), P(), axis_names={"x"})
    want = np.sin(X).reshape(2, 2, 2, 3).sum((0, 2))
    np.testing.assert_allclose(f(X), want, rtol=1e-5)
    np.testing.assert_allclose(dt.grad(lambda x: f(x).sum())(X), np.cos(X), rtol=1e-5)
    with pytest.raises(ValueError, match="'x' is handled by a shard_map around this one"):
        mapped(
            lambda x: dt.shard_map(inner, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(x),
            P("x"),
            P("x"),
            axis_names={"x"},
        )(X)


def test_captured_values() -> None:
    placed = dt.device_put(jnp.arange(2.0), NamedSharding(MESH, P("y")))
    np.testing.assert_array_equal(mapped(lambda x: x + placed.sum())(X), X + 1)
    np.testing.assert_allclose(
        dt.grad(lambda c: mapped(lambda x: x * c)(X).sum())(3.0), X.sum(), rtol=1e-5
    )


def test_a_mesh_of_one_device() -> None:
    one = dt.make_mesh((1, 1), BOTH)
    f = dt.shard_map(
        lambda x: lax.psum(x, BOTH) + lax.axis_index(BOTH) + lax.all_gather(x, "x", tiled=True),
        mesh=one,
        in_specs=P("x", "y"),
        out_specs=P("x", "y"),
    )
    np.testing.assert_array_equal(f(X), 2 * X)
    np.testing.assert_array_equal(dt.jit(f)(X), 2 * X)
    assert f(X).sharding.num_devices == 1


def test_the_current_mesh() -> None:
    double = dt.shard_map(lambda x: x * 2, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match="shard_map of <lambda>: there is no mesh; give one"):
        double(X)
    with dt.set_mesh(MESH):
        np.testing.assert_array_equal(double(X), 2 * X)
        assert dt.get_abstract_mesh() == MESH.abstract_mesh
    seen = []
    mapped(
        lambda x: seen.append(dt.get_abstract_mesh()) or x,
        axis_names={"x"},
        ins=P("x"),
        outs=P("x"),
    )(X)
    assert seen[0].manual_axes == ("x",)
    abstract = AbstractMesh((2, 2), BOTH)
    f = dt.shard_map(lambda x: x * 2, mesh=abstract, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_array_equal(f(dt.device_put(X, NamedSharding(MESH, P("x")))), 2 * X)
    with pytest.raises(ValueError, match="Give shard_map a mesh of devices, not an abstract one"):
        f(X)


def test_callbacks_see_parts() -> None:
    seen = []

    def note(x: Any) -> None:
        seen.append(x.shape)

    def function(x: Any) -> Any:
        dt.debug.callback(note, x)
        shape = dt.ShapeDtypeStruct(x.shape, x.dtype)
        return dt.pure_callback(lambda x: np.asarray(x) * 2, shape, x)

    np.testing.assert_array_equal(mapped(function)(X), 2 * X)
    dt.effects_barrier()
    assert seen == [(2, 3)] * 4
    with pytest.raises(NotImplementedError, match="several devices have no order among them"):
        mapped(lambda x: dt.debug.print("{}", x.sum(), ordered=True) or x)(X)


def test_random_numbers() -> None:
    keys = random.split(random.key(0), 4)
    f = mapped(lambda k: random.uniform(k[0], (1, 3)), P(BOTH), P(BOTH))
    want = np.concatenate([random.uniform(k, (1, 3)) for k in keys])
    np.testing.assert_array_equal(f(keys), want)
    folded = mapped(
        lambda x: random.uniform(random.fold_in(random.key(1), lax.axis_index("x")), x.shape),
        P("x"),
        P("x"),
    )
    want = np.concatenate(
        [random.uniform(random.fold_in(random.key(1), i), (2, 6)) for i in range(2)]
    )
    np.testing.assert_array_equal(folded(X), want)


def test_checks() -> None:
    def function(x: Any) -> Any:
        checkify.check(jnp.all(x < 6), "too large: {}", x.max())
        return x

    value = jnp.arange(8.0).reshape(4, 2)
    error, _ = checkify.checkify(mapped(function))(value)
    assert "too large: 6.0" in error.get()
    error, out = checkify.checkify(dt.jit(mapped(function)))(value - 4)
    assert error.get() is None
    np.testing.assert_array_equal(out, value - 4)


def test_references_inside() -> None:
    def function(x: Any) -> Any:
        ref = dt.new_ref(x)
        ref[...] += lax.psum(x, "x")
        return ref[...]

    value = jnp.arange(8.0).reshape(4, 2)
    want = value + np.tile(value[:2] + value[2:], (2, 1))
    np.testing.assert_array_equal(mapped(function)(value), want)


def test_a_batch_over_an_axis_of_the_mesh() -> None:
    f = mapped(lambda x: lax.psum(x, "y"), P(None, "y"), P())
    batch = jnp.stack([X, X + 1])
    got = dt.vmap(f, spmd_axis_name="x")(batch)
    np.testing.assert_allclose(got, np.stack([f(X), f(X + 1)]), rtol=1e-6)
    with pytest.raises(ValueError, match="3 elements cannot be divided evenly over 2 devices"):
        dt.vmap(f, spmd_axis_name="x")(jnp.stack([X] * 3))


def test_as_a_decorator() -> None:
    @dt.shard_map(mesh=MESH, in_specs=(P("x"), None), out_specs=P("x"))
    def scaled(x: Any, by: Any) -> Any:
        """Doc."""
        return x * by

    np.testing.assert_array_equal(scaled(X, 2.0), 2 * X)
    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Doc.")


def test_the_name_is_that_of_the_function() -> None:
    assert mapped(partial(jnp.multiply, 2.0)).__name__ == "multiply"
    assert mapped(running).__name__ == "running"


def test_what_is_kept_for_its_own_sake() -> None:
    def sunk(x: Any) -> Any:
        lax.dce_sink(lax.sin(x), prevent_mlir_dce=True)
        return x

    np.testing.assert_array_equal(dt.jit(mapped(sunk))(X), X)
    assert "sine" in dt.jit(mapped(sunk)).lower(X).as_text()


def test_trees() -> None:
    f = mapped(
        lambda p, x: {"sum": lax.psum(p["w"] * x, "x"), "x": (x, p["b"])},
        ({"w": P("x"), "b": P()}, P("x")),
        {"sum": P(), "x": (P("x"), P())},
    )
    out = f({"w": X, "b": S}, X)
    np.testing.assert_allclose(out["sum"], (X * X)[:2] + (X * X)[2:], rtol=1e-6)
    np.testing.assert_array_equal(out["x"][0], X)
    assert out["x"][1] == S


def _where(x: Any) -> Any:
    return x if x[0, 0] > 0 else -x


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: mapped(lambda x: x, P("z"))(X), ValueError, "names the axis 'z'; those that it h"),
        (
            lambda: mapped(lambda x: x, P("x"))(jnp.zeros(7)),
            ValueError,
            "dimension 0 of x, which is f32[7], cannot be divided evenly over the axis 'x' of 2: 7 "
            "is no multiple of 2. Pad it to 8",
        ),
        (
            lambda: mapped(lambda x: x, P("x", "y"))(jnp.zeros(8)),
            ValueError,
            "x is f32[8], which has fewer dimensions than its specification",
        ),
        (lambda: mapped(lambda x: x, (P("x"), P()))(X), ValueError, "has a tuple of length 2"),
        (
            lambda: mapped(lambda x: x[0, 0], P("x"), P("x"))(X),
            ValueError,
            "the result is f32[]{V:x}, which has fewer dimensions than its specification P('x') in "
            "out_specs has entries; give a scalar a dimension: x[None]",
        ),
        (
            lambda: mapped(lambda x: {"a": x}, P("x"), P())(X),
            ValueError,
            "the result['a'] is f32[2,6]{V:x}, which may differ from device to device along 'x'",
        ),
        (lambda: mapped(lambda x: {"a": x}, P("x"), {"b": P("x")})(X), ValueError, "keys ['b']"),
        (lambda: mapped(lambda x: x, axis_names={"z"})(X), ValueError, "axis_names has 'z'"),
        (lambda: mapped(lambda x, k: x)(X, k=3), TypeError, "arguments are passed by position"),
        (lambda: mapped(lambda x: x, "x"), TypeError, "in_specs is 'x', which is no PartitionSpec"),
        (lambda: mapped(lambda x: x, P("x"), {"a": 1}), TypeError, "out_specs['a'] is 1"),
        (
            lambda: mapped(lambda x: x, P(P.UNCONSTRAINED))(X),
            ValueError,
            "UNCONSTRAINED is not possible",
        ),
        (lambda: mapped(lambda x: x, (P(), None))(X, "a"), TypeError, "not a valid array type"),
        (
            lambda: dt.shard_map(lambda x: x, mesh=3, in_specs=P(), out_specs=P()),
            TypeError,
            "mesh is a Mesh or an AbstractMesh, got 3",
        ),
        (lambda: mapped(3), TypeError, "shard_map"),
        (lambda: mapped(_where)(X), dt.errors.TracerBoolConversionError, "in _where traced for sh"),
        (
            lambda: mapped(lambda x: x)(dt.device_put(X, dt.devices()[1])),
            dt.errors.DeviceMismatchError,
            "different devices",
        ),
        (
            lambda: mapped(lambda x: lax.pcast(x, "x", to="reduced"))(X),
            ValueError,
            "f32[2,3]{V:(x,y)} is varying along 'x', and there is no cast",
        ),
        (
            lambda: mapped(lambda x: x, P(unreduced={"x"}))(X),
            ValueError,
            "x is f32[4,6], and its specification P(unreduced={'x'}) says something else",
        ),
        (
            lambda: mapped(lambda x: lax.psum(x, "x"), outs=P(reduced={"x"}))(X),
            ValueError,
            "its specification P(reduced={'x'}) in out_specs says that it is reduced along 'x'; ca",
        ),
    ],
)
def test_what_is_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        make()


def test_pmap() -> None:
    value = jnp.arange(8.0).reshape(4, 2)
    f = dt.pmap(lambda x: x / lax.psum(x.sum(), "i"), axis_name="i")
    np.testing.assert_allclose(f(value), value / 28, rtol=1e-6)
    assert f(value).sharding.spec == P("i")
    assert f(f(value)).shape == (4, 2)
    both = dt.pmap(lambda x, y: (x + y, y), in_axes=(0, None), out_axes=(1, None))
    out, same = both(value, 3.0)
    np.testing.assert_array_equal(out, value.T + 3)
    assert same == 3
    by = dt.pmap(lambda x, n, k: x * n * k, static_broadcasted_argnums=1)
    np.testing.assert_array_equal(by(value, 3, k=jnp.ones(4)), 3 * value)
    place = dt.pmap(lambda: lax.axis_index("i"), axis_name="i", axis_size=3)
    assert place().tolist() == [0, 1, 2]
    two = dt.pmap(lambda x: x, devices=dt.devices()[2:])(value[:2])
    assert two.sharding.device_set == set(dt.devices()[2:])
    given = dt.pmap(lambda x: x + 1, donate_argnums=0)
    first = given(value)
    given(first)
    assert first.is_deleted()
    gradient = dt.grad(lambda x: f(x)[0].sum())(value)
    np.testing.assert_allclose(gradient[1:], -1 / 28**2, rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: dt.pmap(lambda x: x)(jnp.ones((5, 2))),
            ValueError,
            "the mapped axis has 5 elements for 4 devices",
        ),
        (
            lambda: dt.pmap(lambda x: x, devices=dt.devices()[:3])(jnp.ones(2)),
            ValueError,
            "2 elements for 3 devices",
        ),
        (lambda: dt.pmap(lambda x, y: x, in_axes=(0,))(1, 2), ValueError, "in_axes of pmap of"),
        (
            lambda: dt.pmap(lambda x, y: x)(jnp.ones(4), jnp.ones(2)),
            ValueError,
            "inconsistent sizes for the mapped axis:\n"
            "  x: shape (4,), mapped over axis 0 of size 4\n"
            "  y: shape (2,), mapped over axis 0 of size 2\n",
        ),
        (lambda: dt.pmap(lambda x: x, in_axes=1.0), TypeError, "must hold integers and None"),
        (lambda: dt.pmap(lambda x: x, out_axes=3)(jnp.ones(4)), ValueError, "has 3 for a result"),
        (lambda: dt.pmap(lambda x: x, in_axes=1)(jnp.ones(4)), ValueError, "x over axis 1"),
        (lambda: dt.pmap(lambda: 1)(), ValueError, "at least one mapped argument"),
        (
            lambda: dt.pmap(lambda x: x, devices=dt.devices(), backend="cpu"),
            ValueError,
            "devices or backend",
        ),
        (
            lambda: dt.pmap(lambda x: dt.pmap(lambda y: y)(x))(jnp.ones((4, 2))),
            NotImplementedError,
            "inside of another pmap or a shard_map: use vmap there",
        ),
    ],
)
def test_what_pmap_refuses(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        make()


def test_smap() -> None:
    value = jnp.arange(8.0).reshape(4, 2)
    with dt.set_mesh(MESH):
        f = dt.smap(lambda x: lax.psum(x, "x"), in_axes=0, out_axes=None, axis_name="x")
        np.testing.assert_array_equal(f(value), value[:2] + value[2:])
        g = dt.smap(lambda x, y: x + y, in_axes=(1, None), out_axes=1, axis_name="y")
        np.testing.assert_array_equal(g(value, 1.0), value + 1)

        @dt.smap(in_axes=0, out_axes=None, axis_name="x")
        def total(x: Any) -> Any:
            along = dt.smap(lambda x: lax.psum(x, BOTH), in_axes=1, out_axes=None, axis_name="y")
            return along(x)

        np.testing.assert_array_equal(total(value), [[10], [18]])
        with pytest.raises(ValueError, match="axis_names has 'z'"):
            dt.smap(lambda x: x, in_axes=0, out_axes=0, axis_name="z")(value)
    with pytest.raises(TypeError, match="in_axes holds integers and None, got 'a'"):
        dt.smap(lambda x: x, in_axes="a", out_axes=0, axis_name="x")
    with pytest.raises(ValueError, match="there is no mesh"):
        f(value)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_results_are_described_as_out_specs_are_written(kind: AxisType) -> None:
    mesh = dt.make_mesh((2, 2, 1), ("x", "y", "z"), axis_types=(kind,) * 3)
    specs = (P(), P(None), P(None, None), P("x"), P("x", None), P("z"), P(("y", "x"), "z"))
    x = jnp.ones((4, 4))
    for spec in specs:
        f = dt.shard_map(lambda x: (2 * x, x), mesh=mesh, in_specs=spec, out_specs=(spec, spec))
        for result in f(x):
            assert result.sharding == NamedSharding(mesh, spec)
        batch = dt.vmap(f)(x[None])[0]
        assert batch.sharding.is_equivalent_to(NamedSharding(mesh, P(None, *spec)), 3)
        inside = dt.jit(f)(x)[0]
        assert inside.sharding.is_equivalent_to(NamedSharding(mesh, spec), 2)
