"""dovetail: composable function transformations over arrays, compiled by pluggable backends.

Every public name is loaded when it is first used; `import dovetail` itself loads nothing.
"""

import os as _os
import sys as _sys
from importlib import import_module as _import_module

from dovetail._lazy_names import lazy_names as _lazy_names

# OpenBLAS, which NumPy and SciPy bring, reads this when it is loaded. By default its threads look
# for more work for 0.1 s after each call that they share, on processors that programs then lack.
_os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "22")  # 2**22 ticks are 1 to 2 ms

__version__ = "0.1.0"


def _version_info(version: str) -> tuple[int | str, ...]:
    """The numbers of a version, and what follows them: `"1.2.0rc1"` is `(1, 2, 0, "rc1")`."""
    rest = version.lstrip("0123456789.")
    numbers = version.removesuffix(rest).strip(".").split(".")
    return (*map(int, numbers), *((rest,) if rest else ()))


__version_info__ = _version_info(__version__)


def _joined_path(home: str) -> list[str]:
    """Where to look for submodules: this folder, and those that other distributions of ours bring.

    In wheels they are one folder. In editable installs they are several, and only the one that
    holds `numpy/__init__.py` (dovetail-numpy) and the one that holds `testing/__init__.py`
    (dovetail-testing) join: any other folder named dovetail on `sys.path` stays out. What
    `pkgutil.extend_path` does, without the 10 ms that importing pkgutil takes.
    """
    folders = [home]
    missing = [
        mark
        for mark in ("numpy", "testing")
        if not _os.path.isfile(_os.path.join(home, mark, "__init__.py"))
    ]
    for entry in _sys.path:
        if not isinstance(entry, str):
            continue  # Python passes over it, too
        folder = _os.path.join(_os.path.abspath(entry), "dovetail")
        there = [m for m in missing if _os.path.isfile(_os.path.join(folder, m, "__init__.py"))]
        if there:
            folders.append(folder)
            missing = [mark for mark in missing if mark not in there]
    return folders


__path__ = _joined_path(__path__[0])

_load, __dir__ = _lazy_names(__name__, "__version__", "__version_info__")


def __getattr__(name: str) -> object:
    try:
        # The conformance kit is no part of the API: it is in no table.
        kit = name == "testing"
        value: object = _import_module("dovetail.testing") if kit else _load(name)
    except ModuleNotFoundError as error:
        if error.name != f"dovetail.{name}":
            raise
        other = "dovetail-testing" if name == "testing" else "dovetail-numpy"
        raise AttributeError(
            f"dovetail.{name} is part of the distribution {other}, which is not "
            f"installed: pip install {other}"
        ) from None
    except (AttributeError, ImportError) as error:
        from dovetail._core.base.tracebacks import hide_frames  # deferred: rarely raised

        if type(error) is not ImportError or error.name == __name__:  # else a module is broken
            hide_frames(error)
        raise
    if name == "Array":  # its methods are otherwise filled in by the first use of one
        from dovetail._core.trace.tracer import load_array_methods  # deferred: loads the API

        load_array_methods()
    return value
