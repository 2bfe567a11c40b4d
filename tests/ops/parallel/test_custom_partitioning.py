"""Functions that say themselves how they are divided over devices."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.experimental.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
    custom_partitioning_p,
)
from dovetail.sharding import AxisType, Mesh, NamedSharding
from dovetail.sharding import PartitionSpec as P

pytestmark = pytest.mark.tables
RNG = np.random.default_rng(0)
AUTO = (AxisType.Auto, AxisType.Auto)
MESH = dt.make_mesh((2, 2), ("x", "y"), axis_types=AUTO)
COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")


def _placed(x: Any, *spec: Any) -> Any:
    return dt.device_put(x, NamedSharding(MESH, P(*spec)))


def _collectives(text: str) -> dict[str, int]:
    found = {c: len(re.findall(rf" {c}(?:-start)?\(", text)) for c in COLLECTIVES}
    return {name: count for name, count in found.items() if count}


def _given(function: Callable[..., Any]) -> Callable[..., Any]:
    """A partition that takes the shardings that the compiler has chosen."""

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        own = dt.tree.map(lambda s: s.sharding, (result, args))
        return mesh, function, *own

    return partition


def _numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.integers(-4, 5, shape).astype(dtype)


# ------------------------------------------------------------------------------------------- values


def _fft_partition(mesh: Any, args: Any, result: Any) -> Any:
    rows = NamedSharding(mesh, P(*result.sharding.spec[:-1], None))
    return mesh, jnp.fft.fft, rows, (rows,)


def _softmax(x: Any) -> Any:
    y = jnp.exp(x - x.max(-1, keepdims=True))
    return y / y.sum(-1, keepdims=True)


def _softmax_partition(mesh: Any, args: Any, result: Any) -> Any:
    (x,) = args
    axes = x.sharding.spec[-1]

    def part(x: Any) -> Any:
        most, total = x.max(-1, keepdims=True), None
        if axes is not None:
            most = lax.pmax(most, axes)
        y = jnp.exp(x - most)
        total = y.sum(-1, keepdims=True)
        return y / (total if axes is None else lax.psum(total, axes))

    return mesh, part, x.sharding, (x.sharding,)


def _matmul_partition(mesh: Any, args: Any, result: Any) -> Any:
    x, y = (s.sharding.spec for s in args)
    summed = x[1]

    def part(x: Any, y: Any) -> Any:
        return x @ y if summed is None else lax.psum(x @ y, summed)

    taken = (NamedSharding(mesh, P(x[0], summed)), NamedSharding(mesh, P(summed, y[1])))
    return mesh, part, NamedSharding(mesh, P(x[0], y[1])), taken


def _moments(tree: Any) -> Any:
    return {"mean": tree["a"].mean(0), "twice": tree["b"] * 2, "number": tree["a"].sum() * 0 + 3}


def _moments_partition(mesh: Any, args: Any, result: Any) -> Any:
    spec = args[0]["a"].sharding.spec

    def part(tree: Any) -> Any:
        mean = tree["a"].mean(0)
        if spec[0] is not None:
            mean = lax.pmean(mean, spec[0])
        return {"mean": mean, "twice": tree["b"] * 2, "number": jnp.float32(3)}

    shardings = dt.tree.map(lambda s: s.sharding, result)
    shardings["mean"] = NamedSharding(mesh, P(spec[1]))
    shardings["number"] = NamedSharding(mesh, P())
    return mesh, part, shardings, dt.tree.map(lambda s: s.sharding, args)


def _turned(x: Any) -> Any:
    """Each device adds its position along x."""
    return x + jnp.arange(4, dtype=x.dtype)[:, None] // 2


def _turned_partition(mesh: Any, args: Any, result: Any) -> Any:
    own = NamedSharding(mesh, P("x"))
    return mesh, lambda x: x + lax.axis_index("x"), own, (own,)


class Case(NamedTuple):
    """A function, its division, and what the compiled program may contain."""

    function: Callable[..., Any]
    partition: Callable[..., Any]
    rule: Any
    arguments: tuple[Any, ...]
    specs: tuple[Any, ...]
    out_spec: Any
    collectives: dict[str, int]
    keywords: Mapping[str, Any] = MappingProxyType({})


SQUARE = _numbers(8, 8)
MATRICES = np.eye(3, dtype=np.float32) * np.arange(1, 9, dtype=np.float32)[:, None, None] + 1
CASES: dict[str, Case] = {
    "fft of rows": Case(
        jnp.fft.fft,
        _fft_partition,
        "... i -> ... i",
        (_numbers(8, 4, 16, dtype="complex64"),),
        (P("x", "y"),),
        P("x", "y"),
        {},
        {"need_replication_factors": ("i",)},
    ),
    "fft of divided rows": Case(
        jnp.fft.fft,
        _fft_partition,
        "i j -> i j",
        (_numbers(8, 16, dtype="complex64"),),
        (P("x", "y"),),
        P("x", "y"),  # the rule says that rows have to be whole inside of the function alone
        {"all-gather": 1},
        {"need_replication_factors": ("j",)},
    ),
    "cholesky of matrices": Case(
        jnp.linalg.cholesky,
        _given(jnp.linalg.cholesky),
        "... i j -> ... i j",
        (MATRICES,),
        (P(("x", "y")),),
        P(("x", "y")),
        {},
        {"need_replication_factors": ("i", "j")},
    ),
    "softmax of divided rows": Case(
        _softmax,
        _softmax_partition,
        "i j -> i j",
        (SQUARE,),
        (P("x", "y"),),
        P("x", "y"),
        {"all-reduce": 2},
    ),
    "softmax of rows": Case(
        _softmax, _softmax_partition, "i j -> i j", (SQUARE,), (P(("x", "y")),), P(("x", "y")), {}
    ),
    "softmax of one": Case(_softmax, _softmax_partition, "i j -> i j", (SQUARE,), (P(),), P(), {}),
    "matmul, rows and columns": Case(
        jnp.matmul,
        _matmul_partition,
        "i j, j k -> i k",
        (SQUARE, _numbers(8, 6)),
        (P("x"), P(None, "y")),
        P("x", "y"),
        {},
    ),
    "matmul, summed over devices": Case(
        jnp.matmul,
        _matmul_partition,
        "i j, j k -> i k",
        (SQUARE, _numbers(8, 6)),
        (P("x", "y"), P("y")),
        P("x"),
        {"all-reduce": 1},
        {"reduction_factors": ("j",)},
    ),
    "a tree": Case(
        _moments,
        _moments_partition,
        "i j, k l -> j, , k l",
        ({"a": SQUARE, "b": _numbers(4, 4)},),
        ({"a": P("x", "y"), "b": P("y")},),
        {"mean": P("y"), "number": P(), "twice": P("y")},
        {"all-reduce": 1},
    ),
    "a position": Case(
        _turned, _turned_partition, "i j -> i j", (_numbers(4, 3),), (P("x"),), P("x"), {}
    ),
    "a product of dimensions": Case(
        lambda x: x.reshape(2, 4, 8),
        lambda mesh, args, result: (
            mesh,
            lambda x: x.reshape(1, 4, 8),
            NamedSharding(mesh, P("x")),
            (NamedSharding(mesh, P("x")),),
        ),
        "(a b) j -> a b j",
        (SQUARE,),
        (P("x"),),
        P("x"),
        {},
    ),
    "a rule of objects": Case(
        lambda x, y: x * y,
        _given(lambda x, y: x * y),
        SdyShardingRule(
            (ArrayMapping(BATCHING, "i"), ArrayMapping(BATCHING, "i")),
            (ArrayMapping(BATCHING, "i"),),
        ),
        (SQUARE, SQUARE),
        (P("y"), P("y")),
        P("y"),
        {},
    ),
    "a rule by a function": Case(
        lambda x, y: x * y,
        _given(lambda x, y: x * y),
        lambda mesh, args, results: ", ".join(["i j"] * len(args)) + "->" + "i j" * len(results),
        (SQUARE, SQUARE),
        (P(None, "y"), P(None, "y")),
        P(None, "y"),
        {},
    ),
}


def _function(case: Case) -> Any:
    function = custom_partitioning(case.function)
    function.def_partition(case.partition, sharding_rule=case.rule, **case.keywords)
    return function


def _case_arguments(case: Case) -> list[Any]:
    return [
        dt.tree.map(lambda x, s: _placed(x, *s), argument, spec)
        if isinstance(argument, dict)
        else _placed(argument, *spec)
        for argument, spec in zip(case.arguments, case.specs, strict=True)
    ]


def _equal(got: Any, want: Any) -> None:
    dt.tree.map(lambda g, w: np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5), got, want)


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    """They are those of one device, and no more is exchanged than the function says."""
    case = CASES[name]
    function = _function(case)
    want = dt.jit(case.function)(*case.arguments)
    _equal(function(*case.arguments), want)
    arguments = _case_arguments(case)
    compiled = dt.jit(function).lower(*arguments).compile()
    assert _collectives(compiled.as_text()) == case.collectives
    got = dt.jit(function)(*arguments)
    _equal(got, want)
    specs = case.out_spec if isinstance(case.out_spec, dict) else {"": case.out_spec}
    results = got if isinstance(got, dict) else {"": got}
    for key, spec in specs.items():
        there = NamedSharding(MESH, spec)
        assert results[key].sharding.is_equivalent_to(there, results[key].ndim), key
    _equal(function(*arguments), want)  # eagerly


def test_shardings_spread_by_the_rule() -> None:
    """From operands to results and back, to what has none."""
    seen = []

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        seen.append((args[0].sharding.spec, result.sharding.spec, args[0].shape, result.shape))
        return _given(lambda x: x.T)(mesh, args, result)

    function = custom_partitioning(lambda x: x.T)
    function.def_partition(partition, sharding_rule="i j -> j i")
    forwards = dt.jit(function)(_placed(_numbers(4, 8), "x", None))
    assert forwards.sharding.spec == P(None, "x")
    whole = NamedSharding(MESH, P("y", "x"))
    backwards = dt.jit(lambda x: function(x * 2), out_shardings=whole)(_placed(_numbers(4, 8)))
    assert backwards.sharding.spec == P("y", "x")
    assert seen == [
        (P("x", None), P(None, "x"), (4, 8), (8, 4)),
        (P("x", "y"), P("y", "x"), (4, 8), (8, 4)),
    ]


def test_dimensions_that_are_not_divided_evenly_are_whole() -> None:
    seen = []

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        seen.append(args[0].sharding.spec)
        return _given(lambda x: x + 1)(mesh, args, result)

    function = custom_partitioning(lambda x: x + 1)
    function.def_partition(partition, sharding_rule="i j -> i j")
    x = _numbers(8, 8)
    got = dt.jit(lambda x: function(x[:7]))(_placed(x, "x", "y"))
    np.testing.assert_array_equal(got, x[:7] + 1)
    assert seen == [P(None, "y")]


def test_without_a_rule_shardings_do_not_spread() -> None:
    function = custom_partitioning(lambda x: x * 2)

    @function.def_partition
    def partition(mesh: Any, args: Any, result: Any) -> Any:
        assert args[0].sharding.spec == P("x", None)
        assert result.sharding.spec == P(None, None)
        own = args[0].sharding
        return mesh, lambda x: x * 2, own, (own,)

    np.testing.assert_array_equal(dt.jit(function)(_placed(SQUARE, "x")), SQUARE * 2)


def test_static_and_captured_arguments() -> None:
    """Static ones come first; arrays that the function has captured are none of the rule's."""
    weights = jnp.asarray(_numbers(8))
    seen = []

    def fun(x: Any, power: int, y: Any, sign: str = "+") -> Any:
        return x**power * weights + (y if sign == "+" else -y)

    def partition(power: int, sign: str, mesh: Any, args: Any, result: Any) -> Any:
        seen.append((power, sign, len(args)))
        return _given(lambda x, y: fun(x, power, y, sign))(mesh, args, result)

    function = custom_partitioning(fun, static_argnums=(1, -1))
    assert function.static_argnums == (1, 3)
    assert function.__name__ == "fun"
    function.def_partition(
        partition, sharding_rule=lambda power, sign, mesh, args, results: "i j, i j -> i j"
    )
    x, y = _placed(SQUARE, "x"), _placed(SQUARE + 1, "x")
    for got, want in (
        (dt.jit(lambda x, y: function(x, 2, y))(x, y), fun(SQUARE, 2, SQUARE + 1)),
        (function(x, power=3, y=y, sign="-"), fun(SQUARE, 3, SQUARE + 1, "-")),
    ):
        np.testing.assert_array_equal(got, want)
    assert seen == [(2, "+", 2), (3, "-", 2)]


def test_inside_of_loops_functions_and_branches() -> None:
    function = _function(CASES["softmax of divided rows"])

    def program(x: Any) -> Any:
        x = lax.fori_loop(0, 3, lambda _, x: function(x) * x, x)
        x = dt.jit(lambda x: function(x) + 1)(x)
        return lax.cond(x[0, 0] > 0, function, lambda x: x, x)

    x = np.abs(SQUARE) / 4
    _equal(dt.jit(program)(_placed(x, "x", "y")), dt.jit(program)(x))


@pytest.mark.laws
@pytest.mark.parametrize("name", ["fft of rows", "softmax of divided rows", "a tree"])
def test_transformations_are_those_of_the_function(name: str) -> None:
    case = CASES[name]
    function, arguments = _function(case), _case_arguments(case)
    tangents = dt.tree.map(lambda x: x + 1, case.arguments)
    for transformed in (
        lambda f: lambda *xs: dt.jvp(f, xs, tangents)[1],
        lambda f: lambda *xs: dt.vjp(f, *xs)[1](dt.tree.map(lambda y: y * 2, f(*xs))),
        lambda f: lambda *xs: dt.vmap(f)(*dt.tree.map(lambda x: jnp.stack([x, 2 * x]), xs)),
        lambda f: dt.checkpoint(f),
    ):
        want = dt.jit(transformed(case.function))(*case.arguments)
        _equal(dt.jit(transformed(function))(*arguments), want)
        _equal(transformed(function)(*case.arguments), want)


def test_inside_of_shard_map_it_is_the_function() -> None:
    """There each device has a part already."""
    case = CASES["softmax of rows"]
    function = custom_partitioning(_softmax)
    function.def_partition(lambda *_: pytest.fail("nobody should ask"), sharding_rule="i j -> i j")
    for axes in (frozenset({"x", "y"}), frozenset({"x"})):
        mapped = dt.shard_map(
            function, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names=axes
        )
        _equal(dt.jit(mapped)(_placed(SQUARE, "x")), _softmax(SQUARE))
    assert case.function is _softmax


def test_a_derivative_rule_outside_divides_derivatives() -> None:
    """As the documentation says."""
    forwards = _function(CASES["fft of rows"])
    backwards = _function(CASES["fft of rows"])

    @dt.custom_vjp
    def fft(x: Any) -> Any:
        return forwards(x)

    fft.defvjp(lambda x: (forwards(x), None), lambda _, ct: (backwards(ct),))
    case = CASES["fft of rows"]

    def derivative(x: Any) -> Any:
        return dt.vjp(fft, x)[1](x)[0]

    (x,) = _case_arguments(case)
    assert _collectives(dt.jit(derivative).lower(x).compile().as_text()) == {}
    _equal(dt.jit(derivative)(x), np.fft.fft(case.arguments[0]))


def test_eager_computations_while_the_compiler_asks() -> None:
    def partition(mesh: Any, args: Any, result: Any) -> Any:
        offset = np.asarray(dt.jit(lambda x: jnp.cumsum(x) * 3)(jnp.ones(5)))
        inner = _function(CASES["softmax of rows"])
        total = inner(_placed(SQUARE, "x")).sum()
        return _given(lambda x: x + offset[-1] + jnp.round(total) * 0)(mesh, args, result)

    function = custom_partitioning(lambda x: x + 15)
    function.def_partition(partition, sharding_rule="i j -> i j")
    np.testing.assert_array_equal(dt.jit(function)(_placed(SQUARE, "x")), SQUARE + 15)


def test_it_is_asked_once_for_each_program() -> None:
    """Programs stay in memory; a division that is defined anew counts for new traces."""
    count = []

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        count.append(1)
        return _given(lambda x: x * 2)(mesh, args, result)

    function = custom_partitioning(lambda x: x * 2)
    function.def_partition(partition, sharding_rule="i j -> i j")
    x = _placed(SQUARE, "x")
    jitted = dt.jit(function)
    for _ in range(3):
        jitted(x)
        function(x)
    assert len(count) == 2
    jitted(_placed(SQUARE, "y"))
    assert len(count) == 3


# ------------------------------------------------------------------------------------------- errors


def _bad(answer: Callable[..., Any]) -> Callable[[], Any]:
    def run() -> Any:
        def doubled(x: Any) -> Any:
            return x * 2

        function = custom_partitioning(doubled)
        function.def_partition(answer, sharding_rule="i j -> i j")
        return dt.jit(function)(_placed(SQUARE, "x"))

    return run


def _raise(error: BaseException) -> Any:
    raise error


def _other_mesh(mesh: Any) -> Any:
    return Mesh(np.asarray(dt.devices()[:4])[::-1].reshape(2, 2), ("x", "y"))


def _double(x: Any) -> Any:
    return x * 2


ANSWERS: dict[str, tuple[Callable[..., Any], type[BaseException], str]] = {
    "raises": (lambda m, a, r: _raise(KeyError("mine")), KeyError, "mine"),
    "is interrupted": (lambda m, a, r: _raise(KeyboardInterrupt()), KeyboardInterrupt, ""),
    "three values": (lambda m, a, r: (m, _double, r.sharding), TypeError, "doubled.*has to return"),
    "nothing": (lambda m, a, r: None, TypeError, "doubled.*has to return .mesh, function"),
    "no mesh": (lambda m, a, r: (3, _double, r.sharding, (r.sharding,)), TypeError, "first value"),
    "no function": (lambda m, a, r: (m, 3, r.sharding, (r.sharding,)), TypeError, "second value"),
    "a specification": (lambda m, a, r: (m, _double, P("x"), (r.sharding,)), TypeError, "third"),
    "no sharding": (lambda m, a, r: (m, _double, r.sharding, (None,)), TypeError, "fourth.*None"),
    "too few": (lambda m, a, r: (m, _double, r.sharding, ()), TypeError, "structure of arguments"),
    "another mesh": (
        lambda m, a, r: (_other_mesh(m), _double, r.sharding, (r.sharding,)),
        ValueError,
        "return the mesh that it was given",
    ),
    "shardings over another mesh": (
        lambda m, a, r: (m, _double, NamedSharding(_other_mesh(m), P()), (r.sharding,)),
        ValueError,
        "with the mesh that it was given",
    ),
    "an uneven sharding": (
        lambda m, a, r: (m, _double, r.sharding, (NamedSharding(m, P(None, None, "x")),)),
        ValueError,
        "3 dimensions",
    ),
    "parts of another shape": (
        lambda m, a, r: (m, _double, NamedSharding(m, P()), (a[0].sharding,)),
        ValueError,
        r"result 0 .* is f32\[4,8\] on each device.*has to be f32\[8,8\]",
    ),
    "parts of another dtype": (
        lambda m, a, r: (m, lambda x: x > 0, r.sharding, (a[0].sharding,)),
        ValueError,
        r"bool\[4,8\].*has to be f32\[4,8\]",
    ),
    "another structure": (
        lambda m, a, r: (m, lambda x: (x, x), r.sharding, (a[0].sharding,)),
        TypeError,
        "results of another structure",
    ),
    "a function that raises": (
        lambda m, a, r: (m, lambda x: 1 / 0, r.sharding, (a[0].sharding,)),
        ZeroDivisionError,
        "",
    ),
    "a function with callbacks": (
        lambda m, a, r: (
            m,
            lambda x: dt.pure_callback(lambda x: x, x, x),
            r.sharding,
            (a[0].sharding,),
        ),
        NotImplementedError,
        "calls Python",
    ),
    "a function that prints": (
        lambda m, a, r: (
            m,
            lambda x: (dt.debug.print("{}", x), x)[1],
            r.sharding,
            (a[0].sharding,),
        ),
        NotImplementedError,
        "side effects",
    ),
    "an unknown axis": (
        lambda m, a, r: (m, lambda x: lax.psum(x, "z"), r.sharding, (a[0].sharding,)),
        NameError,
        "z",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_bad_answers(name: str) -> None:
    """They are Python's exceptions; the compiler is none the wiser."""
    answer, error, words = ANSWERS[name]
    run = _bad(answer)
    with pytest.raises(error, match=f"(?s){words}") as caught:
        run()
    if name in ("raises",):
        assert any("doubled" in note for note in caught.value.__notes__)
    # The process goes on.
    np.testing.assert_array_equal(_bad(_given(_double))(), SQUARE * 2)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("i j, j k", "has no arrow"),
        ("i -> j -> k", "has two arrows"),
        ("i + j -> i", r"unexpected character '\+'"),
        ("i (j) -> i", "fewer than two factors"),
        ("i (j -> i", "brackets"),
        ("i j) -> i", "closes a bracket"),
        ("i ... -> i", "ellipsis that is not the first"),
        ("(... i) -> i", "brackets"),
        ("1 j -> j", "unexpected character '1'"),
        ("(a b) -> i", "a is never a whole dimension"),
    ],
)
def test_bad_texts(rule: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        custom_partitioning(jnp.sin).def_partition(_given(jnp.sin), sharding_rule=rule)


@pytest.mark.parametrize(
    ("rule", "keywords", "words"),
    [
        ("i j, j k -> i", {}, "result 0 has 1 dimension there.*shape \\(8, 6\\)"),
        ("i j -> i k", {}, "for 1 operand, and the function has 2"),
        ("i j, j k -> i k, i", {}, "for 2 results"),
        (
            "i j, k l -> j i",
            {},
            "factor i has the size 8 in one array, and 6 in dimension 1 of result 0",
        ),
        ("i i, i k -> i k", {}, "occurs twice"),
        ("(a b) j, j k -> i k", {"a": 3, "b": 2}, "a of 3 \\* b of 2, which is 6"),
        ("... i, ... k -> i k", {}, "ellipsis stands for dimensions of the sizes \\(5,\\)"),
    ],
)
def test_rules_that_do_not_fit(rule: str, keywords: dict[str, int], words: str) -> None:
    function = custom_partitioning(lambda x, y: jnp.zeros((8, 6)))
    function.def_partition(_given(lambda x, y: x), sharding_rule=rule, **keywords)
    rows = 5 if rule.startswith("...") else 8
    with pytest.raises(ValueError, match=words):
        dt.jit(function)(_placed(np.ones((rows, 8), np.float32)), np.ones((8, 6), np.float32))


M = ArrayMapping


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ArrayMapping(1), ValueError, "strings"),
        (lambda: ArrayMapping("i", BATCHING), ValueError, "comes first"),
        (lambda: ArrayMapping("1x"), ValueError, "begins with a letter"),
        (lambda: CompoundFactor("i"), ValueError, "at least two"),
        (lambda: CompoundFactor("i", BATCHING), ValueError, "begins with a letter"),
        (lambda: SdyShardingRule(M("i"), M("i")), TypeError, "ArrayMapping for each array"),
        (lambda: SdyShardingRule(("i",), (M("i"),)), TypeError, "holds ArrayMappings"),
        (lambda: SdyShardingRule((M("i"),), (), i=3), ValueError, "leave out i=3"),
        (lambda: SdyShardingRule((M("i"),), (), j=3), ValueError, "no dimension has the factor j"),
        (
            lambda: SdyShardingRule((M(CompoundFactor("i", "j")),), (), i=2, j=2.0),
            TypeError,
            "size of j is an integer",
        ),
        (lambda: SdyShardingRule((M("i"),), (), reduction_factors="i"), ValueError, "tuple"),
        (
            lambda: SdyShardingRule((M("i"),), (), reduction_factors=("j",)),
            ValueError,
            "factor 'j'",
        ),
        (
            lambda: SdyShardingRule(
                (M("i"),), (), reduction_factors=("i",), need_replication_factors=("i",)
            ),
            ValueError,
            "it can be in one",
        ),
        (lambda: custom_partitioning(3), TypeError, "custom_partitioning"),
        (lambda: custom_partitioning(jnp.sin, static_argnums=(4,)), ValueError, "parameter 4"),
        (lambda: custom_partitioning(jnp.sin, static_argnums=("x",)), TypeError, "integers"),
        (lambda: custom_partitioning(jnp.sin)(1.0), AttributeError, "sin.*def_partition"),
    ],
)
def test_bad_objects(make: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"sharding_rule": 3}, TypeError, "sharding_rule is a text"),
        ({"infer_sharding_from_operands": print}, NotImplementedError, "write sharding_rule"),
        ({"sharding_rule": "i->i", "decode_shardings": False}, NotImplementedError, "decoded"),
        ({"sharding_rule": "i->i", "k": 3}, ValueError, "no dimension has the factor k"),
        ({"sharding_rule": SdyShardingRule((M("i"),), ()), "i": 3}, ValueError, "i go with"),
        ({"partition": 3}, TypeError, "def_partition"),
    ],
)
def test_bad_definitions(keywords: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        custom_partitioning(jnp.sin).def_partition(**{"partition": _given(jnp.sin), **keywords})


def test_bad_calls() -> None:
    function = custom_partitioning(lambda x, n: x * n, static_argnums=1)
    function.def_partition(lambda n, *rest: None, sharding_rule="i -> i")
    for arguments, error, words in (
        (("text", 1), TypeError, "Argument x of custom_partitioning"),
        ((1.0, [1]), TypeError, "hashable"),
        ((1.0,), TypeError, "do not go to its parameters"),
        ((dt.random.key(0), 1), TypeError, "key_data"),
    ):
        with pytest.raises(error, match=words):
            function(*arguments)
    printing = custom_partitioning(lambda x: (dt.debug.print("{}", x), x)[1])
    printing.def_partition(_given(lambda x: x), sharding_rule="i -> i")
    with pytest.raises(TypeError, match="side effects"):
        printing(SQUARE)
    with pytest.raises(TypeError, match="traced value"):
        dt.jit(lambda y: _capturing(y)(SQUARE))(1.0)
    wrong = custom_partitioning(jnp.sin)
    wrong.def_partition(_given(jnp.sin), sharding_rule=lambda *_: 3)
    x = _placed(SQUARE, "x")
    with pytest.raises(TypeError, match="the function sharding_rule returned 3"):
        wrong(x)


def _capturing(y: Any) -> Any:
    function = custom_partitioning(lambda x: x * y)
    function.def_partition(_given(lambda x: x), sharding_rule="i j -> i j")
    return function


def test_printed() -> None:
    """A rule and a jaxpr as they are written."""
    rule = SdyShardingRule(
        (M(BATCHING, "i"), M(CompoundFactor("j", "k"))),
        (M("i"),),
        reduction_factors=("j",),
        j=2,
        k=3,
    )
    assert str(rule) == (
        "SdyShardingRule((('…', 'i'), (('j', 'k'),)), (('i',),), {'j': 2, 'k': 3} "
        "reduction_factors=('j',))"
    )
    same = SdyShardingRule(
        (M(BATCHING, "i"), M(CompoundFactor("j", "k"))),
        (M("i"),),
        reduction_factors=("j",),
        k=3,
        j=2,
    )
    assert rule == same
    assert hash(rule) == hash(same)
    assert rule != SdyShardingRule((M("i"),), (M("i"),))
    function = _function(CASES["softmax of rows"])
    (eqn,) = dt.make_jaxpr(function)(SQUARE).jaxpr.eqns
    assert eqn.primitive is custom_partitioning_p


def test_a_compiler_that_does_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that for TPUs, ahead of time."""
    function = custom_partitioning(lambda x: x + 1)
    function.def_partition(_given(lambda x: x + 1), sharding_rule="i j -> i j")
    monkeypatch.setattr(
        "dovetail._core.ops.parallel.custom_partitioning.TARGET", "dovetail_custom_partitioning_x"
    )
    monkeypatch.setattr(
        "dovetail._core.runtime.programs.partitioners.TARGET", "dovetail_custom_partitioning_x"
    )
    monkeypatch.setattr(
        "dovetail._core.runtime.programs.partitioners._register", lambda lowered: None
    )
    x = _placed(SQUARE, "x")
    with pytest.raises(NotImplementedError, match="for cpu does not ask how functions"):
        dt.jit(function)(x)
