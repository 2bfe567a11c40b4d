"""Tracers that outlive their transformation, with the option check_tracer_leaks."""

from __future__ import annotations

import functools
import gc
import importlib.util
import re
import sys
import threading
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

X = np.ones(2, np.float32)


@pytest.fixture(autouse=True)
def new_objects() -> None:
    """Leave out of searches what was made before the test: with thousands of tests in memory each
    search would take seconds."""
    gc.freeze()


@pytest.fixture
def young(new_objects: None) -> Iterator[Any]:
    """A copy of this module whose globals searches find."""
    spec = importlib.util.spec_from_file_location("copy_of_test_leaks", __file__)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


TRANSFORMATIONS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jit": lambda f: dt.jit(f)(X),
    "grad": lambda f: dt.grad(lambda x: jnp.sum(f(x)))(X),
    "vjp": lambda f: dt.vjp(f, X)[1](X),
    "jvp": lambda f: dt.jvp(f, (X,), (X,)),
    "linearize": lambda f: dt.linearize(f, X)[1](X),
    "vmap": lambda f: dt.vmap(f)(X),
    "jacfwd": lambda f: dt.jacfwd(f)(X),
    "jacrev": lambda f: dt.jacrev(f)(X),
    "make_jaxpr": lambda f: dt.make_jaxpr(f)(X),
    "eval_shape": lambda f: dt.eval_shape(f, X),
    "grad of jit": lambda f: dt.grad(lambda x: jnp.sum(dt.jit(f)(x)))(X),
    "vmap of grad of jit": lambda f: dt.vmap(dt.grad(dt.jit(f)))(X),
    "jit of vmap of jit": lambda f: dt.jit(dt.vmap(dt.jit(f)))(X),
    "jvp of jit": lambda f: dt.jvp(dt.jit(f), (X,), (X,)),
    "jit of hessian": lambda f: dt.jit(dt.hessian(lambda x: jnp.sum(f(x))))(X),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_leaks_are_found(name: str) -> None:
    kept: list[Any] = []

    def leaking(x: Any) -> Any:
        kept.append(jnp.sin(x))
        return x * 2.0

    with (
        pytest.raises(
            dt.errors.UnexpectedTracerError,
            match=r"kept alive by kept\[0\], where kept is a variable of",
        ),
        dt.check_tracer_leaks(True),
    ):
        TRANSFORMATIONS[name](leaking)


def test_results_of_functions_with_rules_are_found_with_their_place() -> None:
    kept: list[Any] = []

    @dt.custom_jvp
    def same(x: Any) -> Any:
        return x

    same.defjvp(lambda primals, tangents: (primals[0] * 1, tangents[0]))

    def leaking(x: Any) -> Any:
        kept.append(same(x))
        return x

    with (
        pytest.raises(dt.errors.UnexpectedTracerError, match=r"made at test_leaks\.py:\d+ \("),
        dt.check_tracer_leaks(True),
    ):
        dt.jvp(leaking, (1.0,), (1.0,))


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_functions_that_keep_nothing_pass(name: str) -> None:
    weights = jnp.arange(2.0)

    def function(x: Any) -> Any:
        inner = dt.jit(lambda y: jnp.sin(y) * x)
        return inner(x) + jnp.sum(weights)

    with dt.check_tracer_leaks(True):
        TRANSFORMATIONS[name](function)


def test_auxiliary_data_is_no_leak() -> None:
    def function(x: Any) -> Any:
        return jnp.sum(x * x), {"squares": x * x}

    with dt.check_tracer_leaks(True):
        for result in (
            dt.grad(function, has_aux=True)(X)[1],
            dt.vjp(function, X, has_aux=True)[2],
            dt.jvp(function, (X,), (X,), has_aux=True)[2],
            dt.linearize(function, X, has_aux=True)[2],
        ):
            np.testing.assert_array_equal(result["squares"], X)


# ----------------------------------------------------------- what keeps a tracer, and by which path


class Model:
    made: ClassVar[list[Any]] = []

    def __init__(self) -> None:
        self.last: Any = None
        self.hidden: list[Any] = [None, None]


class Slotted:
    __slots__ = ("kept",)


class Pair(NamedTuple):
    left: Any
    right: Any


cache: dict[Any, Any] = {}
model = Model()
slotted = Slotted()
latest: Any = None


def assign(y: Any) -> None:
    global latest
    latest = y


def collect(y: Any, seen: list[Any] = [], *, table: dict[str, Any] = {}) -> None:  # noqa: B006
    seen.append(y)


def collect_by_name(y: Any, seen: Any = (), *, table: dict[str, Any] = {}) -> None:  # noqa: B006
    table["y"] = y


def marked(y: Any) -> None:
    marked.calls = [y]  # type: ignore[attr-defined]


source: list[Any] = []


@functools.cache
def scale() -> Any:
    return source[-1] * 2


@functools.lru_cache(maxsize=4)
def scales() -> Any:
    return {"w": source[-1] * 2}


def call_cached(function: Callable[[], Any]) -> Callable[[Any], None]:
    def call(y: Any) -> None:
        source.append(y)
        function()
        source.clear()

    return call


def later(y: Any) -> None:
    def compute() -> Any:
        return y + 1

    cache["later"] = compute


def nested_later(y: Any) -> None:
    values = {"y": [y]}
    cache["later"] = functools.partial(map, lambda x: x + values["y"][0])


def rows(y: Any) -> Iterator[Any]:
    yield y
    yield 2


def begin_rows(y: Any) -> None:
    cache["rows"] = rows(y)
    next(cache["rows"])


def keep_error(y: Any) -> None:
    try:
        raise ValueError("no")
    except ValueError as error:
        cache["error"] = error


def local_class(y: Any) -> None:
    class Local:
        kept = y

    cache["class"] = Local


def objects(y: Any) -> None:
    cache["array"] = np.empty(1, object)
    cache["array"][0] = y


def keep_vjp(y: Any) -> None:
    cache["vjp"] = dt.vjp(lambda x: jnp.sin(x) * y, y)[1]


def store(wrap: Callable[[Any], Any], key: Any = "y") -> Callable[[Any], None]:
    return lambda y: cache.__setitem__(key, wrap(y))


STORED = "where cache is a global of the module "
RETURN = "Return values from the function"

# From what is done with a tracer to the path by which it is kept, and to the advice.
KINDS: dict[str, tuple[Callable[[Any], None], str, str]] = {
    "global": (assign, r"latest, a global of the module \S*test_leaks", RETURN),
    "dict": (store(lambda y: y), r"cache\['y'\], " + STORED, RETURN),
    "key that is no string": (store(lambda y: y, (1, "a")), r"cache\[\(1, 'a'\)\], ", RETURN),
    "key that is an object": (store(lambda y: y, Model), r"cache\[<type>\], ", RETURN),
    "attribute": (lambda y: setattr(model, "last", y), r"model\.last, where model is a", RETURN),
    "nested": (
        lambda y: model.hidden.__setitem__(1, {"w": (0, y)}),
        r"model\.hidden\[1\]\['w'\]\[1\], where model is a global",
        RETURN,
    ),
    "slot": (lambda y: setattr(slotted, "kept", y), r"slotted\.kept, where", RETURN),
    "attribute of a class": (
        lambda y: Model.made.append(y),
        r"Model\.made\[0\], where Model is the class \S*test_leaks\.Model",
        RETURN,
    ),
    "local class": (local_class, r"Local\.kept, where Local is the class \S*Local", RETURN),
    "named tuple": (store(lambda y: Pair(1, [y])), r"cache\['y'\]\.right\[0\], ", RETURN),
    "deque": (store(lambda y: deque([0, y])), r"cache\['y'\]\[1\], ", RETURN),
    "namespace": (store(lambda y: SimpleNamespace(a=y)), r"cache\['y'\]\.a, ", RETURN),
    "ordered dict": (store(lambda y: OrderedDict(a=y)), r"cache\['y'\]\['a'\], ", RETURN),
    "partial": (
        store(lambda y: functools.partial(print, end=y)),
        r"cache\['y'\]\.keywords\['end'\], ",
        RETURN,
    ),
    "method": (
        store(lambda y: SimpleNamespace(a=[y]).a.append),
        r"something within cache\['y'\], ",
        RETURN,
    ),
    "bound method": (
        store(lambda y: types.MethodType(print, y)),
        r"cache\['y'\]\.__self__, ",
        RETURN,
    ),
    "iterator": (store(lambda y: iter([y])), r"something within cache\['y'\], ", RETURN),
    "default argument": (
        collect,
        r"seen\[0\], where seen is a default argument of collect \(test_leaks.py:\d+\)",
        RETURN,
    ),
    "keyword-only default": (collect_by_name, r"table\['y'\], where table is a def", RETURN),
    "attribute of a function": (marked, r"marked\.calls\[0\], where marked is the f", RETURN),
    "cached function": (
        call_cached(scale),
        r"scale\(\.\.\.\), a result in the cache of scale \(test_leaks.py:\d+\)",
        "call it before, or compute its result within dovetail.ensure_compile_time_eval",
    ),
    "cached function with a limit": (
        call_cached(scales),
        r"scales\(\.\.\.\)\['w'\], where scales\(\.\.\.\) is a result in the cache of scales",
        "A cached function",
    ),
    "closure": (
        later,
        r"y, a variable of an enclosing function that later\.<locals>\.compute "
        r"\(test_leaks.py:\d+\) uses  <-  cache\['later'\], where",
        "A function that uses values of the transformed function must not be kept",
    ),
    "in a closure in a partial": (
        nested_later,
        r"values\['y'\]\[0\], where values is a variable of an enclosing function that "
        r"\S*<lambda> \(test_leaks.py:\d+\) uses  <-  cache\['later'\]\.args\[0\], where",
        "A function that uses",
    ),
    "generator": (
        begin_rows,
        r"y, a variable of the generator rows \(test_leaks.py:\d+\)  <-  cache\['rows'\], w",
        "exhaust or close",
    ),
    "exception": (
        keep_error,
        r"y, a variable of keep_error \(test_leaks.py:\d+\), which a traceback keeps  <-  "
        r"cache\['error'\], where",
        "error.with_traceback",
    ),
    "result of vjp": (keep_vjp, r"something within cache\['vjp'\], where", RETURN),
    "array of objects": (objects, "something that the garbage collector does not see", RETURN),
}

PLACES: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    **{name: TRANSFORMATIONS[name] for name in ("jit", "grad", "vmap", "jvp")},
    "scan": lambda f: dt.lax.scan(lambda carry, x: (carry, f(x)), 0.0, X),
    "cond in jit": lambda f: dt.jit(lambda x: dt.lax.cond(x[0] > 0, f, lambda x: x, x))(X),
}


@pytest.fixture
def nothing_kept() -> Iterator[None]:
    yield
    cache.clear()
    source.clear()
    scale.cache_clear()


# How a tracer is kept and what made it are independent: all kinds are tried under one
# transformation, and some under all.
CASES = [
    *[(kind, "jit") for kind in KINDS],
    *[
        (kind, place)
        for kind in ("nested", "cached function", "closure", "generator", "exception")
        for place in PLACES
        if place != "jit"
    ],
]


@pytest.mark.parametrize(("kind", "place"), CASES)
def test_paths(kind: str, place: str, young: Any) -> None:
    keep, path, advice = young.KINDS[kind]

    def function(x: Any) -> Any:
        keep(jnp.sin(x))
        return x * 2.0

    with pytest.raises(dt.errors.UnexpectedTracerError) as caught, dt.checking_leaks():
        PLACES[place](function)
    lines = str(caught.value).splitlines()
    held = [line for line in lines if line.startswith("    kept alive by ")]
    assert any(re.search(f"    kept alive by {path}", line) for line in held), lines
    assert any(advice in line for line in lines[1:] if line[0] != " "), lines
    made = [line for line in lines if line.startswith("  Traced<")]
    assert any("test_leaks.py:" in line for line in made), lines


def no_leaks() -> dict[str, Callable[[Any], object]]:
    def cycle(y: Any) -> None:
        held: list[Any] = [y]
        held.append(held)

    def closed(y: Any) -> None:
        started = cache["rows"] = rows(y)
        next(started)
        started.close()

    def forgotten_error(y: Any) -> None:
        keep_error(y)
        cache["error"] = cache["error"].with_traceback(None)

    def cached(y: Any) -> None:
        source.append(np.float32(3))
        with dt.ensure_compile_time_eval():
            scale()

    return {
        "weak reference": lambda y: cache.__setitem__("y", weakref.ref(y)),
        "weak values": lambda y: cache.__setitem__("y", weakref.WeakValueDictionary({1: y})),
        "finalizer": lambda y: weakref.finalize(y, int),
        "cycle": cycle,
        "cycle of objects": lambda y: SimpleNamespace(y=y).__dict__.setdefault("me", cycle),
        "generator that was closed": closed,
        "exception without its traceback": forgotten_error,
        "cached function of known values": cached,
        "shape and dtype": lambda y: cache.__setitem__("y", (y.shape, y.dtype, y.aval)),
        "jitted function in a local variable": lambda y: dt.jit(lambda x: x + y)(y),
    }


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_leak(place: str) -> None:
    found = []
    for kind, keep in no_leaks().items():

        def function(x: Any, keep: Callable[[Any], object] = keep) -> Any:
            keep(jnp.sin(x))
            return x * 2.0

        try:
            with dt.checking_leaks():
                PLACES[place](function)
        except dt.errors.UnexpectedTracerError as error:
            found.append((kind, str(error)))
    assert not found


@pytest.mark.parametrize(
    "transform",
    [
        dt.jit,
        dt.vmap,
        lambda f: dt.jit(dt.vmap(f)),
        lambda f: dt.vmap(dt.jit(f)),
        lambda f: dt.jit(dt.vmap(dt.jit(f))),
        lambda f: dt.jit(dt.vmap(dt.vmap(f))),
    ],
)
@pytest.mark.parametrize("rule", ["jvp", "vjp"])
def test_rules_that_have_captured_tracers_are_no_leaks(rule: str, transform: Any) -> None:
    def function(y: Any) -> Any:
        if rule == "jvp":
            scaled = dt.custom_jvp(lambda x: x * y)
            scaled.defjvp(lambda primals, tangents: (primals[0] * y, tangents[0] * y))
            return scaled(y) + dt.grad(lambda x: jnp.sum(scaled(x)))(jnp.ones_like(y))
        backward = dt.custom_vjp(lambda x: x * y)
        backward.defvjp(lambda x: (x * y, None), lambda _, g: (g * y,))
        return backward(y)

    ones = np.ones((2, 2), np.float32)
    with dt.checking_leaks():
        found = transform(function)(ones)
    np.testing.assert_array_equal(found, 2 * ones if rule == "jvp" else ones)
    kept: list[Any] = []
    with (
        pytest.raises(dt.errors.UnexpectedTracerError, match=r"by kept\[0\], where kept is a"),
        dt.checking_leaks(),
    ):
        transform(lambda y: kept.append(y * 2) or function(y))(ones)


def test_variables_of_running_functions() -> None:
    def train(out: list[Any]) -> None:
        dt.jit(lambda x: out.append({"x": x}) or x)(1.0)

    with pytest.raises(dt.errors.UnexpectedTracerError) as caught, dt.checking_leaks():
        train([0])
    assert re.search(
        r"kept alive by out\[1\]\['x'\], where out is a variable of "
        r"test_variables_of_running_functions\.<locals>\.train, running at test_leaks.py:\d+\n",
        str(caught.value),
    )
    kept: Any = None

    def assigns(x: Any) -> Any:
        nonlocal kept
        kept = x
        return x

    with (
        pytest.raises(
            dt.errors.UnexpectedTracerError,
            match="kept alive by kept, a variable of test_variables_of_running_functions, running",
        ),
        dt.checking_leaks(),
    ):
        dt.grad(assigns)(1.0)


def test_variables_of_other_threads() -> None:
    begun, done = threading.Event(), threading.Event()
    box: list[Any] = []

    def wait() -> None:
        mine = box.pop()
        begun.set()
        done.wait()
        del mine

    def function(x: Any) -> Any:
        box.append([x])
        thread.start()
        begun.wait()
        return x

    thread = threading.Thread(target=wait)
    try:
        with (
            pytest.raises(dt.errors.UnexpectedTracerError, match=r"by mine\[0\], where mine is a"),
            dt.checking_leaks(),
        ):
            dt.jit(function)(1.0)
    finally:
        done.set()
        thread.join()


def test_many_tracers_and_many_holders(young: Any) -> None:
    cache = young.cache

    def many_tracers(x: Any) -> Any:
        cache["all"] = [x + i for i in range(25)]
        return x

    with pytest.raises(dt.errors.UnexpectedTracerError) as caught, dt.checking_leaks():
        dt.jit(many_tracers)(1.0)
    lines = str(caught.value).splitlines()
    held = {line for line in lines if line.startswith("    kept alive by cache['all'][")}
    assert len(held) == 10
    assert "  and 15 more" in lines
    cache.clear()

    def many_holders(x: Any) -> Any:
        cache["all"] = [{"x": x} for _ in range(3000)]
        return x

    with (
        pytest.raises(
            dt.errors.UnexpectedTracerError, match=r"kept alive by cache\['all'\]\[\d+\]\['x'\], w"
        ),
        dt.checking_leaks(),
    ):
        dt.jit(many_holders)(1.0)
    cache.clear()

    def deep(x: Any) -> Any:
        held = x
        for _ in range(100):
            held = [held]
        cache["deep"] = held
        return x

    with (
        pytest.raises(dt.errors.UnexpectedTracerError, match=r"kept alive by <list>\[0\]\[0\]"),
        dt.checking_leaks(),
    ):
        dt.jit(deep)(1.0)


class _Awkward:
    """An object whose attributes raise, like proxies of some libraries outside of their context."""

    def __init__(self, y: Any) -> None:
        object.__setattr__(self, "kept", y)

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"working outside of context: {name}")

    __eq__ = __repr__ = __hash__ = None  # type: ignore[assignment]


def test_objects_that_raise(young: Any) -> None:
    bystander = _Awkward(1)
    cache = young.cache
    with (
        pytest.raises(dt.errors.UnexpectedTracerError, match=r"by cache\['y'\]\.kept, where"),
        dt.checking_leaks(),
    ):
        dt.jit(lambda x: cache.update(y=_Awkward(x)) or x)(1.0)
    assert type(bystander) is _Awkward
