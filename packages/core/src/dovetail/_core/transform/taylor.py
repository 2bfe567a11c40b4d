"""Taylor series: each value travels with the Taylor coefficients of a curve through it.

The effect of a primitive on curves is derived from its jvp rule, which is staged once: the rule
computes the derivative of the result from those of the operands. There are five cases:

- No derivative: the result is constant.
- Varying values are read only to decide something (comparisons, signs, positions): the map is
  piecewise affine, and applies to each coefficient.
- For one operand at a time, the rule applies the primitive itself to the tangent: a product, whose
  coefficients are sums of products.
- The rule applies the primitive itself to a right-hand side that contains the result: the solution
  of a linear system, which is solved for one coefficient after another.
- Everything else is a differential equation: coefficient k of the result is coefficient k - 1 of
  its derivative, divided by k, and needs the coefficients of the result below k.

Coefficients are computed on demand, so the last case gives the recurrences that one would write by
hand: the number of operations grows with the square of the order. A primitive that holds jaxprs, or
has a better recurrence, has its own rule `taylor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base import caches, config, dtypes
from dovetail._core.base.flags import Flags, merge, partition
from dovetail._core.basis.elementwise import add_tangents, mul
from dovetail._core.basis.families import NoGradient
from dovetail._core.basis.operands import literal_like
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, JaxprEqn, Literal
from dovetail._core.trace.state import Trace, set_jit_key, state, use_trace
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero, with_zeros, without_zeros
from dovetail._core.transform.jvp import PrimalTracer
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.trace.primitive import Primitive

#: Cached results of primitives applied to curves; it keeps the objects behind its keys alive.
Memory = dict[Any, tuple[Any, list[Any]]]


class Series:
    """The Taylor coefficients of a curve, each computed on first use.

    A coefficient that vanishes is a `Zero`.

    Args:
        find: a function from an order to the coefficient.
    """

    __slots__ = ("_find", "_terms")

    def __init__(self, find: Callable[[int], Any]) -> None:
        self._find = find
        self._terms: dict[int, Any] = {}

    def __getitem__(self, order: int) -> Any:
        if order not in self._terms:
            self._terms[order] = self._find(order)
        return self._terms[order]

    def forget(self) -> None:
        """Drop the function that computes further coefficients, which holds the series itself."""
        del self._find


def series_of(value: Any, terms: Sequence[Any] = ()) -> Series:
    """The curve through a value with the coefficients `terms`, and no further ones."""

    def find(order: int) -> Any:
        if order == 0:
            return value
        return terms[order - 1] if order <= len(terms) else Zero.of(value)

    return Series(find)


def _derivative(series: Series, memory: Memory) -> Series:
    key = ("derivative", id(series))
    if key not in memory:
        slope = Series(lambda order: scaled(series[order + 1], order + 1))
        memory[key] = (series, [slope])
    derivative: Series = memory[key][1][0]
    return derivative


def scaled(term: Any, factor: float) -> Any:
    """A coefficient times a number."""
    if type(term) is Zero or factor == 1:
        return term
    return mul(term, literal_like(factor, term))


class TangentProgram:
    """How the tangents of a primitive's results follow from those of some operands.

    Args:
        primitive: the primitive.
        params: its parameters.
        closed: its jvp rule, staged: from operands and tangents to results and tangents.
        nonzero: which operands have a tangent.
        nonzero_out: which results have one.

    Attributes:
        nonzero_out: which results have a tangent.
        outs: the tangents of results, None where there is none.
        affine: whether the tangents stay the same as the operands vary.
        own: the position of the replaced operand, if the program ends by applying the primitive
            itself with one operand replaced.
    """

    def __init__(
        self,
        primitive: Primitive,
        params: dict[str, Any],
        closed: ClosedJaxpr,
        nonzero: Flags,
        nonzero_out: Sequence[bool],
    ) -> None:
        jaxpr = closed.jaxpr
        count, results = len(nonzero), len(nonzero_out)
        self.nonzero_out = tuple(nonzero_out)
        self.primals = jaxpr.invars[:count]
        self.tangents = merge(nonzero, jaxpr.invars[count:], repeat(None))
        self.outs = merge(nonzero_out, jaxpr.outvars[results:], repeat(None))
        self.constants: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        # Results are not computed again, but looked up.
        outside = {*jaxpr.invars, *jaxpr.constvars}
        self.results: dict[Any, int] = {
            v: i
            for i, v in enumerate(jaxpr.outvars[:results])
            if type(v) is not Literal and v not in outside
        }
        self.eqns = self._needed(jaxpr.eqns)
        curves = {v for v, i in self.results.items() if nonzero_out[i]}
        operands = set(partition(nonzero, self.primals)[0])
        self.along = self._along(self.eqns)
        self.affine = not self._reads(self.eqns, operands | curves)
        self.own = self._applied(primitive, params)
        #: Whether the program is the primitive itself, applied to the tangent, not the operand.
        self.linear = (
            self.own is not None
            and len(self.eqns) == 1
            and self.eqns[0].invars[self.own] is self.tangents[self.own]
        )
        #: Whether the right-hand side reads no operand that varies.
        self.solves = self.own is not None and not self._reads(self.eqns[:-1], operands)

    def _needed(self, eqns: Sequence[JaxprEqn]) -> list[JaxprEqn]:
        needed = {v for v in self.outs if v is not None}
        needed_eqns = []
        for eqn in reversed(eqns):
            if any(v in needed and v not in self.results for v in eqn.outvars):
                needed_eqns.append(eqn)
                needed.update(v for v in eqn.invars if type(v) is not Literal)
        needed_eqns.reverse()
        return needed_eqns

    def _along(self, eqns: Sequence[JaxprEqn]) -> set[Any]:
        """The variables that depend on a tangent."""
        along = {v for v in self.tangents if v is not None}
        for eqn in eqns:
            if any(v in along for v in eqn.invars if type(v) is not Literal):
                along.update(eqn.outvars)
        return along

    def _reads(self, eqns: Sequence[JaxprEqn], moving: set[Any]) -> bool:
        """Whether anything that depends on a tangent also depends smoothly on a varying value."""
        moving = set(moving)
        for eqn in eqns:
            reads = any(v in moving for v in eqn.invars if type(v) is not Literal)
            if not reads or _is_discrete(eqn):
                continue
            if any(v in self.along for v in eqn.outvars):
                return True
            moving.update(eqn.outvars)
        return any(v in moving for v in self.outs if v is not None and type(v) is not Literal)

    def _applied(self, primitive: Primitive, params: dict[str, Any]) -> int | None:
        if len(self.outs) != 1 or not self.eqns:
            return None
        last = self.eqns[-1]
        if (
            last.primitive is not primitive
            or last.outvars[0] is not self.outs[0]
            or len(last.invars) != len(self.primals)
            or last.params != params
        ):
            return None
        others = [
            i for i, (v, p) in enumerate(zip(last.invars, self.primals, strict=True)) if v is not p
        ]
        return others[0] if len(others) == 1 else None

    def fixed(self, primals: Sequence[Any], results: Sequence[Any]) -> dict[Any, Any]:
        """The values of all variables that depend on no tangent."""
        values = dict(self.constants)
        values.update(zip(self.primals, primals, strict=True))
        values.update((v, results[i]) for v, i in self.results.items())
        for eqn in self.eqns:
            if not any(v in self.along for v in eqn.outvars):
                self._apply(eqn, values)
        return values

    def _apply(self, eqn: JaxprEqn, values: dict[Any, Any]) -> None:
        out = eqn.primitive.bind(*[_read(v, values) for v in eqn.invars], **eqn.params)
        outs = out if eqn.primitive.multiple_results else [out]
        pairs = zip(eqn.outvars, outs, strict=True)
        values.update((v, value) for v, value in pairs if v not in self.results)

    def tangent(self, fixed: dict[Any, Any], tangents: Sequence[Any]) -> list[Any]:
        """The tangents of the results, None where there is none."""
        values = self._run(fixed, tangents, self.eqns)
        return [None if v is None else _read(v, values) for v in self.outs]

    def right_side(self, fixed: dict[Any, Any], tangents: Sequence[Any]) -> Any:
        """The operand that the primitive itself is applied to at the end."""
        assert self.own is not None
        values = self._run(fixed, tangents, self.eqns[:-1])
        return _read(self.eqns[-1].invars[self.own], values)

    def _run(
        self, fixed: dict[Any, Any], tangents: Sequence[Any], eqns: Sequence[JaxprEqn]
    ) -> dict[Any, Any]:
        values = dict(fixed)
        values.update((v, t) for v, t in zip(self.tangents, tangents, strict=True) if v is not None)
        for eqn in eqns:
            if any(v in self.along for v in eqn.outvars):
                self._apply(eqn, values)
        return values

    def expanded(
        self, operands: Sequence[Any], results: Sequence[Series], memory: Memory
    ) -> list[Any]:
        """The tangents of the results as curves, with everything varying."""
        values = dict(self.constants)
        values.update(zip(self.primals, operands, strict=True))
        values.update((v, results[i]) for v, i in self.results.items())
        for v, operand in zip(self.tangents, operands, strict=True):
            if v is not None:
                values[v] = _derivative(operand, memory)
        for eqn in self.eqns:
            outs = expand(
                eqn.primitive, [_read(v, values) for v in eqn.invars], dict(eqn.params), memory
            )
            pairs = zip(eqn.outvars, outs, strict=True)
            values.update((v, out) for v, out in pairs if v not in self.results)
        return [None if v is None else _read(v, values) for v in self.outs]


def _read(atom: Any, values: dict[Any, Any]) -> Any:
    return atom if type(atom) is Literal else values[atom]


def _is_discrete(eqn: JaxprEqn) -> bool:
    """Whether the results are locally constant."""
    return isinstance(eqn.primitive, NoGradient) or not any(_is_smooth(v.aval) for v in eqn.outvars)


def _is_smooth(aval: Any) -> bool:
    return not dtypes.is_extended(aval.dtype) and dtypes.kind_of(aval.dtype) in ("f", "c")


_programs: Final[dict[Any, TangentProgram]] = {}
caches.register(_programs.clear)
_MOST_PROGRAMS: Final = 4096


def tangent_program(
    primitive: Primitive, avals: tuple[Any, ...], params: dict[str, Any], nonzero: Flags
) -> TangentProgram:
    """The tangent program of a primitive, staged once for the same types and parameters."""
    key = (primitive, avals, tuple(params.items()), nonzero, config.trace_key())
    try:
        cached = _programs.get(key)
        lasting = True
    except TypeError:  # a parameter that cannot be hashed
        cached, lasting = None, False
    if cached is not None:
        return cached
    program = _staged_program(primitive, avals, params, nonzero)
    if lasting and not any(isinstance(value, Tracer) for value in program.constants.values()):
        if len(_programs) >= _MOST_PROGRAMS:
            _programs.clear()
        _programs[key] = program
    return program


def _staged_program(
    primitive: Primitive, avals: tuple[Any, ...], params: dict[str, Any], nonzero: Flags
) -> TangentProgram:
    nonzero_out: list[bool] = []

    def rule(*args: Any) -> list[Any]:
        primals = args[: len(avals)]
        tangents = with_zeros(nonzero, args[len(avals) :], primals)
        if not primitive.accepts_zeros:
            tangents = [instantiate_zeros(t) for t in tangents]
        out, tangent = primitive.jvp(primals, tangents, **params)
        outs, out_tangents = (out, tangent) if primitive.multiple_results else ([out], [tangent])
        nonzero_out[:], nonzero_out_tangents = without_zeros(out_tangents)
        return [*outs, *nonzero_out_tangents]

    tangent_avals = [a.tangent() for a in partition(nonzero, avals)[0]]
    closed = stage(rule, [*avals, *tangent_avals], DebugInfo("jet", primitive.name))
    return TangentProgram(primitive, params, closed, nonzero, nonzero_out)


def expand(
    primitive: Primitive, operands: Sequence[Any], params: dict[str, Any], memory: Memory
) -> list[Any]:
    """Apply a primitive to values and curves.

    Args:
        primitive: the primitive.
        operands: values, or a `Series` for each one that varies.
        params: parameters of the primitive.
        memory: the results computed before.

    Returns:
        The results: values, or a `Series` for each one that varies.
    """
    places = tuple(map(id, operands))
    try:
        key: Any = (primitive, places, tuple(params.items()))
        cached = memory.get(key)
    except TypeError:  # a parameter that cannot be hashed
        key = (primitive, places, tuple([(name, id(value)) for name, value in params.items()]))
        cached = memory.get(key)
    if cached is not None:
        return cached[1]
    moving = [i for i, x in enumerate(operands) if type(x) is Series]
    if not moving:
        out = primitive.bind(*operands, **params)
        results = list(out) if primitive.multiple_results else [out]
    elif primitive.has_rule("taylor"):
        results = _by_rule(primitive, operands, params)
    else:
        results = _derived(primitive, operands, moving, params, memory)
    memory[key] = ((operands, params), results)
    return results


def _by_rule(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    curves = [_through_value(x) if type(x) is Series else series_of(x) for x in operands]
    count = 1
    if primitive.multiple_results:
        count = len(primitive.inferred(tuple([aval_of(x[0]) for x in curves]), params)[0])
    if not count:
        primitive.bind(*[x[0] for x in curves], **params)

    def term(order: int, number: int) -> Any:
        coefficients = terms(order)
        return coefficients[number] if primitive.multiple_results else coefficients

    results = [Series(lambda order, i=i: term(order, i)) for i in range(count)]  # type: ignore[misc]
    terms = primitive.taylor(curves, results, **params)
    return results


def _through_value(series: Series) -> Series:
    """The curve with an array of zeros for a value that is a `Zero`."""
    return Series(lambda order: series[order] if order else _value(series[0]))


def _value(x: Any) -> Any:
    return instantiate_zeros(x) if type(x) is Zero else x


def _derived(
    primitive: Primitive,
    operands: Sequence[Any],
    moving: Sequence[int],
    params: dict[str, Any],
    memory: Memory,
) -> list[Any]:
    """Apply a primitive to curves by its jvp rule, in the cases that the module docstring lists.

    The case is read off the staged rule, not declared, so primitives of plug-ins have Taylor series
    without a rule. For each coefficient, a product of curves applies the primitive once for each
    way to split the order among its operands, an affine map applies it once, and a system is solved
    once. Only the general case expands the derivative itself as a curve, and shares it through
    `memory` with everything that contains the same derivative. It would be correct for the others
    too, but takes more operations, and divides by the order, which rounds. It is well-founded,
    since coefficient k of the result needs only coefficient k - 1 of its derivative: the derivative
    may contain the result, as that of exp does.

    Nothing is staged until a coefficient is requested. All coefficients of lower orders are
    computed first, so a recurrence finds those that it reads.
    """
    firsts = [x[0] if type(x) is Series else x for x in operands]
    avals = tuple([x.aval if type(x) is Zero else aval_of(x) for x in firsts])

    def program_of(positions: Sequence[int]) -> TangentProgram:
        nonzero = tuple([i in positions for i in range(len(operands))])
        return tangent_program(primitive, avals, params, nonzero)

    def is_product() -> bool:
        """Whether the primitive is linear in each operand that varies."""
        if not all(program_of([i]).linear for i in moving):
            return False
        return len(moving) == 1 or not program_of(moving).affine

    primals = [_value(x) for x in firsts]
    if any(type(x) is Zero for x in firsts) and is_product():
        inferred, _ = primitive.inferred(avals, params)
        results: list[Any] = [
            Zero(a) for a in (inferred if primitive.multiple_results else [inferred])
        ]
    else:
        out = primitive.bind(*primals, **params)
        results = list(out) if primitive.multiple_results else [out]
    if isinstance(primitive, NoGradient):
        return results
    zeros = [r if type(r) is Zero else Zero.of(r) for r in results]

    def applied(changed: dict[int, Any]) -> Any:
        """The only result, with some operands replaced."""
        out = primitive.bind(*[changed.get(i, x) for i, x in enumerate(primals)], **params)
        return out[0] if primitive.multiple_results else out

    def product_terms(order: int) -> list[Any]:
        total: Any = zeros[0]
        for orders in _compositions(order, len(moving)):
            factors = [operands[i][k] for i, k in zip(moving, orders, strict=True)]
            if not any(type(f) is Zero for f in factors):
                total = add_tangents(total, applied(dict(zip(moving, factors, strict=True))))
        return [total]

    fixed: dict[Any, dict[Any, Any]] = {}

    def affine_terms(order: int) -> list[Any]:
        terms = {i: operands[i][order] for i in moving}
        present = tuple([i for i in moving if type(terms[i]) is not Zero])
        if not present:
            return zeros
        chosen = program_of(present)
        if present not in fixed:
            fixed[present] = chosen.fixed(primals, results)
        tangents = [terms.get(i) for i in range(len(operands))]
        out_tangents = chosen.tangent(fixed[present], tangents)
        return [z if t is None else t for t, z in zip(out_tangents, zeros, strict=True)]

    def solution_terms(order: int) -> list[Any]:
        own = program_of(moving).own
        assert own is not None
        side: Any = operands[own][order] if own in moving else zeros[0]
        for k in range(1, order + 1):
            before = curves[0][order - k]
            terms = {i: operands[i][k] for i in moving if i != own}
            present = [i for i in terms if type(terms[i]) is not Zero]
            if present and type(before) is not Zero:
                chosen = program_of(present)
                tangents = [terms.get(i) for i in range(len(operands))]
                part = chosen.right_side(chosen.fixed(primals, [before]), tangents)
                side = add_tangents(side, part)
        if type(side) is Zero:
            return zeros
        return [applied({own: side})]

    derivatives: list[Any] = []

    def equation_terms(order: int) -> list[Any]:
        if not derivatives:
            derivatives[:] = program_of(moving).expanded(operands, curves, memory)
        coefficients = []
        for slope, zero in zip(derivatives, zeros, strict=True):
            if type(slope) is Series:
                coefficients.append(scaled(slope[order - 1], 1 / order))
            else:
                coefficients.append(zero if slope is None or order > 1 else slope)
        return coefficients

    def choose() -> Callable[[int], list[Any]]:
        if is_product():
            return product_terms
        program = program_of(moving)
        if program.affine:
            return affine_terms
        return solution_terms if _solves(program_of, program, moving) else equation_terms

    # The derivative is staged only when a requested coefficient needs it: some primitives have no
    # further derivatives.
    steps: list[Callable[[int], list[Any]]] = []
    terms = [results]

    def term(order: int, number: int) -> Any:
        while order >= len(terms):
            if not steps:
                steps.append(choose())
            terms.append(steps[0](len(terms)))
        return terms[order][number]

    curves = [Series(lambda order, i=i: term(order, i)) for i in range(len(results))]  # type: ignore[misc]
    return [
        curve if _is_smooth(zero.aval) else result
        for curve, result, zero in zip(curves, results, zeros, strict=True)
    ]


def _solves(
    program_of: Callable[[Sequence[int]], TangentProgram],
    program: TangentProgram,
    moving: Sequence[int],
) -> bool:
    """Whether a primitive solves a linear system.

    It is then linear in the operand that its tangent program replaces, and the program for the
    other varying operands alone replaces the same one.
    """
    own = program.own
    if own is None or not program.solves:
        return False
    others = [i for i in moving if i != own]
    return bool(others) and program_of([own]).linear and program_of(others).own == own


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as an ordered sum of `parts` non-negative integers."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


# For the rules of primitives that hold jaxprs: they transform the jaxprs, so they compute all
# coefficients up to an order at once.


def up_to(truncated: Callable[[int], list[list[Any]]]) -> Callable[[int], list[Any]]:
    """A function from an order to coefficients, given one that returns all up to an order."""
    coefficients: list[list[Any]] = []

    def term(order: int) -> list[Any]:
        if order >= len(coefficients):
            coefficients[:] = truncated(order)
        return coefficients[order]

    return term


def terms_of(operands: Sequence[Series], order: int) -> list[list[Any]]:
    """For each curve, its coefficients from order 1 to `order`."""
    return [[x[k] for k in range(1, order + 1)] for x in operands]


def nonzero_in(terms: Sequence[Sequence[Any]]) -> tuple[Flags, ...]:
    """Which coefficients do not vanish."""
    return tuple([tuple([type(t) is not Zero for t in coefficients]) for coefficients in terms])


def by_order(outs: Sequence[Any], nonzero: Sequence[Flags]) -> list[list[Any]]:
    """Results and their coefficients, grouped by order.

    Args:
        outs: the results, then the nonzero coefficients of each.
        nonzero: for each result, which coefficients are nonzero.
    """
    results, nonzero_terms = outs[: len(nonzero)], iter(outs[len(nonzero) :])
    terms = [
        [next(nonzero_terms) if flag else Zero.of(r) for flag in flags]
        for r, flags in zip(results, nonzero, strict=True)
    ]
    return [list(results), *(list(same) for same in zip(*terms, strict=True))]


class TaylorTracer(PrimalTracer):
    """A value and the coefficients of the curve through it."""

    __slots__ = ("series",)

    def __init__(self, trace: TaylorTrace, primal: Any, series: Series) -> None:
        super().__init__(trace, primal)
        self.series = series


class TaylorTrace(Trace):
    """Computes the coefficients of every result that varies.

    Args:
        parent: the trace in which coefficients are computed.
        order: the order of the last coefficient.
    """

    __slots__ = ("order",)
    scope_name = "jet"

    def __init__(self, parent: Trace | None, order: int) -> None:
        super().__init__(parent)
        self.order = order

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        parent = self.parent
        assert parent is not None
        operands = [a.series if type(a) is TaylorTracer and a._trace is self else a for a in args]
        previous = state.trace
        try:
            state.trace = parent
            set_jit_key(parent.key)
            if not any(type(x) is Series for x in operands):
                return parent.process(primitive, args, params)
            memory: Memory = {}
            results = [self._moving(r) for r in expand(primitive, operands, params, memory)]
            for _, cached in memory.values():
                for result in cached:
                    if type(result) is Series:
                        result.forget()
        finally:
            state.trace = previous
            set_jit_key(previous.key)
        return results if primitive.multiple_results else results[0]

    def _moving(self, result: Any) -> Any:
        if type(result) is not Series:
            return result
        # Highest order first: a call computes all coefficients up to the requested one.
        terms = [result[order] for order in range(self.order, 0, -1)][::-1]
        first = result[0]
        if all(type(t) is Zero for t in terms):
            return first
        return TaylorTracer(self, first, series_of(first, terms))

    def split(self, value: Any) -> tuple[Any, list[Any]]:
        """A result and its coefficients."""
        if type(value) is TaylorTracer and value._trace is self:
            return value.primal, [value.series[k] for k in range(1, self.order + 1)]
        return value, [Zero.of(value)] * self.order

    def describe(self, tracer: Any) -> str:
        if isinstance(tracer.primal, Tracer):
            return f"a value with a Taylor series (jet) of {tracer.primal.origin()}"
        return "a value with a Taylor series, inside jet"


def taylor_flat(
    function: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    terms: Sequence[Sequence[Any]],
    order: int,
) -> tuple[list[Any], list[list[Any]]]:
    """Results of a function of flat arguments along curves.

    Args:
        function: takes the primals, returns a sequence.
        primals: values.
        terms: for each primal, its coefficients from order 1 on, a `Zero` for one that vanishes.
        order: the order of the last coefficient.

    Returns:
        The results, and the coefficients of each.
    """
    trace = TaylorTrace(state.trace, order)
    arguments = [
        p
        if all(type(t) is Zero for t in coefficients)
        else TaylorTracer(trace, p, series_of(p, list(coefficients)))
        for p, coefficients in zip(primals, terms, strict=True)
    ]
    try:
        with use_trace(trace):
            results = function(*arguments)
        pairs = [trace.split(r) for r in results]
    finally:
        trace.finished = True
    if config.check_tracer_leaks.value:
        from dovetail._core.trace.leaks import check_leaks  # deferred: rarely asked for

        del arguments, results
        check_leaks(trace)
    return [p for p, _ in pairs], [t for _, t in pairs]
