"""Compiled programs on disk: hits, damage, limits, refusals, concurrent processes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import dovetail as dt
from dovetail._core.base import config
from dovetail._core.runtime.programs import compilation, disk_cache
from dovetail._core.runtime.programs.disk_cache import DiskCache
from dovetail.errors import CompilationCacheWarning


class Program:
    """Stands for an executable."""

    def __init__(self, payload: bytes = b"code"):
        self.payload = payload

    def serialize(self):
        if not self.payload:
            raise RuntimeError("this backend writes nothing down")
        return self.payload


def key(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "programs"


@pytest.fixture
def cache(folder):
    return DiskCache(folder)


def test_store_and_read(cache, folder):
    assert cache.read(key(1)) is None
    cache.store(key(1), Program(b"one"), "p")
    cache.store(key(2), Program(b""), "p")  # a backend that cannot serialise
    assert cache.read(key(1)) == b"one"
    assert cache.read(key(2)) is None
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o077 for path in folder.iterdir()] == [0]
    assert DiskCache(folder).read(key(1)) == b"one"


def test_small_programs_are_not_stored(cache):
    with config.persistent_cache_min_entry_size_bytes(4):
        cache.store(key(1), Program(b"one"), "p")
        cache.store(key(2), Program(b"four"), "p")
    assert cache.read(key(1)) is None
    assert cache.read(key(2)) == b"four"
    with config.persistent_cache_min_entry_size_bytes(-1):
        cache.store(key(1), Program(b"one"), "p")
    assert cache.read(key(1)) == b"one"


DAMAGE = {
    "empty": lambda data: b"",
    "cut in the header": lambda data: data[:10],
    "cut in the payload": lambda data: data[:-1],
    "longer": lambda data: data + b"x",
    "one bit": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "other format": lambda data: b"X" + data[1:],
    "text": lambda data: b"hello" * 100,
    "another length": lambda data: data[:16] + b"\xff" * 8 + data[24:],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_entries_are_misses(cache, folder, damage):
    cache.store(key(1), Program(b"payload"), "p")
    (path,) = folder.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert cache.read(key(1)) is None
    assert not path.exists()
    cache.store(key(1), Program(b"again"), "p")
    assert cache.read(key(1)) == b"again"


def test_an_entry_that_the_backend_refuses_is_a_miss(tmp_path):
    folder = tmp_path / "programs"
    with config.compilation_cache_dir(str(folder)):
        x = dt.device_put(np.float32(3))
        assert dt.jit(lambda v: dt.lax.add(v, 41.0))(x).item() == 44
        for path in folder.iterdir():  # right checksum, wrong content
            payload = b"no executable at all"
            header = disk_cache._HEADER.pack(
                disk_cache._MAGIC, len(payload), hashlib.sha256(payload).digest()
            )
            path.write_bytes(header + payload)
        compilation.clear()
        assert dt.jit(lambda v: dt.lax.add(v, 41.0))(x).item() == 44


def test_a_folder_in_place_of_an_entry_is_a_miss(cache, folder):
    cache.store(key(1), Program(), "p")
    (folder / (key(2) + ".program")).mkdir()
    with pytest.warns(CompilationCacheWarning, match="cannot be read"):
        assert cache.read(key(2)) is None
    assert cache.read(key(1)) == b"code"


def test_least_recently_used_entries_go(folder):
    cache = DiskCache(folder, max_bytes=10_000)
    for number in range(8):
        cache.store(key(number), Program(bytes(1000)), "p")
        then = time.time() - 1000 + number
        os.utime(folder / (key(number) + ".program"), (then, then))
    assert cache.read(key(0)) is not None  # now the most recently used one
    for number in range(8, 12):
        cache.store(key(number), Program(bytes(1000)), "p")
    kept = {number for number in range(12) if cache.read(key(number)) is not None}
    assert 0 in kept
    assert 11 in kept
    assert 1 not in kept
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 10_000


def test_eviction_survives_vanishing_files(folder, monkeypatch):
    cache = DiskCache(folder, max_bytes=3000)
    for number in range(2):
        cache.store(key(number), Program(bytes(1000)), "p")
    entries = list(cache._entries())
    for path, _, _ in entries:
        os.unlink(path)
    monkeypatch.setattr(cache, "_entries", lambda: iter(entries * 3))
    cache.evict()


def test_left_over_temporary_files_go(cache, folder):
    cache.store(key(1), Program(), "p")
    old, new = folder / "abc.partial", folder / "def.partial"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    list(cache._entries())
    assert not old.exists()
    assert new.exists()


def test_failed_write_leaves_nothing(cache, folder, monkeypatch):
    cache.store(key(1), Program(), "p")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(CompilationCacheWarning, match="No space left"):
        cache.store(key(2), Program(), "p")
    assert len(list(folder.iterdir())) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.store(key(3), Program(), "p")  # only one warning
        assert cache.read(key(1)) is not None  # a folder that can only be read is


posix_only = pytest.mark.skipif(
    not hasattr(os, "geteuid"), reason="Windows has no owners and modes"
)


@posix_only
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_folder_that_others_can_write_is_refused(folder, mode):
    folder.mkdir()
    folder.chmod(mode)
    cache = DiskCache(folder)
    with pytest.warns(CompilationCacheWarning, match=f"mode {mode:o}.*chmod 700"):
        cache.store(key(1), Program(), "p")
    cache.store(key(2), Program(), "p")  # a second warning would be an error here
    assert cache.read(key(1)) is None
    assert list(folder.iterdir()) == []


@posix_only
def test_folder_of_another_user_is_refused(folder, monkeypatch):
    DiskCache(folder).store(key(1), Program(), "p")
    monkeypatch.setattr(disk_cache, "_user_ids", lambda: (12345,))
    with pytest.warns(CompilationCacheWarning, match="belongs to another user"):
        assert DiskCache(folder).read(key(1)) is None


@posix_only
def test_sticky_folders_serve_own_files_only(folder):
    folder.mkdir()
    folder.chmod(0o1777)
    cache = DiskCache(folder)
    cache.store(key(1), Program(), "p")
    assert cache.read(key(1)) == b"code"
    (path,) = folder.iterdir()
    path.chmod(0o666)
    assert cache.read(key(1)) is None


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(tmp_path / "file" / "programs")
    with pytest.warns(CompilationCacheWarning, match="cannot be made or read"):
        cache.store(key(1), Program(), "p")
    cache.store(key(2), Program(), "p")
    assert cache.read(key(1)) is None


def test_errors_can_be_raised(folder):
    folder.parent.joinpath("file").write_text("")
    with config.raise_persistent_cache_errors(True):
        with pytest.raises(RuntimeError, match="is not used"):
            DiskCache(folder.parent / "file" / "x").store(key(1), Program(), "p")
        cache = DiskCache(folder)
        cache.store(key(1), Program(), "p")
        next(folder.iterdir()).write_bytes(b"")
        with pytest.raises(RuntimeError, match="too short"):
            cache.read(key(1))


def test_switched_off(tmp_path):
    with config.enable_compilation_cache(False):
        assert disk_cache.current() is None
    with config.compilation_cache_dir(str(tmp_path)):
        cache = disk_cache.current()
        assert cache is not None
        assert cache.folder == tmp_path
        assert cache is disk_cache.current()


def test_default_folder(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert disk_cache.default_folder() == Path("/somewhere/dovetail") or sys.platform != "linux"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert disk_cache.default_folder().is_absolute()


def test_the_key_tells_apart():
    client, devices = dt.devices()[0].client, tuple(dt.devices()[:1])
    base = (b"module", b"options", "cpu", client, devices)
    keys = {disk_cache.entry_key(*base)}
    for place, other in ((0, b"modul"), (1, b"option"), (4, tuple(dt.devices()[:2]))):
        keys.add(disk_cache.entry_key(*base[:place], other, *base[place + 1 :]))
    assert len(keys) == 4
    assert all(len(one) == 64 for one in keys)


def test_the_key_depends_on_flags(monkeypatch):
    client, devices = dt.devices()[0].client, tuple(dt.devices()[:1])
    before = disk_cache.entry_key(b"m", b"o", "cpu", client, devices)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert disk_cache.entry_key(b"m", b"o", "cpu", client, devices) != before


CODE = """
import sys
import numpy as np
import dovetail as dt
from dovetail._core.runtime.programs import compilation
f = dt.jit(lambda x: dt.lax.mul(dt.lax.sin(x), 2.5))
np.testing.assert_allclose(np.asarray(f(np.float32([1, 2]))), 2.5 * np.sin([1, 2]), rtol=1e-6)
done = compilation.statistics()
print(done.compiled, done.loaded)
"""


def start(folder, code=CODE, **variables):
    environment = {**os.environ, "DOVETAIL_COMPILATION_CACHE_DIR": str(folder), **variables}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert err == ""
    return tuple(map(int, out.split()))


def test_a_second_process_compiles_nothing(folder):
    compiled, loaded = finish(start(folder))
    assert compiled >= 1
    assert loaded == 0
    assert finish(start(folder)) == (0, compiled)
    off = finish(start(folder, DOVETAIL_ENABLE_COMPILATION_CACHE="0"))
    assert off == (compiled, 0)


def test_other_flags_other_entries(folder):
    compiled, _ = finish(start(folder))
    assert finish(start(folder, XLA_FLAGS="--xla_cpu_multi_thread_eigen=false")) == (compiled, 0)


def test_concurrent_processes(folder):
    processes = [start(folder) for _ in range(3)]
    for process in processes:
        finish(process)
    assert finish(start(folder))[0] == 0
    assert not list(folder.glob("*.partial"))


def test_all_entries_damaged(folder):
    compiled, _ = finish(start(folder))
    for path in folder.iterdir():
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
    assert finish(start(folder)) == (compiled, 0)
    assert finish(start(folder)) == (0, compiled)
