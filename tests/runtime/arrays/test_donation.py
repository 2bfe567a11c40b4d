"""Donated arguments."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail.errors import DeletedArrayError


@pytest.fixture
def x():
    return dt.device_put(np.ones((2, 3), np.float32))


@pytest.fixture
def y():
    return dt.device_put(np.full((2, 3), 2.0, np.float32))


def test_the_memory_is_reused(x, y):
    add = dt.jit(lax.add, donate_argnums=1)
    address = y.unsafe_buffer_pointer()
    z = add(x, y)
    assert z.unsafe_buffer_pointer() == address
    assert z.tolist() == [[3.0] * 3] * 2
    assert y.is_deleted()
    assert not x.is_deleted()


@pytest.mark.parametrize("warm", [False, True])
def test_use_of_a_donated_array(x, y, warm):
    add = dt.jit(lax.add, donate_argnums=1)
    double = dt.jit(lambda v: lax.add(v, v))
    double(x)
    if warm:
        for _ in range(2):
            add(x, dt.device_put(np.ones((2, 3), np.float32)))
    add(x, y)
    for use in (
        np.asarray,
        double,
        lambda v: add(x, v),
        lambda v: add(v, x),
        lambda v: lax.add(v, 1.0),
        dt.device_put,
        dt.block_until_ready,
        dt.device_get,
        dt.vmap(lambda v: lax.add(v, v)),
    ):
        with pytest.raises(
            DeletedArrayError, match=r"float32\[2,3\]\) was donated to add at test_donation\.py:\d+"
        ):
            use(y)
    assert y.shape == (2, 3)
    assert repr(y) == "<deleted Array of float32[2,3]>"


def test_trees_and_names(x, y):
    step = dt.jit(
        lambda state, *, extra: ({"w": lax.add(state["w"], extra)}, lax.mul(extra, 2.0)),
        donate_argnums=0,
        donate_argnames="extra",
    )
    for _ in range(3):
        state = {"w": dt.device_put(np.ones(4, np.float32))}
        extra = dt.device_put(np.ones(4, np.float32))
        new, other = step(state, extra=extra)
        assert new["w"].tolist() == other.tolist() == [2.0] * 4
        for gone in (state["w"], extra):
            with pytest.raises(DeletedArrayError, match="donated to <lambda>"):
                gone.tolist()


def test_a_training_loop_reuses_memory():
    step = dt.jit(lambda v: lax.mul(v, 2.0), donate_argnums=0)
    value = dt.device_put(np.ones(1000, np.float32))
    addresses = set()
    for _ in range(5):
        value = step(value)
        addresses.add(value.unsafe_buffer_pointer())
    assert value.tolist()[0] == 32.0
    assert len(addresses) == 1


def test_donations_of_no_use_are_warned_about(x, y):
    add = dt.jit(lambda a, b: lax.add(a, b), donate_argnums=(0, 1))
    with pytest.warns(
        UserWarning, match=r"Some donated buffers were not usable: f32\[2,3\] \(b\)"
    ) as w:
        add(x, y)
    assert w[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        add(dt.device_put(np.ones((2, 3), np.float32)), dt.device_put(np.ones((2, 3), np.float32)))
    row = dt.device_put(np.ones((1, 3), np.float32))
    other = dt.jit(
        lambda a, b: lax.add(a, lax.broadcast_in_dim(b, (2, 3), (0, 1))), donate_argnums=1
    )
    with pytest.warns(UserWarning, match=r"f32\[1,3\]"):
        other(dt.device_put(np.ones((2, 3), np.float32)), row)


def test_host_values_may_be_donated():
    f = dt.jit(lambda v: lax.add(v, v), donate_argnums=0)
    value = np.ones(3, np.float32)
    for _ in range(3):
        assert f(value).tolist() == [2.0] * 3
        assert f(1.5).item() == 3.0
    assert value.tolist() == [1.0] * 3


def test_donation_under_other_transformations(x):
    f = dt.jit(lambda v: lax.mul(v, v), donate_argnums=0)
    _, tangent = dt.jvp(f, (x,), (x,))
    assert tangent.tolist() == [[2.0] * 3] * 2
    assert dt.jit(lambda v: lax.add(f(v), v))(x).tolist() == [[2.0] * 3] * 2
    assert dt.vmap(f)(x).tolist() == [[1.0] * 3] * 2
    assert not x.is_deleted()


def test_methods_and_attributes():
    class Model:
        scale = 3.0

        @partial(dt.jit, static_argnums=0, donate_argnums=1)
        def step(self, value):
            return lax.mul(value, self.scale)

    assert Model().step(np.float32(2)).item() == 6
    f = dt.jit(lax.add, donate_argnums=0)
    assert f.__name__ == "add"
    assert f.lower(np.float32(1), np.float32(1)).compile()(np.float32(1), np.float32(1)).item() == 2
    f.clear_cache()
    assert f(np.float32(1), np.float32(2)).item() == 3


@pytest.mark.parametrize("form", ["cold", "warm", "compiled"])
@pytest.mark.parametrize("donated", [0, 1])
def test_one_array_donated_and_used_twice(x, y, form, donated):
    """XLA has words of its own for each of the two orders."""
    add = dt.jit(lax.add, donate_argnums=donated)
    if form == "warm":
        add(*(dt.device_put(np.ones((2, 3), np.float32)) for _ in range(2)))
    if form == "compiled":
        add = add.lower(x, x).compile()
    with pytest.raises(dt.errors.JaxRuntimeError, match="add was given one array twice, or two"):
        add(x, x)
    assert x.tolist() == [[1.0] * 3] * 2


def test_arrays_donated_to_a_compiled_program_say_so(x, y):
    add = dt.jit(lax.add, donate_argnums=1).lower(x, y).compile()
    add(x, y)
    with pytest.raises(dt.errors.DeletedArrayError, match="was donated to add at test_donation"):
        y.tolist()
    assert not x.is_deleted()
