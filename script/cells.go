package script

import (
	"fmt"

	"github.com/gtc-project/gtc/ir"
)

// The memory model of lowering. IR values never change, but the program's tensors, lists and dicts do, and may share memory.
//
// A cell is a piece of memory: a tensor's storage, a list, a dict. It has a content, replaced at every write. A reference
// (refV) is a cell and a path of views into it. Reading goes through the path; writing computes the new view and puts it back
// into the cell's content.
//
// Where control flow makes it depend on run-time values which memory a variable refers to, the variable gets a cell of its own
// with mirrors: mirror{guard, ref} says "where guard is true, I am the same memory as ref". A write to the cell then also writes
// to ref where the guard holds, and a read first looks there if it was written. Mirrors cost nothing unless they are used: the
// first pass over the function finds out which are, the second pass makes those only.

// cell is a piece of memory.
type cell struct {
	serial  int
	site    string
	t       ir.Type
	content content // before any write
	mirrors []*mirror
	scopes  []int  // the loops around the place where it was made
	tags    *refV  // of a list: which reference each element was copied from
	poison  string // not "": what may share this memory cannot be tracked; writing is an error with this reason
}

// content is what a cell holds: an *ir.Value, or a *staticList whose elements are known one by one.
type content interface{}

// staticList is the content of a list whose length is known while lowering. It is immutable.
type staticList struct{ elems []value }

// pieces is the content of a list of views of one tensor, such as chunk gives.
type pieces struct {
	base *refV
	fn   string
	args []*ir.Value
	list *ir.Value // valid while base has this stamp
	at   int
	join func(l *lowering, list *ir.Value) *ir.Value // puts the list together again
}

type cellState struct {
	content  content
	stamp    int
	t        ir.Type // element type where it became known after creation
	seen     []int   // per mirror: the stamp of its target that this content includes
	inner    int     // of a list or dict: the stamp of the latest write into an element, as opposed to one of the whole
	holds    []hold
	untagged bool // the tags no longer tell where the elements come from
}

// hold says that an element of a list or dict that is an IR value was copied from a reference, whose memory it shares.
type hold struct {
	ref   *refV
	stamp int
	elems bool      // only the elements of ref, a list or dict, are shared, not ref itself: the stamp is that of the latest write into one
	keyed bool      // where the copy is, is known:
	key   ir.Datum  // under this dict key or list index,
	at    *ir.Value // or, if not nil, under this one, known when running
	loose bool      // the copies were made under another name for ref: tags do not tell them
}

// inside reports whether a container holds one of its own elements twice. Such a hold is never out of date.
func (h hold) inside(c *cell) bool { return h.ref.cell == c }

// place is the dict key or list index under which the copy is.
func (h hold) place(l *lowering) *ir.Value {
	if h.at != nil {
		return h.at
	}
	return l.constant(h.key)
}

// is reports whether the copy surely is in another place than v, or surely in that one.
func (h hold) is(v *ir.Value) (same, other bool) {
	d, ok := v.Const()
	switch {
	case !h.keyed:
		return false, false
	case h.at != nil:
		return h.at == v, false
	case !ok:
		return false, false
	}
	same = ir.DatumEqual(d, h.key)
	if i, isInt := d.(int64); isInt && i < 0 { // an index from the end of a list
		return same, false
	}
	return same, !same
}

type mirror struct {
	key   string
	guard *ir.Value
	ref   *refV
	start int // stamp of the target at creation
}

// mirrorPlan records which mirrors are used; nil in the first pass, which makes all of them.
type mirrorPlan struct {
	used  map[string]bool
	final bool
	// views says that a variable that is now one view of some memory, now another, is carried by the numbers that choose the view.
	// That is precise, but costs known shapes; so it is done only where such a variable is written to.
	views bool
}

// needViews is the key in mirrorPlan.used that asks for views.
const needViews = "views"

func (l *lowering) newCell(t ir.Type, c content) *cell {
	l.serial++
	k := &cell{serial: l.serial, t: t, scopes: l.scopes, content: c, site: fmt.Sprintf("%s@%d:%d", l.frame.key, l.pos.Line, l.pos.Col)}
	l.sites[k.site] = k
	return k
}

// fresh is a reference to new memory that holds v.
func (l *lowering) fresh(v *ir.Value, t ir.Type) *refV {
	return &refV{t: t, cell: l.newCell(t, v), cached: v, contiguous: yes}
}

func (l *lowering) freshList(t ir.Type, elems []value) *refV {
	c := l.newCell(t, &staticList{elems})
	if len(elems) == 0 && l.mirror.final && l.mirror.used["tags "+c.site] {
		c.tags = &refV{t: ir.IntList, cell: l.newCell(ir.IntList, &staticList{})}
		l.sites[c.site] = c
		c.tags.cell.site += "#tags"
		l.sites[c.tags.cell.site] = c.tags.cell
	}
	return &refV{t: t, cell: c}
}

func (l *lowering) state(c *cell) cellState {
	if s, ok := l.cells[c]; ok {
		return s
	}
	s := cellState{content: c.content, t: c.t}
	for _, m := range c.mirrors {
		s.seen = append(s.seen, m.start)
	}
	return s
}

// stampOf is the number of the cell's latest write, its mirrors' included.
func (l *lowering) stampOf(c *cell) int {
	l.sync(c)
	return l.state(c).stamp
}

func (l *lowering) nextStamp() int {
	l.stamp++
	return l.stamp
}

// sync brings into c what was written to its mirrors' memory.
func (l *lowering) sync(c *cell) {
	for i, m := range c.mirrors {
		now := l.stampOf(m.ref.cell)
		if l.state(c).seen[i] == now {
			continue
		}
		l.mirror.used[m.key] = true
		s := l.copyState(c)
		s.content = l.choose(m.guard, func() content { return l.readRef(m.ref, c.t) }, func() content { return l.asIR(c, s.content) }, c.t)
		s.seen[i] = now
		s.stamp = l.nextStamp()
		l.cells[c] = s
	}
}

func (l *lowering) copyState(c *cell) cellState {
	s := l.state(c)
	s.seen = append([]int{}, s.seen...)
	s.holds = append([]hold{}, s.holds...)
	return s
}

// choose emits an if on guard that yields one of two contents as IR values.
func (l *lowering) choose(guard *ir.Value, then, els func() content, t ir.Type) *ir.Value {
	if d, ok := guard.Const(); ok {
		if d.(bool) {
			return then().(*ir.Value)
		}
		return els().(*ir.Value)
	}
	blocks := []*ir.Block{{}, {}}
	for i, f := range []func() content{then, els} {
		l.in(blocks[i], func() {
			v := f().(*ir.Value)
			l.try(func() { l.b.Yield(v) })
		})
	}
	var out *ir.Value
	l.try(func() { out = l.b.Node(ir.OpIf, ir.Attrs{}, blocks, []ir.Type{t}, guard).Results[0] })
	return out
}

// readRef is read as a content.
func (l *lowering) readRef(r *refV, t ir.Type) *ir.Value { return l.read(r) }

// read gives the present value of what r refers to.
func (l *lowering) read(r *refV) *ir.Value {
	l.checkHolds(r.cell)
	if r.cached != nil && r.stamp == l.stampOf(r.cell) {
		return r.cached
	}
	l.sync(r.cell)
	v := l.asIR(r.cell, l.state(r.cell).content)
	for _, s := range r.path {
		v = s.read(l, v)
	}
	return v
}

// asIR gives a content as an IR value.
func (l *lowering) asIR(c *cell, k content) *ir.Value {
	switch k := k.(type) {
	case *ir.Value:
		return k
	case *staticList:
		elems := make([]*ir.Value, len(k.elems))
		for i, e := range k.elems {
			elems[i] = l.irOf(e)
		}
		return l.list(elems, l.elemType(c))
	case *pieces:
		return l.piecesList(k)
	}
	panic(fmt.Sprintf("BUG: content %T", k))
}

// list emits a list; the element type is stated because an empty list does not tell it.
func (l *lowering) list(elems []*ir.Value, elem ir.Type) *ir.Value {
	var v *ir.Value
	l.try(func() {
		v = l.b.Node(ir.OpList, ir.Attrs{}, nil, []ir.Type{ir.ListOf(elem)}, elems...).Results[0]
	})
	return v
}

func (l *lowering) piecesList(p *pieces) *ir.Value {
	if l.stampOf(p.base.cell) == p.at {
		return p.list
	}
	return l.aten(p.fn, []ir.Type{ir.ListOf(ir.AnyTensor)}, append([]*ir.Value{l.read(p.base)}, p.args...)...)[0]
}

// elemType is the element type of a list cell.
func (l *lowering) elemType(c *cell) ir.Type {
	t := unwrapped(l.state(c).t)
	if t.Kind == ir.KList {
		return t.Elems[0]
	}
	return ir.Any
}

// setElemType makes the type of an empty list or dict literal known.
func (l *lowering) setElemType(c *cell, t ir.Type) {
	s := l.copyState(c)
	if u := unwrapped(s.t); u.Kind == t.Kind && u.Elems[0].Kind == ir.KAny && t.Elems[0].Kind != ir.KAny {
		s.t = t
		l.cells[c] = s
	}
}

// checkHolds refuses to use a list or dict whose elements share memory with something that has been written since.
func (l *lowering) checkHolds(c *cell) {
	if len(l.state(c).holds) == 0 || l.refresh(c) {
		return
	}
	for _, h := range l.state(c).holds {
		if !h.inside(c) && l.holdStamp(h) != h.stamp {
			l.failShared(l.pos, "an element of this %s shares memory with a tensor that was modified in place after it was stored; store a copy instead: write .clone() where it is added",
				map[bool]string{true: "list", false: "dict"}[unwrapped(c.t).Kind == ir.KList])
		}
	}
}

// holdsOf lists the references inside a value, which a container that copies it holds.
func (l *lowering) holdsOf(v value, out []hold) []hold {
	switch v := v.(type) {
	case *refV:
		if s, ok := l.state(v.cell).content.(*staticList); ok && len(v.path) == 0 {
			for _, e := range s.elems {
				out = l.holdsOf(e, out)
			}
		}
		out = append(out, l.holdOn(v))
	case *tupleV:
		for _, e := range v.elems {
			out = l.holdsOf(e, out)
		}
	}
	return out
}

// holdStamp is the stamp that tells whether what a container holds is up to date.
func (l *lowering) holdStamp(h hold) int {
	l.sync(h.ref.cell)
	return l.holdStampNow(h)
}

// holdStampNow is holdStamp without looking at mirrors, which may emit code.
func (l *lowering) holdStampNow(h hold) int {
	if h.elems {
		return l.state(h.ref.cell).inner
	}
	return l.state(h.ref.cell).stamp
}

func (l *lowering) holdOn(r *refV) hold { return l.upToDate(hold{ref: r}) }

// upToDate is the hold with the present stamp.
func (l *lowering) upToDate(h hold) hold {
	h.stamp = l.holdStamp(h)
	return h
}

// derivedHolds lists what the elements of a list made from r share memory with: that of r's elements.
func (l *lowering) derivedHolds(r *refV) []hold {
	out := l.elementHolds(r, nil)
	for i := range out {
		out[i].keyed = false
	}
	return l.addElements(out, r)
}

// addElements adds that the elements of r are shared.
func (l *lowering) addElements(out []hold, r *refV) []hold {
	t := unwrapped(r.t)
	if _, static := l.state(r.cell).content.(*staticList); static || len(t.Elems) == 0 || !mutable(t.Elems[len(t.Elems)-1]) {
		return out
	}
	return append(out, l.upToDate(hold{ref: r, elems: len(r.path) == 0}))
}

// checkPoison refuses a write whose effect cannot be tracked; where carrying views may help, that is tried first.
func (l *lowering) checkPoison(c *cell) {
	if c.poison == "" {
		return
	}
	if !l.mirror.views && !l.mirror.final {
		l.mirror.used[needViews] = true
		return
	}
	l.failShared(l.pos, "%s", c.poison)
}

// write replaces what r refers to by v, of the same shape and dtype.
func (l *lowering) write(r *refV, v *ir.Value) {
	l.checkPoison(r.cell)
	l.sync(r.cell)
	if len(r.path) > 0 && unwrapped(r.cell.t).Kind != ir.KTensor {
		if shared := l.writeInner(r); shared != nil {
			l.write(&refV{t: r.t, cell: shared.cell, path: append(append([]*step{}, shared.path...), r.path[1:]...)}, v)
			l.checkHolds(r.cell)
			return
		}
	}
	base := l.asIR(r.cell, l.state(r.cell).content)
	l.writeCell(r.cell, l.putBack(base, r.path, v))
}

// writeInner is told of a write into an element of a list or dict. It gives the reference that the element was copied from, where
// that is known; otherwise what shares the element's memory cannot follow.
func (l *lowering) writeInner(r *refV) *refV {
	l.checkHolds(r.cell)
	for _, h := range l.state(r.cell).holds {
		if unwrapped(h.ref.t).Kind == ir.KTensor && unwrapped(r.t).Kind != ir.KTensor {
			continue // what changes is the list or dict inside, not the tensors in it
		}
		same, other := false, false
		if name := r.path[0].name; name == "key" || name == "item" {
			same, other = h.is(r.path[0].args[0])
			if h.inside(r.cell) {
				same, other = false, other && h.ref.path[0].name == name && surelyOther(h.ref.path[0].args[0], r.path[0].args[0])
			}
		}
		switch {
		case other || !h.inside(r.cell) && !l.seenBy(h.ref.cell, r.cell):
			continue
		case same && !h.elems:
			return h.ref
		default:
			l.failShared(l.pos, "an element of this list or dict shares memory with a tensor that is used elsewhere, so the effect of this write cannot be tracked; store a copy instead: write .clone() where it is added")
		}
	}
	s := l.copyState(r.cell)
	s.inner = l.nextStamp()
	l.cells[r.cell] = s
	return nil
}

// surelyOther reports whether two indices or keys surely differ.
func surelyOther(a, b *ir.Value) bool {
	d, ok := a.Const()
	if i, isInt := d.(int64); !ok || isInt && i < 0 {
		return false
	}
	_, other := hold{keyed: true, key: d}.is(b)
	return other
}

// seenBy reports whether anything but the container refers to c.
func (l *lowering) seenBy(c, container *cell) bool {
	seen := map[*cell]bool{container: true}
	for f := l.frame; f != nil; f = f.parent {
		for _, v := range f.vars {
			if l.refersTo(v, c, seen) {
				return true
			}
		}
	}
	return false
}

// writeCell gives a cell a new content, and its mirrors where their guards hold.
func (l *lowering) writeCell(c *cell, k content) {
	l.checkPoison(c)
	l.sync(c)
	s := l.copyState(c)
	s.content, s.stamp = k, l.nextStamp()
	if _, static := k.(*staticList); static {
		s.holds = nil
	}
	l.cells[c] = s
	for i, m := range c.mirrors {
		l.mirror.used[m.key] = true
		l.writeGuarded(m, l.asIR(c, k))
		s = l.copyState(c)
		s.seen[i] = l.stampOf(m.ref.cell)
		l.cells[c] = s
	}
}

// writeGuarded writes v to a mirror's memory where its guard holds.
func (l *lowering) writeGuarded(m *mirror, v *ir.Value) {
	target := m.ref.cell
	l.checkPoison(target)
	l.sync(target)
	old := l.asIR(target, l.state(target).content)
	next := l.choose(m.guard, func() content { return l.putBack(old, m.ref.path, v) }, func() content { return old }, l.state(target).t)
	l.writeCell(target, next)
}

// putBack gives base with the part that path leads to replaced by v.
func (l *lowering) putBack(base *ir.Value, path []*step, v *ir.Value) *ir.Value {
	if len(path) == 0 {
		return v
	}
	for i, s := range path {
		if s.put == nil {
			return l.putByIndex(base, path, i, v)
		}
	}
	at := make([]*ir.Value, len(path))
	cur := base
	for i, s := range path {
		at[i] = cur
		if i+1 < len(path) {
			cur = s.read(l, cur)
		}
	}
	for i := len(path) - 1; i >= 0; i-- {
		v = path[i].put(l, at[i], v)
	}
	return v
}

// putByIndex writes through a path with a view that has no inverse of its own, such as expand: an array of the base's element
// numbers goes through the same views and tells where each element of v belongs. Steps before the first such view are inverted.
func (l *lowering) putByIndex(base *ir.Value, path []*step, first int, v *ir.Value) *ir.Value {
	at := make([]*ir.Value, first)
	cur := base
	for i := range first {
		at[i] = cur
		cur = path[i].read(l, cur)
	}
	numbers := l.aten("write_index", []ir.Type{ir.AnyTensor}, cur)[0]
	for _, s := range path[first:] {
		numbers = s.read(l, numbers)
	}
	v = l.aten("write_at", []ir.Type{ir.AnyTensor}, cur, numbers, v, l.constant(!isFill(v)))[0]
	for i := first - 1; i >= 0; i-- {
		v = path[i].put(l, at[i], v)
	}
	return v
}

// isFill reports whether v repeats one number: PyTorch fills even tensors whose elements share memory.
func isFill(v *ir.Value) bool {
	if v.Def == nil || v.Def.Op != ir.OpAten {
		return false
	}
	switch v.Def.Attrs.Callee {
	case "fill.Scalar", "fill.Tensor", "zero":
		return true
	case "write_result":
		return isFill(v.Def.Args[1])
	}
	return false
}

// addMirror says that c is the same memory as ref where guard holds. The guard is asked for only if the mirror is needed.
func (l *lowering) addMirror(c *cell, key string, ref *refV, guard func() *ir.Value) {
	if ref.cell == c {
		return
	}
	if l.mirror.final && !l.mirror.used[key] {
		return
	}
	c.mirrors = append(c.mirrors, &mirror{key: key, guard: guard(), ref: ref, start: l.stampOf(ref.cell)})
	if s, ok := l.cells[c]; ok {
		s.seen = append(s.seen, l.stampOf(ref.cell))
		l.cells[c] = s
	}
}

// snapshot copies the state for a branch.
func (l *lowering) snapshot() map[*cell]cellState {
	m := make(map[*cell]cellState, len(l.cells))
	for k, v := range l.cells {
		m[k] = v
	}
	return m
}

// aten emits a call of an aten function with result types; operands are complete and in order.
func (l *lowering) aten(name string, results []ir.Type, args ...*ir.Value) []*ir.Value {
	var out []*ir.Value
	l.try(func() { out = l.b.Aten(name, results, args...) })
	return out
}

func (l *lowering) aten1(name string, args ...*ir.Value) *ir.Value {
	return l.aten(name, []ir.Type{ir.AnyTensor}, args...)[0]
}
