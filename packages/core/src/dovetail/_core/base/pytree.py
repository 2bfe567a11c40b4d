"""Pytrees, trees of containers: flattening, mapping, unflattening.

Node types are registered in `dovetail._core.base.node_types`, whose names are also available here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

import numpy as np

from dovetail._core.base import bindings
from dovetail._core.base.bindings import DictKey as DictKey
from dovetail._core.base.bindings import FlattenedIndexKey as FlattenedIndexKey
from dovetail._core.base.bindings import GetAttrKey as GetAttrKey
from dovetail._core.base.bindings import PyTreeDef as PyTreeDef
from dovetail._core.base.bindings import PyTreeRegistry as PyTreeRegistry
from dovetail._core.base.bindings import SequenceKey as SequenceKey
from dovetail._core.base.node_types import KeyPath as KeyPath
from dovetail._core.base.node_types import Partial as Partial
from dovetail._core.base.node_types import check_structure
from dovetail._core.base.node_types import dispatch_registry as dispatch_registry
from dovetail._core.base.node_types import flatten_one_level as flatten_one_level
from dovetail._core.base.node_types import (
    flatten_one_level_with_keys as flatten_one_level_with_keys,
)
from dovetail._core.base.node_types import is_tree_node as is_tree_node
from dovetail._core.base.node_types import keystr as keystr
from dovetail._core.base.node_types import register_dataclass as register_dataclass
from dovetail._core.base.node_types import register_pytree_node as register_pytree_node
from dovetail._core.base.node_types import register_pytree_node_class as register_pytree_node_class
from dovetail._core.base.node_types import register_pytree_with_keys as register_pytree_with_keys
from dovetail._core.base.node_types import (
    register_pytree_with_keys_class as register_pytree_with_keys_class,
)
from dovetail._core.base.node_types import register_static as register_static
from dovetail._core.base.node_types import registry as registry
from dovetail._core.base.node_types import static as static
from dovetail._core.base.node_types import treedef_children as treedef_children
from dovetail._core.base.node_types import treedef_is_leaf as treedef_is_leaf
from dovetail._core.base.node_types import treedef_tuple as treedef_tuple
from dovetail._core.base.tree_difference import (
    Node,
    append_leaves,
    difference_between,
    explain_tree_error,
)
from dovetail._core.base.tree_difference import structure_difference as structure_difference
from dovetail._core.base.typing import ArrayLike, PyTree
from dovetail._core.base.unspecified import UNSPECIFIED

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "PyTreeRegistry",
    "SequenceKey",
    "all_leaves",
    "all_true",
    "broadcast",
    "dispatch_registry",
    "flatten",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "flatten_up_to",
    "flatten_up_to_prefix",
    "flatten_with_path",
    "is_tree_node",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "registry",
    "static",
    "structure",
    "structure_difference",
    "transpose",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
    "unflatten",
]

T = TypeVar("T")
IsLeaf = Callable[[Any], bool] | None
IsLeafWithPath = Callable[..., bool] | None


def flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Flatten a tree into its leaves and its structure.

    Args:
        tree: any value; everything that is not a registered node is a leaf.
        is_leaf: called on every node before it is flattened; if it returns True, the node is a
            leaf.

    Returns:
        The leaves, from left to right, and the structure that `unflatten` takes.

    Raises:
        ValueError: the keys of a dictionary cannot be sorted, or a registered function does not
            return children and static data.
        RecursionError: the tree is nested too deeply, or contains itself.

    Example:
        >>> import dovetail.tree
        >>> dovetail.tree.flatten({"b": [2, 3], "a": 1})
        ([1, 2, 3], PyTreeDef({'a': *, 'b': [*, *]}))
    """
    try:
        return registry.flatten(tree, is_leaf)
    except (ValueError, TypeError, SystemError) as error:
        raise explain_tree_error(error, tree, is_leaf) from error.__cause__


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> PyTree:
    """Build a tree from its structure and its leaves.

    Args:
        treedef: the structure, from `flatten` or `structure`.
        leaves: as many values as the structure has leaves.

    Example:
        >>> import dovetail.tree
        >>> dovetail.tree.unflatten(dovetail.tree.structure({"a": 0, "b": (0, 0)}), [1, 2, 3])
        {'a': 1, 'b': (2, 3)}
    """
    check_structure("tree.unflatten", treedef)
    if not np.iterable(leaves):
        raise TypeError(f"tree.unflatten: leaves must be a sequence, got {leaves!r:.80}")
    given = leaves if isinstance(leaves, (list, tuple)) else tuple(leaves)
    if len(given) != treedef.num_leaves:
        difference = "few" if len(given) < treedef.num_leaves else "many"
        raise ValueError(
            f"tree.unflatten: Too {difference} leaves for PyTreeDef; expected "
            f"{treedef.num_leaves}, got {len(given)}: {treedef}"
        )
    return treedef.unflatten(given)


def leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree, from left to right.

    Args:
        tree: the tree.
        is_leaf: if it returns True, a node is treated as a leaf.

    Example:
        >>> import dovetail.tree
        >>> dovetail.tree.leaves([1, (2, None), {"x": 3}])
        [1, 2, 3]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: PyTree, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree, without its leaves.

    Args:
        tree: the tree.
        is_leaf: if it returns True, a node is treated as a leaf.

    Example:
        >>> import dovetail.tree
        >>> dovetail.tree.structure([1, (2, None)])
        PyTreeDef([*, (*, None)])
    """
    return flatten(tree, is_leaf)[1]


def flatten_with_path(
    tree: PyTree, is_leaf: IsLeafWithPath = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Flatten a tree into leaves with their paths, and its structure.

    Args:
        tree: the tree.
        is_leaf: if it returns True, a node is treated as a leaf.
        is_leaf_takes_path: call ``is_leaf(path, node)`` instead of ``is_leaf(node)``.

    Returns:
        A list of ``(path, leaf)``, where a path is a tuple of keys (see `keystr`), and the
        structure.

    Example:
        >>> import dovetail.tree, dovetail.tree_util
        >>> paths, _ = dovetail.tree.flatten_with_path({"a": [1, 2]})
        >>> [(dovetail.tree_util.keystr(path), leaf) for path, leaf in paths]
        [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    predicate = is_leaf
    if is_leaf is not None and not is_leaf_takes_path:
        leaf_test = is_leaf

        def predicate(path: KeyPath, node: Any) -> bool:
            return leaf_test(node)

    try:
        return registry.flatten_with_path(tree, predicate)
    except (ValueError, TypeError, SystemError) as error:
        plain = None if is_leaf_takes_path and callable(is_leaf) else is_leaf
        raise explain_tree_error(error, tree, plain) from error.__cause__


def leaves_with_path(
    tree: PyTree, is_leaf: IsLeafWithPath = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree with their paths.

    Args:
        tree: the tree.
        is_leaf: if it returns True, a node is treated as a leaf.
        is_leaf_takes_path: call ``is_leaf(path, node)`` instead of ``is_leaf(node)``.

    Example:
        >>> import dovetail.tree
        >>> dovetail.tree.leaves_with_path({"a": 1})
        [((DictKey(key='a'),), 1)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


@overload
def map(f: Callable[..., ArrayLike], tree: T, *rest: PyTree, is_leaf: IsLeaf = None) -> T: ...
@overload
def map(f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf = None) -> PyTree: ...
def map(f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Apply a function to the leaves of a tree, or to corresponding leaves of several.

    Args:
        f: takes one leaf of ``tree`` and the corresponding value of each of ``rest``.
        tree: the tree that determines the structure of the result.
        *rest: trees with at least that structure: in place of a leaf of ``tree`` they may have a
            subtree, which is passed to ``f``.
        is_leaf: if it returns True, a node of ``tree`` is treated as a leaf.

    Raises:
        ValueError: one of ``rest`` has another structure; the message says where.

    Example:
        >>> import dovetail.tree
        >>> dovetail.tree.map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
        {'a': 11, 'b': [22]}
    """
    _check_callable("tree.map", f)
    first, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in first])
    columns = [first]
    for number, other in enumerate(rest, 2):
        columns.append(_flatten_rest("map", treedef, tree, other, number, is_leaf))
    return treedef.unflatten([f(*row) for row in zip(*columns, strict=True)])


def map_with_path(
    f: Callable[..., Any],
    tree: PyTree,
    *rest: PyTree,
    is_leaf: IsLeafWithPath = None,
    is_leaf_takes_path: bool = False,
) -> PyTree:
    """`map` for a function that also takes the path of each leaf, as its first argument.

    Args:
        f: takes a path, one leaf of ``tree``, and the corresponding value of each of ``rest``.
        tree: the tree that determines the structure of the result.
        *rest: trees with at least that structure.
        is_leaf: if it returns True, a node of ``tree`` is treated as a leaf.
        is_leaf_takes_path: call ``is_leaf(path, node)`` instead of ``is_leaf(node)``.

    Example:
        >>> import dovetail.tree, dovetail.tree_util
        >>> dovetail.tree.map_with_path(lambda p, x: dovetail.tree_util.keystr(p), {"a": [1, 2]})
        {'a': ["['a'][0]", "['a'][1]"]}
    """
    _check_callable("tree.map_with_path", f)
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [
        _flatten_rest("map_with_path", treedef, tree, other, number, None)
        for number, other in enumerate(rest, 2)
    ]
    rows = zip(*columns, strict=True) if columns else (() for _ in pairs)
    return treedef.unflatten(
        [f(path, leaf, *row) for (path, leaf), row in zip(pairs, rows, strict=True)]
    )


def _flatten_rest(
    name: str, treedef: PyTreeDef, tree: Any, other: Any, number: int, is_leaf: IsLeaf
) -> list[Any]:
    try:
        return treedef.flatten_up_to(other)
    except ValueError:
        difference = difference_between(
            Node.of_definition(treedef), Node.of_tree(other), prefix=True
        )
        if difference is None:
            raise
        raise ValueError(
            f"tree.{name}: tree number {number} has another structure than the first tree\n"
            f"{difference.text('the first tree', f'tree number {number}')}"
        ) from None


def flatten_up_to(treedef: PyTreeDef, tree: Any) -> list[Any]:
    """The subtrees of ``tree`` at the leaves of ``treedef``.

    Raises:
        ValueError: the tree does not have at least that structure; the message says where.
    """
    try:
        return treedef.flatten_up_to(tree)
    except ValueError as error:
        difference = difference_between(
            Node.of_definition(treedef), Node.of_tree(tree), prefix=True
        )
        if difference is None:
            raise
        raise ValueError(
            "the tree has another structure than expected\n"
            + difference.text("the expected structure", "the tree")
        ) from error


def reduce(
    function: Callable[[Any, Any], Any],
    tree: PyTree,
    initializer: PyTree = UNSPECIFIED,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """Combine the leaves of a tree from left to right, as `functools.reduce` does.

    Args:
        function: takes the result so far and the next leaf.
        tree: the tree.
        initializer: combined with the first leaf; if absent, the tree must have a leaf.
        is_leaf: if it returns True, a node is treated as a leaf.

    Example:
        >>> import dovetail.tree
        >>> dovetail.tree.reduce(lambda total, leaf: total + leaf, [1, (2, 3)], 10)
        16
    """
    _check_callable("tree.reduce", function)
    flat = leaves(tree, is_leaf)
    if initializer is UNSPECIFIED:
        if not flat:
            raise TypeError(
                "tree.reduce: the tree has no leaves and there is no initializer; pass one"
            )
        return functools.reduce(function, flat)
    return functools.reduce(function, flat, initializer)


def _check_callable(name: str, function: Any) -> None:
    if not callable(function):
        raise TypeError(
            f"{name} takes a function as its first argument, got {type(function).__name__}: "
            f"{function!r:.80}"
        )


def reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: PyTree,
    *,
    identity: PyTree = UNSPECIFIED,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """Combine the leaves of a tree pairwise, in a balanced tree of operations.

    The order of the leaves is kept; ``operation`` must be associative.

    Args:
        operation: takes two neighbours.
        tree: the tree.
        identity: the result for a tree without leaves.
        is_leaf: if it returns True, a node is treated as a leaf.

    Example:
        >>> import dovetail.tree
        >>> dovetail.tree.reduce_associative(lambda a, b: f"({a}{b})", list("abcd"))
        '((ab)(cd))'
    """
    _check_callable("tree.reduce_associative", operation)
    level = leaves(tree, is_leaf)
    if not level:
        if identity is UNSPECIFIED:
            raise TypeError(
                "tree.reduce_associative: the tree has no leaves and there is no identity; pass one"
            )
        return identity
    while len(level) > 1:
        paired = [operation(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = paired + level[2 * len(paired) :]
    return level[0]


def all_true(tree: PyTree, *, is_leaf: IsLeaf = None) -> bool:
    """Whether every leaf is true; True for a tree without leaves.

    Args:
        tree: the tree.
        is_leaf: if it returns True, a node is treated as a leaf.

    Example:
        >>> import dovetail.tree
        >>> dovetail.tree.all({"a": True, "b": [1, 0]})
        False
    """
    return all(leaves(tree, is_leaf))


def broadcast(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Repeat each leaf of a prefix tree for every leaf below it in the full tree.

    Args:
        prefix_tree: a prefix of ``full_tree``.
        full_tree: the tree that determines the structure of the result.
        is_leaf: if it returns True, a node of either tree is treated as a leaf.

    Raises:
        ValueError: ``prefix_tree`` is not a prefix; the message says where.

    Example:
        >>> import dovetail.tree
        >>> dovetail.tree.broadcast((1, 2), ({"a": 0, "b": 0}, 0))
        ({'a': 1, 'b': 1}, 2)
    """
    prefix_leaves, prefix_def = flatten(prefix_tree, is_leaf)
    full_def = structure(full_tree, is_leaf)
    out: list[Any] = []
    difference = append_leaves(
        iter(prefix_leaves), Node.of_definition(prefix_def), Node.of_definition(full_def), out
    )
    if difference is not None:
        raise ValueError(
            "tree.broadcast: prefix_tree is not a prefix of full_tree\n"
            + difference.text("prefix_tree", "full_tree")
        )
    return full_def.unflatten(out)


def flatten_up_to_prefix(
    name: str, prefix_tree: Any, full_treedef: PyTreeDef, *, is_leaf: IsLeaf = None
) -> list[Any]:
    """One value of a prefix tree for every leaf of a full tree, as for ``in_axes``.

    None is a leaf of the prefix tree, since it has a meaning in such arguments.

    Args:
        name: the prefix tree's name in errors, such as ``"in_axes of vmap(f)"``.
        prefix_tree: a prefix of the full tree.
        full_treedef: the structure of the full tree.
        is_leaf: if it returns True, a node of the prefix tree is treated as a leaf.

    Raises:
        ValueError: ``prefix_tree`` is not a prefix; the message says where.

    Example:
        >>> from dovetail._core.base import pytree
        >>> full = pytree.structure(({"a": 0, "b": 0}, 0))
        >>> pytree.flatten_up_to_prefix("in_axes", (0, None), full)
        [0, 0, None]
    """
    if prefix_tree is None or type(prefix_tree) is int:
        return [prefix_tree] * full_treedef.num_leaves
    if is_leaf is None:
        leaf_test = _is_none
    else:
        given = is_leaf

        def leaf_test(node: Any) -> bool:
            return node is None or given(node)

    prefix_leaves, prefix_def = flatten(prefix_tree, leaf_test)
    out: list[Any] = []
    difference = append_leaves(
        iter(prefix_leaves), Node.of_definition(prefix_def), Node.of_definition(full_treedef), out
    )
    if difference is not None:
        raise ValueError(
            f"{name} must have the structure of the values it is for, or end earlier\n"
            + difference.text(name, "the tree of values")
        )
    return out


def _is_none(node: Any) -> bool:
    return node is None


def transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: PyTree
) -> PyTree:
    """Turn a tree of trees inside out.

    Args:
        outer_treedef: the structure of the outer tree.
        inner_treedef: the structure of the tree at each of its leaves; if None, that of the first.
        pytree_to_transpose: the tree of trees.

    Returns:
        A tree of the inner structure, with a tree of the outer structure at each leaf.

    Example:
        >>> import dovetail.tree
        >>> dovetail.tree.transpose(dovetail.tree.structure([0, 0]), None, [(1, 2), (3, 4)])
        ([1, 3], [2, 4])
    """
    check_structure("tree.transpose", outer_treedef)
    if inner_treedef is not None:
        check_structure("tree.transpose", inner_treedef)
    subtrees = flatten_up_to(outer_treedef, pytree_to_transpose)
    if inner_treedef is None:
        if not subtrees:
            raise ValueError(
                "tree.transpose: the outer structure has no leaves, so inner_treedef must be given"
            )
        inner_treedef = structure(subtrees[0])
    rows = []
    for position, subtree in enumerate(subtrees):
        row, treedef = flatten(subtree)
        if treedef != inner_treedef:
            difference = structure_difference(
                inner_treedef, treedef, "the inner structure", f"the tree at leaf {position}"
            )
            raise TypeError(
                "tree.transpose: pytree_to_transpose does not have inner_treedef at each leaf of "
                f"outer_treedef\n{difference}"
            )
        rows.append(row)
    columns = [[row[index] for row in rows] for index in range(inner_treedef.num_leaves)]
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether no element of an iterable is a node.

    Example:
        >>> import dovetail.tree_util
        >>> dovetail.tree_util.all_leaves([1, "a"]), dovetail.tree_util.all_leaves([1, [2]])
        (True, False)
    """
    if not np.iterable(iterable):
        raise TypeError(f"all_leaves takes a sequence of values, got {iterable!r:.80}")
    if is_leaf is None:
        return bool(bindings._jax.pytree.all_leaves(registry, iterable))
    if not callable(is_leaf):
        raise TypeError(f"all_leaves: is_leaf must be a function, got {is_leaf!r:.80}")
    elements = list(iterable)
    flat = leaves(elements, lambda node: node is not elements and is_leaf(node))
    return len(flat) == len(elements) and all(a is b for a, b in zip(flat, elements, strict=True))
