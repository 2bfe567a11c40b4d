"""The option ``index_mode="raise"``: what NumPy refuses is refused, eagerly and by programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)


def ints(*values: int, dtype: Any = np.int32) -> np.ndarray[Any, Any]:
    return np.array(values, dtype)


#: What stands in an index for a position that is passed as an argument of the program.
INDICES: dict[str, Any] = {
    "first": 0,
    "last": -3,
    "beyond": 3,
    "before": -4,
    "far": 2**40,
    "second axis": (1, 4),
    "slice": (slice(1, 9), -1),
    "ellipsis": (..., 4),
    "new": (None, 2, None, -5),
    "vector": ints(0, -3, 2),
    "vector beyond": ints(0, 3, 4),
    "vector before": ints(0, -4),
    "unsigned": ints(1, 200, dtype=np.uint8),
    "small": ints(-3, 2, dtype=np.int8),
    "small beyond": ints(-128, dtype=np.int8),
    "two": (ints(0, 2), ints(3, -4)),
    "two, one beyond": (ints(0, 2), ints(4, 0)),
    "matrix": ints(0, 1, 2, 2).reshape(2, 2),
    "mask": np.array([True, False, True]),
    "mask and position": (np.array([True, False, True]), ints(1, 4)),
    "empty": ints(),
}


@pytest.fixture(autouse=True)
def raising() -> Iterator[None]:
    with dt.index_mode("raise"):
        yield


def in_numpy(index: Any) -> Any:
    """What NumPy has under an index; None where it raises an IndexError."""
    try:
        return X[index]
    except IndexError:
        return None


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("where", ["host", "array"])
def test_eagerly_as_in_numpy(name: str, where: str) -> None:
    index = INDICES[name]
    expected = in_numpy(index)
    if where == "array":
        parts = index if isinstance(index, tuple) else (index,)
        convert = lambda p: jnp.asarray(p) if isinstance(p, np.ndarray) else p
        index = tuple(convert(p) for p in parts)
    x = jnp.asarray(X)
    if expected is None:
        for use in (
            lambda: x[index],
            lambda: x.at[index].get(),
            lambda: x.at[index].set(0.0),
            lambda: x.at[index].apply(lambda v: v),
        ):
            with pytest.raises(IndexError, match=r"out of bounds for axis \d with size [34]"):
                use()
    else:
        np.testing.assert_array_equal(x[index], expected)
        np.testing.assert_array_equal(x.at[index].get(), expected)
        changed = X.copy()
        changed[index] = 0
        np.testing.assert_array_equal(x.at[index].set(0.0), changed)


@pytest.mark.parametrize(
    "index", [-3, 3, ints(0, -3), ints(0, 3, 5), ints(-4), ints(1, 255, dtype=np.uint8), ints()]
)
def test_programs_raise_when_they_run(index: Any) -> None:
    expected = in_numpy(index)
    reading = dt.jit(lambda x, i: x[i])
    writing = dt.jit(lambda x, i: x.at[i].add(1))
    if expected is None:
        first = next(int(i) for i in np.atleast_1d(index) if not -3 <= i < 3)
        for program in (reading, writing):
            with pytest.raises(IndexError, match=f"index {first} is out of bounds for axis 0 with"):
                program(X, index).block_until_ready()
    else:
        np.testing.assert_array_equal(reading(X, index), expected)
        writing(X, index).block_until_ready()


def test_the_line_of_the_user_is_named() -> None:
    def function(x: Any, i: Any) -> Any:
        return x[i]

    line = function.__code__.co_firstlineno + 1
    with pytest.raises(IndexError, match=rf"test_index_mode.py:{line} \(.*function\)"):
        dt.jit(function)(X, 7).block_until_ready()
    with pytest.raises(IndexError, match=rf"test_index_mode.py:{line} \(.*function\)"):
        function(jnp.asarray(X), 7)


def test_static_positions_fail_when_traced() -> None:
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        dt.make_jaxpr(lambda x: x[3])(X)
    assert "debug_check" not in str(dt.make_jaxpr(lambda x: x[2])(X))
    assert "debug_check" in str(dt.make_jaxpr(lambda x, i: x[i])(X, 1))


def test_under_transformations() -> None:
    rows = jnp.asarray(X)
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        dt.vmap(lambda x, i: x[i])(rows, jnp.array([0, 4, 9])).block_until_ready()
    assert dt.grad(lambda x: x[jnp.array([1, 1])].sum())(rows[0]).tolist() == [0, 2, 0, 0]
    with pytest.raises(IndexError, match="index 5"):
        dt.jit(dt.grad(lambda x, i: x[i].sum()))(rows, 5).block_until_ready()
    with pytest.raises(IndexError, match="index -5"):
        dt.lax.fori_loop(0, 2, lambda i, x: x.at[0, i - 5].set(0.0), rows).block_until_ready()


@pytest.mark.parametrize("wrap", [True, False])
def test_negative_positions_that_do_not_count_from_the_end(wrap: bool) -> None:
    x = jnp.asarray(X)
    for index in (-1, jnp.array([-1]), np.array([-1])):
        use = lambda i=index: x.at[i].get(wrap_negative_indices=wrap)
        if wrap:
            use()
        else:
            with pytest.raises(IndexError, match="index -"):
                use()


def test_taking() -> None:
    for where in (3, jnp.array([0, 3]), np.array([-4])):
        with pytest.raises(IndexError, match="out of bounds for axis 1 with size 3"):
            jnp.take(X.T, where, axis=1)
        assert jnp.take(X.T, where, axis=1, mode="clip").shape[0] == 4
    with pytest.raises(IndexError, match="out of bounds for axis 1 with size 4"):
        jnp.take_along_axis(X, jnp.array([[4]]), 1)
    np.testing.assert_array_equal(jnp.take(X, -12), 0)


@pytest.mark.parametrize("mode", ["fill", "drop", "clip", "promise_in_bounds"])
def test_a_mode_that_is_given_has_its_way(mode: str) -> None:
    x = jnp.asarray(X)
    assert x.at[5].get(mode=mode).shape == (4,)
    assert x.at[jnp.array([5])].set(0.0, mode=mode).shape == (3, 4)


def test_the_scope_is_part_of_what_is_remembered() -> None:
    x = jnp.arange(3)
    program = dt.jit(lambda x, i: x[i])
    with dt.index_mode("allow"):
        assert int(x[5]) == int(program(x, 5)) == 2
        assert x.at[5].set(9).tolist() == [0, 1, 2]
    with pytest.raises(IndexError):
        x[5]
    with pytest.raises(IndexError):
        program(x, 5).block_until_ready()
    dt.config.update("index_mode", "raise")
    try:
        with pytest.raises(IndexError):
            x.at[5].set(9)
    finally:
        dt.config.update("index_mode", "allow")
