"""Batches of matrices that are divided over devices."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.sharding import AxisType, NamedSharding
from dovetail.sharding import PartitionSpec as P

pytestmark = pytest.mark.tables
MESH = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
RNG = np.random.default_rng(7)
GENERAL = RNG.normal(size=(4, 6, 6)).astype("float32")
DEFINITE = GENERAL @ GENERAL.swapaxes(1, 2) + 6 * np.eye(6, dtype="float32")
COMPLEX = (GENERAL + 1j * GENERAL[::-1]).astype("complex128")
RIGHT = RNG.normal(size=(4, 6, 4)).astype("float32")
VECTORS = GENERAL[:, :, 0]

#: Name, function, and the stacks that it takes.
CASES: tuple[tuple[str, Callable[..., Any], tuple[np.ndarray, ...]], ...] = (
    ("cholesky", lax.linalg.cholesky, (DEFINITE,)),
    ("lu", lax.linalg.lu, (GENERAL,)),
    ("lu of complex matrices", lax.linalg.lu, (COMPLEX,)),
    ("qr", lax.linalg.qr, (GENERAL,)),
    ("qr with pivots", partial(lax.linalg.qr, pivoting=True), (GENERAL,)),
    ("householder_product", lax.linalg.householder_product, (GENERAL, VECTORS)),
    ("eigh", lax.linalg.eigh, (DEFINITE,)),
    ("eig", lax.linalg.eig, (GENERAL,)),
    ("svd", lax.linalg.svd, (GENERAL,)),
    ("schur", lax.linalg.schur, (GENERAL,)),
    ("hessenberg", lax.linalg.hessenberg, (GENERAL,)),
    ("tridiagonal", lax.linalg.tridiagonal, (DEFINITE,)),
    ("triangular_solve", partial(lax.linalg.triangular_solve, left_side=True), (DEFINITE, RIGHT)),
    (
        "tridiagonal_solve",
        lax.linalg.tridiagonal_solve,
        (VECTORS, VECTORS + 9, VECTORS, RIGHT),
    ),
    ("solve", jnp.linalg.solve, (DEFINITE, RIGHT)),
    ("gradient", lambda a: dt.grad(lambda m: jnp.linalg.slogdet(m)[1].sum())(a), (DEFINITE,)),
    ("sort", lax.sort, (GENERAL,)),
)


@pytest.mark.parametrize(
    ("function", "stacks"), [pytest.param(f, s, id=name) for name, f, s in CASES]
)
def test_each_device_treats_its_matrices(
    function: Callable[..., Any], stacks: tuple[np.ndarray, ...]
) -> None:
    with dt.enable_x64():
        expected = [np.asarray(leaf) for leaf in dt.tree.leaves(dt.jit(function)(*stacks))]
        for spec in (P(("x", "y")), P("x", None, "y")):
            placed = [dt.device_put(x, NamedSharding(MESH, P(*spec[: x.ndim]))) for x in stacks]
            program = dt.jit(function).lower(*placed).compile()
            for got, want in zip(dt.tree.leaves(program(*placed)), expected, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
                assert got.sharding.spec[0] == spec[0]
            moved = re.findall(r"\[([\d,]*)\]\S* (?:all-|collective-|reduce-)", program.as_text())
            if len(spec) == 1:
                assert not moved
            else:  # matrices are put together, and no device gets those of others
                assert moved
                assert {size.split(",")[0] for size in moved} <= {"", "2"}


def test_automatic_axes_in_a_shard_map_divide_batches() -> None:
    function = dt.shard_map(
        lambda x: lax.linalg.cholesky(x),
        mesh=MESH,
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
    )
    whole = dt.device_put(DEFINITE, NamedSharding(MESH, P(("x", "y"))))
    program = dt.jit(function).lower(whole).compile()
    np.testing.assert_allclose(program(whole), np.linalg.cholesky(DEFINITE), rtol=1e-4, atol=1e-4)
    assert "all-gather" not in program.as_text()
