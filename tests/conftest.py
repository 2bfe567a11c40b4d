"""What all tests share: several CPU devices, and a folder of their own for compiled programs."""

from __future__ import annotations

import os
import tempfile

# Set before dovetail is imported; processes that tests start inherit them.
os.environ.setdefault("DOVETAIL_NUM_CPU_DEVICES", "4")
os.environ.setdefault("DOVETAIL_COMPILATION_CACHE_DIR", tempfile.mkdtemp(prefix="dovetail-tests-"))
