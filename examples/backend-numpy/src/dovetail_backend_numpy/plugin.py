"""The hooks by which dovetail finds and starts the backend. Importing it loads nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Describe the backend: never the default where another one can run."""
    return BackendInfo(
        platform="numpy",
        api=(1, 1),
        priority=-1,
        description="NumPy, on the host",
        capabilities=frozenset(
            {"complex", "donation", "eig", "float64", "host_callbacks", "schur"}
        ),
        programs="jaxpr",
    )


@hookimpl
def dovetail_make_client(platform: str, options: Mapping[str, object]) -> Any:
    """Create the client.

    Args:
        platform: `"numpy"`.
        options: `num_devices` (int, default 1): how many devices; `fallback` (str, default that
            of the environment variable `NUMPY_DEVICE_FALLBACK`, or none): the platform that
            computes operations for which there is no rule.
    """
    from numpy_device.runtime import Client  # deferred: loads NumPy

    return Client(options)
