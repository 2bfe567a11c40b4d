"""Types of tree nodes that exported programs name in their arguments and results."""

from __future__ import annotations

import collections
import json
from collections.abc import Callable
from typing import Any, Final, TypeVar

from dovetail._core.api.export.records import Record, Table
from dovetail._core.base import pytree
from dovetail._core.base.records import record

__all__ = [
    "read_tree",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "tree_record",
]

T = TypeVar("T")


@record
class _NodeType:
    """How nodes of a type are written and read."""

    kind: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    from_children: Callable[[Any, Any], Any] | None


_by_type: Final[dict[type, _NodeType]] = {}
_by_name: Final[dict[str, _NodeType]] = {}


def _register(node: _NodeType) -> None:
    if node.kind in _by_type:
        raise ValueError(
            f"{node.kind.__qualname__} has a name for serialization: {_by_type[node.kind].name!r}"
        )
    if node.name in _by_name:
        raise ValueError(
            f"the name {node.name!r} is that of {_by_name[node.name].kind.__qualname__}; give "
            f"{node.kind.__qualname__} another one, such as one with the name of its module"
        )
    _by_name[node.name] = node
    _by_type[node.kind] = node


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> type[T]:
    """Let exported programs take and return trees with nodes of a type.

    Who calls a program that was serialized registers the type by the same name.

    Args:
        nodetype: a type that is registered as a tree node.
        serialized_name: the name that stands for it, in all processes.
        serialize_auxdata: its static data as bytes.
        deserialize_auxdata: the static data from bytes.
        from_children: makes a node of static data and children; by default what is registered with
            the type.

    Returns:
        `nodetype`, so that this can decorate a class.

    Raises:
        ValueError: the type or the name is registered already, or the type is no tree node.

    Example:
        >>> import dovetail as dt
        >>> from dovetail import export
        >>> @dt.tree_util.register_pytree_node_class
        ... class Scaled:
        ...     def __init__(self, x, unit):
        ...         self.x, self.unit = x, unit
        ...     def tree_flatten(self):
        ...         return (self.x,), self.unit
        ...     @classmethod
        ...     def tree_unflatten(cls, unit, children):
        ...         return cls(*children, unit)
        >>> _ = export.register_pytree_node_serialization(
        ...     Scaled, serialized_name="example.Scaled",
        ...     serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode,
        ... )
    """
    if not isinstance(nodetype, type) or not pytree.is_tree_node(nodetype):
        raise ValueError(
            f"{nodetype!r} is not registered as a tree node: call "
            "dovetail.tree_util.register_pytree_node first"
        )
    _register(
        _NodeType(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    )
    return nodetype


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Let exported programs take and return named tuples of a type.

    Args:
        nodetype: made by `collections.namedtuple` or `typing.NamedTuple`.
        serialized_name: the name that stands for it, in all processes.

    Returns:
        `nodetype`.

    Raises:
        ValueError: it is no named tuple, or the type or the name is registered already.

    Example:
        >>> import typing
        >>> from dovetail import export
        >>> class Point(typing.NamedTuple):
        ...     x: float
        ...     y: float
        >>> _ = export.register_namedtuple_serialization(Point, serialized_name="example.Point")
    """
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple)) or not hasattr(
        nodetype, "_fields"
    ):
        raise ValueError(
            f"{nodetype!r} is no named tuple; register_pytree_node_serialization takes other types "
            "of tree nodes"
        )
    fields: tuple[str, ...] = nodetype._fields  # type: ignore[attr-defined]

    def read(data: bytes) -> Any:
        written = json.loads(data)
        if tuple(written) != fields:
            raise ValueError(
                f"the fields of {nodetype.__qualname__} are {list(fields)}, and were {written} "
                "when the program was exported"
            )
        return nodetype

    _register(
        _NodeType(
            nodetype,
            serialized_name,
            lambda aux: json.dumps(list(fields)).encode(),
            read,
            lambda aux, children: nodetype(*children),
        )
    )
    return nodetype


_register(
    _NodeType(
        collections.OrderedDict,
        "collections.OrderedDict",
        lambda keys: json.dumps(list(keys)).encode(),
        lambda data: tuple(json.loads(data)),
        lambda keys, children: collections.OrderedDict(zip(keys, children, strict=True)),
    )
)

_LEAF, _NONE, _TUPLE, _LIST, _DICT, _CUSTOM = range(6)


def tree_record(tree: Any) -> Record:
    """The record of a tree definition.

    Raises:
        ValueError: a type of node has no name for serialization, or a dictionary other keys than
            strings.
    """
    data = tree.node_data()
    if data is None:
        return [(0, "u8", _LEAF if tree.num_leaves else _NONE)]
    kind, aux = data
    children = (1, "[table]", [tree_record(child) for child in tree.children()])
    if kind is type(None):
        return [(0, "u8", _NONE)]
    if kind is tuple or kind is list:
        return [(0, "u8", _TUPLE if kind is tuple else _LIST), children]
    if kind is dict:
        other = [key for key in aux if not isinstance(key, str)]
        if other:
            raise ValueError(
                "dictionaries in the arguments or results of serialized programs have strings as "
                f"keys; got {other[0]!r}, of type {type(other[0]).__name__}"
            )
        return [(0, "u8", _DICT), children, (2, "[str]", list(aux))]
    node = _by_type.get(kind)
    if node is None:
        function = "register_pytree_node_serialization"
        if hasattr(kind, "_fields"):
            function = "register_namedtuple_serialization"
        raise ValueError(
            f"a tree of arguments or results has nodes of the type {kind.__qualname__}, which has "
            f"no name for serialization: call dovetail.export.{function}"
        )
    written = node.write(aux)
    if not isinstance(written, (bytes, bytearray)):
        raise TypeError(
            f"serialize_auxdata of {kind.__qualname__} must return bytes, got "
            f"{type(written).__name__}"
        )
    return [(0, "u8", _CUSTOM), children, (3, "str", node.name), (4, "bytes", bytes(written))]


def read_tree(table: Table | None) -> Any:
    """The tree definition in a record.

    Raises:
        ValueError: it has nodes of a type that is not registered.
    """
    return pytree.structure(_example(table))


def _example(table: Table | None) -> Any:
    """A tree of that structure."""
    if table is None:
        raise IndexError("a tree is missing")
    kind = table.number(0, "u8")
    if kind == _LEAF:
        return 0
    if kind == _NONE:
        return None
    children = [_example(child) for child in table.tables(1)]
    if kind == _TUPLE:
        return tuple(children)
    if kind == _LIST:
        return children
    if kind == _DICT:
        return dict(zip(table.texts(2), children, strict=True))
    if kind != _CUSTOM:
        raise ValueError(f"the program has tree nodes of the kind {kind}, which is unknown here")
    name = table.text(3)
    node = _by_name.get(name)
    if node is None:
        raise ValueError(
            f"the arguments or results of this program have nodes of a type that was named "
            f"{name!r} when it was exported: register it by that name, with "
            "dovetail.export.register_pytree_node_serialization or "
            "register_namedtuple_serialization"
        )
    aux = node.read(table.bytes(4))
    if node.from_children is not None:
        return node.from_children(aux, children)
    made = pytree.PyTreeDef.from_node_data_and_children(
        pytree.registry, (node.kind, aux), [pytree.structure(child) for child in children]
    )
    return made.unflatten([leaf for child in children for leaf in pytree.leaves(child)])
