package driver

import (
	"context"
	"errors"

	"github.com/gtc-project/gtc/ir"
)

var errLater = errors.New("not available yet in this version")

// loadScript lowers a script's entry.
func loadScript(path string, src []byte, o *Options) (*Model, error) { return nil, errLater }

// parseIR reads IR text.
func parseIR(path string, src []byte) ([]*ir.Func, error) { return ir.ParseString(path, string(src)) }

// printIR writes IR text.
func printIR(f *ir.Func) string { return f.String() }

// gradient is the function that takes f's parameters and a cotangent per result, and gives a gradient per parameter.
func gradient(f *ir.Func) (*ir.Func, error) { return nil, errLater }

// specialise infers types for a signature and expands generic calls.
func specialise(f *ir.Func, types []ir.Type) (*ir.Func, error) { return nil, errLater }

// runPasses applies passes by name ("" is all) to f in place.
func runPasses(f *ir.Func, names string) error { return errLater }

// dot draws f.
func dot(f *ir.Func) string { return "" }

// engine runs functions on a target.
type engine interface {
	run(ctx context.Context, f *ir.Func, seed uint64, args []ir.Datum) ([]ir.Datum, error)
}

func newEngine(o *Options, fallback bool) (engine, error) { return interp{}, nil }

type interp struct{}

func (interp) run(ctx context.Context, f *ir.Func, seed uint64, args []ir.Datum) ([]ir.Datum, error) {
	ev := &ir.Evaluator{RNG: ir.RNG{Seed: seed}}
	return ev.Run(ctx, f, args...)
}

// Available says why a target cannot be used on this machine; nil where it can.
func Available(o *Options) error { return errLater }
