"""Every primitive, compiled for a device that need not be present.

The samples of the conformance kit are compiled, all of one primitive in one program; for primitives
whose parameters are programs, the functions of `PROGRAMS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import dovetail as dt
from dovetail import lax
from dovetail._core.base.config import enable_x64
from dovetail._core.ir.walk import jaxprs_in_params
from dovetail.experimental import buffer_callback, io_callback, xla_metadata
from dovetail.testing.keys import aval_of_sample
from dovetail.testing.sample import Sample, supported
from dovetail.testing.samples import all_samples, defined_primitives

__all__ = ["NEVER_LOWERED", "PROGRAMS", "Outcome", "compile_primitive", "compiled_primitives"]

Program = tuple[Callable[..., Any], tuple[Any, ...]]

X: Final = dt.ShapeDtypeStruct((4,), np.float32)
N: Final = dt.ShapeDtypeStruct((), np.int32)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of compiling a primitive.

    Attributes:
        primitive: its name.
        programs: the number of its applications that compiled or failed to.
        failures: the exceptions, by a description of the application.
        seconds: the time it took.
    """

    primitive: str
    programs: int
    failures: Mapping[str, str]
    seconds: float


# ------------------------------------------------------------------------------------- programs


def _host(x: Any) -> Any:
    return np.sin(x)


def _custom_jvp(x: Any) -> Any:
    f = dt.custom_jvp(lambda x: x * 2.0)
    f.defjvps(lambda t, out, x: t * 2.0)
    return f(x)


def _custom_vjp(x: Any) -> Any:
    f = dt.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct * 2.0,))
    return f(x)


def _custom_vmap(x: Any) -> Any:
    f = dt.custom_batching.custom_vmap(lambda x: x * 2.0)
    f.def_vmap(lambda size, batched, x: (x * 2.0, batched[0]))
    return f(x)


def _linear_call(x: Any) -> Any:
    double = lambda residuals, x: x * 2.0  # noqa: E731
    return dt.custom_derivatives.linear_call(double, double, (), x)


def _root(x: Any) -> Any:
    def solve(f: Any, guess: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, y: y - f(y), guess)

    return lax.custom_root(lambda y: y - x, x, solve, lambda g, y: y / g(1.0))


def _linear_solve(x: Any) -> Any:
    return lax.custom_linear_solve(lambda v: v * 2.0, x, lambda matvec, b: b / 2.0, symmetric=True)


def _offloaded(x: Any) -> Any:
    policy = dt.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["kept"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def f(x: Any) -> Any:
        y = dt.ad_checkpoint.checkpoint_name(lax.sin(x), "kept")
        return lax.reduce_sum(lax.sin(y), axes=(0,))

    return dt.grad(dt.checkpoint(f, policy=policy))(x)


def _tokens(x: Any) -> Any:
    return x, lax.after_all(lax.create_token(), lax.create_token())


def _write(context: Any, x: Any, out: Any) -> None:
    np.asarray(out)[...] = np.asarray(x)


def _printed(x: Any) -> Any:
    dt.debug.print("x = {}", x)
    return x


def _called(x: Any) -> Any:
    dt.debug.callback(_host, x)
    return x


#: Programs that contain a primitive without samples, by its name.
PROGRAMS: Final[Mapping[str, Program]] = {
    "after_all": (_tokens, (X,)),
    "buffer_callback": (
        lambda x: buffer_callback.buffer_callback(_write, dt.ShapeDtypeStruct((4,), np.float32))(x),
        (X,),
    ),
    "composite": (lambda x: lax.composite(lambda x: x * 2.0, name="my.double")(x), (X,)),
    "create_token": (_tokens, (X,)),
    "custom_jvp_call": (_custom_jvp, (X,)),
    "custom_linear_solve": (_linear_solve, (X,)),
    "custom_root": (_root, (X,)),
    "custom_vjp_call": (_custom_vjp, (X,)),
    "custom_vmap_call": (_custom_vmap, (X,)),
    "debug_callback": (_called, (X,)),
    "debug_print": (_printed, (X,)),
    "device_put": (lambda x: dt.device_put(x, dt.devices("cpu")[0]) * 2.0, (X,)),
    "io_callback": (lambda x: io_callback(_host, X, x), (X,)),
    "jit": (lambda x: dt.jit(lax.sin)(x), (X,)),
    "linear_call": (_linear_call, (X,)),
    "offload": (_offloaded, (X,)),
    "platform_index": (
        lambda x: lax.platform_dependent(x, cpu=lax.sin, cuda=lax.cos, default=lax.tan),
        (X,),
    ),
    "pure_callback": (lambda x: dt.pure_callback(_host, X, x), (X,)),
    "reduce": (lambda x: lax.reduce(x, np.float32(0), lambda a, b: a * b + a + b, (0,)), (X,)),
    "remat2": (dt.grad(dt.checkpoint(lax.sin)), (dt.ShapeDtypeStruct((), "f4"),)),
    "report_progress": (
        lambda x: lax.fori_loop(0, 4, lambda _, x: x * 2.0, x, progress="text"),
        (X,),
    ),
    "rng_uniform": (lambda x: lax.rng_uniform(np.float32(0), np.float32(1), (4,)) + x, (X,)),
    "xla_metadata_call": (xla_metadata.xla_metadata_call(lax.sin, color="red"), (X,)),
}

#: Primitives of which nothing is compiled ahead of time, with the reason.
NEVER_LOWERED: Final[Mapping[str, str]] = {
    "check": "checkify takes it out, and lowering one is an error that says so",
    "custom_lin": "linearize and grad take it out",
    "debug_check": "it becomes a debug_callback or nothing",
    "ffi_call": "it calls a user's own native code, which is built for one platform",
    "inspect_sharding": "it leaves nothing in a program",
    "remat_opt": "it stands for a custom_vjp under differentiation, which takes it out",
}


def compiled_primitives() -> list[str]:
    """Names of all primitives that programs can contain when they are lowered."""
    return sorted(defined_primitives().keys() - NEVER_LOWERED.keys())


# ---------------------------------------------------------------------------------- compilation


def compile_primitive(
    name: str, device: Any, capabilities: frozenset[str], most: int | None = None
) -> Outcome:
    """Compile the applications of a primitive.

    Args:
        name: the primitive's name.
        device: the device to compile for.
        capabilities: those of the platform, which determine the samples to leave out. If none would
            remain, a platform without float64 gets the samples for float64.
        most: the maximum number of samples to compile, in order; all if None.
    """
    start = time.perf_counter()
    failures: dict[str, str] = {}
    if name in PROGRAMS:
        function, arguments = PROGRAMS[name]
        count = 1
        if error := _error_of(function, arguments, device):
            failures["the program of dovetail.testing.ahead_of_time"] = error
    else:
        samples = samples_of(name, capabilities)[:most]
        count = len(samples)
        if not samples:
            failures["all samples"] = "the platform has no rule of its own to lower it"
        elif len(samples) == 1 or _error_of(*_together(name, samples), device):
            for sample in samples:
                if error := _error_of(*_together(name, [sample]), device):
                    failures[str(sample)] = error
    return Outcome(name, count, failures, time.perf_counter() - start)


def samples_of(name: str, capabilities: frozenset[str]) -> list[Sample]:
    """The samples of a primitive that a platform can hold, except those that raise."""
    samples = [s for s in all_samples()[name] if s.raises is None]
    return supported(samples, capabilities) or supported(samples, capabilities | {"float64"})


def _together(name: str, samples: Sequence[Sample]) -> Program:
    """A program of several applications, and its arguments."""
    primitive = defined_primitives()[name]

    def run_all(arguments: Any) -> Any:
        return [
            primitive.bind(*args, **sample.params)
            for sample, args in zip(samples, arguments, strict=True)
        ]

    avals = [[aval_of_sample(a) for a in sample.arrays()] for sample in samples]
    return run_all, ([[dt.ShapeDtypeStruct(a.shape, a.dtype) for a in row] for row in avals],)


def _error_of(function: Callable[..., Any], arguments: Sequence[Any], device: Any) -> str:
    """The exception from compiling a program, as text; an empty string if there is none."""
    try:
        with enable_x64(True):
            dt.jit(function, device=device).lower(*arguments).compile()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def contains(name: str, program: Program) -> bool:
    """Whether the primitive is in a program, or in one nested in it."""
    function, arguments = program
    pending = [dt.make_jaxpr(function)(*arguments).jaxpr]
    while pending:
        for equation in pending.pop().eqns:
            if equation.primitive.name == name:
                return True
            pending += [
                getattr(inner, "jaxpr", inner) for inner in jaxprs_in_params(equation.params)
            ]
    return False
