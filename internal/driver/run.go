package driver

import (
	"context"
	"fmt"

	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/ir"
)

// Run loads a model, binds its arguments, runs it, and gives the named results: out.N, and with Grad also grad.NAME and grad2.NAME.
func Run(ctx context.Context, path string, o *Options) ([]npz.Named, error) {
	m, err := Load(path, o)
	if err != nil {
		return nil, err
	}
	bound, err := Arguments(m.Params, o)
	if err != nil {
		return nil, err
	}
	e, err := newEngine(o, true)
	if err != nil {
		return nil, err
	}
	c, err := m.Prepare(e, bound, o)
	if err != nil {
		return nil, err
	}
	return c.Execute(ctx)
}

// Call is a model with its arguments, ready to run many times.
type Call struct {
	model *Model
	e     *engine
	seed  uint64
	bound *Bound
	args  []ir.Datum // of the arguments and then the weights
	grad  *ir.Func   // nil where no gradient is asked for
	grad2 *ir.Func   // nil where no second derivative is
}

// Prepare makes a call. Gradients are part of it where o.Grad is set and cotangents are given.
func (m *Model) Prepare(e *engine, bound *Bound, o *Options) (*Call, error) {
	c := &Call{model: m, e: e, seed: o.Seed, bound: bound, args: bound.Args}
	for _, w := range m.Weights {
		c.args = append(c.args, w.Array)
	}
	if !o.Grad || len(bound.Cotangents) == 0 {
		return c, nil
	}
	var err error
	if c.grad, err = gradient(m.Func); err != nil || bound.V == "" {
		return c, err
	}
	c.grad2, err = gradient(c.grad)
	return c, err
}

// Execute runs the call once.
func (c *Call) Execute(ctx context.Context) ([]npz.Named, error) {
	results, err := c.e.run(ctx, c.model.Func, c.seed, c.args)
	if err != nil {
		return nil, err
	}
	arrays, err := Flatten(results...)
	if err != nil {
		return nil, err
	}
	var out []npz.Named
	for i, a := range arrays {
		out = append(out, npz.Named{Name: fmt.Sprintf("out.%d", i), Array: a})
	}
	if c.grad == nil {
		return out, nil
	}
	cts, err := cotangents(results, c.bound.Cotangents)
	if err != nil {
		return nil, err
	}
	args := append(append([]ir.Datum{}, c.args...), cts...)
	grads, err := c.e.run(ctx, c.grad, c.seed, args)
	if err != nil {
		return nil, err
	}
	if out, err = c.nameGradients(out, "grad.", grads); err != nil || c.grad2 == nil {
		return out, err
	}
	return c.second(ctx, out, args, grads)
}

// cotangents gives every result its cotangent, in the result's own structure; None stands for zero.
func cotangents(results []ir.Datum, given map[int]*ir.Array) ([]ir.Datum, error) {
	n, used := 0, 0
	var build func(d ir.Datum) (ir.Datum, error)
	all := func(ds []ir.Datum) ([]ir.Datum, error) {
		out := make([]ir.Datum, len(ds))
		for i, d := range ds {
			var err error
			if out[i], err = build(d); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	build = func(d ir.Datum) (ir.Datum, error) {
		switch d := d.(type) {
		case nil:
			return nil, nil
		case ir.Tuple:
			out, err := all(d)
			return ir.Tuple(out), err
		case ir.List:
			out, err := all(d.Elems())
			return ir.NewList(out...), err
		case *ir.Dict:
			out, err := all(d.Values)
			return ir.NewDict(d.Keys, out), err
		}
		ct := given[n]
		n++
		if ct == nil {
			return nil, nil
		}
		used++
		a, ok := d.(*ir.Array)
		switch {
		case !ok || !a.DType.IsFloat():
			return nil, nil // numbers have no gradient
		case a.DType != ct.DType || !sameShape(a.Shape, ct.Shape):
			return nil, fmt.Errorf("cotangent.%d is %s, but out.%d is %s; they must be equal", n-1, ct.Type(), n-1, a.Type())
		}
		return ct, nil
	}
	out, err := all(results)
	if err == nil && used != len(given) {
		for i := range given {
			if i >= n {
				return nil, fmt.Errorf("cotangent.%d belongs to no output; there are %d", i, n)
			}
		}
	}
	return out, err
}

func sameShape(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// gradientOf pairs the floating-point arrays of an argument with their gradients, zeros where there are none.
func gradientOf(name string, arg, grad ir.Datum, visit func(key string, g *ir.Array) error) error {
	switch arg := arg.(type) {
	case *ir.Array:
		if !arg.DType.IsFloat() {
			return nil
		}
		g, ok := grad.(*ir.Array)
		if !ok {
			g = ir.NewArray(arg.DType, arg.Shape...)
		}
		if g.DType != arg.DType || !sameShape(g.Shape, arg.Shape) {
			return fmt.Errorf("internal error: the gradient of %s is %s, but the argument is %s", name, g.Type(), arg.Type())
		}
		return visit(name, g)
	case ir.Tuple:
		for i, e := range arg {
			if err := gradientOf(fmt.Sprintf("%s.%d", name, i), e, elem(grad, i), visit); err != nil {
				return err
			}
		}
	case ir.List:
		for i, e := range arg.Elems() {
			if err := gradientOf(fmt.Sprintf("%s.%d", name, i), e, elem(grad, i), visit); err != nil {
				return err
			}
		}
	case *ir.Dict:
		for i, k := range arg.Keys {
			var g ir.Datum
			if gd, ok := grad.(*ir.Dict); ok {
				g, _ = gd.Get(k)
			}
			if err := gradientOf(fmt.Sprintf("%s.%v", name, k), arg.Values[i], g, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// elem is element i of a tuple or list, or None where there is none.
func elem(d ir.Datum, i int) ir.Datum {
	switch d := d.(type) {
	case ir.Tuple:
		if i < len(d) {
			return d[i]
		}
	case ir.List:
		if i < d.Len() {
			return d.At(i)
		}
	}
	return nil
}

// nameGradients appends the gradients of all arguments and trainable weights.
func (c *Call) nameGradients(out []npz.Named, prefix string, grads []ir.Datum) ([]npz.Named, error) {
	add := func(key string, g *ir.Array) error {
		out = append(out, npz.Named{Name: prefix + key, Array: g})
		return nil
	}
	for i, p := range c.model.Params {
		if err := gradientOf(p.Name, c.args[i], grads[i], add); err != nil {
			return nil, err
		}
	}
	for i, w := range c.model.Weights {
		if !w.Trainable {
			continue
		}
		if err := gradientOf(w.Name, w.Array, grads[len(c.model.Params)+i], add); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// second appends grad2.NAME: the gradient of sum(grad.NAME * v.NAME) with respect to NAME.
func (c *Call) second(ctx context.Context, out []npz.Named, args, grads []ir.Datum) ([]npz.Named, error) {
	found := false
	cts := make([]ir.Datum, len(grads))
	for i := range c.args {
		name := c.name(i)
		err := gradientOf(name, c.args[i], grads[i], func(key string, g *ir.Array) error {
			if key != c.bound.V {
				return nil
			}
			found = true
			if v := c.bound.Vector; v.DType != g.DType || !sameShape(v.Shape, g.Shape) {
				return fmt.Errorf("v.%s is %s, but %s is %s; they must be equal", key, v.Type(), key, g.Type())
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		cts[i] = place(name, c.args[i], c.bound.V, c.bound.Vector)
	}
	if !found {
		return nil, fmt.Errorf("v.%s belongs to no floating-point tensor argument", c.bound.V)
	}
	grads2, err := c.e.run(ctx, c.grad2, c.seed, append(append([]ir.Datum{}, args...), cts...))
	if err != nil {
		return nil, err
	}
	for i := range c.args {
		err := gradientOf(c.name(i), c.args[i], grads2[i], func(key string, g *ir.Array) error {
			if key == c.bound.V {
				out = append(out, npz.Named{Name: "grad2." + key, Array: g})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// name is the name of operand i.
func (c *Call) name(i int) string {
	if i < len(c.model.Params) {
		return c.model.Params[i].Name
	}
	return c.model.Weights[i-len(c.model.Params)].Name
}

// place gives None in the structure of arg, except v where the key is.
func place(name string, arg ir.Datum, key string, v *ir.Array) ir.Datum {
	all := func(ds []ir.Datum, keyOf func(i int) string) ([]ir.Datum, bool) {
		out, any := make([]ir.Datum, len(ds)), false
		for i, d := range ds {
			out[i] = place(keyOf(i), d, key, v)
			any = any || out[i] != nil
		}
		return out, any
	}
	number := func(i int) string { return fmt.Sprintf("%s.%d", name, i) }
	switch arg := arg.(type) {
	case *ir.Array:
		if name == key {
			return v
		}
	case ir.Tuple:
		if out, any := all(arg, number); any {
			return ir.Tuple(out)
		}
	case ir.List:
		if out, any := all(arg.Elems(), number); any {
			return ir.NewList(out...)
		}
	case *ir.Dict:
		if out, any := all(arg.Values, func(i int) string { return fmt.Sprintf("%s.%v", name, arg.Keys[i]) }); any {
			return ir.NewDict(arg.Keys, out)
		}
	}
	return nil
}
