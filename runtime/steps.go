//go:build !nollvm

package runtime

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gtc-project/gtc/codegen/cpu"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// outcome is where a kernel's result goes: into planned memory, or into an array that is counted, and used again by the same step once
// nobody holds it.
type outcome struct {
	slot    int
	dtype   dtype.DType
	shape   []int // nil: that of the operands
	planned bool
	cell    int // unless planned: its place in instance.cells
}

// cell holds the arrays of one step that are free.
type cell struct {
	free []*ir.Array
}

// place gives the array for a result of the given shape, with arbitrary contents.
func (o *outcome) place(in *instance, shape []int) (*ir.Array, error) {
	if o.planned {
		return in.vals[o.slot].(*ir.Array), nil
	}
	if o.shape != nil {
		shape = o.shape
	}
	c := &in.cells[o.cell]
	if k := len(c.free); k > 0 {
		a := c.free[k-1]
		c.free = c.free[:k-1]
		if slices.Equal(a.Shape, shape) {
			return a, nil
		}
		a.Owner.(*counted).discard()
	}
	a, err := in.machine.kernels.newArray(o.dtype, shape)
	if err != nil {
		return nil, err
	}
	own, _ := a.Owner.(*counted)
	if own == nil {
		own = &counted{}
		a.Owner = own
	}
	own.home, own.array = c, a
	return a, nil
}

func (o *outcome) set(in *instance, a *ir.Array) {
	if !o.planned {
		in.set(o.slot, a)
	}
}

// launches keeps what was prepared for the latest layouts of a step's operands.
type launches struct{ last atomic.Pointer[cpu.Launch] }

func (l *launches) get(ops []*ir.Array, prepare func(ops []*ir.Array) (cpu.Launch, error)) (cpu.Launch, error) {
	if p := l.last.Load(); p != nil && (*p).Fits(ops...) {
		return *p, nil
	}
	n, err := prepare(ops)
	if err != nil {
		return nil, err
	}
	l.last.Store(&n)
	return n, nil
}

// operands appends the tensors in slots.
func (in *instance) operands(slots []int, to []*ir.Array) ([]*ir.Array, error) {
	for _, s := range slots {
		a, err := in.array(s)
		if err != nil {
			return nil, err
		}
		to = append(to, a)
	}
	return to, nil
}

// mapStep runs a scalar program at every index.
type mapStep struct {
	*job
	kernel *cpu.Map
	outs   []outcome
	launches
}

func (s *mapStep) run(in *instance) error { return ir.ErrorAt(s.node, in.launch(s)) }

func (s *mapStep) bind(in *instance, ops []*ir.Array) ([]*ir.Array, cpu.Launch, error) {
	ops, err := in.operands(s.args, ops)
	if err != nil {
		return nil, nil, err
	}
	for i := range s.outs {
		a, err := s.outs[i].place(in, ops[0].Shape)
		if err != nil {
			return nil, nil, err
		}
		s.outs[i].set(in, a)
		ops = append(ops, a)
	}
	l, err := s.get(ops, s.prepare)
	return ops, l, err
}

// launch runs a kernel on what is in its slots.
func (in *instance) launch(b binder) error {
	ops, l, err := b.bind(in, in.ops[:0])
	if err != nil {
		return err
	}
	in.ops = ops
	return l.Run(in.ctx, ops...)
}

func (s *mapStep) prepare(ops []*ir.Array) (cpu.Launch, error) { return s.kernel.Launch(ops...) }

// reduceStep reduces what a scalar program gives.
type reduceStep struct {
	*job
	reduction *cpu.Reduction
	out       outcome
	launches
}

func (s *reduceStep) run(in *instance) error { return ir.ErrorAt(s.node, in.launch(s)) }

func (s *reduceStep) bind(in *instance, ops []*ir.Array) ([]*ir.Array, cpu.Launch, error) {
	ops, err := in.operands(s.args, ops)
	if err != nil {
		return nil, nil, err
	}
	a, err := s.out.place(in, nil)
	if err != nil {
		return nil, nil, err
	}
	s.out.set(in, a)
	ops = append(ops, s.view(a))
	l, err := s.get(ops, s.prepare)
	return ops, l, err
}

// view is the result as the kernel wants it: with all reduced dims there, or none.
func (s *reduceStep) view(a *ir.Array) *ir.Array {
	if len(s.shape) == len(a.Shape) {
		return a
	}
	return a.View(s.shape, ir.ContiguousStrides(s.shape), a.Offset)
}

func (s *reduceStep) prepare(ops []*ir.Array) (cpu.Launch, error) {
	return s.reduction.Launch(s.dims, ops...)
}

// dotStep contracts. Constant operands are packed once.
type dotStep struct {
	*job
	backend           *cpu.Backend
	nbatch, ncontract int
	constant          [2]bool
	out               outcome
	launches
	pack   sync.Mutex
	packed atomic.Pointer[packedDot]
}

// packedDot is the constant operands of a dot, packed for one launch.
type packedDot struct {
	dot *cpu.Dot
	ops [2]*cpu.Packed
}

func (s *dotStep) run(in *instance) error { return ir.ErrorAt(s.node, s.multiply(in)) }

func (s *dotStep) multiply(in *instance) error {
	ops, err := in.operands(s.args[:2], in.ops[:0])
	if err != nil {
		return err
	}
	a, err := s.out.place(in, nil)
	if err != nil {
		return err
	}
	ops = append(ops, a)
	in.ops = ops
	defer s.out.set(in, a)
	l, err := s.get(ops, s.prepare)
	if err != nil {
		return err
	}
	if !s.constant[0] && !s.constant[1] {
		return l.Run(in.ctx, ops...)
	}
	p, err := s.packedFor(in, l.(*cpu.Dot), ops)
	if err != nil {
		return err
	}
	return p.dot.RunPacked(in.ctx, p.ops[0], p.ops[1], ops...)
}

func (s *dotStep) prepare(ops []*ir.Array) (cpu.Launch, error) {
	return s.backend.Dot(ops[2], ops[0], ops[1], s.nbatch, s.ncontract)
}

func (s *dotStep) packedFor(in *instance, d *cpu.Dot, ops []*ir.Array) (*packedDot, error) {
	if p := s.packed.Load(); p != nil && p.dot == d {
		return p, nil
	}
	s.pack.Lock()
	defer s.pack.Unlock()
	if p := s.packed.Load(); p != nil && p.dot == d {
		return p, nil
	}
	p := &packedDot{dot: d}
	for i, c := range s.constant {
		if !c {
			continue
		}
		var err error
		if p.ops[i], err = d.Pack(in.ctx, i, ops[i]); err != nil {
			return nil, err
		}
	}
	s.packed.Store(p)
	return p, nil
}

// hostStep runs a node's reference evaluation.
type hostStep struct {
	*job
	holds bool // results may hold on to operands
}

func (s *hostStep) run(in *instance) error {
	args := make([]ir.Datum, len(s.args))
	for i, a := range s.args {
		args[i] = in.vals[a]
		if s.holds {
			retain(args[i]) // for good: the garbage collector finds its memory
		}
	}
	out, err := in.env.EvalNode(in.ctx, s.node, args)
	if err != nil {
		return ir.ErrorAt(s.node, err)
	}
	for i, r := range s.results {
		in.set(r, out[i])
	}
	return nil
}

// kernelStep finds a kernel for what its operands turn out to be.
type kernelStep struct{ *job }

func (s *kernelStep) run(in *instance) error {
	args := make([]ir.Datum, len(s.args))
	for i, a := range s.args {
		args[i] = in.vals[a]
	}
	out, ok, err := in.machine.kernels.Kernel(in.ctx, s.node, args)
	if err == nil && !ok {
		out, err = in.env.EvalNode(in.ctx, s.node, args)
	}
	if err != nil {
		return ir.ErrorAt(s.node, err)
	}
	for i, r := range s.results {
		in.set(r, out[i])
	}
	return nil
}

// genericStep expands a call for what its operands turn out to be.
type genericStep struct{ *job }

func (s *genericStep) run(in *instance) error {
	args := make([]ir.Datum, len(s.args))
	for i, a := range s.args {
		args[i] = in.vals[a]
	}
	if s.node.Op == ir.OpGrad {
		_, err := in.env.EvalNode(in.ctx, s.node, args)
		return ir.ErrorAt(s.node, err)
	}
	out, err := in.machine.expand(in.ctx, in.env, s.node, args)
	if err != nil {
		return ir.ErrorAt(s.node, err)
	}
	for i, r := range s.results {
		in.set(r, out[i])
	}
	for _, d := range out {
		ir.Release(d) // run gave them to us
	}
	return nil
}

type ifStep struct {
	*job
	then, otherwise *code
}

func (s *ifStep) run(in *instance) error {
	cond, ok := in.vals[s.args[0]].(bool)
	if !ok {
		return ir.ErrorAt(s.node, fmt.Errorf("condition is %s, expected a bool", ir.TypeOf(in.vals[s.args[0]])))
	}
	c := s.otherwise
	if cond {
		c = s.then
	}
	ys, err := in.exec(c)
	if err != nil {
		return ir.ErrorAt(s.node, err)
	}
	in.pass(s.results, ys, c)
	return nil
}

type whileStep struct {
	*job
	cond, body *code
}

// run keeps the carried values in the results' slots.
func (s *whileStep) run(in *instance) error {
	for i, r := range s.results {
		in.set(r, in.vals[s.args[i]])
	}
	for {
		in.enter(s.cond.params, s.results)
		ys, err := in.exec(s.cond)
		if err != nil {
			return ir.ErrorAt(s.node, err)
		}
		more, ok := ys[0].(bool)
		if !ok {
			return ir.ErrorAt(s.node, fmt.Errorf("condition is %s, expected a bool", ir.TypeOf(ys[0])))
		}
		in.dropAll(s.cond.final)
		if !more {
			return nil
		}
		in.enter(s.body.params, s.results)
		if ys, err = in.exec(s.body); err != nil {
			return ir.ErrorAt(s.node, err)
		}
		in.pass(s.results, ys, s.body)
		if err := in.ctx.Err(); err != nil {
			return err
		}
	}
}

// enter gives a block's parameters the values in other slots.
func (in *instance) enter(params, from []int) {
	for i, p := range params {
		in.set(p, in.vals[from[i]])
	}
}

type forStep struct {
	*job
	body    *code
	carried []int // the body's parameters but the first
}

// run keeps the carried values in the results' slots.
func (s *forStep) run(in *instance) error {
	trip, ok := in.vals[s.args[0]].(int64)
	if !ok {
		return ir.ErrorAt(s.node, fmt.Errorf("trip count is %s, expected an int", ir.TypeOf(in.vals[s.args[0]])))
	}
	for i, r := range s.results {
		in.set(r, in.vals[s.args[i+1]])
	}
	for i := range trip {
		in.set(s.body.params[0], i)
		in.enter(s.carried, s.results)
		ys, err := in.exec(s.body)
		if err != nil {
			return ir.ErrorAt(s.node, err)
		}
		in.pass(s.results, ys, s.body)
		if err := in.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
