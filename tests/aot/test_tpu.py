"""Every primitive is compiled by libtpu, for chips that are not there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import pytest

from dovetail._core.ops.special.interior_functions import InteriorFunction
from dovetail.experimental import topologies
from dovetail.testing.ahead_of_time import PROGRAMS, contains
from dovetail.testing.samples import defined_primitives
from dovetail_tpu.capabilities import find_library

pytestmark = pytest.mark.aot

try:
    find_library()
except FileNotFoundError as error:
    pytest.skip(f"{error}; or run `nox -s aot-tpu`", allow_module_level=True)

TARGETS: Final = {"v4": "v4:2x2x1", "v5e": "v5e:2x2"}

HOST: Final = "libtpu has no custom call that calls Python; JAX sends and receives instead"

#: Primitives, as a pattern; what the compiler says; what it lacks.
GAPS: Final = (
    ("eig", "no rule of its own", "LAPACK's geev, which is on the CPU alone"),
    ("schur", "no rule of its own", "LAPACK's gees, which is on the CPU alone"),
    ("(pure|io|debug)_callback|debug_print", "cannot call Python", HOST),
    ("buffer_callback", "cannot give Python their memory", HOST),
    (
        "cos|exp|expm1|log|log1p|logistic|rsqrt|sin|sqrt|tan|tanh",
        "No implementation found for requested accuracy",
        "an implementation within 4 units in the last place (accuracy=Tolerance(ulps=4))",
    ),
    ("cbrt", "Accuracy analysis for cbrt", "a choice of accuracy (accuracy=Tolerance(ulps=4))"),
    (
        "dot_general",
        r"Dot algorithm ALG_DOT_F(32_F32_F32|64_F64_F64) is not supported",
        "the dot algorithms F32_F32_F32 and F64_F64_F64",
    ),
    (
        "conv_general_dilated",
        r"rewriting is not implemented.* = [su]64\[.*convolution",
        "convolution of 64-bit integers",
    ),
    (
        "select_and_scatter_add",
        "rewriting is not implemented",
        "select-and-scatter of complex numbers and 64-bit integers",
    ),
    (
        "select_and_scatter",
        "rewriting is not implemented",
        "select-and-scatter of float64, in which all its samples are",
    ),
)


@functools.cache
def topology(name: str) -> topologies.TopologyDescription:
    return topologies.get_topology_desc(name, platform="tpu")


def test_the_programs_contain_their_primitives() -> None:
    assert [name for name, program in PROGRAMS.items() if not contains(name, program)] == []


def test_a_primitive_compiles(target: str, name: str, check: Callable[..., None]) -> None:
    # Those that are computed in float64, which is emulated, take half a minute for each sample.
    emulated = isinstance(defined_primitives()[name], InteriorFunction) or name == "polygamma"
    most = 1 if emulated else None
    check(target, name, topology(TARGETS[target]), GAPS, most)
