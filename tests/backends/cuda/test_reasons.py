"""Why there is no GPU to compute on: one sentence each, without a GPU, a driver or a wheel."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dovetail_cuda.capabilities as capabilities
import dovetail_cuda.plugin as hooks
from dovetail._core.plugins.manager import PluginManager
from dovetail.extend import BackendUnavailableError
from dovetail.extend.pjrt import PjrtError
from dovetail_cuda import ffi, libraries, runtime
from dovetail_cuda.capabilities import CudaPlugin
from dovetail_cuda.explanations import Situation, why_no_client, why_not_compiled
from dovetail_cuda.topology import TARGETS, models

LOCATION = (
    "\n=== Source Location Trace: ===\nexternal/xla+/xla/stream_executor/cuda/cuda_status.cc:50\n"
)

# What jaxlib, XLA, CUDA and NVIDIA's libraries say, and a part of what it comes to.
NO_CLIENT: list[tuple[str, Situation, list[str]]] = [
    (
        "FAILED_PRECONDITION: No visible GPU devices." + LOCATION,
        Situation(),
        ["no GPU is visible", "nvidia-smi -L", "--gpus=all"],
    ),
    (
        "FAILED_PRECONDITION: No visible GPU devices.",
        Situation(visible="7"),
        ["no GPU is visible", "CUDA_VISIBLE_DEVICES=7"],
    ),
    (
        "FAILED_PRECONDITION: No visible GPU devices.",
        Situation(visible="0", options={"visible_devices": [2, 3]}),
        ["no GPU is visible", "2, 3", "cuda_visible_devices"],
    ),
    (
        "CUDA_ERROR_INVALID_DEVICE: invalid device ordinal",
        Situation(options={"visible_devices": [0, 7]}),
        ["cuda_visible_devices=0, 7 names at least one GPU that is not there", "count from 0"],
    ),
    (
        "CUDA_ERROR_INVALID_DEVICE: invalid device ordinal",
        Situation(options={"visible_devices": [7]}),
        ["cuda_visible_devices=7 names a GPU that is not there"],
    ),
    (
        "CUDA_ERROR_INVALID_DEVICE: invalid device ordinal",
        Situation(visible="7"),
        ["no GPU is visible", "CUDA_VISIBLE_DEVICES=7"],
    ),
    (
        "INTERNAL: failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
        Situation(),
        ["no GPU is visible"],
    ),
    (
        "INVALID_ARGUMENT: Unexpected option name passed to PJRT_Client_Create: foo",
        Situation(),
        ["does not know the option foo"],
    ),
    (
        "CUDA_ERROR_INSUFFICIENT_DRIVER: CUDA driver version is insufficient for CUDA runtime "
        "version",
        Situation(13),
        ["driver is too old for CUDA 13", "580 or newer"],
    ),
    ("cudaErrorInsufficientDriver", Situation(12), ["too old for CUDA 12", "525 or newer"]),
    (
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has unsupported display driver / cuda driver "
        "combination",
        Situation(),
        ["another version than libcuda.so.1", "restart"],
    ),
    (
        "kernel version 535.54.3 does not match DSO version 550.54.15 -- cannot find working "
        "devices in this configuration",
        Situation(),
        ["another version than libcuda.so.1"],
    ),
    (
        "CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized",
        Situation(),
        ["nvidia-fabricmanager"],
    ),
    (
        "CUDA_ERROR_DEVICE_UNAVAILABLE: CUDA-capable device(s) is/are busy or unavailable",
        Situation(),
        ["exclusive mode"],
    ),
    (
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 60129542144 bytes.",
        Situation(),
        [
            "not enough free memory to start",
            "XLA_PYTHON_CLIENT_MEM_FRACTION below its default of .75",
            "XLA_PYTHON_CLIENT_PREALLOCATE=false",
        ],
    ),
    (
        "failed to alloc 17179869184 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        Situation(),
        ["not enough free memory to start"],
    ),
    ("CUDA_ERROR_UNKNOWN: unknown error", Situation(), ["nvidia_uvm"]),
    (
        "libnvJitLink.so.13: cannot open shared object file: No such file or directory",
        Situation(13),
        ["libnvJitLink.so.13", "pip install nvidia-nvjitlink."],
    ),
    (
        "libcudnn.so.9: cannot open shared object file: No such file or directory",
        Situation(12),
        ["pip install nvidia-cudnn-cu12."],
    ),
]

NOT_COMPILED: list[tuple[str, Situation, list[str]]] = [
    (
        "INTERNAL: DNN library initialization failed. Look at the errors above for more details.",
        Situation(),
        ["DNN did not start", "XLA_PYTHON_CLIENT_MEM_FRACTION", ".75"],
    ),
    (
        "Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED",
        Situation(),
        ["CUDNN did not start", "XLA_PYTHON_CLIENT_PREALLOCATE=false"],
    ),
    (
        "INTERNAL: libdevice not found at ./libdevice.10.bc" + LOCATION,
        Situation(13),
        ["libdevice", "pip install nvidia-cuda-nvcc nvidia-nvvm."],
    ),
    (
        "UNAVAILABLE: No PTX compilation provider is available. Neither ptxas/nvlink nor nvjtlink "
        "is available.",
        Situation(12),
        ["ptxas", "pip install nvidia-cuda-nvcc-cu12."],
    ),
    (
        "INTERNAL: ptxas too old. Falling back to the driver to compile.",
        Situation(13),
        [
            "older than Turing",
            "pip uninstall jax-cuda13-plugin",
            "dovetail-cuda[cuda12]",
            "pip install -U nvidia-cuda-nvcc.",
        ],
    ),
    (
        "INTERNAL: ptxas too old. Falling back to the driver to compile.",
        Situation(12),
        ["newer than the compiler", "-U nvidia-cuda-nvcc-cu12", "dovetail-cuda[cuda13]"],
    ),
    (
        "CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available for execution on the device",
        Situation(12),
        ["newer than the compiler"],
    ),
    *(
        (
            "CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was compiled with an "
            "unsupported toolchain.",
            Situation(generation),
            ["driver is older than the compiler", "update the driver", f'"{package}=='],
        )
        for generation, package in ((13, "nvidia-cuda-nvcc"), (12, "nvidia-cuda-nvcc-cu12"))
    ),
    (
        "NOT_FOUND: No FFI handler registered for acme_scale on a platform CUDA (canonical CUDA)",
        Situation(13),
        ["acme_scale", "another version of jaxlib"],
    ),
]


@pytest.mark.parametrize(("message", "situation", "parts"), NO_CLIENT + NOT_COMPILED)
def test_messages_at_the_start(message: str, situation: Situation, parts: list[str]) -> None:
    _check(why_no_client(message, situation), parts)


@pytest.mark.parametrize(("message", "situation", "parts"), NOT_COMPILED)
def test_messages_of_the_compiler(message: str, situation: Situation, parts: list[str]) -> None:
    _check(why_not_compiled(message, situation), parts)


def _check(sentence: str | None, parts: list[str]) -> None:
    assert sentence is not None
    for part in parts:
        assert part in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert ". " not in sentence, "one sentence"


@pytest.mark.parametrize(
    "message",
    [
        "INVALID_ARGUMENT: Executable expected parameter 0 of size 4 but got buffer of size 8",
        "RESOURCE_EXHAUSTED: Out of memory allocating 320000000000 bytes.",
    ],
)
def test_the_user_s_own_errors_are_left_alone(message: str) -> None:
    assert why_not_compiled(message, Situation()) is None


ASKED = "jaxlib/cuda/versions_helpers.cc:135: operation cuInit(0) failed: "


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ("", "the NVIDIA driver is there and shows none"),
        (f"{ASKED}CUDA_ERROR_NO_DEVICE", "the NVIDIA driver is there and shows none"),
        (f"{ASKED}CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "another version than libcuda.so.1"),
        (f"{ASKED}CUDA_ERROR_SYSTEM_NOT_READY", "nvidia-fabricmanager"),
        (f"{ASKED}CUDA_ERROR_UNKNOWN", "reload it (rmmod nvidia_uvm"),
        (
            f"{ASKED}Unknown CUDA error 3; cuGetErrorName failed. This probably means that JAX was "
            "unable to load the CUDA libraries.",
            "NVIDIA's driver does not start: Unknown CUDA error 3 (nvidia-smi",
        ),
    ],
)
def test_the_driver_is_asked_why_it_shows_no_gpu(
    monkeypatch: pytest.MonkeyPatch, plugin: CudaPlugin, driver: str, expected: str
) -> None:
    """XLA says the same for all of them."""

    def count() -> int:
        if driver:
            raise RuntimeError(driver)
        return 0

    class Loaded:
        def make_client(self, options: object, distributed_client: object) -> Any:
            raise PjrtError("made no client: FAILED_PRECONDITION: No visible GPU devices.")

    module = versions()
    module.cuda_device_count = staticmethod(count)
    monkeypatch.setitem(sys.modules, f"{plugin.kernels}._versions", module)
    monkeypatch.setattr(libraries.importlib, "import_module", sys.modules.__getitem__)
    monkeypatch.setattr(runtime, "load", lambda: (plugin, Loaded()))
    with pytest.raises(BackendUnavailableError) as caught:
        runtime.make_client({})
    _check(str(caught.value), [expected])


def test_the_compiler_s_reason_reaches_the_user() -> None:
    def compiled(error: Exception) -> Any:
        steps = hooks.dovetail_compile()
        next(steps)
        with pytest.raises(RuntimeError) as caught:
            steps.throw(error)
        return caught.value

    first = RuntimeError("INTERNAL: libdevice not found at ./libdevice.10.bc")
    found = compiled(first)
    assert str(found).startswith("libdevice, which XLA compiles with")
    assert found.__cause__ is first
    other = RuntimeError("INTERNAL: something else")
    assert compiled(other) is other


# ------------------------------------------------------------------------------------- the wheels


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of wheels, where the packages of this test are found and no others."""
    monkeypatch.setattr(capabilities, "DEVICE_FILES", (str(tmp_path),))
    monkeypatch.setattr(capabilities, "DRIVER_FILE", str(tmp_path / "driver"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def folders(package: str) -> Any:
        return iter([tmp_path / package] if (tmp_path / package).is_dir() else [])

    monkeypatch.setattr(capabilities, "folders_of", folders)
    monkeypatch.setattr(libraries, "folders_of", folders)
    return tmp_path


def install(site: Path, distribution: str, version: str, *files: str) -> None:
    (site / f"{distribution.replace('-', '_')}-{version}.dist-info").mkdir()
    for file in files:
        path = site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def install_plugin(site: Path, version: str, generation: int = 13) -> None:
    install(
        site,
        f"jax-cuda{generation}-pjrt",
        version,
        f"jax_plugins/xla_cuda{generation}/xla_cuda_plugin.so",
    )
    install(
        site,
        f"jax-cuda{generation}-plugin",
        version,
        f"jax_cuda{generation}_plugin/_versions.so",
    )


NVIDIA_SAYS = (
    "NVRM version: NVIDIA UNIX {} Kernel Module {}  Fri Oct 18 2024\nGCC version: 12.3.0\n"
)


@pytest.mark.parametrize(
    ("newer", "older", "driver", "expected"),
    [
        ("0.12.0.1", "0.12.0.1", "", 13),
        ("0.12.0.1", "0.12.0.1", NVIDIA_SAYS.format("x86_64", "580.65.06"), 13),
        ("0.12.0.1", "0.12.0.1", NVIDIA_SAYS.format("x86_64", "570.124.06"), 12),
        ("0.12.0.1", "0.12.0.1", NVIDIA_SAYS.format("Open for x86_64", "570.124.06"), 12),
        ("0.12.0.1", "0.12.0.1", "no version", 13),
        ("0.12.0.1", "0.11.2", NVIDIA_SAYS.format("x86_64", "570.124.06"), 13),
        ("0.11.2", "0.12.0.1", "", 12),
        ("0.11.2", "0.12.0.1", NVIDIA_SAYS.format("x86_64", "470.256.02"), 13),
        ("without kernels", "0.12.0.1", "", 12),
        ("without kernels", "0.11.2", "", 13),
        ("0.11.2", "without kernels", "", 13),
    ],
)
def test_the_newest_plugin_that_can_be_used_is_taken(
    site: Path, newer: str, older: str, driver: str, expected: int
) -> None:
    install(site, "jaxlib", "0.12.0.1", "jaxlib/__init__.py")
    for generation, version in ((13, newer), (12, older)):
        if version == "without kernels":
            library = f"jax_plugins/xla_cuda{generation}/xla_cuda_plugin.so"
            install(site, f"jax-cuda{generation}-pjrt", "0.12.0.1", library)
        else:
            install_plugin(site, version, generation)
    if driver:
        (site / "driver").write_text(driver)
    found = capabilities.find_plugin()
    assert found is not None
    assert found.generation == expected


def test_the_first_plugin_s_problem_is_told(site: Path) -> None:
    install(site, "jaxlib", "0.12.0.1", "jaxlib/__init__.py")
    install_plugin(site, "0.11.2", 13)
    install_plugin(site, "0.11.1", 12)
    with pytest.raises(BackendUnavailableError, match=r"^jax-cuda13-plugin 0\.11\.2 does not go"):
        capabilities.require_plugin()


def test_the_newest_plugin_is_taken(site: Path) -> None:
    assert capabilities.find_plugin() is None
    for generation in (12, 13):
        install_plugin(site, "0.12.0.1", generation)
        found = capabilities.find_plugin()
        assert found is not None
        assert found.generation == generation
        assert found.library == site / f"jax_plugins/xla_cuda{generation}/xla_cuda_plugin.so"
        assert found.site == site
        assert found.kernels == f"jax_cuda{generation}_plugin"


def test_equal_versions_are_well(site: Path) -> None:
    install(site, "jaxlib", "0.12.0.1", "jaxlib/__init__.py")
    install_plugin(site, "0.12.0.1")
    assert hooks.dovetail_probe("cuda") == ""


def test_a_plugin_of_another_version_says_what_to_install(site: Path) -> None:
    install(site, "jaxlib", "0.12.0.1", "jaxlib/__init__.py")
    install_plugin(site, "0.11.2")
    with pytest.raises(BackendUnavailableError) as caught:
        hooks.dovetail_probe("cuda")
    assert str(caught.value) == (
        "jax-cuda13-plugin 0.11.2 does not go with jaxlib 0.12.0.1, since their versions must be "
        'equal: pip install "jax-cuda13-plugin[with-cuda]==0.12.0.1".'
    )


def test_a_library_without_kernels_says_what_to_install(site: Path) -> None:
    install(site, "jaxlib", "0.11.2", "jaxlib/__init__.py")
    install(site, "jax-cuda13-pjrt", "0.11.2", "jax_plugins/xla_cuda13/xla_cuda_plugin.so")
    with pytest.raises(BackendUnavailableError, match=r"install \"jax-cuda13-plugin==0\.11\.2\""):
        hooks.dovetail_probe("cuda")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("", 'not installed: pip install "dovetail-cuda[aot]" (about 260 MB).'),
        ("0.11.2", 'must be equal: pip install "jax-cuda13-plugin==0.12.0.1".'),
    ],
)
def test_compiling_needs_less(site: Path, version: str, expected: str) -> None:
    install(site, "jaxlib", "0.12.0.1", "jaxlib/__init__.py")
    if version:
        install_plugin(site, version)
    with pytest.raises(BackendUnavailableError) as caught:
        hooks.dovetail_topology("cuda", "h200", {})
    assert str(caught.value).endswith(expected)


def test_two_numbers_of_gpus_are_refused() -> None:
    with pytest.raises(ValueError, match="'h200:1x1x4' and the option topology both say how many"):
        hooks.dovetail_topology("cuda", "h200:1x1x4", {"topology": "1x1x8"})


def test_kernels_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch, plugin: CudaPlugin) -> None:
    monkeypatch.setitem(sys.modules, f"{plugin.kernels}._hybrid", None)
    with pytest.raises(BackendUnavailableError) as caught:
        list(ffi.targets(plugin))
    assert str(caught.value).startswith("the kernels of jax-cuda13-plugin cannot be loaded (")
    assert str(caught.value).endswith(
        '): pip install --force-reinstall --no-deps "jax-cuda13-plugin==0.12.0.1".'
    )


def test_the_library_has_a_name_of_its_own_beside_jax(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By jax's name, jaxlib would refuse it to jax; by another it loads no programs from bytes."""
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert runtime.library_name() == "cuda"
    package = tmp_path / "jax" / "__init__.py"
    package.parent.mkdir()
    package.touch()
    importlib.invalidate_caches()
    assert runtime.library_name() not in ("cuda", "gpu", "rocm", "tpu")


def test_a_gpu_without_the_wheels_is_broken(site: Path) -> None:
    manager = PluginManager()
    with pytest.raises(BackendUnavailableError) as caught:
        manager.make_client("cuda")
    assert str(caught.value).startswith(
        "platform 'cuda' cannot be used: the PJRT library for CUDA is not installed: "
        'pip install "dovetail-cuda[cuda13]" (or [cuda12] for a driver older than 580).\n'
    )
    assert "reinstall" not in str(caught.value)
    assert [failure.phase for failure in manager.failures] == ["probe"]


@pytest.mark.parametrize("value", ["", "-1", "NoDevFiles", "-1,0", ",1"])
def test_a_hidden_gpu_is_not_broken(
    monkeypatch: pytest.MonkeyPatch, site: Path, value: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert hooks.dovetail_probe("cuda") == f"CUDA_VISIBLE_DEVICES={value} hides every GPU."


@pytest.mark.parametrize("value", ["0", "0,-1", "GPU-1d0f"])
def test_a_gpu_that_is_shown(monkeypatch: pytest.MonkeyPatch, site: Path, value: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert capabilities.missing_hardware() == ""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([], "none of /nowhere/nvidia0 exists)."),
        (["dxg"], "none of /nowhere/nvidia0 exists, and {site}/dxg is there without {site}/lib)."),
        (["lib"], "none of /nowhere/nvidia0 exists)."),
        (["dxg", "lib"], ""),
    ],
)
def test_no_gpu(
    monkeypatch: pytest.MonkeyPatch, site: Path, files: list[str], expected: str
) -> None:
    """Windows's Linux subsystem has its device file for GPUs of every vendor."""
    monkeypatch.setattr(capabilities, "DEVICE_FILES", ("/nowhere/nvidia0",))
    monkeypatch.setattr(capabilities, "WINDOWS_FILES", (str(site / "dxg"), str(site / "lib")))
    for name in files:
        (site / name).touch()
    if expected:
        expected = f"there is no NVIDIA GPU with a loaded driver ({expected.format(site=site)}"
    assert capabilities.missing_hardware() == expected


# --------------------------------------------------------------------------- driver and libraries

BUILT = {
    "cublas": 130000,
    "cuda_runtime": 13000,
    "cudnn": 91200,
    "cufft": 12000,
    "cupti": 130000,
    "cusolver": 12003,
    "cusparse": 12602,
}


def versions(driver: int = 13000, **found: int | None) -> Any:
    """A module of version functions, in which None is a library that is not there."""

    def function(value: int | None) -> Callable[[], int]:
        def version() -> int:
            if value is None:
                raise RuntimeError("operation failed: internal error")
            return value

        return version

    class Module:
        cuda_driver_get_version = staticmethod(function(driver))

    for name, value in BUILT.items():
        setattr(Module, f"{name}_build_version", staticmethod(function(value)))
        setattr(Module, f"{name}_get_version", staticmethod(function(found.get(name, value))))
    return Module


@pytest.fixture
def plugin(site: Path) -> CudaPlugin:
    install_plugin(site, "0.12.0.1")
    found = capabilities.find_plugin()
    assert found is not None
    return found


def test_all_is_there(plugin: CudaPlugin) -> None:
    assert libraries.problem(plugin, versions()) == ""
    newer = versions(driver=13020, cuda_runtime=13050, cudnn=91900, cublas=130100)
    assert libraries.problem(plugin, newer) == ""


@pytest.mark.parametrize(
    ("generation", "driver", "expected"),
    [
        (13, 0, "libcuda.so.1 cannot be loaded: it is part of NVIDIA's driver"),
        (
            13,
            12080,
            "the NVIDIA driver is for CUDA 12.8 at most, which is too old for CUDA 13: update it "
            'to 580 or newer or pip install "dovetail-cuda[cuda12]" instead of the plug-in for '
            "CUDA 13.",
        ),
        (
            13,
            11040,
            "the NVIDIA driver is for CUDA 11.4 at most, which is too old for CUDA 13: update it "
            "to 580 or newer.",
        ),
    ],
)
def test_drivers(plugin: CudaPlugin, generation: int, driver: int, expected: str) -> None:
    assert libraries.problem(plugin, versions(driver=driver)).startswith(expected)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.12.0.1", "pip uninstall jax-cuda13-plugin jax-cuda13-pjrt, so that the plug-in for"),
        ("0.11.2", "mend the plug-in for CUDA 12: jax-cuda12-plugin 0.11.2 does not go with"),
    ],
)
def test_what_is_installed_is_not_advised(
    plugin: CudaPlugin, site: Path, version: str, expected: str
) -> None:
    install(site, "jaxlib", "0.12.0.1", "jaxlib/__init__.py")
    install_plugin(site, version, 12)
    found = libraries.problem(plugin, versions(driver=12080))
    assert f"update it to 580 or newer or {expected}" in found
    assert "[cuda12]" not in found


@pytest.mark.parametrize(
    ("name", "library", "package"),
    [
        ("cublas", "cuBLAS (libcublas.so.13)", "nvidia-cublas"),
        ("cuda_runtime", "the CUDA runtime (libcudart.so.13)", "nvidia-cuda-runtime"),
        ("cudnn", "cuDNN (libcudnn.so.9)", "nvidia-cudnn-cu13"),
        ("cufft", "cuFFT (libcufft.so.12)", "nvidia-cufft"),
        ("cupti", "CUPTI (libcupti.so.13)", "nvidia-cuda-cupti"),
        ("cusolver", "cuSOLVER (libcusolver.so.12)", "nvidia-cusolver"),
        ("cusparse", "cuSPARSE (libcusparse.so.12)", "nvidia-cusparse"),
    ],
)
def test_a_missing_library_is_named_with_its_package(
    plugin: CudaPlugin, name: str, library: str, package: str
) -> None:
    found = libraries.problem(plugin, versions(**{name: None}))
    assert found == f"{library} is not installed: pip install {package}."


def test_missing_libraries_are_named_together(plugin: CudaPlugin) -> None:
    assert libraries.problem(plugin, versions(cufft=None, cudnn=None)) == (
        "cuFFT, cuDNN are not installed: pip install nvidia-cufft nvidia-cudnn-cu13."
    )


def test_a_library_that_is_too_old(plugin: CudaPlugin) -> None:
    found = libraries.problem(plugin, versions(cudnn=90800))
    assert found.startswith("cuDNN (libcudnn.so.9) is of version 90800, and the plug-in was built")
    assert "pip install -U nvidia-cudnn-cu13" in found


def test_a_library_that_lacks_another(
    monkeypatch: pytest.MonkeyPatch, plugin: CudaPlugin, site: Path
) -> None:
    file = site / "nvidia/cu13/lib/libcusolver.so.12"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")

    def opened(path: str, mode: int = 0) -> None:
        assert path == str(file)
        raise OSError("libnvJitLink.so.13: cannot open shared object file: No such file")

    monkeypatch.setattr(ctypes, "CDLL", opened)
    assert libraries.problem(plugin, versions(cusolver=None)) == (
        f"cuSOLVER ({file}) needs libnvJitLink.so.13, which is not there: pip install "
        "nvidia-nvjitlink."
    )


def test_a_damaged_library(plugin: CudaPlugin, site: Path) -> None:
    file = site / "nvidia/cudnn/lib/libcudnn.so.9"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no library")
    found = libraries.problem(plugin, versions(cudnn=None))
    assert found.startswith(f"cuDNN ({file}) cannot be loaded")
    assert found.endswith("pip install -U nvidia-cudnn-cu13.")


def test_libraries_in_another_folder_are_opened_first(
    monkeypatch: pytest.MonkeyPatch, plugin: CudaPlugin, site: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "nvidia"
    for soname in ("libcudnn.so.9", "libcublas.so.13", "libcublasLt.so.13"):
        for root in (other, *([site / "nvidia"] if soname == "libcudnn.so.9" else [])):
            (root / "cu13/lib").mkdir(parents=True, exist_ok=True)
            (root / "cu13/lib" / soname).write_bytes(b"")
    monkeypatch.setattr(libraries, "folders_of", lambda package: iter([other]))
    opened: list[str] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda path, mode: opened.append(Path(path).name))
    libraries.preload(plugin)
    assert opened == ["libcublasLt.so.13", "libcublas.so.13"]


# What each is linked to, as NVIDIA's documentation and the files themselves have it.
NEEDED = {
    "cuBLAS": ["cuBLASLt"],
    "cuDNN": ["cuBLASLt", "NVRTC"],
    "cuSOLVER": ["cuBLAS", "cuBLASLt", "cuSPARSE", "nvJitLink"],
    "cuSPARSE": ["nvJitLink"],
}


def test_libraries_are_opened_after_those_that_they_need(
    monkeypatch: pytest.MonkeyPatch, plugin: CudaPlugin, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "nvidia"
    (other / "cu13/lib").mkdir(parents=True)
    names = {library.sonames[13]: library.name for library in libraries.LIBRARIES}
    for soname in names:
        (other / "cu13/lib" / soname).touch()
    monkeypatch.setattr(libraries, "folders_of", lambda package: iter([other]))
    opened: list[str] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda path, mode: opened.append(names[Path(path).name]))
    libraries.preload(plugin)
    assert sorted(opened) == sorted(names.values())
    assert opened[0] == "the CUDA runtime"
    for name, needed in NEEDED.items():
        assert all(opened.index(one) < opened.index(name) for one in needed), name


def test_every_library_has_a_package_for_both_generations() -> None:
    for library in libraries.LIBRARIES:
        for generation in capabilities.GENERATIONS:
            soname = library.sonames[generation]
            assert libraries.package_of(soname, generation) == library.packages[generation]
    assert set(libraries.COMPILER_PACKAGES) == set(capabilities.OLDEST_DRIVERS)
    assert libraries.package_of("libacme.so.1", 13) == ""


@pytest.mark.parametrize("beside", [True, False])
def test_the_compiler_s_folder_is_named_where_the_plugin_does_not_look(
    monkeypatch: pytest.MonkeyPatch, plugin: CudaPlugin, site: Path, tmp_path: Path, beside: bool
) -> None:
    root = (site if beside else tmp_path / "other") / "nvidia" / "cu13"
    for file in ("bin/ptxas", "nvvm/libdevice/libdevice.10.bc"):
        (root / file).parent.mkdir(parents=True)
        (root / file).write_bytes(b"")
    monkeypatch.setattr(libraries, "folders_of", lambda package: iter([root.parent]))
    assert libraries.compiler_folder(plugin) == (None if beside else root)
    expected = {} if beside else {"xla_gpu_cuda_data_dir": str(root)}
    assert hooks.dovetail_compile_options("cuda") == expected


# ------------------------------------------------------------------------------- descriptions


def test_descriptions_are_shipped() -> None:
    assert models() == ["a100", "b200", "h100", "h200"]
    for path in TARGETS.iterdir():
        text = path.read_text(encoding="utf-8")
        assert 'platform_name: "CUDA"' in text
        assert text.count("{") == text.count("}")
