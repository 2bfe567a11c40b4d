"""The module `jax.experimental.hijax`."""

from dovetail._core.alias.high_level_types import HiPrim as HiPrim
from dovetail._core.alias.high_level_types import HiPspec as HiPspec
from dovetail._core.alias.high_level_types import HiType as HiType
from dovetail._core.alias.high_level_types import MappingSpec as MappingSpec
from dovetail._core.alias.high_level_types import aval_method as aval_method
from dovetail._core.alias.high_level_types import aval_property as aval_property
from dovetail._core.alias.high_level_types import register_hitype as register_hitype
from dovetail._core.alias.rules import is_undefined_primal as is_undefined_primal
from dovetail._core.basis.structural import instantiate_zeros as instantiate_zeros
from dovetail._core.ir.avals import AbstractValue as AbstractValue
from dovetail._core.ir.avals import ShapedArray as ShapedArray
from dovetail._core.trace.mutable_references import AbstractRef as AbstractRef
from dovetail._core.trace.zeros import Zero as Zero
