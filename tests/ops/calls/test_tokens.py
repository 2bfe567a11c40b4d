"""create_token and after_all: values without data, in programs and outside of them."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail._core.runtime.arrays.tokens import Token
from dovetail.errors import NonArrayArgumentError

X = np.arange(1, 4, dtype=np.float32)


def after(x: Any) -> Any:
    """`x`, once a token is there."""
    return lax.optimization_barrier((lax.after_all(lax.create_token(), lax.create_token(x)), x))[1]


def test_jaxprs() -> None:
    assert str(dt.make_jaxpr(lax.create_token)()) == (
        "{ lambda ; . let a:Tok = create_token  in (a,) }"
    )
    text = str(dt.make_jaxpr(lambda t, u: lax.after_all(t, u))(*2 * [lax.create_token()]))
    assert text == "{ lambda ; a:Tok b:Tok. let c:Tok = after_all a b in (c,) }"
    assert str(dt.make_jaxpr(lax.after_all)()) == "{ lambda ; . let a:Tok = after_all  in (a,) }"
    with dt.enable_checks(True):
        dt.make_jaxpr(lambda x: (after(x), lax.create_token()))(X)


def test_programs() -> None:
    text = dt.jit(after).lower(X).as_text()
    assert len(re.findall("stablehlo.create_token", text)) == 2
    assert len(re.findall("stablehlo.after_all %0, %1 : !stablehlo.token", text)) == 1
    assert dt.jit(after)(X).tolist() == X.tolist()


def test_tokens_outside_of_programs() -> None:
    first = lax.create_token()
    for token in (first, lax.create_token(1.0), lax.after_all(), lax.after_all(first, first)):
        assert type(token) is Token
        assert repr(token) == "Token()"
        assert token.block_until_ready() is token
        assert dt.block_until_ready([token]) == [token]
        aval = dt.typeof(token)
        assert repr(aval) == "AbstractToken()"
        assert pickle.loads(pickle.dumps(aval)) is copy.deepcopy(aval) is aval


#: Functions of a token and an array, which return both.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "as they are": lambda t, x: (t, x),
    "after_all": lambda t, x: (lax.after_all(t, lax.create_token()), x),
    "barrier": lambda t, x: lax.optimization_barrier((t, x)),
    "a call": dt.jit(lambda t, x: (lax.after_all(t, t), x)),
    "a call of a call": lambda t, x: dt.jit(dt.jit(lax.optimization_barrier))((t, x)),
    "inlined": dt.jit(lambda t, x: (lax.after_all(t), x), inline=True),
    "vmap": lambda t, x: dt.vmap(
        lambda t, x: lax.optimization_barrier((t, x)), (None, 0), (None, 0)
    )(t, x),
    "grad": lambda t, x: (
        t,
        dt.grad(lambda x: lax.reduce_sum(lax.optimization_barrier((t, x * x / 2))[1], (0,)))(x),
    ),
    "auxiliary": lambda t, x: dt.grad(
        lambda x: (lax.reduce_sum(x * x / 2, (0,)), lax.after_all(t)), has_aux=True
    )(x)[::-1],
    "a new token": lambda t, x: (lax.create_token(), x),
}


@pytest.mark.parametrize("label", FUNCTIONS)
def test_functions_of_tokens(label: str) -> None:
    function, token = FUNCTIONS[label], lax.create_token()
    compiled = dt.jit(function)
    ahead = compiled.lower(token, X).compile()
    captured = dt.jit(lambda x: function(token, x))
    calls = [function, compiled, compiled, ahead, lambda t, x: captured(x)]
    calls.append(dt.jit(function, donate_argnums=1))
    for call in calls:
        out, x = call(token, dt.device_put(X))
        assert type(out) is Token
        assert x.tolist() == X.tolist()
        assert type(call(out, dt.device_put(X))[0].block_until_ready()) is Token
    out, x = dt.eval_shape(function, token, X)
    assert (out, x.shape) == (dt.typeof(token), X.shape)
    assert compiled.lower(token, X).out_info[0] is out


def test_programs_wait_for_the_programs_of_their_tokens() -> None:
    order: list[int] = []

    def program(number: int) -> Any:
        @dt.jit
        def function(token: Any, x: Any) -> Any:
            result = dt.pure_callback(lambda x: order.append(number) or x, X, x)
            return lax.after_all(token), result

        return function

    token = lax.create_token()
    results = []
    for number in range(5):
        token, result = program(number)(token, X)
        results.append(result)
    token.block_until_ready()
    assert order == list(range(5))
    dt.block_until_ready(results)


def test_tokens_and_failures() -> None:
    def fails(x: Any) -> Any:
        raise KeyError("no")

    with pytest.raises(KeyError):
        dt.jit(lambda x: (lax.create_token(), dt.pure_callback(fails, X, x)))(X)[
            0
        ].block_until_ready()


def test_derivatives_and_batches_beside_tokens() -> None:
    def function(x: Any) -> Any:
        return lax.sin(after(x))

    for derive in (dt.grad(function), dt.jit(dt.grad(function)), dt.grad(dt.checkpoint(function))):
        assert np.allclose(dt.vmap(derive)(X), np.cos(X))
    primal, tangent = dt.jvp(function, (X,), (X,))
    assert np.allclose(primal, np.sin(X))
    assert np.allclose(tangent, X * np.cos(X))


def token_of(x: Any) -> Any:
    return lax.create_token(x), x


REFUSED: dict[str, Callable[[Any], Any]] = {
    "sin": lambda t: lax.sin(t),
    "sin, compiled": lambda t: dt.jit(lax.sin)(t),
    "add, compiled": lambda t: dt.jit(lambda t: t + 1)(t),
    "a batch of tokens": lambda t: dt.vmap(lambda t, x: x)(t, X),
    "a token for each element": lambda t: dt.vmap(token_of)(X),
    "the tangent of a token": lambda t: dt.jvp(token_of, (X,), (X,)),
    "the derivative by a token": lambda t: dt.grad(lambda t: 1.0)(t),
    "a token in a loop": lambda t: lax.fori_loop(0, 3, lambda i, t: lax.after_all(t), t),
    "a token of each turn": lambda t: lax.scan(lambda c, _: (c, lax.create_token()), 0, X),
    "a token of a branch": lambda t: lax.cond(True, lax.create_token, lax.create_token),
    "shape": lambda t: dt.jit(lambda t: t.shape)(t),
    "device_put": dt.device_put,
}


@pytest.mark.parametrize("label", REFUSED)
def test_tokens_are_no_arrays(label: str) -> None:
    token = lax.create_token()
    with pytest.raises(NonArrayArgumentError, match=r"a token is no array|device_put takes arrays"):
        REFUSED[label](token)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: lax.after_all(1.0), "argument 0 is 1.0"),
        (lambda: lax.after_all(lax.create_token(), None), "argument 1 is None"),
        (lambda: lax.after_all(dt.device_put(X)), r"argument 0 is an array, f32\[3\]"),
        (lambda: dt.jit(lax.after_all)(X), r"argument 0 is an array, f32\[3\]"),
        (
            lambda: lax.after_all_p.bind(lax.create_token(), X),
            r"operands of after_all are tokens.* operand 1 is f32\[3\]",
        ),
    ],
)
def test_operands_are_tokens(function: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        function()


def test_another_type_of_argument_is_another_signature() -> None:
    function = dt.jit(lambda x: x)
    token = lax.create_token()
    compiled = function.lower(token).compile()
    for _ in range(2):
        assert type(function(token)) is Token
        assert float(function(2.0)) == 2
    with pytest.raises(TypeError, match=r"takes Tok for its argument x, got f32\[3\]"):
        compiled(X)
