"""Cosine transforms, arrays between their elements, codes and integrals against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.ndimage

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.scipy import fft
from dovetail.scipy.cluster import vq
from dovetail.scipy.integrate import trapezoid
from dovetail.scipy.interpolate import RegularGridInterpolator
from dovetail.scipy.ndimage import map_coordinates

pytestmark = pytest.mark.tables

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("type", [1, 2, 3, 4])
def test_cosine_transforms(type: int) -> None:
    with dt.enable_x64(True):
        for size, norm in ((1 + (type == 1), None), (4, "ortho"), (5, "ortho"), (5, "forward")):
            x = RNG.normal(size=(size, 2))
            for name in ("dct", "idct"):
                expected = getattr(scipy.fft, name)(x, type, axis=0, norm=norm)
                actual = getattr(fft, name)(x, type, axis=0, norm=norm)
                np.testing.assert_allclose(np.asarray(actual), expected, atol=1e-14)
        x = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
        expected = scipy.fft.dctn(x.real, type, (5, 3)) + 1j * scipy.fft.dctn(x.imag, type, (5, 3))
        np.testing.assert_allclose(np.asarray(fft.dctn(x, type, (5, 3))), expected, atol=1e-13)
        back = fft.idctn(fft.dctn(x, type, axes=[0], norm="ortho"), type, axes=0, norm="ortho")
        np.testing.assert_allclose(np.asarray(back), x, atol=1e-14)


def test_dtypes_and_derivatives_of_cosine_transforms() -> None:
    assert fft.dct(jnp.arange(3, dtype="float16")).dtype == jnp.float32
    assert fft.dct(jnp.arange(3) > 1).dtype == jnp.float32
    x = RNG.normal(size=5).astype(np.float32)
    matrix = scipy.fft.dct(np.eye(5), axis=0)
    np.testing.assert_allclose(np.asarray(dt.jacobian(fft.dct)(x)), matrix, atol=1e-5)
    for wrong, message in (({"n": 0}, "n must be"), ({"norm": "none"}, "norm must be")):
        with pytest.raises(ValueError, match=message):
            fft.dct(x, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two points at least"):
        fft.dct(x, 1, n=1)
    for wrong in ({"axes": 0.5}, {"s": 0.5}):
        with pytest.raises(TypeError, match="an integer, got float"):
            fft.dctn(x, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="equal lengths"):
        fft.dctn(x[None], s=(3, 3), axes=(1,))
    with pytest.raises(NotImplementedError, match="type must be"):
        fft.idct(x, 5)


PLACES = np.array([-6.3, -5.2, -4.0, -1.2, -0.6, -0.3, 0.0, 1.7, 3.0, 4.3, 4.8, 5.6, 9.3])


@pytest.mark.parametrize("order", [0, 1])
def test_map_coordinates(order: int) -> None:
    x = RNG.normal(size=(5, 4)).astype(np.float32)
    places = np.stack(np.meshgrid(PLACES, PLACES - 0.45, indexing="ij")).astype(np.float32)
    names = {"constant": "grid-constant", "wrap": "grid-wrap"}
    for mode in ("constant", "nearest", "wrap", "mirror", "reflect"):
        theirs = names.get(mode, mode)
        expected = scipy.ndimage.map_coordinates(x, places, order=order, mode=theirs, cval=-2)
        actual = map_coordinates(x, places, order, mode, -2.0)
        np.testing.assert_allclose(np.asarray(actual), expected, atol=3e-6)
        np.testing.assert_array_equal(map_coordinates(x, list(places), order, theirs, -2.0), actual)


def test_map_coordinates_of_dtypes() -> None:
    integers = jnp.array([0, 1, -3, 4])
    result = map_coordinates(integers, [np.array([0.5, 1.25, 2.0, 9.0])], 1, cval=1.5)
    assert result.dtype == integers.dtype
    np.testing.assert_array_equal(np.asarray(result), [1, 0, -3, 1])
    flags = map_coordinates(integers > 0, [np.array([0.4, 0.5, 9.0])], 1)
    np.testing.assert_array_equal(np.asarray(flags), [False, True, False])
    half = jnp.array([1, 2], "float16")
    assert map_coordinates(half, [0.5], 1) == 1.5
    assert map_coordinates(half, [0.5], 1).dtype == jnp.float16
    np.testing.assert_array_equal(map_coordinates(integers * 1j, [np.array([1, 3])], 1), [1j, 4j])
    unknown = map_coordinates(half, [np.array([np.nan, np.inf, 1e10])], 1)
    np.testing.assert_array_equal(np.asarray(unknown), [np.nan, np.nan, 0])
    slope = dt.grad(lambda c: map_coordinates(jnp.array([1.0, 4.0, 2.0]), [c], 1))(1.25)
    assert slope == -2
    for wrong, error, message in (
        (lambda: map_coordinates(half, [1, 2], 1), ValueError, "an array for each dimension"),
        (lambda: map_coordinates(half[:0], [1], 1), ValueError, "needs elements"),
        (lambda: map_coordinates(half, [1j], 1), TypeError, "must be real"),
        (lambda: map_coordinates(half, 1, 1), TypeError, "coordinates to be a sequence"),
        (lambda: map_coordinates(half, [1], 2), NotImplementedError, "orders 0 and 1"),
        (lambda: map_coordinates(half, [1], 1, "odd"), NotImplementedError, "mode must be"),
    ):
        with pytest.raises(error, match=message):
            wrong()


def test_regular_grids() -> None:
    x, y = np.array([0.0, 0.5, 2.0, 3.0], np.float32), np.array([-1.0, 1.0, 4.0], np.float32)
    values = RNG.normal(size=(4, 3, 2)).astype(np.float32)
    places = np.array([[0.25, 0.5], [2.0, 4.0], [3.5, 0.0], [0.0, -1.0], [-1.0, 9.0]], np.float32)
    places = np.concatenate([places, [[np.nan, 0]]]).astype(np.float32)
    for method in ("linear", "nearest"):
        for filling in (np.nan, 7.0, None):
            theirs = scipy.interpolate.RegularGridInterpolator(
                (x, y), values, method, bounds_error=False, fill_value=filling
            )
            ours = RegularGridInterpolator((x, y), values, method, fill_value=filling)
            np.testing.assert_allclose(np.asarray(ours(places)), theirs(places), rtol=2e-5)
    parts = ours((places[:, 0], 0.5), method="linear")
    assert parts.shape == (6, 2)
    line = RegularGridInterpolator([x], jnp.arange(4))
    np.testing.assert_allclose(np.asarray(line(np.array([0.25, 1.25]))), [0.5, 1.5])
    assert line(2.0) == 2
    assert abs(dt.grad(line)(1.0) - 1 / 1.5) < 1e-6
    slope = dt.jit(dt.grad(lambda v: RegularGridInterpolator([x], v)(1.25)))(jnp.ones(4))
    np.testing.assert_allclose(np.asarray(slope), [0, 0.5, 0.5, 0])
    for wrong, error, message in (
        (lambda: RegularGridInterpolator((x, y), values[0, 0]), ValueError, "2 vectors"),
        (lambda: RegularGridInterpolator((y,), values), ValueError, "points must be vectors"),
        (lambda: RegularGridInterpolator([x], x, "cubic"), ValueError, "method must be"),
        (lambda: RegularGridInterpolator([x], x, fill_value=1j), ValueError, "fill_value must be"),
        (lambda: RegularGridInterpolator([x], x, bounds_error=True), NotImplementedError, "has no"),
        (lambda: ours(np.ones((2, 3))), ValueError, "2 coordinates"),
        (lambda: ours(3), ValueError, "2 coordinates"),
        (lambda: ours(()), ValueError, "2 coordinates"),
        (lambda: RegularGridInterpolator(3, x), TypeError, "points to be a sequence"),
    ):
        with pytest.raises(error, match=message):
            wrong()


def test_codes() -> None:
    obs, book = RNG.normal(size=(20, 3)), RNG.normal(size=(6, 3))
    codes, distances = vq.vq(obs.astype(np.float32), book.astype(np.float32))
    expected = scipy.cluster.vq.vq(obs, book)
    assert codes.dtype == jnp.int32
    np.testing.assert_array_equal(np.asarray(codes), expected[0])
    np.testing.assert_allclose(np.asarray(distances), expected[1], rtol=1e-6)
    one = vq.vq(jnp.array([0, 5, 2]), jnp.array([1, 4, 4]))
    assert [np.asarray(v).tolist() for v in one] == [[0, 1, 0], [1, 1, 1]]
    assert vq.vq(1j * obs, book)[1].dtype == jnp.float32
    assert vq.vq(obs[:0], book)[0].shape == (0,)
    slope = dt.grad(lambda b: vq.vq(obs, b)[1].sum())(book)
    away = [(book[k] - obs[i]) / expected[1][i] for i, k in enumerate(expected[0])]
    sums = [sum(a for a, c in zip(away, expected[0], strict=True) if c == k) for k in range(6)]
    np.testing.assert_allclose(np.asarray(slope), np.array([s + np.zeros(3) for s in sums]), 1e-5)
    with pytest.raises(ValueError, match="one code at least"):
        vq.vq(obs, book[:0])
    with pytest.raises(ValueError, match="as many columns"):
        vq.vq(obs, book[:, :2])


def test_trapezoid() -> None:
    y, x = RNG.normal(size=(3, 6)), np.cumsum(RNG.uniform(size=6))
    actual: Any = trapezoid(y, x)
    np.testing.assert_allclose(np.asarray(actual), scipy.integrate.trapezoid(y, x), rtol=1e-5)
