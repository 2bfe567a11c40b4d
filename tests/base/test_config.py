"""Options: where values come from, what is allowed, scopes, threads."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dovetail import config
from dovetail._core.base import bindings
from dovetail._core.base import config as options


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = dict(config.values())
    yield
    for name, value in before.items():
        config.update(name, value)


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DOVETAIL_", "JAX_"))
    }
    return subprocess.run(
        [sys.executable, "-c", "from dovetail._core.base.config import config\n" + code],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


DEFAULTS = {
    "enable_x64": False,
    "disable_jit": False,
    "platforms": None,
    "default_device": None,
    "default_matmul_precision": None,
    "numpy_dtype_promotion": "standard",
    "numpy_rank_promotion": "allow",
    "index_mode": "allow",
    "default_prng_impl": "threefry2x32",
    "threefry_partitionable": True,
    "threefry_gpu_kernel_lowering": False,
    "optimization_level": "UNKNOWN",
    "debug_nans": False,
    "debug_infs": False,
    "debug_checks": True,
    "check_tracer_leaks": False,
    "enable_checks": False,
    "log_compiles": False,
    "explain_cache_misses": False,
    "no_tracing": False,
    "compilation_cache_dir": None,
    "enable_compilation_cache": True,
    "compilation_cache_max_size": 1 << 30,
    "persistent_cache_min_compile_time_secs": 0.0,
    "raise_persistent_cache_errors": False,
    "captured_constants_warn_bytes": 2_000_000_000,
    "num_cpu_devices": -1,
    "cpu_asynchronous_dispatch": True,
    "cuda_visible_devices": "all",
    "cpu_retained_memory": 1 << 30,
    "legacy_prng_key": "allow",
    "random_seed_offset": 0,
}


def test_every_option_has_a_default_and_help() -> None:
    for name, default in DEFAULTS.items():
        option = config.option(name)
        assert option.default == default, name
        assert option.help.endswith("."), name
        assert option.__doc__ == option.help
        assert option is getattr(options, name), name
        assert option.environment[0] == f"DOVETAIL_{name.upper()}"


def test_defaults_in_a_fresh_process() -> None:
    result = run("import json; print(json.dumps(dict(config.values())))")
    assert result.returncode == 0, result.stderr
    import json

    assert json.loads(result.stdout).items() >= DEFAULTS.items()


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_prefix_of_jax_is_an_alias(name: str) -> None:
    assert getattr(config, name) == getattr(config, f"jax_{name}") == config.option(name).value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("ENABLE_X64", "1", True),
        ("ENABLE_X64", "True", True),
        ("ENABLE_X64", "yes", True),
        ("ENABLE_X64", "on", True),
        ("THREEFRY_PARTITIONABLE", "0", False),
        ("THREEFRY_PARTITIONABLE", "false", False),
        ("THREEFRY_PARTITIONABLE", "Off", False),
        ("NUM_CPU_DEVICES", "8", 8),
        ("COMPILATION_CACHE_MAX_SIZE", "-1", -1),
        ("PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "1.5", 1.5),
        ("NUMPY_RANK_PROMOTION", "raise", "raise"),
        ("DEFAULT_MATMUL_PRECISION", "none", None),
        ("DEFAULT_MATMUL_PRECISION", "high", "high"),
        ("COMPILATION_CACHE_DIR", "/elsewhere", "/elsewhere"),
        ("PLATFORMS", "cuda, cpu", "cuda,cpu"),
        ("PLATFORMS", "", None),
        ("DEFAULT_DEVICE", "cpu", "cpu"),
    ],
)
def test_environment_variables_are_parsed(name: str, text: str, value: Any) -> None:
    option = config.option(name.lower())
    parsed = options._from_environment((f"DOVETAIL_{name}_TEST",), option.kind, option.default)
    assert parsed == option.default
    variable = f"DOVETAIL_{name}_TEST"
    os.environ[variable] = text
    try:
        assert options._from_environment((variable,), option.kind, option.default) == value
    finally:
        del os.environ[variable]


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
    alternatives: dict[str, Any] = {
        "default_matmul_precision": "high",
        "numpy_dtype_promotion": "strict",
        "numpy_rank_promotion": "raise",
        "index_mode": "raise",
        "optimization_level": "O0",
        "default_prng_impl": "rbg",
        "default_device": "cpu",
        "random_seed_offset": 3,
    }
    base = options.trace_key()
    affecting = [name for name in config if config.option(name).affects_tracing]
    assert {"enable_x64", "disable_jit", *alternatives} <= set(affecting)
    seen = {base}
    for name in affecting:
        value = alternatives.get(name, not config.option(name).default)
        with config.option(name)(value):
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
