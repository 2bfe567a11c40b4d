"""dovetail.nn.initializers: JAX's values, variances, shapes and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import nn, random
from dovetail.nn import initializers

pytestmark = pytest.mark.laws

KEY = random.key(1)
FAMILIES = ("glorot", "xavier", "lecun", "he", "kaiming")

FIXED: dict[str, tuple[Callable[[], Any], Any]] = {
    "uniform": (
        lambda: initializers.uniform(0.5)(KEY, (4, 3)),
        [0.21931624, 0.26687646, 0.22295916],
    ),
    "normal": (
        lambda: initializers.normal(0.5)(KEY, (4, 3)),
        [-0.07721859, 0.04235364, -0.06799024],
    ),
    "truncated_normal": (
        lambda: initializers.truncated_normal(0.5, None, -1.0, 3.0)(KEY, (4, 3)),
        [0.03399635, 0.13576068, 0.04168879],
    ),
    "glorot_uniform": (
        lambda: initializers.glorot_uniform()(KEY, (4, 3)),
        [-0.11363056, 0.06249826, -0.10013981],
    ),
    "lecun_normal": (
        lambda: initializers.lecun_normal()(KEY, (4, 3)),
        [-0.08376176, 0.04595387, -0.07375736],
    ),
    "he_normal": (
        lambda: initializers.he_normal(2, 3, 0)(KEY, (3, 3, 4, 5)),
        [-0.06839119, 0.03752117, -0.06022263],
    ),
    "fan_geo_avg": (
        lambda: initializers.variance_scaling(2.0, "fan_geo_avg", "normal")(KEY, (3, 4)),
        [-0.11734688, 0.06436361, -0.10332282],
    ),
    "orthogonal": (
        lambda: initializers.orthogonal(2.0, 0)(KEY, (4, 3)),
        [-0.14153409, 0.17543587, -1.75289118],
    ),
    "delta_orthogonal": (
        lambda: initializers.delta_orthogonal()(KEY, (1, 1, 2, 4)),
        [-0.06185877, -0.05446602, 0.50735462],
    ),
}


@pytest.mark.parametrize("name", FIXED)
def test_fixed_values(name: str) -> None:
    """Those of JAX 0.12 for the key 1."""
    make, expected = FIXED[name]
    np.testing.assert_allclose(np.asarray(make()).ravel()[:3], expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("distribution", ["normal", "truncated_normal", "uniform"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_variances(distribution: Any, dtype: str) -> None:
    shape = (3, 3, 40, 90)
    fans: dict[Any, float] = {"fan_in": 360, "fan_out": 810, "fan_avg": 585, "fan_geo_avg": 540}
    for mode, fan in fans.items():
        init = initializers.variance_scaling(1.5, mode, distribution)
        x = np.asarray(init(KEY, shape, dtype))
        assert x.dtype == dtype
        assert x.shape == shape
        scale = np.sqrt(1.5 / fan)
        assert abs(x.mean()) < 0.02 * scale
        assert abs(x.std() / scale - 1) < 0.02
        most = {"normal": np.inf, "truncated_normal": 2.3, "uniform": np.sqrt(3)}[distribution]
        assert abs(x).max() <= most * scale * 1.0001


def test_axes() -> None:
    one = initializers.variance_scaling(1.0, "fan_in", "normal")
    # Two dimensions in, and one of separate weights: of 12 numbers each, whatever their order.
    init = initializers.variance_scaling(1.0, "fan_in", "normal", (0, 2), 3, 1)
    np.testing.assert_allclose(
        init(KEY, (3, 5, 4, 2)), random.normal(KEY, (3, 5, 4, 2)) / 12**0.5, 1e-5
    )
    np.testing.assert_allclose(one(KEY, (4, 2)), random.normal(KEY, (4, 2)) / 2, 1e-5)


def test_orthogonal_columns() -> None:
    for shape, axis in (((4, 3), -1), ((3, 4), -1), ((2, 3, 4), 1), ((4, 3), 0)):
        for dtype in ("float32", "complex64", "bfloat16"):
            x = initializers.orthogonal(2.0, axis)(KEY, shape, dtype)
            assert (x.shape, x.dtype) == (shape, dtype)
            flat = np.moveaxis(np.asarray(x).astype("complex64"), axis, -1).reshape(-1, shape[axis])
            flat = flat if flat.shape[0] >= flat.shape[1] else flat.T
            tolerance = 0.1 if dtype == "bfloat16" else 1e-4
            np.testing.assert_allclose(
                flat.conj().T @ flat, 4 * np.eye(flat.shape[1]), atol=tolerance
            )
    kernel = initializers.delta_orthogonal()(KEY, (3, 4, 2, 5))
    rest = np.asarray(kernel).copy()
    np.testing.assert_allclose(rest[1, 1] @ rest[1, 1].T, np.eye(2), atol=1e-5)
    rest[1, 1] = 0
    assert not rest.any()


def test_dtypes_and_compiled_use() -> None:
    for family in FAMILIES:
        for kind in ("normal", "uniform"):
            init = getattr(initializers, f"{family}_{kind}")(dtype="float16")
            assert init(KEY, (3, 2)).dtype == "float16"
            assert init(KEY, (3, 2), jnp.float32).dtype == "float32"
            compiled = dt.jit(init, static_argnums=(1, 2))(KEY, (3, 2), "float32")
            np.testing.assert_allclose(compiled, init(KEY, (3, 2), "float32"), rtol=1e-5)
    assert initializers.he_normal()(KEY, (0, 3)).shape == (0, 3)
    assert initializers.zeros(None, (2,), "int8").dtype == "int8"
    assert initializers.ones(None, 3).tolist() == [1, 1, 1]
    assert initializers.constant(np.arange(3))(KEY, (2, 3)).tolist() == [[0, 1, 2]] * 2
    scaled = dt.grad(lambda s: initializers.normal(s)(KEY, (5,)).sum())(2.0)
    np.testing.assert_allclose(scaled, random.normal(KEY, (5,)).sum(), rtol=1e-5)
    assert nn.initializers is initializers


scaling: Any = initializers.variance_scaling  # for arguments of wrong types


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: initializers.glorot_normal()(KEY, (3,)), "glorot_normal needs weights with two"),
        (lambda: initializers.he_normal(0, 3)(KEY, (3, 2)), "he_normal: out_axis"),
        (lambda: initializers.he_normal(0, 0)(KEY, (3, 2)), "name a dimension twice"),
        (lambda: scaling(1.0, "fan", "normal"), "mode must be one of"),
        (lambda: scaling(1.0, "fan_in", "x"), "distribution must be one of"),
        (lambda: initializers.normal()(KEY, (2,), int), "float or complex dtype, got int32"),
        (lambda: initializers.orthogonal()(KEY, (3,)), "orthogonal needs two dimensions"),
        (lambda: initializers.orthogonal(1.0, 2)(KEY, (3, 3)), "column_axis"),
        (lambda: initializers.delta_orthogonal()(KEY, (3, 3, 4, 2)), "no fewer channels out"),
        (lambda: initializers.delta_orthogonal()(KEY, (3, 3)), "three to five dimensions"),
        (lambda: initializers.constant(np.ones(3))(KEY, (2,)), "broadcast"),
        (lambda: initializers.uniform()(KEY, (-1,)), "negative"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()
