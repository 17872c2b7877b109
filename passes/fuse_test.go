package passes_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/passes"
)

// Random functions of elementwise nodes, views, reductions and branches compute the same bits when fused, and no node is lost or doubled.
func TestFuseRandomPrograms(t *testing.T) {
	for seed := range uint64(400) {
		f := randomProgram(t, rand.New(rand.NewPCG(seed, 1)))
		f.Sweep(nil)
		g, err := passes.Run(f.Clone(), passes.Options{Passes: []string{"fuse"}, Verify: true})
		require.NoError(t, err, "seed %d\n%s", seed, f)
		computeTheSame(t, f, g, false)
		require.Equal(t, computing(f), computing(g), "seed %d\n%s\n%s", seed, f, g)
	}
}

// computing counts the nodes that compute something.
func computing(f *ir.Func) int {
	n := 0
	f.Body.Walk(func(m *ir.Node) {
		if m.Op.Class == ir.Elementwise || m.Op.Class == ir.Reduce {
			n++
		}
	})
	return n
}

func randomProgram(t *testing.T, r *rand.Rand) *ir.Func {
	f := ir.NewFunc("random")
	b := ir.NewBuilder(f)
	small, big := []*ir.Value{f.Param("s", ir.TensorOf(dtype.F32, 3))}, []*ir.Value{f.Param("x", ir.TensorOf(dtype.F32, 2, 3)), f.Param("y", ir.TensorOf(dtype.F32, 2, 3))}
	c := f.Param("c", ir.BoolT)
	pick := func(vs []*ir.Value) *ir.Value { return vs[len(vs)-1-r.IntN(min(len(vs), 6))] }
	var grow func(steps, depth int)
	grow = func(steps, depth int) {
		for range steps {
			set := &big
			if r.IntN(3) == 0 {
				set = &small
			}
			switch r.IntN(12) {
			case 0, 1, 2:
				*set = append(*set, b.Op("neg", pick(*set)))
			case 3, 4, 5, 6:
				*set = append(*set, b.Op("mul", pick(*set), pick(*set)))
			case 7:
				big = append(big, b.Op("broadcast", pick(small), b.Ints(2, 3)))
			case 8, 9:
				small = append(small, b.Op("sum", pick(big), b.Ints(0), b.Bool(false)))
			case 10:
				big = append(big, b.Op("flip", pick(big), b.Ints(1)))
			case 11:
				if depth > 0 {
					continue
				}
				keepSmall, keepBig := len(small), len(big)
				out := b.If(c, func() []*ir.Value {
					grow(8, depth+1)
					v := pick(big)
					small, big = small[:keepSmall], big[:keepBig]
					return []*ir.Value{v}
				}, func() []*ir.Value { return []*ir.Value{pick(big)} })
				big = append(big, out...)
			}
		}
	}
	require.NoError(t, ir.Try(func() {
		grow(40, 0)
		b.Return(pick(small), pick(big), pick(big))
	}))
	return f
}

// A chain of 100,000 nodes is fused in linear time.
func TestFuseLongChain(t *testing.T) {
	f := ir.NewFunc("chain")
	b := ir.NewBuilder(f)
	x := f.Param("x", ir.TensorOf(dtype.F32, 2))
	v := x
	require.NoError(t, ir.Try(func() {
		for i := range 100_000 {
			if i%7 == 0 {
				v = b.Op("mul", v, x)
			} else {
				v = b.Op("neg", v)
			}
		}
		b.Return(v)
	}))
	g, err := passes.Run(f, passes.Options{Passes: []string{"fuse"}})
	require.NoError(t, err)
	require.Less(t, len(g.Body.Nodes), 4000)
}
