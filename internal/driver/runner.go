package driver

import (
	"context"

	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
)

// Runner is a loaded model for many calls, also concurrent ones. Each signature of arguments is compiled once.
type Runner struct {
	model *Model
	f     *ir.Func // of the parameters: the weights are constants in it
	e     *engine
	o     Options
	types []ir.Type // of the parameters, as far as the options' signature tells
	out   []ir.Type // of the results, as far as that tells
}

// NewRunner loads a model. Where the options have a signature, the model is compiled for it and run once.
func NewRunner(ctx context.Context, path string, o *Options) (*Runner, error) {
	m, err := Load(path, o)
	if err != nil {
		return nil, err
	}
	e, err := newEngine(o, true)
	if err != nil {
		return nil, err
	}
	k := len(m.Params)
	r := &Runner{model: m, f: passes.Freeze(m.Func, k, m.arguments(&Bound{Args: make([]ir.Datum, k)})[k:]), e: e, o: *o}
	if r.types, err = Signature(m.Params, o); err != nil {
		return nil, err
	}
	f, err := m.shape(o, nil, &Observe{})
	if err != nil {
		return nil, err
	}
	r.out = f.ResultTypes()[:len(f.ResultTypes())-m.Updated]
	if !o.hasSignature() {
		return r, nil
	}
	bound, err := Arguments(m.Params, o)
	if err != nil {
		return nil, err
	}
	_, done, err := r.run(ctx, bound)
	if err == nil {
		done()
	}
	return r, err
}

// Inputs describes the parameters, with the types of the signature where there is one.
func (r *Runner) Inputs() []Param {
	out := make([]Param, len(r.model.Params))
	for i, p := range r.model.Params {
		p.Type = r.types[i]
		out[i] = p
	}
	return out
}

// Outputs are the types of the results as far as they are known without running.
func (r *Runner) Outputs() []ir.Type { return r.out }

// Run binds arrays to the parameters by name, runs the model and gives the results as out.0, out.1, …; they may be read until done is called.
func (r *Runner) Run(ctx context.Context, arrays Arrays) (out []npz.Named, done func(), err error) {
	bound, err := Bind(r.model.Params, arrays, false)
	if err != nil {
		return nil, nil, err
	}
	return r.run(ctx, bound)
}

func (r *Runner) run(ctx context.Context, bound *Bound) (out []npz.Named, done func(), err error) {
	f, err := r.e.Compile(r.f, bound.Args)
	if err != nil {
		return nil, nil, err
	}
	results, err := r.e.eval(ctx, f, r.o.Seed, bound.Args)
	if err != nil {
		return nil, nil, err
	}
	out, err = named(r.model.own(results))
	return out, func() { ir.Release(results...) }, err
}
