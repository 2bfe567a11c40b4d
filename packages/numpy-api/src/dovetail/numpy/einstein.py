"""Sums of products in Einstein notation."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from dovetail import lax
from dovetail.extend.arguments import (
    array_like,
    asked_division,
    convert,
    counted,
    divided,
    integer,
    no_out,
    requested_dtype,
    same_dtype,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.eager import lru_cache
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.conditions import pick
from dovetail.numpy.contraction import combined, contracted
from dovetail.numpy.shapes import permuted, reshaped
from dovetail.typing import Array, ArrayLike, DTypeLike, Sharding

Steps = tuple[tuple[tuple[int, ...], str], ...]
Multiply = Callable[..., Any]


def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike | Sequence[Any],
    out: None = None,
    optimize: bool | str | Sequence[Any] = "auto",
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Array] = lax.dot_general,
    out_sharding: Sharding | None = None,
) -> Array:
    """Evaluate a sum of products of arrays in Einstein notation.

    Each letter names a dimension, as does any other character but blanks and ``,``, ``.``, ``-``,
    ``>``, such as a digit. Dimensions with the same letter are paired; letters missing after
    ``->`` are summed over. Without ``->`` the result has the letters that occur once, in
    alphabetical order. ``...`` stands for further dimensions, which are broadcast; they come first
    in a result without ``->``, and are summed over where they are missing after it.

    Args:
        subscripts: subscripts such as ``"ij,jk->ik"``; or operands and lists of integers in turn,
            as in NumPy.
        *operands: one array for each term.
        out: not supported, since arrays are immutable.
        optimize: how the opt_einsum library finds the order of products: "auto", "optimal",
            "greedy", or a path; False or None multiplies from left to right.
        precision: accuracy of the products: None, "default", "high", "highest", or a pair of them.
        preferred_element_type: dtype of the result, in which the products are summed.
        _dot_general: what multiplies two operands, called as `lax.dot_general` is.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`. With ``unreduced`` the sum over the devices is not added up.

    Returns:
        An array.

    Raises:
        ValueError: the subscripts do not fit the operands.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([[1, 2], [3, 4]])
        >>> print(jnp.einsum("ij,jk->ik", x, x), jnp.einsum("ii", x))
        [[ 7 10]
         [15 22]] 5
    """
    no_out("einsum", out)
    text, values = _parsed(subscripts, operands)
    shapes = tuple(aval_of(v).shape for v in values)
    path = tuple(map(tuple, optimize)) if isinstance(optimize, (list, tuple)) else optimize
    target = requested_dtype("einsum", preferred_element_type)
    inputs, output = _terms(text, shapes)
    steps = _plan(inputs, output, shapes, path)
    if _dot_general is lax.dot_general:
        return _einsum(tuple(values), inputs, output, steps, precision, target, out_sharding)

    def multiply(
        x: Any, y: Any, contracting: Any, batch: Any, precision: Any, out: Any, wanted: Any
    ) -> Any:
        dtype = aval_of(x).dtype if out is None else out
        options = {} if wanted is None else {"out_sharding": wanted}
        numbers = (contracting, batch)
        return _dot_general(x, y, numbers, precision, preferred_element_type=dtype, **options)

    return _evaluated(
        tuple(values), inputs, output, steps, precision, target, out_sharding, multiply
    )


def einsum_path(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike | Sequence[Any],
    optimize: bool | str | Sequence[Any] = "auto",
) -> tuple[list[Any], str]:
    """Find the order in which `einsum` computes products.

    Args:
        subscripts: as for `einsum`.
        *operands: arrays; only their shapes matter.
        optimize: how to find the order, as for `einsum`.

    Returns:
        The path, a list of tuples of operand numbers, and a description of it.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.einsum_path("ij,jk,kl", jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones((4, 5)))[0]
        [(0, 1), (0, 1)]
    """
    import opt_einsum  # deferred: used only by einsum

    text, values = _parsed(subscripts, operands)
    shapes = [aval_of(v).shape for v in values]
    inputs, output = _terms(text, tuple(shapes))
    if optimize is True:
        optimize = "auto"
    path, info = opt_einsum.contract_path(
        f"{','.join(inputs)}->{output}", *shapes, shapes=True, optimize=optimize
    )
    return path, info


def _parsed(subscripts: Any, operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Subscripts without spaces, and checked operands."""
    if isinstance(subscripts, str):
        text = subscripts.replace(" ", "")
    else:
        text, operands = _from_lists([subscripts, *operands])
    values = [array_like(x, "einsum", f"operands[{i}]") for i, x in enumerate(operands)]
    count = text.split("->")[0].count(",") + 1
    if count != len(values):
        raise ValueError(
            f"einsum: the subscripts {text!r} have {counted(count, 'term')}, and there are "
            f"{len(values)} operands"
        )
    return text, values


def _from_lists(given: list[Any]) -> tuple[str, list[Any]]:
    """NumPy's other form: operands and lists of integers in turn, and a list for the result."""
    pairs, rest = len(given) // 2, len(given) % 2
    operands = [given[2 * i] for i in range(pairs)]
    terms = [_letters(given[2 * i + 1]) for i in range(pairs)]
    return ",".join(terms) + (f"->{_letters(given[-1])}" if rest else ""), operands


def _letters(numbers: Any) -> str:
    if isinstance(numbers, (str, bytes)) or not hasattr(numbers, "__iter__"):
        raise TypeError(
            "einsum: operands must be followed by lists of integers, or come after subscripts such "
            f"as 'ij,jk->ik'; got {type(numbers).__name__}"
        )
    return "".join(
        "..." if n is Ellipsis else _letter(integer("einsum", "each subscript", n)) for n in numbers
    )


def _letter(number: int) -> str:
    if not 0 <= number < 52:
        raise ValueError(f"einsum: subscripts given as integers must be in [0, 52), got {number}")
    return chr(ord("A") + number) if number < 26 else chr(ord("a") + number - 26)


@functools.lru_cache(maxsize=1024)
def _terms(text: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[str, ...], str]:
    """One letter for each dimension of each operand, and of the result."""
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    used = {*left, *right}
    if used & set("->"):
        raise ValueError(f"einsum: subscripts have one -> at most, and no other - or >: {text!r}")
    spare = [c for c in map(chr, range(0x3B1, 0x3B1 + 256)) if c not in used]
    longest = 0
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        letters = term.replace("...", "", 1)
        if "." in letters:
            raise ValueError(f"einsum: the term {term!r} may have one ..., and no other dots")
        named = len(letters)
        if "..." in term:
            longest = max(longest, len(shape) - named)
        if named > len(shape) or ("..." not in term and named != len(shape)):
            raise ValueError(
                f"einsum: the term {term!r} does not fit operand {i}, whose shape is {shape}"
            )
    letters = "".join(spare[:longest])
    inputs = []
    for term, shape in zip(terms, shapes, strict=True):
        count = len(shape) - len(term.replace("...", ""))
        inputs.append(term.replace("...", letters[longest - count :] if count else ""))
    if arrow:
        output = right.replace("...", letters)
    else:
        counts = Counter("".join(t.replace("...", "") for t in terms))
        output = letters + "".join(sorted(c for c, n in counts.items() if n == 1))
    if len(set(output)) != len(output):
        raise ValueError(f"einsum: the result {right!r} names a dimension twice")
    unknown = set(output) - set("".join(inputs))
    if unknown:
        raise ValueError(
            f"einsum: the result {right!r} names {', '.join(sorted(unknown))}, which no operand has"
        )
    _check_sizes(inputs, shapes, letters)
    return tuple(inputs), output


def _check_sizes(inputs: Sequence[str], shapes: Sequence[tuple[int, ...]], broadcast: str) -> None:
    sizes: dict[str, int] = {}
    for term, shape in zip(inputs, shapes, strict=True):
        for letter, size in zip(term, shape, strict=True):
            previous = sizes.setdefault(letter, size)
            if previous == size or 1 in (previous, size):
                sizes[letter] = max(previous, size) if 0 not in (previous, size) else 0
                continue
            what = "a dimension of ..." if letter in broadcast else f"dimension {letter!r}"
            raise ValueError(f"einsum: {what} has the sizes {previous} and {size}")


@lru_cache(maxsize=1024)
def _plan(
    inputs: tuple[str, ...], output: str, shapes: tuple[tuple[int, ...], ...], optimize: Any
) -> Steps:
    """The operands to multiply in each step, and the letters of the product."""
    remaining = list(inputs)
    if len(inputs) <= 2:
        path: Any = [tuple(range(len(inputs)))]
    elif optimize is False or optimize is None:
        path = [(0, 1)] + [(0, len(inputs) - 1 - i) for i in range(1, len(inputs) - 1)]
    else:
        import opt_einsum  # deferred: used only for three or more operands

        path, _ = opt_einsum.contract_path(
            f"{','.join(inputs)}->{output}",
            *shapes,
            shapes=True,
            optimize="auto" if optimize is True else optimize,
        )
    steps = []
    for numbers in path:
        chosen = [remaining[i] for i in numbers]
        for i in sorted(numbers, reverse=True):
            del remaining[i]
        needed = set(output).union(*remaining) if remaining else set(output)
        seen = dict.fromkeys("".join(chosen))
        result = output if not remaining else "".join(c for c in seen if c in needed)
        remaining.append(result)
        steps.append((tuple(numbers), result))
    return tuple(steps)


@compiled_with("inputs", "output", "steps", "precision", "target", "out_sharding")
def _einsum(
    operands: Sequence[Any],
    inputs: tuple[str, ...],
    output: str,
    steps: Steps,
    precision: Any,
    target: Any,
    out_sharding: Any,
) -> Any:
    return _evaluated(operands, inputs, output, steps, precision, target, out_sharding, contracted)


def _evaluated(
    operands: Sequence[Any],
    inputs: tuple[str, ...],
    output: str,
    steps: Steps,
    precision: Any,
    target: Any,
    out_sharding: Any,
    multiply: Multiply,
) -> Any:
    wanted = asked_division("einsum", out_sharding, len(output), sums=True)
    return divided(
        "einsum",
        out_sharding,
        lambda: _summed(operands, inputs, output, steps, precision, target, wanted, multiply),
        sums=True,
    )


def _summed(
    operands: Sequence[Any],
    inputs: tuple[str, ...],
    output: str,
    steps: Steps,
    precision: Any,
    target: Any,
    wanted: Any,
    multiply: Multiply,
) -> Any:
    """The products and sums of all steps; the last product is divided over devices as wanted."""
    values = [value(v) for v in (same_dtype if target is None else combined)(operands)]
    terms = list(inputs)
    sizes: dict[str, int] = {}
    for term, x in zip(terms, values, strict=True):
        for letter, size in zip(term, aval_of(x).shape, strict=True):
            sizes[letter] = size if sizes.get(letter, 1) == 1 else sizes[letter]
    for numbers, result in steps:
        chosen = [(values[i], terms[i]) for i in numbers]
        for i in sorted(numbers, reverse=True):
            del values[i], terms[i]
        x, term = chosen[0]
        for j, (y, other) in enumerate(chosen[1:], 1):
            rest = set(result).union(*(t for _, t in chosen[j + 1 :]))
            keep = "".join(c for c in dict.fromkeys(term + other) if c in rest)
            last = j == len(chosen) - 1
            x, term = _product(
                x,
                term,
                y,
                other,
                result if last else keep,
                sizes,
                precision,
                target,
                wanted if last and not values else None,
                multiply,
            )
        if len(chosen) == 1:
            x, term = _alone(x, term, set(result), sizes)
        x = permuted(x, tuple(term.index(c) for c in result))
        values.append(x)
        terms.append(result)
    (x,) = values
    return x if target is None else convert(x, target)


def _alone(x: Any, term: str, needed: set[str], sizes: dict[str, int]) -> tuple[Any, str]:
    """Take diagonals for repeated letters, and sum over letters that are not needed."""
    for letter, count in Counter(term).items():
        while count > 1:
            i = term.index(letter)
            j = term.index(letter, i + 1)
            x = _diagonal(x, i, j, sizes[letter])
            term = term[:j] + term[j + 1 :]
            count -= 1
    gone = tuple(i for i, c in enumerate(term) if c not in needed)
    if gone:
        x = _sum(x, gone)
        term = "".join(c for i, c in enumerate(term) if i not in gone)
    return x, term


def _sum(x: Any, axes: tuple[int, ...]) -> Any:
    if aval_of(x).dtype == bool:
        return lax.reduce_or(x, axes)
    return lax.reduce_sum(x, axes)


def _diagonal(x: Any, i: int, j: int, size: int) -> Any:
    """The elements with equal positions in two dimensions, of which the first stays."""
    shape = aval_of(x).shape
    if shape[i] != shape[j]:
        shape = tuple(size if d in (i, j) else n for d, n in enumerate(shape))
        x = lax.broadcast_in_dim(x, shape, tuple(range(len(shape))))
    int32 = np.dtype("int32")
    same = lax.eq(lax.broadcasted_iota(int32, shape, i), lax.broadcasted_iota(int32, shape, j))
    return _sum(pick(same, x, lax.full_like(x, 0)), (j,))


def _product(
    x: Any,
    left: str,
    y: Any,
    right: str,
    result: str,
    sizes: dict[str, int],
    precision: Any,
    target: Any,
    wanted: Any,
    multiply: Multiply,
) -> tuple[Any, str]:
    """The product of two operands, summed over the letters missing from the result."""
    needed = set(result)
    x, left = _alone(x, left, needed | set(right), sizes)
    y, right = _alone(y, right, needed | set(left), sizes)
    x, left = _without_ones(x, left, right, sizes)
    y, right = _without_ones(y, right, left, sizes)
    # A letter that only one operand still has may have to be summed over there.
    x, left = _alone(x, left, needed | set(right), sizes)
    y, right = _alone(y, right, needed | set(left), sizes)
    shared = [c for c in left if c in right]
    batch = [c for c in shared if c in needed]
    summed = [c for c in shared if c not in needed]
    numbers = [
        (tuple(term.index(c) for c in summed), tuple(term.index(c) for c in batch))
        for term in (left, right)
    ]
    free = [c for c in left if c not in shared] + [c for c in right if c not in shared]
    letters = "".join(batch + free)
    out = multiply(
        x,
        y,
        (numbers[0][0], numbers[1][0]),
        (numbers[0][1], numbers[1][1]),
        precision,
        target,
        None if wanted is None else wanted.permuted([result.index(c) for c in letters]),
    )
    missing = [c for c in result if c not in letters]
    if missing:  # letters whose dimensions have size one in both operands
        out = reshaped(out, aval_of(out).shape + (1,) * len(missing))
        letters += "".join(missing)
    return out, letters


def _without_ones(x: Any, term: str, other: str, sizes: dict[str, int]) -> tuple[Any, str]:
    """Drop dimensions of size one that another operand has with a larger size: they broadcast."""
    shape = aval_of(x).shape
    gone = [i for i, c in enumerate(term) if shape[i] == 1 and sizes[c] != 1 and c in other]
    if not gone:
        return x, term
    remaining = [i for i in range(len(term)) if i not in gone]
    return reshaped(x, tuple(shape[i] for i in remaining)), "".join(term[i] for i in remaining)
