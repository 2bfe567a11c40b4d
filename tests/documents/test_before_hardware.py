"""The examples of docs/before-hardware.md do what they show."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dovetail.experimental.topologies import HARDWARE

PAGE = Path(__file__).parents[2] / "docs" / "before-hardware.md"
TEXT = PAGE.read_text(encoding="utf-8")


def _runnable() -> str:
    """The page; what needs a compiler that is not installed is skipped.

    One plug-in is loaded at most: none can be unloaded, and GPUs are compiled for in processes of
    their own (`tests/backends/cuda`).
    """
    skipped = ["the CUDA plug-in"]
    if importlib.util.find_spec("libtpu") is None:
        skipped.append("libtpu")
    return re.sub(rf"# needs ({'|'.join(skipped)})$", "# doctest: +SKIP", TEXT, flags=re.MULTILINE)


def test_the_examples(run_page: Callable[[Path, str], int]) -> None:
    assert run_page(PAGE, _runnable()) > 10


@pytest.mark.parametrize("name", HARDWARE)
def test_the_table_of_rates(name: str) -> None:
    hardware = HARDWARE[name]
    row = re.search(rf"^\| `{name}` \|(.*)\|$", TEXT, re.MULTILINE)
    assert row is not None, "a row for each of HARDWARE"
    network = hardware.network_bandwidth
    assert [cell.strip() for cell in row.group(1).split("|")] == [
        f"{hardware.peak_flops['bf16'] / 1e12:.0f}",
        f"{hardware.memory_bandwidth / 1e9:.0f}",
        f"{hardware.memory / 1e9:.0f}",
        f"{hardware.link_bandwidth / 1e9:.0f}",
        "not published" if network is None else f"{round(network / 1e9 + 1e-9, 1):g}",
    ]
