"""Sums, extremes, counts and their places, of all elements and along axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import special

from workloads.base import Workload, booleans, integers, normals, same

LARGE = 10_000_000
WIDE = (3000, 3000)


def along(
    name: str, axis: int, shape: tuple[int, ...] = WIDE, torch: str | None = None
) -> Workload:
    """A reduction along an axis that NumPy and PyTorch have with the same or another name."""
    what = {(0, 2): "columns", (1, 2): "rows"}.get((axis, len(shape)), f"axis {axis}")
    return Workload(
        f"{name} of {what} {'x'.join(map(str, shape))}",
        lambda: (normals(*shape),),
        lambda dt, x: getattr(dt.numpy, name)(x, axis=axis),
        lambda x: getattr(np, name)(x, axis=axis),
        lambda module, x: getattr(module, torch or name)(x, axis),
    )


def whole(
    name: str, size: str, shown: str = "", dtype: DTypeLike = np.float32, **others: Any
) -> Workload:
    """A reduction of all elements."""
    return Workload(
        " ".join([name, *([shown] if shown else []), size]),
        lambda: (normals(int(float(size)), dtype=dtype),),
        *same(name),
        **others,
    )


WORKLOADS = [
    *(whole("sum", size) for size in ("1e3", "1e5", "1e7")),
    whole("sum", "1e7", "f64", np.float64, x64=True, tolerance=1e-9),
    whole("prod", "1e6"),
    whole("max", "1e7"),
    whole("max", "1e3"),
    Workload(
        "sum i32 1e7",
        lambda: (integers(LARGE, high=100),),
        lambda dt, x: dt.numpy.sum(x),
        lambda x: np.sum(x, dtype=np.int32),
        lambda torch, x: torch.sum(x, dtype=torch.int32),
    ),
    Workload(
        "sum bf16 1e7",
        lambda: (normals(LARGE) + 1,),
        lambda dt, x: dt.numpy.sum(x),
        None,
        lambda torch, x: torch.sum(x),
        cast="bfloat16",
        tolerance=2e-2,
    ),
    Workload(
        "min i8 1e7", lambda: (integers(LARGE, low=-100, high=100, dtype=np.int8),), *same("min")
    ),
    along("sum", 0),
    along("sum", 1),
    along("sum", 0, (1_000_000, 4)),
    along("sum", 1, (1_000_000, 4)),
    along("sum", 1, (100, 1000, 100)),
    along("max", 0, torch="amax"),
    along("max", 1, torch="amax"),
    along("mean", 1),
    along("argmax", 0),
    along("argmax", 1),
    Workload(
        "variance of columns 1000x1000",
        lambda: (normals(1000, 1000),),
        lambda dt, x: dt.numpy.var(x, axis=0),
        lambda x: np.var(x, axis=0),
        lambda torch, x: torch.var(x, 0, correction=0),
    ),
    Workload(
        "variance of rows 1000x1000",
        lambda: (normals(1000, 1000),),
        lambda dt, x: dt.numpy.var(x, axis=1),
        lambda x: np.var(x, axis=1),
        lambda torch, x: torch.var(x, 1, correction=0),
    ),
    Workload(
        "norm 1e7",
        lambda: (normals(LARGE),),
        lambda dt, x: dt.numpy.linalg.norm(x),
        np.linalg.norm,
        lambda torch, x: torch.linalg.norm(x),
        tolerance=1e-3,
    ),
    Workload(
        "any of x > 9 1e7",
        lambda: (normals(LARGE),),
        lambda dt, x: dt.numpy.any(x > 9),
        lambda x: np.any(x > 9),
        lambda torch, x: torch.any(x > 9),
    ),
    Workload(
        "any bool 1e7, none true",
        lambda: (np.zeros(LARGE, np.bool_),),
        *same("any"),
    ),
    Workload(
        "all bool 1e7, false early",
        lambda: (booleans(LARGE),),
        *same("all"),
    ),
    Workload(
        "any of rows bool 3000x3000",
        lambda: (booleans(*WIDE),),
        lambda dt, x: dt.numpy.any(x, axis=1),
        lambda x: np.any(x, axis=1),
        lambda torch, x: torch.any(x, 1),
    ),
    Workload(
        "count of x > 0 1e7",
        lambda: (normals(LARGE),),
        lambda dt, x: dt.numpy.count_nonzero(x > 0),
        lambda x: np.count_nonzero(x > 0),
        lambda torch, x: torch.count_nonzero(x > 0),
    ),
    Workload("count_nonzero bool 1e7", lambda: (booleans(LARGE),), *same("count_nonzero")),
    Workload("count_nonzero i32 1e6", lambda: (integers(10**6, high=2),), *same("count_nonzero")),
    whole("argmax", "1e7"),
    whole("argmax", "1e3"),
    Workload("argmin i32 1e6", lambda: (integers(10**6, high=2**31),), *same("argmin")),
    Workload(
        "argmax bool 1e7",
        lambda: (np.arange(LARGE) > LARGE // 2,),
        lambda dt, x: dt.numpy.argmax(x),
        np.argmax,
        lambda torch, x: torch.argmax(x.view(torch.uint8)),
    ),
    Workload(
        "nansum 1e6",
        lambda: (normals(10**6),),
        *same("nansum"),
    ),
    Workload(
        "logsumexp of rows 1000x1000",
        lambda: (normals(1000, 1000),),
        lambda dt, x: dt.scipy.special.logsumexp(x, axis=1),
        lambda x: special.logsumexp(x, axis=1),
        lambda torch, x: torch.logsumexp(x, 1),
    ),
]
