"""User functions of equations to solve, whose results must match the unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.errors import ShapeError
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, Effects, JaxprEqn
from dovetail._core.ir.walk import Reduction, dce_inside
from dovetail._core.ops.checks.checking import without_checks
from dovetail._core.ops.control.bodies import Body, operands_of, same_type
from dovetail._core.trace.primitive import Primitive
from dovetail._core.transform.derived import divided, hoist_consts, reference_of, with_order
from dovetail._core.transform.flattening import FlatFunction, location_of, name_of
from dovetail._core.transform.interning import interned
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

P = TypeVar("P")


class Vector(NamedTuple):
    """The unknown of an equation: its leaves, structure and names.

    Attributes:
        caller: the API function that got it.
        name: the name of the argument.
        leaves: its leaves.
        tree: its structure.
        avals: avals of the leaves.
        names: names of the leaves.
    """

    caller: str
    name: str
    leaves: list[Any]
    tree: Any
    avals: list[Any]
    names: list[str]

    @classmethod
    def of(cls, tree: Any, caller: str, name: str) -> Vector:
        """The vector of an argument of an API function."""
        leaves, structure, names = operands_of(tree, caller, name)
        return cls(caller, name, leaves, structure, [aval_of(x) for x in leaves], names)

    def stage(
        self,
        function: Callable[..., Any],
        user: Callable[..., Any],
        what: str,
        *,
        arguments: int = 1,
        has_aux: bool = False,
    ) -> Body:
        """Stage a function of such vectors that returns one.

        Args:
            function: the function.
            user: the user's function that it wraps.
            what: the name of the argument of the API function.
            arguments: the number of vectors that it takes.
            has_aux: whether it returns a pair of a vector and auxiliary data.

        Raises:
            TypeError: it does not return such a vector.
        """
        body = self._record(
            self._paired(function, user, what) if has_aux else function, user, arguments
        )
        self._check(user, what, body.out_tree.children()[0] if has_aux else body.out_tree, body)
        return body

    def settled(self, function: Callable[..., Any]) -> Vector:
        """This vector, with its Python numbers in the dtypes that a function returns for them."""
        body = self._record(function, function, 1)
        if body.out_tree != self.tree:
            return self
        leaves = [
            convert_element_type(leaf, after.dtype)
            if before.weak_type
            and before.dtype != after.dtype
            and not dtypes.is_extended(after.dtype)
            and dtypes.result_type(before, after) == after.dtype
            else leaf
            for leaf, before, after in zip(self.leaves, self.avals, body.out_avals, strict=True)
        ]
        return self._replace(leaves=leaves, avals=[aval_of(x) for x in leaves])

    def leaves_of(self, x: Any, function: str) -> list[Any]:
        """The leaves of an argument that the user passes to a function of such vectors."""
        leaves, tree, _ = operands_of(x, f"{self.caller}: {function}", "x")
        if tree != self.tree:
            difference = pytree.structure_difference(self.tree, tree, self.name, "the argument")
            raise TypeError(
                f"{self.caller}: {function} takes a tree of the structure of {self.name}:\n"
                f"{difference}"
            )
        return leaves

    def _record(
        self, function: Callable[..., Any], user: Callable[..., Any], arguments: int
    ) -> Body:
        flat = FlatFunction(
            function,
            pytree.structure((pytree.unflatten(self.tree, self.leaves),) * arguments),
        )
        info = DebugInfo(
            self.caller, name_of(user), location_of(user), tuple(self.names * arguments)
        )
        closed, captured = hoist_consts(stage(flat, self.avals * arguments, info))
        return Body(interned(closed), captured, flat.out_tree)

    def _paired(
        self, function: Callable[..., Any], user: Callable[..., Any], what: str
    ) -> Callable[..., Any]:
        def paired(*args: Any) -> Any:
            out = function(*args)
            if not isinstance(out, tuple) or len(out) != 2:
                raise TypeError(
                    f"{self.caller}: {what} {_placed(user)} must return a pair (solution, "
                    f"auxiliary data) because has_aux=True, got {type(out).__name__}"
                    + (f" of length {len(out)}" if isinstance(out, tuple) else "")
                )
            return out

        return paired

    def _check(self, user: Callable[..., Any], what: str, out_tree: Any, body: Body) -> None:
        if out_tree != self.tree:
            difference = pytree.structure_difference(self.tree, out_tree, self.name, "the result")
            raise ShapeError(
                f"{self.caller}: {what} {_placed(user)} must return a tree of the structure of "
                f"{self.name}:\n{difference}"
            )
        outs: Sequence[Any] = body.out_avals
        wrong = [
            f"\n  {name} is {before.short_name()} and is returned as {after.short_name()}"
            f"{body.made_at(i)}"
            for i, (name, before, after) in enumerate(
                zip(self.names, self.avals, outs, strict=False)
            )
            if not same_type(before, after)
        ]
        if wrong:
            raise ShapeError(
                f"{self.caller}: {what} {_placed(user)} must return the shapes and dtypes of "
                f"{self.name}:{''.join(wrong)}"
            )


def _placed(function: Callable[..., Any]) -> str:
    place = location_of(function)
    return f"{name_of(function)}{f' ({place})' if place else ''}"


def split_operands(
    kind: Callable[..., P], lengths: Sequence[int], values: Sequence[Any]
) -> tuple[P, list[Any]]:
    """The operands of each function of an equation, and the rest.

    Args:
        kind: the tuple type for the former, with an entry for each function.
        lengths: the number of operands of each function.
        values: all operands.
    """
    left = iter(values)
    own = [[next(left) for _ in range(length)] for length in lengths]
    return kind(*own), list(left)


def _divisions(avals: Sequence[Any], closed: ClosedJaxpr) -> list[Any]:
    return [a.division for a in avals[: len(closed.in_avals)]]


class EquationPrimitive(Primitive):
    """Solves an equation by a jaxpr, `jaxprs.solve`.

    Attributes:
        kind: the tuple type with an entry for each function of the equation.
    """

    multiple_results = True
    accepts_zeros = True
    has_effects = True
    generates_nan = False
    types_divisions = True
    kind: ClassVar[Callable[..., Any]]

    def reference(self, *args: Any, **params: Any) -> Any:
        consts, vector = split_operands(self.kind, params["const_lengths"], args)
        return reference_of(params["jaxprs"].solve, [*consts.solve, *vector])

    def effects(self, *avals: Any, **params: Any) -> Effects:
        effects: Effects = params["jaxprs"].solve.jaxpr.effects
        return effects

    def for_divisions(self, avals: Sequence[Any], params: Mapping[str, Any]) -> Mapping[str, Any]:
        consts, vector = split_operands(self.kind, params["const_lengths"], avals)
        typed = [
            # A function takes the vector, or two of its kind.
            closed and divided(closed, _divisions([*own, *vector, *vector], closed))
            for closed, own in zip(params["jaxprs"], consts, strict=True)
        ]
        same = all(new is old for new, old in zip(typed, params["jaxprs"], strict=True))
        return {} if same else {"jaxprs": self.kind(*typed)}

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        consts, vector = split_operands(self.kind, params["const_lengths"], values)
        return context.inline_jaxpr(params["jaxprs"].solve, [*consts.solve, *vector])

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        # Checks apply to the solver, which calls the functions of the equation, but not to calls of
        # these for derivatives.
        jaxprs = params["jaxprs"]
        solve, error = checks.checked(jaxprs.solve)
        first, many = error.num_leaves, len(jaxprs.solve.out_avals)
        # The error comes after the auxiliary data, which has no derivative.
        order = [*range(first, first + many), *range(first)]
        others = self.kind(*[None if jaxpr is None else without_checks(jaxpr) for jaxpr in jaxprs])
        functions = others._replace(solve=with_order(solve, range(len(solve.in_avals)), order))
        consts, vector = split_operands(self.kind, params["const_lengths"], args)
        outs = bind_functions(self, self.kind, consts, functions, vector)
        checks.record(error, outs[many:])
        return outs[:many]

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        return dce_inside(eqn, used)


def bind_functions(
    primitive: Primitive,
    kind: Callable[..., Any],
    consts: Sequence[Sequence[Any]],
    jaxprs: Sequence[ClosedJaxpr | None],
    vector: Sequence[Any],
) -> list[Any]:
    """Bind the primitive of an equation; values that its jaxprs captured become operands.

    Args:
        primitive: one with the parameters ``const_lengths`` and ``jaxprs``, and operands for
            `split_operands`.
        kind: the tuple type of these parameters.
        consts: for each function, its own operands.
        jaxprs: the functions; None for an unknown one.
        vector: the operands that follow.
    """
    parts = [(None, []) if jaxpr is None else hoist_consts(jaxpr) for jaxpr in jaxprs]
    operands = [[*captured, *own] for (_, captured), own in zip(parts, consts, strict=True)]
    outs: list[Any] = primitive.bind(
        *(value for own in operands for value in own),
        *vector,
        const_lengths=kind(*map(len, operands)),
        jaxprs=kind(*(jaxpr for jaxpr, _ in parts)),
    )
    return outs
