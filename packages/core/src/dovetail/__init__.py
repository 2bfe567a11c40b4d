"""dovetail: composable function transformations over arrays, compiled by pluggable backends."""

from __future__ import annotations

import os
from pkgutil import extend_path

# `dovetail.numpy` and its siblings ship in the distribution dovetail-numpy: join that tree, and no other.
_home = __path__[0]
__path__ = [
    p
    for p in extend_path(__path__, __name__)
    if p == _home or os.path.isfile(f"{p}/numpy/__init__.py")
]
