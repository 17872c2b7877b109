package trace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/nn"
	"github.com/gtc-project/gtc/runtime"
	"github.com/gtc-project/gtc/tensor"
)

// Options of a trace. The zero value traces on the default engine.
type Options struct {
	Name   string          // of the function; "forward" where empty
	Model  any             // a model whose parameters and buffers give captured tensors their names
	Engine *runtime.Engine // runs the compiled function; nil means the default
	Inputs []string        // names of the inputs; "x" or "x0", "x1", … where empty
	// NoCheck leaves out the second run of the function, which finds out that it depends on something besides its tensors.
	NoCheck bool
	// Dynamic names sizes that may be others when the program runs, by input number and dimension. Sizes with the same name are equal. See Dynamic.
	Dynamic map[Dynamic]string
}

// Dynamic is a dimension of an input.
type Dynamic struct{ Input, Dim int }

// Program is a traced function for one signature of inputs: an artefact that can be saved, compiled and run, but not trace any more.
type Program struct {
	Func    *ir.Func
	Inputs  []string             // names of the first parameters
	Weights map[string]*ir.Array // the values of the others, by parameter name

	// Updates are the parameters whose values Func gives after its results: the inputs and weights that the traced function writes to in place. Run
	// writes them; a package leaves them out.
	Updates []int

	frozen  *ir.Func // of a package that was read: Func with the weights as constants
	caps    []*capture
	aliases []alias
	grads   []bool // per update: it is differentiable
	once    sync.Once
	tensors *compiled
}

// Func is what can be traced: a function of tensors.
type Func = func(args ...*tensor.Tensor) ([]*tensor.Tensor, error)

// Of makes a Func of a module.
func Of(m nn.Module) Func {
	return func(args ...*tensor.Tensor) ([]*tensor.Tensor, error) {
		if len(args) != 1 {
			return nil, fmt.Errorf("the module takes one input, got %d", len(args))
		}
		y := m.Forward(args[0])
		return []*tensor.Tensor{y}, y.Err()
	}
}

// Results makes a Func's results of tensors; the error is the first that one of them holds.
func Results(ts ...*tensor.Tensor) ([]*tensor.Tensor, error) { return firstErr(ts) }

// Trace records one run of fn on clones of the inputs. The function is run again and must do the same, unless Options say otherwise.
func Trace(fn Func, opts Options, inputs ...*tensor.Tensor) (*Program, error) {
	if len(opts.Dynamic) > 0 {
		return traceDynamic(fn, opts, inputs)
	}
	r, err := record(fn, opts, inputs)
	if err != nil {
		return nil, err
	}
	return program(opts, len(inputs), []*recorder{r})
}

// record runs fn, twice where it is to be checked.
func record(fn Func, opts Options, inputs []*tensor.Tensor) (*recorder, error) {
	r, err := runOnce(fn, opts, inputs)
	if err != nil || opts.NoCheck {
		return r, err
	}
	again, err := runOnce(fn, opts, inputs)
	if err != nil {
		return nil, fmt.Errorf("%w; it was traced without error just before: it depends on something besides its tensors", err)
	}
	if _, err = program(opts, len(inputs), []*recorder{r, again}); err != nil {
		return nil, err
	}
	for i, g := range r.guards {
		if !sameDatum(g.want, again.guards[i].want) {
			return nil, fmt.Errorf("%s: two runs of the traced function on the same inputs read %s, then %s here%s", g.pos, ir.FormatDatum(g.want), ir.FormatDatum(again.guards[i].want), remedy)
		}
	}
	return r, nil
}

// program merges recorded runs into one function.
func program(opts Options, inputs int, runs []*recorder) (*Program, error) {
	p, paths, err := prepare(opts, inputs, runs)
	if err != nil {
		return nil, err
	}
	p.Func, err = merge(runs[0].name, paths, p.fixedSizes(runs))
	return p, err
}

// fixedSizes checks the sizes of the inputs that the program was traced with, where it depends on them: where Go code read them, or the program writes in
// place. Symbolic sizes are not checked.
func (p *Program) fixedSizes(runs []*recorder) func(b *ir.Builder) {
	if !slices.ContainsFunc(runs, func(r *recorder) bool { return r.sized }) {
		return nil
	}
	return func(b *ir.Builder) {
		for i, x := range b.Func.Body.Params[:len(p.Inputs)] {
			for d, dim := range x.Type.Dims {
				if !dim.Known() {
					continue
				}
				same := b.Op("py_eq", b.Op("size", x, b.Int(d)), b.Int(dim.N))
				b.Emit("assert", same, b.Str(fmt.Sprintf("%s was traced for inputs %s of sizes %s, which its Go code reads: dimension %d must be %d; trace it with --dynamic %s:%d (trace.Options.Dynamic) for others",
					b.Func.Name, p.Inputs[i], ir.FormatDatum(ir.Ints(x.Type.Shape()...)), d, dim.N, p.Inputs[i], d)))
			}
		}
	}
}

// prepare gives a program without its function, and the paths that this is to be made of.
func prepare(opts Options, inputs int, runs []*recorder) (*Program, []*path, error) {
	p := &Program{Inputs: inputNames(opts, inputs), Weights: map[string]*ir.Array{}}
	caps := unifyCaptures(runs, inputs)
	p.caps = caps
	ids := make([]string, inputs, inputs+len(caps))
	for i, x := range runs[0].inputs {
		ids[i] = identity(x.Array())
	}
	for _, c := range caps {
		p.Weights[c.name] = c.array
		ids = append(ids, c.id)
	}
	paths := make([]*path, len(runs))
	for i, r := range runs {
		paths[i] = &path{f: r.b.Func, guards: r.guards, rets: append([]*ir.Value{}, r.outs...)}
		if len(r.outs) != len(runs[0].outs) {
			return nil, nil, fmt.Errorf("the traced function %s gives %d results in one run, and %d in another", r.name, len(runs[0].outs), len(r.outs))
		}
	}
	for k := range ids {
		written, grad := false, false
		for _, r := range runs {
			u, ok := r.updates[r.ids(k, ids)]
			written, grad = written || ok, grad || u.grad
		}
		if !written {
			continue
		}
		p.Updates, p.grads = append(p.Updates, k), append(p.grads, grad)
		for i, r := range runs {
			v := r.b.Func.Body.Params[k]
			if u, ok := r.updates[r.ids(k, ids)]; ok {
				v = u.v
			}
			paths[i].rets = append(paths[i].rets, v)
		}
	}
	p.aliases = commonAliases(runs)
	return p, paths, nil
}

// ids is the identity of parameter k in this run: the clones of inputs differ from run to run.
func (r *recorder) ids(k int, ids []string) string {
	if k < len(r.inputs) {
		return identity(r.inputs[k].Array())
	}
	return ids[k]
}

// commonAliases are those that all runs have; parameters are named by number for inputs, by identity for captures.
func commonAliases(runs []*recorder) []alias {
	out := append([]alias{}, runs[0].aliases...)
	for _, r := range runs[1:] {
		for i, a := range r.aliases {
			if a.param != out[i].param || a.same != out[i].same || a.dup != out[i].dup || a.view != nil && out[i].view != nil && geometry(a.view) != geometry(out[i].view) {
				out[i] = alias{dup: -1, fixed: out[i].fixed}
			}
			out[i].fixed = out[i].fixed && a.fixed
		}
	}
	return out
}

func geometry(a *ir.Array) string { return fmt.Sprint(a.DType, a.Shape, a.Strides, a.Offset) }

// unifyCaptures gives all runs the same parameters in the same order: the inputs, then every capture of any run.
func unifyCaptures(runs []*recorder, inputs int) []*capture {
	var all []*capture
	index := map[string]bool{}
	names := map[string]bool{}
	for _, r := range runs {
		for _, c := range r.caps {
			if index[c.id] {
				continue
			}
			index[c.id] = true
			for k := len(all); names[c.name]; k++ {
				c.name = fmt.Sprintf("const.%d", k)
			}
			names[c.name] = true
			all = append(all, c)
		}
	}
	for _, r := range runs {
		have := map[string]*ir.Value{}
		for i, c := range r.caps {
			have[c.id] = r.b.Func.Body.Params[inputs+i]
		}
		f := r.b.Func
		f.Body.Params, f.ParamNames = f.Body.Params[:inputs:inputs], f.ParamNames[:inputs:inputs]
		r.caps = nil
		for _, c := range all {
			if v := have[c.id]; v != nil {
				f.Body.Params = append(f.Body.Params, v)
				f.ParamNames = append(f.ParamNames, c.name)
			} else {
				f.Param(c.name, c.array.Type())
			}
			r.caps = append(r.caps, c)
		}
	}
	return all
}

func inputNames(opts Options, n int) []string {
	names := append([]string{}, opts.Inputs...)
	for len(names) < n {
		if n == 1 {
			names = append(names, "x")
		} else {
			names = append(names, fmt.Sprintf("x%d", len(names)))
		}
	}
	return names
}

// runOnce runs fn on traced clones of the inputs. What it does to captured tensors is undone.
func runOnce(fn Func, opts Options, inputs []*tensor.Tensor) (*recorder, error) {
	name := opts.Name
	if name == "" {
		name = "forward"
	}
	scope, err := tensor.JoinedScope(inputs...)
	if err != nil {
		return nil, fmt.Errorf("trace of %s: %w", name, err)
	}
	if scope.Tracer() != nil {
		return nil, fmt.Errorf("trace of %s: the inputs belong to the trace of %v: call the function itself inside of that", name, scope.Tracer())
	}
	if opts.Engine != nil {
		scope = tensor.NewScope(opts.Engine)
	}
	var rng ir.RNG
	must(scope.Generator().With(func(g *ir.RNG) error { rng = *g; return nil }))
	tensor.Tracing(1)
	defer tensor.Tracing(-1)
	r := newRecorder(name)
	if opts.Model != nil {
		for _, e := range nn.Entries(opts.Model) {
			r.names[e.Tensor.Array()] = e.Name
		}
	}
	scope = scope.WithTracer(r)
	names := inputNames(opts, len(inputs))
	leaves := make([]*tensor.Tensor, len(inputs))
	args := make([]*tensor.Tensor, len(inputs))
	for i, x := range cloneInputs(inputs) {
		if inputs[i].NeedsGrad() {
			x = x.RequiresGrad()
			if leaves[i] = x; !inputs[i].IsLeaf() { // then it may be written to
				x = x.Clone()
			}
		}
		args[i] = x.With(scope)
		r.set(x.Array(), r.b.Func.Param(names[i], x.Array().Type()))
	}
	r.inputs = args
	var mu sync.Mutex
	stop := nn.WatchModes(func(m *nn.Mode) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(r.modes, m) {
			r.modes = append(r.modes, m)
		}
	})
	outs, err := call(fn, append([]*tensor.Tensor{}, args...))
	stop()
	r.finish(outs, err == nil)
	must(scope.Generator().With(func(g *ir.RNG) error { *g = rng; return nil }))
	if err == nil {
		for i, x := range leaves {
			if x != nil && x.Grad() != nil && inputs[i].IsLeaf() {
				err = fmt.Errorf("Backward accumulates a gradient in input %s, which a trace cannot do: use tensor.Grad and return the gradient", names[i])
			}
		}
	}
	if err == nil {
		err = r.err
	}
	if err != nil {
		return nil, fmt.Errorf("trace of %s: %w", name, err)
	}
	return r, nil
}

func must(err error) {
	if err != nil {
		panic("BUG: " + err.Error())
	}
}

// call runs fn; a panic of it is an error with the line of the panic.
func call(fn Func, args []*tensor.Tensor) (outs []*tensor.Tensor, err error) {
	defer func() {
		if p := recover(); p != nil {
			if e, ok := p.(error); ok && strings.HasPrefix(e.Error(), "BUG:") {
				panic(p)
			}
			outs, err = nil, fmt.Errorf("%s: the traced function panicked: %v", callerPos(), p)
		}
	}()
	outs, err = fn(args...)
	for i, o := range outs {
		switch {
		case err != nil:
		case o == nil:
			err = fmt.Errorf("result %d is nil", i)
		case o.Err() != nil:
			err = fmt.Errorf("result %d: %w", i, o.Err())
		}
	}
	return outs, err
}

// cloneInputs copies the inputs; those that share memory do so in the copies, and strides stay.
func cloneInputs(inputs []*tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(inputs))
	first := map[*byte]*tensor.Tensor{}
	for i, x := range inputs {
		a := x.Array()
		mem := memory(a)
		base := first[mem]
		if base == nil || mem == nil {
			base = tensor.FromArray(a.View([]int{len(a.Data) / a.DType.Size()}, []int{1}, 0).Copy())
			first[mem] = base
		}
		switch {
		case mem == nil:
			out[i] = tensor.FromArray(a.Copy())
		case base != nil && x.DType() == base.DType():
			out[i] = base.StorageView(a.Shape, a.Strides, a.Offset)
		default:
			out[i] = tensor.FromArray(a.Copy())
		}
	}
	return out
}

// finish ends the trace: it takes the results and what was written, and puts captured tensors back as they were.
func (r *recorder) finish(outs []*tensor.Tensor, ok bool) {
	defer func() { r.done = true }()
	if ok {
		for i, o := range outs {
			if tr := o.Scope().Tracer(); tr != nil && tr != tensor.Tracer(r) {
				r.fail(fmt.Errorf("result %d belongs to another trace, of %v", i, tr))
				return
			}
			r.outs = append(r.outs, r.tensor(o))
		}
		r.aliases = r.aliasesOf(outs)
		for _, x := range r.inputs {
			r.update(x, identity(x.Array()))
		}
		for _, c := range r.caps {
			if !c.made {
				r.update(c.t, c.id)
			}
		}
	}
	for i := len(r.caps) - 1; i >= 0; i-- {
		c := r.caps[i]
		if c.made {
			continue
		}
		if c.t.Grad() != c.grad {
			c.t.SetGrad(c.grad)
			r.fail(fmt.Errorf("Backward accumulates a gradient in the captured tensor %s, which a trace cannot do: use tensor.Grad and return the gradient", r.describe(c.t)))
		}
		_, written, _ := c.t.Since(r.start)
		if !written {
			continue
		}
		if r.stores[memory(c.t.Array())] == nil {
			r.fail(fmt.Errorf("the captured tensor %s was written to by the function, but the trace did not see it, as no operand belongs to the trace: write it with t.With(x.Scope()).Add_(…), x being an input", r.describe(c.t)))
		}
		if err := tensor.NoGrad(c.t.With(nil)).CopyFrom(tensor.FromArray(c.array)).Err(); err != nil {
			r.fail(err)
		}
	}
}

// update notes the value of an input or capture that was written to.
func (r *recorder) update(t *tensor.Tensor, id string) {
	if w := r.stores[memory(t.Array())]; w != nil {
		r.updates[id] = update{r.tensor(t), w.grad}
	}
}

// aliasesOf finds results that share memory with inputs, captures or earlier results.
func (r *recorder) aliasesOf(outs []*tensor.Tensor) []alias {
	out := make([]alias, len(outs))
	for i, o := range outs {
		a := o.Array()
		out[i] = alias{dup: -1, fixed: r.constants[r.outs[i]] == r.outs[i]}
		for k := range i {
			if outs[k].Array() == a {
				out[i].dup = k
				break
			}
		}
		if out[i].dup >= 0 || memory(a) == nil {
			continue
		}
		set := func(id string, p *ir.Array) {
			if memory(p) != memory(a) || out[i].same {
				return
			}
			out[i].param, out[i].same, out[i].view = id, geometry(p) == geometry(a), a
		}
		for k, x := range r.inputs {
			set(fmt.Sprint(k), x.Array())
		}
		for _, c := range r.caps {
			if !c.made {
				set(c.id, c.t.Array())
			}
		}
	}
	return out
}

// Run computes the program's results on an engine. What the traced function writes to in place, inputs and weights, is written to.
func (p *Program) Run(ctx context.Context, e *runtime.Engine, inputs ...*ir.Array) ([]ir.Datum, error) {
	var rng ir.RNG
	return p.runFrom(ctx, e, &rng, inputs)
}

func (p *Program) runFrom(ctx context.Context, e *runtime.Engine, rng *ir.RNG, inputs []*ir.Array) ([]ir.Datum, error) {
	if len(inputs) != len(p.Inputs) {
		return nil, fmt.Errorf("%s takes %d inputs, got %d", p.Func.Name, len(p.Inputs), len(inputs))
	}
	args := make([]ir.Datum, 0, len(p.Func.ParamNames))
	for _, x := range inputs {
		args = append(args, x)
	}
	for _, name := range p.Func.ParamNames[len(inputs):] {
		args = append(args, p.Weights[name])
	}
	r := e.Runner()
	r.RNG = *rng
	out, err := r.Run(ctx, p.Func, args...)
	if err != nil {
		return nil, err
	}
	*rng = r.RNG
	n := len(out) - len(p.Updates)
	for i, k := range p.Updates {
		to, from := tensor.FromArray(args[k].(*ir.Array)), tensor.FromArray(out[n+i].(*ir.Array))
		if err := to.CopyFrom(from).Err(); err != nil {
			return nil, err
		}
	}
	return out[:n], nil
}

// Peek calls look in a way that reads of traced tensors of t's trace neither guard nor fail: it promises that nothing of what look finds out steers the
// traced function.
func Peek(t *tensor.Tensor, look func()) {
	r, ok := t.Scope().Tracer().(*recorder)
	if ok {
		old := r.peek
		r.peek = true
		defer func() { r.peek = old }()
	}
	look()
}
