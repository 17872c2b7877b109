package runtime

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/passes"
)

// Target says what computes.
type Target string

// The targets.
const (
	Interp Target = "interp" // the reference evaluator: plain Go, any platform
	CPU    Target = "cpu"    // machine code through LLVM
)

// Options configure an Engine. The zero value means CPU.
type Options struct {
	Target  Target
	Threads int    // workers of the cpu target; 0 means one per CPU
	Arch    string // what the cpu target makes code for: native (or ""), or a level of x86-64 that this machine has
}

// Engine computes: it expands and compiles calls, keeps the results of that work, and runs them. It is safe for concurrent use.
type Engine struct {
	opts     Options
	resolver *passes.Resolver
	eager    runner // single calls, whose results belong to the Go heap
	whole    runner // whole functions, whose results live in a reused arena
	variants variants
}

// runner runs functions on a target. The stream and the output are those of the run.
type runner interface {
	run(ctx context.Context, f *ir.Func, rng *ir.RNG, out io.Writer, args []ir.Datum) ([]ir.Datum, error)
	// planned is the size of the memory that a run of f takes as a whole.
	planned(f *ir.Func) (int, error)
}

// reference is the runner of the reference evaluator.
type reference struct{ resolver *passes.Resolver }

func (r reference) run(ctx context.Context, f *ir.Func, rng *ir.RNG, out io.Writer, args []ir.Datum) ([]ir.Datum, error) {
	ev := &ir.Evaluator{Resolve: r.resolver.Resolve, RNG: *rng, Out: out}
	res, err := ev.Run(ctx, f, args...)
	*rng = ev.RNG
	return res, err
}

func (reference) planned(*ir.Func) (int, error) { return 0, nil }

// New makes an engine. The cpu target fails where LLVM cannot be loaded; the error says what to install.
func New(o Options) (*Engine, error) {
	e := &Engine{opts: o, resolver: passes.NewResolver()}
	switch o.Target {
	case Interp:
		e.eager, e.whole = reference{e.resolver}, reference{e.resolver}
	case CPU, "":
		e.opts.Target = CPU
		var err error
		if e.eager, e.whole, err = newCPU(o, e.resolver); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("unknown target %q: use cpu or interp", o.Target)
	}
	return e, nil
}

// Default is the engine for programs that name none: cpu where LLVM can be loaded, else the reference evaluator (FallbackReason says why).
func Default() *Engine {
	defaultOnce.Do(func() {
		defaultEngine, fallback = New(Options{})
		if fallback != nil {
			defaultEngine, _ = New(Options{Target: Interp})
		}
	})
	return defaultEngine
}

// FallbackReason is why Default is the reference evaluator; nil where it is not.
func FallbackReason() error {
	Default()
	return fallback
}

var (
	defaultOnce   sync.Once
	defaultEngine *Engine
	fallback      error
)

// String names the target.
func (e *Engine) String() string { return string(e.opts.Target) }

// Target is what the engine computes on.
func (e *Engine) Target() Target { return e.opts.Target }

// Runner runs whole functions on an engine, one after another: random numbers go on where the last run stopped. It is for one
// goroutine at a time.
type Runner struct {
	// RNG is the random stream that the functions draw from.
	RNG ir.RNG
	// Out receives what they print; nil means os.Stdout.
	Out io.Writer

	engine *Engine
}

// Runner makes a Runner with the stream of seed 0.
func (e *Engine) Runner() *Runner { return &Runner{engine: e} }

// Run computes f's results. On the cpu target large ones live in memory that is used again: at once when ir.Release is told so, else when
// the garbage collector finds them unreachable. f must not be changed afterwards.
func (r *Runner) Run(ctx context.Context, f *ir.Func, args ...ir.Datum) ([]ir.Datum, error) {
	return r.engine.whole.run(ctx, f, &r.RNG, r.Out, args)
}

// PlannedBytes is the size of the memory that one run of a compiled function takes as a whole for its intermediate results, results and what has
// no size known beforehand not included; 0 on the reference target, which plans nothing.
func (e *Engine) PlannedBytes(f *ir.Func) (int, error) { return e.whole.planned(f) }

// Callee names what Engine.Call computes: an aten function (Order 0), or its gradient taken Order times (see ir.OpVjp).
type Callee struct {
	Name  string
	Order int
	Count int // of results
	// Want says which results of a gradient are computed; the others are None. Nil means all.
	Want []bool
}

// Call runs a function or a gradient on actual operands.
func (e *Engine) Call(ctx context.Context, c Callee, args []ir.Datum) ([]ir.Datum, error) {
	f, err := e.resolver.Resolve(c.node(), args)
	if err != nil {
		return nil, err
	}
	var rng ir.RNG
	return e.eager.run(ctx, f, &rng, nil, args)
}

// Reads reports, per operand, whether the call reads its value (and not only its shape).
func (e *Engine) Reads(c Callee, args []ir.Datum) ([]bool, error) {
	f, err := e.resolver.Resolve(c.node(), args)
	if err != nil {
		return nil, err
	}
	used := make([]bool, f.NumValues())
	f.Body.Walk(func(n *ir.Node) {
		for _, a := range n.Args {
			used[a.ID] = true
		}
	})
	out := make([]bool, len(args))
	for i, p := range f.Body.Params {
		out[i] = used[p.ID]
	}
	return out, nil
}

// Results of nodes that stand for calls: only whether their type is None counts.
var wanted, unwanted = &ir.Value{Type: ir.Any}, &ir.Value{Type: ir.NoneT}

func (c Callee) node() *ir.Node {
	n := &ir.Node{Op: ir.OpAten, Attrs: ir.Attrs{Callee: c.Name}}
	if c.Order > 0 {
		n.Op = ir.OpVjp
		n.Attrs.Order, n.Attrs.Count = c.Order, c.Count
		for _, w := range c.Want {
			if w {
				n.Results = append(n.Results, wanted)
			} else {
				n.Results = append(n.Results, unwanted)
			}
		}
	}
	return n
}
