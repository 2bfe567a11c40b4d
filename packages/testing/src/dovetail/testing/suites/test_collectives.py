"""Programs that run on all devices at once and exchange data, for backends that declare ``spmd``.

The operations of `lax`, and below them programs written as StableHLO, to tell where a failure comes
from. All need two devices in this process; on a CPU, ``DOVETAIL_NUM_CPU_DEVICES=4`` creates four.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail._core.ir.avals import make_aval
from dovetail._core.runtime.programs.partitioned import run_partitioned
from dovetail.experimental.custom_partitioning import custom_partitioning
from dovetail.sharding import AxisType, Mesh, NamedSharding, auto_axes
from dovetail.sharding import PartitionSpec as P
from dovetail.testing.backend import BackendUnderTest

NDArray = np.ndarray[Any, Any]
Backend = BackendUnderTest
pytestmark = pytest.mark.dovetail_needs("spmd")

#: The number of columns of the arguments.
COLUMNS = 3


@pytest.fixture
def devices(dovetail_backend: Backend) -> Sequence[Any]:
    """All devices of the backend; at least two."""
    available = dovetail_backend.devices
    if len(available) < 2:
        pytest.skip(
            f"the backend {dovetail_backend.platform!r} has one device here; collectives take two"
        )
    return available


def test_programs_over_a_mesh(devices: Sequence[Any]) -> None:
    """Arguments, a value inside and results are divided over devices, and hold what they should."""
    count = len(devices)
    mesh = Mesh(devices, "d")
    rows, columns = (NamedSharding(mesh, spec) for spec in (P("d"), P(None, "d")))
    x = np.arange(4 * count * count, dtype=np.float32).reshape(2 * count, 2 * count)

    def function(x: Any) -> tuple[Any, Any]:
        turned = lax.with_sharding_constraint(lax.transpose(x, (1, 0)), rows)
        return lax.mul(turned, turned), lax.reduce_sum(x, (0,))

    squares, sums = dt.jit(function, out_shardings=(columns, None))(dt.device_put(x, rows))
    assert squares.sharding is columns
    for shard in squares.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), (x.T**2)[shard.index])
    np.testing.assert_array_equal(np.asarray(sums), x.sum(0))


def test_types_over_a_mesh(devices: Sequence[Any]) -> None:
    """Values are divided as types say over explicit axes, and as the compiler likes elsewhere."""
    count = len(devices)
    mesh = Mesh(devices, "d", axis_types=AxisType.Explicit)
    x = np.arange(4 * count * count, dtype=np.float32).reshape(2 * count, 2 * count) % 5

    def function(x: Any) -> tuple[Any, Any]:
        turned = dt.reshard(lax.transpose(x, (1, 0)), P("d"))
        product = auto_axes(lambda y: lax.dot(x, y), out_sharding=P(None, "d"))(turned)
        return lax.mul(turned, turned), product

    with dt.set_mesh(mesh):
        rows = dt.device_put(x, P("d"))
        squares, product = dt.jit(function)(rows)
    name = str(x.dtype)
    assert str(dt.typeof(squares)) == f"{name}[{2 * count}@d,{2 * count}]"
    assert str(dt.typeof(product)) == f"{name}[{2 * count},{2 * count}@d]"
    np.testing.assert_array_equal(np.asarray(squares), x.T**2)
    for shard in product.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), (x @ x.T)[shard.index])


def test_sums_of_parts(devices: Sequence[Any]) -> None:
    """What is unreduced is added up where it is asked for, and so are gradients of the reduced."""
    count = len(devices)
    mesh = Mesh(devices, "d", axis_types=AxisType.Auto)
    x = np.arange(2 * count * count, dtype=np.float32).reshape(count, 2 * count) % 5
    w = np.arange(2 * count, dtype=np.float32) % 3

    def function(w: Any, x: Any) -> tuple[Any, Any]:
        own = lax.all_gather(lax.psum_scatter(w, "d", tiled=True), "d", tiled=True, to="reduced")
        mean = lax.div(own, lax.full_like(own, count))
        scaled = lax.mul(lax.pcast(mean, "d", to="varying"), lax.squeeze(x, (0,)))
        parts = lax.mul(lax.pcast(scaled, "d", to="unreduced"), mean)
        shared = lax.mul(parts, lax.pcast(w, "d", to="reduced"))
        return lax.psum(shared, "d"), lax.psum_scatter(parts, "d", tiled=True)

    divided = dt.shard_map(function, mesh=mesh, in_specs=(P(), P("d")), out_specs=(P(), P("d")))

    def total(w: Any, x: Any) -> Any:
        return lax.reduce_sum(lax.add(*divided(w, x)), (0,))

    cubes, squares = dt.jit(divided)(w, x)
    np.testing.assert_allclose(np.asarray(cubes), w**3 * x.sum(0), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(squares), w**2 * x.sum(0), rtol=1e-5)
    of_w, of_x = dt.jit(dt.grad(total, (0, 1)))(w, x)
    np.testing.assert_allclose(np.asarray(of_w), (3 * w**2 + 2 * w) * x.sum(0), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(of_x), np.stack([w**3 + w**2] * count), rtol=1e-5)


def _ragged(x: Any) -> Any:
    """Each device gives its first row to the first one, two to the second, and so on."""
    count = lax.axis_size("d")
    sizes = np.arange(1, count + 1, dtype=np.int32)
    place = lax.axis_index("d")
    targets = lax.full((count,), place, np.int32)
    return lax.ragged_all_to_all(
        x,
        lax.full((2 * count, COLUMNS), 9, x.dtype),
        np.zeros(count, np.int32),
        sizes,
        lax.mul(targets, sizes),
        lax.full((count,), lax.add(place, np.int32(1)), np.int32),
        axis_name="d",
    )


def _ragged_of_all(x: NDArray) -> NDArray:
    count = len(x)
    out = np.full((count, 2 * count, COLUMNS), 9, x.dtype)
    for target in range(count):
        for source in range(count):
            for row in range(target + 1):
                place = source * (target + 1) + row
                if place < 2 * count:
                    out[target, place] = x[source, row]
    return out


#: Operations of the parts of all devices, and what each device has afterwards.
OPERATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[NDArray], NDArray]]] = {
    "psum": (lambda x: lax.psum(x, "d"), lambda x: np.stack([x.sum(0)] * len(x))),
    "pmax": (lambda x: lax.pmax(x, "d"), lambda x: np.stack([x.max(0)] * len(x))),
    "pmin": (lambda x: lax.pmin(x, "d"), lambda x: np.stack([x.min(0)] * len(x))),
    "all_gather": (lambda x: lax.all_gather(x, "d"), lambda x: np.stack([x] * len(x))),
    "all_gather, the same": (
        lambda x: lax.all_gather(x, "d", to="invarying"),
        lambda x: np.stack([x] * len(x)),
    ),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "d"), lambda x: x.sum(0)),
    "all_to_all": (
        lambda x: lax.all_to_all(x, "d", 0, 0),
        lambda x: np.swapaxes(x, 0, 1),
    ),
    "ppermute": (
        lambda x: lax.ppermute(x, "d", [(d, d + 1) for d in range(lax.axis_size("d") - 1)]),
        lambda x: np.concatenate([np.zeros_like(x[:1]), x[:-1]]),
    ),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "d", 1), lambda x: np.stack([x[1]] * len(x))),
    "ragged_all_to_all": (_ragged, _ragged_of_all),
    "axis_index": (
        lambda x: lax.add(x, lax.convert_element_type(lax.axis_index("d"), x.dtype)),
        lambda x: x + np.arange(len(x), dtype=x.dtype).reshape(-1, 1, 1),
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_collective_operations(devices: Sequence[Any], name: str) -> None:
    """Each operation of `shard_map`, alone and in a gradient, whose cotangents are its adjoint."""
    operation, every = OPERATIONS[name]
    count = len(devices)
    mesh = Mesh(devices, "d")
    each = P("d")
    function = dt.shard_map(
        lambda x: lax.expand_dims(operation(lax.squeeze(x, (0,))), (0,)),
        mesh=mesh,
        in_specs=each,
        out_specs=each,
    )
    values = np.arange(count * count * COLUMNS, dtype=np.float32).reshape(count, count, COLUMNS)
    x = dt.device_put(values % 7, NamedSharding(mesh, each))
    result = np.asarray(dt.jit(function)(x))
    np.testing.assert_array_equal(result, every(np.asarray(x)), err_msg=name)
    weights = np.cos(np.arange(result.size, dtype=np.float32)).reshape(result.shape)
    back = dt.grad(
        lambda x: lax.reduce_sum(lax.mul(function(x), weights), tuple(range(weights.ndim)))
    )(x)
    tangent = np.asarray(dt.jvp(function, (x,), (x,))[1])
    np.testing.assert_allclose(
        np.vdot(back, x), np.vdot(weights, tangent), rtol=1e-3, atol=1e-2, err_msg=name
    )


def test_custom_partitioning(devices: Sequence[Any]) -> None:
    """The compiler asks how a function is divided, and uses what it gets."""
    count = len(devices)
    mesh = Mesh(devices, "d")
    asked = []

    def cumulated(x: Any) -> Any:
        return lax.cumsum(x, 1)

    function = custom_partitioning(cumulated)

    def partition(mesh: Any, arguments: Any, result: Any) -> Any:
        asked.append(arguments[0].sharding.spec)
        rows = NamedSharding(mesh, P("d"))
        return mesh, cumulated, rows, (rows,)

    function.def_partition(partition, sharding_rule="i j -> i j", need_replication_factors=("j",))
    values = np.arange(count * COLUMNS, dtype=np.float32).reshape(count, COLUMNS)
    got = dt.jit(function)(dt.device_put(values, NamedSharding(mesh, P("d"))))
    np.testing.assert_array_equal(np.asarray(got), values.cumsum(1))
    assert got.sharding.is_equivalent_to(NamedSharding(mesh, P("d")), 2)
    assert asked == [P("d", None)]


def _tensor(shape: Sequence[int]) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}f32>"


def _module(count: int, taken: Sequence[int], given: Sequence[int], operation: str) -> str:
    """A module in which each of `count` devices applies an operation to its part.

    Args:
        count: number of devices.
        taken: the shape of each device's part of the argument.
        given: the shape of each device's part of the result.
        operation: MLIR text that computes ``%r`` from ``%x``.
    """
    whole = [(count * shape[0], *shape[1:]) for shape in (taken, given)]
    placed = '#sdy.sharding<@mesh, [{"d"}, {}]>'
    inner = '[<@mesh, [{"d"}, {}]>]'
    argument, result = map(_tensor, whole)
    return f"""
module @collective attributes {{
    mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["d"={count}]>
  func.func public @main(%a: {argument} {{sdy.sharding = {placed}}})
      -> ({result} {{sdy.sharding = {placed}}}) {{
    %0 = sdy.manual_computation(%a) in_shardings={inner} out_shardings={inner} manual_axes={{"d"}}
        (%x: {_tensor(taken)}) {{
      {operation}
      sdy.return %r : {_tensor(given)}
    }} : ({argument}) -> {result}
    return %0 : {result}
  }}
}}"""


def _groups(count: int) -> str:
    everyone = ", ".join(map(str, range(count)))
    return f"dense<[[{everyone}]]> : tensor<1x{count}xi64>"


_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def _reducer(operation: str) -> str:
    return f"""({{
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %s = stablehlo.{operation} %p, %q : tensor<f32>
          stablehlo.return %s : tensor<f32>
      }})"""


def _run(
    devices: Sequence[Any], parts: Sequence[NDArray], given: Sequence[int], operation: str
) -> list[NDArray]:
    """The part on each device after an operation on the parts before."""
    taken = parts[0].shape
    module = _module(len(devices), taken, given, operation)
    aval = make_aval(tuple(given), np.dtype(np.float32))
    (result,) = run_partitioned(module, devices, [np.concatenate(parts)], [aval])
    return result


def _parts(count: int, rows: int) -> list[NDArray]:
    size = rows * COLUMNS
    return [
        (np.arange(size, dtype=np.float32) + 100 * d).reshape(rows, COLUMNS) for d in range(count)
    ]


def _equal(got: Sequence[NDArray], want: Sequence[NDArray], devices: Sequence[Any]) -> None:
    for a, b, device in zip(got, want, devices, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=f"what {device!r} holds afterwards")


@pytest.mark.parametrize(("operation", "of"), [("add", np.sum), ("maximum", np.max)])
def test_all_reduce(devices: Sequence[Any], operation: str, of: Any) -> None:
    """Each device gets the sum, or the maximum, of all parts."""
    count = len(devices)
    parts = _parts(count, 2)
    kind = _tensor(parts[0].shape)
    text = (
        f'%r = "stablehlo.all_reduce"(%x) {_reducer(operation)} {{{_CHANNEL}, '
        f"replica_groups = {_groups(count)}, use_global_device_ids}} : ({kind}) -> {kind}"
    )
    got = _run(devices, parts, parts[0].shape, text)
    _equal(got, [of(np.stack(parts), axis=0)] * count, devices)


def test_all_gather(devices: Sequence[Any]) -> None:
    """Each device gets all parts, in the order of the devices."""
    count = len(devices)
    parts = _parts(count, 2)
    given = (2 * count, COLUMNS)
    text = (
        f'%r = "stablehlo.all_gather"(%x) {{all_gather_dim = 0 : i64, {_CHANNEL}, '
        f"replica_groups = {_groups(count)}, use_global_device_ids}} : "
        f"({_tensor(parts[0].shape)}) -> {_tensor(given)}"
    )
    _equal(_run(devices, parts, given, text), [np.concatenate(parts)] * count, devices)


def test_reduce_scatter(devices: Sequence[Any]) -> None:
    """Each device gets its share of the sum of all parts."""
    count = len(devices)
    parts = _parts(count, 2 * count)
    given = (2, COLUMNS)
    text = (
        f'%r = "stablehlo.reduce_scatter"(%x) {_reducer("add")} '
        f"{{scatter_dimension = 0 : i64, {_CHANNEL}, replica_groups = {_groups(count)}, "
        f"use_global_device_ids}} : ({_tensor(parts[0].shape)}) -> {_tensor(given)}"
    )
    total = np.sum(np.stack(parts), axis=0)
    _equal(_run(devices, parts, given, text), np.split(total, count), devices)


def test_all_to_all(devices: Sequence[Any]) -> None:
    """Each device sends one share of its part to each other device."""
    count = len(devices)
    parts = _parts(count, 2 * count)
    kind = _tensor(parts[0].shape)
    text = (
        f'%r = "stablehlo.all_to_all"(%x) {{split_dimension = 0 : i64, concat_dimension = 0 : i64, '
        f"split_count = {count} : i64, {_CHANNEL}, replica_groups = {_groups(count)}}} : "
        f"({kind}) -> {kind}"
    )
    shares = [np.split(part, count) for part in parts]
    want = [np.concatenate([row[d] for row in shares]) for d in range(count)]
    _equal(_run(devices, parts, parts[0].shape, text), want, devices)


def test_collective_permute(devices: Sequence[Any]) -> None:
    """Each device sends its part to the next one; a device that receives nothing gets zeros."""
    count = len(devices)
    parts = _parts(count, 2)
    kind = _tensor(parts[0].shape)
    for circle in (True, False):
        pairs = [[d, (d + 1) % count] for d in range(count if circle else count - 1)]
        text = (
            f'%r = "stablehlo.collective_permute"(%x) {{{_CHANNEL}, source_target_pairs = '
            f"dense<{pairs}> : tensor<{len(pairs)}x2xi64>}} : ({kind}) -> {kind}"
        )
        want = [np.zeros_like(parts[0])] * count
        for source, target in pairs:
            want[target] = parts[source]
        _equal(_run(devices, parts, parts[0].shape, text), want, devices)


def test_partition_id(devices: Sequence[Any]) -> None:
    """Each device knows its own number."""
    count = len(devices)
    text = """%i = "stablehlo.partition_id"() : () -> tensor<ui32>
      %f = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>
      %r = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<1x3xf32>"""
    want = [np.full((1, COLUMNS), d, np.float32) for d in range(count)]
    _equal(_run(devices, _parts(count, 1), (1, COLUMNS), text), want, devices)


def test_automatic_partitioning(devices: Sequence[Any]) -> None:
    """The compiler partitions a product of matrices whose operands are divided along the
    contracting dimension, and adds the parts up."""
    count = len(devices)
    inner = 2 * count
    left = np.arange(inner * 4, dtype=np.float32).reshape(inner, 4) / 8
    right = np.cos(np.arange(inner * 5, dtype=np.float32)).reshape(inner, 5)
    module = f"""
module @product attributes {{mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["d"={count}]>
  func.func public @main(
      %a: tensor<{inner}x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"d"}}, {{}}]>}},
      %b: tensor<{inner}x5xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"d"}}, {{}}]>}})
      -> (tensor<4x5xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}}) {{
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0]
        : (tensor<{inner}x4xf32>, tensor<{inner}x5xf32>) -> tensor<4x5xf32>
    return %0 : tensor<4x5xf32>
  }}
}}"""
    aval = make_aval((4, 5), np.dtype(np.float32))
    (got,) = run_partitioned(module, devices, [left, right], [aval])
    for value, device in zip(got, devices, strict=True):
        np.testing.assert_allclose(
            value, left.T @ right, rtol=1e-4, atol=1e-5, err_msg=f"what {device!r} holds"
        )
