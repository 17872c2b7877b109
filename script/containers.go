package script

import (
	"github.com/gtc-project/gtc/ir"
)

func (l *lowering) listLiteral(e *listExpr) value {
	var elems []value
	for _, x := range e.elems {
		if s, ok := x.(*starExpr); ok {
			elems = append(elems, l.spread(s)...)
			continue
		}
		elems = append(elems, l.expr(x))
	}
	l.at(e.pos)
	return l.listOf(elems, e)
}

// listOf makes a list of values, whose types must agree.
func (l *lowering) listOf(elems []value, e *listExpr) value {
	t := ir.Any
	for i, v := range elems {
		p := l.pos
		if e != nil && i < len(e.elems) {
			p = e.elems[i].at()
		}
		et, ok := typeOf(v)
		if !ok {
			if m, isModule := v.(*module); isModule {
				l.fail(p, "a list of modules such as '%s' cannot be made here: use nn.ModuleList in __init__", m.class)
			}
			l.fail(p, "%s cannot be an element of a list", describe(v))
		}
		if i == 0 {
			t = et
			continue
		}
		u, ok := unify(t, et)
		if !ok {
			l.fail(p, "Type mismatch: list elements must have one type, expected '%s' but found '%s'", typeName(t), typeName(et))
		}
		t = u
	}
	if len(elems) == 0 { // an empty literal is a List[Tensor] until an annotation says otherwise
		return l.freshList(ir.ListOf(ir.AnyTensor), nil)
	}
	for i := range elems {
		elems[i] = l.retype(elems[i], t)
	}
	return l.freshList(ir.ListOf(t), elems)
}

func (l *lowering) dictLiteral(e *dictExpr, want *ir.Type) value {
	var keys, values []value
	for i := range e.keys {
		if want != nil {
			keys = append(keys, l.coerce(l.expr(e.keys[i]), want.Elems[0], e.keys[i].at(), "Dict key"))
			values = append(values, l.coerce(l.typed(e.values[i], want.Elems[1]), want.Elems[1], e.values[i].at(), "Dict value"))
			continue
		}
		keys = append(keys, l.expr(e.keys[i]))
		values = append(values, l.expr(e.values[i]))
	}
	l.at(e.pos)
	t := ir.DictOf(ir.Str, ir.AnyTensor)
	if want != nil {
		t = *want
	} else if len(keys) > 0 {
		t = ir.DictOf(l.common(keys, e.pos, "dict keys"), l.common(values, e.pos, "dict values"))
	}
	switch t.Elems[0].Kind {
	case ir.KInt, ir.KFloat, ir.KBool, ir.KString:
	default:
		l.fail(e.pos, "dict keys must be int, float, bool or str, not %s", typeName(t.Elems[0]))
	}
	var args []*ir.Value
	var holds []hold
	for i := range keys {
		args = append(args, l.irOf(keys[i]), l.irOf(l.retype(values[i], t.Elems[1])))
		holds = append(holds, l.keyedHolds(keys[i], values[i])...)
	}
	var v *ir.Value
	l.try(func() { v = l.b.Node(ir.LookupOp("dict"), ir.Attrs{}, nil, []ir.Type{t}, args...).Results[0] })
	r := l.fresh(v, t)
	l.addHolds(r.cell, holds)
	return r
}

func (l *lowering) common(vs []value, p Pos, what string) ir.Type {
	t := ir.Any
	for i, v := range vs {
		u, ok := typeOf(v)
		if ok && i > 0 {
			u, ok = unify(t, u)
		}
		if !ok {
			l.fail(p, "Type mismatch: %s must have one type, found '%s' and '%s'", what, typeName(t), describe(v))
		}
		t = u
	}
	return t
}

func (l *lowering) addHolds(c *cell, holds []hold) {
	if len(holds) == 0 {
		return
	}
	s := l.copyState(c)
	s.holds = append(s.holds, holds...)
	l.cells[c] = s
}

// comprehension lowers [elem for target in iter if conds] and {elem: value …}; want is the type of list that is expected, or nil.
func (l *lowering) comprehension(e *compExpr, want *ir.Type) value {
	elem := func() value {
		if want == nil {
			return l.expr(e.elem)
		}
		return l.coerce(l.typed(e.elem, want.Elems[0]), want.Elems[0], e.elem.at(), "List element")
	}
	it := l.expr(e.iter)
	saved := copyVars(l.frame.vars)
	if e.value == nil && len(e.conds) == 0 {
		if elems, ok := l.constantRange(it); ok {
			it = l.tuple(elems)
		}
		if elems, ok := l.unrolled(it, nil); ok {
			out := make([]value, len(elems))
			for i, x := range elems {
				l.assign(e.target, x)
				out[i] = elem()
			}
			l.frame.vars = saved
			l.at(e.pos)
			if want != nil {
				return l.freshList(*want, out)
			}
			return l.listOf(out, nil)
		}
	}
	n, item := l.iterate(it, e.iter.at())
	l.at(e.pos)
	var t ir.Type
	if want != nil {
		t = want.Elems[0]
	} else {
		t = l.elementType(e, item)
	}
	var acc *refV
	if e.value == nil {
		acc = l.freshList(ir.ListOf(t), nil)
	} else {
		acc = l.fresh(l.emptyDict(t), t)
	}
	assigned := map[string]bool{}
	collectTargets(e.target, assigned)
	for name := range assigned {
		delete(l.frame.vars, name)
	}
	l.loop(&loopSpec{pos: e.pos, assigned: assigned, trip: n, body: func(i *ir.Value) {
		l.assign(e.target, item(i))
		l.when(e.conds, func() {
			if e.value == nil {
				l.appendTo(acc, elem(), e.elem.at())
				return
			}
			l.setKey(acc, l.expr(e.elem), l.expr(e.value), e.pos)
		})
	}})
	l.frame.vars = saved
	return &refV{t: acc.t, cell: acc.cell}
}

// constantRange gives the values of a short range with constant bounds.
func (l *lowering) constantRange(it value) ([]value, bool) {
	r, ok := it.(*rangeV)
	if !ok {
		return nil, false
	}
	var n [3]int64
	for i, v := range []*ir.Value{r.start, r.stop, r.step} {
		d, isConst := v.Const()
		if n[i], ok = d.(int64); !isConst || !ok {
			return nil, false
		}
	}
	if n[2] == 0 {
		return nil, false
	}
	var out []value
	for i := n[0]; n[2] > 0 && i < n[1] || n[2] < 0 && i > n[1]; i += n[2] {
		if len(out) == maxUnroll {
			return nil, false
		}
		out = append(out, l.scalar(i))
	}
	return out, true
}

// elementType finds the type of a comprehension's elements by lowering one into a block that is thrown away.
func (l *lowering) elementType(e *compExpr, item func(i *ir.Value) value) ir.Type {
	vars, cells := l.frame.vars, l.cells
	l.frame.vars, l.cells = copyVars(vars), l.snapshot()
	var t, k ir.Type
	l.in(&ir.Block{}, func() {
		l.assign(e.target, item(l.int(0)))
		for _, c := range e.conds {
			l.refine(l.cond(c).yes)
		}
		v := l.expr(e.elem)
		var ok bool
		if t, ok = typeOf(v); !ok {
			l.fail(e.elem.at(), "%s cannot be an element of a list", describe(v))
		}
		if e.value != nil {
			k = t
			t, _ = typeOf(l.expr(e.value))
		}
	})
	l.frame.vars, l.cells = vars, cells
	if e.value != nil {
		return ir.DictOf(k, t)
	}
	return t
}

// when runs do where all conditions hold.
func (l *lowering) when(conds []expr, do func()) {
	if len(conds) == 0 {
		do()
		return
	}
	c := l.cond(conds[0])
	if c.static {
		if c.value {
			l.when(conds[1:], do)
		}
		return
	}
	l.branch(c.v, nil, func() { l.refine(c.yes); l.when(conds[1:], do) }, func() {})
}

// listItem is element i of a list.
func (l *lowering) listItem(r *refV, i *ir.Value) value {
	et := r.t.Elems[0]
	if s, ok := l.static(r); ok {
		if d, ok := i.Const(); ok {
			k := int(d.(int64))
			if k < 0 {
				k += len(s.elems)
			}
			if k >= 0 && k < len(s.elems) {
				return s.elems[k]
			}
		} else if mutable(et) && len(s.elems) > 0 {
			return l.anyOf(r, s, i)
		}
	}
	if p, ok := l.state(r.cell).content.(*pieces); ok && len(r.path) == 0 {
		s := pieceStep(p.fn, p.args, i, p.join)
		out := &refV{t: ir.AnyTensor, cell: p.base.cell, path: append(append([]*step{}, p.base.path...), s)}
		out.cached, out.stamp = l.op("list_get", l.piecesList(p), i), l.stampOf(p.base.cell)
		return out
	}
	v := l.op("list_get", l.read(r), i)
	if mutable(et) {
		out := &refV{t: et, cell: r.cell, path: append(append([]*step{}, r.path...), itemStep(i))}
		out.cached, out.stamp = v, l.stampOf(r.cell)
		if et.Kind == ir.KTensor {
			out.contiguous = yes
		}
		return out
	}
	out := l.valueOf(v, et)
	poison(out)
	return out
}

// poison makes writing to the tensors in a value an error: what shares their memory is not known.
func poison(v value) {
	switch v := v.(type) {
	case *tupleV:
		for _, e := range v.elems {
			poison(e)
		}
	case *refV:
		v.cell.poison = "this tensor comes from a list or dict that may share its memory, so the effect of this write cannot be tracked: write to a copy made with .clone()"
	}
}

// anyOf is the element of a known list at an index that is only known at run time: memory of its own that mirrors them all.
func (l *lowering) anyOf(r *refV, s *staticList, i *ir.Value) value {
	et := r.t.Elems[0]
	c := l.newCell(et, l.op("list_get", l.read(r), i))
	n := len(s.elems)
	at := l.op("py_select", l.op("py_lt", i, l.int(0)), l.op("py_add", i, l.int(n)), i)
	for k, e := range s.elems {
		if ref, ok := e.(*refV); ok {
			key := c.site + "/item" + string(rune('0'+k))
			l.addMirror(c, key, ref, func() *ir.Value { return l.op("py_eq", at, l.int(k)) })
		}
	}
	return &refV{t: et, cell: c}
}

// dynamic makes a list's content one IR value, so that it can be changed at places known only at run time.
func (l *lowering) dynamic(r *refV) *ir.Value {
	v := l.read(r)
	if _, ok := l.static(r); ok {
		holds := l.elementHolds(r, nil)
		s := l.copyState(r.cell)
		s.content, s.holds = v, holds
		l.cells[r.cell] = s
	}
	return v
}

// writeList replaces a list's content by an IR value, keeping what it is known to share.
func (l *lowering) writeList(r *refV, v *ir.Value, added ...value) {
	holds := l.elementHolds(r, nil)
	if r.t.Kind == ir.KList {
		for i := range holds {
			holds[i].keyed = false
		}
	}
	l.write(r, v)
	if len(r.path) > 0 {
		for _, a := range added {
			l.addHolds(r.cell, l.holdsOf(a, nil))
		}
		return
	}
	s := l.copyState(r.cell)
	s.holds, s.untagged = holds, true
	for _, a := range added {
		s.holds = l.holdsOf(a, s.holds)
	}
	l.cells[r.cell] = s
}

func (l *lowering) elementOf(r *refV, v value, p Pos, what string) value {
	et := unwrapped(l.state(r.cell).t)
	if len(r.path) == 0 && et.Kind == ir.KList && et.Elems[0].Kind != ir.KAny {
		return l.coerce(v, et.Elems[0], p, what)
	}
	return l.coerce(v, r.t.Elems[0], p, what)
}

func (l *lowering) appendTo(r *refV, v value, p Pos) {
	v = l.elementOf(r, v, p, "append: could not match type of argument")
	l.at(p)
	tagged := len(r.path) == 0 && mutable(r.t.Elems[0])
	if tagged {
		l.tagAppend(r.cell, v)
	}
	if s, ok := l.static(r); ok {
		l.writeCell(r.cell, &staticList{append(append(make([]value, 0, len(s.elems)+1), s.elems...), v)})
		return
	}
	untagged := l.state(r.cell).untagged
	old := l.read(r)
	holds := l.elementHolds(r, nil)
	n := len(holds)
	holds = l.holdsOf(v, holds)
	if _, isRef := v.(*refV); isRef && len(holds) == n+1 {
		holds[n].keyed, holds[n].at = true, l.op("list_len", old)
	}
	l.writeList(r, l.op("list_append", old, l.irOf(v)), v)
	if tagged {
		s := l.copyState(r.cell)
		s.holds = holds
		l.cells[r.cell] = s
	}
	if tagged && !untagged {
		s := l.copyState(r.cell)
		s.untagged = false
		l.cells[r.cell] = s
	}
}

func (l *lowering) setListItem(r *refV, i *ir.Value, v value, p Pos) {
	v = l.elementOf(r, v, p, "list assignment: could not match type of element")
	l.at(p)
	if s, ok := l.static(r); ok {
		if d, isConst := i.Const(); isConst {
			k := int(d.(int64))
			if k < 0 {
				k += len(s.elems)
			}
			if k >= 0 && k < len(s.elems) {
				elems := append([]value{}, s.elems...)
				elems[k] = v
				l.writeCell(r.cell, &staticList{elems})
				return
			}
		}
	}
	l.writeList(r, l.op("list_set", l.read(r), i, l.irOf(v)), v)
}

func (l *lowering) setKey(r *refV, k, v value, p Pos) {
	k = l.coerce(k, r.t.Elems[0], p, "dict assignment: wrong key type in argument")
	v = l.coerce(v, r.t.Elems[1], p, "dict assignment: wrong value type in argument")
	l.at(p)
	holds := l.keyedHolds(k, v)
	l.read(r)
	l.dropKey(r, k)
	l.writeList(r, l.op("dict_set", l.read(r), l.irOf(k), l.irOf(v)))
	l.addHolds(r.cell, holds)
}

// keyedHolds lists what v, stored under k, shares memory with.
func (l *lowering) keyedHolds(k, v value) []hold {
	holds := l.holdsOf(v, nil)
	if _, isRef := v.(*refV); isRef && len(holds) == 1 {
		holds[0].keyed = true
		if d, ok := k.(*scalarV).v.Const(); ok {
			holds[0].key = d
		} else {
			holds[0].at = k.(*scalarV).v
		}
	}
	return holds
}

// dropKey forgets what a dict holds under a key that is set anew; a key known only at run time may be any.
func (l *lowering) dropKey(r *refV, k value) {
	s := l.copyState(r.cell)
	var holds []hold
	for _, h := range s.holds {
		same, other := h.is(k.(*scalarV).v)
		if same {
			continue
		}
		h.keyed = h.keyed && other
		holds = append(holds, h)
	}
	s.holds = holds
	l.cells[r.cell] = s
}

func (l *lowering) dictItem(r *refV, k value, p Pos) value {
	k = l.coerce(k, r.t.Elems[0], p, "dict index: wrong key type")
	l.at(p)
	kv := l.irOf(k)
	v := l.op("dict_get", l.read(r), kv)
	et := r.t.Elems[1]
	if mutable(et) {
		out := &refV{t: et, cell: r.cell, path: append(append([]*step{}, r.path...), keyStep(kv))}
		out.cached, out.stamp = v, l.stampOf(r.cell)
		out.contiguous = yes
		return out
	}
	out := l.valueOf(v, et)
	poison(out)
	return out
}

func (l *lowering) concatLists(x, y *refV, p Pos) value {
	t, ok := unify(x.t, y.t)
	if !ok {
		l.fail(p, "unsupported operand types for +: cannot combine '%s' and '%s'", typeName(x.t), typeName(y.t))
	}
	a, okA := l.static(x)
	b, okB := l.static(y)
	if okA && okB {
		return l.freshList(t, append(append([]value{}, a.elems...), b.elems...))
	}
	out := l.fresh(l.op("list_concat", l.read(x), l.read(y)), t)
	l.addHolds(out.cell, append(l.derivedHolds(x), l.derivedHolds(y)...))
	return out
}

func (l *lowering) repeatList(x *refV, n *scalarV, p Pos) value {
	if s, ok := l.static(x); ok {
		if d, ok := n.v.Const(); ok && int(d.(int64))*len(s.elems) <= 4096 {
			var elems []value
			for range max(d.(int64), 0) {
				elems = append(elems, s.elems...)
			}
			return l.freshList(x.t, elems)
		}
	}
	var v *ir.Value
	l.try(func() {
		empty := l.list(nil, x.t.Elems[0])
		part := l.read(x)
		v = l.b.For(n.v, []*ir.Value{empty}, []ir.Type{x.t}, func(_ *ir.Value, c []*ir.Value) []*ir.Value {
			return []*ir.Value{l.b.Op("list_concat", c[0], part)}
		})[0]
	})
	out := l.fresh(v, x.t)
	l.addHolds(out.cell, l.derivedHolds(x))
	return out
}

// sliceBounds lowers the bounds of a slice of a list or string; None where they are not given.
func (l *lowering) sliceBounds(s *sliceExpr) (lo, hi, step *ir.Value) {
	bound := func(e expr) *ir.Value {
		if e == nil {
			return l.constant(nil)
		}
		return l.irOf(l.coerce(l.expr(e), optInt, e.at(), "slice bound"))
	}
	lo, hi, step = bound(s.lo), bound(s.hi), bound(s.step)
	l.at(s.pos)
	return lo, hi, step
}

func (l *lowering) sliceList(r *refV, s *sliceExpr) value {
	lo, hi, step := l.sliceBounds(s)
	if st, ok := l.static(r); ok {
		if elems, ok := sliceStatic(st.elems, lo, hi, step); ok {
			return l.freshList(r.t, elems)
		}
	}
	out := l.fresh(l.op("list_slice", l.read(r), lo, hi, step), r.t)
	l.addHolds(out.cell, l.derivedHolds(r))
	return out
}

func sliceStatic(elems []value, lo, hi, step *ir.Value) ([]value, bool) {
	a, okA := lo.Const()
	b, okB := hi.Const()
	c, okC := step.Const()
	if !okA || !okB || !okC {
		return nil, false
	}
	k, isInt := c.(int64)
	if c == nil {
		k, isInt = 1, true
	}
	if !isInt || k <= 0 {
		return nil, false
	}
	clamp := func(d ir.Datum, deflt int) int {
		i, ok := d.(int64)
		if !ok {
			return deflt
		}
		if i < 0 {
			i += int64(len(elems))
		}
		return int(min(max(i, 0), int64(len(elems))))
	}
	var out []value
	for i := clamp(a, 0); i < clamp(b, len(elems)); i += int(k) {
		out = append(out, elems[i])
	}
	return out, true
}

// listMethod lowers a method of a list.
func (l *lowering) listMethod(r *refV, name string, args []value, kws []kwValue, p Pos) value {
	arity := func(lo, hi int) {
		if len(args) < lo || len(args) > hi {
			l.fail(p, "list.%s() takes %d to %d arguments, got %d", name, lo, hi, len(args))
		}
	}
	index := func(i int) *ir.Value {
		return l.irOf(l.coerce(args[i], ir.Int, p, "list."+name+": argument"))
	}
	s, static := l.static(r)
	l.at(p)
	switch name {
	case "append":
		arity(1, 1)
		l.appendTo(r, args[0], p)
	case "extend":
		arity(1, 1)
		v := args[0]
		if t, ok := v.(*tupleV); ok {
			v = l.listOf(t.elems, nil)
		}
		y, ok := l.coerce(v, r.t, p, "list.extend: argument").(*refV)
		if !ok {
			l.fail(p, "list.extend: expected a list")
		}
		if o, ok := l.static(y); ok && static {
			l.writeCell(r.cell, &staticList{append(append([]value{}, s.elems...), o.elems...)})
			return l.none()
		}
		holds := l.derivedHolds(y)
		l.writeList(r, l.op("list_concat", l.read(r), l.read(y)))
		l.addHolds(r.cell, holds)
	case "insert":
		arity(2, 2)
		v := l.elementOf(r, args[1], p, "list.insert: argument")
		l.writeList(r, l.op("list_insert", l.read(r), index(0), l.irOf(v)), v)
	case "pop":
		arity(0, 1)
		i := l.int(-1)
		if len(args) == 1 {
			i = index(0)
		}
		if d, ok := i.Const(); ok && static {
			k := int(d.(int64))
			if k < 0 {
				k += len(s.elems)
			}
			if k >= 0 && k < len(s.elems) {
				elems := append(append([]value{}, s.elems[:k]...), s.elems[k+1:]...)
				l.writeCell(r.cell, &staticList{elems})
				return s.elems[k]
			}
		}
		v := l.op("list_get", l.read(r), i)
		shared := len(l.state(r.cell).holds) > 0
		l.writeList(r, l.op("list_remove", l.read(r), i))
		out := l.valueOf(v, r.t.Elems[0])
		if shared {
			poison(out)
		}
		return out
	case "remove":
		arity(1, 1)
		l.writeList(r, l.op("list_remove", l.read(r), l.op("list_index", l.read(r), l.irOf(args[0]))))
	case "clear":
		arity(0, 0)
		l.write(r, l.list(nil, r.t.Elems[0]))
		if len(r.path) == 0 {
			l.writeCell(r.cell, &staticList{})
		}
	case "reverse":
		arity(0, 0)
		if static {
			elems := make([]value, len(s.elems))
			for i, e := range s.elems {
				elems[len(elems)-1-i] = e
			}
			l.writeCell(r.cell, &staticList{elems})
			return l.none()
		}
		l.writeList(r, l.op("list_reverse", l.read(r)))
	case "sort":
		rev := l.constant(false)
		for _, k := range kws {
			if k.name == "reverse" {
				rev = l.irOf(l.coerce(k.v, ir.BoolT, p, "list.sort: argument 'reverse'"))
			}
		}
		if len(args) == 1 {
			rev = l.irOf(l.coerce(args[0], ir.BoolT, p, "list.sort: argument 'reverse'"))
		}
		l.write(r, l.op("list_sort", l.read(r), rev))
	case "copy":
		arity(0, 0)
		if static {
			return l.freshList(r.t, s.elems)
		}
		out := l.fresh(l.read(r), r.t)
		l.addHolds(out.cell, l.addElements(l.elementHolds(r, nil), r))
		return out
	case "index":
		arity(1, 1)
		return scalarOf(l.op("list_index", l.read(r), l.irOf(args[0])))
	case "count":
		arity(1, 1)
		return scalarOf(l.op("list_count", l.read(r), l.irOf(args[0])))
	default:
		l.fail(p, "'%s' object has no attribute or method '%s'", typeName(r.t), short(name))
	}
	return l.none()
}

// dictMethod lowers a method of a dict.
func (l *lowering) dictMethod(r *refV, name string, args []value, p Pos) value {
	l.at(p)
	key := func() *ir.Value {
		if len(args) == 0 {
			l.fail(p, "dict.%s() is missing its argument", name)
		}
		return l.irOf(l.coerce(args[0], r.t.Elems[0], p, "dict."+name+": argument"))
	}
	switch name {
	case "keys":
		return l.fresh(l.op("dict_keys", l.read(r)), ir.ListOf(r.t.Elems[0]))
	case "values":
		out := l.fresh(l.op("dict_values", l.read(r)), ir.ListOf(r.t.Elems[1]))
		l.addHolds(out.cell, l.derivedHolds(r))
		return out
	case "items":
		return &zipV{[]value{l.dictMethod(r, "keys", nil, p), l.dictMethod(r, "values", nil, p)}}
	case "get":
		k := key()
		deflt := value(l.none())
		if len(args) > 1 {
			deflt = l.coerce(args[1], r.t.Elems[1], p, "dict.get: argument")
			return l.valueOf(l.op("dict_get_or", l.read(r), k, l.irOf(deflt)), r.t.Elems[1])
		}
		return l.valueOf(l.op("dict_get_or", l.read(r), k, l.irOf(deflt)), optional(r.t.Elems[1]))
	case "pop":
		k := key()
		var v *ir.Value
		if len(args) > 1 {
			v = l.op("dict_get_or", l.read(r), k, l.irOf(l.coerce(args[1], r.t.Elems[1], p, "dict.pop: argument")))
		} else {
			v = l.op("dict_get", l.read(r), k)
		}
		return l.takeKey(r, k, v)
	case "popitem":
		keys := l.op("dict_keys", l.read(r))
		l.do("assert", l.op("py_bool", keys), l.constant("popitem(): dictionary is empty"))
		k := l.op("list_get", keys, l.int(0)) // TorchScript takes the first item, unlike Python
		v := l.takeKey(r, k, l.op("dict_get", l.read(r), k))
		return l.tuple([]value{l.valueOf(k, r.t.Elems[0]), v})
	case "setdefault":
		k := key()
		if len(args) < 2 {
			l.fail(p, "dict.setdefault() takes 2 arguments")
		}
		v := l.op("dict_get_or", l.read(r), k, l.irOf(l.coerce(args[1], r.t.Elems[1], p, "dict.setdefault: argument")))
		l.writeList(r, l.op("dict_set", l.read(r), k, v), args[1])
		return l.dictItem(r, args[0], p)
	case "clear":
		l.write(r, l.emptyDict(r.t))
		return l.none()
	case "copy":
		out := l.fresh(l.read(r), r.t)
		l.addHolds(out.cell, l.addElements(l.elementHolds(r, nil), r))
		return out
	case "update":
		if len(args) == 1 {
			if o, ok := args[0].(*refV); ok && o.t.Kind == ir.KDict {
				l.coerce(o, r.t, p, "dict.update: argument")
				return l.updateDict(r, o)
			}
		}
		l.fail(p, "dict.update() takes a dict")
	}
	l.fail(p, "'%s' object has no attribute or method '%s'", typeName(r.t), short(name))
	return nil
}

// takeKey removes a key, whose value was v, from a dict, and gives the value.
func (l *lowering) takeKey(r *refV, k, v *ir.Value) value {
	shared := len(l.state(r.cell).holds) > 0
	l.dropKey(r, scalarOf(k))
	l.writeList(r, l.op("dict_without", l.read(r), k))
	out := l.valueOf(v, r.t.Elems[1])
	if shared {
		poison(out)
	}
	return out
}

func (l *lowering) updateDict(r, o *refV) value {
	keys, other := l.op("dict_keys", l.read(o)), l.read(o)
	var v *ir.Value
	l.try(func() {
		v = l.b.For(l.b.Op("list_len", keys), []*ir.Value{l.read(r)}, []ir.Type{r.t}, func(i *ir.Value, c []*ir.Value) []*ir.Value {
			k := l.b.Op("list_get", keys, i)
			return []*ir.Value{l.b.Op("dict_set", c[0], k, l.b.Op("dict_get", other, k))}
		})[0]
	})
	holds := l.derivedHolds(o)
	l.writeList(r, v)
	l.addHolds(r.cell, holds)
	return l.none()
}
