"""Finding the user's line."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import dovetail
from dovetail._core.base import bindings, pytree, source

CORE = next(iter(dovetail.__path__))


def here() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_the_users_frame_of_the_live_stack() -> None:
    frame, line = source.user_frame(), here()
    assert frame is not None
    assert (frame.file, frame.line) == (__file__, line)
    assert frame.function == "test_the_users_frame_of_the_live_stack"
    assert frame.column == 19
    assert str(frame) == source.describe().replace(str(here()), str(line))


def test_the_users_frame_of_a_captured_stack() -> None:
    class Model:
        def loss(self) -> bindings.Traceback:
            return bindings.get_traceback()

    traceback = Model().loss()
    frame = source.user_frame(traceback)
    assert frame is not None
    assert frame.function.endswith("Model.loss")
    assert frame.line == inspect.getsourcelines(Model.loss)[1] + 1
    assert source.describe(traceback) == f"test_source.py:{frame.line} ({frame.function})"


def test_frames_of_the_framework_are_left_out() -> None:
    found = []

    @dovetail.enable_x64(True)
    def leaf_function(x: int) -> int:
        found.append(bindings.get_traceback())
        return x

    call = functools.partial(pytree.map, source.user_frame)
    line = here() + 1
    frame = pytree.map(lambda x: source.user_frame(), [1])[0]
    assert frame.line == line
    with pytest.raises(TypeError):
        call([1, 2], [3, 4], [5, 6])
    pytree.map(leaf_function, [1])
    [inner, outer] = source.user_frames(found[0], limit=2)
    assert inner.function.endswith("leaf_function")
    assert outer.function == "test_frames_of_the_framework_are_left_out"
    assert len(source.user_frames(found[0], limit=10**6)) > 2


@pytest.mark.parametrize(
    ("path", "internal"),
    [
        (os.path.join(CORE, "core", "base", "pytree.py"), True),
        (os.path.join(CORE, "__init__.py"), True),
        (os.path.join(CORE, "testing", "checks.py"), False),
        (os.path.join(CORE + "_user", "model.py"), False),
        (__file__, False),
        ("<stdin>", False),
        ("<doctest example[0]>", False),
        ("<frozen importlib._bootstrap>", True),
        (contextlib.__file__, True),
        ("/home/user/train.py", False),
    ],
)
def test_is_internal(path: str, internal: bool) -> None:
    assert source.is_internal(path) is internal


@pytest.mark.parametrize("package", ["dovetail_cpu", "dovetail.numpy"])
def test_other_packages_are_internal(package: str) -> None:
    module = importlib.import_module(package)
    assert source.is_internal(os.path.join(os.path.dirname(module.__file__), "any.py"))


def test_plug_ins_can_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_extra_folders", [])
    path = "/opt/plug_in/rules.py"
    assert not source.is_internal(path)
    source.add_internal_folder("/opt/plug_in")
    source.add_internal_folder("/opt/plug_in")
    assert source.is_internal(path)
    assert not source.is_internal("/opt/plug_in_of_another/rules.py")
    source.is_internal.cache_clear()


def test_a_file_may_be_internal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(source, "_extra_folders", [])
    file, other = tmp_path / "rules.py", tmp_path / "rules_of_another.py"
    for path in (file, other):
        path.write_text("")
    source.add_internal_folder(str(file))
    assert [source.is_internal(str(path)) for path in (file, other)] == [True, False]
    source.is_internal.cache_clear()


def test_a_stack_without_user_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "is_internal", lambda filename: True)
    assert source.user_frame() is None
    assert source.describe() == "an unknown place"


def test_warnings_point_at_the_users_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = here() + 1
        pytree.map(lambda x: source.warn("careful", RuntimeWarning), [1])
    [warning] = caught
    assert (warning.filename, warning.lineno) == (__file__, line)
    assert warning.category is RuntimeWarning


def test_column_and_line_of_a_long_call() -> None:
    traceback = pytree.map(
        lambda _: (
            bindings.get_traceback()
        ),
        0,
    )  # fmt: skip
    frame = source.user_frame(traceback)
    assert frame is not None
    assert frame.line == here() - 6


class Shell:
    """As much of IPython as tells a file of a cell by its name."""

    class compile:
        @staticmethod
        def format_code_name(name: str) -> tuple[str, str] | None:
            return ("Cell", "In[3]") if name == "/somewhere/ipykernel_1/2.py" else None


def test_a_cell_of_a_notebook_is_called_as_ipython_calls_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notebook = types.SimpleNamespace(get_ipython=Shell)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    cell = source.UserFrame("/somewhere/ipykernel_1/2.py", 4, 1, "loss")
    module = source.UserFrame("/home/me/train.py", 4, 1, "loss")
    assert str(cell) == "Cell In[3]:4 (loss)"
    assert str(module) == "train.py:4 (loss)"
    names: dict[str, Any] = {"jit": dovetail.jit}
    program = "@jit\ndef f(x):\n    return 1 if x else 2\n"
    exec(compile(program, "/somewhere/ipykernel_1/2.py", "exec"), names)
    with pytest.raises(dovetail.errors.TracerBoolConversionError) as raised:
        names["f"](1.0)
    assert "where: Cell In[3]:3 (f)\n" in str(raised.value)
    assert "ipykernel" not in str(raised.value)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    assert str(cell) == "2.py:4 (loss)"
