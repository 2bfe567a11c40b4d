"""Operations that a backend lacks, computed on another one, with warnings and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dovetail._core.base import config
from dovetail._core.base.source import warn
from dovetail._core.ops.random.keys import (
    KeyDType,
    keys_of_numpy,
    random_unwrap_p,
    random_wrap_p,
    unwrap,
    wrap,
)
from dovetail._core.runtime.devices import clients
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.state import evaluation_trace, use_trace
from dovetail._core.transform.derived import evaluation_place

__all__ = ["Fallback"]


class Fallback:
    """Computes operations that a backend lacks on another platform.

    A backend must not do so unless its user has asked for it: data is transferred back and forth
    while the accelerator idles. A warning is emitted once per primitive; every use is counted.
    Operations that need no device are left to `evaluate`: callbacks, and tokens, which are empty.

    Args:
        lacking: the platform whose backend lacks operations.
        platform: the platform that computes them.

    Raises:
        ValueError: the two are the same.

    Attributes:
        counts: how often each primitive was computed, by its name.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> from dovetail.extend import Fallback
        >>> fallback = Fallback("acme", "cpu")
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as said:
        ...     warnings.simplefilter("always")
        ...     fallback(lax.neg_p, [np.float32(1)], {})
        array(-1., dtype=float32)
        >>> fallback.counts
        Counter({'neg': 1})
    """

    def __init__(self, lacking: str, platform: str) -> None:
        if lacking == platform:
            raise ValueError(f"the platform {lacking!r} cannot compute what it lacks itself")
        self.lacking = lacking
        self.platform = platform
        self.counts: Counter[str] = Counter()

    def __call__(
        self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]
    ) -> Any:
        """Compute an operation; `evaluate` calls this.

        Args:
            primitive: the operation.
            operands: NumPy arrays or scalars; random keys in the form of reference implementations.
            params: its parameters.

        Returns:
            The result, a NumPy array; a list of them where ``primitive.multiple_results``.
            `NotImplemented` for callbacks, and for operations on tokens alone.

        Raises:
            BackendUnavailableError: the other platform is not installed, or cannot run here.
        """
        if primitive.calls_host or primitive.only_tokens:
            return NotImplemented
        device = clients.local_devices(backend=self.platform)[0]
        if primitive.name not in self.counts:
            place = evaluation_place()
            warn(
                f"the platform {self.lacking!r} has no {primitive.name}"
                f"{f' (used at {place})' if place else ''}: it is computed on "
                f"{self.platform!r} instead, as was asked for, and its operands and results travel",
                RuntimeWarning,
            )
        self.counts[primitive.name] += 1
        # The program may have been traced with 64-bit types on and be called with them off. Its
        # operands already have their final types.
        with (
            config.enable_x64(True),
            config.default_device(device),
            use_trace(evaluation_trace),
        ):
            out = primitive.bind(*map(_argument, operands), **params)
            return list(map(_value, out)) if primitive.multiple_results else _value(out)


def _argument(operand: Any) -> Any:
    """Convert an operand of a reference implementation to an operand of `bind`."""
    keys = keys_of_numpy(operand)
    return (
        operand if keys is None else wrap(random_unwrap_p.reference(operand), keys.implementation)
    )


def _value(result: Any) -> Any:
    """Convert a result of `bind` to the result of a reference implementation."""
    if not isinstance(result.dtype, KeyDType):
        return np.asarray(result)
    raw = np.asarray(unwrap(result))
    return random_wrap_p.reference(raw, impl=result.dtype.implementation)
