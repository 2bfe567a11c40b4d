"""What a wrong call raises: the class and the code of the error, for a table of wrong calls.

`classes.txt` is the table. Its classes are those that JAX raises, measured once; an error passes if
it is an instance of that class. Each error has one code, but for those of `OF_PYTHON` and `ALONE`.
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
from dovetail._core.base.error_codes import error_pages
from dovetail._core.base.tracebacks import is_hidden

TABLE: Final = Path(__file__).with_name("classes.txt")

#: What stands in the table for a call that JAX refuses and that is taken here.
TAKEN: Final = "taken"

#: Calls whose errors Python or NumPy raises, in the frame of the caller. They have no code.
OF_PYTHON: Final = frozenset(
    {
        *('z < "a"', 'v + "a"', "v + None", "v < None", 'abs("a" + v)', '+"a" + v'),
        *("float(z[0])", "int(z[0])", "hash(v)", "{v: 1}", "next(v)", "v(1)", "v.real()", "v.T()"),
        *("v.foo", 'm.view("float16").foo', "key.foo", "v.shape.foo", "v.at[0].foo(1.0)"),
        *("dt.jit(lambda x: x.foo)(v)", "jnp.sin.reduce(v)"),
        *("operator.delitem(v, 0)", 'setattr(v, "shape", (1,))'),
        *('format(jnp.float32(1), "zz")', "v.block_until_ready(1)", "v.devices(1)"),
        *('np.asarray(v, dtype="bad")', 'jnp.dtype("bad")'),
        *('jnp.frombuffer("abc")', 'jnp.fromstring("a b", sep=" ")'),
    }
)

#: Calls whose mistake is the only one of its kind: the message says all that a page could.
ALONE: Final = frozenset(
    {
        "dt.grad(lambda x, y: x, argnums=(0, 0))(1.0, 2.0)",
        'dt.flatten_util.ravel_pytree([v, i])[1](jnp.ones(6, "complex64"))',
        "dt.jit(lambda x: pickle.dumps(x))(v)",
        "dt.jit(lambda n: lax.fori_loop(0, n, lambda i, x: x, 1.0, unroll=2))(3)",
        "lax.select_n(b, v, v, v)",
        "lax.platform_dependent(v)",
        "lax.linalg.householder_product(sq, m)",
        "jnp.linalg.tensorinv(m)",
        "jnp.linalg.tensorsolve(m, v)",
        'jnp.einsum("i->i->i", v)',
        "jnp.frompyfunc(lambda x, y: x, 2, 2).reduce(v)",
        "jnp.gradient(jnp.ones(1))",
        "jnp.histogram(v, range=(0, 1, 2))",
        "nn.glu(v)",
    }
)


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


def has_code(call: str, error: Exception) -> bool:
    """Whether the error of a call is to have a code.

    That of a name that a module lacks has none: its text is made where it is read.
    """
    return call not in OF_PYTHON | ALONE and not isinstance(error, dt.errors.UnknownNameError)


def wrong_codes(call: str, error: Exception) -> str | None:
    """What is wrong with the code of an error; None if it has one, or none is to be there."""
    notes = [note for note in getattr(error, "__notes__", []) if note.startswith("DT")]
    if bool(notes) != has_code(call, error):
        return f"{call}: has {notes or 'no code'}: {error}"
    pages = [code for code, page in error_pages().items() if page.message.search(str(error))]
    return f"{call}: has the codes {pages}" if len(pages) > 1 else None


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
        if not re.search(r"\w{3}", str(error)):
            return f"{call}: {name} without a message"
        return wrong_codes(call, error)
    return None if expected == TAKEN else f"{call}: raises nothing, expected {expected}"


@pytest.mark.parametrize("section", sections())
def test_class(section: str, names: dict[str, Any]) -> None:
    found = [difference(name, call, names) for name, call in sections()[section]]
    assert not list(filter(None, found))


def test_no_call_is_there_twice() -> None:
    calls = [call for rows in sections().values() for _, call in rows]
    assert len(calls) == len(set(calls))


def test_the_calls_whose_errors_have_no_code_are_few() -> None:
    calls = [call for rows in sections().values() for name, call in rows if name != TAKEN]
    assert set(calls) >= OF_PYTHON | ALONE
    assert len(OF_PYTHON | ALONE) < 0.05 * len(calls)
