"""The module `jax.version`."""

import sys as _sys

__version__ = _sys.modules["jax"].__version__
__version_info__ = _sys.modules["jax"].__version_info__
