"""Ordinary differential equations: `odeint`.

The method is that of J. R. Dormand and P. J. Prince, J. Comput. Appl. Math. 6 (1980), 19: of fifth
order, with an error estimate of fourth. Interpolation, the first step and the control of steps are
those of E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, 2nd ed.,
sections II.4 and II.6. Gradients are those of the adjoint equation: L. S. Pontryagin; in the form
used here, R. T. Q. Chen et al., arXiv:1806.07366, appendix B and C.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dovetail._core.api.arguments import require_real_number
from dovetail._core.api.backward_passes import vjp
from dovetail._core.api.inspection import eval_shape
from dovetail._core.base import dtypes, pytree
from dovetail._core.base.records import record
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand, literal_like
from dovetail._core.basis.structural import broadcast_to, full
from dovetail._core.ir.avals import aval_of
from dovetail._core.ops.control.bodies import operands_of
from dovetail._core.ops.custom.custom_gradient import closure_convert
from dovetail._core.ops.custom.custom_vjp import custom_vjp
from dovetail._core.ops.elementwise.arithmetic import add, div, mul, neg, sub
from dovetail._core.ops.elementwise.bitwise import bitwise_and, bitwise_or
from dovetail._core.ops.elementwise.comparison import eq, gt, le, lt, ne
from dovetail._core.ops.elementwise.complex import real
from dovetail._core.ops.elementwise.extrema import clamp
from dovetail._core.ops.elementwise.extrema import max as maximum
from dovetail._core.ops.elementwise.extrema import min as minimum
from dovetail._core.ops.elementwise.powers import pow as power
from dovetail._core.ops.elementwise.powers import sqrt, square
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.elementwise.signs import abs as absolute
from dovetail._core.ops.elementwise.signs import sign
from dovetail._core.ops.indexing.dynamic_slicing import dynamic_index_in_dim
from dovetail._core.ops.loops.loops import scan
from dovetail._core.ops.loops.while_loops import while_loop
from dovetail._core.ops.reduction.reductions import reduce_sum
from dovetail._core.ops.shape.joining import concatenate
from dovetail._core.ops.shape.reshaping import reshape
from dovetail._core.ops.shape.slicing import slice as static_slice
from dovetail._core.transform.flattening import check_callable

# Times and weights of the stages, and of the solution (also the last stage), of its error, and of
# the term of the interpolation that the ends do not fix.
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
_SOLUTION = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_BETWEEN = (
    -12715105075 / 11282082432,
    0.0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)


@record
class Settings:
    """What a user asks of the method: the arguments of `odeint`."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float


@record
class Space:
    """Trees as vectors of one dtype, in which the method works.

    Attributes:
        tree: structure of the trees.
        shapes: of its leaves.
        dtypes: of its leaves.
        work: dtype of vectors, of at least single precision.
    """

    tree: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]
    work: Any

    @staticmethod
    def of(tree: Any) -> Space:
        """The space of a tree of arrays of inexact dtypes."""
        leaves, structure = pytree.flatten(tree)
        avals = [aval_of(x) for x in leaves]
        work = dtypes.common_dtype(np.dtype(np.float32), *(a.dtype for a in avals))
        return Space(
            structure, tuple([a.shape for a in avals]), tuple([a.dtype for a in avals]), work
        )

    def vector(self, tree: Any) -> Any:
        """The elements of a tree."""
        leaves = [
            reshape(convert_element_type(x, self.work), (math.prod(shape),))
            for x, shape in zip(pytree.leaves(tree), self.shapes, strict=True)
        ]
        return concatenate(leaves, 0) if leaves else full((0,), 0, self.work)

    def tree_of(self, vector: Any) -> Any:
        """The tree of a vector, or of many along leading dimensions."""
        many = aval_of(vector).shape[:-1]
        leaves, at = [], 0
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            size = math.prod(shape)
            zeros = (0,) * len(many)
            part = static_slice(vector, (*zeros, at), (*many, at + size))
            if dtypes.kind_of(dtype) != "c" and dtypes.kind_of(self.work) == "c":
                part = real(part)
            leaves.append(convert_element_type(reshape(part, many + shape), dtype))
            at += size
        return pytree.unflatten(self.tree, leaves)


def _scaled(factor: Any, x: Any) -> Any:
    """A vector times a number: a Python one, or a scalar array."""
    aval = aval_of(x)
    if isinstance(factor, float):
        return mul(x, broadcast_to(literal_like(factor, x), aval.shape))
    return mul(x, broadcast_to(convert_element_type(factor, aval.dtype), aval.shape))


def _number(value: float, like: Any) -> Any:
    return full((), value, aval_of(like).dtype)


def _sum(weights: Sequence[float], vectors: Sequence[Any]) -> Any:
    """A weighted sum of vectors."""
    terms = [_scaled(w, k) for w, k in zip(weights, vectors, strict=True) if w]
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def _norm(x: Any, scale: Any) -> Any:
    """The root mean square of the elements of a vector in units of a scale."""
    ratio = square(div(absolute(x), scale))
    size = aval_of(x).shape[0] or 1
    return sqrt(_scaled(1 / size, reduce_sum(ratio, (0,))))


def _tolerance(settings: Settings, *vectors: Any) -> Any:
    """The error that is tolerated in each element."""
    sizes = [absolute(v) for v in vectors]
    largest = sizes[0] if len(sizes) == 1 else maximum(*sizes)
    scaled = _scaled(settings.rtol, largest)
    return add(scaled, full(aval_of(scaled).shape, settings.atol, aval_of(scaled).dtype))


def _first_step(func: Any, settings: Settings, y: Any, t: Any, slope: Any, direction: Any) -> Any:
    """The size of the first step (Hairer, Nørsett, Wanner, II.4)."""
    scale = _tolerance(settings, y)
    d0, d1 = _norm(y, scale), _norm(slope, scale)
    small = bitwise_or(lt(d0, _number(1e-5, d0)), lt(d1, _number(1e-5, d1)))
    h0 = select(small, _number(1e-6, d0), _scaled(0.01, div(d0, d1)))
    signed = mul(convert_element_type(h0, aval_of(t).dtype), direction)
    further = func(add(y, _scaled(signed, slope)), add(t, signed))
    d2 = div(_norm(sub(further, slope), scale), h0)
    most = maximum(d1, d2)
    h1 = power(div(_number(0.01, most), most), _number(0.2, most))
    flat = maximum(_number(1e-6, h0), _scaled(1e-3, h0))
    h1 = select(le(most, _number(1e-15, most)), flat, h1)
    return convert_element_type(minimum(_scaled(100.0, h0), h1), aval_of(t).dtype)


def _step(func: Any, settings: Settings, y: Any, t: Any, h: Any, slope: Any) -> Any:
    """One step: the new value and slope, the error in units of the tolerance, the interpolation."""
    slopes = [slope]
    for time, weights in zip(_TIMES, _STAGES, strict=True):
        at = add(y, _scaled(h, _sum(weights, slopes)))
        slopes.append(func(at, add(t, _scaled(time, h))))
    following = add(y, _scaled(h, _sum(_SOLUTION, slopes)))
    slopes.append(func(following, add(t, h)))
    error = _norm(_scaled(h, _sum(_ERROR, slopes)), _tolerance(settings, y, following))
    change = sub(following, y)
    first = sub(_scaled(h, slope), change)
    second = sub(sub(change, _scaled(h, slopes[-1])), first)
    return following, slopes[-1], error, (change, first, second, _scaled(h, _sum(_BETWEEN, slopes)))


def _between(y: Any, terms: Sequence[Any], at: Any) -> Any:
    """The value in a step, at a fraction of it."""
    left = sub(_number(1.0, at), at)
    total = terms[-1]
    for term, factor in zip(terms[-2::-1], (left, at, left), strict=True):
        total = add(term, _scaled(factor, total))
    return add(y, _scaled(at, total))


def _integrated(func: Any, settings: Settings, y: Any, times: Any) -> Any:
    """Values at times, from the value at the first; NaN from where the method fails."""
    t0 = dynamic_index_in_dim(times, 0, 0, keepdims=False)
    count = aval_of(times).shape[0]
    slope = func(y, t0)
    last = dynamic_index_in_dim(times, count - 1, 0, keepdims=False)
    h0 = _first_step(func, settings, y, t0, slope, sign(sub(last, t0)))
    longest = _number(settings.hmax, t0)
    zero = full(aval_of(y).shape, 0, aval_of(y).dtype)
    # The step that was made last: where it began, its interpolation; where it ended, the slope.
    start = (
        t0,
        y,
        (zero,) * 4,
        t0,
        y,
        slope,
        minimum(h0, longest),
        full((), True, np.dtype(np.bool_)),
    )

    def to(state: Any, target: Any) -> Any:
        def going(carry: Any) -> Any:
            (begin, _, _, t, _, _, _, fine), steps = carry
            outside = gt(mul(sub(target, begin), sub(target, t)), _number(0.0, t))
            # A product that underflows does not say where the target is.
            ahead = bitwise_and(ne(target, begin), ne(target, t))
            same = eq(sign(sub(target, begin)), sign(sub(target, t)))
            outside = bitwise_or(outside, bitwise_and(ahead, same))
            return bitwise_and(bitwise_and(outside, fine), lt(steps, _number(_most, steps)))

        def step(carry: Any) -> Any:
            (begin, before, terms, t, y, slope, h, _), steps = carry
            signed = mul(h, sign(sub(target, t)))
            found, new_slope, error, new_terms = _step(func, settings, y, t, signed, slope)
            accepted = le(error, _number(1.0, error))
            factor = _scaled(0.9, power(error, _number(-0.2, error)))
            factor = clamp(_number(0.2, factor), factor, _number(10.0, factor))
            known = lt(error, _number(math.inf, error))
            factor = select(known, factor, _number(0.1, factor))
            new = convert_element_type(factor, aval_of(h).dtype)
            new = minimum(mul(h, new), longest)
            moved = add(t, signed)

            def chosen(x: Any, y: Any) -> Any:
                return select(broadcast_to(accepted, aval_of(x).shape), x, y)

            after = (
                chosen(t, begin),
                chosen(y, before),
                tuple([chosen(x, y) for x, y in zip(new_terms, terms, strict=True)]),
                chosen(moved, t),
                chosen(found, y),
                chosen(new_slope, slope),
                new,
                # NaN equals nothing, itself included.
                bitwise_and(ne(moved, t), eq(moved, moved)),
            )
            return after, add(steps, _number(1.0, steps))

        _most = settings.mxstep
        state, _ = while_loop(going, step, (state, full((), 0, np.dtype(np.float32))))
        begin, before, terms, t, y, _, _, fine = state
        inside = le(mul(sub(target, begin), sub(target, t)), _number(0.0, t))
        length = sub(t, begin)
        nothing = eq(length, _number(0.0, length))
        at = div(sub(target, begin), select(nothing, _number(1.0, length), length))
        value = _between(before, terms, at)
        shape = aval_of(y).shape
        value = select(broadcast_to(eq(target, t), shape), y, value)
        known = bitwise_and(inside, bitwise_or(fine, eq(target, t)))
        value = select(broadcast_to(known, shape), value, full(shape, math.nan, aval_of(y).dtype))
        return (*state[:-1], bitwise_and(fine, known)), value

    _, values = scan(to, start, times)
    return values


@partial(custom_vjp, nondiff_argnums=(0, 1))
def _solution(func: Any, settings: Settings, y: Any, times: Any, args: Any) -> Any:
    """Values at times of a function of vectors."""
    return _integrated(lambda y, t: func(y, t, args), settings, y, times)


def _forward(func: Any, settings: Settings, y: Any, times: Any, args: Any) -> Any:
    values = _solution(func, settings, y, times, args)
    return values, (values, times, args)


def _backward(func: Any, settings: Settings, residuals: Any, cotangents: Any) -> Any:
    """The adjoint equation, from each time back to the one before it."""
    values, times, args = residuals
    leaves, tree = pytree.flatten(args)
    moving = [dtypes.kind_of(aval_of(x).dtype) in ("f", "c") for x in leaves]
    own = [x for x, moves in zip(leaves, moving, strict=True) if moves]

    def of(y: Any, t: Any, own: Any, rest: Any) -> Any:
        given, others = iter(own), iter(rest)
        merged = [next(given) if moves else next(others) for moves in moving]
        return func(y, t, pytree.unflatten(tree, merged))

    rest = [x for x, moves in zip(leaves, moving, strict=True) if not moves]
    y0 = dynamic_index_in_dim(values, 0, 0, keepdims=False)
    zero = full(aval_of(y0).shape, 0, aval_of(y0).dtype)
    space = Space.of((y0, y0, own))

    def slope(vector: Any, t: Any, given: Any) -> Any:
        own, rest = given
        y, adjoint, _ = space.tree_of(vector)
        out, pull = vjp(lambda y, own: of(y, t, own, rest), y, own)
        return space.vector((out, *pull(neg(adjoint))))

    def step(carry: Any, between: Any) -> Any:
        adjoint, sums = carry
        y, t, before, cotangent = between
        adjoint = add(adjoint, cotangent)
        along = reduce_sum(mul(cotangent, of(y, t, own, rest)), (0,))
        state = space.vector((y, adjoint, sums))
        both = concatenate([reshape(t, (1,)), reshape(before, (1,))], 0)
        found = _solution(slope, settings, state, both, (own, rest))
        _, adjoint, sums = space.tree_of(dynamic_index_in_dim(found, 1, 0, keepdims=False))
        return (adjoint, sums), along

    def from_second(x: Any) -> Any:
        shape = aval_of(x).shape
        return static_slice(x, (1,) + (0,) * (len(shape) - 1), shape)

    count = aval_of(times).shape[0]
    sums = [full(aval_of(x).shape, 0, aval_of(x).dtype) for x in own]
    xs = (
        from_second(values),
        from_second(times),
        static_slice(times, (0,), (count - 1,)),
        from_second(cotangents),
    )
    (adjoint, sums), along = scan(step, (zero, sums), xs, reverse=True)
    t0 = dynamic_index_in_dim(times, 0, 0, keepdims=False)
    at_start = neg(reduce_sum(mul(adjoint, of(y0, t0, own, rest)), (0,)))
    of_times = concatenate([reshape(at_start, (1,)), along], 0)
    if dtypes.kind_of(aval_of(of_times).dtype) == "c":
        of_times = real(of_times)
    adjoint = add(adjoint, dynamic_index_in_dim(cotangents, 0, 0, keepdims=False))
    found = iter(sums)
    of_args = [next(found) if moves else None for moves in moving]
    return (
        adjoint,
        convert_element_type(of_times, aval_of(times).dtype),
        pytree.unflatten(tree, of_args),
    )


_solution.defvjp(_forward, _backward)


def _setting(name: str, value: Any, *, zero: bool) -> float:
    """A setting as a number.

    Raises:
        ConcretizationTypeError: it is a tracer.
        TypeError: it is no real number.
        ValueError: it is negative, or 0 where that makes no sense.
    """
    require_real_number("odeint", name, value)
    number = float(value)
    if not (number > 0 or (zero and number == 0)):
        raise ValueError(f"odeint: {name} must be {'at least' if zero else 'above'} 0, got {value}")
    return number


def _inexact(x: Any) -> Any:
    aval = aval_of(x)
    if dtypes.kind_of(aval.dtype) in ("b", "i", "u"):
        return convert_element_type(x, dtypes.canonicalize_dtype(np.float64))
    return convert_element_type(x, aval.dtype) if aval.weak_type else x


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Any:
    """Solve an ordinary differential equation by steps that adapt to it.

    The method is Dormand's and Prince's of fifth order. Between its steps values are interpolated,
    with an error of fifth order.

    Gradients solve the adjoint equation backwards in time, so that they need no more memory with
    more steps. They exist for `y0`, `t`, `args` and what `func` captures, to every order.
    Forward mode (`jvp`, `jacfwd`) is not supported.

    Args:
        func: the slope ``func(y, t, *args)``, a tree like `y0`.
        y0: the value at the first time, a tree of arrays of any shapes.
        t: array of times, shape ``(n,)``, of a float dtype.
        *args: further arguments of `func`, trees of arrays.
        rtol: relative tolerance of the error in each step.
        atol: absolute tolerance.
        mxstep: the largest number of steps between two times.
        hmax: the largest size of a step.

    Returns:
        Values at the times: a tree like `y0` of inexact dtypes, whose arrays have a further
        leading dimension of size n.

    Raises:
        TypeError: `t` is no array of floats, `func` returns another tree or other shapes, or an
            argument is no array.
        ValueError: `t` has another rank than 1, or a setting is negative.

    Differs:
        Times may decrease, or turn. Where the method fails, because the solution is not finite or
        needs more than `mxstep` steps, the result is NaN from there on.

        >>> from dovetail.experimental.ode import odeint
        >>> y = odeint(lambda y, t: -y, 1, np.array([0.0, -1.0, 1.0]))
        >>> [round(float(x), 3) for x in y]
        [1.0, 2.718, 0.368]

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail.experimental.ode import odeint
        >>> def end(rate):
        ...     return odeint(lambda y, t, k: -k * y, 1.0, jnp.array([0.0, 1.0]), rate)[-1]
        >>> round(float(end(2.0)), 4), round(float(dt.grad(end)(2.0)), 4)
        (0.1353, -0.1353)
    """
    check_callable(func, "odeint")
    settings = Settings(
        _setting("rtol", rtol, zero=True),
        _setting("atol", atol, zero=True),
        _setting("mxstep", mxstep, zero=True),
        _setting("hmax", hmax, zero=False),
    )
    times = as_operand(t, "odeint", "t")
    aval = aval_of(times)
    if dtypes.kind_of(aval.dtype) != "f":
        raise TypeError(f"odeint: t must be an array of floats, got dtype {aval.dtype}")
    if len(aval.shape) != 1:
        raise ValueError(f"odeint: t must have one dimension, got the shape {aval.shape}")
    leaves, tree, _ = operands_of(y0, "odeint", "y0")
    start = pytree.unflatten(tree, [_inexact(x) for x in leaves])
    leaves, arguments, _ = operands_of(args, "odeint", "args")
    rest = tuple(
        pytree.unflatten(arguments, [convert_element_type(x, aval_of(x).dtype) for x in leaves])
    )
    space = Space.of(start)
    work = dtypes.common_dtype(np.dtype(np.float32), aval.dtype)
    time = full((), 0, aval.dtype)
    _check_slope(eval_shape(func, start, time, *rest), space)
    if not aval.shape[0]:
        return space.tree_of(full((0, sum(map(math.prod, space.shapes))), 0, space.work))
    converted, captured = closure_convert(func, start, time, *rest)

    def slope(y: Any, t: Any, given: Any) -> Any:
        args, captured = given
        at = convert_element_type(t, aval.dtype)
        return space.vector(converted(space.tree_of(y), at, *args, *captured))

    values = _solution(
        slope,
        settings,
        space.vector(start),
        convert_element_type(times, work),
        (rest, list(captured)),
    )
    return space.tree_of(values)


def _check_slope(found: Any, space: Space) -> None:
    """Check what the user's function returns.

    Raises:
        TypeError: it is no tree like the value.
    """
    leaves, tree = pytree.flatten(found)
    if tree != space.tree:
        raise TypeError(f"odeint: func must return a tree like y0, {space.tree}, got {tree}")
    shapes = tuple([tuple(x.shape) for x in leaves])
    if shapes != space.shapes:
        raise TypeError(f"odeint: func must return the shapes of y0, {space.shapes}, got {shapes}")
