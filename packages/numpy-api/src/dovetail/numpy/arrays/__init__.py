"""The operators and methods of arrays: tables from their names to the functions of this package.

Imports any module of `dovetail.numpy`; only the plug-in imports this folder.
"""
