"""Parts of programs that run elsewhere on a device: on its host, or on a stream of their own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final

from dovetail._core.base import pytree
from dovetail._core.ops.calls.xla_metadata import set_xla_metadata, xla_metadata_call
from dovetail._core.runtime.arrays.transfer import device_put
from dovetail._core.runtime.devices.memory_spaces import Space
from dovetail._core.transform.flattening import check_callable, name_of

__all__ = ["compute_on"]

#: Where XLA runs what is told so.
_PLACES: Final[Mapping[str, str]] = {
    "device": "dense",
    "device_host": "host",
    "tpu_sparsecore": "sparseoffload",
}


def _told(compute_type: Any) -> dict[str, Any]:
    if isinstance(compute_type, str) and compute_type in _PLACES:
        return {"_xla_compute_type": _PLACES[compute_type]}
    stream = re.fullmatch(
        r"gpu_stream:(\d+)", compute_type if isinstance(compute_type, str) else ""
    )
    if stream is None:
        raise ValueError(
            "compute_on: compute_type is 'device_host', 'device', 'tpu_sparsecore' or "
            f"'gpu_stream:#' with a number, got {compute_type!r:.80}"
        )
    return {"_xla_stream_annotation": stream[1], "inlineable": False}


def compute_on(
    f: Callable[..., Any] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: Any,
    compiler_options: Mapping[str, Any] | None = None,
) -> Any:
    """Make a function that a program runs elsewhere, as XLA is told.

    Args:
        f: the function; without it, a decorator is returned.
        compute_type: ``"device_host"`` for the host of the device, ``"device"``,
            ``"tpu_sparsecore"``, or ``"gpu_stream:#"`` for a stream of a GPU, with its number.
        out_memory_spaces: the memory of the results: a `dovetail.memory.Space`, or a tree of them
            that is a prefix of the results.
        compiler_options: options for compiling the function.

    Returns:
        The function. Where the platform knows no such place it runs as any other.

    Raises:
        ValueError: there is no such `compute_type`.
        TypeError: `f` is no function, or a memory is no `Space`.

    Example:
        >>> import dovetail as dt
        >>> from dovetail.experimental.compute_on import compute_on
        >>> @dt.jit
        ... @compute_on(compute_type="device_host", out_memory_spaces=dt.memory.Space.Device)
        ... def double(x):
        ...     return 2 * x
        >>> print(double(3.0))
        6.0
    """
    told = _told(compute_type)
    for space in pytree.leaves(out_memory_spaces):
        if not isinstance(space, Space):
            raise TypeError(
                f"compute_on: out_memory_spaces holds dovetail.memory.Space, got {space!r:.80}"
            )
    said = (
        told
        if compiler_options is None
        else told | {"backend_config": json.dumps(compiler_options)}
    )

    def elsewhere(function: Callable[..., Any]) -> Callable[..., Any]:
        check_callable(function, "compute_on")
        call: Callable[..., Any] = xla_metadata_call(set_xla_metadata(**told)(function), **said)

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            results = call(*args, **kwargs)
            leaves, tree = pytree.flatten(results)
            spaces = pytree.flatten_up_to_prefix(
                f"out_memory_spaces of {name_of(function)}", out_memory_spaces, tree
            )
            placed = [
                device_put(leaf, space) if space is Space.Host else leaf
                for leaf, space in zip(leaves, spaces, strict=True)
            ]
            return pytree.unflatten(tree, placed)

        return run

    return elsewhere if f is None else elsewhere(f)
