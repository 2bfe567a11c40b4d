"""Products of bfloat16 and of bytes in tiles: NumPy's, also where a processor has no tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail_cpu import kernels
from dovetail_cpu.kernel_library import library
from dovetail_cpu.lowerings import narrow_products

KERNEL = "dovetail_multiply_narrow"
BFLOAT16 = ml_dtypes.bfloat16
BYTES = ("int8", "uint8")

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)


@pytest.fixture(autouse=True, params=["tiles", "vectors"])
def tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tiles of the processor, if it has them; or what takes their place on others."""
    use = kernels.prepare().dovetail_use_tiles
    if not use(request.param == "tiles") and request.param == "tiles":
        pytest.skip("the processor has no tiles")
    monkeypatch.setattr(kernels, "have_tiles", lambda: True)
    monkeypatch.setattr(narrow_products, "MANY", 1)
    monkeypatch.setattr(narrow_products, "MANY_FOR_EACH", 0)
    yield
    use(1)


SIZES = [
    (16, 32, 16),
    (32, 64, 32),
    (2, 2, 2),
    (17, 3, 33),
    (33, 100, 70),
    (48, 130, 47),
    (100, 513, 20),  # the last step of a part
    (65, 1030, 64),  # several shares of a step
    (70, 5000, 90),  # several parts of the sums
    (40, 300, 1100),  # several blocks of columns
    (700, 2500, 40),
]


@pytest.mark.parametrize(("rows", "summed", "columns"), SIZES)
def test_bfloat16(rows: int, summed: int, columns: int, drawn: Any, by_kernel: Any) -> None:
    x, y = drawn("float32", rows, summed), drawn("float32", summed, columns)
    x, y = x.astype(BFLOAT16), y.astype(BFLOAT16)

    def products(x: Any, y: Any, x_turned: Any, y_turned: Any) -> Any:
        return [
            jnp.matmul(a, b, preferred_element_type=out)
            for a in (x, x_turned.T)
            for b in (y, y_turned.T)
            for out in (None, "float32")
        ]

    found = by_kernel(products, x, y, x.T.copy(), y.T.copy())
    assert [each.dtype for each in found] == [BFLOAT16, np.float32] * 4
    exact = x.astype(np.float64) @ y.astype(np.float64)
    # Sums are float32, and rounded once.
    sums = 4 * float(np.finfo(np.float32).eps) * summed**0.5
    for each in found:
        rounding = float(ml_dtypes.finfo(BFLOAT16).eps) / 2 if each.dtype == BFLOAT16 else 0.0
        np.testing.assert_allclose(
            each.astype(np.float64), exact, rtol=1.01 * rounding + sums, atol=4 * sums
        )


@pytest.mark.parametrize(("rows", "summed", "columns"), SIZES)
def test_bytes(rows: int, summed: int, columns: int, by_kernel: Any) -> None:
    random = np.random.default_rng(summed)
    xs, ys = (
        [random.integers(0, 256, shape, np.uint8).view(dtype) for dtype in BYTES]
        for shape in ((rows, summed), (summed, columns))
    )

    def product(x: Any, y: Any, turned: str) -> Any:
        numbers = (((int("x" not in turned),), (int("y" in turned),)), ((), ()))
        return lax.dot_general(x, y, numbers, preferred_element_type="int32")

    def products(xs: Any, ys: Any, xs_turned: Any, ys_turned: Any) -> Any:
        straight = [[product(x, y, "") for y in ys] for x in xs]
        turned = [
            [product(xs_turned[0], y, "x") for y in ys],
            [product(x, ys_turned[1], "y") for x in xs],
            [product(x, y, "xy") for x, y in zip(xs_turned, ys_turned, strict=True)],
        ]
        return straight, turned

    found, turned = by_kernel(products, xs, ys, [x.T.copy() for x in xs], [y.T.copy() for y in ys])
    exact = [[(x.astype(np.int64) @ y.astype(np.int64)).astype(np.int32) for y in ys] for x in xs]
    np.testing.assert_array_equal(found, exact)
    np.testing.assert_array_equal(turned[0], exact[0])
    np.testing.assert_array_equal(turned[1], [row[1] for row in exact])
    np.testing.assert_array_equal(turned[2], [exact[0][0], exact[1][1]])


@pytest.mark.parametrize("out", ["int8", "uint8", "int32", "uint32"])
@pytest.mark.parametrize("dtype", BYTES)
def test_bytes_wrap_around_in_any_result(dtype: str, out: str, by_kernel: Any) -> None:
    most = np.iinfo(dtype).max
    x, y = np.full((33, 300), most, dtype), np.full((300, 35), most, dtype)
    y[0, 3] = 5
    found = by_kernel(lambda x, y: lax.dot(x, y, preferred_element_type=out), x, y)
    exact = x.astype(np.int64) @ y.astype(np.int64)
    np.testing.assert_array_equal(found, exact.astype(out))


def test_long_sums_of_bytes_wrap_around(by_kernel: Any) -> None:
    x, y = np.full((2, 70_000), 255, np.uint8), np.full((70_000, 2), 255, np.uint8)
    found = by_kernel(lambda x, y: lax.dot(x, y, preferred_element_type="int32"), x, y)
    assert (found == np.int64(70_000 * 255**2).astype(np.int32)).all()


@pytest.mark.parametrize(
    ("formula", "x", "y"),
    [
        ("bij,bjk->bik", (5, 40, 33), (5, 33, 40)),
        ("bij,bkj->bik", (50, 33, 20), (50, 28, 20)),
        ("bqhd,bkhd->bhqk", (2, 33, 3, 17), (2, 40, 3, 17)),
        ("bhqk,bkhd->bhqd", (2, 3, 33, 40), (2, 40, 3, 30)),
        ("ijk,kl->ijl", (5, 40, 33), (33, 64)),
        ("ijk,jkl->il", (33, 5, 40), (5, 40, 64)),
        ("bij,jk->bik", (300, 9, 33), (33, 40)),
    ],
)
def test_batches_and_several_dimensions(
    formula: str, x: tuple[int, ...], y: tuple[int, ...], drawn: Any, by_kernel: Any
) -> None:
    a, b = (np.rint(4 * drawn("float32", *shape)) for shape in (x, y))

    def product(a: Any, b: Any) -> Any:
        return jnp.einsum(formula, a, b, preferred_element_type="float32")

    found = by_kernel(product, a.astype(BFLOAT16), b.astype(BFLOAT16))
    np.testing.assert_array_equal(found, np.einsum(formula, a, b))
    whole = dt.jit(lambda a, b: jnp.einsum(formula, a, b, preferred_element_type="int32"))
    found = np.asarray(whole(a.astype(np.int8), b.astype(np.int8)))
    np.testing.assert_array_equal(found, np.einsum(formula, a, b))


def test_special_numbers_stay_in_their_rows_and_columns(drawn: Any, by_kernel: Any) -> None:
    x, y = drawn("float32", 70, 301), drawn("float32", 301, 50)
    x[5, 300], x[69, 299], y[7, 49], x[9] = np.nan, np.inf, -np.inf, -0.0
    x, y = x.astype(BFLOAT16), y.astype(BFLOAT16)
    found = by_kernel(lambda x, y: x @ y, x, y).astype(np.float32)
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float32) @ y.astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=0.1)
    assert np.isnan(found[5]).all()
    assert np.isfinite(found[:5, :49]).all()


def test_rounding_is_to_the_nearest_and_ties_to_even(by_kernel: Any) -> None:
    x = np.eye(40, 40, dtype=np.float32).astype(BFLOAT16)
    x[:, 1] = 1
    values = np.array([1, 1 + 2**-7, 1 + 3 * 2**-7, 2**-100, -3, 2.0**127], np.float32)
    y = np.zeros((40, 40), np.float32)
    y[0, :6] = values
    y[1, :6] = values * np.float32(2**-8)
    y = y.astype(BFLOAT16)
    found = by_kernel(lambda x, y: x @ y, x, y)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_array_equal(found, exact.astype(np.float32).astype(BFLOAT16))


def test_sums_of_nothing_are_zeros() -> None:
    x, y = jnp.zeros((40, 0), "bfloat16"), jnp.zeros((0, 50), "bfloat16")
    assert (np.asarray(dt.jit(jnp.matmul)(x, y)) == 0).all()
    z = dt.jit(lambda x, y: lax.dot(x, y, preferred_element_type="int32"))(
        jnp.zeros((40, 0), "int8"), jnp.zeros((0, 50), "int8")
    )
    assert (np.asarray(z) == 0).all()
    assert z.dtype == "int32"


def test_matrices_with_few_rows_are_left_to_the_compiler(
    monkeypatch: pytest.MonkeyPatch, drawn: Any, by_kernel: Any
) -> None:
    monkeypatch.setattr(narrow_products, "MANY_FOR_EACH", 10)
    x, y = (drawn("float32", *shape).astype(BFLOAT16) for shape in ((8, 500), (500, 500)))
    by_kernel(lambda x, y: x @ y, x, y, kernel=False)
