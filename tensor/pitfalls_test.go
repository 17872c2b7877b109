package tensor_test

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/tensor"
)

// What goes wrong in systems of this kind, on the eager path. The same programs as scripts are in testdata/golden, area pitfalls.

// A saved view of an input: the version belongs to the memory, not to the handle.
func TestWriteToWhatIsSavedAsAView(t *testing.T) {
	x, w := tensor.Ones(tensor.F32, 2, 3), tensor.Ones(tensor.F32, 3, 2).RequiresGrad()
	y := x.View(2, 3).MatMul(w)
	require.NoError(t, x.Add_(1).Err())
	require.ErrorContains(t, y.Sum().Backward(), "modified by an inplace operation")
}

// What is kept of earlier calls does not fix whether gradients are wanted.
func TestWarmCallsWithoutGradient(t *testing.T) {
	f := func(x *tensor.Tensor) *tensor.Tensor { return x.Sigmoid().Mul(x) }
	x := tensor.Zeros(tensor.F32, 1)
	for range 5 {
		require.NoError(t, f(x).Err())
	}
	g := tensor.Zeros(tensor.F32, 1).RequiresGrad()
	require.NoError(t, f(g).Backward())
	require.Equal(t, []float64{0.5}, floats(t, g.Grad()))
	require.False(t, f(x).NeedsGrad())
}

func TestAccumulationThroughBatchNorm(t *testing.T) {
	x := tensor.Arange(12).To(tensor.F64).View(1, 3, 2, 2)
	gamma, beta := tensor.Ones(tensor.F64, 3).RequiresGrad(), tensor.Zeros(tensor.F64, 3).RequiresGrad()
	for range 3 {
		y := tensor.Call("batch_norm", x, nil, nil, gamma, beta, true, 0.1, 1e-5)
		require.NoError(t, y.Square().Sum().Backward())
	}
	for c := range 3 {
		require.InDelta(t, 3*8*1.25/1.25001, floats(t, gamma.Grad())[c], 1e-9)
		require.InDelta(t, 0, floats(t, beta.Grad())[c], 1e-9)
	}
}

func TestOverlappingSourceAndDestination(t *testing.T) {
	x := from(t, []float32{4, 3, 2, 1, 0})
	require.NoError(t, x.Narrow(0, 1, 4).Add_(x.Narrow(0, 0, 4)).Err())
	require.Equal(t, []float64{4, 7, 5, 3, 1}, floats(t, x))
	x = from(t, []float32{1, 2, 3, 4}, 2, 2)
	require.NoError(t, x.CopyFrom(x.T()).Err())
	require.Equal(t, []float64{1, 3, 2, 4}, floats(t, x))
}

func TestIdentitiesThenMutation(t *testing.T) {
	x := from(t, []float32{1})
	y := x.Add(0)
	require.NoError(t, x.Mul_(5).Err())
	require.Equal(t, []float64{1}, floats(t, y))
	// dropout without training is the identity, and an alias as in PyTorch
	z := tensor.Call("dropout", x, 0.5, false)
	require.NoError(t, z.Add_(z).Err())
	require.Equal(t, []float64{10}, floats(t, x))
}

func TestViewOfOtherDTypeReadsBeforeAWrite(t *testing.T) {
	x := tensor.Arange(4)
	y := tensor.Call("view.dtype", x, tensor.I32).Mul(2)
	require.NoError(t, x.Fill(9).Err())
	require.Equal(t, []float64{0, 0, 2, 0, 4, 0, 6, 0}, floats(t, y))
}

func TestDeepGraphIsFreed(t *testing.T) {
	x := tensor.Full(tensor.F64, 1.0).RequiresGrad()
	y := x
	for range 1000 {
		y = y.Add(y.Mul(y).Mul(0).Add(0.002).Mul(y.Detach()))
	}
	require.NoError(t, y.Backward())
	require.NoError(t, y.Err())
	require.False(t, math.IsNaN(floats(t, x.Grad())[0]))
}

// Training steps leave nothing behind: not the tapes, not the gradients of earlier steps.
func TestStepsLeaveNoMemoryBehind(t *testing.T) {
	x, w := tensor.Randn(tensor.F32, 32, 64), tensor.Randn(tensor.F32, 64, 64).RequiresGrad()
	b := tensor.Zeros(tensor.F32, 64).RequiresGrad()
	step := func() {
		h := x.MatMul(w).Add(b)
		h.Narrow(0, 0, 4).Mul_(0.5)
		require.NoError(t, h.Relu_().Square().Mean().Backward())
		for _, p := range []*tensor.Tensor{w, b} {
			require.NoError(t, tensor.NoGrad(p).Sub_(p.Grad().Mul(0.01)).Err())
			p.ZeroGrad()
		}
	}
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for range 20 {
		step()
	}
	before := live()
	for range 400 {
		step()
	}
	require.Less(t, live(), before+1<<20)
}

func TestMeanLossWithEveryTargetIgnored(t *testing.T) {
	x := tensor.Randn(tensor.F32, 5, 3).RequiresGrad()
	loss := tensor.Call("cross_entropy", x, tensor.Full(tensor.I64, -100, 5))
	v, err := loss.Item()
	require.NoError(t, err)
	require.True(t, math.IsNaN(v))
	require.NoError(t, loss.Backward())
	require.Equal(t, make([]float64, 15), floats(t, x.Grad()))
}
