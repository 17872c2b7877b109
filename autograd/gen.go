package autograd

import (
	"errors"
	"fmt"

	"github.com/gtc-project/gtc/ir"
)

// cotangents maps a forward value to its cotangent; absent means zero.
type cotangents map[*ir.Value]*ir.Value

// gen extends a function by the backward part of some of its nodes.
type gen struct {
	f *ir.Func
	b *ir.Builder
	// active tells by id which values depend on what is differentiated for.
	active []bool
	// before holds nodes to put in front of a node once all is built.
	before map[*ir.Node][]*ir.Node
}

func newGen(f *ir.Func) *gen {
	return &gen{f: f, b: ir.NewBuilder(f), active: make([]bool, f.NumValues()), before: map[*ir.Node][]*ir.Node{}}
}

// zeros is the zero cotangent of v.
func (d *gen) zeros(v *ir.Value) *ir.Value {
	if v.Type.Static() && v.Type.DType.IsFloat() {
		return d.b.Op("full", d.b.Ints(v.Type.Shape()...), d.b.Float(0), d.b.DType(v.Type.DType))
	}
	return d.b.Op("or_zeros", d.b.None(), v)
}

// add adds ct to the cotangent of v.
func (d *gen) add(cts cotangents, v, ct *ir.Value) {
	if ct == nil || ct.Type.Kind == ir.KNone {
		return
	}
	old := cts[v]
	if old == nil {
		cts[v] = ct
		return
	}
	cts[v] = d.sum(old, ct)
}

// sum adds cotangents of one value.
func (d *gen) sum(x, y *ir.Value) *ir.Value {
	if known(x.Type) && known(y.Type) && x.Type.DType == y.Type.DType {
		return d.b.Op("add", x, y)
	}
	return d.b.Op("ct_add", x, y)
}

func known(t ir.Type) bool { return t.IsFloatTensor() && t.Ranked }

// backward builds the backward part of nodes, last first: cts holds cotangents of their results and gets those of what they read.
func (d *gen) backward(nodes []*ir.Node, cts cotangents) {
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		needed := false
		for _, r := range n.Results {
			needed = needed || cts[r] != nil && d.varied(r)
		}
		if !needed || !d.reads(n) {
			continue
		}
		d.b.Pos = n.Pos
		switch n.Op {
		case ir.OpIf:
			d.backIf(n, cts)
		case ir.OpFor, ir.OpWhile:
			d.backLoop(n, cts)
		case ir.OpAten, ir.OpVjp:
			d.backCall(n, cts)
		case ir.OpFused:
			d.b.Failf("fused nodes have no gradient: differentiate before fusing")
		default:
			d.backOp(n, cts)
		}
	}
}

// reads reports whether n, with its blocks, reads anything that depends on what is differentiated for.
func (d *gen) reads(n *ir.Node) bool {
	for _, a := range n.Args {
		if d.varied(a) {
			return true
		}
	}
	if len(n.Blocks) > 0 {
		for _, c := range ir.Captures(n.Blocks...) {
			if d.varied(c) {
				return true
			}
		}
	}
	return false
}

// backOp applies the rule of an op.
func (d *gen) backOp(n *ir.Node, cts cotangents) {
	if n.Op.Grad == nil {
		d.b.Failf("%s: %s has no gradient", n.Pos, n.Op.Name)
	}
	ct := make([]*ir.Value, len(n.Results))
	for i, r := range n.Results {
		if c := cts[r]; c != nil {
			ct[i] = d.definite(n, c, r)
		}
	}
	var out []*ir.Value
	if err := ir.Try(func() { out = n.Op.Grad(d.b, n, ct) }); err != nil {
		if errors.Is(err, ir.ErrNeedsTypes) {
			err = fmt.Errorf("%w: the gradient of %s depends on them", err, n.Op.Name)
		}
		d.b.Fail(&ir.Error{Pos: n.Pos, Op: n.Op.Name, Err: err})
	}
	for i, c := range out {
		if a := n.Args[i]; c != nil && d.varied(a) {
			d.add(cts, a, c)
		}
	}
}

// definite is a cotangent that may be None as one that is not, as rules expect them.
func (d *gen) definite(n *ir.Node, ct, r *ir.Value) *ir.Value {
	switch ct.Type.Kind {
	case ir.KTensor:
		if n.Op.Class == ir.Host || ct.Type.Specialised() || !r.Type.Specialised() {
			return ct
		}
	case ir.KList, ir.KTuple, ir.KDict:
		return ct
	}
	if n.Op == ir.OpUnwrap || n.Op == ir.OpGraft || n.Op.Class == ir.Host && r.Type.Kind == ir.KTensor {
		return ct // passed on as it is
	}
	if n.Op.Class == ir.Host {
		return d.b.Op("ct_shell", ct, r)
	}
	if r.Type.Kind == ir.KTensor {
		return d.b.Op("or_zeros", ct, r)
	}
	return ct
}

// backCall emits the vjp of a generic call.
func (d *gen) backCall(n *ir.Node, cts cotangents) {
	args := append([]*ir.Value{}, n.Args...)
	for _, r := range n.Results {
		ct := cts[r]
		switch {
		case ct == nil:
			ct = d.b.None()
		case ct.Type.Kind != ir.KTensor && r.Type.IsFloatTensor():
			ct = d.b.Op("or_zeros", ct, r)
		}
		args = append(args, ct)
	}
	types := make([]ir.Type, len(n.Args))
	for i, a := range n.Args {
		types[i] = ir.NoneT
		if d.varied(a) {
			types[i] = vjpType(a.Type)
		}
	}
	order := 1
	if n.Op == ir.OpVjp {
		order = n.Attrs.Order + 1
	}
	for i, g := range d.b.Vjp(n.Attrs.Callee, order, types, args...) {
		if a := n.Args[i]; d.varied(a) {
			d.add(cts, a, g)
		}
	}
}

// vjpType is the type of the gradient of an operand of a generic call, as far as the operand's type tells.
func vjpType(t ir.Type) ir.Type {
	switch t.Kind {
	case ir.KTensor:
		return ir.OptionalOf(t)
	case ir.KList:
		return ir.OptionalOf(ir.ListOf(ir.OptionalOf(t.Elems[0])))
	}
	return ir.Any
}

// splice puts the nodes of before into their places.
func (d *gen) splice(b *ir.Block) {
	out := make([]*ir.Node, 0, len(b.Nodes))
	for _, n := range b.Nodes {
		out = append(append(out, d.before[n]...), n)
		for _, nb := range n.Blocks {
			d.splice(nb)
		}
	}
	b.Nodes = out
}
