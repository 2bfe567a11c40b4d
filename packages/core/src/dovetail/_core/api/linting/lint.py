"""The public `lint`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dovetail._core.api.jit import jit
from dovetail._core.api.linting.findings import Finding, LintReport
from dovetail._core.api.linting.needed_values import VALUE_IS_NEEDED, needed_value
from dovetail._core.api.linting.rules import RULES
from dovetail._core.api.linting.sites import Program
from dovetail._core.api.stages import Wrapped
from dovetail._core.transform.flattening import check_callable, name_of

__all__ = ["lint"]


def lint(f: Callable[..., object], /, *args: Any, **kwargs: Any) -> LintReport:
    """Look for costly mistakes in a function, without running or compiling anything.

    The function is traced as by `jit`, once, and what it is traced to is looked at:

    - ``vmapped-cond``: `vmap` maps over the predicate of `lax.cond` or `lax.switch`, so that all
      branches run;
    - ``unrolled-loop``: a loop of Python is traced turn by turn, eight times or more;
    - ``large-constant``: the program has captured an array of a megabyte or more;
    - ``unused-update``: nothing uses the result of ``x.at[...].set(...)`` or of another update;
    - ``unused-result``: nothing uses the result of a statement such as ``jnp.sort(x)``;
    - ``host-in-loop``: the body of a compiled loop calls Python: `pure_callback`, `io_callback`,
      `debug.print`, ...; or a loop of Python needs values of arrays, as by ``float(loss)``, for
      which each turn waits. Tracing cannot go on there, so that it is the only finding;
    - ``float64-by-accident``: with `enable_x64`, a constant of NumPy, or an array made with the
      default dtype, has widened an operand of 32 bits;
    - ``key-reused``: a random key is used twice (keys of `random.key`; raw ones are not followed).

    What cannot be known is not reported. In bodies of loops, branches and compiled functions that
    `vmap` maps over, what is unused is left out before it can be found.

    Args:
        f: the function; a jitted one is traced with its own static arguments.
        args: its arguments: arrays, or descriptions such as `ShapeDtypeStruct`, in trees.
        kwargs: its keyword arguments, alike.

    Returns:
        The findings, in the order of their lines. Each has a rule, the user's line, what is wrong
        and what to write instead. It is true if there are any, and printed as text; notebooks show
        a table.

    Raises:
        TypeError: `f` is not callable, or an argument is no array. Whatever tracing `f` raises.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> def first_is_zero(x):
        ...     x.at[0].set(0.0)
        ...     return x
        >>> report = dt.lint(first_is_zero, jnp.ones(3))
        >>> [finding.rule for finding in report]
        ['unused-update']
        >>> print(report[0].remedy)
        Assign what it returns: x = x.at[...].set(...)
    """
    check_callable(f, "lint")
    name = name_of(f)
    if isinstance(f, Wrapped):
        traced = f.trace(*args, **kwargs)
    else:
        try:
            traced = jit(f).trace(*args, **kwargs)
        except VALUE_IS_NEEDED as error:
            needed = needed_value(error)
            if needed is None:
                raise
            return LintReport(name, [needed])
    info = traced.jaxpr.debug_info
    names = () if info is None else info.argument_names or ()
    program = Program(f, traced.jaxpr, names)
    found: dict[Any, Finding] = {}
    for rule in RULES:
        for finding in rule(program):
            found.setdefault((finding.rule, finding.where, finding.argument), finding)
    return LintReport(name, sorted(found.values(), key=_order))


def _order(finding: Finding) -> tuple[str, int, str]:
    file, _, line = finding.where.rpartition(":")
    return file, int(line) if line.isdecimal() else 0, finding.rule
