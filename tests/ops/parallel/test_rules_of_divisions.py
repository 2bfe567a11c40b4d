"""The rule of every primitive for operands that are divided over explicit axes of a mesh.

Each sample of the conformance kit is computed with one of its operands divided along one dimension.
The result has the type that was inferred, and the values of operands that are whole; or the
division is refused, but not for want of a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail.errors import ShardingTypeError
from dovetail.sharding import AxisType, NamedSharding, PartitionSpec
from dovetail.testing.keys import as_argument, as_numpy
from dovetail.testing.sample import INTEGERS_OF_64_BITS, Sample
from dovetail.testing.samples import all_samples, defined_primitives

MESH = dt.make_mesh((2,), ("x",), devices=dt.devices()[:2])
WIDE = {*INTEGERS_OF_64_BITS, np.dtype("float64"), np.dtype("complex128")}
#: How many ways to divide operands are tried for each primitive.
WAYS = 2


def _ways(samples: list[Sample]) -> Iterator[tuple[Sample, int, int]]:
    """Samples, with an operand and a dimension along which it can be divided."""
    for sample in samples:
        arrays = [x for x in sample.args if isinstance(x, np.ndarray)]
        if sample.raises or any(x.dtype in WIDE for x in arrays):
            continue
        for number, x in enumerate(sample.args):
            for d in range(np.ndim(x)):
                if x.size and not x.shape[d] % 2:
                    yield sample, number, d


def _spread(ways: list[Any]) -> list[Any]:
    """Some of them, from the first to the last."""
    step = max(len(ways) // WAYS, 1)
    return ways[::step][:WAYS]


CASES = [
    pytest.param(name, *way, id=f"{name}-{number}")
    for name, samples in sorted(all_samples().items())
    for number, way in enumerate(_spread(list(_ways(samples))))
]


@pytest.mark.parametrize(("name", "sample", "number", "dimension"), CASES)
def test_one_operand_that_is_divided(
    name: str, sample: Sample, number: int, dimension: int
) -> None:
    primitive = defined_primitives()[name]
    operands = [as_argument(x) for x in sample.args]
    entries = [None] * operands[number].ndim
    entries[dimension] = "x"
    divided = list(operands)
    divided[number] = dt.device_put(operands[number], NamedSharding(MESH, PartitionSpec(*entries)))

    def results(args: list[Any]) -> list[Any]:
        found = primitive.bind(*args, **sample.params)
        return list(found) if primitive.multiple_results else [found]

    refusal = ""
    try:
        inferred, _ = primitive.inferred(tuple(map(dt.typeof, divided)), sample.params)
        found = results(divided)
    except ShardingTypeError as error:
        refusal = str(error)
    if refusal:
        assert "does not say how its results are divided" not in refusal
        return
    types = inferred if primitive.multiple_results else [inferred]
    assert [str(dt.typeof(x)) for x in found] == list(map(str, types))
    expected = results(operands)
    if sample.observe is not None:
        found, expected = (
            sample.observe([np.asarray(x) for x in some]) for some in (found, expected)
        )
    for x, y in zip(found, expected, strict=True):
        if dt.dtypes.issubdtype(x.dtype, dt.dtypes.extended):
            np.testing.assert_array_equal(as_numpy(x), as_numpy(y))
        else:
            wide = np.result_type(np.asarray(y).dtype, np.complex64)
            np.testing.assert_allclose(
                np.asarray(x).astype(wide), np.asarray(y).astype(wide), rtol=1e-3, atol=1e-3
            )


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_slices_at_every_start(kind: AxisType) -> None:
    """XLA before jaxlib 0.12 takes others where the result is divided and a start is too large."""
    mesh = dt.make_mesh((2,), ("x",), (kind,), devices=dt.devices()[:2])
    rows = NamedSharding(mesh, PartitionSpec("x"))
    x = np.arange(8, dtype=np.float32)
    divided = dt.device_put(x, rows)
    taken = dt.jit(lambda x, i: lax.dynamic_slice(x, (i,), (4,)), out_shardings=rows)
    put = dt.jit(lambda x, i: lax.dynamic_update_slice(x, x[:2] - 9, (i,)), out_shardings=rows)
    for start in (-9, -1, 0, 3, 5, 7, 100):
        i = min(max(start + 8 * (start < 0), 0), 4)
        np.testing.assert_array_equal(taken(divided, np.int32(start)), x[i : i + 4])
        j = min(max(start + 8 * (start < 0), 0), 6)
        expected = np.concatenate([x[:j], x[:2] - 9, x[j + 2 :]])
        np.testing.assert_array_equal(put(divided, np.int32(start)), expected)


@pytest.mark.parametrize("config", [(-1, 0, 1), (-1, 3, 2), (-3, 0, 1), (-5, 9, 2), (-20, 30, 1)])
def test_padding_that_cuts_a_hole(config: tuple[int, int, int]) -> None:
    """XLA would end the process."""
    mesh = dt.make_mesh((2,), ("x",), (AxisType.Auto,), devices=dt.devices()[:2])
    x = np.arange(1, 9, dtype=np.float32)
    divided = dt.device_put(x, NamedSharding(mesh, PartitionSpec("x")))
    pad = dt.jit(lambda x: lax.pad(x, np.float32(0), [config]))
    np.testing.assert_array_equal(pad(divided), pad(x))
