"""What a primitive is: a name and one method for each rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn, final

from dovetail._core.base import caches
from dovetail._core.base.errors import MissingRuleError
from dovetail._core.base.source import describe
from dovetail._core.ir.jaxpr import Effects, JaxprEqn, no_effects
from dovetail._core.ir.shown_params import ShownParams
from dovetail._core.ir.walk import Reduction, jaxprs_and_closed_jaxprs
from dovetail._core.trace.state import state

#: The rules that every primitive may have, in the order in which they stand in its class.
RULES: Final = ("abstract", "reference", "jvp", "transpose", "batch", "lower")
#: Rules that most primitives need not have: what they do follows from the others.
OPTIONAL_RULES: Final = ("linearize", "taylor", "effects", "check", "dependencies", "dce")

_registry: Final[dict[str, Primitive]] = {}


class Primitive:
    """Base of every primitive: a subclass overrides the rules it has, and one instance of it is
    made.

    Arrays are positional arguments of every rule, static data are keyword arguments. What else is
    to be known of a primitive anywhere, its attributes say: nothing compares its name.

    Attributes:
        name: the name printed in jaxprs; the key of lowering tables.
        multiple_results: whether `bind` returns a list.
        accepts_zeros: whether `jvp` and `transpose` handle symbolic `Zero`s; they are instantiated
            otherwise.
        transposes_partly: whether `transpose` gets `Unwanted` for operands whose cotangents nobody
            asks for, to leave out what they take.
        has_effects: whether `effects` is to be asked.
        calls_host: whether it calls Python, by its method `evaluate` where a program is computed
            equation by equation.
        no_derivative: why the primitive has no jvp or transpose by nature, for messages and tests.
        is_call: whether an equation does nothing but call the `ClosedJaxpr` in its parameter
            `jaxpr` with its operands, so that the equations of the jaxpr may stand in its place.
        is_control_flow: whether its lowering nests jaxprs as branches or bodies of loops, which the
            compiler cannot take out of one another.
        generates_nan: whether results may be nan or infinite where no operand is, so that
            `checkify` looks at them. False for what moves, chooses or compares its operands, and
            for what runs jaxprs, whose operations are looked at.
        only_tokens: whether operands and results are tokens alone, which hold no data.
        shown_params: what decides whether a printed jaxpr shows the value of a parameter, by the
            name of the parameter; the others are shown.
    """

    name: str = ""
    multiple_results: ClassVar[bool] = False
    accepts_zeros: ClassVar[bool] = False
    transposes_partly: ClassVar[bool] = False
    has_effects: ClassVar[bool] = False
    calls_host: ClassVar[bool] = False
    no_derivative: ClassVar[str] = ""
    is_call: ClassVar[bool] = False
    is_control_flow: ClassVar[bool] = False
    generates_nan: ClassVar[bool] = True
    only_tokens: ClassVar[bool] = False
    shown_params: ClassVar[ShownParams] = {}

    def __init__(self) -> None:
        if not self.name:
            raise ValueError(f"{type(self).__name__} needs a name")
        known = _registry.get(self.name)
        if known is not None:
            raise ValueError(
                f"primitive {self.name!r} is defined twice: by "
                f"{type(known).__module__}.{type(known).__name__} and by "
                f"{type(self).__module__}.{type(self).__name__}"
            )
        _registry[self.name] = self
        self._abstract_cache: dict[Any, Any] = {}
        self._note_rules()

    def _note_rules(self) -> None:
        #: Whether linearization asks `linearize` instead of splitting `jvp`.
        self.linearizes = self.has_rule("linearize")
        #: Whether `checkify` asks `check` instead of `bind`.
        self.checks = self.has_rule("check")
        #: Whether some of its results may depend on fewer arguments than others.
        self.has_dependencies = self.has_rule("dependencies")
        #: Whether its equations can lose results or operands.
        self.has_dce = self.has_rule("dce")

    @final
    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive in the current trace."""
        return state.trace.process(self, args, params)

    @final
    def rules(self) -> frozenset[str]:
        """Names of the rules that this primitive has."""
        return frozenset(r for r in (*RULES, *OPTIONAL_RULES) if self.has_rule(r))

    def has_rule(self, rule: str) -> bool:
        """Whether the primitive has the rule of that name."""
        return getattr(type(self), rule) is not getattr(Primitive, rule)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (primitive, (self.name,))

    def _missing(self, rule: str) -> NoReturn:
        where = describe()
        why = (
            f": {self.no_derivative}" if self.no_derivative and rule in ("jvp", "transpose") else ""
        )
        raise MissingRuleError(
            f"the primitive {self.name!r} has no {rule!r} rule{why}"
            + (f" (used at {where})" if where else "")
            + f"; write {type(self).__module__}.{type(self).__name__}.{rule}"
            * (not self.no_derivative)
        )

    # Each rule below is the absence of that rule.

    def abstract(self, *avals: Any, **params: Any) -> Any:
        """Avals of the arguments to the aval of the result (a list of them with several
        results)."""
        self._missing("abstract")

    def reference(self, *args: Any, **params: Any) -> Any:
        """The result in plain NumPy: obviously right, never used to run a user's program."""
        self._missing("reference")

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """Primals and tangents of the arguments to primal and tangent of the result."""
        self._missing("jvp")

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        """Cotangent of the result to cotangents of the arguments.

        Arguments in which the primitive is linear here arrive as avals, the others as values. An
        argument that is not linear gets None. With several results `cotangent` is a list.
        """
        self._missing("transpose")

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        """Arguments with their batch dimensions (None: not batched) to result and its batch
        dimension."""
        self._missing("batch")

    def lower(self, context: Any, *values: Any, **params: Any) -> Any:
        """Emit StableHLO; `context` is a `dovetail._core.hlo.builder.Builder`."""
        self._missing("lower")

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], **params: Any
    ) -> tuple[Any, Callable[..., Any]]:
        """Primals and which of them vary, to the result and a linear function of the tangents.

        The function takes one tangent for each argument (a `Zero` where it does not vary) and
        returns the tangent of the result. Where this rule is missing, `jvp` is run and split.
        """
        self._missing("linearize")

    def taylor(
        self, operands: Sequence[Any], results: Sequence[Any], **params: Any
    ) -> Callable[[int], Any]:
        """Curves of the operands and of the results (each a `Series` of Taylor coefficients) to a
        function from an order to these coefficients of the results.

        The function may read the coefficients of the results below its order. Where this rule is
        missing, it is derived from `jvp`.
        """
        self._missing("taylor")

    def effects(self, *avals: Any, **params: Any) -> Effects:
        """Side effects of one application."""
        return no_effects

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        """The result of one application, after what can fail in it is told to `checks`, a
        `dovetail._core.ops.checks.checking.CheckTrace`."""
        return self.bind(*args, **params)

    def dependencies(self, flags: Sequence[bool], **params: Any) -> Sequence[bool]:
        """Flags of the arguments to flags of the results that depend on them.

        A primitive that has this rule has several results, and the rule `dce`. Where it is missing,
        all results depend on all arguments.
        """
        self._missing("dependencies")

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        """What is left of an equation, of which some results are used: a generator.

        It yields the jaxprs in parameters that it wants without dead code, as `Wanted`, and is sent
        for each the reduced `ClosedJaxpr` and which of its parameters are left. It returns the
        equation, another in its place, or None for nothing. One result is used at least, or the
        equation has effects. Where this rule is missing, an equation stays as it is or goes.
        """
        self._missing("dce")

    @final
    def infer(self, avals: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        """`abstract`, remembered for hashable parameters."""
        try:
            key = (avals, tuple(params.items())) if params else avals
            found = self._abstract_cache.get(key)
        except TypeError:
            return self.abstract(*avals, **params)
        if found is None:
            found = self.abstract(*avals, **params)
            # A jaxpr equals itself alone: remembered, it would live for ever, and never be met; and
            # so would what a user's function has captured.
            if not jaxprs_and_closed_jaxprs(params) and not any(map(_holds, params.values())):
                self._abstract_cache[key] = found
        return found


def _holds(value: Any) -> bool:
    return hasattr(value, "holds_function")


class RuntimePrimitive(Primitive):
    """A primitive made from functions, one rule at a time, for plug-ins and ported code.

    Args:
        name: the name printed in jaxprs.
        multiple_results: whether `bind` returns a list.
        accepts_zeros: whether `jvp` and `transpose` handle symbolic zeros.
        no_derivative: why there is no jvp or transpose by nature, for messages.
        is_call: whether an equation does nothing but call the jaxpr in its parameter `jaxpr`, so
            that the equations of the jaxpr may stand in its place.
        is_control_flow: whether its lowering nests jaxprs as branches or bodies of loops.
        generates_nan: whether results may be nan or infinite where no operand is, so that
            `checkify` looks at them.
        shown_params: by the name of a parameter, a function from its value to whether a printed
            jaxpr shows it; the others are shown.

    Example:
        >>> from dovetail.extend import Primitive
        >>> double = Primitive("documented_double")
        >>> _ = double.define("abstract", lambda x: x)
        >>> sorted(double.rules())
        ['abstract']
    """

    def __init__(
        self,
        name: str,
        *,
        multiple_results: bool = False,
        accepts_zeros: bool = False,
        no_derivative: str = "",
        is_call: bool = False,
        is_control_flow: bool = False,
        generates_nan: bool = True,
        shown_params: ShownParams | None = None,
    ) -> None:
        self.name = name
        vars(self).update(
            multiple_results=multiple_results,
            accepts_zeros=accepts_zeros,
            no_derivative=no_derivative,
            is_call=is_call,
            is_control_flow=is_control_flow,
            generates_nan=generates_nan,
            shown_params={} if shown_params is None else shown_params,
        )
        self._rules: dict[str, Callable[..., Any]] = {}
        super().__init__()

    def define(self, rule: str, function: Callable[..., Any] | None = None) -> Any:
        """Set a rule; without `function`, a decorator that does.

        Raises:
            ValueError: there is no rule of that name.
        """
        if rule not in (*RULES, *OPTIONAL_RULES):
            raise ValueError(
                f"{rule!r} is not a rule of primitives; the rules are "
                f"{', '.join((*RULES, *OPTIONAL_RULES))}"
            )
        if function is None:
            return lambda function: self.define(rule, function)
        self._rules[rule] = function
        setattr(self, rule, function)
        self._note_rules()
        if rule == "effects":
            vars(self).update(has_effects=True)
        self._abstract_cache.clear()
        return function

    def has_rule(self, rule: str) -> bool:
        return rule in self._rules


def primitive(name: str) -> Primitive:
    """The primitive of that name.

    Raises:
        KeyError: there is none.
    """
    return _registry[name]


def _forget_inferred() -> None:
    for known in _registry.values():
        known._abstract_cache.clear()


caches.register(_forget_inferred)


def primitives() -> dict[str, Primitive]:
    """All primitives defined so far, by name."""
    return dict(_registry)
