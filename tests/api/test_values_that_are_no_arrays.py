"""Values that are no arrays, given to everything that takes arrays."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import NonArrayArgumentError

# By the text that the message has at least.
VALUES: dict[str, Any] = {
    "object": np.array([None]),
    "<U1": np.array(["a"]),
    "|S1": np.array([b"a"]),
    "datetime64": np.array(["2020-01-01"], "M8[D]"),
    "timedelta64": np.array([1], "m8[D]"),
    "take a field": np.zeros(2, [("a", "f4")]),
    "V4": np.zeros(2, "V4"),
    "float64": np.ones(2, np.longdouble),
    "complex128": np.ones(2, np.clongdouble),
    "float128|longdouble|float96": np.longdouble(1),
    "filled": np.ma.masked_array([1.0, 2.0], [True, False]),
    "str": "text",
    "bytes": b"text",
    "set": {1},
    "range": range(3),
    "type": np.float32,
    "Decimal": Decimal(1),
    "ellipsis": ...,
}

#: Every dtype of ml_dtypes, of which XLA computes with most.
ML_DTYPES = sorted(
    name
    for name, value in vars(ml_dtypes).items()
    if isinstance(value, type) and issubclass(value, np.generic)
)

USES: dict[str, Callable[[Any], Any]] = {
    "jit": lambda v: dt.jit(lambda x: x)(v),
    "captured": lambda v: dt.jit(lambda: v)(),
    "grad": lambda v: dt.grad(lambda x: x.sum())(v),
    "jvp": lambda v: dt.jvp(lambda x: x, (v,), (v,)),
    "tangent": lambda v: dt.jvp(lambda x: x, (1.0,), (v,)),
    "vjp": lambda v: dt.vjp(lambda x: x, v),
    "cotangent": lambda v: dt.vjp(lambda x: x, 1.0)[1](v),
    "linearize": lambda v: dt.linearize(lambda x: x, v),
    "linear_transpose": lambda v: dt.linear_transpose(lambda x: x, v),
    "jacfwd": lambda v: dt.jacfwd(lambda x: x)(v),
    "jacrev": lambda v: dt.jacrev(lambda x: x)(v),
    "vmap": lambda v: dt.vmap(lambda x: x)(v),
    "make_jaxpr": lambda v: dt.make_jaxpr(lambda x: x)(v),
    "eval_shape": lambda v: dt.eval_shape(lambda x: x, v),
    "lower": lambda v: dt.jit(lambda x: x).lower(v),
    "compiled": lambda v: dt.jit(lambda x: x).lower(1.0).compile()(v),
    "typeof": lambda v: dt.typeof(v),
    "device_put": lambda v: dt.device_put(v),
    "numpy": lambda v: jnp.sin(v),
    "lax": lambda v: lax.sin(v),
    "traced": lambda v: dt.jit(lambda x: jnp.add(x, v))(1.0),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("text", VALUES)
def test_each_use_says_that_it_is_none(text: str, use: str) -> None:
    with pytest.raises(NonArrayArgumentError, match=text):
        USES[use](VALUES[text])


@pytest.mark.parametrize("dtype", ["O", "U1", "M8[D]", [("a", "f4")], np.longdouble])
def test_shapes_with_dtypes_that_arrays_cannot_have(dtype: Any) -> None:
    struct = dt.ShapeDtypeStruct((2,), dtype)
    for call in (
        lambda: dt.make_jaxpr(lambda x: x)(struct),
        lambda: dt.eval_shape(lambda x: x, struct),
        lambda: dt.jit(lambda x: x).lower(struct),
    ):
        with pytest.raises(NonArrayArgumentError, match="neither"):
            call()


@pytest.mark.parametrize("value", ["text", np.array(["text"])])
def test_the_argument_is_named(value: Any) -> None:
    struct, tree = dt.ShapeDtypeStruct((), "float32"), {"b": [1.0, value]}
    function = lambda x, y, *, z: x
    for call in (
        lambda: dt.jit(function)(1.0, 2.0, z=tree),
        lambda: dt.jit(function).lower(struct, struct, z=tree),
        lambda: dt.jit(function).trace(struct, 2.0, z=tree),
        lambda: dt.jit(function).eval_shape(1.0, struct, z=tree),
        lambda: dt.make_jaxpr(function)(struct, 2.0, z=tree),
        lambda: dt.eval_shape(function, 1.0, struct, z=tree),
        lambda: dt.vmap(function)(np.ones(2), np.ones(2), z=tree),
        lambda: dt.linear_transpose(lambda x, z: x, struct, tree),
        lambda: dt.vjp(lambda x, z: x, 1.0, tree),
        lambda: dt.jacrev(lambda z: z["b"][0])(tree),
    ):
        with pytest.raises(NonArrayArgumentError, match=r"z\['b'\]\[1\]"):
            call()


def test_numbers_of_all_kinds_are_arrays() -> None:
    class Count(int):
        pass

    for value in (True, 1, 1.0, 1j, Count(3), np.bool_(True), np.float16(1), np.array(2, ">i4")):
        for result in (dt.jit(lambda x: x)(value), dt.jit(lambda: value)(), dt.device_put(value)):  # noqa: B023  # called here
            assert result.item() == value
            assert result.weak_type == (
                isinstance(value, (int, float, complex))
                and not isinstance(value, (bool, np.generic))
            )


@pytest.mark.parametrize(
    ("shape", "error"),
    [((2.5,), TypeError), (3, TypeError), ("ab", TypeError), ((-1,), ValueError)],
)
def test_shapes_that_arrays_cannot_have(shape: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="ShapeDtypeStruct: "):
        dt.ShapeDtypeStruct(shape, "float32")


@pytest.mark.parametrize("name", ML_DTYPES)
def test_numbers_of_ml_dtypes_are_computed_with_or_refused(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    value = np.ones(2, dtype)
    calls: list[Callable[[], Any]] = [
        lambda: jnp.asarray(value),
        lambda: jnp.ones(2, dtype),
        lambda: jnp.ones(2).astype(dtype),
        lambda: dt.jit(lambda x: x)(value),
    ]
    if name in ("int1", "uint1") or name.startswith(("float6", "complex32", "bcomplex32")):
        struct = dt.ShapeDtypeStruct((2,), dtype)
        for call in (*calls, lambda: dt.eval_shape(lambda x: x, struct)):
            with pytest.raises((NonArrayArgumentError, TypeError), match=name):
                call()
    else:
        for call in calls:
            result = call()
            assert result.dtype == dtype
            np.testing.assert_array_equal(np.asarray(result).astype(np.float32), [1, 1])
