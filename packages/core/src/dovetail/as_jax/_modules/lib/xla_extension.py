"""The module `jax.lib.xla_extension`."""

from dovetail.errors import JaxRuntimeError as JaxRuntimeError
from dovetail.errors import JaxRuntimeError as XlaRuntimeError
