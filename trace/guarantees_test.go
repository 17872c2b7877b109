package trace_test

import (
	"context"
	"math/rand"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/nn"
	"github.com/gtc-project/gtc/runtime"
	"github.com/gtc-project/gtc/tensor"
	"github.com/gtc-project/gtc/trace"
)

func ones(f func(x *tensor.Tensor) *tensor.Tensor) *trace.Function {
	return trace.New(one(f), trace.Options{})
}

func call(t *testing.T, f *trace.Function, in ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	out, err := f.Call(context.Background(), in...)
	require.NoError(t, err)
	return out[0]
}

// A captured tensor has the value that it has at the time of the call, and a step that writes to it, or to its input, does so at each call.
func TestStateIsReadAndWrittenAtEachCall(t *testing.T) {
	w := vec(t, 2)
	f := ones(func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(w) })
	require.Equal(t, []float64{6}, floats(t, call(t, f, vec(t, 3))))
	w.Fill(5)
	require.Equal(t, []float64{15}, floats(t, call(t, f, vec(t, 3))))

	step := ones(func(w *tensor.Tensor) *tensor.Tensor {
		loss := w.Mul(w).Sum()
		w.CopyFrom(w.Mul(0.5))
		return loss
	})
	x := vec(t, 1024)
	for _, want := range []float64{1048576, 262144, 65536, 16384, 4096} {
		require.Equal(t, []float64{want}, floats(t, call(t, step, x)))
	}
	require.Equal(t, []float64{32}, floats(t, x))

	big := tensor.Ones(tensor.F32, 5000) // the memory of what is copied to inputs is used again, that of results is not
	bump := trace.New(func(a ...*tensor.Tensor) ([]*tensor.Tensor, error) {
		old := a[0].Mul(1)
		a[0].Add_(1)
		return trace.Results(old, a[0], old, a[0].Mul(2))
	}, trace.Options{})
	var kept [][]*tensor.Tensor
	for range 4 {
		out, err := bump.Call(context.Background(), big)
		require.NoError(t, err)
		kept = append(kept, out)
	}
	for i, out := range kept {
		for k, want := range []float64{float64(i + 1), 5, float64(i + 1), float64(2*i + 4)} {
			v := floats(t, out[k])
			require.Equal(t, []float64{want, want}, []float64{v[0], v[4999]}, "call %d, result %d", i, k)
		}
	}

	count := vec(t, 0)
	counting := ones(func(x *tensor.Tensor) *tensor.Tensor { count.With(x.Scope()).Add_(1); return x.Mul(count) })
	for _, want := range []float64{1, 2, 3} {
		require.Equal(t, []float64{want}, floats(t, call(t, counting, vec(t, 1))))
	}
	require.Equal(t, []float64{3}, floats(t, count))

	unseen := ones(func(x *tensor.Tensor) *tensor.Tensor { count.Add_(1); return x.Mul(count) })
	_, err := unseen.Call(context.Background(), vec(t, 1))
	require.ErrorContains(t, err, "the trace did not see it")
}

func TestBatchNormIsTracedInTraining(t *testing.T) {
	tensor.ManualSeed(1)
	x := tensor.Randn(tensor.F32, 3, 2, 4, 4)
	a, b := nn.NewBatchNorm2d(2), nn.NewBatchNorm2d(2)
	f := trace.NewModule(a, trace.Options{})
	for range 3 {
		require.Equal(t, floats(t, b.Forward(x)), floats(t, call(t, f, x)))
	}
	nn.Eval(a) // the mode is a guard
	nn.Eval(b)
	require.InDeltaSlice(t, floats(t, b.Forward(x)), floats(t, call(t, f, x)), 1e-6)
}

// The mode of a module is a guard wherever its Forward runs, and so is a mode that the function itself reads.
func TestModesThatAreReadAreGuards(t *testing.T) {
	drop := nn.NewDropout(0.5)
	var own nn.Mode
	count := 0
	f := ones(func(x *tensor.Tensor) *tensor.Tensor {
		count++
		if pos, err := x.Sum().Gt(0).Bool(); err != nil || !pos {
			return x.Neg()
		}
		y := drop.Forward(x)
		if own.Training() {
			return y.Add(100)
		}
		return y
	})
	x := vec(t, 1, 2, 3, 4)
	require.Equal(t, []float64{1}, floats(t, call(t, f, vec(t, -1))), "a path that reads no mode")
	y := floats(t, call(t, f, x))
	for i, v := range floats(t, x) {
		require.Contains(t, []float64{100, 100 + 2*v}, y[i])
	}
	nn.Eval(drop)
	require.Equal(t, []float64{101, 102, 103, 104}, floats(t, call(t, f, x)))
	nn.Eval(&struct{ M *nn.Mode }{&own})
	require.Equal(t, []float64{1, 2, 3, 4}, floats(t, call(t, f, x)))
	require.Equal(t, []float64{1}, floats(t, call(t, f, vec(t, -1))))
	traces := count
	for range 2 {
		require.Equal(t, []float64{1, 2, 3, 4}, floats(t, call(t, f, x)))
		require.Equal(t, []float64{1}, floats(t, call(t, f, vec(t, -1))))
	}
	require.Equal(t, traces, count, "nothing is new")
}

// Random numbers are drawn at each call, from the generator that the eager function draws from.
func TestRandomNumbersAreDrawnAtEachCall(t *testing.T) {
	fn := func(x *tensor.Tensor) *tensor.Tensor {
		noise := tensor.Randn(tensor.F32, x.Shape()...).Mul(2) // made on no tensor of the trace
		return tensor.Call("dropout", x, 0.5, true).Add(noise)
	}
	f := ones(fn)
	x := tensor.Ones(tensor.F32, 50)
	tensor.ManualSeed(7)
	var want [][]float64
	for range 3 {
		want = append(want, floats(t, fn(x)))
	}
	tensor.ManualSeed(7)
	var got [][]float64
	for range 3 {
		got = append(got, floats(t, call(t, f, x)))
	}
	require.NotEqual(t, got[0], got[1])
	for i := range want {
		require.Len(t, got[i], len(want[i]))
	}
	drop := func(x *tensor.Tensor) *tensor.Tensor { return tensor.Call("dropout", x, 0.5, true) }
	g := ones(drop)
	tensor.ManualSeed(7)
	a, b := floats(t, drop(x)), floats(t, drop(x))
	tensor.ManualSeed(7)
	require.Equal(t, a, floats(t, call(t, g, x)))
	require.Equal(t, b, floats(t, call(t, g, x)))
}

func TestHostStateIsRefused(t *testing.T) {
	for name, f := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"a random constant": func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(rand.Float64()) },
		"a random slice": func(x *tensor.Tensor) *tensor.Tensor {
			n, _ := tensor.FromSlice([]float32{rand.Float32()})
			return x.Mul(n)
		},
	} {
		_, err := trace.Trace(one(f), trace.Options{}, vec(t, 1))
		require.ErrorContains(t, err, "random numbers of Go", name)
		_, err = ones(f).Call(context.Background(), vec(t, 1))
		require.ErrorContains(t, err, "random numbers of Go", name)
	}
}

func TestGradientsGoThroughACompiledFunction(t *testing.T) {
	w := vec(t, 2, 3).RequiresGrad()
	fn := func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(w).Tanh().Mul(x).Sum() }
	f := ones(fn)
	grads := func(g func(x *tensor.Tensor) *tensor.Tensor) (out []float64) {
		x := vec(t, 0.5, -1).RequiresGrad()
		h := x.Mul(1)
		gs, err := tensor.Grad(g(h), []*tensor.Tensor{x, w}, tensor.CreateGraph())
		require.NoError(t, err)
		out = append(floats(t, gs[0]), floats(t, gs[1])...)
		second, err := tensor.Grad(gs[0].Square().Sum().Add(gs[1].Sum()), []*tensor.Tensor{x, w})
		require.NoError(t, err)
		return append(append(out, floats(t, second[0])...), floats(t, second[1])...)
	}
	compiled := func(x *tensor.Tensor) *tensor.Tensor { return call(t, f, x) }
	require.InDeltaSlice(t, grads(fn), grads(compiled), 1e-5)

	require.NoError(t, compiled(vec(t, 1, 1)).Backward())
	require.NotNil(t, w.Grad())
}

func TestAliasesAreGuards(t *testing.T) {
	f := trace.New(func(a ...*tensor.Tensor) ([]*tensor.Tensor, error) {
		a[0].Add_(1)
		return trace.Results(a[1].Mul(2))
	}, trace.Options{})
	x, y := vec(t, 1, 2), vec(t, 1, 2)
	require.Equal(t, []float64{2, 4}, floats(t, call(t, f, x, y)))
	require.Equal(t, []float64{4, 6}, floats(t, call(t, f, y, y)), "the same tensor twice")
	z := vec(t, 1, 2, 3)
	require.Equal(t, []float64{4, 4}, floats(t, call(t, f, z.Narrow(0, 0, 2), z.Narrow(0, 1, 2)).Sub(vec(t, 2, 2))), "overlapping views")
	require.Equal(t, []float64{2, 3, 3}, floats(t, z))
}

func TestResultsThatAreInputsStayThem(t *testing.T) {
	f := trace.New(func(a ...*tensor.Tensor) ([]*tensor.Tensor, error) {
		y := a[0].Mul(2)
		return trace.Results(a[0], a[0].Select(0, 1), y, y)
	}, trace.Options{})
	x := vec(t, 1, 2)
	out, err := f.Call(context.Background(), x)
	require.NoError(t, err)
	out[1].Fill(9)
	require.Equal(t, []float64{1, 9}, floats(t, x))
	require.Equal(t, []float64{1, 9}, floats(t, out[0]))
	out[2].Fill(0)
	require.Equal(t, []float64{0, 0}, floats(t, out[3]))
}

func TestSizesBecomeSymbolic(t *testing.T) {
	f := ones(func(x *tensor.Tensor) *tensor.Tensor {
		n := x.Size(0)
		y := x.View(n, -1).Mul(1 / float64(max(n, 1))) // a size as a number
		if n == 1 {
			return y.Sum().Reshape(1)
		}
		return y.Reshape(n*2, -1).Add(tensor.Arange(n * 2).Unsqueeze(1)).Sum(1)
	})
	eager := func(x *tensor.Tensor) []float64 {
		n := x.Size(0)
		y := x.View(n, -1).Mul(1 / float64(max(n, 1)))
		if n == 1 {
			return floats(t, y.Sum().Reshape(1))
		}
		return floats(t, y.Reshape(n*2, -1).Add(tensor.Arange(n*2).Unsqueeze(1)).Sum(1))
	}
	for _, n := range []int{3, 5, 1, 7, 2, 64, 1, 3} {
		x := tensor.Randn(tensor.F32, n, 2, 2)
		require.InDeltaSlice(t, eager(x), floats(t, call(t, f, x)), 1e-5, "size %d", n)
	}
}

func TestDynamicTracesRunAtOtherSizes(t *testing.T) {
	fn := one(func(x *tensor.Tensor) *tensor.Tensor {
		return x.View(x.Size(0), 4).Mul(3).Add(tensor.Ones(tensor.F32, x.Size(0), 4)).Softmax(1)
	})
	p, err := trace.Trace(fn, trace.Options{Dynamic: map[trace.Dynamic]string{{Input: 0, Dim: 0}: "N"}}, tensor.Randn(tensor.F32, 3, 2, 2))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "p.gtc")
	require.NoError(t, p.Save(path, "test"))
	q, err := trace.Open(path)
	require.NoError(t, err)
	for _, n := range []int{0, 1, 7, 100} {
		x := tensor.Randn(tensor.F32, n, 2, 2)
		require.NoError(t, p.Check(fn, runtime.Default(), 1e-6, 1e-6, x))
		require.NoError(t, q.Check(fn, runtime.Default(), 1e-6, 1e-6, x))
	}

	fixed, err := trace.Trace(fn, trace.Options{}, tensor.Randn(tensor.F32, 3, 2, 2))
	require.NoError(t, err)
	_, err = fixed.Run(context.Background(), runtime.Default(), tensor.Randn(tensor.F32, 4, 2, 2).Array())
	require.ErrorContains(t, err, "expected tensor<f32[3,2,2]>")

	_, err = trace.Trace(one(func(x *tensor.Tensor) *tensor.Tensor {
		y := x.Select(0, 0)
		for i := 1; i < x.Size(0); i++ {
			y = y.Add(x.Select(0, i))
		}
		return y
	}), trace.Options{Dynamic: map[trace.Dynamic]string{{}: "N"}}, tensor.Randn(tensor.F32, 3, 2))
	require.ErrorContains(t, err, "guarantees_test.go:")
	require.ErrorContains(t, err, "trace.For")
}

func TestEscapedTensorsAreRefused(t *testing.T) {
	var kept *tensor.Tensor
	call(t, ones(func(x *tensor.Tensor) *tensor.Tensor { kept = x.Mul(2); return x.Add(1) }), vec(t, 1))
	require.ErrorContains(t, kept.Add(1).Err(), "escaped")
}

func TestCompiledFunctionsNestAndRunInManyGoroutines(t *testing.T) {
	inner := ones(func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(2) })
	outer := ones(func(x *tensor.Tensor) *tensor.Tensor {
		y, err := inner.Call(context.Background(), x)
		if err != nil {
			return x.Select(9, 9)
		}
		if pos, err := y[0].Sum().Gt(0).Bool(); err == nil && pos {
			return y[0].Add(1)
		}
		return y[0]
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			v := float64(i - 4)
			for range 10 {
				out, err := outer.Call(context.Background(), vec(t, float32(v)))
				want := 2 * v
				if v > 0 {
					want++
				}
				if err != nil || floats(t, out[0])[0] != want {
					t.Errorf("%v: got %v, %v", v, out, err)
				}
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := outer.Call(ctx, vec(t, 1))
	require.ErrorIs(t, err, context.Canceled)
}

func TestBackwardInATraceIsRefusedAndGradIsRecorded(t *testing.T) {
	w := vec(t, 2).RequiresGrad()
	_, err := trace.Trace(func(a ...*tensor.Tensor) ([]*tensor.Tensor, error) {
		loss := a[0].Mul(w).Square().Sum()
		return []*tensor.Tensor{loss}, loss.Backward()
	}, trace.Options{}, vec(t, 3))
	require.ErrorContains(t, err, "tensor.Grad")
	require.Nil(t, w.Grad())
	f := trace.New(func(a ...*tensor.Tensor) ([]*tensor.Tensor, error) {
		return tensor.Grad(a[0].Mul(w).Square().Sum(), []*tensor.Tensor{w})
	}, trace.Options{})
	require.Equal(t, []float64{36}, floats(t, call(t, f, vec(t, 3))))
	require.Equal(t, []float64{64}, floats(t, call(t, f, vec(t, 4))))
}

func TestPanicsOfTheFunctionAreErrorsWithItsLine(t *testing.T) {
	_, err := trace.Trace(one(func(x *tensor.Tensor) *tensor.Tensor {
		var s []int
		return x.Mul(s[3])
	}), trace.Options{}, vec(t, 1))
	require.ErrorContains(t, err, "guarantees_test.go:")
	require.ErrorContains(t, err, "index out of range")
}
