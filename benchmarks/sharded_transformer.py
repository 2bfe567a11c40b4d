"""A training step of a transformer by `shard_map`, for either framework."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

LAYERS, WIDTH, HEADS, BATCH, LENGTH, WORDS = 4, 64, 4, 4, 16, 128
RATE = 0.1


def step_of(framework: Any) -> tuple[Callable[[], Any], tuple[Any, Any]]:
    """A function that makes a new step each time, and the arguments of a step.

    Its mesh is 2 by 4: the batch is divided over the first axis, matrices over the second.

    Args:
        framework: its module.
    """
    name = framework.__name__
    jnp, lax, nn = (import_module(f"{name}.{part}") for part in ("numpy", "lax", "nn"))
    sharding = import_module(f"{name}.sharding")
    spec = sharding.PartitionSpec
    devices = np.array(framework.devices()).reshape(2, 4)
    mesh = sharding.Mesh(devices, ("data", "model"))
    rng = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> np.ndarray[Any, Any]:
        return (0.1 * rng.normal(size=(rows, columns))).astype(np.float32)

    layers = [
        {n: matrix(WIDTH, WIDTH) for n in ("q", "k", "v", "o")}
        | {"up": matrix(WIDTH, 4 * WIDTH), "down": matrix(4 * WIDTH, WIDTH)}
        for _ in range(LAYERS)
    ]
    params = {"layers": layers, "words": matrix(WORDS, WIDTH)}
    over = {n: spec(None, "model") for n in ("q", "k", "v", "up")}
    over |= {n: spec("model") for n in ("o", "down")}
    specs = {"layers": [over] * LAYERS, "words": spec()}

    def normalized(x: Any) -> Any:
        return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def block(p: Any, x: Any) -> Any:
        h = normalized(x)
        q, k, v = ((h @ p[n]).reshape(*h.shape[:2], -1, WIDTH // HEADS) for n in ("q", "k", "v"))
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(WIDTH // HEADS)
        past = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        weights = nn.softmax(jnp.where(past, scores, -1e9), -1)
        seen = jnp.einsum("bhts,bshd->bthd", weights, v).reshape(*h.shape[:2], -1)
        x = x + lax.psum(seen @ p["o"], "model")
        return x + lax.psum(nn.gelu(normalized(x) @ p["up"]) @ p["down"], "model")

    def loss(params: Any, tokens: Any) -> Any:
        x = params["words"][tokens]
        for layer in params["layers"]:
            x = block(layer, x)
        logits = nn.log_softmax(x[:, :-1] @ params["words"].T)
        picked = jnp.take_along_axis(logits, tokens[:, 1:, None], -1)
        return lax.pmean(-picked.mean(), "data")

    def make() -> Any:
        def step(params: Any, tokens: Any) -> tuple[Any, Any]:
            value, slopes = framework.value_and_grad(loss)(params, tokens)
            return value, framework.tree.map(lambda p, s: p - RATE * s, params, slopes)

        mapped = framework.shard_map(
            step, mesh=mesh, in_specs=(specs, spec("data")), out_specs=(spec(), specs)
        )
        return framework.jit(mapped)

    tokens = rng.integers(0, WORDS, (BATCH, LENGTH)).astype(np.int32)
    return make, (params, tokens)


def eager_of(framework: Any) -> Callable[[], Any]:
    """A call of `shard_map` outside of `jit`: a product of divided matrices.

    Args:
        framework: its module.
    """
    name = framework.__name__
    jnp, lax = import_module(f"{name}.numpy"), import_module(f"{name}.lax")
    sharding = import_module(f"{name}.sharding")
    spec = sharding.PartitionSpec
    mesh = sharding.Mesh(np.array(framework.devices()).reshape(2, 4), ("data", "model"))
    product = framework.shard_map(
        lambda x, w: lax.psum(jnp.tanh(x @ w), "model"),
        mesh=mesh,
        in_specs=(spec("data", "model"), spec("model")),
        out_specs=spec("data"),
    )
    x, w = jnp.ones((8, 16)), jnp.ones((16, 8))
    return lambda: product(x, w)
