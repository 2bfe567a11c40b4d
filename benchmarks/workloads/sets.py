"""Sets, histograms, searches, and the places of what is not zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads.base import Workload, booleans, integers, normals

MILLION = 1_000_000


def _all_values(size: int = MILLION, seed: int = 0) -> Any:
    return integers(size, low=-(2**31), high=2**31, seed=seed)


def search(shown: str, values: int, queries: int, ordered: bool = False) -> Workload:
    """Places in sorted values, of queries in any order or sorted themselves."""

    def arguments() -> tuple[Any, ...]:
        wanted = normals(queries, seed=1)
        return np.sort(normals(values)), np.sort(wanted) if ordered else wanted

    return Workload(
        f"searchsorted {shown}",
        arguments,
        lambda dt, a, v: dt.numpy.searchsorted(a, v),
        np.searchsorted,
        lambda torch, a, v: torch.searchsorted(a, v),
    )


WORKLOADS = [
    Workload(
        "unique i32 1e6, 1000 values",
        lambda: (integers(MILLION),),
        lambda dt, x: dt.numpy.unique(x, size=1000),
        np.unique,
        lambda torch, x: torch.unique(x),
    ),
    Workload(
        "unique i32 1e6, all values",
        lambda: (np.random.default_rng(0).permutation(MILLION).astype(np.int32),),
        lambda dt, x: dt.numpy.unique(x, size=MILLION),
        np.unique,
        lambda torch, x: torch.unique(x),
    ),
    Workload(
        "unique with counts i32 1e5",
        lambda: (integers(100_000),),
        lambda dt, x: dt.numpy.unique(x, size=1000, return_counts=True),
        lambda x: np.unique(x, return_counts=True),
        lambda torch, x: torch.unique(x, return_counts=True),
    ),
    Workload(
        "unique 1e3",
        lambda: (np.random.default_rng(0).permutation(1000).astype(np.float32),),
        lambda dt, x: dt.numpy.unique(x, size=1000),
        np.unique,
        lambda torch, x: torch.unique(x),
    ),
    Workload(
        "isin i32 1e6 of 1e3",
        lambda: (integers(MILLION, high=2000), integers(1000, high=2000, seed=1)),
        lambda dt, x, y: dt.numpy.isin(x, y),
        np.isin,
        lambda torch, x, y: torch.isin(x, y),
    ),
    Workload(
        "isin i32 1e5 of 1e5, all values",
        lambda: (_all_values(100_000), _all_values(100_000, seed=1)),
        lambda dt, x, y: dt.numpy.isin(x, y),
        np.isin,
        lambda torch, x, y: torch.isin(x, y),
    ),
    Workload(
        "union1d i32 1e5 and 1e5",
        lambda: (integers(100_000), integers(100_000, low=500, high=1500, seed=1)),
        lambda dt, x, y: dt.numpy.union1d(x, y, size=1500),
        np.union1d,
        lambda torch, x, y: torch.unique(torch.cat([x, y])),
    ),
    Workload(
        "intersect1d i32 1e5 and 1e5",
        lambda: (integers(100_000), integers(100_000, low=500, high=1500, seed=1)),
        lambda dt, x, y: dt.numpy.intersect1d(x, y, size=500),
        np.intersect1d,
        None,
    ),
    search("1e6 in 1e6", MILLION, MILLION),
    search("1e6 sorted in 1e6", MILLION, MILLION, ordered=True),
    search("1e5 in 1e3", 1000, 100_000),
    search("1e3 in 1e3", 1000, 1000),
    Workload(
        "digitize 1e6 in 100 bins",
        lambda: (normals(MILLION), np.linspace(-3, 3, 101, dtype=np.float32)),
        lambda dt, x, b: dt.numpy.digitize(x, b),
        np.digitize,
        lambda torch, x, b: torch.bucketize(x, b, right=True),
    ),
    Workload(
        "histogram 1e6 in 100 bins",
        lambda: (normals(MILLION),),
        lambda dt, x: dt.numpy.histogram(x, 100, (-3.0, 3.0))[0],
        lambda x: np.histogram(x, 100, (-3.0, 3.0))[0],
        lambda torch, x: torch.histc(x, 100, -3.0, 3.0),
        tolerance=1e-2,
    ),
    Workload(
        "histogram2d 1e5 in 20x20 bins",
        lambda: (normals(100_000), normals(100_000, seed=1)),
        lambda dt, x, y: dt.numpy.histogram2d(x, y, 20, ((-3.0, 3.0), (-3.0, 3.0)))[0],
        lambda x, y: np.histogram2d(x, y, 20, ((-3.0, 3.0), (-3.0, 3.0)))[0],
        None,
        tolerance=1e-2,
    ),
    Workload(
        "bincount 1e6 of 1000",
        lambda: (integers(MILLION),),
        lambda dt, x: dt.numpy.bincount(x, length=1000),
        lambda x: np.bincount(x, minlength=1000),
        lambda torch, x: torch.bincount(x, minlength=1000),
    ),
    Workload(
        "nonzero bool 1e6",
        lambda: (booleans(MILLION),),
        lambda dt, x: dt.numpy.nonzero(x, size=MILLION // 2)[0],
        lambda x: np.nonzero(x)[0][: MILLION // 2],
        lambda torch, x: torch.nonzero(x)[: MILLION // 2, 0],
        compared=lambda places: np.asarray(places)[:400_000],
    ),
    Workload(
        "argwhere x > 2 1000x1000",
        lambda: (normals(1000, 1000),),
        lambda dt, x: dt.numpy.argwhere(x > 2, size=20_000),
        lambda x: np.argwhere(x > 2)[:20_000],
        lambda torch, x: torch.argwhere(x > 2)[:20_000],
    ),
    Workload(
        "compress 1e6 by a mask",
        lambda: (normals(MILLION), booleans(MILLION)),
        lambda dt, x, m: dt.numpy.compress(m, x, size=MILLION // 2),
        lambda x, m: np.compress(m, x)[: MILLION // 2],
        lambda torch, x, m: x[m][: MILLION // 2],
        compared=lambda values: np.asarray(values)[:400_000],
    ),
]
