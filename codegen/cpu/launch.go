package cpu

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/runtime/jit"
	"github.com/gtc-project/gtc/runtime/pool"
)

// Launch is a kernel with everything worked out that depends on how its operands are laid out, but not on where they are: running it
// again on operands laid out alike plans nothing and allocates next to nothing. A Launch does not change; it is safe for concurrent use.
type Launch interface {
	// Fits reports whether the operands, inputs before outputs, are laid out as those that the launch was made for.
	Fits(ops ...*ir.Array) bool
	// Run computes the outputs. The operands must fit. Faults of the program are errors, and the outputs are then unspecified. ctx
	// is polled between units of work.
	Run(ctx context.Context, ops ...*ir.Array) error
}

// layouts is how operands are laid out.
type layouts []layout

type layout struct {
	dtype          dtype.DType
	shape, strides []int
	low, high      int // the least and greatest distance of an element from element 0, in elements
	empty          bool
}

func layoutsOf(ops []*ir.Array) layouts {
	ls := make(layouts, len(ops))
	for i, a := range ops {
		l := layout{dtype: a.DType, shape: slices.Clone(a.Shape), strides: slices.Clone(a.Strides)}
		for d, n := range a.Shape {
			switch s := a.Strides[d]; {
			case n == 0:
				l.empty = true
			case s < 0:
				l.low += (n - 1) * s
			default:
				l.high += (n - 1) * s
			}
		}
		ls[i] = l
	}
	return ls
}

// Fits is part of Launch.
func (ls layouts) Fits(ops ...*ir.Array) bool {
	if len(ops) != len(ls) {
		return false
	}
	for i, a := range ops {
		l := &ls[i]
		if a.DType != l.dtype || len(a.Shape) != len(l.shape) {
			return false
		}
		for d, n := range l.shape {
			if a.Shape[d] != n || a.Strides[d] != l.strides[d] {
				return false
			}
		}
	}
	return true
}

// addresses gives the address of element 0 of every operand, after a check that all elements lie within the operand's memory: machine
// code does not look.
func (ls layouts) addresses(ops []*ir.Array, to []int64) error {
	for i, a := range ops {
		l := &ls[i]
		if !l.empty && (a.Offset+l.low < 0 || (a.Offset+l.high+1)*a.DType.Size() > len(a.Data)) {
			return outside(a)
		}
		to[i] = pointer(a)
	}
	return nil
}

func outside(a *ir.Array) error {
	return fmt.Errorf("cpu: a view of shape %v, strides %v, offset %d reaches outside its %d bytes of %s", a.Shape, a.Strides, a.Offset, len(a.Data), a.DType)
}

// grid is a launch of one function over independent units of work.
type grid struct {
	layouts
	fn    jit.Func
	pool  *pool.Pool
	units int
	words int // of the arguments
	ptr   int // the first of the operands' pointers among them
	fault int // where the function leaves a fault code
	outs  int // so many of the last operands are written
	// fill writes the arguments of a unit; pointers are relative to element 0 of the operands. The memory is zero but for word fault.
	fill func(u int, args []int64)
	args []int64  // of all units, where they are few
	rows *rowwise // nil where the work is not by rows
}

// maxKept bounds the words of arguments that a grid keeps.
const maxKept = 1 << 13

func (g *grid) ready() *grid {
	if g.units*g.words > maxKept {
		return g
	}
	g.args = make([]int64, g.units*g.words)
	for u := range g.units {
		g.fill(u, g.args[u*g.words:][:g.words])
	}
	g.fill = nil
	return g
}

// gridRun is one run of a grid.
type gridRun struct {
	*grid
	bases [maxOperands]int64
	fault atomic.Int64
}

// maxOperands bounds the operands of one kernel.
const maxOperands = 64

var gridRuns = sync.Pool{New: func() any { return new(gridRun) }}

// Run is part of Launch.
func (g *grid) Run(ctx context.Context, ops ...*ir.Array) error {
	if g.units == 0 {
		return ctx.Err()
	}
	r := gridRuns.Get().(*gridRun)
	defer gridRuns.Put(r)
	r.grid = g
	r.fault.Store(0)
	if err := g.addresses(ops, r.bases[:]); err != nil {
		return err
	}
	err := g.pool.Do(ctx, g.units, r)
	runtime.KeepAlive(ops)
	if err != nil {
		return err
	}
	return faultError(r.fault.Load())
}

// Unit is part of pool.Task.
func (r *gridRun) Unit(w *pool.Worker, u int) {
	if f := r.unit(w, u, &r.bases); f != 0 {
		r.fault.CompareAndSwap(0, f)
	}
}

// unit runs unit u on operands at the given addresses and gives the function's fault code.
func (g *grid) unit(w *pool.Worker, u int, bases *[maxOperands]int64) int64 {
	args := w.Args(g.words)
	if g.args != nil {
		copy(args, g.args[u*g.words:])
	} else {
		clear(args)
		g.fill(u, args)
	}
	for i := range g.layouts {
		args[g.ptr+i] += bases[i]
	}
	w.Call(g.fn, unsafe.Pointer(&args[0]))
	return args[g.fault]
}
