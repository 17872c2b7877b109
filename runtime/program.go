//go:build !nollvm

package runtime

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/runtime/arena"
)

// program is a function made ready to run: lists of steps over numbered slots. It does not change once it is made, and any number of
// goroutines may run it: each run takes an instance.
type program struct {
	machine *machine
	fn      *ir.Func
	body    *code
	params  []int
	slots   int
	known   []knownSlot   // the same in every run
	planned []plannedSlot // results of kernels in the planned memory
	views   []*hostStep   // of planned memory: made once per instance
	viewOf  []int         // by place in views: the planned slot that is looked at, by place in planned
	size    int           // of the planned memory
	cells   int           // see outcome

	constants map[*byte]bool // where the memory of known tensors begins

	mu   sync.Mutex
	idle []*instance
}

type knownSlot struct {
	slot  int
	value ir.Datum
}

type plannedSlot struct {
	slot int
	like ir.Array // the header, without memory
	at   int      // where in the planned memory
	size int
}

// code is a block as steps.
type code struct {
	params []int
	steps  []step
	after  [][]int // by step: the slots that nobody reads any more
	yields []int
	final  []int // the slots of the block that are left after its yields have been read
}

// step is one piece of work.
type step interface {
	run(in *instance) error
}

// instance is what one run of a program needs. It is used again.
type instance struct {
	*program
	env      *ir.Evaluator // the random stream and the output; generic nodes
	ctx      context.Context
	vals     []ir.Datum // by slot
	fixed    []bool     // by slot: known, planned, or a view of planned memory; never dropped
	plan     []*ir.Array
	looks    []*ir.Array // the results of views
	base     *byte       // of the memory that plan points into
	cells    []cell
	ops      []*ir.Array // scratch of the steps
	bound    []bound     // scratch of chains
	boundOps [][]*ir.Array
	temp     []ir.Datum
	count    int // of steps, for looking at ctx now and then
}

// maxIdle bounds the instances that a program keeps.
const maxIdle = 4

func (p *program) take() *instance {
	p.mu.Lock()
	if k := len(p.idle); k > 0 {
		in := p.idle[k-1]
		p.idle = p.idle[:k-1]
		p.mu.Unlock()
		return in
	}
	p.mu.Unlock()
	in := &instance{program: p, vals: make([]ir.Datum, p.slots), fixed: make([]bool, p.slots), cells: make([]cell, p.cells)}
	for _, k := range p.known {
		in.vals[k.slot], in.fixed[k.slot] = k.value, true
	}
	for _, k := range p.planned {
		a := k.like
		in.plan = append(in.plan, &a)
		in.vals[k.slot], in.fixed[k.slot] = &a, true
	}
	return in
}

func (p *program) put(in *instance) {
	in.env, in.ctx = nil, nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < maxIdle {
		p.idle = append(p.idle, in)
	}
}

// run computes the function's results. The caller holds them: counted memory in them goes back when it releases them.
func (p *program) run(ctx context.Context, env *ir.Evaluator, args []ir.Datum) (out []ir.Datum, err error) {
	in := p.take()
	in.env, in.ctx = env, ctx
	if p.size > 0 {
		mem, err := arena.Default().Alloc(p.size)
		if err != nil {
			return nil, err
		}
		defer arena.Default().Free(mem)
		if err := in.lay(mem); err != nil {
			return nil, err
		}
	}
	for i, s := range p.params {
		in.set(s, args[i])
	}
	ys, err := in.exec(p.body)
	if err == nil {
		for _, y := range ys {
			out = append(out, p.own(y))
		}
		for _, d := range out {
			retain(d)
			if a, ok := d.(*ir.Array); ok {
				if c, ok := a.Owner.(*counted); ok {
					c.home = nil // the caller decides when it is free
				}
			}
		}
		in.dropAll(p.body.final)
	} else {
		for s := range in.vals {
			in.drop(s)
		}
	}
	in.temp = in.temp[:0]
	p.put(in)
	return out, err
}

// own gives a result memory of its own where it is that of a constant, which other runs read: the caller may write to it.
func (p *program) own(d ir.Datum) ir.Datum {
	if len(p.constants) == 0 {
		return d
	}
	switch d := d.(type) {
	case *ir.Array:
		if len(d.Data) > 0 && p.constants[&d.Data[0]] {
			return d.Copy()
		}
	case ir.Tuple:
		if ds := p.ownAll(d); ds != nil {
			return ir.Tuple(ds)
		}
	case ir.List:
		if ds := p.ownAll(d.Elems()); ds != nil {
			return ir.NewList(ds...)
		}
	case *ir.Dict:
		if ds := p.ownAll(d.Values); ds != nil {
			return ir.NewDict(d.Keys, ds)
		}
	}
	return d
}

// ownAll is own for the elements of a container; nil where they stay as they are.
func (p *program) ownAll(ds []ir.Datum) []ir.Datum {
	var out []ir.Datum
	for i, d := range ds {
		switch e := p.own(d).(type) {
		case *ir.Array:
			if e == d {
				continue
			}
			if out == nil {
				out = append(out, ds...)
			}
			out[i] = e
		case ir.Tuple, ir.List, *ir.Dict:
			if out == nil {
				out = append(out, ds...)
			}
			out[i] = e
		}
	}
	return out
}

// lay points the planned arrays into mem.
func (in *instance) lay(mem []byte) error {
	if in.base == &mem[0] {
		return nil
	}
	in.base = &mem[0]
	for i, a := range in.plan {
		k := &in.planned[i]
		a.Data = mem[k.at : k.at+k.size : k.at+k.size]
	}
	if in.looks == nil {
		for _, v := range in.views {
			if err := v.run(in); err != nil {
				return err
			}
			in.fixed[v.results[0]] = true
			in.looks = append(in.looks, in.vals[v.results[0]].(*ir.Array))
		}
		return nil
	}
	for i, a := range in.looks {
		a.Data = in.plan[in.viewOf[i]].Data
	}
	return nil
}

// exec runs a block and gives its yields, which stay valid until the next block is run.
func (in *instance) exec(c *code) ([]ir.Datum, error) {
	for i, s := range c.steps {
		if in.count++; in.count&255 == 0 {
			if err := in.ctx.Err(); err != nil {
				return nil, err
			}
		}
		if err := s.run(in); err != nil {
			return nil, err
		}
		for _, d := range c.after[i] {
			in.drop(d)
		}
	}
	in.temp = in.temp[:0]
	for _, y := range c.yields {
		in.temp = append(in.temp, in.vals[y])
	}
	return in.temp, nil
}

// set gives a slot its value.
func (in *instance) set(slot int, d ir.Datum) {
	retain(d)
	ir.Release(in.vals[slot])
	in.vals[slot] = d
}

// drop empties a slot that nobody reads any more.
func (in *instance) drop(slot int) {
	if !in.fixed[slot] {
		ir.Release(in.vals[slot])
		in.vals[slot] = nil
	}
}

func (in *instance) dropAll(slots []int) {
	for _, s := range slots {
		in.drop(s)
	}
}

// pass moves yields into slots, and empties the block they come from.
func (in *instance) pass(to []int, from []ir.Datum, c *code) {
	for _, d := range from {
		retain(d)
	}
	in.dropAll(c.final)
	for i, s := range to {
		ir.Release(in.vals[s])
		in.vals[s] = from[i]
	}
}

func retain(d ir.Datum) {
	if a, ok := d.(*ir.Array); ok {
		if b, ok := a.Owner.(ir.Buffer); ok {
			b.Retain()
		}
	}
}

// array is the tensor in a slot.
func (in *instance) array(slot int) (*ir.Array, error) {
	a, ok := in.vals[slot].(*ir.Array)
	if !ok {
		return nil, fmt.Errorf("expected a tensor, got %s", ir.TypeOf(in.vals[slot]))
	}
	return a, nil
}

// machine runs functions as programs.
type machine struct {
	kernels *cpuKernels
	resolve func(n *ir.Node, args []ir.Datum) (*ir.Func, error)
}

// program gives a function's program, which is made at its first run and lives as long as the function.
func (m *machine) program(f *ir.Func) (*program, error) {
	type made struct {
		p   *program
		err error
	}
	x := f.Prepared(m, func() any {
		p, err := m.build(f)
		return made{p, err}
	}).(made)
	return x.p, x.err
}

// run runs a whole function. Tensors among its results are contiguous where the memory is the arena's.
func (m *machine) run(ctx context.Context, f *ir.Func, rng *ir.RNG, out io.Writer, args []ir.Datum) ([]ir.Datum, error) {
	if err := f.CheckArgs(args); err != nil {
		return nil, err
	}
	p, err := m.program(f)
	if err != nil {
		return nil, err
	}
	env := &ir.Evaluator{Resolve: m.resolve, RNG: *rng, Out: out}
	res, err := p.run(ctx, env, args)
	*rng = env.RNG
	for i := 0; i < len(res) && err == nil && m.kernels.arena != nil; i++ {
		if a, ok := res[i].(*ir.Array); ok && !a.IsContiguous() {
			res[i], err = m.kernels.contiguous(ctx, a)
		}
	}
	return res, err
}

func (m *machine) planned(f *ir.Func) (int, error) {
	p, err := m.program(f)
	if err != nil {
		return 0, err
	}
	return p.size, nil
}

// expand runs the expansion of a generic node.
func (m *machine) expand(ctx context.Context, env *ir.Evaluator, n *ir.Node, args []ir.Datum) ([]ir.Datum, error) {
	f, err := m.resolve(n, args)
	if err != nil {
		return nil, err
	}
	p, err := m.program(f)
	if err != nil {
		return nil, err
	}
	return p.run(ctx, env, args)
}
