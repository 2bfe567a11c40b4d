"""``x[index]`` gives what NumPy gives, eagerly and traced, and says what is wrong with an index."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.runtime.programs.compilation import statistics
from dovetail.numpy.indexing.codec import decode, encode
from dovetail.numpy.indexing.parsing import parse
from dovetail.numpy.indexing.reading import take

pytestmark = pytest.mark.tables

S = slice
N = None
E = Ellipsis
MASK5 = np.array([True, False, True, True, False])
MASK34 = np.arange(12).reshape(3, 4) % 3 == 0

# Shape and index; NumPy takes all of them.
TABLE: list[tuple[tuple[int, ...], Any]] = [
    ((5,), 0),
    ((5,), -1),
    ((5,), np.int64(3)),
    ((5,), np.uint8(3)),
    ((5,), np.array(2)),
    ((5,), S(None)),
    ((5,), S(1, 3)),
    ((5,), S(-3, -1)),
    ((5,), S(3, 1)),
    ((5,), S(None, None, 2)),
    ((5,), S(None, None, -1)),
    ((5,), S(4, 0, -2)),
    ((5,), S(0, None, -1)),
    ((5,), S(-100, 100)),
    ((5,), S(np.int64(1), np.int8(4))),
    ((5,), N),
    ((5,), E),
    ((5,), ()),
    ((), ()),
    ((), E),
    ((), N),
    ((), (N, E, N)),
    ((5,), True),
    ((5,), False),
    ((5,), np.True_),
    ((), True),
    ((), (False, N)),
    ((5,), np.array([0, -1, 3])),
    ((5,), np.array([[0, -1], [3, 3]])),
    ((5,), np.array([], int)),
    ((5,), np.array([1, 2], np.uint8)),
    ((5,), ((0, 1),)),
    ((5,), ([0, -1],)),
    ((5,), ([],)),
    ((5,), MASK5),
    ((5,), (MASK5.tolist(),)),
    ((5,), (N, MASK5)),
    ((5,), np.zeros(5, bool)),
    ((0,), S(None, None, -1)),
    ((0, 3), S(0, 0)),
    ((0, 3), (E, 1)),
    ((0, 3), np.array([], int)),
    ((3, 0), np.array([1, 1])),
    ((3, 4), 1),
    ((3, 4), (1, 2)),
    ((3, 4), (-1, S(None, None, -2))),
    ((3, 4), (S(None), 2)),
    ((3, 4), (S(1, 3), S(1, 4, 2))),
    ((3, 4), (E, 0)),
    ((3, 4), (N, E, N, 1)),
    ((3, 4), (S(None, None, -1), N, 3)),
    ((3, 4), np.array([0, 2])),
    ((3, 4), (S(None), np.array([0, 2]))),
    ((3, 4), (S(None, None, -1), np.array([0, 2]))),
    ((3, 4), (np.array([0, 2]), S(None, None, -1))),
    ((3, 4), (np.array([0, 2]), S(1, 3))),
    ((3, 4), (np.array([0, 2]), S(3, 0, -2))),
    ((3, 4), (np.array([0, 2]), np.array([1, 3]))),
    ((3, 4), (np.array([0, 2])[:, N], np.array([1, 3, 0]))),
    ((3, 4), (np.array([0, 2]), 1)),
    ((3, 4), (1, np.array([0, 2]))),
    ((3, 4), (np.array([0, 2]), N)),
    ((3, 4), (np.array([0, 2]), N, np.array([0, 2]))),
    ((3, 4), (E, np.array([0, 2]))),
    ((3, 4), (np.array([0, 2]), E)),
    ((3, 4), (np.array([0, 2]), E, np.array([0, 2]))),
    ((3, 4), MASK34),
    ((3, 4), (MASK34[:, 0], S(1, 3))),
    ((3, 4), (S(None), MASK34[0])),
    ((3, 4), (MASK34[:, 0], 1)),
    ((3, 4), (MASK34[:, 0], np.array([1]))),
    ((3, 4), (True, np.array([0, 2]))),
    ((3, 4), (np.array([0, 2]), True)),
    ((3, 4), (np.array([0, 2]), S(None), True)),
    ((3, 4), (True, 1, False)),
    ((3, 4), (True, True)),
    ((2, 3, 4), (np.array([0, 1]), S(None), np.array([1, 3]))),
    ((2, 3, 4), (S(None), np.array([0, 1]), np.array([1, 3]))),
    ((2, 3, 4), (0, S(None), np.array([1, 3]))),
    ((2, 3, 4), (S(None), 0, np.array([1, 3]))),
    ((2, 3, 4), (np.array([0, 1]), S(None), 0)),
    ((2, 3, 4), (np.array([0, 1]), S(None, None, 2), np.array([[1], [3]]))),
    ((2, 3, 4), (S(None, None, -1), np.array([[1], [2]]), S(None, None, -3))),
    ((2, 3, 4), (np.array([0, 1]), E, S(1, 2))),
    ((2, 3, 4), (N, np.array([0, 1]), N, 1, S(1, 3))),
    ((2, 3, 4), (S(None), E, np.array([0, 1]))),
    ((2, 3, 4), (S(None), np.array([0, 1]), E, np.array([0, 1]))),
    ((2, 3, 4), (S(None), MASK34)),
    ((3, 4, 2), MASK34),
    ((3, 4, 2), (MASK34, 0)),
    ((3, 4, 2), (MASK34, N, S(None, None, -1))),
    ((2, 3, 4, 2), (0, MASK34)),
    ((2, 3, 4, 2), (S(None), MASK34, np.array([1, 0, 1, 0]))),
    ((2, 3, 4, 2), (np.array([0, 1, 1, 0]), S(None), S(None), np.array([1, 0, 1, 0]))),
    ((2, 3, 4, 2), (np.array([0, 1]), S(1, 2), np.array([3, 1]), S(None, None, -1))),
]


def shown(value: Any) -> str:
    return re.sub(r"\s+", "", repr(value))


CASES = [pytest.param(s, i, id=f"{s}-{shown(i)}") for s, i in TABLE]


def filled(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape).astype(dtype)


def assert_same(got: Any, want: Any) -> None:
    got = np.asarray(got)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("shape", "index"), CASES)
def test_equals_numpy(shape: tuple[int, ...], index: Any) -> None:
    x = filled(shape)
    want = x[index]
    assert_same(jnp.asarray(x)[index], want)
    assert_same(dt.jit(lambda x: x[index])(x), want)


def with_device_arrays(index: Any, convert: Any) -> Any:
    """The index with its integer arrays replaced."""
    if isinstance(index, tuple):
        return tuple(with_device_arrays(i, convert) for i in index)
    if isinstance(index, (np.ndarray, np.integer)) and index.dtype.kind in "iu":
        return convert(index)
    return index


@pytest.mark.parametrize(("shape", "index"), CASES)
def test_equals_numpy_with_arrays_on_the_device(shape: tuple[int, ...], index: Any) -> None:
    x = filled(shape)
    assert_same(jnp.asarray(x)[with_device_arrays(index, jnp.asarray)], x[index])


@pytest.mark.parametrize(("shape", "index"), CASES)
def test_equals_numpy_with_traced_arrays(shape: tuple[int, ...], index: Any) -> None:
    x = filled(shape)
    arrays: list[Any] = []
    with_device_arrays(index, arrays.append)
    if not arrays:
        return

    def f(x: Any, arrays: Any) -> Any:
        given = iter(arrays)
        return x[with_device_arrays(index, lambda _: next(given))]

    assert_same(dt.jit(f)(x, arrays), x[index])


DTYPES = [
    *(np.dtype(bool), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)),
    *(np.dtype(f"{k}int{n}") for k in ("", "u") for n in (8, 16, 32, 64)),
    *map(np.dtype, ("float32", "float64", "complex64", "complex128")),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: np.dtype[Any]) -> None:
    x = filled((3, 4), dtype)
    with dt.enable_x64(True):
        y = jnp.asarray(x)
        for index in (1, (S(None), -1), S(None, None, -2), np.array([2, 0]), (np.array([0, 2]), 1)):
            assert_same(y[index], x[index])


@pytest.mark.parametrize(
    "dtype", [np.dtype(f"{k}int{n}") for k in ("", "u") for n in (8, 16, 32, 64)], ids=str
)
@pytest.mark.parametrize("x64", [False, True])
def test_index_dtypes(dtype: np.dtype[Any], x64: bool) -> None:
    x = filled((300, 2))
    positions = np.array([3, 0, 127], dtype)
    if dtype.kind == "i":
        positions = np.concatenate([positions, np.array([-1, -128], dtype)])
    with dt.enable_x64(x64):
        y, device = jnp.asarray(x), jnp.asarray(positions)
        assert_same(y[device], x[positions])
        assert_same(y[positions], x[positions])
        assert_same(y[device, 0], x[positions, 0])
        assert_same(dt.jit(lambda y, i: y[i])(y, positions), x[positions])
        for scalar in positions:
            assert_same(y[jnp.asarray(scalar)], x[scalar])
            assert_same(dt.jit(lambda y, i: y[i, ::-1])(y, scalar), x[scalar, ::-1])


@pytest.mark.parametrize("x64", [False, True])
def test_out_of_bounds_is_clipped(x64: bool) -> None:
    x = filled((5,))
    with dt.enable_x64(x64):
        y = jnp.asarray(x)
        for position in (5, 100, 2**31, 2**32 + 1, 10**15, np.int64(10**15), np.uint32(2**31 + 3)):
            assert y[position] == 4
            assert y[np.array([position])][0] == 4
        for position in (-6, -100, -(2**31), -(10**15)):
            assert y[position] == 0
            assert y[np.array([position])][0] == 0
        assert y[jnp.asarray(np.array([2**31 + 3], np.uint32))] == 4
        assert dt.jit(lambda y, i: y[i])(y, np.uint32(2**32 - 1)) == 4
        assert dt.jit(lambda y: y[100])(y) == 4
        assert dt.jit(lambda y: y[-100])(y) == 0
        assert dt.jit(lambda y, i: y[i])(y, 100) == 4
    with dt.enable_x64(True):
        y = jnp.asarray(x)
        assert y[jnp.asarray(np.array([2**40]))] == 4
        assert y[jnp.asarray(np.array([-(2**40)]))] == 0
        assert y[jnp.asarray(np.array([2**63 + 5], np.uint64))] == 4


@pytest.mark.parametrize(
    ("index", "start", "size"),
    [
        (2**31 + 5, 2**31 + 5, 1),
        (-1, 2**31 + 9, 1),
        (S(2**31 + 1, 2**31 + 4), 2**31 + 1, 3),
        (S(None, None, -(2**30)), 9, 2**31 + 1),
        (7, 7, 1),
    ],
)
def test_positions_beyond_32_bits_are_static(index: Any, start: int, size: int) -> None:
    shape = (2**31 + 10,)
    code, positions = encode(parse(index, shape), shape)
    assert all(-(2**31) <= d < 2**31 for d in positions)
    again = decode(code, positions, shape)

    def f(x: Any) -> Any:
        return take(x, again)

    closed = dt.make_jaxpr(f)(dt.ShapeDtypeStruct(shape, np.uint8))
    (eqn,) = [e for e in closed.eqns if e.primitive.name == "slice"]
    assert eqn.params["start_indices"] == (start,)
    assert eqn.params["limit_indices"] == (start + size,)


def test_traced_positions_beyond_32_bits() -> None:
    shape = (2**31 + 10, 4)

    def f(x: Any) -> Any:
        return x.at[2**31 + 5, 3].set(1)

    def g(x: Any, i: Any) -> Any:
        return x[np.array([5, 2**30]), i]

    x = dt.ShapeDtypeStruct(shape, np.uint8)
    closed = dt.make_jaxpr(f)(x)
    literals = [v.val for e in closed.eqns for v in e.invars if hasattr(v, "val")]
    assert 2**31 + 5 in literals
    closed = dt.make_jaxpr(g)(x, 1)
    (gather,) = [e for e in closed.eqns if e.primitive.name == "gather"]
    assert gather.invars[1].aval.dtype == np.int64


def test_arrays_of_positions_beyond_32_bits_need_them() -> None:
    with pytest.raises(OverflowError, match="enable_x64"):
        parse(np.array([2**31 + 5]), (2**31 + 10,))
    (item,) = parse(np.array([5, -1 - 2**31]), (2**31 + 10,)).items
    assert item.array.tolist() == [5, 9]
    with dt.enable_x64(True):
        (item,) = parse(np.array([2**31 + 5, -1]), (2**31 + 10,)).items
        assert item.array.tolist() == [2**31 + 5, 2**31 + 9]


def test_without_jit() -> None:
    x = filled((3, 4))
    with dt.disable_jit():
        y = jnp.asarray(x)
        for index in (
            1,
            -1,
            S(1, 3),
            (S(None, None, -1), 2),
            np.array([0, 2]),
            MASK34,
            (N, ..., 0),
        ):
            assert_same(y[index], x[index])
            want = x.copy()
            want[index] = 9
            assert_same(y.at[index].set(9), want)


def test_whole_array_is_the_array() -> None:
    x = jnp.arange(4)
    assert x[:] is x
    assert x[...] is x
    assert x[()] is x


def test_result_is_of_the_same_weak_type() -> None:
    x = dt.jit(lambda: jnp.broadcast_to(jnp.asarray(1.0), (3,)))()
    for index in (0, S(1, 2), np.array([0])):
        assert x[index].weak_type == x.weak_type


# ------------------------------------------------------------------------------------ compilations


def compiled_by(function: Any) -> int:
    before = statistics()
    function()
    after = statistics()
    return (after.compiled + after.loaded + after.reused) - (
        before.compiled + before.loaded + before.reused
    )


def test_another_index_compiles_nothing() -> None:
    x = jnp.arange(60.0).reshape(10, 6)
    i, j, m = jnp.array([1, 2, 3]), jnp.array([-1, 5, 60]), np.arange(10) % 2 == 0

    def first() -> None:
        x[0], x[1:3], x[::2], x[i], x[0, 1], x[:, 1], x[1:3, 2], x[i, 0], x[np.array([1, 2])]
        x[None, 3:5], x[-1, ::-1], x[m], x[..., 0, None], x[i, 1:3]

    def others() -> None:
        x[7], x[-1], x[4:6], x[-2:], x[1::2], x[j], x[5, 2], x[-1, -1], x[:, 4], x[6:8, 5]
        x[j, 3], x[np.array([-1, 0])], x[None, 0:2], x[2, ::-1], x[~m], x[..., 4, None], x[j, 4:6]
        x[np.int32(4)], x[100]

    first()
    assert compiled_by(others) == 0


def test_index_of_another_structure_compiles() -> None:
    # A fresh shape, so that no other test has compiled the programs.
    x = jnp.arange(53.0)
    with dt.direct_calls("none"):
        x[1:3]
        assert compiled_by(lambda: x[1:4]) == 1


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        ([0, 1], TypeError, "cannot be indexed with a list"),
        ([], TypeError, "cannot be indexed with a list"),
        (1.0, TypeError, "integer or boolean type, got float at position 0"),
        ((0, 1.5), TypeError, "at position 1"),
        (np.float32(1), TypeError, "got an array of dtype float32 at position 0"),
        (np.array([0.5]), TypeError, "dtype float32|dtype float64"),
        (([0.5],), TypeError, "integer or boolean type"),
        (1j, TypeError, "got complex at position 0"),
        ("a", TypeError, "indexed with a string, got 'a' at position 0"),
        ((0, b"a"), TypeError, "position 1"),
        (np.array(["a"]), TypeError, "integer or boolean type"),
        (object(), IndexError, "only integers, slices"),
        ({}, IndexError, "only integers, slices"),
        ((0, 0, 0), IndexError, "too many indices: the array is 2-dimensional, but 3 were indexed"),
        ((np.zeros((3, 4), bool), 0), IndexError, "too many indices"),
        ((E, E), IndexError, "single ellipsis"),
        (np.zeros(4, bool), IndexError, r"mask at position 0 .* shape \(4,\).*\(3,\)"),
        ((0, np.zeros(3, bool)), IndexError, "at position 1"),
        ((np.array([0, 1, 2]), np.array([0, 1])), IndexError, r"shape mismatch.*\(3,\) \(2,\)"),
        (S(0, 2.5), TypeError, "bounds of a slice must be integers or None"),
        (S("a"), TypeError, "bounds of a slice"),
        ((0, S(0, "a")), TypeError, "at position 1"),
        (S(None, None, 0), ValueError, "the step of a slice cannot be zero, .* at position 0"),
        (([[0, 1], [2]],), IndexError, "the list at position 0"),
    ],
)
def test_bad_index(index: Any, error: type[Exception], text: str) -> None:
    x = jnp.zeros((3, 4))
    with pytest.raises(error, match=text):
        x[index]
    with pytest.raises(error, match=text):
        dt.jit(lambda x: x[index])(x)
    with pytest.raises(error, match=text):
        x.at[index].set(0.0)


def test_bad_index_does_not_spoil_later_ones() -> None:
    x = jnp.float32(3)
    for _ in range(2):
        with pytest.raises(IndexError, match="0-dimensional, but 1 were indexed"):
            x[0]
        with pytest.raises(IndexError, match="0-dimensional"):
            x[jnp.array([0])]
        with pytest.raises(IndexError, match="0-dimensional"):
            x[1:2]
    assert jnp.arange(3)[1] == 1


@pytest.mark.parametrize("index", [0, -1, np.array([0]), (S(None), 0), (0, 0)])
def test_empty_dimension(index: Any) -> None:
    x = jnp.zeros((0, 0))
    if isinstance(index, tuple) and index[0] == S(None):
        with pytest.raises(IndexError, match="axis 1 with size 0"):
            x[index]
        return
    with pytest.raises(IndexError, match="axis 0 with size 0"):
        x[index]
    with pytest.raises(IndexError, match="axis 0 with size 0"):
        dt.jit(lambda x: x[index])(x)
    with pytest.raises(IndexError, match="axis 0 with size 0"):
        dt.jit(lambda x, i: x[i])(x, 0)


def test_traced_mask() -> None:
    text = r"boolean tracer[\s\S]*test_indexing.py:\d+[\s\S]*where\(mask, x, fill\)[\s\S]*size=n"
    with pytest.raises(dt.errors.NonConcreteBooleanIndexError, match=text):
        dt.jit(lambda x: x[x > 1])(jnp.arange(3))
    with pytest.raises(dt.errors.NonConcreteBooleanIndexError):
        dt.jit(lambda x: x[x.sum() > 1])(jnp.arange(3))
    with pytest.raises(dt.errors.NonConcreteBooleanIndexError):
        dt.vmap(lambda x: x[x > 1])(jnp.ones((3, 3)))
    assert_same(dt.grad(lambda x: x[x > 1].sum())(jnp.arange(4.0)), np.float32([0, 0, 1, 1]))


def test_traced_slice_bounds() -> None:
    text = r"static integers[\s\S]*at position 0[\s\S]*dynamic_slice_in_dim"
    with pytest.raises(IndexError, match=text):
        dt.jit(lambda x, i: x[i : i + 2])(jnp.arange(5), 1)
    assert_same(dt.jit(lambda x: x[jnp.int32(1) : 3])(jnp.arange(5)), np.int32([1, 2]))


def test_assignment_is_refused() -> None:
    x = jnp.arange(3)
    with pytest.raises(TypeError, match=r"x\.at\[index\]\.set\(y\)"):
        x[0] = 1
    with pytest.raises(TypeError, match=r"x\.at\[index\]\.set\(y\)"):
        dt.jit(lambda x: x.__setitem__(0, 1))(x)


def test_tracers_in_lists() -> None:
    x = filled((3, 4))
    assert_same(dt.jit(lambda x, i: x[[i, 0], [1, i]])(x, 2), x[[2, 0], [1, 2]])
    assert_same(jnp.asarray(x)[[jnp.int32(2), 0], 1], x[[2, 0], 1])


# ------------------------------------------------------------------------------------- emitted code


def primitives_of(f: Any, *args: Any) -> list[str]:
    return [e.primitive.name for e in dt.make_jaxpr(f)(*args).eqns]


def test_static_indices_are_slices() -> None:
    x = jnp.zeros((4, 5))
    assert primitives_of(lambda x: x[1], x) == ["slice", "squeeze"]
    assert primitives_of(lambda x: x[1:3, ::2], x) == ["slice"]
    assert primitives_of(lambda x: x[::-1], x) == ["rev"]
    assert primitives_of(lambda x: x[None], x) == ["broadcast_in_dim"]
    assert primitives_of(lambda x: x[:, ...], x) == []
    assert primitives_of(lambda x: x[np.array([0, 1])], x) == ["gather"]


def test_traced_scalars_are_dynamic_slices() -> None:
    x = jnp.zeros((4, 5))
    assert primitives_of(lambda x, i: x[i], x, 1) == [
        *("lt", "add", "select_n", "dynamic_slice", "squeeze")
    ]
    assert primitives_of(lambda x, i: x[i, ::2], x, np.uint8(1)) == [
        *("convert_element_type", "dynamic_slice", "slice", "squeeze")
    ]


def test_large_static_positions_are_computed() -> None:
    closed = dt.make_jaxpr(lambda x: x.at[::2, ::2].set(1.0))(jnp.zeros((200, 200)))
    assert all(np.size(c) <= 256 for c in closed.consts)


# --------------------------------------------------------------------------------- transformations


GRADIENTS: list[tuple[tuple[int, ...], Any]] = [
    ((5,), 2),
    ((5,), S(None, None, -2)),
    ((5,), np.array([0, 3, 0, -1])),
    ((3, 4), (S(1, 3), N, 2)),
    ((3, 4), (np.array([0, 0, 2]), S(None, None, -2))),
    ((3, 4), (np.array([0, 0, 2]), np.array([[1], [1]]))),
    ((3, 4), MASK34),
]


@pytest.mark.parametrize(("shape", "index"), GRADIENTS)
def test_gradient_is_finite_difference(shape: tuple[int, ...], index: Any) -> None:
    with dt.enable_x64(True):
        x = np.random.default_rng(0).normal(size=shape)

        def f(x: Any) -> Any:
            return (x[index] ** 3).sum()

        got = np.asarray(dt.grad(f)(x))
        want = np.empty(shape)
        for place in np.ndindex(shape):
            step = np.zeros(shape)
            step[place] = 1e-6
            want[place] = (f(x + step) - f(x - step)) / 2e-6
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)
        second = np.asarray(dt.jacfwd(dt.grad(f))(x)).reshape(x.size, x.size)
        step = 1e-6 * np.ones(shape)
        rows = (np.asarray(dt.grad(f)(x + step)) - np.asarray(dt.grad(f)(x - step))) / 2e-6
        np.testing.assert_allclose(second.sum(1), rows.reshape(-1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("shape", "index"), GRADIENTS[:-1])
def test_vmap_is_a_loop(shape: tuple[int, ...], index: Any) -> None:
    x = filled((3, *shape))
    assert_same(dt.vmap(lambda x: x[index])(x), np.stack([row[index] for row in x]))


@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0), (1, 1), (-1, 0)])
def test_vmap_over_positions(in_axes: tuple[Any, Any]) -> None:
    x, i = filled((4, 4, 4)), np.array([[0, 3], [-1, 2], [1, 1], [2, 0]], np.int32)
    if in_axes[1] == 1:
        i = i.T
    xs = [x if in_axes[0] is None else np.take(x, k, in_axes[0]) for k in range(4)]
    indices = [i if in_axes[1] is None else np.take(i, k, in_axes[1]) for k in range(4)]

    def check(f: Any) -> None:
        want = np.stack([f(a, b) for a, b in zip(xs, indices, strict=True)])
        assert_same(dt.vmap(lambda x, i: f(jnp.asarray(x), i), in_axes)(x, i), want)

    check(lambda x, i: x[i])
    check(lambda x, i: x[1, i, ::-1] if x.ndim == 3 else x[1, i])
    check(lambda x, i: x[i[0]])
    check(lambda x, i: x[i, 0])


# -------------------------------------------------------------------------------------- hypothesis


@st.composite
def indexed(draw: Any) -> tuple[tuple[int, ...], Any]:
    """A shape and an index that NumPy takes."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=0, max_size=4)))
    batch = draw(st.sampled_from([(2,), (3,), (2, 2), ()]))
    entries: list[Any] = []
    used = 0
    ellipsis = False
    while used < len(shape) and draw(st.integers(0, 9)):
        size = shape[used]
        kind = draw(st.sampled_from(["int", "slice", "array", "none", "ellipsis", "mask", "bool"]))
        if kind == "int":
            entries.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            bound = st.none() | st.integers(-size - 1, size + 1)
            step = draw(st.none() | st.integers(-3, 3).filter(bool))
            entries.append(slice(draw(bound), draw(bound), step))
        elif kind == "array":
            sizes = tuple(1 if draw(st.booleans()) and n > 1 else n for n in batch)
            flat = [draw(st.integers(-size, size - 1)) for _ in range(int(np.prod(sizes)))]
            entries.append(np.array(flat, int).reshape(sizes))
        elif kind == "mask":
            # As many as the arrays need, so that they broadcast together.
            if batch != (2,) or size < 2:
                continue
            mask = np.zeros(size, bool)
            mask[list(draw(st.permutations(range(size)))[:2])] = True
            entries.append(mask)
        elif kind == "bool":
            entries.append(True)
            continue
        elif kind == "none":
            entries.append(None)
            continue
        else:
            if ellipsis:
                continue
            ellipsis = True
            entries.append(Ellipsis)
            used += draw(st.integers(0, len(shape) - used))
            continue
        used += 1
    return shape, tuple(entries) if len(entries) != 1 or draw(st.booleans()) else entries[0]


@settings(max_examples=80, deadline=None)
@given(indexed())
def test_random_indices(case: tuple[tuple[int, ...], Any]) -> None:
    shape, index = case
    x = filled(shape)
    try:
        want = x[index]
    except IndexError as error:
        # Positions out of bounds, which an ellipsis can lead to, are clipped.
        if "out of bounds" not in str(error):
            with pytest.raises((IndexError, TypeError)):
                jnp.asarray(x)[index]
        return
    assert_same(jnp.asarray(x)[index], np.asarray(want))
    assert_same(dt.jit(lambda x: x[index])(x), np.asarray(want))


@settings(max_examples=40, deadline=None)
@given(indexed())
def test_random_updates(case: tuple[tuple[int, ...], Any]) -> None:
    shape, index = case
    x = filled(shape)
    try:
        part = x[index]
    except IndexError:
        return
    values = np.asarray(filled(part.shape) + 100, np.float32)
    want = x.copy()
    np.add.at(want, index, values)
    assert_same(jnp.asarray(x).at[index].add(values), want)
    assert_same(dt.jit(lambda x, v: x.at[index].add(v))(x, values), want)


def test_keys() -> None:
    keys = dt.random.split(dt.random.key(0), 4)
    data = np.asarray(dt.random.key_data(keys))
    for index in (1, S(1, 3), S(None, None, -1), np.array([3, 0]), (N, 2), MASK5[:4]):
        assert_same(dt.random.key_data(keys[index]), data[index])
        assert_same(dt.random.key_data(dt.jit(lambda k, i=index: k[i])(keys)), data[index])
    filled_keys = keys.at[np.array([0, 9])].get(mode="fill")
    assert np.asarray(dt.random.key_data(filled_keys))[1].tolist() == [2**32 - 1] * 2


def test_gather_is_reexported() -> None:
    assert lax.gather_p.name == "gather"
