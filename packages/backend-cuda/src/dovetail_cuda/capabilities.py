"""What programs on the CUDA backend may use, and what of it this machine has.

Nothing here loads a driver: it looks for device files and for installed libraries.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Final

CAPABILITIES: Final = frozenset(
    {"complex", "donation", "float64", "host_callbacks", "serialization", "spmd"}
)

DEVICE_FILES: Final = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")
"""Made by NVIDIA's kernel driver; the last one by Windows for its Linux subsystem."""

LIBRARIES: Final = (
    "xla_cuda13/xla_cuda_plugin.so",
    "xla_cuda12/xla_cuda_plugin.so",
)
"""The PJRT library inside the wheels jax-cuda13-pjrt and jax-cuda12-pjrt, the newer first."""


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


def find_library() -> Path:
    """The PJRT library for CUDA; imports nothing.

    Returns:
        Path of the newest one that is installed.

    Raises:
        FileNotFoundError: no wheel with the library is installed.
    """
    spec = importlib.util.find_spec("jax_plugins")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for name in LIBRARIES:
        for folder in folders:
            path = Path(folder, name)
            if path.is_file():
                return path
    raise FileNotFoundError(
        "there is an NVIDIA GPU, but the PJRT library for CUDA is not installed: "
        'pip install "dovetail-cuda[cuda13]" (or [cuda12] for a driver older than 580)'
    )
