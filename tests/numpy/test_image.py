"""Images on other grids: against sums that are written out, exact properties and derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.image import ResizeMethod, resize, scale_and_translate

pytestmark = pytest.mark.tables

RADII = {"linear": 1, "cubic": 2, "lanczos3": 3, "lanczos5": 5}


def _kernel(method: str, x: float) -> float:
    x = abs(x)
    if x >= RADII[method]:
        return 0.0
    if method == "linear":
        return 1 - x
    if method == "cubic":
        return 1.5 * x**3 - 2.5 * x**2 + 1 if x < 1 else -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return float(np.sinc(x) * np.sinc(x / RADII[method]))


def _matrix(method: str, n: int, m: int, antialias: bool, scale: float, offset: float) -> Any:
    """Weights by their definition, in Python."""
    result = np.zeros((m, n))
    for i in range(m):
        centre = (i + 0.5 - offset) / scale - 0.5
        wide = max(1 / scale, 1) if antialias else 1
        if -0.5 <= centre <= n - 0.5:
            row = np.array([_kernel(method, (centre - j) / wide) for j in range(n)])
            result[i] = row / row.sum()
    return result


@pytest.mark.parametrize("method", list(RADII))
def test_kernels(method: str) -> None:
    x = np.random.default_rng(0).normal(size=(2, 7, 5)).astype(np.float32)
    for antialias in (True, False):
        rows = _matrix(method, 7, 3, antialias, 3 / 7, 0)
        columns = _matrix(method, 5, 9, antialias, 9 / 5, 0)
        expected = np.einsum("aij,mi,nj->amn", x, rows, columns)
        actual = resize(x, (2, 3, 9), method, antialias)
        assert actual.dtype == jnp.float32
        np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-6, atol=2e-6)
        rows = _matrix(method, 7, 6, antialias, 0.6, 1.25)
        columns = _matrix(method, 5, 8, antialias, 1.7, -2.5)
        expected = np.einsum("aij,mi,nj->amn", x, rows, columns)
        scale, offset = np.array([1.7, 0.6]), np.array([-2.5, 1.25])
        actual = scale_and_translate(x, (2, 6, 8), (-1, 1), scale, offset, method, antialias)
        np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-6, atol=3e-6)


@pytest.mark.parametrize("method", list(RADII))
@pytest.mark.parametrize("antialias", [True, False])
def test_sums_of_few_pixels(method: str, antialias: bool) -> None:
    """Of large images few pixels have a weight; derivatives are sums of few, too."""
    with dt.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(140, 2, 135))
        rows = _matrix(method, 140, 60, antialias, 60 / 140, 0)
        columns = _matrix(method, 135, 210, antialias, 210 / 135, 0)
        expected = np.einsum("iaj,mi,nj->man", x, rows, columns)
        function = dt.jit(lambda x: resize(x, (60, 2, 210), method, antialias))
        np.testing.assert_allclose(np.asarray(function(x)), expected, rtol=1e-12, atol=1e-12)
        y = np.random.default_rng(1).normal(size=(60, 2, 210))
        (slope,) = dt.vjp(function, x)[1](y)
        transposed = np.einsum("man,mi,nj->iaj", y, rows, columns)
        np.testing.assert_allclose(np.asarray(slope), transposed, rtol=1e-12, atol=1e-12)


def test_pixels_that_are_not_finite_are_seen_near_them() -> None:
    x = np.ones((100, 1), np.float32)
    x[50] = np.nan
    resized = np.asarray(resize(x, (200, 1), "cubic"))
    assert np.isnan(resized).sum() == 8
    assert np.isnan(resized[97:105]).all()


def test_nearest_and_area() -> None:
    x = np.arange(35, dtype=np.uint8).reshape(5, 7)
    nearest = resize(x, (4, 13), "nearest")
    rows = [math.floor((i + 0.5) * 5 / 4) for i in range(4)]
    columns = [math.floor((i + 0.5) * 7 / 13) for i in range(13)]
    assert nearest.dtype == jnp.uint8
    np.testing.assert_array_equal(np.asarray(nearest), x[rows][:, columns])
    area = resize(x, (5, 14), "area")  # every pixel twice
    np.testing.assert_array_equal(np.asarray(area), np.repeat(x, 2, 1))
    pairs = np.asarray(resize(x[:4, :6], (2, 3), ResizeMethod.AREA))
    np.testing.assert_allclose(pairs, x[:4, :6].reshape(2, 2, 3, 2).mean((1, 3)), rtol=1e-6)
    x = np.random.default_rng(0).normal(size=90).astype(np.float32)
    fours = np.repeat(x, 4).reshape(-1, 6).mean(1)
    np.testing.assert_allclose(resize(x, (60,), "area"), fours, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("n", "m"), [(4, 9), (40, 90), (90, 31), (33, 11)])
def test_edges_that_are_repeated(n: int, m: int) -> None:
    """PyTorch's cubic: the image goes on with the pixels at its edges."""
    x = np.random.default_rng(0).normal(size=n).astype(np.float32)
    padded = np.pad(x, 4, mode="edge")
    expected = []
    for i in range(m):
        centre = (i + 0.5) * n / m - 0.5
        near = math.floor(centre)
        total = 0.0
        for j in range(near - 1, near + 3):
            d = abs(centre - j)
            a = -0.75
            inner = (a + 2) * d**3 - (a + 3) * d**2 + 1
            total += padded[j + 4] * (inner if d < 1 else a * (d**3 - 5 * d**2 + 8 * d - 4))
        expected.append(total)
    actual = resize(x, (m,), "cubic-pytorch", antialias=False)
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-6, atol=2e-6)
    with_antialias = resize(x, (3,), "bicubic-pytorch")
    np.testing.assert_array_equal(with_antialias, resize(x, (3,), "bicubic"))


def test_dtypes_and_sizes() -> None:
    half = jnp.asarray([1, 2, 4, 8], "bfloat16")
    assert resize(half, (3,), "linear").dtype == jnp.bfloat16
    assert resize(half, (4,), "lanczos5") is not None
    assert resize(jnp.array([True, False]), (1,), "linear").dtype == jnp.float32
    assert resize(jnp.array([1j, 2, 0]), (2,), "cubic").dtype == jnp.complex64
    assert resize(half, (0,), "cubic").shape == (0,)
    assert resize(half[:0], (0,), "cubic").dtype == jnp.bfloat16
    unchanged = jnp.arange(4)
    assert resize(unchanged, (4,), "cubic").dtype == unchanged.dtype
    # Centres of a large image are exact: the middle of two neighbours has their mean.
    large = resize(jnp.arange(4000) % 2, (2000,), "linear", antialias=False)
    assert set(np.unique(np.asarray(large[::200]))) == {0.5}
    with dt.enable_x64(True):
        wide = resize(np.array([1.0, 2.0, 4.0]), (2,), "cubic")
        expected = _matrix("cubic", 3, 2, True, 2 / 3, 0) @ [1.0, 2.0, 4.0]
        np.testing.assert_allclose(np.asarray(wide), expected, rtol=1e-15)


@pytest.mark.parametrize("method", ["cubic", "lanczos3"])
def test_derivatives(method: str) -> None:
    with dt.enable_x64(True):
        x = np.random.default_rng(1).normal(size=(6,))
        given = np.array([0.73]), np.array([0.31])

        def total(s: Any, t: Any) -> Any:
            return (scale_and_translate(x, (7,), (0,), s, t, method) ** 2).sum()

        compiled = dt.jit(total)
        for k, slope in enumerate(dt.jit(dt.grad(total, (0, 1)))(*given)):
            above, below = list(given), list(given)
            above[k], below[k] = given[k] + 1e-6, given[k] - 1e-6
            difference = (compiled(*above) - compiled(*below)) / 2e-6
            np.testing.assert_allclose(slope[0], difference, rtol=1e-6)
        # Where samples fall on pixels nothing is nan.
        exact = dt.jit(dt.grad(total, (0, 1)))(np.ones(1), np.zeros(1))
        assert np.isfinite(exact).all()
        # A resized image is linear: its derivative is the transposed matrix.
        rows = _matrix(method, 6, 4, True, 4 / 6, 0)
        slope = dt.grad(lambda x: resize(x, (4,), method)[2])(x)
        np.testing.assert_allclose(np.asarray(slope), rows[2], atol=1e-14)


def test_transformations() -> None:
    large = np.random.default_rng(2).normal(size=(3, 40)).astype(np.float32)
    rows = _matrix("linear", 40, 90, True, 90 / 40, 0).astype(np.float32)
    loss = dt.grad(lambda x: (resize(x, (90,), "linear") ** 2).sum())
    np.testing.assert_allclose(
        dt.vmap(loss)(large), 2 * large @ rows.T @ rows, rtol=1e-4, atol=1e-5
    )
    _, tangent = dt.jvp(lambda x: resize(x, (3, 90), "linear"), (large,), (large,))
    np.testing.assert_allclose(np.asarray(tangent), large @ rows.T, rtol=1e-5, atol=1e-5)
    x = np.random.default_rng(2).normal(size=(3, 6, 5)).astype(np.float32)
    batch = dt.vmap(lambda x: resize(x, (4, 7), "linear"))(x)
    np.testing.assert_allclose(np.asarray(batch), resize(x, (3, 4, 7), "linear"), rtol=1e-5)
    jitted = dt.jit(lambda s: scale_and_translate(x[0], (6, 5), (1,), s, s, "linear"))
    eager = scale_and_translate(x[0], (6, 5), (1,), np.array([0.7]), np.array([0.7]), "linear")
    np.testing.assert_allclose(np.asarray(jitted(np.array([0.7]))), eager, rtol=1e-5, atol=1e-6)
    # A mirror: the first pixel becomes the last.
    mirrored = scale_and_translate(x[0], (6, 5), (1,), np.array([-1.0]), np.array([5.0]), "cubic")
    np.testing.assert_array_equal(np.asarray(mirrored), x[0][:, ::-1])


def test_errors() -> None:
    x, one = jnp.ones((2, 2)), np.ones(1)
    for arguments in ((x, (2,), "linear"), (x, (2, -1), "linear"), (x[:0], (2, 2), "linear")):
        with pytest.raises(ValueError, match=r"image\.resize"):
            resize(*arguments)
    with pytest.raises(ValueError, match="unknown method of resizing 'Linear'"):
        resize(x, (2, 2), "Linear")
    with pytest.raises(TypeError, match="method must be a name"):
        resize(x, (2, 2), 5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'nearest'"):
        scale_and_translate(x, (2, 2), (0,), one, one, "nearest")
    with pytest.raises(ValueError, match="sizes in shape"):
        resize(x, (2**40, 2), "linear")
    with pytest.raises(TypeError, match="spatial_dims to be an integer"):
        scale_and_translate(x, (2, 2), None, one, one, "linear")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dimension 1 is not in spatial_dims"):
        scale_and_translate(x, (2, 3), (0,), one, one, "linear")
    with pytest.raises(ValueError, match="translation must have a number"):
        scale_and_translate(x, (2, 2), (0,), one, np.ones(2), "linear")
    with pytest.raises(TypeError, match="scale must hold real numbers"):
        scale_and_translate(x, (2, 2), (0,), one * 1j, one, "linear")
