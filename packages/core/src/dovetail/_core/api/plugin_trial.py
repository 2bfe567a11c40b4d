"""The process in which the doctor tries plug-ins."""

from __future__ import annotations

import warnings

from dovetail._core.base import config
from dovetail._core.plugins.manager import use_manager
from dovetail._core.plugins.protocols import Client
from dovetail._core.plugins.trial import Reporter, TrialManager, try_plugin

__all__ = ["run_trial"]


def run_trial(file: int, patience: float, *plugins: str) -> None:
    """Try plug-ins one after the other, and write what comes of each.

    Args:
        file: the descriptor to write to.
        patience: seconds after which the stack is written, for each plug-in.
        plugins: each as its group, a slash, and its name.
    """
    warnings.simplefilter("ignore", RuntimeWarning)  # the doctor tells every failure itself
    report = Reporter(file, patience)
    # There is one plug-in at a time, whatever is requested; and nobody to be told of waits.
    config.platforms.set_global(None)
    config.platform_name.set_global(None)
    config.slow_plugin_seconds.set_global(0.0)
    for plugin in plugins:
        group, _, name = plugin.partition("/")
        report.begin(group, name)
        manager = TrialManager(group, name, report)
        use_manager(manager)
        try_plugin(manager, report, _connect)


def _connect(platform: str) -> Client:
    from dovetail._core.runtime.devices import clients  # deferred: most plug-ins cannot run here

    client: Client = clients.backend(platform)
    return client
