"""What two libraries made of one program, compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from source import Program, operands, operation_lines

TOLERANCE = {
    "float64": 1e-11,
    "complex128": 1e-11,
    "float32": 3e-5,
    "complex64": 3e-5,
    "float16": 6e-3,
    "bfloat16": 5e-2,
}
"""Relative, to the largest element of an array."""

COARSE = 0.3
"""The tolerance of floats of 8 bits."""

LEAST = {"grad": 1.0}
"""What results are at least compared with, since terms of about one may cancel; by mode."""

LEAST_ELSEWHERE = 0.03

SPREAD = 10.0
"""How much further than noise moves a result two libraries may be apart."""

Outcome = dict[str, Any]

FINFO: Any = ml_dtypes.finfo  # which has no types


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: of which operation of a program, in which mode, and in what."""

    mode: str
    operation: str
    function: str
    field: str
    ours: str
    theirs: str
    call: str = ""
    dtypes: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What differences of one cause have in common, in whichever mode they are found."""
        told = {
            "error": (_class_of(self.ours), _class_of(self.theirs)),
            "accepted": (_class_of(self.theirs),),
            "refused": (_class_of(self.ours),),
            "dtype": (self.ours, self.theirs),
            "weak type": (self.ours, self.theirs),
        }
        return (self.field, self.function, *told.get(self.field, ()))


def _class_of(text: str) -> str:
    return text.partition(":")[0]


def same_class(ours: list[str], theirs: list[str]) -> bool:
    """Whether an error is of the class of the other, or of one below it."""
    return theirs[0] in ours


def told(outcome: Outcome) -> str:
    """An outcome in one line."""
    if "error" in outcome:
        return f"{outcome['error'][0]}: {outcome['message']}"
    leaves = []
    for leaf in outcome["leaves"]:
        value = leaf["value"]
        weak = " weak" if leaf["weak_type"] else ""
        leaves.append(f"{value.dtype}{list(value.shape)}{weak} {value.ravel()[:8].tolist()}")
    return f"{outcome['structure']} {'; '.join(leaves)}".replace("\n", " ")


def told_where(outcome: Outcome, apart: list[np.ndarray[Any, Any]]) -> str:
    """An outcome in one line, of its elements those that differ."""
    leaves = []
    for leaf, different in zip(outcome["leaves"], apart, strict=True):
        value = leaf["value"]
        some = f"{value[different][:8].tolist()}" if different.any() else "equal"
        leaves.append(f"{value.dtype}{list(value.shape)} {some}")
    return f"{outcome['structure']} {'; '.join(leaves)}".replace("\n", " ")


def close(
    ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], least: float = 0.0
) -> np.ndarray[Any, Any]:
    """Where two arrays of one dtype and shape agree within its tolerance.

    Args:
        ours: what we have.
        theirs: what the other library has.
        least: what the tolerance is at least relative to.
    """
    if not _is_inexact(theirs):
        return np.asarray(ours == theirs)
    name = str(theirs.dtype)
    kind = np.complex128 if name.startswith("complex") else np.float64
    tolerance = TOLERANCE.get(name, COARSE)
    a, b = ours.astype(kind), theirs.astype(kind)
    with np.errstate(all="ignore"):
        finite = np.isfinite(b)
        scale = np.max(np.abs(b), where=finite, initial=least)
        tiny = float(FINFO(theirs.dtype).smallest_normal)
        near = np.abs(a - b) <= tolerance * scale + tiny
        special = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.asarray(np.where(finite, near, special))


def _is_inexact(array: np.ndarray[Any, Any]) -> bool:
    return str(array.dtype).startswith(("float", "bfloat", "complex"))


def explained_by_rounding(ours: Outcome, theirs: Outcome, noisy: list[Outcome]) -> bool:
    """Whether noise moves the elements that differ as far as the two are apart.

    Args:
        ours: what we have.
        theirs: what the other library has.
        noisy: what the other library has with noise of several seeds.
    """
    for place, (a, b) in enumerate(zip(ours["leaves"], theirs["leaves"], strict=True)):
        x, y = a["value"], b["value"]
        apart = ~close(x, y)
        if not apart.any():
            continue
        others = [
            one["leaves"][place]["value"] for one in noisy if len(one.get("leaves", ())) > place
        ]
        others = [z for z in others if z.shape == y.shape and z.dtype == y.dtype]
        if not _is_inexact(y):
            moved = [z != y for z in others]
            if not moved or not np.any(moved, axis=0)[apart].all():
                return False
            continue
        kind = np.complex128 if str(y.dtype).startswith("complex") else np.float64
        x, y = x.astype(kind), y.astype(kind)
        with np.errstate(all="ignore"):
            distances = [np.abs(z.astype(kind) - y) for z in others]
            kinds = [np.isfinite(z.astype(kind)) != np.isfinite(y) for z in others]
            if not distances:
                return False
            spread = SPREAD * np.nanmax([*distances, np.zeros(y.shape)], axis=0)
            excused = (np.abs(x - y) <= spread) | np.any(kinds, axis=0)
        if not excused[apart].all():
            return False
    return True


def compare_outcomes(
    ours: Outcome, theirs: Outcome, least: float = 0.0
) -> tuple[str, str, str] | None:
    """In what two outcomes differ: a field, with what each is; None where in nothing.

    Args:
        ours: what we have.
        theirs: what the other library has.
        least: what tolerances are at least relative to.
    """
    if "skipped" in ours or "skipped" in theirs:
        return None
    if "error" in ours or "error" in theirs:
        if "error" not in ours:
            return "accepted", told(ours), told(theirs)
        if "error" not in theirs:
            return "refused", told(ours), told(theirs)
        if same_class(ours["error"], theirs["error"]):
            return None
        return "error", told(ours), told(theirs)
    # Classes of named tuples are private in JAX.
    if ours["structure"] != re.sub(r"\b_(?=[A-Z])", "", theirs["structure"]):
        return "structure", told(ours), told(theirs)
    pairs = list(zip(ours["leaves"], theirs["leaves"], strict=True))
    fields: dict[str, Callable[[dict[str, Any]], str]] = {
        "dtype": lambda leaf: str(leaf["value"].dtype),
        "weak type": lambda leaf: f"{leaf['value'].dtype} weak={leaf['weak_type']}",
        "shape": lambda leaf: str(list(leaf["value"].shape)),
    }
    for field, get in fields.items():
        for a, b in pairs:
            if get(a) != get(b):
                return field, get(a), get(b)
    apart = [~close(a["value"], b["value"], least) for a, b in pairs]
    if not any(different.any() for different in apart):
        return None
    return "value", told_where(ours, apart), told_where(theirs, apart)


def failed_as_a_whole(side: list[Outcome]) -> bool:
    """Whether there is one error, which is no operation's."""
    return len(side) == 1 and "error" in side[0] and "operation" not in side[0]


def compare(
    program: Program, mode: str, ours: list[Outcome], theirs: list[Outcome]
) -> list[tuple[int, Difference]]:
    """The differences of a program in one mode, without those that follow from others."""
    if not ours or not theirs:  # nothing to map, or no gradient to take
        return []
    operations = program["operations"]
    if mode == "grad" and not (failed_as_a_whole(ours) or failed_as_a_whole(theirs)):
        unequal = _failed_alone(program, ours, theirs)
        if unequal:
            return unequal
    differing: set[str] = set()
    found = []
    if mode != "grad" and len(ours) == len(theirs) == len(operations):
        names = [operation["result"] for operation in operations]
        functions = [operation["function"] for operation in operations]
    else:  # gradients, or a failure as a whole
        names = functions = [mode] * max(len(ours), len(theirs))
    if len(ours) != len(theirs):  # one failed as a whole, or more of it than of the other
        whole = min(len(ours), len(theirs))
        first = [
            next((o for o in side if ("error" in o) == (len(side) == whole)), side[0])
            for side in (ours, theirs)
        ]
        pairs = [(0, first[0], first[1])]
    else:
        pairs = [(i, one, other) for i, (one, other) in enumerate(zip(ours, theirs, strict=True))]
    for number, a, b in pairs:
        if functions is not names and not differing.isdisjoint(operands(operations[number])):
            differing.add(names[number])
            continue
        different = compare_outcomes(a, b, LEAST.get(mode, LEAST_ELSEWHERE))
        if different:
            differing.add(names[number])
            call, dtypes = "", ""
            if functions is not names:
                call = operation_lines(operations[number])[-1]
                dtypes = _dtypes(program, theirs, operations[number])
            one = Difference(mode, names[number], functions[number], *different, call, dtypes)
            found.append((number, one))
    return found


def _dtypes(program: Program, theirs: list[Outcome], operation: dict[str, Any]) -> str:
    """The dtypes of an operation's operands, as far as these are arrays."""
    known = {entry["name"]: entry["dtype"] for entry in program["inputs"]}
    for other, outcome in zip(program["operations"], theirs, strict=True):
        for leaf in outcome.get("leaves", ())[:1]:
            known[other["result"]] = str(leaf["value"].dtype)
    return " ".join(known[name] for name in operands(operation) if name in known)


def _failed_alone(
    program: Program, ours: list[Outcome], theirs: list[Outcome]
) -> list[tuple[int, Difference]]:
    """The operations that have gradients in one library alone: those of the others differ then."""
    failed = [
        {outcome["operation"]: told(outcome) for outcome in side if "operation" in outcome}
        for side in (ours, theirs)
    ]
    gone = [set(side) for side in failed]
    found = []
    for operation in program["operations"]:
        name = operation["result"]
        skipped = [not names.isdisjoint(operands(operation)) for names in gone]
        for names, skips in zip(gone, skipped, strict=True):
            names.update([name] * skips)
        texts = [side.get(name, "a gradient") for side in failed]
        if not any(skipped) and (name in failed[0]) != (name in failed[1]):
            field = "refused" if name in failed[0] else "accepted"
            found.append((0, Difference("grad", name, operation["function"], field, *texts)))
    return found
