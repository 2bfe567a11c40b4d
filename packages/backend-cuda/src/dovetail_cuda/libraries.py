"""NVIDIA's libraries: whether they are installed, their packages, and the compiler's files.

The plug-in opens them by name when they are first needed, and finds those installed in the same
wheel folder as itself.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dovetail_cuda.capabilities import (
    OLDEST_DRIVERS,
    CudaPlugin,
    folders_of,
    installed_plugins,
    wheel_problem,
)


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """One library of NVIDIA's.

    Attributes:
        name: NVIDIA's name.
        sonames: the file to open, by generation of CUDA.
        packages: the package that provides it, by generation.
        function: the function that returns its version, without ``_get_version``; empty if there is
            none.
        scale: the divisor that leaves the first two numbers of the version.
    """

    name: str
    sonames: dict[int, str]
    packages: dict[int, str]
    function: str = ""
    scale: int = 100


LIBRARIES: Final = (
    Library(
        "the CUDA runtime",
        {13: "libcudart.so.13", 12: "libcudart.so.12"},
        {13: "nvidia-cuda-runtime", 12: "nvidia-cuda-runtime-cu12"},
        "cuda_runtime",
        10,
    ),
    Library(
        "nvJitLink",
        {13: "libnvJitLink.so.13", 12: "libnvJitLink.so.12"},
        {13: "nvidia-nvjitlink", 12: "nvidia-nvjitlink-cu12"},
    ),
    Library(
        "NVRTC",
        {13: "libnvrtc.so.13", 12: "libnvrtc.so.12"},
        {13: "nvidia-cuda-nvrtc", 12: "nvidia-cuda-nvrtc-cu12"},
    ),
    Library(
        "cuBLASLt",
        {13: "libcublasLt.so.13", 12: "libcublasLt.so.12"},
        {13: "nvidia-cublas", 12: "nvidia-cublas-cu12"},
    ),
    Library(
        "cuBLAS",
        {13: "libcublas.so.13", 12: "libcublas.so.12"},
        {13: "nvidia-cublas", 12: "nvidia-cublas-cu12"},
        "cublas",
    ),
    Library(
        "cuSPARSE",
        {13: "libcusparse.so.12", 12: "libcusparse.so.12"},
        {13: "nvidia-cusparse", 12: "nvidia-cusparse-cu12"},
        "cusparse",
    ),
    Library(
        "cuSOLVER",
        {13: "libcusolver.so.12", 12: "libcusolver.so.11"},
        {13: "nvidia-cusolver", 12: "nvidia-cusolver-cu12"},
        "cusolver",
    ),
    Library(
        "cuFFT",
        {13: "libcufft.so.12", 12: "libcufft.so.11"},
        {13: "nvidia-cufft", 12: "nvidia-cufft-cu12"},
        "cufft",
    ),
    Library(
        "cuDNN",
        {13: "libcudnn.so.9", 12: "libcudnn.so.9"},
        {13: "nvidia-cudnn-cu13", 12: "nvidia-cudnn-cu12"},
        "cudnn",
    ),
    Library(
        "CUPTI",
        {13: "libcupti.so.13", 12: "libcupti.so.12"},
        {13: "nvidia-cuda-cupti", 12: "nvidia-cuda-cupti-cu12"},
        "cupti",
    ),
    Library(
        "NCCL",
        {13: "libnccl.so.2", 12: "libnccl.so.2"},
        {13: "nvidia-nccl-cu13", 12: "nvidia-nccl-cu12"},
    ),
    Library(
        "NVSHMEM",
        {13: "libnvshmem_host.so.3", 12: "libnvshmem_host.so.3"},
        {13: "nvidia-nvshmem-cu13", 12: "nvidia-nvshmem-cu12"},
    ),
)
"""In an order in which each can be opened: what others need comes first."""


COMPILER_PACKAGES: Final = {
    13: ("nvidia-cuda-nvcc", "nvidia-nvvm"),
    12: ("nvidia-cuda-nvcc-cu12",),
}
"""What brings `ptxas` and `libdevice.10.bc`, by generation of CUDA."""

_MISSING: Final = re.compile(r"(lib[\w.+-]+\.so[\w.]*): cannot open shared object file")


def package_of(soname: str, generation: int) -> str:
    """The package that provides a library; empty if unknown."""
    for library in LIBRARIES:
        if library.sonames.get(generation) == soname:
            return library.packages[generation]
    return ""


def files_of(soname: str, site: Path | None = None) -> Iterator[Path]:
    """Where wheels have installed a library.

    Args:
        soname: the name of its file.
        site: the wheel folder to look at first.
    """
    roots = dict.fromkeys([*([site / "nvidia"] if site else []), *folders_of("nvidia")])
    for root in roots:
        if root.is_dir():
            yield from sorted(root.glob(f"*/lib/{soname}"))


def preload(plugin: CudaPlugin) -> None:
    """Open the libraries that are installed outside the plug-in's folder, where it does not
    look."""
    for library in LIBRARIES:
        soname = library.sonames[plugin.generation]
        files = list(files_of(soname, plugin.site))
        if files and not any(file.is_relative_to(plugin.site / "nvidia") for file in files):
            try:
                ctypes.CDLL(str(files[0]), mode=ctypes.RTLD_GLOBAL)
            except OSError:
                continue  # `problem` says why, if it matters


def problem(plugin: CudaPlugin, versions: Any = None) -> str:
    """What is wrong with driver and libraries, as one sentence; empty if nothing is.

    Args:
        plugin: the plug-in that needs them.
        versions: its module of version functions.
    """
    if versions is None:
        versions = importlib.import_module(f"{plugin.kernels}._versions")
    wrong = _driver_problem(plugin.generation, versions)
    if wrong:
        return wrong
    problems = {
        library: message
        for library in LIBRARIES
        if (message := _library_problem(library, plugin, versions))
    }
    absent = [
        library
        for library in problems
        if next(files_of(library.sonames[plugin.generation], plugin.site), None) is None
        and _called(versions, f"{library.function}_get_version") is None
    ]
    if len(absent) > 1:
        names = ", ".join(library.name for library in absent)
        packages = " ".join(library.packages[plugin.generation] for library in absent)
        return f"{names} are not installed: pip install {packages}."
    return next(iter(problems.values()), "")


def why_no_devices(plugin: CudaPlugin, versions: Any = None) -> str:
    """The driver's answer when asked for GPUs and it fails; empty if it works.

    Args:
        plugin: the plug-in whose wheel asks it.
        versions: its module of version functions.
    """
    if versions is None:
        versions = importlib.import_module(f"{plugin.kernels}._versions")
    try:
        versions.cuda_device_count()
    except RuntimeError as error:
        return str(error)
    return ""


def _driver_problem(generation: int, versions: Any) -> str:
    try:
        driver = versions.cuda_driver_get_version()
    except RuntimeError:
        driver = 0
    if not driver:
        return (
            "libcuda.so.1 cannot be loaded: it is part of NVIDIA's driver, which a container is "
            "given by --gpus=all."
        )
    if driver // 1000 >= versions.cuda_runtime_build_version() // 1000:
        return ""
    other = _instead() if generation == 13 and driver >= 12000 else ""
    return (
        f"the NVIDIA driver is for CUDA {driver // 1000}.{driver % 1000 // 10} at most, which is "
        f"too old for CUDA {generation}: update it to {OLDEST_DRIVERS[generation]} or newer{other}."
    )


def _instead() -> str:
    """The alternative to updating a driver that is for CUDA 12."""
    older = next((plugin for plugin in installed_plugins() if plugin.generation == 12), None)
    if older is None:
        return ' or pip install "dovetail-cuda[cuda12]" instead of the plug-in for CUDA 13'
    problem = wheel_problem(older)
    if problem:
        return f" or mend the plug-in for CUDA 12: {problem.removesuffix('.')}"
    return (
        " or pip uninstall jax-cuda13-plugin jax-cuda13-pjrt, so that the plug-in for CUDA 12 is "
        "used, which is installed"
    )


def _library_problem(library: Library, plugin: CudaPlugin, versions: Any) -> str:
    """What is wrong with one library that has a version."""
    if not hasattr(versions, f"{library.function}_get_version"):
        return ""
    build = _called(versions, f"{library.function}_build_version")
    actual = _called(versions, f"{library.function}_get_version")
    package, soname = library.packages[plugin.generation], library.sonames[plugin.generation]
    if actual is None:
        return _why_missing(library, soname, package, plugin)
    if build is None or actual // library.scale >= build // library.scale:
        return ""
    return (
        f"{library.name} ({soname}) is of version {actual}, and the plug-in was built for {build}: "
        f"pip install -U {package}, and look whether LD_LIBRARY_PATH names an older one."
    )


def _called(versions: Any, name: str) -> int | None:
    function: Callable[[], int] | None = getattr(versions, name, None)
    try:
        return None if function is None else function()
    except RuntimeError:
        return None


def _why_missing(library: Library, soname: str, package: str, plugin: CudaPlugin) -> str:
    file = next(files_of(soname, plugin.site), None)
    if file is None:
        return f"{library.name} ({soname}) is not installed: pip install {package}."
    try:
        ctypes.CDLL(str(file))
    except OSError as error:
        needed = _MISSING.search(str(error))
        other = package_of(needed[1], plugin.generation) if needed else ""
        if needed and needed[1] != soname:
            remedy = f": pip install {other}" if other else ""
            return f"{library.name} ({file}) needs {needed[1]}, which is not there{remedy}."
        return f"{library.name} ({file}) cannot be loaded ({error}): pip install -U {package}."
    return (
        f"{library.name} ({file}) is there, and does not say its version: pip install -U {package}."
    )


def compiler_folder(plugin: CudaPlugin) -> Path | None:
    """The folder of NVIDIA's compiler, if it is installed where the plug-in does not look."""
    for root in dict.fromkeys([plugin.site / "nvidia", *folders_of("nvidia")]):
        for file in sorted(root.glob("*/nvvm/libdevice/libdevice.10.bc")):
            folder = file.parents[2]
            if (folder / "bin" / "ptxas").is_file():
                # Files next to the plug-in take precedence, and are found automatically.
                return None if root.parent == plugin.site else folder
    return None
