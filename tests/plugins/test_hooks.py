"""The hooks themselves: documented, and called as documented."""

from __future__ import annotations

import inspect
import re
from unittest.mock import Mock

import pytest

import dovetail.extend
from dovetail.core.plugins import hookspecs
from dovetail.core.plugins.manager import PluginManager
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
        "dovetail_environment",
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
        (1, 1),
        {
            "dovetail_backend_info": (),
            "dovetail_probe": ("platform",),
            "dovetail_environment": ("platform",),
            "dovetail_make_client": ("platform", "options"),
            "dovetail_lowerings": ("platform",),
            "dovetail_compile_options": ("platform", "options", "operations"),
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
