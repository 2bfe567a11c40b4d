"""Tracebacks that end at the line of the user's code, for the functions of an API.

`publish` puts the functions of a public module behind boundaries, at which an exception loses the
frames of the framework; `lazy_names` does so, too. `boundary` is for a single function or method,
`bounded` for the methods of a class, and `hide_frames` for an exception that was caught.
`add_internal_folder` says that the files of a folder are no user's.
"""

from dovetail._core.base.source import add_internal_folder as add_internal_folder
from dovetail._core.base.tracebacks import boundary as boundary
from dovetail._core.base.tracebacks import bounded as bounded
from dovetail._core.base.tracebacks import hide_frames as hide_frames
from dovetail._core.base.tracebacks import publish as publish

__all__ = ["add_internal_folder", "boundary", "bounded", "hide_frames", "publish"]
