"""What primitives do with sparse operands.

A rule takes the operands, of which some are sparse, as BCOO arrays, and the parameters; and gives
the result, or a list of them. `sparsify` looks rules up; operators and methods of BCOO arrays are
the same functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import dovetail as dt
from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo_arithmetic import (
    added,
    added_to_dense,
    bcoo_multiply_sparse,
    merged_if_repeated,
    refuse_dense,
    with_dense,
)
from dovetail.experimental.sparse.bcoo_convolution import bcoo_conv_general_dilated
from dovetail.experimental.sparse.bcoo_elements import todense
from dovetail.experimental.sparse.bcoo_layouts import transposed
from dovetail.experimental.sparse.bcoo_products import bcoo_dot_general
from dovetail.experimental.sparse.bcoo_shapes import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_reshape,
    bcoo_rev,
    padded,
    squeezed,
    summed_over,
)
from dovetail.experimental.sparse.bcoo_slices import dynamic_part, sliced, taken
from dovetail.experimental.sparse.conversion import todense_p
from dovetail.experimental.sparse.coordinates import Coordinates
from dovetail.extend import dtypes
from dovetail.extend.arguments import Literal
from dovetail.extend.avals import Tracer, shape_of
from dovetail.extend.unchecked import AnyPrimitive, add_any_p

Rule = Callable[..., Any]

_rules: Final[dict[AnyPrimitive, Rule]] = {}


def rule(*primitives: AnyPrimitive) -> Callable[[Rule], Rule]:
    """A decorator that makes a function the rule of some primitives."""

    def decorate(function: Rule) -> Rule:
        for primitive in primitives:
            _rules[primitive] = function
        return function

    return decorate


def rule_of(primitive: AnyPrimitive) -> Rule | None:
    """The rule of a primitive, if it has one."""
    return _rules.get(primitive)


def is_sparse(x: Any) -> bool:
    """Whether an operand is sparse."""
    return isinstance(x, Coordinates)


def sizes_of(x: Any) -> tuple[int, ...]:
    """The shape of an operand, sparse or not."""
    shape: tuple[int, ...] = x.shape if is_sparse(x) else shape_of(x)
    return shape


# ----------------------------------------------------------------------------- one operand


def _elementwise(primitive: AnyPrimitive, linear: bool) -> None:
    """The rule of a function of one operand that is 0 at 0."""

    def of_elements(x: Any, **params: Any) -> Any:
        mat = x if linear else merged_if_repeated(x)
        return mat.with_data(primitive.bind(mat.data, **params))

    rule(primitive)(of_elements)


for _linear in (lax.copy_p, lax.conj_p, lax.imag_p, lax.neg_p, lax.real_p):
    _elementwise(_linear, linear=True)

for _unary in (
    *(lax.abs_p, lax.asin_p, lax.asinh_p, lax.atan_p, lax.atanh_p, lax.bessel_i1e_p, lax.cbrt_p),
    *(lax.ceil_p, lax.convert_element_type_p, lax.erf_inv_p, lax.erf_p, lax.expm1_p, lax.floor_p),
    *(lax.log1p_p, lax.reduce_precision_p, lax.round_p, lax.sign_p, lax.sin_p, lax.sinh_p),
    *(lax.sqrt_p, lax.square_p, lax.tan_p, lax.tanh_p),
):
    _elementwise(_unary, linear=False)


@rule(lax.integer_pow_p)
def _integer_pow(x: Any, *, y: int) -> Any:
    if y <= 0:
        refuse_dense(f"a sparse array to the power {y}")
    mat = merged_if_repeated(x)
    return mat.with_data(lax.integer_pow(mat.data, y))


# ----------------------------------------------------------------------------- two operands


@rule(lax.add_p, add_any_p)
def add(x: Any, y: Any) -> Any:
    """`x + y`, of which one or both are sparse."""
    if is_sparse(x) and is_sparse(y):
        return added("add", x, y)
    return added_to_dense("the sum", x, y) if is_sparse(x) else added_to_dense("the sum", y, x)


@rule(lax.sub_p)
def subtract(x: Any, y: Any) -> Any:
    """`x - y`, of which one or both are sparse."""
    if is_sparse(x) and is_sparse(y):
        return added("subtract", x, y, -1)
    if is_sparse(x):
        return added_to_dense("the difference", x, jnp.negative(y))
    return added_to_dense("the difference", y.with_data(-y.data), x)


@rule(lax.mul_p)
def multiply(x: Any, y: Any) -> Any:
    """`x * y`, of which one or both are sparse."""
    if is_sparse(x) and is_sparse(y):
        return bcoo_multiply_sparse(x, y)
    if is_sparse(x):
        return with_dense("multiply", x, y, jnp.multiply)
    return with_dense("multiply", y, x, lambda a, b: jnp.multiply(b, a))


def divide(x: Any, y: Any) -> Any:
    """`x / y`, of which `x` is sparse and `y` is not."""
    if is_sparse(y):
        refuse_dense("a quotient by a sparse array")
    return with_dense("divide", x, y, jnp.true_divide)


@rule(lax.div_p)
def _quotient(x: Any, y: Any) -> Any:
    if is_sparse(y):
        refuse_dense("a quotient by a sparse array")
    mat = merged_if_repeated(x) if dtypes.kind_of(x.dtype) in ("i", "u") else x
    return with_dense("div", mat, y, lax.div)


def _keeps_zero(primitive: AnyPrimitive) -> None:
    """The rule of a function of a sparse array and a number that is 0 where the array is."""

    def with_number(*operands: Any, **params: Any) -> Any:
        places = [i for i, x in enumerate(operands) if is_sparse(x)]
        place = places[0]
        if len(places) > 1 or any(sizes_of(x) for i, x in enumerate(operands) if i != place):
            raise NotImplementedError(
                f"{primitive.name} of sparse arrays is there with numbers alone; for others use "
                "sparse.todense(mat)"
            )
        mat = merged_if_repeated(operands[place])
        zero = [*operands]
        zero[place] = np.zeros((), mat.dtype)
        with dt.ensure_compile_time_eval():
            at_zero = _known_number(primitive.bind(*zero, **params))
        if at_zero is None or at_zero != 0:
            refuse_dense(f"{primitive.name}, which is not known to be 0 where the array is,")
        given = [*operands]
        given[place] = mat.data
        return mat.with_data(primitive.bind(*given, **params))

    rule(primitive)(with_number)


def _known_number(x: Any) -> Any:
    """A number, None if it is traced."""
    known = x.val if isinstance(x, Literal) else x
    known = known.concrete() if isinstance(known, Tracer) else known
    return None if known is None or isinstance(known, Tracer) else np.asarray(known)[()]


for _binary in (lax.max_p, lax.min_p, lax.pow_p, lax.rem_p, lax.clamp_p, lax.atan2_p):
    _keeps_zero(_binary)


@rule(
    *(lax.eq_p, lax.ne_p, lax.lt_p, lax.le_p, lax.gt_p, lax.ge_p),
    *(lax.cos_p, lax.cosh_p, lax.acos_p, lax.acosh_p, lax.exp_p, lax.exp2_p, lax.log_p),
    *(lax.logistic_p, lax.rsqrt_p, lax.erfc_p, lax.lgamma_p, lax.digamma_p, lax.is_finite_p),
    *(lax.not_p, lax.bessel_i0e_p),
)
def _dense(*operands: Any, **params: Any) -> Any:
    refuse_dense("the result of this function of a sparse array")


# ----------------------------------------------------------------------------- shapes


@rule(lax.transpose_p)
def _transpose(x: Any, *, permutation: tuple[int, ...]) -> Any:
    return transposed(x, permutation)


@rule(lax.reshape_p)
def _reshape(x: Any, *, new_sizes: tuple[int, ...], **params: Any) -> Any:
    return bcoo_reshape(x, new_sizes=new_sizes)


@rule(lax.squeeze_p)
def _squeeze(x: Any, *, dimensions: tuple[int, ...]) -> Any:
    return squeezed(x, dimensions)


@rule(lax.broadcast_in_dim_p)
def _broadcast_in_dim(
    x: Any, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...], **params: Any
) -> Any:
    return bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=broadcast_dimensions)


@rule(lax.rev_p)
def _rev(x: Any, *, dimensions: tuple[int, ...]) -> Any:
    return bcoo_rev(x, dimensions)


@rule(lax.concatenate_p)
def _concatenate(*operands: Any, dimension: int) -> Any:
    if not all(map(is_sparse, operands)):
        raise NotImplementedError(
            "concatenate takes sparse arrays or dense ones, not both; use sparse.todense(mat)"
        )
    return bcoo_concatenate(operands, dimension=dimension)


@rule(lax.stack_p)
def _stack(*operands: Any, axis: int) -> Any:
    shape = sizes_of(operands[0])
    wider = (*shape[:axis], 1, *shape[axis:])
    dims = tuple(d + (d >= axis) for d in range(len(shape)))
    parts = [
        bcoo_broadcast_in_dim(x, shape=wider, broadcast_dimensions=dims) if is_sparse(x) else x
        for x in operands
    ]
    return _concatenate(*parts, dimension=axis)


@rule(lax.pad_p)
def _pad(x: Any, value: Any, *, padding_config: Any) -> Any:
    if not is_sparse(x) or _known_number(value) != 0:
        refuse_dense("a sparse array that is padded with anything but 0")
    return padded(x, tuple(padding_config))


@rule(lax.split_p)
def _split(x: Any, *, sizes: tuple[int, ...], axis: int) -> list[Any]:
    parts, begin = [], 0
    steps = (1,) * x.ndim
    for size in sizes:
        starts, limits = [0] * x.ndim, list(x.shape)
        starts[axis], limits[axis] = begin, begin + size
        parts.append(sliced(x, tuple(starts), tuple(limits), steps))
        begin += size
    return parts


@rule(lax.slice_p)
def _slice(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    steps = (1,) * x.ndim if strides is None else tuple(strides)
    return sliced(x, tuple(start_indices), tuple(limit_indices), steps)


@rule(lax.dynamic_slice_p)
def _dynamic_slice(x: Any, *starts: Any, slice_sizes: tuple[int, ...], **params: Any) -> Any:
    return dynamic_part(x, starts, slice_sizes)


@rule(lax.gather_p)
def _gather(
    x: Any, starts: Any, *, dimension_numbers: Any, slice_sizes: Any, mode: Any, **params: Any
) -> Any:
    if is_sparse(starts) or not is_sparse(x):
        raise NotImplementedError("positions of a gather cannot be sparse; use sparse.todense(mat)")
    return taken(x, jnp.asarray(starts), dimension_numbers, tuple(slice_sizes), mode)


@rule(lax.reduce_sum_p)
def reduce_sum(x: Any, *, axes: tuple[int, ...], **params: Any) -> Any:
    """The sum over some dimensions, dense if it is over all."""
    result = summed_over(x, tuple(axes))
    return result if result.ndim else todense(result)


@rule(todense_p)
def _todense(x: Any, *, tree: Any) -> Any:
    return todense(x)


# ----------------------------------------------------------------------------- products


@rule(lax.dot_general_p)
def _dot_general(
    x: Any, y: Any, *, dimension_numbers: Any, preferred_element_type: Any = None, **params: Any
) -> Any:
    return bcoo_dot_general(
        x,
        y,
        dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type,
    )


@rule(lax.conv_general_dilated_p)
def _convolution(x: Any, y: Any, **params: Any) -> Any:
    return bcoo_conv_general_dilated(
        x,
        y,
        **{
            name: params[name]
            for name in (
                *("window_strides", "padding", "lhs_dilation", "rhs_dilation"),
                *("dimension_numbers", "feature_group_count", "batch_group_count"),
                "preferred_element_type",
            )
        },
    )


def matmul(x: Any, y: Any) -> Any:
    """`x @ y`, of which one or both are sparse: as `numpy.matmul` of dense arrays."""
    n, m = len(sizes_of(x)), len(sizes_of(y))
    if not n or not m:
        raise ValueError(
            f"matmul requires operands of at least one dimension, got the shapes {sizes_of(x)} and "
            f"{sizes_of(y)}"
        )
    if m <= 2:
        return _product(x, y, (((n - 1,), (max(m - 2, 0),)), ((), ())))
    if n == 1:
        return _product(x, y, (((0,), (m - 2,)), ((), ())))
    lead = np.broadcast_shapes(sizes_of(x)[:-2], sizes_of(y)[:-2])
    x, y = (_with_lead(v, lead) for v in (x, y))
    batch = tuple(range(len(lead)))
    contracted = ((len(lead) + 1,), (len(lead),))
    return _product(x, y, (contracted, (batch, batch)))


def _with_lead(x: Any, lead: tuple[int, ...]) -> Any:
    shape = (*lead, *sizes_of(x)[-2:])
    if is_sparse(x):
        return bcoo_broadcast_in_dim(
            x,
            shape=shape,
            broadcast_dimensions=tuple(range(len(shape) - x.ndim, len(shape))),
        )
    return jnp.broadcast_to(x, shape)


def _product(x: Any, y: Any, numbers: Any) -> Any:
    x, y = (v if is_sparse(v) else jnp.asarray(v) for v in (x, y))
    return bcoo_dot_general(x, y, dimension_numbers=numbers)
