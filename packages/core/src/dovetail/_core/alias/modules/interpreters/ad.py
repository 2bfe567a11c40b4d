"""The module `jax.interpreters.ad`: derivatives of primitives."""

from dovetail._core.alias.rules import UndefinedPrimal as UndefinedPrimal
from dovetail._core.alias.rules import defbilinear as defbilinear
from dovetail._core.alias.rules import defjvp as defjvp
from dovetail._core.alias.rules import defjvp2 as defjvp2
from dovetail._core.alias.rules import deflinear as deflinear
from dovetail._core.alias.rules import deflinear2 as deflinear2
from dovetail._core.alias.rules import get_primitive_transpose as get_primitive_transpose
from dovetail._core.alias.rules import is_undefined_primal as is_undefined_primal
from dovetail._core.alias.rules import primitive_jvps as primitive_jvps
from dovetail._core.alias.rules import primitive_transposes as primitive_transposes
from dovetail._core.basis.elementwise import add_tangents as add_tangents
from dovetail._core.basis.structural import instantiate_zeros as instantiate_zeros
from dovetail._core.trace.zeros import Zero as Zero
from dovetail._core.transform.jvp import JVPTrace as JVPTrace
from dovetail._core.transform.jvp import JVPTracer as JVPTracer
from dovetail.extend.core.primitives import add_jaxvals_p as add_jaxvals_p
