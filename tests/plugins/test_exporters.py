"""Exporters: found, loaded when they are used, isolated; and what they are given.

The exporter for text is one that a stranger could have written, by docs/write-an-exporter.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import exporters, lax
from dovetail._core.base import config
from dovetail._core.plugins.manager import PluginManager, use_manager
from dovetail._core.plugins.manager import manager as process_manager
from dovetail.errors import ExporterUnavailableError
from dovetail.extend import PLUGIN_API

TEXT = textwrap.dedent(
    '''
    """Programs as lines of text."""

    from dovetail.extend import ExportedProgram, ExporterInfo, Literal, hookimpl
    from dovetail.extend.programs import bodies, inline_calls, place_of


    @hookimpl
    def dovetail_exporter_info():
        return ExporterInfo(
            format="lines",
            api=(1, 3),
            description="A line for each operation",
            suffix=".txt",
            options={"places": "whether to write the user's lines"},
        )


    @hookimpl
    def dovetail_export(request):
        places = request.options.get("places", False)
        lines = [f"take {', '.join(request.input_names)}"]
        write(request.jaxpr, request.input_names, lines, places, "")
        lines.append(f"give {', '.join(request.output_names)}")
        data = "\\n".join(lines).encode()
        return ExportedProgram("lines", data, request.input_names, request.output_names)


    def write(closed, inputs, lines, places, indent):
        closed = inline_calls(closed)
        names = dict(zip(closed.jaxpr.invars, inputs))
        for var, value in zip(closed.jaxpr.constvars, closed.consts):
            names[var] = f"constant{list(value.shape)}"
        for eqn in closed.jaxpr.eqns:
            operands = [
                str(v.val) if isinstance(v, Literal) else names[v] for v in eqn.invars
            ]
            for number, var in enumerate(eqn.outvars):
                names[var] = f"v{len(names)}"
            results = ", ".join(f"{names[v]}: {v.aval.str_short()}" for v in eqn.outvars)
            place = f"  # {place_of(eqn)}" if places else ""
            lines.append(f"{indent}{results} = {eqn.primitive.name} {' '.join(operands)}{place}")
            for parameter, inner in bodies(eqn).items():
                for body in inner:
                    lines.append(f"{indent}  {parameter}:")
                    arguments = [f"p{i}" for i in range(len(body.jaxpr.invars))]
                    write(body, arguments, lines, places, indent + "    ")
    '''
)


def exporter(name: str, more: str = "", api: tuple[int, int] = (1, 3)) -> str:
    """Source of an exporter that describes itself, and more."""
    return (
        "from dovetail.extend import *\n\n@hookimpl\ndef dovetail_exporter_info():\n"
        f"    return ExporterInfo({name!r}, {api})\n\n" + textwrap.dedent(more)
    )


EMPTY = """
@hookimpl
def dovetail_export(request):
    return ExportedProgram("empty", b"", request.input_names, request.output_names)
"""


@pytest.fixture
def installed(install) -> Callable[[str, str], None]:
    """Installs an exporter of one module."""

    def add(name: str, source: str, distribution: str = "") -> None:
        module = f"acme_{name}_exporter"
        distribution = distribution or f"acme-{name}"
        install(distribution, {name: module}, {module: source}, group="dovetail.exporters")

    return add


@pytest.fixture
def own_manager() -> Iterator[PluginManager]:
    """A manager of its own that `dovetail.exporters` uses meanwhile."""
    before = process_manager()
    mine = PluginManager()
    use_manager(mine)
    yield mine
    use_manager(before)


def test_a_strangers_exporter(installed, own_manager, tmp_path) -> None:
    installed("lines", TEXT)
    weight = jnp.ones((3, 2))

    @dt.jit
    def layer(params: Any, x: Any) -> Any:
        return jnp.tanh(x @ params["w"])

    def function(params: Any, x: Any) -> Any:
        y = layer(params, x) @ weight
        return {"y": y, "total": lax.cond(y.sum() > 0, lambda: 1.0, lambda: 2.0)}

    params = {"w": dt.ShapeDtypeStruct((4, 3), "float32")}
    program = exporters.export("lines", function, params, np.ones((2, 4), np.float32))
    assert bytes(program).decode().splitlines() == [
        "take params['w'], x",
        "v3: f32[2,3] = dot_general x params['w']",
        "v4: f32[2,3] = tanh v3",
        "v5: f32[2,2] = dot_general v4 constant[3, 2]",
        "v6: f32[] = reduce_sum v5",
        "v7: bool[] = gt v6 0.0",
        "v8: i32[] = convert_element_type v7",
        "v9: f32[] = cond v8",
        "  branches:",
        "  branches:",
        "give result['total'], result['y']",
    ]
    assert program.input_names == ("params['w']", "x")
    program.save(tmp_path / "program.txt")
    assert (tmp_path / "program.txt").read_bytes() == program.data
    info = exporters.describe("lines")
    assert (info.suffix, info.description) == (".txt", "A line for each operation")
    with_places = exporters.export("lines", lambda x: jnp.sin(x), 1.0, places=True)
    assert "v1: f32[] = sin x  # test_exporters.py:" in bytes(with_places).decode()


def test_what_is_not_needed_is_left_out(installed, own_manager) -> None:
    installed("lines", TEXT)

    def function(x: Any, unused: Any) -> Any:
        jnp.cos(x)
        return lax.scan(lambda h, y: (h + y, jnp.exp(y)), 0.0, x)[0]

    lines = bytes(exporters.export("lines", function, jnp.ones(3), jnp.ones(2))).decode()
    assert "take x, unused" in lines
    assert "cos" not in lines
    assert "exp" not in lines


def test_a_program_is_traced_again_for_other_shapes(own_manager) -> None:
    shapes = []

    class Exporter:
        @dt.extend.hookimpl
        def dovetail_exporter_info(self) -> Any:
            return exporters.ExporterInfo("shapes", (1, 3))

        @dt.extend.hookimpl
        def dovetail_export(self, request: Any) -> Any:
            again = request.trace_again([(7, 3), (7,)])
            shapes.extend(aval.shape for aval in again.jaxpr.out_avals)
            assert request.in_tree.unflatten([1, 2]) == (1, 2)
            assert request.out_tree.unflatten([1, 2]) == (1, 2)
            with pytest.raises(ValueError, match="1 shape for 2 arguments of <lambda>"):
                request.trace_again([(7, 3)])
            names = (request.input_names, request.output_names)
            return exporters.ExportedProgram("shapes", b"", *names)

    own_manager.register(Exporter(), "shapes")
    assert "shapes" in exporters.formats()
    exporters.export("shapes", lambda x, y: (x.T, y), jnp.ones((2, 3)), jnp.ones(2))
    assert shapes == [(3, 7), (7,)]
    with pytest.raises(ValueError, match="there is an exporter of 'shapes' already"):
        own_manager.register(Exporter(), "again")
    own_manager.unregister("shapes")
    assert "shapes" not in exporters.formats()


def test_listing_imports_nothing(installed, own_manager) -> None:
    installed("absent", "raise AssertionError('imported')")
    assert "absent" in exporters.formats()
    assert "acme_absent_exporter" not in sys.modules


@pytest.mark.parametrize(
    ("source", "text"),
    {
        "import": ("import absent_library", "failed at import: ModuleNotFoundError"),
        "no hooks": ("x = 1", "failed at register: TypeError: it implements no hook"),
        "a hook misspelt": (
            exporter("bad", "@hookimpl\ndef dovetail_exprt(request): pass\n"),
            "failed at register: TypeError: there is no hook dovetail_exprt; did you mean",
        ),
        "no export": (
            exporter("bad"),
            "failed at info: TypeError: it implements no dovetail_export, which every exporter",
        ),
        "no description": (
            "from dovetail.extend import *\n" + EMPTY,
            "failed at info: TypeError: it implements no dovetail_exporter_info",
        ),
        "another name": (
            exporter("good", EMPTY),
            "failed at info: ValueError: the entry point is named 'bad' but the exporter says its "
            "format is 'good'",
        ),
        "a newer version": (
            exporter("bad", EMPTY, (PLUGIN_API[0], PLUGIN_API[1] + 1)),
            "failed at version: BackendUnavailableError: it was written for plug-in API",
        ),
        "an exit": ("import sys; sys.exit(3)", "failed at import: SystemExit: 3"),
    }.values(),
)
def test_a_broken_exporter(installed, own_manager, source: str, text: str) -> None:
    installed("bad", source)
    installed("lines", TEXT)
    for _ in range(2):
        with pytest.raises(ExporterUnavailableError) as caught:
            exporters.export("bad", jnp.sin, 1.0)
        assert text in " ".join(str(caught.value).split())
        assert "bad (from acme-bad 1.0)" in str(caught.value)
        assert "Update or reinstall acme-bad" in str(caught.value)
    assert exporters.export("lines", jnp.sin, 1.0).data


def test_an_unknown_format(installed, own_manager) -> None:
    installed("lines", TEXT)
    with pytest.raises(ExporterUnavailableError, match="unknown format 'line'") as caught:
        exporters.export("line", jnp.sin, 1.0)
    assert "Did you mean 'lines'?" in str(caught.value)
    assert "lines (acme-lines 1.0)" in str(caught.value)


def test_options(installed, own_manager) -> None:
    installed("lines", TEXT)
    with pytest.raises(TypeError, match="has no option 'place'; did you mean 'places'"):
        exporters.export("lines", jnp.sin, 1.0, place=True)
    with config.disabled_plugins("lines"), pytest.raises(ExporterUnavailableError) as caught:
        exporters.export("lines", jnp.sin, 1.0)
    assert "left out by the option disabled_plugins='lines'" in str(caught.value)


def test_what_an_exporter_returns_is_checked(installed, own_manager) -> None:
    source = exporter("none", "@hookimpl\ndef dovetail_export(request): return b'data'\n")
    installed("none", source)
    with pytest.raises(
        TypeError, match=r"dovetail_export of none .* returned b'data', which is no"
    ):
        exporters.export("none", jnp.sin, 1.0)


def test_an_error_of_an_exporter_reaches_the_user(installed, own_manager) -> None:
    more = "@hookimpl\ndef dovetail_export(request): raise NotImplementedError('no sine')\n"
    installed("stern", exporter("stern", more))
    with pytest.raises(NotImplementedError, match="no sine"):
        exporters.export("stern", jnp.sin, 1.0)
    assert own_manager.failures == ()


def test_a_value_of_another_transformation_is_no_constant(installed, own_manager) -> None:
    installed("lines", TEXT)

    def outer(x: Any) -> Any:
        exporters.export("lines", lambda y: y + x, 1.0)
        return x

    with pytest.raises(dt.errors.ConcretizationTypeError, match="is exported with its value"):
        dt.jit(outer)(1.0)


def test_the_doctor(install) -> None:
    for name, source in {"lines": TEXT, "bad": "import absent_library"}.items():
        module = f"acme_{name}_exporter"
        install(f"acme-{name}", {name: module}, {module: source}, group="dovetail.exporters")
    paths = [str(install.folder), os.environ.get("PYTHONPATH", "")]
    answer = subprocess.run(
        [sys.executable, "-m", "dovetail", "doctor", "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        timeout=120,
    )
    data = json.loads(answer.stdout)
    assert answer.returncode == data["exit_code"] == 1
    found = {report["format"]: report for report in data["exporters"]}
    assert found["lines"]["state"] == "ready"
    assert found["lines"]["description"] == "A line for each operation"
    assert found["lines"]["origin"] == "acme-lines 1.0"
    assert (found["bad"]["state"], found["bad"]["phase"]) == ("broken", "import")
    assert "absent_library" in found["bad"]["reason"]
    assert any("bad (from acme-bad 1.0) failed at import" in p for p in data["problems"])
