"""Functions of neural networks, and of functions: gradients, batches, a step of an optimiser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
from dovetail import lax
from dovetail.extend.avals import shape_of
from dovetail.extend.eager import compile_eager
from dovetail.extend.indexing import take_along
from dovetail_torchlike import tensors as t


@compile_eager
def relu(input: Any) -> Any:
    """Negative elements replaced by zero."""
    return t.maximum(input, 0)


def log_softmax(input: Any, dim: int) -> Any:
    """Logarithms of `softmax`, without its rounding."""
    shifted = t.sub(input, lax.stop_gradient(t.amax(input, dim=dim, keepdim=True)))
    return t.sub(shifted, t.log(t.sum(t.exp(shifted), dim=dim, keepdim=True)))


def softmax(input: Any, dim: int) -> Any:
    """Positive numbers whose sum along a dimension is one."""
    return t.exp(log_softmax(input, dim))


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """``input @ weight.T + bias``, with a weight of shape (outputs, inputs)."""
    product = t.matmul(input, t.permute(weight, 1, 0))
    return product if bias is None else t.add(product, bias)


def mse_loss(input: Any, target: Any) -> Any:
    """The mean of squared differences."""
    return t.mean(t.pow(t.sub(input, target), 2))


def cross_entropy(input: Any, target: Any) -> Any:
    """The mean of ``-log_softmax`` at the numbers of classes, for logits of shape (n, classes)."""
    chosen = take_along(log_softmax(input, dim=1), t.unsqueeze(target, 1), 1)
    return t.div(t.sum(chosen), -shape_of(input)[0])


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that returns the gradient of a function, as `torch.func.grad`."""
    return dt.grad(func, argnums=argnums)


def grad_and_value(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """The function that returns the gradient and the value."""
    both = dt.value_and_grad(func, argnums=argnums)
    return lambda *args: both(*args)[::-1]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """A function mapped over a dimension of its arguments."""
    return dt.vmap(func, in_axes=in_dims, out_axes=out_dims)


def sgd(params: Any, grads: Any, lr: float) -> Any:
    """Parameters, a tree of tensors, after a step of gradient descent."""
    return dt.tree.map(lambda p, g: t.sub(p, t.mul(g, lr)), params, grads)
