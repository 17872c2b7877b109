package optim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/optim"
	"github.com/gtc-project/gtc/tensor"
)

// step minimises w² for one step.
func step(t *testing.T, w *tensor.Tensor, opt optim.Optimizer) {
	t.Helper()
	opt.ZeroGrad()
	require.NoError(t, w.Mul(w).Sum().Backward())
	require.NoError(t, opt.Step())
}

func param(t *testing.T, v float64) *tensor.Tensor {
	t.Helper()
	w := tensor.Full(tensor.F64, v, 1).RequiresGrad()
	require.NoError(t, w.Err())
	return w
}

func TestSGDWithMomentum(t *testing.T) {
	w := param(t, 1)
	opt := optim.NewSGD([]*tensor.Tensor{w}, optim.SGD{LR: 0.1, Momentum: 0.9})
	step(t, w, opt) // v = 2, w = 0.8
	step(t, w, opt) // v = 1.8 + 1.6 = 3.4, w = 0.46
	require.InDelta(t, 0.46, w.Array().Floats()[0], 1e-12)
}

func TestAdamW(t *testing.T) {
	w := param(t, 1)
	opt := optim.NewAdamW([]*tensor.Tensor{w}, optim.AdamW{LR: 0.1, WeightDecay: 0.5})
	step(t, w, opt) // w = 0.95 - 0.1·2/(2+1e-8)
	require.InDelta(t, 0.85, w.Array().Floats()[0], 1e-8)
}

func TestClipGradNorm(t *testing.T) {
	a, b := param(t, 3), param(t, 4)
	require.NoError(t, a.Mul(a).Sum().Add(b.Mul(b).Sum()).Mul(0.5).Backward()) // gradients 3 and 4
	norm, err := optim.ClipGradNorm([]*tensor.Tensor{a, b}, 1)
	require.NoError(t, err)
	require.InDelta(t, 5, norm, 1e-9)
	require.InDelta(t, 0.6, a.Grad().Array().Floats()[0], 1e-6)
}
