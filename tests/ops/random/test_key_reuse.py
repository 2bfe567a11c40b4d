"""The option debug_key_reuse: a key that is used twice is found, and no other is reported."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail.errors import KeyReuseError

Program = Callable[[Any], Any]


def draw(key: Any) -> Any:
    return random.normal(key)


def draw_each(keys: Any) -> Any:
    return dt.vmap(random.normal)(keys)


def given_back(key: Any) -> Any:
    same, x = dt.jit(lambda k: (k, random.normal(k)))(key)
    return x + random.uniform(same)


def taken_over(key: Any) -> Any:
    inner = dt.jit(lambda x: x + random.normal(key))
    return inner(1.0) + inner(2.0)


def counted(key: Any, turns: int) -> Any:
    return lax.while_loop(
        lambda state: state[1] < turns,
        lambda state: (state[0] + random.normal(key), state[1] + 1),
        (0.0, 0),
    )


def chained(carry: Any, _: Any) -> Any:
    key, subkey = random.split(carry)
    return key, random.normal(subkey)


def noisy(carry: Any, _: Any) -> Any:
    x, key = carry
    key, subkey = random.split(key)
    return (jnp.sin(x * random.normal(subkey)), key), x


def last_noisy(x: Any, key: Any) -> Any:
    return lax.scan(dt.checkpoint(noisy), (x, key), None, length=5)[0][0]


def no_draw(_: Any) -> Any:
    return 0.0


def choose_each(first: Program, second: Program, keys: Any) -> Any:
    """For each of two keys what one of two functions makes of it; `vmap` runs both."""
    xs = jnp.array([1.0, -1.0])
    return dt.vmap(lambda x, key: lax.cond(x > 0, first, second, key))(xs, keys)


def walk(x: Any, key: Any, turns: int) -> Any:
    def step(state: Any) -> Any:
        now, subkey = random.split(state[1])
        return state[0] * random.normal(subkey), now, state[2] + 1

    return lax.while_loop(lambda state: state[2] < turns, step, (x, key, 0))[0]


def linearized(x: Any, key: Any) -> Any:
    """The sum of two calls of a linear program that runs a loop again."""
    _, linear = dt.linearize(lambda x: walk(x, key, 3), x)
    return linear(1.0) + linear(2.0)


def from_reference(ref: Any) -> Any:
    key, subkey = random.split(ref[...])
    ref[...] = key
    return draw(subkey)


def replaced(turn: Any, state: Any) -> Any:
    keys, total = state
    key, subkey = random.split(keys[turn % 2])
    return keys.at[turn % 2].set(key), total + draw(subkey)


class Both:
    """A function with a rule, whose value is drawn once."""

    scaled = dt.custom_jvp(lambda x, key: x * random.normal(key))


Both.scaled.defjvps(lambda t, out, x, key: t * out / x, None)

#: Programs of one key that use a key twice.
REUSED: dict[str, Program] = {
    "twice": lambda key: draw(key) + draw(key),
    "drawn and split": lambda key: draw(key) + draw(random.split(key)[0]),
    "split twice": lambda key: draw(random.split(key)[0]) + draw(random.split(key)[1]),
    "an element": lambda key: (lambda keys: draw(keys[1]) + draw(keys[-1]))(random.split(key)),
    "an element, unpacked": lambda key: (lambda a, b: draw(a) + draw(b) + draw(a))(
        *random.split(key)
    ),
    "an element and all": lambda key: (lambda keys: draw(keys[0]) + draw_each(keys).sum())(
        random.split(key)
    ),
    "moved": lambda key: (
        lambda keys: draw(keys[0]) + draw(jnp.flip(keys.reshape(2, 2).T.ravel())[3])
    )(random.split(key, 4)),
    "a slice": lambda key: (lambda keys: draw_each(keys[1:]).sum() + draw(keys[2]))(
        random.split(key, 3)
    ),
    "at a known position": lambda key: (
        lambda keys: draw(keys[jnp.int32(2) - 1]) + draw(lax.dynamic_index_in_dim(keys, 1)[0])
    )(random.split(key, 3)),
    "twice in one array": lambda key: draw_each(jnp.stack([key, key])).sum(),
    "given back": given_back,
    "a constant of a program": taken_over,
    "in both programs": lambda key: dt.jit(draw)(key) + dt.jit(random.uniform)(key),
    "a constant of scan": lambda key: lax.scan(
        lambda c, _: (c + draw(key), None), 0.0, None, length=3
    )[0],
    "the carry of scan": lambda key: lax.scan(lambda k, _: (k, draw(k)), key, None, length=3)[1],
    "elements of scan": lambda key: (
        lambda keys: lax.scan(lambda c, k: (c + draw(k), None), 0.0, keys)[0] + draw(keys[2])
    )(random.split(key, 3)),
    "an element of map": lambda key: lax.map(lambda k: draw(k) + draw(k), random.split(key, 3)),
    "kept by a loop": lambda key: (
        draw(lax.fori_loop(0, 4, lambda i, state: (state[0], i), (key, 0))[0]) + draw(key)
    ),
    "kept by a while": lambda key: (
        draw(lax.while_loop(lambda s: s[1] < 4, lambda s: (s[0], s[1] + 1), (key, 0))[0])
        + draw(key)
    ),
    "a constant of while": lambda key: counted(key, 3)[0],
    "before a condition": lambda key: draw(key) + lax.cond(True, draw, lambda k: 1.0, key),
    "in one branch": lambda key: lax.cond(key == key, draw, lambda k: 1.0, key) + draw(key),
    "mapped": lambda key: dt.vmap(lambda x: x + draw(key))(jnp.ones(2)).sum() + draw(key),
    "differentiated": lambda key: dt.grad(lambda x: x * draw(key) + draw(key))(1.0),
    "after a rule": lambda key: Both.scaled(1.0, key) + draw(key),
    "checkpointed": lambda key: (
        dt.grad(lambda x: dt.checkpoint(lambda x: x * draw(key))(x))(1.0) + draw(key)
    ),
}

REUSED |= {
    "a mapped condition, and later": lambda key: (
        lambda keys: choose_each(draw, no_draw, keys).sum() + draw(keys[0])
    )(random.split(key)),
    "a mapped condition, the other way": lambda key: (
        lambda keys: choose_each(no_draw, draw, keys).sum() + draw(keys[1])
    )(random.split(key)),
    "before a mapped condition": lambda key: (
        lambda keys: draw(keys[0]) + choose_each(no_draw, draw, keys).sum()
    )(random.split(key)),
    "in one branch of a mapped condition": lambda key: choose_each(
        lambda k: draw(k) + draw(k), no_draw, random.split(key)
    ),
    "passed through a mapped condition": lambda key: (
        lambda pair: pair[0].sum() + draw_each(pair[1]).sum()
    )(choose_each(lambda k: (draw(k), k), lambda k: (0.0, k), random.split(key))),
    "one key for both operands of a branch": lambda key: dt.vmap(
        lambda x: lax.cond(x > 0, lambda a, b: draw(a) + draw(b), lambda a, b: 0.0, key, key)
    )(jnp.array([1.0, -1.0])),
    "used up by scan, and stacked": lambda key: draw(
        lax.scan(lambda k, _: (random.split(k)[0], k), key, None, length=3)[1][1]
    ),
    "a linearized while, and later": lambda key: (
        dt.linearize(lambda x: walk(x, key, 3), 1.0)[1](1.0) + draw(key)
    ),
    "carried by a checkpointed scan, and drawn from": lambda key: (
        dt.grad(last_noisy)(1.0, key) + draw(key)
    ),
    "a checkpointed gradient": lambda key: (
        dt.jit(dt.grad(dt.checkpoint(lambda x: jnp.sin(x * draw(key)))))(1.0) + draw(key)
    ),
}

#: Programs of one key that use each once.
FRESH: dict[str, Program] = {
    "split": lambda key: (lambda a, b: draw(a) + draw(b))(*random.split(key)),
    "elements": lambda key: (lambda keys: draw(keys[0]) + draw(keys[-1]))(random.split(key)),
    "slices": lambda key: (lambda keys: draw_each(keys[:2]).sum() + draw_each(keys[2:]).sum())(
        random.split(key, 4)
    ),
    "fold_in": lambda key: draw(random.fold_in(key, 1)) + draw(random.fold_in(key, 2)) + draw(key),
    "clone": lambda key: draw(random.clone(key)) + draw(key),
    "its numbers": lambda key: draw(key) + draw(random.wrap_key_data(random.key_data(key))),
    "compared": lambda key: draw(key) + (key == key),
    "moved": lambda key: draw(jnp.concatenate([random.split(key), random.split(random.key(1))])[3]),
    "mapped": lambda key: draw_each(random.split(key, 3)),
    "the same for all elements": lambda key: dt.vmap(lambda x: x + draw(key))(jnp.ones(3)),
    "repeated by hand": lambda key: draw_each(jnp.broadcast_to(key, (3,))),
    "one branch": lambda key: lax.cond(jnp.ones(()) > 0, draw, random.uniform, key),
    "scan over keys": lambda key: lax.scan(
        lambda c, k: (c + draw(k), None), 0.0, random.split(key, 3)
    )[0],
    "scan backwards": lambda key: lax.scan(
        lambda c, k: (c + draw(k), k), 0.0, random.split(key, 3), reverse=True
    )[0],
    "a new key by turns": lambda key: (
        draw(lax.scan(lambda k, _: (random.fold_in(k, 0), None), key, None, length=3)[0])
        + draw(key)
    ),
    "carried by scan": lambda key: lax.scan(chained, key, None, length=3)[1],
    "one turn": lambda key: lax.scan(lambda c, _: (c + draw(key), None), 0.0, None, length=1)[0],
    "no turn": lambda key: (
        lax.scan(lambda c, _: (c + draw(key), None), 0.0, None, length=0)[0] + draw(key)
    ),
    "one known turn of while": lambda key: counted(key, 1)[0],
    "element by element": lambda key: (
        lambda keys: lax.fori_loop(0, 3, lambda i, c: c + draw(keys[i]), 0.0)
    )(random.split(key, 3)),
    "fold_in by turns": lambda key: lax.fori_loop(
        0, 3, lambda i, c: c + draw(random.fold_in(key, i)), 0.0
    ),
    "differentiated": lambda key: dt.grad(lambda x: (x * draw(key)) ** 2)(1.0),
    "checkpointed": lambda key: dt.grad(dt.checkpoint(lambda x: jnp.sin(x * draw(key)) ** 2))(1.0),
    "a rule": lambda key: dt.grad(lambda x: Both.scaled(x, key))(1.0),
    "rolled": lambda key: draw_each(jnp.roll(random.split(key, 3), 1)),
    "checkpointed in scan": lambda key: dt.grad(
        lambda x: lax.scan(
            dt.checkpoint(lambda c, k: (jnp.sin(c * draw(k)), None)), x, random.split(key, 4)
        )[0]
    )(1.0),
    "carried by a checkpointed scan": lambda key: dt.grad(last_noisy)(1.0, key),
    "carried by a checkpointed scan, of many": lambda key: dt.vmap(dt.grad(last_noisy))(
        jnp.arange(2.0), random.split(key)
    ),
    "an element, and a scan that draws none": lambda key: (
        lambda keys: (
            draw(keys[0])
            + lax.scan(lambda c, k: (c | (k == k), None), False, keys)[0]
            + draw(keys[2])
        )
    )(random.split(key, 4)),
    "a key that later turns of fori_loop replace": lambda key: (
        lambda keys: draw(lax.fori_loop(0, 4, lambda i, _: keys[i // 2], keys[0])) + draw(keys[0])
    )(random.split(key)),
    "a key that later turns of while replace": lambda key: (
        lambda keys: (
            draw(
                lax.while_loop(
                    lambda state: state[0] < 4,
                    lambda state: (state[0] + 1, keys[state[0] // 2]),
                    (0, keys[0]),
                )[1]
            )
            + draw(keys[0])
        )
    )(random.split(key)),
    "a chosen key": lambda key: draw(
        (lambda keys: lax.select(keys[0] == keys[1], keys[0], keys[1]))(random.split(key))
    ),
    "reused as a raw key": lambda key: (lambda raw: draw(raw) + draw(raw))(random.key_data(key)),
    "permuted": lambda key: random.permutation(key, 4),
    "both branches of a mapped condition": lambda key: choose_each(
        draw, random.uniform, random.split(key)
    ),
    "a mapped condition over one key": lambda key: dt.vmap(
        lambda x: lax.cond(x > 0, lambda: draw(key), lambda: random.uniform(key))
    )(jnp.array([1.0, -1.0])),
    "branches of a mapped switch": lambda key: dt.vmap(
        lambda i, k: lax.switch(i, [draw, random.uniform, random.gumbel], k)
    )(jnp.arange(3), random.split(key, 3)),
    "new keys out of a mapped condition": lambda key: (
        lambda pair: pair[0].sum() + draw_each(pair[1]).sum()
    )(
        choose_each(
            lambda k: (lambda a, b: (draw(a), b))(*random.split(k)),
            lambda k: (0.0, k),
            random.split(key),
        )
    ),
    "a linearized while": lambda key: linearized(1.0, key),
    "a second derivative of a linearized while": lambda key: dt.linearize(
        dt.jacfwd(lambda x: walk(x, key, 3)), 1.0
    )[1](1.0),
    "a pull-back called twice": lambda key: (lambda pull: pull(1.0)[0] + pull(2.0)[0])(
        dt.vjp(dt.checkpoint(lambda x: jnp.sin(x * draw(key))), 1.0)[1]
    ),
    "a second derivative of a checkpointed function": lambda key: dt.hessian(
        dt.checkpoint(lambda x: jnp.sin(jnp.sin(x * draw(key))))
    )(1.0),
    "keys in a mutable reference": lambda key: (
        lambda ref: from_reference(ref) + from_reference(ref)
    )(dt.new_ref(key)),
    "keys that are replaced in an array": lambda key: lax.fori_loop(
        0, 6, replaced, (random.split(key), 0.0)
    )[1],
}

MODES: dict[str, Callable[[Program], Program]] = {
    "eager": lambda program: program,
    "jit": dt.jit,
    "compiled ahead": lambda program: dt.jit(program).lower(random.key(0)).compile(),
    "vmap": lambda program: lambda key: dt.vmap(program)(random.split(key, 2)),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", REUSED)
def test_a_key_that_is_used_twice_is_found(name: str, mode: str) -> None:
    program = MODES[mode](REUSED[name])
    program(random.key(0))  # it is no error without the option, and leaves nothing behind
    with (
        dt.debug_key_reuse(),
        pytest.raises(KeyReuseError, match=r"random key (was used|is twice)"),
    ):
        program(random.key(0))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FRESH)
def test_keys_that_are_used_once_are_not_reported(name: str, mode: str) -> None:
    program = MODES[mode](FRESH[name])
    want = program(random.key(0))
    with dt.debug_key_reuse():
        for _ in range(2):  # each call has a key of its own
            assert (program(random.key(0)) == want).all()


def test_both_lines_are_named() -> None:
    def noise(key: Any) -> Any:
        return random.normal(key)

    with dt.debug_key_reuse():
        key = random.key(0)
        noise(key)
        with pytest.raises(KeyReuseError) as caught:
            random.uniform(key)
    text = str(caught.value)
    assert "was used at test_key_reuse.py:" in text
    assert "(test_both_lines_are_named.<locals>.noise)" in text
    assert "and is used again at test_key_reuse.py:" in text
    assert "(test_both_lines_are_named)," in text
    assert "key, subkey = random.split(key)" in text


def _noise(key: Any) -> Any:
    return random.normal(key)


def _by_helper(key: Any) -> Any:
    first = _noise(key)
    return first + _noise(key)


def _by_programs(key: Any) -> Any:
    inner = dt.jit(_noise)
    first = inner(key)
    return first + inner(key)


@pytest.mark.parametrize("calls", [_by_helper, _by_programs])
@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_two_uses_at_one_line_are_told_apart_by_their_calls(
    calls: Callable[[Any], Any], mode: str
) -> None:
    first = calls.__code__.co_firstlineno + (1 if calls is _by_helper else 2)
    with dt.debug_key_reuse(), pytest.raises(KeyReuseError) as caught:
        MODES[mode](calls)(random.key(0))
    text, name = str(caught.value), calls.__name__
    assert f"(_noise), called at test_key_reuse.py:{first} ({name}), and is used" in text
    assert f"again there, called at test_key_reuse.py:{first + 1} ({name})," in text


def _in_a_loop(key: Any) -> Any:
    def body(_: int, total: Any) -> Any:
        return total + random.normal(key)

    return lax.fori_loop(0, 3, body, 0.0)


def _library_functions(key: Any) -> Any:
    keys = key[None]
    first = lax.map(random.normal, keys)
    return first + lax.map(random.normal, keys)


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_lines_are_those_of_the_call_or_in_the_body(mode: str) -> None:
    with dt.debug_key_reuse():
        with pytest.raises(KeyReuseError) as in_body:
            MODES[mode](_in_a_loop)(random.key(0))
        lax.map(random.normal, random.key(0)[None])  # traces what later calls find traced
        with pytest.raises(KeyReuseError) as in_library:
            MODES[mode](_library_functions)(random.key(0))
    line = _in_a_loop.__code__.co_firstlineno + 2
    assert f"used at test_key_reuse.py:{line} (_in_a_loop.<locals>.body)" in str(in_body.value)
    line = _library_functions.__code__.co_firstlineno + 2
    for used in (f"used at test_key_reuse.py:{line} (", f"again at test_key_reuse.py:{line + 1} ("):
        assert used in str(in_library.value)


def test_loops_name_the_next_turn() -> None:
    with (
        dt.debug_key_reuse(),
        pytest.raises(KeyReuseError, match="used by the next turn of the loop"),
    ):
        REUSED["a constant of scan"](random.key(0))


def test_a_call_that_fails_uses_nothing() -> None:
    def fails(key: Any) -> Any:
        random.split(key)
        raise ValueError("not this time")

    with dt.debug_key_reuse():
        key = random.key(0)
        with pytest.raises(ValueError, match="not this time"):
            dt.jit(fails)(key)
        random.normal(key)


def test_copies_hold_the_same_key_and_what_is_read_back_another() -> None:
    with dt.debug_key_reuse():
        key = random.key(0)
        same, read = copy.copy(key), pickle.loads(pickle.dumps(key))
        random.normal(key)
        random.normal(read)
        with pytest.raises(KeyReuseError):
            random.normal(same)


def test_uses_count_from_when_the_option_is_on() -> None:
    key = random.key(0)
    draw = dt.jit(random.normal)
    draw(key), draw(key)
    with dt.debug_key_reuse():
        draw(key)
        with pytest.raises(KeyReuseError):
            draw(key)
    draw(key)
