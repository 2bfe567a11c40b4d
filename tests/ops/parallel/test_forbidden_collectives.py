"""no_collectives, collectives in two steps, and operands that do not vary alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import ForbiddenCollectiveError
from dovetail.sharding import AxisType, no_collectives
from dovetail.sharding import PartitionSpec as P

pytestmark = pytest.mark.tables
MESH = dt.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
X = np.arange(8, dtype=np.float32)


def _parts(function: Callable[..., Any], check_vma: bool = False) -> Any:
    return dt.shard_map(function, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=check_vma)


def _inside(x: Any) -> Any:
    with no_collectives({"x"}):
        return lax.psum(x, "x")


def _before(x: Any) -> Any:
    with no_collectives({"x"}):
        y = x * 2
    return lax.psum(y, "x")


#: Each communicates along x.
COLLECTIVES: dict[str, Callable[[Any], Any]] = {
    "psum": lambda x: lax.psum(x, "x"),
    "psum over both": lambda x: lax.psum(x, ("y", "x")),
    "pmean": lambda x: lax.pmean(x, "x"),
    "pmax": lambda x: lax.pmax(x, "x"),
    "all_gather": lambda x: lax.all_gather(x, "x", tiled=True),
    "psum_scatter": lambda x: lax.psum_scatter(x, "x", tiled=True),
    "psum_scatter_start": lambda x: lax.psum_scatter_start(x, "x", tiled=True).done(),
    "all_to_all": lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "x", [(0, 1), (1, 0)]),
    "pshuffle": lambda x: lax.pshuffle(x, "x", [1, 0]),
    "pbroadcast": lambda x: lax.pbroadcast(x, "x", 0),
    "in a jitted function": lambda x: dt.jit(lambda x: lax.psum(x, "x"))(x),
    "in a loop": lambda x: lax.fori_loop(0, 2, lambda _, y: lax.ppermute(y, "x", [(0, 1)]), x),
}
#: None does.
OTHERS: dict[str, Callable[[Any], Any]] = {
    "psum along y": lambda x: lax.psum(x, "y"),
    "psum of a number": lambda x: x * lax.psum(1, "x"),
    "axis_index": lambda x: x + lax.axis_index("x"),
    "axis_size": lambda x: x * lax.axis_size("x"),
    "vmap of that name": lambda x: dt.vmap(lambda e: lax.psum(e, "i"), axis_name="i")(x),
    "sum": lambda x: x + x.sum(),
}


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("jit", [dt.jit, lambda f: f], ids=["jit", "eager"])
def test_what_communicates(name: str, jit: Callable[..., Any]) -> None:
    function = jit(_parts(COLLECTIVES[name]))
    function(X)  # it is traced again
    with no_collectives({"x"}), pytest.raises(ForbiddenCollectiveError, match="the axis 'x'"):
        function(X)
    with no_collectives({"x", "i"}), no_collectives({"y"}):
        if name != "psum over both":
            function(X)


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not(name: str) -> None:
    function = dt.jit(_parts(OTHERS[name]))
    expected = function(X)
    with no_collectives({"x", "i"}):
        np.testing.assert_array_equal(function(X), expected)


def test_scopes() -> None:
    def gradient(x: Any) -> Any:
        return x * dt.grad(lambda w: (w * x).sum())(jnp.float32(1))

    with no_collectives({"x"}), pytest.raises(ForbiddenCollectiveError, match="transpose of pvary"):
        _parts(gradient, check_vma=True)(X)
    with pytest.raises(ForbiddenCollectiveError, match=r"lax\.psum communicates along"):
        _parts(_inside)(X)
    np.testing.assert_array_equal(_parts(_before)(X), np.tile(2 * (X[:4] + X[4:]), 2))
    decorated = no_collectives(frozenset({"i"}))(dt.pmap(lambda x: lax.psum(x, "i"), axis_name="i"))
    with pytest.raises(ForbiddenCollectiveError):
        decorated(X[:4])
    for axes in ("x", ["x"], True):
        with pytest.raises(TypeError, match="takes a set of names of axes"):
            no_collectives(axes)  # type: ignore[arg-type]


def test_explicit_axes() -> None:
    """What types say is no longer divided along an axis has been put together."""
    mesh = dt.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
    gathers = (lambda x: x.sum(), lambda x: dt.reshard(x, P()), lambda x: dt.reshard(x, P()) + 1)
    others = (lambda x: x * 2 + 1, lambda x: x + dt.jit(lambda x: 2.0)(x), lambda x: x[:, None])
    with dt.set_mesh(mesh):
        x = dt.device_put(X, P("x"))
        for function in (*gathers, *others):
            jitted = dt.jit(function)
            expected = jitted(x)
            with no_collectives({"x"}):
                if function in gathers:
                    with pytest.raises(ForbiddenCollectiveError, match="along the axis 'x'"):
                        jitted(x)
                else:
                    np.testing.assert_array_equal(jitted(x), expected)
        with no_collectives({"x"}), pytest.raises(ForbiddenCollectiveError, match="reduce_sum"):
            x.sum()


def test_operands_that_do_not_vary_alike() -> None:
    add = _parts(lambda x: x * 2 + jnp.ones(4, np.float32), check_vma=True)
    np.testing.assert_array_equal(add(X), X * 2 + 1)
    with dt.auto_pcast(False), pytest.raises(ValueError, match=r"add vary.*lax\.pcast\(x, \('x',"):
        add(X)
    with dt.auto_pcast(False):
        cast = _parts(lambda x: x * 2 + lax.pcast(jnp.ones(4), "x", to="varying"), check_vma=True)
        np.testing.assert_array_equal(cast(X), X * 2 + 1)


def test_sums_in_two_steps() -> None:
    def parts(x: Any) -> Any:
        started = lax.psum_scatter_start({"a": x, "b": [x * 2]}, "x", tiled=True)
        between = x.sum()
        return started["a"].done() + 0 * between, dt.tree.map(lambda v: v, started)["b"][0].done()

    function = dt.shard_map(parts, mesh=MESH, in_specs=P("x"), out_specs=(P("x"), P("x")))
    first, second = dt.jit(function)(X)
    np.testing.assert_array_equal(first, X[:4] + X[4:])
    np.testing.assert_array_equal(second, 2 * (X[:4] + X[4:]))


def test_old_names_of_processes() -> None:
    assert (dt.host_count(), dt.host_id(), dt.host_ids()) == (1, 0, [0])
    assert isinstance(dt.devices()[0], dt.Device)
    assert not isinstance("cpu", dt.Device)
