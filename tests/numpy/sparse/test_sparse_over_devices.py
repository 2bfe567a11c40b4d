"""Sparse arrays whose elements are divided over devices, inside of `shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental import sparse
from dovetail.sharding import AxisType
from dovetail.sharding import PartitionSpec as P

MESH = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
RNG = np.random.default_rng(0)
MATRIX = ((RNG.random((8, 6)) < 0.4) * RNG.normal(size=(8, 6))).astype(np.float32)
SPARSE = sparse.BCOO.fromdense(jnp.asarray(MATRIX), nse=24)
DENSE = RNG.normal(size=(6, 4)).astype(np.float32)
LEFT = RNG.normal(size=(3, 8)).astype(np.float32)


def rows_of(data: Any, indices: Any) -> Any:
    return sparse.BCOO((data, indices), shape=(8, 6))


#: Functions that are linear in the elements, so that those of the parts add up.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda m, v: m @ v,
    "product with a vector": lambda m, v: m @ v[:, 0],
    "product from the left": lambda m, v: (LEFT + v.sum()) @ m,
    "transpose": lambda m, v: (m.T @ (m.shape[0] * jnp.ones((8, 2)))) * v[:, :2],
    "todense": lambda m, v: m.todense() @ v,
    "sum": lambda m, v: m.sum(0).todense() * v[:, 0],
    "multiple": lambda m, v: (m * v[:, 0]).todense(),
    "reshape": lambda m, v: m.reshape(4, 12).todense() * v.sum(),
    "slice": lambda m, v: m[2:6].todense() * v[:, 0],
    "sort": lambda m, v: m.sort_indices() @ v,
    "vmap": lambda m, v: dt.vmap(lambda column: m @ column, 1)(v),
}


def summed(name: str, parts: bool) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    def whole(data: Any, indices: Any, dense: Any) -> Any:
        return function(rows_of(data, indices), dense)

    if not parts:
        return whole
    return dt.shard_map(
        lambda *args: lax.psum(whole(*args), "x"),
        mesh=MESH,
        in_specs=(P("x"), P("x"), P()),
        out_specs=P(),
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name: str) -> None:
    args = SPARSE.data, SPARSE.indices, jnp.asarray(DENSE)

    def computed(function: Callable[..., Any]) -> Any:
        squares = lambda *args: (function(*args) ** 2).sum()
        return dt.jit(dt.value_and_grad(squares, argnums=(0, 2)))(*args)

    found, expected = computed(summed(name, True)), computed(summed(name, False))
    for got, like in zip(dt.tree.leaves(found), dt.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(got, like, rtol=1e-4, atol=1e-4)
