"""Every method of the builder, run by the compiler and compared with NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
from dovetail._core.base import config
from dovetail._core.hlo import context
from dovetail.extend import Primitive, ShapedArray
from dovetail.extend.avals import make_aval

Rule = Callable[..., Any]
_numbers = itertools.count()

F32 = np.dtype(np.float32)
I32 = np.dtype(np.int32)
X = np.arange(12, dtype=F32).reshape(3, 4) - 5
N = np.arange(5, dtype=I32)


def aval(shape: Sequence[int], dtype: Any = F32) -> ShapedArray:
    return make_aval(tuple(shape), np.dtype(dtype))


def run(rule: Rule, inputs: Sequence[Any], outs: Sequence[ShapedArray]) -> list[np.ndarray]:
    """What a lowering rule computes."""
    primitive = Primitive(f"hlo_test_{next(_numbers)}", multiple_results=True)
    primitive.define("abstract", lambda *avals: list(outs))
    primitive.define("lower", rule)
    return [np.asarray(out) for out in primitive.bind(*inputs)]


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with config.enable_x64(True):
        yield


def scalar(dtype: Any = F32) -> ShapedArray:
    return aval((), dtype)


def reduce_rows(c: Any, x: Any) -> Any:
    zero = c.constant(0, scalar())
    return c.reduce([x], [zero], [1], c.avals_out, lambda a, b: c.add(a, b, scalar()))


def argmax_rows(c: Any, x: Any) -> Any:
    index = c.iota(aval((3, 4), I32), 1)

    def larger(a: Any, i: Any, b: Any, j: Any) -> list[Any]:
        keep = c.compare(a, b, "GE", scalar())
        return [c.select(keep, a, b, scalar()), c.select(keep, i, j, scalar(I32))]

    inits = [c.constant(-np.inf, scalar()), c.constant(0, scalar(I32))]
    return c.reduce([x, index], inits, [1], c.avals_out, larger)


def power_of_two(c: Any, x: Any) -> Any:
    number = scalar(I32)
    results = c.while_loop(
        [c.constant(0, number), x],
        [number, c.avals_out[0]],
        lambda n, x: c.compare(n, c.constant(5, number), "LT", number),
        lambda n, x: [c.add(n, c.constant(1, number), number), c.add(x, x, c.avals_out[0])],
    )
    return results[1:]


def choose(c: Any, i: Any, x: Any) -> Any:
    out = c.avals_out[0]
    return c.case(i, [lambda: x, lambda: c.neg(x, out), lambda: [c.add(x, x, out)]], [out])


def sort_pairs(c: Any, x: Any, y: Any) -> Any:
    def before(a: Any, b: Any, p: Any, q: Any) -> Any:
        return c.compare(a, b, "LT", scalar(), total_order=True)

    return c.sort([x, y], c.avals_out, 0, True, before)


def scatter_add(c: Any, x: Any, indices: Any, updates: Any) -> Any:
    numbers = c.scatter_dimension_numbers(
        update_window_dims=[1],
        inserted_window_dims=[0],
        scattered_dims_to_operand_dims=[0],
        index_vector_dim=1,
    )
    return c.scatter(
        [x],
        indices,
        [updates],
        c.avals_out,
        lambda a, b: c.add(a, b, scalar()),
        dimension_numbers=numbers,
    )


def gather_rows(c: Any, x: Any, indices: Any) -> Any:
    numbers = c.gather_dimension_numbers(
        offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1
    )
    attributes = {
        "dimension_numbers": numbers,
        "slice_sizes": c.i64_array((1, 4)),
        "indices_are_sorted": False,
    }
    return c.op("gather", [x, indices], c.avals_out[0], attributes)


def matrix_product(c: Any, x: Any, y: Any) -> Any:
    attributes = {
        "dot_dimension_numbers": c.dot_dimension_numbers(lhs_contracting=[1], rhs_contracting=[0]),
        "precision_config": c.precision(["HIGHEST", None]),
    }
    return c.op("stablehlo.dot_general", [x, y], c.avals_out[0], attributes)


def convolve(c: Any, x: Any, kernel: Any) -> Any:
    attributes = {
        "dimension_numbers": c.conv_dimension_numbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)),
        "feature_group_count": 1,
        "batch_group_count": 1,
        "padding": c.i64_elements([[0, 0], [0, 0]]),
        "precision_config": c.precision(None),
    }
    return c.op("convolution", [x, kernel], c.avals_out[0], attributes)


def window_maximum(c: Any, x: Any) -> Any:
    return c.reduce_window(
        [x],
        [c.constant(-np.inf, scalar())],
        c.avals_out,
        lambda a, b: c.max(a, b, scalar()),
        window_dimensions=(2, 2),
        window_strides=(1, 1),
        padding=[(0, 0), (0, 0)],
    )


IMAGE = np.arange(16, dtype=F32).reshape(1, 1, 4, 4)
ROWS = np.array([[2], [0]], I32)

# name, rule, inputs, results
CASES: list[tuple[str, Rule, list[Any], list[Any]]] = [
    ("add", lambda c, x: c.add(x, x, c.avals_out[0]), [X], [X + X]),
    ("sub", lambda c, x, y: c.sub(x, y, c.avals_out[0]), [X, X * 2], [-X]),
    ("mul", lambda c, x: c.mul(x, x, c.avals_out[0]), [X], [X * X]),
    ("div", lambda c, x, y: c.div(x, y, c.avals_out[0]), [N - 2, N + 1], [[-2, 0, 0, 0, 0]]),
    ("rem", lambda c, x, y: c.rem(x, y, c.avals_out[0]), [N - 3, N * 0 + 2], [[-1, 0, -1, 0, 1]]),
    ("max", lambda c, x, y: c.max(x, y, c.avals_out[0]), [X, -X], [np.abs(X)]),
    ("min", lambda c, x, y: c.min(x, y, c.avals_out[0]), [X, -X], [-np.abs(X)]),
    ("neg", lambda c, x: c.neg(x, c.avals_out[0]), [X], [-X]),
    ("and", lambda c, x, y: c.and_(x, y, c.avals_out[0]), [N, N + 1], [N & (N + 1)]),
    ("or", lambda c, x, y: c.or_(x, y, c.avals_out[0]), [N, N + 1], [N | (N + 1)]),
    ("xor", lambda c, x, y: c.xor(x, y, c.avals_out[0]), [N, N + 1], [N ^ (N + 1)]),
    ("not", lambda c, x: c.not_(x, c.avals_out[0]), [N], [~N]),
    (
        "clamp",
        lambda c, x: c.clamp(c.constant(-1, scalar()), x, c.constant(1, scalar()), c.avals_out[0]),
        [X],
        [np.clip(X, -1, 1)],
    ),
    ("reshape", lambda c, x: c.reshape(x, c.avals_out[0]), [X], [X.reshape(2, 6)]),
    ("transpose", lambda c, x: c.transpose(x, c.avals_out[0], (1, 0)), [X], [X.T]),
    (
        "broadcast_in_dim",
        lambda c, x: c.broadcast_in_dim(x, c.avals_out[0], [1]),
        [X[0]],
        [np.tile(X[0], (3, 1))],
    ),
    (
        "broadcast_scalar",
        lambda c, x: c.broadcast_scalar(x, c.avals_out[0]),
        [X[0, 0]],
        [X * 0 - 5],
    ),
    (
        "broadcast_scalar_to_scalar",
        lambda c, x: c.broadcast_scalar(x, scalar()),
        [X[0, 0]],
        [X[0, 0]],
    ),
    (
        "broadcast_operands",
        lambda c, x, y, z: c.add(
            *c.broadcast_operands([x, y, z], c.avals_out[0])[1:], c.avals_out[0]
        ),
        [X, X[:1], X[0, 0]],
        [np.tile(X[:1] - 5, (3, 1))],
    ),
    ("iota", lambda c: c.iota(c.avals_out[0], 1), [], [np.tile(np.arange(4, dtype=I32), (2, 1))]),
    ("slice", lambda c, x: c.slice(x, c.avals_out[0], (0, 1), (3, 4), (2, 1)), [X], [X[::2, 1:]]),
    ("slice_by_one", lambda c, x: c.slice(x, c.avals_out[0], (1, 0), (2, 4)), [X], [X[1:2]]),
    (
        "concatenate",
        lambda c, x, y: c.concatenate([x, y], c.avals_out[0], 1),
        [X, X],
        [np.concatenate([X, X], 1)],
    ),
    (
        "pad",
        lambda c, x: c.pad(x, c.constant(7, scalar(I32)), c.avals_out[0], [1], [2]),
        [N],
        [np.pad(N, (1, 2), constant_values=7)],
    ),
    (
        "pad_interior",
        lambda c, x: c.pad(x, c.constant(0, scalar(I32)), c.avals_out[0], [0], [0], [1]),
        [N],
        [np.insert(N, [1, 2, 3, 4], 0)],
    ),
    (
        "dynamic_slice",
        lambda c, x, i: c.dynamic_slice(x, c.avals_out[0], [i, i]),
        [X, np.int64(1)],
        [X[1:3, 1:3]],
    ),
    (
        "dynamic_update_slice",
        lambda c, x, u, i: c.dynamic_update_slice(x, u, c.avals_out[0], [i]),
        [N, N[:2] + 10, np.int32(2)],
        [[0, 1, 10, 11, 4]],
    ),
    ("reverse", lambda c, x: c.reverse(x, c.avals_out[0], [0]), [X], [X[::-1]]),
    (
        "bitcast_convert",
        lambda c, x: c.bitcast_convert(x, c.avals_out[0]),
        [X],
        [X.view(I32)],
    ),
    (
        "complex_parts",
        lambda c, x, y: c.imag(c.complex(x, y, aval((3, 4), np.complex64)), c.avals_out[0]),
        [X, X + 1],
        [X + 1],
    ),
    (
        "real_part",
        lambda c, x: c.real(x, c.avals_out[0]),
        [(X + 2j).astype(np.complex64)],
        [X],
    ),
    (
        "select",
        lambda c, x: c.select(
            c.compare(x, c.constant(0, c.avals_in[0]), "GT", c.avals_in[0]),
            x,
            c.neg(x, c.avals_in[0]),
            c.avals_out[0],
        ),
        [X],
        [np.abs(X)],
    ),
    (
        "optimization_barrier",
        lambda c, x, y: c.optimization_barrier([x, y], c.avals_out),
        [X, N],
        [X, N],
    ),
    ("reduce", reduce_rows, [X], [X.sum(1)]),
    (
        "reduce_together",
        argmax_rows,
        [np.abs(X)],
        [np.abs(X).max(1), np.abs(X).argmax(1).astype(I32)],
    ),
    ("reduce_window", window_maximum, [X], [np.maximum(X[1:, 1:], X[1:, :-1])]),
    ("while_loop", power_of_two, [X], [X * 32]),
    ("case_first", choose, [np.int32(0), X], [X]),
    ("case_second", choose, [np.int32(1), X], [-X]),
    ("case_out_of_range", choose, [np.int32(9), X], [X + X]),
    (
        "sort",
        sort_pairs,
        [np.array([3, 1, 2], F32), np.array([0, 1, 2], I32)],
        [np.array([1, 2, 3], F32), np.array([1, 2, 0], I32)],
    ),
    ("scatter", scatter_add, [X, ROWS, X[:2]], [X + np.stack([X[1], X[0] * 0, X[0]])]),
    ("gather", gather_rows, [X, ROWS], [X[[2, 0]]]),
    ("dot_general", matrix_product, [X, X.T.copy()], [X @ X.T]),
    (
        "convolution",
        convolve,
        [IMAGE, np.ones((1, 1, 2, 2), F32)],
        [IMAGE[..., 1:, 1:] + IMAGE[..., 1:, :-1] + IMAGE[..., :-1, 1:] + IMAGE[..., :-1, :-1]],
    ),
    (
        "chlo",
        lambda c, x: c.op("chlo.erf", [x], c.avals_out[0]),
        [np.zeros(3, F32)],
        [np.zeros(3, F32)],
    ),
]


@pytest.mark.parametrize(
    ("rule", "inputs", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_operation(rule: Rule, inputs: list[Any], expected: list[Any]) -> None:
    wanted = [np.asarray(e, I32) if isinstance(e, list) else np.asarray(e) for e in expected]
    outs = [aval(w.shape, w.dtype) for w in wanted]
    found = run(rule, inputs, outs)
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted, strict=True):
        assert f.dtype == w.dtype
        np.testing.assert_allclose(f, w, rtol=1e-6)


NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
COMPLEX = ["complex64", "complex128"]
DTYPES = ["bool", *NUMBERS, *FLOATS, *COMPLEX]


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def values_of(name: str) -> np.ndarray:
    dtype = dtype_of(name)
    if name == "bool":
        return np.array([[True, False, True], [False, False, True]])
    values = np.array([[0, 1, 2], [3, 5, 7]])
    if name in COMPLEX:
        return (values - 2 + 1j * values).astype(dtype)
    return (values - (2 if name in FLOATS or name.startswith("int") else 0)).astype(dtype)


def same_bits(x: np.ndarray, y: np.ndarray) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


@pytest.mark.parametrize("name", [*DTYPES, "int4", "uint4"])
@pytest.mark.parametrize("kind", ["all", "splat", "scalar", "empty"])
def test_constant(name: str, kind: str) -> None:
    values = values_of(name)
    if name == "uint4":
        values = np.array([[0, 1, 2], [3, 5, 7]]).astype(ml_dtypes.uint4)
    if kind == "splat":
        values = np.full_like(values, values[1, 2])
    elif kind == "scalar":
        values = values[1, 2:3].reshape(())
    elif kind == "empty":
        values = values[:0]
    (found,) = run(
        lambda c: c.constant(values, c.avals_out[0]), [], [aval(values.shape, values.dtype)]
    )
    assert same_bits(found, values)


@pytest.mark.parametrize(
    "value",
    [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, 1, True, np.float32(0.1), np.float32(-0.0)],
    ids=str,
)
@pytest.mark.parametrize("shape", [(), (2,)])
def test_constant_of_a_python_scalar_keeps_its_bits(value: Any, shape: tuple[int, ...]) -> None:
    rule = lambda c: [c.constant(0.0, c.avals_out[0]), c.constant(value, c.avals_out[0])]
    _, found = run(rule, [], [aval(shape), aval(shape)])
    assert same_bits(found, np.full(shape, value, F32))


def test_constants_that_are_equal_but_not_the_same() -> None:
    scalars = [0.0, -0.0, complex(0.0, -0.0), complex(-0.0, 0.0), 0.0, -0.0]
    found = run(
        lambda c: [c.constant(s, out) for s, out in zip(scalars, c.avals_out, strict=True)],
        [],
        [scalar(np.complex64 if isinstance(s, complex) else F32) for s in scalars],
    )
    for f, s in zip(found, scalars, strict=True):
        assert same_bits(f, np.asarray(s, f.dtype))


def test_a_constant_needs_the_shape_of_its_type() -> None:
    with pytest.raises(ValueError, match="shape"):
        run(lambda c: c.constant(np.arange(3), c.avals_out[0]), [], [aval((4,))])


@pytest.mark.parametrize("new", DTYPES)
@pytest.mark.parametrize("old", DTYPES)
def test_conversion_is_that_of_numpy(old: str, new: str) -> None:
    values = values_of(old)
    if new.startswith("uint") and old not in ("bool", *NUMBERS):
        # What happens to negative numbers is not defined.
        values = values_of("float32").astype(values.dtype) + np.array(2, values.dtype)
    wanted = values.real if old in COMPLEX and new not in (*COMPLEX, "bool") else values
    out = aval(values.shape, dtype_of(new))
    (found,) = run(lambda c, x: c.convert(x, c.avals_in[0], out), [values], [out])
    np.testing.assert_array_equal(found, wanted.astype(dtype_of(new)))


COMPARISONS = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "GE": np.greater_equal}
#: StableHLO has no order of complex numbers.
COMPARABLE = [(n, d) for n in DTYPES for d in COMPARISONS if n not in COMPLEX or d in ("EQ", "NE")]


@pytest.mark.parametrize(("name", "direction"), COMPARABLE)
def test_comparison(name: str, direction: str) -> None:
    x = values_of(name)
    y = x[::-1].copy()
    (found,) = run(
        lambda c, x, y: c.compare(x, y, direction, c.avals_in[0]), [x, y], [aval(x.shape, bool)]
    )
    np.testing.assert_array_equal(found, COMPARISONS[direction](x, y))


def test_comparison_in_total_order() -> None:
    x = np.array([-0.0, 0.0, np.nan, -np.inf], F32)
    y = np.array([0.0, -0.0, np.inf, -np.nan], F32)
    rule = lambda c, x, y: c.compare(x, y, "LT", c.avals_in[0], total_order=True)
    (found,) = run(rule, [x, y], [aval((4,), bool)])
    np.testing.assert_array_equal(found, [True, False, False, False])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3 : i64"),
        (True, "true"),
        (np.bool_(False), "false"),
        (2.5, "2.500000e+00 : f64"),
        ("name", '"name"'),
        ((1, 2), "array<i64: 1, 2>"),
        ([np.int64(1), 2], "array<i64: 1, 2>"),
        ((), "array<i64>"),
        ((True, False), "array<i1: true, false>"),
        (["a", 1], '["a", 1]'),
        ({"b": 1, "a": "x"}, '{a = "x", b = 1 : i64}'),
        (np.uint8(76), "76 : ui8"),
        (np.int32(-1), "-1 : i32"),
        (np.uint64(1), "1 : ui64"),
        (np.float32(0.5), "5.000000e-01 : f32"),
        (np.array([[1, 2]], np.int64), "dense<[[1, 2]]> : tensor<1x2xi64>"),
        (np.array([True, False]), "dense<[true, false]> : tensor<2xi1>"),
        (np.zeros((0, 2), np.float32), "dense<> : tensor<0x2xf32>"),
    ],
    ids=str,
)
def test_attribute_of_a_python_value(value: Any, text: str) -> None:
    found = []

    def rule(c: Any, x: Any) -> Any:
        found.append(str(c.attribute(value)))
        return [x]

    run(rule, [X], [aval(X.shape)])
    assert found == [text]


@pytest.mark.parametrize(
    "value", [object(), 1j, np.datetime64("2020-01-01")], ids=["object", "complex", "date"]
)
def test_what_cannot_be_an_attribute(value: Any) -> None:
    with pytest.raises(TypeError, match="attribute"):
        run(lambda c, x: [c.attribute(value)], [X], [aval(X.shape)])


def test_a_dtype_that_programs_do_not_have() -> None:
    with pytest.raises(TypeError, match="datetime64"):
        run(lambda c: c.element_type(np.dtype("datetime64[s]")), [], [aval(())])


def test_a_type_that_is_none() -> None:
    with pytest.raises(TypeError, match="expected the aval of an array"):
        run(lambda c, x: c.op("add", [x, x], "f32"), [X], [aval(X.shape)])


def test_custom_call_text() -> None:
    texts: list[str] = []

    def rule(c: Any, x: Any) -> Any:
        results = c.custom_call(
            "a.target",
            [x],
            [aval((3, 4)), aval((), I32)],
            {"mode": np.uint8(76), "count": 3},
            has_side_effect=True,
            operand_layouts=[(0, 1)],
            aliases={0: 0},
        )
        texts.append(str(results[0].owner))
        return [x]

    # The target does not exist, which the compiler finds; the text has been written by then.
    with pytest.raises(Exception, match=r"a\.target"):
        run(rule, [X], [aval(X.shape)])
    (text,) = texts
    for part in (
        "a.target",
        "api_version = 4 : i32",
        "count = 3 : i64",
        "mode = 76 : ui8",
        "has_side_effect = true",
        "operand_layouts = [dense<[0, 1]> : tensor<2xindex>]",
        "result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>]",
        "output_tuple_indices = [0], operand_index = 0",
    ):
        assert part in text


def test_layouts_must_be_as_many_as_values() -> None:
    with pytest.raises(ValueError, match="2 layouts were given for 1 value"):
        run(
            lambda c, x: c.custom_call("t", [x], c.avals_out, operand_layouts=[(0, 1)] * 2),
            [X],
            [aval(X.shape)],
        )


def test_all_values_have_the_same_batch_dimensions() -> None:
    for outs in ([aval((X.shape[0] + 1,))], [aval(())]):
        with pytest.raises(ValueError, match="the call of t has 1 batch dimensions, but operands"):
            run(
                lambda c, x, outs=outs: c.custom_call("t", [x], outs, batch_dims=1),
                [X],
                [aval(X.shape)],
            )


def test_compiled_modules_have_contexts_of_their_own(monkeypatch):
    monkeypatch.setattr(context, "_spare", [])
    x = np.ones(3, np.float32)
    bytecode = context.module_bytecode(dt.jit(dt.lax.lgamma).lower(x).compiler_ir())
    with context.parsed_alone(bytecode) as one, context.parsed_alone(bytecode) as other:
        assert str(one) == str(other)
        assert one.context is not other.context
    assert len(context._spare) == 2
    for _ in range(3):
        with context.parsed_alone(bytecode):
            assert len(context._spare) == 1, "one that was used is used again"
    monkeypatch.setattr(context, "_MOST_USES", 0)
    for count in (1, 0):
        with context.parsed_alone(bytecode):
            pass
        assert len(context._spare) == count, "not for ever"
    with context.parsed_alone(b"ML\xefR of another dialect") as unread:
        assert type(unread) is bytes
