"""Ufunc objects and their methods against NumPy."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

BINARY = (
    *("add", "subtract", "multiply", "maximum", "minimum", "logaddexp", "logaddexp2"),
    *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
)
# One of each kind of implementation.
KINDS = ("add", "subtract", "maximum", "logaddexp", "logical_and", "logical_xor", "bitwise_and")
IDENTITIES = {
    "add": 0,
    "multiply": 1,
    "logical_and": True,
    "logical_or": False,
    "logical_xor": False,
    "bitwise_and": -1,
    "bitwise_or": 0,
    "bitwise_xor": 0,
    "logaddexp": -np.inf,
    "logaddexp2": -np.inf,
}


def make(dtype: str, shape: tuple[int, ...] = (3, 4)) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(7)
    values = rng.integers(0, 4, shape)
    if dtype == "complex64":
        return (values + 1j * rng.integers(-2, 3, shape)).astype(dtype)
    return values.astype(getattr(ml_dtypes, dtype, dtype))


def takes(name: str, dtype: str) -> bool:
    """Whether NumPy's function of that name takes arrays of a dtype."""
    if name.startswith("bitwise"):
        return dtype in ("bool", "int8", "uint8", "int32")
    if name.startswith("logaddexp"):
        return dtype in ("float16", "float32", "bfloat16")
    return not (name == "subtract" and dtype == "bool")


def close(actual: Any, expected: Any, rtol: float = 1e-5) -> None:
    expected = np.asarray(expected)
    assert isinstance(actual, jnp.ndarray)
    assert actual.shape == expected.shape
    if actual.dtype == "bfloat16":
        actual, expected = actual.astype("float32"), expected.astype("float32")
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=rtol, atol=rtol)


CASES = [
    *((name, "float32") for name in BINARY if takes(name, "float32") and "logical" not in name),
    *((name, "int32") for name in BINARY if name.startswith(("logical", "bitwise"))),
    *(("add", "int8"), ("add", "bool"), ("add", "bfloat16"), ("add", "complex64")),
    *(("multiply", "bool"), ("maximum", "uint8"), ("minimum", "int8"), ("subtract", "uint8")),
    *(("bitwise_and", "uint8"), ("bitwise_xor", "bool"), ("logaddexp", "float16")),
    ("logical_or", "complex64"),
]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_reduce_and_accumulate(name: str, dtype: str) -> None:
    x = make(dtype)
    function, reference = getattr(jnp, name), getattr(np, name)
    rtol = 2e-2 if dtype in ("bfloat16", "float16") else 1e-5
    wide = x.astype("float32") if dtype == "bfloat16" else x
    kept = x.dtype if dtype == "int8" else None
    close(function.reduce(x, -1), reference.reduce(wide, -1), rtol)
    close(function.accumulate(x), reference.accumulate(wide, dtype=kept), rtol)
    if dtype in ("float32", "int32") and reference.identity is not None:
        # NumPy takes several dimensions of these alone.
        every = reference.reduce(wide, None).reshape(1, 1)
        close(function.reduce(x, (1, 0), keepdims=True), every, rtol)


def test_axes_and_sizes() -> None:
    x = make("float32")
    compiled = dt.jit(jnp.add.reduce, static_argnames=("axis", "keepdims"))
    for axis in (0, 1, -2, None, (0, 1), (-1,)):
        for keepdims in (False, True):
            expected = np.add.reduce(x, axis, keepdims=keepdims)
            close(jnp.add.reduce(x, axis, keepdims=keepdims), expected)
            close(compiled(x, axis=axis, keepdims=keepdims), expected)
    close(jnp.add.reduce(2), 2)
    close(jnp.add.accumulate(x, -1), np.add.accumulate(x, -1))
    close(jnp.add.accumulate(x, None), np.add.accumulate(x.ravel()))
    close(jnp.subtract.reduce(x, None), x[0, 0] - (x.sum() - x[0, 0]))
    for name, identity in IDENTITIES.items():
        function = getattr(jnp, name)
        empty = np.zeros((0, 2), "int8" if name.startswith("bitwise") else "float32")
        close(function.reduce(empty), np.full(2, identity))
        assert function.accumulate(empty).shape == (0, 2)


@pytest.mark.parametrize("name", KINDS)
def test_reduce_of_a_part_from_a_start(name: str) -> None:
    dtype = "float32" if takes(name, "float32") else "int32"
    x = make(dtype, (3, 4))
    mask = x > 1
    function, reference = getattr(jnp, name), getattr(np, name)
    for options in ({}, {"where": mask}):
        expected = reference.reduce(x, 1, initial=2, **options)
        close(function.reduce(x, 1, initial=2, **options), expected)
    if name == "add":
        close(function.reduce(x[:, :0], 1, initial=3), reference.reduce(x[:, :0], 1, initial=3))
        close(function.reduce(x, 1, where=mask[0]), reference.reduce(x, 1, where=mask[0]))
        wider = function.reduce(x[0], where=mask, axis=1, initial=1)
        close(wider, reference.reduce(np.broadcast_to(x[0], x.shape), 1, where=mask, initial=1))
    if function.identity is not None:
        start = {"initial": -np.inf} if name.startswith("logaddexp") else {}
        close(function.reduce(x, where=mask), reference.reduce(x, where=mask, **start))


PARTS = [[0, 4, 1, 5, 2, 6, 3, 7], [7, 7, 0, 1, 3, 3, 2, 0]]


@pytest.mark.parametrize("name", KINDS)
def test_reduceat(name: str) -> None:
    function, reference = getattr(jnp, name), getattr(np, name)
    x = make("float32" if takes(name, "float32") else "int32", (8,))
    for parts in PARTS:
        close(function.reduceat(x, np.array(parts)), reference.reduceat(x, parts))


def test_reduceat_of_a_function_that_is_not_associative() -> None:
    made = jnp.frompyfunc(lambda a, b: a - 2 * b, 2, 1)
    x = make("int32", (8, 2))
    for parts in PARTS:
        bounds = zip(parts, [*parts[1:], 8], strict=True)
        pieces = [x[a:b] if a < b else x[a : a + 1] for a, b in bounds]
        expected = np.array([made_fold(piece) for piece in pieces])
        close(made.reduceat(x, np.array(parts)), expected)
    close(made.reduceat(x.T, np.array(parts), axis=-1), expected.T)
    for parts in ([], [0]):
        indices = np.array(parts, "int32")
        close(jnp.add.reduceat(x.T, indices, -1), np.add.reduceat(x.T, indices, -1))


def made_fold(piece: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    total = piece[0]
    for row in piece[1:]:
        total = total - 2 * row
    return np.asarray(total)


def test_reduceat_counts_from_the_end_and_fills_what_is_out_of_bounds() -> None:
    x = jnp.arange(5.0)
    for indices in (np.array([-2, 0]), np.array([3, 0])):
        close(jnp.add.reduceat(x, indices), [3.0, 10.0])
    for dtype in ("int8", "uint8", "int32", "uint32"):
        far = jnp.array([100, 3], dtype)
        result = np.asarray(dt.jit(jnp.add.reduceat)(x, far))
        assert np.isnan(result[0])
        assert result[1] == 7
    assert np.isnan(np.asarray(jnp.add.reduceat(x, jnp.array([-6])))).all()
    assert jnp.add.reduceat(x, jnp.array([0]), dtype="int16").dtype == "int16"
    assert jnp.add.reduceat(jnp.arange(3, dtype="int8"), jnp.array([0])).dtype == "int8"
    assert jnp.add.reduceat(jnp.array([True, True]), jnp.array([0])).tolist() == [2]


INDICES: list[Any] = [
    1,
    np.array([1, 1, 3]),
    (slice(None), 2),
    (np.array([0, 0]), slice(1, 3)),
    np.array([[True] * 4, [False] * 4, [False, True] * 2]),
]


@pytest.mark.parametrize("name", [*KINDS, "multiply", "minimum", "arctan2"])
def test_at(name: str) -> None:
    function = getattr(jnp, name, None)
    if not isinstance(function, jnp.ufunc):
        function = jnp.frompyfunc(getattr(jnp, name), 2, 1)
    x = make("float32" if takes(name, "float32") else "int32", (4, 4))
    for index in INDICES if name in ("add", "arctan2") else INDICES[1:3]:
        if isinstance(index, np.ndarray) and index.dtype == bool:
            index = np.vstack([index, index[:1]])
        expected = x.copy()
        getattr(np, name).at(expected, index, 2)
        close(function.at(x, index, 2, inplace=False), expected)
    twice = np.array([0, 2, 0])
    values = make("float32" if takes(name, "float32") else "int32", (3, 4))
    expected = x.copy()
    getattr(np, name).at(expected, twice, values)
    close(function.at(x, twice, values, inplace=False), expected)
    if name in ("add", "arctan2"):
        traced = dt.jit(lambda a, i, b: function.at(a, i, b, inplace=False))
        close(traced(x, twice, values), expected)


def test_at_of_one_argument_and_out_of_bounds() -> None:
    x = np.arange(5)
    assert jnp.negative.at(x, np.array([1, 1, 3]), inplace=False).tolist() == [0, 1, 2, -3, 4]
    square = jnp.frompyfunc(lambda v: v * v, 1, 1)
    assert square.at(x, np.array([2, 2, 9]), inplace=False).tolist() == [0, 1, 16, 3, 4]
    half = jnp.frompyfunc(lambda a, b: a / b, 2, 1)
    result = half.at(x, np.array([4, 4]), 2, inplace=False)
    assert result.tolist() == [0, 1, 2, 3, 1]
    assert result.dtype == "float32"
    assert jnp.add.at(x, 9, 1, inplace=False).tolist() == x.tolist()
    nothing = np.array([], "int32")
    for values in (x, x[:0]):
        assert square.at(values, nothing, inplace=False).tolist() == values.tolist()
        assert half.at(values, nothing, 2, inplace=False).tolist() == values.tolist()


@pytest.mark.parametrize("name", ["add", "logaddexp"])
def test_outer(name: str) -> None:
    dtype = "float32" if takes(name, "float32") else "int32"
    for first, second in (((2, 3), (4,)), ((), (2,)), ((0,), (2,))):
        a, b = make(dtype, first), make(dtype, second)
        close(getattr(jnp, name).outer(a, b), getattr(np, name).outer(a, b))


def test_dtypes_of_results() -> None:
    x = make("float32")
    parts = np.array([0, 2])
    for name, dtype in (("add", "float16"), ("logical_and", "int32"), ("logaddexp", "int32")):
        function = getattr(jnp, name)
        for result in (
            function.reduce(x, 0, dtype),
            function.accumulate(x, 1, dtype),
            function.reduceat(x, parts, 0, dtype),
        ):
            assert result.dtype == dtype
    logical = np.logical_and.accumulate(x, 1)
    close(jnp.logical_and.accumulate(x, 1, "int32"), logical)


def test_the_objects() -> None:
    for name in BINARY:
        function = getattr(jnp, name)
        assert isinstance(function, jnp.ufunc)
        assert (function.nin, function.nout, function.nargs) == (2, 1, 2)
        assert function.identity == IDENTITIES.get(name)
        assert repr(function) == f"<ufunc '{name}'>"
        assert function.__name__ == name
        assert list(inspect.signature(function).parameters) == ["x1", "x2", "out", "where"]
        y = np.array([1, 2])
        assert function(y, 3, out=None, where=None).tolist() == function(y, 3).tolist()
        for argument, given in (("out", y), ("where", y > 1), ("where", True)):
            with pytest.raises(NotImplementedError, match=f"{name} does not take {argument}="):
                function(y, 3, **{argument: given})
        assert function.__doc__
        assert pickle.loads(pickle.dumps(function)) is function is copy.deepcopy(function)
        assert {function: 1}[function] == 1
        assert function == function
    assert isinstance(jnp.negative, jnp.ufunc)
    assert jnp.negative.nin == 1
    assert jnp.negative(1, out=None, where=None) == -1
    with pytest.raises(NotImplementedError, match="negative does not take where="):
        jnp.negative(1, where=True)
    assert not isinstance(jnp.sin, jnp.ufunc)
    with pytest.raises(AttributeError, match="foo"):
        jnp.add.foo  # noqa: B018 (the look-up is the test)


def test_calls_are_those_of_the_compiled_function() -> None:
    """No Python runs on a warm cache: the function itself is called once."""
    calls = []

    def function(x: Any, y: Any) -> Any:
        calls.append(x)
        return x + y

    made = jnp.frompyfunc(function, 2, 1)
    for _ in range(3):
        assert made(jnp.arange(3), jnp.arange(3)).tolist() == [0, 2, 4]
    assert len(calls) == 1
    text = str(dt.make_jaxpr(jnp.add)(1.0, 2.0))
    assert text == str(dt.make_jaxpr(lambda x, y: x + y)(1.0, 2.0))
    assert dt.jit(jnp.add)(1, 2) == 3
    assert dt.grad(jnp.multiply)(3.0, 4.0) == 4
    assert dt.vmap(jnp.maximum, in_axes=(0, None))(jnp.arange(3), 1).tolist() == [1, 1, 2]


MADE: dict[str, tuple[Callable[..., Any], Any]] = {
    "add": (operator.add, 0),
    "multiply": (operator.mul, 1),
    "subtract": (operator.sub, None),
}


@pytest.mark.parametrize("name", MADE)
def test_frompyfunc(name: str) -> None:
    function, identity = MADE[name]
    made, reference = jnp.frompyfunc(function, 2, 1, identity=identity), getattr(np, name)
    x = make("float32")
    close(made(x, x[0]), reference(x, x[0]))
    close(made.outer(x, x[0]), reference.outer(x, x[0]))
    close(made.reduce(x, 1, keepdims=True), reference.reduce(x, 1, keepdims=True))
    close(made.accumulate(x, 1), reference.accumulate(x, 1))
    start = {"initial": 2.0, "where": x > 1}
    close(made.reduce(x, 1, **start), reference.reduce(x, 1, **start))
    close(made.reduce(x, (0, 1)), getattr(jnp, name).reduce(x, None))
    close(dt.jit(made.reduce)(x), reference.reduce(x))
    assert made.accumulate(x[:, :0], 1).shape == (3, 0)
    if name == "multiply":
        close(made.reduce(x[:0]), np.full(4, identity))
        close(made.reduce(x, where=x > 1), reference.reduce(x, where=x > 1))
        gradient = dt.grad(lambda v: made.reduce(v, None))(x)
        close(gradient, dt.grad(lambda v: getattr(jnp, name).reduce(v, None))(x))


def test_functions_of_other_numbers_of_arguments_and_results() -> None:
    both = jnp.frompyfunc(lambda a: (a, -a), 1, 2)
    first, second = both(jnp.arange(3))
    assert (first.tolist(), second.tolist()) == ([0, 1, 2], [0, -1, -2])
    three = jnp.frompyfunc(lambda a, b, c: a * b + c, 3, 1)
    assert three(np.ones((2, 1)), 2, np.arange(3)).tolist() == [[2, 3, 4]] * 2
    assert jnp.frompyfunc(jnp.dot, 2, 1)(np.arange(3), np.arange(3)).tolist() == [0, 1, 4]
    assert three.nargs == 3
    assert repr(both) == "<ufunc '<lambda>'>"
    ratio = jnp.frompyfunc(lambda a, b: a / b, 2, 1)
    assert ratio.reduce(jnp.array([8, 2, 2])) == 2
    assert ratio.accumulate(jnp.array([8, 2, 2])).tolist() == [8, 4, 2]
    again = pickle.loads(pickle.dumps(jnp.frompyfunc(operator.add, 2, 1, identity=0)))
    assert again.identity == 0
    assert again.reduce(jnp.arange(4)) == 6


def test_ufunc_with_methods_of_its_own() -> None:
    seen = []

    def record(name: str) -> Callable[..., Any]:
        return lambda *args: seen.append((name, args[1:])) or args[0]

    made = jnp.ufunc(
        operator.add, 2, 1, name="plus", nargs=2, identity=0, call=lambda x, y: x - y,
        reduce=record("reduce"), accumulate=record("accumulate"), at=record("at"),
        reduceat=record("reduceat"),
    )  # fmt: skip
    assert repr(made) == "<ufunc 'plus'>"
    assert made(5, 3) == 2
    made.reduce(1, axis=2, keepdims=True)
    made.accumulate(1)
    made.at(1, 2, 3, inplace=False)
    made.reduceat(1, 2)
    assert seen == [
        ("reduce", (2, None, None, True, None, None)),
        ("accumulate", (0, None, None)),
        ("at", (2, 3)),
        ("reduceat", (2, 0, None, None)),
    ]


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "subtract"])
def test_gradients_and_special_values(name: str) -> None:
    function = getattr(jnp, name)
    x = jnp.array([0.5, -1.0, 2.0])

    def loop(v: Any) -> Any:
        return function(function(v[0], v[1]), v[2])

    close(dt.grad(function.reduce)(x), np.asarray(dt.grad(loop)(x)))
    if name != "subtract":
        huge = np.array([[1e4, 1e4], [-np.inf, -np.inf], [np.inf, 0], [np.nan, 0], [-np.inf, 3]])
        with np.errstate(invalid="ignore"):
            expected = getattr(np, name).reduce(huge, 1)
        close(function.reduce(huge, 1), expected)


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: jnp.add.reduce([1, 2]), TypeError, r"add.reduce requires its argument a .*asarray"),
    (lambda: jnp.add.reduce(np.ones(2), 1), ValueError, "add.reduce: axis 1 is out of bounds"),
    (lambda: jnp.add.reduce(np.ones(2), out=1), NotImplementedError, "y = add.reduce"),
    (lambda: jnp.add.accumulate(np.ones(2), out=1), NotImplementedError, "y = add.accumulate"),
    (lambda: jnp.maximum.reduce(np.ones(0)), ValueError, "no elements .* give initial"),
    (lambda: jnp.maximum.reduce(np.ones(1), where=np.ones(1, bool)), ValueError, "with where"),
    (lambda: jnp.add.reduce(np.ones(2), where=np.ones(2)), TypeError, "where to hold booleans"),
    (lambda: jnp.add.reduce(np.ones(2), initial=np.ones(2)), TypeError, "initial must be a scal"),
    (lambda: jnp.negative.reduce(np.ones(2)), ValueError, "negative.reduce: .* nin=1"),
    (lambda: jnp.negative.outer(1, 2), ValueError, "negative.outer: .* nin=1"),
    (lambda: jnp.subtract.reduce(np.ones(2, bool)), TypeError, "logical_xor"),
    (lambda: jnp.bitwise_or.reduce(np.ones(2)), TypeError, "bitwise_or does not accept dtype"),
    (lambda: jnp.bitwise_or.accumulate(np.ones(2)), TypeError, "bitwise_or does not accept dtype"),
    (lambda: jnp.add.accumulate(1), ValueError, "out of bounds for an array of dimension 0"),
    (lambda: jnp.add.at(np.ones(2), 0, 1), NotImplementedError, "inplace=False"),
    (lambda: jnp.add.at(np.ones(2), 0, inplace=False), TypeError, "b is missing"),
    (lambda: jnp.negative.at(np.ones(2), 0, 1, inplace=False), TypeError, "leave b out"),
    (lambda: jnp.logaddexp.at(np.ones(2), 0, np.ones(2), inplace=False), ValueError, "b of shape"),
    (lambda: jnp.add.reduceat(np.ones(2), [0]), TypeError, "asarray"),
    (lambda: jnp.add.reduceat(np.ones(2), 0), ValueError, "one dimension"),
    (lambda: jnp.add.reduceat(np.ones(2), np.ones(1)), TypeError, "integers"),
    (lambda: jnp.add.reduceat(np.ones(0), np.zeros(1, int)), IndexError, "no elements"),
    (lambda: jnp.add.reduceat(np.ones(2), np.zeros(1, int), axis=None), TypeError, "axis"),
    (lambda: jnp.frompyfunc(1, 1, 1), TypeError, "callable"),
    (lambda: jnp.frompyfunc(abs, "1", 1), TypeError, "integer"),
    (lambda: jnp.frompyfunc(abs, 0, 1), ValueError, "at least 1"),
    (lambda: jnp.frompyfunc(operator.add, 2, 1)(1), TypeError, "takes nin=2 arguments and got 1"),
    (lambda: jnp.frompyfunc(operator.add, 2, 1)([1], 1), TypeError, "asarray"),
    (lambda: jnp.frompyfunc(operator.add, 2, 1)(1, 1, where=1), NotImplementedError, "where"),
    (lambda: jnp.frompyfunc(lambda a: (a, a), 1, 1)(1), TypeError, "must return 1 result"),
    (lambda: jnp.frompyfunc(lambda a: a, 1, 2)(1), TypeError, "must return 2 results"),
    (
        lambda: jnp.frompyfunc(lambda a, b: jnp.ones(2), 2, 1).reduce(np.ones(2)),
        TypeError,
        "scalar",
    ),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number: int) -> None:
    call, kind, message = ERRORS[number]
    with pytest.raises(kind, match=message):
        call()
