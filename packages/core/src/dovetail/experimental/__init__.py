"""Unstable APIs: import each module here by its own name."""

from dovetail._core.ops.callbacks.values import io_callback as io_callback

__all__ = ["io_callback"]
