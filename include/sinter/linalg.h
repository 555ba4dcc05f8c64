// Linear algebra.
#pragma once
#include "sinter/functions.h"

namespace sinter::linalg {

/// x of a x = b, for square matrices a of shape (..., n, n): by LU factorisation with partial pivoting (LAPACK's getrf and getrs). b has
/// shape (n), one right side for every matrix, or (..., n, k), k right sides; leading axes broadcast, as in NumPy 2. Computes in float32
/// (integers and halves too, halves rounded once), float64 or complex64. Every element of a solution is NaN where the factorisation meets
/// a pivot that is exactly 0, for the matrix is singular: a call with lazy arrays has nobody to throw to. ShapeError for matrices that are
/// not square and sizes that differ. Bits do not depend on the number of threads: a matrix is one thread's work, and matrices share the
/// threads.
SINTER_API Array solve(const Array& a, const Array& b);
/// The inverse of square matrices, shape (..., n, n): solve(a, identity(n)).
SINTER_API Array inv(const Array& a);
using sinter::norm;

}  // namespace sinter::linalg
