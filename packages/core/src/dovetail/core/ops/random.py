"""Typed random keys: their dtypes, their implementations, and the primitives on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.core.base import dtypes
from dovetail.core.basis.families import NoGradient
from dovetail.core.basis.structural import move_dimension, reshape
from dovetail.core.ir.avals import ShapedArray, make_aval, shape_of
from dovetail.core.ops import threefry
from dovetail.core.transform.batch import batch_flat, place_batch

if TYPE_CHECKING:
    from dovetail.core.hlo.builder import Builder

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KeyImplementation:
    """A random generator, in functions of raw keys.

    Attributes:
        name: its full name, such as ``"threefry2x32"``.
        tag: its short name, shown in dtypes such as ``key<fry>``.
        key_shape: the shape of a raw key, of dtype uint32.
        seed: an integer scalar to a raw key.
        split: a raw key and a shape to raw keys of that shape.
        random_bits: a raw key, a bit width and a shape to unsigned integers.
        fold_in: a raw key and a uint32 scalar to a raw key.
    """

    name: str
    tag: str
    key_shape: Shape
    seed: Callable[[Any], Any]
    split: Callable[[Any, Shape], Any]
    random_bits: Callable[[Any, int, Shape], Any]
    fold_in: Callable[[Any, Any], Any]

    def __repr__(self) -> str:
        return self.tag


class KeyDType(dtypes.ExtendedDType):
    """The dtype of random keys of one implementation.

    Args:
        implementation: the generator.
    """

    type = dtypes.prng_key

    def __init__(self, implementation: KeyImplementation) -> None:
        self.implementation = implementation
        self.name = f"key<{implementation.tag}>"

    def physical(self, shape: Shape) -> tuple[Shape, np.dtype[Any]]:
        return (*shape, *self.implementation.key_shape), np.dtype(np.uint32)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDType) and self.implementation == other.implementation

    def __hash__(self) -> int:
        return hash(self.implementation.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (key_dtype, (self.implementation.name,))


_implementations: Final[dict[str, KeyImplementation]] = {}
_dtypes: Final[dict[str, KeyDType]] = {}


def define_implementation(implementation: KeyImplementation) -> KeyImplementation:
    """Make a key implementation known by its name.

    Raises:
        ValueError: there is one of that name.
    """
    if implementation.name in _implementations:
        raise ValueError(f"a key implementation named {implementation.name!r} exists already")
    _implementations[implementation.name] = implementation
    _dtypes[implementation.name] = KeyDType(implementation)
    return implementation


def implementation_of(spec: Any) -> KeyImplementation:
    """The key implementation that a name, a dtype or an implementation means.

    Raises:
        ValueError: there is none of that name.
        TypeError: `spec` is none of these.
    """
    if isinstance(spec, KeyImplementation):
        return spec
    if isinstance(spec, KeyDType):
        return spec.implementation
    if isinstance(spec, str):
        if spec not in _implementations:
            known = ", ".join(map(repr, sorted(_implementations)))
            raise ValueError(f"there is no random key implementation {spec!r}; there are {known}")
        return _implementations[spec]
    raise TypeError(f"a random key implementation is given by its name, got {spec!r}")


def key_dtype(spec: Any) -> KeyDType:
    """The dtype of keys of an implementation."""
    return _dtypes[implementation_of(spec).name]


threefry_implementation: Final = define_implementation(
    KeyImplementation(
        name="threefry2x32",
        tag="fry",
        key_shape=(2,),
        seed=threefry.seed,
        split=threefry.split,
        random_bits=threefry.random_bits,
        fold_in=threefry.fold_in,
    )
)


def _check_keys(name: str, aval: Any) -> KeyImplementation:
    if not isinstance(aval.dtype, KeyDType):
        raise TypeError(
            f"{name} takes random keys, got an array of type {aval.short_name()}; make keys with "
            "random.key(seed), or random.wrap_key_data for raw ones"
        )
    return aval.dtype.implementation


def _over_batch(
    function: Callable[..., Any], arrays: Sequence[Any], shape: Shape, inner: Sequence[Shape]
) -> Any:
    """Apply a function of single elements to arrays of leading `shape`, in one go."""
    if not shape:
        return function(*arrays)
    size = prod(shape)
    flat = [reshape(x, (size, *rest)) for x, rest in zip(arrays, inner, strict=True)]
    (out,), (dim,) = batch_flat(lambda *xs: [function(*xs)], flat, [0] * len(flat), size)
    out = place_batch(out, dim, size, 0)
    return reshape(out, (*shape, *shape_of(out)[1:]))


class _KeyPrimitive(NoGradient):
    """A primitive on keys, lowered through functions of raw keys."""

    def raw(self, *args: Any, avals: Sequence[Any], **params: Any) -> Any:
        """The result on raw keys, in terms of other primitives."""
        self._missing("lower")

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        avals = context.avals_in

        def function(*raw: Any) -> Any:
            return self.raw(*raw, avals=avals, **params)

        return context.lower_function(function, [context.physical(a) for a in avals])(*values)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        moved = [
            x if d is None else move_dimension(x, d, 0) for x, d in zip(args, dims, strict=True)
        ]
        return self.bind(*moved, **params), 0


class RandomSeed(_KeyPrimitive):
    """Keys made from integers."""

    name = "random_seed"

    def abstract(self, seeds: Any, *, impl: KeyImplementation) -> Any:
        return make_aval(seeds.shape, key_dtype(impl))

    def raw(self, seeds: Any, *, avals: Any, impl: KeyImplementation) -> Any:
        shape = avals[0].shape
        return _over_batch(impl.seed, [seeds], shape, [()])


random_seed_p: Final = RandomSeed()


class RandomWrap(_KeyPrimitive):
    """Keys made from raw keys."""

    name = "random_wrap"

    def abstract(self, raw: Any, *, impl: KeyImplementation) -> Any:
        rank = len(impl.key_shape)
        if raw.dtype != np.uint32 or raw.shape[len(raw.shape) - rank :] != impl.key_shape:
            raise TypeError(
                f"raw keys of {impl.name} are arrays of uint32 whose shape ends with {impl.key_shape}, got "
                f"{raw.short_name()}"
            )
        return make_aval(raw.shape[: raw.ndim - rank], key_dtype(impl))

    def raw(self, raw: Any, *, avals: Any, impl: KeyImplementation) -> Any:
        return raw


random_wrap_p: Final = RandomWrap()


class RandomUnwrap(_KeyPrimitive):
    """The raw keys of keys."""

    name = "random_unwrap"

    def abstract(self, keys: Any) -> Any:
        _check_keys(self.name, keys)
        return make_aval(*keys.dtype.physical(keys.shape))

    def raw(self, keys: Any, *, avals: Any) -> Any:
        return keys


random_unwrap_p: Final = RandomUnwrap()


class RandomSplit(_KeyPrimitive):
    """Several keys made from each key."""

    name = "random_split"

    def abstract(self, keys: Any, *, shape: Shape) -> Any:
        _check_keys(self.name, keys)
        return keys.update(shape=(*keys.shape, *shape))

    def raw(self, keys: Any, *, avals: Any, shape: Shape) -> Any:
        impl = avals[0].dtype.implementation
        return _over_batch(
            lambda key: impl.split(key, shape), [keys], avals[0].shape, [impl.key_shape]
        )


random_split_p: Final = RandomSplit()


class RandomFoldIn(_KeyPrimitive):
    """Keys made from keys and integers, elementwise."""

    name = "random_fold_in"

    def abstract(self, keys: Any, data: Any) -> Any:
        _check_keys(self.name, keys)
        if data.dtype != np.uint32:
            raise TypeError(f"random_fold_in takes data of dtype uint32, got {data.dtype}")
        if keys.shape != data.shape:
            raise TypeError(
                f"random_fold_in takes keys and data of one shape, got {keys.shape} and {data.shape}"
            )
        return keys

    def raw(self, keys: Any, data: Any, *, avals: Any) -> Any:
        impl = avals[0].dtype.implementation
        return _over_batch(impl.fold_in, [keys, data], avals[0].shape, [impl.key_shape, ()])

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        size = next(shape_of(a)[d] for a, d in zip(args, dims, strict=True) if d is not None)
        placed = [place_batch(a, d, size, 0) for a, d in zip(args, dims, strict=True)]
        return self.bind(*placed), 0


random_fold_in_p: Final = RandomFoldIn()


class RandomBits(_KeyPrimitive):
    """Unsigned integers of uniformly random bits, an array of them for each key."""

    name = "random_bits"

    def abstract(self, keys: Any, *, bit_width: int, shape: Shape) -> Any:
        _check_keys(self.name, keys)
        if bit_width not in (8, 16, 32, 64):
            raise TypeError(f"random_bits makes integers of 8, 16, 32 or 64 bits, not {bit_width}")
        return make_aval((*keys.shape, *shape), np.dtype(f"uint{bit_width}"))

    def raw(self, keys: Any, *, avals: Any, bit_width: int, shape: Shape) -> Any:
        impl = avals[0].dtype.implementation
        return _over_batch(
            lambda key: impl.random_bits(key, bit_width, shape),
            [keys],
            avals[0].shape,
            [impl.key_shape],
        )


random_bits_p: Final = RandomBits()


def is_key(x: Any) -> bool:
    """Whether a value is an array of typed keys."""
    aval = getattr(x, "aval", None)
    return isinstance(aval, ShapedArray) and isinstance(aval.dtype, KeyDType)


def wrap(raw: Any, spec: Any) -> Any:
    """Typed keys of raw ones."""
    return random_wrap_p.bind(raw, impl=implementation_of(spec))


def unwrap(keys: Any) -> Any:
    """Raw keys of typed ones."""
    return random_unwrap_p.bind(keys)
