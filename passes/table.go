package passes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gtc-project/gtc/autograd"
	"github.com/gtc-project/gtc/internal/debug"
	"github.com/gtc-project/gtc/ir"
)

// Pass is one row of Table.
type Pass struct {
	Name string
	Doc  string
	// Run gives the function after the pass; it may change the one that it gets. Every rewrite takes fuel.
	Run func(f *ir.Func, fuel *Fuel) (*ir.Func, error)
	// After names passes that stand before this one, Why says why.
	After []string
	Why   string
	// Default says that the pass runs where no passes are named. The others do a part of what specialise does in one walk.
	Default bool
}

// Table holds all passes, in the order in which they run.
var Table = []Pass{
	{Name: "expand-grad", Doc: "torch.autograd.grad nodes become the gradients that they stand for", Default: true,
		Run: func(f *ir.Func, _ *Fuel) (*ir.Func, error) { return f, autograd.ExpandGradNodes(f) }},
	{Name: "specialise", Doc: "types inferred, calls expanded, known values computed, known branches taken, loops unrolled or freed of what does not change", Default: true,
		After: []string{"expand-grad"}, Why: "gradients add calls that have to be expanded too",
		Run: func(f *ir.Func, fuel *Fuel) (*ir.Func, error) { return specialise(f, fuel, keepParam(nil)) }},
	{Name: "canonicalise", Doc: "single nodes rewritten to simpler ones",
		After: []string{"specialise"}, Why: "most rewrites need known types", Run: walk(work{rewrite: true})},
	{Name: "fold", Doc: "ops on literals computed, branches on literals taken",
		After: []string{"canonicalise"}, Why: "rewrites uncover literals", Run: walk(work{fold: true, flow: true})},
	{Name: "cse", Doc: "what is computed twice is computed once",
		After: []string{"canonicalise", "fold"}, Why: "equal values are written alike only then", Run: walk(work{share: true})},
	{Name: "licm", Doc: "pure nodes that do not depend on the iteration leave the loop",
		After: []string{"cse"}, Why: "a value that is shared is moved once",
		Run: func(f *ir.Func, fuel *Fuel) (*ir.Func, error) { hoist(f.Body, fuel); return f, nil }},
	{Name: "dce", Doc: "what neither a result nor an effect needs is removed",
		After: []string{"fold", "cse", "licm"}, Why: "they leave values without users",
		Run: func(f *ir.Func, _ *Fuel) (*ir.Func, error) { f.Sweep(keeps); return f.Clone(), nil }},
	{Name: "fuse", Doc: "elementwise nodes, and reductions of such, become kernels", Default: true,
		After: []string{"specialise", "canonicalise", "cse", "licm", "dce"}, Why: "a kernel is closed to other passes, and must not hold what nobody needs",
		Run: func(f *ir.Func, fuel *Fuel) (*ir.Func, error) { return f, fuse(f, fuel) }},
}

// walk makes a pass of some of the specialiser's work.
func walk(w work) func(f *ir.Func, fuel *Fuel) (*ir.Func, error) {
	return func(f *ir.Func, fuel *Fuel) (*ir.Func, error) {
		w := w
		w.fuel = fuel
		return rebuild(f, w, keepParam(nil))
	}
}

// Options steer Run.
type Options struct {
	// Passes are names of Table's rows, which run in the table's order; nil means the default ones.
	Passes []string
	// Verify checks the function after every pass. GTC_DEBUG=verify does so everywhere.
	Verify bool
	// Fuel, where set, bounds the rewrites; see Fuel.
	Fuel *Fuel
	// After, where set, is called after every pass: to print the function, or for the times.
	After func(p *Pass, f *ir.Func, took time.Duration)
}

// Run applies passes to f, which may be changed, and gives the result. An error names the pass and the function.
func Run(f *ir.Func, o Options) (*ir.Func, error) {
	selected, err := selectPasses(o.Passes)
	if err != nil {
		return nil, err
	}
	verify := o.Verify || debugVerify
	for i := range Table {
		p := &Table[i]
		if !selected[p.Name] {
			continue
		}
		start, name := time.Now(), f.Name
		o.Fuel.in(p.Name)
		if f, err = p.Run(f, o.Fuel); err != nil {
			return nil, fmt.Errorf("pass %s on @%s: %w", p.Name, name, err)
		}
		took := time.Since(start)
		if verify {
			if errs := ir.Verify(f); len(errs) > 0 {
				return nil, fmt.Errorf("pass %s on @%s gave a malformed function: %w", p.Name, name, errs[0])
			}
		}
		if o.After != nil {
			o.After(p, f, took)
		}
	}
	return f, nil
}

var debugVerify = debug.On("verify")

func selectPasses(names []string) (map[string]bool, error) {
	selected := map[string]bool{}
	for _, p := range Table {
		selected[p.Name] = names == nil && p.Default
	}
	for _, n := range names {
		if _, ok := selected[n]; !ok {
			var all []string
			for _, p := range Table {
				all = append(all, p.Name)
			}
			return nil, fmt.Errorf("there is no pass %q: choose from %s", n, strings.Join(all, ", "))
		}
		selected[n] = true
	}
	return selected, nil
}

// pass finds a row of Table.
func pass(name string) *Pass {
	return &Table[slices.IndexFunc(Table, func(p Pass) bool { return p.Name == name })]
}

// Compile makes f ready to run on arguments of one Signature: specialised and fused. With grad it also computes gradients; the
// function then takes the cotangents after the arguments (see Gradient). f is not changed.
func Compile(f *ir.Func, args []ir.Datum, grad *autograd.Options, o Options) (*ir.Func, error) {
	f = f.Clone()
	if err := autograd.ExpandGradNodes(f); err != nil {
		return nil, err
	}
	begin := time.Now()
	o.Fuel.in("specialise")
	var err error
	if grad != nil {
		f, err = gradient(f, args, *grad, o.Fuel)
	} else {
		f, err = specialiseArgs(f, args, o.Fuel)
	}
	if err != nil {
		return nil, err
	}
	forget(f)
	if o.After != nil {
		o.After(pass("specialise"), f, time.Since(begin))
	}
	if o.Passes == nil {
		o.Passes = []string{"fuse"}
	}
	return Run(f, o)
}
