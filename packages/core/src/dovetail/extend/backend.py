"""Clients of platforms, and backends made in this process."""

from dovetail._core.api.backends import backend_xla_version as backend_xla_version
from dovetail._core.api.backends import backends as backends
from dovetail._core.api.backends import clear_backends as clear_backends
from dovetail._core.api.backends import (
    clear_in_memory_compilation_cache as clear_in_memory_compilation_cache,
)
from dovetail._core.api.backends import get_backend as get_backend
from dovetail._core.api.backends import get_compile_options as get_compile_options
from dovetail._core.api.backends import get_default_device as get_default_device
from dovetail._core.api.backends import register_backend_cache as register_backend_cache
from dovetail._core.api.backends import register_backend_factory as register_backend_factory

__all__ = [
    "backend_xla_version",
    "backends",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "get_backend",
    "get_compile_options",
    "get_default_device",
    "register_backend_cache",
    "register_backend_factory",
]
