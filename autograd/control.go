package autograd

import "github.com/gtc-project/gtc/ir"

// backIf builds the backward if: each branch gives the cotangents of what its forward branch reads from outside.
func (d *gen) backIf(n *ir.Node, cts cotangents) {
	var inner [2]cotangents
	blocks := []*ir.Block{{}, {}}
	for i, blk := range n.Blocks {
		inner[i] = cotangents{}
		d.b.In(blocks[i], func() {
			for k, y := range blk.Terminator().Args {
				if ct := cts[n.Results[k]]; ct != nil && d.varied(y) {
					d.add(inner[i], y, ct)
				}
			}
			d.backward(blk.Nodes[:len(blk.Nodes)-1], inner[i])
		})
	}
	var outside []*ir.Value
	seen := map[*ir.Value]bool{}
	for i, blk := range n.Blocks {
		for _, c := range ir.Captures(blk) {
			if inner[i][c] != nil && !seen[c] {
				seen[c] = true
				outside = append(outside, c)
			}
		}
	}
	if len(outside) == 0 {
		return
	}
	types := make([]ir.Type, len(outside))
	for i, blk := range blocks {
		d.b.In(blk, func() {
			ys := make([]*ir.Value, len(outside))
			for k, c := range outside {
				if ys[k] = inner[i][c]; ys[k] == nil {
					if known(c.Type) && c.Type.Static() {
						ys[k] = d.zeros(c)
					} else {
						ys[k] = d.b.None()
					}
				}
				if i == 0 {
					types[k] = ys[k].Type
				} else {
					types[k] = types[k].Join(ys[k].Type)
				}
			}
			d.b.Yield(ys...)
		})
		d.f.SweepBlock(blk, never)
		d.saveBranch(n, i, blk)
	}
	out := d.b.Node(ir.OpIf, ir.Attrs{}, blocks, types, n.Args[0])
	for k, c := range outside {
		d.add(cts, c, out.Results[k])
	}
}

func never(*ir.Node) bool { return false }

// saveBranch makes branch i of the forward if yield what the backward block reads of it.
func (d *gen) saveBranch(n *ir.Node, i int, back *ir.Block) {
	s := d.saved(n.Blocks[i], back, nil)
	s.load = func(v *ir.Value) *ir.Value {
		for k, blk := range n.Blocks {
			t := blk.Terminator()
			if k == i {
				t.Args = append(t.Args, v)
				continue
			}
			none := d.f.NewNode(ir.OpConst, nil, []ir.Type{ir.NoneT}, n.Pos)
			blk.Nodes = append(blk.Nodes[:len(blk.Nodes)-1:len(blk.Nodes)-1], none, t)
			t.Args = append(t.Args, none.Results[0])
		}
		r := d.newResult(n, optional(v.Type))
		if r.Type.Equal(v.Type) { // may be None itself
			return r
		}
		return d.b.Node(ir.OpUnwrap, ir.Attrs{}, nil, []ir.Type{v.Type}, r).Results[0]
	}
	s.replace()
}

func optional(t ir.Type) ir.Type {
	if t.Kind == ir.KAny || t.Kind == ir.KOptional {
		return t
	}
	return ir.OptionalOf(t)
}

// newResult adds a result to a node.
func (d *gen) newResult(n *ir.Node, t ir.Type) *ir.Value {
	r := d.f.NewValue(t)
	r.Def, r.Index = n, len(n.Results)
	n.Results = append(n.Results, r)
	return r
}

// carry makes a loop carry one more value; it gives the body's parameter, and the result.
func (d *gen) carry(n *ir.Node, init *ir.Value, t ir.Type) (param, result *ir.Value) {
	n.Args = append(n.Args, init)
	for _, blk := range n.Blocks {
		param = d.f.BlockParam(blk, t)
	}
	return param, d.newResult(n, t)
}

// atEnd appends a node to a block that is complete, and makes the block yield its result.
func (d *gen) atEnd(blk *ir.Block, op *ir.Op, result ir.Type, args ...*ir.Value) {
	t := blk.Terminator()
	m := d.f.NewNode(op, args, []ir.Type{result}, t.Pos)
	blk.Nodes = append(blk.Nodes[:len(blk.Nodes)-1], m, t)
	t.Args = append(t.Args, m.Results[0])
}

// prelude makes a node that will stand in front of n.
func (d *gen) prelude(n *ir.Node, op *ir.Op, attrs ir.Attrs, result ir.Type) *ir.Value {
	m := d.f.NewNode(op, nil, []ir.Type{result}, n.Pos)
	m.Attrs = attrs
	d.before[n] = append(d.before[n], m)
	return m.Results[0]
}

// backLoop builds the backward for of a for or while. It carries the cotangents of the carried values and, as sums, those of values
// from outside.
func (d *gen) backLoop(n *ir.Node, cts cotangents) {
	need := make([]bool, len(n.Results))
	for k, r := range n.Results {
		need[k] = cts[r] != nil && d.varied(r)
	}
	outside := d.demand(n, need)
	params, args, results := carriedParams(n), carriedArgs(n), n.Results
	body := bodyOf(n)
	yields := body.Terminator().Args
	trip := d.tripCount(n)

	var init []*ir.Value
	var types []ir.Type
	var slots []int // index among the carried values
	enter := func(ct, like, param *ir.Value) {
		t := ir.Any
		if param.Type.Kind == ir.KTensor {
			t = param.Type
			if ct != nil && ct.Type.Kind != ir.KTensor {
				ct = d.b.Op("or_zeros", ct, like)
			}
		}
		if ct == nil {
			ct = d.zeros(like)
		}
		init, types = append(init, ct), append(types, t)
	}
	for k := range results {
		if need[k] {
			slots = append(slots, k)
			enter(cts[results[k]], results[k], params[k])
		}
	}
	for _, c := range outside {
		enter(nil, c, c)
	}

	blk := &ir.Block{}
	j := d.f.BlockParam(blk, ir.Int)
	for _, t := range types {
		d.f.BlockParam(blk, t)
	}
	carried := blk.Params[1:]
	inner := cotangents{}
	d.b.In(blk, func() {
		for s, k := range slots {
			if d.varied(yields[k]) {
				d.add(inner, yields[k], carried[s])
			}
		}
		d.backward(body.Nodes[:len(body.Nodes)-1], inner)
		var next []*ir.Value
		for _, k := range slots {
			ct := inner[params[k]]
			if ct == nil {
				ct = d.zeros(params[k])
			} else if params[k].Type.Kind == ir.KTensor && ct.Type.Kind != ir.KTensor {
				ct = d.b.Op("or_zeros", ct, params[k])
			}
			next = append(next, ct)
		}
		for i, c := range outside {
			acc := carried[len(slots)+i]
			if ct := inner[c]; ct != nil {
				acc = d.sum(acc, ct)
			}
			next = append(next, acc)
		}
		d.b.Yield(next...)
	})
	d.f.SweepBlock(blk, never)
	d.saveLoop(n, blk, trip, j)
	out := d.b.Node(ir.OpFor, ir.Attrs{}, []*ir.Block{blk}, types, append([]*ir.Value{trip}, init...)...)
	for s, k := range slots {
		if d.varied(args[k]) {
			d.add(cts, args[k], out.Results[s])
		}
	}
	for i, c := range outside {
		d.add(cts, c, out.Results[len(slots)+i])
	}
}

// tripCount is how often a loop ran; a while is made to count.
func (d *gen) tripCount(n *ir.Node) *ir.Value {
	if n.Op == ir.OpFor {
		return n.Args[0]
	}
	zero := d.prelude(n, ir.OpConst, ir.Attrs{Value: int64(0)}, ir.Int)
	count, result := d.carry(n, zero, ir.Int)
	body := bodyOf(n)
	one := d.f.NewNode(ir.OpConst, nil, []ir.Type{ir.Int}, n.Pos)
	one.Attrs.Value = int64(1)
	t := body.Terminator()
	body.Nodes = append(body.Nodes[:len(body.Nodes)-1], one, t)
	d.atEnd(body, ir.LookupOp("py_add"), ir.Int, count, one.Results[0])
	return result
}

// saveLoop makes the forward loop append what the backward block reads of it to lists, which the backward block reads from the end.
func (d *gen) saveLoop(n *ir.Node, back *ir.Block, trip, j *ir.Value) {
	s := d.saved(bodyOf(n), back, nil)
	var at *ir.Value
	index := func() *ir.Value { // trip-1-j, once
		if at == nil {
			at = d.b.Op("py_sub", d.b.Op("py_sub", trip, d.b.Int(1)), j)
		}
		return at
	}
	if n.Op == ir.OpFor {
		s.index = n.Blocks[0].Params[0]
		s.indexAt = index
	}
	s.load = func(v *ir.Value) *ir.Value {
		at := index()
		empty := d.prelude(n, ir.OpList, ir.Attrs{}, ir.ListOf(v.Type))
		param, result := d.carry(n, empty, ir.ListOf(v.Type))
		d.atEnd(bodyOf(n), ir.LookupOp("list_append"), ir.ListOf(v.Type), param, v)
		return d.b.Node(ir.LookupOp("list_get"), ir.Attrs{}, nil, []ir.Type{v.Type}, result, at).Results[0]
	}
	s.replace()
}

// saver replaces what a backward block reads of the forward block that it reverses.
type saver struct {
	d         *gen
	fwd, back *ir.Block
	inside    map[*ir.Value]bool // defined by fwd itself
	now       map[*ir.Value]*ir.Value
	pre       *ir.Block // what replacing takes, at the start of back
	index     *ir.Value // the number of the iteration, which indexAt computes again
	indexAt   func() *ir.Value
	load      func(v *ir.Value) *ir.Value
}

func (d *gen) saved(fwd, back *ir.Block, load func(v *ir.Value) *ir.Value) *saver {
	s := &saver{d: d, fwd: fwd, back: back, inside: map[*ir.Value]bool{}, now: map[*ir.Value]*ir.Value{}, pre: &ir.Block{}, load: load}
	for _, p := range fwd.Params {
		s.inside[p] = true
	}
	for _, n := range fwd.Nodes {
		for _, r := range n.Results {
			s.inside[r] = true
		}
	}
	return s
}

func (s *saver) replace() {
	found := false
	s.d.b.In(s.pre, func() {
		for _, c := range ir.Captures(s.back) {
			if s.inside[c] {
				s.value(c)
				found = true
			}
		}
	})
	if !found {
		return
	}
	s.back.Walk(func(n *ir.Node) {
		for i, a := range n.Args {
			if r, ok := s.now[a]; ok {
				n.Args[i] = r
			}
		}
	})
	s.back.Nodes = append(s.pre.Nodes, s.back.Nodes...)
}

// value is what stands for v in the backward block.
func (s *saver) value(v *ir.Value) *ir.Value {
	if !s.inside[v] {
		return v
	}
	if r := s.now[v]; r != nil {
		return r
	}
	var r *ir.Value
	switch {
	case v == s.index:
		r = s.indexAt()
	case s.cheap(v, 4):
		args := make([]*ir.Value, len(v.Def.Args))
		for i, a := range v.Def.Args {
			args[i] = s.value(a)
		}
		m := s.d.f.NewNode(v.Def.Op, args, []ir.Type{v.Type}, v.Def.Pos)
		m.Attrs = v.Def.Attrs
		s.d.b.Block.Nodes = append(s.d.b.Block.Nodes, m)
		r = m.Results[0]
	default:
		r = s.load(v)
	}
	s.now[v] = r
	return r
}

// cheap reports whether v is better computed again than saved: literals, and a few scalar ops on such and on values from outside.
func (s *saver) cheap(v *ir.Value, depth int) bool {
	if v.Def == nil {
		return false
	}
	if v.Def.Op == ir.OpConst {
		return true
	}
	if depth == 0 || v.Def.Op.Class != ir.Host || v.Def.Op.Effect != ir.Pure || len(v.Def.Results) != 1 {
		return false
	}
	if _, ok := v.Const(); !ok && !isScalar(v.Type) {
		return false
	}
	for _, a := range v.Def.Args {
		if s.inside[a] && a != s.index && !s.cheap(a, depth-1) {
			return false
		}
	}
	return true
}

func isScalar(t ir.Type) bool {
	switch t.Kind {
	case ir.KInt, ir.KFloat, ir.KBool, ir.KString, ir.KDType, ir.KNone:
		return true
	}
	return false
}
