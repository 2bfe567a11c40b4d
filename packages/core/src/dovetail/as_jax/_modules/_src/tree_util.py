"""The module `jax._src.tree_util`."""

from dovetail._core.alias.tree_differences import prefix_errors as prefix_errors
from dovetail._core.base.pytree import is_tree_node as _is_tree_node
from dovetail.tree_util import *  # noqa: F403


class _Registry:
    """The types that are nodes of trees, for those who look whether a type is one."""

    def __contains__(self, kind: type) -> bool:
        return _is_tree_node(kind)


_registry = _Registry()
