"""Which programs divide their loops among threads."""

from __future__ import annotations

import pytest

from dovetail_cpu import kernel_library, plugin, runtime

PASS = "cpu-parallel-task-assigner"
MILLION = 10**6


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize(
    ("threads", "shapes", "divided"),
    [
        (2, [], True),  # there is no program yet
        (2, [()], False),
        (2, [(1 << 16,)], False),
        (2, [(2, 1 << 16)], True),
        (2, [(MILLION,)], True),
        (2, [(MILLION - 1,)], "masks"),
        (2, [(MILLION,), (MILLION - 1,)], "masks"),
        (2, [(1, MILLION - 1)], "masks"),
        (2, [(1, 1, MILLION)], True),
        (2, [(3, MILLION - 1)], True),
        (4, [(2, MILLION - 1)], "masks"),
        (4, [(3, MILLION - 1)], "masks"),
        (3, [(MILLION,)], "masks"),
        (3, [(999_999,)], True),
        (5, [(MILLION - 1,)], True),  # so many threads make up for it
        (2, [(1000, 1001), (99_999,)], True),  # a small part of the program
        (2, [(0, MILLION - 1), (2, MILLION)], True),
    ],
)
def test_loops_are_divided_where_it_pays(
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
    shapes: list[tuple[int, ...]],
    divided: object,
    masks: bool,
    alone: bool,
) -> None:
    monkeypatch.setattr(runtime, "_alone", [alone])
    monkeypatch.setattr(runtime, "_threads", [threads])
    monkeypatch.setattr(kernel_library, "has_masks", lambda: masks)
    options = plugin.dovetail_compile_options(
        "cpu", {}, frozenset({"stablehlo.add", "stablehlo.sine"}), frozenset(shapes)
    )
    expected = not alone and (masks if divided == "masks" else divided)
    assert (options.get("xla_disable_hlo_passes") != PASS) == expected


@pytest.mark.parametrize(
    ("threads", "size", "operations", "divided"),
    [
        (2, 3 << 16, {"add", "constant", "select"}, False),
        (2, (3 << 16) + 2, {"add", "constant", "select"}, True),
        (2, 1 << 17, {"slice", "tanh"}, True),
        (2, 1 << 17, {"dot_general"}, True),
        (3, 3 << 16, {"add"}, True),
    ],
)
def test_quick_operations_are_divided_later(
    monkeypatch: pytest.MonkeyPatch, threads: int, size: int, operations: set[str], divided: bool
) -> None:
    monkeypatch.setattr(runtime, "_alone", [False])
    monkeypatch.setattr(runtime, "_threads", [threads])
    names = frozenset({"builtin.module", *(f"stablehlo.{name}" for name in operations)})
    options = plugin.dovetail_compile_options("cpu", {}, names, frozenset({(size,)}))
    assert (options.get("xla_disable_hlo_passes") != PASS) == divided


def test_without_a_client_the_processors_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_alone", [False])
    monkeypatch.setattr(runtime, "_threads", [0])
    monkeypatch.setattr(runtime, "processors", lambda: 2)
    monkeypatch.setattr(kernel_library, "has_masks", lambda: False)
    for size in (MILLION - 1, MILLION):
        options = plugin.dovetail_compile_options("cpu", {}, frozenset(), frozenset({(size,)}))
        assert (options.get("xla_disable_hlo_passes") == PASS) == (size % 2)


@pytest.mark.parametrize("threads", [None, 1, 2, 5])
@pytest.mark.parametrize("variable", [None, "3", "many"])
def test_the_pool_says_how_large_it_is(
    monkeypatch: pytest.MonkeyPatch, threads: int | None, variable: str | None
) -> None:
    for name in ("PJRT_NPROC", "NPROC"):
        monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv("NPROC", variable)
    processors = runtime.processors()
    with runtime.pool_of(threads, fewest=2) as size:
        pass
    if threads is not None:
        assert size == max(threads, 2)
    else:
        assert size == (3 if variable == "3" else processors if variable else max(processors, 2))
