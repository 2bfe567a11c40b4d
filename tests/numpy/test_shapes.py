"""Shape functions, joining, splitting, repeating, padding against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.runtime.programs.compilation import statistics

pytestmark = pytest.mark.tables

A = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
V = np.arange(5, dtype=np.int32)
S = np.float32(3.5)
E = np.zeros((2, 0, 3), np.float32)


def agree(function: Callable[..., Any], reference: Callable[..., Any], *arrays: Any) -> None:
    """Eager, on NumPy's arrays, jitted and vmapped results equal NumPy's; none is NumPy's array."""
    expected = reference(*arrays)
    several = isinstance(expected, (list, tuple))
    wanted = list(expected) if several else [expected]
    for run in (
        lambda: function(*map(jnp.asarray, arrays)),
        lambda: function(*arrays),
        lambda: dt.jit(function)(*arrays),
    ):
        found = run()
        results = list(found) if several else [found]
        assert len(results) == len(wanted)
        for result, want in zip(results, wanted, strict=True):
            assert isinstance(result, jnp.ndarray)
            assert result.shape == want.shape
            assert result.dtype == dt.dtypes.canonicalize_dtype(want.dtype)
            np.testing.assert_array_equal(np.asarray(result), want)
    mapped = dt.vmap(function)(*(np.stack([a, a]) for a in arrays))
    for result, want in zip(list(mapped) if several else [mapped], wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(result), np.stack([want, want]))


CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], list[Any]]] = [
    ("reshape", ((4, -1),), {}, [A]),
    ("reshape", ((4, 6),), {"order": "F"}, [A]),
    ("reshape", (-1,), {}, [A, V, S, E]),
    ("ravel", (), {}, [A, V, S, E]),
    ("ravel", ("F",), {}, [A, V]),
    ("expand_dims", (0,), {}, [A, V, S]),
    ("expand_dims", ((0, -1),), {}, [A, V, S]),
    ("squeeze", (), {}, [A[:1], A, S, np.ones((1, 1))]),
    ("squeeze", (0,), {}, [A[:1]]),
    ("squeeze", ((0, -1),), {}, [A[:1, :, :1]]),
    ("broadcast_to", ((5, 2, 3, 4),), {}, [A, S]),
    ("broadcast_to", ((2, 3),), {}, [np.ones((2, 1)), S]),
    ("concatenate", (), {}, [A, E, A[:1], A[0]]),
    ("concatenate", (1,), {"dtype": "complex64"}, [A, E]),
    ("concatenate", (-2,), {}, [A, E, np.stack([A, -A])]),
    ("concatenate", (None,), {}, [A, E, A[0]]),
    ("atleast_1d", (), {}, [A, V, S]),
    ("atleast_2d", (), {}, [A, V, S]),
    ("atleast_3d", (), {}, [A, A[0], V, S]),
    ("transpose", (), {}, [A, V, S]),
    ("transpose", ((1, -1, 0),), {}, [A]),
    ("swapaxes", (0, -1), {}, [A, E]),
    ("moveaxis", (0, -1), {}, [A]),
    ("moveaxis", ((0, 1), (-1, 0)), {}, [A]),
    ("rollaxis", (2,), {}, [A]),
    ("rollaxis", (0, 3), {}, [A]),
    ("rollaxis", (-1, 1), {}, [A]),
    ("flip", (), {}, [A, V, S]),
    ("flip", ((0, -1),), {}, [A]),
    ("fliplr", (), {}, [A]),
    ("flipud", (), {}, [A, V]),
    *[("rot90", (k,), {}, [A]) for k in (-1, 0, 1, 2, 3)],
    ("rot90", (1, (2, 0)), {}, [A]),
    ("roll", (2,), {}, [A, V, E]),
    ("roll", (-7,), {"axis": 1}, [A, E]),
    ("roll", ((1, -2),), {"axis": (0, 2)}, [A]),
    ("roll", (1,), {"axis": (0, 1)}, [A]),
    ("roll", ((1, -1, 3),), {"axis": (0, 1, 2)}, [A]),
    ("roll", ((1, 3, -5),), {"axis": (2, 1, 2)}, [A]),
    ("roll", ((1, -1),), {"axis": (0, 0)}, [A]),
    ("roll", ((),), {"axis": ()}, [A]),
    ("array_split", (3,), {}, [V, A]),
    ("array_split", (3,), {"axis": -1}, [A]),
    ("array_split", ([1, 1, 9],), {"axis": 2}, [A]),
    ("split", (2,), {"axis": 0}, [A]),
    ("split", ([1, 3],), {"axis": 0}, [V]),
    ("split", (np.array([2]),), {"axis": -1}, [A]),
    ("split", ([3, 1],), {}, [V]),
    ("hsplit", (1,), {}, [A, V]),
    ("vsplit", (2,), {}, [A]),
    ("dsplit", (2,), {}, [A]),
    ("tile", (2,), {}, [A, V, S]),
    ("tile", ((2, 1, 3),), {}, [A, V, S]),
    ("tile", ((2, 2, 1, 1),), {}, [A]),
    ("tile", (0,), {}, [V]),
    ("repeat", (3,), {}, [A, V, S]),
    ("repeat", (2,), {"axis": 1}, [A, E]),
    ("repeat", (0,), {"axis": 0}, [A]),
    ("repeat", (np.array([1, 0, 2]),), {"axis": 1}, [A]),
    ("repeat", ([2, 0, 1, 0, 3],), {}, [V]),
    ("pad", (1,), {}, [A, V, E]),
    ("pad", ((1, 2),), {"constant_values": 7}, [V, A]),
    ("pad", (((0, 1), (2, 0), (1, 1)),), {"constant_values": (5, 6)}, [A]),
    ("pad", (0,), {}, [S]),
    *[
        ("pad", ((3, 2),), {"mode": mode}, [V, A])
        for mode in ("edge", "wrap", "reflect", "symmetric")
    ],
    ("pad", (7,), {"mode": "reflect"}, [V[:3], V[:1]]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_functions_of_one_array(
    case: tuple[str, tuple[Any, ...], dict[str, Any], list[Any]],
) -> None:
    name, args, options, arrays = case
    for array in arrays:
        agree(
            lambda x: getattr(jnp, name)(x, *args, **options),
            lambda x: getattr(np, name)(x, *args, **options),
            array,
        )


JOINS: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("concatenate", {}, [A, A[:1]]),
    ("concatenate", {"axis": -1}, [A, A[:, :, :2]]),
    ("concatenate", {"axis": None}, [A, V]),
    ("concatenate", {}, [V, V[:0]]),
    ("concatenate", {}, [V]),
    ("stack", {}, [V, V]),
    ("stack", {"axis": -1}, [A, A, A]),
    ("stack", {}, [S, S]),
    ("vstack", {}, [V, V]),
    ("vstack", {}, [A, A]),
    ("hstack", {}, [V, V]),
    ("hstack", {}, [A, A]),
    ("hstack", {}, [S, S]),
    ("dstack", {}, [V, V]),
    ("dstack", {}, [A, A]),
    ("column_stack", {}, [V, V]),
    ("column_stack", {}, [A[0], A[0]]),
]


@pytest.mark.parametrize("case", JOINS, ids=lambda case: f"{case[0]}-{case[1]}-{len(case[2])}")
def test_joining(case: tuple[str, dict[str, Any], list[Any]]) -> None:
    name, options, arrays = case
    agree(
        lambda *xs: getattr(jnp, name)(xs, **options),
        lambda *xs: getattr(np, name)(xs, **options),
        *arrays,
    )


def test_joining_details() -> None:
    mixed = jnp.concatenate([jnp.arange(2), jnp.ones(2)])
    assert mixed.dtype == jnp.float32
    assert jnp.concatenate([V, V], dtype="float16").dtype == jnp.float16
    assert jnp.stack([1, 2.5]).tolist() == [1.0, 2.5]
    assert jnp.stack(A).shape == A.shape
    assert jnp.concatenate(A).shape == (6, 4)
    assert jnp.append(V, 7).tolist() == [0, 1, 2, 3, 4, 7]
    assert jnp.append(A, A, axis=0).shape == (4, 3, 4)
    assert jnp.concat([V, V], axis=0).shape == (10,)
    rows = jnp.unstack(A, axis=1)
    assert [r.shape for r in rows] == [(2, 4)] * 3
    np.testing.assert_array_equal(np.asarray(rows[1]), A[:, 1])
    x, y = jnp.broadcast_arrays(np.ones((2, 1)), np.ones(3))
    assert x.shape == y.shape == (2, 3)
    assert jnp.broadcast_shapes((2, 1), 3, ()) == (2, 3)
    assert (jnp.ndim(A), jnp.shape(A), jnp.size(A), jnp.size(A, 1)) == (3, (2, 3, 4), 24, 3)
    assert (jnp.ndim(2), jnp.shape(2.5), jnp.size(True)) == (0, (), 1)
    one, two = jnp.atleast_2d(V, S)
    assert (one.shape, two.shape) == ((1, 5), (1, 1))
    assert jnp.matrix_transpose(A).shape == (2, 4, 3)
    assert jnp.permute_dims(A, (2, 0, 1)).shape == (4, 2, 3)


LISTS = {
    "atleast_1d": lambda: jnp.atleast_1d(V, S),
    "atleast_2d": lambda: jnp.atleast_2d(V, S),
    "atleast_3d": lambda: jnp.atleast_3d(V, S),
    "split": lambda: jnp.split(A, 2),
    "array_split": lambda: jnp.array_split(V, 2),
    "hsplit": lambda: jnp.hsplit(A, 3),
    "vsplit": lambda: jnp.vsplit(A, 2),
    "dsplit": lambda: jnp.dsplit(A, 2),
    "gradient": lambda: jnp.gradient(A),
    "lax.split": lambda: dt.lax.split(V, (2, 3)),
    "lax.top_k": lambda: dt.lax.top_k(V, 2),
}
TUPLES = {
    "broadcast_arrays": lambda: jnp.broadcast_arrays(V, S),
    "meshgrid": lambda: jnp.meshgrid(V, V),
    "unstack": lambda: jnp.unstack(A),
    "indices": lambda: jnp.indices((2, 3), sparse=True),
    "ix_": lambda: jnp.ix_(V, V),
    "nonzero": lambda: jnp.nonzero(V),
    "unravel_index": lambda: jnp.unravel_index(3, (2, 3)),
    "top_k": lambda: jnp.top_k(V, 2),
}


@pytest.mark.parametrize("name", [*LISTS, *TUPLES])
def test_several_results_are_a_list_or_a_tuple_as_in_jax_or_the_standard(name: str) -> None:
    assert type((LISTS | TUPLES)[name]()) is (list if name in LISTS else tuple)


def test_shifts_are_part_of_no_program() -> None:
    x = jnp.asarray(A)
    jnp.roll(x, 1, axis=1)
    before = statistics()
    for shift in (0, 2, -3, np.int32(2), 10**12):
        expected = np.roll(A, int(shift), axis=1)
        np.testing.assert_array_equal(np.asarray(jnp.roll(x, shift, axis=1)), expected)
    assert statistics() == before


@pytest.mark.parametrize("shift", [True, np.bool_(True), np.array([True]), [True]])
def test_boolean_shifts(shift: Any) -> None:
    np.testing.assert_array_equal(np.asarray(jnp.roll(V, shift)), np.roll(V, 1))
    if not isinstance(shift, list):
        np.testing.assert_array_equal(np.asarray(dt.jit(jnp.roll)(V, shift)), np.roll(V, 1))


def test_traced_shifts_and_counts() -> None:
    keys = dt.random.split(dt.random.key(0), 6).reshape(3, 2)
    rolled = dt.jit(lambda keys: jnp.roll(keys, 1, axis=0))(keys)
    assert (dt.random.key_data(rolled) == dt.random.key_data(keys[jnp.array([2, 0, 1])])).all()
    for shift in (-3, 0, 2, 11):
        np.testing.assert_array_equal(np.asarray(dt.jit(jnp.roll)(V, shift)), np.roll(V, shift))
        rolled = dt.jit(lambda x, s: jnp.roll(x, s, axis=(0, 2)))(A, jnp.array([shift, 1]))
        np.testing.assert_array_equal(np.asarray(rolled), np.roll(A, (shift, 1), (0, 2)))
        for pair in (lambda s: (s, 1), lambda s: [s, 1]):
            rolled = dt.jit(lambda x, s: jnp.roll(x, pair(s), (0, 2)))(A, shift)  # noqa: B023
            np.testing.assert_array_equal(np.asarray(rolled), np.roll(A, (shift, 1), (0, 2)))
        rolled = dt.jit(lambda x, s: jnp.roll(x, s, 1))(A, jnp.array([shift, 1]))
        np.testing.assert_array_equal(np.asarray(rolled), np.roll(A, (shift, 1), 1))
        rolled = jnp.roll(A, (shift, 1), np.array([0, 2]))
        np.testing.assert_array_equal(np.asarray(rolled), np.roll(A, (shift, 1), (0, 2)))
    counts = np.array([1, 0, 2, 1, 1])
    repeated = dt.jit(lambda x, n: jnp.repeat(x, n, total_repeat_length=7))(V, counts)
    assert repeated.tolist() == [0, 2, 2, 3, 4, 4, 4]
    assert jnp.repeat(V, jnp.array(counts), total_repeat_length=3).tolist() == [0, 2, 2]
    assert jnp.repeat(V, list(counts), total_repeat_length=3).tolist() == [0, 2, 2]
    with pytest.raises(dt.errors.ConcretizationTypeError, match="total_repeat_length"):
        dt.jit(jnp.repeat)(V, counts)


def test_methods_and_properties() -> None:
    for x in (jnp.asarray(A), A):
        np.testing.assert_array_equal(np.asarray(x.T), A.T)
        np.testing.assert_array_equal(np.asarray(x.reshape(4, 6)), A.reshape(4, 6))
        np.testing.assert_array_equal(np.asarray(x.reshape((4, -1))), A.reshape(4, -1))
        np.testing.assert_array_equal(np.asarray(x.transpose(1, 0, 2)), A.transpose(1, 0, 2))
        np.testing.assert_array_equal(np.asarray(x.transpose((1, 0, 2))), A.transpose(1, 0, 2))
        np.testing.assert_array_equal(np.asarray(x.swapaxes(0, 1)), A.swapaxes(0, 1))
        np.testing.assert_array_equal(np.asarray(x.flatten()), A.ravel())
        np.testing.assert_array_equal(np.asarray(x.ravel()), A.ravel())
        np.testing.assert_array_equal(np.asarray(x[:1].squeeze(0)), A[0])
        np.testing.assert_array_equal(np.asarray(x.repeat(2, axis=0)), A.repeat(2, axis=0))
        np.testing.assert_array_equal(np.asarray(x.copy()), A)
        np.testing.assert_array_equal(np.asarray(x.astype("int8")), A.astype("int8"))
    x = jnp.asarray(A)
    assert x.mT.shape == (2, 4, 3)
    traced = dt.jit(lambda v: (v.T, v.mT, v.reshape(-1), v.at[0].set(1.0), v.real, v.imag))(A)
    assert [t.shape for t in traced] == [A.T.shape, (2, 4, 3), (24,), A.shape, A.shape, A.shape]
    z = jnp.array([1 + 2j])
    assert (z.real.tolist(), z.imag.tolist(), z.conj().tolist(), z.conjugate().tolist()) == (
        [1.0],
        [2.0],
        [1 - 2j],
        [1 - 2j],
    )


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float32", "int32"),
        ("float32", "uint8"),
        ("uint8", "float32"),
        ("int16", "int64"),
        ("complex64", "float32"),
        ("float32", "complex64"),
        ("bool", "int8"),
    ],
)
def test_views(source: str, target: str) -> None:
    x = np.arange(8).astype(source)
    if target == "int64":
        with dt.enable_x64(True):
            np.testing.assert_array_equal(np.asarray(jnp.array(x).view(target)), x.view(target))
        return
    result = jnp.array(x).view(target)
    np.testing.assert_array_equal(np.asarray(result), x.view(target))
    assert jnp.array(x).view() is not None


def test_gradients_pass_through() -> None:
    def function(x: Any) -> Any:
        y = jnp.concatenate([x, x[:1]]).reshape(2, -1)
        y = jnp.stack([y, jnp.flip(y, 0)])
        y = jnp.pad(jnp.roll(y, 1, axis=1), 1, mode="edge")
        y = jnp.tile(jnp.repeat(y, 2, axis=0), (1, 1, 2))
        return sum(part.sum() * (i + 1) for i, part in enumerate(jnp.split(y, 2)))

    x = np.arange(3.0)
    gradient = dt.grad(function)(x)
    for i in range(3):
        step = np.zeros(3)
        step[i] = 1.0
        difference = (function(x + step) - function(x - step)) / 2
        assert float(gradient[i]) == pytest.approx(float(difference), rel=1e-4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.reshape(V, (2, 2)), TypeError, r"reshape.*\(5,\).*\(2, 2\)"),
        (lambda: jnp.reshape(V, (-1, -1)), TypeError, "only one"),
        (lambda: jnp.reshape(V, (2, -1)), TypeError, "divide"),
        (lambda: jnp.reshape(V, 5, order="X"), ValueError, "order"),
        (lambda: jnp.array(V).reshape(), TypeError, "shape"),
        (lambda: jnp.squeeze(V, 0), ValueError, "squeeze.*size 5"),
        (lambda: jnp.expand_dims(V, 3), ValueError, "expand_dims.*out of bounds"),
        (lambda: jnp.expand_dims(V, (0, 0)), ValueError, "duplicate"),
        (lambda: jnp.broadcast_to(V, (3,)), ValueError, "broadcast_to"),
        (lambda: jnp.broadcast_arrays(V, np.ones(3)), ValueError, "incompatible"),
        (lambda: jnp.transpose(A, (0, 1)), ValueError, "each of the 3"),
        (lambda: jnp.moveaxis(A, (0, 1), 0), ValueError, "equally many"),
        (lambda: jnp.moveaxis(V, 0, None), TypeError, "destination"),
        (lambda: jnp.moveaxis(V, None, 0), TypeError, "source"),
        (lambda: jnp.swapaxes(A, 0, 3), ValueError, "axis2 3 is out of bounds"),
        (lambda: jnp.matrix_transpose(V), ValueError, "rank 2"),
        (lambda: jnp.fliplr(V), ValueError, "rank 2"),
        (lambda: jnp.roll(A, (1, 2, 3), (0, 1)), ValueError, "equal lengths"),
        (lambda: jnp.roll(A, 1.5), TypeError, "shift to be an integer"),
        (
            lambda: dt.jit(jnp.tril)(A[0], 1),
            dt.errors.ConcretizationTypeError,
            "argument k of tril",
        ),
        (lambda: jnp.concatenate([V, A]), TypeError, "equal rank"),
        (lambda: jnp.concatenate([A, A[:, :1]]), TypeError, "equal sizes"),
        (lambda: jnp.concatenate([]), ValueError, "at least one"),
        (lambda: jnp.concatenate(V), TypeError, "equal rank"),
        (lambda: jnp.concatenate(3), TypeError, "sequence"),
        (lambda: jnp.concatenate([[1, 2], [3]]), TypeError, r"arrays\[0\].*list"),
        (lambda: jnp.stack([V, V[:2]]), ValueError, "one shape"),
        (lambda: jnp.stack([V], axis=3), ValueError, "out of bounds"),
        (lambda: jnp.split(V, 2), ValueError, "array_split"),
        (lambda: jnp.split(V, 0), ValueError, "positive"),
        (lambda: jnp.tile(V, -1), ValueError, "negative"),
        (lambda: jnp.repeat(V, -1), ValueError, "negative"),
        (lambda: jnp.repeat(A, [1, 2]), ValueError, "^repeat: repeats .* got shape"),
        (
            lambda: jnp.repeat(V, jnp.ones(2, int), total_repeat_length=3),
            ValueError,
            "^repeat: repeats .* got shape",
        ),
        (lambda: jnp.repeat(V[:2], [1.5, 2]), TypeError, "^repeat .* integers as repeats"),
        (lambda: jnp.repeat(V, 2, total_repeat_length=2.5), TypeError, "total_repeat_length"),
        (lambda: jnp.append([1], V), TypeError, "^append .* arr "),
        (lambda: jnp.append(V, [1]), TypeError, "^append .* values "),
        (lambda: jnp.roll(V, 1.5), TypeError, "^roll .* shift .* integer"),
        (lambda: dt.jit(jnp.roll)(V, 1.5), TypeError, "^roll .* integers as shift"),
        (lambda: jnp.roll(A, (1, 2), (0, 1, 2)), ValueError, "^roll: shift .* equal lengths"),
        (
            lambda: dt.jit(lambda n: jnp.roll(A, n, (0, 1, 2)))(np.arange(2)),
            ValueError,
            "^roll: shift .* equal lengths",
        ),
        (lambda: jnp.ravel(A, order="a"), ValueError, "^ravel: order"),
        (lambda: jnp.ravel(A[:0], order="a"), ValueError, "^ravel: order"),
        (lambda: jnp.repeat(1.0, 2, axis=(0, 1)), TypeError, "axis.*integer"),
        (lambda: jnp.repeat(1.0, 2, axis=1), ValueError, "out of bounds"),
        (lambda: jnp.unstack(S), ValueError, "rank 1"),
        (lambda: jnp.ravel([1, 2]), TypeError, "list"),
        (
            lambda: dt.jit(lambda n: jnp.reshape(V, n))(5),
            dt.errors.ConcretizationTypeError,
            "shape of reshape",
        ),
        (lambda: jnp.transpose(V, object()), TypeError, "transpose.*axes.*object"),
        (lambda: jnp.roll(V, "a"), TypeError, "roll.*shift.*integer"),
        (lambda: jnp.roll(V, 1j), TypeError, "roll.*shift.*integer"),
        (lambda: jnp.roll(V, 1.5), TypeError, "roll.*shift.*integer"),
        (lambda: jnp.repeat(V, [1, 2]), ValueError, "repeat: repeats.*one for each"),
        (lambda: jnp.repeat(V, 1.5 * V), TypeError, "repeat .*integers as repeats"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("shifts", [(3, 5), (-3, 5), (200, -200), (0, -1), (400, 1)])
def test_roll_of_many_elements(shifts: tuple[int, int]) -> None:
    x = np.arange(2**17).reshape(2, 256, 256)
    for axes in ((1, 2), (2, 0), (1, 1)):
        np.testing.assert_array_equal(jnp.roll(x, shifts, axes), np.roll(x, shifts, axes))
    moved = np.roll(x, (*shifts, 1), (2, 1, 0))
    np.testing.assert_array_equal(dt.jit(lambda x: jnp.roll(x, (*shifts, 1), (2, 1, 0)))(x), moved)
    weights = np.arange(x.size, dtype="f").reshape(x.shape)
    gradient = dt.grad(lambda y: (jnp.roll(y, shifts, (1, 2)) * weights).sum())(x.astype("f"))
    back = tuple(-n for n in shifts)
    np.testing.assert_array_equal(gradient, np.roll(weights, back, (1, 2)))
