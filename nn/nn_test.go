package nn_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/nn"
	"github.com/gtc-project/gtc/tensor"
)

type block struct {
	Conv1    *nn.Conv2d
	BN       *nn.BatchNorm2d
	Layers   []*nn.Linear
	Drop     *nn.Dropout
	FC       nn.Sequential
	hidden   *nn.Linear
	LayerTwo *nn.LayerNorm
}

func newBlock() *block {
	return &block{Conv1: nn.NewConv2d(1, 2, 3), BN: nn.NewBatchNorm2d(2), Layers: []*nn.Linear{nn.NewLinear(2, 2)}, Drop: nn.NewDropout(0.5),
		FC: nn.Sequential{nn.NewLinear(2, 3), nn.ReLU}, hidden: nn.NewLinear(1, 1), LayerTwo: nn.NewLayerNorm(3)}
}

func TestNamesAreThoseOfPyTorch(t *testing.T) {
	var names []string
	for _, e := range nn.Entries(newBlock()) {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{
		"conv1.weight", "conv1.bias", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked",
		"layers.0.weight", "layers.0.bias", "fc.0.weight", "fc.0.bias", "layer_two.weight", "layer_two.bias"}, names)
	require.Len(t, nn.Parameters(newBlock()), 10)
}

func TestStateDictRoundTrip(t *testing.T) {
	a, b := newBlock(), newBlock()
	path := filepath.Join(t.TempDir(), "w.safetensors")
	require.NoError(t, nn.Save(a, path))
	require.NoError(t, nn.Load(b, path, true))
	for name, x := range nn.StateDict(a) {
		require.Equal(t, x.Array().Floats(), nn.StateDict(b)[name].Array().Floats(), name)
	}
	state := nn.StateDict(a)
	delete(state, "bn.weight")
	state["extra"] = tensor.Ones(tensor.F32, 1)
	state["conv1.bias"] = tensor.Ones(tensor.F32, 5)
	err := nn.LoadStateDict(b, state, true)
	require.ErrorContains(t, err, "missing bn.weight")
	require.ErrorContains(t, err, "unexpected extra")
	require.ErrorContains(t, err, "conv1.bias has shape [5]")
	delete(state, "conv1.bias")
	require.NoError(t, nn.LoadStateDict(b, state, false))
}

func TestModes(t *testing.T) {
	b := newBlock()
	x := tensor.Ones(tensor.F32, 1000)
	y := b.Drop.Forward(x)
	n, err := y.Eq(0).Sum().Int()
	require.NoError(t, err)
	require.Greater(t, n, int64(300))
	require.Less(t, n, int64(700))
	nn.Eval(b)
	require.Equal(t, x.Array().Floats(), b.Drop.Forward(x).Array().Floats())
}

func TestBatchNormTracksStatistics(t *testing.T) {
	bn := nn.NewBatchNorm2d(1)
	x, err := tensor.FromSlice([]float32{0, 2, 4, 6}, 1, 1, 2, 2)
	require.NoError(t, err)
	y := bn.Forward(x)
	require.NoError(t, y.Err())
	mean, err := y.Mean().Item()
	require.NoError(t, err)
	require.InDelta(t, 0, mean, 1e-6)
	require.InDelta(t, 0.3, bn.Tensor("running_mean").Array().Floats()[0], 1e-6)        // 0.9·0 + 0.1·3
	require.InDelta(t, 0.9+20.0/30, bn.Tensor("running_var").Array().Floats()[0], 1e-5) // the unbiased variance is 20/3
	require.Equal(t, []float64{1}, bn.Tensor("num_batches_tracked").Array().Floats())
	nn.Eval(bn)
	require.NotEqual(t, y.Array().Floats(), bn.Forward(x).Array().Floats())
}
