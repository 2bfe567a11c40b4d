"""A convolutional network of flax.linen on handwritten digits, trained with optax."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState
from phases import phase, report, steps
from sklearn.datasets import load_digits

phase("start")


class Network(nn.Module):
    """Two convolutions and two layers, with dropout."""

    @nn.compact
    def __call__(self, x, train: bool):
        for features in (16, 32):
            x = nn.Conv(features, (3, 3))(x)
            x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = nn.relu(nn.Dense(64)(x.reshape(x.shape[0], -1)))
        x = nn.Dropout(0.1, deterministic=not train)(x)
        return nn.Dense(10)(x)


class State(TrainState):
    """What is trained, and the averages of batch normalization."""

    averages: dict


digits = load_digits()
images = jnp.asarray(digits.images[..., None] / 16, jnp.float32)
labels = jnp.asarray(digits.target)
network = Network()
variables = network.init(jax.random.PRNGKey(0), images[:2], train=False)
state = State.create(
    apply_fn=network.apply,
    params=variables["params"],
    averages=variables["batch_stats"],
    tx=optax.adamw(1e-3),
)
phase("set-up")


@jax.jit
def step(state, images, labels):
    key = jax.random.fold_in(jax.random.PRNGKey(1), state.step)

    def loss_of(params):
        logits, changed = state.apply_fn(
            {"params": params, "batch_stats": state.averages},
            images,
            train=True,
            mutable=["batch_stats"],
            rngs={"dropout": key},
        )
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return loss, changed["batch_stats"]

    (loss, averages), gradient = jax.value_and_grad(loss_of, has_aux=True)(state.params)
    return state.apply_gradients(grads=gradient).replace(averages=averages), loss


def next_state(now):
    return step(now[0], images[:256], labels[:256])


lowered = step.lower(state, images[:256], labels[:256])
phase("trace")
lowered.compile()
phase("compile")
now = next_state((state, None))
jax.block_until_ready(now)
phase("first step")
now = steps(next_state, now, 60, jax.block_until_ready)
logits = network.apply(
    {"params": now[0].params, "batch_stats": now[0].averages}, images, train=False
)
report(loss=now[1], accuracy=(logits.argmax(-1) == labels).mean())
