"""The plug-in of this distribution: operators and methods of arrays, and their functions.

Imports any module of `dovetail.numpy`, none of which imports this folder.
"""
