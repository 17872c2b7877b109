package tensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/tensor"
)

func ints(t *testing.T, vs ...int64) *tensor.Tensor {
	x, err := tensor.FromSlice(vs)
	require.NoError(t, err)
	return x
}

func TestAt(t *testing.T) {
	x := tensor.Arange(24).View(2, 3, 4)
	mask := x.Select(0, 0).Gt(5)
	type index = []any
	for _, c := range []struct {
		index index
		shape []int
		first float64
	}{
		{index{1}, []int{3, 4}, 12},
		{index{tensor.All, tensor.Range{Start: 1, Stop: 3}}, []int{2, 2, 4}, 4},
		{index{tensor.Ellipsis, 0}, []int{2, 3}, 0},
		{index{tensor.NewAxis, 0}, []int{1, 3, 4}, 0},
		{index{0, -1, tensor.Range{Step: 2}}, []int{2}, 8},
		{index{tensor.All, ints(t, 2, 0)}, []int{2, 2, 4}, 8},
		{index{x.Gt(20)}, []int{3}, 21},
		{index{ints(t, 0, 1), tensor.All, ints(t, 1, 2)}, []int{2, 3}, 1},
		{index{0, tensor.All, ints(t, 3, 1)}, []int{3, 2}, 3},
		{index{tensor.All, mask}, []int{2, 6}, 6},
	} {
		y := x.At(c.index...)
		require.NoError(t, y.Err(), "%v", c.index)
		require.Equal(t, c.shape, y.Shape(), "%v", c.index)
		require.Equal(t, c.first, floats(t, y)[0], "%v", c.index)
	}
	require.ErrorContains(t, x.At(0, 0, 0, 0).Err(), "too many indices")
	require.ErrorContains(t, x.At("a").Err(), "is no index")
	require.ErrorContains(t, x.At(5).Err(), "index_test.go")
}

func TestSetAtWritesThroughViews(t *testing.T) {
	data := []float32{0, 1, 2, 3, 4, 5}
	x := from(t, data, 2, 3)
	require.NoError(t, x.SetAt(7, 0, tensor.Range{Step: 2}).Err())
	require.NoError(t, x.Transpose(0, 1).SetAt(9, x.Transpose(0, 1).Lt(2)).Err())
	require.NoError(t, x.SetAt(tensor.Arange(2).Unsqueeze(1), tensor.Range{}, ints(t, 1)).Err())
	require.Equal(t, []float32{7, 0, 7, 3, 1, 5}, data)
	w := from(t, []float32{2}).RequiresGrad()
	z := tensor.Zeros(tensor.F32, 3)
	require.NoError(t, z.SetAt(w.Square(), tensor.Range{Start: 1, Stop: 2}).Err())
	require.NoError(t, z.SetAt(w, ints(t, 2)).Err())
	require.NoError(t, z.Sum().Backward())
	require.Equal(t, []float64{5}, floats(t, w.Grad()))
}
