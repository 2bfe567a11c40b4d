"""The contract of a plug-in: its behaviour before any of its drivers is loaded, and its devices.

Most of it can be tested without the hardware.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import functools
import importlib
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

import numpy as np
import pytest

from dovetail._core.api.explanation import all_primitives
from dovetail._core.base.config import enable_x64
from dovetail._core.base.errors import close_matches
from dovetail._core.ir.avals import aval_of
from dovetail._core.plugins.discovery import BACKENDS, installed_plugins
from dovetail._core.plugins.hookspecs import HostFunction
from dovetail._core.plugins.loading import IN_PROCESS, LoadedBackend
from dovetail._core.plugins.manager import PluginManager, manager
from dovetail._core.plugins.protocols import Device, is_pjrt, missing_members
from dovetail._core.runtime.devices.foreign import ForeignBackend
from dovetail.errors import BackendUnavailableError
from dovetail.testing.backend import BackendUnderTest
from dovetail.testing.capabilities import unknown_capabilities
from dovetail.testing.examination import PATIENCE, Examination, examine, hooks_of, run_module
from dovetail.testing.numerics import difference
from dovetail.testing.sample import Sample
from dovetail.testing.samples import all_samples, defined_primitives

PROMISED = "dovetail.extend"
NO_OPTION = "no_such_option_of_the_kit"


def _place(plugin: LoadedBackend) -> str:
    """Where another process can import a plug-in from, in the form of entry points."""
    if plugin.origin == IN_PROCESS:
        if isinstance(plugin.plugin, ModuleType):
            return plugin.plugin.__name__
        pytest.skip(
            "the backend was registered in this process as an object, which no other can import"
        )
    if isinstance(plugin.plugin, ForeignBackend):
        pytest.skip("the backend is a PJRT library alone: there is no module that speaks for it")
    for installed in installed_plugins(BACKENDS):
        if (installed.name, installed.origin) == (plugin.name, plugin.origin):
            return installed.value
    raise AssertionError(f"{plugin.origin} no longer has the entry point {plugin.name}")


@functools.cache
def _examination(place: str, platform: str) -> Examination:
    return examine(place, platform)


@pytest.fixture
def examination(dovetail_plugin: LoadedBackend) -> Examination:
    """What importing the plug-in and asking it about itself does to a fresh process."""
    return _examination(_place(dovetail_plugin), dovetail_plugin.platform)


def _source_files(module: str) -> list[Path]:
    """The files of the package that contains a plug-in's module, except tests."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return []
    package = find_spec(spec.parent) if spec.parent else None
    if package is None:
        return [Path(spec.origin)]
    folders = [Path(folder) for folder in package.submodule_search_locations or ()]
    return [
        path
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        if not path.name.startswith("test_") and "tests" not in path.relative_to(folder).parts
    ]


def test_doctor_lists_the_platform_as_ready(
    dovetail_plugin: LoadedBackend, request: pytest.FixtureRequest
) -> None:
    """`python -m dovetail doctor --json` finds the backend in a fresh process, and its devices."""
    if dovetail_plugin.origin == IN_PROCESS:
        pytest.skip("the backend was registered in this process, and no other process knows it")
    try:
        # It gives up a little earlier, and says where the plug-in waits.
        answer = run_module("dovetail", "doctor", "--json", "--timeout", f"{0.9 * PATIENCE:g}")
    except TimeoutError as error:
        request.session.shouldfail = f"the doctor: {error}"
        raise
    # Drivers may print anything before or after it.
    _, begin, rest = f"\n{answer.stdout}".partition("\n{\n")
    assert begin, f"the doctor printed no JSON: {answer.stdout[-2000:]}{answer.stderr[-2000:]}"
    document, _ = json.JSONDecoder().raw_decode("{" + rest)
    backends = {b["platform"]: b for b in document["backends"]}
    name = dovetail_plugin.platform
    assert name in backends, f"the doctor lists {sorted(backends)} and not {name!r}"
    backend = backends[name]
    if "did not return" in backend["reason"]:
        # The tests after this one would not return either.
        request.session.shouldfail = f"the doctor: {backend['reason']}"
    assert backend["state"] == "ready", f"the doctor: {backend['state']}: {backend['reason']}"
    assert backend["devices"], f"the doctor finds no device of {name!r}"


def _foreign(modules: Iterable[str], plugin: LoadedBackend) -> list[str]:
    """The modules that a plug-in must not import before its driver is needed."""
    own = _place(plugin).partition(":")[0].partition(".")[0]
    allowed = {own, "dovetail", "pluggy", *sys.stdlib_module_names}
    return [name for name in modules if name.partition(".")[0] not in allowed]


def test_importing_the_plugin_imports_little(
    examination: Examination, dovetail_plugin: LoadedBackend
) -> None:
    """Importing the plug-in's module imports its own package, the standard library, and what the
    description of a backend takes from `dovetail.extend`: no driver, no jaxlib, no NumPy."""
    assert not examination.imported.error, examination.imported.error
    foreign = _foreign(examination.imported.modules, dovetail_plugin)
    assert not foreign, (
        f"importing {_place(dovetail_plugin)} also imports {', '.join(foreign)}. Every installed "
        "backend is imported when the default platform is chosen: import what is heavy inside of "
        "the hooks that need it"
    )


def test_importing_the_plugin_does_nothing_else(examination: Examination) -> None:
    """Importing the plug-in writes nothing, starts nothing, loads no library and opens no
    connection."""
    assert not examination.imported.deeds, "\n".join(examination.imported.deeds)


def test_description_is_pure(examination: Examination) -> None:
    """`dovetail_backend_info` returns the same description each time and has no side effects."""
    described = examination.described
    assert not described.error, f"dovetail_backend_info raised {described.error}"
    assert not described.deeds, "dovetail_backend_info:\n" + "\n".join(described.deeds)
    assert not described.modules, f"dovetail_backend_info imports {described.modules}"
    first, second = described.answers
    assert first == second, f"dovetail_backend_info returned {first} and then {second}"


def test_probe_is_pure(examination: Examination, dovetail_plugin: LoadedBackend) -> None:
    """`dovetail_probe` returns a sentence or an empty string, the same each time; it looks for
    files, loads no driver, and does not wait."""
    probed = examination.probed
    assert not probed.error, (
        f"dovetail_probe raised {probed.error}. That means that something which is installed is "
        "broken; return a sentence where the hardware is not there"
    )
    assert not probed.deeds, "dovetail_probe:\n" + "\n".join(probed.deeds)
    foreign = _foreign(probed.modules, dovetail_plugin)
    assert not foreign, (
        f"dovetail_probe imports {', '.join(foreign)}. It is asked whenever the default platform "
        "is chosen: look for files"
    )
    if probed.answers:
        first, second = probed.answers
        assert first == second, f"dovetail_probe returned {first} and then {second}"
        kind = first.partition(":")[0]
        assert kind in ("str", "NoneType"), f"dovetail_probe returned {first}; return a str"


def test_description_is_complete(dovetail_plugin: LoadedBackend) -> None:
    """Each field of the description has its type; the names are usable in an option and in a
    list, and the platform has one line for the doctor."""
    info = dovetail_plugin.info
    for name in (info.platform, *info.aliases):
        assert isinstance(name, str), f"{name!r} is no name of a platform"
        assert name, "a name of a platform is empty"
        assert not set(name) & set(", \t\n"), f"the name {name!r} has a space or a comma in it"
    assert isinstance(info.aliases, tuple), f"aliases is {info.aliases!r}; give a tuple of str"
    assert info.platform not in info.aliases, f"{info.platform!r} is an alias of itself"
    assert type(info.priority) is int, f"priority is {info.priority!r}; give an int"
    description = info.described()
    assert description, "description is empty: `python -m dovetail doctor` shows it"
    assert "\n" not in description, "description has more than one line"
    assert isinstance(info.capabilities, frozenset), (
        f"capabilities is {info.capabilities!r}; give a frozenset of str"
    )


def test_capabilities_are_known(dovetail_plugin: LoadedBackend) -> None:
    """Every capability is one of `dovetail.testing.capabilities`, or begins with ``x-``."""
    unknown = unknown_capabilities(dovetail_plugin.info.capabilities)
    assert not unknown, "\n".join(unknown)


def test_several_devices_are_those_of_pjrt(dovetail_backend: BackendUnderTest) -> None:
    """A client in Python does not declare ``spmd``: core runs its programs on one device."""
    client = dovetail_backend.device.client
    assert "spmd" not in dovetail_backend.capabilities or is_pjrt(client), (
        "the backend declares the capability 'spmd', and its client is written in Python: only "
        "clients of PJRT libraries run programs on several devices. Leave it out"
    )


def test_plugin_imports_only_what_is_promised(dovetail_plugin: LoadedBackend) -> None:
    """No module of the plug-in's package imports anything from dovetail but `dovetail.extend`:
    everything else may change with any release."""
    files = _source_files(_place(dovetail_plugin).partition(":")[0])
    assert files, "the plug-in has no file of Python that could be read"
    problems = [
        f"{path}:{line}: imports {name}"
        for path in files
        for name, line in _imports_of_dovetail(path)
        if name != PROMISED and not name.startswith(f"{PROMISED}.")
    ]
    assert not problems, "\n".join(problems)


def _imports_of_dovetail(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            # `from dovetail import extend` also imports the public names.
            whole = node.module == "dovetail"
            names = [f"dovetail.{a.name}" for a in node.names] if whole else [node.module]
        else:
            continue
        yield from ((n, node.lineno) for n in names if n.partition(".")[0] == "dovetail")


def test_nothing_of_the_plugin_has_failed(dovetail_plugin: LoadedBackend) -> None:
    """No call to the plug-in has raised so far, and no other distribution offers a backend with the
    same name."""
    failures = [str(f) for f in manager().failures if f.name == dovetail_plugin.name]
    assert not failures, "\n".join(failures)


def test_a_client_can_be_made(dovetail_plugin: LoadedBackend) -> None:
    """The hook `dovetail_make_client` is there: every backend needs it."""
    implemented = hooks_of(dovetail_plugin.plugin).dovetail_make_client.get_hookimpls()
    assert implemented, "the plug-in implements no dovetail_make_client, marked with @hookimpl"


def test_lowerings_name_primitives(dovetail_plugin: LoadedBackend) -> None:
    """Each rule of `dovetail_lowerings` is a function for a primitive that exists."""
    with contextlib.suppress(ModuleNotFoundError):  # the NumPy API, which has primitives of its own
        importlib.import_module("dovetail.experimental.sparse.rows")
    known = set(all_primitives())
    rules = manager().lowerings(dovetail_plugin.platform)
    wrong = []
    for name in sorted(set(rules) - known):
        near = close_matches(name, known, 3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        wrong.append(f"a lowering rule for {name!r}, and there is no such primitive{hint}")
    assert not wrong, "\n".join(wrong)


def test_host_functions_compute_their_primitives(dovetail_plugin: LoadedBackend) -> None:
    """Each function of `dovetail_host_functions` gives what the reference of its primitive gives
    for samples, and for the first element of an operand in place of the operand."""
    primitives, samples, wrong = defined_primitives(), all_samples(), []
    functions = manager().host_functions(dovetail_plugin.platform)
    computed: dict[str, int] = {}
    for (name, dtype), function in functions.items():
        assert name in primitives, f"a host function for {name!r}, and there is no such primitive"
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_ssize_t)(function.address)
        if function.numbers is not None:
            count, differences = _wrong_arrays(name, dtype, function, call, samples[name])
            computed[name] = computed.get(name, 0) + count
            wrong += differences
            continue
        fitting = [s for s in samples[name] if _is_elementwise(name, s, dtype)]
        assert fitting, f"a host function for {name} of {dtype}, of which there is no sample"
        for sample in fitting:
            arrays = [np.array(value, order="C") for value in sample.arrays()]
            for short in range(-1, len(arrays)):
                with np.errstate(all="ignore"):
                    operands = [
                        np.full_like(x, x.flat[0]) if i == short and x.size else x
                        for i, x in enumerate(arrays)
                    ]
                    want = np.asarray(primitives[name].reference(*operands))
                got = np.empty_like(want)
                places = (ctypes.c_void_p * len(arrays))(*[x.ctypes.data for x in operands])
                steps = (ctypes.c_ssize_t * len(arrays))(
                    *[int(i != short and x.shape != ()) for i, x in enumerate(arrays)]
                )
                call(places, steps, got.ctypes.data, got.size)
                if said := difference(got, want, sample.tolerance, sample.absolute, False):
                    wrong.append(f"{name} of {dtype}, operand {short} being one element: {said}")
    wrong += [
        f"host functions for {n}, which compute no sample" for n, k in computed.items() if not k
    ]
    assert not wrong, "\n".join(wrong)


#: Bytes behind results, and what they hold, by which it is seen what is written there.
_BEYOND: Final = 4096
_UNTOUCHED: Final = 171


def _wrong_arrays(
    name: str, dtype: str, function: HostFunction, call: Callable[..., None], samples: list[Sample]
) -> tuple[int, list[str]]:
    """How many of those samples a host function of whole arrays computes, and what is wrong."""
    wrong, computed = [], 0
    assert function.numbers is not None
    for sample in samples:
        if sample.raises is not None or not sample.arrays():
            continue
        operands = [np.array(value, order="C") for value in sample.arrays()]
        with enable_x64(True), np.errstate(all="ignore"):
            found = defined_primitives()[name].reference(*operands, **sample.params)
        wanted = list(found) if isinstance(found, (list, tuple)) else [np.asarray(found)]
        if any(x.dtype.names is not None for x in (*operands, *wanted)):
            computed += 1  # keys are no arrays of NumPy's: calls with them are tested
            continue
        with enable_x64(True):
            avals, outs = list(map(aval_of, operands)), list(map(aval_of, wanted))
        if avals[-1].dtype != dtype or not all(want.size for want in wanted):
            continue
        numbers = function.numbers(sample.params, avals, outs if len(outs) > 1 else outs[0])
        if numbers is None:
            continue
        computed += 1
        # Each of several results begins at a multiple of 64 bytes.
        ends = np.cumsum([-(-want.nbytes // 64) * 64 for want in wanted])
        memory = np.full(ends[-1] + _BEYOND, _UNTOUCHED, np.uint8)
        places = (ctypes.c_void_p * len(operands))(*[x.ctypes.data for x in operands])
        count = math.prod(outs[0].shape)
        call(places, (ctypes.c_ssize_t * len(numbers))(*numbers), memory.ctypes.data, count)
        if (memory[ends[-1] :] != _UNTOUCHED).any():
            wrong.append(
                f"{name} of {dtype}, {sample.note or sample.params}: it writes beyond its result"
            )
        for want, start in zip(wanted, [0, *ends], strict=False):
            got = memory[start : start + want.nbytes].view(want.dtype).reshape(want.shape)
            if said := difference(got, want, sample.tolerance, sample.absolute, False):
                wrong.append(f"{name} of {dtype}, {sample.note or sample.params}: {said}")
    return computed, wrong


def _is_elementwise(name: str, sample: Sample, dtype: str) -> bool:
    """Whether a host function for a dtype computes a sample."""
    if sample.raises is not None or any(v is not None for v in sample.params.values()):
        return False
    arrays = sample.arrays()
    shapes = {x.shape for x in arrays} - {()}
    # What chooses among more than two, or by integers, needs a program.
    first = 1 if name == "select_n" else 0
    if first and (len(arrays) != 3 or arrays[0].dtype != bool):
        return False
    return len(shapes) < 2 and all(x.dtype == dtype for x in arrays[first:])


def test_compile_options_are_values(dovetail_plugin: LoadedBackend) -> None:
    """`dovetail_compile_options` maps names to bools, numbers and strings, for any level of
    optimization, and for an empty program."""
    for level in (None, 9, 39):
        asked = {} if level is None else {"optimization_level": level}
        for program in ((), (frozenset({"stablehlo.add"}), frozenset({(10,)}))):
            options = manager().compile_options(dovetail_plugin.platform, asked, *program)
            for name, value in options.items():
                assert isinstance(name, str), f"the compile option {name!r} is no name"
                assert isinstance(value, bool | int | float | str), (
                    f"the compile option {name!r} is {value!r}; give a bool, a number or a string"
                )


def test_environment_is_text(dovetail_plugin: LoadedBackend) -> None:
    """`dovetail_environment` maps names of variables to strings."""
    for name, value in manager().environment(dovetail_plugin.platform).items():
        assert isinstance(name, str), f"{name!r} is no name of a variable"
        assert isinstance(value, str), f"the variable {name} is to be {value!r}; give a str"


def test_unknown_options_are_refused(dovetail_backend: BackendUnderTest) -> None:
    """A client option unknown to the backend is an error that names it."""
    # A separate manager, so that the process's own does not remember the failure.
    own = PluginManager(source=lambda group: ())
    own.register(dovetail_backend.loaded.plugin, "under test")
    with pytest.raises(BackendUnavailableError) as caught:
        own.make_client(dovetail_backend.platform, {NO_OPTION: 1})
    cause = caught.value.__cause__
    assert NO_OPTION in str(cause), (
        f"dovetail_make_client was given the option {NO_OPTION!r} and raised "
        f"{type(cause).__name__}: {cause}; name the option, and list those that there are"
    )


def test_devices_are_numbered(dovetail_backend: BackendUnderTest) -> None:
    """`Client.devices` lists devices with increasing ids; `local_devices` those of this process."""
    client = dovetail_backend.device.client
    devices = list(client.devices())
    ids = [device.id for device in devices]
    assert ids == sorted(set(ids)), f"the ids of the devices are {ids}; make them increase"
    own = client.process_index()
    local = [device.id for device in client.local_devices()]
    addressed = [device.id for device in devices if device.process_index == own]
    assert local == addressed, (
        f"local_devices lists {local}, and the devices of process {own} are {addressed}"
    )
    assert local, "local_devices is empty"


def test_devices_describe_themselves(dovetail_backend: BackendUnderTest) -> None:
    """Every device has the members of `dovetail.extend.Device` and the name of its model, and
    either reports its memory or returns None."""
    for device in dovetail_backend.devices:
        missing = missing_members(device, Device)
        assert not missing, f"{device!r} lacks {', '.join(missing)}"
        kind = device.device_kind
        assert isinstance(kind, str), f"device_kind of {device!r} is {kind!r}; give a str"
        assert kind, f"device_kind of {device!r} is empty"
        stats = device.memory_stats()
        assert stats is None or isinstance(stats, Mapping), (
            f"memory_stats of {device!r} gives {stats!r}; give a mapping or None"
        )


def test_the_client_says_its_version(dovetail_backend: BackendUnderTest) -> None:
    """`platform_version` is a non-empty text: it is part of the disk cache's key, so it has to
    change with whatever compiles."""
    version = dovetail_backend.device.client.platform_version
    assert isinstance(version, str), f"platform_version is {version!r}; give a str"
    assert version, "platform_version is empty"
