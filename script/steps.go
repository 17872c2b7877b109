package script

import (
	"github.com/gtc-project/gtc/ir"
)

// step is one view on the way from a cell to what a reference denotes. put is its inverse: base with the part that the step
// shows replaced by v; a step without one is inverted by element numbers (putByIndex).
type step struct {
	name string
	args []*ir.Value // operands after the viewed value
	read func(l *lowering, base *ir.Value) *ir.Value
	put  func(l *lowering, base, v *ir.Value) *ir.Value
	// build makes the same step with other operands, for use outside the block that args belong to.
	build func(args []*ir.Value) *step
}

// samePath reports whether two paths surely lead to the same part.
func samePath(a, b []*step) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		if a[i].name != b[i].name || len(a[i].args) != len(b[i].args) {
			return false
		}
		for k := range a[i].args {
			x, okx := a[i].args[k].Const()
			y, oky := b[i].args[k].Const()
			if a[i].args[k] != b[i].args[k] && !(okx && oky && ir.DatumEqual(x, y)) {
				return false
			}
		}
	}
	return true
}

// inverses gives for a view function how a changed view goes back into its base; nil for those that need element numbers.
var inverses = map[string]func(l *lowering, base, v *ir.Value, args []*ir.Value) *ir.Value{
	"select.int": func(l *lowering, base, v *ir.Value, args []*ir.Value) *ir.Value {
		return l.aten1("select_scatter", append([]*ir.Value{base, v}, args...)...)
	},
	"slice.Tensor": func(l *lowering, base, v *ir.Value, args []*ir.Value) *ir.Value {
		return l.aten1("slice_scatter", append([]*ir.Value{base, v}, args...)...)
	},
	"narrow": func(l *lowering, base, v *ir.Value, args []*ir.Value) *ir.Value {
		start := args[1]
		// a negative start counts from the end; slice_scatter understands it, but not the end that start + length then gives
		size := l.op("size", base, args[0])
		start = l.op("py_select", l.op("py_lt", start, l.int(0)), l.op("py_add", start, size), start)
		return l.aten1("slice_scatter", base, v, args[0], start, l.op("py_add", start, args[2]), l.int(1))
	},
	"transpose.int": sameArgs("transpose.int"),
	"swapaxes":      sameArgs("swapaxes"),
	"swapdims":      sameArgs("swapdims"),
	"t":             sameArgs("t"),
	"numpy_T":       sameArgs("numpy_T"),
	"mT":            sameArgs("mT"),
	"matrix_H":      sameArgs("matrix_H"),
	"alias":         sameArgs("alias"),
	"positive":      sameArgs("alias"),
	"view":          shapeOfBase, "view_as": shapeOfBase, "reshape": shapeOfBase, "reshape_as": shapeOfBase, "flatten": shapeOfBase, "ravel": shapeOfBase,
	"atleast_1d": shapeOfBase, "atleast_2d": shapeOfBase, "atleast_3d": shapeOfBase, "mH": sameArgs("mH"), "adjoint": sameArgs("adjoint"),
	"unflatten": shapeOfBase, "squeeze": shapeOfBase, "squeeze.dim": shapeOfBase, "unsqueeze": shapeOfBase,
	"view.dtype": func(l *lowering, base, v *ir.Value, _ []*ir.Value) *ir.Value {
		return l.aten1("view.dtype", v, l.op("dtype_of", base))
	},
	"detach": func(l *lowering, base, v *ir.Value, _ []*ir.Value) *ir.Value { return l.op("graft", v, base) },
	"diagonal": func(l *lowering, base, v *ir.Value, args []*ir.Value) *ir.Value {
		return l.aten1("diagonal_scatter", append([]*ir.Value{base, v}, args...)...)
	},
}

func sameArgs(name string) func(l *lowering, base, v *ir.Value, args []*ir.Value) *ir.Value {
	return func(l *lowering, _, v *ir.Value, args []*ir.Value) *ir.Value {
		return l.aten1(name, append([]*ir.Value{v}, args...)...)
	}
}

func shapeOfBase(l *lowering, base, v *ir.Value, _ []*ir.Value) *ir.Value {
	return l.aten1("reshape", v, l.op("shape", base))
}

// viewStep is a view by an aten function.
func viewStep(name string, args []*ir.Value) *step {
	s := &step{name: name, args: args}
	s.read = func(l *lowering, base *ir.Value) *ir.Value {
		return l.aten1(name, append([]*ir.Value{base}, args...)...)
	}
	if inv := inverses[name]; inv != nil {
		s.put = func(l *lowering, base, v *ir.Value) *ir.Value { return inv(l, base, v, args) }
	}
	s.build = func(args []*ir.Value) *step { return viewStep(name, args) }
	return s
}

// pieceStep is element i of the list of views that an aten function such as chunk gives.
func pieceStep(fn string, args []*ir.Value, i *ir.Value, join func(l *lowering, list *ir.Value) *ir.Value) *step {
	s := &step{name: "piece " + fn, args: append(append([]*ir.Value{}, args...), i)}
	list := func(l *lowering, base *ir.Value) *ir.Value {
		return l.aten(fn, []ir.Type{ir.ListOf(ir.AnyTensor)}, append([]*ir.Value{base}, args...)...)[0]
	}
	s.read = func(l *lowering, base *ir.Value) *ir.Value { return l.op("list_get", list(l, base), i) }
	s.put = func(l *lowering, base, v *ir.Value) *ir.Value {
		return join(l, l.op("list_set", list(l, base), i, v))
	}
	s.build = func(a []*ir.Value) *step { return pieceStep(fn, a[:len(a)-1], a[len(a)-1], join) }
	return s
}

// itemStep is an element of a list.
func itemStep(i *ir.Value) *step {
	return &step{
		name: "item", args: []*ir.Value{i},
		read:  func(l *lowering, base *ir.Value) *ir.Value { return l.op("list_get", base, i) },
		put:   func(l *lowering, base, v *ir.Value) *ir.Value { return l.op("list_set", base, i, v) },
		build: func(a []*ir.Value) *step { return itemStep(a[0]) },
	}
}

// keyStep is a value of a dict.
func keyStep(k *ir.Value) *step {
	return &step{
		name: "key", args: []*ir.Value{k},
		read:  func(l *lowering, base *ir.Value) *ir.Value { return l.op("dict_get", base, k) },
		put:   func(l *lowering, base, v *ir.Value) *ir.Value { return l.op("dict_set", base, k, v) },
		build: func(a []*ir.Value) *step { return keyStep(a[0]) },
	}
}

// unwrapStep is an Optional known not to be None.
func unwrapStep(t ir.Type) *step {
	s := &step{
		name: "unwrap",
		read: func(l *lowering, base *ir.Value) *ir.Value { return l.unwrapped(base, t) },
		put:  func(_ *lowering, _, v *ir.Value) *ir.Value { return v },
	}
	s.build = func([]*ir.Value) *step { return s }
	return s
}

// view is the reference that a view function of r gives.
func (l *lowering) view(r *refV, s *step, contiguous tri) *refV {
	out := &refV{t: ir.AnyTensor, cell: r.cell, contiguous: contiguous}
	out.path = append(append([]*step{}, r.path...), s)
	base := l.read(r)
	out.cached = s.read(l, base)
	out.stamp = l.stampOf(r.cell)
	return out
}
