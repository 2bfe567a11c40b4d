"""Arguments with symbolic shapes, from arrays and strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail._core.api.inspection import ShapeDtypeStruct, struct_of
from dovetail._core.base import pytree
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.dimension_syntax import SymbolicScope, symbolic_shape

__all__ = ["symbolic_args_specs"]


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """`ShapeDtypeStruct`\\ s with symbolic shapes for a tree of arguments.

    Args:
        args: a tree of arrays, or of anything with a shape and a dtype.
        shapes_specs: a tree of shapes as `symbolic_shape` takes them, of the structure of `args` or
            with one shape for a whole subtree. In a list or tuple, None is the shape as it is.
        constraints: as for `symbolic_shape`.
        scope: the scope of the dimension variables; a new one by default.

    Returns:
        A tree of the structure of `args`.

    Raises:
        ValueError: a shape does not fit its argument, or the structures do not fit.

    Example:
        >>> import numpy as np
        >>> from dovetail import export
        >>> x, w = np.ones((8, 3), "float32"), np.ones((3, 4), "float32")
        >>> [s.shape for s in export.symbolic_args_specs((x, w), ("n, ...", None))]
        [(n, 3), (3, 4)]
    """
    if scope is not None and constraints:
        raise ValueError("constraints belong to a scope: give them to SymbolicScope, or no scope")
    scope = SymbolicScope(constraints) if scope is None else scope
    leaves, tree = pytree.flatten(args)
    specs = pytree.flatten_up_to_prefix("shapes_specs of symbolic_args_specs", shapes_specs, tree)
    made = []
    for leaf, spec in zip(leaves, specs, strict=True):
        like = struct_of(aval_of(leaf)) if not hasattr(leaf, "shape") else leaf
        shape = symbolic_shape(spec, scope=scope, like=tuple(like.shape))
        made.append(
            ShapeDtypeStruct(
                shape,
                like.dtype,
                sharding=getattr(like, "sharding", None)
                if isinstance(like, ShapeDtypeStruct)
                else None,
            )
        )
    return tree.unflatten(made)
