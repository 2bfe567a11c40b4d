"""Arguments of a wrong kind: what is raised names the function that was called."""

from __future__ import annotations

import inspect
import re
import types
from typing import Any

import numpy as np
import pytest

import dovetail.numpy as jnp
from dovetail import random

pytestmark = pytest.mark.tables

#: Vectors that many functions refuse.
VECTORS = {
    "bool": np.array([True, False, True]),
    "complex64": np.array([1j, 2, 3], np.complex64),
    "int32": np.arange(3),
    "empty": np.zeros(0, np.float32),
}
#: Functions that are another one, with the name that messages have.
DELEGATES = {
    "column_stack": "concatenate",
    "concat": "concatenate",
    "dstack": "concatenate",
    "einsum_path": "einsum",
    "identity": "eye",
    "matrix_norm": "norm",
    "matvec": "matmul",
    "minmax": "min",
    "nanmax": "max",
    "nanmin": "min",
    "permute_dims": "transpose",
    "ptp": "max",
    "trace": "diagonal",
    "vecmat": "matmul",
    "vstack": "concatenate",
}
#: Functions of dtypes, of files, of buffers and of functions.
OTHERS = (  # noqa: SIM905 - words read better than a list
    "can_cast finfo iinfo isdtype issubdtype result_type promote_types fromfile frombuffer load "
    "save savez fromfunction frompyfunc vectorize set_printoptions printoptions"
).split()


def functions(module: types.ModuleType) -> list[Any]:
    found = [(name, getattr(module, name)) for name in module.__all__]
    return [
        pytest.param(name, function, id=f"{module.__name__}.{name}")
        for name, function in found
        if callable(function) and not isinstance(function, type) and name not in OTHERS
    ]


def raised(function: Any, *args: Any) -> Exception | None:
    try:
        function(*args)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize(
    ("name", "function"), [*functions(jnp), *functions(jnp.linalg), *functions(jnp.fft)]
)
def test_errors_name_the_function(name: str, function: Any) -> None:
    parameters = inspect.signature(function).parameters.values()
    count = sum(p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD for p in parameters)
    for dtype, vector in VECTORS.items():
        error = raised(function, *[vector] * count)
        names = {name, getattr(function, "__name__", name), DELEGATES.get(name, name)}
        text = rf"\b({'|'.join(map(re.escape, names))})\b"
        assert error is None or re.search(text, str(error)), f"{dtype}: {error!r}"


#: Functions that take what is no array: shapes, texts, dtypes, or whatever there is.
OF_ANYTHING = (  # noqa: SIM905 - words read better than a list
    "array_repr array_str broadcast_shapes einsum einsum_path explain_dtype from_dlpack fromiter "
    "iscomplexobj isrealobj isscalar iterable ndim shape size"
).split()


@pytest.mark.parametrize(
    ("name", "function"), [*functions(jnp), *functions(jnp.linalg), *functions(jnp.fft)]
)
def test_what_is_no_array_is_a_type_error(name: str, function: Any) -> None:
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]
    if len(needed) != 1 or name in OF_ANYTHING:
        return
    for other in ("a", None, object()):
        assert isinstance(raised(function, other), TypeError), repr(other)
    error = raised(function, random.key(0))
    assert "Cannot interpret" not in str(error), repr(error)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.array([1], ndmin=[1]), TypeError, "ndmin to be an integer, got list"),
        (lambda: jnp.array([1], ndmin=2**63), ValueError, "ndmin must be at most 64"),
        (lambda: jnp.array_str(jnp.ones(2), [[]]), TypeError, "max_line_width to be an integer"),
        (lambda: jnp.frombuffer(b"1234", offset=2**64), ValueError, "frombuffer: .* too large"),
        (lambda: jnp.histogramdd(jnp.ones((1, 1)), range=-1), ValueError, "range must be a pair"),
        (lambda: jnp.histogramdd(jnp.ones((1, 2)), range=-1), ValueError, "range must have a pair"),
        (lambda: jnp.pad(random.split(random.key(0)), 1), TypeError, "pad: .* write mode='edge'"),
        (
            lambda: jnp.pad(jnp.ones(2), 1, jnp.ones(3)),
            ValueError,
            "mode must be a function or one",
        ),
        (lambda: jnp.split(jnp.ones(2), jnp), TypeError, "indices_or_sections"),
        (lambda: jnp.searchsorted(jnp.ones(2), 1.0, sorter=0), ValueError, "a vector of positions"),
        (lambda: jnp.issubdtype(random.key(0), 3), TypeError, "3"),
        (lambda: jnp.float16(2**2000), OverflowError, "2001 bits does not fit dtype float16"),
        (lambda: jnp.rot90(jnp.ones((2, 2)), 1, None), ValueError, "two different dimensions"),
    ],
)
def test_wrong_numbers(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("huge", [2**31, -(2**31), 2**64, -(2**64)])
def test_numbers_too_large_to_count_with(huge: int) -> None:
    x = jnp.array([1.25, -7.5])
    assert jnp.round(x, huge).tolist() == (x.tolist() if huge > 0 else [0, 0])
    assert jnp.round(jnp.arange(2), huge).tolist() == ([0, 1] if huge > 0 else [0, 0])
    assert [len(i) for i in jnp.triu_indices(2, huge, 3)] == ([0, 0] if huge > 0 else [6, 6])
    assert jnp.triu_indices(0, m=abs(huge))[0].shape == (0,)
