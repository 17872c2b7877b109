package script

import (
	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/ir"
)

// index lowers x[…].
func (l *lowering) index(e *indexExpr) value {
	x := l.expr(e.x)
	l.at(e.pos)
	l.noUnion(x, e.pos)
	switch x := x.(type) {
	case *tupleV:
		return l.tupleItem(x, e)
	case *refV:
		switch x.t.Kind {
		case ir.KTensor:
			return l.getItem(x, e)
		case ir.KList:
			if s, ok := e.subs[0].(*sliceExpr); ok && len(e.subs) == 1 {
				return l.sliceList(x, s)
			}
			return l.listItem(x, l.listIndex(e))
		case ir.KDict:
			if len(e.subs) == 1 && !e.tup {
				return l.dictItem(x, l.expr(e.subs[0]), e.pos)
			}
		}
		if isOptional(x.t) {
			l.fail(e.pos, "a value of type '%s' cannot be indexed: it may be None, check that it 'is not None' first", typeName(x.t))
		}
	case *scalarV:
		if x.t.Kind == ir.KString {
			return l.stringItem(x, e)
		}
	case *module:
		return l.moduleItem(x, e)
	case *rangeV:
		return l.listItem(l.fresh(l.irOf(x), ir.IntList), l.listIndex(e))
	}
	l.fail(e.pos, "a value of type '%s' cannot be indexed: it is not a tensor, list, tuple or dict", describe(x))
	return nil
}

func (l *lowering) listIndex(e *indexExpr) *ir.Value {
	if len(e.subs) != 1 || e.tup {
		l.fail(e.pos, "a list takes one index")
	}
	if _, ok := e.subs[0].(*sliceExpr); ok {
		l.fail(e.pos, "cannot use a slice here")
	}
	v := l.expr(e.subs[0])
	if r, ok := isTensor(v); ok {
		return l.op("item_int", l.read(r))
	}
	i := l.irOf(l.coerce(v, ir.Int, e.subs[0].at(), "list index"))
	l.at(e.pos)
	return i
}

func (l *lowering) tupleItem(t *tupleV, e *indexExpr) value {
	if len(e.subs) != 1 || e.tup {
		l.fail(e.pos, "a tuple takes one index")
	}
	if s, ok := e.subs[0].(*sliceExpr); ok {
		bound := func(x expr) *ir.Value {
			if x == nil {
				return l.constant(nil)
			}
			return l.irOf(l.coerce(l.expr(x), ir.Int, x.at(), "slice bound"))
		}
		if elems, ok := sliceStatic(t.elems, bound(s.lo), bound(s.hi), bound(s.step)); ok {
			return l.tuple(elems)
		}
		l.fail(e.pos, "the bounds of a tuple slice must be constants")
	}
	i := l.irOf(l.coerce(l.expr(e.subs[0]), ir.Int, e.subs[0].at(), "tuple index"))
	d, ok := i.Const()
	if !ok {
		if _, err := homogeneous(t); err {
			l.fail(e.pos, "tuple index must be a constant integer: the elements have different types")
		}
		return l.listItem(l.listOf(append([]value{}, t.elems...), nil).(*refV), i)
	}
	k := int(d.(int64))
	if k < 0 {
		k += len(t.elems)
	}
	if k < 0 || k >= len(t.elems) {
		l.fail(e.pos, "tuple index %d is out of range for a tuple of %d elements", d, len(t.elems))
	}
	return t.elems[k]
}

func homogeneous(t *tupleV) (ir.Type, bool) {
	var first ir.Type
	for i, e := range t.elems {
		u, ok := typeOf(e)
		if !ok {
			return first, true
		}
		if i > 0 && !u.Equal(first) {
			return first, true
		}
		first = u
	}
	return first, len(t.elems) == 0
}

// sub is one subscript of a tensor.
type sub struct {
	kind         subKind
	i            *ir.Value // index
	lo, hi, step *ir.Value
	x            *refV // tensor
	pos          Pos
}

type subKind uint8

const (
	subInt subKind = iota
	subSlice
	subNone
	subDots
	subTensor
)

// subscripts lowers the subscripts of a tensor.
func (l *lowering) subscripts(e *indexExpr) []sub {
	exprs := e.subs
	if t, ok := exprs[0].(*tupleExpr); ok && len(exprs) == 1 {
		exprs = t.elems
	}
	var out []sub
	for _, x := range exprs {
		l.at(x.at())
		switch x := x.(type) {
		case *sliceExpr:
			s := sub{kind: subSlice, pos: x.pos}
			bound := func(b expr) *ir.Value {
				if b == nil {
					return l.constant(nil)
				}
				v := l.expr(b)
				if r, ok := isTensor(v); ok {
					return l.op("item_int", l.read(r))
				}
				return l.irOf(l.coerce(v, ir.OptionalOf(ir.Int), b.at(), "slice bound"))
			}
			s.lo, s.hi, s.step = bound(x.lo), bound(x.hi), bound(x.step)
			if d, ok := s.step.Const(); ok && d == nil {
				s.step = l.int(1)
			}
			out = append(out, s)
		case *constExpr:
			if x.name == "Ellipsis" {
				out = append(out, sub{kind: subDots, pos: x.pos})
				continue
			}
			out = append(out, l.subscript(l.expr(x), x.pos))
		default:
			v := l.expr(x)
			if t, ok := v.(*tupleV); ok && len(exprs) == 1 {
				for _, el := range t.elems {
					out = append(out, l.subscript(el, x.at()))
				}
				continue
			}
			out = append(out, l.subscript(v, x.at()))
		}
	}
	dots := 0
	for _, s := range out {
		if s.kind == subDots {
			dots++
		}
	}
	if dots > 1 {
		l.fail(e.pos, "an index can have only one ellipsis ('...')")
	}
	return out
}

func (l *lowering) subscript(v value, p Pos) sub {
	switch v := v.(type) {
	case *scalarV:
		switch v.t.Kind {
		case ir.KInt:
			return sub{kind: subInt, i: v.v, pos: p}
		case ir.KNone:
			return sub{kind: subNone, pos: p}
		case ir.KBool:
			return sub{kind: subTensor, x: l.fresh(l.callAten("tensor", []value{v}, nil), ir.AnyTensor), pos: p}
		}
	case *refV:
		switch v.t.Kind {
		case ir.KTensor:
			return sub{kind: subTensor, x: v, pos: p}
		case ir.KList:
			kws := []kwValue{}
			if s, ok := l.static(v); ok && len(s.elems) == 0 {
				kws = append(kws, kwValue{name: "dtype", v: l.scalar(dtypeNames["int64"])})
			}
			return sub{kind: subTensor, x: l.fresh(l.callAten("tensor", []value{v}, kws), ir.AnyTensor), pos: p}
		}
	case *rangeV:
		return l.subscript(l.fresh(l.irOf(v), ir.IntList), p)
	}
	l.fail(p, "a tensor cannot be indexed with a value of type '%s': expected an int, slice, None, '...', tensor or list", describe(v))
	return sub{}
}

// located is the tensor after the subscripts that are views, and the tensor subscripts that remain, one entry per dimension.
type located struct {
	view    *refV
	indices []*ir.Value // tensors and Nones; empty where the subscripts were all views
}

// locate applies subscripts. Those before an ellipsis count dimensions from the front, those behind it from the back.
func (l *lowering) locate(r *refV, subs []sub) located {
	cur := r
	var indices []*ir.Value
	var tail []*ir.Value
	advanced := false
	dim := 0
	i := 0
	for ; i < len(subs) && subs[i].kind != subDots; i++ {
		s := subs[i]
		l.at(s.pos)
		switch s.kind {
		case subInt:
			cur = l.step(cur, "select.int", l.int(dim), s.i)
			continue
		case subSlice:
			if !s.whole() {
				cur = l.step(cur, "slice.Tensor", l.int(dim), s.lo, s.hi, s.step)
			}
		case subNone:
			cur = l.step(cur, "unsqueeze", l.int(dim))
		case subTensor:
			advanced = true
		}
		indices = append(indices, l.indexOrNone(s))
		dim++
	}
	back := 0
	hasTail := false
	for k := len(subs) - 1; k > i; k-- {
		s := subs[k]
		l.at(s.pos)
		d := l.int(-(back + 1))
		switch s.kind {
		case subInt:
			cur = l.step(cur, "select.int", d, s.i)
			continue
		case subSlice:
			if !s.whole() {
				cur = l.step(cur, "slice.Tensor", d, s.lo, s.hi, s.step)
			}
		case subNone:
			cur = l.step(cur, "unsqueeze", d)
		case subTensor:
			advanced, hasTail = true, true
		}
		tail = append([]*ir.Value{l.indexOrNone(s)}, tail...)
		back++
	}
	if !advanced {
		return located{view: cur}
	}
	if hasTail {
		indices = l.padIndices(cur, indices, tail)
	}
	return located{view: cur, indices: indices}
}

// padIndices puts Nones for the dimensions that an ellipsis before a tensor index stands for. Their number must be known here.
func (l *lowering) padIndices(r *refV, front, tail []*ir.Value) []*ir.Value {
	gap := l.op("py_sub", l.op("rank", l.read(r)), l.int(len(front)+len(tail)))
	opt := ir.OptionalOf(ir.AnyTensor)
	var list *ir.Value
	l.try(func() {
		one := l.list([]*ir.Value{l.constant(nil)}, opt)
		mid := l.b.For(gap, []*ir.Value{l.list(nil, opt)}, []ir.Type{ir.ListOf(opt)}, func(_ *ir.Value, c []*ir.Value) []*ir.Value {
			return []*ir.Value{l.b.Op("list_concat", c[0], one)}
		})[0]
		list = l.b.Op("list_concat", l.b.Op("list_concat", l.list(front, opt), mid), l.list(tail, opt))
	})
	return []*ir.Value{list}
}

func (l *lowering) indexOrNone(s sub) *ir.Value {
	if s.kind == subTensor {
		return l.read(s.x)
	}
	return l.constant(nil)
}

func (s sub) whole() bool {
	isNone := func(v *ir.Value) bool { d, ok := v.Const(); return ok && d == nil }
	d, ok := s.step.Const()
	return isNone(s.lo) && isNone(s.hi) && ok && d == int64(1)
}

// step is a view by an aten function whose operands are complete.
func (l *lowering) step(r *refV, name string, args ...*ir.Value) *refV {
	layout := no
	if rule := viewRules[name]; rule != nil {
		layout = rule(l, r, append([]*ir.Value{nil}, args...))
	}
	return l.view(r, viewStep(name, args), layout)
}

// indexList is the operand of index and index_put.
func (l *lowering) indexList(indices []*ir.Value) *ir.Value {
	if len(indices) == 1 && indices[0].Type.Kind == ir.KList {
		return indices[0]
	}
	return l.list(indices, ir.OptionalOf(ir.AnyTensor))
}

func (l *lowering) getItem(r *refV, e *indexExpr) value {
	at := l.locate(r, l.subscripts(e))
	l.at(e.pos)
	if at.indices == nil {
		if at.view == r {
			return l.step(r, "alias")
		}
		return at.view
	}
	return l.result(l.aten1("index", l.read(at.view), l.indexList(at.indices)), ir.AnyTensor)
}

// setItem lowers x[…] = v.
func (l *lowering) setItem(t *indexExpr, v value) {
	x := l.expr(t.x)
	l.at(t.pos)
	if r, ok := x.(*refV); ok {
		switch r.t.Kind {
		case ir.KTensor:
			l.setTensorItem(l.locate(r, l.subscripts(t)), v, t.pos)
			return
		case ir.KList:
			if _, slice := t.subs[0].(*sliceExpr); slice {
				l.fail(t.pos, "assignment to a slice of a list is not supported")
			}
			l.setListItem(r, l.listIndex(t), v, t.pos)
			return
		case ir.KDict:
			l.setKey(r, l.expr(t.subs[0]), v, t.pos)
			return
		}
	}
	if _, ok := x.(*tupleV); ok {
		l.fail(t.pos, "a tuple cannot be changed: it does not support item assignment")
	}
	l.fail(t.pos, "a value of type '%s' does not support item assignment", describe(x))
}

func (l *lowering) setTensorItem(at located, v value, p Pos) {
	l.at(p)
	if r, ok := v.(*refV); ok && r.t.Kind == ir.KTensor {
		if at.indices == nil {
			l.writeTensor(at.view, l.aten1("copy", l.read(at.view), l.read(r), l.constant(false)))
			return
		}
		l.writeTensor(at.view, l.putIndexed(at, l.read(r)))
		return
	}
	s, ok := number(v)
	if !ok {
		l.fail(p, "cannot assign a value of type '%s' to elements of a tensor: expected a Tensor or number", describe(v))
	}
	if at.indices == nil {
		l.writeTensor(at.view, l.aten1("fill.Scalar", l.read(at.view), s.v))
		return
	}
	base := l.read(at.view)
	l.writeTensor(at.view, l.putIndexed(at, l.scalarLike(s, base)))
}

// castTo converts a value to the dtype of another tensor, as assignment does.
func (l *lowering) castTo(v, like *ir.Value) *ir.Value {
	return l.aten1("type_as", v, like)
}

// scalarLike is a number as a tensor of no dimensions and another tensor's dtype.
func (l *lowering) scalarLike(s *scalarV, like *ir.Value) *ir.Value {
	fn := aten.Lookup("scalar_tensor")
	bound := make([]value, len(fn.Params))
	bound[0] = s
	args := make([]*ir.Value, len(fn.Params))
	for i, p := range fn.Params {
		args[i] = l.operand(p, bound[i])
	}
	return l.castTo(l.aten1("scalar_tensor", args...), like)
}

func (l *lowering) putIndexed(at located, v *ir.Value) *ir.Value {
	return l.aten1("index_put", l.read(at.view), l.indexList(at.indices), v, l.constant(false))
}

// augmentedItem lowers x[…] op= v; the subscripts are evaluated once.
func (l *lowering) augmentedItem(t *indexExpr, s *augStmt) {
	x := l.expr(t.x)
	r, ok := x.(*refV)
	if !ok {
		l.fail(t.pos, "a value of type '%s' does not support item assignment", describe(x))
	}
	switch r.t.Kind {
	case ir.KTensor:
		at := l.locate(r, l.subscripts(t))
		y := l.expr(s.value)
		l.at(s.pos)
		if at.indices == nil {
			l.inPlace(at.view, s.op, y, s)
			return
		}
		old := l.fresh(l.aten1("index", l.read(at.view), l.indexList(at.indices)), ir.AnyTensor)
		l.inPlace(old, s.op, y, s)
		l.writeTensor(at.view, l.putIndexed(at, l.read(old)))
	case ir.KList:
		i := l.listIndex(t)
		old := l.listItem(r, i)
		y := l.expr(s.value)
		l.at(s.pos)
		if o, isRef := isTensor(old); isRef {
			l.inPlace(o, s.op, y, s)
			return
		}
		l.setListItem(r, i, l.binary(s.op, old, y, s.pos), t.pos)
	case ir.KDict:
		k := l.expr(t.subs[0])
		old := l.dictItem(r, k, t.pos)
		y := l.expr(s.value)
		l.at(s.pos)
		if o, isRef := isTensor(old); isRef {
			l.inPlace(o, s.op, y, s)
			return
		}
		l.setKey(r, k, l.binary(s.op, old, y, s.pos), t.pos)
	default:
		l.fail(t.pos, "a value of type '%s' does not support item assignment", describe(x))
	}
}
