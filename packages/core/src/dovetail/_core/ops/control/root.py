"""`custom_root` and its primitive: roots found by a user-defined solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from dovetail._core.base import dtypes, pytree
from dovetail._core.basis.elementwise import neg as negative
from dovetail._core.basis.structural import batch_size, instantiate_zeros, to_front
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.ir.walk import eval_jaxpr
from dovetail._core.ops.control.bodies import same_type
from dovetail._core.ops.control.vector_functions import (
    EquationPrimitive,
    Vector,
    bind_functions,
    split_operands,
)
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.derived import batch_of, function_of
from dovetail._core.transform.flattening import check_callable, name_of
from dovetail._core.transform.jvp import jvp_flat
from dovetail._core.transform.linearize import linearize_flat

T = TypeVar("T")
R = TypeVar("R")
_CALLER: Final = "lax.custom_root"


class RootTuple(NamedTuple):
    """An entry for each function of an equation.

    Attributes:
        f: that of the function whose root is sought.
        solve: that of the solver, from an initial guess to the root.
        tangent_solve: that of the linear solver, from a root and a right-hand side to the solution
            of the equation linearized at this root; the jaxpr is None for integer unknowns.
    """

    f: Any
    solve: Any
    tangent_solve: Any


class _Equation(NamedTuple):
    """The parameters of `custom_root`.

    Attributes:
        const_lengths: the number of leading operands that belong to each function.
        jaxprs: the functions.
    """

    const_lengths: RootTuple
    jaxprs: RootTuple

    def split(self, values: Sequence[Any]) -> tuple[RootTuple, list[Any]]:
        """The operands of each function, and the initial guess."""
        return split_operands(RootTuple, self.const_lengths, values)


def _bind(
    consts: Sequence[Sequence[Any]], jaxprs: Sequence[Any], guess: Sequence[Any]
) -> list[Any]:
    """Solve an equation."""
    return bind_functions(custom_root_p, RootTuple, consts, jaxprs, guess)


class CustomRoot(EquationPrimitive):
    """Finds a root of ``f(x)`` by a jaxpr; derivatives are those of the root that `f` defines."""

    name = "custom_root"
    kind = RootTuple

    def abstract(self, *avals: Any, **params: Any) -> Any:
        equation = _Equation(**params)
        consts, guess = equation.split(avals)
        for what, closed, expected in (
            ("f", equation.jaxprs.f, [*consts.f, *guess]),
            ("solve", equation.jaxprs.solve, [*consts.solve, *guess]),
            ("tangent_solve", equation.jaxprs.tangent_solve, [*consts[2], *guess, *guess]),
        ):
            if closed is None:
                continue
            have = closed.in_avals
            if len(have) != len(expected) or not all(map(same_type, have, expected)):
                raise TypeError(f"{self.name}: {what} takes {have}, got {expected}")
        return equation.jaxprs.solve.out_avals

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        # f(a, x) = 0 implies f_x dx = -f_a da, however the root was found.
        equation = _Equation(**params)
        outs = self.bind(*primals, **params)
        consts, guess = equation.split(primals)
        of_consts, _ = equation.split(tangents)
        x = outs[: len(guess)]
        _, changes = jvp_flat(
            function_of(equation.jaxprs.f),
            [*consts.f, *x],
            [*of_consts.f, *map(Zero.of, x)],
        )
        if all(type(t) is Zero for t in changes):
            return outs, [Zero.of(o) for o in outs]
        if equation.jaxprs.tangent_solve is None:
            raise TypeError(
                f"{_CALLER}: a root among integers has no derivative; give an initial_guess of "
                "floating-point numbers"
            )
        solve = function_of(equation.jaxprs.tangent_solve)
        solutions = solve(*consts.tangent_solve, *x, *map(instantiate_zeros, changes))
        return outs, [*map(negative, solutions), *(Zero.of(o) for o in outs[len(x) :])]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        # All unknowns and all right-hand sides are batched, to have equal shapes.
        equation = _Equation(**params)
        size = batch_size(args, dims)
        consts, guess = equation.split(args)
        of_consts, of_guess = equation.split(dims)
        count = len(guess)
        at: list[int | None] = [0] * count
        placed = [to_front(x, d, size) for x, d in zip(guess, of_guess, strict=True)]
        jaxprs = equation.jaxprs
        more = len(jaxprs.solve.out_avals) - count
        instantiate = (True,) * count
        solve, out_dims = batch_of(
            jaxprs.solve, size, (*of_consts.solve, *at), (*instantiate, *([False] * more))
        )
        f = batch_of(jaxprs.f, size, (*of_consts.f, *at), instantiate).jaxpr
        tangent_solve = jaxprs.tangent_solve
        if tangent_solve is not None:
            solve_dims = (*of_consts.tangent_solve, *at, *at)
            tangent_solve = batch_of(tangent_solve, size, solve_dims, instantiate).jaxpr
        return _bind(consts, (f, solve, tangent_solve), placed), out_dims


custom_root_p: Final = CustomRoot()


def _linearized(
    function: Callable[..., list[Any]], vector: Vector, x: Any, what: str
) -> Callable[[Any], Any]:
    """The linearization at `x` of a function of flat arguments, as a function of trees."""
    primals = pytree.leaves(x)
    nonzero = [True] * len(primals)
    _, program = linearize_flat(function, primals, nonzero, DebugInfo(_CALLER, what), nonzero)
    closed: ClosedJaxpr = program.closed

    def linear(v: Any) -> Any:
        leaves = vector.leaves_of(v, "the linearized function")
        return pytree.unflatten(vector.tree, eval_jaxpr(closed.jaxpr, closed.consts, *leaves))

    return linear


def custom_root(
    f: Callable[[T], T],
    initial_guess: T,
    solve: Callable[[Callable[[T], T], T], R],
    tangent_solve: Callable[[Callable[[T], T], T], T],
    has_aux: bool = False,
) -> R:
    """Find a root of a function, without differentiating through the search.

    Derivatives of the root with respect to values that `f` captures follow from the implicit
    function theorem. So `solve` may be anything, such as a loop of unknown length.

    Args:
        f: the function whose root is sought, from trees like `initial_guess` to such trees.
        initial_guess: the start of the search, a tree of arrays. The root has no derivative with
            respect to it.
        solve: ``solve(f, initial_guess)`` returns the root, a tree like `initial_guess`.
        tangent_solve: ``tangent_solve(g, y)`` returns the solution of ``g(x) = y``, where `g` is
            `f` linearized at the root. For numbers, this is ``y / g(1.0)``; for vectors, use
            `dovetail.numpy.linalg.solve` with the matrix ``dovetail.jacobian(g)(y)``, or an
            iteration wrapped in `custom_linear_solve`. Reverse mode transposes it.
        has_aux: whether `solve` returns a pair of the root and auxiliary data, which has no
            derivatives.

    Returns:
        The root, or with `has_aux` the pair that `solve` returned.

    Raises:
        TypeError: one of the functions does not return a tree like `initial_guess`.

    Differs:
        It is a primitive of its own, `custom_root`, which says what the solution is; JAX makes
        a `custom_jvp_call` of it.

        >>> find = lambda a: lax.custom_root(lambda x: x - a, 0.0, lambda f, x: a, lambda g, y: y)
        >>> print([e.primitive.name for e in dt.make_jaxpr(find)(2.0).eqns])
        ['custom_root']

    Example:
        >>> import dovetail as dt
        >>> from dovetail import lax
        >>> def root(a):
        ...     def newton(f, x):
        ...         step = lambda _, x: x - f(x) / dt.grad(f)(x)
        ...         return lax.fori_loop(0, 20, step, x)
        ...     return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
        >>> float(root(4.0)), float(dt.grad(root)(4.0))
        (2.0, 0.25)
    """
    for function, name in ((f, "f"), (solve, "solve"), (tangent_solve, "tangent_solve")):
        check_callable(function, f"{_CALLER}, for {name},")
    vector = Vector.of(initial_guess, _CALLER, "initial_guess").settled(f)
    residual = vector.stage(f, f, "f")
    of_solve = vector.stage(lambda x: solve(f, x), solve, "solve", has_aux=has_aux)
    bodies = [residual, of_solve]
    if all(a.tangent().dtype != dtypes.float0 for a in vector.avals):
        flat = function_of(residual.closed)

        def at_root(x: Any, y: Any) -> Any:
            linear = _linearized(
                lambda *leaves: flat(*residual.captured, *leaves), vector, x, name_of(f)
            )
            return tangent_solve(linear, y)

        bodies.append(vector.stage(at_root, tangent_solve, "tangent_solve", arguments=2))
    outs = _bind(
        [*(body.captured for body in bodies), *[[]] * (3 - len(bodies))],
        [*(body.closed for body in bodies), *[None] * (3 - len(bodies))],
        vector.leaves,
    )
    return pytree.unflatten(of_solve.out_tree, outs)
