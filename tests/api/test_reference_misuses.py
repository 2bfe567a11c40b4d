"""Misuses of mutable references, and what is said about them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import NonArrayArgumentError, UnexpectedTracerError
from dovetail.experimental import serialize_executable


def _reference() -> Any:
    return dt.new_ref(jnp.zeros(3))


def _leaked() -> Any:
    kept = []

    @dt.jit
    def f(x: Any) -> Any:
        kept.append(dt.new_ref(x))
        return x

    f(1.0)
    return kept[0]


def _used_by_a_rule(where: str) -> Callable[[Any], Any]:
    def run(ref: Any) -> Any:
        @dt.custom_vjp
        def f(x: Any) -> Any:
            return x

        def forward(x: Any) -> Any:
            if where == "forward":
                ref[0] = x
            return x, None

        def backward(_: Any, g: Any) -> Any:
            if where == "backward":
                ref[0] = g
            return (g,)

        f.defvjp(forward, backward)
        return dt.grad(dt.jit(f))(1.0)

    return run


def _written_sometimes(ref: Any) -> Any:
    @dt.custom_vjp
    def f(x: Any) -> Any:
        return ref[0] * x

    runs = []

    def forward(x: Any) -> Any:
        runs.append(x)
        if len(runs) > 1:
            ref[0] = x
        return x, None

    f.defvjp(forward, lambda _, g: (g,))
    return dt.grad(dt.jit(f))(1.0)


def _with_a_value_that_varies(_: Any) -> Any:
    @dt.custom_jvp
    def f(r: Any, x: Any) -> Any:
        return r[...] * x

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[1]))
    return dt.grad(lambda x: dt.jit(lambda y: f(dt.new_ref(y), 2.0))(x))(1.0)


MISUSES: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "returned": (dt.jit(lambda r: r), ValueError, "cannot return references"),
    "returned in a tree": (dt.jit(lambda r: {"a": r}), ValueError, r"at \['a'\]"),
    "returned by a scan": (
        lambda r: lax.scan(lambda c, _: (c, r), 0.0, length=2),
        ValueError,
        "cannot return references",
    ),
    "passed twice": (
        lambda r: dt.jit(lambda a, b: None)(r, r),
        ValueError,
        "is the argument b of <lambda>, which gets it for another argument too",
    ),
    "passed and captured": (
        lambda r: dt.jit(lambda a: a[0] + r[0])(r),
        ValueError,
        "is the argument a of <lambda>, which also uses it from outside",
    ),
    "mapped twice": (
        lambda r: dt.vmap(lambda a, b: a[...])(r, r),
        ValueError,
        r"was passed .* twice",
    ),
    "frozen by another": (dt.jit(lambda r: dt.freeze(r)), ValueError, "cannot be frozen here"),
    "frozen from outside": (
        lambda r: dt.jit(lambda: dt.freeze(r))(),
        ValueError,
        "cannot be frozen here",
    ),
    "freed by a mapped function": (dt.vmap(dt.free_ref), ValueError, "cannot be freed here"),
    "used after freezing": (
        lambda r: (dt.freeze(r), r[0]),
        ValueError,
        r"made at test_reference_misuses.py:\d+ .* not valid any more: it was frozen at",
    ),
    "frozen twice": (lambda r: (dt.freeze(r), dt.freeze(r)), ValueError, "not valid any more"),
    "written by a mapped function": (
        lambda r: dt.vmap(lambda x: r.set(0, x))(jnp.arange(2.0)),
        ValueError,
        "pass it as an argument with an axis",
    ),
    "written in jit by a mapped function": (
        lambda r: dt.vmap(dt.jit(lambda x: r.set(0, 1.0)))(jnp.arange(2.0)),
        ValueError,
        "pass it as an argument with an axis",
    ),
    "written in a scan by a mapped function": (
        lambda r: dt.vmap(lambda x: lax.fori_loop(0, 2, lambda i, c: (r.set(0, 1.0), c)[1], x))(
            jnp.arange(2.0)
        ),
        ValueError,
        "pass it as an argument with an axis",
    ),
    "not mapped": (
        lambda r: dt.vmap(lambda a, x: a.set(0, x), in_axes=(None, 0))(r, jnp.arange(2.0)),
        ValueError,
        "pass it as an argument with an axis",
    ),
    "written what varies": (
        lambda r: dt.grad(lambda x: (r.set(0, x), x)[1])(1.0),
        ValueError,
        "stop_gradient",
    ),
    "written what varies in jit": (
        lambda r: dt.grad(dt.jit(lambda x: (r.set(0, x), x)[1]))(1.0),
        ValueError,
        "stop_gradient",
    ),
    "written what varies in a scan": (
        lambda r: dt.grad(lambda x: lax.fori_loop(0, 2, lambda i, c: (r.set(0, c), c)[1], x))(1.0),
        ValueError,
        "stop_gradient",
    ),
    "written by a condition": (
        lambda r: lax.while_loop(lambda x: (r.set(0, x), x < 1.0)[1], lambda x: x + 1.0, 0.0),
        ValueError,
        "a condition may read references",
    ),
    "checkpointed twice": (
        lambda r: dt.checkpoint(lambda a, x: a[0] * r[0] * x)(r, 1.0),
        ValueError,
        "is the argument a of checkpoint of <lambda>, which also uses it from outside",
    ),
    "two parts": (
        lambda r: dt.jit(lambda a, b: a.set(0, b[0]))(r.at[:1], r.at[1:]),
        ValueError,
        r"is the argument b\.ref of <lambda>, which gets it for another argument too",
    ),
    "elements and captured": (
        lambda r: lax.scan(lambda c, e: (c + e[...] + r[0], None), 0.0, r),
        ValueError,
        "was passed to lax.scan of <lambda> .*Use the argument",
    ),
    "elements twice": (
        lambda r: lax.scan(lambda c, e: (c, None), 0.0, (r, r)),
        ValueError,
        "was passed .* twice",
    ),
    "elements of a part": (
        lambda r: lax.scan(lambda c, e: (c, None), 0.0, r.at[1:]),
        TypeError,
        "cannot go through a part of the mutable reference .* pass the whole reference",
    ),
    "a part mapped": (
        lambda r: dt.vmap(lambda e: e[...])(r.at[1:]),
        TypeError,
        "vmap of <lambda> cannot go through a part of",
    ),
    "elements that are returned": (
        lambda r: lax.map(lambda e: e, r),
        ValueError,
        "cannot return references",
    ),
    "elements written what varies": (
        lambda r: dt.grad(lambda x: lax.scan(lambda c, e: (e.set(None, c), (c, c))[1], x, r)[0])(
            1.0
        ),
        ValueError,
        "stop_gradient",
    ),
    "used by a forward rule alone": (
        _used_by_a_rule("forward"),
        ValueError,
        "Pass the reference to that function as an argument",
    ),
    "used by a staged backward rule": (
        _used_by_a_rule("backward"),
        ValueError,
        r"Compile the gradient instead, jit\(grad\(f\)\)",
    ),
    "written by a rule sometimes": (
        _written_sometimes,
        ValueError,
        "was not when the rule was first traced; write to it in f too",
    ),
    "read by a function with rules": (
        _with_a_value_that_varies,
        ValueError,
        "f has a derivative rule .* which it uses, holds a value that is being differentiated",
    ),
    "differentiated": (dt.grad(lambda r: r[0]), TypeError, "with_refs"),
    "carried": (
        lambda r: lax.scan(lambda c, _: (c, None), r, length=1),
        NonArrayArgumentError,
        "init .*read its value first",
    ),
    "computed with": (jnp.sin, NonArrayArgumentError, r"read its value first, with ref\[...\]"),
    "computed with in lax": (lax.sin, NonArrayArgumentError, "read its value first"),
    "added to": (lambda r: r + 1.0, TypeError, "operator __add__ .*read its value first"),
    "added from the left": (lambda r: 1.0 + r, TypeError, "operator __radd__"),
    "compared": (lambda r: r < 1.0, TypeError, "read its value first"),
    "tested": (bool, TypeError, "read its value first"),
    "for NumPy": (np.asarray, TypeError, "read its value first"),
    "pickled": (pickle.dumps, TypeError, "pickle its value"),
    "referred to": (dt.new_ref, TypeError, "no references to references"),
    "written to another": (lambda r: r.set(0, _reference()), TypeError, "write its value"),
    "too large a value": (lambda r: r.set(0, jnp.zeros(2)), ValueError, "cannot be broadcast"),
    "index out of rank": (lambda r: r[0, 0], IndexError, "too many"),
    "other memory": (lambda r: dt.new_ref(0.0, pin=True), ValueError, "pin False"),
    "other kind": (lambda r: dt.new_ref(0.0, kind="fast"), ValueError, "kind"),
    "no reference": (lambda r: dt.freeze(r[...]), TypeError, "that new_ref has made"),
    "no reference to read": (lambda r: dt.ref.get(r[...]), TypeError, "that new_ref has made"),
    "kept by a side effect": (
        lambda r: _leaked()[...],
        UnexpectedTracerError,
        "outside of the transformed function in which it was made",
    ),
    "compiled for another type": (
        lambda r: dt.jit(lambda a: a[0]).lower(r).compile()(dt.new_ref(0.0)),
        TypeError,
        r"takes Ref\{f32\[3\]\} for its argument a, got Ref\{f32\[\]\}",
    ),
    "compiled for an array": (
        lambda r: dt.jit(lambda a: a[0]).lower(r[...]).compile()(r),
        TypeError,
        r"takes f32\[3\] for its argument a, got Ref",
    ),
    "serialized": (
        lambda r: serialize_executable.serialize(dt.jit(lambda: r[0]).lower().compile()),
        ValueError,
        "uses mutable references",
    ),
}


@pytest.mark.parametrize("case", MISUSES)
def test_misuse_is_explained(case: str) -> None:
    misuse, error, message = MISUSES[case]
    ref = _reference()
    with pytest.raises(error, match=message):
        misuse(ref)
    if "froz" not in case and "freez" not in case:
        np.testing.assert_array_equal(ref[...], np.zeros(3))
