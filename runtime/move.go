//go:build !nollvm

package runtime

import (
	"errors"
	"slices"

	"github.com/gtc-project/gtc/codegen/cpu"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// part is one copy into a result: an operand, or a constant, goes to a part of it.
type part struct {
	arg   int       // which operand; -1: the constant
	value *ir.Array // the constant, of the part's shape
	view            // of the result
	at    int       // the part's offset, in elements
}

func isConcat(n *ir.Node) bool {
	if n.Op.Name != "concat" || n.Args[0].Def == nil || n.Args[0].Def.Op != ir.OpList || !n.Results[0].Type.Static() || n.Results[0].Type.NumElems() == 0 {
		return false
	}
	_, known := n.Args[1].Const()
	for _, a := range n.Args[0].Def.Args {
		known = known && a.Type.Static() && a.Type.DType == n.Results[0].Type.DType
	}
	return known && len(n.Args[0].Def.Args) > 0
}

// view is a shape with strides.
type view struct{ shape, strides []int }

func (v view) of(a *ir.Array, at int) *ir.Array { return a.View(v.shape, v.strides, a.Offset+at) }

// concat writes a concat down as copies of the elements of its list.
func (z *flattener) concat(r *region, n *ir.Node) {
	list := n.Args[0].Def.Args
	d, _ := n.Args[1].Const()
	dim := int(d.(int64))
	strides := ir.ContiguousStrides(n.Results[0].Type.Shape())
	j := &job{kind: jobMove, node: n, args: z.slotsOf(list)}
	at := 0
	for i, a := range list {
		shape := a.Type.Shape()
		j.parts = append(j.parts, part{arg: i, view: view{shape, strides}, at: at})
		at += shape[dim] * strides[dim]
	}
	z.add(r, j, n.Results)
}

// move makes j copies, or a gather, if everything that matters is known beforehand.
func (z *flattener) move(j *job) {
	n := j.node
	out := n.Results[0].Type
	if !out.IsTensor() || !out.Static() || out.NumElems() == 0 || !n.Args[0].Type.IsTensor() || !n.Args[0].Type.Static() {
		return
	}
	ints := func(i int) []int {
		v, err := ir.AsInts(z.known[j.args[i]])
		if err != nil {
			return nil
		}
		return v
	}
	switch n.Op.Name {
	case "pad":
		z.pad(j, ints(1), ints(2))
	case "unslice":
		z.unslice(j)
	case "gather":
		dim, known := z.known[j.args[1]].(int64)
		if index := n.Args[2].Type; known && isIndex(index) && index.Rank() == n.Args[0].Type.Rank() {
			j.kind, j.dims, j.args = jobGather, []int{int(dim)}, []int{j.args[0], j.args[2]}
		}
	case "take":
		if isIndex(n.Args[1].Type) && n.Args[0].Type.Rank() > 0 {
			j.kind = jobGather
		}
	}
}

func isIndex(t ir.Type) bool {
	return t.IsTensor() && t.Static() && (t.DType == dtype.I64 || t.DType == dtype.I32)
}

// pad writes a pad down as the copy of its operand and one slab of the value before and after it along every dim.
func (z *flattener) pad(j *job, lo, hi []int) {
	x, out := j.node.Args[0].Type.Shape(), j.node.Results[0].Type
	value, known := z.known[j.args[3]]
	if len(lo) != len(x) || len(hi) != len(x) || !known || slices.Min(append(append([]int{0}, lo...), hi...)) < 0 || j.node.Args[0].Type.NumElems() == 0 {
		return
	}
	one, ok := splat(out.DType, value)
	if !ok {
		return
	}
	strides := ir.ContiguousStrides(out.Shape())
	inner := part{arg: 0, view: view{x, strides}}
	rest := view{slices.Clone(out.Shape()), strides} // what the slabs so far leave
	at := 0
	slab := func(d, from, count int) {
		if count > 0 {
			p := part{arg: -1, view: view{slices.Clone(rest.shape), strides}, at: at + from*strides[d]}
			p.shape[d] = count
			p.value = one.View(p.shape, make([]int, len(p.shape)), 0)
			j.parts = append(j.parts, p)
		}
	}
	for d := range x {
		slab(d, 0, lo[d])
		slab(d, lo[d]+x[d], hi[d])
		at += lo[d] * strides[d]
		rest.shape[d] = x[d]
	}
	inner.at = at
	j.kind, j.args, j.parts = jobMove, j.args[:1], append(j.parts, inner)
}

// splat is a tensor without dims.
func splat(d dtype.DType, value ir.Datum) (*ir.Array, bool) {
	a := ir.NewArray(d)
	switch v := value.(type) {
	case int64:
		a.SetInt(0, v)
	case float64:
		a.SetFloat(0, v)
	case bool:
		if v {
			a.SetInt(0, 1)
		}
	default:
		return nil, false
	}
	return a, true
}

// unslice writes an unslice down as zeros and the copy of its operand.
func (z *flattener) unslice(j *job) {
	var v [4]int
	for i := range v {
		k, ok := z.known[j.args[i+1]].(int64)
		if !ok {
			return
		}
		v[i] = int(k)
	}
	dim, start, step, size := v[0], v[1], v[2], v[3]
	x, out := j.node.Args[0].Type.Shape(), j.node.Results[0].Type
	zero, _ := splat(out.DType, int64(0))
	strides := ir.ContiguousStrides(out.Shape())
	zeros := func(from, count int) {
		if count > 0 {
			p := part{arg: -1, view: view{out.Shape(), strides}, at: from * strides[dim]}
			p.shape[dim] = count
			p.value = zero.View(p.shape, make([]int, len(p.shape)), 0)
			j.parts = append(j.parts, p)
		}
	}
	end := start + x[dim]
	if step != 1 || x[dim] == 0 {
		zeros(0, size)
	} else {
		zeros(0, start)
		zeros(end, size-end)
	}
	if j.node.Args[0].Type.NumElems() > 0 {
		to := slices.Clone(strides)
		to[dim] *= step
		j.parts = append(j.parts, part{arg: 0, view: view{x, to}, at: start * strides[dim]})
	}
	j.kind, j.args = jobMove, j.args[:1]
}

// moveStep makes its result of parts.
type moveStep struct {
	*job
	kernel   *cpu.Map
	out      outcome
	launches []launches
}

func (s *moveStep) run(in *instance) error {
	a, err := s.out.place(in, nil)
	if err != nil {
		return ir.ErrorAt(s.node, err)
	}
	for i := range s.parts {
		p := &s.parts[i]
		from := p.value
		if from == nil {
			if from, err = in.array(s.args[p.arg]); err != nil {
				break
			}
		}
		in.ops = append(in.ops[:0], from, p.of(a, p.at))
		var l cpu.Launch
		if l, err = s.launches[i].get(in.ops, s.copy); err == nil {
			err = l.Run(in.ctx, in.ops...)
		}
		if err != nil {
			break
		}
	}
	s.out.set(in, a)
	return ir.ErrorAt(s.node, err)
}

func (s *moveStep) copy(ops []*ir.Array) (cpu.Launch, error) { return s.kernel.Launch(ops...) }

// gatherStep copies from where an index says.
type gatherStep struct {
	*job
	backend *cpu.Backend
	dim     int // -1: rows are taken
	out     outcome
	launches
}

func (s *gatherStep) run(in *instance) error {
	ops, err := in.operands(s.args, in.ops[:0])
	if err != nil {
		return ir.ErrorAt(s.node, err)
	}
	a, err := s.out.place(in, nil)
	if err != nil {
		return ir.ErrorAt(s.node, err)
	}
	ops = append(ops, a)
	in.ops = ops
	l, err := s.get(ops, s.prepare)
	if err == nil {
		err = l.Run(in.ctx, ops...)
	}
	if errors.Is(err, cpu.ErrIndex) { // the reference evaluation says which
		args := []ir.Datum{ops[0], ops[1]}
		if s.dim >= 0 {
			args = []ir.Datum{ops[0], int64(s.dim), ops[1]}
		}
		_, err = in.env.EvalNode(in.ctx, s.node, args)
	}
	s.out.set(in, a)
	return ir.ErrorAt(s.node, err)
}

func (s *gatherStep) prepare(ops []*ir.Array) (cpu.Launch, error) {
	if s.dim < 0 {
		return s.backend.Take(ops[0], ops[1], ops[2])
	}
	return s.backend.Gather(ops[0], ops[1], ops[2], s.dim)
}

// reshapeStep gives a view where strides allow it, and a copy otherwise.
type reshapeStep struct {
	*job
	kernel *cpu.Map
	out    outcome
	launches
}

func (s *reshapeStep) run(in *instance) error {
	x, err := in.array(s.args[0])
	if err != nil {
		return ir.ErrorAt(s.node, err)
	}
	if strides, ok := ir.ViewStrides(x.Shape, x.Strides, s.out.shape); ok {
		in.set(s.out.slot, x.View(s.out.shape, strides, x.Offset))
		return nil
	}
	a, err := s.out.place(in, nil)
	if err != nil {
		return ir.ErrorAt(s.node, err)
	}
	in.ops = append(in.ops[:0], x, a.View(x.Shape, ir.ContiguousStrides(x.Shape), a.Offset))
	l, err := s.get(in.ops, func(ops []*ir.Array) (cpu.Launch, error) { return s.kernel.Launch(ops...) })
	if err == nil {
		err = l.Run(in.ctx, in.ops...)
	}
	s.out.set(in, a)
	return ir.ErrorAt(s.node, err)
}
