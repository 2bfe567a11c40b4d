"""Values that are unreduced and reduced along axes of a mesh, inside of `shard_map` and outside."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
import dovetail.scipy.linalg
from dovetail import lax, nn, ops
from dovetail.errors import ShardingTypeError
from dovetail.extend import evaluate
from dovetail.sharding import AxisType, ManualAxisType, NamedSharding, UnreducedKind
from dovetail.sharding import PartitionSpec as P

MESH = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
EXPLICIT = dt.make_mesh((2, 2), ("x", "y"))
WHOLE = P()
RNG = np.random.default_rng(0)
W = jnp.asarray(RNG.uniform(0.2, 1.0, 4).astype(np.float32))
A = jnp.asarray(RNG.normal(size=8).astype(np.float32))
ROWS = np.array([2, 0])
MASK = np.array([True, False, True, False])


def mapped(f: Callable[..., Any], ins: Any = WHOLE, outs: Any = WHOLE, mesh: Any = MESH) -> Any:
    return dt.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs)


def vary(x: Any, axis: Any = "x") -> Any:
    return lax.pcast(x, axis, to="varying")


def parts(x: Any) -> Any:
    return lax.pcast(x, "x", to="unreduced")


def reduced(x: Any) -> Any:
    return lax.pcast(x, "x", to="reduced")


KINDS: dict[str, Callable[[Any], Any]] = {
    "I": lambda x: x,
    "V": vary,
    "U": lambda x: parts(vary(x)),
    "R": reduced,
    "VU": lambda x: vary(parts(vary(x)), "y"),
    "VR": lambda x: vary(reduced(x), "y"),
    "UR": lambda x: lax.pcast(parts(vary(x)), "y", to="reduced"),
}


def type_of(function: Callable[[Any], Any]) -> str:
    """The type of a result inside of `shard_map`, without its dtype."""
    seen: list[str] = []

    def run(x: Any) -> Any:
        seen.append(str(dt.typeof(function(x))))
        return x

    dt.make_jaxpr(mapped(run))(W)
    return seen[0].removeprefix("float32")


def check(function: Callable[[Any], Any], expected: str) -> None:
    """Compare a type, or a part of an error behind an exclamation mark."""
    if not expected.startswith("!"):
        assert type_of(function) == expected
        return
    with pytest.raises((ValueError, TypeError), match=re.escape(expected[1:])):
        type_of(function)


# -----------------------------------------------------------------------------------------
# types

CASTS = {
    ("I", "varying"): "[4]{V:x}",
    ("I", "reduced"): "[4]{R:x}",
    ("I", "unreduced"): "!each device's value would count once: cast it with lax.pcast(x, 'x'",
    ("V", "varying"): "[4]{V:x}",
    ("V", "reduced"): "!f32[4]{V:x} is varying along 'x', and there is no cast from that to 'reduc",
    ("V", "unreduced"): "[4]{U:x}",
    ("U", "varying"): "!add it up first, with lax.psum(x, 'x')",
    ("U", "reduced"): "!add it up first, with lax.psum(x, 'x')",
    ("U", "unreduced"): "!leave it as it is",
    ("R", "varying"): "[4]{V:x}",
    ("R", "reduced"): "!leave it as it is",
    ("R", "unreduced"): "!f32[4]{R:x} is reduced along 'x'",
    ("VU", "reduced"): "!f32[4]{V:y, U:x} is unreduced along 'x'",
    ("VR", "varying"): "[4]{V:(x,y)}",
    ("I", "invarying"): "!lax.pcast: to is 'varying', 'unreduced' or 'reduced', got 'invarying'",
}


@pytest.mark.parametrize(("kind", "to"), CASTS)
def test_casts(kind: str, to: str) -> None:
    check(lambda x: lax.pcast(KINDS[kind](x), "x", to=to), CASTS[kind, to])


COLLECTIVES: dict[str, Callable[[Any], Any]] = {
    "psum": lambda x: lax.psum(x, "x"),
    "psum of both": lambda x: lax.psum(x, ("x", "y")),
    "pmean": lambda x: lax.pmean(x, "x"),
    "psum_scatter": lambda x: lax.psum_scatter(x, "x", tiled=True),
    "all_gather": lambda x: lax.all_gather(x, "x", to="reduced"),
    "all_gather tiled": lambda x: lax.all_gather(x, "x", tiled=True, to="reduced"),
    "pmax": lambda x: lax.pmax(x, "x"),
    "ppermute": lambda x: lax.ppermute(x, "x", [(0, 1)]),
}
OF_COLLECTIVES = {
    ("psum", "U"): "[4]",
    ("psum of both", "U"): "[4]",
    ("psum of both", "UR"): "!psum along 'y' takes what each device has",
    ("psum", "VU"): "[4]{V:y}",
    ("psum", "R"): "!cast it first, with lax.pcast(x, 'x', to='varying')",
    ("pmean", "U"): "[4]",
    ("psum_scatter", "U"): "[2]{V:x}",
    ("psum_scatter", "V"): "[2]{V:x}",
    ("psum_scatter", "R"): "!reduce_scatter along 'x' takes what each device has",
    ("all_gather", "V"): "[2,4]{R:x}",
    ("all_gather tiled", "V"): "[8]{R:x}",
    ("all_gather", "I"): "!to='reduced' takes what varies along 'x', and got f32[4]",
    ("all_gather", "U"): "!to='reduced' takes what varies along 'x', and got f32[4]{U:x}",
    ("pmax", "U"): "!which is unreduced along it; add it up first, with lax.psum(x, 'x')",
    ("ppermute", "R"): "!ppermute along 'x' takes what each device has, and got f32[4]{R:x}",
}


@pytest.mark.parametrize(("name", "kind"), OF_COLLECTIVES)
def test_collectives(name: str, kind: str) -> None:
    check(lambda x: COLLECTIVES[name](KINDS[kind](x)), OF_COLLECTIVES[name, kind])


TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "max": jnp.maximum,
    "dot": jnp.dot,
    "where": lambda x, y: jnp.where(MASK, x, y),
}
OF_TWO = {
    ("add", "U", "U"): "[4]{U:x}",
    ("add", "U", "VU"): "[4]{V:y, U:x}",
    ("add", "UR", "VU"): "[4]{V:y, U:x}",
    ("add", "R", "R"): "[4]{R:x}",
    ("add", "R", "I"): "[4]{R:x}",
    ("add", "R", "V"): "[4]{V:x}",
    (
        "add",
        "U",
        "I",
    ): "!add takes f32[4], which is not unreduced along 'x', where another value is",
    ("add", "U", "R"): "!add takes f32[4]{R:x}, which is not unreduced along 'x'",
    ("add", "V", "U"): "!add: one value varies along 'x', and another one is unreduced along it",
    ("mul", "U", "R"): "[4]{U:x}",
    ("mul", "I", "U"): "[4]{U:x}",
    ("mul", "VR", "U"): "[4]{V:y, U:x}",
    ("mul", "U", "U"): "!a sum that has not been added up, and mul is linear in one of them at a t",
    ("mul", "V", "U"): "!mul: one value varies along 'x'",
    ("div", "U", "R"): "[4]{U:x}",
    ("div", "R", "U"): "!div of f32[4]{R:x}, f32[4]{U:x}",
    ("max", "U", "U"): "!max of f32[4]{U:x}, f32[4]{U:x}",
    ("max", "R", "V"): "[4]{V:x}",
    ("dot", "R", "U"): "[]{U:x}",
    ("dot", "U", "U"): "!dot_general is linear in one of them at a time",
    ("where", "U", "U"): "[4]{U:x}",
    ("where", "U", "I"): "!select_n takes f32[4], which is not unreduced",
    ("where", "R", "VR"): "[4]{V:y, R:x}",
}


@pytest.mark.parametrize(("name", "one", "other"), OF_TWO)
def test_operands_of_two_kinds(name: str, one: str, other: str) -> None:
    check(lambda x: TWO[name](KINDS[one](x), KINDS[other](x)), OF_TWO[name, one, other])


NOT_LINEAR: dict[str, Callable[[Any], Any]] = {
    "sin": jnp.sin,
    "reduce_prod": jnp.prod,
    "sort": jnp.sort,
    "convert_element_type": lambda x: x.astype(jnp.int32),
    "integer_pow": lambda x: lax.integer_pow(x, 2),
    "pure_callback": lambda x: dt.pure_callback(np.sin, x, x),
}


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_what_is_not_linear(name: str) -> None:
    refusal = (
        f"!a value that is unreduced along 'x' is a sum that has not been added up, and {name}"
    )
    check(lambda x: NOT_LINEAR[name](KINDS["U"](x)), refusal)
    assert type_of(lambda x: NOT_LINEAR[name](KINDS["R"](x))).endswith("{R:x}")


def test_adding_what_is_not_zero_counts_it_once_for_each_device() -> None:
    def plus(make: Callable[[], Any]) -> str:
        return type_of(lambda x: KINDS["U"](x) + make())

    for zero in (lambda: 0.0, lambda: jnp.zeros(4), lambda: np.zeros(4, np.float32)):
        assert plus(zero) == "[4]{U:x}"
    for other in (lambda: 1.0, lambda: jnp.ones(4), lambda: np.ones(4, np.float32)):
        with pytest.raises(ShardingTypeError, match="it would count once for each device"):
            plus(other)


def test_types_are_one_object() -> None:
    own = ManualAxisType(varying={"x"}, unreduced={"y"}, reduced={"z"})
    assert own is ManualAxisType(varying={"x"}, unreduced={"y"}, reduced={"z"})
    assert own is copy.deepcopy(own) is pickle.loads(pickle.dumps(own))
    assert own.shown() == "{V:x, U:y, R:z}"
    assert own.dual is ManualAxisType(varying={"x"}, unreduced={"z"}, reduced={"y"})
    with pytest.raises(ValueError, match="unreduced and reduced both have"):
        ManualAxisType(unreduced={"x"}, reduced={"x"})


def test_structs_say_it() -> None:
    own = ManualAxisType(unreduced={"x"}, reduced={"y"})

    def run(x: Any) -> Any:
        struct = dt.ShapeDtypeStruct((3,), np.float32, manual_axis_type=own)
        seen = dt.eval_shape(lambda u: 2.0 * u, struct)
        assert str(dt.typeof(struct)) == "float32[3]{U:x, R:y}"
        assert seen.manual_axis_type is own
        largest = ManualAxisType(unreduced={"x"}, unreduced_kind=UnreducedKind.max)
        with pytest.raises(NotImplementedError, match="other ways than by a sum"):
            dt.eval_shape(lambda u: u, struct.update(manual_axis_type=largest))
        return x

    mapped(run)(W)


# -----------------------------------------------------------------------------------------
# values and gradients

LINEAR: dict[str, Callable[[Any], Any]] = {
    "scaled": lambda u: u * 3.0 - u / 2.0 + 0.0,
    "sum": jnp.sum,
    "mean": jnp.mean,
    "cumsum": jnp.cumsum,
    "pad": lambda u: jnp.pad(u, 1),
    "slice": lambda u: u[3:0:-2],
    "dynamic_slice": lambda u: lax.dynamic_slice(u, (1,), (2,)),
    "dynamic_update_slice": lambda u: lax.dynamic_update_slice(u, u[:2], (1,)),
    "gather": lambda u: u[ROWS],
    "scatter": lambda u: u.at[ROWS].add(u[:2]),
    "segments": lambda u: ops.segment_sum(u, np.array([0, 1, 0, 1]), 2),
    "concatenate": lambda u: jnp.concatenate([u, 2.0 * u]),
    "split": lambda u: jnp.split(u, 2)[1],
    "where": lambda u: jnp.where(MASK, u, 0.0),
    "triangle": lambda u: jnp.tril(u.reshape(2, 2)),
    "convolve": lambda u: jnp.convolve(u, np.ones(2, np.float32)),
    "product": lambda u: jnp.einsum("ij,jk->ki", u.reshape(2, 2), np.eye(2, 3, dtype=np.float32)),
    "fft": lambda u: jnp.fft.fft(u).imag,
    "solve": lambda u: dovetail.scipy.linalg.solve(np.diag([2.0, 3, 4, 5]).astype(np.float32), u),
    "jit": dt.jit(lambda u: u * 3.0),
    "checkpoint": dt.checkpoint(lambda u: u * 3.0),
    "vmap": lambda u: dt.vmap(lambda v: v * 2.0 + u)(u),
    "barrier": lambda u: lax.optimization_barrier((u, 1.0))[0],
    "stop_gradient": lambda u: u + lax.stop_gradient(u),
    "scan": lambda u: lax.scan(lambda c, v: (c * 0.5 + v, c), u[0], u),
    "fori_loop": lambda u: lax.fori_loop(0, 3, lambda i, c: c * 0.5 + u, u),
    "switch": lambda u: lax.switch(1, [lambda v: v, lambda v: v * 2.0 + u], u),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "tanh": lambda r: jnp.tanh(r) ** 2 + 1.0,
    "max": jnp.max,
    "sort": jnp.sort,
    "softmax": nn.softmax,
    "relu": lambda r: nn.relu(r - 0.5),
    "inverse": lambda r: jnp.linalg.inv(jnp.diag(r)),
    "cumprod": jnp.cumprod,
    "set": lambda r: r.at[1].set(2.0),
    "multiplied": lambda r: r.at[1].multiply(2.0),
    "largest": lambda r: r[jnp.argmax(r)],
    "square": lambda r: r.reshape(2, 2) @ r.reshape(2, 2),
    "loop": lambda r: lax.scan(lambda c, v: (jnp.sin(c) * v, c), jnp.ones(()), r),
    "cond": lambda r: lax.cond(r[0] > 0, jnp.sin, jnp.cos, r),
}


def weighed(results: Any) -> Any:
    leaves = dt.tree.leaves(results)
    return sum((x * (1.0 + jnp.arange(x.size).reshape(x.shape))).sum() for x in leaves)


def of_parts(functions: dict[str, Callable[[Any], Any]]) -> tuple[Any, Any]:
    """Linear functions of a sum over devices, taken of its parts, and the same without devices."""

    def divided(w: Any, a: Any) -> Any:
        u = parts(vary(reduced(w)) * a)
        results = {name: f(u) for name, f in functions.items()}
        return dt.tree.map(lambda x: lax.psum(x, "x"), results)

    def whole(w: Any, a: Any) -> Any:
        return {name: f(w * (a[:4] + a[4:])) for name, f in functions.items()}

    return mapped(divided, (P(), P("x"))), whole


def of_reduced(functions: dict[str, Callable[[Any], Any]]) -> tuple[Any, Any]:
    """Functions of a reduced value, scaled by what devices have, and the same without devices."""

    def divided(w: Any, a: Any) -> Any:
        r = reduced(w)
        results = {name: f(r) for name, f in functions.items()}
        return dt.tree.map(lambda x: lax.psum(vary(x) * a.sum(), "x"), results)

    def whole(w: Any, a: Any) -> Any:
        return dt.tree.map(lambda x: x * a.sum(), {name: f(w) for name, f in functions.items()})

    return mapped(divided, (P(), P("x"))), whole


def compare(actual: Any, expected: Any) -> None:
    assert dt.tree.structure(actual) == dt.tree.structure(expected)
    for path, value in dt.tree.leaves_with_path(expected):
        got = dict(dt.tree.leaves_with_path(actual))[path]
        np.testing.assert_allclose(got, value, 2e-4, 1e-4, err_msg=dt.tree_util.keystr(path))


@pytest.mark.parametrize(
    "programs", [of_parts(LINEAR), of_reduced(LINEAR), of_reduced(OTHERS)], ids=["U", "R", "other"]
)
def test_values_and_gradients(programs: tuple[Any, Any]) -> None:
    def both(f: Any) -> Any:
        return dt.jit(lambda w, a: (f(w, a), dt.grad(lambda w, a: weighed(f(w, a)), (0, 1))(w, a)))

    divided, whole = programs
    compare(both(divided)(W, A), both(whole)(W, A))


def several(w: Any, a: Any, make: Any, total: Any, cast: Any) -> Any:
    r = cast(w)
    u = make(jnp.tanh(r) ** 2 * 3.0, a)
    u = u * jnp.exp(r) + u / 2.0 - u[::-1]
    u, ys = lax.scan(lambda c, v: (c * v * r + u, c[0]), u, r)
    return total(u.reshape(2, 2) @ jnp.cos(r).reshape(2, 2)), total(ys)


SEVERAL = (
    mapped(
        lambda w, a: several(
            w, a, lambda h, a: parts(vary(h) * a), lambda u: lax.psum(u, "x"), reduced
        ),
        (P(), P("x")),
    ),
    lambda w, a: several(w, a, lambda h, a: h * (a[:4] + a[4:]), lambda u: u, lambda w: w),
)
TRANSFORMED: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    "vmap": lambda f: dt.jit(lambda w, a: dt.vmap(f, (0, None))(jnp.stack([w, 2 * w]), a)),
    "jvp": lambda f: dt.jit(lambda w, a: dt.jvp(f, (w, a), (a[:4], jnp.tile(w, 2)))),
    "vmap of grad": lambda f: dt.jit(
        lambda w, a: dt.vmap(dt.grad(lambda w, a: weighed(f(w, a)), (0, 1)), (0, None))(
            jnp.stack([w, 2 * w]), a
        )
    ),
    "grad of grad": lambda f: dt.jit(
        dt.grad(lambda w, a: dt.grad(lambda w: weighed(f(w, a)))(w).sum(), (0, 1))
    ),
    "checkpoint": lambda f: dt.jit(dt.grad(lambda w, a: weighed(dt.checkpoint(f)(w, a)), (0, 1))),
    "loop": lambda f: dt.jit(
        dt.grad(lambda w, a: lax.scan(lambda c, _: (c + weighed(f(w, a)), None), 0.0, None, 2)[0])
    ),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations(name: str) -> None:
    compare(*[TRANSFORMED[name](f)(W, A) for f in SEVERAL])


@pytest.mark.parametrize("y", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("x", [AxisType.Auto, AxisType.Explicit])
def test_along_one_of_two_axes(x: AxisType, y: AxisType) -> None:
    mesh = dt.make_mesh((2, 2), ("x", "y"), axis_types=(x, y))

    def inner(u: Any) -> Any:
        return lax.psum(3.0 * lax.pcast(vary(u, "y"), "y", to="unreduced"), "y")

    def outer(w: Any, a: Any) -> Any:
        u = parts(a) * reduced(w)
        v = dt.shard_map(inner, in_specs=P(), out_specs=P(), axis_names={"y"})(u)
        return lax.psum(v, "x")

    def added(a: Any) -> Any:
        options = {"mesh": mesh, "in_specs": P("x"), "axis_names": {"x"}}
        u = dt.shard_map(parts, out_specs=P(unreduced={"x"}), **options)(a)
        return dt.reshard(2.0 * u, NamedSharding(mesh, P()))

    f = dt.shard_map(outer, mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), axis_names={"x"})
    with dt.set_mesh(mesh):
        compare(dt.jit(f)(W, A), 6 * W * (A[:4] + A[4:]))
        gradient = dt.jit(dt.grad(lambda w, a: (f(w, a) * W).sum(), (0, 1)))(W, A)
        compare(gradient, (6 * W * (A[:4] + A[4:]), 6 * jnp.tile(W * W, 2)))
        if x is y is AxisType.Explicit:
            compare(dt.jit(added)(dt.device_put(A, P("x"))), 2 * (A[:4] + A[4:]))
        elif x is AxisType.Explicit:
            with pytest.raises(
                NotImplementedError, match="whose axes are all of the type Explicit"
            ):
                added(dt.device_put(A, P("x")))


def test_gathering_and_scattering() -> None:
    weights = jnp.arange(1.0, 9.0)

    def gathered(a: Any) -> Any:
        every = lax.all_gather(a, "x", tiled=True, to="reduced")
        return lax.psum(vary(every) * (1.0 + lax.axis_index("x")), "x")

    def scattered(a: Any) -> Any:
        return lax.psum_scatter(parts(a), "x", tiled=True)

    f, g = mapped(gathered, P("x")), mapped(scattered, P("x"), P("x"))
    compare(
        dt.value_and_grad(lambda a: (f(a) * weights).sum())(A),
        ((3 * A * weights).sum(), 3 * weights),
    )
    compare(g(A), A[:4] + A[4:])
    compare(dt.grad(lambda a: (g(a) * weights[:4]).sum())(A), jnp.tile(weights[:4], 2))
    closed = dt.make_jaxpr(f)(A)
    compare(evaluate(closed, [np.asarray(A)], platform="cpu"), [np.asarray(f(A))])


def test_the_sum_is_taken_where_the_value_became_reduced() -> None:
    f = mapped(lambda w, a: lax.psum(vary(reduced(w)) * a, "x"), (P(), P("x")))
    text = str(dt.make_jaxpr(dt.grad(lambda w: f(w, A).sum()))(W))
    for line in (
        "f:f32[4]{R:x} = preduced[axes=('x',)] d",
        "g:f32[4]{V:x} = reduced_vary_cast[axes=('x',)] f",
        "p:f32[4]{U:x} = vary_unreduced_cast[axes=('x',)] o",
        "q:f32[4] = unreduced_psum[axes=('x',)] p",
    ):
        assert line in text

    def steps(w: Any, a: Any) -> Any:
        r = reduced(w)
        turn = lambda c, _: (c + lax.psum((vary(r) * a).sum(), "x"), None)
        return lax.scan(turn, 0.0, None, 3)[0]

    text = str(dt.make_jaxpr(dt.grad(mapped(steps, (P(), P("x")))))(W, A))
    assert text.count("unreduced_psum[axes=('x',)]") == 1  # after the loop


def test_without_checks_casts_do_nothing() -> None:
    def f(a: Any) -> Any:
        assert str(dt.typeof(parts(a))) == "float32[4]"
        return lax.psum(parts(reduced(a)), "x")

    unchecked = dt.shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=P(), check_vma=False)
    compare(unchecked(A), A[:4] + A[4:])
    over_batch = dt.vmap(lambda a: lax.psum(lax.pcast(a, "i", to="unreduced"), "i"), axis_name="i")
    compare(over_batch(W), jnp.full(4, W.sum()))


def test_derivatives_that_users_define() -> None:
    @dt.custom_vjp
    def scale(w: Any, a: Any) -> Any:
        return vary(w) * a

    scale.defvjp(lambda w, a: (scale(w, a), (w, a)), lambda res, ct: (ct * res[1], ct * res[0]))
    f = mapped(lambda w, a: lax.psum(scale(reduced(w), a), "x"), (P(), P("x")))
    compare(dt.grad(lambda w, a: f(w, a).sum(), (0, 1))(W, A), (A[:4] + A[4:], jnp.tile(W, 2)))


# -----------------------------------------------------------------------------------------
# arrays

PARTS = dt.device_put(A, NamedSharding(EXPLICIT, P("x")))
SUMMED = 2 * (A[:4] + A[4:])
unreduced_result = mapped(lambda a: parts(2.0 * a), P("x"), P(unreduced={"x"}), EXPLICIT)
summed = mapped(lambda u: lax.psum(u, "x"), P(unreduced={"x"}), P(), EXPLICIT)


def on_mesh(spec: Any) -> NamedSharding:
    return NamedSharding(EXPLICIT, spec)


ON_ARRAYS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "shard_map": (summed, SUMMED),
    "reshard": (lambda u: dt.reshard(u, on_mesh(P())), SUMMED),
    "reshard divided": (lambda u: dt.reshard(u, on_mesh(P("x"))), SUMMED),
    "operations": (lambda u: summed(3.0 * u - u / 2.0), 2.5 * SUMMED),
    "sums": (lambda u: summed(jnp.cumsum(u)), jnp.cumsum(SUMMED)),
    "broadcast": (
        lambda u: summed((u[None] + 2.0 * u[:, None]).sum(0)),
        4 * SUMMED + 2 * SUMMED.sum(),
    ),
    "product": (lambda u: summed(u @ jnp.ones((4, 4))), jnp.full(4, SUMMED.sum())),
    "reduction": (lambda u: dt.reshard(u.sum(), on_mesh(P())), SUMMED.sum()),
    "pieces": (lambda u: summed(jnp.concatenate([u[2:], u[:2]])), jnp.roll(SUMMED, 2)),
    "loop": (
        lambda u: summed(lax.scan(lambda c, _: (c * 0.5 + u, None), u, None, 3)[0]),
        1.875 * SUMMED,
    ),
    "branch": (lambda u: summed(lax.cond(True, lambda v: v * 2.0, jnp.negative, u)), 2 * SUMMED),
    "jit": (lambda u: summed(dt.jit(lambda v: v + v)(u)), 2 * SUMMED),
}


@pytest.mark.parametrize("name", ON_ARRAYS)
def test_unreduced_arrays(name: str) -> None:
    function, expected = ON_ARRAYS[name]
    u = unreduced_result(PARTS)
    assert str(dt.typeof(u)) == "float32[4]{U:x}"
    assert u.sharding.spec == P(unreduced={"x"})
    with dt.set_mesh(EXPLICIT):
        compare(function(u), expected)
        compare(dt.jit(function)(u), expected)


def test_gradients_of_arrays() -> None:
    w = dt.reshard(W, on_mesh(P(reduced={"x"})))
    assert str(dt.typeof(w)) == "float32[4]{R:x}"
    compare(w, W)
    assert str(dt.typeof(dt.reshard(w, on_mesh(P())))) == "float32[4]"
    assert str(dt.typeof(w * 2.0 + 1.0)) == "float32[4]{R:x}"
    f = dt.shard_map(lambda w, a: lax.psum(w * a, "x"), mesh=EXPLICIT, out_specs=P())

    def loss(w: Any, a: Any) -> Any:
        return (f(jnp.sin(w) + w * 2.0, a) * SUMMED).sum()

    expected = dt.grad(lambda w: ((jnp.sin(w) + w * 2.0) * (A[:4] + A[4:]) * SUMMED).sum())(W)
    for grad in (dt.grad(loss), dt.jit(dt.grad(loss))):
        found = grad(w, PARTS)
        assert str(dt.typeof(found)) == "float32[4]{U:x}"
        compare(dt.reshard(found, on_mesh(P())), expected)

    def resharded(a: Any) -> Any:
        return (dt.reshard(unreduced_result(a), on_mesh(P())) * W).sum()

    compare(dt.grad(resharded)(PARTS), 2 * jnp.tile(W, 2))
    within = lambda w: loss(dt.reshard(w, on_mesh(P(reduced={"x"}))), PARTS)
    compare(dt.grad(within)(dt.device_put(W, on_mesh(P()))), expected)


def reference() -> Any:
    closed = dt.make_jaxpr(lambda a: summed(unreduced_result(a)))(PARTS)
    return evaluate(closed, [np.asarray(A)], platform="cpu")


def test_reference_of_arrays() -> None:
    compare(reference(), [np.asarray(SUMMED)])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda u: np.asarray(u),
            NotImplementedError,
            "a part of a sum that has not been added up",
        ),
        (
            lambda u: u.addressable_shards,
            NotImplementedError,
            "dovetail.reshard(x, PartitionSpec())",
        ),
        (
            lambda u: dt.device_put(W, on_mesh(P(unreduced={"x"}))),
            NotImplementedError,
            "nothing to be read, placed or divided",
        ),
        (
            lambda u: jnp.zeros(4, out_sharding=P(unreduced={"x"})),
            NotImplementedError,
            "and zeros does not make what is unreduced: compute it in dovetail.shard_map, where",
        ),
        (
            lambda u: dt.jit(lambda w: dt.device_put(w, on_mesh(P(unreduced={"x"}))))(W),
            ShardingTypeError,
            "f32[4] is placed by P(unreduced={'x'}), which says something else of what is unreduce",
        ),
        (lambda u: u + 1.0, ShardingTypeError, "add takes f32[], which is not unreduced along 'x'"),
        (
            lambda u: dovetail.scipy.linalg.solve(jnp.eye(4), u),
            ShardingTypeError,
            "custom_linear_solve is not linear; add it up first",
        ),
        (lambda u: jnp.sin(u), ShardingTypeError, "or outside of shard_map with dovetail.reshard"),
        (
            lambda u: dt.reshard(W, on_mesh(P(unreduced={"x"}))),
            ShardingTypeError,
            "reshard: xs is f32[4], and P(unreduced={'x'}) says that it is unreduced along 'x'; pa",
        ),
        (
            lambda u: dt.jit(lambda w: dt.reshard(w, on_mesh(P())))(
                dt.reshard(W, on_mesh(P(reduced={"x"})))
            ),
            ShardingTypeError,
            "says that it is not reduced along 'x'; use the value that was made reduced",
        ),
        (
            lambda u: u * dt.reshard(W, on_mesh(P("x"))),
            ShardingTypeError,
            "mul of f32[4]{U:x}, f32[4@x]: one is divided over 'x', along which another one is unr",
        ),
        (
            lambda u: summed(dt.device_put(W, on_mesh(P()))),
            ValueError,
            "u is f32[4], and its specification P(unreduced={'x'}) says something else",
        ),
        (
            lambda u: mapped(lambda a: parts(a), P("x"), P(), EXPLICIT)(PARTS),
            ValueError,
            "which is unreduced along 'x', and its specification P() in out_specs does not say so",
        ),
        (
            lambda u: mapped(lambda a: a, P("x"), P(unreduced={"x"}), EXPLICIT)(PARTS),
            ValueError,
            "says that it is unreduced along 'x'; cast it, with lax.pcast(x, 'x', to='unreduced')",
        ),
        (
            lambda u: mapped(reduced, P(), P(), EXPLICIT)(W),
            ValueError,
            "is reduced along 'x', and its specification P() in out_specs does not say so; cast it",
        ),
        (
            lambda u: mapped(parts, P("x"), P(unreduced={"x"}))(A),
            ValueError,
            "Arrays are unreduced along axes of the type Explicit alone",
        ),
        (
            lambda u: dt.shard_map(
                parts, mesh=EXPLICIT, in_specs=P("x"), out_specs=P(unreduced={"x"}), check_vma=False
            )(PARTS),
            ValueError,
            "with check_vma=False types do not say what is unreduced",
        ),
        (
            lambda u: mapped(
                parts, P("x"), P(unreduced={"x"}, unreduced_kind=UnreducedKind.max), EXPLICIT
            )(PARTS),
            NotImplementedError,
            "of what is unreduced only sums are supported",
        ),
    ],
)
def test_what_is_refused(make: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    u = unreduced_result(PARTS)
    assert repr(u) == "Array(shape=(4,), dtype=float32){U:x}"
    with dt.set_mesh(EXPLICIT), pytest.raises(error, match=re.escape(message)):
        make(u)
