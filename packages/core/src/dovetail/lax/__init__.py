"""The operations of which programs are made: strict about dtypes and shapes, close to StableHLO.

Each name is loaded, with the module that it is in, when it is first used.
"""

from dovetail._lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
del lazy_names
