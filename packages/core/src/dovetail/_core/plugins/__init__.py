"""Plug-ins: hooks, how they are found, loaded and kept apart, and the doctor.

Imports `base` and `ir`.
"""
