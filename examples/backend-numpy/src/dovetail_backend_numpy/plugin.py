"""The hooks by which dovetail finds and starts the backend. Importing it loads nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.extend import BackendInfo, hookimpl


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Describe the backend: with this priority it is never the default."""
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
def dovetail_probe(platform: str) -> str:
    """Say whether the hardware is there: "" if it is, otherwise which is not, in a sentence."""
    return ""


@hookimpl
def dovetail_make_client(platform: str, options: Mapping[str, object]) -> Any:
    """Create the client.

    Args:
        platform: `"numpy"`.
        options: `num_devices` (int, default that of the environment variable `NUMPY_NUM_DEVICES`,
            or 1): how many devices; `fallback` (str, default that of `NUMPY_FALLBACK`, or none):
            the platform that computes operations for which there is no rule.
    """
    from dovetail_backend_numpy.runtime import Client  # deferred: loads NumPy

    return Client(options)
