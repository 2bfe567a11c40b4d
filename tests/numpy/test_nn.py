"""Functions of neural networks: values, gradients at edges and elsewhere, extremes, masks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import dovetail as dt
import dovetail.nn as nn
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

X = np.array([-30.0, -3.0, -1.0, -0.5, 0.0, 0.3, 1.0, 2.5, 6.0, 40.0])


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def softplus(x: Any) -> Any:
    return np.logaddexp(x, 0)


ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "relu": relu,
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": special.expit,
    "softplus": softplus,
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "silu": lambda x: x * special.expit(x),
    "swish": lambda x: x * special.expit(x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "log_sigmoid": lambda x: -softplus(-x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0))),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "squareplus": lambda x: (x + np.sqrt(x**2 + 4)) / 2,
    "gelu": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, dtype: str) -> None:
    # Programs, which round alike.
    with dt.direct_calls("none"), dt.enable_x64(dtype == "float64"):
        x = jnp.array(X, dtype)
        function = getattr(nn, name)
        result = function(x)
        assert result.dtype == dtype
        expected = ACTIVATIONS[name](np.asarray(x).astype(np.float64))
        tolerance = {"float64": 1e-12, "float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}[dtype]
        np.testing.assert_allclose(
            np.asarray(result).astype(np.float64), expected, rtol=tolerance, atol=tolerance
        )
        np.testing.assert_array_equal(np.asarray(dt.jit(function)(x)), np.asarray(result))
        np.testing.assert_array_equal(np.asarray(dt.vmap(function)(x)), np.asarray(result))


@pytest.mark.parametrize("name", ["soft_sign", "squareplus", "gelu"])
def test_activations_that_need_no_order_take_complex_numbers(name: str) -> None:
    z = np.complex64([1 + 1j, -0.5 + 2j, 0])
    result = getattr(nn, name)(z)
    assert result.dtype == np.complex64
    np.testing.assert_allclose(np.asarray(result), ACTIVATIONS[name](z), rtol=1e-5)


@pytest.mark.parametrize("name", [*ACTIVATIONS, "log1mexp"])
def test_derivatives_to_second_order(name: str) -> None:
    function = getattr(nn, name)
    reference = ACTIVATIONS.get(name, lambda x: np.log(-np.expm1(-x)))
    points = [-2.3, -0.7, 0.4, 1.7, 4.2] if name != "log1mexp" else [0.2, 0.6, 0.8, 3.0]
    h = 1e-4
    with dt.enable_x64(True):
        for x in points:
            low, middle, high = (float(reference(np.float64(v))) for v in (x - h, x, x + h))
            first, second = dt.grad(function), dt.grad(dt.grad(function))
            assert float(first(np.float64(x))) == pytest.approx(
                (high - low) / (2 * h), rel=1e-5, abs=1e-7
            )
            curvature = (high - 2 * middle + low) / h**2
            assert float(second(np.float64(x))) == pytest.approx(curvature, rel=1e-4, abs=1e-5)


EDGES = [
    ("relu", 0.0, 0.0),
    ("relu6", 0.0, 0.0),
    ("relu6", 6.0, 0.0),
    ("leaky_relu", 0.0, 1.0),
    ("elu", 0.0, 1.0),
    ("celu", 0.0, 1.0),
    ("selu", 0.0, SCALE * ALPHA),
    ("hard_tanh", 1.0, 1.0),
    ("hard_tanh", -1.0, 1.0),
    ("hard_sigmoid", 3.0, 0.0),
    ("soft_sign", 0.0, 1.0),
    ("softplus", 0.0, 0.5),
    ("sparse_plus", 1.0, 1.0),
    ("sparse_plus", -1.0, 0.0),
    ("softplus", 1000.0, 1.0),
    ("softplus", -1000.0, 0.0),
    ("elu", 1000.0, 1.0),
    ("celu", 1000.0, 1.0),
    ("selu", 1000.0, SCALE),
    ("sigmoid", 1000.0, 0.0),
    ("sigmoid", -1000.0, 0.0),
    ("silu", -1000.0, 0.0),
    ("log_sigmoid", -1000.0, 1.0),
    ("gelu", 1000.0, 1.0),
    ("mish", 1000.0, 1.0),
]


@pytest.mark.parametrize(("name", "x", "slope"), EDGES)
def test_derivatives_at_edges(name: str, x: float, slope: float) -> None:
    assert float(dt.grad(getattr(nn, name))(x)) == pytest.approx(slope, abs=1e-6)
    assert float(dt.jit(dt.grad(getattr(nn, name)))(x)) == pytest.approx(slope, abs=1e-6)


def test_details_of_activations() -> None:
    assert nn.relu(jnp.arange(-2, 2)).tolist() == [0, 0, 0, 1]
    assert nn.relu(jnp.arange(-2, 2)).dtype == jnp.int32
    assert np.isnan(float(nn.relu(np.nan)))
    assert not np.signbit(float(nn.relu(-0.0)))
    np.testing.assert_allclose(
        np.asarray(nn.gelu(X.astype(np.float32), approximate=False)),
        X * special.ndtr(X),
        rtol=1e-5,
        atol=1e-6,
    )
    np.testing.assert_allclose(
        np.asarray(nn.elu(np.array([-1.0, 2.0]), 0.5)), [0.5 * math.expm1(-1), 2], rtol=1e-6
    )
    np.testing.assert_allclose(
        np.asarray(nn.leaky_relu(np.array([-1.0, 2.0]), np.array([0.1, 0.2]))), [-0.1, 2.0]
    )
    x = np.arange(8.0).reshape(2, 4)
    np.testing.assert_allclose(np.asarray(nn.glu(x)), x[:, :2] * special.expit(x[:, 2:]), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(nn.glu(x, 0)), x[:1] * special.expit(x[1:]), rtol=1e-6)
    assert nn.softplus(jnp.array([2.0, -np.inf, np.inf])).tolist()[1:] == [0.0, np.inf]
    assert nn.log1mexp(0.0).tolist() == -np.inf
    np.testing.assert_allclose(float(nn.log1mexp(1e-6)), math.log(1e-6), rtol=1e-5)
    with pytest.raises(ValueError, match="even"):
        nn.glu(np.ones(3))
    for call in (
        lambda: nn.relu([1.0]),
        lambda: nn.gelu("a"),
        lambda: nn.relu(1j),
        lambda: nn.gelu(1j, approximate=False),
    ):
        with pytest.raises(TypeError, match=r"relu|gelu"):
            call()


# ------------------------------------------------------------------------ softmax and its relatives

Y = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32) * 3
MASK = np.random.default_rng(1).random((3, 5)) > 0.4
MASK[:, 0] = True


@pytest.mark.parametrize("axis", [-1, 0, None, (0, 1)])
def test_softmax_and_logsumexp(axis: Any) -> None:
    for run in (lambda f: f, dt.jit):
        np.testing.assert_allclose(
            np.asarray(run(lambda y: nn.softmax(y, axis))(Y)), special.softmax(Y, axis), rtol=1e-5
        )
        np.testing.assert_allclose(
            np.asarray(run(lambda y: nn.log_softmax(y, axis))(Y)),
            special.log_softmax(Y, axis),
            rtol=1e-5,
        )
        for keepdims in (False, True):
            np.testing.assert_allclose(
                np.asarray(run(lambda y: nn.logsumexp(y, axis, keepdims=keepdims))(Y)),  # noqa: B023  # called at once
                special.logsumexp(Y, axis, keepdims=keepdims),
                rtol=1e-5,
            )
    mean = np.log(np.mean(np.exp(Y.astype(np.float64)), axis=axis))
    np.testing.assert_allclose(np.asarray(nn.logmeanexp(Y, axis)), mean, rtol=1e-5)
    mapped = dt.vmap(lambda y: nn.softmax(y))(Y)
    np.testing.assert_allclose(np.asarray(mapped), special.softmax(Y, -1), rtol=1e-5)


def test_masks() -> None:
    hidden = np.where(MASK, Y, -np.inf)
    np.testing.assert_allclose(
        np.asarray(nn.softmax(Y, where=MASK)), special.softmax(hidden, -1), rtol=1e-5
    )
    np.testing.assert_allclose(
        np.asarray(nn.log_softmax(Y, where=MASK)), special.log_softmax(hidden, -1), rtol=1e-5
    )
    np.testing.assert_allclose(
        np.asarray(nn.logsumexp(Y, 1, where=MASK)), special.logsumexp(hidden, 1), rtol=1e-5
    )
    row = MASK[:1]
    np.testing.assert_allclose(
        np.asarray(nn.softmax(Y, where=row)),
        special.softmax(np.where(row, Y, -np.inf), -1),
        rtol=1e-5,
    )
    nothing = np.zeros((3, 5), bool)
    assert (np.asarray(nn.softmax(Y, where=nothing)) == 0).all()
    assert (np.asarray(nn.logsumexp(Y, 1, where=nothing)) == -np.inf).all()
    bad = np.where(MASK, Y, np.nan)
    for function in (nn.softmax, nn.log_softmax):
        gradient = dt.grad(lambda y: jnp.where(MASK, function(y, where=MASK), 0).prod())(bad)  # noqa: B023  # called at once
        assert np.isfinite(np.asarray(gradient)).all()
    count = MASK.sum(1)
    expected = special.logsumexp(hidden, 1) - np.log(count)
    np.testing.assert_allclose(np.asarray(nn.logmeanexp(Y, 1, where=MASK)), expected, rtol=1e-5)


@pytest.mark.parametrize("axis", [-1, 0, None, ()])
@pytest.mark.parametrize("where", [None, MASK])
def test_the_rule_of_softmax_gives_the_same(axis: Any, where: Any) -> None:
    def function(y: Any) -> Any:
        return nn.softmax(y, axis, where)

    transformations: list[Callable[[Any], Any]] = [
        lambda f: f,
        dt.jit,
        dt.jacfwd,
        dt.jacrev,
        dt.hessian,
        lambda f: dt.jit(dt.jacrev(f)),
    ]
    expected = [np.asarray(transform(function)(Y)) for transform in transformations]
    with dt.softmax_custom_jvp(True):
        found = [np.asarray(transform(function)(Y)) for transform in transformations]
        batched = dt.vmap(lambda y: nn.softmax(y))(Y)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)
    np.testing.assert_allclose(np.asarray(batched), np.asarray(nn.softmax(Y)), rtol=2e-7)


def test_the_rule_of_softmax_keeps_less() -> None:
    def kept() -> int:
        _, pull_back = dt.vjp(nn.softmax, jnp.asarray(Y))
        return sum(leaf.size for leaf in dt.tree.leaves(pull_back) if hasattr(leaf, "size"))

    without = kept()
    with dt.softmax_custom_jvp(True):
        assert Y.size <= kept() < without


def test_extremes_of_softmax() -> None:
    assert nn.softmax(jnp.array([1e4, 1e4, -1e4])).tolist() == [0.5, 0.5, 0.0]
    assert nn.softmax(jnp.array([-np.inf, 0.0])).tolist() == [0.0, 1.0]
    assert nn.log_softmax(jnp.array([-1e4, 1e4])).tolist() == [-2e4, 0.0]
    assert float(nn.logsumexp(jnp.array([-np.inf, -np.inf]))) == -np.inf
    assert float(nn.logsumexp(jnp.array([np.inf, 1.0]))) == np.inf
    assert np.isnan(float(nn.logsumexp(jnp.array([np.nan, 1.0]))))
    gradient = dt.grad(nn.logsumexp)(jnp.array([-np.inf, 0.0]))
    assert gradient.tolist() == [0.0, 1.0]
    assert nn.softmax(jnp.arange(3)).dtype == jnp.float32
    assert nn.softmax(jnp.ones(3, "bfloat16")).dtype == jnp.bfloat16
    with pytest.raises(ValueError, match="softmax"):
        nn.softmax(jnp.array(1.0))
    with pytest.raises(ValueError, match="no elements"):
        jnp.max(jnp.ones((2, 0)), axis=1)
    assert nn.softmax(jnp.ones((2, 0))).shape == (2, 0)


SPECIAL = [np.inf, -np.inf, np.nan, 0.0, 1.0, 1e4]


@pytest.mark.parametrize("mask", [None, (True, True), (True, False), (False, False)])
def test_softmax_of_all_pairs_of_special_numbers(mask: Any) -> None:
    x = np.array(list(itertools.product(SPECIAL, repeat=2)), np.float32)
    counts = np.array((True, True) if mask is None else mask)
    where = None if mask is None else counts
    with np.errstate(all="ignore"):
        chosen = np.where(counts, x, -np.inf)
        shifted = np.where(counts, x - chosen.max(1, keepdims=True), -np.inf)
        terms = np.exp(shifted)
        total = terms.sum(1, keepdims=True)
        shares = np.where(counts, terms / total, 0)
        logarithms = np.where(counts, shifted - np.log(total), -np.inf)
    np.testing.assert_allclose(np.asarray(nn.softmax(x, where=where)), shares, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(nn.log_softmax(x, where=where)), logarithms, rtol=1e-6)
    if mask is not None:
        for function in (nn.softmax, nn.log_softmax):
            gradient = dt.grad(lambda y: jnp.where(counts, function(y, where=where), 0).sum())(x)  # noqa: B023  # called at once
            assert (np.asarray(gradient)[:, ~counts] == 0).all()


def test_factors_of_logsumexp() -> None:
    b = np.array([1.0, -2.0, 0.5, 0.0, 3.0], np.float32)
    expected, sign = special.logsumexp(Y, 1, b=b, return_sign=True)
    result, found = nn.logsumexp(Y, 1, b=b, return_sign=True)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-4)
    np.testing.assert_array_equal(np.asarray(found), sign)
    np.testing.assert_allclose(
        np.asarray(nn.logsumexp(Y, 1, b=np.abs(b))), special.logsumexp(Y, 1, b=np.abs(b)), rtol=1e-5
    )
    infinite = jnp.array([np.inf, 1.0])
    assert float(nn.logsumexp(infinite, b=jnp.array([0.0, 1.0]))) == pytest.approx(1.0)


def test_gradients_of_softmax() -> None:
    with dt.enable_x64(True):
        x = Y.astype(np.float64)
        step = np.random.default_rng(5).normal(size=x.shape)
        functions: list[Callable[[Any], Any]] = [
            lambda y: (nn.softmax(y) ** 2).sum(),
            lambda y: (nn.log_softmax(y, 0) ** 2).sum(),
            lambda y: nn.logsumexp(y, axis=1).prod(),
            lambda y: (nn.standardize(y) ** 3).sum(),
            lambda y: (nn.softmax(y, where=MASK) ** 2).sum(),
        ]
        for function in functions:
            gradient = dt.grad(function)
            h = 1e-5
            slope = (float(function(x + h * step)) - float(function(x - h * step))) / (2 * h)
            assert float((gradient(x) * step).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-8)
            change = (np.asarray(gradient(x + h * step)) - np.asarray(gradient(x - h * step))) / (
                2 * h
            )
            _, curvature = dt.jvp(gradient, (x,), (step,))
            np.testing.assert_allclose(np.asarray(curvature), change, rtol=1e-4, atol=1e-6)


def test_standardize() -> None:
    for algorithm in ("fast", "stable"):
        for axis in (-1, 0, (0, 1)):
            mean = Y.mean(axis=axis, keepdims=True)
            variance = Y.var(axis=axis, keepdims=True)
            expected = (Y - mean) / np.sqrt(variance + 1e-5)
            result = nn.standardize(Y, axis, algorithm=algorithm)
            np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-4, atol=1e-5)
            known = nn.standardize(Y, axis, mean, variance)
            np.testing.assert_allclose(np.asarray(known), expected, rtol=1e-4, atol=1e-5)
    counted = np.where(MASK, Y, 0).sum(1, keepdims=True) / MASK.sum(1, keepdims=True)
    spread = (np.where(MASK, Y - counted, 0) ** 2).sum(1, keepdims=True) / MASK.sum(
        1, keepdims=True
    )
    np.testing.assert_allclose(
        np.asarray(nn.standardize(Y, where=MASK)),
        (Y - counted) / np.sqrt(spread + 1e-5),
        rtol=1e-4,
        atol=1e-4,
    )
    with pytest.raises(ValueError, match="algorithm"):
        nn.standardize(Y, algorithm="slow")


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", [None, "int8", "bfloat16", bool])
def test_one_hot(axis: int, dtype: Any) -> None:
    labels = np.array([[0, 2], [4, -1]])
    expected = np.moveaxis(labels[..., None] == np.arange(4), -1, axis)
    for run in (
        lambda x: nn.one_hot(x, 4, dtype=dtype, axis=axis),
        dt.jit(lambda x: nn.one_hot(x, 4, dtype=dtype, axis=axis)),
    ):
        result = run(labels)
        assert result.dtype == (jnp.float32 if dtype is None else jnp.dtype(dtype))
        np.testing.assert_array_equal(np.asarray(result), expected.astype(result.dtype))


def test_details_of_one_hot() -> None:
    assert nn.one_hot(1, 3).tolist() == [0.0, 1.0, 0.0]
    assert nn.one_hot([0, 1], 2).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert nn.one_hot(np.array([1], "uint8"), 300).shape == (1, 300)
    assert float(nn.one_hot(np.array([255], "uint8"), 300)[0, 255]) == 1.0
    assert nn.one_hot(np.array([1]), 0).shape == (1, 0)
    with pytest.raises(ValueError, match="num_classes"):
        nn.one_hot(1, -1)
    with pytest.raises(dt.errors.ConcretizationTypeError, match="num_classes"):
        dt.jit(nn.one_hot)(1, 3)


def test_every_name_is_there() -> None:
    for name in nn.__all__:
        assert callable(getattr(nn, name)) or name == "initializers"  # which is a module
        assert name in dir(nn)
    with pytest.raises(AttributeError, match="nothing"):
        nn.nothing  # noqa: B018  # the access is what is tested


def test_a_small_network_learns() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 4)).astype(np.float32)
    labels = (x.sum(axis=1) > 0).astype(np.int32)
    weights = {
        "a": rng.normal(size=(4, 8)).astype(np.float32) / 2,
        "b": np.zeros((8, 2), np.float32),
    }

    def loss(w: Any) -> Any:
        logits = nn.relu(x @ w["a"]) @ w["b"]
        return -jnp.mean(jnp.sum(nn.one_hot(labels, 2) * nn.log_softmax(logits), axis=-1))

    @dt.jit
    def step(w: Any) -> Any:
        return {name: w[name] - 0.5 * g for name, g in dt.grad(loss)(w).items()}

    first = float(loss(weights))
    for _ in range(100):
        weights = step(weights)
    assert float(loss(weights)) < 0.3 * first
