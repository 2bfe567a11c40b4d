"""Products of dimension variables and of operations on sizes, and sums of them, as tuples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

__all__ = [
    "Factor",
    "Monomial",
    "Operation",
    "Terms",
    "monomial_key",
    "product_of",
    "quotient_of",
    "shown_terms",
    "size_key",
]


class Operation(NamedTuple):
    """A factor that is no variable: ``floordiv``, ``mod``, ``max`` or ``min`` of two sizes."""

    name: str
    operands: tuple[Any, Any]

    def __str__(self) -> str:
        return f"{self.name}({self.operands[0]}, {self.operands[1]})"


Factor: TypeAlias = str | Operation
#: Factors with their powers, sorted; empty for the constant.
Monomial: TypeAlias = tuple[tuple[Factor, int], ...]
#: Monomials with their coefficients, the leading one first.
Terms: TypeAlias = tuple[tuple[Monomial, int], ...]


def _factor_key(factor: Factor) -> tuple[Any, ...]:
    if type(factor) is str:
        return (0, factor)
    assert isinstance(factor, Operation)
    return (1, factor.name, *map(size_key, factor.operands))


def size_key(size: Any) -> tuple[Any, ...]:
    """What sizes are ordered by, numbers before expressions."""
    terms = getattr(size, "terms", None)
    return (0, size) if terms is None else (1, tuple((monomial_key(m), k) for m, k in terms))


def monomial_key(monomial: Monomial) -> tuple[Any, ...]:
    """What monomials are ordered by: operations lead, then the degree, then the letters."""
    operations = sum(power for factor, power in monomial if type(factor) is not str)
    degree = sum(power for _, power in monomial)
    letters = [_factor_key(factor) for factor, power in reversed(monomial) for _ in range(power)]
    return operations, degree, letters


def product_of(m: Monomial, n: Monomial) -> Monomial:
    """The product of two monomials."""
    if not m or not n:
        return m or n
    powers = dict(m)
    for factor, power in n:
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _factor_key(item[0])))


def quotient_of(m: Monomial, n: Monomial) -> Monomial | None:
    """The monomial `m` divided by `n`; None if `n` is no part of it."""
    powers = dict(m)
    for factor, power in n:
        left = powers.get(factor, 0) - power
        if left < 0:
            return None
        powers[factor] = left
    return tuple((factor, power) for factor, power in powers.items() if power)


def shown_terms(terms: Terms) -> Iterator[str]:
    """The parts of the text of a sum, such as ``2*a + 1``."""
    for number, (monomial, coefficient) in enumerate(terms):
        sign = "- " if coefficient < 0 else ""
        yield (f" {sign or '+ '}" if number else sign)
        size = abs(coefficient)
        factors = [f"{f}^{p}" if p > 1 else str(f) for f, p in monomial]
        yield "*".join([str(size), *factors] if size != 1 or not factors else factors)
