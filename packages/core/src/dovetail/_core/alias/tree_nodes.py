"""How the values of a type are taken apart and put together: entries of the registry of JAX."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dovetail._core.base import pytree


class NodeType:
    """A type whose values are nodes of trees.

    Args:
        kind: the type.
    """

    __slots__ = ("kind",)

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def to_iter(self, node: Any) -> tuple[Iterable[Any], Any]:
        """The children of a value, and what else it holds."""
        return pytree.flatten_one_level(node)

    def from_iter(self, held: Any, children: Iterable[Any]) -> Any:
        """A value with these children.

        Args:
            held: what else it holds.
            children: the children.
        """
        given = list(children)
        leaf = pytree.structure(0)
        node = (self.kind, held)
        definition = leaf.from_node_data_and_children(pytree.registry, node, [leaf] * len(given))
        return definition.unflatten(given)
