"""The options ``debug_nans`` and ``debug_infs`` while programs run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail._core.base import config
from dovetail._core.ops.elementwise.conversion import copy_p
from dovetail._core.runtime.arrays.array import Array
from dovetail._core.trace.state import evaluation_trace, use_trace

__all__ = ["kept", "watching"]


def watching() -> bool:
    """Whether one of the options is on."""
    return bool(config.debug_nans.value or config.debug_infs.value)


def kept(operands: Sequence[Any], donated: Sequence[bool]) -> Sequence[Any]:
    """Arguments to explain a call with: copies of those that it gives up."""
    if not watching() or not any(donated):
        return operands
    with use_trace(evaluation_trace):
        return [
            copy_p.bind(x) if gone and isinstance(x, Array) else x
            for x, gone in zip(operands, donated, strict=True)
        ]
