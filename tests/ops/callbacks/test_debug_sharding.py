"""debug.inspect_array_sharding, visualize_sharding and visualize_array_sharding."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import debug, lax
from dovetail.sharding import SingleDeviceSharding

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def here() -> SingleDeviceSharding:
    return SingleDeviceSharding(dt.devices()[0])


class TestInspect:
    """From a function, and what calls it, to the number of calls when it is called once, and when
    it is called again."""

    WAYS: ClassVar[dict[str, tuple[Callable[[Any], Any], int, int]]] = {
        "eager": (lambda f: f, 1, 1),
        "jit": (dt.jit, 1, 0),
        "jit(jit)": (lambda f: dt.jit(dt.jit(f)), 1, 0),
        "grad": (lambda f: dt.grad(lambda x: jnp.sum(f(x))), 1, 1),
        "jit(grad)": (lambda f: dt.jit(dt.grad(lambda x: jnp.sum(f(x)))), 1, 0),
        "grad(jit)": (lambda f: dt.grad(lambda x: jnp.sum(dt.jit(f)(x))), 1, 0),
        "jvp": (lambda f: lambda x: dt.jvp(f, (x,), (x,)), 1, 1),
        "vmap": (dt.vmap, 1, 1),
        "jit(vmap)": (lambda f: dt.jit(dt.vmap(f)), 1, 0),
        "jit(vmap(grad))": (lambda f: dt.jit(dt.vmap(dt.grad(lambda x: jnp.sum(f(x))))), 1, 0),
        "jit(scan)": (
            lambda f: dt.jit(lambda xs: lax.scan(lambda c, x: (c, f(x)), 0.0, xs)),
            1,
            0,
        ),
        "jit(cond)": (lambda f: dt.jit(lambda x: lax.cond(x[0, 0] > 1, f, lambda x: x, x)), 1, 0),
        "jit(while)": (
            lambda f: dt.jit(
                lambda x: lax.while_loop(lambda x: x[0, 0] < 1, lambda x: f(x) + 1, x)
            ),
            1,
            0,
        ),
        "jit(checkpoint)": (lambda f: dt.jit(dt.checkpoint(f)), 1, 0),
        "disabled": (dt.disable_jit(), 1, 1),
    }

    @pytest.mark.parametrize("way", WAYS)
    def test_calls(self, way: str) -> None:
        transform, first, again = self.WAYS[way]
        seen: list[Any] = []

        def function(x: Any) -> Any:
            y = jnp.sin(x)
            debug.inspect_array_sharding(y, callback=seen.append)
            return y * 2

        transformed = transform(function)
        transformed(X)
        assert seen == [here()] * first
        transformed(X)
        assert seen == [here()] * (first + again)

    def test_results_are_those_without_it(self) -> None:
        def function(x: Any) -> Any:
            debug.inspect_array_sharding(x, callback=lambda sharding: None)
            return jnp.sin(x)

        np.testing.assert_array_equal(dt.jit(function)(X), jnp.sin(X))
        np.testing.assert_array_equal(dt.vmap(function)(X), jnp.sin(X))
        np.testing.assert_allclose(dt.grad(function)(0.5), np.cos(0.5), rtol=1e-6)

    def test_trees(self) -> None:
        seen: list[Any] = []
        tree = {"a": jnp.ones(2), "b": [1, np.ones(3)], "key": dt.random.key(0), "none": None}
        debug.inspect_array_sharding(tree, callback=seen.append)
        assert seen == [here()] * 4
        dt.jit(lambda t: debug.inspect_array_sharding(t, callback=seen.append))(tree)
        assert seen == [here()] * 8

    def test_ahead_of_time_it_is_called_when_the_program_is_compiled(self) -> None:
        seen: list[Any] = []
        function = dt.jit(lambda x: debug.inspect_array_sharding(x, callback=seen.append))
        lowered = function.lower(X)
        assert seen == []
        compiled = lowered.compile()
        assert seen == [here()]
        compiled(X)
        assert seen == [here()]

    def test_each_compilation_calls_also_where_the_program_was_compiled_before(self) -> None:
        seen: list[Any] = []
        for _ in range(2):
            dt.jit(lambda x: debug.inspect_array_sharding(x, callback=seen.append))(X)
        assert seen == [here()] * 2

    def test_the_program_has_nothing_of_it(self) -> None:
        def function(x: Any) -> Any:
            debug.inspect_array_sharding(x, callback=print)
            return x * 2

        text = dt.jit(function).lower(X).as_text()
        without = dt.jit(lambda x: x * 2).lower(X).as_text()
        assert text.replace("jit_function", "jit__lambda_") == without
        assert "custom_call" not in text
        assert "inspect_sharding[callback=" in str(dt.make_jaxpr(function)(X))

    @pytest.mark.parametrize("way", ["eager", "jit", "vmap", "jit(grad)"])
    def test_what_the_callback_raises(self, way: str) -> None:
        def fail(sharding: Any) -> None:
            raise LookupError("no")

        def function(x: Any) -> Any:
            debug.inspect_array_sharding(x, callback=fail)
            return x

        with pytest.raises(LookupError, match=r"^no$"):
            self.WAYS[way][0](function)(X)

    def test_misuse(self) -> None:
        with pytest.raises(TypeError, match="a function of a sharding as callback"):
            debug.inspect_array_sharding(X, callback=3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"inspect_array_sharding.*value\['a'\].*got str"):
            debug.inspect_array_sharding({"a": "text"}, callback=print)


@dataclass(frozen=True)
class Device:
    platform: str
    id: int


class Grid:
    """A sharding over devices that are not there: rows and columns of parts, whose owners are given
    by number."""

    def __init__(self, owners: Any, platform: str = "cpu") -> None:
        rows = owners if isinstance(owners[0], (list, np.ndarray)) else [owners]
        self.owners = np.empty((len(rows), len(rows[0])), object)
        for row, column in np.ndindex(self.owners.shape):
            self.owners[row, column] = rows[row][column]
        self.platform = platform

    def devices_indices_map(self, shape: tuple[int, ...]) -> dict[Any, tuple[slice, ...]]:
        found = {}
        dimensions = len(shape)
        for position in np.ndindex(self.owners.shape):
            ranges = []
            counts = self.owners.shape[-dimensions:]
            for i, count, size in zip(position[-dimensions:], counts, shape, strict=True):
                step = -(-size // count)
                ranges.append(slice(i * step, min((i + 1) * step, size)))
            owned = self.owners[position]
            for number in owned if isinstance(owned, tuple) else (owned,):
                found[Device(self.platform, number)] = tuple(ranges)
        return found


PAIRS = [[0, 1], [2, 3], [4, 5], [6, 7]]

# From a shape, the owners of its parts and options to the picture.
PICTURES: dict[str, tuple[tuple[int, ...], Any, dict[str, Any], str]] = {
    "one device, a row": (
        (4,),
        [0],
        {},
        """
┌───────┐
│ CPU 0 │
└───────┘
""",
    ),
    "one element": (
        (1,),
        [0],
        {},
        """
┌───────────────────────┐
│         CPU 0         │
└───────────────────────┘
""",
    ),
    "no element": (
        (0,),
        [0],
        {},
        """
┌───────────────────────┐
│         CPU 0         │
└───────────────────────┘
""",
    ),
    "one device": (
        (4, 4),
        [[0]],
        {},
        """
┌───────────────────────┐
│                       │
│                       │
│                       │
│                       │
│         CPU 0         │
│                       │
│                       │
│                       │
│                       │
└───────────────────────┘
""",
    ),
    "high": (
        (8, 2),
        [[0]],
        {"scale": 0.5},
        """
┌───────┐
│       │
│ CPU 0 │
│       │
│       │
└───────┘
""",
    ),
    "limits of the width": (
        (4, 4),
        [[0]],
        {"min_width": 3, "max_width": 10, "scale": 0.4},
        """
┌────────┐
│        │
│ CPU 0  │
│        │
└────────┘
""",
    ),
    "rows and columns": (
        (8, 8),
        PAIRS,
        {},
        """
┌──────────┬──────────┐
│  CPU 0   │  CPU 1   │
├──────────┼──────────┤
│  CPU 2   │  CPU 3   │
├──────────┼──────────┤
│  CPU 4   │  CPU 5   │
├──────────┼──────────┤
│  CPU 6   │  CPU 7   │
└──────────┴──────────┘
""",
    ),
    "more columns than rows": (
        (8, 8),
        np.transpose(PAIRS),
        {},
        """
┌───────┬───────┬───────┬───────┐
│       │       │       │       │
│ CPU 0 │ CPU 2 │ CPU 4 │ CPU 6 │
│       │       │       │       │
│       │       │       │       │
├───────┼───────┼───────┼───────┤
│       │       │       │       │
│ CPU 1 │ CPU 3 │ CPU 5 │ CPU 7 │
│       │       │       │       │
│       │       │       │       │
└───────┴───────┴───────┴───────┘
""",
    ),
    "parts on several devices": (
        (8,),
        [(0, 1), (2, 3), (5, 4), (6, 7)],
        {},
        """
┌───────┬───────┬───────┬───────┐
│CPU 0,1│CPU 2,3│CPU 4,5│CPU 6,7│
└───────┴───────┴───────┴───────┘
""",
    ),
    "labels that are wider than their boxes": (
        (8, 8),
        [[0, 1]],
        {"scale": 0.2},
        """
┌───────┬───────┐
│ CPU 0 │ CPU 1 │
└───────┴───────┘
""",
    ),
    "wide, with the devices": (
        (8, 800),
        PAIRS[:2],
        {"max_width": 40},
        """
┌──────────────────┬──────────────────┐
│                  │                  │
│      CPU 0       │      CPU 1       │
│                  │                  │
│                  │                  │
├──────────────────┼──────────────────┤
│                  │                  │
│      CPU 2       │      CPU 3       │
│                  │                  │
│                  │                  │
└──────────────────┴──────────────────┘
""",
    ),
    "parts of different sizes": (
        (5, 5),
        [[0, 1], [2, 3]],
        {},
        """
┌─────────────┬────────┐
│             │        │
│             │        │
│    CPU 0    │ CPU 1  │
│             │        │
│             │        │
├─────────────┼────────┤
│             │        │
│    CPU 2    │ CPU 3  │
│             │        │
└─────────────┴────────┘
""",
    ),
}


class TestVisualize:
    @pytest.mark.parametrize("name", PICTURES)
    def test_pictures(self, name: str, capsys: Any) -> None:
        shape, parts, options, expected = PICTURES[name]
        debug.visualize_sharding(shape, Grid(parts), **options)
        assert "\n" + capsys.readouterr().out == expected

    @pytest.mark.parametrize("shape", [(4,), (4, 4), (0, 3), (3, 0), (1000, 1)])
    def test_arrays_here(self, shape: tuple[int, ...], capsys: Any) -> None:
        debug.visualize_sharding(shape, here())
        expected = capsys.readouterr().out
        assert "CPU 0" in expected or dt.default_backend() != "cpu"
        for array in (jnp.ones(shape), np.ones(shape)):
            debug.visualize_array_sharding(array)
            assert capsys.readouterr().out == expected
        dt.jit(debug.visualize_array_sharding)(jnp.ones(shape))
        assert capsys.readouterr().out == expected

    def test_options_reach_the_picture(self, capsys: Any) -> None:
        debug.visualize_array_sharding(jnp.ones((4, 4)), scale=0.2, min_width=20, max_width=12)
        assert capsys.readouterr().out.splitlines()[0] == "┌──────────┐"

    @pytest.mark.parametrize("max_width", [20, 40, 80, 200])
    @pytest.mark.parametrize("columns", [1, 2, 3, 7])
    @pytest.mark.parametrize("count", [1, 3, 64])
    def test_laws(self, count: int, columns: int, max_width: int, capsys: Any) -> None:
        owners = np.empty((2, columns), object)
        for number, position in enumerate(np.ndindex(owners.shape)):
            owners[position] = tuple(range(number * count, (number + 1) * count))
        debug.visualize_sharding((100, 1000), Grid(owners), max_width=max_width)
        lines = capsys.readouterr().out.splitlines()
        # All lines are of one length, at most that given unless names of devices would be broken.
        assert len({len(line) for line in lines}) == 1
        assert len(lines[0]) <= max(max_width, columns * 5 + 1)
        # Every device stands in the picture once, in its column.
        cells = [line.strip("│").split("│") for line in lines if line[0] == "│"]
        for column in range(columns):
            shown = [int(x) for cell in cells for x in re.findall(r"\d+", cell[column])]
            assert shown == [x for row in range(2) for x in owners[row, column]]

    @pytest.mark.parametrize("color_map", [None, lambda x: (x, 0.5, 1.0), lambda x: (x, 0, 0, 1)])
    def test_colors(self, color_map: Any, capsys: Any, monkeypatch: Any) -> None:
        grid = Grid(PAIRS, "gpu")
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        debug.visualize_sharding((8, 8), grid, color_map=color_map)
        plain = capsys.readouterr().out
        assert "GPU 7" in plain
        monkeypatch.setenv("FORCE_COLOR", "1")
        debug.visualize_sharding((8, 8), grid, color_map=color_map)
        colored = capsys.readouterr().out
        assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain
        backgrounds = [int(code) for code in re.findall(r";48;5;(\d+)m", colored)]
        assert len(backgrounds) == 8
        assert min(backgrounds) >= 16
        assert max(backgrounds) <= 231
        assert len(set(backgrounds)) > 3
        debug.visualize_sharding((8, 8), grid, color_map=color_map, use_color=False)
        assert capsys.readouterr().out == plain

    @pytest.mark.parametrize("shape", [(), (2, 2, 2), (1, 1, 1, 1)])
    def test_other_shapes(self, shape: tuple[int, ...]) -> None:
        message = f"of one or two dimensions; got the shape {re.escape(str(shape))}"
        with pytest.raises(ValueError, match=message):
            debug.visualize_sharding(shape, here())
        with pytest.raises(ValueError, match=message):
            debug.visualize_array_sharding(jnp.zeros(shape))

    def test_misuse(self) -> None:
        with pytest.raises(TypeError, match=r"got Array. For an array write visualize_array"):
            debug.visualize_sharding((2, 2), jnp.ones((2, 2)))
        with pytest.raises(TypeError, match=r"visualize_array_sharding.* arr .*got dict"):
            debug.visualize_array_sharding({"a": X})
        for option in ("scale", "min_width", "max_width"):
            with pytest.raises(ValueError, match=f"{option} must be positive, got 0"):
                debug.visualize_sharding((2, 2), here(), **{option: 0})

        class Overlapping(Grid):
            def devices_indices_map(self, shape: tuple[int, ...]) -> dict[Any, tuple[slice, ...]]:
                return {Device("cpu", i): (slice(i), slice(i + 1)) for i in range(1, 3)}

        with pytest.raises(ValueError, match="not the boxes of one grid"):
            debug.visualize_sharding((4, 4), Overlapping([[0]]))
