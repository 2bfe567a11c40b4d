"""Unstable APIs: import each module here by its own name."""

import os as _os

import dovetail as _dovetail
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ops.callbacks.values import io_callback as io_callback

__all__ = ["io_callback"]

# In wheels this is one folder; in editable installs dovetail-numpy has its own.
__path__ = [_os.path.join(folder, "experimental") for folder in _dovetail.__path__]

_publish(globals())
