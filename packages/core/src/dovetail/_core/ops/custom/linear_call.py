"""`linear_call`: linear functions with a custom transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from dovetail._core.base import dtypes, pytree
from dovetail._core.basis.manual_axes import match_axes
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import batch_size, instantiate_zeros, is_linear, reduce_sum
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.ops.calls.jit import RuleCall
from dovetail._core.ops.checks.checking import without_checks
from dovetail._core.ops.checks.error import avals_of
from dovetail._core.ops.custom.arguments import described, users_code
from dovetail._core.trace.custom_rules import Dims
from dovetail._core.trace.named_axes import BatchAxis
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.scopes import at_own_lines
from dovetail._core.trace.state import state
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.batch import batch_flat, batched_aval, place_batch
from dovetail._core.transform.derived import (
    batch_of,
    derived_info,
    function_of,
    hoist_consts,
    with_order,
)
from dovetail._core.transform.flattening import FlatFunction, check_callable, location_of, name_of
from dovetail._core.transform.stage import stage


class StagedFunction(NamedTuple):
    """A staged function: its jaxpr, and the captured values, its leading arguments."""

    closed: ClosedJaxpr
    captured: list[Any]


#: Stages the transpose on demand.
Thunk = Callable[[], StagedFunction]


class LinearCall(RuleCall):
    """A call of a linear function, whose transpose is another function.

    Operands: captured values, residuals, and the operands in which it is linear.
    """

    name = "linear_call"
    program = "callee"
    #: Only its linearity is known, so it is never split.
    linearize = Primitive.linearize
    taylor = Primitive.taylor
    dependencies = Primitive.dependencies

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        callee: ClosedJaxpr,
        transpose_thunk: Thunk,
        num_callee_consts: int,
        num_res: int,
    ) -> tuple[Any, Any]:
        count = num_callee_consts + num_res
        params = {
            "callee": callee,
            "transpose_thunk": transpose_thunk,
            "num_callee_consts": num_callee_consts,
            "num_res": num_res,
        }
        outs = self.bind(*primals, **params)
        for t in tangents[:count]:
            if type(t) is not Zero and t.dtype != dtypes.float0:
                raise TypeError(
                    "linear_call cannot be differentiated with respect to its residual_args, nor "
                    "to what its function captured: its transpose is known, its derivative in "
                    "them is not. Pass what is differentiated in linear_args, or use "
                    "dovetail.lax.stop_gradient"
                )
        if all(type(t) is Zero for t in tangents):
            return outs, [Zero.of(o) for o in outs]
        linear = [instantiate_zeros(t) for t in tangents[count:]]
        out_tangents = self.bind(*primals[:count], *linear, **params)
        zeros = map(Zero.of, outs)
        return outs, [
            z if z.dtype == dtypes.float0 else t for t, z in zip(out_tangents, zeros, strict=True)
        ]

    def transpose(
        self,
        cotangent: Any,
        *args: Any,
        callee: ClosedJaxpr,
        transpose_thunk: Thunk,
        num_callee_consts: int,
        num_res: int,
    ) -> Sequence[Any]:
        count = num_callee_consts + num_res
        if any(is_linear(a) for a in args[:count]):
            raise TypeError("linear_call cannot be transposed with respect to its residual_args")
        staged = transpose_thunk()
        captured = args[:num_callee_consts]
        cotangents = self.bind(
            *staged.captured,
            *args[num_callee_consts:count],
            *[instantiate_zeros(ct) for ct in cotangent],
            callee=staged.closed,
            transpose_thunk=lambda: StagedFunction(callee, [*captured]),
            num_callee_consts=len(staged.captured),
            num_res=num_res,
        )
        linear = [is_linear(a) for a in args[count:]]
        return [
            *[None] * count,
            *[
                match_axes(ct, a.aval) if lin else None
                for ct, a, lin in zip(cotangents, args[count:], linear, strict=True)
            ],
        ]

    def batch(
        self,
        args: Sequence[Any],
        dims: Dims,
        *,
        callee: ClosedJaxpr,
        transpose_thunk: Thunk,
        num_callee_consts: int,
        num_res: int,
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        batched, _ = batch_of(callee, size, tuple(dims), (True,) * len(callee.out_avals))
        residual_dims = dims[num_callee_consts : num_callee_consts + num_res]
        linear_dims = dims[num_callee_consts + num_res :]
        axis = state.batch_axis or BatchAxis(None, size)

        def thunk() -> StagedFunction:
            staged = transpose_thunk()
            in_dims = [
                *[None] * len(staged.captured),
                *residual_dims,
                *[0] * len(batched.out_avals),
            ]
            return StagedFunction(
                _summed(staged.closed, axis, in_dims, linear_dims), staged.captured
            )

        outs = self.bind(
            *args,
            callee=batched,
            transpose_thunk=thunk,
            num_callee_consts=num_callee_consts,
            num_res=num_res,
        )
        return outs, [0] * len(outs)

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        # Checks in the transpose are ignored: it runs after the error was returned.
        callee, transpose_thunk = params["callee"], params["transpose_thunk"]
        checked, error = checks.checked(callee)
        if checked is callee:
            return self.bind(*args, **params)
        avals = avals_of(error)
        first, many = len(avals), len(callee.out_avals)
        order = [*range(first, first + many), *range(first)]
        callee, captured = hoist_consts(with_order(checked, range(len(callee.in_avals)), order))

        def thunk() -> StagedFunction:
            closed, before = transpose_thunk()
            closed = without_checks(closed)
            closed, more = hoist_consts(with_order(closed, [*range(len(closed.in_avals)), *avals]))
            return StagedFunction(closed, [*more, *before])

        params |= {"callee": callee, "transpose_thunk": thunk}
        params["num_callee_consts"] += len(captured)
        outs = self.bind(*captured, *args, **params)
        checks.record(error, outs[many:])
        return outs[:many]


linear_call_p: Final = LinearCall()


def _summed(closed: ClosedJaxpr, axis: BatchAxis, dims: Dims, linear_dims: Dims) -> ClosedJaxpr:
    """The transpose for each element of a batch; cotangents of unbatched operands are summed."""
    size = axis.size

    def function(*args: Any) -> list[Any]:
        outs, out_dims = batch_flat(function_of(closed), args, dims, size, axis)
        return [
            reduce_sum(place_batch(o, f, size, 0), (0,))
            if d is None
            else place_batch(o, f, size, d)
            for o, f, d in zip(outs, out_dims, linear_dims, strict=True)
        ]

    avals = [
        a if d is None else batched_aval(a, size, d)
        for a, d in zip(closed.in_avals, dims, strict=True)
    ]
    return hoist_consts(stage(function, avals, derived_info(closed, "vmap")))[0]


def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """Call a linear function with a custom transpose.

    Reverse mode uses `fun_transpose`, forward mode `fun` itself. Linearity of `fun` and correctness
    of `fun_transpose` are not checked.

    Args:
        fun: ``fun(residual_args, linear_args)``, linear in the second argument.
        fun_transpose: ``fun_transpose(residual_args, cotangent)``, linear in the second argument, a
            cotangent with the structure of the result of `fun`; returns a cotangent with the
            structure of `linear_args`.
        residual_args: a tree of arrays, which cannot be differentiated.
        linear_args: a tree of arrays.

    Returns:
        The result of `fun`.

    Raises:
        TypeError: `fun_transpose` returns something else, or `residual_args` is differentiated.

    Differs:
        It works under `vmap`.

        >>> from dovetail.custom_derivatives import linear_call
        >>> halve = lambda x: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, 2.0, x)
        >>> print(dt.vmap(halve)(jnp.arange(3.0)))
        [0.  0.5 1. ]

    Example:
        >>> import dovetail as dt
        >>> from dovetail.custom_derivatives import linear_call
        >>> def halve(x):
        ...     return linear_call(lambda d, x: x / d, lambda d, ct: ct / d, 2.0, x)
        >>> float(halve(3.0)), float(dt.grad(halve)(3.0))
        (1.5, 0.5)
    """
    check_callable(fun, "linear_call")
    check_callable(fun_transpose, "linear_call")
    residuals, residual_tree, _ = _operands(residual_args, "residual_args")
    linear, linear_tree, names = _operands(linear_args, "linear_args")
    residual_avals = [aval_of(r) for r in residuals]
    linear_avals = [aval_of(x) for x in linear]
    flat = FlatFunction(fun, _pair(residual_tree, linear_tree))
    callee = _stage(flat, [*residual_avals, *linear_avals], fun)
    out_avals = callee.closed.out_avals

    def thunk() -> StagedFunction:
        transposed = FlatFunction(fun_transpose, _pair(residual_tree, flat.out_tree))
        staged = _stage(transposed, [*residual_avals, *out_avals], fun_transpose)
        rule = f"linear_call: the transpose {described(fun_transpose)} of {described(fun)}"
        if transposed.out_tree != linear_tree:
            difference = pytree.structure_difference(
                linear_tree, transposed.out_tree, "linear_args", "the result"
            )
            raise TypeError(f"{rule} must return the structure of linear_args:\n{difference}")
        for i, (actual, expected) in enumerate(
            zip(staged.closed.out_avals, linear_avals, strict=True)
        ):
            if actual.shape != expected.shape or actual.dtype != expected.dtype:
                raise TypeError(
                    f"{rule} must return for {names[i]} a cotangent of its type, "
                    f"{expected.short_name()}, got {actual.short_name()}"
                )
        return staged

    outs = linear_call_p.bind(
        *callee.captured,
        *residuals,
        *linear,
        callee=callee.closed,
        transpose_thunk=thunk,
        num_callee_consts=len(callee.captured),
        num_res=len(residuals),
    )
    return flat.out_tree.unflatten(outs)


def _operands(tree: Any, argument: str) -> tuple[list[Any], Any, list[str]]:
    pairs, definition = pytree.flatten_with_path(tree)
    names = [argument + pytree.keystr(path) for path, _ in pairs]
    leaves = [as_operand(x, "linear_call", name) for (_, x), name in zip(pairs, names, strict=True)]
    return leaves, definition, names


def _pair(first: Any, second: Any) -> Any:
    """The structure of a tuple of two trees."""
    return pytree.treedef_tuple((first, second))


def _stage(flat: FlatFunction, avals: Sequence[Any], user: Callable[..., Any]) -> StagedFunction:
    with at_own_lines(), users_code(f"linear_call of {described(user)}"):
        info = DebugInfo("linear_call", name_of(user), location_of(user))
        return StagedFunction(*hoist_consts(stage(flat, avals, info)))
