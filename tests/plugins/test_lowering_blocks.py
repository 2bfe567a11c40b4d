"""`dovetail.extend.lowering`: each building block against NumPy, for stacks of matrices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dovetail as dt
from dovetail.extend import Primitive, ShapedArray
from dovetail.extend import lowering as blocks

DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = ((3, 3), (2, 4), (4, 2), (5, 3, 2), (2, 2, 1, 4), (0, 2, 2), (2, 0, 3))

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def wide():
    with dt.enable_x64(True):
        yield


def computed(function, x, *outs):
    """What a lowering rule gives: `function` of the builder, the operand and its aval."""
    primitive = Primitive(f"lowering_block_{next(_numbers)}")
    primitive.multiple_results = True
    avals = [ShapedArray(shape, np.dtype(dtype)) for shape, dtype in outs]
    primitive.define("abstract")(lambda x: avals)
    primitive.define("lower")(lambda context, x: function(context, x, context.avals_in[0]))
    return [np.asarray(r) for r in dt.jit(lambda x: primitive.bind(x))(x)]


def matrices(shape, dtype, scale=1.0):
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(shape) * scale
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape) * scale
    return x.astype(dtype)


def over_tables(function):
    function = pytest.mark.parametrize("shape", SHAPES, ids=str)(function)
    return pytest.mark.parametrize("dtype", DTYPES)(function)


@over_tables
def test_rearranged(shape, dtype):
    x = matrices(shape, dtype)
    turned = (*shape[:-2], shape[-1], shape[-2])
    found = computed(
        lambda context, x, aval: [
            blocks.transpose(context, x, aval),
            blocks.conjugate(context, x, aval),
            blocks.adjoint(context, x, aval),
            blocks.triangle(context, x, aval),
            blocks.triangle(context, x, aval, lower=False),
            blocks.triangle(context, x, aval, True, blocks.conjugate(context, x, aval)),
        ],
        x,
        *[(s, dtype) for s in (turned, shape, turned, shape, shape, shape)],
    )
    conjugate = np.conj(x)
    expected = [
        np.swapaxes(x, -1, -2),
        conjugate,
        np.swapaxes(conjugate, -1, -2),
        np.tril(x),
        np.triu(x),
        np.tril(x) + np.triu(conjugate, 1),
    ]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@over_tables
def test_parts_from_a_number_on(shape, dtype):
    x = matrices(shape, dtype)
    rows, columns = (min(n, 1) for n in shape[-2:])
    left = (*shape[:-1], shape[-1] - columns)
    below = (*shape[:-2], shape[-2] - rows, shape[-1])
    found = computed(
        lambda context, x, aval: [
            blocks.columns_from(context, x, aval.update(shape=left), columns),
            blocks.rows_from(context, x, aval.update(shape=below), rows),
        ],
        x,
        (left, dtype),
        (below, dtype),
    )
    np.testing.assert_array_equal(found[0], x[..., columns:])
    np.testing.assert_array_equal(found[1], x[..., rows:, :])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1j * np.nan, 1j * np.inf], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_that_are_not_finite_become_zeros_and_their_results_nan(dtype, bad):
    if isinstance(bad, complex) and np.dtype(dtype).kind != "c":
        bad = abs(bad)
    x = matrices((2, 3, 4, 2), dtype)
    x[1, 2, 3, 0] = bad
    x[0, 1] = 0

    def rule(context, x, aval):
        finite, report = blocks.with_finite(context, x, aval)
        marked = blocks.where_succeeded(context, report, blocks.report_of(aval), [x], [aval])
        return [finite, report, *marked]

    finite, report, (marked) = computed(
        rule, x, (x.shape, dtype), (x.shape[:-2], "int32"), (x.shape, dtype)
    )
    expected = np.zeros((2, 3), np.int32)
    expected[1, 2] = 1
    np.testing.assert_array_equal(report, expected)
    np.testing.assert_array_equal(finite, np.where(expected[..., None, None] == 1, 0, x))
    assert np.isnan(marked[1, 2]).all()
    np.testing.assert_array_equal(marked[expected == 0], x[expected == 0])


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1.5, 1e30])
@pytest.mark.parametrize("dtype", DTYPES)
def test_division_by_a_power_of_two_and_back(dtype, scale):
    x = matrices((3, 2, 4), dtype, scale)
    x[1] = 0
    single = blocks.real_dtype(np.dtype(dtype))
    vector = x[..., 0]

    def rule(context, x, aval):
        divided, power = blocks.divided_by_power_of_two(context, x, aval)
        first = aval.update(shape=aval.shape[:-1])
        column = context.reshape(
            context.slice(divided, aval.update(shape=(3, 2, 1)), (0, 0, 0), (3, 2, 1)), first
        )
        return [divided, power, blocks.multiplied_by_power_of_two(context, column, first, power)]

    divided, power, back = computed(
        rule, x, (x.shape, dtype), ((3,), single), (vector.shape, dtype)
    )
    largest = np.maximum(abs(x.real), abs(x.imag)).max((-1, -2))
    expected = np.where(largest == 0, 1, 2.0 ** np.floor(np.log2(np.where(largest, largest, 1))))
    np.testing.assert_array_equal(power, expected)
    np.testing.assert_array_equal(divided, x / expected[:, None, None].astype(single))
    np.testing.assert_array_equal(back, vector)


@pytest.mark.parametrize("batch", [(), (2,), (0,)], ids=str)
def test_pivots_of_libraries(batch):
    pivots = np.broadcast_to(np.int32([3, 3, 4, 4]), (*batch, 4))

    def rule(context, x, aval):
        return blocks.pivots_from_one(context, x, aval, aval.update(shape=(*batch, 5)))

    rows, order = computed(rule, pivots, (pivots.shape, "int32"), ((*batch, 5), "int32"))
    np.testing.assert_array_equal(rows, pivots - 1)
    expected = np.arange(5)
    for place, other in enumerate([2, 2, 3, 3]):
        expected[[place, other]] = expected[[other, place]]
    np.testing.assert_array_equal(order, np.broadcast_to(expected, order.shape))
