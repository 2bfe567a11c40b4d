"""The hooks by which core finds and starts the CPU backend."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from dovetail.extend import (
    BackendInfo,
    Client,
    HostFunction,
    LoweringTable,
    ProcessGroup,
    hookimpl,
)
from dovetail_cpu.capabilities import CAPABILITIES


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Describe the backend: the platform every machine has, with the lowest priority."""
    return BackendInfo(
        platform="cpu",
        api=(1, 4),
        priority=0,
        description=_description,
        capabilities=CAPABILITIES,
    )


def _description() -> str:
    from dovetail_cpu.kernel_library import library  # deferred: for the doctor alone

    file = library()
    kernels = "no native kernels were built" if file is None else f"native kernels for {file.stem}"
    return f"XLA's CPU compiler, in jaxlib; {kernels}"


@hookimpl
def dovetail_probe(platform: str) -> str:
    """A CPU is always there."""
    return ""


@hookimpl
def dovetail_make_client(
    platform: str, options: Mapping[str, object], processes: ProcessGroup | None
) -> Client:
    """Create the client.

    Args:
        platform: `"cpu"`.
        options: `num_devices` (int, or None for the value in `XLA_FLAGS`, which is 1 by default):
            the number of virtual devices; `num_threads` (int, or None to leave it to XLA): the size
            of its thread pool, and the most threads of the BLAS that LAPACK calls; `asynchronous`
            (bool or None, the default): whether calls return before their computation ends, which
            with one thread and one device they never do, and with two threads only if it is True;
            `retained_memory` (int, default 0): bytes of freed memory that the process keeps for
            later arrays, 0 to leave that to the C library; and with several processes `collectives`
            (`"gloo"`, `"mpi"`, `"none"` or None, default `"gloo"`): what they exchange data by;
            `local_topology_timeout` and `global_topology_timeout` (int, default 2 and 5): minutes
            for which they wait for each other.
        processes: the processes whose devices the client has.
    """
    from dovetail_cpu.runtime import make_client  # deferred: loads jaxlib

    return make_client(options, processes)


_QUICK: Final = frozenset(
    {
        *("builtin.module", "func.func", "func.return"),
        *(
            f"stablehlo.{name}"
            for name in [
                "abs",
                "add",
                "and",
                "ceil",
                "clamp",
                "compare",
                "convert",
                "divide",
                "floor",
                "is_finite",
                "maximum",
                "minimum",
                "multiply",
                "negate",
                "not",
                "or",
                "select",
                "sign",
                "sqrt",
                "subtract",
                "xor",
            ]
        ),
    }
)
_ELEMENTWISE: Final = _QUICK | frozenset(
    {
        *(
            f"stablehlo.{name}"
            for name in [
                "atan2",
                "bitcast_convert",
                "cbrt",
                "cosine",
                "count_leading_zeros",
                "exponential",
                "exponential_minus_one",
                "log",
                "log_plus_one",
                "logistic",
                "popcnt",
                "power",
                "reduce_precision",
                "remainder",
                "round_nearest_afz",
                "round_nearest_even",
                "rsqrt",
                "shift_left",
                "shift_right_arithmetic",
                "shift_right_logical",
                "sine",
                "tan",
                "tanh",
            ]
        ),
    }
)
#: What is fused with elementwise operations.
_MOVES: Final = frozenset(
    f"stablehlo.{name}" for name in ("broadcast_in_dim", "constant", "reshape", "slice")
)
#: Loops over so many elements take no longer in one thread than in two, which have to be woken.
_UNDIVIDED: Final = 1 << 16
#: The same, of quick operations, with two threads.
_UNDIVIDED_IF_QUICK: Final = 3 << 16
#: A masked loop takes ten times as long as another; more threads than these make up for it.
_FEW_THREADS: Final = 4
# By the numbers in XLA's enumeration `EffortLevel`.
_LEVELS: Final[dict[object, int]] = {9: 0, 19: 1, 29: 2, 39: 3}


@hookimpl
def dovetail_compile_options(
    platform: str,
    options: Mapping[str, bool | float | str],
    operations: frozenset[str],
    shapes: frozenset[tuple[int, ...]],
) -> Mapping[str, int | str]:
    """The compile options of a program.

    By default, XLA compiles programs of a few elementwise operations, such as eager calls, with an
    emitter of tiles of 16 elements. It is faster for transposed and repeated elements, but
    otherwise takes up to twice as long as the other emitter, until jaxlib 0.12. With one thread,
    loops are not divided for the two of its pool (`runtime.fewest_threads`), which would take
    turns; nor are those over few elements, which end before another thread has begun, and those
    over vectors that a few threads cannot divide evenly: XLA would mask every store. The other
    option is XLA's name for the level that `optimization_level` requests.
    """
    from dovetail_cpu import runtime  # deferred: loads jaxlib

    level = _LEVELS.get(options.get("optimization_level"))
    chosen: dict[str, int | str] = (
        {} if level is None else {"xla_backend_optimization_level": level}
    )
    if runtime.TILES_ARE_SLOW and operations and operations <= _ELEMENTWISE:
        chosen["xla_backend_extra_options"] = "xla_cpu_disable_tiled_emitter"
    most = max(map(math.prod, shapes), default=0)
    is_quick = runtime.num_threads() <= 2 and operations <= _QUICK | _MOVES
    few = 0 < most <= (_UNDIVIDED_IF_QUICK if is_quick else _UNDIVIDED)
    if runtime.computes_alone() or few or _has_uneven_vector(shapes, most):
        chosen["xla_disable_hlo_passes"] = "cpu-parallel-task-assigner"
    return chosen


def _has_uneven_vector(shapes: frozenset[tuple[int, ...]], most: int) -> bool:
    """Whether an array, one of the largest, has parts of different lengths if it is divided."""
    from dovetail_cpu import kernel_library, runtime  # deferred: loads jaxlib

    threads = runtime.num_threads()
    if threads > _FEW_THREADS or kernel_library.has_masks():
        return False
    large = [shape for shape in shapes if math.prod(shape) > max(_UNDIVIDED, most // 4)]
    return any(shape[-1] % -(-threads // math.prod(shape[:-1])) for shape in large)


@hookimpl
def dovetail_lowerings(platform: str) -> LoweringTable:
    """Lowerings that suit XLA's CPU compiler better than the primitives' own."""
    from dovetail_cpu.lowerings import LOWERINGS  # deferred: needed once a program is lowered

    return LOWERINGS


@hookimpl
def dovetail_host_functions(platform: str) -> Mapping[tuple[str, str], HostFunction]:
    """Elementwise functions of small arrays."""
    from dovetail_cpu.host_functions import host_functions  # deferred: for eager calls alone

    return host_functions()
