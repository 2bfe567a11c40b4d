"""Equations and eigenvalues of sparse matrices.

Every name is loaded on first use.
"""

from dovetail.extend import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
del lazy_names
