"""Elements of a vector that are put or added at positions known at run time, by a kernel.

XLA's loop waits for each position's memory, and where integers are counted, for the count before.
"""

from __future__ import annotations

from typing import Any, Final

from dovetail.extend import LoweringTable, dtypes
from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernels

TABLE: Final = LoweringTable()

#: Fewer updates take no longer than the kernel's call.
WORTH_A_KERNEL: Final = 2**14
#: Bytes of a vector that the nearer caches do not hold.
FAR: Final = 2**20
#: Integers at fewer positions are added in tables side by side, as in `native/scattering.cc`.
SMALL_TABLE: Final = 2**12

#: No position is less.
_LEAST: Final = -(2**63)
_POSITIONS: Final = frozenset({"int32", "int64"})
_ADDED: Final = frozenset({"int32", "int64", "uint32", "uint64", "float32", "float64"})


@TABLE.rule("scatter")
def scatter(context: Any, *values: Any, **params: Any) -> Any:
    """A vector with elements that were put; NotImplemented for others, or without kernel."""
    aval = context.avals_in[0]
    bits = dtypes.itemsize_bits(aval.dtype)
    if params["update_jaxpr"] is not None or bits not in (8, 16, 32, 64):
        return NotImplemented
    return _by_kernel(context, *values, adds=0, **params)


@TABLE.rule("scatter-add")
def scatter_add(context: Any, *values: Any, **params: Any) -> Any:
    """A vector with elements that were added; NotImplemented for others, or without kernel."""
    if dtype_name(context.avals_in[0].dtype) not in _ADDED:
        return NotImplemented
    return _by_kernel(context, *values, adds=1, **params)


def _by_kernel(
    context: Any,
    x: Any,
    positions: Any,
    updates: Any,
    *,
    adds: int,
    dimension_numbers: Any,
    mode: Any,
    **promises: Any,
) -> Any:
    aval, places, updated = context.avals_in
    (out,) = context.avals_out
    in_tables = adds and aval.dtype.kind in "iu" and aval.size <= SMALL_TABLE
    if (
        any(a.symbolic for a in (aval, places, updated))
        or aval.ndim != 1
        or dtypes.kind_of(aval.dtype) not in ("b", "i", "u", "f", "c")
        or not aval.size
        or updated.size < WORTH_A_KERNEL
        or not (in_tables or aval.size * aval.dtype.itemsize >= FAR)
        or dimension_numbers.update_window_dims
        or dimension_numbers.inserted_window_dims != (0,)
        or dtype_name(places.dtype) not in _POSITIONS
        or mode.name == "CLIP"
        or context.divides
        or not context.runs_once()
        or not kernels.usable(context)
    ):
        return NotImplemented
    positions, least, wraps = _given(positions, aval.size)
    updates = _repeated(updates) or updates
    return kernels.call(
        context,
        kernels.SCATTER,
        [x, positions, updates],
        [out],
        0,
        aliases={0: 0},
        adds=adds,
        least=least,
        wraps=int(wraps),
    )[0]


def _given(positions: Any, size: int) -> tuple[Any, int, bool]:
    """What positions are computed of, which are then not written to memory.

    Returns:
        The positions as they were given, the least that they are made, and whether negative ones
        are counted from the end, of so many.
    """
    if _is(positions, "broadcast_in_dim") and positions.owner.operands[0].type.rank:
        positions = positions.owner.operands[0]
    wraps = False
    if _is(positions, "select"):
        condition, shifted, given = positions.owner.operands
        if _is(condition, "compare") and _is(shifted, "add"):
            direction = str(condition.owner.attributes["comparison_direction"])
            (small, zero), (moved, whole) = condition.owner.operands, shifted.owner.operands
            wraps = (
                "LT" in direction
                and (small, moved) == (given, given)
                and (_number(zero), _number(whole)) == (0, size)
            )
            positions = given if wraps else positions
    if _is(positions, "maximum"):
        given, least = positions.owner.operands
        if (number := _number(least)) is not None:
            return given, number, wraps
    return positions, _LEAST, wraps


def _is(value: Any, name: str) -> bool:
    return bool(getattr(value.owner, "name", "") == f"stablehlo.{name}")


def _repeated(value: Any) -> Any:
    """The scalar that all elements of a value are; None if there is none."""
    if _is(value, "broadcast_in_dim") and not value.owner.operands[0].type.rank:
        return value.owner.operands[0]
    return None


def _number(value: Any) -> int | None:
    """The integer that all elements of a value are, if that is known."""
    scalar = _repeated(value)
    if scalar is None or not _is(scalar, "constant"):
        return None
    return int(scalar.owner.attributes["value"][0])
