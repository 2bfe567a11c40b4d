"""The modules here import each other, and those of tests/differential, as the scripts do."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path += [str(FOLDER), str(FOLDER.parent / "differential")]
