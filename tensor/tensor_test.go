package tensor_test

import (
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

func TestPrinting(t *testing.T) {
	require.Equal(t, "tensor([[1., 2.],\n        [3., 4.]])", from(t, []float32{1, 2, 3, 4}, 2, 2).String())
	require.Equal(t, "tensor([0.5000, 1.2500])", from(t, []float32{0.5, 1.25}).String())
	require.Equal(t, "tensor([0, 1, 2])", tensor.Arange(3).String())
	require.Equal(t, "tensor(7., dtype=f64)", tensor.Full(tensor.F64, 7).String())
}

// Tensors that are made of the same constants have memory of their own: a write to one does not show in another.
func TestConstantsAreNotShared(t *testing.T) {
	a, b := tensor.Zeros(tensor.F64, 2), tensor.Zeros(tensor.F64, 2)
	require.NoError(t, a.Add_(1).Err())
	require.Equal(t, []float64{1, 1}, a.Array().Floats())
	require.Equal(t, []float64{0, 0}, b.Array().Floats())
	require.Equal(t, []float64{0, 0}, tensor.Zeros(tensor.F64, 2).Array().Floats())
}
