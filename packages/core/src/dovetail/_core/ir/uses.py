"""Which equations of a jaxpr make and use its variables."""

from __future__ import annotations

from typing import Any

from dovetail._core.ir.jaxpr import Jaxpr, JaxprEqn, Literal

__all__ = ["Uses"]


class Uses:
    """The makers and users of the variables of a jaxpr, found in one pass over its equations.

    Args:
        jaxpr: the jaxpr; those that its equations hold are not looked into.

    Attributes:
        parameters: those of the jaxpr.
        makers: for each variable, the equation that makes it; none for parameters.
        users: for each variable the equations that take it, one that takes it twice also twice.
        returned: for each variable that is a result, how often it is one.
    """

    __slots__ = ("jaxpr", "makers", "parameters", "returned", "users")

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self.parameters: frozenset[Any] = frozenset(jaxpr.invars)
        self.makers: dict[Any, JaxprEqn] = {}
        self.users: dict[Any, list[JaxprEqn]] = {}
        self.returned: dict[Any, int] = {}
        makers, users = self.makers, self.users
        for eqn in jaxpr.eqns:
            for var in eqn.invars:
                if var in users:
                    users[var].append(eqn)
                elif type(var) is not Literal:
                    users[var] = [eqn]
            for var in eqn.outvars:
                makers[var] = eqn
        for var in jaxpr.outvars:
            self.returned[var] = self.returned.get(var, 0) + 1

    def are_of(self, equation: JaxprEqn) -> bool:
        """Whether the jaxpr holds an equation that has results."""
        return any(self.makers.get(var) is equation for var in equation.outvars)

    def count(self, var: Any) -> int:
        """How often a variable is taken by equations, or returned; a literal is written for one."""
        if type(var) is Literal:
            return 1
        return len(self.users.get(var, ())) + self.returned.get(var, 0)
