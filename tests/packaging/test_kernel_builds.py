"""What the wheel of the CPU backend is like with compilers of several kinds, all of them fake."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dovetail_cpu.kernel_library import usable_libraries

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.packaging,
    pytest.mark.skipif(
        (sys.platform, platform.machine()) != ("linux", "x86_64"),
        reason="the instruction sets are those of x86-64",
    ),
]

GOOD = """#!/bin/sh
echo "$@" >> "$0.log"
while [ "$1" != -o ]; do shift; done
echo library > "$2"
"""
OLD = """#!/bin/sh
case "$*" in *x86-64-v4*) echo 'bad value for -march' >&2; exit 1;; esac
while [ "$1" != -o ]; do shift; done
echo library > "$2"
"""
BROKEN = "#!/bin/sh\necho 'cannot find -lstdc++' >&2\nexit 1\n"


def build(tmp_path: Path, name: str, compiler: str, **variables: str) -> tuple[str, set[str], str]:
    """The tags, the libraries, and what was told of a wheel; or a failure."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / name).write_text(compiler)
    (folder / name).chmod(0o755)
    left_out = {"CXX", "DOVETAIL_KERNELS_KEPT_IN", "DOVETAIL_KERNELS_FOR"}
    environment = {k: v for k, v in os.environ.items() if k not in left_out}
    environment |= {"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin", **variables}
    ended = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")],
        cwd=ROOT / "packages" / "backend-cpu",
        env=environment,
        capture_output=True,
        text=True,
    )
    told = ended.stdout + ended.stderr
    if ended.returncode != 0:
        raise RuntimeError(told)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    libraries = {Path(n).stem for n in names if n.startswith("dovetail_cpu_kernels/")}
    return wheel.name.split("-", 2)[2], libraries, told


ALL = {"x86-64-v3", "x86-64-v4"}


def test_a_compiler_on_the_path(tmp_path: Path) -> None:
    tag, libraries, _ = build(tmp_path, "g++", GOOD)
    assert (tag, libraries) == ("py3-none-linux_x86_64.whl", ALL)
    called = (tmp_path / "bin" / "g++.log").read_text().splitlines()
    units = sorted(path.name for path in (ROOT / "packages/backend-cpu/native").glob("*.cc"))
    assert all("-march=x86-64" in line for line in called)
    compiled = sorted(Path(word).name for line in called for word in line.split() if ".cc" in word)
    assert compiled == sorted(units * len(ALL))
    assert len(called) == len(compiled) + len(ALL)


def test_zig_by_its_name(tmp_path: Path) -> None:
    """Its wheels run on other systems, so the tag says how old these may be."""
    compiler = str(tmp_path / "bin" / "zig")
    tag, libraries, _ = build(tmp_path, "zig", GOOD, CXX=f"{compiler} c++")
    assert (tag, libraries) == ("py3-none-manylinux_2_17_x86_64.whl", ALL)
    called = (tmp_path / "bin" / "zig.log").read_text()
    assert "c++ -std=c++17" in called
    assert "-target x86_64-linux-gnu.2.17 -mcpu=x86_64_v4" in called


def test_an_old_compiler_leaves_new_processors_out(tmp_path: Path) -> None:
    tag, libraries, told = build(tmp_path, "g++", OLD)
    assert (tag, libraries) == ("py3-none-linux_x86_64.whl", {"x86-64-v3"})
    assert "no kernels for x86-64-v4" in told
    assert "bad value for -march" in told


def test_a_compiler_that_fails_leaves_all_out(tmp_path: Path) -> None:
    tag, libraries, told = build(tmp_path, "g++", BROKEN)
    assert (tag, libraries) == ("py3-none-any.whl", set())
    assert "no kernels for x86-64-v3:" in told


def test_a_compiler_that_was_named_must_not_fail(tmp_path: Path) -> None:
    compiler = str(tmp_path / "bin" / "mine")
    with pytest.raises(RuntimeError, match=r"cannot find -lstdc\+\+"):
        build(tmp_path, "mine", BROKEN, CXX=compiler)


def test_kernels_can_be_left_out(tmp_path: Path) -> None:
    tag, libraries, told = build(tmp_path, "g++", GOOD, DOVETAIL_WITHOUT_KERNELS="1")
    assert (tag, libraries) == ("py3-none-any.whl", set())
    assert "no kernels" not in told


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("x86-64-v3", {"x86-64-v3"}),
        ("x86-64-v4, x86-64-v3", ALL),
        ("native", {*usable_libraries()[:1]}),
    ],
)
def test_instruction_sets_can_be_chosen(tmp_path: Path, chosen: str, expected: set[str]) -> None:
    _, libraries, _ = build(tmp_path, "g++", GOOD, DOVETAIL_KERNELS_FOR=chosen)
    assert libraries == expected


@pytest.mark.parametrize("chosen", ["x86-64-v9", "x86-64-v3,", ""])
def test_an_instruction_set_that_there_is_not(tmp_path: Path, chosen: str) -> None:
    expected = "DOVETAIL_KERNELS_FOR=.*expected native, or words of x86-64-v3, x86-64-v4"
    with pytest.raises(RuntimeError, match=expected):
        build(tmp_path, "g++", GOOD, DOVETAIL_KERNELS_FOR=chosen)


def test_the_headers_are_those_of_the_oldest_jaxlib() -> None:
    """What isolated builds install is what core's oldest jaxlib is."""
    (needed,) = (
        requirement
        for requirement in importlib.metadata.requires("dovetail-core") or ()
        if requirement.startswith("jaxlib")
    )
    hook = (ROOT / "packages" / "backend-cpu" / "hatch_build.py").read_text(encoding="utf-8")
    oldest = next(part for part in needed.removeprefix("jaxlib").split(",") if ">=" in part)
    assert f'HEADERS = "jaxlib=={oldest.removeprefix(">=")}"' in hook
