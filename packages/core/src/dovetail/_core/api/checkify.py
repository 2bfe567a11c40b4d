"""checkify: run-time errors as values of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from dovetail._core.base.wrapping import wraps
from dovetail._core.ops.checks.checking import Categories, error_of_user, run_checked
from dovetail._core.ops.checks.error import Error, raise_error
from dovetail._core.ops.checks.failures import (
    DivisionByZeroError,
    FailedCheckError,
    JaxException,
    NaNError,
    OOBError,
)
from dovetail._core.transform.flattening import check_callable, name_of

P = ParamSpec("P")
T = TypeVar("T")

ErrorCategory = type[JaxException]

user_checks: Final[Categories] = frozenset({FailedCheckError})
nan_checks: Final[Categories] = frozenset({NaNError})
index_checks: Final[Categories] = frozenset({OOBError})
div_checks: Final[Categories] = frozenset({DivisionByZeroError})
float_checks: Final[Categories] = nan_checks | div_checks
automatic_checks: Final[Categories] = float_checks | index_checks
all_checks: Final[Categories] = automatic_checks | user_checks


def checkify(
    f: Callable[P, T], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[P, tuple[Error, T]]:
    """A function that also returns an error: whether a check in it failed, and which one.

    A compiled program cannot raise. The checks of the new function become part of its result, so it
    can be transformed and compiled like any other; after the call, `Error.throw` raises. Checks are
    found in everything that the function calls, whatever transformations it uses: compiled
    functions, branches, loops, derivatives and `vmap`, where the error is that of the first failing
    element. The first error that occurs is the one returned. If `errors` says so, operations are
    checked as well, without any change to the program.

    Arguments that are not arrays are passed through unchanged; outside compiled functions, the
    function also sees the values of arrays.

    Args:
        f: the function.
        errors: what to look for, a union of the sets of this module: `user_checks` (calls of
            `check`), `nan_checks` (results with a nan), `div_checks` (divisions by zero, including
            ``%``), `index_checks` (indices out of bounds, even if the indexing mode clips, fills or
            drops them), `float_checks` (nan and div), `automatic_checks` (all but user checks) and
            `all_checks`.

    Returns:
        A function of the same arguments that returns a pair: an `Error` and the result of `f`.

    Raises:
        TypeError: `f` is not callable, or `errors` is not a set of categories.

    Differs:
        Divisions by zero in ``%``, indices that are static and functions with rules of their
        own are looked at too, also where the function is differentiated itself, and so are
        checks in batched loops. The first error in time is reported; JAX reports one of the
        first kind that was traced.

        >>> from dovetail.experimental import checkify
        >>> error, _ = checkify.checkify(lambda x: x % 0, errors=checkify.div_checks)(jnp.array(3))
        >>> "division by zero" in error.get()
        True

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail.experimental import checkify
        >>> def f(x):
        ...     checkify.check(x > 0, "must be positive, got {x:.1f}", x=x)
        ...     return jnp.log(x)
        >>> error, y = dt.jit(checkify.checkify(f))(-2.0)
        >>> error.get()[:27]
        'must be positive, got -2.0 '
        >>> error, y = dt.jit(checkify.checkify(f))(1.0)
        >>> error.get() is None
        True
    """
    check_callable(f, "checkify")
    if not isinstance(errors, (frozenset, set)) or not all(
        isinstance(e, type) and issubclass(e, JaxException) for e in errors
    ):
        raise TypeError(
            "checkify: errors must be a union of sets of this module, such as "
            f"checkify.user_checks | checkify.nan_checks, got {errors!r:.80}"
        )
    categories = frozenset(errors)

    @wraps(f)
    def checked(*args: P.args, **kwargs: P.kwargs) -> tuple[Error, T]:
        return run_checked(f, categories, args, kwargs)

    checked.__name__ = f"checkify_{name_of(f)}"
    return checked


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Fail with a message unless a condition holds.

    Under `checkify`, the failure becomes part of the result. Elsewhere it is raised at once, but a
    compiled function may contain a check only under `checkify`.

    Args:
        pred: the condition, a scalar bool.
        msg: the message, a format string: ``{}`` and ``{name}`` stand for the values that follow. A
            format specification such as ``{x:.3f}`` applies to each element of an array.
        fmt_args: arrays, numbers and trees of them.
        debug: whether the check does nothing outside `checkify`.
        fmt_kwargs: the same, by name.

    Raises:
        TypeError: `pred` is not a scalar bool, or a value is not an array of numbers.
        ValueError: the message is not a format string, or has a field without a value.
        JaxRuntimeError: the condition does not hold, and the check is not under `checkify`.

    Differs:
        Values of messages may be numbers of Python; the fields of a message are checked; lines
        are named as ``(`check` failed at train.py:8 (f))``.

        >>> from dovetail.experimental import checkify
        >>> checkify.check(True, "{x} is negative", y=1)
        Traceback (most recent call last):
            ...
        ValueError: check: the message '{x} is negative' has the field {x}, and no ...

    Example:
        >>> from dovetail.experimental import checkify
        >>> checkify.check(1 < 2, "{} is not less than {}", 1, 2)
    """
    raise_error(error_of_user("check", pred, msg, fmt_args, fmt_kwargs), debug)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check`, but only under `checkify`: elsewhere, even in compiled functions, it does nothing.

    Args:
        pred: the condition, a scalar bool.
        msg: the message, a format string.
        fmt_args: arrays, numbers and trees of them.
        fmt_kwargs: the same, by name.

    Raises:
        TypeError: `pred` is not a scalar bool, or a value is not an array of numbers.
        ValueError: the message is not a format string, or has a field without a value.

    Example:
        >>> from dovetail.experimental import checkify
        >>> checkify.debug_check(1 > 2, "this is nobody's concern")
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise an error if there is one, as `check` does; under `checkify` it joins the result.

    `checkify` reports it if it looks for user checks or for errors of its category.

    Args:
        error: a result of `checkify`; the first one of a batch is raised.

    Raises:
        TypeError: it is not an `Error`.
        JaxRuntimeError: it holds an error, and the call is not under `checkify`.

    Example:
        >>> from dovetail.experimental import checkify
        >>> error, _ = checkify.checkify(lambda: checkify.check(1 < 2, "no"))()
        >>> checkify.check_error(error)
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error: takes an Error, as checkify returns it, got {error!r:.80}")
    raise_error(error)
