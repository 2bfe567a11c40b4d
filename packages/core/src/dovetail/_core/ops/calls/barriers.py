"""Barriers and sinks, which keep the compiler from moving or removing computations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.flags import merge, partition
from dovetail._core.base.typing import Array, ArrayLike, PyTree
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import Same, is_linear
from dovetail._core.ir.avals import aval_of, outer_aval
from dovetail._core.ir.jaxpr import Effects
from dovetail._core.trace.divisions import Labels, gathered_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


T = TypeVar("T")


class OptimizationBarrier(Primitive):
    """Returns its operands; no result is available before all operands are."""

    name = "optimization_barrier"
    types_axes = True
    multiple_results = True
    accepts_zeros = True
    generates_nan = False

    def abstract(self, *avals: Any) -> Any:
        return list(avals)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        own = [[(i, d) for d in range(getattr(a, "ndim", 0))] for i, a in enumerate(avals)]
        return Labels(own, own)

    def reference(self, *args: Any) -> Any:
        return [np.array(x) for x in args]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self.bind(*primals), self._on_values(tangents)

    def _on_values(self, values: Sequence[Any]) -> list[Any]:
        """A barrier for the nonzero ones of tangents or cotangents."""
        nonzero = [v for v in values if type(v) is not Zero]
        results = iter(self.bind(*nonzero) if nonzero else ())
        return [v if type(v) is Zero else next(results) for v in values]

    def transpose(self, cotangent: Any, *args: Any) -> Sequence[Any]:
        cts = self._on_values(cotangent)
        return [ct if is_linear(x) else None for ct, x in zip(cts, args, strict=True)]

    def batch(self, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, Any]:
        return self.bind(*args), list(dims)

    def lower(self, context: Builder, *values: Any) -> Any:
        return context.optimization_barrier(values, context.avals_out)


optimization_barrier_p: Final = OptimizationBarrier()


class StageValue(Same):
    """The operand, as a value of the traced program."""

    name = "stage"


stage_p: Final = StageValue()


class DceSink(Primitive):
    """Uses its operand without effect, which keeps its computation in a program."""

    name = "dce_sink"
    types_axes = True
    multiple_results = True
    accepts_zeros = True
    has_effects = True
    generates_nan = False

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return gathered_labels(avals, results)

    def evaluate(self, x: Any, **params: Any) -> Any:
        """Do nothing: the value is computed already."""
        return []

    def abstract(self, x: Any, *, prevent_mlir_dce: bool) -> Any:
        return []

    def reference(self, x: Any, *, prevent_mlir_dce: bool) -> Any:
        return []

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, prevent_mlir_dce: bool
    ) -> tuple[Any, Any]:
        for value in (*primals, *tangents):
            if type(value) is not Zero:
                self.bind(value, prevent_mlir_dce=prevent_mlir_dce)
        return [], []

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, prevent_mlir_dce: bool
    ) -> tuple[Any, Any]:
        return self.bind(*args, prevent_mlir_dce=prevent_mlir_dce), []

    def lower(self, context: Builder, x: Any, *, prevent_mlir_dce: bool) -> Any:
        # StableHLO has no operation for it, and many compilers reject unknown calls.
        return []

    def effects(self, *avals: Any, **params: Any) -> Effects:
        return frozenset({self.name})


dce_sink_p: Final = DceSink()


# Public functions.


def optimization_barrier(operand: T, /) -> T:
    """Return the operands, and keep the compiler from moving anything across this point.

    No result can be used before all operands are computed, and the computation of the operands is
    not merged with uses of the results. This prevents recomputation and reordering.

    Args:
        operand: an array, or a tree of arrays and tokens.

    Returns:
        A tree of arrays like `operand`.

    Raises:
        TypeError: a leaf is not an array.

    Example:
        >>> from dovetail import lax
        >>> x, y = lax.optimization_barrier((1.0, 2.0))
        >>> float(x + y)
        3.0
    """
    leaves, tree = pytree.flatten(operand)
    values = [as_operand(x, "lax.optimization_barrier", "operand") for x in leaves]
    # Tangents of integers (float0) do not exist on a device.
    on_device = [outer_aval(aval_of(v)).dtype != dtypes.float0 for v in values]
    device_values, others = partition(on_device, values)
    results = optimization_barrier_p.bind(*device_values) if device_values else ()
    return pytree.unflatten(tree, merge(on_device, results, others))


def stage(x: ArrayLike, /) -> Array:
    """Return `x` as an array, and under a transformation as a value of the traced program.

    Constants of the host are otherwise written into a program as they are.

    Args:
        x: an array or a scalar.

    Returns:
        An array.

    Raises:
        TypeError: `x` is not an array or scalar.

    Example:
        >>> from dovetail import lax
        >>> lax.stage(2.0).shape
        ()
    """
    return stage_p.bind(as_operand(x, "lax.stage"))


def dce_sink(val: PyTree, *, prevent_mlir_dce: bool = False) -> None:
    """Keep a computation whose results are unused.

    Under `jit`, unused values are dropped from the program, but not if they are passed to this
    function. Called on arrays, it does nothing.

    Args:
        val: an array, or a tree of arrays.
        prevent_mlir_dce: whether to keep the compiler from removing it, too; this works for CPUs,
            GPUs and TPUs.

    Raises:
        TypeError: a leaf is not an array.

    Example:
        >>> import dovetail as dt
        >>> from dovetail import lax
        >>> "sine" in dt.jit(lambda x: lax.dce_sink(lax.sin(x))).lower(1.0).as_text()
        True
    """
    for leaf in pytree.leaves(val):
        value = as_operand(leaf, "lax.dce_sink", "val")
        dce_sink_p.bind(value, prevent_mlir_dce=bool(prevent_mlir_dce))
