"""The names of `dovetail.example_libraries`, for type checkers and at run time."""
