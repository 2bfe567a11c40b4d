"""Rematerialization: which values a checkpointed function saves, and which it recomputes.

Imports `calls`, `contraction`, `windows` and `control`.
"""
