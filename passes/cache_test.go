package passes

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

func resolveSin(r *Resolver, n int) (*ir.Func, error) {
	call := &ir.Node{Op: ir.OpAten, Attrs: ir.Attrs{Callee: "sin"}}
	return r.Resolve(call, []ir.Datum{ir.NewArray(dtype.F32, n)})
}

// A full cache drops the half that was not used for longest.
func TestResolverForgetsWhatIsOld(t *testing.T) {
	r := NewResolver()
	r.limit = 8
	first, err := resolveSin(r, 1)
	require.NoError(t, err)
	for n := 2; n <= 40; n++ {
		_, err := resolveSin(r, n)
		require.NoError(t, err)
		again, err := resolveSin(r, 1)
		require.NoError(t, err)
		require.Same(t, first, again, "what is in use stays")
		require.LessOrEqual(t, len(r.cache), r.limit)
	}
}

// Scalar operands share an expansion where only arithmetic needs them.
func TestResolverSharesExpansionsOfScalars(t *testing.T) {
	r := NewResolver()
	call := &ir.Node{Op: ir.OpAten, Attrs: ir.Attrs{Callee: "mul.Scalar"}}
	x := ir.NewArray(dtype.F32, 3)
	a, err := r.Resolve(call, []ir.Datum{x, 2.5})
	require.NoError(t, err)
	b, err := r.Resolve(call, []ir.Datum{x, 3.5})
	require.NoError(t, err)
	require.Same(t, a, b)
	c, err := r.Resolve(call, []ir.Datum{x, int64(3)})
	require.NoError(t, err)
	require.NotSame(t, a, c)
}

func TestResolverIsSafeForConcurrentUse(t *testing.T) {
	r := NewResolver()
	r.limit = 4
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := resolveSin(r, 1+(g+i)%7); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Detached values do not keep kernels apart once nothing is differentiated any more.
func TestCompileForgetsDetach(t *testing.T) {
	f, err := ir.ParseFunc(`func @f(%x: tensor<f32[4]>) { %a = exp(%x) %d = detach(%a) %b = neg(%d) return(%b) }`)
	require.NoError(t, err)
	g, err := Compile(f, []ir.Datum{ir.NewArray(dtype.F32, 4)}, nil, Options{Verify: true})
	require.NoError(t, err)
	require.Len(t, g.Body.Nodes, 2, g.String())
}

// A gradient computes only what is wanted of it, and the choice is part of the key.
func TestResolverLeavesOutUnwantedGradients(t *testing.T) {
	r := NewResolver()
	x := ir.NewArray(dtype.F32, 3)
	want := func(types ...ir.Type) *ir.Func {
		call := &ir.Node{Op: ir.OpVjp, Attrs: ir.Attrs{Callee: "mul.Tensor", Order: 1, Count: 2}}
		for _, typ := range types {
			call.Results = append(call.Results, &ir.Value{Type: typ})
		}
		f, err := r.Resolve(call, []ir.Datum{x, x, x})
		require.NoError(t, err)
		return f
	}
	both, first := want(ir.Any, ir.Any), want(ir.Any, ir.NoneT)
	products := func(f *ir.Func) int { return strings.Count(f.String(), "= mul(") }
	require.Equal(t, 2, products(both))
	require.Equal(t, 1, products(first))
	require.Equal(t, ir.NoneT, first.Returns()[1].Type)
	require.Same(t, both, want(), "no choice means all")
	require.Same(t, first, want(ir.Any, ir.NoneT))
}
