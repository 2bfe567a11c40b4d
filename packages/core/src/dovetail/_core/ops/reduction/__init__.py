"""Operators that combine the elements along dimensions, to one value or step by step.

Imports `calls`, `elementwise` and `shape`.
"""
