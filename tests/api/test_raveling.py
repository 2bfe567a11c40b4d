"""ravel_pytree: there and back, for every mixture of dtypes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.flatten_util import ravel_pytree

DTYPES = ("bool", "int8", "uint8", "int32", "uint32", "bfloat16", "float16", "float32", "complex64")
TREES: dict[str, Any] = {
    "array": np.arange(6.0).reshape(2, 3),
    "scalar": 2.5,
    "integers": [1, 2],
    "no leaves": (),
    "None": None,
    "empty array": {"a": np.zeros((0, 3), np.float32)},
    "nested": {"b": [np.float32(1), (np.ones((2, 2), np.float32), None)], "a": 3.0},
    "one of many shapes": [np.full(shape, 2, np.int32) for shape in ((), (1,), (2, 1, 2), (0,))],
}


@pytest.mark.parametrize("name", TREES)
def test_there_and_back(name: str) -> None:
    tree = TREES[name]
    vector, unravel = ravel_pytree(tree)
    leaves = [np.asarray(x) for x in dt.tree.leaves(tree)]
    expected = np.concatenate([x.ravel() for x in leaves]) if leaves else np.zeros(0)
    np.testing.assert_array_equal(vector, expected)
    assert vector.ndim == 1
    back = unravel(vector)
    assert dt.tree.structure(back) == dt.tree.structure(tree)
    for one, other in zip(dt.tree.leaves(back), leaves, strict=True):
        assert one.dtype == dt.dtypes.canonicalize_dtype(other.dtype)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("first", "second"), [*itertools.combinations_with_replacement(DTYPES, 2)])
def test_mixtures(first: str, second: str) -> None:
    tree = [jnp.ones((2, 1), first), jnp.zeros(3, second)]
    vector, unravel = ravel_pytree(tree)
    assert vector.dtype == jnp.promote_types(first, second)
    assert vector.tolist() == [1, 1, 0, 0, 0]
    assert [x.dtype.name for x in unravel(vector)] == [first, second]
    assert [x.shape for x in unravel(vector)] == [(2, 1), (3,)]
    wider = vector.astype("complex64")
    if first == second:
        assert [x.dtype.name for x in unravel(wider)] == ["complex64"] * 2
    elif vector.dtype != wider.dtype:
        with pytest.raises(TypeError, match=f"takes a vector of {vector.dtype}.*got complex64"):
            unravel(wider)


def test_python_numbers_are_not_rounded() -> None:
    vector, unravel = ravel_pytree([0.1, jnp.ones(1, "float16")])
    assert vector.dtype == "float32"
    assert vector[0] == np.float32(0.1)
    assert [x.dtype.name for x in unravel(vector)] == ["float32", "float16"]
    assert ravel_pytree([1, 2])[0].aval.weak_type
    assert not ravel_pytree([1, jnp.ones(1, int)])[0].aval.weak_type


def test_x64() -> None:
    with dt.enable_x64(True):
        vector, unravel = ravel_pytree({"a": np.float64(0.1), "b": np.int64(2**40)})
        assert vector.dtype == "float64"
        assert {k: v.dtype.name for k, v in unravel(vector).items()} == {
            "a": "float64",
            "b": "int64",
        }
        assert ravel_pytree(())[0].dtype == "float64"


TRANSFORMATIONS: dict[str, Callable[[Any], Any]] = {
    "jit": lambda f: dt.jit(f)(3.0),
    "grad": lambda f: dt.grad(lambda s: f(s)[0].sum())(3.0),
    "vmap": lambda f: dt.vmap(f)(jnp.arange(3.0)),
    "jacfwd": lambda f: dt.jacfwd(f)(3.0),
}


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_transformations(transformation: str) -> None:
    def there_and_back(s: Any) -> Any:
        vector, unravel = ravel_pytree({"a": s * jnp.ones((2, 2)), "b": jnp.int32(1)})
        return vector[:4].reshape(2, 2), unravel(vector)["a"]

    def plain(s: Any) -> Any:
        return s * jnp.ones((2, 2)), s * jnp.ones((2, 2))

    transform = TRANSFORMATIONS[transformation]
    for one, other in zip(
        dt.tree.leaves(transform(there_and_back)), dt.tree.leaves(transform(plain)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_equal_trees_have_equal_functions() -> None:
    (_, first), (_, second) = ravel_pytree({"a": 1.0}), ravel_pytree({"a": 2.0})
    assert first == second
    assert hash(first) == hash(second)
    assert first != ravel_pytree({"b": 1.0})[1]
    assert first != ravel_pytree({"a": jnp.ones(2)})[1]
    assert first != ravel_pytree({"a": 1})[1]
    assert float(dt.jit(lambda f, v: f(v)["a"], static_argnums=0)(second, jnp.ones(1))) == 1.0


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "text": (lambda: ravel_pytree({"a": "text"}), TypeError, r"pytree\['a'\].*str"),
    "keys": (lambda: ravel_pytree([dt.random.key(0)]), TypeError, r"pytree\[0\] is key<fry>\[\]"),
    "float0": (
        lambda: ravel_pytree([np.zeros(2, dt.float0)]),
        TypeError,
        r"pytree\[0\] is float0\[2\]",
    ),
    "too long": (
        lambda: ravel_pytree([1.0, 2.0])[1](jnp.ones(3)),
        ValueError,
        r"takes a vector of 2 elements, got f32\[3\]",
    ),
    "no leaves": (
        lambda: ravel_pytree(())[1](jnp.ones(3)),
        ValueError,
        "takes a vector of 0 elements",
    ),
    "no vector": (
        lambda: ravel_pytree([1.0, 2.0])[1]([1.0, 2.0]),
        TypeError,
        "argument vector to be an array",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, kind, message = ERRORS[case]
    with pytest.raises(kind, match=message):
        call()
