"""Operators that move, repeat, cut and join elements, and arrays made of a shape alone.

Imports `elementwise`.
"""
