"""Sums of products: `dot_general` and its ragged and scaled forms, and Fourier transforms.

Imports `elementwise`, `shape`, `indexing` and `reduction`.
"""
