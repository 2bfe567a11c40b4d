"""A transformer in plain JAX that learns to sort digits, trained with optax."""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from phases import phase, report, steps

phase("start")

LAYERS, HEADS, WIDTH, LENGTH, SYMBOLS = 6, 4, 64, 16, 10


def initial(key):
    def matrix(key, rows, columns):
        return jax.random.normal(key, (rows, columns)) / rows**0.5

    keys = iter(jax.random.split(key, 4 * LAYERS + 3))
    return {
        "symbols": matrix(next(keys), SYMBOLS, WIDTH),
        "places": matrix(next(keys), LENGTH, WIDTH),
        "layers": [
            {
                "qkv": matrix(next(keys), WIDTH, 3 * WIDTH),
                "out": matrix(next(keys), WIDTH, WIDTH),
                "up": matrix(next(keys), WIDTH, 4 * WIDTH),
                "down": matrix(next(keys), 4 * WIDTH, WIDTH),
                "scales": jnp.ones((2, WIDTH)),
            }
            for _ in range(LAYERS)
        ],
        "logits": matrix(next(keys), WIDTH, SYMBOLS),
    }


def normalized(x, scale):
    return scale * x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)


def attention(x, layer):
    q, k, v = jnp.split(x @ layer["qkv"], 3, axis=-1)
    q, k, v = (a.reshape(LENGTH, HEADS, -1) for a in (q, k, v))
    weights = jax.nn.softmax(jnp.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5, axis=-1)
    return jnp.einsum("hqk,khd->qhd", weights, v).reshape(LENGTH, WIDTH) @ layer["out"]


def logits_of(params, symbols):
    x = params["symbols"][symbols] + params["places"]
    for layer in params["layers"]:
        x = x + attention(normalized(x, layer["scales"][0]), layer)
        x = x + jax.nn.gelu(normalized(x, layer["scales"][1]) @ layer["up"]) @ layer["down"]
    return x @ params["logits"]


def loss_of(params, symbols):
    logits = jax.vmap(partial(logits_of, params))(symbols)
    wanted = jnp.sort(symbols, axis=-1)
    return optax.softmax_cross_entropy_with_integer_labels(logits, wanted).mean()


params = initial(jax.random.PRNGKey(0))
schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 20, 200)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
state = optimizer.init(params)
phase("set-up")


@jax.jit
def step(params, state, key):
    key, chosen = jax.random.split(key)
    symbols = jax.random.randint(chosen, (64, LENGTH), 0, SYMBOLS)
    loss, gradient = jax.value_and_grad(loss_of)(params, symbols)
    updates, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, updates), state, key, loss


def next_state(now):
    return step(*now[:3])


key = jax.random.PRNGKey(1)
lowered = step.lower(params, state, key)
phase("trace")
lowered.compile()
phase("compile")
now = next_state((params, state, key))
jax.block_until_ready(now)
phase("first step")
now = steps(next_state, now, 60, jax.block_until_ready)
report(loss=now[3])
