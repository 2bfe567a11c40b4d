"""Programs: arguments, compilation, the cache on disk, effects, callbacks on the host.

Imports `processes`, `devices` and `arrays`.
"""
