"""Rematerialization: which values a checkpointed function keeps, and which it computes again.

Imports `calls`, `contraction`, `windows` and `control`.
"""
