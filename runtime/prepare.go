//go:build !nollvm

package runtime

import (
	"runtime"
	"sync"

	"github.com/gtc-project/gtc/codegen/cpu"
	"github.com/gtc-project/gtc/ir"
)

// walkLayouts goes through all kernels of a program, in order and every block once, with operands laid out as they will be, as far as that is
// known beforehand: parameters and counted arrays are taken to be contiguous. The arrays have no memory. prepare makes the kernel's launch.
func (e *emitter) walkLayouts(steps []step, at map[int]*ir.Array, visit func(j *job, prepare func() error)) {
	lay := func(slot int) *ir.Array {
		if a := at[slot]; a != nil {
			return a
		}
		if a := e.looks[slot]; a != nil {
			return a
		}
		if a, ok := e.known[slot].(*ir.Array); ok {
			return a
		}
		if t := e.types[slot]; t.IsTensor() && t.Static() {
			shape := t.Shape()
			return &ir.Array{DType: t.DType, Shape: shape, Strides: ir.ContiguousStrides(shape)}
		}
		return nil
	}
	operands := func(slots ...int) []*ir.Array {
		var ops []*ir.Array
		for _, s := range slots {
			a := lay(s)
			if a == nil {
				return nil
			}
			ops = append(ops, a)
		}
		return ops
	}
	kernel := func(j *job, l *launches, prepare func(ops []*ir.Array) (cpu.Launch, error), ops []*ir.Array) {
		if ops != nil {
			visit(j, func() error { _, err := l.get(ops, prepare); return err })
		}
	}
	for _, s := range steps {
		switch s := s.(type) {
		case *mapStep:
			kernel(s.job, &s.launches, s.prepare, operands(append(s.args[:len(s.args):len(s.args)], s.results...)...))
		case *reduceStep:
			ops := operands(append(s.args[:len(s.args):len(s.args)], s.results...)...)
			if k := len(ops) - 1; k >= 0 {
				ops[k] = s.view(ops[k])
			}
			kernel(s.job, &s.launches, s.prepare, ops)
		case *dotStep:
			kernel(s.job, &s.launches, s.prepare, operands(s.args[0], s.args[1], s.results[0]))
		case *gatherStep:
			kernel(s.job, &s.launches, s.prepare, operands(s.args[0], s.args[1], s.results[0]))
		case *moveStep:
			out := lay(s.results[0])
			for i := range s.parts {
				p := &s.parts[i]
				from := p.value
				if from == nil {
					from = lay(s.args[p.arg])
				}
				kernel(s.job, &s.launches[i], s.copy, []*ir.Array{from, p.of(out, p.at)})
			}
		case *reshapeStep:
			if x := lay(s.args[0]); x != nil {
				if strides, ok := ir.ViewStrides(x.Shape, x.Strides, s.out.shape); ok {
					at[s.results[0]] = x.View(s.out.shape, strides, x.Offset)
				}
			}
		case *chainStep:
			e.walkLayouts(s.steps, at, visit)
		case *ifStep:
			e.walkLayouts(s.then.steps, at, visit)
			e.walkLayouts(s.otherwise.steps, at, visit)
		case *whileStep:
			e.walkLayouts(s.cond.steps, at, visit)
			e.walkLayouts(s.body.steps, at, visit)
		case *forStep:
			e.walkLayouts(s.body.steps, at, visit)
		case *hostStep:
			if s.kind == jobView && s.node.Op.Class == ir.View {
				if base := lay(s.args[0]); base != nil {
					at[s.results[0]] = e.viewOf(s.job, base)
				}
			}
		}
	}
}

// compile makes the machine code of a program's kernels, several at once, as far as it is known beforehand which ones it needs. What fails
// here fails again, with its place in the source, when it runs.
func (e *emitter) compile(c *code) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	e.walkLayouts(c.steps, map[int]*ir.Array{}, func(_ *job, prepare func() error) {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wg.Done() }()
			_ = prepare()
		}()
	})
	wg.Wait()
}
