"""Every code has a page, whose first program raises the error, and whose second runs."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from dovetail.__main__ import main
from dovetail._core.base.error_codes import error_pages

PAGES = error_pages()
READ = (Path(__file__).parent / "messages.txt").read_text(encoding="utf-8")


def run(program: str) -> None:
    """Run a program as a module of its own would run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names: dict[str, Any] = {"__name__": "program"}
        exec(compile(program, "program.py", "exec"), names)


@pytest.mark.parametrize("code", PAGES)
def test_the_first_program_raises_what_the_page_explains(code: str) -> None:
    with pytest.raises(Exception, match=PAGES[code].message.pattern) as raised:
        run(PAGES[code].failing)
    assert raised.value.__notes__[-1] == f"{code} (python -m dovetail explain {code})"


@pytest.mark.parametrize("code", PAGES)
def test_the_second_program_runs(code: str) -> None:
    run(PAGES[code].mended)


def test_a_message_has_one_code() -> None:
    for message in re.split(r"^## \w+\n", READ, flags=re.MULTILINE):
        codes = [code for code, page in PAGES.items() if page.message.search(message)]
        assert len(codes) <= 1, (codes, message)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_is_written_as_others_are(page: Any) -> None:
    assert re.fullmatch(r"DT\d{4}", page.code)
    assert len(re.findall("^```python$", page.text, re.MULTILINE)) == 2
    assert max(map(len, page.text.splitlines())) <= 100


def test_the_command_prints_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(PAGES)
    for page in PAGES.values():
        assert main(["explain", page.code.lower()]) == 0
        assert capsys.readouterr().out == page.text
    assert main(["explain", "101"]) == 0
    assert capsys.readouterr().out == PAGES["DT0101"].text
    assert main(["explain", "DT9999"]) == 1
    assert "lists them" in capsys.readouterr().out


def test_a_doctest_sees_the_message_alone() -> None:
    """What is printed is compared there."""
    program = PAGES["DT0101"].failing
    with pytest.raises(Exception, match="broadcasting") as raised:
        exec(compile(program, "<doctest guide[0]>", "exec"), {})
    assert not hasattr(raised.value, "__notes__")
