"""Bayesian regression with numpyro: the No-U-Turn sampler on simulated data."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS
from phases import phase, report, steps

phase("start")

random = np.random.RandomState(0)
inputs = random.normal(size=(200, 5)).astype("float32")
true = np.array([1.0, -2.0, 0.5, 0.0, 3.0], "float32")
outputs = inputs @ true + 0.3 * random.normal(size=200).astype("float32")


def model(inputs, outputs=None):
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    weights = numpyro.sample("weights", dist.Normal(0, 2).expand([5]).to_event(1))
    with numpyro.plate("data", inputs.shape[0]):
        numpyro.sample("outputs", dist.Normal(inputs @ weights, spread), obs=outputs)


phase("set-up")
sampler = MCMC(NUTS(model), num_warmup=300, num_samples=500, progress_bar=False)
sampler.run(jax.random.PRNGKey(0), inputs, outputs)
phase("first step")


def again(_):
    sampler.run(jax.random.PRNGKey(1), inputs, outputs)
    return sampler.get_samples()


samples = steps(again, None, 3, jax.block_until_ready)
report(
    error=jnp.abs(samples["weights"].mean(0) - true).max(),
    spread=samples["spread"].mean(),
)
