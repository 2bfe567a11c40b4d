"""Random permutations and random choices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dovetail.errors import DTypeError
from dovetail.extend import dtypes, random_keys
from dovetail.extend.arguments import (
    array_like,
    canonical_axis,
    convert,
    counted,
    inexact,
    integer,
    literal,
    value,
    with_rank,
)
from dovetail.extend.avals import ArrayClass, aval_of
from dovetail.extend.dimensions import is_symbolic_dim
from dovetail.extend.unchecked import (
    convert_element_type,
    iota_like,
    make_literal,
    move_dimension,
    mul,
    reshape,
    slice_dimension,
)
from dovetail.lax import (
    add_p,
    argmax,
    bitwise_not,
    cumsum,
    fori_loop,
    gt,
    log_p,
    reduce_precision,
    sort_p,
    sub_p,
    top_k,
)
from dovetail.numpy.compiled import compiled_with, divided_program
from dovetail.numpy.gathering import take
from dovetail.numpy.searching import searchsorted
from dovetail.random.arguments import Shape, shape_argument, single_key, typed
from dovetail.random.continuous import gumbel_mode, gumbel_numbers
from dovetail.random.intervals import pair_of_keys, randint, unit_interval
from dovetail.typing import Array, ArrayLike, KeyLike, ShapeLike, Sharding

_LARGEST_WORD = 2**32 - 1
#: One of so many elements is found sooner than all are sorted.
_FEW_OF = 16


def _taken(x: Any, positions: Any, axis: int) -> Any:
    return take(x, positions, axis=axis, mode="promise_in_bounds")


def _array(function: str, argument: str, x: Any) -> Any:
    """An argument that must be an array, in the form that primitives take."""
    if not isinstance(x, (ArrayClass, np.ndarray)) and not hasattr(x, "__jax_array__"):
        raise TypeError(
            f"random.{function} takes an array as {argument}, got {type(x).__name__}; write "
            f"dovetail.numpy.asarray({argument}) first"
        )
    return array_like(x, f"random.{function}", argument)


# ------------------------------------------------------------------------------------- permutation


def permutation(
    key: KeyLike,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """An array, or the numbers below an integer, in random order.

    Args:
        key: a key, typed or raw.
        x: an array, or an integer, which stands for the numbers below it.
        axis: the dimension to permute.
        independent: whether to permute each vector along `axis` independently, rather than whole
            slices.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `key` is not a key, or `x` is neither an array with dimensions nor an integer.
        ValueError: `key` is an array of several keys, `x` is negative, or `axis` is out of bounds.

    Example:
        >>> from dovetail import random
        >>> random.permutation(random.key(0), 5).tolist()
        [0, 1, 4, 3, 2]
    """
    key = single_key("permutation", key)
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        size = int(x)
        if size < 0:
            raise ValueError(f"random.permutation: there are no numbers below {size}")
        canonical_axis("random.permutation", axis, 1)
        return divided_program("random.permutation", out_sharding, _permuted_numbers)(key, size)
    array = _array("permutation", "x", x)
    aval = aval_of(array)
    if not aval.ndim:
        if dtypes.kind_of(aval.dtype) not in ("i", "u"):
            raise TypeError(
                "random.permutation: x must be an integer or an array with dimensions, got "
                f"{aval.short_name()}"
            )
        number = integer("random.permutation", "x", x)
        return permutation(key, number, axis, out_sharding=out_sharding)
    axis = canonical_axis("random.permutation", axis, aval.ndim)
    return divided_program("random.permutation", out_sharding, _permutation)(
        key, x, axis, bool(independent)
    )


@compiled_with("size")
def _permuted_numbers(key: Any, size: Any) -> Any:
    return permuted_numbers(typed(key), size)


def permuted_numbers(key: Any, size: int) -> Any:
    """The numbers below `size` in random order."""
    return _shuffled(key, _numbers(size), 0)


def _numbers(size: int) -> Any:
    dtypes.check_holds(size - 1, dtypes.default_dtype("i"), "random.permutation")
    return iota_like(dtypes.default_dtype("i"), (size,), 0)


@compiled_with("axis", "independent")
def _permutation(key: Any, x: Any, axis: Any, independent: Any) -> Any:
    return permuted(typed(key), value(array_like(x, "random.permutation", "x")), axis, independent)


def permuted(key: Any, x: Any, axis: int, independent: bool = False) -> Any:
    """An array in random order along one dimension."""
    aval = aval_of(x)
    number = isinstance(aval.dtype, np.dtype)
    if (aval.ndim == 1 and number) or (independent and number):
        return _shuffled(key, x, axis)
    if not independent or aval.ndim == 1:
        return _taken(x, permuted_numbers(key, aval.shape[axis]), axis)
    # Values that cannot be sorted along with the words are gathered by their positions.
    flat = reshape(x, (aval.size,))
    count = iota_like(dtypes.default_dtype("i"), (aval.size,), 0)
    order = _shuffled(key, reshape(count, aval.shape), axis)
    return _taken(flat, order, 0)


def _shuffled(key: Any, x: Any, axis: int) -> Any:
    """Sort by random words, repeatedly, so that equal words hardly matter for long arrays."""
    aval = aval_of(x)
    if is_symbolic_dim(aval.size):
        return _shuffled_by_size(key, x, axis)
    for _ in range(_rounds(aval.size)):
        key, x = _sorted_by_words(key, x, axis)
    return x


def _first_shuffled(key: Any, x: Any, draws: int) -> Any:
    """The first of a shuffled vector: of the last order, only its first positions are found."""
    size = aval_of(x).size
    if is_symbolic_dim(size) or _FEW_OF * draws > size or not draws:
        return slice_dimension(_shuffled(key, x, 0), 0, draws, 0)
    for _ in range(_rounds(size) - 1):
        key, x = _sorted_by_words(key, x, 0)
    words = random_keys.random_bits(pair_of_keys(key)[1], 32, (size,))
    return _taken(x, top_k(bitwise_not(words), draws)[1], 0)


def _rounds(size: int) -> int:
    return math.ceil(3 * math.log(max(1, size)) / math.log(_LARGEST_WORD))


def _sorted_by_words(key: Any, x: Any, axis: int) -> tuple[Any, Any]:
    key, subkey = pair_of_keys(key)
    words = random_keys.random_bits(subkey, 32, aval_of(x).shape)
    _, x = sort_p.bind(words, x, dimension=axis, is_stable=True, num_keys=1)
    return key, x


def _shuffled_by_size(key: Any, x: Any, axis: int) -> Any:
    """The same where the number of rounds is known when the program is called."""
    # The largest sizes for one round, and for two; for one element there is none.
    size = value(literal(aval_of(x).size, dtypes.default_dtype("i")))
    most = [math.floor(math.exp(n * math.log(_LARGEST_WORD) / 3)) for n in range(3)]
    rounds = sum(convert(gt(size, literal(n, size.dtype)), size.dtype) for n in most)

    def turn(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        return _sorted_by_words(carry[0], carry[1], axis)

    return fori_loop(0, rounds, turn, (key, x))[1]


# ------------------------------------------------------------------------------------- categories


def categorical(
    key: KeyLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Random categories, with probabilities proportional to the exponentials of `logits`.

    Args:
        key: a key, typed or raw.
        logits: logarithms of the probabilities, up to a constant; an array of floats.
        axis: the dimension of the categories.
        shape: shape of the result: any dimensions, then those of `logits` without `axis` (or a
            shape that they broadcast to); only the latter if None.
        replace: whether a category can be drawn more than once for the same batch element.
        mode: "low" (the default), or "high" for a finer resolution of rare categories.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An integer array of that shape.

    Raises:
        TypeError: `key` is not a key, `logits` is not an array of floats, or `shape` is not a
            shape.
        ValueError: `key` is an array of several keys, `shape` does not match `logits`, there are
            fewer categories than draws without replacement, or `mode` is unknown.

    Example:
        >>> import numpy as np
        >>> from dovetail import random
        >>> logits = np.log(np.array([0.5, 0.25, 0.25], np.float32))
        >>> x = random.categorical(random.key(0), logits, shape=(1000,))
        >>> [400 < int((x == 0).sum()) < 600, 150 < int((x == 2).sum()) < 350]
        [True, True]
    """
    key = single_key("categorical", key)
    mode = gumbel_mode("categorical", mode)
    aval = aval_of(_array("categorical", "logits", logits))
    if dtypes.kind_of(aval.dtype) != "f":
        raise DTypeError(
            f"random.categorical: logits must be of a float dtype, got {aval.dtype}; for chances p "
            "write log(p)"
        )
    axis = canonical_axis("random.categorical", axis, aval.ndim)
    batch: Shape = aval.shape[:axis] + aval.shape[axis + 1 :]
    count = aval.shape[axis]
    if shape is None:
        shape = batch
    else:
        shape = shape_argument("categorical", shape)
        draws_shape = shape[len(shape) - len(batch) :]
        if len(shape) < len(batch) or any(
            n not in (1, m) for n, m in zip(batch, draws_shape, strict=True)
        ):
            raise ValueError(
                f"random.categorical: logits of shape {aval.shape} have the shape {batch} without "
                "their "
                f"axis {axis}, which cannot be broadcast to the last dimensions of shape {shape}"
            )
    draws = math.prod(shape[: len(shape) - len(batch)])
    if not count and math.prod(shape) > 0:
        raise ValueError(f"random.categorical: there are no categories in logits {aval.shape}")
    if not replace and draws > count:
        raise ValueError(
            f"random.categorical: {draws} draws without replacement cannot be made from {count} "
            "categories"
        )
    return divided_program("random.categorical", out_sharding, _categorical)(
        key, logits, axis, shape, bool(replace), mode
    )


@compiled_with("axis", "shape", "replace", "mode")
def _categorical(key: Any, logits: Any, axis: Any, shape: Any, replace: Any, mode: Any) -> Any:
    key, logits = typed(key), array_like(logits, "random.categorical", "logits")
    aval = aval_of(logits)
    extra = len(shape) - (aval.ndim - 1)
    prefix, batch = shape[:extra], shape[extra:]
    full = (*batch[:axis], aval.shape[axis], *batch[axis:])
    if replace:
        noise = gumbel_numbers(key, (*prefix, *full), aval.dtype, mode)
        scores = _sum(noise, with_rank(logits, aval.shape, len(shape) + 1))
        return argmax(scores, extra + axis, dtypes.default_dtype("i"))
    scores = _sum(logits, gumbel_numbers(key, full, aval.dtype, mode))
    positions = _largest(scores, math.prod(prefix), axis)
    return reshape(move_dimension(positions, len(batch), 0), shape)


def _sum(x: Any, y: Any) -> Any:
    """A sum rounded to its dtype: XLA may otherwise carry more digits than the dtype has."""
    total = add_p.bind(x, y)
    limits = dtypes.finfo(aval_of(total).dtype)
    if limits.bits >= 32:
        return total
    return reduce_precision(total, int(limits.nexp), int(limits.nmant))


def _largest(x: Any, count: int, axis: int) -> Any:
    """Positions of the largest elements along a dimension, which becomes the last."""
    last = len(aval_of(x).shape) - 1
    return top_k(move_dimension(x, axis, last), count)[1]


# ------------------------------------------------------------------------------------------ choice


def choice(
    key: KeyLike,
    a: ArrayLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements of an array, or random integers below a bound.

    Args:
        key: a key, typed or raw.
        a: an array, whose slices along `axis` are chosen, or an integer, which stands for the
            numbers below it.
        shape: shape of the choices.
        replace: whether an element can be chosen more than once.
        p: probabilities of the elements, a vector; equal ones if None.
        axis: the dimension of the elements.
        mode: how Gumbel numbers are drawn for choices with `p` and without replacement: "low" (the
            default) or "high".

    Returns:
        An array of shape `shape` if `a` is an integer; otherwise of the shape of `a`, with `shape`
        in place of `axis`.

    Raises:
        TypeError: `key` is not a key, `a` is neither an array nor an integer, or `shape` is not a
            shape.
        ValueError: `key` is an array of several keys, there are no elements, or too few to choose
            without replacement, `p` has the wrong size, or `axis` is out of bounds.

    Differs:
        Where nothing is drawn the result has the other dimensions of `a`, and its weak type, too.

        >>> dt.random.choice(dt.random.key(0), jnp.ones((4, 2)), (0,)).shape
        (0, 2)

        A boolean is no bound of integers.

        >>> dt.random.choice(dt.random.key(0), True)
        Traceback (most recent call last):
            ...
        TypeError: random.choice takes an array as a, got bool; ...

    Example:
        >>> from dovetail import random
        >>> random.choice(random.key(0), 5, (3,), replace=False).tolist()
        [0, 1, 4]
    """
    key = single_key("choice", key)
    shape = shape_argument("choice", shape)
    mode = gumbel_mode("choice", mode)
    source: Any
    if isinstance(a, (int, np.integer)) and not isinstance(a, bool):
        size, axis, source = int(a), 0, None
    else:
        a = _array("choice", "a", a)
        aval = aval_of(a)
        if aval.ndim:
            axis = canonical_axis("random.choice", axis, aval.ndim)
            size, source = aval.shape[axis], a
        else:
            size, axis, source = integer("random.choice", "a", a), 0, None
    default = dtypes.default_dtype("i")
    if size > dtypes.iinfo(default).max:
        raise OverflowError(
            f"random.choice: a is {size}, and the numbers below it do not fit {default}, "
            "the default integer type; give a smaller one"
        )
    draws = math.prod(shape)
    if draws and size <= 0:
        raise ValueError(
            "random.choice: there is nothing to choose from, "
            + (f"a is {size}" if source is None else f"a has shape {source.shape}")
        )
    if not replace and draws > max(size, 0):
        raise ValueError(
            f"random.choice: {draws} draws without replacement cannot be made from "
            f"{counted(size, 'element')}"
        )
    if p is not None:
        chances = aval_of(_array("choice", "p", p))
        if chances.shape != (size,) or dtypes.kind_of(chances.dtype) not in ("b", "i", "u", "f"):
            raise ValueError(
                f"random.choice: p must be a vector of {size} real numbers, one for each element, "
                "got "
                f"{chances.short_name()}"
            )
    return _choice(key, source, p, max(size, 0), shape, axis, bool(replace), mode)


@compiled_with("size", "shape", "axis", "replace", "mode")
def _choice(
    key: Any, a: Any, p: Any, size: Any, shape: Any, axis: Any, replace: Any, mode: Any
) -> Any:
    key = typed(key)
    draws = math.prod(shape)
    if a is not None:
        a = value(array_like(a, "random.choice", "a"))
    if not draws:
        positions = iota_like(dtypes.default_dtype("i"), (0,), 0)
    elif p is None and replace:
        positions = randint(key, shape, 0, size)
    elif p is None:
        if a is not None and a.ndim == 1 and isinstance(a.dtype, np.dtype):
            return reshape(_first_shuffled(key, a, draws), shape)
        positions = _first_shuffled(key, _numbers(size), draws)
    else:
        positions = _weighted(key, inexact("random.choice", p), draws, shape, replace, mode)
    if a is None:
        return reshape(positions, shape)
    return _in_place(_taken(a, reshape(positions, (draws,)), axis), shape, axis)


def _weighted(key: Any, p: Any, draws: int, shape: Shape, replace: bool, mode: str) -> Any:
    """Positions with probabilities proportional to a vector."""
    dtype, size = p.dtype, p.size
    integers = dtypes.default_dtype("i")
    if not replace:
        scores = _sum(gumbel_numbers(key, (size,), dtype, mode), log_p.bind(p, accuracy=None))
        return convert_element_type(top_k(scores, draws)[1], integers)
    sums = cumsum(p)
    total = reshape(slice_dimension(sums, size - 1, size, 0), ())
    places = mul(total, sub_p.bind(make_literal(1, dtype), unit_interval(key, shape, dtype)))
    return convert_element_type(searchsorted(sums, places), integers)


def _in_place(x: Any, shape: Shape, axis: int) -> Any:
    """An array with one of its dimensions split into several."""
    x_shape = aval_of(x).shape
    return reshape(x, (*x_shape[:axis], *shape, *x_shape[axis + 1 :]))
