"""Checks of the common arguments of random functions: the key, a shape, a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail import default_prng_impl, legacy_prng_key
from dovetail.errors import NonArrayArgumentError, ShapeError
from dovetail.extend import dtypes, random_keys
from dovetail.extend.arguments import Literal, canonical_shape, warn_user
from dovetail.extend.avals import ArrayClass
from dovetail.extend.unchecked import convert_element_type, make_literal

Shape = tuple[int, ...]


def default_implementation() -> random_keys.KeyImplementation:
    """The implementation used where none is named."""
    return random_keys.implementation_of(default_prng_impl.value)


def checked_keys(function: str, key: Any) -> tuple[Any, Shape]:
    """Typed or raw keys unchanged, and the shape of the array of keys.

    Raises:
        TypeError: `key` is neither typed nor raw keys.
    """
    dtype = getattr(key, "dtype", None)
    if isinstance(dtype, random_keys.KeyDType):
        return key, key.shape
    if not isinstance(key, (ArrayClass, np.ndarray)):
        raise NonArrayArgumentError(
            f"random.{function} takes a random key, got {type(key).__name__}: {key!r:.80}; make "
            "one "
            "with random.key(seed)"
        )
    return key, _shape_of_raw(function, key, default_implementation())


def _shape_of_raw(function: str, key: Any, impl: random_keys.KeyImplementation) -> Shape:
    rank = len(impl.key_shape)
    shape: Shape = key.shape
    if key.dtype != np.uint32 or shape[len(shape) - rank :] != impl.key_shape:
        raise TypeError(
            f"random.{function} takes a random key, got an array of {key.dtype} of shape {shape}; "
            "make "
            f"one with random.key(seed). Raw keys of {impl.name} are arrays of uint32 whose shape "
            f"ends with {impl.key_shape}"
        )
    mode = legacy_prng_key.value
    if mode != "allow":
        text = (
            f"random.{function} was given a raw key, an array of uint32, and legacy_prng_key is "
            f"{mode!r}; make typed keys with random.key(seed) instead of random.PRNGKey, or with "
            "random.wrap_key_data"
        )
        if mode == "error":
            raise ValueError(text)
        warn_user(text)
    return shape[: len(shape) - rank]


def single_key(function: str, key: Any) -> Any:
    """A single typed or raw key, unchanged.

    Raises:
        TypeError: `key` is not a key.
        ValueError: it is an array of several keys.
    """
    if isinstance(getattr(key, "dtype", None), random_keys.KeyDType):
        shape = key.shape
    else:
        key, shape = checked_keys(function, key)
    if shape:
        raise ValueError(
            f"random.{function} accepts a single key, but was given a key array of shape {shape}; "
            f"write vmap(lambda k: random.{function}(k, ...))(keys) for an array of keys, or "
            "keys[i] "
            "for one of them"
        )
    return key


def typed(key: Any) -> Any:
    """Checked keys, in typed form."""
    return key if random_keys.is_key(key) else random_keys.wrap(key, default_implementation())


def like(given: Any, made: Any) -> Any:
    """The keys `made`, typed or raw like those `given`."""
    return made if random_keys.is_key(given) else random_keys.unwrap(made)


def shape_argument(function: str, shape: Any) -> Shape:
    """A shape as a tuple of ints.

    Raises:
        TypeError: it is not a shape.
        ValueError: a size is negative.
    """
    if type(shape) is tuple and all(type(n) is int and n >= 0 for n in shape):
        return shape
    return canonical_shape(f"random.{function}", shape)


def check_broadcast(function: str, argument: str, shape: Shape, wanted: Shape) -> None:
    """Check that an argument can be broadcast.

    Raises:
        ValueError: its shape does not fit.
    """
    aligned = wanted[max(len(wanted) - len(shape), 0) :]
    if len(shape) > len(wanted) or any(
        n not in (1, m) for n, m in zip(shape, aligned, strict=True)
    ):
        raise ShapeError(
            f"random.{function}: {argument} of shape {shape} cannot be broadcast to shape {wanted}"
        )


def dtype_argument(function: str, dtype: Any, default: str, kinds: str, wanted: str) -> Any:
    """The canonical form of a requested dtype.

    Args:
        function: name of the user's function.
        dtype: the requested dtype, or None.
        default: the kind of the default dtype: f, i or u.
        kinds: the kinds allowed.
        wanted: their name in messages.

    Raises:
        ValueError: it is not of an allowed kind.
    """
    if dtype is None:
        return dtypes.default_dtype(default)
    canonical = dtypes.check_user_dtype(dtype, f"random.{function}")
    if (dtypes.kind_of(canonical) or "?") not in kinds:
        raise ValueError(f"random.{function}: dtype must be {wanted}, got {canonical}")
    return canonical


def float_argument(function: str, dtype: Any) -> Any:
    """The canonical form of a requested float dtype."""
    return dtype_argument(function, dtype, "f", "f", "a float dtype")


def converted(x: Any, dtype: Any) -> Any:
    """An operand in a dtype; a host scalar first takes the dtype it would have as an array."""
    if type(x) is Literal:
        with np.errstate(over="ignore"):
            return make_literal(np.asarray(x.val, x.aval.dtype).astype(dtype), dtype)
    return convert_element_type(x, dtype)
