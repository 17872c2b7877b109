package aten

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// f32s is a contiguous f32 array.
func f32s(shape []int, v ...float64) *ir.Array { return ir.FromFloats(dtype.F32, shape, v) }

// i64s is a contiguous i64 array.
func i64s(shape []int, v ...float64) *ir.Array { return ir.FromFloats(dtype.I64, shape, v) }

// bools is a contiguous bool array of zeros and ones.
func bools(shape []int, v ...float64) *ir.Array { return ir.FromFloats(dtype.Bool, shape, v) }

// resolve expands a generic call for actual operands: tensors become parameters of their types, all else becomes constants.
func resolve(n *ir.Node, args []ir.Datum) (*ir.Func, error) {
	f := ir.NewFunc(n.Attrs.Callee)
	b := ir.NewBuilder(f)
	vals := make([]*ir.Value, len(args))
	for i, a := range args {
		vals[i] = operand(b, f.Param("a", paramType(a)), a)
	}
	err := ir.Try(func() { b.Return(Lookup(n.Attrs.Callee).Expand(b, vals)...) })
	return f, err
}

func paramType(d ir.Datum) ir.Type {
	if a, ok := d.(*ir.Array); ok {
		return a.Type()
	}
	return ir.Any
}

// operand is what an expansion sees of an operand: a parameter, a constant, or a list of such.
func operand(b *ir.Builder, p *ir.Value, d ir.Datum) *ir.Value {
	switch d := d.(type) {
	case *ir.Array:
		p.Type = d.Type()
		return p
	case ir.List:
		hasTensors := false
		for _, e := range d.Elems() {
			_, isArray := e.(*ir.Array)
			hasTensors = hasTensors || isArray
		}
		if !hasTensors {
			return b.Const(d)
		}
		elems := make([]*ir.Value, d.Len())
		for i, e := range d.Elems() {
			if e == nil {
				elems[i] = b.None()
				continue
			}
			got := b.Op("list_get", p, b.Int(i))
			got.Type = e.(*ir.Array).Type()
			elems[i] = got
		}
		return b.List(elems...)
	}
	return b.Const(d)
}

// eval runs a function on actual operands; missing ones take their defaults.
func eval(name string, args ...ir.Datum) ([]ir.Datum, error) {
	f := Lookup(name)
	if f == nil {
		panic("no function " + name)
	}
	for _, p := range f.Params[len(args):] {
		args = append(args, p.Default)
	}
	fn := ir.NewFunc("test")
	b := ir.NewBuilder(fn)
	vals := make([]*ir.Value, len(args))
	for i, a := range args {
		vals[i] = fn.Param("a", paramType(a))
	}
	types := make([]ir.Type, len(f.Returns))
	for i := range types {
		types[i] = ir.Any
	}
	b.Return(b.Aten(name, types, vals...)...)
	ev := &ir.Evaluator{Resolve: resolve}
	return ev.Run(context.Background(), fn, args...)
}

// want checks the results of a call, written as in IR text: f32[2]{1.0,2.0}.
func want(t *testing.T, results []string, name string, args ...ir.Datum) {
	t.Helper()
	got, err := eval(name, args...)
	require.NoError(t, err, name)
	var text []string
	for _, d := range got {
		text = append(text, ir.FormatDatum(d))
	}
	require.Equal(t, results, text, name)
}

// fails checks that a call is refused with a message.
func fails(t *testing.T, message, name string, args ...ir.Datum) {
	t.Helper()
	_, err := eval(name, args...)
	require.ErrorContains(t, err, message, name)
}

func ints(v ...int) ir.Datum { return ir.Ints(v...) }

func list(v ...ir.Datum) ir.Datum { return ir.NewList(v...) }
