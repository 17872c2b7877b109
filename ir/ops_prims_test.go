package ir

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir/dtype"
)

// opCase is one application of a primitive op, which the tests below evaluate, differentiate and infer in several ways.
type opCase struct {
	op   string
	args []Datum
}

// randn is an f64 tensor of distinct values that are no multiples of anything, so that nothing ties.
func randn(seed uint64, shape ...int) *Array {
	r := rand.New(rand.NewPCG(seed, 1))
	a := NewArray(dtype.F64, shape...)
	for i := 0; i < a.Len(); i++ {
		a.SetFloat(i, r.NormFloat64())
	}
	return a
}

// positiveDefinite is a batch of symmetric matrices with large diagonals.
func positiveDefinite(shape ...int) *Array {
	a := randn(7, shape...)
	n := shape[len(shape)-1]
	b := NewArray(dtype.F64, shape...)
	for i := 0; i < a.Len(); i++ {
		m, r, c := i/(n*n), i/n%n, i%n
		v := a.Float(i) + a.Float(m*n*n+c*n+r)
		if r == c {
			v += 2 * float64(n)
		}
		b.SetFloat(i, v)
	}
	return b
}

func i64(shape []int, v ...float64) *Array { return FromFloats(dtype.I64, shape, v) }

var nan, inf = math.NaN(), math.Inf(1)

func opCases() []opCase {
	x := randn(1, 2, 3, 4)
	zeros := FromFloats(dtype.F64, []int{2, 4}, []float64{2, 0, 3, 4, 0, 0, 5, 1})
	index := i64([]int{2, 2, 4}, 0, 1, 2, 0, 1, 1, 0, 2, 2, 2, 2, 1, 0, 1, 0, 0)
	return []opCase{
		{"broadcast", []Datum{randn(2, 3, 1), Ints(2, 3, 4)}},
		{"broadcast", []Datum{randn(2), Ints(2)}},
		{"broadcast", []Datum{randn(2, 1, 4), Ints(3, 4)}},
		{"permute", []Datum{x, Ints(2, 0, 1)}},
		{"reshape", []Datum{x, Ints(6, 4)}},
		{"reshape", []Datum{randn(2, 1, 1), Ints()}},
		{"slice", []Datum{x, int64(2), int64(1), int64(4), int64(2)}},
		{"slice", []Datum{x, int64(1), int64(2), int64(2), int64(1)}},
		{"windows", []Datum{randn(3, 2, 5, 6), Ints(2, 3), Ints(2, 1), Ints(1, 2)}},
		{"diagonal", []Datum{x, int64(1), int64(0), int64(2)}},
		{"no_overlap", []Datum{i64([]int{2, 2}, 0, 1, 2, 3)}},
		{"diagonal", []Datum{x, int64(-1), int64(2), int64(1)}},
		{"diagonal", []Datum{x, int64(9), int64(2), int64(1)}},
		{"flip", []Datum{x, Ints(0, 2)}},
		{"detach", []Datum{x}},

		{"sum", []Datum{x, Ints(0, 2), false}},
		{"sum", []Datum{x, Ints(1), true}},
		{"sum", []Datum{x, Ints(), false}},
		{"prod", []Datum{x, Ints(1), false}},
		{"prod", []Datum{zeros, Ints(1), true}},
		{"prod", []Datum{zeros, Ints(0, 1), false}},
		{"prod", []Datum{x, Ints(0, 2), false}},
		{"amax", []Datum{x, Ints(0, 2), false}},
		{"amin", []Datum{x, Ints(1), true}},
		{"any", []Datum{FromFloats(dtype.Bool, []int{2, 2}, []float64{0, 1, 0, 0}), Ints(1), false}},
		{"all", []Datum{FromFloats(dtype.Bool, []int{2, 2}, []float64{1, 1, 0, 1}), Ints(1), true}},
		{"argmax", []Datum{x, int64(1), false}},
		{"argmin", []Datum{x, int64(2), true}},
		{"sum_to", []Datum{x, Ints(3, 1)}},
		{"sum_to", []Datum{x, Ints(2, 3, 4)}},

		{"cumsum", []Datum{x, int64(1)}},
		{"cumprod", []Datum{x, int64(2)}},
		{"cumprod", []Datum{zeros, int64(1)}},
		{"cumprod", []Datum{zeros, int64(0)}},
		{"linrec", []Datum{x, randn(9, 2, 3, 4), int64(1)}},
		{"cummax", []Datum{x, int64(2)}},
		{"cummin", []Datum{x, int64(1)}},

		{"concat", []Datum{NewList(x, randn(4, 2, 1, 4), randn(5, 2, 0, 4)), int64(1)}},
		{"split_like", []Datum{x, NewList(randn(4, 2, 1, 4), randn(4, 2, 2, 4)), int64(1)}},
		{"pad", []Datum{x, Ints(0, 1, 2), Ints(0, 0, 1), 3.5}},
		{"unslice", []Datum{randn(2, 2, 2), int64(1), int64(1), int64(2), int64(5)}},
		{"unslice", []Datum{randn(2, 2, 2), int64(1), int64(1), int64(2), int64(4)}},
		{"fold", []Datum{randn(3, 2, 2, 2, 2, 3), Ints(5, 6), Ints(2, 1), Ints(1, 2)}},
		{"undiagonal", []Datum{randn(3, 3, 2), int64(1), int64(2), int64(0), Ints(4, 3, 2)}},
		{"gather", []Datum{x, int64(1), index}},
		{"scatter", []Datum{x, int64(2), i64([]int{2, 2, 2}, 0, 1, 3, 2, 0, 3, 2, 1), randn(3, 2, 2, 2)}},
		{"scatter_reduce", []Datum{x, int64(1), index, randn(3, 2, 2, 4), "add", true}},
		{"scatter_reduce", []Datum{x, int64(1), index, randn(3, 2, 2, 4), "add", false}},
		{"scatter_reduce", []Datum{x, int64(1), index, randn(3, 2, 2, 4), "mul", true}},
		{"scatter_reduce", []Datum{x, int64(1), index, randn(3, 2, 2, 4), "amax", true}},
		{"scatter_reduce", []Datum{x, int64(1), index, randn(3, 2, 2, 4), "amin", false}},
		{"take", []Datum{x, i64([]int{2, 2}, 1, 0, 1, 1)}},
		{"put", []Datum{x, i64([]int{1}, 1), randn(4, 1, 3, 4), false}},
		{"put", []Datum{x, i64([]int{2, 2}, 1, 0, 1, 1), randn(4, 2, 2, 3, 4), true}},
		{"sort", []Datum{x, int64(1), true, true}},
		{"sort", []Datum{x, int64(2), false, false}},
		{"nonzero", []Datum{zeros}},

		{"full", []Datum{Ints(2, 3), 2.5, dtype.F32}},
		{"iota", []Datum{int64(4), dtype.F16}},
		{"scalar_tensor", []Datum{int64(4), dtype.F64}},
		{"uniform", []Datum{Ints(2, 3), int64(5), dtype.F32}},
		{"uniform", []Datum{Ints(5), int64(5), dtype.F64}},
		{"normal", []Datum{Ints(5), int64(5), dtype.F64}},
		{"randint_bits", []Datum{Ints(5), int64(5)}},

		{"dot", []Datum{randn(1, 2, 3, 4, 5), randn(2, 2, 6, 4, 5), int64(1), int64(2)}},
		{"dot", []Datum{randn(1, 3), randn(2, 2), int64(0), int64(0)}},
		{"dot", []Datum{randn(1, 3), randn(2, 3), int64(0), int64(1)}},
		{"dot", []Datum{randn(1, 7, 9), randn(2, 6, 9), int64(0), int64(1)}},

		{"bitcast", []Datum{randn(1, 2, 3), dtype.I64}},
		{"bitcast", []Datum{randn(1, 2, 3), dtype.F32}},

		{"inverse", []Datum{positiveDefinite(2, 3, 3)}},
		{"det", []Datum{positiveDefinite(2, 3, 3)}},
		{"slogdet", []Datum{positiveDefinite(3, 3)}},
		{"cholesky", []Datum{positiveDefinite(2, 3, 3), false}},
		{"cholesky", []Datum{positiveDefinite(3, 3), true}},
		{"triangular_solve", []Datum{positiveDefinite(2, 3, 3), randn(3, 2, 3, 2), false, false, false}},
		{"triangular_solve", []Datum{positiveDefinite(3, 3), randn(3, 3, 2), true, true, false}},
		{"triangular_solve", []Datum{positiveDefinite(3, 3), randn(3, 3, 2), true, false, true}},
		{"solve", []Datum{positiveDefinite(2, 3, 3), randn(3, 2, 3, 2)}},
		{"qr", []Datum{randn(1, 2, 4, 3)}},
		{"eigh", []Datum{positiveDefinite(2, 3, 3)}},
		{"svd", []Datum{randn(1, 2, 4, 3)}},
	}
}

func (c opCase) String() string {
	parts := make([]string, len(c.args))
	for i, a := range c.args {
		switch a := a.(type) {
		case *Array:
			parts[i] = a.Type().String()
		default:
			parts[i] = FormatDatum(a)
			if len(parts[i]) > 40 {
				parts[i] = TypeOf(a).String()
			}
		}
	}
	return c.op + "(" + strings.Join(parts, ", ") + ")"
}

// build makes a function of the tensor operands with types weakened by weak; other operands are constants. A list of tensors becomes
// a list node of parameters.
func (c opCase) build(f *Func, b *Builder, weak func(Type) Type) (args []*Value, inputs []Datum) {
	tensor := func(a *Array) *Value {
		inputs = append(inputs, a)
		return f.Param(fmt.Sprintf("x%d", len(inputs)), weak(a.Type()))
	}
	for _, a := range c.args {
		switch a := a.(type) {
		case *Array:
			args = append(args, tensor(a))
		case List:
			if a.Len() > 0 && TypeOf(a.At(0)).IsTensor() {
				var elems []*Value
				for _, e := range a.Elems() {
					elems = append(elems, tensor(e.(*Array)))
				}
				args = append(args, b.List(elems...))
				continue
			}
			args = append(args, b.Const(a))
		default:
			args = append(args, b.Const(a))
		}
	}
	return args, inputs
}

func exactly(t Type) Type { return t }

// unsized forgets the sizes but not the rank.
func unsized(t Type) Type { return TensorDims(t.DType, unknownDims(len(t.Dims))) }

func evalCase(t *testing.T, c opCase, weak func(Type) Type) ([]Datum, []Type) {
	f := NewFunc("f")
	b := NewBuilder(f)
	args, inputs := c.build(f, b, weak)
	var rs []*Value
	require.NoError(t, Try(func() { rs = b.Emit(c.op, args...) }))
	b.Return(rs...)
	out, err := (&Evaluator{}).Run(context.Background(), f, inputs...)
	require.NoError(t, err)
	return out, valueTypes(rs)
}

// Every op infers exactly the evaluated type from exact operand types, and a type that accepts it from weaker ones.
func TestInferAgreesWithEval(t *testing.T) {
	for _, c := range opCases() {
		t.Run(c.String(), func(t *testing.T) {
			out, types := evalCase(t, c, exactly)
			for i, d := range out {
				if c.op == "nonzero" || c.op == "split_like" {
					require.True(t, accepts(types[i], d), "%s does not accept %s", types[i], TypeOf(d))
					continue
				}
				require.Equal(t, TypeOf(d).String(), types[i].String())
			}
			for _, weak := range []func(Type) Type{
				unsized,
				func(t Type) Type { return t.unranked() },
				func(t Type) Type { return AnyTensor },
				func(t Type) Type { return Any },
				func(t Type) Type { t.DType = dtype.Invalid; return t },
			} {
				again, types := evalCase(t, c, weak)
				for i, d := range again {
					require.True(t, accepts(types[i], d), "%s does not accept %s", types[i], TypeOf(d))
					require.Equal(t, FormatDatum(out[i]), FormatDatum(d))
				}
			}
		})
	}
}

// Strided operands give the same results as packed ones.
func TestEvalOnStridedOperands(t *testing.T) {
	strided := func(a *Array) *Array { // the same elements, in memory with reversed dims and gaps, backwards
		r := len(a.Shape)
		shape := make([]int, r)
		for i, n := range a.Shape {
			shape[r-1-i] = 2 * n
		}
		big := NewArray(a.DType, shape...)
		v := big.View(append([]int{}, a.Shape...), make([]int, r), 1%max(1, big.Len()))
		for i := range v.Strides {
			v.Strides[i] = -2 * big.Strides[r-1-i]
			if a.Shape[i] > 0 {
				v.Offset += 2 * (a.Shape[i] - 1) * big.Strides[r-1-i]
			}
		}
		assign(v, a)
		return v
	}
	for _, c := range opCases() {
		want, _ := evalCase(t, c, exactly)
		s := opCase{op: c.op}
		for _, a := range c.args {
			switch x := a.(type) {
			case *Array:
				a = strided(x)
			case List:
				var elems []Datum
				for _, e := range x.Elems() {
					if y, ok := e.(*Array); ok {
						e = strided(y)
					}
					elems = append(elems, e)
				}
				a = NewList(elems...)
			}
			s.args = append(s.args, a)
		}
		got, _ := evalCase(t, s, exactly)
		for i := range want {
			require.Equal(t, FormatDatum(want[i]), FormatDatum(got[i]), c.String())
		}
	}
}

// Gradients agree with finite differences, with sizes known and not.
func TestGradients(t *testing.T) {
	for _, c := range opCases() {
		if LookupOp(c.op).Grad == nil {
			continue
		}
		for name, weak := range map[string]func(Type) Type{"static": exactly, "dynamic": unsized} {
			t.Run(c.String()+"/"+name, func(t *testing.T) { checkGradient(t, c, weak) })
		}
	}
}

func checkGradient(t *testing.T, c opCase, weak func(Type) Type) {
	f := NewFunc("f")
	b := NewBuilder(f)
	args, inputs := c.build(f, b, weak)
	outs, _ := evalCase(t, c, exactly)
	if l, ok := outs[0].(List); ok { // the cotangent of a list is a list
		outs = l.Elems()
	}
	var rs []*Value
	var gradVals []*Value
	var cts []Datum
	require.NoError(t, Try(func() {
		rs = b.Emit(c.op, args...)
		n := rs[0].Def
		ct := make([]*Value, len(outs))
		for i, o := range outs {
			if a := o.(*Array); a.DType == dtype.F64 {
				w := randn(uint64(50+i), a.Shape...)
				ct[i] = f.Param(fmt.Sprintf("w%d", i), weak(w.Type()))
				cts = append(cts, w)
			}
		}
		if rs[0].Type.Kind == KList {
			ct = []*Value{b.List(ct...)}
		}
		gs := n.Op.Grad(b, n, ct)
		require.Len(t, gs, len(args))
		for i, g := range gs {
			switch {
			case args[i].Type.Kind == KList && g != nil && TypeOf(c.args[i].(List).At(0)).IsTensor():
				for k := range c.args[i].(List).Elems() {
					gradVals = append(gradVals, b.Op("list_get", g, b.Int(k)))
				}
			case args[i].Type.Kind == KList && args[i].Def.Op == OpList:
				gradVals = append(gradVals, make([]*Value, c.args[i].(List).Len())...)
			case args[i].Type.IsTensor():
				gradVals = append(gradVals, g)
			}
		}
	}))
	var ret []*Value
	for _, g := range gradVals {
		if g != nil {
			ret = append(ret, g)
		}
	}
	b.Return(ret...)
	got, err := (&Evaluator{}).Run(context.Background(), f, append(append([]Datum{}, inputs...), cts...)...)
	require.NoError(t, err)
	loss := func() float64 {
		outs, _ := evalCase(t, c, exactly)
		if l, ok := outs[0].(List); ok {
			outs = l.Elems()
		}
		sum, k := 0.0, 0
		for _, o := range outs {
			if a := o.(*Array); a.DType == dtype.F64 {
				v, w := a.Floats(), cts[k].(*Array).Floats()
				for i := range v {
					sum += v[i] * w[i]
				}
				k++
			}
		}
		return sum
	}
	k := 0
	for i, in := range inputs {
		x := in.(*Array)
		if x.DType != dtype.F64 || gradVals[i] == nil {
			continue
		}
		g := got[k].(*Array)
		k++
		require.Equal(t, x.Shape, g.Shape, "gradient of operand %d", i)
		gv := g.Floats()
		for j := range gv {
			old := x.Float(x.Offset + j)
			const h = 1e-5
			x.SetFloat(x.Offset+j, old+h)
			up := loss()
			x.SetFloat(x.Offset+j, old-h)
			down := loss()
			x.SetFloat(x.Offset+j, old)
			if c.op == "cholesky" || c.op == "eigh" { // reads one triangle, the gradient is that of a symmetric matrix
				continue
			}
			require.InDelta(t, (up-down)/(2*h), gv[j], 1e-6*(1+math.Abs(gv[j])), "gradient of operand %d at %d", i, j)
		}
	}
}
