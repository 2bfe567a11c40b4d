"""The cache of compiled programs on disk."""

from dovetail._core.runtime.programs.disk_cache import reset_cache as reset_cache
from dovetail._core.runtime.programs.disk_cache import set_cache_dir as set_cache_dir

__all__ = ["reset_cache", "set_cache_dir"]
