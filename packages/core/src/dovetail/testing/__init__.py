"""Generated tests of primitives: samples of arguments, and checks that all rules agree on them.

The checks need no test framework; ``tests/property/test_primitives.py`` shows how pytest drives
them.
"""

from __future__ import annotations

from dovetail.testing.sample import Sample as Sample
from dovetail.testing.sample import across_dtypes as across_dtypes
from dovetail.testing.sample import rejected as rejected

__all__ = ["Sample", "across_dtypes", "rejected"]
