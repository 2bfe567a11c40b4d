"""Finding plug-ins without importing them."""

from __future__ import annotations

import importlib.metadata
import sys
import zipfile

import pytest

from dovetail._core.plugins import discovery
from dovetail._core.plugins.discovery import (
    BACKENDS,
    EXTENSIONS,
    FoundPlugin,
    InstalledPlugins,
    copies,
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
        FoundPlugin("cpu", "dovetail_cpu.plugin", "dovetail-cpu", "1"),
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


# Distributions that take the name of the CPU backend's: name
# and entry point. None of them has the module.
THIEVES = {
    "another module": ("Dovetail.Cpu", "evil_cpu"),
    "the same name": ("dovetail-cpu", "evil_cpu"),
    "a name with underscores": ("dovetail_cpu", "evil_cpu:plugin"),
    "the module's name alone": ("DOVETAIL__CPU", "dovetail_cpu.plugin"),
    "nothing": ("dovetail-cpu", ""),
}


def _write_cpu(folder, name, value, version, *, owns):
    """A distribution of a CPU backend, with a list of its files."""
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    text = f"[{BACKENDS}]\ncpu = {value}\n" if value else ""
    (metadata / "entry_points.txt").write_text(text)
    files = {"module": "dovetail_cpu/plugin.py,,\n", "editable": "_editable_dovetail_cpu.pth,,\n"}
    (metadata / "RECORD").write_text(files.get(owns, "evil_cpu.py,,\n"))


@pytest.mark.parametrize("by_metadata", [False, True])
@pytest.mark.parametrize("owns", ["module", "editable"])
@pytest.mark.parametrize("place", ["before", "beside", "after"])
@pytest.mark.parametrize("thief", THIEVES)
def test_our_own_distribution_is_known_by_its_files(
    tmp_path, monkeypatch, thief, place, owns, by_metadata
):
    name, value = THIEVES[thief]
    own, other = tmp_path / "own", tmp_path / ("own" if place == "beside" else "other")
    _write_cpu(own, "dovetail-cpu", "dovetail_cpu.plugin", "0.1.0", owns=owns)
    _write_cpu(other, name, value, "9", owns=False)
    path = [str(other), str(own)] if place == "before" else [str(own), str(other)]
    monkeypatch.setattr(sys, "path", list(dict.fromkeys(path)))
    if by_metadata:
        monkeypatch.setattr(discovery, "_only_folders", lambda: False)
    found, failures = find_plugins(BACKENDS, InstalledPlugins())
    assert (found["cpu"].value, found["cpu"].version) == ("dovetail_cpu.plugin", "0.1.0")
    assert [(f.name, f.phase) for f in failures] == ([("cpu", "find")] if value else [])
    assert copies(BACKENDS, InstalledPlugins()) == [], "that one is hidden would not be true"
    for failure in failures:
        assert f"{name} 9 in {other} calls itself dovetail-cpu" in str(failure)
        assert f"dovetail-cpu 0.1.0 in {own} is used" in str(failure)


def test_copies_of_one_distribution_are_no_conflict(tmp_path, monkeypatch):
    for number in "12":
        _write_cpu(tmp_path / number, "dovetail-cpu", "dovetail_cpu.plugin", number, owns="module")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "2"), str(tmp_path / "1")])
    source = InstalledPlugins()
    found, failures = find_plugins(BACKENDS, source)
    assert (found["cpu"].version, failures) == ("2", [])
    (text,) = copies(BACKENDS, source)
    assert text == (
        f"dovetail-cpu 1 in {tmp_path / '1'} is not used: dovetail-cpu 2 in {tmp_path / '2'} "
        "stands earlier on sys.path"
    )


def test_a_distribution_without_a_list_of_files_has_those_beside_it(tmp_path, monkeypatch):
    _write_cpu(tmp_path / "a", "dovetail-cpu", "dovetail_cpu.plugin", "1", owns=False)
    _write_cpu(tmp_path / "b", "dovetail-cpu", "dovetail_cpu.plugin", "2", owns=False)
    (tmp_path / "b" / "dovetail_cpu-2.dist-info" / "RECORD").unlink()
    (tmp_path / "b" / "dovetail_cpu").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "a"), str(tmp_path / "b")])
    assert find_plugins(BACKENDS, InstalledPlugins())[0]["cpu"].version == "2"


def test_a_distribution_may_hide_another_that_offers_more(install, tmp_path, monkeypatch):
    install("acme-tools", {"acme": "old"}, {}, version="1.0")
    folder = tmp_path / "newer"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    install.folder = folder
    install("acme-tools", {"other": "new"}, {}, version="2.0")
    found, failures = find_plugins(BACKENDS, InstalledPlugins())
    assert "other" in found
    assert "acme" not in found
    assert failures == []


def test_a_third_party_that_names_itself_as_we_do_is_not_ours():
    assert FoundPlugin("cpu", "dovetail_cpu.plugin", "dovetail-cpu", "1").is_ours
    assert not FoundPlugin("acme", "dovetail_acme.plugin", "dovetail-acme", "1").is_ours
    assert not FoundPlugin("cpu", "evil.plugin", "dovetail-cpu", "1").is_ours
