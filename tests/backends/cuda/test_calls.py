"""The custom calls that programs for GPUs make: names, static arguments, layouts and types.

What is expected here was read from the programs that JAX 0.10.2, 0.11.2 and 0.12.0.1 make for CUDA.
Most of JAX's calls also have a frontend attribute ``num_batch_dims`` and a ``sdy.sharding_rule``,
which tell XLA how to divide batches among devices. Ours have neither, and `calls_of` reads neither.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail._core.base.config import threefry_gpu_kernel_lowering
from dovetail._core.ops.random.threefry import threefry2x32_p
from dovetail.experimental import io_callback
from dovetail.experimental.buffer_callback import buffer_callback
from dovetail.extend import primitives
from dovetail_cuda.lowerings.kernels import prepare_lapack

L = lax.linalg
CALL = re.compile(r"stablehlo\.custom_call @(\S+?)\((.*?)\) \{(.*)\} : (.*)$")


def calls_of(function: Callable[..., Any], *avals: Any) -> list[dict[str, str]]:
    """The custom calls of a program, as they are written."""
    with dt.enable_x64(True):
        text = dt.jit(function).lower(*avals, lowering_platforms=("cuda",)).as_text()
    found = []
    for line in text.splitlines():
        match = CALL.search(line)
        if match:
            target, _, attributes, types = match.groups()
            config = re.search(r"backend_config = (\{.*?\})", attributes)
            found.append(
                {
                    "target": target,
                    "config": config[1].strip("{}") if config else "",
                    "in": _layouts("operand_layouts", attributes),
                    "out": _layouts("result_layouts", attributes),
                    "aliases": " ".join(
                        f"{operand}>{result or 0}"
                        for result, operand in re.findall(
                            r"output_tuple_indices = \[(\d*)\], operand_index = (\d+)", attributes
                        )
                    ),
                    "types": types.replace("tensor", "").replace("complex", "c"),
                    "effect": "yes" if "has_side_effect = true" in attributes else "",
                }
            )
    return found


def _layouts(name: str, attributes: str) -> str:
    """Such as ``10 0`` for two layouts."""
    found = re.search(rf"{name} = \[(.*?index>)\](?:,|$)", attributes)
    if not found:
        return ""
    each = re.findall(r"dense<(.*?)> : tensor<\d+xindex>", found[1])
    return " ".join(re.sub(r"[^\d]", "", layout) or "-" for layout in each)


def S(dtype: str, *shape: int) -> Any:
    return dt.ShapeDtypeStruct(shape, np.dtype(dtype))


F4, F8, C8, C16 = "float32", "float64", "complex64", "complex128"
EIGH = {name: L.EighImplementation[name] for name in ("QR", "JACOBI")}
EIG = {name: L.EigImplementation[name] for name in ("CUSOLVER", "MAGMA", "LAPACK")}
SVD = {name: L.SvdAlgorithm[name] for name in ("QR", "JACOBI", "POLAR")}


def bind(name: str, **params: Any) -> Callable[..., Any]:
    return lambda *args: primitives()[name].bind(*args, **params)


# What is called, and for each call: target, static arguments, layouts of operands and of results
# (dimensions from the fastest varying), aliases, types.
TABLE: list[tuple[str, Callable[..., Any], list[Any], list[str]]] = [
    (
        "cholesky",
        bind("cholesky"),
        [S(F4, 3, 5, 5)],
        ["cusolver_potrf_ffi|lower = true|120|120 0|0>0|(<3x5x5xf32>) -> (<3x5x5xf32>, <3xi32>)"],
    ),
    (
        "cholesky_update",
        L.cholesky_update,
        [S(F4, 5, 5), S(F4, 5)],
        ["cu_cholesky_update_ffi||10 0|10 0|0>0 1>1|(<5x5xf32>, <5xf32>) -> (<5x5xf32>, <5xf32>)"],
    ),
    # Which JAX has no rule for.
    ("cholesky_update of many", L.cholesky_update, [S(F4, 3, 5, 5), S(F4, 3, 5)], []),
    *(
        (
            f"symmetric_product, {name}",
            lambda a, c: L.symmetric_product(a, c, alpha=2, beta=3),
            [S(F8, *batch, 5, 3), S(F8, *batch, 5, 5)],
            [
                f"cusolver_syrk_ffi|transpose = false|{layout} {layout} - -|{layout}|1>0|"
                f"(<{sizes}5x3xf64>, <{sizes}5x5xf64>, <f64>, <f64>) -> <{sizes}5x5xf64>"
            ],
        )
        for name, batch, sizes, layout in (("one", (), "", "10"), ("many", (2,), "2x", "210"))
    ),
    (
        "lu of one",
        L.lu,
        [S(C16, 5, 3)],
        [
            "cusolver_getrf_ffi||01|01 0 -|0>0|(<5x3xc<f64>>) -> (<5x3xc<f64>>, <3xi32>, <i32>)",
            "cu_lu_pivots_to_permutation||0|0||(<3xi32>) -> <5xi32>",
        ],
    ),
    (
        "lu of many",
        L.lu,
        [S(F4, 2, 3, 5, 3)],
        [
            "cusolver_getrf_ffi||2310|2310 210 10|0>0|(<2x3x5x3xf32>) -> "
            "(<2x3x5x3xf32>, <2x3x3xi32>, <2x3xi32>)",
            "cu_lu_pivots_to_permutation||210|210||(<2x3x3xi32>) -> <2x3x5xi32>",
        ],
    ),
    (
        "geqrf",
        bind("geqrf"),
        [S(C8, 3, 5, 4)],
        ["cusolver_geqrf_ffi||120|120 10|0>0|(<3x5x4xc<f32>>) -> (<3x5x4xc<f32>>, <3x4xc<f32>>)"],
    ),
    (
        "geqp3",
        bind("geqp3"),
        [S(F4, 5, 3)],
        [
            'cuhybrid_geqp3|magma = "auto"|01 0|01 0 0|0>0 1>1|(<5x3xf32>, <3xi32>) -> '
            "(<5x3xf32>, <3xi32>, <3xf32>)"
        ],
    ),
    (
        "householder_product",
        L.householder_product,
        [S(F8, 2, 5, 3), S(F8, 2, 3)],
        ["cusolver_orgqr_ffi||120 10|120|0>0|(<2x5x3xf64>, <2x3xf64>) -> <2x5x3xf64>"],
    ),
    (
        "ormqr",
        lambda a, t, c: L.ormqr(a, t, c, left=False, transpose=True),
        [S(F4, 2, 5, 3), S(F4, 2, 3), S(F4, 2, 4, 5)],
        [
            "cusolver_ormqr_ffi|left = false, transpose = true|120 10 120|120|2>0|"
            "(<2x5x3xf32>, <2x3xf32>, <2x4x5xf32>) -> <2x4x5xf32>"
        ],
    ),
    (
        "eigh",
        lambda x: L.eigh(x, symmetrize_input=False),
        [S(C16, 3, 5, 5)],
        [
            "cusolver_syevd_ffi|algorithm = 0 : ui8, lower = true|120|120 10 0|0>0|"
            "(<3x5x5xc<f64>>) -> (<3x5x5xc<f64>>, <3x5xf64>, <3xi32>)"
        ],
    ),
    *(
        (
            f"eigh by {name}",
            lambda x, name=name: L.eigh(x, lower=False, implementation=EIGH[name]),
            [S(F4, 5, 5)],
            [
                f"cusolver_syevd_ffi|algorithm = {number} : ui8, lower = false|01|01 0 -|0>0|"
                "(<5x5xf32>) -> (<5x5xf32>, <5xf32>, <i32>)"
            ],
        )
        for number, name in enumerate(("QR", "JACOBI"), 1)
    ),
    (
        "svd of a small matrix",
        lambda x: L.svd(x, full_matrices=False),
        [S(F4, 2, 5, 3)],
        [
            "cusolver_gesvdj_ffi|compute_uv = true, full_matrices = true|120|120 10 120 120 0|0>0|"
            "(<2x5x3xf32>) -> (<2x5x3xf32>, <2x3xf32>, <2x5x5xf32>, <2x3x3xf32>, <2xi32>)"
        ],
    ),
    (
        "svd of a middle-sized matrix",
        lambda x: L.svd(x, full_matrices=False),
        [S(C8, 40, 33)],
        [
            "cusolver_gesvdj_ffi|compute_uv = true, full_matrices = false|01|01 0 01 01 -|0>0|"
            "(<40x33xc<f32>>) -> (<40x33xc<f32>>, <33xf32>, <40x33xc<f32>>, <33x33xc<f32>>, <i32>)"
        ],
    ),
    (
        "svd of a tall matrix",
        lambda x: L.svd(x, full_matrices=False),
        [S(F4, 2000, 3)],
        [
            "cusolver_gesvd_ffi|compute_uv = true, full_matrices = false, transposed = false|01|"
            "01 0 01 01 -|0>0|(<2000x3xf32>) -> "
            "(<2000x3xf32>, <3xf32>, <2000x3xf32>, <3x3xf32>, <i32>)"
        ],
    ),
    (
        "svd of wide matrices by QR",
        lambda x: L.svd(x, full_matrices=False, algorithm=SVD["QR"]),
        [S(C8, 2, 3, 5)],
        [
            "cusolver_gesvd_ffi|compute_uv = true, full_matrices = false, transposed = true|210|"
            "210 10 210 210 0|0>0|(<2x3x5xc<f32>>) -> "
            "(<2x3x5xc<f32>>, <2x3xf32>, <2x3x5xc<f32>>, <2x3x3xc<f32>>, <2xi32>)"
        ],
    ),
    (
        "svd without vectors by QR",
        lambda x: L.svd(x, compute_uv=False, algorithm=SVD["QR"]),
        [S(C8, 2, 3, 5)],
        [
            "cusolver_gesvd_ffi|compute_uv = false, full_matrices = true, transposed = true|210|"
            "210 10 - - 0|0>0|(<2x3x5xc<f32>>) -> "
            "(<2x3x5xc<f32>>, <2x3xf32>, <c<f32>>, <c<f32>>, <2xi32>)"
        ],
    ),
    (
        "svd by polar decomposition",
        lambda x: L.svd(x, full_matrices=False, algorithm=SVD["POLAR"]),
        [S(F4, 2, 3, 5)],
        [
            "cusolver_gesvdp_ffi|compute_uv = true, full_matrices = false|120|120 10 120 120 0|0>0|"
            "(<2x3x5xf32>) -> (<2x3x5xf32>, <2x3xf32>, <2x3x3xf32>, <2x5x3xf32>, <2xi32>)"
        ],
    ),
    (
        "svd by rotations",
        lambda x: L.svd(x, compute_uv=False, algorithm=SVD["JACOBI"]),
        [S(F4, 1500, 1200)],
        [
            "cusolver_gesvdj_ffi|compute_uv = false, full_matrices = true|01|01 0 01 01 -|0>0|"
            "(<1500x1200xf32>) -> "
            "(<1500x1200xf32>, <1200xf32>, <1500x1500xf32>, <1200x1200xf32>, <i32>)"
        ],
    ),
    *(
        (
            f"eig, {name}",
            lambda x, name=name: L.eig(
                x, compute_left_eigenvectors=False, implementation=EIG.get(name)
            ),
            [S(dtype, 2, 4, 4)],
            [
                "cusolver_geev_ffi|left = false, right = true|120|120 10 120 120 0||"
                f"(<2x4x4x{t}>) -> (<2x4x4x{t}>, <2x4x{c}>, <2x4x4x{t}>, <2x4x4x{t}>, <2xi32>)"
            ],
        )
        for name, dtype, t, c in (
            ("by cuSOLVER", F4, "f32", "c<f32>"),
            ("CUSOLVER", C16, *["c<f64>"] * 2),
        )
    ),
    (
        "eig with left vectors",
        L.eig,
        [S(F8, 2, 4, 4)],
        [
            'cuhybrid_eig_real|left = true, magma = "auto", right = true|120|10 10 120 120 0||'
            "(<2x4x4xf64>) -> (<2x4xf64>, <2x4xf64>, <2x4x4xc<f64>>, <2x4x4xc<f64>>, <2xi32>)"
        ],
    ),
    *(
        (
            f"eig by {name}",
            lambda x, name=name: L.eig(
                x,
                compute_left_eigenvectors=False,
                compute_right_eigenvectors=False,
                implementation=EIG[name],
            ),
            [S(C8, 4, 4)],
            [
                f'cuhybrid_eig_comp|left = false, magma = "{magma}", right = false|01|0 01 01 -||'
                "(<4x4xc<f32>>) -> (<4xc<f32>>, <4x4xc<f32>>, <4x4xc<f32>>, <i32>)"
            ],
        )
        for name, magma in (("MAGMA", "on"), ("LAPACK", "off"))
    ),
    (
        "tridiagonal",
        lambda x: L.tridiagonal(x, lower=False),
        [S(C16, 2, 5, 5)],
        [
            "cusolver_sytrd_ffi|lower = false|120|120 10 10 10 0|0>0|(<2x5x5xc<f64>>) -> "
            "(<2x5x5xc<f64>>, <2x5xf64>, <2x4xf64>, <2x4xc<f64>>, <2xi32>)"
        ],
    ),
    (
        "tridiagonal_solve",
        L.tridiagonal_solve,
        [*[S(F4, 5)] * 3, S(F4, 5, 2)],
        ["cusparse_gtsv2_ffi||0 0 0 01|01|3>0|(<5xf32>, <5xf32>, <5xf32>, <5x2xf32>) -> <5x2xf32>"],
    ),
    (
        "tridiagonal_solve, perturbed",
        lambda *xs: L.tridiagonal_solve(*xs, perturb_singular=True),
        [*[S(F4, 3, 5)] * 3, S(F4, 3, 5, 2)],
        [
            "cu_tridiagonal_solve_perturbed||10 10 10 120|120||"
            "(<3x5xf32>, <3x5xf32>, <3x5xf32>, <3x5x2xf32>) -> <3x5x2xf32>"
        ],
    ),
    ("triangular_solve", L.triangular_solve, [S(F4, 3, 3), S(F4, 3, 3)], []),
    ("threefry2x32", threefry2x32_p.bind, [S("uint32", 4)] * 4, []),
    (
        "pure_callback",
        lambda x: dt.pure_callback(lambda a: a, S(F4, 4, 3), x),
        [S(F4, 4, 3)],
        ["xla_ffi_python_gpu_callback|index = 0 : ui64|10|10||(<4x3xf32>) -> <4x3xf32>"],
    ),
    (
        "io_callback",
        lambda x: io_callback(lambda a: a, S(F4, 4, 3), x),
        [S(F4, 4, 3)],
        ["xla_ffi_python_gpu_callback|index = 0 : ui64|10|10||(<4x3xf32>) -> <4x3xf32>"],
    ),
    *(
        (
            f"buffer_callback, graph={graph}",
            lambda x, graph=graph: buffer_callback(
                lambda context, out, a: None,
                S(F4, 4, 3),
                input_output_aliases={0: 0},
                command_buffer_compatible=graph,
            )(x),
            [S(F4, 4, 3)],
            [f"{target}|index = 0 : ui64|10|10|0>0|(<4x3xf32>) -> <4x3xf32>"],
        )
        for graph, target in (
            (False, "xla_buffer_python_gpu_callback"),
            (True, "xla_buffer_python_gpu_callback_cmd_buffer"),
        )
    ),
]


@pytest.mark.parametrize(
    ("function", "avals", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_calls(function: Callable[..., Any], avals: list[Any], expected: list[str]) -> None:
    found = [
        "|".join(call[k] for k in ("target", "config", "in", "out", "aliases", "types"))
        for call in calls_of(function, *avals)
    ]
    assert found == expected


def test_threefry_by_the_kernel() -> None:
    with threefry_gpu_kernel_lowering(True):
        (call,) = calls_of(threefry2x32_p.bind, *[S("uint32")] * 2, *[S("uint32", 3, 4)] * 2)
        assert calls_of(threefry2x32_p.bind, *[S("uint32", 0)] * 4) == []
    assert call["target"] == "cu_threefry2x32_ffi"
    assert call["in"] == "10 10 10 10"
    assert call["types"].endswith("-> (<3x4xui32>, <3x4xui32>)")


def test_only_callbacks_that_act_are_effects() -> None:
    for function, expected in (
        (lambda x: dt.pure_callback(lambda a: a, S(F4, 2), x), ""),
        (lambda x: io_callback(lambda a: a, S(F4, 2), x), "yes"),
        (lambda x: io_callback(lambda a: a, S(F4, 2), x, ordered=True), "yes"),
    ):
        (call,) = calls_of(function, S(F4, 2))
        assert call["effect"] == expected


def test_left_vectors_of_cusolver_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="cuSOLVER finds no left eigenvectors"):
        calls_of(lambda x: L.eig(x, implementation=EIG["CUSOLVER"]), S(F4, 3, 3))


def test_schur_says_what_it_needs() -> None:
    with pytest.raises(NotImplementedError, match="schur cannot be computed on platform 'cuda'"):
        calls_of(L.schur, S(F4, 3, 3))


def test_old_cusolver_leaves_eigenvalues_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        generation, kernels = 12, "none"

        def has_geev(self) -> bool:
            return False

    monkeypatch.setattr("dovetail_cuda.lowerings.eigen.find_plugin", Old)
    monkeypatch.setattr("dovetail_cuda.lowerings.eigen.prepare_lapack", lambda: None)
    (call,) = calls_of(lambda x: L.eig(x, compute_left_eigenvectors=False), S(F4, 3, 3))
    assert call["target"] == "cuhybrid_eig_real"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (L.eig, (prepare_lapack,)),
        (lambda x: L.qr(x, pivoting=True), (prepare_lapack,)),
        (L.cholesky, ()),
    ],
)
def test_programs_that_need_lapack_say_so(
    function: Callable[..., Any], expected: tuple[Callable[[], None], ...]
) -> None:
    """To whoever loads them as bytes, too: without it they end the process."""
    lowered = dt.jit(lambda x: function(x)).lower(S(F4, 3, 3), lowering_platforms=("cuda",))
    assert lowered._module.preparations == expected


def test_programs_for_two_platforms_hold_the_rules_of_both() -> None:
    text = (
        dt.jit(lambda x: L.cholesky(x))
        .lower(S(F4, 3, 3), lowering_platforms=("cpu", "cuda"))
        .as_text()
    )
    assert "cusolver_potrf_ffi" in text
    assert "lapack_spotrf_ffi" in text or "dovetail_cholesky_f32" in text


DESCRIPTION = """
import sys
import dovetail_cuda.plugin as plugin
plugin.dovetail_backend_info(); plugin.dovetail_probe("cuda")
loaded = [n for n in sys.modules if n.partition(".")[0] in ("jaxlib", "numpy", "jax_plugins")
          or n.startswith("jax_cuda")]
print(loaded)
"""


def test_the_description_loads_nothing() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", DESCRIPTION], capture_output=True, text=True, check=True, timeout=60
    )
    assert answer.stdout.strip() == "[]"
