"""Shardings of values inside programs over several devices, and their pictures."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import debug, lax, random
from dovetail.sharding import Mesh, NamedSharding
from dovetail.sharding import PartitionSpec as P

DEVICES = dt.devices("cpu")[:4]
MESH = Mesh(np.array(DEVICES).reshape(2, 2), ("x", "y"))
BOTH = NamedSharding(MESH, P("x", "y"))
VALUE = np.arange(64, dtype=np.float32).reshape(8, 8)


def _looped(x: Any, see: Any) -> Any:
    def step(carry: Any, _: Any) -> Any:
        see(jnp.sin(carry))
        return carry + 1, None

    return lax.scan(step, x, None, length=2)[0]


#: By name: a function of an array and of what sees values, and the shardings that are seen.
PROGRAMS: dict[str, tuple[Any, list[P]]] = {
    "argument": (lambda x, see: see(x), [P("x", "y")]),
    "elementwise": (lambda x, see: see(jnp.exp(x) + 1), [P("x", "y")]),
    "product": (lambda x, see: see(x @ x.T), [P("x")]),
    "sum": (lambda x, see: see(x.sum(0)), [P("y")]),
    "everywhere": (lambda x, see: see(x.sum()), [P()]),
    "two": (lambda x, see: (see(x.T), see(x)), [P("y", "x"), P("x", "y")]),
    "constrained": (
        lambda x, see: see(lax.with_sharding_constraint(x, NamedSharding(MESH, P("y")))),
        [P("y")],
    ),
    "loop": (_looped, [P("x", "y")]),
    "call": (lambda x, see: dt.jit(lambda y: see(y.T))(x), [P("y", "x")]),
    "vmap": (lambda x, see: dt.vmap(lambda y: see(2 * y))(x), [P("x", "y")]),
    "grad": (lambda x, see: dt.grad(lambda y: (see(2 * y), y.sum())[1])(x), [P("x", "y")]),
    "keys": (lambda x, see: see(random.split(random.key(0), 4)), [P()]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_inside_programs(name: str) -> None:
    function, specs = PROGRAMS[name]
    seen: list[Any] = []
    f = dt.jit(
        lambda x: function(x, lambda y: debug.inspect_array_sharding(y, callback=seen.append))
    )
    x = dt.device_put(VALUE, BOTH)
    for _ in range(2):
        f(x)
    assert seen == [NamedSharding(MESH, spec) for spec in specs]
    compiled = f.lower(x).compile()
    assert len(seen) == 2 * len(specs)
    assert "InspectSharding" not in compiled.as_text()


def test_what_the_callback_raises() -> None:
    def refuse(sharding: Any) -> None:
        raise LookupError(f"refused {sharding.spec}")

    f = dt.jit(lambda x: (debug.inspect_array_sharding(x, callback=refuse), x + 1)[1])
    x = dt.device_put(VALUE, BOTH)
    for _ in range(2):
        with pytest.raises(LookupError, match="refused"):
            f(x)


def test_pictures_of_values_inside_programs(capsys: Any) -> None:
    f = dt.jit(lambda x: (debug.visualize_array_sharding(x.T), x)[1])
    f(dt.device_put(VALUE, BOTH))
    inside = capsys.readouterr().out
    debug.visualize_array_sharding(dt.device_put(VALUE, NamedSharding(MESH, P("y", "x"))))
    assert inside == capsys.readouterr().out
    assert re.findall(r"CPU \d", inside) == ["CPU 0", "CPU 2", "CPU 1", "CPU 3"]


def test_other_platforms_say_that_they_cannot() -> None:
    def f(x: Any) -> Any:
        debug.inspect_array_sharding(x * 2, callback=print)
        return x

    from dovetail._core.lower.lowering import lower_jaxpr

    with pytest.raises(NotImplementedError, match="see values inside programs over several"):
        lower_jaxpr(
            dt.make_jaxpr(f)(VALUE),
            name="f",
            platforms=("tpu",),
            arg_shardings=[BOTH],
            num_partitions=4,
        )


@pytest.mark.parametrize("use_color", [True, False])
def test_pictures_in_notebooks(use_color: bool, capsys: Any, monkeypatch: Any) -> None:
    shown: list[dict[str, str]] = []
    shell = SimpleNamespace(kernel=object(), display_pub=SimpleNamespace(publish=shown.append))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    x = dt.device_put(VALUE, BOTH)
    debug.visualize_array_sharding(x, use_color=use_color)
    (data,) = shown
    assert re.findall(r">(CPU \d)<", data["text/html"]) == [f"CPU {n}" for n in range(4)]
    assert len(set(re.findall(r"rgb\([^)]*\)", data["text/html"]))) == (4 if use_color else 0)
    assert data["text/html"].count("<tr") == 2
    assert capsys.readouterr().out == ""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=object))
    debug.visualize_array_sharding(x)
    assert capsys.readouterr().out == data["text/plain"]
