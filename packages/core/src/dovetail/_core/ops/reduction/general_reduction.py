"""Reductions with a user-defined function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, overload

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.errors import ShapeError
from dovetail._core.base.typing import Array, ArrayLike, PyTree, Sharding
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import convert_element_type, dtype_name, mul_p
from dovetail._core.basis.operands import as_operand, number_of
from dovetail._core.basis.structural import (
    batch_size,
    reduce_sum_p,
    reduced_aval,
    reduced_labels,
    to_front,
)
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, Literal
from dovetail._core.ir.walk import eval_jaxpr
from dovetail._core.ops.calls.out_sharding import divided
from dovetail._core.ops.elementwise.arithmetic import add_p
from dovetail._core.ops.elementwise.bitwise import and_p, or_p, xor_p
from dovetail._core.ops.elementwise.extrema import max_p, min_p
from dovetail._core.ops.reduction.reductions import (
    check_sum,
    highest,
    lowest,
    merge_dimensions,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
)
from dovetail._core.ops.shape.dimensions import canonical_dimensions, without
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.ops.shape.slicing import slice_dimension
from dovetail._core.trace.divisions import Labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.batch import batch_flat
from dovetail._core.transform.flattening import location_of, name_of
from dovetail._core.transform.interning import interned
from dovetail._core.transform.jvp import jvp_flat
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

T = TypeVar("T")
Axes = tuple[int, ...]


class Reduce(Primitive):
    """Reduces several arrays together with an associative function of scalars.

    Half of the operands are arrays; the others are the scalars that the reductions start with.
    """

    name = "reduce"
    multiple_results = True
    accepts_zeros = True

    def abstract(self, *avals: Any, jaxpr: ClosedJaxpr, dimensions: Axes) -> Any:
        count = len(avals) // 2
        arrays, starts = avals[:count], avals[count:]
        for x, start in zip(arrays, starts, strict=True):
            if x.shape != arrays[0].shape or start.ndim or start.dtype != x.dtype:
                raise ShapeError(
                    "reduce requires operands of one shape, and for each a scalar of its dtype to "
                    f"start with, got {', '.join(a.short_name() for a in avals)}"
                )
        return [
            reduced_aval("reduce", x, dimensions).update(weak_type=x.weak_type and s.weak_type)
            for x, s in zip(arrays, starts, strict=True)
        ]

    def labels(
        self, avals: Sequence[Any], results: Sequence[Any], *, jaxpr: ClosedJaxpr, dimensions: Axes
    ) -> Labels:
        arrays = len(avals) // 2
        own = reduced_labels(avals[:arrays], results, dimensions)
        return own._replace(operands=[*own.operands, *[()] * arrays])

    def reference(self, *args: Any, jaxpr: ClosedJaxpr, dimensions: Axes) -> Any:
        count = len(args) // 2
        arrays = [np.asarray(a) for a in args[:count]]
        others = tuple(i for i in range(arrays[0].ndim) if i not in dimensions)
        lines = [
            a.transpose(*others, *dimensions).reshape(*without(a.shape, dimensions), -1)
            for a in arrays
        ]
        results = [
            np.broadcast_to(start, line.shape[:-1]).astype(line.dtype)
            for start, line in zip(args[count:], lines, strict=True)
        ]
        for i in range(lines[0].shape[-1]):
            results = evaluated(jaxpr, [*results, *[line[..., i] for line in lines]])
        return results

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        if all(type(t) is Zero for t in tangents):
            outs = self.bind(*primals, **params)
            return outs, [Zero.of(o) for o in outs]
        # The result is the reduction itself: pairs are combined in another order.
        outs = self.bind(*primals, **params)
        return outs, jvp_flat(lambda *args: _in_pairs(args, **params), primals, tangents)[1]

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        jaxpr: ClosedJaxpr,
        dimensions: Axes,
    ) -> tuple[Any, Any]:
        count = len(args) // 2
        size = batch_size(args, dims)
        if any(d is not None for d in dims[count:]):
            return batch_flat(
                lambda *a: _in_pairs(a, jaxpr=jaxpr, dimensions=dimensions), args, dims, size
            )
        arrays = [to_front(x, d, size) for x, d in zip(args[:count], dims[:count], strict=True)]
        shifted = tuple([i + 1 for i in dimensions])
        return self.bind(*arrays, *args[count:], jaxpr=jaxpr, dimensions=shifted), [0] * count

    def lower(self, context: Builder, *values: Any, jaxpr: ClosedJaxpr, dimensions: Axes) -> Any:
        count = len(values) // 2
        monoid = monoid_of(jaxpr, context.avals_in[0].dtype) if count == 1 else None
        if monoid is not None:

            def from_neutral(x: Any, start: Any) -> list[Any]:
                return [combined_with(start, monoid.reduced(x, dimensions), monoid)]

            return context.lower_function(from_neutral, context.avals_in)(*values)
        return context.reduce(
            values[:count],
            values[count:],
            dimensions,
            context.avals_out,
            lambda *scalars: context.inline_jaxpr(jaxpr, scalars),
        )


reduce_p: Final = Reduce()


def evaluated(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of a jaxpr by the references of its primitives."""
    env = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(closed.jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return np.asarray(atom.val, atom.aval.dtype) if type(atom) is Literal else env[atom]

    for eqn in closed.jaxpr.eqns:
        out = eqn.primitive.reference(*map(read, eqn.invars), **eqn.params)
        outs = out if eqn.primitive.multiple_results else [out]
        env.update(zip(eqn.outvars, outs, strict=True))
    shape = np.shape(args[0])
    return [np.broadcast_to(read(v), shape) for v in closed.jaxpr.outvars]


def elementwise(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The scalar function of a jaxpr, applied to the elements of arrays of one shape."""
    shape = shape_of(args[0])
    if not shape:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)
    flat = [structural.reshape(x, (aval_of(x).size,)) for x in args]
    size = aval_of(args[0]).size
    outs, dims = batch_flat(
        lambda *scalars: eval_jaxpr(closed.jaxpr, closed.consts, *scalars),
        flat,
        [0] * len(flat),
        size,
    )
    return [
        structural.reshape(to_front(o, d, size), shape) for o, d in zip(outs, dims, strict=True)
    ]


def _in_pairs(args: Sequence[Any], *, jaxpr: ClosedJaxpr, dimensions: Axes) -> list[Any]:
    """The reduction by combining neighbours, in other primitives, which can be transformed."""
    count = len(args) // 2
    result_shape = without(shape_of(args[0]), dimensions)
    starts = [structural.broadcast_in_dim(start, result_shape, ()) for start in args[count:]]
    xs = [merge_dimensions(x, dimensions) for x in args[:count]]
    last = len(result_shape)
    if not shape_of(xs[0])[last]:
        return starts
    while (size := shape_of(xs[0])[last]) > 1:
        pairs = size // 2
        sides = [slice_dimension(x, side, 2 * pairs, last, 2) for side in (0, 1) for x in xs]
        combined = elementwise(jaxpr, sides)
        if size % 2:
            combined = [
                concatenate_p.bind(c, slice_dimension(x, size - 1, size, last), dimension=last)
                for c, x in zip(combined, xs, strict=True)
            ]
        xs = combined
    return elementwise(jaxpr, [*starts, *[structural.reshape(x, result_shape) for x in xs]])


class Monoid(NamedTuple):
    """An operation with a known reduction.

    Attributes:
        operation: the operation on two elements.
        reduction: the primitive that combines all elements with it.
        neutral: from a dtype to the neutral element.
        of_bools: whether the reduction takes booleans.
    """

    operation: Primitive
    reduction: Primitive
    neutral: Callable[[Any], Any]
    of_bools: bool = True

    def reduced(self, x: Any, axes: Axes) -> Any:
        """The elements of an array combined along some dimensions."""
        sharding: dict[str, Any] = {}
        if self.reduction is reduce_sum_p:
            check_sum(aval_of(x))
            sharding = {"out_sharding": None}
        return self.reduction.bind(x, axes=axes, **sharding)


_MONOIDS: Final = (
    Monoid(add_p, reduce_sum_p, lambda dtype: 0, of_bools=False),
    Monoid(mul_p, reduce_prod_p, lambda dtype: 1, of_bools=False),
    Monoid(max_p, reduce_max_p, lowest),
    Monoid(min_p, reduce_min_p, highest),
    Monoid(and_p, reduce_and_p, lambda dtype: np.invert(np.zeros((), dtype))[()]),
    Monoid(or_p, reduce_or_p, lambda dtype: 0),
    Monoid(xor_p, reduce_xor_p, lambda dtype: 0),
)


def monoid_of(closed: ClosedJaxpr, dtype: Any) -> Monoid | None:
    """The monoid that a function of two scalars of a dtype computes, if it is a known one.

    XLA may combine the initial value with elements several times; the rules start from the neutral
    element of a known monoid instead.
    """
    jaxpr = closed.jaxpr
    if len(jaxpr.eqns) != 1 or len(jaxpr.outvars) != 1:
        return None
    (eqn,) = jaxpr.eqns
    monoid = next((m for m in _MONOIDS if m.operation is eqn.primitive), None)
    same = set(map(id, eqn.invars)) == set(map(id, jaxpr.invars))
    if monoid is None or not same or jaxpr.outvars[0] is not eqn.outvars[0]:
        return None
    return monoid if monoid.of_bools or dtypes.kind_of(dtype) != "b" else None


def combined_with(start: Any, x: Any, monoid: Monoid) -> Any:
    """The initial value of a reduction, combined with its result from the neutral element."""
    return monoid.operation.bind(structural.broadcast_in_dim(start, shape_of(x), ()), x)


def known_monoid(closed: ClosedJaxpr, start: Any, dtype: Any) -> Monoid | None:
    """The monoid that a function of two scalars computes from a known, neutral initial value.

    Args:
        closed: the function.
        start: the initial value.
        dtype: the dtype of the elements.
    """
    monoid = monoid_of(closed, dtype)
    if monoid is None or isinstance(start, Tracer) or start.ndim:
        return None
    value = np.asarray(start.val if type(start) is Literal else start)
    neutral = monoid.neutral(dtype)
    if value == neutral:
        return monoid
    # An infinity bounds the integers and booleans as it does the floats.
    unbounded = np.isinf(value) if value.dtype.kind == "f" else False
    return monoid if unbounded and value == monoid.neutral(value.dtype) else None


@overload
def reduce(
    operands: ArrayLike,
    init_values: ArrayLike,
    computation: Callable[[Any, Any], ArrayLike],
    dimensions: Sequence[int],
    out_sharding: Sharding | None = None,
) -> Array: ...
@overload
def reduce(
    operands: T,
    init_values: PyTree,
    computation: Callable[[Any, Any], PyTree],
    dimensions: Sequence[int],
    out_sharding: Sharding | None = None,
) -> T: ...
def reduce(
    operands: PyTree,
    init_values: PyTree,
    computation: Callable[[Any, Any], PyTree],
    dimensions: Sequence[int],
    out_sharding: Sharding | None = None,
) -> PyTree:
    """Combine all elements along some dimensions with a user-defined function.

    Args:
        operands: an array, or a tree of arrays of one shape that are reduced together.
        init_values: a scalar, or a tree of scalars like `operands`. It has to be neutral for the
            function, as it may be combined with elements any number of times. Sums, products,
            ``max``, ``min`` and bitwise operations combine any other once.
        computation: a function from two scalars (or two trees of them, like `operands`) to one. It
            has to be associative: the grouping of elements is not specified.
        dimensions: the dimensions to reduce; negative ones count from the end.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        Arrays without these dimensions, as a tree like `operands`.

    Raises:
        TypeError: dtypes or shapes are incompatible, `computation` does not return scalars
            of the dtypes of its arguments, or it uses traced values from outside.
        ValueError: the trees have different structures, or a dimension is out of bounds or
            repeated.

    Differs:
        An initial value that is not neutral is combined once with the elements, however many there
        are. The derivative starts from it, as the result does.

        >>> print(lax.reduce(jnp.ones(1000), 1.0, lax.add, (0,)))
        1001.0
        >>> import operator
        >>> product = lambda init: lax.reduce(jnp.array([2.0, 3.0]), init, operator.mul, (0,))
        >>> print(dt.grad(product)(5.0))
        6.0

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.reduce(np.array([3, 1, 2]), 0, lax.max, (0,)).tolist()
        3
    """
    if out_sharding is not None:
        return divided(
            "lax.reduce",
            out_sharding,
            lambda: reduce(operands, init_values, computation, dimensions),
        )
    leaves, tree = pytree.flatten(operands)
    starts, start_tree = pytree.flatten(init_values)
    if start_tree != tree or not leaves:
        raise ValueError(
            f"lax.reduce: operands and init_values must be trees of one structure, got {tree} and "
            f"{start_tree}"
        )
    arrays = [as_operand(x, "lax.reduce", "operands") for x in leaves]
    starts = [as_operand(s, "lax.reduce", "init_values") for s in starts]
    axes = canonical_dimensions(dimensions, len(shape_of(arrays[0])), "reduce")
    avals = [make_aval((), aval_of(x).dtype) for x in arrays]
    closed = combination(computation, tree, avals, "reduce")
    monoid = known_monoid(closed, starts[0], avals[0].dtype) if len(arrays) == 1 else None
    if monoid is not None:
        out = monoid.reduced(arrays[0], axes)
        if aval_of(out).weak_type and not aval_of(starts[0]).weak_type:
            out = convert_element_type(out, aval_of(out).dtype)
        return pytree.unflatten(tree, [out])
    scalars = [starting_value(s, a.dtype, "reduce") for s, a in zip(starts, avals, strict=True)]
    outs = reduce_p.bind(*arrays, *scalars, dimensions=axes, jaxpr=closed)
    return pytree.unflatten(tree, outs)


def starting_value(scalar: Any, dtype: Any, function: str) -> Any:
    """The initial value of a reduction; a Python scalar takes the dtype of the array.

    Args:
        scalar: an operand.
        dtype: the dtype of the array.
        function: the name of the user's function, for messages.

    Raises:
        TypeError: it is not a scalar, or has another dtype.
        OverflowError: it is an integer that the dtype cannot hold.
    """
    if aval_of(scalar).ndim:
        raise ShapeError(
            f"lax.{function}: init_values must be scalars, got an array of shape {scalar.shape}"
        )
    if scalar.dtype == dtype:
        return scalar
    order = "biufc"
    weak = aval_of(scalar).weak_type
    if not weak or order.index(dtypes.kind_of(scalar.dtype)) > order.index(
        dtypes.kind_of(dtype) or "b"
    ):
        raise TypeError(
            f"lax.{function}: an init value of dtype {dtype_name(scalar.dtype)} was given for an "
            f"operand of dtype {dtype_name(dtype)}; convert one with lax.convert_element_type"
        )
    if type(scalar) is Literal:
        return number_of(scalar, dtype, f"lax.{function}", weak_type=True)
    return convert_element_type(scalar, dtype, True)


def combination(computation: Any, tree: Any, avals: Sequence[Any], function: str) -> ClosedJaxpr:
    """The jaxpr of the user's function of two trees of scalars.

    Args:
        computation: the user's function.
        tree: the structure of each of its arguments, and of its result.
        avals: of the scalars in one tree.
        function: the name of the public function that it is passed to, for messages.

    Raises:
        TypeError: its result is not a tree of scalars like its arguments, or it uses traced values
            from outside.
    """
    if not callable(computation):
        raise TypeError(
            f"lax.{function}: computation must be a function of two scalars, got "
            f"{computation!r:.80}"
        )
    name = name_of(computation)
    count = len(avals)

    def combined(*scalars: Any) -> list[Any]:
        first = pytree.unflatten(tree, scalars[:count])
        second = pytree.unflatten(tree, scalars[count:])
        outs, out_tree = pytree.flatten(computation(first, second))
        if out_tree != tree:
            raise TypeError(
                f"lax.{function}: the result of {name} must be a tree like operands, {tree}, got "
                f"{out_tree}"
            )
        values = [as_operand(o, f"lax.{function}", f"result of {name}") for o in outs]
        for value, aval in zip(values, avals, strict=True):
            if shape_of(value) or aval_of(value).dtype != aval.dtype:
                raise TypeError(
                    f"lax.{function}: {name} must return scalars of the dtypes it is given: "
                    f"{aval.short_name()}, got {aval_of(value).short_name()}"
                )
        return values

    closed = stage(combined, [*avals, *avals], DebugInfo(function, name, location_of(computation)))
    if any(isinstance(c, Tracer) for c in closed.consts):
        raise TypeError(
            f"lax.{function}: {name} uses a traced value from outside, which it cannot: make it "
            "one of the operands, broadcast to their shape"
        )
    return interned(closed)
