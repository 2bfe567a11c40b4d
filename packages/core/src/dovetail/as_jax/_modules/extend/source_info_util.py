"""The module `jax.extend.source_info_util`."""

from dovetail._core.alias.places import current as current
from dovetail._core.alias.places import new_source_info as new_source_info
from dovetail._core.alias.places import summarize as summarize
from dovetail._core.alias.places import user_context as user_context
from dovetail._core.base.source import add_internal_folder as register_exclusion
from dovetail._core.ir.jaxpr import SourceInfo as SourceInfo
