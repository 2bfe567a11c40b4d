"""Locks that are free in the child of a fork."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import Any

__all__ = ["shared_lock"]


def shared_lock() -> Any:
    """A reentrant lock that the child of a fork finds free if another thread held it.

    That thread does not exist in the child, and would never release it. For locks of modules: a
    lock made here is kept for ever.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(_free, lock))
    return lock


def _free(lock: Any) -> None:
    if not lock._is_owned():
        lock._at_fork_reinit()
