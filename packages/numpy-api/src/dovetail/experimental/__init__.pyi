# Marker for type checkers in editable installs; it is left out of the wheel.
