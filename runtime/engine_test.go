package runtime

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// numbers fills an array with values between -1 and 1.
func numbers(shape ...int) *ir.Array {
	a := ir.NewArray(dtype.F32, shape...)
	for i := range a.Len() {
		a.SetFloat(i, math.Sin(float64(3*i+1)))
	}
	return a
}

// A small layer and what its gradient needs: the cpu target agrees with the reference evaluator, exactly where no contraction takes part.
func TestTargetsAgree(t *testing.T) {
	native, err := New(Options{Target: CPU})
	if err != nil {
		t.Skip(err)
	}
	interp, err := New(Options{Target: Interp})
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		build func(b *ir.Builder, x, y *ir.Value) *ir.Value
		tol   float64
	}{
		{"elementwise", func(b *ir.Builder, x, y *ir.Value) *ir.Value { return b.Op("tanh", b.Op("mul", x, y)) }, 0},
		{"softmax", func(b *ir.Builder, x, _ *ir.Value) *ir.Value {
			e := b.Op("exp", b.Op("sub", x, b.Op("broadcast", b.Op("amax", x, b.Ints(1), b.Bool(true)), b.Ints(33, 70))))
			return b.Op("div", e, b.Op("broadcast", b.Op("sum", e, b.Ints(1), b.Bool(true)), b.Ints(33, 70)))
		}, 0},
		{"sum_to", func(b *ir.Builder, x, _ *ir.Value) *ir.Value { return b.Op("sum_to", x, b.Ints(1, 70)) }, 0},
		{"sum_to, fewer dims", func(b *ir.Builder, x, _ *ir.Value) *ir.Value { return b.Op("sum_to", x, b.Ints(70)) }, 0},
		{"argmax", func(b *ir.Builder, x, _ *ir.Value) *ir.Value { return b.Op("argmax", x, b.Int(0), b.Bool(false)) }, 0},
		{"dot", func(b *ir.Builder, x, y *ir.Value) *ir.Value { return b.Op("dot", x, y, b.Int(0), b.Int(1)) }, 1e-5},
		{"dot over both dims", func(b *ir.Builder, x, y *ir.Value) *ir.Value { return b.Op("dot", x, y, b.Int(0), b.Int(2)) }, 1e-4},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, y := numbers(33, 70), numbers(33, 70)
			f := ir.NewFunc("f")
			require.NoError(t, ir.Try(func() {
				b := ir.NewBuilder(f)
				b.Return(c.build(b, f.Param("x", x.Type()), f.Param("y", y.Type())))
			}))
			want, err := interp.Runner().Run(t.Context(), f, x, y)
			require.NoError(t, err)
			got, err := native.Runner().Run(t.Context(), f, x, y)
			require.NoError(t, err)
			w, g := want[0].(*ir.Array), got[0].(*ir.Array)
			require.Equal(t, w.Shape, g.Shape)
			require.InDeltaSlice(t, w.Floats(), g.Floats(), c.tol)
		})
	}
}
