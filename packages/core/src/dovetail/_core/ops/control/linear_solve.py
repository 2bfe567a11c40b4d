"""`custom_linear_solve` and its primitive: linear systems with a user-defined solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from dovetail._core.base import dtypes, pytree
from dovetail._core.basis.elementwise import add_tangents
from dovetail._core.basis.elementwise import neg as negative
from dovetail._core.basis.structural import batch_size, full, instantiate_zeros, is_linear, to_front
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ir.jaxpr import ClosedJaxpr
from dovetail._core.ops.control.bodies import Body, same_type
from dovetail._core.ops.control.vector_functions import (
    EquationPrimitive,
    Vector,
    bind_functions,
    split_operands,
)
from dovetail._core.trace.current_mesh import current_mesh
from dovetail._core.trace.manual_axes import wanted_types
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.derived import (
    Batched,
    batch_of,
    function_of,
    hoist_consts,
    transposition_of,
)
from dovetail._core.transform.flattening import check_callable
from dovetail._core.transform.jvp import jvp_flat

T = TypeVar("T")
R = TypeVar("R")
_CALLER: Final = "lax.custom_linear_solve"


class _LinearSolveTuple(NamedTuple):
    """An entry for each function of a linear system; the class name is that shown in jaxprs.

    Attributes:
        matvec: that of the product with the matrix.
        vecmat: that of the product with its transpose; the jaxpr is None if unknown.
        solve: that of the solver.
        transpose_solve: that of the solver of the transposed system; the jaxpr is None if unknown.
    """

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transposed(self) -> _LinearSolveTuple:
        """The entries for the transposed system."""
        return _LinearSolveTuple(self.vecmat, self.matvec, self.transpose_solve, self.solve)


class _System(NamedTuple):
    """The parameters of `custom_linear_solve`.

    Attributes:
        const_lengths: the number of leading operands that belong to each function.
        jaxprs: the functions, which take these operands and a vector.
    """

    const_lengths: _LinearSolveTuple
    jaxprs: _LinearSolveTuple

    def split(self, values: Sequence[Any]) -> tuple[_LinearSolveTuple, list[Any]]:
        """The operands of each function, and the right-hand side."""
        return split_operands(_LinearSolveTuple, self.const_lengths, values)


def _bind(consts: Sequence[Sequence[Any]], jaxprs: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    """Solve a system."""
    return bind_functions(linear_solve_p, _LinearSolveTuple, consts, jaxprs, b)


class CustomLinearSolve(EquationPrimitive):
    """Solves ``matvec(x) = b`` by a jaxpr; derivatives solve this or the transposed system."""

    name = "custom_linear_solve"
    kind = _LinearSolveTuple

    def with_axes(self, avals: Sequence[Any], params: Any) -> Any:
        _, b = _System(**params).split(avals)
        mesh = current_mesh()
        manual = () if mesh is None else mesh.manual_axes
        # Outside of shard_map the compiler would have to know what its programs are linear in.
        of_parts = all(aval.manual_axis_type.unreduced.issubset(manual) for aval in b)
        linear = (slice(len(avals) - len(b), None),) if of_parts else ()
        return wanted_types(self.name, avals, linear), {}

    def abstract(self, *avals: Any, **params: Any) -> Any:
        system = _System(**params)
        consts, b = system.split(avals)
        for what, closed, own in zip(_LinearSolveTuple._fields, system.jaxprs, consts, strict=True):
            if closed is None:
                continue
            have = closed.in_avals
            if len(have) != len(own) + len(b) or not all(map(same_type, have, [*own, *b])):
                raise TypeError(f"{self.name}: {what} takes {have}, got {[*own, *b]}")
        return system.jaxprs.solve.out_avals

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        # A x = b implies A dx = db - dA x, however x was computed.
        system = _System(**params)
        outs = self.bind(*primals, **params)
        consts, b = system.split(primals)
        of_consts, of_b = system.split(tangents)
        x = outs[: len(b)]
        changes = of_b
        if any(type(t) is not Zero for t in of_consts.matvec):
            _, products = jvp_flat(
                function_of(system.jaxprs.matvec),
                [*consts.matvec, *x],
                [*of_consts.matvec, *map(Zero.of, x)],
            )
            changes = [_difference(t, p) for t, p in zip(of_b, products, strict=True)]
        if all(type(t) is Zero for t in changes):
            return outs, [Zero.of(o) for o in outs]
        solutions = _bind(consts, system.jaxprs, list(map(_right_hand_side, changes, b)))
        return outs, [
            Zero.of(o) if i >= len(b) or changes[i].dtype == dtypes.float0 else solutions[i]
            for i, o in enumerate(outs)
        ]

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        system = _System(**params)
        consts, b = system.split(args)
        if system.jaxprs.transpose_solve is None:
            raise TypeError(
                f"{_CALLER} has no gradient in reverse mode unless it is told how to solve the "
                "transposed system: pass transpose_solve, or symmetric=True where the matrix "
                "equals its transpose"
            )
        right = list(map(instantiate_zeros, cotangent[: len(b)]))
        solutions = _bind(consts.transposed(), system.jaxprs.transposed(), right)
        return [
            *(None for own in consts for _ in own),
            *(f if is_linear(x) else None for f, x in zip(solutions, b, strict=False)),
        ]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        system = _System(**params)
        size = batch_size(args, dims)
        consts, b = system.split(args)
        of_consts, of_b = system.split(dims)
        # If the solution or the right-hand side is batched, both are: equal shapes let derivatives
        # solve the system again.
        flags = [d is not None for d in of_b]
        while True:
            at = [0 if flag else None for flag in flags]
            derived = [
                None if jaxpr is None else _batched(jaxpr, size, own, at, flags)
                for jaxpr, own in zip(system.jaxprs, of_consts, strict=True)
            ]
            grown = [any(d.batched[i] for d in derived if d) for i in range(len(b))]
            if grown == flags:
                break
            flags = grown
        right = [
            to_front(x, d, size) if flag else x for x, d, flag in zip(b, of_b, flags, strict=True)
        ]
        outs = _bind(consts, [d and d.jaxpr for d in derived], right)
        of_solve = derived[2]
        assert of_solve is not None
        return outs, of_solve.out_dims


linear_solve_p: Final = CustomLinearSolve()


def _right_hand_side(tangent: Any, b: Any) -> Any:
    """A tangent as a right-hand side: zeros for integers, which have no tangent."""
    if tangent.dtype == dtypes.float0:
        return full(shape_of(b), 0, aval_of(b).dtype)
    return instantiate_zeros(tangent)


def _difference(first: Any, second: Any) -> Any:
    if type(second) is Zero:
        return first
    second = negative(second)
    return second if type(first) is Zero else add_tangents(first, second)


def _batched(
    jaxpr: ClosedJaxpr,
    size: int,
    of_consts: Sequence[int | None],
    of_vector: Sequence[int | None],
    instantiate: Sequence[bool],
) -> Batched:
    more = len(jaxpr.out_avals) - len(instantiate)
    return batch_of(jaxpr, size, (*of_consts, *of_vector), (*instantiate, *([False] * more)))


def _transposed(product: Body, count: int) -> Body:
    """The product with the transposed matrix."""
    every = (True,) * count
    linear = (*([False] * len(product.captured)), *every)
    closed, captured = hoist_consts(transposition_of(product.closed, linear, every, every).jaxpr)
    return Body(closed, [*captured, *product.captured], product.out_tree)


def custom_linear_solve(
    matvec: Callable[[T], T],
    b: T,
    solve: Callable[[Callable[[T], T], T], R],
    transpose_solve: Callable[[Callable[[T], T], T], R] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> R:
    """Solve a linear system by a function, without differentiating through that function.

    The derivative of the solution solves the same system with another right-hand side, a gradient
    the transposed system. So `solve` may be anything, such as a loop of unknown length. Derivatives
    are as accurate as the solutions.

    Args:
        matvec: the product with the matrix: a linear function from trees like `b` to trees like
            `b`. Values that it captures are differentiated, too.
        b: the right-hand side, a tree of arrays.
        solve: ``solve(matvec, b)`` returns the solution, a tree like `b`.
        transpose_solve: ``transpose_solve(vecmat, b)`` returns the solution of the transposed
            system. Reverse mode needs it.
        symmetric: whether the matrix equals its transpose; `solve` and `matvec` are then used for
            the transposed system, too.
        has_aux: whether `solve` and `transpose_solve` return pairs of the solution and auxiliary
            data, which have no derivatives.

    Returns:
        The solution, or with `has_aux` the pair that `solve` returned.

    Raises:
        TypeError: `matvec`, `solve` or `transpose_solve` does not return a tree like `b`, or
            reverse mode is used without `transpose_solve`.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail import lax
        >>> def half(a):
        ...     return lax.custom_linear_solve(
        ...         lambda x: a * x, 1.0, lambda matvec, b: b / a, symmetric=True
        ...     )
        >>> float(half(2.0)), float(dt.grad(half)(2.0))
        (0.5, -0.25)
    """
    for argument, name in ((matvec, "matvec"), (solve, "solve")):
        check_callable(argument, f"{_CALLER}, for {name},")
    if transpose_solve is None:
        transpose_solve = solve if symmetric else None
    else:
        check_callable(transpose_solve, f"{_CALLER}, for transpose_solve,")
    vector = Vector.of(b, _CALLER, "b").settled(matvec)
    product = vector.stage(matvec, matvec, "matvec")
    of_solve = vector.stage(lambda y: solve(matvec, y), solve, "solve", has_aux=has_aux)
    bodies = [product, None, of_solve, None]
    if transpose_solve is not None:
        user = transpose_solve
        transposed = product if symmetric else _transposed(product, len(vector.avals))
        function = function_of(transposed.closed)

        def vecmat(x: Any) -> Any:
            leaves = vector.leaves_of(x, "the product with the transpose")
            return pytree.unflatten(vector.tree, function(*transposed.captured, *leaves))

        by = matvec if symmetric else vecmat
        bodies[1] = transposed
        bodies[3] = vector.stage(lambda y: user(by, y), user, "transpose_solve", has_aux=has_aux)
    outs = _bind(
        [body.captured if body else [] for body in bodies],
        [body and body.closed for body in bodies],
        vector.leaves,
    )
    return pytree.unflatten(of_solve.out_tree, outs)
