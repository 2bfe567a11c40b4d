"""The differences from JAX are what docstrings say, and every example of them runs."""

from __future__ import annotations

import doctest
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "write_differences.py"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_differences", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = _script()
EXAMPLES = [
    pytest.param(section, item, id=f"{'.'.join(section.place)}-{number}")
    for section in script.sections()
    for number, item in enumerate(section.items)
]


def test_the_file_is_current() -> None:
    assert script.OUTPUT.read_text(encoding="utf-8") == script.written(), (
        "run: python docs/write_differences.py"
    )


@pytest.mark.parametrize(("section", "item"), EXAMPLES)
def test_example(section: Any, item: Any) -> None:
    test = doctest.DocTestParser().get_doctest(
        item.example + "\n",
        {**script.IMPORTS, "__name__": "__main__"},
        section.qualname,
        str(section.path),
        section.line,
    )
    assert any(example.want for example in test.examples), "an example shows something"
    output: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.DocTestRunner(optionflags=flags).run(test, out=output.append)
    assert result.failed == 0, "".join(output)


@pytest.mark.parametrize(
    ("docstring", "message"),
    [
        ("It adds.\n\nDiffers:\n    It is exact.\n", "without an example"),
        ("It adds.\n\nDiffers:\n    >>> 1 + 1\n    2\n", "without a statement"),
        ("It adds.\n\nDiffers:\n    One.\n\n    Two.\n\n    >>> 1\n    1\n", "without an example"),
    ],
)
def test_a_difference_has_a_statement_and_an_example(docstring: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        script.items_of(docstring)


def test_a_section_is_read_to_its_end() -> None:
    docstring = """It adds.

    Differs:
        It is
        exact.

        >>> print(1)
        1

        It is fast.

        >>> print(2)
        2

    Example:
        >>> print(3)
        3
    """
    assert [(item.statement, item.example) for item in script.items_of(docstring)] == [
        ("It is exact.", ">>> print(1)\n1"),
        ("It is fast.", ">>> print(2)\n2"),
    ]
