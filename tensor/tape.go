package tensor

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/runtime"
)

// The tape: every differentiable result points to the entry that made it, an entry to the values of its operands. Nothing is recursive, so that a
// chain of 100,000 operations runs backward and is freed without deep stacks.

// value is one tensor-valued result in the history of a computation.
type value struct {
	entry    *entry // nil for a leaf
	index    int    // result number; for a list result, elem is the index in it
	elem     int    // -1 for a plain tensor
	leaf     *leaf
	hooks    []*hook
	retained *leaf // where RetainGrad keeps the gradient of a value that is no leaf
}

// leaf holds the gradient of a tensor that requires one. Backward may run in several goroutines whose graphs share leaves.
type leaf struct {
	mu   sync.Mutex
	grad *Tensor
	like *ir.Array // dtype, shape and strides that the gradient takes
}

type hook struct{ f func(*Tensor) *Tensor }

// entry is one recorded call.
type entry struct {
	seq      uint64
	op       Op
	custom   *FunctionContext // of a custom function, instead of op
	args     []any            // as given to dispatch; nil once freed
	versions []uint64         // of the storages of the tensors in args, in order of eachTensor
	inputs   []operand        // the tensors in args that have a history
	results  []resultOf       // shape and dtype of every result
	hooked   []*value         // those of its results that have hooks or keep their gradient
	scope    *Scope
	pcs      []uintptr // the stack of the recorded call
	freed    bool
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

// like has the dtype and shape of v.
func (v *value) like() *ir.Array {
	if v.entry == nil {
		return v.leaf.like
	}
	r := v.entry.results[v.index]
	if v.elem >= 0 {
		r = r.list[v.elem]
	}
	return r.like
}

func (e *entry) name() string {
	if e.custom != nil {
		return e.custom.fn.name()
	}
	return e.op.String()
}

// line is where the call was recorded.
func (e *entry) line() string { return firstOutside(e.pcs) }

// RequiresGrad makes t a leaf whose gradient Backward accumulates; it gives t. Only floating-point tensors may require a gradient, and none that was made
// in an Inference scope.
func (t *Tensor) RequiresGrad() *Tensor {
	if t.err != nil {
		return t
	}
	if !t.arr.DType.IsFloat() {
		return failed(&opError{op: "RequiresGrad", where: callerLine(), err: fmt.Errorf("only floating-point tensors can require gradients, this one is %s", t.arr.DType)})
	}
	if t.scope != nil && t.scope.inference {
		return failed(&opError{op: "RequiresGrad", where: callerLine(), err: errors.New("the tensor was made in an inference scope, whose results are never differentiated: clone it in another scope")})
	}
	if t.history() == nil {
		t.leaf = &leaf{like: t.arr}
		t.hist = &value{elem: -1, leaf: t.leaf}
		t.views = newViews(t.store.size)
		t.version = 0
	}
	return t
}

// NeedsGrad reports whether t is differentiable: a leaf that requires a gradient, or computed from one.
func (t *Tensor) NeedsGrad() bool { return t.err == nil && t.history() != nil }

// IsLeaf reports whether t was not computed by a recorded operation.
func (t *Tensor) IsLeaf() bool {
	h := t.history()
	return h == nil || h.entry == nil
}

// gradient is where the gradient of t is kept; nil where it is not.
func (t *Tensor) gradient() *leaf {
	if t.leaf != nil {
		return t.leaf
	}
	if h := t.history(); h != nil {
		return h.retained
	}
	return nil
}

// Grad is the gradient that Backward accumulated in a leaf, or in a tensor that RetainGrad was called on; nil before. What it gave once is never changed
// by a later Backward.
func (t *Tensor) Grad() *Tensor {
	l := t.gradient()
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grad
}

// SetGrad replaces the accumulated gradient; nil clears it.
func (t *Tensor) SetGrad(g *Tensor) {
	if l := t.gradient(); l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.grad = g
	}
}

// ZeroGrad clears the accumulated gradient.
func (t *Tensor) ZeroGrad() { t.SetGrad(nil) }

// RetainGrad has Backward and Grad keep the gradient of a tensor that is no leaf, too; see Grad. It gives t.
func (t *Tensor) RetainGrad() *Tensor {
	if t.err != nil {
		return t
	}
	h := t.history()
	switch {
	case h == nil:
		return failed(&opError{op: "RetainGrad", where: callerLine(), err: errors.New("the tensor does not require a gradient")})
	case h.entry != nil && h.retained == nil:
		h.watch()
		h.retained = &leaf{like: t.arr}
	}
	return t
}

// watch has the entry of v look for hooks.
func (v *value) watch() {
	if v.entry != nil && len(v.hooks) == 0 && v.retained == nil {
		v.entry.hooked = append(v.entry.hooked, v)
	}
}

// Detach gives the same values without gradient history; it shares the storage, and writes through either are seen by both. The result does not belong to
// a NoGrad scope, so that what is computed with it can be differentiated for other operands.
func (t *Tensor) Detach() *Tensor {
	d := Call("detach", t)
	if d.err == nil && d.scope != nil && d.scope.noGrad && !d.scope.inference {
		d.scope = d.scope.clone()
		d.scope.noGrad = false
	}
	return d
}

// RegisterHook has f called with the gradient of t whenever it is computed; a non-nil result, of the same shape and dtype, replaces the gradient. Hooks run in
// the order in which they were registered; those of a leaf run before its gradient is accumulated. remove takes the hook away.
func (t *Tensor) RegisterHook(f func(grad *Tensor) *Tensor) (remove func(), err error) {
	if t.err != nil {
		return nil, t.err
	}
	v := t.history()
	if v == nil {
		return nil, errors.New("tensor.RegisterHook: the tensor does not require a gradient")
	}
	v.watch()
	h := &hook{f}
	v.hooks = append(v.hooks, h)
	return func() { h.f = nil }, nil
}

// runHooks gives the gradient of v after its hooks.
func (v *value) runHooks(g *Tensor) (*Tensor, error) {
	for _, h := range v.hooks {
		if h.f == nil {
			continue
		}
		r := h.f(g)
		switch {
		case r == nil:
			continue
		case r.err != nil:
			return nil, fmt.Errorf("a gradient hook failed: %w", r.err)
		case !sameShape(r.arr.Shape, g.arr.Shape) || r.arr.DType != g.arr.DType:
			return nil, fmt.Errorf("a gradient hook replaced %s%v by %s%v: shape and dtype must stay", g.arr.DType, g.arr.Shape, r.arr.DType, r.arr.Shape)
		}
		g = r
	}
	return g, nil
}

// record appends a call to the tape and gives its results their history.
func record(op Op, args, results []any, scope *Scope) {
	if scope != nil && scope.noGrad {
		return
	}
	if e := newEntry(args, scope); e != nil {
		e.op = op
		e.produce(results)
	}
}

// newEntry makes an entry of a call's operands; nil where none has a history.
func newEntry(args []any, scope *Scope) *entry {
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
		return nil
	}
	e := &entry{seq: sequence.Add(1), args: saved(args), inputs: inputs, scope: scope, pcs: callStack()}
	eachTensor(args, func(t *Tensor) { e.versions = append(e.versions, t.store.version.Load()) })
	return e
}

// produce makes results the entry's.
func (e *entry) produce(results []any) {
	one := func(t *Tensor, index, elem int) resultOf {
		if t.arr.DType.IsFloat() {
			t.hist = &value{entry: e, index: index, elem: elem}
			if t.version = t.views.current(); t.views != nil && t.views.root == nil && t.views.base == nil && !t.leafView {
				t.views.root = &Tensor{arr: t.arr, store: t.store, hist: t.hist}
			}
		}
		return resultOf{like: &ir.Array{DType: t.arr.DType, Shape: t.arr.Shape}}
	}
	for i, r := range results {
		ro := resultOf{}
		switch r := r.(type) {
		case *Tensor:
			ro = one(r, i, -1)
		case []any:
			ro.list = make([]resultOf, len(r))
			for k, x := range r {
				if t, ok := x.(*Tensor); ok {
					ro.list[k] = one(t, i, k)
				}
			}
		}
		e.results = append(e.results, ro)
	}
}

// saved copies the handles with the history that they have now, so that later writes do not change what was recorded.
func saved(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case *Tensor:
			out[i] = a.frozen()
		case []any:
			out[i] = saved(a)
		default:
			out[i] = a
		}
	}
	return out
}

// frozen is a copy of the handle whose history stays what it is now.
func (t *Tensor) frozen() *Tensor {
	c := *t
	c.hist, c.views, c.version = t.history(), nil, 0
	return &c
}

// zero is a cotangent of the result, for looking up what a gradient reads: values do not count.
func (r resultOf) zero() ir.Datum {
	switch {
	case r.list != nil:
		out := make([]ir.Datum, len(r.list))
		for i, x := range r.list {
			out[i] = x.zero()
		}
		return ir.NewList(out...)
	case r.like != nil && r.like.DType.IsFloat():
		return r.like
	}
	return nil
}

// gradient names the function that computes the gradients of the entry's operands.
func (e *entry) gradient() runtime.Callee {
	c := runtime.Callee{Name: e.op.Callee, Order: e.op.Order + 1, Count: len(e.args), Want: make([]bool, len(e.args))}
	for _, in := range e.inputs {
		c.Want[in.arg] = true
	}
	return c
}

// checkVersions fails where a saved operand that the gradient reads was overwritten.
func (e *entry) checkVersions() error {
	k := 0
	var err error
	for i, a := range e.args {
		eachTensor([]any{a}, func(t *Tensor) {
			if v := t.store.version.Load(); v != e.versions[k] && err == nil && (e.custom != nil || e.reads(i)) {
				err = fmt.Errorf("one of the variables needed for gradient computation has been modified by an inplace operation: argument %d of %s, shape %v, is at version %d, expected version %d: clone it before writing to it",
					i, e.name(), t.arr.Shape, v, e.versions[k])
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
	used, err := e.scope.eng().Reads(e.gradient(), data)
	return err != nil || used[i]
}

// callStack is the stack above the function of this package that called it.
func callStack() []uintptr {
	var pcs [24]uintptr
	return append([]uintptr(nil), pcs[:goruntime.Callers(3, pcs[:])]...)
}
