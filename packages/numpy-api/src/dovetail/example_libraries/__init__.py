"""Small libraries that show how to write others: layers of networks, and optimisers.

Every name is loaded on first use.
"""

from dovetail.extend import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
del lazy_names
