"""Sums of products: `dot_general`, and the matrix products built on it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import config, dtypes
from dovetail._core.base.errors import DTypeError, ShapeError
from dovetail._core.base.typing import Array, ArrayLike, DTypeLike, Sharding
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import add_tangents, convert_element_type, dtype_name
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import is_linear
from dovetail._core.ir.avals import ShapedArray, make_aval, shape_of
from dovetail._core.ir.division import Division
from dovetail._core.ir.shown_params import ShownParams, is_given
from dovetail._core.ops.calls.out_sharding import asked_division
from dovetail._core.ops.calls.out_sharding import placed as with_sharding
from dovetail._core.ops.contraction.dot_algorithms import (
    ALGORITHM_NAMES,
    DotAlgorithm,
    DotAlgorithmPreset,
    checked_algorithm,
    factor_dtypes,
    for_cotangents,
    plan,
    product_dtype,
)
from dovetail._core.ops.shape.dimensions import integers
from dovetail._core.trace.divisions import Labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Dims = tuple[int, ...]
#: ((contracting dims of lhs, of rhs), (batch dims of lhs, of rhs))
DimensionNumbers = tuple[tuple[Dims, Dims], tuple[Dims, Dims]]
#: The same as users may write it.
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


class Precision(enum.Enum):
    """How precisely float32 operands of a contraction or convolution are multiplied.

    On the CPU there is no difference. Accelerators are faster with fewer bits: DEFAULT is the
    fastest, HIGH lies between (three bfloat16 passes, or TensorFloat32), HIGHEST uses all the bits
    of float32.

    Other names: ``"fastest"`` and ``"bfloat16"`` are DEFAULT, ``"tensorfloat32"`` and
    ``"bfloat16_3x"`` are HIGH, ``"float32"`` is HIGHEST.

    Example:
        >>> from dovetail import lax
        >>> lax.Precision("float32")
        Precision.HIGHEST
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return _PRECISIONS.get(value) if value is None or isinstance(value, str) else None

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


_PRECISIONS: Final[dict[object, Precision]] = {
    None: Precision.DEFAULT,
    "default": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
}


Precisions = tuple[Precision, Precision] | None
#: Accepted as a precision.
PrecisionLike = (
    str
    | Precision
    | tuple[str, str]
    | tuple[Precision, Precision]
    | DotAlgorithm
    | DotAlgorithmPreset
    | None
)


def dot_precision(precision: Any) -> Precisions | DotAlgorithm | DotAlgorithmPreset:
    """The precisions of two operands of a contraction, an algorithm, or None.

    Args:
        precision: a value for `canonical_precision`, or a `DotAlgorithm`, a `DotAlgorithmPreset` or
            its name. None means the option ``default_matmul_precision``.

    Raises:
        TypeError: an algorithm has a dtype that is not floating point.
        ValueError: it is none of these.
    """
    requested = config.default_matmul_precision.value if precision is None else precision
    if isinstance(requested, str) and requested in ALGORITHM_NAMES:
        return ALGORITHM_NAMES[requested]
    if isinstance(requested, DotAlgorithm):
        return checked_algorithm(requested)
    if isinstance(requested, DotAlgorithmPreset):
        return requested
    return canonical_precision(precision)


def canonical_precision(precision: Any) -> Precisions:
    """The precisions of two operands, or None if none was requested.

    Args:
        precision: None, a `Precision` or its name, or a pair of these. None means the option
            ``default_matmul_precision``, unless it is an algorithm, which only contractions support
            (see `dot_precision`).

    Raises:
        ValueError: it is none of these.
    """
    asked = precision is not None
    if not asked:
        precision = config.default_matmul_precision.value
        if precision is None or precision in ALGORITHM_NAMES:
            return None
    try:
        if isinstance(precision, tuple | list):
            first, second = precision
            return Precision(first), Precision(second)
        both = Precision(precision)
    except (ValueError, TypeError):
        names = ", ".join(repr(n) for n in _PRECISIONS if n is not None)
        where = "" if asked else " (from the option default_matmul_precision)"
        raise ValueError(
            f"precision must be None, a lax.Precision, one of {names}, or a pair of these (or, for "
            f"products of matrices, a lax.DotAlgorithmPreset, its name or a lax.DotAlgorithm), got "
            f"{precision!r}{where}"
        ) from None
    return both, both


def free_dimensions(rank: int, contracting: Dims, batch: Dims) -> Dims:
    """The dimensions of an operand that the result keeps, except batch dimensions."""
    return tuple([i for i in range(rank) if i not in contracting and i not in batch])


def contracted_aval(
    name: str, x: Any, y: Any, dimension_numbers: DimensionNumbers, preferred_element_type: Any
) -> ShapedArray:
    """The aval of a contraction of two avals by the primitive `name`.

    Raises:
        TypeError: the dimensions or the dtypes are incompatible.
    """
    (xc, yc), (xb, yb) = dimension_numbers
    _check_dimensions(name, "lhs", x, xc, xb)
    _check_dimensions(name, "rhs", y, yc, yb)
    for kind, xs, ys in (("contracting", xc, yc), ("batch", xb, yb)):
        first, second = ([a.shape[d] for d in dims] for a, dims in ((x, xs), (y, ys)))
        if first != second:
            raise TypeError(
                f"{name} requires {kind} dimensions of equal sizes: those of lhs, of shape "
                f"{x.shape}, are {xs} of sizes {tuple(first)}; those of rhs, of shape {y.shape}, "
                f"are {ys} of sizes {tuple(second)}"
            )
    shape = (
        *[x.shape[d] for d in xb],
        *[x.shape[d] for d in free_dimensions(x.ndim, xc, xb)],
        *[y.shape[d] for d in free_dimensions(y.ndim, yc, yb)],
    )
    dtype, weak = product_dtype(x, y)
    if preferred_element_type is not None:
        _check_preferred(name, dtype, preferred_element_type)
        dtype, weak = preferred_element_type, False
    return make_aval(shape, dtype, weak)


def _check_dimensions(
    name: str, side: str, aval: ShapedArray, contracting: Dims, batch: Dims
) -> None:
    if not dtypes.kind_of(aval.dtype):
        raise DTypeError(f"{name} does not accept dtype {dtype_name(aval.dtype)} of {side}")
    both = (*contracting, *batch)
    if len(set(both)) != len(both):
        raise TypeError(
            f"{name}: contracting dimensions {contracting} and batch dimensions {batch} of {side} "
            "must all be different"
        )
    if not all(0 <= d < aval.ndim for d in both):
        raise TypeError(
            f"{name}: contracting dimensions {contracting} and batch dimensions {batch} of {side} "
            f"must be dimensions of its shape {aval.shape}, not negative"
        )


def _check_preferred(name: str, dtype: Any, preferred: Any) -> None:
    order = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    old, new = dtypes.kind_of(dtype), dtypes.kind_of(preferred)
    if not new or order[new] < order[old]:
        raise TypeError(
            f"{name}: products of {dtype_name(dtype)} cannot be summed in preferred_element_type "
            f"{dtype_name(preferred)}: it loses what they are"
        )
    narrower = dtypes.itemsize_bits(preferred) < dtypes.itemsize_bits(dtype)
    if old in "iu" and new in "iu" and narrower:
        raise TypeError(
            f"{name}: preferred_element_type {dtype_name(preferred)} is narrower than "
            f"{dtype_name(dtype)}, so sums would overflow"
        )


def batched_numbers(
    numbers: DimensionNumbers, x_rank: int, y_rank: int, d: int | None, e: int | None
) -> tuple[DimensionNumbers, int]:
    """The dimension numbers of operands with an added batch dimension, and that of the result.

    Args:
        numbers: those of the operands without it.
        x_rank: rank of the left operand, including its batch dimension.
        y_rank: rank of the right operand, including its batch dimension.
        d: the batch dimension of the left operand, if it has one.
        e: the batch dimension of the right operand, if it has one.
    """
    (xc, yc), (xb, yb) = numbers
    if d is not None:
        xc, xb = (tuple([i + (i >= d) for i in group]) for group in (xc, xb))
    if e is not None:
        yc, yb = (tuple([i + (i >= e) for i in group]) for group in (yc, yb))
    if d is not None and e is not None:
        xb, yb, place = (d, *xb), (e, *yb), 0
    elif d is not None:
        place = len(xb) + free_dimensions(x_rank, xc, xb).index(d)
    else:
        assert e is not None
        x_free, y_free = free_dimensions(x_rank, xc, xb), free_dimensions(y_rank, yc, yb)
        place = len(xb) + len(x_free) + y_free.index(e)
    return ((xc, yc), (xb, yb)), place


class DotGeneral(Primitive):
    """Sums of products over contracting dimensions, for each index of batch and free dimensions.

    The result has the batch dimensions, the free dimensions of the left operand, and those of the
    right.
    """

    name = "dot_general"
    linear_in: ClassVar[Sequence[slice]] = (slice(1), slice(1, 2))
    sharding_parameter: ClassVar[str] = "out_sharding"
    accepts_zeros = True
    shown_params: ClassVar[ShownParams] = {
        "precision": is_given,
        "preferred_element_type": is_given,
        "out_sharding": is_given,
    }

    def abstract(
        self,
        x: Any,
        y: Any,
        *,
        dimension_numbers: DimensionNumbers,
        precision: Any,
        preferred_element_type: Any,
        out_sharding: Any = None,
    ) -> Any:
        return contracted_aval(self.name, x, y, dimension_numbers, preferred_element_type)

    def labels(
        self,
        avals: Sequence[Any],
        results: Sequence[Any],
        *,
        dimension_numbers: DimensionNumbers,
        **params: Any,
    ) -> Labels:
        x, y = ([(side, d) for d in range(a.ndim)] for side, a in zip("xy", avals, strict=True))
        (xc, yc), (xb, yb) = dimension_numbers
        x_free = [x[d] for d in free_dimensions(len(x), xc, xb)]
        y_free = [y[d] for d in free_dimensions(len(y), yc, yb)]
        for i, j in zip((*xc, *xb), (*yc, *yb), strict=True):
            y[j] = x[i]
        result = [*[x[d] for d in xb], *x_free, *y_free]
        return Labels([x, y], [result], ambiguous=frozenset([x[d] for d in xc]))

    def reference(self, x: Any, y: Any, **params: Any) -> Any:
        x, y = np.asarray(x), np.asarray(y)
        out = self.abstract(make_aval(x.shape, x.dtype), make_aval(y.shape, y.dtype), **params)
        (xc, yc), (xb, yb) = params["dimension_numbers"]
        wide = np.float64 if dtypes.kind_of(out.dtype) == "f" else out.dtype
        x_names, y_names = list(range(x.ndim)), list(range(x.ndim, x.ndim + y.ndim))
        for i, j in zip((*xc, *xb), (*yc, *yb), strict=True):
            y_names[j] = x_names[i]
        names = [
            *[x_names[d] for d in xb],
            *[x_names[d] for d in free_dimensions(x.ndim, xc, xb)],
            *[y_names[d] for d in free_dimensions(y.ndim, yc, yb)],
        ]
        product = np.einsum(x.astype(wide), x_names, y.astype(wide), y_names, names)
        return np.asarray(product).astype(out.dtype)

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

    def transpose(
        self,
        ct: Any,
        x: Any,
        y: Any,
        *,
        dimension_numbers: DimensionNumbers,
        precision: Any,
        **params: Any,
    ) -> Sequence[Any]:
        (xc, yc), (xb, yb) = dimension_numbers
        params["precision"] = for_cotangents(precision, dtypes.dtype_of(ct))
        params["out_sharding"] = None
        x_rank, y_rank = len(shape_of(x)), len(shape_of(y))
        x_free = free_dimensions(x_rank, xc, xb)
        y_free = free_dimensions(y_rank, yc, yb)
        batch = tuple(range(len(xb)))
        split = len(xb) + len(x_free)
        if is_linear(x):
            ct_y = tuple(range(split, split + len(y_free)))
            out = self.bind(ct, y, dimension_numbers=((ct_y, y_free), (batch, yb)), **params)
            # The remaining dimensions of y are its contracting dimensions, in order.
            order = (*xb, *x_free, *[xc[yc.index(d)] for d in sorted(yc)])
            return convert_element_type(placed(out, order), x.dtype), None
        ct_x = tuple(range(len(xb), split))
        out = self.bind(x, ct, dimension_numbers=((x_free, ct_x), (xb, batch)), **params)
        order = (*yb, *[yc[xc.index(d)] for d in sorted(xc)], *y_free)
        return None, convert_element_type(placed(out, order), y.dtype)

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        dimension_numbers: DimensionNumbers,
        **params: Any,
    ) -> tuple[Any, Any]:
        x, y = args
        numbers, place = batched_numbers(
            dimension_numbers, len(shape_of(x)), len(shape_of(y)), dims[0], dims[1]
        )
        wanted = params.get("out_sharding")
        if wanted is not None:
            batched, dim = (x, dims[0]) if dims[0] is not None else (y, dims[1])
            params["out_sharding"] = structural.batched_division(wanted, batched, place, dim or 0)
        return self.bind(x, y, dimension_numbers=numbers, **params), place

    def lower(
        self,
        context: Builder,
        x: Any,
        y: Any,
        *,
        dimension_numbers: DimensionNumbers,
        precision: Any,
        preferred_element_type: Any,
        out_sharding: Any = None,
    ) -> Any:
        (a, b), (out,) = context.avals_in, context.avals_out
        (xc, yc), (xb, yb) = dimension_numbers
        common, _ = product_dtype(a, b)
        result = out
        if dtypes.kind_of(common) != dtypes.kind_of(out.dtype):
            # For example integers summed as floats, or reals as complex numbers.
            common = out.dtype
        elif common.itemsize > out.dtype.itemsize:
            result = out.update(dtype=common)
        attributes = {
            "dot_dimension_numbers": context.dot_dimension_numbers(
                lhs_contracting=xc, rhs_contracting=yc, lhs_batching=xb, rhs_batching=yb
            )
        }
        if isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
            kinds = {dtypes.kind_of(d) for d in (a.dtype, b.dtype, out.dtype)}
            if kinds == {"f"} and precision is not DotAlgorithmPreset.DEFAULT:
                chosen = plan(context, precision, a.dtype, b.dtype)
                x = context.convert(x, a, a.update(dtype=chosen.lhs))
                y = context.convert(y, b, b.update(dtype=chosen.rhs))
                attributes["algorithm"] = chosen.attribute
                result = out.update(dtype=chosen.out)
                product = context.op("dot_general", [x, y], result, attributes)
                return context.convert(product, result, out)
            precision = None
        # Operands of one dtype may be narrower than the sum; different dtypes have to be converted.
        if a.dtype != b.dtype or dtypes.kind_of(a.dtype) != dtypes.kind_of(common):
            for_x, for_y = factor_dtypes(a.dtype, b.dtype, common)
            x = context.convert(x, a, a.update(dtype=for_x))
            y = context.convert(y, b, b.update(dtype=for_y))
        attributes["precision_config"] = context.precision(precision)
        product = context.op("dot_general", [x, y], result, attributes)
        return context.convert(product, result, out)


dot_general_p: Final = DotGeneral()


def placed(x: Any, order: Dims) -> Any:
    """`x` transposed: dimension i becomes dimension ``order[i]``."""
    return structural.transpose(x, tuple([order.index(i) for i in range(len(order))]))


# Public functions


def canonical_dimension_numbers(
    numbers: Any, function: str, argument: str = "dimension_numbers"
) -> DimensionNumbers:
    """The dimension numbers of a contraction as tuples.

    Raises:
        TypeError: they are not sequences of integers in this form.
    """
    try:
        (xc, yc), (xb, yb) = numbers
    except (TypeError, ValueError):
        raise ShapeError(
            f"lax.{function}: {argument} must be ((lhs_contracting, rhs_contracting), (lhs_batch, "
            f"rhs_batch)), four sequences of integers, got {numbers!r}"
        ) from None
    return (
        (integers(xc, function, argument), integers(yc, function, argument)),
        (integers(xb, function, argument), integers(yb, function, argument)),
    )


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Sums of products of two arrays over some of their dimensions.

    Args:
        lhs: an array.
        rhs: an array. Operands of different dtypes are multiplied in their common promoted dtype.
        dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, four
            sequences of dimensions. Contracting dimensions are paired in order and summed over;
            batch dimensions are paired and kept.
        precision: None, a `Precision` or its name, or one for each operand; or a `DotAlgorithm`, a
            `DotAlgorithmPreset` or its name.
        preferred_element_type: dtype of the sums and of the result.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`; as the operands are if None. With ``unreduced`` the sum over
            the devices is not added up, along the axes that both operands are divided over.

    Returns:
        An array with the batch dimensions, the other dimensions of `lhs`, then those of `rhs`.

    Raises:
        TypeError: sizes of paired dimensions differ, or an argument is of the wrong kind.
        ValueError: `precision` is not a known precision.

    Differs:
        Algorithms (``precision="BF16_BF16_F32"`` and others) are for floats: integers and
        complex numbers are multiplied as ever, where JAX cuts them. Each backend's compiler
        decides which it has; XLA:CPU takes all, and is at least as exact.

        >>> z = jnp.array([1 + 2**-12 + 0j])
        >>> print(lax.dot(z, jnp.ones(1, z.dtype), precision="BF16_BF16_F32") == z[0])
        True

        Operands promote as elsewhere: weakly typed ones give way. A dtype that cannot hold the
        products is refused as that of the result.

        >>> print(lax.dot(jnp.ones(2, "float16"), jnp.full(2, 1.0)).dtype)
        float16
        >>> lax.dot(jnp.ones(2), jnp.ones(2), preferred_element_type="int8")
        Traceback (most recent call last):
            ...
        TypeError: dot_general: products of float32 cannot be summed in ...

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> x = np.arange(6.0).reshape(2, 3)
        >>> lax.dot_general(x, x, (((1,), (1,)), ((), ()))).tolist()
        [[5.0, 14.0], [14.0, 50.0]]
    """
    if preferred_element_type is not None:
        preferred_element_type = dtypes.check_user_dtype(preferred_element_type, "lax.dot_general")
    x, y = (
        as_operand(operand, "lax.dot_general", name)
        for operand, name in ((lhs, "lhs"), (rhs, "rhs"))
    )
    numbers = canonical_dimension_numbers(dimension_numbers, "dot_general")
    wanted = None
    if out_sharding is not None:
        (summed, _), (batch, _) = numbers
        rank = len(shape_of(x)) + len(shape_of(y)) - 2 * len(summed) - len(batch)
        wanted = asked_division("lax.dot_general", out_sharding, rank, sums=True)
    product = multiplied(
        x,
        y,
        dimension_numbers=numbers,
        wanted=wanted,
        precision=dot_precision(precision),
        preferred_element_type=preferred_element_type,
    )
    if wanted is not None and wanted.unreduced:
        return product
    return with_sharding("lax.dot_general", product, out_sharding)


def multiplied(
    x: Any,
    y: Any,
    *,
    dimension_numbers: DimensionNumbers,
    wanted: Division | None,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    """`dot_general` of checked arguments.

    Args:
        x: the left operand.
        y: the right operand.
        dimension_numbers: as `dot_general` takes them.
        wanted: what is asked of how the result is divided, or that it is unreduced; None if
            nothing is.
        precision: what `dot_precision` returns.
        preferred_element_type: the dtype of the result.
    """

    def bound(x: Any, y: Any, out_sharding: Division | None) -> Any:
        return dot_general_p.bind(
            x,
            y,
            dimension_numbers=dimension_numbers,
            out_sharding=out_sharding,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )

    if wanted is None or not wanted.unreduced:
        return bound(x, y, wanted)
    from dovetail._core.ops.parallel.parts_of_sums import sum_of_parts  # deferred: seldom needed

    return sum_of_parts("dot_general", bound, (x, y), dimension_numbers[0], wanted)


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """The product of two matrices, of a matrix and a vector, or of two vectors.

    Args:
        lhs: an array of rank 1 or 2.
        rhs: an array of rank 1 or 2.
        dimension_numbers: as for `dot_general`, to which the call is then equivalent.
        precision: None, a `Precision` or its name, or one for each operand; or a `DotAlgorithm`, a
            `DotAlgorithmPreset` or its name.
        preferred_element_type: dtype of the sums and of the result.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`; as the operands are if None. With ``unreduced`` the sum over
            the devices is not added up, along the axes that both operands are divided over.

    Returns:
        An array.

    Raises:
        TypeError: the sizes are incompatible, or the ranks are unsupported and there are no
            dimension numbers.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.dot(np.ones((2, 3)), np.ones(3)).tolist()
        [3.0, 3.0]
    """
    lhs, rhs = as_operand(lhs, "lax.dot", "lhs"), as_operand(rhs, "lax.dot", "rhs")
    if dimension_numbers is None:
        x, y = shape_of(lhs), shape_of(rhs)
        if len(x) not in (1, 2) or len(y) not in (1, 2) or x[-1] != y[0]:
            raise ShapeError(
                f"lax.dot: operands of shapes {x} and {y} are no matrices or vectors of which the "
                "last size of the first is the first size of the second; give dimension_numbers, "
                "or use dovetail.numpy.matmul for stacks of matrices"
            )
        dimension_numbers = (((len(x) - 1,), (0,)), ((), ()))
    return dot_general(
        lhs,
        rhs,
        dimension_numbers,
        precision,
        preferred_element_type,
        out_sharding=out_sharding,
    )


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Products of stacks of matrices.

    Args:
        lhs: an array of shape ``(*batch, m, k)``.
        rhs: an array of shape ``(*batch, k, n)``.
        precision: None, a `Precision` or its name, or one for each operand; or a `DotAlgorithm`, a
            `DotAlgorithmPreset` or its name.

    Returns:
        An array of shape ``(*batch, m, n)``.

    Raises:
        TypeError: the shapes are incompatible.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
        (5, 2, 4)
    """
    lhs = as_operand(lhs, "lax.batch_matmul", "lhs")
    rhs = as_operand(rhs, "lax.batch_matmul", "rhs")
    x, y = shape_of(lhs), shape_of(rhs)
    if len(x) < 2 or len(x) != len(y):
        raise ShapeError(
            "lax.batch_matmul: operands must have one rank, of at least 2, got shapes "
            f"{x} and {y}; dovetail.numpy.matmul broadcasts"
        )
    batch = tuple(range(len(x) - 2))
    numbers = (((len(x) - 1,), (len(x) - 2,)), (batch, batch))
    return dot_general(lhs, rhs, numbers, precision)
