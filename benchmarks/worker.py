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
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

FRAMEWORK, GROUP = sys.argv[1], sys.argv[2]
dt = import_module(FRAMEWORK)
jnp = import_module(f"{FRAMEWORK}.numpy")
lax = import_module(f"{FRAMEWORK}.lax")
nn = import_module(f"{FRAMEWORK}.nn")
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


def dispatch() -> dict[str, float]:
    x = jnp.asarray(np.float32(1.0))
    y = jnp.asarray(np.float32(2.0))
    leaves = [jnp.asarray(np.full(3, i, np.float32)) for i in range(10)]
    add = dt.jit(lambda a, b: a + b)
    ten = dt.jit(lambda t: [v + 1.0 for v in t])
    return {
        "jit: scalar add": microseconds(lambda: add(x, y)),
        "jit: list of 10 leaves": microseconds(lambda: ten(leaves), 100),
    }


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

    return {
        f"trace: {count:,} equations in a row": once(
            lambda count=count: dt.make_jaxpr(chain(count))(vector), 3
        )
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
    groups = {f.__name__: f for f in (dispatch, eager, tracing, size, lowering, fresh, loops)}
    print(json.dumps(groups[GROUP]()))
