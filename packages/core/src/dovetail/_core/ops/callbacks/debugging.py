"""`debug.callback`, `debug.print` and `debug.log`: show values of a running program."""

from __future__ import annotations

import logging
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import pytree, source
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import is_array_like
from dovetail._core.ir.effects import HostEffect, debug_effect, ordered_debug_effect
from dovetail._core.ir.jaxpr import Effects
from dovetail._core.ops.callbacks.calls import (
    FlatCallback,
    Observation,
    call_in_program,
    call_now,
    for_each,
)
from dovetail._core.transform.flattening import check_callable

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

logger: Final = logging.getLogger("dovetail.debug")


class _Debugging(Observation):
    """Base of the debugging primitives, which call Python when the program runs."""

    def caller(self, params: Mapping[str, Any]) -> str:
        """The name of the API function."""
        raise NotImplementedError

    def callback(self, params: Mapping[str, Any]) -> FlatCallback:
        """The function to call on the host."""
        raise NotImplementedError

    def effect(self, params: Mapping[str, Any]) -> HostEffect:
        """The side effect."""
        raise NotImplementedError

    def evaluate(self, *args: Any, **params: Any) -> Any:
        """Call the function directly, outside compiled programs."""
        ordered = self.effect(params).ordered
        return call_now(self.caller(params), self.callback(params), args, (), ordered)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return for_each(self, args, dims, params)

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        return call_in_program(
            context,
            values,
            self.caller(params),
            self.callback(params),
            self.effect(params),
            partitioned=params["partitioned"],
        )

    def effects(self, *avals: Any, **params: Any) -> Effects:
        return frozenset({self.effect(params)})


class DebugCallback(_Debugging):
    """Calls a Python function and ignores its result."""

    name = "debug_callback"

    def caller(self, params: Mapping[str, Any]) -> str:
        return "debug.callback"

    def callback(self, params: Mapping[str, Any]) -> FlatCallback:
        flat_callback: FlatCallback = params["callback"]
        return flat_callback

    def effect(self, params: Mapping[str, Any]) -> HostEffect:
        host_effect: HostEffect = params["effect"]
        return host_effect


class DebugPrint(_Debugging):
    """Prints a line of text with values in it."""

    name = "debug_print"

    def caller(self, params: Mapping[str, Any]) -> str:
        return "debug.print"

    def callback(self, params: Mapping[str, Any]) -> FlatCallback:
        fmt, record = params["fmt"], params["logging_record"]
        options = dict(params["np_printoptions"])
        static = params["static_args"]
        tree = params["in_tree"]
        count = tree.num_leaves - len(static)

        def show(*dynamic: Any) -> None:
            leaves = list(dynamic)
            for number, value in static:
                leaves.insert(number, value)
            args, kwargs = pytree.unflatten(tree, leaves)
            with np.printoptions(**options):
                text = fmt.format(*args, **kwargs)
            if record is None:
                sys.stdout.write(f"{text}\n")
            else:
                logger.handle(logging.makeLogRecord({**record.__dict__, "msg": text}))

        return FlatCallback(show, pytree.structure(((0,) * count, {})), text=fmt)

    def effect(self, params: Mapping[str, Any]) -> HostEffect:
        return ordered_debug_effect if params["ordered"] else debug_effect


debug_callback_p: Final = DebugCallback()
debug_print_p: Final = DebugPrint()


# Public functions.


def _dynamic(
    args: tuple[Any, ...], kwargs: dict[str, Any], caller: str
) -> tuple[list[Any], tuple[tuple[int, Any], ...], Any]:
    """Flatten arguments: array leaves, other leaves by index, and the structure."""
    leaves, tree = pytree.flatten((args, kwargs))
    arrays = [is_array_like(x) for x in leaves]
    return (
        [as_operand(x, caller) for x, is_array in zip(leaves, arrays, strict=True) if is_array],
        tuple([(i, x) for i, x in enumerate(leaves) if not arrays[i]]),
        tree,
    )


def callback(
    callback: Callable[..., None] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Call a Python function with values of a running program, for debugging.

    It is called each time the program gets here: under `vmap` once for each element, under `grad`
    and `jvp` with primal values. In a `dovetail.lax.cond` with a mapped predicate, all branches
    run, and so do the calls in them.

    Args:
        callback: the function; its result is ignored. If left out, a function is returned that
            takes it and its arguments.
        *args: its arguments, trees. Leaves other than arrays, such as strings, are passed
            unchanged.
        ordered: whether this call keeps its order among other ordered calls, within a program and
            from one program to the next.
        partitioned: whether each of a program's devices shows its parts of the values. By default
            the first one shows whole values.
        **kwargs: keyword arguments, like `args`.

    Raises:
        TypeError: `callback` is not a function.

    An exception in the function is raised where the results of the program are first needed, or by
    `dovetail.effects_barrier`.

    Example:
        >>> import dovetail as dt
        >>> seen = []
        >>> @dt.jit
        ... def double(x):
        ...     dt.debug.callback(lambda x: seen.append(float(x)), x)
        ...     return 2 * x
        >>> float(double(1.5)), dt.effects_barrier(), seen
        (3.0, None, [1.5])
    """
    if callback is None:
        if args or kwargs:
            raise TypeError(
                "debug.callback takes a function before its arguments; it got "
                f"{', '.join(sorted(kwargs))} and none"
            )
        return _later(_callback, ordered, partitioned)
    _callback(callback, args, kwargs, ordered, partitioned)
    return None


def _later(function: Callable[..., None], *options: Any) -> Callable[..., None]:
    def with_arguments(first: Any, *args: Any, **kwargs: Any) -> None:
        function(first, args, kwargs, *options)

    return with_arguments


def _callback(
    function: Callable[..., None],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ordered: bool,
    partitioned: bool,
) -> None:
    check_callable(function, "debug.callback")
    dynamic, static, tree = _dynamic(args, kwargs, "debug.callback")
    if static:
        function, tree = (
            _with_static(function, static, tree),
            pytree.structure(((0,) * len(dynamic), {})),
        )
    debug_callback_p.bind(
        *dynamic,
        callback=FlatCallback(function, tree),
        effect=ordered_debug_effect if ordered else debug_effect,
        partitioned=bool(partitioned),
    )


def _with_static(
    function: Callable[..., None], static: tuple[tuple[int, Any], ...], tree: Any
) -> Callable[..., None]:
    def call(*dynamic: Any) -> None:
        leaves = list(dynamic)
        for number, value in static:
            leaves.insert(number, value)
        args, kwargs = pytree.unflatten(tree, leaves)
        function(*args, **kwargs)

    call.__wrapped__ = function  # type: ignore[attr-defined]
    call.__name__ = getattr(function, "__name__", type(function).__name__)
    return call


class _FormatCheck(string.Formatter):
    """Checks whether a text and its arguments match, without formatting anything."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        # The rest of a field, such as .shape or [0], is looked up when there are values.
        first: Any = field_name
        for mark in ".[":
            first = first.partition(mark)[0]
        if first.isdigit():
            first = int(first)
        return self.get_value(first, args, kwargs), first

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return value

    def format_field(self, value: Any, format_spec: str) -> Any:
        return ""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused: list[Any] = [arg for i, arg in enumerate(args) if i not in used_args]
        if unused:
            raise ValueError(
                f"Unused positional arguments to `debug.print`: {unused!r:.200}; the text has no "
                "{} for them"
            )
        names = [name for name in kwargs if name not in used_args]
        if names:
            raise ValueError(
                f"Unused keyword arguments to `debug.print`: {names}. Is the text an f-string? "
                "Pass a plain string: the values are put in when the program runs"
            )


def _check_format(fmt: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    try:
        _FormatCheck().vformat(fmt, args, kwargs)
    except IndexError:
        raise IndexError(
            f"debug.print: the text {fmt!r} has a place for more than the {len(args)} positional "
            "arguments"
        ) from None
    except KeyError as error:
        raise KeyError(
            f"debug.print: the text {fmt!r} names {error}, which is not among the keyword "
            f"arguments {sorted(kwargs)}"
        ) from None


def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Print values of a running program.

    Python's `print` prints once, during tracing. This prints each time the program gets here: under
    `vmap` a line for each element, in loops a line for each iteration, under `grad` and `jvp`
    primal values. In a `dovetail.lax.cond` with a mapped predicate, all branches run and print.
    Compiled programs may print after the call has returned: `dovetail.effects_barrier` waits for
    this.

    Args:
        fmt: text for `str.format`, such as ``"x is {} and y {y:.3f}"``; not an f-string, which
            would contain tracers instead of values. If left out, a function is returned that takes
            the text and its arguments.
        *args: values for the fields of the text, trees of arrays and other objects.
        ordered: whether this keeps its order among other ordered calls, within a program and from
            one program to the next. Otherwise, lines can come in any order.
        partitioned: whether each of a program's devices shows its parts of the values. By default
            the first one shows whole values.
        skip_format_check: whether to skip the check that text and arguments match. The text is
            still formatted.
        **kwargs: values for the named fields of the text.

    Raises:
        TypeError: the text is not a string.
        ValueError: an argument has no field in the text.
        IndexError: a field has no argument.
        KeyError: a named field has no argument.

    Differs:
        Under `vmap` it is a loop in the program, not a copy for each element. Ordered printing
        under a mapped predicate is refused.

        >>> show = dt.jit(dt.vmap(lambda x: dt.debug.print("{}", x)))
        >>> show.lower(jnp.arange(100)).as_text().count("custom_call")
        1

    Example:
        >>> import dovetail as dt
        >>> @dt.jit
        ... def double(x):
        ...     y = 2 * x
        ...     dt.debug.print("x = {}, y = {y:.2f}", x, y=y)
        ...     return y
        >>> double(1.5).block_until_ready()
        x = 1.5, y = 3.00
        Array(3., dtype=float32, weak_type=True)
    """
    if fmt is None:
        if args or kwargs:
            raise TypeError(
                "debug.print takes a text before its arguments; it got "
                f"{', '.join(sorted(kwargs))} and none"
            )
        return _later(_print, ordered, partitioned, skip_format_check, _use_logging)
    _print(fmt, args, kwargs, ordered, partitioned, skip_format_check, _use_logging)
    return None


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = True,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Log values of a running program, like `dovetail.debug.print`.

    Messages go to the logger ``dovetail.debug``, at level INFO, with the line of the call of this
    function.

    Args:
        fmt: text for `str.format`.
        *args: values for the fields of the text.
        ordered: as for `dovetail.debug.print`.
        partitioned: as for `dovetail.debug.print`.
        skip_format_check: as for `dovetail.debug.print`.
        **kwargs: values for the named fields of the text.

    Raises:
        TypeError: the text is not a string.
        ValueError: an argument has no field in the text.

    Example:
        >>> import dovetail as dt
        >>> dt.debug.log("loss {}", 0.5)
    """
    return print(
        fmt,
        *args,
        ordered=ordered,
        partitioned=partitioned,
        skip_format_check=skip_format_check,
        _use_logging=_use_logging,
        **kwargs,
    )


def _print(
    fmt: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ordered: bool,
    partitioned: bool,
    skip_format_check: bool,
    use_logging: bool,
) -> None:
    if not isinstance(fmt, str):
        raise TypeError(
            f"debug.print takes a string as its first argument, got {type(fmt).__name__}; "
            'to print a value write debug.print("{}", value)'
        )
    fields = _parsed(fmt)
    if not skip_format_check:
        _check_format(fmt, args, kwargs)
    dynamic, static, tree = _dynamic(args, kwargs, "debug.print")
    debug_print_p.bind(
        *dynamic,
        fmt=fmt,
        has_placeholders=any(name is not None for _, name, _, _ in fields),
        in_tree=tree,
        logging_record=_record() if use_logging else None,
        np_printoptions=tuple(np.get_printoptions().items()),
        ordered=bool(ordered),
        partitioned=bool(partitioned),
        static_args=static,
    )


def _parsed(fmt: str) -> list[Any]:
    try:
        return list(string.Formatter().parse(fmt))
    except ValueError as error:
        raise ValueError(
            f"debug.print: the text {fmt!r} is not one for str.format: {error}"
        ) from None


def _record() -> logging.LogRecord:
    frame = source.user_frame()
    place = ("", 0, None) if frame is None else (frame.file, frame.line, frame.function)
    return logging.LogRecord(
        logger.name, logging.INFO, place[0], place[1], "", None, None, place[2]
    )
