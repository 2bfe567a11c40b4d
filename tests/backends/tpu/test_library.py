"""How the TPU backend finds libtpu, and what it tells it: without libtpu, and without a TPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dovetail_tpu.capabilities
import dovetail_tpu.plugin
import dovetail_tpu.runtime
from dovetail._core.plugins.manager import PluginManager
from dovetail.extend import BackendUnavailableError
from dovetail.extend.pjrt import PjrtError
from dovetail_tpu.capabilities import CHIPS, ENVIRONMENT_WITHOUT_CHIPS, count_chips, find_library
from dovetail_tpu.runtime import client_options


@pytest.fixture
def manager() -> PluginManager:
    """A manager of its own: nothing that a test does reaches the process's."""
    return PluginManager()


def _pci(folder: Path, vendor: str, device: str) -> None:
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "device").write_text(f"{device}\n")


def test_chips_are_told_from_network_cards(tmp_path: Path) -> None:
    """Google's gVNIC, a controller beside it, and another maker's device are no chips."""
    _pci(tmp_path / "0", "0x1ae0", "0x0042")
    _pci(tmp_path / "1", "0x1ae0", "0x0084")
    _pci(tmp_path / "2", "0x10de", "0x0063")
    (tmp_path / "3").mkdir()
    assert count_chips(tmp_path) == 0
    for number in CHIPS:
        _pci(tmp_path / f"chip {number}", "0x1ae0", number)
    assert count_chips(tmp_path) == len(CHIPS)
    assert {"v5e", "v6e", "7x", "8t", "8i"} <= set(CHIPS.values())
    assert count_chips(tmp_path / "absent") == 0


def _has_nothing(name: str) -> None:
    return None


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", _has_nothing)


@pytest.mark.usefixtures("no_library")
def test_a_tpu_without_its_library_is_broken(
    monkeypatch: pytest.MonkeyPatch, manager: PluginManager
) -> None:
    monkeypatch.setattr(dovetail_tpu.plugin, "count_chips", lambda: 4)
    with pytest.raises(BackendUnavailableError, match=r'pip install "dovetail-tpu\[libtpu\]"'):
        manager.make_client("tpu")


@pytest.mark.usefixtures("no_library")
def test_compiling_ahead_of_time_needs_the_library(manager: PluginManager) -> None:
    with pytest.raises(
        BackendUnavailableError, match=r"'tpu' cannot be compiled ahead of time: libtpu.*install"
    ):
        manager.topology("tpu", "v5e:2x2")
    assert manager.failures == ()


def test_the_library_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "libtpu.so"
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(file))
    with pytest.raises(FileNotFoundError, match="names no file: give the path of"):
        find_library()
    file.write_bytes(b"")
    assert find_library() == file


def test_the_library_is_found_without_importing_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "libtpu"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (package / "libtpu.so").write_bytes(b"")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    monkeypatch.delitem(sys.modules, "libtpu", raising=False)
    assert find_library() == package / "libtpu.so"


@pytest.mark.parametrize(("chips", "expected"), [(0, ENVIRONMENT_WITHOUT_CHIPS), (4, {})])
def test_the_cloud_is_asked_only_on_a_machine_with_chips(
    monkeypatch: pytest.MonkeyPatch, manager: PluginManager, chips: int, expected: dict[str, str]
) -> None:
    monkeypatch.setattr(dovetail_tpu.plugin, "count_chips", lambda: chips)
    assert manager.environment("tpu") == expected
    assert (expected.get("TPU_SKIP_MDS_QUERY") == "1") == (chips == 0)


def test_what_the_user_has_set_stays(
    monkeypatch: pytest.MonkeyPatch, manager: PluginManager
) -> None:
    """The variables are in the environment before libtpu is loaded, and none is overwritten."""
    found: dict[str, str] = {}

    class Loaded:
        def topology_devices(self, name: str, **options: Any) -> list[Any]:
            found.update({name: os.environ[name] for name in ENVIRONMENT_WITHOUT_CHIPS})
            return [object()]

    monkeypatch.setattr(dovetail_tpu.plugin, "count_chips", lambda: 0)
    monkeypatch.setattr("dovetail_tpu.topologies.library", Loaded)
    for name in ENVIRONMENT_WITHOUT_CHIPS:
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)
    monkeypatch.setenv("TPU_LOG_DIR", "mine")
    manager.topology("tpu")
    assert found == {**ENVIRONMENT_WITHOUT_CHIPS, "TPU_LOG_DIR": "mine"}


@pytest.mark.parametrize(
    ("options", "error", "expected"),
    [
        ({"chips": 4}, TypeError, "the tpu backend has no option chips; it has max_inflight"),
        ({"max_inflight_computations": 0.5}, TypeError, "must be an int, got 0.5"),
        ({"max_inflight_computations": True}, TypeError, "must be an int, got True"),
        ({"max_inflight_computations": 0}, ValueError, "must be at least 1, got 0"),
    ],
)
def test_options_are_checked(
    options: dict[str, Any], error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=expected):
        client_options(options)


def test_options_reach_the_library() -> None:
    given = client_options({"max_inflight_computations": 8})
    assert given == {"ml_framework_name": "dovetail", "max_inflight_computations": 8}


def test_chips_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, manager: PluginManager) -> None:
    class Loaded:
        def make_client(self, options: Any) -> Any:
            raise PjrtError("made no client") from RuntimeError("already in use by process 12")

    monkeypatch.setattr(dovetail_tpu.plugin, "count_chips", lambda: 4)
    monkeypatch.setattr(dovetail_tpu.plugin, "find_library", lambda: Path("libtpu.so"))
    monkeypatch.setattr(dovetail_tpu.runtime, "library", Loaded)
    with pytest.raises(BackendUnavailableError) as caught:
        manager.make_client("tpu")
    assert "Only one process can use them at a time" in str(caught.value)
    assert "libtpu says: already in use by process 12" in str(caught.value)


def test_without_a_tpu_nothing_is_loaded() -> None:
    """What a user sees who asks for a TPU that is not there: one sentence, at once."""
    code = (
        "import sys, dovetail\n"
        "try: dovetail.devices('tpu')\n"
        "except RuntimeError as error: print(error)\n"
        "print('dovetail_tpu.runtime' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Traceback" not in answer.stderr
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("platform 'tpu' cannot run on this machine: there is no TPU on this")
    assert lines[-1] == "False"


def test_the_folder_of_devices_is_that_of_the_kernel() -> None:
    assert str(dovetail_tpu.capabilities.PCI_FOLDER) == "/sys/bus/pci/devices"
