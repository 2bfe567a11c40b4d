"""Generated tests of primitives: samples of arguments, and checks that all rules agree on them.

The checks need no test framework. ``pytest --pyargs dovetail.testing.suites`` drives them on a
platform of your choice, see `dovetail.testing.plugin`.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dovetail.testing.sample import Sample as Sample
    from dovetail.testing.sample import across_dtypes as across_dtypes
    from dovetail.testing.sample import rejected as rejected

__all__ = ["Sample", "across_dtypes", "rejected"]


def __getattr__(name: str) -> object:
    # Deferred, because every run of pytest imports the plug-in that is in this package.
    if name not in __all__:
        raise AttributeError(f"module 'dovetail.testing' has no attribute {name!r}")
    return getattr(import_module("dovetail.testing.sample"), name)
