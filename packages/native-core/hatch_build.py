"""Builds the extension into the wheel, where there is a C compiler."""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: The oldest C library that wheels of zig's compiler run on.
GLIBC = (2, 17)
#: Extensions made with these headers run with every later NumPy, and with 1.26.
HEADERS = "numpy>=2.0"
MODULE = "dovetail_native_calls"
FLAGS = ("-std=c11", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-s")
#: The environment variable by which a wheel without the extension is built, if it is 1.
WITHOUT = "DOVETAIL_WITHOUT_NATIVE"


def system_compiler() -> list[str] | None:
    """The command that `CC` names, or the first compiler on `PATH`."""
    named = os.environ.get("CC")
    if named:
        return shlex.split(named)
    found = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))), None)
    return None if found is None else [found]


def zig_compiler() -> list[str] | None:
    """zig's compiler, which is a wheel."""
    found = importlib.util.find_spec("ziglang")
    return None if found is None else [sys.executable, "-m", "ziglang", "cc"]


def includes() -> list[str] | None:
    """The folders of the headers of Python and NumPy; None if one of them is not there."""
    own = Path(sysconfig.get_paths()["include"])
    found = importlib.util.find_spec("numpy")
    if found is None or found.origin is None or not (own / "Python.h").exists():
        return None
    import numpy  # deferred: it may not be there

    return [str(own), numpy.get_include()]


class ExtensionHook(BuildHookInterface):
    """Compiles `native/*.c` for the Python that builds the wheel.

    Wheels without it are for every Python: core does in Python what the extension does.
    """

    def wanted(self) -> bool:
        """Whether an extension is wanted, and works with this Python."""
        without_gil = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
        return sys.platform == "linux" and not without_gil and os.environ.get(WITHOUT) != "1"

    def dependencies(self) -> list[str]:
        """What the environment of the build must have."""
        compilers = [] if system_compiler() else ["ziglang"]
        return [HEADERS, *compilers] if self.wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add the extension to the wheel."""
        if not self.wanted():
            return
        compiler, headers = system_compiler() or zig_compiler(), includes()
        if compiler is None or headers is None:
            lacking = "a C compiler" if compiler is None else "the headers of Python and NumPy"
            self.app.display_warning(f"dovetail-native: nothing is compiled without {lacking}")
            return
        zig = any(Path(word).name in ("zig", "ziglang") for word in compiler)
        machine = platform.machine()
        chosen = ["-target", f"{machine}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"] if zig else []
        self.built = Path(tempfile.mkdtemp())
        library = self.built / f"{MODULE}{sysconfig.get_config_var('EXT_SUFFIX')}"
        sources = sorted(map(str, Path(self.root, "native").glob("*.c")))
        folders = [word for folder in headers for word in ("-isystem", folder)]
        try:
            subprocess.run(
                [*compiler, *FLAGS, *chosen, *folders, *sources, "-o", str(library)], check=True
            )
        except (OSError, subprocess.CalledProcessError) as error:
            if os.environ.get("CC"):
                raise
            # A compiler that is merely there may lack its libraries.
            self.app.display_warning(f"dovetail-native: nothing is compiled: {error}")
            return
        editable = version == "editable"
        included = build_data.setdefault(
            "force_include_editable" if editable else "force_include", {}
        )
        included[str(library)] = library.name
        system = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}" if zig else sysconfig.get_platform()
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-{system.replace('-', '_').replace('.', '_')}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the extension, which the wheel holds now."""
        if hasattr(self, "built"):
            shutil.rmtree(self.built)
