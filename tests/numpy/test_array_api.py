"""What the Python array API standard asks beyond NumPy; `nox -s array-api` runs its own tests."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

INFO = jnp.__array_namespace_info__()
INF = np.inf


def test_namespace() -> None:
    x = jnp.ones(2)
    assert x.__array_namespace__() is jnp
    assert x.__array_namespace__(api_version="2025.12") is jnp
    with pytest.raises(ValueError, match=r"2025\.12, not 2030\.01"):
        x.__array_namespace__(api_version="2030.01")
    assert x.to_device(x.device).device == x.device == INFO.default_device()
    assert jnp.asarray([1], device=x.device, copy=True).device in INFO.devices()
    assert set(INFO.capabilities()) == {
        "boolean indexing",
        "data-dependent shapes",
        "max dimensions",
    }


@pytest.mark.parametrize("wide", [False, True])
def test_dtypes_of_the_namespace(wide: bool) -> None:
    with dt.enable_x64(wide):
        assert INFO.default_dtypes() == {
            "real floating": jnp.zeros(1).dtype,
            "complex floating": (jnp.zeros(1) * 1j).dtype,
            "integral": jnp.arange(1).dtype,
            "indexing": jnp.argmax(jnp.zeros(1)).dtype,
        }
        everything = INFO.dtypes()
        assert ("float64" in everything) == ("int64" in everything) == wide
        for kind in ("bool", "integral", "numeric", ("bool", "complex floating")):
            chosen = INFO.dtypes(kind=kind)
            assert chosen == {n: d for n, d in everything.items() if jnp.isdtype(d, kind)}
    with pytest.raises(ValueError, match="there is no kind 'float'; it is one of bool, signed"):
        INFO.dtypes(kind="float")


#: Dividend, divisor, quotient rounded down, rest; where Python and NumPy have other quotients, too.
DIVISIONS = (
    (0.0, 1.0, 0.0, 0.0),
    (-0.0, 1.0, -0.0, 0.0),
    (0.0, -1.0, -0.0, -0.0),
    (-0.0, -1.0, 0.0, -0.0),
    (4.0, -2.0, -2.0, -0.0),
    (-4.0, 2.0, -2.0, 0.0),
    (-1e-30, 1.0, -1.0, 1.0),
    (1.0, INF, 0.0, 1.0),
    (1.0, -INF, -0.0, -INF),
    (-1.0, INF, -0.0, INF),
    (-1.0, -INF, 0.0, -1.0),
    (INF, 2.0, INF, np.nan),
    (INF, -2.0, -INF, np.nan),
    (-INF, 2.0, -INF, np.nan),
    (INF, INF, np.nan, np.nan),
    (5.0, 0.0, INF, np.nan),
    (5.0, -0.0, -INF, np.nan),
    (0.0, 0.0, np.nan, np.nan),
)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_division_at_the_edges(dtype: str) -> None:
    x, y, quotient, rest = (jnp.array(column, dtype) for column in zip(*DIVISIONS, strict=True))

    def same(found: Any, expected: Any) -> None:
        a, b = np.asarray(found, np.float32), np.asarray(expected, np.float32)
        np.testing.assert_array_equal(a, b)
        known = ~np.isnan(b)
        np.testing.assert_array_equal(np.signbit(a)[known], np.signbit(b)[known])

    same(jnp.floor_divide(x, y), quotient)
    same(jnp.remainder(x, y), rest)
    found = jnp.divmod(x, y)
    same(found[0], quotient)
    same(found[1], rest)
    for a, b, c, _ in DIVISIONS:  # constants of the program are divided by in another way
        if b in (2.0, 0.0, INF):
            same(dt.jit(lambda v, b=b: v // b)(jnp.array(a, dtype)), jnp.array(c, dtype))


def test_derivatives_of_rests_that_are_zero() -> None:
    for x, y in ((4.0, -2.0), (0.0, 1.0), (-0.0, 1.0), (3.5, 2.0)):
        assert dt.grad(jnp.remainder)(x, y) == 1
        assert dt.grad(jnp.remainder, 1)(x, y) == -jnp.trunc(x / y)


def test_signs_of_complex_zeros() -> None:
    zeros = np.array([complex(a, b) for a in (0.0, -0.0) for b in (0.0, -0.0)], np.complex64)
    signs = np.asarray(jnp.sign(zeros))
    np.testing.assert_array_equal(signs, 0)
    assert not np.signbit(signs.real).any()
    assert not np.signbit(signs.imag).any()


def test_masks_without_elements_select_nothing() -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for shape in ((0,), (0, 3), (2, 0), (0, 0)):
        mask = np.zeros(shape, bool)
        assert jnp.asarray(x)[mask].shape == x[mask].shape
        np.testing.assert_array_equal(jnp.asarray(x).at[mask].set(1.0), x)
    for shape in ((1,), (0, 2), (2, 1)):
        with pytest.raises(IndexError, match="did not match"):
            jnp.asarray(x)[np.zeros(shape, bool)]


@pytest.mark.parametrize("text", ["", "(", "f4,", "no dtype: at all", "(2,)f4", "test::x[1]"])
def test_scalar_types_compare_with_any_text(text: str) -> None:
    assert jnp.float32 != text
    assert jnp.float32 == "float32"


@pytest.mark.parametrize("name", ["arccosh", "arcsinh", "arccos", "arcsin"])
def test_what_is_not_a_number_spreads(name: str) -> None:
    """A part that is nan leaves nothing of a finite one, however large it is; C99, annex G."""
    with dt.enable_x64(True):
        parts = [0.0, 1.0, -2.0, 9e153, -9e300, np.inf, -np.inf]
        points = np.array([complex(p, np.nan) for p in parts] + [complex(np.nan, p) for p in parts])
        found = np.asarray(getattr(jnp, name)(points))
        expected = getattr(np, name)(points)
    for part in ("real", "imag"):
        np.testing.assert_allclose(abs(getattr(found, part)), abs(getattr(expected, part)))


def test_a_dimension_that_is_not_there_is_an_index_error() -> None:
    for call in (jnp.sum, jnp.sort, jnp.flip, jnp.expand_dims, jnp.cumulative_sum):
        for kind in (IndexError, ValueError, np.exceptions.AxisError):
            with pytest.raises(kind, match="axis 5 is out of bounds"):
                call(jnp.ones((2, 3)), axis=5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_sign_of_a_zero_is_a_positive_one(dtype: str) -> None:
    zeros = jnp.array([0.0, -0.0], dtype)
    for found in (
        jnp.sign(zeros),
        dt.jit(jnp.sign)(zeros),
        jnp.stack([jnp.sign(z) for z in zeros]),
    ):
        assert not np.signbit(np.asarray(found, np.float32)).any()
    assert not np.signbit(float(jnp.sign(-0.0)))


def test_nothing_is_no_dtype() -> None:
    assert not [t for t in (jnp.float32, jnp.float64, jnp.int32, jnp.bool_) if t == None]  # noqa: E711


def test_expected_failures_have_reasons() -> None:
    file = Path(__file__).parents[1] / "conformance" / "array_api_failures.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    names = [line for line in lines if line and not line.startswith("#")]
    assert len(names) == len(set(names)) <= 10
    for before, line in itertools.pairwise(lines):
        assert not line or line.startswith("#") or before, f"{line} stands below no reason"
