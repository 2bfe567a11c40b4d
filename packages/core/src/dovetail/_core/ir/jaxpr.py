"""The intermediate language: variables, literals, equations, jaxprs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base import config
from dovetail._core.base.caches import Memory
from dovetail._core.base.counting import counted
from dovetail._core.base.notebooks import colored
from dovetail._core.base.records import record
from dovetail._core.base.source import SourceLocation
from dovetail._core.base.terminals import shows_color
from dovetail._core.ir.avals import AbstractValue

if TYPE_CHECKING:
    from dovetail._core.trace.primitive import Primitive

Effects = frozenset[Any]
no_effects: Final[Effects] = frozenset()


def ordered_effects(effects: Effects) -> list[Any]:
    """The effects whose operations must happen in the order of the program."""
    if not effects:
        return []
    return sorted((e for e in effects if getattr(e, "ordered", False)), key=str)


class Var:
    """A variable; its name is chosen when the jaxpr is printed."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue) -> None:
        self.aval: Any = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.short_name()}"


class DropVar(Var):
    """A result that nothing uses, printed as ``_``."""

    __slots__ = ()


class Literal:
    """A scalar constant written into an equation.

    Args:
        val: a Python or NumPy scalar.
        aval: its type.
    """

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: Any) -> None:
        self.val = val
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """The empty tuple: a literal is a scalar."""
        return ()

    @property
    def dtype(self) -> Any:
        """The dtype of the literal."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Zero: a literal is a scalar."""
        return 0

    @property
    def size(self) -> int:
        """One: a literal is a scalar."""
        return 1

    def __repr__(self) -> str:
        return f"{self.val}:{self.aval.short_name()}"


Atom = Var | Literal


@record
class SourceInfo:
    """Where an equation came from.

    Attributes:
        traceback: jaxlib's traceback of the line of the user's code; None if it is unknown.
        name_stack: the names of the scopes around it (`dovetail.named_scope`), joined by slashes.
    """

    traceback: Any
    name_stack: str

    @classmethod
    def of_place(cls, place: Any) -> SourceInfo:
        """The place of an equation, which is a traceback or one inside scopes."""
        if type(place) is SourceLocation:
            return cls(place.traceback, place.prefix.rstrip("/"))
        return cls(place, "")


@record
class JaxprEqnContext:
    """What was in force when an equation was traced.

    Options that programs depend on are parameters of equations, so this holds nothing that differs
    between equations; interpreters of jaxprs may enter it, as they do in JAX.

    Attributes:
        compute_type: where the equation runs; None: where the program does.
    """

    compute_type: None = None

    @property
    def manager(self) -> AbstractContextManager[None]:
        """A context in which the equation can be bound again."""
        return nullcontext()


class JaxprEqn:
    """One application of a primitive: ``outvars = primitive[params] invars``."""

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "traceback")

    def __init__(
        self,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        primitive: Primitive,
        params: Mapping[str, Any],
        effects: Effects = no_effects,
        traceback: Any = None,
    ) -> None:
        self.invars = invars
        self.outvars = outvars
        self.primitive = primitive
        self.params = params
        self.effects = effects
        self.traceback = traceback

    @property
    def source_info(self) -> SourceInfo:
        """Where the equation came from."""
        return SourceInfo.of_place(self.traceback)

    @property
    def ctx(self) -> JaxprEqnContext:
        """What was in force when the equation was traced."""
        return JaxprEqnContext()

    def replace(self, **changes: Any) -> JaxprEqn:
        """A copy with some fields replaced."""
        fields = {name: changes.pop(name, getattr(self, name)) for name in _EQN_FIELDS}
        if changes:
            raise TypeError(f"JaxprEqn has no field {sorted(changes)}")
        return JaxprEqn(**fields)

    def __repr__(self) -> str:
        from dovetail._core.ir.printer import print_eqn  # deferred: the printer imports this module

        return print_eqn(self)


_EQN_FIELDS: Final = ("invars", "outvars", "primitive", "params", "effects", "traceback")


@record
class DebugInfo:
    """Where a jaxpr came from, for messages.

    Attributes:
        traced_for: the transformation that traced it, such as ``"jit"``.
        function: the name of the user's function.
        location: ``file:line`` of the function's definition, or an empty string.
        argument_names: one name for each flat argument, such as ``params['w']``.
    """

    traced_for: str
    function: str
    location: str = ""
    argument_names: tuple[str, ...] | None = None

    def argument_name(self, index: int) -> str:
        """The name of flat argument number `index`."""
        names = self.argument_names
        return names[index] if names is not None and index < len(names) else f"number {index}"

    def describe_argument(self, index: int) -> str:
        """A phrase for flat argument number `index`."""
        name = self.argument_name(index)
        where = f" at {self.location}" if self.location else ""
        return f"the argument {name} of {self.function}, traced for {self.traced_for}{where}"


class Jaxpr:
    """A function of the intermediate language.

    Args:
        constvars: variables bound to constants when the jaxpr was made.
        invars: parameters.
        outvars: results, variables or literals.
        eqns: the body, in order.
        effects: side effects of the body.
        debug_info: where it came from.
    """

    __slots__ = ("__weakref__", "constvars", "debug_info", "effects", "eqns", "invars", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: Effects = no_effects,
        debug_info: DebugInfo | None = None,
    ) -> None:
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.effects = effects
        self.debug_info = debug_info

    @property
    def in_avals(self) -> list[Any]:
        """Avals of the parameters."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[Any]:
        """Avals of the results."""
        return [v.aval for v in self.outvars]

    def replace(self, **changes: Any) -> Jaxpr:
        """A copy with some fields replaced."""
        fields = {
            name: changes.pop(name, getattr(self, name))
            for name in ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        }
        if changes:
            raise TypeError(f"Jaxpr has no field {sorted(changes)}")
        return Jaxpr(**fields)

    def pretty_print(self, **options: Any) -> str:
        """The standard printed form."""
        from dovetail._core.ir.printer import (
            print_jaxpr,
        )  # deferred: the printer imports this module

        return print_jaxpr(self, **options)

    def __repr__(self) -> str:
        return self.pretty_print(use_color=config.pprint_use_color.value and shows_color())

    def _repr_html_(self) -> str:
        return colored(self.pretty_print(use_color=True))


class ClosedJaxpr:
    """A jaxpr together with the values of its constvars."""

    __slots__ = ("__weakref__", "_memory", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> None:
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(
                f"the jaxpr has {counted(len(jaxpr.constvars), 'constvar')}, but "
                f"{counted(len(consts), 'value')} were given"
            )
        self.jaxpr = jaxpr
        self.consts = list(consts)
        self._memory: Memory | None = None

    @property
    def memory(self) -> Memory:
        """The cache of jaxprs derived from it and programs compiled from it."""
        if self._memory is None:
            self._memory = Memory()
        return self._memory

    @property
    def in_avals(self) -> list[Any]:
        """Avals of the parameters."""
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[Any]:
        """Avals of the results."""
        return [v.aval for v in self.jaxpr.outvars]

    @property
    def literals(self) -> list[Any]:
        """The constants, under the name they once had."""
        return self.consts

    @property
    def constvars(self) -> list[Var]:
        """The variables bound to the constants."""
        return self.jaxpr.constvars

    @property
    def invars(self) -> list[Var]:
        """The parameters of the jaxpr."""
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Atom]:
        """The results of the jaxpr."""
        return self.jaxpr.outvars

    @property
    def debug_info(self) -> DebugInfo | None:
        """Where the jaxpr came from."""
        return self.jaxpr.debug_info

    @property
    def eqns(self) -> list[JaxprEqn]:
        """The body of the jaxpr."""
        return self.jaxpr.eqns

    @property
    def effects(self) -> Effects:
        """Side effects of the jaxpr."""
        return self.jaxpr.effects

    def replace(
        self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None
    ) -> ClosedJaxpr:
        """A copy with some fields replaced."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )

    def map_jaxpr(self, function: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        """The result of `function` on the jaxpr, with the same constants."""
        return ClosedJaxpr(function(self.jaxpr), self.consts)

    def pretty_print(self, **options: Any) -> str:
        """The standard printed form."""
        return self.jaxpr.pretty_print(**options)

    def __repr__(self) -> str:
        return self.pretty_print(use_color=config.pprint_use_color.value and shows_color())

    def _repr_html_(self) -> str:
        return colored(self.pretty_print(use_color=True))
