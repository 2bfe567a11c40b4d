"""The random generators of a backend: `rng_bit_generator` with explicit state, `rng_uniform`
without."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import ShapeError
from dovetail._core.base.typing import Array, ArrayLike, DTypeLike, ShapeLike, Sharding
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.families import NoGradient
from dovetail._core.basis.operands import as_operand, equal_dtypes
from dovetail._core.basis.structural import move_dimension, reshape
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ops.calls.out_sharding import placed
from dovetail._core.ops.elementwise.conversion import bitcast_convert_type_p
from dovetail._core.ops.random import bit_generator_reference, philox
from dovetail._core.ops.shape.dimensions import canonical_shape
from dovetail._core.trace.divisions import Labels
from dovetail._core.trace.primitive import Primitive

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Shape = tuple[int, ...]
_UINT32: Final = np.dtype(np.uint32)
_UINT64: Final = np.dtype(np.uint64)


class RandomAlgorithm(enum.IntEnum):
    """The generators of `rng_bit_generator`.

    `RNG_DEFAULT` is the fastest on each backend; on CPUs it is Philox.

    Example:
        >>> from dovetail import lax
        >>> print(lax.RandomAlgorithm.RNG_PHILOX)
        RNG_PHILOX
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


class RngBitGenerator(NoGradient):
    """Random bits from a backend's generator, and its next state."""

    name = "rng_bit_generator"
    multiple_results = True

    def abstract(
        self,
        key: Any,
        *,
        shape: Shape,
        dtype: Any,
        algorithm: RandomAlgorithm,
        out_sharding: Any = None,
    ) -> Any:
        if (key.shape, key.dtype) not in (((4,), _UINT32), ((2,), _UINT64)):
            raise TypeError(
                f"{self.name} takes as its key an array of 4 uint32 or of 2 uint64, got "
                f"{key.short_name()}"
            )
        if dtypes.kind_of(dtype) != "u" or dtype.itemsize not in (1, 2, 4, 8):
            raise TypeError(
                f"{self.name}: unsupported dtype {dtype_name(dtype)}: it must be uint8, uint16, "
                "uint32 or uint64"
            )
        return [key.strengthen(), make_aval(shape, dtype)]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        own = [[None] * a.ndim for a in (*avals, *results)]
        return Labels(own[:1], own[1:], why="computes with all of")

    def reference(
        self, key: Any, *, shape: Shape, dtype: Any, algorithm: RandomAlgorithm, **params: Any
    ) -> Any:
        threefry = algorithm is RandomAlgorithm.RNG_THREE_FRY
        words = np.ascontiguousarray(key, key.dtype.newbyteorder("<")).view("<u4")
        state, bits = bit_generator_reference.generate(words, shape, dtype, threefry)
        return [state.astype("<u4").view(key.dtype), bits]

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        shape: Shape,
        dtype: Any,
        algorithm: RandomAlgorithm,
        out_sharding: Any = None,
    ) -> tuple[Any, Any]:
        # A backend's generator takes a single state. Batches use other primitives, which give the
        # same bits as the two algorithms do for each state; any other default differs.
        (key,), (d,) = args, dims
        assert d is not None
        key = move_dimension(key, d, 0)
        key_dtype, count = aval_of(key).dtype, shape_of(key)[0]
        words = key
        if key_dtype == _UINT64:
            words = reshape(bitcast_convert_type_p.bind(key, new_dtype=_UINT32), (count, 4))
        threefry = algorithm is RandomAlgorithm.RNG_THREE_FRY
        state, bits = philox.generate(words, shape, dtype, threefry)
        if key_dtype == _UINT64:
            state = bitcast_convert_type_p.bind(reshape(state, (count, 2, 2)), new_dtype=_UINT64)
        return [state, bits], [0, 0]

    def lower(
        self,
        context: Builder,
        key: Any,
        *,
        shape: Shape,
        dtype: Any,
        algorithm: RandomAlgorithm,
        out_sharding: Any = None,
    ) -> Any:
        (key_aval,), (_, out) = context.avals_in, context.avals_out
        state = make_aval((2,), _UINT64)
        pairs = make_aval((2, 2), _UINT32)
        if key_aval.dtype == _UINT32:
            key = context.bitcast_convert(context.reshape(key, pairs), state)
        name = algorithm.name.removeprefix("RNG_")
        state_after, bits = context.ops(
            "rng_bit_generator",
            [key],
            [state, out],
            {"rng_algorithm": context.rng_algorithm(name)},
        )
        if key_aval.dtype == _UINT32:
            state_after = context.reshape(context.bitcast_convert(state_after, pairs), key_aval)
        return [state_after, bits]


rng_bit_generator_p: Final = RngBitGenerator()


class RngUniform(Primitive):
    """Random numbers from a generator whose state is hidden in the backend."""

    name = "rng_uniform"
    no_derivative = "it gives other numbers each time"

    def abstract(self, low: Any, high: Any, *, shape: Shape) -> Any:
        if low.ndim or high.ndim:
            raise ShapeError(
                f"{self.name}: bounds must be scalars, got shapes {low.shape} and {high.shape}"
            )
        if low.dtype != high.dtype:
            raise TypeError(
                f"{self.name}: bounds must have one dtype, got {dtype_name(low.dtype)} and "
                f"{dtype_name(high.dtype)}"
            )
        kind, bits = dtypes.kind_of(low.dtype), dtypes.itemsize_bits(low.dtype)
        if kind not in ("i", "u", "f") or bits < 8 or (kind == "f" and bits < 16):
            raise TypeError(f"{self.name} does not make numbers of dtype {dtype_name(low.dtype)}")
        return make_aval(shape, low.dtype, low.weak_type and high.weak_type)

    def reference(self, low: Any, high: Any, *, shape: Shape) -> Any:
        generator, dtype = np.random.default_rng(), np.asarray(low).dtype
        if dtypes.kind_of(dtype) != "f":
            return generator.integers(int(low), int(high), shape, dtype)
        numbers = generator.uniform(float(low), float(high), shape).astype(dtype)
        # A number just below the bound may round to it.
        return np.asarray(np.where(numbers < high, numbers, low))

    def lower(self, context: Builder, low: Any, high: Any, *, shape: Shape) -> Any:
        (scalar, _), (out,) = context.avals_in, context.avals_out
        drawn = out
        if dtypes.kind_of(out.dtype) != "f" and out.dtype.itemsize < 4:
            # XLA crashes when asked for integers of few bits.
            drawn = out.update(dtype=np.dtype(np.int32))
        bound = make_aval((), drawn.dtype)
        low, high = (context.convert(x, make_aval((), scalar.dtype), bound) for x in (low, high))
        sizes = context.constant(np.asarray(shape, np.int64))
        numbers = context.op(
            "rng",
            [low, high, sizes],
            drawn,
            {"rng_distribution": context.rng_distribution("UNIFORM")},
        )
        return context.convert(numbers, drawn, out)


rng_uniform_p: Final = RngUniform()


# Public functions


def rng_bit_generator(
    key: ArrayLike,
    shape: ShapeLike,
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Sharding | None = None,
) -> tuple[Array, Array]:
    """Random bits from a backend's own generator.

    The same key gives the same bits on one kind of backend. With `RNG_DEFAULT`, they may differ
    between backends. `dovetail.random` gives the same numbers everywhere.

    Args:
        key: the state of the generator, an array of 4 uint32 or of 2 uint64. The first half is the
            key, which should be random; the second half is the counter.
        shape: shape of the bits.
        dtype: uint8, uint16, uint32 or uint64.
        algorithm: which generator to use.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        The next state, like `key`, and an array of that shape and dtype.

    Raises:
        TypeError: `key` or `dtype` is not one of these, or `shape` is not a shape.
        ValueError: the algorithm is unknown.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> key = np.array([0, 0, 0, 0], np.uint32)
        >>> key, bits = lax.rng_bit_generator(key, (2,), algorithm=lax.RandomAlgorithm.RNG_PHILOX)
        >>> bits.tolist(), key.tolist()
        ([1713891541, 3781805453], [0, 0, 1, 0])
    """
    new_key, bits = rng_bit_generator_p.bind(
        as_operand(key, "lax.rng_bit_generator", "key"),
        algorithm=_algorithm(algorithm),
        dtype=dtypes.check_user_dtype(dtype, "lax.rng_bit_generator"),
        out_sharding=None,
        shape=canonical_shape(shape, "rng_bit_generator"),
    )
    return new_key, placed("lax.rng_bit_generator", bits, out_sharding)


def _algorithm(algorithm: Any) -> RandomAlgorithm:
    try:
        return RandomAlgorithm(algorithm)
    except ValueError:
        names = ", ".join(map(str, RandomAlgorithm))
        raise ValueError(
            f"lax.rng_bit_generator: algorithm must be a lax.RandomAlgorithm ({names}), got "
            f"{algorithm!r}"
        ) from None


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Random numbers from a generator whose state is hidden in the backend: different each time.

    Use `dovetail.random.uniform` instead. It gives the same numbers for the same key, and can be
    transformed.

    Args:
        a: lower bound, a scalar of integers or floats.
        b: upper bound, a scalar of the same dtype.
        shape: shape of the result.

    Returns:
        An array of that shape and of the dtype of the bounds: from `a` to below `b`. Its values are
        undefined unless `b` is above `a`.

    Raises:
        TypeError: a bound is not a scalar, their dtypes differ, or `shape` is not a shape.

    Example:
        >>> from dovetail import lax
        >>> x = lax.rng_uniform(2.0, 3.0, (10,))
        >>> bool((x >= 2.0).all() and (x <= 3.0).all())
        True
    """
    low, high = equal_dtypes("rng_uniform", a, b)
    return rng_uniform_p.bind(low, high, shape=canonical_shape(shape, "rng_uniform"))
