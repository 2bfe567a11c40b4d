"""Results stay on the device that an argument is committed to, also where only its type counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, nn, random
from dovetail.sharding import Mesh, NamedSharding
from dovetail.sharding import PartitionSpec as P

LIKE: dict[str, Callable[[Any], Any]] = {
    "zeros_like": jnp.zeros_like,
    "ones_like": jnp.ones_like,
    "empty_like": jnp.empty_like,
    "full_like": lambda x: jnp.full_like(x, 3),
    "full_like of an array": lambda x: jnp.full_like(x, jnp.float32(3)),
    "full_like of a row": lambda x: jnp.full_like(x, jnp.ones(x.shape[-1:])),
    "full_like of NumPy's row": lambda x: jnp.full_like(x, np.ones(x.shape[-1:])),
    "zeros_like with a dtype": lambda x: jnp.zeros_like(x, int),
    "zeros_like with a shape": lambda x: jnp.zeros_like(x, shape=(7,)),
    "lax.full_like": lambda x: lax.full_like(x, 2),
    "lax.full_like with a shape": lambda x: lax.full_like(x, 2.0, np.int32, (3,)),
    "in a tree": lambda x: dt.tree.map(jnp.zeros_like, [x])[0],
    "of its namespace": lambda x: x.__array_namespace__().zeros_like(x),
    "full of a scalar": lambda x: jnp.full((2,), x.sum()),
    "full of an array": lambda x: jnp.full(x.shape, x),
    "broadcast_to": lambda x: jnp.broadcast_to(x, (2, *x.shape)),
    "astype": lambda x: x.astype(jnp.int32),
    "view": lambda x: x.view(jnp.int32),
    "copy": jnp.copy,
    "asarray": jnp.asarray,
    "array": jnp.array,
    "array of a list": lambda x: jnp.array([x, x]),
    "at": lambda x: x.at[:1].set(1.0),
    "at, with NumPy's": lambda x: x.at[0].add(np.ones(x.shape[1:], np.float32)),
    "an empty slice": lambda x: x[:0],
    "sum of nothing": lambda x: x[:0].sum(),
    "matrix_power of 0": lambda x: jnp.linalg.matrix_power(x @ x.T, 0),
    "pad": lambda x: jnp.pad(x, 1),
    "repeat nothing": lambda x: jnp.repeat(x, 0),
    "imag of real numbers": jnp.imag,
    "iscomplex": jnp.iscomplex,
    "isfinite of integers": lambda x: jnp.isfinite(x.astype(int)),
    "isin nothing": lambda x: jnp.isin(x, np.zeros(0, np.float32)),
    "nonzero": lambda x: jnp.nonzero(x)[0],
    "where of a condition": lambda x: jnp.where(x > 0)[0],
    "argwhere": jnp.argwhere,
    "flatnonzero": jnp.flatnonzero,
    "a mask": lambda x: x[x > 0],
    "unique": jnp.unique,
    "unique counts": lambda x: jnp.unique(x, return_counts=True)[1],
    "union1d": lambda x: jnp.union1d(x, np.float32([1])),
    "intersect1d": lambda x: jnp.intersect1d(np.float32([0]), x),
    "setdiff1d": lambda x: jnp.setdiff1d(x, np.float32([0])),
    "trim_zeros": lambda x: jnp.trim_zeros(x[0]),
    "delete": lambda x: jnp.delete(x[0], 0),
    "histogram": lambda x: jnp.histogram(x[0], 3)[1],
    "one_hot": lambda x: nn.one_hot(x[0, :3].astype(int), 3),
    "jit of a constant": dt.jit(lambda x: 1.0),
}


# Large arrays are not made on the host.
SHAPES = [*[(name, (2, 3)) for name in LIKE], *[(n, (2, 5000)) for n in LIKE if "like" in n]]


@pytest.mark.parametrize(("name", "shape"), SHAPES, ids=str)
def test_committed_arrays(name: str, shape: tuple[int, ...]) -> None:
    device = dt.devices()[1]
    x = dt.device_put(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), device)
    here = LIKE[name](dt.device_put(x, dt.devices()[0]))
    there = LIKE[name](x)
    assert there.devices() == {device}
    assert there.committed
    assert there.dtype == here.dtype
    np.testing.assert_array_equal(np.asarray(there), np.asarray(here))


#: Those of them whose results are divided as the argument is.
DIVIDED = (
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
    "full_like of an array",
    "zeros_like with a dtype",
    "lax.full_like",
    "in a tree",
    "of its namespace",
)


@pytest.mark.parametrize("name", LIKE)
def test_arrays_over_a_mesh(name: str) -> None:
    mesh = Mesh(np.array(dt.devices()[:4]).reshape(2, 2), ("x", "y"))
    x = np.arange(48, dtype=np.float32).reshape(8, 6) - 9
    divided = dt.device_put(x, NamedSharding(mesh, P("x", "y")))
    result = LIKE[name](divided)
    wanted = np.asarray(LIKE[name](jnp.asarray(x)))
    assert result.dtype == wanted.dtype
    np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-6)
    if name in DIVIDED:
        assert result.sharding is divided.sharding
    np.testing.assert_allclose(result + divided.ravel()[0], wanted + x[0, 0], rtol=1e-6)


RANDOM: dict[str, Callable[[Any], Any]] = {
    "split": random.split,
    "fold_in": lambda k: random.fold_in(k, 1),
    "clone": random.clone,
    "key_data": random.key_data,
    "wrap_key_data": lambda k: random.wrap_key_data(random.key_data(k)),
    "bits": random.bits,
    "uniform": random.uniform,
    "uniform of nothing": lambda k: random.uniform(k, (0,)),
    "normal": lambda k: random.normal(k, (3,)),
    "randint": lambda k: random.randint(k, (2,), 0, 5),
    "bernoulli": random.bernoulli,
    "rademacher": lambda k: random.rademacher(k, (2,)),
    "gumbel": random.gumbel,
    "categorical": lambda k: random.categorical(k, np.zeros(3, np.float32)),
    "choice": lambda k: random.choice(k, 3, (2,)),
    "choice of nothing": lambda k: random.choice(k, 3, (0,)),
    "permutation": lambda k: random.permutation(k, 3),
    "permutation of one": lambda k: random.permutation(k, 1),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_where_the_key_is(name: str) -> None:
    device = dt.devices()[1]
    result = RANDOM[name](dt.device_put(random.key(0), device))
    assert result.devices() == {device}
    assert result.committed


def test_what_decides_the_device() -> None:
    first, second, third = dt.devices()[:3]
    x = dt.device_put(np.ones(3, np.float32), second)
    # An argument wins over the array, and that over the default device and the value.
    assert jnp.zeros_like(x, device=third).devices() == {third}
    assert jnp.full_like(x, dt.device_put(2.0, third)).devices() == {second}
    with dt.default_device(third):
        assert jnp.zeros_like(x).devices() == {second}
    with dt.default_device(second):
        loose = jnp.ones(3)
    # Data that is not committed does not decide; neither does anything inside a program.
    assert jnp.zeros_like(loose).devices() == {first}
    assert not jnp.zeros_like(loose).committed
    assert dt.jit(lambda: jnp.zeros_like(x))().devices() == {first}
