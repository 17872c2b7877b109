package cpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// evalReduce runs a reduction in the reference evaluator.
func evalReduce(op ReduceOp, x *ir.Array, dims []int, keep bool) (out *ir.Array, err error) {
	f := ir.NewFunc("f")
	err = ir.Try(func() {
		b := ir.NewBuilder(f)
		v := f.Param("x", x.Type())
		d := b.Ints(dims...)
		if op.isArg() {
			d = b.Int(dims[0])
		}
		b.Return(b.Op(string(op), v, d, b.Bool(keep)))
	})
	if err != nil {
		return nil, err
	}
	res, err := new(ir.Evaluator).Run(context.Background(), f, x)
	if err != nil {
		return nil, err
	}
	return res[0].(*ir.Array), nil
}

func checkReduce(t *testing.T, b *Backend, op ReduceOp, x *ir.Array, dims []int, keep bool) {
	t.Helper()
	what := fmt.Sprintf("%s of %s%v strides %v over %v", op, x.DType, x.Shape, x.Strides, dims)
	want, err := evalReduce(op, x, dims, keep)
	r, err2 := b.Reduce(op, Identity(x.DType))
	if err2 != nil {
		require.Error(t, err, what)
		return
	}
	shape := []int{}
	for i, n := range x.Shape {
		switch {
		case !slices.Contains(dims, i):
			shape = append(shape, n)
		case keep:
			shape = append(shape, 1)
		}
	}
	d, _ := op.Result(x.DType)
	out := ir.NewArray(d, shape...)
	err2 = r.Run(t.Context(), out, []*ir.Array{x}, dims)
	if err != nil {
		require.Error(t, err2, what+err.Error())
		return
	}
	require.NoError(t, err2, what)
	requireEqual(t, want, out, what)
}

var allReduceOps = []ReduceOp{Sum, Prod, Amax, Amin, Any, All, Argmax, Argmin}

// Every reduction of every dtype over a row, a column and everything.
func TestEveryReduction(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, op := range allReduceOps {
		t.Run(string(op), func(t *testing.T) {
			for _, d := range dtype.All {
				if d != dtype.Bool && (op == Any || op == All) {
					continue
				}
				for _, n := range []int{1, 15, 16, 100} {
					x := randomArray(r, d, 3, n)
					checkReduce(t, b, op, x, []int{1}, true)
					checkReduce(t, b, op, x, []int{0}, false)
				}
				if !op.isArg() {
					checkReduce(t, b, op, randomArray(r, d, 5, 7), []int{0, 1}, false)
				}
			}
		})
	}
}

// Random shapes, dims and layouts.
func TestReduceLayouts(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		shape := make([]int, 1+r.IntN(4))
		var dims []int
		for i := range shape {
			shape[i] = []int{1, 2, 3, 7, 16, 17, 40}[r.IntN(7)]
			if r.IntN(2) == 0 {
				dims = append(dims, i)
			}
		}
		op := []ReduceOp{Sum, Prod, Amax, Argmin}[r.IntN(4)]
		if op.isArg() {
			dims = []int{r.IntN(len(shape))}
		}
		d := []dtype.DType{dtype.F32, dtype.F64, dtype.BF16, dtype.I64}[r.IntN(4)]
		checkReduce(t, b, op, randomView(r, d, shape), dims, r.IntN(2) == 0)
	}
}

// Blocks of the contract's order: reductions long enough to have several, shared between threads or not.
func TestReduceBlocks(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		shape, dims []int
	}{{[]int{70000}, []int{0}}, {[]int{65536 * 2}, []int{0}}, {[]int{2, 200001}, []int{1}}, {[]int{9000, 5}, []int{0}}, {[]int{4096, 40}, []int{0}},
		{[]int{90, 3, 784}, []int{0, 2}}, {[]int{90, 3, 783}, []int{0, 2}}, {[]int{8193, 1}, []int{0}}, {[]int{50, 100, 9}, []int{0, 1}}} {
		for _, op := range []ReduceOp{Sum, Amax, Argmax} {
			if op.isArg() && len(c.dims) > 1 {
				continue
			}
			for _, d := range []dtype.DType{dtype.F32, dtype.F16} {
				checkReduce(t, b, op, randomArray(r, d, c.shape...), c.dims, false)
			}
		}
	}
}

func TestReduceNothing(t *testing.T) {
	b := backend(t)
	for _, op := range allReduceOps {
		d := dtype.F32
		if op == Any || op == All {
			d = dtype.Bool
		}
		checkReduce(t, b, op, ir.NewArray(d, 3, 0), []int{1}, false)
		checkReduce(t, b, op, ir.NewArray(d, 0, 3), []int{1}, false)
	}
	checkReduce(t, b, Sum, ir.NewArray(dtype.F32, 2, 3), nil, false)
}

// A program in front: the sum of squared differences from a broadcast row, in one pass.
func TestReducePrologue(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(7, 8))
	sb := scalar.NewBuilder()
	x, m := sb.Input(dtype.F32), sb.Input(dtype.F32)
	d := sb.Sub(x, m)
	sb.Output(sb.Mul(d, d))
	p := sb.Finish()
	red, err := b.Reduce(Sum, p)
	require.NoError(t, err)
	for _, shape := range [][]int{{50, 70}, {300, 33}} {
		xs := randomArray(r, dtype.F32, shape...)
		mean := randomArray(r, dtype.F32, shape[1])
		ms := mean.View(shape, []int{0, 1}, 0)
		sq, err := ir.RunProg(p, shape, []*ir.Array{xs, ms})
		require.NoError(t, err)
		for dim := range 2 {
			want, err := evalReduce(Sum, sq[0], []int{dim}, false)
			require.NoError(t, err)
			out := ir.NewArray(dtype.F32, shape[1-dim])
			require.NoError(t, red.Run(t.Context(), out, []*ir.Array{xs, ms}, []int{dim}))
			requireEqual(t, want, out, fmt.Sprint(shape, dim))
		}
	}
}

func TestReduceErrors(t *testing.T) {
	b := backend(t)
	_, err := b.Reduce(Sum, Identity(dtype.Bool))
	require.ErrorContains(t, err, "no reduction sum of bool")
	r, err := b.Reduce(Sum, Identity(dtype.F32))
	require.NoError(t, err)
	x := ir.NewArray(dtype.F32, 2, 3)
	run := func(out, x *ir.Array, dims ...int) error { return r.Run(t.Context(), out, []*ir.Array{x}, dims) }
	require.ErrorContains(t, run(ir.NewArray(dtype.F32, 2), x, 0), "does not fit")
	require.ErrorContains(t, run(ir.NewArray(dtype.F32, 2), x, 2), "do not fit")
	require.ErrorContains(t, run(ir.NewArray(dtype.F64, 2), x, 1), "result is f64")
	require.ErrorContains(t, run(ir.NewArray(dtype.F32, 2), x.View([]int{2, 3}, []int{4, 1}, 0), 1), "outside")
}

func BenchmarkReduce(bb *testing.B) {
	b := backend(bb)
	for _, c := range []struct {
		op   ReduceOp
		m, n int
		dim  int
	}{{Sum, 128, 1024, 1}, {Sum, 128, 1024, 0}, {Sum, 1, 1 << 22, 1}, {Sum, 4096, 1024, 0}, {Amax, 128, 1024, 1}, {Argmax, 128, 1024, 1}, {Sum, 100000, 10, 1}} {
		bb.Run(fmt.Sprintf("%s/%dx%d/%d", c.op, c.m, c.n, c.dim), func(bb *testing.B) {
			x := ir.NewArray(dtype.F32, c.m, c.n)
			d, _ := c.op.Result(dtype.F32)
			out := ir.NewArray(d, []int{c.n, c.m}[c.dim])
			r, err := b.Reduce(c.op, Identity(dtype.F32))
			require.NoError(bb, err)
			bb.SetBytes(int64(4 * c.m * c.n))
			for bb.Loop() {
				if err := r.Run(bb.Context(), out, []*ir.Array{x}, []int{c.dim}); err != nil {
					bb.Fatal(err)
				}
			}
		})
	}
}
