"""`dovetail.extend.lowering`: each building block against NumPy."""

from __future__ import annotations

import itertools
import operator

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


def of_expression(function, x, *outs):
    """What a lowering rule gives that is made of a function from an expression to some."""

    def rule(context, value, aval):
        results = function(blocks.Expression(context, value, aval))
        return [result.value for result in results]

    return computed(rule, x, *outs)


@pytest.mark.parametrize(
    "function",
    [
        *(operator.add, operator.sub, operator.mul, operator.truediv),
        *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
    ],
)
def test_operators_of_expressions(function):
    x = np.float32([[-3, 0.5, 2], [4, -0.25, 1]])
    expected = [function(x, x[::-1]), function(x, 2), function(2, x)]
    found = of_expression(
        lambda e: [
            function(e, blocks.stacked(*reversed(blocks.unstacked(e)))),
            function(e, 2.0),
            function(2.0, e),
        ],
        x,
        *[(x.shape, e.dtype) for e in expected],
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_expressions_of_bits_and_of_all_elements():
    x = np.int32([5, 12, 3])
    found = of_expression(
        lambda e: [e & 6, e | 8, e ^ 5, ~e, e << 2, (-e) >> 1, e.any_bits(), e.largest()],
        x,
        *[((3,), "int32")] * 6,
        *[((), "int32")] * 2,
    )
    right = (-x).view(np.uint32) >> 1
    expected = [x & 6, x | 8, x ^ 5, ~x, x << 2, right.view(np.int32), 15, 12]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_functions_of_expressions():
    x = np.float64([-1.5, 0.25, 2.5, 6.5])
    found = of_expression(
        lambda e: [
            e.where(e > 0.0, -1.0),
            e.clamp(0.0, e.constant(3.0)),
            *(abs(e).exp(), abs(e).log(), abs(e).sqrt(), e.nearest(), -e),
            e.polynomial([1.0, 0.5, e]),
            e.call(dt.lax.square),
            e.bits("int64"),
            e.convert("int32"),
        ],
        x,
        *[((4,), "float64")] * 9,
        ((4,), "int64"),
        ((4,), "int32"),
    )
    size = abs(x)
    expected = [
        *(np.where(x > 0, x, -1), np.clip(x, 0, 3)),
        *(np.exp(size), np.log(size), np.sqrt(size), np.round(x), -x),
        *(1 + 0.5 * x + x**3, x * x, x.view(np.int64), x.astype(np.int32)),
    ]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15)


def test_shapes_of_expressions():
    x = np.arange(12.0).reshape(3, 4)
    found = of_expression(
        lambda e: [
            e.reshape((2, 6)),
            e.broadcast((3, 2, 4), (0, 2)),
            e.scalar(7.0).broadcast((2, 2)),
            e.pad([(1, 0), (-1, 2)], 9.0),
            e.slice((0, 1), (2, 2), (2, 2)),
            blocks.Expression.iota(e.context, e.aval, 1),
        ],
        x,
        *[(s, "float64") for s in ((2, 6), (3, 2, 4), (2, 2), (4, 5), (2, 2), (3, 4))],
    )
    padded = np.pad(x, [(1, 0), (0, 2)], constant_values=9)[:, 1:]
    expected = [
        *(x.reshape(2, 6), np.repeat(x[:, None], 2, 1), np.full((2, 2), 7.0), padded),
        *(x[::2, 1::2], np.tile(np.arange(4.0), (3, 1))),
    ]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("x", [[0.5, 0.25], [2.0, 9.0], [0.5, 4.0]], ids=str)
def test_functions_by_kind_of_element(x):
    x = np.array(x)

    def function(e):
        kinds = (e < 1.0).convert("int32")
        return [blocks.by_kind(kinds, [lambda: e.sqrt(), lambda: e * e], e), kinds]

    found, _ = of_expression(function, x, ((2,), "float64"), ((2,), "int32"))
    np.testing.assert_array_equal(found, np.where(x < 1, x * x, np.sqrt(x)))


@pytest.mark.parametrize("steps", [1, 3, 4])
def test_repeated_steps(steps):
    x = np.array([0.5, 2.0])
    table = np.arange(26.0).reshape(13, 2)

    def function(e):
        """Horner's rule with the numbers, and with the rows of a table."""
        sums = blocks.repeat_downwards(
            12,
            lambda k, row, a, b: (a * e + k, b + row[0] * row[1]),
            e * 0.0,
            e * 0.0,
            table=table,
            steps_in_a_turn=steps,
        )
        counted = blocks.repeat_downwards(
            e.scalar(12.0), lambda k, a: [a * e + k], e * 0.0, steps_in_a_turn=steps
        )
        return [*sums, *counted]

    expected = np.polyval([*range(12, 0, -1)], x)
    found = of_expression(function, x, *[((2,), "float64")] * 3)
    rows = table[1:].prod(1).sum()
    for a, b in zip(found, [expected, [rows, rows], expected], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15)


def test_an_expression_has_no_truth_while_the_program_is_made():
    with pytest.raises(TypeError, match=r"Expression\.where"):
        of_expression(lambda e: [e if e == 0.0 else -e], np.ones(2), ((2,), "float64"))
