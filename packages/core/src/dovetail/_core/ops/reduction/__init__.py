"""Operators that combine elements along dimensions, into one value or cumulatively.

Imports `calls`, `elementwise` and `shape`.
"""
