"""Builds the native kernels into the wheel, where there is a C++ compiler."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import platform
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: What the package itself knows of its libraries and of this processor.
LIBRARIES = runpy.run_path(str(Path(__file__).parent / "src/dovetail_cpu/kernel_library.py"))
#: Instruction sets by machine. Processors that have none of them, which are of before 2013, compute
#: without kernels.
LEVELS = {
    "x86_64": tuple(level for level, _ in reversed(LIBRARIES["X86_LEVELS"])),
    "aarch64": ("armv8-a",),
}
#: The oldest C library that wheels of zig's compiler run on.
GLIBC = (2, 17)
#: The oldest headers: handlers made with them run with every later jaxlib.
HEADERS = "jaxlib==0.10.2"
FOLDER = "dovetail_cpu_kernels"
# Nobody looks at errno or at floating-point flags: without them, more loops become vectors.
WITHOUT_TRAPS = ("-fno-math-errno", "-fno-trapping-math")
# g++ does so by itself: a product and a sum are one operation, in separate statements, too.
FUSED = ("-ffp-contract=fast",)
COMPILED = (
    *("-std=c++17", "-O3", *WITHOUT_TRAPS, *FUSED, "-DNDEBUG"),
    *("-fPIC", "-pthread", "-fvisibility=hidden", "-c"),
)
LINKED = ("-shared", "-pthread", "-s")
#: The environment variable by which a wheel without kernels is built, if it is 1.
WITHOUT = "DOVETAIL_WITHOUT_KERNELS"
#: The environment variable that names the instruction sets to compile for, if not all are wanted:
#: words with commas between them, or "native" for the best one that this processor has.
CHOSEN = "DOVETAIL_KERNELS_FOR"
#: The environment variable that names a folder where what is compiled is kept for the next build.
KEPT = "DOVETAIL_KERNELS_KEPT_IN"


def system_compiler() -> list[str] | None:
    """The command that `CXX` names, or the first compiler on `PATH`."""
    named = os.environ.get("CXX")
    if named:
        return shlex.split(named)
    found = next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), None)
    return None if found is None else [found]


def zig_compiler() -> list[str] | None:
    """zig's compiler, which is a wheel."""
    found = importlib.util.find_spec("ziglang")
    return None if found is None else [sys.executable, "-m", "ziglang", "c++"]


def headers() -> Path | None:
    """The folder of XLA's headers in jaxlib."""
    found = importlib.util.find_spec("jaxlib")
    return None if found is None or found.origin is None else Path(found.origin).parent / "include"


def instruction_set(level: str, zig: bool) -> tuple[list[str], list[str]]:
    """The options that choose an instruction set, and what else only the linker is told."""
    if not zig:
        linked = ["-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL"]
        return [f"-march={level}"], linked
    # Zig has its own spelling of instruction sets, and links its C++ library.
    target = f"{platform.machine()}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    processor = {"armv8-a": "generic"}.get(level, level.replace("-", "_"))
    return ["-target", target, f"-mcpu={processor}"], []


class KernelHook(BuildHookInterface):
    """Compiles `native/*.cc` once for each instruction set.

    Wheels without compiler or headers hold no kernels: the lowerings that need none take their
    place, and the doctor says so.
    """

    def dependencies(self) -> list[str]:
        """What the environment of the build must have."""
        compilers = [] if system_compiler() else ["ziglang"]
        return [HEADERS, *compilers] if self.levels() else []

    def levels(self) -> tuple[str, ...]:
        """The instruction sets to compile for; none if no kernels are wanted."""
        if sys.platform != "linux" or os.environ.get(WITHOUT) == "1":
            return ()
        known = LEVELS.get(platform.machine(), ())
        chosen = os.environ.get(CHOSEN)
        if not known or chosen is None:
            return known
        if chosen == "native":
            return tuple(LIBRARIES["usable_libraries"]()[:1])
        wanted = {word.strip() for word in chosen.split(",")}
        if not wanted <= {*known}:
            raise ValueError(f"{CHOSEN}={chosen}: expected native, or words of {', '.join(known)}")
        return tuple(level for level in known if level in wanted)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add the libraries to the wheel."""
        if not self.levels():
            return
        compiler, include = system_compiler() or zig_compiler(), headers()
        if compiler is None or include is None:
            lacking = "a C++ compiler" if compiler is None else "jaxlib's headers"
            self.app.display_warning(f"dovetail-cpu: no kernels are built without {lacking}")
            return
        zig = any(Path(word).name in ("zig", "ziglang") for word in compiler)
        self.built = Path(tempfile.mkdtemp())
        included = build_data.setdefault(
            "force_include_editable" if version == "editable" else "force_include", {}
        )
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            libraries = {}
            for level in self.levels():
                chosen, own = instruction_set(level, zig)
                command = [*compiler, *COMPILED, *chosen]
                units = sorted(Path(self.root, "native").glob("*.cc"))
                libraries[level] = (
                    [*compiler, *LINKED, *chosen, *own],
                    [threads.submit(self.compile, command, include, u, level) for u in units],
                )
            for level, (command, objects) in libraries.items():
                library = self.built / f"{level}.so"
                try:
                    files = [str(future.result()) for future in objects]
                    subprocess.run([*command, *files, "-o", str(library)], check=True)
                except (OSError, subprocess.CalledProcessError) as error:
                    if os.environ.get("CXX"):
                        raise
                    # A compiler that is merely there may be old, or lack its libraries.
                    self.app.display_warning(f"dovetail-cpu: no kernels for {level}: {error}")
                    continue
                included[str(library)] = f"{FOLDER}/{library.name}"
        if not included:
            return
        machine = platform.machine()
        system = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}" if zig else sysconfig.get_platform()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{system.replace('-', '_').replace('.', '_')}"

    def compile(self, command: list[str], include: Path, unit: Path, level: str) -> Path:
        """Compile a source file, or take its object from an earlier build of the same files."""
        known = hashlib.sha256("\0".join(command).encode())
        own, theirs = sorted(unit.parent.glob("*.h")), sorted(include.glob("xla/ffi/**/*.h"))
        for file in (unit, *own, *theirs):
            known.update(file.read_bytes())
        compiled = self.built / f"{level}-{unit.stem}.o"
        words = [*command, "-isystem", str(include), str(unit), "-o", str(compiled)]
        folder = os.environ.get(KEPT)
        if folder is None:
            subprocess.run(words, check=True)
            return compiled
        kept = Path(folder, f"{known.hexdigest()}.o")
        kept.parent.mkdir(parents=True, exist_ok=True)
        with kept.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # several builds at once compile once
            if not kept.exists():
                subprocess.run(words, check=True)
                part = kept.with_suffix(".part")
                shutil.copyfile(compiled, part)
                part.replace(kept)
        return kept

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the libraries, which the wheel holds now."""
        if hasattr(self, "built"):
            shutil.rmtree(self.built)
