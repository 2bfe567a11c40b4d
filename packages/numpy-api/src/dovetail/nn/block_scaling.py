"""Products of matrices in a few bits, with scales that are shared by blocks of numbers.

The formats are those of the Open Compute Project, Microscaling Formats (MX) Specification 1.0
(2023), and NVFP4, which has smaller blocks, scales with a mantissa and one scale for all. No
processor's own instructions are used: numbers are rounded to the format, and multiplied in float32.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal

import ml_dtypes
import numpy as np

import dovetail.numpy as jnp
from dovetail import custom_vjp, lax
from dovetail.errors import DTypeError, ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, requested_dtype, value
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled_with
from dovetail.typing import Array, ArrayLike, DTypeLike

#: Of matrices of shapes (B, M, K) and (B, N, K).
_ROWS = (((2,), (2,)), ((0,), (0,)))
DimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


@dataclasses.dataclass
class BlockScaleConfig:
    """How numbers are rounded by `scaled_dot_general`; `get_scaled_dot_general_config` makes it.

    Attributes:
        mode: name of the format: ``"mxfp8"``, ``"mxfp4"`` or ``"nvfp4"``.
        block_size: how many numbers along the contracted dimension share a scale.
        data_type: dtype of the numbers.
        scale_type: dtype of the scales.
        global_scale: for nvfp4, a number that all numbers are divided by before; else None.
        infer_only: whether there is no derivative.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(
    mode: Literal["nvfp4", "mxfp8", "mxfp4"], global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """A format for `scaled_dot_general`.

    Args:
        mode: ``"mxfp8"``: float8_e4m3fn in blocks of 32, ``"mxfp4"``: float4_e2m1fn in blocks of
            32, both with powers of two as scales; ``"nvfp4"``: float4_e2m1fn in blocks of 16, with
            scales in float8_e4m3fn.
        global_scale: for ``"nvfp4"``, a number that all numbers are divided by before, so that the
            greatest of them is at most ``6 * 448``; 1 if None.

    Returns:
        A config.

    Raises:
        ValueError: `mode` is not one of these.

    Example:
        >>> from dovetail import nn
        >>> nn.get_scaled_dot_general_config("mxfp8").block_size
        32
    """
    four = ml_dtypes.float4_e2m1fn
    if mode == "nvfp4":
        scale = jnp.ones((1,), "float32") if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, four, ml_dtypes.float8_e4m3fn, scale, False)
    if mode in ("mxfp8", "mxfp4"):
        data = ml_dtypes.float8_e4m3fn if mode == "mxfp8" else four
        return BlockScaleConfig(mode, 32, data, ml_dtypes.float8_e8m0fnu, None, False)
    raise ValueError(
        f"get_scaled_dot_general_config: mode must be 'nvfp4', 'mxfp8' or 'mxfp4', got {mode!r}"
    )


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Products of matrices of numbers that are multiplied by scales, one for each block of a row.

    Args:
        lhs: real numbers of shape ``(B, M, K)``, as float8_e4m3fn.
        rhs: real numbers of shape ``(B, N, K)``.
        lhs_scales: real numbers of shape ``(B, M, K / block)``, as float8_e8m0fnu.
        rhs_scales: real numbers of shape ``(B, N, K / block)``.
        preferred_element_type: dtype of the result: a float of 16 bits or more. Sums are in
            float32 at least.

    Returns:
        An array of shape ``(B, M, N)``.

    Raises:
        ValueError: shapes do not fit.
        TypeError: a dtype does not fit.

    Differs:
        Derivatives for numbers and scales in a dtype that has them are those of the formula.

        >>> x, scales = jnp.ones((1, 1, 4)), jnp.full((1, 1, 2), 2.0)
        >>> print(dt.grad(lambda x: dt.nn.scaled_matmul(x, x, scales, scales).sum())(x))
        [[[8. 8. 8. 8.]]]

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail import nn
        >>> x = jnp.ones((1, 2, 64), "float8_e4m3fn")
        >>> scales = jnp.array([[[1.0, 2.0], [0.5, 0.5]]], "float8_e8m0fnu")
        >>> print(nn.scaled_matmul(x, x, scales, scales))
        [[[160.  48.]
          [ 48.  16.]]]
    """
    name = "scaled_matmul"
    given = {"lhs": lhs, "rhs": rhs, "lhs_scales": lhs_scales, "rhs_scales": rhs_scales}
    arrays = [_array(name, x, argument) for argument, x in given.items()]
    shapes = [aval_of(x).shape for x in arrays]
    for argument, shape in zip(given, shapes, strict=True):
        if len(shape) != 3:
            raise ShapeError(f"{name}: {argument} must have three dimensions, got shape {shape}")
    x, y, u, v = shapes
    if (x[0], x[2]) != (y[0], y[2]):
        raise ShapeError(
            f"{name}: lhs and rhs must have the same first and last dimension, got {x} and {y}"
        )
    for argument, shape, scales in (("lhs", x, u), ("rhs", y, v)):
        fits = shape[:2] == scales[:2] and scales[2] and shape[2] % scales[2] == 0
        if not fits:
            raise ShapeError(
                f"{name}: {argument}_scales must have the shape of {argument}, {shape}, but for "
                f"the last dimension, whose size must divide that of {argument}, got {scales}"
            )
    if u[2] != v[2]:
        raise ShapeError(
            f"{name}: lhs_scales and rhs_scales must have the same last dimension, got {u} and {v}"
        )
    dtype = _preferred(name, preferred_element_type)
    return _scaled_matmul(arrays[0], arrays[1], arrays[2], arrays[3], dtype)


@compiled_with("dtype")
def _scaled_matmul(lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any, dtype: Any) -> Any:
    given = [x.dtype for x in (lhs, rhs, lhs_scales, rhs_scales)]
    wide = np.dtype("float64" if np.dtype("float64") in given else "float32")
    product = lax.scaled_dot(
        lhs.astype(wide),
        rhs.astype(wide),
        lhs_scale=lhs_scales,
        rhs_scale=rhs_scales,
        dimension_numbers=_ROWS,
        preferred_element_type=wide,
    )
    return product.astype(dtype)


def _product(x: Any, y: Any) -> Any:
    """Of arrays of shapes (B, M, K) and (B, N, K)."""
    return lax.dot_general(x, y, _ROWS)


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DimensionNumbers,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: Literal["cudnn"] | None = None,
) -> Array:
    """Sums of products of two arrays whose numbers are rounded to a few bits before.

    The derivative is that of a product without rounding, with the operands and what arrives from
    the result rounded in turn along the dimension that is summed over. For nvfp4 it has no rounding
    at all, and is zero for numbers beyond ``6 * 448`` times the global scale.

    Args:
        lhs: an array of real numbers.
        rhs: an array of real numbers.
        dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, as for
            `lax.dot_general`.
        preferred_element_type: dtype of the result: float32, bfloat16 or float16.
        configs: formats of `lhs`, of `rhs` and, for derivatives, of what arrives from the result:
            a list of configs of one mode. If None, nothing is rounded.
        implementation: None or ``"cudnn"``; has no effect.

    Returns:
        An array with the batch dimensions, the other dimensions of `lhs`, then those of `rhs`.

    Raises:
        ValueError: sizes do not fit, or are not multiples of the size of a block: in the
            derivative, also those of the dimensions that are not summed over.
        TypeError: a dtype or an argument is of the wrong kind.

    Differs:
        A block of zeros is zero in every format, and one with NaN in it is NaN.

        >>> config = dt.nn.get_scaled_dot_general_config("mxfp8")
        >>> numbers = (((0,), (0,)), ((), ()))
        >>> x = jnp.zeros(32)
        >>> print(dt.nn.scaled_dot_general(x, x, numbers, configs=[config] * 3))
        0.0

        The derivative has the dtype of the operand.

        >>> numbers = (((0,), (0,)), ((), ()))
        >>> x = jnp.ones(32, "bfloat16")
        >>> config = dt.nn.get_scaled_dot_general_config("nvfp4")
        >>> product = lambda x: dt.nn.scaled_dot_general(x, x, numbers, configs=[config] * 3)
        >>> print(dt.grad(product)(x).dtype)
        bfloat16

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail import nn
        >>> x = jnp.linspace(0.0, 1.0, 64)
        >>> config = nn.get_scaled_dot_general_config("mxfp8")
        >>> y = nn.scaled_dot_general(x, x, (((0,), (0,)), ((), ())), configs=[config] * 3)
        >>> bool(abs(y / (x @ x) - 1) < 0.05)
        True
    """
    name = "scaled_dot_general"
    if implementation not in (None, "cudnn"):
        raise ValueError(f"{name}: implementation must be None or 'cudnn', got {implementation!r}")
    if configs is None:
        return lax.dot_general(
            lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type
        )
    dtype = _preferred(name, preferred_element_type)
    if dtype.itemsize > 4:
        raise DTypeError(
            f"{name}: preferred_element_type must be float32, bfloat16 or float16, got {dtype}"
        )
    formats, scales = _formats(name, configs)
    x, y = _array(name, lhs, "lhs"), _array(name, rhs, "rhs")
    try:
        (left, right), (left_batch, right_batch) = (
            tuple(tuple(int(d) for d in dims) for dims in pair) for pair in dimension_numbers
        )
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: dimension_numbers must be ((lhs_contracting, rhs_contracting), (lhs_batch, "
            f"rhs_batch)), got {dimension_numbers!r}"
        ) from None
    numbers = ((left, right), (left_batch, right_batch))
    _check_contraction(name, aval_of(x).shape, aval_of(y).shape, numbers)
    size = math.prod(aval_of(x).shape[d] for d in left)
    if size == 0 or size % formats[0].block:
        raise ShapeError(
            f"{name}: the product of the sizes of the contracted dimensions must be a multiple of "
            f"the size of a block, {formats[0].block}, got {size}"
        )
    return _scaled_dot_general(x, y, scales[0], scales[1], numbers, formats, dtype)


@dataclasses.dataclass(frozen=True)
class _Format:
    mode: str
    block: int
    data: np.dtype[Any]
    scale: np.dtype[Any]

    @property
    def greatest(self) -> float:
        return float(dtypes.finfo(self.data).max)


def _formats(name: str, configs: Any) -> tuple[tuple[_Format, ...], list[Any]]:
    """What is static of the configs, and the global scales of both operands."""
    if not isinstance(configs, (list, tuple)) or len(configs) < 2:
        raise ValueError(
            f"{name}: configs must be a list of two configs, or three for derivatives, got "
            f"{configs!r}"
        )
    for config in configs:
        if not isinstance(config, BlockScaleConfig):
            raise TypeError(
                f"{name}: configs must be made by get_scaled_dot_general_config, got "
                f"{type(config).__name__}"
            )
    formats = tuple(
        _Format(c.mode, c.block_size, np.dtype(c.data_type), np.dtype(c.scale_type))
        for c in configs[:3]
    )
    if len(set(formats)) > 1:
        raise ValueError(f"{name}: configs must be of one mode, got {[f.mode for f in formats]}")
    scales = []
    for config in configs[:2]:
        given = 1.0 if config.global_scale is None else config.global_scale
        scale = jnp.asarray(array_like(given, name, "global_scale")).astype("float32")
        if scale.size != 1:
            raise ShapeError(f"{name}: global_scale must be one number, got shape {scale.shape}")
        scales.append(scale.reshape(()))
    return formats, scales


def _check_contraction(name: str, x: Any, y: Any, numbers: Any) -> None:
    for what, (left, right) in zip(("contracting", "batch"), numbers, strict=True):
        for side, dims, shape in (("lhs", left, x), ("rhs", right, y)):
            if any(not 0 <= d < len(shape) for d in dims):
                raise ShapeError(
                    f"{name}: {what} dimensions {dims} of {side} are out of bounds for shape "
                    f"{shape}"
                )
        if [x[d] for d in left] != [y[d] for d in right]:
            raise ShapeError(
                f"{name}: {what} dimensions must have the same sizes, got {left} of {x} and "
                f"{right} of {y}"
            )
    for side, i in (("lhs", 0), ("rhs", 1)):
        dims = [*numbers[0][i], *numbers[1][i]]
        if len(set(dims)) != len(dims):
            raise ShapeError(f"{name}: a dimension of {side} occurs twice, got {dims}")


@compiled_with("numbers", "formats", "dtype")
def _scaled_dot_general(
    lhs: Any, rhs: Any, lhs_scale: Any, rhs_scale: Any, numbers: Any, formats: Any, dtype: Any
) -> Any:
    (left, right), (left_batch, right_batch) = numbers
    x, kept, batch = _as_matrices(lhs, left, left_batch)
    y, also_kept, _ = _as_matrices(rhs, right, right_batch)
    out = _rounded_product(x, y, lhs_scale, rhs_scale, formats, dtype)
    return out.reshape((*batch, *kept, *also_kept))


def _as_matrices(x: Any, contracting: Any, batch: Any) -> tuple[Any, Any, Any]:
    """An array of shape (B, M, K), and the sizes that were joined to M and to B."""
    others = [d for d in range(x.ndim) if d not in contracting and d not in batch]
    sizes = [[x.shape[d] for d in dims] for dims in (batch, others, contracting)]
    turned = x.transpose(*batch, *others, *contracting)
    return turned.reshape([math.prod(s) for s in sizes]), sizes[1], sizes[0]


def _rounded(x: Any, form: _Format, scale: Any) -> Any:
    """Numbers as the format gives them, in blocks along the last dimension, in float32."""
    divided = x.astype("float32")
    if form.mode == "nvfp4":
        divided = divided / scale
    blocks = divided.reshape(*x.shape[:-1], x.shape[-1] // form.block, form.block)
    most = jnp.abs(blocks).max(-1, keepdims=True) / form.greatest
    if form.mode == "nvfp4":
        limit = float(dtypes.finfo(form.scale).max)
        factors = jnp.clip(most, 0, limit).astype(form.scale)
        factors = lax.optimization_barrier(factors).astype("float32")
        units = jnp.where(factors == 0, 0, blocks / jnp.where(factors == 0, 1, factors))
    else:
        # The next power of two, whose exponent is all that the scale has. Its quotients are exact.
        bits = lax.bitcast_convert_type(most, "uint32")
        exponent, rest = bits >> 23, bits & 0x7FFFFF
        up = jnp.where(exponent == 0, rest > 0x400000, rest > 0)
        exponent = jnp.minimum(exponent + up.astype("uint32"), 254)
        factors = lax.bitcast_convert_type(exponent << 23, "float32")
        units = blocks * lax.bitcast_convert_type((254 - exponent) << 23, "float32")
        factors = jnp.where(jnp.isfinite(most), factors, jnp.nan)
    narrow = jnp.clip(units, -form.greatest, form.greatest).astype(form.data)
    # A compiler may leave out a conversion there and back.
    wide = lax.optimization_barrier(narrow).astype("float32")
    return (wide * factors).reshape(x.shape)


def _scaled_product(x: Any, y: Any, x_scale: Any, y_scale: Any, formats: Any, dtype: Any) -> Any:
    out = _product(_rounded(x, formats[0], x_scale), _rounded(y, formats[1], y_scale))
    if formats[0].mode == "nvfp4":
        out = out * (x_scale * y_scale)
    return out.astype(dtype)


_rounded_product: Any = custom_vjp(_scaled_product, nondiff_argnums=(4, 5))


def _with_operands(
    x: Any, y: Any, x_scale: Any, y_scale: Any, formats: Any, dtype: Any
) -> tuple[Any, Any]:
    return _rounded_product(x, y, x_scale, y_scale, formats, dtype), (x, y, x_scale, y_scale)


def _backward(formats: Any, dtype: Any, saved: Any, grad: Any) -> tuple[Any, ...]:
    x, y, x_scale, y_scale = saved
    grad = grad.astype("float32")
    across = grad.swapaxes(1, 2)
    if formats[0].mode == "nvfp4":
        for_x = _product(grad, y.astype("float32").swapaxes(1, 2))
        for_y = _product(across, x.astype("float32").swapaxes(1, 2))
        most = formats[0].greatest * float(dtypes.finfo(formats[0].scale).max)
        for_x = jnp.where(jnp.abs(x) <= x_scale * most, for_x, 0)
        for_y = jnp.where(jnp.abs(y) <= y_scale * most, for_y, 0)
    else:
        if len(formats) < 3:
            raise ValueError("scaled_dot_general: a derivative needs a third config")
        block = formats[2].block
        if grad.shape[1] % block or grad.shape[2] % block:
            raise ShapeError(
                "scaled_dot_general: for derivatives the sizes of the dimensions that are not "
                f"contracted must multiply to multiples of the size of a block, {block}, got "
                f"{grad.shape[1]} of lhs and {grad.shape[2]} of rhs"
            )
        one = jnp.ones((), "float32")
        for_x = _product(
            _rounded(grad, formats[2], one), _rounded(y.swapaxes(1, 2), formats[1], one)
        )
        for_y = _product(
            _rounded(across, formats[2], one), _rounded(x.swapaxes(1, 2), formats[0], one)
        )
    zeros = (jnp.zeros_like(x_scale), jnp.zeros_like(y_scale))
    return for_x.astype(x.dtype), for_y.astype(y.dtype), *zeros


_rounded_product.defvjp(_with_operands, _backward)


def _array(name: str, x: Any, argument: str) -> Any:
    if isinstance(x, (list, tuple)):
        x = jnp.asarray(x)
    x = value(array_like(x, name, argument))
    dtype = aval_of(x).dtype
    if dtypes.kind_of(dtype) not in ("i", "u", "f"):
        raise DTypeError(f"{name}: {argument} must have a real dtype, got {dtype}")
    return x


def _preferred(name: str, given: Any) -> np.dtype[Any]:
    dtype = None if given is None else requested_dtype(name, given)
    if dtype is None or dtypes.kind_of(dtype) != "f" or dtype.itemsize < 2:
        raise DTypeError(
            f"{name}: preferred_element_type must be a floating-point dtype of 16 bits or more, "
            f"got {given!r}"
        )
    return dtype
