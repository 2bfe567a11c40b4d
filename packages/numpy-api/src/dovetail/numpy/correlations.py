"""Covariances, correlation coefficients, convolution and cross-correlation."""

from __future__ import annotations

import math
from typing import Any, Final

from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    convert,
    inexact_dtype,
    integer,
    literal,
    requested_dtype,
    require_kind,
    same_dtype,
    value,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.averages import computed_in
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import pick
from dovetail.numpy.contraction import contracted
from dovetail.numpy.matrices import diagonal
from dovetail.numpy.reductions import strong, summed
from dovetail.numpy.shapes import operand, reshaped
from dovetail.typing import Array, ArrayLike, DTypeLike

#: Kinds of dtypes; none can hold all numbers of the next.
_ORDER: Final = "buifc"

# ------------------------------------------------------------------------------------ covariances


@compiled_with("rowvar", "bias", "ddof", "dtype")
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariance matrix of variables that were observed together.

    Args:
        m: matrix with a row for each variable and a column for each observation; or a vector of
            observations of one variable.
        y: further variables, likewise.
        rowvar: whether the rows of matrices are the variables, rather than the columns.
        bias: whether to divide by the number n of observations instead of n - 1.
        ddof: number subtracted from n in the divisor; overrides `bias`.
        fweights: vector of integers: how often each observation counts.
        aweights: vector: the weight of each observation.
        dtype: float or complex dtype of the result.

    Returns:
        A float or complex matrix with a row and a column for each variable; a scalar for one. It is
        nan or infinite if there are no more observations than `ddof`, and nan if a weight is
        negative.

    Raises:
        TypeError: `fweights` are not integers, or `dtype` is not a float or complex dtype.
        ValueError: an array has more than two dimensions, or the numbers of observations differ.
        RuntimeError: weights are no vectors with an entry for each observation.

    Differs:
        Of floats of 16 bits it is computed in float32. With no more observations than `ddof` it
        is infinite or nan, and negative weights make it nan.

        >>> print(jnp.cov(jnp.ones(1)))
        nan

        Of no variables the dtype is that of any; so in `corrcoef`.

        >>> print(jnp.cov(jnp.ones((0, 3), "complex64")).dtype)
        complex64

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.cov(jnp.array([[0., 1., 2.], [2., 1., 0.]])))
        [[ 1. -1.]
         [-1.  1.]]
    """
    result, out = _covariances("cov", m, y, rowvar, bias, ddof, fweights, aweights, dtype)
    return convert(result, out)


@compiled_with("rowvar", "dtype")
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """The correlation coefficients of variables: covariances divided by both standard deviations.

    Args:
        x: matrix with a row for each variable and a column for each observation; or a vector of
            observations of one variable.
        y: further variables, likewise.
        rowvar: whether the rows of matrices are the variables, rather than the columns.
        dtype: float or complex dtype of the result.

    Returns:
        A float or complex matrix with a row and a column for each variable, whose real and
        imaginary parts are in [-1, 1]; a scalar for one variable. It is nan for constant variables.

    Raises:
        TypeError: `dtype` is not a float or complex dtype.
        ValueError: an array has more than two dimensions, or the numbers of observations differ.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.corrcoef(jnp.array([0., 1., 2.]), jnp.array([4., 2., 0.])))
        [[ 1. -1.]
         [-1.  1.]]
    """
    result, out = _covariances("corrcoef", x, y, rowvar, False, None, None, None, dtype)
    if not aval_of(result).shape:
        return convert(lax.div(result, result), out)
    shape, work = aval_of(result).shape, aval_of(result).dtype
    variances = plain(diagonal)(result)
    if dtypes.kind_of(work) == "c":
        variances = lax.real(variances)
    deviations = convert(lax.sqrt(variances), work)
    for dimension in (0, 1):
        result = lax.div(result, lax.broadcast_in_dim(deviations, shape, (dimension,)))
    if dtypes.kind_of(work) == "c":
        result = lax.complex(_bounded(lax.real(result)), _bounded(lax.imag(result)))
    else:
        result = _bounded(result)
    return convert(result, out)


def _bounded(x: Any) -> Any:
    dtype = aval_of(x).dtype
    return lax.clamp(literal(-1, dtype), x, literal(1, dtype))


def _variables(function: str, x: Any, argument: str, rowvar: bool) -> Any:
    """A checked argument as a matrix with a row for each variable."""
    shape = aval_of(x).shape
    if len(shape) > 2:
        raise ValueError(f"{function}: {argument} must have two dimensions at most, got {shape}")
    if len(shape) < 2:
        return reshaped(x, (1, aval_of(x).size))
    return x if rowvar else lax.transpose(x, (1, 0))


def _covariances(
    function: str,
    m: Any,
    y: Any,
    rowvar: bool,
    bias: bool,
    ddof: Any,
    fweights: Any,
    aweights: Any,
    dtype: Any,
) -> tuple[Any, Any]:
    """A covariance matrix in a sufficiently precise dtype, and the dtype it should have."""
    first = "m" if function == "cov" else "x"
    names = (first,) if y is None else (first, "y")
    operands = [array_like(x, function, name) for x, name in zip((m, y), names, strict=False)]
    arrays = [value(strong(x)) for x in same_dtype(operands)]
    out = requested_dtype(function, dtype)
    if out is None:
        out = inexact_dtype(aval_of(arrays[0]).dtype)
    elif dtypes.kind_of(out) not in ("f", "c"):
        raise TypeError(f"{function}: dtype must be one of floats or complex numbers, got {out}")
    work = computed_in(out)
    rows = [
        _variables(function, convert(x, work), name, rowvar)
        for x, name in zip(arrays, names, strict=True)
    ]
    count = aval_of(rows[0]).shape[1]
    if aval_of(rows[-1]).shape[1] != count:
        raise ShapeError(
            f"{function}: {first} and y must have equally many observations, got {count} and "
            f"{aval_of(rows[-1]).shape[1]}"
        )
    x = rows[0] if y is None else lax.concatenate(rows, 0)
    freedom = integer(function, "ddof", (0 if bias else 1) if ddof is None else ddof)
    weights, divisor = _observation_weights(fweights, aweights, freedom, count, work)
    shape = aval_of(x).shape
    if weights is None:
        counted = x
        sums = lax.div(summed(x, (1,)), literal(count, work))
    else:
        weights = convert(weights, work)
        counted = lax.mul(x, lax.broadcast_in_dim(weights, shape, (1,)))
        total = summed(weights, (0,))
        sums = summed(counted, (1,))
        sums = lax.div(sums, lax.broadcast_in_dim(total, aval_of(sums).shape, ()))
    mean = lax.broadcast_in_dim(sums, shape, (0,))
    centred = lax.sub(x, mean)
    other = centred
    if weights is not None:
        other = lax.mul(centred, lax.broadcast_in_dim(weights, shape, (1,)))
    if dtypes.kind_of(work) == "c":
        other = lax.conj(other)
    products = contracted(centred, other, ((1,), (1,)), precision="highest")
    result = lax.div(products, lax.broadcast_in_dim(divisor, aval_of(products).shape, ()))
    return (reshaped(result, ()) if shape[0] == 1 else result), out


def _observation_weights(
    fweights: Any, aweights: Any, freedom: int, count: int, work: Any
) -> tuple[Any, Any]:
    """The weight of each observation (None for 1), and the divisor of the sums of products."""
    real = dtypes.finfo(work).dtype
    zero = literal(0, real)
    factors = []
    for weights, name in ((fweights, "fweights"), (aweights, "aweights")):
        if weights is None:
            continue
        w = operand(weights, "cov", name)
        kinds, description = ("biu", "integers") if name == "fweights" else ("biuf", "real numbers")
        require_kind(f"cov: {name}", w, kinds, description)
        if aval_of(w).shape != (count,):
            raise RuntimeError(
                f"cov: {name} must be a vector with an entry for each of {count} observations, got "
                f"shape {aval_of(w).shape}"
            )
        w = value(convert(w, real))
        factors.append(pick(lax.lt(w, zero), literal(math.nan, real), w))
    if not factors:
        return None, convert(literal(max(count - freedom, 0), real), work)
    weights = factors[0] if len(factors) == 1 else lax.mul(*factors)
    total = summed(weights, (0,))
    lost = literal(freedom, real)
    if aweights is not None and freedom:
        squares = summed(lax.mul(weights, factors[-1]), (0,))
        lost = lax.div(lax.mul(lost, squares), total)
    return weights, convert(lax.max(lax.sub(total, lost), zero), work)


# ---------------------------------------------------------------------------- moving sums


@compiled_with("mode", "precision", "preferred_element_type")
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of two vectors: element k, in full, is the sum of ``a[n] * v[k - n]``.

    Unlike in NumPy, integers become floats; to sum integers, set `preferred_element_type`.

    Args:
        a: vector.
        v: vector.
        mode: "full" for all points where the vectors overlap, ``a.size + v.size - 1`` of them;
            "same" for the central part, of the size of the longer vector; "valid" for the points
            where the shorter vector lies within the longer one.
        precision: accuracy of the products: None, "default", "high", "highest", or a pair of them.
        preferred_element_type: dtype of the result, in which the products are summed.

    Returns:
        A float or complex vector of the common dtype.

    Raises:
        ValueError: an argument is not a vector or is empty, or the mode is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x, kernel = jnp.array([1., 2., 3.]), jnp.array([0., 1., 0.5])
        >>> print(jnp.convolve(x, kernel), jnp.convolve(x, kernel, mode="same"))
        [0.  1.  2.5 4.  1.5] [1.  2.5 4. ]
    """
    x, y, out = _sequences("convolve", a, v, mode, preferred_element_type)
    if aval_of(x).size < aval_of(y).size:
        x, y = y, x
    return _moved_along(x, lax.rev(y, (0,)), mode, precision, out)


@compiled_with("mode", "precision", "preferred_element_type")
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The cross-correlation of two vectors: the sums of ``a[n + k] * conj(v[n])`` for increasing k.

    Unlike in NumPy, integers become floats; to sum integers, set `preferred_element_type`.

    Args:
        a: vector.
        v: vector.
        mode: as for `convolve`.
        precision: accuracy of the products: None, "default", "high", "highest", or a pair of them.
        preferred_element_type: dtype of the result, in which the products are summed.

    Returns:
        A float or complex vector of the common dtype.

    Raises:
        ValueError: an argument is not a vector or is empty, or the mode is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([1., 2., 3.])
        >>> print(jnp.correlate(x, jnp.array([0., 1.])), jnp.correlate(x, x, mode="full"))
        [2. 3.] [ 3.  8. 14.  8.  3.]
    """
    x, y, out = _sequences("correlate", a, v, mode, preferred_element_type)
    y = lax.conj(y) if dtypes.kind_of(aval_of(y).dtype) == "c" else y
    if aval_of(x).size < aval_of(y).size:
        # Exchanged, so that the kernel is the shorter vector; the result is then reversed.
        return lax.rev(_moved_along(y, x, mode, precision, out), (0,))
    return _moved_along(x, y, mode, precision, out)


def _sequences(function: str, a: Any, v: Any, mode: Any, out: Any) -> tuple[Any, Any, Any]:
    """Two vectors of one dtype, and the dtype of the result, None for theirs."""
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{function}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    operands = [operand(a, function, "a"), operand(v, function, "v")]
    shapes = [aval_of(x).shape for x in operands]
    if any(len(s) != 1 for s in shapes):
        raise ValueError(f"{function} needs vectors, got shapes {shapes[0]} and {shapes[1]}")
    x, y = same_dtype(operands)
    if (0,) in shapes:
        raise ValueError(
            f"{function} needs vectors with one element at least, got shapes {shapes[0]} and "
            f"{shapes[1]}"
        )
    weak = weak_of(x) and weak_of(y)
    dtype, target = aval_of(x).dtype, requested_dtype(function, out)
    kind, asked = dtypes.kind_of(dtype), dtypes.kind_of(target)
    is_wide = asked in ("f", "c") and target.itemsize >= dtype.itemsize
    if kind in ("b", "i", "u") and (asked in ("i", "u") or is_wide):
        dtype = target
    else:
        dtype = inexact_dtype(dtype)
    kinds = [dtypes.kind_of(d) for d in (target or dtype, dtype)]
    if _ORDER.index(kinds[0]) < _ORDER.index(kinds[1]):
        raise TypeError(
            f"{function}: products of {dtype} cannot be summed in preferred_element_type {target}; "
            f"write {function}(...).astype({target})"
        )
    return convert(x, dtype, weak), convert(y, dtype, weak), target


def _moved_along(x: Any, kernel: Any, mode: str, precision: Any, out: Any) -> Any:
    """Sums of products of a kernel with the parts of a vector that is not shorter."""
    size, width = aval_of(x).size, aval_of(kernel).size
    before, after = {
        "full": (width - 1, width - 1),
        "same": (width // 2, (width - 1) // 2),
        "valid": (0, 0),
    }[mode]
    result = lax.conv_general_dilated(
        reshaped(x, (1, 1, size)),
        reshaped(kernel, (1, 1, width)),
        (1,),
        [(before, after)],
        precision=precision,
        preferred_element_type=out,
    )
    return reshaped(result, (size + before + after - width + 1,))
