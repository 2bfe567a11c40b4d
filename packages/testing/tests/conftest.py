"""What these tests share with those in tests/: devices, a folder for programs, and fixtures."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_shared = Path(__file__).parents[3] / "tests" / "conftest.py"
_spec = importlib.util.spec_from_file_location("shared_by_all_tests", _shared)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

little_optimization = _module.little_optimization
few_programs = _module.few_programs
same_clients = _module.same_clients
