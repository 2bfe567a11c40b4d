"""Topologies of TPUs, and what libtpu compiles for them; skipped where it is not installed."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from jaxlib import xla_client

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.runtime.programs.program import compile_module
from dovetail.errors import JaxRuntimeError
from dovetail.experimental.mesh_utils import create_hybrid_device_mesh
from dovetail.experimental.topologies import HARDWARE, get_topology_desc, make_mesh
from dovetail.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
from dovetail_tpu.capabilities import find_library
from dovetail_tpu.runtime import library
from dovetail_tpu.topologies import EXAMPLES, topology_devices

try:
    find_library()
    MISSING = ""
except FileNotFoundError as error:
    MISSING = str(error)

needs_libtpu = pytest.mark.skipif(bool(MISSING), reason=MISSING or "libtpu is there")


@pytest.mark.parametrize(
    ("options", "error", "expected"),
    [
        ({"slices": 2}, TypeError, "no option 'slices'; they have chips_per_host_bounds, num_sl"),
        ({"num_slices": 0}, ValueError, "num_slices of a TPU topology must be a positive int"),
        ({"num_slices": True}, ValueError, "must be a positive int; got True"),
        ({"wrap": [True, True]}, ValueError, "wrap of a TPU topology must be three bools"),
        ({"chips_per_host_bounds": (2, 2, 0)}, ValueError, "must be three positive ints"),
    ],
)
def test_options_are_checked(
    options: dict[str, Any], error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=expected):
        topology_devices("v5e:2x2", options)


@needs_libtpu
@pytest.mark.parametrize("name", EXAMPLES.values())
def test_the_generations(name: str) -> None:
    described = get_topology_desc(name, platform="tpu")
    assert [device.id for device in described.devices] == list(range(len(described.devices)))
    assert len(described.devices) in (4, 8)
    assert get_topology_desc(platform="tpu").devices[0].device_kind == "TPU v5 lite"


@needs_libtpu
def test_jax_sees_that_libtpu_is_loaded() -> None:
    """By the name that it looks for; libtpu is to be initialised once in a process."""
    library()
    assert xla_client._xla.pjrt_plugin_loaded("tpu")
    assert xla_client._xla.pjrt_plugin_initialized("tpu")


@needs_libtpu
def test_the_options_reach_libtpu() -> None:
    assert len(get_topology_desc("v5e:2x2", "tpu", num_slices=2).devices) == 8
    one = get_topology_desc("v5e:1x1", "tpu", chips_per_host_bounds=(1, 1, 1))
    assert len(one.devices) == 1
    rings = get_topology_desc("v5e:4x4", "tpu", wrap=(True, True, False)).devices
    assert {device.process_index for device in rings} == {0, 1, 2, 3}


@needs_libtpu
@pytest.mark.parametrize("name", ["v8:2x2", "v5e:3x3", "v5litepod:2x2", "two chips"])
def test_unknown_topologies(name: str) -> None:
    with pytest.raises(ValueError, match=f"no TPU topology {name!r}: write a generation.*v5e:2x2"):
        get_topology_desc(name, platform="tpu")


@needs_libtpu
def test_a_program() -> None:
    device = get_topology_desc("v5e:2x2", platform="tpu").devices[0]
    x = dt.ShapeDtypeStruct((1024, 1024), "bfloat16", sharding=SingleDeviceSharding(device))
    lowered = dt.jit(jnp.matmul).lower(x, x)
    assert lowered.cost_analysis()["flops"] == 2 * 1024**3
    compiled = lowered.compile()
    assert compiled.cost_analysis()["flops"] == 2 * 1024**3
    assert compiled.memory_analysis().argument_size_in_bytes == 2 * 2 * 1024**2
    assert "T(8,128)" in compiled.as_text(), "the layout of a TPU"


@needs_libtpu
def test_a_mesh_of_a_torus() -> None:
    described = get_topology_desc("v5e:4x8", platform="tpu")
    mesh = make_mesh(described, (4, 8), ("x", "y"))
    assert sorted(mesh.device_ids.flat) == list(range(32))
    for lines in (mesh.devices, mesh.devices.T):
        for line in lines:
            for a, b in itertools.pairwise(line):
                assert sum(abs(p - q) for p, q in zip(a.coords, b.coords, strict=True)) == 1
    (ring,) = [make_mesh(described, (32,), "i").devices]
    for a, b in zip(ring, np.roll(ring, -1), strict=True):
        assert sum(abs(p - q) for p, q in zip(a.coords, b.coords, strict=True)) == 1
    slices = get_topology_desc("v5e:2x2", "tpu", num_slices=2).devices
    hybrid = create_hybrid_device_mesh((2, 2), (2, 1), slices)
    assert [{d.slice_index for d in row} for row in hybrid] == [{0}, {0}, {1}, {1}]


@needs_libtpu
def test_a_report() -> None:
    """The loop's ends are not written down for TPUs, and sums are scattered within fusions."""
    mesh = make_mesh(get_topology_desc("v5e:4x4", platform="tpu"), (4, 4), ("x", "y"))

    def place(*spec: Any) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*spec))

    def function(a: Any, b: Any) -> Any:
        def turn(c: Any, _: None) -> tuple[Any, None]:
            return lax.with_sharding_constraint(jnp.tanh(c @ b), place("x", "y")), None

        return lax.scan(turn, a, None, length=10)[0]

    a = dt.ShapeDtypeStruct((4096, 2048), "bfloat16", sharding=place("x", "y"))
    b = dt.ShapeDtypeStruct((2048, 2048), "bfloat16", sharding=place("y"))
    made = dt.jit(function).lower(a, b).compile().report()
    assert made.product_flops == 10 * 2 * 4096 * 2048 * 2048 // 16
    sums = [c for c in made.collectives if c.kind in ("all-reduce", "reduce-scatter")]
    assert [(c.axes, c.whole_axes, c.times, c.bytes) for c in sums] == [
        (("y",), True, 10, 1024 * 2048 * 2)
    ]
    assert all(c.source.startswith(f"{__file__}:") for c in made.collectives)
    assert made.memory.argument_bytes == 4096 * 2048 * 2 // 16 + 2048 * 2048 * 2 // 4
    assert made.hardware is HARDWARE["v5e"]
    assert made.time is not None
    assert made.time.compute == pytest.approx(made.product_flops / 197e12)
    assert made.notes == ()


@needs_libtpu
def test_a_report_of_several_slices() -> None:
    """The program counts the devices of one slice, and sends to the others by way of hosts."""
    described = get_topology_desc("v5e:2x2", "tpu", num_slices=2)
    devices = create_hybrid_device_mesh((2, 2), (2, 1), described.devices)
    place = NamedSharding(Mesh(devices, ("x", "y")), PartitionSpec("x", "y"))
    x = dt.ShapeDtypeStruct((1024, 1024), "float32", sharding=place)
    made = dt.jit(lambda x: x.sum(0)).lower(x).compile().report()
    found = {(c.kind, c.axes, len(c.groups or ()), c.seconds is not None) for c in made.collectives}
    assert ("all-reduce", ("x",), 4, True) in found, "within slices, and between them"
    within, between = made.collectives[0].groups, made.collectives[-1].groups
    assert {within, between} == {((0, 2), (1, 3), (4, 6), (5, 7)), ((0, 4), (1, 5), (2, 6), (3, 7))}
    assert made.notes == ()


@needs_libtpu
def test_a_program_that_needs_too_much_memory() -> None:
    device = get_topology_desc("v5e:2x2", platform="tpu").devices[0]
    x = dt.ShapeDtypeStruct((200_000, 200_000), "float32", sharding=SingleDeviceSharding(device))
    with pytest.raises(JaxRuntimeError, match="exceeds available HBM") as caught:
        dt.jit(jnp.sin).lower(x).compile()
    assert "program jit_sin needs more memory than TpuDevice(id=0" in str(caught.value)


@needs_libtpu
def test_libtpu_is_quiet_and_fast_without_a_chip() -> None:
    """Neither questions to the cloud, which take minutes, nor lines on stderr."""
    code = (
        "from dovetail.experimental.topologies import get_topology_desc\n"
        "print(len(get_topology_desc('v5e:2x2', platform='tpu').devices))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (answer.stdout, answer.stderr) == ("4\n", "")


# ------------------------------------------------------------------------------------- lowerings


def _for_tpu(function: Any, *arguments: Any) -> Any:
    """What a program lowered for TPUs gives: on the CPU, which has all its operations."""
    lowered = dt.jit(function).lower(*arguments, lowering_platforms=("tpu",))
    program = compile_module(lowered._module, SingleDeviceSharding(dt.devices("cpu")[0]))
    return np.asarray(program(arguments)[0])


BIG = np.array([[2**40 + 3, -5, 7], [11, 2**33, -(2**62)]])

PRODUCTS = {
    "matrices": (lambda a, b: lax.dot(a, b), (BIG, BIG.T)),
    "vectors": (lambda a, b: lax.dot(a, b), (BIG[0], BIG[1])),
    "batched": (
        lambda a, b: lax.dot_general(a, b, (((2,), (1,)), ((0,), (2,)))),
        (np.arange(24).reshape(2, 3, 4) << 30, np.arange(40).reshape(5, 4, 2)),
    ),
    "two sums": (
        lambda a, b: lax.dot_general(a, b, (((0, 2), (1, 0)), ((), ()))),
        (np.arange(24).reshape(2, 3, 4) << 30, np.arange(40).reshape(4, 2, 5)),
    ),
    "nothing to sum": (
        lambda a, b: lax.dot_general(a, b, (((), ()), ((), ()))),
        (BIG[0], BIG[1]),
    ),
    "wider result": (
        lambda a, b: lax.dot(a, b, preferred_element_type=np.int64),
        (np.full((2, 3), 2**30, np.int32), np.full((3, 2), 2**30, np.int32)),
    ),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_products_of_wide_integers(case: str) -> None:
    function, arguments = PRODUCTS[case]
    with dt.enable_x64(True):
        text = dt.jit(function).lower(*arguments, lowering_platforms=("tpu",)).as_text()
        assert "dot_general" not in text
        np.testing.assert_array_equal(_for_tpu(function, *arguments), dt.jit(function)(*arguments))


@pytest.mark.parametrize("scalar", [True, False])
def test_truth_values_between_limits(scalar: bool) -> None:
    values = [np.array(v) for v in np.ndindex(2, 2, 2)]
    low, x, high = (np.array(column, bool) for column in zip(*values, strict=True))
    for i in range(8):
        limits = (low[i], high[i]) if scalar else (low, high)
        got = _for_tpu(lambda a, b, c: lax.clamp(a, b, c), limits[0], x, limits[1])
        np.testing.assert_array_equal(got, np.minimum(np.maximum(x, limits[0]), limits[1]))


@pytest.mark.parametrize(
    ("shape", "window", "strides", "padding"),
    [
        ((6,), (2,), (2,), "VALID"),
        ((5, 7), (2, 3), (1, 2), "SAME"),
        ((3, 4, 5), (1, 2, 2), (1, 1, 1), "VALID"),
    ],
)
def test_windows_over_all_dimensions(
    shape: tuple[int, ...], window: tuple[int, ...], strides: tuple[int, ...], padding: str
) -> None:
    def function(x: Any) -> Any:
        y = lax.reduce_window(x, -np.inf, lax.max, window, strides, padding)
        return (y * jnp.arange(1.0, y.size + 1).reshape(y.shape)).sum()

    x = np.random.default_rng(0).permutation(np.prod(shape)).reshape(shape).astype(np.float32)
    text = dt.jit(dt.grad(function)).lower(x, lowering_platforms=("tpu",)).as_text()
    assert f"tensor<{'x'.join(map(str, (*shape, 1, 1)))}xf32>" in text
    np.testing.assert_array_equal(_for_tpu(dt.grad(function), x), dt.grad(function)(x))


def test_images_are_left_as_they_are() -> None:
    function = dt.grad(
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()
    )
    x = dt.ShapeDtypeStruct((2, 4, 4, 3), np.float32)
    text = dt.jit(function).lower(x, lowering_platforms=("tpu",)).as_text()
    assert "reshape" not in text


def test_cube_roots() -> None:
    def text(accuracy: Any) -> str:
        function = dt.jit(lambda x: lax.cbrt(x, accuracy=accuracy))
        lowered = function.lower(np.float32(8), lowering_platforms=("tpu",))
        return str(lowered.as_text())

    assert "result_accuracy" not in text(lax.AccuracyMode.HIGHEST)
    assert "result_accuracy" in text(lax.Tolerance(ulps=2)), "never given a worse one silently"
