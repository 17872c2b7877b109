package autograd

import (
	"fmt"

	"github.com/gtc-project/gtc/ir"
)

// Options select what a gradient function takes and gives.
type Options struct {
	// Wrt are the indices of the parameters to differentiate with respect to.
	Wrt []int
	// Cotangents says which results have a cotangent; nil means those whose type may carry one (ir.MayCarryGradient).
	Cotangents []bool
	// NoPrimal leaves out the results of the function itself and everything that only they or its effects need.
	NoPrimal bool
	// NoneForZero gives None instead of zeros for a parameter on which nothing depends, or that is no floating-point tensor.
	NoneForZero bool
}

// Grad differentiates f with respect to the parameters wrt. The new function takes the parameters of f and then one cotangent for each
// result that cts says (nil: every result that may carry one); it gives the results of f and then one gradient per entry of wrt,
// of the parameter's dtype and shape, zeros where nothing depends on it. Lists, tuples and dicts have gradients of their structure.
//
// It fails where an op on the way has no gradient rule for its operand types.
func Grad(f *ir.Func, wrt []int, cts []bool) (*ir.Func, error) {
	return Differentiate(f, Options{Wrt: wrt, Cotangents: cts})
}

// VJP is Grad without the results of f: what only they need, effects included, is left out.
func VJP(f *ir.Func, wrt []int, cts []bool) (*ir.Func, error) {
	return Differentiate(f, Options{Wrt: wrt, Cotangents: cts, NoPrimal: true})
}

// HasCotangent says for each result of f whether Grad's default gives it a cotangent.
func HasCotangent(f *ir.Func) []bool {
	rs := f.Returns()
	out := make([]bool, len(rs))
	for i, r := range rs {
		out[i] = ir.MayCarryGradient(r.Type)
	}
	return out
}

// Differentiate is Grad with all options.
func Differentiate(f *ir.Func, o Options) (*ir.Func, error) {
	for _, w := range o.Wrt {
		if w < 0 || w >= len(f.Body.Params) {
			return nil, fmt.Errorf("gradient of %s: there is no parameter %d, it has %d", f.Name, w, len(f.Body.Params))
		}
	}
	g := f.Clone()
	if err := ExpandGradNodes(g); err != nil {
		return nil, err
	}
	if o.Cotangents == nil {
		o.Cotangents = HasCotangent(g)
	}
	if len(o.Cotangents) != len(g.Returns()) {
		return nil, fmt.Errorf("gradient of %s: got %d cotangent flags for %d results", f.Name, len(o.Cotangents), len(g.Returns()))
	}
	if err := differentiate(g, o); err != nil {
		return nil, fmt.Errorf("gradient of %s: %w", f.Name, err)
	}
	return g, nil
}

func differentiate(g *ir.Func, o Options) error {
	forward := g.NumValues()
	term := g.Body.Terminator()
	results := term.Args
	g.Body.Nodes = g.Body.Nodes[:len(g.Body.Nodes)-1]
	d := newGen(g)
	for _, w := range o.Wrt {
		d.vary(g.Body.Params[w])
	}
	d.activity(g.Body)
	cts := cotangents{}
	nodes := g.Body.Nodes
	err := ir.Try(func() {
		for i, has := range o.Cotangents {
			if !has {
				continue
			}
			r := results[i]
			ct := g.Param(cotangentName(g, i), cotangentType(r.Type))
			if d.varied(r) {
				d.add(cts, r, ct)
			}
		}
		d.backward(nodes, cts)
		var out []*ir.Value
		if !o.NoPrimal {
			out = append(out, results...)
		}
		for _, w := range o.Wrt {
			out = append(out, d.result(g.Body.Params[w], cts[g.Body.Params[w]], o.NoneForZero))
		}
		d.b.Return(out...)
	})
	if err != nil {
		return err
	}
	d.splice(g.Body)
	g.Sweep(func(n *ir.Node) bool {
		return !o.NoPrimal && ir.HasEffect(n) && (len(n.Results) == 0 || n.Results[0].ID < forward)
	})
	return nil
}

// cotangentName is a parameter name that is free in f.
func cotangentName(f *ir.Func, i int) string {
	name := fmt.Sprintf("ct%d", i)
	for taken := true; taken; {
		taken = false
		for _, p := range f.ParamNames {
			if p == name {
				taken, name = true, name+"_"
			}
		}
	}
	return name
}

// cotangentType is the declared type of a cotangent parameter: a tensor's own, None and containers of None included for the rest.
func cotangentType(t ir.Type) ir.Type {
	if t.Kind == ir.KTensor {
		return t
	}
	return ir.Any
}

// result is what the gradient function returns for a parameter.
func (d *gen) result(p, ct *ir.Value, noneForZero bool) *ir.Value {
	switch {
	case ct == nil && noneForZero:
		return d.b.None()
	case ct == nil:
		return d.zeros(p)
	case noneForZero:
		return ct
	case p.Type.Kind == ir.KTensor && ct.Type.Kind == ir.KTensor:
		return ct
	}
	return d.b.Op("ct_fill", ct, p)
}
