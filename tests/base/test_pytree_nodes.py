"""Registering node types: functions, classes, dataclasses, static values, Partial."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import dovetail as dt
import dovetail.tree as tree
import dovetail.tree_util as tree_util
from dovetail._core.base import pytree
from dovetail.tree_util import GetAttrKey


@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any = 0
    name: str = tree.static(default="dense")
    cached: int = dataclasses.field(default=3, init=False)


def test_dataclass() -> None:
    layer = Layer(1, [2, 3], name="a")
    leaves, treedef = tree.flatten(layer)
    assert leaves == [1, 2, 3]
    assert tree.unflatten(treedef, leaves) == layer
    assert [tree_util.keystr(path) for path, _ in tree.leaves_with_path(layer)] == [
        ".weight",
        ".bias[0]",
        ".bias[1]",
    ]
    assert tree.structure(layer) != tree.structure(Layer(1, [2, 3], name="b"))
    assert tree.map(operator.neg, layer) == Layer(-1, [-2, -3], name="a")
    text = pytree.structure_difference(layer, Layer(1, 2, name="a"))
    assert "key path .bias" in text
    text = pytree.structure_difference(layer, Layer(1, [2, 3], name="b"))
    assert "static data" in text
    assert pickle.loads(pickle.dumps(treedef)) == treedef


def test_dataclass_with_named_fields() -> None:
    @functools.partial(
        tree_util.register_dataclass, data_fields=["x"], meta_fields=["y"], drop_fields=["z"]
    )
    @dataclasses.dataclass
    class Point:
        x: int
        y: int = 5
        z: int = 7

    point = tree.map(lambda x: 10 * x, Point(1, 2, 3))
    assert point == Point(10, 2, 7)


def test_class_with_named_fields() -> None:
    class Plain:
        def __init__(self, x: Any, y: Any) -> None:
            self.x, self.y = x, y

    tree_util.register_dataclass(Plain, ["x"], ["y"])
    mapped = tree.map(str, Plain(1, 2))
    assert (mapped.x, mapped.y) == ("1", 2)


def test_dataclass_errors() -> None:
    @dataclasses.dataclass
    class Point:
        x: int
        y: int = 5

    class Plain:
        pass

    with pytest.raises(TypeError, match="both data_fields and meta_fields"):
        tree_util.register_dataclass(Point, ["x"])
    with pytest.raises(TypeError, match="not a dataclass"):
        tree_util.register_dataclass(Plain)
    with pytest.raises(ValueError, match=r"\['y'\] are in neither.*drop_fields"):
        tree_util.register_dataclass(Point, ["x"], [])
    with pytest.raises(ValueError, match=r"\['q'\] are not arguments"):
        tree_util.register_dataclass(Point, ["x", "q"], ["y"])
    with pytest.raises(ValueError, match=r"given twice: \['x'\]"):
        tree_util.register_dataclass(Point, ["x"], ["x", "y"])
    with pytest.raises(TypeError, match="expected a class"):
        tree_util.register_dataclass(Plain(), ["x"], [])  # type: ignore[type-var]
    assert not tree_util.is_tree_node(Point)
    tree_util.register_dataclass(Point)
    with pytest.raises(ValueError, match="already a node"):
        tree_util.register_dataclass(Point)


@pytest.mark.parametrize("kind", [dict, list, tuple, type(None), Layer, tree_util.Partial])
def test_types_are_registered_once(kind: type) -> None:
    with pytest.raises(ValueError, match=rf"{kind.__name__} is already a node of trees"):
        tree_util.register_pytree_node(kind, lambda x: ((), None), lambda data, children: None)


@dataclasses.dataclass
class Holder:
    weight: Any
    name: str


# Types with a handling of their own, or below one, and how one is made of a weight and a name.
SPECIAL: dict[str, tuple[Callable[[], Any], Callable[[Any, Any, str], Any]]] = {
    "namedtuple": (
        lambda: type("Pair", (collections.namedtuple("Pair", "weight name"),), {}),
        lambda kind, weight, name: kind(weight, name),
    ),
    "tuple": (lambda: type("Row", (tuple,), {}), lambda kind, *parts: kind(parts)),
    "list": (lambda: type("Rows", (list,), {}), lambda kind, *parts: kind(parts)),
    **{
        base.__name__: (
            functools.partial(type, base.__name__.title(), (base,), {}),
            lambda kind, weight, name: kind(weight=weight, name=name),
        )
        for base in (dict, collections.OrderedDict)
    },
    "defaultdict": (
        lambda: type("Counts", (collections.defaultdict,), {}),
        lambda kind, weight, name: kind(int, weight=weight, name=name),
    ),
    "dataclass": (
        lambda: type("Own", (Holder,), {}),
        lambda kind, weight, name: kind(weight, name),
    ),
}


def _parts(value: Any) -> tuple[Any, str]:
    if isinstance(value, Holder):
        return value.weight, value.name
    return tuple(value.values() if isinstance(value, dict) else value)


@pytest.mark.parametrize("used_before", [False, True])
@pytest.mark.parametrize("special", SPECIAL)
def test_types_with_a_handling_of_their_own(special: str, used_before: bool) -> None:
    create, make = SPECIAL[special]
    kind = create()
    value = make(kind, 2.0, "a")
    if used_before:
        before = tree.structure(value)
    tree_util.register_pytree_with_keys(
        kind,
        lambda value: (((GetAttrKey("only"), _parts(value)[0]),), _parts(value)[1]),
        lambda name, children: make(kind, *children, name),
    )
    if used_before:
        assert tree.structure(value) != before
    assert tree.leaves_with_path(value) == [((GetAttrKey("only"),), 2.0)]
    assert tree_util.flatten_one_level(value) == ((2.0,), "a")
    assert tree_util.flatten_one_level_with_keys(value) == (((GetAttrKey("only"), 2.0),), "a")
    changed = tree.map(operator.add, [value], [make(kind, 1.0, "a")])[0]
    assert type(changed) is kind
    assert _parts(changed) == (3.0, "a")
    assert "static data" in pytree.structure_difference(value, make(kind, 2.0, "b"))
    computed = dt.jit(lambda value: value)(value)
    assert type(computed) is kind
    assert _parts(dt.grad(lambda value: _parts(value)[0] ** 2)(value)) == (4.0, "a")
    with pytest.raises(ValueError, match="already a node"):
        tree_util.register_pytree_node(kind, lambda x: ((), None), lambda data, children: None)


def test_a_registered_named_tuple_by_decorator() -> None:
    @tree_util.register_pytree_node_class
    class Pair(collections.namedtuple("Pair", "weight name")):
        def tree_flatten(self) -> Any:
            return (self.weight,), self.name

        @classmethod
        def tree_unflatten(cls, name: str, children: Any) -> Pair:
            return cls(*children, name)

    @tree_util.register_static
    class Names(collections.namedtuple("Names", "first last")):
        pass

    class Below(Pair):
        pass

    assert tree.leaves([Pair(1, "a"), Names("a", "b"), Below(2, 3)]) == [1, 2, 3]


def test_a_refused_registration_leaves_no_trace() -> None:
    pair = collections.namedtuple("Pair", "left right")
    with pytest.raises(TypeError, match="unflatten_func must be a function"):
        tree_util.register_pytree_node(pair, lambda x: ((), None), 4)  # type: ignore[arg-type]
    paths = [tree_util.keystr(path) for path, _ in tree.leaves_with_path(pair(1, 2))]
    assert paths == [".left", ".right"]
    assert tree_util.flatten_one_level_with_keys(pair(1, 2))[0] == (
        (GetAttrKey("left"), 1),
        (GetAttrKey("right"), 2),
    )


def test_registration_wants_classes_and_functions() -> None:
    class Thing:
        pass

    with pytest.raises(TypeError, match="expected a class, got 3"):
        tree_util.register_pytree_node(3, lambda x: ((), None), lambda d, c: None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="flatten_func must be a function"):
        tree_util.register_pytree_node(Thing, None, lambda d, c: Thing())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unflatten_func must be a function"):
        tree_util.register_pytree_node(Thing, lambda x: ((), None), 4)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="no method tree_flatten and tree_unflatten"):
        tree_util.register_pytree_node_class(Thing)
    with pytest.raises(AttributeError, match="no method tree_flatten_with_keys"):
        tree_util.register_pytree_with_keys_class(Thing)
    assert not tree_util.is_tree_node(Thing)


def test_both_registries_know_a_type() -> None:
    class Both:
        pass

    tree_util.register_pytree_node(Both, lambda x: ((1, 2), "d"), lambda d, c: (d, tuple(c)))
    for registry in (pytree.registry, pytree.dispatch_registry):
        leaves, treedef = registry.flatten(Both())
        assert leaves == [1, 2]
        assert treedef.unflatten([3, 4]) == ("d", (3, 4))


def test_registries_can_differ() -> None:
    class Array:
        def __init__(self, buffer: Any) -> None:
            self.flat = ((buffer,), None)

    pytree.dispatch_registry.register_node(
        Array, operator.attrgetter("flat"), lambda data, children: Array(*children)
    )
    assert pytree.dispatch_registry.flatten([Array("b")])[0] == ["b"]
    array = Array("b")
    assert tree.leaves([array]) == [array]


def test_class_decorators() -> None:
    @tree_util.register_pytree_node_class
    class Point:
        def __init__(self, x: Any, y: Any) -> None:
            self.x, self.y = x, y

        def tree_flatten(self) -> Any:
            return (self.x, self.y), None

        @classmethod
        def tree_unflatten(cls, static_data: Any, children: Any) -> Point:
            return cls(*children)

    class Special(Point):
        pass

    assert tree.leaves(Point(1, (2,))) == [1, 2]
    assert isinstance(tree.map(str, Point(1, 2)), Point)
    assert len(tree.leaves(Special(1, 2))) == 1, "subclasses are not nodes"

    calls = []

    @tree_util.register_pytree_with_keys_class
    class Keyed(Point):
        def tree_flatten_with_keys(self) -> Any:
            return ((GetAttrKey("x"), self.x), (GetAttrKey("y"), self.y)), None

        def tree_flatten(self) -> Any:
            calls.append("flatten")
            return super().tree_flatten()

    assert tree.leaves(Keyed(1, 2)) == [1, 2]
    assert calls == ["flatten"]
    assert [path for path, _ in tree.leaves_with_path(Keyed(1, 2))] == [
        (GetAttrKey("x"),),
        (GetAttrKey("y"),),
    ]


def test_static_values() -> None:
    @tree_util.register_static
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    leaves, treedef = tree.flatten([Mode("a"), 1])
    assert leaves == [1]
    assert tree.unflatten(treedef, [2]) == [Mode("a"), 2]
    assert treedef == tree.structure([Mode("a"), 0])
    assert treedef != tree.structure([Mode("b"), 0])
    assert hash(treedef) == hash(tree.structure([Mode("a"), 0]))


def test_static_fields() -> None:
    field = tree.static(default=3, metadata={"unit": "m"})
    assert field.default == 3
    assert dict(field.metadata) == {"unit": "m", "static": True}


def function(*args: Any, **keywords: Any) -> Any:
    return args, keywords


def test_partial() -> None:
    partial = tree_util.Partial(function, 1, [2], a=3)
    assert partial(4, b=5) == ((1, [2], 4), {"a": 3, "b": 5})
    assert tree.leaves(partial) == [1, 2, 3]
    mapped = tree.map(lambda x: -x, partial)
    assert isinstance(mapped, tree_util.Partial)
    assert mapped() == ((-1, [-2]), {"a": -3})
    assert tree.structure(partial) == tree.structure(tree_util.Partial(function, 0, [0], a=0))
    assert tree.structure(partial) != tree.structure(tree_util.Partial(max, 0, [0], a=0))
    assert pickle.loads(pickle.dumps(partial))() == partial()


def test_partial_of_partials() -> None:
    inner = functools.partial(function, 1)
    closed = tree_util.Partial(inner, 2)
    assert closed(3) == ((1, 2, 3), {})
    assert tree.leaves(closed) == [2], "the arguments of functools.partial stay closed"
    assert tree.map(lambda x: 10 * x, closed)(3) == ((1, 20, 3), {})
    again = tree_util.Partial(functools.partial(function, 1), 2)
    assert tree.structure(closed) == tree.structure(again)
    assert hash(tree.structure(closed)) == hash(tree.structure(again))
    assert tree.structure(closed) != tree.structure(
        tree_util.Partial(functools.partial(function, 9), 2)
    )
    assert "function" in repr(closed)

    merged = tree_util.Partial(tree_util.Partial(function, 1, a=1), 2, b=2)
    assert tree.leaves(merged) == [1, 2, 1, 2]
    assert merged(3) == ((1, 2, 3), {"a": 1, "b": 2})


def test_partial_with_placeholders_for_its_containers() -> None:
    """Structures are composed and transposed with any object in place of the containers."""
    partial = tree_util.Partial(function, 1, a=2)
    top = tree.structure(partial, is_leaf=lambda node: node is partial.args)
    marked = tree.unflatten(top, ["arguments", 2])
    assert tree.leaves(marked) == ["arguments", 2]
