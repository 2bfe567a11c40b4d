"""Derivatives with respect to sparse arrays: of their elements, at the same positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import dovetail as dt
from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo import BCOO
from dovetail.experimental.sparse.formats import JAXSparse
from dovetail.experimental.sparse.layouts import SparseInfo
from dovetail.extend.arguments import require_callable
from dovetail.tree_util import tree_flatten, tree_unflatten


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


class _Elements:
    """Trees of sparse and dense arrays as trees of their elements.

    Args:
        tree: a tree, whose sparse arrays keep their positions.
    """

    def __init__(self, tree: Any) -> None:
        self.nodes, self.structure = tree_flatten(tree, is_leaf=_is_sparse)

    def taken(self) -> Any:
        """The tree with the elements of each sparse array in its place."""
        leaves = [x.data if _is_sparse(x) else x for x in self.nodes]
        return tree_unflatten(self.structure, leaves)

    def put(self, elements: Any) -> Any:
        """The tree with other elements."""
        leaves = self.structure.flatten_up_to(elements)
        found = []
        for node, leaf in zip(self.nodes, leaves, strict=True):
            if _is_sparse(node):
                (_, *rest), description = node.tree_flatten()
                leaf = type(node).tree_unflatten(description, (leaf, *rest))
            found.append(leaf)
        return tree_unflatten(self.structure, found)


def _on_elements(
    name: str, transformation: Callable[..., Any], fun: Any, argnums: Any, finish: Any, options: Any
) -> Callable[..., Any]:
    """A transformation of a function, with respect to elements."""
    require_callable(name, "fun", fun)

    @wraps(fun)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        chosen: dict[int, _Elements] = {}
        for i in numbers:
            if -len(args) <= i < len(args):
                chosen[i % len(args)] = _Elements(args[i])
        given = [chosen[i].taken() if i in chosen else x for i, x in enumerate(args)]

        def of_elements(*elements: Any, **kwargs: Any) -> Any:
            full = [chosen[i].put(x) if i in chosen else x for i, x in enumerate(elements)]
            return fun(*full, **kwargs)

        result = transformation(of_elements, argnums=argnums, **options)(*given, **kwargs)
        parts = [chosen[i % len(args)] for i in numbers]
        return finish(result, parts, isinstance(argnums, int))

    return transformed


def _gradients(result: Any, parts: Sequence[_Elements], single: bool) -> Any:
    if single:
        return parts[0].put(result)
    return tuple(part.put(x) for part, x in zip(parts, result, strict=True))


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **kwargs: Any,
) -> Callable[..., Any]:
    """`dovetail.grad` with respect to sparse arrays, too.

    Args:
        fun: a function whose result is a number.
        argnums: which arguments; they may be sparse arrays, and trees of them.
        has_aux: whether `fun` returns a pair, of which the second is passed on.
        **kwargs: further arguments of `dovetail.grad`.

    Returns:
        A function that gives gradients. That of a sparse array is one of its format, with the
        derivatives in its elements at their positions.

    Example:
        >>> from dovetail.experimental import sparse
        >>> gradient = sparse.grad(lambda mat: (mat @ jnp.array([2.0, 3.0])).sum())(sparse.eye(2))
        >>> gradient.data
        Array([2., 3.], dtype=float32)
    """

    def finish(result: Any, parts: Sequence[_Elements], single: bool) -> Any:
        if has_aux:
            return _gradients(result[0], parts, single), result[1]
        return _gradients(result, parts, single)

    options = {"has_aux": has_aux, **kwargs}
    return _on_elements("sparse.grad", dt.grad, fun, argnums, finish, options)


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **kwargs: Any,
) -> Callable[..., tuple[Any, Any]]:
    """`dovetail.value_and_grad` with respect to sparse arrays, too: see `grad`.

    Args:
        fun: a function whose result is a number.
        argnums: which arguments; they may be sparse arrays, and trees of them.
        has_aux: whether `fun` returns a pair, of which the second is passed on.
        **kwargs: further arguments of `dovetail.value_and_grad`.

    Example:
        >>> from dovetail.experimental import sparse
        >>> value, gradient = sparse.value_and_grad(lambda mat: (mat.sum() ** 2))(sparse.eye(2))
        >>> value, gradient
        (Array(4., dtype=float32), BCOO(float32[2, 2], nse=2))
    """

    def finish(result: Any, parts: Sequence[_Elements], single: bool) -> Any:
        return result[0], _gradients(result[1], parts, single)

    options = {"has_aux": has_aux, **kwargs}
    return _on_elements("sparse.value_and_grad", dt.value_and_grad, fun, argnums, finish, options)


def _jacobian_of(node: Any, leaf: Any) -> Any:
    """The derivative of a dense array in an argument, from that in its elements."""
    if not _is_sparse(node):
        return leaf
    mat = node.to_bcoo()
    lead = leaf.ndim - mat.data.ndim
    indices = jnp.broadcast_to(mat.indices, (*leaf.shape[:lead], *mat.indices.shape))
    info = SparseInfo((*leaf.shape[:lead], *mat.shape), mat.indices_sorted, mat.unique_indices)
    return BCOO.made(leaf, indices, info)


def _jacobians(tree: Any, parts: Sequence[_Elements], single: bool) -> Any:
    """The derivatives of one dense array in the arguments, from those in their elements."""
    found = []
    for part, elements in zip(parts, [tree] if single else tree, strict=True):
        leaves = part.structure.flatten_up_to(elements)
        made = [_jacobian_of(node, x) for node, x in zip(part.nodes, leaves, strict=True)]
        found.append(tree_unflatten(part.structure, made))
    return found[0] if single else tuple(found)


def _jacobian(
    name: str, transformation: Any, fun: Any, argnums: Any, has_aux: bool, options: Any
) -> Callable[..., Any]:
    structures: list[Any] = []

    require_callable(name, "fun", fun)

    @wraps(fun)
    def watched(*args: Any, **kwargs: Any) -> Any:
        result = fun(*args, **kwargs)
        out = result[0] if has_aux else result
        leaves, structure = tree_flatten(out, is_leaf=_is_sparse)
        if any(map(_is_sparse, leaves)):
            raise TypeError(
                f"{name} of a function that returns a sparse array: return mat.todense(), or "
                "mat.data for the derivatives of its elements"
            )
        structures.append(structure)
        return result

    def finish(result: Any, parts: Sequence[_Elements], single: bool) -> Any:
        jacobian = result[0] if has_aux else result
        structure = structures.pop()
        trees = structure.flatten_up_to(jacobian)
        made = [_jacobians(tree, parts, single) for tree in trees]
        jacobian = tree_unflatten(structure, made)
        return (jacobian, result[1]) if has_aux else jacobian

    options = {"has_aux": has_aux, **options}
    return _on_elements(name, transformation, watched, argnums, finish, options)


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **kwargs: Any,
) -> Callable[..., Any]:
    """`dovetail.jacfwd` with respect to sparse arrays, too.

    Args:
        fun: a function whose results are dense arrays.
        argnums: which arguments; they may be sparse arrays, and trees of them.
        has_aux: whether `fun` returns a pair, of which the second is passed on.
        **kwargs: further arguments of `dovetail.jacfwd`.

    Returns:
        A function that gives Jacobians. That in a sparse array is a BCOO array, whose first
        dimensions are those of the result and are batch dimensions.

    Raises:
        TypeError: a result is sparse.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.jacfwd(lambda mat: mat @ jnp.ones(3))(sparse.eye(2, 3))
        BCOO(float32[2, 2, 3], nse=2, n_batch=1)
    """
    return _jacobian("sparse.jacfwd", dt.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **kwargs: Any,
) -> Callable[..., Any]:
    """`dovetail.jacrev` with respect to sparse arrays, too: see `jacfwd`.

    Args:
        fun: a function whose results are dense arrays.
        argnums: which arguments; they may be sparse arrays, and trees of them.
        has_aux: whether `fun` returns a pair, of which the second is passed on.
        **kwargs: further arguments of `dovetail.jacrev`.

    Raises:
        TypeError: a result is sparse.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.jacrev(lambda mat: mat @ jnp.ones(3))(sparse.eye(2, 3))
        BCOO(float32[2, 2, 3], nse=2, n_batch=1)
    """
    return _jacobian("sparse.jacrev", dt.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
