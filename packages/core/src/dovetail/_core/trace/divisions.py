"""How the results of a primitive are divided over the explicit axes of a mesh.

A primitive says which dimensions of its operands and results belong together, by giving them equal
labels, as in a sum of Einstein's. Dimensions of one label are divided alike: an operand that is not
divided there takes part as it is, and if two are divided over different axes the program is
ambiguous, which is an error. In the programs that transposition makes, which no one wrote, such a
dimension is not divided instead.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, Final, NamedTuple, NoReturn

from dovetail._core.base.errors import ShapeError, ShardingTypeError
from dovetail._core.base.restoring import Restoring
from dovetail._core.base.source import describe
from dovetail._core.ir.abstract_mesh import AbstractMesh
from dovetail._core.ir.avals import ShapedArray
from dovetail._core.ir.division import Axes, Dims, Division, division

__all__ = [
    "Labels",
    "asked_of",
    "carried_divisions",
    "divided_alike",
    "divided_results",
    "first_alike",
    "gathered_labels",
    "is_lenient",
    "labels_along",
    "leading_labels",
    "lenient",
    "merged",
    "own_labels",
    "refuse_rows",
    "refuse_unruled",
    "reshaped",
    "settled",
    "sliced_labels",
]

#: What dimensions that belong together have in common; None for one that stands alone.
Label = Hashable


class Labels(NamedTuple):
    """The labels of the dimensions of operands and results.

    Attributes:
        operands: for each operand, the label of each dimension. A dimension without one (None) must
            not be divided. A dimension whose label no result has may be divided: its parts are
            reduced.
        results: the same for each result. A dimension without a label is not divided.
        ambiguous: labels that no result has, of dimensions of which one operand alone may be
            divided: otherwise the sum over the parts can be left in several ways.
        why: what the primitive does along dimensions without a label, for the message.
    """

    operands: Sequence[Sequence[Label]]
    results: Sequence[Sequence[Label]]
    ambiguous: frozenset[Label] = frozenset()
    why: str = "needs all of"


class _Leniency(threading.local):
    allowed = False
    used = False


_leniency: Final = _Leniency()


class lenient(Restoring[Any]):
    """A scope in which ambiguous dimensions are not divided, instead of an error.

    Args:
        allowed: False for a scope inside of such a one in which they are errors.
    """

    __slots__ = ()

    def __init__(self, allowed: bool = True) -> None:
        super().__init__(is_lenient, partial(_allow, allowed), _allow)


def _allow(allowed: bool) -> None:
    _leniency.allowed = allowed


def is_lenient() -> bool:
    """Whether ambiguous dimensions are not divided in this thread now."""
    return _leniency.allowed


def settled() -> bool:
    """Whether no dimension had to be given up since the last question."""
    used, _leniency.used = _leniency.used, False
    return not used


def own_labels(aval: Any) -> tuple[Label, ...]:
    """A label for each dimension."""
    return tuple(range(aval.ndim))


def leading_labels(avals: Sequence[Any], results: Sequence[Any], inner: int = 2) -> Labels:
    """The labels of an operation on the last dimensions of each operand, for all leading ones."""

    def labels(aval: Any) -> Sequence[Label]:
        return [d if d < outer else None for d in range(aval.ndim)]

    shape = max((a.shape for a in avals), key=len)
    outer = max(len(shape) - inner, 0)

    def of_result(aval: Any) -> Sequence[Label]:
        return [i if i < outer and n == shape[i] else None for i, n in enumerate(aval.shape)]

    return Labels(
        list(map(labels, avals)), list(map(of_result, results)), why="computes with all of"
    )


def divided_alike(avals: Sequence[Any], results: Sequence[Any]) -> Labels:
    """The labels of operands that are combined element by element; scalars are repeated."""
    operands = [range(-a.ndim, 0) for a in avals]
    return Labels(operands, [range(-aval.ndim, 0) for aval in results])


def first_alike(avals: Sequence[Any], results: Sequence[Any], why: str = "needs all of") -> Labels:
    """The labels of an operation for each position along the first dimensions that all have.

    Args:
        avals: the avals of the operands.
        results: the avals of the results.
        why: what the operation does along the other dimensions, as in `Labels`.
    """
    common = min(a.ndim for a in (*avals, *results))

    def labels(aval: Any) -> Sequence[Label]:
        return [d if d < common else None for d in range(aval.ndim)]

    return Labels(list(map(labels, avals)), list(map(labels, results)), why=why)


def labels_along(avals: Sequence[Any], results: Sequence[Any], dimension: int, why: str) -> Labels:
    """The labels of an operation along one dimension, which must be whole.

    Args:
        avals: the avals of operands of one rank.
        results: the avals of results of that rank.
        dimension: the dimension.
        why: what the operation does along it, as in `Labels`.
    """
    own = [None if d == dimension else d for d in range(results[0].ndim)]
    return Labels([own] * len(avals), [own] * len(results), why=why)


def sliced_labels(avals: Sequence[Any], results: Sequence[Any]) -> Labels:
    """The labels of slices. Where one element is left along a dimension, all devices have it."""
    array, part = avals[0], results[0]
    own = range(-array.ndim, 0)
    kept = [
        d if n > 1 or n == array.shape[d] else None for d, n in zip(own, part.shape, strict=True)
    ]
    return Labels([own, *[()] * (len(avals) - 1)], [kept])


def gathered_labels(avals: Sequence[Any], results: Sequence[Any]) -> Labels:
    """The labels of an operation on operands divided in any way, which makes whole results."""
    operands = [[(i, d) for d in range(getattr(a, "ndim", 0))] for i, a in enumerate(avals)]
    return Labels(operands, [[None] * getattr(a, "ndim", 0) for a in results])


def mesh_of(name: str, avals: Sequence[Any]) -> AbstractMesh:
    """The mesh over which operands are divided."""
    found: AbstractMesh | None = None
    for aval in avals:
        if aval.division is None:
            continue
        mesh = aval.division.mesh
        if found is not None and mesh.shape_tuple != found.shape_tuple:
            raise ShardingTypeError(
                f"{name}: operands are divided over different meshes, {_shown(found)} and "
                f"{_shown(mesh)}{_line()}. Move one of them with dovetail.device_put(x, sharding)"
            )
        found = mesh
    assert found is not None
    return found


def _shown(mesh: AbstractMesh) -> str:
    return ", ".join(f"{name!r}: {size}" for name, size in mesh.shape_tuple)


def divided_results(
    name: str, labels: Labels, avals: Sequence[Any], results: Sequence[Any]
) -> list[Division | None]:
    """How the results of a primitive are divided.

    Args:
        name: the primitive's name, for messages.
        labels: which dimensions belong together.
        avals: the avals of the operands.
        results: the avals of the results.

    Raises:
        ShardingTypeError: it is ambiguous, or an operand is divided along a dimension where it must
            not be.
    """
    mesh = mesh_of(name, avals)
    sizes = dict(mesh.shape_tuple)
    kept = {label for one in labels.results for label in one}
    given: dict[Label, tuple[Axes, int, int]] = {}
    lost: set[Label] = set()
    for number, (aval, own) in enumerate(zip(avals, labels.operands, strict=True)):
        if aval.division is None:
            continue
        for d, (axes, label) in enumerate(zip(aval.division.dims, own, strict=True)):
            if not axes:
                continue
            if label is None:
                if not _given_up():
                    _refuse_whole(name, labels.why, avals, number, d)
                continue
            previous = given.get(label)
            if previous is None:
                given[label] = (axes, number, d)
            elif label in labels.ambiguous:
                if not _given_up():
                    _refuse_sum(name, avals, previous, number, d)
            elif previous[0] != axes and label in kept:
                if not _given_up():
                    _refuse_different(name, avals, previous, number, d)
                lost.add(label)
    found: list[Division | None] = []
    for own, result in zip(labels.results, results, strict=True):
        if type(result) is not ShapedArray:
            found.append(None)
            continue
        dims: list[Axes] = []
        for size, label in zip(result.shape, own, strict=True):
            axes, number, d = given.get(label, ((), 0, 0)) if label is not None else ((), 0, 0)
            if label in lost:
                axes = ()
            if axes:
                parts = prod(sizes[axis] for axis in axes)
                if size % parts:
                    if not _given_up():
                        _refuse_uneven(name, avals, number, d, result.shape, parts)
                    axes = ()
            if any(axis in other for axis in axes for other in dims):
                if not _given_up():
                    _refuse_twice(name, avals, given, own, axes)
                axes = ()
            dims.append(axes)
        found.append(division(mesh, dims))
    return found


def asked_of(name: str, wanted: Division, result: Any) -> Division | None:
    """How a result is divided that is asked to be divided in a given way.

    Raises:
        ShapeError: it has another number of dimensions, or one cannot be divided evenly.
    """
    if len(wanted.dims) != result.ndim:
        raise ShapeError(
            f"{name}: out_sharding is {wanted.spec}, for an array of {len(wanted.dims)} "
            f"dimensions, and the result is {result}"
        )
    for d, n in enumerate(result.shape):
        parts = wanted.parts(d)
        if n % parts:
            raise ShapeError(
                f"{name}: dimension {d} of the result, {result}, cannot be divided evenly over "
                f"{_names(wanted.dims[d])}: {n} is no multiple of {parts}. Pad it to "
                f"{-(-n // parts) * parts}, or leave the dimension whole: its entry in "
                f"out_sharding, {wanted.spec}, would be None"
            )
    return division(wanted.mesh, wanted.dims)


def refuse_unruled(name: str, avals: Sequence[Any]) -> None:
    """Raise since a primitive does not say how its results are divided, unless in a derivative.

    Raises:
        ShardingTypeError: always, but in programs that transposition makes.
    """
    if _given_up():
        return
    number = next(i for i, a in enumerate(avals) if a.division is not None)
    _raise(
        name,
        f"it does not say how its results are divided, and {_operand(avals, number)}",
        f"Make it whole before: {_resharded(avals, number, range(avals[number].ndim))}",
    )


def _given_up() -> bool:
    """Whether a dimension can be given up; notes that one is."""
    if not _leniency.allowed:
        return False
    _leniency.used = True
    return True


def _line() -> str:
    where = describe()
    return f" (at {where})" if where else ""


def _operand(avals: Sequence[Any], number: int) -> str:
    which = "its operand" if len(avals) == 1 else f"operand {number}"
    return f"{which} is {avals[number]}"


def _resharded(avals: Sequence[Any], number: int, whole: Sequence[int]) -> str:
    """What to write so that an operand is not divided along some dimensions."""
    own = avals[number].division
    dims: Dims = tuple([() if d in whole else axes for d, axes in enumerate(own.dims)])
    entries = ", ".join(repr(e) for e in _entries(dims))
    return f"dovetail.reshard(x, P({entries}))"


def _entries(dims: Dims) -> list[Any]:
    return [None if not axes else axes[0] if len(axes) == 1 else axes for axes in dims]


def _raise(name: str, what: str, advice: str) -> NoReturn:
    raise ShardingTypeError(f"{name}: {what}{_line()}. {advice}")


def _names(axes: Axes) -> str:
    return ("the axis " if len(axes) == 1 else "the axes ") + ", ".join(map(repr, axes))


def _refuse_whole(name: str, why: str, avals: Sequence[Any], number: int, d: int) -> NoReturn:
    axes = avals[number].division.dims[d]
    _raise(
        name,
        f"{_operand(avals, number)}, divided along dimension {d} over {_names(axes)}, and it {why} "
        "that dimension",
        f"Make it whole before: {_resharded(avals, number, (d,))}",
    )


def _refuse_sum(
    name: str, avals: Sequence[Any], first: tuple[Axes, int, int], number: int, d: int
) -> NoReturn:
    axes, other, e = first
    _raise(
        name,
        f"both operands are divided along the dimensions that are summed over, {e} of "
        f"{avals[other]} over {_names(axes)} and {d} of {avals[number]} over "
        f"{_names(avals[number].division.dims[d])}, so that it is ambiguous how the result is "
        "divided",
        f"Say it, with out_sharding=P(...), or make one whole before: "
        f"{_resharded(avals, number, (d,))}",
    )


def _refuse_different(
    name: str, avals: Sequence[Any], first: tuple[Axes, int, int], number: int, d: int
) -> NoReturn:
    axes, other, e = first
    _raise(
        name,
        f"dimension {e} of operand {other}, {avals[other]}, is divided over {_names(axes)}, and "
        f"dimension {d} of operand {number}, {avals[number]}, which goes with it, over "
        f"{_names(avals[number].division.dims[d])}",
        f"Divide one of them as the other is, such as {_like(avals, number, d, axes)}",
    )


def _like(avals: Sequence[Any], number: int, d: int, axes: Axes) -> str:
    dims = list(avals[number].division.dims)
    dims = [tuple([a for a in own if a not in axes]) for own in dims]
    dims[d] = axes
    entries = ", ".join(repr(e) for e in _entries(tuple(dims)))
    return f"dovetail.reshard(x, P({entries})) of operand {number}"


def _refuse_uneven(
    name: str, avals: Sequence[Any], number: int, d: int, shape: Sequence[int], parts: int
) -> NoReturn:
    axes = avals[number].division.dims[d]
    _raise(
        name,
        f"{_operand(avals, number)}, divided along dimension {d} over {_names(axes)} into {parts} "
        f"parts, and a result of shape {tuple(shape)} cannot be divided so",
        f"Make it whole before: {_resharded(avals, number, (d,))}",
    )


def _refuse_twice(
    name: str,
    avals: Sequence[Any],
    given: Mapping[Label, tuple[Axes, int, int]],
    own: Sequence[Label],
    axes: Axes,
) -> NoReturn:
    both = [given[label] for label in own if label in given and set(given[label][0]) & set(axes)]
    (_, i, d), (_, j, e) = both[:2]
    _raise(
        name,
        f"two dimensions of the result would be divided over {_names(axes)}: those that come from "
        f"dimension {d} of operand {i}, {avals[i]}, and from dimension {e} of operand {j}, "
        f"{avals[j]}",
        f"Make one whole before, such as {_resharded(avals, j, (e,))} of operand {j}, or say how "
        "the result is divided, with out_sharding=P(...)",
    )


def reshaped(name: str, aval: Any, shape: Sequence[int]) -> Division | None:
    """How an array is divided that has the same elements in row-major order.

    Sizes of both shapes are matched from the left. Of dimensions that are merged the first ones may
    be divided; where one is split, its axes go to the new dimensions in their order.
    """
    own = aval.division
    assert own is not None
    sizes = own.sizes
    dims: list[Axes] = []
    i = j = 0
    old = aval.shape
    while i < len(old) or j < len(shape):
        # The next group: as few dimensions as have the same number of elements.
        first, start = i, j
        a = b = 1
        while i < len(old) or j < len(shape):
            if i == first and i < len(old):
                a, i = a * old[i], i + 1
            elif j == start and j < len(shape):
                b, j = b * shape[j], j + 1
            elif a < b and i < len(old):
                a, i = a * old[i], i + 1
            elif b < a and j < len(shape):
                b, j = b * shape[j], j + 1
            else:
                break
        # Dimensions of size one go with nothing.
        group, new = range(first, i), range(start, j)
        merged = _merged_axes(old, own.dims, group)
        spread = None if merged is None else _spread_axes(merged, [shape[k] for k in new], sizes)
        if spread is None:
            if not _given_up():
                d = next(k for k in group if own.dims[k])
                _raise(
                    name,
                    f"{_operand([aval], 0)}, divided along dimension {d} over "
                    f"{_names(own.dims[d])}, and elements of one part would be in several parts of "
                    f"the shape {tuple(shape)}",
                    f"Make it whole before, {_resharded([aval], 0, (d,))}, or say how the result "
                    "is divided, with lax.reshape(x, shape, out_sharding=P(...))",
                )
            spread = [()] * len(new)
        dims.extend(spread)
    return division(own.mesh, dims)


def _merged_axes(shape: Sequence[int], dims: Dims, group: Sequence[int]) -> Axes | None:
    """The axes over which merged dimensions are divided together; None if that cannot be."""
    merged: list[Hashable] = []
    whole = False
    for k in group:
        if dims[k] and whole:
            return None
        merged.extend(dims[k])
        whole = whole or (shape[k] > 1 and not dims[k])
    return tuple(merged)


def _spread_axes(axes: Axes, shape: Sequence[int], sizes: Mapping[Any, int]) -> list[Axes] | None:
    """The axes of the dimensions into which one is split; None if they do not fit."""
    found: list[Axes] = []
    rest = list(axes)
    for n in shape:
        own: list[Hashable] = []
        while rest and n % sizes[rest[0]] == 0 and n > 1:
            n //= sizes[rest[0]]
            own.append(rest.pop(0))
        found.append(tuple(own))
        if rest and n > 1:
            return None  # the next axis would have to divide what is left of this dimension
    return None if rest else found


def merged(name: str, what: str, aval: Any, *others: Division | None) -> Division | None:
    """How a value is divided that a loop carries, or that one of several branches returns.

    What is not divided goes with what is.

    Args:
        name: the primitive's name, for messages.
        what: a phrase for the value.
        aval: its aval, with the first division.
        others: how it is divided otherwise.

    Raises:
        ShardingTypeError: a dimension is divided in different ways.
    """
    found: Division | None = aval.division
    for other in others:
        if other is None or other is found:
            continue
        if found is None:
            found = other
            continue
        dims = [a or b for a, b in zip(found.dims, other.dims, strict=True)]
        apart = any(a and b and a != b for a, b in zip(found.dims, other.dims, strict=True))
        named = [axis for axes in dims for axis in axes]
        if apart or len(set(named)) < len(named):
            if _given_up():
                continue
            _raise(
                name,
                f"{what} is {aval.with_division(found)} at first, and "
                f"{aval.with_division(other)} after that",
                f"Divide it in one way: dovetail.reshard(x, {other.spec})",
            )
        found = division(found.mesh, dims)
    return found


def carried_divisions(
    name: str, carry: Sequence[Any], taken: Sequence[Division | None], given: Sequence[Any]
) -> list[Division | None]:
    """How the values are divided that a loop carries.

    Args:
        name: the primitive's name, for messages.
        carry: the avals at first.
        taken: how the body takes them.
        given: the avals that it returns then.

    Raises:
        ShardingTypeError: a dimension is divided in different ways.
    """
    return [
        merged(name, f"value {number} that is carried", aval.with_division(own), after.division)
        if type(aval) is ShapedArray
        else None
        for number, (aval, own, after) in enumerate(zip(carry, taken, given, strict=True))
    ]


def refuse_rows(name: str, avals: Sequence[Any], number: int) -> None:
    """Raise for an array that is divided along the dimension that a loop runs over.

    Raises:
        ShardingTypeError: always, but in programs that transposition makes.
    """
    if not _given_up():
        _refuse_whole(name, "takes one row after another along", avals, number, 0)
