"""What programs on the CUDA backend may use, and what of it this machine has.

Nothing here loads a driver or imports a plug-in: it looks for device files and installed wheels.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from dovetail.extend import BackendUnavailableError

# Not "buffer_callbacks": such programs exist, but those of the conformance kit access their memory
# through NumPy, which cannot reach GPU memory.
CAPABILITIES: Final = frozenset(
    {
        "complex",
        "donation",
        "eig",
        "float64",
        "host_callbacks",
        "offload",
        "processes",
        "serialization",
        "spmd",
    }
)

DEVICE_FILES: Final = ("/dev/nvidiactl", "/dev/nvidia0")
"""Made by NVIDIA's kernel driver."""

WINDOWS_FILES: Final = ("/dev/dxg", "/usr/lib/wsl/lib/libcuda.so.1")
"""In Windows's Linux subsystem: its device for GPUs of every vendor, and NVIDIA's driver for it."""

DRIVER_FILE: Final = "/proc/driver/nvidia/version"
"""Where the driver in the kernel says its version; Windows's Linux subsystem has none."""

GENERATIONS: Final = (13, 12)
"""Of CUDA, as far as there are wheels, the newest first."""

OLDEST_DRIVERS: Final = {13: 580, 12: 525}
"""NVIDIA's first driver for each generation of CUDA."""

# The first version of cuSOLVER with `geev`, as returned by its own version function.
_GEEV: Final = 11701


class CudaPlugin(NamedTuple):
    """An installed PJRT plug-in for CUDA.

    Attributes:
        generation: of CUDA.
        library: the PJRT library.
    """

    generation: int
    library: Path

    @property
    def kernels(self) -> str:
        """The package with the kernels; its wheel has the version of jaxlib."""
        return f"jax_cuda{self.generation}_plugin"

    @property
    def wheel(self) -> str:
        """The distribution of that package."""
        return self.kernels.replace("_", "-")

    @property
    def site(self) -> Path:
        """The folder that the wheels are installed in."""
        return self.library.parents[2]

    def has_geev(self) -> bool:
        """Whether the cuSOLVER that it was built with, or an older one, computes eigenvalues of
        general matrices."""
        try:
            versions = importlib.import_module(f"{self.kernels}._versions")
        except ImportError:
            return self.generation >= 13
        return bool(versions.cusolver_build_version() >= _GEEV)


def missing_hardware() -> str:
    """Why there is no usable GPU, as one sentence; empty if there is one."""
    driver = any(os.path.exists(path) for path in DEVICE_FILES)
    device, library = WINDOWS_FILES
    if not driver and not (os.path.exists(device) and os.path.exists(library)):
        windows = f", and {device} is there without {library}" if os.path.exists(device) else ""
        return (
            "there is no NVIDIA GPU with a loaded driver (none of "
            f"{', '.join(DEVICE_FILES)} exists{windows})."
        )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    # CUDA stops at the first entry that is not a GPU.
    if visible is not None and visible.split(",")[0].strip() in ("", "-1", "NoDevFiles"):
        return f"CUDA_VISIBLE_DEVICES={visible} hides every GPU."
    return ""


def installed_plugins() -> list[CudaPlugin]:
    """The installed plug-ins, newest first, whether they are usable or not."""
    plugins = []
    for generation in GENERATIONS:
        for folder in folders_of("jax_plugins"):
            library = folder / f"xla_cuda{generation}" / "xla_cuda_plugin.so"
            if library.is_file():
                plugins.append(CudaPlugin(generation, library))
                break
    return plugins


def find_plugin() -> CudaPlugin | None:
    """The plug-in to use, None if none is installed; imports nothing.

    Returns:
        The newest whose wheels match and which is not too new for the driver, if that reports its
        version; if there is none, the newest.
    """
    plugins = installed_plugins()
    if len(plugins) < 2:
        return next(iter(plugins), None)
    for plugin in plugins:
        if not wheel_problem(plugin) and not _is_too_new(plugin):
            return plugin
    return plugins[0]


def require_plugin(*, compiling: bool = False) -> CudaPlugin:
    """The plug-in to use; its wheels match.

    Args:
        compiling: whether it only compiles, which needs fewer packages.

    Raises:
        BackendUnavailableError: none is installed, or the wheel with its kernels is missing, or its
            version is not that of jaxlib.
    """
    plugin = find_plugin()
    if plugin is None:
        raise BackendUnavailableError(
            "the PJRT library for CUDA is not installed: "
            + (
                'pip install "dovetail-cuda[aot]" (about 260 MB).'
                if compiling
                else 'pip install "dovetail-cuda[cuda13]" (or [cuda12] for a driver older than '
                f"{OLDEST_DRIVERS[13]})."
            )
        )
    problem = wheel_problem(plugin, compiling=compiling)
    if problem:
        raise BackendUnavailableError(problem)
    return plugin


def wheel_problem(plugin: CudaPlugin, *, compiling: bool = False) -> str:
    """Why the wheels of a plug-in cannot be used, as one sentence; empty if they can.

    Args:
        plugin: one that is installed.
        compiling: whether it only compiles, which does not need NVIDIA's libraries.
    """
    needed = installed_version(folders_of("jaxlib"), "jaxlib")
    if not any(folders_of(plugin.kernels)):
        return (
            "the PJRT library for CUDA is installed without its kernels: pip install "
            f'"{plugin.wheel}=={needed or "VERSION"}", with the version of jaxlib.'
        )
    extra = "" if compiling else "[with-cuda]"
    for name in (plugin.wheel, f"jax-cuda{plugin.generation}-pjrt"):
        actual = installed_version(folders_of(plugin.kernels), name)
        if needed and actual and actual != needed:
            return (
                f"{name} {actual} does not go with jaxlib {needed}, since their versions must be "
                f'equal: pip install "{plugin.wheel}{extra}=={needed}".'
            )
    return ""


def reinstall(plugin: CudaPlugin) -> str:
    """The command that reinstalls the wheel with the kernels, and no other."""
    version = installed_version(folders_of(plugin.kernels), plugin.wheel)
    pinned = f"=={version}" if version else ""
    return f'pip install --force-reinstall --no-deps "{plugin.wheel}{pinned}"'


def _is_too_new(plugin: CudaPlugin) -> bool:
    """Whether the kernel's driver is known to be older than the plug-in's CUDA requires."""
    try:
        text = Path(DRIVER_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    version = re.search(r"\b(\d{3,})\.\d", text)
    return version is not None and int(version[1]) < OLDEST_DRIVERS[plugin.generation]


def folders_of(package: str) -> Iterator[Path]:
    """The folders of an importable package; imports nothing."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return
    if spec is not None:
        yield from (Path(folder) for folder in spec.submodule_search_locations or ())


def installed_version(folders: Iterator[Path], distribution: str) -> str:
    """The version of a distribution, from the folder where installers describe it.

    Args:
        folders: where its package, or another one installed with it, is.
        distribution: its name.

    Returns:
        The version; empty if there is none, or several.
    """
    prefix = re.sub(r"[-_.]+", "_", distribution)
    for folder in folders:
        versions = [path.stem.rpartition("-")[2] for path in _metadata(folder.parent, prefix)]
        if len(versions) == 1:
            return versions[0]
    return ""


def _metadata(site: Path, prefix: str) -> list[Path]:
    pattern = re.compile(rf"{re.escape(prefix)}-[^-]+\.dist-info", re.IGNORECASE)
    try:
        return sorted(path for path in site.iterdir() if pattern.fullmatch(path.name))
    except OSError:
        return []
