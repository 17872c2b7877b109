package script

import (
	"fmt"
	"sort"
	"strings"

	"github.com/gtc-project/gtc/ir"
)

// side is the state at the end of one branch of an if.
type side struct {
	vars  map[string]value
	cells map[*cell]cellState
	blk   *ir.Block
}

// joiner merges the states of two branches into the state after them: what differs becomes a result of the if node.
type joiner struct {
	l      *lowering
	n      *ir.Node
	cond   *ir.Value
	sides  [2]side
	yields [2][]*ir.Value
	serial int // cells up to this were there before the branches
	ids    int // values up to this were there before the branches
	key    string
	phis   map[[2]*ir.Value]*ir.Value
	pairs  map[[2]*cell]*cell
	home   [2]map[*cell]*cell   // the cell that stands for a branch's new cell afterwards
	parts  [2]map[*cell][]*cell // cells that stand for a part of a branch's new cell
	not    *ir.Value
	count  int
	lost   []lostHold
	exited [2]bool // sides from which control does not go on
}

// branch lowers both branches of an if and joins their states. keep says which variables matter afterwards; nil means all.
func (l *lowering) branch(cond *ir.Value, keep func(string) bool, then, els func()) {
	l.branchExits(cond, keep, nil, then, els)
}

// branchExits is branch where exited, once the branches are lowered, says which of them do not go on: what they leave undefined is
// not missed.
func (l *lowering) branchExits(cond *ir.Value, keep func(string) bool, exited *[2]bool, then, els func()) {
	p := l.pos
	*l.limit -= len(l.frame.vars) + len(l.cells)/8
	j := &joiner{l: l, cond: cond, serial: l.serial, ids: l.f.NumValues(), key: fmt.Sprintf("%s/if%d:%d", l.frame.key, p.Line, p.Col),
		phis: map[[2]*ir.Value]*ir.Value{}, pairs: map[[2]*cell]*cell{}}
	vars, cells, gone := l.frame.vars, l.cells, l.frame.gone
	noGrad, leaves := l.noGrad, l.leaves
	for i, f := range []func(){then, els} {
		j.home[i], j.parts[i] = map[*cell]*cell{}, map[*cell][]*cell{}
		s := &j.sides[i]
		s.blk = &ir.Block{}
		l.frame.vars, l.cells = copyVars(vars), l.snapshotOf(cells)
		l.in(s.blk, f)
		s.vars, s.cells = l.frame.vars, l.cells
		l.noGrad, l.leaves = noGrad, leaves
	}
	l.frame.vars, l.cells, l.frame.gone = copyVars(vars), l.snapshotOf(cells), gone
	l.at(p)
	l.try(func() {
		j.n = l.b.Node(ir.OpIf, ir.Attrs{}, []*ir.Block{j.sides[0].blk, j.sides[1].blk}, nil, cond)
	})
	if exited != nil {
		j.exited = *exited
	}
	j.vars(keep)
	j.cells()
	j.poisonShared()
	j.restoreHolds()
	for i := range j.sides {
		j.inSide(i, func() { l.try(func() { l.b.Yield(j.yields[i]...) }) })
	}
}

func copyVars(m map[string]value) map[string]value {
	out := make(map[string]value, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func (l *lowering) snapshotOf(m map[*cell]cellState) map[*cell]cellState {
	old := l.cells
	l.cells = m
	s := l.snapshot()
	l.cells = old
	return s
}

// inSide runs f with the state and at the end of a branch.
func (j *joiner) inSide(i int, f func()) {
	l := j.l
	vars, cells := l.frame.vars, l.cells
	l.frame.vars, l.cells = j.sides[i].vars, j.sides[i].cells
	l.in(j.sides[i].blk, f)
	l.frame.vars, l.cells = vars, cells
}

// phi is a result of the if node: a after the first branch, b after the second.
func (j *joiner) phi(a, b *ir.Value, t ir.Type) *ir.Value {
	if a == b {
		return a
	}
	if v := j.phis[[2]*ir.Value{a, b}]; v != nil {
		return v
	}
	v := j.l.addResult(j.n, t)
	j.yields[0], j.yields[1] = append(j.yields[0], a), append(j.yields[1], b)
	j.phis[[2]*ir.Value{a, b}] = v
	return v
}

// vars joins the variables.
func (j *joiner) vars(keep func(string) bool) {
	l := j.l
	names := map[string]bool{}
	for i := range j.sides {
		for name := range j.sides[i].vars {
			names[name] = true
		}
	}
	for _, name := range sortedNames(names) {
		a, okA := j.sides[0].vars[name]
		b, okB := j.sides[1].vars[name]
		switch {
		case keep != nil && !keep(name) && !strings.HasPrefix(name, "$"):
			delete(l.frame.vars, name)
			continue
		case okA && okB:
		case strings.HasPrefix(name, "$"), j.exited[0] && okB, j.exited[1] && okA:
			if !okA {
				j.inSide(0, func() { a = l.dummyLike(b) })
			} else {
				j.inSide(1, func() { b = l.dummyLike(a) })
			}
		default:
			delete(l.frame.vars, name)
			l.frame.gone[name] = "it is defined only in one branch of the if at line " + fmt.Sprint(l.pos.Line)
			continue
		}
		if m, isModule := a.(*module); isModule && b != value(m) {
			delete(l.frame.vars, name)
			l.frame.gone[name] = "it is a different module in each branch of the if at line " + fmt.Sprint(l.pos.Line)
			continue
		}
		pre, had := l.frame.vars[name]
		if _, t, ok := isUnionValue(pre); ok {
			j.inSide(0, func() { a = l.retype(a, t) })
			j.inSide(1, func() { b = l.retype(b, t) })
		}
		if !had && !strings.HasPrefix(name, "$") && !unifiable(a, b) {
			l.frame.gone[name] = fmt.Sprintf("it has type %s in one branch of the if at line %d and type %s in the other: Type mismatch", describe(a), l.pos.Line, describe(b))
			continue
		}
		l.frame.vars[name] = j.value(a, b, name)
	}
}

// unifiable reports whether two run-time values may be those of one variable.
func unifiable(a, b value) bool {
	t, okT := typeOf(a)
	u, okU := typeOf(b)
	if !okT || !okU {
		return true
	}
	_, ok := unify(t, u)
	return ok
}

func sortedNames(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func (j *joiner) mismatch(name string, a, b value) {
	what := "variable '" + short(name) + "'"
	switch {
	case name == "$ret":
		j.l.fail(j.l.pos, "Type mismatch: return statements return values of different types: %s and %s", describe(a), describe(b))
	case strings.HasPrefix(name, "$"):
		what = "expression"
	}
	j.l.fail(j.l.pos, "Type mismatch: %s is set to type %s in the true branch and type %s in the false branch", what, describe(a), describe(b))
}

// value joins one value.
func (j *joiner) value(a, b value, name string) value {
	if a == b {
		return a
	}
	switch x := a.(type) {
	case *scalarV:
		switch y := b.(type) {
		case *scalarV:
			return j.scalars(x, y, name)
		case *refV:
			if x.t.Kind == ir.KNone {
				return j.optionalRef(1, y)
			}
		case *tupleV:
			return j.optionalTuple(a, b, name)
		}
	case *refV:
		switch y := b.(type) {
		case *refV:
			return j.refs(x, y, name)
		case *scalarV:
			if y.t.Kind == ir.KNone {
				return j.optionalRef(0, x)
			}
		}
	case *tupleV:
		switch y := b.(type) {
		case *tupleV:
			if len(x.elems) != len(y.elems) {
				j.mismatch(name, a, b)
			}
			if x.n > maxLeaves {
				j.l.fail(j.l.pos, "the tuple is too large: it has more than %d elements when taken apart", maxLeaves)
			}
			out := make([]value, len(x.elems))
			for i := range out {
				out[i] = j.value(x.elems[i], y.elems[i], name)
			}
			t := j.l.tuple(out)
			t.names = x.names
			return t
		case *scalarV:
			return j.optionalTuple(a, b, name)
		}
	case *funcV:
		if y, ok := b.(*funcV); ok && *x == *y {
			return a
		}
	case *rangeV:
		if _, ok := b.(*rangeV); ok {
			var p, q value
			j.inSide(0, func() { p = j.l.fresh(j.l.irOf(a), ir.IntList) })
			j.inSide(1, func() { q = j.l.fresh(j.l.irOf(b), ir.IntList) })
			return j.value(p, q, name)
		}
	}
	j.mismatch(name, a, b)
	return nil
}

func (j *joiner) scalars(a, b *scalarV, name string) value {
	t, ok := unify(a.t, b.t)
	if !ok {
		j.mismatch(name, a, b)
	}
	if t.Kind == ir.KNone {
		return j.l.none()
	}
	return &scalarV{t, j.phi(a.v, b.v, t)}
}

// optionalRef joins None with a reference on side i.
func (j *joiner) optionalRef(i int, r *refV) value {
	t := optional(r.t)
	var v [2]*ir.Value
	j.inSide(i, func() { v[i] = j.l.read(r) })
	j.inSide(1-i, func() { v[1-i] = j.l.constant(nil) })
	out := j.l.fresh(j.phi(v[0], v[1], t), t)
	j.link(out.cell, r, i)
	return out
}

func (j *joiner) optionalTuple(a, b value, name string) value {
	ta, _ := typeOf(a)
	tb, _ := typeOf(b)
	t, ok := unify(ta, tb)
	if !ok {
		j.mismatch(name, a, b)
	}
	var v [2]*ir.Value
	j.inSide(0, func() { v[0] = j.l.irOf(a) })
	j.inSide(1, func() { v[1] = j.l.irOf(b) })
	return &scalarV{t, j.phi(v[0], v[1], t)}
}

// refs joins two references.
func (j *joiner) refs(a, b *refV, name string) value {
	l := j.l
	t, ok := unify(a.t, b.t)
	if !ok {
		j.mismatch(name, a, b)
	}
	if a.cell == b.cell && identical(a.path, b.path) {
		r := &refV{t: t, cell: a.cell, path: a.path}
		if a.contiguous == b.contiguous {
			r.contiguous = a.contiguous
		}
		return r
	}
	if l.mirror.views && a.cell == b.cell && a.cell.serial <= j.serial {
		if path, ok := j.mergePaths(a.path, b.path); ok {
			return &refV{t: t, cell: a.cell, path: path, contiguous: no}
		}
	}
	whole := len(a.path) == 0 && len(b.path) == 0
	pair := [2]*cell{a.cell, b.cell}
	if c := j.pairs[pair]; whole && c != nil {
		return &refV{t: t, cell: c}
	}
	c := l.newCell(t, nil)
	if whole {
		j.pairs[pair] = c
	}
	c.content = j.content(a, b, c, t, name)
	out := &refV{t: t, cell: c}
	if a.contiguous == b.contiguous {
		out.contiguous = a.contiguous
	}
	j.link(c, a, 0)
	j.link(c, b, 1)
	return out
}

// mergePaths joins two paths of the same views, which differ only in numbers.
func (j *joiner) mergePaths(a, b []*step) ([]*step, bool) {
	if !alike(a, b) {
		return nil, false
	}
	out := make([]*step, len(a))
	for i := range a {
		args := make([]*ir.Value, len(a[i].args))
		for k := range args {
			x, y := a[i].args[k], b[i].args[k]
			dx, okX := x.Const()
			dy, okY := y.Const()
			switch {
			case okX && okY && ir.DatumEqual(dx, dy):
				args[k] = j.l.constant(dx)
			default:
				args[k] = j.phi(x, y, x.Type)
			}
		}
		out[i] = a[i].build(args)
	}
	return out, true
}

// alike reports whether two paths are the same views up to numbers.
func alike(a, b []*step) bool {
	if len(a) != len(b) || len(a) == 0 {
		return false
	}
	for i := range a {
		if a[i].name != b[i].name || len(a[i].args) != len(b[i].args) || a[i].build == nil || b[i].build == nil {
			return false
		}
		for k, x := range a[i].args {
			y := b[i].args[k]
			if x == y || x.Type.Kind == ir.KInt && y.Type.Kind == ir.KInt {
				continue
			}
			dx, okX := x.Const()
			dy, okY := y.Const()
			if !okX || !okY || !ir.DatumEqual(dx, dy) {
				return false
			}
		}
	}
	return true
}

func identical(a, b []*step) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// content joins what two references denote into the content of a new cell.
func (j *joiner) content(a, b *refV, c *cell, t ir.Type, name string) content {
	l := j.l
	if len(a.path) == 0 && len(b.path) == 0 {
		x, okX := j.sideState(0, a.cell).content.(*staticList)
		y, okY := j.sideState(1, b.cell).content.(*staticList)
		if okX && okY && len(x.elems) == len(y.elems) && len(x.elems) > 0 {
			return j.lists(x, y, name)
		}
	}
	var v [2]*ir.Value
	var holds []hold
	for i, r := range []*refV{a, b} {
		j.inSide(i, func() {
			v[i] = l.read(r)
			for _, h := range l.elementHolds(r, nil) {
				holds = append(holds, h.movedInside(r.cell, c))
			}
		})
	}
	j.keepHolds(c, holds)
	return j.phi(v[0], v[1], t)
}

func (j *joiner) lists(x, y *staticList, name string) *staticList {
	out := &staticList{elems: make([]value, len(x.elems))}
	for i := range out.elems {
		out.elems[i] = j.value(x.elems[i], y.elems[i], name)
	}
	return out
}

func (j *joiner) sideState(i int, c *cell) cellState {
	cells := j.l.cells
	j.l.cells = j.sides[i].cells
	s := j.l.state(c)
	j.l.cells = cells
	return s
}

// elementHolds lists what the elements of a list or dict share memory with.
func (l *lowering) elementHolds(r *refV, out []hold) []hold {
	if unwrapped(r.t).Kind == ir.KTensor {
		return out
	}
	s := l.state(r.cell)
	out = append(out, s.holds...)
	if k, ok := s.content.(*staticList); ok {
		for i, e := range k.elems {
			n := len(out)
			out = l.holdsOf(e, out)
			if _, isRef := e.(*refV); isRef && len(out) == n+1 {
				out[n].keyed, out[n].key = true, int64(i)
			}
		}
	}
	return out
}

// movedInside is the hold of a container's own element for a cell that stands for the container.
func (h hold) movedInside(from, to *cell) hold {
	if h.inside(from) {
		h.ref = &refV{t: h.ref.t, cell: to, path: outside(h.ref).path}
	}
	return h
}

// keepHolds gives a joined cell the holds that still mean something after the branches.
func (j *joiner) keepHolds(c *cell, holds []hold) {
	times := map[*refV]int{}
	for _, h := range holds {
		times[h.ref]++
	}
	var kept []hold
	for _, h := range holds {
		if h.inside(c) {
			kept = append(kept, h)
			continue
		}
		if h.ref.cell.serial > j.serial {
			j.lost = append(j.lost, lostHold{c, h})
			continue
		}
		if times[h.ref] < 2 || h.at != nil && h.at.ID >= j.ids { // on one side only
			h.ref, h.keyed = outside(h.ref), false
		}
		kept = append(kept, h)
	}
	if len(kept) > 0 {
		s := j.l.copyState(c)
		s.holds = kept
		j.l.cells[c] = s
	}
}

// lostHold is what a container held of memory made in a branch.
type lostHold struct {
	c *cell
	h hold
}

// restoreHolds makes containers hold what stands for such memory afterwards.
func (j *joiner) restoreHolds() {
	l := j.l
	for _, lost := range j.lost {
		for i := range j.home {
			stands := append([]*cell{}, j.parts[i][lost.h.ref.cell]...)
			if h := j.home[i][lost.h.ref.cell]; h != nil {
				stands = append(stands, h)
			}
			for _, s := range stands {
				if s != lost.c {
					l.addHolds(lost.c, []hold{l.upToDate(hold{ref: &refV{t: s.t, cell: s}, elems: lost.h.elems, loose: true})})
				}
			}
		}
	}
}

// settle brings a container up to date with memory made after serial, which nothing can follow once its branch or iteration is over.
func (l *lowering) settle(c *cell, serial int) {
	for _, h := range l.state(c).holds {
		if h.ref.cell.serial > serial && !h.inside(c) && l.holdStamp(h) != h.stamp {
			l.checkHolds(c)
			return
		}
	}
}

// link makes the joined cell c a mirror of what r, its value after side i, refers to.
func (j *joiner) link(c *cell, r *refV, i int) {
	l := j.l
	aliases := l.aliases(r, j.serial)
	for _, a := range aliases {
		j.count++
		key := fmt.Sprintf("%s#%d", j.key, j.count)
		if l.mirror.final && !l.mirror.used[key] {
			continue
		}
		l.addMirror(c, key, j.export(a.ref, i), func() *ir.Value { return j.guard(i, a.guards) })
	}
	if r.cell.serial <= j.serial {
		return
	}
	if h := j.home[i][r.cell]; h != nil {
		j.count++
		key := fmt.Sprintf("%s#%d", j.key, j.count)
		if l.mirror.final && !l.mirror.used[key] {
			return
		}
		l.addMirror(c, key, &refV{t: r.t, cell: h, path: j.exportPath(r.path, i)}, func() *ir.Value { return j.guard(i, nil) })
		return
	}
	if len(r.path) == 0 {
		j.home[i][r.cell] = c
		return
	}
	j.parts[i][r.cell] = append(j.parts[i][r.cell], c)
}

// poisonShared finds joined cells that are parts of one new cell without anything that stands for the whole.
func (j *joiner) poisonShared() {
	for i := range j.parts {
		for whole, cs := range j.parts[i] {
			if len(cs) < 2 && j.home[i][whole] == nil {
				continue
			}
			for _, c := range cs {
				c.poison = "this tensor may share memory with another one, depending on the branch taken: write to a copy made with .clone()"
			}
		}
	}
}

// alias is a place before some point that a reference may be the same memory as, and the guards under which it is.
type alias struct {
	ref    *refV
	guards []*ir.Value
}

// aliases follows mirrors of cells made after serial back to cells before it.
func (l *lowering) aliases(r *refV, serial int) []alias {
	if r.cell.serial <= serial {
		return []alias{{ref: r}}
	}
	var out []alias
	for _, m := range r.cell.mirrors {
		through := &refV{t: r.t, cell: m.ref.cell, path: append(append([]*step{}, m.ref.path...), r.path...)}
		for _, a := range l.aliases(through, serial) {
			out = append(out, alias{a.ref, append([]*ir.Value{m.guard}, a.guards...)})
		}
	}
	return out
}

// guard is true after the if where side i was taken and there all of guards held.
func (j *joiner) guard(i int, guards []*ir.Value) *ir.Value {
	l := j.l
	if len(guards) == 0 {
		if i == 0 {
			return j.cond
		}
		if j.not == nil {
			j.not = l.op("py_not", j.cond)
		}
		return j.not
	}
	var v [2]*ir.Value
	j.inSide(i, func() { v[i] = l.allOf(guards) })
	j.inSide(1-i, func() { v[1-i] = l.constant(false) })
	return j.phi(v[0], v[1], ir.BoolT)
}

func (l *lowering) allOf(guards []*ir.Value) *ir.Value {
	g := guards[0]
	for _, h := range guards[1:] {
		g = l.op("py_select", g, h, l.constant(false))
	}
	return g
}

// export makes a reference of side i usable after the if.
func (j *joiner) export(r *refV, i int) *refV {
	return &refV{t: r.t, cell: r.cell, path: j.exportPath(r.path, i)}
}

func (j *joiner) exportPath(path []*step, i int) []*step {
	out := make([]*step, len(path))
	for k, s := range path {
		out[k] = s
		inner := false
		args := make([]*ir.Value, len(s.args))
		for n, a := range s.args {
			args[n] = a
			if a.ID >= j.ids {
				inner = true
				args[n] = j.exportArg(a, i)
			}
		}
		if inner {
			out[k] = s.build(args)
		}
	}
	return out
}

func (j *joiner) exportArg(a *ir.Value, i int) *ir.Value {
	l := j.l
	if d, ok := a.Const(); ok {
		return l.constant(d)
	}
	var v [2]*ir.Value
	v[i] = a
	j.inSide(1-i, func() { v[1-i] = l.irOf(l.dummy(a.Type)) })
	return j.phi(v[0], v[1], a.Type)
}

// cells joins the memory that was there before the branches and was written in one.
func (j *joiner) cells() {
	l := j.l
	for _, c := range changedCells(j.sides[0].cells, j.sides[1].cells, j.serial) {
		a, b := j.sideState(0, c), j.sideState(1, c)
		if a.stamp == b.stamp && a.t.Equal(b.t) {
			if a.content != nil {
				l.cells[c] = a
			}
			continue
		}
		s := cellState{stamp: l.nextStamp(), t: a.t}
		if t, ok := unify(a.t, b.t); ok {
			s.t = t
		}
		for range c.mirrors {
			s.seen = append(s.seen, -1)
		}
		x, okX := a.content.(*staticList)
		y, okY := b.content.(*staticList)
		if okX && okY && len(x.elems) == len(y.elems) {
			s.content = j.lists(x, y, "$element")
			l.cells[c] = s
			continue
		}
		var v [2]*ir.Value
		var holds []hold
		whole := &refV{t: c.t, cell: c}
		for i := range v {
			j.inSide(i, func() {
				l.settle(c, j.serial)
				v[i] = l.asIR(c, l.state(c).content)
				holds = l.elementHolds(whole, holds)
			})
		}
		s.content = j.phi(v[0], v[1], s.t)
		l.cells[c] = s
		j.keepHolds(c, holds)
	}
}

// changedCells lists the cells made up to serial that are in a or b, oldest first.
func changedCells(a, b map[*cell]cellState, serial int) []*cell {
	var out []*cell
	for c := range a {
		if c.serial <= serial {
			out = append(out, c)
		}
	}
	for c := range b {
		if _, both := a[c]; !both && c.serial <= serial {
			out = append(out, c)
		}
	}
	sort.Slice(out, func(i, k int) bool { return out[i].serial < out[k].serial })
	return out
}

// dummy is a value of a type for a variable on a path where it is never read.
func (l *lowering) dummy(t ir.Type) value {
	switch t.Kind {
	case ir.KInt, ir.KAny:
		return l.scalar(int64(0))
	case ir.KFloat:
		return l.scalar(0.0)
	case ir.KBool:
		return l.scalar(false)
	case ir.KString:
		return l.scalar("")
	case ir.KDType:
		return l.valueOf(l.op("dtype_of", l.dummyTensor()), t)
	case ir.KTensor:
		return l.fresh(l.dummyTensor(), t)
	case ir.KList:
		return l.fresh(l.list(nil, t.Elems[0]), t)
	case ir.KDict:
		return l.fresh(l.emptyDict(t), t)
	case ir.KTuple:
		elems := make([]value, len(t.Elems))
		for i, e := range t.Elems {
			elems[i] = l.dummy(e)
		}
		return l.tuple(elems)
	case ir.KOptional:
		return l.retype(l.none(), t)
	}
	return l.none()
}

func (l *lowering) dummyLike(v value) value {
	t, ok := typeOf(v)
	if !ok {
		return v
	}
	return l.dummy(t)
}

func (l *lowering) dummyTensor() *ir.Value {
	return l.callAten("zeros", []value{l.freshList(ir.IntList, nil)}, nil)
}

func (l *lowering) emptyDict(t ir.Type) *ir.Value {
	var v *ir.Value
	l.try(func() { v = l.b.Node(ir.LookupOp("dict"), ir.Attrs{}, nil, []ir.Type{t}).Results[0] })
	return v
}
