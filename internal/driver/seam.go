package driver

import (
	"context"
	"errors"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
	"github.com/gtc-project/gtc/runtime"
)

var errLater = errors.New("not available yet in this version")

// parseIR reads IR text.
func parseIR(path string, src []byte) ([]*ir.Func, error) { return ir.ParseString(path, string(src)) }

// printIR writes IR text.
func printIR(f *ir.Func) string { return f.String() }

// specialise infers types for a signature and expands generic calls.
func specialise(f *ir.Func, types []ir.Type) (*ir.Func, error) {
	known := make([]*ir.Type, len(types))
	for i := range types {
		known[i] = &types[i]
	}
	return passes.SpecialiseTypes(f, known)
}

// runPasses applies passes by name ("" is all) to f in place.
func runPasses(f *ir.Func, names string) error { return errLater }

// newEngine makes the engine that the options ask for. Where none is asked for and LLVM is missing, the reference evaluator steps in
// with a warning, if fallback allows it.
func newEngine(o *Options, fallback bool) (*engine, error) {
	ro := runtime.Options{Target: runtime.Target(o.Target), Threads: o.Threads}
	switch o.Target {
	case TargetCUDA:
		return nil, errors.New("--target=cuda is not available yet in this version; use cpu or interp")
	case "":
		ro.Target = runtime.CPU
	}
	e, err := runtime.New(ro)
	if err != nil && o.Target == "" && fallback {
		o.warn("%s; going on with the reference evaluator", firstLine(err.Error()))
		ro.Target = runtime.Interp
		e, err = runtime.New(ro)
	}
	if err != nil {
		return nil, err
	}
	return &engine{e}, nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// engine runs functions on a target.
type engine struct{ *runtime.Engine }

// program is a function, specialised when it first runs. A program always runs on arguments of one signature.
type program struct {
	generic     *ir.Func
	specialised *ir.Func
}

func (e *engine) run(ctx context.Context, p *program, seed uint64, args []ir.Datum) ([]ir.Datum, error) {
	if p.specialised == nil {
		f, err := passes.Specialise(p.generic, args)
		if err != nil {
			return nil, err
		}
		p.specialised = f
	}
	return e.eval(ctx, p.specialised, seed, args)
}

func (e *engine) eval(ctx context.Context, f *ir.Func, seed uint64, args []ir.Datum) ([]ir.Datum, error) {
	ev := e.Evaluator()
	ev.RNG = ir.RNG{Seed: seed}
	return ev.Run(ctx, f, args...)
}

// Available says why the options' target cannot be used on this machine or in this version; nil where it can.
func Available(o *Options) error {
	_, err := newEngine(o, false)
	return err
}
