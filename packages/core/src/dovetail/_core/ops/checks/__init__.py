"""Checks at run time that a program reports by a value: what `dovetail.experimental.checkify` is
made of."""
