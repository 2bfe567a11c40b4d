"""The node types of pytrees, and their registration."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from dovetail._core.base import bindings
from dovetail._core.base.bindings import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    PyTreeRegistry,
    SequenceKey,
)
from dovetail._core.base.tracebacks import bounded

__all__ = [
    "KeyPath",
    "Partial",
    "check_structure",
    "child_keys",
    "dispatch_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_plain_named_tuple",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "registry",
    "static",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]

T = TypeVar("T")
Class = TypeVar("Class", bound=type)
KeyPath = tuple[Any, ...]

_HOME = "dovetail._core.base.pytree"
registry: PyTreeRegistry = bindings.new_pytree_registry("registry", _HOME)
"""The users' registry: an array is a leaf."""

dispatch_registry: PyTreeRegistry = bindings.new_pytree_registry("dispatch_registry", _HOME)
"""The registry of the C++ jit: the runtime makes the array class a node in it, with one child."""

_registries = (registry, dispatch_registry)

# Tree definitions do not store the keys of children; these functions compute them from the static
# data, by type.
_keys_of: dict[type, Callable[[Any], Sequence[Any]]] = {}

# The registered types. Named tuples are nodes without that, and get other rules by it.
_with_rules: set[type] = set()


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Any, Any]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_with_keys_func: Callable[[T], tuple[Any, Any]] | None = None,
) -> None:
    """Make a type a node of trees.

    Args:
        nodetype: the type; its subclasses are not included. A named tuple, which is a node without
            being registered, gets these functions in place of its own.
        flatten_func: maps an object to ``(children, static_data)``. The static data is part of the
            structure: it should be hashable, and is compared with ``==``.
        unflatten_func: maps the static data and the children to an object. It is also called with
            placeholders as children, so it should not check or convert them.
        flatten_with_keys_func: like ``flatten_func``, with ``(key, child)`` for each child.

    Raises:
        ValueError: the type is already registered.

    Example:
        >>> import dovetail.tree, dovetail.tree_util
        >>> class Pair:
        ...     def __init__(self, left, right):
        ...         self.left, self.right = left, right
        >>> dovetail.tree_util.register_pytree_node(
        ...     Pair,
        ...     lambda pair: ((pair.left, pair.right), None),
        ...     lambda _, children: Pair(*children),
        ... )
        >>> dovetail.tree.leaves(Pair(1, (2, 3)))
        [1, 2, 3]
    """
    _check_new("register_pytree_node", nodetype)
    for function, argument in (
        (flatten_func, "flatten_func"),
        (unflatten_func, "unflatten_func"),
    ):
        if not callable(function):
            raise TypeError(
                f"register_pytree_node: {argument} must be a function, got {function!r}"
            )
    _with_rules.add(nodetype)
    for each in _registries:
        each.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Make a type a node whose children have keys.

    Args:
        nodetype: the type.
        flatten_with_keys: maps an object to ``((key, child), ...)`` and static data.
        unflatten_func: maps the static data and the children to an object.
        flatten_func: like ``flatten_with_keys`` without the keys; makes flattening faster.

    Example:
        >>> import dovetail.tree, dovetail.tree_util
        >>> from dovetail.tree_util import GetAttrKey
        >>> class Box:
        ...     def __init__(self, content):
        ...         self.content = content
        >>> dovetail.tree_util.register_pytree_with_keys(
        ...     Box,
        ...     lambda box: (((GetAttrKey("content"), box.content),), None),
        ...     lambda _, children: Box(*children),
        ... )
        >>> [dovetail.tree_util.keystr(p) for p, _ in dovetail.tree.leaves_with_path([Box(1)])]
        ['[0].content']
    """

    def without_keys(value: T) -> tuple[list[Any], Any]:
        pairs, static_data = flatten_with_keys(value)
        return [child for _, child in pairs], static_data

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Class) -> Class:
    """Make a class with methods ``tree_flatten`` and ``tree_unflatten`` a node; a decorator.

    Args:
        cls: a class with a method ``tree_flatten(self)`` that gives ``(children, static_data)``
            and a class method ``tree_unflatten(cls, static_data, children)``.

    Returns:
        The class.

    Example:
        >>> import dovetail.tree, dovetail.tree_util
        >>> @dovetail.tree_util.register_pytree_node_class
        ... class Point:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        ...     def tree_flatten(self):
        ...         return (self.x, self.y), None
        ...     @classmethod
        ...     def tree_unflatten(cls, static_data, children):
        ...         return cls(*children)
        >>> dovetail.tree.leaves(Point(1, 2))
        [1, 2]
    """
    _require_methods("register_pytree_node_class", cls, "tree_flatten", "tree_unflatten")
    register_pytree_node(
        cls,
        operator.methodcaller("tree_flatten"),
        cls.tree_unflatten,  # type: ignore[attr-defined]
    )
    return cls


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Make a class with ``tree_flatten_with_keys`` and ``tree_unflatten`` a node; a decorator.

    Args:
        cls: a class with a method ``tree_flatten_with_keys(self)``, a class method
            ``tree_unflatten(cls, static_data, children)``, and maybe ``tree_flatten(self)``.

    Returns:
        The class.

    Example:
        >>> import dovetail.tree, dovetail.tree_util
        >>> from dovetail.tree_util import GetAttrKey
        >>> @dovetail.tree_util.register_pytree_with_keys_class
        ... class Line:
        ...     def __init__(self, start):
        ...         self.start = start
        ...     def tree_flatten_with_keys(self):
        ...         return ((GetAttrKey("start"), self.start),), None
        ...     @classmethod
        ...     def tree_unflatten(cls, static_data, children):
        ...         return cls(*children)
        >>> dovetail.tree.leaves_with_path(Line(1))
        [((GetAttrKey(name='start'),), 1)]
    """
    _require_methods(
        "register_pytree_with_keys_class", cls, "tree_flatten_with_keys", "tree_unflatten"
    )
    register_pytree_with_keys(
        cls,
        operator.methodcaller("tree_flatten_with_keys"),
        cls.tree_unflatten,  # type: ignore[attr-defined]
        operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Make a dataclass a node; also a decorator.

    Args:
        nodetype: a dataclass, or a class whose constructor takes the fields by keyword.
        data_fields: the fields that hold children. If absent, all that are not marked static with
            `dovetail.tree.static` (or ``metadata={"static": True}``) and are arguments of the
            constructor.
        meta_fields: the fields that hold static data.
        drop_fields: fields that are left out; unflattening gives them their defaults.

    Returns:
        The class.

    Raises:
        TypeError: only one of ``data_fields`` and ``meta_fields`` is given.
        ValueError: the fields do not cover those of the dataclass.

    Example:
        >>> import dataclasses
        >>> import dovetail.tree, dovetail.tree_util
        >>> @dovetail.tree_util.register_dataclass
        ... @dataclasses.dataclass
        ... class Layer:
        ...     weight: float
        ...     activation: str = dovetail.tree.static(default="relu")
        >>> dovetail.tree.map(lambda weight: 2 * weight, Layer(1.5))
        Layer(weight=3.0, activation='relu')
    """
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: give both data_fields and meta_fields or neither; "
            f"got {data_fields=} and {meta_fields=}"
        )
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if data_fields is None or meta_fields is None:
        if not is_dataclass:
            raise TypeError(
                f"register_dataclass: {nodetype!r} is not a dataclass, so data_fields and "
                "meta_fields must say what its fields are; or put @dataclasses.dataclass below "
                "register_dataclass"
            )
        fields = [
            field
            for field in dataclasses.fields(nodetype)
            if field.init and field.name not in drop_fields
        ]
        data_fields = [field.name for field in fields if not field.metadata.get("static", False)]
        meta_fields = [field.name for field in fields if field.metadata.get("static", False)]
    data_names, meta_names = tuple(data_fields), tuple(meta_fields)
    twice = [name for name, n in collections.Counter(data_names + meta_names).items() if n > 1]
    if twice:
        raise ValueError(f"register_dataclass: {nodetype.__name__}: fields given twice: {twice}")
    if is_dataclass:
        init_fields = {field.name for field in dataclasses.fields(nodetype) if field.init}
        given = {*data_names, *meta_names}
        missing = sorted(init_fields - given - set(drop_fields))
        unknown = sorted(given - init_fields)
        if missing or unknown:
            problems = [f"{missing} are in neither"] if missing else []
            problems += [f"{unknown} are not arguments of its constructor"] if unknown else []
            raise ValueError(
                f"register_dataclass: data_fields and meta_fields must cover the fields of "
                f"{nodetype.__name__}: {' and '.join(problems)}. Leave out fields with drop_fields."
            )
    _check_new("register_dataclass", nodetype)
    _with_rules.add(nodetype)
    for each in _registries:
        each.register_dataclass_node(nodetype, data_names, meta_names)
    keys = tuple(GetAttrKey(name) for name in data_names)
    _keys_of[nodetype] = lambda _: keys
    return nodetype


def register_static(cls: Class) -> Class:
    """Make a class a node without children, part of the structure; a decorator.

    Args:
        cls: a class with ``__hash__`` and ``__eq__``.

    Returns:
        The class.

    Example:
        >>> import dovetail.tree, dovetail.tree_util
        >>> @dovetail.tree_util.register_static
        ... class Name(str):
        ...     pass
        >>> dovetail.tree.leaves([Name("a"), 1])
        [1]
    """
    register_pytree_node(cls, _no_children, _only_static_data, _no_children)
    return cls


def _no_children(value: Any) -> tuple[tuple[()], Any]:
    return (), value


def _only_static_data(static_data: Any, children: Any) -> Any:
    return static_data


def static(**kwargs: Any) -> Any:
    """A dataclass field that is static data of the node; arguments as for `dataclasses.field`.

    Example:
        >>> import dataclasses
        >>> import dovetail.tree
        >>> @dataclasses.dataclass
        ... class Layer:
        ...     name: str = dovetail.tree.static(default="dense")
        >>> dataclasses.fields(Layer)[0].metadata["static"]
        True
    """
    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)


def _check_new(name: str, nodetype: Any) -> None:
    _check_class(name, nodetype)
    if registry.is_node(nodetype) and not is_plain_named_tuple(nodetype):
        raise ValueError(
            f"{name}: {nodetype.__module__}.{nodetype.__qualname__} is already a node of trees; a "
            "type is registered once, where it is defined"
        )


def _check_class(name: str, nodetype: Any) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(f"{name}: expected a class, got {nodetype!r}")


def _require_methods(name: str, cls: type, *methods: str) -> None:
    _check_class(name, cls)
    missing = [method for method in methods if not hasattr(cls, method)]
    if missing:
        raise AttributeError(
            f"{name}: the class {cls.__qualname__} has no method {' and '.join(missing)}"
        )


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as text.

    Args:
        keys: a path, from `flatten_with_path`.
        simple: write only the names: ``a`` instead of ``['a']``.
        separator: put between the keys.

    Example:
        >>> import dovetail.tree, dovetail.tree_util
        >>> [(path, _)] = dovetail.tree.leaves_with_path({"a": [1]})
        >>> dovetail.tree_util.keystr(path)
        "['a'][0]"
        >>> dovetail.tree_util.keystr(path, simple=True, separator="/")
        'a/0'
    """
    if not np.iterable(keys):
        raise TypeError(f"keystr: keys must be a path, a tuple of keys, got {keys!r:.80}")
    if not isinstance(separator, str):
        raise TypeError(f"keystr: separator must be a string, got {separator!r:.80}")
    return separator.join([_simple_key(key) if simple else str(key) for key in keys])


def _simple_key(key: Any) -> str:
    match key:
        case SequenceKey():
            return str(key.idx)
        case DictKey() | FlattenedIndexKey():
            return str(key.key)
        case GetAttrKey():
            return str(key.name)
    return str(key)


def is_plain_named_tuple(kind: type) -> bool:
    """Whether a type is a named tuple whose children are its fields."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and kind not in _with_rules


def is_tree_node(typ: type) -> bool:
    """Whether objects of a type are nodes.

    Example:
        >>> import dovetail.tree_util
        >>> dovetail.tree_util.is_tree_node(dict), dovetail.tree_util.is_tree_node(int)
        (True, False)
    """
    return registry.is_node(typ)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """The children and the static data of one node.

    Raises:
        ValueError: ``tree`` is a leaf.

    Example:
        >>> import dovetail.tree_util
        >>> dovetail.tree_util.flatten_one_level({"b": [1], "a": 2})
        ((2, [1]), ('a', 'b'))
    """
    flattened = registry.flatten_one_level(tree)
    if flattened is None:
        raise ValueError(
            f"flatten_one_level: a value of type {type(tree).__name__} is a leaf, not a node"
        )
    children, static_data = flattened
    return tuple(children), static_data


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """The children with their keys, and the static data, of one node.

    Raises:
        ValueError: ``tree`` is a leaf.

    Example:
        >>> import dovetail.tree_util
        >>> dovetail.tree_util.flatten_one_level_with_keys([7])
        (((SequenceKey(idx=0), 7),), None)
    """
    flattened = registry.flatten_one_level_with_keys(tree)
    if flattened is None:
        raise ValueError(
            f"flatten_one_level_with_keys: a value of type {type(tree).__name__} is a leaf, not a "
            "node"
        )
    pairs, static_data = flattened
    if is_plain_named_tuple(type(tree)):
        # jaxlib before 0.11 gives every field of a named tuple the name of the first.
        pairs = zip([GetAttrKey(name) for name in tree._fields], tree, strict=True)
    return tuple(pairs), static_data


def check_structure(function: str, treedef: Any) -> None:
    """Raise TypeError unless an argument is the structure of a tree."""
    if not isinstance(treedef, PyTreeDef):
        raise TypeError(
            f"{function} takes the structure of a tree, as tree.structure(x) gives it, got "
            f"{type(treedef).__name__}: {treedef!r:.80}"
        )


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of a structure's outermost node.

    Example:
        >>> import dovetail.tree, dovetail.tree_util
        >>> dovetail.tree_util.treedef_children(dovetail.tree.structure((1, [2])))
        [PyTreeDef(*), PyTreeDef([*])]
    """
    check_structure("treedef_children", treedef)
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is a single leaf. (Unlike in JAX, an empty container is not a leaf.)

    Example:
        >>> import dovetail.tree, dovetail.tree_util
        >>> dovetail.tree_util.treedef_is_leaf(dovetail.tree.structure(1))
        True
    """
    check_structure("treedef_is_leaf", treedef)
    return treedef.node_data() is None


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees with the given structures.

    Example:
        >>> import dovetail.tree, dovetail.tree_util
        >>> leaf, empty = dovetail.tree.structure(1), dovetail.tree.structure([])
        >>> dovetail.tree_util.treedef_tuple([leaf, empty])
        PyTreeDef((*, []))
    """
    if not np.iterable(treedefs):
        raise TypeError(f"treedef_tuple takes a sequence of structures, got {treedefs!r:.80}")
    structures = list(treedefs)
    for treedef in structures:
        check_structure("treedef_tuple", treedef)
    definition: PyTreeDef = bindings._jax.pytree.treedef_tuple(registry, structures)
    return definition


def child_keys(kind: type, static_data: Any, count: int) -> list[Any]:
    """The keys of the children of a node of a tree definition.

    Args:
        kind: the type of the node.
        static_data: its static data.
        count: the number of its children.
    """
    if kind in (tuple, list):
        return [SequenceKey(index) for index in range(count)]
    if kind is dict:
        return [DictKey(key) for key in static_data]
    if kind in _keys_of:
        return list(_keys_of[kind](static_data))
    if is_plain_named_tuple(kind):
        return [GetAttrKey(name) for name in kind._fields]  # type: ignore[attr-defined]
    return [FlattenedIndexKey(index) for index in range(count)]


@bounded
class Partial(functools.partial[Any]):
    """`functools.partial` that is a node of trees: the arguments are children, the function is not.

    This lets a function with some array arguments already bound be passed to a transformed
    function. If ``func`` is a plain `functools.partial`, its arguments stay part of the function
    and are static.

    Args:
        func: the function.
        *args: the first positional arguments.
        **kw: keyword arguments.

    Example:
        >>> import operator
        >>> import dovetail.tree, dovetail.tree_util
        >>> add_one = dovetail.tree_util.Partial(operator.add, 1)
        >>> add_one(2)
        3
        >>> dovetail.tree.map(lambda x: 10 * x, add_one)(2)
        12
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **kw: Any) -> Partial:
        if isinstance(func, functools.partial) and not isinstance(func, Partial):
            # functools.partial would merge in the inner arguments, and so make them children.
            func = _Closed(func)
        if not callable(func):
            raise TypeError(f"Partial takes a function first, got {func!r:.80}")
        return super().__new__(cls, func, *args, **kw)


class _Closed:
    """A `functools.partial` as an opaque function, compared by its contents."""

    def __init__(self, function: functools.partial[Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kw: Any) -> Any:
        return self.function(*args, **kw)

    def _parts(self) -> tuple[Any, ...]:
        function = self.function
        return function.func, function.args, tuple(sorted(function.keywords.items()))

    def __hash__(self) -> int:
        return hash(self._parts())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Closed) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return repr(self.function)


def _partial_unflatten(function: Any, children: Any) -> Partial:
    arguments, keywords = children
    if type(arguments) is tuple and type(keywords) is dict:
        return Partial(function, *arguments, **keywords)
    # Placeholders stand for the two containers while a structure is examined.
    partial = Partial(function)
    partial.__setstate__((function, (arguments,), {"": keywords}, {}))  # type: ignore[attr-defined]
    return partial


def _dict_pairs(value: dict[Any, Any], keys: Iterable[Any]) -> tuple[tuple[Any, Any], ...]:
    return tuple((DictKey(key), value[key]) for key in keys)


def _sorted_keys(value: dict[Any, Any]) -> tuple[Any, ...]:
    return tuple(sorted(value))


register_pytree_node(
    collections.OrderedDict,
    lambda value: (tuple(value.values()), tuple(value)),
    lambda keys, children: collections.OrderedDict(zip(keys, children, strict=True)),
    lambda value: (_dict_pairs(value, value), tuple(value)),
)
_keys_of[collections.OrderedDict] = lambda keys: [DictKey(key) for key in keys]

register_pytree_node(
    collections.defaultdict,
    lambda value: (
        tuple(value[key] for key in _sorted_keys(value)),
        (value.default_factory, _sorted_keys(value)),
    ),
    lambda data, children: collections.defaultdict(data[0], zip(data[1], children, strict=True)),
    lambda value: (
        _dict_pairs(value, _sorted_keys(value)),
        (value.default_factory, _sorted_keys(value)),
    ),
)
_keys_of[collections.defaultdict] = lambda data: [DictKey(key) for key in data[1]]

_PARTIAL_KEYS = (GetAttrKey("args"), GetAttrKey("keywords"))
register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    _partial_unflatten,
    lambda partial: (
        tuple(zip(_PARTIAL_KEYS, (partial.args, partial.keywords), strict=True)),
        partial.func,
    ),
)
_keys_of[Partial] = lambda _: _PARTIAL_KEYS
