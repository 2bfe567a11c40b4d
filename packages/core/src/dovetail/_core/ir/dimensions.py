"""Sizes of dimensions that are known only when a program is called: expressions of variables.

A size is a Python int or a `SymbolicDimension`, a polynomial in dimension variables with integer
coefficients, whose factors may also be ``floordiv``, ``mod``, ``max`` and ``min`` of such sizes.
Expressions are kept in a normal form, so that equal ones hash alike; one without variables is an
int. What is known of the variables stands in their `Scope`.

Type checkers take all sizes for ints: they stand where ints do, and code that treats symbolic ones
in another way asks `is_symbolic_dim`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final, Self, TypeAlias

from dovetail._core.base import source
from dovetail._core.base.errors import InconclusiveDimensionOperation
from dovetail._core.ir.monomials import (
    Factor,
    Monomial,
    Operation,
    Terms,
    monomial_key,
    product_of,
    quotient_of,
    shown_terms,
    size_key,
)

__all__ = [
    "Scope",
    "Size",
    "SymbolicDimension",
    "as_size",
    "is_symbolic_dim",
    "known_at_most",
    "largest_known",
    "max_dim",
    "min_dim",
    "surely_less",
]


_python: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
}


class Scope:
    """What dimension variables have in common: what is known of them.

    Variables of one name are the same variable only within one scope.

    Args:
        least: the least value that variables have.
    """

    def __init__(self, least: int = 1) -> None:
        where = source.user_frame()
        #: The least value of its variables.
        self.least = least
        #: Where it was made, for messages.
        self.place = "" if where is None else f" made at {where.place}"
        #: Sizes that are never negative.
        self.constraints: list[SymbolicDimension] = []
        #: What these have been written as.
        self.written: dict[SymbolicDimension, str] = {}
        #: Multiples of monomials, and what they are replaced by.
        self.rules: list[tuple[Monomial, int, Size]] = []
        #: Where to note comparisons that are not decided, by line, and to go on as if each variable
        #: were `_EXAMPLE`; None where they are errors.
        self.undecided: list[tuple[str, str]] | None = None
        #: Bounds that have been found.
        self.bounds: dict[SymbolicDimension, tuple[float, float]] = {}


class SymbolicDimension:
    """A size that depends on dimension variables; made by `dovetail.export.symbolic_shape`.

    It takes part in arithmetic (``+ - * // % **``, `divmod`) with integers and other sizes of its
    scope; ``max`` and ``min`` are `dovetail.core.max_dim` and `min_dim`. With floats and arrays,
    and in functions that take arrays, it is a scalar array of the default integer dtype.

    Sizes of arrays are less than 2**31, as numbers of that order are compared with them.

    ``==`` is whether two sizes are the same expression. That sizes which are not might still be
    equal for some values of the variables is not taken into account. An order that the constraints
    do not decide is an error.
    """

    __slots__ = ("_hash", "scope", "terms")

    _hash: int

    #: NumPy leaves operators to this class.
    __array_ufunc__ = None

    terms: Terms
    scope: Scope

    def __new__(cls, terms: Terms, scope: Scope) -> Self:
        self = object.__new__(cls)
        self.terms = terms
        self.scope = scope
        self._hash = hash(terms)
        return self

    # Comparison

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is SymbolicDimension
            and self._hash == other._hash
            and self.scope is other.scope
            and self.terms == other.terms
        )

    def _compare(self, other: Any, symbol: str) -> Any:
        size = _operand(other)
        if size is None:
            return NotImplemented
        difference = self - size
        if symbol in ("<", "<="):
            difference = -difference
        least = 1 if symbol in ("<", ">") else 0
        if type(difference) is not SymbolicDimension:
            return difference >= least
        lower, upper = bounds_of(difference)
        if lower >= least:
            return True
        if upper < least:
            return False
        if type(size) is int and abs(size) >= _MOST:
            return (size < 0) == (symbol in (">", ">="))
        question = (
            f"whether {self} {symbol} {size} depends on the sizes of the dimensions "
            f"{_listed(difference)}, and this comparison needs an answer that holds for all of them"
        )
        if self.scope.undecided is not None:
            self.scope.undecided.append((source.describe(), question))
            example: int = difference.evaluate(dict.fromkeys(difference.variables(), _EXAMPLE))
            return example >= least
        raise _inconclusive(
            question,
            "If the answer is the same for all sizes that will come, say so by a constraint: "
            f"symbolic_shape(..., constraints=[{f'{self} >= {size}'!r}]) or the like. To choose "
            "the larger or smaller of two sizes write dovetail.core.max_dim or min_dim; to choose "
            "in the program, convert the size with dovetail.numpy.asarray and use lax.cond or "
            "dovetail.numpy.where",
        )

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, ">=")  # type: ignore[no-any-return]

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, ">")  # type: ignore[no-any-return]

    def __le__(self, other: Any) -> bool:
        return self._compare(other, "<=")  # type: ignore[no-any-return]

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, "<")  # type: ignore[no-any-return]

    # Conversion

    def _no_number(self, what: str) -> InconclusiveDimensionOperation:
        return _inconclusive(
            f"the size {self} of a dimension is known only when the exported program is called, "
            f"and {what} needs a number now",
            "In a computation write dovetail.numpy.asarray(size), which is an array; for a loop "
            "over the dimension, lax.scan or lax.fori_loop",
        )

    def __int__(self) -> int:
        raise self._no_number("int()")

    def __index__(self) -> int:
        raise self._no_number("what it is used for")

    def __float__(self) -> float:
        raise self._no_number("float()")

    def dimension_as_value(self) -> Any:
        """The size as a scalar array, inside of a function that is traced."""
        return dimension_value(self)

    __dovetail_array__ = dimension_as_value

    def __repr__(self) -> str:
        return "".join(shown_terms(self.terms))

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (SymbolicDimension, (self.terms, self.scope))

    # Arithmetic

    def __add__(self, other: Any) -> Any:
        size = _operand(other)
        if size is None:
            return _with_array(operator.add, self, other)
        return _sum(((self, 1), (size, 1)), _common_scope(self, size))

    def __radd__(self, other: Any) -> Any:
        return _reflected(operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        size = _operand(other)
        if size is None:
            return _with_array(operator.sub, self, other)
        return _sum(((self, 1), (size, -1)), _common_scope(self, size))

    def __rsub__(self, other: Any) -> Any:
        return _reflected(operator.sub, other, self)

    def __neg__(self) -> Any:
        return SymbolicDimension(tuple((m, -k) for m, k in self.terms), self.scope)

    def __pos__(self) -> Self:
        return self

    def __mul__(self, other: Any) -> Any:
        size = _operand(other)
        if size is None:
            return _with_array(operator.mul, self, other)
        scope = _common_scope(self, size)
        products: dict[Monomial, int] = {}
        for m, k in self.terms:
            for n, j in terms_of(size):
                product = product_of(m, n)
                products[product] = products.get(product, 0) + k * j
        return _normal(products, scope)

    def __rmul__(self, other: Any) -> Any:
        return _reflected(operator.mul, other, self)

    def __pow__(self, power: Any) -> Any:
        if _operand(power) is None:
            return _with_array(operator.pow, self, power)
        if type(power) is SymbolicDimension or operator.index(power) < 0:
            return dimension_value(self) ** _array_of(power)
        result: Any = 1
        for _ in range(operator.index(power)):
            result = self * result
        return result

    def __rpow__(self, base: Any) -> Any:
        return base ** dimension_value(self)

    def __floordiv__(self, other: Any) -> Any:
        size = _operand(other)
        if size is None:
            return _with_array(operator.floordiv, self, other)
        return _divided(self, size, _common_scope(self, size))[0]

    def __rfloordiv__(self, other: Any) -> Any:
        if _operand(other) is None:
            return _with_array(operator.floordiv, other, self)
        return _divided(_operand(other), self, self.scope)[0]

    def __mod__(self, other: Any) -> Any:
        size = _operand(other)
        if size is None:
            return _with_array(operator.mod, self, other)
        return _divided(self, size, _common_scope(self, size))[1]

    def __rmod__(self, other: Any) -> Any:
        if _operand(other) is None:
            return _with_array(operator.mod, other, self)
        return _divided(_operand(other), self, self.scope)[1]

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return dimension_value(self) / _array_of(other)

    def __rtruediv__(self, other: Any) -> Any:
        return _array_of(other) / dimension_value(self)

    # What it is made of

    def variables(self) -> frozenset[str]:
        """The names of the dimension variables in it."""
        return frozenset(_variables(self))

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The size, or a size in other variables, for given values of the variables."""
        return fold(self, values.__getitem__, lambda k: k, _by_python)


Size: TypeAlias = int | SymbolicDimension


def _by_python(name: str, left: Any, right: Any) -> Any:
    if name == "max":
        return max_dim(left, right)
    if name == "min":
        return min_dim(left, right)
    if name == "floordiv" or name == "mod":
        if type(right) is int and not right:
            raise ZeroDivisionError("a size is divided by zero")
        return _python[name](left, right)
    return left + right if name == "add" else left * right


def fold(
    size: Size,
    variable: Callable[[str], Any],
    constant: Callable[[int], Any],
    apply: Callable[[str, Any, Any], Any],
) -> Any:
    """An expression computed by other means.

    Args:
        size: the expression.
        variable: the value of a variable.
        constant: that of an integer.
        apply: combines two values by ``"add"``, ``"mul"``, ``"floordiv"``, ``"mod"``, ``"max"`` or
            ``"min"``.
    """
    if type(size) is not SymbolicDimension:
        return constant(operator.index(size))

    def factor_value(factor: Factor) -> Any:
        if type(factor) is str:
            return variable(factor)
        assert isinstance(factor, Operation)
        left, right = (fold(operand, variable, constant, apply) for operand in factor.operands)
        return apply(factor.name, left, right)

    def term_value(monomial: Monomial, coefficient: int) -> Any:
        factors = [factor_value(factor) for factor, power in monomial for _ in range(power)]
        if not factors or coefficient != 1:
            factors.append(constant(coefficient))
        return reduce(lambda x, y: apply("mul", x, y), factors)

    return reduce(lambda x, y: apply("add", x, y), [term_value(m, k) for m, k in size.terms])


def _variables(size: Size) -> Iterator[str]:
    if type(size) is SymbolicDimension:
        for monomial, _ in size.terms:
            for factor, _ in monomial:
                if type(factor) is str:
                    yield factor
                elif type(factor) is Operation:
                    for operand in factor.operands:
                        yield from _variables(operand)


def _listed(size: SymbolicDimension) -> str:
    return ", ".join(sorted(size.variables()))


def _inconclusive(what: str, advice: str) -> InconclusiveDimensionOperation:
    where = source.describe()
    error = InconclusiveDimensionOperation(f"{what} (used at {where})\n{advice}")
    error.what, error.where = what, where
    return error


# Values in programs. The primitive is made by a later layer.

_value_maker: Callable[[SymbolicDimension], Any]


def set_dimension_value(maker: Callable[[SymbolicDimension], Any]) -> None:
    """Install what makes an array of a size. For the primitive that does."""
    global _value_maker
    _value_maker = maker


def dimension_value(size: SymbolicDimension) -> Any:
    """The size as a scalar array."""
    return _value_maker(size)


def _array_of(value: Any) -> Any:
    return dimension_value(value) if type(value) is SymbolicDimension else value


def _with_array(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    other = right if type(left) is SymbolicDimension else left
    if not (isinstance(other, (float, complex)) or hasattr(other, "dtype")):
        return NotImplemented
    return operation(_array_of(left), _array_of(right))


def _reflected(operation: Callable[[Any, Any], Any], left: Any, right: SymbolicDimension) -> Any:
    size = _operand(left)
    if size is None:
        return _with_array(operation, left, right)
    if operation is operator.sub:
        return -right + size
    return operation(right, size)


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is an expression of dimension variables.

    Args:
        p: a size.

    Example:
        >>> from dovetail import export
        >>> [export.is_symbolic_dim(n) for n in export.symbolic_shape("a, 3")]
        [True, False]
    """
    return type(p) is SymbolicDimension


def as_size(value: Any) -> int:
    """A size as it stands in shapes: a Python int, or a symbolic dimension.

    Raises:
        TypeError: it is neither, nor an integer of another kind.
    """
    return value if type(value) is SymbolicDimension else operator.index(value)  # type: ignore[return-value]


def largest_known(sizes: Iterable[Any]) -> int:
    """The largest of those sizes that are known, 0 if none is: for the choice of a dtype.

    Positions along symbolic dimensions fit an int32.
    """
    return max([n for n in sizes if type(n) is not SymbolicDimension], default=0)


def known_at_most(size: Any, limit: int) -> bool:
    """Whether a size is known, and not larger than a limit: for the choice of a method."""
    return type(size) is not SymbolicDimension and size <= limit


def surely_less(x: Any, y: Any) -> bool:
    """Whether a size is less than another for all values of the variables."""
    return bounds_of(y - x)[0] >= 1


def _operand(value: Any) -> Any:
    """A size that takes part in arithmetic; None for other values."""
    if type(value) is int or type(value) is SymbolicDimension:
        return value
    if hasattr(value, "dtype") and getattr(value, "ndim", 0) == 0 and hasattr(value, "item"):
        # An integer scalar of NumPy's; arrays and tracers stay arrays.
        if type(value).__module__ == "numpy" and value.dtype.kind in "iu":
            return int(value)
        return None
    return int(value) if isinstance(value, int) else None


def _common_scope(x: SymbolicDimension, y: Size) -> Scope:
    if type(y) is SymbolicDimension and y.scope is not x.scope:
        raise ValueError(
            f"the sizes {x} and {y} are of different scopes: that of {x},{x.scope.place} "
            f"and that of {y},{y.scope.place}. Make all dimension variables of a program by "
            "one call of symbolic_shape, or pass scope=x.scope to the others"
        )
    return x.scope


def terms_of(size: Size) -> Terms:
    """The terms of a size; none for zero."""
    if type(size) is SymbolicDimension:
        return size.terms
    return (((), operator.index(size)),) if size else ()


def _sum(parts: Sequence[tuple[Size, int]], scope: Scope) -> Size:
    sums: dict[Monomial, int] = {}
    for size, factor in parts:
        for m, k in terms_of(size):
            sums[m] = sums.get(m, 0) + k * factor
    return _normal(sums, scope)


def _normal(sums: Mapping[Monomial, int], scope: Scope) -> Size:
    """The size that is a sum of monomials with coefficients, replaced as the scope says."""
    for monomial, coefficient, replacement in scope.rules:
        for m, k in sums.items():
            rest = quotient_of(m, monomial) if k and k % coefficient == 0 else None
            if rest is not None:
                others = {n: j for n, j in sums.items() if n != m}
                own = _made({rest: k // coefficient}, scope)
                return _normal(others, scope) + replacement * own
    return _made(sums, scope)


def _made(sums: Mapping[Monomial, int], scope: Scope) -> Size:
    kept = {m: k for m, k in sums.items() if k}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    terms = sorted(kept.items(), key=lambda item: monomial_key(item[0]), reverse=True)
    return SymbolicDimension(tuple(terms), scope)


def of_variable(name: str, scope: Scope) -> Size:
    """The size that a variable stands for."""
    return of_factor(name, scope)


def of_factor(factor: Factor, scope: Scope) -> Size:
    """The size that a variable or an operation stands for."""
    return _normal({((factor, 1),): 1}, scope)


def _divided(dividend: Size, divisor: Size, scope: Scope) -> tuple[Size, Size]:
    """Quotient, rounded down, and remainder."""
    if type(divisor) is int and divisor == 0:
        raise ZeroDivisionError(f"the size {dividend} is divided by zero")
    whole, rest = _split(dividend, divisor, scope)
    if rest == 0:
        return whole, 0
    if type(rest) is int and type(divisor) is int:
        return whole + rest // divisor, rest % divisor
    lowest, highest = bounds_of(rest)
    bounded = type(divisor) is int and lowest > -_LARGE and highest < _LARGE
    if bounded and lowest // divisor == highest // divisor:
        known = int(lowest // divisor)
        return whole + known, rest - known * divisor
    if bounds_of(divisor)[0] > 0 and lowest >= 0 and bounds_of(divisor - rest)[0] >= 1:
        return whole, rest
    operands = (rest, divisor)
    quotient = of_factor(Operation("floordiv", operands), scope)
    return whole + quotient, of_factor(Operation("mod", operands), scope)


#: About what an int32 holds. Where a size is compared with more, it is taken to be less.
_MOST: Final = (1 << 31) - 64
_LARGE: Final = 1 << 62
_EXAMPLE: Final = 24


def _split(dividend: Size, divisor: Size, scope: Scope) -> tuple[Size, Size]:
    """A multiple of the divisor that is a part of the dividend, divided by it, and the rest."""
    (lead, coefficient), *others = terms_of(divisor)
    whole: dict[Monomial, int] = {}
    rest: Size = dividend
    if not others:
        kept: dict[Monomial, int] = {}
        for m, k in terms_of(dividend):
            whole_part = k % coefficient == 0 or (not lead and coefficient > 0)
            part = quotient_of(m, lead) if whole_part else None
            if part is None:
                kept[m] = k
                continue
            whole[part] = k // coefficient
            if k % coefficient:
                kept[m] = k % coefficient
        return _normal(whole, scope), _normal(kept, scope)
    # Division of polynomials: of use only if nothing is left.
    for _ in range(16):
        if rest == 0:
            return _normal(whole, scope), 0
        m, k = terms_of(rest)[0]
        part = quotient_of(m, lead)
        if part is None or k % coefficient:
            break
        whole[part] = whole.get(part, 0) + k // coefficient
        rest = rest - _made({part: k // coefficient}, scope) * divisor
    return 0, dividend


def _extreme(name: str, x: Any, y: Any) -> Any:
    left: Any = as_size(x)
    right: Any = as_size(y)
    if type(left) is int and type(right) is int:
        return max(left, right) if name == "max" else min(left, right)
    symbolic = left if type(left) is SymbolicDimension else right
    other = right if symbolic is left else left
    scope = _common_scope(symbolic, other)
    difference = left - right
    lower, upper = bounds_of(difference)
    if lower >= 0:
        return left if name == "max" else right
    if upper <= 0:
        return right if name == "max" else left
    first, second = sorted((left, right), key=size_key, reverse=True)
    if type(first) is SymbolicDimension and type(second) is SymbolicDimension:
        first, second = second, first
    return of_factor(Operation(name, (first, second)), scope)


def max_dim(d1: Any, d2: Any) -> int:
    """The larger of two sizes, which may be symbolic.

    Args:
        d1: a size.
        d2: a size.

    Example:
        >>> from dovetail import core, export
        >>> a, b = export.symbolic_shape("a, b")
        >>> core.max_dim(a, b), core.max_dim(a, 1), core.max_dim(2, 3)
        (max(a, b), a, 3)
    """
    return as_size(_extreme("max", d1, d2))


def min_dim(d1: Any, d2: Any) -> int:
    """The smaller of two sizes, which may be symbolic.

    Args:
        d1: a size.
        d2: a size.

    Example:
        >>> from dovetail import core, export
        >>> (a,) = export.symbolic_shape("a")
        >>> core.min_dim(a, 4), core.min_dim(a, 1)
        (min(a, 4), 1)
    """
    return as_size(_extreme("min", d1, d2))


def bounds_of(size: Size) -> tuple[float, float]:
    """The least and the greatest value that a size may have, as far as they are found."""
    if not isinstance(size, SymbolicDimension):
        return size, size
    known = size.scope.bounds.get(size)
    if known is None:
        known = size.scope.bounds[size] = (
            _lower_bound(size, _DEPTH),
            -_lower_bound(-size, _DEPTH),
        )
    return known


#: How many monomials are replaced one after another by what bounds them.
_DEPTH: Final = 6


def _lower_bound(size: Size, depth: int) -> float:
    """The greatest lower bound that is found.

    A monomial is replaced by each size that bounds it on the side that counts, and what comes of
    that is bounded in the same way: so do the bounds of ``a - b`` follow from ``a >= b``.
    """
    if not isinstance(size, SymbolicDimension):
        return size
    scope = size.scope
    best: float = sum(k * _interval(m, scope)[0 if k > 0 else 1] if m else k for m, k in size.terms)
    if not depth:
        return best
    unknown = {False: "max", True: "min"}
    for m, k in size.terms:
        if not m:
            continue
        rest = size - _made({m: k}, scope)
        for factor, power in m:
            # One of two sizes, it is not known which: the bound holds for both.
            if power == 1 and type(factor) is Operation and factor.name == unknown[k > 0]:
                others = _without(m, factor, scope) * k
                both = [rest + others * operand for operand in factor.operands]
                return max(best, min(_lower_bound(case, depth - 1) for case in both))
        replacements = list(_bounding(m, k > 0, scope))
        if not replacements:
            continue
        bound = _interval(m, scope)[0 if k > 0 else 1]
        if abs(bound) < _LARGE:
            replacements.append((1, int(bound)))
        for multiple, other in replacements:
            found = _lower_bound(rest * multiple + other * k, depth - 1)
            best = max(best, -(-found // multiple) if abs(found) < _LARGE else found)
        break
    return best


def _without(monomial: Monomial, factor: Factor, scope: Scope) -> Size:
    rest = quotient_of(monomial, ((factor, 1),))
    assert rest is not None
    return _made({rest: 1}, scope)


def _bounding(monomial: Monomial, below: bool, scope: Scope) -> Iterator[tuple[int, Size]]:
    """Sizes that a positive multiple of a monomial is not below, or not above."""
    for constraint in scope.constraints:
        for m, k in constraint.terms:
            rest = quotient_of(monomial, m) if m and (k > 0) == below else None
            if rest is not None and _interval(rest, scope)[0] >= 0:
                others = constraint - _made({m: k}, scope)
                yield abs(k), others * _made({rest: -1 if below else 1}, scope)
    for factor, _ in monomial:
        if type(factor) is str:
            continue
        assert isinstance(factor, Operation)
        left, right = factor.operands
        rest = quotient_of(monomial, ((factor, 1),))
        if rest is None or _interval(rest, scope)[0] < 0:
            continue
        others = _made({rest: 1}, scope)
        if factor.name in ("max", "min"):
            if (factor.name == "max") == below:
                yield 1, left * others
                yield 1, right * others
            continue
        least = bounds_of(right)[0]
        if least <= 0:
            continue
        if factor.name == "mod":
            if not below:
                yield 1, (right - 1) * others
            continue
        if type(right) is int:
            yield right, ((left - right + 1) if below else left) * others
        elif not below and bounds_of(left)[0] >= 0:
            yield 1, left * others
        if type(right) is SymbolicDimension and len(right.terms) == 1:
            ((divisor, coefficient),) = right.terms
            more = quotient_of(rest, divisor)
            if more is not None:
                own = _made({more: 1}, scope)
                yield coefficient, ((left - right + 1) if below else left) * own


def _interval(monomial: Monomial, scope: Scope) -> tuple[float, float]:
    """Bounds of a monomial from those of its factors alone."""
    lower: float = 1
    upper: float = 1
    for factor, power in monomial:
        low: float = scope.least
        high: float = _INFINITE
        if isinstance(factor, Operation):
            low, high = _interval_of(factor)
        for _ in range(power):
            corners = [_product(x, y) for x in (lower, upper) for y in (low, high)]
            lower, upper = min(corners), max(corners)
        if not power % 2:
            lower = max(lower, 0)
    return lower, upper


_INFINITE: Final = float("inf")


def _product(x: float, y: float) -> float:
    return x * y if x and y else 0


def _interval_of(operation: Operation) -> tuple[float, float]:
    (low, high), (least, most) = map(bounds_of, operation.operands)
    if operation.name == "max":
        return max(low, least), max(high, most)
    if operation.name == "min":
        return min(low, least), min(high, most)
    if operation.name == "mod":
        if least > 0:
            return 0, min(most - 1, high if low >= 0 else _INFINITE)
        return (least + 1, 0) if most < 0 else (-_INFINITE, _INFINITE)
    if least <= 0 <= most:
        return -_INFINITE, _INFINITE
    corners = [_quotient(x, y) for x in (low, high) for y in (least, most)]
    return min(corners), max(corners)


def _quotient(x: float, y: float) -> float:
    if abs(y) == _INFINITE:
        return 0 if x * y >= 0 or x == 0 else -1
    return x // y if abs(x) < _INFINITE else x * (1 if y > 0 else -1)


def symbolic_dim_bounds(dimension: Any) -> tuple[float, float]:
    """The bounds that are known of a size, from its scope's constraints and its form.

    Args:
        dimension: a size.

    Returns:
        The lower and the upper bound, integers or infinities.

    Raises:
        TypeError: it is no size.

    Example:
        >>> from dovetail import export
        >>> a, b = export.symbolic_shape("a, b", constraints=("a >= b", "a <= 8"))
        >>> export.symbolic_dim_bounds(a - b), export.symbolic_dim_bounds(a % 3)
        ((0, 7), (0, 2))
    """
    return bounds_of(as_size(dimension))
