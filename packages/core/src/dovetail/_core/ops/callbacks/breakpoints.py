"""`debug.breakpoint`: a prompt in the middle of a running program."""

from __future__ import annotations

import cmd
import linecache
import pprint
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NoReturn, TextIO

from dovetail._core.base import pytree, source
from dovetail._core.base.records import record
from dovetail._core.ir.avals import is_array_like
from dovetail._core.ops.callbacks.debugging import callback
from dovetail._core.trace.tracer import Tracer

_BACKENDS = (None, "cli")


@record
class _Frame:
    """A stack frame of the user's code, as shown by the prompt.

    Attributes:
        file: its source file.
        line: the current line.
        function: the name of the function.
        values: its variables and those of the module.
    """

    file: str
    line: int
    function: str
    values: dict[str, Any]

    def lines(self, around: int = 2) -> list[str]:
        """The source text around the line, which is marked."""
        return [
            f"{'->' if number == self.line else '  '}  {text.rstrip()}"
            for number in range(max(1, self.line - around), self.line + around + 1)
            if (text := linecache.getline(self.file, number))
        ]


class _Prompt(cmd.Cmd):
    """Reads and runs commands until the program continues."""

    prompt = "(dovetail) "

    def __init__(self, frames: Sequence[_Frame], stdin: TextIO, stdout: TextIO) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is sys.stdin
        self.frames = frames
        self.number = 0

    @property
    def frame(self) -> _Frame:
        """The selected frame."""
        return self.frames[self.number]

    def say(self, text: str) -> None:
        """Write a line."""
        self.stdout.write(f"{text}\n")

    def evaluate(self, expression: str, show: Callable[[Any], str]) -> None:
        """Write the value of an expression."""
        try:
            self.say(show(eval(expression, dict(self.frame.values))))
        except Exception as error:
            self.say(f"*** {type(error).__name__}: {error}")

    def emptyline(self) -> bool:
        return False

    def default(self, line: str) -> bool | None:
        if line == "EOF":
            return self.do_continue("")
        self.evaluate(line, repr)
        return None

    def do_p(self, arg: str) -> None:
        """p expression: its value."""
        self.evaluate(arg, repr)

    def do_pp(self, arg: str) -> None:
        """pp expression: its value, over several lines."""
        self.evaluate(arg, pprint.pformat)

    def do_list(self, arg: str) -> None:
        """list: the lines around this one."""
        self.say(f"> {self.frame.file}({self.frame.line}) {self.frame.function}")
        self.say("\n".join(self.frame.lines()))

    def do_where(self, arg: str) -> None:
        """where: the calls that led here."""
        for number, frame in reversed(list(enumerate(self.frames))):
            mark = ">" if number == self.number else " "
            self.say(f"{mark} {frame.file}({frame.line}) {frame.function}")

    def do_up(self, arg: str) -> None:
        """up: to the caller."""
        self._move(1)

    def do_down(self, arg: str) -> None:
        """down: back from the caller."""
        self._move(-1)

    def _move(self, by: int) -> None:
        if not 0 <= self.number + by < len(self.frames):
            self.say("*** there is no further frame")
            return
        self.number += by
        self.do_list("")

    def do_continue(self, arg: str) -> bool:
        """continue: let the program go on."""
        return True

    def do_quit(self, arg: str) -> NoReturn:
        """quit: end the process."""
        sys.exit(0)

    do_l, do_bt, do_w, do_u, do_d, do_c, do_q = (
        do_list,
        do_where,
        do_where,
        do_up,
        do_down,
        do_continue,
        do_quit,
    )


def _frames(filter_frames: bool, limit: int | None) -> list[_Frame]:
    """The stack frames, innermost first."""
    frames: list[_Frame] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (limit is None or len(frames) < limit):
        code = frame.f_code
        if not (filter_frames and source.is_internal(code.co_filename)):
            frames.append(
                _Frame(code.co_filename, frame.f_lineno, code.co_name, dict(frame.f_locals))
            )
        frame = frame.f_back
    return frames


def _usable(value: Any) -> bool:
    """Whether the value of a variable can be shown: the trace of a tracer must be active."""
    return all(not (isinstance(x, Tracer) and x._trace.finished) for x in pytree.leaves(value))


def _has_arrays(value: Any) -> bool:
    return any(is_array_like(x) for x in pytree.leaves(value))


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stop a running program at this point, and read commands from the terminal.

    The variables of all functions on the stack can be printed, with their values in this run. The
    commands are ``p`` and ``pp`` (print the value of an expression; an expression alone does so,
    too), ``l`` (list the source), ``bt`` (print the stack), ``u`` and ``d`` (go to the caller and
    back), ``c`` (continue), ``q`` (end the process) and ``help``.

    Args:
        backend: ``"cli"``, the terminal; None means the same.
        filter_frames: whether frames of dovetail are left out.
        num_frames: the number of frames to keep, counted from here; all by default.
        ordered: whether to stop in order with other ordered effects.
        token: returned unchanged; for programs that order operations by passing values through.
        **kwargs: ``stdin`` and ``stdout``, files to use instead of the terminal.

    Returns:
        `token`.

    Raises:
        ValueError: there is no such backend.
        RuntimeError: when the program runs: there is no terminal.
    """
    if backend not in _BACKENDS:
        raise ValueError(f"debug.breakpoint: the backend must be 'cli' or None, got {backend!r}")
    unknown = sorted(set(kwargs) - {"stdin", "stdout"})
    if unknown:
        raise TypeError(f"debug.breakpoint got unknown arguments {', '.join(unknown)}")
    frames = _frames(filter_frames, num_frames)
    local = [{k: v for k, v in frame.values.items() if _usable(v)} for frame in frames]
    changing = [{k: v for k, v in values.items() if _has_arrays(v)} for values in local]

    def ask(values: Sequence[dict[str, Any]]) -> None:
        stdin, stdout = kwargs.get("stdin"), kwargs.get("stdout")
        if stdin is None and not sys.stdin.isatty():
            raise RuntimeError(
                "debug.breakpoint: there is no terminal to read commands from; remove it, print "
                "values with dovetail.debug.print, or give the files stdin= and stdout="
            )
        usable = [
            _Frame(frame.file, frame.line, frame.function, {**fixed, **now})
            for frame, fixed, now in zip(frames, local, values, strict=True)
        ]
        prompt = _Prompt(usable, stdin or sys.stdin, stdout or sys.stdout)
        prompt.do_list("")
        prompt.cmdloop()

    callback(ask, changing, ordered=ordered)
    return token
