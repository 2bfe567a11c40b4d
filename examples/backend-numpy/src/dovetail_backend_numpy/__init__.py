"""A backend of dovetail without a compiler: it computes programs equation by equation in NumPy."""
