"""Logistic regression sampled with blackjax: window adaptation, then the No-U-Turn sampler."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from phases import phase, report, steps

phase("start")

random = np.random.RandomState(0)
inputs = random.normal(size=(300, 8)).astype("float32")
true = np.linspace(-2, 2, 8).astype("float32")
outputs = (random.uniform(size=300) < 1 / (1 + np.exp(-inputs @ true))).astype("float32")


def log_density(weights):
    logits = inputs @ weights
    prior = -0.5 * jnp.sum(weights**2) / 4
    return prior + jnp.sum(outputs * logits - jax.nn.softplus(logits))


phase("set-up")


@jax.jit
def sample(key):
    warm_up_key, sample_key = jax.random.split(key)
    adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, parameters), _ = adaptation.run(warm_up_key, jnp.zeros(8), num_steps=300)
    kernel = blackjax.nuts(log_density, **parameters)

    def one(state, key):
        state, _ = kernel.step(key, state)
        return state, state.position

    return jax.lax.scan(one, state, jax.random.split(sample_key, 500))[1]


lowered = sample.lower(jax.random.PRNGKey(0))
phase("trace")
lowered.compile()
phase("compile")
positions = sample(jax.random.PRNGKey(0))
jax.block_until_ready(positions)
phase("first step")
positions = steps(lambda _: sample(jax.random.PRNGKey(1)), None, 5, jax.block_until_ready)
report(error=jnp.abs(positions.mean(0) - true).mean(), spread=positions.std(0).mean())
