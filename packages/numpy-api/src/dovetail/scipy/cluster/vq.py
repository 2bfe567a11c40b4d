"""Codes of vectors."""
