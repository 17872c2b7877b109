package nn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/nn"
	"github.com/gtc-project/gtc/script"
	"github.com/gtc-project/gtc/tensor"
)

// ramp gives every element of a layer's parameters, and of inputs, the value sin(0.7·i), so that PyTorch can do the same.
func ramp(shape ...int) *tensor.Tensor {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return tensor.Call("arange", n, tensor.F64).Mul(0.7).Sin().Mul(0.5).To(tensor.F32).Reshape(shape...)
}

func ramped(t *testing.T, l *nn.Layer) *nn.Layer {
	t.Helper()
	require.NoError(t, l.Err())
	for _, p := range nn.Parameters(l) {
		require.NoError(t, tensor.NoGrad(p).CopyFrom(ramp(p.Shape()...)).Err())
	}
	return l
}

func sum(t *testing.T, x *tensor.Tensor) float64 {
	t.Helper()
	v, err := x.Mul(ramp(x.Shape()...)).Sum().Item()
	require.NoError(t, err)
	return v
}

// Layers give what torch.nn gives; the numbers were computed by PyTorch 1.13 with the same parameters and inputs.
func TestLayersGiveWhatPyTorchGives(t *testing.T) {
	for _, c := range []struct {
		layer *nn.Layer
		args  []any
		want  []float64 // sum(result·ramp) of every result
		grad  []float64 // sum(gradient·ramp) of every parameter, of the first result's sum
	}{
		{nn.NewLinear(4, 3), []any{ramp(2, 4)}, []float64{0.2952864}, []float64{-0.006011184, 1.629667}},
		{nn.NewConv2d(2, 4, 3, nn.Kw{"padding": 1, "groups": 2, "padding_mode": "reflect"}), []any{ramp(1, 2, 5, 5)}, []float64{2.167566}, []float64{2.855868, 31.16096}},
		{nn.NewLSTM(3, 4, nn.Kw{"num_layers": 2, "bidirectional": true, "batch_first": true}), []any{ramp(2, 5, 3)}, []float64{0.01118741, 0.2185349, 0.6248399}, []float64{-0.1178355, 0.05334745, 0.2054145, 0.2054145, 0.2277428, 0.06572236, -0.5123456, -0.5123457, -0.5620308, 0.1251927, -0.8173854, -0.8173854, -0.466956, 0.09096184, -0.8705106, -0.8705106}},
		{nn.NewLSTM(3, 4, nn.Kw{"proj_size": 2}), []any{ramp(5, 2, 3), []any{ramp(1, 2, 2), ramp(1, 2, 4)}}, []float64{-0.07396331, -0.08578918, -0.2238489}, []float64{0.05415805, -0.02894019, -0.1981507, -0.1981507, -0.5296571}},
		{nn.NewGRU(3, 4), []any{ramp(5, 3)}, []float64{0.2663187, 0.5554203}, []float64{0.0670695, -0.8296065, 1.941082, 1.672589}},
		{nn.NewMultiheadAttention(6, 2), []any{ramp(3, 2, 6), ramp(4, 2, 6), ramp(4, 2, 6), nn.Kw{"attn_mask": ramp(3, 4)}}, []float64{-0.0333163, 0.3167011}, []float64{-0.006239915, -0.1278086, -0.1344035, 7.431245}},
		{nn.NewTransformerEncoderLayer(6, 2, nn.Kw{"dim_feedforward": 8, "dropout": 0.0, "norm_first": true}), []any{ramp(3, 2, 6)}, []float64{4.634994}, []float64{-0.08914068, -0.2704912, -0.3603784, 7.627065, 0.8130095, -1.971493, -1.158483, 7.431245, -0.007994392, -0.08114629, 0.1945668, 0.6184425}},
		{nn.New("GroupNorm", 2, 4), []any{ramp(2, 4, 3)}, []float64{2.345111}, []float64{-1.175841, 7.47863}},
		{nn.New("HuberLoss", nn.Kw{"delta": 0.2}), []any{ramp(3, 4), ramp(4, 3).Reshape(3, 4).Mul(2)}, []float64{0}, nil},
	} {
		ramped(t, c.layer)
		out := c.layer.Call(c.args...)
		for i, w := range c.want {
			require.InDelta(t, w, sum(t, out[i]), 1e-5, "%s result %d", c.layer, i)
		}
		if len(c.grad) == 0 {
			continue
		}
		require.NoError(t, out[0].Sum().Backward(), c.layer)
		for i, p := range nn.Parameters(c.layer) {
			require.NotNil(t, p.Grad(), "%s parameter %d", c.layer, i)
			require.InDelta(t, c.grad[i], sum(t, p.Grad()), 1e-4, "%s gradient %d", c.layer, i)
		}
	}
}

func TestEmbeddingRenormalisesItsWeight(t *testing.T) {
	e := nn.NewEmbedding(3, 2, nn.Kw{"max_norm": 1.0, "padding_idx": 0})
	require.NoError(t, tensor.NoGrad(e.Weight).Fill(3).Err())
	index, err := tensor.FromSlice([]int64{1, 1}, 2)
	require.NoError(t, err)
	require.NoError(t, e.Forward(index).Err())
	w := e.Weight.Array().Floats()
	require.InDeltaSlice(t, []float64{3, 3, 0.7071, 0.7071, 3, 3}, w, 1e-4)
}

func TestTiedWeightsTrainTogether(t *testing.T) {
	emb, head := nn.NewEmbedding(5, 3), nn.NewLinear(3, 5, nn.Kw{"bias": false})
	head.Weight = emb.Weight
	type model struct{ Emb, Head *nn.Layer }
	require.Len(t, nn.Parameters(&model{emb, head}), 1)
	index, err := tensor.FromSlice([]int64{2}, 1)
	require.NoError(t, err)
	require.NoError(t, head.Forward(emb.Forward(index)).Sum().Backward())
	require.NotNil(t, emb.Weight.Grad())
}

func TestWrongConstructionsAndCallsAreErrors(t *testing.T) {
	require.ErrorContains(t, nn.New("Nope").Err(), "Nope")
	require.ErrorContains(t, nn.NewConv2d(3, 4, 3, nn.Kw{"groups": 2}).Err(), "in_channels must be divisible by groups")
	require.ErrorContains(t, nn.NewLinear(3, 4, nn.Kw{"bais": true}).Err(), "bais")
	require.ErrorContains(t, nn.NewLinear(3, 4).Forward(tensor.Ones(tensor.F32, 2, 5)).Err(), "layer_test.go")
	require.ErrorContains(t, (&nn.Linear{}).Forward(tensor.Ones(tensor.F32, 1)).Err(), "use nn.New")
}

// A module class of a script is a layer of a Go program.
func TestScriptClasses(t *testing.T) {
	f, err := script.Parse("net.py", []byte(`
import torch.nn as nn
from torch import Tensor


class Net(nn.Module):
    def __init__(self, width: int = 4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, width), nn.BatchNorm1d(width), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)
`))
	require.NoError(t, err)
	net := nn.Script(f, "Net(width=5)")
	require.NoError(t, net.Err())
	before := net.Tensor("body.1.running_mean").Clone()
	y := net.Forward(ramp(4, 3))
	require.NoError(t, y.Sum().Backward())
	require.Equal(t, []int{4, 5}, y.Shape())
	require.NotNil(t, net.Tensor("body.0.weight").Grad())
	require.NotEqual(t, before.Array().Floats(), net.Tensor("body.1.running_mean").Array().Floats())
	nn.Eval(net)
	require.NotEqual(t, y.Array().Floats(), net.Forward(ramp(4, 3)).Array().Floats())
}
