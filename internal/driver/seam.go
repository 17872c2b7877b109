package driver

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
	"github.com/gtc-project/gtc/runtime"
)

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

// runPasses applies passes by name; nil means the default ones.
func runPasses(f *ir.Func, names []string, e *Observe) (*ir.Func, error) {
	return passes.Run(f, passes.Options{Passes: names, After: e.after()})
}

// newEngine makes the engine that the options ask for. Where none is asked for and LLVM is missing, the reference evaluator steps in
// with a warning, if fallback allows it.
func newEngine(o *Options, fallback bool) (*engine, error) {
	ro := runtime.Options{Target: runtime.Target(o.Target), Threads: o.Threads, Arch: o.Arch}
	switch o.Target {
	case TargetCUDA:
		return nil, errors.New("--target=cuda is not available yet in this version; use cpu or interp")
	case TargetInterp:
		if !o.nativeArch() {
			return nil, errors.New("--arch goes with machine code: --target=cpu")
		}
	case "":
		ro.Target = runtime.CPU
		fallback = fallback && o.nativeArch()
	}
	if o.Threads > 0 {
		goruntime.GOMAXPROCS(o.Threads) // ops on the host, too, share their work among so many
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

// program is a function, or its gradient, compiled when it first runs. A program always runs on arguments of one signature.
type program struct {
	f        *ir.Func
	grad     *autograd.Options // nil for the function itself
	frozen   int               // so many of the last arguments never change: they become constants
	compiled *ir.Func
}

// compile compiles a program, once, for arguments of a signature.
func (e *engine) compile(p *program, args []ir.Datum) (err error) {
	if p.compiled == nil {
		k := len(args) - p.frozen
		p.compiled, err = passes.Compile(passes.Freeze(p.f, k, args[k:]), args[:k], p.grad, passes.Options{})
	}
	return err
}

// run runs a program on its arguments; a gradient also takes cotangents.
func (e *engine) run(ctx context.Context, p *program, seed uint64, args, cts []ir.Datum) ([]ir.Datum, error) {
	if err := e.compile(p, args); err != nil {
		return nil, err
	}
	return e.eval(ctx, p.compiled, seed, slices.Concat(args[:len(args)-p.frozen], cts))
}

// resultTypes infers the types of f's results for arguments.
func resultTypes(f *ir.Func, args []ir.Datum) ([]ir.Type, error) {
	f = f.Clone()
	if err := autograd.ExpandGradNodes(f); err != nil {
		return nil, err
	}
	s, err := passes.Specialise(f, args)
	if err != nil {
		return nil, err
	}
	return s.ResultTypes(), nil
}

func (e *engine) eval(ctx context.Context, f *ir.Func, seed uint64, args []ir.Datum) ([]ir.Datum, error) {
	ev := e.Runner()
	ev.RNG = ir.RNG{Seed: seed}
	return ev.Run(ctx, f, args...)
}

// TargetAvailable says why the options' target cannot be used on this machine or in this version; nil where it can.
func TargetAvailable(o *Options) error {
	_, err := newEngine(o, false)
	return err
}
