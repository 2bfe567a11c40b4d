"""The policy about mistakes that are errors here and pass in JAX.

`dovetail.as_jax` relaxes it, for programs that were written for JAX.

Example:
    >>> from dovetail.extend.strictness import strictness
    >>> strictness().integers_fit
    True
"""

from dovetail._core.base.strictness import Strictness as Strictness
from dovetail._core.base.strictness import strictness as strictness

__all__ = ["Strictness", "strictness"]
