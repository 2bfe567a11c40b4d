"""The names of `dovetail.experimental.sparse`, for type checkers and at run time."""

from dovetail.experimental.sparse.bcoo import BCOO as BCOO
from dovetail.experimental.sparse.bcoo import bcoo_fromdense as bcoo_fromdense
from dovetail.experimental.sparse.bcoo import bcoo_todense as bcoo_todense
from dovetail.experimental.sparse.sparsification import sparsify as sparsify
