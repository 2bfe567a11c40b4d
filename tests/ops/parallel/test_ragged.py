"""`ragged_all_to_all` against NumPy, over axes of `vmap`, `pmap` and `shard_map`."""

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
MESH = dt.make_mesh((COUNT,), ("i",))
WAYS = ("vmap", "pmap", "shard_map", "unchecked")
ALL = (tuple(range(COUNT)),)


def _expected(arguments: Sequence[Any], groups: Sequence[Sequence[int]] = ALL) -> np.ndarray:
    """What all have afterwards, by loops over all pairs and updates."""
    operand, output, starts, sizes, targets, _ = map(np.asarray, arguments)
    result = output.copy()
    for group in groups:
        updates = starts.shape[1] // len(group)
        for source in group:
            for j, target in enumerate(group):
                for u in range(j * updates, (j + 1) * updates):
                    for row in range(sizes[source, u]):
                        take, put = starts[source, u] + row, targets[source, u] + row
                        if 0 <= take < operand.shape[1] and 0 <= put < output.shape[1]:
                            result[target, put] = operand[source, take]
    return result


def _case(
    seed: int, groups: Sequence[Sequence[int]] = ALL, updates: int = 1, columns: Any = (3,)
) -> list[np.ndarray]:
    """Arguments of all. Rows that come lie one after the other, with gaps; some are sent twice."""
    rng = np.random.default_rng(seed)
    count = len(groups[0]) * updates
    starts = rng.integers(0, 3, (COUNT, count))
    sizes = rng.integers(0, 4, (COUNT, count))
    targets = np.zeros_like(starts)
    received = np.zeros_like(starts)
    most = 0
    for group in groups:
        for j, target in enumerate(group):
            free = int(rng.integers(0, 3))
            for i, source in enumerate(group):
                for u in range(updates):
                    targets[source, j * updates + u] = free
                    received[target, i * updates + u] = sizes[source, j * updates + u]
                    free += sizes[source, j * updates + u] + int(rng.integers(0, 2))
            most = max(most, free)
    operand = rng.integers(-9, 9, (COUNT, 6, *columns)).astype(np.float32)
    output = rng.integers(-9, 9, (COUNT, most + 2, *columns)).astype(np.float32)
    return [operand, output, *(x.astype(np.int32) for x in (starts, sizes, targets, received))]


def _mapped(way: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if way == "vmap":
        return dt.vmap(function, axis_name="i")
    if way == "pmap":
        return dt.pmap(function, axis_name="i")
    one = P("i")
    return dt.shard_map(
        lambda *xs: function(*[x[0] for x in xs])[None],
        mesh=MESH,
        in_specs=one,
        out_specs=one,
        check_vma=way == "shard_map",
    )


def _exchange(*args: Any, **keywords: Any) -> Any:
    return lax.ragged_all_to_all(*args, axis_name="i", **keywords)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("groups", "updates", "columns"),
    [(None, 1, (3,)), (None, 1, ()), (GROUPS, 1, (2, 3)), (None, 2, (3,))],
    ids=["all", "rows of one number", "groups", "several updates"],
)
def test_values(way: str, groups: Any, updates: int, columns: tuple[int, ...]) -> None:
    for seed in range(3):
        arguments = _case(seed, groups or ALL, updates, columns)
        mapped = _mapped(way, lambda *xs: _exchange(*xs, axis_index_groups=groups))
        want = _expected(arguments, groups or ALL)
        got = dt.jit(mapped)(*arguments)
        np.testing.assert_array_equal(got, want)
        assert got.dtype == np.float32
    np.testing.assert_array_equal(mapped(*arguments), want)


@pytest.mark.parametrize("dtype", ["int8", "bool", "bfloat16", "complex64"])
@pytest.mark.parametrize("numbers", ["int8", "uint32"])
def test_dtypes(dtype: str, numbers: str) -> None:
    operand, output, *rest = _case(1)
    arguments = [operand.astype(dtype), output.astype(dtype), *(x.astype(numbers) for x in rest)]
    got = _mapped("shard_map", _exchange)(*arguments)
    assert got.dtype == arguments[0].dtype
    np.testing.assert_array_equal(got, _expected(arguments))


def test_rows_outside_of_arrays_stay_where_they_are() -> None:
    """The portable rule, that is; XLA's operation says nothing of them."""
    operand, output, starts, sizes, targets, received = _case(2)
    for other in (
        [starts + 4, sizes, targets, received],
        [starts - 2, sizes, targets, received],
        [starts, sizes, targets + 9, received],
        [starts, sizes, targets - 3, received],
        [starts, -sizes, targets, received],
    ):
        arguments = [operand, output, *other]
        for way in ("vmap", "shard_map"):
            np.testing.assert_array_equal(_mapped(way, _exchange)(*arguments), _expected(arguments))


@pytest.mark.parametrize("rows", [(0, 3), (3, 0)])
def test_without_rows(rows: tuple[int, int]) -> None:
    operand, output = (np.ones((COUNT, n, 2), np.float32) for n in rows)
    zeros = [np.zeros((COUNT, COUNT), np.int32)] * 4
    got = _mapped("shard_map", _exchange)(operand, output, *zeros)
    np.testing.assert_array_equal(got, output)


@pytest.mark.laws
@pytest.mark.parametrize("way", ["vmap", "shard_map", "unchecked"])
@pytest.mark.parametrize(("groups", "updates"), [(None, 1), (GROUPS, 1), (None, 2)])
def test_derivatives(way: str, groups: Any, updates: int) -> None:
    """It is linear in both arrays; backwards it is the adjoint, of rows sent twice too."""
    operand, output, *numbers = _case(3, groups or ALL, updates)
    mapped = _mapped(way, lambda *xs: _exchange(*xs, axis_index_groups=groups))

    def function(operand: Any, output: Any) -> Any:
        return mapped(operand, output, *numbers)

    rng = np.random.default_rng(4)
    tangents = tuple(rng.normal(size=x.shape).astype(np.float32) for x in (operand, output))
    _, tangent = dt.jvp(function, (operand, output), tangents)
    np.testing.assert_array_equal(tangent, _expected([*tangents, *numbers], groups or ALL))
    y, back = dt.vjp(function, operand, output)
    weights = rng.normal(size=y.shape).astype(np.float32)
    cotangents = back(weights)
    adjoint = sum(np.vdot(c, t) for c, t in zip(cotangents, tangents, strict=True))
    np.testing.assert_allclose(adjoint, np.vdot(weights, tangent), rtol=1e-4)
    for number, cotangent in enumerate(cotangents):
        (alone,) = dt.vjp(
            lambda x, n=number: function(*[x if k == n else (operand, output)[k] for k in (0, 1)]),
            (operand, output)[number],
        )[1](weights)
        np.testing.assert_allclose(alone, cotangent, rtol=1e-6)


@pytest.mark.parametrize("batched", ["operand", "output", "rows", "numbers", "all"])
@pytest.mark.parametrize("way", ["vmap", "shard_map"])
def test_batches(way: str, batched: str) -> None:
    """A batch along another axis is a loop over it."""
    cases = [_case(seed) for seed in (5, 6)]
    most = max(case[1].shape[1] for case in cases)
    for case in cases:
        case[1] = np.resize(case[1], (COUNT, most, 3))
    chosen = {"operand": (0,), "output": (1,), "rows": (0, 1), "numbers": (2, 3, 4, 5)}.get(
        batched, range(6)
    )
    mapped = _mapped(way, _exchange)
    dims = [(1 if k < 2 else 0) if k in chosen else None for k in range(6)]
    stacked = [
        cases[0][k] if d is None else np.stack([case[k] for case in cases], d)
        for k, d in enumerate(dims)
    ]
    got = dt.vmap(mapped, in_axes=tuple(dims))(*stacked)
    for number, case in enumerate(cases):
        want = _expected([case[k] if k in chosen else cases[0][k] for k in range(6)])
        np.testing.assert_array_equal(got[number], want)


def test_two_axes() -> None:
    """The one along which neighbours lie is the last, whichever is an axis of `vmap`."""
    mesh = dt.make_mesh((2,), ("x",), devices=dt.devices()[:2])
    arguments = _case(7)
    both = dt.shard_map(
        dt.vmap(lambda *xs: lax.ragged_all_to_all(*xs, axis_name=("x", "y")), axis_name="y"),
        mesh=mesh,
        in_specs=P("x"),
        out_specs=P("x"),
    )
    np.testing.assert_array_equal(both(*arguments), _expected(arguments))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({0: np.zeros((6, 3), np.int32)}, TypeError, "convert one of them"),
        ({1: np.zeros((6, 4), np.float32)}, ValueError, "equal sizes in all others"),
        ({0: np.float32(1), 1: np.float32(1)}, ValueError, "along their first dimension"),
        ({2: np.zeros(4, np.float32)}, TypeError, "input_offsets holds integers"),
        ({3: np.zeros(3, np.int32)}, ValueError, "send_sizes has one number for each of the 4"),
        ({4: np.zeros((4, 1), np.int32)}, ValueError, "output_offsets has one number"),
        ({5: np.zeros(8, np.int32)}, ValueError, r"have to have one shape.*recv_sizes \(8,\)"),
    ],
)
def test_errors(change: dict[int, Any], error: type[Exception], words: str) -> None:
    good = [x[0] for x in _case(0)]
    with pytest.raises(error, match=words):
        dt.vmap(
            lambda _: _exchange(*[change.get(k, x) for k, x in enumerate(good)]),
            axis_name="i",
            axis_size=COUNT,
            in_axes=None,
        )(0)


@pytest.mark.parametrize(
    ("platform", "dtype", "updates", "native"),
    [
        ("tpu", "float32", 1, True),
        ("tpu", "complex64", 1, False),
        ("tpu", "float32", 2, False),
        ("cuda", "complex64", 1, True),
        ("cpu", "float32", 1, False),
    ],
)
def test_accelerators_have_an_operation(
    platform: str, dtype: str, updates: int, native: bool
) -> None:
    arguments = _case(0, updates=updates)
    arguments[:2] = [x.astype(dtype) for x in arguments[:2]]
    mapped = _mapped("shard_map", _exchange)
    text: str = dt.jit(mapped).lower(*arguments, lowering_platforms=(platform,)).as_text()
    assert ("@ragged_all_to_all(" in text) is native
    assert ("stablehlo.all_gather" in text) is not native
    grouped = dt.jit(_mapped("shard_map", lambda *xs: _exchange(*xs, axis_index_groups=GROUPS)))
    if native:
        arguments = _case(0, GROUPS)
        text = grouped.lower(*arguments, lowering_platforms=(platform,)).as_text()
        assert "replica_groups = dense<[[0, 2], [3, 1]]>" in text


def test_it_needs_an_axis() -> None:
    with pytest.raises(NameError, match="ragged_all_to_all"):
        _exchange(*[x[0] for x in _case(0)])
