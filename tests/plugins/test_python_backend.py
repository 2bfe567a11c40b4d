"""Backends written in Python: the example, `Fallback`, and what core says of broken ones."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import config, lax
from dovetail._core.plugins.doctor import examine
from dovetail._core.plugins.manager import PluginManager
from dovetail._core.plugins.new_backend import new_backend
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.plugin_buffers import PluginBuffer
from dovetail.dlpack import from_dlpack
from dovetail.errors import (
    BackendUnavailableError,
    DeletedArrayError,
    DeviceMismatchError,
    MissingRuleError,
)
from dovetail.extend import BackendInfo, Fallback, Primitive, hookimpl, manager

EXAMPLE = Path(__file__).parents[2] / "examples" / "backend-numpy"


@pytest.fixture(scope="module")
def example():
    """The modules of the example's distribution."""
    sys.path.insert(0, str(EXAMPLE / "src"))
    import dovetail_backend_numpy.plugin as plugin
    import dovetail_backend_numpy.runtime as runtime

    yield plugin, runtime
    sys.path.remove(str(EXAMPLE / "src"))
    for name in [n for n in sys.modules if n.startswith("dovetail_backend_numpy")]:
        del sys.modules[name]


@pytest.fixture
def register():
    """Register a backend for one test, and forget its client afterwards."""
    names = []

    def add(plugin, platform):
        name = f"backend of the test {len(names)}"
        manager().register(plugin, name)
        names.append((name, platform))
        return platform

    yield add
    for name, platform in names:
        manager().unregister(name)
        clients._clients.pop(platform, None)
        clients._failures.pop(platform, None)
    dt.clear_caches()


def backend(platform, client, programs="jaxpr"):
    """A plug-in around a client."""

    class Plugin:
        @hookimpl
        def dovetail_backend_info(self):
            return BackendInfo(platform, api=(1, 1), priority=-1, programs=programs)

        @hookimpl
        def dovetail_make_client(self, platform, options):
            return client

    return Plugin()


@pytest.fixture
def device(example, register):
    register(example[0], "numpy")
    return dt.devices("numpy")[0]


@pytest.fixture
def devices(example, register):
    """Two devices of a client, on a platform of their own."""
    client = example[1].Client({"num_devices": 2})
    register(backend("pair", client), "pair")
    return dt.devices("pair")


def test_each_device_has_programs_of_its_own(example, register):
    class Recording(example[1].Client):
        def compile(self, request):
            compiled_for.append(list(request.devices))
            return super().compile(request)

    compiled_for = []
    client = Recording({"num_devices": 2})
    register(backend("recording", client), "recording")
    function = dt.jit(lambda x: x * 3 - 1)
    both = dt.devices("recording")
    for device in both:
        assert function(dt.device_put(np.float32(2), device)).device is device
    assert compiled_for == [[device] for device in both]


def test_transfer_guards(devices, caplog):
    first, second = devices
    x = dt.device_put(np.arange(3.0), first)
    calls = {
        "host-to-device": lambda: x + np.ones(3, np.float32),
        "device-to-device": lambda: dt.device_put(x, second),
        "device-to-host": lambda: np.asarray(x + x),
    }
    for direction, call in calls.items():
        option = config.option(f"transfer_guard_{direction.replace('-', '_')}")
        with option("disallow_explicit"):
            with pytest.raises(RuntimeError, match=f"Disallowed {direction} transfer") as caught:
                call()
            assert "dovetail.device_put" in caught.value.__notes__[0]
        caplog.clear()
        with option("log_explicit"):
            call()
        assert [record.getMessage()[: len(direction)] for record in caplog.records] == [direction]
        with option("allow"):
            call()
    with dt.transfer_guard("disallow"):
        assert dt.device_get(dt.device_put(x, second)).tolist() == [0, 1, 2]
        with pytest.raises(RuntimeError, match="Disallowed device-to-host"):
            str(x + x)


def test_options_for_clients():
    text = "memory_fraction:0.5;preallocate:false;count:3;name:a b"
    with config.option("pjrt_client_create_options")(text):
        expected = {"memory_fraction": 0.5, "preallocate": False, "count": 3, "name": "a b"}
        assert clients._client_options("optioned") == expected
        assert clients._client_options("cuda") == {**expected, "visible_devices": "all"}
        assert clients._client_options("cpu").keys().isdisjoint(expected)
    assert clients._client_options("optioned") == {}
    for wrong in ("memory_fraction", ":1", "a=1"):
        with pytest.raises(ValueError, match="pjrt_client_create_options"):
            config.update("pjrt_client_create_options", wrong)


def test_the_example_is_what_new_backend_writes(tmp_path):
    written = new_backend("numpy", tmp_path)
    own = {path.name: path.read_text() for path in EXAMPLE.rglob("*.py")}
    made = {path.name: path.read_text() for path in written if path.suffix == ".py"}
    assert own.keys() == made.keys()
    assert own["runtime.py"] == made["runtime.py"]
    assert sum(map(len, map(str.splitlines, own.values()))) <= 400


PROGRAMS = {
    "arithmetic": lambda x: x * 2 + jnp.sin(x),
    "product": lambda x: jnp.dot(x, x) * jnp.outer(x, x),
    "gradient": dt.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)),
    "hessian": dt.hessian(lambda x: jnp.sum(x**3)),
    "batch": dt.vmap(lambda a: lax.while_loop(lambda c: c < 5, lambda c: c + a + 1, a)),
    "scan": lambda x: lax.scan(lambda c, a: (c + a, c * a), 0.0, x),
    "branches": lambda x: lax.cond(x[0] > 0, jnp.cos, jnp.exp, x),
    "linear algebra": lambda x: jnp.linalg.inv(jnp.diag(x + 2)),
    "random": lambda x: dt.random.normal(dt.random.key(0), (3,)) + x[:3],
    "keys": lambda x: dt.random.split(dt.random.key(3)),
    "nothing": lambda x: (),
    "constants": lambda x: (x, np.arange(3), 4),
    "callback": lambda x: dt.pure_callback(lambda y: np.asarray(y) * 2, x, x),
    "a platform's branch": lambda x: lax.platform_dependent(x, cpu=lambda x: x, numpy=lambda x: x),
    "token": lambda x: lax.optimization_barrier((x, lax.create_token()))[0],
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("compiled", [True, False], ids=["jit", "eager"])
def test_programs(device, name, compiled):
    function = dt.jit(PROGRAMS[name]) if compiled else PROGRAMS[name]
    x = np.linspace(0.25, 2, 4, dtype=np.float32)
    got = function(dt.device_put(x, device))
    for leaf in dt.tree.leaves(got):
        if isinstance(leaf, dt.Array) and name not in ("random", "keys"):
            assert leaf.devices() == {device}
    for a, b in zip(dt.tree.leaves(got), dt.tree.leaves(function(x)), strict=True):
        if hasattr(a, "dtype") and dt.dtypes.issubdtype(a.dtype, dt.dtypes.prng_key):
            a, b = dt.random.key_data(a), dt.random.key_data(b)
        np.testing.assert_allclose(a, b, rtol=2e-6)


def test_platform_dependent_takes_the_branch_of_the_platform(device):
    x = dt.device_put(1.0, device)

    def function(x):
        return lax.platform_dependent(x, numpy=lambda x: x + 1, default=lambda x: x + 2)

    assert dt.jit(function)(x) == 2
    assert dt.jit(function)(1.0) == 3


def test_donation(device):
    x = dt.device_put(np.ones(3, np.float32), device)
    kept = dt.device_put(np.ones(3, np.float32), device)
    step = dt.jit(lambda x, y: (x + y, y), donate_argnums=0)
    first, second = step(x, kept)
    assert x.is_deleted()
    with pytest.raises(DeletedArrayError, match="donated to"):
        x + 1
    assert first.tolist() == [2, 2, 2]
    assert second.tolist() == kept.tolist() == [1, 1, 1]


@pytest.mark.parametrize("donated", [0, 1])
@pytest.mark.parametrize("platform", ["numpy", "cpu"])
def test_memory_that_is_given_twice_is_not_donated(device, platform, donated):
    """XLA refuses such a call and leaves both arrays alone, and so does a backend in Python."""
    place = dt.devices(platform)[0]
    with dt.default_device(place):
        x = jnp.arange(3.0)
    y = dt.device_put(x, place)
    assert x is not y
    add = dt.jit(lambda x, y: x + y, donate_argnums=donated)
    for pair in ((y, y), (x, y), (y, x)):
        with pytest.raises(dt.errors.JaxRuntimeError, match="or two that share memory"):
            add(*pair)
        assert [a.tolist() for a in pair] == [[0, 1, 2]] * 2
    kept = dt.device_put(np.ones(3, np.float32), place)
    y.delete()
    for pair in ((kept, y), (y, kept)):
        with pytest.raises(DeletedArrayError):
            add(*pair)
    assert kept.tolist() == [1, 1, 1], "nothing is given away before all arguments are known"


def test_results_that_are_arguments(example, register):
    """A backend may give a buffer back: what has it is deleted together, and donated once."""
    client = example[1].Client({})

    class Program:
        def execute(self, arguments):
            return [arguments[0], arguments[0]]

    client.compile = lambda request: Program()
    register(backend("mirror", client), "mirror")
    place = dt.devices("mirror")[0]

    def made(donated):
        x = dt.device_put(np.ones(3, np.float32), place)
        return [x, *dt.jit(lambda x: (x + 1, x * 2), donate_argnums=donated)(x)]

    for number in range(3):
        arrays = made(())
        arrays[number].delete()
        assert [a.is_deleted() for a in arrays] == [True] * 3
    arrays = made(())
    with pytest.raises(dt.errors.JaxRuntimeError, match="or two that share memory"):
        dt.jit(lambda x, y: (x, y), donate_argnums=0)(arrays[0], arrays[1])
    gone, *results = made(0)
    assert gone.is_deleted()
    assert [a.tolist() for a in results] == [[1, 1, 1]] * 2


def test_the_life_of_a_buffer(device):
    value = np.arange(4, dtype=np.int32)
    x = dt.device_put(value, device)
    value[0] = 9
    assert x.tolist() == [0, 1, 2, 3]
    assert x.is_ready()
    assert x.on_device_size_in_bytes() == 16
    assert not np.asarray(x).flags.writeable
    assert any(a is not x and a.tolist() == x.tolist() for a in dt.live_arrays("numpy"))
    copied = x.copy()
    x.delete()
    with pytest.raises(DeletedArrayError):
        x.block_until_ready()
    assert copied.block_until_ready().tolist() == [0, 1, 2, 3]
    assert pickle.loads(pickle.dumps(copied)).tolist() == [0, 1, 2, 3]
    assert np.from_dlpack(copied).tolist() == [0, 1, 2, 3]
    with pytest.raises(BufferError, match="does not reach the host without a copy"):
        copied.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="have no address"):
        copied.unsafe_buffer_pointer()


def test_threads_make_buffers_while_another_counts_them(device):
    x = dt.device_put(1.0, device)
    done = threading.Event()

    def make():
        kept = []
        while not done.is_set():
            kept[:] = [PluginBuffer([object()], None, x.sharding, False) for _ in range(50)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=make) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            assert dt.live_arrays("numpy")
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert len(dt.live_arrays("numpy")) < 50, "the threads' buffers are forgotten"


NARROW = ["bool", "int8", "uint16", "int32", "float16", "float32", "complex64"]
OF_ML_DTYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"]


@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)], ids=str)
@pytest.mark.parametrize("dtype", [*NARROW, *OF_ML_DTYPES])
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_export_of_every_dtype(device, dtype, shape, version):
    """By the protocol, as another library would read it."""
    value = np.ones(shape, jnp.dtype(dtype))
    x = dt.device_put(value, device)

    class Exported:
        def __dlpack_device__(self):
            return x.__dlpack_device__()

        def __dlpack__(self, **options):
            return x.__dlpack__(max_version=version)

    got = from_dlpack(Exported())
    assert (got.dtype, got.shape) == (value.dtype, shape)
    np.testing.assert_array_equal(np.asarray(got), value)
    if dtype in NARROW:
        own = np.from_dlpack(x)
        np.testing.assert_array_equal(own, value)
        assert not np.shares_memory(own, np.asarray(x))


WITHOUT_CPU = """
import json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import dovetail_backend_numpy.plugin as plugin
import dovetail.numpy as jnp
from dovetail.dlpack import from_dlpack
from dovetail.extend import manager
manager().register(plugin, "the example")
x = jnp.arange(3.0)
value = np.arange(3, dtype="float32")
try:
    from_dlpack(value, copy=False)
except BufferError as error:
    shared = str(error)
y = from_dlpack(value)
found = {
    "exported": np.from_dlpack(x).tolist(),
    "imported": y.tolist(),
    "both": from_dlpack(x).tolist(),
    "place": [y.platform(), y.committed],
    "shared": shared,
}
print(json.dumps(found))
"""


def test_exchange_where_no_platform_has_the_host_for_a_device(answer_of):
    """DLPack knows arrays of such a platform as data on the host."""
    assert answer_of(WITHOUT_CPU, str(EXAMPLE / "src"), DOVETAIL_PLATFORMS="numpy") == {
        **{name: [0, 1, 2] for name in ("exported", "imported", "both")},
        "place": ["numpy", False],
        "shared": "from_dlpack with copy=False: data on the host does not reach numpy:0 without a "
        "copy",
    }


def test_what_shares_memory_is_deleted_together(device):
    with dt.default_device(device):
        x = jnp.ones(2) + 1
    same = dt.device_put(x, device)
    assert same.tolist() == [2, 2]
    x.delete()
    assert x.is_deleted()
    assert same.is_deleted()
    uses = [np.asarray, lambda x: x + 1, dt.jit(lambda x: x), dt.block_until_ready]
    for use in (*uses, lambda x: x.is_ready(), lambda x: x.on_device_size_in_bytes()):
        with pytest.raises(DeletedArrayError):
            use(same)


def test_devices_and_sharding(devices):
    first, second = devices
    x = dt.device_put(1.5, first)
    y = dt.device_put(x, second)
    assert (y.devices(), float(y)) == ({second}, 1.5)
    with pytest.raises(DeviceMismatchError, match="different devices"):
        x + y
    assert dt.device_put(y, dt.devices("cpu")[0]).devices() == {dt.devices("cpu")[0]}
    kind = y.sharding.memory_kind
    assert kind == "device"
    assert y.sharding.with_memory_kind(kind) is y.sharding
    with pytest.raises(ValueError, match="no memory of kind 'pinned_host'; it has device"):
        y.sharding.with_memory_kind("pinned_host")
    assert y.format.layout.major_to_minor == ()


def test_stages(device):
    lowered = dt.jit(lambda x: x * 2, device=device).lower(np.ones(3, np.float32))
    assert "mul" in lowered.as_text()
    with pytest.raises(ValueError, match="reads equations: there is no HLO of it"):
        lowered.as_text("hlo")
    compiled = lowered.compile()
    assert "mul" in compiled.as_text()
    assert compiled(np.ones(3, np.float32)).tolist() == [2, 2, 2]
    for method in (compiled.cost_analysis, compiled.memory_analysis):
        with pytest.raises(NotImplementedError, match="its backend does not offer it"):
            method()
    for look in (compiled.report, compiled.memory):
        with pytest.raises(ValueError, match="there is nothing optimised to report on"):
            look()
    with pytest.raises(ValueError, match="the backend of numpy reads equations"):
        dt.jit(jnp.sin).trace(1.0).lower(lowering_platforms=("cpu", "numpy"))


def test_no_program_is_exported(device):
    with pytest.raises(ValueError, match="cannot be exported for 'numpy', whose backend reads"):
        dt.export.export(dt.jit(lambda x: x), platforms=("numpy",))(1.0)


def test_compiler_options_reach_the_client(device):
    x = dt.device_put(1.0, device)
    with pytest.raises(ValueError, match="the numpy backend has no compiler option xla_speed"):
        dt.jit(lambda x: x + 1, compiler_options={"xla_speed": 9})(x)
    with dt.optimization_level("O0"):
        assert dt.jit(lambda x: x + 1)(x) == 2


def test_effects_happen_in_order_and_errors_arrive_as_they_are(device):
    seen = []

    def loop(x):
        def body(i, x):
            dt.debug.callback(lambda i: seen.append(int(i)), i, ordered=True)
            return x + 1

        return lax.fori_loop(0, 3, body, x)

    assert dt.jit(loop)(dt.device_put(1.0, device)) == 4
    assert seen == [0, 1, 2]

    def broken(x):
        raise KeyError("no such thing")

    with pytest.raises(KeyError, match="no such thing") as caught:
        dt.jit(lambda x: dt.pure_callback(broken, x, x))(dt.device_put(1.0, device))
    assert __file__.rpartition("/")[2] in "".join(caught.value.__notes__)


triple_p = Primitive("triple_of_a_test")
triple_p.define("abstract")(lambda x: x)
triple_p.define("lower")(
    lambda context, x: context.op("stablehlo.add", [x, x], context.avals_in[0])
)


def test_what_there_is_no_rule_for(device):
    x = dt.device_put(2.0, device)
    with pytest.raises(MissingRuleError, match="has no 'triple_of_a_test'") as caught:
        dt.jit(lambda x: lax.cond(x > 0, triple_p.bind, lambda x: x, x))(x)
    assert "NUMPY_FALLBACK=cpu" in str(caught.value)
    assert __file__.rpartition("/")[2] in caught.value.__notes__[0]


def test_fallback(example, register):
    client = example[1].Client({"fallback": "cpu"})
    register(backend("falling", client), "falling")
    x = dt.device_put(2.0, dt.devices("falling")[0])
    function = dt.jit(lambda x: lax.cond(x > 0, triple_p.bind, lambda x: x, x))
    with pytest.warns(RuntimeWarning, match=r"has no triple_of_a_test \(used at .*test_python"):
        first = function(x)
    assert first.devices() == x.devices()
    assert [float(first), float(function(x))] == [4, 4], "the second time without a warning"
    assert client.fallback.counts == {"triple_of_a_test": 2}


@pytest.fixture
def elsewhere(example, register, monkeypatch):
    """A device all of whose equations the CPU computes."""
    client = example[1].Client({"fallback": "cpu"})
    register(backend("lazy", client), "lazy")
    monkeypatch.setattr(example[1].Executable, "compute", lambda own, *eqn: own.fallback(*eqn))
    monkeypatch.setattr("dovetail._core.runtime.calls.fallback.warn", lambda *args: None)
    return dt.devices("lazy")[0]


KEYS = {
    "keys of a batch": lambda x: dt.vmap(dt.random.uniform)(dt.random.split(dt.random.key(1), 3)),
    "keys in a loop": lambda x: lax.fori_loop(
        0, 2, lambda i, key: dt.random.fold_in(key, i), dt.random.key(2)
    ),
    "keys of another kind": lambda x: dt.random.bits(dt.random.key(4, impl="rbg"), (2,)),
    "moved keys": lambda x: jnp.stack([dt.random.split(dt.random.key(5), 3)[::-1][1]] * 2),
}


@pytest.mark.parametrize("name", [*PROGRAMS, *KEYS])
def test_fallback_computes_every_program(elsewhere, name):
    function = {**PROGRAMS, **KEYS}[name]
    x = np.linspace(0.25, 2, 4, dtype=np.float32)
    got = dt.jit(function)(dt.device_put(x, elsewhere))
    for a, b in zip(dt.tree.leaves(got), dt.tree.leaves(function(x)), strict=True):
        if hasattr(a, "dtype") and dt.dtypes.issubdtype(a.dtype, dt.dtypes.prng_key):
            assert a.dtype == b.dtype
            a, b = dt.random.key_data(a), dt.random.key_data(b)
        np.testing.assert_allclose(a, b, rtol=2e-6)


WIDE = {
    "product": lambda x: x * x > 1e200,
    "constants": lambda x: jnp.sin(x) * 1e300 + 2**40,
    "integers": lambda x: lax.convert_element_type(x, "int64") // 3,
    "nothing given": lambda x: jnp.arange(3) * 2**40,
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, x: x * 1e30, x),
    "narrow numbers": lambda x: lax.convert_element_type(x, "float32") + np.float32(1),
    "argmax": lambda x: jnp.argmax(jnp.stack([x, x * 2])),
    "random": lambda x: dt.random.normal(dt.random.key(0), (2,), "float64") + x,
    "no reference": lambda x: triple_p.bind(x),
}


@pytest.mark.parametrize("name", WIDE)
def test_fallback_computes_64_bits_where_they_are_off(elsewhere, name):
    """Programs that were compiled where 64-bit types are on are called where they are not."""
    with dt.enable_x64(True):
        compiled = dt.jit(WIDE[name], device=elsewhere).lower(np.float64(1e20)).compile()
        x = dt.device_put(np.float64(1e20), elsewhere)
        want = np.asarray(dt.jit(WIDE[name])(np.float64(1e20)))
        inside = np.asarray(compiled(x))
    assert not dt.config.enable_x64
    outside = np.asarray(compiled(x))
    for got in (inside, outside):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-14)


CALLS = {
    "two operands": (lax.mul_p, [np.float64(1e200), np.float64(1e100)], {}, np.float64(1e300)),
    "integers": (lax.neg_p, [np.array([2**40])], {}, np.array([-(2**40)])),
    "no operands": (
        lax.iota_p,
        [],
        {"dtype": np.dtype("int64"), "shape": (3,), "dimension": 0, "sharding": None},
        np.arange(3),
    ),
    "narrow": (lax.neg_p, [np.float32(1)], {}, np.float32(-1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_fallback_keeps_dtypes_outside_of_evaluate(name):
    primitive, operands, params, want = CALLS[name]
    with pytest.warns(RuntimeWarning, match="is computed on 'cpu' instead"):
        got = Fallback("acme", "cpu")(primitive, operands, params)
    assert (got.dtype, got.tolist()) == (want.dtype, want.tolist())


def test_a_fallback_to_itself():
    with pytest.raises(ValueError, match="cannot compute what it lacks itself"):
        Fallback("acme", "acme")


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"speed": 1}, TypeError, "has no option speed; it has fallback, num_devices"),
        ({"num_devices": True}, TypeError, "num_devices must be an int, got True"),
        ({"num_devices": 0}, ValueError, "num_devices must be positive, got 0"),
        ({"fallback": 3}, TypeError, "fallback must be a platform's name, got 3"),
    ],
)
def test_the_example_checks_its_options(example, options, kind, text):
    with pytest.raises(kind, match=text):
        example[1].Client(options)


class Wrong:
    """The wrong answers of a backend's author."""

    @staticmethod
    def executable(client, request):
        return "no executable"

    @staticmethod
    def results(client, request):
        made = client.compile(request)
        made.execute = lambda arguments: []
        return made

    @staticmethod
    def buffers(client, request):
        made = client.compile(request)
        made.execute = lambda arguments: [np.ones(3)]
        return made

    @staticmethod
    def values(client, request):
        made = client.compile(request)
        execute = made.execute

        def wrong(arguments):
            (result,) = execute(arguments)
            result.value = result.value.astype(np.float64)
            return [result]

        made.execute = wrong
        return made


WRONG = {
    "executable": "compiled jit__lambda_ to 'no executable', which is no Executable: it lacks exec",
    "results": "has 1 results, and Executable.execute gave 0",
    "buffers": "which is no Buffer: it lacks block_until_ready, delete, is_ready, to_numpy",
    "values": "gave float64[3] for an array of float32[3]",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_backend_s_wrong_answers(example, register, name):
    plain, client = example[1].Client({}), example[1].Client({})
    client.compile = lambda request: getattr(Wrong, name)(plain, request)
    register(backend("wrong", client), "wrong")
    x = dt.device_put(np.ones(3, np.float32), dt.devices("wrong")[0])
    with pytest.raises(TypeError) as caught:
        np.asarray(dt.jit(lambda x: x + 1)(x))
    assert WRONG[name] in str(caught.value)


GIVING = {
    "Client.put": lambda first, second, x: dt.device_put(np.ones(3), first),
    "Client.copy": lambda first, second, x: x.copy(),
    "Client.copy to another device": lambda first, second, x: dt.device_put(x, second),
    "Executable.execute": lambda first, second, x: dt.jit(lambda x: x + 1)(x),
}


@pytest.mark.parametrize("name", GIVING)
def test_what_a_backend_gives_is_a_buffer(example, register, name):
    client = example[1].Client({"num_devices": 2})
    register(backend("pair", client), "pair")
    first, second = dt.devices("pair")
    x = dt.device_put(np.ones(3, np.float32), first)

    class Program:
        def execute(self, arguments):
            return ["no buffer"]

    client.put = client.copy = lambda value, device: "no buffer"
    client.compile = lambda request: Program()
    with pytest.raises(TypeError) as caught:
        GIVING[name](first, second, x)
    method = " ".join(name.split()[:1])
    assert f"{method} of the platform 'pair' gave 'no buffer', which is no Buffer: it lacks" in (
        str(caught.value)
    )


def test_whether_a_buffer_is_one_is_seen_without_waiting_for_it(example, register):
    asked = []

    class Lazy(example[1].Buffer):
        @property
        def nbytes(self):
            asked.append(self)
            return super().nbytes

    client = example[1].Client({})
    client.put = client.copy = lambda value, device: Lazy(value)
    register(backend("waiting", client), "waiting")
    x = dt.device_put(np.ones(3, np.float32), dt.devices("waiting")[0])
    assert asked == []
    assert x.nbytes == x.on_device_size_in_bytes() == 12
    assert len(asked) == 1


def test_a_client_that_reads_stablehlo(example, register):
    """A backend with a compiler of its own gets MLIR bytecode, and options by name."""
    requests = []

    class Client(example[1].Client):
        def compile(self, request):
            requests.append(request)

            class Program:
                def execute(self, arguments):
                    return [example[1].Buffer(np.float32(7))]

            return Program()

    register(backend("reader", Client({}), programs="stablehlo"), "reader")
    x = dt.device_put(1.0, dt.devices("reader")[0])
    assert float(dt.jit(lambda x: x + 1, compiler_options={"speed": "high"})(x)) == 7
    (request,) = requests
    assert request.module[:4] == b"ML\xefR"
    assert request.jaxpr is None
    assert request.options == {"speed": "high"}
    assert request.devices == tuple(dt.devices("reader"))


@pytest.mark.parametrize("kind", ["equations", "pjrt"])
def test_new_backend(tmp_path, kind):
    words = ["new-backend", "acme_2", "--kind", kind, "--folder", str(tmp_path)]
    command = [sys.executable, "-m", "dovetail", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"pip install {tmp_path}/dovetail-backend-acme_2" in done.stdout
    sources = list((tmp_path / "dovetail-backend-acme_2").rglob("*.py"))
    for path in sources:
        compile(path.read_text(), path.name, "exec")
        assert "$" not in path.read_text()
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 1
    assert "is there already: remove it" in again.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Acme", "has lower-case letters, digits and underscores"),
        ("9lives", "begins with a letter"),
        ("../x", "such as 'acme'"),
        ("", "such as 'acme'"),
        ("gpu", "'gpu' is a platform of dovetail's own"),
    ],
)
def test_names_of_new_backends(tmp_path, name, text):
    with pytest.raises(ValueError, match=text):
        new_backend(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_platform_is_never_the_default_beside_another(device):
    assert dt.default_backend() == "cpu"
    with pytest.raises(BackendUnavailableError, match=r"unknown platform 'numpi'.*Did you mean"):
        dt.devices("numpi")


def test_the_doctor_tells_what_is_broken_about_a_backend_that_is_never_the_default():
    class Broken:
        @hookimpl
        def dovetail_backend_info(self):
            return BackendInfo("broken", api=(1, 1), priority=-1)

        @hookimpl
        def dovetail_make_client(self, platform, options):
            raise OSError("the cable is loose")

    own = PluginManager(source=lambda group: ())
    own.register(Broken(), "broken")
    report = examine(own)
    (found,) = report.backends
    assert (found.state, found.phase) == ("broken", "client")
    assert report.exit_code == 1
