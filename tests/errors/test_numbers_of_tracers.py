"""What makes a number of Python or NumPy of a traced value is an error; what cannot vary is not."""

from __future__ import annotations

import array
import cmath
import copy
import io
import itertools
import math
import operator
import pickle
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
)
from dovetail.experimental.jet import jet

CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "int": int,
    "complex": complex,
    "math.sin": math.sin,
    "math.floor": math.floor,
    "math.pow": lambda x: math.pow(x, 2),
    "math.isclose": lambda x: math.isclose(x, 2),
    "cmath.exp": cmath.exp,
    "array.array": lambda x: array.array("f", [x]),
    "tolist": lambda x: x.tolist(),
    "item": lambda x: x.item(),
    "tobytes": lambda x: x.tobytes(),
    "format": lambda x: f"{x:.2f}",
    "percent": lambda x: f"{'%f'}" % x,
    "format of a width": lambda x: f"{x:>10}",
    "str.format": lambda x: "{:e}".format(x),  # noqa: UP032  (the method is the test)
    "math.fsum": lambda x: math.fsum([x, x]),
    "math.hypot": lambda x: math.hypot(x, x),
    "math.sqrt": math.sqrt,
    "math.frexp": math.frexp,
    "math.copysign": lambda x: math.copysign(1, x),
    "random.uniform": lambda x: random.Random(0).gauss(0.0, float(x)),
    "pickle": pickle.dumps,
    "dumps": lambda x: pickle.Pickler(io.BytesIO()).dump({"x": x}),
    "arange": jnp.arange,
    "mgrid": lambda x: jnp.mgrid[0:x],
}
CONVERSIONS_TO_NUMPY: dict[str, Callable[[Any], Any]] = {
    "np.asarray": np.asarray,
    "np.float32": np.float32,
    "np.sin": np.sin,
    "np.isnan": np.isnan,
    "np.array": lambda x: np.array([x, x]),
    "np.full": lambda x: np.full((2,), x),
    "np.where": lambda x: np.where(x, 1, 2),
    "np.add": lambda x: np.add(x, 1.0),
    "np.add.reduce": lambda x: np.add.reduce([x, x]),
    "np.multiply.outer": lambda x: np.multiply.outer(x, np.ones(2)),
    "np.dot": lambda x: np.dot(x, x),
    "np.stack": lambda x: np.stack([x, x]),
    "np.copy": np.copy,
    "np.zeros_like": np.zeros_like,
    "np.broadcast_to": lambda x: np.broadcast_to(x, (2,)),
    "np.linspace": lambda x: np.linspace(0.0, x, 3),
    "np.linalg.norm": np.linalg.norm,
    "np.allclose": lambda x: np.allclose(x, 2.0),
    "np.array_equal": lambda x: np.array_equal(x, x),
    "np.array_equiv": lambda x: np.array_equiv(1.0, x),
    "np.save": lambda x: np.save(io.BytesIO(), x),
    "with a dtype": lambda x: np.asarray(x, np.float64),
    "__array__": lambda x: x.__array__(),
}
DIFFERENTIATIONS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "grad": lambda f: dt.grad(f)(2.0),
    "value_and_grad": lambda f: dt.value_and_grad(f)(2.0),
    "jvp": lambda f: dt.jvp(f, (2.0,), (1.0,)),
    "vjp": lambda f: dt.vjp(f, 2.0),
    "linearize": lambda f: dt.linearize(f, 2.0),
    "jacfwd": lambda f: dt.jacfwd(f)(2.0),
    "jacrev": lambda f: dt.jacrev(f)(2.0),
    "hessian": lambda f: dt.hessian(f)(2.0),
    "grad of grad": lambda f: dt.grad(dt.grad(f))(2.0),
    "jet": lambda f: jet(f, (jnp.float32(2.0),), ((jnp.float32(1.0),),)),
}
TRACINGS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "jit": lambda f: dt.jit(f)(2.0),
    "vmap": lambda f: dt.vmap(f)(jnp.ones(2)),
    "jit of grad": lambda f: dt.jit(dt.grad(f))(2.0),
    "grad of jit": lambda f: dt.grad(dt.jit(f))(2.0),
    "vmap of grad": lambda f: dt.vmap(dt.grad(f))(jnp.ones(2)),
    "grad of checkpoint": lambda f: dt.grad(dt.checkpoint(f))(2.0),
    "scan": lambda f: lax.scan(lambda c, _: (f(c), None), 2.0, None, length=2),
}


def beside(conversion: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that converts its argument and returns it times one."""

    def function(x: Any) -> Any:
        conversion(x)
        return x * 1.0

    return function


@pytest.mark.parametrize("around", [*DIFFERENTIATIONS, *TRACINGS])
@pytest.mark.parametrize("name", [*CONVERSIONS, *CONVERSIONS_TO_NUMPY])
def test_no_traced_value_becomes_a_number(name: str, around: str) -> None:
    conversion = (CONVERSIONS | CONVERSIONS_TO_NUMPY)[name]
    kind = ConcretizationTypeError if name in CONVERSIONS else TracerArrayConversionError
    with pytest.raises(kind) as caught:
        (DIFFERENTIATIONS | TRACINGS)[around](beside(conversion))
    text = str(caught.value)
    assert re.search(r"where: .*test_numbers_of_tracers\.py:\d+", text), text
    assert ("lax.stop_gradient(x)" in text) == (around in DIFFERENTIATIONS), text


NOT_VARYING: dict[str, Callable[[Any], Any]] = {
    "if": lambda x: 1 if x else 2,
    "comparison": lambda x: 1 if x > 0 else 2,
    "and": lambda x: x and 1,
    "not": lambda x: not x,
    "max": lambda x: max(x, 1.0),
    "float of a comparison": lambda x: float(x > 0),
    "int of astype(int)": lambda x: int(jnp.asarray(x).astype(int)),
    "range of astype(int)": lambda x: range(jnp.asarray(x).astype(int)),
    "float of floor": lambda x: float(jnp.floor(x)),
    "item of sign": lambda x: jnp.sign(x).item(),
    "int of argmax": lambda x: int(jnp.argmax(x)),
    "tolist of stop_gradient": lambda x: np.asarray(lax.stop_gradient(x)).tolist(),
    "float of stop_gradient": lambda x: float(lax.stop_gradient(x)),
    "np.sin of stop_gradient": lambda x: np.sin(lax.stop_gradient(x)),
    "index by stop_gradient": lambda x: operator.index(
        jnp.asarray(lax.stop_gradient(x)).astype(int)
    ),
    "str": str,
    "repr": repr,
    "format": lambda x: f"{x}",
    "shape": np.shape,
    "to_device": lambda x: x.to_device(dt.devices()[0]),
}


@pytest.mark.parametrize("around", DIFFERENTIATIONS)
@pytest.mark.parametrize("name", NOT_VARYING)
def test_what_does_not_vary_is_a_number(name: str, around: str) -> None:
    DIFFERENTIATIONS[around](beside(NOT_VARYING[name]))


@pytest.mark.parametrize("name", [*CONVERSIONS, *CONVERSIONS_TO_NUMPY])
def test_an_argument_that_is_not_differentiated_is_a_number(name: str) -> None:
    conversion = (CONVERSIONS | CONVERSIONS_TO_NUMPY)[name]

    def function(x: Any, y: Any) -> Any:
        conversion(y)
        return x * 1.0

    assert dt.grad(function)(1.0, jnp.float32(2.0)) == 1.0


@pytest.mark.parametrize("around", ["grad", "jit", "vmap"])
@pytest.mark.parametrize(
    "conversion", [operator.index, range, [1, 2, 3].__getitem__], ids=["index", "range", "list"]
)
def test_a_float_is_no_index(conversion: Callable[[Any], Any], around: str) -> None:
    with pytest.raises(TypeError, match="only an integer array without dimensions"):
        (DIFFERENTIATIONS | TRACINGS)[around](beside(conversion))


@pytest.mark.parametrize("around", ["grad", "jit", "vmap"])
@pytest.mark.parametrize("name", ["float", "int", "complex", "math.sin", "format"])
def test_several_numbers_are_not_one(name: str, around: str) -> None:
    def function(x: Any) -> Any:
        CONVERSIONS[name](jnp.stack([x, x]))
        return x * 1.0

    with pytest.raises(TypeError, match=r"for a single number, and the array has shape \(2,\)"):
        (DIFFERENTIATIONS | TRACINGS)[around](function)


@pytest.mark.parametrize("around", ["grad", "jvp", "jit", "vmap"])
@pytest.mark.parametrize(
    "use", [hash, lambda x: {x: 1}, lambda x: {x}], ids=["hash", "key", "element"]
)
def test_a_traced_value_has_no_hash(use: Callable[[Any], Any], around: str) -> None:
    with pytest.raises(TypeError, match=r"unhashable type: a tracer .*known outside"):
        (DIFFERENTIATIONS | TRACINGS)[around](beside(use))


#: What gives a traced value gives one with the same derivative.
STAYING_TRACED: dict[str, Callable[[Any], Any]] = {
    "device_get": dt.device_get,
    "device_get of a tree": lambda x: dt.device_get({"a": [x, 1.0]})["a"][0],
    "device_put": dt.device_put,
    "block_until_ready": dt.block_until_ready,
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "deepcopy of a tree": lambda x: copy.deepcopy({"a": [x]})["a"][0],
    "x.copy": lambda x: x.copy(),
    "iter": lambda x: next(iter(x[None])),
    "unpacking": lambda x: [*x[None]][-1],
    "reversed": lambda x: next(reversed(x[None])),
    "sum": lambda x: sum([x, x]) / 2.0,
    "pow": lambda x: pow(x, 1),
    "abs": abs,
    "np.sum": np.sum,  # asks the argument for its method
    "np.mean": np.mean,
    "divmod": lambda x: divmod(x, 100.0)[1],
    "numpy number + x": lambda x: np.float32(0.0) + x,
    "numpy array + x": lambda x: (np.zeros(2, np.float32) + x)[0],
    "max": lambda x: max(x, 1.0),
    "sorted": lambda x: sorted([x, 100.0])[0],
    "accumulate": lambda x: list(itertools.accumulate([x, x * 0.0]))[1],
    "math.prod": lambda x: math.prod([x, 1.0]),
}


@pytest.mark.parametrize("around", ["grad", "jacfwd", "jit of grad", "vmap of grad"])
@pytest.mark.parametrize("name", STAYING_TRACED)
def test_what_stays_traced_keeps_its_derivative(name: str, around: str) -> None:
    transformation = (DIFFERENTIATIONS | TRACINGS)[around]

    def function(x: Any) -> Any:
        return 3.0 * STAYING_TRACED[name](jnp.asarray(x))

    if name in ("max", "sorted") and "of" in around:
        with pytest.raises(TracerBoolConversionError):
            transformation(function)
        return
    np.testing.assert_array_equal(np.unique(transformation(function)), [3.0])


@pytest.mark.parametrize("around", ["grad", "jit", "vmap"])
@pytest.mark.parametrize(
    ("use", "message"),
    [
        (len, "rank 0"),
        (iter, "without dimensions"),
        (memoryview, "bytes-like"),
        (bytes, "bytes"),
        (lambda x: x.__setitem__(0, 1.0), r"x\.at\[index\]"),
        (lambda x: x.__dlpack__(), "arrays alone"),
        (lambda x: x.devices(), "arrays alone"),
    ],
    ids=["len", "iter", "memoryview", "bytes", "setitem", "dlpack", "devices"],
)
def test_a_traced_number_is_no_sequence_and_no_memory(
    use: Callable[[Any], Any], message: str, around: str
) -> None:
    with pytest.raises((TypeError, ConcretizationTypeError), match=message):
        (DIFFERENTIATIONS | TRACINGS)[around](beside(lambda x: use(jnp.asarray(x))))
