"""The API of NumPy, for arrays that can be transformed and compiled.

Every name is loaded on first use; importing this package loads nothing else.
"""

from dovetail.extend import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
del lazy_names

__array_api_version__ = "2025.12"


def __array_namespace_info__() -> object:
    """The namespace inspection object of the array API standard: dtypes, devices, capabilities."""
    from dovetail.numpy.namespace_info import NamespaceInfo  # deferred: rarely asked for

    return NamespaceInfo()
