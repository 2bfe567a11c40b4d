"""Families of primitives, and those primitives that transformations themselves need.

Imports the layers up to `trace`.
"""
