"""Making, splitting and unpacking random keys."""

from __future__ import annotations

from typing import Any, NewType

import numpy as np

from dovetail import enable_custom_prng
from dovetail.extend import dtypes, random_keys
from dovetail.extend.arguments import array_like, convert
from dovetail.extend.avals import ArrayClass, aval_of
from dovetail.extend.random_keys import random_seed_offset
from dovetail.extend.strictness import strictness
from dovetail.extend.unchecked import make_literal
from dovetail.lax import add_p
from dovetail.numpy.compiled import compiled, compiled_with
from dovetail.random.arguments import (
    checked_keys,
    converted,
    default_implementation,
    like,
    shape_argument,
    single_key,
    typed,
)
from dovetail.typing import Array, ArrayLike, DTypeLike, KeyLike

Key = NewType("Key", Array)
"""A typed key, for annotations: it is an array, and `Key(x)` is `x`."""

_UINT32 = np.dtype(np.uint32)


def _implementation(
    impl: Any, dtype: Any = None, function: str = "key"
) -> random_keys.KeyImplementation:
    if dtype is not None:
        if impl is not None:
            raise ValueError(f"random.{function} takes impl or dtype, not both")
        return random_keys.implementation_of(dtype)
    return default_implementation() if impl is None else random_keys.implementation_of(impl)


def _seed(function: str, seed: Any) -> Any:
    """A seed as an integer scalar of a dtype that arrays can have."""
    offset = random_seed_offset.value
    if type(seed) is int or isinstance(seed, (bool, int)):
        seed = int(seed) + offset
        if not -(2**63) <= seed < 2**63:
            raise OverflowError(
                f"random.{function}: the seed {seed} does not fit 64 bits; take it modulo 2**63"
            )
        if -(2**31) <= seed < 2**31:
            return seed  # jaxlib takes Python's integers faster than NumPy's
        return np.int64(seed).astype(dtypes.default_dtype("i"))
    value: Any
    if isinstance(seed, ArrayClass):
        value = seed
    elif isinstance(seed, (np.ndarray, np.generic)):
        # Only the low bits count: wherever 64 bits are off, a seed gives the same key.
        value = np.asarray(seed).astype(dtypes.canonicalize_dtype(seed.dtype))
    else:
        value = array_like(seed, f"random.{function}", "seed")
    aval = aval_of(value)
    if isinstance(aval.dtype, random_keys.KeyDType):
        raise TypeError(
            f"random.{function} makes a key from an integer, and was given one that is a key "
            "already"
        )
    if aval.shape:
        raise TypeError(
            f"random.{function} accepts a scalar seed, but was given an array of shape "
            f"{aval.shape}; "
            f"write vmap(random.{function})(seeds) for an array of keys"
        )
    if dtypes.kind_of(aval.dtype) not in ("i", "u"):
        raise TypeError(
            f"random.{function}: the seed must be an integer, got {aval.dtype}: {seed!r:.80}"
        )
    return add_p.bind(value, make_literal(offset, aval.dtype)) if offset else value


@compiled_with("name")
def _key_of_seed(seed: Any, name: str) -> Any:
    implementation = random_keys.implementation_of(name)
    return random_keys.seed(array_like(seed, "random.key", "seed"), implementation)


@compiled_with("name")
def _raw_key_of_seed(seed: Any, name: str) -> Any:
    return random_keys.unwrap(_key_of_seed(seed, name))


def key(seed: ArrayLike, *, impl: str | None = None, dtype: DTypeLike | None = None) -> Array:
    """A random key made from a seed.

    Args:
        seed: an integer. Only its low 32 bits count unless ``enable_x64`` is on.
        impl: the name of the generator, ``"threefry2x32"``, ``"threefry4x32"``, ``"philox2x32"``,
            ``"philox4x32"``, ``"rbg"`` or ``"unsafe_rbg"``; the option ``default_prng_impl`` by
            default.
        dtype: a key dtype, or a name, as an alternative way to choose the generator.

    Returns:
        An array of rank 0 whose dtype is that of the generator's keys.

    Raises:
        TypeError: `seed` is not an integer scalar.
        ValueError: there is no generator of that name, or both `impl` and `dtype` are given.
        OverflowError: `seed` has more than 64 bits.

    Differs:
        A seed must be an integer, also where it is traced; so must the data of `fold_in`.

        >>> dt.jit(dt.random.key)(1.5)
        Traceback (most recent call last):
            ...
        TypeError: random.key: the seed must be an integer, got float32: ...

        Keys of ``rbg`` and ``unsafe_rbg`` give under `vmap` what each gives alone.

        >>> keys = dt.random.split(dt.random.key(0, impl="rbg"), 2)
        >>> together = dt.vmap(dt.random.bits)(keys)
        >>> print(together[1] == dt.random.bits(keys[1]))
        True

    Example:
        >>> from dovetail import random
        >>> random.key(0)
        Array((), dtype=key<fry>) overlaying:
        [0 0]
    """
    return _key_of_seed(_seed("key", seed), _implementation(impl, dtype).name)


def PRNGKey(seed: ArrayLike, *, impl: str | None = None) -> Array:
    """A raw random key made from a seed: an array of numbers, the older form of keys.

    Args:
        seed: an integer. Only its low 32 bits count unless ``enable_x64`` is on.
        impl: the name of the generator; the option ``default_prng_impl`` by default.

    Returns:
        A uint32 array, of shape (1,) for ``philox2x32``, (2,) for ``threefry2x32`` and
        ``philox4x32``, (4,) for the others; with the option ``enable_custom_prng`` a typed key, as
        from `key`.

    Raises:
        TypeError: `seed` is not an integer scalar.
        ValueError: there is no generator of that name.
        OverflowError: `seed` has more than 64 bits.

    Example:
        >>> from dovetail import random
        >>> print(random.PRNGKey(42))
        [ 0 42]
    """
    make = _key_of_seed if enable_custom_prng.value else _raw_key_of_seed
    return make(_seed("PRNGKey", seed), _implementation(impl).name)


def key_dtype(impl_spec: str | None = None) -> Any:
    """The dtype of the keys of a generator.

    Args:
        impl_spec: name of the generator; the option ``default_prng_impl`` by default.

    Returns:
        A dtype, a subtype of `dovetail.dtypes.prng_key`.

    Raises:
        ValueError: there is no generator of that name.

    Example:
        >>> from dovetail import random
        >>> random.key_dtype()
        key<fry>
    """
    return random_keys.key_dtype(_implementation(impl_spec))


def key_impl(keys: KeyLike) -> str:
    """The name of the generator that keys belong to.

    Args:
        keys: typed keys; raw ones are assumed to belong to the generator ``default_prng_impl``.

    Returns:
        The name, as accepted by `key` and `wrap_key_data`.

    Raises:
        TypeError: `keys` are not keys.

    Example:
        >>> from dovetail import random
        >>> random.key_impl(random.key(0))
        'threefry2x32'
    """
    checked, _ = checked_keys("key_impl", keys)
    implementation = getattr(checked.dtype, "implementation", None) or default_implementation()
    return str(implementation.name)


def key_data(keys: KeyLike) -> Array:
    """The raw form of keys: the numbers that they consist of.

    Args:
        keys: keys, of any shape; raw ones are returned unchanged.

    Returns:
        A uint32 array, of shape ``(*keys.shape, 2)`` for ``threefry2x32``.

    Raises:
        TypeError: `keys` are not keys.

    Example:
        >>> from dovetail import random
        >>> print(random.key_data(random.key(42)))
        [ 0 42]
    """
    checked, _ = checked_keys("key_data", keys)
    return _data(checked)


@compiled
def _data(key: Any) -> Any:
    return random_keys.unwrap(typed(key))


def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: str | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Typed keys made from raw ones.

    Args:
        key_bits_array: a uint32 array whose shape ends with that of a raw key, (2,) for
            ``threefry2x32``.
        impl: the name of the generator; the option ``default_prng_impl`` by default.
        dtype: a key dtype, or a name, as an alternative way to choose the generator.

    Returns:
        An array of keys.

    Raises:
        TypeError: the array has a different dtype or shape.
        ValueError: there is no generator of that name, or both `impl` and `dtype` are given.

    Example:
        >>> from dovetail import random
        >>> random.wrap_key_data(random.PRNGKey(42))
        Array((), dtype=key<fry>) overlaying:
        [ 0 42]
    """
    implementation = _implementation(impl, dtype, "wrap_key_data")
    raw = key_bits_array
    if isinstance(getattr(raw, "dtype", None), random_keys.KeyDType):
        raise TypeError("random.wrap_key_data takes raw keys, and was given typed ones")
    if not isinstance(raw, (ArrayClass, np.ndarray)):
        raise TypeError(
            f"random.wrap_key_data takes an array of uint32, got {type(raw).__name__}: {raw!r:.80}"
        )
    rank, shape = len(implementation.key_shape), raw.shape
    if raw.dtype != _UINT32 or shape[len(shape) - rank :] != implementation.key_shape:
        raise TypeError(
            f"random.wrap_key_data: raw keys of {implementation.name} are arrays of uint32 whose "
            "shape "
            f"ends with {implementation.key_shape}, got {raw.dtype} of shape {shape}"
        )
    return _wrapped(raw, implementation.name)


@compiled_with("name")
def _wrapped(raw: Any, name: str) -> Any:
    return random_keys.wrap(raw, random_keys.implementation_of(name))


def clone(key: KeyLike) -> Array:
    """The same key, to state that its reuse is intended.

    Args:
        key: keys, typed or raw.

    Returns:
        Keys equal to `key`. For the option ``debug_key_reuse`` they are others.

    Raises:
        TypeError: `key` is not a key.

    Example:
        >>> from dovetail import random
        >>> bool(random.clone(random.key(3)) == random.key(3))
        True
    """
    keys, _ = checked_keys("clone", key)
    return _cloned(keys) if random_keys.is_key(keys) else keys


@compiled
def _cloned(keys: Any) -> Any:
    return random_keys.clone(keys)


def split(key: KeyLike, num: int | tuple[int, ...] = 2) -> Array:
    """New keys made from one key, which should not be used again.

    Args:
        key: a key, typed or raw.
        num: number of new keys, or the shape of the array of them.

    Returns:
        New keys, typed or raw like `key`, of shape ``(num,)``, or `num` if that is a tuple.

    Raises:
        TypeError: `key` is not a key, or `num` is neither an integer nor a shape.
        ValueError: `key` is an array of several keys, or `num` is negative.

    Example:
        >>> from dovetail import random
        >>> first, second = random.split(random.key(0))
        >>> random.split(first, (2, 3)).shape
        (2, 3)
    """
    return _split(single_key("split", key), shape_argument("split", num))


@compiled_with("shape")
def _split(key: Any, shape: Any) -> Any:
    return like(key, random_keys.split(typed(key), shape))


def fold_in(key: KeyLike, data: ArrayLike) -> Array:
    """A new key made from a key and a number, such as that of a step or of a device.

    Args:
        key: a key, typed or raw.
        data: a 32-bit integer; only the low 32 bits of wider integers count.

    Returns:
        A new key, typed or raw like `key`. It differs for different `data`.

    Raises:
        TypeError: `key` is not a key, or `data` is not an integer scalar.
        ValueError: `key` is an array of several keys.
        OverflowError: `data` is a Python integer that is negative or does not fit 32 bits.

    Differs:
        Floats and complex numbers are refused, which JAX cuts to integers: what differs by a
        fraction would give the same key.

        >>> dt.random.fold_in(dt.random.key(0), 0.5)
        Traceback (most recent call last):
            ...
        TypeError: random.fold_in: data must be an integer, got float32: 0.5

    Example:
        >>> from dovetail import random
        >>> random.key_data(random.fold_in(random.key(0), 7)).tolist()
        [2716826189, 292468403]
    """
    return _fold_in(single_key("fold_in", key), _folded_number(data))


def _folded_number(data: Any) -> Any:
    if type(data) is int or isinstance(data, (bool, int)):
        if not 0 <= data < 2**32:
            raise OverflowError(
                f"random.fold_in: data must be from 0 to 2**32 - 1, got {data}; write data % "
                "2**32, "
                "or fold twice"
            )
        return int(data) if data < 2**31 else np.uint32(data)
    value = array_like(data, "random.fold_in", "data")
    aval = aval_of(value)
    if aval.shape:
        raise TypeError(
            f"random.fold_in accepts a scalar, but was given an array of shape {aval.shape}; write "
            "vmap(random.fold_in, in_axes=(None, 0))(key, data) for an array of keys"
        )
    if dtypes.kind_of(aval.dtype) == "f" and not strictness().fractions_matter:
        return convert(value, np.dtype(np.uint32))
    if dtypes.kind_of(aval.dtype) not in ("b", "i", "u"):
        raise TypeError(f"random.fold_in: data must be an integer, got {aval.dtype}: {data!r:.80}")
    if isinstance(value, ArrayClass):
        return value
    return np.asarray(data).astype(_UINT32)


@compiled
def _fold_in(key: Any, data: Any) -> Any:
    number = converted(array_like(data, "random.fold_in", "data"), _UINT32)
    return like(key, random_keys.fold_in(typed(key), number))
