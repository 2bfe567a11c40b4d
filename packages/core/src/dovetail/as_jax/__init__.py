"""Programs written for JAX, unmodified: `import jax` gives dovetail from here on.

Importing this module is all there is to do, before anything imports `jax`:

- ``python -m dovetail.as_jax program.py``, ``-m module`` or ``-c code``;
- ``pytest -p dovetail.as_jax``;
- ``import dovetail.as_jax`` in the first cell of a notebook;
- ``DOVETAIL_AS_JAX=1`` in the environment, for processes that a program starts.

The modules are dovetail's own: ``jax.numpy is dovetail.numpy``. What libraries use of JAX beyond
its documented API (``jax.interpreters``, ``jax.extend``, ``jax._src``) is given where it maps onto
dovetail. An installed jax is neither read nor changed.

Example:
    >>> import dovetail.as_jax  # doctest: +SKIP
    >>> import jax.numpy as jnp  # doctest: +SKIP
"""

from dovetail._core.alias.activation import activate as activate
from dovetail._core.alias.missing import missing_names as missing_names

__all__ = ["activate", "missing_names"]

activate()
