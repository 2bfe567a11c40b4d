"""Products whose sums are left in parts, by ``out_sharding=P(unreduced=...)``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import ShardingTypeError
from dovetail.sharding import AxisType, NamedSharding, UnreducedKind
from dovetail.sharding import PartitionSpec as P

MESH = dt.make_mesh((2, 2), ("x", "y"))
RNG = np.random.default_rng(0)
LEFT = RNG.normal(size=(4, 8)).astype(np.float32)
RIGHT = RNG.normal(size=(8, 6)).astype(np.float32)
SQUARE = jnp.asarray(RNG.normal(size=(6, 6)).astype(np.float32))
EXACT: Any = {"rtol": 1e-4, "atol": 1e-4}

Products = Callable[..., Any]
PRODUCTS: dict[str, Products] = {
    "dot": jnp.dot,
    "matmul": jnp.matmul,
    "tensordot": partial(jnp.tensordot, axes=1),
    "einsum": partial(jnp.einsum, "ij,jk->ik"),
    "lax.dot": lax.dot,
    "lax.dot_general": partial(lax.dot_general, dimension_numbers=(((1,), (0,)), ((), ()))),
}
# How both operands are divided, what is asked for, and the type of the result.
DIVISIONS: list[tuple[Any, Any, Any, str]] = [
    (P(None, "x"), P("x"), P(unreduced={"x"}), "[4,6]{U:x}"),
    (P(None, "y"), P("y"), P(None, None, unreduced={"y"}), "[4,6]{U:y}"),
    (P("y", "x"), P("x"), P("y", unreduced={"x"}), "[4@y,6]{U:x}"),
    (P("y", "x"), P("x"), P(unreduced={"x"}), "[4,6]{U:x}"),
    (P("y", "x"), P("x"), P(None, "y", unreduced={"x"}), "[4,6@y]{U:x}"),
    (P(None, "x"), P("x", "y"), P(None, "y", unreduced={"x"}), "[4,6@y]{U:x}"),
    (P(None, ("y", "x")), P(("y", "x")), P(unreduced={"x", "y"}), "[4,6]{U:(x,y)}"),
]
TARGETS = (P(), P("x"), P(None, "x"), P("y", "x"), P(None, "y"))


def put(value: Any, spec: Any) -> Any:
    return dt.device_put(value, NamedSharding(MESH, spec))


@pytest.fixture(autouse=True)
def mesh() -> Any:
    with dt.set_mesh(MESH):
        yield


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize(("left", "right", "asked", "shown"), DIVISIONS)
def test_products(name: str, left: Any, right: Any, asked: Any, shown: str) -> None:
    product = partial(PRODUCTS[name], out_sharding=asked)
    x, y = put(LEFT, left), put(RIGHT, right)
    for function in (product, dt.jit(product)) if name == "dot" else (product,):
        parts = function(x, y)
        assert str(dt.typeof(parts)) == "float32" + shown
        assert parts.sharding.spec.unreduced == asked.unreduced
        np.testing.assert_allclose(dt.reshard(parts, P()), LEFT @ RIGHT, **EXACT)


@pytest.mark.parametrize(("left", "right", "asked", "shown"), DIVISIONS)
def test_adding_up_and_derivatives(left: Any, right: Any, asked: Any, shown: str) -> None:
    x, y = put(LEFT, left), put(RIGHT, right)
    product = LEFT @ RIGHT
    for target in TARGETS:

        def added(x: Any, y: Any, target: Any = target) -> Any:
            return dt.reshard(jnp.dot(x, y, out_sharding=asked), target)

        result = dt.jit(added)(x, y)
        assert dt.typeof(result) == dt.typeof(put(product, target))
        np.testing.assert_allclose(result, product, **EXACT)
        if target in (P(), P("x")):
            found = dt.jit(dt.grad(lambda x, y, f=added: (f(x, y) ** 2).sum(), (0, 1)))(x, y)
            for got, like, expected in zip(
                found, (x, y), (2 * product @ RIGHT.T, 2 * LEFT.T @ product), strict=True
            ):
                assert dt.typeof(got) == dt.typeof(like)
                np.testing.assert_allclose(got, expected, **EXACT)
    tangent = dt.jvp(lambda x: jnp.dot(x, y, out_sharding=asked), (x,), (x,))[1]
    np.testing.assert_allclose(dt.reshard(tangent, P()), product, **EXACT)


def test_nothing_is_exchanged_before_it_is_added_up() -> None:
    x, y = put(LEFT, P(None, "x")), put(RIGHT, P("x"))
    product = partial(jnp.dot, out_sharding=P(unreduced={"x"}))
    several = lambda x, y: 2.0 * (product(x, y) + product(x, 3.0 * y)).T
    for function, count in (
        (product, 0),
        (several, 0),
        (lambda x, y: dt.reshard(several(x, y), P()), 1),
        (lambda x, y: dt.reshard(several(x, y), P("x")), 1),
    ):
        text = dt.jit(function).lower(x, y).compile().as_text()
        sums = re.findall(r"(?:all-reduce|reduce-scatter)(?:-start)?\(", text)
        others = re.findall(r"(?:all-gather|all-to-all|collective-permute)(?:-start)?\(", text)
        assert (len(sums), len(others)) == (count, 0)


def test_batches_and_narrower_dtypes() -> None:
    stack = np.stack([LEFT, 2 * LEFT]), np.stack([RIGHT, RIGHT])
    x, y = put(stack[0], P("y", None, "x")), put(stack[1], P("y", "x"))
    asked = P("y", unreduced={"x"})
    for function in (jnp.matmul, partial(jnp.einsum, "bij,bjk->bik")):
        parts = function(x, y, out_sharding=asked)
        assert str(dt.typeof(parts)) == "float32[2@y,4,6]{U:x}"
        np.testing.assert_allclose(dt.reshard(parts, P()), stack[0] @ stack[1], **EXACT)
    order = jnp.einsum("bij,bjk->kbi", x, y, out_sharding=P(None, "y", unreduced={"x"}))
    np.testing.assert_allclose(dt.reshard(order, P()), np.einsum("bij,bjk->kbi", *stack), **EXACT)
    for dtype in ("int32", "bfloat16"):
        whole = np.ones((4, 8), dtype), np.ones((8, 6), dtype)
        parts = jnp.dot(
            put(whole[0], P(None, "x")), put(whole[1], P("x")), out_sharding=P(unreduced={"x"})
        )
        assert parts.dtype == dtype
        np.testing.assert_array_equal(dt.reshard(parts, P()), np.full((4, 6), 8, dtype))


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "sum with itself": lambda u: u + u,
    "multiples": lambda u: 3.0 * u - u / 2.0,
    "sum of rows": lambda u: u.sum(0),
    "sum of columns": lambda u: u.sum(1),
    "sum": jnp.sum,
    "transpose": lambda u: u.T,
    "slices": lambda u: u[:2, ::-1],
    "element": lambda u: u[1],
    "pieces": lambda u: jnp.concatenate([u, u], 1),
    "roll": lambda u: jnp.roll(u, 1, 0),
    "reshape": lambda u: u.reshape(2, 2, 6),
    "broadcast": lambda u: u[:, :, None] * jnp.ones(2),
    "product": lambda u: u @ SQUARE,
    "product from the left": lambda u: SQUARE[:4, :4] @ u,
    "vmap": lambda u: dt.vmap(lambda row: row * 2.0 + row)(u),
    "loop": lambda u: lax.scan(lambda c, _: (c * 0.5 + u, None), u, None, 3)[0],
    "branch": lambda u: lax.cond(True, lambda v: v * 2.0, jnp.negative, u),
    "jit": lambda u: dt.jit(lambda v: v + v)(u),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_parts_that_are_divided(name: str) -> None:
    function = OPERATIONS[name]
    expected = np.asarray(function(jnp.asarray(LEFT @ RIGHT)))
    for left, right, asked in (
        (P("y", "x"), P("x"), P("y", unreduced={"x"})),
        (P(None, "x"), P("x", "y"), P(None, "y", unreduced={"x"})),
    ):
        parts = jnp.dot(put(LEFT, left), put(RIGHT, right), out_sharding=asked)
        for computed in (function(parts), dt.jit(function)(parts)):
            assert dt.typeof(computed).manual_axis_type.unreduced == {"x"}
            np.testing.assert_allclose(dt.reshard(computed, P()), expected, **EXACT)


def test_adding_up_along_one_of_two_axes() -> None:
    x, y = put(LEFT, P(None, ("x", "y"))), put(RIGHT, P(("x", "y")))
    parts = jnp.dot(x, y, out_sharding=P(unreduced={"x", "y"}))
    some = dt.reshard(parts, P(unreduced={"x"}))
    assert str(dt.typeof(some)) == "float32[4,6]{U:x}"
    np.testing.assert_allclose(dt.reshard(some, P()), LEFT @ RIGHT, **EXACT)


ALIKE = (P(None, "x"), P("x"))


@pytest.mark.parametrize(
    ("left", "right", "asked", "error", "message"),
    [
        (*ALIKE, P(unreduced={"y"}), ShardingTypeError, "divided so over 'y' alone"),
        (*ALIKE, P(unreduced={"x", "y"}), ShardingTypeError, "divided so over 'x' and 'y' alone"),
        (P(), P(), P(unreduced={"x"}), ShardingTypeError, "are f32[4,8] and f32[8,6]"),
        (P(None, "x"), P(), P(unreduced={"x"}), ShardingTypeError, "f32[4,8@x] and f32[8,6]"),
        (
            P(None, "x"),
            P("y"),
            P(unreduced={"x"}),
            ShardingTypeError,
            "Divide them with dovetail",
        ),
        (*ALIKE, P(unreduced={"z"}), ValueError, "has no axis 'z'"),
        (*ALIKE, P(reduced={"x"}), NotImplementedError, "dot does not make what is reduced"),
        (
            *ALIKE,
            P(unreduced={"x"}, unreduced_kind=UnreducedKind.max),
            NotImplementedError,
            "as parts of sums",
        ),
    ],
)
def test_what_is_refused(
    left: Any, right: Any, asked: Any, error: type[Exception], message: str
) -> None:
    x, y = put(LEFT, left), put(RIGHT, right)
    with pytest.raises(error, match=re.escape(message)):
        jnp.dot(x, y, out_sharding=asked)


def test_sums_and_meshes_that_cannot_be_left_in_parts() -> None:
    x = put(LEFT, P(None, "x"))
    with pytest.raises(ShardingTypeError, match="comes of no sum over dimensions that two"):
        jnp.einsum("ij->i", x, out_sharding=P(unreduced={"x"}))
    with pytest.raises(NotImplementedError, match="does not make what is unreduced"):
        lax.reduce_sum(x, (1,), out_sharding=P(unreduced={"x"}))
    automatic = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    with dt.set_mesh(automatic), pytest.raises(NotImplementedError, match="all of the type Exp"):
        jnp.dot(LEFT, RIGHT, out_sharding=P(unreduced={"x"}))
