"""debug.print, callback, log and breakpoint: what is printed, in which order, how often."""

from __future__ import annotations

import io
import logging
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import debug, lax

X = np.arange(3, dtype=np.float32)
BOTH = pytest.mark.parametrize("ordered", [False, True])
WAYS = {"eager": lambda f: f, "jit": dt.jit, "disabled": dt.disable_jit()}


def finished(function: Any, *args: Any) -> Any:
    """The result of a call, when everything that it does has happened."""
    out = function(*args)
    dt.effects_barrier()
    return out


def printed(capfd: Any, function: Any, *args: Any) -> list[str]:
    """The lines that a call prints."""
    function(*args)
    dt.effects_barrier()
    out, err = capfd.readouterr()
    assert err == ""
    return str(out).splitlines()


FORMATS = [
    (("x {}", X), {}, "x [0. 1. 2.]"),
    (("plain",), {}, "plain"),
    (("{{}} {}", 1), {}, "{} 1"),
    (("{1} {0}", 1, 2), {}, "2 1"),
    (("{x:.2f} {}", 1.5), {"x": 0.126}, "0.13 1.5"),
    (("{:>5}|{:<4}|{:+d}", 1, 2, 3), {}, "    1|2   |+3"),
    (("{x.shape} {x[1]}",), {"x": X}, "(3,) 1.0"),
    (("{} {}", "text", None), {}, "text None"),
    (("{} {} {}", "a", 2, "b"), {}, "a 2 b"),
    (("{!r}", "text"), {}, "'text'"),
    (("{:{width}}|", 7), {"width": 4}, "   7|"),
    (("{}", True), {}, "True"),
    (("{}", 1 + 2j), {}, "(1+2j)"),
    (("{}", np.zeros((0,), np.int32)), {}, "[]"),
    (("{0} {0}", np.int8(-3)), {}, "-3 -3"),
    (("two\nlines {}", 1), {}, "two\nlines 1"),
]


class TestPrint:
    @BOTH
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize(("args", "kwargs", "expected"), FORMATS)
    def test_formats(
        self, args: Any, kwargs: Any, expected: str, way: str, ordered: bool, capfd: Any
    ) -> None:
        fmt, *values = args
        strings = {i: v for i, v in enumerate(values) if isinstance(v, str) or v is None}
        arrays = [v for i, v in enumerate(values) if i not in strings]
        fixed = {k: v for k, v in kwargs.items() if k == "width"}
        named = {k: v for k, v in kwargs.items() if k != "width"}

        def function(arrays: Any, named: Any) -> None:
            given = list(arrays)
            for i, v in sorted(strings.items()):
                given.insert(i, v)
            debug.print(fmt, *given, ordered=ordered, **named, **fixed)

        assert "\n".join(printed(capfd, WAYS[way](function), arrays, named)) == expected

    def test_trees(self, capfd: Any) -> None:
        tree = {"a": X, "b": (1, "text")}
        (line,) = printed(capfd, dt.jit(lambda: debug.print("{}", tree)))
        assert line.startswith("{'a': Array([0., 1., 2.], dtype=float32), 'b': (Array(1")
        assert line.endswith("'text')}")

    def test_options_of_numpy_are_those_of_the_call(self, capfd: Any) -> None:
        with np.printoptions(precision=2):
            function = dt.jit(lambda x: debug.print("{}", x))
            function(np.float32([1 / 3]))
        dt.effects_barrier()
        assert capfd.readouterr().out == "[0.33]\n"
        assert printed(capfd, function, np.float32([1 / 3])) == ["[0.33]"]

    @pytest.mark.parametrize(
        ("args", "kwargs", "error", "message"),
        [
            (("x {}", 1, 2), {}, ValueError, r"Unused positional arguments.*\[2\]"),
            (("x {} {}", 1), {}, IndexError, "more than the 1 positional"),
            (("x {y}",), {"z": 1}, KeyError, r"'y'.*\['z'\]"),
            (("x {y}",), {"y": 1, "z": 2}, ValueError, r"\['z'\].*f-string"),
            (("x {",), {}, ValueError, "not one for str.format"),
            (("{} {0}", 1, 2), {}, ValueError, "cannot switch"),
            ((X,), {}, TypeError, r'debug.print\("{}", value\)'),
            ((), {"x": 1}, TypeError, "takes a text before"),
        ],
    )
    def test_texts_that_do_not_fit(self, args: Any, kwargs: Any, error: Any, message: str) -> None:
        with pytest.raises(error, match=message):
            dt.jit(lambda: debug.print(*args, **kwargs))()
        with pytest.raises(error, match=message):
            debug.print(*args, **kwargs)

    def test_without_the_check(self, capfd: Any) -> None:
        call = dt.jit(lambda: debug.print("{}", 1, 2, skip_format_check=True))
        assert printed(capfd, call) == ["1"]

    def test_a_specification_that_does_not_fit_the_value(self) -> None:
        for way in WAYS.values():
            with pytest.raises(TypeError, match="is for one number"):
                finished(way(lambda x: debug.print("{:d}", x)), X)
        dt.effects_barrier()

    def test_the_form_without_a_text(self, capfd: Any) -> None:
        show: Any = debug.print(ordered=True)
        assert printed(capfd, dt.jit(lambda x: show("{} {y}", x, y=2)), 1) == ["1 2"]

    def test_partitioned_makes_no_difference_on_one_device(self, capfd: Any) -> None:
        call = dt.jit(lambda x: debug.print("{}", x, partitioned=True))
        assert printed(capfd, call, 1) == ["1"]

    def test_each_call_prints(self, capfd: Any) -> None:
        function = dt.jit(lambda x: debug.print("{}", x, ordered=True))
        for i in range(5):
            function(i)
        dt.effects_barrier()
        assert capfd.readouterr().out.split() == list("01234")

    def test_log(self, caplog: Any) -> None:
        with caplog.at_level(logging.INFO):
            for way in WAYS.values():
                way(lambda x: debug.log("x is {}", x))(1)
                dt.effects_barrier()
        assert [r.getMessage() for r in caplog.records] == ["x is 1"] * 3
        assert {(r.name, r.levelname, r.filename) for r in caplog.records} == {
            ("dovetail.debug", "INFO", "test_debug.py")
        }


def show(x: Any) -> Any:
    debug.print("x {}", x, ordered=True)
    return x**2


def turn(carry: Any, x: Any) -> Any:
    debug.print("{} {}", carry, x, ordered=True)
    return carry + x, carry


def condition(i: Any) -> Any:
    debug.print("c{}", i, ordered=True)
    return i < 2


def body(i: Any) -> Any:
    debug.print("b{}", i, ordered=True)
    return i + 1


def choose(x: Any) -> Any:
    return lax.cond(
        x > 0,
        lambda: debug.print("positive {}", x, ordered=True),
        lambda: debug.print("not {}", x, ordered=True),
    )


def tangents(x: Any) -> Any:
    _, linear = dt.linearize(show, x)
    return [linear(1.0), linear(2.0)]


TURNS = ["0.0 0.0", "0.0 1.0", "1.0 2.0"]

# From a function and its arguments to the lines: each value is printed once, that of the function.
TRANSFORMED: dict[str, tuple[Any, tuple[Any, ...], list[str]]] = {
    "grad": (dt.grad(show), (2.0,), ["x 2.0"]),
    "value_and_grad": (dt.value_and_grad(show), (2.0,), ["x 2.0"]),
    "jvp": (lambda x: dt.jvp(show, (x,), (1.0,)), (2.0,), ["x 2.0"]),
    "vjp": (lambda x: dt.vjp(show, x)[1](1.0), (2.0,), ["x 2.0"]),
    "linearize": (tangents, (2.0,), ["x 2.0"]),
    "grad(grad)": (dt.grad(dt.grad(show)), (2.0,), ["x 2.0"]),
    "vmap": (dt.vmap(show), (X,), ["x 0.0", "x 1.0", "x 2.0"]),
    "vmap(grad)": (dt.vmap(dt.grad(show)), (X,), ["x 0.0", "x 1.0", "x 2.0"]),
    "vmap, not mapped": (
        dt.vmap(lambda x, y: (debug.print("{}", y, ordered=True), x)[1], (0, None)),
        (X, 5),
        ["5"],
    ),
    "vmap, partly mapped": (
        dt.vmap(lambda x, y: debug.print("{} {}", x, y, ordered=True), (0, None)),
        (X, 5),
        ["0.0 5", "1.0 5", "2.0 5"],
    ),
    "jit in jit": (lambda x: dt.jit(show)(dt.jit(show)(x)), (2.0,), ["x 2.0", "x 4.0"]),
    "scan": (lambda x: lax.scan(turn, 0.0, x), (X,), TURNS),
    "grad of scan": (dt.grad(lambda c: lax.scan(turn, c, X)[0]), (0.0,), TURNS),
    "reversed scan": (
        lambda x: lax.scan(turn, 0.0, x, reverse=True),
        (X,),
        ["0.0 2.0", "2.0 1.0", "3.0 0.0"],
    ),
    "unrolled scan": (lambda x: lax.scan(turn, 0.0, x, unroll=2), (X,), TURNS),
    "fori_loop": (
        lambda n: lax.fori_loop(0, n, lambda i, x: (debug.print("{}", i, ordered=True), x)[1], 0),
        (3,),
        ["0", "1", "2"],
    ),
    "while": (
        lambda i: lax.while_loop(condition, body, i),
        (0,),
        ["c0", "b0", "c1", "b1", "c2"],
    ),
    "cond": (choose, (1.0,), ["positive 1.0"]),
    "cond, other branch": (choose, (-1.0,), ["not -1.0"]),
    "grad of cond": (
        dt.grad(lambda x: lax.cond(x > 0, show, lambda x: x, x)),
        (3.0,),
        ["x 3.0"],
    ),
    "vmap of while": (
        dt.vmap(lambda x: (lax.while_loop(condition, body, 0), x)[1]),
        (X,),
        ["c0", "b0", "c1", "b1", "c2"],
    ),
    "switch": (
        lambda i: lax.switch(i, [lambda i=i: debug.print("{}", i, ordered=True) for i in "abc"]),
        (1,),
        ["b"],
    ),
}


class TestTransformations:
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("name", TRANSFORMED)
    def test_printed(self, name: str, way: str, capfd: Any) -> None:
        function, args, expected = TRANSFORMED[name]
        assert printed(capfd, WAYS[way](function), *args) == expected

    def test_vmap_without_an_order_prints_the_same_lines(self, capfd: Any) -> None:
        function = dt.vmap(dt.vmap(lambda x: debug.print("{}", x)))
        for way in (function, dt.jit(function)):
            lines = printed(capfd, way, np.arange(4.0).reshape(2, 2).astype(np.float32))
            assert sorted(lines) == ["0.0", "1.0", "2.0", "3.0"]

    def test_a_mapped_predicate_runs_all_branches(self, capfd: Any) -> None:
        def function(x: Any) -> None:
            lax.cond(x > 0, lambda: debug.print("p{}", x), lambda: debug.print("n{}", x))

        lines = printed(capfd, dt.jit(dt.vmap(function)), X)
        assert sorted(lines) == ["n0.0", "n1.0", "n2.0", "p0.0", "p1.0", "p2.0"]
        with pytest.raises(NotImplementedError, match=r"mapped.*OrderedDebug"):
            dt.vmap(choose)(X)

    def test_nothing_is_removed(self, capfd: Any) -> None:
        @dt.jit
        def function(x: Any) -> int:
            lax.scan(lambda c, x: (c, debug.print("s{}", x, ordered=True)), 0, x)
            dt.jit(lambda x: debug.print("j{}", x, ordered=True))(x[0])
            return 1

        assert printed(capfd, function, X) == ["s0.0", "s1.0", "s2.0", "j0.0"]

    @pytest.mark.parametrize(("ordered", "name"), [(False, "Debug"), (True, "OrderedDebug")])
    def test_effects(self, ordered: bool, name: str) -> None:
        closed = dt.make_jaxpr(dt.jit(lambda x: debug.print("{}", x, ordered=ordered)))(1)
        assert [str(e) for e in closed.effects] == [name]
        expected = debug.OrderedDebugEffect() if ordered else debug.DebugEffect()
        assert closed.effects == {expected}

    def test_the_jaxpr(self) -> None:
        text = str(dt.make_jaxpr(lambda x: debug.print("x {y}", y=x))(1.0))
        shown = [line.strip() for line in text.splitlines() if "np_printoptions" not in line]
        assert shown == [
            "{ lambda ; a:f32[]. let",
            "debug_print[",
            "fmt=x {y}",
            "has_placeholders=True",
            "in_tree=PyTreeDef(((), {'y': *}))",
            "logging_record=None",
            "ordered=False",
            "partitioned=False",
            "static_args=()",
            "] a",
            "in () }",
        ]


class TestCallback:
    @BOTH
    @pytest.mark.parametrize("way", WAYS)
    def test_arguments(self, way: str, ordered: bool) -> None:
        seen: list[Any] = []

        def note(*args: Any, **kwargs: Any) -> int:
            seen.append((args, kwargs))
            return 3  # is not used

        WAYS[way](lambda x: debug.callback(note, x, {"a": "text"}, ordered=ordered, y=2 * x))(X)
        dt.effects_barrier()
        (((x, tree), kwargs),) = seen
        assert (x.tolist(), tree, kwargs["y"].tolist()) == ([0, 1, 2], {"a": "text"}, [0, 2, 4])

    def test_errors(self) -> None:
        def fail(x: Any) -> None:
            raise LookupError("not here")

        with pytest.raises(LookupError, match="not here"):
            debug.callback(fail, 1)
        with pytest.raises(LookupError, match="not here") as caught:
            finished(dt.jit(lambda x: debug.callback(fail, x)), 1)
        assert "debug.callback was given at test_debug.py" in caught.value.__notes__[0]
        dt.effects_barrier()
        with pytest.raises(TypeError, match="takes a function"):
            debug.callback(3, 1)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="takes a function before"):
            debug.callback(x=1)

    def test_the_form_without_a_function(self) -> None:
        seen: list[Any] = []
        call: Any = debug.callback(ordered=True)
        dt.jit(lambda x: call(lambda x: seen.append(int(x)), x))(7)
        dt.effects_barrier()
        assert seen == [7]


class TestBreakpoint:
    def run(self, commands: str, **options: Any) -> list[str]:
        stdin, stdout = io.StringIO(commands), io.StringIO()

        def function(x: Any) -> Any:
            doubled = x * 2
            name = "text"
            debug.breakpoint(stdin=stdin, stdout=stdout, **options)
            return doubled, name and x

        dt.jit(lambda x: function(x)[0])(X)
        dt.effects_barrier()
        return stdout.getvalue().splitlines()

    def test_values(self) -> None:
        lines = self.run("p doubled\nname\npp x + 1\np missing\nc\n")
        text = "\n".join(lines)
        assert "(dovetail) Array([0., 2., 4.], dtype=float32)" in text
        assert "(dovetail) 'text'" in text
        assert "(dovetail) Array([1., 2., 3.], dtype=float32)" in text
        assert "*** NameError: name 'missing' is not defined" in text

    def test_frames(self) -> None:
        lines = self.run("bt\nu\nu\nd\nd\nd\n")  # the end of the input goes on, too
        assert lines[0].startswith(f"> {__file__}(")
        assert lines[0].endswith(" function")
        assert any(
            line.startswith("->  ") and "debug.breakpoint(stdin=stdin" in line for line in lines
        )
        assert any(line.endswith(" run") for line in lines)
        assert "(dovetail) *** there is no further frame" in lines

    def test_number_of_frames(self) -> None:
        assert "(dovetail) *** there is no further frame" in self.run("u\n", num_frames=1)

    @BOTH
    def test_token(self, ordered: bool) -> None:
        stdin, stdout = io.StringIO("c\n"), io.StringIO()
        token = debug.breakpoint(stdin=stdin, stdout=stdout, token=5, ordered=ordered)
        assert token == 5

    def test_quit(self) -> None:
        with pytest.raises(SystemExit):
            self.run("q\n")

    def test_without_a_terminal(self, monkeypatch: Any) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(""))
        with pytest.raises(RuntimeError, match="there is no terminal"):
            finished(dt.jit(lambda x: (debug.breakpoint(), x)[1]), 1)
        dt.effects_barrier()

    def test_arguments(self) -> None:
        with pytest.raises(ValueError, match="'cli' or None, got 'web'"):
            debug.breakpoint(backend="web")
        with pytest.raises(TypeError, match="unknown arguments bakend"):
            debug.breakpoint(bakend="cli")


def test_the_barrier_waits_for_nothing_where_nothing_runs() -> None:
    dt.effects_barrier()
    assert int(dt.jit(lambda x: jnp.sum(x))(np.arange(3))) == 3
    dt.effects_barrier()
