"""Names for stretches of time in a profile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from jaxlib import _profiler

from dovetail._core.base.tracebacks import bounded

__all__ = ["StepTraceAnnotation", "TraceAnnotation", "annotate_function"]

P = ParamSpec("P")
R = TypeVar("R")


class TraceAnnotation(_profiler.TraceMe):  # type: ignore[misc]
    """A scope that profiles show under a name, on the timeline of its thread.

    Outside of a profile it costs next to nothing. It shows what Python does, such as starting a
    program; what the program does is named by `dovetail.named_scope`.

    Args:
        name: the name.
        **kwargs: further facts that viewers show, such as sizes.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.profiler import TraceAnnotation
        >>> with TraceAnnotation("load", batch=3):
        ...     x = jnp.ones(3)
    """


@bounded
class StepTraceAnnotation(TraceAnnotation):
    """A scope that profiles show as one step of a training loop.

    Viewers then compare steps, and tell for each what it waited for.

    Args:
        name: the name of the steps.
        **kwargs: further facts; `step_num` is the number of the step.

    Example:
        >>> from dovetail.profiler import StepTraceAnnotation
        >>> for number in range(3):
        ...     with StepTraceAnnotation("train", step_num=number):
        ...         pass
    """

    def __init__(self, name: str, **kwargs: object) -> None:
        if not isinstance(name, str):
            raise TypeError(f"StepTraceAnnotation takes a name, which is a string, got {name!r}")
        super().__init__(name, _r=1, **kwargs)


def annotate_function(
    func: Callable[P, R], name: str | None = None, **decorator_kwargs: object
) -> Callable[P, R]:
    """Show the calls of a function in profiles.

    Args:
        func: the function.
        name: the name to show; that of the function by default.
        **decorator_kwargs: further facts, as of `TraceAnnotation`.

    Returns:
        The function, each call of which is a `TraceAnnotation`.

    Example:
        >>> from dovetail.profiler import annotate_function
        >>> @annotate_function
        ... def load(x):
        ...     return x + 1
        >>> load(2)
        3
    """
    shown = name or getattr(func, "__qualname__", None) or type(func).__name__

    @functools.wraps(func)
    def annotated(*args: P.args, **kwargs: P.kwargs) -> R:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated
