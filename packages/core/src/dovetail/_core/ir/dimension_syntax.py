"""Symbolic shapes and constraints as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from dovetail._core.base.counting import counted
from dovetail._core.base.tracebacks import bounded
from dovetail._core.ir.dimensions import (
    Scope,
    Size,
    SymbolicDimension,
    as_size,
    bounds_of,
    max_dim,
    min_dim,
    of_factor,
    of_variable,
    terms_of,
)
from dovetail._core.ir.monomials import Operation, quotient_of

__all__ = ["SymbolicScope", "symbolic_shape"]


@bounded
class SymbolicScope(Scope):
    """What dimension variables have in common: the constraints on them.

    Variables of one name are the same variable only within one scope.

    Args:
        constraints_str: constraints such as ``"a >= b"``, ``"a <= 8"``, ``"mod(a, 4) == 0"``. A
            single term stands on the left of ``==``, and is replaced by the right side wherever it
            occurs.

    Raises:
        ValueError: a constraint cannot be parsed, or cannot hold.

    Example:
        >>> from dovetail import export
        >>> scope = export.SymbolicScope(("a >= 4",))
        >>> (a,) = export.symbolic_shape("a", scope=scope)
        >>> a >= 2
        True
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str) or not all(
            isinstance(text, str) for text in constraints_str
        ):
            raise ValueError(
                "constraints is a sequence of strings, such as ('a >= b', 'mod(a, 4) == 0'); got "
                f"{constraints_str!r:.80}"
            )
        super().__init__()
        for text in constraints_str:
            left, relation, right = _Parser(text, self, "constraint").constraint()
            if relation == "==":
                self._add_equality(text, left, right)
            else:
                self._add_order(text, left - right if relation == ">=" else right - left)
            self.bounds.clear()
        #: The constraints, as they were given.
        self.texts = tuple(constraints_str)

    def _add_order(self, text: str, difference: Size) -> None:
        if bounds_of(difference)[1] < 0:
            raise ValueError(f"the constraint {text!r} cannot hold{self._together()}")
        if type(difference) is SymbolicDimension:
            self.constraints.append(difference)
            self.written[difference] = text

    def _add_equality(self, text: str, left: Size, right: Size) -> None:
        difference = left - right
        lower, upper = bounds_of(difference)
        if not lower <= 0 <= upper:
            raise ValueError(f"the constraint {text!r} cannot hold{self._together()}")
        if type(difference) is not SymbolicDimension:
            return
        if type(left) is not SymbolicDimension or len(left.terms) != 1:
            raise ValueError(
                f"the constraint {text!r} is unfit for replacement: the left side of == is a "
                "single term, such as 'a', '2*a*b' or 'mod(a, 4)'"
            )
        ((monomial, coefficient),) = left.terms
        if any(quotient_of(m, monomial) for m, _ in terms_of(right)):
            raise ValueError(
                f"the constraint {text!r} is unfit for replacement: its right side holds the left "
                "one; write it with what is replaced on the left alone"
            )
        self.constraints += [difference, -difference]
        self.written[difference] = self.written[-difference] = text
        self.rules.append((monomial, coefficient, right))
        ((factor, power), *others) = monomial
        if others or power > 1 or coefficient > 1 or type(factor) is not Operation:
            return
        dividend, divisor = factor.operands
        if factor.name == "floordiv" and type(divisor) is int and divisor > 0:
            rest = dividend - right * divisor
            for bound in (rest, divisor - 1 - rest):
                if type(bound) is SymbolicDimension:
                    self.constraints.append(bound)
        if factor.name == "mod" and type(right) is int:
            # What mod says, floordiv says too: n * floordiv(e, n) is e without the remainder.
            product = of_factor(Operation("floordiv", (dividend, divisor)), self) * divisor
            if type(product) is SymbolicDimension and len(product.terms) == 1:
                ((found, k),) = product.terms
                self.rules.append((found, k, dividend - right))

    def _together(self) -> str:
        return " together with those before it" if self.constraints else ""

    def __repr__(self) -> str:
        return f"SymbolicScope({self.texts!r})"


_TOKEN: Final = re.compile(r"\s*(\.\.\.|>=|<=|==|[A-Za-z_]\w*|\d+|\S)")
_functions: Final[dict[str, Any]] = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": max_dim,
    "min": min_dim,
}


class _Parser:
    """Reads a symbolic shape, or a constraint.

    Args:
        text: the text.
        scope: that of its variables.
        what: what the text is, for messages.
        like: sizes to take in the place of ``_`` and ``...``.
    """

    def __init__(
        self, text: str, scope: Scope, what: str, like: Sequence[int | None] | None = None
    ) -> None:
        self.text, self.scope, self.what, self.like = text, scope, what, like
        self.tokens = [(found.group(1), found.start(1)) for found in _TOKEN.finditer(text)]
        self.at = 0

    def fail(self, expected: str) -> NoReturn:
        token, place = (*self.tokens, ("the end", len(self.text)))[self.at]
        raise ValueError(
            f"the symbolic {self.what} {self.text!r} has {token!r} at column {place}, where "
            f"{expected} is expected. Sizes are sums of products of integers, names of variables, "
            "and floordiv, mod, max and min of two sizes, such as '2*a + floordiv(b, 2) - 1'; "
            "a^2 is a power"
        )

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.peek()
        if token not in wanted:
            return ""
        self.at += 1
        return token

    def expect(self, token: str) -> None:
        if not self.take(token):
            self.fail(repr(token))

    def constraint(self) -> tuple[Size, str, Size]:
        left = self.sum()
        relation = self.take(">=", "<=", "==") or self.fail("'>=', '<=' or '=='")
        right = self.sum()
        if self.peek():
            self.fail("the end")
        return left, relation, right

    def shape(self) -> tuple[Size, ...]:
        sizes: list[Size] = []
        enclosed = bool(self.take("("))
        while self.peek() and self.peek() != ")":
            if self.take("..."):
                sizes += self._others(len(sizes))
                self.take(",")
                if self.peek() not in ("", ")"):
                    self.fail("the end after ...")
                break
            sizes.append(self._dimension(len(sizes)))
            if not self.take(","):
                break
        if enclosed:
            self.expect(")")
        if self.peek():
            self.fail("',' or the end")
        if self.like is not None and len(sizes) != len(self.like):
            raise ValueError(
                f"the symbolic shape {self.text!r} has {counted(len(sizes), 'dimension')}, and "
                "the array it "
                f"is for {len(self.like)}: {tuple(self.like)}; ... stands for all others"
            )
        return tuple(sizes)

    def _others(self, number: int) -> list[Size]:
        if self.like is None:
            raise ValueError(
                f"the symbolic shape {self.text!r} has ..., which stands for the sizes of an "
                "array: give them as `like`"
            )
        return [self._known(i) for i in range(number, len(self.like))]

    def _known(self, number: int) -> Size:
        like = self.like
        size = None if like is None or number >= len(like) else like[number]
        if size is None:
            raise ValueError(
                f"dimension {number} of the symbolic shape {self.text!r} is the size of an array, "
                "which is not known: give it as `like`, or name a variable"
            )
        return as_size(size)

    def _dimension(self, number: int) -> Size:
        if self.take("_"):
            return self._known(number)
        size = self.sum()
        like = self.like
        if type(size) is int and like is not None and number < len(like):
            known = like[number]
            if known is not None and known != size:
                raise ValueError(
                    f"the symbolic shape {self.text!r} has {size} as dimension {number}, which is "
                    f"{known} in the array it is for, of shape {tuple(like)}"
                )
        return size

    def sum(self) -> Size:
        total: Size = 0
        sign = -1 if self.take("-") else 1
        while True:
            total = total + self._product() * sign
            operator = self.take("+", "-")
            if not operator:
                return total
            sign = -1 if operator == "-" else 1

    def _product(self) -> Size:
        product = self._power()
        while self.take("*"):
            product = product * self._power()
        return product

    def _power(self) -> Size:
        sign = -1 if self.take("-") else 1
        base = self._atom()
        if self.take("^"):
            if not self.peek().isdigit():
                self.fail("a number")
            base = base ** self._atom()
        return base * sign

    def _atom(self) -> Size:
        token = self.peek()
        if token.isdigit():
            self.at += 1
            return int(token)
        if not (token.isidentifier() and token != "_"):
            self.fail("a number or a name")
        self.at += 1
        if token not in _functions or not self.take("("):
            return of_variable(token, self.scope)
        left = self.sum()
        self.expect(",")
        right = self.sum()
        if type(right) is int and right == 0 and token in ("floordiv", "mod"):
            raise ValueError(f"the symbolic {self.what} {self.text!r} divides by zero")
        self.expect(")")
        result: Size = _functions[token](left, right)
        return result


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[int, ...]:
    """A shape in which some sizes are expressions of dimension variables.

    Args:
        shape_spec: sizes separated by commas: integers, names of variables, and expressions of them
            such as ``"2*a + 1"``, ``"floordiv(a, 2)"``, ``"max(a, b)"``. ``_`` is the size that
            `like` has there, and ``...``, which comes last, stands for all further ones; so does
            None for the whole.
        constraints: what holds for the variables, such as ``"a >= b"``: see `SymbolicScope`.
        scope: the scope that the variables belong to; a new one by default.
        like: a shape to take sizes from.

    Returns:
        A tuple of sizes.

    Raises:
        ValueError: the specification cannot be parsed, or does not fit `like`; or both a scope and
            constraints are given.
        TypeError: an argument is of another kind.

    Example:
        >>> from dovetail import export
        >>> export.symbolic_shape("a, 2*b, ...", like=(8, 8, 3))
        (a, 2*b, 3)
    """
    if scope is not None and not isinstance(scope, SymbolicScope):
        raise TypeError(f"scope is a SymbolicScope, got {type(scope).__name__}")
    if scope is not None and constraints:
        raise ValueError("constraints belong to a scope: give them to SymbolicScope, or no scope")
    scope = SymbolicScope(constraints) if scope is None else scope
    if shape_spec is None:
        shape_spec = "..."
    if not isinstance(shape_spec, str):
        raise ValueError(
            "a symbolic shape is a string, such as 'a, 2*b, 3', or None; got "
            f"{type(shape_spec).__name__}: {shape_spec!r:.80}"
        )
    return _Parser(shape_spec, scope, "shape", like).shape()  # type: ignore[return-value]
