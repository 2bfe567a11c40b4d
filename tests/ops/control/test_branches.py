"""`lax.cond` and `lax.switch`: values, types, batches of predicates, errors.

What transformations make of them is in `test_control_flow`.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random

DTYPES = [bool, np.int8, np.uint8, np.int32, np.uint32, np.float16, ml_dtypes.bfloat16]
DTYPES += [np.float32, np.complex64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0)])
def test_dtypes_and_shapes(dtype: Any, shape: tuple[int, ...]) -> None:
    a, b = np.ones(shape, dtype), np.zeros(shape, dtype)
    for pick in (True, False):
        for way in (lax.cond, dt.jit(lax.cond, static_argnums=(1, 2))):
            first, second = way(pick, lambda x, y: (x, y), lambda x, y: (y, x), a, b)
            np.testing.assert_array_equal(first, a if pick else b)
            np.testing.assert_array_equal(second, b if pick else a)
            assert first.dtype == second.dtype == dtype
        mapped = dt.vmap(lambda p: lax.cond(p, lambda: a, lambda: b))(np.array([pick, not pick]))
        np.testing.assert_array_equal(mapped[0], a if pick else b)


@pytest.mark.parametrize(
    "pred", [True, False, 2, 0, -1, 0.0, -0.5, np.bool_(True), np.uint8(0), np.float16(3), np.nan]
)
def test_predicates(pred: Any) -> None:
    expected = 1 if bool(pred) else 2
    assert int(lax.cond(pred, lambda: 1, lambda: 2)) == expected
    assert int(dt.jit(lambda p: lax.cond(p, lambda: 1, lambda: 2))(pred)) == expected


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_indices_are_clamped(dtype: Any, count: int) -> None:
    branches = [lambda x, i=i: x * 10 + i for i in range(count)]
    limits = np.iinfo(dtype)
    for index in {limits.min, limits.max, 0, 1, 2, 4, 100, max(-1, limits.min)}:
        expected = 30 + min(max(index, 0), count - 1)
        for way in (lax.switch, dt.jit(lambda i, b, x: lax.switch(i, b, x), static_argnums=1)):
            assert int(way(dtype(index), tuple(branches), 3)) == expected
        mapped = dt.vmap(lambda i: lax.switch(i, branches, 3))(np.array([index, 0], dtype))
        assert mapped.tolist() == [expected, 30]


def test_trees_captured_values_and_keys() -> None:
    key, scale = random.key(0), jnp.arange(3.0)
    right = lambda x: {"a": [x["v"] * scale, None], "k": key}
    left = lambda x: {"a": [x["v"] + scale * 2, None], "k": random.split(key)[1]}
    for pick in (True, False):
        expected = (right if pick else left)({"v": jnp.ones(3)})
        for way in (lambda f: f, dt.jit, lambda f: lambda p: dt.vmap(lambda _: f(p))(np.ones(1))):
            found = way(lambda p: lax.cond(p, right, left, {"v": jnp.ones(3)}))(pick)
            assert np.squeeze(found["a"][0]).tolist() == expected["a"][0].tolist()
            data = random.key_data(found["k"]).reshape(-1)
            assert data.tolist() == random.key_data(expected["k"]).tolist()


def test_keys_among_the_residuals_of_a_branch() -> None:
    """The other branch returns something in their place."""

    def noise(x: Any, key: Any) -> Any:
        return jnp.sin(jnp.sin(x)) * random.normal(key, ())

    def function(x: Any, key: Any) -> Any:
        branches = (lambda x: dt.checkpoint(noise)(x, random.split(key)[0]), lambda x: 2 * x)
        return lax.cond(x > 0, *branches, x)

    key = random.key(0)
    for x in (-1.0, 1.0):
        want = dt.grad(noise)(x, random.split(key)[0]) if x > 0 else 2.0
        for gradient in (dt.grad(function), dt.jit(dt.grad(function))):
            np.testing.assert_allclose(gradient(x, key), want, rtol=1e-6)


def test_python_numbers_take_the_dtype_of_other_branches() -> None:
    half = np.float16(2)
    cases: list[tuple[list[Any], str, bool]] = [
        ([lambda: 1, lambda: 2], "int32", True),
        ([lambda: 1.0, lambda: half], "float16", False),
        ([lambda: half, lambda: 1], "float16", False),
        ([lambda: 1, lambda: np.int8(3), lambda: 2], "int8", False),
    ]
    for branches, dtype, weak in cases:
        found = dt.eval_shape(lambda b=branches: lax.switch(np.int32(1), b))
        assert (found.dtype.name, found.weak_type) == (dtype, weak)
        assert lax.switch(np.int32(1), branches).dtype == dtype


SINGULAR = [lambda x: jnp.sqrt(x), lambda x: 3.0 * x, lambda x: jnp.log(x) * x]
CHOICES: list[Any] = [
    lambda i, x: lax.switch(i, SINGULAR, x),
    lambda i, x: lax.cond(i == 1, SINGULAR[1], SINGULAR[0], x),
    lambda i, x: lax.cond(i == 1, lambda: SINGULAR[1](x), lambda: SINGULAR[0](x)),
]


@pytest.mark.parametrize("f", CHOICES)
def test_no_derivative_comes_from_branches_not_taken(f: Any) -> None:
    """A branch may have an infinite derivative where it is not taken: 0 times it is NaN."""
    x, chosen, expected = np.array([0, 4, 0], np.float32), np.array([1, 0, 1]), [3, 0.25, 3]
    loss = lambda v: jnp.sum(dt.vmap(f)(chosen, v))
    for gradient in (dt.grad(loss), dt.jit(dt.grad(loss))):
        np.testing.assert_allclose(gradient(x), expected)
    np.testing.assert_allclose(dt.vmap(dt.grad(f, argnums=1))(chosen, x), expected)
    np.testing.assert_allclose(dt.jvp(lambda v: dt.vmap(f)(chosen, v), (x,), (x,))[1], [0, 1, 0])
    shared = lambda v: jnp.sum(dt.vmap(f, (0, None))(np.ones(2, np.int32), v))
    assert float(dt.grad(shared)(0.0)) == 6


def test_one_branch_runs() -> None:
    """The branch that is not chosen is not run: a loop in it would not end."""
    endless = lambda x: lax.while_loop(lambda c: c >= 0, lambda c: c * 0, x)
    assert int(dt.jit(lambda p: lax.cond(p, lambda x: x, endless, 1))(True)) == 1


def test_operands_by_name_and_without_jit() -> None:
    assert int(lax.cond(True, lambda x: x, lambda x: -x, operand=3)) == 3
    assert int(lax.switch(1, [lambda x: x, lambda x: -x], operand=3)) == -3
    assert int(lax.cond(False, lambda x: 1, lambda x: 2, operand=None)) == 2
    with dt.disable_jit():
        assert lax.cond(np.array(True), lambda x: x, lambda x: (x, x), 3) == 3
        assert lax.switch(7, [lambda x: x, lambda x: -x], 3) == -3
        mapped = dt.vmap(lambda p: lax.cond(p, lambda: 1, lambda: 2))(np.array([True, False]))
        assert mapped.tolist() == [1, 2]


def test_printed() -> None:
    f = lambda p, x: lax.cond(p, lambda x: x + 1, lambda x: x * 2, x)
    assert str(dt.make_jaxpr(f)(True, 1.0)) == (
        """{ lambda ; a:bool[] b:f32[]. let
    c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
    d:f32[] = cond[
      branches=(
        { lambda ; e:f32[]. let f:f32[] = mul e 2.0:f32[] in (f,) }
        { lambda ; g:f32[]. let h:f32[] = add g 1.0:f32[] in (h,) }
      )
    ] c b
  in (d,) }"""
    )


same = lambda x: x
ERRORS: list[tuple[Any, Any, str]] = [
    (lambda: lax.cond(True, 1, same, 0), TypeError, "true_fun is 1 of type int"),
    (lambda: lax.cond(np.ones(2), same, same, 0), TypeError, "pred must be a scalar"),
    (lambda: lax.cond(1j, same, same, 0), TypeError, "pred must be true or false"),
    (lambda: lax.cond("no", same, same, 0), TypeError, "pred"),
    (lambda: lax.cond(None, same, same, 0), TypeError, "pred"),
    (lambda: lax.cond(True, same, same, "no"), TypeError, "operands"),
    (lambda: lax.cond(True, same, same, 1, operand=2), TypeError, "not both"),
    (
        lambda: lax.cond(True, same, lambda x: (x, x), 0),
        TypeError,
        "true_fun <lambda> .*has a leaf",
    ),
    (lambda: lax.cond(True, same, lambda x: None, 0), TypeError, "same pytree structure"),
    (lambda: lax.cond(True, same, lambda x: "no", 0), TypeError, "returned a value of type str"),
    (
        lambda: lax.cond(True, lambda x: {"a": x}, lambda x: {"a": jnp.ones(2)}, np.int8(0)),
        TypeError,
        r"result\['a'\] of true_fun <lambda> .* is i8\[\] \(which is x\)",
    ),
    (lambda: lax.switch(0, [], 0), ValueError, "holds no function"),
    (lambda: lax.switch(0, [same, 1], 0), TypeError, r"branches\[1\]"),
    (lambda: lax.switch(0.5, [same, same], 0), TypeError, "scalar integer"),
    (lambda: lax.switch(True, [same, same], 0), TypeError, "scalar integer"),
    (lambda: lax.switch(np.arange(2), [same, same], 0), TypeError, "scalar integer"),
    (
        lambda: lax.switch(0, [same, same, lambda x: x[None]], np.ones(2)),
        TypeError,
        r"branches\[2\] <lambda> .* is f32\[1,2\] \(made by .* at test_branches.py",
    ),
]


@pytest.mark.parametrize(("function", "kind", "message"), ERRORS)
def test_errors(function: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=f"(?s){message}"):
        function()


def test_branches_are_traced_in_the_order_of_the_call() -> None:
    traced: list[str] = []
    lax.cond(True, lambda: traced.append("true"), lambda: traced.append("false"))
    lax.switch(0, [lambda: traced.append("first"), lambda: traced.append("second")])
    assert traced == ["true", "false", "first", "second"]


@pytest.mark.parametrize("transform", [lambda f: f, dt.jit, dt.grad, dt.vmap])
def test_the_form_in_which_each_function_has_an_operand(transform):
    def older(x):
        return lax.cond(x.sum() > 1, (x, 2.0), lambda pair: pair[0] * pair[1], x, lambda x: -x)

    def newer(x):
        return lax.cond(x.sum() > 1, lambda x: x * 2.0, lambda x: -x, x)

    for start in (0.5, 3.0):
        x = jnp.full(2, start) if transform is dt.vmap else jnp.float32(start)
        np.testing.assert_array_equal(transform(older)(x), transform(newer)(x))
