package tensor

import (
	"container/heap"
	"errors"
	"fmt"
	"math"

	"github.com/gtc-project/gtc/ir"
)

// BackwardOption changes what Backward and Grad do.
type BackwardOption func(*backward)

// RetainGraph keeps the tape, so that the same results can be differentiated again.
func RetainGraph() BackwardOption { return func(b *backward) { b.retain = true } }

// CreateGraph records the gradient's own computation, so that it can be differentiated; it implies RetainGraph.
func CreateGraph() BackwardOption { return func(b *backward) { b.retain, b.create = true, true } }

// Cotangent gives the gradients of the outputs, each of its output's shape, from which the work starts; nil, or without it, an output must have one element and
// its gradient is 1.
func Cotangent(gs ...*Tensor) BackwardOption { return func(b *backward) { b.seeds = gs } }

// AllowUnused lets Grad give nil for inputs that the outputs do not depend on.
func AllowUnused() BackwardOption { return func(b *backward) { b.allowUnused = true } }

// Inputs has Backward accumulate the gradients of these leaves only.
func Inputs(leaves ...*Tensor) BackwardOption {
	return func(b *backward) {
		b.only = map[*value]bool{}
		for _, x := range leaves {
			b.only[x.history()] = true
		}
	}
}

// DetectAnomaly fails as soon as a gradient holds a NaN, naming the operation and the line that recorded it.
func DetectAnomaly() BackwardOption { return func(b *backward) { b.anomaly = true } }

type backward struct {
	retain, create, allowUnused, anomaly bool

	seeds   []*Tensor
	only    map[*value]bool
	grads   map[*value]*Tensor
	leaves  []*value // the keys of grads that are leaves, in order of first use
	wanted  map[*entry][]*value
	pending map[*entry][]any // cotangents per result, lists as []any
	queue   entryHeap
	given   map[*storage]bool // storages of gradients that are in the user's hands
}

// Backward computes the gradients of t with respect to all leaves that it depends on and adds them to their Grad.
func (t *Tensor) Backward(opts ...BackwardOption) error { return Backward([]*Tensor{t}, opts...) }

// Backward is the method of that name for the sum of several outputs.
func Backward(outputs []*Tensor, opts ...BackwardOption) error {
	b, err := runBackward(outputs, "Backward", nil, opts)
	if err != nil {
		return err
	}
	for _, v := range b.leaves {
		if b.only != nil && !b.only[v] {
			continue
		}
		g, err := v.runHooks(b.grads[v])
		if err == nil {
			err = b.accumulate(v.leaf, g)
		}
		if err != nil {
			return &opError{op: "Backward", where: callerLine(), err: err}
		}
	}
	return nil
}

// accumulate adds g to the gradient that l keeps.
func (b *backward) accumulate(l *leaf, g *Tensor) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grad == nil {
		l.grad = b.own(g, l.like)
	} else {
		l.grad = l.grad.Add(g)
	}
	return l.grad.err
}

// own gives a gradient that shares its memory with nothing else that the user has. It takes the strides of like where these leave no gaps, and is
// contiguous otherwise.
func (b *backward) own(g *Tensor, like *ir.Array) *Tensor {
	if b.create {
		if b.given[g.store] {
			g = g.Clone()
		}
		b.given[g.store] = true
		return g
	}
	strides := ir.ContiguousStrides(g.arr.Shape)
	if like != nil && dense(like) {
		strides = like.Strides
	}
	if fits := g.arr.Len() < 2 || sameShape(g.arr.Strides, strides); fits && !b.given[g.store] && g.arr.Len() == g.store.size {
		b.given[g.store] = true
		return g
	}
	a := ir.NewArray(g.arr.DType, g.arr.Shape...).View(g.arr.Shape, strides, 0)
	copyInto(a, g.arr)
	out := FromArray(a)
	out.scope = g.scope
	return out
}

// dense reports whether a's elements fill its span without gaps or overlaps.
func dense(a *ir.Array) bool {
	n := a.Len()
	last := 0
	for i, s := range a.Shape {
		if s > 1 && a.Strides[i] <= 0 {
			return false
		}
		last += max(s-1, 0) * a.Strides[i]
	}
	if n < 2 || last != n-1 {
		return false
	}
	// a permutation of contiguous strides: every stride is the product of the sizes with smaller strides
	for i, s := range a.Shape {
		product := 1
		for j, other := range a.Shape {
			if a.Strides[j] < a.Strides[i] && other > 1 {
				product *= other
			}
		}
		if s > 1 && product != a.Strides[i] {
			return false
		}
	}
	return true
}

// Grad computes the gradients of an output with respect to inputs, which need not be leaves, and leaves their Grad alone.
func Grad(output *Tensor, inputs []*Tensor, opts ...BackwardOption) ([]*Tensor, error) {
	return Grads([]*Tensor{output}, inputs, opts...)
}

// Grads is Grad for the sum of several outputs.
func Grads(outputs, inputs []*Tensor, opts ...BackwardOption) ([]*Tensor, error) {
	wanted := map[*entry][]*value{}
	for i, x := range inputs {
		if x.err != nil {
			return nil, x.err
		}
		h := x.history()
		if h == nil {
			return nil, &opError{op: "Grad", where: callerLine(), err: fmt.Errorf("input %d does not require a gradient", i)}
		}
		if h.entry != nil {
			wanted[h.entry] = append(wanted[h.entry], h)
		}
	}
	b, err := runBackward(outputs, "Grad", wanted, opts)
	if err != nil {
		return nil, err
	}
	out := make([]*Tensor, len(inputs))
	for i, x := range inputs {
		g := b.grads[x.history()]
		switch {
		case g != nil:
			out[i] = b.own(g, nil)
		case !b.allowUnused:
			return nil, &opError{op: "Grad", where: callerLine(), err: fmt.Errorf("the output does not depend on input %d: use AllowUnused to get nil", i)}
		}
	}
	return out, nil
}

func runBackward(outputs []*Tensor, what string, wanted map[*entry][]*value, opts []BackwardOption) (*backward, error) {
	b := &backward{wanted: wanted, grads: map[*value]*Tensor{}, pending: map[*entry][]any{}, given: map[*storage]bool{}}
	for _, o := range opts {
		o(b)
	}
	fail := func(format string, args ...any) (*backward, error) {
		return nil, &opError{op: what, where: callerLine(), err: fmt.Errorf(format, args...)}
	}
	if len(b.seeds) > len(outputs) {
		return fail("%d cotangents for %d outputs", len(b.seeds), len(outputs))
	}
	for i, t := range outputs {
		if t.err != nil {
			return nil, t.err
		}
		h := t.history()
		if h == nil {
			if t.scope != nil && t.scope.noGrad {
				return fail("the tensor does not require a gradient: it was computed in a NoGrad scope, which results pass on; Detach leaves it")
			}
			return fail("the tensor does not require a gradient, and was not computed from one that does")
		}
		var seed *Tensor
		if i < len(b.seeds) {
			seed = b.seeds[i]
		}
		switch {
		case seed != nil && seed.err != nil:
			return nil, seed.err
		case seed == nil && t.arr.Len() != 1:
			return fail("grad can be implicitly created only for scalar outputs, this one has shape %v: give a Cotangent", t.arr.Shape)
		case seed == nil:
			seed = Call("ones_like", NoGrad(t))
			seed.scope = t.scope
		case !sameShape(seed.arr.Shape, t.arr.Shape):
			return fail("the cotangent has shape %v, the tensor %v", seed.arr.Shape, t.arr.Shape)
		case seed.arr.DType != t.arr.DType:
			return fail("the cotangent is %s, the tensor %s", seed.arr.DType, t.arr.DType)
		}
		if seed.err != nil {
			return nil, seed.err
		}
		b.given[seed.store] = true
		if err := b.add(h, seed); err != nil {
			return nil, err
		}
	}
	for b.queue.Len() > 0 {
		e := heap.Pop(&b.queue).(*entry)
		if err := b.step(e); err != nil {
			return nil, &opError{op: fmt.Sprintf("%s of %s, called at %s", what, e.name(), e.line()), where: callerLine(), err: err}
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
		heap.Push(&b.queue, e)
	}
	slot := v.slot(cts)
	if old, ok := (*slot).(*Tensor); ok {
		g = old.Add(g)
	}
	*slot = g
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
	for _, v := range e.hooked {
		slot := v.slot(cts)
		ct, ok := (*slot).(*Tensor)
		if !ok {
			continue
		}
		ct, err := v.runHooks(ct)
		if err != nil {
			return err
		}
		if *slot = ct; v.retained != nil {
			if err := b.accumulate(v.retained, ct); err != nil {
				return err
			}
		}
	}
	for _, v := range b.wanted[e] {
		b.grads[v], _ = (*v.slot(cts)).(*Tensor)
	}
	if e.freed {
		return errors.New("the saved values were freed by an earlier Backward: pass RetainGraph to the first one")
	}
	if err := e.checkVersions(); err != nil {
		return err
	}
	grads, err := b.gradients(e, cts)
	if err != nil {
		return err
	}
	for _, in := range e.inputs {
		g := grads[in.arg]
		if l, ok := g.([]any); ok && in.elem >= 0 && in.elem < len(l) {
			g = l[in.elem]
		}
		t, ok := g.(*Tensor)
		if !ok { // zero for certain; what it belongs to has a gradient all the same, as in PyTorch
			t = in.val.zeros()
			t.scope = e.scope
		}
		if b.anomaly && hasNaN(t.arr) {
			return fmt.Errorf("the gradient of argument %d, shape %v, has NaN", in.arg, t.arr.Shape)
		}
		if err := b.add(in.val, t); err != nil {
			return err
		}
	}
	if !b.retain {
		e.args, e.inputs, e.custom, e.freed = nil, nil, nil, true
	}
	return nil
}

// gradients are those of the entry's operands for the cotangents of its results.
func (b *backward) gradients(e *entry, cts []any) ([]any, error) {
	scope := e.scope
	if !b.create {
		scope = scope.WithNoGrad()
	}
	var grads []any
	var err error
	if e.custom != nil {
		grads, err = e.custom.gradients(e, cts, b.create)
	} else {
		args := append(append([]any{}, e.args...), cts...)
		if b.create {
			if scope, err = joinScopes(args); err != nil {
				return nil, err
			}
		}
		c := e.gradient()
		grads, err = run(c, args, scope, cts)
		if err == nil && b.create {
			record(Op{Callee: c.Name, Order: c.Order, Count: c.Count}, args, grads, scope)
		}
	}
	if err != nil || b.create {
		return grads, err
	}
	eachTensor(grads, func(t *Tensor) { t.scope, t.hist = e.scope, nil })
	return grads, nil
}

// zeros is a gradient of v that is zero.
func (v *value) zeros() *Tensor {
	like := v.like()
	return FromArray(ir.NewArray(like.DType, like.Shape...))
}

func hasNaN(a *ir.Array) bool {
	for _, v := range a.Floats() {
		if math.IsNaN(v) {
			return true
		}
	}
	return false
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
