"""Branches and loops over sparse arrays, inside of `sparsify`.

What a branch or a step gives must be stored alike: in the layout that has room for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dovetail as dt
from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo_elements import todense
from dovetail.experimental.sparse.bcoo_layouts import relaid
from dovetail.experimental.sparse.bcoo_order import full
from dovetail.experimental.sparse.layouts import position_dtype
from dovetail.experimental.sparse.rules import is_sparse, rule
from dovetail.experimental.sparse.sparsification import called


@dataclass(frozen=True, slots=True)
class _Form:
    """How a value is stored.

    Attributes:
        is_dense: whether it is a dense array; nothing else counts then.
        n_batch: number of batch dimensions.
        n_dense: number of dense dimensions.
        nse: number of places.
        index_dtype: of the positions.
    """

    is_dense: bool
    n_batch: int = 0
    n_dense: int = 0
    nse: int = 0
    index_dtype: Any = None

    @staticmethod
    def of(x: Any) -> _Form:
        """How an array, or what `eval_shape` gives for one, is stored."""
        if not is_sparse(x):
            return _Form(True)
        n_batch, (nse, n_sparse) = len(x.indices.shape) - 2, x.indices.shape[-2:]
        dtype = position_dtype(x.indices.dtype, x.shape)
        return _Form(False, n_batch, x.ndim - n_batch - n_sparse, nse, dtype)

    def joined(self, other: _Form) -> _Form:
        """A way to store both; the number of places is that of equal layouts."""
        if self.is_dense or other.is_dense:
            return _Form(True)
        return _Form(
            False,
            min(self.n_batch, other.n_batch),
            min(self.n_dense, other.n_dense),
            max(self.nse, other.nse),
            np.promote_types(self.index_dtype, other.index_dtype),
        )


def _relaid(x: Any, form: _Form) -> Any:
    """A value in the layout of a form, whatever number of places that takes."""
    if not is_sparse(x):
        return x
    if form.is_dense:
        return todense(x)
    x = relaid(x, form.n_batch, form.n_dense)
    data, indices = full(x.layout, x.data, x.indices.astype(form.index_dtype))
    return x.like(data, indices, x.shape)


def _brought(x: Any, form: _Form) -> Any:
    """A value in a form that has room for it."""
    x = _relaid(x, form)
    if not is_sparse(x) or x.nse == form.nse:
        return x
    layout = x.layout
    missing = form.nse - layout.nse
    before = [(0, 0)] * layout.n_batch
    data = jnp.pad(x.data, [*before, (0, missing), *[(0, 0)] * layout.n_dense])
    unused = jnp.broadcast_to(
        np.array(layout.sparse, form.index_dtype), (*layout.batch, missing, layout.n_sparse)
    )
    return x.like(data, jnp.concatenate([x.indices, unused], layout.n_batch), x.shape)


def _forms(function: Callable[..., list[Any]], *values: Any) -> list[_Form]:
    """How the results of a function are stored."""
    return [_Form.of(x) for x in dt.eval_shape(function, *values)]


def _settled(function: Callable[..., list[Any]], forms: list[_Form]) -> Callable[..., list[Any]]:
    """The function with its results in some forms."""

    def settled(*values: Any) -> list[Any]:
        return [_brought(x, form) for x, form in zip(function(*values), forms, strict=True)]

    return settled


@rule(lax.cond_p)
def _cond(index: Any, *operands: Any, branches: Sequence[Any]) -> list[Any]:
    functions = [called(branch) for branch in branches]
    forms = _forms(functions[0], *operands)
    for function in functions[1:]:
        others = _forms(function, *operands)
        forms = [a.joined(b) for a, b in zip(forms, others, strict=True)]

    def in_layout(function: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        return lambda *values: [
            _relaid(x, form) for x, form in zip(function(*values), forms, strict=True)
        ]

    # Other layouts may take more places.
    for function in functions:
        others = _forms(in_layout(function), *operands)
        forms = [a.joined(b) for a, b in zip(forms, others, strict=True)]
    chosen = todense(index) if is_sparse(index) else index
    results: list[Any] = lax.switch(chosen, [_settled(f, forms) for f in functions], *operands)
    return results


def _carried(
    what: str, step: Callable[..., list[Any]], init: Sequence[Any]
) -> tuple[list[Any], list[_Form]]:
    """What a loop begins with, stored so that its step gives the same form.

    Args:
        what: the loop, for messages.
        step: from what is carried to what is carried next.
        init: the first values.
    """
    values = list(init)
    while True:
        values = [_relaid(x, _Form.of(x)) for x in values]
        forms = [_Form.of(x) for x in values]
        later = _forms(lambda *x: step(*x), *values)
        joined = [a.joined(b) for a, b in zip(forms, later, strict=True)]
        changed = [_relaid(x, form) for x, form in zip(values, joined, strict=True)]
        settled = [_Form.of(x) for x in changed]
        if settled != forms:
            values = changed
            continue
        for i, (form, after) in enumerate(zip(forms, later, strict=True)):
            if not form.is_dense and after.nse > form.nse:
                raise ValueError(
                    f"sparsify: the value {i} that {what} carries has {form.nse} places, and "
                    f"{after.nse} after a step: sum it with the same positions, or begin with a "
                    "value that has enough places, by sum_duplicates(nse=...)"
                )
        return values, forms


@rule(lax.while_p)
def _while(
    *operands: Any, cond_jaxpr: Any, body_jaxpr: Any, cond_nconsts: int, body_nconsts: int
) -> list[Any]:
    cond_consts = operands[:cond_nconsts]
    body_consts = operands[cond_nconsts : cond_nconsts + body_nconsts]
    condition, body = called(cond_jaxpr), called(body_jaxpr)

    def step(*values: Any) -> list[Any]:
        return body(*body_consts, *values)

    init, forms = _carried("while_loop", step, operands[cond_nconsts + body_nconsts :])
    settled = _settled(step, forms)

    def going(values: list[Any]) -> Any:
        (result,) = condition(*cond_consts, *values)
        return todense(result) if is_sparse(result) else result

    results: list[Any] = lax.while_loop(going, lambda values: settled(*values), init)
    return results


@rule(lax.scan_p)
def _scan(
    *operands: Any,
    jaxpr: Any,
    length: int,
    reverse: bool,
    num_consts: int,
    num_carry: int,
    unroll: Any,
    **params: Any,
) -> list[Any]:
    consts = operands[:num_consts]
    init = operands[num_consts : num_consts + num_carry]
    xs = [_full(x) for x in operands[num_consts + num_carry :]]
    body = called(jaxpr)
    first = [_element(x) for x in xs]

    def step(*values: Any) -> list[Any]:
        return body(*consts, *values, *first)[:num_carry]

    values, forms = _carried("scan", step, init)

    def advance(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        results = body(*consts, *carry, *x)
        pairs = zip(results[:num_carry], forms, strict=True)
        return [_brought(r, form) for r, form in pairs], results[num_carry:]

    carry, ys = lax.scan(advance, values, xs, length=length, reverse=reverse, unroll=unroll)
    return [*carry, *ys]


def _full(x: Any) -> Any:
    """What a loop goes over, of which each step gets an element."""
    if not is_sparse(x):
        return x
    if not x.n_batch:
        raise NotImplementedError(
            f"sparsify: a loop goes over the first dimension of {x!r}, which must be a batch "
            "dimension: use mat.update_layout(n_batch=1, on_inefficient=None) before"
        )
    data, indices = full(x.layout, x.data, x.indices)
    return x.like(data, indices, x.shape)


def _element(x: Any) -> Any:
    """An element of what a loop goes over, to find out how things are stored."""
    if not is_sparse(x):
        return jnp.zeros(x.shape[1:], x.dtype)
    return x.like(
        jnp.zeros(x.data.shape[1:], x.dtype),
        jnp.zeros(x.indices.shape[1:], x.indices.dtype),
        x.shape[1:],
    )
