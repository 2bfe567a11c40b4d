"""The hooks themselves: documented, and called as documented."""

from __future__ import annotations

import inspect
import re
import threading
from unittest.mock import Mock

import pytest

import dovetail.extend
from dovetail._core.plugins import hookspecs
from dovetail._core.plugins.manager import PluginManager
from dovetail.extend import (
    PLUGIN_API,
    ArrayMethods,
    BackendInfo,
    CompileRequest,
    LoweringTable,
    hookimpl,
)

HOOKS = {name: hook for name, hook in vars(hookspecs).items() if name.startswith("dovetail_")}


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_documents_its_arguments(name):
    hook = HOOKS[name]
    text = inspect.getdoc(hook) or ""
    first = text.partition("\n")[0]
    assert first.endswith("."), "one sentence first"
    assert "Returns:" in text
    block = text.partition("Args:")[2].partition("Returns:")[0]
    documented = re.findall(r"^    (\w+): ", block, re.MULTILINE)
    assert documented == list(inspect.signature(hook).parameters)
    assert inspect.signature(hook).return_annotation is not inspect.Signature.empty


def test_the_hooks_of_the_design_are_all_there():
    assert set(HOOKS) == {
        "dovetail_array_methods",
        "dovetail_backend_info",
        "dovetail_compile",
        "dovetail_compile_options",
        "dovetail_host_functions",
        "dovetail_environment",
        "dovetail_export",
        "dovetail_exporter_info",
        "dovetail_lowerings",
        "dovetail_make_client",
        "dovetail_primitives",
        "dovetail_probe",
        "dovetail_topology",
    }


def test_the_api_version_changes_with_the_hooks():
    """A hook or argument that is added raises the minor number; one that goes, the major."""
    arguments = {name: tuple(inspect.signature(hook).parameters) for name, hook in HOOKS.items()}
    assert (PLUGIN_API, arguments) == (
        (1, 4),
        {
            "dovetail_backend_info": (),
            "dovetail_probe": ("platform",),
            "dovetail_environment": ("platform",),
            "dovetail_make_client": ("platform", "options", "processes"),
            "dovetail_export": ("request",),
            "dovetail_exporter_info": (),
            "dovetail_lowerings": ("platform",),
            "dovetail_compile_options": ("platform", "options", "operations", "shapes"),
            "dovetail_host_functions": ("platform",),
            "dovetail_compile": ("request",),
            "dovetail_topology": ("platform", "name", "options"),
            "dovetail_primitives": (),
            "dovetail_array_methods": (),
        },
    )


def test_what_is_promised_can_be_imported():
    for name in dovetail.extend.__all__:
        assert getattr(dovetail.extend, name) is not None


def _rule(*args, **params):
    return NotImplemented


class Extension:
    """One implementation of every hook that an extension can have."""

    def __init__(self, rules=(), options=(), primitives=()):
        self.rules, self.options, self.more = dict(rules), dict(options), list(primitives)

    @hookimpl
    def dovetail_lowerings(self, platform):
        return self.rules if platform == "acme" else None

    @hookimpl
    def dovetail_compile_options(self, platform, options):
        return self.options

    @hookimpl
    def dovetail_primitives(self):
        return self.more


class Backend(Extension):
    @hookimpl
    def dovetail_backend_info(self):
        return BackendInfo("acme", (1, 0))


@pytest.fixture
def manager():
    return PluginManager(lambda group: [])


def test_lowerings_of_the_backend_then_of_extensions(manager):
    table = LoweringTable()
    table.rule("sin")(_rule)
    own, first, second = (lambda: 1), (lambda: 2), (lambda: 3)
    manager.register(Backend({**table, "cos": own}), "backend")
    manager.register(Extension({"cos": first, "exp": first}), "extension a")
    manager.register(Extension({"exp": second}), "extension b")
    assert manager.lowerings("acme") == {"sin": _rule, "cos": first, "exp": first}
    (failure,) = manager.failures
    assert (failure.name, failure.phase) == ("extension b", "lowerings")
    assert "another extension lowers exp already" in str(failure)
    assert manager.lowerings("acme") is manager.lowerings("acme"), "asked once"


def test_lowerings_do_not_need_the_hardware():
    manager = PluginManager()
    for platform in ("cuda", "tpu"):
        assert all(callable(rule) for rule in manager.lowerings(platform).values())
    assert manager.failures == ()


def test_compile_options_of_the_user_win(manager):
    manager.register(Backend(options={"a": 1, "b": 1, "c": 1}), "backend")
    manager.register(Extension(options={"b": 2, "c": 2}), "extension")
    assert manager.compile_options("acme", {"c": 3}) == {"a": 1, "b": 2, "c": 3}


def test_primitives_in_the_order_of_names(manager):
    manager.register(Extension(primitives=["second"]), "extension b")
    manager.register(Extension(primitives=["first"]), "extension a")
    assert manager.primitives() == ("first", "second")


def test_compilation_is_answered_by_the_client(manager):
    client = Mock()
    request = CompileRequest("acme", client, b"module", ["device"], "options", (print,), "jit_f")
    assert manager.compile(request) is client.compile.return_value
    client.compile.assert_called_once_with(request)


def test_compilation_can_be_wrapped_and_replaced(manager):
    seen = []

    class Wrapper:
        @hookimpl(wrapper=True)
        def dovetail_compile(self, request):
            seen.append(request.name)
            executable = yield
            return (executable, "wrapped")

    class Compiler(Backend):
        @hookimpl
        def dovetail_compile(self, request):
            return "ours" if request.name == "jit_f" else None

    manager.register(Compiler(), "backend")
    manager.register(Wrapper(), "wrapper")
    client = Mock()
    client.compile.return_value = "default"
    assert manager.compile(CompileRequest("acme", client, b"", [], None, (), "jit_f")) == (
        "ours",
        "wrapped",
    )
    assert manager.compile(CompileRequest("acme", client, b"", [], None, (), "jit_g")) == (
        "default",
        "wrapped",
    )
    assert manager.compile(CompileRequest("cpu", client, b"", [], None, (), "jit_f")) == (
        "default",
        "wrapped",
    ), "another platform's compiler has no say"
    assert seen == ["jit_f", "jit_g", "jit_f"]


def test_an_error_of_the_compiler_is_the_caller_s(manager):
    client = Mock()
    client.compile.side_effect = ValueError("bad program")
    with pytest.raises(ValueError, match="bad program"):
        manager.compile(CompileRequest("acme", client, b"", [], None))
    assert manager.failures == ()


def test_a_table_has_one_rule_for_a_primitive():
    table = LoweringTable([{"sin": _rule}])
    with pytest.raises(ValueError, match="two lowering rules for the primitive 'sin'"):
        table.rule("sin")(_rule)
    with pytest.raises(ValueError, match="two lowering rules for the primitive 'sin'"):
        LoweringTable([{"sin": _rule}, {"sin": _rule}])
    assert repr(LoweringTable()) == "LoweringTable(empty)"
    assert (dict(table), len(table), "sin" in table) == ({"sin": _rule}, 1, True)


@pytest.mark.parametrize(
    ("value", "field"), [(BackendInfo("a", (1, 0)), "platform"), (ArrayMethods(), "methods")]
)
def test_data_is_frozen(value, field):
    with pytest.raises(AttributeError):
        setattr(value, field, None)


HOOKS_THAT_ASK = {
    # The hook of a backend, then what calls it. A probe is not among them: which devices there are
    # depends on its answer.
    "dovetail_environment": "manager().environment('acme')",
    "dovetail_make_client": "dt.devices('acme')",
    "dovetail_lowerings": "manager().lowerings('acme')",
    "dovetail_compile_options": "manager().compile_options('acme')",
    "dovetail_topology": "manager().topology('acme')",
}

ASKING = """
import faulthandler, json, sys, threading, time
import dovetail as dt
from dovetail._core.runtime.devices import clients
from dovetail.extend import BackendInfo, hookimpl, manager

faulthandler.dump_traceback_later(60, exit=True)
name, call, others = sys.argv[1:]
called = threading.Event()
asked = []

class Acme:
    @hookimpl
    def dovetail_backend_info(self):
        return BackendInfo("acme", (1, 1), priority=-1)

def hook(platform):
    called.set()
    time.sleep(0.3)  # the other thread asks now
    asked.append(dt.devices()[0].platform)
    asked.append(dt.local_device_count("cpu"))

hook.__name__ = name
setattr(Acme, name, staticmethod(hookimpl(hook)))
manager().register(Acme(), "acme")
dt.devices()
waiting = threading.Thread(target=lambda: (called.wait(), eval(others)), daemon=True)
waiting.start()
try:
    eval(call)
except dt.errors.BackendUnavailableError:
    pass  # it gives no client, and no topology
waiting.join()
print(json.dumps(asked))
"""


@pytest.mark.parametrize("others", ["clients.default_platform()", "clients.backend()"])
@pytest.mark.parametrize("name", HOOKS_THAT_ASK)
def test_a_hook_asks_for_devices_while_others_do(answer_of, name, others):
    """Two locks, taken in opposite orders, once stopped both threads."""
    platform, count = answer_of(ASKING, name, HOOKS_THAT_ASK[name], others)
    assert platform == "cpu"
    assert count >= 1


def test_a_hook_waits_for_a_program_that_another_thread_compiles(manager):
    """A program that two threads want is compiled by one of them, and the other waits."""
    client = Mock()
    client.compile.return_value = "program"
    found = []

    class Computing(Backend):
        @hookimpl
        def dovetail_compile_options(self, platform, options):
            request = CompileRequest("acme", client, b"", [], None)
            other = threading.Thread(
                target=lambda: found.append(manager.compile(request)), daemon=True
            )
            other.start()
            other.join(timeout=60)
            return {"found": len(found)}

    manager.register(Computing(), "backend")
    assert manager.compile_options("acme") == {"found": 1}
    assert found == ["program"]
