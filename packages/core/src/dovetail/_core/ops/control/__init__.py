"""Structured control flow: branches and loops, as primitives whose parameters are jaxprs.

In these jaxprs nothing is captured: what a user's function captures becomes leading operands, so
that every transformation sees it.
"""
