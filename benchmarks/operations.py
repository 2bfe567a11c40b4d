"""Measure single operations on large arrays, one at a time, as another process asks for them.

    python operations.py jax|dovetail|numpy|torch

The first line written is a JSON list of the operations' names. For every name read, one line with
the median wall time of several calls follows, in milliseconds, each call until its result is there.
Each operation is one compiled program (a plain call for NumPy and PyTorch).
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

Function = Callable[..., Any]
Operation = tuple[tuple[Any, ...], Function, Function | None, Function | None]


def milliseconds(function: Callable[[], Any], wait: Callable[[Any], Any]) -> float:
    """Median time of a call; more calls where they are short."""
    for _ in range(2):
        wait(function())
    times: list[float] = []
    while len(times) < 3 or (len(times) < 25 and sum(times) < 0.05):
        start = time.perf_counter()
        wait(function())
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def operations(lax: Any, random: Any, ops: Any, grad: Any) -> dict[str, Operation]:
    """By name: arguments, the function, and the same for NumPy and PyTorch, where they have it, as
    functions of their module and the arguments.

    Args:
        lax: the module of operations; what it lacks is not looked up before it is called.
        random: the module of random numbers.
        ops: the module of segments.
        grad: makes the gradient of a function.
    """
    generator = np.random.default_rng(0)
    million = generator.standard_normal(1_000_000).astype(np.float32)
    second = generator.standard_normal(1_000_000).astype(np.float32)
    positive = np.abs(million) + np.float32(0.1)
    large = generator.standard_normal(10_000_000).astype(np.float32)
    integers = generator.integers(-(2**31), 2**31, 1_000_000).astype(np.int32)
    square = generator.standard_normal((1000, 1000)).astype(np.float32)
    wide = generator.standard_normal((3000, 3000)).astype(np.float32)
    short = generator.standard_normal((125_000, 8)).astype(np.float32)
    rows = generator.standard_normal((1_000_000, 4)).astype(np.float32)
    positions = generator.integers(0, 1_000_000, 1_000_000).astype(np.int32)
    images = generator.standard_normal((16, 64, 64, 32)).astype(np.float32)
    depthwise = generator.standard_normal((3, 3, 1, 32)).astype(np.float32)
    kernel = generator.standard_normal((3, 3, 32, 32)).astype(np.float32)
    signal = generator.standard_normal((1, 1, 1_000_000)).astype(np.float32)
    taps = generator.standard_normal((1, 1, 5)).astype(np.float32)
    definite = (square[:500, :500] @ square[:500, :500].T + 500 * np.eye(500)).astype(np.float32)
    symmetric = definite[:200, :200]
    numbers = ("NHWC", "HWIO", "NHWC")

    def pool(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def pool_gradient(x: Any) -> Any:
        return grad(lambda y: lax.reduce_sum(pool(y), (0, 1, 2, 3)))(x)

    def convolve(x: Any, k: Any, groups: int) -> Any:
        return lax.conv_general_dilated(
            x, k, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=groups
        )

    def along(function: Any, axis: int) -> Any:
        return lambda x: function(x, axis=axis)

    def take(x: Any, indices: Any) -> Any:
        return x[indices]

    def scatter(x: Any, indices: Any, updates: Any) -> Any:
        return x.at[indices].add(updates)

    found: dict[str, Operation] = {
        f"{name} 1e6": ((million,), getattr(lax, name), theirs, torch_s)
        for name, theirs, torch_s in (
            ("sin", lambda np, *a: np.sin(*a), lambda torch, *a: torch.sin(*a)),
            ("cos", lambda np, *a: np.cos(*a), lambda torch, *a: torch.cos(*a)),
            ("tan", lambda np, *a: np.tan(*a), lambda torch, *a: torch.tan(*a)),
            ("tanh", lambda np, *a: np.tanh(*a), lambda torch, *a: torch.tanh(*a)),
            ("sinh", lambda np, *a: np.sinh(*a), lambda torch, *a: torch.sinh(*a)),
            ("exp", lambda np, *a: np.exp(*a), lambda torch, *a: torch.exp(*a)),
            ("erf", None, lambda torch, *a: torch.erf(*a)),
            ("cbrt", lambda np, *a: np.cbrt(*a), None),
            ("logistic", None, lambda torch, *a: torch.sigmoid(*a)),
        )
    }
    found |= {
        "log 1e6": (
            (positive,),
            lax.log,
            lambda np, *a: np.log(*a),
            lambda torch, *a: torch.log(*a),
        ),
        "atan2 1e6": (
            (million, second),
            lax.atan2,
            lambda np, *a: np.arctan2(*a),
            lambda torch, *a: torch.atan2(*a),
        ),
        "pow 1e6": (
            (positive, second),
            lax.pow,
            lambda np, *a: np.power(*a),
            lambda torch, *a: torch.pow(*a),
        ),
        "rem 1e6": (
            (million, second),
            lax.rem,
            lambda np, *a: np.fmod(*a),
            lambda torch, *a: torch.fmod(*a),
        ),
        "add 1e7": (
            (large, large),
            lax.add,
            lambda np, *a: np.add(*a),
            lambda torch, *a: torch.add(*a),
        ),
        "convert to int32 1e7": (
            (large,),
            lambda x: lax.convert_element_type(x, np.int32),
            lambda np, *a: a[0].astype(np.int32),
            lambda torch, *a: a[0].to(torch.int32),
        ),
        "concatenate 10 x 1e6": (
            (million,) * 10,
            lambda *x: lax.concatenate(x, 0),
            lambda np, *a: np.concatenate(a),
            lambda torch, *a: torch.cat(a),
        ),
        "transpose 3000 x 3000": (
            (wide,),
            lambda x: lax.transpose(x, (1, 0)),
            lambda np, *a: np.ascontiguousarray(a[0].T),
            lambda np, *a: a[0].T.contiguous(),
        ),
        "rev 3000 x 3000": (
            (wide,),
            lambda x: lax.rev(x, (0,)),
            lambda np, *a: np.ascontiguousarray(a[0][::-1]),
            lambda torch, *a: torch.flip(a[0], (0,)),
        ),
        "sum 1e7": (
            (large,),
            lambda x: lax.reduce_sum(x, (0,)),
            lambda np, *a: np.sum(*a),
            lambda torch, *a: torch.sum(*a),
        ),
        "sum of rows of 4": (
            (rows,),
            lambda x: lax.reduce_sum(x, (1,)),
            lambda _, *a: a[0].sum(1),
            lambda _, *a: a[0].sum(1),
        ),
        "any 1e7": (
            (large,),
            lambda x: lax.reduce_or(lax.gt(x, np.float32(9)), (0,)),
            lambda np, *a: np.any(a[0] > 9),
            lambda torch, *a: torch.any(a[0] > 9),
        ),
        "count 1e7": (
            (large,),
            lambda x: lax.reduce_sum(
                lax.convert_element_type(lax.gt(x, np.float32(0)), np.int32), (0,)
            ),
            lambda np, *a: np.count_nonzero(a[0] > 0),
            lambda torch, *a: torch.count_nonzero(a[0] > 0),
        ),
        "argmax 1e7": (
            (large,),
            lambda x: lax.argmax(x, 0, np.int32),
            lambda np, *a: np.argmax(*a),
            lambda torch, *a: torch.argmax(*a),
        ),
        "argmax of rows": (
            (wide,),
            lambda x: lax.argmax(x, 1, np.int32),
            lambda np, *a: np.argmax(a[0], 1),
            lambda torch, *a: torch.argmax(a[0], 1),
        ),
        "argmax of columns": (
            (wide,),
            lambda x: lax.argmax(x, 0, np.int32),
            lambda np, *a: np.argmax(a[0], 0),
            lambda torch, *a: torch.argmax(a[0], 0),
        ),
        "cumsum 1e6": (
            (million,),
            along(lax.cumsum, 0),
            lambda np, *a: np.cumsum(*a),
            lambda torch, *a: torch.cumsum(a[0], 0),
        ),
        "cumsum int32 1e6": (
            (integers,),
            along(lax.cumsum, 0),
            lambda np, *a: np.cumsum(a[0], dtype=np.int32),
            lambda torch, *a: torch.cumsum(a[0], 0, dtype=torch.int32),
        ),
        "cumsum of rows": (
            (wide,),
            along(lax.cumsum, 1),
            lambda np, *a: np.cumsum(a[0], 1),
            lambda torch, *a: torch.cumsum(a[0], 1),
        ),
        "cumsum of columns": (
            (wide,),
            along(lax.cumsum, 0),
            lambda np, *a: np.cumsum(a[0], 0),
            lambda torch, *a: torch.cumsum(a[0], 0),
        ),
        "cummax 1e6": (
            (million,),
            along(lax.cummax, 0),
            lambda np, *a: np.maximum.accumulate(*a),
            lambda torch, *a: torch.cummax(a[0], 0)[0],
        ),
        "cumlogsumexp 1e6": (
            (million,),
            along(lax.cumlogsumexp, 0),
            lambda np, *a: np.logaddexp.accumulate(*a),
            lambda torch, *a: torch.logcumsumexp(a[0], 0),
        ),
        "sort 1e6": (
            (million,),
            lax.sort,
            lambda np, *a: np.sort(*a),
            lambda torch, *a: torch.sort(a[0])[0],
        ),
        "sort int32 1e6": (
            (integers,),
            lax.sort,
            lambda np, *a: np.sort(*a),
            lambda torch, *a: torch.sort(a[0])[0],
        ),
        "sort with values 1e6": (
            (million, integers),
            lambda k, v: lax.sort_key_val(k, v),
            lambda np, *a: a[1][np.argsort(a[0], kind="stable")],
            lambda torch, *a: a[1][torch.argsort(a[0], stable=True)],
        ),
        "sort of rows of 8": (
            (short,),
            lax.sort,
            lambda np, *a: np.sort(*a),
            lambda torch, *a: torch.sort(a[0])[0],
        ),
        "top 10 of 1e6": (
            (million,),
            lambda x: lax.top_k(x, 10),
            lambda np, *a: np.partition(a[0], -10)[-10:],
            lambda torch, *a: torch.topk(a[0], 10),
        ),
        "random bits 1e7": (
            (),
            lambda: random.bits(random.key(0), (10_000_000,)),
            lambda np, *a: np.random.default_rng(0).integers(0, 2**32, 10_000_000, dtype=np.uint32),
            lambda torch, *a: torch.randint(0, 2**31 - 1, (10_000_000,), dtype=torch.int32),
        ),
        "random uniform 1e7": (
            (),
            lambda: random.uniform(random.key(0), (10_000_000,)),
            lambda np, *a: np.random.default_rng(0).random(10_000_000, dtype=np.float32),
            lambda torch, *a: torch.rand(10_000_000),
        ),
        "random normal 1e7": (
            (),
            lambda: random.normal(random.key(0), (10_000_000,)),
            lambda np, *a: np.random.default_rng(0).standard_normal(10_000_000, dtype=np.float32),
            lambda torch, *a: torch.randn(10_000_000),
        ),
        "gamma numbers 1e6": (
            (),
            lambda: random.gamma(random.key(0), 2.5, (1_000_000,)),
            lambda np, *a: np.random.default_rng(0).gamma(2.5, size=1_000_000),
            lambda torch, *a: torch._standard_gamma(torch.full((1_000_000,), 2.5)),
        ),
        "beta numbers 1e6": (
            (),
            lambda: random.beta(random.key(0), 2.5, 0.5, (1_000_000,)),
            lambda np, *a: np.random.default_rng(0).beta(2.5, 0.5, 1_000_000),
            None,
        ),
        "Poisson numbers 1e6": (
            (),
            lambda: random.poisson(random.key(0), 30.0, (1_000_000,)),
            lambda np, *a: np.random.default_rng(0).poisson(30.0, 1_000_000),
            lambda torch, *a: torch.poisson(torch.full((1_000_000,), 30.0)),
        ),
        "binomial numbers 1e6": (
            (),
            lambda: random.binomial(random.key(0), 100, 0.3, (1_000_000,)),
            lambda np, *a: np.random.default_rng(0).binomial(100, 0.3, 1_000_000),
            lambda torch, *a: torch.binomial(
                torch.full((1_000_000,), 100.0), torch.full((1_000_000,), 0.3)
            ),
        ),
        "Dirichlet numbers 1e5 x 10": (
            (),
            lambda: random.dirichlet(random.key(0), np.full(10, 1.5, np.float32), (100_000,)),
            lambda np, *a: np.random.default_rng(0).dirichlet(np.full(10, 1.5), 100_000),
            lambda torch, *a: torch._sample_dirichlet(torch.full((100_000, 10), 1.5)),
        ),
        "permutation 1e6": (
            (),
            lambda: random.permutation(random.key(0), 1_000_000),
            lambda np, *a: np.random.default_rng(0).permutation(1_000_000),
            lambda torch, *a: torch.randperm(1_000_000),
        ),
        "sums of 1000 segments of 1e6": (
            (second, positions % 1000),
            lambda x, i: ops.segment_sum(x, i, 1000),
            lambda np, x, i: np.bincount(i, x, 1000),
            lambda torch, x, i: torch.zeros(1000).index_add_(0, i, x),
        ),
        "sums of 1e6 segments of 1e6": (
            (second, positions),
            lambda x, i: ops.segment_sum(x, i, 1_000_000),
            lambda np, x, i: np.bincount(i, x, 1_000_000),
            lambda torch, x, i: torch.zeros(1_000_000).index_add_(0, i, x),
        ),
        "take 1e6 of 1e6": (
            (million, positions),
            take,
            lambda np, *a: a[0][a[1]],
            lambda torch, *a: a[0][a[1].long()],
        ),
        "scatter-add 1e6 into 1e6": (
            (million, positions, second),
            scatter,
            None,
            lambda np, *a: a[0].clone().index_add_(0, a[1], a[2]),
        ),
        "max pool 2 x 2": (
            (images,),
            pool,
            None,
            lambda torch, *a: torch.nn.functional.max_pool2d(a[0].permute(0, 3, 1, 2), 2),
        ),
        "gradient of max pool 2 x 2": ((images,), pool_gradient, None, None),
        "depthwise convolution 3 x 3": (
            (images, depthwise),
            lambda x, k: convolve(x, k, 32),
            None,
            lambda torch, x, k: torch.nn.functional.conv2d(
                x.permute(0, 3, 1, 2), k.permute(3, 2, 0, 1), padding=1, groups=32
            ),
        ),
        "convolution 3 x 3": (
            (images, kernel),
            lambda x, k: convolve(x, k, 1),
            None,
            lambda torch, x, k: torch.nn.functional.conv2d(
                x.permute(0, 3, 1, 2), k.permute(3, 2, 0, 1), padding=1
            ),
        ),
        "convolution 1e6 with 5": (
            (signal, taps),
            lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME"),
            lambda np, *a: np.convolve(a[0][0, 0], a[1][0, 0], "same"),
            lambda torch, *a: torch.nn.functional.conv1d(*a, padding=2),
        ),
        "matrix product 1000": (
            (square, square),
            lax.dot,
            lambda np, *a: np.dot(*a),
            lambda torch, *a: torch.mm(*a),
        ),
        "fft 2**20": (
            (million[: 2**19].astype(np.complex64).repeat(2),),
            lambda x: lax.fft(x, "FFT", (2**20,)),
            lambda np, *a: np.fft.fft(*a),
            lambda torch, *a: torch.fft.fft(*a),
        ),
        "Cholesky 500": (
            (definite,),
            lambda x: lax.linalg.cholesky(x),
            lambda np, *a: np.linalg.cholesky(*a),
            lambda torch, *a: torch.linalg.cholesky(*a),
        ),
        "QR 500": (
            (square[:500, :500],),
            lambda x: lax.linalg.qr(x),
            lambda np, *a: np.linalg.qr(*a),
            lambda torch, *a: torch.linalg.qr(*a),
        ),
        "eigenvalues of a symmetric matrix 200": (
            (symmetric,),
            lambda x: lax.linalg.eigh(x),
            lambda np, *a: np.linalg.eigh(*a),
            lambda torch, *a: torch.linalg.eigh(*a),
        ),
        "SVD 200": (
            (square[:200, :200],),
            lambda x: lax.linalg.svd(x),
            lambda np, *a: np.linalg.svd(*a),
            lambda torch, *a: torch.linalg.svd(*a),
        ),
    }
    return found


Makers = dict[str, Callable[[], Callable[[], Any]]]


def calls_with_arrays(framework: str) -> Makers:
    """By name, functions that make a call of an operation of NumPy or PyTorch."""
    module = import_module(framework)
    anything = _Anything()
    put = (lambda x: module.from_numpy(x.copy())) if framework == "torch" else np.copy

    def maker(function: Function, arrays: tuple[Any, ...]) -> Callable[[], Callable[[], Any]]:
        return lambda: partial(function, module, *map(put, arrays))

    return {
        name: maker(function, arrays)
        for name, (arrays, _, *theirs) in operations(anything, anything, anything, anything).items()
        if (function := theirs[framework == "torch"])
    }


def calls_of_programs(framework: str) -> Makers:
    """By name, functions that make a call of a compiled operation of dovetail or JAX."""
    module = import_module(framework)
    lax, random, ops = (import_module(f"{framework}.{name}") for name in ("lax", "random", "ops"))
    import_module(f"{framework}.lax.linalg")

    def maker(function: Function, arrays: tuple[Any, ...]) -> Callable[[], Callable[[], Any]]:
        compiled = module.jit(function)
        return lambda: partial(compiled, *map(module.device_put, arrays))

    return {
        name: maker(function, arrays)
        for name, (arrays, function, *_) in operations(lax, random, ops, module.grad).items()
    }


def main() -> None:
    framework = sys.argv[1]
    if framework in ("numpy", "torch"):
        makers, wait = calls_with_arrays(framework), lambda result: result
    else:
        makers, wait = calls_of_programs(framework), import_module(framework).block_until_ready
    print(json.dumps(list(makers)), flush=True)
    for line in sys.stdin:
        # Arrays are made anew, because their places in memory have an influence.
        print(milliseconds(makers[line.strip()](), wait), flush=True)


class _Anything:
    """Stands for a module whose functions are not called."""

    def __getattr__(self, name: str) -> Any:
        return self


if __name__ == "__main__":
    main()
