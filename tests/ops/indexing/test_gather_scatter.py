"""The functions gather and scatter of lax, beyond the rules, which have samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail._core.ops.indexing.gather import default_fill

ELEMENT = lax.GatherDimensionNumbers((), (0,), (0,))
INTO_ELEMENT = lax.ScatterDimensionNumbers((), (0,), (0,))
X = np.float32([1, 2, 3, 4])
I = np.array([[2], [0], [2]], np.int32)  # noqa: E741  # the indices
U = np.float32([5, 6, 7])


def assert_same(got: Any, want: Any) -> None:
    got = np.asarray(got)
    want = np.asarray(want)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        (None, lax.GatherScatterMode.FILL_OR_DROP),
        ("fill", lax.GatherScatterMode.FILL_OR_DROP),
        ("drop", lax.GatherScatterMode.FILL_OR_DROP),
        ("clip", lax.GatherScatterMode.CLIP),
        ("promise_in_bounds", lax.GatherScatterMode.PROMISE_IN_BOUNDS),
        (lax.GatherScatterMode.CLIP, lax.GatherScatterMode.CLIP),
    ],
)
def test_modes_by_name(name: Any, mode: Any) -> None:
    assert lax.GatherScatterMode.from_any(name) is mode


@pytest.mark.parametrize("name", ["wrap", "", 3, ["clip"]])
def test_unknown_mode(name: Any) -> None:
    with pytest.raises(ValueError, match=r"unknown mode .*'fill'.*'drop'.*'clip'"):
        lax.GatherScatterMode.from_any(name)


def test_mode_is_printed_by_its_name() -> None:
    assert str(lax.GatherScatterMode.CLIP) == "GatherScatterMode.CLIP"


def test_dimension_numbers_are_printed_with_all_fields() -> None:
    assert repr(ELEMENT) == (
        "GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,), "
        "operand_batching_dims=(), start_indices_batching_dims=())"
    )
    assert repr(INTO_ELEMENT) == (
        "ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(0,), "
        "scatter_dims_to_operand_dims=(0,), operand_batching_dims=(), "
        "scatter_indices_batching_dims=())"
    )


def test_gather() -> None:
    assert_same(lax.gather(X, I, ELEMENT, (1,)), X[[2, 0, 2]])
    beyond = np.array([[9], [1], [-1]])
    filled = lax.gather(X, beyond, ELEMENT, (1,), mode="fill")
    assert_same(filled, np.float32([np.nan, 2, np.nan]))
    assert_same(lax.gather(X, beyond, ELEMENT, (1,), fill_value=-5), np.float32([-5, 2, -5]))
    assert_same(lax.gather(X, beyond, ELEMENT, (1,), mode="clip"), np.float32([4, 2, 1]))
    lists = lax.GatherDimensionNumbers([], [0], [np.int64(0)])  # type: ignore[arg-type, list-item]
    assert_same(lax.gather(X, I, lists, [1]), X[[2, 0, 2]])


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("scatter", [6, 2, 7, 4]),
        ("scatter_add", [7, 2, 15, 4]),
        ("scatter_sub", [-5, 2, -9, 4]),
        ("scatter_mul", [6, 2, 105, 4]),
        ("scatter_min", [1, 2, 3, 4]),
        ("scatter_max", [6, 2, 7, 4]),
    ],
)
def test_scatter(name: str, want: Any) -> None:
    function = getattr(lax, name)
    assert_same(function(X, I, U, INTO_ELEMENT), np.float32(want))
    assert_same(dt.jit(lambda *a: function(*a, INTO_ELEMENT))(X, I, U), np.float32(want))
    beyond = np.array([[9], [-1], [4]])
    assert_same(function(X, beyond, U, INTO_ELEMENT), X)
    assert function(X, beyond, U, INTO_ELEMENT, mode="clip").shape == X.shape


def test_scatter_apply() -> None:
    got = lax.scatter_apply(X, I, lambda v: v * 2, INTO_ELEMENT, update_shape=(3,))
    assert_same(got, np.float32([2, 2, 12, 4]))
    unique = {"update_shape": (1,), "unique_indices": True}

    def f(x: Any) -> Any:
        return lax.scatter_apply(x, I[:1], lambda v: v**3, INTO_ELEMENT, **unique)

    jacobian = np.asarray(dt.jacrev(f)(X))
    np.testing.assert_allclose(jacobian, np.diag([1, 1, 27, 1]), rtol=1e-6)
    second = np.asarray(dt.jacfwd(dt.jacrev(lambda x: f(x).sum()))(X))
    np.testing.assert_allclose(second, np.diag([0, 0, 18, 0]), rtol=1e-6)
    assert_same(
        dt.vmap(f)(np.stack([X, X + 1])), np.stack([[1, 2, 27, 4], [2, 3, 64, 5]]).astype("f")
    )


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: lax.gather([1.0], I, ELEMENT, (1,)),
            TypeError,
            "gather requires its argument operand",
        ),
        (
            lambda: lax.gather(X, [[1]], ELEMENT, (1,)),
            TypeError,
            "gather requires its argument start_indices",
        ),
        (lambda: lax.gather(X, I, ELEMENT, 1), TypeError, "slice_sizes must be a sequence"),
        (lambda: lax.gather(X, I, 1, (1,)), TypeError, "lax.GatherDimensionNumbers, got int"),
        (lambda: lax.gather(X, I, INTO_ELEMENT, (1,)), TypeError, "got ScatterDimensionNumbers"),
        (lambda: lax.scatter(X, I, U, ELEMENT), TypeError, "lax.ScatterDimensionNumbers, got Ga"),
        (
            lambda: lax.scatter_apply(X, I, abs, None),
            TypeError,
            "lax.ScatterDimensionNumbers, got NoneType",
        ),
        (lambda: lax.gather(X, I, ELEMENT, (5,)), TypeError, r"slice_sizes \(5,\) has 5"),
        (lambda: lax.gather(X, I, ELEMENT, (1, 1)), TypeError, "one entry for each of the 1"),
        (lambda: lax.gather(X, X[:, None], ELEMENT, (1,)), TypeError, "integers, got dtype float"),
        (lambda: lax.gather(X, I, ELEMENT, (0,)), TypeError, "must be 1 in collapsed_slice_dims"),
        (lambda: lax.gather(X, I, ELEMENT, (1,), fill_value=1j), TypeError, "complex"),
        (lambda: lax.gather(X, I, ELEMENT, (1,), mode="wrap"), ValueError, "unknown mode 'wrap'"),
        (
            lambda: lax.gather(X, I, ELEMENT, (1,), fill_value=X),
            TypeError,
            "fill_value must be a Python or NumPy scalar",
        ),
        (
            lambda: lax.gather(X, I, lax.GatherDimensionNumbers((), (1,), (0,)), (1,)),
            TypeError,
            r"collapsed_slice_dims \(1,\) must be dimensions of the operand",
        ),
        (
            lambda: lax.gather(X, I, lax.GatherDimensionNumbers((), (), (0,)), (1,)),
            TypeError,
            "must together be as many",
        ),
        (
            lambda: lax.gather(X, I, lax.GatherDimensionNumbers((1, 0), (), (0,)), (1,)),
            TypeError,
            r"offset_dims \(1, 0\) must be (ascending|dimensions)",
        ),
        (
            lambda: lax.gather(X, I, lax.GatherDimensionNumbers((), (0, 0), (0,)), (1,)),
            TypeError,
            "must not name a dimension twice",
        ),
        (
            lambda: lax.gather(X, I, lax.GatherDimensionNumbers((), (), (), (0,), (0,)), (1,)),
            TypeError,
            "must name one dimension for each of the 1 components",
        ),
        (
            lambda: lax.scatter(X, I, U.astype("float16"), INTO_ELEMENT),
            TypeError,
            "equal dtypes",
        ),
        (lambda: lax.scatter_add(X, I, U[:2], INTO_ELEMENT), TypeError, "must be those of the ind"),
        (
            lambda: lax.scatter(
                X, I, np.ones((3, 5), "f"), lax.ScatterDimensionNumbers((1,), (), (0,))
            ),
            TypeError,
            "exceed the operand",
        ),
        (
            lambda: lax.scatter_apply(X, I, lambda v: v > 0, INTO_ELEMENT, update_shape=(3,)),
            TypeError,
            "must return a scalar of dtype float32, as its argument is, got bool",
        ),
        (
            lambda: lax.scatter_sub(X > 0, I, U > 0, INTO_ELEMENT),
            TypeError,
            "scatter-sub does not accept dtype bool",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_captured_tracer_in_scatter_apply() -> None:
    def f(x: Any) -> Any:
        first = x[0]
        return lax.scatter_apply(x, I, lambda v: v * first, INTO_ELEMENT, update_shape=(3,))

    with pytest.raises(TypeError, match=r"uses a value of type f32\[\] from outside"):
        dt.jit(f)(X)


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        ("float32", np.nan),
        ("complex64", np.nan),
        ("int8", -128),
        ("uint16", 65535),
        ("bool", True),
    ],
)
def test_default_fill(dtype: str, fill: Any) -> None:
    np.testing.assert_equal(default_fill(np.dtype(dtype)), fill)
    got = lax.gather(np.zeros(2, dtype), np.array([[5]]), ELEMENT, (1,), mode="fill")
    np.testing.assert_equal(np.asarray(got)[0], np.array(fill, dtype))


def test_scatter_with_repeated_indices_can_be_transposed() -> None:
    # The last update wins, so the others have no influence.
    transposed = dt.linear_transpose(lambda x, u: lax.scatter(x, I, u, INTO_ELEMENT), X, U)
    x_ct, u_ct = transposed(np.float32([1, 2, 3, 4]))
    assert_same(x_ct, np.float32([0, 2, 0, 4]))
    assert_same(u_ct, np.float32([0, 1, 3]))


def test_product_is_not_linear_in_its_updates() -> None:
    with pytest.raises(NotImplementedError, match="not linear in its updates"):
        dt.linear_transpose(lambda u: lax.scatter_mul(X, I, u, INTO_ELEMENT), U)(X)


def test_derivative_of_a_product_with_zeros() -> None:
    i = np.array([[0], [0], [0]])
    u = np.float32([0, 0, 3])
    x = np.float32([2])

    def f(u: Any) -> Any:
        return lax.scatter_mul(x, i, u, INTO_ELEMENT)[0]

    assert_same(dt.grad(f)(u), np.float32([0, 0, 0]))
    want = np.float32([[0, 6, 0], [6, 0, 0], [0, 0, 0]])
    assert_same(dt.jacfwd(dt.grad(f))(u), want)
    assert_same(dt.jacrev(dt.grad(f))(u), want)


def test_ties_of_extrema_share_the_derivative() -> None:
    x, u = np.float32([1, 5]), np.float32([1, 1, 4])
    i = np.array([[0], [0], [1]])
    for function in (lax.scatter_max, lax.scatter_min):
        got = dt.grad(lambda x, u, f=function: f(x, i, u, INTO_ELEMENT)[0], (0, 1))(x, u)
        third = np.float32(1) / np.float32(3)
        assert_same(got[0], np.float32([third, 0]))
        assert_same(got[1], np.float32([third, third, 0]))


def names(f: Any, *args: Any) -> list[str]:
    return [e.primitive.name for e in dt.make_jaxpr(f)(*args).eqns]


def test_batching_moves_no_data() -> None:
    x, i, u = np.zeros((4, 3), "f"), np.zeros((3, 2, 1), "i"), np.zeros((3, 2), "f")
    for in_axes, out_axis in (((1, None), 1), ((None, 0), 0), ((1, 0), 0)):
        args = (x if in_axes[0] is not None else X, i if in_axes[1] is not None else i[0])
        f = dt.vmap(lambda x, i: lax.gather(x, i, ELEMENT, (1,)), in_axes, out_axis)
        assert names(f, *args) == ["gather"]
    # The first dimension stays the first.
    columns = (dt.vmap(lambda x: x[:, np.array([1, 0])]), dt.vmap(lambda x: x[np.array([1, 0])]))
    for f in columns:
        assert "transpose" not in names(lambda x, f=f: f(x) + x[:, :2, :2], np.zeros((4, 2, 2)))
    f = dt.vmap(lambda x, i: x[:, i], (None, 0))
    assert "transpose" not in names(f, x, np.zeros((2, 5), "i"))
    f = dt.vmap(lambda x, i, u: lax.scatter(x, i, u, INTO_ELEMENT), (1, 0, 0), out_axes=1)
    assert names(f, x, i, u) == ["scatter"]


def test_wide_indices_of_the_host_with_64_bits() -> None:
    with dt.enable_x64(True):
        i = np.array([[2**40], [1]])
        assert_same(lax.gather(X, i, ELEMENT, (1,), mode="fill"), np.float32([np.nan, 2]))
        assert_same(lax.gather(X, i, ELEMENT, (1,), mode="clip"), np.float32([4, 2]))
        assert_same(lax.scatter(X, i, U[:2], INTO_ELEMENT), np.float32([1, 6, 3, 4]))


@pytest.mark.parametrize(
    ("given", "mode", "fill"),
    [
        ({}, "PROMISE_IN_BOUNDS", None),
        ({"mode": None}, "PROMISE_IN_BOUNDS", None),
        ({"fill_value": 3.0}, "FILL_OR_DROP", 3.0),
        ({"mode": "clip"}, "CLIP", None),
        ({"mode": "clip", "fill_value": 3.0}, "CLIP", None),
        ({"mode": "drop", "fill_value": np.float32(3)}, "FILL_OR_DROP", 3.0),
    ],
)
def test_mode_of_reading(given: Any, mode: str, fill: Any) -> None:
    jaxpr = dt.make_jaxpr(lambda x, i: lax.gather(x, i, ELEMENT, (1,), **given))(X, I)
    (equation,) = jaxpr.eqns
    assert equation.params["mode"] is lax.GatherScatterMode[mode]
    assert equation.params["fill_value"] == fill


def test_printed_form() -> None:
    text = str(dt.make_jaxpr(lambda x, i, u: lax.scatter_add(x, i, u, INTO_ELEMENT))(X, I, U))
    for part in (
        "scatter-add[",
        "dimension_numbers=ScatterDimensionNumbers(update_window_dims=(), ",
        "mode=GatherScatterMode.FILL_OR_DROP",
        "update_consts=()",
        "update_jaxpr={ lambda ; ",
        " = add ",
    ):
        assert part in text
