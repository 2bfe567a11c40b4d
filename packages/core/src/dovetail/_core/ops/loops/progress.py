"""Progress of loops: the keyword `progress`, its primitive, and the bars on the standard error.

The program always holds the reports, about a hundred for each loop, and a report asks when it comes
whether it is to be shown. So nothing is traced or compiled again when bars are switched off.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import pytree
from dovetail._core.base.progress_bars import end_lines, show
from dovetail._core.base.records import record
from dovetail._core.basis.operands import literal_like, make_literal
from dovetail._core.basis.structural import batch_size, to_front
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ir.effects import debug_effect
from dovetail._core.ir.jaxpr import DebugInfo, Effects
from dovetail._core.ops.callbacks.calls import FlatCallback, call_in_program, call_now
from dovetail._core.ops.control.partial_scan import COUNT
from dovetail._core.ops.elementwise.arithmetic import add, div, sub
from dovetail._core.ops.elementwise.bitwise import bitwise_and, clz, shift_left
from dovetail._core.ops.elementwise.comparison import eq
from dovetail._core.ops.elementwise.conversion import convert_element_type
from dovetail._core.ops.elementwise.extrema import max as maximum
from dovetail._core.ops.elementwise.remainders import rem
from dovetail._core.ops.reduction.reductions import reduce_max
from dovetail._core.trace.divisions import Labels, gathered_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.flattening import name_of
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

_CALLER: Final = "progress of a loop"
#: The number of reports of a loop whose length is known.
_REPORTS: Final = 100
#: Where it is not known, the number of reports between one power of two and the next, as one.
_BITS: Final = 5

_staged: Final = threading.local()


class ReportProgress(Primitive):
    """Tells the host how many turns a loop has made, and how many it is to make, now and then.

    Both are scalars, or have an element for each of a batch, which are told together. The result is
    the number of turns: what counts on with it comes after the report, and so does the last report.
    """

    name = "report_progress"
    multiple_results = True
    types_axes = True
    has_effects = True
    calls_host = True

    def abstract(self, count: Any, total: Any, **params: Any) -> Any:
        return [count]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return gathered_labels(avals, results)

    def reference(self, count: Any, total: Any, **params: Any) -> Any:
        return [count]

    def effects(self, *avals: Any, **params: Any) -> Effects:
        return frozenset({debug_effect})

    def evaluate(self, count: Any, total: Any, **params: Any) -> Any:
        """Tell it directly, outside compiled programs."""
        callback, args = _callback(Progress(**params)), (count, total)
        return call_now(_CALLER, callback, args, (aval_of(count),), ordered=False)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        outs = self.bind(*primals, **params)
        return outs, list(map(Zero.of, outs))

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        outs = self.bind(*(to_front(x, d, size) for x, d in zip(args, dims, strict=True)), **params)
        return outs, [0]

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        progress = Progress(**params)
        device = make_aval((), COUNT)
        number = context.constant(0, device)
        if context.manual is not None:
            # Of the devices that each run the loop the first one reports.
            axes = [axis for axis, _ in context.manual.mesh if axis in context.manual.names]
            number = context.axis_index(axes, device)
        avals, outs = context.avals_in, context.avals_out

        def is_due(device: Any, *told: Any) -> list[Any]:
            most, end = (
                reduce_max(x, tuple(range(len(shape_of(x))))) if shape_of(x) else x for x in told
            )
            due = eq(device, literal_like(0, device))
            if not progress.is_last:
                due = bitwise_and(due, _is_due(most, end, progress.is_bound))
            return [convert_element_type(due, COUNT)]

        def tell() -> list[Any]:
            types = (avals, outs)
            return call_in_program(
                context, values, _CALLER, _callback(progress), debug_effect, avals=types
            )

        info = DebugInfo("progress", progress.description)
        due = context.inline_jaxpr(stage(is_due, [device, *avals], info), [number, *values])
        return context.case(due[0], [lambda: [values[0]], tell], outs)


report_progress_p: Final = ReportProgress()


def _is_due(count: Any, total: Any, is_bound: bool) -> Any:
    if is_bound:
        bits = sub(literal_like(31 - _BITS, count), clz(count))
        every = shift_left(literal_like(1, count), maximum(bits, literal_like(0, count)))
    else:
        every = maximum(div(total, literal_like(_REPORTS, total)), literal_like(1, total))
    return eq(rem(count, every), literal_like(0, count))


def _callback(progress: Progress) -> FlatCallback:
    tree = pytree.structure(((0, 0), {}))
    return FlatCallback(
        progress, tree, pytree.structure(0), text=f"progress of {progress.description}"
    )


@record
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

    def __call__(self, count: Any, total: Any) -> Any:
        """Show it on the host, and return the number of turns."""
        show(
            self.description,
            self.depth,
            np.asarray(count),
            int(np.max(total)),
            is_bound=self.is_bound,
            is_last=self.is_last,
        )
        return count

    def counted(self, count: Any, total: Any) -> Any:
        """Report from a program the number of turns that were made, and count the one that begins.

        Args:
            count: that number.
            total: how many there will be; negative if that is not known.
        """
        (count,) = report_progress_p.bind(count, total, **asdict(self))
        return add(count, literal_like(1, count))

    def end(self, count: Any) -> None:
        """Report from a program that the loop has ended after a number of turns."""
        report_progress_p.bind(count, count, **asdict(replace(self, is_last=True)))

    def counting(self, turn: Callable[..., list[Any]], total: Any) -> Callable[..., list[Any]]:
        """The body of a loop that carries the number of turns first.

        Args:
            turn: the body without that.
            total: the number of turns that there will be; negative if it is not known.
        """
        known = make_literal(total if isinstance(total, int) and total < 2**31 else -1, COUNT)

        def counted(count: Any, *args: Any) -> list[Any]:
            return [self.counted(count, known), *turn(*args)]

        return counted

    def calling(self, function: Callable[..., Any], total: int) -> Callable[..., Any]:
        """A function that shows with each call how many were made before."""
        turns = 0

        def called(*args: Any) -> Any:
            nonlocal turns
            self(turns, total)
            try:
                out = function(*args)
            except BaseException:
                end_lines()
                raise
            turns += 1
            if turns == total:
                replace(self, is_last=True)(turns, total)
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
