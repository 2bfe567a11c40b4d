"""How calls of functions of `random` are drawn, by family."""

from __future__ import annotations

from typing import Any

from drawing import Draw
from numpy_operations import Made, Maker, call, tupled


def _key(draw: Draw) -> list[Any]:
    """A key of a number, or now and then of a value."""
    if draw.chance(0.2):
        return ["call", "random.key", [draw.value("iu", shape=()).reference], {}]
    return ["call", "random.key", [draw.integer(0, 9)], {}]


def _dtype(draw: Draw, kinds: str, share: float = 0.5) -> dict[str, Any]:
    return {"dtype": draw.dtype(kinds)} if draw.chance(share) else {}


def _parameter(draw: Draw, shape: tuple[int, ...], kinds: str = "f") -> Any:
    """A parameter of a distribution: a number or an array."""
    if draw.chance(0.5):
        return draw.scalar(draw.pick(kinds))
    return draw.value(kinds, shape=draw.broadcastable(shape))


def keys(draw: Draw, function: str) -> Made:
    name = function.rpartition(".")[2]
    if name in ("key", "PRNGKey"):
        seed = draw.value("iu", shape=()) if draw.chance(0.3) else draw.integer(-1, 9)
        return call(function, seed), None
    if name == "wrap_key_data":
        return call(function, draw.array("uint32", (*draw.shape(), draw.size(2)), 0, 9)), None
    words: list[Any] = []
    if name == "fold_in":
        words = [draw.value("iu", shape=()) if draw.chance(0.3) else draw.integer(0, 9)]
    if name == "split" and draw.chance(0.7):
        words = [draw.integer(0, 3) if draw.chance(0.6) else tupled(draw.shape(2))]
    return call(function, _key(draw), *words), None


def sampling(draw: Draw, function: str) -> Made:
    """Distributions without parameters, or with simple ones."""
    name = function.rpartition(".")[2]
    shape = draw.shape()
    if name == "bits":
        return call(function, _key(draw), tupled(shape), **_dtype(draw, "u")), (shape, "u")
    if name == "rademacher":
        return call(function, _key(draw), tupled(shape), **_dtype(draw, "if")), (shape, "i")
    if name == "bernoulli":
        words = [] if draw.chance(0.2) else [_parameter(draw, shape)]
        words += [tupled(shape)] if words and draw.chance(0.7) else []
        return call(function, _key(draw), *words), None
    if name == "randint":
        low, high = (_parameter(draw, shape, "i") for _ in "ab")
        words = [_key(draw), tupled(shape), low, high]
        return call(function, *words, **_dtype(draw, "iu")), (shape, "i")
    if name == "truncated_normal":
        low, high = (_parameter(draw, shape) for _ in "ab")
        words = [_key(draw), low, high, tupled(shape)]
        return call(function, *words, **_dtype(draw, "f")), (shape, "f")
    keywords = _dtype(draw, "fffc" if name == "normal" else "f")
    if name == "uniform" and draw.chance(0.5):
        keywords |= {"minval": _parameter(draw, shape), "maxval": _parameter(draw, shape)}
    return call(function, _key(draw), tupled(shape), **keywords), (shape, "f")


def resampling(draw: Draw, function: str) -> Made:
    name = function.rpartition(".")[2]
    if name == "categorical":
        logits = draw.value("f", least=1)
        keywords: dict[str, Any] = {}
        if draw.chance(0.5):
            keywords["axis"] = draw.axis(len(logits.shape))
        elif draw.chance(0.5):
            keywords["shape"] = tupled((draw.size(2), *logits.shape[:-1]))
        return call(function, _key(draw), logits, **keywords), None
    x: Any = draw.integer(0, 4) if draw.chance(0.3) else draw.value(least=1)
    own = len(x.shape) if not isinstance(x, int) else 1
    keywords = {"axis": draw.axis(own)} if draw.chance(0.4) else {}
    if name == "permutation":
        if draw.chance(0.3):
            keywords["independent"] = draw.chance(0.5)
        return call(function, _key(draw), x, **keywords), None
    words = [tupled(draw.shape(draw.integer(0, 2)))] if draw.chance(0.7) else []
    if draw.chance(0.4):
        keywords["replace"] = draw.chance(0.5)
    if draw.chance(0.3):
        axis = keywords.get("axis", 0)
        n = x if isinstance(x, int) else x.shape[axis] if -own <= axis < own else 1
        p = draw.value("f", shape=(n,))
        keywords["p"] = ["call", "jnp.abs", [p.reference], {}]
    return call(function, _key(draw), x, *words, **keywords), None


def _names(text: str) -> list[str]:
    return ["random." + name for name in text.split()]


RANDOM: dict[Maker, list[str]] = {
    keys: _names("key PRNGKey split fold_in clone key_data wrap_key_data key_impl key_dtype"),
    sampling: _names(
        "uniform normal truncated_normal exponential gumbel laplace logistic cauchy bernoulli bits "
        "rademacher randint"
    ),
    resampling: _names("categorical choice permutation"),
}
