package script

import (
	"fmt"
	"strings"

	"github.com/gtc-project/gtc/ir"
)

// loopPlan is what has been found out about a loop by lowering its body: lowering is repeated until nothing new is found. It is
// kept for later attempts at enclosing loops and for the second pass.
type loopPlan struct {
	sites  map[string]bool     // where memory comes from that the body writes to
	types  map[string]ir.Type  // of carried variables, where wider than before the loop
	dummy  map[string]ir.Type  // variables that only the body defines but that are needed after it
	stable map[string]bool     // variables that always refer to the same memory
	poison map[string]string   // carried variables whose sharing cannot be tracked
	extra  map[string][]string // per carried variable: keys of further places it may refer to
	noView map[string]bool     // variables that are not carried by the numbers of a view
	held   map[string][]string // per container: the carried variables that it may hold at the start of an iteration
}

// loopSpec is a loop to lower.
type loopSpec struct {
	pos      Pos
	assigned map[string]bool   // variables that the body assigns
	trip     *ir.Value         // for a loop that runs a known number of times; nil otherwise
	enter    *ir.Value         // else: whether to run the first time
	body     func(i *ir.Value) // i is the iteration number of a counted loop
	again    func() *ir.Value  // else: whether to run once more, evaluated after the body
	plan     *loopPlan
}

// slot is one value that the loop carries.
type slot struct {
	init, param, end *ir.Value
	t                ir.Type
}

// carriedRef is a reference that the loop carries as a cell of its own.
type carriedRef struct {
	name    string
	pre     *refV
	inner   *cell
	slot    *slot
	targets []*loopTarget
}

// loopTarget is a place from before the loop that a carried reference may be the same memory as.
type loopTarget struct {
	key   string
	ref   *refV
	guard *slot
}

// looper is one attempt at a loop.
type looper struct {
	l      *lowering
	spec   *loopSpec
	plan   *loopPlan
	key    string
	slots  []*slot
	refs   []*carriedRef
	byCell map[*cell]*carriedRef
	views  map[*refV]*carriedView
	serial int
	ids    int
	params []*[]*ir.Value
	again  bool // something new was found: try once more
	blocks []*ir.Block
	values map[string]value // carried variables at the start of the body
	memory []*cell          // cells carried
	mslots map[*cell]*slot
	stamps map[*cell]int
	extra  map[*cell]bool
	kept   map[string][]hold // per container: memory from before the loop that it may hold at the start of an iteration
	atEnd  map[string]*refV
}

const maxAttempts = 24

func (l *lowering) planFor(p Pos) (*loopPlan, string) {
	key := fmt.Sprintf("%s/loop%d:%d", l.frame.key, p.Line, p.Col)
	plan := l.loops[key]
	if plan == nil {
		plan = &loopPlan{sites: map[string]bool{}, types: map[string]ir.Type{}, dummy: map[string]ir.Type{}, stable: map[string]bool{},
			poison: map[string]string{}, extra: map[string][]string{}, held: map[string][]string{}, noView: map[string]bool{}}
		l.loops[key] = plan
	}
	return plan, key
}

// loop lowers a loop. Its body is lowered, the values that it changes become carried ones, and so on until that is enough.
func (l *lowering) loop(spec *loopSpec) {
	plan, key := l.planFor(spec.pos)
	for name, t := range plan.dummy {
		if l.frame.vars[name] == nil {
			l.frame.vars[name] = l.dummy(t)
		}
	}
	extra, kept := map[*cell]bool{}, map[string][]hold{}
	for attempt := 0; ; attempt++ {
		if attempt > maxAttempts {
			l.failShared(spec.pos, "what this loop's variables refer to cannot be worked out; make copies with .clone()")
		}
		lp := &looper{l: l, spec: spec, plan: plan, key: key, extra: extra, kept: kept, byCell: map[*cell]*carriedRef{}, views: map[*refV]*carriedView{}, values: map[string]value{},
			mslots: map[*cell]*slot{}, stamps: map[*cell]int{}, atEnd: map[string]*refV{}}
		if lp.attempt() {
			return
		}
		for name, t := range plan.dummy {
			if l.frame.vars[name] == nil {
				l.frame.vars[name] = l.dummy(t)
			}
		}
	}
}

// attempt lowers the loop once and reports whether that was final.
func (lp *looper) attempt() bool {
	l := lp.l
	vars, cells, noGrad, gone, leaves := l.frame.vars, l.cells, l.noGrad, l.frame.gone, l.leaves
	l.frame.vars, l.cells, l.frame.gone = copyVars(vars), l.snapshot(), copyGone(gone)
	outer := l.b.Block
	nodes := len(outer.Nodes)
	lp.serial, lp.ids = l.serial, l.f.NumValues()
	lp.blocks = []*ir.Block{{}}
	if lp.spec.trip == nil {
		lp.blocks = []*ir.Block{{}, {}}
	}
	body := lp.blocks[len(lp.blocks)-1]
	var index *ir.Value
	if lp.spec.trip != nil {
		index = l.f.BlockParam(body, ir.Int)
	}
	scopes := l.scopes
	l.scope++
	l.scopes = append(scopes[:len(scopes):len(scopes)], l.scope)
	lp.enterVars()
	lp.enterMemory()
	var going *slot
	if lp.spec.trip == nil {
		going = lp.slot(lp.spec.enter, ir.BoolT)
	}
	l.in(body, func() {
		for name, v := range lp.values {
			l.frame.vars[name] = v
		}
		lp.spec.body(index)
		l.at(lp.spec.pos)
		if going != nil {
			going.end = lp.spec.again()
		}
		lp.leave()
	})
	l.scopes = scopes
	endVars, endCells := l.frame.vars, l.cells
	l.frame.vars, l.cells, l.noGrad, l.frame.gone, l.leaves = vars, cells, noGrad, gone, leaves
	l.at(lp.spec.pos)
	if lp.again {
		outer.Nodes = outer.Nodes[:nodes]
		return false
	}
	lp.finish(body, going)
	lp.after(endVars, endCells)
	return true
}

func copyGone(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// slot adds a carried value.
func (lp *looper) slot(init *ir.Value, t ir.Type) *slot {
	s := &slot{init: init, t: t}
	for i, blk := range lp.blocks {
		p := lp.l.f.BlockParam(blk, t)
		if i == len(lp.blocks)-1 {
			s.param = p
		}
	}
	lp.slots = append(lp.slots, s)
	return s
}

// enterVars makes the carried variables.
func (lp *looper) enterVars() {
	l := lp.l
	names := map[string]bool{}
	for name := range lp.spec.assigned {
		if _, ok := l.frame.vars[name]; ok && !lp.plan.stable[name] {
			names[name] = true
		}
	}
	for name := range l.frame.vars {
		if strings.HasPrefix(name, "$") {
			names[name] = true
		}
	}
	for _, name := range sortedNames(names) {
		v := l.frame.vars[name]
		if t, ok := lp.plan.types[name]; ok {
			v = l.retype(v, t)
			l.frame.vars[name] = v
		}
		lp.values[name] = lp.enter(name, v)
	}
	lp.enterTargets()
}

// enter makes the loop's own version of a value.
func (lp *looper) enter(name string, v value) value {
	switch v := v.(type) {
	case *scalarV:
		if v.t.Kind == ir.KNone {
			return v
		}
		return &scalarV{v.t, lp.slot(v.v, v.t).param}
	case *tupleV:
		if v.n > maxLeaves {
			lp.l.fail(lp.spec.pos, "the tuple '%s' is too large: it has more than %d elements when taken apart", short(name), maxLeaves)
		}
		out := make([]value, len(v.elems))
		for i, e := range v.elems {
			out[i] = lp.enter(fmt.Sprintf("%s.%d", name, i), e)
		}
		t := lp.l.tuple(out)
		t.names = v.names
		return t
	case *refV:
		if lp.l.mirror.views && !lp.plan.noView[name] && alike(v.path, v.path) {
			return lp.enterView(name, v)
		}
		return lp.enterRef(name, v)
	}
	return v
}

// carriedView is a reference that the loop carries by the numbers in its path.
type carriedView struct {
	name  string
	pre   *refV
	slots [][]*slot // per step and operand; nil for what stays the same
}

func (lp *looper) enterView(name string, r *refV) value {
	cv := &carriedView{name: name, pre: r}
	for _, s := range r.path {
		slots := make([]*slot, len(s.args))
		for k, a := range s.args {
			if a.Type.Kind == ir.KInt {
				slots[k] = lp.slot(a, ir.Int)
			}
		}
		cv.slots = append(cv.slots, slots)
	}
	v := &refV{t: r.t, cell: r.cell, path: cv.path(), contiguous: no}
	lp.views[v] = cv
	return v
}

// path is the reference's path with the present numbers.
func (cv *carriedView) path() []*step {
	out := make([]*step, len(cv.pre.path))
	for i, s := range cv.pre.path {
		args := append([]*ir.Value{}, s.args...)
		for k, sl := range cv.slots[i] {
			if sl != nil {
				args[k] = sl.param
			}
		}
		out[i] = s.build(args)
	}
	return out
}

// leaveView sets the numbers of a carried view; a variable that becomes something else is carried otherwise.
func (lp *looper) leaveView(cv *carriedView, end value) {
	e, ok := end.(*refV)
	if !ok || e.cell != cv.pre.cell || !alike(cv.pre.path, e.path) {
		lp.plan.noView[cv.name] = true
		lp.again = true
		return
	}
	for i, slots := range cv.slots {
		for k, sl := range slots {
			if sl != nil {
				sl.end = e.path[i].args[k]
			}
		}
	}
}

func (lp *looper) enterRef(name string, r *refV) value {
	l := lp.l
	s := lp.slot(l.read(r), r.t)
	c := l.newCell(r.t, s.param)
	c.poison = lp.plan.poison[name]
	cr := &carriedRef{name: name, pre: r, inner: c, slot: s}
	lp.refs = append(lp.refs, cr)
	lp.byCell[c] = cr
	if unwrapped(r.t).Kind != ir.KTensor {
		st := l.copyState(c)
		st.t = l.state(r.cell).t
		for _, h := range l.elementHolds(r, nil) {
			if h = h.movedInside(r.cell, c); h.inside(c) {
				st.holds = append(st.holds, h)
				continue
			}
			st.holds = append(st.holds, l.upToDate(hold{ref: h.ref, elems: h.elems}))
		}
		l.cells[c] = st
	}
	return &refV{t: r.t, cell: c, contiguous: r.contiguous}
}

// enterTargets gives carried references mirrors of the places that they may be.
func (lp *looper) enterTargets() {
	l := lp.l
	known := map[string]*refV{}
	for _, cr := range lp.refs {
		known[lp.targetKey(cr.pre)] = cr.pre
	}
	for _, cr := range lp.refs {
		if l.reachable(cr.pre.cell, cr.name) {
			lp.addTarget(cr, cr.pre, true)
		}
		for _, key := range lp.plan.extra[cr.name] {
			if r := lp.findTarget(key, known); r != nil && lp.targetKey(cr.pre) != key {
				lp.addTarget(cr, r, false)
			}
		}
	}
}

func (lp *looper) targetKey(r *refV) string {
	key := r.cell.site
	for _, s := range r.path {
		key += "/" + s.name
		for _, a := range s.args {
			if d, ok := a.Const(); ok {
				key += "," + ir.FormatDatum(d)
			} else {
				key += fmt.Sprintf(",%%%d", a.ID)
			}
		}
	}
	return key
}

func (lp *looper) findTarget(key string, known map[string]*refV) *refV {
	if r := known[key]; r != nil {
		return r
	}
	if c := lp.l.sites[key]; c != nil && c.serial <= lp.serial {
		return &refV{t: c.t, cell: c}
	}
	return nil
}

func (lp *looper) addTarget(cr *carriedRef, r *refV, at bool) {
	l := lp.l
	key := lp.key + "/" + cr.name + "=" + lp.targetKey(r)
	if l.mirror.final && !l.mirror.used[key] {
		return
	}
	t := &loopTarget{key: key, ref: r}
	t.guard = lp.slot(l.constant(at), ir.BoolT)
	cr.targets = append(cr.targets, t)
	cr.inner.mirrors = append(cr.inner.mirrors, &mirror{key: key, guard: t.guard.param, ref: r, start: -1})
	if s, ok := l.cells[cr.inner]; ok {
		s.seen = append(s.seen, -1)
		l.cells[cr.inner] = s
	}
}

// enterMemory makes the carried cells: memory from before the loop that the body writes to.
func (lp *looper) enterMemory() {
	l := lp.l
	set := map[*cell]bool{}
	for site := range lp.plan.sites {
		if c := l.sites[site]; c != nil && c.serial <= lp.serial {
			set[c] = true
		}
	}
	for c := range lp.extra {
		set[c] = true
	}
	var all []*cell
	for c := range set {
		all = append(all, c)
	}
	lp.memory = sortCells(all)
	holds := map[*cell][]hold{}
	for _, c := range lp.memory {
		l.sync(c)
		s := l.state(c)
		lp.mslots[c] = lp.slot(l.asIR(c, s.content), s.t)
		holds[c] = l.elementHolds(&refV{t: c.t, cell: c}, nil)
	}
	for _, c := range lp.memory {
		s := l.copyState(c)
		s.content, s.stamp = lp.mslots[c].param, l.nextStamp()
		for i := range s.seen {
			s.seen[i] = -1
		}
		l.cells[c] = s
	}
	for _, c := range lp.memory {
		s := l.copyState(c)
		s.holds = nil
		for _, h := range holds[c] {
			s.holds = append(s.holds, hold{ref: h.ref, elems: h.elems, stamp: l.holdStampNow(h)})
		}
		l.cells[c] = s
	}
	for _, cr := range lp.refs { // what a carried reference mirrors has a new stamp now, but the same content
		s := l.copyState(cr.inner)
		for i, m := range cr.inner.mirrors {
			s.seen[i] = l.state(m.ref.cell).stamp
		}
		for i, h := range s.holds {
			s.holds[i].stamp = l.holdStampNow(h)
		}
		l.cells[cr.inner] = s
	}
	lp.enterHolds()
	for c, s := range l.cells {
		lp.stamps[c] = s.stamp
	}
}

func sortCells(cs []*cell) []*cell {
	m := map[*cell]cellState{}
	last := 0
	for _, c := range cs {
		m[c] = cellState{}
		last = max(last, c.serial)
	}
	return changedCells(m, nil, last)
}

// leave compares the state after the body with that before it, and sets what the slots become.
func (lp *looper) leave() {
	l := lp.l
	for _, name := range lp.carriedNames() {
		end, ok := l.frame.vars[name]
		if !ok {
			if why, gone := l.frame.gone[name]; gone {
				l.fail(lp.spec.pos, "variable '%s' is not defined on every path through the loop body: %s", short(name), why)
			}
			end = lp.values[name]
		}
		lp.leaveValue(name, name, lp.values[name], end)
	}
	for name, v := range l.frame.vars {
		if _, had := lp.values[name]; strings.HasPrefix(name, "$") && !had {
			if t, ok := typeOf(v); ok {
				lp.plan.dummy[name] = t
				lp.again = true
			}
		}
	}
	if lp.again {
		return
	}
	lp.leaveShared()
	lp.leaveTargets()
	for _, c := range changedCells(l.cells, nil, lp.serial) {
		if l.cells[c].stamp != lp.stamps[c] && lp.mslots[c] == nil {
			lp.plan.sites[c.site] = true
			lp.extra[c] = true
			lp.again = true
		}
	}
	lp.leaveMemory()
	lp.leaveHolds()
}

func (lp *looper) leaveMemory() {
	l := lp.l
	for _, c := range lp.memory {
		l.sync(c)
		l.settle(c, lp.serial)
		s := l.state(c)
		lp.mslots[c].end = l.asIR(c, s.content)
		if !s.t.Equal(lp.mslots[c].t) {
			if t, ok := unify(s.t, lp.mslots[c].t); ok && !t.Equal(lp.mslots[c].t) {
				lp.mslots[c].t = t
				lp.mslots[c].param.Type = t
			}
		}
	}
}

func (lp *looper) carriedNames() []string {
	set := map[string]bool{}
	for name := range lp.values {
		set[name] = true
	}
	return sortedNames(set)
}

func (lp *looper) leaveValue(variable, name string, start, end value) {
	l := lp.l
	if m, ok := start.(*module); ok && start == end {
		_ = m
		return
	}
	ts, okS := typeOf(start)
	te, okE := typeOf(end)
	if isUnion(ts) && okE && !isUnion(te) && subtype(te, ts) {
		end, te = l.retype(end, ts), ts
	}
	t, ok := unify(ts, te)
	if !okS || !okE || !ok {
		if !okS && start == end {
			return
		}
		if strings.HasPrefix(variable, "$") {
			variable = "return value"
		}
		l.fail(lp.spec.pos, "Type mismatch: variable '%s' previously had type %s but is now being assigned to a value of type %s in the loop body", short(variable), describe(start), describe(end))
	}
	if !t.Equal(ts) {
		if variable != name {
			l.fail(lp.spec.pos, "Type mismatch: an element of tuple '%s' has type %s before the loop and type %s after an iteration", short(variable), describe(start), describe(end))
		}
		lp.plan.types[variable] = t
		lp.again = true
		return
	}
	switch s := start.(type) {
	case *scalarV:
		if s.t.Kind == ir.KNone {
			return
		}
		for _, sl := range lp.slots {
			if sl.param == s.v {
				sl.end = l.irOf(l.retype(end, s.t))
			}
		}
	case *tupleV:
		for i := range s.elems {
			lp.leaveValue(variable, fmt.Sprintf("%s.%d", name, i), s.elems[i], end.(*tupleV).elems[i])
		}
	case *refV:
		if cv := lp.views[s]; cv != nil {
			lp.leaveView(cv, end)
			return
		}
		lp.leaveRef(variable, name, s, end)
	}
}

func (lp *looper) leaveRef(variable, name string, s *refV, end value) {
	l := lp.l
	cr := lp.byCell[s.cell]
	e, ok := l.retype(end, s.t).(*refV)
	if !ok {
		l.fail(lp.spec.pos, "Type mismatch: variable '%s' previously had type %s but is now being assigned to a value of type %s in the loop body", short(variable), describe(s), describe(end))
	}
	if e.cell == cr.inner && len(e.path) == 0 && variable == name && !strings.HasPrefix(name, "$") {
		lp.plan.stable[name] = true
		lp.again = true
		return
	}
	cr.slot.end = l.read(e)
	lp.atEnd[name] = e
}

// leaveShared finds carried variables that refer to the same new memory at the end of an iteration.
func (lp *looper) leaveShared() {
	first := map[*cell]string{}
	for _, cr := range lp.refs {
		e := lp.atEnd[cr.name]
		if e == nil || e.cell.serial <= lp.serial {
			continue
		}
		if other, ok := first[e.cell]; ok {
			for _, name := range []string{other, cr.name} {
				if lp.plan.poison[name] == "" {
					lp.plan.poison[name] = fmt.Sprintf("'%s' and '%s' may share memory in some iterations of the loop at line %d, so the effect of this write cannot be tracked: write to a copy made with .clone()",
						short(other), short(cr.name), lp.spec.pos.Line)
					lp.again = true
				}
			}
		}
		first[e.cell] = cr.name
	}
}

// leaveTargets computes whether the carried references still are the places they may be.
func (lp *looper) leaveTargets() {
	l := lp.l
	for _, cr := range lp.refs {
		e := lp.atEnd[cr.name]
		if e == nil {
			continue
		}
		aliases := l.aliases(e, lp.serial)
		for _, t := range cr.targets {
			t.guard.end = lp.aliasGuard(cr, aliases, t)
		}
		for _, a := range aliases {
			lp.newTarget(cr, a)
		}
	}
}

func (lp *looper) newTarget(cr *carriedRef, a alias) {
	key := lp.targetKey(a.ref)
	for _, t := range cr.targets {
		if t.ref.cell == a.ref.cell {
			return
		}
	}
	full := lp.key + "/" + cr.name + "=" + key
	if lp.l.mirror.final && !lp.l.mirror.used[full] || key == lp.targetKey(cr.pre) {
		return
	}
	for _, k := range lp.plan.extra[cr.name] {
		if k == key {
			return
		}
	}
	known := map[string]*refV{}
	for _, c := range lp.refs {
		known[lp.targetKey(c.pre)] = c.pre
	}
	if lp.findTarget(key, known) == nil {
		lp.poisonRef(cr)
		return
	}
	lp.plan.extra[cr.name] = append(lp.plan.extra[cr.name], key)
	lp.again = true
}

func (lp *looper) poisonRef(cr *carriedRef) {
	if lp.plan.poison[cr.name] == "" {
		lp.plan.poison[cr.name] = fmt.Sprintf("'%s' may be a view of other memory in some iterations of the loop at line %d, so the effect of this write cannot be tracked: write to a copy made with .clone()",
			short(cr.name), lp.spec.pos.Line)
		lp.again = true
	}
}

func (lp *looper) aliasGuard(cr *carriedRef, aliases []alias, t *loopTarget) *ir.Value {
	l := lp.l
	var out *ir.Value
	for _, a := range aliases {
		if a.ref.cell != t.ref.cell {
			continue
		}
		if !samePath(a.ref.path, t.ref.path) {
			lp.poisonRef(cr)
			continue
		}
		g := l.constant(true)
		if len(a.guards) > 0 {
			g = l.allOf(a.guards)
		}
		if out == nil {
			out = g
		} else {
			out = l.op("py_select", out, l.constant(true), g)
		}
	}
	if out == nil {
		return l.constant(false)
	}
	return out
}

// finish emits the loop node.
func (lp *looper) finish(body *ir.Block, going *slot) {
	l := lp.l
	var args, ends []*ir.Value
	var types []ir.Type
	for _, s := range lp.slots {
		if s.end == nil {
			s.end = s.param
		}
		args, ends, types = append(args, s.init), append(ends, s.end), append(types, s.t)
	}
	l.in(body, func() { l.try(func() { l.b.Yield(ends...) }) })
	op := ir.OpFor
	if lp.spec.trip == nil {
		op = ir.OpWhile
		var cond *ir.Value
		for i, s := range lp.slots {
			if s == going {
				cond = lp.blocks[0].Params[i]
			}
		}
		l.in(lp.blocks[0], func() { l.try(func() { l.b.Yield(cond) }) })
	} else {
		args = append([]*ir.Value{lp.spec.trip}, args...)
	}
	var n *ir.Node
	l.try(func() { n = l.b.Node(op, ir.Attrs{}, lp.blocks, types, args...) })
	for i, s := range lp.slots {
		s.param = n.Results[i] // from here on: the value after the loop
	}
}

// after sets the state behind the loop.
func (lp *looper) after(endVars map[string]value, endCells map[*cell]cellState) {
	l := lp.l
	for _, c := range lp.memory {
		s := l.copyState(c)
		s.content, s.stamp, s.t = lp.mslots[c].param, l.nextStamp(), lp.mslots[c].t
		for i := range s.seen {
			s.seen[i] = -1
		}
		l.cells[c] = s
	}
	for _, c := range lp.memory {
		s := l.copyState(c)
		s.holds = lp.holdsAfter(endCells[c].holds, endCells)
		l.cells[c] = s
	}
	for _, cr := range lp.refs {
		c := l.newCell(cr.pre.t, cr.slot.param)
		st := cellState{content: c.content, t: cr.inner.t}
		if e := lp.atEnd[cr.name]; e != nil && len(e.path) == 0 {
			if s, ok := endCells[e.cell]; ok {
				st.t = s.t
				st.holds = lp.holdsAfter(s.holds, endCells)
			}
		}
		for _, t := range cr.targets {
			c.mirrors = append(c.mirrors, &mirror{key: t.key, guard: t.guard.param, ref: t.ref, start: l.state(t.ref.cell).stamp})
			st.seen = append(st.seen, l.state(t.ref.cell).stamp)
		}
		c.poison = lp.plan.poison[cr.name]
		l.cells[c] = st
		cr.inner.site, cr.inner = c.site, c
		cr.pre = &refV{t: cr.pre.t, cell: c}
	}
	lp.restoreHolds(endCells)
	n := 0
	for _, name := range lp.carriedNames() {
		l.frame.vars[name] = lp.afterValue(lp.values[name], &n)
	}
	for name := range endVars {
		if _, had := l.frame.vars[name]; !had && !strings.HasPrefix(name, "$") {
			l.frame.gone[name] = fmt.Sprintf("it is defined only in the body of the loop at line %d", lp.spec.pos.Line)
		}
	}
}

// restoreHolds makes containers hold what carried references are after the loop, where they held those of the last iteration.
func (lp *looper) restoreHolds(endCells map[*cell]cellState) {
	l := lp.l
	restore := func(c *cell, end cellState) {
		for _, h := range end.holds {
			for _, cr := range lp.refs {
				if e := lp.atEnd[cr.name]; e != nil && e.cell == h.ref.cell && e.cell.serial > lp.serial && cr.inner != c {
					l.addHolds(c, []hold{l.upToDate(hold{ref: &refV{t: cr.pre.t, cell: cr.inner}, elems: h.elems, loose: true})})
				}
			}
		}
	}
	for _, c := range lp.memory {
		restore(c, endCells[c])
	}
	for _, cr := range lp.refs {
		if e := lp.atEnd[cr.name]; e != nil && len(e.path) == 0 {
			if s, ok := endCells[e.cell]; ok {
				restore(cr.inner, s)
			}
		}
	}
}

// holdsAfter keeps the holds that mean something after the loop; one that is stale stays so.
func (lp *looper) holdsAfter(holds []hold, endCells map[*cell]cellState) []hold {
	var out []hold
	for _, h := range holds {
		if h.ref.cell.serial > lp.serial {
			continue
		}
		stamp := -1
		if end := lp.atStamp(h, endCells); end == h.stamp {
			stamp = lp.l.holdStampNow(h)
		}
		out = append(out, hold{ref: outside(h.ref), elems: h.elems, stamp: stamp})
	}
	return out
}

// atStamp is holdStamp in another state.
func (lp *looper) atStamp(h hold, cells map[*cell]cellState) int {
	old := lp.l.cells
	lp.l.cells = lp.l.snapshotOf(cells)
	n := lp.l.holdStampNow(h)
	lp.l.cells = old
	return n
}

// enterHolds adds what containers hold of carried references from the iteration before.
func (lp *looper) enterHolds() {
	l := lp.l
	byName := map[string]*carriedRef{}
	for _, cr := range lp.refs {
		byName[cr.name] = cr
	}
	add := func(c *cell, key string) {
		for _, name := range lp.plan.held[key] {
			if cr := byName[name]; cr != nil && cr.inner != c {
				h := hold{ref: &refV{t: cr.pre.t, cell: cr.inner}}
				h.stamp = l.holdStampNow(h)
				l.addHolds(c, []hold{h})
			}
		}
		for _, h := range lp.kept[key] {
			h.stamp = l.holdStampNow(h)
			l.addHolds(c, []hold{h})
		}
	}
	for _, c := range lp.memory {
		add(c, c.site)
	}
	for _, cr := range lp.refs {
		add(cr.inner, "var "+cr.name)
	}
}

// leaveHolds finds containers that at the end of an iteration hold what carried references then refer to.
func (lp *looper) leaveHolds() {
	l := lp.l
	find := func(c *cell, key string) {
		for _, h := range l.state(c).holds {
			if h.ref.cell.serial <= lp.serial {
				lp.keep(key, h)
				continue
			}
			for _, cr := range lp.refs {
				e := lp.atEnd[cr.name]
				if e == nil || e.cell != h.ref.cell || e.cell.serial <= lp.serial || e.cell == c || contains(lp.plan.held[key], cr.name) {
					continue
				}
				lp.plan.held[key] = append(lp.plan.held[key], cr.name)
				lp.again = true
			}
		}
	}
	for _, c := range lp.memory {
		find(c, c.site)
	}
	for _, cr := range lp.refs {
		if e := lp.atEnd[cr.name]; e != nil && len(e.path) == 0 {
			find(e.cell, "var "+cr.name)
		}
	}
}

// keep takes note that a container holds memory from before the loop.
func (lp *looper) keep(key string, h hold) {
	for _, k := range lp.kept[key] {
		if k.ref.cell == h.ref.cell && (len(k.ref.path) > 0) == (len(h.ref.path) > 0) && k.elems == h.elems {
			return
		}
	}
	lp.kept[key] = append(lp.kept[key], hold{ref: outside(h.ref), elems: h.elems})
	lp.again = true
}

// outside is a reference as it is known where its path's operands are not defined: only its memory counts then.
func outside(r *refV) *refV {
	if len(r.path) == 0 {
		return &refV{t: r.t, cell: r.cell}
	}
	return &refV{t: r.t, cell: r.cell, path: []*step{{name: "untracked"}}}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// afterValue rebuilds a carried value from the loop's results.
func (lp *looper) afterValue(v value, n *int) value {
	switch v := v.(type) {
	case *scalarV:
		for i, s := range lp.slots {
			if lp.innerParam(i) == v.v {
				return &scalarV{v.t, s.param}
			}
		}
	case *tupleV:
		out := make([]value, len(v.elems))
		for i, e := range v.elems {
			out[i] = lp.afterValue(e, n)
		}
		t := lp.l.tuple(out)
		t.names = v.names
		return t
	case *refV:
		if cv := lp.views[v]; cv != nil {
			return &refV{t: v.t, cell: v.cell, path: cv.path(), contiguous: no}
		}
		cr := lp.byCell[v.cell]
		return &refV{t: v.t, cell: cr.inner}
	}
	return v
}

func (lp *looper) innerParam(i int) *ir.Value {
	params := lp.blocks[len(lp.blocks)-1].Params
	if lp.spec.trip != nil {
		i++
	}
	return params[i]
}

// reachable reports whether anything but the named variable of the current frame refers to c.
func (l *lowering) reachable(c *cell, name string) bool {
	root, _, _ := strings.Cut(name, ".")
	seen := map[*cell]bool{}
	for f := l.frame; f != nil; f = f.parent {
		for n, v := range f.vars {
			if f == l.frame && n == root {
				if _, isTuple := v.(*tupleV); !isTuple {
					continue
				}
			}
			if l.refersTo(v, c, seen) {
				return true
			}
		}
	}
	return false
}

func (l *lowering) refersTo(v value, c *cell, seen map[*cell]bool) bool {
	switch v := v.(type) {
	case *tupleV:
		if v.n > maxLeaves {
			return true
		}
		for _, e := range v.elems {
			if l.refersTo(e, c, seen) {
				return true
			}
		}
	case *refV:
		return l.cellRefersTo(v.cell, c, seen)
	case *module:
		return true
	}
	return false
}

func (l *lowering) cellRefersTo(from, c *cell, seen map[*cell]bool) bool {
	if from == c {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for _, m := range from.mirrors {
		if l.cellRefersTo(m.ref.cell, c, seen) {
			return true
		}
	}
	s := l.state(from)
	switch k := s.content.(type) {
	case *staticList:
		for _, e := range k.elems {
			if l.refersTo(e, c, seen) {
				return true
			}
		}
	case *pieces:
		return l.cellRefersTo(k.base.cell, c, seen)
	}
	for _, h := range s.holds {
		if l.cellRefersTo(h.ref.cell, c, seen) {
			return true
		}
	}
	return false
}
