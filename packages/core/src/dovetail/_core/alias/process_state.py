"""This process's place among those that compute together, as `jax._src.distributed` says it."""

from __future__ import annotations

from typing import Any, Final

from dovetail._core.runtime.processes import group


class GlobalState:
    """What is known of the processes that compute together."""

    @property
    def process_id(self) -> int:
        """The number of this process."""
        processes = group.current()
        return 0 if processes is None else processes.process_index

    @property
    def num_processes(self) -> int:
        """The number of processes."""
        processes = group.current()
        return 1 if processes is None else processes.process_count

    @property
    def client(self) -> Any:
        """jaxlib's client of the coordination service; None in a process that computes alone."""
        processes = group.current()
        return None if processes is None else processes.client


global_state: Final = GlobalState()
