"""Functions on trees by their longer names, and what defines new kinds of nodes."""

from typing import Any

from dovetail._core.base.pytree import DictKey as DictKey
from dovetail._core.base.pytree import FlattenedIndexKey as FlattenedIndexKey
from dovetail._core.base.pytree import GetAttrKey as GetAttrKey
from dovetail._core.base.pytree import KeyPath as KeyPath
from dovetail._core.base.pytree import Partial as Partial
from dovetail._core.base.pytree import PyTreeDef as PyTreeDef
from dovetail._core.base.pytree import SequenceKey as SequenceKey
from dovetail._core.base.pytree import all_leaves as all_leaves
from dovetail._core.base.pytree import all_true as tree_all
from dovetail._core.base.pytree import broadcast as tree_broadcast
from dovetail._core.base.pytree import flatten as tree_flatten
from dovetail._core.base.pytree import flatten_one_level as flatten_one_level
from dovetail._core.base.pytree import flatten_one_level_with_keys as flatten_one_level_with_keys
from dovetail._core.base.pytree import flatten_with_path as tree_flatten_with_path
from dovetail._core.base.pytree import is_tree_node as is_tree_node
from dovetail._core.base.pytree import keystr as keystr
from dovetail._core.base.pytree import leaves as tree_leaves
from dovetail._core.base.pytree import leaves_with_path as tree_leaves_with_path
from dovetail._core.base.pytree import map as tree_map
from dovetail._core.base.pytree import map_with_path as tree_map_with_path
from dovetail._core.base.pytree import reduce as tree_reduce
from dovetail._core.base.pytree import reduce_associative as tree_reduce_associative
from dovetail._core.base.pytree import register_dataclass as register_dataclass
from dovetail._core.base.pytree import register_pytree_node as register_pytree_node
from dovetail._core.base.pytree import register_pytree_node_class as register_pytree_node_class
from dovetail._core.base.pytree import register_pytree_with_keys as register_pytree_with_keys
from dovetail._core.base.pytree import (
    register_pytree_with_keys_class as register_pytree_with_keys_class,
)
from dovetail._core.base.pytree import register_static as register_static
from dovetail._core.base.pytree import registry as default_registry
from dovetail._core.base.pytree import structure as tree_structure
from dovetail._core.base.pytree import transpose as tree_transpose
from dovetail._core.base.pytree import treedef_children as treedef_children
from dovetail._core.base.pytree import treedef_is_leaf as treedef_is_leaf
from dovetail._core.base.pytree import treedef_tuple as treedef_tuple
from dovetail._core.base.pytree import unflatten as tree_unflatten
from dovetail._core.base.tracebacks import publish as _publish

KeyEntry = Any
"""One key of a path: one of the four classes of keys, or a type's own."""

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]


def __dir__() -> list[str]:
    return __all__


_publish(globals())
