package trace_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/nn"
	"github.com/gtc-project/gtc/runtime"
	"github.com/gtc-project/gtc/tensor"
	"github.com/gtc-project/gtc/trace"
)

type tensors = []*tensor.Tensor

// model is Go code as users write it, with inputs of several sizes and values.
type model struct {
	name   string
	params tensors // differentiated, besides the inputs
	fn     func(x ...*tensor.Tensor) (tensors, error)
	inputs func() []tensors // several calls
	fixed  bool             // its package is for one size or path
	random bool
}

func randn(shape ...int) *tensor.Tensor { return tensor.Randn(tensor.F32, shape...) }

func sizes(f func(n int) *tensor.Tensor, ns ...int) func() []tensors {
	return func() (out []tensors) {
		for _, n := range ns {
			out = append(out, tensors{f(n)})
		}
		return out
	}
}

func rows(shape ...int) func() []tensors {
	return sizes(func(n int) *tensor.Tensor { return randn(append([]int{n}, shape...)...) }, 2, 3, 2, 5, 1)
}

func single(f func(x *tensor.Tensor) *tensor.Tensor) func(x ...*tensor.Tensor) (tensors, error) {
	return one(f)
}

func minmax(x *tensor.Tensor) (lo, hi, span *tensor.Tensor) {
	lo, hi = x.Min(), x.Max()
	return lo, hi, hi.Sub(lo)
}

func models() []model {
	var ms []model
	add := func(m model) { ms = append(ms, m) }

	l1, l2 := nn.NewLinear(6, 8), nn.NewLinear(8, 3)
	add(model{name: "mlp", params: tensors{l1.Weight, l1.Bias, l2.Weight}, inputs: rows(6), fn: single(func(x *tensor.Tensor) *tensor.Tensor {
		return l2.Forward(l1.Forward(x).Relu()).LogSoftmax(1)
	})})

	c1, bn, c2 := nn.NewConv2d(2, 4, 3, nn.Kw{"padding": 1}), nn.NewBatchNorm2d(4), nn.NewConv2d(4, 2, 1)
	block := func(bn *nn.BatchNorm2d) func(x *tensor.Tensor) *tensor.Tensor {
		return func(x *tensor.Tensor) *tensor.Tensor { return c2.Forward(bn.Forward(c1.Forward(x)).Relu()).Add(x) }
	}
	add(model{name: "residual block in training", params: tensors{c1.Weight, bn.Weight}, inputs: rows(2, 5, 5), fn: single(block(bn))})
	be := nn.NewBatchNorm2d(4)
	nn.Eval(be)
	add(model{name: "residual block in evaluation", params: tensors{c1.Weight, be.Weight}, inputs: rows(2, 5, 5), fn: single(block(be))})

	lstm := nn.NewLSTM(3, 4, nn.Kw{"batch_first": true})
	add(model{name: "lstm layer", inputs: rows(4, 3), fn: func(x ...*tensor.Tensor) (tensors, error) {
		return trace.Results(lstm.Call(x[0])...)
	}})
	wx, wh := randn(3, 4).RequiresGrad(), randn(4, 4).RequiresGrad()
	add(model{name: "recurrence in a Go loop", params: tensors{wx, wh}, inputs: rows(4, 3), fixed: true, fn: func(x ...*tensor.Tensor) (tensors, error) {
		h := tensor.Zeros(tensor.F32, x[0].Size(0), 4)
		var all tensors
		for i := range x[0].Size(1) {
			h = x[0].Select(1, i).MatMul(wx).Add(h.MatMul(wh)).Tanh()
			all = append(all, h)
		}
		return trace.Results(tensor.Stack(all, 1), h)
	}})

	q := nn.NewLinear(6, 6)
	add(model{name: "attention with a causal mask", params: tensors{q.Weight}, inputs: rows(4, 6), fn: single(func(x *tensor.Tensor) *tensor.Tensor {
		n := x.Size(1)
		mask := tensor.Call("triu", tensor.Ones(tensor.F32, n, n), 1).Gt(0)
		s := q.Forward(x).MatMul(x.Transpose(1, 2)).Div(math.Sqrt(float64(x.Size(2))))
		return tensor.Call("masked_fill", s, mask, math.Inf(-1)).Softmax(-1).MatMul(x)
	})})
	add(model{name: "attention over other lengths", inputs: sizes(func(n int) *tensor.Tensor { return randn(2, n, 6) }, 3, 4, 7, 1), fn: single(func(x *tensor.Tensor) *tensor.Tensor {
		n := x.Size(1)
		mask := tensor.Call("tril", tensor.Ones(tensor.F32, n, n))
		return tensor.Where(mask.Eq(0), -1e9, x.MatMul(x.Transpose(1, 2))).Softmax(-1).MatMul(x)
	})})

	drop := nn.NewDropout(0.5)
	add(model{name: "dropout", inputs: rows(6), random: true, fn: single(func(x *tensor.Tensor) *tensor.Tensor { return drop.Forward(x.Mul(2)).Add(1) })})

	emb := nn.NewEmbedding(7, 4)
	ids := func(n int) *tensor.Tensor { return tensor.Arange(n).Remainder(7) }
	add(model{name: "embedding and loss", params: tensors{emb.Weight}, inputs: sizes(ids, 3, 9, 14), fn: single(func(x *tensor.Tensor) *tensor.Tensor {
		return nn.CrossEntropyLoss(emb.Forward(x), x.Remainder(4))
	})})

	signs := func() []tensors {
		return []tensors{{tensor.Full(tensor.F32, 1, 4)}, {tensor.Full(tensor.F32, -1, 4)}, {tensor.Full(tensor.F32, 40, 4)}, {tensor.Full(tensor.F32, 2, 4)}, {tensor.Full(tensor.F32, -30, 4)}}
	}
	add(model{name: "branch on a value", inputs: signs, fixed: true, fn: func(a ...*tensor.Tensor) (tensors, error) {
		pos, err := a[0].Sum().Gt(0).Bool()
		if err != nil {
			return nil, err
		}
		if pos {
			return trace.Results(a[0].Mul(3).Exp())
		}
		return trace.Results(a[0].Sub(1))
	}})
	add(model{name: "early exit", inputs: signs, fixed: true, fn: func(a ...*tensor.Tensor) (tensors, error) {
		x := a[0]
		for range 5 {
			big, err := x.Abs().Max().Gt(10).Bool()
			if err != nil {
				return nil, err
			}
			if big {
				break
			}
			x = x.Mul(2)
		}
		return trace.Results(x.Sin())
	}})
	counts := func() (out []tensors) {
		for _, k := range []int{2, 3, 0, 2, 1} {
			out = append(out, tensors{randn(3), tensor.Full(tensor.I64, k)})
		}
		return out
	}
	add(model{name: "a count from the data", inputs: counts, fixed: true, fn: func(a ...*tensor.Tensor) (tensors, error) {
		n, err := a[1].Int()
		if err != nil {
			return nil, err
		}
		x := a[0]
		for i := range int(n) {
			x = x.Mul(0.5).Add(i)
		}
		return trace.Results(x)
	}})
	add(model{name: "a loop over a size", inputs: rows(3), fixed: true, fn: single(func(x *tensor.Tensor) *tensor.Tensor {
		y := x.Select(0, 0)
		for i := 1; i < x.Size(0); i++ {
			y = y.Mul(0.5).Add(x.Select(0, i).Sigmoid())
		}
		return y
	})})
	add(model{name: "a helper with several results", inputs: rows(3), fn: single(func(x *tensor.Tensor) *tensor.Tensor {
		lo, hi, span := minmax(x)
		return x.Sub(lo).Div(span.Add(1)).Mul(hi)
	})})
	add(model{name: "writes in place", inputs: rows(4), fn: single(func(x *tensor.Tensor) *tensor.Tensor {
		y := x.Clone()
		y.Narrow(1, 1, 2).Mul_(3)
		y.Select(1, 0).Add_(y.Select(1, 3))
		return y.Relu_()
	})})
	add(model{name: "views of inputs as results", inputs: rows(4), fn: func(a ...*tensor.Tensor) (tensors, error) {
		return trace.Results(a[0].Transpose(0, 1), a[0].Narrow(1, 1, 2), a[0].Mul(2), a[0])
	}})
	add(model{name: "the input is written to", inputs: func() []tensors { return []tensors{{randn(2, 4)}, {randn(3, 4)}, {randn(2, 4)}} }, fn: func(a ...*tensor.Tensor) (tensors, error) {
		x := tensor.NoGrad(a[0])
		x.Select(1, 0).Zero_()
		return trace.Results(x.Sum(1))
	}})
	add(model{name: "parts without gradients", params: tensors{q.Weight}, inputs: rows(6), fn: func(a ...*tensor.Tensor) (tensors, error) {
		x := a[0]
		scale := tensor.NoGrad(q.Forward(x)).Abs().Max().Add(1)
		return trace.Results(x.Div(scale), q.Forward(tensor.NoGrad(x).Mul(2)), tensor.NoGrad(q.Weight).Exp().Mul(x.Detach().Sum()))
	}})
	add(model{name: "sizes in numbers", inputs: rows(3, 2), fn: single(func(x *tensor.Tensor) *tensor.Tensor {
		n, c := x.Size(0), x.Size(1)
		return x.Reshape(n*c, -1).Sum().Div(n*c).Add(tensor.Arange(n).To(tensor.F32)).Unsqueeze(1).Expand(n, c+1)
	})})
	add(model{name: "indexing and gather", inputs: rows(5), fn: single(func(x *tensor.Tensor) *tensor.Tensor {
		best := x.ArgMax(1)
		return tensor.Call("gather", x, 1, best.Unsqueeze(1)).Squeeze(1).Add(x.Select(1, 2)).Add(x.IndexSelect(1, best).Sum(1))
	})})
	enc := nn.NewTransformerEncoderLayer(8, 2, nn.Kw{"dim_feedforward": 16, "batch_first": true, "dropout": 0.0})
	add(model{name: "transformer layer", inputs: rows(3, 8), fn: single(func(x *tensor.Tensor) *tensor.Tensor { return enc.Forward(x) })})
	add(model{name: "concatenation of parts", inputs: rows(6), fn: single(func(x *tensor.Tensor) *tensor.Tensor {
		parts := tensor.CallN("split", x, 2, 1)
		return tensor.Cat(tensors{parts[2].Exp(), parts[0], parts[1].Neg()}, 1)
	})})
	add(model{name: "recorded branch and loops", inputs: signs, fn: func(a ...*tensor.Tensor) (tensors, error) {
		x := a[0]
		y, err := trace.If(x.Sum().Gt(0), func() tensors { return tensors{x.Mul(0.1).Exp()} }, func() tensors { return tensors{x.Square()} })
		if err != nil {
			return nil, err
		}
		y, err = trace.While(y, func(s tensors) *tensor.Tensor { return s[0].Max().Lt(100) }, func(s tensors) tensors { return tensors{s[0].Mul(2).Add(x.Sin())} })
		if err != nil {
			return nil, err
		}
		return trace.For(3, y, func(i *tensor.Tensor, s tensors) tensors { return tensors{s[0].Mul(0.5).Add(i).Add(x)} })
	}})
	return ms
}

func (m model) grads(t *testing.T, fn func(...*tensor.Tensor) (tensors, error), in tensors) (values, grads [][]float64, written [][]float64) {
	t.Helper()
	var leaves, args tensors
	for _, x := range in {
		x = x.Clone()
		if x.DType().IsFloat() {
			x = x.RequiresGrad()
			leaves = append(leaves, x)
		}
		args = append(args, x)
	}
	leaves = append(leaves, m.params...)
	outs, err := fn(args...)
	require.NoError(t, err)
	loss := tensor.Zeros(tensor.F32)
	for _, o := range outs {
		values = append(values, append(floats(t, o), float64(len(o.Shape()))))
		if o.NeedsGrad() {
			loss = loss.Add(o.Mul(o.Add(0.5)).Sum())
		}
	}
	if loss.NeedsGrad() {
		gs, err := tensor.Grad(loss, leaves, tensor.AllowUnused())
		require.NoError(t, err)
		for _, g := range gs {
			if g == nil {
				grads = append(grads, nil)
			} else {
				grads = append(grads, floats(t, g))
			}
		}
	}
	for _, x := range args {
		written = append(written, floats(t, x))
	}
	return values, grads, written
}

func near(t *testing.T, want, got [][]float64, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		if want[i] == nil || got[i] == nil { // an unused input has a gradient of zeros where the function is compiled
			for _, v := range append(want[i], got[i]...) {
				require.Zero(t, v, what)
			}
			continue
		}
		require.Len(t, got[i], len(want[i]), what)
		for k := range want[i] {
			require.InDelta(t, want[i][k], got[i][k], 1e-4*(1+math.Abs(want[i][k])), "%s: %d, element %d", what, i, k)
		}
	}
}

// What users write gives the same values, gradients and writes eagerly, as a Function, and as a package that was saved and read.
func TestModelsOfUsers(t *testing.T) {
	tensor.ManualSeed(3)
	for _, m := range models() {
		t.Run(m.name, func(t *testing.T) {
			f := trace.New(m.fn, trace.Options{})
			compiled := func(x ...*tensor.Tensor) (tensors, error) { return f.Call(context.Background(), x...) }
			for i, in := range m.inputs() {
				what := fmt.Sprintf("call %d, %v", i, in[0].Shape())
				tensor.ManualSeed(11)
				v, g, w := m.grads(t, m.fn, in)
				tensor.ManualSeed(11)
				v2, g2, w2 := m.grads(t, compiled, in)
				near(t, v, v2, what+": values")
				near(t, g, g2, what+": gradients")
				near(t, w, w2, what+": inputs")
			}
			if m.random {
				return
			}
			all := m.inputs()
			opts := trace.Options{Dynamic: map[trace.Dynamic]string{}}
			if !m.fixed {
				for i, a := range all[0] {
					for d := range a.Shape() {
						for _, in := range all {
							if in[i].Size(d) != a.Size(d) {
								opts.Dynamic[trace.Dynamic{Input: i, Dim: d}] = "N"
							}
						}
					}
				}
			}
			p, err := trace.Trace(m.fn, opts, all[0]...)
			require.NoError(t, err)
			require.Empty(t, ir.Verify(p.Func))
			path := filepath.Join(t.TempDir(), "m.gtc")
			require.NoError(t, p.Save(path, "test"))
			loaded, err := trace.Open(path)
			require.NoError(t, err)
			if m.fixed {
				all = all[:1]
			}
			for _, in := range all {
				require.NoError(t, p.Check(m.fn, runtime.Default(), 1e-4, 1e-5, in...))
				want, err := m.fn(cloned(in)...)
				require.NoError(t, err)
				var args []any
				for _, x := range in {
					args = append(args, x.Clone())
				}
				got, err := loaded.Call(context.Background(), args...)
				require.NoError(t, err)
				require.Len(t, got, len(want))
				for i, w := range want {
					g := got[i].(*tensor.Tensor)
					require.Equal(t, w.Shape(), g.Shape())
					if !t.Failed() && m.name != "residual block in training" {
						near(t, [][]float64{floats(t, w)}, [][]float64{floats(t, g)}, "package")
					}
				}
			}
		})
	}
}

func cloned(in tensors) (out tensors) {
	for _, x := range in {
		out = append(out, x.Clone())
	}
	return out
}
