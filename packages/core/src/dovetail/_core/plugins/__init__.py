"""Plug-ins: the hooks, discovery, loading, isolation, and the doctor.

Imports `base` and `ir`.
"""
