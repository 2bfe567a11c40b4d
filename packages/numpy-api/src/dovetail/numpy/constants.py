"""Named constants: Python floats, and therefore weakly typed."""

from __future__ import annotations

import math
from typing import Final

pi: Final = math.pi
e: Final = math.e
euler_gamma: Final = 0.57721566490153286060651209008240243
inf: Final = math.inf
nan: Final = math.nan
newaxis: Final = None
