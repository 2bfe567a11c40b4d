"""Dtype promotion: the promotion lattice with weak types.

A value is weakly typed if nobody chose its dtype, as for a Python scalar. A weak type gives way to
another type of the same or a higher kind. The lattice's nodes are the dtypes and the three weak
kinds; its edges say what each node may be promoted to. The result of a promotion is the least upper
bound of the arguments in the lattice. Arguments without one do not combine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from dovetail._core.base.config import enable_x64, numpy_dtype_promotion
from dovetail._core.base.errors import DTypeError

__all__ = ["TypePromotionError", "join", "widest"]

Node = "np.dtype[Any] | str"

WEAK_INT, WEAK_FLOAT, WEAK_COMPLEX = "int*", "float*", "complex*"


class TypePromotionError(DTypeError):
    """Arguments have dtypes that do not combine.

    Args:
        message: the text of the error, which names the dtypes.
    """

    __module__ = "dovetail.dtypes"  # where users know it; tracebacks show this


def _dtypes(*names: str) -> tuple[np.dtype[Any], ...]:
    return tuple(np.dtype(getattr(ml_dtypes, name, name)) for name in names)


BOOL = np.dtype(np.bool_)
# Without ml_dtypes' 1-bit integers and 6-bit floats, which XLA does not support.
NARROW_INTS = _dtypes(
    *(name for name in ("int2", "int4", "uint2", "uint4") if hasattr(ml_dtypes, name))
)
SIGNED = _dtypes("int8", "int16", "int32", "int64")
UNSIGNED = _dtypes("uint8", "uint16", "uint32", "uint64")
FLOATS = _dtypes("bfloat16", "float16", "float32", "float64")
NARROW_FLOATS = _dtypes(
    *(
        name
        for name in (
            "float8_e3m4",
            "float8_e4m3",
            "float8_e4m3b11fnuz",
            "float8_e4m3fn",
            "float8_e4m3fnuz",
            "float8_e5m2",
            "float8_e5m2fnuz",
            "float8_e8m0fnu",
            "float4_e2m1fn",
        )
        if hasattr(ml_dtypes, name)
    )
)
COMPLEX = _dtypes("complex64", "complex128")


def _standard_edges() -> dict[Any, Sequence[Any]]:
    bfloat16, float16, float32, float64 = FLOATS
    complex64, complex128 = COMPLEX
    edges: dict[Any, Sequence[Any]] = {
        BOOL: (WEAK_INT,),
        WEAK_INT: (SIGNED[0], UNSIGNED[0], *NARROW_INTS),
        SIGNED[3]: (WEAK_FLOAT,),
        UNSIGNED[3]: (WEAK_FLOAT,),
        WEAK_FLOAT: (bfloat16, float16, WEAK_COMPLEX, *NARROW_FLOATS),
        bfloat16: (float32,),
        float16: (float32,),
        float32: (float64, complex64),
        float64: (complex128,),
        WEAK_COMPLEX: (complex64,),
        complex64: (complex128,),
        complex128: (),
    }
    for low, high in itertools.pairwise(SIGNED):
        edges[low] = (high,)
    for low, high, signed in zip(UNSIGNED, UNSIGNED[1:], SIGNED[1:], strict=False):
        edges[low] = (high, signed)
    for dtype in NARROW_INTS + NARROW_FLOATS:
        edges[dtype] = ()
    return edges


def _strict_edges() -> dict[Any, Sequence[Any]]:
    integers, floats = SIGNED + UNSIGNED + NARROW_INTS, FLOATS + NARROW_FLOATS
    edges: dict[Any, Sequence[Any]] = {
        WEAK_INT: (WEAK_FLOAT, *integers),
        WEAK_FLOAT: (WEAK_COMPLEX, *floats),
        WEAK_COMPLEX: COMPLEX,
    }
    for dtype in (BOOL, *integers, *floats, *COMPLEX):
        edges[dtype] = ()
    return edges


def _upper_bounds(edges: Mapping[Any, Sequence[Any]]) -> dict[Any, frozenset[Any]]:
    """All nodes reachable from each node, including itself."""
    bounds: dict[Any, frozenset[Any]] = {}

    def visit(node: Any) -> frozenset[Any]:
        if node not in bounds:
            bounds[node] = frozenset([node]).union(*(visit(above) for above in edges[node]))
        return bounds[node]

    for node in edges:
        visit(node)
    return bounds


_BOUNDS = {"standard": _upper_bounds(_standard_edges()), "strict": _upper_bounds(_strict_edges())}


def widest(kind: str) -> np.dtype[Any]:
    """The default dtype of a kind, ``"b"``, ``"i"``, ``"u"``, ``"f"`` or ``"c"``."""
    return _WIDEST[enable_x64.value][kind]


_WIDEST = {
    False: {"b": BOOL, "i": SIGNED[2], "u": UNSIGNED[2], "f": FLOATS[2], "c": COMPLEX[0]},
    True: {"b": BOOL, "i": SIGNED[3], "u": UNSIGNED[3], "f": FLOATS[3], "c": COMPLEX[1]},
}
_NARROWED = {
    SIGNED[3]: SIGNED[2],
    UNSIGNED[3]: UNSIGNED[2],
    FLOATS[3]: FLOATS[2],
    COMPLEX[1]: COMPLEX[0],
}
_KIND = {
    **dict.fromkeys(SIGNED, "i"),
    **dict.fromkeys(UNSIGNED, "u"),
    **{dtype: dtype.name[0] for dtype in NARROW_INTS},
    **dict.fromkeys(FLOATS + NARROW_FLOATS, "f"),
    **dict.fromkeys(COMPLEX, "c"),
    BOOL: "b",
}
_WEAK_NODE = {"i": WEAK_INT, "u": WEAK_INT, "f": WEAK_FLOAT, "c": WEAK_COMPLEX, "b": BOOL}
_WEAK_KIND = {WEAK_INT: "i", WEAK_FLOAT: "f", WEAK_COMPLEX: "c"}


def narrowed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that replaces ``dtype`` while ``enable_x64`` is off."""
    return _NARROWED.get(dtype, dtype)


def kind_of(dtype: Any) -> str:
    """``"b"``, ``"i"``, ``"u"``, ``"f"`` or ``"c"``; empty for a dtype that is not numeric.

    Unlike NumPy's `kind`, it classifies the floats and integers of ml_dtypes as such.
    """
    return _KIND.get(dtype, "")


def join(
    arguments: Iterable[tuple[Any, bool]], mode: str | None = None
) -> tuple[np.dtype[Any], bool]:
    """The dtype that arguments are promoted to, and whether it is weak.

    Args:
        arguments: at least one pair of a dtype and whether it is weak.
        mode: "standard" or "strict"; the option ``numpy_dtype_promotion`` if None.

    Raises:
        TypePromotionError: the dtypes do not combine.
    """
    return _join(frozenset(arguments), enable_x64.value, mode or numpy_dtype_promotion.value)


@lru_cache(maxsize=8192)
def _join(
    arguments: frozenset[tuple[Any, bool]], x64: bool, mode: str
) -> tuple[np.dtype[Any], bool]:
    pairs = {(dtype if x64 else _NARROWED.get(dtype, dtype), weak) for dtype, weak in arguments}
    dtypes = {dtype for dtype, _ in pairs}
    if len(dtypes) == 1 and not all(weak for _, weak in pairs):
        return next(iter(dtypes)), False
    unknown = [dtype for dtype in dtypes if dtype not in _KIND]
    if unknown:
        if len(dtypes) == 1:
            return unknown[0], False
        raise TypePromotionError(
            f"values of the types {_names(dtypes)} do not combine: "
            f"{_names(unknown)} can only be combined with the same type; convert the others, or, "
            "for random keys, derive new ones with random.split or random.fold_in"
        )
    bounds = _BOUNDS[mode]
    all_weak = all(weak for _, weak in pairs)
    if all_weak and mode == "standard":
        nodes: set[Any] = dtypes
    else:
        nodes = {_WEAK_NODE[_KIND[dtype]] if weak else dtype for dtype, weak in pairs}
    common = frozenset.intersection(*(bounds[node] for node in nodes))
    least = [node for node in common if bounds[node] == common]
    if not least:
        raise TypePromotionError(_why_not(nodes, mode))
    node = least[0]
    if isinstance(node, str):
        return _WIDEST[x64][_WEAK_KIND[node]], True
    result = node if x64 else _NARROWED.get(node, node)
    if all_weak and result is not BOOL and result != BOOL:
        return _WIDEST[x64][_KIND[result]], True
    return result, False


def _names(nodes: Iterable[Any]) -> str:
    return ", ".join(sorted(str(node) for node in nodes))


def _why_not(nodes: Iterable[Any], mode: str) -> str:
    text = f"values of the types {_names(nodes)} do not combine"
    if any(isinstance(node, str) for node in nodes):
        text += " (int*, float* and complex* are those of Python scalars)"
    if mode == "strict":
        return (
            f'{text}, because numpy_dtype_promotion is "strict". Convert one explicitly, for '
            "example with "
            "x.astype(y.dtype), or allow promotion in one place: "
            'with dovetail.numpy_dtype_promotion("standard"): ...'
        )
    if any(node in NARROW_FLOATS for node in nodes):
        return (
            f"{text}: floats of 8 bits and less are not promoted implicitly. "
            "Convert explicitly, for example with x.astype('float32')"
        )
    return (
        f"{text}: integers of less than 8 bits are not promoted implicitly. "
        "Convert explicitly, for example with x.astype('int32')"
    )
