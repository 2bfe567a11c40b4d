"""The public functions that update slices; their primitives are in `scatter`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike, ShapeLike
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.operands import as_operand, equal_dtypes
from dovetail._core.basis.structural import full
from dovetail._core.ir.avals import aval_of, make_aval
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Literal
from dovetail._core.ops.indexing.gather import GatherScatterMode, canonical_numbers
from dovetail._core.ops.indexing.scatter import (
    ScatterDimensionNumbers,
    ScatterFamily,
    bind_scatter,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from dovetail._core.ops.shape.dimensions import canonical_shape
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.interning import interned
from dovetail._core.transform.stage import stage


def _update(
    which: ScatterFamily,
    function: str,
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: str | GatherScatterMode | None,
) -> Any:
    indices = as_operand(scatter_indices, function, "scatter_indices")
    as_operand(operand, function, "operand")
    as_operand(updates, function, "updates")
    operand, updates = equal_dtypes(function, operand, updates)
    return bind_scatter(
        which,
        operand,
        indices,
        updates,
        canonical_numbers(dimension_numbers, ScatterDimensionNumbers, function),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
    )


def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """An array with slices at positions known at run time replaced.

    This is StableHLO's scatter. ``x.at[indices].set(updates)`` of `dovetail.numpy` arrays is built
    on it and is easier to use.

    Args:
        operand: the array; it is not changed.
        scatter_indices: integers of shape ``(*batch, n)``: the last dimension holds the index
            vectors.
        updates: the new slices: dimensions `batch` and, at ``update_window_dims``, those of a
            slice.
        dimension_numbers: the role of each dimension.
        indices_are_sorted: a promise that the index vectors are in ascending order.
        unique_indices: a promise that no element is updated twice; if it is broken, the result is
            undefined.
        mode: what happens out of bounds: ``"drop"`` (the default), ``"clip"`` or
            ``"promise_in_bounds"``; see `GatherScatterMode`.

    Returns:
        An array of the shape and dtype of `operand`. Where several updates compete for an element,
        it takes one of them; on CPU, the last.

    Raises:
        TypeError: dtypes differ, or dimension numbers and shapes are incompatible.
        ValueError: `mode` is not a known mode.

    Reference: https://openxla.org/stablehlo/spec#scatter

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> x, i, u = np.zeros(4, "int32"), np.array([[1]]), np.array([7], "int32")
        >>> print(lax.scatter(x, i, u, numbers))
        [0 7 0 0]
    """
    return _update(
        scatter_p, "scatter", operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """An array with updates added to slices at positions known at run time.

    Updates of the same element add up.

    Args:
        operand: the array; it is not changed.
        scatter_indices: integers of shape ``(*batch, n)``: the last dimension holds the index
            vectors.
        updates: dimensions `batch` and, at ``update_window_dims``, those of a slice.
        dimension_numbers: the role of each dimension.
        indices_are_sorted: a promise that the index vectors are in ascending order.
        unique_indices: a promise that no element is updated twice; if it is broken, the result is
            undefined.
        mode: what happens out of bounds; see `scatter`.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: dtypes differ, or dimension numbers and shapes are incompatible.
        ValueError: `mode` is not a known mode.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> x, i, u = np.array([5, 6], "int32"), np.array([[1], [1]]), np.array([2, 3], "int32")
        >>> print(lax.scatter_add(x, i, u, numbers))
        [ 5 11]
    """
    return _update(
        scatter_add_p, "scatter_add", operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """An array with updates subtracted from slices at positions known at run time.

    All updates of the same element are subtracted.

    Args:
        operand: the array; it is not changed.
        scatter_indices: integers of shape ``(*batch, n)``: the last dimension holds the index
            vectors.
        updates: dimensions `batch` and, at ``update_window_dims``, those of a slice.
        dimension_numbers: the role of each dimension.
        indices_are_sorted: a promise that the index vectors are in ascending order.
        unique_indices: a promise that no element is updated twice; if it is broken, the result is
            undefined.
        mode: what happens out of bounds; see `scatter`.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: dtypes differ, or dimension numbers and shapes are incompatible.
        ValueError: `mode` is not a known mode.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> x, i, u = np.array([5, 6], "int32"), np.array([[1], [1]]), np.array([2, 3], "int32")
        >>> print(lax.scatter_sub(x, i, u, numbers))
        [5 1]
    """
    return _update(
        scatter_sub_p, "scatter_sub", operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """An array with slices at positions known at run time multiplied by updates.

    An element is multiplied by all of its updates.

    Args:
        operand: the array; it is not changed.
        scatter_indices: integers of shape ``(*batch, n)``: the last dimension holds the index
            vectors.
        updates: dimensions `batch` and, at ``update_window_dims``, those of a slice.
        dimension_numbers: the role of each dimension.
        indices_are_sorted: a promise that the index vectors are in ascending order.
        unique_indices: a promise that no element is updated twice; if it is broken, the result is
            undefined.
        mode: what happens out of bounds; see `scatter`.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: dtypes differ, or dimension numbers and shapes are incompatible.
        ValueError: `mode` is not a known mode.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> x, i, u = np.array([5, 6], "int32"), np.array([[1], [1]]), np.array([2, 3], "int32")
        >>> print(lax.scatter_mul(x, i, u, numbers))
        [ 5 36]
    """
    return _update(
        scatter_mul_p, "scatter_mul", operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """An array with slices at positions known at run time replaced by smaller updates.

    If an element and its updates share the minimum, they share the derivative evenly.

    Args:
        operand: the array; it is not changed.
        scatter_indices: integers of shape ``(*batch, n)``: the last dimension holds the index
            vectors.
        updates: dimensions `batch` and, at ``update_window_dims``, those of a slice.
        dimension_numbers: the role of each dimension.
        indices_are_sorted: a promise that the index vectors are in ascending order.
        unique_indices: a promise that no element is updated twice; if it is broken, the result is
            undefined.
        mode: what happens out of bounds; see `scatter`.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: dtypes differ, or dimension numbers and shapes are incompatible.
        ValueError: `mode` is not a known mode.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> x, i, u = np.array([5, 6], "int32"), np.array([[1], [1]]), np.array([2, 3], "int32")
        >>> print(lax.scatter_min(x, i, u, numbers))
        [5 2]
    """
    return _update(
        scatter_min_p, "scatter_min", operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """An array with slices at positions known at run time replaced by larger updates.

    If an element and its updates share the maximum, they share the derivative evenly.

    Args:
        operand: the array; it is not changed.
        scatter_indices: integers of shape ``(*batch, n)``: the last dimension holds the index
            vectors.
        updates: dimensions `batch` and, at ``update_window_dims``, those of a slice.
        dimension_numbers: the role of each dimension.
        indices_are_sorted: a promise that the index vectors are in ascending order.
        unique_indices: a promise that no element is updated twice; if it is broken, the result is
            undefined.
        mode: what happens out of bounds; see `scatter`.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: dtypes differ, or dimension numbers and shapes are incompatible.
        ValueError: `mode` is not a known mode.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> x, i, u = np.array([5, 6], "int32"), np.array([[1], [1]]), np.array([2, 3], "int32")
        >>> print(lax.scatter_max(x, i, u, numbers))
        [5 6]
    """
    return _update(
        scatter_max_p, "scatter_max", operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: ShapeLike = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """An array with a function applied to slices at positions known at run time.

    Args:
        operand: the array; it is not changed.
        scatter_indices: integers of shape ``(*batch, n)``: the last dimension holds the index
            vectors.
        func: a function from an element, a scalar, to its new value, a scalar of the same dtype. It
            is applied as often as the element is indexed. It may capture scalars with known values,
            but no other arrays.
        dimension_numbers: the role of each dimension.
        update_shape: the shape of hypothetical updates: dimensions `batch` and, at
            ``update_window_dims``, those of a slice.
        indices_are_sorted: a promise that the index vectors are in ascending order.
        unique_indices: a promise that no element is indexed twice; required for derivatives.
        mode: what happens out of bounds; see `scatter`.

    Returns:
        An array of the shape and dtype of `operand`.

    Raises:
        TypeError: `func` captures a traced value or an array, or does not return one scalar; or
            dimension numbers and shapes are incompatible.
        ValueError: `mode` is not a known mode.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> x, i = np.array([5.0, 6.0], "float32"), np.array([[1]])
        >>> print(lax.scatter_apply(x, i, lax.neg, numbers, update_shape=(1,)))
        [ 5. -6.]
    """
    operand = as_operand(operand, "scatter_apply", "operand")
    indices = as_operand(scatter_indices, "scatter_apply", "scatter_indices")
    aval = aval_of(operand)
    result: Any = scatter_p.bind(
        operand,
        indices,
        full(canonical_shape(update_shape, "scatter_apply", "update_shape"), 0, aval.dtype),
        dimension_numbers=canonical_numbers(
            dimension_numbers, ScatterDimensionNumbers, "scatter_apply"
        ),
        indices_are_sorted=bool(indices_are_sorted),
        mode=GatherScatterMode.from_any(mode),
        unique_indices=bool(unique_indices),
        update_consts=(),
        update_jaxpr=_function_jaxpr(func, aval.dtype),
    )
    return result


def _function_jaxpr(func: Callable[[Any], Any], dtype: Any) -> Jaxpr:
    """The jaxpr of a scalar function of an element, and of an update that it ignores."""
    if not callable(func):
        raise TypeError(f"scatter_apply takes a function of an element, got {func!r:.80}")
    aval = make_aval((), dtype)
    name = getattr(func, "__name__", type(func).__name__)

    def function(present: Any, update: Any) -> list[Any]:
        out = as_operand(func(present), "scatter_apply", f"result of {name}")
        got = aval_of(out)
        if got.shape != () or got.dtype != dtype:
            raise TypeError(
                f"scatter_apply: {name} must return a scalar of dtype {dtype_name(dtype)}, as its "
                f"argument is, got {got.short_name()}"
            )
        return [out]

    closed = stage(function, [aval, aval], DebugInfo("scatter_apply", name))
    jaxpr = interned(closed).jaxpr
    if not jaxpr.constvars:
        return jaxpr
    known: dict[Any, Literal] = {}
    for var, value in zip(jaxpr.constvars, closed.consts, strict=True):
        if isinstance(value, Tracer) or var.aval.shape:
            raise TypeError(
                f"scatter_apply: {name} uses a value of type {var.aval.short_name()} from "
                "outside; only scalars whose values are known while tracing can be used in it. "
                "Write x.at[i].set(f(x[i])) instead"
            )
        known[var] = Literal(np.asarray(value)[()], var.aval)

    def literals(atoms: Sequence[Any]) -> list[Any]:
        return [a if type(a) is Literal else known.get(a, a) for a in atoms]

    eqns = [e.replace(invars=literals(e.invars)) for e in jaxpr.eqns]
    replaced = jaxpr.replace(constvars=[], eqns=eqns, outvars=literals(jaxpr.outvars))
    return interned(ClosedJaxpr(replaced, [])).jaxpr
