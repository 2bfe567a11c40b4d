"""What programs on the TPU backend may use, and what of it this machine has.

Nothing here loads libtpu, which reserves the chips for its process.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

CAPABILITIES: Final = frozenset({"complex", "donation", "offload", "serialization", "spmd"})

PCI_FOLDER: Final = Path("/sys/bus/pci/devices")
GOOGLE: Final = "0x1ae0"
CHIPS: Final = {
    "0x0027": "v3",
    "0x005e": "v4",
    "0x0062": "v5p",
    "0x0063": "v5e",
    "0x006f": "v6e",
    "0x0076": "7x",
    "0x007c": "8t",
    "0x0083": "8i",
}
"""PCI device numbers of TPUs, as Google's own programs have them.

Its vendor number alone also names network cards and other controllers. The class does not help:
TPUs are of none (0xff0000).
"""

ENVIRONMENT_WITHOUT_CHIPS: Final[Mapping[str, str]] = {
    # Otherwise libtpu asks the cloud's metadata server, which takes half a minute per question.
    "TPU_SKIP_MDS_QUERY": "1",
    # Otherwise it locks the chips for one process; there are none, and several processes may
    # compile.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    # Otherwise it writes a folder of logs, and five lines to stderr about an unknown machine. The
    # target is set by each program, whatever this says.
    "TPU_LOG_DIR": "disabled",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
}
"""What libtpu is told on a machine without chips, where programs are only compiled."""


def count_chips(folder: Path = PCI_FOLDER) -> int:
    """The number of TPU chips on this machine's PCI bus.

    Args:
        folder: where the kernel lists PCI devices.
    """
    chips = 0
    for device in folder.glob("*"):
        try:
            if (device / "vendor").read_text().strip() == GOOGLE:
                chips += (device / "device").read_text().strip() in CHIPS
        except OSError:
            continue  # a device that disappeared, or one hidden by a container
    return chips


def find_library() -> Path:
    """The libtpu library; imports nothing.

    Returns:
        The path in `TPU_LIBRARY_PATH`, or the one inside the wheel libtpu.

    Raises:
        FileNotFoundError: there is none, or the variable names a file that does not exist.
    """
    named = os.environ.get("TPU_LIBRARY_PATH")
    if named:
        if not Path(named).is_file():
            raise FileNotFoundError(
                f"TPU_LIBRARY_PATH={named} names no file: give the path of a libtpu.so, or unset it"
            )
        return Path(named)
    spec = importlib.util.find_spec("libtpu")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = Path(folder, "libtpu.so")
        if path.is_file():
            return path
    raise FileNotFoundError(
        "libtpu, the compiler and driver of TPUs, is not installed: "
        'pip install "dovetail-tpu[libtpu]"'
    )
