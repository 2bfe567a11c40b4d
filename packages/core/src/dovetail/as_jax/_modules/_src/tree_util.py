"""The module `jax._src.tree_util`."""

from dovetail._core.alias.tree_differences import prefix_errors as prefix_errors
from dovetail._core.alias.tree_nodes import NodeType as _NodeType
from dovetail._core.base.pytree import is_tree_node as _is_tree_node
from dovetail.tree_util import *  # noqa: F403


class _Registry:
    """The types that are nodes of trees, for those who look up how their values are taken apart."""

    def __contains__(self, kind: type) -> bool:
        return _is_tree_node(kind)

    def __getitem__(self, kind: type) -> _NodeType:
        if not _is_tree_node(kind):
            raise KeyError(kind)
        return _NodeType(kind)


_registry = _Registry()
