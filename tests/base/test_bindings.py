"""What the module that wraps jaxlib promises, on the version that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from dovetail._core.base import bindings, config

_jax, xc = bindings._jax, bindings.xla_client
DEVICES = 4


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.10.2", (0, 10, 2)),
        ("0.12.0.1", (0, 12, 0)),
        ("0.13", (0, 13, 0)),
        ("0.11.2.dev20260101", (0, 11, 2)),
        ("1.2.3rc1", (1, 2, 3)),
    ],
)
def test_parse_version(text: str, numbers: tuple[int, int, int]) -> None:
    assert bindings.parse_version(text) == numbers


@pytest.mark.parametrize("version", [(0, 10, 1), (0, 9, 9), (0, 4, 38)])
def test_old_versions_are_refused(version: tuple[int, int, int]) -> None:
    with pytest.raises(ImportError, match=r"needs jaxlib 0\.10\.2 or newer.*pip install"):
        bindings.check_version(version)


@pytest.mark.parametrize("version", [(0, 13, 0), (1, 0, 0)])
def test_untested_versions_give_a_warning(version: tuple[int, int, int]) -> None:
    with pytest.warns(RuntimeWarning, match=r"newer than 0\.12\.x"):
        bindings.check_version(version)


@pytest.mark.parametrize("version", [(0, 10, 2), (0, 11, 2), (0, 12, 0), (0, 12, 9)])
def test_tested_versions_pass(version: tuple[int, int, int]) -> None:
    bindings.check_version(version)


def test_installed_version() -> None:
    assert bindings.OLDEST_SUPPORTED <= bindings.JAXLIB_VERSION
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"]


@pytest.mark.parametrize("with_jax", [False, True])
def test_slots_of_the_jit_are_set_only_without_jax(with_jax: bool) -> None:
    code = """
import sys, types
from jaxlib import _jax
calls = []
for name in ("enable_x64", "disable_jit", "post_hook"):
    setattr(_jax.jax_jit, f"set_{name}_state", lambda config: calls.append(config.name))
if sys.argv[1] == "True":
    sys.modules["jax._src.config"] = types.ModuleType("jax._src.config")
import dovetail._core.base.config
print(*calls)
"""
    result = subprocess.run(
        [sys.executable, "-c", code, str(with_jax)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    expected = [] if with_jax else ["enable_x64", "disable_jit", "dovetail_post_hook"]
    assert result.stdout.split() == expected


class Sharding(_jax.GSPMDSharding):  # type: ignore[misc]
    """The least that jaxlib wants of a sharding."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__
    memory_kind = None

    def __init__(self, devices: list[Any], hlo_sharding: Any) -> None:
        super().__init__(_jax.DeviceList(tuple(devices)), hlo_sharding, None)
        self.hlo_sharding = hlo_sharding

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return self.hlo_sharding


@dataclass(frozen=True)
class Aval:
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool = False


@pytest.fixture(scope="module")
def devices() -> list[Any]:
    return list(xc.make_cpu_client(num_devices=DEVICES).local_devices())


def put(values: list[Any], shape: tuple[int, ...], devices: list[Any], hlo_sharding: Any) -> Any:
    return _jax.batched_device_put(
        Aval(shape, values[0].dtype),
        Sharding(devices, hlo_sharding),
        values,
        devices,
        enable_x64=True,
    )


DTYPES = [
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64",
    "complex64 complex128 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e4m3",
    "float8_e3m4 float8_e4m3fnuz float8_e5m2fnuz float4_e2m1fn int4 uint4 int2 uint2",
]


@pytest.mark.parametrize("name", " ".join(DTYPES).split())
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 3), (2, 0, 1)])
def test_host_copy_of_every_dtype(name: str, shape: tuple[int, ...], devices: list[Any]) -> None:
    value = np.resize(np.array([0, 1, 1, 0, 1]), shape).astype(getattr(ml_dtypes, name, name))
    array = put([value], shape, devices[:1], xc.HloSharding.replicate())
    bindings.copy_to_host_async(array)
    before = "jax" in sys.modules
    if bindings.is_unreadable(value.dtype):
        with pytest.raises(TypeError, match=f"jax to read {name}; convert it first"):
            bindings.host_copy(array)
        return
    copy = bindings.host_copy(array)[0]
    assert (copy.dtype, copy.shape) == (value.dtype, shape)
    np.testing.assert_array_equal(copy.astype(np.complex64), value.astype(np.complex64))
    assert ("jax" in sys.modules) == before


def test_host_copy_outlives_the_array(devices: list[Any]) -> None:
    value = np.arange(1000).astype("bfloat16")
    copy, _ = bindings.host_copy(put([value], (1000,), devices[:1], xc.HloSharding.replicate()))
    for _ in range(5):
        put([np.zeros(1000, "bfloat16")], (1000,), devices[:1], xc.HloSharding.replicate())
    np.testing.assert_array_equal(copy.astype("float32"), value.astype("float32"))


WHOLE = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("tiles", [WHOLE[:4, :2], WHOLE[:4, 2:], WHOLE[4:, :2], WHOLE[4:, 2:]]),
        ("rows", [WHOLE[:2], WHOLE[2:4], WHOLE[4:6], WHOLE[6:]]),
        ("pairs", [WHOLE[:4], WHOLE[:4], WHOLE[4:], WHOLE[4:]]),
        ("replicated", [WHOLE] * 4),
    ],
)
def test_host_copy_of_sharded_arrays(
    kind: str, parts: list[Any], dtype: str, devices: list[Any]
) -> None:
    hlo_sharding = {
        "tiles": lambda: xc.HloSharding.iota_tile((2, 2)),
        "rows": lambda: xc.HloSharding.iota_tile((4, 1)),
        "pairs": lambda: xc.HloSharding.iota_tile(
            (2, 1, 2), subgroup_types=[xc.OpSharding.Type.REPLICATED]
        ),
        "replicated": xc.HloSharding.replicate,
    }[kind]()
    array = put([part.astype(dtype) for part in parts], WHOLE.shape, devices, hlo_sharding)
    if bindings.reads_parts_alone and kind != "replicated":
        with pytest.raises(RuntimeError, match="its value cannot be read"):
            bindings.host_copy(array)
        return
    copy = bindings.host_copy(array)[0]
    assert copy.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(copy.astype("float32"), WHOLE)


def test_result_handler_gives_aval_and_sharding(devices: list[Any]) -> None:
    sharding = Sharding(devices[:1], xc.HloSharding.replicate())
    array = put([np.ones(3, np.float32)], (3,), devices[:1], xc.HloSharding.replicate())
    aval = Aval((3,), np.dtype("float32"), weak_type=True)
    for committed in (False, True):
        wrapped = bindings.result_handler(aval, sharding, committed)(array)
        assert wrapped.aval is aval
        assert wrapped._sharding is sharding
        assert wrapped._committed is committed


def test_options_are_read_by_the_jit_of_jaxlib() -> None:
    signature = _jax.jax_jit._ArgSignatureOfValue(1.0, config.enable_x64.value)
    assert signature.dtype == np.float32
    with config.enable_x64(True):
        signature = _jax.jax_jit._ArgSignatureOfValue(1.0, config.enable_x64.value)
    assert signature.dtype == np.float64
