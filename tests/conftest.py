"""What all tests share: several CPU devices, and a folder of their own for compiled programs."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

# Set before dovetail is imported; processes that tests start inherit them.
os.environ.setdefault("DOVETAIL_NUM_CPU_DEVICES", "4")
if "DOVETAIL_COMPILATION_CACHE_DIR" not in os.environ:
    folder = tempfile.mkdtemp(prefix="dovetail-tests-")
    os.environ["DOVETAIL_COMPILATION_CACHE_DIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
