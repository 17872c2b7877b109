package aten

import (
	"context"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// randomCalls makes arguments that fit parameters by kind, and rarely by anything else.
type randomCalls struct{ *rand.Rand }

func (r randomCalls) tensor() *ir.Array {
	shapes := [][]int{{}, {0}, {3}, {2, 3}, {3, 3}, {2, 0}, {2, 3, 4}, {1, 2, 4, 4}, {2, 2, 3, 4, 3}, {1, 1}}
	dtypes := []dtype.DType{dtype.F32, dtype.F32, dtype.F64, dtype.I64, dtype.Bool, dtype.F16, dtype.U8}
	a := ir.NewArray(dtypes[r.Intn(len(dtypes))], shapes[r.Intn(len(shapes))]...)
	for i := range a.Len() {
		a.SetFloat(i, float64(r.Intn(5)-1))
	}
	return a
}

func (r randomCalls) argument(p Param, t ir.Type) ir.Datum {
	if p.HasDefault && r.Intn(2) == 0 {
		return p.Default
	}
	if t.Kind == ir.KOptional {
		if r.Intn(2) == 0 {
			return nil
		}
		t = t.Elems[0]
	}
	if p.Scalar {
		return []ir.Datum{int64(r.Intn(5) - 2), 0.5, true, -1.5, 0.0}[r.Intn(5)]
	}
	switch t.Kind {
	case ir.KTensor:
		return r.tensor()
	case ir.KInt:
		return int64(r.Intn(6) - 2)
	case ir.KFloat:
		return []float64{0, 1, 2, 0.5, -1, 3}[r.Intn(6)]
	case ir.KBool:
		return r.Intn(2) == 0
	case ir.KString:
		return []string{"none", "mean", "sum", "bilinear", "zeros", "nearest", "ij,jk->ik", "reflect", "..."}[r.Intn(9)]
	case ir.KDType:
		return []dtype.DType{dtype.F32, dtype.F64, dtype.I64, dtype.Bool}[r.Intn(4)]
	case ir.KList:
		n := r.Intn(4)
		if p.IntOrList > 0 {
			n = p.IntOrList
		}
		l := ir.NewList()
		for range n {
			l = l.Append(r.argument(Param{}, t.Elems[0]))
		}
		return l
	}
	return nil
}

// expand builds a call of f with its tensors as parameters, of known or unknown types, and everything else as literals.
func (r randomCalls) expand(f *Fn, unknown bool) (fn *ir.Func, params []ir.Datum, err error) {
	fn = ir.NewFunc(f.Name)
	b := ir.NewBuilder(fn)
	var value func(d ir.Datum) *ir.Value
	value = func(d ir.Datum) *ir.Value {
		switch d := d.(type) {
		case *ir.Array:
			params = append(params, d)
			if unknown {
				return fn.Param("x", ir.AnyTensor)
			}
			return fn.Param("x", d.Type())
		case ir.List:
			elems := make([]*ir.Value, d.Len())
			for i, e := range d.Elems() {
				elems[i] = value(e)
			}
			return b.List(elems...)
		}
		return b.Const(d)
	}
	err = ir.Try(func() {
		args := make([]*ir.Value, len(f.Params))
		for i, p := range f.Params {
			args[i] = value(r.argument(p, p.Type))
		}
		if f.Random {
			args[len(args)-1] = b.Int(7)
		}
		b.Return(f.Expand(b, args)...)
	})
	return fn, params, err
}

// Whatever the arguments: a function gives results of the types that its expansion promises, or an error, and never panics.
func TestNoArgumentsPanic(t *testing.T) {
	r := randomCalls{rand.New(rand.NewSource(1))}
	for _, f := range All() {
		for k := range 20 {
			var fn *ir.Func
			var params []ir.Datum
			var err error
			require.NotPanics(t, func() { fn, params, err = r.expand(f, k%5 == 4) }, "%s of %v", f.Schema, params)
			if err != nil {
				continue
			}
			require.Len(t, fn.Returns(), len(f.Returns), f.Schema)
			var out []ir.Datum
			require.NotPanics(t, func() { out, err = new(ir.Evaluator).Run(context.Background(), fn, params...) }, "%s\n%s", f.Schema, fn)
			if err != nil {
				continue
			}
			for i, want := range fn.ResultTypes() {
				if _, isArray := out[i].(*ir.Array); isArray && want.Kind == ir.KTensor {
					require.True(t, want.Accepts(ir.TypeOf(out[i])), "%s gives %s, its type is %s", f.Schema, ir.TypeOf(out[i]), want)
				}
			}
		}
	}
}
