"""Messages of debug_nans and debug_infs: pass, turn, operands, and the traps that are known."""

from __future__ import annotations

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn

ZEROS, ONES = np.zeros(4, np.float32), np.ones(4, np.float32)
MASKED = np.full(3, -np.inf, np.float32)


def own_softmax(x):
    powers = jnp.exp(x - x.max())
    return (powers / powers.sum())[0]


#: Functions whose value is nan: the function, its argument, the operation, the cause.
FORWARD = {
    "log of a negative": (lambda x: jnp.log(x), -1.0, "log", "log of a number below 0 is nan"),
    "log1p": (lambda x: jnp.log1p(x), -2.0, "log1p", "log1p of a number below -1 is nan"),
    "x log x": (lambda x: x * jnp.log(x), 0.0, "mul", "log of 0 is -inf"),
    "sqrt": (lambda x: jnp.sqrt(x), -1.0, "sqrt", "sqrt of a negative number"),
    "power": (lambda x: x**0.5, -1.0, "pow", "a negative number to a power"),
    "arccos": (lambda x: jnp.arccos(x), 1.5, "acos", "arccos of a number outside [-1, 1]"),
    "arcsin": (lambda x: jnp.arcsin(x), -1.5, "asin", "arcsin of a number outside [-1, 1]"),
    "arctanh": (lambda x: jnp.arctanh(x), 2.0, "atanh", "arctanh of a number outside"),
    "arccosh": (lambda x: jnp.arccosh(x), 0.5, "acosh", "arccosh of a number below 1"),
    "quotient": (lambda x: x / (x * 2), 0.0, "div", "0 / 0 is nan"),
    "unit vector": (lambda x: (x / jnp.linalg.norm(x))[0], ZEROS, "div", "a vector of norm 0"),
    "normalised": (lambda x: ((x - x.mean()) / x.std())[0], ONES, "div", "deviation of 0"),
    "softmax": (lambda x: nn.softmax(x)[0], MASKED, "sub", "values are -inf"),
    "own softmax": (own_softmax, MASKED, "sub", "values are -inf"),
    "exp": (lambda x: jnp.exp(x) * 0.0, 100.0, "mul", "exp overflows"),
    "sigmoid": (lambda x: jnp.exp(x) / (1 + jnp.exp(x)), 100.0, "div", "exp overflows"),
    "mean": (lambda x: jnp.mean(x), ZEROS[:0], "div", "a mean of no elements"),
}
#: Functions whose derivative is nan while their value is not.
BACKWARD = {
    "where log": (lambda x: jnp.where(x > 0, jnp.log(x), 0.0), 0.0, "div", "a `where` hides"),
    "where sqrt": (lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0), 0.0, "mul", "a `where` hides"),
    "where quotient": (lambda x: jnp.where(x != 0, 1 / x, 0.0), 0.0, "mul", "a `where` hides"),
    "where power": (lambda x: jnp.where(x > 0, x**0.5, 0.0), 0.0, "mul", "a `where` hides"),
    "where norm": (
        lambda x: jnp.where(x[0] > 0, jnp.linalg.norm(x), 0.0),
        ZEROS,
        "mul",
        "a `where` hides",
    ),
    "sqrt": (lambda x: jnp.sqrt(x) * 0.0, 0.0, "mul", "derivative of a square root"),
    "power": (lambda x: x**0.5 * 0.0, 0.0, "mul", "a derivative of x ** y is infinite"),
    "norm": (lambda x: jnp.linalg.norm(x), ZEROS, "mul", "the derivative of a norm"),
    "length": (lambda x: jnp.sqrt(jnp.sum(x**2)), ZEROS, "mul", "the derivative of a norm"),
    "std": (lambda x: jnp.std(x), ONES, "mul", "the derivative of a standard deviation"),
    "arccos": (lambda x: jnp.arccos(x) * 0.0, 1.0, "mul", "derivatives of arcsin and arccos"),
    "arcsin": (lambda x: jnp.arcsin(x) * 0.0, -1.0, "mul", "derivatives of arcsin and arccos"),
    "logsumexp": (lambda x: nn.logsumexp(x), MASKED, "mul", "values are -inf"),
}
WAYS = {
    "eager": lambda f, x: f(x),
    "jit": lambda f, x: dt.jit(f)(x),
    "donated": lambda f, x: dt.jit(lambda x: (f(x), x), donate_argnums=0)(x),
    "vmap": lambda f, x: dt.vmap(f)(x[None]),
    "scan": lambda f, x: lax.scan(lambda c, x: (c, f(x)), 0.0, x[None]),
    "cond": lambda f, x: dt.jit(lambda x: lax.cond(True, f, lambda x: x.sum() * 0, x))(x),
}
WAYS_BACK = {
    "grad": lambda f, x: dt.grad(f)(x),
    "jit of grad": lambda f, x: dt.jit(dt.grad(f))(x),
    "grad of jit": lambda f, x: dt.grad(dt.jit(f))(x),
    "donated": lambda f, x: dt.jit(dt.grad(f), donate_argnums=0)(x),
    "vmap": lambda f, x: dt.vmap(dt.grad(f))(x[None]),
    "scan": lambda f, x: dt.grad(
        lambda xs: lax.scan(lambda c, x: (c + f(x), None), 0.0, xs)[0]
    )(x[None]),
    "jit of scan": lambda f, x: dt.jit(
        dt.grad(lambda xs: lax.scan(lambda c, x: (c + f(x), None), 0.0, xs)[0])
    )(x[None]),
    "checkpoint": lambda f, x: dt.jit(dt.grad(dt.checkpoint(f)))(x),
}


def message(function, *args, option=dt.debug_nans):
    dt.clear_caches()  # nothing is known of the arguments
    with option(True), pytest.raises(FloatingPointError) as caught:
        function(*args)
    return str(caught.value)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FORWARD)
def test_forward(name: str, way: str) -> None:
    function, argument, operation, cause = FORWARD[name]
    x = jnp.asarray(argument)
    text = message(WAYS[way], function, x)
    assert f"invalid value (nan) encountered in {operation} at test_traps.py:" in text
    assert "\n  pass: forward" in text
    assert "\n  operand 0: " in text
    assert cause in text.partition("\n  trap: ")[2].partition("\n  write: ")[0]


@pytest.mark.parametrize("way", WAYS_BACK)
@pytest.mark.parametrize("name", BACKWARD)
def test_backward(name: str, way: str) -> None:
    function, argument, operation, cause = BACKWARD[name]
    text = message(WAYS_BACK[way], function, jnp.asarray(argument))
    assert f"invalid value (nan) encountered in {operation} at test_traps.py:" in text
    assert "\n  pass: backward, of the operation at this line" in text
    assert cause in text.partition("\n  trap: ")[2].partition("\n  write: ")[0]
