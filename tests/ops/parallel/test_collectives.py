"""Collective operations against NumPy, over axes of `vmap`, `pmap` and `shard_map`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail.sharding import PartitionSpec as P

COUNT = 4
GROUPS = ((0, 2), (3, 1))
pytestmark = pytest.mark.tables
RNG = np.random.default_rng(0)
MESH = dt.make_mesh((COUNT,), ("i",))


def _grouped(of: Callable[[Any], Any], groups: Sequence[Sequence[int]]) -> Callable[[Any], Any]:
    """What all have, by what the members of each group have."""

    def every(x: Any) -> Any:
        out: list[Any] = [None] * COUNT
        for group in groups:
            for place, value in zip(group, of(x[list(group)]), strict=True):
                out[place] = value
        return np.stack(out)

    return every


def _to_all(of: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: np.stack([of(x)] * len(x))


def _all_to_all(split: int, concat: int) -> Callable[[Any], Any]:
    def every(x: Any) -> Any:
        parts = [np.split(one, len(x), split) for one in x]
        return np.stack([np.concatenate([own[d] for own in parts], concat) for d in range(len(x))])

    return every


def _permuted(pairs: Sequence[tuple[int, int]]) -> Callable[[Any], Any]:
    def every(x: Any) -> Any:
        out = np.zeros_like(x)
        for source, target in pairs:
            out[target] = x[source]
        return out

    return every


def _untiled(split: int, concat: int) -> Callable[[Any], Any]:
    """What `all_to_all` does without `tiled`."""

    def every(x: Any) -> Any:
        return np.stack(
            [np.stack([np.take(one, d, split) for one in x], concat) for d in range(len(x))]
        )

    return every


# Each: the operation, what all have afterwards, and the shape of what one has before.
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], tuple[int, ...]]] = {
    "psum": (lambda x: lax.psum(x, "i"), _to_all(lambda x: x.sum(0)), (3,)),
    "psum of scalars": (lambda x: lax.psum(x, "i"), _to_all(lambda x: x.sum(0)), ()),
    "psum of groups": (
        lambda x: lax.psum(x, "i", axis_index_groups=GROUPS),
        _grouped(_to_all(lambda x: x.sum(0)), GROUPS),
        (3,),
    ),
    "pmean": (lambda x: lax.pmean(x, "i"), _to_all(lambda x: x.mean(0)), (3,)),
    "pmax": (lambda x: lax.pmax(x, "i"), _to_all(lambda x: x.max(0)), (3,)),
    "pmin of groups": (
        lambda x: lax.pmin(x, "i", axis_index_groups=GROUPS),
        _grouped(_to_all(lambda x: x.min(0)), GROUPS),
        (3,),
    ),
    "all_gather": (lambda x: lax.all_gather(x, "i"), _to_all(lambda x: x), (3,)),
    "all_gather of scalars": (lambda x: lax.all_gather(x, "i"), _to_all(lambda x: x), ()),
    "all_gather at the end": (
        lambda x: lax.all_gather(x, "i", axis=-1),
        _to_all(lambda x: np.moveaxis(x, 0, -1)),
        (3, 2),
    ),
    "all_gather, tiled": (
        lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
        _to_all(lambda x: np.concatenate(list(x), 1)),
        (3, 2),
    ),
    "all_gather of groups": (
        lambda x: lax.all_gather(x, "i", axis_index_groups=GROUPS),
        _grouped(_to_all(lambda x: x), GROUPS),
        (3,),
    ),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), lambda x: x.sum(0), (COUNT, 2)),
    "psum_scatter, tiled": (
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
        lambda x: np.stack(np.split(x.sum(0), COUNT, 1)),
        (3, 2 * COUNT),
    ),
    "psum_scatter of groups": (
        lambda x: lax.psum_scatter(x, "i", axis_index_groups=GROUPS),
        _grouped(lambda x: x.sum(0), GROUPS),
        (2, 3),
    ),
    "all_to_all": (
        lambda x: lax.all_to_all(x, "i", 0, 1),
        _untiled(0, 1),
        (COUNT, 2, 3),
    ),
    "all_to_all, backwards": (
        lambda x: lax.all_to_all(x, "i", 2, 0),
        _untiled(2, 0),
        (2, 3, COUNT),
    ),
    "all_to_all, tiled": (
        lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
        _all_to_all(1, 0),
        (3, 2 * COUNT),
    ),
    "all_to_all along one dimension": (
        lambda x: lax.all_to_all(x, "i", 1, 1, tiled=True),
        _all_to_all(1, 1),
        (3, 2 * COUNT),
    ),
    "all_to_all of groups": (
        lambda x: lax.all_to_all(x, "i", 0, 1, axis_index_groups=GROUPS, tiled=True),
        _grouped(_all_to_all(0, 1), GROUPS),
        (4, 3),
    ),
    "ppermute": (
        lambda x: lax.ppermute(x, "i", [(0, 1), (1, 3), (3, 0)]),
        _permuted([(0, 1), (1, 3), (3, 0)]),
        (3,),
    ),
    "ppermute of nothing": (lambda x: lax.ppermute(x, "i", []), np.zeros_like, (2,)),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [2, 0, 3, 1]), lambda x: x[[2, 0, 3, 1]], (3,)),
    "pswapaxes": (
        lambda x: lax.pswapaxes(x, "i", 1),
        lambda x: np.swapaxes(x, 0, 2),
        (3, COUNT),
    ),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 2), _to_all(lambda x: x[2]), (3,)),
    "axis_index": (
        lambda x: x + lax.axis_index("i"),
        lambda x: x + np.arange(COUNT, dtype=x.dtype).reshape(COUNT, 1),
        (3,),
    ),
    "axis_size": (lambda x: x * lax.axis_size("i") * lax.psum(1, "i"), lambda x: 16 * x, (3,)),
    "pvary": (lambda x: lax.pvary(x, "i"), lambda x: x, (3,)),
    "an empty array": (lambda x: lax.psum(lax.all_gather(x, "i"), "i"), _to_all(lambda x: x), (0,)),
}


def _mapped(way: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if way == "vmap":
        return dt.vmap(function, axis_name="i")
    if way == "pmap":
        return dt.pmap(function, axis_name="i")
    one = P("i")
    return dt.shard_map(
        lambda x: function(x[0])[None],
        mesh=MESH,
        in_specs=one,
        out_specs=one,
        check_vma=way == "shard_map",
    )


WAYS = ("vmap", "pmap", "shard_map", "unchecked")


def _value(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = RNG.integers(-4, 5, (COUNT, *shape))
    if dtype == "bool":
        return x > 0
    return x.astype(dtype) * (np.asarray(1 + 2j, dtype) if dtype == "complex64" else 1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, way: str) -> None:
    function, every, shape = CASES[name]
    x = _value(shape, "float32")
    want = every(x)
    got = _mapped(way, function)(x)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == np.float32
    if way == "vmap":
        np.testing.assert_array_equal(dt.jit(_mapped(way, function))(x), want)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "float16", "complex64"])
def test_dtypes(dtype: str) -> None:
    for name, (function, every, shape) in CASES.items():
        if name in ("pmean", "axis_index", "axis_size", "psum_scatter", "psum_scatter, tiled"):
            continue
        if dtype == "complex64" and name.startswith(("pmax", "pmin")):
            continue
        if dtype == "bool" and name.startswith(("psum", "an empty")):
            continue
        if name.endswith("groups") and dtype != "int8":
            continue
        x = _value(shape, dtype)
        got = _mapped("shard_map", function)(x)
        assert got.dtype == x.dtype, name
        np.testing.assert_array_equal(got, every(x).astype(x.dtype), err_msg=name)


def test_booleans_are_added_as_integers() -> None:
    x = np.array([True, False, True, True])
    for way in WAYS:
        total = _mapped(way, lambda x: lax.psum(x, "i"))(x)
        assert total.dtype == np.int32
        assert total.tolist() == [3] * COUNT


def test_numbers_stay_numbers() -> None:
    seen = []

    def function(x: Any) -> Any:
        seen.append((lax.psum(1, "i"), lax.psum(0.5, "i"), lax.axis_size("i")))
        return x

    dt.vmap(function, axis_name="i")(np.zeros(COUNT))
    assert seen == [(4, 2.0, 4)]
    assert type(seen[0][0]) is int


SMOOTH = [name for name in CASES if name not in ("axis_size", "an empty array", "psum of scalars")]


@pytest.mark.laws
@pytest.mark.parametrize("way", ["vmap", "shard_map", "unchecked"])
@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name: str, way: str) -> None:
    """Forwards they are those of the operation from NumPy; backwards their adjoint."""
    function, every, shape = CASES[name]
    x = RNG.normal(size=(COUNT, *shape)).astype(np.float32)
    t = RNG.normal(size=x.shape).astype(np.float32)
    mapped = _mapped(way, function)
    y, tangent = dt.jvp(mapped, (x,), (t,))
    step = 1e-4
    x64, t64 = x.astype(np.float64), t.astype(np.float64)
    difference = (every(x64 + step * t64) - every(x64 - step * t64)) / (2 * step)
    np.testing.assert_allclose(tangent, difference, rtol=1e-3, atol=1e-3)
    ct = RNG.normal(size=y.shape).astype(np.float32)
    (back,) = dt.vjp(mapped, x)[1](ct)
    np.testing.assert_allclose(np.vdot(ct, tangent), np.vdot(back, t), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("way", ["vmap", "shard_map"])
@pytest.mark.parametrize("name", CASES)
def test_a_batch_along_another_axis(name: str, way: str) -> None:
    function, every, shape = CASES[name]
    x = RNG.integers(-4, 5, (COUNT, *shape, 2)).astype(np.float32)
    got = dt.vmap(_mapped(way, function), in_axes=-1, out_axes=-1)(x)
    want = np.stack([every(x[..., k]) for k in range(2)], -1)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", CASES)
def test_in_jit_and_loops(name: str) -> None:
    """Programs inside name the axis that is mapped over around them."""
    function, every, shape = CASES[name]
    x = RNG.integers(-4, 5, (COUNT, *shape)).astype(np.float32)
    want = every(x)
    got = dt.vmap(lambda x: dt.jit(function)(x), axis_name="i")(x)
    np.testing.assert_array_equal(got, want)
    looped = dt.vmap(
        lambda x: lax.scan(lambda c, _: (c, function(x)), 0, None, length=1)[1][0], axis_name="i"
    )(x)
    np.testing.assert_array_equal(looped, want)


SEVERAL: dict[str, Callable[[Any, Any], Any]] = {
    "psum": lambda x, axes: lax.psum(x, axes),
    "pmax": lambda x, axes: lax.pmax(x, axes),
    "pmean": lambda x, axes: lax.pmean(x, axes),
    "all_gather": lambda x, axes: lax.all_gather(x, axes),
    "all_gather, tiled": lambda x, axes: lax.all_gather(x, axes, axis=1, tiled=True),
    "psum_scatter": lambda x, axes: lax.psum_scatter(x, axes),
    "all_to_all": lambda x, axes: lax.all_to_all(x, axes, 0, 1),
    "ppermute": lambda x, axes: lax.ppermute(x, axes, [(0, 3), (3, 1), (2, 0)]),
    "axis_index": lambda x, axes: x + lax.axis_index(axes),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes_are_one(name: str) -> None:
    """Over two axes of `vmap`, over two of a mesh, and over one of each."""
    of = SEVERAL[name]
    x = RNG.integers(-4, 5, (4, 4, 2)).astype(np.float32)
    want = dt.vmap(lambda x: of(x, "k"), axis_name="k")(x)
    square = x.reshape(2, 2, 4, 2)
    axes = ("i", "j")

    def function(x: Any) -> Any:
        return of(x, axes)

    inner = dt.vmap(function, axis_name="j")
    got = [dt.vmap(inner, axis_name="i")(square)]
    mesh = dt.make_mesh((2, 2), axes)
    both = dt.shard_map(
        lambda x: function(x[0, 0])[None, None], mesh=mesh, in_specs=P(*axes), out_specs=P(*axes)
    )
    got.append(both(square))
    row = dt.make_mesh((2,), ("i",))
    one = dt.shard_map(lambda x: inner(x[0])[None], mesh=row, in_specs=P("i"), out_specs=P("i"))
    got.append(one(square))
    swapped = dt.make_mesh((2,), ("j",))
    other = dt.shard_map(
        lambda x: dt.vmap(function, axis_name="i")(x[:, 0])[:, None],
        mesh=swapped,
        in_specs=P(None, "j"),
        out_specs=P(None, "j"),
    )
    got.append(other(square))
    for each in got:
        np.testing.assert_array_equal(np.asarray(each).reshape(want.shape), want)


def test_the_innermost_axis_of_a_name_counts() -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    inner = dt.vmap(lambda x: lax.psum(x, "i"), axis_name="i")
    np.testing.assert_array_equal(dt.vmap(inner, axis_name="i")(x), [[3] * 3, [12] * 3])


def test_elements_that_do_not_differ() -> None:
    """What is the same for all elements counts once for each of them."""
    x = np.zeros(COUNT, np.float32)
    one = dt.vmap(lambda x: lax.psum(np.float32(2), "i") + x, axis_name="i")(x)
    assert one.tolist() == [8.0] * COUNT
    place = dt.vmap(lambda x: dt.jit(lambda: lax.axis_index("i"))() + x, axis_name="i")(x)
    assert place.tolist() == [0, 1, 2, 3]
    chosen = dt.vmap(
        lambda x: lax.cond(lax.axis_index("i") > 1, lambda: x + 1, lambda: x), axis_name="i"
    )(x)
    assert chosen.tolist() == [0, 0, 1, 1]


@dt.custom_vjp
def summed_backwards(x: Any) -> Any:
    return x * 1


summed_backwards.defvjp(lambda x: (x * 1, None), lambda _, ct: (lax.psum(ct, "i"),))


@dt.custom_jvp
def tripled(x: Any) -> Any:
    return lax.psum(x, "i")


tripled.defjvp(lambda p, t: (tripled(*p), lax.psum(3 * t[0], "i")))


@pytest.mark.parametrize("inside", [lambda f: f, dt.jit, dt.checkpoint])
@pytest.mark.parametrize("outside", [lambda f: f, dt.jit])
def test_rules_of_users_name_axes(inside: Callable[..., Any], outside: Callable[..., Any]) -> None:
    x = np.arange(4, dtype=np.float32)
    back = dt.vmap(inside(lambda x: summed_backwards(x)), axis_name="i")
    assert dt.grad(lambda x: (outside(back)(x) * x).sum())(x).tolist() == (6 + x).tolist()
    forward = outside(dt.vmap(inside(lambda x: tripled(x)), axis_name="i"))
    assert dt.jvp(forward, (x,), (x,))[1].tolist() == [18] * 4


def test_make_jaxpr_of_named_axes() -> None:
    jaxpr = dt.make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 4)])(1.0)
    assert "psum[axes=('i',) axis_index_groups=None]" in str(jaxpr)


def test_trees() -> None:
    tree = {"a": np.ones(COUNT, np.float32), "b": (np.arange(COUNT),)}
    got = dt.vmap(lambda t: lax.psum(t, "i"), axis_name="i")(tree)
    assert got["a"].tolist() == [4.0] * COUNT
    assert got["b"][0].tolist() == [6] * COUNT


def test_keys_are_gathered() -> None:
    keys = dt.random.split(dt.random.key(0), COUNT)
    want = dt.random.key_data(keys)
    for way in ("vmap", "shard_map"):
        got = _mapped(way, lambda k: lax.all_gather(k, "i"))(keys)
        assert (dt.random.key_data(got)[1] == want).all()
        shifted = _mapped(way, lambda k: lax.pshuffle(k, "i", [1, 2, 3, 0]))(keys)
        assert (dt.random.key_data(shifted) == np.roll(want, -1, 0)).all()


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: lax.psum(x, "j"), NameError, r"lax.psum: unbound axis name: 'j'.*here: 'i'"),
        (lambda x: lax.axis_size("j"), NameError, "unbound axis name: 'j'"),
        (lambda x: lax.axis_index("j"), NameError, "unbound axis name: 'j'"),
        (lambda x: lax.psum(x, ("i", "i")), ValueError, "an axis is named twice"),
        (
            lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2]]),
            ValueError,
            "each position along the axis, of which there are 4, in one group",
        ),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]), ValueError, "1 is twice a target"),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), ValueError, "0 is twice a source"),
        (lambda x: lax.ppermute(x, "i", [(0, 4)]), ValueError, "4 in perm is no position"),
        (lambda x: lax.ppermute(x, "i", [0, 1]), TypeError, r"pairs \(source, target\)"),
        (lambda x: lax.pshuffle(x, "i", [0, 1]), ValueError, "a permutation of the 4 positions"),
        (lambda x: lax.pbroadcast(x, "i", 4), ValueError, "source 4 is no position"),
        (lambda x: lax.pmax(x * 1j, "i"), TypeError, "real numbers, which have an order"),
        (
            lambda x: lax.psum_scatter(x, "i"),
            ValueError,
            r"dimension 0 \(scatter_dimension\) of an array of shape \(3,\).*has to be 4",
        ),
        (
            lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True),
            ValueError,
            r"\(split_axis\).*a multiple of 4; it is 3",
        ),
        (lambda x: lax.all_gather(x, "i", axis=3), ValueError, "axis"),
        (lambda x: lax.all_gather(x, "i", to="x"), ValueError, "'invarying' or 'reduced', got 'x'"),
        (lambda x: lax.pcast(x, "i", to="x"), ValueError, "'unreduced' or 'reduced', got 'x'"),
        (lambda x: lax.psum([x, "a"], "i"), TypeError, "array"),
    ],
)
@pytest.mark.parametrize("way", ["vmap", "shard_map"])
def test_what_is_refused(
    function: Callable[[Any], Any], error: type[Exception], message: str, way: str
) -> None:
    with pytest.raises(error, match=message):
        _mapped(way, function)(np.zeros((COUNT, 3), np.float32))


def test_outside_of_any_axis() -> None:
    with pytest.raises(NameError, match=r"unbound axis name: 'i'\. The axes that there are here: "):
        lax.psum(np.ones(3), "i")
    with pytest.raises(NameError, match="unbound axis name"):
        dt.jit(lambda x: lax.pmean(x, "i"))(np.ones(3))
