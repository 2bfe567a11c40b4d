"""What programs on the TPU backend may use, and what of it this machine has.

Nothing here loads libtpu, which takes the chips for its process.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Final

CAPABILITIES: Final = frozenset({"complex", "donation", "serialization", "spmd"})

PCI_FOLDER: Final = Path("/sys/bus/pci/devices")
GOOGLE: Final = "0x1ae0"
CHIPS: Final = {
    "0x0027": "v3",
    "0x005e": "v4",
    "0x0062": "v5p",
    "0x0063": "v5e",
    "0x006f": "v6e",
    "0x0076": "7x",
}
"""PCI device numbers of TPUs: Google's vendor number alone also names its network cards."""


def count_chips(folder: Path = PCI_FOLDER) -> int:
    """How many TPU chips are on this machine's PCI bus.

    Args:
        folder: where the kernel lists PCI devices.
    """
    chips = 0
    for device in folder.glob("*"):
        try:
            vendor = (device / "vendor").read_text().strip()
            number = (device / "device").read_text().strip()
        except OSError:
            continue  # a device that went away, or one that a container hides
        chips += vendor == GOOGLE and number in CHIPS
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
            raise FileNotFoundError(f"TPU_LIBRARY_PATH={named} names no file")
        return Path(named)
    spec = importlib.util.find_spec("libtpu")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = Path(folder, "libtpu.so")
        if path.is_file():
            return path
    raise FileNotFoundError(
        'there is a TPU, but libtpu is not installed: pip install "dovetail-tpu[libtpu]"'
    )
