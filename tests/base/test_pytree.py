"""Trees: taking apart, mapping, putting together, and the errors when structures differ."""

from __future__ import annotations

import collections
import itertools
import pickle
from typing import Any, NamedTuple

import pytest

import dovetail.numpy as jnp
import dovetail.tree as tree
import dovetail.tree_util as tree_util
from dovetail._core.base import pytree
from dovetail.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey


class Pair(NamedTuple):
    x: Any
    y: Any


class Bare:
    """A node whose type gives no keys."""

    def __init__(self, *children: Any) -> None:
        self.children = children

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bare) and self.children == other.children

    def __hash__(self) -> int:
        return hash(self.children)


tree_util.register_pytree_node(
    Bare, lambda bare: (bare.children, len(bare.children)), lambda _, children: Bare(*children)
)

# tree, leaves, paths
TREES: list[tuple[Any, list[Any], list[str]]] = [
    (1, [1], [""]),
    (None, [], []),
    ((), [], []),
    ([1, (2, None)], [1, 2], ["[0]", "[1][0]"]),
    ({"b": 1, "a": [2]}, [2, 1], ["['a'][0]", "['b']"]),
    ({2: "x", 1: "y"}, ["y", "x"], ["[1]", "[2]"]),
    (collections.OrderedDict(b=1, a=2), [1, 2], ["['b']", "['a']"]),
    (collections.defaultdict(list, b=1, a=2), [2, 1], ["['a']", "['b']"]),
    (Pair(1, [2]), [1, 2], [".x", ".y[0]"]),
    (Bare(1, Bare(2)), [1, 2], ["[<flat index 0>]", "[<flat index 1>][<flat index 0>]"]),
    (
        tree_util.Partial(max, 1, key=2),
        [1, 2],
        [".args[0]", ".keywords['key']"],
    ),
    ("text", ["text"], [""]),
    (collections.deque([1]), [collections.deque([1])], [""]),
]


@pytest.mark.parametrize(("value", "leaves", "paths"), TREES, ids=lambda value: str(value)[:30])
def test_flatten_and_unflatten(value: Any, leaves: list[Any], paths: list[str]) -> None:
    flat, treedef = tree.flatten(value)
    assert flat == leaves == tree.leaves(value)
    assert treedef == tree.structure(value)
    assert treedef.num_leaves == len(leaves)
    pairs, same = tree.flatten_with_path(value)
    assert same == treedef
    assert pairs == tree.leaves_with_path(value)
    assert [leaf for _, leaf in pairs] == leaves
    assert [tree_util.keystr(path) for path, _ in pairs] == paths
    again = tree.unflatten(treedef, leaves)
    assert type(again) is type(value)
    assert tree.leaves(again) == leaves
    assert tree.structure(again) == treedef


@pytest.mark.parametrize(("value", "leaves", "paths"), TREES, ids=lambda value: str(value)[:30])
def test_map_keeps_the_structure(value: Any, leaves: list[Any], paths: list[str]) -> None:
    mapped = tree.map(lambda leaf: (leaf, "new"), value)
    assert tree.leaves(mapped, is_leaf=lambda x: isinstance(x, tuple) and x[-1:] == ("new",)) == [
        (leaf, "new") for leaf in leaves
    ]
    assert type(mapped) is type(value) or leaves == [value]
    doubled = tree.map(lambda a, b: a is b, value, value)
    assert tree.all(doubled)
    named = tree.map_with_path(lambda path, leaf: tree_util.keystr(path), value)
    assert tree.leaves(named) == paths


@pytest.mark.parametrize(("value", "leaves", "paths"), TREES, ids=lambda value: str(value)[:30])
def test_structures_are_pickled(value: Any, leaves: list[Any], paths: list[str]) -> None:
    treedef = tree.structure(value)
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    in_dispatch = pytree.dispatch_registry.flatten(value)[1]
    assert pickle.loads(pickle.dumps(in_dispatch)) == in_dispatch == treedef


def test_is_leaf() -> None:
    value = {"a": (1, 2), "b": [3]}
    assert tree.leaves(value, is_leaf=lambda node: isinstance(node, tuple)) == [(1, 2), 3]
    assert tree.leaves([None, 1], is_leaf=lambda node: node is None) == [None, 1]
    assert tree.map(len, value, is_leaf=lambda node: node is not value) == {"a": 2, "b": 1}
    with_path = tree.leaves_with_path(
        value, is_leaf=lambda path, node: len(path) == 1, is_leaf_takes_path=True
    )
    assert with_path == [((DictKey("a"),), (1, 2)), ((DictKey("b"),), [3])]
    assert tree.map_with_path(
        lambda path, leaf, other: (len(path), leaf, other),
        [1, (2,)],
        [10, "x"],
        is_leaf=lambda node: isinstance(node, tuple),
    ) == [(1, 1, 10), (1, (2,), "x")]


def test_is_leaf_must_be_callable() -> None:
    with pytest.raises(TypeError, match="is_leaf must be a function"):
        tree.leaves([1], is_leaf=3)  # type: ignore[arg-type]


def test_errors_of_is_leaf_are_not_hidden() -> None:
    def broken(node: Any) -> bool:
        raise ValueError("my own error")

    with pytest.raises(ValueError, match="my own error"):
        tree.leaves([1], is_leaf=broken)


def test_rest_may_be_deeper() -> None:
    assert tree.map(lambda a, b: (a, b), [1, 2], [{"x": 3}, None]) == [(1, {"x": 3}), (2, None)]


class Other(NamedTuple):
    x: Any


MISMATCHES: list[tuple[Any, Any, list[str]]] = [
    ((1, 2), [1, 2], ["at the root", "tuple of length 2", "list of length 2", "different nodes"]),
    ((1, 2), (1, 2, 3), ["at the root", "tuple of length 2", "tuple of length 3"]),
    ((1, {"a": [2]}), (1, {"a": 2}), ["[1]['a']", "list of length 1", "a leaf of type int"]),
    ({"a": 1}, {"b": 1}, ["['a']", "['b']", "only in the first: ['a']", "second: ['b']"]),
    ({"a": 1}, {"a": 1, "b": 2}, ["only in the second: ['b']"]),
    ((1, None), (1, 2), ["[1]", "None, which has no leaves", "a leaf of type int"]),
    (Pair(1, (2,)), Pair(1, 3), ["key path .y", "tuple of length 1"]),
    (Pair(1, 2), Other(1), ["named tuple Pair(x, y)", "named tuple Other(x)"]),
    (Bare(1), Bare(1, 2), ["Bare with 1 child", "Bare with 2 children and static data 2"]),
    (
        collections.OrderedDict(a=1, b=2),
        collections.OrderedDict(b=1, a=2),
        ["OrderedDict with 2 children", "('b', 'a')"],
    ),
    (
        [collections.OrderedDict(a=1, b=(1,))],
        [collections.OrderedDict(a=1, b=2)],
        ["[0]['b']"],
    ),
    ([collections.defaultdict(int, a=(1,))], [collections.defaultdict(int, a=2)], ["[0]['a']"]),
    (tree_util.Partial(max, (1,)), tree_util.Partial(max, 2), [".args[0]"]),
]


@pytest.mark.parametrize(("a", "b", "parts"), MISMATCHES, ids=lambda value: str(value)[:30])
def test_map_says_where_structures_differ(a: Any, b: Any, parts: list[str]) -> None:
    for function in (tree.map, tree.map_with_path):
        with pytest.raises(ValueError, match="tree number 3 has another structure") as caught:
            function(lambda *leaves: leaves, a, a, b)
        for part in ["first tree", *parts]:
            assert part in str(caught.value)


@pytest.mark.parametrize(("a", "b", "parts"), MISMATCHES, ids=lambda value: str(value)[:30])
def test_structure_difference(a: Any, b: Any, parts: list[str]) -> None:
    text = pytree.structure_difference(a, b, "one", "two")
    for part in parts:
        assert part in text
    of_definitions = pytree.structure_difference(tree.structure(a), tree.structure(b))
    assert of_definitions.splitlines()[0] == text.splitlines()[0]
    assert pytree.structure_difference(a, a) == ""


def test_structure_difference_below_leaves() -> None:
    assert "a leaf" in pytree.structure_difference(tree.structure(1), (1,))
    assert pytree.structure_difference((1, 2), (3, "x")) == ""


@pytest.mark.parametrize("shape", [(), (0,), (3,)])
def test_structure_difference_tells_the_types_of_arrays(shape: tuple[int, ...]) -> None:
    array = jnp.zeros(shape)
    text = pytree.structure_difference({"w": array}, array)
    assert f"a leaf of type Array ({array.aval})" in text


def test_types_of_one_name_are_told_apart() -> None:
    def make() -> type:
        class Same:
            pass

        tree_util.register_static(Same)
        return Same

    text = pytree.structure_difference(make()(), make()())
    assert "same name but are different classes" in text


def test_flatten_up_to() -> None:
    treedef = tree.structure((0, [0]))
    assert pytree.flatten_up_to(treedef, ((1, 2), [3])) == [(1, 2), 3]
    with pytest.raises(ValueError, match=r"key path \[1\]"):
        pytree.flatten_up_to(treedef, ((1, 2), 3))


def test_broadcast() -> None:
    assert tree.broadcast((1, 2), ({"a": 0, "b": 0}, 0)) == ({"a": 1, "b": 1}, 2)
    assert tree.broadcast(1, [0, (0, None)]) == [1, (1, None)]
    assert tree.broadcast([1, None], [[0, 0], None]) == [[1, 1], None]
    full = {"a": (0, 0), "b": 0}
    assert tree.broadcast(7, full, is_leaf=lambda node: isinstance(node, tuple)) == {"a": 7, "b": 7}
    with pytest.raises(ValueError, match=r"not a prefix of full_tree\n  at key path \[0\]"):
        tree.broadcast(((1, 1), 2), ([0, 0], 0))
    with pytest.raises(ValueError, match="None, which has no leaves"):
        tree.broadcast(None, (0, 0))


@pytest.mark.parametrize(
    ("prefix", "full", "expected"),
    [
        (0, {"a": 1, "b": (2, 3)}, [0, 0, 0]),
        (None, (1, 2), [None, None]),
        ((0, None), ({"a": 1, "b": 2}, 3), [0, 0, None]),
        ({"a": None, "b": 1}, {"a": (1, 2), "b": 3}, [None, None, 1]),
        ((0, None), (1, None), [0]),
        (("x", 1), (None, 2), [1]),
        ([Pair(None, 2)], [Pair([1, 1], 1)], [None, None, 2]),
        ((), (), []),
    ],
)
def test_flatten_up_to_prefix(prefix: Any, full: Any, expected: list[Any]) -> None:
    assert pytree.flatten_up_to_prefix("in_axes", prefix, tree.structure(full)) == expected


def test_flatten_up_to_prefix_with_own_leaves() -> None:
    full = tree.structure(({"a": 1, "b": 2}, 3))
    is_leaf = lambda node: isinstance(node, list)
    found = pytree.flatten_up_to_prefix("specs", ([1, 2], None), full, is_leaf=is_leaf)
    assert found == [[1, 2], [1, 2], None]


@pytest.mark.parametrize(
    ("prefix", "full", "parts"),
    [
        ((0, 1), (1,), ["at the root", "tuple of length 2", "tuple of length 1"]),
        (({"a": 0}, 1), ({"b": 1}, 1), ["[0]", "['a']", "['b']"]),
        ((0, (0, 0)), (1, 1), ["[1]", "a leaf"]),
        ([0], (1,), ["different nodes"]),
    ],
)
def test_flatten_up_to_prefix_errors(prefix: Any, full: Any, parts: list[str]) -> None:
    with pytest.raises(ValueError, match="in_axes of vmap must have the structure") as caught:
        pytree.flatten_up_to_prefix("in_axes of vmap", prefix, tree.structure(full))
    for part in parts:
        assert part in str(caught.value)


def test_transpose() -> None:
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": (0,)})
    value = [{"a": 1, "b": (2,)}, {"a": 3, "b": (4,)}]
    expected = {"a": [1, 3], "b": ([2, 4],)}
    assert tree.transpose(outer, inner, value) == expected
    assert tree.transpose(outer, None, value) == expected
    with pytest.raises(TypeError, match=r"(?s)leaf 1.*") as caught:
        tree.transpose(outer, None, [(1, 2), (3, (4, 5))])
    assert "key path [1]" in str(caught.value)
    with pytest.raises(ValueError, match="at the root"):
        tree.transpose(outer, inner, (1, 2))
    with pytest.raises(ValueError, match="inner_treedef must be given"):
        tree.transpose(tree.structure([]), None, [])
    assert tree.transpose(tree.structure([]), inner, []) == {"a": [], "b": ([],)}


def test_reduce() -> None:
    add = lambda a, b: f"({a}{b})"
    assert tree.reduce(add, list("abc")) == "((ab)c)"
    assert tree.reduce(add, list("ab"), "s") == "((sa)b)"
    assert tree.reduce(add, [], initializer=None) is None
    assert tree.reduce(add, [(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == "((1, 2)3)"
    with pytest.raises(TypeError, match="no initializer"):
        tree.reduce(add, [])


@pytest.mark.parametrize("size", range(1, 20))
def test_reduce_associative_keeps_order_and_is_balanced(size: int) -> None:
    depth = lambda a, b: (1 + max(a[0], b[0]), a[1] + b[1])
    levels, order = tree.reduce_associative(
        depth, [(0, [i]) for i in range(size)], is_leaf=lambda x: isinstance(x, tuple)
    )
    assert order == list(range(size))
    assert levels == (size - 1).bit_length()


def test_reduce_associative_without_leaves() -> None:
    assert tree.reduce_associative(max, [], identity=0) == 0
    with pytest.raises(TypeError, match="identity"):
        tree.reduce_associative(max, [])


def test_all() -> None:
    assert tree.all([])
    assert tree.all([True, (1,)])
    assert not tree.all([True, (0,)])
    assert tree.all([(0, 0)], is_leaf=lambda node: isinstance(node, tuple))


def test_unflatten_counts_leaves() -> None:
    treedef = tree.structure((0, 0))
    assert tree.unflatten(treedef, iter([1, 2])) == (1, 2)
    with pytest.raises(ValueError, match="Too few leaves"):
        tree.unflatten(treedef, [1])
    with pytest.raises(ValueError, match="Too many leaves"):
        tree.unflatten(treedef, [1, 2, 3])


def test_keys_that_cannot_be_sorted() -> None:
    with pytest.raises(ValueError, match=r"key path \[0\]\['k'\].*\[1, 'a'\].*int, str"):
        tree.flatten([{"k": {1: 2, "a": 3}}])
    with pytest.raises(ValueError, match="at the root"):
        tree.leaves_with_path({1: 2, "a": 3})


@pytest.mark.parametrize("garbage", [None, 7, (1, 2, 3), (5, None), [(), None]])
def test_registered_functions_that_return_garbage(garbage: Any) -> None:
    class Broken:
        pass

    tree_util.register_pytree_node(Broken, lambda _: garbage, lambda data, children: Broken())
    with pytest.raises(ValueError, match=r"registered for .*Broken, at key path \['a'\]\[1\]"):
        tree.flatten({"a": [0, Broken()]})


def test_registered_functions_that_return_no_keys() -> None:
    class Keyless:
        pass

    tree_util.register_pytree_with_keys(
        Keyless, lambda _: ((1,), None), lambda data, children: Keyless(), lambda _: ((1,), None)
    )
    assert tree.leaves(Keyless()) == [1]
    with pytest.raises(ValueError, match=r"Keyless, at key path \[0\].*\(\(key, child\), ...\)"):
        tree.flatten_with_path([Keyless()])


def test_errors_of_registered_functions_are_not_hidden() -> None:
    class Raising:
        pass

    def raising(_: Any) -> Any:
        raise ValueError("my own error")

    tree_util.register_pytree_node(Raising, raising, lambda data, children: Raising())
    with pytest.raises(ValueError, match="my own error"):
        tree.flatten([Raising()])


def test_keystr() -> None:
    path = (DictKey("a"), SequenceKey(3), GetAttrKey("w"), FlattenedIndexKey(0), "own")
    assert tree_util.keystr(()) == ""
    assert tree_util.keystr(path) == "['a'][3].w[<flat index 0>]own"
    assert tree_util.keystr(path, simple=True, separator="/") == "a/3/w/0/own"
    assert tree_util.keystr(path[:2], separator="|") == "['a']|[3]"


def test_one_level() -> None:
    assert tree_util.flatten_one_level({"b": [1], "a": 2}) == ((2, [1]), ("a", "b"))
    assert tree_util.flatten_one_level(None) == ((), None)
    pairs, _ = tree_util.flatten_one_level_with_keys(Pair(1, [2]))
    assert pairs == ((GetAttrKey("x"), 1), (GetAttrKey("y"), [2]))
    pairs, _ = tree_util.flatten_one_level_with_keys(Bare(5))
    assert pairs == ((FlattenedIndexKey(0), 5),)
    for function in (tree_util.flatten_one_level, tree_util.flatten_one_level_with_keys):
        with pytest.raises(ValueError, match="type int is a leaf"):
            function(5)


def test_questions_about_nodes() -> None:
    for kind in (dict, list, tuple, type(None), collections.OrderedDict, Bare):
        assert tree_util.is_tree_node(kind), kind
    for kind in (int, str, collections.deque, object):
        assert not tree_util.is_tree_node(kind), kind
    assert tree_util.all_leaves([1, "a"])
    assert not tree_util.all_leaves([1, None])
    assert not tree_util.all_leaves([1, [2]])
    assert tree_util.all_leaves([1, [2]], is_leaf=lambda node: isinstance(node, list))
    assert not tree_util.all_leaves([1, [2], (3,)], is_leaf=lambda node: isinstance(node, list))


def test_questions_about_structures() -> None:
    treedef = tree.structure((1, [2], None))
    leaf, inner, none = tree_util.treedef_children(treedef)
    assert tree_util.treedef_is_leaf(leaf)
    assert not tree_util.treedef_is_leaf(inner)
    assert not tree_util.treedef_is_leaf(none)
    assert not tree_util.treedef_is_leaf(tree.structure(()))
    assert tree_util.treedef_tuple([leaf, inner, none]) == treedef
    assert tree_util.treedef_tuple(iter([])) == tree.structure(())


def test_old_names_are_the_same_functions() -> None:
    for name in tree.__all__:
        if name != "static":
            assert getattr(tree_util, f"tree_{name}") is getattr(tree, name)
    assert tree_util.default_registry is pytree.registry


def test_random_trees_survive() -> None:
    import random

    generator = random.Random(0)
    counter = itertools.count()

    def make(depth: int) -> Any:
        kind = generator.choice(
            ["leaf", "leaf", "list", "tuple", "dict", "ordered", "pair", "bare", "none", "partial"]
        )
        if depth == 0 or kind == "leaf":
            return next(counter)
        children = [make(depth - 1) for _ in range(generator.randrange(4))]
        names = "dcba"[: len(children)]
        match kind:
            case "list":
                return children
            case "tuple":
                return tuple(children)
            case "dict":
                return dict(zip(names, children, strict=True))
            case "ordered":
                return collections.OrderedDict(zip(names, children, strict=True))
            case "pair":
                return Pair(children, make(depth - 1))
            case "bare":
                return Bare(*children)
            case "partial":
                return tree_util.Partial(max, *children, key=make(depth - 1))
        return None

    for _ in range(200):
        value = make(4)
        flat, treedef = tree.flatten(value)
        again = tree.unflatten(treedef, flat)
        assert tree.structure(again) == treedef
        assert tree.leaves(again) == flat
        assert pytree.structure_difference(value, again) == ""
        assert tree.leaves(tree.broadcast(0, value)) == [0] * len(flat)
        repeated = pytree.flatten_up_to_prefix("p", tree.map(lambda _: 1, value), treedef)
        assert repeated == [1] * len(flat)
        for path, leaf in tree.leaves_with_path(value):
            node = value
            for key in path:
                match key:
                    case SequenceKey():
                        node = node[key.idx]
                    case DictKey():
                        node = node[key.key]
                    case GetAttrKey():
                        node = getattr(node, key.name)
                    case FlattenedIndexKey():
                        node = node.children[key.key]
            assert node == leaf


@pytest.mark.parametrize(
    "take_apart",
    [tree.flatten, tree.leaves, tree.structure, tree.flatten_with_path, tree.leaves_with_path],
)
@pytest.mark.parametrize("container", [list, dict])
def test_trees_that_hold_themselves(take_apart, container):
    value = container()
    if container is list:
        value.append(value)
    else:
        value["self"] = value
    with pytest.raises(RecursionError, match=r"contains itself|cyclical"):
        take_apart(value)
