"""Messages of debug_nans and debug_infs: pass, turn, operands, and the traps that are known."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn
from dovetail._core.runtime.calls import value_explanations
from dovetail.sharding import Mesh
from dovetail.sharding import PartitionSpec as P

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
    "index": (lambda x: jnp.take(x, 7), ONES, "gather", "an index is out of bounds"),
    "cholesky": (
        lambda x: jnp.linalg.cholesky(-jnp.diag(x))[0, 0],
        ONES,
        "cholesky",
        "not positive definite",
    ),
    "solve": (
        lambda x: jnp.linalg.solve(jnp.diag(x), jnp.ones(4))[0],
        ZEROS,
        "triangular_solve",
        "whose matrix is singular",
    ),
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
    "scan": lambda f, x: dt.grad(lambda xs: lax.scan(lambda c, x: (c + f(x), None), 0.0, xs)[0])(
        x[None]
    ),
    "jit of scan": lambda f, x: dt.jit(
        dt.grad(lambda xs: lax.scan(lambda c, x: (c + f(x), None), 0.0, xs)[0])
    )(x[None]),
    "checkpoint": lambda f, x: dt.jit(dt.grad(dt.checkpoint(f)))(x),
}


#: Every trap is looked for in two ways, a few of them in all.
FIRST, FIRST_BACK = ("eager", "jit"), ("grad", "jit of grad")
EVERYWHERE = ("log of a negative", "unit vector", "softmax", "where sqrt", "norm", "std")


def cases(traps, ways, first):
    return [(name, way) for name in traps for way in ways if way in first or name in EVERYWHERE]


def message(function, *args, option=dt.debug_nans):
    with option(True), pytest.raises(FloatingPointError) as caught:
        function(*args)
    return str(caught.value)


def trap(text):
    return text.partition("\n  trap: ")[2].partition("\n  write: ")[0]


@pytest.mark.parametrize(("name", "way"), cases(FORWARD, WAYS, FIRST))
def test_forward(name: str, way: str) -> None:
    function, argument, operation, cause = FORWARD[name]
    text = message(WAYS[way], function, jnp.array(argument))
    assert f"invalid value (nan) encountered in {operation} at test_traps.py:" in text
    assert "\n  pass: forward" in text
    assert "\n  operand 0: " in text
    assert cause in trap(text)
    assert "\n  write: " in text


@pytest.mark.parametrize(("name", "way"), cases(BACKWARD, WAYS_BACK, FIRST_BACK))
def test_backward(name: str, way: str) -> None:
    function, argument, operation, cause = BACKWARD[name]
    text = message(WAYS_BACK[way], function, jnp.array(argument))
    assert f"invalid value (nan) encountered in {operation} at test_traps.py:" in text
    assert "\n  pass: backward, of the operation at this line" in text
    assert cause in trap(text)
    assert "\n  write: " in text


@pytest.mark.parametrize("way", FIRST_BACK)
def test_derivative_of_a_masked_logsumexp(way: str) -> None:
    text = message(WAYS_BACK[way], lambda x: nn.logsumexp(x), jnp.array(MASKED))
    assert "all values are -inf" in trap(text)


def test_a_forward_value_that_where_hides_from_the_result_alone() -> None:
    def f(x):
        return jnp.where(x > 0, jnp.sqrt(x), 0.0)

    text = message(dt.jit(dt.grad(f)), jnp.array(-1.0))
    assert "in sqrt at test_traps.py:" in text
    assert "\n  pass: forward; its value is used in the backward pass" in text
    assert "sqrt of a negative number is nan, and a `where` hides" in trap(text)


#: Loops: the function, the argument, the turn in which the first nan is made.
TURNS = {
    "scan": (lambda x: lax.scan(lambda c, _: (jnp.log(c), None), x, None, 9)[0], 2.0, "3 of 9"),
    "results of a scan": (
        lambda x: lax.scan(lambda c, y: (c, jnp.log(y)), 0.0, x)[1],
        [2.0, 1.0, -1.0, 3.0],
        "3 of 4",
    ),
    "reversed": (
        lambda x: lax.scan(lambda c, y: (c + jnp.log(y), None), 0.0, x, reverse=True)[0],
        [2.0, -1.0, 1.0, 3.0],
        "3 of 4",
    ),
    "while": (
        lambda x: lax.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 1, jnp.log(s[1])), (0, x)),
        2.0,
        "3",
    ),
    "fori_loop": (lambda x: lax.fori_loop(0, 9, lambda i, c: jnp.log(c), x), 2.0, "3 of 9"),
    "by way of another carry": (
        lambda x: lax.scan(lambda c, _: ((c[1], jnp.log(c[1])), None), (x, x), None, 5)[0][0],
        2.0,
        "3 of 5",
    ),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", TURNS)
def test_turns(name: str, compiled: bool) -> None:
    function, argument, turn = TURNS[name]
    text = message(dt.jit(function) if compiled else function, jnp.array(argument))
    assert "(nan) encountered in log at test_traps.py:" in text
    loop = "while" if name == "while" else "scan"
    assert f"\n  in:   turn {turn} of the {loop} at test_traps.py:" in text


def test_turns_of_loops_in_loops() -> None:
    def inner(x):
        return lax.scan(lambda c, y: (c + jnp.log(y), None), 0.0, x)[0]

    def outer(xs):
        return lax.scan(lambda c, x: (c + inner(x), None), 0.0, xs)[0]

    xs = jnp.ones((3, 4)).at[1, 2].set(-1.0)
    text = message(dt.jit(outer), xs)
    first, second = [line for line in text.splitlines() if line.startswith("  in:   turn")]
    assert "turn 3 of 4" in first
    assert "turn 2 of 3" in second


def test_a_nan_that_a_loop_gets() -> None:
    def f(x, y):
        return lax.scan(lambda c, _: (c * 2, None), y * jnp.log(x), None, 3)[0]

    text = message(dt.jit(f), jnp.array(-1.0), jnp.array(1.0))
    assert "(nan) encountered in log at" in text
    assert "turn" not in text


def test_turns_of_backward_passes() -> None:
    def f(xs):
        return lax.scan(lambda c, x: (c + jnp.sqrt(x) * 0.0, None), 0.0, xs)[0]

    text = message(dt.jit(dt.grad(f)), jnp.array([1.0, 0.0, 4.0]))
    assert "\n  pass: backward" in text
    assert "\n  in:   turn 2 of 3 of the scan" in text


def test_operands_are_described() -> None:
    x = jnp.array([2.0, -1.0, 0.0, np.inf])
    text = message(dt.jit(jnp.log), x)
    assert "\n  operand 0: f32[4]: min -1, mean 0.3333, max 2; 1 of 4 inf; 1 of 4 zero" in text
    text = message(lambda x: x - x, jnp.array([np.inf, -np.inf]))
    assert "\n  operand 1: f32[2]: 1 of 2 inf; 1 of 2 -inf" in text
    text = message(lambda x: jnp.log(x), jnp.array([-1.0 + 0j, np.nan]))
    assert "it was there before: the argument x, c64[2]" in text


def test_a_nan_from_outside() -> None:
    text = message(dt.jit(lambda a: {"b": a["c"][::-1]}), {"c": jnp.array([np.nan, 1.0])})
    assert "it was there before: the argument a['c'], f32[2]: min 1" in text


#: Functions with an infinite value: the function, its argument, the operation, the cause.
INFINITE = {
    "quotient": (lambda x: 1 / x, 0.0, "div", "a division by 0"),
    "log": (lambda x: jnp.log(x), 0.0, "log", "log of 0 is -inf"),
    "exp": (lambda x: 1 + jnp.exp(x), 100.0, "exp", "exp overflows"),
    "power": (lambda x: x**-0.5, 0.0, "pow", "0 to a negative power"),
    "float16": (lambda x: x * x, np.float16(300), "mul", "float16 holds no number"),
    "cast": (lambda x: x.astype(np.float16), 1e6, "convert_element_type", "float16 holds"),
}


@pytest.mark.parametrize("way", FIRST)
@pytest.mark.parametrize("name", INFINITE)
def test_infinities(name: str, way: str) -> None:
    function, argument, operation, cause = INFINITE[name]
    text = message(WAYS[way], function, jnp.array(argument), option=dt.debug_infs)
    assert f"invalid value (inf) encountered in {operation} at test_traps.py:" in text
    assert cause in trap(text)


def test_forward_mode() -> None:
    text = message(dt.jit(dt.jacfwd(lambda x: jnp.sqrt(x) * 0.0)), jnp.zeros(2))
    assert "the derivative of a square root" in trap(text)


def test_programs_compiled_ahead_of_time() -> None:
    x = jnp.array([-1.0, 2.0])
    compiled = dt.jit(lambda x: jnp.log(x), donate_argnums=0).lower(x).compile()
    text = message(compiled, x)
    assert "(nan) encountered in log at test_traps.py:" in text
    assert "log of a number below 0" in trap(text)


def test_shard_map_is_looked_into() -> None:
    mesh = Mesh(np.array(dt.devices()[:4]), "i")
    f = dt.shard_map(lambda x: jnp.log(x), mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    text = message(dt.jit(f), -jnp.ones(8))
    assert "(nan) encountered in log at test_traps.py:" in text
    assert "operand 0 of shard_map: f32[8" in text


def test_donated_arguments_are_explained_and_gone() -> None:
    x = jnp.array([-1.0, 2.0])
    text = message(dt.jit(lambda x: jnp.log(x), donate_argnums=0), x)
    assert "in log at test_traps.py:" in text
    assert "f32[2]: min -1" in text
    y = jnp.array([1.0, 2.0])
    with dt.debug_nans(True):
        dt.jit(lambda x: jnp.log(x), donate_argnums=0)(y)
    assert y.is_deleted()


def test_what_is_known_of_arrays_goes_with_them() -> None:
    with dt.debug_nans(True):
        x = jnp.exp(jnp.ones(5))
        y = x * 2
    numbers = {id(x), id(y)}
    assert numbers <= value_explanations._known.keys()
    del x, y
    gc.collect()
    assert numbers.isdisjoint(value_explanations._known)
    z = jnp.exp(jnp.ones(5))
    assert id(z) not in value_explanations._known


def test_large_arrays_are_looked_at_for_a_message() -> None:
    x = jnp.ones(2**17).at[5].set(-1.0)
    text = message(lambda x: jnp.sqrt(x * 2), x)
    assert "operand 0: f32[131072]: min -2, mean 2, max 2" in text


def test_a_long_computation_is_forgotten() -> None:
    def depth(node):
        return 1 + max(map(depth, node.operands), default=0)

    with dt.debug_nans(True):
        x = jnp.ones(3)
        for _ in range(100):
            x = x * 1.5
        assert depth(value_explanations._known[id(x)][1]) < 15
