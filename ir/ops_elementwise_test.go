package ir

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/ir/scalar"
)

// Every elementwise gradient agrees with finite differences, with sizes known and not.
func TestElementwiseGradients(t *testing.T) {
	unit := FromFloats(dtype.F64, []int{2, 3}, []float64{0.11, 0.23, 0.37, 0.52, 0.68, 0.83})
	other := FromFloats(dtype.F64, []int{2, 3}, []float64{0.9, 0.15, 0.41, 0.35, 0.77, 0.29})
	signed := FromFloats(dtype.F64, []int{2, 3}, []float64{-1.3, -0.4, 0.3, 0.9, 1.7, -2.2})
	above := FromFloats(dtype.F64, []int{2, 3}, []float64{1.1, 1.4, 2.2, 3.1, 4.5, 1.7})
	cond := FromFloats(dtype.Bool, []int{2, 3}, []float64{1, 0, 0, 1, 1, 0})
	any := []string{"neg", "abs", "exp", "exp2", "expm1", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "erf", "erfc",
		"sigmoid", "relu", "i0", "i1", "digamma", "trigamma", "lgamma", "reciprocal"}
	var cases []opCase
	for _, name := range any {
		cases = append(cases, opCase{name, []Datum{signed}})
	}
	for _, name := range []string{"log", "log1p", "log2", "log10", "sqrt", "rsqrt", "asin", "acos", "atanh", "erfinv"} {
		cases = append(cases, opCase{name, []Datum{unit}})
	}
	cases = append(cases, opCase{"acosh", []Datum{above}}, opCase{"pow", []Datum{unit, signed}}, opCase{"xlogy", []Datum{signed, above}}, opCase{"zeta", []Datum{FromFloats(dtype.F64, []int{2, 3}, []float64{3, 3, 3, 2, 2, 5}), above}},
		opCase{"where", []Datum{cond, unit, signed}}, opCase{"lerp", []Datum{unit, signed, other}},
		opCase{"convert", []Datum{signed, dtype.F64}})
	for _, name := range []string{"add", "sub", "mul", "div", "remainder", "fmod", "atan2", "maximum", "minimum", "fmax", "fmin",
		"copysign", "hypot", "logaddexp"} {
		cases = append(cases, opCase{name, []Datum{signed, other}}, opCase{name, []Datum{above, signed}})
	}
	tested := map[string]bool{}
	for _, c := range cases {
		tested[c.op] = true
		for name, weak := range map[string]func(Type) Type{"static": exactly, "dynamic": unsized} {
			t.Run(c.String()+"/"+name, func(t *testing.T) { checkGradient(t, c, weak) })
		}
	}
	for _, op := range Ops() {
		if op.Class == Elementwise && op.Grad != nil {
			require.True(t, tested[op.Name], "no case for the gradient of %s", op.Name)
		}
	}
}

// gradAt gives the gradients of one op at a point, for the cotangent 1.
func gradAt(t *testing.T, op string, d dtype.DType, at ...float64) []float64 {
	f := NewFunc("f")
	b := NewBuilder(f)
	args := make([]*Value, len(at))
	inputs := make([]Datum, len(at))
	for i, v := range at {
		inputs[i] = FromFloats(d, []int{1}, []float64{v})
		if i == 0 && op == "where" {
			inputs[i] = FromFloats(dtype.Bool, []int{1}, []float64{v})
		}
		args[i] = f.Param("x", TypeOf(inputs[i]))
	}
	require.NoError(t, Try(func() {
		r := b.Op(op, args...)
		g := r.Def.Op.Grad(b, r.Def, []*Value{b.fullLike(r, 1)})
		for i := range g {
			if g[i] == nil {
				g[i] = b.fullLike(r, 0)
			}
		}
		b.Return(g...)
	}))
	outs, err := (&Evaluator{}).Run(context.Background(), f, inputs...)
	require.NoError(t, err)
	var g []float64
	for _, o := range outs {
		g = append(g, o.(*Array).Floats()[0])
	}
	return g
}

// The choices at kinks and corners.
func TestElementwiseGradientCorners(t *testing.T) {
	for _, c := range []struct {
		op   string
		at   []float64
		want []float64
	}{
		{"abs", []float64{0}, []float64{0}},
		{"relu", []float64{0}, []float64{0}},
		{"maximum", []float64{2, 2}, []float64{0.5, 0.5}},
		{"minimum", []float64{2, 2}, []float64{0.5, 0.5}},
		{"maximum", []float64{3, 2}, []float64{1, 0}},
		{"minimum", []float64{3, 2}, []float64{0, 1}},
		{"fmax", []float64{2, 2}, []float64{1, 0}},
		{"fmin", []float64{2, nan}, []float64{1, 0}},
		{"fmax", []float64{nan, 2}, []float64{0, 1}},
		{"pow", []float64{0, 0}, []float64{0, 0}},
		{"pow", []float64{0, 1}, []float64{1, 0}},
		{"pow", []float64{0, 2}, []float64{0, 0}},
		{"pow", []float64{-2, 2}, []float64{-4, nan}},
		{"pow", []float64{-2, 3}, []float64{12, nan}},
		{"copysign", []float64{0, -1}, []float64{0, 0}},
		{"xlogy", []float64{0, 0}, []float64{0, nan}},
		{"i1", []float64{0}, []float64{0.5}},
		{"where", []float64{1, inf, nan}, []float64{0, 1, 0}},
		{"sqrt", []float64{0}, []float64{inf}},
		{"logaddexp", []float64{1000, -1000}, []float64{1, 0}},
	} {
		for _, d := range []dtype.DType{dtype.F32, dtype.F64} {
			got := gradAt(t, c.op, d, c.at...)
			for i, w := range c.want {
				if math.IsNaN(w) {
					require.True(t, math.IsNaN(got[i]), "%s at %v", c.op, c.at)
				} else {
					require.InDelta(t, w, got[i], 1e-6, "%s at %v", c.op, c.at)
				}
			}
		}
	}
}

// The rows are the scalar programs: the same names, one each.
func TestElementwiseRowsMatchScalarPrograms(t *testing.T) {
	for _, name := range scalar.Names() {
		op := LookupOp(name)
		require.NotNil(t, op, name)
		require.Equal(t, Elementwise, op.Class, name)
		require.Len(t, op.Params, scalar.Lookup(name).Arity, name)
	}
}

func TestElementwiseTypeRule(t *testing.T) {
	f32 := func(dims ...Dim) Type { return TensorDims(dtype.F32, dims) }
	n := Dim{N: -1, Sym: "N"}
	infer := func(op string, args ...Type) (Type, error) {
		ts, err := LookupOp(op).Infer(&Call{Op: LookupOp(op), Args: args})
		if err != nil {
			return Type{}, err
		}
		return ts[0], nil
	}
	for _, c := range []struct {
		op   string
		args []Type
		want Type
	}{
		{"add", []Type{f32(n, Unknown), f32(Unknown, Dim{N: 3})}, f32(n, Dim{N: 3})},
		{"add", []Type{AnyTensor, f32(n)}, f32(n)},
		{"add", []Type{f32(n), f32(Dim{N: 2})}, f32(Dim{N: 2})},
		{"add", []Type{AnyTensor, AnyTensor}, AnyTensor},
		{"lt", []Type{f32(n), f32(n)}, TensorDims(dtype.Bool, []Dim{n})},
		{"where", []Type{TensorOf(dtype.Bool, 2), AnyTensor, AnyTensor}, Type{Kind: KTensor, Ranked: true, Dims: []Dim{{N: 2}}}},
	} {
		got, err := infer(c.op, c.args...)
		require.NoError(t, err)
		require.Equal(t, c.want.String(), got.String(), c.op)
	}
	for _, c := range []struct {
		op   string
		args []Type
		want string
	}{
		{"add", []Type{TensorOf(dtype.F32, 2)}, "takes 2 operands"},
		{"add", []Type{TensorOf(dtype.F32, 2), TensorOf(dtype.F64, 2)}, "convert them to one dtype"},
		{"add", []Type{TensorOf(dtype.F32, 2), TensorOf(dtype.F32, 3)}, "differ; broadcast them first"},
		{"add", []Type{TensorOf(dtype.F32, 2), TensorOf(dtype.F32, 1, 2)}, "differ; broadcast them first"},
		{"add", []Type{TensorOf(dtype.F32, 2), Int}, "want a tensor"},
		{"exp", []Type{TensorOf(dtype.I64, 2)}, "not implemented for 'torch.int64'"},
		{"where", []Type{TensorOf(dtype.F32, 2), TensorOf(dtype.F32, 2), TensorOf(dtype.F32, 2)}, "want bool"},
	} {
		_, err := infer(c.op, c.args...)
		require.ErrorContains(t, err, c.want)
	}
}
