"""Tests of a backend, run by ``pytest --pyargs dovetail.testing.suites``.

See `dovetail.testing.plugin` for the options.
"""
