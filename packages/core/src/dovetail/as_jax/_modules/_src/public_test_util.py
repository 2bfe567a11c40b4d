"""The module `jax._src.public_test_util`."""

from dovetail._core.api.derivative_checks import check_close as check_close
from dovetail.test_util import *  # noqa: F403
