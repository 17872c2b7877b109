package passes_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/passes"
	"github.com/gtc-project/gtc/runtime"
)

// Random programs over floats, integers and bools compute the same bits on the reference evaluator and, as kernels, on the CPU.
func TestFusedOnCPU(t *testing.T) {
	e, err := runtime.New(runtime.Options{Target: runtime.CPU, Threads: 1})
	if err != nil {
		t.Skip("LLVM is not there: ", err)
	}
	for seed := range uint64(12) {
		f := mixedProgram(t, rand.New(rand.NewPCG(seed, 2)))
		f.Sweep(nil)
		g, err := passes.Run(f.Clone(), passes.Options{Verify: true})
		require.NoError(t, err, "seed %d\n%s", seed, f)
		for s := range 2 {
			var args []ir.Datum
			for i, p := range f.Body.Params {
				args = append(args, sample(p.Type, s+3*i))
			}
			want, err := (&ir.Evaluator{}).Run(context.Background(), f, args...)
			require.NoError(t, err)
			got, err := e.Runner().Run(context.Background(), g, args...)
			require.NoError(t, err, "seed %d\n%s", seed, g)
			require.Equal(t, ir.FormatDatum(ir.Tuple(want)), ir.FormatDatum(ir.Tuple(got)), "seed %d\n%s\n%s", seed, f, g)
		}
	}
}

// pool holds values of one dtype and of the shapes [5,4] and [4].
type pool struct{ big, small []*ir.Value }

// mixedProgram uses comparisons, conversions, choices, views, all reductions, and constants of all sorts.
func mixedProgram(t *testing.T, r *rand.Rand) *ir.Func {
	f := ir.NewFunc("mixed")
	b := ir.NewBuilder(f)
	dtypes := []dtype.DType{dtype.F32, dtype.F64, dtype.I64, dtype.F16}
	pools := map[dtype.DType]*pool{}
	for _, d := range dtypes {
		pools[d] = &pool{
			big:   []*ir.Value{f.Param("b"+d.String(), ir.TensorOf(d, 5, 4))},
			small: []*ir.Value{f.Param("s"+d.String(), ir.TensorOf(d, 4))},
		}
	}
	bools := []*ir.Value{}
	pick := func(vs []*ir.Value) *ir.Value { return vs[len(vs)-1-r.IntN(min(len(vs), 5))] }
	oneOf := func(names ...string) string { return names[r.IntN(len(names))] }
	var out []*ir.Value
	require.NoError(t, ir.Try(func() {
		for range 40 {
			d := dtypes[r.IntN(len(dtypes))]
			p := pools[d]
			switch r.IntN(11) {
			case 0, 1:
				p.big = append(p.big, b.Op(oneOf("add", "sub", "mul", "maximum"), pick(p.big), pick(p.big)))
			case 2:
				p.small = append(p.small, b.Op(oneOf("add", "mul", "minimum"), pick(p.small), pick(p.small)))
			case 3:
				name := oneOf("neg", "abs", "relu")
				if d.IsFloat() {
					name = oneOf("neg", "exp", "tanh", "sqrt", "sigmoid", "floor")
				}
				p.big = append(p.big, b.Op(name, pick(p.big)))
			case 4:
				bools = append(bools, b.Op(oneOf("lt", "ge", "ne"), pick(p.big), pick(p.big)))
			case 5:
				if len(bools) > 0 {
					p.big = append(p.big, b.Op("where", pick(bools), pick(p.big), pick(p.big)))
				}
			case 6:
				to := dtypes[r.IntN(len(dtypes))]
				if d != dtype.I64 && to == dtype.I64 {
					continue // NaN and Inf have no integer
				}
				pools[to].big = append(pools[to].big, b.Op("convert", pick(p.big), b.DType(to)))
			case 7:
				p.small = append(p.small, b.Op(oneOf("sum", "prod", "amax", "amin"), pick(p.big), b.Ints(0), b.Bool(false)))
			case 8:
				p.big = append(p.big, b.Op("broadcast", pick(p.small), b.Ints(5, 4)))
			case 9:
				var c ir.Datum = float64(r.IntN(3)) - 0.5
				if d == dtype.I64 {
					c = int64(r.IntN(3))
				}
				p.big = append(p.big, b.Op("full", b.Ints(5, 4), b.Const(c), b.DType(d)))
			case 10:
				kept := b.Op(oneOf("sum", "amax"), pick(p.big), b.Ints(1), b.Bool(true))
				p.big = append(p.big, b.Op("broadcast", kept, b.Ints(5, 4)))
				if len(bools) > 0 && r.IntN(2) == 0 {
					out = append(out, b.Op(oneOf("any", "all"), pick(bools), b.Ints(0, 1), b.Bool(false)), b.Op("argmax", pick(p.big), b.Int(1), b.Bool(false)))
				}
			}
		}
		for _, d := range dtypes {
			out = append(out, pick(pools[d].big), pick(pools[d].small))
		}
		b.Return(out...)
	}))
	return f
}
