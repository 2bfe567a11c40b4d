"""`show`: a table of a tree of arrays."""

from __future__ import annotations

import math
import sys
from typing import Any, Final

import numpy as np

from dovetail._core.api.inspection import ShapeDtypeStruct
from dovetail._core.base import dtypes, pytree
from dovetail._core.base.notebooks import notebook, table
from dovetail._core.base.typing import PyTree
from dovetail._core.ir.avals import aval_of, is_array_like, make_aval
from dovetail._core.runtime.arrays.array import Array
from dovetail._core.runtime.arrays.memory import in_words
from dovetail._core.runtime.arrays.text import place_text
from dovetail._core.runtime.reports.tables import aligned
from dovetail._core.trace.tracer import Tracer

__all__ = ["show"]

_HEAD: Final = ("path", "type", "size", "mean", "deviation", "least", "largest", "where")
_SIDES: Final = ("left", "left", "right", "right", "right", "right", "right", "left")
_STATISTICS: Final = range(3, 7)


def show(tree: PyTree, *, statistics: bool = True) -> None:
    """Print a table of a tree, such as parameters: a line for each leaf, and the sum of all.

    A line has the leaf's path, dtype and shape, bytes, statistics of its elements, and where it
    is: its devices, and how it is divided over a mesh. Elements that are NaN or infinite are left
    out of the statistics, and counted. In a notebook it is a table of HTML.

    Args:
        tree: arrays, tracers, descriptions such as `ShapeDtypeStruct`, numbers, or anything else in
            containers.
        statistics: whether to look at elements, which are read from the devices for that.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> dt.show({"w": jnp.ones((2, 3)), "b": jnp.arange(2.0)}, statistics=False)
        path  type      size  where
        ['b']  f32[2]     8 B  cpu:0
        ['w']  f32[2,3]  24 B  cpu:0
        leaves: 2, elements: 8, memory: 32 B
    """
    leaves = pytree.leaves_with_path(tree)
    rows = [(pytree.keystr(path), *_described(leaf, statistics)) for path, leaf in leaves]
    arrays = [aval_of(leaf) for _, leaf in leaves if is_array_like(leaf)]
    elements = sum(math.prod(aval.shape) for aval in arrays)
    memory = in_words(sum(map(_bytes, arrays)))
    total = f"leaves: {len(leaves)}, elements: {elements:,}, memory: {memory}"
    keep = [n for n in range(len(_HEAD)) if statistics or n not in _STATISTICS]
    chosen = [[row[n] for n in keep] for row in (_HEAD, *rows)]
    sides = [_SIDES[n] for n in keep]
    text = f"{aligned(chosen, sides)}\n{total}\n"
    publish = notebook()
    if publish is None:
        sys.stdout.write(text)
        return
    publish({"text/plain": text, "text/html": table(chosen, sides, total)})


def _described(leaf: Any, statistics: bool) -> tuple[str, ...]:
    """The columns after the path."""
    nothing = ("",) * 4
    if isinstance(leaf, ShapeDtypeStruct):
        return (str(make_aval(leaf.shape, leaf.dtype).short_name()), "", *nothing, "")
    if not is_array_like(leaf):
        return (type(leaf).__name__, "", *nothing, "")
    aval = aval_of(leaf)
    size = in_words(_bytes(aval))
    if isinstance(leaf, Tracer):
        return (aval.short_name(), size, *nothing, str(leaf).partition(" ")[2])
    if isinstance(leaf, Array) and leaf.is_deleted():
        return (aval.short_name(), size, *nothing, "deleted")
    readable = isinstance(leaf, Array | np.ndarray)
    numbers = _statistics(leaf) if statistics and readable else nothing
    return (aval.short_name(), size, *numbers, _place(leaf))


def _bytes(aval: Any) -> int:
    return math.prod(aval.shape) * getattr(aval.dtype, "itemsize", 0)


def _statistics(leaf: Any) -> tuple[str, ...]:
    """Mean, standard deviation, least and largest element, as text."""
    if dtypes.kind_of(leaf.dtype) not in ("b", "i", "u", "f") or not leaf.size:
        return ("",) * 4
    if isinstance(leaf, Array) and not leaf.is_fully_addressable:
        return ("",) * 4
    values = np.asarray(leaf).astype(np.float64)
    finite = values[np.isfinite(values)]
    strange = values.size - finite.size
    if not finite.size:
        return (f"{strange} not finite", "", "", "")
    texts = [f"{n:.4g}" for n in (finite.mean(), finite.std(), finite.min(), finite.max())]
    return (f"{texts[0]} ({strange} not finite)" if strange else texts[0], *texts[1:])


def _place(leaf: Any) -> str:
    sharding = getattr(leaf, "sharding", None)
    if sharding is None:
        return "host" if isinstance(leaf, np.ndarray | np.generic | bool | int | float) else ""
    return place_text(sharding)
