"""`platform_dependent`: a branch for each platform."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from dovetail._core.base.typing import PyTree
from dovetail._core.hlo.platform_choice import by_platform
from dovetail._core.ir.avals import make_aval
from dovetail._core.ops.control.branches import Platforms, branch_of
from dovetail._core.ops.control.conditionals import choose
from dovetail._core.trace.primitive import Primitive
from dovetail._core.transform.derived import evaluation_platform

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

T = TypeVar("T")
_CALLER: Final = "lax.platform_dependent"
_INDEX: Final = make_aval((), np.dtype(np.int32))


class PlatformIndex(Primitive):
    """The number of the branch for the platform that the program runs on."""

    name = "platform_index"
    no_derivative = "it is an integer, and depends on nothing"

    def abstract(self, *, platforms: Platforms) -> Any:
        return _INDEX

    def reference(self, *, platforms: Platforms) -> Any:
        return np.int32(branch_of(evaluation_platform(), platforms) or 0)

    def lower(self, context: Builder, *, platforms: Platforms) -> Any:
        return by_platform(
            context,
            # Without a branch, the choice itself cannot be lowered.
            lambda platform: context.constant(branch_of(platform, platforms) or 0, _INDEX),
            [_INDEX],
        )


platform_index_p: Final = PlatformIndex()


def platform_dependent(
    *args: PyTree, default: Callable[..., T] | None = None, **per_platform: Callable[..., T]
) -> T:
    """Call the function for the platform that the program runs on.

    All functions are traced. A program for one platform contains only the function for that; the
    others are not lowered, so functions may use features of their platform alone. A program for
    several platforms chooses when it runs.

    Args:
        args: arguments for all functions, trees of arrays.
        default: the function for platforms that are not named.
        per_platform: functions by platform name, such as ``cpu``, ``cuda``, ``tpu``. All return
            trees of arrays with the same structure, shapes and dtypes; a Python number takes the
            dtype that the others return.

    Returns:
        The result of the function.

    Raises:
        TypeError: something is not a function, or the functions return different types.
        ValueError: no function is given, or one is given for ``gpu``.
        MissingRuleError: when the program is lowered: a platform has no function, and there is no
            default.

    Example:
        >>> from dovetail import lax
        >>> float(lax.platform_dependent(2.0, cpu=lambda x: x + 1, default=lambda x: x - 1))
        3.0
    """
    if "gpu" in per_platform:
        raise ValueError(
            f"{_CALLER}: gpu is no platform but a name for several; name those that are meant, "
            "cuda=... and rocm=..."
        )
    functions = dict(per_platform)
    platforms: list[tuple[str, ...] | None] = [(name,) for name in per_platform]
    if default is not None:
        functions["default"] = default
        platforms.append(None)
    if not functions:
        raise ValueError(
            f"{_CALLER}: give a function for a platform, such as cpu=..., or default=..."
        )
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(
                f"{_CALLER}: {name} must be a function, got {function!r:.80} of type "
                f"{type(function).__name__}"
            )
    index = platform_index_p.bind(platforms=tuple(platforms))
    result: T = choose(_CALLER, index, functions, args, branches_platforms=tuple(platforms))
    return result
