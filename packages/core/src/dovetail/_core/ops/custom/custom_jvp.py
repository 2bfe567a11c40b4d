"""`custom_jvp`: functions with a custom forward-mode rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Generic, ParamSpec, TypeVar

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.caches import Memory
from dovetail._core.base.counting import counted
from dovetail._core.base.errors import UnexpectedTracerError
from dovetail._core.base.flags import merge, partition
from dovetail._core.base.tracebacks import bounded
from dovetail._core.base.wrapping import update_wrapper
from dovetail._core.basis.elementwise import add_tangents
from dovetail._core.basis.operands import as_result, typed_like
from dovetail._core.basis.structural import batch_size, instantiate_zeros
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.ir.shown_params import ShownParams, never
from dovetail._core.ir.walk import jaxpr_as_fun
from dovetail._core.ops.calls.jit import RuleCall
from dovetail._core.ops.custom.arguments import (
    HasRules,
    NondiffSignature,
    UserFunction,
    described,
    path_of,
    users_code,
)
from dovetail._core.ops.custom.batching import Batch, batched_rule, settle
from dovetail._core.ops.custom.flat_rules import flat_jvp, info_of, jvp_of_flat
from dovetail._core.ops.custom.references import (
    call_inside,
    effects_of_rule,
    rule_with_references,
    with_references_of_rule,
)
from dovetail._core.ops.custom.symbolic import SymbolicZero, for_rule
from dovetail._core.ops.elementwise.conversion import stop_gradient
from dovetail._core.trace.custom_rules import CustomRuleCall, Dims, Run
from dovetail._core.trace.mutable_references import Ref
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.scopes import at_own_lines
from dovetail._core.trace.state import state
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.derived import batch_of, derived_info, hoist_consts
from dovetail._core.transform.flattening import check_callable, name_of
from dovetail._core.transform.referencing import RefEffects, stage_using_references

P = ParamSpec("P")
R = TypeVar("R")
#: (primals, tangents, `Zero` where they vanish) -> results and their tangents.
Rule = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]


class NamedRule:
    """A rule in the parameters of an equation, printed there by its name.

    It has no hash, so caches keyed by parameters cannot keep captured values alive.
    """

    __slots__ = ("__name__", "rule")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str, rule: Callable[..., Any]) -> None:
        self.__name__ = name
        self.rule = rule

    def __call__(self, *args: Any) -> Any:
        return self.rule(*args)

    #: The name under which those who interpret jaxprs call functions in parameters.
    call_wrapped = __call__

    def __eq__(self, other: object) -> bool:
        return self is other


class CustomCall(RuleCall):
    """A staged call of a function with custom rules.

    The leading `num_consts` operands are the captured values. The last `num_last` results are the
    last values of the mutable references that it writes to.
    """

    program = "call_jaxpr"
    #: The parameter that holds the rule of the arguments.
    primal_rule: ClassVar[str]
    shown_params: ClassVar[ShownParams] = {"num_consts": never, "num_last": never}
    #: Derivatives follow from the custom rule alone.
    linearize = Primitive.linearize
    taylor = Primitive.taylor

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        checked, error = checks.checked(params["call_jaxpr"])
        if checked is params["call_jaxpr"]:
            return self.bind(*args, **params)
        params["call_jaxpr"], captured = hoist_consts(checked)
        params["num_consts"] += len(captured)
        self.check_rule(partial(checks.with_leaves, error), params)
        outs = self.bind(*captured, *args, **params)
        checks.record(error, outs[: error.num_leaves])
        return outs[error.num_leaves :]

    def check_rule(
        self, with_leaves: Callable[..., tuple[list[Any], Any]], params: dict[str, Any]
    ) -> None:
        """Make the rule in the parameters return the leaves of an error before its results.

        Args:
            with_leaves: maps the rule and its arguments to the leaves and the results of the rule.
            params: the parameters; changed in place.
        """
        raise NotImplementedError

    def batched_rule(self, rule: NamedRule, batch: Batch) -> NamedRule:
        """The rule of the arguments for each element of a batch."""
        raise NotImplementedError

    def effects_of_rule(
        self, rule: NamedRule, avals: Sequence[Any], info: DebugInfo
    ) -> RefEffects | None:
        """What the rule of the arguments does with mutable references; None if it is unknown.

        Args:
            rule: the rule.
            avals: the types of the arguments, all of which are taken to vary.
            info: names for messages about the function.
        """
        raise NotImplementedError

    def batch(self, args: Sequence[Any], dims: Dims, **params: Any) -> tuple[Any, Any]:
        batch = Batch.of_arguments(batch_size(args, dims), dims)
        closed, num_consts = params["call_jaxpr"], params["num_consts"]
        batched = batch_of(closed, batch.size, tuple(dims))
        batch.note(batched.out_dims)
        captured = any(d is not None for d in dims[:num_consts])
        batch.dims = batch.dims[num_consts:]
        rule = self.batched_rule(params[self.primal_rule], batch)
        info = derived_info(closed, "vmap")

        def found() -> bool:
            avals = [aval_of(a) for a in args[num_consts:]]
            return not captured and self.effects_of_rule(rule, avals, info) is not None

        if settle([batch], found):
            assert batch.out_dims is not None
            instantiate = tuple([d is not None for d in batch.out_dims])
            batched = batch_of(closed, batch.size, tuple(dims), instantiate)
        params |= {"call_jaxpr": batched.jaxpr, self.primal_rule: rule}
        return self.bind(*args, **params), batch.out_dims


def split_captured(
    name: str, count: int, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """The arguments of an equation without captured values.

    Raises:
        UnexpectedTracerError: a captured value is differentiated.
    """
    if any(type(t) is not Zero for t in tangents[:count]):
        raise UnexpectedTracerError(
            f"{name} has a derivative rule of its own, and is differentiated with respect to a "
            "value that it has captured. The rule says how to differentiate in its arguments, and "
            "nothing about what is captured: pass the value as an argument, and give the rule this "
            "argument too"
        )
    return primals[count:], tangents[count:]


class CustomJVPCall(CustomCall):
    """A staged call of a `custom_jvp` function."""

    name = "custom_jvp_call"
    primal_rule = "jvp"
    generates_nan = False

    def bind(self, *args: Any, subfuns: Sequence[Any] = (), **params: Any) -> Any:
        """Apply the primitive in the current trace.

        Args:
            *args: the operands.
            subfuns: the function and its rule, of flat values: called if `params` have no program,
                as those of interpreters do not. Otherwise what `get_bind_params` has added.
            **params: the parameters.
        """
        if "call_jaxpr" in params:
            # By the class: a bound method takes C stack, of which Python 3.12 allows little.
            return Primitive.bind(self, *args, **params)
        call = _JVPCall.of_flat(*subfuns, **params)
        return state.trace.process_custom_rule(call, args)

    def get_bind_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters, and as `subfuns` the function and its rule, for those who inline it."""
        function = NamedRule(params["name"], jaxpr_as_fun(params["call_jaxpr"]))
        rule = params[self.primal_rule]
        flat = NamedRule(rule.__name__, flat_jvp(rule, params["symbolic_zeros"]))
        return {**params, "subfuns": (function, flat)}

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        name: str,
        jvp: Rule,
        num_consts: int,
        **params: Any,
    ) -> tuple[Any, Any]:
        return jvp(*split_captured(name, num_consts, primals, tangents))

    def check_rule(
        self, with_leaves: Callable[..., tuple[list[Any], Any]], params: dict[str, Any]
    ) -> None:
        rule = params["jvp"]

        def run(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            leaves, (outs, out_tangents) = with_leaves(rule, primals, tangents)
            return [*leaves, *outs], [*map(Zero.of, leaves), *out_tangents]

        params["jvp"] = NamedRule(rule.__name__, run)

    def batched_rule(self, rule: NamedRule, batch: Batch) -> NamedRule:
        return NamedRule(rule.__name__, batched_rule(rule.rule, batch))

    def effects_of_rule(
        self, rule: NamedRule, avals: Sequence[Any], info: DebugInfo
    ) -> RefEffects | None:
        tangents = [aval.tangent() for aval in avals]
        nonzero = [aval.dtype != dtypes.float0 for aval in tangents]
        varying, zeros = partition(nonzero, tangents)
        count = len(avals)

        def run(*values: Any) -> list[Any]:
            every = merge(nonzero, values[count:], map(Zero, zeros))
            return list(rule(values[:count], every)[0])

        return effects_of_rule(run, [*avals, *varying], info)


custom_jvp_call_p: Final = CustomJVPCall()


class CustomLiveCall(CustomRuleCall):
    """A call of a function with custom rules, before it is staged.

    Args:
        function: a function of flat arguments.
        rules: the rules of `function`, by parameter name of the staged call.
        info: names for messages about the function.
        symbolic_zeros: whether the rules get symbolic zeros.
        refs: the mutable references among the user's arguments.
        batches: the batches that function and rules apply to, the innermost first.
    """

    primitive: ClassVar[CustomCall]

    def __init__(
        self,
        function: Callable[..., list[Any]],
        rules: Mapping[str, NamedRule],
        info: Callable[[], DebugInfo],
        symbolic_zeros: bool,
        refs: Sequence[Ref],
        batches: tuple[Batch, ...] = (),
    ) -> None:
        self.function = function
        self.rules = rules
        self.info = info
        self.symbolic_zeros = symbolic_zeros
        self.refs = refs
        self.batches = batches

    @property
    def out_dims(self) -> Dims | None:
        return self.batches[-1].out_dims if self.batches else None

    def evaluate(self, args: Sequence[Any]) -> list[Any]:
        return self.function(*map(as_result, args))

    def batched(self, run: Run, size: int, dims: Dims) -> CustomRuleCall:
        batch = Batch(run, size, dims)
        function = self.function

        def of_batch(*args: Any) -> list[Any]:
            return batch.results(*batch.run(function, args, batch.dims))

        name = self.primitive.primal_rule
        rules = {**self.rules, name: self.primitive.batched_rule(self.rules[name], batch)}
        return type(self)(
            of_batch, rules, self.info, self.symbolic_zeros, self.refs, (*self.batches, batch)
        )

    @staticmethod
    def with_last(result: Any, last: list[Any]) -> Any:
        """What the primal rule returns, with the last values of references after the results."""
        raise NotImplementedError

    def record(self, args: Sequence[Any]) -> list[Any]:
        info = self.info()
        avals = [aval_of(a) for a in args]
        staged, effects = stage_using_references(self.function, avals, info)
        rules = self.rules
        if effects or self.refs or self.batches:
            staged, effects, rules = self._with_rule(staged, effects, avals, info)
        closed, captured = hoist_consts(staged)
        references = effects.references((), info.function, ()) if effects else []
        outs: list[Any] = self.primitive.bind(
            *captured,
            *[ref_state.value for _, ref_state in references],
            *args,
            name=info.function,
            call_jaxpr=closed,
            num_consts=len(captured),
            num_last=sum(effects.changed),
            symbolic_zeros=self.symbolic_zeros,
            **rules,
        )
        return effects.finish(outs, references) if effects else outs

    def _with_rule(
        self, closed: ClosedJaxpr, effects: RefEffects, avals: Sequence[Any], info: DebugInfo
    ) -> tuple[ClosedJaxpr, RefEffects, Mapping[str, NamedRule]]:
        """The staged function, fit for what its rule does with references and batches."""
        name = self.primitive.primal_rule
        rule = self.rules[name]
        trials: list[RefEffects | None] = []
        grown: list[bool] = []

        def trial() -> RefEffects | None:
            if not trials:
                before = [batch.out_dims for batch in self.batches]
                trials.append(self.primitive.effects_of_rule(rule, avals, info))
                grown.append(before != [batch.out_dims for batch in self.batches])
            return trials[0]

        opened, together = with_references_of_rule(closed, effects, info, self.refs, trial)
        if settle(self.batches, lambda: trial() is not None) or any(grown):
            closed, effects = stage_using_references(self.function, avals, info)
            opened, together = with_references_of_rule(closed, effects, info, self.refs, trial)
        if not together:
            return opened, together, self.rules
        run = rule_with_references(rule.rule, together, info.function, self.with_last)
        return opened, together, {**self.rules, name: NamedRule(rule.__name__, run)}


class _JVPCall(CustomLiveCall):
    """A call of a `custom_jvp` function."""

    primitive = custom_jvp_call_p

    @classmethod
    def of_flat(cls, function: Any, jvp: Any, *, symbolic_zeros: bool) -> CustomRuleCall:
        """The call that two functions of flat values are."""
        rule = jvp_of_flat(jvp.call_wrapped, symbolic_zeros)
        rules = {"jvp": NamedRule(name_of(jvp), rule)}
        info = partial(info_of, function, "custom_jvp")
        return cls(function.call_wrapped, rules, info, symbolic_zeros, ())

    def differentiate(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        rule = partial(self.rules["jvp"], primals, tangents)
        outs, out_tangents = call_inside(self.refs, self.info, rule)
        return outs, out_tangents

    @staticmethod
    def with_last(result: Any, last: list[Any]) -> Any:
        outs, tangents = result
        return [*outs, *last], [*tangents, *map(Zero.of, last)]


def _rule_of(function: UserFunction, rule: Callable[..., Any], symbolic_zeros: bool) -> NamedRule:
    """A user's rule as a function of flat values."""

    def run(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        unflatten = function.in_tree.unflatten
        values = unflatten(map(as_result, primals))
        rule_tangents = unflatten([for_rule(t, symbolic_zeros) for t in tangents])
        with at_own_lines(), users_code(function.signature):
            pair = rule(*function.extra, values, rule_tangents)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"custom_jvp: the rule {described(rule)} of {function.signature} must return a "
                f"pair (primal results, tangents of the results), got {type(pair).__name__}"
                + (f" of length {len(pair)}" if isinstance(pair, (tuple, list)) else "")
            )
        outs, tree = function.checked_results(pair[0], rule)
        return outs, _checked_tangents(function, rule, outs, tree, pair[1])

    return NamedRule(name_of(rule), run)


def _checked_tangents(
    function: UserFunction, rule: Callable[..., Any], outs: list[Any], tree: Any, tangents: Any
) -> list[Any]:
    leaves, tangent_tree = pytree.flatten(tangents)
    if tree != tangent_tree:
        difference = pytree.structure_difference(tree, tangent_tree, "the primal", "the tangent")
        raise TypeError(
            f"custom_jvp: the rule {described(rule)} of {function.signature} must return primal "
            f"results and tangents of one structure:\n{difference}"
        )
    checked = []
    for i, (out, tangent) in enumerate(zip(outs, leaves, strict=True)):
        expected = aval_of(out).tangent()
        if type(tangent) is SymbolicZero:
            tangent = Zero(tangent.aval)
        else:
            tangent = typed_like(tangent, expected)
        actual = tangent.aval if type(tangent) is Zero else aval_of(tangent)
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            place = path_of(tree, i)
            hint = (
                "; integers and booleans have tangents of float0: numpy.zeros(shape, "
                "dovetail.float0), or custom_derivatives.zero_from_primal(x)"
                if aval_of(out).dtype != expected.dtype
                else ""
            )
            raise TypeError(
                f"custom_jvp: the tangent{place} that the rule {described(rule)} of "
                f"{function.signature} returns must be {expected.short_name()}, as the primal "
                f"result of type {aval_of(out).short_name()} demands, got "
                f"{actual.short_name()}{hint}"
            )
        more = actual.vma - expected.vma
        if more:
            axes = ", ".join(sorted(map(repr, more)))
            raise TypeError(
                f"custom_jvp: the tangent{path_of(tree, i)} that the rule {described(rule)} of "
                f"{function.signature} returns may differ from device to device along {axes}, and "
                f"the result does not: sum what it returns, with lax.psum(tangent, {axes})"
            )
        zero = type(tangent) is Zero or aval_of(out).dtype != expected.dtype
        checked.append(Zero(expected) if zero else tangent)
    return checked


@bounded
class custom_jvp(HasRules, Generic[P, R]):
    """A function with a custom derivative rule for forward mode.

    All kinds of differentiation use the rule. It is linear in the tangents, and reverse mode
    transposes it. Without differentiation, the function itself runs.

    Args:
        fun: a function from arrays and trees of them to the same.
        nondiff_argnums: numbers of arguments that are not differentiated, such as functions and
            strings; they are the first arguments of the rule.
        nondiff_argnames: names of such arguments.

    Raises:
        ValueError: there is no such parameter.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> @dt.custom_jvp
        ... def log1pexp(x):
        ...     return jnp.log(1.0 + jnp.exp(x))
        >>> @log1pexp.defjvp
        ... def log1pexp_jvp(primals, tangents):
        ...     (x,), (t,) = primals, tangents
        ...     return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t
        >>> float(dt.grad(log1pexp)(100.0))
        1.0
    """

    fun: Callable[P, R]
    nondiff_argnums: tuple[int, ...]
    jvp: Callable[..., Any] | None
    symbolic_zeros: bool

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        self._signature = NondiffSignature(fun, "custom_jvp", nondiff_argnums, nondiff_argnames)
        update_wrapper(self, fun)
        self._memory = Memory()
        self.fun = fun
        self.nondiff_argnums = self._signature.nondiff
        self.jvp = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Define the derivative rule.

        Args:
            jvp: a function of the arguments that are not differentiated, if any, a tuple of the
                others, and a tuple of their tangents. It returns the results of the function and
                their tangents. Tangents of integers and booleans have the dtype float0.
            symbolic_zeros: whether tangents that are known to be zero are passed as `SymbolicZero`
                instead of arrays of zeros.

        Returns:
            `jvp`, so this can be used as a decorator.
        """
        check_callable(jvp, "defjvp")
        self.jvp = jvp
        self.symbolic_zeros = bool(symbolic_zeros)
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Define the derivative rule by a function for each argument.

        Args:
            *jvps: for each argument, a function of its tangent, the result, and all arguments,
                which returns the contribution of this tangent to the tangent of the result; None
                for no contribution.

        Raises:
            TypeError: there are nondifferentiated arguments, which need `defjvp`.

        Example:
            >>> import dovetail as dt
            >>> import dovetail.numpy as jnp
            >>> @dt.custom_jvp
            ... def f(x, y):
            ...     return jnp.sin(x) * y
            >>> f.defjvps(
            ...     lambda t, out, x, y: jnp.cos(x) * t * y, lambda t, out, x, y: jnp.sin(x) * t
            ... )
            >>> float(dt.grad(f)(0.0, 3.0))
            3.0
        """
        if self.nondiff_argnums:
            raise TypeError(
                f"defjvps cannot define a rule for {self._signature}, which has arguments that are "
                "not differentiated (nondiff_argnums); use defjvp"
            )
        for rule in jvps:
            if rule is not None:
                check_callable(rule, "defjvps")

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                raise TypeError(
                    f"defjvps of {self._signature} was given {counted(len(jvps), 'rule')} for the "
                    f"{counted(len(primals), 'argument')} of this call; pass one for each, None "
                    "where the derivative is zero"
                )
            function: Callable[..., R] = self
            out = function(*primals)
            parts = [
                rule(tangent, out, *primals)
                for rule, tangent in zip(jvps, tangents, strict=True)
                if rule is not None
            ]
            if not parts:
                zeros = [instantiate_zeros(Zero.of(x)) for x in pytree.leaves(out)]
                return out, pytree.structure(out).unflatten(zeros)
            return out, pytree.map(_total, *parts)

        self.defjvp(jvp)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.jvp is None:
            raise AttributeError(
                f"no derivative rule is defined for the custom_jvp function {self._signature}: "
                "define one with its method defjvp, or call the function without custom_jvp"
            )
        positional: tuple[Any, ...] = self._signature.resolve(args, kwargs)
        if self.nondiff_argnums:
            positional = tuple(
                [_stopped(a) if i in self.nondiff_argnums else a for i, a in enumerate(positional)]
            )
        function, leaves = UserFunction.of_call(self._signature, positional)
        rule = _rule_of(function, self.jvp, self.symbolic_zeros)
        call = _JVPCall(
            function, {"jvp": rule}, function.debug_info, self.symbolic_zeros, function.refs
        )
        outs = state.trace.process_custom_rule(call, leaves)
        result: R = function.out_tree.unflatten(map(as_result, outs))
        return result


def _total(*parts: Any) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = add_tangents(total, part)
    return total


def _stopped(value: Any) -> Any:
    """A nondifferentiated argument, without the tangents of tracers in it."""
    if any(isinstance(leaf, Tracer) for leaf in pytree.leaves(value)):
        return stop_gradient(value)
    return value
