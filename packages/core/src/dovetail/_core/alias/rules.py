"""Rules of primitives in JAX's form: dictionaries that are views of the primitives themselves.

A rule that is set through a view is an ordinary rule of its primitive; one that is read was written
by whoever defined the primitive. What differs between JAX's form of a rule and ours is how it is
told which operands are linear, and is translated both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, Final

from dovetail._core.base.errors import MissingRuleError
from dovetail._core.basis.elementwise import add_tangents
from dovetail._core.basis.structural import (
    broadcast_batch,
    instantiate_zeros,
    is_linear,
    move_dimension,
)
from dovetail._core.ir.avals import AbstractValue
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.trace.named_axes import BatchAxis
from dovetail._core.trace.primitive import Primitive, RuntimePrimitive, primitives
from dovetail._core.trace.state import state
from dovetail._core.trace.zeros import Unwanted, Zero

Rule = Callable[..., Any]

not_mapped: Final = None
"""The batch dimension of a value that has none."""


class UndefinedPrimal:
    """Stands for an operand in which a transposition rule is linear.

    Args:
        aval: its type.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


def is_undefined_primal(x: object) -> bool:
    """Whether a transposition rule got an operand without a value, in which it is linear."""
    return type(x) is UndefinedPrimal


class RuleView(MutableMapping[Primitive, Rule]):
    """The rules of one kind of all primitives, by primitive.

    Args:
        kind: the name of the rule.
        ours: makes our form of a rule in JAX's form.
        theirs: makes JAX's form of the rule of a primitive.
        prepare: called with a primitive before its rule is set.
    """

    def __init__(
        self,
        kind: str,
        ours: Callable[[Rule], Rule],
        theirs: Callable[[Primitive], Rule],
        prepare: Callable[[RuntimePrimitive], None] = lambda primitive: None,
    ) -> None:
        self._kind = kind
        self._ours = ours
        self._theirs = theirs
        self._prepare = prepare
        #: What was set, by primitive, to give back the same.
        self._written: dict[Primitive, Rule] = {}

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        ours = self._ours(rule)
        if isinstance(primitive, RuntimePrimitive):
            self._prepare(primitive)
            primitive.define(self._kind, ours)
        elif primitive.has_rule(self._kind):
            raise TypeError(
                f"the primitive {primitive} has a rule {self._kind!r} in its class, which cannot "
                "be replaced: define a primitive of your own"
            )
        else:
            # A rule is a method of the class, of which the primitive is the one instance.
            setattr(type(primitive), self._kind, staticmethod(ours))
        self._written[primitive] = rule

    def __getitem__(self, primitive: Primitive) -> Rule:
        written = self._written.get(primitive)
        if written is not None:
            return written
        if not primitive.has_rule(self._kind):
            raise KeyError(primitive)
        return self._theirs(primitive)

    def __delitem__(self, primitive: Primitive) -> None:
        raise TypeError(f"rules of primitives are not taken away: {primitive}, {self._kind}")

    def __contains__(self, primitive: object) -> bool:
        return isinstance(primitive, Primitive) and primitive.has_rule(self._kind)

    def __iter__(self) -> Iterator[Primitive]:
        return (p for p in primitives().values() if p.has_rule(self._kind))

    def __len__(self) -> int:
        return sum(1 for _ in self)


# Derivatives


def _takes_zeros(primitive: RuntimePrimitive) -> None:
    vars(primitive).update(accepts_zeros=True)


def _values(operands: Sequence[Any]) -> tuple[Any, ...]:
    """Operands as rules in JAX's form know them: literals of jaxprs are arrays there."""
    return tuple([instantiate_zeros(x) if type(x) is Literal else x for x in operands])


def _jvp_from(rule: Rule) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return rule(_values(primals), _values(tangents), **params)

    return jvp


def _jvp_of(primitive: Primitive) -> Rule:
    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        if not primitive.accepts_zeros:
            tangents = [instantiate_zeros(t) for t in tangents]
        return primitive.jvp(primals, tangents, **params)

    return rule


def _transposition_from(rule: Rule) -> Rule:
    def transpose(cotangent: Any, *args: Any, **params: Any) -> Any:
        given = [UndefinedPrimal(_aval_of(a)) if is_linear(a) else a for a in args]
        several = isinstance(cotangent, (list, tuple))
        cotangent = list(_values(cotangent)) if several else _values([cotangent])[0]
        results = rule(cotangent, *_values(given), **params)
        return [None] * len(args) if type(results) is Zero else results

    return transpose


def _aval_of(operand: Any) -> Any:
    return operand.aval if type(operand) is Unwanted else operand


def _transposition_of(primitive: Primitive) -> Rule:
    def rule(cotangent: Any, *args: Any, **params: Any) -> Any:
        if not primitive.accepts_zeros:
            several = primitive.multiple_results
            cotangent = (
                [instantiate_zeros(ct) for ct in cotangent]
                if several
                else instantiate_zeros(cotangent)
            )
        given = [a.aval if is_undefined_primal(a) else a for a in args]
        return primitive.transpose(cotangent, *given, **params)

    return rule


primitive_jvps: Final = RuleView("jvp", _jvp_from, _jvp_of, _takes_zeros)
"""Rules that map primals and tangents, some `Zero`, to results and their tangents."""

primitive_transposes: Final = RuleView(
    "transpose", _transposition_from, _transposition_of, _takes_zeros
)
"""Rules that map cotangents of results to those of operands, the linear ones `UndefinedPrimal`."""


def deflinear2(primitive: RuntimePrimitive, transpose_rule: Rule) -> None:
    """Give a primitive that is linear in all operands its derivatives.

    Args:
        primitive: the primitive.
        transpose_rule: maps the cotangent and the operands to cotangents of the operands.
    """

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            if primitive.multiple_results:
                return out, [Zero.of(o) for o in out]
            return out, Zero.of(out)
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose_rule


def deflinear(primitive: RuntimePrimitive, transpose_rule: Rule) -> None:
    """As `deflinear2`, with a rule that takes the cotangent alone."""
    deflinear2(primitive, lambda cotangent, *args, **params: transpose_rule(cotangent, **params))


def defjvp(primitive: RuntimePrimitive, *rules: Rule | None) -> None:
    """Give a primitive of one result its derivative, operand by operand.

    Args:
        primitive: the primitive.
        *rules: for each operand, a function of its tangent and all operands; None for one
            without influence on the tangent.
    """
    defjvp2(
        primitive,
        *[
            None if rule is None else lambda t, out, *args, _rule=rule, **p: _rule(t, *args, **p)
            for rule in rules
        ],
    )


def defjvp2(primitive: RuntimePrimitive, *rules: Rule | None) -> None:
    """As `defjvp`; the functions get the result between the tangent and the operands."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        total: Any = Zero.of(out)
        for rule, tangent in zip(rules, tangents, strict=True):
            if rule is not None and type(tangent) is not Zero:
                part = rule(tangent, out, *primals, **params)
                total = part if type(total) is Zero else add_tangents(total, part)
        return out, total

    primitive_jvps[primitive] = jvp


def defbilinear(primitive: RuntimePrimitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Give a primitive that is linear in each of two operands its derivatives.

    Args:
        primitive: the primitive.
        lhs_rule: maps cotangent and both operands to the cotangent of the first, which arrives as
            `UndefinedPrimal`.
        rhs_rule: the same for the second.
    """
    defjvp(
        primitive,
        lambda t, x, y, **params: primitive.bind(t, y, **params),
        lambda t, x, y, **params: primitive.bind(x, t, **params),
    )

    def transpose(cotangent: Any, x: Any, y: Any, **params: Any) -> list[Any]:
        if is_undefined_primal(x):
            return [lhs_rule(cotangent, x, y, **params), None]
        return [None, rhs_rule(cotangent, x, y, **params)]

    primitive_transposes[primitive] = transpose


def get_primitive_transpose(primitive: Primitive) -> Rule:
    """The transposition rule of a primitive.

    Raises:
        NotImplementedError: it has none.
    """
    try:
        return primitive_transposes[primitive]
    except KeyError:
        raise MissingRuleError(f"the primitive {primitive} has no transposition rule") from None


# Vectorization


class AxisData:
    """The axis of a batch, as JAX describes it to batching rules.

    Args:
        axis: the axis.
    """

    __slots__ = ("explicit_mesh_axis", "name", "size", "spmd_name")

    def __init__(self, axis: BatchAxis) -> None:
        self.name = axis.name
        self.size = axis.size
        self.spmd_name = axis.spmd_axis_name or None
        self.explicit_mesh_axis = None


def _current_axis() -> AxisData:
    axis = state.batch_axis
    if axis is None:
        raise RuntimeError("a batching rule was called outside of vmap")
    return AxisData(axis)


def _batching_from(rule: Rule) -> Rule:
    return lambda args, dims, **params: rule(_values(args), tuple(dims), **params)


def _batching_of(primitive: Primitive) -> Rule:
    def rule(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return primitive.batch(args, dims, **params)

    return rule


def _with_axis_data(rule: Rule) -> Rule:
    return lambda args, dims, **params: rule(_current_axis(), _values(args), tuple(dims), **params)


def _axis_data_batching_of(primitive: Primitive) -> Rule:
    def rule(axis_data: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        return primitive.batch(args, dims, **params)

    return rule


def _with_axis(rule: Rule) -> Rule:
    def batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        axis = _current_axis()
        return rule(axis.size, axis.name, None, _values(args), tuple(dims), **params)

    return batch


def _axis_batching_of(primitive: Primitive) -> Rule:
    def rule(
        size: int, name: Any, kind: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> Any:
        return primitive.batch(args, dims, **params)

    return rule


primitive_batchers: Final = RuleView("batch", _batching_from, _batching_of)
"""Rules that map operands and their batch dimensions to results and theirs."""

fancy_primitive_batchers: Final = RuleView("batch", _with_axis_data, _axis_data_batching_of)
"""The same, whose rules get the axis of the batch first."""

axis_primitive_batchers: Final = RuleView("batch", _with_axis, _axis_batching_of)
"""The same, whose rules get the size of the axis, its name and None first."""


def defvectorized(primitive: RuntimePrimitive) -> None:
    """Give a primitive that is applied to each element of its operands its batching rule."""

    def batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        wanted = next(d for d in dims if d is not None)
        moved = [
            a if d is None else move_dimension(a, d, wanted)
            for a, d in zip(args, dims, strict=True)
        ]
        return primitive.bind(*moved, **params), wanted

    primitive_batchers[primitive] = batch


def defbroadcasting(primitive: RuntimePrimitive) -> None:
    """The same for a primitive of several operands of one shape."""

    def batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, int]:
        size = _current_axis().size
        return primitive.bind(
            *[bdim_at_front(a, d, size) for a, d in zip(args, dims, strict=True)], **params
        ), 0

    primitive_batchers[primitive] = batch


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """A value with its batch dimension first; repeated if it has none."""
    return broadcast(x, size, 0, mesh_axis) if bdim is None else move_dimension(x, bdim, 0)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """A value repeated along a new dimension."""
    return broadcast_batch(x, sz, axis)
