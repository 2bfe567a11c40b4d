"""Convolutions that are slow in XLA's CPU compiler, by a kernel or as sums of products.

The kernel takes those of many real numbers that are not divided among devices. What follows is
about others, and for where none was built.
XLA is fast for many input and output features. Grouped convolutions, few features, integers and
three spatial dimensions go through scalar loops, which can take a hundred times as long as adding
up products of shifted arrays. That is done here in one of four ways:

- for each place of the kernel and each input feature of a group, a product of elements;
- for each place of the kernel, a product of matrices, over the input features of a group;
- for each place of the result, where these are few (as in the gradient of a kernel), a product
  over everything else;
- for each group, a convolution.

Products of elements are written out for a small kernel, so that one pass over memory adds up all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray
from dovetail.extend.dtypes import dtype_name
from dovetail_cpu.lowerings import convolution_kernel
from dovetail_cpu.lowerings.convolution_kernel import Groups, Windows

TABLE: Final = LoweringTable()

FLOAT32: Final = np.dtype(np.float32)
INT32: Final = np.dtype(np.int32)

#: With fewer products of numbers than this there is nothing to gain, and more to compile; the
#: second is for one group of several features.
SOME_PRODUCTS: Final = 4096
MANY_PRODUCTS: Final = 65536
#: Up to this many products of elements are unrolled; more are computed in a loop.
UNROLLED: Final = 32
#: With more products than this per iteration, the program takes long to compile.
LONGEST_BLOCK: Final = 128
#: Up to this many pairs of an input and an output feature of a group, elements are multiplied.
FEW_PAIRS: Final = 64
#: Up to this many positions of the result are unrolled.
FEW_RESULTS: Final = 128

#: Names of dimensions: n (batch), g (group), i and o (input and output features of a group), and
#: numbers for spatial dimensions.
Name = str | int
Names = tuple[Name, ...]
#: From a part of the input, a part of the kernel and a position in it, to their products.
Products = Callable[["Named", "Named", tuple[int, ...]], Any]


class Named(NamedTuple):
    """A value with named dimensions."""

    value: Any
    aval: Any
    names: Names

    def size(self, name: Name) -> int:
        """The size of a dimension."""
        size: int = self.aval.shape[self.names.index(name)]
        return size

    def without(self, *names: Name) -> Names:
        """The names of the other dimensions."""
        return tuple([name for name in self.names if name not in names])


class Convolution(NamedTuple):
    """One convolution: its sizes, and the ways to compute it.

    Args:
        context: the builder.
        dtype: the dtype of the sums.
        sizes: of the dimensions of the result, by name; and of ``i``.
        kernel: spatial sizes of the kernel.
        strides: the strides.
        dilation: of the kernel.
    """

    context: Any
    dtype: Any
    sizes: Mapping[Name, int]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """The names of the spatial dimensions."""
        return tuple(range(len(self.kernel)))

    def whole(self, names: Names) -> Any:
        """The aval of a result with these dimensions, in order."""
        return ShapedArray(tuple([self.sizes[name] for name in names]), self.dtype)

    # Operands and the result

    def grouped(self, value: Any, aval: Any, names: Sequence[Name], group: Name) -> Named:
        """An operand in the dtype of the sums, with groups split off the dimension of that name."""
        c, at, shape = self.context, names.index(group), aval.shape
        value = c.convert(value, aval, ShapedArray(shape, self.dtype))
        groups = self.sizes["g"]
        split = ShapedArray(
            (*shape[:at], groups, shape[at] // groups, *shape[at + 1 :]), self.dtype
        )
        return Named(c.reshape(value, split), split, (*names[:at], "g", *names[at:]))

    def padded(
        self, x: Named, padding: Sequence[tuple[int, int]], dilation: Sequence[int]
    ) -> Named:
        """`x` with zeros between, before and after its elements."""
        if not any(low or high for low, high in padding) and set(dilation) <= {1}:
            return x
        added: dict[Name, tuple[int, int, int]] = {
            s: (*padding[s], dilation[s] - 1) for s in self.places
        }
        low, high, interior = zip(*[added.get(name, (0, 0, 0)) for name in x.names], strict=True)
        shape = [
            size + a + b + (size - 1) * between
            for size, a, b, between in zip(x.aval.shape, low, high, interior, strict=True)
        ]
        aval = ShapedArray(tuple(shape), self.dtype)
        zero = self.context.constant(0, ShapedArray((), self.dtype))
        return Named(self.context.pad(x.value, zero, aval, low, high, interior), aval, x.names)

    def result(self, value: Any, names: Names, spec: Sequence[int], out: Any) -> Any:
        """The result of the equation from one with dimensions in the order of `names`."""
        c = self.context
        order = _by_position(spec, ("n", "o", *self.places))
        order.insert(order.index("o"), "g")
        y = self.ordered(Named(value, self.whole(names), names), tuple(order))
        flat = ShapedArray(out.shape, self.dtype)
        return c.convert(c.reshape(y.value, flat), flat, out)

    # Parts

    def ordered(self, x: Named, names: Names) -> Named:
        """`x` with its dimensions in this order."""
        if x.names == names:
            return x
        permutation = [x.names.index(name) for name in names]
        aval = ShapedArray(tuple([x.aval.shape[d] for d in permutation]), self.dtype)
        return Named(self.context.transpose(x.value, aval, permutation), aval, names)

    def dropped(self, x: Named, *names: Name) -> Named:
        """`x` without dimensions of size one."""
        remaining = x.without(*names)
        aval = ShapedArray(tuple([x.size(name) for name in remaining]), self.dtype)
        return Named(self.context.reshape(x.value, aval), aval, remaining)

    def part(self, x: Named, ranges: Mapping[Any, tuple[int, int, int]]) -> Named:
        """A slice of `x`: start, limit and step of some dimensions."""
        starts, limits, steps = zip(
            *[ranges.get(name, (0, x.size(name), 1)) for name in x.names], strict=True
        )
        shape = [-(-(b - a) // by) for a, b, by in zip(starts, limits, steps, strict=True)]
        aval = ShapedArray(tuple(shape), self.dtype)
        if aval.shape == x.aval.shape:
            return x
        return Named(self.context.slice(x.value, aval, starts, limits, steps), aval, x.names)

    def moving_part(self, x: Named, sizes: Mapping[Any, int], starts: Mapping[Any, Any]) -> Named:
        """A slice of `x` at positions known at run time."""
        c = self.context
        zero = c.constant(0, ShapedArray((), INT32))
        shape = tuple([sizes.get(name, x.size(name)) for name in x.names])
        aval = ShapedArray(shape, self.dtype)
        at = [starts.get(name, zero) for name in x.names]
        return Named(c.dynamic_slice(x.value, aval, at), aval, x.names)

    def seen(self, place: tuple[int, ...]) -> dict[Name, tuple[int, int, int]]:
        """The part of the padded input that a position of the kernel is multiplied with."""
        return {
            s: _spread(place[s] * self.dilation[s], self.sizes[s], self.strides[s])
            for s in self.places
        }

    def reach(self, along: int, taps: int = 1) -> int:
        """The number of positions of the padded input that `taps` positions of the kernel need."""
        last = (self.sizes[along] - 1) * self.strides[along]
        return last + (taps - 1) * self.dilation[along] + 1

    # Products of elements

    def by_elements(self, x: Named, w: Named) -> tuple[Any, Names]:
        """A product of elements for each position of the kernel and each input feature."""
        # In a loop, long dimensions have to be contiguous; outside of loops XLA chooses the layout.
        features: Names = ("g", "o")
        channels_last = self.sizes["g"] * self.sizes["o"] >= self.sizes[self.places[-1]]
        order: Names = ("n", *self.places, *features)
        if not channels_last:
            order = ("n", *features, *self.places)
        x = self.ordered(x, ("i", *[name for name in order if name != "o"]))
        w = self.ordered(w, (*self.places, "i", *features))
        whole = self.whole(order)

        def products(x: Named, w: Named, place: tuple[int, ...]) -> Any:
            seen, at = self.seen(place), {s: (k, k + 1, 1) for s, k in enumerate(place)}
            total = None
            for i in range(self.sizes["i"]):
                feature = {"i": (i, i + 1, 1)}
                near = self.dropped(self.part(x, {**seen, **feature}), "i")
                tap = self.dropped(self.part(w, {**at, **feature}), *self.places, "i")
                factors = [self.repeated(v, whole, order) for v in (near, tap)]
                total = self.plus(total, self.context.mul(*factors, whole), whole)
            return total

        return self.summed(x, w, whole, products), order

    def repeated(self, x: Named, whole: Any, order: Names) -> Any:
        """The elements of `x`, repeated along all dimensions that it lacks."""
        if x.aval.size == whole.size:
            return self.context.reshape(x.value, whole)
        return self.context.broadcast_in_dim(x.value, whole, [order.index(n) for n in x.names])

    def plus(self, total: Any, value: Any, whole: Any) -> Any:
        """A sum that may still be empty."""
        return value if total is None else self.context.add(total, value, whole)

    def written_out(
        self, x: Named, w: Named, whole: Any, term: Products, kernel: Sequence[int]
    ) -> Any:
        """The sum over the positions of a kernel."""
        total = None
        for place in np.ndindex(*kernel):
            total = self.plus(total, term(x, w, place), whole)
        return total

    def summed(self, x: Named, w: Named, whole: Any, term: Products) -> Any:
        """The sum over the positions of the kernel, in blocks along its longest dimension."""
        c, count = self.context, prod(self.kernel) * self.sizes["i"]
        if count <= UNROLLED:
            return self.written_out(x, w, whole, term, self.kernel)
        along = max(self.places, key=lambda s: self.kernel[s])
        size, by = self.kernel[along], self.dilation[along]
        block = max(1, UNROLLED * size // count)
        steps, rest = divmod(size, block)

        def add_block(step: Any, total: Any) -> Any:
            k = self.times(step, block)
            start = self.times(k, by)
            near = self.moving_part(x, {along: self.reach(along, block)}, {along: start})
            taps = self.moving_part(w, {along: block}, {along: k})
            kernel = _replaced(self.kernel, along, block)
            products = self.written_out(near, taps, whole, term, kernel)
            return c.add(total, products, whole)

        total = self.looped(steps, whole, add_block)
        if rest:
            done = size - rest
            near = self.part(x, {along: (done * by, x.size(along), 1)})
            taps = self.part(w, {along: (done, size, 1)})
            kernel = _replaced(self.kernel, along, rest)
            products = self.written_out(near, taps, whole, term, kernel)
            total = c.add(total, products, whole)
        return total

    # Products of matrices

    def by_matrices(self, x: Named, w: Named, precision: Any) -> tuple[Any, Names]:
        """A product of matrices for each position of the kernel."""
        w = self.ordered(w, (*self.places, "g", "i", "o"))
        order: Names = ("g", *x.without("g", "i"), "o")
        whole = self.whole(order)

        first = self.seen((0,) * len(self.kernel))

        def products(x: Named, w: Named) -> Any:
            near, tap = self.part(x, first), self.dropped(w, *self.places)
            return self.matrices(near, tap, ("i",), whole, precision)

        if prod(self.kernel) == 1:
            return products(x, w), order

        def add_place(step: Any, total: Any) -> Any:
            place = self.unravelled(step, self.kernel)
            starts = {s: self.times(place[s], self.dilation[s]) for s in self.places}
            near = self.moving_part(x, {s: self.reach(s) for s in self.places}, starts)
            tap = self.moving_part(w, dict.fromkeys(self.places, 1), place)
            return self.context.add(total, products(near, tap), whole)

        # XLA takes long to compile a product of matrices, so there is only one.
        return self.looped(prod(self.kernel), whole, add_place), order

    def matrices(self, x: Named, w: Named, over: Names, whole: Any, precision: Any) -> Any:
        """The products of each group, summed over the dimensions `over`."""
        c = self.context
        attributes = {
            "dot_dimension_numbers": c.dot_dimension_numbers(
                lhs_contracting=[x.names.index(name) for name in over],
                rhs_contracting=[w.names.index(name) for name in over],
                lhs_batching=[x.names.index("g")],
                rhs_batching=[w.names.index("g")],
            ),
            "precision_config": c.precision(precision),
        }
        return c.op("dot_general", [x.value, w.value], whole, attributes)

    # Convolutions of groups

    def by_groups(self, x: Named, w: Named, attributes: Mapping[str, Any]) -> tuple[Any, Names]:
        """A convolution for each group, in XLA's fastest order of dimensions."""
        c, rank = self.context, len(self.kernel)
        order: Names = ("g", "n", *self.places, "o")
        x = self.ordered(x, ("g", "n", *self.places, "i"))
        w = self.ordered(w, ("g", *self.places, "i", "o"))
        whole = self.whole(order)
        group = ShapedArray(whole.shape[1:], self.dtype)
        channels_last = (0, rank + 1, *range(1, rank + 1))
        numbers = c.conv_dimension_numbers(
            channels_last, (rank + 1, rank, *self.places), channels_last
        )

        def put_group(step: Any, total: Any) -> Any:
            near = self.dropped(self.moving_part(x, {"g": 1}, {"g": step}), "g")
            taps = self.dropped(self.moving_part(w, {"g": 1}, {"g": step}), "g")
            result = c.op(
                "convolution",
                [near.value, taps.value],
                group,
                {**attributes, "dimension_numbers": numbers},
            )
            return self.put(total, step, result, whole)

        return self.looped(self.sizes["g"], whole, put_group), order

    # Products for positions of the result

    def by_results(self, x: Named, w: Named, precision: Any) -> tuple[Any, Names]:
        """For each position of the result, a product over kernel positions and input features."""
        c = self.context
        order: Names = ("g", "n", "o")
        row = self.whole(order)
        alone = self.sizes["n"] * self.sizes["o"] == 1
        if alone:
            x = self.dropped(x, "n")
            w = self.ordered(self.dropped(w, "o"), x.names)
        scalar, groups = ShapedArray((), self.dtype), ShapedArray((self.sizes["g"],), self.dtype)
        results = [self.sizes[s] for s in self.places]
        windows = {
            s: _spread(0, k, by)
            for s, k, by in zip(self.places, self.kernel, self.dilation, strict=True)
        }
        whole = ShapedArray((prod(results), *row.shape), self.dtype)

        def put_result(step: Any, total: Any) -> Any:
            place = self.unravelled(step, results)
            starts = {s: self.times(place[s], self.strides[s]) for s in self.places}
            wide = {s: limit for s, (_, limit, _) in windows.items()}
            near = self.part(self.moving_part(x, wide, starts), windows)
            if not alone:
                value = self.matrices(near, w, ("i", *self.places), row, precision)
            else:
                (value,) = c.reduce(
                    [c.mul(near.value, w.value, near.aval)],
                    [c.constant(0, scalar)],
                    [d for d, name in enumerate(near.names) if name != "g"],
                    [groups],
                    lambda a, b: [c.add(a, b, scalar)],
                )
            return self.put(total, step, value, whole)

        total = self.looped(prod(results), whole, put_result)
        order = (*self.places, *order)
        return c.reshape(total, self.whole(order)), order

    # Loops

    def looped(self, count: int, whole: Any, turn: Callable[[Any, Any], Any]) -> Any:
        """`count` iterations from zeros; each takes its number and the current value."""
        c, number = self.context, ShapedArray((), INT32)
        one, last = c.constant(1, number), c.constant(count, number)
        _, total = c.while_loop(
            [c.constant(0, number), c.constant(0, whole)],
            [number, whole],
            lambda step, _: c.compare(step, last, "LT", number),
            lambda step, total: [c.add(step, one, number), turn(step, total)],
        )
        return total

    def times(self, number: Any, by: int) -> Any:
        """A number known at run time, multiplied."""
        scalar = ShapedArray((), INT32)
        return self.context.mul(number, self.context.constant(by, scalar), scalar)

    def unravelled(self, step: Any, sizes: Sequence[int]) -> dict[Name, Any]:
        """The position with a number in row-major order."""
        c, scalar = self.context, ShapedArray((), INT32)
        place: dict[Name, Any] = {}
        for s in reversed(self.places):
            size = c.constant(sizes[s], scalar)
            place[s], step = c.rem(step, size, scalar), c.div(step, size, scalar)
        return place

    def put(self, total: Any, step: Any, value: Any, whole: Any) -> Any:
        """`total` with its row of that number replaced."""
        c = self.context
        row = c.reshape(value, ShapedArray((1, *whole.shape[1:]), self.dtype))
        zero = c.constant(0, ShapedArray((), INT32))
        return c.dynamic_update_slice(total, row, whole, [step, *[zero] * (whole.ndim - 1)])


def _spread(start: int, count: int, step: int) -> tuple[int, int, int]:
    """Start, limit and step of a slice of this many elements."""
    return start, start + (count - 1) * step + 1, step


def _replaced(sizes: tuple[int, ...], at: int, size: int) -> tuple[int, ...]:
    return (*sizes[:at], size, *sizes[at + 1 :])


def _by_position(spec: Sequence[int], names: Sequence[Name]) -> list[Name]:
    """The names of dimensions in order of position."""
    return [name for _, name in sorted(zip(spec, names, strict=True))]


def _sum_dtype(dtype: Any) -> Any:
    """The dtype of the sums, or None to leave it to XLA."""
    if dtype_name(dtype) in ("float16", "bfloat16"):
        # Rounding every sum to 16 bits would lose precision.
        return FLOAT32
    return dtype if dtype.kind in "iufc" else None


@TABLE.rule("conv_general_dilated")
def conv_general_dilated(
    context: Any,
    lhs: Any,
    rhs: Any,
    *,
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
    out_sharding: Any = None,
) -> Any:
    """A convolution as a sum of products; NotImplemented where XLA's own is as fast."""
    (a, b), (out,) = context.avals_in, context.avals_out
    counts = Groups(feature_group_count, batch_group_count)
    windows = Windows(window_strides, padding, lhs_dilation, rhs_dilation)
    if convolution_kernel.suits(context, (a, b, out), windows, counts, dimension_numbers):
        return convolution_kernel.call(context, lhs, rhs, windows, counts, dimension_numbers)
    x_spec, w_spec, out_spec = dimension_numbers
    dtype = _sum_dtype(out.dtype)
    groups = feature_group_count * batch_group_count
    kernel = tuple([b.shape[d] for d in w_spec[2:]])
    sizes: dict[Name, int] = {
        "n": out.shape[out_spec[0]],
        "g": groups,
        "i": b.shape[w_spec[1]],
        "o": b.shape[w_spec[0]] // groups,
        **{s: out.shape[d] for s, d in enumerate(out_spec[2:])},
    }
    if dtype is None or not 0 < a.size < 2**31:
        return NotImplemented
    count = out.size * sizes["i"] * prod(kernel)
    # XLA handles several features of one group well enough, if there are few products.
    several = groups == 1 and sizes["i"] * sizes["o"] > 1
    if count < (MANY_PRODUCTS if several else SOME_PRODUCTS):
        return NotImplemented
    padded = any(map(any, padding)) or not set(lhs_dilation) <= {1}
    way = _way(sizes, kernel, dtype.kind, padded)
    if way is None:
        return NotImplemented
    sums = Convolution(context, dtype, sizes, kernel, window_strides, rhs_dilation)
    names = _by_position(x_spec, ("n", "i", *sums.places))
    x = sums.grouped(lhs, a, names, "n" if batch_group_count > 1 else "i")
    w = sums.grouped(rhs, b, _by_position(w_spec, ("o", "i", *sums.places)), "o")
    if way == "groups":
        attributes = {
            "window_strides": context.i64_array(window_strides),
            "padding": context.i64_elements(padding),
            "lhs_dilation": context.i64_array(lhs_dilation),
            "rhs_dilation": context.i64_array(rhs_dilation),
            "feature_group_count": 1,
            "batch_group_count": 1,
            "precision_config": context.precision(precision),
        }
        value, order = sums.by_groups(x, w, attributes)
        return sums.result(value, order, out_spec, out)
    x = sums.padded(x, padding, lhs_dilation)
    if way == "elements":
        value, order = sums.by_elements(x, w)
    elif way == "matrices":
        value, order = sums.by_matrices(x, w, precision)
    else:
        value, order = sums.by_results(x, w, precision)
    return sums.result(value, order, out_spec, out)


def _way(sizes: Mapping[Name, int], kernel: tuple[int, ...], kind: str, padded: bool) -> str | None:
    """The fastest way: elements, matrices, groups or results; None for XLA's own."""
    n, i, o, taps = sizes["n"], sizes["i"], sizes["o"], prod(kernel)
    grouped = sizes["g"] > 1
    if not kernel or (taps == 1 and not grouped and not padded):
        return None if kind == "c" else "matrices"
    # Where XLA runs scalar loops, whatever the number of features.
    slow = grouped or kind in "iu" or len(kernel) > 2
    # Where it does so only because of the groups.
    fast = "groups" if kind == "f" and len(kernel) <= 2 else None
    results = prod([sizes[s] for s in range(len(kernel))])
    if results < taps and results <= FEW_RESULTS:
        if n * o == 1 and (slow or len(kernel) > 1):
            return "results"
        return fast or "results" if slow else None
    few = i * o <= FEW_PAIRS and (i <= 16 if grouped else i <= 8 and o <= 16)
    if (few or (grouped and i <= 4)) and i * taps // max(kernel) <= LONGEST_BLOCK:
        return "elements"
    return fast or "matrices" if slow else None
