"""The options of the CUDA client: what they may be, and which of them win."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dovetail import config
from dovetail._core.base.config import cuda_visible_devices
from dovetail._core.runtime.devices import clients
from dovetail_cuda.options import OPTIONS, client_options

VARIABLES = (
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB",
    "XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE",
    "XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT",
    "TF_FORCE_UNIFIED_MEMORY",
)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_without_any() -> None:
    found = client_options({})
    assert found["platform_name"] == "cuda"
    assert found["allocator"] == "default"
    assert "memory_fraction" not in found
    assert "visible_devices" not in found


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"}, {"memory_fraction": 0.5}),
        (
            {"XLA_CLIENT_MEM_FRACTION": "", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".5"},
            {"memory_fraction": 0.5},
        ),
        ({"XLA_CLIENT_MEM_FRACTION": "1"}, {"memory_fraction": 1.0}),
        (
            {"XLA_PYTHON_CLIENT_MEM_FRACTION": "4.0", "TF_FORCE_UNIFIED_MEMORY": "1"},
            {"memory_fraction": 4.0},
        ),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, {"preallocate": False}),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "FALSE"}, {"preallocate": False}),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "0"}, {"preallocate": False}),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}, {"preallocate": True}),
        ({"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, {"allocator": "platform"}),
        ({"XLA_PYTHON_CLIENT_ALLOCATOR": "BFC"}, {"allocator": "bfc"}),
        (
            {"XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB": "10"},
            {"collective_memory_size": 10 << 20},
        ),
        (
            {"XLA_PYTHON_CLIENT_ABORT_COLLECTIVES_ON_FAILURE": "1"},
            {"abort_collectives_on_failure": True},
        ),
    ],
)
def test_variables(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: dict[str, Any]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert client_options({}).items() >= expected.items()


@pytest.mark.parametrize(
    "name",
    [
        "XLA_CLIENT_MEM_FRACTION",
        "XLA_PYTHON_CLIENT_MEM_FRACTION",
        "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
    ],
)
def test_empty_variables_are_not_set(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    expected = client_options({})
    monkeypatch.setenv(name, "")
    assert client_options({}) == expected


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {"XLA_PYTHON_CLIENT_MEM_FRACTION": "half"},
            "XLA_PYTHON_CLIENT_MEM_FRACTION=half must be a number, such as .5",
        ),
        (
            {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0"},
            "XLA_PYTHON_CLIENT_MEM_FRACTION is 0.0: it is a share of the GPU's memory",
        ),
        ({"XLA_CLIENT_MEM_FRACTION": "75"}, "XLA_CLIENT_MEM_FRACTION is 75.0: it is a share"),
        ({"XLA_CLIENT_MEM_FRACTION": "nan"}, "XLA_CLIENT_MEM_FRACTION is nan: it is a share"),
        (
            {"XLA_CLIENT_MEM_FRACTION": ".5", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".4"},
            "are both set",
        ),
        (
            {"XLA_PYTHON_CLIENT_PREALLOCATE": "no"},
            "XLA_PYTHON_CLIENT_PREALLOCATE=no must be true or false",
        ),
        (
            {"XLA_PYTHON_CLIENT_ALLOCATOR": "fast"},
            "XLA_PYTHON_CLIENT_ALLOCATOR is 'fast': it must be one of default, platform, bfc",
        ),
        ({"XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB": "1.5"}, "must be a whole number"),
        ({"XLA_PYTHON_CLIENT_USE_TFRT_GPU_CLIENT": "true"}, "must be 0 or 1"),
    ],
)
def test_wrong_variables(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=re.escape(expected)):
        client_options({})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"memory_fraction": 1}, {"memory_fraction": 1.0}),
        ({"preallocate": False}, {"preallocate": False}),
        ({"allocator": "cuda_async"}, {"allocator": "cuda_async"}),
        ({"visible_devices": "0,2"}, {"visible_devices": [0, 2]}),
        ({"visible_devices": " 1 , 0 "}, {"visible_devices": [1, 0]}),
        ({"visible_devices": (3,)}, {"visible_devices": [3]}),
        ({"node_id": 0, "num_nodes": 2}, {"node_id": 0, "num_nodes": 2}),
    ],
)
def test_options_win(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".3")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    found = client_options(options)
    assert {"memory_fraction": 0.3, "preallocate": True, **found}.items() >= expected.items()
    assert {name: type(found[name]) for name in expected} == {
        name: type(value) for name, value in expected.items()
    }, "the library tells 1 from 1.0"


def test_all_gpus_are_not_named() -> None:
    assert "visible_devices" not in client_options({"visible_devices": "all"})


@pytest.mark.parametrize(
    ("options", "error", "expected"),
    [
        ({"memory": 0.5}, TypeError, "the cuda backend has no option memory; it has abort_coll"),
        ({"memory_fraction": "half"}, TypeError, "memory_fraction must be a number, got 'half'"),
        ({"memory_fraction": True}, TypeError, "memory_fraction must be a number, got True"),
        ({"memory_fraction": 1.5}, ValueError, "memory_fraction is 1.5: it is a share"),
        ({"memory_fraction": -0.5}, ValueError, "memory_fraction is -0.5: it is a share"),
        ({"preallocate": 1}, TypeError, "preallocate must be True or False, got 1"),
        ({"allocator": None}, TypeError, "allocator must be a str, got None"),
        ({"allocator": "fast"}, ValueError, "allocator is 'fast': it must be one of default"),
        ({"visible_devices": 0}, TypeError, 'must be "all", numbers such as "0,2" or a list'),
        ({"visible_devices": "0;1"}, TypeError, 'must be "all", numbers such as "0,2" or a list'),
        ({"visible_devices": [True]}, TypeError, 'must be "all", numbers such as "0,2" or a list'),
        ({"visible_devices": []}, ValueError, "must name each GPU once, from 0 on"),
        ({"visible_devices": "0,0"}, ValueError, "must name each GPU once, from 0 on"),
        ({"visible_devices": [-1]}, ValueError, "must name each GPU once, from 0 on"),
        ({"num_nodes": -1}, ValueError, "num_nodes is -1: it must not be negative"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], expected: str) -> None:
    with pytest.raises(error) as caught:
        client_options(options)
    assert expected in str(caught.value)


def test_the_option_of_the_framework_reaches_the_client() -> None:
    assert clients._client_options("cuda") == {"visible_devices": "all"}
    assert set(clients._client_options("cuda")) <= set(OPTIONS)
    with cuda_visible_devices("1,2"):
        assert clients._client_options("cuda") == {"visible_devices": "1,2"}
        assert config.jax_cuda_visible_devices == "1,2"
    assert clients._client_options("tpu") == {}
