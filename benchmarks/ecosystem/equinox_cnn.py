"""A convolutional network of equinox on handwritten digits, trained with optax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from phases import phase, report, steps
from sklearn.datasets import load_digits

phase("start")


class Network(eqx.Module):
    """Two convolutions and two layers."""

    layers: list

    def __init__(self, key):
        keys = jax.random.split(key, 4)
        self.layers = [
            eqx.nn.Conv2d(1, 16, 3, padding=1, key=keys[0]),
            jax.nn.relu,
            eqx.nn.MaxPool2d(2, 2),
            eqx.nn.Conv2d(16, 32, 3, padding=1, key=keys[1]),
            jax.nn.relu,
            eqx.nn.MaxPool2d(2, 2),
            jnp.ravel,
            eqx.nn.Linear(128, 64, key=keys[2]),
            jax.nn.relu,
            eqx.nn.Linear(64, 10, key=keys[3]),
        ]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def loss_of(network, images, labels):
    logits = jax.vmap(network)(images)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


digits = load_digits()
images = jnp.asarray(digits.images[:, None] / 16, jnp.float32)
labels = jnp.asarray(digits.target)
network = Network(jax.random.PRNGKey(0))
optimizer = optax.adam(1e-3)
state = optimizer.init(eqx.filter(network, eqx.is_array))
phase("set-up")


@eqx.filter_jit
def step(network, state, images, labels):
    loss, gradient = eqx.filter_value_and_grad(loss_of)(network, images, labels)
    updates, state = optimizer.update(gradient, state, network)
    return eqx.apply_updates(network, updates), state, loss


def next_state(now):
    network, state, _ = now
    return step(network, state, images[:256], labels[:256])


lowered = step.lower(network, state, images[:256], labels[:256])
phase("trace")
lowered.compile()
phase("compile")
now = next_state((network, state, None))
jax.block_until_ready(now[2])
phase("first step")
now = steps(next_state, now, 60, lambda now: jax.block_until_ready(now[2]))
predicted = jax.jit(lambda images: jax.vmap(now[0])(images).argmax(-1))(images)
report(loss=now[2], accuracy=(predicted == labels).mean())
