package tensor_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/tensor"
)

func from(t *testing.T, data []float32, shape ...int) *tensor.Tensor {
	x, err := tensor.FromSlice(data, shape...)
	require.NoError(t, err)
	return x
}

func TestArithmeticBroadcastsAndPromotes(t *testing.T) {
	x := from(t, []float32{1, 2, 3, 4}, 2, 2)
	y := x.Add(x.Mul(2)).Sub(from(t, []float32{1, 10}))
	require.NoError(t, y.Err())
	got, err := tensor.Data[float32](y)
	require.NoError(t, err)
	require.Equal(t, []float32{2, -4, 8, 2}, got)
	i := tensor.Arange(3)
	require.Equal(t, tensor.F32, i.Div(2).DType())
	require.Equal(t, tensor.I64, i.Add(1).DType())
}

func TestViewsShareStorageAndInPlaceWritesAreSeen(t *testing.T) {
	data := []float32{0, 1, 2, 3, 4, 5}
	x := from(t, data, 2, 3)
	row := x.Select(0, 1)
	require.NoError(t, row.Add_(10).Err())
	require.Equal(t, []float32{0, 1, 2, 13, 14, 15}, data)
	require.NoError(t, x.Transpose(0, 1).Select(0, 0).Mul_(2).Err())
	require.Equal(t, []float32{0, 1, 2, 26, 14, 15}, data)
}

func TestErrorsNameOpShapesAndCallersLine(t *testing.T) {
	x, y := tensor.Ones(tensor.F32, 2, 3), tensor.Ones(tensor.F32, 2, 4)
	z := x.Add(y).Exp()
	require.ErrorContains(t, z.Err(), "add")
	require.ErrorContains(t, z.Err(), "[2 3]")
	require.ErrorContains(t, z.Err(), "tensor_test.go:")
}

// The strings are PyTorch's, but for the names of dtypes.
func TestPrinting(t *testing.T) {
	half := func(n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(i) / 2
		}
		return out
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		x    *tensor.Tensor
		want string
	}{
		{from(t, []float32{1, -2, 3, 4}, 2, 2), "tensor([[ 1., -2.],\n        [ 3.,  4.]])"},
		{from(t, []float32{0.5, 1.25}), "tensor([0.5000, 1.2500])"},
		{from(t, []float32{1.5, nan, -inf}), "tensor([1.5000,    nan,   -inf])"},
		{from(t, []float32{1e-5, 1, 2}), "tensor([1.0000e-05, 1.0000e+00, 2.0000e+00])"},
		{from(t, []float32{1001.5, 1, 2}), "tensor([1.0015e+03, 1.0000e+00, 2.0000e+00])"},
		{tensor.Arange(3), "tensor([0, 1, 2])"},
		{tensor.Full(tensor.F64, 7), "tensor(7., dtype=f64)"},
		{tensor.Arange(2).Eq(1), "tensor([False,  True])"},
		{tensor.Zeros(tensor.F32, 0), "tensor([])"},
		{tensor.Zeros(tensor.I64, 2, 0), "tensor([], size=(2, 0), dtype=i64)"},
		{from(t, half(4), 2, 1, 2), "tensor([[[0.0000, 0.5000]],\n\n        [[1.0000, 1.5000]]])"},
		{from(t, half(1002)), "tensor([0.0000e+00, 5.0000e-01, 1.0000e+00,  ..., 4.9950e+02, 5.0000e+02,\n        5.0050e+02])"},
		{tensor.Arange(30), "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])"},
	} {
		require.Equal(t, c.want, c.x.String())
	}
	require.Equal(t, "tensor([0.5, 1.2])", fmt.Sprintf("%.1v", from(t, []float32{0.5, 1.25})))
	require.Equal(t, "tensor([1.], requires_grad)", fmt.Sprint(from(t, []float32{1}).RequiresGrad()))
}
