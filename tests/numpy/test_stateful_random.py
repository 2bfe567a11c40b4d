"""dovetail.experimental.random: a generator with a state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import random
from dovetail.experimental.random import StatefulPRNG, stateful_rng


def nth(number: int, seed: int = 3) -> Any:
    """The key of the n-th request."""
    return random.fold_in(random.key(seed), number)


def same(left: Any, right: Any) -> None:
    np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


#: A method's arguments, and what it gives for a key.
REQUESTS = [
    ("random", (), {}, lambda key: random.uniform(key)),
    ("random", (4,), {}, lambda key: random.uniform(key, (4,))),
    ("random", ((2, 3),), {"dtype": "float16"}, lambda key: random.uniform(key, (2, 3), "float16")),
    ("uniform", (), {}, lambda key: random.uniform(key)),
    ("uniform", (1, 2, 4), {}, lambda key: random.uniform(key, (4,), minval=1, maxval=2)),
    (
        "uniform",
        (np.zeros(3), 5),
        {},
        lambda key: random.uniform(key, (3,), minval=np.zeros(3), maxval=5),
    ),
    ("normal", (), {}, lambda key: random.normal(key)),
    ("normal", (1, 2, (3,)), {}, lambda key: random.normal(key, (3,)) * 2 + 1),
    (
        "normal",
        (np.zeros((2, 1)), np.ones(3)),
        {"dtype": "float16"},
        lambda key: random.normal(key, (2, 3), "float16"),
    ),
    ("integers", (10,), {}, lambda key: random.randint(key, (), 0, 10)),
    ("integers", (2, 10, 5), {}, lambda key: random.randint(key, (5,), 2, 10)),
    (
        "integers",
        (10,),
        {"size": (2, 2), "dtype": "int8"},
        lambda key: random.randint(key, (2, 2), 0, 10, "int8"),
    ),
]


@pytest.mark.parametrize(("method", "args", "options", "expected"), REQUESTS)
def test_each_request_has_a_key_of_its_own(
    method: str, args: Any, options: Any, expected: Any
) -> None:
    rng = stateful_rng(3)
    for number in range(2):
        drawn = getattr(rng, method)(*args, **options)
        wanted = expected(nth(number))
        assert drawn.dtype == wanted.dtype
        same(drawn, wanted)


def test_keys() -> None:
    rng = stateful_rng(3)
    data = random.key_data
    same(data(rng.key()), data(nth(0)))
    same(data(rng.key(2)), data(random.split(nth(1), 2)))
    same(data(rng.key((2, 3))), data(random.split(nth(2), (2, 3))))


def test_children() -> None:
    rng = stateful_rng(3)
    keys = random.split(nth(0), 2)
    for child, key in zip(rng.spawn(2), keys, strict=True):
        same(child.random(2), random.uniform(random.fold_in(key, 0), (2,)))
    together = rng.split(3)
    drawn = dt.vmap(lambda rng: rng.random(2))(together)
    each = [random.uniform(random.fold_in(k, 0), (2,)) for k in random.split(nth(1), 3)]
    same(drawn, jnp.stack(each))
    with pytest.raises(ValueError, match=r"array of \(3,\) generators.*vmap"):
        together.random()


def test_in_programs() -> None:
    """It is captured, is an argument, or is in a loop: the count goes on."""
    rng = stateful_rng(3)
    captured = dt.jit(lambda: rng.random(2))
    passed = dt.jit(lambda rng: rng.random(2))
    drawn = [captured(), captured(), passed(rng), rng.random(2)]
    for number, got in enumerate(drawn):
        same(got, random.uniform(nth(number), (2,)))
    _, looped = dt.lax.scan(lambda c, _: (c, rng.random()), 0, None, length=3)
    same(looped, jnp.stack([random.uniform(nth(n)) for n in range(4, 7)]))
    inside = dt.jit(lambda: stateful_rng(3).random(2))
    same(inside(), random.uniform(nth(0), (2,)))


def test_generators_are_trees() -> None:
    rng = stateful_rng(3, impl="rbg")
    leaves, tree = dt.tree.flatten(rng)
    assert len(leaves) == 2
    again = dt.tree.unflatten(tree, leaves)
    assert isinstance(again, StatefulPRNG)
    first = rng.random()
    assert float(again.random()) != float(first)
    assert int(rng._counter[...]) == 2
    assert str(rng.key().dtype) == "key<rbg>"


def test_seeds_of_the_system_differ() -> None:
    assert not jnp.array_equal(stateful_rng().random(4), stateful_rng().random(4))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: stateful_rng(1.5), TypeError, "integer"),
        (lambda: stateful_rng(np.arange(3)), TypeError, "scalar seed"),
        (lambda: stateful_rng(random.key(0)), TypeError, "key"),
        (lambda: StatefulPRNG(random.key(3), 3), TypeError, r"reference.*new_ref\(0\)"),
        (lambda: StatefulPRNG(random.key(3), dt.new_ref(1.0)), TypeError, "reference"),
        (lambda: StatefulPRNG(random.key(3), dt.new_ref(np.arange(3))), TypeError, "reference"),
    ],
)
def test_mistakes(call: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        call()
