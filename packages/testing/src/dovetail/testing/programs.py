"""Programs for testing a backend's transformations: small, and of every kind.

They use `dovetail.lax` alone, because the core has no array operators. All are smooth where they
are evaluated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import dovetail as dt
from dovetail import lax

__all__ = ["PROGRAMS", "Program", "loss"]

_RANDOM: Final = np.random.default_rng(0)


def _numbers(*shape: int, scale: float = 0.7) -> np.ndarray[Any, Any]:
    return _RANDOM.uniform(-scale, scale, shape)


def _positive(*shape: int) -> np.ndarray[Any, Any]:
    return _RANDOM.uniform(0.3, 1.7, shape)


_BALL: Final = _numbers(4, 4)


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """A function and its arguments.

    Attributes:
        function: from as many arrays or trees of arrays as there are arguments, to one array or a
            tree of them.
        args: trees of NumPy arrays of float64.
        forward: whether it has forward-mode derivatives.
        reverse: whether it has reverse-mode derivatives.
        tolerance: the allowed error compared with the reference, as a multiple of what a backend's
            precision allows for other programs.
        needs: capabilities that a backend needs for it.
        essential: whether it belongs to the level ``essential``.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    forward: bool = True
    reverse: bool = True
    tolerance: float = 1.0
    needs: tuple[str, ...] = ()
    essential: bool = False


def loss(function: Callable[..., Any]) -> Callable[..., Any]:
    """A number computed from all results of a function, each element with its own weight."""

    def total(*args: Any) -> Any:
        sums = []
        for number, leaf in enumerate(dt.tree.leaves(function(*args))):
            flat = lax.reshape(leaf, (leaf.size,))
            weights = lax.convert_element_type(lax.iota(np.int32, leaf.size), leaf.dtype)
            weights = lax.cos(lax.add(weights, 0.3 + number))
            product = lax.mul(flat, weights)
            sums.append(lax.reduce_sum(lax.real(product) if _complex(leaf) else product, (0,)))
        result = sums[0]
        for other in sums[1:]:
            result = lax.add(result, other)
        return result

    return total


def _complex(x: Any) -> bool:
    return bool(x.dtype.kind == "c")


def _sum(x: Any, *axes: int) -> Any:
    return lax.reduce_sum(x, axes)


def _over(x: Any, like: Any, *axes: int) -> Any:
    """`x` repeated along the dimensions that were summed over."""
    kept = tuple(i for i in range(like.ndim) if i not in axes)
    return lax.broadcast_in_dim(x, like.shape, kept)


def _softmax(x: Any) -> Any:
    last = x.ndim - 1
    largest = lax.stop_gradient(lax.reduce_max(x, (last,)))
    powers = lax.exp(lax.sub(x, _over(largest, x, last)))
    return lax.div(powers, _over(_sum(powers, last), x, last))


def _dense(layer: Any, x: Any) -> Any:
    weights, bias = layer
    product = lax.dot(x, weights)
    return lax.add(product, lax.broadcast_in_dim(bias, product.shape, (product.ndim - 1,)))


def network(layers: Any, x: Any, labels: Any) -> Any:
    """Two dense layers and the cross entropy with labels."""
    hidden = lax.tanh(_dense(layers[0], x))
    scores = _dense(layers[1], hidden)
    return lax.neg(_sum(lax.mul(labels, lax.log(_softmax(scores))), 1))


def convolutional(kernel: Any, images: Any) -> Any:
    """A strided convolution, a rectifier, and max pooling."""
    out = lax.conv_general_dilated(images, kernel, (1, 2), "SAME")
    out = lax.max(out, lax.mul(out, 0.1))
    return lax.reduce_window(out, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def attention(queries: Any, keys: Any, values: Any) -> Any:
    """Attention with a causal mask, over two heads at once."""
    products = lax.dot_general(queries, keys, (((2,), (2,)), ((0,), (0,))))
    shape = products.shape
    later = lax.lt(
        lax.broadcasted_iota(np.int32, shape, 1), lax.broadcasted_iota(np.int32, shape, 2)
    )
    masked = lax.select(later, lax.full_like(products, -1e9), products)
    return lax.dot_general(_softmax(masked), values, (((2,), (1,)), ((0,), (0,))))


def normalization(x: Any, scale: Any) -> Any:
    """Rows normalized to mean zero and variance one, scaled."""
    count = x.shape[1]
    centred = lax.sub(x, _over(lax.div(_sum(x, 1), float(count)), x, 1))
    variance = lax.div(_sum(lax.square(centred), 1), float(count))
    normal = lax.mul(centred, _over(lax.rsqrt(lax.add(variance, 1e-3)), x, 1))
    return lax.mul(normal, _over(scale, x, 0))


def likelihood(half: Any, x: Any) -> Any:
    """A Gaussian log density, by a Cholesky factor."""
    identity = np.eye(half.shape[0], dtype=half.dtype)
    covariance = lax.add(lax.dot(half, lax.transpose(half, (1, 0))), identity)
    factor = lax.linalg.cholesky(covariance)
    solved = lax.linalg.triangular_solve(factor, x, left_side=True, lower=True)
    diagonal = _sum(lax.mul(lax.log(lax.add(lax.abs(factor), 1e-3)), identity), 1)
    return lax.add(_sum(lax.square(solved), 1), diagonal)


def factorizations(x: Any) -> Any:
    """QR, LU, singular values and eigenvalues of matrices with distinct values."""
    q, r = lax.linalg.qr(lax.add(x, _BALL.astype(x.dtype)), full_matrices=False)
    lu, _, _ = lax.linalg.lu(lax.add(x, 2 * np.eye(4, dtype=x.dtype)))
    symmetric = lax.add(x, lax.transpose(x, (1, 0)))
    spread = lax.add(symmetric, np.diag(np.array([1, 3, 5, 8], x.dtype)))
    return {
        "qr": lax.mul(lax.dot(q, lax.abs(r)), 0.5),
        "lu": lu,
        "eigh": lax.linalg.eigh(spread)[1],
        "svd": lax.linalg.svd(spread, compute_uv=False),
    }


def recurrent(weights: Any, start: Any, inputs: Any) -> Any:
    """A recurrent network over a sequence, as a scan."""

    def cell(state: Any, x: Any) -> Any:
        new = lax.tanh(lax.add(lax.dot(weights, state), x))
        return new, lax.mul(new, x)

    return lax.scan(cell, start, inputs)


def scans_of_many(weights: Any, starts: Any, inputs: Any) -> Any:
    """A gradient of a scan, for each element of a batch: all three nested."""

    def one(start: Any, xs: Any) -> Any:
        return loss(lambda s: recurrent(weights, s, xs))(start)

    return dt.vmap(dt.grad(one), in_axes=(0, 1))(starts, inputs)


def loops(x: Any) -> Any:
    """A loop with known bounds around a loop that contains a scan."""

    def outer(i: Any, state: Any) -> Any:
        total, y = state

        def inner(carry: Any, element: Any) -> Any:
            return lax.sin(lax.add(carry, element)), lax.mul(carry, element)

        last, each = lax.scan(inner, total, y)
        return lax.add(total, lax.mul(last, 0.5)), lax.add(y, lax.mul(each, 0.3))

    return lax.fori_loop(0, 3, outer, (lax.index_in_dim(x, 0, keepdims=False), x))


def newton(x: Any) -> Any:
    """Square roots by a `while` loop; it has no reverse-mode derivative."""

    def unfinished(state: Any) -> Any:
        y, turn = state
        error = lax.reduce_max(lax.abs(lax.sub(lax.square(y), x)), (0,))
        return lax.bitwise_and(lax.gt(error, 1e-3), lax.lt(turn, 20))

    def step(state: Any) -> Any:
        y, turn = state
        return lax.mul(0.5, lax.add(y, lax.div(x, y))), lax.add(turn, 1)

    return lax.while_loop(unfinished, step, (x, np.int32(0)))[0]


def branches(x: Any) -> Any:
    """Branches on a number and on a predicate that depend on the values."""
    index = lax.convert_element_type(lax.gt(lax.index_in_dim(x, 0, keepdims=False), 0.0), np.int32)
    chosen = lax.switch(index, [lax.sin, lax.exp, lax.cos], x)
    total = _sum(x, 0)
    return lax.cond(
        lax.lt(total, 0.0), lambda y: lax.mul(y, total), lambda y: lax.square(y), chosen
    )


def indexing(x: Any, updates: Any) -> Any:
    """Gathers, scatters, and slices at computed positions."""
    rows = np.array([2, 0, 2, 1], np.int32)
    taken = lax.index_take(x, (rows,), (0,))
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    gathered = lax.gather(x, rows[:, None], numbers, (1, x.shape[1]))
    added = lax.scatter_add(
        x, rows[:, None], updates, lax.ScatterDimensionNumbers((1,), (0,), (0,))
    )
    start = lax.argmax(lax.index_in_dim(x, 1, keepdims=False), 0, np.int32)
    part = lax.dynamic_slice(lax.concatenate([x, x], 1), (0, start), (2, 2))
    written = lax.dynamic_update_slice(added, part, (1, 0))
    return lax.mul(taken, gathered), written, lax.pad(part, 0.0, ((1, 0, 1), (-1, 2, 0)))


def orders(x: Any) -> Any:
    """Sorting, cumulative sums and products, the largest elements, and a scan of a semigroup."""

    def combine(a: Any, b: Any) -> Any:
        return lax.mul(a[0], b[0]), lax.add(lax.mul(b[0], a[1]), b[1])

    return {
        "sort": lax.mul(lax.sort(x, dimension=0), 2.0),
        "cumsum": lax.cumsum(x, axis=1, reverse=True),
        "cumprod": lax.cumprod(x, axis=0),
        "cumlogsumexp": lax.cumlogsumexp(x, axis=0),
        "top_k": lax.top_k(x, 2)[0],
        "recurrence": lax.associative_scan(combine, (x, lax.sin(x))),
    }


def special(x: Any) -> Any:
    """Special functions, with other special functions as derivatives."""
    positive = lax.add(lax.square(x), 0.5)
    return {
        "erf": lax.erf(x),
        "lgamma": lax.lgamma(positive),
        "digamma": lax.digamma(positive),
        "logistic": lax.logistic(lax.mul(x, 4.0)),
        "powers": lax.pow(positive, x),
        "atan2": lax.atan2(x, positive),
        "bessel": lax.bessel_i1e(x),
    }


def spectrum(x: Any) -> Any:
    """A Fourier transform, a filter, and the inverse transform."""
    there = lax.fft(lax.complex(x, lax.sin(x)), "fft", (x.shape[-1],))
    filtered = lax.mul(there, np.exp(1j * np.arange(x.shape[-1])).astype(there.dtype))
    back = lax.fft(filtered, "ifft", (x.shape[-1],))
    return lax.add(lax.real(back), lax.square(lax.imag(back))), lax.abs(there)


@dt.custom_jvp
def _cubed(x: Any) -> Any:
    return lax.mul(lax.integer_pow(x, 3), 0.5)


def _cubed_rule(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _cubed(x), lax.mul(lax.mul(1.5, lax.square(x)), t)


_cubed.defjvp(_cubed_rule)


@dt.custom_vjp
def _softened(x: Any, y: Any) -> Any:
    return lax.tanh(lax.mul(x, y))


def _softened_forward(x: Any, y: Any) -> Any:
    return _softened(x, y), (x, y)


def _softened_backward(kept: Any, cotangent: Any) -> Any:
    x, y = kept
    slope = lax.mul(cotangent, lax.sub(1.0, lax.square(lax.tanh(lax.mul(x, y)))))
    return lax.mul(slope, y), lax.mul(slope, x)


_softened.defvjp(_softened_forward, _softened_backward)


def own_tangents(x: Any) -> Any:
    """A function with a hand-written derivative, in forward mode."""
    return lax.mul(_cubed(lax.sin(x)), x)


def own_cotangents(x: Any) -> Any:
    """A function with a hand-written derivative, in reverse mode."""
    return lax.mul(_softened(x, lax.rev(x, (0,))), x)


def saved_little(x: Any) -> Any:
    """Layers that save nothing, or only products, for the backward pass."""
    policy = dt.checkpoint_policies.dots_saveable
    for number in range(3):

        def layer(y: Any, number: int = number) -> Any:
            return lax.tanh(lax.add(lax.dot(_BALL.astype(y.dtype), lax.sin(y)), 0.1 * number))

        x = dt.checkpoint(layer, policy=policy if number % 2 else None)(x)
    return x


def implicit(x: Any) -> Any:
    """Solutions of a linear system and of an equation, with derivatives of their own."""
    diagonal = np.diag(np.array([2, 3, 4, 5], x.dtype))
    matrix = lax.add(diagonal, lax.mul(_BALL.astype(x.dtype), lax.sin(_sum(x, 0))))

    def solve(matvec: Callable[[Any], Any], b: Any) -> Any:
        y = lax.full_like(b, 0.0)
        return lax.fori_loop(
            0, 60, lambda _, y: lax.add(y, lax.mul(0.25, lax.sub(b, matvec(y)))), y
        )

    def through(matvec: Callable[[Any], Any], b: Any) -> Any:
        return solve(matvec, b)

    solution = lax.custom_linear_solve(
        lambda y: lax.dot(matrix, y), x, solve, transpose_solve=through
    )
    target = lax.add(_sum(lax.square(x), 0), 1.0)

    def halve(f: Callable[[Any], Any], start: Any) -> Any:
        return lax.fori_loop(0, 12, lambda _, y: lax.sub(y, lax.div(f(y), lax.mul(3.0, y))), start)

    root = lax.custom_root(
        lambda y: lax.sub(lax.square(y), target),
        lax.full_like(target, 1.5),
        halve,
        lambda g, y: lax.div(y, g(lax.full_like(y, 1.0))),
    )
    return solution, root


def nested_calls(x: Any) -> Any:
    """Compiled functions that call each other, one of them twice."""
    inner = dt.jit(lambda y, z: lax.mul(lax.sin(y), z))
    outer = dt.jit(lambda y: lax.add(inner(y, x), inner(x, y)))
    return outer(lax.exp(x))


def reductions(x: Any) -> Any:
    """Reductions over several dimensions, of several kinds."""
    return {
        "sum": lax.reduce_sum(x, (0, 2)),
        "product": lax.reduce_prod(x, (1,)),
        "max": lax.reduce_max(x, (0, 1)),
        "own": lax.reduce(x, 0.0, lambda a, b: lax.add(a, b), (2,)),
        "norm": lax.sqrt(lax.reduce_sum(lax.square(x), (0, 1, 2))),
    }


def shapes(x: Any) -> Any:
    """Operations that move elements and compute nothing."""
    y = lax.transpose(lax.reshape(x, (3, 2, 4)), (2, 0, 1))
    y = lax.concatenate([lax.rev(y, (1,)), lax.slice(y, (0, 0, 0), (4, 3, 2), (2, 1, 1))], 0)
    return lax.squeeze(lax.expand_dims(lax.mul(y, y), (1,)), (1,)), lax.split(x, (2, 4), 1)


def mixed_precision(x: Any) -> Any:
    """A product of 16-bit floats, summed in 32 bits."""
    small = lax.convert_element_type(x, np.float32)
    product = lax.dot(small, lax.transpose(small, (1, 0)))
    return lax.convert_element_type(lax.tanh(product), x.dtype)


_LABELS: Final = np.eye(3)[[0, 2, 1, 1]]

PROGRAMS: Final[dict[str, Program]] = {
    "network": Program(
        network,
        (((_numbers(5, 4), _numbers(4)), (_numbers(4, 3), _numbers(3))), _numbers(4, 5), _LABELS),
        essential=True,
    ),
    "convolutional": Program(convolutional, (_numbers(2, 2, 3, 3), _numbers(1, 2, 6, 7))),
    "attention": Program(
        attention, (_numbers(2, 3, 4), _numbers(2, 3, 4), _numbers(2, 3, 2)), essential=True
    ),
    "normalization": Program(normalization, (_numbers(3, 4), _positive(4)), essential=True),
    "likelihood": Program(likelihood, (_numbers(3, 3), _numbers(3, 2))),
    "factorizations": Program(factorizations, (_numbers(4, 4),), tolerance=100.0),
    "recurrent": Program(recurrent, (_numbers(3, 3), _numbers(3), _numbers(4, 3)), essential=True),
    "scans_of_many": Program(scans_of_many, (_numbers(3, 3), _numbers(2, 3), _numbers(4, 2, 3))),
    "loops": Program(loops, (_numbers(4),)),
    "newton": Program(newton, (_positive(3),), reverse=False),
    "branches": Program(branches, (_numbers(3),), essential=True),
    "indexing": Program(indexing, (_numbers(3, 4), _numbers(4, 4))),
    "orders": Program(orders, (_positive(4, 3),), tolerance=10.0),
    "special": Program(special, (_numbers(5),), tolerance=100.0),
    "spectrum": Program(spectrum, (_numbers(6),), needs=("complex",)),
    "own_tangents": Program(own_tangents, (_numbers(3),)),
    "own_cotangents": Program(own_cotangents, (_numbers(3),), forward=False),
    "saved_little": Program(saved_little, (_numbers(4),)),
    "implicit": Program(implicit, (_numbers(4),), tolerance=10.0),
    "nested_calls": Program(nested_calls, (_numbers(3),), essential=True),
    "reductions": Program(reductions, (_positive(2, 3, 2),)),
    "shapes": Program(shapes, (_numbers(4, 6),), essential=True),
    "mixed_precision": Program(mixed_precision, (_numbers(3, 4),), tolerance=1e4),
}
