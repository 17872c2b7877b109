package passes

import (
	"math/bits"
	"slices"

	"github.com/gtc-project/gtc/ir"
)

// fuse puts nodes into groups, each of which becomes one kernel: a fused node.
//
// A group is a set of elementwise nodes of one block that have one shape, all sizes known, together with the constants and views of
// values from outside that only the group reads. A reduction is a group of its own: it takes along the elementwise nodes that nothing
// but it needs. No value is computed twice. Nodes that may fail stay single.
//
// Reductions choose first, as what they take needs no memory. Then every other node joins, in program order, the groups of its
// operands, which become one; or else a group that reads one of its operands too. Two nodes may be in one group only if no way leads
// from one to the other through what is outside: then the group can stand in one place. Effects count as depending on one another, in
// program order. Which groups depend on which is kept in sets of 64 groups; when these are used up, the groups so far are closed.
func fuse(f *ir.Func, fuel *Fuel) error {
	z := newFuser(f)
	z.fuel = fuel
	if err := z.block(f.Body); err != nil {
		return err
	}
	f.Sweep(keeps)
	return nil
}

// Bounds of a group: its elementwise nodes, and its operands and results.
const (
	maxGroup       = 48
	maxGroupValues = 24
)

// fuser is the work on a function. Its tables are indexed by value id.
type fuser struct {
	f     *ir.Func
	users []int32 // how many operands the value is
	home  []*unit // the group that computes the value
	dep   []dependence
	epoch int32
	fuel  *Fuel
}

// groupSet is a set of open groups.
type groupSet uint64

// dependence is which groups a value depends on that no group computes; it is about the groups of one epoch.
type dependence struct {
	groups groupSet
	epoch  int32
}

// unit is what is scheduled as a whole: a single node, or a group.
type unit struct {
	nodes  []*ir.Node // in program order, once grouping is done
	last   int        // the place of the last node
	like   ir.Type    // of a group: has the shape of its nodes
	size   int        // of a group: elementwise nodes
	bit    int        // of a group that is or was open: its place in grouping.open
	epoch  int32      // of an open group; 0 for what is closed
	merged *unit      // the group that has taken over this one
	deps   groupSet   // of an open group: what its nodes depend on outside
	values int        // of an open group: bounds its operands and results
}

func (u *unit) find() *unit {
	for u.merged != nil {
		u = u.merged
	}
	return u
}

func newFuser(f *ir.Func) *fuser {
	n := f.NumValues()
	z := &fuser{f: f, users: make([]int32, n), home: make([]*unit, n), dep: make([]dependence, n)}
	f.Body.Walk(func(m *ir.Node) {
		for _, a := range m.Args {
			z.users[a.ID]++
		}
	})
	return z
}

func (z *fuser) block(b *ir.Block) error {
	for _, n := range b.Nodes {
		if n.Op == ir.OpFused {
			continue
		}
		for _, nb := range n.Blocks {
			if err := z.block(nb); err != nil {
				return err
			}
		}
	}
	z.epoch++
	g := &grouping{fuser: z, b: b, units: make([]*unit, len(b.Nodes)), readers: map[*ir.Value]*unit{}}
	g.reductions()
	for i, n := range b.Nodes {
		g.place(i, n)
	}
	return g.schedule()
}

// grouping is the work on one block.
type grouping struct {
	*fuser
	b       *ir.Block
	units   []*unit             // by place in the block
	open    []*unit             // the groups of the epoch, merged ones too
	readers map[*ir.Value]*unit // the last open group that reads a value from outside
	effects dependence          // of the last node with an effect
	args    []*ir.Value         // scratch
	seen    map[*ir.Value]*unit // scratch
	at      map[*ir.Value]int   // by value: the number of the unit that defines it
}

// fusable reports whether a group may take in n.
func fusable(n *ir.Node) bool {
	if n.Op.Class != ir.Elementwise || mayFail(n) || !n.Results[0].Type.Static() {
		return false
	}
	for i, a := range n.Args {
		if i == 1 && n.Op.Name == "convert" {
			if _, ok := a.Const(); !ok {
				return false
			}
			continue
		}
		if !a.Type.Static() || !sameDims(a.Type, n.Results[0].Type) {
			return false
		}
	}
	return true
}

// mayFail reports whether n may fail at run time. Divisions of floats do not, although those of integers do; nor do extrema of tensors
// that have elements.
func mayFail(n *ir.Node) bool {
	switch {
	case n.Op.Effect == ir.Pure:
		return false
	case n.Op.Class == ir.Elementwise:
		return !n.Results[0].Type.IsFloatTensor()
	case n.Op.Class == ir.Reduce:
		return n.Args[0].Type.NumElems() <= 0
	}
	return true
}

// keeps reports whether n stays although nothing uses its results.
func keeps(n *ir.Node) bool { return mayFail(n) || n.Op == ir.OpWhile }

func sameDims(t, u ir.Type) bool { return slices.Equal(t.Dims, u.Dims) }

// reduces are the reductions that a kernel computes together with what they reduce.
var reduces = map[string]bool{"sum": true, "prod": true, "amax": true, "amin": true, "any": true, "all": true, "argmax": true, "argmin": true}

// reductions gives every reduction the elementwise nodes before it that only it needs.
func (g *grouping) reductions() {
	place := map[*ir.Node]int{}
	for i, n := range g.b.Nodes {
		if n.Op.Class == ir.Elementwise {
			place[n] = i
		}
		if !reduces[n.Op.Name] || mayFail(n) || !n.Args[0].Type.Static() || n.Args[0].Type.NumElems() == 0 || !n.Results[0].Type.Static() {
			continue
		}
		cone := g.cone(n, place)
		if len(cone) == 0 {
			continue
		}
		u := &unit{size: len(cone), like: n.Args[0].Type}
		for _, m := range cone {
			g.units[place[m]] = u
		}
		g.units[i] = u
	}
}

// cone finds the elementwise nodes that only the reduction n needs, given their places in the block.
func (g *grouping) cone(n *ir.Node, place map[*ir.Node]int) []*ir.Node {
	uses := map[*ir.Value]int32{n.Args[0]: 1}
	work := []*ir.Value{n.Args[0]}
	taken := map[*ir.Value]bool{}
	var cone []*ir.Node
	for len(work) > 0 && len(cone) < maxGroup && len(uses) < maxGroupValues+len(cone) {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if v.Def == nil || taken[v] || uses[v] != g.users[v.ID] || !fusable(v.Def) {
			continue
		}
		if i, here := place[v.Def]; !here || g.units[i] != nil {
			continue
		}
		taken[v] = true
		cone = append(cone, v.Def)
		for _, a := range v.Def.Args {
			if a.Type.Kind == ir.KTensor {
				uses[a]++
				work = append(work, a)
			}
		}
	}
	return cone
}

// openGroup is the open group that computes v, if one does.
func (g *grouping) openGroup(v *ir.Value) *unit {
	if v.ID >= len(g.home) || g.home[v.ID] == nil {
		return nil
	}
	if u := g.home[v.ID].find(); u.epoch == g.epoch {
		return u
	}
	return nil
}

// needs is which open groups n depends on, but for u, which may be nil.
func (g *grouping) needs(n *ir.Node, u *unit) groupSet {
	var s groupSet
	for _, v := range g.operands(n) {
		w := g.openGroup(v)
		switch {
		case w == nil:
			if d := g.dep[v.ID]; d.epoch == g.epoch {
				s |= d.groups
			}
		case w != u:
			s |= 1 << w.bit
		}
	}
	return s
}

// operands are what n reads, in its blocks too.
func (g *grouping) operands(n *ir.Node) []*ir.Value {
	if len(n.Blocks) == 0 || n.Op == ir.OpFused {
		return n.Args
	}
	return append(slices.Clip(n.Args), ir.Captures(n.Blocks...)...)
}

// closure adds to s what the groups in it depend on.
func (g *grouping) closure(s groupSet) groupSet {
	var done groupSet
	for s != 0 {
		i := bits.TrailingZeros64(uint64(s))
		u := g.open[i].find()
		done |= 1<<i | 1<<u.bit
		s = (s | u.deps) &^ done
	}
	return done
}

// place puts the node at place i into a unit and notes what it depends on.
func (g *grouping) place(i int, n *ir.Node) {
	if g.units[i] == nil && fusable(n) {
		u := g.group(n)
		g.units[i] = u
		g.add(u, n)
		return
	}
	if g.units[i] == nil {
		g.units[i] = &unit{}
	}
	s := g.needs(n, nil)
	if hasEffect(n) {
		if g.effects.epoch == g.epoch {
			s |= g.effects.groups
		}
		g.effects = dependence{s, g.epoch}
	}
	for _, r := range n.Results {
		g.dep[r.ID] = dependence{s, g.epoch}
	}
}

// hasEffect reports whether n, or a node in its blocks, must keep its place among others of that kind.
func hasEffect(n *ir.Node) bool {
	if n.Op.Class == ir.Terminator || n.Op == ir.OpFused {
		return false
	}
	if keeps(n) {
		return true
	}
	for _, b := range n.Blocks {
		for _, m := range b.Nodes {
			if hasEffect(m) {
				return true
			}
		}
	}
	return false
}

// group is the group that n joins.
func (g *grouping) group(n *ir.Node) *unit {
	var u *unit
	for _, a := range n.Args {
		w := g.openGroup(a)
		switch {
		case w == nil || w == u || !g.fits(w, n):
		case u == nil:
			u = w
		case g.mergeable(u, w):
			g.merge(u, w)
		}
	}
	if u != nil && g.allowed(u, n) {
		return u
	}
	for _, a := range n.Args {
		if w := g.readers[a]; w != nil && worthSharing(a) {
			if w = w.find(); w.epoch == g.epoch && g.fits(w, n) && g.allowed(w, n) {
				return w
			}
		}
	}
	if len(g.open) == 64 {
		g.open, g.readers = nil, map[*ir.Value]*unit{}
		g.epoch++
	}
	u = &unit{bit: len(g.open), epoch: g.epoch, like: n.Results[0].Type}
	g.open = append(g.open, u)
	return u
}

// worthSharing reports whether reading v once for two nodes saves anything.
func worthSharing(v *ir.Value) bool {
	if v.Def == nil {
		return true
	}
	switch v.Def.Op.Class {
	case ir.Generate, ir.Host, ir.View:
		return false
	}
	return true
}

func (g *grouping) fits(u *unit, n *ir.Node) bool {
	return u.size < maxGroup && u.values < maxGroupValues && sameDims(u.like, n.Results[0].Type)
}

// allowed reports whether no way leads from u to n through what is outside u.
func (g *grouping) allowed(u *unit, n *ir.Node) bool {
	return g.closure(g.needs(n, u))&(1<<u.bit) == 0
}

func (g *grouping) mergeable(u, w *unit) bool {
	return u.size+w.size < maxGroup && u.values+w.values < maxGroupValues &&
		g.closure(u.deps)&(1<<w.bit) == 0 && g.closure(w.deps)&(1<<u.bit) == 0
}

func (g *grouping) merge(u, w *unit) {
	w.merged = u
	u.size += w.size
	u.values += w.values
	u.deps |= w.deps
}

func (g *grouping) add(u *unit, n *ir.Node) {
	u.deps |= g.needs(n, u)
	u.size++
	if g.users[n.Results[0].ID] > 1 {
		u.values++
	}
	for _, a := range n.Args {
		if a.Type.Kind == ir.KTensor && g.openGroup(a) != u {
			u.values++
			g.readers[a] = u
		}
	}
	g.home[n.Results[0].ID] = u
}
