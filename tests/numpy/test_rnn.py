"""dovetail.experimental.rnn: long short-term memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.experimental import rnn

#: Sizes of input and state, layers, and whether each reads in both directions.
SIZES = [(3, 4, 1, False), (3, 4, 2, True)]
BATCH, TIME = 3, 5


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def one_row(x: Any, h: Any, c: Any, weights: Any) -> Any:
    """One layer in one direction on the inputs of one row, by the formulas of the paper."""
    w_ih, w_hh, b_ih, b_hh = weights
    outputs = []
    for step in x:
        i, f, g, o = np.split(w_ih @ step + w_hh @ h + b_ih + b_hh, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs).reshape(len(x), len(h)), h, c


def expected(x: Any, h_0: Any, c_0: Any, parts: Any, lengths: Any, sizes: Any) -> Any:
    _, hidden, layers, both = sizes
    directions = 1 + both
    h_n, c_n = h_0.copy(), c_0.copy()
    for layer in range(layers):
        y = np.zeros((*x.shape[:2], directions * hidden))
        for row, length in enumerate(lengths):
            for direction in range(directions):
                number = layer * directions + direction
                order = slice(None, None, -1 if direction else 1)
                out, h_n[number, row], c_n[number, row] = one_row(
                    x[row, :length][order],
                    h_0[number, row],
                    c_0[number, row],
                    [part[number] for part in parts],
                )
                y[row, :length, direction * hidden : (direction + 1) * hidden] = out[order]
        x = y
    return x, h_n, c_n


def arguments(sizes: Any, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    width, hidden, layers, both = sizes
    states = (layers * (1 + both), BATCH, hidden)
    shapes = ((BATCH, TIME, width), states, states, (rnn.get_num_params_in_lstm(*sizes),))
    return [generator.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("sizes", SIZES)
def test_values(sizes: Any) -> None:
    x, h_0, c_0, weights = arguments(sizes)
    parts = rnn.unpack_lstm_weights(weights, *sizes)
    plain = [{n: np.asarray(w) for n, w in part.items()} for part in parts]
    width, hidden, layers, both = sizes
    sized = (width, hidden, layers, 0.0, both)
    run = dt.jit(lambda lengths: rnn.lstm(x, h_0, c_0, weights, lengths, *sized, "highest"))
    for lengths in ((5, 5, 5), (5, 3, 1), (0, 2, 4)):
        wanted = expected(x, h_0, c_0, plain, lengths, sizes)
        for a, b in zip(run(np.array(lengths)), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
    same = rnn.lstm_ref(x, h_0, c_0, *parts, np.array(lengths), *sized)
    for a, b in zip(same, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_derivatives() -> None:
    sizes = (2, 2, 1, True)
    x, h_0, c_0, weights = arguments(sizes)

    def total(x: Any, weights: Any) -> Any:
        y, h, c = rnn.lstm(x, h_0, c_0, weights, jnp.array([5, 2, 0]), 2, 2, 1, 0.0, True)
        return (y**2).sum() + h.sum() + (c**3).sum()

    with dt.enable_x64(True):
        x, h_0, c_0, weights = (np.float64(a) for a in (x, h_0, c_0, weights))
        both = dt.jit(dt.value_and_grad(total, (0, 1)))
        value, gradients = both(x, weights)
        for number, place in ((0, (0, 3, 1)), (0, (1, 1, 0)), (1, (7,)), (1, (-5,))):
            moved = [x.copy(), weights.copy()]
            moved[number][place] += 1e-6
            slope = (both(*moved)[0] - value) / 1e-6
            np.testing.assert_allclose(gradients[number][place], slope, rtol=1e-4)
        assert not np.asarray(gradients[0])[1, 2:].any()  # behind the end of the row


@pytest.mark.parametrize("sizes", SIZES)
def test_weights(sizes: Any) -> None:
    """The parts make up the vector, whose gates are exchanged and exchanged back."""
    count = rnn.get_num_params_in_lstm(*sizes)
    vector = np.arange(count, dtype=np.float32)
    w_ih, w_hh, b_ih, b_hh = rnn.unpack_lstm_weights(vector, *sizes)
    matrices = [w[n].ravel() for n in w_ih for w in (w_ih, w_hh)]
    biases = [b[n] for n in b_ih for b in (b_ih, b_hh)]
    np.testing.assert_array_equal(np.concatenate(matrices + biases), vector)
    swapped = rnn.swap_lstm_gates(vector, *sizes)
    assert not np.array_equal(swapped, vector)
    np.testing.assert_array_equal(rnn.swap_lstm_gates(swapped, *sizes), vector)
    for part, other in zip(
        (w_ih, w_hh, b_ih, b_hh), rnn.unpack_lstm_weights(swapped, *sizes), strict=True
    ):
        for number, array in part.items():
            i, f, g, o = np.split(np.asarray(array), 4)
            np.testing.assert_array_equal(other[number], np.concatenate([i, f, o, g]))


def test_random_weights() -> None:
    weights = rnn.init_lstm_weight(dt.random.key(0), 30, 16, 2, True)
    assert weights.shape == (rnn.get_num_params_in_lstm(30, 16, 2, True),)
    assert weights.dtype == jnp.float32
    assert 0.24 < float(abs(weights).max()) <= 0.25
    assert abs(float(weights.mean())) < 0.01


@pytest.mark.parametrize(
    ("changed", "error", "match"),
    [
        ({"weights": np.zeros(3)}, ValueError, "has 144 weights in a vector"),
        ({"x": np.zeros((3, 5, 2))}, ValueError, r"x has the shape \(3, 5, 3\)"),
        ({"x": np.zeros(3)}, ValueError, "x has the shape"),
        ({"h_0": np.zeros((1, 3))}, ValueError, r"h_0 has the shape \(1, 3, 4\)"),
        ({"seq_lengths": np.zeros(2, int)}, ValueError, r"seq_lengths has the shape \(3,\)"),
        ({"dropout": 0.5}, NotImplementedError, "multiply the inputs of each layer by a mask"),
    ],
)
def test_mistakes(changed: Any, error: Any, match: str) -> None:
    x, h_0, c_0, weights = arguments((3, 4, 1, False))
    given: dict[str, Any] = {
        "x": x,
        "h_0": h_0,
        "c_0": c_0,
        "weights": weights,
        "seq_lengths": np.full(3, 5),
        "input_size": 3,
        "hidden_size": 4,
        "num_layers": 1,
        "dropout": 0.0,
        "bidirectional": False,
    }
    with pytest.raises(error, match=match):
        rnn.lstm(**given | changed)
