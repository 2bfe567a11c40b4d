"""The Schur decomposition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import aval_of, make_aval
from dovetail._core.ops.linalg.eigen_matrices import ON_THE_CPU, cannot_compute, each_matrix
from dovetail._core.ops.linalg.matrices import batch_all, check_factored, check_matrices
from dovetail._core.trace.divisions import Labels, leading_labels
from dovetail._core.trace.primitive import Primitive

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Selection = Callable[..., Any] | None


class Schur(Primitive):
    """Factors ``x = z @ t @ z^H``, where ``z`` is orthogonal (unitary) and ``t`` triangular, except
    for two-row blocks for pairs of complex eigenvalues of real matrices.

    The results are NaN if the computation fails.
    """

    name = "schur"
    multiple_results = True
    no_derivative = (
        "its factors are some of many, and those that are found jump where eigenvalues meet"
    )

    def abstract(
        self,
        x: Any,
        *,
        compute_schur_vectors: bool,
        sort_eig_vals: bool,
        select_callable: Selection,
    ) -> Any:
        check_factored(self.name, x)
        check_matrices(self.name, x, "x", square=True)
        return [make_aval(x.shape, x.dtype, x.weak_type)] * (1 + compute_schur_vectors)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(self, x: Any, *, compute_schur_vectors: bool, **params: Any) -> Any:
        import scipy.linalg  # deferred: only references need it

        x = np.asarray(x)
        outs = self.abstract(aval_of(x), compute_schur_vectors=compute_schur_vectors, **params)
        kind = "complex" if x.dtype.kind == "c" else "real"

        def decomposed(matrix: Any) -> Any:
            factors = scipy.linalg.schur(matrix, kind) if matrix.size else (matrix, matrix)
            return factors[: len(outs)]

        return each_matrix(decomposed, x, outs)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return batch_all(self, args, dims, **params)

    def lower(self, context: Builder, x: Any, **params: Any) -> Any:
        if not context.avals_in[0].size:
            return [context.constant(0, out) for out in context.avals_out]
        raise cannot_compute(
            context, self.name, None, f"it needs LAPACK, which only the CPU has; {ON_THE_CPU}"
        )


schur_p: Final = Schur()


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Selection = None,
) -> list[Array]:
    """The Schur decomposition of square matrices: ``x = z @ t @ z^H``.

    Args:
        x: square matrices of shape ``(..., n, n)``, floating point or complex.
        compute_schur_vectors: whether to compute ``z``.
        sort_eig_vals: must be False; sorting by LAPACK is not supported.
        select_callable: which eigenvalues would come first if they were sorted; ignored.

    Returns:
        A list of ``t`` and ``z``, each of the shape of `x`; of ``t`` alone without
        `compute_schur_vectors`. The columns of ``z`` are orthonormal. For complex matrices, ``t``
        is upper triangular, with the eigenvalues on its diagonal. For real ones, ``t`` is real, and
        a pair of complex eigenvalues is a block of two rows and columns on the diagonal. Results
        are NaN if the computation fails, as for NaN and infinities.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128, or `x` is not a
            matrix.
        ValueError: the matrices are not square.
        NotImplementedError: `sort_eig_vals` is true, or the platform has no LAPACK.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> t, z = lax.linalg.schur(x)
        >>> bool(np.allclose(z @ t @ z.T, x, atol=1e-5))
        True
    """
    if sort_eig_vals:
        raise NotImplementedError(
            "lax.linalg.schur: sort_eig_vals=True is not available, because the eigenvalues cannot "
            "be compared by a Python function inside LAPACK; sort those of lax.linalg.eig instead"
        )
    return list(
        schur_p.bind(
            as_operand(x, "lax.linalg.schur"),
            compute_schur_vectors=bool(compute_schur_vectors),
            sort_eig_vals=False,
            select_callable=select_callable,
        )
    )
