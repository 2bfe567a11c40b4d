"""The plug-in of this distribution: operators and methods of arrays, and what implements them.

Imports any module of `dovetail.numpy`; none of them imports this folder.
"""
