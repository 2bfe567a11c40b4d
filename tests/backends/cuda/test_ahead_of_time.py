"""Programs compiled for GPUs that are not there: the compiler refuses custom calls that it does not
know, so that every name which a rule calls is one that is registered."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dovetail_cuda.capabilities import find_plugin, folders_of
from dovetail_cuda.topology import models

COMPILERS = [
    folder / path
    for folder in folders_of("nvidia")
    for path in ("cu13/bin/ptxas", "cuda_nvcc/bin/ptxas")
]

pytestmark = [
    pytest.mark.cuda_aot,
    pytest.mark.skipif(
        find_plugin() is None
        or importlib.util.find_spec(find_plugin().kernels) is None  # type: ignore[union-attr]
        or not any(path.is_file() for path in COMPILERS),
        reason='needs the wheels of "dovetail-cuda[aot]"',
    ),
]


@pytest.fixture(scope="module")
def answer() -> Any:
    """What came of compiling, in a process that no GPU is visible to."""
    script = Path(__file__).with_name("compile_for_gpus.py")
    result = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
        timeout=570,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("model", ["h200", "a100", "h100", "b200"])
def test_every_rule_compiles(answer: Any, model: str) -> None:
    failures = {name: found for name, found in answer[model].items() if "error" in found}
    assert not failures
    lost = {name: found for name, found in answer[model].items() if found["lost"]}
    assert not lost, "calls that are not in the compiled program"
    assert answer[f"{model} kind"].startswith(f"NVIDIA {model.upper()}")


def test_every_name_is_registered(answer: Any) -> None:
    used = {t for model in models() for found in answer[model].values() for t in found["targets"]}
    used.remove("annotate_device_placement")  # XLA's own
    assert used <= set(answer["registered"])
    assert used >= {
        "cu_cholesky_update_ffi",
        "cu_lu_pivots_to_permutation",
        "cu_threefry2x32_ffi",
        "cu_tridiagonal_solve_perturbed",
        "cuhybrid_geqp3",
        "cusolver_geqrf_ffi",
        "cusolver_gesvd_ffi",
        "cusolver_gesvdj_ffi",
        "cusolver_gesvdp_ffi",
        "cusolver_getrf_ffi",
        "cusolver_orgqr_ffi",
        "cusolver_ormqr_ffi",
        "cusolver_potrf_ffi",
        "cusolver_syevd_ffi",
        "cusolver_syrk_ffi",
        "cusolver_sytrd_ffi",
        "cusparse_gtsv2_ffi",
        "dce_sink",
        "xla_buffer_python_gpu_callback",
        "xla_buffer_python_gpu_callback_cmd_buffer",
        "xla_ffi_python_gpu_callback",
    }


def test_all_kernels_of_the_wheel_are_registered(answer: Any) -> None:
    registered = answer["registered"]
    assert len(registered) == len(set(registered)) >= 37
    assert set(registered) >= {
        "cudnn_rnn_bwd_ffi",
        "cudnn_rnn_ffi",
        "cuhybrid_eig_comp",
        "cuhybrid_eig_real",
        "cusolver_csrlsvqr_ffi",
        "cusparse_csr_matmat_ffi",
        "triton_kernel_call_ffi",
    }


THEIRS = """
from jaxlib import xla_client
from dovetail_cuda.capabilities import find_plugin
xla_client._xla.load_pjrt_plugin("cuda", str(find_plugin().library), c_api=None)
xla_client._xla.initialize_pjrt_plugin("cuda")
"""
OURS = """
import dovetail as dt
from dovetail.experimental import topologies
(device,) = topologies.get_topology_desc("h200", platform="cuda").devices
x = dt.ShapeDtypeStruct((3, 3), "float32")
dt.jit(dt.lax.linalg.cholesky, device=device).lower(x).compile()
"""


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_jax_can_load_the_same_library(first: str, tmp_path: Path) -> None:
    """As jax loads it, without looking whether somebody has; that jax is installed is enough."""
    (tmp_path / "jax.py").touch()
    code = OURS + THEIRS if first == "ours" else THEIRS + OURS
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ
        | {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr[-4000:]


def test_an_unknown_name_is_explained(answer: Any) -> None:
    assert answer["unknown target"].startswith("the program calls acme_scale, which the plug-in")


def test_topologies(answer: Any) -> None:
    assert answer["four"] == 4
    assert "no GPU 'h900' is described; there are a100, b200, h100, h200" in answer["unknown model"]
    assert "'4' is no topology of GPUs" in answer["wrong shape"]
    assert "in target_config cannot be used" in answer["broken description"]
    assert "are two descriptions of a GPU" in answer["two descriptions"]


def test_a_report(answer: Any) -> None:
    made = answer["report"]
    assert made["flops"] == 10 * 2 * 2 * 4096 * 1024 * 8192 // 16
    whole = 2048 * 1024 * 2
    seconds = pytest.approx(10 * 2 * 7 * whole // 8 / 450e9)
    assert made["collectives"] == [["all-reduce", ["gpus"], whole, 10, seconds]]
    assert (made["hardware"], made["notes"]) == ("h200", [])
    assert made["text"].startswith("function on 16 x NVIDIA H200, mesh 'hosts': 2, 'gpus': 8")


def test_all_options_are_known_to_the_library(answer: Any) -> None:
    # Unknown names and wrong types are refused before a GPU is looked for.
    assert "No visible GPU devices" in answer["options"]


def test_no_client_without_a_gpu(answer: Any) -> None:
    assert answer["no client"].startswith("no GPU is visible")
