"""`dovetail.extend.pjrt`: libraries that are sound and others, and processes that survive them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail import ffi
from dovetail._core.base.bindings import OLDEST_PJRT, pjrt_struct_size
from dovetail._core.runtime.devices.pjrt_api import capsule_address, open_library

FAULTS = {
    # how the proxy is compiled, then what is said about it
    "major": (["MAJOR=1"], "has version 1.81 of the PJRT C API, and jaxlib speaks 0.x: install"),
    "minor 0": (["MINOR=0"], "has version 0.0 of the PJRT C API, and the oldest that jaxlib can"),
    "minor 28": (["MINOR=28"], "the oldest that jaxlib can use is 0.29: update the plug-in"),
    "short": (
        ["MINOR=200", "STRUCT_SIZE=984"],
        "claims version 0.200 of the PJRT C API, whose PJRT_Api has at least 1144 bytes, and "
        "gives 984: the plug-in was built wrongly",
    ),
    "short for its own version": (["STRUCT_SIZE=976"], "has at least 984 bytes, and gives 976"),
    "truncated": (["STRUCT_SIZE=16"], "it is 16 bytes long, which leaves no room for a version"),
    "hollow": ([], "lacks functions that every plug-in has, such as PJRT_Plugin_Initialize"),
    "null": (["RETURNS_NULL"], "GetPjrtApi returned nothing"),
}

PROGRAM = """
import json, sys
from dovetail.extend.pjrt import PjrtError, load_plugin

said = {}
for number, path in enumerate(sys.argv[1:]):
    try:
        load_plugin(f"plugin{number}", path)
    except PjrtError as error:
        said[path] = str(error)
import dovetail as dt
said["cpu"] = float(dt.jit(lambda x: x + 1)(1.0))
said["jax"] = "jax" in sys.modules
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory, proxy, compiler) -> dict[str, Path]:
    """Libraries with one fault each, by its name."""
    folder = tmp_path_factory.mktemp("faults")
    found = {name: proxy(name.replace(" ", "_"), *how) for name, (how, _) in FAULTS.items()}
    (folder / "empty.c").write_text("int nothing;")
    needed = compiler("libneeded", folder / "empty.c", "-Wl,-soname,libneeded.so")
    found["no function"] = compiler("no_function", folder / "empty.c")
    # --no-as-needed, or the linker leaves out a library of which nothing is used.
    words = ("-Wl,--no-as-needed", f"-L{needed.parent}", "-lneeded")
    found["misses a library"] = compiler("misses", folder / "empty.c", *words)
    needed.unlink()
    found["text"] = folder / "text.so"
    found["text"].write_text("no library")
    found["damaged"] = folder / "damaged.so"
    found["damaged"].write_bytes(found["no function"].read_bytes()[:1000])
    found["a folder"] = folder
    found["missing"] = folder / "missing.so"
    return found


@pytest.fixture(scope="module")
def said(answer_of, files) -> dict[str, str]:
    """What a process said that was given all these libraries, and then computed on the CPU."""
    return answer_of(PROGRAM, *map(str, files.values()))


def test_the_process_survives_them_all(said, files):
    assert said["cpu"] == 2.0
    assert said["jax"] is False
    assert set(said) - {"cpu", "jax"} == {str(path) for path in files.values()}


@pytest.mark.parametrize(
    ("fault", "expected"),
    {
        **{name: text for name, (_, text) in FAULTS.items()},
        "no function": "is a shared library, but no PJRT plug-in: it has no function GetPjrtApi",
        "misses a library": "cannot be opened: libneeded.so: cannot open shared object file",
        "text": "is no shared library: give the path of a PJRT plug-in's library",
        "damaged": "has 1000 bytes and should have ",
        "a folder": "is no file: give the path of the PJRT library in it",
        "missing": "there is no file ",
    }.items(),
)
def test_faults_are_told_in_one_sentence(said, files, fault, expected):
    text = said[str(files[fault])]
    assert expected in text
    assert str(files[fault]) in text
    assert "\n" not in text


def test_a_newer_minor_version_is_taken_where_the_struct_is_large_enough(proxy):
    newer = proxy("newer", "MINOR=200", "STRUCT_SIZE=1144", works=True)
    assert open_library(newer).version == (0, 200)
    oldest = proxy("oldest", "MINOR=29", "STRUCT_SIZE=776", works=True)
    assert open_library(oldest).version == OLDEST_PJRT


def test_sizes_grow_with_the_version():
    sizes = [pjrt_struct_size(minor) for minor in range(OLDEST_PJRT[1], 300)]
    assert sizes == sorted(sizes)


def test_the_header_of_the_wheel_agrees(xla_cpu):
    """The one size that can be looked up: so many functions, each a pointer, after 40 bytes."""
    header = (xla_cpu.parent / "include" / "pjrt_c_api.h").read_text()
    minor = int(header.partition("#define PJRT_API_MINOR ")[2].split()[0])
    assert pjrt_struct_size(minor) == 40 + 8 * header.count("\n  _PJRT_API_STRUCT_FIELD(")


def test_a_handler_is_a_capsule():
    with pytest.raises(TypeError, match="the handler of a custom call is a capsule, got 3"):
        capsule_address(3)


STABLEHLO = """
import json, sys
from dovetail.extend.pjrt import PjrtError, load_plugin

said = []
for number, path in enumerate(sys.argv[1:]):
    try:
        load_plugin(f"plugin{number}", path).make_client({"cpu_device_count": 1})
    except PjrtError as error:
        said.append(str(error))
plugin = load_plugin("plugin0", sys.argv[1])
for options in ({"table": {}}, {"cpu_device_count": "two"}):
    try:
        plugin.make_client(options)
    except PjrtError as error:
        said.append(str(error))
for make in (
    lambda: plugin.topology_devices("2x2"),
    lambda: load_plugin("Plugin0", sys.argv[2]),
    lambda: plugin.register_ffi_target("f", {"prepare": None}, platform="Host"),
):
    try:
        make()
    except (PjrtError, ValueError) as error:
        said.append(str(error))
said.append(load_plugin("PLUGIN0", sys.argv[1]) is plugin)
print(json.dumps(said))
"""


def test_clients_that_cannot_be_made(answer_of, proxy):
    libraries = [
        proxy("reads_old", "NEWEST_READ=0,5,0", works=True),
        proxy("reads_new", "OLDEST_READ=99,0,0", works=True),
        proxy("no_devices", "NO_DEVICES", works=True),
    ]
    said = answer_of(STABLEHLO, *map(str, libraries))
    for text, expected in zip(
        said,
        [
            "reads StableHLO up to 0.5.0, and this jaxlib writes 0.9.0 at the oldest: update the",
            "reads StableHLO from 99.0.0 on, and this jaxlib writes 1.",
            "made no client: ",
            "the option table of the PJRT plug-in 'plugin0' is {}: give a bool, int, float, str",
            "an option has another type than it expects",
            "has no topology '2x2': UNIMPLEMENTED",
            "cannot be in this process by that name: give it another",
            "the stages of the custom call 'f' are ['prepare']: give 'execute', and others out of",
        ],
        strict=False,
    ):
        assert expected in text
        assert "\n" not in text
    assert said[8:] == [True]


FFI = '''
import ctypes, json, sys
import numpy as np
import dovetail as dt
from dovetail.extend.pjrt import PjrtError, load_plugin
from jaxlib import xla_client

new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pointer = ctypes.cast(ctypes.CDLL(sys.argv[2]).scale, ctypes.c_void_p)
handler = new(pointer, b"xla._CUSTOM_CALL_TARGET", None)

device = dt.devices("xla_cpu_pjrt")[0]
plugin = load_plugin("xla_cpu_pjrt", sys.argv[1])
plugin.register_ffi_target("scale", handler, platform="Host")
said = []
try:
    plugin.register_ffi_target("scale", {"execute": handler, "prepare": handler}, platform="Host")
except PjrtError as error:
    said.append(str(error))
module = """
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = stablehlo.custom_call @scale(%x) {api_version = 4 : i32, backend_config = {}}
      : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}"""
options = xla_client.CompileOptions()
ids = np.array([[device.id]])
options.executable_build_options.device_assignment = xla_client.DeviceAssignment.create(ids)
devices = xla_client.DeviceList((device,))
program = device.client.compile_and_load(module.encode(), devices, options)
x = dt.device_put(np.arange(3, dtype=np.float32), device)
(result,) = program.execute_sharded([x._buffer]).disassemble_into_single_device_arrays()[0]
said.append(np.asarray(result).tolist())
print(json.dumps(said))
'''


def test_custom_calls_reach_the_plugin(answer_of, compiler, xla_cpu):
    import jaxlib

    include = Path(jaxlib.__file__).parent / "include"
    # The version of XLA's interface for handlers that this plug-in has.
    handler = compiler("scale", "scale.c", "-DFFI_MINOR=2", include=include)
    refused, result = answer_of(FFI, str(xla_cpu), str(handler))
    assert "takes no handlers of custom calls with the stages execute, prepare" in refused
    assert result == [0.0, 3.0, 6.0]


FFI_CALLS = """
import ctypes, json, sys
import numpy as np
import dovetail as dt

library = ctypes.CDLL(sys.argv[2])
said = []
for name in ("before", "after"):  # the platform has started
    dt.ffi.register_ffi_target(name, dt.ffi.pycapsule(library.scale), platform="xla_cpu_pjrt")
    device = dt.devices("xla_cpu_pjrt")[0]
    call = dt.ffi.ffi_call(name, dt.ShapeDtypeStruct((3,), np.float32))
    said.append(np.asarray(dt.jit(call, device=device)(np.arange(3, dtype=np.float32))).tolist())
print(json.dumps(said))
"""


def test_native_calls_of_users_reach_the_plugin(answer_of, compiler, xla_cpu):
    handler = compiler("scale", "scale.c", "-DFFI_MINOR=2", include=Path(ffi.include_dir()))
    said = answer_of(FFI_CALLS, str(xla_cpu), str(handler))
    assert said == [[0.0, 3.0, 6.0]] * 2


OPTIONS = """
import json, sys
from dovetail.errors import BackendUnavailableError
from dovetail.experimental.topologies import get_topology_desc
from dovetail.extend.pjrt import PjrtError, load_plugin

plugin = load_plugin("xla_cpu_pjrt", sys.argv[1])
said = []
for text in sys.argv[2:]:
    options = eval(text)
    answers = []
    for make in (
        lambda: plugin.make_client(options),
        lambda: plugin.topology_devices("x", **options),
        lambda: get_topology_desc("x", platform="xla_cpu_pjrt", **options),
    ):
        try:
            make()
            answers.append("")
        except (PjrtError, BackendUnavailableError, TypeError) as error:
            answers.append(str(error).encode(errors="replace").decode())
    said.append(answers)
for name in ("\\ud800", 3):
    try:
        plugin.topology_devices(name)
    except PjrtError as error:
        said.append(str(error))
print(json.dumps(said))
"""

TAKEN = (
    *("{}", "{'a': -2**63}", "{'a': 2**63 - 1}", "{'a': True}", "{'a': 1.5}", "{'a': '\u00e9'}"),
    *("{'a': []}", "{'a': [1, 2]}", "{'a': (1, 2)}", "{'\u00e9': 1}"),
    # Names that parameters have.
    *("{'name': 'y'}", "{'self': 1}", "{'options': 1}", "{'c_api': 1}"),
)
REFUSED = {
    "{1: 2}": "is named 1: give a str",
    "{'\\ud800': 2}": "is named '\\ud800': give a str that can be written as UTF-8",
    "{'a': '\\ud800'}": "the option a of the PJRT plug-in 'xla_cpu_pjrt' is '\\ud800': give a bool",
    "{'a': 2**63}": "is 9223372036854775808: give a bool, int, float, str or a list of ints, where",
    "{'a': -2**63 - 1}": "is -9223372036854775809: give a bool",
    "{'a': [1, 2**63]}": "is [1, 9223372036854775808]: give a bool",
    "{'a': [1, 0.5]}": "is [1, 0.5]: give a bool",
    "{'a': None}": "is None: give a bool",
    "{'a': b'b'}": "is b'b': give a bool",
    "{'a': {}}": "is {}: give a bool",
}


@pytest.fixture(scope="module")
def answers(answer_of, xla_cpu) -> dict[str, list[str]]:
    """What is said about options of a client, of a topology, and of a user's topology."""
    options = [*TAKEN, *REFUSED]
    said = answer_of(OPTIONS, str(xla_cpu), *options)
    return {**dict(zip(options, said, strict=False)), "names": said[len(options) :]}


@pytest.mark.parametrize("options", TAKEN)
def test_options_that_reach_the_plugin(answers, options):
    """It knows none of them for a client, and has no topologies: so it says itself."""
    client, *topologies = answers[options]
    assert client == ""
    assert all("UNIMPLEMENTED: Topology not supported" in text for text in topologies)


@pytest.mark.parametrize("options", REFUSED)
def test_options_that_no_plugin_takes(answers, options):
    client, *topologies = answers[options]
    keywords = not options.startswith("{1")  # others Python refuses itself
    for text in (client, *(topologies if keywords else ())):
        assert REFUSED[options] in text
        assert "\n" not in text


def test_names_of_topologies_that_are_no_text(answers):
    for text in answers["names"]:
        assert "give a str that can be written as UTF-8" in text
    assert len(answers["names"]) == 2
