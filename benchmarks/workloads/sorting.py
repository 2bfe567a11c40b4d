"""Sorting, selection and cumulative operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from workloads.base import Workload, booleans, integers, normals, uniforms


def sort(shown: str, *shape: int, axis: int = -1, dtype: DTypeLike = np.float32) -> Workload:
    """Sorting along an axis."""

    def arguments() -> tuple[Any, ...]:
        if np.issubdtype(dtype, np.integer):
            limits = np.iinfo(dtype)
            return (integers(*shape, low=limits.min, high=int(limits.max) + 1, dtype=dtype),)
        return (normals(*shape, dtype=dtype),)

    return Workload(
        f"sort {shown}",
        arguments,
        lambda dt, x: dt.numpy.sort(x, axis=axis),
        lambda x: np.sort(x, axis=axis),
        lambda torch, x: torch.sort(x, axis)[0],
        x64=np.dtype(dtype).itemsize == 8,
    )


def argsort(shown: str, size: int, make: Any) -> Workload:
    """The order of elements."""
    return Workload(
        f"argsort {shown}",
        lambda: (make(size),),
        lambda dt, x: dt.numpy.argsort(x),
        lambda x: np.argsort(x, kind="stable"),
        lambda torch, x: torch.argsort(x, stable=True),
    )


def cumulative(name: str, shown: str, *shape: int, axis: int = 0, **others: Any) -> Workload:
    """A cumulative operation along an axis."""
    return Workload(
        f"{name} {shown}",
        lambda: (uniforms(*shape, low=0.9, high=1.1),),
        lambda dt, x: getattr(dt.numpy, name)(x, axis=axis),
        lambda x: getattr(np, name)(x, axis=axis),
        lambda torch, x: getattr(torch, name)(x, axis),
        **others,
    )


WORKLOADS = [
    sort("1e3", 1000),
    sort("1e5", 100_000),
    sort("1e6", 1_000_000),
    sort("1e7", 10_000_000),
    sort("i32 1e3", 1000, dtype=np.int32),
    sort("i32 1e6", 1_000_000, dtype=np.int32),
    sort("i8 1e6", 1_000_000, dtype=np.int8),
    sort("f64 1e6", 1_000_000, dtype=np.float64),
    sort("of rows 1000x1000", 1000, 1000),
    sort("of columns 1000x1000", 1000, 1000, axis=0),
    sort("of rows of 8 1e6", 125_000, 8),
    argsort("1e5", 100_000, normals),
    argsort("1e6", 1_000_000, normals),
    argsort("i32 1e6", 1_000_000, integers),
    Workload(
        "sort with values 1e6",
        lambda: (normals(10**6), integers(10**6)),
        lambda dt, k, v: dt.lax.sort_key_val(k, v),
        lambda k, v: (k[order := np.argsort(k, kind="stable")], v[order]),
        lambda torch, k, v: ((s := torch.sort(k, stable=True))[0], v[s[1]]),
    ),
    Workload(
        "sort by two keys 1e6",
        lambda: (integers(10**6), normals(10**6)),
        lambda dt, a, b: dt.numpy.lexsort((b, a)),
        lambda a, b: np.lexsort((b, a)),
        lambda torch, a, b: (first := torch.argsort(b, stable=True))[
            torch.argsort(a[first], stable=True)
        ],
    ),
    Workload(
        "partition 1e6",
        lambda: (normals(10**6),),
        lambda dt, x: dt.numpy.partition(x, 1000)[1000],
        lambda x: np.partition(x, 1000)[1000],
        lambda torch, x: torch.kthvalue(x, 1001)[0],
    ),
    Workload(
        "median 1e6",
        lambda: (normals(10**6 + 1),),
        lambda dt, x: dt.numpy.median(x),
        np.median,
        lambda torch, x: torch.median(x),
    ),
    Workload(
        "median of rows 1001x1001",
        lambda: (normals(1001, 1001),),
        lambda dt, x: dt.numpy.median(x, axis=1),
        lambda x: np.median(x, axis=1),
        lambda torch, x: torch.median(x, 1)[0],
    ),
    Workload(
        "median of columns 1001x1001",
        lambda: (normals(1001, 1001),),
        lambda dt, x: dt.numpy.median(x, axis=0),
        lambda x: np.median(x, axis=0),
        lambda torch, x: torch.median(x, 0)[0],
    ),
    Workload(
        "quantile 1e6",
        lambda: (normals(10**6),),
        lambda dt, x: dt.numpy.quantile(x, 0.3),
        lambda x: np.quantile(x, 0.3),
        lambda torch, x: torch.quantile(x, 0.3),
    ),
    Workload(
        "three quantiles of rows 1000x1000",
        lambda: (normals(1000, 1000), np.asarray([0.1, 0.5, 0.9], np.float32)),
        lambda dt, x, q: dt.numpy.quantile(x, q, axis=1),
        lambda x, q: np.quantile(x, q, axis=1),
        lambda torch, x, q: torch.quantile(x, q, dim=1),
    ),
    Workload(
        "top 10 of 1e6",
        lambda: (normals(10**6),),
        lambda dt, x: dt.lax.top_k(x, 10),
        lambda x: (
            x[order := (part := np.argpartition(x, -10)[-10:])[np.argsort(-x[part])]],
            order,
        ),
        lambda torch, x: tuple(torch.topk(x, 10)),
    ),
    Workload(
        "top 10 of rows 100x10000",
        lambda: (normals(100, 10_000),),
        lambda dt, x: dt.lax.top_k(x, 10)[0],
        lambda x: -np.sort(np.partition(-x, 10, axis=1)[:, :10], axis=1),
        lambda torch, x: torch.topk(x, 10)[0],
    ),
    cumulative("cumsum", "1e3", 1000),
    cumulative("cumsum", "1e6", 1_000_000),
    cumulative("cumsum", "1e7", 10_000_000, tolerance=1e-3),
    cumulative("cumprod", "1e6", 1_000_000, tolerance=1e-2),
    cumulative("cumsum", "of rows 3000x3000", 3000, 3000, axis=1),
    cumulative("cumsum", "of columns 3000x3000", 3000, 3000),
    Workload(
        "cumsum i32 1e6",
        lambda: (integers(10**6, low=-(2**31), high=2**31),),
        lambda dt, x: dt.numpy.cumsum(x),
        lambda x: np.cumsum(x, dtype=np.int32),
        lambda torch, x: torch.cumsum(x, 0, dtype=torch.int32),
    ),
    Workload(
        "cumsum bool 1e6",
        lambda: (booleans(10**6),),
        lambda dt, x: dt.numpy.cumsum(x),
        lambda x: np.cumsum(x, dtype=np.int32),
        lambda torch, x: torch.cumsum(x, 0, dtype=torch.int32),
    ),
    Workload(
        "cummax 1e6",
        lambda: (normals(10**6),),
        lambda dt, x: dt.lax.cummax(x),
        np.maximum.accumulate,
        lambda torch, x: torch.cummax(x, 0)[0],
    ),
    Workload(
        "cumlogsumexp 1e6",
        lambda: (normals(10**6),),
        lambda dt, x: dt.lax.cumlogsumexp(x),
        np.logaddexp.accumulate,
        lambda torch, x: torch.logcumsumexp(x, 0),
        tolerance=1e-3,
    ),
    Workload(
        "diff 1e6",
        lambda: (normals(10**6),),
        lambda dt, x: dt.numpy.diff(x),
        np.diff,
        lambda torch, x: torch.diff(x),
    ),
]
