"""Updating slices at positions known at run time: `scatter` and its relatives.

Each is the counterpart of a gather: the slices that a gather would read are replaced by updates, or
combined with them. Slices may overlap. All updates of one element are combined; where updates
replace the element, the last one wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import DTypeError
from dovetail._core.basis.elementwise import (
    KIND_NAMES,
    Elementwise,
    add_tangents,
    convert_element_type,
    dtype_name,
    mul,
    mul_p,
    neg,
)
from dovetail._core.basis.operands import make_literal
from dovetail._core.basis.structural import (
    batch_size,
    broadcast_in_dim,
    full,
    instantiate_zeros,
    is_linear,
    move_dimension,
    reshape,
)
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from dovetail._core.ir.walk import eval_jaxpr
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.comparison import eq_p
from dovetail._core.ops.elementwise.extrema import max_p, min_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.indexing.divisions import scatter_labels
from dovetail._core.ops.indexing.gather import (
    GatherDimensionNumbers,
    GatherScatterMode,
    batch_positions,
    check_indices,
    check_numbers,
    dims_after_insertion,
    gather_slices,
    index_limits,
    kept_dims,
    position_of_batch,
    signed_indices,
    window_corner,
    with_batching,
)
from dovetail._core.ops.indexing.sorting import sort_p
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.ops.shape.reshaping import reverse
from dovetail._core.ops.shape.slicing import pad_with
from dovetail._core.trace.divisions import Labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.batch import batch_flat, place_batch
from dovetail._core.transform.jvp import jvp_flat

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Shape = tuple[int, ...]

_BOOL: Final = np.dtype(bool)
_UINT32: Final = np.dtype(np.uint32)


# A tuple: parameters are hashed for every equation, and tuples hash without running Python code.
class ScatterDimensionNumbers(NamedTuple):
    """The roles of dimensions in a scatter.

    Attributes:
        update_window_dims: dimensions of the updates that run over a slice, ascending.
        inserted_window_dims: dimensions of the operand that the updates lack, ascending; slices
            have size 1 there.
        scatter_dims_to_operand_dims: for each component of an index vector, the dimension of the
            operand that it indexes.
        operand_batching_dims: dimensions of the operand that are paired with dimensions of the
            indices, ascending.
        scatter_indices_batching_dims: the paired dimensions of the indices, in the same order.

    Reference: https://openxla.org/stablehlo/spec#scatter
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


def scatter_numbers(numbers: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """The scatter that updates what a gather reads."""
    return ScatterDimensionNumbers(*numbers)


def window_sizes(
    operand_rank: int,
    updates: Shape,
    numbers: ScatterDimensionNumbers,
    present: Shape | None = None,
) -> Shape:
    """The size of an updated slice in each dimension of the operand.

    If the operand, of shape `present`, is empty, so is the slice.
    """
    kept = kept_dims(operand_rank, numbers.inserted_window_dims, numbers.operand_batching_dims)
    sizes = [1] * operand_rank
    for dim, of in zip(kept, numbers.update_window_dims, strict=True):
        sizes[dim] = updates[of]
    if present is not None:
        sizes = [min(n, most) for n, most in zip(sizes, present, strict=True)]
    return tuple(sizes)


class ScatterFamily(Primitive):
    """The base of the primitives that update slices.

    A member defines `combine`, a NumPy function of an existing element and an update; `operation`,
    the primitive that does the same (None if updates replace elements); and `hlo`, its StableHLO
    name.
    """

    accepts_zeros = True
    combine: ClassVar[Any]
    operation: ClassVar[Primitive | None] = None
    #: The supported dtype kinds, as in `Elementwise`; all dtypes if None.
    kinds: ClassVar[str | None] = "biufc"
    hlo: ClassVar[str]

    def abstract(
        self,
        operand: Any,
        indices: Any,
        updates: Any,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        indices_are_sorted: bool,
        mode: GatherScatterMode,
        unique_indices: bool,
        update_consts: tuple[Any, ...],
        update_jaxpr: Jaxpr | None,
    ) -> Any:
        numbers = dimension_numbers
        if operand.dtype != updates.dtype:
            raise TypeError(
                f"{self.name}: operand and updates must have equal dtypes, got "
                f"{dtype_name(operand.dtype)} and {dtype_name(updates.dtype)}"
            )
        if self.kinds is not None and (dtypes.kind_of(operand.dtype) or "?") not in self.kinds:
            raise DTypeError(
                f"{self.name} does not accept dtype {dtype_name(operand.dtype)}; it takes "
                f"{', '.join(KIND_NAMES[k] for k in self.kinds)}"
            )
        check_indices(self.name, indices)
        check_numbers(
            self.name,
            operand,
            indices,
            numbers.update_window_dims,
            numbers.inserted_window_dims,
            numbers.scatter_dims_to_operand_dims,
            numbers.operand_batching_dims,
            numbers.scatter_indices_batching_dims,
            updates.ndim,
        )
        positions = batch_positions(updates.ndim, numbers.update_window_dims)
        if tuple(updates.shape[p] for p in positions) != indices.shape[:-1]:
            raise TypeError(
                f"{self.name}: the dimensions {positions} of updates, of shape {updates.shape}, "
                f"must be those of the indices, of shape {indices.shape}, but for the last"
            )
        sizes = window_sizes(operand.ndim, updates.shape, numbers)
        kept = kept_dims(operand.ndim, numbers.inserted_window_dims, numbers.operand_batching_dims)
        if any(sizes[d] > operand.shape[d] for d in kept):
            raise TypeError(
                f"{self.name}: updates of shape {updates.shape} are slices of sizes {sizes}, which "
                f"exceed the operand of shape {operand.shape}"
            )
        return operand

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        operand, indices, updates = avals
        numbers = params["dimension_numbers"]
        sizes = window_sizes(operand.ndim, updates.shape, numbers)
        return scatter_labels(operand, indices, updates, numbers, sizes)

    def reference(self, operand: Any, indices: Any, updates: Any, **params: Any) -> Any:
        out = np.array(operand)
        indices, updates = np.asarray(indices), np.asarray(updates)
        numbers = params["dimension_numbers"]
        sizes = window_sizes(out.ndim, updates.shape, numbers)
        positions = batch_positions(updates.ndim, numbers.update_window_dims)
        for batch in np.ndindex(indices.shape[:-1]):
            corner, inside = window_corner(
                indices[batch],
                numbers.scatter_dims_to_operand_dims,
                out.shape,
                sizes,
                params["mode"] is GatherScatterMode.CLIP,
            )
            if not inside:
                continue
            for dim, of in zip(
                numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True
            ):
                corner[dim] = batch[of]
            place: list[Any] = [slice(None)] * updates.ndim
            for position, number in zip(positions, batch, strict=True):
                place[position] = number
            window = tuple(slice(c, c + n) for c, n in zip(corner, sizes, strict=True))
            update = updates[tuple(place)].reshape(sizes)
            out[window] = self.combined(out[window], update, params)
        return out

    def combined(self, present: Any, update: Any, params: Any) -> Any:
        """In NumPy: existing elements after an update."""
        return type(self).combine(present, update)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        operand, indices, updates = args
        at, indices_at, updates_at = dims
        size = batch_size(args, dims)
        operand = place_batch(operand, at, size, 0) if at is None else operand
        at = at or 0
        n = params["dimension_numbers"]
        rank = len(shape_of(updates)) - (updates_at is not None)
        if indices_at is None:
            # The batch becomes one more dimension of every slice.
            kept = kept_dims(
                len(shape_of(operand)) - 1, n.inserted_window_dims, n.operand_batching_dims
            )
            before = sum(d < at for d in kept)
            window = n.update_window_dims
            position = position_of_batch(window, before, rank, updates_at or 0)
            window = (*window[:before], position, *[d + 1 for d in window[before:]])
            pairs = (
                dims_after_insertion(n.operand_batching_dims, at),
                n.scatter_indices_batching_dims,
            )
        else:
            if indices_at == len(shape_of(indices)) - 1:
                # The dimension of index vectors has to stay last.
                indices, indices_at = move_dimension(indices, indices_at, 0), 0
            positions = batch_positions(rank, n.update_window_dims)
            position = position_of_batch(positions, indices_at, rank, updates_at or 0)
            window = dims_after_insertion(n.update_window_dims, position)
            pairs = with_batching(
                n.operand_batching_dims, n.scatter_indices_batching_dims, at, indices_at
            )
            params["indices_are_sorted"] = False
        params["dimension_numbers"] = ScatterDimensionNumbers(
            window,
            dims_after_insertion(n.inserted_window_dims, at),
            dims_after_insertion(n.scatter_dims_to_operand_dims, at),
            *pairs,
        )
        updates = place_batch(updates, updates_at, size, position)
        return self.bind(operand, indices, updates, **params), at

    def lower(
        self, context: Builder, operand: Any, indices: Any, updates: Any, **params: Any
    ) -> Any:
        numbers = params["dimension_numbers"]
        operand_aval, aval, updates_aval = context.avals_in
        (out,) = context.avals_out
        targets = numbers.scatter_dims_to_operand_dims
        sizes = [operand_aval.shape[d] for d in targets]
        if not out.size or not updates_aval.size:
            return operand
        indices, aval = signed_indices(context, indices, aval, sizes)
        if params["mode"] is GatherScatterMode.CLIP and targets:
            windows = window_sizes(operand_aval.ndim, updates_aval.shape, numbers)
            high = index_limits(context, aval, sizes, [windows[d] for d in targets])
            indices = context.clamp(context.constant(0, aval), indices, high, aval)
        extra = context.physical_dimensions(out)
        rank = updates_aval.ndim
        attribute = context.scatter_dimension_numbers(
            update_window_dims=(*numbers.update_window_dims, *range(rank, rank + len(extra))),
            inserted_window_dims=numbers.inserted_window_dims,
            scattered_dims_to_operand_dims=targets,
            index_vector_dim=aval.ndim - 1,
            input_batching_dims=numbers.operand_batching_dims,
            scatter_indices_batching_dims=numbers.scatter_indices_batching_dims,
        )
        scalar = make_aval((), context.physical(out).dtype)
        (result,) = context.scatter(
            [context.kept_apart(operand, context.physical(out))],
            indices,
            [updates],
            [context.physical(out)],
            lambda present, update: self.emit(context, present, update, scalar, params),
            dimension_numbers=attribute,
            indices_are_sorted=params["indices_are_sorted"],
            unique_indices=params["unique_indices"],
        )
        return result

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        shape, updates = shape_of(args[0]), shape_of(args[2])
        numbers = params["dimension_numbers"]
        axes = numbers.scatter_dims_to_operand_dims
        sizes = window_sizes(len(shape), updates, numbers)
        checks.check_indices(shape, args[1], axes, [sizes[axis] for axis in axes])
        return self.bind(*args, **params)

    def emit(self, context: Builder, present: Any, update: Any, scalar: Any, params: Any) -> Any:
        """StableHLO for an element after an update, both scalars of the aval `scalar`."""
        return context.op(self.hlo, [present, update], scalar)


# Pieces of the rules


def gather_numbers(numbers: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """The gather that reads the slices a scatter updates."""
    return GatherDimensionNumbers(*numbers)


def read_back(x: Any, indices: Any, updates: Shape, params: Any) -> Any:
    """The values of `x`, shaped like the operand, where updates go; zero for dropped updates."""
    mode = params["mode"]
    shape = shape_of(x)
    numbers = params["dimension_numbers"]
    sizes = window_sizes(len(shape), updates, numbers, shape)
    if sizes != window_sizes(len(shape), updates, numbers):
        # No slice fits into an empty dimension: all updates are dropped.
        return full(updates, 0, aval_of(x).dtype)
    return gather_slices(
        x,
        indices,
        gather_numbers(numbers),
        sizes,
        mode=mode,
        fill_value=0 if mode is GatherScatterMode.FILL_OR_DROP else None,
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
    )


def add_at(x: Any, indices: Any, updates: Any, params: Any) -> Any:
    """`x` with updates added where another scatter with these parameters would put them."""
    return scatter_add_updates(
        x,
        indices,
        updates,
        params["dimension_numbers"],
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
        mode=params["mode"],
    )


def scatter_add_updates(
    operand: Any,
    indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
) -> Any:
    """`scatter_add` on canonical arguments, for rules."""
    return bind_scatter(
        scatter_add_p,
        operand,
        indices,
        updates,
        dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )


def bind_scatter(
    which: ScatterFamily,
    operand: Any,
    indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode,
) -> Any:
    """A member of the family on canonical arguments."""
    return which.bind(
        operand,
        indices,
        updates,
        dimension_numbers=dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        mode=mode,
        unique_indices=unique_indices,
        update_consts=(),
        update_jaxpr=_combining_jaxpr(which.operation, aval_of(operand).dtype),
    )


@lru_cache(maxsize=256)
def _combining_jaxpr(operation: Primitive | None, dtype: Any) -> Jaxpr | None:
    """The jaxpr of the scalar function that combines elements, for printing."""
    if operation is None:
        return None
    aval = make_aval((), dtype)
    present, update, out = Var(aval), Var(aval), Var(aval)
    equation = JaxprEqn([present, update], (out,), operation, {})
    return Jaxpr([], [present, update], [out], [equation])


def _select(predicate: Any, on_true: Any, on_false: Any) -> Any:
    return select_n_p.bind(predicate, on_false, on_true)


def _equal(x: Any, y: Any) -> Any:
    return eq_p.bind(x, y)


def _like(x: Any, value: Any) -> Any:
    return full(shape_of(x), value, aval_of(x).dtype)


def _quotient(x: Any, y: Any) -> Any:
    return div_p.bind(x, y)


def _numbered(shape: Shape) -> Any:
    """The numbers from 1 on, in the requested shape."""
    count = add_p.bind(iota_like(_UINT32, (prod(shape),), 0), make_literal(1, _UINT32))
    return reshape(count, shape)


def _ordinals(indices: Any, updates: Shape, numbers: ScatterDimensionNumbers) -> Any:
    """For each element of the updates, the number of its index vector, from 1."""
    positions = batch_positions(len(updates), numbers.update_window_dims)
    return broadcast_in_dim(_numbered(shape_of(indices)[:-1]), updates, positions)


class Winners:
    """Which update wins where several compete for an element: the last.

    Attributes:
        untouched: for each element of the operand, whether it has no update.
        taken: for each element of the updates, whether it wins. (One that is out of bounds may be
            marked too: it is dropped in any case.)
    """

    def __init__(self, operand: Shape, indices: Any, updates: Shape, params: Any) -> None:
        ordinals = _ordinals(indices, updates, params["dimension_numbers"])
        zeros = full(operand, 0, _UINT32)
        winners = bind_scatter(
            scatter_max_p,
            zeros,
            indices,
            ordinals,
            params["dimension_numbers"],
            indices_are_sorted=params["indices_are_sorted"],
            mode=params["mode"],
        )
        self.untouched = _equal(winners, make_literal(0, _UINT32))
        self.taken = _equal(read_back(winners, indices, updates, params), ordinals)

    def keep_operand(self, x: Any, other: float = 0.0) -> Any:
        """`x`, shaped like the operand, with `other` where an element has an update."""
        return _select(self.untouched, x, _like(x, other))

    def keep_updates(self, x: Any, other: float = 0.0) -> Any:
        """`x`, shaped like the updates, with `other` where an update loses."""
        return _select(self.taken, x, _like(x, other))


class Scatter(ScatterFamily):
    """Updates replace elements; with `update_jaxpr`, a function of both does."""

    name = "scatter"
    linear_in: ClassVar[Sequence[slice]] = (slice(0, 3, 2),)
    kinds = None
    generates_nan = False

    def combined(self, present: Any, update: Any, params: Any) -> Any:
        jaxpr = params["update_jaxpr"]
        if jaxpr is None:
            return update
        out = np.empty_like(present)
        for place in np.ndindex(present.shape):
            values: dict[Any, Any] = dict(
                zip(jaxpr.invars, (present[place], update[place]), strict=True)
            )
            for eqn in jaxpr.eqns:
                inputs = [a.val if type(a) is Literal else values[a] for a in eqn.invars]
                result = eqn.primitive.reference(*inputs, **eqn.params)
                results = result if eqn.primitive.multiple_results else [result]
                values.update(zip(eqn.outvars, results, strict=True))
            (last,) = jaxpr.outvars
            out[place] = last.val if type(last) is Literal else values[last]
        return out

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        operand, indices, updates = primals
        t, _, s = tangents
        if type(t) is Zero and type(s) is Zero:
            out = self.bind(*primals, **params)
            return out, Zero.of(out)
        if params["update_jaxpr"] is not None:
            return self._jvp_of_function(primals, t, params)
        if params["unique_indices"]:
            out = self.bind(*primals, **params)
            return out, self.bind(instantiate_zeros(t), indices, instantiate_zeros(s), **params)
        # Which of several updates of an element is last is up to the backend. Primal and tangent
        # are therefore sums in which all other terms are zero; the neutral element of sums is -0.0.
        winners = Winners(shape_of(operand), indices, shape_of(updates), params)
        out = add_at(
            winners.keep_operand(operand, -0.0),
            indices,
            winners.keep_updates(updates, -0.0),
            params,
        )
        tangent: Any = t if type(t) is Zero else winners.keep_operand(t)
        if type(s) is not Zero:
            start = instantiate_zeros(t) if type(t) is Zero else tangent
            tangent = add_at(start, indices, winners.keep_updates(s), params)
        return out, tangent

    def _jvp_of_function(self, primals: Sequence[Any], t: Any, params: Any) -> tuple[Any, Any]:
        operand, indices, updates = primals
        out = self.bind(*primals, **params)
        if type(t) is Zero:
            return out, Zero.of(out)
        if not params["unique_indices"]:
            raise NotImplementedError(
                "scatter_apply can be differentiated only where no element is updated twice: pass "
                "unique_indices=True if that is so, or write x.at[i].set(f(x[i]))"
            )
        closed = ClosedJaxpr(params["update_jaxpr"], params["update_consts"])
        shape = shape_of(updates)
        size = prod(shape)
        before, slope_in = (
            reshape(read_back(x, indices, shape, params), (size,)) for x in (operand, t)
        )

        def elementwise(x: Any) -> list[Any]:
            flat = reshape(updates, (size,))
            (value,), (dim,) = batch_flat(
                lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args),
                [x, flat],
                [0, 0],
                size,
            )
            return [place_batch(value, dim, size, 0)]

        _, (slope,) = jvp_flat(elementwise, [before], [slope_in])
        params["update_jaxpr"] = None
        return out, self.bind(t, indices, reshape(instantiate_zeros(slope), shape), **params)

    def transpose(
        self, ct: Any, operand: Any, indices: Any, updates: Any, **params: Any
    ) -> Sequence[Any]:
        shape = shape_of(updates)
        dtype = aval_of(operand).dtype
        if params["update_jaxpr"] is not None:
            raise NotImplementedError("a scatter with a function cannot be transposed")
        unique = params["unique_indices"]
        winners = None if unique else Winners(shape_of(operand), indices, shape, params)
        operand_ct = updates_ct = None
        if is_linear(operand):
            if winners is None:
                operand_ct = self.bind(ct, indices, full(shape, 0, dtype), **params)
            else:
                operand_ct = winners.keep_operand(ct)
        if is_linear(updates):
            updates_ct = read_back(ct, indices, shape, params)
            if winners is not None:
                updates_ct = winners.keep_updates(updates_ct)
        return (operand_ct, None, updates_ct)

    def emit(self, context: Builder, present: Any, update: Any, scalar: Any, params: Any) -> Any:
        jaxpr = params["update_jaxpr"]
        if jaxpr is None:
            return update
        closed = ClosedJaxpr(jaxpr, params["update_consts"])
        return context.inline_jaxpr(closed, [present, update])


scatter_p: Final = Scatter()


class LinearScatter(ScatterFamily):
    """A member that is linear in operand and updates together."""

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        out = self.bind(*primals, **params)
        t, _, s = tangents
        if type(s) is Zero:
            return out, t if type(t) is not Zero else Zero.of(out)
        return out, self.bind(instantiate_zeros(t), primals[1], s, **params)

    def updates_cotangent(self, ct: Any) -> Any:
        """The cotangent of an update, from that of the element it goes to."""
        return ct

    def transpose(
        self, ct: Any, operand: Any, indices: Any, updates: Any, **params: Any
    ) -> Sequence[Any]:
        updates_ct = None
        if is_linear(updates):
            updates_ct = self.updates_cotangent(read_back(ct, indices, shape_of(updates), params))
        return (ct if is_linear(operand) else None, None, updates_ct)


class ScatterAdd(LinearScatter):
    """Updates are added to elements."""

    name, hlo, combine, operation = "scatter-add", "add", np.add, add_p
    linear_in: ClassVar[Sequence[slice]] = (slice(0, 3, 2),)

    def emit(self, context: Builder, present: Any, update: Any, scalar: Any, params: Any) -> Any:
        return context.op("or" if scalar.dtype == _BOOL else "add", [present, update], scalar)


scatter_add_p: Final = ScatterAdd()


class ScatterSub(LinearScatter):
    """Updates are subtracted from elements."""

    name, hlo, combine, operation = "scatter-sub", "subtract", np.subtract, sub_p
    linear_in: ClassVar[Sequence[slice]] = (slice(0, 3, 2),)
    kinds = "iufc"

    def updates_cotangent(self, ct: Any) -> Any:
        return neg(ct)


scatter_sub_p: Final = ScatterSub()


def other_factors(operand: Any, indices: Any, updates: Any, params: Any) -> Any:
    """For each update, the product of all other factors of its element.

    As a product instead of a quotient it is right where updates are zero, and so are its
    derivatives.
    """
    shape = shape_of(updates)
    size = prod(shape)
    present = read_back(operand, indices, shape, params)
    if params["unique_indices"] or not size:
        return present
    whole = shape_of(operand)
    # For each update, the number of its element, from 1; 0 for dropped updates.
    places = read_back(_numbered(whole), indices, shape, params)
    factors = _select(_equal(places, make_literal(0, _UINT32)), _like(updates, 1), updates)
    # Bring the updates of each element together.
    place, factor, present, order = sort_p.bind(
        *(reshape(x, (size,)) for x in (places, factors, present)),
        iota_like(_UINT32, (size,), 0),
        dimension=0,
        is_stable=True,
        num_keys=1,
    )
    before = _running_product(place, factor, size)
    after = reverse(_running_product(reverse(place, (0,)), reverse(factor, (0,)), size), (0,))
    others = mul(mul(present, before), after)
    _, others = sort_p.bind(order, others, dimension=0, is_stable=True, num_keys=1)
    return reshape(others, shape)


def _running_product(place: Any, factor: Any, size: int) -> Any:
    """For each factor, the product of those before it with the same place; these are adjacent."""
    one = make_literal(1, aval_of(factor).dtype)
    nowhere = make_literal(np.iinfo(_UINT32).max, _UINT32)

    def earlier(x: Any, distance: int) -> Any:
        """Of each factor with the same place, `x` of the one so far before it; else 1."""
        same = eq_p.bind(pad_with(place, nowhere, ((distance, -distance, 0),)), place)
        moved = pad_with(x, one, ((distance, -distance, 0),))
        return select_n_p.bind(same, _like(x, 1), moved)

    product = earlier(factor, 1)
    distance = 1
    while distance < size:
        product = mul(product, earlier(product, distance))
        distance *= 2
    return product


class ScatterMul(ScatterFamily):
    """Elements are multiplied by updates."""

    name, hlo, combine, operation = "scatter-mul", "multiply", np.multiply, mul_p
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        operand, indices, updates = primals
        t, _, s = tangents
        out = self.bind(*primals, **params)
        tangent: Any = Zero.of(out)
        if type(t) is not Zero:
            tangent = self.bind(t, indices, updates, **params)
        if type(s) is not Zero:
            others = other_factors(operand, indices, updates, params)
            zeros = full(shape_of(operand), 0, aval_of(operand).dtype)
            tangent = add_tangents(tangent, add_at(zeros, indices, mul(s, others), params))
        return out, tangent

    def transpose(
        self, ct: Any, operand: Any, indices: Any, updates: Any, **params: Any
    ) -> Sequence[Any]:
        if is_linear(updates):
            raise NotImplementedError(
                "scatter-mul is not linear in its updates: elements that take none stay as they are"
            )
        return (self.bind(ct, indices, updates, **params), None, None)

    def emit(self, context: Builder, present: Any, update: Any, scalar: Any, params: Any) -> Any:
        return context.op("and" if scalar.dtype == _BOOL else "multiply", [present, update], scalar)


scatter_mul_p: Final = ScatterMul()


class ScatterExtremum(ScatterFamily):
    """Elements become the smaller or larger of themselves and their updates.

    If several are equal, they share the derivative evenly.
    """

    operation: ClassVar[Elementwise]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        operand, indices, updates = primals
        t, _, s = tangents
        out = self.bind(*primals, **params)
        if type(t) is Zero and type(s) is Zero:
            return out, Zero.of(out)
        shape = shape_of(updates)
        dtype = aval_of(operand).dtype
        stays = convert_element_type(_equal(operand, out), dtype)
        taken = convert_element_type(_equal(updates, read_back(out, indices, shape, params)), dtype)
        count = add_at(stays, indices, taken, params)
        # NaN is not equal to itself: nothing is selected then.
        one = _like(count, 1)
        share = _quotient(one, _select(_equal(count, _like(count, 0)), one, count))
        tangent: Any = Zero.of(out)
        if type(t) is not Zero:
            tangent = mul(t, mul(stays, share))
        if type(s) is not Zero:
            start = full(shape_of(operand), 0, dtype) if type(tangent) is Zero else tangent
            shares = mul(taken, read_back(share, indices, shape, params))
            tangent = add_at(start, indices, mul(s, shares), params)
        return out, tangent

    def emit(self, context: Builder, present: Any, update: Any, scalar: Any, params: Any) -> Any:
        return self.operation.emit(context, present, update, out=scalar)


class ScatterMin(ScatterExtremum):
    """Elements become the smaller of themselves and their updates; NaN where either is."""

    name, combine, operation = "scatter-min", np.minimum, min_p


scatter_min_p: Final = ScatterMin()


class ScatterMax(ScatterExtremum):
    """Elements become the larger of themselves and their updates; NaN where either is."""

    name, combine, operation = "scatter-max", np.maximum, max_p


scatter_max_p: Final = ScatterMax()
