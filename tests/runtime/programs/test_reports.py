"""Reports of compiled programs: what is predicted from shapes and shardings is what is found."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail.experimental import serialize_executable, topologies
from dovetail.experimental.topologies import HARDWARE, Hardware, Report
from dovetail.sharding import Mesh, NamedSharding, SingleDeviceSharding
from dovetail.sharding import PartitionSpec as P

DEVICES = dt.devices("cpu")[:4]
LINE = Mesh(DEVICES, "i")
SQUARE = Mesh(np.array(DEVICES).reshape(2, 2), ("x", "y"))

#: The kind of a collective, the axes, bytes of the whole array, bytes sent, how often it runs.
Found = tuple[str, tuple[str, ...], int, int, int]


def array(mesh: Mesh, shape: tuple[int, ...], *spec: Any, dtype: str = "float32") -> Any:
    return dt.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def on(mesh: Mesh, *spec: Any) -> NamedSharding:
    return NamedSharding(mesh, P(*spec))


def report(
    function: Callable[..., Any], *arguments: Any, out: Any = None, **options: Any
) -> Report:
    if out is not None:
        options["out_shardings"] = out
    return dt.jit(function, **options).lower(*arguments).compile().report()


def found(made: Report) -> list[Found]:
    return [
        (c.kind, c.axes or (), c.bytes, c.sent_bytes, c.times)  # type: ignore[misc]
        for c in made.collectives
    ]


M, K, N = 64, 32, 16
COLUMNS, ROWS = (M, K), (K, N)


#: Programs; what they exchange by their shapes and shardings; operations of products per device.
PROGRAMS: dict[str, tuple[Callable[[], Report], list[Found], int]] = {
    "all-reduce of a contraction": (
        lambda: report(jnp.matmul, array(LINE, COLUMNS, None, "i"), array(LINE, ROWS, "i")),
        [("all-reduce", ("i",), M * N * 4, 2 * 3 * M * N, 1)],
        2 * M * K * N // 4,
    ),
    "all-reduce over one of two axes": (
        lambda: report(
            jnp.matmul,
            array(SQUARE, COLUMNS, "y", "x"),
            array(SQUARE, ROWS, "x"),
            out=on(SQUARE, "y"),
        ),
        [("all-reduce", ("x",), M * N * 4 // 2, M * N * 4 // 2, 1)],
        2 * M * K * N // 4,
    ),
    "all-reduce over two axes": (
        lambda: report(
            jnp.matmul,
            array(SQUARE, COLUMNS, None, ("x", "y")),
            array(SQUARE, ROWS, ("x", "y")),
        ),
        [("all-reduce", ("x", "y"), M * N * 4, 2 * 3 * M * N, 1)],
        2 * M * K * N // 4,
    ),
    "all-gather": (
        lambda: report(lambda a: a, array(LINE, COLUMNS, "i"), out=on(LINE)),
        [("all-gather", ("i",), M * K * 4, 3 * M * K, 1)],
        0,
    ),
    "all-gather over one of two axes": (
        lambda: report(lambda a: a, array(SQUARE, COLUMNS, "x", "y"), out=on(SQUARE, "x")),
        [("all-gather", ("y",), M * K * 4 // 2, M * K, 1)],
        0,
    ),
    "all-to-all": (
        lambda: report(lambda a: a, array(LINE, COLUMNS, "i"), out=on(LINE, None, "i")),
        [("all-to-all", ("i",), M * K, 3 * M * K // 4, 1)],
        0,
    ),
    "permutation by a halo": (
        lambda: report(
            lambda a: jnp.concatenate([a[1:], a[:1]]), array(LINE, COLUMNS, "i"), out=on(LINE, "i")
        ),
        [("collective-permute", ("i",), K * 4, K * 4, 1)],
        0,
    ),
    "permutation by another order of axes": (
        lambda: report(lambda a: a, array(SQUARE, COLUMNS, ("x", "y")), out=on(SQUARE, ("y", "x"))),
        [("collective-permute", ("x", "y"), M * K, M * K, 1)],
        0,
    ),
    "a loop of ten": (
        lambda: report(
            lambda x: lax.scan(
                lambda c, _: (lax.with_sharding_constraint(c @ c.T, on(LINE, None, "i")), None),
                x,
                None,
                length=10,
            )[0],
            array(LINE, (N, N), None, "i"),
        ),
        [("all-reduce", ("i",), N * N * 4, 2 * 3 * N * N, 10)],
        10 * 2 * N * N * N // 4,
    ),
    "without exchange": (
        lambda: report(
            lambda a, b: jnp.einsum("bij,bjk->bik", a, b),
            array(LINE, (8, M, K), "i"),
            array(LINE, (8, K, N), "i"),
        ),
        [],
        8 * 2 * M * K * N // 4,
    ),
    "complex": (
        lambda: report(
            jnp.matmul,
            array(LINE, COLUMNS, "i", dtype="complex64"),
            array(LINE, ROWS, dtype="complex64"),
        ),
        [],
        8 * M * K * N // 4,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_predicted_bytes_and_operations_are_those_of_the_program(name: str) -> None:
    make, exchanges, operations = PROGRAMS[name]
    made = make()
    assert found(made) == exchanges
    assert made.product_flops == operations
    assert made.sent_bytes == sum(sent * times for *_, sent, times in exchanges)
    assert made.flops == made.product_flops + made.elementwise_flops
    assert all(each.exact for each in made.collectives)
    assert made.notes == ()
    assert (made.device_count, made.device_kind) == (4, "cpu")
    assert made.time is made.hardware is None, "CPUs have no data sheets here"
    assert pickle.loads(pickle.dumps(made)) == made
    assert dataclasses.asdict(made)["memory"]["temporary_bytes"] == made.memory.temporary_bytes


@pytest.mark.parametrize("turns", [1, 3, 10])
def test_loops_count_as_often_as_they_run(turns: int) -> None:
    def function(a: Any, b: Any) -> Any:
        def turn(carry: Any, _: None) -> tuple[Any, None]:
            carry = lax.with_sharding_constraint(jnp.tanh(carry) @ b, on(LINE))
            return lax.with_sharding_constraint(carry, on(LINE, None, "i")), None

        return lax.scan(turn, a, None, length=turns)[0]

    made = report(function, array(LINE, (M, K), None, "i"), array(LINE, (K, K), "i"))
    sums = Counter({c.kind: c.times for c in made.collectives})
    assert sums["all-reduce"] == turns
    assert made.product_flops == turns * 2 * M * K * K // 4
    assert made.notes == ()


def test_what_runs_an_unknown_number_of_times_is_said() -> None:
    a, b = array(LINE, (K, K), None, "i"), array(LINE, (K, K), "i")

    def turn(c: Any, b: Any) -> Any:
        return lax.with_sharding_constraint(jnp.tanh(c @ b), on(LINE))

    loop = report(lambda a, b: lax.while_loop(lambda c: c[0, 0] < 3, lambda c: turn(c, b), a), a, b)
    branch = report(lambda p, a, b: lax.cond(p, turn, lambda a, b: a, a, b), np.True_, a, b)
    for made, words in ((loop, "runs an unknown number of times"), (branch, "each is counted")):
        assert {(c.kind, c.times, c.exact) for c in made.collectives} >= {("all-reduce", 1, False)}
        assert any(words in note for note in made.notes), made.notes
        assert "Not counted:\n  " in str(made)
        assert re.search(r"all-reduce +i +1\? ", str(made))


def test_the_lines_are_the_users() -> None:
    def function(a: Any, b: Any) -> Any:
        c = a @ b
        return lax.with_sharding_constraint(jnp.tanh(c), on(LINE))

    made = report(function, array(LINE, COLUMNS, None, "i"), array(LINE, ROWS, "i"))
    first = inspect.getsourcelines(function)[1]
    (collective,) = made.collectives
    assert collective.source == f"{__file__}:{first + 1}"
    assert collective.scope.endswith("dot_general")
    assert {line.source for line in made.lines} <= {f"{__file__}:{first + n}" for n in (1, 2)}
    costs = {line.source: line for line in made.lines}[collective.source]
    assert costs.flops == made.product_flops
    assert costs.sent_bytes == made.sent_bytes
    assert costs.seconds is None


def test_memory_by_path() -> None:
    def step(state: Any, batch: Any, unused: Any) -> Any:
        return {"w": state["w"] - 1e-3 * batch.T @ batch, "count": state["count"] + 1}, batch.sum()

    arguments = (
        {"w": array(SQUARE, (K, K), "x", "y"), "count": np.int32(0)},
        array(SQUARE, (M, K), "x"),
        array(SQUARE, (1000,)),
    )
    shardings = ({"w": on(SQUARE, "x", "y"), "count": on(SQUARE)}, on(SQUARE))
    made = report(step, *arguments, out=shardings, donate_argnums=0)
    memory = made.memory
    assert [(a.path, a.shard_shape, a.bytes) for a in memory.arguments] == [
        ("state['count']", (), 4),
        ("state['w']", (K // 2, K // 2), K * K),
        ("batch", (M // 2, K), 2 * M * K),
    ], "an argument that is not used takes no memory"
    assert [(a.path, a.shape, a.bytes) for a in memory.results] == [
        ("result[0]['count']", (), 4),
        ("result[0]['w']", (K, K), K * K),
        ("result[1]", (), 4),
    ]
    assert memory.arguments[1].sharding == "P('x', 'y')"
    assert memory.arguments[1].dtype == np.float32
    assert memory.argument_bytes == sum(a.bytes for a in memory.arguments)
    assert memory.aliased_bytes == K * K + 4, "what is donated"
    stats = dt.jit(step, out_shardings=shardings, donate_argnums=0).lower(*arguments).compile()
    analysis = stats.memory_analysis()
    assert memory.temporary_bytes == analysis.temp_size_in_bytes
    assert memory.total_bytes == (
        analysis.argument_size_in_bytes
        + analysis.output_size_in_bytes
        - analysis.alias_size_in_bytes
        + analysis.temp_size_in_bytes
        + analysis.generated_code_size_in_bytes
    )
    text = str(made)
    assert re.search(
        r"state\['w'\] +1.0 KiB +float32\[32,32\], \[16,16\] each, P\('x', 'y'\)", text
    )
    assert "in place of donated arguments" in text


def test_constants_and_padding() -> None:
    table = np.arange(50_000, dtype=np.float32)
    made = dt.jit(lambda x: x + table).lower(table).compile().report()
    listed = {array.path: array.bytes for array in made.memory.arguments}
    assert sum(listed.values()) == made.memory.argument_bytes
    assert listed.pop("x") == 200_000
    assert list(listed.values()) in ([], [200_000]), "in the program, or an argument of its own"
    padded = dataclasses.replace(
        made, memory=dataclasses.replace(made.memory, argument_bytes=10**6, result_bytes=10**6)
    )
    assert str(padded).count(" of padding") == 2
    assert " of padding" not in str(made)


def test_long_tables_are_summed_up() -> None:
    arguments = [array(LINE, (4 * n, 8), "i") for n in range(1, 21)]
    made = report(lambda *xs: sum(x.sum() for x in xs), *arguments)
    text = str(made)
    smallest = sum(array.bytes for array in made.memory.arguments[:4])
    assert re.search(rf"\n    4 more +{smallest} B\n", text)
    (sums, *others) = PROGRAMS["all-reduce of a contraction"][0]().collectives
    assert others == []
    several = [dataclasses.replace(sums, name=f"r.{n}", times=2) for n in range(3)]
    several += [
        dataclasses.replace(sums, name=f"s.{n}", sent_bytes=n, source=f"f.py:{n}")
        for n in range(20)
    ]
    text = str(dataclasses.replace(made, collectives=tuple(several)))
    assert re.search(r"  all-reduce +i +6 ", text), "those that are alike are one row"
    assert re.search(r"\n  5 more +10 B\n", text)
    assert "f.py:5" in text
    assert "f.py:4" not in text


def test_one_device_and_keys() -> None:
    key = random.key(0)
    compiled = dt.jit(lambda k, x: random.normal(k, (8,)) + x).lower(key, jnp.ones(8)).compile()
    made = compiled.report("h200")
    assert made.mesh is None
    assert made.collectives == ()
    assert [(a.path, a.bytes, a.sharding) for a in made.memory.arguments] == [
        ("k", 8, "whole"),
        ("x", 32, "whole"),
    ]
    assert "collectives" not in str(made).partition("time")[0]
    # A program that was written down and read again tells the same, in a mesh, too.
    divided = dt.jit(jnp.matmul).lower(array(LINE, COLUMNS, None, "i"), array(LINE, ROWS, "i"))
    again = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(divided.compile())
    )
    assert found(again.report()) == PROGRAMS["all-reduce of a contraction"][1]


def test_time_is_that_of_the_model() -> None:
    rates = Hardware(
        name="slow",
        peak_flops={"f32": 1e6},
        memory_bandwidth=1e5,
        memory=10**9,
        link_bandwidth=1e3,
    )
    lowered = dt.jit(jnp.matmul).lower(array(LINE, COLUMNS, None, "i"), array(LINE, ROWS, "i"))
    made = lowered.compile().report(rates)
    assert made.time is not None
    talking = 2 * 3 * M * N / 1e3
    assert made.time.collectives == pytest.approx(talking)
    assert made.collectives[0].seconds == pytest.approx(talking)
    computing, moving = 2 * M * K * N / 4 / 1e6, 4 * (M * K / 4 + K * N / 4 + M * N) / 1e5
    assert moving > computing
    assert made.time.memory >= moving, "the product and, with some compilers, copies of its factors"
    assert made.time.memory == pytest.approx(made.moved_bytes / 1e5)
    assert made.time.compute == 0
    assert sum(made.time.shares.values()) == pytest.approx(1)
    assert made.time.total == pytest.approx(sum(line.seconds or 0 for line in made.lines))
    fast = dataclasses.replace(rates, memory_bandwidth=1e9)
    bound = lowered.compile().report(fast).time
    assert bound is not None
    assert bound.compute == pytest.approx(computing)
    text = str(made)
    assert "by the rates of slow, nothing overlapped" in text
    assert re.search(rf"{Path(__file__).name}:\d+ +\S+ m?s +\d+ %|collectives +\S+ s +\d+ %", text)


def test_time_of_loops() -> None:
    """Twice the turns take twice as long, whether they compute or move."""
    a = array(LINE, (N, N), None, "i")

    def times(turns: int, rates: Hardware) -> topologies.Time:
        def function(x: Any) -> Any:
            def turn(c: Any, _: None) -> tuple[Any, None]:
                return lax.with_sharding_constraint(c @ c.T, on(LINE, None, "i")), None

            return lax.scan(turn, x, None, length=turns)[0]

        time = dt.jit(function).lower(a).compile().report(rates).time
        assert time is not None
        return time

    slow = Hardware("slow", {"f32": 1e3}, memory_bandwidth=1e9, memory=1, link_bandwidth=1e6)
    ten, twenty = times(10, slow), times(20, slow)
    assert ten.compute == pytest.approx(10 * 2 * N**3 / 4 / 1e3)
    assert ten.collectives == pytest.approx(10 * 2 * 3 * N * N / 1e6)
    assert twenty.compute == pytest.approx(2 * ten.compute)
    thin = dataclasses.replace(slow, peak_flops={"f32": 1e15}, memory_bandwidth=1e3)
    ten, twenty, thirty = (times(turns, thin) for turns in (10, 20, 30))
    assert thirty.memory - twenty.memory == pytest.approx(twenty.memory - ten.memory)
    assert twenty.memory - ten.memory >= 10 * 3 * 4 * N * N / 4 / 1e3


def test_what_has_no_rate_is_said() -> None:
    with dt.enable_x64(True):
        made = report(jnp.matmul, array(LINE, (8, 8), "i", dtype="float64"), np.ones((8, 8)))
        compiled = dt.jit(jnp.matmul).lower(np.ones((8, 8)), np.ones((8, 8))).compile()
    assert made.product_flops == 2 * 8**3 // 4
    noted = compiled.report("v5e")
    assert noted.notes == (
        "there is no published rate of v5e for products of f64: they take no time in the model",
    )
    solved = dt.jit(jnp.linalg.cholesky).lower(np.eye(4, dtype=np.float32)).compile().report()
    assert any(note.startswith("the operations of the library call") for note in solved.notes)


def test_a_program_that_does_not_fit() -> None:
    small = dataclasses.replace(HARDWARE["v5e"], memory=1000)
    compiled = dt.jit(jnp.sin).lower(np.ones(1000, np.float32)).compile()
    assert re.search(r"memory +7\.8 KiB +of 1000 B, 800 %: too much", str(compiled.report(small)))


@pytest.mark.parametrize(
    ("hardware", "error", "message"),
    [
        ("v1", ValueError, "there are no rates of hardware 'v1'; there are those of v4, v5e, v5p"),
        (5, TypeError, "hardware is a name, such as 'v5e', or a dovetail.*Hardware; got 5"),
    ],
)
def test_unknown_hardware(hardware: Any, error: type[Exception], message: str) -> None:
    compiled = dt.jit(jnp.sin).lower(np.float32(1)).compile()
    with pytest.raises(error, match=message):
        compiled.report(hardware)


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is an optional dependency")
    for number, made in enumerate(
        (
            PROGRAMS["a loop of ten"][0](),
            dt.jit(jnp.sin).lower(np.ones(9)).compile().report("h100"),
        )
    ):
        path = tmp_path / f"{number}.png"
        figure = made.plot(path)
        assert path.read_bytes().startswith(b"\x89PNG")
        figure.savefig(tmp_path / "again.svg")
        assert (tmp_path / "again.svg").read_text(encoding="utf-8").count("<svg") == 1


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    made = dt.jit(jnp.sin).lower(np.float32(1)).compile().report()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="draws with matplotlib, which is not installed"):
        made.plot()


@pytest.mark.parametrize(
    "change", [{"memory_bandwidth": 0}, {"peak_flops": {"f32": -1.0}}, {"network_bandwidth": 0.0}]
)
def test_rates_are_positive(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"Hardware: {min(change)}.* of 'v5e' is positive; got "):
        dataclasses.replace(HARDWARE["v5e"], **change)


@pytest.mark.parametrize("name", HARDWARE)
def test_rates_are_complete(name: str) -> None:
    hardware = HARDWARE[name]
    assert hardware.name == name
    assert {"bf16", "f16", "f32", "f32:high", "f32:highest"} <= set(hardware.peak_flops)
    assert all(rate >= 1e12 for rate in hardware.peak_flops.values())
    assert (
        hardware.peak_flops["bf16"]
        >= hardware.peak_flops["f32"]
        >= hardware.peak_flops["f32:highest"]
    )
    assert 1e11 < hardware.memory_bandwidth < 1e13
    assert 1e10 < hardware.memory < 1e12
    network = hardware.network_bandwidth
    assert network is None or network < hardware.link_bandwidth < hardware.memory_bandwidth
    assert hardware.sources
    assert all(source.startswith("https://") for source in hardware.sources)


def test_meshes_of_descriptions() -> None:
    here = topologies.get_attached_topology("cpu")
    assert here.devices == dt.devices("cpu")
    assert here.platform == "cpu"
    mesh = topologies.make_mesh(here, (len(here.devices), 1), ("a", "b"))
    assert mesh is Mesh(np.array(here.devices).reshape(-1, 1), ("a", "b"))
    assert topologies.make_mesh(here, (len(here.devices),), "a").axis_names == ("a",)
    one = topologies.TopologyDescription(here.devices[:1], "cpu")
    x = dt.ShapeDtypeStruct((4,), "float32", sharding=SingleDeviceSharding(one.devices[0]))
    assert dt.jit(jnp.sin).lower(x).compile().report().device_count == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda here: topologies.make_mesh(here.devices, (4,), "a"),
            TypeError,
            "make_mesh: topo is a description of devices, such as get_topology_desc",
        ),
        (
            lambda here: topologies.make_mesh(here, (3,), "a"),
            ValueError,
            r"a mesh \(3,\) has 3 devices, and there are \d",
        ),
        (
            lambda here: topologies.make_mesh(here, (len(here.devices), 1), "a"),
            ValueError,
            "Mesh: ",
        ),
        (
            lambda _: topologies.get_attached_topology(3),
            TypeError,
            "get_attached_topology: platform must be a string, got 3",
        ),
        (
            lambda _: topologies.get_attached_topology("abacus"),
            RuntimeError,
            "unknown platform 'abacus'",
        ),
    ],
)
def test_wrong_meshes_of_descriptions(
    call: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(topologies.get_attached_topology("cpu"))
