"""Methods that arrays and tracers gain where this distribution is installed."""

from __future__ import annotations

from dovetail.extend import ArrayMethods, hookimpl

_METHODS = {"numel": "tensors", "permute": "tensors", "unsqueeze": "tensors"}
_METHODS |= {"log_softmax": "functional", "relu": "functional", "softmax": "functional"}


@hookimpl
def dovetail_array_methods() -> ArrayMethods:
    """The functions by their places, so that they are imported when a method is first used."""
    places = {name: f"dovetail_torchlike.{module}:{name}" for name, module in _METHODS.items()}
    return ArrayMethods(methods=places)
