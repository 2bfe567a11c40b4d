"""Recurrent networks: long short-term memory, with the weights in one vector, as cuDNN has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dovetail import Array, lax, nn, random
from dovetail import numpy as jnp
from dovetail.extend.tracebacks import publish as _publish
from dovetail.typing import ArrayLike

__all__ = [
    "get_num_params_in_lstm",
    "init_lstm_weight",
    "lstm",
    "lstm_ref",
    "swap_lstm_gates",
    "unpack_lstm_weights",
]


def __dir__() -> list[str]:
    return __all__


_GATES = 4
"""Input gate, forget gate, candidate, output gate."""

Weights = dict[int, Array]


def _shapes(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """The parts of the vector of weights, in their order: name, layer and direction, shape."""
    directions = 2 if bidirectional else 1
    rows = _GATES * hidden_size
    for number in range(num_layers * directions):
        width = input_size if number < directions else hidden_size * directions
        yield "W_ih", number, (rows, width)
        yield "W_hh", number, (rows, hidden_size)
    for number in range(num_layers * directions):
        yield "b_ih", number, (rows,)
        yield "b_hh", number, (rows,)


def get_num_params_in_lstm(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> int:
    """The number of weights of an LSTM.

    Args:
        input_size: the number of features of an input.
        hidden_size: the number of features of a state.
        num_layers: the number of layers.
        bidirectional: whether each layer also reads backwards.

    Example:
        >>> from dovetail.experimental.rnn import get_num_params_in_lstm
        >>> get_num_params_in_lstm(3, 4, 1, False)
        144
    """
    total = 0
    for _, _, shape in _shapes(input_size, hidden_size, num_layers, bidirectional):
        total += shape[0] * (shape[1] if len(shape) > 1 else 1)
    return total


def init_lstm_weight(
    rng: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Random weights of an LSTM, between plus and minus ``hidden_size ** -0.5``.

    Args:
        rng: a random key.
        input_size: the number of features of an input.
        hidden_size: the number of features of a state.
        num_layers: the number of layers.
        bidirectional: whether each layer also reads backwards.

    Returns:
        A vector of float32, of `get_num_params_in_lstm` numbers.
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = hidden_size**-0.5
    return random.uniform(rng, (count,), jnp.float32, minval=-bound, maxval=bound)


def unpack_lstm_weights(
    weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Weights, Weights, Weights, Weights]:
    """The matrices and biases in a vector of weights.

    Args:
        weights: the vector, of `get_num_params_in_lstm` numbers.
        input_size: the number of features of an input.
        hidden_size: the number of features of a state.
        num_layers: the number of layers.
        bidirectional: whether each layer also reads backwards.

    Returns:
        ``W_ih, W_hh, b_ih, b_hh``, each by the number of layer and direction: 0, 1, ... are the
        layers, or both directions of the first layer, then those of the second. Rows belong to the
        input gate, the forget gate, the candidate and the output gate, in this order.

    Raises:
        ValueError: the vector has another size.
    """
    weights = jnp.asarray(weights)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    if weights.shape != (count,):
        raise ValueError(
            f"unpack_lstm_weights: an LSTM of {num_layers} layers with input_size={input_size}, "
            f"hidden_size={hidden_size} and bidirectional={bidirectional} has {count} weights in a "
            f"vector, got an array of shape {weights.shape}"
        )
    parts: dict[str, Weights] = {"W_ih": {}, "W_hh": {}, "b_ih": {}, "b_hh": {}}
    start = 0
    for name, number, shape in _shapes(input_size, hidden_size, num_layers, bidirectional):
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        parts[name][number] = weights[start : start + size].reshape(shape)
        start += size
    return parts["W_ih"], parts["W_hh"], parts["b_ih"], parts["b_hh"]


def swap_lstm_gates(
    weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """The same weights with the last two gates exchanged, as other libraries order them.

    Args:
        weights: the vector.
        input_size: the number of features of an input.
        hidden_size: the number of features of a state.
        num_layers: the number of layers.
        bidirectional: whether each layer also reads backwards.

    Returns:
        A vector of the same size. Done twice, it gives the weights back.
    """
    parts = dict(
        zip(
            ("W_ih", "W_hh", "b_ih", "b_hh"),
            unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional),
            strict=True,
        )
    )
    swapped = []
    for name, number, _ in _shapes(input_size, hidden_size, num_layers, bidirectional):
        first, second, third, fourth = jnp.split(parts[name][number], _GATES)
        swapped.append(jnp.concatenate([first, second, fourth, third]).ravel())
    return jnp.concatenate(swapped)


def lstm(
    x: ArrayLike,
    h_0: ArrayLike,
    c_0: ArrayLike,
    weights: ArrayLike,
    seq_lengths: ArrayLike,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Array, Array, Array]:
    """Long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates).

    Args:
        x: the inputs, of shape (batch, time, input_size).
        h_0: the states at the beginning, of shape (layers * directions, batch, hidden_size).
        c_0: the cells at the beginning, of the same shape.
        weights: the vector of weights, see `unpack_lstm_weights`.
        seq_lengths: how many inputs of each row of the batch count, integers of shape (batch,).
        input_size: the number of features of an input.
        hidden_size: the number of features of a state.
        num_layers: the number of layers.
        dropout: 0.
        bidirectional: whether each layer also reads backwards.
        precision: that of its products of matrices.

    Returns:
        The outputs, of shape (batch, time, directions * hidden_size), which are 0 behind the end of
        a row; and the states and cells at the end of each row, of the shape of `h_0`.

    Raises:
        ValueError: shapes do not fit.
        NotImplementedError: `dropout` is not 0: multiply the inputs of layers by masks instead.

    Differs:
        It runs on every platform, by the operations of programs, and not only by cuDNN.

        >>> from dovetail.experimental.rnn import init_lstm_weight, lstm
        >>> weights = init_lstm_weight(dt.random.key(0), 3, 4, 1, False)
        >>> start = jnp.zeros((1, 2, 4))
        >>> y, h, c = lstm(jnp.ones((2, 5, 3)), start, start, weights, jnp.array([5, 2]),
        ...                3, 4, 1, 0.0, False)
        >>> print(y.shape, h.shape, bool((y[1, 2:] == 0).all()))
        (2, 5, 4) (1, 2, 4) True
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _run(
        "lstm",
        (x, h_0, c_0, seq_lengths),
        parts,
        (input_size, hidden_size, num_layers, dropout, bidirectional),
        precision,
    )


def lstm_ref(
    x: ArrayLike,
    h_0: ArrayLike,
    c_0: ArrayLike,
    W_ih: Mapping[int, ArrayLike],
    W_hh: Mapping[int, ArrayLike],
    b_ih: Mapping[int, ArrayLike],
    b_hh: Mapping[int, ArrayLike],
    seq_lengths: ArrayLike,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """`lstm` with the weights in matrices and vectors, as `unpack_lstm_weights` gives them.

    Args:
        x: as for `lstm`.
        h_0: the same.
        c_0: the same.
        W_ih: matrices that inputs are multiplied by, by the number of layer and direction.
        W_hh: matrices that states are multiplied by.
        b_ih: vectors that are added.
        b_hh: vectors that are added, too.
        seq_lengths: as for `lstm`.
        input_size: the same.
        hidden_size: the same.
        num_layers: the same.
        dropout: 0.
        bidirectional: the same.

    Returns:
        What `lstm` returns.

    Raises:
        ValueError: shapes do not fit.
        NotImplementedError: `dropout` is not 0.
    """
    return _run(
        "lstm_ref",
        (x, h_0, c_0, seq_lengths),
        (W_ih, W_hh, b_ih, b_hh),
        (input_size, hidden_size, num_layers, dropout, bidirectional),
        None,
    )


def _run(
    name: str,
    arrays: tuple[ArrayLike, ...],
    weights: tuple[Mapping[int, ArrayLike], ...],
    sizes: tuple[int, int, int, float, bool],
    precision: Any,
) -> tuple[Array, Array, Array]:
    x, h_0, c_0, lengths = map(jnp.asarray, arrays)
    input_size, hidden_size, num_layers, dropout, bidirectional = sizes
    if dropout != 0:
        raise NotImplementedError(
            f"{name}: dropout is 0, got {dropout!r}; multiply the inputs of each layer by a mask, "
            "which random.bernoulli draws, and run the layers one by one"
        )
    directions = 2 if bidirectional else 1
    batch = x.shape[0] if x.ndim else 0
    wanted = (num_layers * directions, batch, hidden_size)
    for what, array, shape in (
        ("x", x, (batch, x.shape[1] if x.ndim > 1 else 0, input_size)),
        ("h_0", h_0, wanted),
        ("c_0", c_0, wanted),
        ("seq_lengths", lengths, (batch,)),
    ):
        if array.shape != shape:
            raise ValueError(f"{name}: {what} has the shape {shape} here, got {array.shape}")
    states, cells = [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            w_ih, w_hh, b_ih, b_hh = (jnp.asarray(part[number]) for part in weights)
            given = _reversed(x, lengths) if direction else x
            # The products with all inputs are one product.
            projected = jnp.matmul(given, w_ih.T, precision=precision) + (b_ih + b_hh)
            y, h, c = _layer(projected, h_0[number], c_0[number], w_hh, lengths, precision)
            outputs.append(_reversed(y, lengths) if direction else y)
            states.append(h)
            cells.append(c)
        x = jnp.concatenate(outputs, axis=-1)
    return x, jnp.stack(states), jnp.stack(cells)


def _layer(
    projected: Array, h: Array, c: Array, w_hh: Array, lengths: Array, precision: Any
) -> tuple[Array, Array, Array]:
    """One layer in one direction, from the products of inputs and weights."""

    def step(carry: tuple[Array, Array], given: tuple[Array, Array]) -> Any:
        h, c = carry
        time, at = given
        gates = at + jnp.matmul(h, w_hh.T, precision=precision)
        first, second, third, fourth = jnp.split(gates, _GATES, axis=-1)
        next_c = nn.sigmoid(second) * c + nn.sigmoid(first) * jnp.tanh(third)
        next_h = nn.sigmoid(fourth) * jnp.tanh(next_c)
        counts = (time < lengths)[:, None]
        h, c = jnp.where(counts, next_h, h), jnp.where(counts, next_c, c)
        return (h, c), jnp.where(counts, next_h, 0)

    dtype = jnp.result_type(projected, h, c, w_hh)
    times = jnp.arange(projected.shape[1], dtype=lengths.dtype)
    (h, c), y = lax.scan(
        step, (h.astype(dtype), c.astype(dtype)), (times, jnp.moveaxis(projected, 1, 0))
    )
    return jnp.moveaxis(y, 0, 1), h, c


def _reversed(x: Array, lengths: Array) -> Array:
    """Rows of a batch, each reversed up to its length."""
    time = jnp.arange(x.shape[1], dtype=lengths.dtype)
    places = jnp.where(time < lengths[:, None], lengths[:, None] - 1 - time, time)
    return jnp.take_along_axis(x, places[:, :, None], axis=1)


_publish(globals())
