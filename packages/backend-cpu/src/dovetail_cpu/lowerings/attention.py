"""Attention by one kernel: products of queries and keys, and of their softmax and values.

XLA writes all scores to memory, and their softmax. The kernel computes those of some queries at a
time, and leaves out keys that none of them sees.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail.extend import ShapedArray
from dovetail.extend.lowering import dot_dimension_numbers
from dovetail_cpu import kernels
from dovetail_cpu.lowerings.differences import axes_of, is_largest, is_reduction, root
from dovetail_cpu.lowerings.elementary import constant_of, is_made_by, is_used_once
from dovetail_cpu.lowerings.matrix_products import as_it_lies, fills_vectors, is_plain, merged

_FLOAT32: Final = np.dtype(np.float32)
#: The least products of numbers in one of several.
_MANY: Final = 1 << 14
#: What uses the scores of a softmax: their largest and the differences from it; where it is a
#: kernel, it and the exponentials with their sums, too.
_USES: Final = 2
_USES_WITH_KERNEL: Final = 4


class _Product(NamedTuple):
    """Operands, the size and distances of what is summed over, and the distances of dimensions."""

    q: Any
    k: Any
    depth: int
    q_step: int
    k_step: int
    placed: list[tuple[int, int]]


class _Scores(NamedTuple):
    """What a softmax is taken of."""

    product: _Product
    scale: Any
    divides: bool
    mask: Any
    fill: float


def attention(context: Any, operands: Any, dimension_numbers: Any, precision: Any) -> Any:
    """The product of a softmax and values; NotImplemented where these are no attention."""
    (weights, values), (aval, of_values) = operands, context.avals_in
    (out,) = context.avals_out
    (over, over_v), (batch, batch_v) = dimension_numbers
    if (
        any(one.dtype != _FLOAT32 or one.symbolic for one in (aval, of_values, out))
        or tuple(over) != (aval.ndim - 1,)
        or not is_plain(precision)
        or context.divides
        or not kernels.usable(context)
        or not is_used_once(context, context.equation.invars[0])
    ):
        return NotImplemented
    scores = _scores(weights)
    if scores is None:
        return NotImplemented
    q, k, depth, q_step, k_step, placed = scores.product
    v, along_v = as_it_lies(values)
    others_v = [d for d in range(of_values.ndim) if d not in (*over_v, *batch_v)]
    columns = merged([(of_values.shape[d], along_v[d]) for d in others_v])
    mask, along_mask = _repeated(scores.mask) if scores.mask is not None else (None, None)
    if len(columns) != 1:
        return NotImplemented
    (width, v_column), keys = columns[0], aval.shape[-1]
    free = [d for d in range(aval.ndim - 1) if d not in batch]
    order = [*batch, *free]
    dimensions = []
    for i, d in enumerate(order):
        of_v = along_v[batch_v[i]] if i < len(batch) else 0
        y = prod([aval.shape[e] for e in order[i + 1 :]]) * width
        dimensions.append((aval.shape[d], *placed[d], of_v, along_mask[d] if along_mask else 0, y))
    alike = [one for one in dimensions if one[2] == one[3] == 0]
    if not alike:
        return NotImplemented
    queries, q_row, _, _, mask_row, y_row = rows = max(alike)
    if (
        queries * keys * (depth + width) < _MANY
        or not fills_vectors(queries, _FLOAT32.itemsize)
        or width < 8
    ):
        return NotImplemented
    dimensions.remove(rows)
    sizes = [queries, keys, depth, width, q_row, q_step, placed[-1][1], k_step]
    sizes += [along_v[over_v[0]], v_column, mask_row, along_mask[-1] if along_mask else 0, y_row]
    sizes += [i for one in dimensions if one[0] > 1 for i in one]
    scale = scores.scale
    number = ShapedArray((), _FLOAT32)
    scale = context.constant(1, number) if scale is None else context.reshape(scale, number)
    (result,) = kernels.call(
        context,
        kernels.ATTENTION,
        [q, k, v, scale, *([mask] if mask is not None else [])],
        [out],
        0,
        sizes=sizes,
        divides=np.bool_(scores.divides),
        fill=np.float32(scores.fill),
    )
    return result


def _is_kernel(x: Any, target: str) -> bool:
    return is_made_by(x, "custom_call") and x.owner.attributes["call_target_name"].value == target


def _unweighted(x: Any) -> Any:
    """What a value is the softmax of along its last dimension, and is for nothing else; or None."""
    last = (x.type.rank - 1,)
    if _is_kernel(x, kernels.SOFTMAX):
        (scores,), uses = x.owner.operands, _USES_WITH_KERNEL
        found = axes_of(x, x.type.rank) == last
    elif is_made_by(x, "divide"):
        (powers, total), uses = x.owner.operands, _USES
        total = root(total)
        if (
            not is_made_by(powers, "exponential")
            or not is_reduction(total, "add", last)
            or total.owner.operands[0] != powers
            or not is_made_by(powers.owner.operands[0], "subtract")
        ):
            return None
        scores, largest = powers.owner.operands[0].owner.operands
        found = is_largest(root(largest), scores, last)
    else:
        return None
    return scores if found and len(list(scores.uses)) <= uses else None


def _scores(weights: Any) -> _Scores | None:
    """What weights are the softmax of, if it is the product of an attention."""
    x = _unweighted(weights)
    if x is None:
        return None
    mask, fill = None, 0.0
    if is_made_by(x, "select"):
        mask, x, other = x.owner.operands
        constant = constant_of(root(other))
        if constant is None or mask.type.rank != x.type.rank:
            return None
        fill = constant
    scale, divides = None, is_made_by(x, "divide")
    if divides or is_made_by(x, "multiply"):
        for value, factor in (list(x.owner.operands), list(x.owner.operands)[::-1]):
            if prod(root(factor).type.shape) == 1 and not (
                divides and value != x.owner.operands[0]
            ):
                x, scale = value, root(factor)
                break
    product = _of_product(x)
    return product and _Scores(product, scale, divides, mask, fill)


def _of_product(x: Any) -> _Product | None:
    """The product that a value is, as XLA computes it or a kernel does."""
    if _is_kernel(x, kernels.PRODUCTS["float32"]):
        numbers = [int(i) for i in x.owner.attributes["backend_config"]["sizes"]]
        m, n, k, x_row, x_step, y_step, y_column, *each = numbers
        joined = [(each[i], each[i + 1], each[i + 2]) for i in range(0, len(each), 3)]
        joined += [(m, x_row, 0), (n, 0, y_column)]
        placed = []
        for size in reversed(x.type.shape):
            if size == 1:
                placed.append((0, 0))
                continue
            whole, in_x, in_y = joined.pop()
            placed.append((in_x, in_y))
            if whole > size:
                joined.append((whole // size, in_x * size, in_y * size))
        q, keys = x.owner.operands
        return _Product(q, keys, k, x_step, y_step, placed[::-1])
    if not is_made_by(x, "dot_general") or "algorithm" in x.owner.attributes:
        return None
    over, batch = (list(zip(*pair, strict=True)) for pair in dot_dimension_numbers(x.owner))
    (q, in_q), (k, in_k) = map(as_it_lies, x.owner.operands)
    sizes = x.owner.operands[0].type.shape
    summed = merged([(sizes[d], in_q[d], in_k[e]) for d, e in over])
    if len(summed) != 1:
        return None
    placed = [(in_q[d], in_k[e]) for d, e in batch]
    used = {d for d, _ in (*batch, *over)}
    placed += [(step, 0) for d, step in enumerate(in_q) if d not in used]
    used = {e for _, e in (*batch, *over)}
    placed += [(0, step) for e, step in enumerate(in_k) if e not in used]
    depth, q_step, k_step = summed[0]
    return _Product(q, k, depth, q_step, k_step, placed)


def _repeated(x: Any) -> tuple[Any, list[int]]:
    """An array whose elements a value repeats, and how far neighbours are apart in it."""
    kept: list[Any] = list(range(x.type.rank))
    while is_made_by(x, "broadcast_in_dim"):
        (source,) = x.owner.operands
        to = list(x.owner.attributes["broadcast_dimensions"])
        taken = {d: i for i, d in enumerate(to) if source.type.shape[i] == x.type.shape[d]}
        kept = [None if d is None else taken.get(d) for d in kept]
        x = source
    shape = x.type.shape
    return x, [0 if d is None else prod(shape[d + 1 :]) for d in kept]
