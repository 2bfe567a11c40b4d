"""Chains of operations that a compiler makes one loop of, and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from workloads.base import Workload, integers, normals, uniforms


def softmax(shown: str, *shape: int) -> Workload:
    return Workload(
        f"softmax {shown}",
        lambda: (normals(*shape),),
        lambda dt, x: dt.nn.softmax(x, axis=-1),
        lambda x: special.softmax(x, axis=-1),
        lambda torch, x: torch.softmax(x, -1),
    )


def gelu(shown: str, size: int, approximate: bool) -> Workload:
    def theirs(x: Any) -> Any:
        if approximate:
            return x * special.expit(np.float32(1.5957691) * (x + np.float32(0.044715) * x * x * x))
        return x * special.ndtr(x)

    return Workload(
        f"gelu {shown}, {'approximate' if approximate else 'exact'}",
        lambda: (normals(size),),
        lambda dt, x: dt.nn.gelu(x, approximate=approximate),
        theirs,
        lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh" if approximate else "none"),
    )


def _layer_norm(dt: Any, x: Any, scale: Any, shift: Any) -> Any:
    mean = dt.numpy.mean(x, axis=-1, keepdims=True)
    variance = dt.numpy.var(x, axis=-1, keepdims=True)
    return (x - mean) * dt.lax.rsqrt(variance + 1e-5) * scale + shift


def _numpy_layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    variance = (centered * centered).mean(-1, keepdims=True)
    return centered / np.sqrt(variance + np.float32(1e-5)) * scale + shift


def layer_norm(shown: str, *shape: int) -> Workload:
    return Workload(
        f"layer norm {shown}",
        lambda: (normals(*shape), normals(shape[-1], seed=1), normals(shape[-1], seed=2)),
        _layer_norm,
        _numpy_layer_norm,
        lambda torch, x, scale, shift: torch.nn.functional.layer_norm(
            x, (shape[-1],), scale, shift
        ),
    )


def _black_scholes(m: Any, cumulative: Any, spot: Any, strike: Any, time: Any) -> Any:
    spread = 0.2 * m.sqrt(time)
    first = (m.log(spot / strike) + (0.03 + 0.02) * time) / spread
    return spot * cumulative(first) - strike * m.exp(-0.03 * time) * cumulative(first - spread)


def _torch_cumulative(torch: Any) -> Any:
    return torch.special.ndtr


def _polynomial(x: Any) -> Any:
    result = x * 0.1 + 0.2
    for number in range(8):
        result = result * x + 0.1 * number
    return result


def polynomial(shown: str, size: int) -> Workload:
    return Workload(
        f"polynomial of degree 9, {shown}",
        lambda: (uniforms(size),),
        lambda dt, x: _polynomial(x),
        _polynomial,
        lambda torch, x: _polynomial(x),
    )


def _stencil(x: Any) -> Any:
    inner = x[1:-1, 1:-1]
    around = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
    return inner + 0.1 * (around - 4 * inner)


def _cross_entropy(dt: Any, x: Any, labels: Any) -> Any:
    return -dt.numpy.mean(
        dt.numpy.take_along_axis(dt.nn.log_softmax(x, axis=-1), labels[:, None], axis=1)
    )


def _torch_entropy_gradient(torch: Any, x: Any, labels: Any) -> Any:
    x = x.requires_grad_()
    return torch.autograd.grad(torch.nn.functional.cross_entropy(x, labels.long()), x)[0]


def _haversine(m: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    between = m.sin((b - a) / 2) ** 2 + m.cos(a) * m.cos(b) * m.sin((d - c) / 2) ** 2
    return 2 * m.arctan2(m.sqrt(between), m.sqrt(1 - between))


def _logistic_map(dt: Any, x: Any) -> Any:
    return dt.lax.fori_loop(0, 100, lambda _, y: 3.5 * y * (1 - y), x)


def _loop(x: Any) -> Any:
    for _ in range(100):
        x = 3.5 * x * (1 - x)
    return x


def _recurrence(dt: Any, x: Any, decay: Any) -> Any:
    def step(state: Any, value: Any) -> tuple[Any, Any]:
        state = decay * state + value
        return state, state

    return dt.lax.scan(step, dt.numpy.zeros_like(x[0]), x)[1]


def _numpy_recurrence(x: Any, decay: Any) -> Any:
    found = np.empty_like(x)
    state = np.zeros_like(x[0])
    for number, value in enumerate(x):
        state = decay * state + value
        found[number] = state
    return found


def _torch_recurrence(torch: Any, x: Any, decay: Any) -> Any:
    found = torch.empty_like(x)
    state = torch.zeros_like(x[0])
    for number, value in enumerate(x):
        state = decay * state + value
        found[number] = state
    return found


WORKLOADS = [
    softmax("1x1000", 1, 1000),
    softmax("1000x1000", 1000, 1000),
    softmax("64x4x128x128", 64, 4, 128, 128),
    Workload(
        "log softmax 1000x1000",
        lambda: (normals(1000, 1000),),
        lambda dt, x: dt.nn.log_softmax(x, axis=-1),
        lambda x: special.log_softmax(x, axis=-1),
        lambda torch, x: torch.log_softmax(x, -1),
    ),
    Workload(
        "softmax of columns 1000x1000",
        lambda: (normals(1000, 1000),),
        lambda dt, x: dt.nn.softmax(x, axis=0),
        lambda x: special.softmax(x, axis=0),
        lambda torch, x: torch.softmax(x, 0),
    ),
    layer_norm("32x64", 32, 64),
    layer_norm("2000x512", 2000, 512),
    Workload(
        "RMS norm 2000x512",
        lambda: (normals(2000, 512), normals(512, seed=1)),
        lambda dt, x, s: x * dt.lax.rsqrt(dt.numpy.mean(x * x, -1, keepdims=True) + 1e-6) * s,
        lambda x, s: x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-6)) * s,
        lambda torch, x, s: torch.nn.functional.rms_norm(x, (512,), s, 1e-6),
    ),
    gelu("1e5", 10**5, approximate=True),
    gelu("1e6", 10**6, approximate=True),
    gelu("1e6", 10**6, approximate=False),
    gelu("1e7", 10**7, approximate=False),
    Workload(
        "silu 1e6",
        lambda: (normals(10**6),),
        lambda dt, x: dt.nn.silu(x),
        lambda x: x * special.expit(x),
        lambda torch, x: torch.nn.functional.silu(x),
    ),
    Workload(
        "relu 1e7",
        lambda: (normals(10**7),),
        lambda dt, x: dt.nn.relu(x),
        lambda x: np.maximum(x, np.float32(0)),
        lambda torch, x: torch.relu(x),
    ),
    Workload(
        "softplus 1e6",
        lambda: (normals(10**6),),
        lambda dt, x: dt.nn.softplus(x),
        lambda x: np.logaddexp(x, np.float32(0)),
        lambda torch, x: torch.nn.functional.softplus(x),
    ),
    Workload(
        "a x + y 1e7",
        lambda: (np.float32(2.5), normals(10**7), normals(10**7, seed=1)),
        lambda dt, a, x, y: a * x + y,
        lambda a, x, y: a * x + y,
        lambda torch, a, x, y: torch.add(y, x, alpha=2.5),
    ),
    Workload(
        "mean squared error 1e6",
        lambda: (normals(10**6), normals(10**6, seed=1)),
        lambda dt, x, y: dt.numpy.mean((x - y) ** 2),
        lambda x, y: np.mean((x - y) ** 2),
        lambda torch, x, y: torch.nn.functional.mse_loss(x, y),
    ),
    polynomial("1e3", 1000),
    polynomial("1e6", 10**6),
    polynomial("1e7", 10**7),
    Workload(
        "Black-Scholes 1e6",
        lambda: tuple(uniforms(10**6, low=0.5, high=1.5, seed=i) for i in range(3)),
        lambda dt, *a: _black_scholes(dt.numpy, dt.scipy.special.ndtr, *a),
        lambda *a: _black_scholes(np, special.ndtr, *a),
        lambda torch, *a: _black_scholes(torch, _torch_cumulative(torch), *a),
    ),
    Workload(
        "great-circle distances 1e5",
        lambda: tuple(uniforms(100_000, seed=i) for i in range(4)),
        lambda dt, *a: _haversine(dt.numpy, *a),
        lambda *a: _haversine(np, *a),
        lambda torch, *a: _haversine(torch, *a),
    ),
    Workload(
        "stencil of five points 1000x1000",
        lambda: (normals(1000, 1000),),
        lambda dt, x: _stencil(x),
        _stencil,
        lambda torch, x: _stencil(x),
    ),
    Workload(
        "cross entropy with gradient 1000x1000",
        lambda: (normals(1000, 1000), integers(1000)),
        lambda dt, x, labels: dt.grad(lambda y: _cross_entropy(dt, y, labels))(x),
        None,
        _torch_entropy_gradient,
    ),
    Workload(
        "standardize columns 1e5 x 10",
        lambda: (normals(100_000, 10),),
        lambda dt, x: (x - dt.numpy.mean(x, 0)) / dt.numpy.std(x, 0),
        lambda x: (x - np.mean(x, 0)) / np.std(x, 0),
        lambda torch, x: (x - torch.mean(x, 0)) / torch.std(x, 0, correction=0),
    ),
    Workload(
        "cosine similarity 1000 of 512",
        lambda: (normals(1000, 512), normals(1000, 512, seed=1)),
        lambda dt, x, y: (
            dt.numpy.sum(x * y, 1)
            / (dt.numpy.linalg.norm(x, axis=1) * dt.numpy.linalg.norm(y, axis=1))
        ),
        lambda x, y: np.sum(x * y, 1) / (np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)),
        lambda torch, x, y: torch.nn.functional.cosine_similarity(x, y),
    ),
    Workload(
        "100 steps of the logistic map 1e5",
        lambda: (uniforms(100_000),),
        _logistic_map,
        _loop,
        lambda torch, x: _loop(x),
        compared=lambda x: np.asarray(x).mean(),
        tolerance=1e-2,
    ),
    Workload(
        "recurrence of 1000 steps of 64",
        lambda: (normals(1000, 64), np.float32(0.9)),
        _recurrence,
        _numpy_recurrence,
        _torch_recurrence,
    ),
]
