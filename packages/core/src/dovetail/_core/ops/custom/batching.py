"""Calls of functions with rules of their own for every element of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dovetail._core.basis.structural import reduce_sum
from dovetail._core.trace.custom_rules import Dims, Run
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.batch import batch_flat, place_batch, unbatched_aval


@dataclass(slots=True)
class Batch:
    """A batch over which a function and its rules are run.

    The results have a batch dimension, all of them and at 0, if an argument has one. If none has,
    the function may have captured a value that has: whatever runs first decides.

    Attributes:
        run: runs a function for every element.
        size: the number of elements.
        dims: the batch dimensions of the arguments.
        is_batched: whether the results have a batch dimension.
    """

    run: Run
    size: int
    dims: Dims
    is_batched: bool | None = None

    @classmethod
    def of_arguments(cls, size: int, dims: Dims) -> Batch:
        """A batch for an equation, which captures nothing."""

        def run(
            function: Callable[..., Sequence[Any]], values: Sequence[Any], dims: Dims
        ) -> tuple[list[Any], list[int | None]]:
            return batch_flat(function, values, dims, size)

        return cls(run, size, tuple(dims), any(d is not None for d in dims))

    def results(self, values: Sequence[Any], dims: Dims) -> list[Any]:
        """Results with their batch dimension where it is to be."""
        if self.is_batched is None:
            self.is_batched = any(d is not None for d in [*self.dims, *dims])
        if not self.is_batched:
            return list(values)
        return [place_batch(v, d, self.size, 0) for v, d in zip(values, dims, strict=True)]

    def out_dim(self) -> int | None:
        """The batch dimension of the results."""
        return 0 if self.is_batched else None


def with_zeros(given: Sequence[Any], primals: Sequence[Any], nonzero: Sequence[bool]) -> list[Any]:
    """Tangents of all primals from those that do not vanish."""
    found = iter(given)
    return [next(found) if n else Zero.of(p) for p, n in zip(primals, nonzero, strict=True)]


#: From residuals and the cotangents of the results to the cotangents of what is perturbed.
Backward = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


def batched_backward(
    backward: Backward, batch: Batch, residual_dims: Dims, in_dims: Dims
) -> Backward:
    """The backward pass for every element of a batch.

    Args:
        backward: that of one element.
        batch: says how, and where the cotangents of the results have their batch dimension.
        residual_dims: the batch dimensions of the residuals.
        in_dims: those of what is perturbed. The cotangents of what has none are summed.
    """

    def run(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        nonzero = [type(ct) is not Zero for ct in cotangents]
        out_dim, count = batch.out_dim(), len(residuals)
        zeros = [
            ct if n or out_dim is None else Zero(unbatched_aval(ct.aval, out_dim))
            for ct, n in zip(cotangents, nonzero, strict=True)
        ]
        found: list[Zero | None] = []

        def flat(*values: Any) -> list[Any]:
            given = iter(values[count:])
            cts = [next(given) if n else z for z, n in zip(zeros, nonzero, strict=True)]
            results = backward(values[:count], cts)
            found[:] = [ct if type(ct) is Zero else None for ct in results]
            return [ct for ct in results if type(ct) is not Zero]

        given = [ct for ct, n in zip(cotangents, nonzero, strict=True) if n]
        results, dims = batch.run(
            flat, [*residuals, *given], [*residual_dims, *[out_dim] * len(given)]
        )
        pairs = iter(zip(results, dims, strict=True))
        placed = []
        for ct, in_dim in zip(found, in_dims, strict=True):
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
    """A rule from primals and tangents to results and their tangents, for every element."""

    def run(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        nonzero = [type(t) is not Zero for t in tangents]
        count = len(primals)
        varies: list[bool] = []

        def flat(*values: Any) -> list[Any]:
            given = with_zeros(values[count:], values[:count], nonzero)
            outs, out_tangents = rule(values[:count], given)
            varies[:] = [type(t) is not Zero for t in out_tangents]
            return [*outs, *[t for t in out_tangents if type(t) is not Zero]]

        given = [t for t, n in zip(tangents, nonzero, strict=True) if n]
        given_dims = [d for d, n in zip(batch.dims, nonzero, strict=True) if n]
        values, dims = batch.run(flat, [*primals, *given], [*batch.dims, *given_dims])
        placed = batch.results(values, dims)
        outs = placed[: len(varies)]
        return outs, with_zeros(placed[len(varies) :], outs, varies)

    return run
