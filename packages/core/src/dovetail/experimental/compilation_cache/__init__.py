"""The cache of compiled programs on disk: see `compilation_cache.compilation_cache`."""

from dovetail.experimental.compilation_cache import compilation_cache as compilation_cache

__all__ = ["compilation_cache"]
