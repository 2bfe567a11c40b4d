"""Fourier transforms by the native kernel: NumPy's to a few units in the last place, along any
dimensions, and alike where arrays are divided or batched."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.runtime.arrays.held_values import held_value
from dovetail_cpu.kernel_library import library

pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler"),
]

RANDOM = np.random.default_rng(0)
KINDS = ("fft", "ifft", "rfft", "irfft")
LENGTHS = (1, 2, 3, 7, 15, 22, 26, 32, 49, 65, 100, 131, 338, 1000, 1009, 2310, 24576)
"""Each size that is transformed in registers, short and long, even and odd, and primes."""
POWERS = tuple(2**i for i in range(4, 15))
"""Lengths whose rows have steps of their own where vectors are long."""
TOGETHER = (36, 40, 84, 120, 360, 500, 528, 1500, 2000, 3432, 4000)
"""Lengths of which long vectors hold one, two or four rows, and so do halves of real rows."""


def signal(kind: str, shape: tuple[int, ...], axis: int, dtype: str) -> Any:
    """A real or complex array, with half of the coefficients along a dimension for "irfft"."""
    if kind == "irfft":
        shape = tuple(n // 2 + 1 if d == axis else n for d, n in enumerate(shape))
    x = RANDOM.normal(size=shape)
    if kind == "rfft":
        return x.astype(dtype)
    return (x + 1j * RANDOM.normal(size=shape)).astype(np.result_type(dtype, np.complex64))


def wide(x: Any) -> Any:
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def agree(got: Any, want: Any, dtype: str, case: Any) -> None:
    got = np.asarray(got)
    assert got.shape == want.shape, case
    assert got.dtype == np.result_type(dtype, np.complex64 if np.iscomplexobj(want) else dtype)
    scale = np.abs(want).max()
    error = np.abs(got - want).max() / scale if scale else np.abs(got).max()
    assert error < 8 * np.finfo(dtype).eps, (case, error / np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_lengths(kind: str, dtype: str) -> None:
    """One row, fewer rows than a vector has lanes, and more rows and columns."""
    signals = {n: signal(kind, (37, n), 1, dtype) for n in LENGTHS + POWERS + TOGETHER}
    along_first = getattr(jnp.fft, kind)

    @dt.jit  # One program for all: what takes the time is to compile them.
    def transformed(signals: Any) -> Any:
        return {
            n: (
                lax.fft(x, kind, (n,)),
                lax.fft(x[0], kind, (n,)),
                lax.fft(x[:3], kind, (n,)),
                along_first(x[:18].T, n, axis=0),
            )
            for n, x in signals.items()
        }

    with dt.enable_x64(True):
        for n, (rows, row, few, columns) in transformed(signals).items():
            want = getattr(np.fft, kind)(wide(signals[n]), n)
            agree(rows, want, dtype, n)
            agree(row, want[0], dtype, (n, "one row"))
            agree(few, want[:3], dtype, (n, "three rows"))
            agree(columns, want[:18].T, dtype, (n, "columns"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_long_rows_and_columns(kind: str, dtype: str) -> None:
    """Lengths in two steps with and without a table of roots, convolutions, and long columns."""
    with dt.enable_x64(True):
        for shape in ((65536,), (3**10,), (2 * 3**9, 2), (10007, 2), (11**4 * 7,)):
            n, rows = shape[0], shape[1:]
            x = signal(kind, shape, 0, dtype)
            want = getattr(np.fft, kind)(wide(x), n, axis=0)
            agree(getattr(jnp.fft, kind)(x, n, axis=0), want, dtype, shape)
            if rows:
                agree(getattr(jnp.fft, kind)(x.T, n, axis=1), want.T, dtype, shape)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_dimensions(kind: str, dtype: str) -> None:
    """One to three dimensions, wherever they are, in any order."""
    shape = (6, 20, 28, 3)
    name = f"{kind}n"
    with dt.enable_x64(True):
        cases = (
            *((0,), (1,), (0, 1), (1, 2), (2, 3), (0, 2), (1, 0)),
            *((0, 1, 2), (1, 2, 3), (0, 1, 2, 3)),
        )
        signals = [signal(kind, shape, axes[-1], dtype) for axes in cases]
        lengths = [tuple(shape[d] for d in axes) for axes in cases]
        transform = getattr(jnp.fft, name)
        got = dt.jit(lambda xs: list(map(transform, xs, lengths, cases)))(signals)
        for axes, x, sizes, y in zip(cases, signals, lengths, got, strict=True):
            agree(y, getattr(np.fft, name)(wide(x), sizes, axes), dtype, axes)


@pytest.mark.parametrize("kind", KINDS)
def test_without_kernel(kind: str) -> None:
    """The option takes the kernel out of the program, and changes nothing but roundings."""
    x = signal(kind, (5, 128), 1, "float32")
    text, values = {}, {}
    for native in (True, False):
        with dt.cpu_kernels(native):
            transform = dt.jit(lambda x: lax.fft(x, kind, (128,)))
            text[native] = "dovetail_fft" in transform.lower(x).as_text()
            values[native] = np.asarray(transform(x))
    assert text == {True: True, False: False}
    np.testing.assert_allclose(values[True], values[False], atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_transformations(axis: int) -> None:
    """Batching along a dimension is transforming the others; gradients are transforms again."""
    x = signal("fft", (4, 16, 30), 0, "float32")
    along = [d for d in range(3) if d != axis]
    batched = dt.vmap(jnp.fft.fft2, in_axes=axis, out_axes=axis)(x)
    agree(batched, np.fft.fft2(wide(x), axes=along), "float32", axis)
    energy = dt.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.fft(x, axis=axis)) ** 2))(x)
    agree(energy, 2 * x.shape[axis] * np.conj(wide(x)), "float32", axis)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_small_arrays_need_no_program(kind: str, dtype: str) -> None:
    """Those of lengths that the kernel is made for; of real numbers "fft" converts them first."""
    cases = (((64,), 1), ((1009,), 1), ((3, 10), 1), ((2, 5, 12), 2), ((4, 3, 8), 3))
    with dt.enable_x64(True):
        for shape, rank in cases:
            name, axes = f"{kind}n", tuple(range(len(shape) - rank, len(shape)))
            x = signal(kind, shape, len(shape) - 1, dtype)
            sizes = tuple(shape[axis] for axis in axes)
            got = getattr(jnp.fft, name)(jnp.asarray(x), sizes, axes)
            assert held_value(got) is not None, (shape, "a program was run")
            agree(got, getattr(np.fft, name)(wide(x), sizes, axes), dtype, shape)
        for length in (0, 131, 2**15):
            assert held_value(lax.fft(jnp.ones((2, length), dtype), "rfft", (length,))) is None
        assert held_value(jnp.fft.fft(jnp.ones(8, dtype))) is not None


def test_a_row_does_not_touch_others() -> None:
    """NaN and infinities stay in their row, also where several are transformed side by side."""
    for n in (64, 100, 120, 144):
        x = signal("fft", (21, n), 1, "float32")
        clean = np.asarray(jnp.fft.fft(x))
        x[3, 5], x[11, 0] = np.nan, np.inf
        rows = np.asarray(jnp.fft.fft(x))
        columns = np.asarray(jnp.fft.fft(x.T, axis=0)).T
        touched = np.isin(np.arange(21), (3, 11))
        for found in (rows, columns):
            assert not np.isfinite(found[touched]).any()
            np.testing.assert_allclose(found[~touched], clean[~touched], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["fftn", "ifftn", "rfftn"])
def test_small_matrices(kind: str) -> None:
    """More than are transformed before the next ones, and the dimension before them."""
    x = signal(kind[:-1], (20, 33, 64), 2, "float32")
    for axes in ((1, 2), (0, 1, 2)):
        got = getattr(jnp.fft, kind)(x, axes=axes)
        agree(got, getattr(np.fft, kind)(wide(x), axes=axes), "float32", axes)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["fft2", "ifft2"])
def test_large_matrices(kind: str, dtype: str) -> None:
    """The first dimension is divided by 8 or 16, where that makes its parts small enough."""
    with dt.enable_x64(True):
        for shape in ((512, 144), (2, 512, 160), (1024, 512), (48, 1600), (400, 272), (257, 304)):
            x = signal("fft", shape, len(shape) - 1, dtype)
            agree(getattr(jnp.fft, kind)(x), getattr(np.fft, kind)(wide(x)), dtype, shape)


def test_real_rows_do_not_touch_others() -> None:
    """NaN stays in its row also where rows become complex ones of half the length."""
    for n in (64, 128, 1000, 1024):
        x = signal("rfft", (20, n), 1, "float32")
        clean = np.asarray(jnp.fft.rfft(x))
        x[3, 4] = np.nan
        found = np.asarray(jnp.fft.rfft(x))
        assert np.isnan(found[3]).all()
        others = np.arange(20) != 3
        np.testing.assert_allclose(found[others], clean[others], rtol=1e-4, atol=1e-4)


def test_impulses_are_exact() -> None:
    """A transform of one impulse at the start has ones everywhere, without rounding."""
    for n in (8, 60, 64, 1000, 1024, 4096, 2**16):
        x = np.zeros(n, np.complex64)
        x[0] = 1
        assert (np.asarray(jnp.fft.fft(x)) == 1).all()
        assert (np.asarray(jnp.fft.rfft(x.real)) == 1).all()


SHAPES = [shape for rank in (2, 3) for shape in itertools.product((1, 2, 3, 8), repeat=rank)]


@pytest.mark.parametrize("kind", KINDS)
def test_short_dimensions(kind: str) -> None:
    """All of them at once; a dimension of one element has a part in the scale of the others."""
    shapes = [shape for shape in SHAPES if kind != "irfft" or shape[-1] > 1]
    signals = [signal(kind, shape, len(shape) - 1, "float32") for shape in shapes]

    @dt.jit
    def transformed(signals: Any) -> Any:
        return [
            getattr(jnp.fft, f"{kind}n")(x, s=shape, axes=tuple(range(len(shape))))
            for x, shape in zip(signals, shapes, strict=True)
        ]

    for x, shape, got in zip(signals, shapes, transformed(signals), strict=True):
        want = getattr(np.fft, f"{kind}n")(wide(x), s=shape, axes=tuple(range(len(shape))))
        agree(got, want, "float32", shape)
