package tensor

import (
	"fmt"
	"sync"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/runtime"
)

// Scope is the surroundings that a tensor brings along: a result's scope joins those of its arguments. A nil *Scope is the default: gradients are
// recorded, the default engine computes.
type Scope struct {
	noGrad    bool
	inference bool
	tracer    Tracer
	engine    *runtime.Engine
	rng       *Generator
}

// Tracer listens to the operations on tensors of its scope; package trace implements it.
type Tracer interface {
	// Record is told of every call after it ran: its operands (as given to Call) and its results.
	Record(call Op, args []any, results []any) error
	// Read is told that the value of t is read into Go as what ("Bool", "Int", "Float", "Data"); an error refuses it.
	Read(t *Tensor, what string, value any) error
	// ReadSize is told that sizes of t are read into Go.
	ReadSize(t *Tensor)
	// Write is told that t's storage now holds src's value, t being written in place.
	Write(t, src *Tensor) error
}

// NewScope makes a scope on an engine; nil means the default engine.
func NewScope(e *runtime.Engine) *Scope { return &Scope{engine: e} }

// WithTracer gives the scope with a tracer.
func (s *Scope) WithTracer(t Tracer) *Scope {
	c := s.clone()
	c.tracer = t
	return c
}

// WithNoGrad gives the scope with gradients off.
func (s *Scope) WithNoGrad() *Scope {
	c := s.clone()
	c.noGrad = true
	return c
}

// WithGenerator gives the scope with its own source of random numbers.
func (s *Scope) WithGenerator(g *Generator) *Scope {
	c := s.clone()
	c.rng = g
	return c
}

// Tracer is the scope's tracer, or nil.
func (s *Scope) Tracer() Tracer {
	if s == nil {
		return nil
	}
	return s.tracer
}

// Grads reports whether gradients are recorded.
func (s *Scope) Grads() bool { return !s.off() }

// off reports whether gradients are not recorded.
func (s *Scope) off() bool { return s != nil && s.noGrad }

func (s *Scope) clone() *Scope {
	if s == nil {
		return &Scope{}
	}
	c := *s
	return &c
}

func (s *Scope) eng() *runtime.Engine {
	if s != nil && s.engine != nil {
		return s.engine
	}
	return runtime.Default()
}

func (s *Scope) generator() *Generator {
	if s != nil && s.rng != nil {
		return s.rng
	}
	return defaultGenerator
}

// join combines the scopes of two arguments: no-grad and inference win; different tracers, engines or generators are an error.
func join(a, b *Scope) (*Scope, error) {
	switch {
	case a == b || b == nil:
		return a, nil
	case a == nil:
		return b, nil
	}
	c := *a
	c.noGrad = a.noGrad || b.noGrad
	c.inference = a.inference || b.inference
	switch {
	case c.tracer == nil:
		c.tracer = b.tracer
	case b.tracer != nil && b.tracer != c.tracer:
		return nil, fmt.Errorf("arguments belong to two different traces, %v and %v: use the tensors of one trace only", a.tracer, b.tracer)
	}
	if c.engine == nil {
		c.engine = b.engine
	} else if b.engine != nil && b.engine != c.engine {
		return nil, fmt.Errorf("arguments belong to different engines (%s and %s): move one with x.With(scope)", a.engine, b.engine)
	}
	if c.rng == nil {
		c.rng = b.rng
	}
	if c == *a {
		return a, nil
	}
	return &c, nil
}

// With gives the same tensor in another scope; it shares the storage and the gradient history.
func (t *Tensor) With(s *Scope) *Tensor {
	c := *t
	c.scope = s
	return &c
}

// Scope is the tensor's scope; nil is the default one.
func (t *Tensor) Scope() *Scope { return t.scope }

// NoGrad gives x in a scope without gradients: results of operations on it are not differentiated.
func NoGrad(x *Tensor) *Tensor { return x.With(x.scope.WithNoGrad()) }

// Inference gives x in a scope without gradients in which results can never be differentiated later either.
func Inference(x *Tensor) *Tensor {
	s := x.scope.WithNoGrad()
	s.inference = true
	return x.With(s)
}

// Generator is a stream of random numbers, safe for concurrent use. Each random operation takes one key from it, so that equal seeds give equal
// numbers whatever is computed between the draws.
type Generator struct {
	mu  sync.Mutex
	rng ir.RNG
}

var defaultGenerator = NewGenerator(0)

// NewGenerator starts a stream.
func NewGenerator(seed uint64) *Generator { return &Generator{rng: ir.RNG{Seed: seed}} }

// ManualSeed restarts the default generator's stream.
func ManualSeed(seed uint64) { defaultGenerator.Seed(seed) }

// Seed restarts the stream.
func (g *Generator) Seed(seed uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rng = ir.RNG{Seed: seed}
}

// Key draws the key of one random operation.
func (g *Generator) Key() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rng.Next()
}

// With runs f on the generator's stream, which goes on where f leaves it. No other draw happens meanwhile.
func (g *Generator) With(f func(rng *ir.RNG) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return f(&g.rng)
}

// Generator is the source of random numbers of the scope.
func (s *Scope) Generator() *Generator { return s.generator() }

// JoinedScope is the scope that an operation on ts has; an error where they do not go together, or one of them holds an error.
func JoinedScope(ts ...*Tensor) (*Scope, error) {
	args := make([]any, len(ts))
	for i, t := range ts {
		args[i] = t
	}
	return joinScopes(args)
}
