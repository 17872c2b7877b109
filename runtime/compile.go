package runtime

import (
	"context"
	"runtime"
	"sync"
	"weak"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
)

// maxVariants bounds how many compiled forms of one function an engine keeps; beyond it the function runs as it is.
const maxVariants = 32

// variants are the compiled forms of functions by the signature of their arguments. A function's forms go when it does.
type variants struct {
	mu    sync.Mutex
	forms map[weak.Pointer[ir.Func]]map[string]*ir.Func
}

// Compile gives f as it is best run on arguments like these: specialised for their dtypes, shapes and values that are not floats, and
// fused into kernels. The result takes the same arguments. Forms are kept, so that the next call with the like is cheap; f must not
// be changed afterwards.
func (e *Engine) Compile(f *ir.Func, args []ir.Datum) (*ir.Func, error) {
	key, sig := weak.Make(f), passes.Signature(args)
	e.variants.mu.Lock()
	forms := e.variants.forms[key]
	g, full := forms[sig], len(forms) >= maxVariants
	e.variants.mu.Unlock()
	if g != nil || full {
		if g == nil {
			g = f
		}
		return g, nil
	}
	g, err := passes.Compile(f, args, nil, passes.Options{})
	if err != nil {
		return nil, err
	}
	e.variants.mu.Lock()
	defer e.variants.mu.Unlock()
	if e.variants.forms == nil {
		e.variants.forms = map[weak.Pointer[ir.Func]]map[string]*ir.Func{}
	}
	if e.variants.forms[key] == nil {
		e.variants.forms[key] = map[string]*ir.Func{}
		runtime.AddCleanup(f, func(key weak.Pointer[ir.Func]) {
			e.variants.mu.Lock()
			defer e.variants.mu.Unlock()
			delete(e.variants.forms, key)
		}, key)
	}
	e.variants.forms[key][sig] = g
	return g, nil
}

// Run compiles f for the arguments, unless that was done before, and runs it.
func (e *Engine) Run(ctx context.Context, f *ir.Func, args ...ir.Datum) ([]ir.Datum, error) {
	g, err := e.Compile(f, args)
	if err != nil {
		return nil, err
	}
	return e.Runner().Run(ctx, g, args...)
}
