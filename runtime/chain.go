//go:build !nollvm

package runtime

import (
	"slices"
	"sync/atomic"

	"github.com/gtc-project/gtc/codegen/cpu"
	"github.com/gtc-project/gtc/ir"
)

// chaining looks for kernels that follow one another over the same rows, such as those of a softmax: maps, and reductions of trailing dims.
// Run row after row, each finds in the cache what the one before has left there.
type chaining struct {
	*flattener
	jobs    []*job // the chain so far
	kernels int
	lead    []int // the dims that the rows are numbered by; nil before the first reduction
	touched map[int]bool
}

// maxChain bounds the kernels of a chain.
const maxChain = 12

// chain joins jobs of a region.
func (z *flattener) chain(r *region) {
	c := &chaining{flattener: z, touched: map[int]bool{}}
	var out []*job
	for _, j := range r.jobs {
		if !c.add(j) {
			out = append(out, c.close(r)...)
			if !c.add(j) {
				out = append(out, j)
			}
		}
	}
	r.jobs = append(out, c.close(r)...)
}

// add takes j into the chain, if it fits.
func (c *chaining) add(j *job) bool {
	switch j.kind {
	case jobView:
		if len(c.jobs) == 0 || j.node.Op.Class != ir.View || !c.types[j.args[0]].Static() || j.node.Op.Name == "reshape" && !c.contiguous(j.args[0]) {
			return false
		}
		c.jobs = append(c.jobs, j)
		return true
	case jobMap:
		t := c.types[j.results[0]]
		if !t.Static() || c.kernels > 0 && (!c.connected(j) || c.kernels == maxChain) || c.lead != nil && !hasPrefix(t.Shape(), c.lead) {
			return false
		}
	case jobReduce:
		lead, ok := leadOf(c.types[j.args[0]].Shape(), j.dims)
		if !ok || c.kernels > 0 && (!c.connected(j) || c.kernels == maxChain) || c.lead != nil && !slices.Equal(lead, c.lead) {
			return false
		}
		if c.lead == nil {
			for _, m := range c.jobs {
				if m.kind == jobMap && !hasPrefix(c.types[m.results[0]].Shape(), lead) {
					return false
				}
			}
			c.lead = lead
		}
	default:
		return false
	}
	c.jobs = append(c.jobs, j)
	c.kernels++
	for _, s := range append(slices.Clone(j.args), j.results...) {
		c.touched[c.base(s)] = true
	}
	return true
}

// base is what a slot is a view of.
func (c *chaining) base(s int) int {
	for c.def[s] != nil && c.def[s].kind == jobView {
		s = c.def[s].args[0]
	}
	return s
}

// contiguous reports whether a slot holds what a kernel has written.
func (c *chaining) contiguous(s int) bool { return c.def[s] != nil && c.def[s].ownsResults() }

// connected reports whether j works on something that the chain works on.
func (c *chaining) connected(j *job) bool {
	return slices.ContainsFunc(j.args, func(s int) bool { return c.touched[c.base(s)] })
}

// leadOf is the shape without its trailing dims, if these are the reduced ones and rows are left.
func leadOf(shape, dims []int) ([]int, bool) {
	k := len(shape) - len(dims)
	for _, d := range dims {
		if d < k {
			return nil, false
		}
	}
	rows := 1
	for _, n := range shape[:k] {
		rows *= n
	}
	return shape[:k:k], rows > 1
}

func hasPrefix(shape, lead []int) bool {
	return len(shape) >= len(lead) && slices.Equal(shape[:len(lead)], lead)
}

// close ends the chain and gives what it is: one job where that saves anything.
func (c *chaining) close(r *region) []*job {
	jobs := c.jobs
	n := len(jobs)
	for n > 0 && jobs[n-1].kind == jobView {
		n--
	}
	worth := c.kernels > 1 && c.lead != nil
	c.jobs, c.kernels, c.lead = nil, 0, nil
	clear(c.touched)
	if !worth {
		return jobs
	}
	j := &job{kind: jobChain, node: jobs[n-1].node, members: jobs[:n:n], in: r, begin: jobs[0].begin, end: jobs[n-1].end}
	for _, m := range j.members {
		j.args, j.results = append(j.args, m.args...), append(j.results, m.results...)
	}
	return append([]*job{j}, jobs[n:]...)
}

// chainStep runs kernels row after row where their layouts allow it, and otherwise one after another.
type chainStep struct {
	*job
	steps  []step
	inside []int // results that nothing else reads
	last   atomic.Pointer[chained]
}

// chained is a chain of certain launches; chain is nil where they do not go by rows.
type chained struct {
	launches []cpu.Launch
	chain    *cpu.Chained
}

// bound is a kernel of a chain with its operands.
type bound struct {
	launch cpu.Launch
	ops    []*ir.Array
}

// binder is a kernel's step that can be run later.
type binder interface {
	// bind finds the operands and puts the results, not computed yet, into their slots.
	bind(in *instance, ops []*ir.Array) ([]*ir.Array, cpu.Launch, error)
}

func (s *chainStep) run(in *instance) error {
	k := 0
	for i, m := range s.steps {
		b, ok := m.(binder)
		if !ok {
			if err := m.run(in); err != nil {
				return err
			}
			continue
		}
		if k == len(in.bound) {
			in.bound, in.boundOps = append(in.bound, bound{}), append(in.boundOps, nil)
		}
		ops, l, err := b.bind(in, in.bound[k].ops[:0])
		if err != nil {
			return ir.ErrorAt(s.members[i].node, err)
		}
		in.bound[k], in.boundOps[k] = bound{l, ops}, ops
		k++
	}
	c := s.last.Load()
	if c == nil || !slices.EqualFunc(c.launches, in.bound[:k], func(l cpu.Launch, b bound) bool { return l == b.launch }) {
		c = &chained{}
		for _, b := range in.bound[:k] {
			c.launches = append(c.launches, b.launch)
		}
		var local []*ir.Array
		for _, slot := range s.inside {
			local = append(local, in.vals[slot].(*ir.Array))
		}
		c.chain = cpu.Chain(c.launches, in.boundOps[:k], local)
		s.last.Store(c)
	}
	if c.chain != nil {
		return ir.ErrorAt(s.node, c.chain.Run(in.ctx, in.boundOps[:k]))
	}
	for _, b := range in.bound[:k] {
		if err := b.launch.Run(in.ctx, b.ops...); err != nil {
			return ir.ErrorAt(s.node, err)
		}
	}
	return nil
}
