"""Where trees differ, as functions of `jax._src.tree_util` say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dovetail._core.base import pytree
from dovetail._core.base.tree_difference import Difference, Node, differences_between


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """For each place where a tree is not a prefix of another, what makes an error about it.

    Args:
        prefix_tree: the tree that should be a prefix.
        full_tree: the other tree.
        is_leaf: says which parts of the prefix count as leaves.

    Returns:
        Functions of the name of the prefix.

    Example:
        >>> print(prefix_errors((1, [2]), (1, 2))[0]("in_axes"))
        pytree structure error: in_axes[1] is not a prefix
          at key path [1]:
            in_axes has a list of length 1
            the full tree has a leaf of type int
    """
    leaves, structure = pytree.flatten(prefix_tree, is_leaf)
    prefix = Node(structure, leaves)
    found = differences_between(prefix, Node.of_tree(full_tree), prefix=True)
    return [_error_of(difference) for difference in found]


def _error_of(difference: Difference) -> Callable[[str], ValueError]:
    def error(name: str) -> ValueError:
        return ValueError(
            f"pytree structure error: {name}{pytree.keystr(difference.path)} is not a prefix\n"
            + difference.text(name, "the full tree")
        )

    return error
