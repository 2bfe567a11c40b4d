"""`jit`, `grad`, `vmap` and the other public functions: they check arguments and flatten trees.

Imports all layers.
"""
