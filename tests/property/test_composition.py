"""Random programs, of operations and control flow, obey the laws of transformations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental.jet import jet

pytestmark = pytest.mark.laws

Function = Callable[[Any], Any]
#: A program is a tuple of steps; a step is the name of an operation, its number, and programs.
Step = tuple[str, int, tuple[Any, ...]]

SIZE = 3
MATRICES = np.random.default_rng(0).uniform(-0.7, 0.7, (8, SIZE, SIZE))
NUMBERS = np.linspace(-0.9, 0.8, 8)


def run(program: tuple[Step, ...], x: Any) -> Any:
    """Apply a program to a vector. All operations are smooth and keep values small."""
    for name, number, parts in program:
        x = (OPERATIONS | BACKWARD)[name](x, number, parts)
    return x


def _loop(x: Any, number: int, parts: tuple[Any, ...]) -> Any:
    def body(i: Any, carry: Any) -> Any:
        y, total = carry
        return run(parts[0], y + 0.1 * i), total + y

    y, total = lax.fori_loop(0, 1 + number % 3, body, (x, jnp.zeros_like(x)))
    return jnp.tanh(y + total)


def _scan(x: Any, number: int, parts: tuple[Any, ...]) -> Any:
    def body(carry: Any, element: Any) -> Any:
        new = run(parts[0], carry * 0.5 + element[0])
        return new, new[element[1]] * x[0]

    elements = (x, np.arange(SIZE))
    carry, results = lax.scan(body, x[::-1], elements, reverse=bool(number % 2))
    return carry * results


def _branch(x: Any, number: int, parts: tuple[Any, ...]) -> Any:
    first, second = (lambda y, p=p: run(p, y) for p in parts)
    # No jumps, which differences would meet: x decides nothing, and yet has to be known.
    return lax.cond(NUMBERS[number] > 0.0 * x[0], first, second, x)


def _mapped(x: Any, number: int, parts: tuple[Any, ...]) -> Any:
    rows = MATRICES[number] * x
    return jnp.sum(dt.vmap(lambda row: run(parts[0], row), out_axes=number % 2)(rows), axis=0) / 3


def _saved_little(x: Any, number: int, parts: tuple[Any, ...]) -> Any:
    policy = dt.checkpoint_policies.dots_saveable if number % 2 else None
    return dt.checkpoint(lambda y: run(parts[0], y) * y, policy=policy)(x)


@dt.custom_jvp
def _cubed(x: Any) -> Any:
    return x**3 * 0.5


@_cubed.defjvp
def _cubed_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _cubed(x), 1.5 * x**2 * t


@dt.custom_vjp
def _softened(x: Any, y: Any) -> Any:
    return jnp.tanh(x * y)


def _softened_forward(x: Any, y: Any) -> Any:
    return _softened(x, y), (x, y)


def _softened_backward(residuals: Any, ct: Any) -> Any:
    x, y = residuals
    slope = ct * (1.0 - jnp.tanh(x * y) ** 2)
    return slope * y, slope * x


_softened.defvjp(_softened_forward, _softened_backward)


def _counted(x: Any, number: int, parts: tuple[Any, ...]) -> Any:
    """A while loop that is not differentiated."""
    start = 0.5 + 0.0 * lax.stop_gradient(x[0])
    _, turns = lax.while_loop(
        lambda s: s[0] < 2.0 + number, lambda s: (s[0] * 1.7, s[1] + 1), (start, 0)
    )
    return x * (1.0 + 0.1 * turns)


def _written(x: Any, number: int, parts: tuple[Any, ...]) -> Any:
    """A loop that changes a mutable reference."""
    ref = dt.new_ref(x)

    def body(i: Any, carry: Any) -> Any:
        ref[i] += run(parts[0], 0.5 * ref[...])[number % SIZE] * carry
        return 0.9 * carry

    factor = lax.fori_loop(0, 2, body, 1.0)
    return factor * dt.freeze(ref)


OPERATIONS: dict[str, Callable[[Any, int, tuple[Any, ...]], Any]] = {
    "sin": lambda x, n, _: jnp.sin((1 + n % 2) * x),
    "logistic": lambda x, n, _: lax.logistic(x - NUMBERS[n]),
    "product": lambda x, n, _: x * (NUMBERS[n] - x[::-1]),
    "quotient": lambda x, n, _: x / (1.5 + x**2 + x[n % SIZE] ** 2),
    "matrix": lambda x, n, _: MATRICES[n] @ x,
    "outer": lambda x, n, _: jnp.sum(jnp.outer(x, x) * MATRICES[n], axis=n % 2),
    "cumulative": lambda x, n, _: jnp.cumsum(x) / (1 + n),
    "update": lambda x, n, _: x.at[n % SIZE].add(jnp.exp(-(x[0] ** 2))),
    "joined": lambda x, n, _: jnp.concatenate([x[n % SIZE :], jnp.cos(x)])[:SIZE],
    "chosen": lambda x, n, _: jnp.where(np.arange(SIZE) > n % SIZE, x, jnp.tanh(x)),
    "call": lambda x, n, parts: dt.jit(lambda y: run(parts[0], y))(x + NUMBERS[n]),
    "loop": _loop,
    "scan": _scan,
    "branch": _branch,
    "mapped": _mapped,
    "while": _counted,
    "checkpoint": _saved_little,
    "custom_jvp": lambda x, n, _: _cubed(x + NUMBERS[n]),
    "reference": _written,
}
PARTS = {
    "branch": 2,
    **dict.fromkeys(("call", "checkpoint", "loop", "mapped", "reference", "scan"), 1),
}
#: Without derivatives in forward mode.
BACKWARD: dict[str, Callable[[Any, int, tuple[Any, ...]], Any]] = {
    "custom_vjp": lambda x, n, _: _softened(x, NUMBERS[n] + x[::-1]),
}


@st.composite
def programs(draw: Any, depth: int = 2, most: int = 4, backward: bool = False) -> tuple[Step, ...]:
    """Programs whose control flow is nested up to `depth`, for reverse mode alone or for both."""
    known = OPERATIONS | BACKWARD if backward else OPERATIONS
    names = sorted(known.keys() - (PARTS.keys() if depth == 0 else ()))
    steps = []
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=most)):
        parts = tuple(draw(programs(depth - 1, 2, backward)) for _ in range(PARTS.get(name, 0)))
        steps.append((name, draw(st.integers(0, 7)), parts))
    return tuple(steps)


POINT = np.array([0.31, -0.24, 0.52])
DIRECTION = np.array([0.4, -0.7, 0.6])
WEIGHTS = np.array([1.1, 0.3, -0.8])


def _jvp(f: Function) -> Function:
    return lambda x: dt.jvp(f, (x,), (DIRECTION,))[1]


def _vjp(f: Function) -> Function:
    return lambda x: dt.vjp(f, x)[1](WEIGHTS)[0]


def _linearize(f: Function) -> Function:
    return lambda x: dt.linearize(f, x)[1](DIRECTION)


def _vmap(f: Function) -> Function:
    return lambda x: dt.vmap(f, in_axes=1, out_axes=1)(jnp.stack([x, x * 0.5], axis=1))[:, 0]


def _gradient(f: Function) -> Function:
    return dt.grad(lambda x: jnp.vdot(WEIGHTS, f(x)))


#: With what a transformation makes of the Jacobian J of a function: itself, J v, or w J.
TRANSFORMATIONS: dict[str, tuple[Callable[[Function], Function], str]] = {
    "jit": (dt.jit, ""),
    "vmap": (_vmap, ""),
    "jvp": (_jvp, "forward"),
    "linearize": (_linearize, "forward"),
    "vjp": (_vjp, "backward"),
    "grad": (_gradient, "backward"),
}
MATHEMATICS: dict[str, Callable[[Function], Function]] = {
    "": lambda f: f,
    "forward": lambda f: lambda x: differences(f)(x) @ DIRECTION,
    "backward": lambda f: lambda x: WEIGHTS @ differences(f)(x),
}


def differences(f: Function) -> Function:
    """The Jacobian, by Richardson's extrapolation of central differences."""

    def central(x: Any, h: float) -> Any:
        steps = h * np.eye(SIZE)
        return np.stack([(np.asarray(f(x + s)) - np.asarray(f(x - s))) / (2 * h) for s in steps], 1)

    return lambda x: (4 * central(x, 1e-3) - central(x, 2e-3)) / 3


def close(got: Any, want: Any, order: int) -> None:
    """Compare results that were differentiated `order` times."""
    tolerance = (1e-12, 1e-6, 1e-5)[order]
    scale = max(1.0, float(np.max(np.abs(want))))
    np.testing.assert_allclose(np.asarray(got), want, rtol=0, atol=tolerance * scale)


several = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    phases=[Phase.generate],  # a smaller example takes many minutes to find
)


@pytest.fixture(scope="module", autouse=True)
def double_precision() -> Any:
    with dt.enable_x64(True):
        yield


@several
@given(programs())
def test_one_transformation(program: tuple[Step, ...]) -> None:
    def f(x: Any) -> Any:
        return run(program, x)

    for transform, kind in TRANSFORMATIONS.values():
        close(transform(f)(POINT), MATHEMATICS[kind](dt.jit(f))(POINT), bool(kind))


@several
@given(programs())
def test_a_batch_is_a_loop(program: tuple[Step, ...]) -> None:
    def f(x: Any) -> Any:
        return run(program, x)

    points = np.random.default_rng(1).uniform(-0.6, 0.6, (4, SIZE))
    one, gradient = dt.jit(f), dt.jit(_gradient(f))
    close(dt.vmap(f)(points), np.stack([one(p) for p in points]), 0)
    close(dt.vmap(_gradient(f))(points), np.stack([gradient(p) for p in points]), 0)
    total = dt.grad(lambda ps: jnp.vdot(jnp.tile(WEIGHTS, (4, 1)), dt.vmap(f)(ps)))
    close(total(points), np.stack([gradient(p) for p in points]), 0)


@several
@given(programs())
def test_reverse_mode_is_the_adjoint_of_forward_mode(program: tuple[Step, ...]) -> None:
    def f(x: Any) -> Any:
        return run(program, x)

    forward, backward = _jvp(f)(POINT), _vjp(f)(POINT)
    close(np.vdot(WEIGHTS, forward), np.vdot(backward, DIRECTION), 0)
    close(_linearize(f)(POINT), forward, 0)


@several
@given(
    programs(),
    st.lists(st.sampled_from(sorted(TRANSFORMATIONS)), min_size=2, max_size=3).filter(
        lambda names: sum(bool(TRANSFORMATIONS[n][1]) for n in names) <= 2
    ),
)
def test_pairs_and_triples(program: tuple[Step, ...], names: list[str]) -> None:
    def f(x: Any) -> Any:
        return run(program, x)

    function, exact, order = f, dt.jit(f), 0
    for name in names:
        transform, kind = TRANSFORMATIONS[name]
        # The last derivative is compared with differences, those before it are tested above.
        exact = MATHEMATICS[kind](dt.jit(function) if kind else exact)
        order += bool(kind)
        function = transform(function)
    close(function(POINT), exact(POINT), order)


@several
@given(programs(backward=True))
def test_rules_for_reverse_mode(program: tuple[Step, ...]) -> None:
    def f(x: Any) -> Any:
        return run(program, x)

    want = MATHEMATICS["backward"](dt.jit(f))(POINT)
    for transform in (_gradient, _vjp, lambda f: dt.jit(_gradient(f)), lambda f: _vjp(_vmap(f))):
        close(transform(f)(POINT), want, 1)


@several
@given(programs())
def test_checkpoint_changes_nothing(program: tuple[Step, ...]) -> None:
    def f(x: Any) -> Any:
        return run(program, x)

    saved = dt.checkpoint(f)
    close(saved(POINT), f(jnp.asarray(POINT)), 0)
    close(_gradient(saved)(POINT), _gradient(f)(POINT), 0)
    close(_jvp(_gradient(saved))(POINT), _jvp(_gradient(f))(POINT), 0)


@several
@given(programs())
def test_the_first_coefficients_of_jet_are_derivatives(program: tuple[Step, ...]) -> None:
    def f(x: Any) -> Any:
        return run(program, x)

    value, (first, second) = jet(f, (POINT,), ((DIRECTION, np.zeros(SIZE)),))
    close(value, f(jnp.asarray(POINT)), 0)
    close(first, _jvp(f)(POINT), 0)
    close(second, _jvp(_jvp(f))(POINT), 0)
