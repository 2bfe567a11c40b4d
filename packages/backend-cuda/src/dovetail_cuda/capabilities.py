"""What programs on the CUDA backend may use, and what of it this machine has.

Nothing here loads a driver or imports a plug-in: it looks for device files and installed wheels.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dovetail.extend import BackendUnavailableError

CAPABILITIES: Final = frozenset(
    {
        "complex",
        "donation",
        "eig",
        "float64",
        "host_callbacks",
        "offload",
        "serialization",
        "spmd",
    }
)

DEVICE_FILES: Final = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")
"""Made by NVIDIA's kernel driver; the last one by Windows for its Linux subsystem."""

GENERATIONS: Final = (13, 12)
"""Of CUDA, as far as there are wheels, the newest first."""

# The first version of cuSOLVER that has `geev`, as its own version function writes it.
_GEEV: Final = 11701


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed PJRT plug-in for CUDA.

    Attributes:
        generation: of CUDA.
        library: the PJRT library.
    """

    generation: int
    library: Path

    @property
    def kernels(self) -> str:
        """The package with the kernels, whose wheel is versioned with jaxlib."""
        return f"jax_cuda{self.generation}_plugin"

    @property
    def site(self) -> Path:
        """The folder that the wheels are installed in."""
        return self.library.parents[2]

    def has_geev(self) -> bool:
        """Whether the cuSOLVER that it was built with, or an older one, finds eigenvalues of
        general matrices."""
        try:
            versions = importlib.import_module(f"{self.kernels}._versions")
        except ImportError:
            return self.generation >= 13
        return bool(versions.cusolver_build_version() >= _GEEV)


def missing_hardware() -> str:
    """Why there is no GPU to use, as one sentence; empty when there is one."""
    if not any(os.path.exists(path) for path in DEVICE_FILES):
        return (
            "there is no NVIDIA GPU with a loaded driver (none of "
            f"{', '.join(DEVICE_FILES)} exists)."
        )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1", "NoDevFiles"):
        return f"CUDA_VISIBLE_DEVICES={visible} hides every GPU."
    return ""


def find_plugin() -> Plugin | None:
    """The newest plug-in that is installed, None if there is none; imports nothing."""
    for generation in GENERATIONS:
        for folder in folders_of("jax_plugins"):
            library = folder / f"xla_cuda{generation}" / "xla_cuda_plugin.so"
            if library.is_file():
                return Plugin(generation, library)
    return None


def require_plugin() -> Plugin:
    """The newest plug-in that is installed, of the version of jaxlib.

    Raises:
        BackendUnavailableError: none is, or the wheel with its kernels is missing, or its version
            is not that of jaxlib.
    """
    plugin = find_plugin()
    if plugin is None:
        raise BackendUnavailableError(
            "the PJRT library for CUDA is not installed: "
            'pip install "dovetail-cuda[cuda13]" (or [cuda12] for a driver older than 580).'
        )
    if not any(folders_of(plugin.kernels)):
        raise BackendUnavailableError(
            f"the PJRT library for CUDA is installed without its kernels: pip install "
            f'"{_wheel(plugin)}=={installed_version(folders_of("jaxlib"), "jaxlib") or "VERSION"}"'
            ", with the version of jaxlib."
        )
    needed = installed_version(folders_of("jaxlib"), "jaxlib")
    for name in (_wheel(plugin), f"jax-cuda{plugin.generation}-pjrt"):
        found = installed_version(folders_of(plugin.kernels), name)
        if needed and found and found != needed:
            raise BackendUnavailableError(
                f"{name} {found} does not go with jaxlib {needed}, since their versions must be "
                f'equal: pip install "{_wheel(plugin)}[with-cuda]=={needed}".'
            )
    return plugin


def _wheel(plugin: Plugin) -> str:
    return plugin.kernels.replace("_", "-")


def folders_of(package: str) -> Iterator[Path]:
    """The folders of an importable package; imports nothing."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return
    if spec is not None:
        yield from (Path(folder) for folder in spec.submodule_search_locations or ())


def installed_version(folders: Iterator[Path], distribution: str) -> str:
    """The version of a distribution by the folder in which installers describe it.

    Args:
        folders: where its package, or another one that is installed with it, lies.
        distribution: its name.

    Returns:
        The version; empty where there is none, or several.
    """
    prefix = re.sub(r"[-_.]+", "_", distribution)
    for folder in folders:
        found = [path.stem.rpartition("-")[2] for path in _metadata(folder.parent, prefix)]
        if len(found) == 1:
            return found[0]
    return ""


def _metadata(site: Path, prefix: str) -> list[Path]:
    pattern = re.compile(rf"{re.escape(prefix)}-[^-]+\.dist-info", re.IGNORECASE)
    try:
        return sorted(path for path in site.iterdir() if pattern.fullmatch(path.name))
    except OSError:
        return []
