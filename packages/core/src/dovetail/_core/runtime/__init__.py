"""Processes, devices, arrays, programs and calls: a folder each; later ones import earlier ones.

Imports the layers up to `lower`.
"""
