"""Many threads that compute and compile at once: the results are right, and none is stuck.

    python threads.py THREADS SECONDS

exits with 1 and says what was wrong. Each thread draws from the same few programs, so that they
wait for each other's compilation, call what another has traced, and empty each other's caches.
"""

from __future__ import annotations

import faulthandler
import random
import sys
import threading
import time
from typing import Final

import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

X: Final = np.linspace(0.0, 1.0, 64, dtype=np.float32)

#: How long one step may take before the threads count as stuck.
PATIENCE: Final = 120.0


@dt.jit
def shared(x: dt.Array, y: float) -> dt.Array:
    """A program that all threads call."""
    return jnp.sin(x) * y


def scaled(factor: float) -> None:
    """Compile a program that other threads compile at the same time."""
    out = dt.jit(lambda x: x * factor + 1.0)(X)
    np.testing.assert_allclose(out, X * np.float32(factor) + 1, rtol=1e-5)


def step(draw: random.Random) -> None:
    """One computation, of which the right result is known."""
    number = draw.randrange(1, 12)
    kind = draw.randrange(9)
    if kind == 0:
        np.testing.assert_allclose(shared(X, float(number)), np.sin(X) * number, rtol=1e-5)
    elif kind == 1:
        scaled(float(number))
    elif kind == 2:
        out = dt.grad(lambda x: jnp.sum(jnp.sin(x) * number))(X)
        np.testing.assert_allclose(out, np.cos(X) * number, rtol=1e-5)
    elif kind == 3:
        out = dt.vmap(lambda row: jnp.sum(row) * number)(X[: 8 * number // 2 * 2 % 64 + 8, None])
        np.testing.assert_allclose(out[0], X[0] * number)
    elif kind == 4:
        out, _ = lax.scan(lambda c, x: (c + x * number, None), np.float32(0), X)
        np.testing.assert_allclose(out, X.sum() * number, rtol=1e-4)
    elif kind == 5:
        shape = dt.ShapeDtypeStruct(X.shape, X.dtype)
        out = dt.jit(lambda x: dt.pure_callback(lambda x: np.asarray(x) * number, shape, x))(X)
        np.testing.assert_allclose(out, X * number, rtol=1e-6)
    elif kind == 6:
        with dt.enable_x64(bool(number % 2)):
            assert jnp.ones(number).dtype == (np.float64 if number % 2 else np.float32)
    elif kind == 7:
        try:
            shared(X, np.ones(number + 64, np.float32))
        except TypeError:
            pass
        else:
            raise AssertionError("shapes that do not fit were accepted")
    elif draw.randrange(20) == 0:
        dt.clear_caches()


def run(count: int, seconds: float) -> tuple[int, list[str]]:
    """Compute in threads.

    Args:
        count: how many.
        seconds: how long.

    Returns:
        How many steps were done, and what went wrong.
    """
    end = time.monotonic() + seconds
    done = [0] * count
    wrong: list[str] = []

    def work(number: int) -> None:
        draw = random.Random(number)
        while time.monotonic() < end and not wrong:
            try:
                step(draw)
            except Exception as error:
                wrong.append(f"thread {number}, step {done[number]}: {error!r}"[:2000])
            done[number] += 1

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()) + PATIENCE)
        if thread.is_alive():
            faulthandler.dump_traceback()
            wrong.append(f"{thread.name} is stuck")
    return sum(done), wrong


def main() -> None:
    """Run the threads of the command line."""
    steps, wrong = run(int(sys.argv[1]), float(sys.argv[2]))
    print(f"{steps} steps")
    for text in wrong:
        print(text)
    sys.stdout.flush()
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
