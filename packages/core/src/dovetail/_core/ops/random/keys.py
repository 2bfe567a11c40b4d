"""Typed random keys: their dtypes, their implementations, and the primitives on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.records import record
from dovetail._core.base.registrations import importing, is_imported_again
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.families import NoGradient
from dovetail._core.basis.structural import batch_size, move_dimension, reshape
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval, shape_of
from dovetail._core.ops.random import rbg, threefry, threefry_reference
from dovetail._core.ops.random.counter_arithmetic import OnArrays, OnNumpy
from dovetail._core.ops.random.counter_generators import Philox2x32, Philox4x32, Threefry4x32
from dovetail._core.ops.special.error_functions import ErfInv
from dovetail._core.trace.divisions import Labels, first_alike
from dovetail._core.trace.primitive import KeyUse
from dovetail._core.transform.batch import batch_flat, place_batch
from dovetail._core.transform.key_reuse import holds_keys

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Shape = tuple[int, ...]
BIT_WIDTHS: Final = (8, 16, 32, 64)


class KeyFunctions(Protocol):
    """A random generator, as functions of raw keys: numeric arrays of one shape and dtype."""

    def seed(self, value: Any, /) -> Any:
        """The raw key for an integer seed."""

    def split(self, key: Any, shape: Shape, /) -> Any:
        """Raw keys of the requested shape, derived from one."""

    def fold_in(self, key: Any, data: Any, /) -> Any:
        """The raw key derived from one and a uint32 scalar."""

    def random_bits(self, key: Any, bit_width: int, shape: Shape, /) -> Any:
        """Unsigned integers of 8, 16, 32 or 64 bits, made from a raw key."""


@record
class KeyImplementation:
    """A random generator.

    Attributes:
        name: its full name, such as ``"threefry2x32"``.
        tag: its short name, shown in dtypes such as ``key<fry>``.
        key_shape: the shape of a raw key, of dtype uint32.
        functions: the generator, in terms of primitives.
        reference: the same functions on NumPy arrays, for tests.
    """

    name: str
    tag: str
    key_shape: Shape
    functions: KeyFunctions
    reference: KeyFunctions

    def __repr__(self) -> str:
        return self.tag

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        # Compiled programs are cached by key implementation, so two with one name must not be
        # confused.
        return self is other

    def __reduce__(self) -> tuple[Any, ...]:
        return (implementation_of, (self.name,))


class KeyDType(dtypes.ExtendedDType):
    """The dtype of random keys of one implementation.

    Args:
        implementation: the generator.
    """

    type = dtypes.prng_key
    elements = "random keys"
    advice = "dovetail.random.key_data(keys) gives the numbers that they are made of"

    def __init__(self, implementation: KeyImplementation) -> None:
        self.implementation = implementation
        self.name = f"key<{implementation.tag}>"

    def physical(self, shape: Shape) -> tuple[Shape, np.dtype[Any]]:
        return (*shape, *self.implementation.key_shape), np.dtype(np.uint32)

    def of_physical(self, numbers: Any) -> Any:
        return random_wrap_p.bind(numbers, impl=self.implementation)

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype that references use for keys: one field with the raw key."""
        return np.dtype([(self.implementation.name, np.uint32, self.implementation.key_shape)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDType) and self.implementation is other.implementation

    def __hash__(self) -> int:
        return hash(self.implementation.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return (key_dtype, (self.implementation.name,))


_implementations: Final[dict[str, KeyImplementation]] = {}
_origins: Final[dict[str, Any]] = {}
_dtypes: Final[dict[str, KeyDType]] = {}


def define_implementation(implementation: KeyImplementation) -> KeyImplementation:
    """Register a key implementation under its name.

    Raises:
        ValueError: the name is already taken.
    """
    name, origin = implementation.name, importing()
    if name in _implementations and not is_imported_again(_origins[name], origin):
        raise ValueError(f"a key implementation named {implementation.name!r} exists already")
    _dtypes[name], _origins[name] = KeyDType(implementation), origin
    _implementations[name] = implementation
    return implementation


def implementation_of(spec: Any) -> KeyImplementation:
    """The key implementation denoted by a name, a dtype or an implementation.

    Raises:
        ValueError: there is none with that name.
        TypeError: `spec` is none of these.
    """
    if isinstance(spec, KeyImplementation):
        return spec
    if isinstance(spec, KeyDType):
        return spec.implementation
    if isinstance(spec, str):
        if spec not in _implementations:
            names = ", ".join(map(repr, sorted(_implementations)))
            raise ValueError(f"there is no random key implementation {spec!r}; there are {names}")
        return _implementations[spec]
    raise TypeError(f"a random key implementation is given by its name, got {spec!r}")


def implementation_names() -> frozenset[str]:
    """The names of all key implementations."""
    return frozenset(_implementations)


def key_dtype(spec: Any) -> KeyDType:
    """The dtype of keys of an implementation."""
    return _dtypes[implementation_of(spec).name]


threefry_implementation: Final = define_implementation(
    KeyImplementation(
        name="threefry2x32",
        tag="fry",
        key_shape=(2,),
        functions=threefry,
        reference=threefry_reference,
    )
)
rbg_implementation: Final = define_implementation(
    KeyImplementation(
        name="rbg",
        tag="rbg",
        key_shape=(4,),
        functions=rbg.Rbg(),
        reference=rbg.RbgReference(),
    )
)
unsafe_rbg_implementation: Final = define_implementation(
    KeyImplementation(
        name="unsafe_rbg",
        tag="urbg",
        key_shape=(4,),
        functions=rbg.UnsafeRbg(),
        reference=rbg.UnsafeRbgReference(),
    )
)

for _name, _tag, _generator in (
    ("threefry4x32", "fry4", Threefry4x32),
    ("philox2x32", "phx2", Philox2x32),
    ("philox4x32", "phx4", Philox4x32),
):
    define_implementation(
        KeyImplementation(
            name=_name,
            tag=_tag,
            key_shape=(_generator.key_size,),
            functions=_generator(OnArrays()),
            reference=_generator(OnNumpy()),
        )
    )


def keys_of_numpy(array: Any) -> KeyDType | None:
    """The key dtype of a NumPy array of keys (see `KeyDType.numpy`); None for any other."""
    names = array.dtype.names
    return _dtypes.get(names[0]) if names and len(names) == 1 else None


def _raw_of_numpy(keys: Any) -> tuple[Any, KeyImplementation]:
    """The raw keys in a NumPy array of keys, and the functions on them."""
    dtype = keys_of_numpy(keys)
    assert dtype is not None
    return keys[keys.dtype.names[0]], dtype.implementation


def _numpy_of_raw(raw: Any, impl: KeyImplementation) -> Any:
    """NumPy's array of keys for raw keys."""
    raw = np.asarray(raw, np.uint32)
    keys = np.empty(raw.shape[: raw.ndim - len(impl.key_shape)], _dtypes[impl.name].numpy)
    keys[impl.name] = raw
    return keys


def _each(function: Callable[..., Any], arrays: Sequence[Any], shape: Shape, out: Any) -> Any:
    """Write `function` of each element to `out`, for arrays with leading dimensions `shape`."""
    for place in np.ndindex(*shape):
        out[place] = function(*(x[place] for x in arrays))
    return out


def _check_keys(name: str, aval: Any) -> KeyImplementation:
    if not isinstance(aval.dtype, KeyDType):
        raise TypeError(
            f"{name} takes random keys, got an array of type {aval.short_name()}; make keys with "
            "random.key(seed), or from raw ones with random.wrap_key_data"
        )
    return aval.dtype.implementation


def _over_batch(
    function: Callable[..., Any], arrays: Sequence[Any], shape: Shape, inner: Sequence[Shape]
) -> Any:
    """Apply a function of single elements to arrays with leading dimensions `shape`, in one go."""
    if not shape:
        return function(*arrays)
    size = prod(shape)
    flat = [reshape(x, (size, *rest)) for x, rest in zip(arrays, inner, strict=True)]
    (out,), (dim,) = batch_flat(lambda *xs: [function(*xs)], flat, [0] * len(flat), size)
    out = place_batch(out, dim, size, 0)
    return reshape(out, (*shape, *shape_of(out)[1:]))


class KeyPrimitive(NoGradient):
    """A primitive on keys, lowered through functions of raw keys."""

    key_use: ClassVar[KeyUse] = "derives"

    def raw(self, *args: Any, avals: Sequence[Any], **params: Any) -> Any:
        """The result on raw keys, in terms of other primitives; `avals` are those of the keys."""
        self._missing("lower")

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return first_alike(avals, results)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        return self.bind(move_dimension(x, d, 0), **params), 0

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        avals = context.avals_in

        def function(*raw: Any) -> Any:
            return self.raw(*raw, avals=avals, **params)

        return context.lower_function(function, [context.physical(a) for a in avals])(*values)


class RandomSeed(KeyPrimitive):
    """Keys made from integers."""

    name = "random_seed"

    def abstract(self, seeds: Any, *, impl: KeyImplementation) -> Any:
        if dtypes.kind_of(seeds.dtype) not in ("i", "u"):
            raise TypeError(f"{self.name} takes integers, got {seeds.short_name()}")
        return make_aval(seeds.shape, _dtypes[impl.name])

    def reference(self, seeds: Any, *, impl: KeyImplementation) -> Any:
        raw = np.empty((*seeds.shape, *impl.key_shape), np.uint32)
        return _numpy_of_raw(_each(impl.reference.seed, [seeds], seeds.shape, raw), impl)

    def raw(self, seeds: Any, *, avals: Any, impl: KeyImplementation) -> Any:
        return _over_batch(impl.functions.seed, [seeds], avals[0].shape, [()])


random_seed_p: Final = RandomSeed()


class RandomWrap(KeyPrimitive):
    """Keys made from raw keys."""

    name = "random_wrap"
    keeps_elements = True

    def abstract(self, raw: Any, *, impl: KeyImplementation) -> Any:
        rank = len(impl.key_shape)
        if raw.dtype != np.uint32 or raw.shape[len(raw.shape) - rank :] != impl.key_shape:
            raise TypeError(
                f"{self.name}: raw keys of {impl.name} are arrays of uint32 whose shape ends with "
                f"{impl.key_shape}, got {raw.short_name()}"
            )
        return make_aval(raw.shape[: raw.ndim - rank], _dtypes[impl.name])

    def reference(self, raw: Any, *, impl: KeyImplementation) -> Any:
        return _numpy_of_raw(raw, impl)

    def raw(self, raw: Any, *, avals: Any, impl: KeyImplementation) -> Any:
        return raw


random_wrap_p: Final = RandomWrap()


class RandomUnwrap(KeyPrimitive):
    """The raw keys of keys."""

    name = "random_unwrap"
    keeps_elements = True

    def abstract(self, keys: Any) -> Any:
        _check_keys(self.name, keys)
        return make_aval(*keys.dtype.physical(keys.shape))

    def reference(self, keys: Any) -> Any:
        return _raw_of_numpy(keys)[0]

    def raw(self, keys: Any, *, avals: Any) -> Any:
        return keys


random_unwrap_p: Final = RandomUnwrap()


class RandomClone(KeyPrimitive):
    """The same keys, which the option `debug_key_reuse` takes for others.

    With `alternative`, what uses them uses the keys themselves, but no alternative of those: for
    programs that all run, and of which one counts.
    """

    name = "random_clone"
    keeps_elements = True

    def abstract(self, keys: Any, *, alternative: bool) -> Any:
        _check_keys(self.name, keys)
        return keys

    def reference(self, keys: Any, *, alternative: bool) -> Any:
        return keys

    def raw(self, keys: Any, *, avals: Any, alternative: bool) -> Any:
        return keys

    def follow_keys(self, tracker: Any, *operands: Any, **params: Any) -> Any:
        (numbers,) = operands
        known = params["alternative"] and numbers is not None
        return [tracker.alternatives(numbers) if known else None]


random_clone_p: Final = RandomClone()


class RandomSplit(KeyPrimitive):
    """Several keys made from each key."""

    name = "random_split"
    key_use = "consumes"

    def abstract(self, keys: Any, *, shape: Shape) -> Any:
        _check_keys(self.name, keys)
        return make_aval((*keys.shape, *shape), keys.dtype)

    def reference(self, keys: Any, *, shape: Shape) -> Any:
        raw, impl = _raw_of_numpy(keys)
        out = np.empty((*keys.shape, *shape, *impl.key_shape), np.uint32)
        split = _each(lambda key: impl.reference.split(key, shape), [raw], keys.shape, out)
        return _numpy_of_raw(split, impl)

    def raw(self, keys: Any, *, avals: Any, shape: Shape) -> Any:
        impl = avals[0].dtype.implementation
        return _over_batch(
            lambda key: impl.functions.split(key, shape), [keys], avals[0].shape, [impl.key_shape]
        )


random_split_p: Final = RandomSplit()


class RandomFoldIn(KeyPrimitive):
    """Keys made from keys and integers, elementwise."""

    name = "random_fold_in"

    def abstract(self, keys: Any, data: Any) -> Any:
        _check_keys(self.name, keys)
        if data.dtype != np.uint32:
            raise TypeError(f"{self.name} takes data of dtype uint32, got {dtype_name(data.dtype)}")
        if keys.shape != data.shape:
            raise TypeError(
                f"{self.name} takes keys and data of one shape, got {keys.shape} and {data.shape}"
            )
        return keys

    def reference(self, keys: Any, data: Any) -> Any:
        raw, impl = _raw_of_numpy(keys)
        out = np.empty(raw.shape, np.uint32)
        return _numpy_of_raw(_each(impl.reference.fold_in, [raw, data], data.shape, out), impl)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        placed = [place_batch(a, d, size, 0) for a, d in zip(args, dims, strict=True)]
        return self.bind(*placed), 0

    def raw(self, keys: Any, data: Any, *, avals: Any) -> Any:
        impl = avals[0].dtype.implementation
        return _over_batch(
            impl.functions.fold_in, [keys, data], avals[0].shape, [impl.key_shape, ()]
        )


random_fold_in_p: Final = RandomFoldIn()


class RandomBits(KeyPrimitive):
    """Unsigned integers of uniformly random bits, one array for each key."""

    name = "random_bits"
    key_use = "consumes"

    def abstract(self, keys: Any, *, bit_width: int, shape: Shape) -> Any:
        _check_keys(self.name, keys)
        if bit_width not in BIT_WIDTHS:
            raise TypeError(f"{self.name} makes integers of 8, 16, 32 or 64 bits, not {bit_width}")
        return make_aval((*keys.shape, *shape), np.dtype(f"uint{bit_width}"))

    def reference(self, keys: Any, *, bit_width: int, shape: Shape) -> Any:
        raw, impl = _raw_of_numpy(keys)
        out = np.empty((*keys.shape, *shape), f"uint{bit_width}")
        return _each(
            lambda key: impl.reference.random_bits(key, bit_width, shape), [raw], keys.shape, out
        )

    def raw(self, keys: Any, *, avals: Any, bit_width: int, shape: Shape) -> Any:
        impl = avals[0].dtype.implementation
        return _over_batch(
            lambda key: impl.functions.random_bits(key, bit_width, shape),
            [keys],
            avals[0].shape,
            [impl.key_shape],
        )


random_bits_p: Final = RandomBits()


class ErfInvFast(ErfInv):
    """The inverse error function, as computed by a backend's StableHLO operation.

    It loses up to half of the digits in the tails, which does no harm to normal random numbers.
    They use it because it is faster, and because the published streams do.
    """

    name = "erf_inv_fast"

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        return context.op(self.hlo, values, out)


erf_inv_fast_p: Final = ErfInvFast()


# Behind the public functions; the arguments are already canonical.


def is_key(x: Any) -> bool:
    """Whether a value is an array of typed keys."""
    aval = getattr(x, "aval", None)
    return isinstance(aval, ShapedArray) and isinstance(aval.dtype, KeyDType)


def wrap(raw: Any, impl: KeyImplementation) -> Any:
    """Typed keys from raw keys."""
    return random_wrap_p.bind(raw, impl=impl)


def unwrap(keys: Any) -> Any:
    """The raw keys of typed keys."""
    return random_unwrap_p.bind(keys)


def clone(x: Any, alternative: bool = False) -> Any:
    """For keys, the same ones as keys of their own (see `RandomClone`); any other value itself."""
    if not holds_keys(aval_of(x)):
        return x
    return random_clone_p.bind(x, alternative=alternative)


def seed(value: Any, impl: KeyImplementation) -> Any:
    """Keys from integers."""
    return random_seed_p.bind(value, impl=impl)


def split(keys: Any, shape: Shape) -> Any:
    """Keys derived from each key."""
    return random_split_p.bind(keys, shape=shape)


def fold_in(keys: Any, data: Any) -> Any:
    """Keys derived from keys and uint32 numbers, elementwise."""
    return random_fold_in_p.bind(keys, data)


def random_bits(keys: Any, bit_width: int, shape: Shape) -> Any:
    """Unsigned integers, one array for each key."""
    return random_bits_p.bind(keys, bit_width=bit_width, shape=shape)
