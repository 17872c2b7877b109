package cpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
	"github.com/gtc-project/gtc/runtime/cache"
	"github.com/gtc-project/gtc/runtime/llvm"
)

// testCache lasts as long as the test process, so that a change of generated code never meets old kernels.
var testCache = sync.OnceValue(func() *cache.Cache { return cache.New(cache.Options{}) })

func backend(t testing.TB) *Backend {
	b, err := New(Options{Cache: testCache()})
	if err != nil {
		t.Skip(err)
	}
	return b
}

// special values that operations treat in their own ways
var specials = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, 3, 7, 10, 1e-3, -1e-3, 100, -100, 1e10, -1e10, 1e-40, 1e-310, 6e-8, 65504, 65519, 65520,
	2147483647, 2147483648, -2147483648, -2147483649, 9.3e18, -9.3e18, 3.4e38, 1e300, math.Inf(1), math.Inf(-1), math.NaN(), math.Pi, 1.5, 2.5, -1.5, 88, 89, -104, 709, 710, 12345.678}

// randomArray fills a contiguous array with special and random values.
func randomArray(r *rand.Rand, d dtype.DType, shape ...int) *ir.Array {
	a := ir.NewArray(d, shape...)
	for i := range a.Len() {
		switch {
		case !d.IsFloat() && r.IntN(3) == 0:
			a.SetInt(i, int64(r.IntN(7))-3)
		case !d.IsFloat():
			a.SetInt(i, int64(r.Uint64()))
		case r.IntN(3) == 0:
			a.SetFloat(i, specials[r.IntN(len(specials))])
		case r.IntN(4) == 0:
			a.SetFloat(i, math.Ldexp(r.Float64()-0.5, r.IntN(60)-30))
		default:
			a.SetFloat(i, 8*(r.Float64()-0.5))
		}
	}
	return a
}

// requireEqual compares element by element: equal bits, or both NaN.
func requireEqual(t testing.TB, want, got *ir.Array, what string) {
	t.Helper()
	require.Equal(t, want.DType, got.DType, what)
	require.Equal(t, want.Shape, got.Shape, what)
	want, got = want.Contiguous(), got.Contiguous()
	size := want.DType.Size()
	w, g := want.Bytes(), got.Bytes()
	for i := range want.Len() {
		if string(w[i*size:(i+1)*size]) == string(g[i*size:(i+1)*size]) {
			continue
		}
		x, y := want.Float(want.Offset+i), got.Float(got.Offset+i)
		if want.DType.IsFloat() && x != x && y != y {
			continue
		}
		require.Failf(t, "results differ", "%s: element %d of %v: want %v (%x), got %v (%x)", what, i, want.Shape, x, w[i*size:(i+1)*size], y, g[i*size:(i+1)*size])
	}
}

// checkProg compares a program's kernel with the interpreter.
func checkProg(t *testing.T, b *Backend, p *scalar.Prog, what string, ins ...*ir.Array) {
	t.Helper()
	want, wantErr := ir.RunProg(p, ins[0].Shape, ins)
	outs := make([]*ir.Array, len(p.Out))
	for i, o := range p.Out {
		outs[i] = ir.NewArray(o.DType, ins[0].Shape...)
	}
	err := b.Elementwise(p).Run(t.Context(), outs, ins)
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error(), what)
		return
	}
	require.NoError(t, err, what)
	for i := range outs {
		requireEqual(t, want[i], outs[i], what)
	}
}

// Every elementwise op on every dtype gives the interpreter's bits, for special values and odd lengths.
func TestEveryOp(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(1, 2))
	only := os.Getenv("OP")
	for _, name := range scalar.Names() {
		if only != "" && name != only {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for _, d := range dtype.All {
				p, err := scalar.Program(name, d)
				if err != nil {
					continue // not defined for this dtype
				}
				ins := make([]*ir.Array, len(p.In))
				for _, n := range []int{1, 203} {
					for i, in := range p.In {
						ins[i] = randomArray(r, in.DType, n)
					}
					if p.MayFault() {
						noZeros(ins[1])
					}
					checkProg(t, b, p, fmt.Sprintf("%s %s n=%d", name, d, n), ins...)
				}
			}
		})
	}
}

func noZeros(a *ir.Array) {
	for i := range a.Len() {
		if a.Int(i) == 0 {
			a.SetInt(i, 3)
		}
	}
}

// Conversions between all pairs of dtypes.
func TestConvert(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(3, 4))
	for _, from := range dtype.All {
		for _, to := range dtype.All {
			p, err := ir.ElementwiseProg(ir.LookupOp("convert"), to, from)
			require.NoError(t, err)
			checkProg(t, b, p, fmt.Sprintf("%s to %s", from, to), randomArray(r, from, 517))
		}
	}
}

// Broadcast, transposed, sliced and reversed operands and results, of many sizes.
func TestLayouts(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(5, 6))
	p, err := scalar.Program("where", dtype.F32)
	require.NoError(t, err)
	h, err := scalar.Program("add", dtype.BF16)
	require.NoError(t, err)
	for round := range 60 {
		shape := make([]int, r.IntN(5))
		for i := range shape {
			shape[i] = []int{1, 2, 3, 7, 17, 40}[r.IntN(6)]
		}
		ins := []*ir.Array{randomView(r, dtype.Bool, shape), randomView(r, dtype.F32, shape), randomView(r, dtype.F32, shape)}
		checkProg(t, b, p, fmt.Sprintf("round %d shape %v", round, shape), ins...)
		ins = []*ir.Array{randomView(r, dtype.BF16, shape), randomView(r, dtype.BF16, shape)}
		checkProg(t, b, h, fmt.Sprintf("round %d shape %v", round, shape), ins...)

		// a result that is itself a view
		want, err := ir.RunProg(h, shape, ins)
		require.NoError(t, err)
		out := strideView(r, ir.NewArray(dtype.BF16, padded(shape)...), shape)
		require.NoError(t, b.Elementwise(h).Run(t.Context(), []*ir.Array{out}, ins))
		requireEqual(t, want[0], out, fmt.Sprintf("round %d: result with strides %v", round, out.Strides))
	}
}

func padded(shape []int) []int {
	out := make([]int, len(shape))
	for i, n := range shape {
		out[i] = 2*n + 1
	}
	return out
}

// strideView takes a view of the given shape of an array twice as large: steps 1, 2 or -1 along each dim, dims in random order.
func strideView(r *rand.Rand, a *ir.Array, shape []int) *ir.Array {
	v := a.View(append([]int{}, shape...), append([]int{}, a.Strides...), a.Offset)
	for d, n := range shape {
		switch r.IntN(3) {
		case 1:
			v.Strides[d] *= 2
		case 2:
			v.Offset += (n - 1) * v.Strides[d]
			v.Strides[d] = -v.Strides[d]
		}
	}
	return v
}

// randomView makes an operand of the given shape with some layout.
func randomView(r *rand.Rand, d dtype.DType, shape []int) *ir.Array {
	switch r.IntN(4) {
	case 0: // contiguous
		return randomArray(r, d, shape...)
	case 1: // broadcast along some dims
		small := append([]int{}, shape...)
		for i := range small {
			if r.IntN(2) == 0 {
				small[i] = 1
			}
		}
		v := randomArray(r, d, small...)
		for i := range small {
			if small[i] == 1 {
				v.Strides[i] = 0
			}
		}
		v.Shape = append([]int{}, shape...)
		return v
	case 2: // dims stored in reverse order
		rev := make([]int, len(shape))
		for i, n := range shape {
			rev[len(shape)-1-i] = n
		}
		a := randomArray(r, d, rev...)
		st := make([]int, len(shape))
		for i := range st {
			st[i] = a.Strides[len(shape)-1-i]
		}
		return a.View(append([]int{}, shape...), st, 0)
	}
	return strideView(r, randomArray(r, d, padded(shape)...), shape)
}

// A whole group: shared inputs, several results of several dtypes.
func TestFusedGroup(t *testing.T) {
	b := backend(t)
	r := rand.New(rand.NewPCG(7, 8))
	sb := scalar.NewBuilder()
	x, y, h := sb.Input(dtype.F32), sb.Input(dtype.F32), sb.Input(dtype.F16)
	z := sb.Mul(sb.Add(x, y), sb.Convert(dtype.F32, h))
	e, err := scalar.Apply(sb, "tanh", z)
	require.NoError(t, err)
	sb.Output(e)
	sb.Output(sb.GT(z, x))
	sb.Output(sb.Convert(dtype.F64, sb.Mul(e, e)))
	sb.Output(sb.Convert(dtype.BF16, z))
	p := sb.Finish()
	for _, n := range []int{1, 5, 8, 9, 33, 1000, 70001} {
		checkProg(t, b, p, fmt.Sprint(n), randomArray(r, dtype.F32, n), randomArray(r, dtype.F32, n), randomArray(r, dtype.F16, n))
	}
}

func TestFaults(t *testing.T) {
	b := backend(t)
	p, err := scalar.Program("floor_div", dtype.I32)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(9, 9))
	for _, n := range []int{1, 100, 100000} {
		x, y := randomArray(r, dtype.I32, n), randomArray(r, dtype.I32, n)
		noZeros(y)
		checkProg(t, b, p, "no zero", x, y)
		y.SetInt(r.IntN(n), 0)
		err := b.Elementwise(p).Run(t.Context(), []*ir.Array{ir.NewArray(dtype.I32, n)}, []*ir.Array{x, y})
		require.ErrorContains(t, err, "ZeroDivisionError", "%d elements", n)
	}
}

func TestInPlace(t *testing.T) {
	b := backend(t)
	p, err := scalar.Program("add", dtype.F32)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(11, 12))
	x, y := randomArray(r, dtype.F32, 31, 57), randomArray(r, dtype.F32, 31, 57)
	want, err := ir.RunProg(p, x.Shape, []*ir.Array{x, y})
	require.NoError(t, err)
	require.NoError(t, b.Elementwise(p).Run(t.Context(), []*ir.Array{x}, []*ir.Array{x, y}))
	requireEqual(t, want[0], x, "in place")
}

func TestElementwiseErrors(t *testing.T) {
	b := backend(t)
	p, err := scalar.Program("neg", dtype.F32)
	require.NoError(t, err)
	m := b.Elementwise(p)
	x, y := ir.NewArray(dtype.F32, 3), ir.NewArray(dtype.F32, 4)
	run := func(out, in *ir.Array) error { return m.Run(t.Context(), []*ir.Array{out}, []*ir.Array{in}) }
	require.ErrorContains(t, run(x, y), "shapes [4] and [3] differ")
	require.ErrorContains(t, run(x, ir.NewArray(dtype.F64, 3)), "is f64, the program wants f32")
	require.ErrorContains(t, run(x.View([]int{5}, []int{0}, 0), x.View([]int{5}, []int{0}, 0)), "repeated dim")
	require.ErrorContains(t, run(x, x.View([]int{3}, []int{2}, 0)), "outside its 12 bytes")
	require.ErrorContains(t, m.Run(t.Context(), nil, []*ir.Array{x}), "1 operands and gives 1 results")
	require.NoError(t, run(ir.NewArray(dtype.F32, 0, 3), ir.NewArray(dtype.F32, 0, 3)))
}

// LLVM 14, the oldest supported version, gives the same bits.
func TestLLVM14(t *testing.T) {
	old, err := llvm.Open(llvm.Options{Path: "libLLVM-14.so.1"})
	if err != nil {
		t.Skip(err)
	}
	b, err := New(Options{LLVM: old, Cache: testCache()})
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"exp", "tanh", "erf", "floor_div", "gcd", "round", "sqrt", "maximum"} {
		for _, d := range []dtype.DType{dtype.I32, dtype.F16, dtype.F32, dtype.F64} {
			p, err := scalar.Program(name, d)
			if err != nil {
				continue
			}
			ins := make([]*ir.Array, len(p.In))
			for i := range ins {
				ins[i] = randomArray(r, d, 77)
			}
			if p.MayFault() {
				noZeros(ins[1])
			}
			checkProg(t, b, p, name+" "+d.String(), ins...)
		}
	}
}

func BenchmarkElementwise(bb *testing.B) {
	b := backend(bb)
	for _, c := range []struct {
		op string
		d  dtype.DType
		n  int
	}{{"add", dtype.F32, 1 << 10}, {"add", dtype.F32, 1 << 14}, {"add", dtype.F32, 1 << 22}, {"exp", dtype.F32, 1 << 14}, {"tanh", dtype.F32, 1 << 14}, {"exp", dtype.F64, 1 << 14}, {"mul", dtype.BF16, 1 << 14}, {"mul", dtype.F16, 1 << 14}} {
		bb.Run(fmt.Sprintf("%s/%s/%d", c.op, c.d, c.n), func(bb *testing.B) {
			p, err := scalar.Program(c.op, c.d)
			require.NoError(bb, err)
			ins := make([]*ir.Array, len(p.In))
			for i := range ins {
				ins[i] = ir.NewArray(c.d, c.n)
				for k := range c.n {
					ins[i].SetFloat(k, float64(k%100)/50)
				}
			}
			outs := []*ir.Array{ir.NewArray(c.d, c.n)}
			m := b.Elementwise(p)
			bb.SetBytes(int64(c.n * c.d.Size() * (1 + len(ins))))
			for bb.Loop() {
				if err := m.Run(bb.Context(), outs, ins); err != nil {
					bb.Fatal(err)
				}
			}
			bb.ReportMetric(float64(bb.Elapsed().Nanoseconds())/float64(bb.N)/float64(c.n), "ns/elem")
		})
	}
}

// The time to compile one kernel, without any cache.
func BenchmarkCompile(bb *testing.B) {
	b := backend(bb)
	for _, name := range []string{"add", "exp", "tanh", "pow"} {
		bb.Run(name, func(bb *testing.B) {
			p, err := scalar.Program(name, dtype.F32)
			require.NoError(bb, err)
			for bb.Loop() {
				text := b.Elementwise(p).Text(ones(len(p.In) + 1))
				if _, err := b.Emit(text, llvm.Object); err != nil {
					bb.Fatal(err)
				}
			}
		})
	}
}

// What is kept of a program goes with it.
func TestKernelsAreForgotten(t *testing.T) {
	b := backend(t)
	x := ir.NewArray(dtype.F32, 8)
	func() {
		sb := scalar.NewBuilder()
		sb.Output(sb.Add(sb.Input(dtype.F32), sb.F(dtype.F32, 123)))
		p := sb.Finish()
		require.NoError(t, b.Elementwise(p).Run(t.Context(), []*ir.Array{x}, []*ir.Array{x}))
		r, err := b.Reduce(Sum, p)
		require.NoError(t, err)
		require.NoError(t, r.Run(t.Context(), ir.NewArray(dtype.F32), []*ir.Array{x}, []int{0}))
	}()
	size := func(m *sync.Map) (n int) {
		m.Range(func(any, any) bool { n++; return true })
		return n
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		b.mu.Lock()
		defer b.mu.Unlock()
		return size(&b.maps) == 0 && size(&b.reduces) == 0 && len(b.modules) == 0
	}, 5*time.Second, 5*time.Millisecond)
}

// Goroutines share kernels, compiled once, and threads.
func TestConcurrentUse(t *testing.T) {
	b := backend(t)
	p, err := scalar.Program("exp", dtype.F32)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(13, 14))
	x := randomArray(r, dtype.F32, 100, 700)
	want, err := ir.RunProg(p, x.Shape, []*ir.Array{x})
	require.NoError(t, err)
	sums, err := evalReduce(Sum, want[0], []int{1}, false)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 5 {
				out, sum := ir.NewArray(dtype.F32, 100, 700), ir.NewArray(dtype.F32, 100)
				err := b.Elementwise(p).Run(context.Background(), []*ir.Array{out}, []*ir.Array{x})
				red, err2 := b.Reduce(Sum, p)
				if err == nil && err2 == nil {
					err = red.Run(context.Background(), sum, []*ir.Array{x}, []int{1})
				}
				if err != nil || err2 != nil || string(out.Data) != string(want[0].Data) || len(sum.Floats()) != len(sums.Floats()) {
					t.Errorf("wrong result: %v, %v", err, err2)
				}
			}
		})
	}
	wg.Wait()
}

func TestCancelled(t *testing.T) {
	b := backend(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := ir.NewArray(dtype.F32, 1000, 1000)
	p, err := scalar.Program("exp", dtype.F32)
	require.NoError(t, err)
	require.ErrorIs(t, b.Elementwise(p).Run(ctx, []*ir.Array{x}, []*ir.Array{x}), context.Canceled)
	require.ErrorIs(t, runDot(ctx, b, ir.NewArray(dtype.F32, 1000, 1000), x, x, 0, 1), context.Canceled)
}

func BenchmarkTranspose(bb *testing.B) {
	b := backend(bb)
	x, out := ir.NewArray(dtype.F32, 1024, 1024), ir.NewArray(dtype.F32, 1024, 1024)
	xt := x.View([]int{1024, 1024}, []int{1, 1024}, 0)
	bb.SetBytes(8 << 20)
	for bb.Loop() {
		if err := b.Elementwise(Identity(dtype.F32)).Run(bb.Context(), []*ir.Array{out}, []*ir.Array{xt}); err != nil {
			bb.Fatal(err)
		}
	}
}
