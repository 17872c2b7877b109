// Package kernel plans loop nests over strided arrays, for every target alike.
//
// A group of operands is walked by a [Nest]: axes with a size and one stride per operand. Dropping axes of size 1 and merging those
// that all operands walk as one leaves few axes, so that one compiled kernel serves many shapes and layouts: what a kernel is
// specialised for is only how each operand moves along the innermost axis ([Access]).
package kernel

import "slices"

// Axis is one loop: how often it runs and how far each operand moves per step, in elements.
type Axis struct {
	Size    int
	Strides []int
}

// Nest is a loop nest, outermost axis first.
type Nest []Axis

// NewNest makes the nest over shape for operands with the given strides, one slice of len(shape) per operand.
func NewNest(shape []int, operands ...[]int) Nest {
	n := make(Nest, len(shape))
	strides := make([]int, len(shape)*len(operands))
	for d, size := range shape {
		st := strides[d*len(operands) : (d+1)*len(operands)]
		for k, s := range operands {
			st[k] = s[d]
		}
		n[d] = Axis{size, st}
	}
	return n
}

// Len is the number of index tuples.
func (n Nest) Len() int {
	total := 1
	for _, a := range n {
		total *= a.Size
	}
	return total
}

// SortFor reorders the axes so that operand k walks its memory forward, with the smallest steps innermost. Only nests whose
// iterations are independent may be reordered.
func (n Nest) SortFor(k int) {
	slices.SortStableFunc(n, func(a, b Axis) int { return magnitude(b.Strides[k]) - magnitude(a.Strides[k]) })
}

func magnitude(x int) int {
	if x < 0 {
		return -x
	}
	return x
}

// Collapse drops axes of size 1 and merges neighbours that every operand walks as one axis. It does not change n.
func (n Nest) Collapse() Nest {
	out := make(Nest, 0, len(n))
	for _, a := range n {
		if a.Size == 1 {
			continue
		}
		if last := len(out) - 1; last >= 0 && mergeable(out[last], a) {
			out[last] = Axis{out[last].Size * a.Size, a.Strides}
			continue
		}
		out = append(out, a)
	}
	return out
}

// mergeable reports whether the outer axis steps exactly over a full run of the inner one.
func mergeable(outer, inner Axis) bool {
	for k, s := range outer.Strides {
		if s != inner.Size*inner.Strides[k] {
			return false
		}
	}
	return true
}

// Access is how an operand moves along the innermost axis.
type Access uint8

// The ways to move.
const (
	Unit    Access = iota // to the next element
	Repeat                // not at all
	Strided               // by a step known at run time
)

// AccessOf classifies a stride in elements.
func AccessOf(stride int) Access {
	switch stride {
	case 0:
		return Repeat
	case 1:
		return Unit
	}
	return Strided
}

// String is one letter per operand class, used in kernel names.
func (a Access) String() string { return string("urs"[a]) }

// Chunks cuts total into pieces of about the wanted size that differ by at most one step; it returns the number of pieces and the
// size of each but the last, a multiple of step.
func Chunks(total, want, step int) (count, size int) {
	if total <= 0 {
		return 0, 0
	}
	want = max(want, 1)
	count = (total + want - 1) / want
	size = (total + count - 1) / count
	size = (size + step - 1) / step * step
	return (total + size - 1) / size, size
}
