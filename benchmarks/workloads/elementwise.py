"""Functions of each element, of one array and of two."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from workloads.base import Workload, booleans, complexes, integers, normals, same, uniforms

SIZES = {"1e3": 1_000, "1e5": 100_000, "1e6": 1_000_000, "1e7": 10_000_000}
LARGE = SIZES["1e7"]


def unary(name: str, size: str = "1e6", positive: bool = False, **others: Any) -> Workload:
    """A function that the three APIs have with the same name."""
    make = uniforms if positive else normals
    function, theirs, torch = same(name)
    return Workload(
        f"{name} {size}", lambda: (make(SIZES[size]),), function, theirs, torch, **others
    )


def double(name: str, positive: bool = False) -> Workload:
    """The same in float64."""
    make = uniforms if positive else normals
    return Workload(
        f"{name} f64 1e6",
        lambda: (make(SIZES["1e6"], dtype=np.float64),),
        *same(name),
        x64=True,
        tolerance=1e-12,
    )


def binary(name: str, size: str = "1e6", positive: bool = False, **others: Any) -> Workload:
    """A function of two arrays that the three APIs have with the same name."""
    make = uniforms if positive else normals
    return Workload(
        f"{name} {size}",
        lambda: (make(SIZES[size]), normals(SIZES[size], seed=1)),
        *same(name),
        **others,
    )


def of_special(name: str, torch: str | None = None) -> Workload:
    """A special function of numbers from 0.1 to 0.9."""
    return Workload(
        f"{name} 1e6",
        lambda: (uniforms(SIZES["1e6"]),),
        lambda dt, x: getattr(dt.scipy.special, name)(x),
        getattr(special, name),
        None if torch is None else lambda module, x: getattr(module, torch)(x),
    )


def of_integers(name: str, function: str, torch: str, size: str = "1e6") -> Workload:
    """A function of integers, the second of which are positive."""
    return Workload(
        f"{name} i32 {size}",
        lambda: (
            integers(SIZES[size], low=-(2**31), high=2**31),
            integers(SIZES[size], low=1, high=1000, seed=1),
        ),
        lambda dt, x, y: getattr(dt.numpy, function)(x, y),
        getattr(np, function),
        lambda module, x, y: getattr(module, torch)(x, y),
        tolerance=0,
    )


def in_half(name: str, count: int, dtype: str) -> Workload:
    """A function of 1e6 numbers in a narrow floating-point dtype."""
    function, theirs, torch = same(name)
    narrow = dtype == "f16"
    kind = np.float16 if narrow else np.float32
    return Workload(
        f"{name} {dtype} 1e6",
        lambda: tuple(uniforms(SIZES["1e6"], dtype=kind, seed=i) for i in range(count)),
        function,
        theirs if narrow else None,
        torch,
        cast=None if narrow else "bfloat16",
        tolerance=2e-2,
    )


WORKLOADS = [
    *(unary(name) for name in ["cos", "tan", "tanh", "sinh", "expm1", "abs", "floor", "isnan"]),
    *(unary("sin", size) for size in SIZES),
    *(unary("exp", size) for size in SIZES),
    *(
        unary(name, positive=True)
        for name in ["log", "log1p", "log2", "sqrt", "arctan", "arcsin", "arcsinh"]
    ),
    *(double(name) for name in ("sin", "exp", "tanh")),
    double("log", positive=True),
    of_special("erf", "erf"),
    of_special("erfinv", "erfinv"),
    of_special("gammaln", "lgamma"),
    of_special("digamma", "digamma"),
    of_special("expit", "sigmoid"),
    Workload("cbrt 1e6", lambda: (normals(10**6),), lambda dt, x: dt.numpy.cbrt(x), np.cbrt, None),
    Workload(
        "rsqrt 1e6",
        lambda: (uniforms(10**6),),
        lambda dt, x: dt.lax.rsqrt(x),
        lambda x: 1 / np.sqrt(x),
        lambda torch, x: torch.rsqrt(x),
    ),
    Workload(
        "x ** 3 1e6",
        lambda: (normals(10**6),),
        lambda dt, x: x**3,
        lambda x: x**3,
        lambda torch, x: x**3,
    ),
    in_half("exp", 1, "bf16"),
    in_half("tanh", 1, "bf16"),
    in_half("add", 2, "bf16"),
    in_half("add", 2, "f16"),
    *(binary("add", size) for size in ("1e3", "1e5", "1e7")),
    binary("arctan2"),
    binary("hypot"),
    binary("logaddexp"),
    binary("divide"),
    binary("maximum", "1e7"),
    binary("greater", "1e7"),
    binary("fmod"),
    binary("remainder"),
    Workload(
        "power 1e6",
        lambda: (uniforms(10**6), normals(10**6, seed=1)),
        lambda dt, x, y: dt.numpy.power(x, y),
        np.power,
        lambda torch, x, y: torch.pow(x, y),
    ),
    Workload(
        "add f64 1e6",
        lambda: (normals(10**6, dtype=np.float64), normals(10**6, dtype=np.float64, seed=1)),
        *same("add"),
        x64=True,
    ),
    Workload(
        "multiply c64 1e6", lambda: (complexes(10**6), complexes(10**6, seed=2)), *same("multiply")
    ),
    Workload("abs c64 1e6", lambda: (complexes(10**6),), *same("abs")),
    of_integers("add", "add", "add", "1e7"),
    of_integers("remainder", "remainder", "remainder"),
    of_integers("floor divide", "floor_divide", "floor_divide"),
    of_integers("equal", "equal", "eq"),
    of_integers("xor", "bitwise_xor", "bitwise_xor"),
    Workload(
        "logical_and bool 1e7",
        lambda: (booleans(LARGE), booleans(LARGE, seed=1)),
        *same("logical_and"),
    ),
    Workload(
        "where 1e6",
        lambda: (booleans(10**6), normals(10**6), normals(10**6, seed=1)),
        *same("where"),
    ),
    Workload(
        "clip 1e7",
        lambda: (normals(LARGE),),
        lambda dt, x: dt.numpy.clip(x, -1.0, 1.0),
        lambda x: np.clip(x, np.float32(-1), np.float32(1)),
        lambda torch, x: torch.clip(x, -1.0, 1.0),
    ),
    Workload(
        "convert to int32 1e7",
        lambda: (normals(LARGE),),
        lambda dt, x: x.astype("int32"),
        lambda x: x.astype(np.int32),
        lambda torch, x: x.to(torch.int32),
    ),
    Workload(
        "convert to bf16 1e6",
        lambda: (normals(10**6),),
        lambda dt, x: x.astype("bfloat16"),
        None,
        lambda torch, x: x.to(torch.bfloat16),
    ),
    Workload(
        "row + column 3000",
        lambda: (normals(1, 3000), normals(3000, 1, seed=1)),
        *same("add"),
    ),
    Workload(
        "matrix + row 1000x1000",
        lambda: (normals(1000, 1000), normals(1000, seed=1)),
        *same("add"),
    ),
]
