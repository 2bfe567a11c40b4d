"""What primitives on sparse arrays share.

A class has the rules of one primitive. Most rules follow from its formula, which is written with
other primitives: lowering, batching, and derivatives where it is linear in operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import dovetail as dt
from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend import Primitive, ShapedArray
from dovetail.extend.avals import Zero, aval_of


class Rules:
    """The rules of a primitive on sparse arrays.

    Attributes:
        name: of the primitive.
        multiple_results: whether there are several results, of which only the first has a tangent.
        linear: positions of the operands in each of which the first result is linear.
        generates_nan: whether results can be nan or infinite when no operand is.
    """

    name: ClassVar[str] = ""
    multiple_results: ClassVar[bool] = False
    linear: ClassVar[tuple[int, ...]] = ()
    generates_nan: ClassVar[bool] = False
    primitive: Primitive

    def formula(self, *operands: Any, **params: Any) -> Any:
        """The results by other primitives."""
        raise NotImplementedError

    def abstract(self, *avals: Any, **params: Any) -> Any:
        """Avals of the results."""
        raise NotImplementedError

    def reference(self, *operands: Any, **params: Any) -> Any:
        """The results in plain NumPy."""
        raise NotImplementedError

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """Results and tangents: the sum of what each operand's tangent gives."""
        bind = self.primitive.bind
        results = bind(*primals, **params)
        parts = []
        for i in self.linear:
            if type(tangents[i]) is not Zero:
                operands = [*primals[:i], tangents[i], *primals[i + 1 :]]
                part = bind(*operands, **params)
                parts.append(part[0] if self.multiple_results else part)
        first = results[0] if self.multiple_results else results
        tangent: Any = parts[0] if parts else Zero.of(first)
        for part in parts[1:]:
            tangent = lax.add(tangent, part)
        if not self.multiple_results:
            return results, tangent
        return results, [tangent, *map(Zero.of, results[1:])]

    def transpose(self, cotangent: Any, *operands: Any, **params: Any) -> Sequence[Any]:
        """Cotangents of the operands in which the formula is linear."""
        cotangents: list[Any] = [None] * len(operands)
        first = cotangent[0] if self.multiple_results else cotangent
        if type(first) is Zero:
            return cotangents
        for i, operand in enumerate(operands):
            if isinstance(operand, ShapedArray):
                if i not in self.linear:
                    raise TypeError(f"{self.name} is not linear in its operand {i}")

                def of_operand(x: Any, i: int = i) -> Any:
                    given = [*operands[:i], x, *operands[i + 1 :]]
                    results = self.formula(*given, **params)
                    return results[0] if self.multiple_results else results

                axes = operand.manual_axis_type
                struct = dt.ShapeDtypeStruct(operand.shape, operand.dtype, manual_axis_type=axes)
                (cotangents[i],) = dt.linear_transpose(of_operand, struct)(first)
        return cotangents

    def batch(
        self, operands: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        """The formula for each element of the batch."""
        results = dt.vmap(lambda *x: self.formula(*x, **params), in_axes=tuple(dims))(*operands)
        return results, [0] * len(results) if self.multiple_results else 0

    def lower(self, context: Any, *values: Any, **params: Any) -> Any:
        """The formula, in place."""
        results = context.lower_function(
            lambda *operands: self.formula(*operands, **params), context.avals_in
        )(*values)
        return results if self.multiple_results else results[0]


class BatchedRules(Rules):
    """Rules of a primitive whose operands may have batch dimensions, as BCOO arrays have."""

    def batched_params(self, size: int, **params: Any) -> dict[str, Any]:
        """The parameters for a batch of `size` that is a leading dimension."""
        raise NotImplementedError

    #: Positions of the operands that are not parts of sparse arrays: they get the full size.
    dense_operands: ClassVar[tuple[int, ...]] = ()

    def batch(
        self, operands: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        size = batch_size(operands, dims)
        moved = [
            _leading(x, d, size if i in self.dense_operands else 1)
            for i, (x, d) in enumerate(zip(operands, dims, strict=True))
        ]
        results = self.primitive.bind(*moved, **self.batched_params(size, **params))
        if not self.multiple_results:
            return results, 0
        full = [jnp.broadcast_to(r, (size, *aval_of(r).shape[1:])) for r in results]
        return full, [0] * len(full)


def _leading(x: Any, dim: int | None, size: int) -> Any:
    """An operand with its batch in front, of size 1 or `size` if it is the same for all."""
    if dim is not None:
        return jnp.moveaxis(x, dim, 0)
    return jnp.broadcast_to(jnp.expand_dims(x, 0), (size, *aval_of(x).shape))


def batch_size(operands: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The number of elements of a batch."""
    return next(
        int(aval_of(x).shape[d]) for x, d in zip(operands, dims, strict=True) if d is not None
    )


def made(rules: Rules) -> Primitive:
    """The primitive with some rules."""
    primitive = Primitive(
        rules.name,
        multiple_results=rules.multiple_results,
        accepts_zeros=True,
        generates_nan=rules.generates_nan,
    )
    rules.primitive = primitive
    for rule in ("abstract", "reference", "jvp", "batch", "lower"):
        primitive.define(rule, getattr(rules, rule))
    if rules.linear:
        primitive.define("transpose", rules.transpose)
    return primitive
