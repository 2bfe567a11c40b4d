"""Programs that handle the part of one device, and what they exchange with the others.

Imports `calls`, `elementwise`, `indexing`, `reduction` and `shape`.
"""
