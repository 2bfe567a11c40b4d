"""What a fresh installation of the wheels has to be able to do. Run by `nox -s wheels`; no test."""

from __future__ import annotations

import sys

import dovetail as dt
import dovetail.nn
import dovetail.numpy as jnp
import dovetail.random


def loss(weights: object, x: object, y: object) -> object:
    """Mean squared error of one layer."""
    return jnp.mean((dovetail.nn.relu(x @ weights) - y) ** 2)


key = dovetail.random.key(0)
x = dovetail.random.normal(key, (16, 4))
y = dovetail.nn.relu(jnp.sum(x, axis=1, keepdims=True))
weights = jnp.ones((4, 1)) * 0.5
step = dt.jit(lambda weights, x, y: weights - 0.1 * dt.grad(loss)(weights, x, y))
before = float(loss(weights, x, y))
for _ in range(50):
    weights = step(weights, x, y)
after = float(loss(weights, x, y))
assert after < 0.1 * before, (before, after)

squares = dt.vmap(lambda v: v @ v)(x)
assert squares.shape == (16,), squares.shape
assert dt.devices()[0].platform == "cpu"
assert "jax" not in sys.modules
assert "site-packages" in dt.__path__[0], dt.__path__
sys.stdout.write(f"{sys.version.split()[0]}: loss {before:.4f} -> {after:.4f}, {dt.devices()}\n")
