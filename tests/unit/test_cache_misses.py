"""What the options that watch tracing say."""

from __future__ import annotations

import logging
import re
import warnings

import numpy as np
import pytest

import dovetail as dt

F = np.float32

# How an earlier call and the next one differ: both calls, and what the log says of the second.
CHANGES = {
    "shape": (lambda f: f(F(1)), lambda f: f(np.ones(3, F)), r"x is f32\[3\]; it was f32\[\]"),
    "dtype": (lambda f: f(F(1)), lambda f: f(np.int32(1)), r"x is i32\[\]; it was f32\[\]"),
    "weak type": (
        lambda f: f(F(1)),
        lambda f: f(1.0),
        r"x is f32\[\] \(weakly typed\); it was f32",
    ),
    "structure": (lambda f: f(F(1)), lambda f: f({"a": F(1)}), r"the arguments are .*'a'"),
    "keyword": (lambda f: f(F(1)), lambda f: f(x=F(1)), r"the arguments are .*'x'"),
    "static value": (
        lambda f: f(F(1), flag=1),
        lambda f: f(F(1), flag=2),
        r"the static argument 'flag' is 2; it was 1$",
    ),
    "static argument": (
        lambda f: f(F(1)),
        lambda f: f(F(1), flag=2),
        r"the static argument 'flag' is 2$",
    ),
    "option": (
        lambda f: f(F(1)),
        lambda f: dt.numpy_rank_promotion("warn")(f)(F(1)),
        "an option that affects tracing has another value",
    ),
}


def doubled():
    return dt.jit(lambda x, flag=0: x, static_argnames="flag")


@pytest.mark.parametrize(("before", "after", "expected"), CHANGES.values(), ids=CHANGES)
def test_reasons(caplog, before, after, expected):
    f = doubled()
    with dt.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        before(f)
        before(f)
        after(f)
        after(f)
    first, second = caplog.messages
    assert re.match(
        r"tracing <lambda>, called at .*test_cache_misses.py:\d+ .*: it was not called before",
        first,
    )
    assert re.search(expected, second)


def test_the_nearest_signature_is_named(caplog):
    f = dt.jit(lambda x, y: (x, y))
    with caplog.at_level(logging.WARNING):
        f(np.ones(2, F), np.ones(3, F))
        f(np.ones(4, F), np.ones(5, F))
        with dt.explain_cache_misses(True):
            f(np.ones(4, F), np.ones(6, F))
    (message,) = caplog.messages
    assert message.endswith("y is f32[6]; it was f32[5] (nearest of 2 earlier signatures)")


def test_nothing_is_said_otherwise(caplog):
    with caplog.at_level(logging.WARNING):
        doubled()(F(1))
    assert caplog.messages == []


@pytest.mark.parametrize(("limit", "warns"), [(4000, True), (4001, False), (-1, False)])
def test_captured_constants(limit, warns):
    table = np.ones(1000, F)
    dt.config.update("captured_constants_warn_bytes", limit)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dt.jit(lambda x: (x, table))(F(1))
    finally:
        dt.config.update("captured_constants_warn_bytes", 2_000_000_000)
    texts = [str(warning.message) for warning in caught]
    assert [("has captured 1 arrays of 4,000 bytes" in text) for text in texts] == [True] * warns
