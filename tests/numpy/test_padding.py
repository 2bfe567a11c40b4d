"""Padding, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

GENERATOR = np.random.default_rng(0)
ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "vector": GENERATOR.uniform(-5, 5, 4).astype(np.float32),
    "integers": GENERATOR.integers(-50, 50, 5).astype(np.int32),
    "matrix": GENERATOR.uniform(-5, 5, (3, 4)).astype(np.float32),
    "integer matrix": GENERATOR.integers(0, 9, (2, 3)).astype(np.int16),
    "block": GENERATOR.uniform(-5, 5, (2, 1, 3)).astype(np.float32),
    "one": np.array([3.0], np.float32),
}
MODES: dict[str, tuple[str, dict[str, Any]]] = {
    "constant": ("constant", {}),
    "constant of a value": ("constant", {"constant_values": 7}),
    "constant of sides": ("constant", {"constant_values": (3, 4)}),
    "edge": ("edge", {}),
    "wrap": ("wrap", {}),
    "reflect": ("reflect", {}),
    "reflect oddly": ("reflect", {"reflect_type": "odd"}),
    "symmetric": ("symmetric", {}),
    "symmetric oddly": ("symmetric", {"reflect_type": "odd"}),
    "ramp": ("linear_ramp", {}),
    "ramp to values": ("linear_ramp", {"end_values": (5, -4)}),
    "maximum": ("maximum", {}),
    "minimum of some": ("minimum", {"stat_length": 2}),
    "mean": ("mean", {}),
    "mean of some": ("mean", {"stat_length": (1, 2)}),
    "median": ("median", {}),
    "median of many": ("median", {"stat_length": 99}),
}
WIDTHS: tuple[Any, ...] = (0, 1, 3, (2, 0), (0, 11))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ARRAYS)
def test_equals_numpy(name: str, mode: str) -> None:
    x = ARRAYS[name]
    kind, arguments = MODES[mode]
    for width in WIDTHS:
        want = np.pad(x, width, kind, **arguments)
        got = jnp.pad(x, width, kind, **arguments)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(np.asarray(got), want, rtol=2e-5, atol=2e-5, err_msg=str(width))


def test_widths_of_each_dimension() -> None:
    x = ARRAYS["matrix"]
    values = ((1, 2), (3, 4))
    for widths in (((1, 2), (0, 3)), ((1,), (2,)), [[2, 1]], np.array([[1, 0], [0, 2]])):
        for mode in ("edge", "reflect", "mean"):
            want = np.pad(x, widths, mode)
            np.testing.assert_allclose(np.asarray(jnp.pad(x, widths, mode)), want, rtol=1e-6)
        want = np.pad(x, widths, constant_values=values)
        np.testing.assert_array_equal(jnp.pad(x, widths, constant_values=values), want)
        np.testing.assert_array_equal(jnp.pad(x, widths, constant_values=jnp.array(values)), want)
    for by_axis, same in (({1: 2}, ((0, 0), (2, 2))), ({-1: (1, 2), 0: 3}, ((3, 3), (1, 2)))):
        np.testing.assert_array_equal(jnp.pad(x, by_axis), np.pad(x, same))
    assert jnp.pad(3.0, 5).shape == ()
    assert jnp.pad(np.zeros((0, 2)), 1).shape == (2, 4)
    assert jnp.pad(np.zeros((0, 2)), ((0, 0), (1, 1)), "edge").shape == (0, 4)


def test_a_ramp_of_small_integers() -> None:
    padded = jnp.pad(jnp.array([4, 6], "int4"), 2, mode="linear_ramp")
    assert padded.dtype == "int4"
    assert padded.astype(int).tolist() == [0, 2, 4, 6, 3, 0]


def test_a_function_as_mode() -> None:
    seen = []

    def ends(row: Any, widths: tuple[int, int], axis: int, arguments: dict[str, Any]) -> Any:
        seen.append((widths, axis, arguments))
        return row.at[: widths[0]].set(arguments["left"]).at[row.size - widths[1] :].set(axis)

    def in_place(row: Any, widths: tuple[int, int], axis: int, arguments: dict[str, Any]) -> None:
        row[: widths[0]] = arguments["left"]
        row[row.size - widths[1] :] = axis

    x = ARRAYS["matrix"]
    got = jnp.pad(x, ((1, 2), (3, 1)), ends, left=9)
    np.testing.assert_array_equal(got, np.pad(x, ((1, 2), (3, 1)), in_place, left=9))
    assert ((1, 2), 0, {"left": 9}) in seen
    with pytest.raises(TypeError, match="returned None; arrays are immutable"):
        jnp.pad(x, 1, lambda *_: None)
    with pytest.raises(ValueError, match="must return a row of 5 elements, got 2"):
        jnp.pad(x, 1, lambda row, *_: row[:2])


@pytest.mark.parametrize("mode", MODES)
def test_transformations(mode: str) -> None:
    kind, arguments = MODES[mode]
    x = ARRAYS["matrix"]

    def padded(v: Any) -> Any:
        return jnp.pad(v, (2, 5), kind, **arguments)

    np.testing.assert_allclose(dt.jit(padded)(x), padded(x), rtol=1e-6, atol=1e-6)
    rows = dt.vmap(padded)(x)
    np.testing.assert_allclose(rows, np.stack([padded(row) for row in x]), rtol=1e-6, atol=1e-6)


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "negative": (lambda: jnp.pad(np.ones(3), -1), ValueError, "negative"),
    "unknown mode": (lambda: jnp.pad(np.ones(3), 1, "mirror"), ValueError, "one of constant"),
    "foreign argument": (
        lambda: jnp.pad(np.ones(3), 1, "edge", constant_values=3),
        ValueError,
        "mode 'edge' does not take constant_values",
    ),
    "floats": (lambda: jnp.pad(np.ones(3), 1.5), TypeError, "pad_width must hold integers"),
    "shape": (lambda: jnp.pad(np.ones((2, 2, 2)), ((1, 1), (2, 2))), ValueError, "one pair for"),
    "axis": (lambda: jnp.pad(np.ones(3), {1: 2}), ValueError, "out of bounds"),
    "no elements": (
        lambda: jnp.pad(np.ones((0, 2)), 1, "mean"),
        ValueError,
        "cannot extend axis 0, which has no elements",
    ),
    "length": (
        lambda: jnp.pad(np.ones(3), 1, "mean", stat_length=0),
        ValueError,
        "stat_length must be positive",
    ),
    "kind": (
        lambda: jnp.pad(np.ones(3), 1, "reflect", reflect_type="both"),
        ValueError,
        "'even' or 'odd'",
    ),
    "values": (
        lambda: jnp.pad(np.ones((3, 3)), 1, constant_values=[1, 2, 3]),
        ValueError,
        "constant_values must be a number, a pair",
    ),
    "too small": (
        lambda: jnp.pad(np.ones(3, "uint8"), 1, constant_values=-7),
        OverflowError,
        "^pad: .* -7 .* uint8",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("mode", ["edge", "reflect", "linear_ramp", "mean"])
def test_gradients_are_differences(mode: str, width: int) -> None:
    x = np.linspace(-1, 2, 5)

    def loss(v: Any) -> Any:
        out = jnp.pad(v, width, mode)
        return (out * jnp.cos(jnp.arange(out.size))).sum()

    with dt.enable_x64(True):
        slopes = dt.grad(loss)(x)
        for i in range(x.size):
            step = np.zeros(5)
            step[i] = 1e-6
            want = (loss(x + step) - loss(x - step)) / 2e-6
            np.testing.assert_allclose(slopes[i], want, rtol=1e-6, atol=1e-8)
