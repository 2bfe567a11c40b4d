"""Compiling for devices that are not there, on a platform which stands for one on the CPU."""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.base import config
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices import topologies as topologies_module
from dovetail._core.runtime.programs.compilation import compile_options
from dovetail.errors import DeviceMismatchError, JaxRuntimeError
from dovetail.experimental import serialize_executable, topologies
from dovetail.experimental.layout import Format
from dovetail.extend import (
    BackendInfo,
    BackendUnavailableError,
    CompileRequest,
    LoweringTable,
    hookimpl,
    manager,
)
from dovetail.sharding import SingleDeviceSharding

MODELS = ("small", "large")


class AcmeDevice:
    """A device of a topology."""

    process_index = 0
    platform = "driver's own name"

    def __init__(self, number: int, model: str, client: AcmeCompiler) -> None:
        self.id = number
        self.device_kind = f"Acme {model}"
        self.client = client

    def __repr__(self) -> str:
        return f"AcmeDevice({self.id})"


class AcmeProgram:
    """A program as the CPU's compiler makes it; it counts nothing."""

    def __init__(self, loaded: Any) -> None:
        self.hlo_modules = loaded.hlo_modules
        self.get_compiled_memory_stats = loaded.get_compiled_memory_stats

    def cost_analysis(self) -> Any:
        raise JaxRuntimeError("UNIMPLEMENTED: nothing is counted")


class AcmeCompiler:
    """The client of a topology: it compiles and does nothing else."""

    platform = "driver's own name"
    platform_version = "1"

    def __init__(self) -> None:
        self.compiled: list[Any] = []

    def process_index(self) -> int:
        return 0

    def compile(self, request: CompileRequest) -> AcmeProgram:
        if "100000" in str(request.module):
            raise JaxRuntimeError("RESOURCE_EXHAUSTED: no such boards")
        self.compiled.append(request.devices)
        device = dt.devices("cpu")[0]
        cpu_options = compile_options("cpu", [device])[0]
        place: Any = SingleDeviceSharding(device)._internal_device_list
        return AcmeProgram(device.client.compile_and_load(request.module, place, cpu_options))


class Acme:
    """The backend: it can lower and compile, and has no hardware."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, object]]] = []

    @hookimpl
    def dovetail_backend_info(self) -> BackendInfo:
        return BackendInfo(platform="acme", api=(1, 1), priority=-1, aliases=("board",))

    @hookimpl
    def dovetail_probe(self, platform: str) -> str:
        return "there is no board."

    @hookimpl
    def dovetail_environment(self, platform: str) -> dict[str, str]:
        return {"ACME_QUIET": "1"}

    @hookimpl
    def dovetail_lowerings(self, platform: str) -> LoweringTable:
        table = LoweringTable()

        @table.rule("sin")
        def sin(context: Any, x: Any, *, accuracy: Any) -> Any:
            return context.op("cosine", (x,), context.avals_out[0])

        return table

    @hookimpl
    def dovetail_topology(
        self, platform: str, name: str, options: dict[str, object]
    ) -> list[AcmeDevice]:
        assert os.environ["ACME_QUIET"] == "1"
        self.asked.append((name, dict(options)))
        if name and name not in MODELS:
            raise ValueError(f"there is no Acme {name!r}; there are {', '.join(MODELS)}")
        if name == "large" and "library" in options:
            raise FileNotFoundError("the compiler of Acme is not installed")
        client = AcmeCompiler()
        return [AcmeDevice(number, name or "small", client) for number in range(2)]


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> Iterator[Acme]:
    monkeypatch.setenv("ACME_QUIET", "")
    monkeypatch.delenv("ACME_QUIET")
    backend = Acme()
    manager().register(backend, "acme topologies")
    yield backend
    manager().unregister("acme topologies")
    topologies_module._known.clear()


@pytest.fixture
def device(acme: Acme) -> Any:
    return topologies.get_topology_desc("small", platform="acme").devices[0]


def described(device: Any, *shape: int) -> dt.ShapeDtypeStruct:
    return dt.ShapeDtypeStruct(shape, np.float32, sharding=SingleDeviceSharding(device))


def test_a_description(acme: Acme) -> None:
    first = topologies.get_topology_desc("large", platform="board", bounds=[1, {"a": 2}])
    assert acme.asked == [("large", {"bounds": [1, {"a": 2}]})]
    assert (first.platform, first.name, len(first.devices)) == ("acme", "large", 2)
    assert repr(first) == "TopologyDescription('large', platform='acme', 2 of Acme large)"
    assert clients.platform_of(first.devices[0]) == "acme"
    again = topologies.get_topology_desc("large", "acme", bounds=(1, {"a": 2}))
    assert again is first
    assert topologies.get_topology_desc("large", "acme", bounds=[1, {"a": True}]) is not first
    odd = topologies.get_topology_desc("large", "acme", bounds={1})  # has no hash
    assert odd is not topologies.get_topology_desc("large", "acme", bounds={1})
    assert topologies.get_topology_desc(platform="acme").devices[0].device_kind == "Acme small"


ALIKE: dict[str, tuple[Any, Any, bool]] = {
    # two values of an option, and whether they ask for one description
    "lists": ([1, [2]], [1, [2]], True),
    "list and tuple": ([1, 2], (1, 2), True),
    "dicts in another order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    "keys of several types": ({1: 2, "a": 3}, {"a": 3, 1: 2}, True),
    "one and true": (1, True, False),
    "one and one": (1, 1.0, False),
    "keys that are equal": ({1: 2}, {True: 2}, False),
    "empty containers": ({}, [], False),
    "dict and its items": ({"a": 1}, [("a", 1)], False),
    "an empty list and an empty str": ([], "", False),
    "without a hash": ({1, 2}, {1, 2}, False),
    "without a hash within": ([{1, 2}], [{1, 2}], False),
}


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("case", ALIKE)
def test_descriptions_that_are_one(case: str) -> None:
    first, second, alike = ALIKE[case]
    one = topologies.get_topology_desc("small", "acme", bounds=first)
    assert (topologies.get_topology_desc("small", "acme", bounds=second) is one) is alike


def test_descriptions_that_are_not_kept_are_forgotten(acme: Acme) -> None:
    before = len(clients._origins)
    for _ in range(20):
        topologies.get_topology_desc("small", "acme", bounds={1})
    gc.collect()
    assert len(acme.asked) == 20
    assert len(clients._origins) == before


def test_two_threads_get_one_description(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(2)
    ask = manager().topology

    def ask_together(*arguments: Any) -> Any:
        together.wait(timeout=60)  # neither has put anything in the table yet
        return ask(*arguments)

    monkeypatch.setattr(manager(), "topology", ask_together)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(topologies.get_topology_desc("small", "acme")))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(acme.asked) == 2
    assert found[0] is found[1]


CLEARED = """
import dovetail as dt
from dovetail._core.runtime.devices import clients
from dovetail.experimental.topologies import get_topology_desc
from dovetail.extend import BackendInfo, hookimpl, manager

class Device:
    id = process_index = 0
    platform = device_kind = "driver's own name"
    def __init__(self):
        self.client = Client()

class Client:
    platform = "driver's own name"

class Acme:
    @hookimpl
    def dovetail_backend_info(self):
        return BackendInfo("acme", (1, 1), priority=-1)
    @hookimpl
    def dovetail_topology(self, platform, name, options):
        return [Device()]

manager().register(Acme(), "acme")
device = get_topology_desc(platform="acme").devices[0]
clients.clear_backends()
again = get_topology_desc(platform="acme").devices[0]
assert again is not device
for each in (device, again):
    assert clients.platform_of(each) == "acme"
    try:
        dt.device_put(1.0, each)
    except dt.errors.BackendUnavailableError as error:
        assert "is only compiled for" in str(error), error
"""


def test_devices_from_before_clear_backends_are_still_only_compiled_for() -> None:
    subprocess.run([sys.executable, "-c", CLEARED], check=True, timeout=300)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "name": (
        lambda: topologies.get_topology_desc("tiny", "acme"),
        ValueError,
        "no Acme 'tiny'; there are small, large",
    ),
    "no string": (
        lambda: topologies.get_topology_desc(3, "acme"),  # type: ignore[arg-type]
        TypeError,
        "topology_name must be a string, got 3",
    ),
    "no platform": (
        lambda: topologies.get_topology_desc("small", "abacus"),
        BackendUnavailableError,
        "unknown platform 'abacus'",
    ),
    "default platform": (
        lambda: topologies.get_topology_desc("small"),
        BackendUnavailableError,
        "platform 'cpu' .* compiles nothing ahead of time",
    ),
    "library": (
        lambda: topologies.get_topology_desc("large", "acme", library=None),
        BackendUnavailableError,
        "'acme' cannot be compiled ahead of time: the compiler of Acme is not installed",
    ),
}


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("case", WRONG)
def test_wrong_descriptions(case: str) -> None:
    call, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        call()
    assert not [failure for failure in manager().failures if failure.name == "acme"]


def _by_argument(device: Any) -> Any:
    return dt.jit(jnp.sin).lower(described(device, 4))


def _by_format(device: Any) -> Any:
    place = Format(sharding=SingleDeviceSharding(device))
    return dt.jit(jnp.sin).lower(dt.ShapeDtypeStruct((4,), np.float32, sharding=place))


def _by_option(device: Any) -> Any:
    return dt.jit(jnp.sin, device=device).lower(np.ones(4, np.float32))


def _by_default(device: Any) -> Any:
    with dt.default_device(device):
        return dt.jit(jnp.sin).lower(np.ones(4, np.float32))


def _by_uncommitted(device: Any) -> Any:
    """Arrays that are committed to no device follow."""
    function = dt.jit(lambda x, y: jnp.sin(x) + y)
    return function.lower(described(device, 4), jnp.ones(4))


WAYS = (_by_argument, _by_format, _by_option, _by_default, _by_uncommitted)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_programs_are_lowered_and_compiled_for_the_device(
    device: Any, way: Callable[[Any], Any]
) -> None:
    lowered = way(device)
    text = lowered.as_text()
    assert "stablehlo.cosine" in text, "the platform's own rule"
    assert lowered.cost_analysis()["transcendentals"] == 4
    compiled = lowered.compile()
    assert device.client.compiled == [(device,)]
    assert "HloModule" in compiled.as_text()
    assert compiled.cost_analysis()["transcendentals"] == 4, "counted where the compiler does not"
    assert compiled.memory_analysis().output_size_in_bytes >= 16
    (places, _), results = compiled.input_shardings, compiled.output_shardings
    assert {*places, results} == {SingleDeviceSharding(device)}
    assert isinstance(compiled.runtime_executable(), AcmeProgram)
    assert (
        repr(compiled._program) == f"<UnloadedProgram {compiled._program.name} for AcmeDevice(0)>"
    )


def test_equal_programs_are_compiled_once(device: Any) -> None:
    for _ in range(2):
        dt.jit(lambda x: x + 1.25).lower(described(device, 4)).compile()
    assert len(device.client.compiled) == 1


def test_large_constants_stay_on_the_host(device: Any) -> None:
    table = jnp.arange(5000.0)
    compiled = dt.jit(lambda x: x + table).lower(described(device, 5000)).compile()
    assert compiled.memory_analysis().argument_size_in_bytes == 2 * 20000


def test_the_second_device(device: Any) -> None:
    second = topologies.get_topology_desc("small", platform="acme").devices[1]
    dt.jit(lambda x: x - 1.25).lower(described(second, 4)).compile()
    assert device.client.compiled == [(second,)]


def test_a_committed_array_decides() -> None:
    there = dt.devices()[1]
    x = dt.device_put(np.ones(3, np.float32), there)
    for argument in (x, described(there, 3)):
        compiled = dt.jit(jnp.cos).lower(argument).compile()
        assert compiled.input_shardings[0][0] is SingleDeviceSharding(there)
        np.testing.assert_array_equal(compiled(x), np.cos(np.ones(3, np.float32)))


def test_memory_that_does_not_suffice(device: Any) -> None:
    with pytest.raises(JaxRuntimeError, match="RESOURCE_EXHAUSTED") as caught:
        dt.jit(jnp.sin).lower(described(device, 100000)).compile()
    assert isinstance(caught.value, MemoryError)
    assert "program jit_sin needs more memory than AcmeDevice(0) has" in str(caught.value)
    assert "compiling sin, at test_topologies.py" in str(caught.value)


def _compiled(device: Any) -> Any:
    return dt.jit(jnp.sin).lower(described(device, 4)).compile()


def _eagerly(device: Any, function: Callable[[], Any]) -> Any:
    with dt.default_device(device):
        return function()


X = np.ones(4, np.float32)

USES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "call": (lambda d: _compiled(d)(X), "the compiled program of sin cannot be called; look at"),
    "method": (lambda d: _compiled(d).call(X), "compiled program of sin cannot be called"),
    "serialize": (
        lambda d: serialize_executable.serialize(_compiled(d)),
        "cannot be written down for another process; compile and serialize it where the hardware",
    ),
    "device_put": (
        lambda d: dt.device_put(X, d),
        "no data can be placed on it; describe arguments by dovetail.ShapeDtypeStruct",
    ),
    "move": (lambda d: dt.device_put(jnp.ones(3), d), "no data can be placed on it"),
    "jit": (lambda d: dt.jit(jnp.sin, device=d)(X), r"sin cannot run on it; call jit\(sin\).lower"),
    "primitive": (
        lambda d: _eagerly(d, lambda: dt.lax.add(1.0, 2.0)),
        "add cannot be computed on it; use a device of this process",
    ),
    "function": (lambda d: _eagerly(d, lambda: jnp.cos(1.0)), "cos cannot run on it"),
    "creation": (lambda d: _eagerly(d, lambda: jnp.ones(3)), "no data can be placed on it"),
    "numpy": (lambda d: _eagerly(d, lambda: jnp.asarray(X)), "no data can be placed on it"),
    "pickle": (
        lambda d: pickle.dumps(SingleDeviceSharding(d)),
        "its shardings cannot be pickled",
    ),
}


@pytest.mark.parametrize("case", USES)
def test_the_devices_cannot_be_used(device: Any, case: str) -> None:
    use, message = USES[case]
    with pytest.raises(BackendUnavailableError) as caught:
        use(device)
    text = str(caught.value)
    assert text.startswith("AcmeDevice(0) of the topology 'small' is only compiled for, so ")
    assert re.search(message, text), text
    assert "\n" not in text


def test_arguments_for_different_devices(device: Any) -> None:
    other = topologies.get_topology_desc("large", platform="acme").devices[0]

    def add(a: Any, b: Any) -> Any:
        return a + b["key"]

    for b in (described(other, 4), dt.device_put(X, dt.devices()[0])):
        with pytest.raises(DeviceMismatchError) as caught:
            dt.jit(add).lower(described(device, 4), {"key": b})
        text = str(caught.value)
        assert "argument a of add (float32[4]) is on AcmeDevice(0) of the topology 'small'" in text
        assert "argument b['key'] of add (float32[4]) is on " in text
        assert "Give all of them shardings on one device" in text


def test_a_platform_that_is_not_here(acme: Acme) -> None:
    lowered = dt.jit(jnp.sin).lower(X, lowering_platforms=("acme",))
    with pytest.raises(
        BackendUnavailableError, match=r"there is no board\.\n(.|\n)*get_topology_desc"
    ):
        lowered.compile()


def test_a_sharding_of_a_description_is_one() -> None:
    device = dt.devices()[0]
    with pytest.raises(TypeError, match=r"sharding must be a sharding, such as dovetail\.sharding"):
        dt.ShapeDtypeStruct((3,), np.float32, sharding=device)
    struct = dt.ShapeDtypeStruct((3,), np.float32, sharding=SingleDeviceSharding(device))
    assert struct.update(sharding=None) == dt.ShapeDtypeStruct((3,), np.float32)


def test_a_wrapper_sees_programs_that_are_not_loaded(device: Any) -> None:
    seen: list[bool] = []

    class Watch:
        @hookimpl(wrapper=True)
        def dovetail_compile(self, request: CompileRequest) -> Any:
            seen.append(request.load)
            return (yield)

    manager().register(Watch(), "watch")
    try:
        with config.enable_compilation_cache(False):
            dt.jit(lambda x: x + 7.25).lower(described(device, 4)).compile()
            dt.jit(lambda x: x + 7.25).lower(X).compile()
    finally:
        manager().unregister("watch")
    assert seen == [False, True]
