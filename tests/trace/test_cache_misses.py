"""What the options that watch tracing say."""

from __future__ import annotations

import inspect
import logging
import re
import warnings

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax

F = np.float32

# How an earlier call and the next one differ: both calls, and what the log says of the second.
CHANGES = {
    "shape": (lambda f: f(F(1)), lambda f: f(np.ones(3, F)), r"x is f32\[3\]; it was f32\[\]"),
    "dtype": (lambda f: f(F(1)), lambda f: f(np.int32(1)), r"x is i32\[\]; it was f32\[\]"),
    "shape and dtype": (
        lambda f: f(F(1)),
        lambda f: f(np.ones(3, np.int32)),
        r"x is i32\[3\]; it was f32\[\]\. .*pad arrays .*; convert arrays to one dtype",
    ),
    "weak type": (
        lambda f: f(F(1)),
        lambda f: f(1.0),
        r"x is f32\[\] \(weakly typed\); it was f32",
    ),
    "one of two leaves": (
        lambda f: f({"a": F(1), "b": F(1)}),
        lambda f: f({"a": F(1), "b": np.int32(1)}),
        r": x\['b'\] is i32\[\]; it was f32\[\]\. ",
    ),
    "two leaves": (
        lambda f: f({"a": F(1), "b": F(1)}),
        lambda f: f({"a": np.ones(2, F), "b": np.int32(1)}),
        r": x\['a'\] is f32\[2\]; it was f32\[\]; x\['b'\] is i32\[\]; it was f32\[\]\. ",
    ),
    "structure": (
        lambda f: f(F(1)),
        lambda f: f({"a": F(1)}),
        r"x is a dict with keys \['a'\]; it was a leaf\. To avoid it, pass arguments of one struc",
    ),
    "structures": (
        lambda f: f({"a": F(1), "b": (F(1), F(2)), "c": F(1)}),
        lambda f: f({"a": [F(1)], "b": (F(1),), "c": np.ones(2, F)}),
        r"x\['a'\] is a list of length 1; it was a leaf; x\['b'\] is a tuple of length 1; it was a "
        r"tuple of length 2; x\['c'\] is f32\[2\]; it was f32\[\]\. .*structure, .*; pad",
    ),
    "keys": (
        lambda f: f({"a": F(1)}),
        lambda f: f({"b": F(1)}),
        r"x is a dict with keys \['b'\]; it was a dict with keys \['a'\]\. ",
    ),
    "keyword": (
        lambda f: f(F(1)),
        lambda f: f(x=F(1)),
        r": x is passed by keyword; it was passed by position\. ",
    ),
    "position": (
        lambda f: f(x=F(1)),
        lambda f: f(F(1)),
        r": x is passed by position; it was passed by keyword\. ",
    ),
    "one argument more": (
        lambda f: f(F(1)),
        lambda f: f(F(1), F(2)),
        r": y is passed; it was not\. ",
    ),
    "one argument less": (
        lambda f: f(F(1), y=F(2)),
        lambda f: f(F(1)),
        r": y is not passed; it was passed\. ",
    ),
    "static value": (
        lambda f: f(F(1), flag=1),
        lambda f: f(F(1), flag=2),
        r"the static argument 'flag' is 2; it was 1\. .*that takes many values dynamic$",
    ),
    "static argument": (
        lambda f: f(F(1)),
        lambda f: f(F(1), flag=2),
        r"the static argument 'flag' is 2; it was not passed\. .*dynamic$",
    ),
    "no static argument": (
        lambda f: f(F(1), flag=2),
        lambda f: f(F(1)),
        r"the static argument 'flag' is not passed; it was 2\. .*dynamic$",
    ),
    "static type": (
        lambda f: f(F(1), flag=1),
        lambda f: f(F(1), flag=True),
        r"the static argument 'flag' is True \(bool\); it was 1 \(int\)\. ",
    ),
    "option": (
        lambda f: f(F(1)),
        lambda f: dt.numpy_rank_promotion("warn")(f)(F(1)),
        r": the option numpy_rank_promotion is 'warn'; it was 'allow'\. .*set options once",
    ),
    "two options": (
        lambda f: f(F(1)),
        lambda f: dt.numpy_rank_promotion("warn")(dt.enable_x64(True)(f))(F(1)),
        r": the option enable_x64 is True; it was False; the option numpy_rank_promotion is 'warn'",
    ),
    "option of jit": (
        lambda f: f(F(1)),
        lambda f: dt.jit(inspect.unwrap(f), static_argnames="flag", keep_unused=True)(F(1)),
        r": the option keep_unused of jit is True; it was False\. To avoid it, keep one jitted",
    ),
    "everything": (
        lambda f: f(F(1), flag=1),
        lambda f: dt.numpy_rank_promotion("warn")(f)(np.int32(1), F(1), flag=2),
        r": y is passed; it was not; x is i32\[\]; it was f32\[\]; the static argument 'flag' is "
        r"2; it was 1; the option numpy_rank_promotion is 'warn'; it was 'allow'\. To avoid it, "
        r"pass arguments .*; convert .*; make .*; set options once",
    ),
}


def doubled():
    return dt.jit(lambda x, y=0, flag=0: x, static_argnames="flag")


@pytest.mark.parametrize(("before", "after", "expected"), CHANGES.values(), ids=CHANGES)
def test_reasons(caplog, before, after, expected):
    f = doubled()
    with dt.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        before(f)
        before(f)
        after(f)
        after(f)
    traced = [text for text in caplog.messages if text.startswith("tracing")]
    compiled = [text for text in caplog.messages if text.startswith("compiling")]
    first, second = traced
    place = r"<lambda>, called at .*test_cache_misses.py:\d+ .*, took \d+\.\d ms: "
    assert re.match("tracing " + place + "it was (not called before|made anew)", first)
    assert re.match("tracing " + place, second)
    assert re.search(expected, second)
    assert "To avoid it, " in second
    assert len(compiled) == 2
    for text in compiled:
        assert re.match("compiling " + place + "there was no program for these arguments on", text)


def test_the_nearest_signature_is_named(caplog):
    f = dt.jit(lambda x, y: (x, y))
    with caplog.at_level(logging.WARNING):
        f(np.ones(2, F), np.ones(3, F))
        f(np.ones(4, F), np.ones(5, F))
        with dt.explain_cache_misses(True):
            f(np.ones(4, F), np.ones(6, F))
    message, _ = caplog.messages
    assert message.endswith(
        "y is f32[6]; it was f32[5] (nearest of 2 earlier signatures). To avoid it, pad arrays to "
        "one shape, or to few"
    )


# Earlier calls, the next call, and what the log compares it with.
NEAREST = {
    "shape before dtype": ([np.ones(3, F), np.ones(4, F)], np.ones(4, np.int32), "f32[4]"),
    "in any order": ([np.ones(4, F), np.ones(3, F)], np.ones(4, np.int32), "f32[4]"),
    "dtype before shape": (
        [np.ones(4, np.int32), np.ones(3, F)],
        np.ones(5, F),
        "f32[3]",
    ),
    "rank": ([np.ones(3, F), np.ones((3, 4), F)], np.ones((3, 5), F), "f32[3,4]"),
    "sizes": ([np.ones((3, 4), F), np.ones((5, 6), F)], np.ones((3, 7), F), "f32[3,4]"),
    "weak type": ([np.int32(1), F(1)], 1.0, "f32[]"),
    "the latest": ([np.ones(3, F), np.ones(4, F)], np.ones(5, F), "f32[4]"),
    "structure": ([{"a": F(1)}, F(1)], {"a": np.ones(3, F)}, "f32[]"),
    "leaves": (
        [{"a": F(1), "b": F(1)}, {"a": np.int32(1), "b": np.ones(2, F)}],
        {"a": np.int32(1), "b": F(1)},
        "f32[]",
    ),
}


@pytest.mark.parametrize(("earlier", "value", "expected"), NEAREST.values(), ids=NEAREST)
def test_the_nearest_call_is_compared(caplog, earlier, value, expected):
    f = doubled()
    for before in earlier:
        f(before)
    with dt.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        f(value)
    message, _ = caplog.messages
    assert f"; it was {expected}" in message
    assert message.count("it was") == 1
    assert "(nearest of 2 earlier signatures)" in message


def test_static_positions_do_not_shift_names(caplog):
    f = dt.jit(lambda n, x, *rest, k=0: x, static_argnums=(0, 3))
    f(1, F(1), F(2), 3, F(4))
    with dt.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        f(1, F(1), np.int32(2), 4, F(4))
    message, _ = caplog.messages
    assert ": rest[0] is i32[]; it was f32[]; the static argument 3 is 4; it was 3. " in message


def test_one_name_for_two_arguments(caplog):
    f = dt.jit(lambda x, /, **others: x)
    f(F(1), x=F(2))
    with dt.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        f(F(1), x=np.int32(2))
    message, _ = caplog.messages
    assert ": x= is i32[]; it was f32[]. " in message


def test_values_that_do_not_equal_themselves(caplog):
    f = dt.jit(lambda x, flag: x, static_argnums=1)
    with dt.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        f(F(1), float("nan"))
        f(F(1), float("nan"))
    _, _, message, *_ = caplog.messages
    assert "the static argument 1 is nan; it was nan. " in message


def test_another_device(caplog):
    f = doubled()
    here, there = dt.devices()[:2]
    x = jnp.ones(3)
    f(dt.device_put(x, here))
    with dt.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        f(dt.device_put(x, there))
    (message,) = caplog.messages
    assert message.startswith("compiling <lambda>, called at test_cache_misses.py:")
    assert f"no program for these arguments on {there}; there was one for {here}. " in message
    assert message.endswith("To avoid it, place the arguments where those of earlier calls were")


def test_functions_made_anew(caplog):
    with dt.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        for _ in range(2):
            dt.jit(lambda x: x - 3)(F(1))
    first, second = [text for text in caplog.messages if text.startswith("tracing <lambda>")]
    assert "it was not called before" in first
    assert "it was made anew, and another function of the same code was traced before" in second


EAGER = {
    "operator": (lambda x: x + x, "tracing add, ", "compiling add, "),
    "function": (lambda x: jnp.tanh(x), "tracing tanh, ", "compiling tanh, "),
    "operation": (lambda x: lax.cbrt(x), None, "compiling the operation cbrt, "),
}


@pytest.mark.parametrize("name", EAGER)
def test_eager_operations(caplog, name):
    call, traced, compiled = EAGER[name]
    x = jnp.ones((1100, 1000), F)  # small arrays may need no program
    dt.clear_caches()
    with dt.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        call(x)
        call(x)
    for beginning in filter(None, (traced, compiled)):
        (text,) = [text for text in caplog.messages if text.startswith(beginning)]
        assert re.search(r"called at test_cache_misses\.py:\d+ .*, took \d+\.\d ms: ", text)


def _in_context(f, x):
    with dt.no_tracing(True):
        return f(x)


WITHOUT_TRACING = {
    "context": lambda f: lambda x: _in_context(f, x),
    "decorator": dt.no_tracing(True),
}


@pytest.mark.parametrize("way", WITHOUT_TRACING)
def test_no_tracing(way):
    @dt.jit
    def step(x):
        return x * 2

    run = WITHOUT_TRACING[way](lambda x: step(x))
    with pytest.raises(RuntimeError, match=r"step, called at .*no_tracing forbids it: it was"):
        run(np.ones(3, F))
    step(np.ones(3, F))
    np.testing.assert_array_equal(run(np.ones(3, F)), np.full(3, 2, F))
    with pytest.raises(RuntimeError, match=r"x is f32\[4\]; it was f32\[3\]\. To avoid it, pad"):
        run(np.ones(4, F))
    np.testing.assert_array_equal(step(np.ones(4, F)), np.full(4, 2, F))


def test_no_tracing_by_option():
    f = dt.jit(lambda x: x * 3)
    f(F(1))
    dt.config.update("no_tracing", True)
    try:
        f(F(2))
        with pytest.raises(RuntimeError, match=r"x is i32\[\]; .*convert arrays to one dtype"):
            f(np.int32(2))
    finally:
        dt.config.update("no_tracing", False)


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
    assert [("has captured 1 array of 4,000 bytes" in text) for text in texts] == [True] * warns
