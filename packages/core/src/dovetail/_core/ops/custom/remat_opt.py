"""`remat_opt`: a forward rule that becomes the function itself if its residuals are unused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dovetail._core.base.errors import UnexpectedTracerError
from dovetail._core.basis.structural import batch_size
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, JaxprEqn
from dovetail._core.ir.walk import Reduction, dce_inside
from dovetail._core.ops.calls.jit import RuleCall, jit_p
from dovetail._core.ops.custom.arguments import UserFunction
from dovetail._core.trace.custom_rules import Dims
from dovetail._core.trace.primitive import Primitive
from dovetail._core.transform.derived import batch_of, hoist_consts
from dovetail._core.transform.stage import stage

#: The name that programs show for the call.
_NAME: Final = "remat_opt"


class RematOpt(RuleCall):
    """A call of a forward rule; the last `num_res` results are its residuals.

    `fun_jaxpr_thunk` gives the jaxpr of the function, None if it captures something.
    """

    name = _NAME
    program = "fwd_jaxpr"
    #: The rule runs once: it is not split into parts that depend on tangents or not.
    dependencies = Primitive.dependencies

    def batch(
        self,
        args: Sequence[Any],
        dims: Dims,
        *,
        fwd_jaxpr: ClosedJaxpr,
        fun_jaxpr_thunk: Callable[[], ClosedJaxpr | None],
        num_consts: int,
        num_res: int,
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        # The function must return what the rule returns, including batch dimensions.
        batched, out_dims = batch_of(fwd_jaxpr, size, tuple(dims))
        count = len(out_dims) - num_res
        instantiate = tuple([d is not None for d in out_dims[:count]])

        def thunk() -> ClosedJaxpr | None:
            closed = fun_jaxpr_thunk()
            if closed is None:
                return None
            of_function, function_dims = batch_of(
                closed, size, tuple(dims[num_consts:]), instantiate
            )
            return of_function if function_dims == out_dims[:count] else None

        outs = self.bind(
            *args,
            fwd_jaxpr=batched,
            fun_jaxpr_thunk=thunk,
            num_consts=num_consts,
            num_res=num_res,
        )
        return outs, out_dims

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        count = len(used) - eqn.params["num_res"]
        closed = None
        if not any(used[count:]) and not eqn.effects:
            closed = eqn.params["fun_jaxpr_thunk"]()
        if closed is None:
            return (yield from dce_inside(eqn, used))
        call = JaxprEqn(
            eqn.invars[eqn.params["num_consts"] :],
            eqn.outvars[:count],
            jit_p,
            {"jaxpr": closed, "name": _NAME},
            closed.jaxpr.effects,
            eqn.traceback,
        )
        return (yield from jit_p.dce(call, used[:count]))


remat_opt_p: Final = RematOpt()


def call_forward(
    forward: Callable[..., list[Any]],
    count: Callable[[], int],
    function: UserFunction,
    primals: Sequence[Any],
) -> list[Any]:
    """Results and residuals of a forward rule, as an equation that may become the function.

    Args:
        forward: the rule, of flat arguments.
        count: returns the number of results, after `forward` has run.
        function: the function.
        primals: the arguments.
    """
    avals = [aval_of(p) for p in primals]
    info = function.debug_info()
    closed, captured = hoist_consts(stage(forward, avals, info))
    memo: list[ClosedJaxpr | None] = []

    def thunk() -> ClosedJaxpr | None:
        if not memo:
            try:
                staged = stage(function, avals, info)
            except UnexpectedTracerError:  # it captured a tracer that is gone
                memo.append(None)
            else:
                memo.append(None if staged.consts else staged)
        return memo[0]

    values: list[Any] = remat_opt_p.bind(
        *captured,
        *primals,
        fwd_jaxpr=closed,
        fun_jaxpr_thunk=thunk,
        num_consts=len(captured),
        num_res=len(closed.out_avals) - count(),
    )
    return values
