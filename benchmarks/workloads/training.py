"""Training steps of small networks: a loss, its gradient, and new parameters."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from workloads.base import Workload, integers, normals

RATE = 0.01


def step(
    name: str, arguments: Callable[[], tuple[Any, ...]], loss: Any, torch_loss: Any, **others: Any
) -> Workload:
    """Gradient descent; the first argument is a list of parameters, and PyTorch has its autograd.

    Args:
        loss: of the framework and the arguments.
        torch_loss: of PyTorch and the arguments.
    """

    def function(dt: Any, parameters: Any, *data: Any) -> Any:
        gradients = dt.grad(lambda p: loss(dt, p, *data))(parameters)
        return [p - RATE * g for p, g in zip(parameters, gradients, strict=True)]

    def torch_s(torch: Any, parameters: Any, *data: Any) -> Any:
        leaves = [p.detach().requires_grad_() for p in parameters]
        gradients = torch.autograd.grad(torch_loss(torch, leaves, *data), leaves)
        with torch.no_grad():
            return [p - RATE * g for p, g in zip(leaves, gradients, strict=True)]

    return Workload(f"training step, {name}", arguments, function, None, torch_s, **others)


def _weights(*shapes: tuple[int, ...]) -> list[Any]:
    return [
        (normals(*shape, seed=i) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)
        for i, shape in enumerate(shapes)
    ]


def _labels_loss(dt: Any, logits: Any, labels: Any) -> Any:
    chosen = dt.nn.one_hot(labels, logits.shape[-1])
    return -dt.numpy.mean(dt.numpy.sum(chosen * dt.nn.log_softmax(logits), axis=-1))


def _torch_labels_loss(torch: Any, logits: Any, labels: Any) -> Any:
    return torch.nn.functional.cross_entropy(logits, labels.long())


def _network(m: Any, parameters: Any, x: Any) -> Any:
    for number in range(0, len(parameters) - 2, 2):
        x = m.tanh(x @ parameters[number] + parameters[number + 1])
    return x @ parameters[-2] + parameters[-1]


def perceptron(sizes: tuple[int, ...], batch: int) -> Workload:
    def arguments() -> tuple[Any, ...]:
        shapes = [shape for a, b in pairwise(sizes) for shape in ((a, b), (b,))]
        return _weights(*shapes), normals(batch, sizes[0]), integers(batch, high=sizes[-1])

    return step(
        f"MLP {'-'.join(map(str, sizes))}, {batch} examples",
        arguments,
        lambda dt, p, x, y: _labels_loss(dt, _network(dt.numpy, p, x), y),
        lambda torch, p, x, y: _torch_labels_loss(torch, _network(torch, p, x), y),
        tolerance=1e-3,
    )


def _convolutional(dt: Any, p: Any, x: Any, labels: Any) -> Any:
    for kernel in p[:2]:
        x = dt.lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = dt.nn.relu(x)
        x = dt.lax.reduce_window(x, -np.inf, dt.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return _labels_loss(dt, x.reshape(x.shape[0], -1) @ p[2] + p[3], labels)


def _torch_convolutional(torch: Any, p: Any, x: Any, labels: Any) -> Any:
    x = x.permute(0, 3, 1, 2)
    for kernel in p[:2]:
        x = torch.relu(torch.nn.functional.conv2d(x, kernel.permute(3, 2, 0, 1), padding=1))
        x = torch.nn.functional.max_pool2d(x, 2)
    x = x.permute(0, 2, 3, 1)
    return _torch_labels_loss(torch, x.reshape(x.shape[0], -1) @ p[2] + p[3], labels)


def convolutional(batch: int) -> Workload:
    return step(
        f"convolutional network 28x28, {batch} examples",
        lambda: (
            _weights((3, 3, 1, 16), (3, 3, 16, 32), (7 * 7 * 32, 10), (10,)),
            normals(batch, 28, 28, 1),
            integers(batch, high=10),
        ),
        _convolutional,
        _torch_convolutional,
        tolerance=1e-3,
    )


def _heads(x: Any, count: int) -> Any:
    batch, length, width = x.shape
    return x.reshape(batch, length, count, width // count).swapaxes(1, 2)


def _block(m: Any, softmax: Any, p: Any, x: Any) -> Any:
    """A transformer's block, with the same code for the three, then the mean of the squares."""
    q, k, v = (_heads(x @ weight, 4) for weight in p[:3])
    mixed = softmax(q @ k.swapaxes(-1, -2) / np.float32(q.shape[-1] ** 0.5)) @ v
    x = x + mixed.swapaxes(1, 2).reshape(x.shape) @ p[3]
    return m.mean((x + m.tanh(x @ p[4]) @ p[5]) ** 2)


def _recurrent(dt: Any, p: Any, x: Any) -> Any:
    def cell(state: Any, value: Any) -> tuple[Any, Any]:
        state = dt.numpy.tanh(state @ p[0] + value @ p[1] + p[2])
        return state, state

    start = dt.numpy.zeros((x.shape[1], p[0].shape[0]), np.float32)
    return dt.numpy.mean(dt.lax.scan(cell, start, x)[1] ** 2)


def _torch_recurrent(torch: Any, p: Any, x: Any) -> Any:
    state, states = torch.zeros(x.shape[1], p[0].shape[0]), []
    for value in x:
        state = torch.tanh(state @ p[0] + value @ p[1] + p[2])
        states.append(state)
    return (torch.stack(states) ** 2).mean()


def _embedded(dt: Any, p: Any, tokens: Any, labels: Any) -> Any:
    return _labels_loss(dt, dt.numpy.mean(p[0][tokens], axis=1) @ p[1], labels)


def _torch_embedded(torch: Any, p: Any, tokens: Any, labels: Any) -> Any:
    rows = torch.nn.functional.embedding(tokens, p[0])
    return _torch_labels_loss(torch, rows.mean(1) @ p[1], labels)


def _adam(m: Any, p: Any, g: Any, mean: Any, square: Any) -> Any:
    mean = 0.9 * mean + 0.1 * g
    square = 0.999 * square + 0.001 * g * g
    return p - 0.001 * (mean / 0.1) / (m.sqrt(square / 0.001) + 1e-8), mean, square


def _torch_adam(torch: Any, p: Any, g: Any, mean: Any, square: Any) -> Any:
    mean = torch.lerp(mean, g, 0.1)
    square = (square * 0.999).addcmul_(g, g, value=0.001)
    denominator = (square / 0.001).sqrt_().add_(1e-8)
    return torch.addcdiv(p, mean, denominator, value=-0.01), mean, square


WORKLOADS = [
    step(
        "linear regression 1e4 x 20",
        lambda: (_weights((20,)), normals(10_000, 20), normals(10_000, seed=1)),
        lambda dt, p, x, y: dt.numpy.mean((x @ p[0] - y) ** 2),
        lambda torch, p, x, y: ((x @ p[0] - y) ** 2).mean(),
    ),
    step(
        "logistic regression 1e5 x 10",
        lambda: (_weights((10,)), normals(100_000, 10), normals(100_000, seed=1)),
        lambda dt, p, x, y: dt.numpy.mean(dt.nn.softplus(-dt.numpy.sign(y) * (x @ p[0]))),
        lambda torch, p, x, y: torch.nn.functional.softplus(-torch.sign(y) * (x @ p[0])).mean(),
    ),
    perceptron((8, 16, 2), 8),
    perceptron((64, 128, 128, 10), 32),
    perceptron((784, 512, 512, 10), 128),
    convolutional(1),
    convolutional(64),
    step(
        "transformer block 4x64x128",
        lambda: (
            _weights(*[(128, 128)] * 4, (128, 512), (512, 128)),
            normals(4, 64, 128),
        ),
        lambda dt, p, x: _block(dt.numpy, lambda s: dt.nn.softmax(s, axis=-1), p, x),
        lambda torch, p, x: _block(torch, lambda s: torch.softmax(s, -1), p, x),
    ),
    step(
        "recurrent network 50 steps of 32",
        lambda: (_weights((32, 32), (16, 32), (32,)), normals(50, 8, 16)),
        _recurrent,
        _torch_recurrent,
    ),
    step(
        "embedding 10000x64, 32x20 tokens",
        lambda: (
            _weights((10_000, 64), (64, 10)),
            integers(32, 20, high=10_000),
            integers(32, high=10, seed=1),
        ),
        _embedded,
        _torch_embedded,
    ),
    Workload(
        "Adam 1e6 parameters",
        lambda: (
            normals(10**6),
            normals(10**6, seed=1),
            normals(10**6, seed=2),
            normals(10**6, seed=3) ** 2,
        ),
        lambda dt, *a: _adam(dt.numpy, *a),
        lambda *a: _adam(np, *a),
        _torch_adam,
        tolerance=1e-3,
    ),
]
