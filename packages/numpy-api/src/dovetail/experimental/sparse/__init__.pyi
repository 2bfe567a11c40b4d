"""The names of `dovetail.experimental.sparse`, for type checkers and at run time."""

from dovetail.experimental.sparse import linalg as linalg
from dovetail.experimental.sparse.bcoo import BCOO as BCOO
from dovetail.experimental.sparse.bcoo import bcoo_fromdense as bcoo_fromdense
from dovetail.experimental.sparse.bcoo import bcoo_todense as bcoo_todense
from dovetail.experimental.sparse.bcoo_arithmetic import bcoo_multiply_dense as bcoo_multiply_dense
from dovetail.experimental.sparse.bcoo_arithmetic import (
    bcoo_multiply_sparse as bcoo_multiply_sparse,
)
from dovetail.experimental.sparse.bcoo_convolution import (
    bcoo_conv_general_dilated as bcoo_conv_general_dilated,
)
from dovetail.experimental.sparse.bcoo_elements import bcoo_extract as bcoo_extract
from dovetail.experimental.sparse.bcoo_elements import bcoo_extract_p as bcoo_extract_p
from dovetail.experimental.sparse.bcoo_elements import bcoo_fromdense_p as bcoo_fromdense_p
from dovetail.experimental.sparse.bcoo_elements import bcoo_todense_p as bcoo_todense_p
from dovetail.experimental.sparse.bcoo_layouts import bcoo_transpose as bcoo_transpose
from dovetail.experimental.sparse.bcoo_layouts import bcoo_transpose_p as bcoo_transpose_p
from dovetail.experimental.sparse.bcoo_layouts import bcoo_update_layout as bcoo_update_layout
from dovetail.experimental.sparse.bcoo_order import bcoo_sort_indices as bcoo_sort_indices
from dovetail.experimental.sparse.bcoo_order import bcoo_sort_indices_p as bcoo_sort_indices_p
from dovetail.experimental.sparse.bcoo_order import bcoo_sum_duplicates as bcoo_sum_duplicates
from dovetail.experimental.sparse.bcoo_order import bcoo_sum_duplicates_p as bcoo_sum_duplicates_p
from dovetail.experimental.sparse.bcoo_products import bcoo_dot_general as bcoo_dot_general
from dovetail.experimental.sparse.bcoo_products import bcoo_dot_general_p as bcoo_dot_general_p
from dovetail.experimental.sparse.bcoo_products import (
    bcoo_dot_general_sampled as bcoo_dot_general_sampled,
)
from dovetail.experimental.sparse.bcoo_products import (
    bcoo_dot_general_sampled_p as bcoo_dot_general_sampled_p,
)
from dovetail.experimental.sparse.bcoo_products import bcoo_spdot_general_p as bcoo_spdot_general_p
from dovetail.experimental.sparse.bcoo_shapes import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from dovetail.experimental.sparse.bcoo_shapes import bcoo_concatenate as bcoo_concatenate
from dovetail.experimental.sparse.bcoo_shapes import bcoo_reduce_sum as bcoo_reduce_sum
from dovetail.experimental.sparse.bcoo_shapes import bcoo_reshape as bcoo_reshape
from dovetail.experimental.sparse.bcoo_shapes import bcoo_rev as bcoo_rev
from dovetail.experimental.sparse.bcoo_shapes import bcoo_squeeze as bcoo_squeeze
from dovetail.experimental.sparse.bcoo_slices import bcoo_dynamic_slice as bcoo_dynamic_slice
from dovetail.experimental.sparse.bcoo_slices import bcoo_gather as bcoo_gather
from dovetail.experimental.sparse.bcoo_slices import bcoo_slice as bcoo_slice
from dovetail.experimental.sparse.bcsr import BCSR as BCSR
from dovetail.experimental.sparse.bcsr import bcsr_broadcast_in_dim as bcsr_broadcast_in_dim
from dovetail.experimental.sparse.bcsr import bcsr_concatenate as bcsr_concatenate
from dovetail.experimental.sparse.bcsr import bcsr_dot_general as bcsr_dot_general
from dovetail.experimental.sparse.bcsr import bcsr_dot_general_p as bcsr_dot_general_p
from dovetail.experimental.sparse.bcsr import bcsr_extract as bcsr_extract
from dovetail.experimental.sparse.bcsr import bcsr_extract_p as bcsr_extract_p
from dovetail.experimental.sparse.bcsr import bcsr_fromdense as bcsr_fromdense
from dovetail.experimental.sparse.bcsr import bcsr_fromdense_p as bcsr_fromdense_p
from dovetail.experimental.sparse.bcsr import bcsr_sum_duplicates as bcsr_sum_duplicates
from dovetail.experimental.sparse.bcsr import bcsr_todense as bcsr_todense
from dovetail.experimental.sparse.bcsr import bcsr_todense_p as bcsr_todense_p
from dovetail.experimental.sparse.conversion import todense as todense
from dovetail.experimental.sparse.conversion import todense_p as todense_p
from dovetail.experimental.sparse.creation import empty as empty
from dovetail.experimental.sparse.creation import eye as eye
from dovetail.experimental.sparse.creation import random_bcoo as random_bcoo
from dovetail.experimental.sparse.derivatives import grad as grad
from dovetail.experimental.sparse.derivatives import jacfwd as jacfwd
from dovetail.experimental.sparse.derivatives import jacobian as jacobian
from dovetail.experimental.sparse.derivatives import jacrev as jacrev
from dovetail.experimental.sparse.derivatives import value_and_grad as value_and_grad
from dovetail.experimental.sparse.formats import (
    CuSparseEfficiencyWarning as CuSparseEfficiencyWarning,
)
from dovetail.experimental.sparse.formats import JAXSparse as JAXSparse
from dovetail.experimental.sparse.formats import SparseEfficiencyError as SparseEfficiencyError
from dovetail.experimental.sparse.formats import SparseEfficiencyWarning as SparseEfficiencyWarning
from dovetail.experimental.sparse.matrices import COO as COO
from dovetail.experimental.sparse.matrices import CSC as CSC
from dovetail.experimental.sparse.matrices import CSR as CSR
from dovetail.experimental.sparse.matrices import coo_fromdense as coo_fromdense
from dovetail.experimental.sparse.matrices import coo_matmat as coo_matmat
from dovetail.experimental.sparse.matrices import coo_matvec as coo_matvec
from dovetail.experimental.sparse.matrices import coo_todense as coo_todense
from dovetail.experimental.sparse.matrices import csr_fromdense as csr_fromdense
from dovetail.experimental.sparse.matrices import csr_matmat as csr_matmat
from dovetail.experimental.sparse.matrices import csr_matvec as csr_matvec
from dovetail.experimental.sparse.matrices import csr_todense as csr_todense
from dovetail.experimental.sparse.matrix_rules import coo_fromdense_p as coo_fromdense_p
from dovetail.experimental.sparse.matrix_rules import coo_matmat_p as coo_matmat_p
from dovetail.experimental.sparse.matrix_rules import coo_matvec_p as coo_matvec_p
from dovetail.experimental.sparse.matrix_rules import coo_todense_p as coo_todense_p
from dovetail.experimental.sparse.matrix_rules import csr_fromdense_p as csr_fromdense_p
from dovetail.experimental.sparse.matrix_rules import csr_matmat_p as csr_matmat_p
from dovetail.experimental.sparse.matrix_rules import csr_matvec_p as csr_matvec_p
from dovetail.experimental.sparse.matrix_rules import csr_todense_p as csr_todense_p
from dovetail.experimental.sparse.sparsification import SparseTracer as SparseTracer
from dovetail.experimental.sparse.sparsification import sparsify as sparsify
