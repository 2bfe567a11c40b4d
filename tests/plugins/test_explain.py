"""`dovetail.extend.explain` and primitives made from functions."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dovetail.extend import Primitive, explain, primitives


def test_a_primitive_of_core(capsys):
    explain("sin")
    text = capsys.readouterr().out
    assert text.startswith("sin: Sin, in dovetail._core.ops.")
    lines = {line.split()[0]: line for line in text.splitlines()[1:]}
    assert list(lines) == ["abstract", "reference", "jvp", "transpose", "batch", "lower", "labels"]
    assert "dovetail._core.basis." in lines["batch"]
    assert "none" in lines["transpose"]


def test_a_primitive_object(capsys):
    made = Primitive("explained_example")

    @made.define("abstract")
    def rule(x):
        return x

    explain(made)
    text = capsys.readouterr().out
    assert f"{__name__}:" in text
    assert "rule" in text
    assert primitives()["explained_example"] is made


def test_an_unknown_name():
    with pytest.raises(KeyError, match="there is no primitive 'cumsun'; did you mean 'cumsum'"):
        explain("cumsun")


def test_primitives_are_those_of_modules_not_imported_before():
    code = (
        "from dovetail.extend import primitives\n"
        "for name in ('sin', 'threefry2x32', 'device_put', 'custom_jvp_call'):\n"
        "    assert primitives()[name].name == name"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
