"""Maps over sequences of one length, as JAX's modules export them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def safe_map(f: Callable[..., Any], *sequences: Iterable[Any]) -> list[Any]:
    """The list of results of a function on elements of sequences.

    Raises:
        ValueError: the sequences have different lengths.
    """
    return [f(*elements) for elements in zip(*sequences, strict=True)]


def safe_zip(*sequences: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The list of tuples of elements of sequences.

    Raises:
        ValueError: the sequences have different lengths.
    """
    return list(zip(*sequences, strict=True))
