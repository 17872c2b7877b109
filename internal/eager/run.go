// Package eager runs IR functions op by op on tensors: every call of PyTorch's functions goes through package tensor, which records it on its tape and tells its
// tracer. Control flow, numbers and containers are the reference evaluator's. The layers of package nn and `gtc run --eager` run this way.
package eager

import (
	"context"
	"fmt"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/tensor"
)

// Program is a function prepared for such runs; it may be run by several goroutines at once.
type Program struct {
	f *ir.Func
	// differentiates says that the program calls torch.autograd.grad, which may name any tensor: all are recorded then.
	differentiates bool
}

// standIns are ops that a run answers itself. The evaluator does not offer host ops to its hook, so they get another class.
var standIns = map[string]*ir.Op{}

func init() {
	for _, name := range []string{"graft", "rng", "manual_seed", "item_int", "item_float", "item_bool"} {
		standIns[name] = &ir.Op{Name: name, Class: ir.Generic, NoGrad: true}
	}
}

// Prepare makes a program of a generic function, which it leaves as it is.
func Prepare(f *ir.Func) *Program {
	p := &Program{f: f.Clone()}
	p.f.Body.Walk(func(n *ir.Node) {
		if op := standIns[n.Op.Name]; op != nil {
			n.Op = op
		}
		p.differentiates = p.differentiates || n.Op == ir.OpGrad
	})
	return p
}

// Run is one run of a program: it knows the tensor behind every array that the evaluator holds.
type Run struct {
	p       *Program
	scope   *tensor.Scope
	handles map[*ir.Array]*tensor.Tensor
}

// NewRun starts a run; tensors that the function makes itself belong to scope.
func (p *Program) NewRun(scope *tensor.Scope) *Run {
	return &Run{p: p, scope: scope, handles: map[*ir.Array]*tensor.Tensor{}}
}

// Do gives the results for operands whose arrays come from Put or Bind, or stand for themselves.
func (r *Run) Do(ctx context.Context, args []ir.Datum) ([]ir.Datum, error) {
	ev := &ir.Evaluator{Kernel: r.node}
	return ev.Run(ctx, r.p.f, args...)
}

// Put gives an array for t. Different tensors of one array get arrays of their own, which tell them apart.
func (r *Run) Put(t *tensor.Tensor) *ir.Array {
	a := t.Array()
	if old := r.handles[a]; old != nil && old != t {
		a = a.View(a.Shape, a.Strides, a.Offset)
	}
	r.Bind(a, t)
	return a
}

// Bind says that a stands for t.
func (r *Run) Bind(a *ir.Array, t *tensor.Tensor) { r.handles[a] = r.watched(t) }

// Tensor is the tensor behind an array.
func (r *Run) Tensor(a *ir.Array) *tensor.Tensor {
	t := r.handles[a]
	if t == nil {
		t = r.watched(tensor.FromArray(a).With(r.scope))
		r.handles[a] = t
	}
	return t
}

// node runs one node; it is the evaluator's hook.
func (r *Run) node(_ context.Context, n *ir.Node, args []ir.Datum) ([]ir.Datum, bool, error) {
	switch {
	case n.Op == ir.OpAten:
		return r.apply(tensor.Op{Callee: n.Attrs.Callee, Count: len(n.Results)}, args)
	case n.Op == ir.OpVjp:
		return r.apply(tensor.Op{Callee: n.Attrs.Callee, Order: n.Attrs.Order, Count: n.Attrs.Count}, args)
	case n.Op == ir.OpGrad:
		return r.grad(n.Attrs.Count, args)
	}
	switch n.Op.Name {
	case "graft":
		return r.graft(args)
	case "rng":
		return []ir.Datum{r.scope.Key()}, true, nil
	case "manual_seed":
		seed, _ := args[0].(int64)
		r.scope.Generator().Seed(uint64(seed))
		return nil, true, nil
	case "item_int", "item_float", "item_bool":
		return r.read(n.Op.Name, args[0])
	case "detach":
		a, ok := args[0].(*ir.Array)
		if !ok {
			return nil, false, nil
		}
		return r.apply(tensor.Op{Callee: "detach", Count: 1}, []ir.Datum{a})
	}
	if !n.Op.NoGrad {
		for _, d := range args {
			if r.needsGrad(d) {
				return nil, false, fmt.Errorf("%s has no eager form, so its gradient would be lost; run it compiled", n.Op.Name)
			}
		}
	}
	return nil, false, nil
}

func (r *Run) needsGrad(d ir.Datum) bool {
	switch d := d.(type) {
	case *ir.Array:
		t := r.handles[d]
		return t != nil && t.NeedsGrad()
	case ir.List:
		for _, e := range d.Elems() {
			if r.needsGrad(e) {
				return true
			}
		}
	case ir.Tuple:
		for _, e := range d {
			if r.needsGrad(e) {
				return true
			}
		}
	}
	return false
}

// apply dispatches one call.
func (r *Run) apply(op tensor.Op, args []ir.Datum) ([]ir.Datum, bool, error) {
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
		out[i] = r.datum(x)
	}
	return out, true, nil
}

// read takes a number out of a tensor, by the methods that a tracer listens to.
func (r *Run) read(op string, d ir.Datum) ([]ir.Datum, bool, error) {
	a, ok := d.(*ir.Array)
	if !ok {
		return nil, false, fmt.Errorf("%s of %s", op, ir.TypeOf(d))
	}
	var v ir.Datum
	var err error
	switch t := r.Tensor(a); op {
	case "item_int":
		v, err = t.Int()
	case "item_bool":
		v, err = t.Bool()
	default:
		v, err = t.Item()
	}
	return []ir.Datum{v}, err == nil, err
}

// operand is a datum as package tensor takes it.
func (r *Run) operand(d ir.Datum) any {
	switch d := d.(type) {
	case *ir.Array:
		return r.Tensor(d)
	case ir.List:
		elems, tensors := make([]any, d.Len()), false
		for i, e := range d.Elems() {
			if a, ok := e.(*ir.Array); ok {
				elems[i], tensors = r.Tensor(a), true
			}
		}
		if tensors {
			return elems
		}
	}
	return d
}

// watched makes a tensor without a history a leaf of its own where the program may ask for its gradient.
func (r *Run) watched(t *tensor.Tensor) *tensor.Tensor {
	if r.p.differentiates && t.Err() == nil && t.Array().DType.IsFloat() && !t.NeedsGrad() {
		return t.RequiresGrad()
	}
	return t
}

// datum is what package tensor gives as a datum.
func (r *Run) datum(x any) ir.Datum {
	switch x := x.(type) {
	case *tensor.Tensor:
		return r.Put(x)
	case []any:
		elems := make([]ir.Datum, len(x))
		for i, e := range x {
			elems[i] = r.datum(e)
		}
		return ir.NewList(elems...)
	}
	return x
}

// graft gives the value of one tensor with the gradient of another: like + detach(x - like) would round, so the value is taken as it is.
func (r *Run) graft(args []ir.Datum) ([]ir.Datum, bool, error) {
	x, ok := args[0].(*ir.Array)
	like, okLike := args[1].(*ir.Array)
	if !ok || !okLike {
		return []ir.Datum{args[0]}, true, nil
	}
	a := x.View(x.Shape, x.Strides, x.Offset)
	r.handles[a] = tensor.Graft(r.Tensor(x), r.Tensor(like))
	return []ir.Datum{a}, true, nil
}

// grad is torch.autograd.grad: outputs, then as many grad_outputs or None, then inputs.
func (r *Run) grad(outputs int, args []ir.Datum) ([]ir.Datum, bool, error) {
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
			outs = append(outs, r.Tensor(a))
		default:
			inputs = append(inputs, r.Tensor(a))
		}
	}
	gs, err := Grads(outs, seeds, inputs)
	if err != nil {
		return nil, false, err
	}
	out := make([]ir.Datum, len(gs))
	for i, g := range gs {
		if g != nil {
			out[i] = r.datum(g)
		}
	}
	return out, true, nil
}

// Grads sums the gradients of several outputs, each weighted by its seed (nil: one); nil where an input has none. The gradients can be differentiated again.
func Grads(outs []*tensor.Tensor, seeds []*ir.Array, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
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
