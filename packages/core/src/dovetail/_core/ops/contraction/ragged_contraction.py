"""Contractions with a dimension divided into groups of run-time sizes: `ragged_dot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike, DTypeLike, Sharding
from dovetail._core.basis.elementwise import add_tangents, convert_element_type
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import (
    batch_size,
    broadcast_batch,
    broadcast_in_dim,
    is_linear,
    move_dimension,
    to_front,
    transpose,
)
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ops.calls.out_sharding import divided
from dovetail._core.ops.contraction.dot_algorithms import for_cotangents
from dovetail._core.ops.contraction.dot_general import (
    Dims,
    PrecisionLike,
    contracted_aval,
    dot_general_p,
    dot_precision,
    free_dimensions,
    placed,
)
from dovetail._core.ops.contraction.ragged_dimensions import RaggedDotDimensionNumbers, RaggedMode
from dovetail._core.ops.contraction.ragged_loop import plan_loop
from dovetail._core.ops.shape.dimensions import without
from dovetail._core.trace.divisions import Labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

_INT32: Final = np.dtype(np.int32)


class RaggedDotGeneral(Primitive):
    """A contraction in which each group of consecutive positions in a dimension of the left operand
    has its own part of the right operand or of the result.

    A contracting dimension gives one result for each group, stacked in a first dimension; a batch
    dimension is contracted as if there were no groups.
    """

    name = "ragged_dot_general"
    linear_in: ClassVar[Sequence[slice]] = (slice(1), slice(1, 2))
    accepts_zeros = True

    def abstract(
        self,
        x: Any,
        y: Any,
        sizes: Any,
        *,
        ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
        precision: Any,
        preferred_element_type: Any,
        group_offset: None = None,
        out_sharding: Any = None,
    ) -> Any:
        numbers = ragged_dot_dimension_numbers
        self._check_numbers(x, y, numbers)
        weight = y
        if numbers.mode is RaggedMode.FREE:
            weight = y.update(shape=without(y.shape, numbers.rhs_group_dimensions))
        out = contracted_aval(self.name, x, weight, numbers.of_one_group(), preferred_element_type)
        if dtypes.kind_of(sizes.dtype) not in ("i", "u") or not sizes.ndim:
            raise TypeError(
                f"{self.name}: group_sizes must be an array of integers of rank 1 or more, got "
                f"{sizes.short_name()}"
            )
        prefix, count = tuple([x.shape[d] for d in numbers.prefix]), sizes.shape[-1]
        if sizes.shape not in ((count,), (*prefix, count)):
            also = f" or {(*prefix, count)}" if prefix else ""
            raise TypeError(
                f"{self.name}: group_sizes must have the shape ({count},){also} for lhs of shape "
                f"{x.shape}, got {sizes.shape}"
            )
        if numbers.mode is RaggedMode.FREE and y.shape[numbers.rhs_group_dimensions[0]] != count:
            raise TypeError(
                f"{self.name}: rhs of shape {y.shape} has "
                f"{y.shape[numbers.rhs_group_dimensions[0]]} groups in dimension "
                f"{numbers.rhs_group_dimensions[0]}, group_sizes has {count}"
            )
        return (
            out.update(shape=(count, *out.shape)) if numbers.mode is RaggedMode.CONTRACTING else out
        )

    def labels(
        self,
        avals: Sequence[Any],
        results: Sequence[Any],
        *,
        ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
        **params: Any,
    ) -> Labels:
        numbers = ragged_dot_dimension_numbers
        x, y, sizes = avals
        weight = y
        if numbers.mode is RaggedMode.FREE:
            weight = y.update(shape=without(y.shape, numbers.rhs_group_dimensions))
        plain = dot_general_p.labels([x, weight], results, dimension_numbers=numbers.of_one_group())
        ragged = plain.operands[0][numbers.ragged]
        sides = [[None if one == ragged else one for one in own] for own in plain.operands]
        result: list[Any] = [None if one == ragged else one for one in plain.results[0]]
        if numbers.mode is RaggedMode.FREE:
            sides[1].insert(numbers.rhs_group_dimensions[0], None)
        if numbers.mode is RaggedMode.CONTRACTING:
            result.insert(0, None)
        ambiguous = plain.ambiguous - {ragged}
        operands = [*sides, (None,) * sizes.ndim]
        return Labels(operands, [result], ambiguous, "takes groups along")

    def _check_numbers(self, x: Any, y: Any, numbers: RaggedDotDimensionNumbers) -> None:
        (_, yc), (_, yb) = numbers.dot_dimension_numbers
        ragged, group = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
        if len(ragged) != 1 or not 0 <= ragged[0] < x.ndim:
            raise TypeError(
                f"{self.name}: lhs_ragged_dimensions must be one dimension of lhs, of shape "
                f"{x.shape}, and not negative, got {ragged}"
            )
        kind = numbers.mode
        if len(group) != (kind is RaggedMode.FREE):
            wanted = "one dimension of rhs" if kind is RaggedMode.FREE else "empty"
            raise TypeError(
                f"{self.name}: rhs_group_dimensions must be {wanted} where the ragged dimension of "
                f"lhs is a {kind.value} dimension, got {group}"
            )
        if group and (not 0 <= group[0] < y.ndim or group[0] in (*yc, *yb)):
            raise TypeError(
                f"{self.name}: rhs_group_dimensions must be a dimension of rhs, of shape {y.shape}"
                f", that is not negative, contracting {yc} or batch {yb}, got {group}"
            )

    def reference(
        self,
        x: Any,
        y: Any,
        sizes: Any,
        *,
        ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
        precision: Any,
        preferred_element_type: Any,
        **params: Any,
    ) -> Any:
        numbers = ragged_dot_dimension_numbers
        dot = {"precision": None, "preferred_element_type": preferred_element_type}

        def contracted(x: Any, y: Any) -> Any:
            one = numbers.of_one_group()
            return dot_general_p.reference(x, y, dimension_numbers=one, **dot)

        if numbers.mode is RaggedMode.BATCH:
            return contracted(x, y)
        (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
        rows, prefix = x.shape[numbers.ragged], tuple([x.shape[d] for d in numbers.prefix])
        sizes = np.broadcast_to(np.clip(sizes.astype(float), 0, rows), (*prefix, sizes.shape[-1]))
        ends = np.cumsum(sizes, axis=-1)[..., None]
        # Which rows are in which group: (*prefix, groups, rows).
        inside = (np.arange(rows) >= ends - sizes[..., None]) & (np.arange(rows) < ends)

        def masked(array: Any, order: Dims, group: int) -> Any:
            """`array` with zeros outside a group; `order` puts its dimensions behind the prefix."""
            mask = inside[..., group, :]
            mask = mask.reshape(*mask.shape, *[1] * (array.ndim - mask.ndim))
            zero = np.zeros((), array.dtype)
            return np.where(mask, array.transpose(order), zero).transpose(np.argsort(order))

        groups = range(sizes.shape[-1])
        if numbers.mode is RaggedMode.CONTRACTING:
            x_order = (*xb, *xc, *free_dimensions(x.ndim, xc, xb))
            y_order = (*yb, *yc, *free_dimensions(y.ndim, yc, yb))
            parts = [contracted(masked(x, x_order, g), masked(y, y_order, g)) for g in groups]
            empty = contracted(x, y)[None][:0]
            return np.concatenate([empty, *[part[None] for part in parts]])
        weights = np.moveaxis(y, numbers.rhs_group_dimensions[0], 0)
        out = np.zeros_like(contracted(x, np.zeros(weights.shape[1:], y.dtype)))
        in_place = tuple(range(out.ndim))
        for g in groups:
            out = out + masked(contracted(x, weights[g]), in_place, g)
        return out

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        (x, y, sizes), (s, t, _) = primals, tangents
        out = self.bind(x, y, sizes, **params)
        tangent: Any = Zero.of(out)
        if type(s) is not Zero:
            tangent = self.bind(s, y, sizes, **params)
        if type(t) is not Zero:
            tangent = add_tangents(tangent, self.bind(x, t, sizes, **params))
        return out, tangent

    def transpose(
        self,
        ct: Any,
        x: Any,
        y: Any,
        sizes: Any,
        *,
        ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
        precision: Any,
        **params: Any,
    ) -> Sequence[Any]:
        numbers = ragged_dot_dimension_numbers
        dot = numbers.dot_dimension_numbers
        params["precision"] = for_cotangents(precision, aval_of(ct).dtype)
        if numbers.mode is RaggedMode.BATCH:
            params.pop("group_offset")
            both = dot_general_p.transpose(ct, x, y, dimension_numbers=dot, **params)
            return (*both, None)
        if numbers.mode is RaggedMode.FREE:
            cotangent = self._transpose_free(ct, x, y, sizes, numbers, params)
        else:
            cotangent = self._transpose_contracting(ct, x, y, sizes, numbers, params)
        if is_linear(x):
            return convert_element_type(cotangent, x.dtype), None, None
        return None, convert_element_type(cotangent, y.dtype), None

    def _transpose_free(
        self,
        ct: Any,
        x: Any,
        y: Any,
        sizes: Any,
        numbers: RaggedDotDimensionNumbers,
        params: dict[str, Any],
    ) -> Any:
        (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
        group = numbers.rhs_group_dimensions
        x_free = free_dimensions(len(shape_of(x)), xc, xb)
        y_free = free_dimensions(len(shape_of(y)), (*yc, *group), yb)
        batch = tuple(range(len(xb)))
        of_x = tuple(range(len(xb), len(xb) + len(x_free)))
        if is_linear(x):
            of_y = tuple(range(len(xb) + len(x_free), len(shape_of(ct))))
            ragged = (of_x[x_free.index(numbers.ragged)],)
            back = RaggedDotDimensionNumbers(((of_y, y_free), (batch, yb)), ragged, group)
            out = self.bind(ct, y, sizes, ragged_dot_dimension_numbers=back, **params)
            return placed(out, (*xb, *x_free, *[xc[yc.index(d)] for d in sorted(yc)]))
        back = RaggedDotDimensionNumbers(((x_free, of_x), (xb, batch)), (numbers.ragged,), ())
        out = self.bind(x, ct, sizes, ragged_dot_dimension_numbers=back, **params)
        return placed(out, (*group, *yb, *[yc[xc.index(d)] for d in sorted(xc)], *y_free))

    def _transpose_contracting(
        self,
        ct: Any,
        x: Any,
        y: Any,
        sizes: Any,
        numbers: RaggedDotDimensionNumbers,
        params: dict[str, Any],
    ) -> Any:
        (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
        x_free = free_dimensions(len(shape_of(x)), xc, xb)
        y_free = free_dimensions(len(shape_of(y)), yc, yb)
        split = 1 + len(xb) + len(x_free)
        # The ragged dimension is a free one of the remaining operand.
        if is_linear(x):
            left, kept, batch, free = y, yc, yb, y_free
            of_left, order = tuple(range(split, len(shape_of(ct)))), (*xb, *xc, *x_free)
        else:
            left, kept, batch, free = x, xc, xb, x_free
            of_left, order = tuple(range(1 + len(xb), split)), (*yb, *yc, *y_free)
        # Its dimensions in the order of the pairs, which determines the shape of `sizes`.
        left = transpose(left, (*batch, *kept, *free))
        first = len(batch) + len(kept)
        back = RaggedDotDimensionNumbers(
            (
                (tuple(range(first, first + len(free))), of_left),
                (tuple(range(len(batch))), tuple(range(1, 1 + len(batch)))),
            ),
            (len(batch) + xc.index(numbers.ragged),),
            (0,),
        )
        out = self.bind(left, ct, sizes, ragged_dot_dimension_numbers=back, **params)
        return placed(out, order)

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
        **params: Any,
    ) -> tuple[Any, Any]:
        (x, y, sizes), (d, e, f) = args, dims
        numbers = ragged_dot_dimension_numbers
        size = batch_size(args, dims)
        own_sizes = len(shape_of(sizes)) - (f is not None) > 1
        if f is not None and d is None:
            x, d = broadcast_batch(x, size), 0
        if f is not None and e is None and numbers.mode is not RaggedMode.FREE:
            y, e = broadcast_batch(y, size), 0
        alone = d is not None and e is None
        if d is not None and alone and numbers.mode is RaggedMode.FREE:
            # A free dimension before the ragged one has its own sizes; one after it does not.
            target = 0 if f is not None else len(shape_of(x)) - 1 if own_sizes else d
            x, d = move_dimension(x, d, target), target
        if f is not None or (own_sizes and not alone and d is not None):
            unbatched = without(shape_of(x), () if d is None else (d,))
            prefix = tuple([unbatched[i] for i in numbers.prefix])
            sizes = self._sizes_for_each(to_front(sizes, f, size), prefix)
            if alone:
                (_, _), (batch, _) = numbers.dot_dimension_numbers
                sizes = move_dimension(sizes, 0, len(batch))
        numbers = numbers.batched(d, e)
        out = self.bind(x, y, sizes, ragged_dot_dimension_numbers=numbers, **params)
        (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
        place = int(numbers.mode is RaggedMode.CONTRACTING)
        if alone:
            place += len(xb) + free_dimensions(len(shape_of(x)), xc, xb).index(d)
        elif d is None:
            assert e is not None
            x_free = free_dimensions(len(shape_of(x)), xc, xb)
            y_free = free_dimensions(len(shape_of(y)), (*yc, *numbers.rhs_group_dimensions), yb)
            place += len(xb) + len(x_free) + y_free.index(e)
        return out, place

    @staticmethod
    def _sizes_for_each(sizes: Any, prefix: tuple[int, ...]) -> Any:
        """Group sizes of shape ``(batch, groups)`` as ``(batch, *prefix, groups)``."""
        shape = shape_of(sizes)
        if len(shape) == len(prefix) + 2:
            return sizes
        full_shape = (shape[0], *prefix, shape[1])
        return broadcast_in_dim(sizes, full_shape, (0, len(full_shape) - 1))

    def lower(
        self,
        context: Builder,
        x: Any,
        y: Any,
        sizes: Any,
        *,
        ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
        precision: Any,
        preferred_element_type: Any,
        **params: Any,
    ) -> Any:
        numbers, (out,) = ragged_dot_dimension_numbers, context.avals_out
        x_aval, y_aval, sizes_aval = context.avals_in
        if numbers.mode is RaggedMode.BATCH:

            def product(x: Any, y: Any, _: Any) -> Any:
                return dot_general_p.bind(
                    x,
                    y,
                    dimension_numbers=numbers.dot_dimension_numbers,
                    precision=precision,
                    preferred_element_type=preferred_element_type,
                    out_sharding=None,
                )

            return context.lower_function(product, context.avals_in)(x, y, sizes)
        if not x_aval.shape[numbers.ragged] or not sizes_aval.size or not out.size:
            return context.constant(0, out)
        sum_dtype = out.dtype
        if numbers.mode is RaggedMode.CONTRACTING and dtypes.kind_of(sum_dtype) == "f":
            # Rounding the sum after each part of a group would lose precision.
            sum_dtype = np.dtype(np.float32) if sum_dtype.itemsize < 4 else sum_dtype
        loop = plan_loop(numbers, x_aval.shape, y_aval.shape, sizes_aval.shape)

        def dot(x: Any, y: Any) -> Any:
            return dot_general_p.bind(
                x,
                y,
                dimension_numbers=loop.dot,
                precision=precision,
                preferred_element_type=sum_dtype,
                out_sharding=None,
            )

        def prepare(x: Any, y: Any, sizes: Any) -> list[Any]:
            x, y = loop.arranged(x, y)
            return [x, y, *loop.table(sizes)]

        prepared = context.lowering.trace(prepare, context.avals_in)
        *operands, count = context.inline_jaxpr(prepared, [x, y, sizes])
        number = make_aval((), _INT32)
        shape = loop.out_shape(out.shape)
        result = make_aval(shape, sum_dtype)
        step = context.lowering.trace(
            lambda i, result, x, y, table: loop.step(i, result, x, y, table, dot),
            [number, result, *prepared.out_avals[:-1]],
        )
        one = context.constant(1, number)

        def advance(i: Any, result: Any) -> list[Any]:
            return [
                context.add(i, one, number),
                *context.inline_jaxpr(step, [i, result, *operands]),
            ]

        _, total = context.while_loop(
            [context.constant(0, number), context.constant(0, result)],
            [number, result],
            lambda i, _: context.compare(i, count, "LT", number),
            advance,
        )
        total = context.reshape(total, out.update(dtype=sum_dtype))
        return context.convert(total, out.update(dtype=sum_dtype), out)


ragged_dot_general_p: Final = RaggedDotGeneral()


# Public functions


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """A contraction with one dimension of `lhs` divided into groups of consecutive positions.

    The kind of the ragged dimension determines what belongs to each group:

    - a free dimension ``m``, of ``lhs[b, m, k]`` and ``rhs[g, b, k, n]``: a part of `rhs`. The
      result has the shape ``[b, m, n]``; positions in no group are zero.
    - a contracting dimension ``k``, of ``lhs[b, m, k]`` and ``rhs[b, k, n]``: a sum. The result has
      the shape ``[g, b, m, n]``.
    - a batch dimension, of ``lhs[b, m, k]`` and ``rhs[b, k, n]``: nothing. The result is that of
      `dot_general`.

    Args:
        lhs: an array.
        rhs: an array.
        group_sizes: integers, the number of positions in each group. Either of rank 1, or with
            leading dimensions for those of `lhs` that have their own sizes: its batch dimensions,
            and those before the ragged one of the same kind. Negative sizes count as zero, and
            groups end where `lhs` does.
        ragged_dot_dimension_numbers: which dimensions are contracted, ragged, and count groups.
        precision: as for `dot_general`.
        preferred_element_type: dtype of the sums and of the result.
        group_offset: None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array.

    Raises:
        TypeError: shapes, dimensions or dtypes are incompatible.
        ValueError: `precision` is not a known precision.
        NotImplementedError: `group_offset` is not None.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
        >>> x = np.arange(6.0).reshape(3, 2)
        >>> lax.ragged_dot_general(x, np.ones((3, 1)), np.array([1, 2]), numbers).tolist()
        [[[0.0], [1.0]], [[6.0], [8.0]]]
    """
    return divided(
        "lax.ragged_dot_general",
        out_sharding,
        lambda: _bind(
            "ragged_dot_general",
            lhs,
            rhs,
            group_sizes,
            ragged_dot_dimension_numbers,
            precision,
            preferred_element_type,
            group_offset,
        ),
    )


_MATRICES: Final = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """The product of consecutive groups of rows, each with its own matrix.

    Args:
        lhs: an array of shape ``(m, k)``.
        rhs: an array of shape ``(groups, k, n)``.
        group_sizes: integers of shape ``(groups,)``, the number of rows of `lhs` in each group.
            Their sum should be `m`: rows in no group give zeros, and groups end where `lhs` does.
            Negative sizes count as zero.
        precision: as for `dot_general`.
        preferred_element_type: dtype of the sums and of the result.
        group_offset: None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of shape ``(m, n)``.

    Raises:
        TypeError: shapes or dtypes are incompatible.
        ValueError: `precision` is not a known precision.
        NotImplementedError: `group_offset` is not None.

    Differs:
        It is a loop over tiles of rows, not a product with every group: what a group holds, nan
        included, never reaches another. Negative sizes count as zero.

        >>> groups = jnp.array([[[jnp.nan]], [[2.0]]])
        >>> print(lax.ragged_dot(jnp.ones((2, 1)), groups, jnp.array([1, 1])))
        [[nan]
         [ 2.]]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> weights = np.array([[[1.0]], [[10.0]]])
        >>> lax.ragged_dot(np.ones((3, 1)), weights, np.array([2, 1])).tolist()
        [[1.0], [1.0], [10.0]]
    """
    lhs = as_operand(lhs, "lax.ragged_dot", "lhs")
    rhs = as_operand(rhs, "lax.ragged_dot", "rhs")
    x, y = shape_of(lhs), shape_of(rhs)
    if len(x) != 2 or len(y) != 3 or x[1] != y[1]:
        raise TypeError(
            f"lax.ragged_dot: operands must have the shapes (m, k) and (groups, k, n), got {x} and "
            f"{y}; lax.ragged_dot_general takes others"
        )
    return divided(
        "lax.ragged_dot",
        out_sharding,
        lambda: _bind(
            "ragged_dot",
            lhs,
            rhs,
            group_sizes,
            _MATRICES,
            precision,
            preferred_element_type,
            group_offset,
        ),
    )


def _bind(
    function: str,
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    numbers: Any,
    precision: Any,
    preferred_element_type: Any,
    group_offset: Any,
) -> Any:
    if group_offset is not None:
        raise NotImplementedError(
            f"lax.{function} does not take group_offset: slice group_sizes and rhs to the groups "
            "that are wanted, and give the rows before them a group whose part of rhs is zero"
        )
    if not isinstance(numbers, RaggedDotDimensionNumbers):
        raise TypeError(
            f"lax.{function}: ragged_dot_dimension_numbers must be a "
            f"lax.RaggedDotDimensionNumbers, got {numbers!r}"
        )
    if preferred_element_type is not None:
        preferred_element_type = dtypes.check_user_dtype(preferred_element_type, f"lax.{function}")
    return ragged_dot_general_p.bind(
        as_operand(lhs, f"lax.{function}", "lhs"),
        as_operand(rhs, f"lax.{function}", "rhs"),
        as_operand(group_sizes, f"lax.{function}", "group_sizes"),
        group_offset=None,
        out_sharding=None,
        precision=dot_precision(precision),
        preferred_element_type=preferred_element_type,
        ragged_dot_dimension_numbers=numbers,
    )
