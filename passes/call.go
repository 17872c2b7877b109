package passes

import (
	"errors"
	"fmt"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/ir"
)

// operand is what is known of an operand of a generic call before the call is expanded: its value, or its type, or the elements of which a
// list or tuple is made.
type operand struct {
	typ   ir.Type
	known bool // value is what the operand will be
	value ir.Datum
	elems []operand // of a list or tuple with elements that are not all known; nil otherwise
}

// operandOf is what is known of a value.
func operandOf(v *ir.Value) operand {
	if d, ok := v.Const(); ok {
		return operand{typ: v.Type, known: true, value: d}
	}
	o := operand{typ: v.Type}
	if v.Def != nil && (v.Def.Op == ir.OpList || v.Def.Op == ir.OpTuple) {
		o.elems = make([]operand, len(v.Def.Args))
		for i, a := range v.Def.Args {
			o.elems[i] = operandOf(a)
		}
	}
	return o
}

// operandOfDatum is what an expansion may assume of an actual operand: the types of tensors, and everything of the rest unless
// runtime says that only the type of a number counts.
func operandOfDatum(d ir.Datum, runtime bool) operand {
	o := operand{typ: datumType(d)}
	switch d := d.(type) {
	case *ir.Array, *ir.Dict:
		return o
	case ir.List:
		if holdsTensor(d.Elems()) {
			o.elems = operandsOf(d.Elems())
			return o
		}
	case ir.Tuple:
		if holdsTensor(d) {
			o.elems = operandsOf(d)
			return o
		}
	default:
		if runtime {
			return o
		}
	}
	o.known, o.value = true, d
	return o
}

func operandsOf(ds []ir.Datum) []operand {
	out := make([]operand, len(ds))
	for i, d := range ds {
		out[i] = operandOfDatum(d, false)
	}
	return out
}

func datumType(d ir.Datum) ir.Type {
	if l, ok := d.(ir.List); ok && l.Len() == 0 {
		return ir.ListOf(ir.Any)
	}
	return ir.TypeOf(d)
}

// holdsTensor reports whether there is a tensor among the values or in what they contain.
func holdsTensor(ds []ir.Datum) bool {
	for _, d := range ds {
		switch d := d.(type) {
		case *ir.Array, *ir.Dict:
			return true
		case ir.List:
			if holdsTensor(d.Elems()) {
				return true
			}
		case ir.Tuple:
			if holdsTensor(d) {
				return true
			}
		}
	}
	return false
}

// build gives the value that stands for the operand in a function whose parameter for it is p.
func (o operand) build(b *ir.Builder, p *ir.Value) *ir.Value {
	switch {
	case o.known:
		return constOf(b, o.value, o.typ)
	case o.elems == nil:
		return p
	}
	get, make := "list_get", b.List
	if o.typ.Kind == ir.KTuple {
		get, make = "tuple_get", b.Tuple
	}
	elems := []*ir.Value{}
	for i, e := range o.elems {
		if e.known {
			elems = append(elems, constOf(b, e.value, e.typ))
			continue
		}
		x := b.Node(ir.LookupOp(get), ir.Attrs{}, nil, []ir.Type{e.typ}, p, b.Int(i)).Results[0]
		elems = append(elems, e.build(b, x))
	}
	return make(elems...)
}

// constOf appends a literal of a type that may be more precise than what the literal shows (an empty list).
func constOf(b *ir.Builder, d ir.Datum, t ir.Type) *ir.Value {
	v := b.Const(d)
	if v.Type.Accepts(t) {
		v.Type = t
	}
	return v
}

// isNone reports whether the operand is None for certain.
func (o operand) isNone() bool { return o.typ.Kind == ir.KNone || o.known && o.value == nil }

// lookupCall finds the function that a generic node calls and checks the number of operands.
func lookupCall(callee string, operands int) (*aten.Fn, error) {
	fn := aten.Lookup(callee)
	if fn == nil {
		return nil, fmt.Errorf("there is no function aten.%s", callee)
	}
	if operands < len(fn.Params) {
		return nil, fmt.Errorf("aten.%s takes %d operands, got %d", fn.Name, len(fn.Params), operands)
	}
	return fn, nil
}

// expandCall builds the meaning of a call of fn (order 0) or of its gradient (see ir.OpVjp) as a function. Its parameters are the operands;
// what is known of them is built into the body. Of a gradient, results has the results that are wanted, None being the type of the others; nil
// wants all. It fails with ir.ErrNeedsTypes where too little is known.
func expandCall(fn *aten.Fn, order int, ops []operand, results []*ir.Value) (*ir.Func, error) {
	f := ir.NewFunc(fn.Name)
	b := ir.NewBuilder(f)
	err := ir.Try(func() {
		args := make([]*ir.Value, len(fn.Params))
		params := make([]*ir.Value, len(fn.Params))
		for i, o := range ops[:len(fn.Params)] {
			params[i] = f.Param(fmt.Sprintf("a%d", i), o.typ)
		}
		for i, o := range ops[:len(fn.Params)] {
			args[i] = o.build(b, params[i])
		}
		b.Return(fn.Expand(b, args)...)
	})
	if err != nil {
		return nil, err
	}
	if order == 0 && len(ops) != len(fn.Params) {
		return nil, fmt.Errorf("aten.%s takes %d operands, got %d", fn.Name, len(fn.Params), len(ops))
	}
	for k := range order {
		wanted := func(i int) bool { return true } // of inner gradients only what the outer ones read is computed anyway
		if k == order-1 {
			wanted = func(i int) bool { return i >= len(results) || results[i].Type.Kind != ir.KNone }
		}
		if f, err = vjp(f, ops, wanted); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// vjp is the gradient of f in the convention of ir.OpVjp: its parameters are those of f and then one cotangent per result of f, of which ops
// says what is known; its results are one gradient per parameter of f, None where there is none or it is not wanted.
func vjp(f *ir.Func, ops []operand, wanted func(param int) bool) (*ir.Func, error) {
	n, results := len(f.Body.Params), len(f.Returns())
	if len(ops) < n+results {
		return nil, fmt.Errorf("vjp of %s: %d operands, expected %d and %d cotangents", f.Name, len(ops), n, results)
	}
	cts := ops[n : n+results]
	o := autograd.Options{NoPrimal: true, NoneForZero: true, Cotangents: make([]bool, results)}
	for i := range n {
		if wanted(i) {
			o.Wrt = append(o.Wrt, i)
		}
	}
	for i, ct := range cts {
		o.Cotangents[i] = !ct.isNone()
	}
	g, err := autograd.Differentiate(f, o)
	if err != nil {
		return nil, err
	}
	w := ir.NewFunc(f.Name)
	b := ir.NewBuilder(w)
	err = ir.Try(func() {
		var pass []*ir.Value
		for i, p := range f.Body.Params {
			pass = append(pass, w.Param(f.ParamNames[i], p.Type))
		}
		for i, ct := range cts {
			p := w.Param(fmt.Sprintf("ct%d", n+i), ct.typ)
			if o.Cotangents[i] {
				pass = append(pass, p)
			}
		}
		grads := b.Inline(g, pass)
		all := make([]*ir.Value, n)
		for i := range all {
			if wanted(i) {
				all[i], grads = grads[0], grads[1:]
			} else {
				all[i] = b.None()
			}
		}
		b.Return(all...)
	})
	return w, err
}

// needsTypes reports whether an expansion failed only because too little is known yet.
func needsTypes(err error) bool { return errors.Is(err, ir.ErrNeedsTypes) }
