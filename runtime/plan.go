//go:build !nollvm

package runtime

import (
	"slices"

	"github.com/gtc-project/gtc/ir"
)

// memoryPlan says which slots hold arrays in the memory that a call takes as a whole, and where there. These are the results of kernels whose
// size is known and that no list, other function or result of a block can hold on to. Two of them share memory if they are never
// needed at the same time. The other arrays are counted (see outcome).
type memoryPlan struct {
	offset map[int]int // by slot, in bytes
	size   int
	inside map[int]bool // by slot: only the chain that computes it reads it
}

const planAlign = 64

// lifetimes is what planMemory works on.
type lifetimes struct {
	*flattener
	owners  [][]int // by slot: the kernel results whose memory the value may look at
	escapes []bool  // by kernel result
	last    []int   // by kernel result: when it is needed last
}

// maxOwners bounds the owners of one slot.
const maxOwners = 16

// planMemory lays out the memory of a function.
func (z *flattener) planMemory(body *region) *memoryPlan {
	l := &lifetimes{flattener: z, owners: make([][]int, z.slots), escapes: make([]bool, z.slots), last: make([]int, z.slots)}
	for i := range l.last {
		l.last[i] = -1
	}
	l.own(body)
	l.read(body)
	p := &memoryPlan{offset: map[int]int{}, inside: map[int]bool{}}
	a := &layout{}
	l.place(body, p, a, map[int][]int{})
	p.size = a.top
	return p
}

// ownsResults: the results are fresh memory that a kernel fills.
func (j *job) ownsResults() bool {
	switch j.kind {
	case jobMap, jobReduce, jobDot, jobMove, jobGather:
		return true
	}
	return false
}

// kernels are j itself or its members, where their results are fresh memory.
func (j *job) kernels() []*job {
	if j.ownsResults() {
		return []*job{j}
	}
	var out []*job
	for _, m := range j.members {
		if m.ownsResults() {
			out = append(out, m)
		}
	}
	return out
}

// own finds the owners of every slot. Whatever is not computed by a planned kernel may be a view of its operands.
func (l *lifetimes) own(r *region) {
	for _, j := range r.jobs {
		for _, b := range j.blocks {
			l.own(b)
		}
		l.ownJob(j)
	}
}

func (l *lifetimes) ownJob(j *job) {
	switch {
	case j.kind == jobChain:
		for _, m := range j.members {
			l.ownJob(m)
		}
	case j.ownsResults():
		for _, s := range j.results {
			l.owners[s] = []int{s}
		}
	case len(j.blocks) == 0: // what goes in and out of blocks escapes
		var all []int
		for _, a := range j.args {
			for _, o := range l.owners[a] {
				if !slices.Contains(all, o) {
					all = append(all, o)
				}
			}
		}
		if len(all) > maxOwners {
			for _, o := range all {
				l.escapes[o] = true
			}
			all = nil
		}
		for _, res := range j.results {
			if l.types[res].IsTensor() {
				l.owners[res] = all
			}
		}
	}
}

// read finds out until when kernel results are needed, and which ones may be held by something whose end is not known beforehand.
// What a loop reads from outside is needed until the loop's end.
func (l *lifetimes) read(r *region) {
	for _, s := range r.yields {
		for _, o := range l.owners[s] {
			l.escapes[o] = true
		}
	}
	for _, j := range r.jobs {
		held := j.kind == jobGeneric || len(j.blocks) > 0 || holdsOn(l.types, j.results)
		for _, a := range j.args {
			for _, o := range l.owners[a] {
				l.escapes[o] = l.escapes[o] || held
				by := j
				for by.in != l.home[o] && by.in.owner != nil {
					by = by.in.owner
				}
				l.last[o] = max(l.last[o], by.end)
			}
		}
		for _, b := range j.blocks {
			l.read(b)
		}
	}
}

// holdsOn reports whether values of such types may contain a tensor.
func holdsOn(types []ir.Type, slots []int) bool {
	for _, s := range slots {
		switch types[s].Kind {
		case ir.KInt, ir.KFloat, ir.KBool, ir.KString, ir.KDType, ir.KNone, ir.KTensor:
		default:
			return true
		}
	}
	return false
}

// place goes through the jobs as they run.
func (l *lifetimes) place(r *region, p *memoryPlan, a *layout, ends map[int][]int) {
	for _, j := range r.jobs {
		for _, b := range j.blocks {
			l.place(b, p, a, ends)
		}
		for _, m := range j.kernels() { // results of a chain's kernels do not share memory with one another
			for _, s := range m.results {
				t := l.types[s]
				if l.escapes[s] || !t.Static() || t.NumElems() == 0 {
					continue
				}
				p.offset[s] = a.take(t.NumElems() * t.DType.Size())
				end := max(l.last[s], j.end)
				p.inside[s] = j.kind == jobChain && end == j.end
				ends[end] = append(ends[end], s)
			}
		}
		for _, s := range ends[j.end] {
			t := l.types[s]
			a.give(p.offset[s], t.NumElems()*t.DType.Size())
		}
		delete(ends, j.end)
	}
}

// layout hands out ranges of one block of memory, of which it knows no end.
type layout struct {
	free []span // in order of position, none touching the next
	top  int
}

type span struct{ from, to int }

func aligned(n int) int { return (n + planAlign - 1) &^ (planAlign - 1) }

// take gives the position of the tightest free range of n bytes.
func (a *layout) take(n int) int {
	n = aligned(n)
	best := -1
	for i, s := range a.free {
		if size := s.to - s.from; size >= n && (best < 0 || size < a.free[best].to-a.free[best].from) {
			best = i
		}
	}
	if best >= 0 {
		at := a.free[best].from
		if a.free[best].from += n; a.free[best].from == a.free[best].to {
			a.free = slices.Delete(a.free, best, best+1)
		}
		return at
	}
	at := a.top
	if k := len(a.free); k > 0 && a.free[k-1].to == a.top { // grow the last one
		at = a.free[k-1].from
		a.free = a.free[:k-1]
	}
	a.top = at + n
	return at
}

// give takes a range back.
func (a *layout) give(at, n int) {
	s := span{at, at + aligned(n)}
	i, _ := slices.BinarySearchFunc(a.free, s, func(x, y span) int { return x.from - y.from })
	a.free = slices.Insert(a.free, i, s)
	if i+1 < len(a.free) && a.free[i].to == a.free[i+1].from {
		a.free[i].to = a.free[i+1].to
		a.free = slices.Delete(a.free, i+1, i+2)
	}
	if i > 0 && a.free[i-1].to == a.free[i].from {
		a.free[i-1].to = a.free[i].to
		a.free = slices.Delete(a.free, i, i+1)
	}
}
