"""The module `jax._src.ad_util`."""

from dovetail._core.trace.zeros import Zero as Zero
from dovetail.custom_derivatives import SymbolicZero as SymbolicZero
from dovetail.extend.core.primitives import add_jaxvals_p as add_any_p
from dovetail.extend.core.primitives import add_jaxvals_p as add_jaxvals_p
from dovetail.extend.core.primitives import stop_gradient_p as stop_gradient_p
