"""What a wrong call raises: the class of the error, for a table of wrong calls.

`classes.txt` is the table. Its classes are those that JAX raises, measured once; an error passes if
it is an instance of that class.
"""

from __future__ import annotations

import builtins
import copy
import math
import operator
import pickle
import re
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn, random
from dovetail._core.base import config
from dovetail._core.base.tracebacks import is_hidden

TABLE: Final = Path(__file__).with_name("classes.txt")

#: What stands in the table for a call that JAX refuses and that is taken here.
TAKEN: Final = "taken"


def sections() -> dict[str, list[tuple[str, str]]]:
    """The table: the name of the class and the call, by section."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            rows = found.setdefault(line.removeprefix("## "), [])
        elif line and not line.startswith("#"):
            name, call = line.removeprefix("~ ").split(maxsplit=1)
            rows.append((name, call))
    return found


def class_of(name: str) -> Any:
    """The class of an error, by its name."""
    for place in (builtins, dt.errors, np.exceptions):
        if hasattr(place, name):
            return getattr(place, name)
    raise AssertionError(f"there is no error {name}")


def donated() -> Any:
    x = jnp.ones(3)
    dt.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x


def deleted() -> Any:
    x = jnp.ones(3)
    x.delete()
    return x


def leaked(transformation: Callable[..., Any]) -> Any:
    kept: list[Any] = []
    transformation(kept.append)(jnp.ones(3))
    return kept[0]


def with_jvp(rule: Callable[..., Any]) -> Any:
    f = dt.custom_jvp(lambda x: x * 2.0)
    f.defjvp(rule)
    return f


def with_vjp(forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    f = dt.custom_vjp(lambda x: jnp.sum(x) * 2.0)
    f.defvjp(forward, backward)
    return f


def asserted(x: Any) -> None:
    assert x


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the calls of the table are written with."""
    return {
        "dt": dt,
        "jnp": jnp,
        "lax": lax,
        "nn": nn,
        "random": random,
        "np": np,
        "math": math,
        "copy": copy,
        "pickle": pickle,
        "operator": operator,
        "v": jnp.ones(3),
        "m": jnp.ones((2, 3)),
        "i": jnp.arange(3),
        "b": jnp.array([True, False, True]),
        "z": jnp.ones(3, "complex64"),
        "sq": jnp.eye(3),
        "im": jnp.ones((1, 3, 4, 4)),
        "key": random.key(0),
        "donated": donated,
        "deleted": deleted,
        "leaked": leaked,
        "asserted": asserted,
        "with_jvp": with_jvp,
        "with_vjp": with_vjp,
    }


def difference(expected: str, call: str, names: dict[str, Any]) -> str | None:
    """What is wrong with the outcome of a call; None if it is as the table says."""
    try:
        with warnings.catch_warnings(), config.traceback_filtering("auto"):
            warnings.simplefilter("ignore")
            eval(call, dict(names))
    except Exception as error:
        name = type(error).__name__
        if expected == TAKEN:
            return f"{call}: raises {name}"
        if not isinstance(error, class_of(expected)):
            return f"{call}: {name}, expected {expected}"
        frames = traceback.extract_tb(error.__traceback__)
        if shown := [frame.name for frame in frames if is_hidden(frame.filename)]:
            return f"{call}: shows {shown}, of the framework"
        return None if re.search(r"\w{3}", str(error)) else f"{call}: {name} without a message"
    return None if expected == TAKEN else f"{call}: raises nothing, expected {expected}"


@pytest.mark.parametrize("section", sections())
def test_class(section: str, names: dict[str, Any]) -> None:
    found = [difference(name, call, names) for name, call in sections()[section]]
    assert not list(filter(None, found))


def test_no_call_is_there_twice() -> None:
    calls = [call for rows in sections().values() for _, call in rows]
    assert len(calls) == len(set(calls))
