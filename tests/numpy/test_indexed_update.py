"""``x.at[index]`` gives what NumPy's updates in place give."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.runtime.programs.compilation import statistics

pytestmark = pytest.mark.tables

S = slice
N = None
MASK34 = np.arange(12).reshape(3, 4) % 3 == 0

UFUNCS: dict[str, Any] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "mul": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}

# Shape and index; without repeated positions, so that `set` is defined.
INDICES: list[tuple[tuple[int, ...], Any]] = [
    ((), ()),
    ((), N),
    ((5,), 1),
    ((5,), -1),
    ((5,), np.array(2)),
    ((5,), S(1, 3)),
    ((5,), S(None, None, 2)),
    ((5,), S(None, None, -1)),
    ((5,), S(4, 0, -2)),
    ((5,), S(3, 1)),
    ((5,), ...),
    ((5,), N),
    ((5,), (N, 2)),
    ((5,), True),
    ((5,), False),
    ((5,), np.array([0, -1, 3])),
    ((5,), ([0, 4],)),
    ((5,), np.array([], int)),
    ((5,), np.array([True, False, True, True, False])),
    ((0, 3), S(None)),
    ((3, 0), np.array([1])),
    ((3, 4), 1),
    ((3, 4), (1, 2)),
    ((3, 4), (S(None), 2)),
    ((3, 4), (S(1, 3), S(None, None, 2))),
    ((3, 4), (S(None, None, -1), S(3, 0, -2))),
    ((3, 4), (..., N, 0)),
    ((3, 4), np.array([0, 2])),
    ((3, 4), (S(None), np.array([0, 2]))),
    ((3, 4), (S(None, None, -1), np.array([0, 2]))),
    ((3, 4), (np.array([0, 2]), S(1, 3))),
    ((3, 4), (np.array([0, 2]), np.array([1, 3]))),
    ((3, 4), (np.array([[0], [2]]), np.array([1, 3, 0]))),
    ((3, 4), (np.array([0, 2]), 1)),
    ((3, 4), (np.array([0, 2]), N, S(None, None, -2))),
    ((3, 4), (np.array([0, 2]), ..., np.array([1, 3]))),
    ((3, 4), MASK34),
    ((3, 4), (MASK34[:, 0], 1)),
    ((3, 4), (True, np.array([0, 2]))),
    ((2, 3, 4), (np.array([0, 1]), S(None), np.array([1, 3]))),
    ((2, 3, 4), (S(None), np.array([0, 1]), S(1, 3))),
    ((2, 3, 4), (1, S(None, None, -2), np.array([1, 3]))),
    ((2, 3, 4), (S(None), MASK34)),
]
CASES = [pytest.param(s, i, id=f"{s}-{i!r}".replace("\n", "")) for s, i in INDICES]


def ramp(shape: tuple[int, ...], dtype: Any = np.float32, start: int = 1) -> np.ndarray[Any, Any]:
    return np.arange(start, start + int(np.prod(shape))).reshape(shape).astype(dtype)


def assert_same(got: Any, want: Any, rtol: float = 0.0) -> None:
    got = np.asarray(got)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=rtol)


def all_ways(x: Any, index: Any, method: str, values: Any) -> list[Any]:
    """An update, eagerly and compiled."""

    def f(x: Any, values: Any) -> Any:
        return getattr(x.at[index], method)(values)

    return [f(jnp.asarray(x), values), dt.jit(f)(x, values)]


@pytest.mark.parametrize(("shape", "index"), CASES)
def test_set_is_assignment(shape: tuple[int, ...], index: Any) -> None:
    x = ramp(shape)
    part = np.shape(x[index])
    for values in (
        np.float32(7),
        7,
        ramp(part, start=100),
        ramp(part[1:], start=100) if part else np.float32(3),
        ramp((1,) * len(part), start=100),
    ):
        want = x.copy()
        want[index] = values
        for got in all_ways(x, index, "set", values):
            assert_same(got, want)


@pytest.mark.parametrize(("shape", "index"), CASES)
def test_add_and_multiply_are_updates_in_place(shape: tuple[int, ...], index: Any) -> None:
    x = ramp(shape)
    values = ramp(np.shape(x[index]), start=2)
    for method in ("add", "multiply"):
        want = x.copy()
        UFUNCS[method].at(want, index, values)
        for got in all_ways(x, index, method, values):
            assert_same(got, want)


@pytest.mark.parametrize("method", UFUNCS)
@pytest.mark.parametrize(
    "index", [2, S(None, None, -2), np.array([0, 3, 0, 0, 1]), np.arange(5) > 2], ids=str
)
def test_methods_combine_repeated_positions(method: str, index: Any) -> None:
    x = ramp((5,)) / 4
    values = np.asarray(ramp(np.shape(x[index]), start=1) / 3, np.float32)
    want = x.copy()
    UFUNCS[method].at(want, index, values)
    for got in all_ways(x, index, method, values):
        assert_same(got, want, rtol=1e-5)


def test_methods_with_dtypes() -> None:
    index = np.array([0, 2, 0])
    with dt.enable_x64(True):
        for name in (
            *(f"{k}int{n}" for k in ("", "u") for n in (8, 16, 32, 64)),
            *("float16", "float32", "float64", "complex64", "complex128"),
        ):
            x, values = ramp((4,), name), ramp((3,), name, start=2)
            for method in ("add", "subtract", "multiply", "min", "max"):
                if name.startswith("complex") and method in ("min", "max"):
                    continue
                want = x.copy()
                UFUNCS[method].at(want, index, values)
                assert_same(getattr(jnp.asarray(x).at[index], method)(values), want)
        x = ramp((4,), ml_dtypes.bfloat16)
        assert_same(jnp.asarray(x).at[index].add(x[:3]), np.array([5, 2, 5, 4], ml_dtypes.bfloat16))
        flags = np.array([True, False, False])
        assert_same(jnp.asarray(flags).at[1].set(True), np.array([True, True, False]))
        assert_same(jnp.asarray(flags).at[1:].max(True), np.array([True, True, True]))
        assert_same(jnp.asarray(flags).at[0].min(False), np.array([False, False, False]))
        assert_same(jnp.asarray(flags).at[1].add(True), np.array([True, True, False]))
        assert_same(jnp.asarray(flags).at[0].multiply(False), np.array([False, False, False]))
        with pytest.raises(TypeError, match="scatter-sub"):
            jnp.asarray(flags).at[0].subtract(True)


def test_complex_extrema_compare_real_parts_first() -> None:
    x = np.array([1j, 2, 2 + 1j], np.complex64)
    values = np.array([3j, 2 - 1j, 2 + 2j], np.complex64)
    assert_same(jnp.asarray(x).at[:].max(values), np.array([3j, 2, 2 + 2j], np.complex64))
    assert_same(jnp.asarray(x).at[:].min(values), np.array([1j, 2 - 1j, 2 + 1j], np.complex64))


def test_special_values() -> None:
    x = jnp.asarray(np.float32([0, 1, np.nan, 2]))
    assert np.signbit(np.asarray(x.at[1].set(-0.0)))[1]
    assert_same(x.at[:].max(np.nan), np.full(4, np.nan, np.float32))
    assert_same(x.at[2:].min(np.inf), np.float32([0, 1, np.nan, 2]))
    assert_same(x.at[0].add(np.inf), np.float32([np.inf, 1, np.nan, 2]))


def test_apply() -> None:
    x = ramp((5,))
    assert_same(jnp.asarray(x).at[1:3].apply(jnp.square), np.float32([1, 4, 9, 4, 5]))
    assert_same(
        jnp.asarray(x).at[np.array([0, 0, 1])].apply(lambda v: v + 1),
        x + np.float32([2, 1, 0, 0, 0]),
    )
    assert_same(
        dt.jit(lambda x: x.at[::-2].apply(jnp.negative))(x), x * np.float32([-1, 1, -1, 1, -1])
    )
    assert_same(jnp.asarray(x).at[0:0].apply(jnp.square), x)
    assert_same(jnp.asarray(x).at[True].apply(jnp.negative), -x)
    scale = jnp.float32(3)
    assert_same(jnp.asarray(x).at[0].apply(lambda v: v * scale), x * np.float32([3, 1, 1, 1, 1]))
    assert_same(
        dt.vmap(lambda x: x.at[0].apply(jnp.negative))(x[None]),
        x[None] * np.float32([-1, 1, 1, 1, 1]),
    )

    def f(v: Any) -> Any:
        return v * jnp.asarray(x)[0]

    with pytest.raises(TypeError, match=r"scatter_apply: f uses a value of type f32\[5\]"):
        jnp.asarray(x).at[0].apply(f)
    with pytest.raises(TypeError, match="must return a scalar of dtype float32"):
        jnp.asarray(x).at[0].apply(lambda v: v > 0)


def test_apply_gradient() -> None:
    x = ramp((5,))
    got = dt.grad(lambda x: (x.at[1:3].apply(jnp.sin) ** 2).sum())(x)
    want = 2 * x
    want[1:3] = 2 * np.sin(x[1:3]) * np.cos(x[1:3])
    assert_same(got, want, rtol=1e-5)
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        dt.grad(lambda x: x.at[np.array([0, 1])].apply(jnp.sin).sum())(x)


# ----------------------------------------------------------------------------------- out of bounds


def test_updates_out_of_bounds_are_dropped() -> None:
    x = jnp.zeros(5)
    for mode in (None, "drop", "fill", "promise_in_bounds"):
        for position in (5, -6, 10**12, np.array([7, -9])):
            assert_same(x.at[position].set(1.0, mode=mode), np.zeros(5, np.float32))
            assert_same(
                dt.jit(lambda x, p=position, m=mode: x.at[p].add(1.0, mode=m))(x),
                np.zeros(5, np.float32),
            )
    assert_same(x.at[jnp.array([2**31 + 3, 1], jnp.uint32)].set(1.0), np.float32([0, 1, 0, 0, 0]))


def test_updates_clipped() -> None:
    x = jnp.zeros(5)
    assert_same(x.at[9].set(1.0, mode="clip"), np.float32([0, 0, 0, 0, 1]))
    assert_same(x.at[-9].set(1.0, mode="clip"), np.float32([1, 0, 0, 0, 0]))
    assert_same(x.at[jnp.array([9, 4, -9])].add(1.0, mode="clip"), np.float32([1, 0, 0, 0, 2]))


def test_get_modes() -> None:
    x = jnp.asarray(ramp((3,)))
    i = np.array([2, 5, -4])
    nan = np.nan
    assert_same(x.at[i].get(), np.float32([3, 3, 1]))
    assert_same(x.at[i].get(mode="clip"), np.float32([3, 3, 1]))
    assert_same(x.at[i].get(mode="fill"), np.float32([3, nan, nan]))
    assert_same(x.at[i].get(mode="fill", fill_value=-1), np.float32([3, -1, -1]))
    assert_same(x.at[i].get(mode="fill", fill_value=np.float32(7)), np.float32([3, 7, 7]))
    assert_same(x.at[5].get(mode="fill"), np.float32(nan))
    assert_same(x.at[2].get(mode="fill"), np.float32(3))
    assert_same(dt.jit(lambda x: x.at[5].get(mode="fill"))(x), np.float32(nan))
    assert_same(dt.jit(lambda x, i: x.at[i].get(mode="fill"))(x, 5), np.float32(nan))
    assert_same(x.at[-1].get(wrap_negative_indices=False), np.float32(1))
    assert_same(x.at[-1].get(mode="fill", wrap_negative_indices=False), np.float32(nan))
    assert_same(
        x.at[np.array([-1, 1])].get(mode="fill", wrap_negative_indices=False), np.float32([nan, 2])
    )
    assert_same(
        x.at[jnp.array([-1, 1])].set(0.0, wrap_negative_indices=False), np.float32([1, 0, 3])
    )
    for name, fill in (("int8", -128), ("uint16", 65535), ("bool", True), ("int32", -(2**31))):
        y = jnp.asarray(np.zeros(2, name))
        assert_same(y.at[np.array([0, 9])].get(mode="fill"), np.array([0, fill], name))
    assert_same(
        jnp.zeros((0, 2)).at[np.array([0])].get(mode="fill"), np.full((1, 2), nan, np.float32)
    )
    with pytest.raises(ValueError, match="unknown mode 'wrap'"):
        x.at[0].get(mode="wrap")
    with pytest.raises(TypeError, match="fill_value must be a Python or NumPy scalar"):
        x.at[0].get(mode="fill", fill_value=jnp.float32(1))


def test_promises_reach_the_program() -> None:
    text = str(
        dt.make_jaxpr(
            lambda x, i: x.at[i].add(1.0, indices_are_sorted=True, unique_indices=True, mode="clip")
        )(jnp.zeros(3), np.array([0, 1]))
    )
    assert "indices_are_sorted=True" in text
    assert "unique_indices=True" in text
    assert "mode=GatherScatterMode.CLIP" in text


def test_static_positions_are_unique() -> None:
    for index in (0, S(1, 3), S(None, None, 2), (..., 2, None)):
        (eqn,) = [
            e
            for e in dt.make_jaxpr(lambda x, i=index: x.at[i].set(1.0))(jnp.zeros(5)).eqns
            if e.primitive.name == "scatter"
        ]
        assert eqn.params["unique_indices"]
        assert eqn.params["indices_are_sorted"]


@pytest.mark.parametrize("index", [..., (), S(None), (..., None), S(None, None, -1), S(0, 5)])
def test_updates_of_everything_need_no_positions(index: Any) -> None:
    x = np.arange(5, dtype=np.float32)
    for method, expected in (("set", np.zeros(5)), ("add", x), ("multiply", 0 * x), ("max", x)):
        for values in (0.0, np.zeros(5, np.float32), np.float32(0)):
            values = values if np.ndim(values) == 0 else values.reshape(np.shape(x[index]))
            run = lambda x, v, i=index, m=method: getattr(x.at[i], m)(v)
            assert "scatter" not in str(dt.make_jaxpr(run)(x, values))
            np.testing.assert_array_equal(run(jnp.asarray(x), values), expected)


# ------------------------------------------------------------------------------------ compilations


def programs() -> int:
    found = statistics()
    return found.compiled + found.loaded + found.reused


def test_another_index_compiles_nothing() -> None:
    x, v = jnp.zeros((10, 6)), jnp.ones(2)
    i, j = jnp.array([1, 2]), jnp.array([-1, 50])
    row, other = jnp.ones(6), jnp.zeros(6)

    def update(a: int, s: slice, p: Any, r: Any, w: float) -> None:
        x.at[a].set(r), x.at[s, a % 6].add(v), x.at[p, a].multiply(v), x.at[a, a % 6].set(w)
        x.at[::2].set(w), x.at[np.array([a, 0])].max(w), x.at[p].get(mode="fill")

    update(1, S(1, 3), i, row, 2.0)
    before = programs()
    update(-7, S(6, 8), j, other, -3.5)
    assert programs() == before


def test_another_mask_compiles_nothing() -> None:
    x = np.asarray(ramp((3, 4)))
    device = jnp.asarray(x)
    masks = [MASK34, ~MASK34, np.zeros((3, 4), bool), MASK34[:, 0], ~MASK34[:, 0]]
    for method in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max"):

        def f(x: Any, mask: Any, method: str = method) -> Any:
            return getattr(x.at[mask], method)(2.0)

        f(device, masks[0]), f(device, masks[3]), f(device, jnp.asarray(masks[0]))
        before = programs()
        for mask in masks:
            want = x.copy()
            if method == "set":
                want[mask] = 2
            else:
                UFUNCS[method].at(want, mask, np.float32(2))
            assert_same(f(device, mask), want)
            assert_same(f(device, jnp.asarray(mask)), want)
            assert programs() == before
            assert_same(dt.jit(lambda x, m=mask, f=f: f(x, m))(device), want)
            before = programs()


def test_masks_with_scalars_of_other_dtypes() -> None:
    x = jnp.arange(4)
    mask = np.array([True, False, True, False])
    assert_same(x.at[mask].set(True), np.int32([1, 1, 1, 3]))
    with pytest.warns(FutureWarning, match="cannot safely cast values"):
        assert_same(x.at[mask].add(1.5), np.int32([1, 1, 3, 3]))
    assert_same(x.at[mask].divide(2), np.float32([0, 1, 1, 3]))
    flags = x > 1
    assert_same(flags.at[mask].set(False), np.array([False, False, False, True]))
    assert_same(flags.at[mask].max(True), np.array([True, False, True, True]))


# ------------------------------------------------------------------------------------------ dtypes


@pytest.mark.parametrize(
    ("dtype", "values", "want"),
    [
        ("int32", 1.5, 1),
        ("int32", np.float32(2.5), 2),
        ("int32", jnp.float32(2.5), 2),
        ("uint8", jnp.int32(300), 44),
        ("float16", np.float32(3), 3),
        ("bfloat16", np.float32(3), 3),
        ("float32", 2 + 1j, 2),
        ("bool", 2, True),
    ],
)
def test_lossy_values_warn(dtype: str, values: Any, want: Any) -> None:
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = jnp.zeros(3, dtype)
    for _ in range(2):
        with pytest.warns(
            FutureWarning, match=f"cannot safely cast values of dtype .* to {dtype}.*astype"
        ) as caught:
            got = x.at[1].set(values)
        assert caught[0].filename == __file__
        assert_same(got, np.array([0, want, 0], dtype))
    with pytest.warns(FutureWarning, match=r"x\.at\[\.\.\.\]\.set"):
        dt.jit(lambda x: x.at[1].set(values))(x)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("float32", 1),
        ("float32", True),
        ("float32", np.int32(3)),
        ("float32", np.float16(3)),
        ("float16", 2.5),
        ("float16", np.int32(3)),
        ("int32", True),
        ("int8", 3),
        ("complex64", 2.0),
    ],
)
def test_other_values_do_not_warn(dtype: str, values: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = jnp.zeros(3, dtype)
        want = np.zeros(3, dtype)
        want[1] = values
        for got in all_ways(x, 1, "set", values):
            assert_same(got, want)


@pytest.mark.parametrize("number", [301, -1, 2**40])
@pytest.mark.parametrize("method", ["set", "add", "max"])
@pytest.mark.parametrize("index", [0, slice(2), np.array([True, False, True])])
def test_an_integer_that_does_not_fit_is_refused(number: int, method: str, index: Any) -> None:
    x = jnp.zeros(3, jnp.uint8)
    update = lambda x: getattr(x.at[index], method)(number)
    for run in (update, dt.jit(update)):
        with pytest.raises(OverflowError, match=f"the Python integer {number} does not fit"):
            run(x)


def test_division_and_powers_of_integers_are_those_of_the_operators() -> None:
    x = jnp.arange(1, 4)
    assert_same(x.at[0].divide(2), np.float32([0.5, 2, 3]))
    assert_same(x.at[1].divide(0.5), np.float32([1, 4, 3]))
    assert_same(x.at[2].power(2), np.int32([1, 2, 9]))
    assert_same(x.at[2].power(-0.5), np.float32([1, 2, 3**-0.5]))


@pytest.mark.parametrize("index", [0, np.array([True, False])])
@pytest.mark.parametrize("method", ["divide", "power"])
def test_floats_keep_their_dtype(method: str, index: Any) -> None:
    x = jnp.array([4, 9], "float16")
    with pytest.warns(FutureWarning, match="cannot safely cast values of dtype float32 to float16"):
        updated = getattr(x.at[index], method)(np.float32(2))
    assert_same(updated, np.float16([2, 9] if method == "divide" else [16, 9]))


def test_values_of_other_kinds() -> None:
    x = jnp.zeros(3)
    assert_same(x.at[:2].set([1, 2.0]), np.float32([1, 2, 0]))
    assert_same(x.at[:2].set([jnp.float32(1), 2]), np.float32([1, 2, 0]))
    assert_same(dt.jit(lambda x, v: x.at[:2].set([v, 2]))(x, 1.0), np.float32([1, 2, 0]))
    assert_same(x.at[0].set(np.float64(1)), np.float32([1, 0, 0]))
    for bad in ("a", None, object(), {}):
        with pytest.raises(TypeError, match=r"x\.at\[\.\.\.\]\.set requires its argument values"):
            x.at[0].set(bad)


def test_keys() -> None:
    keys = dt.random.split(dt.random.key(0), 3)
    new = dt.random.key(7)
    got = np.asarray(dt.random.key_data(keys.at[1].set(new)))
    want = np.array(dt.random.key_data(keys))
    want[1] = np.asarray(dt.random.key_data(new))
    np.testing.assert_array_equal(got, want)
    with pytest.raises(TypeError, match="cannot go into an array of dtype"):
        keys.at[0].set(1)
    with pytest.raises(TypeError):
        keys.at[0].add(new)


# ------------------------------------------------------------------------------------------ errors


def test_shapes_that_do_not_broadcast() -> None:
    x = jnp.zeros((4, 5))
    for index, values, part in ((0, np.ones(4), "(5,)"), ((0, 0), np.ones(1), "()")):
        text = rf"x\.at\[\.\.\.\]\.add: values of shape \({len(values)},\) cannot be broadcast to"
        with pytest.raises(ValueError, match=text) as caught:
            x.at[index].add(values.astype(np.float32))
        assert part in str(caught.value)


def test_forgotten_method() -> None:
    x = jnp.zeros(3)
    with pytest.raises(TypeError, match=r"write\s+x = x\.at\[index\]\.set\(y\)"):
        x.at[0] = 1
    with pytest.raises(TypeError, match=r"x\.at\[index\]\.set\(y\)"):
        x.at[0](1)
    with pytest.raises(AttributeError, match=r"lacks an index: write x\.at\[index\]\.set"):
        x.at.set(1)
    with pytest.raises(AttributeError, match="no attribute 'foo'"):
        _ = x.at.foo
    with pytest.raises(TypeError, match=r"x\.at\[index\]\.add\(y\)"):
        x.at[0] + 1
    with pytest.raises(TypeError, match=r"x\.at\[index\]\.add\(y\)"):
        x.at[0] += 1
    with pytest.raises(TypeError, match=r"x\.at\[index\]\.multiply\(y\)"):
        2 * x.at[0]
    with pytest.raises(ValueError, match="unknown mode"):
        x.at[0].set(1, mode="bounce")
    with pytest.raises(TypeError, match="out_sharding"):
        x.at[0].set(1, out_sharding="x")
    with pytest.raises(dt.errors.NonConcreteBooleanIndexError, match="where"):
        dt.jit(lambda x: x.at[x > 0].set(1.0))(x)
    with pytest.raises(IndexError, match="size 0"):
        jnp.zeros((0, 2)).at[0].set(1.0)


def test_old_array_is_unchanged() -> None:
    x = jnp.zeros(3)
    y = x.at[0].set(1)
    assert_same(x, np.zeros(3, np.float32))
    assert_same(y, np.float32([1, 0, 0]))


def test_repr_names_array_and_index() -> None:
    assert "[0. 0.]" in repr(jnp.zeros(2).at[1]).replace(",", "").replace("Array(", "")
    assert repr(jnp.zeros(2).at[1]).endswith(", 1)")


# --------------------------------------------------------------------------------- transformations


UPDATES = [
    ("set", 2),
    ("set", S(None, None, -2)),
    ("set", np.array([0, 3, 0, 4])),
    ("add", np.array([0, 3, 0, 4])),
    ("subtract", np.array([0, 3, 0, 4])),
    ("multiply", np.array([0, 3, 0, 4])),
    ("multiply", S(1, 3)),
    ("divide", np.array([0, 3, 0, 4])),
    ("power", np.array([0, 3, 0, 4])),
    ("min", np.array([0, 3, 0, 4])),
    ("max", np.array([0, 3, 0, 4])),
    ("set", np.array([True, False, True, True, False])),
]


@pytest.mark.parametrize(("method", "index"), UPDATES, ids=str)
def test_gradient_is_finite_difference(method: str, index: Any) -> None:
    generator = np.random.default_rng(1)
    with dt.enable_x64(True):
        x = generator.uniform(0.5, 2.0, (5,))
        v = generator.uniform(0.5, 2.0, np.shape(x[index]))

        def f(x: Any, v: Any) -> Any:
            return (getattr(jnp.asarray(x).at[index], method)(v) ** 3).sum()

        both = np.concatenate([x, v.reshape(-1)])

        def flat(w: Any) -> Any:
            return f(w[:5], w[5:].reshape(v.shape))

        def numeric(g: Any, w: Any) -> Any:
            columns = []
            for k in range(len(w)):
                step = np.zeros(len(w))
                step[k] = 1e-6
                columns.append((np.asarray(g(w + step)) - np.asarray(g(w - step))) / 2e-6)
            return np.stack(columns, -1)

        gradient = dt.jit(dt.grad(flat))
        np.testing.assert_allclose(gradient(both), numeric(flat, both), rtol=1e-6, atol=1e-6)
        second = np.asarray(dt.jit(dt.jacfwd(dt.grad(flat)))(both))
        np.testing.assert_allclose(second, numeric(gradient, both), rtol=1e-5, atol=1e-5)


def test_gradients_of_updates_out_of_bounds() -> None:
    i = np.array([1, 9, -8])
    x, v = np.zeros(3, np.float32), np.ones(3, np.float32)

    def f(mode: str) -> Any:
        return dt.grad(
            lambda x, v: (x.at[i].set(v, mode=mode) * jnp.array([1.0, 2, 4])).sum(), (0, 1)
        )(x, v)

    dropped = f("drop")
    assert_same(dropped[0], np.float32([1, 0, 4]))
    assert_same(dropped[1], np.float32([2, 0, 0]))
    clipped = f("clip")
    assert_same(clipped[0], np.float32([0, 0, 0]))
    assert_same(clipped[1], np.float32([2, 4, 1]))


def test_primal_of_a_differentiated_set_is_exact() -> None:
    i = np.array([0, 0, 2])
    x = np.float32([1, -0.0, np.inf])
    v = np.float32([np.nan, -0.0, -0.0])
    got, _ = dt.jvp(lambda x, v: x.at[i].set(v), (x, v), (x, v))
    assert np.signbit(np.asarray(got)).all()
    assert_same(got, np.float32([0, 0, 0]))


@pytest.mark.parametrize(
    "in_axes",
    [(0, 0, 0), (0, None, None), (None, 0, None), (None, None, 0), (1, 0, None), (0, 1, 1)],
)
@pytest.mark.parametrize("method", ["set", "add", "max"])
def test_vmap_is_a_loop(method: str, in_axes: tuple[Any, ...]) -> None:
    args = [
        np.stack([ramp((4,), start=k) for k in range(3)], 0 if in_axes[0] is None else in_axes[0]),
        np.stack([np.array([k, -1]) for k in range(3)], in_axes[1] or 0),
        np.stack([ramp((2,), start=10 * k) for k in range(3)], in_axes[2] or 0),
    ]
    args = [np.take(a, 0, 0) if d is None else a for a, d in zip(args, in_axes, strict=True)]
    rows = [
        [a if d is None else np.take(a, k, d) for a, d in zip(args, in_axes, strict=True)]
        for k in range(3)
    ]

    def f(x: Any, i: Any, v: Any) -> Any:
        return getattr(x.at[i].set(v).at[i[0], ...], method)(v[1])

    want = np.stack([np.asarray(f(jnp.asarray(x), i, v)) for x, i, v in rows])
    assert_same(dt.vmap(lambda x, i, v: f(jnp.asarray(x), i, v), in_axes)(*args), want)


def test_under_other_transformations() -> None:
    x = ramp((4,))

    def f(x: Any) -> Any:
        return x.at[jnp.array([1, 1])].add(x[:2]).at[0].set(x[3])

    want = np.float32([4, 2 + 1 + 2, 3, 4])
    assert_same(dt.jit(f)(x), want)
    assert_same(dt.jit(dt.vmap(f))(np.stack([x, x])), np.stack([want, want]))
    jacobian = dt.jacrev(f)(x)
    assert_same(jacobian, np.asarray(dt.jacfwd(f)(x)))
    assert_same(dt.linearize(f, x)[1](x), want)


@pytest.mark.parametrize("place", [..., None, 0, slice(1, 3), np.array([0, 0]), np.arange(3) < 2])
def test_the_sum_of_booleans_is_or_wherever_it_is_written(place: Any) -> None:
    x = np.array([True, False, False])
    for value in (True, False):
        want = x.copy()
        want[... if place is None else place] |= value
        assert_same(jnp.asarray(x).at[place].add(value), want)
        ref = dt.new_ref(jnp.asarray(x))
        dt.ref.addupdate(ref, place, value)
        assert_same(ref[...], want)
