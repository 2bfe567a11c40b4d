"""A word on stderr about a program that takes long to compile, and what makes it large."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

from dovetail._core.base import config
from dovetail._core.base.bindings import get_traceback
from dovetail._core.base.source import describe
from dovetail._core.ir.jaxpr import ClosedJaxpr
from dovetail._core.ir.walk import all_equations
from dovetail._core.runtime.arrays.memory import in_words

__all__ = ["telling_if_slow"]


#: Equations from which on a thread waits beside the compiler; of smaller programs, which are
#: seldom slow, the word comes when they are compiled.
_MANY: Final = 200
#: Lines of code, and constants, that are listed.
_LISTED: Final = 4
#: Bytes from which on a constant is.
_LARGE: Final = 2**20


@contextmanager
def telling_if_slow(name: str, closed: ClosedJaxpr) -> Iterator[None]:
    """A scope in which a program is compiled; tells if that takes long.

    Args:
        name: the name of the function.
        closed: the program.
    """
    limit = config.slow_compile_secs.value
    if not limit:
        yield
        return
    place = get_traceback()

    def tell() -> None:
        import logging  # deferred: seldom needed, and takes 3 ms

        logging.getLogger("dovetail").warning(
            "%s, called at %s, takes more than %g s to compile. %s",
            name,
            describe(place),
            limit,
            _what_is_large(closed),
        )

    timer = None
    if len(list(islice(all_equations(closed.jaxpr), _MANY))) == _MANY:
        timer = threading.Timer(limit, tell)
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # the interpreter ends
            timer = None
    start = time.perf_counter()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
    if timer is None and time.perf_counter() - start > limit:
        tell()


def _what_is_large(closed: ClosedJaxpr) -> str:
    """Sentences about the lines that most equations come from, and about large constants."""
    equations = list(all_equations(closed.jaxpr))
    lines = Counter(describe(eqn.traceback) for eqn in equations)
    listed = ", ".join(f"{line}: {count:,}" for line, count in lines.most_common(_LISTED))
    sentences = []
    if len(equations) >= _MANY:
        sentences.append(f"It has {len(equations):,} equations (by line, {listed}).")
    large = [c for c in closed.consts if getattr(c, "nbytes", 0) >= _LARGE]
    if large:
        sizes = ", ".join(f"{_type(value)}: {in_words(value.nbytes)}" for value in large[:_LISTED])
        sentences.append(f"It holds constants ({sizes}): pass them as arguments.")
    if any(count >= _MANY for count in lines.values()):
        sentences.append(
            "Loops of Python are unrolled: lax.scan, lax.fori_loop or vmap in their place make a "
            "program small."
        )
    sentences.append("The option slow_compile_secs sets the limit")
    return " ".join(sentences)


def _type(value: Any) -> str:
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"
