"""PJRT plug-ins that were not written for dovetail: found, described, and never executed."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail._core.plugins import doctor
from dovetail._core.plugins.foreign import CAPABILITIES, VARIABLE, is_pjrt_library
from dovetail._core.plugins.manager import PluginManager
from dovetail.errors import BackendUnavailableError

RAISES = "raise AssertionError('executed')\n"


def elf(bits, order, symbols):
    """A file with the parts of a library for Linux that tell what it gives.

    Args:
        bits: 32 or 64.
        order: "<" or ">", the order of bytes.
        symbols: names, and the numbers of the sections that define them.
    """
    word = {32: "I", 64: "Q"}[bits]
    names = b"\0" + b"".join(name + b"\0" for name, _ in symbols)
    table = b""
    for name, section in [(b"", 0), *symbols]:
        place = names.index(name + b"\0")
        more = (0, 0, section, 0, 0) if bits == 64 else (0, 0, 0, 0, section)
        table += struct.pack(f"{order}I" + ("BBHQQ" if bits == 64 else "IIBBH"), place, *more)
    begin = 64
    head = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1]) + bytes(9)
    head += struct.pack(f"{order}HHI{word * 3}", 3, 62, 1, 0, 0, begin + len(table) + len(names))
    size = struct.calcsize(f"<II{word * 4}II{word * 2}")
    head += struct.pack(f"{order}IHHHHHH", 0, len(head) + 16, 0, 0, size, 3, 0)
    sections = [
        (0, 0, 0, 0),
        (11, begin, len(table), 2),
        (3, begin + len(table), len(names), 0),
    ]
    return (
        head.ljust(begin, b"\0")
        + table
        + names
        + b"".join(
            struct.pack(f"{order}II{word * 4}II{word * 2}", 0, kind, 2, 0, *place, 0, 1, 0)
            for kind, *place in sections
        )
    )


CONTENTS = {
    ".so": elf(64, "<", [(b"GetPjrtApi", 5)]),
    ".dylib": b"\xcf\xfa\xed\xfe...\0_GetPjrtApi\0...",
}


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def wheel(install):
    """Installs a distribution with a PJRT library in a package that cannot be imported."""

    def made(
        name: str,
        value: str,
        *,
        group: str = "jax_plugins",
        libraries: tuple[str, ...] = ("acme.so",),
        parents_raise: bool = False,
    ) -> Path:
        folder = install.folder
        for part in value.partition(":")[0].split("."):
            folder = folder / part
            folder.mkdir(exist_ok=True)
            if parents_raise:
                (folder / "__init__.py").write_text(RAISES)
        (folder / "__init__.py").write_text(RAISES)
        for library in libraries:
            (folder / library).parent.mkdir(exist_ok=True)
            (folder / library).write_bytes(CONTENTS[Path(library).suffix])
        (folder / "kernels.so").write_bytes(elf(64, "<", [(b"PyInit_kernels", 5)]))
        install(f"{name}-wheel", {name: value}, {}, group=group)
        return folder

    return made


@pytest.mark.parametrize("group", ["jax_plugins", "xla_plugins"])
@pytest.mark.parametrize(
    ("value", "library", "parents_raise"),
    [
        ("jax_plugins_of_acme.board", "acme.so", False),
        ("jax_plugins_of_acme.board", "lib/acme.so", False),
        ("acme_board", "acme.dylib", False),
        ("acme_tools.plugins.board:register", "acme.so", True),
    ],
)
def test_a_wheel_is_a_platform(wheel, group, value, library, parents_raise):
    wheel("board", value, group=group, libraries=(library,), parents_raise=parents_raise)
    manager = PluginManager()
    info = manager.load("board").info
    assert (info.platform, info.priority, info.aliases) == ("board", -1, ())
    assert info.capabilities == CAPABILITIES
    assert info.description == f"the PJRT plug-in in {value}"
    assert manager.origin("board") == "board-wheel 1.0"
    assert manager.resolve_platforms()[0] == "cpu"
    assert manager.failures == ()
    assert value.partition(".")[0] not in sys.modules


def test_a_plain_module_in_a_package_has_its_folder(wheel, install):
    folder = wheel("board", "acme_board")
    (folder / "entry.py").write_text(RAISES)
    install("other", {"by_module": "acme_board.entry"}, {}, group="jax_plugins")
    assert set(PluginManager().foreign().plugins) >= {"board", "by_module"}


@pytest.mark.parametrize("value", ["acme_board.entry.more", "acme_absent.board", "acme_single"])
def test_what_holds_no_library_is_nothing(wheel, install, value):
    folder = wheel("board", "acme_board")
    (folder / "entry.py").write_text("")
    (install.folder / "acme_single.py").write_text(RAISES)
    (install.folder / "stray.so").write_bytes(CONTENTS[".so"])
    install("other", {"nothing": value}, {}, group="jax_plugins")
    manager = PluginManager()
    assert manager.foreign().unused["nothing"] == f"{value} holds no PJRT library"
    assert "nothing" not in manager.backend_names()
    assert manager.failures == ()
    report = doctor.examine(manager, connect=lambda name: None)
    assert not any("nothing" in problem for problem in report.problems)
    assert f"nothing  {value} holds no" in doctor.as_text(report).replace("   ", "  ")


def test_a_backend_written_for_dovetail_comes_first(wheel, install, source):
    wheel("board", "acme_wheel")
    install.backend("board", source("board", priority=7))
    manager = PluginManager()
    assert manager.load("board").info.priority == 7
    assert manager.foreign().unused == {
        **manager.foreign().unused,
        "board": "acme-board 1.0 offers the platform of that name",
    }


def test_what_a_backend_handles_is_not_offered_twice(wheel, install, source):
    wheel("xla_board", "acme_wheel")
    install.backend("board", source("board"))
    install("handler", {"xla_board": "board", "xla_stool": "stool"}, {}, group="dovetail.handles")
    manager = PluginManager()
    assert "xla_board" not in manager.backend_names()
    assert manager.canonical("xla_board") == "board"
    assert manager.foreign().unused["xla_board"] == "the platform 'board' brings what it has"
    with pytest.raises(BackendUnavailableError, match="unknown platform 'xla_stool'"):
        manager.canonical("xla_stool")


def test_the_cuda_backend_says_what_it_handles():
    text = (Path(__file__).parents[2] / "packages" / "backend-cuda" / "pyproject.toml").read_text()
    assert 'dovetail.handles"]\nxla_cuda12 = "cuda"\nxla_cuda13 = "cuda"\n' in text


def test_of_several_libraries_none_is_guessed(wheel):
    folder = wheel("board", "acme_board", libraries=("a.so", "b.so"))
    manager = PluginManager()
    with pytest.raises(BackendUnavailableError) as caught:
        manager.make_client("board")
    expected = f"has several PJRT libraries, {folder / 'a.so'}, {folder / 'b.so'}; name one of"
    assert expected in str(caught.value)
    assert VARIABLE in str(caught.value)


def test_a_wheel_that_does_not_start_is_no_problem_of_the_doctor(wheel):
    wheel("board", "acme_board")
    manager = PluginManager()
    report = doctor.examine(manager)
    (board,) = (backend for backend in report.backends if backend.platform == "board")
    assert board.state == "cannot run here"
    assert "cannot be opened" in board.reason
    assert report.exit_code == 0, report.problems


# -------------------------------------------------------------------------------- the variable


def test_a_library_by_name(monkeypatch, tmp_path):
    library = tmp_path / "acme.so"
    library.write_bytes(b"")
    monkeypatch.setenv(VARIABLE, f" acme{os.pathsep}{library} , ,")
    manager = PluginManager()
    info = manager.load("acme").info
    assert (info.priority, info.capabilities) == (400, CAPABILITIES)
    assert info.description == f"the PJRT plug-in {library}"
    assert manager.resolve_platforms()[0] == "acme"
    assert manager.origin("acme") == VARIABLE


def test_a_description_in_json(monkeypatch, tmp_path):
    (tmp_path / "acme.so").write_bytes(b"")
    description = {
        "library_path": "acme.so",
        "create_options": {"boards": 2},
        "capabilities": ["complex", "x-turbo"],
        "description": "Acme boards",
        "aliases": ["board"],
    }
    file = tmp_path / "acme.json"
    file.write_text(json.dumps(description))
    monkeypatch.setenv(VARIABLE, f"acme{os.pathsep}{file}")
    manager = PluginManager()
    info = manager.load("acme").info
    assert manager.canonical("board") == "acme"
    assert info.capabilities == frozenset({"complex", "x-turbo"})
    assert info.description == "Acme boards"
    found = manager.foreign().plugins["acme"]
    assert found.libraries == (str(tmp_path / "acme.so"),)
    assert found.create_options == {"boards": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acme", f"holds 'acme', and is written name{os.pathsep}path,name{os.pathsep}path"),
        ("acme:", "holds 'acme:', and is written"),
        ("acme:absent.so", "says that the PJRT library of 'acme' is absent.so, and there is no su"),
        ("acme:absent.json", "says that the PJRT library of 'acme' is absent.json, and there is "),
        ("acme:{}", 'must hold {"library_path": ...}, and may hold "create_options"'),
        ("acme:[", "cannot be read as JSON: "),
        ('acme:{"library_path": "absent.so"}', "absent.so, and there is no such file"),
        ('acme:{"library_path": 3}', "library_path is 3, which is of the wrong type"),
        ('acme:{"library_path": "a", "aliases": [3]}', "aliases is [3], which is of the wrong typ"),
        ('acme:{"library_path": "a", "option": 1}', "holds 'option'; what it may hold is library_"),
    ],
)
def test_what_is_wrong_is_told_where_it_is_asked_for(monkeypatch, tmp_path, text, expected):
    name, _, content = text.partition(":")
    if content.startswith(("{", "[")):
        (tmp_path / "acme.json").write_text(content)
        text = f"acme:{tmp_path / 'acme.json'}"
    monkeypatch.setenv(VARIABLE, text.replace(":", os.pathsep))
    manager = PluginManager()
    with pytest.raises(BackendUnavailableError) as caught:
        manager.require(name)
    assert expected in str(caught.value)
    assert f"Mend the environment variable {VARIABLE}, or what it names." in str(caught.value)
    with pytest.warns(RuntimeWarning, match=VARIABLE):
        report = doctor.examine(manager, connect=lambda platform: None)
    assert report.default_platform == "cpu"
    assert any(expected in problem for problem in report.problems)


def test_every_part_that_is_wrong_is_told(monkeypatch):
    monkeypatch.setenv(VARIABLE, "first,second")
    manager = PluginManager()
    manager.load_all()
    assert [failure.name for failure in manager.failures] == ["first", "second"]


def test_a_name_that_a_backend_has_is_refused(monkeypatch, tmp_path):
    library = tmp_path / "other.so"
    library.write_bytes(b"")
    monkeypatch.setenv(VARIABLE, f"cpu{os.pathsep}{library}")
    manager = PluginManager()
    assert manager.origin("cpu").startswith("dovetail-cpu")
    (failure,) = manager.failures
    assert (failure.name, failure.phase) == ("cpu", "find")
    assert "offers already; use another name for the PJRT plug-in" in str(failure)


def test_the_variable_comes_before_wheels(monkeypatch, tmp_path, wheel):
    wheel("board", "acme_board")
    library = tmp_path / "other.so"
    library.write_bytes(b"")
    monkeypatch.setenv(VARIABLE, f"board{os.pathsep}{library}")
    manager = PluginManager()
    assert manager.load("board").info.priority == 400
    assert manager.foreign().unused["board"] == f"{VARIABLE} offers the platform of that name"
    assert manager.failures == ()


# --------------------------------------------------------------------------- reading libraries


SOURCES = {
    # what a library is made of, then whether it gives the function
    "gives it": ("void *GetPjrtApi(void) { return 0; }", True),
    # The linker keeps one name within the other.
    "gives another whose name ends so": (
        "void *GetPjrtApi(void) { return 0; } void *AcmeGetPjrtApi(void) { return 0; }",
        True,
    ),
    "gives only the other": ("void *AcmeGetPjrtApi(void) { return 0; }", False),
    "gives one that begins so": ("void *GetPjrtApiOfAcme(void) { return 0; }", False),
    "asks for it": ("void *GetPjrtApi(void); void *f(void) { return GetPjrtApi(); }", False),
    "holds its name": (
        'void *dlsym(void *, const char *); void *f(void) { return dlsym(0, "GetPjrtApi"); }',
        False,
    ),
    "keeps it to itself": (
        '__attribute__((visibility("hidden"))) void *GetPjrtApi(void) { return 0; }',
        False,
    ),
}


@pytest.mark.parametrize("case", SOURCES)
def test_libraries_that_give_the_function(compiler, tmp_path, case):
    text, expected = SOURCES[case]
    (tmp_path / "source.c").write_text(text)
    library = compiler(f"gives_{list(SOURCES).index(case)}", tmp_path / "source.c")
    assert is_pjrt_library(str(library)) is expected
    # As whoever opens it finds, which for one that asks for it is nothing at all.
    given = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).GetPjrtApi"
    opened = subprocess.run([sys.executable, "-c", given, library], capture_output=True)
    assert (opened.returncode == 0) is expected


def test_a_real_library(xla_cpu):
    assert is_pjrt_library(str(xla_cpu))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(
    ("symbols", "expected"),
    [
        ([(b"GetPjrtApi", 5)], True),
        ([(b"GetPjrtApi", 0)], False),
        ([(b"f", 5), (b"AcmeGetPjrtApi", 5), (b"GetPjrtApi", 5)], True),
        ([(b"f", 5), (b"AcmeGetPjrtApi", 5), (b"GetPjrtApi", 0)], False),
        ([(b"AcmeGetPjrtApi", 5)], False),
        ([(b"GetPjrtApi2", 5)], False),
        ([], False),
    ],
)
def test_libraries_of_other_machines(tmp_path, bits, order, symbols, expected):
    file = tmp_path / "library.so"
    file.write_bytes(elf(bits, order, symbols))
    assert is_pjrt_library(str(file)) is expected


@pytest.mark.parametrize("bits", [32, 64])
def test_a_damaged_library_is_at_most_none(tmp_path, bits):
    """Cut off anywhere, and with any byte of its header and of its sections changed."""
    whole = elf(bits, "<", [(b"GetPjrtApi", 5)])
    file = tmp_path / "library.so"
    for length in range(len(whole) - 64):  # what is read of the last section is cut off
        file.write_bytes(whole[:length])
        assert not is_pjrt_library(str(file))
    for place in range(len(whole)):
        for value in (0, 1, 0x7F, 0xFF):
            file.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            assert is_pjrt_library(str(file)) in (True, False)


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + b"\xff" * 100]
)
def test_damaged_files_are_no_libraries(tmp_path, content):
    file = tmp_path / "damaged.so"
    file.write_bytes(content)
    assert not is_pjrt_library(str(file))
    assert not is_pjrt_library(str(tmp_path))
    assert not is_pjrt_library(str(tmp_path / "absent.so"))
