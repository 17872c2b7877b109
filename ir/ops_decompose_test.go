package ir

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir/dtype"
)

// matrixProduct multiplies two matrices.
func matrixProduct(x, y []float64, m, k, n int) []float64 {
	out := make([]float64, m*n)
	for i := range m {
		for j := range n {
			for c := range k {
				out[i*n+j] += x[i*k+c] * y[c*n+j]
			}
		}
	}
	return out
}

func transposedMatrix(x []float64, m, n int) []float64 {
	out := make([]float64, m*n)
	for i := range m {
		for j := range n {
			out[j*m+i] = x[i*n+j]
		}
	}
	return out
}

func decompose(t *testing.T, op string, x *Array) (parts [][]float64) {
	t.Helper()
	out, err := eval1(op, x)
	require.NoError(t, err)
	for _, d := range out {
		parts = append(parts, d.(*Array).Floats())
	}
	return parts
}

func TestDecompositionsMultiplyBack(t *testing.T) {
	x := FromFloats(dtype.F64, []int{3, 2}, []float64{1, 2, 3, 4, 5, 7})
	qr := decompose(t, "qr", x)
	require.InDeltaSlice(t, x.Floats(), matrixProduct(qr[0], qr[1], 3, 2, 2), 1e-12)
	require.InDelta(t, -math.Sqrt(35), qr[1][0], 1e-12, "the sign is LAPACK's")

	svd := decompose(t, "svd", x)
	us := append([]float64{}, svd[0]...)
	for i := range us {
		us[i] *= svd[1][i%2]
	}
	require.InDeltaSlice(t, x.Floats(), matrixProduct(us, transposedMatrix(svd[2], 2, 2), 3, 2, 2), 1e-12)

	eigh := decompose(t, "eigh", FromFloats(dtype.F64, []int{2, 2}, []float64{2, 99, 1, 2}))
	require.InDeltaSlice(t, []float64{1, 3}, eigh[0], 1e-12, "only the lower triangle is read")
}

func TestDecompositionsOfDegenerateMatrices(t *testing.T) {
	zero := NewArray(dtype.F64, 3, 2)
	svd := decompose(t, "svd", zero)
	require.Equal(t, []float64{0, 0}, svd[1])
	gram := matrixProduct(transposedMatrix(svd[0], 3, 2), svd[0], 2, 3, 2)
	require.InDeltaSlice(t, []float64{1, 0, 0, 1}, gram, 1e-12, "U has orthonormal columns all the same")

	nan := FromFloats(dtype.F64, []int{1, 1}, []float64{math.NaN()})
	for _, op := range []string{"eigh", "svd"} {
		_, err := eval1(op, nan)
		require.ErrorContains(t, err, "not finite")
	}
	_, err := eval1("qr", NewArray(dtype.F64, 2, 3))
	require.ErrorContains(t, err, "at least as many rows as columns")
}
