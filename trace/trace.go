package trace

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/nn"
	"github.com/gtc-project/gtc/runtime"
	"github.com/gtc-project/gtc/tensor"
)

// MaxPaths bounds how many different values of guards a Function follows for one signature.
const MaxPaths = 8

// Options of a trace. The zero value traces on the default engine.
type Options struct {
	Name   string          // of the function; "forward" where empty
	Model  any             // a model whose parameters and buffers give captured tensors their names
	Engine *runtime.Engine // runs the compiled function; nil means the default
	Inputs []string        // names of the inputs; "x" or "x0", "x1", … where empty
}

// Program is a traced function for one signature of inputs: an artefact that can be saved, compiled and run, but not trace any more.
type Program struct {
	Func    *ir.Func
	Inputs  []string             // names of the first parameters
	Weights map[string]*ir.Array // the values of the others, by parameter name

	frozen *ir.Func // of a package that was read: Func with the weights as constants
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

// Trace records one run of fn on clones of the inputs.
func Trace(fn Func, opts Options, inputs ...*tensor.Tensor) (*Program, error) {
	r, err := runOnce(fn, opts, inputs)
	if err != nil {
		return nil, err
	}
	return program(opts, inputs, []*recorder{r})
}

// program merges recorded runs into one function.
func program(opts Options, inputs []*tensor.Tensor, runs []*recorder) (*Program, error) {
	p := &Program{Inputs: inputNames(opts, len(inputs)), Weights: map[string]*ir.Array{}}
	paths := make([]*path, len(runs))
	unifyCaptures(runs, len(inputs))
	for i, r := range runs {
		paths[i] = &path{f: r.b.Func, guards: r.guards}
	}
	for _, c := range runs[0].caps {
		p.Weights[c.name] = c.array
	}
	var err error
	p.Func, err = merge(runs[0].name, paths)
	return p, err
}

// unifyCaptures gives all runs the same parameters in the same order: the inputs, then every capture of any run.
func unifyCaptures(runs []*recorder, inputs int) {
	var all []*capture
	index := map[string]int{}
	for _, r := range runs {
		for _, c := range r.caps {
			if _, ok := index[c.name]; !ok {
				index[c.name] = len(all)
				all = append(all, c)
			}
		}
	}
	for _, r := range runs {
		have := map[string]*capture{}
		for _, c := range r.caps {
			have[c.name] = c
		}
		f := r.b.Func
		f.Body.Params, f.ParamNames = f.Body.Params[:inputs:inputs], f.ParamNames[:inputs:inputs]
		r.caps = nil
		for _, c := range all {
			if h := have[c.name]; h != nil {
				f.Body.Params = append(f.Body.Params, h.param)
				f.ParamNames = append(f.ParamNames, c.name)
			} else {
				f.Param(c.name, c.array.Type())
			}
			r.caps = append(r.caps, c)
		}
	}
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

// runOnce runs fn on traced clones of the inputs.
func runOnce(fn Func, opts Options, inputs []*tensor.Tensor) (*recorder, error) {
	name := opts.Name
	if name == "" {
		name = "forward"
	}
	r := newRecorder(name)
	if opts.Model != nil {
		for _, e := range nn.Entries(opts.Model) {
			r.names[e.Tensor.Array()] = e.Name
		}
	}
	names := inputNames(opts, len(inputs))
	args := make([]*tensor.Tensor, len(inputs))
	for i, x := range inputs {
		if x.Err() != nil {
			return nil, x.Err()
		}
		a := x.Array().Copy()
		args[i] = tensor.FromArray(a).With(tensor.NewScope(opts.Engine).WithTracer(r))
		r.set(a, r.b.Func.Param(names[i], a.Type()))
	}
	var outs []*tensor.Tensor
	var err error
	if e := ir.Try(func() { outs, err = fn(args...) }); e != nil {
		err = e
	}
	if err != nil {
		return nil, fmt.Errorf("trace of %s: %w", name, err)
	}
	rets := make([]*ir.Value, len(outs))
	for i, o := range outs {
		if o.Err() != nil {
			return nil, fmt.Errorf("trace of %s: result %d: %w", name, i, o.Err())
		}
		rets[i] = r.tensor(o.Array())
	}
	r.b.Return(rets...)
	return r, nil
}

// Run computes the program's results on the reference or compiled path of an engine.
func (p *Program) Run(ctx context.Context, e *runtime.Engine, inputs ...*ir.Array) ([]ir.Datum, error) {
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
	return e.Run(ctx, p.Func, args...)
}

// Check runs the program and the function on inputs and compares the results: they must agree within rtol and atol, NaN equal to NaN.
func (p *Program) Check(fn Func, e *runtime.Engine, rtol, atol float64, inputs ...*tensor.Tensor) error {
	clones := make([]*tensor.Tensor, len(inputs))
	arrays := make([]*ir.Array, len(inputs))
	for i, x := range inputs {
		arrays[i] = x.Array().Copy()
		clones[i] = tensor.FromArray(x.Array().Copy()).With(tensor.NewScope(e))
	}
	want, err := fn(clones...)
	if err != nil {
		return err
	}
	got, err := p.Run(context.Background(), e, arrays...)
	if err != nil {
		return err
	}
	for i, w := range want {
		if w.Err() != nil {
			return w.Err()
		}
		g, ok := got[i].(*ir.Array)
		if !ok || fmt.Sprint(g.Shape) != fmt.Sprint(w.Shape()) || g.DType != w.DType() {
			return fmt.Errorf("result %d of the traced function is %s, eagerly it is %s%v", i, ir.TypeOf(got[i]), w.DType(), w.Shape())
		}
		wf, gf := w.Array().Floats(), g.Floats()
		for k := range wf {
			if wf[k] != gf[k] && !(math.IsNaN(wf[k]) && math.IsNaN(gf[k])) && !(math.Abs(wf[k]-gf[k]) <= atol+rtol*math.Abs(wf[k])) {
				return fmt.Errorf("result %d, element %d: the traced function gives %g, the eager one %g: it depends on something that the trace does not see", i, k, gf[k], wf[k])
			}
		}
	}
	return nil
}

// Function is a traced function that stays able to trace: a call with a new signature, or one for which a guard does not hold, traces again. It is safe for
// concurrent use where fn is.
type Function struct {
	fn   Func
	opts Options

	mu       sync.Mutex
	programs map[string]*variant
}

type variant struct {
	runs []*recorder
	prog *Program
}

// New makes a Function of fn.
func New(fn Func, opts Options) *Function {
	return &Function{fn: fn, opts: opts, programs: map[string]*variant{}}
}

// Call computes fn on the inputs by the traced program, tracing first where none fits.
func (f *Function) Call(ctx context.Context, inputs ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	sig := ""
	arrays := make([]*ir.Array, len(inputs))
	for i, x := range inputs {
		if x.Err() != nil {
			return nil, x.Err()
		}
		sig += fmt.Sprintf("%s%v;", x.DType(), x.Shape())
		arrays[i] = x.Array()
	}
	v, err := f.variant(sig, inputs)
	if err != nil {
		return nil, err
	}
	e := f.opts.Engine
	if e == nil {
		e = runtime.Default()
	}
	for {
		out, err := v.prog.Run(ctx, e, arrays...)
		if err == nil {
			res := make([]*tensor.Tensor, len(out))
			for i, d := range out {
				res[i] = tensor.FromArray(d.(*ir.Array).Copy()).With(tensor.NewScope(f.opts.Engine))
			}
			return res, nil
		}
		if v, err = f.extend(sig, v, inputs, err); err != nil {
			return nil, err
		}
	}
}

// variant is the program for a signature, traced on its first call.
func (f *Function) variant(sig string, inputs []*tensor.Tensor) (*variant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v := f.programs[sig]; v != nil {
		return v, nil
	}
	v, err := f.trace(nil, inputs)
	if err == nil {
		f.programs[sig] = v
	}
	return v, err
}

func (f *Function) trace(old *variant, inputs []*tensor.Tensor) (*variant, error) {
	r, err := runOnce(f.fn, f.opts, inputs)
	if err != nil {
		return nil, err
	}
	v := &variant{}
	if old != nil {
		v.runs = old.runs
	}
	v.runs = append(v.runs[:len(v.runs):len(v.runs)], r)
	v.prog, err = program(f.opts, inputs, v.runs)
	return v, err
}

// extend traces the path of inputs for which the program failed; where the function itself fails on them too, that is the error.
func (f *Function) extend(sig string, v *variant, inputs []*tensor.Tensor, cause error) (*variant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.programs[sig]; now != v {
		return now, nil
	}
	if len(v.runs[len(v.runs)-1].guards) == 0 {
		return nil, cause
	}
	if len(v.runs) >= MaxPaths {
		g := v.runs[0].guards[0]
		return nil, fmt.Errorf("%s: the traced function took %d different paths for values read into Go here; write the branch with trace.If, or return the value", g.pos, MaxPaths)
	}
	next, err := f.trace(v, inputs)
	if err != nil {
		return nil, err
	}
	f.programs[sig] = next
	return next, nil
}

// Peek calls look in a way that reads of traced tensors of t's trace neither guard nor fail: it promises that nothing of what look finds out steers the
// traced function.
func Peek(t *tensor.Tensor, look func()) {
	r, ok := t.Scope().Tracer().(*recorder)
	if ok {
		r.peek = true
		defer func() { r.peek = false }()
	}
	look()
}
