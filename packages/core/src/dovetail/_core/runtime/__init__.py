"""Devices, arrays, programs and calls: one folder each, where later ones import earlier ones.

Imports the layers up to `lower`.
"""
