package tensor

import (
	"errors"
	"fmt"
)

// Function is an operation whose gradient the program defines itself, as torch.autograd.Function.
type Function struct {
	Name string // for messages
	// Forward computes the results. What it does is not recorded.
	Forward func(c *FunctionContext, in []*Tensor) []*Tensor
	// Backward gives the gradients of the inputs, nil for none, for those of the results, which are zeros where nothing depends on a result. With
	// CreateGraph its operations are recorded, so that the function can be differentiated again.
	Backward func(c *FunctionContext, ct []*Tensor) []*Tensor
}

// FunctionContext carries values from Forward to Backward of one call.
type FunctionContext struct {
	Value any // anything that is no tensor

	fn       *Function
	saved    []*Tensor
	versions []uint64
	create   bool
}

func (f *Function) name() string {
	if f.Name == "" {
		return "Function"
	}
	return f.Name
}

// Save keeps tensors for Backward: inputs, results or others. Those that are overwritten before are an error there.
func (c *FunctionContext) Save(ts ...*Tensor) { c.saved = append(c.saved, ts...) }

// Saved gives what Save kept.
func (c *FunctionContext) Saved() []*Tensor {
	out := make([]*Tensor, len(c.saved))
	for i, t := range c.saved {
		switch {
		case t.err == nil && t.store.version.Load() != c.versions[i]:
			out[i] = failed(&opError{op: c.fn.name(), where: callerLine(), err: fmt.Errorf("saved tensor %d, shape %v, has been modified by an inplace operation: clone it before writing to it", i, t.arr.Shape)})
		case c.create:
			out[i] = t
		default:
			out[i] = NoGrad(t)
		}
	}
	return out
}

// Apply runs the function. A failed call gives one tensor that holds the error. It refuses to be traced, since a trace could not hold its gradient.
func (f *Function) Apply(in ...*Tensor) []*Tensor {
	fail := func(err error) []*Tensor {
		var located *opError
		if errors.As(err, &located) {
			return []*Tensor{failed(err)}
		}
		return []*Tensor{failed(&opError{op: f.name(), where: callerLine(), err: err})}
	}
	args := make([]any, len(in))
	for i, t := range in {
		args[i] = t
	}
	scope, err := joinScopes(args)
	if err != nil {
		return fail(err)
	}
	if scope.Tracer() != nil {
		return fail(errors.New("a function with a gradient of its own cannot be traced, since its gradient would be lost: call the operations of its Forward instead"))
	}
	c := &FunctionContext{fn: f}
	plain := make([]*Tensor, len(in))
	for i, t := range in {
		plain[i] = NoGrad(t)
	}
	outs := f.Forward(c, plain)
	if len(outs) == 0 {
		return fail(errors.New("Forward gave no results"))
	}
	results := make([]any, len(outs))
	for i, r := range outs {
		switch {
		case r == nil:
			return fail(fmt.Errorf("result %d of Forward is nil", i))
		case r.err != nil:
			return fail(r.err)
		}
		o := *r
		for _, t := range in { // a result is a tensor of its own
			if o.store == t.store {
				o = *FromArray(r.arr.Copy())
			}
		}
		o.scope, o.hist, o.leaf = scope, nil, nil
		results[i] = &o
	}
	if scope == nil || !scope.noGrad {
		if e := newEntry(args, scope); e != nil {
			// what the gradient reads are the saved tensors only
			e.custom, e.args, e.versions = c, nil, nil
			e.produce(results)
		}
	}
	for i, t := range c.saved {
		c.versions = append(c.versions, 0)
		if t.err != nil {
			continue
		}
		c.versions[i] = t.store.version.Load()
		// the handles of Forward have no history: take those of the caller
		for k, p := range plain {
			if t == p {
				c.saved[i] = in[k].frozen()
			}
		}
		for k, r := range outs {
			if t == r {
				c.saved[i] = results[k].(*Tensor).frozen()
			}
		}
	}
	ts := make([]*Tensor, len(results))
	for i, r := range results {
		ts[i] = r.(*Tensor)
	}
	return ts
}

// gradients calls Backward.
func (c *FunctionContext) gradients(e *entry, cts []any, create bool) ([]any, error) {
	in := make([]*Tensor, len(cts))
	for i, ct := range cts {
		t, ok := ct.(*Tensor)
		if !ok {
			t = Zeros(e.results[i].like.DType, e.results[i].like.Shape...)
		}
		if in[i] = t; !create {
			in[i] = NoGrad(t)
		}
	}
	call := *c
	call.create = create
	gs := c.fn.Backward(&call, in)
	c.Value = call.Value
	n := 0
	for _, o := range e.inputs {
		n = max(n, o.arg+1)
	}
	if len(gs) < n {
		return nil, fmt.Errorf("Backward gave %d gradients for %d inputs", len(gs), n)
	}
	out := make([]any, len(gs))
	for i, g := range gs {
		if g == nil {
			continue
		}
		if g.err != nil {
			return nil, g.err
		}
		h := *g
		out[i] = &h
	}
	for _, o := range e.inputs {
		g, ok := out[o.arg].(*Tensor)
		if want := o.val.like().Shape; ok && !sameShape(g.arr.Shape, want) {
			return nil, fmt.Errorf("Backward gave a gradient of shape %v for input %d, which has shape %v", g.arr.Shape, o.arg, want)
		}
	}
	return out, nil
}
