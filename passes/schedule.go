package passes

import (
	"container/heap"
	"fmt"
	"strings"

	"github.com/gtc-project/gtc/ir"
)

// schedule puts the block's units in an order in which every value is defined before it is used: the program's order, but that a group
// stands where its last node stood, and what reads it behind. Groups become fused nodes on the way.
func (g *grouping) schedule() error {
	var units []*unit
	number := map[*unit]int{}
	of := make([]int, len(g.b.Nodes)) // the number of the unit of every node
	at := map[*ir.Value]int{}         // the number of the unit that defines a value
	for i, n := range g.b.Nodes {
		u := g.units[i].find()
		k, ok := number[u]
		if !ok {
			k = len(units)
			number[u] = k
			units = append(units, u)
		}
		u.nodes, u.last, of[i] = append(u.nodes, n), i, k
		for _, r := range n.Results {
			at[r] = k
		}
	}
	waits := make([]int, len(units))
	next := make([][]int, len(units))
	edge := func(from, to int) {
		if from != to {
			next[from] = append(next[from], to)
			waits[to]++
		}
	}
	effect := -1
	for i, n := range g.b.Nodes {
		for _, v := range g.operands(n) {
			if from, ok := at[v]; ok {
				edge(from, of[i])
			}
		}
		if hasEffect(n) {
			if effect >= 0 {
				edge(effect, of[i])
			}
			effect = of[i]
		}
	}
	ready := &unitHeap{units: units}
	for k, n := range waits {
		if n == 0 {
			heap.Push(ready, k)
		}
	}
	out := make([]*ir.Node, 0, len(g.b.Nodes))
	done := 0
	for ; ready.Len() > 0; done++ {
		k := heap.Pop(ready).(int)
		out = append(out, g.nodesOf(units[k])...)
		for _, j := range next[k] {
			if waits[j]--; waits[j] == 0 {
				heap.Push(ready, j)
			}
		}
	}
	if done != len(units) {
		return fmt.Errorf("BUG: groups that wait for each other in a block of %d nodes", len(g.b.Nodes))
	}
	g.b.Nodes = out
	return nil
}

// unitHeap holds numbers of units, the one whose last node stands first on top. The terminator is always the last.
type unitHeap struct {
	units []*unit
	nums  []int
}

func (h *unitHeap) Len() int           { return len(h.nums) }
func (h *unitHeap) Less(i, j int) bool { return h.units[h.nums[i]].last < h.units[h.nums[j]].last }
func (h *unitHeap) Swap(i, j int)      { h.nums[i], h.nums[j] = h.nums[j], h.nums[i] }
func (h *unitHeap) Push(x any)         { h.nums = append(h.nums, x.(int)) }
func (h *unitHeap) Pop() any {
	x := h.nums[len(h.nums)-1]
	h.nums = h.nums[:len(h.nums)-1]
	return x
}

// nodesOf is what a unit becomes: a fused node where that saves anything.
func (g *grouping) nodesOf(u *unit) []*ir.Node {
	if u.size == 0 || len(u.nodes) == 1 && !readsSplat(u.nodes[0]) || !g.fuel.Take("fuse with others", u.nodes[len(u.nodes)-1]) {
		return u.nodes
	}
	k := &kernel{fuser: g.fuser, blk: &ir.Block{}, inner: map[*ir.Value]*ir.Value{}, inside: map[*ir.Value]int32{}, at: g.b}
	for _, n := range u.nodes {
		for _, a := range n.Args {
			k.inside[a]++
		}
	}
	return []*ir.Node{k.build(u)}
}

// readsSplat reports whether an operand of n is a tensor of one constant, which a kernel need not read from memory.
func readsSplat(n *ir.Node) bool {
	for _, a := range n.Args {
		if a.Def != nil && a.Def.Op.Name == "full" {
			return true
		}
	}
	return false
}

// kernel is a fused node under construction.
type kernel struct {
	*fuser
	blk    *ir.Block
	at     *ir.Block
	args   []*ir.Value
	inner  map[*ir.Value]*ir.Value // what stands for a value inside
	inside map[*ir.Value]int32     // how many operands of the group a value is
}

func (k *kernel) build(u *unit) *ir.Node {
	for _, n := range u.nodes {
		k.clone(n)
	}
	fused := k.f.NewNode(ir.OpFused, nil, nil, u.nodes[0].Pos)
	var yields []*ir.Value
	for _, n := range u.nodes {
		r := n.Results[0]
		if k.inside[r] == k.users[r.ID] {
			continue
		}
		yields = append(yields, k.inner[r])
		r.Def, r.Index = fused, len(fused.Results) // the value stays, for those that use it
		fused.Results = append(fused.Results, r)
	}
	k.blk.Nodes = append(k.blk.Nodes, k.f.NewNode(ir.OpYield, yields, nil, ir.Pos{}))
	fused.Args, fused.Blocks = k.args, []*ir.Block{k.blk}
	fused.Attrs.Callee = kernelName(u.nodes)
	return fused
}

// kernelName is made of the names of the last ops.
func kernelName(nodes []*ir.Node) string {
	var names []string
	for _, n := range nodes[max(0, len(nodes)-4):] {
		names = append(names, n.Op.Name)
	}
	return strings.Join(names, "_")
}

// clone puts a copy of n into the kernel.
func (k *kernel) clone(n *ir.Node) {
	args := make([]*ir.Value, len(n.Args))
	for i, a := range n.Args {
		args[i] = k.value(a, 0)
	}
	m := k.node(n.Op, n.Results[0].Type, n.Pos, args...)
	m.Attrs = n.Attrs
	k.inner[n.Results[0]] = m.Results[0]
}

func (k *kernel) node(op *ir.Op, t ir.Type, pos ir.Pos, args ...*ir.Value) *ir.Node {
	m := k.f.NewNode(op, args, []ir.Type{t}, pos)
	k.blk.Nodes = append(k.blk.Nodes, m)
	return m
}

// maxSetup bounds how many views of views a kernel takes in.
const maxSetup = 6

// value is what stands for v inside: a copy of what makes it, where that computes nothing and is not needed elsewhere, or a parameter.
func (k *kernel) value(v *ir.Value, depth int) *ir.Value {
	if w := k.inner[v]; w != nil {
		return w
	}
	w := k.setup(v, depth)
	if w == nil {
		w = k.f.BlockParam(k.blk, v.Type)
		w.Name = v.Name
		k.args = append(k.args, v)
	}
	k.inner[v] = w
	return w
}

// setup copies what makes v into the kernel; nil where v has to come from outside.
func (k *kernel) setup(v *ir.Value, depth int) *ir.Value {
	n := v.Def
	if n == nil || depth >= maxSetup || len(n.Results) != 1 {
		return nil
	}
	switch {
	case n.Op == ir.OpConst:
		if a, ok := n.Attrs.Value.(*ir.Array); ok && a.Len() > 1 {
			return nil
		}
		m := k.node(n.Op, v.Type, n.Pos)
		m.Attrs = n.Attrs
		return m.Results[0]
	case n.Op.Name == "full" && v.Type.Static():
		value := k.value(n.Args[1], depth+1)
		x := k.node(opScalarTensor, ir.TensorOf(v.Type.DType), n.Pos, value, k.value(n.Args[2], depth+1))
		return k.node(opBroadcast, v.Type, n.Pos, x.Results[0], k.ints(v.Type.Shape(), n.Pos)).Results[0]
	case n.Op.Name == "scalar_tensor" && v.Type.Static():
	case n.Op.Class == ir.View && v.Type.Static() && n.Op.Effect == ir.Pure && k.viewOfSplat(n, depth):
	case n.Op.Class == ir.View && v.Type.Static() && n.Op.Effect == ir.Pure && n.Op.Name != "reshape" && k.inside[v] == k.users[v.ID]:
		for _, a := range n.Args {
			k.inside[a]++
		}
	default:
		return nil
	}
	args := make([]*ir.Value, len(n.Args))
	for i, a := range n.Args {
		args[i] = k.value(a, depth+1)
	}
	m := k.node(n.Op, v.Type, n.Pos, args...)
	m.Attrs = n.Attrs
	return m.Results[0]
}

// viewOfSplat reports whether n is a view of a tensor of one constant, which costs nothing to make again.
func (k *kernel) viewOfSplat(n *ir.Node, depth int) bool {
	for ; depth < maxSetup && n.Op.Class == ir.View; depth++ {
		if n = n.Args[0].Def; n == nil {
			return false
		}
	}
	switch n.Op.Name {
	case "full", "scalar_tensor":
		return true
	case "const":
		a, ok := n.Attrs.Value.(*ir.Array)
		return ok && a.Len() == 1
	}
	return false
}

// ints is a literal list in the kernel.
func (k *kernel) ints(v []int, pos ir.Pos) *ir.Value {
	m := k.node(ir.OpConst, ir.IntList, pos)
	m.Attrs.Value = ir.Ints(v...)
	return m.Results[0]
}

var (
	opScalarTensor = ir.LookupOp("scalar_tensor")
	opBroadcast    = ir.LookupOp("broadcast")
)
