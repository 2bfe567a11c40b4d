"""Making tensors, arithmetic, reductions, shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail import lax
from dovetail.extend import arguments, dtypes, random_keys, unchecked
from dovetail.extend.arguments import array_like, canonical_axes, canonical_axis, value
from dovetail.extend.arrays import checked_ndarray
from dovetail.extend.avals import shape_of
from dovetail.extend.eager import compile_eager

Dim = int | Sequence[int] | None


def tensor(data: Any, *, dtype: Any = None) -> Any:
    """Numbers, or nested lists of them, as a tensor; floats have 32 bits by default."""
    if isinstance(data, (list, tuple, bool, int, float, complex)):
        data = checked_ndarray(np.asarray(data), "the data of tensor")
    target = arguments.requested_dtype("tensor", dtype)
    data = array_like(data, "tensor", "data")
    return value(data if target is None else arguments.convert(data, target))


def zeros(*size: int, dtype: Any = None) -> Any:
    """A tensor of zeros."""
    return _filled("zeros", size, 0, dtype)


def ones(*size: int, dtype: Any = None) -> Any:
    """A tensor of ones."""
    return _filled("ones", size, 1, dtype)


def _filled(function: str, size: tuple[int, ...], number: int, dtype: Any) -> Any:
    target = arguments.requested_dtype(function, dtype) or dtypes.default_dtype("f")
    return unchecked.full(arguments.canonical_shape(function, size, "size"), number, target)


def arange(end: int, *, dtype: Any = None) -> Any:
    """The numbers from 0 up to but without `end`."""
    target = arguments.requested_dtype("arange", dtype) or dtypes.default_dtype("i")
    return unchecked.iota_like(target, arguments.canonical_shape("arange", end, "end"), 0)


def manual_seed(seed: int) -> Any:
    """A key of random numbers. There is no global generator: functions take a key."""
    return random_keys.seed(seed, random_keys.implementation_of("threefry2x32"))


def split(key: Any, count: int = 2) -> Any:
    """Keys that are independent of each other."""
    keys = random_keys.split(key, (count,))
    return tuple(lax.index_in_dim(keys, i, keepdims=False) for i in range(count))


def rand(key: Any, *size: int) -> Any:
    """Numbers from 0 up to 1, in float32."""
    bits = random_keys.random_bits(key, 32, arguments.canonical_shape("rand", size, "size"))
    return lax.mul(lax.convert_element_type(lax.shift_right_logical(bits, 8), "float32"), 2.0**-24)


def randn(key: Any, *size: int) -> Any:
    """Normally distributed numbers, in float32."""
    centred = lax.sub(lax.mul(rand(key, *size), 2.0), 1.0 - 2**-24)
    return lax.mul(lax.erf_inv(centred), math.sqrt(2))


def _unary(name: str, function: Callable[[Any], Any]) -> Any:
    return compile_eager(lambda x: function(value(arguments.inexact(name, x, "input"))), name=name)


def _binary(name: str, function: Callable[[Any, Any], Any], floating: bool = False) -> Any:
    operands = arguments.inexact_pair if floating else arguments.promoted_pair
    return compile_eager(lambda x, y: value(function(*operands(name, x, y))), name=name)


exp, log, sqrt, tanh = (_unary(n, getattr(lax, n)) for n in ("exp", "log", "sqrt", "tanh"))
sigmoid = _unary("sigmoid", lax.logistic)
add, sub, mul = (_binary(n, getattr(lax, n)) for n in ("add", "sub", "mul"))
eq, ne, lt = (_binary(n, getattr(lax, n)) for n in ("eq", "ne", "lt"))
div, pow = (_binary(n, getattr(lax, n), floating=True) for n in ("div", "pow"))
maximum, minimum = _binary("maximum", lax.max), _binary("minimum", lax.min)


@compile_eager
def matmul(input: Any, other: Any) -> Any:
    """The product of matrices, or of stacks of as many of them; vectors are rows on the left."""
    operands = array_like(input, "matmul", "input"), array_like(other, "matmul", "other")
    x, y = arguments.same_dtype(operands, "matmul")
    m, n = len(shape_of(x)), len(shape_of(y))
    if not m or not n:
        raise TypeError("matmul takes no scalars; write mul(input, other)")
    batch = tuple(range(n - 2)) if m > 2 else ()
    return lax.dot_general(x, y, (((m - 1,), (max(n - 2, 0),)), (batch, batch)))


def _reduction(name: str, function: Callable[[Any, tuple[int, ...]], Any]) -> Any:
    def call(input: Any, dim: Dim = None, keepdim: bool = False) -> Any:
        x = value(array_like(input, name, "input"))
        dims = canonical_axes(name, dim, len(shape_of(x)), "dim")
        result = function(x, dims)
        return lax.expand_dims(result, dims) if keepdim else result

    return compile_eager(call, name=name, static_argnums=(1, 2), static_argnames=("dim", "keepdim"))


def _mean(x: Any, dims: tuple[int, ...]) -> Any:
    x = arguments.inexact("mean", x, "input")
    return lax.div(lax.reduce_sum(x, dims), float(math.prod(shape_of(x)[d] for d in dims)))


sum, mean = _reduction("sum", lax.reduce_sum), _reduction("mean", _mean)
amax, amin = _reduction("amax", lax.reduce_max), _reduction("amin", lax.reduce_min)


def argmax(input: Any, dim: int) -> Any:
    """The position of the largest element along a dimension."""
    place = canonical_axis("argmax", dim, len(shape_of(input)), "dim")
    return lax.argmax(input, place, dtypes.default_dtype("i"))


def numel(input: Any) -> int:
    """The number of elements."""
    return math.prod(shape_of(input))


def reshape(input: Any, *shape: int) -> Any:
    """The same elements in another shape; one size may be -1."""
    known = math.prod(n for n in shape if n != -1)
    return lax.reshape(input, tuple(numel(input) // max(known, 1) if n == -1 else n for n in shape))


def permute(input: Any, *dims: int) -> Any:
    """The dimensions in another order."""
    return lax.transpose(input, canonical_axes("permute", dims, len(shape_of(input)), "dims"))


def unsqueeze(input: Any, dim: int) -> Any:
    """A new dimension of size one."""
    place = canonical_axis("unsqueeze", dim, len(shape_of(input)) + 1, "dim")
    return lax.expand_dims(input, (place,))


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Tensors one after another along a dimension."""
    values = arguments.same_dtype(arguments.array_sequence(tensors, "cat", "tensors"), "cat")
    return lax.concatenate(values, canonical_axis("cat", dim, len(shape_of(values[0])), "dim"))
