"""Compiles programs for GPUs that need not be there, and prints what came of it as JSON.

A process of its own, because a PJRT library stays in the process that has loaded it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.base.config import threefry_gpu_kernel_lowering
from dovetail._core.ops.calls.barriers import dce_sink_p
from dovetail.ad_checkpoint import checkpoint_name
from dovetail.experimental import io_callback, topologies
from dovetail.experimental.buffer_callback import buffer_callback
from dovetail.extend import Primitive
from dovetail.extend.pjrt import PjrtError
from dovetail.sharding import NamedSharding, PartitionSpec
from dovetail_cuda import explanations, ffi
from dovetail_cuda.options import client_options
from dovetail_cuda.runtime import load

L = lax.linalg


def programs(dtype: str) -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    """Programs that use every rule, with the shapes and dtypes of their arguments."""

    def s(*shape: int, kind: str = dtype) -> Any:
        return dt.ShapeDtypeStruct(shape, np.dtype(kind))

    real = np.zeros((), dtype).real.dtype.name
    f4 = s(4, 3, kind="float32")
    return {
        "cholesky": (L.cholesky, [s(2, 5, 5)]),
        "cholesky_update": (L.cholesky_update, [s(5, 5, kind=real), s(5, kind=real)]),
        "symmetric_product": (
            lambda a, c: L.symmetric_product(a, c, alpha=2, beta=3),
            [s(2, 5, 3, kind=real), s(2, 5, 5, kind=real)],
        ),
        "lu": (L.lu, [s(2, 5, 3)]),
        "qr": (L.qr, [s(2, 3, 5)]),
        "qr with pivots": (lambda x: L.qr(x, pivoting=True), [s(5, 3)]),
        "ormqr": (lambda *xs: L.ormqr(*xs, left=False), [s(5, 3), s(3), s(2, 5)]),
        "eigh": (L.eigh, [s(2, 5, 5)]),
        "eig": (lambda x: L.eig(x, compute_left_eigenvectors=False), [s(5, 5)]),
        "eig with left vectors": (L.eig, [s(2, 5, 5)]),
        "svd": (L.svd, [s(2, 5, 3)]),
        "svd by QR": (lambda x: L.svd(x, algorithm=L.SvdAlgorithm.QR), [s(3, 5)]),
        "svd by polar": (lambda x: L.svd(x, algorithm=L.SvdAlgorithm.POLAR), [s(5, 3)]),
        "tridiagonal": (L.tridiagonal, [s(5, 5)]),
        "tridiagonal_solve": (L.tridiagonal_solve, [s(5), s(5), s(5), s(5, 2)]),
        "tridiagonal_solve, perturbed": (
            lambda *xs: L.tridiagonal_solve(*xs, perturb_singular=True),
            [s(2, 5), s(2, 5), s(2, 5), s(2, 5, 2)],
        ),
        "triangular_solve": (L.triangular_solve, [s(3, 3), s(3, 3)]),
        "solve and differentiate": (
            dt.grad(lambda a, b: jnp.linalg.solve(a, b).real.sum()),
            [s(3, 3), s(3)],
        ),
        "random bits": (
            lambda k: dt.random.bits(dt.random.wrap_key_data(k)),
            [s(2, kind="uint32")],
        ),
        "pure_callback": (lambda x: dt.pure_callback(lambda a: a, f4, x), [f4]),
        "io_callback": (lambda x: io_callback(lambda a: a, f4, x, ordered=True), [f4]),
        "buffer_callback": (lambda x: buffer_callback(lambda c, o, a: None, f4)(x), [f4]),
        "buffer_callback in graphs": (
            lambda x: buffer_callback(lambda c, o, a: None, f4, command_buffer_compatible=True)(x),
            [f4],
        ),
        "offload": (
            dt.grad(
                dt.checkpoint(
                    lambda x: jnp.cos(checkpoint_name(jnp.sin(x), "kept") * 2).sum(),
                    policy=dt.checkpoint_policies.save_and_offload_only_these_names(
                        names_which_can_be_saved=[],
                        names_which_can_be_offloaded=["kept"],
                        offload_src="device",
                        offload_dst="pinned_host",
                    ),
                )
            ),
            [f4],
        ),
        "sink": (lambda x: (x, dce_sink_p.bind(x, prevent_mlir_dce=True))[0], [f4]),
        "product": (lambda x: jnp.tanh(x @ x.T).sum(), [s(64, 64)]),
    }


def compiled(device: Any, function: Callable[..., Any], avals: list[Any]) -> dict[str, Any]:
    try:
        with threefry_gpu_kernel_lowering(True):
            lowered = dt.jit(lambda *xs: function(*xs), device=device).lower(*avals)
        targets = re.findall(r"stablehlo\.custom_call @(\S+?)\(", lowered.as_text())
        text = lowered.compile().as_text()
        # The one is a mark, which becomes a copy to memory space 5, the host's.
        names = {"annotate_device_placement": "S(5)"}
        missing = [t for t in targets if names.get(t, t) not in text]
        return {"targets": targets, "lost": missing}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def said(action: Callable[[], Any]) -> str:
    try:
        return f"no error: {action()!r}"
    except Exception as error:
        return str(error)


def unknown_target(device: Any) -> None:
    primitive = Primitive("acme_scale")
    primitive.define("abstract", lambda x: x)
    primitive.define(
        "lower", lambda context, x: context.custom_call("acme_scale", [x], context.avals_out)[0]
    )
    dt.jit(primitive.bind, device=device).lower(np.float32(1)).compile()


def report() -> dict[str, Any]:
    """A product over two hosts of GPUs, whose contraction is divided."""
    described = topologies.get_topology_desc("h200:1x2x8", platform="cuda")
    mesh = topologies.make_mesh(described, (2, 8), ("hosts", "gpus"))

    def array(shape: tuple[int, ...], *spec: Any) -> Any:
        return dt.ShapeDtypeStruct(
            shape, "bfloat16", sharding=NamedSharding(mesh, PartitionSpec(*spec))
        )

    def function(a: Any, b: Any) -> Any:
        step = lambda c, _: (jnp.tanh(c @ b @ b.T), None)
        return lax.scan(step, a, None, length=10)[0]

    lowered = dt.jit(function).lower(
        array((4096, 1024), "hosts"), array((1024, 8192), None, "gpus")
    )
    made = lowered.compile().report()
    return {
        "flops": made.product_flops,
        "collectives": [(c.kind, c.axes, c.bytes, c.times, c.seconds) for c in made.collectives],
        "hardware": made.hardware.name if made.hardware else None,
        "notes": made.notes,
        "text": str(made),
    }


def main() -> None:
    dt.config.update("enable_x64", True)
    plugin, library = load()
    answer: dict[str, Any] = {"registered": sorted(name for name, _ in ffi.targets(plugin))}
    for model, dtypes in (
        ("h200", ["float32", "complex128"]),
        ("h100", ["complex64"]),
        ("a100", ["float64"]),
        ("b200", ["float32"]),
    ):
        (device,) = topologies.get_topology_desc(model, platform="cuda").devices
        answer[f"{model} kind"] = device.device_kind
        answer[model] = {
            f"{name}, {dtype}": compiled(device, *program)
            for dtype in dtypes
            for name, program in programs(dtype).items()
            if model in ("h200", "a100") or name in ("cholesky", "product")
        }
    answer["unknown target"] = said(lambda: unknown_target(device))
    answer["report"] = report()
    answer["four"] = len(topologies.get_topology_desc("h200:1x1x4", platform="cuda").devices)
    for key, name, options in (
        ("unknown model", "h900", {}),
        ("wrong shape", "h200:4", {}),
        ("broken description", "", {"target_config": "no: thing"}),
        ("two descriptions", "h200", {"target_config": "x"}),
    ):
        answer[key] = said(
            lambda name=name, options=options: topologies.get_topology_desc(
                name, platform="cuda", **options
            )
        )
    answer["options"] = said(
        lambda: library.make_client(
            client_options(
                {
                    "allocator": "bfc",
                    "collective_memory_size": 1,
                    "memory_fraction": 1,
                    "node_id": 0,
                    "num_nodes": 1,
                    "partition_index": 0,
                    "preallocate": False,
                    "visible_devices": "0",
                    "abort_collectives_on_failure": True,
                }
            )
        )
    )
    try:
        library.make_client(client_options({}))
    except PjrtError as error:
        answer["no client"] = explanations.why_no_client(str(error), explanations.Situation())
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
