"""The module `jax.extend.ifrt_programs`."""

from dovetail._core.base.bindings import _jax

ifrt_programs = _jax.ifrt_programs
