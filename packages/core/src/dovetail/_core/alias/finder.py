"""The import hook: modules and metadata of `jax`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.alias.missing import note_missing

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

_MODULES: Final = Path(__file__).parents[2] / "as_jax" / "_modules"
#: Modules under a second name, most of them places where JAX defines what others re-export.
_SAME: Final = {
    "jax._src.api": "jax",
    "jax._src.compiler": "dovetail._core.runtime.programs.compilation",
    "jax._src.custom_batching": "jax.custom_batching",
    "jax._src.custom_derivatives": "jax.custom_derivatives",
    "jax._src.debugging": "jax.debug",
    "jax._src.flatten_util": "jax.flatten_util",
    "jax._src.image.scale": "jax.image",
    "jax._src.interpreters": "jax.interpreters",
    "jax._src.interpreters.ad": "jax.interpreters.ad",
    "jax._src.interpreters.batching": "jax.interpreters.batching",
    "jax._src.interpreters.mlir": "jax.interpreters.mlir",
    "jax._src.interpreters.partial_eval": "jax.interpreters.partial_eval",
    "jax._src.interpreters.pxla": "jax.interpreters.pxla",
    "jax._src.interpreters.xla": "jax.interpreters.xla",
    "jax._src.lax.control_flow": "jax.lax",
    "jax._src.lax.lax": "jax.lax",
    "jax._src.lax.linalg": "jax.lax.linalg",
    "jax._src.lax.parallel": "jax.lax",
    "jax._src.lax.slicing": "jax.lax",
    "jax._src.linear_util": "jax.extend.linear_util",
    "jax._src.nn.functions": "jax.nn",
    "jax._src.nn.initializers": "jax.nn.initializers",
    "jax._src.numpy.lax_numpy": "jax.numpy",
    "jax._src.numpy.linalg": "jax.numpy.linalg",
    "jax._src.random": "jax.random",
    "jax._src.scipy.linalg": "jax.scipy.linalg",
    "jax._src.scipy.special": "jax.scipy.special",
    "jax._src.scipy.stats": "jax.scipy.stats",
    "jax._src.stages": "jax.stages",
    "jax._src.typing": "jax.typing",
}


@cache
def _own_file(name: str) -> Path | None:
    """The file of a module of `jax` that is not simply a module of dovetail."""
    below = _MODULES.joinpath(*name.split(".")[1:])
    for file in (below / "__init__.py", below.with_suffix(".py")):
        if file.is_file():
            return file
    return None


def _original(name: str) -> str | None:
    """The name of dovetail's module for a module of `jax`; None if there is none."""
    public = "dovetail" + name.removeprefix("jax")
    if any(part.startswith("_") for part in public.split(".")):
        return None
    try:
        return public if find_spec(public) is not None else None
    except ModuleNotFoundError:
        return None


class AliasFinder:
    """Finds `jax` and all modules below it, and the distribution `jax`.

    Args:
        version: the version that `jax` says it has.
    """

    def __init__(self, version: str) -> None:
        self.version = version

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module of a name, None if it is not below `jax`.

        Raises:
            ModuleNotFoundError: JAX may have such a module, and there is none here.
        """
        if fullname != "jax" and not fullname.startswith("jax."):
            return None
        file = _own_file(fullname)
        if file is not None:
            folder = [str(file.parent)] if file.name == "__init__.py" else None
            own = _OwnLoader(fullname, str(file))
            return spec_from_file_location(
                fullname, file, loader=own, submodule_search_locations=folder
            )
        original = _SAME.get(fullname) or _original(fullname)
        if original is None:
            raise ModuleNotFoundError(note_missing(fullname), name=fullname)
        loader: Any = _OriginalLoader(original)
        return ModuleSpec(fullname, loader, is_package=True)

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterator[Distribution]:
        """The distribution `jax`, for those who ask for its version."""
        from dovetail._core.alias.metadata import Metadata  # deferred: whoever asks has loaded it

        if context is None or context.name in ("jax", None):
            yield Metadata(self.version)


class _OriginalLoader:
    """Gives a module of dovetail under its name in `jax`: one module, two names."""

    def __init__(self, original: str) -> None:
        self.original = original

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # What is found here after execution is what the import gives.
        original = import_module(self.original)
        sys.modules[module.__name__] = original
        if _original(module.__name__) == self.original:
            original.__name__ = module.__name__  # libraries tell `jax.numpy` by its name
        _report_missing(original, module.__name__)


class _OwnLoader(SourceFileLoader):
    """Executes a file below `_modules`; names that it lacks are those of dovetail's module."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        name = module.__name__
        original = _original(name)
        own: Callable[[str], Any] | None = vars(module).get("__getattr__")

        def load(attribute: str) -> Any:
            if own is not None:
                try:
                    return own(attribute)
                except AttributeError:
                    pass
            below = f"{name}.{attribute}"
            if _own_file(below) is not None or below in _SAME:
                return import_module(below)
            if original is not None:
                try:
                    found = getattr(import_module(original), attribute)
                except AttributeError:
                    pass
                else:
                    if isinstance(found, ModuleType) and _original(below) is not None:
                        return import_module(below)
                    if isinstance(found, (type, FunctionType)):
                        vars(module)[attribute] = found  # libraries ask for `jax.Array` often
                    return found
            if not attribute.startswith("__"):
                raise AttributeError(note_missing(below), name=attribute, obj=module)
            raise AttributeError(
                f"module {name!r} has no attribute {attribute!r}", name=attribute, obj=module
            )

        def names() -> list[str]:
            found = {n for n in vars(module) if n not in ("load", "names")}
            if original is not None:
                found.update(dir(import_module(original)))
            return sorted(found)

        vars(module).update(__getattr__=load, __dir__=names)


def _report_missing(module: ModuleType, name: str) -> None:
    """Have a module of dovetail's note the names that it is asked for in vain."""
    own = vars(module).get("__getattr__")
    if getattr(own, "reports_for", None) is not None:
        return

    def load(attribute: str) -> Any:
        try:
            if own is not None:
                return own(attribute)
        except AttributeError:
            if not attribute.startswith("__"):
                note_missing(f"{name}.{attribute}")
            raise
        if not attribute.startswith("__"):
            note_missing(f"{name}.{attribute}")
        raise AttributeError(
            f"module {module.__name__!r} has no attribute {attribute!r}", name=attribute, obj=module
        )

    vars(load)["reports_for"] = name
    vars(module)["__getattr__"] = load
