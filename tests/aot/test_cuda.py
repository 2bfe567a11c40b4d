"""Every primitive is compiled by XLA's PJRT plug-in for CUDA, for GPUs that are not there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import pytest

from dovetail.errors import BackendUnavailableError
from dovetail.experimental import topologies

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
def topology(model: str) -> topologies.TopologyDescription:
    try:
        return topologies.get_topology_desc(model, platform="cuda")
    except BackendUnavailableError as error:
        pytest.skip(f"{error}; or run `nox -s aot-cuda`")


def test_a_primitive_compiles(target: str, name: str, check: Callable[..., None]) -> None:
    check(target, name, topology(TARGETS[target]), GAPS)
