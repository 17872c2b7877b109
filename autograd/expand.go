package autograd

import (
	"fmt"

	"github.com/gtc-project/gtc/ir"
)

// ExpandGradNodes replaces the grad nodes of f (torch.autograd.grad) by the gradients that they stand for, in program order, so that
// a grad node may differentiate what an earlier one gave. It changes f.
//
// A grad node differentiates the nodes that lie before it in its own block and in the enclosing ones. An input that no output
// depends on gives None.
func ExpandGradNodes(f *ir.Func) error {
	has := false
	f.Body.Walk(func(n *ir.Node) { has = has || n.Op == ir.OpGrad })
	if !has {
		return nil
	}
	return expandIn(f)
}

func expandIn(f *ir.Func) error {
	x := &expander{f: f, subst: map[*ir.Value]*ir.Value{}, before: map[*ir.Node][]*ir.Node{}}
	if err := x.block(f.Body, nil); err != nil {
		return fmt.Errorf("torch.autograd.grad in %s: %w", f.Name, err)
	}
	(&gen{before: x.before}).splice(f.Body)
	f.Replace(x.subst)
	return nil
}

type expander struct {
	f     *ir.Func
	subst map[*ir.Value]*ir.Value // results of grad nodes
	// before holds nodes to put in front of a node once all is built.
	before map[*ir.Node][]*ir.Node
}

// block expands the grad nodes of b; before are the nodes of enclosing blocks that run before it.
func (x *expander) block(b *ir.Block, before []*ir.Node) error {
	var done []*ir.Node // the nodes of b so far
	for _, n := range b.Nodes {
		for i, a := range n.Args {
			n.Args[i] = x.latest(a)
		}
		for _, nb := range n.Blocks {
			if err := x.block(nb, append(before[:len(before):len(before)], done...)); err != nil {
				return err
			}
		}
		if n.Op != ir.OpGrad {
			done = append(done, n)
			continue
		}
		back, err := x.grad(n, append(before[:len(before):len(before)], done...))
		if err != nil {
			return err
		}
		done = append(done, back...)
	}
	b.Nodes = done
	return nil
}

func (x *expander) latest(v *ir.Value) *ir.Value {
	for r, ok := x.subst[v]; ok; r, ok = x.subst[v] {
		v = r
	}
	return v
}

// grad builds the gradient for one grad node from the nodes that run before it.
func (x *expander) grad(n *ir.Node, nodes []*ir.Node) ([]*ir.Node, error) {
	outs := n.Args[:n.Attrs.Count]
	seeds := n.Args[n.Attrs.Count : 2*n.Attrs.Count]
	ins := n.Args[2*n.Attrs.Count:]
	d := newGen(x.f)
	d.before = x.before
	for _, v := range ins {
		d.vary(v)
	}
	for _, m := range nodes {
		d.nodeActivity(m)
	}
	blk := &ir.Block{}
	d.b.Block, d.b.Pos = blk, n.Pos
	grads := make([]*ir.Value, len(ins))
	err := ir.Try(func() {
		cts := cotangents{}
		for i, o := range outs {
			seed := seeds[i]
			if d, ok := seed.Const(); seed.Type.Kind == ir.KNone || ok && d == nil {
				seed = nil
			}
			if seed == nil {
				seed = d.b.Op("ct_ones", o)
			}
			if d.varied(o) {
				d.add(cts, o, seed)
			}
		}
		d.backward(d.until(nodes, outs), cts)
		for i, v := range ins {
			if grads[i] = cts[v]; grads[i] == nil {
				grads[i] = d.b.None()
			}
			x.subst[n.Results[i]] = grads[i]
		}
		d.b.Yield(grads...)
	})
	if err != nil {
		return nil, err
	}
	x.f.SweepBlock(blk, func(m *ir.Node) bool { return m.Op.Name == "ct_ones" })
	return blk.Nodes[:len(blk.Nodes)-1], nil
}

// until leaves out the nodes after the last one that gives an output.
func (d *gen) until(nodes []*ir.Node, outs []*ir.Value) []*ir.Node {
	for i := len(nodes) - 1; i >= 0; i-- {
		for _, r := range nodes[i].Results {
			for _, o := range outs {
				if r == o {
					return nodes[:i+1]
				}
			}
		}
	}
	return nil
}
