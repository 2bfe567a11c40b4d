"""Parts of BCOO arrays: slices at places that are known or not, and gathers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo_elements import require_bcoo
from dovetail.experimental.sparse.bcoo_layouts import relaid, transposed
from dovetail.experimental.sparse.bcoo_order import fitted, full
from dovetail.experimental.sparse.bcoo_shapes import squeezed, with_columns
from dovetail.experimental.sparse.coordinates import Coordinates
from dovetail.extend.arguments import canonical_shape, counted
from dovetail.extend.avals import aval_of
from dovetail.typing import ArrayLike

C = TypeVar("C", bound=Coordinates)
Shape = tuple[int, ...]


def bcoo_slice(
    mat: C,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> C:
    """A part of a BCOO array, as `lax.slice` takes it of a dense one.

    Args:
        mat: a BCOO array.
        start_indices: for each dimension where the part begins.
        limit_indices: for each dimension where it ends.
        strides: for each dimension the step; by default 1.

    Returns:
        A BCOO array, with no more places than `mat`, and none more than positions.

    Raises:
        TypeError: a bound does not fit.

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.bcoo_slice(sparse.eye(3), start_indices=(1, 0), limit_indices=(3, 3))
        >>> mat.todense()
        Array([[0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    require_bcoo("bcoo_slice", "mat", mat)
    starts, limits = _integers(start_indices), _integers(limit_indices)
    steps = (1,) * mat.ndim if strides is None else _integers(strides)
    if not len(starts) == len(limits) == len(steps) == mat.ndim or not all(
        0 <= a <= b <= n and s > 0
        for a, b, n, s in zip(starts, limits, mat.shape, steps, strict=True)
    ):
        raise TypeError(
            f"bcoo_slice: start_indices {starts}, limit_indices {limits} and strides {steps} do "
            f"not fit an array of shape {mat.shape}: each needs one element for each dimension, "
            "with 0 <= start <= limit <= size and stride >= 1"
        )
    return sliced(mat, starts, limits, steps)


def _integers(values: Sequence[int]) -> Shape:
    return tuple(int(v) for v in values)


def sliced(mat: C, starts: Shape, limits: Shape, steps: Shape) -> C:
    """A part at known places."""
    layout = mat.layout
    n_batch, n_sparse = layout.n_batch, layout.n_sparse
    shape = tuple(-(-(b - a) // s) for a, b, s in zip(starts, limits, steps, strict=True))
    data, indices = mat.data, mat.indices
    for x, keep in ((data, True), (indices, False)):
        cut = [
            slice(a, b, s) if x.shape[d] != 1 or layout.shape[d] == 1 or a == b else slice(None)
            for d, (a, b, s) in enumerate(zip(starts, limits, steps, strict=True))
            if d < n_batch
        ]
        if keep:
            last = n_batch + n_sparse
            cut.append(slice(None))
            ends = zip(starts[last:], limits[last:], steps[last:], strict=True)
            cut += [slice(a, b, s) for a, b, s in ends]
            data = _cut(data, cut)
        else:
            indices = _cut(indices, cut)
    flags = {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}
    part = mat.like(
        data,
        indices,
        (*shape[:n_batch], *layout.sparse, *shape[n_batch + n_sparse :]),
        **flags,
    )
    sparse = range(n_batch, n_batch + n_sparse)
    if all((starts[d], limits[d], steps[d]) == (0, mat.shape[d], 1) for d in sparse):
        return part
    used, columns = part.used, []
    for i, d in enumerate(sparse):
        column = part.indices[..., i]
        used &= (column >= starts[d]) & (column < limits[d])
        place = column - np.array(starts[d], column.dtype)
        if steps[d] > 1:
            step = jnp.full_like(place, steps[d])
            used &= lax.rem(place, step) == 0
            place = lax.div(place, step)
        columns.append(place)
    sizes = [shape[d] for d in sparse]
    unique = mat.unique_indices
    return fitted(with_columns(part, columns, sizes, shape, used, unique_indices=unique))


def _cut(x: Any, cut: Sequence[slice]) -> Any:
    if all(c == slice(None) for c in cut):
        return x
    return x[tuple(cut)]


def bcoo_dynamic_slice(mat: C, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> C:
    """A part of a BCOO array whose place may be traced, as `lax.dynamic_slice` takes it.

    Args:
        mat: a BCOO array.
        start_indices: for each dimension where the part begins, integers. They are moved so that
            the part is inside.
        slice_sizes: for each dimension the size of the part.

    Returns:
        A BCOO array.

    Raises:
        TypeError: a size does not fit.

    Example:
        >>> from dovetail.experimental import sparse
        >>> part = sparse.bcoo_dynamic_slice(sparse.eye(3), (jnp.int32(1), 0), (2, 3))
        >>> part.todense()
        Array([[0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    require_bcoo("bcoo_dynamic_slice", "mat", mat)
    sizes = canonical_shape("bcoo_dynamic_slice", slice_sizes, "slice_sizes")
    starts = [jnp.asarray(start) for start in start_indices]
    if not len(starts) == len(sizes) == mat.ndim or not all(
        size <= n for size, n in zip(sizes, mat.shape, strict=True)
    ):
        raise TypeError(
            f"bcoo_dynamic_slice: start_indices and slice_sizes must have one element for each of "
            f"the {counted(mat.ndim, 'dimension')} of an array of shape {mat.shape}, and sizes "
            f"must not exceed its own; got {len(starts)} and {sizes}"
        )
    return dynamic_part(mat, starts, sizes)


def dynamic_part(mat: C, starts: Sequence[Any], sizes: Shape) -> C:
    """A part at places that are traced."""
    layout = mat.layout
    n_batch, n_sparse = layout.n_batch, layout.n_sparse
    last = n_batch + n_sparse
    places = [
        jnp.clip(start, 0, n - size).astype(np.int32)
        for start, n, size in zip(starts, mat.shape, sizes, strict=True)
    ]
    data, indices = mat.data, mat.indices
    if sizes[:n_batch] != layout.batch:
        data, indices = full(layout, data, indices)
        zeros = [0, 0]
        indices = lax.dynamic_slice(
            indices, [*places[:n_batch], *zeros], (*sizes[:n_batch], *indices.shape[n_batch:])
        )
    if sizes[:n_batch] != layout.batch or sizes[last:] != layout.dense:
        batch = sizes[:n_batch] if data.shape[:n_batch] == layout.batch else data.shape[:n_batch]
        firsts = [
            p if data.shape[d] == layout.shape[d] else 0 for d, p in enumerate(places[:n_batch])
        ]
        data = lax.dynamic_slice(
            data, [*firsts, 0, *places[last:]], (*batch, layout.nse, *sizes[last:])
        )
    flags = {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}
    part = mat.like(data, indices, (*sizes[:n_batch], *layout.sparse, *sizes[last:]), **flags)
    if sizes[n_batch:last] == layout.sparse:
        return part
    used, columns = part.used, []
    for i in range(n_sparse):
        place = part.indices[..., i].astype(np.int32) - places[n_batch + i]
        used &= (place >= 0) & (place < sizes[n_batch + i])
        columns.append(place)
    unique = mat.unique_indices
    made = with_columns(part, columns, sizes[n_batch:last], sizes, used, unique_indices=unique)
    return fitted(made)


def bcoo_gather(
    operand: C,
    start_indices: ArrayLike,
    dimension_numbers: lax.GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | lax.GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> C:
    """Parts of a BCOO array, as `lax.gather` takes them of a dense one.

    Args:
        operand: a BCOO array.
        start_indices: where the parts begin.
        dimension_numbers: which dimensions are which.
        slice_sizes: for each dimension the size of a part. Where there are several parts, the
            dimensions that positions are given for have the size 1 and are collapsed.
        unique_indices: a promise, which is not needed.
        indices_are_sorted: a promise, which is not needed.
        mode: what becomes of a part that is not inside: "clip" moves it, "fill" makes it 0.
        fill_value: must be None or 0, since what is not stored is 0.

    Returns:
        A BCOO array. The dimensions of `start_indices` are batch dimensions if they come first.

    Raises:
        NotImplementedError: these parts cannot be taken of a sparse array.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.eye(3)[jnp.array([2, 0])].todense()  # a gather
        Array([[0., 0., 1.],
               [1., 0., 0.]], dtype=float32)
    """
    require_bcoo("bcoo_gather", "operand", operand)
    kind = lax.GatherScatterMode.from_any(mode)
    if fill_value is not None and np.any(np.asarray(fill_value) != 0):
        raise NotImplementedError(
            f"bcoo_gather: what is not stored is 0, so fill_value must be 0, got {fill_value}"
        )
    sizes = canonical_shape("bcoo_gather", slice_sizes, "slice_sizes")
    starts = jnp.asarray(start_indices)
    if len(sizes) != operand.ndim:
        raise TypeError(
            f"bcoo_gather: slice_sizes {sizes} must have one element for each of the "
            f"{counted(operand.ndim, 'dimension')} of the operand"
        )
    return taken(operand, starts, dimension_numbers, sizes, kind)


def taken(operand: C, starts: Any, numbers: Any, sizes: Shape, mode: Any) -> C:
    """The parts of a gather."""
    mapped, collapsed = numbers.start_index_map, numbers.collapsed_slice_dims
    if numbers.operand_batching_dims:
        raise NotImplementedError(
            "bcoo_gather: operand_batching_dims must be empty; take the parts of each element of "
            "the batch with vmap over batch dimensions of the array"
        )
    # Dimensions that no position is given for begin at 0.
    begins = tuple(0 for _ in sizes)
    cut = tuple(n if d in mapped else sizes[d] for d, n in enumerate(operand.shape))
    operand = sliced(operand, begins, cut, (1,) * len(sizes))
    fills = mode == lax.GatherScatterMode.FILL_OR_DROP
    if starts.ndim == 1 and not (fills and any(sizes[d] != 1 for d in mapped)):
        return _one_part(operand, starts, mapped, collapsed, sizes, fills)
    if any(sizes[d] != 1 or d not in collapsed for d in mapped):
        raise NotImplementedError(
            "bcoo_gather: several parts of a sparse array, or parts that may be outside, must have "
            "the size 1 where positions are given, and be collapsed there; got slice_sizes "
            f"{sizes} and {numbers}. Take them of mat.todense(), or one by one"
        )
    columns = [starts[..., i] for i in range(len(mapped))]
    if mode == lax.GatherScatterMode.CLIP:
        columns = [
            jnp.clip(c, 0, operand.shape[d] - 1) for c, d in zip(columns, mapped, strict=True)
        ]
    found = _by_positions(operand, columns, mapped)
    gone = [d for d in range(operand.ndim) if d in collapsed and d not in mapped]
    if gone:
        shift = {d: i for i, d in enumerate(d for d in range(operand.ndim) if d not in mapped)}
        found = squeezed(found, [starts.ndim - 1 + shift[d] for d in gone])
    # Dimensions of the starts come first now, and the others in their order.
    n_starts = starts.ndim - 1
    firsts = iter(range(n_starts))
    others = iter(range(n_starts, found.ndim))
    wanted = [next(others) if d in numbers.offset_dims else next(firsts) for d in range(found.ndim)]
    return found if wanted == sorted(wanted) else transposed(found, tuple(wanted))


def _one_part(
    operand: C, starts: Any, mapped: Shape, collapsed: Shape, sizes: Shape, fills: bool
) -> C:
    """A single part, which is a dynamic slice."""
    begins: list[Any] = [jnp.zeros((), np.int32)] * operand.ndim
    for i, d in enumerate(mapped):
        begins[d] = starts[i]
    part = dynamic_part(operand, begins, sizes)
    if fills:
        bounds = np.array([operand.shape[d] for d in mapped])
        inside = ((starts >= 0) & (starts < bounds)).all()
        part = part.with_data(jnp.where(inside, part.data, np.zeros((), part.data.dtype)))
    return squeezed(part, collapsed)


def _by_positions(mat: C, columns: Sequence[Any], dims: Shape) -> C:
    """For each of many positions in some dimensions, what there is in the others.

    Args:
        mat: a BCOO array.
        columns: the positions in each of the dimensions, all of one shape.
        dims: the dimensions.

    Returns:
        The dimensions of the positions come first and are batch dimensions, the others follow.
    """
    layout = mat.layout
    n_batch, n_sparse = layout.n_batch, layout.n_sparse
    if any(d >= n_batch + n_sparse for d in dims):
        mat = relaid(mat, n_batch, mat.ndim - max(dims) - 1)
        layout, n_sparse = mat.layout, mat.n_sparse
    grid = aval_of(columns[0]).shape
    count = len(grid)
    data, indices = full(layout, mat.data, mat.indices)
    asked = [
        (d, jnp.broadcast_to(c, grid)) for d, c in zip(dims, columns, strict=True) if d < n_batch
    ]
    kept = [d for d in range(n_batch) if d not in dims]
    lead = (*grid, *(layout.shape[d] for d in kept))
    if asked:
        # Bring the dimensions of the batch that are indexed to the front, and index them together.
        front = [d for d, _ in asked]
        order = (*front, *kept)
        index = tuple(c for _, c in asked)
        data = jnp.transpose(data, (*order, *range(n_batch, data.ndim)))
        indices = jnp.transpose(indices, (*order, n_batch, n_batch + 1))
        data = data.at[index].get(mode="fill", fill_value=0)
        indices = indices.at[index].get(mode="fill", fill_value=-1)
    else:
        data = jnp.broadcast_to(data, (*grid, *data.shape))
        indices = jnp.broadcast_to(indices, (*grid, *indices.shape))
    shape = (*lead, *layout.sparse, *layout.dense)
    placed = mat.like(data, indices, shape, unique_indices=mat.unique_indices)
    used = placed.used
    rest = []
    for i in range(n_sparse):
        column = placed.indices[..., i]
        if n_batch + i in dims:
            position = jnp.broadcast_to(columns[dims.index(n_batch + i)], grid)
            used &= column == position.reshape(*grid, *[1] * (column.ndim - count))
        else:
            rest.append(i)
    if len(rest) == n_sparse:
        return placed
    sizes = [layout.sparse[i] for i in rest]
    taken_columns = [placed.indices[..., i] for i in rest]
    result = with_columns(
        placed,
        taken_columns,
        sizes,
        (*lead, *sizes, *layout.dense),
        used,
        unique_indices=mat.unique_indices,
    )
    return fitted(result)
