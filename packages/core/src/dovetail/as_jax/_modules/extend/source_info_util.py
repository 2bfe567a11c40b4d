"""The module `jax.extend.source_info_util`."""

from dovetail._core.base.source import add_internal_folder as register_exclusion
