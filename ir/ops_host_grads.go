package ir

import (
	"fmt"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Ops on cotangents, and gradients of ops that carry them, so that gradients can be differentiated again.

func init() {
	first := func(b *Builder, n *Node, ct []*Value) []*Value { return []*Value{ct[0], nil} }
	withGrad(host("ct_fill", "ct like", "ct with zeros of the dtypes and shapes of like wherever it is None, in containers too.", sameAs(1),
		func(c *EvalCall) (Datum, error) { return fillCotangent(c.Args[0], c.Args[1]) }), first)
	withGrad(host("ct_shell", "ct like", "ct, or where it is None a container of Nones as long as the list or tuple like, an empty dict for a dict.", inferShell,
		func(c *EvalCall) (Datum, error) { return shellCotangent(c.Args[0], c.Args[1]), nil }), first)
	mayFail(host("ct_ones", "x", "The gradient with which backward starts: one in the dtype and shape of x, which has one element.", sameAs(0),
		func(c *EvalCall) (Datum, error) {
			x := c.Array(0)
			if x.Len() != 1 {
				return nil, fmt.Errorf("grad can be implicitly created only for scalar outputs, got shape %v: pass grad_outputs", x.Shape)
			}
			if !x.DType.IsFloat() {
				return nil, fmt.Errorf("only tensors of floating point dtype can require gradients, got %s", x.DType.Torch())
			}
			out := NewArray(x.DType, x.Shape...)
			out.SetFloat(0, 1)
			return out, nil
		}))
	mayFail(host("wrap_index", "i n what", "The index i, which may be negative, of n elements, counted from the start; what names them in the message.", is(Int),
		func(c *EvalCall) (Datum, error) {
			i, n := c.Int(0), c.Int(1)
			if i < -n || i >= n {
				return nil, fmt.Errorf("index %d out of range for %s", i, c.Args[2])
			}
			if i < 0 {
				i += n
			}
			return int64(i), nil
		}))
	LookupOp("ct_add").Infer = inferCotangentSum
	withGrad(LookupOp("py_select"), func(b *Builder, n *Node, ct []*Value) []*Value {
		none := b.None()
		return []*Value{nil, b.Op("py_select", n.Args[0], ct[0], none), b.Op("py_select", n.Args[0], none, ct[0])}
	})
	withGrad(LookupOp("list_onehot"), func(b *Builder, n *Node, ct []*Value) []*Value {
		return []*Value{nil, nil, b.Op("list_get", ct[0], n.Args[1])}
	})
	withGrad(LookupOp("list_unslice"), func(b *Builder, n *Node, ct []*Value) []*Value {
		return []*Value{b.Op("list_slice", ct[0], n.Args[1], n.Args[2], n.Args[3]), nil, nil, nil, nil}
	})
	withGrad(LookupOp("list_of_tuple"), func(b *Builder, n *Node, ct []*Value) []*Value {
		if n.Args[0].Type.Kind != KTuple {
			b.Fail(ErrNeedsTypes)
		}
		parts := make([]*Value, len(n.Args[0].Type.Elems))
		for i := range parts {
			parts[i] = b.Op("list_get", ct[0], b.Int(i))
		}
		return []*Value{b.Tuple(parts...)}
	})
}

// inferCotangentSum: where one operand is not None the sum is not either.
func inferCotangentSum(c *Call) ([]Type, error) {
	x, y := c.Args[0], c.Args[1]
	if x.Kind == KOptional && y.Kind == KTensor || x.Kind == KAny {
		x, y = y, x
	}
	if x.Kind == KTensor {
		switch {
		case y.Kind == KOptional && y.Elems[0].Kind == KTensor:
			return t1(x.Join(y.Elems[0]))
		case y.Kind == KAny || y.Kind == KNone:
			return t1(x)
		}
	}
	return t1(x.Join(y))
}

func inferShell(c *Call) ([]Type, error) {
	switch c.Args[0].Kind {
	case KNone, KAny, KOptional:
		return t1(cotangentType(c.Args[1]))
	}
	return t1(c.Args[0])
}

// cotangentType is the type of cotangents of a container in which elements may be None.
func cotangentType(t Type) Type {
	switch t.Kind {
	case KList:
		return ListOf(OptionalOf(t.Elems[0]))
	case KTuple:
		out := Type{Kind: KTuple, Elems: make([]Type, len(t.Elems))}
		for i, e := range t.Elems {
			out.Elems[i] = OptionalOf(e)
		}
		return out
	case KDict:
		return DictOf(t.Elems[0], OptionalOf(t.Elems[1]))
	}
	return Any
}

func shellCotangent(ct, like Datum) Datum {
	if ct != nil {
		return ct
	}
	switch v := like.(type) {
	case List:
		return NewList(make([]Datum, v.Len())...)
	case Tuple:
		return make(Tuple, len(v))
	case *Dict:
		return NewDict(nil, nil)
	}
	return nil
}

// fillCotangent gives ct the structure of like, with zeros where it has nothing.
func fillCotangent(ct, like Datum) (Datum, error) {
	if ct == nil {
		return ZerosLike(like)
	}
	switch v := like.(type) {
	case List:
		have, ok := ct.(List)
		if !ok || have.Len() != v.Len() {
			return nil, fmt.Errorf("cotangent %s does not fit %s", TypeOf(ct), TypeOf(like))
		}
		out, err := fillAll(have.Elems(), v.Elems())
		return NewList(out...), err
	case Tuple:
		have, ok := ct.(Tuple)
		if !ok || len(have) != len(v) {
			return nil, fmt.Errorf("cotangent %s does not fit %s", TypeOf(ct), TypeOf(like))
		}
		out, err := fillAll(have, v)
		return Tuple(out), err
	case *Dict:
		have, ok := ct.(*Dict)
		if !ok {
			return nil, fmt.Errorf("cotangent %s does not fit %s", TypeOf(ct), TypeOf(like))
		}
		cts := make([]Datum, len(v.Keys))
		for i, k := range v.Keys {
			cts[i], _ = have.Get(k)
		}
		out, err := fillAll(cts, v.Values)
		return NewDict(v.Keys, out), err
	}
	return ct, nil
}

func fillAll(cts, likes []Datum) ([]Datum, error) {
	out := make([]Datum, len(likes))
	for i, l := range likes {
		var err error
		if out[i], err = fillCotangent(cts[i], l); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// MayCarryGradient reports whether a value of type t may be or hold a floating-point tensor.
func MayCarryGradient(t Type) bool {
	switch t.Kind {
	case KTensor:
		return t.DType == dtype.Invalid || t.DType.IsFloat()
	case KAny:
		return true
	case KList, KOptional:
		return MayCarryGradient(t.Elems[0])
	case KDict:
		return MayCarryGradient(t.Elems[1])
	case KTuple:
		for _, e := range t.Elems {
			if MayCarryGradient(e) {
				return true
			}
		}
	}
	return false
}
