package ptx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// values that operations treat in their own ways
var specials = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, 3, 7, 10, 1e-3, 100, -100, 1e10, 1e-40, -1e-310, 6e-8, 65504, 65519, 65520,
	2147483647, 2147483648, -2147483648, -2147483649, 9.3e18, -9.3e18, 3.4e38, 1e300, math.Inf(1), math.Inf(-1), math.NaN(), math.Pi, 1.5, 2.5, -1.5, 88, -104, 709, 12345.678}

// random fills an array with special and random values.
func random(r *rand.Rand, d dtype.DType, shape ...int) *ir.Array {
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

// requireBits compares element by element: equal bits, or both NaN.
func requireBits(t testing.TB, want, got *ir.Array, what string) {
	t.Helper()
	require.Equal(t, want.DType, got.DType, what)
	require.Equal(t, want.Shape, got.Shape, what)
	want, got = want.Contiguous(), got.Contiguous()
	size := want.DType.Size()
	w, g := want.Bytes(), got.Bytes()
	for i := range want.Len() {
		a, b := w[i*size:(i+1)*size], g[i*size:(i+1)*size]
		if string(a) == string(b) {
			continue
		}
		x, y := want.Float(want.Offset+i), got.Float(got.Offset+i)
		if want.DType.IsFloat() && x != x && y != y {
			continue
		}
		require.Failf(t, "results differ", "%s: element %d of %v: want %v (%x), got %v (%x)", what, i, want.Shape, x, a, y, b)
	}
}

// runProg runs the packed kernel of a program.
func runProg(t *testing.T, m *machine, entry string, p *scalar.Prog, ins []*ir.Array) ([]*ir.Array, uint64) {
	t.Helper()
	var args []uint64
	for _, a := range ins {
		args = append(args, m.buffer(a.Data))
	}
	var outs []*ir.Array
	for _, o := range p.Out {
		out := ir.NewArray(o.DType, ins[0].Shape...)
		outs = append(outs, out)
		args = append(args, m.buffer(out.Data))
	}
	fault := make([]byte, 4)
	if p.MayFault() {
		args = append(args, m.buffer(fault))
	}
	args = append(args, uint64(ins[0].Len()))
	require.NoError(t, m.launch(entry, 2, 64, args))
	return outs, get(fault, 4)
}

// The PTX of every op on every dtype gives the reference evaluator's bits.
func TestEveryOpGivesTheSameBits(t *testing.T) {
	needLLVM(t)
	r := rand.New(rand.NewPCG(1, 2))
	programs := 0
	for _, name := range scalar.Names() {
		t.Run(name, func(t *testing.T) {
			m, err := newMachine(loweredText(t, "op_"+name+".sm_50"))
			require.NoError(t, err)
			for _, d := range dtype.All {
				p, err := scalar.Program(name, d)
				if err != nil {
					continue // not defined for this dtype
				}
				what := name + "_" + d.String()
				ins := make([]*ir.Array, len(p.In))
				for i, in := range p.In {
					ins[i] = random(r, in.DType, 203)
				}
				if p.MayFault() {
					for i := range ins[1].Len() {
						ins[1].SetInt(i, ins[1].Int(i)|1)
					}
				}
				want, err := ir.RunProg(p, ins[0].Shape, ins)
				require.NoError(t, err)
				got, fault := runProg(t, m, what+"_0", p, ins)
				requireBits(t, want[0], got[0], what)
				require.Zero(t, fault, what)
				if p.MayFault() {
					ins[1].SetInt(77, 0)
					_, fault = runProg(t, m, what+"_0", p, ins)
					require.Equal(t, uint64(scalar.FaultZero), fault, what)
				}
				programs++
			}
		})
	}
	t.Logf("%d programs", programs)
}

// runFunc runs a compiled function on the machine.
func runFunc(t *testing.T, p *Program, args []*ir.Array) ([]*ir.Array, uint64) {
	t.Helper()
	m, err := newMachine(p.Text)
	require.NoError(t, err)
	addrs := map[*Buffer]uint64{}
	mem := map[*Buffer][]byte{}
	for _, b := range p.Buffers {
		switch b.Kind {
		case Constant:
			addrs[b] = m.consts[b.Name]
			mem[b] = m.mem[addrs[b]>>bufferShift-1]
			continue
		case Input:
			mem[b] = append([]byte{}, args[0].Contiguous().Bytes()...)
			args = args[1:]
		default:
			mem[b] = make([]byte, b.Bytes())
			for i := range mem[b] {
				mem[b][i] = 0xff
			}
		}
		addrs[b] = m.buffer(mem[b])
	}
	fault := make([]byte, 4)
	faultAddr := m.buffer(fault)
	for _, l := range p.Launches {
		var vals []uint64
		for _, a := range l.Args {
			switch {
			case a.Fault:
				vals = append(vals, faultAddr)
			case a.Buffer != nil:
				vals = append(vals, addrs[a.Buffer]+uint64(a.Offset))
			default:
				vals = append(vals, uint64(a.Number))
			}
		}
		require.NoError(t, m.launch(l.Kernel, l.Grid, l.Block, vals))
	}
	var outs []*ir.Array
	for _, d := range p.Results {
		a := d.(*ir.Array)
		outs = append(outs, &ir.Array{DType: a.DType, Shape: a.Shape, Strides: a.Strides, Offset: a.Offset, Data: mem[a.Owner.(*Buffer)]})
	}
	return outs, get(fault, 4)
}

// checkFunc compares a function's PTX with the reference evaluator.
func checkFunc(t *testing.T, text string, r *rand.Rand) *Program {
	t.Helper()
	needLLVM(t)
	f := parse(t, text)
	var args []*ir.Array
	var data []ir.Datum
	for _, p := range f.Body.Params {
		a := random(r, p.Type.DType, p.Type.Shape()...)
		args, data = append(args, a), append(data, a)
	}
	p, err := Compile(f, "")
	require.NoError(t, err)
	want, err := (&ir.Evaluator{}).Run(t.Context(), f, data...)
	require.NoError(t, err)
	got, fault := runFunc(t, p, args)
	require.Zero(t, fault)
	require.Len(t, got, len(want))
	for i := range want {
		requireBits(t, want[i].(*ir.Array), got[i], fmt.Sprintf("result %d of\n%s", i, text))
	}
	return p
}

// Reductions follow the order of package ir to the bit: over the last and over other dims, short and longer than a block, of every dtype,
// with and without a program in front, from strided operands.
func TestReductions(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, op := range []string{"sum", "prod", "amax", "amin", "argmax", "argmin", "any", "all"} {
		for _, d := range dtype.All {
			if !reductions[op](d) {
				continue
			}
			var body, results []string
			for i, c := range []struct{ shape, dims, dim string }{
				{"3,100", "[1]", "1"}, {"3,100", "[0]", "0"}, {"3,20,5", "[0,2]", "1"}, {"3,20,5", "[0,1]", "2"}, {"7", "[0]", "0"}, {"2,9000", "[1]", "1"}, {"600,3", "[0]", "0"},
			} {
				dims := c.dims
				if strings.HasPrefix(op, "arg") {
					dims = c.dim
				}
				n := strings.NewReplacer("3,100", "300", "3,20,5", "300", "2,9000", "18000", "600,3", "1800").Replace(c.shape)
				body = append(body, fmt.Sprintf("%%s%d = slice(%%x, 0, 1, %d, 1)", i, 1+atoi(n)), fmt.Sprintf("%%v%d = reshape(%%s%d, [%s])", i, i, c.shape))
				body = append(body, fmt.Sprintf("%%r%d = %s(%%v%d, %s, false)", i, op, i, dims))
				results = append(results, fmt.Sprintf("%%r%d", i))
			}
			checkFunc(t, fmt.Sprintf("func @f(%%x: tensor<%s[18001]>) {\n%s\nreturn %s }", d, strings.Join(body, "\n"), strings.Join(results, ", ")), r)
		}
	}
}

func atoi(s string) int {
	n := 0
	_, _ = fmt.Sscan(s, &n)
	return n
}

// Matrix products of odd sizes, batches, transposed and broadcast operands, windows, and every dtype.
func TestDots(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, d := range dtype.All {
		if d == dtype.Bool {
			continue
		}
		checkFunc(t, strings.ReplaceAll(`func @f(%a: tensor<D[2,17,35]>, %b: tensor<D[2,33,35]>, %c: tensor<D[35]>, %e: tensor<D[3,530]>) {
			%1 = dot(%a, %b, 1, 1)
			%2 = dot(%a, %c, 0, 1)
			%t = slice(%c, 0, 1, 20, 2)
			%3 = dot(%t, %t, 0, 0)
			%g = broadcast(%c, [2,4,35])
			%4 = dot(%a, %g, 1, 1)
			%5 = dot(%e, %e, 0, 1)
			%p = permute(%a, [1,0,2])
			%q = permute(%b, [0,2,1])
			%s = slice(%q, 2, 1, 31, 3)
			%u = permute(%s, [0,2,1])
			%6 = dot(%a, %u, 1, 1)
			%8 = dot(%p, %a, 0, 1)
			%w = windows(%e, [5], [2], [1])
			%k = slice(%c, 0, 3, 8, 1)
			%7 = dot(%w, %k, 0, 1)
			return %1, %2, %3, %4, %5, %6, %7, %8 }`, "D", d.String()), r)
	}
}
