"""Combining values with a part of an array: the implementation of `x.at[index]` methods."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from dovetail.extend import dtypes
from dovetail.extend.arguments import Literal, array_like, convert, fits, warn_user
from dovetail.extend.avals import ArrayClass, Tracer, aval_of, shape_of
from dovetail.extend.dtypes import dtype_name
from dovetail.extend.eager import compile_eager, lru_cache
from dovetail.extend.indexing import ScatterFamily, bind_scatter, scatter_numbers
from dovetail.extend.unchecked import (
    AnyPrimitive,
    add_dimensions,
    broadcast_in_dim,
    broadcast_scalar,
    convert_element_type,
    full,
    instantiate_zeros,
    reverse,
    squeeze_dimensions,
)
from dovetail.lax import (
    GatherScatterMode,
    add_p,
    max_p,
    min_p,
    mul_p,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
    select_n_p,
    sub_p,
)
from dovetail.numpy.indexing.codec import IndexCode, decode, encode
from dovetail.numpy.indexing.parsing import Index, holds_arrays, parse, stacked
from dovetail.numpy.indexing.plan import Plan
from dovetail.numpy.indexing.reading import check, is_eager

Shape = tuple[int, ...]

_FAMILY: Final[dict[str, ScatterFamily]] = {
    "set": scatter_p,
    "add": scatter_add_p,
    "subtract": scatter_sub_p,
    "multiply": scatter_mul_p,
    "min": scatter_min_p,
    "max": scatter_max_p,
}
_ELEMENTWISE: Final[dict[str, AnyPrimitive]] = {
    "add": add_p,
    "subtract": sub_p,
    "multiply": mul_p,
    "min": min_p,
    "max": max_p,
}
_SCALARS: Final = (bool, int, float, complex)


# ------------------------------------------------------------------------------------------ values


def _checked_values(values: Any, method: str) -> Any:
    """The argument `values` as an array, or unchanged if it is a host scalar."""
    if type(values) in _SCALARS or isinstance(values, ArrayClass):
        return values
    if isinstance(values, (list, tuple)):
        values = stacked(values) if holds_arrays(values) else np.asarray(values)
    checked: Any = array_like(values, f"x.at[...].{method}", "values")
    return checked.val if type(checked) is Literal else checked


def _check_loss(x: Any, values: Any, method: str) -> None:
    """Warn if the dtype of an array cannot hold the values written to it."""
    target = x.aval
    aval = aval_of(values)
    if aval.dtype is not target.dtype and _is_lossy(target, aval):
        warn_user(
            f"x.at[...].{method} cannot safely cast values of dtype {dtype_name(aval.dtype)} to "
            f"{dtype_name(target.dtype)}, the dtype of the array; they are converted all the "
            "same, which will be an error in a future version. Convert one of them first, with "
            f"values.astype({dtype_name(target.dtype)!r}) or x.astype({dtype_name(aval.dtype)!r})",
            FutureWarning,
        )


@lru_cache(maxsize=4096)
def _is_lossy(target: Any, given: Any) -> bool:
    if dtypes.is_extended(target.dtype) or dtypes.is_extended(given.dtype):
        return False
    dtype, _ = dtypes.result_of_pair(target.dtype, target.weak_type, given.dtype, given.weak_type)
    return bool(dtype != target.dtype)


# ---------------------------------------------------------------------------------------- updating


def put(
    x: Any,
    index: Index,
    values: Any,
    method: str,
    *,
    mode: GatherScatterMode,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Any:
    """`x`, with the part selected by a parsed index combined with values.

    Args:
        x: array or tracer.
        index: parsed for its shape.
        values: array or scalar that broadcasts to the indexed part.
        method: name of the method of `IndexUpdateRef` that combines them.
        mode: out-of-bounds behaviour.
        indices_are_sorted: a promise about the arrays in the index.
        unique_indices: a promise about the arrays in the index.
    """
    if method in ("divide", "power"):
        factors = put(
            _ones(x, values),
            index,
            values,
            "multiply",
            mode=mode,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
        )
        return x / factors if method == "divide" else x**factors
    aval = aval_of(x)
    plan = Plan(index, aval.shape)
    out, values = _of_one_dtype(x, values, method)
    _check_shape(method, shape_of(values), plan.out_shape)
    if 0 in plan.out_shape:
        return x
    out = _scatter(out, index, plan, values, method, mode, indices_are_sorted, unique_indices)
    return convert_element_type(out, aval.dtype, aval.weak_type)


def _ones(x: Any, values: Any) -> Any:
    """Ones of the shape and dtype of an array; of the dtype that integers and values promote to."""
    dtype, weak = aval_of(x).dtype, aval_of(x).weak_type
    if dtypes.kind_of(dtype) not in ("f", "c"):
        dtype, common = dtypes.result_type(x, values, return_weak_type_flag=True)
        weak = weak and common
    return convert_element_type(full(shape_of(x), 1, dtype), dtype, weak)


def _of_one_dtype(x: Any, values: Any, method: str) -> tuple[Any, Any]:
    """Array and values in their common dtype."""
    aval = aval_of(x)
    values = array_like(values, f"x.at[...].{method}", "values")
    new_aval = aval_of(values)
    if new_aval.dtype == aval.dtype:
        return x, values
    if dtypes.is_extended(aval.dtype) or dtypes.is_extended(new_aval.dtype):
        raise TypeError(
            f"x.at[...].{method}: values of dtype {dtype_name(new_aval.dtype)} cannot go into an "
            f"array of dtype {dtype_name(aval.dtype)}"
        )
    dtype, weak = dtypes.result_of_pair(
        aval.dtype, aval.weak_type, new_aval.dtype, new_aval.weak_type
    )
    values = convert(values, dtype, new_aval.weak_type)
    return (x if dtype == aval.dtype else convert_element_type(x, dtype, weak)), values


def _combined(method: str, x: Any, values: Any) -> Any:
    """All elements of an array, updated."""
    if method == "add" and dtypes.kind_of(aval_of(x).dtype) == "b":
        method = "max"  # the sum of booleans is "or", as in a scatter
    return values if method == "set" else _ELEMENTWISE[method].bind(x, values)


def _scatter(
    x: Any,
    index: Index,
    plan: Plan,
    values: Any,
    method: str,
    mode: GatherScatterMode,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Any:
    if not index.arrays:
        indices_are_sorted = unique_indices = True
    rank, values_rank = len(plan.out_shape), len(shape_of(values))
    if values_rank:
        values = broadcast_in_dim(values, plan.out_shape, tuple(range(rank - values_rank, rank)))
        if plan.new_dims:
            values = squeeze_dimensions(values, plan.new_dims)
        if plan.flips:
            values = reverse(values, plan.flips)
    elif rank != len(plan.new_dims):
        values = broadcast_scalar(
            values, tuple([n for d, n in enumerate(plan.out_shape) if d not in plan.new_dims])
        )
    if not plan.axes and not plan.fresh and plan.slice_sizes == plan.shape:
        values = instantiate_zeros(values)
        return _combined(method, x, values)
    if plan.fresh:
        x = add_dimensions(x, plan.fresh)
    out = bind_scatter(
        _FAMILY[method],
        x,
        plan.indices(),
        values,
        scatter_numbers(plan.numbers),
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )
    return squeeze_dimensions(out, plan.fresh) if plan.fresh else out


def _check_shape(method: str, have: Shape, want: Shape) -> None:
    rank = len(have)
    if rank <= len(want) and all(
        n in (1, m) for n, m in zip(have, want[len(want) - rank :], strict=True)
    ):
        return
    raise ValueError(
        f"x.at[...].{method}: values of shape {have} cannot be broadcast to the shape {want} of "
        "the indexed part; index fewer elements, or give values of that shape"
    )


def update(
    x: Any,
    index: Any,
    values: Any,
    method: str,
    mode: str | GatherScatterMode | None,
    indices_are_sorted: bool,
    unique_indices: bool,
    wrap: bool,
) -> Any:
    """The result of a method of `x.at[index]`, from its arguments as passed."""
    if type(values) not in _SCALARS:
        values = _checked_values(values, method)
    if type(values) is int and dtypes.kind_of(x.aval.dtype) in ("i", "u"):
        values = dtypes.fitted(values, x.aval.dtype, f"x.at[...].{method}")
        if not fits(values, dtypes.default_dtype("i")):
            values = np.asarray(values, x.aval.dtype)
    if method in _FAMILY or dtypes.kind_of(x.aval.dtype) in ("f", "c"):
        _check_loss(x, values, method)
    shape = x.aval.shape
    parsed_mode = GatherScatterMode.from_any(mode)
    if is_eager(x):
        if _is_simple_mask(x, index, values, method):
            return _mask_setter(method)(x, index, values)
        parsed = parse(index, shape, wrap)
        check(parsed, shape, mode)
        code, positions = encode(parsed, shape)
        setter = _setter(code, method, parsed_mode, bool(indices_are_sorted), bool(unique_indices))
        return setter(x, values, *positions)
    parsed = parse(index, shape, wrap)
    check(parsed, shape, mode)
    return put(
        x,
        parsed,
        values,
        method,
        mode=parsed_mode,
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
    )


@lru_cache(maxsize=4096)
def _setter(
    code: IndexCode,
    method: str,
    mode: GatherScatterMode,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Any:
    def update(x: Any, values: Any, *positions: Any) -> Any:
        return put(
            x,
            decode(code, positions, shape_of(x)),
            values,
            method,
            mode=mode,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
        )

    return compile_eager(update, name=f"at_{method}")


# A mask combined with a scalar: no element depends on the number of others updated, so another mask
# compiles nothing.


def _is_simple_mask(x: Any, index: Any, values: Any, method: str) -> bool:
    if (
        not isinstance(index, (ArrayClass, np.ndarray))
        or index.dtype != np.bool_
        or np.ndim(values)
    ):
        return False
    aval = x.aval
    rank = index.ndim
    return (
        0 < rank <= aval.ndim
        and not np.ndim(values)
        and index.shape == aval.shape[:rank]
        and not isinstance(index, Tracer)
        and not dtypes.is_extended(aval.dtype)
        and (method == "set" or aval.dtype != np.bool_)
    )


@lru_cache(maxsize=16)
def _mask_setter(method: str) -> Any:
    def update(x: Any, mask: Any, values: Any) -> Any:
        return _put_masked(x, mask, values, method)

    return compile_eager(update, name=f"at_{method}")


def _put_masked(x: Any, mask: Any, values: Any, method: str) -> Any:
    if method in ("divide", "power"):
        factors = _put_masked(_ones(x, values), mask, values, "multiply")
        return x / factors if method == "divide" else x**factors
    aval = aval_of(x)
    present, values = _of_one_dtype(x, values, method)
    values = broadcast_scalar(values, aval.shape) if aval.shape else values
    new = _combined(method, present, values)
    chosen = broadcast_in_dim(mask, aval.shape, tuple(range(mask.ndim)))
    return convert_element_type(select_n_p.bind(chosen, present, new), aval.dtype, aval.weak_type)
