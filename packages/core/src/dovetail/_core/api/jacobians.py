"""Jacobians and Hessians: jacfwd, jacrev, hessian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from dovetail._core.api.backward_passes import vjp
from dovetail._core.api.derivatives import jvp, match_weak_type
from dovetail._core.api.vectorization import vmap
from dovetail._core.base import dtypes, pytree
from dovetail._core.base.typing import PyTree
from dovetail._core.base.wrapping import wraps
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.structural import full, reshape
from dovetail._core.ir.avals import aval_of
from dovetail._core.runtime.devices.capacity import require_host_memory
from dovetail._core.transform.flattening import (
    check_array_leaves,
    check_callable,
    leaf_names,
    name_of,
    normalized_argnums,
)

P = ParamSpec("P")
Aux = TypeVar("Aux")


@overload
def jacfwd(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Callable[P, tuple[PyTree, Aux]]: ...
@overload
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, PyTree]: ...
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, PyTree]:
    """The Jacobian of a function, column by column with forward mode: good for few inputs.

    Args:
        fun: function of arrays and pytrees of them.
        argnums: which positional arguments to differentiate.
        has_aux: whether `fun` returns a pair ``(result, auxiliary data)``.
        holomorphic: whether `fun` is holomorphic; then arguments and results must be complex.

    Returns:
        A function of the same arguments. For each leaf of the result, it returns the tree of the
        argument with leaves of shape ``result.shape + argument.shape``; for an integer result, they
        are integer zeros.

    Differs:
        Auxiliary data is passed through as it is, arrays or not, in this mode too.

        >>> print(dt.jacfwd(lambda x: (x * x, "text"), has_aux=True)(3.0))
        (Array(6., dtype=float32, weak_type=True), 'text')

        Booleans have no Jacobian.

        >>> dt.jacfwd(lambda x: x > 0)(1.0)
        Traceback (most recent call last):
            ...
        TypeError: jacfwd of <lambda> requires numeric results, got bool

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> dt.jacfwd(lambda x: x ** 2)(jnp.array([1.0, 2.0]))
        Array([[2., 0.],
               [0., 4.]], dtype=float32)
    """
    check_callable(fun, "jacfwd")

    @wraps(fun)
    def jacfwd_fun(*args: Any, **kwargs: Any) -> Any:
        numbers = normalized_argnums(argnums, len(args), f"jacfwd of {name_of(fun)}")
        chosen = tuple(args[i] for i in numbers)
        _check_dtypes(chosen, fun, "jacfwd", "c" if holomorphic else "f")
        leaves, tree = pytree.flatten(chosen)

        def function(*differentiated: Any) -> Any:
            return fun(*_with_arguments(args, numbers, differentiated), **kwargs)

        function.__name__ = name_of(fun)  # for messages
        # Auxiliary data depends on no tangent, so it need not be arrays that can be batched.
        aux: list[Any] = []

        def push(*tangents: Any) -> Any:
            result, tangent, *aux[:] = jvp(
                function, chosen, tree.unflatten(tangents), has_aux=has_aux
            )
            _check_results(pytree.leaves(result), fun, "jacfwd", "c" if holomorphic else "iufc")
            return pytree.map(_solid, tangent, result)

        columns = vmap(push, out_axes=-1)(*_standard_basis(leaves))
        jacobian = pytree.map(lambda c: _split_axis(c, leaves, tree, -1, argnums), columns)
        return (jacobian, *aux) if has_aux else jacobian

    return jacfwd_fun


@overload
def jacrev(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[PyTree, Aux]]: ...
@overload
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, PyTree]: ...
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, PyTree]:
    """The Jacobian of a function, row by row with reverse mode: good for few outputs.

    Args:
        fun: function of arrays and pytrees of them.
        argnums: which positional arguments to differentiate.
        has_aux: whether `fun` returns a pair ``(result, auxiliary data)``.
        holomorphic: whether `fun` is holomorphic; then arguments and results must be complex.
            Otherwise results must be real; arguments may be complex, as for `grad`.
        allow_int: whether integer arguments may be differentiated (giving integer zeros).

    Returns:
        A function of the same arguments. For each leaf of the result, it returns the tree of the
        argument with leaves of shape ``result.shape + argument.shape``.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> dt.jacrev(lambda x: x ** 2)(jnp.array([1.0, 2.0]))
        Array([[2., 0.],
               [0., 4.]], dtype=float32)
    """
    check_callable(fun, "jacrev")

    @wraps(fun)
    def jacrev_fun(*args: Any, **kwargs: Any) -> Any:
        numbers = normalized_argnums(argnums, len(args), f"jacrev of {name_of(fun)}")
        chosen = tuple(args[i] for i in numbers)
        _check_dtypes(chosen, fun, "jacrev", "c" if holomorphic else "biufc" if allow_int else "fc")

        def function(*differentiated: Any) -> Any:
            return fun(*_with_arguments(args, numbers, differentiated), **kwargs)

        function.__name__ = name_of(fun)  # for messages
        if has_aux:
            result, pullback, aux = vjp(function, *chosen, has_aux=True)
        else:
            result, pullback = vjp(function, *chosen)
        outs, out_tree = pytree.flatten(result)
        _check_results(outs, fun, "jacrev", "c" if holomorphic else "f")

        def pull(*cotangents: Any) -> Any:
            return pytree.map(_solid, pullback(out_tree.unflatten(cotangents)), chosen)

        rows = vmap(pull)(*_standard_basis(outs))
        flat_rows, argument_tree = pytree.flatten(rows)
        pieces = [_split_leading(row, outs) for row in flat_rows]
        jacobian = []
        for i in range(len(outs)):
            whole = argument_tree.unflatten([p[i] for p in pieces])
            jacobian.append(whole if isinstance(argnums, (tuple, list)) else whole[0])
        unflattened = out_tree.unflatten(jacobian)
        return (unflattened, aux) if has_aux else unflattened

    return jacrev_fun


jacobian = jacrev


@overload
def hessian(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Callable[P, tuple[PyTree, Aux]]: ...
@overload
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, PyTree]: ...
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, PyTree]:
    """The Hessian of a function: forward mode over reverse mode.

    Args:
        fun: function of arrays and pytrees of them.
        argnums: which positional arguments to differentiate.
        has_aux: whether `fun` returns a pair ``(result, auxiliary data)``.
        holomorphic: whether `fun` is holomorphic; then arguments and results must be complex.

    Returns:
        A function of the same arguments that returns the second derivatives: a tree of trees, with
        leaves of shape ``result.shape + argument.shape + argument.shape``.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> dt.hessian(lambda x: (x ** 3).sum())(jnp.array([1.0, 2.0]))
        Array([[ 6.,  0.],
               [ 0., 12.]], dtype=float32)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )


def _with_arguments(args: Any, numbers: Any, values: Any) -> list[Any]:
    full = list(args)
    for i, value in zip(numbers, values, strict=True):
        full[i] = value
    return full


def _check_dtypes(chosen: Any, fun: Any, name: str, kinds: str) -> None:
    leaves = pytree.leaves(chosen)
    check_array_leaves(leaves, lambda: leaf_names(fun, chosen), f"{name} of {name_of(fun)}")
    for leaf in leaves:
        dtype = aval_of(leaf).dtype
        kind = dtypes.kind_of(dtype)
        if not kind or kind not in kinds:
            expected = {"c": "complex", "f": "real floating-point"}.get(kinds, "floating-point")
            raise TypeError(
                f"{name} of {name_of(fun)} requires {expected} arguments, got {dtype}"
                + ("; for holomorphic functions pass holomorphic=True" if kind == "c" else "")
            )


def _check_results(outs: Sequence[Any], fun: Any, name: str, kinds: str) -> None:
    expected = {"c": "complex", "f": "real floating-point"}.get(kinds, "numeric")
    for out in outs:
        dtype = aval_of(out).dtype
        kind = dtypes.kind_of(dtype)
        if not kind or kind not in kinds:
            raise TypeError(
                f"{name} of {name_of(fun)} requires {expected} results, got {dtype}"
                + (
                    "; for holomorphic functions pass holomorphic=True, for others use vjp"
                    if kind == "c"
                    else ""
                )
            )


def _solid(tangent: Any, value: Any) -> Any:
    """A (co)tangent as a part of a Jacobian, of the type of the value: float0 becomes zeros."""
    aval = aval_of(value)
    if aval_of(tangent).dtype != dtypes.float0:
        return match_weak_type(tangent, aval)
    return full(aval.shape, 0, aval.dtype)


def _standard_basis(leaves: Any) -> list[Any]:
    """For leaves with n elements in all: n unit vectors, in the shapes of the leaves, stacked."""
    avals = [aval_of(x) for x in leaves]
    total = sum(a.size for a in avals)
    widest = max((a.size * max(a.dtype.itemsize, 1) for a in avals), default=0)
    require_host_memory(total * widest, f"a basis of {total} unit vectors for a Jacobian")
    basis: list[Any] = []
    start = 0
    for aval in avals:
        tangent = aval.tangent()
        if tangent.dtype == dtypes.float0:
            basis.append(np.zeros((total, *aval.shape), dtypes.float0))
        else:
            unit = np.eye(total, aval.size, k=-start, dtype=bool).astype(aval.dtype)
            unit = unit.reshape(total, *aval.shape)
            weak = tangent.weak_type
            basis.append(convert_element_type(unit, aval.dtype, True) if weak else unit)
        start += aval.size
    return basis


def _split_axis(column: Any, leaves: Any, tree: Any, axis: int, argnums: Any) -> Any:
    """The last axis of a Jacobian, over all argument elements, split into the argument tree."""
    from dovetail._core.ops.shape.slicing import (
        slice_in_dim,  # deferred: loaded with the first Jacobian
    )

    shape = aval_of(column).shape
    parts = []
    start = 0
    for leaf in leaves:
        aval = aval_of(leaf)
        part = slice_in_dim(column, start, start + aval.size, axis=len(shape) - 1)
        parts.append(reshape(part, (*shape[:-1], *aval.shape)))
        start += aval.size
    whole = tree.unflatten(parts)
    return whole if isinstance(argnums, (tuple, list)) else whole[0]


def _split_leading(row: Any, outs: Any) -> list[Any]:
    from dovetail._core.ops.shape.slicing import (
        slice_in_dim,  # deferred: loaded with the first Jacobian
    )

    shape = aval_of(row).shape
    parts = []
    start = 0
    for out in outs:
        aval = aval_of(out)
        part = slice_in_dim(row, start, start + aval.size, axis=0)
        parts.append(reshape(part, (*aval.shape, *shape[1:])))
        start += aval.size
    return parts
