"""platform_dependent: a branch for each platform, under all transformations.

The laws: on a platform it is the function for this platform, whatever is done with it; and what is
meant for other platforms is never lowered for this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import MissingRuleError
from dovetail.extend import Primitive

X = jnp.array([0.5, -1.0, 2.0])
Y = jnp.array([[1.0, 2.0, 3.0], [0.5, 0.25, 4.0]])


def elsewhere_only() -> Callable[[Any], Any]:
    """An operation that no platform of this machine can do."""
    name = "tests_only_elsewhere"
    primitive: Any = Primitive(name)
    primitive.define("abstract", lambda x: x)
    primitive.define("jvp", lambda p, t: (primitive.bind(p[0]), primitive.bind(t[0])))
    primitive.define("transpose", lambda ct, x: [primitive.bind(ct)])
    primitive.define("batch", lambda args, dims: (primitive.bind(*args), *dims))
    return lambda x: primitive.bind(x)


elsewhere = elsewhere_only()


def here(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y


def there(x: Any, y: Any) -> Any:
    return elsewhere(x) * elsewhere(y) * x


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "named": lambda x, y: lax.platform_dependent(x, y, cuda=there, cpu=here, tpu=there),
    "default": lambda x, y: lax.platform_dependent(x, y, cuda=there, default=here),
    "named before default": lambda x, y: lax.platform_dependent(x, y, cpu=here, default=there),
    "default alone": lambda x, y: lax.platform_dependent(x, y, default=here),
    "captured": lambda x, y: lax.platform_dependent(
        cpu=lambda: here(x, y), default=lambda: there(x, y)
    ),
    "a tree": lambda x, y: lax.platform_dependent(
        {"x": x, "y": y}, cuda=lambda d: there(**d), cpu=lambda d: here(**d)
    ),
}


def in_scan(f: Any) -> Any:
    return lambda x, y: lax.scan(lambda c, e: (f(c, e), c), x, jnp.stack([y, y + 1]))


TRANSFORMATIONS: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f(X, Y),
    "jit": lambda f: dt.jit(f)(X, Y),
    "jvp": lambda f: dt.jvp(f, (X, Y), (2 * X, Y + 1)),
    "linearize": lambda f: dt.linearize(f, X, Y)[1](2 * X, Y + 1),
    "grad": lambda f: dt.grad(lambda x, y: f(x, y).sum(), (0, 1))(X, Y),
    "grad of jit": lambda f: dt.grad(lambda x: dt.jit(f)(x, Y).sum())(X),
    "jit of grad": lambda f: dt.jit(dt.grad(lambda x: f(x, Y).sum()))(X),
    "vmap": lambda f: dt.vmap(f, (0, 1))(X, Y),
    "vmap of y": lambda f: dt.vmap(f, (None, 0))(X, Y),
    "vmap of grad": lambda f: dt.vmap(dt.grad(f))(X, Y[0]),
    "vmap of vmap of grad": lambda f: dt.jit(dt.vmap(dt.vmap(dt.grad(f)), (None, 0)))(X, Y),
    "hessian": lambda f: dt.hessian(f)(0.5, 2.0),
    "third order": lambda f: dt.grad(dt.grad(dt.grad(f)))(0.5, 2.0),
    "scan": lambda f: in_scan(f)(X, Y[0]),
    "grad of scan": lambda f: dt.grad(lambda x: in_scan(f)(x, Y[0])[0].sum())(X),
    "cond": lambda f: dt.vmap(lambda x: lax.cond(x > 0, f, lambda x, y: y, x, 2.0))(X),
    "checked": lambda f: _checked(f),
}


def _checked(f: Any) -> Any:
    with dt.enable_checks(True):
        return dt.jit(dt.vmap(dt.grad(f)))(X, Y[0])


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_the_function_for_the_platform(function: str, transformation: str) -> None:
    transform = TRANSFORMATIONS[transformation]
    found, wanted = transform(FUNCTIONS[function]), transform(here)
    assert dt.tree.structure(found) == dt.tree.structure(wanted)
    for one, other in zip(dt.tree.leaves(found), dt.tree.leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5)


def lowered(function: Callable[..., Any], *platforms: str) -> str:
    text: str = dt.jit(function).trace(1.0).lower(lowering_platforms=platforms).as_text()
    return text


def three(x: Any) -> Any:
    return lax.platform_dependent(x, cpu=lax.sin, cuda=lax.cos, default=lax.tan)


OPERATIONS = {"cpu": "sine", "cuda": "cosine", "tpu": "tan"}


@pytest.mark.parametrize("platform", OPERATIONS)
def test_programs_for_one_platform(platform: str) -> None:
    text = lowered(three, platform)
    assert {p for p, op in OPERATIONS.items() if f"stablehlo.{op} " in text} == {platform}
    assert "stablehlo.case" not in text


def test_programs_for_several_platforms() -> None:
    def function(x: Any) -> Any:
        return dt.jit(dt.grad(three))(x) + three(x)

    text = lowered(function, "cpu", "tpu")
    assert "stablehlo.sine " in text
    assert "stablehlo.tan " in text
    assert text.count("stablehlo.case") >= 3
    # The derivative of the sine is a cosine: that of cuda's cosine would be negated.
    assert "stablehlo.negate" not in text
    assert "%arg0: tensor<i32>" in text


def test_programs_print_as_in_jax() -> None:
    text = str(dt.make_jaxpr(three)(1.0))
    assert "platform_index[platforms=(('cpu',), ('cuda',), None)]" in text
    assert "branches_platforms=(('cpu',), ('cuda',), None)" in text


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], tuple[str, ...]]] = {
    "no function": (lambda: lax.platform_dependent(1.0), ValueError, ("cpu=...", "default=...")),
    "gpu": (
        lambda: lax.platform_dependent(1.0, gpu=lax.sin, default=lax.cos),
        ValueError,
        ("gpu is no platform", "cuda=..."),
    ),
    "not a function": (
        lambda: lax.platform_dependent(1.0, cpu=3),  # type: ignore[arg-type]
        TypeError,
        ("lax.platform_dependent: cpu must be a function, got 3 of type int",),
    ),
    "not for this platform": (
        lambda: lax.platform_dependent(1.0, cuda=lax.sin, tpu=lax.cos),
        MissingRuleError,
        ("no branch for the platform 'cpu'", "it has cuda, tpu", "no default"),
    ),
    "not for one of several": (
        lambda: lowered(lambda x: lax.platform_dependent(x, cpu=lax.sin), "cpu", "tpu"),
        MissingRuleError,
        ("no branch for the platform 'tpu'",),
    ),
    "structures": (
        lambda: lax.platform_dependent(1.0, cpu=lambda x: x, default=lambda x: (x,)),
        TypeError,
        ("lax.platform_dependent", "cpu <lambda>", "a tuple of length 1"),
    ),
    "dtypes": (
        lambda: lax.platform_dependent(X, cpu=lambda x: x, default=lambda x: x > 0),
        TypeError,
        ("lax.platform_dependent", "f32[3]", "bool[3]", "test_platform_dependent.py:"),
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, kind, parts = ERRORS[case]
    with pytest.raises(kind) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
