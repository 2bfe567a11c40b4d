"""Options that backends read when they start."""

from __future__ import annotations

from dovetail._core.base.option_kinds import Choice, Int, OptionalBool, Pairs, Text
from dovetail._core.base.process_options import StartupOption

__all__ = [
    "cpu_collectives_implementation",
    "cpu_enable_async_dispatch",
    "cpu_get_global_topology_timeout_minutes",
    "cpu_get_local_topology_timeout_minutes",
    "cpu_retained_memory",
    "cuda_visible_devices",
    "num_cpu_devices",
    "num_threads",
    "pjrt_client_create_options",
    "platform_name",
]

platform_name = StartupOption(
    "platform_name",
    Text(),
    None,
    "The default platform, among those that may be used; read when the first backend starts.",
)
num_cpu_devices = StartupOption(
    "num_cpu_devices",
    Int("a number of devices, or -1 to leave it to XLA_FLAGS", minimum=-1, refused=0),
    -1,
    "How many devices the CPU appears as; read when the CPU backend starts.",
)
cpu_collectives_implementation = StartupOption(
    "cpu_collectives_implementation",
    Choice("gloo", "mpi", "none", None),
    "gloo",
    "What CPUs of several processes exchange data by; read when the CPU backend starts.",
)
cpu_get_global_topology_timeout_minutes = StartupOption(
    "cpu_get_global_topology_timeout_minutes",
    Int("a number of minutes", minimum=1),
    5,
    "How long CPUs of several processes wait for each other; read when the CPU backend starts.",
)
cpu_get_local_topology_timeout_minutes = StartupOption(
    "cpu_get_local_topology_timeout_minutes",
    Int("a number of minutes", minimum=1),
    2,
    "How long the others wait for what a process says of its CPU; read when the CPU backend "
    "starts.",
)
cpu_enable_async_dispatch = StartupOption(
    "cpu_enable_async_dispatch",
    OptionalBool(),
    None,
    "Let programs run on the CPU while Python goes on, if there is more than one thread; None for "
    "from three threads, two devices or two processes on. Read when the CPU backend starts.",
)
"""Differs:
    In JAX the default is True. With two threads a program of 0.1 ms takes up to twice as long if
    it is handed to another thread. Whoever prepares data while such programs run sets it to True.

    >>> print(dt.config.option("cpu_enable_async_dispatch").default)
    None
"""
cpu_retained_memory = StartupOption(
    "cpu_retained_memory",
    Int("a number of bytes, or 0 to leave the C library's allocator as it is", minimum=0),
    1 << 30,
    "How much freed memory the process keeps for later arrays on the CPU, rather than have the "
    "system map and clear fresh pages for each; read when the CPU backend starts.",
    ours=True,
)
"""Differs:
    JAX has no such option. Without it glibc maps and clears fresh pages for every large
    result, which makes an addition of 1e7 numbers take four times as long.

    >>> print(dt.config.option("cpu_retained_memory").default)
    1073741824
"""
num_threads = StartupOption(
    "num_threads",
    Int("a number of threads, or 0 for one for each processor", minimum=0),
    0,
    "How many threads programs on the CPU compute with; 0 for as many as there are processors that "
    "the process may use. Read when the CPU backend starts.",
    ours=True,
)
"""Differs:
    JAX has no such option. The processors are those of the process's affinity, and no more than
    the quota of its control group, which a container has, allows to be busy.

    >>> print(dt.config.option("num_threads").default)
    0
"""
cuda_visible_devices = StartupOption(
    "cuda_visible_devices",
    Text(),
    "all",
    'The GPUs that this process uses, such as "0,2", counted among those that CUDA_VISIBLE_DEVICES '
    "leaves; read when the CUDA backend starts.",
)
pjrt_client_create_options = StartupOption(
    "pjrt_client_create_options",
    Pairs(),
    None,
    "Further options for a backend on a PJRT library other than the CPU's, such as "
    '"memory_fraction:0.5;preallocate:false"; read when the backend starts.',
)
