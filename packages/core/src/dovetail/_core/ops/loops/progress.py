"""Progress of loops: the keyword `progress`, its primitive, and the bars on the standard error.

The program always holds the reports, about a hundred for each loop, and a report asks when it comes
whether it is to be shown. So nothing is traced or compiled again when bars are switched off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import pytree
from dovetail._core.base.progress_bars import show
from dovetail._core.basis.operands import literal_like, make_literal
from dovetail._core.basis.structural import batch_size, to_front
from dovetail._core.ir.avals import make_aval, shape_of
from dovetail._core.ir.effects import debug_effect
from dovetail._core.ir.jaxpr import DebugInfo, Effects
from dovetail._core.ops.callbacks.calls import FlatCallback, Observation, call_now
from dovetail._core.ops.callbacks.debugging import debug_callback_p
from dovetail._core.ops.control.branches import cond_p
from dovetail._core.ops.control.partial_scan import COUNT
from dovetail._core.ops.elementwise.arithmetic import add, div, rem, sub
from dovetail._core.ops.elementwise.bitwise import bitwise_and, bitwise_or, clz, shift_left
from dovetail._core.ops.elementwise.comparison import eq
from dovetail._core.ops.elementwise.conversion import convert_element_type
from dovetail._core.ops.elementwise.extrema import max as maximum
from dovetail._core.ops.reduction.reductions import reduce_max
from dovetail._core.transform.flattening import name_of
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

#: The number of reports of a loop whose length is known.
_REPORTS: Final = 100
#: Where it is not known, the number of reports between one power of two and the next, as one.
_BITS: Final = 5

_staged: Final = threading.local()


class ReportProgress(Observation):
    """Tells the host how many turns a loop has made, and how many it is to make, now and then.

    Both are scalars, or have an element for each of a batch, which are told together.
    """

    name = "report_progress"

    def effects(self, *avals: Any, **params: Any) -> Effects:
        return frozenset({debug_effect})

    def evaluate(self, *args: Any, **params: Any) -> Any:
        """Tell it directly, outside compiled programs."""
        callback = _callback(Progress(**params))
        return call_now("progress of a loop", callback, args, (), ordered=False)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        self.bind(*(to_front(x, d, size) for x, d in zip(args, dims, strict=True)), **params)
        return [], []

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        progress = Progress(**params)

        device = make_aval((), COUNT)
        number = context.constant(0, device)
        if context.manual is not None:
            # Of the devices that each run the loop the first one reports.
            axes = [axis for axis, _ in context.manual.mesh if axis in context.manual.names]
            number = context.axis_index(axes, device)

        def report(device: Any, count: Any, total: Any) -> list[Any]:
            most, end = (
                reduce_max(x, tuple(range(len(shape_of(x))))) if shape_of(x) else x
                for x in (count, total)
            )
            due = eq(device, literal_like(0, device))
            if not progress.is_last:
                due = bitwise_and(due, _is_due(most, end, progress.is_bound))
            index = convert_element_type(due, np.int32)
            cond_p.bind(index, count, total, branches=(silent, telling))
            return []

        def tell(count: Any, total: Any) -> list[Any]:
            debug_callback_p.bind(
                count,
                total,
                callback=_callback(progress),
                effect=debug_effect,
                partitioned=False,
            )
            return []

        avals, info = context.avals_in, DebugInfo("progress", progress.description)
        silent, telling = (stage(f, avals, info) for f in (lambda *_: [], tell))
        return context.inline_jaxpr(stage(report, [device, *avals], info), [number, *values])


report_progress_p: Final = ReportProgress()


def _is_due(count: Any, total: Any, is_bound: bool) -> Any:
    one = literal_like(1, count)
    if not is_bound:
        every = maximum(div(total, literal_like(_REPORTS, total)), one)
    else:
        # 32 reports from one power of two to the next.
        bits = sub(literal_like(31 - _BITS, count), clz(count))
        every = shift_left(one, maximum(bits, literal_like(0, count)))
    return bitwise_or(eq(rem(count, every), literal_like(0, count)), eq(count, total))


def _callback(progress: Progress) -> FlatCallback:
    tree = pytree.structure(((0, 0), {}))
    return FlatCallback(progress, tree, text=f"progress of {progress.description}")


@dataclass(frozen=True, slots=True)
class Progress:
    """How the progress of a loop is shown; also the parameters of its primitive.

    Attributes:
        description: what stands before the bar.
        depth: in how many loops with progress the loop is.
        is_bound: whether the number of turns that it says is a bound, or not known.
        is_last: whether it has ended.
    """

    description: str
    depth: int
    is_bound: bool = False
    is_last: bool = False

    @property
    def kind(self) -> str:
        """What tells it from others where bodies are kept."""
        return f"progress {self.depth} of {self.description}"

    def __call__(self, count: Any, total: Any) -> None:
        """Show it on the host."""
        show(
            self.description,
            self.depth,
            np.asarray(count),
            int(np.max(total)),
            is_bound=self.is_bound,
            is_last=self.is_last,
        )

    def report(self, count: Any, total: Any) -> None:
        """Report it from a program."""
        report_progress_p.bind(count, total, **asdict(self))

    def end(self, count: Any) -> None:
        """Report from a program that the loop has ended after a number of turns."""
        if self.is_bound:
            replace(self, is_last=True).report(count, count)

    def counting(self, turn: Callable[..., list[Any]], total: Any) -> Callable[..., list[Any]]:
        """The body of a loop that carries the number of turns first.

        Args:
            turn: the body without that.
            total: the number of turns that there will be; negative if it is not known.
        """
        known = make_literal(total if isinstance(total, int) and total < 2**31 else -1, COUNT)

        def counted(count: Any, *args: Any) -> list[Any]:
            outs = turn(*args)
            count = add(count, literal_like(1, count))
            self.report(count, known)
            return [count, *outs]

        return counted

    def calling(self, function: Callable[..., Any], total: int) -> Callable[..., Any]:
        """A function that shows with each call that one more turn was made."""
        turns = 0

        def called(*args: Any) -> Any:
            nonlocal turns
            out = function(*args)
            turns += 1
            self(turns, total)
            return out

        return called


@contextmanager
def staging(progress: Progress | None) -> Iterator[None]:
    """A scope in which the body of a loop is staged whose progress is shown, if it is."""
    if progress is None:
        yield
        return
    _staged.depth = progress.depth + 1
    try:
        yield
    finally:
        _staged.depth = progress.depth


def progress_of(
    progress: Any, caller: str, function: Callable[..., Any], is_bound: bool = False
) -> Progress | None:
    """What the argument `progress` of a loop asks for.

    Args:
        progress: the argument.
        caller: the API function.
        function: the body.
        is_bound: whether the number of its turns is a bound, or not known.

    Raises:
        ValueError: it is neither None nor "text".
    """
    if progress is None:
        return None
    if not isinstance(progress, str) or progress != "text":
        raise ValueError(
            f'{caller}: progress must be "text", to show a bar, or None, got {progress!r:.80}; the '
            "option progress_bars switches all bars on and off"
        )
    depth = getattr(_staged, "depth", 0)
    return Progress(f"{caller.removeprefix('lax.')} of {name_of(function)}", depth, is_bound)
