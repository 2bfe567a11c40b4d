"""Convolution: `conv_general_dilated`, on which all others are built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import add_tangents, convert_element_type, dtype_name
from dovetail._core.basis.structural import batch_size, is_linear, move_dimension, reshape
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval, shape_of
from dovetail._core.ir.dimensions import is_symbolic_dim
from dovetail._core.ops.elementwise.operands import real_dtype
from dovetail._core.ops.shape.dimensions import without
from dovetail._core.ops.shape.padding import Pads, dilated_size
from dovetail._core.ops.shape.reshaping import reverse
from dovetail._core.trace.divisions import Labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Shape = tuple[int, ...]


class ConvDimensionNumbers(NamedTuple):
    """The roles of dimensions in the arrays of a convolution.

    Attributes:
        lhs_spec: positions in the input of (batch, feature, *spatial).
        rhs_spec: positions in the kernel of (output feature, input feature, *spatial).
        out_spec: positions in the result of (batch, feature, *spatial).

    Example:
        >>> from dovetail import lax
        >>> lax.conv_dimension_numbers((1, 5, 3), (2, 3, 4), ("NHC", "HIO", "NHC"))
        ConvDimensionNumbers(lhs_spec=(0, 2, 1), rhs_spec=(2, 1, 0), out_spec=(0, 2, 1))
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


#: Accepted as dimension numbers.
ConvGeneralDilatedDimensionNumbers = ConvDimensionNumbers | tuple[str, str, str] | None


def in_places(spec: Sequence[int], values: Sequence[Any]) -> tuple[Any, ...]:
    """Values for (batch, features, *spatial), reordered to the layout `spec`."""
    return tuple([value for _, value in sorted(zip(spec, values, strict=True))])


def spatial_sizes(
    name: str,
    sizes: Shape,
    kernel: Shape,
    strides: Shape,
    padding: Pads,
    lhs_dilation: Shape,
    dilation: Shape,
) -> Shape:
    """The spatial sizes of the result of a convolution.

    Args:
        name: what is being computed, for the message.
        sizes: of the input.
        kernel: of the kernel.
        strides: the strides.
        padding: padding before and after.
        lhs_dilation: of the input.
        dilation: of the kernel.

    Raises:
        ValueError: the padding crops more than there is.
    """
    sizes_out = []
    for n, k, stride, pad, spread, wide in zip(
        sizes, kernel, strides, padding, lhs_dilation, dilation, strict=True
    ):
        room = dilated_size(n, spread) + sum(pad)
        if room < 0:
            raise ValueError(
                f"{name}: padding {padding} removes more than there is of lhs, whose spatial "
                f"dimensions have sizes {sizes}"
            )
        sizes_out.append(max((room - dilated_size(k, wide)) // stride + 1, 0))
    return tuple(sizes_out)


def result_dtype(lhs: ShapedArray, rhs: ShapedArray, preferred: Any) -> tuple[Any, bool]:
    """The dtype of a convolution, and whether it is weak.

    Raises:
        TypeError: the dtypes of the operands differ, or `preferred` cannot hold sums of their
            products.
    """
    kind = dtypes.kind_of(lhs.dtype)
    if lhs.dtype != rhs.dtype or not kind:
        raise TypeError(
            "conv_general_dilated: lhs and rhs must be numbers of one dtype, got "
            f"{dtype_name(lhs.dtype)} and {dtype_name(rhs.dtype)}; convert with "
            "lax.convert_element_type"
        )
    if preferred is None:
        return lhs.dtype, lhs.weak_type and rhs.weak_type
    new = dtypes.kind_of(preferred)
    allowed = {"b": "biuf", "i": "if", "u": "iuf", "f": "f", "c": "c"}[kind]
    narrower = new == kind and preferred.itemsize < lhs.dtype.itemsize
    if not new or new not in allowed or narrower:
        raise TypeError(
            f"conv_general_dilated: products of {dtype_name(lhs.dtype)} cannot be summed in "
            f"preferred_element_type {dtype_name(preferred)}: it has no place for all of them"
        )
    return preferred, False


class ConvGeneralDilated(Primitive):
    """Sums of products of a kernel with the windows of an input.

    In the standard order of dimensions, element ``[n, o, p]`` of the result is the sum over input
    features i and kernel positions k of ``lhs[n, i, p * stride + k * rhs_dilation] * rhs[o, i,
    k]``, where lhs has been dilated and padded. With feature or batch groups, an output feature
    reads only its own group.
    """

    name = "conv_general_dilated"
    linear_in: ClassVar[Sequence[slice]] = (slice(1), slice(1, 2))
    sharding_parameter: ClassVar[str] = "out_sharding"
    accepts_zeros = True

    def abstract(
        self,
        lhs: Any,
        rhs: Any,
        *,
        window_strides: Shape,
        padding: Pads,
        lhs_dilation: Shape,
        rhs_dilation: Shape,
        dimension_numbers: ConvDimensionNumbers,
        feature_group_count: int,
        batch_group_count: int,
        precision: Any,
        preferred_element_type: Any,
        out_sharding: Any = None,
    ) -> Any:
        self._check_ranks(lhs, rhs, dimension_numbers)
        rank = lhs.ndim - 2
        for name, values, least in (
            ("window_strides", window_strides, 1),
            ("padding", padding, None),
            ("lhs_dilation", lhs_dilation, 1),
            ("rhs_dilation", rhs_dilation, 1),
        ):
            if len(values) != rank:
                raise ValueError(
                    f"conv_general_dilated: {name} must have one entry for each of the {rank} "
                    f"spatial dimensions of an input of shape {lhs.shape}, got {values}"
                )
            if least is not None and any(v < least for v in values):  # type: ignore[operator]
                raise ValueError(f"conv_general_dilated: {name} must be positive, got {values}")
        n, i, *spatial = (lhs.shape[d] for d in dimension_numbers.lhs_spec)
        o, per_group, *kernel = (rhs.shape[d] for d in dimension_numbers.rhs_spec)
        self._check_groups(n, i, o, per_group, feature_group_count, batch_group_count)
        sizes = spatial_sizes(
            self.name,
            tuple(spatial),
            tuple(kernel),
            window_strides,
            padding,
            lhs_dilation,
            rhs_dilation,
        )
        shape = in_places(dimension_numbers.out_spec, (n // batch_group_count, o, *sizes))
        return make_aval(shape, *result_dtype(lhs, rhs, preferred_element_type))

    @staticmethod
    def _check_ranks(lhs: ShapedArray, rhs: ShapedArray, numbers: ConvDimensionNumbers) -> None:
        if lhs.ndim != rhs.ndim or lhs.ndim < 2:
            raise TypeError(
                "conv_general_dilated: lhs and rhs must have one rank, of at least 2 (batch and "
                f"features, output and input features), got shapes {lhs.shape} and {rhs.shape}"
            )
        for name, spec in zip(numbers._fields, numbers, strict=True):
            if sorted(spec) != list(range(lhs.ndim)):
                raise TypeError(
                    f"conv_general_dilated: {name} of dimension_numbers must name each of the "
                    f"dimensions 0 to {lhs.ndim - 1} once, got {spec}"
                )

    @staticmethod
    def _check_groups(n: int, i: int, o: int, per_group: int, features: int, batches: int) -> None:
        for name, count in (("feature_group_count", features), ("batch_group_count", batches)):
            if count < 1:
                raise ValueError(f"conv_general_dilated: {name} must be positive, got {count}")
            if o % count:
                raise ValueError(
                    f"conv_general_dilated: {name} {count} does not divide the {o} output features "
                    "of rhs"
                )
        if features > 1 and batches > 1:
            raise ValueError(
                "conv_general_dilated: one of feature_group_count and batch_group_count must be 1, "
                f"got {features} and {batches}"
            )
        if i % features:
            raise ValueError(
                f"conv_general_dilated: feature_group_count {features} does not divide the {i} "
                "features of lhs"
            )
        if n % batches:
            raise ValueError(
                f"conv_general_dilated: batch_group_count {batches} does not divide the batch size "
                f"{n} of lhs"
            )
        if i // features != per_group:
            raise ValueError(
                f"conv_general_dilated: the {i} features of lhs, in feature_group_count {features} "
                f"groups, must be as many as the input features of rhs, which has {per_group}; "
                "where features stand last, say so: dimension_numbers=('NHWC', 'HWIO', 'NHWC') of "
                "conv_general_dilated"
            )

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        numbers: ConvDimensionNumbers = params["dimension_numbers"]
        grouped = params["feature_group_count"] > 1 or params["batch_group_count"] > 1
        own: list[list[Any]] = [[None] * avals[0].ndim for _ in numbers]
        if params["batch_group_count"] == 1:
            own[0][numbers.lhs_spec[0]] = own[2][numbers.out_spec[0]] = "batch"
        for d, out in zip(numbers.lhs_spec[2:], numbers.out_spec[2:], strict=True):
            own[0][d] = own[2][out] = ("window", out)
        if not grouped:
            own[0][numbers.lhs_spec[1]] = own[1][numbers.rhs_spec[1]] = "summed"
            own[1][numbers.rhs_spec[0]] = own[2][numbers.out_spec[1]] = "features"
        why = "has groups, or moves the window, along"
        return Labels(own[:2], own[2:], ambiguous=frozenset(["summed"]), why=why)

    def reference(self, lhs: Any, rhs: Any, **params: Any) -> Any:
        lhs, rhs = np.asarray(lhs), np.asarray(rhs)
        out = self.abstract(
            make_aval(lhs.shape, lhs.dtype), make_aval(rhs.shape, rhs.dtype), **params
        )
        wide = {"f": np.float64, "c": np.complex128}.get(dtypes.kind_of(out.dtype), out.dtype)
        numbers = params["dimension_numbers"]
        sizes = [out.shape[d] for d in numbers.out_spec]
        x = _padded(
            lhs.transpose(numbers.lhs_spec).astype(wide), params["padding"], params["lhs_dilation"]
        )
        w = rhs.transpose(numbers.rhs_spec).astype(wide)
        batches, groups = params["batch_group_count"], params["feature_group_count"]
        x = x.reshape(batches, sizes[0], groups, w.shape[1], *x.shape[2:])
        w = w.reshape(batches, groups, sizes[1] // (batches * groups), *w.shape[1:])
        total = np.zeros((sizes[0], batches, groups, w.shape[2], *sizes[2:]), wide)
        for place in np.ndindex(*w.shape[4:]):
            window = tuple(
                slice(k * d, k * d + (m - 1) * s + 1 if m else k * d, s)
                for k, d, m, s in zip(
                    place, params["rhs_dilation"], sizes[2:], params["window_strides"], strict=True
                )
            )
            part = x[(..., *window)]
            total += np.einsum("bngi...,bgoi->nbgo...", part, w[(..., *place)])
        result = total.reshape(sizes).transpose(np.argsort(numbers.out_spec))
        return result.astype(out.dtype)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        (x, y), (s, t) = primals, tangents
        out = self.bind(x, y, **params)
        tangent: Any = Zero.of(out)
        if type(s) is not Zero:
            tangent = self.bind(s, y, **params)
        if type(t) is not Zero:
            tangent = add_tangents(tangent, self.bind(x, t, **params))
        return out, tangent

    def transpose(self, ct: Any, lhs: Any, rhs: Any, **params: Any) -> Sequence[Any]:
        linear = lhs if is_linear(lhs) else rhs
        if not (aval_of(ct).size and aval_of(lhs).size and aval_of(rhs).size):
            cotangent = structural.full(linear.shape, 0, linear.dtype)
        else:
            # The other operand may be narrower than the sums.
            wide = aval_of(ct).dtype
            if linear is lhs:
                cotangent = self._of_lhs(ct, lhs, convert_element_type(rhs, wide), **params)
            else:
                cotangent = self._of_rhs(ct, convert_element_type(lhs, wide), rhs, **params)
            cotangent = convert_element_type(cotangent, linear.dtype)
        return (cotangent, None) if linear is lhs else (None, cotangent)

    def _of_lhs(
        self,
        ct: Any,
        lhs: ShapedArray,
        rhs: Any,
        *,
        window_strides: Shape,
        padding: Pads,
        lhs_dilation: Shape,
        rhs_dilation: Shape,
        dimension_numbers: ConvDimensionNumbers,
        feature_group_count: int,
        batch_group_count: int,
        **params: Any,
    ) -> Any:
        """Dilate the cotangent by the strides and convolve it with the reversed kernel."""
        x, (o, i, *places), out = dimension_numbers
        groups = max(feature_group_count, batch_group_count)
        sizes, kernel, results = _dilated(
            dimension_numbers, lhs, rhs, ct, lhs_dilation, rhs_dilation, window_strides
        )
        pads = tuple(
            [
                (k - 1 - low, n + low - m)
                for n, k, m, (low, _) in zip(sizes, kernel, results, padding, strict=True)
            ]
        )
        result = self.bind(
            ct,
            _regrouped(reverse(rhs, tuple(places)), o, i, groups),
            window_strides=lhs_dilation,
            padding=pads,
            lhs_dilation=window_strides,
            rhs_dilation=rhs_dilation,
            dimension_numbers=ConvDimensionNumbers(out, (i, o, *places), x),
            feature_group_count=groups,
            batch_group_count=1,
            **params,
        )
        return _regrouped(result, x[1], x[0], batch_group_count)

    def _of_rhs(
        self,
        ct: Any,
        lhs: Any,
        rhs: ShapedArray,
        *,
        window_strides: Shape,
        padding: Pads,
        lhs_dilation: Shape,
        rhs_dilation: Shape,
        dimension_numbers: ConvDimensionNumbers,
        feature_group_count: int,
        batch_group_count: int,
        **params: Any,
    ) -> Any:
        """Convolve the input with the cotangent, summing over the batch."""
        specs = [(spec[1], spec[0], *spec[2:]) for spec in dimension_numbers]
        sizes, kernel, results = _dilated(
            dimension_numbers, lhs, rhs, ct, lhs_dilation, rhs_dilation, window_strides
        )
        pads = tuple(
            [
                (low, k + m - 1 - n - low)
                for n, k, m, (low, _) in zip(sizes, kernel, results, padding, strict=True)
            ]
        )
        return self.bind(
            lhs,
            ct,
            window_strides=rhs_dilation,
            padding=pads,
            lhs_dilation=lhs_dilation,
            rhs_dilation=window_strides,
            dimension_numbers=ConvDimensionNumbers(specs[0], specs[2], specs[1]),
            feature_group_count=batch_group_count,
            batch_group_count=feature_group_count,
            **params,
        )

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        (lhs, rhs), (d, e) = args, dims
        size = batch_size(args, dims)
        numbers = params["dimension_numbers"]
        features, batches = params["feature_group_count"], params["batch_group_count"]
        (n, i, *_), (o, *_), out = numbers
        if not size:
            avals = [aval_of(a) for a in args]
            inner = [
                a if b is None else a.update(shape=without(a.shape, (b,)))
                for a, b in zip(avals, dims, strict=True)
            ]
            aval = self.abstract(*inner, **params)
            return structural.full((0, *aval.shape), 0, aval.dtype), 0
        if e is None:
            assert d is not None
            lhs = _folded(lhs, d, n, batches)
            return _unfolded(self.bind(lhs, rhs, **params), out[0], size)
        if d is None:
            rhs = _folded(rhs, e, o, features * batches)
            return _unfolded(self.bind(lhs, rhs, **params), out[1], size, features * batches)
        if batches > 1:
            lhs, params["batch_group_count"] = _folded(lhs, d, n), size * batches
        else:
            lhs, params["feature_group_count"] = _folded(lhs, d, i), size * features
        return _unfolded(self.bind(lhs, _folded(rhs, e, o), **params), out[1], size)

    def lower(self, context: Builder, lhs: Any, rhs: Any, **params: Any) -> Any:
        (a, b), (out,) = context.avals_in, context.avals_out
        if not (a.size and b.size and out.size):
            return context.constant(0, out)
        kind, result_kind = dtypes.kind_of(a.dtype), dtypes.kind_of(out.dtype)
        if kind == "c":
            return self._lower_complex(context, lhs, rhs, **params)
        if result_kind == "b":
            # Sums of products that are zero or one: is any of them nonzero?
            single = out.update(dtype=np.dtype(np.float32))
            sums = self._lower_as(context, lhs, rhs, single, convert=True, **params)
            return context.compare(sums, context.constant(0, single), "NE", single)
        if dtypes.itemsize_bits(out.dtype) == 2:
            # Not all compilers multiply them; what a wider sum has too many bits of is dropped.
            byte = out.update(dtype=np.dtype("int8" if result_kind == "i" else "uint8"))
            sums = self._lower_as(context, lhs, rhs, byte, convert=True, **params)
            return context.convert(sums, byte, out)
        return self._lower_as(context, lhs, rhs, out, convert=kind != result_kind, **params)

    def _lower_as(
        self, context: Builder, lhs: Any, rhs: Any, out: ShapedArray, convert: bool, **params: Any
    ) -> Any:
        """The convolution with a result like `out`; operands may be converted to its dtype."""
        if convert:
            lhs, rhs = (
                context.convert(v, aval, aval.update(dtype=out.dtype))
                for v, aval in zip((lhs, rhs), context.avals_in, strict=True)
            )
        numbers = params["dimension_numbers"]
        rank = len(params["window_strides"])
        widths = [n for pair in params["padding"] for n in pair]
        dynamic = any(map(is_symbolic_dim, widths))
        operands, padding = [lhs, rhs], {}
        if dynamic:
            table = make_aval((rank, 2), context.size_aval.dtype)
            operands.append(context.reshape(context.sizes(widths), table))
        else:
            padding = {"padding": context.i64_elements(np.reshape(widths, (rank, 2)))}
        return context.op(
            "dynamic_conv" if dynamic else "convolution",
            operands,
            out,
            {
                "window_strides": context.i64_array(params["window_strides"]),
                **padding,
                "lhs_dilation": context.i64_array(params["lhs_dilation"]),
                "rhs_dilation": context.i64_array(params["rhs_dilation"]),
                "dimension_numbers": context.conv_dimension_numbers(*numbers),
                "feature_group_count": params["feature_group_count"],
                "batch_group_count": params["batch_group_count"],
                "precision_config": context.precision(params["precision"]),
            },
        )

    def _lower_complex(self, context: Builder, lhs: Any, rhs: Any, **params: Any) -> Any:
        """Three real convolutions: few platforms support complex ones.

        ``(a + bi)(c + di)`` is ``(a + b)c - b(c + d)`` and ``(a + b)c + a(d - c)i`` (Gauss).
        """
        (x, y), (out,) = context.avals_in, context.avals_out
        lhs = context.convert(lhs, x, x.update(dtype=out.dtype))
        rhs = context.convert(rhs, y, y.update(dtype=out.dtype))
        x, y, part = (v.update(dtype=real_dtype(out.dtype)) for v in (x, y, out))
        a, b = context.real(lhs, x), context.imag(lhs, x)
        c, d = context.real(rhs, y), context.imag(rhs, y)
        common, of_real, of_imag = [
            self._lower_as(context, s, t, part, convert=False, **params)
            for s, t in (
                (context.add(a, b, x), c),
                (b, context.add(c, d, y)),
                (a, context.sub(d, c, y)),
            )
        ]
        real = context.sub(common, of_real, part)
        return context.complex(real, context.add(common, of_imag, part), out)


conv_general_dilated_p: Final = ConvGeneralDilated()


def _padded(x: Any, padding: Pads, dilation: Shape) -> Any:
    """`x` with zeros between, before and after its elements in the spatial dimensions."""
    spread = np.zeros(
        (*x.shape[:2], *[dilated_size(n, d) for n, d in zip(x.shape[2:], dilation, strict=True)]),
        x.dtype,
    )
    everything: tuple[Any, ...] = (...,)
    spread[(*everything, *[slice(None, None, d) for d in dilation])] = x
    added = [(0, 0), (0, 0), *[(max(low, 0), max(high, 0)) for low, high in padding]]
    kept = [
        slice(max(-low, 0), size + low + high + max(-low, 0))
        for size, (low, high) in zip(spread.shape[2:], padding, strict=True)
    ]
    return np.pad(spread, added)[(*everything, *kept)]


def _dilated(
    numbers: ConvDimensionNumbers, lhs: Any, rhs: Any, out: Any, *dilations: Shape
) -> list[Shape]:
    """The spatial sizes of three arrays, dilated."""
    return [
        tuple([dilated_size(shape_of(x)[d], by) for d, by in zip(spec[2:], dilation, strict=True)])
        for x, spec, dilation in zip((lhs, rhs, out), numbers, dilations, strict=True)
    ]


def _regrouped(x: Any, source: int, target: int, groups: int) -> Any:
    """`x` with the groups, the outer part of one dimension, moved into another."""
    if groups == 1:
        return x
    shape = list(shape_of(x))
    shape[source] //= groups
    x = reshape(x, (*shape[:source], groups, *shape[source:]))
    shape[target] *= groups
    return reshape(move_dimension(x, source, target), tuple(shape))


def _folded(x: Any, d: int, target: int, groups: int = 1) -> Any:
    """`x` with its batch dimension `d` merged into another, outside of it or of each group in
    it."""
    x = move_dimension(x, d, target)
    shape = shape_of(x)
    before, (size, n), after = shape[:target], shape[target : target + 2], shape[target + 2 :]
    if groups > 1:
        x = reshape(x, (*before, size, groups, n // groups, *after))
        x = move_dimension(x, target, target + 1)
    return reshape(x, (*before, size * n, *after))


def _unfolded(x: Any, source: int, size: int, groups: int = 1) -> tuple[Any, int]:
    """`x` with a batch dimension split off another, and the position of that dimension."""
    shape = shape_of(x)
    before, n, after = shape[:source], shape[source] // size, shape[source + 1 :]
    if groups > 1:
        x = reshape(x, (*before, groups, size, n // groups, *after))
        x = move_dimension(x, source, source + 1)
    return reshape(x, (*before, size, n, *after)), source
