package tensor

import (
	"container/heap"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/runtime"
)

// The tape: every differentiable result points to the entry that made it, an entry to the values of its operands. Nothing is recursive, so that a
// chain of 100,000 operations runs backward and is freed without deep stacks.

// value is one tensor-valued result in the history of a computation.
type value struct {
	entry *entry // nil for a leaf
	index int    // result number; for a list result, elem is the index in it
	elem  int    // -1 for a plain tensor
	leaf  *leaf
	hooks []func(*Tensor) *Tensor
}

// entry is one recorded call.
type entry struct {
	seq      uint64
	op       Op
	args     []any      // as given to dispatch; nil once freed
	versions []uint64   // of the storages of the tensors in args, in order of eachTensor
	inputs   []operand  // the tensors in args that have a history
	results  []resultOf // shape and dtype of every result
	hooked   []*value   // those of its results that have hooks
	scope    *Scope
	where    string
}

// operand names one differentiable operand of an entry.
type operand struct {
	arg, elem int // elem is -1 unless the argument is a list
	val       *value
}

type resultOf struct {
	list []resultOf // non-nil for a list
	like *ir.Array  // a tensor: dtype and shape only
}

var sequence atomic.Uint64

// RequiresGrad makes t a leaf whose gradient Backward accumulates; it gives t. Only floating-point tensors may require a gradient.
func (t *Tensor) RequiresGrad() *Tensor {
	if t.err != nil {
		return t
	}
	if !t.arr.DType.IsFloat() {
		return failed(&opError{op: "RequiresGrad", where: callerLine(), err: fmt.Errorf("only floating-point tensors can require gradients, this one is %s", t.arr.DType)})
	}
	if t.hist == nil {
		t.leaf = &leaf{}
		t.hist = &value{elem: -1, leaf: t.leaf}
	}
	return t
}

// NeedsGrad reports whether t is differentiable: a leaf that requires a gradient, or computed from one.
func (t *Tensor) NeedsGrad() bool { return t.err == nil && t.history() != nil }

// IsLeaf reports whether t was not computed by a recorded operation.
func (t *Tensor) IsLeaf() bool { return t.hist == nil || t.hist.entry == nil }

// Grad is the gradient that Backward accumulated in a leaf; nil before.
func (t *Tensor) Grad() *Tensor {
	if t.leaf == nil {
		return nil
	}
	return t.leaf.grad
}

// SetGrad replaces the accumulated gradient; nil clears it.
func (t *Tensor) SetGrad(g *Tensor) {
	if t.leaf != nil {
		t.leaf.grad = g
	}
}

// ZeroGrad clears the accumulated gradient.
func (t *Tensor) ZeroGrad() { t.SetGrad(nil) }

// Detach gives the same values without gradient history; it shares the storage.
func (t *Tensor) Detach() *Tensor {
	if t.err != nil {
		return t
	}
	return Call("detach", t)
}

// RegisterHook has f called with the gradient of t in every Backward; a non-nil result replaces the gradient.
func (t *Tensor) RegisterHook(f func(grad *Tensor) *Tensor) error {
	if t.err != nil {
		return t.err
	}
	h := t.history()
	if h == nil {
		return errors.New("tensor.RegisterHook: the tensor does not require a gradient")
	}
	if h.entry != nil && len(h.hooks) == 0 {
		h.entry.hooked = append(h.entry.hooked, h)
	}
	h.hooks = append(h.hooks, f)
	return nil
}

// history is how the current value of t was computed. Where the storage was written to since the handle was made, that is a view of the storage's new history.
func (t *Tensor) history() *value {
	if t.store == nil || t.store.base == nil || t.version == t.store.version.Load() {
		return t.hist
	}
	t.hist = viewOfBase(t)
	t.version = t.store.version.Load()
	return t.hist
}

// record appends a call to the tape and gives its results their history.
func record(op Op, args, results []any, scope *Scope) {
	if scope != nil && scope.noGrad {
		return
	}
	var inputs []operand
	for i, a := range args {
		switch a := a.(type) {
		case *Tensor:
			if h := a.history(); h != nil {
				inputs = append(inputs, operand{i, -1, h})
			}
		case []any:
			for k, e := range a {
				if t, ok := e.(*Tensor); ok {
					if h := t.history(); h != nil {
						inputs = append(inputs, operand{i, k, h})
					}
				}
			}
		}
	}
	if len(inputs) == 0 {
		return
	}
	e := &entry{seq: sequence.Add(1), op: op, args: saved(args), inputs: inputs, scope: scope}
	eachTensor(args, func(t *Tensor) {
		e.versions = append(e.versions, t.store.version.Load())
		if t.store.root == nil && t.hist != nil && t.coversStorage() && shared(t, results) {
			t.store.root, t.store.rootShape = t.hist, t.arr.Shape
		}
	})
	for i, r := range results {
		switch r := r.(type) {
		case *Tensor:
			e.results = append(e.results, resultOf{like: shapeOnly(r.arr)})
			if r.arr.DType.IsFloat() {
				r.hist = &value{entry: e, index: i, elem: -1}
			}
		case []any:
			ro := resultOf{list: []resultOf{}}
			for k, x := range r {
				t, ok := x.(*Tensor)
				if !ok {
					ro.list = append(ro.list, resultOf{})
					continue
				}
				ro.list = append(ro.list, resultOf{like: shapeOnly(t.arr)})
				if t.arr.DType.IsFloat() {
					t.hist = &value{entry: e, index: i, elem: k}
				}
			}
			e.results = append(e.results, ro)
		default:
			e.results = append(e.results, resultOf{})
		}
	}
}

// shared reports whether a result is a view of t.
func shared(t *Tensor, results []any) (found bool) {
	eachTensor(results, func(r *Tensor) { found = found || r.store == t.store })
	return found
}

// saved copies the handles, so that later writes through the same variables do not change what was recorded.
func saved(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case *Tensor:
			c := *a
			out[i] = &c
		case []any:
			out[i] = saved(a)
		default:
			out[i] = a
		}
	}
	return out
}

func shapeOnly(a *ir.Array) *ir.Array { return &ir.Array{DType: a.DType, Shape: a.Shape} }

// BackwardOption changes what Backward and Grad do.
type BackwardOption func(*backward)

// RetainGraph keeps the tape, so that the same results can be differentiated again.
func RetainGraph() BackwardOption { return func(b *backward) { b.retain = true } }

// CreateGraph records the gradient's own computation, so that it can be differentiated; it implies RetainGraph.
func CreateGraph() BackwardOption { return func(b *backward) { b.retain, b.create = true, true } }

// Cotangent gives the gradient of the result with respect to which Backward works, of its shape; without it the result must have one element and the
// gradient is 1.
func Cotangent(g *Tensor) BackwardOption { return func(b *backward) { b.seed = g } }

// AllowUnused lets Grad give nil for inputs that the result does not depend on.
func AllowUnused() BackwardOption { return func(b *backward) { b.allowUnused = true } }

type backward struct {
	retain, create, allowUnused bool
	seed                        *Tensor

	grads   map[*value]*Tensor
	leaves  []*value // the keys of grads that are leaves, in order of first use
	wanted  map[*entry][]*value
	pending map[*entry][]any // cotangents per result, lists as []any
	queue   entryHeap
	queued  map[*entry]bool
}

// Backward computes the gradients of t with respect to all leaves that it depends on and adds them to their Grad.
func (t *Tensor) Backward(opts ...BackwardOption) error {
	b, err := runBackward([]*Tensor{t}, "Backward", nil, opts)
	if err != nil {
		return err
	}
	for _, v := range b.leaves {
		g, l := b.grads[v], v.leaf
		for _, f := range v.hooks {
			if r := f(g); r != nil {
				g = r
			}
		}
		if l.grad == nil {
			l.grad = g
		} else {
			l.grad = l.grad.Add(g)
		}
		if l.grad.err != nil {
			return l.grad.err
		}
	}
	return nil
}

// Grad computes the gradients of an output with respect to inputs, which need not be leaves, and leaves their Grad alone.
func Grad(output *Tensor, inputs []*Tensor, opts ...BackwardOption) ([]*Tensor, error) {
	wanted := map[*entry][]*value{}
	for i, x := range inputs {
		if x.err != nil {
			return nil, x.err
		}
		h := x.history()
		if h == nil {
			return nil, fmt.Errorf("tensor.Grad: input %d does not require a gradient", i)
		}
		if h.entry != nil {
			wanted[h.entry] = append(wanted[h.entry], h)
		}
	}
	b, err := runBackward([]*Tensor{output}, "Grad", wanted, opts)
	if err != nil {
		return nil, err
	}
	out := make([]*Tensor, len(inputs))
	for i, x := range inputs {
		out[i] = b.grads[x.history()]
		if out[i] == nil && !b.allowUnused {
			return nil, fmt.Errorf("tensor.Grad: the output does not depend on input %d: use AllowUnused to get nil", i)
		}
	}
	return out, nil
}

func runBackward(outputs []*Tensor, what string, wanted map[*entry][]*value, opts []BackwardOption) (*backward, error) {
	b := &backward{wanted: wanted, grads: map[*value]*Tensor{}, pending: map[*entry][]any{}, queued: map[*entry]bool{}}
	for _, o := range opts {
		o(b)
	}
	for _, t := range outputs {
		if t.err != nil {
			return nil, t.err
		}
		h := t.history()
		if h == nil {
			return nil, &opError{op: what, where: callerLine(), err: errors.New("the tensor does not require a gradient: nothing it was computed from does, or it was computed without gradients")}
		}
		seed := b.seed
		if seed == nil {
			if t.arr.Len() != 1 {
				return nil, &opError{op: what, where: callerLine(), err: fmt.Errorf("grad can be implicitly created only for scalar outputs, this one has shape %v: give a Cotangent", t.arr.Shape)}
			}
			seed = Call("ones_like", NoGrad(t))
			seed.scope = t.scope
		}
		if seed.err != nil {
			return nil, seed.err
		}
		if fmt.Sprint(seed.arr.Shape) != fmt.Sprint(t.arr.Shape) {
			return nil, fmt.Errorf("tensor.%s: the cotangent has shape %v, the tensor %v", what, seed.arr.Shape, t.arr.Shape)
		}
		if err := b.add(h, seed); err != nil {
			return nil, err
		}
	}
	for b.queue.Len() > 0 {
		e := heap.Pop(&b.queue).(*entry)
		if err := b.step(e); err != nil {
			return nil, &opError{op: what + " of " + e.op.String(), where: e.where, err: err}
		}
	}
	return b, nil
}

// add accumulates a gradient of v. Leaves collect it in grads; entries wait until all later ones have run.
func (b *backward) add(v *value, g *Tensor) error {
	if v.entry == nil {
		if old := b.grads[v]; old != nil {
			g = old.Add(g)
		} else {
			b.leaves = append(b.leaves, v)
		}
		b.grads[v] = g
		return g.err
	}
	e := v.entry
	cts := b.pending[e]
	if cts == nil {
		cts = make([]any, len(e.results))
		for i, r := range e.results {
			if r.list != nil {
				cts[i] = make([]any, len(r.list))
			}
		}
		b.pending[e] = cts
	}
	slot := v.slot(cts)
	if old, ok := (*slot).(*Tensor); ok {
		g = old.Add(g)
	}
	*slot = g
	if !b.queued[e] {
		b.queued[e] = true
		heap.Push(&b.queue, e)
	}
	return g.err
}

// slot is where the cotangent of v stands among those of its entry.
func (v *value) slot(cts []any) *any {
	if v.elem >= 0 {
		return &cts[v.index].([]any)[v.elem]
	}
	return &cts[v.index]
}

// step runs the gradient of one entry.
func (b *backward) step(e *entry) error {
	cts := b.pending[e]
	delete(b.pending, e)
	if e.args == nil {
		return errors.New("the saved values were freed by an earlier Backward: pass RetainGraph to the first one")
	}
	if err := e.checkVersions(); err != nil {
		return err
	}
	for _, v := range e.hooked {
		slot := v.slot(cts)
		for _, f := range v.hooks {
			if ct, ok := (*slot).(*Tensor); ok {
				if r := f(ct); r != nil {
					*slot = r
				}
			}
		}
	}
	for _, v := range b.wanted[e] {
		b.grads[v], _ = (*v.slot(cts)).(*Tensor)
	}
	args := append(append([]any{}, e.args...), cts...)
	op := Op{Callee: e.op.Callee, Order: e.op.Order + 1, Count: len(e.args)}
	if !b.create {
		args = withoutGrad(args)
	}
	grads, err := dispatch(op, nil, args)
	if err != nil {
		return err
	}
	for _, in := range e.inputs {
		g := grads[in.arg]
		if l, ok := g.([]any); ok && in.elem >= 0 && in.elem < len(l) {
			g = l[in.elem]
		}
		t, ok := g.(*Tensor)
		if !ok {
			continue
		}
		if !b.create {
			t.scope = e.scope
			t.hist = nil
		}
		if err := b.add(in.val, t); err != nil {
			return err
		}
	}
	if !b.retain {
		e.args = nil
	}
	return nil
}

// withoutGrad puts all tensors into scopes without gradients.
func withoutGrad(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case *Tensor:
			out[i] = NoGrad(a)
		case []any:
			out[i] = withoutGrad(a)
		default:
			out[i] = a
		}
	}
	return out
}

// checkVersions fails where a saved operand that the gradient reads was overwritten.
func (e *entry) checkVersions() error {
	k := 0
	var err error
	for i, a := range e.args {
		eachTensor([]any{a}, func(t *Tensor) {
			if t.store.version.Load() != e.versions[k] && err == nil && e.reads(i) {
				err = fmt.Errorf("one of the variables needed for gradient computation has been modified by an inplace operation: argument %d of %s, shape %v, is at version %d, expected version %d: clone it before writing to it",
					i, e.op, t.arr.Shape, t.store.version.Load(), e.versions[k])
			}
			k++
		})
	}
	return err
}

// reads reports whether the gradient of the call depends on the values of argument i.
func (e *entry) reads(i int) bool {
	data := make([]ir.Datum, 0, len(e.args)+len(e.results))
	for _, a := range e.args {
		data = append(data, datum(a))
	}
	for _, r := range e.results {
		data = append(data, r.zero())
	}
	used, err := e.scope.eng().Reads(runtime.Callee{Name: e.op.Callee, Order: e.op.Order + 1, Count: len(e.args)}, data)
	if err != nil {
		return true
	}
	return used[i]
}

func (r resultOf) zero() ir.Datum {
	switch {
	case r.list != nil:
		out := make([]ir.Datum, len(r.list))
		for i, x := range r.list {
			out[i] = x.zero()
		}
		return ir.NewList(out...)
	case r.like != nil && r.like.DType.IsFloat():
		z, _ := ir.ZerosLike(&ir.Array{DType: r.like.DType, Shape: r.like.Shape})
		return z
	}
	return nil
}

// entryHeap gives the newest entry first.
type entryHeap []*entry

func (h entryHeap) Len() int           { return len(h) }
func (h entryHeap) Less(i, j int) bool { return h[i].seq > h[j].seq }
func (h entryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *entryHeap) Push(x any)        { *h = append(*h, x.(*entry)) }
func (h *entryHeap) Pop() any {
	old := *h
	n := len(old) - 1
	e := old[n]
	old[n] = nil
	*h = old[:n]
	return e
}
