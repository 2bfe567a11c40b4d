"""Convolutions that XLA's CPU compiler is slow at, as sums of products.

It is fast where many features meet many features. Grouped convolutions, few features, integers and
three spatial dimensions go through scalar loops, which take up to a hundred times as long as adding
up products of shifted arrays. That is done here in one of three ways:

- for each place of the kernel and each input feature of a group, a product of elements;
- for each place of the kernel, a product of matrices, over the input features of a group;
- for each place of the result, where these are few (as in the gradient of a kernel), a product
  over everything else.

Places of a small kernel are written out, so that one pass over memory adds up all products.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray

TABLE: Final = LoweringTable()

FLOAT32: Final = np.dtype(np.float32)
INT32: Final = np.dtype(np.int32)

#: With fewer multiplications than this there is nothing to gain, and more to compile.
MANY_PRODUCTS: Final = 4096
#: So many products of elements are written out; more are gone through in a loop.
UNROLLED: Final = 32
#: With more products than this in a turn of the loop, the program takes long to compile.
LONGEST_BLOCK: Final = 128
#: Up to so many input features of a group are gone through one by one.
FEW_FEATURES: Final = 16
#: Up to so many places of the result are written out.
FEW_RESULTS: Final = 128

#: Names of dimensions: n (batch), g (group), i and o (input and output features of a group), and
#: numbers for spatial dimensions.
Name = str | int
Names = tuple[Name, ...]
#: From a part of the input, a part of the kernel and a place in it to the products for that place.
Term = Callable[["Named", "Named", tuple[int, ...]], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Named:
    """A value whose dimensions have names."""

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


@dataclasses.dataclass(frozen=True, slots=True)
class Convolution:
    """One convolution: its sizes, and the ways to compute it.

    Args:
        context: the builder.
        dtype: in which products are summed.
        sizes: of the dimensions of the result, by name; and of ``i``.
        kernel: spatial sizes of the kernel.
        strides: steps.
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
        """The aval of a result with dimensions in that order."""
        return ShapedArray(tuple([self.sizes[name] for name in names]), self.dtype)

    # Operands and the result

    def grouped(self, value: Any, aval: Any, names: Sequence[Name], group: Name) -> Named:
        """An operand in the dtype of sums, with groups taken out of the dimension of that name."""
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
        """`x` with zeros between, before and after its places."""
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
        """`x` with its dimensions in that order."""
        if x.names == names:
            return x
        permutation = [x.names.index(name) for name in names]
        aval = ShapedArray(tuple([x.aval.shape[d] for d in permutation]), self.dtype)
        return Named(self.context.transpose(x.value, aval, permutation), aval, names)

    def dropped(self, x: Named, *names: Name) -> Named:
        """`x` without dimensions of size one."""
        kept = x.without(*names)
        aval = ShapedArray(tuple([x.size(name) for name in kept]), self.dtype)
        return Named(self.context.reshape(x.value, aval), aval, kept)

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

    def seen(self, x: Named, place: tuple[int, ...]) -> Named:
        """What of the padded input a place of the kernel is multiplied with."""
        return self.part(
            x,
            {
                s: _spread(place[s] * self.dilation[s], self.sizes[s], self.strides[s])
                for s in self.places
            },
        )

    def tap(self, w: Named, place: tuple[int, ...]) -> Named:
        """The kernel at a place, without spatial dimensions."""
        at = self.part(w, {s: (place[s], place[s] + 1, 1) for s in self.places})
        return self.dropped(at, *self.places)

    def reach(self, along: int, taps: int = 1) -> int:
        """How many places of the padded input so many places of the kernel need."""
        last = (self.sizes[along] - 1) * self.strides[along]
        return last + (taps - 1) * self.dilation[along] + 1

    # Products of elements

    def by_elements(self, x: Named, w: Named) -> tuple[Any, Names]:
        """A product of elements for each place of the kernel and each input feature."""
        # In a loop, what is long has to lie together; XLA chooses by itself outside of loops.
        features: Names = ("g", "o")
        channels_last = self.sizes["g"] * self.sizes["o"] >= self.sizes[self.places[-1]]
        order: Names = ("n", *self.places, *features)
        if not channels_last:
            order = ("n", *features, *self.places)
        x = self.ordered(x, ("i", *[name for name in order if name != "o"]))
        w = self.ordered(w, (*self.places, "i", *features))
        whole = self.whole(order)

        def products(x: Named, w: Named, place: tuple[int, ...]) -> Any:
            seen, tap = self.seen(x, place), self.tap(w, place)
            total = None
            for i in range(self.sizes["i"]):
                feature = {"i": (i, i + 1, 1)}
                factors = [
                    self.repeated(self.dropped(self.part(v, feature), "i"), whole, order)
                    for v in (seen, tap)
                ]
                total = self.plus(total, self.context.mul(*factors, whole), whole)
            return total

        return self.summed(x, w, whole, products), order

    def repeated(self, x: Named, whole: Any, order: Names) -> Any:
        """The elements of `x` along all dimensions that it does not have."""
        if x.aval.size == whole.size:
            return self.context.reshape(x.value, whole)
        return self.context.broadcast_in_dim(x.value, whole, [order.index(n) for n in x.names])

    def plus(self, total: Any, value: Any, whole: Any) -> Any:
        """A sum, of which there may be nothing yet."""
        return value if total is None else self.context.add(total, value, whole)

    def written_out(self, x: Named, w: Named, whole: Any, term: Term, kernel: Sequence[int]) -> Any:
        """The sum over the places of a kernel."""
        total = None
        for place in np.ndindex(*kernel):
            total = self.plus(total, term(x, w, place), whole)
        return total

    def summed(self, x: Named, w: Named, whole: Any, term: Term) -> Any:
        """The sum over the places of the kernel, in blocks along its longest dimension."""
        c, count = self.context, prod(self.kernel) * self.sizes["i"]
        if count <= UNROLLED:
            return self.written_out(x, w, whole, term, self.kernel)
        along = max(self.places, key=lambda s: self.kernel[s])
        size, by = self.kernel[along], self.dilation[along]
        block = max(1, UNROLLED * size // count)
        steps, rest = divmod(size, block)

        def add_block(step: Any, total: Any) -> list[Any]:
            k = c.mul(step, c.constant(block, scalar), scalar)
            start = c.mul(k, c.constant(by, scalar), scalar)
            near = self.moving_part(x, {along: self.reach(along, block)}, {along: start})
            taps = self.moving_part(w, {along: block}, {along: k})
            kernel = _replaced(self.kernel, along, block)
            products = self.written_out(near, taps, whole, term, kernel)
            return [c.add(step, one, scalar), c.add(total, products, whole)]

        scalar = ShapedArray((), INT32)
        one, last = c.constant(1, scalar), c.constant(steps, scalar)
        _, total = c.while_loop(
            [c.constant(0, scalar), c.constant(0, whole)],
            [scalar, whole],
            lambda step, _: c.compare(step, last, "LT", scalar),
            add_block,
        )
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
        """A product of matrices for each place of the kernel."""
        c, count = self.context, prod(self.kernel)
        w = self.ordered(w, (*self.places, "g", "i", "o"))
        order: Names = ("g", *x.without("g", "i"), "o")
        whole = self.whole(order)

        def products(x: Named, w: Named, place: tuple[int, ...]) -> Any:
            return self.matrices(self.seen(x, place), self.tap(w, place), ("i",), whole, precision)

        if count == 1:
            return products(x, w, (0,) * len(self.kernel)), order

        def add_place(step: Any, total: Any) -> list[Any]:
            left, place, starts = step, {}, {}
            for s in reversed(self.places):
                size = c.constant(self.kernel[s], scalar)
                place[s], left = c.rem(left, size, scalar), c.div(left, size, scalar)
                starts[s] = c.mul(place[s], c.constant(self.dilation[s], scalar), scalar)
            near = self.moving_part(x, {s: self.reach(s) for s in self.places}, starts)
            tap = self.moving_part(w, dict.fromkeys(self.places, 1), place)
            product = products(near, tap, (0,) * len(self.kernel))
            return [c.add(step, one, scalar), c.add(total, product, whole)]

        # XLA takes long to compile a product of matrices, so there is one.
        scalar = ShapedArray((), INT32)
        one, last = c.constant(1, scalar), c.constant(count, scalar)
        _, total = c.while_loop(
            [c.constant(0, scalar), c.constant(0, whole)],
            [scalar, whole],
            lambda step, _: c.compare(step, last, "LT", scalar),
            add_place,
        )
        return total, order

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

    # Products for places of the result

    def by_results(self, x: Named, w: Named, precision: Any) -> tuple[Any, Names]:
        """A product over places of the kernel and input features for each place of the result."""
        c = self.context
        order: Names = ("g", "n", "o")
        whole = self.whole(order)
        alone = self.sizes["n"] * self.sizes["o"] == 1
        if alone:
            x = self.dropped(x, "n")
            w = self.ordered(self.dropped(w, "o"), x.names)
        row = ShapedArray((1, *whole.shape), self.dtype)
        scalar, groups = ShapedArray((), self.dtype), ShapedArray((self.sizes["g"],), self.dtype)
        rows = []
        for place in np.ndindex(*[self.sizes[s] for s in self.places]):
            near = self.part(
                x,
                {
                    s: _spread(place[s] * self.strides[s], self.kernel[s], self.dilation[s])
                    for s in self.places
                },
            )
            if alone:
                (value,) = c.reduce(
                    [c.mul(near.value, w.value, near.aval)],
                    [c.constant(0, scalar)],
                    [d for d, name in enumerate(near.names) if name != "g"],
                    [groups],
                    lambda a, b: [c.add(a, b, scalar)],
                )
            else:
                value = self.matrices(near, w, ("i", *self.places), whole, precision)
            rows.append(c.reshape(value, row))
        joined = ShapedArray((len(rows), *whole.shape), self.dtype)
        order = (*self.places, *order)
        return c.reshape(c.concatenate(rows, joined, 0), self.whole(order)), order


def _spread(start: int, count: int, step: int) -> tuple[int, int, int]:
    """Start, limit and step of a slice of so many elements."""
    return start, start + (count - 1) * step + 1, step


def _replaced(sizes: tuple[int, ...], at: int, size: int) -> tuple[int, ...]:
    return (*sizes[:at], size, *sizes[at + 1 :])


def _by_position(spec: Sequence[int], names: Sequence[Name]) -> list[Name]:
    """The names of dimensions in the order in which they are, from where each is."""
    return [name for _, name in sorted(zip(spec, names, strict=True))]


def _sum_dtype(dtype: Any) -> Any:
    """In which dtype products are summed, or None where that is left to XLA."""
    if dtype.name in ("float16", "bfloat16"):
        # Rounding every sum to 16 bits would lose what the elements have.
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
    if dtype is None or not a.size or out.size * sizes["i"] * prod(kernel) < MANY_PRODUCTS:
        return NotImplemented
    padded = any(map(any, padding)) or not set(lhs_dilation) <= {1}
    way = _way(sizes, kernel, dtype.kind, padded)
    if way is None:
        return NotImplemented
    sums = Convolution(context, dtype, sizes, kernel, window_strides, rhs_dilation)
    names = _by_position(x_spec, ("n", "i", *sums.places))
    x = sums.grouped(lhs, a, names, "n" if batch_group_count > 1 else "i")
    x = sums.padded(x, padding, lhs_dilation)
    w = sums.grouped(rhs, b, _by_position(w_spec, ("o", "i", *sums.places)), "o")
    if way == "elements":
        value, order = sums.by_elements(x, w)
    elif way == "matrices":
        value, order = sums.by_matrices(x, w, precision)
    else:
        value, order = sums.by_results(x, w, precision)
    return sums.result(value, order, out_spec, out)


def _way(sizes: Mapping[Name, int], kernel: tuple[int, ...], kind: str, padded: bool) -> str | None:
    """The fastest way: elements, matrices or results; None for XLA's own."""
    i, o, taps = sizes["i"], sizes["o"], prod(kernel)
    grouped = sizes["g"] > 1
    if not kernel or (taps == 1 and not grouped and not padded):
        return None if kind == "c" else "matrices"
    # Where XLA runs scalar loops, whatever the features.
    slow = grouped or kind in "iu" or len(kernel) > 2
    results = prod([sizes[s] for s in range(len(kernel))])
    if results < taps and results <= FEW_RESULTS:
        single = sizes["n"] * o == 1 and len(kernel) > 1
        return "results" if slow or single else None
    few = i <= FEW_FEATURES if grouped else i <= 8 and o <= 16 and i * o <= 64
    if few and i * taps // max(kernel) <= LONGEST_BLOCK:
        return "elements"
    return "matrices" if slow else None
