"""Explanations of result dtypes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from dovetail import enable_x64, numpy_dtype_promotion
from dovetail.extend import dtypes
from dovetail.typing import ArrayLike, DTypeLike

_KINDS: Final = {
    "b": "boolean",
    "i": "signed integer",
    "u": "unsigned integer",
    "f": "floating point",
    "c": "complex",
}
_ORDER: Final = "biufc"


def explain_dtype(*operands: ArrayLike | DTypeLike) -> str:
    """Explain the dtype of the result of an operation on operands.

    Args:
        *operands: arrays, numbers and dtypes, at least one. The Python types `int`, `float` and
            `complex` stand for their numbers.

    Returns:
        A string: the dtype of each operand and its origin, the dtype of the result, and the rule
        that leads to it.

    Raises:
        ValueError: there is no operand.

    Differs:
        JAX has no such function.

        >>> "float32" in str(jnp.explain_dtype(jnp.ones(2), 1))
        True

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.explain_dtype(jnp.ones(3, "bfloat16"), 2.5))
        operand 1: bfloat16, the dtype of an array of shape (3,)
        operand 2: a Python float: weakly typed, so it gives way to other floats
        result: bfloat16, because operand 1 has it, and nothing else has a dtype of its own
    """
    if not operands:
        raise ValueError("explain_dtype: at least one operand is needed")
    descriptions = [_described(operand) for operand in operands]
    lines = [f"operand {n}: {text}" for n, (_, _, text) in enumerate(descriptions, 1)]
    try:
        dtype, weak = dtypes.result_type(*operands, return_weak_type_flag=True)
    except dtypes.TypePromotionError as error:
        return "\n".join([*lines, f"no result: {error}"])
    name = f"{dtypes.as_dtype(dtype)}{', weakly typed' if weak else ''}"
    reason = _reason([(d, w) for d, w, _ in descriptions], dtype)
    return "\n".join([*lines, f"result: {name}, because {reason}"])


def _described(operand: Any) -> tuple[Any, bool, str]:
    """The canonical dtype of an operand, whether it is weak, and a description."""
    # A single operand is its own result, whatever promotion allows.
    dtype, weak = dtypes.result_type(operand, return_weak_type_flag=True)
    if isinstance(operand, type) and operand in (bool, int, float, complex):
        text = f"Python's type {operand.__name__}"
    elif type(operand) in (bool, int, float, complex):
        text = f"a Python {type(operand).__name__}"
    else:
        text = f"{dtype}, {_origin(operand, dtype)}"
    if weak:
        kind = dtypes.kind_of(dtype)
        widest = "integers" if kind in "iu" else "floats" if kind == "f" else "complex numbers"
        text += f": weakly typed, so it gives way to other {widest}"
    elif operand is bool or type(operand) is bool:
        text += ", of dtype bool, which gives way to all others"
    return dtype, weak, text


def _origin(operand: Any, dtype: Any) -> str:
    if isinstance(operand, (str, np.dtype)) or (
        isinstance(operand, type) and not hasattr(operand, "aval")
    ):
        requested = dtypes.as_dtype(operand)
        return "given as a dtype" + _narrowed(requested, dtype)
    shape = getattr(operand, "shape", ())
    what = f"an array of shape {shape}" if shape else "a scalar array"
    if isinstance(operand, (np.ndarray, np.generic)):
        what = f"a NumPy array of shape {shape}" if shape else "a NumPy scalar"
    return f"the dtype of {what}" + _narrowed(getattr(operand, "dtype", dtype), dtype)


def _narrowed(asked: Any, dtype: Any) -> str:
    if asked == dtype:
        return ""
    return f" of {asked}, which becomes {dtype} because 64-bit types are off (enable_x64)"


def _reason(operands: list[tuple[Any, bool]], dtype: Any) -> str:
    strong = [d for d, w in operands if not w]
    distinct = sorted({str(d) for d in strong})
    if not strong:
        if len({d for d, _ in operands}) == 1:
            return f"all operands are weakly typed {_kind(dtype)} numbers; it stays weakly typed"
        return (
            f"all operands are weakly typed, and of their kinds {_kind(dtype)} is the highest; "
            "it stays weakly typed"
        )
    if len(distinct) == 1:
        if strong[0] == dtype:
            places = [str(n) for n, (d, w) in enumerate(operands, 1) if not w]
            who = (
                f"operand {places[0]} has it"
                if len(places) == 1
                else (f"operands {', '.join(places)} have it")
            )
            if len(places) == len(operands):
                return who
            return f"{who}, and nothing else has a dtype of its own"
        return _raised(strong[0], operands, dtype)
    common = dtypes.result_type(*strong)
    text = f"it is the least dtype that {', '.join(distinct)} can be promoted to"
    signed = any(dtypes.kind_of(d) == "i" for d in strong)
    unsigned = any(dtypes.kind_of(d) == "u" for d in strong)
    integers = {dtypes.kind_of(d) for d in strong} <= {"i", "u", "b"}
    kinds = {dtypes.kind_of(d) for d in strong}
    if integers and signed and unsigned:
        text += "; unsigned integers fit the next wider signed ones"
        if dtypes.itemsize_bits(common) == 32 and not enable_x64.value:
            text += ", up to the 32 bits that are there while 64-bit types are off"
    elif {"bfloat16", "float16"} <= set(distinct):
        text += "; neither of bfloat16 and float16 holds the other"
    elif kinds & {"f", "c"} and kinds & {"i", "u"}:
        text += "; integers of any width take the width of the floats"
    if common != dtype:
        text += f", which gives {common}; then {_raised(common, operands, dtype)}"
    return text


def _raised(own: Any, operands: list[tuple[Any, bool]], dtype: Any) -> str:
    """Why a weak operand matters whose kind is higher than the dtypes of the others."""
    rank = _ORDER.index(dtypes.kind_of(dtype) or "b")
    place = next(
        n
        for n, (d, w) in enumerate(operands, 1)
        if w and _ORDER.index(dtypes.kind_of(d) or "b") >= rank
    )
    width = "" if numpy_dtype_promotion.value == "strict" else ", in the default width of that kind"
    if dtypes.kind_of(own) in ("f", "c"):
        width = f" of the width of {own}"
    return f"operand {place} is {_kind(dtype)}, a higher kind than that of {own}{width}"


def _kind(dtype: Any) -> str:
    return _KINDS.get(dtypes.kind_of(dtype), str(dtype))
