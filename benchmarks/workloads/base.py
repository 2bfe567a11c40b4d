"""What a workload is, and what makes arguments of workloads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

Function = Callable[..., Any]


@dataclass(frozen=True)
class Workload:
    """A program of dovetail and JAX, and the same of NumPy or SciPy and of PyTorch.

    Args:
        name: what it does, with its size; float32 if no dtype is said.
        arguments: makes the arguments, arrays and trees of arrays of NumPy; those of all workloads
            together would take gigabytes.
        function: the program, a function of the framework's module and the arguments, to compile.
        numpy: the same with NumPy or SciPy, a function of the arguments.
        torch: the same with PyTorch, a function of its module and the arguments.
        x64: whether dtypes of 64 bits are on.
        cast: the name of a dtype that NumPy lacks, for all floating-point arguments.
        compared: what of the results must agree between frameworks.
        tolerance: the largest difference, of the largest absolute value or of 1.
    """

    name: str
    arguments: Callable[[], tuple[Any, ...]]
    function: Function
    numpy: Function | None = None
    torch: Function | None = None
    x64: bool = False
    cast: str | None = None
    compared: Callable[[Any], Any] = lambda results: results
    tolerance: float = 1e-4


def same(name: str) -> tuple[Function, Function, Function]:
    """The function with this name of the NumPy API, NumPy and PyTorch."""
    return (
        lambda dt, *a: getattr(dt.numpy, name)(*a),
        getattr(np, name),
        lambda torch, *a: getattr(torch, name)(*a),
    )


def normals(*shape: int, dtype: DTypeLike = np.float32, seed: int = 0) -> Any:
    """Numbers of the standard normal distribution."""
    found = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return found.astype(dtype, copy=False)


def uniforms(
    *shape: int,
    low: float = 0.1,
    high: float = 0.9,
    dtype: DTypeLike = np.float32,
    seed: int = 0,
) -> Any:
    """Numbers between two bounds."""
    found = np.random.default_rng(seed).random(shape, np.float32)
    return (found * np.float32(high - low) + np.float32(low)).astype(dtype, copy=False)


def integers(
    *shape: int, low: int = 0, high: int = 1000, dtype: DTypeLike = np.int32, seed: int = 0
) -> Any:
    """Integers from `low` on below `high`."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def booleans(*shape: int, seed: int = 0) -> Any:
    """Truth values, every second one true."""
    return np.random.default_rng(seed).integers(0, 2, shape).astype(np.bool_)


def complexes(*shape: int, seed: int = 0) -> Any:
    """Complex numbers."""
    return (normals(*shape, seed=seed) + 1j * normals(*shape, seed=seed + 1)).astype(np.complex64)


def definite(*shape: int, dtype: DTypeLike = np.float32) -> Any:
    """Symmetric matrices with eigenvalues of about 1 to 5."""
    x = normals(*shape, dtype=np.float64)
    return (x @ x.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype)


def moments(results: Any) -> Any:
    """The mean and the standard deviation of random numbers, which differ between frameworks."""
    values = np.asarray(results, np.float64)
    return np.stack([values.mean(), values.std()])


def nothing(results: Any) -> Any:
    """The number of results, where their values depend on the framework."""
    return np.asarray(np.size(results))
