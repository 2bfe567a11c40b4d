"""Linear algebra: factorisations, functions of matrices, and matrices of special forms.

Every name is loaded on first use.
"""

from dovetail.extend import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
del lazy_names
