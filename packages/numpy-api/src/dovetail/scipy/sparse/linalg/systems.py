"""Linear systems as vectors and operators on vectors, from what users give.

A system is a tree of unknowns and a linear function on it. The methods see one vector of at least
single precision, so that narrow floats are sums of wide ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dovetail as dt
from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, convert, inexact, require_real_number, value
from dovetail.extend.avals import ArrayClass, Tracer, aval_of
from dovetail.tree_util import tree_flatten, tree_leaves, tree_unflatten

Operator = Callable[[Any], Any]


@dataclass(frozen=True)
class Space:
    """The space of the unknowns.

    Attributes:
        tree: structure of the unknowns.
        shapes: of its leaves.
        dtypes: of its leaves.
        work: dtype of the vectors.
    """

    tree: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]
    work: Any

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return sum(map(math.prod, self.shapes))

    def vector(self, tree: Any) -> Any:
        """The elements of a tree as one vector."""
        leaves = [
            lax.reshape(convert(x, self.work, False), (math.prod(shape),))
            for x, shape in zip(tree_leaves(tree), self.shapes, strict=True)
        ]
        return leaves[0] if len(leaves) == 1 else lax.concatenate(leaves, 0)

    def unvector(self, vector: Any) -> Any:
        """The tree of a vector."""
        leaves, at = [], 0
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            size = math.prod(shape)
            part = lax.slice(vector, (at,), (at + size,))
            leaves.append(convert(lax.reshape(part, shape), dtype, False))
            at += size
        return tree_unflatten(self.tree, leaves)

    def operator(self, function: Operator) -> Operator:
        """A function of trees as one of vectors."""
        return lambda vector: self.vector(function(self.unvector(vector)))


def inner(x: Any, y: Any) -> Any:
    """The inner product of two vectors, linear in the second."""
    return jnp.vdot(x, y, precision=lax.Precision.HIGHEST)


def norm(x: Any) -> Any:
    """The length of a vector, also where its square overflows."""
    size = jnp.max(jnp.abs(x))
    scale = jnp.where((size > 0) & jnp.isfinite(size), size, jnp.ones_like(size))
    return scale * jnp.sqrt(jnp.sum(jnp.square(jnp.abs(x / scale))))


def _is_array(x: Any) -> bool:
    return isinstance(x, (ArrayClass, Tracer, np.ndarray))


def _operator(caller: str, name: str, given: Any, b: Any) -> Operator:
    """The linear function that a matrix or a function stands for."""
    if callable(given):
        return given
    if not _is_array(given):
        raise TypeError(
            f"{caller} requires {name} to be a function or a square matrix, "
            f"got {type(given).__name__}"
        )
    matrix = array_like(given, caller, name)
    shape = aval_of(matrix).shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{caller}: {name} must be a square matrix, got the shape {shape}")
    if not _is_array(b):
        raise TypeError(
            f"{caller}: {name} is a matrix, so b must be an array, got {type(b).__name__}; give a "
            "function that takes such a tree"
        )
    rows = aval_of(array_like(b, caller, "b")).shape[:1]
    if rows != shape[:1]:
        raise ValueError(
            f"{caller}: {name} has the shape {shape}, and b the shape "
            f"{aval_of(array_like(b, caller, 'b')).shape}"
        )
    return lambda x: jnp.matmul(matrix, x, precision=lax.Precision.HIGHEST)


def _image(caller: str, name: str, function: Operator, x: Any) -> list[Any]:
    """Avals of a linear function's result, which must be a tree like its argument."""
    result = dt.eval_shape(function, x)
    found, expected = tree_flatten(result), tree_flatten(x)
    if found[1] != expected[1]:
        raise TypeError(
            f"{caller}: {name} must return a tree like b, {expected[1]}, got {found[1]}"
        )
    for y, leaf in zip(found[0], expected[0], strict=True):
        if y.shape != aval_of(leaf).shape:
            raise TypeError(
                f"{caller}: {name} must return arrays of the shapes of b, got the shape {y.shape} "
                f"in place of {aval_of(leaf).shape}"
            )
    return [y.dtype for y in found[0]]


def solution(
    caller: str,
    method: Callable[..., tuple[Any, Any]],
    given: tuple[Any, Any, Any, Any],
    tolerances: tuple[Any, Any],
    *,
    symmetric: bool = False,
) -> tuple[Any, Any]:
    """Solve a system by an iteration, with derivatives that solve the same system.

    Args:
        caller: name of the user's function.
        method: ``method(matvec, b, x, residual, precondition, limit)`` starts at `x` and returns
            the solution, where the residual is no longer than `limit`, and what is known of it;
            all are vectors or functions of vectors.
        given: the operator, the right-hand side, the first guess and the preconditioner.
        tolerances: relative and absolute one.
        symmetric: whether the operator is its own adjoint.
    """
    operator, b, x0, preconditioner = given
    for name, tolerance in zip(("tol", "atol"), tolerances, strict=True):
        require_real_number(caller, name, tolerance)
    product = _operator(caller, "A", operator, b)
    leaves, tree = tree_flatten(b)
    leaves = [inexact(caller, array_like(leaf, caller, "b")) for leaf in leaves]
    right = tree_unflatten(tree, leaves)
    kept = [aval_of(leaf).dtype for leaf in leaves]
    for _ in range(2):  # A complex matrix makes the second product complex, too.
        image = _image(caller, "A", product, right)
        kept = [dtypes.common_dtype(*pair) for pair in zip(kept, image, strict=True)]
        if any(dtypes.kind_of(dtype) == "c" for dtype in kept):
            kept = [dtypes.common_dtype(dtype, np.dtype("complex64")) for dtype in kept]
        leaves = [convert(leaf, dtype, False) for leaf, dtype in zip(leaves, kept, strict=True)]
        right = tree_unflatten(tree, [value(leaf) for leaf in leaves])
    work = dtypes.common_dtype(np.dtype("float32"), *kept)
    space = Space(tree, tuple([aval_of(leaf).shape for leaf in leaves]), tuple(kept), work)
    start = _first_guess(caller, x0, space)
    if not space.size:
        return right, jnp.zeros((), "int32")
    by: Any = None
    if preconditioner is not None:
        by = _operator(caller, "M", preconditioner, b)
        _image(caller, "M", by, right)
    real = jnp.real(jnp.zeros((), work)).dtype
    relative, absolute = (jnp.asarray(lax.stop_gradient(t)).astype(real) for t in tolerances)

    def solve(matvec: Operator, y: Any, precondition: Operator | None, first: Any) -> Any:
        vector, product = space.vector(y), space.operator(matvec)
        length = norm(vector)
        x, residual = jnp.zeros_like(vector), vector
        if first is not None:
            left = vector - product(first)
            # A derivative solves another system, for which the guess may be a bad one.
            nearer = norm(left) < length
            x, residual = jnp.where(nearer, first, x), jnp.where(nearer, left, residual)
        by = (lambda v: v) if precondition is None else space.operator(precondition)
        x, info = method(product, vector, x, residual, by, jnp.maximum(relative * length, absolute))
        known = jnp.isfinite(length)
        return space.unvector(jnp.where(known, x, jnp.nan)), jnp.where(known, info, -1)

    solved: tuple[Any, Any] = lax.custom_linear_solve(
        lambda x: tree_unflatten(
            tree, [convert(y, d, False) for y, d in zip(tree_leaves(product(x)), kept, strict=True)]
        ),
        right,
        lambda matvec, y: solve(matvec, y, by, start),
        lambda vecmat, y: solve(vecmat, y, _transposed(by, right), None),
        symmetric=symmetric and dtypes.kind_of(work) != "c",
        has_aux=True,
    )
    return solved


def _transposed(function: Operator | None, x: Any) -> Operator | None:
    """The transpose of a preconditioner; itself if it has none, which can only cost steps."""
    if function is None:
        return None
    try:
        transpose = dt.linear_transpose(function, x)
        dt.eval_shape(transpose, dt.eval_shape(function, x))
    except (TypeError, ValueError, NotImplementedError):
        return function
    return lambda y: transpose(y)[0]


def _first_guess(caller: str, x0: Any, space: Space) -> Any:
    """The first guess as a vector; None where none is given."""
    if x0 is None:
        return None
    leaves, tree = tree_flatten(x0)
    if tree != space.tree:
        raise ValueError(f"{caller}: x0 must be a tree like b, {space.tree}, got {tree}")
    leaves = [array_like(leaf, caller, "x0") for leaf in leaves]
    shapes = tuple([aval_of(leaf).shape for leaf in leaves])
    if shapes != space.shapes:
        raise ValueError(f"{caller}: x0 must have the shapes of b, {space.shapes}, got {shapes}")
    for leaf in leaves:
        if dtypes.kind_of(aval_of(leaf).dtype) == "c" and dtypes.kind_of(space.work) != "c":
            raise TypeError(f"{caller}: x0 is complex, and the system is real")
    return space.vector(lax.stop_gradient(tree_unflatten(tree, [value(x) for x in leaves])))
