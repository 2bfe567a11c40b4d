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
