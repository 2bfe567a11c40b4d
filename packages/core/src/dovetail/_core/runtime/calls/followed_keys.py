"""The keys of a call, for the option ``debug_key_reuse``: arrays remember which have been used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dovetail._core.base import config
from dovetail._core.base.bindings import get_traceback
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr
from dovetail._core.runtime.arrays.array import KeyArray
from dovetail._core.trace.primitive import Primitive

if TYPE_CHECKING:
    from dovetail._core.transform.key_reuse import KeyTracker


class FollowedCall:
    """A call that is about to run, and what becomes of its keys.

    Args:
        tracker: has followed it.
        results: what stands in place of its results.
    """

    __slots__ = ("_results", "_tracker")

    def __init__(self, tracker: KeyTracker, results: Sequence[Any]) -> None:
        self._tracker = tracker
        self._results = results

    def finish(self, outs: Iterable[Any]) -> None:
        """Note what the call has used, and which keys its results hold."""
        self._tracker.commit()
        for out, numbers in zip(outs, self._results, strict=True):
            if isinstance(out, KeyArray):
                out._identities = self._tracker.identities_of(numbers)


def follow_program(closed: ClosedJaxpr, operands: Sequence[Any]) -> FollowedCall | None:
    """Follow the keys of a program; None if it has none, or none are to be followed.

    Args:
        closed: the program.
        operands: its arguments.

    Raises:
        KeyReuseError: it uses a key for the second time.
    """
    if not config.debug_key_reuse.value:
        return None
    from dovetail._core.transform.key_reuse import has_keys  # deferred: for this option alone

    if not has_keys(closed):
        return None
    return _followed(
        lambda tracker, values: tracker.follow(closed, values),
        operands,
    )


def follow_primitive(
    primitive: Primitive, params: Any, operands: Sequence[Any], avals_out: Sequence[Any]
) -> FollowedCall | None:
    """`follow_program` for the evaluation of one primitive."""
    if not config.debug_key_reuse.value:
        return None
    from dovetail._core.transform.key_reuse import holds_keys  # deferred: for this option alone

    avals = [aval_of(x) for x in operands]
    if not any(map(holds_keys, (*avals, *avals_out))):
        return None
    return _followed(
        lambda tracker, values: tracker.apply(primitive, values, params, avals, avals_out),
        operands,
    )


def _followed(
    follow: Callable[[KeyTracker, list[Any]], list[Any]], operands: Sequence[Any]
) -> FollowedCall:
    from dovetail._core.transform.key_reuse import KeyTracker  # deferred: for this option alone

    tracker = KeyTracker(_read, get_traceback())
    return FollowedCall(tracker, follow(tracker, [_read(tracker, x) for x in operands]))


def _read(tracker: KeyTracker, value: Any) -> Any:
    """What stands in place of a value."""
    if isinstance(value, KeyArray):
        return tracker.numbers_of(value.identities())
    from dovetail._core.transform.key_reuse import is_position  # deferred: for this option alone

    return np.asarray(value) if is_position(aval_of(value)) else None
