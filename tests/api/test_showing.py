"""`dt.show`, and what is printed of traced values."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

LEAVES = {
    "array": (jnp.arange(4.0), ["f32[4]", "16 B", "1.5", "1.118", "0", "3", "cpu:0"]),
    "integers": (jnp.arange(3), ["i32[3]", "12 B", "1", "0.8165", "0", "2", "cpu:0"]),
    "narrow": (jnp.ones(3, jnp.bfloat16), ["bf16[3]", "6 B", "1", "0", "1", "1", "cpu:0"]),
    "bool": (jnp.array([True, False]), ["bool[2]", "2 B", "0.5", "0.5", "0", "1", "cpu:0"]),
    "host": (np.ones(2, np.float32), ["f32[2]", "8 B", "1", "0", "1", "1", "host"]),
    "nan": (jnp.array([2.0, np.nan, np.inf]), ["f32[3]", "12 B", "2 (2 not finite)"]),
    "all_nan": (jnp.array([np.nan]), ["f32[1]", "4 B", "1 not finite", "cpu:0"]),
    "empty": (jnp.zeros((0, 3)), ["f32[0,3]", "0 B", "cpu:0"]),
    "complex": (jnp.ones(2, complex), ["c64[2]", "16 B", "cpu:0"]),
    "key": (dt.random.key(0), ["key<fry>[]", "8 B", "cpu:0"]),
    "number": (3, ["i32[]", "4 B", "host"]),
    "described": (dt.ShapeDtypeStruct((2, 3), np.float32), ["f32[2,3]"]),
    "text": ("adam", ["str"]),
    "function": (abs, ["builtin_function_or_method"]),
}


@pytest.mark.parametrize("name", LEAVES)
def test_a_leaf(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    leaf, words = LEAVES[name]
    dt.show({name: [leaf]})
    _, line, total = capsys.readouterr().out.splitlines()
    assert re.split(r"  +", line)[: len(words) + 1] == [f"['{name}'][0]", *words]
    assert total.startswith("leaves: 1, elements: ")


def test_a_divided_array(capsys: pytest.CaptureFixture[str]) -> None:
    mesh = dt.make_mesh((4,), ("x",))
    sharding = dt.NamedSharding(mesh, dt.sharding.PartitionSpec("x"))
    dt.show(dt.device_put(jnp.ones((8, 2)), sharding))
    assert "cpu:0,1,2,3 P('x')" in capsys.readouterr().out


def test_a_deleted_array(capsys: pytest.CaptureFixture[str]) -> None:
    x = jnp.ones(3)
    x.delete()
    dt.show([x])
    assert "deleted" in capsys.readouterr().out


def test_the_sum_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    dt.show({"a": jnp.ones((1000, 1000)), "b": (jnp.ones(24), None)}, statistics=False)
    head, *_, total = capsys.readouterr().out.splitlines()
    assert head.split() == ["path", "type", "size", "where"]
    assert total == "leaves: 2, elements: 1,000,024, memory: 3.8 MiB"


def test_a_notebook_gets_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[Any] = []
    display = types.SimpleNamespace(publish=published.append)
    shell = types.SimpleNamespace(kernel=None, display_pub=display)
    module = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(__import__("sys").modules, "IPython", module)
    dt.show({"<w>": jnp.ones(2)})
    (page,) = published
    assert "['<w>']" in page["text/plain"]
    assert "[&#x27;&lt;w&gt;&#x27;]" in page["text/html"]


Printing = Callable[[Callable[[Any], Any]], Any]

TRACED: dict[str, tuple[Printing, str]] = {
    "jit": (lambda f: dt.jit(f)(1.0), "f32[] traced by jit, the argument x of seen"),
    "path": (
        lambda f: dt.jit(lambda params: f(params["w"][0]))({"w": [jnp.ones(3)]}),
        "f32[3] traced by jit, the argument params['w'][0] of <lambda>",
    ),
    "vmap": (lambda f: dt.vmap(f)(jnp.ones(3)), "f32[] traced by vmap"),
    "grad": (lambda f: dt.grad(f)(1.0), "f32[] traced by grad"),
    "jvp": (lambda f: dt.jvp(f, (1.0,), (1.0,)), "f32[] traced by jvp"),
    "both": (
        lambda f: dt.jit(dt.vmap(f))(jnp.ones(3)),
        "f32[] traced by vmap of jit, the argument x of seen",
    ),
    "scan": (
        lambda f: lax.scan(lambda c, x: (c, f(x)), 0.0, jnp.ones(3)),
        "f32[] traced by lax.scan, the argument x of <lambda>",
    ),
    "result": (lambda f: dt.jit(lambda x: f(x * 2))(1.0), "f32[] traced by jit, from mul at test_"),
}


@pytest.mark.parametrize("name", TRACED)
def test_a_traced_value_is_printed_with_its_origin(name: str) -> None:
    call, expected = TRACED[name]
    texts: list[str] = []

    def seen(x: Any) -> Any:
        texts.append(f"{x}")
        assert texts[-1] == str(x)
        assert repr(x).startswith("Traced<")
        return x

    call(seen)
    assert texts[0].startswith(expected)


def test_notebooks_show_html() -> None:
    mesh = dt.make_mesh((2, 2), ("x", "y"))
    sharding = dt.NamedSharding(mesh, dt.sharding.PartitionSpec("x", None))
    x = dt.device_put(jnp.arange(4.0).reshape(2, 2), sharding)
    assert "Array float32[2,2] on cpu:0,1,2,3 P(&#x27;x&#x27;, None)" in x._repr_html_()
    assert "[2. 3.]" in x._repr_html_()
    assert '<td style="text-align:left">x</td>' in sharding._repr_html_()
    single = dt.sharding.SingleDeviceSharding(dt.devices()[0])
    assert "SingleDeviceSharding(" in single._repr_html_()
    assert "<pre>[[0 1]\n [2 3]]</pre>" in mesh._repr_html_()
    jaxpr = dt.make_jaxpr(lambda x: jnp.sin(x) < 2)(1.0)
    text = re.sub("<[^>]+>", "", jaxpr._repr_html_())
    assert text.replace("&lt;", "<") == jaxpr.pretty_print()
    assert "<span style=" in jaxpr._repr_html_()
    deleted = jnp.ones(3)
    deleted.delete()
    assert "deleted" in deleted._repr_html_()
