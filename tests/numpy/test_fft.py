"""Discrete Fourier transforms against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

ALONG = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
OVER = ("fftn", "ifftn", "rfftn", "irfftn")
OVER_TWO = ("fft2", "ifft2", "rfft2", "irfft2")
TAKES_REAL = ("rfft", "ihfft", "rfftn", "rfft2")
RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(3, 4, 5)).astype(np.float32)
COMPLEX = (REAL + 1j * RNG.normal(size=(3, 4, 5))).astype(np.complex64)


def sample(name: str) -> Any:
    return REAL if name in TAKES_REAL else COMPLEX


def wide(x: Any) -> Any:
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def check(name: str, x: Any, *args: Any, **options: Any) -> None:
    actual = getattr(jnp.fft, name)(x, *args, **options)
    expected = getattr(np.fft, name)(wide(x), *args, **options)
    assert actual.shape == expected.shape
    assert actual.dtype.kind == expected.dtype.kind
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=2e-6 * scale)


DTYPES = ("bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    x = RNG.integers(0, 2, size=6).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    for name in ALONG:
        function = getattr(jnp.fft, name)
        if dtype == "complex64" and name in TAKES_REAL:
            with pytest.raises(TypeError, match=f"fft.{name} is defined for real numbers only"):
                function(x)
            continue
        result = dt.eval_shape(function, x)
        assert result.dtype == ("float32" if name in ("irfft", "hfft") else "complex64")
        assert not result.weak_type
    for name in ("fft", "hfft" if dtype == "complex64" else "rfft"):
        check(name, x)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float16", "float32", "float64"])
def test_wide_dtypes(dtype: str) -> None:
    with dt.enable_x64(True):
        x = np.arange(5).astype(dtype)
        bits = "128" if dtype in ("int64", "float64") else "64"
        assert jnp.fft.fft(x).dtype == jnp.fft.rfft(x).dtype == f"complex{bits}"
        assert jnp.fft.irfft(x).dtype == f"float{int(bits) // 2}"
        if bits == "128":
            np.testing.assert_allclose(jnp.fft.ifft(x), np.fft.ifft(x), rtol=1e-14, atol=1e-15)


ALONG_CASES: tuple[tuple[Any, ...], ...] = (
    (),
    (6, 0, None),
    (3, -2, "backward"),
    (None, 1, "ortho"),
    (8, -1, "forward"),
    (1,),
)


@pytest.mark.parametrize("args", ALONG_CASES, ids=str)
@pytest.mark.parametrize("name", ALONG)
def test_one_dimension(name: str, args: tuple[Any, ...]) -> None:
    check(name, sample(name), *args)


OVER_CASES: tuple[dict[str, Any], ...] = (
    {},
    {"axes": (0,)},
    {"axes": [-1, 0], "norm": "ortho"},
    {"s": (4, 4), "axes": (1, 0), "norm": "forward"},
    {"s": [2, 6, 4], "axes": (0, 1, 2), "norm": "backward"},
)


@pytest.mark.parametrize("options", OVER_CASES, ids=str)
@pytest.mark.parametrize("name", OVER)
def test_several_dimensions(name: str, options: Any) -> None:
    check(name, sample(name), **options)


@pytest.mark.parametrize("options", [{}, {"s": (3, 6)}, {"axes": (2, 0), "norm": "ortho"}], ids=str)
@pytest.mark.parametrize("name", OVER_TWO)
def test_two_dimensions(name: str, options: Any) -> None:
    check(name, sample(name), **options)


@pytest.mark.parametrize("name", OVER)
def test_many_dimensions(name: str) -> None:
    x = RNG.normal(size=(2, 3, 2, 3, 4)).astype(np.float32)
    check(name, x)
    check(name, x, axes=(4, 0, 3, 1))


def test_sizes_without_dimensions() -> None:
    expected = np.fft.fftn(REAL, (2, 6), (-2, -1))
    np.testing.assert_allclose(jnp.fft.fftn(REAL, (2, 6)), expected, rtol=1e-5, atol=1e-5)
    scalar = jnp.fft.fftn(np.float32(2))
    assert (scalar.shape, scalar.dtype, complex(scalar)) == ((), np.complex64, 2)
    same = jnp.fft.ifftn(REAL, axes=())
    np.testing.assert_array_equal(same, REAL)


def test_no_elements() -> None:
    for name in ALONG + OVER:
        empty = sample(name)[:0]
        options = {"axes": (1, 2)} if name in OVER else {}
        check_shape = getattr(np.fft, name)(empty, **options).shape
        assert getattr(jnp.fft, name)(empty, **options).shape == check_shape


@pytest.mark.parametrize("name", ALONG + ("fft2", "rfftn", "irfftn"))
def test_transformations(name: str) -> None:
    function = getattr(jnp.fft, name)

    @dt.jit
    def everything(x: Any, v: Any) -> Any:
        result, changed = dt.jvp(function, (x,), (v,))
        (back,) = dt.vjp(function, x)[1](result)
        each = dt.vmap(function)(jnp.stack([x, v]))
        return each, changed, jnp.sum(back * v).real, jnp.sum(result * changed).real

    x, v = sample(name)[:2]
    each, changed, one, other = everything(x, v)
    result, expected = function(x), function(v)
    np.testing.assert_allclose(each, np.stack([result, expected]), rtol=1e-5, atol=1e-5)
    # The transforms are linear over the real numbers, and a gradient is the adjoint.
    np.testing.assert_allclose(changed, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [1, 4, 5])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name: str, n: int) -> None:
    function = getattr(jnp.fft, name)
    for d in (0.1, np.float32(2)):
        result = function(n, d)
        assert result.dtype == np.float32
        assert not result.weak_type
        np.testing.assert_allclose(result, getattr(np.fft, name)(n, d), rtol=1e-6)
    assert function(n, dtype="float16").dtype == np.float16
    assert function(np.int32(n), device=dt.devices()[0]).shape == function(n).shape
    slope = dt.grad(lambda d: function(8, d)[1])(2.0)
    np.testing.assert_allclose(slope, -1 / 32)


@pytest.mark.parametrize("axes", [None, 0, -1, (0, 2), [1], (), (0, -3)], ids=str)
@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name: str, axes: Any) -> None:
    x = np.arange(60, dtype=np.int8).reshape(3, 4, 5)
    result = getattr(jnp.fft, name)(x, axes=axes)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, getattr(np.fft, name)(x, axes=axes))
    assert getattr(jnp.fft, name)(np.float32(1)).shape == ()


@pytest.mark.parametrize("name", ["fft", "irfft", "rfftn", "irfft2"])
@pytest.mark.parametrize("factor", [jnp.linalg.qr, dt.lax.linalg.lu])
def test_factorisations_of_transforms(name: str, factor: Any) -> None:
    """LAPACK has another order of elements in memory, which XLA's transforms must not take over."""
    transform = getattr(jnp.fft, name)
    x = transform(sample(name))
    for got, want in zip(
        dt.tree.leaves(dt.jit(lambda x: factor(transform(x)))(sample(name))),
        dt.tree.leaves(factor(x)),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


ERRORS: tuple[tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str], ...] = (
    ("fft", ([1.0, 2.0],), {}, TypeError, "fft.fft requires its argument a to be an array"),
    ("fft", (np.float32(1),), {}, ValueError, "fft.fft: axis -1 is out of bounds"),
    ("fft", (REAL,), {"axis": 3}, ValueError, "axis 3 is out of bounds"),
    ("fft", (REAL,), {"axis": (0, 1)}, ValueError, "use fft.fftn"),
    ("fft", (REAL,), {"axis": None}, TypeError, "requires axis to be an integer"),
    ("rfft", (REAL, 0), {}, ValueError, "fft.rfft: n must be positive, got 0"),
    ("ifft", (REAL, -1), {}, ValueError, "fft.ifft: n must be positive"),
    ("fft", (REAL, 2.5), {}, TypeError, "requires n to be an integer"),
    ("fft", (REAL,), {"norm": "unit"}, ValueError, '"ortho" or "forward", got \'unit\''),
    ("fft", (np.zeros(0),), {}, ValueError, "needs a signal of one point at least"),
    ("irfft", (np.zeros(1),), {}, ValueError, "Say how many with n="),
    ("irfftn", (np.zeros((2, 1)),), {}, ValueError, "Say how many with s="),
    ("rfftn", (COMPLEX,), {}, TypeError, "real numbers only"),
    ("fftn", (REAL,), {"axes": (0, -3)}, ValueError, "duplicate value in axes"),
    ("fftn", (REAL,), {"axes": 1}, TypeError, r"write \(1,\) for one"),
    ("fftn", (REAL,), {"s": 4}, TypeError, "requires s to be a sequence"),
    ("fftn", (REAL,), {"axes": (4,)}, ValueError, "axes 4 is out of bounds"),
    ("fftn", (REAL, (2, 2)), {"axes": (0,)}, ValueError, "must have equal lengths"),
    ("fftn", (REAL[0, 0], (2, 2)), {}, ValueError, "names 2 sizes, and a has rank 1"),
    ("fftn", (REAL, (2, None)), {}, TypeError, "requires s to be an integer"),
    ("rfftn", (REAL,), {"axes": ()}, ValueError, "at least one dimension"),
    ("fft2", (REAL,), {"axes": (0,)}, ValueError, "use fft.fftn for other numbers"),
    ("irfft2", (REAL,), {"axes": None}, ValueError, "use fft.irfftn"),
    ("fft2", (REAL[0, 0],), {}, ValueError, "the array has 1 dimension"),
    ("fftfreq", (0,), {}, ValueError, "fft.fftfreq: n must be positive"),
    ("fftfreq", (2.5,), {}, TypeError, "requires n to be an integer"),
    ("rfftfreq", (3, np.ones(2)), {}, ValueError, "d must be a scalar"),
    ("fftfreq", (3, 1j), {}, TypeError, "real numbers only"),
    ("fftfreq", (3,), {"dtype": "int32"}, TypeError, "dtype must be one of floating point"),
    ("fftshift", (REAL,), {"axes": 3}, ValueError, "fft.fftshift: axes 3 is out of bounds"),
    ("ifftshift", ([1, 2],), {}, TypeError, "fft.ifftshift requires its argument x"),
)


@pytest.mark.parametrize(
    ("name", "args", "options", "error", "match"), ERRORS, ids=lambda v: v if type(v) is str else ""
)
def test_errors(
    name: str, args: tuple[Any, ...], options: Any, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        getattr(jnp.fft, name)(*args, **options)
