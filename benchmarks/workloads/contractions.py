"""Products of matrices and vectors, and what is built on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import special
from scipy.spatial import distance

from workloads.base import Workload, complexes, integers, normals, same


def product(
    shown: str, first: tuple[int, ...], second: tuple[int, ...], dtype: DTypeLike = np.float32
) -> Workload:
    """A product of matrices, or of many."""
    return Workload(
        f"matmul {shown}",
        lambda: (normals(*first, dtype=dtype), normals(*second, dtype=dtype, seed=1)),
        lambda dt, x, y: x @ y,
        lambda x, y: x @ y,
        lambda torch, x, y: x @ y,
        x64=dtype is np.float64,
    )


def einsum(shown: str, formula: str, *shapes: tuple[int, ...]) -> Workload:
    """A sum of products by a formula."""
    return Workload(
        f"einsum {formula} {shown}",
        lambda: tuple(normals(*shape, seed=i) for i, shape in enumerate(shapes)),
        lambda dt, *a: dt.numpy.einsum(formula, *a),
        lambda *a: np.einsum(formula, *a, optimize=True),
        lambda torch, *a: torch.einsum(formula, *a),
    )


def of_bfloat16(size: int) -> Workload:
    return Workload(
        f"matmul bf16 {size}",
        lambda: (normals(size, size), normals(size, size, seed=1)),
        lambda dt, x, y: x @ y,
        None,
        lambda torch, x, y: x @ y,
        cast="bfloat16",
        tolerance=2e-2,
    )


def of_int8(size: int) -> Workload:
    return Workload(
        f"matmul i8 to i32 {size}",
        lambda: tuple(
            integers(size, size, low=-128, high=128, dtype=np.int8, seed=i) for i in range(2)
        ),
        lambda dt, x, y: dt.numpy.matmul(x, y, preferred_element_type="int32"),
        # Exact, as sums of up to 2**10 such products are below 2**24.
        lambda x, y: (x.astype(np.float32) @ y.astype(np.float32)).astype(np.int32),
        lambda torch, x, y: torch._int_mm(x, y),
    )


def _attention(dt: Any, q: Any, k: Any, v: Any) -> Any:
    scores = dt.numpy.einsum("bhqd,bhkd->bhqk", q, k) / np.float32(q.shape[-1] ** 0.5)
    return dt.numpy.einsum("bhqk,bhkd->bhqd", dt.nn.softmax(scores, axis=-1), v)


def _numpy_attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) / np.float32(q.shape[-1] ** 0.5)
    return special.softmax(scores, axis=-1) @ v


def attention(shown: str, *shape: int) -> Workload:
    """Softmax of scaled products, times values."""
    return Workload(
        f"attention {shown}",
        lambda: tuple(normals(*shape, seed=i) for i in range(3)),
        _attention,
        _numpy_attention,
        lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v),
    )


def _causal_attention(dt: Any, q: Any, k: Any, v: Any) -> Any:
    return dt.nn.dot_product_attention(q, k, v, is_causal=True)


def _torch_causal_attention(torch: Any, q: Any, k: Any, v: Any) -> Any:
    turned = (x.transpose(1, 2) for x in (q, k, v))
    result = torch.nn.functional.scaled_dot_product_attention(*turned, is_causal=True)
    return result.transpose(1, 2)


def _squared_distances(dt: Any, x: Any, y: Any) -> Any:
    return dt.numpy.sum((x[:, None] - y[None]) ** 2, axis=-1)


def _points(count: int, dimensions: int) -> tuple[Any, Any]:
    return normals(count, dimensions), normals(count, dimensions, seed=1)


WORKLOADS = [
    *(product(f"{n}", (n, n), (n, n)) for n in (64, 128, 256, 512, 1000)),
    product("f64 256", (256, 256), (256, 256), np.float64),
    product("f64 1000", (1000, 1000), (1000, 1000), np.float64),
    product("64 of 64x64", (64, 64, 64), (64, 64, 64)),
    product("1000 of 8x8", (1000, 8, 8), (1000, 8, 8)),
    product("3000x3000 vector", (3000, 3000), (3000,)),
    product("vector 3000x3000", (3000,), (3000, 3000)),
    product("10000x100 100x10", (10_000, 100), (100, 10)),
    product("32x784 784x512", (32, 784), (784, 512)),
    of_bfloat16(256),
    of_bfloat16(1000),
    of_int8(256),
    of_int8(1000),
    Workload(
        "matmul c64 256",
        lambda: (complexes(256, 256), complexes(256, 256, seed=2)),
        *same("matmul"),
    ),
    Workload(
        "product with its transpose 1000x200",
        lambda: (normals(1000, 200),),
        lambda dt, x: x.T @ x,
        lambda x: x.T @ x,
        lambda torch, x: x.T @ x,
    ),
    Workload("dot 1e3", lambda: (normals(1000), normals(1000, seed=1)), *same("dot")),
    Workload("dot 1e6", lambda: (normals(10**6), normals(10**6, seed=1)), *same("dot")),
    Workload("outer 1000", lambda: (normals(1000), normals(1000, seed=1)), *same("outer")),
    Workload(
        "cross 1e5 x 3",
        lambda: (normals(100_000, 3), normals(100_000, 3, seed=1)),
        lambda dt, x, y: dt.numpy.cross(x, y),
        np.cross,
        lambda torch, x, y: torch.linalg.cross(x, y),
    ),
    Workload("kron 32x32", lambda: (normals(32, 32), normals(32, 32, seed=1)), *same("kron")),
    einsum("1000x1000", "ij,ij->i", (1000, 1000), (1000, 1000)),
    einsum("100x50x60", "bij,bkj->bik", (100, 50, 60), (100, 50, 60)),
    einsum("64x32", "ia,jb,ijc->abc", (64, 32), (64, 32), (64, 64, 8)),
    Workload(
        "pairwise distances 1000 of 3",
        lambda: _points(1000, 3),
        lambda dt, x, y: dt.numpy.sqrt(_squared_distances(dt, x, y)),
        distance.cdist,
        lambda torch, x, y: torch.cdist(x, y),
        tolerance=1e-3,
    ),
    Workload(
        "pairwise distances 1000 of 64",
        lambda: _points(1000, 64),
        lambda dt, x, y: dt.numpy.sqrt(_squared_distances(dt, x, y)),
        distance.cdist,
        lambda torch, x, y: torch.cdist(x, y),
        tolerance=1e-3,
    ),
    Workload(
        "Gaussian kernel 1000 of 8",
        lambda: _points(1000, 8),
        lambda dt, x, y: dt.numpy.exp(-0.5 * _squared_distances(dt, x, y)),
        lambda x, y: np.exp(-0.5 * distance.cdist(x, y, "sqeuclidean")),
        lambda torch, x, y: torch.exp(-0.5 * torch.cdist(x, y) ** 2),
        tolerance=1e-3,
    ),
    Workload(
        "Gaussian kernel by products 1000 of 64",
        lambda: _points(1000, 64),
        lambda dt, x, y: dt.numpy.exp(
            x @ y.T / 64 - dt.numpy.sum(x * x, 1)[:, None] / 128 - dt.numpy.sum(y * y, 1) / 128
        ),
        lambda x, y: np.exp(
            x @ y.T / 64 - np.sum(x * x, 1)[:, None] / 128 - np.sum(y * y, 1) / 128
        ),
        lambda torch, x, y: torch.exp(
            x @ y.T / 64 - torch.sum(x * x, 1)[:, None] / 128 - torch.sum(y * y, 1) / 128
        ),
    ),
    attention("8x4x128x64", 8, 4, 128, 64),
    attention("1x8x512x64", 1, 8, 512, 64),
    Workload(
        "causal attention 4x256x4x64",
        lambda: tuple(normals(4, 256, 4, 64, seed=i) for i in range(3)),
        _causal_attention,
        None,
        _torch_causal_attention,
    ),
]
