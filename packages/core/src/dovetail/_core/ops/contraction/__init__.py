"""Sums of products: `dot_general` and its ragged and scaled forms, and Fourier transforms.

Imports `calls`, `elementwise`, `shape`, `indexing`, `reduction` and `parallel`.
"""
