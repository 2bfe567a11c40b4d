"""`jit`, `grad`, `vmap` and the others as users see them: arguments checked, trees flattened.

Imports all layers.
"""
