package tensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/tensor"
)

func floats(t *testing.T, x *tensor.Tensor) []float64 {
	t.Helper()
	require.NotNil(t, x)
	v, err := x.Floats()
	require.NoError(t, err)
	return v
}

func TestBackwardAccumulates(t *testing.T) {
	x := from(t, []float32{1, 2, 3}).RequiresGrad()
	for range 2 {
		require.NoError(t, x.Mul(x).Sum().Backward())
	}
	require.Equal(t, []float64{4, 8, 12}, floats(t, x.Grad()))
	x.ZeroGrad()
	require.Nil(t, x.Grad())
}

func TestGradOfGrad(t *testing.T) {
	x := from(t, []float32{2}).RequiresGrad()
	g, err := tensor.Grad(x.Pow(3).Sum(), []*tensor.Tensor{x}, tensor.CreateGraph())
	require.NoError(t, err)
	require.Equal(t, []float64{12}, floats(t, g[0]))
	require.NoError(t, g[0].Sum().Backward())
	require.Equal(t, []float64{12}, floats(t, x.Grad()))
}

func TestGradOfAnIntermediateValue(t *testing.T) {
	x := from(t, []float32{1, 2}).RequiresGrad()
	y := x.Mul(3)
	z := y.Mul(y).Sum()
	g, err := tensor.Grad(z, []*tensor.Tensor{y, x})
	require.NoError(t, err)
	require.Equal(t, []float64{6, 12}, floats(t, g[0]))
	require.Equal(t, []float64{18, 36}, floats(t, g[1]))
	require.Nil(t, x.Grad())
}

func TestListResultsAndOperands(t *testing.T) {
	x := from(t, []float32{1, 2, 3, 4}).RequiresGrad()
	parts := tensor.CallN("split", x, 2)
	require.Len(t, parts, 2)
	y := tensor.Cat([]*tensor.Tensor{parts[1], parts[0].Mul(10), parts[1]}, 0)
	require.NoError(t, y.Sum().Backward())
	require.Equal(t, []float64{10, 10, 2, 2}, floats(t, x.Grad()))
}

func TestNoGradAndDetach(t *testing.T) {
	x := from(t, []float32{1, 2}).RequiresGrad()
	require.False(t, tensor.NoGrad(x).Mul(2).NeedsGrad())
	require.False(t, x.Detach().Mul(2).NeedsGrad())
	require.NoError(t, x.Mul(x.Detach()).Sum().Backward())
	require.Equal(t, []float64{1, 2}, floats(t, x.Grad()))
}

func TestGraphIsFreedUnlessRetained(t *testing.T) {
	x := from(t, []float32{3}).RequiresGrad()
	y := x.Exp().Sum()
	require.NoError(t, y.Backward(tensor.RetainGraph()))
	require.NoError(t, y.Backward())
	require.ErrorContains(t, y.Backward(), "RetainGraph")
}

func TestSavedValueModifiedInPlace(t *testing.T) {
	w := from(t, []float32{1, 2}).RequiresGrad()
	x := from(t, []float32{3, 4})
	y := w.Mul(x)
	require.NoError(t, x.Add_(1).Err())
	require.ErrorContains(t, y.Sum().Backward(), "modified by an inplace operation")
	// the gradient of add does not read its operands
	x = from(t, []float32{3, 4})
	y = w.Add(x)
	require.NoError(t, x.Add_(1).Err())
	require.NoError(t, y.Sum().Backward())
}

func TestGradientThroughInPlaceWritesAndViews(t *testing.T) {
	x := from(t, []float32{1, 2, 3, 4}, 2, 2).RequiresGrad()
	y := x.Mul(2)
	row := y.Select(0, 1)
	require.NoError(t, row.Mul_(10).Err()) // row 1 of y is 20·x
	require.Equal(t, []float64{2, 4, 60, 80}, floats(t, y))
	require.NoError(t, y.Add(row).Sum().Backward())
	require.Equal(t, []float64{2, 2, 60, 60}, floats(t, x.Grad()))
	z := tensor.Zeros(tensor.F32, 3)
	w := from(t, []float32{5}).RequiresGrad()
	require.NoError(t, z.Narrow(0, 1, 1).CopyFrom(w.Mul(w)).Err())
	require.NoError(t, z.Sum().Backward())
	require.Equal(t, []float64{10}, floats(t, w.Grad()))
}

func TestInPlaceOnLeafIsRefused(t *testing.T) {
	x := from(t, []float32{1}).RequiresGrad()
	require.ErrorContains(t, x.Add_(1).Err(), "leaf")
	require.NoError(t, tensor.NoGrad(x).Add_(1).Err())
	require.Equal(t, []float64{2}, floats(t, x))
}

func TestHooksSeeAndReplaceGradients(t *testing.T) {
	x := from(t, []float32{1, 2}).RequiresGrad()
	y := x.Mul(3)
	var seen []float64
	_, err := y.RegisterHook(func(g *tensor.Tensor) *tensor.Tensor {
		seen = floats(t, g)
		return g.Mul(2)
	})
	require.NoError(t, err)
	require.NoError(t, y.Sum().Backward())
	require.Equal(t, []float64{1, 1}, seen)
	require.Equal(t, []float64{6, 6}, floats(t, x.Grad()))
}

func TestLongChainNeedsNoStack(t *testing.T) {
	x := tensor.Full(tensor.F64, 1.0).RequiresGrad()
	y := x
	for range 20000 {
		y = y.Add(y.Mul(1e-6))
	}
	require.NoError(t, y.Backward())
	require.InDelta(t, 1.0202013, floats(t, x.Grad())[0], 1e-6)
}
