"""checkify: what is found, what messages say, and what errors are."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental import checkify

X = jnp.arange(3.0)


def messages(function, *args, errors=checkify.all_checks):
    """The messages with and without jit, which must be one."""
    checked = checkify.checkify(lambda *args: function(*args), errors)
    eager = checked(*args)[0].get()
    compiled = dt.jit(checked)(*args)[0].get()
    assert eager == compiled
    return eager


def positive(x):
    checkify.check(x > 0, "{x} is not positive", x=x)
    return jnp.log(x)


def two_checks(x):
    checkify.check(x < 5, "too large")
    checkify.check(x > 0, "too small")
    return x


USER_CHECKS = {
    "holds": (positive, (jnp.array(1.0),), None),
    "fails": (positive, (jnp.array(-1.0),), "-1.0 is not positive"),
    "positional": (
        lambda x: checkify.check(x > 0, "{} {}", x, x + 1),
        (jnp.array(-3),),
        "-3 -2",
    ),
    "numbers": (lambda x: checkify.check(x > 0, "{} {}", 1, 2.5), (jnp.array(-3),), "1 2.5"),
    "format": (lambda x: checkify.check(x > 0, "{x:.2f}", x=x), (jnp.array(-1.0),), "-1.00"),
    "format of an array": (
        lambda x: checkify.check(x.sum() < 0, "{x:.1f}", x=x),
        (X,),
        "[0.0 1.0 2.0]",
    ),
    "tree": (
        lambda x: checkify.check(x["a"] > 0, "{x}", x=x),
        ({"a": jnp.array(-1)},),
        "{'a': Array(-1, dtype=int32)}",
    ),
    "key": (
        lambda x: checkify.check(x > 0, "{k}, {t}", k=dt.random.key(0), t=[dt.random.key(1)]),
        (jnp.array(-1),),
        "Array((), dtype=key<fry>) overlaying:\n[0 0], [Array((), dtype=key<fry>) overlaying:\n"
        "[0 1]]",
    ),
    "key in a branch": (
        lambda x: lax.cond(
            x < 0, lambda: checkify.check(x > 0, "{k}", k=dt.random.key(0)), lambda: None
        ),
        (jnp.array(-1),),
        "Array((), dtype=key<fry>) overlaying:\n[0 0]",
    ),
    "element of a tree": (
        lambda x: checkify.check(x["a"] > 0, "{x[a]}", x=x),
        ({"a": jnp.array(-1)},),
        "-1",
    ),
    "braces": (lambda x: checkify.check(x > 0, "{{}} {}", x), (jnp.array(-1),), "{} -1"),
    "first of two": (two_checks, (jnp.array(9),), "too large"),
    "second of two": (two_checks, (jnp.array(-9),), "too small"),
    "debug": (lambda x: checkify.debug_check(x > 0, "{}", x), (jnp.array(-1),), "-1"),
    "dtypes": (
        lambda x: checkify.check(x[0] > 0, "{} {} {}", x[0], x[1], x[2]),
        ((jnp.array(-1, jnp.int8), jnp.array(2, jnp.bfloat16), jnp.array(1j)),),
        "-1 2 1j",
    ),
}


@pytest.mark.parametrize("name", USER_CHECKS)
def test_user_checks(name):
    function, args, expected = USER_CHECKS[name]
    found = messages(function, *args, errors=checkify.user_checks)
    if expected is None:
        assert found is None
    else:
        assert found.startswith(f"{expected} (`check` failed at test_checkify.py:")


def test_messages_name_the_line_of_the_user():
    line = inspect.getsourcelines(positive)[1] + 1
    found = messages(positive, jnp.array(-1.0))
    assert found.endswith(f"(`check` failed at test_checkify.py:{line} (positive))")


def oob(index, axis, shape=(3,)):
    return (
        f"out-of-bounds indexing for array of shape {shape}: index {index} is out of bounds for "
        f"axis {axis} with size {shape[axis]}, at "
    )


def window(size, index):
    return (
        f"out-of-bounds indexing for array of shape (3,): a slice of size {size} from index "
        f"{index} is out of bounds for axis 0 with size 3, at "
    )


M = jnp.ones((3, 4))
AT = jnp.array([0, 5, 7])
INDEXING = {
    "inside": (lambda x, i: x[i], (X, jnp.array([0, 2, -3])), None),
    "int": (lambda x: x[7], (X,), oob(7, 0)),
    "negative int": (lambda x: x[-5], (X,), oob(-2, 0)),
    "huge int": (lambda x: x[2**40], (X,), oob(2**31 - 1, 0)),
    "scalar": (lambda x, i: x[i], (X, jnp.array(5)), oob(5, 0)),
    "negative scalar": (lambda x, i: x[i], (X, jnp.array(-5)), oob(-2, 0)),
    "array": (lambda x, i: x[i], (X, AT), oob(5, 0)),
    "int8": (lambda x, i: x[i], (X, AT.astype(jnp.int8)), oob(5, 0)),
    "uint32": (lambda x, i: x[i], (X, jnp.array([2**32 - 1], jnp.uint32)), oob(2**31 - 1, 0)),
    "second axis": (lambda x, i, j: x[i, j], (M, AT * 0, AT), oob(5, 1, (3, 4))),
    "mixed": (lambda x, i: x[0, i], (M, jnp.array(4)), oob(4, 1, (3, 4))),
    "take": (lambda x, i: jnp.take(x, i), (X, AT), oob(5, 0)),
    "fill": (lambda x, i: x.at[i].get(mode="fill"), (X, AT), oob(5, 0)),
    "promise": (lambda x, i: x.at[i].get(mode="promise_in_bounds"), (X, AT), oob(5, 0)),
    "set": (lambda x, i: x.at[i].set(1.0), (X, AT), oob(5, 0)),
    "add": (lambda x, i: x.at[i].add(1.0), (X, AT), oob(5, 0)),
    "set int": (lambda x: x.at[3].set(1.0), (X,), oob(3, 0)),
    "rows": (lambda x, i: x.at[i].multiply(2.0), (M, AT), oob(5, 0, (3, 4))),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i,), (2,)), (X, 2), window(2, 2)),
    "dynamic_slice inside": (lambda x, i: lax.dynamic_slice(x, (i,), (2,)), (X, 1), None),
    "dynamic_update_slice": (
        lambda x, i: lax.dynamic_update_slice(x, jnp.ones(2), (i,)),
        (X, 2),
        window(2, 2),
    ),
    "no indices": (lambda x, i: x[i], (X, jnp.zeros((0,), int)), None),
}
Z = jnp.array([1.0, 0.0])
N = jnp.array([1, 0])
DIVISION = {
    "array": (lambda x: X[0] / x, (Z,), True),
    "not zero": (lambda x: X[0] / x, (Z + 1,), False),
    "by a number": (lambda x: x / 2.0, (Z,), False),
    "by zero": (lambda x: x / 0.0, (Z,), True),
    "integers": (lambda x: lax.div(x, x), (N,), True),
    "//": (lambda x: x // x, (N,), True),
    "%": (lambda x: x % x, (N,), True),
    "divmod": (lambda x: jnp.divmod(x, x), (N,), True),
    "unsigned": (lambda x: x // x, (N.astype(jnp.uint32),), True),
    "% of floats": (lambda x: x % x, (Z,), True),
    "reciprocal": (jnp.reciprocal, (Z,), True),
    "complex": (lambda x: x / x, (Z + 0j,), True),
    "bfloat16": (lambda x: x / x, (Z.astype(jnp.bfloat16),), True),
}
NAN = jnp.array([1.0, np.nan])
NANS = {
    "sin": (jnp.sin, (jnp.array(np.inf),), "sin"),
    "finite": (jnp.sin, (X,), None),
    "log": (jnp.log, (jnp.array([1.0, -1.0]),), "log"),
    "inf - inf": (lambda x: x - x, (jnp.array(np.inf),), "sub"),
    "0 / 0": (lambda x: x / x, (Z,), "div"),
    "sum": (jnp.sum, (NAN,), "reduce_sum"),
    "dot": (lambda x: x @ x, (NAN,), "dot_general"),
    "bfloat16": (jnp.sin, (jnp.array(np.inf, jnp.bfloat16),), "sin"),
    "complex": (jnp.sin, (jnp.array(complex(0, np.nan)),), "sin"),
    "argument": (lambda x: x, (NAN,), None),
    "moved": (lambda x: jnp.concatenate([x.reshape(2, 1), x[:, None]]).T, (NAN,), None),
    "chosen": (lambda x: jnp.where(x > 0, x, 0.0), (NAN,), None),
    "compared": (jnp.isnan, (NAN,), None),
    "integers": (lambda x: x * 2, (N,), None),
}


@pytest.mark.parametrize("name", INDEXING)
def test_index_checks(name):
    function, args, expected = INDEXING[name]
    found = messages(function, *args, errors=checkify.index_checks)
    assert found is None if expected is None else found.startswith(expected), found
    assert messages(function, *args, errors=checkify.user_checks) is None


@pytest.mark.parametrize("name", DIVISION)
def test_div_checks(name):
    function, args, fails = DIVISION[name]
    found = messages(function, *args, errors=checkify.div_checks)
    if fails:
        assert re.fullmatch(r"division by zero at test_checkify\.py:\d+ \(.*\)", found)
    else:
        assert found is None
    assert messages(function, *args, errors=checkify.index_checks) is None


@pytest.mark.parametrize("name", NANS)
def test_nan_checks(name):
    function, args, primitive = NANS[name]
    found = messages(function, *args, errors=checkify.nan_checks)
    if primitive is None:
        assert found is None
    else:
        assert found.startswith(f"nan generated by primitive: {primitive} at test_checkify.py:")
    assert messages(function, *args, errors=checkify.index_checks) is None


def test_the_error_is_the_first_of_all_categories():
    def f(x, i):
        y = x[i]
        checkify.check(y > 5, "small")
        return jnp.log(y - 9.0) / (y - y)

    at = 2, jnp.array(7)
    sets = ["index_checks", "user_checks", "nan_checks", "div_checks"]
    starts = ["out-of-bounds", "small", "nan generated by primitive: log", "division by zero"]
    for i, start in enumerate(starts):
        errors = frozenset().union(*(getattr(checkify, name) for name in sets[i:]))
        assert messages(f, X, at[1], errors=errors).startswith(start)


def test_sets_of_checks():
    assert checkify.float_checks == checkify.nan_checks | checkify.div_checks
    assert checkify.automatic_checks == checkify.float_checks | checkify.index_checks
    assert checkify.all_checks == checkify.automatic_checks | checkify.user_checks
    assert len(checkify.all_checks) == 4


# What an error is


def test_throw_raises_a_value_error_with_the_message():
    error, _ = checkify.checkify(positive)(jnp.array(-1.0))
    with pytest.raises(checkify.JaxRuntimeError, match=r"^-1.0 is not positive") as caught:
        error.throw()
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == error.get() == str(error.get_exception())
    assert type(error.get_exception()) in checkify.user_checks


def test_no_error():
    for error in (checkify.init_error, checkify.checkify(positive)(jnp.array(1.0))[0]):
        assert error.get() is None
        assert error.get_exception() is None
        assert error.throw() is None
        assert checkify.check_error(error) is None


def test_a_batch_of_errors_names_each_element():
    error, _ = dt.vmap(dt.vmap(checkify.checkify(positive)))(jnp.array([[1.0, -1.0], [2.0, -3.0]]))
    lines = error.get().splitlines()
    assert lines[0].startswith("at mapped index 0, 1: -1.0 is not positive")
    assert lines[1].startswith("at mapped index 1, 1: -3.0 is not positive")
    assert len(lines) == 2
    with pytest.raises(checkify.JaxRuntimeError, match=r"index 0, 1"):
        error.throw()
    with pytest.raises(checkify.JaxRuntimeError, match=r"^-1.0 is not positive"):
        checkify.check_error(error)


def test_errors_go_into_and_out_of_compiled_functions():
    error, _ = checkify.checkify(positive)(jnp.array(-1.0))
    assert dt.jit(lambda e: e)(error).get() == error.get()
    again, _ = dt.jit(checkify.checkify(positive))(jnp.array(-1.0))
    assert dt.tree.structure(error) == dt.tree.structure(again)


def test_errors_of_one_kind_are_results_of_branches_and_loops():
    safe = checkify.checkify(positive)
    error, _ = lax.cond(True, safe, safe, jnp.array(-1.0))
    assert error.get().startswith("-1.0 is not")
    _, errors = lax.scan(lambda c, x: (c, safe(x)[0]), 0, jnp.array([1.0, -2.0]))
    assert errors.get().startswith("at mapped index 1: -2.0 is not")


def test_repr():
    assert repr(checkify.init_error) == "Error(None)"
    error, _ = checkify.checkify(lambda: checkify.check(1 > 2, "no"))()
    assert repr(error).startswith("Error(no (`check` failed at")
    seen = []
    dt.jit(lambda x: seen.append(repr(checkify.checkify(positive)(x)[0])))(1.0)
    assert seen == ["Error(being traced, 1 kinds of failures)"]


# Without checkify


def test_a_check_raises_at_once():
    assert positive(jnp.array(1.0)) == 0.0
    with pytest.raises(checkify.JaxRuntimeError, match=r"^-1.0 is not positive"):
        positive(jnp.array(-1.0))
    with pytest.raises(checkify.JaxRuntimeError, match=r"^-2.0 is not positive"):
        dt.vmap(positive)(jnp.array([1.0, -2.0, -3.0]))
    with pytest.raises(checkify.JaxRuntimeError, match=r"^-1.0 is not positive"):
        dt.grad(positive)(-1.0)
    with dt.disable_jit(), pytest.raises(checkify.JaxRuntimeError, match="not positive"):
        dt.jit(positive)(-1.0)


COMPILED = {
    "jit": dt.jit(positive),
    "cond": lambda x: lax.cond(x < 9, positive, lambda x: x, x),
    "scan": lambda x: lax.scan(lambda c, _: (positive(c), None), x, None, 2)[0],
    "grad of jit": dt.grad(dt.jit(positive)),
    "vmap of jit": lambda x: dt.vmap(dt.jit(positive))(x[None]),
}


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_function_cannot_hold_a_check(name):
    line = inspect.getsourcelines(positive)[1] + 1
    with pytest.raises(ValueError, match=rf"test_checkify\.py:{line} \(positive\)") as caught:
        COMPILED[name](jnp.array(1.0))
    assert "checkify.checkify(f)" in str(caught.value)
    assert "checkify.debug_check" in str(caught.value)


def test_debug_checks_do_nothing():
    def f(x):
        checkify.debug_check(x > 0, "{x}", x=x)
        return x + 1

    for g in (f, dt.jit(f), dt.grad(f), dt.grad(dt.jit(f))):
        g(-1.0)
    assert dt.vmap(f)(jnp.array([-1.0])) == 0.0
    assert dt.jit(dt.vmap(f))(jnp.array([-1.0])) == 0.0
    assert "or" not in dt.jit(f).lower(1.0).as_text().split()


def test_jaxpr():
    text = str(dt.make_jaxpr(lambda x: checkify.check(x > 0, "no"))(1.0))
    assert "check[debug=False]" in text
    jaxpr = dt.make_jaxpr(lambda x: checkify.checkify(positive)(x)[1])(1.0)
    assert "check" not in str(jaxpr)


MISTAKES = {
    "vector": (lambda: checkify.check(X > 0, "no"), TypeError, "scalar bool.*\\.all\\(\\)"),
    "integer": (lambda: checkify.check(1, "no"), TypeError, "scalar bool, got i32"),
    "message": (lambda: checkify.check(True, 3), TypeError, "message must be a string, got int"),
    "bad format": (lambda: checkify.check(True, "a { b"), ValueError, "no format string"),
    "no such name": (lambda: checkify.check(True, "{y}", x=1), ValueError, "add y="),
    "too few": (lambda: checkify.check(True, "{} {}", 1), ValueError, "number 1, and 1 are"),
    "string": (lambda: checkify.check(True, "{x}", x="a"), TypeError, r"\['x'\].*got str"),
    "function": (lambda: checkify.checkify(3), TypeError, "checkify takes a function"),
    "errors": (lambda: checkify.checkify(abs, "nan"), TypeError, "checkify.user_checks"),
    "no category": (lambda: checkify.checkify(abs, {int}), TypeError, "union of sets"),
    "no error": (lambda: checkify.check_error(3), TypeError, "takes an Error"),
    "get in jit": (
        lambda: dt.jit(lambda x: checkify.checkify(positive)(x)[0].get())(1.0),
        TypeError,
        "tracer",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    function, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        function()


def test_arguments_that_are_no_arrays_stay_as_they_are():
    def f(x, mode, *, size):
        checkify.check((x > 0).all(), "no")
        return mode, jnp.zeros(size)

    error, (mode, zeros) = checkify.checkify(f)(X, "mode", size=2)
    assert (error.get()[:2], mode, zeros.shape) == ("no", "mode", (2,))
    assert checkify.checkify(lambda x: 1 if x > 0 else 2)(jnp.array(1.0))[1] == 1
    assert checkify.checkify(positive).__wrapped__ is positive
