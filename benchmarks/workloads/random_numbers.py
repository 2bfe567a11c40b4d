"""Random numbers, permutations and choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from workloads.base import Function, Workload, moments, normals, nothing, uniforms

GENERATOR = np.random.default_rng(0)


def drawn(
    name: str,
    function: Function,
    numpy: Function | None,
    torch: Function | None,
    *arrays: Callable[[], Any],
    compared: Function = moments,
    tolerance: float = 2e-2,
    x64: bool = False,
) -> Workload:
    """Numbers of a key that is made of an argument, so that nothing is known while compiling.

    Args:
        function: of the framework, a key, and the arrays.
        arrays: functions that make further arguments.
    """
    return Workload(
        name,
        lambda: (np.uint32(7), *(make() for make in arrays)),
        lambda dt, seed, *a: function(dt, dt.random.key(seed), *a),
        None if numpy is None else lambda _, *a: numpy(*a),
        None if torch is None else lambda module, _, *a: torch(module, *a),
        x64=x64,
        compared=compared,
        tolerance=tolerance,
    )


def uniform(shown: str, size: int) -> Workload:
    return drawn(
        f"uniform {shown}",
        lambda dt, key: dt.random.uniform(key, (size,)),
        lambda: GENERATOR.random(size, dtype=np.float32),
        lambda torch: torch.rand(size),
    )


def normal(shown: str, size: int) -> Workload:
    return drawn(
        f"normal {shown}",
        lambda dt, key: dt.random.normal(key, (size,)),
        lambda: GENERATOR.standard_normal(size, dtype=np.float32),
        lambda torch: torch.randn(size),
        tolerance=0.1,
    )


WORKLOADS = [
    drawn(
        "random bits 1e7",
        lambda dt, key: dt.random.bits(key, (10**7,)),
        lambda: GENERATOR.integers(0, 2**32, 10**7, dtype=np.uint32),
        lambda torch: torch.randint(0, 2**31 - 1, (10**7,), dtype=torch.int32),
        compared=nothing,
    ),
    uniform("1e3", 1000),
    uniform("1e5", 100_000),
    uniform("1e7", 10_000_000),
    normal("1e3", 1000),
    normal("1e5", 100_000),
    normal("1e7", 10_000_000),
    drawn(
        "normal f64 1e6",
        lambda dt, key: dt.random.normal(key, (10**6,), np.float64),
        lambda: GENERATOR.standard_normal(10**6),
        lambda torch: torch.randn(10**6, dtype=torch.float64),
        x64=True,
    ),
    drawn(
        "random integers below 1000 1e6",
        lambda dt, key: dt.random.randint(key, (10**6,), 0, 1000),
        lambda: GENERATOR.integers(0, 1000, 10**6, dtype=np.int32),
        lambda torch: torch.randint(0, 1000, (10**6,), dtype=torch.int32),
    ),
    drawn(
        "Bernoulli 1e6",
        lambda dt, key: dt.random.bernoulli(key, 0.3, (10**6,)),
        lambda: GENERATOR.random(10**6, dtype=np.float32) < 0.3,
        lambda torch: torch.rand(10**6) < 0.3,
    ),
    drawn(
        "exponential 1e6",
        lambda dt, key: dt.random.exponential(key, (10**6,)),
        lambda: GENERATOR.standard_exponential(10**6, dtype=np.float32),
        lambda torch: torch.empty(10**6).exponential_(),
    ),
    drawn(
        "gamma numbers 1e6",
        lambda dt, key: dt.random.gamma(key, 2.5, (10**6,)),
        lambda: GENERATOR.standard_gamma(2.5, 10**6, dtype=np.float32),
        lambda torch: torch._standard_gamma(torch.full((10**6,), 2.5)),
    ),
    drawn(
        "beta numbers 1e6",
        lambda dt, key: dt.random.beta(key, 2.5, 0.5, (10**6,)),
        lambda: GENERATOR.beta(2.5, 0.5, 10**6),
        lambda torch: (
            (x := torch._standard_gamma(torch.full((10**6,), 2.5)))
            / (x + torch._standard_gamma(torch.full((10**6,), 0.5)))
        ),
    ),
    drawn(
        "Poisson numbers 1e6",
        lambda dt, key: dt.random.poisson(key, 30.0, (10**6,)),
        lambda: GENERATOR.poisson(30.0, 10**6),
        lambda torch: torch.poisson(torch.full((10**6,), 30.0)),
    ),
    drawn(
        "binomial numbers 1e6",
        lambda dt, key: dt.random.binomial(key, 100, 0.3, (10**6,)),
        lambda: GENERATOR.binomial(100, 0.3, 10**6),
        lambda torch: torch.binomial(torch.full((10**6,), 100.0), torch.full((10**6,), 0.3)),
    ),
    drawn(
        "Dirichlet numbers 1e5 x 10",
        lambda dt, key, alpha: dt.random.dirichlet(key, alpha, (100_000,)),
        lambda alpha: GENERATOR.dirichlet(alpha, 100_000),
        lambda torch, alpha: torch._sample_dirichlet(alpha.expand(100_000, 10)),
        lambda: np.full(10, 1.5, np.float32),
    ),
    drawn(
        "permutation 1e6",
        lambda dt, key: dt.random.permutation(key, 10**6),
        lambda: GENERATOR.permutation(10**6),
        lambda torch: torch.randperm(10**6),
    ),
    drawn(
        "shuffle 1e6",
        lambda dt, key, x: dt.random.permutation(key, x),
        lambda x: GENERATOR.permutation(x),
        lambda torch, x: x[torch.randperm(10**6)],
        lambda: normals(10**6),
    ),
    drawn(
        "shuffle rows 1e4 x 100",
        lambda dt, key, x: dt.random.permutation(key, x),
        lambda x: GENERATOR.permutation(x),
        lambda torch, x: x[torch.randperm(10_000)],
        lambda: normals(10_000, 100),
    ),
    drawn(
        "choice of 1e5 without replacement, 1e3",
        lambda dt, key: dt.random.choice(key, 100_000, (1000,), replace=False),
        lambda: GENERATOR.choice(100_000, 1000, replace=False),
        lambda torch: torch.randperm(100_000)[:1000],
        tolerance=0.2,
    ),
    drawn(
        "choice of 1e3 with weights, 1e5",
        lambda dt, key, p: dt.random.choice(key, 1000, (100_000,), p=p / dt.numpy.sum(p)),
        lambda p: GENERATOR.choice(1000, 100_000, p=p.astype(np.float64) / p.sum(dtype=np.float64)),
        lambda torch, p: torch.multinomial(p, 100_000, replacement=True),
        lambda: uniforms(1000),
    ),
    drawn(
        "categorical 1e4 x 100",
        lambda dt, key, x: dt.random.categorical(key, x),
        lambda x: np.argmax(x + GENERATOR.gumbel(size=x.shape).astype(np.float32), axis=-1),
        lambda torch, x: torch.multinomial(torch.softmax(x, -1), 1),
        lambda: normals(10_000, 100),
        tolerance=0.1,
    ),
]
