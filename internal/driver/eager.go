package driver

import (
	"context"
	"fmt"

	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/tensor"
)

// eagerRun runs a function op by op through the eager API: every call of PyTorch's functions goes through package tensor, which records
// it on its tape, and gradients are the tape's. Control flow, numbers and containers are the reference evaluator's.
type eagerRun struct {
	scope   *tensor.Scope
	handles map[*ir.Array]*tensor.Tensor // the tensor behind every array that the evaluator holds
	// differentiates says that the program calls torch.autograd.grad, which may name any tensor: all are recorded then.
	differentiates bool
}

// opEagerGraft stands for graft in a function that runs eagerly: the evaluator does not offer host ops to its hook.
var opEagerGraft = &ir.Op{Name: "graft", Class: ir.Generic, NoGrad: true}

// RunEager does what Run does for scripts, eagerly.
func RunEager(ctx context.Context, m *Model, bound *Bound, e *engine, o *Options) ([]npz.Named, error) {
	r := &eagerRun{scope: tensor.NewScope(e.Engine), handles: map[*ir.Array]*tensor.Tensor{}}
	args := append([]ir.Datum{}, bound.Args...)
	for _, w := range m.Weights {
		args = append(args, w.Array)
	}
	f := m.Func.Clone()
	f.Body.Walk(func(n *ir.Node) {
		if n.Op.Name == "graft" {
			n.Op = opEagerGraft
		}
		r.differentiates = r.differentiates || n.Op == ir.OpGrad
	})
	grad := o.Grad && len(bound.Cotangents) > 0
	leaves := r.leaves(m, args, grad)
	ev := &ir.Evaluator{Kernel: r.node, RNG: ir.RNG{Seed: o.Seed}}
	results, err := ev.Run(ctx, f, args...)
	if err != nil {
		return nil, err
	}
	results = m.own(results)
	arrays, err := Flatten(results...)
	if err != nil {
		return nil, err
	}
	var out []npz.Named
	for i, a := range arrays {
		out = append(out, npz.Named{Name: fmt.Sprintf("out.%d", i), Array: a})
	}
	if !grad {
		return out, nil
	}
	if _, err := cotangents(results, bound.Cotangents); err != nil { // only for its checks
		return nil, err
	}
	grads, err := r.gradients(arrays, bound, leaves)
	return append(out, grads...), err
}

// leaf is a floating-point input with its key.
type leaf struct {
	key string
	t   *tensor.Tensor
}

// leaves makes tensors of the floating-point inputs. Each gets an array of its own, so that arrays tell tensors apart.
func (r *eagerRun) leaves(m *Model, args []ir.Datum, grad bool) []leaf {
	var out []leaf
	c := &Call{model: m, args: args}
	for i := range args {
		for _, l := range Leaves(c.name(i), args[i]) {
			t := tensor.FromArray(l.Array).With(r.scope)
			if grad && l.Array.DType.IsFloat() && c.model.wantsGradient(i, c.args[i]) {
				t = t.RequiresGrad()
				out = append(out, leaf{l.Key, t})
			}
			r.handles[l.Array] = r.watched(t)
		}
	}
	return out
}

// node runs one node; it is the evaluator's hook.
func (r *eagerRun) node(_ context.Context, n *ir.Node, args []ir.Datum) ([]ir.Datum, bool, error) {
	switch {
	case n.Op == ir.OpAten:
		return r.apply(tensor.Op{Callee: n.Attrs.Callee, Count: len(n.Results)}, args)
	case n.Op == ir.OpVjp:
		return r.apply(tensor.Op{Callee: n.Attrs.Callee, Order: n.Attrs.Order, Count: n.Attrs.Count}, args)
	case n.Op == ir.OpGrad:
		return r.grad(n.Attrs.Count, args)
	case n.Op == opEagerGraft:
		return r.graft(args)
	case n.Op.Name == "detach":
		a, ok := args[0].(*ir.Array)
		if !ok {
			return nil, false, nil
		}
		return r.apply(tensor.Op{Callee: "detach", Count: 1}, []ir.Datum{a})
	}
	if !n.Op.NoGrad {
		for _, l := range Leaves("", ir.Tuple(args)) {
			if t := r.handles[l.Array]; t != nil && t.NeedsGrad() {
				return nil, false, fmt.Errorf("%s has no eager form, so its gradient would be lost; leave out --eager", n.Op.Name)
			}
		}
	}
	return nil, false, nil
}

// apply dispatches one call.
func (r *eagerRun) apply(op tensor.Op, args []ir.Datum) ([]ir.Datum, bool, error) {
	operands := make([]any, len(args))
	for i, a := range args {
		operands[i] = r.operand(a)
	}
	results, err := tensor.Apply(op, operands)
	if err != nil {
		return nil, false, err
	}
	out := make([]ir.Datum, len(results))
	for i, x := range results {
		out[i] = r.result(x)
	}
	return out, true, nil
}

// operand is a datum as package tensor takes it.
func (r *eagerRun) operand(d ir.Datum) any {
	switch d := d.(type) {
	case *ir.Array:
		return r.tensor(d)
	case ir.List:
		elems, tensors := make([]any, d.Len()), false
		for i, e := range d.Elems() {
			if a, ok := e.(*ir.Array); ok {
				elems[i], tensors = r.tensor(a), true
			}
		}
		if tensors {
			return elems
		}
	}
	return d
}

func (r *eagerRun) tensor(a *ir.Array) *tensor.Tensor {
	t := r.handles[a]
	if t == nil {
		t = r.watched(tensor.FromArray(a).With(r.scope))
		r.handles[a] = t
	}
	return t
}

// watched makes a tensor without a history a leaf of its own where the program may ask for its gradient.
func (r *eagerRun) watched(t *tensor.Tensor) *tensor.Tensor {
	if r.differentiates && t.Err() == nil && t.Array().DType.IsFloat() && !t.NeedsGrad() {
		return t.RequiresGrad()
	}
	return t
}

// result is what package tensor gives as a datum. A call that gives an operand back unchanged must not take over the operand's tensor.
func (r *eagerRun) result(x any) ir.Datum {
	switch x := x.(type) {
	case *tensor.Tensor:
		a := x.Array()
		if old := r.handles[a]; old != nil && old != x {
			a = a.View(a.Shape, a.Strides, a.Offset)
		}
		r.handles[a] = r.watched(x)
		return a
	case []any:
		elems := make([]ir.Datum, len(x))
		for i, e := range x {
			elems[i] = r.result(e)
		}
		return ir.NewList(elems...)
	}
	return x
}

// graft gives the value of one tensor with the gradient of another: like + detach(x - like) would round, so the value is taken as it is.
func (r *eagerRun) graft(args []ir.Datum) ([]ir.Datum, bool, error) {
	x, ok := args[0].(*ir.Array)
	like, okLike := args[1].(*ir.Array)
	if !ok || !okLike {
		return []ir.Datum{args[0]}, true, nil
	}
	a := x.View(x.Shape, x.Strides, x.Offset)
	r.handles[a] = tensor.Graft(r.tensor(x), r.tensor(like))
	return []ir.Datum{a}, true, nil
}

// grad is torch.autograd.grad: outputs, then as many grad_outputs or None, then inputs.
func (r *eagerRun) grad(outputs int, args []ir.Datum) ([]ir.Datum, bool, error) {
	var outs, inputs []*tensor.Tensor
	var seeds []*ir.Array
	for i, d := range args {
		a, ok := d.(*ir.Array)
		switch {
		case i >= outputs && i < 2*outputs:
			seeds = append(seeds, a)
		case !ok:
			return nil, false, fmt.Errorf("torch.autograd.grad: operand %d is %s, not a tensor", i, ir.TypeOf(d))
		case i < outputs:
			outs = append(outs, r.tensor(a))
		default:
			inputs = append(inputs, r.tensor(a))
		}
	}
	gs, err := gradsOf(outs, seeds, inputs)
	if err != nil {
		return nil, false, err
	}
	out := make([]ir.Datum, len(gs))
	for i, g := range gs {
		if g != nil {
			out[i] = r.result(g)
		}
	}
	return out, true, nil
}

// gradsOf sums the gradients of several outputs; nil where an input has none. The gradients can be differentiated again.
func gradsOf(outs []*tensor.Tensor, seeds []*ir.Array, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	sums := make([]*tensor.Tensor, len(inputs))
	var wanted []*tensor.Tensor
	var at []int
	for i, x := range inputs {
		if x.NeedsGrad() {
			wanted, at = append(wanted, x), append(at, i)
		}
	}
	for k, t := range outs {
		if !t.NeedsGrad() || len(wanted) == 0 {
			continue
		}
		opts := []tensor.BackwardOption{tensor.CreateGraph(), tensor.AllowUnused()}
		if seeds[k] != nil {
			opts = append(opts, tensor.Cotangent(tensor.FromArray(seeds[k]).With(t.Scope())))
		}
		gs, err := tensor.Grad(t, wanted, opts...)
		if err != nil {
			return nil, err
		}
		for j, g := range gs {
			switch i := at[j]; {
			case g == nil:
			case sums[i] == nil:
				sums[i] = g
			default:
				sums[i] = sums[i].Add(g)
			}
		}
	}
	for _, s := range sums {
		if s != nil && s.Err() != nil {
			return nil, s.Err()
		}
	}
	return sums, nil
}

// gradients names the gradients of the results with respect to the leaves, and those of one of them again.
func (r *eagerRun) gradients(results []*ir.Array, bound *Bound, leaves []leaf) ([]npz.Named, error) {
	var outs []*tensor.Tensor
	var seeds []*ir.Array
	for i, a := range results {
		if ct := bound.Cotangents[i]; ct != nil && r.handles[a] != nil && a.DType.IsFloat() {
			outs, seeds = append(outs, r.handles[a]), append(seeds, ct)
		}
	}
	inputs := make([]*tensor.Tensor, len(leaves))
	for i, l := range leaves {
		inputs[i] = l.t
	}
	grads, err := gradsOf(outs, seeds, inputs)
	if err != nil {
		return nil, err
	}
	var named []npz.Named
	for i, l := range leaves {
		named = append(named, npz.Named{Name: "grad." + l.key, Array: arrayOrZeros(grads[i], l.t)})
	}
	if bound.V == "" {
		return named, nil
	}
	for i, l := range leaves {
		if l.key != bound.V {
			continue
		}
		second := make([]*tensor.Tensor, 1)
		if grads[i] != nil {
			if second, err = gradsOf([]*tensor.Tensor{grads[i]}, []*ir.Array{bound.Vector}, []*tensor.Tensor{l.t}); err != nil {
				return nil, err
			}
		}
		return append(named, npz.Named{Name: "grad2." + l.key, Array: arrayOrZeros(second[0], l.t)}), nil
	}
	return nil, fmt.Errorf("v.%s belongs to no floating-point tensor argument", bound.V)
}

func arrayOrZeros(g, like *tensor.Tensor) *ir.Array {
	if g != nil {
		return g.Array()
	}
	a := like.Array()
	return ir.NewArray(a.DType, a.Shape...)
}
