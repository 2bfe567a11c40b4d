"""Equations with large matrices, which are only applied to vectors.

Every name is loaded on first use.
"""

from dovetail.extend import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
del lazy_names
