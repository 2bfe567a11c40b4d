"""Functions with custom rules: `custom_jvp`, `custom_vjp`, `custom_vmap` and relatives.

Imports `calls`, `elementwise`, `checks`, `control` and `loops`.
"""
