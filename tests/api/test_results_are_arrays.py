"""What transformed functions return: arrays, also where a function returns its argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental import jet

VALUES: dict[str, Any] = {
    "float": 2.0,
    "float32": np.float32(2),
    "float64": np.float64(2),
    "bfloat16": ml_dtypes.bfloat16(2),
    "rank 0": np.array(2, np.float16),
    "array": np.array([1.0, 2], np.float32),
    "array of float64": np.array([1.0, 2]),
    "complex": 2j,
}

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "asarray": jnp.asarray,
    "array": jnp.array,
    "positive": jnp.positive,
    "reshape": lambda x: jnp.reshape(x, jnp.shape(x)),
    "lax.reshape": lambda x: lax.reshape(x, jnp.shape(x)),
    "sum": lambda x: jnp.sum(x, ()),
    "squeeze": lambda x: jnp.squeeze(x, ()),
    "broadcast_to": lambda x: jnp.broadcast_to(x, jnp.shape(x)),
    "transpose": lambda x: jnp.transpose(x, tuple(range(jnp.ndim(x)))),
    "same dtype": lambda x: lax.convert_element_type(x, jnp.result_type(x)),
    "nn.identity": dt.nn.identity,
}


def with_jvp_rule(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    function = dt.custom_jvp(f)
    function.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    return function


def with_vjp_rule(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    function = dt.custom_vjp(f)
    function.defvjp(lambda x: (f(x), None), lambda _, ct: (f(ct),))
    return function


def with_vmap_rule(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    function = dt.custom_batching.custom_vmap(lambda x: f(x))
    function.def_vmap(lambda size, batched, x: (f(x), batched[0]))
    return function


def directly(f: Callable[[Any], Any], x: Any) -> Any:
    """The results that have the value of the function."""
    y, f_vjp = dt.vjp(f, x)
    z, f_jvp = dt.linearize(f, x)
    return y, f_vjp(x), z, f_jvp(x)


TRANSFORMATIONS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "jvp": lambda f, x: dt.jvp(f, (x,), (x,)),
    "jvp of nothing": lambda f, x: dt.jvp(lambda _: f(x), (1.0,), (1.0,))[0],
    "jvp with aux": lambda f, x: dt.jvp(lambda x: (x, f(x)), (x,), (x,), has_aux=True),
    "vjp and linearize": directly,
    "vjp of nothing": lambda f, x: dt.vjp(lambda _: f(x), 1.0)[0],
    "linearize nothing": lambda f, x: dt.linearize(lambda _: f(x), 1.0)[0],
    "linear_transpose": lambda f, x: dt.linear_transpose(f, x)(x),
    "jvp of jvp": lambda f, x: dt.jvp(lambda x: dt.jvp(f, (x,), (x,)), (x,), (x,)),
    "jvp of grad": lambda f, x: dt.jvp(lambda x: dt.jvp(f, (x,), (x,))[1], (x,), (x,)),
    "vmap": lambda f, x: dt.vmap(f)(np.array([x, x])),
    "vmap of nothing": lambda f, x: dt.vmap(lambda _: f(x), out_axes=None)(np.ones(2)),
    "jit": lambda f, x: dt.jit(f)(x),
    "jvp in jit": lambda f, x: dt.jit(lambda: dt.jvp(f, (x,), (x,)))(),
    "checkpoint": lambda f, x: dt.checkpoint(f)(x),
    "custom_jvp": lambda f, x: with_jvp_rule(f)(x),
    "custom_vjp": lambda f, x: with_vjp_rule(f)(x),
    "custom_vmap": lambda f, x: with_vmap_rule(f)(x),
    "jet": lambda f, x: jet.jet(f, (x,), ((x,),)),
    "scan": lambda f, x: lax.scan(lambda c, _: (f(c), f(c)), x, None, 1),
    "cond": lambda f, x: lax.cond(True, f, f, x),
    "while_loop": lambda f, x: lax.while_loop(lambda _: False, f, x),
    "map": lambda f, x: lax.map(f, np.array([x])),
    "stop_gradient": lambda f, x: f(lax.stop_gradient(x)),
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_results_are_arrays_of_the_dtype(transformation: str, value: str) -> None:
    x = VALUES[value]
    for name, function in FUNCTIONS.items():
        wanted = jnp.asarray(x).dtype
        results = dt.tree.leaves(TRANSFORMATIONS[transformation](function, x))
        assert results
        for result in results:
            assert isinstance(result, dt.Array), (name, type(result))
            assert result.dtype == wanted, (name, result.dtype)
            assert set(np.asarray(result).ravel().tolist()) <= {0, 1, 2, 2j}, name


@pytest.mark.parametrize("value", ["float", "float32", "float64"])
def test_gradients_and_jacobians_are_arrays(value: str) -> None:
    x = VALUES[value]
    for name, function in FUNCTIONS.items():
        results = (
            dt.value_and_grad(function)(x),
            dt.grad(function)(x),
            dt.jacfwd(function)(x),
            dt.jacrev(function)(x),
            dt.hessian(function)(x),
            dt.value_and_grad(lambda _, function=function: function(x))(1.0),
            dt.value_and_grad(lambda y, function=function: (y, function(y)), has_aux=True)(x),
        )
        for result in dt.tree.leaves(results):
            assert isinstance(result, dt.Array), (name, type(result))


def test_auxiliary_data_that_is_none_of_the_transformation_is_left_alone() -> None:
    given = np.ones(2)
    _, aux = dt.value_and_grad(lambda x: (x, {"given": given, "text": "a"}), has_aux=True)(1.0)[0]
    assert aux["given"] is given
    assert aux["text"] == "a"


def test_tangents_that_hold_nothing_have_no_array() -> None:
    _, tangent = dt.jvp(lambda n: n, (3,), (np.zeros((), dt.float0),))
    assert tangent.dtype == dt.float0
