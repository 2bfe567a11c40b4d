"""How calls of functions of `lax` are drawn, by family."""

from __future__ import annotations

import math
from typing import Any

from drawing import ALL, Draw, Shape, Value
from numpy_operations import Made, Maker, call, floating, tupled


def unary(draw: Draw, function: str) -> Made:
    x = draw.value()
    return call(function, x), (x.shape, x.kind)


def unary_floating(draw: Draw, function: str) -> Made:
    x = draw.value("fffffc")
    return call(function, x), (x.shape, x.kind)


def unary_real(draw: Draw, function: str) -> Made:
    x = draw.value("f")
    return call(function, x), (x.shape, "b" if "is_" in function else "f")


def unary_integer(draw: Draw, function: str) -> Made:
    x = draw.value("biu" if "not" in function else "iu")
    return call(function, x), (x.shape, x.kind)


def complex_parts(draw: Draw, function: str) -> Made:
    x = draw.value("c" if draw.chance(0.8) else ALL)
    return call(function, x), (x.shape, "c" if function == "lax.conj" else "f")


def _second(draw: Draw, x: Value) -> Any:
    """A second operand: an array like the first or a number."""
    if draw.chance(0.2):
        return draw.scalar("i" if x.kind in "iu" and not draw.mistake() else "")
    if draw.mistake():
        return draw.value()
    return draw.like(x)


def binary(draw: Draw, function: str) -> Made:
    name = function.rpartition(".")[2]
    kinds = {"rem": "iuf", "min": ALL, "atan2": "f", "nextafter": "f", "complex": "f"}
    kinds |= dict.fromkeys(("igamma", "igammac", "zeta", "polygamma", "pow"), "f")
    kinds |= dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), "biu")
    kinds |= dict.fromkeys(
        ("shift_left", "shift_right_arithmetic", "shift_right_logical", "mulhi"), "iu"
    )
    comparing = name in ("eq", "ne", "lt", "le", "gt", "ge")
    x = draw.value(kinds.get(name, ALL if comparing else "iufffc"))
    y = _second(draw, x)
    words = (x, y) if draw.chance(0.8) else (y, x)
    kind = "b" if comparing else "c" if name == "complex" else x.kind
    return call(function, *words), (x.shape, kind)


def ternary(draw: Draw, function: str) -> Made:
    name = function.rpartition(".")[2]
    if name == "betainc":
        x = draw.value("f")
        return call(function, draw.like(x), draw.like(x), x), (x.shape, "f")
    if name == "clamp":
        x = draw.value("iuf")
        low, high = (draw.like(x, ()) if draw.chance(0.5) else draw.scalar(x.kind) for _ in "ab")
        return call(function, low, x, high), (x.shape, x.kind)
    x = draw.value()
    pred = draw.value("b", shape=x.shape if draw.chance(0.7) else ())
    if name == "select_n":
        return call(function, pred, x, draw.like(x)), (x.shape, x.kind)
    return call(function, pred, x, draw.like(x)), (x.shape, x.kind)


def parameters(draw: Draw, function: str) -> Made:
    """Elementwise functions with something static."""
    name = function.rpartition(".")[2]
    if name == "integer_pow":
        x = draw.value("iufffc")
        return call(function, x, draw.integer(-2, 4)), (x.shape, x.kind)
    if name == "round":
        x = draw.value("f")
        method = draw.pick(("AWAY_FROM_ZERO", "TO_NEAREST_EVEN"))
        return call(function, x, ["name", f"lax.RoundingMethod.{method}"]), (x.shape, "f")
    if name == "reduce_precision":
        x = draw.value("f")
        return call(function, x, draw.integer(2, 8), draw.integer(1, 10)), (x.shape, "f")
    x = draw.value()
    if name == "bitcast_convert_type":
        dtype = draw.dtype("iuf")
        return call(function, x, dtype), None
    dtype = draw.dtype("c" if x.kind == "c" else ALL)
    return call(function, x, dtype), (x.shape, dtype[0] if dtype[0] in ALL else "f")


def cumulative(draw: Draw, function: str) -> Made:
    x = draw.value("iuff" if "log" not in function else "f", least=1)
    words = {"axis": draw.own_axis(len(x.shape))}
    if draw.chance(0.4):
        words["reverse"] = True
    return call(function, x, **words), (x.shape, x.kind)


def reduction(draw: Draw, function: str) -> Made:
    kinds = "biu" if function.endswith(("_and", "_or", "_xor")) else "iufffc"
    x = draw.value(kinds)
    axes = draw.axes(len(x.shape))
    shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    if function in ("lax.argmax", "lax.argmin"):
        axis = draw.own_axis(len(x.shape))
        shape = tuple(n for i, n in enumerate(x.shape) if i != axis)
        return call(function, x, axis, draw.dtype("i")), (shape, "i")
    if function == "lax.reduce":
        computation = draw.pick(("add", "mul", "max", "min"))
        words = (draw.scalar(x.kind), ["name", f"lax.{computation}"], tupled(axes))
        return call(function, x, *words), (shape, x.kind)
    return call(function, x, tupled(axes)), (shape, x.kind)


def moving(draw: Draw, function: str) -> Made:
    """Functions that change shapes or places."""
    name = function.rpartition(".")[2]
    x = draw.value(least=1)
    rank = len(x.shape)
    axis = draw.own_axis(rank)
    shape: Shape
    if name == "transpose":
        order = draw.permutation(rank)
        return call(function, x, tupled(order)), (tuple(x.shape[i] for i in order), x.kind)
    if name == "rev":
        return call(function, x, tupled(draw.axes(rank))), (x.shape, x.kind)
    if name == "broadcast":
        sizes = draw.shape(draw.integer(0, 2))
        return call(function, x, tupled(sizes)), (sizes + x.shape, x.kind)
    if name == "broadcast_in_dim":
        sizes = draw.shape(1)
        axes = [i + 1 + int(draw.mistake()) for i in range(rank)]
        return call(function, x, tupled(sizes + x.shape), tupled(axes)), (sizes + x.shape, x.kind)
    if name == "reshape":
        shape = (math.prod(x.shape), draw.size(1))
        return call(function, x, tupled(shape)), (shape, x.kind)
    if name == "expand_dims":
        return call(function, x, tupled([axis])), None
    if name == "squeeze":
        axes = [i for i, n in enumerate(x.shape) if n == 1 or draw.mistake()]
        shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
        return call(function, x, tupled(axes)), (shape, x.kind)
    if name == "collapse":
        return call(function, x, 0, rank), ((math.prod(x.shape),), x.kind)
    if name == "concatenate":
        other = draw.like(x)
        return call(function, ["list", x.reference, other], axis), None
    if name == "pad":
        low = -1 if draw.chance(0.2) else 0
        config = tupled(
            [tupled([draw.integer(low, 2) for _ in "ab"] + [draw.integer(0, 1)])] * rank
        )
        value = draw.scalar(x.kind) if draw.chance(0.7) else draw.like(x, ())
        return call(function, x, value, config), None
    if name == "tile":
        reps = [draw.integer(0, 2) for _ in range(rank)]
        shape = tuple(n * r for n, r in zip(x.shape, reps, strict=True))
        return call(function, x, tupled(reps)), (shape, x.kind)
    if name == "split":
        n = x.shape[axis] if axis < rank else 1
        return call(function, x, tupled([draw.size(n // 2), n - n // 2]), axis), None
    if name == "broadcast_to_rank":
        return call(function, x, rank + draw.integer(0, 1)), None
    return call(function, x), None


def slicing(draw: Draw, function: str) -> Made:
    name = function.rpartition(".")[2]
    x = draw.value(least=1)
    rank = len(x.shape)
    axis = draw.own_axis(rank)
    n = x.shape[axis] if axis < rank else 1
    starts = [draw.integer(0, m) for m in x.shape]
    sizes = [draw.size(draw.integer(0, m)) for m in x.shape]
    limits = [draw.size(draw.integer(s, m)) for s, m in zip(starts, x.shape, strict=True)]
    if name == "slice":
        words = [] if draw.chance(0.5) else [tupled([draw.integer(1, 2) for _ in starts])]
        return call(function, x, tupled(starts), tupled(limits), *words), None
    if name == "slice_in_dim":
        stride = draw.integer(1, 2)
        start, limit = starts[axis % rank], limits[axis % rank]
        return call(function, x, start, limit, stride=stride, axis=axis), None
    if name == "index_in_dim":
        return call(function, x, draw.integer(-n, n - 1), axis=axis), None
    at = draw.value("iu", shape=()) if draw.chance(0.6) else draw.integer(-1, n)
    if name == "dynamic_slice":
        places = [draw.value("i", shape=()) if draw.chance(0.5) else s for s in starts]
        shape = tuple(sizes)
        return call(function, x, tupled(places), tupled(sizes)), (shape, x.kind)
    if name == "dynamic_slice_in_dim":
        return call(function, x, at, sizes[axis % rank], axis=axis), None
    if name == "dynamic_index_in_dim":
        return call(function, x, at, axis, draw.chance(0.5)), None
    if name == "dynamic_update_slice":
        update = draw.like(x, tuple(draw.integer(0, m) for m in x.shape))
        places = [draw.value("i", shape=()) if draw.chance(0.5) else s for s in starts]
        return call(function, x, update, tupled(places)), (x.shape, x.kind)
    if name == "dynamic_update_index_in_dim":
        update = draw.like(x, tuple(m for i, m in enumerate(x.shape) if i != axis))
        return call(function, x, update, at, axis), (x.shape, x.kind)
    update = draw.like(x, tuple(min(m, 1) if i == axis else m for i, m in enumerate(x.shape)))
    return call(function, x, update, at, axis), (x.shape, x.kind)


def gathering(draw: Draw, function: str) -> Made:
    """Gathers of rows and scatters into rows."""
    x = draw.value("iuff", rank=2, nonempty=True)
    n, m = (*x.shape, 1, 1)[:2]
    count = draw.integer(0, 3)
    index = draw.array("int32", (count, 1), -1, n)
    mode = draw.pick((None, "clip", "fill", "drop")) if "gather" in function else None
    keywords = {"mode": mode} if mode else {}
    if function == "lax.gather":
        numbers = [tupled([1]), tupled([0]), tupled([0])]
        record = ["call", "lax.GatherDimensionNumbers", numbers, {}]
        sizes = tupled([1, draw.size(m)])
        return call(function, x, index, record, sizes, **keywords), ((count, m), x.kind)
    numbers = [tupled([1]), tupled([0]), tupled([0])]
    record = ["call", "lax.ScatterDimensionNumbers", numbers, {}]
    updates = draw.like(x, (count, m))
    return call(function, x, index, updates, record, **keywords), (x.shape, x.kind)


def contraction(draw: Draw, function: str) -> Made:
    n, m, k = draw.shape(3)
    keywords: dict[str, Any] = {}
    x = draw.value("iufffc", shape=(n, k))
    if draw.chance(0.2):
        keywords["preferred_element_type"] = draw.dtype("if")
    if function == "lax.dot":
        return call(function, x, draw.like(x, (draw.size(k), m)), **keywords), ((n, m), x.kind)
    if function == "lax.batch_matmul":
        x = draw.value("iufff", shape=(2, n, k))
        return call(function, x, draw.like(x, (2, k, m))), ((2, n, m), x.kind)
    numbers = tupled([tupled([tupled([1]), tupled([0])]), tupled([["tuple"], ["tuple"]])])
    words = call(function, x, draw.like(x, (k, m)), numbers, **keywords)
    return words, ((n, m), x.kind)


def sorting(draw: Draw, function: str) -> Made:
    x = draw.value("biufff", least=1)
    axis = draw.own_axis(len(x.shape))
    if function == "lax.sort":
        return call(function, x, dimension=axis), (x.shape, x.kind)
    if function == "lax.sort_key_val":
        y = draw.value(shape=x.shape)
        return call(function, x, y, dimension=axis), [(x.shape, x.kind), (x.shape, y.kind)]
    n = x.shape[-1] if x.shape else 1
    k = draw.size(draw.integer(0, n))
    shape = (*x.shape[:-1], k)
    return call(function, x, k), [(shape, x.kind), (shape, "i")]


def windows(draw: Draw, function: str) -> Made:
    if function == "lax.reduce_window":
        x = draw.value("iff", rank=2)
        computation = draw.pick(("add", "max", "min", "mul"))
        window = tupled([draw.integer(1, 2) for _ in "ab"])
        strides = tupled([draw.integer(1, 2) for _ in "ab"])
        padding: Any = draw.pick(("valid", "same"))
        if draw.chance(0.4):
            padding = tupled([tupled([draw.integer(0, 1) for _ in "ab"]) for _ in "cd"])
        start = draw.scalar(x.kind)
        words = (start, ["name", f"lax.{computation}"], window, strides, padding)
        return call(function, x, *words), None
    x = draw.value("f", shape=(1, 2, draw.integer(1, 4)))
    kernel = draw.like(x, (draw.integer(1, 2), draw.size(2), draw.integer(1, 2)))
    padding = draw.pick(("VALID", "SAME"))
    return call(function, x, kernel, tupled([draw.integer(1, 2)]), padding), None


def creation(draw: Draw, function: str) -> Made:
    dtype = draw.dtype("iuf")
    kind = dtype[0] if dtype[0] in ALL else "f"
    if function == "lax.iota":
        n = draw.integer(0, 4)
        return call(function, dtype, n), ((n,), kind)
    shape = draw.shape(draw.integer(1, 2))
    if function == "lax.broadcasted_iota":
        axis = draw.own_axis(len(shape))
        return call(function, dtype, tupled(shape), axis), (shape, kind)
    if function == "lax.full":
        keywords = {"dtype": dtype} if draw.chance(0.5) else {}
        return call(function, tupled(shape), draw.scalar(), **keywords), (shape, kind)
    x = draw.value()
    return call(function, x, draw.scalar()), (x.shape, x.kind)


def passing(draw: Draw, function: str) -> Made:
    x = draw.value()
    return call(function, x), (x.shape, x.kind)


def linear_algebra(draw: Draw, function: str) -> Made:
    n = draw.integer(1, 3)
    x = draw.value("ffffc", shape=(n, draw.size(n)))
    if function == "lax.linalg.triangular_solve":
        b = draw.like(x, (n, 2))
        words = {"left_side": True, "lower": draw.chance(0.5), "unit_diagonal": draw.chance(0.3)}
        return call(function, x, b, **words), ((n, 2), floating(x.kind))
    if function == "lax.linalg.householder_product":
        return call(function, x, draw.like(x, (n,))), (x.shape, x.kind)
    return call(function, x), None


def odds_and_ends(draw: Draw, function: str) -> Made:
    """Functions whose arguments are like those of no other."""
    name = function.rpartition(".")[2]
    if name in ("broadcast_shapes", "shape_as_value"):
        shapes = [draw.shape(2) for _ in ("ab" if "b" in name else "a")]
        return call(function, *map(tupled, shapes)), None
    if name in ("igamma_grad_a", "random_gamma_grad"):
        x = draw.value("f")
        return call(function, draw.like(x), x), (x.shape, "f")
    if name == "polynomial":
        x, p = draw.value("f"), draw.value("f", rank=1)
        return call(function, x, p), (x.shape, "f")
    if name in ("conv", "conv_with_general_padding", "conv_general_dilated_patches"):
        x = draw.value("f", shape=(1, 2, 3, 3))
        if name.endswith("patches"):
            return call(function, x, tupled([2, 2]), tupled([1, 1]), "VALID"), None
        kernel = draw.like(x, (2, 2, 2, 1))
        ones = tupled([1, 1])
        dilation = [ones, ones] if "general" in name else []
        padding = tupled([ones, ones]) if dilation else draw.pick(("SAME", "VALID"))
        return call(function, x, kernel, ones, padding, *dilation), None
    if name == "fft":
        x = draw.value("c", rank=2, nonempty=True)
        kind = ["name", draw.pick(("lax.FftType.FFT", "lax.FftType.IFFT"))]
        return call(function, x, kind, tupled(x.shape[1:])), (x.shape, "c")
    if name == "ragged_dot":
        x, y = draw.value("f", shape=(4, 2)), None
        y = draw.like(x, (2, 2, 3))
        sizes = ["array", "int32", [2], draw.pick(([1, 3], [0, 4], [2, 2], [1, 1]))]
        return call(function, x, y, sizes), ((4, 3), "f")
    if name in ("scatter_sub", "scatter_apply"):
        x = draw.value("if", rank=2, nonempty=True)
        index = draw.array("int32", (1, 1), 0, 1)
        record = [
            "call",
            "lax.ScatterDimensionNumbers",
            [tupled([1]), tupled([0]), tupled([0])],
            {},
        ]
        if name == "scatter_apply":
            words = (index, ["name", "jnp.negative"], record)
            shape = {"update_shape": tupled([1, x.shape[-1]])}
            return call(function, x, *words, **shape), (x.shape, x.kind)
        update = draw.like(x, (1, x.shape[-1]))
        return call(function, x, index, update, record), (x.shape, x.kind)
    x = draw.value(least=1)
    if name in ("stack", "unstack"):
        arrays = ["list", x.reference, draw.like(x)] if name == "stack" else x
        return call(function, arrays, axis=draw.own_axis(len(x.shape))), None
    if name == "broadcast_like":
        return call(function, draw.value(shape=draw.broadcastable(x.shape)), x), None
    if name == "index_take":
        index = draw.array("int32", (2,), 0, 1)
        return call(function, x, tupled([index]), tupled([0])), None
    if name in ("cholesky", "cholesky_update", "eigh", "tridiagonal", "symmetric_product"):
        a = draw.value("f", shape=(2, 2))
        if name in ("cholesky", "eigh", "tridiagonal"):
            draw.own(a.reference)
            square = ["call", "jnp.matmul", [a.reference, ["attribute", a.reference, "T"]], {}]
            return call(
                function, ["call", "jnp.add", [square, ["call", "jnp.eye", [2], {}]], {}]
            ), None
        other = draw.like(a, (2,) if name == "cholesky_update" else (2, 2))
        return call(function, a, other), ((2, 2), "f")
    if name in ("hessenberg", "schur", "qdwh"):
        return call(function, draw.value("ffc", shape=(2, 2))), None
    if name == "tridiagonal_solve":
        d = draw.value("f", shape=(3,))
        return call(function, draw.like(d), d, draw.like(d), draw.like(d, (3, 2))), ((3, 2), "f")
    return call(function, x), None


def _names(text: str) -> list[str]:
    return ["lax." + name for name in text.split()]


LAX: dict[Maker, list[str]] = {
    unary: _names("abs neg sign square"),
    unary_floating: _names(
        "acos acosh asin asinh atan atanh cbrt cos cosh exp exp2 expm1 log log1p log2 logistic "
        "rsqrt sin sinh sqrt tan tanh reciprocal"
    ),
    unary_real: _names(
        "ceil floor is_finite erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e"
    ),
    unary_integer: _names("bitwise_not clz population_count"),
    complex_parts: _names("real imag conj"),
    binary: _names(
        "add sub mul div rem max min atan2 nextafter complex igamma igammac zeta polygamma pow "
        "bitwise_and bitwise_or bitwise_xor shift_left shift_right_arithmetic shift_right_logical "
        "mulhi eq ne lt le gt ge"
    ),
    ternary: _names("clamp select select_n betainc"),
    parameters: _names(
        "integer_pow round reduce_precision bitcast_convert_type convert_element_type"
    ),
    cumulative: _names("cumsum cumprod cummax cummin cumlogsumexp"),
    reduction: _names(
        "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor argmax "
        "argmin reduce"
    ),
    moving: _names(
        "transpose rev broadcast broadcast_in_dim reshape expand_dims squeeze collapse concatenate "
        "pad tile split broadcast_to_rank"
    ),
    slicing: _names(
        "slice slice_in_dim index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_index_in_dim "
        "dynamic_update_slice dynamic_update_index_in_dim dynamic_update_slice_in_dim"
    ),
    gathering: _names("gather scatter scatter_add scatter_mul scatter_min scatter_max"),
    contraction: _names("dot dot_general batch_matmul"),
    sorting: _names("sort sort_key_val top_k"),
    windows: _names("reduce_window conv_general_dilated conv_transpose"),
    creation: _names("iota broadcasted_iota full full_like"),
    odds_and_ends: _names(
        "broadcast_shapes shape_as_value igamma_grad_a random_gamma_grad polynomial conv "
        "conv_with_general_padding conv_general_dilated_patches fft ragged_dot scatter_sub "
        "scatter_apply stack unstack broadcast_like index_take dtype one_minus_square "
        "linalg.cholesky linalg.cholesky_update linalg.eigh linalg.tridiagonal "
        "linalg.symmetric_product linalg.hessenberg linalg.schur linalg.qdwh "
        "linalg.tridiagonal_solve"
    ),
    passing: _names("stop_gradient optimization_barrier"),
    linear_algebra: _names(
        "linalg.triangular_solve linalg.lu linalg.qr linalg.householder_product linalg.svd"
    ),
}
