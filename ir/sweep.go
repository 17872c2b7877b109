package ir

// Sweep removes the nodes that neither the function's results nor any effect needs, and unused results and carried values of
// control flow. keep says which nodes stay although nothing uses them; nil means HasEffect.
func (f *Func) Sweep(keep func(*Node) bool) { f.SweepBlock(f.Body, keep) }

// SweepBlock is Sweep for one block of f with what is nested in it; its terminator's operands are needed.
func (f *Func) SweepBlock(b *Block, keep func(*Node) bool) {
	if keep == nil {
		keep = HasEffect
	}
	s := &sweeper{
		live: make([]bool, f.nextID), nodes: map[*Node]bool{}, owner: map[*Node]*Node{}, params: map[*Value]carried{}, keep: keep,
	}
	s.collect(b, nil)
	s.run()
	s.erase(b)
}

// HasEffect reports whether n may do more than give its results: fail, print, draw, or never end. Control flow counts for itself
// only, not for the nodes in its blocks.
func HasEffect(n *Node) bool { return n.Op.Effect != Pure || n.Op == OpWhile }

type carried struct {
	n *Node
	k int // index among the results of n; -1 for what is not carried
}

type sweeper struct {
	live   []bool // values, by id
	nodes  map[*Node]bool
	owner  map[*Node]*Node    // of nested nodes
	params map[*Value]carried // of nested blocks
	keep   func(*Node) bool
	work   []*Value
}

// collect notes how blocks nest and marks what has to stay.
func (s *sweeper) collect(b *Block, owner *Node) {
	for _, n := range b.Nodes {
		if owner != nil {
			s.owner[n] = owner
		}
		for _, nb := range n.Blocks {
			s.blockParams(n, nb)
			s.collect(nb, n)
		}
	}
	for _, n := range b.Nodes {
		if n.Op.Class == Terminator {
			if owner == nil {
				s.mark(n.Args...)
			}
			continue
		}
		if s.keep(n) {
			s.need(n)
		}
	}
}

func (s *sweeper) blockParams(n *Node, b *Block) {
	shift := 0
	if n.Op == OpFor {
		shift = 1
	}
	for i, p := range b.Params {
		s.params[p] = carried{n, i - shift}
	}
}

func (s *sweeper) mark(vs ...*Value) {
	for _, v := range vs {
		if !s.live[v.ID] {
			s.live[v.ID] = true
			s.work = append(s.work, v)
		}
	}
}

// need keeps a node, and with it what surrounds it and what it always reads.
func (s *sweeper) need(n *Node) {
	for ; n != nil && !s.nodes[n]; n = s.owner[n] {
		s.nodes[n] = true
		switch n.Op {
		case OpIf:
			s.mark(n.Args...)
		case OpFor:
			s.mark(n.Args[0])
		case OpWhile:
			if t := n.Blocks[0].Terminator(); t != nil {
				s.mark(t.Args...)
			}
		case OpFused:
		default:
			s.mark(n.Args...)
		}
	}
}

func (s *sweeper) run() {
	for len(s.work) > 0 {
		v := s.work[len(s.work)-1]
		s.work = s.work[:len(s.work)-1]
		if p, ok := s.params[v]; ok {
			s.need(p.n)
			s.slot(p.n, p.k, true)
		}
		if v.Def != nil {
			s.need(v.Def)
			s.slot(v.Def, v.Index, false)
		}
	}
}

// slot keeps a value that control flow carries or yields.
func (s *sweeper) slot(n *Node, k int, param bool) {
	switch n.Op {
	case OpIf:
		for _, b := range n.Blocks {
			s.mark(b.Terminator().Args[k])
		}
	case OpFor:
		if k >= 0 {
			s.mark(n.Args[k+1], n.Blocks[0].Terminator().Args[k], n.Blocks[0].Params[k+1])
		}
	case OpWhile:
		s.mark(n.Args[k], n.Blocks[1].Terminator().Args[k], n.Blocks[0].Params[k], n.Blocks[1].Params[k])
	case OpFused:
		if param {
			s.mark(n.Args[k])
		} else {
			s.mark(n.Blocks[0].Terminator().Args[k])
		}
	}
}

func (s *sweeper) erase(b *Block) {
	kept := b.Nodes[:0]
	for _, n := range b.Nodes {
		if n.Op.Class != Terminator && !s.nodes[n] {
			continue
		}
		kept = append(kept, n)
		if len(n.Blocks) > 0 {
			s.prune(n)
		}
		for _, nb := range n.Blocks {
			s.erase(nb)
		}
	}
	clear(b.Nodes[len(kept):])
	b.Nodes = kept
}

// prune drops results, carried values and operands of control flow that nothing needs.
func (s *sweeper) prune(n *Node) {
	resultLive := make([]bool, len(n.Results))
	for k, r := range n.Results {
		resultLive[k] = s.live[r.ID]
		switch n.Op {
		case OpFor:
			resultLive[k] = resultLive[k] || s.live[n.Blocks[0].Params[k+1].ID]
		case OpWhile:
			resultLive[k] = resultLive[k] || s.live[n.Blocks[0].Params[k].ID] || s.live[n.Blocks[1].Params[k].ID]
		}
	}
	n.Results = filterValues(n.Results, resultLive, 0)
	for i, r := range n.Results {
		r.Index = i
	}
	for i, b := range n.Blocks {
		if n.Op == OpWhile && i == 0 {
			continue
		}
		t := b.Terminator()
		t.Args = filterValues(t.Args, resultLive, 0)
	}
	switch n.Op {
	case OpFor:
		n.Args = filterValues(n.Args, resultLive, 1)
		n.Blocks[0].Params = filterValues(n.Blocks[0].Params, resultLive, 1)
	case OpWhile:
		n.Args = filterValues(n.Args, resultLive, 0)
		for _, b := range n.Blocks {
			b.Params = filterValues(b.Params, resultLive, 0)
		}
	case OpFused:
		used := make([]bool, len(n.Args))
		for i, p := range n.Blocks[0].Params {
			used[i] = s.live[p.ID]
		}
		n.Args = filterValues(n.Args, used, 0)
		n.Blocks[0].Params = filterValues(n.Blocks[0].Params, used, 0)
	}
}

// filterValues keeps the first skip values, and of the rest those that keep says.
func filterValues(vs []*Value, keep []bool, skip int) []*Value {
	out := append([]*Value{}, vs[:skip]...)
	for i, v := range vs[skip:] {
		if keep[i] {
			out = append(out, v)
		}
	}
	return out
}
