"""dovetail.extend.backend: clients, compile options, and backends that a process makes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import dovetail as dt
from dovetail.extend import backend
from dovetail.extend import manager as plugins


def test_clients() -> None:
    clients = backend.backends()
    assert next(iter(clients)) == dt.default_backend()
    for name, client in clients.items():
        assert backend.get_backend(name) is client
        assert backend.get_backend(client) is client
    assert backend.get_backend() is backend.get_backend(dt.default_backend())
    with pytest.raises(dt.errors.BackendUnavailableError, match="abacus"):
        backend.get_backend("abacus")
    assert backend.backend_xla_version("cpu") is None


def test_default_device() -> None:
    assert backend.get_default_device() == dt.devices()[0]
    last = dt.devices("cpu")[-1]
    with dt.default_device(last):
        assert backend.get_default_device() == last


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2)])
def test_compile_options(shape: tuple[int, int]) -> None:
    options = backend.get_compile_options(
        *shape,
        device_assignment=list(range(shape[0] * shape[1])),
        env_options_overrides={"xla_dump_max_hlo_modules": 3},
    )
    assert (options.num_replicas, options.num_partitions) == shape
    assignment = options.device_assignment
    assert (assignment.replica_count(), assignment.computation_count()) == shape
    assert options.env_option_overrides == [("xla_dump_max_hlo_modules", 3)]
    assert backend.get_compile_options(*shape).device_assignment is None
    with pytest.raises(ValueError, match="device_assignment has 7"):
        backend.get_compile_options(*shape, device_assignment=range(7))


def test_in_memory_cache() -> None:
    double = dt.jit(lambda x: x * 2)
    assert double(3) == 6
    backend.clear_in_memory_compilation_cache()
    assert double(3) == 6
    assert double(3.0) == 6


numbers = itertools.count()


@pytest.fixture
def acme() -> Iterator[str]:
    """The name of a platform, which ends with the test; its client would stay."""
    name = f"acme{next(numbers)}"
    yield name
    plugins().unregister(name)


@pytest.mark.parametrize("priority", [-5, 0, 5])
def test_backends_of_factories(acme: str, priority: int) -> None:
    made: list[Any] = []

    def factory() -> Any:
        made.append(backend.get_backend("cpu"))
        return made[0]

    backend.register_backend_factory(acme, factory, priority=priority)
    assert made == []
    assert dt.devices(acme) == dt.devices("cpu")
    assert backend.get_backend(acme) is made[0]
    assert len(made) == 1
    with pytest.raises(ValueError, match="acme"):
        backend.register_backend_factory(acme, factory)


def test_factories_that_fail(acme: str) -> None:
    def factory() -> Any:
        raise OSError("no abacus is connected")

    backend.register_backend_factory(acme, factory)
    assert float(dt.jit(lambda x: x + 1)(1)) == 2
    with pytest.raises(dt.errors.BackendUnavailableError, match="no abacus is connected"):
        dt.devices(acme)


def test_what_has_failed_is_forgotten_when_it_goes() -> None:
    def factory() -> Any:
        raise OSError("no abacus is connected")

    backend.register_backend_factory("acme_gone", factory, priority=5)
    for _ in range(2):
        with pytest.raises(dt.errors.BackendUnavailableError, match="no abacus is connected"):
            dt.devices("acme_gone")
    plugins().unregister("acme_gone")
    assert dt.devices() == dt.devices("cpu")  # without a warning
    backend.register_backend_factory("acme_gone", lambda: backend.get_backend("cpu"))
    assert dt.devices("acme_gone") == dt.devices("cpu")
    plugins().unregister("acme_gone")
    assert not [failure for failure in plugins().failures if failure.name == "acme_gone"]


def test_mistakes() -> None:
    with pytest.raises(NotImplementedError, match="load_plugin"):
        backend.register_backend_factory("acme", lambda: None, c_api=object())
    with pytest.raises(TypeError, match=r"cache for tables needs a method cache_clear"):
        backend.register_backend_cache({}, "tables")  # type: ignore[arg-type]


def test_caches_are_cleared_with_the_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    from dovetail._core.runtime.devices import clients

    called: list[Any] = []
    monkeypatch.setattr(clients, "_clear_functions", [])

    @functools.lru_cache
    def devices_of(client: Any) -> Any:
        called.append(client)
        return client.devices()

    backend.register_backend_cache(devices_of, "devices by client")
    client = backend.get_backend("cpu")
    devices_of(client), devices_of(client)
    (clear,) = clients._clear_functions
    clear()
    devices_of(client)
    assert len(called) == 2
