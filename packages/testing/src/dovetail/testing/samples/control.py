"""Samples of branches and loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail._core.api.inspection import make_jaxpr
from dovetail._core.base.config import enable_x64
from dovetail._core.ops.elementwise.arithmetic import add, mul
from dovetail._core.ops.elementwise.comparison import lt
from dovetail._core.ops.elementwise.trigonometric import sin
from dovetail.testing.sample import Sample, rolled

INDEX = np.dtype(np.int32)
XS = np.array([[0.5, -1.25], [2.0, 0.75], [-0.5, 1.5]])
FIRST = np.array([0.25, -0.75])


def _jaxpr(function: Callable[..., Any], *examples: Any) -> Any:
    with enable_x64(True):
        return make_jaxpr(function)(*examples)


def branches() -> list[Sample]:
    """Selected by each number, with operands that only some branches use."""
    x, y = FIRST, np.array([1.5, 0.5])
    cases = tuple(
        _jaxpr(f, x, y)
        for f in (
            lambda x, y: (sin(x), mul(x, y)),
            lambda x, y: (mul(x, x), x),
            lambda x, y: (y, sin(mul(y, y))),
        )
    )
    linear = tuple(_jaxpr(f, x) for f in (lambda x: (mul(x, 3.0),), lambda x: (add(x, x),)))
    return [
        *(Sample((INDEX.type(i), x, y), {"branches": cases}, vary=_next_choice) for i in range(3)),
        Sample((INDEX.type(1), x), {"branches": linear}, linear=(1,), vary=_next_choice),
    ]


def _next_choice(x: np.ndarray[Any, Any], index: int) -> np.ndarray[Any, Any]:
    if x.dtype == INDEX:
        return np.asarray((x + index) % 2, INDEX)
    return np.roll(x, index)


def scans() -> list[Sample]:
    """With constants, elements, results; backwards; unrolled with a remainder; of no elements."""
    body = _jaxpr(lambda c, h, x: (sin(add(mul(h, c), x)), mul(h, x)), FIRST, FIRST, XS[0])
    sums = _jaxpr(lambda h, x: (add(h, mul(x, 2.0)), h), FIRST, XS[0])
    made = []
    for reverse, unroll, xs in ((False, 1, XS), (True, 1, XS), (True, 2, XS), (False, 3, XS[:0])):
        shared = {
            "length": len(xs),
            "reverse": reverse,
            "num_carry": 1,
            "unroll": unroll,
            "_split_transpose": False,
        }
        made += [
            Sample(
                (np.array([0.5, 1.5]), FIRST, xs),
                {"jaxpr": body, "num_consts": 1, "linear": (False,) * 3, **shared},
                absolute=8,  # rounding in one iteration affects all later ones
            ),
            Sample(
                (FIRST, xs),
                {"jaxpr": sums, "num_consts": 0, "linear": (False,) * 2, **shared},
                linear=(0, 1),
            ),
        ]
    return made


def whiles() -> list[Sample]:
    """With constants of the condition and of the body, and for no iterations at all.

    They have no reverse-mode derivative, so none is compared.
    """
    condition = _jaxpr(lambda n, i, x: (lt(i, n),), INDEX.type(0), INDEX.type(0), FIRST)
    body = _jaxpr(
        lambda c, i, x: (add(i, INDEX.type(1)), sin(mul(x, c))), FIRST, INDEX.type(0), FIRST
    )
    params = {"cond_jaxpr": condition, "body_jaxpr": body, "cond_nconsts": 1, "body_nconsts": 1}
    return [
        Sample(
            (INDEX.type(n), np.array([1.5, 0.5]), INDEX.type(0), FIRST), params, differentiable=()
        )
        for n in (0, 1, 3)
    ]


def partial_scans() -> list[Sample]:
    """The scans that are not unrolled, of none, some and all elements, and of more than there are.

    In a batch the elements do different numbers of turns.
    """
    made = []
    for sample in scans():
        if sample.params["unroll"] == 1:
            linear = tuple(n + 1 for n in sample.linear)
            for turns in (0, 2, 3, 5):
                args = (INDEX.type(turns), *sample.args)
                made.append(sample.replace(args=args, linear=linear, vary=_other_turns))
    return made


def _other_turns(x: np.ndarray[Any, Any], index: int) -> np.ndarray[Any, Any]:
    return np.asarray((x + index) % 4, INDEX) if x.dtype == INDEX else rolled(x, index)


def bounded_whiles() -> list[Sample]:
    """Ended by the condition and by the bound; with and without kept states; of linear bodies."""
    condition = _jaxpr(lambda n, i, x: (lt(i, n),), INDEX.type(0), INDEX.type(0), FIRST)
    one = INDEX.type(1)
    body = _jaxpr(lambda c, i, x: (add(i, one), sin(mul(x, c))), FIRST, one, FIRST)
    sums = _jaxpr(lambda i, x: (add(i, one), add(x, mul(x, 2.0))), one, FIRST)
    made = []
    for turns, segment, kept in ((0, 2, True), (2, 2, True), (3, 1, True), (9, 2, False)):
        shared = {
            "cond_jaxpr": condition,
            "cond_nconsts": 1,
            "max_steps": 4,
            "segment": segment,
            "kept": (kept, kept),
        }
        first = (INDEX.type(turns), np.array([1.5, 0.5]), INDEX.type(0), FIRST)
        linear = (first[0], *first[2:])
        made += [
            Sample(first, {"body_jaxpr": body, "body_nconsts": 1, **shared}, vary=_other_turns),
            Sample(
                linear,
                {"body_jaxpr": sums, "body_nconsts": 0, **shared},
                linear=(2,),
                observe=lambda outs: outs[2::2],  # without the counts, which are integers
                vary=_other_turns,
            ),
        ]
    return made


SAMPLES: dict[str, list[Sample]] = {
    "bounded_while": bounded_whiles(),
    "cond": branches(),
    "partial_scan": partial_scans(),
    "scan": scans(),
    "while": whiles(),
}
