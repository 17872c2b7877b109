package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
	"github.com/gtc-project/gtc/runtime/cache"
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
