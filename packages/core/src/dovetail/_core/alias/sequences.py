"""Functions of sequences, and of shapes, as JAX's modules export them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any, SupportsIndex

from dovetail._core.base.flags import partition
from dovetail._core.ir.dimensions import is_symbolic_dim


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


def split_list(args: Sequence[Any], ns: Sequence[int]) -> list[list[Any]]:
    """Parts of a sequence.

    Args:
        args: the sequence.
        ns: the lengths of the parts; what is left over is one more.
    """
    left = list(args)
    parts = []
    for n in ns:
        parts.append(left[:n])
        left = left[n:]
    return [*parts, left]


def partition_list(bs: Sequence[bool], l: Sequence[Any]) -> tuple[list[Any], list[Any]]:  # noqa: E741
    """The elements of a sequence that are not flagged, and those that are.

    Args:
        bs: the flags.
        l: the sequence.
    """
    flagged, others = partition(bs, l)
    return others, flagged


def unzip2(xys: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """First and second elements of pairs."""
    pairs = list(xys)
    return tuple([x for x, _ in pairs]), tuple([y for _, y in pairs])


def unzip3(
    xyzs: Iterable[tuple[Any, Any, Any]],
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """First, second and third elements of triples."""
    triples = list(xyzs)
    return (
        tuple([x for x, _, _ in triples]),
        tuple([y for _, y, _ in triples]),
        tuple([z for _, _, z in triples]),
    )


def canonicalize_axis(axis: SupportsIndex, num_dims: int) -> int:
    """The number of a dimension, counted from the first.

    Args:
        axis: the number, a negative one from the last.
        num_dims: how many dimensions there are.

    Raises:
        ValueError: there is no such dimension.
    """
    number = index(axis)
    if not -num_dims <= number < num_dims:
        raise ValueError(f"axis {number} is out of bounds for array of dimension {num_dims}")
    return number % num_dims


def canonicalize_shape(shape: Sequence[Any], context: str = "") -> tuple[Any, ...]:
    """A shape as a tuple of numbers of Python; symbolic sizes stay.

    Args:
        shape: the sizes.
        context: what they are for, for the message.

    Raises:
        TypeError: a size is not a whole number.
    """
    try:
        return tuple([d if is_symbolic_dim(d) else index(d) for d in shape])
    except TypeError:
        raise TypeError(
            f"a shape is a sequence of whole numbers that are known, got {shape!r}"
            + (f" {context}" if context else "")
        ) from None
