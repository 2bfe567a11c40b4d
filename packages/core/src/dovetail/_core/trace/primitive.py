"""Primitives: a name and one method for each rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, NoReturn, TypeVar, final
from weakref import WeakSet

from dovetail._core.base import caches
from dovetail._core.base.errors import MissingRuleError
from dovetail._core.base.registrations import importing, is_imported_again
from dovetail._core.base.source import describe
from dovetail._core.base.strictness import strictness
from dovetail._core.ir.avals import ShapedArray
from dovetail._core.ir.jaxpr import Effects, JaxprEqn, no_effects
from dovetail._core.ir.manual_axis_type import ManualAxisType, invarying
from dovetail._core.ir.shown_params import ShownParams
from dovetail._core.ir.walk import Reduction, jaxprs_and_closed_jaxprs
from dovetail._core.trace import forbidden_collectives
from dovetail._core.trace.divisions import (
    Labels,
    asked_of,
    divided_results,
    refuse_unruled,
    settled,
)
from dovetail._core.trace.manual_axes import joined, refuse_divided_sums, wanted_types
from dovetail._core.trace.state import Trace, evaluation_trace, state, use_trace

#: The rules that any primitive may have, in the order in which its class defines them.
RULES: Final = ("abstract", "reference", "jvp", "transpose", "batch", "lower")
#: Rules that most primitives do not need: their behaviour follows from the other rules.
OPTIONAL_RULES: Final = (
    "linearize",
    "taylor",
    "effects",
    "check",
    "dependencies",
    "forwarding",
    "dce",
    "follow_keys",
    "labels",
)

KeyUse = Literal["moves", "derives", "consumes"]
F = TypeVar("F", bound=Callable[..., Any])

_registry: Final[dict[str, Primitive]] = {}
# Primitives with the name of another one, which is found by it.
_namesakes: Final[WeakSet[Primitive]] = WeakSet()
# The namespace of the module that has defined each of them.
_origins: Final[dict[str, Any]] = {}


class Primitive:
    """Base of all primitives: a subclass overrides the rules it has and is instantiated once.

    Rules take arrays as positional arguments and static data as keyword arguments. The attributes
    hold everything else that other code needs to know: nothing compares names.

    Attributes:
        name: the name printed in jaxprs; the key of lowering tables.
        multiple_results: whether `bind` returns a list.
        accepts_zeros: whether `jvp` and `transpose` handle symbolic `Zero`s; otherwise these are
            instantiated.
        transposes_partly: whether `transpose` gets `Unwanted` for operands whose cotangents are not
            needed, to save the work for them.
        transposes_zeros: whether `transpose` is called, too, where all cotangents are zeros that
            such a rule has said.
        has_effects: whether `effects` must be called.
        calls_host: whether it calls Python; its method `evaluate` does so where a program is
            evaluated equation by equation.
        no_derivative: why the primitive cannot have a jvp or transpose, for messages and tests.
        is_call: whether an equation does nothing but call the `ClosedJaxpr` in its parameter
            `jaxpr` with its operands, so that the call can be inlined.
        call_primitive: whether it is bound to functions, as none is; programs that walk through
            jaxprs ask.
        is_control_flow: whether its lowering nests jaxprs as branches or loop bodies, which the
            compiler cannot flatten.
        generates_nan: whether results can be nan or infinite when no operand is, so that `checkify`
            checks them. False for primitives that move, select or compare their operands, and for
            those that run jaxprs, whose operations are checked themselves.
        device_parameter: the name of the parameter that says on which devices the result is.
        axis_parameter: the name of the parameter that names the axes which a collective operation
            runs over.
        types_axes: whether `abstract` says what results are along the manual axes of a mesh.
            Otherwise all operands are made alike along them, and the results are what they are.
        linear_in: ranges of operands. The operation is linear in those of each range together, so
            that it can be computed from parts of sums that have not been added up.
        types_divisions: whether `abstract` says how results are divided over the explicit axes of a
            mesh, and takes operands that are divided. Otherwise `divisions` does.
        sharding_parameter: the name of the parameter that may say how the result is divided, a
            `Division`.
        only_tokens: whether all operands and results are tokens, which hold no data.
        key_use: what it does with random keys: "moves" them, so that results hold the same keys;
            "derives" numbers or other keys from them, as often as one likes; or "consumes" them,
            after which they must not be used again.
        keeps_elements: whether the result has the operand's elements, in their order.
        is_ported: whether it is one of code for JAX, whose name may be that of another.
        shown_params: by parameter name, a predicate that says whether a printed jaxpr shows a
            value; other parameters are always shown.
    """

    name: str = ""
    multiple_results: ClassVar[bool] = False
    accepts_zeros: ClassVar[bool] = False
    transposes_partly: ClassVar[bool] = False
    transposes_zeros: ClassVar[bool] = False
    has_effects: ClassVar[bool] = False
    calls_host: ClassVar[bool] = False
    no_derivative: ClassVar[str] = ""
    is_call: ClassVar[bool] = False
    call_primitive: ClassVar[bool] = False
    is_control_flow: ClassVar[bool] = False
    generates_nan: ClassVar[bool] = True
    only_tokens: ClassVar[bool] = False
    device_parameter: ClassVar[str] = ""
    axis_parameter: ClassVar[str] = ""
    types_axes: ClassVar[bool] = False
    linear_in: ClassVar[Sequence[slice]] = ()
    types_divisions: ClassVar[bool] = False
    sharding_parameter: ClassVar[str] = ""
    key_use: ClassVar[KeyUse] = "moves"
    keeps_elements: ClassVar[bool] = False
    is_ported: ClassVar[bool] = False
    shown_params: ClassVar[ShownParams] = {}

    def __init__(self) -> None:
        if not self.name:
            raise ValueError(f"{type(self).__name__} needs a name")
        self._abstract_cache: dict[Any, Any] = {}
        self._note_rules()
        existing, origin = _registry.get(self.name), importing()
        if existing is not None and not is_imported_again(_origins[self.name], origin):
            if not strictness().primitives_have_names_of_their_own:
                _namesakes.add(self)
                return
            raise ValueError(
                f"primitive {self.name!r} is defined twice: by "
                f"{type(existing).__module__}.{type(existing).__name__} and by "
                f"{type(self).__module__}.{type(self).__name__}"
            )
        _origins[self.name] = origin
        _registry[self.name] = self

    def _note_rules(self) -> None:
        #: Whether linearization calls `linearize` instead of splitting `jvp`.
        self.linearizes = self.has_rule("linearize")
        #: Whether `checkify` calls `check` instead of `bind`.
        self.checks = self.has_rule("check")
        #: Whether some of its results may depend on fewer arguments than others.
        self.has_dependencies = self.has_rule("dependencies")
        #: Whether some of its results may be operands.
        self.has_forwarding = self.has_rule("forwarding")
        #: Whether its equations can lose results or operands.
        self.has_dce = self.has_rule("dce")

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive in the current trace."""
        return state.trace.process(self, args, params)

    def bind_with_trace(
        self, trace: Trace, args: Sequence[Any], avals: Sequence[Any], params: Mapping[str, Any], /
    ) -> Any:
        """Apply the primitive in a trace.

        Args:
            trace: the trace.
            args: the operands.
            avals: their types, accepted for JAX's sake: operands know them.
            params: the parameters.
        """
        with use_trace(trace):
            return self.bind(*args, **params)

    def get_bind_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters with which `bind` repeats an equation.

        Args:
            params: those of the equation.
        """
        return dict(params)

    def impl(self, *args: Any, **params: Any) -> Any:
        """The result on arrays, whatever is being traced."""
        with use_trace(evaluation_trace):
            return evaluation_trace.process(self, args, params)

    @final
    def rules(self) -> frozenset[str]:
        """Names of the rules that this primitive has."""
        return frozenset(r for r in (*RULES, *OPTIONAL_RULES) if self.has_rule(r))

    def has_rule(self, rule: str) -> bool:
        """Whether the primitive has the rule `rule`."""
        return getattr(type(self), rule) is not getattr(Primitive, rule)

    def __repr__(self) -> str:
        return self.name

    @property
    def is_registered(self) -> bool:
        """Whether it is the primitive that is known by its name."""
        return _registry.get(self.name) is self

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.is_registered:
            raise TypeError(
                f"the primitive {self.name!r} is one of several of that name and has no other by "
                "which another process could find it: give it a name of its own"
            )
        return (primitive, (self.name,))

    def _missing(self, rule: str) -> NoReturn:
        where = describe()
        why = (
            f": {self.no_derivative}" if self.no_derivative and rule in ("jvp", "transpose") else ""
        )
        cls = type(self)
        if self.no_derivative:
            instead = ""
        elif rule == "transpose" and cls.__module__.startswith("dovetail."):
            instead = "; what is transposed must be linear, and this operation is not"
        else:
            instead = f"; write {cls.__module__}.{cls.__name__}.{rule}"
        raise MissingRuleError(
            f"the primitive {self.name!r} has no {rule!r} rule{why}"
            + (f" (used at {where})" if where else "")
            + instead
        )

    # The methods below stand in for missing rules.

    def abstract(self, *avals: Any, **params: Any) -> Any:
        """Map avals of the arguments to the aval of the result (a list for several results)."""
        self._missing("abstract")

    def reference(self, *args: Any, **params: Any) -> Any:
        """The result in plain NumPy: obviously correct, never used to run a user's program."""
        self._missing("reference")

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """Map primals and tangents of the arguments to the primal and tangent of the result."""
        self._missing("jvp")

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        """Map the cotangent of the result to cotangents of the arguments.

        Arguments in which this application is linear arrive as avals, the others as values. The
        cotangent of a nonlinear argument is None. With several results, `cotangent` is a list.
        """
        self._missing("transpose")

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        """Map batched arguments to the result and its batch dimension.

        `dims` holds the batch dimension of each argument, None for one that is not batched.
        """
        self._missing("batch")

    def with_axes(
        self, avals: Sequence[Any], params: Mapping[str, Any]
    ) -> tuple[Sequence[ManualAxisType], Mapping[str, Any]]:
        """What operands have to be along the manual axes of a mesh, and parameters for these.

        Args:
            avals: the avals of the operands, some of which are not the same on all devices, unless
                this primitive `types_axes`.
            params: the parameters.

        Returns:
            What each operand has to be, to which it is cast; the parameters that change.
        """
        if self.types_axes:
            return [aval.manual_axis_type for aval in avals], {}
        return wanted_types(self.name, avals, self.linear_in), {}

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        """Which dimensions of operands and results are divided alike over the axes of a mesh.

        `dovetail.extend.divisions` has functions for the usual cases.

        Args:
            avals: the avals of the operands.
            results: the avals of the results.
            **params: the parameters.
        """
        self._missing("labels")

    def divisions(
        self, avals: Sequence[Any], results: Sequence[Any], **params: Any
    ) -> Sequence[Any]:
        """How each result is divided over the explicit axes of a mesh, if an operand is.

        By default, as `labels` says; a primitive without that rule takes operands that are not
        divided.
        """
        if not self.has_rule("labels"):
            refuse_unruled(self.name, avals)
            return [None] * len(results)
        return divided_results(self.name, self.labels(avals, results, **params), avals, results)

    def for_divisions(self, avals: Sequence[Any], params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters that change where operands are divided as these are: programs.

        Args:
            avals: the avals of the operands.
            params: the parameters.
        """
        return {}

    def result_specs(self, params: Mapping[str, Any]) -> Sequence[Any]:
        """For each result the specification, or None, by which it is divided over a mesh.

        Results of eager evaluation show it as it was written. The mesh is the value of
        `device_parameter`. There is none for any result if the sequence is empty.

        Args:
            params: the parameters.
        """
        return ()

    def lower(self, context: Any, *values: Any, **params: Any) -> Any:
        """Emit StableHLO; `context` is a `dovetail._core.hlo.builder.Builder`."""
        self._missing("lower")

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], **params: Any
    ) -> tuple[Any, Callable[..., Any]]:
        """The result, and a linear function from tangents to the tangent of the result.

        `nonzero` says which primals vary. The function takes one tangent for each argument, a
        `Zero` for one that does not vary. If this rule is missing, `jvp` is run and split.
        """
        self._missing("linearize")

    def taylor(
        self, operands: Sequence[Any], results: Sequence[Any], **params: Any
    ) -> Callable[[int], Any]:
        """A function from an order to the Taylor coefficients of the results at that order.

        Operands and results are curves, each a `Series` of Taylor coefficients. The function may
        read coefficients of the results below its order. If this rule is missing, it is derived
        from `jvp`.
        """
        self._missing("taylor")

    def effects(self, *avals: Any, **params: Any) -> Effects:
        """Side effects of one application."""
        return no_effects

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        """The result of one application, after telling `checks` what can fail in it.

        `checks` is a `dovetail._core.ops.checks.checking.CheckTrace`.
        """
        return self.bind(*args, **params)

    def dependencies(self, flags: Sequence[bool], **params: Any) -> Sequence[bool]:
        """Which results depend on the flagged arguments.

        A primitive with this rule has several results, and the rule `dce`. If it is missing, all
        results depend on all arguments.
        """
        self._missing("dependencies")

    def forwarding(self, **params: Any) -> Sequence[int | None]:
        """For each result, the number of the operand that it always is; None if it is none.

        It is that operand in every respect: a call with derivatives or a batching rule of its own
        has no such results. If this rule is missing, no result is known to be an operand.
        """
        self._missing("forwarding")

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        """What remains of an equation when only some results are used: a generator.

        It yields, as `Wanted`, the jaxprs in parameters that need dead code removed. For each, it
        is sent the reduced `ClosedJaxpr` and which of its parameters remain. It returns the
        equation, a replacement, or None for nothing. At least one result is used, or the equation
        has effects. If this rule is missing, an equation is kept as it is or dropped.
        """
        self._missing("dce")

    def follow_keys(self, tracker: Any, *operands: Any, **params: Any) -> Any:
        """What stands in place of the results where keys are followed, to find those used twice.

        `tracker` is a `KeyTracker`, which says what the operands are: numbers of keys, or positions
        if they are known. A list; None for what is unknown. If this rule is missing, `key_use`
        tells enough.
        """
        self._missing("follow_keys")

    @final
    @property
    def moves_first(self) -> bool:
        """Whether it moves or repeats elements of its first operand, and computes nothing."""
        return not self.generates_nan and list(self.linear_in) == [slice(1)]

    @final
    def infer(self, avals: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        """`abstract`, cached for hashable parameters.

        `AxesDiffer` if operands are not what they have to be along the manual axes of a mesh.
        """
        try:
            key = (avals, tuple(params.items())) if params else avals
            inferred = self._abstract_cache.get(key)
        except TypeError:
            return self._infer(avals, params)
        if inferred is None:
            inferred = self._infer(avals, params)
            # A jaxpr equals only itself: as a key it would live for ever and never be hit. So would
            # whatever a user's function has captured.
            # What was given up in a derivative is an error elsewhere.
            kept = not jaxprs_and_closed_jaxprs(params) and not any(map(_holds, params.values()))
            if settled() and kept:
                self._abstract_cache[key] = inferred
        # Of programs it is what is in them that counts.
        if forbidden_collectives.used and not jaxprs_and_closed_jaxprs(params):
            results = inferred if self.multiple_results else [inferred]
            if type(inferred) is not AxesDiffer and results:
                forbidden_collectives.check_divided(self.name, avals, results)
        return inferred

    @final
    def inferred(
        self, avals: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, Mapping[str, Any]]:
        """What `infer` says, and the parameters for operands that are divided as these are."""
        found = self.infer(avals, params)
        if type(found) is AxesDiffer:
            params = {**params, **found.changed}
            found = self.infer(avals, params)
        return found, params

    def _infer(self, avals: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        for aval in avals:
            if aval.division is not None:
                return self._infer_divided(avals, params)
        if self.sharding_parameter and params.get(self.sharding_parameter) is not None:
            return self._infer_divided(avals, params)
        return self._infer_axes(avals, params)

    def _infer_divided(self, avals: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        """`abstract` for operands that are divided over the explicit axes of a mesh."""
        if self.types_divisions:
            changed = self.for_divisions(avals, params)
            if changed:
                return AxesDiffer(tuple([aval.manual_axis_type for aval in avals]), changed)
            return self._infer_axes(avals, params)
        refuse_divided_sums(self.name, avals)
        # Rules need not know of divisions.
        whole = tuple([a if a.division is None else a.with_division(None) for a in avals])
        inferred = self._infer_axes(whole, params)
        if type(inferred) is AxesDiffer:
            return inferred
        results = inferred if self.multiple_results else [inferred]
        asked = params.get(self.sharding_parameter) if self.sharding_parameter else None
        if asked is not None:
            divided: Sequence[Any] = [asked_of(self.name, asked, aval) for aval in results]
        else:
            divided = self.divisions(avals, results, **params)
        typed = [
            aval if own is None else aval.with_division(own)
            for aval, own in zip(results, divided, strict=True)
        ]
        return typed if self.multiple_results else typed[0]

    def _infer_axes(self, avals: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        if not self.types_axes:
            for aval in avals:
                if aval.manual_axis_type is not invarying:
                    break
            else:
                return self.abstract(*avals, **params)
        wanted, changed = self.with_axes(avals, params)
        if changed or any(
            a.manual_axis_type is not own for a, own in zip(avals, wanted, strict=True)
        ):
            return AxesDiffer(tuple(wanted), changed)
        if self.types_axes:
            return self.abstract(*avals, **params)
        # A rule need not know of axes: what it computes is along them what its operands are.
        result = joined(wanted)
        alike = [_typed(aval, invarying) for aval in avals]
        inferred = self.abstract(*alike, **params)
        if self.multiple_results:
            return [_typed(aval, result) for aval in inferred]
        return _typed(inferred, result)


@final
class AxesDiffer:
    """What `infer` says of operands that are not what they have to be along manual axes.

    Attributes:
        wanted: what each operand has to be.
        changed: the parameters that change.
    """

    __slots__ = ("changed", "wanted")

    def __init__(self, wanted: tuple[ManualAxisType, ...], changed: Mapping[str, Any]) -> None:
        self.wanted = wanted
        self.changed = changed


def _typed(aval: Any, axes: ManualAxisType) -> Any:
    return aval.update(manual_axis_type=axes) if type(aval) is ShapedArray else aval


def _holds(value: Any) -> bool:
    return hasattr(value, "holds_function")


class RuntimePrimitive(Primitive):
    """A primitive built from functions, one rule at a time, for plug-ins and ported code.

    Args:
        name: the name printed in jaxprs.
        multiple_results: whether `bind` returns a list.
        accepts_zeros: whether `jvp` and `transpose` handle symbolic zeros.
        no_derivative: why there cannot be a jvp or transpose, for messages.
        is_call: whether an equation does nothing but call the jaxpr in its parameter `jaxpr`, so
            that the call can be inlined.
        is_control_flow: whether its lowering nests jaxprs as branches or loop bodies.
        generates_nan: whether results can be nan or infinite when no operand is, so that `checkify`
            checks them.
        key_use: what it does with random keys (see `Primitive`): "moves", "derives" or "consumes".
        shown_params: by parameter name, a predicate that says whether a printed jaxpr shows a
            value; other parameters are always shown.

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
        key_use: KeyUse = "moves",
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
            key_use=key_use,
            shown_params={} if shown_params is None else shown_params,
        )
        self._rules: dict[str, Callable[..., Any]] = {}
        self.evaluate: Callable[..., Any] | None = None
        super().__init__()

    def define(self, rule: str, function: Callable[..., Any] | None = None) -> Any:
        """Set a rule; without `function`, return a decorator that does.

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

    def impl(self, *args: Any, **params: Any) -> Any:
        """The result on arrays; by what evaluates it, which may take tracers too."""
        if self.evaluate is None:
            return super().impl(*args, **params)
        return self.evaluate(*args, **params)

    def def_impl(self, function: F) -> F:
        """Set what evaluates the primitive on arrays; without it, its lowering is compiled.

        Args:
            function: takes the operands and the parameters.
        """
        self.evaluate = function
        return function

    def def_abstract_eval(self, function: F) -> F:
        """Set the rule `abstract`, as `define` does; usable as a decorator."""
        self.define("abstract", function)
        return function

    def def_effectful_abstract_eval(self, function: F) -> F:
        """Set the rules `abstract` and `effects` by one function.

        Args:
            function: maps types of operands to the type of the result (a list for several), and a
                set of side effects.
        """
        self.define("abstract", lambda *avals, **params: function(*avals, **params)[0])
        self.define("effects", lambda *avals, **params: frozenset(function(*avals, **params)[1]))
        return function


def primitive(name: str) -> Primitive:
    """The primitive with this name.

    Raises:
        KeyError: there is none.
    """
    return _registry[name]


def _forget_inferred() -> None:
    for registered in (*_registry.values(), *_namesakes):
        registered._abstract_cache.clear()


caches.register(_forget_inferred)


def primitives() -> dict[str, Primitive]:
    """All primitives defined so far, by name."""
    return dict(_registry)
