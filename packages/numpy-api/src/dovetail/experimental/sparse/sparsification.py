"""Functions of dense arrays applied to sparse ones: `sparsify`.

The function runs on tracers that stand for sparse arrays. Each primitive that meets one is done by
its rule for sparse operands; others are done as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec

from dovetail import core
from dovetail.experimental.sparse.coordinates import Coordinates
from dovetail.experimental.sparse.formats import JAXSparse
from dovetail.experimental.sparse.rules import is_sparse, rule_of
from dovetail.extend import ClosedJaxpr, ShapedArray
from dovetail.extend.arguments import require_callable
from dovetail.extend.avals import aval_of
from dovetail.extend.eager import trace_state, use_trace
from dovetail.tree_util import tree_flatten, tree_unflatten

P = ParamSpec("P")


class SparseTracer(core.Tracer):
    """What stands for a sparse array in a function that `sparsify` has been applied to.

    Args:
        trace: what processes it.
        spvalue: the sparse array.
    """

    __slots__ = ("spvalue",)

    def __init__(self, trace: SparseTrace, *, spvalue: Coordinates) -> None:
        self._trace = trace
        self.aval = ShapedArray(spvalue.shape, spvalue.dtype)
        self.spvalue = spvalue

    def __repr__(self) -> str:
        return f"SparseTracer({self.spvalue!r})"


class SparseTrace(core.Trace):
    """Processes primitives by their rules for sparse operands."""

    __slots__ = ()

    def process(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        operands = [self.value_of(x) for x in args]
        parent = self.parent
        assert parent is not None
        with use_trace(parent):
            if not any(map(is_sparse, operands)):
                return parent.process(primitive, operands, params)
            rule = rule_of(primitive)
            body = params.get("call_jaxpr", params.get("jaxpr"))
            if rule is None and isinstance(body, ClosedJaxpr):
                # A call, perhaps with derivatives of its own, which are not needed: what
                # differentiates sees what the function does.
                return [self.wrapped(r) for r in called(body)(*operands)]
            if rule is None:
                shapes = ", ".join(
                    repr(x) if is_sparse(x) else aval_of(x).short_name() for x in operands
                )
                raise NotImplementedError(
                    f"sparsify has no rule for the primitive {primitive.name} of {shapes}; use "
                    "sparse.todense(x) on what is sparse before"
                )
            results = rule(*operands, **params)
        if primitive.multiple_results:
            return [self.wrapped(r) for r in results]
        return self.wrapped(results)

    def process_custom_rule(self, call: Any, args: Sequence[Any]) -> list[Any]:
        if not any(is_sparse(self.value_of(x)) for x in args):
            parent = self.parent
            assert parent is not None
            with use_trace(parent):
                return list(parent.process_custom_rule(call, args))
        return list(call.evaluate(args))

    def value_of(self, x: Any) -> Any:
        """The sparse array that a tracer of this trace stands for; anything else as it is."""
        return x.spvalue if type(x) is SparseTracer and x._trace is self else x

    def wrapped(self, x: Any) -> Any:
        """A tracer for a sparse array; anything else as it is."""
        return SparseTracer(self, spvalue=x) if is_sparse(x) else x

    def describe(self, tracer: Any) -> str:
        return f"a sparse array inside of sparsify, {tracer.spvalue!r}"


def run(function: Callable[..., Any], *values: Any) -> list[Any]:
    """The results of a function of flat arguments, of which some are sparse."""
    trace = SparseTrace(trace_state.trace)
    try:
        with use_trace(trace):
            results = function(*map(trace.wrapped, values))
        return [trace.value_of(r) for r in results]
    finally:
        trace.finished = True


def _is_sparse_array(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def sparsify(f: Callable[P, Any], use_tracer: bool = False) -> Callable[P, Any]:
    """Make a function of dense arrays one that takes sparse ones, too.

    Args:
        f: a function of arrays and trees of them, made of functions of `dovetail.numpy` and
            `dovetail.lax`. What it returns may be sparse.
        use_tracer: accepted for compatibility: functions are always run on tracers.

    Returns:
        The function of sparse and dense arrays. Its results are sparse where they can be computed
        without going through elements that are not stored.

    Raises:
        NotImplementedError: a result of `f` would have no zeros, or there is no rule for an
            operation. `sparse.todense` inside of `f` says that it may be dense.

    Differs:
        Inside of `f` values that do not depend on sparse arrays are known, as they are in a
        function that is called; in JAX they are traced unless `use_tracer` is True. There are rules
        for `max`, `min`, `pow` and their like with numbers, for `split`, for `scan` over sparse
        arrays, and for derivatives inside of `f`.

        >>> from dovetail.experimental import sparse
        >>> sparse.sparsify(lambda x: jnp.maximum(x, 0.0))(-sparse.eye(2)).todense().sum()
        Array(0., dtype=float32)

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.sparsify(lambda x, y: jnp.sin(x) @ y)(sparse.eye(2), jnp.ones(2))
        Array([0.84147096, 0.84147096], dtype=float32)
    """
    require_callable("sparsify", "f", f)

    @wraps(f)
    def sparse_f(*args: P.args, **kwargs: P.kwargs) -> Any:
        leaves, tree = tree_flatten((args, kwargs), is_leaf=_is_sparse_array)
        out_tree: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            given, keywords = tree_unflatten(tree, values)
            results = f(*given, **keywords)
            out_leaves, structure = tree_flatten(results, is_leaf=_is_sparse_array)
            out_tree.append(structure)
            return out_leaves

        results = run(flat, *map(_as_coordinates, leaves))
        return tree_unflatten(out_tree[0], results)

    return sparse_f


def _as_coordinates(x: Any) -> Any:
    return x.to_bcoo() if isinstance(x, JAXSparse) and not is_sparse(x) else x


def called(closed: Any) -> Callable[..., list[Any]]:
    """A jaxpr as a function of flat arguments, some of which may be sparse."""

    def function(*values: Any) -> list[Any]:
        return run(lambda *x: core.eval_jaxpr(closed.jaxpr, closed.consts, *x), *values)

    return function
