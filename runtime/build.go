//go:build !nollvm

package runtime

import (
	"context"
	"slices"

	"github.com/gtc-project/gtc/codegen/cpu"
	"github.com/gtc-project/gtc/ir"
)

// build makes a function ready to run.
func (m *machine) build(f *ir.Func) (*program, error) {
	e, err := m.emit(f)
	if err != nil {
		return nil, err
	}
	if m.kernels.arena != nil {
		e.compile(e.program.body)
	}
	return e.program, nil
}

func (m *machine) emit(f *ir.Func) (*emitter, error) {
	z, body, err := flatten(f)
	if err != nil {
		return nil, err
	}
	plan := z.planMemory(body)
	p := &program{machine: m, fn: f, slots: z.slots, params: body.params, size: plan.size, constants: map[*byte]bool{}}
	e := &emitter{flattener: z, program: p, memory: plan, place: map[int]int{}, looks: map[int]*ir.Array{}}
	for s, d := range z.known {
		p.known = append(p.known, knownSlot{s, d})
		if a, ok := d.(*ir.Array); ok && len(a.Data) > 0 {
			p.constants[&a.Data[0]] = true
		}
	}
	p.body, err = e.region(body)
	return e, err
}

// emitter turns jobs into steps.
type emitter struct {
	*flattener
	program *program
	memory  *memoryPlan
	place   map[int]int       // by slot that is planned or a view of such a one: the place in program.planned
	looks   map[int]*ir.Array // the same: how the value is laid out
}

func (e *emitter) region(r *region) (*code, error) {
	c := &code{params: r.params, yields: r.yields}
	left := map[int]bool{} // slots of the block that nobody has read yet, going backwards
	for _, s := range r.params {
		left[s] = true
	}
	var jobs []*job
	for _, j := range r.jobs {
		s, err := e.step(j)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		c.steps, jobs = append(c.steps, s), append(jobs, j)
		for _, res := range j.results {
			if _, fixed := e.looks[res]; !fixed {
				left[res] = true
			}
		}
	}
	last := func(s int, to *[]int) {
		if left[s] {
			delete(left, s)
			*to = append(*to, s)
		}
	}
	for _, s := range r.yields {
		last(s, &c.final)
	}
	c.after = make([][]int, len(jobs))
	for i := len(jobs) - 1; i >= 0; i-- {
		each(jobs[i], func(s int) { last(s, &c.after[i]) })
		for _, res := range jobs[i].results {
			last(res, &c.after[i])
		}
	}
	for _, s := range r.params {
		last(s, &c.final) // nobody reads it
	}
	return c, nil
}

// each calls f for all slots that a job reads, in its blocks too.
func each(j *job, f func(slot int)) {
	for _, a := range j.args {
		f(a)
	}
	for _, b := range j.blocks {
		for _, n := range b.jobs {
			each(n, f)
		}
		for _, y := range b.yields {
			f(y)
		}
	}
}

func (e *emitter) step(j *job) (step, error) {
	switch j.kind {
	case jobMap:
		return e.mapStep(j), nil
	case jobReduce:
		r, err := e.program.machine.kernels.backend.Reduce(cpu.ReduceOp(j.node.Op.Name), j.prog)
		if err != nil {
			return nil, err
		}
		return &reduceStep{job: j, reduction: r, out: e.outcome(j.results[0])}, nil
	case jobDot:
		s := &dotStep{job: j, backend: e.program.machine.kernels.backend, out: e.outcome(j.results[0])}
		s.nbatch, s.ncontract = int(e.known[j.args[2]].(int64)), int(e.known[j.args[3]].(int64))
		for i := range s.constant {
			_, s.constant[i] = e.known[j.args[i]]
		}
		return s, nil
	case jobMove:
		return &moveStep{job: j, kernel: e.copier(j.results[0]), out: e.outcome(j.results[0]), launches: make([]launches, len(j.parts))}, nil
	case jobGather:
		return e.gatherStep(j), nil
	case jobChain:
		c := &chainStep{job: j}
		members := j.members
		c.members = nil
		for _, m := range members {
			s, err := e.step(m)
			if err != nil {
				return nil, err
			}
			if s != nil {
				c.steps, c.members = append(c.steps, s), append(c.members, m)
			}
			for _, res := range m.results {
				if m.ownsResults() && e.memory.inside[res] {
					c.inside = append(c.inside, res)
				}
			}
		}
		return c, nil
	case jobKernel:
		return &kernelStep{job: j}, nil
	case jobGeneric:
		return &genericStep{job: j}, nil
	case jobIf, jobWhile, jobFor:
		return e.control(j)
	}
	if j.node.Op.Name == "reshape" && e.types[j.results[0]].Static() && e.types[j.args[0]].Static() {
		if h := (&hostStep{job: j}); e.look(j, h) {
			return nil, nil
		}
		return &reshapeStep{job: j, kernel: e.copier(j.results[0]), out: e.outcome(j.results[0])}, nil
	}
	h := &hostStep{job: j, holds: holdsOn(e.types, j.results)}
	if j.kind == jobView && e.look(j, h) {
		return nil, nil
	}
	return h, nil
}

// look reports whether a view is of planned memory and depends on nothing else that is not known: it is then made once.
func (e *emitter) look(j *job, h *hostStep) bool {
	base, ok := e.looks[j.args[0]]
	if !ok || j.node.Op.Class != ir.View {
		return false
	}
	v := e.viewOf(j, base)
	if v == nil {
		return false
	}
	p := e.program
	at := e.place[j.args[0]]
	e.place[j.results[0]], e.looks[j.results[0]] = at, v
	p.views, p.viewOf = append(p.views, h), append(p.viewOf, at)
	return true
}

// viewOf is the view that a job makes of base, which may be without memory; nil where that is not known beforehand.
func (e *emitter) viewOf(j *job, base *ir.Array) *ir.Array {
	if j.node.Op.Name == "reshape" && !base.IsContiguous() {
		return nil
	}
	args := []ir.Datum{base}
	for _, a := range j.args[1:] {
		d, ok := e.known[a]
		if !ok {
			return nil
		}
		args = append(args, d)
	}
	out, err := (&ir.Evaluator{}).EvalNode(context.Background(), j.node, args)
	if err != nil {
		return nil
	}
	return out[0].(*ir.Array)
}

func (e *emitter) mapStep(j *job) step {
	s := &mapStep{job: j, kernel: e.program.machine.kernels.backend.Elementwise(j.prog)}
	for _, res := range j.results {
		s.outs = append(s.outs, e.outcome(res))
	}
	return s
}

// copier is the kernel that copies elements of a slot's dtype.
func (e *emitter) copier(slot int) *cpu.Map {
	return e.program.machine.kernels.backend.Elementwise(cpu.Identity(e.types[slot].DType))
}

func (e *emitter) gatherStep(j *job) step {
	s := &gatherStep{job: j, backend: e.program.machine.kernels.backend, out: e.outcome(j.results[0]), dim: -1}
	if j.node.Op.Name == "gather" {
		s.dim = j.dims[0]
	}
	return s
}

// outcome says where a kernel's result goes.
func (e *emitter) outcome(slot int) outcome {
	t := e.types[slot]
	o := outcome{slot: slot, dtype: t.DType}
	if t.Static() {
		o.shape = t.Shape()
	}
	at, ok := e.memory.offset[slot]
	if !ok {
		o.cell = e.program.cells
		e.program.cells++
		return o
	}
	o.planned = true
	like := ir.Array{DType: t.DType, Shape: o.shape, Strides: ir.ContiguousStrides(o.shape)}
	e.place[slot], e.looks[slot] = len(e.program.planned), &like
	e.program.planned = append(e.program.planned, plannedSlot{slot: slot, like: like, at: at, size: t.NumElems() * t.DType.Size()})
	return o
}

func (e *emitter) control(j *job) (step, error) {
	codes := make([]*code, len(j.blocks))
	for i, b := range j.blocks {
		var err error
		if codes[i], err = e.region(b); err != nil {
			return nil, err
		}
	}
	switch j.kind {
	case jobIf:
		return &ifStep{job: j, then: codes[0], otherwise: codes[1]}, nil
	case jobWhile:
		return &whileStep{job: j, cond: codes[0], body: codes[1]}, nil
	}
	return &forStep{job: j, body: codes[0], carried: slices.Clone(codes[0].params[1:])}, nil
}
