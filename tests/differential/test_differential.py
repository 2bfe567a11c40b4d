"""The comparison with JAX itself: programs, their runs, what is found and how it is made small."""

from __future__ import annotations

import importlib
import json
import math
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import answers
import numpy as np
import pytest
from answers import Remembered
from checking import Answers, check
from compare_with_jax import Pairs, find_smallest, report
from comparison import Difference, Outcome, compare_outcomes, explained_by_rounding
from generation import GROUPS, generate
from known_differences import KNOWN
from runner import Library
from source import Program, operands, operation_lines, script
from workers import Pair

FOLDER = Path(__file__).parent
SEEDS = range(60)

#: Public functions that are in no program, by why.
NOT_DRAWN = {
    "reads or writes files, text or settings": "array_repr array_str from_dlpack frombuffer "
    "fromfile fromiter fromstring get_printoptions load printoptions save savez set_printoptions",
    "tells of dtypes, and gives an object of its own": "explain_dtype finfo iinfo",
    "makes a function, or a type for annotations": "frompyfunc random.Key",
    "its result is not determined": "lax.empty linalg.eig lax.linalg.eig lax.rng_uniform "
    "lax.rng_bit_generator lax.approx_max_k lax.approx_min_k",
    "its result is no array": "lax.after_all lax.create_token lax.conv_dimension_numbers "
    "lax.conv_general_permutations lax.conv_general_shape_tuple lax.conv_shape_tuple "
    "lax.conv_transpose_shape_tuple lax.padtype_to_pads lax.reduce_window_shape_tuple "
    "lax.dce_sink lax.DotDimensionNumbers",
    "draws other numbers than JAX, or is tested with fixed ones": "ball beta binomial chisquare "
    "dirichlet double_sided_maxwell random.f random.gamma generalized_normal geometric loggamma "
    "lognormal maxwell multinomial multivariate_normal orthogonal pareto poisson rayleigh random.t "
    "triangular wald weibull_min",
    "takes functions that have to keep promises": "lax.composite lax.custom_linear_solve "
    "lax.custom_root lax.platform_dependent lax.stage",
    "names an axis, and is compared with NumPy in tests/ops/parallel": "lax.all_gather "
    "lax.all_to_all lax.axis_index lax.axis_size lax.pbroadcast lax.pcast lax.pmax lax.pmean "
    "lax.pmin lax.ppermute lax.pshuffle lax.psum lax.psum_scatter lax.pswapaxes lax.pvary "
    "lax.psum_scatter_start lax.ragged_all_to_all lax.reduce_scatter",
    "takes records of dimensions that random numbers seldom fit": "lax.ragged_dot_general "
    "lax.scaled_dot lax.conv_general_dilated_local lax.linalg.ormqr nn.dot_product_attention "
    "nn.get_scaled_dot_general_config nn.scaled_dot_general nn.scaled_matmul "
    "lax.linalg.lu_pivots_to_permutation",
}


def drawn() -> set[str]:
    """The functions of all families."""
    return {function for group, _ in GROUPS for names in group.values() for function in names}


class Planted:
    """One library in the place of both; what is ours is changed."""

    def __init__(self, library: Library, function: str) -> None:
        self.library = library
        self.function = function

    def other(self, program: Program, modes: list[str], noise: int | None = None) -> Answers:
        """What the library gives."""
        return self.library.run(program, modes, noise)

    def run(self, program: Program, modes: list[str]) -> tuple[Answers, Answers]:
        """What the library gives, and the same with a mistake in one function."""
        ours, theirs = self.other(program, modes), self.other(program, modes)
        for mode in {*modes} - {"types"}:
            for operation, outcome in zip(program["operations"], ours[mode], strict=False):
                if operation["function"] == self.function and "leaves" in outcome:
                    for leaf in outcome["leaves"]:
                        leaf["value"] = leaf["value"] + np.ones((), leaf["value"].dtype)
        return ours, theirs


@pytest.fixture
def library() -> Iterator[Library]:
    """Our library in this process."""
    ours = Library("dovetail")
    yield ours
    ours.package.config.update("enable_x64", False)


def outcome(value: Any, weak: bool = False) -> Outcome:
    return {"structure": "*", "leaves": [{"value": np.asarray(value), "weak_type": weak}]}


def error(*classes: str) -> Outcome:
    return {"error": list(classes), "message": "some words"}


def test_a_seed_has_one_program() -> None:
    code = "import json; from generation import generate; print(json.dumps(generate(7)))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=FOLDER,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert texts == {json.dumps(generate(7)).encode() + b"\n"}


@pytest.mark.parametrize("mode", ["eager", "jit", "vmap", "grad"])
def test_programs_are_python_and_use_what_is_there(mode: str) -> None:
    for seed in SEEDS:
        program = generate(seed)
        assert 5 <= len(program["operations"]) <= 20
        compile(script(program, "dovetail", mode), f"<program {seed}>", "exec")
        there = {entry["name"] for entry in program["inputs"]}
        for operation in program["operations"]:
            assert there.issuperset(operands(operation))
            there.add(operation["result"])


def test_programs_have_every_kind_of_thing() -> None:
    programs = [generate(seed) for seed in range(1500)]
    functions = {o["function"] for program in programs for o in program["operations"]}
    assert len(functions) > 0.95 * len(drawn())
    entries = [entry for program in programs for entry in program["inputs"]]
    assert {"array", "numpy", "python", "weak"} == {entry["flavour"] for entry in entries}
    assert {0, 1, 2} <= {n for entry in entries for n in entry["shape"]}
    assert {"bool", "int4", "uint8", "float8_e5m2", "bfloat16", "complex128"} <= {
        entry["dtype"] for entry in entries
    }
    assert {True, False} == {program["x64"] for program in programs}


def test_every_public_function_is_drawn() -> None:
    left_out = {name for names in NOT_DRAWN.values() for name in names.split()}
    missing = []
    for module, prefix in (
        ("dovetail.numpy", "jnp."),
        ("dovetail.numpy.fft", "jnp.fft."),
        ("dovetail.nn", "nn."),
        ("dovetail.lax", "lax."),
        ("dovetail.random", "random."),
    ):
        stub = Path(str(importlib.import_module(module).__file__)).with_suffix(".pyi")
        text = stub.read_text(encoding="utf-8") if stub.exists() else ""
        for name in dict.fromkeys(re.findall(r" as (\w+)$", text, re.MULTILINE)):
            value = getattr(importlib.import_module(module), name)
            plain = callable(value) and not isinstance(value, type) and not name.endswith("_p")
            shown = f"{prefix}{name}"
            if plain and shown not in drawn() and not {name, shown} & left_out:
                missing.append(shown)
    assert missing == []


def test_every_function_that_is_drawn_is_there(library: Library) -> None:
    for function in drawn():
        if function.startswith(("jnp.", "lax.", "nn.", "random.", "dt.")):
            assert callable(eval(function, library.names)), function


@pytest.mark.parametrize(
    ("ours", "theirs", "field"),
    [
        (outcome(1), outcome(1), None),
        (outcome(1), outcome(2), "value"),
        (outcome(np.float32(1)), outcome(np.float32(1 + 1e-6)), None),
        (outcome(np.float32(1)), outcome(np.float32(1 + 1e-3)), "value"),
        (outcome(math.nan), outcome(math.nan), None),
        (outcome(math.nan), outcome(1.0), "value"),
        (outcome(math.inf), outcome(-math.inf), "value"),
        (outcome(np.int32(1)), outcome(np.int64(1)), "dtype"),
        (outcome(1), outcome(1, weak=True), "weak type"),
        (outcome([1]), outcome(1), "shape"),
        (outcome(1) | {"structure": "list(*)"}, outcome(1), "structure"),
        (error("TypeError", "Exception"), error("ValueError", "Exception"), "error"),
        (error("AxisError", "ValueError"), error("ValueError"), None),
        (error("TypeError"), outcome(1), "refused"),
        (outcome(1), error("TypeError"), "accepted"),
        ({"skipped": True}, outcome(1), None),
    ],
)
def test_two_outcomes_differ_in(ours: Outcome, theirs: Outcome, field: str | None) -> None:
    found = compare_outcomes(ours, theirs)
    assert (found and found[0]) == field


def _pair(x: float, y: float) -> Any:
    return np.array([x, y], np.float32)


def test_rounding_explains_what_noise_moves() -> None:
    ours, theirs = outcome(_pair(1.0, 0.01)), outcome(_pair(1.0, 0.02))
    still, moved = outcome(_pair(1.0, 0.02)), outcome(_pair(1.0, 0.03))
    assert explained_by_rounding(ours, theirs, [still, moved])
    assert not explained_by_rounding(ours, theirs, [still, still])
    assert not explained_by_rounding(outcome(1), outcome(2), [outcome(2)])
    assert explained_by_rounding(outcome(1), outcome(2), [outcome(2), outcome(1)])


def test_noise_moves_what_cancels(library: Library) -> None:
    matrix = {"flavour": "array", "dtype": "float32", "shape": [3, 3], "batched": True}
    values = [0.3, -1.7, 2.1, 0.9, 1.3, -0.4, 1.1, 0.2, 0.7]
    reference = ["ref", "x0"]
    inverse = ["call", "jnp.linalg.inv", [reference], {}]

    def products(function: str, noise: int | None) -> Any:
        program: Program = {
            "seed": 0,
            "x64": False,
            "inputs": [matrix | {"name": "x0", "values": values}],
            "operations": [
                {"result": "v0", "function": function, "arguments": [reference, inverse]}
            ],
        }
        (found,) = library.run(program, ["eager"], noise)["eager"]
        return found["leaves"][0]["value"] * (1 - np.eye(3))  # all zero but for rounding

    for function, moved in (("jnp.linalg.matmul", True), ("jnp.matmul", False)):
        still = products(function, None)
        apart = [
            np.abs(products(function, noise) - still) > 0.1 * np.abs(still) for noise in (1, 2)
        ]
        assert np.any(apart) == moved


@pytest.mark.parametrize("mode", ["types", "eager", "jit", "vmap", "grad"])
def test_a_library_agrees_with_itself(library: Library, mode: str) -> None:
    program = generate(3) | {"mode": mode, "compiled": True}
    assert check(Planted(library, "none"), program) == []


def test_a_planted_difference_is_found_and_made_small(library: Library) -> None:
    program: Program = {
        "seed": 0,
        "x64": False,
        "mode": "grad",
        "compiled": True,
        "inputs": [
            {
                "name": "x0",
                "flavour": "numpy",
                "dtype": "float32",
                "shape": [2, 2],
                "values": [0.5, 3.0, -1.0, 2.0],
                "batched": True,
            }
        ],
        "operations": [
            {"result": "v0", "function": "jnp.sin", "arguments": [["ref", "x0"]]},
            {"result": "v1", "function": "jnp.exp", "arguments": [["ref", "v0"]]},
            {
                "result": "v2",
                "function": "jnp.cumsum",
                "arguments": [["ref", "v1"]],
                "keywords": {"axis": 1},
            },
            {"result": "v3", "function": "jnp.tanh", "arguments": [["ref", "v2"]]},
        ],
    }
    libraries = Planted(library, "jnp.cumsum")
    (difference,) = check(libraries, program)
    assert (difference.operation, difference.field, difference.mode) == ("v2", "value", "jit")
    small = find_smallest(libraries, program, difference)
    assert [operation_lines(operation) for operation in small["operations"]] == [
        ["v2 = jnp.cumsum(v1)"]
    ]
    assert small["inputs"][0]["values"] == [1.0]
    text = report(program, difference, small)
    assert "v1 = jnp.asarray(np.array([1.0], 'float32').reshape((1, 1)))" in text
    assert "from jax import lax, nn, random" in text


def test_a_process_that_ends_or_hangs_is_an_outcome() -> None:
    pair = Pair(sys.executable, sys.executable)
    pair.ours.process.command[-1] = "no_such_library"
    pair.theirs.process.command[1:] = ["-c", "import time; time.sleep(60)"]
    pair.theirs.process.patience = 0.1
    ours, theirs = pair.run(generate(0), ["eager"])
    pair.close()
    assert ours["eager"][0]["error"] == ["Crashed"]
    assert theirs["eager"][0]["error"] == ["Hung"]


def test_what_jax_made_of_a_program_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "DECIDING", ("jaxlib", "numpy"))
    path, program = tmp_path / "folder" / "answers.sqlite", generate(3)

    def pair(flags: str) -> Pair:
        return Pair(sys.executable, sys.executable, None, Remembered(path, sys.executable, flags))

    first = pair("")
    first.theirs.process.command[-1] = "dovetail"
    eager = first.other(program | {"seed": 4}, ["types"])
    first.close()
    assert any("leaves" in outcome for outcome in eager["types"])
    again = pair("")  # which has no library to ask
    again.theirs.process.command[-1] = "no_such_library"
    assert again.other(program, ["types"]).keys() == eager.keys()
    assert [o.get("structure") for o in again.other(program, ["types"])["types"]] == [
        o.get("structure") for o in eager["types"]
    ]
    for changed in (program | {"x64": not program["x64"]}, program | {"operations": []}):
        assert again.other(changed, ["types"])["types"][0]["error"] == ["Crashed"]
    others = pair("--other")
    others.theirs.process.command[-1] = "no_such_library"
    assert others.other(program, ["types"])["types"][0]["error"] == ["Crashed"]


def test_workers_change_nothing_but_the_time() -> None:
    def run(workers: int) -> list[tuple[Program, list[Difference]]]:
        words = {"dovetail": sys.executable, "jax": sys.executable, "cache": None}
        options = Namespace(**words, workers=workers, seed=5, programs=0, traced=3)
        pairs = Pairs(options)
        checked = [(program, found) for program, found in pairs.check_all()]
        pairs.close()
        return checked

    alone, together = run(1), run(2)
    assert alone == together
    assert [program["seed"] for program, _ in alone] == [5, 6, 7]


def test_known_differences_are_documented(told_differences: set[str]) -> None:
    assert {known.where for known in KNOWN} - {None} <= told_differences


def test_a_known_difference_is_told_by_its_outcome() -> None:
    refused = Difference("eager", "v0", "jnp.add", "refused", "OverflowError: 300 does not fit", "")
    value = Difference("eager", "v0", "jnp.add", "value", "", "")
    assert [any(known.applies(d) for known in KNOWN) for d in (refused, value)] == [True, False]


@pytest.mark.parametrize(
    ("function", "ours", "theirs", "known"),
    [
        ("jnp.floor_divide", "* int32[2] [0]", "* int32[2] [-1]", True),
        ("jnp.floor_divide", "* int32[2] [0, 3]", "* int32[2] [-1, 4]", False),
        ("lax.zeta", "* float32[2] [inf]", "* float32[2] [nan]", True),
        ("lax.zeta", "* float32[2] [inf, 2.0]", "* float32[2] [nan, 1.0]", False),
        ("jnp.partition", "* float32[3] [1.0, 2.0]", "* float32[3] [2.0, 1.0]", True),
        ("jnp.partition", "* float32[3] [1.0, 2.0]", "* float32[3] [2.0, 3.0]", False),
        ("jnp.any", "* bool[2] [True]", "* bool[2] [False]", True),
        ("jnp.any", "* bool[2] [False]", "* bool[2] [True]", False),
        ("jnp.unique", "* float32[2] [1.0]", "* float32[2] [0.0]", False),
        ("lax.linalg.cholesky_update", "* float32[2, 2] [0.5]", "* float32[2, 2] [0.2]", False),
    ],
)
def test_each_element_that_differs_is_known(
    function: str, ours: str, theirs: str, known: bool
) -> None:
    """One element that differs for another cause is told."""
    difference = Difference("eager", "v0", function, "value", ours, theirs)
    assert any(one.applies(difference) for one in KNOWN) == known
