"""The suite of the conformance kit that holds laws of transformations, on the CPU.

That of primitives is in `tests/property`.
"""

from __future__ import annotations

import pytest

from dovetail.testing.suites.test_transformations import *  # noqa: F403 - every test of the suite

pytestmark = pytest.mark.laws
