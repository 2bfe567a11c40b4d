"""Rules that say along which dimensions a function can be divided over devices."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dovetail._core.base.counting import counted
from dovetail._core.base.errors import ShapeError
from dovetail._core.base.records import record

#: Stands for the leading dimensions of an array that a rule does not name.
BATCHING: Final = "…"

Shape = tuple[int, ...]
#: For each dimension of each array, the numbers of its factors.
Mappings = list[list[list[int]]]


def _checked(factor: Any, what: str) -> str:
    if not isinstance(factor, str):
        raise ValueError(
            f"{what} takes names of factors, which are strings, got {factor!r} of type "
            f"{type(factor).__name__}"
        )
    if not re.fullmatch(r"[A-Za-z]\w*", factor, re.ASCII):
        raise ValueError(
            f"{what}: the name of a factor begins with a letter, and has letters, digits and "
            f"underscores; got {factor!r}"
        )
    return factor


def _is_batching(entry: object) -> bool:
    return isinstance(entry, str) and re.fullmatch(BATCHING + r"\d*", entry) is not None


class CompoundFactor(tuple[str, ...]):
    """A dimension that is the product of several factors, the first one varying slowest.

    Args:
        factors: their names, at least two.

    Raises:
        ValueError: there are fewer, or one is not a name.

    Example:
        >>> from dovetail.experimental.custom_partitioning import CompoundFactor
        >>> CompoundFactor("i", "j")
        ('i', 'j')
    """

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError(
                f"CompoundFactor takes at least two names, got {factors}; a dimension of one "
                "factor is its name"
            )
        return super().__new__(cls, [_checked(factor, "CompoundFactor") for factor in factors])


class ArrayMapping(tuple["str | CompoundFactor", ...]):
    """The factors of the dimensions of one array.

    Args:
        dim_mappings: for each dimension the name of a factor, or a `CompoundFactor`. The first
            entry may be `BATCHING`, with a number after it or without: all dimensions before those
            that are named, the same ones in all arrays that have this entry.

    Raises:
        ValueError: an entry is something else, or `BATCHING` is not the first.

    Example:
        >>> from dovetail.experimental.custom_partitioning import ArrayMapping, BATCHING
        >>> ArrayMapping(BATCHING, "i")
        ('…', 'i')
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings: str | CompoundFactor) -> ArrayMapping:
        for number, entry in enumerate(dim_mappings):
            if _is_batching(entry):
                if number:
                    raise ValueError(
                        "ArrayMapping: an ellipsis stands for leading dimensions, so it comes "
                        f"first; got {dim_mappings}"
                    )
            elif not isinstance(entry, CompoundFactor):
                _checked(entry, "ArrayMapping")
        return super().__new__(cls, dim_mappings)


@record
class FactorTable:
    """A rule for arrays of known shapes, in the numbers of factors.

    Attributes:
        sizes: the size of each factor.
        operands: the factors of operands.
        results: those of results.
        reduction: factors that are summed over, or reduced in another way.
        need_replication: factors that cannot be divided.
        permutation: factors along which parts have to be exchanged.
    """

    sizes: list[int]
    operands: Mappings
    results: Mappings
    reduction: list[int]
    need_replication: list[int]
    permutation: list[int]


class SdyShardingRule:
    """Along which dimensions a function can be divided over devices, and which belong together.

    Dimensions with one name are divided alike.

    Args:
        operand_mappings: for each operand, the factors of its dimensions.
        result_mappings: the same for each result.
        reduction_factors: factors that the function sums over, or reduces in another way.
        need_replication_factors: factors along which operands and results have to be whole.
        permutation_factors: factors along which devices have to exchange parts.
        factor_sizes: the sizes of factors that are never a whole dimension, by name.

    Raises:
        ValueError: a size is missing or unknown, or a factor is not in the rule or in two of the
            sets.
        TypeError: a size is not an integer, or a mapping is not an `ArrayMapping`.

    Example:
        >>> from dovetail.experimental.custom_partitioning import ArrayMapping, SdyShardingRule
        >>> SdyShardingRule(
        ...     (ArrayMapping("i", "j"), ArrayMapping("j", "k")),
        ...     (ArrayMapping("i", "k"),),
        ...     reduction_factors=("j",),
        ... )
        SdyShardingRule((('i', 'j'), ('j', 'k')), (('i', 'k'),), {} reduction_factors=('j',))
    """

    __slots__ = (
        "factor_sizes",
        "need_replication_factors",
        "operand_mappings",
        "permutation_factors",
        "reduction_factors",
        "result_mappings",
    )

    operand_mappings: tuple[ArrayMapping, ...]
    """The factors of the dimensions of each operand."""
    result_mappings: tuple[ArrayMapping, ...]
    """The factors of the dimensions of each result."""
    reduction_factors: tuple[str, ...]
    """Factors that the function reduces."""
    need_replication_factors: tuple[str, ...]
    """Factors along which arrays have to be whole."""
    permutation_factors: tuple[str, ...]
    """Factors along which devices exchange parts."""
    factor_sizes: Mapping[str, int]
    """The sizes of factors that are never a whole dimension."""

    def __init__(
        self,
        operand_mappings: tuple[ArrayMapping, ...],
        result_mappings: tuple[ArrayMapping, ...],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> None:
        self.operand_mappings = _mappings(operand_mappings, "operand_mappings")
        self.result_mappings = _mappings(result_mappings, "result_mappings")
        whole, parts = set[str](), set[str]()
        for mapping in (*self.operand_mappings, *self.result_mappings):
            for entry in mapping:
                if isinstance(entry, CompoundFactor):
                    parts.update(entry)
                elif not _is_batching(entry):
                    whole.add(entry)
        for name, size in factor_sizes.items():
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise TypeError(f"SdyShardingRule: the size of {name} is an integer, got {size!r}")
            if name in whole:
                raise ValueError(
                    f"SdyShardingRule: {name} is a whole dimension somewhere, which says its size; "
                    f"leave out {name}={size}"
                )
            if name not in parts:
                raise ValueError(
                    f"SdyShardingRule: no dimension has the factor {name}, and {name}={size} is "
                    "given"
                )
        for name in sorted(parts - whole - factor_sizes.keys()):
            raise ValueError(
                f"SdyShardingRule: {name} is never a whole dimension, so its size has to be given: "
                f"{name}=..."
            )
        self.factor_sizes = dict(factor_sizes)
        seen = set[str]()
        sets = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
        }
        for what, names in sets.items():
            if not isinstance(names, (tuple, list)):
                raise ValueError(f"SdyShardingRule: {what} is a tuple of names, got {names!r}")
            for name in names:
                if name not in whole | parts:
                    raise ValueError(
                        f"SdyShardingRule: no dimension has the factor {name!r}, which {what} names"
                    )
                if name in seen:
                    raise ValueError(
                        f"SdyShardingRule: the factor {name} is in {what}, and named twice there "
                        "or in another of reduction_factors, need_replication_factors and "
                        "permutation_factors; it can be in one"
                    )
                seen.add(name)
        self.reduction_factors = tuple(reduction_factors)
        self.need_replication_factors = tuple(need_replication_factors)
        self.permutation_factors = tuple(permutation_factors)

    def _key(self) -> tuple[Any, ...]:
        return (
            self.operand_mappings,
            self.result_mappings,
            self.reduction_factors,
            self.need_replication_factors,
            self.permutation_factors,
            tuple(sorted(self.factor_sizes.items())),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SdyShardingRule):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        sets = ("reduction_factors", "need_replication_factors", "permutation_factors")
        named = "".join(f" {name}={getattr(self, name)}" for name in sets if getattr(self, name))
        return (
            f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, "
            f"{self.factor_sizes}{named})"
        )

    def table(self, operands: Sequence[Shape], results: Sequence[Shape], what: str) -> FactorTable:
        """The rule for arrays of some shapes.

        Args:
            operands: the shapes of the operands.
            results: those of the results.
            what: a phrase for the function, for messages.

        Raises:
            ValueError: they do not fit.
        """
        return _Table(self, what).table(operands, results)


def _mappings(given: Any, what: str) -> tuple[ArrayMapping, ...]:
    if isinstance(given, ArrayMapping) or not isinstance(given, (tuple, list)):
        raise TypeError(
            f"SdyShardingRule: {what} is a tuple with an ArrayMapping for each array, got {given!r}"
        )
    for mapping in given:
        if not isinstance(mapping, ArrayMapping):
            raise TypeError(f"SdyShardingRule: {what} holds ArrayMappings, got {mapping!r}")
    return tuple(given)


class _Table:
    """Finds the sizes of factors from those of dimensions."""

    def __init__(self, rule: SdyShardingRule, what: str) -> None:
        self.rule = rule
        self.what = f"the sharding rule of {what}"
        self.batching: dict[str, Shape] = {}
        self.sizes: dict[str, int] = dict(rule.factor_sizes)

    def table(self, operands: Sequence[Shape], results: Sequence[Shape]) -> FactorTable:
        sides = (
            ("operand", self.rule.operand_mappings, operands),
            ("result", self.rule.result_mappings, results),
        )
        dims: list[list[list[tuple[str, ...]]]] = []
        for side, mappings, shapes in sides:
            if len(mappings) != len(shapes):
                raise ShapeError(
                    f"{self.what} is for {counted(len(mappings), side)}, and the function has "
                    f"{len(shapes)}; arrays in trees count each"
                )
            dims.append(
                [
                    self._expanded(mapping, shape, f"{side} {number}")
                    for number, (mapping, shape) in enumerate(zip(mappings, shapes, strict=True))
                ]
            )
        for (side, _, shapes), arrays in zip(sides, dims, strict=True):
            for number, (array, shape) in enumerate(zip(arrays, shapes, strict=True)):
                self._check_products(array, shape, f"{side} {number}")
        numbers: dict[str, int] = {}
        for factor in self._in_order(dims):
            numbers.setdefault(factor, len(numbers))
        taken, given = (
            [[[numbers[f] for f in dim] for dim in array] for array in arrays] for arrays in dims
        )
        rule = self.rule
        return FactorTable(
            [self.sizes[factor] for factor in numbers],
            taken,
            given,
            *[
                sorted(numbers[factor] for factor in names)
                for names in (
                    rule.reduction_factors,
                    rule.need_replication_factors,
                    rule.permutation_factors,
                )
            ],
        )

    @staticmethod
    def _in_order(dims: Any) -> Iterator[str]:
        return (factor for arrays in dims for array in arrays for dim in array for factor in dim)

    def _expanded(self, mapping: ArrayMapping, shape: Shape, which: str) -> list[tuple[str, ...]]:
        """The factors of each dimension; sizes of those that are whole dimensions are noted."""
        entries = list(mapping)
        leading: list[str] = []
        if entries and _is_batching(entries[0]):
            group = str(entries.pop(0))
            count = len(shape) - len(entries)
            if count >= 0:
                known = self.batching.setdefault(group, shape[:count])
                if known != shape[:count]:
                    raise ShapeError(
                        f"{self.what}: the ellipsis stands for dimensions of the sizes {known} in "
                        f"one array, and for {shape[:count]} in {which}, of shape {shape}"
                    )
                leading = [f"{group} {number}" for number in range(count)]
        if len(leading) + len(entries) != len(shape):
            raise ShapeError(
                f"{self.what}: {which} has {len(entries)} dimension{'s' * (len(entries) != 1)} "
                f"there, {mapping}, and is an array of shape {shape}"
            )
        dims: list[tuple[str, ...]] = []
        for number, (entry, size) in enumerate(zip((*leading, *entries), shape, strict=True)):
            if isinstance(entry, CompoundFactor):
                dims.append(tuple(entry))
                continue
            dims.append((entry,))
            if self.sizes.setdefault(entry, size) != size:
                raise ShapeError(
                    f"{self.what}: the factor {entry} has the size {self.sizes[entry]} in one "
                    f"array, and {size} in dimension {number} of {which}, of shape {shape}"
                )
        used = [factor for dim in dims for factor in dim]
        for factor in used:
            if used.count(factor) > 1:
                raise ShapeError(
                    f"{self.what}: the factor {factor} occurs twice in {which}, {mapping}; an "
                    "array has each factor once"
                )
        return dims

    def _check_products(self, array: list[tuple[str, ...]], shape: Shape, which: str) -> None:
        for number, (dim, size) in enumerate(zip(array, shape, strict=True)):
            product = math.prod(self.sizes[factor] for factor in dim)
            if product != size:
                described = " * ".join(f"{factor} of {self.sizes[factor]}" for factor in dim)
                raise ShapeError(
                    f"{self.what}: dimension {number} of {which} is {described}, which is "
                    f"{product}, and has the size {size}"
                )


_TOKEN: Final = re.compile(r"\s*(?:(\.\.\.)(\d*)|([A-Za-z]\w*)|([(),])|(->))", re.ASCII)


def parsed_rule(rule: str, **keywords: Any) -> SdyShardingRule:
    """A rule that is written like that of an einsum: ``"i j, j k -> i k"``.

    Args:
        rule: the factors of the dimensions of each operand and, after an arrow, of each result.
            ``(i j)`` is a compound factor, ``...`` stands for leading dimensions.
        keywords: the keyword arguments of `SdyShardingRule`.

    Raises:
        ValueError: it is not such a text.
    """

    def wrong(why: str) -> ValueError:
        return ValueError(
            f"the sharding rule {rule!r} {why}; write the factors of operands, an arrow, and those "
            "of results, such as 'i j, j k -> i k' or '... (a b) -> ... a b'"
        )

    sides: list[list[ArrayMapping]] = [[]]
    array: list[str | CompoundFactor] = []
    compound: list[str] | None = None
    text, place = rule.rstrip(), 0
    separated = False
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise wrong(f"has an unexpected character {text[place:].lstrip()[0]!r}")
        place = token.end()
        dots, number, name, sign, arrow = token.groups()
        if compound is not None and (dots or arrow or sign in ("(", ",")):
            raise wrong("has brackets that are nested, not closed, or with other signs than names")
        if dots:
            if array:
                raise wrong("has an ellipsis that is not the first of its array")
            array.append(BATCHING + number)
        elif name:
            (array if compound is None else compound).append(name)
        elif sign == "(":
            compound = []
        elif sign == ")":
            if compound is None:
                raise wrong("closes a bracket that is not open")
            if len(compound) < 2:
                raise wrong("has brackets with fewer than two factors")
            array.append(CompoundFactor(*compound))
            compound = None
        elif sign == ",":
            sides[-1].append(ArrayMapping(*array))
            array, separated = [], True
        else:
            if len(sides) == 2:
                raise wrong("has two arrows")
            if array or separated or text[: token.start()].strip():
                sides[-1].append(ArrayMapping(*array))
            array, separated = [], False
            sides.append([])
    if compound is not None:
        raise wrong("has brackets that are nested, not closed, or with other signs than names")
    if len(sides) == 1:
        raise wrong("has no arrow")
    sides[-1].append(ArrayMapping(*array))
    return SdyShardingRule(tuple(sides[0]), tuple(sides[1]), **keywords)
