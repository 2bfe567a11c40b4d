"""What type checkers say of public functions: each `reveal_type` names the type in its comment.

`check.py` compares the comments with what mypy and pyright say; this file is never run.
"""

from __future__ import annotations

from functools import partial
from typing import TypedDict, reveal_type

import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn, random
from dovetail.typing import Array, ArrayLike, DTypeLike, ShapeLike

x = jnp.ones((2, 3))

# ---------------------------------------------------------------------- arrays and their methods

reveal_type(x)  # expect: Array
reveal_type(x + 1)  # expect: Array
reveal_type(1 - x)  # expect: Array
reveal_type(2.0**x)  # expect: Array
reveal_type(x @ x)  # expect: Array
reveal_type(-x)  # expect: Array
reveal_type(abs(x))  # expect: Array
reveal_type(x == 1)  # expect: Array
reveal_type(x < x)  # expect: Array
reveal_type(divmod(x, 2))  # expect: tuple[Array, Array]
reveal_type(x[0])  # expect: Array
reveal_type(x[..., None, 1:])  # expect: Array
reveal_type(x[x > 0])  # expect: Array
reveal_type(x.T)  # expect: Array
reveal_type(x.sum())  # expect: Array
reveal_type(x.mean(axis=0, keepdims=True))  # expect: Array
reveal_type(x.reshape(3, -1))  # expect: Array
reveal_type(x.astype("int8"))  # expect: Array
reveal_type(x.at[0].set(1.0))  # expect: Array
reveal_type(x.at[0, 1:].get(mode="fill", fill_value=0))  # expect: Array
reveal_type(x.nonzero())  # expect: tuple[Array, ...]
reveal_type(x.shape)  # expect: tuple[int, ...]
reveal_type(x.ndim)  # expect: int
reveal_type(list(x))  # expect: list[Array]
reveal_type(float(x))  # expect: float
x.no_such_method()  # error
x.sum(axis="rows")  # error
x + "text"  # error
x.at[0].set("text")  # error

# ------------------------------------------------------------------------------ dovetail.numpy

reveal_type(jnp.sin(1.0))  # expect: Array
reveal_type(jnp.add(x, np.ones(3)))  # expect: Array
reveal_type(jnp.add.reduce(x))  # expect: Array
reveal_type(jnp.array([[1, 2], [3, 4]], dtype=jnp.float32))  # expect: Array
reveal_type(jnp.zeros(3, dtype=x.dtype))  # expect: Array
reveal_type(jnp.concatenate([x, x]))  # expect: Array
reveal_type(jnp.split(x, 3, axis=1))  # expect: list[Array]
reveal_type(jnp.where(x > 0))  # expect: tuple[Array, ...]
reveal_type(jnp.where(x > 0, x, 0))  # expect: Array
reveal_type(jnp.unique(x))  # expect: Array
reveal_type(jnp.unique(x, return_index=True))  # expect: tuple[Array, ...]
reveal_type(jnp.linspace(0, 1, 5))  # expect: Array
reveal_type(jnp.linspace(0, 1, 5, retstep=True))  # expect: tuple[Array, Array]
reveal_type(jnp.atleast_1d(1))  # expect: Array
reveal_type(jnp.atleast_2d(1, 2))  # expect: list[Array]
reveal_type(jnp.linalg.solve(x, x))  # expect: Array
reveal_type(jnp.linalg.svd(x))  # expect: SVDResult
reveal_type(jnp.linalg.svd(x, compute_uv=False))  # expect: Array
reveal_type(jnp.linalg.eigh(x).eigenvalues)  # expect: Array
reveal_type(jnp.fft.fft(x, n=4))  # expect: Array
jnp.sin("text")  # error
jnp.sin([1.0, 2.0])  # error
jnp.sum(x, axis=1.5)  # error
jnp.zeros("three")  # error

# -------------------------------------------------------------------------- lax, nn and random

reveal_type(lax.add(x, 1.0))  # expect: Array
reveal_type(lax.linalg.cholesky(x))  # expect: Array
reveal_type(lax.sort(x))  # expect: Array
reveal_type(lax.sort([x, x], num_keys=2))  # expect: tuple[Array, ...]
reveal_type(lax.stop_gradient({"a": x}))  # expect: dict[str, Array]
reveal_type(lax.while_loop(lambda n: n < 10, lambda n: 2 * n, 1))  # expect: Array (mypy: Any)
reveal_type(lax.fori_loop(0, 3, lambda i, y: y + i, x))  # expect: Array (mypy: Any)


def step(total: Array, item: Array) -> tuple[Array, dict[str, Array]]:
    """A step of a loop."""
    return total + item, {"total": total}


def pair(i: int, value: tuple[Array, Array]) -> tuple[Array, Array]:
    """Another one."""
    return value[1], value[0] + i


reveal_type(lax.scan(step, 0.0, x))  # expect: tuple[Array, dict[str, Array]]
reveal_type(lax.fori_loop(0, 3, pair, (x, x)))  # expect: tuple[Array, Array]
reveal_type(lax.fori_loop(0, 3, pair, (0, 1)))  # expect: tuple[Array, Array]
reveal_type(lax.cond(x[0, 0] > 0, lambda y: jnp.sin(y), lambda y: jnp.cos(y), x))  # expect: Array
reveal_type(nn.relu(x))  # expect: Array
reveal_type(nn.logsumexp(x, return_sign=True))  # expect: tuple[Array, Array]
key = random.key(0)
reveal_type(key)  # expect: Array
reveal_type(random.split(key))  # expect: Array
reveal_type(random.normal(key, (3,), jnp.bfloat16))  # expect: Array
random.normal(0, (3,))  # error

# ------------------------------------------------------------------------------ transformations


class Parameters(TypedDict):
    """A tree of arrays."""

    weight: Array
    bias: Array


def loss(parameters: Parameters, inputs: Array, scale: float = 1.0) -> Array:
    """A scalar."""
    return (inputs @ parameters["weight"] + parameters["bias"]).sum() * scale


parameters: Parameters = {"weight": x, "bias": x}
reveal_type(dt.jit(loss)(parameters, x))  # expect: Array
reveal_type(dt.jit(loss)(parameters, x, scale=2.0))  # expect: Array
reveal_type(dt.jit(loss).lower(parameters, x).compile())  # expect: Compiled
reveal_type(dt.vmap(loss)(parameters, x))  # expect: Array
reveal_type(dt.checkpoint(loss)(parameters, x))  # expect: Array
reveal_type(dt.named_call(loss, name="loss")(parameters, x))  # expect: Array
reveal_type(dt.value_and_grad(loss)(parameters, x))  # expect: tuple[Array, Any]
reveal_type(dt.jvp(jnp.sin, (x,), (x,)))  # expect: tuple[Array, Array]
reveal_type(dt.linearize(jnp.sin, x)[0])  # expect: Array
reveal_type(dt.vjp(jnp.sin, x)[0])  # expect: Array
reveal_type(dt.vjp(jnp.sin, x)[1])  # expect: Pullback
reveal_type(dt.make_jaxpr(loss)(parameters, x))  # expect: ClosedJaxpr
reveal_type(dt.device_put(1.0))  # expect: Array
reveal_type(dt.device_put(parameters))  # expect: Parameters
reveal_type(dt.block_until_ready(parameters))  # expect: Parameters
reveal_type(dt.tree.map(jnp.sin, parameters))  # expect: Parameters
dt.jit(loss)(parameters)  # error
dt.jit(loss)(parameters, x, scales=2.0)  # error
dt.grad(loss)(parameters)  # error
dt.vmap(loss)(parameters, x, 1.0, 2.0)  # error
dt.hessian(loss)("text", x)  # error


@dt.jit
def doubled(y: Array) -> Array:
    """Decorated."""
    return y + y


@dt.jit(static_argnames="times")
def repeated(y: Array, times: int) -> Array:
    """Decorated with options."""
    return jnp.tile(y, times)


@partial(dt.jit, static_argnames="times")
def repeated_too(y: Array, times: int) -> Array:
    """Decorated with options, as it was written before."""
    return jnp.tile(y, times)


class Layer:
    """Methods are decorated as functions are."""

    @dt.jit
    def __call__(self, y: Array) -> Array:
        """Compiled."""
        return y

    @dt.jit(static_argnums=0)
    def apply(self, y: Array, scale: float = 1.0) -> Array:
        """Compiled, with options."""
        return y * scale

    @dt.checkpoint
    def forget(self, y: Array) -> Array:
        """Rematerialized."""
        return y


reveal_type(doubled(x))  # expect: Array
reveal_type(repeated(x, times=2))  # expect: Array
reveal_type(repeated_too(x, times=2))  # expect: Array (mypy: Any)
reveal_type(Layer().apply(x, scale=2.0))  # expect: Array
reveal_type(Layer()(x))  # expect: Array
reveal_type(Layer().forget(x))  # expect: Array
doubled("text")  # error
repeated(x)  # error
Layer().apply("text")  # error
Layer().forget()  # error


@dt.custom_jvp
def cubed(y: Array, offset: float) -> Array:
    """With a rule of its own."""
    return y**3 + offset


@dt.custom_vjp
def halved(y: Array) -> Array:
    """With a rule of its own."""
    return y / 2


@dt.custom_batching.custom_vmap
def summed(y: Array) -> Array:
    """With a rule of its own."""
    return y.sum()


@dt.custom_gradient
def squared(y: Array) -> tuple[Array, object]:
    """With its backward pass."""
    return y * y, lambda cotangent: 2 * y * cotangent


reveal_type(cubed(x, 1.0))  # expect: Array
reveal_type(halved(x))  # expect: Array
reveal_type(summed(x))  # expect: Array
reveal_type(squared(x))  # expect: Array
cubed(x)  # error
halved("text")  # error
summed(x, x)  # error


# --------------------------------------------------------------------------------------- memory

space: dt.memory.Space = dt.memory.Space.Host
reveal_type(dt.memory().bytes)  # expect: int
reveal_type(dt.memory("cpu").lines[0].source)  # expect: str
reveal_type(dt.jit(abs).lower(x).memory().peak_bytes)  # expect: int
dt.memory(3)  # error


# -------------------------------------------------------------------------------- dovetail.typing


def normalized(value: ArrayLike, dtype: DTypeLike | None = None, shape: ShapeLike = ()) -> Array:
    """A function of one's own."""
    return jnp.broadcast_to(jnp.asarray(value, dtype), shape)


reveal_type(normalized(1))  # expect: Array
reveal_type(normalized(np.float32(1), jnp.bfloat16, (2, 3)))  # expect: Array
reveal_type(normalized(x, "float32", 3))  # expect: Array
normalized(None)  # error
