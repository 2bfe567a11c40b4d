"""`evaluate`, the interpreter for backends: in threads, and without NumPy's warnings."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.extend import evaluate

HERE, THREAD = "here", "thread"


def in_thread(function):
    """What a function returns in a thread of its own, whose options are those of the process."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    (result,) = found
    return result


def product(x):
    """A matrix with a vector; `jnp.matmul` would name the dtype of the result."""
    return lax.dot_general(x[:, None] * x, x, (((1,), (0,)), ((), ())))


#: Programs whose references make avals of their own.
WIDE = {
    "product": product,
    "branch": lambda x: lax.cond(x[0] > 0, product, lambda x: x, x),
    "loop": lambda x: lax.fori_loop(0, 2, lambda i, c: product(c), x),
    "conj": lambda x: lax.conj(x),
    "eigenvalues": lambda x: jnp.linalg.eigvalsh(jnp.outer(x, x)),
    "singular values": lambda x: jnp.linalg.svd(jnp.outer(x, x), compute_uv=False),
}


@pytest.mark.parametrize("where", [HERE, THREAD])
@pytest.mark.parametrize("name", WIDE)
def test_dtypes_are_those_of_the_program(name, where):
    x = np.array([1, 2, 1 + 1e-12])
    with dt.enable_x64(True):
        closed = dt.make_jaxpr(WIDE[name])(x)
        expected = dt.tree.leaves(WIDE[name](x))

    def compute():
        return evaluate(closed, [x], platform="cpu")

    got = in_thread(compute) if where == THREAD else compute()
    assert [r.dtype for r in got] == [aval.dtype for aval in closed.out_avals]
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)


INDEFINITE = {
    "float16": lambda x: (x * 300).astype(np.float16) * np.float16(300),
    "conversion": lambda x: (x / (x - x)).astype(np.int32),
    "branch": lambda x: lax.cond(x[0] > 0, lambda: jnp.inf * x, lambda: x).astype(np.int8),
}


@pytest.mark.parametrize("name", INDEFINITE)
def test_infinities_are_no_warnings(name):
    x = np.ones(3, np.float32)
    closed = dt.make_jaxpr(INDEFINITE[name])(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(closed, [x], platform="cpu")


def test_rules_are_computed_without_warnings():
    def compute(primitive, operands, params):
        return np.divide(operands[0], 0) if primitive.name == "neg" else NotImplemented

    closed = dt.make_jaxpr(lambda x: -x)(np.float32(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate(closed, [np.float32(1)], platform="cpu", compute=compute) == [np.inf]


def test_python_functions_find_the_options_of_their_user():
    """What `evaluate` sets for references is not set for callbacks, and not left behind."""
    seen = []

    def callback(x):
        seen.append((dt.config.enable_x64, np.geterr()))
        return x

    closed = dt.make_jaxpr(lambda x: dt.pure_callback(callback, x, x))(np.float32(1))
    with np.errstate(divide="raise"):
        expected = (False, np.geterr())
        evaluate(closed, [np.float32(1)], platform="cpu")
        assert (dt.config.enable_x64, np.geterr()) == expected
    with dt.enable_x64(True):
        evaluate(closed, [np.float32(1)], platform="cpu")
        assert dt.config.enable_x64
    assert seen == [expected, (True, np.geterr())]
