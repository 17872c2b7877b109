package passes

import "github.com/gtc-project/gtc/ir"

// branch rebuilds an if; a known condition leaves one branch only.
func (s *specialiser) branch(n *ir.Node) {
	cond := s.val(n.Args[0])
	if d, ok := cond.Const(); ok && s.flow {
		if c, ok := d.(bool); ok && s.fuel.Take("known branch of", n) {
			blk := n.Blocks[1]
			if c {
				blk = n.Blocks[0]
			}
			s.nodes(blk.Nodes)
			s.set(n.Results, s.vals(blk.Terminator().Args))
			return
		}
	}
	blocks := make([]*ir.Block, 2)
	var yields [2][]*ir.Value
	for i, blk := range n.Blocks {
		blocks[i] = &ir.Block{}
		s.push()
		s.b.In(blocks[i], func() {
			s.nodes(blk.Nodes)
			yields[i] = s.vals(blk.Terminator().Args)
			s.b.Yield(yields[i]...)
		})
		s.pop()
	}
	types := make([]ir.Type, len(n.Results))
	for k := range types {
		switch {
		case raises(blocks[0]):
			types[k] = yields[1][k].Type
		case raises(blocks[1]):
			types[k] = yields[0][k].Type
		default:
			types[k] = join(yields[0][k].Type, yields[1][k].Type)
		}
	}
	for i, blk := range blocks {
		if raises(blk) && !raises(blocks[1-i]) {
			yields[i] = s.unreached(blk, types)
		}
	}
	out := s.b.Node(ir.OpIf, ir.Attrs{}, blocks, types, cond)
	results := append([]*ir.Value{}, out.Results...)
	for k, v := range yields[0] {
		if v == yields[1][k] { // the same from outside on both ways
			results[k] = v
		}
	}
	s.set(n.Results, results)
}

// raises reports whether b never comes to its end, so that it does not count what it would yield.
func raises(b *ir.Block) bool {
	for _, n := range b.Nodes {
		if n.Op.Name == "raise" {
			return true
		}
	}
	return false
}

// unreached makes a block that raises yield values of the given types, which it never comes to.
func (s *specialiser) unreached(b *ir.Block, types []ir.Type) []*ir.Value {
	term := b.Terminator()
	b.Nodes = b.Nodes[:len(b.Nodes)-1]
	s.b.In(b, func() {
		for k, t := range types {
			if y := term.Args[k]; !t.Accepts(y.Type) {
				nothing := s.b.List()
				term.Args[k] = s.b.Node(ir.LookupOp("list_get"), ir.Attrs{}, nil, []ir.Type{t}, nothing, s.b.Int(0)).Results[0]
			}
		}
	})
	b.Nodes = append(b.Nodes, term)
	return term.Args
}

// join is Type.Join but for empty lists, which fit every list type.
func join(t, u ir.Type) ir.Type {
	if t.Kind == ir.KList && u.Kind == ir.KList {
		switch {
		case t.Elems[0].Kind == ir.KAny:
			return u
		case u.Elems[0].Kind == ir.KAny:
			return t
		}
		return ir.ListOf(join(t.Elems[0], u.Elems[0]))
	}
	return t.Join(u)
}

// The sizes up to which loops of known length are unrolled: always, or because carried types change from one iteration to the next.
const (
	unrollAlways = 256
	unrollTypes  = 20_000
	peelMost     = 1000
)

// loop rebuilds a for.
func (s *specialiser) loop(n *ir.Node) {
	body := n.Blocks[0]
	trip := s.val(n.Args[0])
	init := s.vals(n.Args[1:])
	count, fixed := int64(-1), false
	if d, ok := trip.Const(); ok && s.flow && s.fuel.Take("known length of", n) {
		count, fixed = d.(int64)
	}
	if fixed && count <= 0 {
		s.set(n.Results, init)
		return
	}
	size := int64(countNodes(body))
	if fixed && (count == 1 || count*size <= unrollAlways) {
		s.unroll(n, count, init)
		return
	}
	stable := func(types []ir.Type) bool {
		return !fixed || count > unrollTypes || count*size > min(unrollTypes, int64(s.budget)) || !loses(init, types)
	}
	blk, types, ok := s.fixpoint(init, declared(n.Results), stable, func(params []*ir.Value) []*ir.Value {
		s.set(body.Params, params)
		s.nodes(body.Nodes)
		return s.vals(body.Terminator().Args)
	}, ir.Int)
	if !ok {
		s.unroll(n, count, init)
		return
	}
	out := s.b.Node(ir.OpFor, ir.Attrs{}, []*ir.Block{blk}, types, append([]*ir.Value{trip}, init...)...)
	s.set(n.Results, carriedThrough(out, blk, 1, init))
}

func (s *specialiser) unroll(n *ir.Node, count int64, cur []*ir.Value) {
	body := n.Blocks[0]
	for i := int64(0); i < count; i++ {
		s.env[body.Params[0]] = s.constant(i)
		s.set(body.Params[1:], cur)
		s.nodes(body.Nodes)
		cur = s.vals(body.Terminator().Args)
	}
	s.set(n.Results, cur)
}

func declared(vs []*ir.Value) []ir.Type {
	out := make([]ir.Type, len(vs))
	for i, v := range vs {
		out[i] = v.Type
	}
	return out
}

// loses reports whether the carried types say less than those of the initial values: a dtype, rank or size that changes, or a
// list of known elements.
func loses(init []*ir.Value, types []ir.Type) bool {
	for i, v := range init {
		t := types[i]
		if v.Type.Static() && !t.Static() {
			return true
		}
		if t.Kind == ir.KAny && v.Type.Kind != ir.KAny || t.Kind == ir.KOptional && v.Type.Kind != ir.KOptional {
			return true
		}
		if t.Kind == ir.KList && ir.MayCarryGradient(t) && !t.Elems[0].Static() {
			return true
		}
	}
	return false
}

// carriedThrough are a loop's results, with the initial value for what the body passes on unchanged.
func carriedThrough(n *ir.Node, body *ir.Block, skip int, init []*ir.Value) []*ir.Value {
	out := append([]*ir.Value{}, n.Results...)
	for k, y := range body.Terminator().Args {
		if y == body.Params[k+skip] {
			out[k] = init[k]
		}
	}
	return out
}

// fixpoint builds a loop's body for carried types that hold for the initial values and for what the body yields. It stops with ok
// false where accept rejects the types that the carried values come to.
func (s *specialiser) fixpoint(init []*ir.Value, known []ir.Type, accept func([]ir.Type) bool, build func(params []*ir.Value) []*ir.Value, first ...ir.Type) (blk *ir.Block, types []ir.Type, ok bool) {
	types = declared(init)
	for k, t := range types { // an empty list says nothing: a guess that spares nested loops a second try
		if t.Kind == ir.KList && t.Elems[0].Kind == ir.KAny && precise(known[k]) {
			types[k] = known[k]
		}
	}
	for try := 0; ; try++ {
		blk = &ir.Block{}
		for _, t := range first {
			s.f.BlockParam(blk, t)
		}
		for _, t := range types {
			s.f.BlockParam(blk, t)
		}
		var yields []*ir.Value
		s.push()
		s.b.In(blk, func() {
			yields = build(blk.Params)
			s.b.Yield(yields...)
		})
		s.pop()
		changed := false
		next := append([]ir.Type{}, types...)
		for k, y := range yields {
			t := join(types[k], y.Type)
			if t.Equal(types[k]) {
				continue
			}
			changed = true
			if try >= 2 {
				t = widest(t, known[k])
			}
			next[k] = t
		}
		if !changed {
			return blk, types, true
		}
		if !accept(next) {
			return nil, nil, false
		}
		types = next
	}
}

// precise reports whether t is a list, maybe of lists, of static tensors.
func precise(t ir.Type) bool {
	for t.Kind == ir.KList {
		t = t.Elems[0]
	}
	return t.Static()
}

// widest is a type above t that is reached after a few joins at most.
func widest(t, known ir.Type) ir.Type {
	if known.Accepts(t) {
		return known
	}
	if t.Kind == ir.KTensor {
		return ir.AnyTensor
	}
	return ir.Any
}

// while rebuilds a while; iterations whose condition is known are done in line.
func (s *specialiser) while(n *ir.Node) {
	cond, body := n.Blocks[0], n.Blocks[1]
	cur := s.vals(n.Args)
	if s.flow && s.fuel.Take("known iterations of", n) {
		var done bool
		if cur, done = s.peel(n, cur); done {
			s.set(n.Results, cur)
			return
		}
	}
	always := func([]ir.Type) bool { return true }
	blk, types, _ := s.fixpoint(cur, declared(n.Results), always, func(params []*ir.Value) []*ir.Value {
		s.set(body.Params, params)
		s.nodes(body.Nodes)
		return s.vals(body.Terminator().Args)
	})
	test := &ir.Block{}
	for _, t := range types {
		s.f.BlockParam(test, t)
	}
	s.push()
	s.b.In(test, func() {
		s.set(cond.Params, test.Params)
		s.nodes(cond.Nodes)
		s.b.Yield(s.vals(cond.Terminator().Args)...)
	})
	s.pop()
	out := s.b.Node(ir.OpWhile, ir.Attrs{}, []*ir.Block{test, blk}, types, cur...)
	s.set(n.Results, carriedThrough(out, blk, 0, cur))
}

// peel builds the iterations of a while in line as long as its condition is known. It takes them back where there are many and the
// types of the carried values do not change: then a loop is better.
func (s *specialiser) peel(n *ir.Node, init []*ir.Value) (cur []*ir.Value, done bool) {
	cond, body := n.Blocks[0], n.Blocks[1]
	size := countNodes(cond) + countNodes(body)
	at := len(s.b.Block.Nodes)
	s.push()
	defer s.pop()
	cur = init
	for i := 0; ; i++ {
		if i*size > unrollAlways && sameTypes(init, cur) || i*size > unrollTypes || i > peelMost || s.budget <= 0 {
			s.b.Block.Nodes = s.b.Block.Nodes[:at]
			return init, false
		}
		c, known := s.knownCondition(cond, cur)
		if !known || !c {
			return cur, known
		}
		s.set(body.Params, cur)
		s.nodes(body.Nodes)
		cur = s.vals(body.Terminator().Args)
	}
}

func sameTypes(a, b []*ir.Value) bool {
	for i, v := range a {
		if !v.Type.Equal(b[i].Type) {
			return false
		}
	}
	return true
}

// knownCondition evaluates a while's condition where it is known for the current carried values; what it takes is built then.
func (s *specialiser) knownCondition(cond *ir.Block, cur []*ir.Value) (value, known bool) {
	at := len(s.b.Block.Nodes)
	s.push()
	s.set(cond.Params, cur)
	s.nodes(cond.Nodes)
	s.pop()
	if d, ok := s.val(cond.Terminator().Args[0]).Const(); ok {
		if c, ok := d.(bool); ok {
			return c, true
		}
	}
	s.b.Block.Nodes = s.b.Block.Nodes[:at]
	return false, false
}

// hoist moves pure nodes that do not depend on the iteration out of loops, innermost loops first.
func hoist(b *ir.Block, fuel *Fuel) {
	var out []*ir.Node
	for _, n := range b.Nodes {
		for _, nb := range n.Blocks {
			hoist(nb, fuel)
		}
		if n.Op == ir.OpFor || n.Op == ir.OpWhile {
			for _, nb := range n.Blocks {
				out = append(out, invariant(nb, fuel)...)
			}
		}
		out = append(out, n)
	}
	b.Nodes = out
}

// shapesFit reports whether it is certain that n's operands fit each other: a loop that does not run must not fail.
func shapesFit(n *ir.Node) bool {
	tensors := 0
	for _, a := range n.Args {
		if a.Type.Kind == ir.KTensor {
			tensors++
			if !a.Type.Static() && tensors > 1 {
				return false
			}
		}
	}
	return tensors < 2 || n.Args[0].Type.Kind != ir.KTensor || n.Args[0].Type.Static()
}

// invariant takes the nodes out of a loop's block that depend on nothing in it.
func invariant(b *ir.Block, fuel *Fuel) []*ir.Node {
	inside := map[*ir.Value]bool{}
	for _, p := range b.Params {
		inside[p] = true
	}
	var moved, kept []*ir.Node
	for _, n := range b.Nodes {
		free := n.Op.Effect == ir.Pure && n.Op.Class != ir.Terminator && len(n.Blocks) == 0 && shapesFit(n)
		for _, a := range n.Args {
			free = free && !inside[a]
		}
		if free && fuel.Take("move out of the loop", n) {
			moved = append(moved, n)
			continue
		}
		kept = append(kept, n)
		for _, r := range n.Results {
			inside[r] = true
		}
	}
	b.Nodes = kept
	return moved
}
