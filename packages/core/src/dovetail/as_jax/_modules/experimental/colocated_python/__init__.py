"""The package `jax.experimental.colocated_python`."""

from dovetail._core.alias.colocated_functions import colocated_cpu_devices as colocated_cpu_devices
from dovetail._core.alias.colocated_functions import colocated_python as colocated_python
from dovetail._core.alias.colocated_functions import (
    colocated_python_class as colocated_python_class,
)
