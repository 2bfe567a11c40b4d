"""`x[index]` and `x.at[index]`: indices parsed, planned as slices and gathers, read and updated.

Imports `dovetail.lax` and `dovetail.extend`, and nothing else from `dovetail.numpy`.
"""
