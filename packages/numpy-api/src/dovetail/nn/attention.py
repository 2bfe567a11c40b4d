"""Scaled dot-product attention."""

from __future__ import annotations

import math
from functools import reduce
from operator import and_
from typing import Any, Literal, overload

import numpy as np

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import DTypeError, ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, integer, value
from dovetail.extend.avals import aval_of
from dovetail.nn.normalisation import logsumexp, softmax
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.typing import Array, ArrayLike

_NAME = "dot_product_attention"

#: What stands for a score that is masked. It is finite, so that a row without any other has equal
#: weights in place of nan, and so that adding to it does not overflow.
_MASKED = -0.7 * float(np.finfo(np.float32).max)


@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: Literal[False] = False,
) -> Array: ...
@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: Literal[True],
) -> tuple[Array, Array]: ...
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, Array]:
    """Means of values, weighted by how well keys match queries: ``softmax(q @ k.T * scale) @ v``.

    Vaswani et al., Attention Is All You Need (2017). Heads of queries can share those of keys and
    values (Ainslie et al., GQA, 2023): each is used by ``N / K`` heads of queries in turn. Scores
    and their softmax are computed in float32 at least.

    Args:
        query: floats of shape ``(B, T, N, H)``, or ``(T, N, H)`` without a batch.
        key: floats of shape ``(B, S, K, H)`` or ``(S, K, H)``; N is a multiple of K.
        value: floats of the shape of `key`. All three have one dtype.
        bias: numbers that are added to the scores; they broadcast to ``(B, N, T, S)``.
        mask: booleans that broadcast to ``(B, N, T, S)``: which keys a query sees.
        scale: factor of the scores, a scalar; ``1 / sqrt(H)`` if None.
        is_causal: whether a query sees only keys up to its own position.
        query_seq_lengths: integers of shape ``(B,)``: how many queries of each sequence count; the
            others give zeros.
        key_value_seq_lengths: integers of shape ``(B,)``: how many keys of each sequence are seen.
        local_window_size: how many positions before and after its own a query sees: a pair, or one
            number for both; all if None.
        implementation: None or ``"xla"``; ``"cudnn"`` is not supported.
        return_residual: whether to return the logarithms of the sums of exponentials of the scores,
            too, which have no gradient.

    Returns:
        An array of the shape and dtype of `query`, or a pair of it and one of shape ``(B, T, N)``
        or ``(T, N)``. A query that sees no key gets the mean of all values.

    Raises:
        ValueError: shapes or dtypes do not fit, or `implementation` is unknown.
        TypeError: an array has a dtype that is not supported, or `scale` is no number.
        NotImplementedError: `implementation` is ``"cudnn"``.

    Differs:
        In float64 the softmax is one of float64, too.

        >>> with dt.enable_x64(True):
        ...     x = jnp.array([[[0.0]], [[1.0]]], "float64")
        ...     y = dt.nn.dot_product_attention(x, x, x)[1, 0, 0]
        ...     print(abs(y - 1 / (1 + np.exp(-1))) < 1e-15)
        True

        Integers and complex numbers are refused: their weights would be cut to integers, or to real
        numbers.

        >>> try:
        ...     dt.nn.dot_product_attention(*[jnp.ones((2, 1, 1), "int32")] * 3)
        ... except TypeError as error:
        ...     print(error)
        dot_product_attention: query must have a floating-point dtype of 16 bits or more, ...

        What stands in queries beyond their length does not reach the result, NaN included.

        >>> x = jnp.array([[[0.0]], [[jnp.nan]]])
        >>> y = dt.nn.dot_product_attention(x, x[:1], x[:1], query_seq_lengths=jnp.array([1]))
        >>> print(y.ravel())
        [0. 0.]

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([1.0, 2.0, 6.0]).reshape(3, 1, 1)
        >>> print(dovetail.nn.dot_product_attention(0 * x, x, x, is_causal=True).ravel())
        [1.  1.5 3. ]
    """
    if implementation == "cudnn":
        raise NotImplementedError(
            f"{_NAME}: implementation 'cudnn' is not supported on any platform; use 'xla' or None"
        )
    if implementation not in (None, "xla"):
        raise ValueError(
            f"{_NAME}: implementation must be None, 'xla' or 'cudnn', got {implementation!r}"
        )
    q, k, v = _operand(query, "query"), _operand(key, "key"), _operand(value, "value")
    _check_operands(aval_of(q), aval_of(k), aval_of(v))
    batched = aval_of(q).ndim == 4
    if not batched:
        q, k, v = q[None], k[None], v[None]
    batch, queries, heads = aval_of(q).shape[:3]
    scores = (batch, heads, queries, aval_of(k).shape[1])
    if bias is not None:
        bias = _spread(bias, "bias", scores)
        if dtypes.kind_of(aval_of(bias).dtype) == "c":
            raise DTypeError(f"{_NAME}: bias must be real, got dtype {aval_of(bias).dtype}")
    if mask is not None:
        mask = _spread(mask, "mask", scores)
        if aval_of(mask).dtype != np.dtype(bool):
            raise DTypeError(f"{_NAME}: mask must be boolean, got dtype {aval_of(mask).dtype}")
    if scale is None:
        scale = 1 / math.sqrt(aval_of(q).shape[3] or 1)
    elif aval_of(array_like(scale, _NAME, "scale")).shape:
        shape = aval_of(array_like(scale, _NAME, "scale")).shape
        raise ShapeError(f"{_NAME}: scale must be a scalar, got shape {shape}")
    out = _attention(
        q,
        k,
        v,
        bias,
        mask,
        scale,
        _lengths(query_seq_lengths, "query_seq_lengths", batch),
        _lengths(key_value_seq_lengths, "key_value_seq_lengths", batch),
        bool(is_causal),
        _window(local_window_size),
        bool(return_residual),
    )
    if not batched:
        out = tuple(x[0] for x in out)
    return out if return_residual else out[0]


def _array(x: Any, name: str) -> Any:
    if isinstance(x, (list, tuple)):
        x = jnp.asarray(x)
    return value(array_like(x, _NAME, name))


def _operand(x: Any, name: str) -> Any:
    x = _array(x, name)
    aval = aval_of(x)
    if dtypes.kind_of(aval.dtype) != "f" or aval.dtype.itemsize < 2:
        raise DTypeError(
            f"{_NAME}: {name} must have a floating-point dtype of 16 bits or more, got {aval.dtype}"
        )
    if aval.ndim not in (3, 4):
        raise ShapeError(f"{_NAME}: {name} must have 3 or 4 dimensions, got shape {aval.shape}")
    return x


def _check_operands(query: Any, key: Any, value: Any) -> None:
    for name, other in (("query", query), ("value", value)):
        if other.dtype != key.dtype:
            raise DTypeError(
                f"{_NAME}: {name} must have the dtype of key, {key.dtype}, got {other.dtype}"
            )
    if value.shape != key.shape:
        raise ShapeError(
            f"{_NAME}: value must have the shape of key, {key.shape}, got {value.shape}"
        )
    fits = query.ndim == key.ndim and query.shape[-1] == key.shape[-1]
    if not fits or query.shape[:-3] != key.shape[:-3]:
        raise ShapeError(
            f"{_NAME}: query must have the batch and the last dimension of key, got shapes "
            f"{query.shape} and {key.shape}"
        )
    if key.shape[-2] == 0 or query.shape[-2] % key.shape[-2]:
        raise ShapeError(
            f"{_NAME}: the number of heads of query, {query.shape[-2]}, must be a multiple of that "
            f"of key and value, {key.shape[-2]}"
        )


def _spread(x: Any, name: str, scores: tuple[int, ...]) -> Any:
    """A bias or mask with four dimensions, each of size one or that of the scores."""
    x = _array(x, name)
    shape = aval_of(x).shape
    padded = (1,) * (4 - len(shape)) + shape
    if len(padded) != 4 or any(n not in (1, m) for n, m in zip(padded, scores, strict=True)):
        raise ShapeError(f"{_NAME}: {name} must broadcast to the shape {scores}, got {shape}")
    return x.reshape(padded)


def _lengths(x: Any, name: str, batch: int) -> Any:
    if x is None:
        return None
    x = _array(x, name)
    aval = aval_of(x)
    if dtypes.kind_of(aval.dtype) not in ("i", "u"):
        raise DTypeError(f"{_NAME}: {name} must have an integer dtype, got {aval.dtype}")
    if aval.shape != (batch,):
        raise ShapeError(f"{_NAME}: {name} must have the shape {(batch,)}, got {aval.shape}")
    return x


def _window(size: Any) -> tuple[int, int] | None:
    if size is None:
        return None
    sides = size if isinstance(size, (tuple, list)) else (size, size)
    if len(sides) != 2:
        raise ValueError(f"{_NAME}: local_window_size must be an integer or two, got {size!r}")
    before, after = (integer(_NAME, "local_window_size", n) for n in sides)
    return before, after


@compiled_with("causal", "window", "residual")
def _attention(
    query: Any,
    key: Any,
    values: Any,
    bias: Any,
    mask: Any,
    scale: Any,
    query_lengths: Any,
    key_lengths: Any,
    causal: bool,
    window: tuple[int, int] | None,
    residual: bool,
) -> tuple[Any, ...]:
    """Attention of checked operands in four dimensions. Scores have the dimensions batch, head of
    keys, query, head of queries for that of keys, key."""
    batch, queries, heads, size = query.shape
    keys, shared = key.shape[1:3]
    groups = heads // shared
    dtype = query.dtype
    wide = dtypes.common_dtype(dtype, np.dtype("float32"))
    grouped = query.reshape(batch, queries, shared, groups, size)
    scores = lax.dot_general(
        grouped, key, (((4,), (3,)), ((0, 2), (0, 2))), preferred_element_type=wide
    )
    scores = scores * jnp.asarray(scale, wide)

    def arranged(x: Any) -> Any:
        """From batch, head, query, key."""
        split = (shared, groups) if x.shape[1] == heads else (1, 1)
        return x.reshape(x.shape[0], *split, *x.shape[2:]).transpose(0, 1, 3, 2, 4)

    if bias is not None:
        scores = scores + arranged(bias).astype(wide)
    seen = [] if mask is None else [arranged(mask)]
    rows = jnp.arange(queries).reshape(-1, 1, 1)
    columns = jnp.arange(keys)
    if causal:
        seen.append(columns <= rows)
    if window is not None:
        before, after = window
        seen.append((columns >= rows - before) & (columns <= rows + after))
    counts = None
    if query_lengths is not None:
        counts = rows < query_lengths.reshape(-1, 1, 1, 1, 1)
        seen.append(counts)
    if key_lengths is not None:
        seen.append(columns < key_lengths.reshape(-1, 1, 1, 1, 1))
    if seen:
        scores = jnp.where(reduce(and_, seen), scores, jnp.asarray(_MASKED, wide))
    logs = lax.stop_gradient(plain(logsumexp)(scores, -1)).astype(dtype) if residual else None
    weights = plain(softmax)(scores, -1).astype(dtype)
    out = lax.dot_general(
        weights, values, (((4,), (1,)), ((0, 1), (0, 2))), preferred_element_type=dtype
    )
    if counts is not None:
        out = jnp.where(counts, out, jnp.zeros((), dtype))
    result = out.transpose(0, 2, 1, 3, 4).reshape(query.shape)
    if logs is None:
        return (result,)
    return result, logs.transpose(0, 2, 1, 3).reshape(batch, queries, heads)
