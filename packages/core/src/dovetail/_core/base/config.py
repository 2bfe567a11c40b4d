"""The framework's options: one `Option` each, with its default and its documentation.

How options get their values is in `base/options.py`; what of JAX's there is none of, in
`base/unavailable_options.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dovetail._core.base import bindings
from dovetail._core.base.option_kinds import (
    Bool,
    Choice,
    DeviceName,
    Effort,
    Float,
    Int,
    Names,
    Platforms,
    Text,
)
from dovetail._core.base.options import Cell, Option, Options, OptionScope, check_environment
from dovetail._core.base.options import config as config
from dovetail._core.base.process_options import (
    Guard,
    ProcessOption,
    ThreadGuard,
    TransferGuards,
)
from dovetail._core.base.process_options import debug as debug
from dovetail._core.base.process_options import debug_log_modules as debug_log_modules
from dovetail._core.base.process_options import logging_level as logging_level
from dovetail._core.base.process_options import slow_compile_secs as slow_compile_secs
from dovetail._core.base.startup_options import (
    cpu_collectives_implementation as cpu_collectives_implementation,
)
from dovetail._core.base.startup_options import (
    cpu_enable_async_dispatch as cpu_enable_async_dispatch,
)
from dovetail._core.base.startup_options import (
    cpu_get_global_topology_timeout_minutes as cpu_get_global_topology_timeout_minutes,
)
from dovetail._core.base.startup_options import (
    cpu_get_local_topology_timeout_minutes as cpu_get_local_topology_timeout_minutes,
)
from dovetail._core.base.startup_options import cpu_retained_memory as cpu_retained_memory
from dovetail._core.base.startup_options import cuda_visible_devices as cuda_visible_devices
from dovetail._core.base.startup_options import num_cpu_devices as num_cpu_devices
from dovetail._core.base.startup_options import num_threads as num_threads
from dovetail._core.base.startup_options import (
    pjrt_client_create_options as pjrt_client_create_options,
)
from dovetail._core.base.startup_options import platform_name as platform_name
from dovetail._core.base.tracebacks import boundary
from dovetail._core.base.tracebacks import traceback_filtering as traceback_filtering
from dovetail._core.base.user_contexts import user_contexts

__all__ = ["Option", "Options", "config", "names_in_trace_key", "trace_key", "trace_state"]


class _DisableJit(Option[bool]):
    """The option `disable_jit`, whose scope takes an argument with another name."""

    @boundary
    def __call__(self, disable: bool = True) -> OptionScope[bool]:
        """A scope in which jit is disabled, or enabled again.

        Args:
            disable: whether to run operation by operation.
        """
        return super().__call__(disable)


BOOL = Bool()

_PRECISIONS = (
    None,
    "default",
    "high",
    "highest",
    "fastest",
    "bfloat16",
    "tensorfloat32",
    "float32",
    "bfloat16_3x",
    "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16",
    "F16_F16_F32",
    "BF16_BF16_BF16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "TF32_TF32_F32",
    "TF32_TF32_F32_X3",
    "F32_F32_F32",
    "F64_F64_F64",
)

# Numbers and their types.
enable_x64 = Option(
    "enable_x64",
    BOOL,
    False,
    "Keep 64-bit types. When off, 64-bit integers, floats and complex numbers become 32-bit.",
    affects_tracing=True,
)
"""Differs:
    Integers become the float of their own width wherever a function computes in floats, and
    8 and 16 bits become float32, with or without this option.

    >>> with dt.enable_x64(True):
    ...     print(jnp.sin(jnp.ones(2, "int8")).dtype, jnp.sin(jnp.ones(2, "int64")).dtype)
    float32 float64
"""
default_matmul_precision = Option(
    "default_matmul_precision",
    Choice(*_PRECISIONS),
    None,
    "Precision of matrix multiplications and convolutions that name none: an accuracy or an "
    "algorithm.",
    affects_tracing=True,
)
numpy_dtype_promotion = Option(
    "numpy_dtype_promotion",
    Choice("standard", "strict"),
    "standard",
    'How arguments of different dtypes combine; "strict" allows only Python scalars with arrays.',
    affects_tracing=True,
)
numpy_rank_promotion = Option(
    "numpy_rank_promotion",
    Choice("allow", "warn", "raise"),
    "allow",
    "What to do when arguments of different ranks are broadcast without saying so.",
    affects_tracing=True,
)
check_static_indices = Option(
    "check_static_indices",
    BOOL,
    False,
    "Raise an IndexError for an integer in x[...] that is known while tracing and out of bounds.",
    affects_tracing=True,
)
index_mode = Option(
    "index_mode",
    Choice("allow", "raise"),
    "allow",
    "What to do about positions out of bounds in indices that name no mode: by default they are "
    "moved into bounds where elements are read, and left out where elements are written; "
    '"raise" is an IndexError, which a compiled program raises when it runs.',
    affects_tracing=True,
    ours=True,
)
"""Differs:
    JAX has no such option. An index that names no mode can be made to raise where it is out
    of bounds: at once for arrays, when the program runs for traced positions.

    >>> with dt.index_mode("raise"):
    ...     jnp.arange(3)[7]
    Traceback (most recent call last):
        ...
    IndexError: index 7 is out of bounds for axis 0 with size 3, and index_mode ...
"""

allow_f16_reductions = Option(
    "allow_f16_reductions",
    BOOL,
    True,
    "Let lax.reduce_sum add up float16 and bfloat16; when off, that is an error.",
    affects_tracing=True,
)
"""Differs:
    Floats of 16 bits are added in 32 bits anyway. When the option is off, `lax.reduce_sum` and
    `lax.reduce` refuse them; sums that derivatives and functions of NumPy's make are left alone.

    >>> with dt.allow_f16_reductions(False):
    ...     print(jnp.sum(jnp.ones(3, "float16")))
    ...     dt.lax.reduce_sum(jnp.ones(3, "float16"), (0,))
    Traceback (most recent call last):
        ...
    ValueError: reduce_sum of f16[3] is refused, since the option allow_f16_reductions ...
"""
softmax_custom_jvp = Option(
    "softmax_custom_jvp",
    BOOL,
    False,
    "Differentiate nn.softmax by a rule that keeps its result alone for the backward pass.",
    affects_tracing=True,
)

# Random numbers.
default_prng_impl = Option(
    "default_prng_impl",
    Choice("threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg"),
    "threefry2x32",
    "The generator behind random.key and random.PRNGKey where none is named.",
    affects_tracing=True,
)
threefry_partitionable = Option(
    "threefry_partitionable",
    BOOL,
    True,
    "Generate threefry bits so that each device can compute its part alone.",
    affects_tracing=True,
)
high_dynamic_range_gumbel = Option(
    "high_dynamic_range_gumbel",
    BOOL,
    False,
    "Draw random.gumbel and random.categorical with a finer resolution of large results, where no "
    "mode is given.",
    affects_tracing=True,
)
threefry_gpu_kernel_lowering = Option(
    "threefry_gpu_kernel_lowering",
    BOOL,
    False,
    "Make threefry bits on NVIDIA GPUs by a ready-made kernel: programs compile sooner, and the "
    "bits take memory, since they are not made where they are used.",
    affects_tracing=True,
)
legacy_prng_key = Option(
    "legacy_prng_key",
    Choice("allow", "warn", "error"),
    "allow",
    "What to do when a raw uint32 array is used as a random key.",
)
enable_custom_prng = Option(
    "enable_custom_prng",
    BOOL,
    False,
    "Let random.PRNGKey make typed keys, as random.key does.",
    affects_tracing=True,
)
random_seed_offset = Option(
    "random_seed_offset",
    Int(),
    0,
    "A number added to every seed given to random.key and random.PRNGKey.",
    affects_tracing=True,
)

export_ignore_forward_compatibility = Option(
    "export_ignore_forward_compatibility",
    BOOL,
    False,
    "Let dovetail.export write the newest version of StableHLO, which older programs may not read.",
)

# Where programs run.
platforms = Option(
    "platforms",
    Platforms(),
    None,
    "The platforms that may be used, most wanted first; None lets every installed backend take "
    "part.",
)
disabled_plugins = Option(
    "disabled_plugins",
    Names(),
    None,
    "The plug-ins that are not imported, by the names of their entry points, which for backends "
    "are the platforms, or by their distributions. An extension that is in use stays.",
    ours=True,
)
slow_plugin_seconds = Option(
    "slow_plugin_seconds",
    Float(),
    10.0,
    "After how many seconds in a plug-in that is imported or started a message on stderr names it; "
    "0 for no message.",
    ours=True,
)
default_device = Option(
    "default_device",
    DeviceName(),
    None,
    "Where data that is committed to no device is placed.",
    affects_tracing=True,
)
cpu_kernels = Option(
    "cpu_kernels",
    BOOL,
    True,
    "Use the native kernels of the CPU backend, such as that which sorts, where they were built; "
    "eager calls of small arrays then need no program.",
    affects_tracing=True,
    ours=True,
)
"""Differs:
    JAX has no such option. Without kernels, the same programs run by what XLA offers.

    >>> with dt.cpu_kernels(False):
    ...     print(jnp.sort(jnp.array([3, 1, 2])))
    [1 2 3]
"""
direct_calls = Option(
    "direct_calls",
    Choice("none", "eager", "all"),
    "all",
    "Which calls with small arrays are computed without a program, where the backend can: none, "
    "eager ones, or those of small functions under jit, too.",
    affects_tracing=True,
    ours=True,
)
"""Differs:
    JAX has no such option. The results differ from those of programs by rounding.

    >>> with dt.direct_calls("none"):
    ...     print(jnp.arange(3.0) * 2)
    [0. 2. 4.]
"""
process_timeout = Option(
    "process_timeout",
    Int("a number of seconds", minimum=1),
    300,
    "How many seconds processes wait for each other before a program runs for the first time, and "
    "in dovetail.experimental.multihost_utils; then an error names those that have not come.",
    ours=True,
)
"""Differs:
    JAX has no such option: processes that run different programs wait for ever.

    >>> print(dt.config.option("process_timeout").default)
    300
"""

# What moves between the host and devices.
_GUARD_LEVELS = Choice(None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")
transfer_guard_host_to_device = Guard(
    "transfer_guard_host_to_device",
    _GUARD_LEVELS,
    "host_to_device",
    bindings.guards.TransferGuardLevel,
    "Whether data may move from the host to devices: as `transfer_guard`, for this direction.",
)
transfer_guard_device_to_device = Guard(
    "transfer_guard_device_to_device",
    _GUARD_LEVELS,
    "device_to_device",
    bindings.guards.TransferGuardLevel,
    "Whether data may move from device to device: as `transfer_guard`, for this direction.",
    affects_calls=True,  # C++ moves arguments of calls that it knows without asking the guard
)
transfer_guard_device_to_host = Guard(
    "transfer_guard_device_to_host",
    _GUARD_LEVELS,
    "device_to_host",
    bindings.guards.TransferGuardLevel,
    "Whether data may move from devices to the host: as `transfer_guard`, for this direction. "
    "Reading arrays on the CPU moves nothing.",
)
transfer_guard = TransferGuards(
    "transfer_guard",
    _GUARD_LEVELS,
    (
        transfer_guard_host_to_device,
        transfer_guard_device_to_device,
        transfer_guard_device_to_host,
    ),
    'Whether data may move without being asked to: "log" and "disallow" concern implicit '
    "transfers, such as a NumPy array in an addition; "
    '"log_explicit" and "disallow_explicit" concern device_put and device_get as well.',
)
"""Differs:
    Constants that a program is traced or compiled with are part of it: they may move.

    >>> import numpy as np
    >>> with dt.transfer_guard("disallow"):
    ...     print(dt.jit(lambda x: x + jnp.asarray(np.ones(2)))(dt.device_put(np.zeros(2))))
    ...     try:
    ...         jnp.asarray(np.ones(2))
    ...     except RuntimeError as error:
    ...         print("Disallowed host-to-device transfer" in str(error))
    [1. 1.]
    True
"""
array_garbage_collection_guard = Guard(
    "array_garbage_collection_guard",
    Choice(None, "allow", "log", "fatal"),
    "garbage_collect_array",
    bindings.guards.GarbageCollectionGuardLevel,
    "What to do when an array is freed by the garbage collector, late, since it was part of a "
    'reference cycle: nothing, "log" an error, or end the process ("fatal").',
)
thread_guard = ThreadGuard(
    "thread_guard",
    BOOL,
    False,
    "Refuse programs of several processes in any thread but the one that switched this on.",
)

# How programs are compiled.
optimization_level = Option(
    "optimization_level",
    Effort(),
    "UNKNOWN",
    'How much time compilers spend on making programs fast: "O0" for little, as tests want it; '
    '"UNKNOWN" leaves it to them.',
    affects_tracing=True,
)
"""Differs:
    The option is part of the keys of traces and of programs, so that programs of several
    levels live side by side in a process.

    >>> double = dt.jit(lambda x: 2 * x)
    >>> with dt.optimization_level("O0"):
    ...     print(double(3))
    6
"""

memory_fitting_level = Option(
    "memory_fitting_level",
    Effort(),
    "O2",
    "How much compilers do to make programs fit into the memory.",
    affects_tracing=True,
)
compiler_enable_remat_pass = Option(
    "compiler_enable_remat_pass",
    BOOL,
    True,
    "Let XLA compute values again that do not fit into the memory.",
    affects_tracing=True,
)
include_full_tracebacks_in_locations = Option(
    "include_full_tracebacks_in_locations",
    BOOL,
    True,
    "Write with each operation of a lowered program the calls in the user's code that led to it, "
    "and not only the innermost.",
)
traceback_in_locations_limit = Option(
    "traceback_in_locations_limit",
    Int("a number of calls, or -1 for all", minimum=-1),
    10,
    "How many of these calls are written; deeper ones cost time and space in every program.",
)
dump_ir_to = Option(
    "dump_ir_to",
    Text(),
    None,
    "A folder into which every program that is compiled is written as StableHLO; "
    '"sponge" for the folder that TEST_UNDECLARED_OUTPUTS_DIR names.',
)
include_debug_info_in_dumps = Option(
    "include_debug_info_in_dumps",
    BOOL,
    True,
    "Write the lines of the user's code into what `dump_ir_to` writes.",
)

# Finding mistakes.
disable_jit = _DisableJit(
    "disable_jit",
    BOOL,
    False,
    "Run jit-compiled functions and control flow operation by operation, in Python.",
    affects_tracing=True,
)
"""Differs:
    Checkpointed functions, too, run as Python; scans of no elements and batched conditions
    work.

    >>> with dt.disable_jit():
    ...     print(dt.checkpoint(lambda x: type(x).__name__)(jnp.ones(2)))
    Array
"""
debug_nans = Option(
    "debug_nans",
    BOOL,
    False,
    "Check every result for NaN, and name the operation that made the first one.",
    affects_tracing=True,
)
"""Differs:
    The program is run again operation by operation, and the error names the operation that
    made the nan, its line, pass and operands, and known traps. Programs with effects run once.

    >>> with dt.debug_nans():
    ...     dt.jit(lambda x: jnp.log(x) + 1)(-1.0)
    Traceback (most recent call last):
        ...
    FloatingPointError: invalid value (nan) encountered in log at <doctest ...
"""
debug_infs = Option(
    "debug_infs",
    BOOL,
    False,
    "Check every result for infinities, and name the operation that made the first one.",
    affects_tracing=True,
)
debug_key_reuse = Option(
    "debug_key_reuse",
    BOOL,
    False,
    "Raise when a random key is used for the second time, and name both lines. On under pytest.",
    affects_calls=True,
    under_pytest=True,
)
"""Differs:
    It is on in tests that pytest runs, unless something else is said. The error names both lines.
    Keys are told apart one by one, also in arrays of keys and at positions that are known; what
    merely holds a key again, or takes it out of an array, uses nothing.

    >>> from dovetail import random
    >>> with dt.debug_key_reuse():
    ...     keys = random.split(random.key(0))
    ...     x = random.normal(keys[0]) + random.normal(keys[1])
    ...     y = random.uniform(keys[0])
    Traceback (most recent call last):
        ...
    dovetail.errors.KeyReuseError: a random key was used at <doctest ...
"""
debug_checks = Option(
    "debug_checks",
    BOOL,
    True,
    "Run the checks of dovetail.debug.check; off, they are no part of programs.",
    affects_tracing=True,
    ours=True,
)
check_tracer_leaks = Option(
    "check_tracer_leaks",
    BOOL,
    False,
    "Raise when a tracer outlives the transformation that made it.",
    affects_tracing=True,
)
"""Differs:
    The error says where the tracer was made, and the shortest chain of references to it
    from something that has a name in the user's code.

    >>> kept = []
    >>> try:
    ...     with dt.check_tracer_leaks():
    ...         dt.jit(kept.append)(1.0)
    ... except dt.errors.UnexpectedTracerError as error:
    ...     print("kept[0], where kept is a global" in str(error))
    True
"""
auto_pcast = Option(
    "auto_pcast",
    BOOL,
    True,
    "Cast operands in shard_map so that they vary along the same axes; an error if off.",
    affects_tracing=True,
)
enable_checks = Option(
    "enable_checks",
    BOOL,
    False,
    "Run the jaxpr checker on the result of every transformation.",
    affects_tracing=True,
)
log_compiles = Option(
    "log_compiles",
    BOOL,
    False,
    "Log a warning with the duration of every tracing, lowering and compilation.",
)
log_checkpoint_residuals = Option(
    "log_checkpoint_residuals",
    BOOL,
    False,
    "Log a warning with what a checkpointed function keeps when it is differentiated.",
)
explain_cache_misses = Option(
    "explain_cache_misses",
    BOOL,
    False,
    "Log why a function had to be traced or a program compiled, and what to change.",
)
"""Differs:
    Every trace and every compilation is explained, those of eager operations included: the
    line, the time, the argument by its path, the static value or the option, and what to
    change.

    >>> import logging
    >>> records = []
    >>> handler = logging.Handler()
    >>> handler.emit = lambda record: records.append(record.getMessage())
    >>> logger = logging.getLogger("dovetail")
    >>> logger.addHandler(handler)
    >>> with dt.explain_cache_misses(True):
    ...     _ = dt.jit(lambda vector: vector * 2)(jnp.ones(3))
    >>> logger.removeHandler(handler)
    >>> any("<lambda>" in record for record in records)
    True
"""
no_tracing = Option(
    "no_tracing",
    BOOL,
    False,
    "Refuse to trace a jit-compiled function: every call must be one that was made before.",
)
"""Differs:
    A trace is an error that gives the reason which `explain_cache_misses` gives.

    >>> with dt.no_tracing(True):
    ...     dt.jit(lambda x: x + 1)(1.0)
    Traceback (most recent call last):
        ...
    RuntimeError: <lambda>, called at ... would have to be traced, and ...
"""
no_execution = Option(
    "no_execution",
    BOOL,
    False,
    "Refuse to run programs; they are traced and compiled, and data may be moved.",
    affects_calls=True,
)
embedded_constants_max_bytes = Option(
    "embedded_constants_max_bytes",
    Int("a number of bytes", minimum=0),
    4096,
    "Constants of more bytes are arguments of programs; others are part of them.",
    affects_tracing=True,
)
captured_constants_warn_bytes = Option(
    "captured_constants_warn_bytes",
    Int("a number of bytes, or -1 for no warning", minimum=-1),
    2_000_000_000,
    "Warn when a compiled function has captured at least this many bytes of constants.",
)
captured_constants_report_frames = Option(
    "captured_constants_report_frames",
    Int("how many lines, or -1 for all", minimum=-1),
    0,
    "How many lines of code such a warning shows for each of the largest constants.",
)

# Messages.
pprint_use_color = Option(
    "pprint_use_color", BOOL, True, "Print jaxprs in colours where the terminal has them."
)
progress_bars = ProcessOption(
    "progress_bars", BOOL, True, "Show the bars of loops that are called with `progress`."
)

# Compiled programs on disk.
compilation_cache_dir = Option(
    "compilation_cache_dir",
    Text(),
    None,
    "The folder for compiled programs that later processes use; in the user's cache if None.",
)
enable_compilation_cache = Option(
    "enable_compilation_cache", BOOL, True, "Keep compiled programs on disk for later processes."
)
"""Differs:
    Programs are kept on disk unless this option is off. A damaged or foreign entry is
    compiled again; a folder that others can write to is refused, because loading a program
    runs its code.

    >>> print(dt.config.option("enable_compilation_cache").default)
    True
"""
compilation_cache_include_metadata_in_key = Option(
    "compilation_cache_include_metadata_in_key",
    BOOL,
    False,
    "Keep programs on disk apart that differ in names and lines of code alone, so that profiles "
    "show their own.",
)
compilation_cache_max_size = Option(
    "compilation_cache_max_size",
    Int("a number of bytes, or -1 for no limit", minimum=-1),
    1 << 30,
    "The size above which the least recently used programs are removed from the cache on disk.",
)
persistent_cache_min_compile_time_secs = Option(
    "persistent_cache_min_compile_time_secs",
    Float(),
    0.0,
    "Programs that compile in less than this many seconds are not written to disk.",
)
persistent_cache_min_entry_size_bytes = Option(
    "persistent_cache_min_entry_size_bytes",
    Int("a number of bytes, or -1 for no limit", minimum=-1),
    0,
    "Programs that take fewer bytes than this are not written to disk.",
)
raise_persistent_cache_errors = Option(
    "raise_persistent_cache_errors",
    BOOL,
    False,
    "Raise errors of the cache on disk, which are otherwise warnings.",
)

trace_state: Cell[Any] = Cell("dovetail_trace_state", None, include_in_jit_key=True)
"""Set by the trace layer while a trace is current, to keep the C++ jit off its fast path."""

named_axes: Cell[tuple[Any, ...]] = Cell("dovetail_named_axes", (), include_in_trace_context=True)
"""The axes that collective operations can name: see `trace/named_axes.py`."""

disallow_mesh_context_manager = Option(
    "disallow_mesh_context_manager",
    BOOL,
    False,
    "Refuse `with mesh:`, so that dovetail.set_mesh sets the mesh everywhere.",
)
current_mesh: Cell[Any] = Cell(
    "dovetail_mesh", None, include_in_jit_key=True, include_in_trace_context=True
)
"""The mesh that `set_mesh` and `use_abstract_mesh` have set; None if there is none."""

default_mesh: Cell[Any] = Cell("dovetail_default_mesh", None, include_in_jit_key=True)
"""The mesh of `set_mesh`: programs run on its devices if their arguments do not say where."""

forbidden_axes: Cell[frozenset[Any]] = Cell(
    "dovetail_no_collectives", frozenset(), include_in_jit_key=True, include_in_trace_context=True
)
"""The axes of meshes along which `no_collectives` forbids to communicate."""

callback_depth: Cell[int] = Cell("dovetail_callback_depth", 0, include_in_jit_key=True)
"""Which of the callbacks that run now this thread is in, 0 for none.

A call in a callback must not wait for the call around it, as the C++ jit has calls of one signature
do while the first of them is being served.
"""

post_hook: Cell[Callable[..., None] | None] = Cell("dovetail_post_hook", None)
"""Called after every call on the fast path: ``hook(function, args, kwargs, result)``."""

if not bindings.jax_owns_jit_state():
    # The slots are process-wide, and the last writer wins: if jax is imported, its objects stay.
    bindings._jax.jax_jit.set_enable_x64_state(enable_x64)
    bindings._jax.jax_jit.set_disable_jit_state(disable_jit)
    bindings._jax.jax_jit.set_post_hook_state(post_hook)


trace_key: Callable[[], tuple[Any, ...]] = bindings.trace_context
"""The values of all options that affect tracing: a key for caches that are filled while tracing.

The tuple is made in C++. In a process that has imported jax, the values of jax's own options are
part of it.
"""


def names_in_trace_key() -> list[str]:
    """The names of the options whose values `trace_key` gives, in its order."""
    return [
        *(name for name in config if config.option(name).affects_tracing),
        "named_axes",
        "mesh",
        "no_collectives",
        *["make_user_context(...)"] * user_contexts(),
    ]


check_environment()
