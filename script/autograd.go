package script

import (
	"github.com/gtc-project/gtc/ir"
)

// Gradients that a script asks for itself. torch.autograd.grad is a grad node. backward() is one, too, with respect to all tensors on which
// requires_grad_() was called before; each of them has a memory for its .grad, to which the gradient is added.

// autogradGrad lowers torch.autograd.grad to a grad node.
func autogradGrad(l *lowering, args []value, kws []kwValue, e *callExpr) value {
	names := []string{"outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "allow_unused"}
	given := map[string]value{}
	for i, a := range args {
		if i >= len(names) {
			l.fail(e.pos, "torch.autograd.grad() takes at most %d arguments", len(names))
		}
		given[names[i]] = a
	}
	for _, k := range kws {
		given[k.name] = k.v
	}
	tensors := func(name string) []*ir.Value {
		v := given[name]
		if r, ok := isTensor(v); ok {
			return []*ir.Value{l.read(r)}
		}
		elems, ok := l.unrolled(v, nil)
		if !ok {
			l.fail(e.pos, "torch.autograd.grad(): argument '%s' must be a list of tensors whose length is known here", name)
		}
		out := make([]*ir.Value, len(elems))
		for i, x := range elems {
			out[i] = l.irOf(x)
		}
		return out
	}
	if given["outputs"] == nil || given["inputs"] == nil {
		l.fail(e.pos, "torch.autograd.grad() is missing a value for argument 'outputs' or 'inputs'")
	}
	outputs, inputs := tensors("outputs"), tensors("inputs")
	seeds := make([]*ir.Value, len(outputs))
	for i := range seeds {
		seeds[i] = l.constant(nil)
	}
	if g := given["grad_outputs"]; g != nil {
		if t, _ := typeOf(g); t.Kind != ir.KNone {
			if seeds = tensors("grad_outputs"); len(seeds) != len(outputs) {
				l.fail(e.pos, "torch.autograd.grad(): %d grad_outputs were given for %d outputs", len(seeds), len(outputs))
			}
		}
	}
	l.at(e.pos)
	opt := ir.OptionalOf(ir.AnyTensor)
	types := make([]ir.Type, len(inputs))
	for i := range types {
		types[i] = opt
	}
	var n *ir.Node
	l.try(func() {
		n = l.b.Node(ir.OpGrad, ir.Attrs{Count: len(outputs)}, nil, types, append(append(append([]*ir.Value{}, outputs...), seeds...), inputs...)...)
	})
	create, unused := flag(given["create_graph"]), flag(given["allow_unused"])
	out := make([]value, len(inputs))
	for i, v := range n.Results {
		if !unused {
			l.do("assert", l.op("py_not", l.op("is_none", v)), l.constant("One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."))
		}
		if !create {
			v = l.cutGrad(v)
		}
		out[i] = l.fresh(v, opt)
	}
	return l.freshList(ir.ListOf(opt), out)
}

// cutGrad detaches a gradient that may be None: without create_graph it is a constant to what follows.
func (l *lowering) cutGrad(v *ir.Value) *ir.Value {
	opt := ir.OptionalOf(ir.AnyTensor)
	none := l.op("is_none", v)
	return l.choose(none, func() content { return l.constant(nil) }, func() content { return l.op("detach", l.op("unwrap", v)) }, opt)
}

// flag reports whether an argument may be True.
func flag(v value) bool {
	s, ok := v.(*scalarV)
	if !ok {
		return false
	}
	d, isConst := s.v.Const()
	return !isConst || d == true
}

// leaf is a tensor that backward() differentiates with respect to.
type leaf struct{ ref, grad *refV }

func methodRequiresGrad(l *lowering, r *refV, args []value, kws []kwValue, _ Pos) value {
	for _, k := range kws {
		args = append(args, k.v)
	}
	if len(args) == 0 || flag(args[0]) {
		l.newLeaf(r)
	}
	return r
}

func (l *lowering) newLeaf(r *refV) {
	if l.leafOf(r) != nil || len(r.path) > 0 {
		return
	}
	t := ir.OptionalOf(ir.AnyTensor)
	grad := l.fresh(l.constant(nil), t)
	delete(l.sites, grad.cell.site)
	grad.cell.site += "#grad"
	l.sites[grad.cell.site] = grad.cell
	l.sites[r.cell.site] = r.cell
	l.leaves = append(l.leaves[:len(l.leaves):len(l.leaves)], leaf{r, &refV{t: t, cell: grad.cell}})
}

// leafOf is the leaf that r is, nil for other tensors.
func (l *lowering) leafOf(r *refV) *leaf {
	for i := range l.leaves {
		if f := &l.leaves[i]; f.ref.cell == r.cell && len(r.path) == 0 {
			return f
		}
	}
	return nil
}

// backward lowers y.backward(gradient) for one output or several.
func (l *lowering) backward(outputs, args []value, kws []kwValue, what string, p Pos) value {
	names := []string{"gradient", "retain_graph", "create_graph", "inputs"}
	given := map[string]value{}
	if len(args) > len(names) {
		l.fail(p, "%s(): too many arguments", what)
	}
	for i, a := range args {
		given[names[i]] = a
	}
	for _, k := range kws {
		name := k.name
		if name == "grad_tensors" {
			name = "gradient"
		}
		given[name] = k.v
	}
	if len(l.leaves) == 0 {
		l.fail(p, "%s(): no tensor here requires grad: call requires_grad_() on those whose .grad is wanted, or use torch.autograd.grad", what)
	}
	seeds := make([]*ir.Value, len(outputs))
	for i := range seeds {
		seeds[i] = l.constant(nil)
	}
	if g := given["gradient"]; g != nil {
		if t, _ := typeOf(g); t.Kind != ir.KNone {
			elems := []value{g}
			if _, one := isTensor(g); !one {
				elems, _ = l.unrolled(g, nil)
			}
			if len(elems) != len(outputs) {
				l.fail(p, "%s(): %d gradients were given for %d outputs", what, len(elems), len(outputs))
			}
			for i, e := range elems {
				seeds[i] = l.irOf(e)
			}
		}
	}
	var operands []*ir.Value
	for _, y := range outputs {
		operands = append(operands, l.irOf(y))
	}
	operands = append(operands, seeds...)
	types := make([]ir.Type, len(l.leaves))
	for i, f := range l.leaves {
		operands = append(operands, l.read(f.ref))
		types[i] = f.grad.t
	}
	l.at(p)
	var n *ir.Node
	l.try(func() { n = l.b.Node(ir.OpGrad, ir.Attrs{Count: len(outputs)}, nil, types, operands...) })
	for i, f := range l.leaves {
		g := n.Results[i]
		if !flag(given["create_graph"]) {
			g = l.cutGrad(g)
		}
		old := l.read(f.grad)
		l.write(f.grad, l.choose(l.op("is_none", g), func() content { return old }, func() content {
			return l.choose(l.op("is_none", old), func() content { return g }, func() content {
				return l.callAten("add", []value{l.fresh(l.unwrapped(old, ir.AnyTensor), ir.AnyTensor), l.fresh(l.unwrapped(g, ir.AnyTensor), ir.AnyTensor)}, nil)
			}, f.grad.t)
		}, f.grad.t))
	}
	return l.none()
}

func autogradBackward(l *lowering, args []value, kws []kwValue, e *callExpr) value {
	l.arity(args, 1, 4, "torch.autograd.backward", e.pos)
	outputs := []value{args[0]}
	if _, one := isTensor(args[0]); !one {
		var ok bool
		if outputs, ok = l.unrolled(args[0], nil); !ok {
			l.fail(e.pos, "torch.autograd.backward() takes a list of tensors whose length is known here")
		}
	}
	return l.backward(outputs, args[1:], kws, "torch.autograd.backward", e.pos)
}
