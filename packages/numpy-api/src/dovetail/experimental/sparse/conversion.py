"""From any format to a dense array: `todense_p`."""

from __future__ import annotations

from typing import Any, Final

import dovetail as dt
from dovetail.experimental.sparse.formats import JAXSparse
from dovetail.experimental.sparse.primitives import Rules, made
from dovetail.extend.arguments import array_like, value
from dovetail.extend.avals import make_aval
from dovetail.tree_util import tree_flatten, tree_unflatten
from dovetail.typing import Array, ArrayLike


class _ToDense(Rules):
    """The dense array of the leaves of a sparse one, or of a dense one."""

    name = "todense"
    linear = (0,)

    def formula(self, *leaves: Any, tree: Any) -> Any:
        mat = tree_unflatten(tree, leaves)
        return mat.todense() if isinstance(mat, JAXSparse) else mat

    def abstract(self, *leaves: Any, tree: Any) -> Any:
        structs = [dt.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        result = dt.eval_shape(lambda *x: self.formula(*x, tree=tree), *structs)
        return make_aval(result.shape, result.dtype)

    def reference(self, *leaves: Any, tree: Any) -> Any:
        mat = tree_unflatten(tree, leaves)
        return mat._reference() if isinstance(mat, JAXSparse) else mat


todense_p: Final = made(_ToDense())


def todense(arr: JAXSparse | ArrayLike) -> Array:
    """The dense array of a sparse one; a dense one as it is.

    Args:
        arr: an array, sparse or not. Inside of `sparsify` it may be either, without the function
            knowing.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.todense(sparse.eye(2))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    if not isinstance(arr, JAXSparse):
        arr = value(array_like(arr, "todense", "arr"))
    leaves, tree = tree_flatten(arr)
    return todense_p.bind(*leaves, tree=tree)
