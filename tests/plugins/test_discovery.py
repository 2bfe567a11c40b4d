"""Finding plug-ins without importing them."""

from __future__ import annotations

import importlib.metadata
import sys
import zipfile

import pytest

from dovetail._core.plugins.discovery import (
    BACKENDS,
    EXTENSIONS,
    FoundPlugin,
    find_plugins,
    installed_plugins,
)


def _by_metadata(group):
    return {
        (entry.name, entry.value, entry.dist.name, entry.dist.version)
        for entry in importlib.metadata.entry_points(group=group)
    }


def _by_folders(group):
    return {(p.name, p.value, p.distribution, p.version) for p in installed_plugins(group)}


@pytest.mark.parametrize("group", [BACKENDS, EXTENSIONS, "console_scripts", "pytest11"])
def test_reading_folders_agrees_with_importlib_metadata(group):
    assert _by_folders(group) == _by_metadata(group)


@pytest.mark.parametrize("suffix", ["dist-info", "egg-info"])
def test_a_new_distribution_is_found(install, suffix):
    install("acme-tools", {"acme": "acme_tools:plugin"}, {}, suffix=suffix)
    found = {plugin.name: plugin for plugin in installed_plugins(BACKENDS)}
    folder = str(install.folder / f"acme_tools-1.0.{suffix}")
    expected = FoundPlugin("acme", "acme_tools:plugin", "acme-tools", "1.0", folder)
    assert found["acme"] == expected
    assert found["acme"].origin == "acme-tools 1.0"


def test_the_first_on_the_path_counts(install, tmp_path, monkeypatch):
    install("acme-tools", {"acme": "old"}, {}, version="1.0")
    folder = tmp_path / "newer"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    install.folder = folder
    install("Acme.Tools", {"acme": "new"}, {}, version="2.0")
    acme = [plugin for plugin in installed_plugins(BACKENDS) if plugin.name == "acme"]
    assert [(plugin.value, plugin.version) for plugin in acme] == [("new", "2.0")]


def test_an_archive_on_the_path_is_left_to_importlib_metadata(tmp_path, monkeypatch):
    archive = tmp_path / "acme.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("acme-1.0.dist-info/METADATA", "Name: acme\nVersion: 1.0\n")
        file.writestr("acme-1.0.dist-info/entry_points.txt", f"[{BACKENDS}]\nacme = acme_zip\n")
    monkeypatch.syspath_prepend(str(archive))
    assert ("acme", "acme_zip", "acme", "1.0") in _by_folders(BACKENDS)


def test_an_importer_with_its_own_distributions_is_asked(monkeypatch):
    class Importer:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return None

        @staticmethod
        def find_distributions(context):
            return []

    monkeypatch.setattr(sys, "meta_path", [Importer, *sys.meta_path])
    assert _by_folders(BACKENDS) == _by_metadata(BACKENDS)


def test_damaged_metadata_is_passed_over(install):
    install("acme-tools", {"acme": "acme_tools"}, {})
    file = install.folder / "acme_tools-1.0.dist-info" / "entry_points.txt"
    file.write_bytes(b"\xff\xfe[dovetail.backends\nnonsense\n[dovetail.backends]\nacme = a\n= b\nc")
    (install.folder / "acme_tools-1.0.dist-info" / "METADATA").unlink()
    found = {p.name: p for p in installed_plugins(BACKENDS) if p.name not in ("cuda", "tpu")}
    assert found["acme"].origin == "acme_tools 1.0"


def test_folders_that_cannot_be_read_are_passed_over(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path / "absent"))
    assert {plugin.name for plugin in installed_plugins(BACKENDS)} >= {"cpu"}


def test_load_follows_the_value(install):
    install("acme-tools", {}, {"acme_tools": "class A:\n    b = 3\n"})
    assert FoundPlugin("x", "acme_tools:A.b").load() == 3
    assert FoundPlugin("x", "acme_tools").load().A.b == 3


def test_of_two_offers_the_project_s_own_is_kept_and_the_other_reported():
    offers = [
        FoundPlugin("cpu", "a", "aardvark", "3"),
        FoundPlugin("cpu", "b", "dovetail-cpu", "1"),
        FoundPlugin("npu", "c", "zebra", "1"),
        FoundPlugin("npu", "d", "badger", "2"),
    ]
    for order in (offers, offers[::-1]):
        found, failures = find_plugins(BACKENDS, lambda group, order=order: order)
        assert list(found) == ["cpu", "npu"]
        assert [found[name].distribution for name in found] == ["dovetail-cpu", "badger"]
        assert [(f.name, f.distribution, f.phase) for f in failures] == [
            ("cpu", "aardvark 3", "find"),
            ("npu", "zebra 1", "find"),
        ]
        assert "aardvark 3 and dovetail-cpu 1 both offer 'cpu'" in str(failures[0])
