"""Batching of calls of functions with custom rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dovetail._core.base import dtypes
from dovetail._core.base.flags import merge, partition
from dovetail._core.base.interrupts import is_interrupt
from dovetail._core.basis.operands import make_literal
from dovetail._core.basis.structural import broadcast_batch, reduce_sum
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import DebugInfo
from dovetail._core.ops.shape.slicing import pad_with
from dovetail._core.trace.custom_rules import Dims, Run
from dovetail._core.trace.state import state
from dovetail._core.trace.zeros import Zero, with_zeros, without_zeros
from dovetail._core.transform.batch import batch_flat, place_batch, unbatched_aval
from dovetail._core.transform.derived import dependence_of
from dovetail._core.transform.stage import stage


@dataclass(slots=True)
class Batch:
    """A batch over which a function and its rules are run.

    A result has a batch dimension, at 0, if it depends on a batched value in the function or in a
    rule. So runs are first made to find that out, until `settled`.

    Attributes:
        run: runs a function for every element.
        size: the number of elements.
        dims: the batch dimensions of the arguments.
        out_dims: those of the results, as far as runs have shown; None before the first.
        settled: whether they are final.
    """

    run: Run
    size: int
    dims: Dims
    out_dims: tuple[int | None, ...] | None = None
    settled: bool = False

    @classmethod
    def of_arguments(
        cls, size: int, dims: Dims, out_dims: tuple[int | None, ...] | None = None
    ) -> Batch:
        """The batch of an equation, which captures nothing."""
        axis = state.batch_axis  # rules of the user's run later, and may name it

        def run(
            function: Callable[..., Sequence[Any]], values: Sequence[Any], dims: Dims
        ) -> tuple[list[Any], list[int | None]]:
            return batch_flat(function, values, dims, size, axis)

        return cls(run, size, tuple(dims), out_dims, out_dims is not None)

    @property
    def is_batched(self) -> bool:
        """Whether anything that is known of has a batch dimension."""
        return any(d is not None for d in [*self.dims, *(self.out_dims or ())])

    @property
    def mixed(self) -> bool:
        """Whether a result has no batch dimension although something else has."""
        return self.is_batched and self.out_dims is not None and None in self.out_dims

    def note(self, dims: Sequence[int | None]) -> None:
        """Add what a run has shown of the batch dimensions of results."""
        known = self.out_dims or (None,) * len(dims)
        found = tuple([k if d is None else 0 for k, d in zip(known, dims, strict=True)])
        if self.settled and found != self.out_dims:
            raise ValueError(
                "a rule of a function with custom derivatives has made a result depend on the "
                "elements that vmap maps over, and did not when it was first traced"
            )
        self.out_dims = found

    def placed(self, values: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        """Results with their batch dimensions where they belong."""
        assert self.out_dims is not None
        return [
            v if out is None else place_batch(v, d, self.size, out)
            for v, d, out in zip(values, dims, self.out_dims, strict=True)
        ]

    def results(self, values: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        """Note the batch dimensions of results, and move them to where they belong."""
        self.note(dims)
        return self.placed(values, dims)


def settle(batches: Sequence[Batch], found: Callable[[], bool]) -> bool:
    """Whether the rule of a function makes more of its results depend on a batch; all are settled.

    Args:
        batches: the batches, of which the function has been run.
        found: runs the rule, if possible, and returns whether it was.
    """
    before = [batch.out_dims for batch in batches]
    if any(batch.mixed for batch in batches) and not found():
        for batch in batches:
            if batch.mixed:
                batch.note([0] * len(batch.out_dims or ()))
    for batch in batches:
        batch.settled = True
    return before != [batch.out_dims for batch in batches]


#: (residuals, cotangents of the results) -> cotangents of the perturbed arguments.
Backward = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


def batched_backward(
    backward: Backward, batch: Batch, residual_dims: Dims, in_dims: Dims
) -> Backward:
    """The backward pass for each element of a batch.

    Args:
        backward: the backward pass of one element.
        batch: the batch, with the batch dimensions of the result cotangents. Those of a result
            without one are passed to the first element: it may as well have computed the result.
        residual_dims: the batch dimensions of the residuals.
        in_dims: those of the perturbed arguments. Cotangents of unbatched ones are summed.
    """

    def run(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        nonzero_cts, ct_values = without_zeros(cotangents)
        count = len(residuals)
        is_batched = batch.is_batched or any(d is not None for d in residual_dims)
        out_dims = batch.out_dims or ()
        ct_dims, zero_dims = partition(nonzero_cts, out_dims)
        if is_batched:
            ct_values = [
                _of_first(ct, batch.size) if dim is None else ct
                for ct, dim in zip(ct_values, ct_dims, strict=True)
            ]
            ct_dims = [0] * len(ct_values)
        _, zeros = partition(nonzero_cts, cotangents)
        zeros = [
            z if dim is None else Zero(unbatched_aval(z.aval, dim))
            for z, dim in zip(zeros, zero_dims, strict=True)
        ]
        in_zeros: list[Zero | None] = []

        def flat(*values: Any) -> list[Any]:
            results = backward(values[:count], merge(nonzero_cts, values[count:], zeros))
            in_zeros[:] = [ct if type(ct) is Zero else None for ct in results]
            return [ct for ct in results if type(ct) is not Zero]

        results, dims = batch.run(flat, [*residuals, *ct_values], [*residual_dims, *ct_dims])
        pairs = iter(zip(results, dims, strict=True))
        placed = []
        for ct, in_dim in zip(in_zeros, in_dims, strict=True):
            if ct is not None:
                aval = ct.aval
                if in_dim is not None:
                    shape = (*aval.shape[:in_dim], batch.size, *aval.shape[in_dim:])
                    aval = aval.update(shape=shape)
                placed.append(Zero(aval))
                continue
            value, dim = next(pairs)
            if in_dim is not None:
                value = place_batch(value, dim, batch.size, in_dim)
            elif is_batched:
                value = reduce_sum(place_batch(value, dim, batch.size, 0), (0,))
            placed.append(value)
        return placed

    return run


def batched_rule(
    rule: Callable[..., tuple[list[Any], list[Any]]], batch: Batch
) -> Callable[..., tuple[list[Any], list[Any]]]:
    """A rule from primals and tangents to results and their tangents, for each element."""

    def run(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        nonzero, nonzero_tangents = without_zeros(tangents)
        count = len(primals)
        nonzero_out: list[bool] = []

        def flat(*values: Any) -> list[Any]:
            every = with_zeros(nonzero, values[count:], values[:count])
            outs, out_tangents = rule(values[:count], every)
            nonzero_out[:], nonzero_outs = without_zeros(out_tangents)
            return [*outs, *nonzero_outs]

        tangent_dims, _ = partition(nonzero, batch.dims)
        values, dims = batch.run(flat, [*primals, *nonzero_tangents], [*batch.dims, *tangent_dims])
        many = len(nonzero_out)
        varying = iter(dims[many:])
        of_tangents = [next(varying) if yes else None for yes in nonzero_out]
        batch.note([d if t is None else t for d, t in zip(dims, of_tangents, strict=False)])
        outs = batch.placed(values[:many], dims[:many])
        assert batch.out_dims is not None
        places, _ = partition(nonzero_out, batch.out_dims)
        placed = [
            value if place is None else place_batch(value, dim, batch.size, place)
            for value, dim, place in zip(values[many:], dims[many:], places, strict=True)
        ]
        return outs, with_zeros(nonzero_out, placed, outs)

    return run


def _of_first(value: Any, size: int) -> Any:
    """A batch whose first element is `value`, and whose others are zero."""
    aval = aval_of(value)
    padding = ((0, size - 1, 0), *[(0, 0, 0)] * aval.ndim)
    return pad_with(broadcast_batch(value, 1, 0), make_literal(0, aval.dtype), padding)


def reaching_batched(
    backward: Backward,
    residual_avals: Sequence[Any],
    out_avals: Sequence[Any],
    suspects: Sequence[bool],
    in_dims: Dims,
) -> list[bool]:
    """Which cotangents of results go into cotangents of arguments with a batch dimension.

    Args:
        backward: the backward pass of one element.
        residual_avals: the types of its residuals.
        out_avals: those of the results.
        suspects: the results in question; others are passed over.
        in_dims: the batch dimensions of the perturbed arguments.

    Returns:
        A flag for each result; those of all suspects if the backward pass cannot be traced.
    """
    tangents = [aval.tangent() for aval in out_avals]
    nonzero = [aval.dtype != dtypes.float0 for aval in tangents]
    varying, zeros = partition(nonzero, tangents)
    count = len(residual_avals)

    def flat(*values: Any) -> list[Any]:
        cts = merge(nonzero, values[count:], map(Zero, zeros))
        results = zip(backward(values[:count], cts), in_dims, strict=True)
        return [ct for ct, dim in results if dim is not None and type(ct) is not Zero]

    info = DebugInfo("vmap", "a backward rule")
    try:
        closed = stage(flat, [*residual_avals, *varying], info)
    except Exception as error:  # raised again if the rule is ever needed
        if is_interrupt(error):
            raise
        return list(suspects)
    flags = []
    for i, suspect in enumerate(suspects):
        marks = [j == i for j in range(len(suspects))]
        operands = (*[False] * count, *partition(nonzero, marks)[0])
        flags.append(suspect and nonzero[i] and any(dependence_of(closed, operands)))
    return flags
