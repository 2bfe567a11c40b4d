"""The results of compiled programs: how C++ builds trees of arrays out of buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dovetail._core.base import native
from dovetail._core.base.bindings import PyTreeDef
from dovetail._core.base.pytree import dispatch_registry
from dovetail._core.runtime.arrays.array import Array, new_array, wrap_value

__all__ = ["result_tree"]

# C++ would create a node for an array by calling its class, which is slow, so a result is a node of
# a separate type, whose children are the buffers of all its arrays.
Assemble = Callable[[tuple[Any, ...]], Any]


class _Result:
    """Stands for a program's result in the tree from which C++ assembles it."""

    __slots__ = ("assemble", "count")

    def __init__(self, assemble: Assemble | None, count: int) -> None:
        self.assemble = assemble
        self.count = count


def _make_result(assemble: Any, children: tuple[Any, ...]) -> Any:
    if assemble is not None:
        return assemble(children)
    array = new_array()
    (array._buffer,) = children
    return array


dispatch_registry.register_node(
    _Result,
    lambda result: ((True,) * result.count, result.assemble),
    _make_result if native.calls is None else native.calls.assemble,
)


def _wrap_all(children: tuple[Any, ...]) -> list[Array]:
    arrays = []
    for buffer in children:
        array = new_array()
        array._buffer = buffer
        arrays.append(array)
    return arrays


def _assembler(tree: PyTreeDef, key_dtypes: list[Any]) -> Any:
    """A function that builds a pytree of arrays from its buffers; None for one array of numbers.

    For the compiled path it may also be a form: lists, tuples and dictionaries that have an
    ellipsis at the place of each array.
    """
    if any(key_dtypes):
        return lambda children: tree.unflatten(map(wrap_value, key_dtypes, children))
    if tree.num_nodes == 1 == tree.num_leaves:
        return None
    if native.calls is not None:
        form = tree.unflatten([...] * tree.num_leaves)
        if _is_plain(form):
            return form
        assemble, places = native.calls.assemble, [...] * tree.num_leaves
        return lambda children: tree.unflatten(assemble(places, children))
    if tree.num_nodes == 1 + tree.num_leaves and tree.node_data() == (list, None):
        return _wrap_all
    return lambda children: tree.unflatten(_wrap_all(children))


def _is_plain(form: Any) -> bool:
    """Whether there is nothing in a tree but lists, tuples, dictionaries, None and ellipses."""
    rest = [form]
    while rest:
        value = rest.pop()
        if type(value) is dict:
            rest += value.values()
        elif type(value) in (list, tuple):
            rest += value
        elif value is not None and value is not ...:
            return False
    return True


def result_tree(result: Any) -> PyTreeDef:
    """The tree from which C++ builds a pytree of arrays like the given one, given its buffers."""
    arrays, tree = dispatch_registry.flatten(result, lambda value: isinstance(value, Array))
    assemble = _assembler(tree, [array._key_dtype for array in arrays])
    if native.calls is not None and assemble is None:
        return tree  # the compiled path wraps a single buffer itself
    return dispatch_registry.flatten(_Result(assemble, len(arrays)))[1]
