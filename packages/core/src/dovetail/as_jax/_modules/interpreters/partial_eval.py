"""The module `jax.interpreters.partial_eval`."""

from dovetail._core.alias.flat_functions import PartialVal as PartialVal
from dovetail._core.alias.flat_functions import abstract_eval_fun as abstract_eval_fun
from dovetail._core.alias.flat_functions import close_jaxpr as close_jaxpr
from dovetail._core.alias.flat_functions import (
    convert_constvars_jaxpr as convert_constvars_jaxpr,
)
from dovetail._core.alias.flat_functions import dce_jaxpr as dce_jaxpr
from dovetail._core.alias.flat_functions import trace_to_jaxpr_dynamic as trace_to_jaxpr_dynamic
from dovetail._core.alias.flat_functions import trace_to_jaxpr_nounits as trace_to_jaxpr_nounits
from dovetail._core.transform.stage import StageTracer as DynamicJaxprTracer
