"""Axes of a mesh that are of another type inside a function: `auto_axes`, `explicit_axes`,
and `shard_map` of some of the explicit axes.

The types of most rows are those that JAX 0.12 gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import ShardingTypeError
from dovetail.sharding import AxisType, NamedSharding, auto_axes, explicit_axes
from dovetail.sharding import PartitionSpec as P

EXPLICIT = dt.make_mesh((2, 2), ("x", "y"))
AUTO = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
MIXED = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))

ROW = dt.make_mesh((2,), ("x",), devices=dt.devices()[:2])

VALUE = (np.arange(32).reshape(8, 4) % 7).astype(np.float32) / 7


def _on(mesh: Any, *spec: Any) -> Any:
    return dt.device_put(VALUE, NamedSharding(mesh, P(*spec)))


class _Seen:
    """Notes the types that values have inside of functions."""

    def __init__(self) -> None:
        self.types: list[str] = []

    def __call__(self, x: Any) -> Any:
        self.types.append(str(dt.typeof(x)))
        return x


see = _Seen()


def _gradient(v: Any) -> Any:
    """The gradient of ``sin(v @ v.T).sum()``."""
    return 2 * np.cos(v @ v.T) @ v


#: name: (mesh, specification of the operand, function, type inside, type of the result, values).
MODES: dict[str, tuple[Any, tuple[Any, ...], Any, str, str, Any]] = {
    "auto": (
        EXPLICIT,
        ("x",),
        auto_axes(lambda a: see(a) @ a.T, out_sharding=P("x")),
        "float32[8,4]",
        "float32[8@x,8]",
        lambda v: v @ v.T,
    ),
    "auto, asked at the call": (
        EXPLICIT,
        ("x",),
        lambda a: auto_axes(see)(a, out_sharding=P(None, "y")),
        "float32[8,4]",
        "float32[8,4@y]",
        lambda v: v,
    ),
    "auto, one axis": (
        EXPLICIT,
        ("x", "y"),
        auto_axes(lambda a: see(a) * 2, axes="x", out_sharding=P("x", "y")),
        "float32[8,4@y]",
        "float32[8@x,4@y]",
        lambda v: v * 2,
    ),
    "auto, whole": (
        EXPLICIT,
        ("x", "y"),
        auto_axes(lambda a: see(a).sum(), out_sharding=NamedSharding(EXPLICIT, P())),
        "float32[8,4]",
        "float32[]",
        np.sum,
    ),
    "auto, grad": (
        EXPLICIT,
        ("x",),
        dt.grad(lambda a: auto_axes(lambda z: jnp.sin(z @ see(z).T).sum(), out_sharding=P())(a)),
        "float32[8,4]",
        "float32[8@x,4]",
        _gradient,
    ),
    "auto, vmap": (
        EXPLICIT,
        ("x",),
        dt.vmap(lambda a: auto_axes(lambda z: jnp.sin(see(z)), out_sharding=P())(a)),
        "float32[4]",
        "float32[8@x,4]",
        np.sin,
    ),
    "auto, jvp": (
        EXPLICIT,
        ("x",),
        lambda a: dt.jvp(auto_axes(lambda z: see(z) ** 2, out_sharding=P("y")), (a,), (a,))[1],
        "float32[8,4]",
        "float32[8@y,4]",
        lambda v: 2 * v * v,
    ),
    "explicit": (
        AUTO,
        ("x",),
        explicit_axes(lambda a: see(jnp.sin(a)).T, in_sharding=P("x")),
        "float32[8@x,4]",
        "float32[4,8]",
        lambda v: np.sin(v).T,
    ),
    "explicit, divided anew": (
        AUTO,
        ("x",),
        explicit_axes(lambda a: see(a).T, axes=("x",), in_sharding=P(None, "x")),
        "float32[8,4@x]",
        "float32[4,8]",
        np.transpose,
    ),
    "explicit, grad": (
        AUTO,
        ("y",),
        dt.grad(lambda a: explicit_axes(lambda z: jnp.sin(see(z)).sum(), in_sharding=P("x"))(a)),
        "float32[8@x,4]",
        "float32[8,4]",
        np.cos,
    ),
    "explicit in auto": (
        EXPLICIT,
        ("x",),
        auto_axes(
            lambda a: explicit_axes(lambda z: see(z) * 2)(a, in_sharding=P("y", "x")),
            out_sharding=P("x"),
        ),
        "float32[8@y,4@x]",
        "float32[8@x,4]",
        lambda v: v * 2,
    ),
    "jit inside": (
        EXPLICIT,
        ("x",),
        lambda a: auto_axes(dt.jit(lambda z: see(z) @ z.T), out_sharding=P("x"))(a),
        "float32[8,4]",
        "float32[8@x,8]",
        lambda v: v @ v.T,
    ),
    "shard_map of all": (
        EXPLICIT,
        ("x", "y"),
        dt.shard_map(lambda a: lax.psum(see(a), "y"), out_specs=P("x")),
        "float32[4,2]{V:(x,y)}",
        "float32[8@x,2]",
        lambda v: v[:, :2] + v[:, 2:],
    ),
    "shard_map of some": (
        EXPLICIT,
        ("x", "y"),
        dt.shard_map(lambda a: lax.psum(see(a), "x"), out_specs=P(), axis_names={"x"}),
        "float32[4,4@y]{V:x}",
        "float32[4,4@y]",
        lambda v: v[:4] + v[4:],
    ),
    "shard_map of the first of two": (
        EXPLICIT,
        (("x", "y"),),
        dt.shard_map(lambda a: see(a) * 2, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}),
        "float32[4@y,4]{V:x}",
        "float32[8@(x,y),4]",
        lambda v: v * 2,
    ),
    "shard_map, grad": (
        EXPLICIT,
        ("x", "y"),
        dt.grad(
            lambda a: dt.shard_map(
                lambda z: lax.psum(jnp.sin(see(z)).sum(), "x"), out_specs=P(), axis_names={"x"}
            )(a)
        ),
        "float32[4,4@y]{V:x}",
        "float32[8@x,4@y]",
        np.cos,
    ),
    "shard_map in shard_map": (
        EXPLICIT,
        ("x", "y"),
        dt.shard_map(
            lambda a: dt.shard_map(
                lambda z: lax.psum(see(z), ("x", "y")), out_specs=P(), axis_names={"y"}
            )(a),
            out_specs=P(),
            axis_names={"x"},
        ),
        "float32[4,2]{V:(x,y)}",
        "float32[4,2]",
        lambda v: v[:4, :2] + v[:4, 2:] + v[4:, :2] + v[4:, 2:],
    ),
    "smap": (
        EXPLICIT,
        ("x", "y"),
        dt.smap(lambda a: see(a) * 2, out_axes=0, axis_name="x"),
        "float32[4,4@y]{V:x}",
        "float32[8@x,4@y]",
        lambda v: v * 2,
    ),
    "shard_map, divided anew": (
        EXPLICIT,
        ("x",),
        dt.shard_map(see, in_specs=P(None, "x"), out_specs=P(None, "x")),
        "float32[8,2]{V:x}",
        "float32[8,4@x]",
        lambda v: v,
    ),
    "shard_map of a mixed mesh": (
        MIXED,
        ("x", "y"),
        dt.shard_map(lambda a: see(a) * 2, out_specs=P("x"), axis_names={"x"}),
        "float32[4,4]{V:x}",
        "float32[8@x,4]",
        lambda v: v * 2,
    ),
}


@pytest.mark.parametrize("name", MODES)
def test_types_and_values(name: str) -> None:
    mesh, spec, function, inside, expected, reference = MODES[name]
    with dt.set_mesh(mesh):
        x = _on(mesh, *spec)
        for way in (function, dt.jit(function)):
            see.types.clear()
            result = way(x)
            assert set(see.types) == {inside}
            assert str(dt.typeof(result)) == expected
            np.testing.assert_allclose(result, reference(VALUE), rtol=2e-5, atol=1e-6)


def test_derivatives_gather_nothing() -> None:
    """The cotangent of what the compiler divides is divided by it too."""
    with dt.set_mesh(EXPLICIT):
        inner = auto_axes(lambda z: jnp.sin(z) * 2, out_sharding=P("x", "y"))
        program = dt.jit(dt.grad(lambda a: (inner(a) ** 2).sum())).lower(_on(EXPLICIT, "x", "y"))
        assert "all-gather" not in program.compile().as_text()
    with dt.set_mesh(AUTO):
        inner = explicit_axes(lambda z: jnp.sin(z) * 2, in_sharding=P("x", "y"))
        program = dt.jit(dt.grad(lambda a: (inner(a) ** 2).sum())).lower(_on(AUTO, "x", "y"))
        assert "all-gather" not in program.compile().as_text()


def test_structures_and_other_arguments() -> None:
    def function(z: Any, *, k: Any, n: int, name: str) -> Any:
        assert str(dt.typeof(k)) == "float32[8,4]"
        assert (n, name) == (2, "a name")
        return {"a": z, "b": z + k + n}

    with dt.set_mesh(EXPLICIT):
        x = _on(EXPLICIT, "x", "y")
        each = {"a": P("x"), "b": P("y")}
        result = auto_axes(function, out_sharding=each)(x, k=x, n=2, name="a name")
        assert [str(dt.typeof(result[key])) for key in "ab"] == ["float32[8@x,4]", "float32[8@y,4]"]
        np.testing.assert_allclose(result["b"], VALUE * 2 + 2)
        # What a function captures is divided as its type says.
        y = auto_axes(lambda z: z + x, out_sharding=P())(x)
        np.testing.assert_allclose(y, VALUE * 2)
    with dt.set_mesh(AUTO):
        x = _on(AUTO, "x")
        specs = (P("x"), {"b": P("y")})
        result = explicit_axes(lambda a, tree: a + tree["b"].sum(0), in_sharding=specs)(x, {"b": x})
        np.testing.assert_allclose(result, VALUE + VALUE.sum(0), rtol=1e-6)


def test_ambiguity_is_the_compilers_in_auto_axes_alone() -> None:
    with dt.set_mesh(AUTO), pytest.raises(ShardingTypeError, match="two dimensions of the result"):
        explicit_axes(lambda a: a @ a.T, in_sharding=P("x"))(VALUE)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: auto_axes(lambda a: a)(VALUE), TypeError, "out_sharding is missing"),
        (lambda: explicit_axes(lambda a: a)(VALUE), TypeError, "in_sharding is missing"),
        (
            lambda: auto_axes(lambda a: a, axes="z", out_sharding=P())(VALUE),
            ValueError,
            "axes has 'z', which Mesh.* does not have",
        ),
        (
            lambda: auto_axes(lambda a: a, out_sharding="x")(VALUE),
            TypeError,
            "out_sharding holds 'x', which is no PartitionSpec or NamedSharding",
        ),
        (
            lambda: auto_axes(lambda a: a, out_sharding=P("z"))(VALUE),
            ValueError,
            "'z'",
        ),
        (
            lambda: auto_axes(lambda a: a[:3], out_sharding=P("x"))(VALUE),
            ValueError,
            "auto_axes of <lambda>: the result: .*3 is no multiple of 2",
        ),
        (
            lambda: explicit_axes(lambda a: a, in_sharding=P("x"))(VALUE[:3]),
            ValueError,
            "explicit_axes of <lambda>: a: .*3 is no multiple of 2",
        ),
        (
            lambda: explicit_axes(lambda a: a, in_sharding=P("x"))(a=VALUE),
            TypeError,
            "arguments are passed by position",
        ),
        (
            lambda: auto_axes(lambda a: a, out_sharding=NamedSharding(ROW, P("x")))(VALUE),
            ValueError,
            "out_sharding is over .*, and the current mesh is",
        ),
        (
            lambda: dt.shard_map(
                auto_axes(lambda a: a, axes="x", out_sharding=P()),
                in_specs=P("x"),
                out_specs=P("x"),
            )(VALUE),
            ValueError,
            "'x' is handled by the shard_map around it",
        ),
    ],
)
def test_what_cannot_be(call: Any, error: Any, message: str) -> None:
    with dt.set_mesh(EXPLICIT), pytest.raises(error, match=message):
        call()


def test_without_a_mesh() -> None:
    for function in (auto_axes(abs, out_sharding=P()), explicit_axes(abs, in_sharding=P())):
        with pytest.raises(ValueError, match="there is no current mesh, whose axes it is about"):
            function(VALUE)


@pytest.mark.parametrize("mesh", [AUTO, MIXED], ids=["auto", "mixed"])
def test_specifications_that_types_do_not_say(mesh: Any) -> None:
    with dt.set_mesh(mesh), pytest.raises(TypeError, match=r"in_specs is missing.*type Auto"):
        dt.shard_map(lambda a: a, out_specs=P("x"))(VALUE)


def test_types_of_mixed_meshes_are_those_of_their_results() -> None:
    """The compiler divides over axes of the type Auto, and over no others."""
    x = _on(MIXED, "x", "y")
    for function, expected in [
        (lambda b: b * 2, "float32[8@x,4]"),
        (jnp.transpose, "float32[4,8@x]"),
        (lambda b: b.sum(0), "float32[4]"),
        (lambda b: b.sum(1), "float32[8@x]"),
        (dt.grad(lambda b: (jnp.sin(b) @ jnp.ones((4, 3))).sum()), "float32[8@x,4]"),
    ]:
        assert str(dt.make_jaxpr(function)(x).out_avals[0]) == expected
        for way in (function, dt.jit(function)):
            assert str(dt.typeof(way(x))) == expected
    assert dt.jit(lambda b: b * 2)(x).sharding.spec == P("x", "y")
