"""The machinery, which is private: layers of which each imports those before it.

docs/design.md of the repository lists them in order.
"""
