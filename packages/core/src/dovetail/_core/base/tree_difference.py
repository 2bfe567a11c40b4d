"""Explains where two trees differ, and why a tree could not be flattened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dovetail._core.base.bindings import PyTreeDef
from dovetail._core.base.node_types import (
    KeyPath,
    child_keys,
    is_plain_named_tuple,
    keystr,
    registry,
)
from dovetail._core.base.records import record

__all__ = [
    "Difference",
    "Node",
    "append_leaves",
    "difference_between",
    "differences_between",
    "explain_tree_error",
    "structure_difference",
]


class Node:
    """A position in a tree or tree definition: a node with its children, or a leaf."""

    __slots__ = ("_definition", "_leaves", "kind", "leaf", "static_data")

    def __init__(self, definition: PyTreeDef, leaves: list[Any] | None) -> None:
        data = definition.node_data()
        self._definition = definition
        self._leaves = leaves
        self.kind: type | None = None if data is None else data[0]
        self.static_data: Any = None if data is None else data[1]
        self.leaf: Any = leaves[0] if data is None and leaves is not None else None

    @classmethod
    def of_definition(cls, definition: PyTreeDef) -> Node:
        """The root of a tree definition; its leaves are unknown."""
        return cls(definition, None)

    @classmethod
    def of_tree(cls, tree: Any) -> Node:
        """The root of a tree."""
        leaves, definition = registry.flatten(tree)
        return cls(definition, leaves)

    @property
    def num_leaves(self) -> int:
        """The number of leaves at and below this position."""
        return self._definition.num_leaves

    def children(self) -> list[Node]:
        """The children of this node."""
        nodes, position = [], 0
        for child in self._definition.children():
            end = position + child.num_leaves
            nodes.append(Node(child, None if self._leaves is None else self._leaves[position:end]))
            position = end
        return nodes

    def keys(self) -> list[Any]:
        """The keys of the children."""
        if self.kind is None:
            return []
        return child_keys(self.kind, self.static_data, len(self._definition.children()))

    def describe(self) -> str:
        """A description of this node or leaf."""
        if self.kind is None:
            if self._leaves is None:
                return "a leaf"
            aval = getattr(self.leaf, "aval", None)
            return f"a leaf of type {type(self.leaf).__name__}" + (
                "" if aval is None else f" ({aval})"
            )
        if self.kind is type(None):
            return "None, which has no leaves"
        count = len(self._definition.children())
        name = self.kind.__name__
        if self.kind is dict:
            return f"a dict with keys {list(self.static_data)}"
        if is_plain_named_tuple(self.kind):
            fields: tuple[str, ...] = self.kind._fields  # type: ignore[attr-defined]
            return f"a named tuple {name}({', '.join(fields)})"
        if self.kind in (tuple, list):
            return f"a {name} of length {count}"
        children = "1 child" if count == 1 else f"{count} children"
        return f"a {name} with {children} and static data {self.static_data!r}"


@record
class Difference:
    """The first place where two trees differ.

    Attributes:
        path: the keys that lead there.
        first: what the first tree has there.
        second: what the second tree has there.
        note: what exactly differs, if that is not obvious from the two.
    """

    path: KeyPath
    first: str
    second: str
    note: str = ""

    def text(self, first_name: str, second_name: str) -> str:
        """The explanation, in a few lines.

        Args:
            first_name: the first tree's name.
            second_name: the second tree's name.
        """
        place = f"at key path {keystr(self.path)}" if self.path else "at the root"
        note = f"\n  {self.note}" if self.note else ""
        return (
            f"  {place}:\n    {first_name} has {self.first}\n    {second_name} has "
            f"{self.second}{note}"
        )


def differences_between(
    first: Node, second: Node, *, prefix: bool, path: KeyPath = ()
) -> Iterator[Difference]:
    """The places, from left to right, where two trees differ.

    Args:
        first: a tree.
        second: another tree.
        prefix: whether the second may go on below a leaf of the first.
        path: the keys that lead to the two.
    """
    if first.kind is None:
        if not prefix and second.kind is not None:
            yield Difference(path, first.describe(), second.describe())
        return
    difference = _node_difference(first, second, path)
    if difference is not None:
        yield difference
        return
    for key, a, b in zip(first.keys(), first.children(), second.children(), strict=True):
        yield from differences_between(a, b, prefix=prefix, path=(*path, key))


def difference_between(first: Node, second: Node, *, prefix: bool) -> Difference | None:
    """The first place, from left to right, where two trees differ.

    Args:
        first: a tree.
        second: another tree.
        prefix: whether the second may go on below a leaf of the first.
    """
    return next(differences_between(first, second, prefix=prefix), None)


def _node_difference(first: Node, second: Node, path: KeyPath) -> Difference | None:
    """How two nodes themselves differ, regardless of their children."""
    if first.kind is not second.kind:
        note = ""
        if {first.kind, second.kind} == {tuple, list}:
            note = "A tuple and a list are different nodes."
        elif first.kind is not None and second.kind is not None:
            name = first.kind.__name__
            if name == second.kind.__name__:
                note = (
                    f"The two types {name} have the same name but are different classes "
                    f"({first.kind.__module__} and {second.kind.__module__}); was a module "
                    "reloaded?"
                )
        return Difference(path, first.describe(), second.describe(), note)
    if first.kind is dict and list(first.static_data) != list(second.static_data):
        missing = [key for key in first.static_data if key not in second.static_data]
        extra = [key for key in second.static_data if key not in first.static_data]
        notes = []
        if missing:
            notes.append(f"keys only in the first: {missing}")
        if extra:
            notes.append(f"keys only in the second: {extra}")
        return Difference(path, first.describe(), second.describe(), "; ".join(notes))
    same_count = len(first.children()) == len(second.children())
    if not same_count or not _equal(first.static_data, second.static_data):
        return Difference(path, first.describe(), second.describe())
    return None


def _equal(a: Any, b: Any) -> bool:
    return bool(a is b or a == b)


def append_leaves(
    prefix_leaves: Iterator[Any], prefix: Node, full: Node, out: list[Any], path: KeyPath = ()
) -> Difference | None:
    """Append each leaf of a prefix to ``out``, once for every leaf of the full tree below it.

    Args:
        prefix_leaves: the leaves of the prefix.
        prefix: the prefix.
        full: the full tree.
        out: where the repeated leaves go.
        path: the keys that lead to the two.

    Returns:
        The first place where the first tree is not a prefix of the second, if any.
    """
    if prefix.kind is None:
        out.extend([next(prefix_leaves)] * full.num_leaves)
        return None
    difference = _node_difference(prefix, full, path)
    if difference is not None:
        return difference
    for key, a, b in zip(prefix.keys(), prefix.children(), full.children(), strict=True):
        child_difference = append_leaves(prefix_leaves, a, b, out, (*path, key))
        if child_difference is not None:
            return child_difference
    return None


def structure_difference(
    a: Any, b: Any, first_name: str = "the first", second_name: str = "the second"
) -> str:
    """Where two trees, or two tree definitions, differ, in words; empty if they do not.

    Args:
        a: a tree or a tree definition.
        b: a tree or a tree definition.
        first_name: the name of ``a``.
        second_name: the name of ``b``.

    Example:
        >>> from dovetail._core.base import pytree
        >>> print(pytree.structure_difference({"a": (1, 2)}, {"a": (1, 2, 3)}))
          at key path ['a']:
            the first has a tuple of length 2
            the second has a tuple of length 3
    """
    nodes = [
        Node.of_definition(tree) if isinstance(tree, PyTreeDef) else Node.of_tree(tree)
        for tree in (a, b)
    ]
    difference = difference_between(*nodes, prefix=False)
    return "" if difference is None else difference.text(first_name, second_name)


def explain_tree_error(
    error: Exception, tree: Any, is_leaf: Callable[[Any], bool] | None
) -> Exception:
    """A better error for a tree that could not be flattened, or else the same error.

    Args:
        error: the exception that was raised.
        tree: the tree.
        is_leaf: the test for leaves that was used.
    """
    if is_leaf is not None and not callable(is_leaf):
        return TypeError(f"is_leaf must be a function or None, got {is_leaf!r}")
    if isinstance(error, SystemError):  # jaxlib's form of a RecursionError
        return RecursionError("a tree is nested too deeply to be taken apart, or contains itself")
    if not isinstance(error, ValueError):
        return error
    message = str(error)
    if "Comparator raised" not in message and not message.startswith("The to_iterable"):
        return error
    culprit = _culprit(tree, is_leaf, ())
    if culprit is None:
        return error
    path, node = culprit
    place = f"at key path {keystr(path)}" if path else "at the root"
    if isinstance(node, dict):
        kinds = sorted({type(key).__name__ for key in node})
        return ValueError(
            f"the dictionary {place} of a tree has keys that cannot be sorted: {list(node)} "
            f"(of types {', '.join(kinds)}). Use keys of one type, or an OrderedDict, which is not "
            "sorted."
        )
    return ValueError(
        f"the functions registered for {type(node).__qualname__}, {place} of a tree, must give "
        f"(children, static_data), and with keys ((key, child), ...) as children: {message}"
    )


def _culprit(
    tree: Any, is_leaf: Callable[[Any], bool] | None, path: KeyPath
) -> tuple[KeyPath, Any] | None:
    """The innermost node that cannot be flattened."""
    if is_leaf is not None and is_leaf(tree):
        return None
    if not registry.is_node(type(tree)) and not hasattr(tree, "_fields"):
        return None
    try:
        if registry.flatten_one_level(tree) is None:
            return None
        pairs, _ = registry.flatten_one_level_with_keys(tree) or ((), None)
        children = list(pairs)
    except ValueError:
        return path, tree
    for key, child in children:
        culprit = _culprit(child, is_leaf, (*path, key))
        if culprit is not None:
            return culprit
    return None
