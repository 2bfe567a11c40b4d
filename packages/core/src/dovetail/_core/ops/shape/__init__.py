"""Operators that move, repeat, cut and join elements, and arrays built from a shape alone.

Imports `elementwise`.
"""
