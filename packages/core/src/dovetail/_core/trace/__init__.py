"""Primitives, traces and tracers, and the current trace of each thread.

Imports `base`, `ir` and `plugins`.
"""
