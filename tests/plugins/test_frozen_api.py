"""Plug-ins that were written for the first version of the plug-in API go on working.

The texts below stay as they are when the API grows: they are what authors have published.
"""

from __future__ import annotations

import pytest

from dovetail.extend import PLUGIN_API

# A complete backend of version 1.0. Hooks name only the arguments that they need.
BACKEND_1_0 = '''
"""The backend of Acme's boards, for plug-in API 1.0."""

from collections.abc import Mapping

from dovetail.extend import BackendInfo, LoweringTable, hookimpl

table = LoweringTable()
compiled = []


@table.rule("sin")
def sin(context, x, **parameters):
    return context.op("add", (x, x), context.avals_out[0])


@table.rule("cos")
def cos(context, x, **parameters):
    return NotImplemented


@hookimpl
def dovetail_backend_info():
    return BackendInfo(
        platform="acme",
        api=(1, 0),
        priority=150,
        aliases=("board",),
        description="Acme boards",
        capabilities=frozenset({"complex", "float64", "donation"}),
    )


@hookimpl
def dovetail_probe():
    return ""


@hookimpl
def dovetail_environment():
    return {"ACME_LOG": "quiet"}


@hookimpl
def dovetail_make_client(options: Mapping[str, object]):
    import os

    from jaxlib import xla_client

    if options:
        raise TypeError(f"the acme backend has no options, got {sorted(options)}")
    assert os.environ["ACME_LOG"] == "quiet"
    return xla_client.make_cpu_client(num_devices=2)


@hookimpl
def dovetail_lowerings():
    return table


@hookimpl
def dovetail_compile_options(options):
    return {"xla_cpu_enable_fast_math": False}


@hookimpl
def dovetail_compile(request):
    compiled.append((request.platform, request.name, bool(request.host_callbacks)))
    return request.client.compile_and_load(request.module, request.devices, request.options)
'''

EXTENSION_1_0 = '''
"""Array methods and a look at every compilation, for plug-in API 1.0."""

from dovetail.extend import ArrayMethods, Primitive, hookimpl

seen = []
twice_p = Primitive("acme_twice")
twice_p.define("abstract", lambda x: x)
twice_p.define("lower", lambda context, x: context.op("add", (x, x), context.avals_out[0]))


@hookimpl
def dovetail_array_methods():
    return ArrayMethods(methods={"twice": lambda x: x + x}, properties={"half": lambda x: x / 2})


@hookimpl
def dovetail_primitives():
    return [twice_p]


@hookimpl(wrapper=True)
def dovetail_compile(request):
    executable = yield
    seen.append(request.name)
    return executable
'''

NEWER = {"future": (PLUGIN_API[0] + 1, 0), "later": (PLUGIN_API[0], PLUGIN_API[1] + 1)}

NEWER_BACKEND = """
from dovetail.extend import BackendInfo, hookimpl

@hookimpl
def dovetail_backend_info():
    return BackendInfo("{platform}", ({major}, {minor}), priority=900)

@hookimpl
def dovetail_make_client():
    raise AssertionError("asked for a client")
"""

PROGRAM = """
import json, sys, warnings
sys.path.insert(0, sys.argv[1])
import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.plugins.manager import manager

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    default = dt.default_backend()
board = dt.devices("board")[1]
x = dt.device_put(jnp.array([1.0, 2.0]), board)
donated = dt.device_put(jnp.ones(100), board)
dt.jit(lambda x: x + 1, donate_argnums=0)(donated)
found = {
    "default": default,
    "warnings": [str(w.message) for w in caught],
    "own rule": lax.sin(x).tolist(),
    "core's rule": float(lax.cos(dt.device_put(0.0, board))),
    "gradient": dt.jit(dt.grad(lambda x: (x ** 3).sum()))(x).tolist(),
    "batched": dt.vmap(lambda x: x * 2)(x).tolist(),
    "method": x.twice().tolist(),
    "property": x.half.tolist(),
    "primitive": [p.bind(x).tolist() for p in manager().primitives() if p.name == "acme_twice"],
    "donated": donated.is_deleted(),
    "stayed": (x + 1).device is board,
    "cpu": float(dt.jit(lax.sin)(dt.device_put(0.0, dt.devices("cpu")[0]))),
}
import acme_1_0, acme_extension_1_0
found["compiled"] = sorted({platform for platform, _, _ in acme_1_0.compiled})
found["seen"] = len(acme_extension_1_0.seen) > len(acme_1_0.compiled) > 3
for name in ("future", "later"):
    try:
        dt.devices(name)
    except RuntimeError as error:
        found[name] = str(error)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(answer_of, installer, tmp_path_factory):
    """What a process found out with all these plug-ins installed."""
    install = installer(tmp_path_factory.mktemp("site"))
    install("acme-boards", {"acme": "acme_1_0"}, {"acme_1_0": BACKEND_1_0})
    name = "acme_extension_1_0"
    install("acme-methods", {"acme": name}, {name: EXTENSION_1_0}, group="dovetail.extensions")
    for platform, (major, minor) in NEWER.items():
        text = NEWER_BACKEND.format(platform=platform, major=major, minor=minor)
        install(f"acme-{platform}", {platform: f"acme_{platform}"}, {f"acme_{platform}": text})
    # A program out of the cache on disk passes no hook.
    return answer_of(PROGRAM, str(install.folder), DOVETAIL_ENABLE_COMPILATION_CACHE="0")


def test_a_backend_and_an_extension_of_version_1_0_work(found):
    assert found["default"] == "acme"
    assert found["own rule"] == [2.0, 4.0]
    assert found["core's rule"] == 1.0
    assert found["gradient"] == [3.0, 12.0]
    assert found["batched"] == found["method"] == [2.0, 4.0]
    assert found["property"] == [0.5, 1.0]
    assert found["primitive"] == [[2.0, 4.0]]
    assert found["donated"] is True
    assert found["stayed"] is True
    assert found["compiled"] == ["acme"], "no program of another platform"
    assert found["seen"] is True, "programs of every platform"


def test_a_backend_of_a_newer_version_is_refused_in_one_sentence(found):
    here = ".".join(map(str, PLUGIN_API))
    for platform, version in NEWER.items():
        wanted = ".".join(map(str, version))
        sentence = f"it was written for plug-in API {wanted} and this dovetail has {here}: update "
        assert sentence + "dovetail" in found[platform].splitlines()[0]
        (warning,) = [text for text in found["warnings"] if f"plug-in {platform} " in text]
        assert sentence in warning


def test_the_cpu_goes_on_working(found):
    assert found["cpu"] == 0.0
