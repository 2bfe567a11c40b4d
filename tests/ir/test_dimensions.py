"""Symbolic sizes: their normal form, what is known of them, and their text."""

from __future__ import annotations

import copy
import itertools
import operator
import pickle
import random
import re

import numpy as np
import pytest

from dovetail import core, export
from dovetail.errors import InconclusiveDimensionOperation

VALUES = [{"a": a, "b": b} for a, b in itertools.product((1, 2, 3, 7, 12), (1, 2, 5, 8))]
OPERATIONS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": core.max_dim,
    "min": core.min_dim,
}
PYTHON = OPERATIONS | {"max": max, "min": min}


def drawn(draw, leaves, depth):
    """A random expression, as a function of what the operations and the leaves are."""
    if depth == 0 or draw.random() < 0.2:
        return draw.choice(leaves)
    name = draw.choice(list(OPERATIONS))
    left, right = drawn(draw, leaves, depth - 1), drawn(draw, leaves, depth - 1)
    if name in ("floordiv", "mod"):
        right = draw.choice(["a", "b", 2, 3, 4])
    return name, left, right


def built(tree, operations, leaves):
    if not isinstance(tree, tuple):
        return leaves.get(tree, tree)
    name, *parts = tree
    return operations[name](*(built(part, operations, leaves) for part in parts))


@pytest.mark.parametrize("seed", range(60))
def test_expressions_have_the_values_and_the_bounds_of_pythons(seed):
    a, b = export.symbolic_shape("a, b")
    tree = drawn(random.Random(seed), ["a", "b", 1, 2, 3], 4)
    size = built(tree, OPERATIONS, {"a": a, "b": b})
    lower, upper = export.symbolic_dim_bounds(size)
    for values in VALUES:
        expected = built(tree, PYTHON, values)
        found = size.evaluate(values) if export.is_symbolic_dim(size) else size
        assert found == expected, (tree, size, values)
        assert lower <= expected <= upper, (tree, size, values)


@pytest.mark.parametrize("seed", range(20))
def test_text_is_read_as_the_same_size(seed):
    scope = export.SymbolicScope()
    a, b = export.symbolic_shape("a, b", scope=scope)
    size = built(drawn(random.Random(seed), ["a", "b", 2, 3], 3), OPERATIONS, {"a": a, "b": b})
    (again,) = export.symbolic_shape(str(size), scope=scope)
    assert again == size
    assert hash(again) == hash(size)
    assert str(again) == str(size)


@pytest.mark.parametrize("seed", range(20))
def test_orders_that_are_decided_hold(seed):
    scope = export.SymbolicScope(("a >= b", "b <= 8"))
    a, b = export.symbolic_shape("a, b", scope=scope)
    draw = random.Random(seed)
    leaves = {"a": a, "b": b}
    trees = [drawn(draw, ["a", "b", 1, 2], 3) for _ in range(2)]
    left, right = (built(tree, OPERATIONS, leaves) for tree in trees)
    allowed = [v for v in VALUES if v["a"] >= v["b"] and v["b"] <= 8]
    pairs = [tuple(built(tree, PYTHON, values) for tree in trees) for values in allowed]
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        try:
            answer = compare(left, right)
        except InconclusiveDimensionOperation:
            continue
        assert all(compare(x, y) == answer for x, y in pairs), (left, right)


NORMAL_FORMS = {
    "a + 1 - 1": "a",
    "2*a - a": "a",
    "b*a": "a*b",
    "a*0": "0",
    "a - a + 3": "3",
    "floordiv(2*a, 2)": "a",
    "floordiv(4*a + 2, 2)": "2*a + 1",
    "floordiv(2*a + 1, 2)": "a",
    "floordiv(a*b, a)": "b",
    "floordiv(a + b, b)": "floordiv(a, b) + 1",
    "mod(a*b, a)": "0",
    "mod(2*a + 1, 2)": "1",
    "mod(5*a, 3)": "mod(2*a, 3)",
    "floordiv(a^2 + 2*a*b + b^2, a + b)": "b + a",
    "max(a, 1)": "a",
    "min(a, 1)": "1",
    "max(a, a + 1)": "a + 1",
    "max(b, a)": "max(a, b)",
    "max(floordiv(a, 2), a - 1)": "a - 1",
    "8*floordiv(a + 7, 8)": "8*floordiv(a + 7, 8)",
    "mod(mod(a, 3), 5)": "mod(a, 3)",
}


@pytest.mark.parametrize("text", NORMAL_FORMS)
def test_normal_forms(text):
    (size,) = export.symbolic_shape(text)
    assert str(size) == NORMAL_FORMS[text]


CONSTRAINTS = [
    (("a >= 4",), "a - 4", (0, np.inf)),
    (("a >= 4", "a <= 8"), "a", (4, 8)),
    (("a >= b", "b >= 3"), "a", (3, np.inf)),
    (("a >= b + 3", "b <= 10", "a <= 20"), "a - b", (3, 19)),
    (("mod(a, 4) == 0",), "mod(a, 4)", (0, 0)),
    (("mod(a, 4) == 0",), "4*floordiv(a, 4) - a", (0, 0)),
    (("floordiv(a, 4) == 3",), "a", (12, 15)),
    (("a == b",), "a - b", (0, 0)),
    (("a*b == c",), "a*b - c", (0, 0)),
    (("a >= b",), "max(a, b) - a", (0, 0)),
    ((), "max(a, b) - min(a, b)", (0, np.inf)),
    ((), "2*floordiv(a, 2) - a", (-1, 0)),
    ((), "b*floordiv(a, b) - a", (-np.inf, 0)),
]


@pytest.mark.parametrize(("constraints", "text", "expected"), CONSTRAINTS)
def test_bounds_by_constraints(constraints, text, expected):
    (size,) = export.symbolic_shape(text, constraints=constraints)
    assert export.symbolic_dim_bounds(size) == expected


SHAPES = {
    "": (),
    "()": (),
    "3": (3,),
    "(3, 4)": (3, 4),
    "3, ": (3,),
    "_, 4": (8, 4),
    "...": (8, 4),
    "8, ...": (8, 4),
}


@pytest.mark.parametrize("text", SHAPES)
def test_shapes_with_known_sizes(text):
    expected = SHAPES[text]
    like = (8, 4) if "_" in text or "." in text else None
    assert export.symbolic_shape(text, like=like) == expected


WRONG = {
    "a b": "',' or the end is expected",
    "3*": "a number or a name is expected",
    "a**2": "a number or a name is expected",
    "a//2": "',' or the end is expected",
    "a^b": "a number is expected",
    "foo(a)": "',' or the end is expected",
    "floordiv(a)": "',' is expected",
    "max(a, b, c)": "')' is expected",
    "floordiv(a, 0)": "divides by zero",
    "a, ...": "give them as `like`",
    "_": "give it as `like`",
}


@pytest.mark.parametrize("text", WRONG)
def test_errors_of_shapes(text):
    with pytest.raises(ValueError, match=re.escape(WRONG[text])):
        export.symbolic_shape(text)


WRONG_CONSTRAINTS = {
    ("a > b",): "'>=', '<=' or '==' is expected",
    ("a + b == 4",): "a single term",
    ("a == 2*a",): "cannot hold",
    ("4 >= 5",): "cannot hold",
    ("a >= 4", "a <= 3"): "cannot hold together with those before it",
    "a >= 4": "a sequence of strings",
}


@pytest.mark.parametrize("constraints", WRONG_CONSTRAINTS)
def test_errors_of_constraints(constraints):
    with pytest.raises(ValueError, match=re.escape(WRONG_CONSTRAINTS[constraints])):
        export.SymbolicScope(constraints)


def test_errors_of_arguments():
    scope = export.SymbolicScope()
    with pytest.raises(ValueError, match="belong to a scope"):
        export.symbolic_shape("a", scope=scope, constraints=("a >= 2",))
    with pytest.raises(TypeError, match="scope is a SymbolicScope"):
        export.symbolic_shape("a", scope=3)
    with pytest.raises(ValueError, match="has 1 dimension, and the array it is for 2"):
        export.symbolic_shape("a", like=(2, 3))
    with pytest.raises(ValueError, match="which is 3 in the array"):
        export.symbolic_shape("a, 4", like=(2, 3))
    with pytest.raises(ValueError, match=r"the end after \.\.\. is expected"):
        export.symbolic_shape("..., a", like=(2, 3))
    with pytest.raises(ValueError, match="a symbolic shape is a string"):
        export.symbolic_shape(3)


def test_sizes_of_two_scopes_do_not_mix():
    (a,), (other,) = export.symbolic_shape("a"), export.symbolic_shape("a")
    assert a != other
    with pytest.raises(ValueError, match=r"different scopes: .*made at .*test_dimensions.py"):
        a + other


def test_what_needs_a_number_says_so():
    (a,) = export.symbolic_shape("a")
    for use in (int, float, operator.index, range, lambda size: [0] * size):
        with pytest.raises(InconclusiveDimensionOperation, match=r"the size a .*needs a number"):
            use(a)
    with pytest.raises(InconclusiveDimensionOperation, match=r"whether a > 4 depends on .* a"):
        max(4, a)
    with pytest.raises(ZeroDivisionError):
        a // 0
    assert max(a, 1) is a
    assert sorted([a + 1, a]) == [a, a + 1]


def test_equality_is_that_of_expressions():
    a, b = export.symbolic_shape("a, b")
    assert a + b == b + a
    assert a != b
    assert a != 1
    assert a is not None
    assert a != "a"
    assert len({a, a + 0, 1 * a}) == 1


def test_copies_and_pickles():
    a, b = export.symbolic_shape("a, b", constraints=("a >= b",))
    size = a * b + a // 2
    assert copy.copy(size) == size
    assert copy.deepcopy(size) is size
    first, second = pickle.loads(pickle.dumps((size, a - b)))
    assert str(first) == str(size)
    assert first.scope is second.scope
    assert export.symbolic_dim_bounds(second) == (0, np.inf)


def test_numbers_of_numpy_take_part():
    (a,) = export.symbolic_shape("a")
    assert a + np.int64(2) == a + 2
    assert np.int32(3) * a == 3 * a


SPECIFICATIONS = [
    ("a, b", [("a", "b"), ("a", "b")]),
    (("a, b", "b, ..."), [("a", "b"), ("b", "4")]),
    (("a, _", None), [("a", "4"), ("3", "4")]),
]


@pytest.mark.parametrize(("specification", "expected"), SPECIFICATIONS)
def test_specifications_of_arguments(specification, expected):
    x = np.ones((3, 4), np.float32)
    found = export.symbolic_args_specs((x, x), specification)
    assert [tuple(map(str, spec.shape)) for spec in found] == expected
    assert all(spec.dtype == np.float32 for spec in found)
