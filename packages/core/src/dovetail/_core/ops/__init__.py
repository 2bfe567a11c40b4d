"""All other primitives, a folder for each family of them; each says which others it imports.

Imports the layers up to `transform`.
"""
