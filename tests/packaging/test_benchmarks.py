"""What the scripts of benchmarks need of an installation is there."""

from __future__ import annotations

import platform
import runpy
import sys
from importlib import metadata
from pathlib import Path

from dovetail_cpu.kernel_library import cpu_features

COMPARE = Path(__file__).parents[2] / "benchmarks" / "compare.py"


def test_a_table_names_the_versions_that_were_measured() -> None:
    text = runpy.run_path(str(COMPARE))["versions"]({"dovetail": sys.executable})
    assert text.startswith("dovetail: Python 3.")
    assert f"dovetail-core {metadata.version('dovetail-core')}, jaxlib " in text


def test_a_table_names_the_processor() -> None:
    text = runpy.run_path(str(COMPARE))["processor"]()
    assert text.startswith(platform.machine())
    assert ("avx512f" in text) == ("avx512f" in cpu_features())
