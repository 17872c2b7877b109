package driver

import (
	"context"
	"fmt"

	"github.com/gtc-project/gtc/internal/eager"
	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/tensor"
)

// RunEager does what Run does for scripts, op by op through the eager API and its tape.
func RunEager(ctx context.Context, m *Model, bound *Bound, e *engine, o *Options) ([]npz.Named, error) {
	scope := tensor.NewScope(e.Engine).WithGenerator(tensor.NewGenerator(o.Seed))
	r := eager.Prepare(m.Func).NewRun(scope)
	args := append([]ir.Datum{}, bound.Args...)
	for _, w := range m.Weights {
		args = append(args, w.Array)
	}
	grad := o.Grad && len(bound.Cotangents) > 0
	leaves := bindLeaves(r, scope, m, args, grad)
	results, err := r.Do(ctx, args)
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
	grads, err := gradients(r, arrays, bound, leaves)
	return append(out, grads...), err
}

// leaf is a floating-point input with its key.
type leaf struct {
	key string
	t   *tensor.Tensor
}

// bindLeaves makes tensors of the arrays in the operands; it gives those whose gradient is asked for.
func bindLeaves(r *eager.Run, scope *tensor.Scope, m *Model, args []ir.Datum, grad bool) []leaf {
	var out []leaf
	c := &Call{model: m, args: args}
	for i := range args {
		for _, l := range Leaves(c.name(i), args[i]) {
			t := tensor.FromArray(l.Array).With(scope)
			if grad && l.Array.DType.IsFloat() && m.wantsGradient(i, args[i]) {
				t = t.RequiresGrad()
				out = append(out, leaf{l.Key, t})
			}
			r.Bind(l.Array, t)
		}
	}
	return out
}

// gradients names the gradients of the results with respect to the leaves, and those of one of them again.
func gradients(r *eager.Run, results []*ir.Array, bound *Bound, leaves []leaf) ([]npz.Named, error) {
	var outs []*tensor.Tensor
	var seeds []*ir.Array
	for i, a := range results {
		if ct := bound.Cotangents[i]; ct != nil && a.DType.IsFloat() {
			outs, seeds = append(outs, r.Tensor(a)), append(seeds, ct)
		}
	}
	inputs := make([]*tensor.Tensor, len(leaves))
	for i, l := range leaves {
		inputs[i] = l.t
	}
	grads, err := eager.Grads(outs, seeds, inputs)
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
			if second, err = eager.Grads([]*tensor.Tensor{grads[i]}, []*ir.Array{bound.Vector}, []*tensor.Tensor{l.t}); err != nil {
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
