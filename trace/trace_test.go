package trace_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/examples/lenet"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/nn"
	"github.com/gtc-project/gtc/runtime"
	"github.com/gtc-project/gtc/tensor"
	"github.com/gtc-project/gtc/trace"
)

func vec(t *testing.T, v ...float32) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(v)
	require.NoError(t, err)
	return x
}

func floats(t *testing.T, x *tensor.Tensor) []float64 {
	t.Helper()
	v, err := x.Floats()
	require.NoError(t, err)
	return v
}

func run(t *testing.T, p *trace.Program, in ...*tensor.Tensor) []float64 {
	t.Helper()
	args := make([]*ir.Array, len(in))
	for i, x := range in {
		args[i] = x.Array()
	}
	out, err := p.Run(context.Background(), runtime.Default(), args...)
	require.NoError(t, err)
	return out[0].(*ir.Array).Floats()
}

func one(f func(x *tensor.Tensor) *tensor.Tensor) trace.Func {
	return func(args ...*tensor.Tensor) ([]*tensor.Tensor, error) {
		y := f(args[0])
		return []*tensor.Tensor{y}, y.Err()
	}
}

func TestTraceOfAModuleNamesItsWeights(t *testing.T) {
	m := lenet.New()
	nn.Eval(m)
	x := tensor.Randn(tensor.F32, 2, 1, 28, 28)
	p, err := trace.Trace(trace.Of(m), trace.Options{Model: m}, x)
	require.NoError(t, err)
	require.Contains(t, p.Weights, "conv1.weight")
	require.Contains(t, p.Weights, "fc3.bias")
	require.Len(t, p.Weights, 10)
	require.Empty(t, ir.Verify(p.Func))
	require.NoError(t, p.Check(trace.Of(m), runtime.Default(), 1e-4, 1e-5, tensor.Randn(tensor.F32, 2, 1, 28, 28)))

	path := filepath.Join(t.TempDir(), "lenet.gtc")
	require.NoError(t, p.Save(path, "lenet"))
	q, err := trace.Open(path)
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, q.Inputs)
	require.NoError(t, q.Check(trace.Of(m), runtime.Default(), 1e-4, 1e-5, x))
}

// A branch on a value is a guard: the other side is traced when it is first taken, and an artefact that cannot trace says where.
func TestGuardsMergePaths(t *testing.T) {
	runs := 0
	f := one(func(x *tensor.Tensor) *tensor.Tensor {
		runs++
		if pos, err := x.Sum().Gt(0).Bool(); err == nil && pos {
			return x.Mul(3)
		}
		return x.Sub(1)
	})
	tr := trace.New(f, trace.Options{})
	for _, c := range []struct{ in, want []float64 }{
		{[]float64{1, 1, 1}, []float64{3, 3, 3}},
		{[]float64{-1, -1, -1}, []float64{-2, -2, -2}},
		{[]float64{2, 2, 2}, []float64{6, 6, 6}},
		{[]float64{-3, -3, -3}, []float64{-4, -4, -4}},
	} {
		x := vec(t, float32(c.in[0]), float32(c.in[1]), float32(c.in[2]))
		out, err := tr.Call(context.Background(), x)
		require.NoError(t, err)
		require.Equal(t, c.want, floats(t, out[0]))
	}
	require.Equal(t, 4, runs, "one trace per path, and its check")

	p, err := trace.Trace(f, trace.Options{}, vec(t, 1, 1, 1))
	require.NoError(t, err)
	_, err = p.Run(context.Background(), runtime.Default(), vec(t, -1, -1, -1).Array())
	require.ErrorContains(t, err, "trace_test.go:")
	require.ErrorContains(t, err, "trace.If")
}

func TestReadsThatCannotBeFollowedAreErrors(t *testing.T) {
	_, err := trace.Trace(one(func(x *tensor.Tensor) *tensor.Tensor {
		v, err := x.Sum().Item()
		if err != nil {
			return tensor.Call("neg", x.Select(0, 99)) // any failed tensor
		}
		return x.Mul(v)
	}), trace.Options{}, vec(t, 1, 2))
	require.Error(t, err)
	_, err = trace.Trace(func(args ...*tensor.Tensor) ([]*tensor.Tensor, error) {
		v, err := args[0].Sum().Item()
		if err != nil {
			return nil, err
		}
		return []*tensor.Tensor{args[0].Mul(v)}, nil
	}, trace.Options{}, vec(t, 1, 2))
	require.ErrorContains(t, err, "trace_test.go:")
	require.ErrorContains(t, err, "Peek")
}

func TestInPlaceWritesAndViewsAreTraced(t *testing.T) {
	f := one(func(x *tensor.Tensor) *tensor.Tensor {
		y := x.Mul(1)
		y.Narrow(0, 1, 2).Add_(10)
		v := y.Select(0, 1)
		y.Mul_(2)
		return y.Add(v)
	})
	p, err := trace.Trace(f, trace.Options{}, vec(t, 1, 2, 3))
	require.NoError(t, err)
	require.Equal(t, []float64{2 + 24, 24 + 24, 26 + 24}, run(t, p, vec(t, 1, 2, 3)))
	require.NoError(t, p.Check(f, runtime.Default(), 0, 0, vec(t, -4, 0.5, 7)))
}

func TestRecordedControlFlow(t *testing.T) {
	f := func(args ...*tensor.Tensor) ([]*tensor.Tensor, error) {
		x := args[0]
		y, err := trace.If(x.Sum().Gt(0), func() []*tensor.Tensor { return []*tensor.Tensor{x.Exp()} }, func() []*tensor.Tensor { return []*tensor.Tensor{x.Mul(-1)} })
		if err != nil {
			return nil, err
		}
		y, err = trace.While(y,
			func(s []*tensor.Tensor) *tensor.Tensor { return s[0].Max().Lt(100) },
			func(s []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{s[0].Mul(2)} })
		if err != nil {
			return nil, err
		}
		return trace.For(3, y, func(i *tensor.Tensor, s []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{s[0].Add(i)}
		})
	}
	p, err := trace.Trace(f, trace.Options{}, vec(t, 1, 2))
	require.NoError(t, err)
	require.Empty(t, ir.Verify(p.Func))
	for _, in := range []*tensor.Tensor{vec(t, 1, 2), vec(t, -1, -2), vec(t, 0.5, 3)} {
		require.NoError(t, p.Check(f, runtime.Default(), 1e-6, 0, in))
	}
}

func TestHostRandomnessIsNoticed(t *testing.T) {
	n := 0
	tr := trace.New(one(func(x *tensor.Tensor) *tensor.Tensor {
		n++
		if n%2 == 0 {
			x = x.Mul(2)
		}
		if pos, err := x.Sum().Gt(0).Bool(); err == nil && pos {
			return x
		}
		return x.Neg()
	}), trace.Options{})
	_, err := tr.Call(context.Background(), vec(t, 1))
	require.ErrorContains(t, err, "did different things")
}

func ExampleTrace() {
	f := func(args ...*tensor.Tensor) ([]*tensor.Tensor, error) {
		y := args[0].Mul(2).Relu()
		return []*tensor.Tensor{y}, y.Err()
	}
	x, _ := tensor.FromSlice([]float32{-1, 3})
	p, err := trace.Trace(f, trace.Options{}, x)
	if err != nil {
		fmt.Println(err)
		return
	}
	out, _ := p.Run(context.Background(), runtime.Default(), x.Array())
	fmt.Println(tensor.FromArray(out[0].(*ir.Array)))
	// Output: tensor([0., 6.])
}
