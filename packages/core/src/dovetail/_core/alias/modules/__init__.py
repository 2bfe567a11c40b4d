"""The module `jax`: all of `dovetail`, and the modules beside it."""

import sys

from dovetail._core.alias.finder import AliasFinder as _AliasFinder
from dovetail._core.alias.high_level_types import typeof as typeof
from dovetail._core.alias.unmapped_types import vmap as vmap

__version__ = next(f.version for f in sys.meta_path if isinstance(f, _AliasFinder))
__version_info__ = tuple(int(part) for part in __version__.split(".") if part.isdigit())
