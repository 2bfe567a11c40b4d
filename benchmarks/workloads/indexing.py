"""Gathers, scatters, segments, and arrays cut, put together and turned."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads.base import Workload, booleans, integers, normals, same


def places(size: int, high: int) -> Any:
    """Indices below a bound."""
    return integers(size, high=high, seed=7)


def takes_along(axis: int, shown: str) -> Workload:
    """As many elements of each row or column as it has."""
    return Workload(
        f"take_along_axis {shown} 1000x1000",
        lambda: (normals(1000, 1000), integers(1000, 1000, seed=7)),
        lambda dt, x, i: dt.numpy.take_along_axis(x, i, axis=axis),
        lambda x, i: np.take_along_axis(x, i, axis=axis),
        lambda torch, x, i: torch.gather(x, axis, i.long()),
    )


def segment_sum(size: int, count: int, shown: str) -> Workload:
    """Sums of segments in any order."""
    return Workload(
        f"sums of {shown}",
        lambda: (normals(size), places(size, count)),
        lambda dt, x, i: dt.ops.segment_sum(x, i, count),
        lambda x, i: np.bincount(i, x, count),
        lambda torch, x, i: torch.zeros(count).index_add_(0, i, x),
        tolerance=1e-3,
    )


def _numpy_scatter(ufunc: Any) -> Any:
    def scatter(x: Any, i: Any, u: Any) -> Any:
        result = x.copy()
        ufunc.at(result, i, u)
        return result

    return scatter


def _numpy_set(x: Any, i: Any, u: Any) -> Any:
    result = x.copy()
    result[i] = u
    return result


WORKLOADS = [
    Workload(
        "take 1e3 of 1e3",
        lambda: (normals(1000), places(1000, 1000)),
        lambda dt, x, i: x[i],
        lambda x, i: x[i],
        lambda torch, x, i: x[i.long()],
    ),
    Workload(
        "take 1e6 of 1e6",
        lambda: (normals(10**6), places(10**6, 10**6)),
        lambda dt, x, i: x[i],
        lambda x, i: x[i],
        lambda torch, x, i: x[i.long()],
    ),
    Workload(
        "take 1e4 rows of 64 of 1e5",
        lambda: (normals(100_000, 64), places(10_000, 100_000)),
        lambda dt, x, i: dt.numpy.take(x, i, axis=0),
        lambda x, i: np.take(x, i, axis=0),
        lambda torch, x, i: torch.nn.functional.embedding(i, x),
    ),
    Workload(
        "take 100 columns of 3000x3000",
        lambda: (normals(3000, 3000), places(100, 3000)),
        lambda dt, x, i: dt.numpy.take(x, i, axis=1),
        lambda x, i: np.take(x, i, axis=1),
        lambda torch, x, i: torch.index_select(x, 1, i),
    ),
    takes_along(0, "columns"),
    takes_along(1, "rows"),
    Workload(
        "scatter 1e6 into 1e6",
        lambda: (
            normals(10**6),
            np.random.default_rng(0).permutation(10**6).astype(np.int32),
            normals(10**6, seed=1),
        ),
        lambda dt, x, i, u: x.at[i].set(u),
        _numpy_set,
        lambda torch, x, i, u: x.clone().index_copy_(0, i.long(), u),
    ),
    Workload(
        "scatter-add 1e6 into 1e6",
        lambda: (normals(10**6), places(10**6, 10**6), normals(10**6, seed=1)),
        lambda dt, x, i, u: x.at[i].add(u),
        _numpy_scatter(np.add),
        lambda torch, x, i, u: x.clone().index_add_(0, i, u),
    ),
    Workload(
        "scatter-max 1e6 into 1e3",
        lambda: (normals(1000), places(10**6, 1000), normals(10**6, seed=1)),
        lambda dt, x, i, u: x.at[i].max(u),
        _numpy_scatter(np.maximum),
        lambda torch, x, i, u: x.clone().scatter_reduce_(0, i.long(), u, "amax"),
    ),
    Workload(
        "scatter-add 1e5 rows of 16 into 1e3",
        lambda: (normals(1000, 16), places(100_000, 1000), normals(100_000, 16, seed=1)),
        lambda dt, x, i, u: x.at[i].add(u),
        _numpy_scatter(np.add),
        lambda torch, x, i, u: x.clone().index_add_(0, i, u),
        tolerance=1e-3,
    ),
    segment_sum(1_000_000, 1000, "1000 segments of 1e6"),
    segment_sum(1_000_000, 1_000_000, "1e6 segments of 1e6"),
    segment_sum(1000, 10, "10 segments of 1e3"),
    Workload(
        "maxima of 1000 segments of 1e6",
        lambda: (normals(10**6), places(10**6, 1000)),
        lambda dt, x, i: dt.ops.segment_max(x, i, 1000),
        lambda x, i: _numpy_scatter(np.maximum)(np.full(1000, -np.inf, np.float32), i, x),
        lambda torch, x, i: torch.full((1000,), -torch.inf).scatter_reduce_(0, i.long(), x, "amax"),
    ),
    Workload(
        "set where a mask is true 1e6",
        lambda: (normals(10**6), booleans(10**6)),
        lambda dt, x, m: dt.numpy.where(m, 0.0, x),
        lambda x, m: _numpy_set(x, m, 0),
        lambda torch, x, m: torch.masked_fill(x, m, 0.0),
    ),
    Workload(
        "every second 1e7",
        lambda: (normals(10**7),),
        lambda dt, x: x[::2],
        lambda x: x[::2].copy(),
        lambda torch, x: x[::2].clone(),
    ),
    Workload(
        "concatenate 10 x 1e6",
        lambda: (tuple(normals(10**6, seed=i) for i in range(10)),),
        lambda dt, x: dt.numpy.concatenate(x),
        np.concatenate,
        lambda torch, x: torch.cat(x),
    ),
    Workload(
        "stack of columns 4 x 1e6",
        lambda: (tuple(normals(10**6, seed=i) for i in range(4)),),
        lambda dt, x: dt.numpy.stack(x, axis=1),
        lambda x: np.stack(x, axis=1),
        lambda torch, x: torch.stack(x, 1),
    ),
    Workload(
        "transpose 3000x3000",
        lambda: (normals(3000, 3000),),
        lambda dt, x: x.T,
        lambda x: np.ascontiguousarray(x.T),
        lambda torch, x: x.T.contiguous(),
    ),
    Workload(
        "transpose 64x128x256 to 256x64x128",
        lambda: (normals(64, 128, 256),),
        lambda dt, x: dt.numpy.transpose(x, (2, 0, 1)),
        lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)),
        lambda torch, x: x.permute(2, 0, 1).contiguous(),
    ),
    Workload(
        "reverse rows 3000x3000",
        lambda: (normals(3000, 3000),),
        lambda dt, x: dt.numpy.flip(x, 1),
        lambda x: np.ascontiguousarray(np.flip(x, 1)),
        lambda torch, x: torch.flip(x, (1,)),
    ),
    Workload(
        "roll 1000x1000",
        lambda: (normals(1000, 1000),),
        lambda dt, x: dt.numpy.roll(x, (3, 5), (0, 1)),
        lambda x: np.roll(x, (3, 5), (0, 1)),
        lambda torch, x: torch.roll(x, (3, 5), (0, 1)),
    ),
    Workload(
        "pad 1000x1000",
        lambda: (normals(1000, 1000),),
        lambda dt, x: dt.numpy.pad(x, 1),
        lambda x: np.pad(x, 1),
        lambda torch, x: torch.nn.functional.pad(x, (1, 1, 1, 1)),
    ),
    Workload(
        "repeat 3 times 1e6",
        lambda: (normals(10**6),),
        lambda dt, x: dt.numpy.repeat(x, 3),
        lambda x: np.repeat(x, 3),
        lambda torch, x: torch.repeat_interleave(x, 3),
    ),
    Workload("tril 1000x1000", lambda: (normals(1000, 1000),), *same("tril")),
]
