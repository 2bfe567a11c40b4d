"""Primitives that rearrange or repeat elements, and the sum, which is the adjoint of repeating.

Each is linear in its only operand, and its transpose is made of primitives from this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import ShapeError
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval, shape_of
from dovetail._core.ir.dimensions import is_symbolic_dim
from dovetail._core.ir.division import Division, asked, batched_dims
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.ir.shown_params import ShownParams, is_given, never
from dovetail._core.trace.divisions import Labels, divided_alike, reshaped
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.state import state
from dovetail._core.trace.zeros import Unwanted, Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Shape = tuple[int, ...]


def is_linear(x: Any) -> bool:
    """Whether an argument of a transposition rule is linear: then it is an aval or `Unwanted`."""
    return isinstance(x, (ShapedArray, Unwanted))


def not_linear(what: str) -> TypeError:
    """The error for transposing something that is not a linear function.

    Args:
        what: a phrase for it that can begin a sentence.
    """
    return TypeError(
        f"{what} cannot be transposed: it is not linear. A derivative rule (custom_jvp) must be "
        "linear in the tangents; a function for linear_transpose must be linear in its arguments"
    )


class Linear(Primitive):
    """Linear in the first operand, the only one that has a tangent.

    Members define `transpose` and the rules that do not follow from linearity.
    """

    accepts_zeros = True
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        out = self.bind(*primals, **params)
        t = tangents[0]
        if type(t) is Zero:
            return out, Zero.of(out)
        return out, self.bind(t, *primals[1:], **params)


class Same(Linear):
    """The operand itself, of which the program says something.

    By default tangents are treated as the operand is, and cotangents pass through.
    """

    generates_nan = False

    def abstract(self, x: Any, **params: Any) -> Any:
        return x

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def reference(self, x: Any, **params: Any) -> Any:
        return np.array(x)

    def transpose(self, ct: Any, x: Any, **params: Any) -> Sequence[Any]:
        return (ct if is_linear(x) else None,)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*args, **params), dims[0]

    def lower(self, context: Builder, x: Any, **params: Any) -> Any:
        return x


class SameValue(Same):
    """`Same`, which says nothing of tangents."""

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        return self.bind(*primals, **params), tangents[0]


class BroadcastInDim(Linear):
    """Repeats an operand along new dimensions and along its dimensions of size one."""

    name = "broadcast_in_dim"
    generates_nan = False
    sharding_parameter: ClassVar[str] = "sharding"
    # The type of the result shows the shape.
    shown_params: ClassVar[ShownParams] = {
        "broadcast_dimensions": bool,
        "shape": never,
        "sharding": is_given,
    }

    def abstract(
        self, x: Any, *, shape: Shape, broadcast_dimensions: tuple[int, ...], sharding: Any = None
    ) -> Any:
        if len(broadcast_dimensions) != x.ndim:
            raise ShapeError(
                f"broadcast_in_dim: broadcast_dimensions {broadcast_dimensions} must name one "
                f"result dimension for each of the {x.ndim} dimensions of the operand of shape "
                f"{x.shape}"
            )
        if any(a >= b for a, b in pairwise(broadcast_dimensions)):
            raise ShapeError(
                "broadcast_in_dim: broadcast_dimensions must be strictly increasing, got "
                f"{broadcast_dimensions}"
            )
        for size, d in zip(x.shape, broadcast_dimensions, strict=True):
            if not 0 <= d < len(shape) or size not in (1, shape[d]):
                raise ShapeError(
                    f"broadcast_in_dim: an operand of shape {x.shape} does not go to shape "
                    f"{shape} with broadcast_dimensions {broadcast_dimensions}: each of its "
                    "dimensions must have size 1 or the size of its result dimension"
                )
        return make_aval(shape, x.dtype, x.weak_type)

    def labels(
        self,
        avals: Sequence[Any],
        results: Sequence[Any],
        *,
        shape: Shape,
        broadcast_dimensions: tuple[int, ...],
        sharding: Any = None,
    ) -> Labels:
        pairs = zip(avals[0].shape, broadcast_dimensions, strict=True)
        return Labels([[d if n == shape[d] else None for n, d in pairs]], [range(len(shape))])

    def reference(
        self, x: Any, *, shape: Shape, broadcast_dimensions: tuple[int, ...], sharding: Any = None
    ) -> Any:
        x = np.asarray(x)
        spread = np.ones(len(shape), int)
        spread[list(broadcast_dimensions)] = x.shape
        return np.broadcast_to(x.reshape(tuple(spread)), shape).copy()

    def transpose(
        self, ct: Any, x: Any, *, shape: Shape, broadcast_dimensions: tuple[int, ...], sharding: Any
    ) -> Sequence[Any]:
        if not is_linear(x):
            return (None,)
        unrepeated = {
            d for d, size in zip(broadcast_dimensions, x.shape, strict=True) if size == shape[d]
        }
        summed = reduce_sum(ct, tuple(i for i in range(len(shape)) if i not in unrepeated))
        return (reshape(summed, x.shape),)

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        shape: Shape,
        broadcast_dimensions: tuple[int, ...],
        sharding: Any = None,
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        size = shape_of(x)[d]
        x = move_dimension(x, d, 0)
        shifted = (0, *(i + 1 for i in broadcast_dimensions))
        return broadcast_in_dim(x, (size, *shape), shifted, batched_division(sharding, x)), 0

    def lower(
        self,
        context: Builder,
        x: Any,
        *,
        shape: Shape,
        broadcast_dimensions: tuple[int, ...],
        sharding: Any = None,
    ) -> Any:
        return context.broadcast_in_dim(x, context.avals_out[0], broadcast_dimensions)


broadcast_in_dim_p: Final = BroadcastInDim()


class Reshape(Linear):
    """The same elements, in row-major order, in another shape."""

    name = "reshape"
    generates_nan = False
    sharding_parameter: ClassVar[str] = "sharding"

    def abstract(
        self, x: Any, *, new_sizes: Shape, dimensions: None = None, sharding: Any = None
    ) -> Any:
        aval = make_aval(new_sizes, x.dtype, x.weak_type)
        if aval.size != x.size or any(n < 0 for n in new_sizes):
            raise TypeError(
                f"reshape: an operand of shape {x.shape} has {x.size} elements, the new shape "
                f"{new_sizes} has {aval.size}"
            )
        return aval

    def divisions(
        self, avals: Sequence[Any], results: Sequence[Any], *, new_sizes: Shape, **params: Any
    ) -> Sequence[Any]:
        return [reshaped(self.name, avals[0], new_sizes)]

    def reference(self, x: Any, *, new_sizes: Shape, dimensions: None, sharding: Any) -> Any:
        return np.reshape(x, new_sizes)

    def transpose(
        self, ct: Any, x: Any, *, new_sizes: Shape, dimensions: None, sharding: Any
    ) -> Sequence[Any]:
        return (reshape(ct, x.shape) if is_linear(x) else None,)

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        new_sizes: Shape,
        dimensions: None,
        sharding: Any,
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        x = move_dimension(x, d, 0)
        shape = (shape_of(x)[0], *new_sizes)
        return reshape(x, shape, batched_division(sharding, x)), 0

    def lower(
        self, context: Builder, x: Any, *, new_sizes: Shape, dimensions: None, sharding: Any
    ) -> Any:
        return context.reshape(x, context.avals_out[0])


reshape_p: Final = Reshape()


class Transpose(Linear):
    """A permutation of the dimensions."""

    name = "transpose"
    generates_nan = False

    def abstract(self, x: Any, *, permutation: tuple[int, ...]) -> Any:
        if sorted(permutation) != list(range(x.ndim)):
            raise TypeError(
                f"transpose: permutation {permutation} is not a permutation of the {x.ndim} "
                f"dimensions of the operand of shape {x.shape}"
            )
        return make_aval(tuple(x.shape[i] for i in permutation), x.dtype, x.weak_type)

    def labels(
        self, avals: Sequence[Any], results: Sequence[Any], *, permutation: tuple[int, ...]
    ) -> Labels:
        return Labels([range(avals[0].ndim)], [permutation])

    def reference(self, x: Any, *, permutation: tuple[int, ...]) -> Any:
        return np.transpose(x, permutation)

    def transpose(self, ct: Any, x: Any, *, permutation: tuple[int, ...]) -> Sequence[Any]:
        inverse = tuple(int(i) for i in np.argsort(permutation))
        return (transpose(ct, inverse) if is_linear(x) else None,)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, permutation: tuple[int, ...]
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        return transpose(x, (d, *(i + (i >= d) for i in permutation))), 0

    def lower(self, context: Builder, x: Any, *, permutation: tuple[int, ...]) -> Any:
        return context.transpose(x, context.avals_out[0], permutation)


transpose_p: Final = Transpose()


class ReduceSum(Linear):
    """The sum over some dimensions."""

    name = "reduce_sum"
    sharding_parameter: ClassVar[str] = "out_sharding"

    def abstract(self, x: Any, *, axes: tuple[int, ...], out_sharding: Any = None) -> Any:
        return reduced_aval(self.name, x, axes)

    def labels(
        self,
        avals: Sequence[Any],
        results: Sequence[Any],
        *,
        axes: tuple[int, ...],
        out_sharding: Any = None,
    ) -> Labels:
        return reduced_labels(avals, results, axes)

    def reference(self, x: Any, *, axes: tuple[int, ...], out_sharding: Any = None) -> Any:
        x = np.asarray(x)
        wide = np.float64 if dtypes.issubdtype(x.dtype, np.floating) else x.dtype
        return np.sum(x.astype(wide), axis=axes, dtype=wide).astype(x.dtype)

    def transpose(
        self, ct: Any, x: Any, *, axes: tuple[int, ...], out_sharding: Any
    ) -> Sequence[Any]:
        if not is_linear(x):
            return (None,)
        kept = tuple(i for i in range(x.ndim) if i not in axes)
        return (broadcast_in_dim(ct, x.shape, kept),)

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        axes: tuple[int, ...],
        out_sharding: Any = None,
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        axes = tuple(i + (i >= d) for i in axes)
        at = d - sum(i < d for i in axes)
        return reduce_sum(x, axes, batched_division(out_sharding, x, at, d)), at

    def lower(
        self, context: Builder, x: Any, *, axes: tuple[int, ...], out_sharding: Any = None
    ) -> Any:
        (aval,), (out,) = context.avals_in, context.avals_out
        wide_in, wide = aval, out
        if out.dtype.itemsize < 4 and dtypes.issubdtype(out.dtype, np.floating):
            # Rounding every partial sum to 16 bits would lose the precision of the elements.
            single = np.dtype(np.float32)
            wide_in, wide = aval.update(dtype=single), out.update(dtype=single)
        scalar = make_aval((), wide.dtype)
        (result,) = context.reduce(
            [context.convert(x, aval, wide_in)],
            [context.constant(np.zeros((), wide.dtype), scalar)],
            axes,
            [wide],
            lambda a, b: [context.op("add", [a, b], scalar)],
        )
        return context.convert(result, wide, out)


reduce_sum_p: Final = ReduceSum()


def reduced_labels(avals: Sequence[Any], results: Sequence[Any], axes: tuple[int, ...]) -> Labels:
    """The labels of reductions of operands of one shape over some dimensions."""
    rank = avals[0].ndim
    kept = [i for i in range(rank) if i not in axes]
    return Labels([range(rank)[: a.ndim] for a in avals], [kept] * len(results))


def batched_division(wanted: Division | None, x: Any, at: int = 0, dim: int = 0) -> Any:
    """What an operation on a batch is asked for that is asked to divide each of its results.

    Args:
        wanted: how each of them is divided; None if nothing is asked for.
        x: the operand.
        at: the dimension of the batch in the result.
        dim: the dimension of the batch in the operand.
    """
    if wanted is None:
        return None
    return asked(wanted.mesh, batched_dims(wanted.dims, at, aval_of(x).division, dim))


def reduced_aval(name: str, x: Any, axes: tuple[int, ...]) -> ShapedArray:
    """The aval of a reduction of `x` over `axes`, which are checked."""
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: duplicate value in axes {axes}")
    if not all(0 <= a < x.ndim for a in axes):
        raise ValueError(
            f"{name}: axes {axes} are not all dimensions of an operand of shape {x.shape}"
        )
    shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    return make_aval(shape, x.dtype, x.weak_type)


# Functions for rules, on canonical arguments; the public functions of these names are in `ops`.


def broadcast_in_dim(
    x: Any, shape: Shape, broadcast_dimensions: tuple[int, ...], sharding: Any = None
) -> Any:
    """`x` repeated to `shape`; nothing is emitted if it already has that shape."""
    if shape_of(x) == shape and type(x) is not Literal:
        return x
    return broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
    )


def reshape(x: Any, shape: Shape, sharding: Any = None) -> Any:
    """`x` in another shape."""
    if shape_of(x) == shape:
        return x
    return reshape_p.bind(x, dimensions=None, new_sizes=shape, sharding=sharding)


def transpose(x: Any, permutation: tuple[int, ...]) -> Any:
    """`x` with its dimensions permuted."""
    if permutation == tuple(range(len(permutation))):
        return x
    return transpose_p.bind(x, permutation=permutation)


def reduce_sum(x: Any, axes: tuple[int, ...], out_sharding: Any = None) -> Any:
    """The sum over `axes`."""
    return reduce_sum_p.bind(x, axes=axes, out_sharding=out_sharding) if axes else x


def full(shape: Shape, value: Any, dtype: Any) -> Any:
    """An array of one repeated value; of an extended dtype, one stored as equal numbers."""
    if dtype == dtypes.float0:
        return no_tangents(shape)
    if dtypes.is_extended(dtype):
        sizes, numbers = dtype.physical(shape)
        return dtype.of_physical(full(sizes, value, numbers))
    scalar = Literal(np.asarray(value, dtype)[()], make_aval((), dtype))
    return broadcast_in_dim_p.bind(scalar, shape=shape, broadcast_dimensions=(), sharding=None)


def no_tangents(shape: Shape) -> Any:
    """An array of dtype float0, which holds no data: devices have none."""
    if not any(map(is_symbolic_dim, shape)):
        return np.zeros(shape, dtypes.float0)
    scalar = Literal(False, make_aval((), dtypes.float0))
    return broadcast_in_dim_p.bind(scalar, shape=shape, broadcast_dimensions=(), sharding=None)


def move_dimension(x: Any, source: int, destination: int) -> Any:
    """`x` with one dimension moved."""
    if source == destination:
        return x
    order = [i for i in range(len(shape_of(x))) if i != source]
    order.insert(destination, source)
    return transpose(x, tuple(order))


def broadcast_batch(x: Any, size: int, dimension: int = 0) -> Any:
    """`x` repeated along a new dimension."""
    shape = shape_of(x)
    new = (*shape[:dimension], size, *shape[dimension:])
    if isinstance(x, np.ndarray) and x.dtype == dtypes.float0:  # devices cannot hold float0
        return np.zeros(new, dtypes.float0)
    old_dimensions = tuple(i for i in range(len(new)) if i != dimension)
    return broadcast_in_dim_p.bind(x, shape=new, broadcast_dimensions=old_dimensions, sharding=None)


def to_front(x: Any, dim: int | None, size: int) -> Any:
    """`x` with its batch dimension first; repeated along a new one if it has none."""
    return broadcast_batch(x, size) if dim is None else move_dimension(x, dim, 0)


def batch_size(args: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The size of the batch dimension of a batching rule's arguments."""
    for a, d in zip(args, dims, strict=True):
        if d is not None:
            return shape_of(a)[d]
    # No argument has one: a program inside names the axis that is mapped over.
    assert state.batch_axis is not None
    return state.batch_axis.size


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent as a value, even if it is a symbolic zero."""
    if type(tangent) is Literal:  # a scalar that a rule passed on; users hold arrays
        return broadcast_in_dim(tangent, (), ())
    if type(tangent) is not Zero:
        return tangent
    aval = tangent.aval
    if aval.dtype == dtypes.float0:
        return no_tangents(aval.shape)
    if dtypes.is_extended(aval.dtype):
        return aval.dtype.zeros(aval.shape)
    if aval.manual_axis_type.unreduced:  # nothing else can be cast to that
        scalar = aval.update(shape=(), weak_type=False)
        return broadcast_in_dim(Literal(np.zeros((), aval.dtype)[()], scalar), aval.shape, ())
    return full(aval.shape, 0, aval.dtype)


def broadcast_to(x: Any, shape: Shape) -> Any:
    """`x` repeated to `shape`; `x` is a scalar, or has some sizes of one instead."""
    have = shape_of(x)
    if have == shape:
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape))) if have else ())


def sum_to(x: Any, shape: Shape) -> Any:
    """The transpose of `broadcast_to`: sums the dimensions that it repeats."""
    have = shape_of(x)
    if have == shape:
        return x
    if not shape:
        return reduce_sum(x, tuple(range(len(have))))
    axes = tuple(i for i, (a, b) in enumerate(zip(have, shape, strict=True)) if a != b)
    return reshape(reduce_sum(x, axes), shape)
