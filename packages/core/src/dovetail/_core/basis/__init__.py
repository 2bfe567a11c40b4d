"""Families of primitives, and the primitives that transformations themselves need.

Imports the layers up to `trace`.
"""
