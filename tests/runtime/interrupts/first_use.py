"""Interrupts the first use of dovetail in forked processes, each at another line, and tries again.

    python first_use.py COUNT SEED

Prints a line for each process in which something was wrong afterwards, and how many there were.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import Any, Final

# What is not ours is loaded before: it need not survive that its import is interrupted.
for _name in ("numpy", "ml_dtypes", "pluggy", "jaxlib.xla_client", "jaxlib.mlir.passmanager"):
    import_module(_name)
for _name in ("stablehlo", "func", "chlo"):
    import_module(f"jaxlib.mlir.dialects.{_name}")

FIRST: Final = """
import dovetail as dt, dovetail.numpy as jnp
from dovetail import lax, random
f = dt.jit(dt.grad(lambda x: jnp.sum(jnp.sin(x) * x)))
assert abs(float(f(jnp.ones(2))[0]) - 1.3817733) < 1e-5
assert (jnp.arange(3) + 1).tolist() == [1, 2, 3]
assert jnp.linalg.inv(jnp.eye(2)).tolist() == [[1, 0], [0, 1]]
assert random.normal(random.key(0), (2,)).shape == (2,)
assert float(lax.scan(lambda c, a: (c + a, c), 0.0, jnp.ones(3))[0]) == 3
"""
OTHER: Final = """
import dovetail as dt, dovetail.numpy as jnp
from dovetail import nn
x = jnp.ones(3)
assert (x + 1).tolist() == [2, 2, 2] and x.sum() == 3
assert dt.jit(lambda x: x * 2 + jnp.sum(x))(x).tolist() == [5, 5, 5]
assert dt.vmap(lambda x: x * 3)(x).tolist() == [3, 3, 3]
assert (jnp.array([True, False]) & True).tolist() == [True, False]
assert nn.relu(-x).tolist() == [0, 0, 0] and not dt.config.enable_x64
"""


class Interrupt(BaseException):
    """What the handler raises."""


def handle(number: int, frame: object) -> None:
    """A signal handler."""
    raise Interrupt


def run(number: int) -> int:
    """Run the first use, interrupted at a line; returns how many lines there were."""
    spec = find_spec("dovetail")
    assert spec is not None
    assert spec.origin is not None
    packages = os.path.abspath(os.path.join(spec.origin, *[".."] * 4))
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(packages):
            return None
        if event == "line":
            count += 1
            if count == number:
                sys.settrace(None)
                handle(0, frame)
        return trace

    sys.settrace(trace)
    try:
        exec(FIRST, {})
    finally:
        sys.settrace(None)
    return count


def attempt(number: int) -> str:
    """Be interrupted, and do it again."""
    with contextlib.suppress(Interrupt):
        run(number)
    for source in (FIRST, OTHER, FIRST):
        exec(source, {})
    return ""


def forked(function: Callable[[], object]) -> str:
    """What a function returns in a process of its own, or the traceback of its error."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            text = str(function())
        except BaseException as error:
            text = "".join(traceback.format_exception(error)[-6:])
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = file.read().decode()
    status = os.waitpid(child, 0)[1]
    return f"it ended with {status}" if status else said


def main(count: int, seed: int) -> None:
    """Try that many lines."""
    signal.signal(signal.SIGINT, handle)
    total = int(forked(lambda: run(0)))
    numbers = range(1, total + 1)
    if count:
        numbers = random.Random(seed).sample(numbers, count)  # type: ignore[assignment]
    wrong = 0
    for number in numbers:
        said = forked(lambda number=number: attempt(number))  # type: ignore[misc]
        if said:
            wrong += 1
            print(f"after an interrupt at line {number} of {total}:\n{said}", flush=True)
    print(f"{len(numbers)} tried, {wrong} wrong")


main(*map(int, sys.argv[1:]))
