"""A neural differential equation: diffrax and equinox fit a spiral."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from phases import phase, report, steps

phase("start")


class Field(eqx.Module):
    """The right-hand side: a small network."""

    network: eqx.nn.MLP

    def __call__(self, t, y, args):
        return self.network(y)


def solve(field, y0, times):
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        t0=times[0],
        t1=times[-1],
        dt0=times[1] - times[0],
        y0=y0,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-5),
    )
    return solution.ys


times = jnp.linspace(0.0, 5.0, 50)
matrix = jnp.array([[-0.1, 2.0], [-2.0, -0.1]])
starts = jax.random.uniform(jax.random.PRNGKey(0), (32, 2), minval=-2.0, maxval=2.0)
curves = jax.vmap(lambda y0: jax.vmap(lambda t: jax.scipy.linalg.expm(matrix * t) @ y0)(times))(
    starts
)
field = Field(eqx.nn.MLP(2, 2, 32, 2, activation=jax.nn.softplus, key=jax.random.PRNGKey(1)))
optimizer = optax.adam(3e-3)
state = optimizer.init(eqx.filter(field, eqx.is_inexact_array))
phase("set-up")


@eqx.filter_value_and_grad
def loss_of(field, starts, curves):
    return jnp.mean((jax.vmap(lambda y0: solve(field, y0, times))(starts) - curves) ** 2)


@eqx.filter_jit
def step(field, state, starts, curves):
    loss, gradient = loss_of(field, starts, curves)
    updates, state = optimizer.update(gradient, state)
    return eqx.apply_updates(field, updates), state, loss


def next_state(now):
    return step(now[0], now[1], starts, curves)


lowered = step.lower(field, state, starts, curves)
phase("trace")
lowered.compile()
phase("compile")
now = next_state((field, state, None))
jax.block_until_ready(now[2])
phase("first step")
now = steps(next_state, now, 40, lambda now: jax.block_until_ready(now[2]))
report(loss=now[2])
