"""Options: where values come from, what is allowed, scopes, threads."""

from __future__ import annotations

import json
import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from dovetail import config
from dovetail._core.base import bindings
from dovetail._core.base import config as options
from dovetail._core.base.process_options import StartupOption
from dovetail._core.base.unavailable_options import UNAVAILABLE, Unavailable


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = dict(config.values)
    for name in before:
        if isinstance(config.option(name), StartupOption):
            # What a backend has read may be changed here, where nothing is computed.
            monkeypatch.setattr(config.option(name), "reader", None)
    yield
    for name, value in before.items():
        config.update(name, value)


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DOVETAIL_", "JAX_", "PYTEST_"))
    }
    return subprocess.run(
        [sys.executable, "-c", "from dovetail._core.base.config import config\n" + code],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class Row(NamedTuple):
    """An option: its default, another value, and that value as the environment writes it."""

    default: Any
    other: Any
    text: str


ON = Row(False, True, "1")
OFF = Row(True, False, "no")

OPTIONS: dict[str, Row] = {
    "allow_f16_reductions": OFF,
    "array_garbage_collection_guard": Row(None, "log", "log"),
    "check_static_indices": ON,
    "compilation_cache_include_metadata_in_key": ON,
    "disallow_mesh_context_manager": ON,
    "embedded_constants_max_bytes": Row(4096, 32, "32"),
    "high_dynamic_range_gumbel": ON,
    "captured_constants_report_frames": Row(0, -1, "-1"),
    "compiler_enable_remat_pass": OFF,
    "pprint_use_color": OFF,
    "captured_constants_warn_bytes": Row(2_000_000_000, -1, "-1"),
    "check_tracer_leaks": ON,
    "compilation_cache_dir": Row(None, "/elsewhere", "/elsewhere"),
    "compilation_cache_max_size": Row(1 << 30, 1_000_000, "1_000_000"),
    "cpu_collectives_implementation": Row("gloo", "mpi", "mpi"),
    "cpu_enable_async_dispatch": Row(None, False, "no"),
    "cpu_get_global_topology_timeout_minutes": Row(5, 1, "1"),
    "cpu_get_local_topology_timeout_minutes": Row(2, 1, "1"),
    "cpu_kernels": OFF,
    "cpu_retained_memory": Row(1 << 30, 0, "0"),
    "cuda_visible_devices": Row("all", "0,2", "0,2"),
    "debug_checks": OFF,
    "debug_infs": ON,
    "debug_key_reuse": ON,
    "debug": Row(0, 2, "2"),
    "debug_log_modules": Row(None, "dovetail.debug", "dovetail.debug"),
    "debug_nans": ON,
    "default_device": Row(None, "cpu", "cpu"),
    "default_matmul_precision": Row(None, "high", "high"),
    "default_prng_impl": Row("threefry2x32", "rbg", "rbg"),
    "direct_calls": Row("all", "eager", "eager"),
    "disable_jit": ON,
    "disabled_plugins": Row(None, "acme,other", "acme, other"),
    "dump_ir_to": Row(None, "/elsewhere", "/elsewhere"),
    "auto_pcast": OFF,
    "enable_checks": ON,
    "enable_compilation_cache": OFF,
    "enable_custom_prng": ON,
    "enable_x64": ON,
    "explain_cache_misses": ON,
    "export_ignore_forward_compatibility": ON,
    "include_debug_info_in_dumps": OFF,
    "include_full_tracebacks_in_locations": OFF,
    "index_mode": Row("allow", "raise", "raise"),
    "legacy_prng_key": Row("allow", "error", "error"),
    "log_checkpoint_residuals": ON,
    "log_compiles": ON,
    "logging_level": Row("NOTSET", "ERROR", "ERROR"),
    "memory_fitting_level": Row("O2", "O0", "O0"),
    "no_execution": ON,
    "no_tracing": ON,
    "num_cpu_devices": Row(-1, 8, "8"),
    "num_threads": Row(0, 3, "3"),
    "numpy_dtype_promotion": Row("standard", "strict", "strict"),
    "numpy_rank_promotion": Row("allow", "raise", "raise"),
    "optimization_level": Row("UNKNOWN", "O0", "O0"),
    "persistent_cache_min_compile_time_secs": Row(0.0, 1.5, "1.5"),
    "persistent_cache_min_entry_size_bytes": Row(0, 4096, "4096"),
    "pjrt_client_create_options": Row(None, "a:1;b:yes", "a:1;b:yes"),
    "platform_name": Row(None, "cpu", "cpu"),
    "platforms": Row(None, "cuda,cpu", "cuda, cpu"),
    "raise_persistent_cache_errors": ON,
    "process_timeout": Row(300, 5, "5"),
    "progress_bars": OFF,
    "random_seed_offset": Row(0, 3, "3"),
    "slow_compile_secs": Row(10.0, 0.5, "0.5"),
    "slow_plugin_seconds": Row(10.0, 0.5, "0.5"),
    "softmax_custom_jvp": ON,
    "thread_guard": ON,
    "threefry_gpu_kernel_lowering": ON,
    "threefry_partitionable": OFF,
    "traceback_filtering": Row("auto", "off", "off"),
    "traceback_in_locations_limit": Row(10, -1, "-1"),
    "transfer_guard": Row(None, "log", "log"),
    "transfer_guard_device_to_device": Row(None, "log", "log"),
    "transfer_guard_device_to_host": Row(None, "log", "log"),
    "transfer_guard_host_to_device": Row(None, "log", "log"),
}
OURS = {
    "cpu_kernels",
    "cpu_retained_memory",
    "debug",
    "debug_checks",
    "direct_calls",
    "disabled_plugins",
    "index_mode",
    "num_threads",
    "process_timeout",
    "slow_compile_secs",
    "slow_plugin_seconds",
}
AFFECTING = {
    "check_static_indices",
    "compiler_enable_remat_pass",
    "embedded_constants_max_bytes",
    "high_dynamic_range_gumbel",
    "allow_f16_reductions",
    "auto_pcast",
    "check_tracer_leaks",
    "cpu_kernels",
    "debug_checks",
    "debug_infs",
    "debug_nans",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "direct_calls",
    "disable_jit",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "index_mode",
    "memory_fitting_level",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "optimization_level",
    "random_seed_offset",
    "softmax_custom_jvp",
    "threefry_gpu_kernel_lowering",
    "threefry_partitionable",
}
STARTUP = {
    "cpu_collectives_implementation",
    "cpu_enable_async_dispatch",
    "cpu_get_global_topology_timeout_minutes",
    "cpu_get_local_topology_timeout_minutes",
    "cpu_retained_memory",
    "cuda_visible_devices",
    "num_cpu_devices",
    "num_threads",
    "pjrt_client_create_options",
    "platform_name",
}
OF_THE_PROCESS = {"debug", "debug_log_modules", "logging_level", "progress_bars"}

every_option = pytest.mark.parametrize("name", OPTIONS)


def test_the_table_has_every_option() -> None:
    assert sorted(OPTIONS) == sorted(config)


@every_option
def test_every_option_has_a_default_and_help(name: str) -> None:
    option = config.option(name)
    assert option.default == OPTIONS[name].default
    assert type(option.default) is type(OPTIONS[name].default)
    assert option.help.endswith(".")
    assert option.__doc__ == option.help
    assert option is getattr(options, name)
    jax = () if name in OURS else (f"JAX_{name.upper()}",)
    assert option.environment == (f"DOVETAIL_{name.upper()}", *jax)


def values_in_a_process(**environment: str) -> dict[str, Any]:
    result = run("import json; print(json.dumps(dict(config.values)))", **environment)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    values: dict[str, Any] = json.loads(result.stdout)
    return values


def test_defaults_in_a_fresh_process() -> None:
    expected = {name: row.default for name, row in OPTIONS.items()}
    assert values_in_a_process() == expected


def test_what_is_on_in_tests() -> None:
    expected = {name: row.default for name, row in OPTIONS.items()} | {"debug_key_reuse": True}
    assert values_in_a_process(PYTEST_VERSION="9") == expected
    off = {"PYTEST_VERSION": "9", "JAX_DEBUG_KEY_REUSE": "0"}
    assert values_in_a_process(**off) == expected | {"debug_key_reuse": False}


@pytest.mark.parametrize("prefix", ["DOVETAIL_", "JAX_"])
def test_every_variable_is_read(prefix: str) -> None:
    variables = {prefix + name.upper(): row.text for name, row in OPTIONS.items()}
    ignored = OURS if prefix == "JAX_" else set()
    assert values_in_a_process(**variables) == {
        name: row.default if name in ignored else row.other for name, row in OPTIONS.items()
    }


def test_our_variables_come_before_those_of_jax() -> None:
    defaults = {
        "DOVETAIL_" + name.upper(): "" if row.default is None else str(row.default)
        for name, row in OPTIONS.items()
    }
    others = {"JAX_" + name.upper(): row.text for name, row in OPTIONS.items()}
    expected = {name: row.default for name, row in OPTIONS.items()}
    assert values_in_a_process(**defaults, **others) == expected


@every_option
def test_the_prefix_of_jax_is_an_alias(name: str) -> None:
    value = config.option(name).value
    assert getattr(config, name) == getattr(config, f"jax_{name}") == value
    assert config.read(name) == config.read(f"jax_{name}") == value
    assert config.values[name] == config.values[f"jax_{name}"] == value


@every_option
def test_every_option_is_updated(name: str) -> None:
    row = OPTIONS[name]
    config.update(f"jax_{name}", row.other)
    assert getattr(config, name) == row.other
    assert type(getattr(config, name)) is type(row.other)
    config.update(name, row.default)
    assert getattr(config, name) == row.default


@every_option
def test_every_option_has_a_scope(name: str) -> None:
    row = OPTIONS[name]
    option = config.option(name)
    before = option.value
    if name in OF_THE_PROCESS:
        with pytest.raises(TypeError, match=r"config\.update"):
            option(row.other)
        return

    @option(row.other)
    def value() -> Any:
        return getattr(config, name)

    seen = []
    with option(row.other):
        assert getattr(config, name) == row.other
        thread = threading.Thread(target=lambda: seen.append(getattr(config, name)))
        thread.start()
        thread.join()
        with option(row.default):
            assert getattr(config, name) == row.default
        assert getattr(config, name) == row.other
    assert seen == [before]
    assert option.value == before
    assert value() == row.other
    assert option.value == before


@every_option
@pytest.mark.parametrize("wrong", [object(), b"bytes", [1]])
def test_every_option_refuses_what_it_is_not(name: str, wrong: Any) -> None:
    before = getattr(config, name)
    with pytest.raises(TypeError, match=name) as caught:
        config.update(name, wrong)
    assert repr(wrong) in str(caught.value)
    with pytest.raises(TypeError, match=name):
        config.option(name)(wrong)
    assert getattr(config, name) == before


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("enable_x64", "True", True),
        ("enable_x64", "yes", True),
        ("enable_x64", "on", True),
        ("threefry_partitionable", "0", False),
        ("threefry_partitionable", "false", False),
        ("threefry_partitionable", "Off", False),
        ("compilation_cache_max_size", "-1", -1),
        ("default_matmul_precision", "none", None),
        ("platforms", "", None),
        ("transfer_guard", "", None),
        ("pjrt_client_create_options", "", None),
    ],
)
def test_values_are_parsed(name: str, text: str, value: Any) -> None:
    assert config.option(name).kind.parse(text) == value


def test_environment_is_read_at_import_and_jax_platforms_counts_second() -> None:
    show = "print(config.enable_x64, config.platforms)"
    assert run(show, DOVETAIL_ENABLE_X64="1", JAX_PLATFORMS="cpu").stdout == "True cpu\n"
    both = run(show, DOVETAIL_PLATFORMS="tpu", JAX_PLATFORMS="cpu")
    assert both.stdout == "False tpu\n"


@pytest.mark.parametrize(
    ("variable", "text", "parts"),
    [
        ("DOVETAIL_ENABLE_X64", "maybe", ["'maybe'", "true", "off"]),
        ("DOVETAIL_NUMPY_RANK_PROMOTION", "rais", ["'rais'", "'allow', 'warn', 'raise'"]),
        ("DOVETAIL_NUM_CPU_DEVICES", "many", ["'many'", "number of devices"]),
        ("DOVETAIL_PLATFORMS", "cpu,,cuda", ["'cpu,,cuda'", "comma-separated"]),
    ],
)
def test_malformed_variables_are_named(variable: str, text: str, parts: list[str]) -> None:
    result = run("", **{variable: text})
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ValueError")
    for part in [variable, *parts]:
        assert part in last


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("enable_x64", True, True),
        ("enable_x64", 1, True),
        ("enable_x64", np.bool_(True), True),
        ("num_cpu_devices", np.int64(4), 4),
        ("compilation_cache_dir", __import__("pathlib").PurePosixPath("/a/b"), "/a/b"),
        ("platforms", "cuda, cpu", "cuda,cpu"),
        ("persistent_cache_min_compile_time_secs", 2, 2.0),
        ("default_matmul_precision", "BF16_BF16_F32_X3", "BF16_BF16_F32_X3"),
        ("default_matmul_precision", None, None),
    ],
)
def test_update(name: str, value: Any, stored: Any) -> None:
    config.update(name, value)
    assert getattr(config, name) == stored
    assert type(getattr(config, name)) is type(stored)
    config.update(f"jax_{name}", config.option(name).default)
    assert getattr(config, name) == config.option(name).default


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("enable_x64", "yes", TypeError, "True or False"),
        ("enable_x64", 2, TypeError, "got 2 of type int"),
        ("enable_x64", None, TypeError, "True or False"),
        ("num_cpu_devices", 1.5, TypeError, "number of devices"),
        ("num_cpu_devices", -2, ValueError, "number of devices"),
        ("num_cpu_devices", 0, ValueError, "number of devices"),
        ("num_cpu_devices", True, TypeError, "number of devices"),
        ("cpu_retained_memory", -1, ValueError, "number of bytes"),
        ("num_threads", -1, ValueError, "number of threads"),
        ("num_threads", 1.5, TypeError, "number of threads"),
        ("cpu_retained_memory", "1G", TypeError, "number of bytes"),
        ("numpy_rank_promotion", "rais", ValueError, "Did you mean 'raise'"),
        ("numpy_rank_promotion", 1, TypeError, "'allow', 'warn', 'raise'"),
        ("persistent_cache_min_compile_time_secs", -1, ValueError, "not negative"),
        ("persistent_cache_min_compile_time_secs", "1", TypeError, "number"),
        ("persistent_cache_min_compile_time_secs", float("nan"), ValueError, "number"),
        ("platforms", ["cpu"], TypeError, "comma-separated"),
        ("default_device", 3, TypeError, "device"),
        ("compilation_cache_dir", 3, TypeError, "string"),
    ],
)
def test_wrong_values(name: str, value: Any, error: type[Exception], message: str) -> None:
    before = getattr(config, name)
    with pytest.raises(error, match=message) as caught:
        config.update(name, value)
    assert repr(name) in str(caught.value)
    assert getattr(config, name) == before
    with pytest.raises(error, match=message):
        config.option(name)(value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("enable_x46", "enable_x64"),
        ("jax_debug_nan", "debug_nans"),
        ("cache_dir", "compilation_cache_dir"),
        ("zzz", "lists them"),
    ],
)
def test_unknown_options(name: str, hint: str) -> None:
    for use in (
        lambda: config.update(name, 1),
        lambda: getattr(config, name),
        lambda: setattr(config, name, 1),
    ):
        with pytest.raises(AttributeError, match=hint):
            use()
    assert not hasattr(config, name)


@pytest.mark.parametrize("name", UNAVAILABLE)
def test_options_of_jax_that_there_are_not(name: str) -> None:
    unavailable = UNAVAILABLE[name]
    full = name if name.startswith(("jax2tf", "mock")) else f"jax_{name}"
    for accepted in (unavailable.default, *unavailable.also):
        config.update(full, accepted)
    assert config.read(full) == config.values[full] == getattr(config, name) == unavailable.default
    with pytest.raises(NotImplementedError) as caught:
        config.update(full, another(unavailable))
    assert repr(full) in str(caught.value)
    assert unavailable.reason in str(caught.value)
    assert name not in config
    with pytest.raises(AttributeError, match="there is no option"):
        config.option(name)


def another(unavailable: Unavailable) -> Any:
    return next(v for v in (True, False, "something else") if not unavailable.accepts(v))


def test_variables_for_options_that_there_are_not() -> None:
    code = "import warnings; print(config.enable_x64)"
    accepted = {f"JAX_{name.upper()}": str(u.default) for name, u in UNAVAILABLE.items()}
    accepted |= {f"DOVETAIL_{name.upper()}": str(u.default) for name, u in UNAVAILABLE.items()}
    silent = run(code, **accepted)
    assert (silent.stdout, silent.stderr) == ("False\n", "")
    result = run(code, JAX_USE_SHARDY_PARTITIONER="0", JAX_DUMP_IR_MODES="jaxpr", JAX_SCAN3="0")
    assert result.stdout == "False\n"
    assert result.stderr.count("Warning") == 1
    assert "JAX_USE_SHARDY_PARTITIONER=0 has no effect: Shardy is" in result.stderr
    assert "JAX_DUMP_IR_MODES=jaxpr has no effect: dump_ir_to" in result.stderr
    assert "SCAN3" not in result.stderr
    refused = run(code, DOVETAIL_USE_SHARDY_PARTITIONER="0")
    assert refused.returncode != 0
    assert "NotImplementedError: DOVETAIL_USE_SHARDY_PARTITIONER=0" in refused.stderr


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("DOVETAIL_ENABLE_X46", "did you mean DOVETAIL_ENABLE_X64?"),
        ("DOVETAIL_PLATFORM", "did you mean DOVETAIL_PLATFORMS?"),
        ("DOVETAIL_DEBUG_NAN", "did you mean DOVETAIL_DEBUG_NANS?"),
        ("DOVETAIL_QQQQ", "has no effect\n"),
    ],
)
def test_unknown_variables_give_a_warning(variable: str, hint: str) -> None:
    result = run("print(config.enable_x64)", **{variable: "1"})
    assert result.stdout == "False\n"
    assert result.stderr.count("RuntimeWarning") == 1
    assert f"the environment variable {variable} is unknown" in result.stderr
    assert hint in result.stderr


def test_several_unknown_variables_give_one_warning() -> None:
    result = run("import dovetail.numpy", DOVETAIL_X="1", DOVETAIL_Y="1")
    assert result.stderr.count("RuntimeWarning") == 1
    assert result.stderr.count("is unknown") == 2


@pytest.mark.parametrize(
    "variable", ["JAX_ENABLE_X46", "JAX_QQQQ", "DOVETAIL_PLUGIN_ACME", "DOVETAIL_TESTING_REPORT"]
)
def test_variables_of_others_are_left_alone(variable: str) -> None:
    assert run("", **{variable: "1"}).stderr == ""


def test_values_are_a_mapping_of_the_present() -> None:
    values = config.values
    assert len(values) == len(list(values)) == len(OPTIONS)
    with options.enable_x64(True):
        assert values["enable_x64"] is values["jax_enable_x64"] is True
        assert config.x64_enabled is True
    assert config.x64_enabled is False
    assert "jax_debug_nans" in values
    assert "jax_debug_nan" not in values
    with pytest.raises(KeyError, match="debug_nans"):
        values["jax_debug_nan"]
    assert repr(values) == repr(dict(values))


@pytest.mark.parametrize("name", sorted(STARTUP))
def test_what_a_backend_has_read_is_not_changed(name: str) -> None:
    option = config.option(name)
    assert isinstance(option, StartupOption)
    option.reader = "cpu"  # the fixture puts back what there was
    config.update(name, option.value)
    other = "tpu" if name == "platform_name" else OPTIONS[name].other
    before = option.value
    with pytest.raises(RuntimeError, match="before the first computation") as caught:
        config.update(name, other)
    assert f"DOVETAIL_{name.upper()}" in str(caught.value)
    assert option.value == before


def test_options_are_free_until_a_backend_starts() -> None:
    result = run(
        "import dovetail as dt\n"
        "config.update('num_cpu_devices', 2)\n"
        "print(len(dt.devices()))\n"
        "config.update('platform_name', 'cpu')\n"
        "try:\n"
        "    config.update('jax_num_cpu_devices', 3)\n"
        "except RuntimeError as error:\n"
        "    print('which it did with 2' in str(error))\n"
        "from dovetail._core.runtime.devices.clients import clear_backends\n"
        "clear_backends()\n"
        "config.update('num_cpu_devices', 3)\n"
        "print(len(dt.devices()))",
        DOVETAIL_PLATFORMS="cpu",
    )
    assert result.stdout.split() == ["2", "True", "3"], result.stderr


def test_levels_of_loggers() -> None:
    ours, misses = logging.getLogger("dovetail"), logging.getLogger("dovetail.cache_misses")
    before = ours.level, misses.level
    config.update("logging_level", "ERROR")
    assert ours.level == logging.ERROR
    config.update("logging_level", "INFO")
    assert ours.level == logging.INFO
    config.update("debug_log_modules", "dovetail.cache_misses,other.module")
    assert (ours.level, misses.level) == (logging.INFO, logging.DEBUG)
    assert logging.getLogger("other.module").level == logging.DEBUG
    config.update("debug_log_modules", "")
    config.update("logging_level", "NOTSET")
    assert (ours.level, misses.level) == before
    assert logging.getLogger("other.module").level == logging.NOTSET


@pytest.mark.parametrize(
    ("variable", "value", "logged"),
    [
        ("JAX_LOGGING_LEVEL", "DEBUG", True),
        ("DOVETAIL_DEBUG_LOG_MODULES", "jax", True),
        ("DOVETAIL_LOGGING_LEVEL", "WARNING", False),
    ],
)
def test_logs_are_written_without_a_handler(variable: str, value: str, logged: bool) -> None:
    code = "import dovetail as dt; dt.jit(lambda x: x + 1)(1.0)"
    fixed = {"DOVETAIL_PLATFORMS": "cpu", "DOVETAIL_DIRECT_CALLS": "none"}
    fixed["DOVETAIL_ENABLE_COMPILATION_CACHE"] = "0"
    result = run(code, **fixed, **{variable: value})
    assert ("DEBUG:dovetail:compiled" in result.stderr) is logged


def test_options_are_not_assigned() -> None:
    with pytest.raises(AttributeError, match=r"config\.update\('enable_x64', True\)"):
        config.enable_x64 = True
    with pytest.raises(AttributeError, match=r"with dovetail\.enable_x64"):
        config.jax_enable_x64 = True


def test_scope() -> None:
    with options.enable_x64(new_val=True):
        assert config.enable_x64
        with options.enable_x64(False):
            assert not config.enable_x64
        assert config.enable_x64
    assert not config.enable_x64


def test_scope_without_a_value_switches_on() -> None:
    with options.enable_x64():
        assert config.enable_x64
    with pytest.raises(TypeError, match="needs a value"):
        options.numpy_rank_promotion()
    with options.disable_jit(), options.disable_jit(disable=True):
        assert config.disable_jit


def test_scope_ends_after_an_error() -> None:
    with pytest.raises(KeyError), options.enable_x64(True):
        raise KeyError
    assert not config.enable_x64


def test_one_scope_can_be_entered_again() -> None:
    scope = options.enable_x64(True)
    with scope:
        with scope:
            assert config.enable_x64
        assert config.enable_x64
    assert not config.enable_x64


def test_decorator_keeps_the_function_and_its_scope() -> None:
    @options.enable_x64(True)
    def countdown(n: int) -> list[bool]:
        """Count."""
        return [config.enable_x64, *(countdown(n - 1) if n else [])]

    assert countdown(2) == [True, True, True]
    assert (countdown.__name__, countdown.__doc__) == ("countdown", "Count.")
    assert not config.enable_x64


def test_scope_wins_over_update_and_is_of_one_thread() -> None:
    seen = []
    with options.enable_x64(False):
        config.update("enable_x64", True)
        assert not config.enable_x64
        thread = threading.Thread(target=lambda: seen.append(config.enable_x64))
        thread.start()
        thread.join()
    assert seen == [True]
    assert config.enable_x64


def test_option_objects() -> None:
    assert repr(options.enable_x64) == "<option enable_x64 = False>"
    assert repr(options.enable_x64(True)) == "enable_x64(True)"
    assert pickle.loads(pickle.dumps(options.enable_x64)) is options.enable_x64
    with pytest.raises(TypeError, match=r"dovetail\.config\.enable_x64"):
        bool(options.enable_x64)


def test_repr_shows_values_and_defaults() -> None:
    config.update("enable_x64", True)
    lines = repr(config).splitlines()
    assert len(lines) == 1 + len(list(config))
    [line] = [line for line in lines if line.split()[0] == "enable_x64"]
    assert line.split() == ["enable_x64", "=", "True", "(default", "False)"]
    assert set(config) <= set(dir(config))


def test_trace_key_changes_with_the_options_that_affect_tracing() -> None:
    with options.cpu_kernels(True), options.direct_calls("all"):  # whatever the environment says
        base = options.trace_key()
        affecting = {name for name in config if config.option(name).affects_tracing}
        assert affecting == AFFECTING
        seen = {base}
        for name in affecting:
            with config.option(name)(OPTIONS[name].other):
                assert options.trace_key() not in seen, name
                seen.add(options.trace_key())
            assert options.trace_key() == base
        with options.log_compiles(True):
            assert options.trace_key() == base
        assert hash(base) == hash(options.trace_key())


def test_jit_key_configs_are_made_at_import() -> None:
    assert options.trace_state.value is None
    assert isinstance(options.enable_x64, bindings.Config)
    assert bindings.jax_owns_jit_state() == ("jax" in sys.modules)


def test_device_option_takes_devices_and_names() -> None:
    class Device:
        device_kind = "cpu"

    device = Device()
    with options.default_device(device):
        assert config.default_device is device
    with options.default_device("cpu"):
        assert config.default_device == "cpu"
    with options.default_device("cpu"), options.default_device(None):
        assert config.default_device is None


def test_devices_are_parts_of_keys_and_so_hashable() -> None:
    class Unhashable:
        device_kind = "cpu"
        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(TypeError, match="default_device"):
        options.default_device(Unhashable())
