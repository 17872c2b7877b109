package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/runtime"
)

// open loads a model, binds its arguments, and makes the engine; fallback says whether the reference evaluator may stand in for the default target.
func open(path string, o *Options, fallback bool) (*Model, *Bound, *engine, error) {
	m, err := Load(path, o)
	if err != nil {
		return nil, nil, nil, err
	}
	bound, err := Arguments(m.Params, o)
	if err != nil {
		return nil, nil, nil, err
	}
	e, err := newEngine(o, fallback)
	return m, bound, e, err
}

// Run loads a model, binds its arguments, runs it, and gives the named results: out.N, and with Grad also grad.NAME and grad2.NAME.
func Run(ctx context.Context, path string, o *Options) ([]npz.Named, error) {
	m, bound, e, err := open(path, o, true)
	if err != nil {
		return nil, err
	}
	if o.Eager {
		if o.MemoryBudget > 0 {
			return nil, errors.New("--memory-budget does not go with --eager: nothing is planned there")
		}
		return RunEager(ctx, m, bound, e, o)
	}
	c, err := m.Prepare(ctx, e, bound, o)
	if err != nil {
		return nil, err
	}
	if err := c.checkBudget(); err != nil {
		return nil, err
	}
	return c.Execute(ctx)
}

// Call is a model with its arguments, ready to run many times.
type Call struct {
	model *Model
	plain program
	e     *engine
	o     *Options
	bound *Bound
	args  []ir.Datum // of the arguments and then the weights
	grad  *gradCall  // nil where no gradient is asked for
	grad2 *gradCall  // nil where no second derivative is

	narrowed bool // grad leaves out the operands that have no gradient
}

// plannedBytes is the size of the memory that a run of the call's function, or of its gradients, takes as a whole.
func (c *Call) plannedBytes() (int64, error) {
	p := &c.plain
	if c.grad != nil {
		p = &c.grad.program
	}
	if p.compiled == nil {
		return 0, nil // it failed to compile
	}
	n, err := c.e.PlannedBytes(p.compiled)
	return int64(n), err
}

// checkBudget fails where a run takes more memory than it may.
func (c *Call) checkBudget() error {
	if c.o.MemoryBudget == 0 {
		return nil
	}
	n, err := c.plannedBytes()
	if err != nil {
		return err
	}
	return c.o.fits(c.e, n)
}

// fits fails where planned memory is more than the options allow.
func (o *Options) fits(e *engine, planned int64) error {
	switch {
	case e.Target() != runtime.CPU:
		return fmt.Errorf("--memory-budget goes with --target=cpu: the reference evaluator plans no memory")
	case planned > o.MemoryBudget:
		return fmt.Errorf("a run takes %d bytes for intermediate results, more than --memory-budget allows (%d); this version cannot compute values again to save memory", planned, o.MemoryBudget)
	}
	return nil
}

// gradCall is a function that also computes gradients, with the cotangents that it takes after the call's own arguments.
type gradCall struct {
	program
	wrt   []int      // the operands that have a gradient
	given []bool     // the results that have a cotangent
	extra []ir.Datum // arguments of the program besides the call's
	cts   []ir.Datum // the cotangents
}

// Prepare makes a call, and compiles it. Gradients are part of it where o.Grad is set and cotangents are given.
func (m *Model) Prepare(ctx context.Context, e *engine, bound *Bound, o *Options) (*Call, error) {
	c := &Call{model: m, plain: program{f: m.Func, frozen: len(m.Weights)}, e: e, o: o, bound: bound, args: m.arguments(bound)}
	if !o.Grad || len(bound.Cotangents) == 0 {
		return c, e.compile(&c.plain, c.args)
	}
	results, err := c.shells(ctx)
	if err != nil {
		return nil, err
	}
	all, err := cotangents(m.own(results), bound.Cotangents)
	if err != nil {
		return nil, err
	}
	given, cts := make([]bool, len(results)), []ir.Datum{}
	for i, ct := range all {
		if given[i] = anyArray(ct); given[i] {
			cts = append(cts, ct)
		}
	}
	c.differentiate(given, cts)
	_ = e.compile(&c.grad.program, c.args) // if it cannot be compiled, Execute narrows it
	if bound.V == "" {
		return c, nil
	}
	return c, c.differentiateTwice(given, cts)
}

// shells gives data of the structure and types of the results, because the cotangents have these. Where types do not tell, as for lists, the model
// is run to see; what it prints is dropped, as it is run again.
func (c *Call) shells(ctx context.Context) ([]ir.Datum, error) {
	if types, err := resultTypes(c.model.Func, c.args); err == nil {
		if out, ok := shellsOf(types); ok {
			return out, nil
		}
	}
	ev := c.e.Runner()
	ev.RNG, ev.Out = ir.RNG{Seed: c.o.Seed}, io.Discard
	if err := c.e.compile(&c.plain, c.args); err != nil {
		return nil, err
	}
	return ev.Run(ctx, c.plain.compiled, c.args[:len(c.args)-c.plain.frozen]...)
}

func shellsOf(types []ir.Type) ([]ir.Datum, bool) {
	out := make([]ir.Datum, len(types))
	for i, t := range types {
		switch t.Kind {
		case ir.KTensor:
			if !t.Static() {
				return nil, false
			}
			out[i] = &ir.Array{DType: t.DType, Shape: t.Shape(), Strides: make([]int, len(t.Dims))} // nobody reads elements
		case ir.KInt:
			out[i] = int64(0)
		case ir.KFloat:
			out[i] = 0.0
		case ir.KBool:
			out[i] = false
		case ir.KString:
			out[i] = ""
		case ir.KNone:
		case ir.KTuple:
			elems, ok := shellsOf(t.Elems)
			if !ok {
				return nil, false
			}
			out[i] = ir.Tuple(elems)
		default:
			return nil, false
		}
	}
	return out, true
}

// differentiate chooses the operands to differentiate with respect to: every one that holds floating-point arrays.
func (c *Call) differentiate(given []bool, cts []ir.Datum) {
	var wrt []int
	for i := range c.args {
		if c.model.wantsGradient(i, c.args[i]) {
			wrt = append(wrt, i)
		}
	}
	c.grad = c.gradient(wrt, given, cts)
}

func (c *Call) gradient(wrt []int, given []bool, cts []ir.Datum) *gradCall {
	o := &autograd.Options{Wrt: wrt, Cotangents: given, NoneForZero: true}
	return &gradCall{program: program{f: c.model.Func, grad: o}, wrt: wrt, given: given, cts: cts}
}

// narrow is for a joint gradient that failed: an operand in whose way an op without a gradient lies must not spoil the others, so they
// are tried one by one, and those that fail are left out with a warning. Where all fail the joint error stands.
func (c *Call) narrow(ctx context.Context, joint error) error {
	c.narrowed = true
	var works []int
	for _, w := range c.grad.wrt {
		if _, err := c.runGrad(ctx, c.gradient([]int{w}, c.grad.given, c.grad.cts)); err != nil {
			c.o.warn("no gradient for %s: %s", c.name(w), firstLine(err.Error()))
			continue
		}
		works = append(works, w)
	}
	if len(works) == 0 {
		return joint
	}
	c.grad = c.gradient(works, c.grad.given, c.grad.cts)
	return nil
}

// wantsGradient reports whether operand i holds floating-point arrays and is not a buffer.
func (m *Model) wantsGradient(i int, arg ir.Datum) bool {
	if n := len(m.Params); i >= n && !m.Weights[i-n].Trainable {
		return false
	}
	for _, l := range Leaves("", arg) {
		if l.Array.DType.IsFloat() {
			return true
		}
	}
	return false
}

// differentiateTwice builds the gradient of sum(grad.NAME * v.NAME) with respect to NAME.
func (c *Call) differentiateTwice(given []bool, cts []ir.Datum) error {
	key, v := c.bound.V, c.bound.Vector
	for _, i := range c.grad.wrt {
		for _, l := range Leaves(c.name(i), c.args[i]) {
			if l.Key != key || !l.Array.DType.IsFloat() {
				continue
			}
			if v.DType != l.Array.DType || !slices.Equal(v.Shape, l.Array.Shape) {
				return fmt.Errorf("v.%s is %s, but %s is %s; they must be equal", key, v.Type(), key, l.Array.Type())
			}
			f, err := autograd.VJP(c.model.Func, []int{i}, given)
			if err != nil {
				return err
			}
			o := &autograd.Options{Wrt: []int{i}, Cotangents: []bool{true}, NoPrimal: true, NoneForZero: true}
			c.grad2 = &gradCall{program: program{f: f, grad: o}, wrt: o.Wrt, extra: cts, cts: []ir.Datum{place(c.name(i), c.args[i], key, v)}}
			return nil
		}
	}
	return fmt.Errorf("v.%s belongs to no floating-point tensor argument", key)
}

// anyArray reports whether a cotangent holds an array, and not only None.
func anyArray(d ir.Datum) bool { return len(Leaves("", d)) > 0 }

// own are the model's own results among those of its function.
func (m *Model) own(results []ir.Datum) []ir.Datum { return results[:len(results)-m.Updated] }

// Execute runs the call once.
func (c *Call) Execute(ctx context.Context) ([]npz.Named, error) {
	var results, grads []ir.Datum
	var err error
	if c.grad == nil {
		results, err = c.e.run(ctx, &c.plain, c.o.Seed, c.args, nil)
	} else {
		results, err = c.runGrad(ctx, c.grad)
		if err != nil && !c.narrowed {
			if err = c.narrow(ctx, err); err == nil {
				results, err = c.runGrad(ctx, c.grad)
			}
		}
		n := max(len(results)-len(c.grad.wrt), 0)
		results, grads = results[:n], results[n:]
	}
	if err != nil {
		return nil, err
	}
	out, err := named(c.model.own(results))
	if err != nil {
		return nil, err
	}
	if c.grad != nil {
		for k, i := range c.grad.wrt {
			if out, err = c.nameGradients(out, "grad.", i, grads[k]); err != nil {
				return nil, err
			}
		}
	}
	if c.grad2 == nil {
		return out, nil
	}
	second, err := c.runGrad(ctx, c.grad2)
	if err != nil {
		return nil, err
	}
	all, err := c.nameGradients(nil, "grad2.", c.grad2.wrt[0], second[0])
	for _, g := range all {
		if g.Name == "grad2."+c.bound.V {
			out = append(out, g)
		}
	}
	return out, err
}

// named are the results as arrays: out.0, out.1, ….
func named(results []ir.Datum) ([]npz.Named, error) {
	arrays, err := Flatten(results...)
	if err != nil {
		return nil, err
	}
	out := make([]npz.Named, len(arrays))
	for i, a := range arrays {
		out[i] = npz.Named{Name: fmt.Sprintf("out.%d", i), Array: a}
	}
	return out, nil
}

func (c *Call) runGrad(ctx context.Context, g *gradCall) ([]ir.Datum, error) {
	return c.e.run(ctx, &g.program, c.o.Seed, slices.Concat(c.args, g.extra), g.cts)
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
		case a.DType != ct.DType || !slices.Equal(a.Shape, ct.Shape):
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
		if g.DType != arg.DType || !slices.Equal(g.Shape, arg.Shape) {
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

// nameGradients appends the gradients inside operand i.
func (c *Call) nameGradients(out []npz.Named, prefix string, i int, grad ir.Datum) ([]npz.Named, error) {
	err := gradientOf(c.name(i), c.args[i], grad, func(key string, g *ir.Array) error {
		out = append(out, npz.Named{Name: prefix + key, Array: g})
		return nil
	})
	return out, err
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
