"""The rule ``float64-by-accident`` of `dt.lint`."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random

VECTOR = dt.ShapeDtypeStruct((5,), np.float32)
ROWS = dt.ShapeDtypeStruct((3, 5), np.float32)
KEY = random.key(0)
INTEGERS = dt.ShapeDtypeStruct((5,), np.int32)
WIDE = dt.ShapeDtypeStruct((5,), np.float64)
ROOT = np.sqrt(2.0)
OFFSETS = np.linspace(0, 1, 5)

Program = Callable[..., Any]
Lines = Callable[[Program], list[str]]
_found: list[tuple[Program, tuple[Any, ...], str | None]] = []
_clean: list[tuple[Program, tuple[Any, ...]]] = []


def widens(argument: str | None, *args: Any) -> Callable[[Program], Program]:
    """Expect ``float64-by-accident``, about an argument, at the lines with ``# here``."""

    def register(program: Program) -> Program:
        _found.append((program, args, argument))
        return program

    return register


def stays(*args: Any) -> Callable[[Program], Program]:
    """Expect nothing with `enable_x64`."""

    def register(program: Program) -> Program:
        _clean.append((program, args))
        return program

    return register


@widens("x", VECTOR)
def number_of_numpy(x: Any) -> Any:
    return jnp.sin(ROOT * x)  # here


@widens("x", VECTOR)
def array_of_numpy(x: Any) -> Any:
    y = x + OFFSETS  # here
    return y * x  # widened already


@widens("params['w']", {"w": VECTOR})
def product_with_an_array_of_numpy(params: Any) -> Any:
    return jnp.dot(params["w"], OFFSETS)  # here


@widens("x", VECTOR)
def array_of_the_default_dtype(x: Any) -> Any:
    zeros = jnp.zeros(5)
    return x + zeros  # here


@widens(None, VECTOR)
def intermediate_value(x: Any) -> Any:
    y = jnp.sin(x)
    return jnp.where(y > 0, y, jnp.ones(5))  # here


@widens("x", VECTOR, KEY)
def noise_of_the_default_dtype(x: Any, key: Any) -> Any:
    return x + random.normal(key, (5,))  # here


@widens("x", VECTOR)
def number_of_numpy_in_scan(x: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        return c, x * ROOT  # here

    return lax.scan(step, 0.0, x)


@widens("x", VECTOR)
def number_of_numpy_under_grad(x: Any) -> Any:
    return dt.grad(lambda y: (y * ROOT).sum())(x)  # here


@widens("x", ROWS)
def number_of_numpy_under_vmap(x: Any) -> Any:
    return dt.vmap(dt.jit(lambda y: y * ROOT))(x)  # here


@widens("x", dt.ShapeDtypeStruct((5,), np.complex64))
def complex_number(x: Any) -> Any:
    return x * np.complex128(1j)  # here


@stays(VECTOR)
def numbers_of_python(x: Any) -> Any:
    return np.pi * x + 1.0 + float(ROOT)


@stays(VECTOR)
def arrays_of_32_bits(x: Any) -> Any:
    return x * np.float32(ROOT) + OFFSETS.astype(np.float32) + jnp.zeros(5, x.dtype)


@stays(VECTOR)
def conversion_that_is_written_out(x: Any) -> Any:
    y = x.astype(jnp.float64) * OFFSETS + jnp.zeros(5)
    return y + x + jnp.asarray(x, "float64") + jnp.sum(x, dtype=jnp.float64)


@stays(VECTOR)
def array_whose_dtype_is_written_out(x: Any) -> Any:
    return x + jnp.zeros(5, jnp.float64)


@stays(VECTOR, WIDE)
def argument_of_64_bits(x: Any, y: Any) -> Any:
    return x * jnp.sin(y)


@stays(VECTOR, WIDE)
def argument_of_64_bits_in_bodies(x: Any, y: Any) -> Any:
    x = lax.scan(lambda c, _: (c, x * y), 0.0, None, length=2)[1]
    return dt.jit(lambda x, y: x[0].astype(np.float32) + y)(x, y)


@stays(INTEGERS)
def integers(n: Any) -> Any:
    return n * ROOT + n / 2


@stays(WIDE)
def all_of_64_bits(x: Any) -> Any:
    return x * ROOT + OFFSETS


@stays(VECTOR)
def functions_of_the_framework(x: Any) -> Any:
    y = jnp.linalg.norm(x) + jnp.mean(x) + jnp.std(x) + jnp.interp(x, x, x).sum()
    return y + dt.nn.gelu(x) + dt.scipy.special.gammaln(x) + jnp.fft.fft(x).real


def names(program: Any) -> str:
    return program.__name__ if isinstance(program, types.FunctionType) else ""


@pytest.mark.parametrize(("program", "args", "argument"), _found, ids=names)
def test_a_widening_is_found(
    program: Program, args: tuple[Any, ...], argument: str | None, marked_lines: Lines
) -> None:
    with dt.enable_x64():
        report = dt.lint(program, *args)
    assert [f.rule for f in report] == ["float64-by-accident"] * len(report)
    assert [f.where for f in report] == marked_lines(program), report
    assert {f.argument for f in report} == {argument}
    assert not dt.lint(program, *args)  # all is of 32 bits


@pytest.mark.parametrize(("program", "args"), _clean, ids=names)
def test_what_is_no_widening(program: Program, args: tuple[Any, ...]) -> None:
    with dt.enable_x64():
        report = dt.lint(program, *args)
    assert not report, report
