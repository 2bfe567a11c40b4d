"""What runs: arguments, compilation, the cache on disk, effects, the host's side of callbacks.

Imports `devices` and `arrays`.
"""
