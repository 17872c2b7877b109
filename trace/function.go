package trace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/nn"
	"github.com/gtc-project/gtc/runtime"
	"github.com/gtc-project/gtc/tensor"
)

// MaxPaths bounds how many different values of guards a Function follows for one signature.
const MaxPaths = 8

// MaxVariants bounds how many programs a Function keeps; for more signatures it runs the function as it is.
const MaxVariants = 8

// Function is a traced function that stays able to trace: a call with a new signature, or one for which a guard does not hold, traces again. It is safe for
// concurrent use where fn is, and it is differentiated like any other operation: its results have gradients with respect to the inputs and to the tensors
// that fn captured. The values of captured tensors are those at the time of the call. GTC_DEBUG=guards prints why it traces.
//
// A program is for one signature: dtypes, ranks and sizes of the inputs, which of them share memory and which are differentiated, and the training modes of
// the modules that fn runs. The second size seen of a dimension makes it symbolic, where the function allows it.
type Function struct {
	fn   Func
	opts Options

	mu       sync.Mutex
	modes    []*nn.Mode          // of modules: those that a trace read
	variants map[string]*variant // by signature; several signatures may have the same
	count    int
}

// variant is a program with the runs that it was made from.
type variant struct {
	class  string // the signature without sizes
	runs   []*recorder
	shapes [][][]int // per run of a program with symbolic sizes
	prog   *Program
	eager  bool // too many variants: fn runs as it is
}

// New makes a Function of fn.
func New(fn Func, opts Options) *Function {
	return &Function{fn: fn, opts: opts, variants: map[string]*variant{}}
}

// NewModule makes a Function of a module: its train and evaluation modes are guards, its tensors have names.
func NewModule(m nn.Module, opts Options) *Function {
	opts.Model = m
	return New(Of(m), opts)
}

// Call computes fn on the inputs by the traced program, tracing first where none fits. Tensors that fn writes to, inputs or captured, are written to. In a
// trace of another function it is a part of that.
func (f *Function) Call(ctx context.Context, inputs ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	scope, err := tensor.JoinedScope(inputs...)
	if err != nil {
		return nil, err
	}
	if scope.Tracer() != nil {
		return call(f.fn, inputs)
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, err := f.variant(inputs)
		if err != nil {
			return nil, err
		}
		if v.eager {
			return call(f.fn, inputs)
		}
		out, err := v.prog.apply(ctx, f.opts.Engine, inputs)
		if err == nil || ctx.Err() != nil {
			return out, err
		}
		if err := f.extend(v, inputs, err); err != nil {
			return nil, err
		}
	}
}

// signature is what a program is made for, with and without the sizes. The caller holds the lock.
func (f *Function) signature(inputs []*tensor.Tensor) (sig, class string) {
	var s, c strings.Builder
	for i, x := range inputs {
		a := x.Array()
		fmt.Fprintf(&c, "%s/%d grad=%v", a.DType, len(a.Shape), x.NeedsGrad())
		fmt.Fprint(&s, a.Shape)
		if size := len(a.Data) / a.DType.Size(); !a.IsContiguous() || a.Offset != 0 || a.Len() != size {
			fmt.Fprint(&s, a.Strides, a.Offset, size)
		}
		for k, y := range inputs[:i] {
			if b := y.Array(); memory(a) != nil && memory(a) == memory(b) {
				fmt.Fprintf(&c, " shares memory with input %d", k)
				fmt.Fprint(&s, geometry(a), geometry(b))
			}
		}
		c.WriteString("; ")
	}
	if f.opts.Model != nil {
		fmt.Fprint(&c, nn.Modes(f.opts.Model))
	}
	for _, m := range f.modes {
		fmt.Fprint(&c, " training=", m.Training())
	}
	return c.String() + s.String(), c.String()
}

// explain prints why a trace is made.
func (f *Function) explain(format string, args ...any) {
	if strings.Contains(os.Getenv("GTC_DEBUG"), "guards") {
		name := f.opts.Name
		if name == "" {
			name = "forward"
		}
		fmt.Fprintf(os.Stderr, "gtc: trace of %s: %s\n", name, fmt.Sprintf(format, args...))
	}
}

// record traces fn. Modes that no earlier trace read become part of signatures, which are others then: the programs so far are forgotten.
func (f *Function) record(inputs []*tensor.Tensor) (*recorder, error) {
	r, err := record(f.fn, f.opts, inputs)
	if err != nil {
		return nil, err
	}
	known := len(f.modes)
	for _, m := range r.modes {
		if !slices.Contains(f.modes, m) {
			f.modes = append(f.modes, m)
		}
	}
	if len(f.modes) > known {
		f.variants, f.count = map[string]*variant{}, 0
	}
	return r, nil
}

// variant is the program for the signature of inputs, traced on its first call.
func (f *Function) variant(inputs []*tensor.Tensor) (*variant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sig, class := f.signature(inputs)
	if v := f.variants[sig]; v != nil {
		return v, nil
	}
	shapes := shapesOf(inputs)
	r, err := f.record(inputs)
	if err != nil {
		return nil, err
	}
	sig, class = f.signature(inputs)
	if v := f.generalise(class, r, shapes); v != nil {
		f.variants[sig] = v
		return v, nil
	}
	if f.count >= MaxVariants {
		f.explain("signature %s is one too many, as there are %d programs: the function runs as it is", sig, MaxVariants)
		v := &variant{eager: true}
		f.variants[sig] = v
		return v, nil
	}
	f.explain("new signature %s", sig)
	v := &variant{class: class, runs: []*recorder{r}, shapes: [][][]int{shapes}}
	if v.prog, err = program(f.opts, len(inputs), v.runs); err != nil {
		return nil, err
	}
	f.count++
	f.variants[sig] = v
	return v, nil
}

// generalise finds a program of the same class that becomes right for the new run, too, when sizes in it are symbolic.
func (f *Function) generalise(class string, r *recorder, shapes [][]int) *variant {
	if len(r.guards) > 0 { // what other paths do with other sizes would not be known
		return nil
	}
	seen := map[*variant]bool{}
	for _, sig := range sortedKeys(f.variants) {
		v := f.variants[sig]
		if v.eager || v.class != class || seen[v] || len(v.runs[0].guards) > 0 {
			continue
		}
		seen[v] = true
		runs, all := append(v.runs[:len(v.runs):len(v.runs)], r), append(v.shapes[:len(v.shapes):len(v.shapes)], shapes)
		prog, err := symbolic(f.opts, runs, all, differing(all), false)
		if err != nil {
			f.explain("sizes %v: not the program for %v, as %v", shapes, v.shapes[0], err)
			continue
		}
		f.explain("sizes %v besides %v: the differing ones are symbolic", shapes, v.shapes)
		w := &variant{class: class, runs: runs, shapes: all, prog: prog}
		for k, o := range f.variants {
			if o == v {
				f.variants[k] = w
			}
		}
		return w
	}
	return nil
}

// extend traces the path of inputs for which the program failed; where the function itself fails on them too, that is the error.
func (f *Function) extend(v *variant, inputs []*tensor.Tensor, cause error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	sig, _ := f.signature(inputs)
	if f.variants[sig] != v { // another goroutine was here
		return nil
	}
	if len(v.runs[len(v.runs)-1].guards) == 0 {
		return cause
	}
	if len(v.runs) >= MaxPaths {
		return fmt.Errorf("%s: the traced function took %d different paths for values read into Go here; write the branch with trace.If, or return the value", v.runs[0].guards[0].pos, MaxPaths)
	}
	f.explain("no path for these values: %v", cause)
	r, err := f.record(inputs)
	if err != nil {
		return err
	}
	for _, old := range v.runs {
		if sameGuards(old.guards, r.guards) { // the failure is no guard's
			return cause
		}
	}
	sig, class := f.signature(inputs)
	next := &variant{class: class, runs: append(v.runs[:len(v.runs):len(v.runs)], r), shapes: v.shapes}
	if next.prog, err = program(f.opts, len(inputs), next.runs); err != nil {
		return err
	}
	f.variants[sig] = next
	return nil
}

func sameGuards(a, b []guard) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].pos != b[i].pos || !sameDatum(a[i].want, b[i].want) {
			return false
		}
	}
	return true
}

// apply runs the program on tensors, and on the captured ones as they are now.
func (p *Program) apply(ctx context.Context, e *runtime.Engine, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	params := append([]*tensor.Tensor{}, inputs...)
	index := map[string]int{}
	for i := range inputs {
		index[fmt.Sprint(i)] = i
	}
	for _, c := range p.caps {
		t := c.t
		if c.made {
			t = tensor.FromArray(c.array)
		}
		index[c.id] = len(params)
		params = append(params, t)
	}
	outs, err := p.compiled().apply(ctx, e, params)
	if err != nil {
		return nil, err
	}
	n := len(outs) - len(p.Updates)
	for i, k := range p.Updates {
		t := params[k]
		if !p.grads[i] {
			t = tensor.NoGrad(t)
		}
		if err := t.CopyFrom(outs[n+i]).Err(); err != nil {
			return nil, err
		}
		if !p.grads[i] { // nobody reads it any more: its memory is used again at once
			ir.Release(outs[n+i].Array())
		}
	}
	for i, a := range p.aliases {
		if a.dup >= 0 || a.param != "" {
			ir.Release(outs[i].Array())
		}
		switch {
		case a.dup >= 0:
			outs[i] = outs[a.dup]
		case a.same:
			outs[i] = params[index[a.param]]
		case a.param != "":
			// the trace's copies of the inputs have their memory layouts
			outs[i] = params[index[a.param]].StorageView(a.view.Shape, a.view.Strides, a.view.Offset)
		case a.fixed:
			outs[i] = outs[i].Detach()
		}
	}
	return outs[:n], nil
}

// compiled is a function that runs on tensors, with gradients of its own.
type compiled struct {
	f      *ir.Func
	random bool
	writes map[int]bool // parameters that are written to after it ran
	mu     sync.Mutex
	grads  map[string]*compiled
}

func (p *Program) compiled() *compiled {
	p.once.Do(func() {
		p.tensors = newCompiled(p.Func)
		p.tensors.writes = map[int]bool{}
		for _, k := range p.Updates {
			p.tensors.writes[k] = true
		}
	})
	return p.tensors
}

func newCompiled(f *ir.Func) *compiled {
	c := &compiled{f: f, grads: map[string]*compiled{}}
	f.Body.Walk(func(n *ir.Node) { c.random = c.random || n.Op.Name == "rng" })
	return c
}

// state is what the gradient of a call needs besides tensors.
type state struct {
	rng    ir.RNG
	params int
	floats []bool // results that are floating-point
}

// apply runs the function; its results are differentiable with respect to ts.
func (c *compiled) apply(ctx context.Context, e *runtime.Engine, ts []*tensor.Tensor) ([]*tensor.Tensor, error) {
	scope, err := tensor.JoinedScope(ts...)
	if err != nil {
		return nil, err
	}
	var rng ir.RNG
	if c.random {
		must(scope.Generator().With(func(g *ir.RNG) error { rng = *g; return nil }))
	}
	outs, after, err := c.applyFrom(ctx, e, rng, ts)
	if c.random && err == nil {
		must(scope.Generator().With(func(g *ir.RNG) error { *g = after; return nil }))
	}
	return outs, err
}

func (c *compiled) applyFrom(ctx context.Context, e *runtime.Engine, rng ir.RNG, ts []*tensor.Tensor) (outs []*tensor.Tensor, after ir.RNG, err error) {
	if e == nil {
		e = runtime.Default()
	}
	if len(c.f.Returns()) == 0 {
		_, after, err = c.run(ctx, e, rng, ts)
		return nil, after, err
	}
	f := &tensor.Function{
		Name: c.f.Name,
		Forward: func(fc *tensor.FunctionContext, in []*tensor.Tensor) []*tensor.Tensor {
			var outs []*tensor.Tensor
			if outs, after, err = c.run(ctx, e, rng, in); err != nil {
				return []*tensor.Tensor{nil} // err says why
			}
			s := &state{rng: rng, params: len(in)}
			for _, o := range outs {
				s.floats = append(s.floats, o.DType().IsFloat())
			}
			fc.Value = s
			saved := append([]*tensor.Tensor{}, in...)
			for k := range c.writes {
				saved[k] = tensor.FromArray(in[k].Array().Copy())
			}
			fc.Save(saved...)
			return outs
		},
		Backward: func(fc *tensor.FunctionContext, ct []*tensor.Tensor) []*tensor.Tensor {
			gs, err := c.backward(e, fc, ct)
			if err != nil {
				gs = make([]*tensor.Tensor, len(fc.Saved()))
				gs[0] = tensor.Failed("gradient of "+c.f.Name, nil, err)
			}
			return gs
		},
	}
	outs = f.Apply(ts...)
	if err != nil {
		return nil, after, err
	}
	if outs[0].Err() != nil {
		return nil, after, outs[0].Err()
	}
	return outs, after, nil
}

// run computes the function without recording.
func (c *compiled) run(ctx context.Context, e *runtime.Engine, rng ir.RNG, ts []*tensor.Tensor) ([]*tensor.Tensor, ir.RNG, error) {
	args := make([]ir.Datum, len(ts))
	for i, t := range ts {
		if t.Err() != nil {
			return nil, rng, t.Err()
		}
		args[i] = t.Array()
	}
	r := e.Runner()
	r.RNG = rng
	data, err := r.Run(ctx, c.f, args...)
	if err != nil {
		return nil, rng, err
	}
	outs := make([]*tensor.Tensor, len(data))
	for i, d := range data {
		a, ok := d.(*ir.Array)
		if !ok {
			return nil, rng, fmt.Errorf("%s: result %d is %s, no tensor", c.f.Name, i, ir.TypeOf(d))
		}
		for _, t := range ts {
			if memory(t.Array()) == memory(a) && memory(a) != nil {
				a = a.Copy()
				ir.Release(d)
			}
		}
		outs[i] = tensor.FromArray(a)
	}
	return outs, r.RNG, nil
}

// backward gives the gradients of the operands by the compiled gradient function, which can be differentiated in turn.
func (c *compiled) backward(e *runtime.Engine, fc *tensor.FunctionContext, ct []*tensor.Tensor) ([]*tensor.Tensor, error) {
	s, ok := fc.Value.(*state)
	if !ok {
		return nil, errors.New("the call that is differentiated failed")
	}
	in := fc.Saved()
	var wrt []int
	for i, x := range in {
		if x.Err() != nil {
			return nil, x.Err()
		}
		if x.DType().IsFloat() {
			wrt = append(wrt, i)
		}
	}
	g, err := c.gradient(wrt, s.floats)
	if err != nil {
		return nil, err
	}
	args := append([]*tensor.Tensor{}, in...)
	for i, t := range ct {
		if s.floats[i] {
			args = append(args, t)
		}
	}
	gs, _, err := g.applyFrom(context.Background(), e, s.rng, args)
	if err != nil {
		return nil, err
	}
	out := make([]*tensor.Tensor, len(in))
	for k, i := range wrt {
		out[i] = gs[k]
	}
	return out, nil
}

func (c *compiled) gradient(wrt []int, cts []bool) (*compiled, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprint(wrt, cts)
	if g := c.grads[key]; g != nil {
		return g, nil
	}
	f, err := autograd.VJP(silent(c.f), wrt, cts)
	if err != nil {
		return nil, err
	}
	g := newCompiled(f)
	c.grads[key] = g
	return g, nil
}
