"""PJRT plug-ins that were not written for dovetail, offered as platforms like any other.

They come from two sources: wheels with an entry point in the groups `jax_plugins` and
`xla_plugins`, and the environment variable `PJRT_NAMES_AND_LIBRARY_PATHS`, in JAX's format. Code
in a wheel is never executed, because its Python code is usually written for JAX and imports it:
only its folder is located and its files are read.

The platform is named after the entry point, or as in the variable. A backend written for dovetail
takes precedence if it has the same name, or if it declares in the entry-point group
`dovetail.handles` that it supports the hardware of an entry point itself.
"""

from __future__ import annotations

import importlib.util
import os
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base.records import record
from dovetail._core.plugins.discovery import FOREIGN, HANDLES, FoundPlugin, PluginSource
from dovetail._core.plugins.failures import PluginFailure

if TYPE_CHECKING:
    import mmap

VARIABLE: Final = "PJRT_NAMES_AND_LIBRARY_PATHS"
"""Names and libraries, ``name:path,name:path``; a path that ends in ``.json`` describes one."""

CAPABILITIES: Final = frozenset({"complex", "donation", "float64", "serialization", "spmd"})
"""What a plug-in is believed to have that reads StableHLO and says nothing more."""

_BACKEND: Final = "dovetail._core.runtime.devices.foreign:ForeignBackend"
_FOUND_PRIORITY: Final = -1
_NAMED_PRIORITY: Final = 400
_FIELDS: Final[Mapping[str, type]] = {
    "library_path": str,
    "create_options": dict,
    "capabilities": list,
    "description": str,
    "aliases": list,
}


@record
class ForeignPlugin(FoundPlugin):
    """A PJRT library that becomes a platform.

    Attributes:
        libraries: paths of its PJRT libraries; more than one is an error when the platform is
            used.
        create_options: options to create its client with.
        priority: the platform's priority.
        aliases: the platform's aliases.
        description: the platform's description.
        capabilities: the platform's capabilities.
        problem: why it cannot be used, if its description is invalid.
    """

    libraries: tuple[str, ...] = ()
    create_options: Mapping[str, Any] = field(default_factory=dict)
    priority: int = _FOUND_PRIORITY
    aliases: tuple[str, ...] = ()
    description: str = ""
    capabilities: frozenset[str] = CAPABILITIES
    problem: str = ""

    def load(self) -> object:
        """The plug-in object that stands for the library; the library itself is not opened.

        Raises:
            ValueError: its description in the variable is invalid.
        """
        if self.problem:
            raise ValueError(self.problem)
        backend: Any = FoundPlugin.load(self)
        return backend(self)


@record
class ForeignPlugins:
    """The PJRT plug-ins that were found, and what becomes of them.

    Attributes:
        plugins: the plug-ins that become platforms, by platform name.
        handled: the platform whose backend supports an entry point's hardware, by entry point.
        unused: why each other entry point does not become a platform, by entry point.
        failures: errors in the search.
    """

    plugins: Mapping[str, ForeignPlugin]
    handled: Mapping[str, str]
    unused: Mapping[str, str]
    failures: tuple[PluginFailure, ...]


def find_foreign(source: PluginSource, backends: Mapping[str, FoundPlugin]) -> ForeignPlugins:
    """Look for PJRT plug-ins that were not written for dovetail.

    Args:
        source: returns the entry points of a group.
        backends: the backends written for dovetail, by platform.
    """
    handled = {
        entry.name: entry.value
        for entry in source(HANDLES)
        if entry.value in backends and entry.name not in backends and not entry.hidden
    }
    plugins: dict[str, ForeignPlugin] = {}
    unused: dict[str, str] = {}
    failures: list[PluginFailure] = []
    for plugin in _named(os.environ.get(VARIABLE, "")):
        first = backends.get(plugin.name) or plugins.get(plugin.name)
        if first is None:
            plugins[plugin.name] = plugin
            handled.pop(plugin.name, None)
        else:
            error = LookupError(
                f"the environment variable {VARIABLE} names {plugin.name!r}, which "
                f"{first.origin} offers already; use another name for {plugin.description}"
            )
            failures.append(PluginFailure(plugin.name, VARIABLE, "find", error))
    for group in FOREIGN:
        entries = [entry for entry in source(group) if not entry.hidden]
        for entry in sorted(entries, key=lambda found: (found.name, found.distribution)):
            taken = backends.get(entry.name) or plugins.get(entry.name)
            if entry.name in handled:
                unused[entry.name] = f"the platform {handled[entry.name]!r} brings what it has"
            elif taken is not None:
                unused[entry.name] = f"{taken.origin} offers the platform of that name"
            else:
                libraries = tuple(_libraries_of(entry.value))
                if libraries:
                    plugins[entry.name] = _of_entry(entry, libraries)
                else:
                    unused[entry.name] = f"{entry.value} holds no PJRT library"
    return ForeignPlugins(plugins, handled, unused, tuple(failures))


# ------------------------------------------------------------------------------- entry points


def _of_entry(entry: FoundPlugin, libraries: tuple[str, ...]) -> ForeignPlugin:
    return ForeignPlugin(
        entry.name,
        _BACKEND,
        entry.distribution,
        entry.version,
        libraries=libraries,
        description=f"the PJRT plug-in in {entry.value}",
    )


def _libraries_of(value: str) -> Iterator[str]:
    """Paths of the PJRT libraries in the folder of an entry point's package."""
    folders = _folders_of(value.partition(":")[0].strip())
    for folder in dict.fromkeys(os.path.realpath(folder) for folder in folders):
        for place in (folder, os.path.join(folder, "lib")):
            names = sorted(os.listdir(place)) if os.path.isdir(place) else []
            for extension in (".so", ".dylib", ".dll"):  # not by `glob`, which takes 1 ms to load
                for name in names:
                    path = os.path.join(place, name)
                    if name.endswith(extension) and is_pjrt_library(path):
                        yield path


def _folders_of(module: str) -> Collection[str]:
    """The folders of a module's package, found without importing anything."""
    first, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(first)
    except (ImportError, ValueError):
        return ()
    folders: Collection[str] = ()
    for name in [*rest, None]:
        within = _locations(spec)
        if not within:  # a plain module: its package's folder, if it has a package
            return folders if name is None else ()
        folders = within
        if name is not None:
            # By the last part of the name, so no parent package needs to be in `sys.modules`.
            spec = PathFinder.find_spec(name, folders)
            if spec is None:
                return ()
    return folders


def _locations(spec: ModuleSpec | None) -> list[str]:
    if spec is None or spec.submodule_search_locations is None:
        return []
    return list(spec.submodule_search_locations)


_SYMBOL: Final = b"GetPjrtApi\0"
_ELF: Final = b"\x7fELF"
_DYNAMIC_SYMBOLS: Final = 11
_UNDEFINED: Final = 0
_DAMAGED: Final = (struct.error, OverflowError, IndexError)


@record
class _Layout:
    """`struct` formats and offsets of the fields read from ELF files of one width.

    Attributes:
        sections: format and offset of the section table's position in the header.
        sizes: offset of the size of an entry and the number of entries.
        section: format of an entry: type, offset, length, and the index of the linked section.
        symbol: format of a symbol: its name, as an offset in the string table, and the index of
            its section.
    """

    sections: tuple[str, int]
    sizes: int
    section: str
    symbol: str


_LAYOUTS: Final[Mapping[int, _Layout]] = {
    1: _Layout(("I", 32), 46, "4xI8xIII", "I10xH"),
    2: _Layout(("Q", 40), 58, "4xI16xQQI", "I2xH16x"),
}


def is_pjrt_library(path: str) -> bool:
    """Whether a file exports the entry function of a PJRT library; no code is run.

    For Linux libraries only a few pages are read: the dynamic symbol table and its names. A
    library without a section table is not recognised. In libraries for other systems only the name
    is searched for.
    """
    import mmap  # deferred: most processes inspect no library

    try:
        with (
            open(path, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            if data[:4] == _ELF:
                return _elf_gives(data, _SYMBOL)
            return data.find(_SYMBOL) >= 0
    except (OSError, ValueError, *_DAMAGED):  # no file, an empty one, a damaged one
        return False


def _elf_gives(data: mmap.mmap, symbol: bytes) -> bool:
    """Whether a library for Linux exports a symbol.

    Args:
        data: the file.
        symbol: the name, with the zero byte at its end.

    Raises:
        struct.error, OverflowError, IndexError: the file is damaged.
    """
    layout, order = _LAYOUTS.get(data[4]), {1: "<", 2: ">"}.get(data[5])
    if layout is None or order is None:
        return False
    form, place = layout.sections
    (table,) = struct.unpack_from(order + form, data, place)
    size, count = struct.unpack_from(order + "HH", data, layout.sizes)
    for number in range(count):
        kind, start, length, names = struct.unpack_from(
            order + layout.section, data, table + number * size
        )
        if kind != _DYNAMIC_SYMBOLS or names >= count:
            continue
        _, first, extent, _ = struct.unpack_from(order + layout.section, data, table + names * size)
        # Linkers store a name that is a suffix of another one inside that one.
        offsets = set(_found(data, symbol, first, first + extent))
        symbols = data[start : start + length] if offsets else b""
        for offset, defined_in in struct.iter_unpack(order + layout.symbol, symbols):
            if offset in offsets and defined_in != _UNDEFINED:
                return True
    return False


def _found(data: mmap.mmap, text: bytes, start: int, end: int) -> Iterator[int]:
    """Offsets of a text in a part of a file, relative to the part's start."""
    place = data.find(text, start, end)
    while place >= 0:
        yield place - start
        place = data.find(text, place + 1, end)


# -------------------------------------------------------------------------------- the variable


def _named(text: str) -> Iterator[ForeignPlugin]:
    """The plug-ins named in the variable, including invalid ones with their problem."""
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, separator, path = (part.strip() for part in pair.partition(os.pathsep))
        if not (name and separator and path):
            problem = (
                f"the environment variable {VARIABLE} holds {pair!r}, and is written "
                f"name{os.pathsep}path,name{os.pathsep}path"
            )
            yield _of_variable(name or pair, path, problem=problem)
        elif path.endswith(".json"):
            yield _described(name, path)
        elif os.path.isfile(path):
            yield _of_variable(name, path, libraries=(path,))
        else:
            yield _of_variable(name, path, problem=_missing(name, path))


def _missing(name: str, path: str) -> str:
    return (
        f"the environment variable {VARIABLE} says that the PJRT library of {name!r} is {path}, "
        "and there is no such file"
    )


def _of_variable(name: str, path: str, **fields: Any) -> ForeignPlugin:
    fields.setdefault("description", f"the PJRT plug-in {path}")
    return ForeignPlugin(name, _BACKEND, VARIABLE, priority=_NAMED_PRIORITY, **fields)


def _described(name: str, path: str) -> ForeignPlugin:
    """The plug-in that a JSON file describes."""
    import json  # deferred: seldom needed

    try:
        with open(path, encoding="utf-8") as file:
            description = json.load(file)
    except FileNotFoundError:
        return _of_variable(name, path, problem=_missing(name, path))
    except (OSError, ValueError) as error:
        return _of_variable(name, path, problem=f"{path} cannot be read as JSON: {error}")
    problem = _description_problem(path, description)
    if problem:
        return _of_variable(name, path, problem=problem)
    library = os.path.join(os.path.dirname(path), description["library_path"])
    if not os.path.isfile(library):
        problem = f"{path} names the PJRT library {library}, and there is no such file"
        return _of_variable(name, path, problem=problem)
    return _of_variable(
        name,
        library,
        libraries=(library,),
        create_options=description.get("create_options", {}),
        aliases=tuple(description.get("aliases", ())),
        capabilities=frozenset(description.get("capabilities", CAPABILITIES)),
        description=description.get("description", f"the PJRT plug-in {library}"),
    )


def _description_problem(path: str, description: object) -> str:
    """What is wrong with the content of a JSON file; empty if it is valid."""
    if not isinstance(description, dict) or "library_path" not in description:
        return f'{path} must hold {{"library_path": ...}}, and may hold "create_options"'
    for key, value in description.items():
        if key not in _FIELDS:
            return f"{path} holds {key!r}; what it may hold is {', '.join(_FIELDS)}"
        names = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if not isinstance(value, _FIELDS[key]) or (isinstance(value, list) and not names):
            return f"{path}: {key} is {value!r}, which is of the wrong type"
    return ""
