"""dovetail.example_libraries: layers and optimisers, with JAX's parameters and steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import nn, random
from dovetail.example_libraries import optimizers, stax

pytestmark = pytest.mark.laws

KEY = random.key(0)
IMAGES = np.random.default_rng(0).normal(size=(2, 8, 8, 3)).astype("float32")

DECAYING = optimizers.exponential_decay(0.1, 10, 0.5)
#: Optimisers, and the sum of magnitudes of 17 parameters after five steps in JAX 0.12.
OPTIMISERS: dict[str, tuple[optimizers.Optimizer, float]] = {
    "sgd": (optimizers.sgd(DECAYING), 11.713760375976562),
    "momentum": (optimizers.momentum(0.1, 0.9), 13.142457962036133),
    "nesterov": (optimizers.nesterov(0.1, 0.9), 13.358320236206055),
    "adagrad": (optimizers.adagrad(0.1), 11.962861061096191),
    "adagrad of a schedule": (optimizers.adagrad(DECAYING, 0.5), 12.043540954589844),
    "rmsprop": (optimizers.rmsprop(0.1), 12.716176986694336),
    "rmsprop_momentum": (optimizers.rmsprop_momentum(0.1, 0.8, 1e-6, 0.7), 14.649365425109863),
    "adam": (optimizers.adam(0.1), 12.411623001098633),
    "adam of a schedule": (optimizers.adam(DECAYING, 0.8, 0.99, 1e-5), 12.330461502075195),
    "adamax": (optimizers.adamax(0.1), 12.414487838745117),
    "sm3": (optimizers.sm3(0.1), 11.978842735290527),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_five_steps(name: str) -> None:
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return rng.normal(size=shape).astype("float32")

    parameters = {"a": drawn(3, 4), "b": (drawn(5),)}
    gradients = [{"a": drawn(3, 4) * (drawn(3, 4) > 0), "b": (drawn(5),)} for _ in range(5)]
    (init, update, params), total = OPTIMISERS[name]
    step = dt.jit(update)
    state = init(parameters)
    for i, gradient in enumerate(gradients):
        # A state survives being taken apart.
        state = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
        state = step(i, gradient, state)
    found = dt.jit(params)(state)
    assert dt.tree.structure(found) == dt.tree.structure(parameters)
    assert all(x.dtype == "float32" for x in dt.tree.leaves(found))
    np.testing.assert_allclose(sum(abs(x).sum() for x in dt.tree.leaves(found)), total, rtol=1e-6)


def test_schedules() -> None:
    steps = np.array([0, 3, 4, 7, 25])
    for schedule, wanted in (
        (optimizers.constant(0.1), np.full(5, 0.1)),
        (optimizers.make_schedule(np.float32(0.1)), np.full(5, 0.1)),
        (DECAYING, 0.1 * 0.5 ** (steps / 10)),
        (optimizers.inverse_time_decay(0.1, 10, 0.5), 0.1 / (1 + 0.05 * steps)),
        (optimizers.inverse_time_decay(0.1, 10, 0.5, True), [0.1, 0.1, 0.1, 0.1, 0.05]),
        (
            optimizers.polynomial_decay(0.1, 10, 0.01, 2.0),
            0.09 * np.maximum(0, 1 - steps / 10) ** 2 + 0.01,
        ),
        (optimizers.piecewise_constant([3, 6], [1.0, 2.0, 3.0]), [1, 1, 2, 3, 3]),
    ):
        np.testing.assert_allclose([schedule(int(i)) for i in steps], wanted, rtol=1e-6)
        np.testing.assert_allclose(dt.jit(schedule)(7), wanted[3], rtol=1e-6)


def test_norms_and_clipping() -> None:
    tree = {"a": jnp.array([3, 4], "bfloat16"), "b": [jnp.float32(12)]}
    assert float(optimizers.l2_norm(tree)) == 13
    assert float(optimizers.l2_norm([])) == 0
    assert optimizers.l2_norm([jnp.array([3j, 4])]).dtype == "float32"
    kept = optimizers.clip_grads(tree, 14.0)
    assert dt.tree.map(float, kept["b"]) == [12]
    clipped = optimizers.clip_grads(tree, 6.5)
    assert clipped["a"].dtype == "bfloat16"
    np.testing.assert_allclose(clipped["b"][0], 6)
    np.testing.assert_array_equal(optimizers.clip_grads([jnp.zeros(2)], 1.0)[0], [0, 0])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: optimizers.make_schedule("a"), TypeError, "make_schedule"),
        (lambda: optimizers.sgd(jnp.ones(2)), TypeError, "make_schedule"),
        (lambda: optimizers.piecewise_constant([3], [1.0]), ValueError, "one element less"),
        (lambda: optimizers.piecewise_constant(3, [1.0]), ValueError, "sequences"),
        (lambda: optimizers.pack_optimizer_state([1.0]), TypeError, "JoinPoint"),
        (lambda: _step([1.0], (1.0,)), TypeError, "structure"),
        (lambda: stax.Dropout(0.5, "x"), ValueError, "mode"),
        (lambda: stax.Dropout(0.5)[1]((), IMAGES), ValueError, "needs a key"),
        (lambda: stax.Conv(3, (3,)), ValueError, "filter_shape"),
    ],
)
def test_arguments(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def _step(parameters: Any, gradients: Any) -> Any:
    init, update, _ = optimizers.sgd(0.1)
    return update(0, gradients, init(parameters))


def test_a_state_keeps_its_structure() -> None:
    @optimizers.optimizer
    def wrong() -> Any:
        return lambda x: (x, x), lambda i, g, state: state[0], lambda state: state[0]

    init, update, _ = wrong()
    with pytest.raises(TypeError, match="structure"):
        update(0, [1.0], init([1.0]))


#: Layers of images: the shape of the output, and sums of its first parameter and of its numbers in
#: JAX 0.12.
LAYERS: dict[str, tuple[stax.Layer, tuple[int, ...], float, float]] = {
    "Conv": (stax.Conv(4, (3, 3)), (2, 6, 6, 4), 1.55834, -15.66618),
    "same": (stax.Conv(4, (3, 3), (2, 2), "SAME"), (2, 4, 4, 4), 1.55834, -6.63747),
    "transposed": (stax.ConvTranspose(4, (3, 3), (2, 2)), (2, 17, 17, 4), 1.55834, -8.7179),
    "BatchNorm": (stax.BatchNorm(), (2, 8, 8, 3), 0, 0),
    "MaxPool": (stax.MaxPool((2, 2), (2, 2)), (2, 4, 4, 3), 0, 96.03536),
    "AvgPool": (stax.AvgPool((3, 3), (2, 2), "SAME"), (2, 4, 4, 3), 0, -0.55128),
    "SumPool": (stax.SumPool((2, 3), (2, 1)), (2, 4, 6, 3), 0, -43.4699),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_images(name: str) -> None:
    (init, apply), shape, weights, total = LAYERS[name]
    assert init(KEY, (-1, *IMAGES.shape[1:]))[0] == (-1, *shape[1:])
    found, params = init(KEY, IMAGES.shape)
    out = apply(params, IMAGES)
    assert found == out.shape == shape
    np.testing.assert_allclose(sum(x.sum() for x in params[:1]), weights, atol=2e-5)
    np.testing.assert_allclose(out.sum(), total, rtol=1e-5, atol=1e-4)


def test_pools_with_other_dimensions() -> None:
    turned = IMAGES.transpose(0, 3, 1, 2)
    for pool in (stax.MaxPool, stax.AvgPool):
        out = pool((3, 3), (2, 2))[1]((), IMAGES)
        again = pool((3, 3), (2, 2), "VALID", "NCHW")[1]((), turned)
        np.testing.assert_allclose(again, np.asarray(out).transpose(0, 3, 1, 2), rtol=3e-7)
    whole = np.arange(16, dtype="int32").reshape(1, 4, 4, 1)
    np.testing.assert_array_equal(
        stax.MaxPool((2, 2), (2, 2))[1]((), whole - 100).ravel(), np.array([5, 7, 13, 15]) - 100
    )


def test_keys_go_to_layers_as_in_jax() -> None:
    init, apply = stax.serial(stax.Dense(4), stax.Relu, stax.Dropout(0.5), stax.Dense(2))
    shape, params = init(KEY, (2, 3))
    assert shape == (2, 2)
    figures = [float(x.sum()) for x in dt.tree.leaves(params)]
    np.testing.assert_allclose(figures, [-0.352508, -0.023794, -0.678115, 0.001115], atol=1e-6)
    first, second = params[0], params[3]
    x = np.random.default_rng(0).normal(size=(2, 3)).astype("float32")
    np.testing.assert_allclose(apply(params, x, rng=random.key(5)).sum(), -0.065842, atol=1e-6)
    keep = random.bernoulli(random.split(random.key(5), 4)[2], 0.5, (2, 4))
    hidden = jnp.where(keep, nn.relu(x @ first[0] + first[1]) / 0.5, 0)
    np.testing.assert_allclose(
        apply(params, x, rng=random.key(5)), hidden @ second[0] + second[1], atol=1e-6
    )

    dropouts = stax.parallel(stax.Dropout(0.5), stax.Dropout(0.5))
    init, apply = stax.serial(stax.FanOut(2), dropouts, stax.FanInConcat())
    shape, params = init(KEY, (20, 30))
    assert shape == (20, 60)
    numbers = np.random.default_rng(0).normal(size=(20, 30)).astype("float32")
    total = dt.jit(apply)(params, numbers, rng=random.key(5)).sum()
    np.testing.assert_allclose(total, -5.334157, atol=1e-4)

    branches = stax.parallel(stax.Dense(4), stax.shape_dependent(lambda s: stax.Dense(s[-1] + 1)))
    init, apply = stax.serial(stax.FanOut(2), branches, stax.FanInSum)
    shape, params = init(KEY, (2, 3))
    assert shape == apply(params, x).shape == (2, 4)
    slopes = dt.grad(lambda p: apply(p, x).sum())(params)
    np.testing.assert_allclose(slopes[1][0][1], np.full(4, 2.0))
    np.testing.assert_allclose(slopes[1][0][0], np.repeat(x.sum(0)[:, None], 4, 1), rtol=1e-5)


def test_elementwise_layers() -> None:
    x = np.linspace(-2, 2, 9, dtype="float32")
    for layer, function in (
        (stax.Relu, nn.relu),
        (stax.Tanh, jnp.tanh),
        (stax.Exp, jnp.exp),
        (stax.Sigmoid, nn.sigmoid),
        (stax.Softplus, nn.softplus),
        (stax.Elu, nn.elu),
        (stax.LeakyRelu, nn.leaky_relu),
        (stax.Selu, nn.selu),
        (stax.Gelu, nn.gelu),
        (stax.Softmax, nn.softmax),
        (stax.LogSoftmax, nn.log_softmax),
        (stax.Identity, lambda x: x),
    ):
        assert layer[0](KEY, (9,)) == ((9,), ())
        np.testing.assert_array_equal(layer[1]((), x), function(x))
    assert stax.Flatten[0](KEY, (-1, 2, 3))[0] == (-1, 6)
    assert stax.Flatten[1]((), IMAGES).shape == (2, 192)
    kept = stax.Dropout(0.5, "test")[1]((), x, rng=KEY)
    np.testing.assert_array_equal(kept, x)
