"""`custom_vjp`: functions with a custom reverse-mode rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    NoReturn,
    ParamSpec,
    TypeVar,
)

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.caches import Memory
from dovetail._core.base.errors import UnexpectedTracerError
from dovetail._core.base.flags import merge, partition
from dovetail._core.base.strictness import strictness
from dovetail._core.base.tracebacks import bounded
from dovetail._core.base.wrapping import update_wrapper
from dovetail._core.basis.manual_axes import match_axes
from dovetail._core.basis.operands import as_operand, as_result
from dovetail._core.basis.structural import batch_size, is_linear
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import DebugInfo, Literal
from dovetail._core.ops.custom.arguments import (
    HasRules,
    NondiffSignature,
    UserFunction,
    converted,
    described,
    users_code,
)
from dovetail._core.ops.custom.batching import (
    Backward,
    Batch,
    batched_backward,
    reaching_batched,
)
from dovetail._core.ops.custom.custom_jvp import (
    CustomCall,
    CustomLiveCall,
    NamedRule,
    split_captured,
)
from dovetail._core.ops.custom.flat_rules import Forward, OutTrees, forward_of_flat, info_of
from dovetail._core.ops.custom.references import call_inside, effects_of_rule
from dovetail._core.ops.custom.remat_opt import call_forward
from dovetail._core.ops.custom.symbolic import CustomVJPPrimal, SymbolicZero, for_rule
from dovetail._core.trace.custom_rules import CustomRuleCall, Dims
from dovetail._core.trace.divisions import lenient
from dovetail._core.trace.mutable_references import without_references
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.scopes import at_own_lines
from dovetail._core.trace.state import state
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero, with_zeros, without_zeros
from dovetail._core.transform.batch import batched_aval, unbatched_aval
from dovetail._core.transform.flattening import check_array_leaves, check_callable, name_of
from dovetail._core.transform.referencing import RefEffects

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

P = ParamSpec("P")
R = TypeVar("R")


class CustomLinear(Primitive):
    """The derivative of a `custom_vjp` function, of which only the transpose is known.

    The leading operands are residuals, the others tangents of the perturbed arguments.
    """

    name = "custom_lin"
    multiple_results = True
    accepts_zeros = True
    # A rule may say more than what is proportional to cotangents: maxima for the next step, say.
    transposes_zeros = True
    generates_nan = False
    # Tangents vary as the results do, and are divided as they are.
    types_axes = True
    types_divisions = True

    def abstract(self, *avals: Any, out_avals: tuple[Any, ...], **params: Any) -> Any:
        return list(out_avals)

    def reference(self, *args: Any, function: str, **params: Any) -> Any:
        _refuse_forward_mode(function)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, function: str, **params: Any
    ) -> tuple[Any, Any]:
        _refuse_forward_mode(function)

    def transpose(
        self, cotangent: Any, *args: Any, num_res: int, bwd: Backward, **params: Any
    ) -> Sequence[Any]:
        if any(is_linear(a) for a in args[:num_res]):
            _refuse_forward_mode(params["function"])
        # A host scalar among the residuals is passed back to the rule unchanged.
        residuals = [a.val if type(a) is Literal else a for a in args[:num_res]]
        with lenient(False):  # what the user's rule says is no less ambiguous than elsewhere
            cotangents = bwd(residuals, cotangent)
        matched = [match_axes(ct, a.aval) for ct, a in zip(cotangents, args[num_res:], strict=True)]
        return [*[None] * num_res, *matched]

    def batch(
        self,
        args: Sequence[Any],
        dims: Dims,
        *,
        num_res: int,
        bwd: NamedRule,
        out_avals: tuple[Any, ...],
        **params: Any,
    ) -> tuple[Any, Any]:
        batch = Batch.of_arguments(batch_size(args, dims), dims, (0,) * len(out_avals))
        batched = batched_backward(bwd, batch, dims[:num_res], dims[num_res:])
        outs = self.bind(
            *args,
            num_res=num_res,
            bwd=NamedRule(bwd.__name__, batched),
            out_avals=tuple([batched_aval(a, batch.size, 0) for a in out_avals]),
            **params,
        )
        return outs, [0] * len(outs)

    def lower(self, context: Builder, *values: Any, function: str, **params: Any) -> Any:
        _refuse_forward_mode(function)

    def evaluate(self, *args: Any, function: str, **params: Any) -> Any:
        """Raise: evaluation means forward mode, where nothing transposes this call."""
        _refuse_forward_mode(function)


custom_lin_p: Final = CustomLinear()


def _refuse_forward_mode(function: str) -> NoReturn:
    raise TypeError(
        f"can't apply forward-mode autodiff (jvp) to a custom_vjp function: {function} has a rule "
        "for reverse mode alone (grad, vjp, jacrev). Define its derivative with custom_jvp, which "
        "serves both modes, or differentiate in reverse mode (jacrev instead of jacfwd, "
        "jacrev(jacrev(f)) instead of hessian(f))"
    )


def differentiate(
    forward: Forward,
    function: str,
    bwd_name: str,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    num_last: int = 0,
) -> tuple[list[Any], list[Any]]:
    """Results, and tangents that can only be transposed.

    Args:
        forward: the forward pass.
        function: the user's function, for messages.
        bwd_name: the name of the user's backward pass.
        primals: the arguments.
        tangents: the tangents of the arguments, `Zero` for those not perturbed.
        num_last: how many results at the end are last values of references, which do not vary.
    """
    perturbed, nonzero_tangents = without_zeros(tangents)
    outs, residuals, backward = forward(primals, perturbed)
    tangent_avals = [aval_of(o).tangent() for o in outs]
    count = len(outs) - num_last
    nonzero = [a.dtype != dtypes.float0 and i < count for i, a in enumerate(tangent_avals)]
    out_avals, zero_avals = partition(nonzero, tangent_avals)

    def bwd(values: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return backward(values, merge(nonzero, cotangents, map(Zero, zero_avals)))

    out_tangents = custom_lin_p.bind(
        *residuals,
        *nonzero_tangents,
        num_res=len(residuals),
        bwd=NamedRule(bwd_name, bwd),
        out_avals=tuple(out_avals),
        function=function,
    )
    return outs, with_zeros(nonzero, out_tangents, outs)


def batched_forward(forward: Forward, batch: Batch) -> Forward:
    """The forward pass for each element of a batch."""

    def run(
        primals: Sequence[Any], perturbed: Sequence[bool]
    ) -> tuple[list[Any], list[Any], Backward]:
        made: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            outs, residuals, backward = forward(values, perturbed)
            made[:] = [len(outs), backward]
            return [*outs, *residuals]

        values, dims = batch.run(flat, primals, batch.dims)
        count, backward = made
        in_dims, _ = partition(perturbed, batch.dims)
        suspects = [d is None for d in dims[:count]]
        if not batch.settled and any(suspects) and any(d is not None for d in in_dims):
            avals = [
                aval_of(v) if d is None else unbatched_aval(aval_of(v), d)
                for v, d in zip(values, dims, strict=True)
            ]
            varying = reaching_batched(backward, avals[count:], avals[:count], suspects, in_dims)
            batch.note([0 if varies else None for varies in varying])
        outs = batch.results(values[:count], dims[:count])
        return (
            outs,
            values[count:],
            batched_backward(backward, batch, dims[count:], in_dims),
        )

    return run


class CustomVJPCall(CustomCall):
    """A staged call of a `custom_vjp` function."""

    name = "custom_vjp_call"
    primal_rule = "fwd"
    generates_nan = False

    def bind(self, *args: Any, subfuns: Sequence[Any] = (), **params: Any) -> Any:
        """Apply the primitive in the current trace.

        Args:
            *args: the operands.
            subfuns: the function, its forward and its backward rule, of flat values, from
                interpreters, whose `params` have no program.
            **params: the parameters.
        """
        if "call_jaxpr" in params:
            # By the class: a bound method takes C stack, of which Python 3.12 allows little.
            return Primitive.bind(self, *args, **params)
        call = _VJPCall.of_flat(*subfuns, **params)
        return state.trace.process_custom_rule(call, args)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        name, fwd, bwd = params["name"], params["fwd"], params["bwd"]
        args = split_captured(name, params["num_consts"], primals, tangents)
        if all(type(t) is Zero for t in args[1]):
            outs = self.bind(*primals, **params)
            return outs, [Zero.of(o) for o in outs]
        return differentiate(fwd.rule, name, bwd.__name__, *args, params["num_last"])

    def check_rule(
        self, with_leaves: Callable[..., tuple[list[Any], Any]], params: dict[str, Any]
    ) -> None:
        fwd = params["fwd"]

        def run(
            primals: Sequence[Any], perturbed: Sequence[bool]
        ) -> tuple[list[Any], list[Any], Backward]:
            leaves, (outs, residuals, backward) = with_leaves(fwd.rule, primals, perturbed)
            count = len(leaves)
            return [*leaves, *outs], residuals, lambda res, cts: backward(res, cts[count:])

        params["fwd"] = NamedRule(fwd.__name__, run)

    def batched_rule(self, rule: NamedRule, batch: Batch) -> NamedRule:
        return NamedRule(rule.__name__, batched_forward(rule.rule, batch))

    def effects_of_rule(
        self, rule: NamedRule, avals: Sequence[Any], info: DebugInfo
    ) -> RefEffects | None:
        def run(*primals: Any) -> list[Any]:
            return list(rule(primals, [True] * len(primals))[0])

        return effects_of_rule(run, avals, info)


custom_vjp_call_p: Final = CustomVJPCall()


class _VJPCall(CustomLiveCall):
    """A call of a `custom_vjp` function."""

    primitive = custom_vjp_call_p

    @classmethod
    def of_flat(
        cls, function: Any, fwd: Any, bwd: Any, *, out_trees: OutTrees, symbolic_zeros: bool
    ) -> CustomRuleCall:
        """The call that three functions of flat values are."""
        forward = forward_of_flat(fwd.call_wrapped, bwd.call_wrapped, out_trees, symbolic_zeros)
        rules = {
            "fwd": NamedRule(name_of(fwd), forward),
            "bwd": NamedRule(name_of(bwd), bwd.call_wrapped),
        }
        info = partial(info_of, function, "custom_vjp")
        return cls(function.call_wrapped, rules, info, symbolic_zeros, ())

    def differentiate(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        fwd, bwd = self.rules["fwd"], self.rules["bwd"]
        name = self.info().function
        rule = partial(differentiate, fwd.rule, name, bwd.__name__, primals, tangents)
        return call_inside(self.refs, self.info, rule)

    @staticmethod
    def with_last(result: Any, last: list[Any]) -> Any:
        outs, residuals, backward = result
        count = len(outs)
        return [*outs, *last], residuals, lambda values, cts: backward(values, cts[:count])


def _forward_of(
    function: UserFunction,
    fwd: Callable[..., Any],
    bwd: Callable[..., Any],
    symbolic_zeros: bool,
    optimize_remat: bool,
) -> Forward:
    """The user's rules as functions of flat values."""

    def run(
        primals: Sequence[Any], perturbed: Sequence[bool]
    ) -> tuple[list[Any], list[Any], Backward]:
        trees: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            leaves: list[Any] = [as_result(v) for v in values]
            if symbolic_zeros:
                leaves = [CustomVJPPrimal(v, p) for v, p in zip(leaves, perturbed, strict=True)]
            args = function.merged(function.in_tree.unflatten(leaves))
            with at_own_lines(), users_code(function.signature):
                pair = fwd(*args)
            outs, out_tree, residuals, residual_tree = _checked_pair(function, fwd, pair)
            trees[:] = [out_tree, residual_tree]
            return [*outs, *residuals]

        if optimize_remat:
            values = call_forward(flat, lambda: trees[0].num_leaves, function, primals)
        else:
            values = flat(*primals)
        out_tree, residual_tree = trees
        count = out_tree.num_leaves
        avals = [aval_of(p) for p in primals]
        backward = _backward_of(
            function, bwd, symbolic_zeros, (out_tree, residual_tree), avals, perturbed
        )
        return values[:count], values[count:], backward

    return run


def _checked_pair(
    function: UserFunction, fwd: Callable[..., Any], pair: Any
) -> tuple[list[Any], Any, list[Any], Any]:
    """The leaves and structures of results and residuals."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(
            f"custom_vjp: the forward rule {described(fwd)} of {function.signature} must return a "
            "pair (results of the function, residuals: what the backward rule needs), got "
            f"{type(pair).__name__}"
            + (f" of length {len(pair)}" if isinstance(pair, (tuple, list)) else "")
        )
    outs, out_tree = function.checked_results(pair[0], fwd)
    residual_values = without_references(pair[1])
    residuals, residual_tree = pytree.flatten(residual_values)
    names = [
        f"residuals{pytree.keystr(p)}" for p, _ in pytree.flatten_with_path(residual_values)[0]
    ]
    check_array_leaves(residuals, lambda: names, f"the forward rule {described(fwd)}")
    values = [as_operand(r, "custom_vjp", n) for r, n in zip(residuals, names, strict=True)]
    return outs, out_tree, values, residual_tree


def _backward_of(
    function: UserFunction,
    bwd: Callable[..., Any],
    symbolic_zeros: bool,
    trees: tuple[Any, Any],
    avals: Sequence[Any],
    perturbed: Sequence[bool],
) -> Backward:
    out_tree, residual_tree = trees

    def run(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        rule_cts = out_tree.unflatten([for_rule(ct, symbolic_zeros) for ct in cotangents])
        with at_own_lines(), users_code(function.signature):
            in_cts = bwd(*function.extra, residual_tree.unflatten(residuals), rule_cts)
        return partition(perturbed, _checked_cotangents(function, bwd, in_cts, avals))[0]

    return run


def _checked_cotangents(
    function: UserFunction, bwd: Callable[..., Any], found: Any, avals: Sequence[Any]
) -> list[Any]:
    in_tree = function.in_tree
    rule = f"custom_vjp: the backward rule {described(bwd)} of {function.signature}"
    if isinstance(found, list):
        found = tuple(found)
    if not isinstance(found, tuple) or len(found) != len(in_tree.children()):
        got = f"a tuple of {len(found)}" if isinstance(found, tuple) else type(found).__name__
        raise TypeError(
            f"{rule} must return a tuple with one cotangent for each argument that is "
            f"differentiated, {len(in_tree.children())} in all, got {got}"
            + ("; write (ct,) for a tuple of one" if not isinstance(found, tuple) else "")
        )
    leaves = _up_to_none(in_tree, found)
    if leaves is None:
        difference = pytree.structure_difference(
            in_tree, found, "the arguments", "the result of the rule"
        )
        raise TypeError(
            f"{rule} must return cotangents with the structure of the arguments, or None where "
            f"they are zero:\n{difference}"
        )
    checked = []
    for i, (aval, ct) in enumerate(zip(avals, leaves, strict=True)):
        expected = aval.tangent()
        # The cotangent of an integer is meaningless and ignored.
        if ct is None or expected.dtype == dtypes.float0:
            checked.append(Zero(expected))
            continue
        name = function.names_of_leaves()[i]
        if type(ct) is SymbolicZero:
            ct = Zero(ct.aval)
        else:
            check_array_leaves([ct], lambda: [name], f"the backward rule {described(bwd)}")  # noqa: B023  # called at once
            ct = converted(ct, expected)
        actual = ct.aval if type(ct) is Zero else aval_of(ct)
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            kind = ValueError if actual.shape != expected.shape else TypeError
            raise kind(
                f"{rule} must return for the argument {name} a cotangent of its type, "
                f"{expected.short_name()}, got {actual.short_name()}"
            )
        checked.append(ct)
    return checked


def _up_to_none(tree: Any, given: Any) -> list[Any] | None:
    """The leaves of `given` for a structure, where None (zeros) may stand for a whole subtree.

    As may any cotangent where the policy lets it. The result is None if the two do not match.
    """
    leaves, structure = pytree.flatten(given, lambda x: x is None)
    rest = iter(leaves)
    out: list[Any] = []

    def walk(expected: Any, part: Any) -> bool:
        if pytree.treedef_is_leaf(part):
            leaf = next(rest)
            for_all = leaf is None or not strictness().cotangents_have_their_structure
            if not for_all and not pytree.treedef_is_leaf(expected):
                return False
            out.extend([leaf] * expected.num_leaves)
            return True
        children, parts = expected.children(), part.children()
        return (
            expected.node_data() == part.node_data()
            and len(children) == len(parts)
            and all(map(walk, children, parts))
        )

    return out if walk(tree, structure) else None


@bounded
class custom_vjp(HasRules, Generic[P, R]):
    """A function with a custom derivative rule for reverse mode.

    Under `grad` and `vjp`, the forward rule replaces the function, and the backward rule later uses
    its residuals. Forward mode (`jvp`, `jacfwd`) is an error: use `custom_jvp` for both modes.
    Without differentiation, the function itself runs.

    Args:
        fun: a function from arrays and trees of them to the same.
        nondiff_argnums: numbers of arguments that are not differentiated, such as functions and
            strings. The forward rule gets them in place, the backward rule as its first arguments.
            They cannot hold traced values.
        nondiff_argnames: names of such arguments.

    Raises:
        ValueError: there is no such parameter.

    Differs:
        Cotangents that a backward rule returns are converted to the dtypes of the arguments.
        Where their kind does not allow that, and where shapes or structures differ (for staged
        rules those of the primal results too), the error names the argument, the rule and its
        line.

        >>> @dt.custom_vjp
        ... def double(x):
        ...     return 2 * x
        >>> double.defvjp(lambda x: (2 * x, None), lambda _, ct: (ct.astype("float16") * 2,))
        >>> print(dt.grad(double)(1.0).dtype)
        float32

        `optimize_remat` and `symbolic_zeros` of one function are refused together.

        >>> dt.custom_vjp(len).defvjp(len, len, symbolic_zeros=True, optimize_remat=True)
        Traceback (most recent call last):
            ...
        NotImplementedError: defvjp: symbolic_zeros and optimize_remat cannot be ...

        Under `vmap`, a result that does not depend on the batch has a batch dimension if the rules
        say that it does: each element has its own gradient. In JAX each has that of the sum.

        >>> @dt.custom_vjp
        ... def zero(x):
        ...     return jnp.zeros_like(x)
        >>> zero.defvjp(lambda x: (jnp.zeros_like(x), None), lambda _, ct: (5.0 * ct,))
        >>> dt.grad(lambda x: dt.vmap(zero)(x) @ jnp.array([1.0, 2.0]))(jnp.ones(2))
        Array([ 5., 10.], dtype=float32)

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> @dt.custom_vjp
        ... def clip_gradient(lo, hi, x):
        ...     return x
        >>> clip_gradient.defvjp(
        ...     lambda lo, hi, x: (x, (lo, hi)),
        ...     lambda bounds, ct: (None, None, jnp.clip(ct, bounds[0], bounds[1])),
        ... )
        >>> float(dt.grad(lambda x: 10.0 * clip_gradient(-1.0, 1.0, x))(2.0))
        1.0
    """

    fun: Callable[P, R]
    nondiff_argnums: tuple[int, ...]
    fwd: Callable[..., Any] | None
    bwd: Callable[..., Any] | None
    symbolic_zeros: bool
    optimize_remat: bool

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ) -> None:
        self._signature = NondiffSignature(fun, "custom_vjp", nondiff_argnums, nondiff_argnames)
        update_wrapper(self, fun)
        self._memory = Memory()
        self.fun = fun
        self.nondiff_argnums = self._signature.nondiff
        self.fwd = self.bwd = None
        self.symbolic_zeros = self.optimize_remat = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Define the derivative rule.

        Args:
            fwd: takes the arguments of the function and returns a pair: the result of the function,
                and the residuals, a tree of arrays that is saved for `bwd`.
            bwd: takes the arguments that are not differentiated, if any, the residuals, and a
                cotangent with the structure of the result. It returns a tuple with a cotangent for
                each differentiated argument; None stands for zeros.
            symbolic_zeros: whether `fwd` gets each leaf of its arguments as a `CustomVJPPrimal`,
                which tells if it is perturbed, and `bwd` gets a `SymbolicZero` for each cotangent
                that is known to be zero.
            optimize_remat: whether the function may run instead of `fwd` if the residuals are
                unused. `fwd` must then have no side effects.
            generic_batching: has no effect: `vmap` always treats results that do not depend on the
                batch as JAX does if it is True.
        """
        check_callable(fwd, "defvjp")
        check_callable(bwd, "defvjp")
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros = bool(symbolic_zeros)
        self.optimize_remat = bool(optimize_remat)
        if self.symbolic_zeros and self.optimize_remat:
            raise NotImplementedError(
                "defvjp: symbolic_zeros and optimize_remat cannot be combined: what is perturbed "
                "is not known where the function is chosen"
            )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"no derivative rule is defined for the custom_vjp function {self._signature}: "
                "define one with its method defvjp, or call the function without custom_vjp"
            )
        positional: tuple[Any, ...] = self._signature.resolve(args, kwargs)
        for i in self.nondiff_argnums:
            if i < len(positional):
                self._check_not_traced(i, positional[i])
        function, leaves = UserFunction.of_call(self._signature, positional)
        forward = _forward_of(
            function, self.fwd, self.bwd, self.symbolic_zeros, self.optimize_remat
        )
        call = _VJPCall(
            function,
            {
                "fwd": NamedRule(name_of(self.fwd), forward),
                "bwd": NamedRule(name_of(self.bwd), self.bwd),
            },
            function.debug_info,
            self.symbolic_zeros,
            function.refs,
        )
        outs = state.trace.process_custom_rule(call, leaves)
        result: R = function.out_tree.unflatten(map(as_result, outs))
        return result

    def _check_not_traced(self, number: int, value: Any) -> None:
        for leaf in pytree.leaves(value):
            if isinstance(leaf, Tracer):
                raise UnexpectedTracerError(
                    f"the argument {number} of the custom_vjp function {self._signature}, which "
                    f"nondiff_argnums names, holds a traced value: {leaf.origin()}, of type "
                    f"{leaf.aval!r}. Such arguments are for what is never traced, functions and "
                    "strings for example: leave the number of this one out of nondiff_argnums, and "
                    "let the backward rule return None for it"
                )
