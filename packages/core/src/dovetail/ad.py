"""What is wanted of the function that `vjp` returns: gradients as values, in references, or not."""

from dovetail._core.api.backward_passes import DidntWant as DidntWant
from dovetail._core.api.backward_passes import DontWant as DontWant
from dovetail._core.api.backward_passes import GradRef as GradRef
from dovetail._core.api.backward_passes import GradValue as GradValue
from dovetail._core.base.tracebacks import publish as _publish

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]

_publish(globals())
