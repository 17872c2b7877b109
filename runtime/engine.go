package runtime

import (
	"context"
	"fmt"
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
	kernels  kernels // nil for the reference evaluator
	programs kernels // the same, counting
	variants variants
}

// kernels runs single nodes as machine code; ok is false for nodes that it leaves to the reference evaluation.
type kernels interface {
	Kernel(ctx context.Context, n *ir.Node, args []ir.Datum) (results []ir.Datum, ok bool, err error)
	// counting gives the same kernels for evaluators that count buffers.
	counting() kernels
}

// New makes an engine. The cpu target fails where LLVM cannot be loaded; the error says what to install.
func New(o Options) (*Engine, error) {
	e := &Engine{opts: o, resolver: passes.NewResolver()}
	switch o.Target {
	case Interp:
	case CPU, "":
		e.opts.Target = CPU
		k, err := newCPU(o)
		if err != nil {
			return nil, err
		}
		e.kernels, e.programs = k, k.counting()
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

// Evaluator makes an evaluator that runs whole functions on the engine. On compiled targets intermediate results live in a reused arena.
func (e *Engine) Evaluator() *ir.Evaluator {
	ev := &ir.Evaluator{Resolve: e.resolver.Resolve}
	if e.programs != nil {
		ev.Kernel, ev.CountBuffers = e.programs.Kernel, true
	}
	return ev
}

// eager makes an evaluator for single calls, whose results belong to the Go heap.
func (e *Engine) eager() *ir.Evaluator {
	ev := &ir.Evaluator{Resolve: e.resolver.Resolve}
	if e.kernels != nil {
		ev.Kernel = e.kernels.Kernel
	}
	return ev
}

// Call runs one aten function (order 0) or its gradient (see ir.OpVjp) on actual operands; count is the number of results.
func (e *Engine) Call(ctx context.Context, callee string, order, count int, args []ir.Datum) ([]ir.Datum, error) {
	f, err := e.resolver.Resolve(callNode(callee, order, count), args)
	if err != nil {
		return nil, err
	}
	return e.eager().RunExpansion(ctx, f, args)
}

// Reads reports, per operand, whether the call reads its value (and not only its shape).
func (e *Engine) Reads(ctx context.Context, callee string, order, count int, args []ir.Datum) ([]bool, error) {
	f, err := e.resolver.Resolve(callNode(callee, order, count), args)
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

func callNode(callee string, order, count int) *ir.Node {
	n := &ir.Node{Op: ir.OpAten, Attrs: ir.Attrs{Callee: callee}}
	if order > 0 {
		n.Op = ir.OpVjp
		n.Attrs.Order, n.Attrs.Count = order, count
	}
	return n
}
