"""Calls of many forms; what they give is printed, and what they hold is counted."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.base import native
from dovetail._core.runtime.arrays.array import Array

Pair = namedtuple("Pair", "first second")


@dt.tree_util.register_dataclass
@dataclass
class Node:
    value: Any


class Model:
    def __init__(self) -> None:
        self.weight = jnp.asarray(np.float32(3.0))

    def scaled(self, x: Any) -> Any:
        return x * self.weight


def shown(value: Any) -> str:
    """A value with types, dtypes and order of keys."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {shown(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    if isinstance(value, Node):
        return f"Node({shown(value.value)})"
    if isinstance(value, Array):
        numbers = dt.random.key_data(value) if value.dtype.kind == "V" else value
        return f"{value.aval} {value.weak_type} {np.asarray(numbers).tolist()}"
    return repr(value)


def outcome(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    try:
        return shown(function(*args, **kwargs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


x = jnp.asarray(np.arange(3, dtype=np.float32))
y = jnp.asarray(np.float32(2.0))
key = dt.random.key(0)
identity = dt.jit(lambda *args, **kwargs: (args, kwargs))
FORMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "one": (dt.jit(lambda a: a + 1), (x,), {}),
    "none": (dt.jit(lambda: jnp.ones(2)), (), {}),
    "nothing": (dt.jit(lambda a: None), (x,), {}),
    "list": (dt.jit(lambda a: [a, a + 1]), (x,), {}),
    "tuple": (dt.jit(lambda a: (a, a + 1)), (x,), {}),
    "one in a tuple": (dt.jit(lambda a: (a + 1,)), (x,), {}),
    "empty": (dt.jit(lambda a: ([], (), {}, None)), (x,), {}),
    "dictionary": (dt.jit(lambda a: {"b": a, "a": a + 1}), (x,), {}),
    "nested": (dt.jit(lambda a: {"b": [a, (a + 1, None)], "a": {1: a}}), (x,), {}),
    "deep": (dt.jit(lambda a: [[[{"b": {"a": [a]}}], ()], {}, (None, a)]), (x,), {}),
    "named tuple in a list": (dt.jit(lambda a: [Pair(a, {"k": a + 1}), None]), (x,), {}),
    "arguments": (identity, ([x, (y, {"k": x, "j": [y]})], x), {"b": y, "a": [x]}),
    "empty containers": (identity, ([], (), {}, x), {}),
    "numbers": (identity, (1, 2.0, True, 3j, x), {}),
    "named tuple": (identity, (Pair(x, [y, np.float32(1)]), np.ones(2, np.float32)), {}),
    "node": (identity, (Node([x, np.ones(2, np.float32)]), {"a": Node(y)}), {}),
    "keys": (identity, (key, [key, x]), {"k": dt.random.split(key)}),
    "split": (dt.jit(dt.random.split), (key,), {}),
    "many": (identity, tuple([y] * 100), {}),
    "static": (dt.jit(lambda a, n: a * n, static_argnums=1), (x, 3), {}),
    "static by name": (dt.jit(lambda a, n: a * n, static_argnames="n"), (x,), {"n": 3}),
    "not hashable": (dt.jit(lambda a, n: a, static_argnums=1), (x, [3]), {}),
    "static array": (dt.jit(lambda a, n: a, static_argnums=1), (x, y), {}),
    "axes as a list": (jnp.sum, (jnp.ones((2, 3)),), {"axis": [0, 1]}),
    "operator": (lambda a, b: a + b, (x, y), {}),
    "unsupported": (lambda a, b: a + b, (x, "text"), {}),
    "method": (dt.jit(Model().scaled), (x,), {}),
    "compiled": (dt.jit(lambda a, b: [a, b]).lower(x, y).compile(), (x, y), {}),
    "compiled, wrong": (dt.jit(lambda a, b: [a, b]).lower(x, y).compile(), (y, y), {}),
    "compiled, keywords": (dt.jit(lambda a, b: a - b).lower(x, b=y).compile(), (x,), {"b": y}),
    "compiled, NumPy": (dt.jit(lambda a: a + 1).lower(x).compile(), (np.ones(3, np.float32),), {}),
    "not an array": (identity, (x, "text"), {}),
    "set": (identity, ({x.shape: x}, frozenset()), {}),
    "keys of several types": (identity, ({1: x, "a": y},), {}),
    "nested jit": (dt.jit(lambda a: identity(a, [a])), (x,), {}),
    "traced": (dt.make_jaxpr(lambda a: identity(a, x)), (x,), {}),
    "gradient": (dt.jit(dt.grad(lambda a: (a * x).sum())), (x,), {}),
    "vmap": (dt.vmap(dt.jit(lambda a: [a, y])), (x,), {}),
}


def print_forms() -> None:
    for name, (function, args, kwargs) in FORMS.items():
        for _ in range(3):
            print(name, outcome(function, *args, **kwargs))
    with dt.disable_jit():
        print("disable_jit", outcome(identity, x, [y]), outcome(lambda: x + y))


def print_host_values() -> None:
    """The caller overwrites an array as soon as a call has returned."""
    for dtype in ("?", "i1", "i4", "i8", "u2", "f2", "f4", "f8", ">f4", ">i2", "c8"):
        for shape in ((2, 3), (70_000,)):
            for order in ("C", "F"):
                for _ in range(2):
                    value = np.asarray(np.ones(shape, dtype), order=order)
                    result = identity(value, [value])
                    value[...] = 0
                    for leaf in dt.tree.leaves(result):
                        assert np.all(np.asarray(leaf) == 1), (dtype, shape, order)
        print("scalar", dtype, outcome(identity, np.ones((), dtype)[()]))
    whole = np.zeros(4096 + 64, np.float32)
    for start in range(64):  # of every alignment
        part = whole[start : start + 4096]
        part[...] = start
        result = identity(part)[0][0]
        part[...] = -1
        assert np.all(np.asarray(result) == start)
    print(outcome(identity, np.array([2**40])))
    masked = np.ma.masked_array(np.ones(3, np.float32), [0, 1, 0])
    for value in (masked, np.ones(3, np.float32), masked):
        print(outcome(identity, value)[:10])
    print(outcome(identity, np.array(["a"])), outcome(identity, np.datetime64("2020-01-01")))
    with dt.events() as log:
        identity(np.ones(3, np.float32))
    print([event.kind for event in log if event.kind != "garbage"])


def print_donations() -> None:
    def fresh() -> Any:
        return jnp.asarray(np.ones(5, np.float32))

    step = dt.jit(lambda tree: dt.tree.map(lambda a: a + 1, tree), donate_argnums=0)
    for make in (
        fresh,
        lambda: [fresh(), fresh()],
        lambda: (fresh(), {"a": [fresh()]}),
        lambda: Node(fresh()),
        lambda: dt.random.split(dt.random.key(1)),
    ):
        function = step if not isinstance(make(), Array) or make().ndim == 1 else None
        function = function or dt.jit(dt.random.split, donate_argnums=0)
        for _ in range(3):
            given = make()
            leaves = dt.tree.leaves(given)
            outcome(function, given)
            for leaf in leaves:
                print("donated", outcome(lambda leaf=leaf: leaf + 1), leaf.is_deleted())
    both = dt.jit(lambda a, b: a + b, donate_argnums=0)
    for _ in range(2):
        a = fresh()
        print("twice", outcome(both, a, a))
    named = dt.jit(lambda a, *, b: a + b, donate_argnames="b")
    for _ in range(2):
        a = fresh()
        named(x[0], b=a)
        print("by name", a.is_deleted(), outcome(lambda a=a: a + 1))
    compiled = dt.jit(lambda a: a + 1, donate_argnums=0).lower(fresh()).compile()
    for _ in range(3):
        a = fresh()
        print("compiled", outcome(compiled, a), outcome(lambda a=a: a + 1))


def print_errors() -> None:
    def fails(a: Any) -> Any:
        raise KeyError("from the function")

    print(outcome(dt.jit(fails), x), outcome(dt.jit(fails), x))
    deep: list[Any] = [x]
    for _ in range(100):
        deep = [deep]
    for _ in range(2):
        print("deep", str(dt.tree.structure(identity(deep)))[:40])
    own: list[Any] = [x]
    own.append(own)
    print("in itself", "Error" in outcome(identity, own))
    gone = jnp.asarray(np.ones(3, np.float32))
    gone.delete()
    print(outcome(identity, gone)[:60], outcome(identity, [gone])[:60])


def print_identities() -> None:
    """Where the function itself is called, it gets the arguments that were given."""
    seen: list[Any] = []
    noted = dt.jit(lambda a: seen.append(a) or a)
    with dt.disable_jit():
        noted(x)
    print("the same", seen[0] is x)
    copied = copy.copy(dt.jit(jnp.negative))
    print(outcome(copied, x))
    print(outcome(pickle.loads(pickle.dumps(dt.jit(Model.scaled))), Model(), y)[:30])


def counted(function: Callable[[], Any]) -> int:
    """By how many objects the process has grown."""
    for _ in range(5):
        function()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(40):
        function()
    gc.collect()
    return len(gc.get_objects()) - before


def check_references() -> None:
    value = np.ones(3, np.float32)
    step = dt.jit(lambda a: a + 1, donate_argnums=0)
    held = [jnp.asarray(value)]

    def donate() -> None:
        held[0] = step(held[0])

    mark = object()
    many = [x] * 50
    calls: dict[str, Callable[[], Any]] = {
        name: lambda f=f, a=a, k=k: outcome(f, *a, **k)
        for name, (f, a, k) in FORMS.items()
        if name not in ("traced", "gradient", "vmap")
    }
    calls |= {
        "donate": donate,
        "NumPy": lambda: identity(value, [value, np.float64(1)]),
        "read": lambda: np.asarray(x),
        "read as": lambda: np.asarray(x, np.float64),
        "list": lambda: identity(many, {"a": many}),
        "opaque": lambda: outcome(identity, mark),
    }
    for call in calls.values():
        call()
    watched = [x, y, x._buffer, y._buffer, value, mark, many, key, None]
    before = list(map(sys.getrefcount, watched))
    for name, call in calls.items():
        grown = counted(call)
        assert abs(grown) < 30, (name, grown)
    after = list(map(sys.getrefcount, watched))
    for number, (first, last) in enumerate(zip(before, after, strict=True)):
        # Each form is called 45 times. None has many other users.
        assert abs(last - first) < (30 if watched[number] is not None else 1000), number


def check_threads() -> None:
    add = dt.jit(lambda a, b: {"sum": a + b, "list": [a]})
    wrong: list[Any] = []

    def work(number: int) -> None:
        mine = jnp.asarray(np.full(3, number, np.float32))
        for _ in range(200):
            found = add(mine, np.float32(number))
            if not np.all(np.asarray(found["sum"]) == 2 * number):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


if __name__ == "__main__":
    print("in Python" if native.calls is None else "compiled")
    print_forms()
    print_host_values()
    print_donations()
    print_errors()
    print_identities()
    check_references()
    check_threads()
