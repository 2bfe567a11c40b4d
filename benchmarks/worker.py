"""Measure one framework in one process and print the figures as JSON.

    python worker.py jax|dovetail GROUP

The same code drives both frameworks; only the imports differ. Every figure is the median of many
repeats.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

FRAMEWORK, GROUP = sys.argv[1], sys.argv[2]
dt = import_module(FRAMEWORK)
jnp = import_module(f"{FRAMEWORK}.numpy")
lax = import_module(f"{FRAMEWORK}.lax")
nn = import_module(f"{FRAMEWORK}.nn")
random = import_module(f"{FRAMEWORK}.random")
tree_map = import_module(f"{FRAMEWORK}.tree_util").tree_map


def microseconds(function: Callable[[], Any], calls: int = 200, repeats: int = 91) -> float:
    """Median over repeats, each of a few milliseconds or less, of the mean time of one call."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        times.append((time.perf_counter() - start) / calls)
    return statistics.median(times) * 1e6


def once(function: Callable[[], Any], repeats: int = 15) -> float:
    """Median time of one call, in microseconds."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


class Model:
    """Something with a compiled method."""

    @partial(dt.jit, static_argnums=0)
    def apply(self, x: Any) -> Any:
        return x + 1.0

    def shift(self, x: Any) -> Any:
        return x - 1.0


def dispatch() -> dict[str, float]:
    """Calls of small compiled programs, until the call returns."""
    x, y = jnp.asarray(np.float32(1.0)), jnp.asarray(np.float32(2.0))
    leaves = [jnp.asarray(np.full(3, i, np.float32)) for i in range(1000)]
    tree = {"a": (leaves[0], [leaves[1]]), "b": {"c": leaves[2], "d": None}, "e": leaves[3:10]}
    small, large = np.ones(10, np.float32), np.ones((512, 512), np.float32)
    key = random.key(0)
    model = Model()
    add = dt.jit(lambda a, b: a + b)
    each = dt.jit(lambda values: [v + 1.0 for v in values])
    total = dt.jit(lambda *values: values[0] + values[-1])
    last = dt.jit(lambda values: values[-1] + 1.0)
    outer = dt.jit(lambda a: add(add(a, a), a))
    bound = dt.jit(model.shift)
    mapped = dt.jit(lambda t: tree_map(lambda v: v + 1.0, t))
    power = dt.jit(lambda a, n: a**n, static_argnums=1)
    named = dt.jit(lambda a, mode: a + len(mode), static_argnames="mode")
    fold = dt.jit(lambda k: random.fold_in(k, 1))
    increment = dt.jit(lambda v: v + 1.0)
    donating = dt.jit(lambda v: v + 1.0, donate_argnums=0)
    state = [jnp.asarray(small)]

    def donated() -> None:
        state[0] = donating(state[0])

    compiled = add.lower(x, y).compile()
    compiled_many = total.lower(*leaves[:100]).compile()
    return {
        "jit: scalar add": microseconds(lambda: add(x, y)),
        "jit: list of 1 leaf": microseconds(lambda: each(leaves[:1])),
        "jit: list of 10 leaves": microseconds(lambda: each(leaves[:10]), 100),
        "jit: list of 100 leaves": microseconds(lambda: each(leaves[:100]), 20),
        "jit: list of 1,000 leaves": microseconds(lambda: each(leaves), 2),
        "jit: 100 arguments": microseconds(lambda: total(*leaves[:100]), 20),
        "jit: list of 100 leaves, one used": microseconds(lambda: last(leaves[:100]), 50),
        "jit: tree in and out": microseconds(lambda: mapped(tree), 100),
        "jit: static argument": microseconds(lambda: power(x, 3)),
        "jit: static keyword": microseconds(lambda: named(x, mode="fast")),
        "jit: Python scalars": microseconds(lambda: add(1.0, 2.0)),
        "jit: NumPy scalars": microseconds(lambda: add(small[0], small[1])),
        "jit: NumPy array of 40 bytes": microseconds(lambda: increment(small)),
        "jit: NumPy array of 1 MB": microseconds(lambda: increment(large), 10),
        "jit: donated argument": microseconds(donated),
        "jit: compiled ahead of time, scalars": microseconds(lambda: compiled(x, y)),
        "jit: compiled ahead of time, 100 arguments": microseconds(
            lambda: compiled_many(*leaves[:100]), 20
        ),
        "jit: method": microseconds(lambda: model.apply(x)),
        "jit: bound method": microseconds(lambda: bound(x)),
        "jit: key": microseconds(lambda: fold(key)),
        "jit: nested": microseconds(lambda: outer(x)),
    }


def small_programs() -> dict[str, float]:
    """Calls of programs with small products of matrices, until the result is there."""
    found = {}
    for size in (10, 100):
        product = dt.jit(lambda a, b: a @ b)
        a = jnp.asarray(np.ones((size, size), np.float32))
        call = partial(finish, partial(product, a, a))
        found[f"jit: product of {size}x{size}"] = microseconds(call, 50)
    step = dt.jit(lambda p, x, y: tree_map(lambda v, g: v - 0.1 * g, p, dt.grad(mlp_loss)(p, x, y)))
    arguments = tree_map(jnp.asarray, mlp_arguments())
    found["jit: training step of a small MLP"] = microseconds(
        lambda: dt.block_until_ready(step(*arguments)), 20
    )
    gradient = dt.grad(lambda v: jnp.sum(jnp.sin(v) * v))
    x = jnp.asarray(np.ones(3, np.float32))
    found["grad of a small function, not compiled"] = microseconds(lambda: gradient(x), 10)
    return found


def eager() -> dict[str, float]:
    x = jnp.asarray(np.arange(100, dtype=np.float32).reshape(10, 10))
    y = jnp.asarray(np.ones((10, 10), np.float32))
    index = jnp.asarray(np.array([3, 1, 2]))
    values = [1.0, 2.0, 3.0]
    return {
        "x + y": microseconds(lambda: x + y),
        "jnp.sin(x)": microseconds(lambda: jnp.sin(x)),
        "x[0]": microseconds(lambda: x[0], 50),
        "x[1:3]": microseconds(lambda: x[1:3], 50),
        "x[idx]": microseconds(lambda: x[index], 20),
        "x.at[0].set(1.0)": microseconds(lambda: x.at[0].set(1.0), 20),
        "x.at[idx].set(1.0)": microseconds(lambda: x.at[index].set(1.0), 20),
        "jnp.zeros((10, 10))": microseconds(lambda: jnp.zeros((10, 10)), 50),
        "jnp.array([1.0, 2.0, 3.0])": microseconds(lambda: jnp.array(values), 50),
    }


def calls_of_matrices(size: int) -> dict[str, Callable[[], Any]]:
    """By name, calls on square matrices."""
    host = np.random.default_rng(0).uniform(0.1, 0.9, (size, size)).astype(np.float32)
    x, y = jnp.asarray(host), jnp.asarray(host.T.copy())
    row = x[0]
    return {
        "x + y": lambda: x + y,
        "x * 2": lambda: x * 2,
        "abs": lambda: jnp.abs(x),
        "sin": lambda: jnp.sin(x),
        "exp": lambda: jnp.exp(x),
        "sqrt": lambda: jnp.sqrt(x),
        "maximum": lambda: jnp.maximum(x, y),
        "where": lambda: jnp.where(x > 0.5, x, y),
        "sum": lambda: jnp.sum(x),
        "max of rows": lambda: jnp.max(x, axis=1),
        "mean of columns": lambda: jnp.mean(x, axis=0),
        "argmax": lambda: jnp.argmax(x),
        "sort": lambda: jnp.sort(x),
        "cumsum": lambda: jnp.cumsum(x, axis=0),
        "dot of vectors": lambda: jnp.dot(row, row),
        "x @ y": lambda: x @ y,
        "transpose": lambda: x.T,
        "reshape": lambda: jnp.reshape(x, -1),
        "concatenate": lambda: jnp.concatenate([x, y]),
        "linspace": lambda: jnp.linspace(0.0, 1.0, size * size),
        "softmax": lambda: nn.softmax(x),
        "x[1:5]": lambda: x[1:5],
    }


def sizes() -> dict[str, float]:
    """Functions of small and large matrices, each call until its result is there."""
    found = {}
    for size, count in ((10, (50, 91)), (1000, (1, 21))):
        for name, call in calls_of_matrices(size).items():
            found[f"eager {size}x{size}: {name}"] = microseconds(partial(finish, call), *count)
    return found


def finish(call: Callable[[], Any]) -> Any:
    """A call's result, when it is there."""
    return call().block_until_ready()


def chain_of_operators(x: Any) -> Any:
    for _ in range(500):
        x = x * x + x
    return x


def chain_of_functions(x: Any) -> Any:
    for _ in range(500):
        x = jnp.sin(jnp.add(x, x))
    return x


def mlp_loss(parameters: Any, images: Any, labels: Any) -> Any:
    hidden = images
    for weight, bias in parameters[:-1]:
        hidden = jnp.tanh(hidden @ weight + bias)
    weight, bias = parameters[-1]
    log_p = nn.log_softmax(hidden @ weight + bias)
    return -jnp.mean(jnp.sum(labels * log_p, axis=-1))


def layer_norm(x: Any) -> Any:
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5)


def transformer_loss(p: Any, x: Any) -> Any:
    for block in p:
        h = layer_norm(x)
        q, k, v = h @ block["q"], h @ block["k"], h @ block["v"]
        scores = q @ jnp.swapaxes(k, -1, -2) / 8.0
        x = x + nn.softmax(scores, axis=-1) @ v @ block["o"]
        h = layer_norm(x)
        x = x + jnp.tanh(h @ block["up"]) @ block["down"]
    return jnp.mean(x**2)


def mlp_arguments() -> tuple[Any, ...]:
    sizes = [64, 128, 128, 10]
    parameters = [
        (np.ones((a, b), np.float32), np.zeros(b, np.float32)) for a, b in pairwise(sizes)
    ]
    return parameters, np.ones((32, 64), np.float32), np.ones((32, 10), np.float32)


def transformer_arguments() -> tuple[Any, ...]:
    shapes = {"q": (64, 64), "k": (64, 64), "v": (64, 64), "o": (64, 64)}
    shapes |= {"up": (64, 256), "down": (256, 64)}
    blocks = [{n: np.ones(s, np.float32) for n, s in shapes.items()} for _ in range(2)]
    return blocks, np.ones((4, 16, 64), np.float32)


def programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    vector = np.ones(8, np.float32)
    return {
        "1,000 operators": (chain_of_operators, (vector,)),
        "1,000 jnp calls": (chain_of_functions, (vector,)),
        "gradient of an MLP loss": (dt.grad(mlp_loss), mlp_arguments()),
        "gradient of a transformer": (dt.grad(transformer_loss), transformer_arguments()),
    }


def equations(jaxpr: Any) -> int:
    """The number of equations, those of nested jaxprs included."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = [p for p in eqn.params.values() if hasattr(p, "eqns")]
        total += sum(equations(getattr(p, "jaxpr", p)) for p in inner) or 1
    return total


def tracing() -> dict[str, float]:
    found = {}
    for name, (function, arguments) in programs().items():

        def trace(function: Any = function, arguments: Any = arguments) -> Any:
            return dt.make_jaxpr(lambda *a: function(*a))(*arguments)

        count = equations(trace().jaxpr)
        found[f"trace: {name}, per equation"] = once(trace) / count
        found[f"trace: {name}, whole"] = once(trace)
    return found


def size() -> dict[str, float]:
    """Programs of ten times the equations; the time should be ten times as long."""
    vector = np.ones(8, np.float32)

    def chain(count: int) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            for _ in range(count // 2):
                x = lax.mul(lax.sin(x), 2.0)
            return x

        return function

    def trace(count: int) -> Any:
        return dt.make_jaxpr(chain(count))(vector)  # a new function: JAX remembers those it traced

    return {
        f"trace: {count:,} equations in a row": once(partial(trace, count), 3)
        for count in (10_000, 100_000)
    }


def lowering() -> dict[str, float]:
    found = {}
    for name, (function, arguments) in programs().items():

        def traced(function: Any = function, arguments: Any = arguments) -> Any:
            return dt.jit(lambda *a: function(*a)).trace(*arguments)

        text = traced().lower().as_text()
        lines = sum(" = " in line for line in text.splitlines())
        times = []
        for _ in range(11):
            stage = traced()
            start = time.perf_counter()
            stage.lower()
            times.append(time.perf_counter() - start)
        found[f"lower: {name}, per line"] = statistics.median(times) * 1e6 / lines
        found[f"lower: {name}, whole"] = statistics.median(times) * 1e6
    return found


def fresh() -> dict[str, float]:
    x = jnp.asarray(np.ones(3, np.float32))
    return {
        "jit(lambda) made anew on every call": once(
            lambda: dt.jit(lambda v: jnp.sin(v) * 2.0 + 1.0)(x), 41
        )
    }


def rnn_loss(parameters: Any, state: Any, inputs: Any) -> Any:
    recurrent, weight, bias = parameters

    def cell(state: Any, x: Any) -> Any:
        state = jnp.tanh(state @ recurrent + x @ weight + bias)
        return state, state

    _, states = lax.scan(cell, state, inputs)
    return jnp.mean(states**2)


def loops() -> dict[str, float]:
    gradient = dt.grad(rnn_loss)
    numbers = np.random.default_rng(0)
    shapes = [(32, 32), (16, 32), (32,), (8, 32), (1000, 8, 16)]
    first, second, third, state, inputs = (
        np.asarray(0.1 * numbers.normal(size=shape), np.float32) for shape in shapes
    )
    arguments = tree_map(jnp.asarray, ((first, second, third), state, inputs))

    def staged() -> Any:
        return dt.jit(lambda *a: gradient(*a)).trace(*arguments).lower()

    compiled = staged().compile()

    def run() -> None:
        compiled(*arguments)[0].block_until_ready()

    return {
        "scan: gradient of 1,000 steps, trace and lower": once(staged),
        "scan: gradient of 1,000 steps, run": once(run, 61),
        "scan: gradient of 1,000 steps, bytes": float(
            compiled.memory_analysis().temp_size_in_bytes
        ),
    }


if __name__ == "__main__":
    groups = {
        f.__name__: f
        for f in (dispatch, small_programs, eager, sizes, tracing, size, lowering, fresh, loops)
    }
    print(json.dumps(groups[GROUP]()))
