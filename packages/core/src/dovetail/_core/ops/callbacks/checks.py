"""`debug.check`: checks that raise by themselves, even in compiled programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import config, pytree
from dovetail._core.ir.effects import debug_effect
from dovetail._core.ir.jaxpr import Effects
from dovetail._core.ir.shown_params import ShownParams, never
from dovetail._core.ops.callbacks.calls import FlatCallback, call_in_program
from dovetail._core.ops.checks.checking import error_of_user
from dovetail._core.ops.checks.error import Check, CheckEffect
from dovetail._core.ops.checks.failures import FailedCheckError

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class _Raise:
    """The host function for a failed check."""

    __slots__ = ("tree",)
    __name__ = "the check"

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def __call__(self, *leaves: Any) -> None:
        self.tree.unflatten(map(np.asarray, leaves)).throw()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Raise) and self.tree == other.tree

    def __hash__(self) -> int:
        return hash(self.tree)


class DebugCheck(Check):
    """Raises an error if a check failed, even from compiled programs."""

    name = "debug_check"
    shown_params: ClassVar[ShownParams] = {"err_tree": never, "debug": never}

    def lower(self, context: Builder, *values: Any, err_tree: Any, debug: bool) -> list[Any]:
        pred = context.avals_in[0]
        index = context.convert(values[0], pred, pred.update(dtype=np.dtype(np.int32)))
        structure = pytree.structure(((0,) * len(values), {}))
        callback = FlatCallback(_Raise(err_tree), structure)

        def fail() -> list[Any]:
            call_in_program(context, values, "debug.check", callback, debug_effect)
            return []

        context.case(index, [list, fail], [])
        return []

    def effects(self, *avals: Any, **params: Any) -> Effects:
        return frozenset({CheckEffect(debug=True), debug_effect})

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        if FailedCheckError in checks.categories:
            return super().check(checks, *args, **params)
        return self.bind(*args, **params)


debug_check_p: Final = DebugCheck()


def check(
    cond: Any, message: str, /, *args: Any, error: type[Exception] = ValueError, **values: Any
) -> None:
    """Raise an exception unless a condition holds, even from compiled programs.

    It works anywhere: in functions under `jit`, `vmap` (the first failing element is reported),
    `grad` and `jvp`, and in bodies of branches and loops, where checks apply only to active
    elements. No wrapper is needed; under `dovetail.experimental.checkify`, the failure becomes part
    of the result, like that of any check. Called eagerly, it raises at once. A compiled program
    that fails raises, at the latest, where its results are first needed or at
    `dovetail.effects_barrier`; the results are lost.

    With the option ``debug_checks`` off, it does nothing and compiles to nothing. With the option
    on, calls of a program with a check go through Python, which takes a few microseconds more.

    Args:
        cond: the condition, a scalar bool.
        message: the message, a format string: ``{}`` and ``{name}`` stand for the values that
            follow. A format specification such as ``{x:.3f}`` applies to each element of an array.
        *args: arrays, numbers and trees of them.
        error: the type of the exception, which is called with the message.
        **values: the same as `args`, by name.

    Raises:
        TypeError: `cond` is not a scalar bool, `error` not an exception type, or a value not an
            array of numbers.
        ValueError: the message is not a format string, or has a field without a value.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> @dt.jit
        ... def root(x):
        ...     dt.debug.check(x >= 0, "no root of {x}", x=x, error=ArithmeticError)
        ...     return jnp.sqrt(x)
        >>> float(root(4.0))
        2.0
        >>> try:
        ...     root(-4.0).block_until_ready()
        ... except ArithmeticError as error:
        ...     print(str(error)[:15])
        no root of -4.0
    """
    if not config.debug_checks.value:
        return
    if not (isinstance(error, type) and issubclass(error, Exception)):
        raise TypeError(f"debug.check: error must be a type of exceptions, got {error!r:.80}")
    require(cond, message, args, values, error)


def require(
    cond: Any,
    message: str,
    args: Sequence[Any],
    values: Mapping[str, Any],
    error: type[Exception],
) -> None:
    """`check`, regardless of the option ``debug_checks``."""
    failure = error_of_user("debug.check", cond, message, args, values, error)
    leaves, tree = pytree.flatten(failure)
    debug_check_p.bind(*leaves, err_tree=tree, debug=False)
