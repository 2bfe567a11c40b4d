"""Differences on purpose, by predicate: few, each told in a section `Differs:`.

`where` is the heading in docs/differences-from-jax.md that tells of it, or None for what that file
leaves out, such as what JAX merely refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from comparison import Difference


@dataclass(frozen=True, slots=True)
class Known:
    """A difference on purpose."""

    reason: str
    where: str | None
    applies: Callable[[Difference], bool]


def _of(fields: str, functions: str, ours: str = "", theirs: str = "") -> Callable[..., bool]:
    """Differences in one of some fields, of functions and with outcomes that match patterns."""

    def applies(difference: Difference) -> bool:
        return (
            difference.field in fields.split("|")
            and re.fullmatch(functions, difference.function) is not None
            and re.search(ours, difference.ours) is not None
            and re.search(theirs, difference.theirs) is not None
        )

    return applies


ANY = ".*"
INSIDE = r"^(Assertion|Attribute|Key|NotImplemented|XlaRuntime|JaxRuntime|ZeroDivision|Unbound)"
"""Errors that no documentation names: they come from inside of JAX."""

DIVISIONS = r"jnp\.(floor_divide|mod|remainder|divmod|fmod)|operator (//|%)"

KNOWN = (
    Known(
        "a function that this version of JAX does not have",
        None,
        _of("accepted|error", ANY, theirs=r"^AttributeError: (module|'\w+' object has no)"),
    ),
    Known("JAX fails inside", None, _of("accepted|error", ANY, theirs=INSIDE)),
    Known(
        "integers of Python must fit the dtype",
        "dovetail.numpy: add",
        _of("refused|error", ANY, ours=r"^OverflowError: .*does not fit"),
    ),
    Known(
        "64-bit integers that do not fit 32 bits raise",
        "dovetail.numpy: array",
        _of("refused|error", ANY, ours=r"^OverflowError"),
    ),
    Known(
        "transforms of no points are refused",
        "dovetail.numpy.fft: fft",
        _of("refused|error", r"jnp\.fft\..*", ours="needs a signal of one point|no points"),
    ),
    Known(
        "complex numbers have no order",
        "dovetail.nn: relu",
        _of("refused", r"nn\..*", ours="defined for real numbers only"),
    ),
    Known(
        "an integer divided by zero is 0; infinities as in the array API standard",
        "dovetail.numpy: floor_divide",
        _of("value", DIVISIONS),
    ),
    Known(
        "the result is sorted as a whole",
        "dovetail.numpy: partition",
        _of("value", r"jnp\.(arg)?partition"),
    ),
    Known(
        "one zero is left of a remainder that vanishes, and roots that are zero come last",
        "dovetail.numpy: polydiv",
        _of("value|shape", r"jnp\.(polydiv|roots)"),
    ),
)


def reason_for(difference: Difference) -> str | None:
    """Why a difference is on purpose, or None."""
    return next((known.reason for known in KNOWN if known.applies(difference)), None)
