"""The names of `dovetail.scipy.fft`, for type checkers and at run time."""
