"""What is raised where ONNX cannot express something."""

from __future__ import annotations

__all__ = ["ExportError", "Refusal"]


class Refusal(Exception):
    """One equation cannot be expressed. It becomes a line of an `ExportError`.

    Args:
        message: why, and what to write instead.
    """


class ExportError(NotImplementedError):
    """A program cannot be expressed in ONNX; the text lists everything that is in the way.

    Args:
        message: the text of the error.
    """
