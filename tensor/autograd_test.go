package tensor_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/tensor"
)

// here is the line that calls it.
func here() string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", file, line)
}

func scalar64(v float64) *tensor.Tensor { return tensor.Full(tensor.F64, v) }

func TestThirdDerivative(t *testing.T) {
	x := scalar64(2).RequiresGrad()
	y := x.Pow(5)
	for _, want := range []float64{80, 160, 240} {
		g, err := tensor.Grad(y, []*tensor.Tensor{x}, tensor.CreateGraph())
		require.NoError(t, err)
		y = g[0]
		require.InDelta(t, want, floats(t, y)[0], 1e-9)
	}
}

// A view of what an operation computed is written to: the rest of it keeps its gradient, in any memory layout.
func TestWriteThroughTheFirstViewKeepsTheRest(t *testing.T) {
	x := from(t, []float32{1, 2, 3, 4, 5, 6}, 2, 3).RequiresGrad()
	for _, y := range []*tensor.Tensor{x.Mul(2), x.Transpose(0, 1).Clone(), x.MatMul(tensor.Ones(tensor.F32, 3, 3))} {
		x.ZeroGrad()
		y.Select(0, 0).Zero_()
		require.NoError(t, y.Sum().Backward())
		sum := 0.0
		for _, v := range floats(t, x.Grad()) {
			sum += v
		}
		require.Greater(t, sum, 0.0, y.String())
	}
}

func TestWriteToTheBaseIsSeenByAView(t *testing.T) {
	x := from(t, []float32{1, 2}).RequiresGrad()
	y := x.Mul(3)
	v := y.Narrow(0, 1, 1)
	require.NoError(t, y.Mul_(x.Detach()).Err())
	require.NoError(t, v.Sum().Backward(tensor.RetainGraph()))
	require.Equal(t, []float64{0, 6}, floats(t, x.Grad()))
	require.True(t, y.Zero_().NeedsGrad(), "as in PyTorch: the gradient is zero")
	x.ZeroGrad()
	require.NoError(t, v.Sum().Backward())
	require.Equal(t, []float64{0, 0}, floats(t, x.Grad()))
}

func TestDetachSharesMemoryAndVersions(t *testing.T) {
	x := from(t, []float32{1, 2}).RequiresGrad()
	y := x.Mul(2)
	require.NoError(t, y.Narrow(0, 0, 1).Mul_(1).Err())
	require.NoError(t, y.Detach().Mul_(2).Err())
	require.Equal(t, []float64{4, 8}, floats(t, y))
	require.NoError(t, y.Sum().Backward())
	require.Equal(t, []float64{2, 2}, floats(t, x.Grad()))
	y = x.Exp()
	z := y.Mul(y)
	require.NoError(t, y.Detach().Mul_(2).Err())
	require.ErrorContains(t, z.Sum().Backward(), "modified by an inplace operation")
}

func TestErrorOfAnOverwrittenValueNamesTheForwardLine(t *testing.T) {
	x := from(t, []float32{1, 2}).RequiresGrad()
	y := x.Exp()
	z, line := y.Mul(y), here()
	require.NoError(t, y.Add_(1).Err())
	err := z.Sum().Backward()
	require.ErrorContains(t, err, "mul")
	require.ErrorContains(t, err, "called at")
	require.ErrorContains(t, err, line)
}

func TestRefusedInPlaceWrites(t *testing.T) {
	x := from(t, []float32{1, 2}).RequiresGrad()
	require.ErrorContains(t, x.Select(0, 0).Add_(1).Err(), "view of a leaf")
	require.ErrorContains(t, x.Mul(2).Expand(3, 2).Add_(1).Err(), "single memory location")
	require.ErrorContains(t, tensor.Arange(3).RequiresGrad().Err(), "floating-point")
	require.NoError(t, x.Detach().Select(0, 0).Add_(1).Err())
	require.Equal(t, []float64{2, 2}, floats(t, x))
	require.ErrorContains(t, tensor.Inference(x).Mul(2).RequiresGrad().Err(), "inference")
}

func TestNoGradIsLeftByDetach(t *testing.T) {
	x, w := from(t, []float32{1, 2}), from(t, []float32{3, 4}).RequiresGrad()
	target := tensor.NoGrad(x).Mul(w)
	require.ErrorContains(t, w.Sub(target).Sum().Backward(), "NoGrad")
	require.NoError(t, w.Sub(target.Detach()).Sum().Backward())
	require.Equal(t, []float64{1, 1}, floats(t, w.Grad()))
}

func TestHooksAreRemovedAndChecked(t *testing.T) {
	x := from(t, []float32{1, 2}).RequiresGrad()
	remove, err := x.RegisterHook(func(g *tensor.Tensor) *tensor.Tensor { return g.Mul(10) })
	require.NoError(t, err)
	require.NoError(t, x.Sum().Backward())
	remove()
	require.NoError(t, x.Sum().Backward())
	require.Equal(t, []float64{11, 11}, floats(t, x.Grad()))
	y := x.Mul(2)
	_, err = y.RegisterHook(func(g *tensor.Tensor) *tensor.Tensor { return g.Sum() })
	require.NoError(t, err)
	require.ErrorContains(t, y.Sum().Backward(), "shape")
}

func TestRetainedGradientComesAfterTheHooks(t *testing.T) {
	x := from(t, []float32{1, 2}).RequiresGrad()
	y := x.Mul(3).RetainGrad()
	_, err := y.RegisterHook(func(g *tensor.Tensor) *tensor.Tensor { return g.Mul(5) })
	require.NoError(t, err)
	require.NoError(t, y.Sum().Backward())
	require.Equal(t, []float64{5, 5}, floats(t, y.Grad()))
	require.Equal(t, []float64{15, 15}, floats(t, x.Grad()))
}

func TestGradientsBelongToOneTensor(t *testing.T) {
	x, y := from(t, []float32{1, 2}).RequiresGrad(), from(t, []float32{3, 4}).RequiresGrad()
	ct := from(t, []float32{5, 6})
	require.NoError(t, x.Add(y).Backward(tensor.Cotangent(ct)))
	require.NoError(t, x.Grad().Add_(1).Err())
	require.Equal(t, []float64{5, 6}, floats(t, y.Grad()))
	require.Equal(t, []float64{5, 6}, floats(t, ct))
	held := y.Grad()
	require.NoError(t, y.Sum().Backward())
	require.Equal(t, []float64{5, 6}, floats(t, held))
	require.Equal(t, []float64{6, 7}, floats(t, y.Grad()))
}

func TestGradientTakesTheLeafsLayout(t *testing.T) {
	x := tensor.Arange(6).To(tensor.F32).View(2, 3).Transpose(0, 1).RequiresGrad()
	require.NoError(t, x.Mul(2).Sum().Backward())
	require.Equal(t, x.Strides(), x.Grad().Strides())
}

func TestSeveralOutputsAndChosenInputs(t *testing.T) {
	x, y := from(t, []float32{1, 2}).RequiresGrad(), from(t, []float32{3, 4}).RequiresGrad()
	a, b := x.Mul(y).Sum(), x.Sum()
	require.NoError(t, tensor.Backward([]*tensor.Tensor{a, b}, tensor.Inputs(x)))
	require.Equal(t, []float64{4, 5}, floats(t, x.Grad()))
	require.Nil(t, y.Grad())
	z := from(t, []float32{1}).RequiresGrad()
	_, err := tensor.Grad(x.Sum(), []*tensor.Tensor{x, z})
	require.ErrorContains(t, err, "AllowUnused")
	g, err := tensor.Grad(x.Sum(), []*tensor.Tensor{x, z}, tensor.AllowUnused())
	require.NoError(t, err)
	require.Nil(t, g[1])
}

func TestAnomalyNamesTheOperationThatMadeANaN(t *testing.T) {
	x := from(t, []float32{-1, 4}).RequiresGrad()
	y, line := x.Sqrt(), here()
	err := y.Sum().Backward(tensor.DetectAnomaly())
	require.ErrorContains(t, err, "sqrt")
	require.ErrorContains(t, err, "NaN")
	require.ErrorContains(t, err, line)
}

var cube = &tensor.Function{
	Name: "cube",
	Forward: func(c *tensor.FunctionContext, in []*tensor.Tensor) []*tensor.Tensor {
		c.Save(in[0])
		return []*tensor.Tensor{in[0].Mul(in[0]).Mul(in[0])}
	},
	Backward: func(c *tensor.FunctionContext, ct []*tensor.Tensor) []*tensor.Tensor {
		x := c.Saved()[0]
		return []*tensor.Tensor{ct[0].Mul(x.Mul(x)).Mul(3)}
	},
}

func TestFunctionWithItsOwnGradient(t *testing.T) {
	x := scalar64(2).RequiresGrad()
	y := cube.Apply(x)[0]
	for _, want := range []float64{12, 12, 6} {
		g, err := tensor.Grad(y, []*tensor.Tensor{x}, tensor.CreateGraph())
		require.NoError(t, err)
		y = g[0]
		require.Equal(t, want, floats(t, y)[0])
	}
	z := x.Mul(1)
	w := cube.Apply(z)[0]
	require.NoError(t, z.Add_(1).Err())
	require.ErrorContains(t, w.Backward(), "cube")
	require.NoError(t, tensor.GradCheck(func(in []*tensor.Tensor) []*tensor.Tensor { return cube.Apply(in[0]) }, []*tensor.Tensor{tensor.Randn(tensor.F64, 3).RequiresGrad()}))
	require.False(t, cube.Apply(x.Detach())[0].NeedsGrad())
	wrong := &tensor.Function{Forward: cube.Forward, Backward: func(*tensor.FunctionContext, []*tensor.Tensor) []*tensor.Tensor { return nil }}
	require.ErrorContains(t, wrong.Apply(x)[0].Backward(), "0 gradients for 1 inputs")
}

func TestGradCheck(t *testing.T) {
	in := []*tensor.Tensor{tensor.Randn(tensor.F64, 2, 3).RequiresGrad(), tensor.Randn(tensor.F64, 3, 2).RequiresGrad()}
	f := func(in []*tensor.Tensor) []*tensor.Tensor {
		y := in[0].MatMul(in[1]).Tanh()
		y.Select(0, 0).Mul_(in[1].Select(0, 0))
		return []*tensor.Tensor{y, in[0].Softmax(1)}
	}
	require.NoError(t, tensor.GradCheck(f, in))
	require.NoError(t, tensor.GradGradCheck(f, in))
	lies := func(in []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{in[0].Mul(in[0].Detach())} }
	require.ErrorContains(t, tensor.GradCheck(lies, in[:1]), "finite differences")
	require.ErrorContains(t, tensor.GradCheck(f, []*tensor.Tensor{from(t, []float32{1})}), "f64")
}

// Goroutines may differentiate graphs that share leaves.
func TestBackwardOfSeveralGoroutines(t *testing.T) {
	w := from(t, []float32{1, 2}).RequiresGrad()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = w.Select(0, i%2).Mul(3).Sum().Backward() })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, []float64{12, 12}, floats(t, w.Grad()))
}

func ExampleFunction() {
	round := &tensor.Function{ // rounds, with the gradient of the identity
		Name: "round",
		Forward: func(_ *tensor.FunctionContext, in []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{tensor.Call("round", in[0])}
		},
		Backward: func(_ *tensor.FunctionContext, ct []*tensor.Tensor) []*tensor.Tensor { return ct },
	}
	x := tensor.Full(tensor.F32, 1.7, 1).RequiresGrad()
	y := round.Apply(x)[0]
	if err := y.Sum().Backward(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(y.Detach(), x.Grad())
	// Output: tensor([2.]) tensor([1.])
}

// What an in-place operation overwrites is kept where its own gradient reads it.
func TestInPlaceOperationsKeepWhatTheirGradientReads(t *testing.T) {
	for _, name := range []string{"relu", "exp", "tanh", "sigmoid", "sqrt", "square", "gelu"} {
		x := from(t, []float32{0.5, 2}).RequiresGrad()
		require.NoError(t, x.Mul(1).InPlace(name).Sum().Backward(), name)
		want := from(t, []float32{0.5, 2}).RequiresGrad()
		require.NoError(t, tensor.Call(name, want).Sum().Backward())
		require.Equal(t, floats(t, want.Grad()), floats(t, x.Grad()), name)
	}
	x := from(t, []float32{3}).RequiresGrad()
	y := x.Mul(1)
	require.NoError(t, y.Mul_(y).Sum().Backward())
	require.Equal(t, []float64{6}, floats(t, x.Grad()))
}
