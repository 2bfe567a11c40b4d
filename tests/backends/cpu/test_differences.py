"""The kernels of sums of squares and exponentials of differences, and of softmax."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from scipy import special

import dovetail as dt
import dovetail.numpy as jnp
from dovetail_cpu.kernel_library import has_long_vectors, library

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)

KERNEL: Final = "dovetail_softmax"

SUMS: Final = "dovetail_sums_of_differences"
BESIDE: Final = "dovetail_exponentials_and_sums"
#: Shapes and dimensions: rows and columns of whole vectors and others, long ones, several.
REDUCED: Final[list[tuple[tuple[int, ...], int | tuple[int, ...]]]] = [
    ((40, 64), 1),
    ((40, 64), 0),
    ((33, 1001), 1),
    ((1001, 33), 0),
    ((3, 9001), -1),
    ((300_000,), 0),
    ((1, 200_001), 1),
    ((5, 35, 4099), 1),
    ((4, 50, 16), 1),
    ((9, 7, 5, 21), (1, 2, 3)),
    ((6, 7, 11, 17), (1, 2)),
]


def text(function: Callable[..., Any], *operands: Any) -> str:
    return str(dt.jit(function).lower(*operands).as_text())


def written(x: Any, axis: Any) -> Any:
    """A softmax as users write it."""
    powers = jnp.exp(x - jnp.max(x, axis, keepdims=True))
    return powers / jnp.sum(powers, axis, keepdims=True)


@pytest.mark.parametrize(("shape", "axis"), REDUCED)
@pytest.mark.parametrize("function", [dt.nn.softmax, written], ids=["nn", "written"])
def test_softmax(
    function: Any, shape: tuple[int, ...], axis: Any, by_kernel: Any, drawn: Any
) -> None:
    x = 4 * drawn("float32", *shape)
    found = by_kernel(lambda x: function(x, axis), x)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, special.softmax(x.astype(float), axis), rtol=3e-6)


def test_softmax_of_a_result_is_written_over_it(by_kernel: Any, drawn: Any) -> None:
    x, expected = drawn("float32", 70, 83), drawn("float32", 70, 83).astype(float)
    for axis in (0, 1):
        found, kept = by_kernel(lambda x: (dt.nn.softmax(3 * x, axis), 3 * x), x)  # noqa: B023
        np.testing.assert_allclose(found, special.softmax(3 * expected, axis), rtol=3e-6)
        np.testing.assert_array_equal(kept, 3 * x)


@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
def test_softmax_of_what_is_not_finite(turned: bool, by_kernel: Any, drawn: Any) -> None:
    x = drawn("float32", 32, 100)
    x[0, 3], x[1, 99], x[2], x[3, ::2], x[4, 5] = np.nan, np.inf, -np.inf, -np.inf, -0.0
    x[5], x[6, 8] = 1e30, -3e38
    with np.errstate(invalid="ignore"):
        expected = special.softmax(x.astype(float), 1)
    x = x.T.copy() if turned else x
    found = by_kernel(lambda x: dt.nn.softmax(x, 0 if turned else 1), x)
    np.testing.assert_allclose(found.T if turned else found, expected, rtol=3e-6, atol=1e-37)


def test_transformations_of_softmax(by_kernel: Any, drawn: Any) -> None:
    x, weights = drawn("float32", 50, 90), drawn("float32", 50, 90)
    expected = special.softmax(x.astype(float), 1)
    mapped = by_kernel(dt.vmap(dt.nn.softmax), x)
    np.testing.assert_allclose(mapped, expected, rtol=3e-6)
    weighted = expected * weights
    slope = weighted - expected * weighted.sum(1, keepdims=True)
    found = by_kernel(dt.grad(lambda x: jnp.sum(weights * dt.nn.softmax(x))), x)
    np.testing.assert_allclose(found, slope, atol=1e-6)
    tangent = by_kernel(lambda x, t: dt.jvp(dt.nn.softmax, (x,), (t,))[1], x, weights)
    np.testing.assert_allclose(tangent, slope, atol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: dt.nn.softmax(x[:, :15]),  # too few numbers for a vector
        lambda x: dt.nn.softmax(x[:, :15], 0),
        lambda x: dt.nn.softmax(x.reshape(10, 4, 40), (0, 2)),
        lambda x: jnp.exp(x - jnp.max(x, 0)) / jnp.sum(jnp.exp(x - jnp.max(x, 0)), 1)[:, None],
        lambda x: jnp.exp(x - jnp.min(x, 1, keepdims=True)) / 3,
        lambda x: dt.nn.softmax(x.astype("float16")),
    ],
)
def test_what_is_no_softmax_of_the_kernel(function: Any, by_kernel: Any, drawn: Any) -> None:
    x = drawn("float32", 40, 40)
    with dt.cpu_kernels(False):
        expected = function(x)
    found = by_kernel(function, x, kernel=False)
    np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_softmax_of_products(by_kernel: Any, drawn: Any) -> None:
    """For long vectors the compiler has a library, which computes attention, too."""
    x = drawn("float32", 40, 400)

    def function(x: Any) -> Any:
        return dt.nn.softmax(x[:4, :40] @ x)  # too few rows for the kernel of products

    with dt.cpu_kernels(False):
        expected = function(x)
    found = by_kernel(function, x, kernel=not has_long_vectors())
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(("shape", "axis"), REDUCED)
def test_sums_of_exponentials(shape: tuple[int, ...], axis: Any, drawn: Any) -> None:
    x = 4 * drawn("float32", *shape)
    expected = special.logsumexp(x.astype(float), axis)
    function = lambda x: dt.nn.logsumexp(x, axis)
    assert SUMS in text(function, x)
    np.testing.assert_allclose(dt.jit(function)(x), expected, rtol=2e-6, atol=2e-6)
    function = lambda x: dt.nn.log_softmax(x, axis)
    assert SUMS in text(function, x)
    found = np.asarray(dt.jit(function)(x))
    np.testing.assert_allclose(found, special.log_softmax(x.astype(float), axis), atol=1e-5)


def test_exponentials_that_are_used_are_kept_with_their_sums(drawn: Any) -> None:
    for shape, axis in (((70, 90), 1), ((70, 90), 0), ((2, 9001), 1), ((40, 4100), 0)):
        x = drawn("float32", *shape)
        function = dt.grad(lambda x: jnp.sum(dt.nn.logsumexp(x, axis) ** 2))  # noqa: B023
        assert BESIDE in text(function, x)
        wide = x.astype(float)
        total = special.logsumexp(wide, axis, keepdims=True)
        expected = 2 * total * special.softmax(wide, axis)
        np.testing.assert_allclose(dt.jit(function)(x), expected, rtol=1e-5)


def test_sums_of_exponentials_that_are_not_finite(drawn: Any) -> None:
    x = drawn("float32", 40, 64)
    x[0, 3], x[1, 63], x[2], x[3, ::2], x[4] = np.nan, np.inf, -np.inf, -np.inf, 3e38
    with np.errstate(invalid="ignore"):
        expected = special.logsumexp(x.astype(float), 1)
    np.testing.assert_allclose(dt.jit(lambda x: dt.nn.logsumexp(x, 1))(x), expected, rtol=2e-6)
    columns = x.T.copy()
    np.testing.assert_allclose(
        dt.jit(lambda x: dt.nn.logsumexp(x, 0))(columns), expected, rtol=2e-6
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "axis"), REDUCED)
def test_variances(dtype: str, shape: tuple[int, ...], axis: Any, drawn: Any) -> None:
    x = 1000 + drawn(dtype, *shape)
    with dt.enable_x64(True):
        function = lambda x: jnp.var(x, axis)
        assert SUMS in text(function, x)
        found = np.asarray(dt.jit(function)(x))
    assert found.dtype == dtype
    epsilon = np.finfo(dtype).eps
    # The mean is off by a fraction of a unit in its last place.
    np.testing.assert_allclose(
        found, np.var(x.astype(np.longdouble), axis), rtol=20 * epsilon, atol=(1000 * epsilon) ** 2
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(300_001,), (40, 1001), (600, 200), (5, 7, 333), (2, 200_000)])
def test_mean_squared_errors(dtype: str, shape: tuple[int, ...], drawn: Any) -> None:
    x, y = drawn(dtype, *shape), drawn(dtype, *shape)[::-1].copy()
    square = (x.astype(np.longdouble) - y) ** 2
    with dt.enable_x64(True):
        for axis in (None, -1):
            function = lambda x, y: jnp.mean((x - y) ** 2, axis)  # noqa: B023
            assert SUMS in text(function, x, y)
            np.testing.assert_allclose(
                dt.jit(function)(x, y), square.mean(axis), rtol=4 * np.finfo(dtype).eps
            )
        gradient = dt.jit(dt.grad(lambda x: jnp.mean((x - y) ** 2)))(x)
        np.testing.assert_allclose(gradient, 2 * (x - y) / x.size, rtol=1e-6)


def test_squares_of_what_is_not_finite(drawn: Any) -> None:
    x = drawn("float32", 40, 70)
    x[0, 3], x[1, 69], x[2, 0] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        for axis in (0, 1, None):
            found = dt.jit(lambda x: jnp.var(x, axis))(x)  # noqa: B023
            np.testing.assert_allclose(found, np.var(x, axis), rtol=1e-5)


def test_no_elements() -> None:
    empty = np.zeros((0, 40), np.float32)
    assert dt.jit(lambda x: dt.nn.softmax(x, 1))(empty).shape == (0, 40)
    assert np.isnan(dt.jit(lambda x: jnp.var(x, 0))(empty)).all()
    assert (np.asarray(dt.jit(lambda x: dt.nn.logsumexp(x, 0))(empty)) == -np.inf).all()


def test_programs_import_no_primitives_of_others() -> None:
    code = (
        "import sys, numpy as np, dovetail as dt\n"
        "x = np.ones((100, 100), np.float32)\n"
        "for f in (dt.nn.softmax, dt.nn.logsumexp, dt.nn.standardize, dt.grad(dt.nn.logsumexp)):\n"
        "    dt.jit(f).lower(x).compile()\n"
        "print('dovetail._core.ops.linalg' in sys.modules)\n"
        "print('dovetail._core.ops.windows' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\nFalse\n"
