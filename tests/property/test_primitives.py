"""Every rule of every primitive agrees with the others, on samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dovetail as dt
from dovetail._core.trace.primitive import RULES, primitive
from dovetail.testing.sample import Sample
from dovetail.testing.samples import all_samples, defined_primitives
from dovetail.testing.suites.test_primitives import test_rules_agree as test_rules_agree

ROOT = Path(__file__).parents[2]

# Primitives whose parameters are programs have tests of their own, in the file named.
TESTED_ELSEWHERE: dict[str, str] = {
    "after_all": "tests/ops/calls/test_tokens.py",
    "create_token": "tests/ops/calls/test_tokens.py",
    "reduce": "tests/ops/reduction/test_reduction_ops.py",
    "composite": "tests/ops/calls/test_composite.py",
    "custom_jvp_call": "tests/ops/custom/test_custom_derivative_laws.py",
    "custom_lin": "tests/ops/custom/test_custom_derivative_laws.py",
    "custom_linear_solve": "tests/ops/control/test_linear_solve.py",
    "custom_root": "tests/ops/control/test_custom_root.py",
    "custom_vjp_call": "tests/ops/custom/test_custom_derivative_laws.py",
    "custom_vmap_call": "tests/ops/custom/test_custom_batching.py",
    "rng_uniform": "tests/ops/random/test_backend_random.py",
    "linear_call": "tests/ops/custom/test_custom_jvp.py",
    "remat_opt": "tests/ops/custom/test_custom_vjp.py",
    "check": "tests/api/test_checkify.py",
    "debug_check": "tests/ops/callbacks/test_debug_check.py",
    "call_exported": "tests/api/export/test_exporting.py",
    "dim_as_value": "tests/api/export/test_symbolic_functions.py",
    "jit": "tests/api/test_jit.py",
    "platform_index": "tests/ops/control/test_platform_dependent.py",
    "buffer_callback": "tests/ops/callbacks/test_buffer_callback.py",
    "ffi_call": "tests/ops/callbacks/test_native_calls.py",
    "inspect_sharding": "tests/ops/callbacks/test_debug_sharding.py",
    "pure_callback": "tests/ops/callbacks/test_callbacks.py",
    "io_callback": "tests/ops/callbacks/test_callbacks.py",
    "debug_callback": "tests/ops/callbacks/test_debug.py",
    "device_put": "tests/runtime/arrays/test_transfer.py",
    "debug_print": "tests/ops/callbacks/test_debug.py",
    "all_gather": "tests/ops/parallel/test_collectives.py",
    "all_gather_invariant": "tests/ops/parallel/test_collectives.py",
    "all_to_all": "tests/ops/parallel/test_collectives.py",
    "custom_partitioning": "tests/ops/parallel/test_custom_partitioning.py",
    "axis_index": "tests/ops/parallel/test_collectives.py",
    "pbroadcast": "tests/ops/parallel/test_collectives.py",
    "pmax": "tests/ops/parallel/test_collectives.py",
    "pmin": "tests/ops/parallel/test_collectives.py",
    "ppermute": "tests/ops/parallel/test_collectives.py",
    "psum": "tests/ops/parallel/test_collectives.py",
    "psum_invariant": "tests/ops/parallel/test_collectives.py",
    "pvary": "tests/ops/parallel/test_collectives.py",
    "ragged_all_to_all": "tests/ops/parallel/test_ragged.py",
    "reduce_scatter": "tests/ops/parallel/test_collectives.py",
    "shard_map": "tests/ops/parallel/test_shard_map.py",
    "report_progress": "tests/ops/loops/test_progress.py",
    "sharding_constraint": "tests/runtime/devices/test_programs_over_meshes.py",
    "all_gather_reduced": "tests/ops/parallel/test_unreduced.py",
    "preduced": "tests/ops/parallel/test_unreduced.py",
    "reduced_vary_cast": "tests/ops/parallel/test_unreduced.py",
    "unreduced_psum": "tests/ops/parallel/test_unreduced.py",
    "unreduced_reduce_scatter": "tests/ops/parallel/test_unreduced.py",
    "unreduced_vary_cast": "tests/ops/parallel/test_unreduced.py",
    "vary_reduced_cast": "tests/ops/parallel/test_unreduced.py",
    "vary_unreduced_cast": "tests/ops/parallel/test_unreduced.py",
    "while": "tests/ops/control/test_while_loop.py",  # its samples have no derivatives
    "xla_metadata_call": "tests/ops/calls/test_xla_metadata.py",
    "mesh_cast": "tests/ops/parallel/test_axis_modes.py",
    "reshard": "tests/ops/parallel/test_explicit_types.py",
    "offload": "tests/ops/checkpoint/test_remat.py",
    "remat2": "tests/ops/checkpoint/test_remat.py",
}

# Why a primitive lacks a rule, where its attribute `no_derivative` does not say it.
ABSENT_RULES: dict[tuple[str, str], str] = {
    (name, "reference"): "it is an operation of several devices; shard_map has the reference"
    for name, file in TESTED_ELSEWHERE.items()
    if file.endswith(
        ("parallel/test_collectives.py", "parallel/test_ragged.py", "parallel/test_unreduced.py")
    )
    and name != "pvary"
} | {
    ("call_exported", "batch"): "the program is for arguments of that shape; export vmap of it",
    ("call_exported", "reference"): "it is a program in StableHLO",
    ("dim_as_value", "reference"): "sizes have values in programs alone",
    ("after_all", "batch"): "its operands are tokens, which cannot be batched",
    ("create_token", "batch"): "it has no operand that could be batched",
    ("ffi_call", "reference"): "what it computes is known to the native code alone",
    ("platform_index", "batch"): "it has no operand that could be batched",
    ("rng_uniform", "batch"): "a backend's generator takes one pair of bounds; keys are for this",
}

DEFINED = defined_primitives()
SAMPLED = sorted(DEFINED.keys() - TESTED_ELSEWHERE.keys())


@pytest.mark.parametrize("name", SAMPLED)
def test_has_samples(name: str) -> None:
    assert all_samples().get(name), (
        f"{name} has no samples: add some to a module of dovetail.testing.samples"
    )


def test_no_stale_exemptions() -> None:
    assert TESTED_ELSEWHERE.keys() <= DEFINED.keys()
    assert all((ROOT / file).exists() for file in TESTED_ELSEWHERE.values())
    assert {name for name, _ in ABSENT_RULES} <= DEFINED.keys()


def test_no_samples_without_primitive() -> None:
    assert sorted(all_samples().keys() - DEFINED.keys()) == []


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_has_rules(name: str) -> None:
    defined = primitive(name)
    required = set(RULES) - {"transpose"}
    if defined.no_derivative:
        required.discard("jvp")
    missing = {r for r in required if not defined.has_rule(r) and (name, r) not in ABSENT_RULES}
    assert not missing, f"{name} lacks the rules {sorted(missing)} and nothing says why"


@pytest.mark.parametrize("name", SAMPLED)
def test_linear_samples_where_transposable(name: str) -> None:
    samples = all_samples().get(name, [])
    if primitive(name).has_rule("transpose"):
        assert any(s.linear for s in samples), f"no sample of {name} says where it is linear"


def _weakly_typed() -> list[object]:
    """For each primitive a sample whose arguments have the dtypes of numbers of Python."""
    possible = {np.dtype(dtype) for dtype in ("float32", "int32", "complex64")}
    return [
        pytest.param(name, sample, id=name)
        for name in SAMPLED
        for sample in [
            s
            for s in all_samples().get(name, ())
            if s.args
            and s.raises is None
            and s.needs is None
            and possible.issuperset(np.asarray(a).dtype for a in s.args)
        ][:1]
    ]


@pytest.mark.parametrize(("name", "sample"), _weakly_typed())
def test_weakly_typed_operands_are_lowered_alike(name: str, sample: Sample) -> None:
    def text(weak_type: bool) -> str:
        avals = [
            dt.ShapeDtypeStruct(a.shape, a.dtype, weak_type=weak_type)
            for a in map(np.asarray, sample.args)
        ]
        function = dt.jit(lambda *args: primitive(name).bind(*args, **sample.params))
        return function.lower(*avals).as_text()

    assert text(weak_type=True) == text(weak_type=False)
