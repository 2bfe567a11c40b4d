"""Trees of arrays to one vector, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.records import record
from dovetail._core.base.tracebacks import bounded
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import full
from dovetail._core.ir.avals import aval_of, make_aval
from dovetail._core.ops.control.bodies import operands_of
from dovetail._core.ops.shape.joining import concatenate_p, split
from dovetail._core.ops.shape.reshaping import reshape


@bounded
@record
class Unravel:
    """The function from a vector back to a tree.

    It can be a static argument of `jit`: two of them are equal if the trees have the same
    structure, shapes and dtypes.

    Attributes:
        tree: the structure.
        avals: avals of its leaves.
        dtype: dtype of the vector.
    """

    tree: Any
    avals: tuple[Any, ...]
    dtype: Any

    def __call__(self, vector: Any) -> Any:
        x = as_operand(vector, "the function that ravel_pytree returned", "vector")
        aval = aval_of(x)
        sizes = [math.prod(a.shape) for a in self.avals]
        if math.prod(aval.shape) != sum(sizes):
            raise ValueError(
                f"the function that ravel_pytree returned takes a vector of {sum(sizes)} elements, "
                f"got {aval.short_name()}"
            )
        # A tree of a single dtype may take another one, as for a gradient or a wider computation.
        mixed = any(a.dtype != self.dtype for a in self.avals)
        if mixed and aval.dtype != self.dtype:
            raise TypeError(
                f"the function that ravel_pytree returned takes a vector of {self.dtype}, because "
                f"the dtypes of the tree differ, got {aval.dtype}; convert it with .astype"
            )
        parts = split(reshape(x, (sum(sizes),)), sizes) if sizes else []
        shaped = [reshape(part, a.shape) for part, a in zip(parts, self.avals, strict=True)]
        if mixed:
            shaped = [
                convert_element_type(part, a.dtype)
                for part, a in zip(shaped, self.avals, strict=True)
            ]
        return pytree.unflatten(self.tree, shaped)


def ravel_pytree(pytree: Any) -> tuple[Any, Unravel]:
    """A tree of arrays as one vector.

    Args:
        pytree: a tree of arrays and scalars. If their dtypes differ, they are promoted to a common
            one.

    Returns:
        The vector of all elements, leaf by leaf, and a function from such a vector back to the
        tree, with each leaf in its shape and dtype. If all leaves have one dtype, the function
        takes a vector of any dtype and keeps that. Two such functions are equal if the trees have
        the same structure, shapes and dtypes.

    Raises:
        NonArrayArgumentError: a leaf is not an array.
        TypeError: a leaf does not hold numbers, such as an array of keys.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.flatten_util import ravel_pytree
        >>> vector, unravel = ravel_pytree({"a": 1.0, "b": jnp.array([[2.0, 3.0]])})
        >>> vector.tolist()
        [1.0, 2.0, 3.0]
        >>> unravel(2 * vector)["b"].tolist()
        [[4.0, 6.0]]
    """
    leaves, tree, names = operands_of(pytree, "ravel_pytree", "pytree")
    avals = [aval_of(x) for x in leaves]
    for aval, name in zip(avals, names, strict=True):
        if dtypes.is_extended(aval.dtype) or aval.dtype == dtypes.float0:
            raise TypeError(
                f"ravel_pytree: {name} is {aval.short_name()}, and only numbers and booleans stand "
                "together in a vector; leave it out of the tree"
            )
    if not leaves:
        dtype = dtypes.canonicalize_dtype(np.float64)
        return full((0,), 0, dtype), Unravel(tree, (), dtype)
    # Promote dtypes, not avals, so that no leaf is rounded, not even a Python number among narrow
    # floats.
    dtype = dtypes.result_type(*(a.dtype for a in avals))
    parts = [
        reshape(
            x if a.dtype == dtype else convert_element_type(x, dtype),
            (math.prod(a.shape),),
        )
        for x, a in zip(leaves, avals, strict=True)
    ]
    vector = parts[0] if len(parts) == 1 else concatenate_p.bind(*parts, dimension=0)
    strong = tuple([make_aval(a.shape, a.dtype) for a in avals])
    return vector, Unravel(tree, strong, dtype)
