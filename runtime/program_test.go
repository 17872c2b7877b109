//go:build !nollvm

package runtime

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// both runs a function on the cpu target, several times with one instance, and demands what the reference evaluator gives, up to a tolerance.
func both(t *testing.T, build func(b *ir.Builder, x *ir.Value), x *ir.Array, tolerance float64) (*Engine, *ir.Func) {
	t.Helper()
	native, err := New(Options{Target: CPU})
	if err != nil {
		t.Skip(err)
	}
	f := ir.NewFunc("f")
	require.NoError(t, ir.Try(func() {
		b := ir.NewBuilder(f)
		build(b, f.Param("x", x.Type()))
	}))
	require.Empty(t, ir.Verify(f))
	want, err := new(ir.Evaluator).Run(t.Context(), f, x)
	require.NoError(t, err)
	for range 3 {
		got, err := native.Runner().Run(t.Context(), f, x)
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range want {
			require.InDeltaSlice(t, floats(want[i]), floats(got[i]), tolerance, "result %d", i)
		}
		ir.Release(got...)
	}
	return native, f
}

// floats lists the elements of a tensor, or of the tensors in a list.
func floats(d ir.Datum) []float64 {
	if l, ok := d.(ir.List); ok {
		var all []float64
		for _, e := range l.Elems() {
			all = append(all, floats(e)...)
		}
		return all
	}
	return d.(*ir.Array).Floats()
}

// A chain needs room for two of its values at a time, however long it is; a value that is needed at the end keeps its own.
func TestPlanReusesMemory(t *testing.T) {
	x := numbers(64, 64)
	bytes := 64 * 64 * 4
	e, f := both(t, func(b *ir.Builder, x *ir.Value) {
		y := x
		for range 10 {
			y = b.Op("tanh", y)
		}
		b.Return(b.Op("neg", y))
	}, x, 0)
	n, err := e.PlannedBytes(f)
	require.NoError(t, err)
	require.Equal(t, 2*bytes, n)
	e, f = both(t, func(b *ir.Builder, x *ir.Value) {
		first := b.Op("exp", x)
		y := first
		for range 10 {
			y = b.Op("tanh", y)
		}
		b.Return(b.Op("add", y, b.Op("permute", first, b.Ints(1, 0))))
	}, x, 0)
	n, err = e.PlannedBytes(f)
	require.NoError(t, err)
	require.Equal(t, 3*bytes, n)
}

// What lists, loops and results hold on to is not in the planned memory.
func TestEscapingValues(t *testing.T) {
	x := numbers(40, 40)
	both(t, func(b *ir.Builder, x *ir.Value) {
		y := b.Op("exp", x)
		l := b.List(y, b.Op("neg", y))
		z := b.Op("tanh", b.Op("tanh", b.Op("tanh", y)))
		b.Return(l, b.Op("permute", b.Op("neg", z), b.Ints(1, 0)))
	}, x, 0)
	both(t, func(b *ir.Builder, x *ir.Value) { // two carried values that change places
		r := b.For(b.Int(5), []*ir.Value{x, b.Op("neg", x)}, nil, func(i *ir.Value, c []*ir.Value) []*ir.Value {
			y := b.Op("mul", b.Op("tanh", c[0]), b.Op("exp", b.Op("neg", c[1])))
			return []*ir.Value{c[1], b.Op("add", y, c[0])}
		})
		b.Return(r...)
	}, x, 0)
}

// The allocator of planned memory gives every range to one value at a time.
func TestLayout(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		a := &layout{}
		live := map[int]int{}
		for range 300 {
			if len(live) > 0 && r.IntN(2) == 0 {
				for at, n := range live {
					a.give(at, n)
					delete(live, at)
					break
				}
				continue
			}
			n := 1 + r.IntN(1000)
			at := a.take(n)
			require.Zero(t, at%planAlign)
			require.LessOrEqual(t, at+n, a.top)
			for other, m := range live {
				require.True(t, at+n <= other || other+m <= at, "%d+%d and %d+%d overlap", at, n, other, m)
			}
			live[at] = n
		}
		for at, n := range live {
			a.give(at, n)
		}
		require.Equal(t, []span{{0, a.top}}, a.free)
	}
}

// Once its instance is made, a run of kernels allocates little more than its list of results.
func TestRunsAllocateLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, which runs with -short, drops what is pooled")
	}
	x := numbers(16, 16)
	e, f := both(t, func(b *ir.Builder, x *ir.Value) {
		y := x
		for range 20 {
			y = b.Op("tanh", b.Op("dot", y, x, b.Int(0), b.Int(1)))
		}
		b.Return(b.Op("sum", y, b.Ints(0, 1), b.Bool(false)))
	}, x, 1e-5)
	r := e.Runner()
	allocs := testing.AllocsPerRun(20, func() {
		out, err := r.Run(t.Context(), f, x)
		require.NoError(t, err)
		ir.Release(out...)
	})
	require.Less(t, allocs, 150.0)
}

// Nodes that move elements run as copies and gathers.
func TestMoves(t *testing.T) {
	index := func(b *ir.Builder, bound, step int, shape ...int) *ir.Value {
		a := ir.NewArray(dtype.I64, shape...)
		for i := range a.Len() {
			a.SetInt(i, int64(i*step%bound))
		}
		return b.Const(a)
	}
	for name, build := range map[string]func(b *ir.Builder, x *ir.Value) *ir.Value{
		"concat": func(b *ir.Builder, x *ir.Value) *ir.Value {
			return b.Op("concat", b.List(x, b.Op("permute", x, b.Ints(1, 0)), x), b.Int(1))
		},
		"pad": func(b *ir.Builder, x *ir.Value) *ir.Value {
			return b.Op("pad", x, b.Ints(2, 0), b.Ints(1, 3), b.Float(7))
		},
		"unslice": func(b *ir.Builder, x *ir.Value) *ir.Value {
			return b.Op("unslice", x, b.Int(1), b.Int(3), b.Int(1), b.Int(50))
		},
		"unslice by 2": func(b *ir.Builder, x *ir.Value) *ir.Value {
			return b.Op("unslice", x, b.Int(0), b.Int(1), b.Int(2), b.Int(90))
		},
		"gather rows": func(b *ir.Builder, x *ir.Value) *ir.Value { return b.Op("gather", x, b.Int(0), index(b, 40, 7, 5, 40)) },
		"gather columns": func(b *ir.Builder, x *ir.Value) *ir.Value {
			return b.Op("gather", b.Op("permute", x, b.Ints(1, 0)), b.Int(1), index(b, 40, 7, 40, 50))
		},
		"take": func(b *ir.Builder, x *ir.Value) *ir.Value { return b.Op("take", x, index(b, 40, 7, 5, 11)) },
		"take columns": func(b *ir.Builder, x *ir.Value) *ir.Value {
			return b.Op("take", b.Op("permute", x, b.Ints(1, 0)), index(b, 40, 3, 9))
		},
		"take one": func(b *ir.Builder, x *ir.Value) *ir.Value { return b.Op("take", x, index(b, 40, 3)) },
		"reshape, copied": func(b *ir.Builder, x *ir.Value) *ir.Value {
			return b.Op("reshape", b.Op("permute", x, b.Ints(1, 0)), b.Ints(1600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(b *ir.Builder, x *ir.Value) {
				y := b.Op("tanh", build(b, b.Op("exp", x)))
				b.Return(y, build(b, x))
			}, numbers(40, 40), 0)
		})
	}
}

// An index out of bounds is the same error on both targets.
func TestBadIndex(t *testing.T) {
	native, err := New(Options{Target: CPU})
	if err != nil {
		t.Skip(err)
	}
	for _, bad := range []int64{-1, 40, 1 << 40} {
		for _, op := range []string{"gather", "take"} {
			x, index := numbers(40, 40), ir.NewArray(dtype.I64, 3, 3)
			index.SetInt(4, bad)
			f := ir.NewFunc("f")
			require.NoError(t, ir.Try(func() {
				b := ir.NewBuilder(f)
				px, pi := f.Param("x", x.Type()), f.Param("index", index.Type())
				if op == "take" {
					b.Return(b.Op("take", px, pi))
				} else {
					b.Return(b.Op("gather", px, b.Int(0), pi))
				}
			}))
			_, want := new(ir.Evaluator).Run(t.Context(), f, x, index)
			require.Error(t, want)
			_, got := native.Runner().Run(t.Context(), f, x, index)
			require.EqualError(t, got, want.Error())
		}
	}
}

// Kernels over the same rows run row after row, whatever lies between the rows; the bits are those of the reference evaluator.
func TestChains(t *testing.T) {
	softmax := func(b *ir.Builder, x *ir.Value, shape ...int) *ir.Value {
		d := b.Ints(len(shape) - 1)
		e := b.Op("exp", b.Op("sub", x, b.Op("broadcast", b.Op("amax", x, d, b.Bool(true)), b.Ints(shape...))))
		return b.Op("div", e, b.Op("broadcast", b.Op("sum", e, d, b.Bool(true)), b.Ints(shape...)))
	}
	for name, build := range map[string]func(b *ir.Builder, x *ir.Value) []*ir.Value{
		"softmax": func(b *ir.Builder, x *ir.Value) []*ir.Value { return []*ir.Value{softmax(b, x, 300, 700)} },
		"of a transposed matrix": func(b *ir.Builder, x *ir.Value) []*ir.Value {
			return []*ir.Value{softmax(b, b.Op("permute", x, b.Ints(1, 0)), 700, 300)}
		},
		"of three dims": func(b *ir.Builder, x *ir.Value) []*ir.Value {
			return []*ir.Value{softmax(b, b.Op("permute", b.Op("reshape", x, b.Ints(30, 10, 700)), b.Ints(1, 0, 2)), 10, 30, 700)}
		},
		"an intermediate result is a result too": func(b *ir.Builder, x *ir.Value) []*ir.Value {
			y := softmax(b, x, 300, 700)
			return []*ir.Value{b.Op("sum", b.Op("mul", y, y), b.Ints(1), b.Bool(false)), y}
		},
		"rows of another reduction": func(b *ir.Builder, x *ir.Value) []*ir.Value {
			s := b.Op("sum", x, b.Ints(1), b.Bool(false)) // [300]
			c := b.Op("sum", b.Op("exp", s), b.Ints(0), b.Bool(true))
			return []*ir.Value{b.Op("div", s, b.Op("broadcast", c, b.Ints(300)))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(b *ir.Builder, x *ir.Value) { b.Return(build(b, b.Op("tanh", x))...) }, numbers(300, 700), 0)
		})
	}
}
