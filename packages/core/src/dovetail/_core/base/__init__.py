"""The foundation: errors, options, dtypes, pytrees, caches, source locations.

Imports nothing from the other layers.
"""
