"""Every primitive is compiled by XLA's PJRT plug-in for CUDA, for GPUs that are not there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import pytest

from dovetail.core.base.errors import BackendUnavailableError
from dovetail.experimental import topologies
from dovetail.extend import manager
from dovetail.testing.ahead_of_time import compiled_primitives
from dovetail.testing.levels import ESSENTIAL

pytestmark = pytest.mark.aot

#: Compute capabilities 8.0 and 9.0.
TARGETS: Final = {"sm_80": "a100", "sm_90": "h200"}

#: Primitives, as a pattern; what the compiler says; what it lacks.
GAPS: Final = (
    ("schur", "no rule of its own", "LAPACK's gees, which is on the CPU alone"),
    (
        "conv_general_dilated",
        "Can't lower one or more integer convolutions to idioms supported by CuDNN",
        "convolution of integers other than int8, which cuDNN does not have",
    ),
)


@functools.cache
def device_of(model: str) -> Any:
    try:
        return topologies.get_topology_desc(model, platform="cuda").devices[0]
    except BackendUnavailableError as error:
        return str(error)


@functools.cache
def capabilities() -> frozenset[str]:
    loaded = manager().load("cuda")
    assert loaded is not None
    return loaded.info.capabilities


@pytest.mark.parametrize(
    ("target", "name"),
    [
        pytest.param(
            target, name, id=f"{target}-{'essential' if name in ESSENTIAL else 'full'}-{name}"
        )
        for target in TARGETS
        for name in compiled_primitives()
    ],
)
def test_a_primitive_compiles(target: str, name: str, check: Callable[..., None]) -> None:
    device = device_of(TARGETS[target])
    if isinstance(device, str):
        pytest.skip(f"{device}; or run `nox -s aot-cuda`")
    check(target, name, device, capabilities(), GAPS)
