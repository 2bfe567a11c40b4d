"""How calls of functions of the NumPy API and of `nn` are drawn, by family."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from drawing import ALL, Draw, Shape, Value
from source import METHOD, OPERATOR, UPDATE, Operation

REAL = "biuf"
Result = tuple[Shape, str] | list[tuple[Shape, str] | None] | None
Made = tuple[Operation, Result]
Maker = Callable[[Draw, str], Made]


def call(function: str, *arguments: Any, **keywords: Any) -> Operation:
    """An operation; values stand for references to them."""
    words = [a.reference if isinstance(a, Value) else a for a in arguments]
    named = {k: a.reference if isinstance(a, Value) else a for k, a in keywords.items()}
    return {"function": function, "arguments": words, "keywords": named}


def tupled(numbers: Any) -> list[Any]:
    """A tuple of arguments."""
    return ["tuple", *(n.reference if isinstance(n, Value) else n for n in numbers)]


def floating(kind: str) -> str:
    """The kind of what a function that computes in floats returns."""
    return "c" if kind == "c" else "f"


def joined(*kinds: str) -> str:
    """The kind of a promoted dtype, about."""
    return max(kinds, key="buifc".index)


def unary(draw: Draw, function: str) -> Made:
    x = draw.value()
    return call(function, x), (x.shape, x.kind)


def unary_floating(draw: Draw, function: str) -> Made:
    x = draw.value("iffffc")
    return call(function, x), (x.shape, floating(x.kind))


def predicate(draw: Draw, function: str) -> Made:
    x = draw.value()
    return call(function, x), (x.shape, "b")


def _pair(draw: Draw, kinds: str = ALL) -> tuple[Any, Any, Shape, str]:
    """Two operands that broadcast, one of which may be a number, with shape and kind."""
    x = draw.value(kinds)
    if draw.chance(0.25):
        scalar = draw.scalar(draw.pick(kinds) if draw.chance(0.5) else "")
        words = (x, scalar) if draw.chance(0.7) else (scalar, x)
        return *words, x.shape, x.kind
    y = draw.value(kinds, shape=draw.broadcastable(x.shape))
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        shape = x.shape
    return *((x, y) if draw.chance(0.7) else (y, x)), shape, joined(x.kind, y.kind)


def binary(draw: Draw, function: str) -> Made:
    x, y, shape, kind = _pair(draw)
    return call(function, x, y), (shape, kind)


def binary_real(draw: Draw, function: str) -> Made:
    x, y, shape, kind = _pair(draw, REAL)
    return call(function, x, y), (shape, kind)


def binary_floating(draw: Draw, function: str) -> Made:
    x, y, shape, kind = _pair(draw, "iuf")
    return call(function, x, y), (shape, floating(kind))


def binary_integer(draw: Draw, function: str) -> Made:
    x, y, shape, kind = _pair(draw, "biu")
    return call(function, x, y), (shape, kind)


def comparison(draw: Draw, function: str) -> Made:
    x, y, shape, _ = _pair(draw)
    return call(function, x, y), (shape, "b")


def two_results(draw: Draw, function: str) -> Made:
    if function == "jnp.divmod":
        x, y, shape, kind = _pair(draw, REAL)
        return call(function, x, y), [(shape, kind), (shape, kind)]
    value = draw.value(REAL)
    kinds = "fi" if function == "jnp.frexp" else "ff"
    return call(function, value), [(value.shape, kinds[0]), (value.shape, kinds[1])]


def arithmetic(draw: Draw, function: str) -> Made:
    """Operators of arrays."""
    if function in (f"{OPERATOR}-", f"{OPERATOR}~") and draw.chance(0.4):
        x = draw.value()
        return call(function, x), (x.shape, x.kind)
    if function == f"{OPERATOR}~":
        function = f"{OPERATOR}^"
    kinds = (
        "biu" if function[-1] in "&|^<>" and function[-2] in " <>" and len(function) > 10 else ALL
    )
    if function in (f"{OPERATOR}<", f"{OPERATOR}>"):
        kinds = ALL
    x, y, shape, kind = _pair(draw, kinds)
    comparing = function[len(OPERATOR) :] in ("<", ">", "<=", ">=", "==", "!=")
    return call(function, x, y), (shape, "b" if comparing else kind)


def _reduced(draw: Draw, x: Value) -> tuple[dict[str, Any], Shape]:
    """An axis or some, and whether to keep them, with the shape of the result."""
    rank = len(x.shape)
    keywords: dict[str, Any] = {}
    axes: list[int] = list(range(rank))
    if draw.chance(0.6) and rank:
        axis = draw.axis(rank)
        keywords["axis"], axes = axis, [axis % rank if -rank <= axis < rank else 0]
    elif draw.chance(0.3):
        axes = draw.axes(rank)
        keywords["axis"] = tupled(axes)
    keep = draw.chance(0.3)
    if keep:
        keywords["keepdims"] = True
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes]
    return keywords, tuple(shape)


def reduction(draw: Draw, function: str) -> Made:
    x = draw.value()
    keywords, shape = _reduced(draw, x)
    name = function.rpartition(".")[2].rpartition(" ")[2]
    if draw.chance(0.15) and name not in ("ptp", "median", "nanmedian", "count_nonzero", "argmax"):
        keywords["where"] = draw.value("b", shape=draw.broadcastable(x.shape))
        if name.endswith(("max", "min")):
            keywords["initial"] = draw.scalar("f" if x.kind == "f" else "i")
    if draw.chance(0.15) and name in ("sum", "prod", "mean", "var", "std", "nansum", "nanmean"):
        keywords["dtype"] = draw.dtype()
    if draw.chance(0.2) and name in ("var", "std", "nanvar", "nanstd"):
        keywords["ddof"] = 1
    kind = x.kind if name not in ("mean", "var", "std", "median") else "f"
    kind = "b" if name in ("any", "all") else kind
    return call(function, x, **keywords), (shape, kind)


def index_reduction(draw: Draw, function: str) -> Made:
    x = draw.value()
    rank = len(x.shape)
    keywords: dict[str, Any] = {}
    shape: Shape = ()
    if draw.chance(0.7) and rank:
        axis = draw.axis(rank)
        keywords["axis"] = axis
        shape = tuple(np.delete(x.shape, axis)) if -rank <= axis < rank else ()
        shape = tuple(int(n) for n in shape)
    return call(function, x, **keywords), (shape, "i")


def quantiles(draw: Draw, function: str) -> Made:
    x = draw.value(REAL)
    keywords, shape = _reduced(draw, x)
    keywords["method"] = draw.pick(("linear", "lower", "higher", "midpoint", "nearest"))
    q = draw.pick((0.0, 0.25, 0.5, 1.0)) * (100 if "percentile" in function else 1)
    return call(function, x, q, **keywords), (shape, "f")


def cumulative(draw: Draw, function: str) -> Made:
    x = draw.value(least=1)
    keywords: dict[str, Any] = {"axis": draw.axis(len(x.shape))}
    if draw.chance(0.15):
        keywords["dtype"] = draw.dtype()
    return call(function, x, **keywords), (x.shape, x.kind)


def ordering(draw: Draw, function: str) -> Made:
    x = draw.value(least=1)
    keywords: dict[str, Any] = {"axis": draw.axis(len(x.shape))}
    if draw.chance(0.3) and "partition" not in function:
        keywords["descending"] = True
    arguments: list[Any] = [x]
    if "partition" in function:
        arguments.append(draw.integer(0, 1))
    return call(function, *arguments, **keywords), (x.shape, "i" if "arg" in function else x.kind)


def reshaping(draw: Draw, function: str) -> Made:
    x = draw.value()
    count = math.prod(x.shape)
    options: list[Shape] = [(count,), (1, count), (-1,), (*x.shape, 1), (count, 1, 1)]
    shape = draw.pick(options)
    if draw.mistake():
        shape = draw.shape()
    result = tuple(count if n == -1 else n for n in shape)
    keywords = {"order": "F"} if draw.chance(0.1) else {}
    return call(function, x, tupled(shape), **keywords), (result, x.kind)


def rearranging(draw: Draw, function: str) -> Made:
    """Functions that move axes or elements and have arguments of their own."""
    x = draw.value(least=2)
    rank = len(x.shape)
    a, b = draw.own_axis(rank), draw.own_axis(rank)
    name = function.rpartition(".")[2]
    if name in ("transpose", "permute_dims"):
        order = draw.permutation(rank)
        shape = tuple(x.shape[i] for i in order)
        return call(function, x, tupled(order)), (shape, x.kind)
    if name in ("swapaxes", "moveaxis", "rollaxis"):
        return call(function, x, a, b), None
    if name in ("flip", "fftshift", "ifftshift"):
        return call(function, x, draw.axis(rank)), (x.shape, x.kind)
    if name == "roll":
        return call(function, x, draw.integer(-3, 3), axis=draw.axis(rank)), (x.shape, x.kind)
    if name == "rot90":
        return call(function, x, draw.integer(-1, 3)), None
    if name in ("tril", "triu"):
        return call(function, x, draw.integer(-1, 1)), (x.shape, x.kind)
    if name in ("diagonal", "trace"):
        return call(function, x, draw.integer(-1, 1)), None
    if name == "expand_dims":
        return call(function, x, draw.axis(rank)), None
    if name == "repeat":
        return call(function, x, draw.integer(0, 2), axis=draw.axis(rank)), None
    if name == "tile":
        return call(function, x, tupled([draw.integer(0, 2), draw.integer(1, 2)])), None
    if name == "diff":
        return call(function, x, n=draw.integer(0, 2), axis=draw.axis(rank)), None
    if name == "gradient":
        return call(function, x, axis=draw.axis(rank)), None
    if name == "resize":
        shape = draw.shape()
        return call(function, x, tupled(shape)), (shape, x.kind)
    if name == "unstack":
        return call(function, x, axis=draw.axis(rank)), None
    if name == "pad":
        mode = draw.pick(("constant", "edge", "reflect", "wrap", "symmetric", "mean", "maximum"))
        width = tupled([draw.integer(0, 2), draw.integer(0, 2)])
        return call(function, x, width, mode), None
    return call(function, x), None


def simple_shape(draw: Draw, function: str) -> Made:
    """Functions of one array with nothing else."""
    return call(function, draw.value()), None


def joining(draw: Draw, function: str) -> Made:
    x = draw.value(least=1)
    values = [x] + [draw.value(shape=x.shape) for _ in range(2)]
    values = values[: draw.integer(1, 3)]
    kind = joined(*(value.kind for value in values))
    words = ["list", *(value.reference for value in values)]
    name = function.rpartition(".")[2]
    if name in ("concatenate", "concat", "stack"):
        axis = draw.axis(len(x.shape))
        return call(function, words, axis=axis), None
    if name == "append":
        return call(function, x, values[-1], axis=draw.axis(len(x.shape))), None
    if name in ("broadcast_arrays", "meshgrid"):
        return call(function, *values), None
    if name == "block":
        return call(function, words), (x.shape[:-1] + (sum(v.shape[-1] for v in values),), kind)
    return call(function, words), None


def splitting(draw: Draw, function: str) -> Made:
    x = draw.value(least=3 if "dsplit" in function else 2)
    parts: Any = draw.pick((1, 2, 3))
    if draw.chance(0.4):
        parts = ["list", 1, 2]
    keywords = {"axis": draw.axis(len(x.shape))} if function.endswith((".split", "_split")) else {}
    return call(function, x, parts, **keywords), None


def broadcasting(draw: Draw, function: str) -> Made:
    shape = draw.shape()
    x = draw.value(shape=draw.broadcastable(shape))
    return call(function, x, tupled(shape)), (shape, x.kind)


def choosing(draw: Draw, function: str) -> Made:
    name = function.rpartition(".")[2]
    x, y, shape, kind = _pair(draw)
    if name == "where":
        condition = draw.value("b", shape=draw.broadcastable(shape))
        return call(function, condition, x, y), (shape, kind)
    if name == "clip":
        a = draw.value(shape=shape)
        return call(function, a, draw.scalar(), draw.scalar()), (shape, a.kind)
    if name == "select":
        conditions = ["list", *(draw.value("b", shape=shape).reference for _ in range(2))]
        a = draw.value(shape=shape)
        choices = ["list", a.reference, draw.value(shape=shape).reference]
        return call(function, conditions, choices, draw.scalar()), (shape, a.kind)
    if name == "isclose":
        return call(function, x, y, equal_nan=draw.chance(0.5)), (shape, "b")
    if name in ("allclose", "array_equal", "array_equiv"):
        return call(function, x, y), ((), "b")
    if name == "nan_to_num":
        a = draw.value()
        return call(function, a), (a.shape, a.kind)
    return call(function, x, y), None


def contraction(draw: Draw, function: str) -> Made:
    name = function.rpartition(".")[2].rpartition(" ")[2]
    n, m, k = draw.shape(3)
    if name in ("matmul", "dot", "inner", "@"):
        x = draw.value(shape=(n, k))
        y = draw.value(shape=(k, m) if name != "inner" else (m, k))
        return call(function, x, y), ((n, m), joined(x.kind, y.kind))
    if name in ("vdot", "vecdot"):
        x, y = draw.value(shape=(n, k)), draw.value(shape=(n, k))
        return call(function, x, y), None
    if name in ("outer", "kron", "convolve", "correlate", "polymul", "polyadd", "polysub"):
        x, y = draw.value(rank=1), draw.value(rank=1)
        return call(function, x, y), None
    if name == "matvec":
        x, y = draw.value(shape=(n, k)), draw.value(shape=(k,))
        return call(function, x, y), ((n,), joined(x.kind, y.kind))
    if name == "vecmat":
        x, y = draw.value(shape=(k,)), draw.value(shape=(k, m))
        return call(function, x, y), ((m,), joined(x.kind, y.kind))
    if name == "tensordot":
        x, y = draw.value(shape=(n, k)), draw.value(shape=(k, m))
        return call(function, x, y, axes=draw.integer(0, 1)), None
    if name == "cross":
        x, y = draw.value(shape=(n, 3)), draw.value(shape=(n, 3))
        return call(function, x, y), ((n, 3), joined(x.kind, y.kind))
    x, y = draw.value(shape=(n, k)), draw.value(shape=(k, m))
    subscripts = draw.pick(("ij,jk->ik", "ij,jk", "ij,jk->ijk", "ij,jk->", "...ij,jk->...k"))
    return call("jnp.einsum", subscripts, x, y), None


def lookup(draw: Draw, function: str) -> Made:
    name = function.rpartition(".")[2]
    if name == "take":
        x = draw.value(least=1)
        axis = draw.axis(len(x.shape))
        index = draw.value("iu", shape=draw.shape(draw.integer(0, 2)))
        keywords = {"mode": draw.pick(("clip", "wrap", "fill"))} if draw.chance(0.5) else {}
        return call(function, x, index, axis=axis, **keywords), None
    if name == "take_along_axis":
        x = draw.value(least=1)
        index = draw.value("iu", shape=x.shape)
        return call(function, x, index, axis=draw.axis(len(x.shape))), (x.shape, x.kind)
    if name in ("searchsorted", "digitize"):
        x, y = draw.value(REAL, rank=1), draw.value(REAL)
        bins = ["call", "jnp.sort", [x.reference], {}]  # no others have places
        words = (bins, y) if name == "searchsorted" else (y, bins)
        keywords = {"side": "right"} if name == "searchsorted" and draw.chance(0.5) else {}
        return call(function, *words, **keywords), (y.shape, "i")
    if name == "interp":
        x = draw.value(REAL)
        xp, fp = draw.value(REAL, shape=(3,)), draw.value(REAL, shape=(3,))
        return call(function, x, xp, fp), (x.shape, "f")
    if name == "bincount":
        x = draw.value("iu", rank=1)
        return call(function, x, length=draw.integer(0, 6)), None
    if name == "histogram":
        x = draw.value(REAL)
        return call(function, x, bins=draw.integer(1, 4)), None
    if name in ("unique", "nonzero", "flatnonzero", "argwhere", "unique_values", "unique_counts"):
        size = draw.integer(0, 5)
        return call(function, draw.value(), size=size), None
    if name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        return call(function, draw.value(), draw.value(), size=draw.integer(0, 5)), None
    if name == "isin":
        x = draw.value()
        return call(function, x, draw.value()), (x.shape, "b")
    if name == "unravel_index":
        x = draw.value("iu")
        return call(function, x, tupled((2, 3))), None
    if name in ("polyval",):
        p, x = draw.value(rank=1), draw.value()
        return call(function, p, x), (x.shape, joined(p.kind, x.kind))
    x = draw.value("f", rank=1)
    return call(function, x), None


def creation(draw: Draw, function: str) -> Made:
    name = function.rpartition(".")[2]
    dtype = draw.dtype()
    keywords: dict[str, Any] = {"dtype": dtype} if draw.chance(0.5) else {}
    kind = dtype[0] if keywords and dtype[0] in ALL else "f"
    if name in ("zeros", "ones", "full"):
        shape = draw.shape()
        words = [tupled(shape)] + ([draw.scalar()] if name == "full" else [])
        return call(function, *words, **keywords), (shape, kind)
    if name in ("zeros_like", "ones_like", "full_like", "empty_like"):
        x = draw.value()
        words = [x] + ([draw.scalar()] if name == "full_like" else [])
        if name == "empty_like":
            function = "jnp.zeros_like"
        return call(function, *words, **keywords), (x.shape, kind if keywords else x.kind)
    if name == "arange":
        words = [draw.scalar("i")] if draw.chance(0.5) else [draw.scalar(), draw.scalar(), 1]
        return call(function, *words, **keywords), None
    if name in ("linspace", "logspace", "geomspace"):
        words = [draw.scalar("f"), draw.scalar("f")]
        if draw.chance(0.3):
            words[1] = draw.value(REAL).reference
        return call(function, *words, num=draw.integer(0, 4), **keywords), None
    if name in ("eye", "identity", "tri"):
        n = draw.integer(0, 4)
        return call(function, n, **keywords), ((n, n), kind)
    if name in ("hanning", "hamming", "bartlett", "blackman"):
        n = draw.integer(0, 5)
        return call(function, n), ((n,), "f")
    x = draw.value()
    return call(function, x, **keywords), (x.shape, kind if keywords else x.kind)


def conversion(draw: Draw, function: str) -> Made:
    x = draw.value()
    dtype = draw.dtype("biuf" if x.kind != "c" else "c")
    return call(function, x, dtype), (x.shape, dtype[0] if dtype[0] in ALL else "f")


def linear_algebra(draw: Draw, function: str) -> Made:
    n = draw.integer(0, 3) if draw.chance(0.3) else draw.integer(1, 3)
    name = function.rpartition(".")[2]
    if name in (
        "svd",
        "svdvals",
        "pinv",
        "matrix_rank",
        "qr",
        "norm",
        "matrix_norm",
        "vector_norm",
    ):
        x = draw.value("iffffc", shape=(n, draw.integer(1, 3)))
        if name == "norm" and draw.chance(0.5):
            return call(function, x, axis=draw.axis(2)), None
        return call(function, x), None
    x = draw.value("iffffc", shape=(n, draw.size(n)))
    if name == "solve":
        b = draw.value("iffffc", shape=(n, 2))
        return call(function, x, b), ((n, 2), floating(joined(x.kind, b.kind)))
    if name == "matrix_power":
        return call(function, x, draw.integer(-1, 3)), (x.shape, x.kind)
    if name in ("cholesky", "eigh", "eigvalsh"):
        # Symmetric and positive: x x^T + 2.
        positive = ["call", "jnp.matmul", [x.reference, ["attribute", x.reference, "T"]], {}]
        draw.own(x.reference)
        shifted = ["call", "jnp.add", [positive, ["call", "jnp.eye", [n], {}]], {}]
        return call(function, shifted), (x.shape, floating(x.kind)) if name == "cholesky" else None
    if name == "lstsq":
        return call(function, x, draw.value("f", shape=(n,))), None
    return call(function, x), (x.shape, floating(x.kind)) if name == "inv" else None


def fourier(draw: Draw, function: str) -> Made:
    x = draw.value("iffc", rank=2)
    if function.endswith(("2", "n")):
        return call(function, x), None
    keywords: dict[str, Any] = {"axis": draw.axis(2)}
    if draw.chance(0.3):
        keywords["n"] = draw.integer(1, 4)
    if draw.chance(0.3):
        keywords["norm"] = draw.pick(("ortho", "forward", "backward"))
    return call(function, x, **keywords), None


def activation(draw: Draw, function: str) -> Made:
    x = draw.value("iufffff")
    name = function.rpartition(".")[2]
    if name in ("softmax", "log_softmax", "standardize", "logsumexp", "logmeanexp", "glu"):
        x = draw.value("ifffff", least=1)
        shape = x.shape if name in ("softmax", "log_softmax", "standardize") else None
        result = (shape, "f") if shape is not None else None
        return call(function, x, axis=draw.axis(len(x.shape))), result
    if name == "one_hot":
        x = draw.value("iu")
        return call(function, x, draw.integer(0, 4)), None
    return call(function, x), (x.shape, "f")


def _index(draw: Draw, x: Value) -> list[Any]:
    """An index of an array: of all kinds that there are."""
    items: list[Any] = []
    left = len(x.shape)
    masked = False
    while left and draw.chance(0.8):
        n = x.shape[len(x.shape) - left]
        kind = draw.pick(("integer", "slice", "slice", "array", "value", "new", "list", "mask"))
        if kind == "integer":
            items.append(draw.integer(-n, max(n - 1, 0)) + (n if draw.mistake() else 0))
        elif kind == "slice":
            ends = [draw.pick((None, draw.integer(-n - 1, n + 1))) for _ in range(2)]
            items.append(["slice", *ends, draw.pick((None, None, 1, 2, -1, -2))])
        elif kind == "array":
            items.append(draw.array("int32", draw.shape(draw.integer(0, 2)), -n, n - 1))
        elif kind == "value":
            items.append(draw.value("iu", rank=draw.integer(0, 1)).reference)
        elif kind == "list":
            items.append(
                ["call", "np.array", [["list", *(draw.integer(-n, n) for _ in range(2))]], {}]
            )
        elif kind == "mask" and not masked:
            masked = True
            items.append(draw.array("bool", (draw.size(n),), 0, 1))
        else:
            items.append(None)
            continue
        left -= 1
    if draw.chance(0.2):
        items.insert(draw.integer(0, len(items)), ["name", "..."])
    return items[0] if len(items) == 1 and draw.chance(0.7) else ["tuple", *items]


def reading(draw: Draw, function: str) -> Made:
    x = draw.value(least=1)
    return call(function, x, _index(draw, x)), None


def updating(draw: Draw, function: str) -> Made:
    x = draw.value(least=1)
    index = _index(draw, x)
    keywords = (
        {"mode": draw.pick(("drop", "clip", "promise_in_bounds"))} if draw.chance(0.2) else {}
    )
    if keywords and keywords["mode"] == "promise_in_bounds":
        keywords = {"mode": "fill"}
    if function == f"{UPDATE}get":
        return call(function, x, index, **keywords), None
    value = draw.scalar() if draw.chance(0.5) else draw.value(shape=())
    if function == f"{UPDATE}apply":
        return call(function, x, index, ["name", "jnp.negative"], **keywords), (x.shape, x.kind)
    return call(function, x, index, value, **keywords), (x.shape, x.kind)


def odds_and_ends(draw: Draw, function: str) -> Made:
    """Functions whose arguments are like those of no other."""
    name = function.rpartition(".")[2]
    n = draw.integer(0, 4)
    if name in ("tril_indices", "triu_indices", "diag_indices"):
        return call(function, n), [((n * (n + 1) // 2 if "tri" in name else n,), "i")] * 2
    if name in ("diag_indices_from", "triu_indices_from"):
        return call(function, draw.value(shape=(n, n))), None
    if name == "indices":
        shape = draw.shape(draw.integer(0, 2))
        return call(function, tupled(shape), sparse=draw.chance(0.3)), None
    if name == "mask_indices":
        return call(function, n, ["name", draw.pick(("jnp.tril", "jnp.triu"))]), None
    if name == "kaiser":
        return call(function, n, draw.scalar("f")), ((n,), "f")
    if name in ("fftfreq", "rfftfreq"):
        return call(function, draw.integer(1, 5)), None
    if name == "ravel_multi_index":
        x = draw.value("iu")
        places = tupled([x, draw.value("iu", shape=x.shape)])
        mode = draw.pick(("clip", "wrap"))
        return call(function, places, tupled([2, 3]), mode=mode), (x.shape, "i")
    if name in ("fromfunction", "apply_along_axis", "apply_over_axes", "vectorize"):
        if name == "fromfunction":
            return call(function, ["name", "jnp.add"], tupled(draw.shape(2))), None
        x = draw.value(least=1)
        if name == "vectorize":
            return call("jnp.vectorize(jnp.square)", x), (x.shape, x.kind)
        axis = draw.own_axis(len(x.shape))
        along = ["name", draw.pick(("jnp.sum", "jnp.max", "jnp.sort"))]
        if name == "apply_over_axes":
            return call(function, ["name", "jnp.sum"], x, tupled([axis])), None
        return call(function, along, axis, x), None
    if name == "piecewise":
        x = draw.value("f")
        conditions = ["list", draw.value("b", shape=x.shape).reference]
        functions = ["list", ["name", "jnp.negative"], ["name", "jnp.square"]]
        return call(function, x, conditions, functions), (x.shape, "f")
    if name == "ix_":
        return call(function, draw.value("iu", rank=1), draw.value("iu", rank=1)), None
    return _updates_by_position(draw, function, name, draw.value(least=1))


def _updates_by_position(draw: Draw, function: str, name: str, x: Value) -> Made:
    axis = draw.own_axis(len(x.shape))
    m = x.shape[axis] if axis < len(x.shape) else 1
    if name == "average":
        weights = {"weights": draw.value("f", shape=(m,))} if draw.chance(0.5) else {}
        return call(function, x, axis=axis, **weights), None
    if name == "choose":
        choices = ["list", *(draw.value(shape=()).reference for _ in "ab")]
        index = draw.value("i")
        return call(function, index, choices, mode=draw.pick(("clip", "wrap"))), None
    if name in ("compress", "extract"):
        mask = draw.array("bool", (draw.size(m),) if name == "compress" else x.shape, 0, 1)
        keywords = {"axis": axis} if name == "compress" else {}
        return call(function, mask, x, **keywords), None
    if name == "delete":
        return call(function, x, draw.integer(0, m - 1), axis=axis), None
    if name == "insert":
        return call(function, x, draw.integer(0, m), draw.scalar(), axis=axis), None
    if name == "fill_diagonal":
        square = draw.value(least=2)
        result = (square.shape, square.kind)
        return call(function, square, draw.scalar(), inplace=False), result
    if name in ("put", "place"):
        mask = draw.array("bool", x.shape, 0, 1)
        places = mask if name == "place" else draw.array("int32", (2,), -m, m - 1)
        return call(function, x, places, ["list", 1, 2], inplace=False), (x.shape, x.kind)
    if name == "put_along_axis":
        places = draw.array("int32", tuple(min(k, 1) for k in x.shape), -m, m - 1)
        words = (places, draw.scalar(), axis)
        return call(function, x, *words, inplace=False), (x.shape, x.kind)
    if name in ("cumulative_sum", "cumulative_prod"):
        initial = draw.chance(0.4)
        return call(function, x, axis=axis, include_initial=initial), None
    if name == "lexsort":
        other = draw.value(shape=x.shape)
        return call(function, tupled([x, other]), axis=axis), (x.shape, "i")
    if name == "minmax":
        return call(function, x, axis=axis), None
    if name == "top_k":
        return call(function, x, draw.integer(0, m), axis=axis), None
    if name in ("unique_all", "unique_inverse"):
        return call(function, x, size=draw.integer(0, 5)), None
    if name == "unpackbits":
        return call(function, draw.value("u", least=1)), None
    if name in ("polydiv", "polyfit"):
        a, b = draw.value("if", shape=(4,)), draw.value("if", shape=(4 if "fit" in name else 2,))
        return call(function, a, b, *([1] if "fit" in name else [])), None
    if name == "histogram_bin_edges":
        return call(function, x, bins=draw.integer(1, 4)), None
    if name == "histogram2d":
        a, b = draw.value("if", shape=(m,)), draw.value("if", shape=(m,))
        return call(function, a, b, bins=draw.integer(1, 3)), None
    if name == "histogramdd":
        return call(function, draw.value("if", shape=(3, 2)), bins=2), None
    if name in ("promote_types", "can_cast", "issubdtype"):
        return call(function, draw.dtype(), draw.dtype()), None
    if name == "isdtype":
        kind = draw.pick(("bool", "integral", "real floating", "numeric"))
        return call(function, ["attribute", x.reference, "dtype"], kind), None
    if name in ("broadcast_shapes",):
        return call(function, tupled(x.shape), tupled(draw.broadcastable(x.shape))), None
    if name == "einsum_path":
        return call("jnp.einsum", "...i->...", x), (x.shape[:-1], x.kind)
    if name in ("multi_dot", "tensorsolve", "tensorinv", "eig", "eigvals"):
        a = draw.value("ffc", shape=(2, 2))
        if name == "multi_dot":
            return call(function, ["list", *[a.reference] * 3]), None
        if name == "tensorsolve":
            return call(function, a, draw.value("f", shape=(2,))), ((2,), "f")
        return call(function, *([a, 1] if name == "tensorinv" else [a])), None
    if name == "empty":
        return call("jnp.shape", ["call", function, [tupled(x.shape)], {}]), None
    return call(function, x), None


def _names(prefix: str, text: str) -> list[str]:
    return [prefix + name for name in text.split()]


NUMPY: dict[Maker, list[str]] = {
    unary: _names(
        "jnp.",
        "abs absolute negative positive sign square conj conjugate real imag ceil floor trunc rint "
        "fabs bitwise_count bitwise_invert bitwise_not invert copy ravel reciprocal around round "
        "spacing fix asarray array sort_complex",
    )
    + _names(METHOD, "conj round ravel flatten copy"),
    unary_floating: _names(
        "jnp.",
        "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh acos asin atan "
        "acosh asinh atanh exp exp2 expm1 log log2 log10 log1p sqrt cbrt deg2rad rad2deg degrees "
        "radians sinc i0 angle unwrap",
    ),
    predicate: _names(
        "jnp.",
        "isfinite isinf isnan isneginf isposinf iscomplex isreal signbit logical_not "
        "iscomplexobj isrealobj",
    ),
    binary: _names(
        "jnp.",
        "add subtract multiply divide true_divide power pow float_power maximum minimum fmax fmin "
        "logical_and logical_or logical_xor logaddexp",
    ),
    binary_real: _names("jnp.", "floor_divide mod remainder fmod heaviside"),
    binary_floating: _names("jnp.", "arctan2 atan2 hypot copysign nextafter logaddexp2 ldexp"),
    binary_integer: _names(
        "jnp.",
        "bitwise_and bitwise_or bitwise_xor left_shift right_shift bitwise_left_shift "
        "bitwise_right_shift gcd lcm",
    ),
    comparison: _names("jnp.", "equal not_equal less less_equal greater greater_equal"),
    two_results: _names("jnp.", "divmod frexp modf"),
    arithmetic: _names(OPERATOR, "+ - * / // % ** & | ^ << >> ~ < <= > >= == !="),
    reduction: _names(
        "jnp.",
        "sum prod mean var std max min amax amin any all ptp median nansum nanprod nanmean nanvar "
        "nanstd nanmax nanmin nanmedian count_nonzero",
    )
    + _names(METHOD, "sum prod mean var std max min any all ptp"),
    index_reduction: _names("jnp.", "argmax argmin nanargmax nanargmin") + [f"{METHOD}argmax"],
    quantiles: _names("jnp.", "quantile percentile nanquantile nanpercentile"),
    cumulative: _names("jnp.", "cumsum cumprod nancumsum nancumprod")
    + _names(METHOD, "cumsum cumprod"),
    ordering: _names("jnp.", "sort argsort partition argpartition"),
    reshaping: ["jnp.reshape", f"{METHOD}reshape"],
    rearranging: _names(
        "jnp.",
        "transpose permute_dims swapaxes moveaxis rollaxis flip roll rot90 tril triu diagonal "
        "trace expand_dims repeat tile diff gradient resize unstack pad fliplr flipud fft.fftshift "
        "fft.ifftshift matrix_transpose",
    ),
    simple_shape: _names(
        "jnp.",
        "squeeze atleast_1d atleast_2d atleast_3d diag diagflat shape ndim size ediff1d trapezoid "
        "cov corrcoef vander trim_zeros result_type isscalar packbits tril_indices_from",
    )
    + _names(METHOD, "squeeze astype item tolist"),
    joining: _names(
        "jnp.",
        "concatenate concat stack vstack hstack dstack column_stack append broadcast_arrays "
        "meshgrid block",
    ),
    splitting: _names("jnp.", "split array_split vsplit hsplit dsplit"),
    broadcasting: ["jnp.broadcast_to"],
    choosing: _names(
        "jnp.", "where clip select isclose allclose array_equal array_equiv nan_to_num"
    ),
    contraction: _names(
        "jnp.",
        "matmul dot inner vdot vecdot outer kron convolve correlate polymul polyadd polysub matvec "
        "vecmat tensordot cross einsum linalg.matmul linalg.outer linalg.vecdot linalg.cross "
        "linalg.tensordot",
    )
    + [f"{OPERATOR}@"],
    lookup: _names(
        "jnp.",
        "take take_along_axis searchsorted digitize interp bincount histogram unique nonzero "
        "flatnonzero argwhere unique_values unique_counts union1d intersect1d setdiff1d setxor1d "
        "isin unravel_index polyval polyder polyint roots poly",
    ),
    creation: _names(
        "jnp.",
        "zeros ones full zeros_like ones_like full_like empty_like arange linspace logspace "
        "geomspace eye identity tri hanning hamming bartlett blackman asarray array",
    ),
    conversion: ["jnp.astype", f"{METHOD}astype", "lax.convert_element_type", f"{METHOD}view"],
    linear_algebra: _names(
        "jnp.linalg.",
        "svd svdvals pinv matrix_rank qr norm matrix_norm vector_norm solve matrix_power cholesky "
        "eigh eigvalsh lstsq inv det slogdet cond trace diagonal matrix_transpose",
    ),
    fourier: _names(
        "jnp.fft.", "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn"
    ),
    activation: _names(
        "nn.",
        "celu elu gelu glu hard_sigmoid hard_silu hard_tanh identity leaky_relu log_sigmoid mish "
        "relu relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid squareplus "
        "log1mexp log_softmax logsumexp logmeanexp one_hot softmax standardize tanh hard_swish "
        "swish",
    ),
    odds_and_ends: _names(
        "jnp.",
        "tril_indices triu_indices diag_indices diag_indices_from triu_indices_from indices "
        "mask_indices kaiser fft.fftfreq fft.rfftfreq ravel_multi_index fromfunction "
        "apply_along_axis apply_over_axes vectorize piecewise ix_ average choose compress extract "
        "delete insert fill_diagonal put place put_along_axis cumulative_sum cumulative_prod "
        "lexsort minmax top_k unique_all unique_inverse unpackbits polydiv polyfit "
        "histogram_bin_edges histogram2d histogramdd promote_types can_cast issubdtype isdtype "
        "broadcast_shapes einsum_path linalg.multi_dot linalg.tensorsolve linalg.tensorinv "
        "linalg.eigvals iterable empty",
    ),
    reading: ["getitem"] * 12,
    updating: _names(UPDATE, "set add multiply min max subtract divide power get apply mul"),
}
