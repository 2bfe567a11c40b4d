"""Batching of calls of functions with custom rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dovetail._core.base.flags import merge, partition
from dovetail._core.basis.structural import reduce_sum
from dovetail._core.trace.custom_rules import Dims, Run
from dovetail._core.trace.zeros import Zero, with_zeros, without_zeros
from dovetail._core.transform.batch import batch_flat, place_batch, unbatched_aval


@dataclass(slots=True)
class Batch:
    """A batch over which a function and its rules are run.

    If an argument has a batch dimension, all results have one, at 0. If none has, the function may
    still have captured a batched value: its first run decides.

    Attributes:
        run: runs a function for every element.
        size: the number of elements.
        dims: the batch dimensions of the arguments.
        is_batched: whether the results have a batch dimension; None until the first run.
    """

    run: Run
    size: int
    dims: Dims
    is_batched: bool | None = None

    @classmethod
    def of_arguments(cls, size: int, dims: Dims) -> Batch:
        """The batch of an equation, which captures nothing."""

        def run(
            function: Callable[..., Sequence[Any]], values: Sequence[Any], dims: Dims
        ) -> tuple[list[Any], list[int | None]]:
            return batch_flat(function, values, dims, size)

        return cls(run, size, tuple(dims), any(d is not None for d in dims))

    def results(self, values: Sequence[Any], dims: Dims) -> list[Any]:
        """Results with their batch dimension moved to where it belongs."""
        if self.is_batched is None:
            self.is_batched = any(d is not None for d in [*self.dims, *dims])
        if not self.is_batched:
            return list(values)
        return [place_batch(v, d, self.size, 0) for v, d in zip(values, dims, strict=True)]

    def out_dim(self) -> int | None:
        """The batch dimension of the results."""
        return 0 if self.is_batched else None


#: (residuals, cotangents of the results) -> cotangents of the perturbed arguments.
Backward = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


def batched_backward(
    backward: Backward, batch: Batch, residual_dims: Dims, in_dims: Dims
) -> Backward:
    """The backward pass for each element of a batch.

    Args:
        backward: the backward pass of one element.
        batch: the batch, with the batch dimension of the result cotangents.
        residual_dims: the batch dimensions of the residuals.
        in_dims: those of the perturbed arguments. Cotangents of unbatched ones are summed.
    """

    def run(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        nonzero_cts, ct_values = without_zeros(cotangents)
        out_dim, count = batch.out_dim(), len(residuals)
        _, zeros = partition(nonzero_cts, cotangents)
        if out_dim is not None:
            zeros = [Zero(unbatched_aval(z.aval, out_dim)) for z in zeros]
        in_zeros: list[Zero | None] = []

        def flat(*values: Any) -> list[Any]:
            results = backward(values[:count], merge(nonzero_cts, values[count:], zeros))
            in_zeros[:] = [ct if type(ct) is Zero else None for ct in results]
            return [ct for ct in results if type(ct) is not Zero]

        results, dims = batch.run(
            flat, [*residuals, *ct_values], [*residual_dims, *[out_dim] * len(ct_values)]
        )
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
            elif batch.is_batched:
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
        placed = batch.results(values, dims)
        outs = placed[: len(nonzero_out)]
        return outs, with_zeros(nonzero_out, placed[len(nonzero_out) :], outs)

    return run
